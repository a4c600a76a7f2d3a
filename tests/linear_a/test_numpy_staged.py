"""NumPy's functions as users write them, traced to programs: the gradients of the eager engine."""

import warnings

import numpy as np
import pytest
from forms import asks
from tables import Laws
from test_numpy_forms import LINES, close, form, random_like

import lineara
from lineara.engines import run
from lineara.errors import LinearaError, StagingError
from lineara.facts.types import type_of
from lineara.linear_a.check import check
from lineara.passes.derivatives import vjp
from lineara.staging.capture import trace

laws = Laws()


@laws.of([line for line in LINES if not asks(line)])
def staged_equals_eager(line):
    f, point = form(line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        staged = trace(f, *point)
    program = check(vjp(staged.program, staged.name))
    y, L = lineara.linearize(f, *point)
    c = random_like(y, 9)
    out = run(program, f"{staged.name}.vjp", *staged.operands(tuple(point)), c)
    close(out.results[0], y, 1e-13)
    assert type_of(out.results[0]) == type_of(y)
    gradient = c @ L
    parts = (gradient,) if len(point) == 1 else gradient
    for x, a, b in zip(point, out.lresults, parts, strict=False):  # large constants come after
        close(a, b, 1e-11)
        assert type_of(a) == type_of(x)


@laws.of(LINES)
def of_arrays_that_the_function_makes_the_value_is_numpys(line):
    f, point = form(line)
    numbers = [np.asarray(x).tolist() for x in point]

    def made(factor):
        y = f(*[np.array(v) if isinstance(v, list) else v for v in numbers])
        return y, 2.0 * factor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, staged = made(1.5), lineara.jit(made)(1.5)
    close(staged[0], expected[0], 1e-13)
    assert np.shape(staged[0]) == np.shape(expected[0])
    assert staged[1] == 3.0


OTHERS = {  # of whole numbers and truth values these are not NumPy's
    "np.hypot.reduce(x[:0]) + s", 'np.pad(A, 2, "mean")', "np.heaviside(x, s)",
    "np.logaddexp.reduce(A, axis=1, where=mask)", 'np.convolve(v, x, mode="valid")',
    'np.convolve(x, y, "valid")', "np.correlate(v, x)", "np.hypot.reduce(T, axis=2)",
    "np.vectorize(lambda a, b: a**b, excluded=[1])(x, 2)", "np.vecdot(A, P, axes=[0, 0])",
    "np.linalg.cholesky(gram(M), upper=True)",
}  # fmt: skip
KINDS = {
    "whole": lambda x: np.round(np.nan_to_num(np.asarray(x)) * 3).astype(int)[()],
    "truths": lambda x: (np.asarray(x) > 0)[()],
}


@laws.of([line for line in LINES if not asks(line) and line not in OTHERS])
def the_dtype_of_whole_numbers_and_truth_values_is_numpys(line):
    f, point = form(line)
    for cast in KINDS.values():
        given = [cast(x) for x in point]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = f(*given)
            except Exception:  # NumPy has no result of such numbers
                continue
            try:
                got = lineara.jit(f)(*given)
            except LinearaError:  # a refusal in words
                continue
        assert type_of(got) == type_of(expected)
        close(got, expected, 1e-10)


SINGLE = np.float32([0.3, 1.2, 0.7])


@pytest.mark.parametrize("maker", [np.geomspace, np.logspace, np.linspace])
@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
def test_the_dtype_of_steps_between_singles_is_numpys(maker, dtype):
    def steps(x):
        return maker(x[0], x[1], 5, dtype=dtype), maker(x, 2 * x, 4, dtype=dtype)

    for got, expected in zip(lineara.jit(steps)(SINGLE), steps(SINGLE), strict=True):
        assert got.dtype == expected.dtype
        close(got, expected, 1e-6)


@laws.of([line for line in LINES if asks(line)])
def what_asks_for_a_value_says_so(line):
    f, point = form(line)
    with pytest.raises(StagingError, match=asks(line)):
        trace(f, *point)


test_every_law = laws.test()

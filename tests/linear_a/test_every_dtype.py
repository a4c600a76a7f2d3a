"""Every operation in every dtype it takes, forward and reverse, on both engines; and how many.

The eager engine is held against differences in the widest dtype of that kind, and against itself
by inner products; the programs of Linear A against the eager engine.
"""

from collections import Counter
from functools import cache

import numpy as np
from staged import case, results
from tables import Laws
from test_numpy_forms import LINES, POINT
from test_numpy_forms import form as expression
from test_primitives import (
    AWAY_FROM_KINKS,
    SMOOTH,
    as_tuple,
    as_vector,
    difference,
    inner,
    random_like,
    takes_complex,
)

import lineara
from lineara.engines import run
from lineara.facts.types import type_of
from lineara.linear_a.check import check
from lineara.passes.derivatives import vjp

laws = Laws()
REAL, OF_COMPLEX = (np.float32, np.float64), (np.complex64, np.complex128)
DTYPES = (*REAL, *OF_COMPLEX)
MODES = ("forward", "reverse")
TOLERANCE = {np.float32: 3e-4, np.float64: 1e-7, np.complex64: 3e-4, np.complex128: 3e-7}
PRIMITIVES = [line for line in SMOOTH if line.function is line.primitive]


def has_arrays(line):
    return any(isinstance(line.args[i], np.ndarray) for i in line.active)


def of_dtype(line, dtype):
    """The line with arrays of that dtype; None where the operation does not take it."""
    if line.name == "astype" or not has_arrays(line):
        return None
    if dtype in REAL:
        return line.cast(dtype)
    return line.complex().cast(dtype) if takes_complex(line) else None


@cache
def cases():
    """Every line in every dtype that it takes; whether it takes complex numbers is tried."""
    return [
        (line, dtype)
        for line in PRIMITIVES
        for dtype in DTYPES
        if of_dtype(line, dtype) is not None
    ]


def vectors(point, y):
    x_dots = [random_like(p, i) for i, p in enumerate(point)]
    x_dots = [v.astype(p.dtype) if np.ndim(p) else v for v, p in zip(x_dots, point, strict=True)]
    c = random_like(y, 9)
    return x_dots, c.astype(np.asarray(y).dtype) if np.ndim(y) else c


def names(line):
    """The names that an expression is a function of."""
    return expression(line)[0].__code__.co_varnames


def near(a, b, tolerance):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=10 * tolerance)


@laws.of([line for line in PRIMITIVES if has_arrays(line)])
def both_modes_on_both_engines_in_every_dtype(line):
    for dtype in [dtype for of, dtype in cases() if of is line]:
        both_modes_on_both_engines(line, dtype)


def both_modes_on_both_engines(line, dtype):
    found, tolerance = case(of_dtype(line, dtype)), TOLERANCE[dtype]
    y, L = lineara.linearize(found.f, *found.point)
    x_dots, c = vectors(found.point, y)
    y_dot = L @ as_vector(x_dots)
    x_bars = as_tuple(c @ L)
    near(inner(c, y_dot), inner(as_vector(x_bars), as_vector(x_dots)), tolerance)
    if line in AWAY_FROM_KINKS:
        wide = case(of_dtype(line, np.float64 if dtype in REAL else np.complex128))
        near(y_dot, difference(wide.f, wide.point, x_dots), tolerance)
    for p, x_bar in zip(found.point, x_bars, strict=True):
        assert type_of(x_bar) == type_of(p) or not np.ndim(p)
    program = check(vjp(found.program, "f"))
    staged = run(program, "f.jvp", *found.values, *x_dots)
    near(staged.results[0], y, tolerance)
    near(staged.lresults[0] if staged.lresults else staged.results[1], y_dot, tolerance)
    for a, b in zip(results(program, "f.vjp", *found.values, c), x_bars, strict=True):
        near(a, b, tolerance)


WIDE = ("float64", "dtype", "item", "tolist", "float_power")  # what is of no or of another dtype
WIDE += ("polydiv",)  # how long a remainder is depends on rounding
SINGLE = [line for line in LINES if not any(w in line for w in WIDE) and "s" not in names(line)]


@laws.of(SINGLE)
def numpys_functions_in_single_precision(line):
    f, point = expression(line)
    narrow = [np.asarray(p, np.float32) if np.ndim(p) else p for p in point]
    y, L = lineara.linearize(f, *narrow)
    assert np.asarray(y).dtype == np.asarray(f(*narrow)).dtype
    exact, wide = lineara.linearize(f, *[np.asarray(p, float) if np.ndim(p) else p for p in narrow])
    if np.shape(exact) != np.shape(y):
        return  # a count of rows depends on rounding
    x_dots = [random_like(p, i) for i, p in enumerate(point)]
    near(L @ as_vector(x_dots), wide @ as_vector(x_dots), 2e-3)
    c = random_like(y, 9)
    for a, b, p in zip(as_tuple(c @ L), as_tuple(c @ wide), narrow, strict=True):
        near(a, b, 2e-3)
        assert type_of(a) == type_of(p) or not np.ndim(p)


def checked():
    """(engine, dtype) -> how many operations times modes the tests above and the forms look at."""
    found = Counter()
    for _, dtype in cases():
        for engine in ("eager", "Linear A"):
            found[engine, np.dtype(dtype).name] += len(MODES)
    for engine in ("eager", "Linear A"):
        found[engine, "float64"] += len(MODES) * len(LINES)  # tests/ops and test_numpy_staged
    found["eager", "float32"] += len(MODES) * len(SINGLE)
    return found


def test_the_operations_are_many():
    found = checked()
    for (engine, dtype), count in sorted(found.items()):
        print(f"{engine:10}{dtype:12}{count:6}")
    assert all(isinstance(p, float | np.ndarray) for p in POINT.values())
    assert sum(found.values()) >= 5000


test_every_law = laws.test()

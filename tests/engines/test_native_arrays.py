"""Machine code of arrays: products, sums, extrema and parts, against the interpreter."""

import functools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from test_native import EXACT, NATIVE, agree

import lineara
from lineara.engines import run
from lineara.engines.native import symbols
from lineara.engines.native.formulas import is_pythons

rng = np.random.default_rng(5)
M, N, V, W = (
    rng.normal(size=(3, 4)),
    rng.normal(size=(4, 5)),
    rng.normal(size=4),
    rng.normal(size=3),
)
T, U = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
LARGE_A, LARGE_B = rng.normal(size=(40, 50)), rng.normal(size=(50, 60))
NONE, LONG = np.zeros((0, 4)), rng.normal(size=(3, 100))
AT, FLAGS = np.array([2, 0, 2]), np.array([True, False, True, True])


def put(x, at, value):
    y = x * 1.0
    y[at] = value
    return y


def diagonals(a):
    return a[[0, 1, 2], [1, 2, 3]]


CASES = {
    "matrix @ matrix": (lambda a, b: a @ b, M, N),
    "matrix @ vector": (lambda a, b: a @ b, M, V),
    "vector @ matrix": (lambda a, b: a @ b, V, N),
    "vector @ vector": (lambda a, b: a @ b, V, V * 2),
    "long vector @ vector": (lambda a, b: a @ b, LONG[0], LONG[1]),
    "matrix.T @ matrix": (lambda a, b: a.T @ b, M, np.outer(W, W)),
    "matrix @ matrix.T": (lambda a, b: a @ b.T, LONG, LONG * 2),
    "stack @ stack": (lambda a, b: a @ b, T, U),
    "stack @ matrix": (lambda a, b: a @ b, T, N),
    "stack @ vector": (lambda a, b: a @ b, T, V),
    "large @ large": (lambda a, b: a @ b, LARGE_A, LARGE_B),
    "large.T @ large.T": (lambda a, b: a.T @ b.T, LARGE_A, rng.normal(size=(60, 40))),
    "large.T @ large": (lambda a, b: a.T @ b, LARGE_A, rng.normal(size=(40, 33))),
    "nothing @ matrix": (lambda a, b: a @ b, NONE, N),
    "matrix @ nothing": (lambda a, b: a @ b, np.zeros((3, 0)), np.zeros((0, 2))),
    "outer": (np.outer, V, W),
    "einsum": (lambda a, b: np.einsum("ij,kj->ik", a, b), M, N.T),
    "trace of a product": (lambda a, b: np.einsum("ij,ji->", a, b), M, M.T * 2),
    "sum": (np.sum, M),
    "sum of rows": (lambda a: np.sum(a, axis=1), LONG),
    "sum of columns": (lambda a: np.sum(a, axis=0), LONG),
    "sum of columns of a transposed": (lambda a: np.sum(a.T, axis=0), LONG),
    "sum, outer axes": (lambda a: np.sum(a, axis=(0, 2), keepdims=True), T),
    "sum of nothing": (lambda a: np.sum(a, axis=0), NONE),
    "mean of what is thinned": (lambda a: np.mean(a[:, ::2], axis=0), LONG),
    "max": (np.max, M),
    "max of rows": (lambda a: np.max(a, axis=1) * 2.0, LONG),
    "min of columns": (lambda a: np.min(a, axis=0), M),
    "log of sum of exp": (
        lambda a: np.log(np.sum(np.exp(a - np.max(a, axis=1, keepdims=True)), axis=1)), LONG,
    ),
    "transposed times": (lambda a, b: a.T * b, M, M.T * 1.5),
    "axes": (lambda a: np.transpose(a, (2, 0, 1)) * 2.0, T),
    "broadcast": (lambda a, b: a + b[:, None], M, W),
    "chosen by rows": (lambda a, v: np.where(v > 0, 0.0, a) * np.where(a > v, v, a), M, V),
    "chosen by columns": (lambda a, w: np.where(w[:, None] > 0, a, 1.0), M, W),
    "rows of a function with a loop": (lambda a, v: np.hypot(a, v[None, :]), M, V),
    "every other": (lambda a: a[::2, ::-1] * a[1:, :4][:1], M),
    "new axes": (lambda a: a[:, None, :] * a[None, :, :], M),
    "listed": (diagonals, M),
    "listed rows": (lambda a: a[AT] * 2.0, M),
    "flagged": (lambda a: a[:, FLAGS] * 2.0, M),
    "reshaped and transposed": (lambda a: a.T.reshape(2, 6).T[1:], M),
    "flattened": (lambda a: a.T.ravel(), M),
    "joined": (lambda a, b: np.concatenate([a, b * 2.0, a], axis=1), M, M),
    "joined rows": (lambda a, b: np.concatenate([a, b]), V, W),
    "stacked": (lambda a, b: np.stack([a, b, a], axis=1), V, V * 2),
    "stacked numbers": (lambda a: np.array([a[0], a[1] * 2, a[0]]), V),
    "written thinned": (lambda a, b: put(a, (slice(None), slice(None, None, 3)), b), M, M[:, :2]),
    "written at a list": (lambda a, b: put(a, AT[:2], b), M, M[:2] * 3),
    "written with one number": (lambda a: put(a, (slice(1, 3), slice(0, 4, 2)), 7.0), M),
    "read twice": (lambda a: a[AT] @ a[AT[::-1]].T, M),
    "triangle": (lambda a: np.tril(a @ a.T) * 2.0, M),
    "diagonal": (lambda a: np.diag(np.diag(a @ a.T)), M),
}  # fmt: skip


FLAGGED = {
    "abs": np.abs,
    "isfinite": np.isfinite,
    "isnan": np.isnan,
    "absolute values and numbers": lambda flags: np.abs(flags) * 2.0,
}


@pytest.mark.parametrize("case", FLAGGED)
def test_elementwise_functions_of_booleans(case):
    p, operands = definition(FLAGGED[case], FLAGS)
    agree(p.program, p.name, *operands)


@pytest.mark.parametrize("k", [0.0, 1.0, 2.0, -0.0, 0.5, 3, 1, 0])
def test_powers_with_known_exponents_have_numpys_bits(k):
    x = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, -1.0])
    for f in (lambda x: x**k, lambda x: np.power(x, k) + x ** (k - 1)):
        p, operands = definition(f, x)
        agree(p.program, p.name, *operands)
        program, name = p.definition.derived("jvp")[:2]
        agree(program, name, *operands, np.ones(len(x)))


MIXED = {
    "a power of whole numbers": lambda x, i: x**i,
    "a number to whole numbers": lambda x, i: x[0] ** i,
    "an angle": lambda x, i: np.arctan2(i, x),
    "a root of whole numbers": lambda x, i: np.sqrt(i + 3) * x,
    "a length beside flags": lambda x, i: np.hypot(x, i > 0),
    "stacked": lambda x, i: np.stack([x, i]),
    "joined": lambda x, i: np.concatenate([i > 0, x, i]),
    "a row of numbers": lambda x, i: np.array([x[0], 1, i[0]]),
}


@pytest.mark.parametrize("case", MIXED)
def test_floats_beside_whole_numbers_are_machine_code(case):
    p, operands = definition(MIXED[case], V, np.array([2, 0, -1, 1]))
    agree(p.program, p.name, *operands)
    assert NATIVE.code(p.program, p.name).sites == []


def spread(n, seed=0):
    """A matrix whose rows have to be exchanged, and a positive one."""
    a = np.random.default_rng(seed).normal(size=(n, n))
    a[0, 0] = 0.0 if n > 1 else 2.0
    return a, a @ a.T + np.eye(n)


OF_MATRICES = {
    "solve": lambda a, p: np.linalg.solve(a, p),
    "solve of a vector": lambda a, p: np.linalg.solve(a.T, p[0]),
    "inverse": lambda a, p: np.linalg.inv(a) @ p,
    "determinant": lambda a, p: np.linalg.det(a) * p[0, 0],
    "logarithm of the determinant": lambda a, p: np.linalg.slogdet(a)[1] * p[0, 0],
    "cholesky": lambda a, p: np.linalg.cholesky(p) * a,
    "lower triangle": lambda a, p: scipy.linalg.solve_triangular(p, a, lower=True),
    "upper triangle": lambda a, p: scipy.linalg.solve_triangular(p.T, a.T),
    "transposed triangle": lambda a, p: scipy.linalg.solve_triangular(p, a, lower=True, trans=1),
}  # fmt: skip
DTYPES = [np.float64, np.int64, np.bool_, np.float32, np.complex128]
OF_FLOATS = {"log of sum of exp", "mean of what is thinned"}


def definition(f, *args):
    p = lineara.trace(f, *args)
    return p, p.operands(args)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("case", CASES)
def test_arrays_have_the_interpreters_values(case, dtype):
    f, *args = CASES[case]
    given = [(a * 3).astype(dtype) for a in args]
    try:
        p, operands = definition(f, *given)
    except Exception as error:
        pytest.skip(f"no such program: {type(error).__name__}")
    assert NATIVE.takes(p.program, p.name) is None
    agree(p.program, p.name, *operands)


@pytest.mark.parametrize("case", CASES)
def test_arrays_of_floats_call_nothing_back(case):
    f, *args = CASES[case]
    p, operands = definition(f, *args)
    assert NATIVE.code(p.program, p.name).sites == []
    for way in ("jvp", "vjp"):
        derived = p.definition.derived(way)
        vectors = [np.cos(v) for v in (operands if way == "jvp" else p.run(*args).results)]
        assert NATIVE.code(derived.program, derived.name).sites == []
        agree(derived.program, derived.name, *operands, *vectors, engines=[NATIVE])


@pytest.mark.parametrize("case", CASES)
def test_infinities_and_nans_are_the_interpreters(case):
    f, *args = CASES[case]
    p, _ = definition(f, *args)
    for odd in (np.nan, np.inf, -np.inf):
        given = [a.copy() for a in args]
        for a in given:
            if a.size:
                a.flat[a.size // 2] = odd
        agree(p.program, p.name, *p.operands(given), engines=[NATIVE])


@pytest.mark.parametrize(
    "case",
    [
        "matrix @ matrix",
        "sum of columns",
        "log of sum of exp",
        "max of rows",
        "listed rows",
        "written thinned",
        "stack @ stack",
    ],
)
def test_second_derivatives_of_arrays(case):
    f, *args = CASES[case]

    def slope(*xs):
        return lineara.grad(lambda a: np.sum(np.sin(f(a, *xs[1:]))))(xs[0])

    p = lineara.jit(lineara.grad(lambda *xs: np.sum(slope(*xs) ** 2))).program(*args)
    assert NATIVE.takes(p.program, p.name) is None
    agree(p.program, p.name, *p.operands(args))


def test_matrices_in_another_order_are_read_as_they_are():
    p, _ = definition(lambda a, b: a @ b + 1.0, M, N)
    agree(p.program, p.name, np.asfortranarray(M), N[::-1])


def test_a_long_sum_has_the_same_bits_wherever_it_begins():
    p, _ = definition(lambda a: np.sum(a[1:]) - np.sum(a[:-1]), LONG[0])
    for n in (31, 32, 33, 64, 100, 1000):
        x = rng.normal(size=n + 1)
        p, _ = definition(lambda a: np.sum(a[1:]), x)
        q, _ = definition(np.sum, x[1:])
        ours = [p.run(x).results, q.run(x[1:]).results]
        assert EXACT.takes(p.program, p.name) is None
        assert ours[0] == ours[1]


# --- small matrices -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 24, 25])
@pytest.mark.parametrize("case", OF_MATRICES)
def test_small_matrices_have_the_interpreters_values_and_derivatives(case, n):
    f = OF_MATRICES[case]
    args = spread(n)
    p, operands = definition(f, *args)
    agree(p.program, p.name, *operands)
    derived = p.definition.derived("vjp")
    vectors = [np.cos(v) for v in p.run(*args).results]
    agree(derived.program, derived.name, *operands, *vectors, engines=[NATIVE])


@pytest.mark.parametrize("case", OF_MATRICES)
def test_matrices_that_have_no_solution_raise_what_the_interpreter_raises(case):
    f = OF_MATRICES[case]
    p, _ = definition(f, *spread(4))
    singular, odd = np.ones((4, 4)), spread(4)[0]
    odd[1, 2] = np.nan
    for a, b in ((singular, spread(4)[1]), (spread(4)[0], singular * 0), (odd, odd)):
        agree(p.program, p.name, *p.operands((a, b)), engines=[NATIVE])


def filtered(scale):
    a, x, covariance, total = np.eye(3, k=1) * 0.1 + np.eye(3), np.zeros(3), np.eye(3), 0.0
    for t in range(5):
        x, covariance = a @ x, a @ covariance @ a.T + scale * np.eye(3)
        s = covariance + np.eye(3)
        v = SEEN[t] - x
        gain = np.linalg.solve(s, covariance).T
        x, covariance = x + gain @ v, covariance - gain @ covariance
        total = total + v @ np.linalg.solve(s, v) + np.log(np.linalg.det(s))
    return total


SEEN = rng.normal(size=(5, 3))


def layered(w, b):
    z = np.tanh(M @ w + b)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - np.sum(z * np.eye(3, 5), axis=1))


@pytest.mark.parametrize(("f", "args"), [(filtered, (1.0,)), (layered, (N, np.ones(5)))],
                         ids=["filter", "network"])  # fmt: skip
def test_filters_and_networks_run_without_python(f, args):
    """What is asked of Python in a run is counted: nothing is."""
    for g in (f, lineara.grad(f), lineara.grad(lambda *a: np.sum(lineara.grad(f)(*a) ** 2))):
        p = lineara.jit(g).program(*args)
        assert NATIVE.takes(p.program, p.name) is None
        operands = p.operands(args)
        agree(p.program, p.name, *operands, engines=[NATIVE])
        kernel = NATIVE.kernel(p.program, p.name)
        asked = []
        for place, site in enumerate(kernel.code.sites):
            told = site._replace(answer=lambda v, s=site, a=asked: a.append(s) or s.answer(v))
            kernel.code.sites[place] = told
        kernel(operands)
        assert asked == []


TAKEN = {
    "numbers": (lambda x, i: x[i], V),
    "rows": (lambda x, i: x[i], M),
    "columns": (lambda x, i: x[:, i], M),
    "some columns": (lambda x, i: x[1:, i], M),
    "a middle axis": (lambda x, i: x[::-1, i, 1:3], T),
    "the last axis": (lambda x, i: x[..., i], T),
    "with a new axis": (lambda x, i: x[None, :, i], M),
    "two axes of positions": (lambda x, i: x[np.stack([i, -i - 1])], V),
    "one each": (lambda x, i: [x[k] * 2.0 for k in [i[0], i[1]]][1] * x[i], V),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_taken_at_positions_that_are_values(case):
    """Values, tangents and cotangents, where a position comes twice too; nothing is called back."""
    f, x = TAKEN[case]
    for i in (np.array([2, 0, 2]), np.array([-1, 1, 0])):
        p, operands = definition(f, x, i)
        assert NATIVE.takes(p.program, p.name) is None
        y = agree(p.program, p.name, *operands)
        for way in ("jvp", "vjp"):
            derived = p.definition.derived(way)
            vectors = [np.cos(operands[0])] if way == "jvp" else [np.sin(3 * np.asarray(y[0]))]
            agree(derived.program, derived.name, *operands, *vectors)
            run(derived.program, derived.name, *operands, *vectors, engine="native")
            kernel = NATIVE.kernel(derived.program, derived.name)
            assert [n for n, _ in kernel.asked if n] == []


def an_index(draw, shape):
    """An index of an array as text: slices, new axes, whole numbers, known positions and values."""
    parts, axis = [], 0
    while axis < len(shape):
        n, kind = shape[axis], draw.integers(8)
        if kind == 0:
            parts.append("None")
            continue
        if kind == 1 and "..." not in parts:
            axis += draw.integers(len(shape) - axis + 1)
            parts.append("...")
            continue
        known = draw.integers(-n, n, draw.integers(1, 3) * (2,)).tolist()
        values = [f"i % {n}", f"k - {n}", f"j[None] % {n}", f"-1 - j % {n}"]
        slices = ["1:", "::-1", f":{n - 1}", ":"]
        choices = [str(draw.integers(-n, n)), f"np.array({known})", *values, *slices]
        parts.append(str(draw.choice(choices)))
        axis += 1
    return ", ".join(parts) + ","


@pytest.mark.parametrize("seed", range(40))
def test_positions_on_several_axes_are_numpys(seed):
    """x[at] for a random `at`: value, tangent, cotangent, and what is written and added there."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=draw.integers(2, 5, draw.integers(1, 5)))
    i, j, k = draw.integers(0, 5, (2, 2)), draw.integers(0, 5, 2), int(draw.integers(0, 2))
    at = an_index(draw, x.shape)
    f = eval(f"lambda x, i, j, k: x[{at}]", {"np": np})
    try:
        want = f(x, i, j, k)
    except IndexError:  # shapes that do not broadcast
        at = "..., -1 - j % 2, "
        f = lambda x, i, j, k: x[..., -1 - j % 2]  # noqa: E731
        want = f(x, i, j, k)

    p, operands = definition(f, x, i, j, k)
    (y,) = agree(p.program, p.name, *operands)
    np.testing.assert_array_equal(y, want)
    derived = p.definition.derived("vjp")
    agree(derived.program, derived.name, *operands, np.sin(3 * np.asarray(y)))
    text = f"y = x * 1.0\n y[{at}] = np.sin(x)[{at}]\n y[{at}] += 2.0 * x[{at}]\n return y"
    space = {"np": np}
    exec(f"def f(x, i, j, k):\n {text}\n", space)
    p, operands = definition(space["f"], x, i, j, k)
    agree(p.program, p.name, *operands)
    kernels = [NATIVE.kernel(q.program, q.name) for q in (p, derived)]
    assert [
        s
        for kernel in kernels
        for s, (n, _) in zip(kernel.code.sites, kernel.asked, strict=True)
        if n
    ] == []


SOME = np.array([True, False, True])
OF_VIEWS = {
    "rows of a transpose": lambda x: x.T[np.array([2, 0])],
    "a part at positions": lambda x: x[::2, 1:][np.array([1, 0]), np.array([0, 1])],
    "some columns backwards": lambda x: x[:, ::-1][:, SOME],
    "some rows of a transpose": lambda x: x.T[SOME] * 2.0,
}


@pytest.mark.parametrize("case", OF_VIEWS)
def test_what_is_taken_of_a_view_at_known_positions_is_read_where_it_lies(case):
    f, x = OF_VIEWS[case], np.arange(12.0).reshape(4, 3)
    for g in (f, lineara.grad(lambda x: np.sum(f(x) ** 2))):
        p = lineara.trace(g, x)
        (y,) = agree(p.program, p.name, *p.operands((x,)), engines=[NATIVE])
        np.testing.assert_array_equal(y, g(x))
        assert not NATIVE.code(p.program, p.name).sites


@pytest.mark.parametrize("write", ["put", "accum"])
def test_what_is_written_at_positions_that_are_values(write):
    def f(x, i, v):
        y = x * 1.0
        if write == "put":
            y[i] = v
        else:
            y[i] += v
        return y

    for x, v in ((V, W), (M, T[0, :, :])):
        p, operands = definition(f, x, np.array([2, 0, -2]), v)
        agree(p.program, p.name, *operands)


def test_a_position_that_is_not_there_is_an_error_as_the_interpreters():
    f = lineara.jit(lambda x, i: np.sum(x[i] ** 2), engine="native")
    assert f(V, np.array([1, -4])) == V[1] ** 2 + V[0] ** 2
    for i in ([0, 4], [-5, 1]):
        said = []
        for engine in ("native", "interpreter"):
            g = lineara.jit(lambda x, i: x[i], engine=engine)
            with pytest.raises(IndexError) as told:
                g(V, np.array(i))
            said.append(str(told.value))
        assert said[0] == said[1]
        assert f"index {i[1] if i[1] == 4 else i[0]} is out of bounds for axis 0" in said[0]


PYTHONS = {
    "sin": lambda x: math.sin(x) * math.cos(x),
    "exp": lambda x: math.exp(x) + math.expm1(x),
    "erf": lambda x: math.erf(x) - math.erfc(x),
    "log": lambda x: math.log(x * x + 0.5) / math.sqrt(x * x + 1.0),
    "atan2": lambda x: math.atan2(x, 1.0 + x * x),
    "power": lambda x: (x * x + 1.0) ** 1.5 + x**3,
    "divided": lambda x: 1.0 / (x + 10.0) + x % 0.75,
}


@pytest.mark.parametrize("name", PYTHONS)
def test_functions_of_pythons_in_lanes_are_not_called_back(name):
    f, x = PYTHONS[name], rng.normal(size=37)
    for g in (f, lineara.grad(f), lineara.grad(lineara.grad(f))):
        p, operands = definition(lineara.vmap(g), x)
        (y,) = agree(p.program, p.name, *operands)
        if g is f:
            np.testing.assert_allclose(y, [f(float(v)) for v in x], rtol=1e-14)
        kernel = NATIVE.kernel(p.program, p.name)
        assert [
            s.what for s, (n, _) in zip(kernel.code.sites, kernel.asked, strict=True) if n
        ] == []


def test_gamma_functions_of_pythons_in_lanes_are_not_called_back():
    def f(x):
        return math.lgamma(x) * math.gamma(x + 0.2)

    fine, below = np.array([0.3, 2.0, 17.0, 31.4]), np.array([0.3, -1.5, 17.0, 31.4])
    for x, asked in ((fine, 0), (below, 2)):
        for g in (f, lineara.grad(f)):
            p, operands = definition(lineara.vmap(g), x)
            (y,) = agree(p.program, p.name, *operands)
            if g is f:
                np.testing.assert_array_equal(y, [f(float(v)) for v in x])
            answers = sum([n for n, _ in NATIVE.kernel(p.program, p.name).asked])
            assert answers == (asked if is_pythons("gamma") and is_pythons("lgamma") else 2)


def test_whole_numbers_of_pythons_in_lanes_are_not_called_back():
    def f(i, x):
        at = min(max(i - 1, 0), 3) * 2 // 2
        return x[at] + i % 3 + (i + 2) // 2

    i, x = np.array([0, 1, 4, 7, -5]), rng.normal(size=5)
    p, operands = definition(lineara.vmap(f, in_axes=(0, None)), i, x)
    (y,) = agree(p.program, p.name, *operands)
    np.testing.assert_array_equal(y, [f(int(k), x) for k in i])
    assert not [n for n, _ in NATIVE.kernel(p.program, p.name).asked if n]


def test_a_lane_in_which_python_raises_is_an_error_as_the_interpreters():
    f = lineara.vmap(lambda x: math.log(x) + math.exp(x))
    fine, wrong, large = np.array([1.0, 2.0]), np.array([1.0, -2.0]), np.array([1.0, np.inf])
    native, interpreted = [lineara.jit(f, engine=e) for e in ("native", "interpreter")]
    for x in (fine, large):
        np.testing.assert_array_equal(native(x), interpreted(x))
    said = []
    for g in (native, interpreted):
        with pytest.raises(ValueError, match=r"domain error|expected a positive input") as e:
            g(wrong)
        said.append(str(e.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("part", "copies"),
    [
        (np.s_[2:40], 0),
        (np.s_[7:8, 1:2], 0),
        (np.s_[7::99, 1::9], 0),  # one element, whatever the steps
        (np.s_[2:40, 1:3], 2),
    ],
)
def test_a_part_that_is_one_piece_of_memory_is_not_copied_for_a_loop(part, copies):
    x = rng.uniform(1.0, 2.0, (50, 4))
    p = lineara.jit(lambda x: np.hypot(x[part], x[part])).program(x)
    agree(p.program, p.name, *p.operands((x,)))
    code = NATIVE.code(p.program, p.name)
    assert len(code.places) - len(code.bound) == copies


def test_what_code_calls_is_found_by_its_name():
    """Kept code says which loop of NumPy's it calls, and with which data."""
    loop = symbols.numpy_loop(scipy.special.gammaln, ("f64",), "f64")
    named = functools.partial(symbols.named, loops={"numpy.gammaln": loop.of})
    assert (named("numpy.gammaln"), named("numpy.gammaln.data")) == (loop.address, loop.data)
    assert loop.data not in (0, loop.address)
    assert named("lapack.dpotrf") == symbols.lapack("dpotrf") != symbols.blas("dpotrf")
    assert named("numpy.erf") is named("other.dpotrf") is None


def test_an_operation_that_has_the_name_of_a_ufunc_and_is_none_is_itself(monkeypatch):
    """No primitive is so today; one that is declared may be, and must not run the ufunc's loop."""
    x = T[0, :2, :2]
    expected = scipy.linalg.expm(x)
    monkeypatch.setattr(np, "expm", np.negative, raising=False)
    found = lineara.jit(lambda a: scipy.linalg.expm(a) * 3.125, engine="native")(x)
    assert np.array_equal(found, expected * 3.125)

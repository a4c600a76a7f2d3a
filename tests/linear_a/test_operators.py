"""The contract of every operator: its type, its derivative, its transpose, its work, its erasure.

The lines are those of the table of primitives; each is a program here, arrays in an index included.
"""

import math
import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from special_lines import SPECIAL
from staged import captured, case, operator, results
from tables import Laws
from test_primitives import (
    AWAY_FROM_KINKS,
    ELEMENTWISE,
    TABLE,
    A,
    B,
    Line,
    T,
    U,
    as_tuple,
    as_vector,
    close,
    col,
    difference,
    holes,
    inner,
    mask,
    over,
    random_like,
    row,
    supports_complex,
    takes_complex,
    ties,
    x,
    z,
)

import lineara
from lineara.engines import Ask, Exact, run
from lineara.errors import ProgramError, ShapeError
from lineara.facts.primitive import Constant, HigherOrder, Linear, Multilinear, OfType, op, registry
from lineara.facts.types import type_of
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse, wide
from lineara.linear_a.program import scalars_of
from lineara.ops.index import Positions
from lineara.ops.python_numbers import Own
from lineara.ops.value_checks import CHECKED
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.transpose import transpose

laws = Laws()
SPECIAL_NAMES = {name for name, *_ in SPECIAL}
OUTSIDE = [line for line in TABLE if isinstance(line.primitive, OfType | Positions)]
LINES = [line for line in TABLE if line not in OUTSIDE]
SMOOTH = [line for line in LINES if not isinstance(line.primitive, Constant)]


@cache
def staged(line):
    """The case of a line, and its program with every derivative."""
    found = case(line)
    return found, check(vjp(found.program, "f"))


def test_every_primitive_is_under_contract():
    functions = {n for n, p in registry.primitives.items() if isinstance(p, HigherOrder)}
    functions |= {n for n, p in registry.primitives.items() if isinstance(p, Own)}
    missing = set(registry.primitives) - functions - {line.name for line in LINES}
    assert missing == {line.name for line in OUTSIDE}


@laws.of([line for line in OUTSIDE if isinstance(line.primitive, Positions)])
def what_has_no_fixed_shape_is_refused(line):
    with pytest.raises(ShapeError, match="depends on values"):
        case(line)


@laws.of([line for line in OUTSIDE if isinstance(line.primitive, OfType)])
def what_a_type_tells_is_no_operation(line):
    asked = []
    captured(lambda *args: asked.append(line.primitive(*args)) or args[0], line.args)
    assert asked == [line.primitive(*line.args)]
    text = f"def f(x: {type_of(line.args[0])};) -> (i64;) = {line.name}(x)"
    with pytest.raises(ProgramError, match="is known from the types"):
        check(parse(text))


@laws.of(LINES)
def the_type_rule_says_what_numpy_gives(line):
    found = case(line)
    (y,) = run(found.program, "f", *found.values).results
    assert found.program.defs["f"].results == (type_of(line(*line.point())),)
    assert type_of(y) == type_of(line(*line.point()))
    np.testing.assert_array_equal(y, line(*line.point()))


@laws.of([n for n in LINES if n.name != "report"])  # whose effect is an object of Python's
def programs_print_and_parse(line):
    _, program = staged(line)
    assert str(check(parse(str(program)))) == str(program)


@laws.of(SMOOTH)
def the_jvp_is_that_of_the_eager_engine(line):
    found, program = staged(line)
    x_dots = [random_like(p, i) for i, p in enumerate(found.point)]
    y, y_dot = both(run(program, "f.jvp", *found.values, *x_dots))
    np.testing.assert_array_equal(y, found.f(*found.point))
    _, L = lineara.linearize(found.f, *found.point)
    close(y_dot, L @ as_vector(tuple(x_dots)))
    assert type_of(y_dot) == type_of(y)


@laws.of([line for line in SMOOTH if line in AWAY_FROM_KINKS])
def the_jvp_is_the_derivative(line):
    found, program = staged(line)
    x_dots = [random_like(p, i) for i, p in enumerate(found.point)]
    _, y_dot = both(run(program, "f.jvp", *found.values, *x_dots))
    if takes_complex(line) and analytic(line):
        ahead = found.f(*[p + 1e-30j * d for p, d in zip(found.point, x_dots, strict=True)])
        close(y_dot, np.imag(ahead) / 1e-30, 1e-11)
    else:
        close(y_dot, difference(found.f, found.point, x_dots), 1e-6)


@laws.of(SMOOTH)
def the_transpose_has_the_same_inner_products_and_no_more_work(line):
    keeps_the_laws_of_transposes(*staged(line))


@laws.of(SMOOTH)
def the_gradient_is_that_of_the_eager_engine(line):
    gradient_is_eager(*staged(line))


@laws.of([line for line in SMOOTH if any(isinstance(a, np.ndarray) for a in line.args)])
def single_precision_stays_single(line):
    found = case(line.cast(np.float32))
    program = check(vjp(found.program, "f"))
    y = found.f(*found.point)
    c = random_like(y, 3).astype(np.asarray(y).dtype) if np.shape(y) else y.dtype.type(0.7)
    out = run(program, "f.vjp", *found.values, c)
    for p, x_bar in zip(found.point, out.lresults, strict=True):
        assert type_of(x_bar) == type_of(p)
    _, wide = staged(line)
    x_bars = results(wide, "f.vjp", *staged(line)[0].values, as_wide(c))
    for a, b in zip(out.lresults, x_bars, strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-4, atol=3e-4)


@laws.of([line for line in ELEMENTWISE if supports_complex(line.name)])  # the ufuncs, too
@laws.of(SMOOTH, where=takes_complex)
def complex_programs_keep_the_laws(line):
    found = case(line.complex())
    program = check(vjp(found.program, "f"))
    x_dots = [random_like(p, i) for i, p in enumerate(found.point)]
    y, y_dot = both(run(program, "f.jvp", *found.values, *x_dots))
    _, L = lineara.linearize(found.f, *found.point)
    close(y_dot, L @ as_vector(tuple(x_dots)), 1e-11)
    assert type_of(y_dot) == type_of(y)
    keeps_the_laws_of_transposes(found, program)
    gradient_is_eager(found, program)


def both(outcome):
    """The value and its tangent."""
    (y,) = outcome.results
    return y, *outcome.lresults


def analytic(line):
    """Whether complex-step is an oracle: the function of complex numbers is holomorphic."""
    parts = ("abs", "conj", "real", "imag", "keep", "where", "copysign", "power", "logabsdet")
    adjoints = (
        "cholesky",
        "linear_cholesky",
        "tangent_of_cholesky",
        "qr",
        "eigvalsh",
        "svdvals",
        "pinv",
        "lstsq",
        "detphase",
        "unitary_factor",
        "care",
        "dare",
    )
    # sin and tan of a matrix are made of exp(iA) and exp(-iA), whose tiny parts are lost
    complex_anyway = ("eigvals", "eig_vectors", "fft", "rfft", "irfft")
    complex_anyway += tuple(
        f"{p}{f}m" for p in ("", "linear_", "tangent_of_") for f in ("sin", "tan")
    )
    by_schur = ("sylvester", "sqrtm", "logm", "cosm")  # which mixes the two parts in rounding
    special = SPECIAL_NAMES  # SciPy's complex functions are not made for such steps
    named = (*parts, *adjoints, *complex_anyway, *special, "roots")
    rounded = any(line.name.endswith(name) for name in by_schur)
    return line.name not in named and not rounded and "adjoint" not in line.params


def as_wide(c):
    return c.astype(np.result_type(c.dtype, float)) if np.shape(c) else c.item()


def gradient_is_eager(found, program, within=1e-11):
    """f.vjp gives what the eager engine gives."""
    y = found.f(*found.point)
    c = random_like(y, 9)
    _, L = lineara.linearize(found.f, *found.point)
    got = run(program, "f.vjp", *found.values, c).lresults
    for p, a, b in zip(found.point, got, as_tuple(c @ L), strict=True):
        close(a, b, within)
        assert type_of(a) == type_of(p)


def keeps_the_laws_of_transposes(found, program, within=1e-10):
    """<lin(a), c> = <a, lin.t(c)>; T(T(e)) is e; W(T e) - in(T e) <= W(e) - in(e)."""
    d = program.defs["f.jvp.lin"]
    program = check(transpose(program, "f.jvp.lin.t"))
    *_, tape = run(program, "f.jvp.nl", *found.values).results
    a = [random_like(p, i) for i, p in enumerate(found.point)]
    (c,) = [random_like(found.f(*found.point), 5)]
    ahead = run(program, "f.jvp.lin", tape, *a)
    back = run(program, "f.jvp.lin.t", tape, c)
    again = run(program, "f.jvp.lin.t.t", tape, *a)
    same_inner_product((tuple(a), back.lresults), (ahead.lresults, (c,)), within)
    close(again.lresults[0], ahead.lresults[0], within)
    scalars = [sum(map(scalars_of, ts)) for ts in (d.lresults, [x.type for x in d.lxs])]
    assert back.work - scalars[0] <= ahead.work - scalars[1]
    assert again.work <= ahead.work


# --- linear operators by themselves, on random shapes ------------------------------------------

rng = np.random.default_rng(13)


def dims(n, low=1, high=5):
    return tuple(int(d) for d in rng.integers(low, high, size=n))


def array(dtype, *shape):
    real = rng.normal(size=shape)
    found = real + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else real
    return np.asarray(found).astype(dtype)[()]


def reshape(dtype):
    m, n = dims(2)
    return [array(dtype, m, n)], [0], {"shape": (n, m)}


def permute_dims(dtype):
    return [array(dtype, *dims(3))], [0], {"axes": tuple(map(int, rng.permutation(3)))}


def broadcast_to(dtype):
    m, n = dims(2, 0)
    inner = (m, n) if rng.integers(2) else (1, n)
    return [array(dtype, *inner)], [0], {"shape": (int(rng.integers(0, 3)), m, n)}


def astype(dtype):
    to = {"d": np.complex128, "f": np.float64, "D": np.float64}[np.dtype(dtype).char]
    return [array(dtype, *dims(2))], [0], {"dtype": np.dtype(to)}


def concat(dtype):
    m, n = dims(2)
    return [array(dtype, m, k, n) for k in dims(3, 0)], [0, 1, 2], {"axis": 1}


def stack(dtype):
    shape = dims(2)
    return [array(dtype, *shape) for _ in range(3)], [0, 1, 2], {}


def indices(m, n):
    """One index of each form into an (m, n) array."""
    every = [
        (int(rng.integers(m)),),
        (slice(None, None, -1), int(rng.integers(n))),
        (slice(1, None),),
        (..., None, slice(0, n, 2)),
        (rng.integers(0, m, size=4),),
        (rng.integers(-m, m, size=(2, 3)), rng.integers(0, n, size=3)),
        (slice(None), rng.integers(0, n, size=2)),
        (np.array(int(rng.integers(m))), np.array(int(rng.integers(n)))),
        (rng.random((m, n)) < 0.5,),
        (),
    ]
    return every[rng.integers(len(every))]


def index(dtype):
    m, n = dims(2, 2)
    return [array(dtype, m, n)], [0], {"at": indices(m, n)}


def scatter(dtype):
    m, n = dims(2, 2)
    at = indices(m, n)
    return [array(dtype, *np.empty((m, n))[at].shape)], [0], {"at": at, "shape": (m, n)}


def where(dtype):
    m, n = dims(2)
    c = rng.random([(m, n), (n,), (m, 1)][rng.integers(3)]) < 0.5
    a, b = array(dtype, m, n), array(dtype, *[(m, n), (n,), ()][rng.integers(3)])
    return [c, a, b], [1, 2], {}


def keep(dtype):
    m, n = dims(2)
    x = array(dtype, *[(m, n), (m, 1), ()][rng.integers(3)])
    return [x, rng.random((m, n)) < 0.5], [0], {}


def alone(dtype):
    return [array(dtype, *dims(2))], [0], {}


def of_parts(dtype):
    m, n = dims(2)
    part = np.zeros(0, dtype).real.dtype
    other = array(part, *[(m, n), (n,), (m, 1), ()][rng.integers(4)])
    parts = [array(part, m, n), other]
    return parts[:: rng.choice([-1, 1])], [0, 1], {}


def checkpoint_name(dtype):
    return [array(dtype, *dims(2))], [0], {"name": "a"}


def sum_(dtype):
    axis = [(), (0,), (1, 2), (0, 1, 2)][rng.integers(4)]
    return [array(dtype, *dims(3, 0))], [0], {"axis": axis, "keepdims": bool(rng.integers(2))}


def cumsum(dtype):
    params = {"axis": int(rng.integers(2)), "reverse": bool(rng.integers(2))}
    return [array(dtype, *dims(2, 0))], [0], params


def recurrence(dtype):
    m, n = dims(2)
    params = {"axis": int(rng.integers(2)), "reverse": bool(rng.integers(2))}
    between = (m - 1, n) if params["axis"] == 0 else (m, n - 1)
    return [array(dtype, *between), array(dtype, m, n)], [1], params


def linear_solve(dtype):
    n, k = dims(2)
    a, b = [((n, n), (n, k)), ((2, n, n), (n, k)), ((n, n), (2, n, k))][rng.integers(3)]
    return [array(dtype, *a) + 3 * np.eye(n, dtype=dtype), array(dtype, *b)], [1], {}


def linear_triangular(dtype):
    args, linear, _ = linear_solve(dtype)
    return args, linear, {"lower": bool(rng.integers(2)), "adjoint": bool(rng.integers(2))}


def linear_cholesky(dtype):
    n = dims(1)[0]
    lead = [(), (2,)][rng.integers(2)]
    low = array(dtype, *lead, n, n) * 0.1 + 2 * np.eye(n, dtype=dtype)
    return [low, array(dtype, *lead, n, n)], [1], {"adjoint": bool(rng.integers(2))}


def tangent_of_function(dtype):
    n = dims(1)[0]
    near_one = array(dtype, n, n) * 0.1 + 2 * np.eye(n, dtype=dtype)
    return [near_one, array(dtype, n, n)], [1], {}


def linear_sylvester(dtype):
    n, k = dims(2)
    a, b = (array(dtype, m, m) * 0.3 + 2 * np.eye(m, dtype=dtype) for m in (n, k))
    return [a, b, array(dtype, n, k)], [2], {"adjoint": bool(rng.integers(2))}


def linear_banded(dtype):
    n, k = 4, dims(1)[0]
    ab = array(dtype, 3, n) + np.array([[0], [4], [0]], dtype)
    return [ab, array(dtype, n, k)], [1], {"below": 1, "adjoint": bool(rng.integers(2))}


ROWS, COLS = np.array([0, 1, 2, 0, 2]), np.array([0, 1, 2, 2, 1])


def sparse_product(dtype):
    args = [array(dtype, 5), ROWS, COLS, array(dtype, 3, *dims(1))]
    return args, [int(rng.choice([0, 3]))], {"size": 4}


def products_at(dtype):
    k = dims(1)[0]
    return [array(dtype, 3, k), array(dtype, 3, k), ROWS, COLS], [int(rng.integers(2))], {}


def linear_sparse_solve(dtype):
    data = array(dtype, 5) + np.array([4, 4, 4, 0, 0], dtype)
    args = [data, ROWS, COLS, array(dtype, 3, *dims(1))]
    return args, [3], {"adjoint": bool(rng.integers(2))}


def fft(dtype):
    axes = [(0,), (1,), (0, 1)][rng.integers(3)]
    norm = ("backward", "ortho", "forward")[rng.integers(3)]
    params = {"axes": axes, "inverse": bool(rng.integers(2)), "norm": norm}
    return [array(dtype, *dims(2))], [0], params


def rfft(dtype):
    real = np.zeros(0, dtype).real.dtype
    return [array(real, *dims(2))], [0], {"axis": 1, "norm": "ortho", "weighted": True}


def irfft(dtype):
    m, n = dims(2)
    params = {"n": n, "axis": 1, "norm": "backward", "weighted": bool(rng.integers(2))}
    return [array(np.result_type(dtype, np.complex64), m, n // 2 + 1)], [0], params


def waves(dtype):
    axis, kind = int(rng.integers(2)), int(rng.integers(1, 5))
    params = {"kind": kind, "sine": bool(rng.integers(2)), "axis": axis}
    return [array(dtype, *(n + 1 for n in dims(2)))], [0], params


def matmul(dtype):
    m, k, n = dims(3)
    shapes = [
        ((m, k), (k, n)), ((k,), (k, n)), ((m, k), (k,)), ((k,), (k,)),
        ((2, m, k), (k, n)), ((m, k), (2, k, n)), ((2, m, k), (2, k, n)), ((2, m, k), (k,)),
    ]  # fmt: skip
    a, b = shapes[rng.integers(len(shapes))]
    other = array(np.float64 if rng.integers(2) else dtype, *b)
    return [array(dtype, *a), other], [int(rng.integers(2))], {}


def einsum(dtype):
    texts = ["ij,jk->ik", "ij->j", "ii->i", "ii->", "iij->j", "ij,ij->", "i,j->ij", "ij,jk,k->i"]
    text = texts[rng.integers(len(texts))]
    size = dict(zip("ijk", dims(3), strict=True))
    letters = text.split("->")[0].split(",")
    args = [array(dtype, *(size[c] for c in s)) for s in letters]
    return args, [int(rng.integers(len(args)))], {"subscripts": text}


def convolve(dtype):
    n, m = dims(2)
    return [array(dtype, n), array(dtype, m)], [int(rng.integers(2))], {}


def correlate(dtype):
    m, more = dims(2)
    return [array(dtype, m + more), array(dtype, m)], [int(rng.integers(2))], {}


def convolve_all(dtype):
    n, m = dims(2)
    return [array(dtype, 2, n), array(dtype, 1, m)], [int(rng.integers(2))], {}


def correlate_inside(dtype):
    m, more = dims(2)
    return [array(dtype, 2, m + more), array(dtype, 1, m)], [int(rng.integers(2))], {}


def linear_recursion(dtype):
    m, n = dims(2)
    a = 0.1 * array(dtype, m) + np.eye(m, dtype=dtype)[0]
    return [a, array(dtype, 2, n)], [1], {"adjoint": bool(rng.integers(2))}


def multiply(dtype):
    shape = dims(2)
    k = array(dtype, *(shape if rng.integers(2) else ()))
    return [k, array(dtype, *shape)], [1], {}


def add(dtype):
    shape = dims(2, 0)
    return [array(dtype, *shape), array(dtype, *shape)], [0, 1], {}


OPERATORS = {f.__name__.rstrip("_"): f for f in (
    reshape, permute_dims, broadcast_to, astype, concat, stack, index, scatter, where, keep, sum_,
    cumsum, checkpoint_name, linear_solve, linear_triangular, linear_cholesky, fft, rfft, irfft,
    waves, matmul, einsum, convolve, correlate, multiply, add, linear_sylvester, linear_banded,
    sparse_product, products_at, linear_sparse_solve, convolve_all, correlate_inside,
    linear_recursion, of_parts, recurrence,
)} | dict.fromkeys((f"linear_{f}" for f in (
    "expm", "logm", "sqrtm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm",
)), tangent_of_function) | dict.fromkeys(("conj", "real", "imag"), alone) | {
    "live_factor": where,
}  # fmt: skip
MORE = ("einsum", "matmul", "where", "live_factor")  # they may cost more than their transposes


def test_every_linear_operator_is_drawn():
    linear = [n for n, p in registry.primitives.items() if isinstance(p, Linear | Multilinear)]
    drawn = set(OPERATORS) - {"add", "multiply"}
    checks = {f"check_{kind.__name__}" for kind in CHECKED}  # whose transposes read no flags
    assert set(linear) == drawn | checks | {"gauge"}  # which refuses vectors: test_linalg.py


@pytest.mark.parametrize("dtype", ["f64", "f32", "c128"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_linear_operator_keeps_its_contract(name, dtype):
    for _ in range(12):
        args, linear, params = OPERATORS[name](wide(dtype))
        keeps_contract(name, *operator(op(name), args, linear, params))


def same_inner_product(ins, outs, within):
    """<a, L'c> and <La, c> are equal, to what the sizes of L, a and c allow: either may cancel."""
    sizes = [math.prod(math.sqrt(inner(v, v)) for v in pair) for pair in (ins, outs)]
    assert abs(inner(*ins) - inner(*outs)) <= within * (10 + max(sizes))


def keeps_contract(name, program, values):
    """Type, inner product, T(T(op)) = op, work, erasure."""
    d = program.defs["op"]
    k = len(d.xs)
    program = erase(transpose(transpose(program, "op"), "op.t"), "op")
    check(program)
    ahead = run(program, "op", *values)
    assert type_of(ahead.lresults[0]) == d.lresults[0]
    c = random_like(ahead.lresults[0], 4)
    c = np.asarray(c).astype(d.lresults[0].dtype)[()]
    back = run(program, "op.t", *values[:k], c)
    again = run(program, "op.t.t", *values)
    erased = run(program, "op.e", *values)
    single = any(t.dtype.itemsize == 4 for t in (*d.lresults, *[x.type for x in d.lxs]))
    within = 1e-4 if single else 1e-11
    same_inner_product((tuple(values[k:]), back.lresults), (ahead.lresults, (c,)), within)
    close(again.lresults[0], ahead.lresults[0], within)
    close(erased.results[0], ahead.lresults[0], within)
    ins, outs = sum(scalars_of(x.type) for x in d.lxs), scalars_of(d.lresults[0])
    assert back.work - outs <= ahead.work - ins, str(program)
    assert again.work <= ahead.work
    assert name in MORE or back.work - outs == ahead.work - ins == again.work - ins, str(program)
    assert erased.work == (outs if name == "index" else ahead.work)


# --- several dtypes in one operation -----------------------------------------------------------

single, double = x.astype(np.float32), z
mixed, whole = z * (1 + 0.5j) - 0.3j, np.array([2, 0, 1])
square = rng.normal(size=(3, 3)) + 3 * np.eye(3)
MIXED = [
    ("add", single, double),
    ("add", single, mixed),
    ("subtract", double, mixed),
    ("multiply", single, double),
    ("multiply", double, mixed),
    ("multiply", mixed, 2.0),
    ("multiply", whole, mixed),
    ("divide", mixed, double),
    ("divide", double, mixed),
    ("power", single, whole),
    ("power", mixed, 2),
    ("hypot", single, double),
    ("maximum", single, double),
    ("where", mask, single, double),
    ("where", mask, mixed, double),
    ("where", mask, whole, double),
    ("concat", single, double, {"axis": 0}),
    ("concat", whole, single, mixed, {"axis": 0}),
    ("stack", double, whole),
    ("stack", mixed, double),
    ("matmul", square, mixed),
    ("matmul", single, square),
    ("matmul", mixed, double),
    ("einsum", square, mixed, single, {"subscripts": "ij,j,i->i"}),
    ("linear_solve", square, mixed.reshape(3, 1)),
    ("solve", square, mixed.reshape(3, 1)),
    ("solve", square.astype(np.float32), double.reshape(3, 1)),
    ("astype", single, {"dtype": np.dtype(complex)}),
    ("astype", mixed, {"dtype": np.dtype(np.float32)}),
]


@laws.of([Line(*line) for line in MIXED])
def each_argument_sees_a_cotangent_of_its_own_dtype(line):
    found = case(line)
    program = check(vjp(found.program, "f"))
    types = [type_of(v) for v in (*found.point, found.f(*found.point))]
    within = 1e-5 if any(t.dtype == np.float32 for t in types) else 1e-11
    x_dots = [random_like(p, i) for i, p in enumerate(found.point)]
    y, y_dot = both(run(program, "f.jvp", *found.values, *x_dots))
    _, L = lineara.linearize(found.f, *found.point)
    assert type_of(y) == type_of(y_dot) == type_of(found.f(*found.point))
    close(y_dot, L @ as_vector(tuple(x_dots)), within)
    keeps_the_laws_of_transposes(found, program, within)
    gradient_is_eager(found, program, within)


# --- exact numbers -----------------------------------------------------------------------------

EXACT = [
    ("add", x, z), ("add", col, row), ("subtract", 3.0, A), ("multiply", row, T[:, :, :3]),
    ("divide", z, x), ("divide", 1.0, z), ("negative", z), ("square", z),
    ("reciprocal", z), ("abs", z), ("maximum", z, x), ("where", mask, x, z), ("keep", x, mask),
    ("sum", T, over(1)), ("cumsum", T, {"axis": 1}), ("prod", holes, over(1)),
    ("cumprod", holes, {"axis": 1}),
    ("max", ties, over(1)), ("matmul", A, B), ("matmul", T, U), ("matmul", x, z),
    ("einsum", A, B, {"subscripts": "ij,jk->ki"}), ("index", A, {"at": np.array([2, 0, 2])}),
    ("scatter", x, {"at": np.array([2, 0, 2]), "shape": (4,)}), ("concat", A, A[:1], {"axis": 0}),
    ("stack", x, z), ("reshape", A, {"shape": (2, 6)}), ("permute_dims", T, {"axes": (2, 0, 1)}),
    ("broadcast_to", col, {"shape": (4, 2, 3)}),
]  # fmt: skip


def fractions(like, seed):
    """Small fractions in the shape of an array."""
    draw = random.Random(seed)
    found = np.empty(np.shape(like), object)
    found.ravel()[:] = [Fraction(draw.randint(1, 9), draw.choice((3, 7, 10))) for _ in found.flat]
    return found if found.shape else found[()]


@laws.of([Line(*line) for line in EXACT])
def forward_and_reverse_agree_to_the_last_fraction(line):
    found = case(line)
    program = check(vjp(found.program, "f"))
    program = erase(program, "f.vjp")
    point = [fractions(p, i) for i, p in enumerate(found.point)]
    x_dots = [fractions(p, 50 + i) for i, p in enumerate(point)]
    y, y_dot = both(run(program, "f.jvp", *found.filled(point), *x_dots, ask=Ask(values=Exact())))
    c = fractions(y, 99)
    back = run(program, "f.vjp", *found.filled(point), c, ask=Ask(values=Exact()))
    ahead = np.sum(y_dot * c)
    assert isinstance(ahead, Fraction)
    assert ahead == sum(np.sum(g * d) for g, d in zip(back.lresults, x_dots, strict=True))
    erased = run(program, "f.vjp.e", *found.filled(point), c, ask=Ask(values=Exact()))
    for a, b in zip(erased.results, (*back.results, *back.lresults), strict=True):
        np.testing.assert_array_equal(a, b)


test_every_law = laws.test()

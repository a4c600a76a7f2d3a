"""Machine code gives what the interpreter gives: every bit, every exception, at the same line."""

import concurrent.futures
import itertools
import math
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import lineara
from lineara.engines import ENGINES, run
from lineara.engines.native import Native
from lineara.engines.native.lower import lowered
from lineara.engines.native.machine_code import MISSING
from lineara.engines.native.scalars import RULES
from lineara.errors import ProgramError
from lineara.facts.primitive import Constant, Elementwise
from lineara.facts.registry import op, registry
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.ops.python_numbers import Own

pytest.importorskip("llvmlite")

NATIVE, EXACT = [next(e for e in ENGINES if e.name == s) for s in ("native", "native exact")]
TYPES = {"f": ArrayType((), np.dtype(float)), "i": ArrayType((), np.dtype(np.int64))}
TYPES["b"] = ArrayType((), np.dtype(bool))
HARD = {
    "f": [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 700.0, 1e308, 5e-324, math.inf, -math.inf, math.nan],
    "i": [0, 1, -1, 3, -7, 63, 2**53 + 1, 2**63 - 1, -(2**63)],
    "b": [False, True],
}


def outcome(program, name, values, engine):
    """The results, or the exception that a run ends with."""
    try:
        return run(program, name, *values, engine=engine).results
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", [])


def bits(value):
    """What two values have in common if no bit is another; any NaN is as good as another one."""
    if isinstance(value, tuple | list):
        return [bits(v) for v in value]
    if not isinstance(value, np.ndarray | np.generic | float | int):
        return value
    a = np.array(value)
    if a.dtype.kind in "fc":
        a[a != a] = np.nan
    return a.shape, a.dtype.str, a.tobytes()


def agree(program, name, *values, engines=(EXACT, NATIVE)):
    """Exact, a definition has the interpreter's outcome to the bit; else up to rounding."""
    with np.errstate(all="ignore"):
        expected = outcome(program, name, values, "interpreter")
        for engine in engines:
            if engine.takes(program, name) is None:
                given = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
                ours = outcome(program, name, given, engine)
                same = bits(ours) == bits(expected) if engine is EXACT else close(ours, expected)
                assert same, (name, values, ours, expected)
                assert all([bits(a) == bits(b) for a, b in zip(given, values, strict=True)])
    return expected


def close(a, b):
    """Whether values are equal up to rounding, infinite and NaN in the same places."""
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(close, a, b))
    if not isinstance(a, np.ndarray | np.generic | float | int):
        return bits(a) == bits(b)
    a, b = np.asarray(a), np.asarray(b)
    if (a.shape, a.dtype) != (b.shape, b.dtype) or a.dtype.kind not in "fc":
        return bits(a) == bits(b)
    finite = np.isfinite(a) & np.isfinite(b)
    size = 1 + np.max(np.abs(b[finite]), initial=0)
    within = 1e-10 if a.dtype.itemsize // (1 + (a.dtype.kind == "c")) == 8 else 1e-4
    near = np.all(np.abs(a[finite] - b[finite]) <= within * size)
    return bool(near) and bits(a[~finite]) == bits(b[~finite])


def taken(program, name):
    return EXACT.takes(program, name) is None


# --- primitives -----------------------------------------------------------------------------------

PAIRS = [kinds for n in (1, 2) for kinds in itertools.product("fib", repeat=n)]
OF_NUMBERS = sorted(
    name
    for name, p in registry.primitives.items()
    if isinstance(p, Elementwise | Constant)
    and (name in RULES or isinstance(p, Own) or isinstance(getattr(np, name, None), np.ufunc))
    and not name.startswith("cmath")
)
ENDLESS = {"python_power", "python_left_shift", "left_shift", "math_ldexp"}  # of large integers


def alone(name, kinds):
    """The program of one primitive on numbers of these kinds, if there is one."""
    args = tuple([ir.Var(f"x{i}", TYPES[k]) for i, k in enumerate(kinds)])
    try:
        with np.errstate(all="ignore"):
            t = op(name).result(*[a.type for a in args])
    except Exception:
        return None  # no such primitive of so many arguments, or not of these kinds
    if not isinstance(t, ArrayType) or t.shape or t.dtype.kind not in "fib":
        return None
    body = ir.Block((), ir.Prim(args, op(name)))
    program = Program({}, {"f": ir.Def("f", args, (t,), (), body)})
    try:
        return check(program)
    except ProgramError:  # of another number of arguments
        return None


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_primitive_of_numbers_has_the_interpreters_bits_and_exceptions(name, request):
    pairs = [k for k in PAIRS if request.config.option.all or set(k) == {"f"} or k == ("i", "i")]
    for kinds in pairs:
        program = alone(name, kinds)
        if program is None or not taken(program, "f") or (name in ENDLESS and "i" in kinds):
            continue
        for values in itertools.product(*[HARD[k] for k in kinds]):
            given = [TYPES[k].dtype.type(v) for k, v in zip(kinds, values, strict=True)]
            agree(program, "f", *given, engines=[EXACT])


@pytest.mark.parametrize("dtype", ["c16", "f4", "c8"])
def test_a_number_that_no_register_holds_lives_as_long_as_the_run(dtype):
    def f(x):
        total = 0.0
        for _ in range(5):
            total = total + 2 * x
        return total

    x = np.dtype(dtype).type(2.5)
    p = lineara.jit(f).program(x)
    assert taken(p.program, p.name)
    agree(p.program, p.name, x)


@pytest.mark.parametrize("dtype", ["f8", "i8", "c16", "f4"])
def test_numbers_in_the_other_byte_order_are_no_numbers_of_registers(dtype):
    t = np.dtype(dtype).newbyteorder()
    for f in (
        lambda x: np.full(6, x, t),
        lambda x: np.full(3, x, t) * 2 + np.ones(3, t),
        lambda x: np.full(3, x, t).sum() + x,
    ):
        p = lineara.jit(f).program(2.5)
        assert taken(p.program, p.name)
        agree(p.program, p.name, np.float64(2.5))


def test_functions_of_numbers_are_called_back_only_where_python_may_raise():
    code = {name: NATIVE.code(alone(name, "f"), "f") for name in ("exp", "sin", "sqrt", "floor")}
    code |= {name: NATIVE.code(alone(name, "ff"), "f") for name in ("power", "maximum", "atan2")}
    assert all([c.sites == [] for c in code.values()])


LINES = {
    "x * x": lambda x: x * x,
    "np.exp(x) / (1 + x)": lambda x: np.exp(x) / (1 + x),
    "np.sin(x) ** 2": lambda x: np.sin(x) ** 2,
    "np.maximum(x, 0.5)": lambda x: np.maximum(x, 0.5),
    "np.where(x > 0.5, x, -x)": lambda x: np.where(x > 0.5, x, -x),
    "abs(x) + np.sqrt(x)": lambda x: abs(x) + np.sqrt(x),
    "np.hypot(x, 1)": lambda x: np.hypot(x, 1),
    "np.arctan2(x, 2)": lambda x: np.arctan2(x, 2),
    "x % 0.3": lambda x: x % 0.3,
    "np.cumsum(x)": lambda x: np.cumsum(x + np.zeros(5)),
    "np.sort(x)": lambda x: np.sort(x + np.ones(5)),
    "x[1:] - x[:-1]": lambda x: (x + np.zeros(5))[1:] - (x + np.ones(5))[:-1],
    "x @ x": lambda x: (x + np.ones(5)) @ (x + np.zeros(5)),
    "np.outer": lambda x: np.outer(x + np.ones(5), x + np.zeros(5)),
    "np.sum": lambda x: np.sum(x + np.arange(5.0)),
    "np.mean, axis": lambda x: np.mean(np.outer(x + np.ones(5), np.arange(3.0)), axis=0),
    "x[::-1]": lambda x: (x + np.ones(5))[::-1] * np.arange(5.0),
    "np.linalg.solve": lambda x: np.linalg.solve(np.eye(5) * 2 + x, x + np.ones(5)),
    "matrix.T": lambda x: (np.outer(x + np.ones(5), np.arange(3.0)).T * 2.0).sum(),
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    "x", [0.75, np.array([0.3, 0.9, 0.51, 0.11, 0.7])], ids=["number", "array"]
)
def test_values_tangents_and_cotangents_have_the_interpreters_bits(line, x):
    f = LINES[line]
    p = lineara.trace(f, x)
    operands = p.operands((x,))
    (y,) = agree(p.program, p.name, *operands) if taken(p.program, p.name) else p.run(x).results
    for way, vector in (("jvp", x), ("vjp", y)):
        program, name, *_ = p.definition.derived(way)
        if taken(program, name):
            agree(program, name, *operands, np.asarray(np.cos(vector))[()])


# --- loops, branches, tapes -----------------------------------------------------------------------


def filled(x):
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def stepped(x):
    a, b = x[0], x[1]
    for _ in range(50):
        a, b = a + 0.01 * b, b + 0.01 * ((1 - a * a) * b - a)
    return a * b


def nested(x):
    total = 0.0
    for i in range(5):
        for j in range(5):
            total = total * 0.5 + np.sin(x[i]) * x[j] + i * j
    return total


def rooted(x):
    total = 0.0
    for i in range(5):
        y = x[i] * x[i] + 1.0
        while abs(y * y - x[i] * x[i] - 1.0) > 1e-9:
            y = 0.5 * (y + (x[i] * x[i] + 1.0) / y)
        total = total + y
    return total


def branched(x):
    total = x[0] * 0.0
    for i in range(5):
        if x[i] > 0.4:
            total = total + np.exp(x[i])
        elif x[i] > 0.2:
            total = total * x[i]
        else:
            for j in range(3):
                total = total - x[j] * x[i]
    return total


def swapped(x):
    a, b = np.zeros(5), x * 1.0
    for i in range(5):
        a, b = b, a
        a[i] = a[i] + b[i - 1] * x[i]
    return (a * b).sum() + a[2]


def recorded(x):
    state = {"position": x[0], "speed": (x[1], x * 2.0)}
    for i in range(4):
        speed, rest = state["speed"]
        rest[i] = speed
        state = {"position": state["position"] + speed, "speed": (speed * 0.5 + rest[0], rest)}
    return state["position"] + state["speed"][1].sum()


def searched(x):
    for i in range(5):
        if x[i] > 0.6:
            return x[i] * 2.0
    return x[0]


def rows(x):
    m = np.zeros((5, 5))
    for i in range(5):
        m[i] = x * x[i]
    total = 0.0
    for i in range(5):
        m[i, i] = m[i, i] + total
        total = total + m[i, -1]
    return total


FUNCTIONS = [filled, stepped, nested, rooted, branched, swapped, recorded, searched, rows]
X = np.array([0.3, 0.9, 0.51, 0.11, 0.7])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_loops_and_their_derivatives_have_the_interpreters_bits(f, order):
    g = f
    for _ in range(order):
        g = (lambda h: lineara.grad(lambda x: np.sum(h(x) * np.array(1.0))))(g)
    p = lineara.jit(g).program(X)
    if order < 2:
        assert NATIVE.takes(p.program, p.name) is None
    if taken(p.program, p.name):
        for x in (
            X,
            -X,
            X[::-1].copy(),
            np.array([1.0, np.inf, 0.0, -0.0, np.nan])[[0, 2, 3, 2, 0]],
        ):
            agree(p.program, p.name, x)


@pytest.mark.parametrize("f", [filled, stepped])
def test_loops_of_numbers_and_elements_call_nothing_back(f):
    for g in (f, lineara.grad(f)):
        p = lineara.jit(g).program(X)
        code = NATIVE.code(p.program, p.name)
        assert code.sites == []


def test_a_tape_has_no_constants_no_indices_and_nothing_that_is_read_again():
    """Of each round of the fill the gradient stores y[i - 1]; x[i] is in the argument."""
    x = np.linspace(-0.5, 0.5, 2000)
    p = lineara.jit(lineara.grad(filled)).program(x)
    code = NATIVE.code(p.program, p.name)
    taped = [place for place in code.places if place is not None]
    assert len(taped) == 1 + 2  # y and the gradient
    assert code.workspace < 16_000 * 2 + 2_100


def test_a_loop_within_a_while_loop_keeps_a_tape_for_each_round():
    def f(x):
        y, k = x * 1.0, 0.0
        while k < 3.0:
            for _ in range(4):
                y = y + np.sin(y) * x
            k = k + 1.0
        return y

    p = lineara.jit(lineara.grad(f)).program(0.3)
    assert NATIVE.takes(p.program, p.name) is None
    for x in (0.3, -0.2, 0.0):
        agree(p.program, p.name, x)


def sorted_and_summed(x):
    total = 0.0
    for k in range(3):
        w = x * (1.0 + k)
        for i in range(1, 5):
            t, j = w[i], i - 1
            while j >= 0 and w[j] > t:
                w[j + 1] = w[j]
                j -= 1
            w[j + 1] = t
            for m in range(3):
                total = total + w[m] * x[i] * np.sin(w[j + 1])
    return total


def thrice(x):
    total = x[0]
    for i in range(3):
        for j in range(4):
            for k in range(5):
                total = np.sin(total) * x[k] + x[i] * x[j]
    return total


@pytest.mark.parametrize("f", [sorted_and_summed, thrice])
def test_tapes_of_loops_within_loops_keep_the_rows_of_all_rounds(f):
    p = lineara.jit(lineara.grad(f)).program(X)
    assert NATIVE.takes(p.program, p.name) is None
    for x in (X, -X, X[::-1].copy()):
        agree(p.program, p.name, x)


def test_long_tapes_grow():
    def f(x):
        y, k = x * 1.0, 0.0
        while k < 1000.0:
            y = y - 0.001 * np.sin(y)
            k = k + 1.0
        return y

    p = lineara.jit(lineara.grad(f)).program(0.3)
    agree(p.program, p.name, 0.3)


# --- dead lanes -----------------------------------------------------------------------------------


def rooted_where(x):
    total = 0.0
    for i in range(5):
        total = total + np.where(x[i] > 0, np.sqrt(x[i]), 0.0) * x[0]
    return total


def rooted_lanes(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0) * x)


def stepped_by_gradients(x):
    slope = lineara.grad(rooted_where)(x)
    return np.where(slope[1] > 1.0, slope[0], x[2] * slope[2])


DEAD = [rooted_where, rooted_lanes, stepped_by_gradients]


@pytest.mark.parametrize("f", DEAD, ids=lambda f: f.__name__)
def test_a_factor_that_is_not_finite_has_masks_looked_at(f):
    """sqrt has an infinite derivative at 0, in a lane that `where` has not taken."""
    p = lineara.jit(lineara.grad(f)).program(X)
    assert NATIVE.takes(p.program, p.name) is None
    agree(p.program, p.name, X)
    assert NATIVE.trusts(p.program, p.name)
    for x in (
        np.array([0.3, 0.0, 0.2, 0.0, 0.1]),
        np.zeros(5),
        X,
        np.array([np.inf, 1, 0, 2, np.nan]),
    ):
        agree(p.program, p.name, x)
    assert not NATIVE.trusts(p.program, p.name)


def test_masks_that_nothing_reads_are_not_calculated():
    """Of the text of a gradient no line of machine code has a boolean, but for the doubt."""
    for f in (filled, stepped):
        p = lineara.jit(lineara.grad(f)).program(X)
        lines = lowered(p.program, *NATIVE.key(p.program, p.name)).text.splitlines()
        assert not any(["load i8" in line or "store i8" in line for line in lines])
        assert any(["%doubt" in line for line in lines])


def test_what_nobody_reads_is_run_where_it_may_raise():
    program = parse("""
    def f(x: f64[3], m: bool[3], i: i64;) -> (f64;) =
      let y: f64 = index[at=(i,)](x) in
      let live: bool = index[at=(i,)](m) in
      1.0
    def g(x: f64[3], i: i64;) -> (f64;) =
      let b: bool[3] = less(x, x) in
      let r: f64 = f(x, b, i;) in
      let y: f64 = index[at=(0,)](x) in
      y * y
    """)
    for name, values in (("f", (X[:3], X[:3] > 0.5)), ("g", (X[:3],))):
        agree(program, name, *values, np.int64(1))
        kind, *_ = agree(program, name, *values, np.int64(7))
        assert issubclass(kind, Exception)


# --- exceptions -----------------------------------------------------------------------------------


def beyond(x, n):
    total = 0.0
    for i in range(3):
        total = total + x[i + n]
    return total


def divided(x, n):
    return x[0] * (1 // (n - n))


def asserted(x, n):
    for i in range(3):
        if x[i] < 0.5:
            raise ValueError("too small")
    return x[0]


def logged(x, n):
    return math.log(x[0] - 0.5)


def exploded(x, n):
    return math.exp(x[0] * 10_000)


def grown(x, n):
    while x[0] < 1.0:
        n = n * 4_000_000_000
        x = x + 1e-30 * n
    return n


@pytest.mark.parametrize("f", [beyond, divided, asserted, logged, exploded, grown])
def test_an_exception_is_the_interpreters_with_its_line(f):
    p = lineara.jit(f).program(X, 3)
    values = [X, np.int64(3)] if len(p.definition.text.params) == 2 else [X]
    assert NATIVE.takes(p.program, p.name) is None
    kind, text, notes = agree(p.program, p.name, *values)
    assert issubclass(kind, Exception)
    assert f"in {f.__name__}" in " ".join([text, *notes]) or f is beyond


def test_a_check_goes_on_where_it_only_warns():
    program = parse("""
    def f(x: f64, p: bool;) -> (f64;) =
      let y: f64 = check_RuntimeWarning[text='odd'](x, p) in y * y
    """)
    with pytest.warns(RuntimeWarning, match="odd"):
        assert run(program, "f", 3.0, True, engine="native").results == (9.0,)
    assert run(program, "f", 3.0, False, engine="native").results == (9.0,)


LONG_LOOPS = """
import signal
import sys

import numpy as np

import lineara

ONES = np.ones(300_000)


def a_while_loop(x):
    while x < 1.0:
        x = x * 0.5
    return x


def a_counted_loop(x):
    for _ in range(10**11):
        x = x * 0.5 + 1.0
    return x


def loops_in_a_loop(x):
    for _ in range(10**6):
        for _ in range(10**6):
            x = x * 0.5 + 1.0
    return x


def counted_loops_in_a_while_loop(x):
    while x > 0.0:
        for _ in range(10**6):
            x = x * 0.5 + 1.0
    return x


def while_loops_in_a_counted_loop(x):
    for i in range(10**10):
        y = x
        while y < 10.0:
            y = y + 1.0
        x = x * 0.5 + y * 1e-3
    return x


def a_region_of_rows(x):
    return np.sum(np.outer(x * ONES, ONES) * 2.0)


def its_derivative(x):
    return lineara.grad(a_region_of_rows)(x)


def a_fold_of_each_row(x):
    return np.max(np.sin(x * ONES[:, None] * ONES), axis=1)


def a_fold_of_each_column(x):
    return np.sum(np.sin(x * ONES[:, None] * ONES), axis=0)


def rows_of_pairs(x):
    y = x * np.ones((100_000, 3))
    return np.sum(np.sqrt(np.sum((y[:, None] - y) ** 2, axis=2)))


class Late(Exception):
    pass


def late(*_):
    raise Late("half a second")


f = lineara.jit(globals()[sys.argv[1]], engine="native")
f.program(0.5).direct  # it is compiled
signal.signal(signal.SIGALRM, late if sys.argv[2:] else signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    f(0.5)
except KeyboardInterrupt:
    print("interrupted")
except Late as error:
    print(error, error.__traceback__.tb_next is not None)
"""
LOOPS = [name.partition("(")[0] for name in LONG_LOOPS.split("class ")[0].split("def ")[1:]]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_long_loop_is_interrupted(loop, tmp_path):
    script = tmp_path / "loops.py"
    script.write_text(LONG_LOOPS)
    for options, said in ([], "interrupted\n"), (["late"], "half a second True\n"):
        command = [sys.executable, script, loop, *options]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (ran.stdout, ran.stderr) == (said, "")


def test_a_loop_that_ends_soon_asks_nobody():
    p = lineara.jit(filled, engine="native").program(np.ones(10**4))
    code = NATIVE.code(p.program, p.name)
    assert not [site for site in code.sites if "interrupts" in site.what]


@pytest.mark.parametrize("letters", ["i,j,k->", "i,j,k->k", "i,j,k->ij", "i,j,k->ijk"])
def test_sums_of_many_products_look_whether_python_interrupts(letters):
    for n, looks in (300, True), (30, False):
        t = f"f64[{','.join([str(n)] * len(letters[7:]))}]".replace("[]", "")
        p = parse(
            f"def f(x: f64[{n}];) -> ({t};) = "
            f"let y: {t} = einsum[subscripts='{letters}'](x, x, x) in y"
        )
        assert ("PyErr_CheckSignals" in lowered(p, "f", exact=False).text) is looks


# --- arguments and results ------------------------------------------------------------------------

VIEWS = parse(
    """
def g(m: f64[2,3], y: f64;) -> (f64[2,3];) = m * y
def f(x: f64[4], y: f64[4];) -> (f64[4], f64[4], f64[4];) =
  let z: f64[4] = x * y in
  let w: f64[4] = put[1](x, y0;) in (z, w, x;)
""".replace("let w: f64[4] = put[1](x, y0;)", "let w: f64[4] = x + y")
)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.arange(8.0)[::2], np.arange(4.0)[::-1]),
        (np.arange(5.0)[:4], np.arange(5.0)[1:]),
        (np.arange(4.0).astype(">f8"), np.arange(4.0)),
        (np.arange(4.0).view(type("Mine", (np.ndarray,), {})), np.arange(4)),
        (np.broadcast_to(1.5, 4), np.frombuffer(np.arange(4.0).tobytes())),
    ],
    ids=["strides", "one after the other", "big-endian, plain", "subclass, integers", "read-only"],
)
def test_arguments_of_all_kinds_are_read_and_not_written(x, y):
    agree(VIEWS, "f", x, y)


def test_arguments_may_share_memory_and_results_do_not():
    base = np.arange(5.0)
    x, y = base[:4], base[1:]
    for values in ((x, y), (x, x)):
        z, w, copied = run(VIEWS, "f", *values, engine="native").results
        assert np.array_equal(z, values[0] * values[1])
        assert np.array_equal(base, np.arange(5.0))
        for a, b in itertools.combinations((z, w, copied, base), 2):
            assert not np.shares_memory(a, b)
        z[:] = w[:] = copied[:] = 7.0
        assert np.array_equal(base, np.arange(5.0))


def test_carries_that_begin_as_one_array_have_memory_of_their_own():
    program = parse("""
    def next(a: f64[5], b: f64[5], s: f64;) -> (f64[5], f64[5], f64;) =
      let c = a + b in
      let d = sin(b) in
      let t = s + 1.0 in
      (c, d, t;)
    def f(x: f64[5];) -> (f64[5], f64[5], f64;) =
      let y = exp(x) in
      scan[next, 3, fwd, 0, 3, 0](y, y, 0.5;)
    """)
    agree(program, "f", np.linspace(0.0, 0.1, 5))


def test_a_matrix_in_fortran_order_is_the_interpreters():
    m = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    agree(VIEWS, "g", m, 2.0)


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((4, 1)), np.zeros(4, complex), "four"])
def test_an_argument_of_another_type_is_the_same_error(value):
    kind, text, _ = agree(VIEWS, "f", value, np.zeros(4))
    assert kind is ProgramError
    assert "f takes f64[4] as x" in text


def test_complex_steps_go_to_the_interpreter():
    x = np.arange(4.0) + 1e-30j
    z, *_ = run(VIEWS, "f", x, x, engine="native", checked=False).results
    assert z.dtype == complex


def test_threads_run_one_kernel_at_a_time_each_on_values_of_its_own():
    f = lineara.jit(lineara.grad(branched), engine="native")
    points = [X + k / 100 for k in range(40)]
    f(X)
    alone = [f(x) for x in points]
    start = threading.Barrier(4)

    def work(k):
        start.wait()
        return [f.program(x).run(x).results[0] for x in points[k::4]]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(4)))
    for k, rows_of in enumerate(together):
        assert all([np.array_equal(a, b) for a, b in zip(rows_of, alone[k::4], strict=True)])


# --- what is not taken ----------------------------------------------------------------------------

REFUSED = {
    "linear": (
        "def f(x: f64; ~a: f64) -> (; f64) = x * ~a",
        "f is not lowered: it has linear variables, whose zeros have no numbers; erase it",
    ),
    "sizes": (
        "def f(n: i64, x: f64[n];) -> (f64;) = sum[axis=(0,), keepdims=false](x)",
        "f is not lowered: it has an array of the type f64[n], whose size is a value",
    ),
    "sums": (
        "def f(x: [f64 | <>];) -> ([f64 | <>];) = x",
        "f is not lowered: a value of the type [f64 | <>] goes in or out",
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_taken_says_why(text):
    program = parse(REFUSED[text][0])
    name = next(iter(program.defs))
    assert NATIVE.takes(program, name) == REFUSED[text][1]


def test_jit_with_an_engine_that_does_not_take_the_program_is_an_error():
    f = lineara.jit(lambda x: x * x, engine="native")
    with pytest.raises(ProgramError, match=r"values of the type c256.*; leave engine= out"):
        f(np.ones(3, np.clongdouble))


def test_without_llvmlite_it_says_so(monkeypatch):
    monkeypatch.setattr("lineara.engines.native.compiler", lambda: None)
    assert Native().takes(VIEWS, "f") == MISSING


def test_whole_numbers_are_divided_without_a_call_back_unless_they_are_large():
    program = lineara.jit(lambda k, n: k / n).program(1, 3)
    for k, n in itertools.product([0, 1, -7, 2**53, 2**53 + 1, -(2**63)], [3, -5, 2**53 + 1, 0]):
        agree(program.program, program.name, np.int64(k), np.int64(n))
    kernel = NATIVE.kernel(program.program, program.name)
    before = sum([times for times, _ in kernel.asked])
    run(program.program, program.name, np.int64(1), np.int64(3), engine="native")
    assert sum([times for times, _ in kernel.asked]) == before


def test_a_text_without_loops_is_not_made_faster_than_it_is():
    from lineara.engines.native.machine_code import level_of

    def level(f, *args):
        p = lineara.jit(lineara.grad(f)).program(*args)
        return level_of(NATIVE.code(p.program, p.name).text, 1)

    assert level(lambda x: np.sin(x) * x if x > 0.5 else x, 2.0) == 0  # a branch is no loop
    assert level(lambda x: (np.exp(x) * x).sum(), np.ones(3)) == 2
    looping = "define i32 @run() {\nstart:\n  br label %start\n}\n"
    assert [level_of(looping, n) for n in (2_000, 10_000, 10_001)] == [2, 1, 0]


def test_llvm_checks_each_module():
    from lineara.engines.native.machine_code import compiler

    with pytest.raises(RuntimeError, match="LLVM"):
        compiler().module("define i32 @run() {\n  ret i64 1\n}\n", 1)


def test_what_acts_and_may_have_to_be_run_again_is_called_back(capsys):
    def f(x):
        print("once")
        return np.linalg.inv(np.diag(x))[0, 1]

    g = lineara.jit(f, engine="native exact")
    assert g(X + 1) == f(X + 1)
    assert capsys.readouterr().out == "once\nonce\n"
    (told,) = [line for line in lineara.explain(g, X).machine_code if ", since " in line]
    assert told.partition(", since ")[2].startswith(
        "it prints, warns or the like, and NumPy may lay a f64[5,5] out otherwise, so that the "
        "run would be done again: once"
    )


def test_a_number_of_a_branch_meets_the_other_one_behind_a_copy_that_is_a_loop():
    """Rows and columns exchanged are copied element by element where the branches meet."""
    program = check(
        parse(
            """
def turned(x: f64[3,4], s: f64;) -> (f64[4,3], f64;) =
  let y = permute_dims[axes=(1,0)](x) in let t = s * s in (y, t;)
def none(x: f64[3,4], s: f64;) -> (f64[4,3], f64;) =
  let (;) = drop(x) in let y = zeros[f64[4,3]] in let t = s + s in (y, t;)
def f(p: bool, x: f64[3,4], s: f64;) -> (f64[4,3], f64;) = cond[turned, none](p, x, s;)
"""
        )
    )
    x = np.arange(12.0).reshape(3, 4)
    for p in (True, False):
        assert bits(run(program, "f", p, x, 3.0, engine=NATIVE).results) == bits(
            run(program, "f", p, x, 3.0).results
        )

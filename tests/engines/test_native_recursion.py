"""Definitions that call themselves are functions of machine code, and so are their derivatives."""

import concurrent.futures
import math
import os
import re
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from test_native import EXACT, NATIVE
from test_native_memory import allocated  # noqa: F401

import lineara
from lineara.engines import Machine, run
from lineara.engines.native import functions
from lineara.engines.native.lower import lowered
from lineara.errors import BoundsError
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).parent.parent / "capture"))
try:
    from test_recursion import FUNCTIONS, POINTS
finally:
    sys.path.pop(0)

INTERPRETER = "interpreter"


def bits(value):
    """What two values have in common if no bit is another; any NaN is as good as another one."""
    if isinstance(value, tuple):
        return [*map(bits, value)]
    a = np.array(value)
    if a.dtype.kind in "fc":
        a[a != a] = np.nan
    return type(value), a.shape, a.dtype, a.tobytes()


def slope(f, *args):
    """The derivative by its own rules: another recursion."""
    return lineara.jvp(f, args, (1.0, *[0.0 * a for a in args[1:]]))[1]


WAYS = {
    "value": lambda f: f,
    "tangent": lambda f: lambda *args: slope(f, *args),
    "gradient": lineara.grad,
    "second": lambda f: lineara.grad(lineara.grad(f)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_recursions_of_python_have_the_interpreters_bits(f, way):
    g = WAYS[way](f)
    ours, theirs = [lineara.jit(g, engine=engine) for engine in ("native exact", INTERPRETER)]
    for x in POINTS:
        assert bits(ours(x)) == bits(theirs(x))
    told = lineara.explain(ours, POINTS[0]).machine_code
    assert not [line for line in told if "since" in line or "interpreted:" in line]


# --- values of every kind -------------------------------------------------------------------------

LIST = """
type list = [<> | <f64, list>]
type none = <>

def empty(x: f64, n: i64;) -> (list;) =
  let (;) = drop((x, n;)) in
  let u: none = <> in
  let l: list = inj[0, list](u) in
  (l;)

def cons(x: f64, n: i64;) -> (list;) =
  let one = 1_i64 in
  let m = n - one in
  let y = sin(x) in
  let (rest: list;) = made(y, m;) in
  let pair: <f64, list> = <x, rest> in
  let l: list = inj[1, list](pair) in
  (l;)

def made(x: f64, n: i64;) -> (list;) =
  let none = 0_i64 in
  let p = equal(n, none) in
  cond[empty, cons](p, x, n;)

def nothing(u: <>, s: f64;) -> (f64;) = let <> = u in (s;)

def more(pair: <f64, list>, s: f64;) -> (f64;) =
  let <x: f64, rest: list> = pair in
  let half = 0.5 in
  let t = s * half in
  let v = t + x in
  total(rest, v;)

def total(l: list, s: f64;) -> (f64;) = case l of nothing | more with (s;)

def f(x: f64, n: i64;) -> (f64, f64;) =
  let (l: list;) = made(x, n;) in
  let a = total(l, x;) in
  let b = total(l, a;) in
  (a, b;)
"""


def test_a_list_is_made_and_read_twice():
    program = parse(LIST)
    for n in (0, 1, 7, 1000):
        expected = run(program, "f", 0.75, n, engine=INTERPRETER).results
        assert run(program, "f", 0.75, n, engine=EXACT).results == expected
        assert run(program, "f", 0.75, n, engine=NATIVE).results == expected
    assert NATIVE.sites(program, "f") <= 1  # which asks whether Python interrupts


SUM = """
type either = [f64[3] | f64[2000]]

def first(s: either, x: f64, n: i64;) -> (either;) =
  let (;) = drop((x, n;)) in
  (s;)

def other(s: either, x: f64, n: i64;) -> (either;) =
  let one = 1_i64 in
  let m = n - one in
  let two = 2_i64 in
  let p = less(n, two) in
  let t = cond[kept, made](p, s, x;) in
  chosen(t, x, m;)

def kept(s: either, x: f64;) -> (either;) = let (;) = drop(x) in (s;)

def made(s: either, x: f64;) -> (either;) =
  let (;) = drop(s) in
  let a = broadcast_to[shape=(2000,)](x) in
  let t: either = inj[1, either](a) in
  (t;)

def chosen(s: either, x: f64, n: i64;) -> (either;) =
  let none = 0_i64 in
  let p = equal(n, none) in
  cond[first, other](p, s, x, n;)

def small(a: f64[3];) -> (f64;) = sum[axis=(0,), keepdims=false](a)

def large(a: f64[2000];) -> (f64;) = sum[axis=(0,), keepdims=false](a)

def f(x: f64, n: i64;) -> (f64;) =
  let a = broadcast_to[shape=(3,)](x) in
  let s: either = inj[0, either](a) in
  let t = chosen(s, x, n;) in
  case t of small | large with (;)
"""


def test_what_a_value_is_not_is_not_looked_at():
    program = parse(SUM)
    for n in (0, 1, 2, 5):
        (expected,) = run(program, "f", 0.75, n, engine=INTERPRETER).results
        for engine in (EXACT, NATIVE):
            (got,) = run(program, "f", 0.75, n, engine=engine).results
            assert got == pytest.approx(expected, rel=1e-14)


DEEP = """
type either = [f64 | f64[3]]
type rows = <f64, stack[f64]>
type pair = <f64, f64[2]>

def of_sum(x: f64, n: i64;) -> (f64, f64;) = let s: either = zeros[either] in sum_down(s, x, n;)

def sum_down(s: either, x: f64, n: i64;) -> (f64, f64;) =
  let none = 0_i64 in
  let p = equal(n, none) in
  cond[sum_ends, sum_less](p, s, x, n;)

def sum_ends(s: either, x: f64, n: i64;) -> (f64, f64;) =
  let (;) = drop(n) in
  let a: f64[3] = proj[1](s) in
  let b: f64 = proj[0](s) in
  let c = sum[axis=(0,), keepdims=false](a) in
  let d = b + x in
  (d, c;)

def sum_less(s: either, x: f64, n: i64;) -> (f64, f64;) =
  let one = 1_i64 in
  let m = n - one in
  let y = sin(x) in
  sum_down(s, y, m;)

def of_zero(x: f64, n: i64;) -> (f64, f64;) =
  let s: either = zeros[either] in
  let a: f64[3] = proj[1](s) in
  let b = sum[axis=(0,), keepdims=false](a) in
  let c = times(x, n;) in
  (b, c;)

def times(x: f64, n: i64;) -> (f64;) = x * n

def of_stack(p: pair, n: i64;) -> (pair;) =
  let <x: f64, a: f64[2]> = p in
  let s: rows = zeros[rows] in
  let y = stack_down(s, x, n;) in
  let q: pair = <y, a> in
  (q;)

def stack_down(s: rows, x: f64, n: i64;) -> (f64;) =
  let none = 0_i64 in
  let p = equal(n, none) in
  cond[stack_ends, stack_less](p, s, x, n;)

def stack_ends(s: rows, x: f64, n: i64;) -> (f64;) =
  let (;) = drop(n) in
  let <a: f64, b: stack[f64]> = s in
  let (;) = drop(b) in
  a + x

def stack_less(s: rows, x: f64, n: i64;) -> (f64;) =
  let one = 1_i64 in
  let m = n - one in
  let y = sin(x) in
  stack_down(s, y, m;)

def as_it_is(p: pair, n: i64;) -> (pair;) = let (;) = drop(n) in (p;)

def f(x: f64, n: i64;) -> (f64, f64[2];) =
  let b = broadcast_to[shape=(2,)](x) in
  let c = sin(b) in
  let p: pair = <x, c> in
  let least = 0.5 in
  let t = greater(x, least) in
  let q = cond[of_stack, as_it_is](t, p, n;) in
  let <y: f64, d: f64[2]> = q in
  let e = d * y in
  (y, e;)
"""


@pytest.mark.parametrize("engine", [EXACT, NATIVE], ids=["exact", "native"])
def test_zeros_go_down_and_what_is_no_function_is_called_back(engine):
    program = parse(DEEP)
    for n in (0, 1, 3):
        for name in ("of_sum", "of_zero", "f"):
            expected = run(program, name, 0.75, n, engine=INTERPRETER).results
            assert bits(run(program, name, 0.75, n, engine=engine).results) == bits(expected)
    (site,) = engine.code(program, "f").sites
    assert site.what.startswith("of_stack(f64, f64[2], i64), since a recursion keeps a stack")
    assert engine.sites(program, "f") > 10  # leaves of the text that it is


KEPT_ZERO = """
type none = <>
type either = [f64[3] | none]

def ends(z: either, x: f64[3], n: i64;) -> (f64[3];) = let (;) = drop((z, n;)) in (x;)

def less(z: either, x: f64[3], n: i64;) -> (f64[3];) =
  let y = x + x in
  let m = n - 1_i64 in
  let (w: f64[3], z2: either;) = down(z, y, m;) in
  let (;) = drop(z2) in
  (w;)

def down(z: either, x: f64[3], n: i64;) -> (f64[3], either;) =
  let p = equal(n, 0_i64) in
  let y: f64[3] = cond[ends, less](p, z, x, n;) in
  (y, z;)

def f(x: f64[3], n: i64;) -> (f64[3], f64[3];) =
  let z: either = zeros[either] in
  let (y: f64[3], z2: either;) = down(z, x, n;) in
  let (w: f64[3], z3: either;) = down(z, y, n;) in
  let a: f64[3] = proj[0](z2) in
  let b: f64[3] = proj[0](z3) in
  let c = a + b in
  (w, c;)
"""


def test_results_do_not_lie_where_zeros_go_down():
    program, values = parse(KEPT_ZERO), (np.arange(3.0), 2)
    expected = run(program, "f", *values, engine=INTERPRETER).results
    for engine in (EXACT, NATIVE):
        assert bits(run(program, "f", *values, engine=engine).results) == bits(expected)


def of_arrays(x, a, n):
    if n == 0:
        return np.sin(a) * x
    b = np.outer(a, a)[1] * 0.3 + of_arrays(x, a * 0.5, n - 1)
    c = of_arrays(x * 0.9, b, n // 3)
    return b + c[::-1]


@pytest.mark.parametrize("size", [3, 1000])
def test_arrays_go_in_and_out(size):
    a = np.linspace(0.1, 1.0, size)

    def total(x, a, n):
        return of_arrays(x, a, n).sum()

    for g in (of_arrays, lineara.grad(total), lineara.grad(total, 1)):
        ours, theirs = [lineara.jit(g, engine=engine) for engine in ("native", INTERPRETER)]
        for n in (0, 1, 5):
            assert np.allclose(ours(0.7, a, n), theirs(0.7, a, n), rtol=1e-13, atol=1e-300)


def arrays(x, k, n):
    if n < 1:
        return x[0]
    y = np.sin(x)
    return arrays(y * 0.5, k, n - 1) * (y[k] + y[::-1][1])


def flags(x, k, n):
    if n < 1:
        return x[0]
    y = x > 0.5
    return flags(np.where(y, x * x, 0.7), k, n - 1) * x[1]


def turned(x, k, n):
    if n < 1:
        return x[0]
    y = x[k]
    for _ in range(k):
        y = np.where(y > 0.5, y * 0.7, y * y + 0.1)
    return turned(x * y, k, n - 1) * y


def twice(x, k, n):
    if n < 1:
        return x[0]
    y = x[k]
    for i in range(k):
        while y < 1.0 + i:
            y = y * y + 0.3
        y = y * 0.5
    return twice(x * y * 0.1, k, n - 1) * y


def in_triangles(x, k, n):
    if n < 1:
        return x[0]
    u, y = x * 0.5, x[k]
    for i in range(1, 6):
        for j in range(i):
            y = np.sin(y) * u[j] + 0.2
        u[i] = y
    return in_triangles(x * y, k, n - 1) * y + u[5]


RECURSIONS = [arrays, flags, turned, twice, in_triangles]


@pytest.mark.parametrize("f", RECURSIONS, ids=lambda f: f.__name__)
def test_nodes_keep_arrays_and_stacks(f):
    """How deep it goes is a value, so the gradient calls itself."""
    ours, theirs = [lineara.jit(lineara.grad(f), engine=e) for e in ("native exact", INTERPRETER)]
    x = np.linspace(0.1, 1.0, 19)
    for k in (0, 1, 4):
        assert bits(ours(x, k, 3.0)) == bits(theirs(x, k, 3.0))


def of_kinds(z, w, flag, k):
    if k == 0:
        return (w if flag else w * 2), z
    a, b = of_kinds(z * z * 0.5, w + np.float32(k), not flag, k - 1)
    return a * np.float32(0.5), b + z


def test_numbers_of_each_kind_go_in_and_out():
    for engine in ("native exact", "native"):
        ours, theirs = [lineara.jit(of_kinds, engine=e) for e in (engine, INTERPRETER)]
        for k in range(5):
            for flag in (np.bool_(True), np.bool_(False)):
                args = 0.3 + 0.4j, np.float32(1.7), flag, k
                assert bits(ours(*args)) == bits(theirs(*args))


# --- how deep -------------------------------------------------------------------------------------


def falling(x):
    if x < 1:
        return x
    return math.sin(x) * falling(x - 1) + 1


def endless(x):
    return endless(x) if x > 0 else x


@pytest.mark.parametrize("f", [falling, lineara.grad(falling)], ids=["value", "gradient"])
def test_a_deep_recursion_has_the_interpreters_value(f):
    ours, theirs = [lineara.jit(f, engine=engine) for engine in ("native exact", INTERPRETER)]
    assert ours(4_000.0) == theirs(4_000.0)


def endless_twice(x):
    return endless_twice(x) * endless_twice(x * 0.5) if x > 0 else x


@pytest.fixture
def entered(monkeypatch):
    """The definitions that the interpreter has entered."""
    names, body = [], Machine.body

    def noted(machine, name, values):
        names.append(name)
        return body(machine, name, values)

    monkeypatch.setattr(Machine, "body", noted)
    return names


@pytest.mark.parametrize("way", ["value", "gradient", "tangent", "second"])
@pytest.mark.parametrize("f", [endless, endless_twice], ids=lambda f: f.__name__)
def test_an_endless_recursion_ends_in_machine_code(f, way, entered, allocated):  # noqa: F811
    """LLVM could make a loop of it; the interpreter would enter 100,000 definitions."""
    jitted = lineara.jit(WAYS[way](f), engine="native")
    line = f.__code__.co_firstlineno + 1
    for _ in range(2):  # the second call goes another way
        with pytest.raises(RecursionError) as caught:
            jitted(2.0)
        said = str(caught.value)
        assert said.startswith("maximum recursion depth exceeded in a program\n  at "), said
        assert f"test_native_recursion.py:{line}: return {f.__name__}(x)" in said
        assert said.count("\n") == 1
    assert not entered
    assert not allocated.sizes


def in_a_thread(f, stack):
    """What f gives in a thread with a stack of so many bytes."""
    before = threading.stack_size(stack)
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(f).result()
    finally:
        threading.stack_size(before)


@pytest.mark.parametrize("f", [falling, lineara.grad(falling)], ids=["value", "gradient"])
def test_what_python_would_hold_has_a_value_where_machine_code_stops(f, entered):
    """Python goes as deep as it is told."""
    jitted = lineara.jit(f, engine="native")
    before = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        in_a_thread(lambda: jitted(12_000.0), 2**20)
    assert not entered
    sys.setrecursionlimit(20_000)
    try:
        got = in_a_thread(lambda: jitted(12_000.0), 2**20)
    finally:
        sys.setrecursionlimit(before)
    assert len(entered) > 12_000
    assert got == lineara.jit(f, engine=INTERPRETER)(12_000.0)


def test_a_thread_goes_as_deep_as_its_stack(entered):
    f = lineara.grad(falling)
    jitted = lineara.jit(f, engine="native")
    got = in_a_thread(lambda: jitted(20_000.0), 2**25)
    assert not entered
    assert got == lineara.jit(f, engine=INTERPRETER)(20_000.0)


@pytest.mark.parametrize("f", [falling, lineara.grad(falling)], ids=["value", "gradient"])
def test_a_direct_call_does_not_overrun_the_small_stack_of_a_thread(f):
    jitted = lineara.jit(f, engine="native")
    expected = [jitted(3.0), jitted(900.5)]
    for stack in (2**17, 2**18, 2**19):
        got = in_a_thread(lambda: [jitted(3.0), jitted(900.5)], stack)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_threads_run_recursions_at_one_time():
    jitted = lineara.jit(lineara.grad(falling), engine="native")
    points = [50.5 + i for i in range(200)]
    alone = [*map(jitted, points)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert [*pool.map(jitted, points)] == alone


# --- how runs end ---------------------------------------------------------------------------------


def beyond(x, a):
    if x < 1:
        return a[int(x * 0) + 7]
    return beyond(x - 1, a) * x


@pytest.mark.parametrize("way", ["value", "gradient"])
def test_an_error_inside_is_the_interpreters(way):
    raised = []
    for engine in ("native", INTERPRETER):
        jitted = lineara.jit(WAYS[way](beyond), engine=engine)
        with pytest.raises(BoundsError) as caught:
            jitted(5.0, np.ones(3))
        raised.append(str(caught.value))
    assert raised[0] == raised[1]


def two(n, x):
    return math.sin(x) if n < 1 else two(n - 1, x * 0.9) + two(n - 2, x * 1.1)


WEIGHTS = np.array([0.5, -1.5, 2.5])


def of_less(x, n, spare):
    return x if n < 1 else of_less(x * WEIGHTS[n % 3], n - 1, x / 3.0) + 1.0


def test_a_recursion_reads_constants_and_gets_what_it_needs():
    """What it never looks at is none of the function's, and is not calculated."""
    f = lineara.jit(lambda x, n: of_less(x, n, x), engine="native")
    assert f(0.7, 7) == of_less(0.7, 7, 0.0)
    p = f.program(0.7, 7)
    text = lowered(p.program, p.name).text
    (head,) = re.findall(r"^define internal .* @of\d+\((.*)\)", text, re.MULTILINE)
    assert re.findall(r"\w+ %a\d", head) == ["double %a0", "i64 %a1"]
    assert "fdiv" not in text


def test_which_definitions_call_themselves_is_found_in_one_pass():
    """Each of these calls the next one twice, so there are more ways than can be gone."""
    text = "def f60(x: f64;) -> (f64;) = x * x\n"
    for i in range(60):
        text += f"def f{i}(x: f64;) -> (f64;) = let y: f64 = f{i + 1}(x;) in f{i + 1}(y;)\n"
    assert not functions.those_that_call_themselves(parse(text), "f0")


def test_what_a_recursion_has_done_is_counted():
    """Where it is much, Python is asked whether it interrupts, and counting begins again."""
    f = lineara.jit(lambda x, n: of_less(x, n, x), engine="native")
    p = f.program(0.7, 7)
    text = lowered(p.program, p.name).text
    counts = re.findall(
        r"(%\w+) = getelementptr inbounds i64, ptr %ran, i64 1\n(?:.*\n)+?.* = icmp ugt i64 .*\n"
        r"  (%\w+) = select i1 .*, i64 0, i64 .*\n  store i64 (%\w+), ptr (%\w+)\n",
        text,
    )
    assert counts
    assert all([place == at and new == kept for place, new, kept, at in counts])


def test_a_recursion_is_interrupted():
    jitted = lineara.jit(lambda n, x: two(n, x), engine="native")
    jitted(3, 0.5)  # a whole number of Python is an input: the code calls itself
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # some shells ignore it
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jitted(90, 0.5)
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert jitted(3, 0.5) == two(3, 0.5)


def spoken(x):
    if x < 1 or (x < 50 and x > 49):
        print("at", x)
    return x if x < 1 else spoken(x - 1) * 2


def test_what_prints_on_its_way_prints_once(capsys):
    said = []
    for engine in ("native", INTERPRETER):
        jitted = lineara.jit(lineara.grad(spoken), engine=engine)
        assert jitted(3.5) == 8.0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    with pytest.raises(RecursionError):
        lineara.jit(spoken, engine="native")(1e6)


# --- memory ---------------------------------------------------------------------------------------


def test_nodes_of_a_round_are_taken_back(allocated):  # noqa: F811
    def descent(x, n):
        for _ in range(n):
            x = x - 0.01 * lineara.grad(falling)(x)
        return x

    jitted = lineara.jit(descent, engine="native")
    jitted(9.5, 1000)
    calls, allocated.peak = allocated.malloc, 0
    jitted(9.5, 1000)
    assert allocated.malloc - calls < 5
    assert not allocated.sizes
    assert allocated.peak < 2**18


def test_memory_is_given_back_where_a_run_fails(allocated):  # noqa: F811
    jitted = lineara.jit(lineara.grad(beyond), engine="native")
    for _ in range(3):
        with pytest.raises(BoundsError):
            jitted(500.0, np.ones(3))
    assert not allocated.sizes


# --- long programs --------------------------------------------------------------------------------


def nested(depth, fan, lines):
    """A program of definitions that call each other, of very many lines with calls written out."""
    body = " ".join([f"let y{i} = sin(y{i - 1}) in" for i in range(1, lines)])
    out = [f"def g0(y0: f64;) -> (f64;) = {body} y{lines - 1} * y0"]
    for d in range(1, depth + 1):
        calls = " ".join([f"let z{j + 1} = g{d - 1}(z{j};) in" for j in range(fan)])
        out.append(f"def g{d}(z0: f64;) -> (f64;) = {calls} z{fan} * z0")
    return parse(" ".join([*out, f"def f(x: f64;) -> (f64;) = let y = g{depth}(x;) in y * x"]))


def test_a_program_that_would_be_too_long_has_functions():
    program = nested(4, 8, 60)
    assert NATIVE.takes(program, "f") is None
    code = NATIVE.code(program, "f")
    assert code.leaves < 500
    expected = run(program, "f", 0.3, engine=INTERPRETER).results
    assert run(program, "f", 0.3, engine=EXACT).results == expected

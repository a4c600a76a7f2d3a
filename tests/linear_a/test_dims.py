"""Dimensions at run time: one derived program for every size, checked at several of them.

Derivatives are compared with complex steps to order 3 through every form; work is compared with
closed forms in n; what a dimension may not be is an error that says what would work.
"""

import numpy as np
import pytest

from lineara.engines import forecast, run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.cost import static_works
from lineara.linear_a.parse import parse
from lineara.passes.batch import over_lanes
from lineara.passes.derivatives import grad, vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.rules_in_text import custom_jvp, custom_vjp
from lineara.passes.transpose import transpose

STEP = 1e-30

PROGRAMS = {
    "arrays": """
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let m = broadcast_to[shape=(n, n)](x) in
  let y = matmul(m, sin(x)) in
  let z = reshape[shape=(n, 1)](y) in
  let w = sum[axis=(1,), keepdims=false](z) in
  let i = argmax[axis=0](w) in
  a * index[at=(i,)](w) * max[axis=(0,), keepdims=false](w * x)
""",
    "call": """
def g(m: i64, y: f64[m], a: f64;) -> (f64;) =
  let b = broadcast_to[shape=(m,)](a) in
  let c = y * b in
  matmul(sin(c), c)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let y = broadcast_to[shape=(n,)](a) in
  let d = g(n, x, a;) in
  g(n, y, d;) * a
""",
    "cond": """
def g(m: i64, k: i64, x: f64[m], a: f64;) -> (f64[m];) =
  let (;) = drop(k) in
  let e = broadcast_to[shape=(m,)](a) in sin(x) * e
def h(k: i64, m: i64, x: f64[k], a: f64;) -> (f64[k];) =
  let (;) = drop((m, a;)) in exp(x) * x
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let p = less(a, 0.5) in
  let q = less(0.5, a) in
  let u = cond[g, h](p, n, n, x, a;) in
  let v = cond[g, h](q, n, n, u, a;) in
  matmul(u, v)
""",
    "case": """
def g(p: f64[m], m: i64, a: f64;) -> (f64;) = sum[axis=(0,), keepdims=false](sin(p)) * a
def h(p: <f64, f64>, m: i64, a: f64;) -> (f64;) =
  let <u, v> = p in
  let e = broadcast_to[shape=(m,)](sin(u * v)) in matmul(e, e) * a
def one(m: i64, x: f64[m], a: f64;) -> ([f64[m] | <f64, f64>];) =
  let e = broadcast_to[shape=(m,)](a) in inj[0, [f64[m] | <f64, f64>]](sin(x) * e)
def two(m: i64, x: f64[m], a: f64;) -> ([f64[m] | <f64, f64>];) =
  inj[1, [f64[m] | <f64, f64>]](<matmul(x, x), a>)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let p = less(a, 0.5) in
  let u = cond[one, two](p, n, x, a;) in
  let s = case u of g | h with (n, a;) in
  s * sin(s)
""",
    "scan": """
def body(n: i64, k: f64[n], c: f64[n], x: f64;) -> (f64[n], f64;) =
  let b = sin(k * c) in
  let d = b + broadcast_to[shape=(n,)](x) in
  (d, sum[axis=(0,), keepdims=false](d);)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let (d: f64[n], ys: f64[n];) = scan[body, n, fwd, 2, 1, 0](n, x, x, x;) in
  matmul(ys, d) * a
""",
    "rounds": """
def body(k: f64, c: f64;) -> (f64;) = let a = k * c in sin(a) + a
def g(m: i64, a: f64;) -> (f64;) = scan[body, m, rev, 1, 1, 0](a, a;)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let s = sum[axis=(0,), keepdims=false](x) in
  g(n, s;) * g(n, a;)
""",
    "while": """
def p(n: i64, k: f64[n], c: f64[n], i: i64;) -> (bool;) =
  let (;) = drop((k, c;)) in less(i, n)
def body(n: i64, k: f64[n], c: f64[n], i: i64;) -> (f64[n], i64;) =
  (sin(k * c), i + 1_i64;)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let e = broadcast_to[shape=(n,)](a) in
  let (d: f64[n], j: i64;) = while[p, body, 2](n, x, e, 0_i64;) in
  let (;) = drop(j) in matmul(x, d)
""",
    "recursion": """
def done(m: i64, x: f64[m], i: i64;) -> (f64[m];) = let (;) = drop(i) in exp(x)
def go(m: i64, x: f64[m], i: i64;) -> (f64[m];) = let y = rec(m, x, i - 1_i64;) in sin(y) * x
def rec(m: i64, x: f64[m], i: i64;) -> (f64[m];) =
  let p = less_equal(i, 0_i64) in cond[done, go](p, m, x, i;)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let e = broadcast_to[shape=(n,)](a) in
  sum[axis=(0,), keepdims=false](rec(n, x * e, n;))
""",
}
ORDERS = {"case": 2}  # the third of it takes seconds


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.slow("three orders at several sizes")
def test_gradients_of_every_order_hold_at_every_size(name):
    program, f = check(parse(PROGRAMS[name])), "f"
    for order in range(1, ORDERS.get(name, 3) + 1):
        program = check(grad(program, f))
        if order < 3:
            assert str(check(parse(str(program)))) == str(program)
        for n, a in ((1, 0.3), (3, 0.8)):
            x = np.linspace(0.2, 1.1, n)
            found = run(program, f"{f}.grad", n, x, a).results
            for i in range(n):
                moved = x + 1j * STEP * (np.arange(n) == i)
                slope = run(program, f, n, moved, a, checked=False).results[0].imag / STEP
                assert found[0][i] == pytest.approx(slope, rel=1e-9), (order, n)
            slope = run(program, f, n, x, a + 1j * STEP, checked=False).results[0].imag / STEP
            assert found[1] == pytest.approx(slope, rel=1e-9), (order, n)
        program, f = with_projection(program, f), f"{f}q"


def with_projection(program, f):
    """A definition with one number as its result, made of the gradient."""
    text = f"""
def {f}q(n: i64, x: f64[n], a: f64;) -> (f64;) =
  let (g: f64[n], b: f64;) = {f}.grad(n, x, a;) in matmul(g, x) * b + b
"""
    return check(parse(str(program) + text))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_passes_keep_work_and_transpose(name):
    program = check(erase(check(vjp(check(parse(PROGRAMS[name])), "f")), "f.jvp"))
    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        x, dx = rng.uniform(0.2, 1.2, (2, n))
        a, da, c = rng.uniform(0.2, 0.9, 3)
        forward = run(program, "f.jvp", n, x, a, dx, da)
        nl = run(program, "f.jvp.nl", n, x, a)
        *ys, tape = nl.results
        lin = run(program, "f.jvp.lin", tape, n, dx, da)
        assert ys[0] == forward.results[0]  # P5: the same values bit by bit, and the same work
        assert lin.lresults == forward.lresults
        dropped = nl.work + lin.work - forward.work
        assert 0 <= dropped <= 20 or name in ("scan", "rounds", "while", "recursion")
        back = run(program, "f.vjp", n, x, a, c)
        product = back.lresults[0] @ dx + back.lresults[1] * da
        assert product == pytest.approx(c * forward.lresults[0], rel=1e-12)  # P7
        erased = run(program, "f.jvp.e", n, x, a, dx, da)
        assert erased.results[1] == pytest.approx(forward.lresults[0], rel=1e-15)  # P9


FORI = """
def body(n: i64, k: f64, y: f64[n], i: i64;) -> (f64[n], i64;) =
  let j = i - 1_i64 in
  let a = index[at=(j,)](y) in
  let z = put[i](y, sin(a) * k) in
  (z, i + 1_i64;)
def f(n: i64, m: i64, x: f64, k: f64;) -> (f64[n];) =
  let y = put[0](zeros[f64[n]], x) in
  let (z: f64[n], j: i64;) = scan[body, m, fwd, 2, 2, 0](n, k, y, 1_i64;) in
  let (;) = drop(j) in z
"""


def test_a_loop_that_fills_an_array_is_linear_in_its_length_in_every_direction():
    program = check(vjp(check(parse(FORI)), "f"))
    works, bytes_ = [], []
    for n in (10, 100, 1000):
        ends = (
            run(program, "f", n, n - 1, 0.5, 0.9),
            run(program, "f.jvp", n, n - 1, 0.5, 0.9, 1.0, 0.0),
            run(program, "f.vjp", n, n - 1, 0.5, 0.9, np.ones(n)),
        )
        works.append([found.work for found in ends])
        bytes_.append([found.written for found in ends])
    for counts in (works, bytes_):
        for a, b, c in zip(*counts, strict=True):
            assert 10 * (b - a) == c - b  # a + b n
    n = 1000
    assert works[-1] == [6 * n - 4, 12 * n - 8, 13 * n - 10]
    moved = run(program, "f", n, n - 1, 0.5, 0.9 + 1j * STEP, checked=False).results[0]
    assert np.allclose(
        moved.imag / STEP, run(program, "f.jvp", n, n - 1, 0.5, 0.9, 0.0, 1.0).lresults[0]
    )


def test_the_tape_is_a_family_of_types():
    program = vjp(parse(PROGRAMS["call"]), "f")
    text = str(program)
    assert "type g.jvp.tape[m] = <f64[m]" in text
    assert "def g.jvp.lin(t2: g.jvp.tape[m], m: i64; ~dy: f64[m], ~da: f64)" in text
    assert "g.jvp.lin(t, n; " in text
    assert program == parse(text)


def test_a_dimension_of_zero_and_of_one():
    program = check(vjp(parse(PROGRAMS["call"]), "f"))
    assert run(program, "f.vjp", 0, np.zeros(0), 0.5, 1.0).lresults[0].shape == (0,)
    assert run(program, "f.vjp", 1, np.ones(1), 0.5, 1.0).lresults[0].shape == (1,)


def test_transposed_twice_a_map_is_itself():
    text = """
def f(n: i64, m: i64, x: f64[n,m]; ~a: f64[m], ~b: f64[n]) -> (; f64[n], f64[m]) =
  let (; ~a2, ~a3) = dup(~a) in
  let ~y = matmul(x, ~a2) in
  let ~z = ~y + ~b in
  (; ~z, ~a3)
"""
    program = check(transpose(check(transpose(check(parse(text)), "f")), "f.t"))
    x = np.arange(6.0).reshape(2, 3)
    a, b = np.ones(3), np.arange(2.0)
    once, twice = (run(program, f, 2, 3, x, a, b) for f in ("f", "f.t.t"))
    assert all(map(np.array_equal, once.lresults, twice.lresults))
    assert once.work == twice.work == 2 * 2 * 3 - 2 + 2


def test_zeros_are_made_of_the_dimensions_at_hand():
    text = "def f(n: i64, x: f64[n];) -> (f64[n], f64[n];) = (zeros[f64[n]], x;)"
    program = check(vjp(check(parse(text)), "f"))
    found = run(program, "f.vjp", 3, np.ones(3), np.ones(3), np.arange(3.0))
    assert found.lresults[0].tolist() == [0.0, 1.0, 2.0]
    assert run(program, "f", 2, np.ones(2)).results[0].tolist() == [0.0, 0.0]


def test_a_rehearsal_takes_the_dimensions_it_is_given():
    program = check(vjp(parse(PROGRAMS["call"]), "f"))
    for n in (3, 50):
        found = run(program, "f.vjp", n, np.ones(n), 0.5, 1.0)
        assert forecast(program, "f.vjp", n).work == found.work
    with pytest.raises(ProgramError, match=r"n is a dimension in f\.vjp"):
        forecast(program, "f.vjp")


def test_the_work_of_a_text_with_dimensions_is_known_only_by_running():
    program = parse("def f(n: i64, x: f64[n];) -> (f64[n];) = sin(x)")
    assert static_works(program) == {"f": None}
    assert [run(program, "f", n, np.ones(n)).work for n in (2, 7)] == [2, 7]


F = "def f(n: i64, m: i64, x: f64[n], y: f64[m];) ->"
SUM = "sum[axis=(0,), keepdims=false]"
WRONG = {
    "two dimensions": (f"{F} (f64;) = matmul(x, y)", r"f64\[n\] @ f64\[m\] does not compose"),
    "no such formal": ("def f(nn: i64, x: f64[n];) -> (f64[nn];) = x", "did you mean nn"),
    "no integer": ("def f(n: f64, x: f64[n];) -> (f64;) = n", "dimension n is no i64 formal"),
    "a sum": (f"{F} (f64;) = {SUM}(concat[axis=0](x, y))", r"depends on n \+ m, which has no name"),
    "a double": (f"{F} (f64;) = {SUM}(concat[axis=0](x, x))", r"depends on 2 \* n"),
    "a part": (f"{F} (f64;) = {SUM}(index[at=(1:,)](x))", "depends on n - 1"),
    "let": (
        f"{F} (f64;) = let k = n + m in {SUM}(reshape[shape=(k,)](x))",
        "k is the dimension of a type, but no i64 formal of f; take it as an argument: k: i64",
    ),
    "a carry": (
        "def g(n: i64, a: f64;) -> (i64, f64;) = (n, "
        f"{SUM}(broadcast_to[shape=(n,)](a));)\n"
        "def f(n: i64, x: f64;) -> (i64, f64;) = scan[g, 3, fwd, 0, 2, 0](n, x;)",
        "n is a dimension in g, which is the same in every round",
    ),
    "a family": (
        "type t[n] = <f64[n], f64>\ndef f(n: i64, x: t;) -> (f64;) = 1.0",
        "t has 1 dimensions, not 0",
    ),
    "unused": ("def f(n: i64;) -> (f64;) = 1.0", r"n is never used; use it .* or drop\(n\)"),
    "a literal": ("def f(n: i64;) -> (f64[n];) = []_f64[n]", "a literal has numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_a_dimension_cannot_be_is_said(name):
    text, message = WRONG[name]
    with pytest.raises(ProgramError, match=message):
        check(parse(text))


def test_arguments_agree_with_the_dimensions():
    program = check(parse("def f(n: i64, x: f64[n], y: f64[n];) -> (f64;) = matmul(x, y)"))
    with pytest.raises(ProgramError, match=r"f takes f64\[n\] as y, where n is 3: found f64\[4\]"):
        run(program, "f", 3, np.ones(3), np.ones(4))
    for n in (-1, 2.5, "n"):
        with pytest.raises(ProgramError, match="n is a dimension in f: give it a whole number"):
            run(program, "f", n, np.ones(3), np.ones(3))


def test_a_part_that_reaches_too_far_is_refused_as_it_runs():
    text = f"def f(n: i64, x: f64[n];) -> (f64;) = {SUM}(index[at=(0:3,)](x))"
    program = check(grad(check(parse(text)), "f"))
    assert run(program, "f.grad", 4, np.ones(4)).results[0].tolist() == [1.0, 1.0, 1.0, 0.0]
    for name in ("f", "f.grad"):
        with pytest.raises(ProgramError, match=r"f64\[3\] should come out here, where n is 2"):
            run(program, name, 2, np.ones(2))


def test_a_rule_that_needs_the_number_says_which():
    text = "def f(n: i64, x: f64[n];) -> (f64;) = prod[axis=(0,), keepdims=false](x)"
    program = check(parse(text))
    assert run(program, "f", 2, np.array([2.0, 3.0])).results[0] == 6.0
    with pytest.raises(ProgramError, match="prod: its derivative depends on the number that n is"):
        jvp(program, "f")


def test_rules_of_ones_own_have_dimensions():
    text = """
def f(n: i64, x: f64[n];) -> (f64;) = prod[axis=(0,), keepdims=false](x)
def rule(m: i64, x: f64[m]; ~d: f64[m]) -> (f64; f64) =
  let y = prod[axis=(0,), keepdims=false](x) in
  let e = broadcast_to[shape=(m,)](y) in
  let ~s = matmul((e / x), ~d) in (y; ~s)
"""
    program = check(vjp(custom_jvp(check(parse(text)), "f", "rule"), "f"))
    found = run(program, "f.vjp", 3, np.array([1.0, 2.0, 4.0]), 1.0)
    assert found.lresults[0].tolist() == [8.0, 4.0, 2.0]


def test_a_product_with_dimensions_is_scaled_when_erased():
    text = """
type t[n] = <f64[n], <f64, f64[n]>>
def f(x: i64, k: f64; ~a: t[x], ~b: t[x]) -> (; t[x]) =
  let ~c = k * ~a in ~c + ~b
"""
    program = check(erase(check(parse(text)), "f"))
    value = (np.ones(2), (1.0, np.arange(2.0)))
    linear, erased = (
        run(program, "f", 2, 3.0, value, value),
        run(program, "f.e", 2, 3.0, value, value),
    )
    (first, (second, third)) = erased.results[0]
    assert (first.tolist(), second, third.tolist()) == ([4.0, 4.0], 4.0, [0.0, 4.0])
    assert erased.work == linear.work == 10
    assert str(parse(str(program))) == str(program)


# --- sizes that are computed ----------------------------------------------------------------------

SIZED = """
def g(m: i64, n: i64, p: bool[n], x: f64[n];) -> (f64[n];) =
  let order = argsort(p) in
  let pos = index[at=(0:m,)](order) in
  let y = index[at=(pos,)](x) in
  put[pos](x, y * sin(y))
def f(n: i64, x: f64[n];) -> (f64;) =
  let p = greater(x, 0.0) in
  let c = count_nonzero(p) in
  let m = n - c in
  let y = sized[g, 0](m, n, p, x;) in
  sum[axis=(0,), keepdims=false](y * y)
"""


def test_a_size_that_is_computed_is_open_in_the_tape():
    program = check(parse(SIZED))
    assert check(parse(str(program))) == program
    x = np.array([1.0, -2.0, 3.0, -4.0, -5.0])

    def plain(x):
        return np.sum(np.where(x.real > 0, x, x * np.sin(x)) ** 2)

    def slope(x):
        y = np.where(x.real > 0, x, x * np.sin(x))
        return 2 * y * np.where(x.real > 0, 1.0, np.sin(x) + x * np.cos(x))

    assert np.isclose(run(program, "f", 5, x).results[0], plain(x))
    first = check(grad(program, "f"))
    assert "g.jvp.tape[_, n]" in str(first)
    np.testing.assert_allclose(run(first, "f.grad", 5, x).results[0], slope(x), rtol=1e-12)
    second = check(jvp(first, "f.grad"))
    v = np.arange(1.0, 6.0)
    np.testing.assert_allclose(
        run(second, "f.grad.jvp", 5, x, v).lresults[0], slope(x + STEP * 1j * v).imag / STEP
    )
    back = check(vjp(first, "f.grad"))  # the Hessian is symmetric
    np.testing.assert_allclose(
        run(back, "f.grad.vjp", 5, x, v).lresults[0], slope(x + STEP * 1j * v).imag / STEP
    )


OPEN = [
    ("def g(m: i64;) -> (f64[m];) = broadcast_to[shape=(m,)](1.0)\n"
     "def f(n: i64;) -> (f64;) = let m = n + n in sum[axis=(0,), keepdims=false](sized[g, 0](m;))",
     "2:76: g gives f64[_], where _ is a size that is computed here; use that array within g, and "
     "give what has another shape"),
    ("def g(x: f64;) -> (f64;) = x\ndef f(x: f64;) -> (f64;) = sized[g, 0](x;)",
     "2:28: the form is sized[f, i, …](xs; ~as), where the arguments i of f are whole numbers"),
    ("def f(m: i64, n: i64, x: f64[n];) -> (f64[n];) = let (;) = drop(m) in index[at=(m:n,)](x)",
     "1:71: index: how long the part m:n of f64[n] is has no name, and a dimension is a number or "
     "an i64 formal; 0:m has the length m, and k elements from m on, for such a k, are those at "
     "positions i: i64[k]: let o = broadcast_to[shape=(k,)](1_i64) in "
     "let i = cumsum[axis=0](o) + m - 1_i64 in index[at=(i,)](x)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), OPEN, ids=["result", "form", "slice"])
def test_what_a_size_may_not_be(text, message):
    with pytest.raises(ProgramError) as caught:
        check(parse(text))
    assert str(caught.value).split("\n")[0] == message


WINDOW = """
def part(k: i64, m: i64, p: i64, x: f64[p];) -> (f64[k];) =
  let o = broadcast_to[shape=(k,)](1_i64) in
  let i = cumsum[axis=0](o) + m - 1_i64 in index[at=(i,)](x)
def squares(k: i64, m: i64, p: i64, x: f64[p];) -> (f64;) =
  let y = part(k, m, p, x;) in matmul(y, y)
def f(m: i64, n: i64, p: i64, x: f64[p];) -> (f64;) =
  let k = n - m in sized[squares, 0](k, m, p, x;)
"""


@pytest.mark.parametrize(("m", "n"), [(0, 6), (2, 5), (3, 3), (5, 6)])
def test_a_part_whose_ends_are_sizes_is_written_as_the_message_says(m, n):
    program = check(vjp(check(parse(WINDOW)), "f"))
    x = np.arange(1.0, 7.0)
    assert run(program, "part", n - m, m, 6, x).results[0].tolist() == x[m:n].tolist()
    found = run(program, "f.vjp", m, n, 6, x, 1.0)
    slope = np.zeros(6)
    slope[m:n] = 2 * x[m:n]
    assert found.results[0] == x[m:n] @ x[m:n]
    assert found.lresults[0].tolist() == slope.tolist()


LITERAL = """
type pair[n] = <f64[n], f64>
def scaled(n: i64, x: f64[n];) -> (f64[n];) =
  let s = sum[axis=(0,), keepdims=false](x) in broadcast_to[shape=(n,)](s) * x
def round(n: i64, c: f64[n];) -> (f64[n];) = sin(scaled(n, c;))
def more(n: i64, x: f64[n];) -> (f64[n];) = let y = index[at=(0:n,)](x) in y * 2.0
def less(n: i64, x: f64[n];) -> (f64[n];) = let (;) = drop(n) in cos(x)
def again(n: i64, k: f64, x: f64[n];) -> (f64[n];) =
  cond[ended, goes](less(k, 1.0), n, k, x;)
def ended(n: i64, k: f64, x: f64[n];) -> (f64[n];) = let (;) = drop((n, k;)) in x
def goes(n: i64, k: f64, x: f64[n];) -> (f64[n];) = again(n, k - 1.0, x * 0.5;)
def g(n: i64, x: f64[n];) -> (pair[n], f64;) =
  let y = scan[round, n, fwd, 1, 1, 0](n, x;) in
  let z = cond[more, less](true, n, y;) in
  let w = again(n, 2.0, z;) in
  (<w, matmul(x, x)>, astype[dtype=f64](n);)
def f(x: f64[3];) -> (f64;) =
  let (p, k;) = g(3_i64, x;) in
  let <w, s> = p in
  let m = 2_i64 in
  let (q, l;) = { g(m, index[at=(1:,)](x);) } in
  let <v, t> = q in
  let (;) = drop(t) in
  k * sum[axis=(0,), keepdims=false](w + x) + l * s * matmul(v, v)
"""


def test_a_literal_size_makes_an_instance_of_what_it_is_given_to():
    program = check(parse(LITERAL))
    assert parse(str(program)) == program
    assert {"g'3", "g'2", "round'3", "again'2", "ended'2", "less'3"} <= {*program.defs}
    assert repr(program.defs["g'3"].results[0]) == "pair[3]"
    x = np.array([0.1, 0.2, 0.3])

    def oracle(x):
        def g(x):
            y = x
            for _ in range(len(x)):
                y = np.sin(np.sum(y) * y)
            return y * 2.0 * 0.25, x @ x, float(len(x))

        (w, s, k), (v, _, few) = g(x), g(x[1:])
        return k * np.sum(w + x) + few * s * (v @ v)

    assert run(program, "f", x).results[0] == pytest.approx(oracle(x), rel=1e-14)
    steps = [oracle(x + 1j * STEP * v).imag / STEP for v in np.eye(3)]
    derived = check(grad(program, "f"))
    np.testing.assert_allclose(run(derived, "f.grad", x).results[0], steps, rtol=1e-13)
    twice = check(vjp(derived, "f.grad"))
    bent = [run(derived, "f.grad", x + 1e-6 * v).results[0] for v in np.eye(3)]
    for v, column in zip(np.eye(3), bent, strict=True):
        found = run(twice, "f.grad.vjp", x, v).lresults[0]
        np.testing.assert_allclose(found, (column - np.array(steps)) / 1e-6, atol=2e-4)
    lanes, name, _ = over_lanes(program, "f", (0,), 2)
    rows = np.stack([x, x[::-1]])
    found = run(check(vjp(check(lanes), name)), f"{name}.vjp", rows, np.ones(2))
    np.testing.assert_allclose(found.results[0], [oracle(row) for row in rows], rtol=1e-13)
    expected = [run(derived, "f.grad", row).results[0] for row in rows]
    np.testing.assert_allclose(found.lresults[0], expected, rtol=1e-13)


def test_an_instance_has_the_rules_that_are_stated_for_its_definition():
    text = """
def g(n: i64, x: f64[n];) -> (f64[n];) = let (;) = drop(n) in sin(x)
def g.jvp(m: i64, x: f64[m]; ~d: f64[m]) -> (f64[m]; f64[m]) =
  let (;) = drop(m) in let y = sin(x) in let ~e = 3.0 * ~d in (y; ~e)
def f(x: f64[2];) -> (f64;) = let y = g(2_i64, x;) in sum[axis=(0,), keepdims=false](y)
"""
    program = check(grad(check(parse(text)), "f"))
    assert run(program, "f.grad", np.ones(2)).results[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def g(n: i64, x: f64[n];) -> (f64[n];) = sin(x)\n"
         "def f(x: f64[4];) -> (f64[4];) = g(5_i64, x;)",
         "2:43: g'5 takes f64[5] as x, but x is f64[4]"),
        ("def f(x: f64;) -> (f64;) = let k = 5_i64 in x",
         "1:32: k is never used; use it at least once, or drop(k)"),
    ],
    ids=["another", "unused"],
)  # fmt: skip
def test_a_literal_size_that_does_not_fit_is_said(text, message):
    with pytest.raises(ProgramError) as caught:
        check(parse(text))
    assert str(caught.value).split("\n")[0] == message


def test_a_part_up_to_a_dimension_lies_within_the_array():
    text = ("def f(m: i64, x: f64[4], y: f64[m];) -> (f64[4];) = put[0:m](x, y)\n"
            "def g(m: i64, x: f64[4];) -> (f64[m];) = index[at=(0:m,)](x)")  # fmt: skip
    program = check(parse(text))
    x = np.arange(4.0)
    assert run(program, "f", 2, x, -np.ones(2)).results[0].tolist() == [-1, -1, 2, 3]
    assert run(program, "g", 3, x).results[0].tolist() == [0, 1, 2]
    with pytest.raises(ProgramError, match="a part of an array lies within it"):
        run(program, "f", 5, x, np.ones(5))
    with pytest.raises(ProgramError, match=r"where m is 5, but f64\[4\] does"):
        run(program, "g", 5, x)


def test_a_tape_is_of_the_size_that_is_given():
    program = check(parse(SIZED))
    made = grad(program, "f")
    text = str(made).replace("sized[g.jvp.lin.t.e, 1](t, m,", "sized[g.jvp.lin.t.e, 1](t, n,")
    assert text != str(made)
    with pytest.raises(ProgramError, match="give the size that it was made with"):
        run(check(parse(text, sugar=True)), "f.grad", 5, np.array([1.0, -2.0, 3.0, -4.0, -5.0]))


def test_a_vjp_rule_serves_every_size():
    program = check(parse("""
def g(n: i64, x: f64[n], a: f64;) -> (f64[n];) = x * x * a
def fwd(n: i64, x: f64[n], a: f64;) -> (f64[n], <f64[n], f64>;) =
  let y = x * x * a in let k = <x, a> in (y, k;)
def bwd(k: <f64[m], f64>, m: i64; ~c: f64[m]) -> (; f64[m], f64) =
  let <x: f64[m], a: f64> = k in let (; ~c1, ~c2) = dup(~c) in
  let h = 2.0 * x * a in let ~u = h * ~c1 in let s = x * x in let ~v = s * ~c2 in
  let ~w = sum[axis=(0,), keepdims=false](~v) in (; ~u, ~w)
def f(n: i64, x: f64[n], a: f64;) -> (f64;) = sum[axis=(0,), keepdims=false](sin(g(n, x, a;)))
"""))  # fmt: skip
    made = check(grad(custom_vjp(program, "g", "fwd", "bwd"), "f"))
    for n in (1, 4):
        x = np.arange(1.0, n + 1)
        found = run(made, "f.grad", n, x, 0.3).results
        slope = np.cos(x * x * 0.3)
        np.testing.assert_allclose(found[0], slope * 2 * x * 0.3)
        np.testing.assert_allclose(found[1], np.sum(slope * x * x))
    second = check(vjp(made, "f.grad"))
    plain = check(vjp(grad(program, "f"), "f.grad"))
    given = 3, np.arange(1.0, 4), 0.3, np.ones(3), 1.0
    pairs = zip(run(second, "f.grad.vjp", *given).lresults,
                run(plain, "f.grad.vjp", *given).lresults, strict=True)  # fmt: skip
    for a, b in pairs:
        np.testing.assert_allclose(a, b)

"""What the lowering decides before the program runs, and that it may decide it.

A branch whose condition is known, booleans of a loop that stay true, a counter that would leave its
range, folds that have no code for their dtype, and what is evaluated without asking Python: each is
a program whose results, or whose calls back, would be others if the decision were wrong.
"""

import functools
import math
import re
import sys

import numpy as np
import pytest
from call_counts import calls
from test_direct import prepared
from test_native import EXACT, NATIVE, agree

import lineara
from lineara.engines import run
from lineara.engines.native import Native, demand, emitted, lower, regions
from lineara.errors import OutOfBounds
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.python.structured_code import structured

pytest.importorskip("llvmlite")

rng = np.random.default_rng(23)


def program(text):
    return check(parse(text))


# --- what is known --------------------------------------------------------------------------------

KNOWN = """
def twice(x: f64, y: f64;) -> (f64;) = let (;) = drop(y) in x + x
def minus(x: f64, y: f64;) -> (f64;) = x - y
def times(x: f64, y: f64;) -> (f64;) = x * y
def f(x: f64, y: f64;) -> (f64, f64, f64;) =
  let p: bool = true in let q: bool = false in let i: i64 = 1_i64 in
  let a: f64 = cond[twice, minus](p, x, y;) in
  let b: f64 = cond[twice, minus](q, x, y;) in
  let c: f64 = switch[twice, minus, times](i, x, y;) in (a, b, c;)
"""


def test_a_branch_whose_condition_is_known_is_the_only_one_that_is_emitted():
    p = program(KNOWN)
    assert agree(p, "f", 3.0, 0.5) == (6.0, 2.5, 2.5)
    code = NATIVE.code(p, "f")
    assert "fmul" not in code.text
    assert code.leaves == 10


ADDED = """
type either = [f64 | f64]
def one(x: f64, y: f64;) -> (f64;) = sin(x) * y
def other(x: f64, y: f64;) -> (f64;) = x * y
def f(x: f64;) -> (f64;) =
  let a: either = inj[1, either](x) in let b: either = inj[1, either](x) in
  let c = a + b in case c of one | other with (x;)
"""


def test_a_sum_of_one_alternative_is_that_alternative():
    p = program(ADDED)
    assert agree(p, "f", 3.0) == (18.0,)
    text = NATIVE.code(p, "f").text
    assert not re.search(r"smax|sin|switch", text)


TWO_OF_THREE = """
type three = [f64 | f64 | f64]
def left(x: f64;) -> (three;) = inj[0, three](x)
def right(x: f64;) -> (three;) = inj[2, three](x)
def same(x: f64;) -> (f64;) = x
def wave(x: f64;) -> (f64;) = sin(x)
def twice(x: f64;) -> (f64;) = x + x
def f(p: bool, x: f64;) -> (f64;) =
  let a: three = cond[left, right](p, x;) in case a of same | wave | twice with (;)
"""


def test_an_alternative_that_no_branch_gives_has_no_code():
    p = program(TWO_OF_THREE)
    assert [agree(p, "f", q, 3.0, engines=[NATIVE]) for q in (True, False)] == [(3.0,), (6.0,)]
    assert "sin" not in NATIVE.code(p, "f").text


OF_A_MATRIX = """
def first(n: i64, a: f64[2,2];) -> (f64;) =
  let b = index[at=(0:n,)](a) in sum[axis=(0, 1), keepdims=false](b)
def sized_by_a_value(a: f64[2,2];) -> (f64[2,2];) =
  let n = 2_i64 in let s = sized[first, 0](n, a;) in a * s
def f(a: f64[2,2];) -> (f64;) =
  let b = sized_by_a_value(a;) in let c = sized_by_a_value(b;) in
  sum[axis=(0, 1), keepdims=false](c)
"""


def test_matrices_that_are_called_back_for_are_called_back_with():
    """The order in which they lie is known, or nothing to those who do not promise every bit."""
    p = program(OF_A_MATRIX)
    agree(p, "f", np.array([[1.0, 2.0], [3.0, 4.0]]))
    for engine in (EXACT, NATIVE):
        sites = engine.code(p, "f").sites
        assert len([s for s in sites if s.what.startswith("sized_by_a_value(f64[2,2])")]) == 2


def test_what_an_alternative_holds_is_that():
    p = program("""
        type either = [f64 | f64]
        def f(x: f64;) -> (f64;) = let a: either = inj[1, either](x) in proj[1](a)
    """)
    assert agree(p, "f", 2.0, engines=[NATIVE]) == (2.0,)


READ_BY_BOTH = """
def one(u: f64[3], x: f64;) -> (f64;) = let a = index[at=(0,)](u) in a * x
def other(u: f64[3], x: f64;) -> (f64;) = let a = index[at=(0,)](u) in a - x
def f(p: bool, u: f64[3], x: f64;) -> (f64;) = cond[one, other](p, u, x;)
"""


def test_what_one_branch_has_read_the_other_one_reads():
    p = program(READ_BY_BOTH)
    assert [agree(p, "f", q, np.arange(3.0), 5.0) for q in (True, False)] == [(0.0,), (-5.0,)]


CHOICE = """
def twice(x: f64, y: f64;) -> (f64;) = let (;) = drop(y) in x + x
def minus(x: f64, y: f64;) -> (f64;) = x - y
def f(i: i64, x: f64, y: f64;) -> (f64;) = switch[twice, minus](i, x, y;)
"""


def test_a_choice_of_a_branch_that_there_is_not_ends_as_in_the_interpreter():
    p = program(CHOICE)
    assert [agree(p, "f", i, 3.0, 0.5) for i in (0, 1)] == [(6.0,), (2.5,)]
    for i in (2, -1):
        assert agree(p, "f", i, 3.0, 0.5)[1].startswith(f"switch: the index {i} is out of range")


SIZED = """
type pair = <f64, f64[2]>
def first(n: i64, a: f64[2];) -> (f64;) =
  let b = index[at=(0:n,)](a) in
  sum[axis=(0,), keepdims=false](b)
def sized_by_a_value(p: pair, h: f16, u: f64[2];) -> (pair, f64;) =
  let (;) = drop(u) in
  let <x: f64, a: f64[2]> = p in
  let n = count_nonzero(a) in
  let s = sized[first, 0](n, a;) in
  let g = astype[dtype=f64](h) in
  let t = x * g in
  let y = t + s in
  let b = a * y in
  let q: pair = <y, b> in
  (q, g;)
def f(x: f64, a: f64[2], h: f16;) -> (f64, f64[2], f64;) =
  let u = cos(a) in
  let p: pair = <x, a> in
  let (q: pair, g: f64;) = sized_by_a_value(p, h, u;) in
  let (;) = drop(g) in
  let (r: pair, k: f64;) = sized_by_a_value(q, h, a;) in
  let <y: f64, b: f64[2]> = r in
  (y, b, k;)
"""


def test_what_is_called_back_takes_and_gives_products_and_numbers_that_no_register_holds():
    """One argument is made for nobody else: Python reads all that it is given."""
    p = program(SIZED)
    for h in (3.0, -0.5):
        agree(p, "f", 0.5, np.array([1.0, 2.0]), np.float16(h))
    code = NATIVE.code(p, "f")
    assert [len(s.operands) for s in code.sites] == [4, 4]
    assert "cos" in code.text


KNOWN_CASTS = """
def f(x: f32;) -> (f32;) =
  let k: f64 = 0.1 in let q: bool = true in
  let a: f32 = astype[dtype=f32](k) in let b: f32 = astype[dtype=f32](q) in
  let y: f32 = x * a in y + b
"""


def test_a_number_that_is_known_is_cast_before_the_run():
    p = program(KNOWN_CASTS)
    agree(p, "f", np.float32(0.3))
    plain = program("def f(x: f32;) -> (f32;) = x * x")
    casts = [NATIVE.code(q, "f").text.count(" to float") for q in (p, plain)]
    assert casts[0] == casts[1]


CROSSED = """
def g(x: f64[3];) -> (f64[3], f64[3];) =
  let a: f64[3] = x * x in let b: f64[3] = sin(a) in let c: f64[3] = a + b in (b, c;)
def h(x: f64[3];) -> (f64[3], f64[3];) =
  let a: f64[3] = x * x in let b: f64[3] = sin(a) in let c: f64[3] = a + b in (c, b;)
def f(p: bool, x: f64[3];) -> (f64[3], f64[3];) = cond[g, h](p, x;)
"""


@pytest.mark.parametrize("p", [True, False])
def test_arrays_that_branches_give_in_another_order_stay_apart(p):
    agree(program(CROSSED), "f", p, rng.normal(size=3))


COUNTING = """
def step(i: i64, x: f64;) -> (i64, f64;) =
  let d: i64 = {step}_i64 in let j: i64 = i + d in let y: f64 = astype[dtype=f64](j) in
  let none: i64 = 0_i64 in let p: bool = less(j, none) in
  let c: f64 = where(p, x, y) in let z: f64 = c + y in (j, z;)
def f(i: i64, x: f64;) -> (i64, f64;) =
  let (;) = drop(i) in let k: i64 = {start}_i64 in scan[step, 6, fwd, 0, 2, 0](k, x;)
"""


@pytest.mark.parametrize(
    ("start", "step"),
    [(0, 1), (5, -1), (2**63 - 4, 1), (-(2**63) + 3, -1), (2**63 - 7, 1), (-(2**63) + 6, -1)],
)
def test_a_counter_that_leaves_its_range_does_what_the_interpreter_does(start, step):
    agree(program(COUNTING.format(start=start, step=step)), "f", 0, 0.5)


OVER = """
def goes(i: i64, p: bool;) -> (bool;) = let (;) = drop(i) in (p;)
def next(i: i64, p: bool;) -> (i64, bool;) =
  let (;) = drop(p) in
  let one = 1_i64 in let j = i + one in
  let least = -9223372036854775807_i64 in let k = j + least in
  let end = -9223372036854775800_i64 in let q = less(k, end) in (j, q;)
def f(x: f64;) -> (i64, f64;) =
  let i = -6_i64 in let p = true in
  let (j: i64, q: bool;) = while[goes, next, 0](i, p;) in
  let (;) = drop(q) in (j, x;)
"""


def test_a_loop_that_compares_what_has_left_its_range_is_not_counted():
    """j + least would be less than the end for some rounds, but the first one is a large number."""
    assert agree(program(OVER), "f", 0.5) == (-5, 0.5)


READS = """
def goes(x: f64[3], i: i64;) -> (bool;) =
  let v: f64 = index[at=(i,)](x) in let (;) = drop(v) in
  let end = 5_i64 in let q = less(i, end) in (q;)
def next(x: f64[3], i: i64;) -> (i64;) =
  let (;) = drop(x) in let one = 1_i64 in let j = i + one in (j;)
def f(x: f64[3];) -> (i64;) =
  let i = 0_i64 in let j: i64 = while[goes, next, 1](x, i;) in (j;)
"""


def test_a_condition_that_may_fail_is_asked_in_each_round():
    """It compares a counter with 5, and reads one of three elements before."""
    error, said, _ = agree(program(READS), "f", np.arange(3.0))
    assert error is OutOfBounds
    assert "index 3 is out of bounds" in said


ONE_OF_A_LIST = """
type list = [<> | <f64, list>]
type box = [<f64, list>]
def unbox(p: <f64, list>;) -> (f64;) =
  let <x: f64, rest: list> = p in let (;) = drop(rest) in (x;)
def f(x: f64;) -> (f64;) =
  let e: <> = <> in let rest: list = inj[0, list](e) in
  let p: <f64, list> = <x, rest> in let b: box = inj[0, box](p) in case b of unbox with (;)
"""


def test_one_alternative_that_holds_a_list_is_taken_out_of_its_node():
    p = program(ONE_OF_A_LIST)
    assert NATIVE.takes(p, "f") is None
    assert agree(p, "f", 3.0) == (3.0,)


KNOWN_LEFT = """
def f(x: f64;) -> (bool, bool, bool, bool, bool;) =
  let k: f64 = 2.0 in let m: f64 = 3.0 in
  let a: bool = greater(k, x) in let b: bool = less_equal(k, x) in let c: bool = equal(k, x) in
  let d: bool = less(k, m) in let e: bool = not_equal(k, k) in (a, b, c, d, e;)
"""


def test_numbers_that_are_known_are_compared_on_the_left_too():
    for x in (1.0, 2.0, 3.0, math.nan):
        agree(program(KNOWN_LEFT), "f", x)


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@pytest.mark.parametrize("last", [0, 1, 5])
def test_comparisons_that_rounds_decide_are_the_interpreters(last):
    """A counter is compared with what is below, at, within and beyond its range."""
    at = [-1, 0, 1, last - 1, last, last + 1]
    lines = [
        f"let k{j}: i64 = {c}_i64 in let p{j}{i}: bool = {how}(i, k{j}) in "
        f"let q{j}{i}: f64 = where(p{j}{i}, one, none) in"
        for j, c in enumerate(at)
        for i, how in enumerate(COMPARISONS)
    ]
    names = [f"q{j}{i}" for j in range(len(at)) for i in range(len(COMPARISONS))]
    body = []
    for n, q in enumerate(names):
        body.append(f"let s{n}: f64 = {f'd{n - 1}' if n else 'x'} + {q} in")
        body.append(f"let d{n}: f64 = s{n} * three in")
    text = "\n  ".join([*lines, *body])
    p = program(
        f"""
def step(i: i64, x: f64;) -> (i64, f64;) =
  let one: f64 = 1.0 in let none: f64 = 0.0 in let three: f64 = 1.01 in
  {text}
  let more: i64 = 1_i64 in let j: i64 = i + more in (j, d{len(names) - 1};)
def f(x: f64;) -> (i64, f64;) =
  let i: i64 = 0_i64 in scan[step, {last + 1}, fwd, 0, 2, 0](i, x;)
"""
    )
    agree(p, "f", 0.5)


FLAGS = """
def step(bound: f64, p: bool, x: f64;) -> (bool, f64;) =
  let up: f64 = x + x in let one: f64 = 1.0 in let next: f64 = x + one in
  let y: f64 = where(p, up, next) in
  let large: bool = greater(y, bound) in
  let q: bool = {change}(p, large) in (q, y;)
def f(p: bool, x: f64, bound: f64;) -> (bool, f64;) = scan[step, 7, fwd, 1, 2, 0](bound, p, x;)
"""


@pytest.mark.parametrize("change", ["logical_or", "logical_and", "not_equal", "equal"])
@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize("bound", [-1.0, 4.5, 1e9], ids=["at once", "later", "never"])
def test_booleans_of_a_loop_may_stay_as_they_are_or_change(change, p, bound):
    """Those that are true and stay true are not looked at from there on, and others are."""
    agree(program(FLAGS.format(change=change)), "f", p, 1.0, bound)


def strided(x):
    total = 0.0
    for i in range(x.shape[0] // 3):
        total = total * x[3 * i] + x[i * 2 + 1] * x[i]
    return total


def test_places_that_rounds_tell_are_not_on_the_tape():
    x = rng.normal(size=30)
    p = lineara.jit(lineara.grad(strided)).program(x)
    agree(p.program, p.name, *p.operands((x,)))
    code = NATIVE.code(p.program, p.name)
    assert code.taped
    assert all([t.dtype == float for _, t, _ in code.taped])


@pytest.mark.parametrize(("change", "loops"), [("logical_or", 2), ("logical_and", 1), ("equal", 1)])
def test_a_loop_is_emitted_twice_where_its_booleans_stay_true(change, loops):
    text = lower.lowered(program(FLAGS.format(change=change)), "f").text
    assert len(re.findall(r"^body\d+:", text, re.MULTILINE)) == loops


ROWS = """
def step(k: f64, c: f64[3], x: f64[3], m: f64[2,3];) -> (f64[3], f64[3], f64[2,3];) =
  let d: f64[3] = c * k in let e: f64[3] = d + x in
  let n: f64[2,3] = m * k in let o: f64[2,3] = n * k in (e, d, o;)
def f(k: f64, c: f64[3], xs: f64[4,3], ms: f64[4,2,3];) -> (f64[3], f64[4,3], f64[4,2,3];) =
  scan[step, 4, {way}, 1, 1, 0](k, c, xs, ms;)
"""


@pytest.mark.parametrize("way", ["fwd", "rev"])
def test_loops_over_matrices_have_their_rows(way):
    p = program(ROWS.format(way=way))
    c, xs, ms = [rng.normal(size=s) for s in ((3,), (4, 3), (4, 2, 3))]
    agree(p, "f", 0.7, c, xs, ms)


@pytest.mark.parametrize("rounds", [5, 6])
def test_places_from_the_end_that_rounds_tell_are_looked_at(rounds):
    """In one round more than there are elements the place is not there."""
    text = f"""
def step(x: f64[5], i: i64, s: f64;) -> (i64, f64;) =
  let y: f64 = index[at=(i,)](x) in let t: f64 = s * y in let u: f64 = t + y in
  let d: i64 = -1_i64 in let j: i64 = i + d in (j, u;)
def f(x: f64[5], s: f64;) -> (i64, f64;) =
  let i: i64 = -1_i64 in scan[step, {rounds}, fwd, 1, 2, 0](x, i, s;)
"""
    agree(program(text), "f", rng.normal(size=5), 0.5)


def deep(x):
    total = 0.1
    for i in range(2):
        for j in range(3):
            for k in range(4):
                total = np.sin(total) * x[i, j, k] + total * x[i, j, 0]
            total = np.exp(-total * total)
        total = total * total + x[i, 0, 0]
    return total


def endless(x):
    total = 0.1
    for i in range(2):
        for j in range(3):
            while total < 2.0 + x[i, j]:
                total = total * 1.7 + np.sin(total)
            total = total * x[i, j] * 0.1
    return total


def branching(x):
    total = 0.1
    for i in range(4):
        for j in range(11):
            if total > x[i, j]:
                total = np.sin(total) * x[i, j]
            else:
                total = total * total
                total = total + x[i, 0]
    return total


@pytest.mark.parametrize(
    ("f", "shape"), [(deep, (2, 3, 4)), (endless, (2, 3)), (branching, (4, 11))]
)
def test_tapes_of_loops_in_three_levels(f, shape):
    x = np.abs(rng.normal(size=shape))
    p = lineara.jit(lineara.grad(f)).program(x)
    agree(p.program, p.name, *p.operands((x,)))


STACKED = """
def make1(i: i64, c: f64;) -> (i64, f64, <f64, f64, i64>;) =
  let k: f64 = 0.75 in let a: f64 = sin(c) in let d: f64 = a + k in
  let t: <f64, f64, i64> = <d, k, i> in
  let one: i64 = 1_i64 in let j: i64 = i + one in (j, d, t;)
def make2(c: f64;) -> (f64, stack[4, <f64, f64, i64>];) =
  let i: i64 = 0_i64 in
  let (j: i64, d: f64, ts: stack[4, <f64, f64, i64>];) = scan[make1, 4, fwd, 0, 2, 0](i, c;) in
  let (;) = drop(j) in (d, ts;)
def make3(c: f64;) -> (f64, stack[3, stack[4, <f64, f64, i64>]];) =
  scan[make2, 3, fwd, 0, 1, 0](c;)
def read1(c: f64, t: <f64, f64, i64>;) -> (f64;) =
  let <a: f64, k: f64, i: i64> = t in let x: f64 = astype[dtype=f64](i) in
  let y: f64 = c * k in let z: f64 = y + a in z - x
def read2(c: f64, ts: stack[4, <f64, f64, i64>];) -> (f64;) =
  scan[read1, 4, {way}, 0, 1, 0](c, ts;)
def read3(c: f64, ts: stack[3, stack[4, <f64, f64, i64>]];) -> (f64;) =
  scan[read2, 3, {way}, 0, 1, 0](c, ts;)
def f(c: f64;) -> (f64, f64;) =
  let (d: f64, ts: stack[2, stack[3, stack[4, <f64, f64, i64>]]];) =
    scan[make3, 2, fwd, 0, 1, 0](c;) in
  let e: f64 = scan[read3, 2, {way}, 0, 1, 0](d, ts;) in (d, e;)
"""


@pytest.mark.parametrize("way", ["fwd", "rev"])
def test_stacks_of_stacks_of_stacks_have_columns_for_what_is_not_known(way):
    """A constant and the round have none: of the three parts of a row one is stored."""
    p = program(STACKED.format(way=way))
    agree(p, "f", 0.3)
    taped = [(n, t.shape) for n, t, _ in NATIVE.code(p, "f").taped]
    assert taped == [(4, ()), (3, (4,)), (2, (12,))]


def compared(x):
    """Numbers that are known, on either side."""
    total = x
    for known in (-1.0, 0.0, 2.0, math.inf):
        for truth in (x < known, known < x, x <= known, known >= x, x == known, known != x):
            total = total * 3.0 + np.where(truth, 1.0, 0.5)
    return total


@pytest.mark.parametrize("x", [-1.0, -0.0, 0.5, 2.0, 7.0, math.inf, math.nan])
def test_comparisons_with_numbers_that_are_known(x):
    p = lineara.jit(compared).program(0.3)
    agree(p.program, p.name, *p.operands((x,)))


NOTHING = "def f(x: f64[0], y: f64[3];) -> (f64, f64;) ="


@pytest.mark.parametrize("fold", ["max", "min", "sum"])
def test_folds_of_nothing_are_the_interpreters(fold):
    p = program(
        f"{NOTHING} let a: f64 = {fold}[axis=(0,), keepdims=false](x) in "
        f"let b: f64 = {fold}[axis=(0,), keepdims=false](y) in (a, b;)"
    )
    agree(p, "f", np.zeros(0), np.arange(3.0))


DROPPED = """
def two(x: f64[4], i: i64;) -> (f64, f64;) = let y: f64 = index[at=(i,)](x) in (y, y;)
def one(x: f64[4], i: i64;) -> (f64;) =
  let (;) = drop(index[at=(i,)](x)) in let a: f64 = index[at=(0,)](x) in a * a
def f(x: f64[4], i: i64, k: i64;) -> (f64;) =
  let (;) = drop(two(x, i;)) in one(x, k;)
"""


@pytest.mark.parametrize(("i", "k"), [(2, 3), (4, 3), (2, 5)])
def test_what_is_dropped_is_run_where_it_may_raise(i, k):
    agree(program(DROPPED), "f", np.arange(1.0, 5.0), i, k)


UNREAD = """
def g(x: f64, y: f64;) -> (f64, f64;) = let a: f64 = x * x in let b: f64 = y + x in (a, b;)
def f(x: f64, k: f64;) -> (f64;) =
  let y: f64 = k / x in let (a: f64, b: f64;) = g(x, y;) in let (;) = drop(b) in a
"""


def test_what_no_result_of_a_definition_needs_is_not_calculated():
    p = program(UNREAD)
    assert agree(p, "f", 3.0, 2.0) == (9.0,)
    assert "fdiv" not in NATIVE.code(p, "f").text


def test_positions_of_every_dtype_are_looked_up():
    """Those that no register holds are called back for."""
    for dtype in ("i8", "i16", "i32", "u8", "u32", "i64"):
        p = program(f"""
def f(x: f64[5], k: {dtype}[3];) -> (f64[3];) =
  let y: f64[3] = index[at=(k,)](x) in (y;)
""")
        k = np.array([3, 0, 4], f"{dtype[0]}{int(dtype[1:]) // 8}")
        (y,) = agree(p, "f", np.arange(5.0) * 1.5, k)
        assert y.tolist() == [4.5, 0.0, 6.0], dtype


@pytest.mark.parametrize("depth", [8, 24])
def test_what_a_definition_needs_is_asked_once(depth, monkeypatch):
    """Each of them calls the one before twice."""
    text = "def f0(x: f64;) -> (f64;) = sin(x)\n"
    for k in range(1, depth):
        calls_ = f"let a: f64 = f{k - 1}(x;) in let b: f64 = f{k - 1}(a;) in b"
        text += f"def f{k}(x: f64;) -> (f64;) = {calls_}\n"
    asked, block = [], demand.Demand.block

    def counted(self, *of):
        asked.append(of)
        return block(self, *of)

    monkeypatch.setattr(demand.Demand, "block", counted)
    assert demand.Demand(program(text), False).of(f"f{depth - 1}", (True,)) == (True,)
    assert len(asked) == depth


def test_powers_of_numbers_with_known_exponents_are_pythons():
    for k in (0, 1, 2, 3, 4, 5, 7, 0.5, 2.5, -1, -2, -3):
        p = lineara.jit(functools.partial(lambda k, x: x**k, k)).program(1.5)
        for x in (0.0, -0.0, 0.3, -2.5, 700.0, 1e300, -1e300, 5e-324, np.inf, -np.inf, np.nan):
            agree(p.program, p.name, *p.operands((x,)))


# --- what asks nobody -----------------------------------------------------------------------------


@pytest.mark.parametrize("f", ["det", "inv", "cholesky", "solve", "slogdet"])
def test_factors_of_small_matrices_ask_nobody(f):
    """Python is there for matrices that have none."""
    for n in (1, 2, 3, 5):
        a = rng.normal(size=(n, n))
        a = a @ a.T + np.eye(n)
        args = (a, a[0]) if f == "solve" else (a,)
        g = lineara.jit(lambda *args: np.sum(getattr(np.linalg, f)(*args)), engine="native")
        assert np.allclose(g(*args), np.sum(getattr(np.linalg, f)(*args)), rtol=1e-12)
        assert not [s for s in lineara.explain(g, *args).machine_code if "called back" in s]
        p = definition(g, *args)
        agree(*p)
        assert not [name for name in NATIVE.code(*p[:2]).addresses if name.startswith("lapack.")]


def definition(jitted, *args):
    p = jitted.program(*args)
    return p.program, p.name, *p.operands(args)


def test_arithmetic_of_numbers_asks_nobody():
    def f(x, n):
        rest = x**3, x**0.5, abs(x), min(x, 2.0), max(n, 5)
        return x % 2.5, x // 2.5, n % 3, n // 3, -n % 3, math.floor(x), int(x), *rest

    g = lineara.jit(f, engine="native")
    assert [g(7.3, 17) for _ in range(2)] == [f(7.3, 17)] * 2
    assert not [s for s in lineara.explain(g, 7.3, 17).machine_code if "called back" in s]


@pytest.mark.parametrize(
    "shapes",
    [((4, 3), (3, 5)), ((1, 3), (3, 5)), ((4, 3), (3, 1)), ((4, 1), (1, 5)), ((9, 8), (8,))],
)
def test_products_of_small_matrices_ask_nobody(shapes):
    args = [rng.normal(size=s) for s in shapes]
    p = definition(lineara.jit(lambda a, b: a @ b), *args)
    agree(*p, engines=[NATIVE])
    assert not NATIVE.code(*p[:2]).sites


def test_large_products_are_those_of_scipys_blas():
    p = definition(lineara.jit(lambda a, b: a @ b), rng.normal(size=(40, 41)), np.ones((41, 40)))
    agree(*p, engines=[NATIVE])
    code = NATIVE.code(*p[:2])
    assert [name for name in code.addresses if name.startswith("blas.")]
    assert not code.sites


@pytest.mark.parametrize(("rows", "called"), [(2**31 - 1, True), (2**31, False)])
def test_blas_has_32_bits_for_a_length(rows, called):
    text = f"def f(a: f64[{rows},9], b: f64[9,9];) -> (f64[{rows},9];) = matmul(a, b)"
    addresses = NATIVE.code(program(text), "f").addresses
    assert bool([name for name in addresses if name.startswith("blas.")]) is called


def test_exact_sums_of_rows_ask_nobody():
    p = definition(lineara.jit(lambda a: np.sum(a)), rng.normal(size=500))
    agree(*p)
    assert EXACT.takes(*p[:2]) is None
    assert not EXACT.code(*p[:2]).sites


# --- folds in regions -----------------------------------------------------------------------------

WHOLE = {
    "max of rows": lambda x: np.max((x * 7.0).astype(int) * 3 - 1, axis=1),
    "min of columns": lambda x: np.min((x * 7.0).astype(int) * 3 - 1, axis=0),
    "sum of truth": lambda x: np.sum((x * 7.0 > 1.0) & (x < 0.5), axis=0),
    "sum of whole numbers": lambda x: np.sum((x * 7.0).astype(int) * 3 - 1),
    "max of truth": lambda x: np.max((x * 7.0 > 1.0) & (x < 0.5), axis=0),
}


@pytest.mark.parametrize("name", WHOLE)
def test_lines_of_whole_numbers_and_truth_are_what_they_are_alone(name, monkeypatch):
    monkeypatch.setattr(emitted, "key_of", lambda *_: "")  # which does not name these sizes
    monkeypatch.setattr(regions, "BLOCK", 256)
    monkeypatch.setattr(regions, "BLOCKED", 512)
    x = rng.normal(size=(203, 5))
    p, name, *values = definition(lineara.jit(WHOLE[name]), x)
    agree(p, name, *values, engines=[Native()])


# --- the direct call ------------------------------------------------------------------------------


def test_results_that_are_true_or_false_are_pythons():
    f, call = prepared(lambda x: (x > 1.0, x < 1.0, x * 2.0), 3.0)
    assert str(f(3.0)) == str(call(3.0)) == "(True, False, 6.0)"


@pytest.fixture
def without_a_function(monkeypatch):
    """Python's interface lacks one; what was remembered of it is forgotten before and after."""
    address = lower.address_of
    with monkeypatch.context() as m:
        m.setattr(lower, "address_of", lambda n: None if n == "Py_IncRef" else address(n))
        lower._api.cache_clear()
        yield
    lower._api.cache_clear()


def test_a_process_that_lacks_a_function_of_pythons_has_no_direct_call(without_a_function):
    square = program("def f(x: f64;) -> (f64;) = x * x")
    assert not lower.lowered(square, "f").is_direct
    assert run(square, "f", 3.0, engine="native").results == (9.0,)


def test_a_process_that_has_them_has_a_direct_call():
    assert lower.lowered(program("def f(x: f64;) -> (f64;) = x * x"), "f").is_direct


def straight(n, folder):
    """A function of 4 n operations in a row, from a file."""
    file = folder / f"straight_{n}.py"
    lines = ["x = x * y", "y = y + 0.5", "y = y - x", "x = np.sin(x)"] * n
    body = "\n".join([f"    {line}" for line in (*lines, "return x + y")])
    file.write_text(f"def straight(x, y):\n{body}\n", encoding="utf-8")
    space: dict = {"np": np}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    return space["straight"]


def test_what_an_operation_calls_of_python_from_source_to_gradient(tmp_path, monkeypatch):
    monkeypatch.setenv("LINEARA_CACHE_DIR", "off")
    read, made = {}, {}
    for n in (10, 20):
        f = straight(n, tmp_path)

        def reading(f=f):
            structured.__self__.pop(f.__code__, None)
            assert not isinstance(structured(f), str)

        read[n] = calls(reading)
        made[n] = calls(lambda f=f: lineara.jit(lineara.grad(f), engine="native")(0.3, 0.4))
    assert read[20] - read[10] <= 40 * 95
    assert made[20] - made[10] <= 40 * 670


# --- loops over places ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "marked"),
    [((60, 3), False), ((60, 7), False), ((60, 8), True), ((16, 8), False), ((17, 8), True)],
)
def test_only_long_rows_of_large_arrays_are_loops_that_stay(shape, marked):
    """LLVM unrolls the others: it makes vectors of the loop around, or has few places."""
    x, c = rng.normal(size=shape), rng.normal(size=shape[0])
    f = lineara.jit(lambda x, c: (x * c[:, None])[::-1], engine="native").program(x, c)
    (y,) = agree(f.program, f.name, *f.operands((x, c)))
    np.testing.assert_array_equal(y, (x * c[:, None])[::-1])
    text = NATIVE.code(f.program, f.name).text
    assert ("llvm.loop.unroll.disable" in text) == marked


def test_branches_that_lie_too_deep_in_each_other_are_interpreted():
    deep = 400
    text = "".join([
        f"def f{k}(p: bool, x: f64;) -> (f64;) = "
        f"let y: f64 = sin(x) in cond[f{k + 1}, g](p, p, y;)\n"
        for k in range(deep)
    ])  # fmt: skip
    text += f"def f{deep}(p: bool, x: f64;) -> (f64;) = let (;) = drop(p) in x\n"
    p = program(f"{text}def g(p: bool, x: f64;) -> (f64;) = let (;) = drop(p) in x * x\n")
    why = NATIVE.takes(p, "f0")
    assert why == (
        "f0 is not lowered: its branches and calls lie in each other deeper than Python's "
        f"recursion goes ({sys.getrecursionlimit()})"
    )
    x = 0.5
    for _ in range(deep):
        x = np.sin(x)
    for engine in ("interpreter", "adaptive"):
        assert run(p, "f0", True, 0.5, engine=engine).results == (x,)

"""Reading and writing parts of arrays: work and bytes are linear in the number of reads and writes.

Closed forms in n, the length of an array each element of which is read or written once.
"""

import random

import numpy as np
import pytest

from lineara.engines import run
from lineara.engines.memory import Owners
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.transpose import transpose

SIZES = (4, 9, 30)


def reads(n):
    """s = sum of sin(x[i]), element by element."""
    lines = [
        f"let a{i} = index[at=({i},)](x) in let p{i} = sin(a{i}) in let s{i + 1} = s{i} + p{i} in"
        for i in range(n)
    ]
    return f"def f(x: f64[{n}];) -> (f64;) = let s0 = 0.0 in {' '.join(lines)} s{n}"


def writes(n):
    """t[0] = x, t[i] = sin(t[i - 1]), then the sum: a table that is filled as it is read."""
    lines = [
        f"let a{i} = index[at=({i - 1},)](t{i}) in let p{i} = sin(a{i}) in "
        f"let t{i + 1} = put[{i}](t{i}, p{i}) in"
        for i in range(1, n)
    ]
    return (
        f"def f(x: f64;) -> (f64;) = let t0 = zeros[f64[{n}]] in let t1 = put[0](t0, x) in "
        f"{' '.join(lines)} sum[axis=(0,), keepdims=false](t{n})"
    )


def sums(n):
    """t[i] += x[i] * x[i], then the sum."""
    lines = [
        f"let a{i} = index[at=({i},)](x) in let p{i} = a{i} * a{i} in "
        f"let t{i + 1} = accum[{i}](t{i}, p{i}) in"
        for i in range(n)
    ]
    return (
        f"def f(x: f64[{n}];) -> (f64;) = let t0 = zeros[f64[{n}]] in {' '.join(lines)} "
        f"sum[axis=(0,), keepdims=false](t{n})"
    )


def outcomes(text, x, d):
    """Value, jvp, linear half, its transpose, vjp, and the vjp of the erased vjp."""
    p = vjp(check(parse(text)), "f")
    p = check(vjp(erase(p, "f.vjp"), "f.vjp.e"))
    *_, tape = run(p, "f.jvp.nl", x).results
    return {
        "f": run(p, "f", x),
        "jvp": run(p, "f.jvp", x, d),
        "lin": run(p, "f.jvp.lin", tape, d),
        "t": run(p, "f.jvp.lin.t", tape, 1.0),
        "vjp": run(p, "f.vjp", x, 1.0),
        "hvp": run(p, "f.vjp.e.vjp", x, 1.0, 0.0, d),
    }


@pytest.mark.parametrize("n", SIZES)
def test_n_reads_are_linear_in_n(n):
    x, d = np.linspace(0.1, 1, n), np.linspace(1, 2, n)
    found = outcomes(reads(n), x, d)
    assert {k: v.work for k, v in found.items()} == {
        "f": 3 * n, "jvp": 7 * n - 1, "lin": 3 * n - 1, "t": 2 * n, "vjp": 6 * n,
        "hvp": 17 * n - 1,
    }  # fmt: skip
    assert {k: v.written // 8 for k, v in found.items()} == {
        "f": 3 * n, "jvp": 7 * n - 1, "lin": 3 * n - 1, "t": 3 * n, "vjp": 7 * n,
        "hvp": 19 * n - 1,
    }  # fmt: skip
    np.testing.assert_allclose(found["vjp"].lresults[0], np.cos(x), rtol=1e-14)
    np.testing.assert_allclose(found["hvp"].lresults[0], -np.sin(x) * d, rtol=1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_a_table_that_is_filled_as_it_is_read_is_linear_in_n(n):
    found = outcomes(writes(n), 0.5, 1.0)
    assert {k: v.work for k, v in found.items()} == {
        "f": 4 * n - 3, "jvp": 8 * n - 6, "lin": 3 * n - 2, "t": 3 * n - 2, "vjp": 8 * n - 6,
        "hvp": 20 * n - 15,
    }  # fmt: skip
    assert {k: v.written // 8 for k, v in found.items()} == {
        "f": 4 * n - 1, "jvp": 9 * n - 3, "lin": 4 * n - 1, "t": 4 * n - 1, "vjp": 9 * n - 3,
        "hvp": 23 * n - 10,
    }  # fmt: skip
    p = vjp(parse(writes(n)), "f")
    ahead = run(p, "f", 0.5 + 1e-30j, checked=False).results[0].imag * 1e30
    np.testing.assert_allclose(found["vjp"].lresults[0], ahead, rtol=1e-13)
    p = erase(p, "f.vjp")
    ahead = run(p, "f.vjp.e", 0.5 + 1e-30j, 1.0, checked=False).results[1].imag * 1e30
    np.testing.assert_allclose(found["hvp"].lresults[0], ahead, rtol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_adding_to_a_table_is_linear_in_n(n):
    x, d = np.linspace(0.1, 1, n), np.linspace(1, 2, n)
    found = outcomes(sums(n), x, d)
    assert found["f"].work == 4 * n - 1
    assert found["f"].written == 8 * (4 * n + 1)
    np.testing.assert_allclose(found["vjp"].lresults[0], 2 * x, rtol=1e-14)
    np.testing.assert_allclose(found["hvp"].lresults[0], 2 * d, rtol=1e-14)
    small, large = (outcomes(sums(m), np.ones(m), np.ones(m)) for m in (10, 20))
    for k in found:
        per_element = large[k].work - small[k].work, large[k].written - small[k].written
        assert found[k].work == small[k].work + per_element[0] * (n - 10) // 10
        assert found[k].written == small[k].written + per_element[1] * (n - 10) // 10


@pytest.mark.parametrize("n", SIZES)
def test_copies_and_drops_in_place_of_reads_are_quadratic(n):
    text = f"def f(; ~x0: f64[{n}]) -> (; f64) = let ~s0 = zero[f64] in " + " ".join(
        f"let (; ~d{i}, ~x{i + 1}) = dup(~x{i}) in let ~a{i} = index[at=({i},)](~d{i}) in "
        f"let ~s{i + 1} = ~s{i} + ~a{i} in"
        for i in range(n)
    )
    p = transpose(parse(f"{text} let (;) = drop(~x{n}) in ~s{n}"), "f")
    ahead, back = run(p, "f", np.ones(n)), run(p, "f.t", 1.0)
    assert ahead.lresults[0] == n
    np.testing.assert_array_equal(back.lresults[0], np.ones(n))
    assert ahead.work == n * n + n + n  # each index forgets what it does not read
    assert back.work == n * n + n + 1
    assert back.written >= 8 * n * n


# --- reading, adding, putting ------------------------------------------------------------------


def test_put_is_a_linear_map_and_its_transpose_is_too():
    text = "def f(; ~x: f64[4], ~y: f64[2]) -> (; f64[4]) = put[1:3](~x, ~y)"
    p = transpose(transpose(parse(text), "f"), "f.t")
    check(p)
    assert str(parse(str(p))) == str(p)
    x, y, c = np.arange(4.0), np.array([7.0, 8.0]), np.array([3.0, 1.0, 4.0, 1.5])
    ahead, back = run(p, "f", x, y), run(p, "f.t", c)
    np.testing.assert_array_equal(ahead.lresults[0], [0, 7, 8, 3])
    np.testing.assert_array_equal(back.lresults[0], [3, 0, 0, 1.5])
    np.testing.assert_array_equal(back.lresults[1], [1, 4])
    again = run(p, "f.t.t", x, y)
    np.testing.assert_array_equal(again.lresults[0], ahead.lresults[0])
    assert (ahead.work, back.work, again.work) == (2, 0, 2)
    assert back.work - 4 == ahead.work - 6  # W(T e) - in(T e) = W(e) - in(e)


@pytest.mark.parametrize("n", [1, 5])
def test_read_and_accum_are_each_others_transpose(n):
    text = f"def f(i: i64[{n}]; ~x: f64[6]) -> (; f64[{n}], f64[6]) = read[i](~x)"
    p = transpose(transpose(parse(text), "f"), "f.t")
    i, x = np.arange(n) % 2, np.arange(6.0)
    y, rest = run(p, "f", i, x).lresults
    np.testing.assert_array_equal(y, x[i])
    np.testing.assert_array_equal(rest, x)
    back = run(p, "f.t", i, np.ones(n), np.zeros(6))
    np.testing.assert_array_equal(back.lresults[0], np.bincount(i, minlength=6))
    assert (run(p, "f", i, x).work, back.work, run(p, "f.t.t", i, x).work) == (0, n, 0)


def test_a_position_that_is_put_twice_is_refused():
    p = parse("def f(i: i64[2], x: f64[3], y: f64[2];) -> (f64[3];) = put[i](x, y)")
    x, y = np.zeros(3), np.array([1.0, 2.0])
    np.testing.assert_array_equal(run(p, "f", np.array([2, 0]), x, y).results[0], [2, 0, 1])
    with pytest.raises(ProgramError, match="a position twice"):
        run(p, "f", np.array([1, -2]), x, y)
    p = parse("def f(i: i64[2], x: f64[3,3], y: f64[2];) -> (f64[3,3];) = put[i, ..., i](x, y)")
    run(p, "f", np.array([1, 2]), np.zeros((3, 3)), y)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(x: f64[3];) -> (f64, f64[3];) = read[0](x)", r"the form is read\[i\]\(~x\)"),
        ("def f(x: f64[3]; ~y: f64) -> (; f64[3]) = accum[0](x, ~y)", "one zone"),
        ("def f(x: f64[3];) -> (f64[3];) = accum[0](x)", "takes an array and a part"),
        ("def f(x: f64[3], y: f32;) -> (f64[3];) = put[0](x, y)", "the part is f64"),
        ("def f(x: f64[3], y: f64[2];) -> (f64[3];) = x + y", "give it arrays of one shape"),
        ("def f(x: f64[1,3], y: f64[2,3];) -> (f64[2,3];) = x * y", "give it arrays of one shape"),
    ],
)
def test_what_is_no_part_of_an_array_is_refused(text, message):
    with pytest.raises(ProgramError, match=message):
        check(parse(text))


def test_a_read_may_stand_at_the_end_of_a_block():
    text = """
def f(; ~x: f64[3]) -> (; f64, f64[3]) = read[1](~x)
def g(; ~x: f64[3]) -> (; f64) =
  let (; ~y: f64, ~z: f64[3]) = { let ~w = 2.0_k in read[0](~w) } in
  let (;) = drop(read[1](~z)) in
  ~y
""".replace("let ~w = 2.0_k in read[0](~w)", "let k = 2.0 in let ~w = k * ~x in read[0](~w)")
    p = erase(erase(parse(text), "f"), "g")
    check(p)
    y, rest = run(p, "f.e", np.array([1.0, 2.0, 3.0])).results
    assert (y, list(rest)) == (2.0, [1.0, 2.0, 3.0])
    assert run(p, "g.e", np.array([1.0, 2.0, 3.0])).results == (2.0,)


def test_whole_numbers_are_written_and_have_no_tangent():
    text = """
def f(x: f64[3];) -> (f64[2];) =
  let i = zeros[i64[2]] in
  let one = 2_i64 in
  let j = put[1](i, one) in
  index[at=(j,)](x)
"""
    p = check(vjp(parse(text.replace("zeros[i64[2]]", "[0, 0]_i64")), "f"))
    out = run(p, "f.vjp", np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0]))
    np.testing.assert_array_equal(out.results[0], [1, 3])
    np.testing.assert_array_equal(out.lresults[0], [5, 0, 7])


# --- who may write -----------------------------------------------------------------------------


class Program:
    """A random program of views, copies, products, calls, reads and writes of arrays of 4."""

    def __init__(self, seed, callee=None):
        self.rng = random.Random(seed)
        self.lines, self.arrays, self.count = [], ["x"], 0
        self.callee = callee

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def step(self):
        pick, part = self.rng.choice, self.rng.choice(["0", "1:3", "::-1", "j"])
        a, b = pick(self.arrays[-3:]), pick(self.arrays)
        v, w = self.fresh(), self.fresh()
        forms = [
            f"let {w} = index[at=({part},)]({b}) in let {v} = accum[{part}]({a}, {w}) in",
            f"let {w} = index[at=({part},)]({b}) in let {v} = put[{part}]({a}, {w}) in",
            f"let {v} = put[{part}]({a}) in",
            f"let {v} = accum[]({a}, {b}) in",
            f"let {v} = {a} in",
            f"let {v} = reshape[shape=(4,)]({a}) in",
            f"let {v} = {{ let {w} = {a} + {b} in ({w};) }} in",
            f"let {w} = <{a}, {b}> in let <{v}, {w}b> = {w} in let (;) = drop({w}b) in",
            f"let {v} = zeros[f64[4]] in",
        ]
        if self.callee:
            forms += [f"let {v} = {self.callee}({a}, {b}, j;) in"] * 3
        self.lines.append(pick(forms))
        self.arrays.append(v)

    def text(self, name):
        for _ in range(self.rng.randint(4, 14)):
            self.step()
        body = " ".join(self.lines)
        used = [v for v in self.arrays if v not in ("x",)]
        total, adds = "x", []
        for v in ["y", *used]:
            t = self.fresh()
            adds.append(f"let {t} = {total} + {v} in")
            total = t
        return (
            f"def {name}(x: f64[4], y: f64[4], j: i64[2];) -> (f64[4];) = {body} "
            f"let k = index[at=(j,)](x) in let (;) = drop(k) in {' '.join(adds)} {total}"
        )


@pytest.mark.parametrize("seed", range(40))
def test_writing_in_place_gives_what_copies_give(seed, monkeypatch):
    callee = Program(seed + 1000).text("g")
    p = parse(callee + "\n" + Program(seed, "g").text("f"))
    p = vjp(check(p), "f")
    p = check(jvp(erase(p, "f.vjp"), "f.vjp.e"))
    rng = np.random.default_rng(seed)
    x, y, c, dx, dy, dc = rng.normal(size=(6, 4))
    j = np.array([3, 1])
    calls = {
        "f": (x, y, j), "f.jvp": (x, y, j, dx, dy), "f.vjp": (x, y, j, c),
        "f.vjp.e.jvp": (x, y, j, c, dx, dy, dc),
    }  # fmt: skip
    before = [np.copy(v) for v in (x, y, j, c)]
    fast = {k: run(p, k, *v) for k, v in calls.items()}
    for a, b in zip((x, y, j, c), before, strict=True):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(Owners, "take", lambda self, array: None)
    for k, v in calls.items():
        slow = run(p, k, *v)
        for a, b in zip(
            fast[k].results + fast[k].lresults, slow.results + slow.lresults, strict=True
        ):
            np.testing.assert_array_equal(a, b)
        assert fast[k].work == slow.work
        assert fast[k].written <= slow.written
    ahead = run(p, "f", x + 1e-30j * dx, y + 1e-30j * dy, j, checked=False).results[0].imag * 1e30
    np.testing.assert_allclose(fast["f.jvp"].lresults[0], ahead, rtol=1e-12, atol=1e-12)
    x_bar, y_bar = fast["f.vjp"].lresults
    np.testing.assert_allclose(c @ ahead, x_bar @ dx + y_bar @ dy, rtol=1e-12)


def test_results_are_the_callers_own():
    p = parse("def f(x: f64[2];) -> (f64[2], f64[2], f64[2];) = let k = [1.0, 2.0] in (x, x, k;)")
    x = np.ones(2)
    for _ in range(2):
        a, b, k = run(p, "f", x, checked=False).results
        assert [list(v) for v in (a, b, k, x)] == [[1, 1], [1, 1], [1, 2], [1, 1]]
        for v in (a, b, k):
            v[:] = 9


# --- what does not move ------------------------------------------------------------------------


def test_a_constant_has_no_tangent_so_no_zero_meets_an_infinity():
    p = parse(
        "def f(x: f64;) -> (f64;) = let k = 3.0 in let e = floor(x) in let p = power(x, k) in "
        "let q = e * k in p + q"
    )
    p = vjp(p, "f")
    text = str(p).partition("def f.jvp(")[2].partition("def ")[0]
    assert "power" in text
    assert "log" not in text
    assert "zero" not in text
    p = erase(p, "f.vjp")
    p = check(jvp(p, "f.vjp.e"))
    out = run(p, "f.vjp.e.jvp", -1.5, 1.0, 1.0, 0.0)
    assert out.results[1:] == (3 * 1.5**2,)
    assert out.lresults[1:] == (6 * -1.5,)


def test_a_comparison_asks_for_no_copy_of_a_tangent():
    p = parse("""
def f(x: f64[3], y: f64;) -> (f64[3];) =
  let k = broadcast_to[shape=(3,)](y) in
  let c = less(x, k) in
  let a = sin(x) in
  let d = less(a, x) in
  let e = logical_and(c, d) in
  where(e, a, x)
""")
    p = check(jvp(p, "f"))
    text = str(p)
    assert text.count("dup") == 1  # x goes to sin and to where
    out = run(p, "f.jvp", np.array([0.1, 0.2, 2.0]), 1.0, np.ones(3), 1.0)
    np.testing.assert_allclose(out.lresults[0], [np.cos(0.1), np.cos(0.2), 1.0])


@pytest.mark.parametrize(
    "dropped",
    [
        "read[i](~x)",
        "accum[i](~x, ~y)",
        "put[i](~x, ~y)",
        "{ let ~z = index[at=(i,)](~x) in (; ~z, ~y) }",
        "{ let ~z = keep(~x, m) in let ~w = accum[i](~z, ~y) in ~w }",
    ],
)
def test_the_transpose_of_what_is_dropped_costs_no_more(dropped):
    one = "~y" not in dropped
    text = f"""
def f(i: i64[1], m: bool[3]; ~x: f64[3], ~y: f64[1]) -> (; f64) =
  let (;) = drop((i, m;)) in
  let (;) = drop({dropped}) in
  {"let (;) = drop(~y) in" if one else ""}
  zero[f64]
"""
    p = check(transpose(check(parse(text)), "f"))
    i, m, x, y = np.array([1]), np.array([True, False, True]), np.ones(3), np.ones(1)
    ahead, back = run(p, "f", i, m, x, y), run(p, "f.t", i, m, 1.0)
    assert [list(v) for v in back.lresults] == [[0, 0, 0], [0]]
    assert back.work - 1 <= ahead.work - 4

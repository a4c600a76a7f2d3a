"""Lanes that go different ways: values, derivatives to order 2 and transposes are those of a loop.

Work is that of the lanes that are alive, counted exactly.
"""

import numpy as np
import pytest

from lineara.engines import Ask, run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.passes.batch import batch, batched_name
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.rules_in_text import custom_vjp
from lineara.passes.transpose import transpose

N = 4
rng = np.random.default_rng(0)

BRANCH = """
def a(x: f64, k: f64;) -> (f64;) = log(x) * k
def b(x: f64, k: f64;) -> (f64;) = let (;) = drop(k) in x * x
def f(x: f64, k: f64;) -> (f64;) =
  let z = 0.0 in let p = greater(x, z) in cond[a, b](p, x, k;)
"""
LOOP = """
def p(k: f64, c: f64;) -> (bool;) = less(c, k)
def s(k: f64, c: f64;) -> (f64;) = let (;) = drop(k) in c * c + c
def f(k: f64, x: f64;) -> (f64;) = let y = while[p, s, 1](k, x;) in y * k
"""
SCAN = """
def s(k: f64, c: f64, x: f64;) -> (f64, f64;) = let y = sin(c) * k in let z = y + x in (z, y;)
def f(k: f64, x: f64[4];) -> (f64[4], f64;) =
  let c = 1.0 in
  let (d: f64, y: f64[4];) = scan[s, 4, fwd, 1, 1, 0](k, c, x;) in (y, d;)
"""
CASES = {
    "branch": (BRANCH, (0, None), ([0.5, -1.0, 2.0, -0.3], 0.7)),
    "switch": (
        """
def a(x: f64[3];) -> (f64[3];) = sin(x)
def b(x: f64[3];) -> (f64[3];) = x * x
def c(x: f64[3];) -> (f64[3];) = exp(x) * x
def f(i: i64, x: f64[3];) -> (f64[3];) = switch[a, b, c](i, x;)
""",
        (0, 0),
        (np.array([2, 0, 2, 0]), rng.normal(size=(N, 3))),
    ),
    "while, one bound": (LOOP, (None, 0), (3.0, [0.5, 0.1, 4.0, 1.0])),
    "while, bounds of their own": (LOOP, (0, None), ([3.0, 0.1, 2.0, 9.0], 0.5)),
    "scan, batched invariant": (SCAN, (0, None), (rng.normal(size=N), rng.normal(size=4))),
    "scan, batched rows": (SCAN, (None, 0), (0.7, rng.normal(size=(N, 4)))),
    "counted, as often as each lane says": (
        """
def p(n: i64, i: i64, y: f64;) -> (bool;) = let (;) = drop(y) in less(i, n)
def s(n: i64, i: i64, y: f64;) -> (i64, f64;) =
  let (;) = drop(n) in let one = 1_i64 in let j = i + one in let z = sin(y) in (j, z;)
def f(n: i64, x: f64;) -> (f64;) =
  let i = 0_i64 in let (j, y;) = while[p, s, 1](n, i, x;) in let (;) = drop(j) in y * x
""",
        (0, 0),
        (np.array([3, 0, 5, 1]), rng.normal(size=N)),
    ),
    "recursion": (
        """
def one(n: i64, x: f64;) -> (f64;) = let (;) = drop(n) in let (;) = drop(x) in 1.0
def rec(n: i64, x: f64;) -> (f64;) =
  let o = 1_i64 in let m = n - o in let y = f(m, x;) in sin(y * x)
def f(n: i64, x: f64;) -> (f64;) =
  let z = 0_i64 in let p = equal(n, z) in cond[one, rec](p, n, x;)
""",
        (0, 0),
        (np.array([3, 0, 5, 1]), rng.normal(size=N)),
    ),
    "a loop in a branch": (
        """
def p(k: f64, c: f64;) -> (bool;) = less(c, k)
def s(k: f64, c: f64;) -> (f64;) = let (;) = drop(k) in c * c + c
def a(x: f64, k: f64;) -> (f64;) = while[p, s, 1](k, x;)
def q(c: f64, x: f64;) -> (f64, f64;) = let y = c * x in (y, y;)
def b(x: f64, k: f64;) -> (f64;) =
  let xs = broadcast_to[shape=(3,)](x) in
  let (y, ys;) = scan[q, 3, fwd, 0, 1, 0](k, xs;) in y * sum[axis=(0,), keepdims=false](ys)
def f(x: f64, k: f64;) -> (f64;) =
  let z = 0.7 in let p = greater(x, z) in cond[a, b](p, x, k;)
""",
        (0, None),
        ([0.5, 1.0, 2.0, 0.3], 3.0),
    ),
}


def lane(value, axis, i):
    """One of N values."""
    if axis is None:
        return value
    return (
        tuple([lane(v, axis, i) for v in value])
        if isinstance(value, tuple)
        else np.take(value, i, axis)
    )


def same(found, wanted) -> None:
    """The lanes of a result; a result without lanes is that of each."""
    if isinstance(found, tuple):
        for k, part in enumerate(found):
            same(part, [w[k] for w in wanted])
        return
    wanted = wanted[0] if np.ndim(found) == np.ndim(wanted[0]) else wanted
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def loop(program: Program, name: str, axes, args):
    """A definition on each lane."""
    rows = [[lane(v, a, i) for v, a in zip(args, axes, strict=True)] for i in range(N)]
    return [run(program, name, *row) for row in rows]


def compare(program: Program, name: str, axes, args) -> Program:
    """A definition over N lanes, and over as many as a formal says, beside a loop."""
    one = loop(program, name, axes, args)
    made = program
    for size, lanes in ((None, (N,)), (N, ())):
        made = check(batch(program, name, axes, size))
        assert str(parse(str(made))) == str(made)
        found = run(made, batched_name(name, axes, size), *lanes, *args)
        for zone in ("results", "lresults"):
            for k, r in enumerate(getattr(found, zone)):
                same(r, [getattr(o, zone)[k] for o in one])
    return made


@pytest.mark.parametrize("case", CASES)
def test_values_and_two_orders_are_those_of_a_loop(case):
    text, axes, args = CASES[case]
    program = check(parse(text))
    args = [np.array(a) if isinstance(a, list) else a for a in args]
    many = compare(program, "f", axes, args)
    new = batched_name("f", axes, N)
    moving = [a for a, p in zip(axes, program.defs["f"].params, strict=True) if "f" in repr(p.type)]
    forward = jvp(program, "f")
    pairs = zip(args, program.defs["f"].params, strict=True)
    directions = [rng.normal(size=np.shape(a)) for a, p in pairs if "f" in repr(p.type)]
    compare(forward, "f.jvp", (*axes, *moving), (*args, *directions))
    # a linear function of the results, so that one gradient sums over the lanes
    d = many.defs[new]
    cs = [rng.normal(size=getattr(t, "shape", ()))[()] for t in d.results]
    share = [
        0 if t != u else None for t, u in zip(d.results, program.defs["f"].results, strict=True)
    ]
    cs_one = [c if a == 0 else c / N for c, a in zip(cs, share, strict=True)]
    whole, alone = vjp(many, new), vjp(program, "f")
    first = run(check(whole), f"{new}.vjp", *args, *cs).lresults
    each = loop(alone, "f.vjp", (*axes, *share), (*args, *cs_one))
    second = erase(whole, f"{new}.vjp"), erase(alone, "f.vjp")
    tangents = [*directions, *[np.zeros_like(c) for c in cs]]
    there = run(
        check(jvp(second[0], f"{new}.vjp.e")), f"{new}.vjp.e.jvp", *args, *cs, *tangents
    ).lresults
    again = loop(
        jvp(second[1], "f.vjp.e"), "f.vjp.e.jvp",
        (*axes, *share, *moving, *share), (*args, *cs_one, *tangents),
    )  # fmt: skip
    for k, a in enumerate(moving):
        i = k + len(cs)
        found_each = (first[k], [o.lresults[k] for o in each])
        found_again = (there[i], [o.lresults[i] for o in again])
        for found, rows in (found_each, found_again):
            wanted = np.sum(rows, 0) if a is None else np.array(rows)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


FLAGS = np.array([True, False, False, True])
LINEAR = {
    "branches": (
        """
def a(x: f64; ~d: f64, ~e: f64) -> (; f64) = let ~y = x * ~d in ~y + ~e
def b(x: f64; ~d: f64, ~e: f64) -> (; f64) = let (;) = drop(x) in let (;) = drop(~e) in ~d
def f(p: bool, x: f64; ~d: f64, ~e: f64) -> (; f64) = cond[a, b](p, x; ~d, ~e)
""",
        (0, None, 0, None),
        (FLAGS, 2.0, rng.normal(size=N), 0.7),
    ),
    "branches on products": (
        """
def a(x: f64; ~d: <f64, f64[2]>) -> (; <f64, f64[2]>) = x * ~d
def b(x: f64; ~d: <f64, f64[2]>) -> (; <f64, f64[2]>) = let (;) = drop(x) in ~d
def f(p: bool, x: f64; ~d: <f64, f64[2]>) -> (; <f64, f64[2]>) = cond[a, b](p, x; ~d)
""",
        (0, 0, 0),
        (FLAGS, rng.normal(size=N), (rng.normal(size=N), rng.normal(size=(N, 2)))),
    ),
    "a scan": (
        """
def s(x: f64; ~c: f64, ~d: f64) -> (; f64, f64) =
  let ~e = x * ~c in let ~g = ~e + ~d in let (; ~h, ~i) = dup(~g) in (; ~h, ~i)
def f(x: f64[3]; ~c: f64, ~d: f64[3]) -> (; f64, f64[3]) = scan[s, 3, rev, 0, 0, 1](x; ~c, ~d)
""",
        (0, 0, None),
        (rng.normal(size=(N, 3)), rng.normal(size=N), rng.normal(size=3)),
    ),
    "positions of their own": (
        """
def f(i: i64, j: i64[2]; ~x: f64[3,4], ~y: f64[3,2]) -> (; f64[3,2], f64[3,4]) =
  let (;) = drop(i) in
  let (; ~p, ~r) = read[:, j](~x) in let ~s = put[:, j](~r, ~y) in (; ~p, ~s)
""",
        (0, 0, None, 0),
        (np.arange(4), np.array([[0, 1], [2, 1], [3, 0], [0, 3]]), rng.normal(size=(3, 4)),
         rng.normal(size=(N, 3, 2))),
    ),
}  # fmt: skip


def dot(u, v) -> float:
    """<u, v>, of products too."""
    if isinstance(u, tuple | list):
        return sum(map(dot, u, v))
    return float(np.sum(np.asarray(u) * v))


@pytest.mark.parametrize("case", LINEAR)
def test_linear_programs_and_their_transposes(case):
    text, axes, args = LINEAR[case]
    program = check(parse(text))
    many = compare(program, "f", axes, args)
    new, k = batched_name("f", axes, N), len(program.defs["f"].xs)
    back = check(transpose(many, new))
    found = run(many, new, *args).lresults
    cs = [tuple([rng.normal(size=np.shape(v)) for v in y]) if isinstance(y, tuple) else
          rng.normal(size=np.shape(y)) for y in found]  # fmt: skip
    given = run(back, f"{new}.t", *args[:k], *cs).lresults
    assert np.isclose(dot(found, cs), dot(args[k:], given))
    twice = run(check(transpose(back, f"{new}.t")), f"{new}.t.t", *args).lresults
    assert np.isclose(dot(twice, cs), dot(found, cs))


PLACES = ["i, :, j", "j, :, i", ":, j, i", "...,j", "None, j", "2, :, i", "0:2, j, k", "k, :, j"]


@pytest.mark.parametrize("at", PLACES)
def test_an_index_of_each_lane_picks_its_own_part(at):
    known = {"i": "i64", "j": "i64[2]", "k": "i64[3,2]"}
    values = {"i": np.array([1, 2, 1, 0]), "j": rng.integers(0, 3, (N, 2)),
              "k": rng.integers(0, 3, (N, 3, 2))}  # fmt: skip
    used = [v for v in known if v in at]
    one = {v: values[v][0] for v in used}
    shape = np.zeros((3, 3, 3))[eval(f"np.index_exp[{at}]", {"np": np, **one})].shape
    formals = ", ".join(["x: f64[3,3,3]", *[f"{v}: {known[v]}" for v in used]])
    result = f"f64[{','.join(map(str, shape))}]"
    program = check(parse(f"def f({formals};) -> ({result};) = index[at=({at},)](x)"))
    x = rng.normal(size=(N, 3, 3, 3))
    for choice in np.ndindex(*[2] * (1 + len(used))):
        if any(choice):
            axes = [0 if c else None for c in choice]
            args = [x if choice[0] else x[0]]
            args += [values[v] if c else one[v] for v, c in zip(used, choice[1:], strict=True)]
            compare(program, "f", axes, args)


def test_batched_twice():
    program = check(parse(BRANCH))
    rows = "def g(x: f64[3], k: f64;) -> (f64[3];) = f.b3.0n(x, k;)"
    inner = check(parse(str(batch(program, "f", (0, None), 3)) + rows))
    compare(inner, "g", (0, 0), (rng.normal(size=(N, 3)), rng.normal(size=N)))
    compare(inner, "g", (0, None), (rng.normal(size=(N, 3)), 0.5))


def test_a_rule_of_the_users_is_the_rule_over_lanes():
    program = check(parse(
        "def g(x: f64, k: f64;) -> (f64;) = x * x * k\n"
        "def fwd(x: f64, k: f64;) -> (f64, <f64, f64>;) = "
        "let z = x * x * k in let t = <x, k> in (z, t;)\n"
        "def bwd(t: <f64, f64>; ~c: f64) -> (; f64, f64) = let <x: f64, k: f64> = t in "
        "let (; ~c1, ~c2) = dup(~c) in let h = 2.0 * x * k in let ~a = h * ~c1 in "
        "let y = x * x in let ~b = y * ~c2 in (; ~a, ~b)\n"
        "def f(x: f64, k: f64;) -> (f64;) = sin(g(x, k;))"
    ))  # fmt: skip
    many = check(batch(custom_vjp(program, "g", "fwd", "bwd"), "f", (0, None), N))
    made = check(vjp(many, "f.b4.0n"))
    assert "bwd.t.b4.00n.t" in many.defs  # the cotangent of k, which lanes share, is a sum
    x, k, c = rng.normal(size=N), 0.7, rng.normal(size=N)
    found = run(made, "f.b4.0n.vjp", x, k, c).lresults
    slope = np.cos(x * x * k) * c
    np.testing.assert_allclose(found[0], slope * 2 * x * k)
    np.testing.assert_allclose(found[1], np.sum(slope * x * x))


# --- work ----------------------------------------------------------------------------------------


def test_a_branch_costs_the_lanes_that_take_it():
    steps = "".join([f"let x{i + 1} = sin(x{i}) in " for i in range(50)])
    program = check(parse(
        f"def a(x0: f64;) -> (f64;) = {steps} sin(x50)\ndef b(x: f64;) -> (f64;) = sin(x)\n"
        "def f(x: f64;) -> (f64;) = let z = 0.0 in let p = greater(x, z) in cond[a, b](p, x;)"
    ))  # fmt: skip
    many = batch(program, "f", (0,))
    back = vjp(many, "f.b.0")

    def works(n, k):
        """Of n lanes of which k take the long way."""
        x = np.where(np.arange(n) < k, 1.0, -1.0)
        return np.array([run(many, "f.b.0", n, x).work,
                         run(back, "f.b.0.vjp", n, x, np.ones(n)).work])  # fmt: skip

    value, gradient = works(10, 6) - works(10, 5)
    assert value == 50 + 2  # the steps, and where the lane stands
    assert (works(1000, 600) - works(1000, 500) == 100 * np.array([value, gradient])).all()
    assert 0 < gradient <= 4 * value


@pytest.mark.parametrize("derivative", [False, True])
def test_a_loop_costs_the_lanes_that_still_run(derivative):
    text, axes, _ = CASES["counted, as often as each lane says"]
    many = batch(check(parse(text)), "f", axes)
    many = vjp(many, "f.b.00") if derivative else many

    def work(rounds):
        n = len(rounds)
        more = (np.ones(n),) * derivative
        name = "f.b.00" + ".vjp" * derivative
        return run(many, name, n, np.array(rounds), np.ones(n), *more).work

    base = work([0, 0])
    first, second = work([1, 1]) - base, work([2, 2]) - base
    assert second == 2 * first  # every round costs the same
    per_round = 2 * (work([1, 0]) - base) - first  # what does not depend on lanes
    lane_ = work([1, 0]) - base - per_round
    for rounds in ([7, 3], [100, 2], [0, 20]):
        assert work(rounds) == base + per_round * max(rounds) + lane_ * sum(rounds)
    many_lanes = work([0] * 999 + [20]) - work([0] * 1000)
    assert many_lanes == 20 * (per_round + lane_)


def test_nobody_goes_where_no_lane_goes():
    program = check(parse(BRANCH))
    many = batch(program, "f", (0, None))
    found = run(many, "f.b.0n", 3, np.array([-1.0, 4.0, -2.0]), 1.0, ask=Ask(ieee=False)).results
    np.testing.assert_allclose(found[0], [1.0, np.log(4.0), 4.0])


# --- what is refused ------------------------------------------------------------------------------

REFUSED = [
    ("def f(n: i64, x: f64[n];) -> (f64[n];) = x", (0, None),
     "batch: n is a dimension in f, which is the same in all lanes; give it no axis"),
    ("def p(c: f64;) -> (bool;) = let z = 1.0 in less(c, z)\n"
     "def s(c: f64;) -> (f64, f64;) = let y = c + c in (y, c;)\n"
     "def f(x: f64;) -> (f64, stack[f64];) = while[p, s, 0](x;)", (0,),
     "batch: in f, while[p, s, 0] stacks what it finds in rounds whose number differs by lane; "
     "batch what is around it, or run it lane by lane"),
    ("type t = <f64, stack[f64]>\ndef a(x: t;) -> (t;) = x\n"
     "def f(p: bool, x: t;) -> (t;) = cond[a, a](p, x;)", (0, 0),
     "batch: in f, lanes go different ways with a stack[f64], which cannot be parted; batch what "
     "is around it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "axes", "message"), REFUSED, ids=[r[2][:40] for r in REFUSED])
def test_what_cannot_be_parted_says_why(text, axes, message):
    with pytest.raises(ProgramError) as caught:
        batch(check(parse(text)), "f", axes, N)
    assert caught.value.message == message


def test_an_index_that_no_branch_has_is_an_error():
    text, axes, (_, x) = CASES["switch"]
    many = batch(check(parse(text)), "f", axes, N)
    for wrong in (3, -1):
        with pytest.raises(ProgramError) as caught:
            run(many, "f.b4.00", np.array([0, wrong, 1, 2]), x)
        assert caught.value.message == f"switch: the index {wrong} is out of range for 3 branches"

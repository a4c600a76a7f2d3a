"""Batch: a program over lanes is the program on each lane."""

import numpy as np
import pytest
from random_texts import Text

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.facts.types import Product, Type
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_def
from lineara.passes.batch import batch, batched_name, over_lanes
from lineara.passes.derivatives import grad, vjp
from lineara.passes.rules_in_text import custom_jvp, custom_linear
from lineara.passes.simplify import simplify
from lineara.passes.transpose import transpose

N = 3


def draw(program: Program, t: Type, rng, axis: int | None = None):
    """A value, or N of them along an axis."""
    t = program.unfold(t)
    if isinstance(t, Product):
        return tuple([draw(program, s, rng, axis) for s in t.items])
    at = 0 if axis is None else axis % (t.ndim + 1)
    shape = t.shape if axis is None else (*t.shape[:at], N, *t.shape[at:])
    if t.dtype.kind == "i":
        return rng.integers(0, 4, shape)
    return rng.uniform(0.5, 1.5, shape) if shape else rng.uniform(0.5, 1.5)


def lane(value, axis: int | None, i: int):
    """One of N values."""
    if axis is None:
        return value
    if isinstance(value, tuple):
        return tuple([lane(v, axis, i) for v in value])
    return np.take(value, i, axis)


def same(program: Program, t: Type, many: Type, found, wanted: list) -> None:
    """The lanes of a batched result; a result without lanes is that of each."""
    t, many = program.unfold(t), program.unfold(many)
    if isinstance(t, Product):
        for k, s in enumerate(t.items):
            same(program, s, many.items[k], found[k], [w[k] for w in wanted])
        return
    shared = t == many
    for i, w in enumerate(wanted):
        np.testing.assert_allclose(found if shared else found[i], w, rtol=1e-10, atol=1e-12)


def compare(program: Program, name: str, axes: tuple, rng) -> Program:
    """A batched definition beside a loop of runs."""
    made = check(batch(program, name, axes, N))
    new = batched_name(name, axes, N)
    d, many = program.defs[name], made.defs[new]
    args = [draw(program, p.type, rng, a) for p, a in zip(d.params, axes, strict=True)]
    found = run(made, new, *args)
    loop = [
        run(program, name, *[lane(v, a, i) for v, a in zip(args, axes, strict=True)])
        for i in range(N)
    ]
    zones = [("results", d.results, many.results), ("lresults", d.lresults, many.lresults)]
    for zone, types, batched in zones:
        for k, (t, b) in enumerate(zip(types, batched, strict=True)):
            same(made, t, b, getattr(found, zone)[k], [getattr(one, zone)[k] for one in loop])
    return made


@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_over_lanes_is_a_loop(seed):
    program = check(parse(Text(seed).text, sugar=True))
    rng = np.random.default_rng(seed)
    axes = tuple([0 if rng.random() < 0.5 else None for _ in program.defs["f"].params])
    compare(program, "f", axes, rng)


OPERATIONS = [
    "def f(A: f64[2,3], x: f64[3];) -> (f64[2];) = matmul(A, x)",
    "def f(A: f64[2,3]; ~x: f64[3]) -> (; f64[2]) = matmul(A, ~x)",
    "def f(x: f64[2,3], y: f64;) -> (f64[3];) = sum[axis=(0,), keepdims=false](y * x)",
    "def f(x: f64[2,3];) -> (f64[6];) = reshape[shape=(6,)](sin(x))",
    "def f(x: f64[2,3];) -> (f64[3,2];) = permute_dims[axes=(1, 0)](x)",
    "def f(p: <f64, {a: f64[2]}>, x: f64;) -> ({a: f64[2]}, f64;) = let <y, q> = p in (q, x * y;)",
    "def f(x: f64; ~p: <f64, <f64[2]>>) -> (; <f64, <f64[2]>>) = x * ~p",
    "def f(x: f64[4], i: i64;) -> (f64;) = index[at=(i,)](x)",
    "def f(i: i64; ~x: f64[4], ~y: f64) -> (; f64, f64[4]) = let (; ~p, ~r) = read[i](~x) in "
    "let ~s = accum[0](~r, ~y) in (; ~p, ~s)",
    "def f(; ~x: f64[4], ~y: f64[2]) -> (; f64[4]) = put[1:3](~x, ~y)",
    "def f(i: i64; ~x: f64[4,2], ~y: f64[2]) -> (; f64[4,2]) = accum[i](~x, ~y)",
    "def f(i: i64; ~x: f64[4,2], ~y: f64[2]) -> (; f64[4,2]) = put[i](~x, ~y)",
    "def f(p: <f64, f64[2]>, q: <f64, f64[2]>;) -> (<f64, f64[2]>;) = p + q",
    "def f(; ~p: <f64, f64[2]>, ~q: <f64, f64[2]>) -> (; <f64, f64[2]>) = ~p + ~q",
    "def f(x: f64, y: f64;) -> (bool, f64;) = let p = less(x, y) in (p, where(p, x, y);)",
    "def f(x: f64, y: f64;) -> (f64[2];) = stack(x, y)",
    "def g(k: f64, x: f64;) -> (f64, f64;) = (k * k, k * x;)\n"
    "def f(k: f64, x: f64;) -> (f64, f64, f64, f64;) = let (a, b;) = g(k, x;) in "
    "let (c, d;) = g(x, k;) in (a, b, c, d;)",
]  # fmt: skip


@pytest.mark.parametrize("text", OPERATIONS, ids=lambda t: t[:70])
def test_operations_with_every_choice_of_lanes(text):
    program = check(parse(text))
    rng = np.random.default_rng(0)
    formals = program.defs["f"].params
    for choice in np.ndindex(*[2] * len(formals)):
        axes = tuple([0 if c else None for c, p in zip(choice, formals, strict=True)])
        compare(program, "f", axes, rng)


def test_the_lanes_may_lie_in_any_axis():
    program = check(parse("def f(x: f64[2,3], y: f64[3];) -> (f64[2];) = matmul(x, y)"))
    rng = np.random.default_rng(0)
    for axes in [(0, None), (1, 1), (2, 0), (None, 1)]:
        compare(program, "f", axes, rng)


def test_the_lanes_of_a_product_may_lie_in_any_axis():
    program = check(parse("def f(p: <f64[2], {a: f64[2,4]}>;) -> (f64[2,4];) = "
                          "let <x, q> = p in let <a> = q in "
                          "broadcast_to[shape=(2, 4)](reshape[shape=(2, 1)](x)) * a"))  # fmt: skip
    rng = np.random.default_rng(0)
    for axis in (0, 1, -1, -2):
        compare(program, "f", (axis,), rng)


def test_what_the_lanes_share_is_computed_once():
    program = check(parse("def f(k: f64[1000], x: f64;) -> (f64;) = "
                          "sum[axis=(0,), keepdims=false](sin(k)) * x"))  # fmt: skip
    made = batch(program, "f", (None, 0), N)
    one = run(program, "f", np.ones(1000), 1.0).work
    assert run(made, "f.b3.n0", np.ones(1000), np.ones(N)).work == one + N - 1


def test_gradients_of_examples_one_by_one():
    program = check(parse(
        "def f(w: f64[2], x: f64[2], y: f64;) -> (f64;) = let r = tanh(matmul(w, x)) - y in r * r"
    ))  # fmt: skip
    rng = np.random.default_rng(0)
    derived = compare(grad(program, "f"), "f.grad", (None, 0, 0), rng)
    assert [repr(t) for t in derived.defs["f.grad.b3.n00"].results] == [
        "f64[3,2]", "f64[3,2]", "f64[3]"
    ]  # fmt: skip
    compare(vjp(program, "f"), "f.vjp", (None, 0, 0, 0), rng)
    compare(vjp(program, "f"), "f.vjp", (0, None, None, None), rng)


def test_a_batched_program_has_derivatives():
    program = check(parse("def f(w: f64[2], x: f64[2];) -> (f64;) = sin(matmul(w, x))"))
    many = batch(program, "f", (None, 0), N)
    total = check(parse(str(many) + "def g(w: f64[2], x: f64[3,2];) -> (f64;) = "
                        "sum[axis=(0,), keepdims=false](f.b3.n0(w, x;))"))  # fmt: skip
    w, x = np.array([0.5, -1.0]), np.arange(6.0).reshape(3, 2)
    found = run(check(grad(total, "g")), "g.grad", w, x).results
    np.testing.assert_allclose(found[0], (np.cos(x @ w)[:, None] * x).sum(0))
    np.testing.assert_allclose(found[1], np.cos(x @ w)[:, None] * w)


REFUSED = [
    ("def f(x: [<> | <>];) -> ([<> | <>];) = x", (0,),
     "batch: [<> | <>] has a tag, which may differ from lane to lane; batch what is around it"),
    ("def f(x: f64;) -> (f64;) = x", (0, 0),
     "batch: f has 1 formals, but 2 axes are given; give one or None for each"),
    ("def f(x: f64;) -> ([f64 | <>];) = inj[0, [f64 | <>]](x)", (0,),
     "batch: in f, inj depends on what differs from lane to lane; batch what is around it, or "
     "run it lane by lane"),
    ("def f(x: f64;) -> (f64;) = x", (3,), "batch: f64 over lanes has no axis 3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "axes", "message"), REFUSED, ids=[r[2][:50] for r in REFUSED])
def test_what_cannot_be_batched_says_why(text, axes, message):
    with pytest.raises(ProgramError) as caught:
        batch(check(parse(text)), "f", axes, N)
    assert caught.value.message == message


RULED = """
def g(x: f64;) -> (f64;) = sin(x)
def rule(x: f64; ~d: f64) -> (f64; f64) =
  let y = sin(x) in
  let k = y * x in
  let ~e = k * ~d in
  (y; ~e)
def f(x: f64, v: f64[3];) -> (f64;) =
  let y = g(x;) in
  let s = sum[axis=(0,), keepdims=false] (v) in
  y * s
"""


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_a_rule_of_the_program_holds_in_lanes(axes):
    program = custom_jvp(check(parse(RULED)), "g", "rule", test=False)
    over, name = batch(program, "f", axes, 4), batched_name("f", axes, 4)
    x, v = np.linspace(0.2, 0.8, 4), np.arange(12.0).reshape(4, 3)
    x, v = (a if axis == 0 else a[1] for a, axis in zip((x, v), axes, strict=True))
    made = check(vjp(over, name))
    a, b = run(made, f"{name}.vjp", x, v, np.ones(4)).lresults
    xs, rows = np.broadcast_to(x, 4), np.broadcast_to(v, (4, 3))
    p, q = np.sin(xs) * xs * rows.sum(axis=1), np.repeat(np.sin(xs)[:, None], 3, axis=1)
    np.testing.assert_allclose(a, p if axes[0] == 0 else p.sum())  # by the rule, not by cos
    np.testing.assert_allclose(b, q if axes[1] == 0 else q.sum(axis=0))
    short = check(simplify(made, f"{name}.vjp"))
    for one, other in zip(
        run(short, f"{name}.vjp", x, v, np.ones(4)).lresults, (a, b), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_rule_over_lanes_has_no_tangents_of_what_does_not_move():
    text = """
    def g(x: f64;) -> (i64, f64;) = let n = 3_i64 in let y = sin(x) in (n, y;)
    def g.jvp(x: f64; ~d: f64) -> (i64, f64; f64) =
      let n = 3_i64 in let y = sin(x) in let k = 2.0 in let ~e = k * ~d in (n, y; ~e)
    """
    program = check(batch(check(parse(text)), "g", (0,), 3))
    out = run(program, "g.b3.0.jvp", np.ones(3), np.arange(3.0))
    np.testing.assert_array_equal(out.lresults[0], [0.0, 2.0, 4.0])


def test_a_rule_that_depends_on_lanes_where_its_value_does_not_has_lanes():
    text = """
    def g(x: f64, k: f64;) -> (f64;) = let (;) = drop(k) in (x;)
    def g.jvp(x: f64, k: f64; ~d: f64, ~e: f64) -> (f64; f64) =
      let (;) = drop(~e) in
      let ~y = k * ~d in
      (x; ~y)
    """
    program = check(batch(check(parse(text)), "g", (None, 0), 3))
    k = np.array([2.0, 3.0, 5.0])
    out = run(program, "g.b3.n0.jvp", 7.0, k, 1.0, np.zeros(3))
    np.testing.assert_array_equal(out.results[0], [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(out.lresults[0], k)


@pytest.mark.parametrize("axes", [(None, None), (None, 0), (0, None), (0, 0)])
def test_a_transpose_of_the_program_holds_in_lanes(axes):
    text = """
    def g(k: f64; ~a: f64[2]) -> (; f64[2]) = k * ~a
    def back(k: f64; ~c: f64[2]) -> (; f64[2]) = let two = 2.0 in let ~b = k * ~c in two * ~b
    """  # not the transpose, so that it tells who was asked
    program = custom_linear(check(parse(text)), "g", "back", test=False)
    name = batched_name("g", axes, N)
    made = check(transpose(check(batch(program, "g", axes, N)), name))
    k, c = (np.arange(1.0, 4.0) + i for i in (0, 3))
    k, c = k if axes[0] == 0 else 5.0, c if any(a == 0 for a in axes) else 7.0
    (found,) = run(made, f"{name}.t", k, np.multiply.outer(c, [1.0, 2.0])).lresults
    wanted = np.multiply.outer(2 * k * c, [1.0, 2.0])
    np.testing.assert_array_equal(found, wanted if axes != (0, None) else wanted.sum(axis=0))


def test_what_a_program_over_lanes_says_of_a_derivative_stays():
    program = custom_jvp(check(parse(RULED)), "g", "rule", test=False)
    over = batch(program, "f", (0, None), 4)
    own = parse("def g.b4.0.jvp(x: f64[4]; ~d: f64[4]) -> (f64[4]; f64[4]) = (x; ~d)")
    over = check(over.with_(own.defs["g.b4.0.jvp"]))
    again = batch(over, "g", (0,), 4)
    assert again.defs["g.b4.0.jvp"] is over.defs["g.b4.0.jvp"]


def test_lanes_without_a_value_that_has_them_are_dropped():
    program = check(parse("def f(x: f64;) -> (f64;) = sin(x)"))
    made = check(batch(program, "f", (None,)))
    assert run(made, "f.b.n", 3, 0.5).results == (np.sin(0.5),)


def test_a_loop_that_ends_for_all_lanes_at_once_asks_its_condition_once():
    program = check(parse("""
    def on(count: i64;) -> (bool;) = let last = 3_i64 in less(count, last)
    def round(count: i64, x: f64;) -> (i64, f64;) =
      let one = 1_i64 in let then = count + one in let y = sin(x) in (then, y;)
    def f(count: i64, x: f64;) -> (i64, f64;) = while[on, round, 0](count, x;)
    """))  # fmt: skip
    made = compare(program, "f", (None, 0), np.random.default_rng(0))
    assert not [name for name in made.defs if name.startswith("on.")]


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (None, None)])
def test_the_number_of_lanes_is_dropped_only_where_nothing_mentions_it(axes):
    program = check(parse("def f(x: f64, y: f64;) -> (f64;) = let (;) = drop(x) in y"))
    name = batched_name("f", axes)
    made = check(batch(program, "f", axes)).defs[name]
    assert ("drop(lanes)" in show_def(made)) == (axes == (None, None))


def test_a_case_that_all_lanes_share_takes_as_many_lanes_as_there_are():
    program = check(parse("""
    def circle(r: f64, k: f64;) -> (f64;) = let a = r * r in a * k
    def line(p: <f64, f64>, k: f64;) -> (f64;) = let <a, b> = p in let c = a * b in c * k
    def f(r: f64, k: f64;) -> (f64, f64;) =
      let s = inj[0, [f64 | <f64, f64>]](r) in
      let p = <r, r> in
      let t = inj[1, [f64 | <f64, f64>]](p) in
      let x = case s of circle | line with (k;) in
      let y = case t of circle | line with (x;) in
      (x, y;)
    """))  # fmt: skip
    made = check(batch(program, "f", (None, 0)))
    k = np.array([2.0, 3.0])
    found = run(made, "f.b.n0", 2, 7.0, k).results
    np.testing.assert_array_equal(found, [49 * k, 49 * 49 * k])


def test_a_type_that_mentions_itself_has_lanes():
    program = check(parse("""
    type tree = <f64, stack[tree]>
    def f(t: tree, k: f64;) -> (f64;) =
      let <x, rest> = t in let (;) = drop(rest) in k * x
    """))  # fmt: skip
    made = check(batch(program, "f", (0, 0), 3))
    assert str(made.types["tree.b3"]) == "<f64[3], stack[tree.b3]>"


def test_a_named_type_has_as_many_lanes_as_a_formal_says():
    program = check(parse("""
    type pair = <f64, f64[2]>
    def f(p: pair;) -> (pair;) = let <x, y> = p in let z = x * y in let q: pair = <x, z> in (q;)
    """))  # fmt: skip
    made = check(batch(program, "f", (0,)))
    x, y = np.arange(3.0), np.arange(6.0).reshape(3, 2)
    (found,) = run(made, "f.b.0", 3, (x, y)).results
    np.testing.assert_array_equal(found[1], x[:, None] * y)


def test_a_linear_recursion_has_lanes():
    program = check(parse("""
    def more(d: i64, k: f64; ~a: f64) -> (; f64) =
      let one = 1_i64 in let e = d - one in let ~b = k * ~a in f(e, k; ~b)
    def last(d: i64, k: f64; ~a: f64) -> (; f64) = let (;) = drop(d) in k * ~a
    def f(d: i64, k: f64; ~a: f64) -> (; f64) =
      let none = 0_i64 in let c = less(none, d) in cond[more, last](c, d, k; ~a)
    """))  # fmt: skip
    for axes in ((None, None, 0), (None, 0, 0), (None, 0, None)):
        made = check(batch(program, "f", axes, N))
        k, a = np.array([2.0, 3.0, 5.0]), np.array([1.0, 7.0, 11.0])
        k, a = (v if axis == 0 else v[0] for v, axis in zip((k, a), axes[1:], strict=True))
        (found,) = run(made, batched_name("f", axes, N), 2, k, a).lresults
        np.testing.assert_array_equal(found, k**3 * a)


def test_what_is_batched_for_one_definition_alone_says_so_and_what_it_is_of():
    program = check(parse("""
    def g(k: f64, x: f64;) -> (f64, f64;) = let y = k * x in (k, y;)
    def f(k: f64, x: f64;) -> (f64, f64;) = let (a, b;) = g(k, x;) in let c = a * b in (a, c;)
    """))  # fmt: skip
    made, name, origins = over_lanes(program, "f", (None, 0), N)
    assert name == "f.b3.n0.11"
    assert origins == {
        "f.b3.n0": ("f", (None, 0)), "g.b3.n0.f": ("g", (None, 0)), "f.b3.n0.11": ("f", (None, 0)),
    }  # fmt: skip
    x = np.array([2.0, 3.0, 5.0])
    found = run(check(made), name, 7.0, x).results
    np.testing.assert_array_equal(found, [[7.0] * N, 49 * x])


def test_what_is_called_twice_is_batched_once():
    lines = ["def f0(x: f64;) -> (f64;) = sin(x)"]
    lines += [
        f"def f{i}(x: f64;) -> (f64;) = let a = f{i - 1}(x;) in let b = f{i - 1}(a;) in a * b"
        for i in range(1, 40)
    ]  # fmt: skip
    made = batch(parse("\n".join(lines)), "f39", (0,), 3)
    assert len(made.defs) == 80

"""What depends on literals alone has no tangent: it costs nothing in any direction."""

import numpy as np

from lineara.engines import run
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad

POWERS = """
def f(x: f64;) -> (f64;) =
  let two = 2.0 in
  let three = 3.0 in
  let six = two * three in
  let y = power(x, six) in
  y * two
"""


def test_a_constant_exponent_has_no_derivative_of_its_own():
    program = check(grad(parse(POWERS), "f"))
    names = {
        b.rhs.name
        for b in program.defs["f.jvp"].body.bindings
        for b in (b.rhs.bindings if hasattr(b.rhs, "bindings") else [b])
        if hasattr(b.rhs, "primitive")
    }
    assert "log" not in names
    assert run(program, "f.grad", -2.0).results == (12 * (-2.0) ** 5,)


def test_a_constant_result_has_the_tangent_zero():
    program = check(
        grad(parse("def f(x: f64;) -> (f64;) = let (;) = drop(x) in let k = 3.0 in k * k"), "f")
    )
    assert run(program, "f.grad", 5.0).results == (0.0,)


def test_a_constant_goes_through_calls_products_and_loops():
    program = check(
        grad(
            parse("""
def g(p: <f64, f64>;) -> (f64;) = let <a, b> = p in a * b
def body(k: f64, c: f64, x: f64;) -> (f64;) = let a = k * c in a + x
def f(x: f64;) -> (f64;) =
  let k = 3.0 in
  let p = <k, x> in
  let y = g(p;) in
  let xs = [1.0, 2.0] in
  scan[body, 2, fwd, 1, 1, 0](k, y, xs;)
"""),
            "f",
        )
    )
    assert run(program, "f", 5.0).results == (9 * 15.0 + 3.0 + 2.0,)
    np.testing.assert_array_equal(run(program, "f.grad", 5.0).results, (27.0,))


def test_what_does_not_move_has_no_tangent_at_the_end_of_a_block_either():
    program = check(
        grad(
            parse("""
type colour = [<> | <>]
def number(x: f64;) -> (i64;) = let (;) = drop(x) in 3_i64
def unit(x: f64;) -> (<>;) = let (;) = drop(x) in <>
def tag(x: f64;) -> (colour;) = let (;) = drop(x) in let u = <> in inj[1, colour](u)
def sooner(x: f64;) -> (bool;) = let k = 2.0 in less(x, k)
def f(x: f64;) -> (f64;) =
  let n = number(x;) in
  let u = unit(x;) in
  let t = tag(x;) in
  let p = sooner(x;) in
  let (;) = drop((n, u, t, p;)) in
  x * x
"""),
            "f",
        )
    )
    assert run(program, "f.grad", 3.0).results == (6.0,)
    assert not any(program.defs[f"{g}.jvp"].lresults for g in ("number", "unit", "tag", "sooner"))

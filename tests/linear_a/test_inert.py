"""What never moves has no tangent: integers, booleans, and what is made of them alone."""

import numpy as np
import pytest

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_def
from lineara.passes.derivatives import vjp
from lineara.passes.jvp import jvp

LEAVES = {
    "literal": ("i64", "3_i64"),
    "product": ("<i64, <>>", "let u = <> in <i, u>"),
    "record": ("{a: i64}", "{a: i}"),
    "sum": ("[i64 | bool]", "inj[0, [i64 | bool]](i)"),
    "enumeration": ("[<> | <>]", "let u = <> in inj[1, [<> | <>]](u)"),
    "payload": ("i64", "let s = inj[0, [i64 | bool]](i) in proj[0](s)"),
    "payload of what may move": ("i64", "let s = inj[0, [i64 | f64]](i) in proj[0](s)"),
    "addition": ("i64", "i + i"),
    "comparison": ("bool", "less(x, x)"),
    "position": ("i64", "argmax[axis=0](v)"),
    "part": ("i64[3]", "let j = argmax[axis=0](v) in let w = [1, 2, 3]_i64 in put[0](w, j)"),
    "several": ("i64, i64", "(i, i;)"),
    "block": ("i64", "let j = { let k = less(x, x) in let (;) = drop(k) in 3_i64 } in j + i"),
}
F = "def f(x: f64, i: i64, v: f64[3];) -> ({};) =\n  let (;) = drop((x, i, v;)) in {}"


@pytest.mark.parametrize("name", LEAVES)
def test_no_tangent_is_made_for_what_does_not_move(name):
    program = check(vjp(check(parse(F.format(*LEAVES[name]))), "f"))
    assert program.defs["f.jvp"].lresults == ()
    value = run(program, "f", 0.5, 2, [1.0, 3.0, 2.0]).results
    found = run(program, "f.jvp", 0.5, 2, [1.0, 3.0, 2.0], 1.0, [1.0, 1.0, 1.0])
    assert str(found.results) == str(value)
    back = run(program, "f.vjp", 0.5, 2, [1.0, 3.0, 2.0]).lresults
    assert (back[0], back[1].tolist()) == (0.0, [0.0, 0.0, 0.0])


def test_in_a_product_it_has_the_unit():
    program = check(jvp(check(parse("def f(x: f64, i: i64;) -> (<i64, f64>;) = <i, x>")), "f"))
    assert str(program.defs["f.jvp"].lresults) == "(<<>, f64>,)"
    assert run(program, "f.jvp", 0.5, 2, 3.0).lresults == (((), 3.0),)


def test_what_becomes_a_whole_number_takes_no_copy_of_the_tangent():
    text = "let n = astype[dtype=i64](x) in let (;) = drop(n) in sin(x)"
    program = check(jvp(check(parse(f"def f(x: f64;) -> (f64;) = {text}")), "f"))
    assert "dup" not in show_def(program.defs["f.jvp"])


def test_linear_code_has_no_jvp():
    with pytest.raises(ProgramError, match="erase f first"):
        jvp(parse("def f(; ~a: f64) -> (; f64) = ~a"), "f")


def test_a_result_that_is_locally_constant_has_a_zero_tangent():
    program = check(vjp(check(parse("def f(x: f64;) -> (f64;) = sign(x)")), "f"))
    assert run(program, "f.jvp", 0.5, 2.0).lresults == (0.0,)
    assert run(program, "f.vjp", 0.5, 2.0).lresults == (0.0,)


def test_products_are_added_with_their_tangents():
    text = "def f(p: <f64, f64[2]>, q: <f64, f64[2]>;) -> (<f64, f64[2]>;) = p + q"
    program = check(vjp(check(parse(text)), "f"))
    p, q, c = ((k, np.array([k, -k])) for k in (1.0, 2.0, 5.0))
    found = run(program, "f.jvp", p, q, q, c)
    for (made,), wanted in ((found.results, 3.0), (found.lresults, 7.0)):
        assert made[0] == wanted
        np.testing.assert_array_equal(made[1], [wanted, -wanted])
    for made in run(program, "f.vjp", p, q, c).lresults:
        np.testing.assert_array_equal(made[1], [5.0, -5.0])
    only = check(vjp(check(parse("def f(p: <f64>;) -> (<f64>;) = let k = <2.0> in p + k")), "f"))
    assert run(only, "f.jvp", (1.0,), (3.0,)).lresults == ((3.0,),)
    assert run(only, "f.vjp", (1.0,), (3.0,)).lresults == ((3.0,),)
    unit = check(vjp(check(parse("def f(p: <>, q: <>;) -> (<>;) = p + q")), "f"))
    assert unit.defs["f.jvp"].lresults == ()


def test_types_that_only_the_body_of_a_loop_mentions_have_tangents():
    program = check(parse("""
    type pair = <f64, i64>
    def body(k: f64, x: f64;) -> (f64;) =
      let n = 3_i64 in
      let p: pair = <x, n> in
      let <y, m> = p in
      let (;) = drop(m) in
      k * y
    def f(k: f64, x: f64;) -> (f64;) = scan[body, 3, fwd, 1, 1, 0](k, x;)
    """))  # fmt: skip
    found = run(check(vjp(program, "f")), "f.vjp", 2.0, 5.0, 1.0).lresults
    assert found == (3 * 4.0 * 5.0, 8.0)

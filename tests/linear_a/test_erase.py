"""Erased, a linear program has the same results, and no text that it does not need."""

import numpy as np
import pytest

from lineara.engines import run
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_def
from lineara.passes.erase import erase

X = np.array([1.0, 2.0, 3.0])
LEAVES = {
    "read": ("(; ~x: f64[3]) -> (; f64, f64[3]) = read[1](~x)", [X]),
    "read in a block": (
        "(; ~x: f64[3]) -> (; f64, f64[3]) = "
        "let (; ~y, ~z) = { let ~w = 2.0 * ~x in read[1](~w) } in (; ~y, ~z)", [X],
    ),
    "read that is dropped": (
        "(; ~x: f64[3], ~a: f64) -> (; f64) = let (;) = drop(read[1](~x)) in ~a", [X, 2.0],
    ),
    "reads": (
        "(; ~x: f64[3], ~y: f64[3]) -> (; f64[3], f64, f64[3], f64) = "
        "let (; ~a, ~b) = { read[0](~x) } in let (; ~c, ~d) = { read[2](~y) } in "
        "(; ~b, ~a, ~d, ~c)", [X, 2 * X],
    ),
    "dup": ("(; ~a: f64) -> (; f64, f64) = dup(~a)", [2.0]),
    "zero": ("(; ~a: f64) -> (; f64, f64[3]) = let ~z = zero[f64[3]] in (; ~a, ~z)", [2.0]),
    "product": (
        "(k: f64; ~p: <f64, <f64[3], <>>>) -> (; <f64, <f64[3], <>>>) = k * ~p",
        [3.0, (2.0, (X, ()))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVES)
def test_the_results_are_the_same(name):
    text, args = LEAVES[name]
    program = check(erase(check(parse(f"def f{text}")), "f"))
    found = run(program, "f.e", *args)
    assert found.lresults == ()
    assert str(found.results) == str(run(program, "f", *args).lresults)
    again = check(erase(program, "f"))
    assert str(again) == str(program)


LOOPS = """
def sums(c: f64; ~a: f64) -> (f64; f64) = let ~b = c * ~a in (c; ~b)
def rows(c: f64; ~a: f64) -> (f64, f64; f64) = let ~b = c * ~a in (c, c; ~b)
def both(c: f64; ~a: f64, ~y: f64) -> (f64, f64; f64, f64) =
  let ~b = c * ~a in let ~z = c * ~y in (c, c; ~b, ~z)
def kinds(c: f64; ~a: f64, ~y: f64[3]) -> (f64, i64; f64, f64[3]) =
  let n = 4_i64 in let ~b = c * ~a in (c, n; ~b, ~y)
def f(c: f64; ~a: f64) -> (f64; f64) = scan[sums, 2, fwd, 0, 1, 1](c; ~a)
def g(c: f64; ~a: f64) -> (f64, f64[2]; f64) = scan[rows, 2, fwd, 0, 1, 1](c; ~a)
def h(c: f64; ~a: f64, ~y: f64[2]) -> (f64, f64[2]; f64, f64[2]) =
  scan[both, 2, fwd, 0, 1, 1](c; ~a, ~y)
def k(c: f64; ~a: f64, ~y: f64[2,3]) -> (f64, i64[2]; f64, f64[2,3]) =
  scan[kinds, 2, fwd, 0, 1, 1](c; ~a, ~y)
"""


@pytest.mark.parametrize(("name", "bindings"), [("f", 0), ("g", 1), ("h", 1), ("k", 1)])
def test_the_results_of_a_loop_are_put_in_order_only_where_they_are_not(name, bindings):
    program = check(erase(check(parse(LOOPS)), name))
    rows = np.arange(6.0).reshape(2, 3) if name == "k" else X[:2]
    args = [3.0, 2.0, rows][: len(program.defs[name].params)]
    found = run(program, name, *args)
    assert str(run(program, f"{name}.e", *args).results) == str((*found.results, *found.lresults))
    assert show_def(program.defs[f"{name}.e"]).count("let ") == bindings


def test_a_type_of_types_has_one_helper_each():
    types = "".join([f"type t{i + 1} = <t{i}, t{i}>\n" for i in range(40)])
    text = f"type t0 = <f64>\n{types}def f(k: f64; ~p: t40) -> (; t40) = k * ~p"
    made = erase(parse(text), "f")
    assert len(made.defs) == 1 + 41 + 1

"""What is dropped is transposed to zeros, whatever it binds, and costs no more than it did."""

import numpy as np
import pytest

from lineara.engines import Tagged, run
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_def
from lineara.passes.transpose import transpose

TEXT = """
def f(k: f64; ~p: <f64, f64>, ~b: f64) -> (; f64) =
  let (;) = drop({
    let ~<~u, ~v> = ~p in
    let ~w = k * ~u in
    (; ~w, ~v)
  }) in
  ~b
"""


@pytest.mark.parametrize("exact", [False, True])
def test_a_product_that_is_taken_apart_and_dropped_has_the_cotangent_zero(exact):
    program = check(transpose(check(parse(TEXT)), "f", exact))
    assert run(program, "f.t", 3.0, 2.0).lresults == ((0.0, 0.0), 2.0)


A, X = np.arange(4.0), np.ones(4)
READS = {
    "a mask": ("def f(m: bool[4]; ~a: f64[4]) -> (;) = drop(keep(~a, m))", [A > 1], [A]),
    "positions": (
        "def f(i: i64[0]; ~a: f64[4]) -> (;) = drop(index[at=(i,)](~a))",
        [np.zeros(0, int)], [A],
    ),
    "a position": (
        "def f(i: i64; ~a: f64[4], ~b: f64) -> (;) = drop(accum[i](~a, ~b))", [1], [A, 1.0],
    ),
    "in a block": (
        "def f(m: bool[4]; ~a: f64[4]) -> (;) = drop({ let ~b = keep(~a, m) in (; ~b) })",
        [A > 1], [A],
    ),
    "at the end of a block": (
        "def f(m: bool[4]; ~a: f64[4], ~p: <f64[4], f64[4]>) -> (;) = "
        "drop({ let ~<~b, ~c> = ~p in let ~d = ~b + ~c in let (;) = drop(~d) in keep(~a, m) })",
        [A > 1], [A, (A, A)],
    ),
    "in a drop": (
        "def f(m: bool[4]; ~a: f64[4]) -> (;) = drop({ let (;) = drop(keep(~a, m)) in (;) })",
        [A > 1], [A],
    ),
    "a tag": (
        "def g(x: <>; ~a: f64) -> (;) = let (;) = drop(x) in drop(~a) "
        "def h(x: f64; ~a: f64) -> (;) = let ~b = x * ~a in drop(~b) "
        "def f(t: [<> | f64]; ~a: f64) -> (;) = drop(case t of g | h with (; ~a))",
        [Tagged(0, ())], [1.0],
    ),
    "a tag in a call": (
        "def g(x: <>; ~a: f64) -> (;) = let (;) = drop(x) in drop(~a) "
        "def c(p: <[<> | <>]>; ~a: f64) -> (;) = "
        "let <t> = p in case t of g | g with (; ~a) "
        "def f(p: <[<> | <>]>; ~a: f64) -> (;) = drop(c(p; ~a))",
        [(1,)], [1.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("exact", [False, True])
def test_what_only_a_dropped_expression_reads_is_dropped_for_what_it_cost(name, exact):
    text, xs, us = READS[name]
    program = check(transpose(check(parse(text)), "f", exact))
    back = run(program, "f.t", *xs)
    scalars = sum(np.size(u) for u in us)
    assert back.work <= run(program, "f", *xs, *us).work - scalars
    assert not np.any(np.concatenate([np.ravel(c) for c in back.lresults]))


@pytest.mark.parametrize(
    "body",
    [
        "x * ~a",
        "{ let ~b = x * ~a in accum[0](~b, ~c) }",
        "{ let (;) = drop(sin(x)) in x * ~a }",
    ],
)
def test_what_is_dropped_is_not_computed_backwards(body):
    us = "~a: f64[4], ~c: f64" if "~c" in body else "~a: f64[4]"
    program = check(parse(f"def f(x: f64; {us}) -> (;) = let (;) = drop({body}) in (;)"))
    short, exact = (show_def(transpose(program, "f", e).defs["f.t"]) for e in (False, True))
    assert " * " not in short
    assert "read" not in short
    assert " * " in exact


@pytest.mark.parametrize("exact", [False, True])
def test_a_non_linear_drop_at_the_end_stays(exact):
    program = check(parse("def f(x: f64; ~a: f64) -> (;) = let (;) = drop(~a) in drop(sin(x))"))
    made = check(transpose(program, "f", exact))
    assert "drop(sin(x))" in show_def(made.defs["f.t"])
    assert run(made, "f.t", 0.5).lresults == (0.0,)

"""Inline: calls become bodies, values and work stay, and names are unique."""

import programs
import pytest
from hypothesis import given, settings
from programs import cases
from test_simplify import bits

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.syntax import functions
from lineara.passes.derivatives import vjp
from lineara.passes.inline import inline, named, smaller_than

CALLS = """
def h(x: f64;) -> (f64;) = exp(x)
def g(x: f64; ~a: f64) -> (f64; f64) =
  let y = h(x;) in
  let z = h(y;) in
  let ~b = y * ~a in
  (z; ~b)
def f(x: f64; ~a: f64) -> (f64; f64) =
  let (;) = drop({ let w = h(x;) in h(w;) }) in
  let (y; ~b) = g(x; ~a) in
  g(y; ~b)
"""


def test_all_calls_are_inlined_with_names_of_their_own():
    program = check(parse(CALLS))
    made = check(inline(program, "f"))
    assert functions(made.defs["f"].body) == []
    assert {*functions(made.defs["g"].body)} == {"h"}, "what is not asked for stays"
    before, after = run(program, "f", 0.25, 2.0), run(made, "f", 0.25, 2.0)
    assert before == after


@pytest.mark.parametrize("calls", ["let y = h(x;) in g(y;)", "let y = g(x;) in h(y;)"])
def test_what_is_called_twice_is_inlined_in_any_order(calls):
    text = "def h(x: f64;) -> (f64;) = exp(x) def g(x: f64;) -> (f64;) = let y = h(x;) in sin(y)"
    program = check(parse(f"{text} def f(x: f64;) -> (f64;) = {calls}"))
    made = check(inline(program, "f"))
    assert functions(made.defs["f"].body) == []
    assert run(made, "f", 0.5) == run(program, "f", 0.5)


def test_calls_are_chosen_by_name_and_by_size():
    program = check(parse(CALLS))
    assert {*functions(check(inline(program, "f", named("g"))).defs["f"].body)} == {"h"}
    assert {*functions(check(inline(program, "f", smaller_than(10))).defs["f"].body)} == {"g"}


def test_what_calls_nothing_that_is_chosen_is_the_same_definition():
    program = check(parse(CALLS))
    assert inline(program, "h").defs["h"] is program.defs["h"]
    assert inline(program, "g", named("f")).defs["g"] is program.defs["g"]


def test_what_calls_itself_and_what_branches_apply_stays():
    program = check(parse(
        "def down(x: f64;) -> (f64;) = let p = x > 1.0 in cond[half, stop](p, x;)\n"
        "def half(x: f64;) -> (f64;) = let k = 0.5 in let y = k * x in down(y;)\n"
        "def stop(x: f64;) -> (f64;) = x\n"
        "def f(x: f64;) -> (f64;) = let y = down(x;) in y * y".replace("x > 1.0", "greater(x, 1.0)")
    ))  # fmt: skip
    made = check(inline(program, "f"))
    assert run(made, "f", 7.0) == run(program, "f", 7.0)
    assert run(check(inline(program, "half")), "half", 7.0) == run(program, "half", 7.0)


def test_a_long_chain_of_definitions_needs_no_stack():
    lines = ["def f0(x: f64;) -> (f64;) = sin(x)"]
    lines += [f"def f{i}(x: f64;) -> (f64;) = f{i - 1}(x;)" for i in range(1, 2000)]
    program = parse("\n".join(lines))
    assert str(inline(program, "f1999").defs["f1999"].body.leaf.name) == "sin"


@given(cases("NML"))
@settings(max_examples=100, deadline=None, database=None)
def test_values_and_work_are_the_same(case):
    made = check(inline(case.program, case.name))
    assert functions(made.defs[case.name].body) == []
    args = programs.arguments(case)
    before, after = run(case.program, case.name, *args), run(made, case.name, *args)
    assert bits(after) == bits(before)


@given(cases("N", scalar=True))
@settings(max_examples=40, deadline=None, database=None)
def test_a_derivative_may_be_inlined_and_differentiated(case):
    program = vjp(case.program, case.name)
    name = f"{case.name}.vjp"
    made = check(inline(program, name))
    args = [*programs.arguments(case), 1.0]
    assert bits(run(made, name, *args)) == bits(run(program, name, *args))


def test_an_unknown_definition_is_refused():
    with pytest.raises(ProgramError, match=r"^inline: there is no definition g$"):
        inline(parse("def f(;) -> (;) = (;)"), "g")

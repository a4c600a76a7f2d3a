"""Linear B: what is taken and what is refused, on the command line too; T demands it."""

import pytest

from lineara.__main__ import main
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.linear_b import linear_b
from lineara.linear_a.parse import parse
from lineara.passes.transpose import transpose

HELP = """def two(x: f64; ~a: f64) -> (f64; f64) = (x; x * ~a)
def sq(x: f64;) -> (f64;) = x * x
def up(x: f64; ~a: f64) -> (; f64) = x * ~a
def step(c: f64; ~a: f64) -> (f64; f64) = (c; c * ~a)
def go(x: f64;) -> (bool;) = greater(x, x)
def left(x: f64, b: bool; ~a: f64) -> (; f64) = let (;) = drop(b) in x * ~a
"""
WHOLE = {
    "an operation": "def f(x: f64; ~a: f64) -> (; f64) = x * ~a",
    "non-linear code": "def f(x: f64;) -> (f64;) = let (;) = drop(zero[f64]) in sin(x)",
    "a linear block": (
        "def f(x: f64; ~a: f64) -> (; f64) = let ~b = { let y = sin(x) in y * ~a } in ~b"
    ),
    "drops": "def f(x: f64; ~a: f64) -> (;) = let (;) = drop(x) in drop(~a)",
    "calls": "def f(x: f64; ~a: f64) -> (; f64) = let y = sq(x;) in up(y; ~a)",
    "a branch": "def f(p: bool, x: f64; ~a: f64) -> (; f64) = cond[up, up](p, x; ~a)",
    "a loop": "def f(x: f64; ~a: f64) -> (; f64) = scan[up, 3, fwd, 1, 0, 1](x; ~a)",
}
MIXED = {
    "results": (
        "def f(x: f64; ~a: f64) -> (f64; f64) = (x; ~a)",
        "results in both zones, (f64; f64)",
    ),
    "a drop of both": (
        "def f(x: f64; ~a: f64) -> (; f64) = let (;) = drop((x; ~a)) in zero[f64]",
        "results in both zones, (f64; f64)",
    ),
    "a call": (
        "def f(x: f64; ~a: f64) -> (; f64) = let (y; ~b) = two(x; ~a) in y * ~b",
        "results in both zones, (f64; f64)",
    ),
    "a drop within non-linear code": (
        "def f(x: f64; ~a: f64) -> (; f64) ="
        " let y = { let (;) = drop(~a) in sin(x) } in y * zero[f64]",
        "non-linear results, (f64;), and reads ~a",
    ),
    "an unpacking within non-linear code": (
        "def f(x: f64; ~p: <f64, f64>) -> (f64;) = let ~<~a, ~b> = ~p in"
        " let (;) = drop((; ~a, ~b)) in sin(x)",
        "non-linear results, (f64;), and reads ~p",
    ),
    "a loop with carries": (
        "def f(c: f64; ~a: f64) -> (; f64) ="
        " let (d; ~b) = scan[step, 3, fwd, 0, 1, 1](c; ~a) in d * ~b",
        "results in both zones, (f64; f64)",
    ),
}


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_what_is_of_one_zone_throughout_is_linear_b(text):
    program = check(parse(HELP + text, sugar=True))
    assert linear_b(program, ["f"]) is program


@pytest.mark.parametrize(("text", "said"), MIXED.values(), ids=MIXED)
def test_what_mixes_the_zones_is_refused_and_not_transposed(text, said):
    program = check(parse(HELP + text, sugar=True))
    with pytest.raises(ProgramError) as error:
        linear_b(program, ["f"])
    assert said in error.value.message
    wanted = "T is for Linear B" if program.defs["f"].results else said
    with pytest.raises(ProgramError) as error:
        transpose(program, "f")
    assert wanted in error.value.message


def test_what_a_definition_applies_is_judged_where_it_is_transposed():
    """A rule f.t in the text stands for what T would need of f."""
    text = "def g(; ~a: f64) -> (; f64) = let (x; ~b) = { let x = 1.0 in (x; ~a) } in x * ~b\n"
    rule = "def g.t(; ~c: f64) -> (; f64) = ~c\n"
    use = "def f(; ~a: f64) -> (; f64) = g(; ~a)"
    assert "f.t" in transpose(check(parse(text + rule + use)), "f").defs
    with pytest.raises(ProgramError, match=r"1:\d+: this has results in both zones"):
        transpose(check(parse(text + use)), "f")


def test_a_while_loop_without_carries_says_that_it_cannot_end():
    text = HELP + "def f(x: f64; ~a: f64) -> (; f64) = while[go, up, 1](x; ~a)"
    program = linear_b(check(parse(text)), ["f"])
    with pytest.raises(ProgramError) as error:
        transpose(program, "f")
    assert error.value.message == (
        "transpose: while[go, up, 1] takes no round or never ends, for nothing that its condition "
        "reads ever changes; call the body in a branch of cond, or carry what ends the loop"
    )


def test_the_command_line_judges_a_file_or_a_definition_and_what_it_applies(capsys, tmp_path):
    file = tmp_path / "p.lina"
    file.write_text("def f(x: f64; ~a: f64) -> (f64; f64) = (x; x * ~a)\n")
    assert main(["unzip", str(file), "--def", "f"]) == 0
    halves = tmp_path / "halves.lina"
    halves.write_text(capsys.readouterr().out)
    assert main(["check", "--linear-b", str(halves), "--def", "f.lin"]) == 0
    assert capsys.readouterr().out == (f"{halves}: well typed, Linear B: 1 definition, 1 binding\n")
    assert main(["check", "--linear-b", str(file)]) == 1
    assert capsys.readouterr().err == (
        f"{file}:1:40: this has results in both zones, (f64; f64), but in Linear B an expression "
        "is of one zone; unzip f: f.nl and f.lin are Linear B\n"
        "  def f(x: f64; ~a: f64) -> (f64; f64) = (x; x * ~a)\n"
        f"{' ' * 41}^\n"
    )

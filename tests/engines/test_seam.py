"""The seam: programs are evaluated by `engines.run` alone, and an engine says what it can."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from test_layers import imports

from lineara.engines import CAPABILITIES, ENGINES, Ask, Engine, Exact, Meter, Outcome, run
from lineara.errors import ProgramError
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program

ROOT = Path(__file__).parent.parent.parent
FILES = [f for d in ("src", "tests", "benchmarks", "examples") for f in (ROOT / d).rglob("*.py")]
MEASURES = {"tests/linear_a/prove.py"}  # an interpreter that counts more than W: the theorems' R

PROGRAM = parse("""
def half(x: f64;) -> (f64;) = let c = 0.5 in x * c
def f(x: f64;) -> (f64;) = half(x;)
""")


class Halves(Engine):
    """An engine that knows one definition, and counts nothing."""

    name = "halves"

    def takes(self, program: Program, name: str) -> str | None:
        return None if name == "half" else f"it does not take {name}, which is not half"

    def evaluate(self, program: Program, name: str, values: list, ask: Ask) -> Outcome:
        return Outcome((values[0] / 2,), ())


def within_engines(file: Path) -> list[str]:
    """What a file imports that lies within `lineara.engines`."""
    found = []
    text = file.read_text(encoding="utf-8")
    for node in imports(text) if "lineara.engines" in text else ():
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" for a in node.names]
            inside = any(n.startswith("lineara.engines.interpreter") for n in names)
            within = (node.module or "").startswith("lineara.engines.")
        else:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            inside = within = any(n.startswith("lineara.engines.") for n in names)
        if inside or (within and file.is_relative_to(ROOT / "src")):
            found += names
    return found


def test_nobody_but_the_engines_imports_the_interpreter():
    outside = [f for f in FILES if not f.is_relative_to(ROOT / "src/lineara/engines")]
    found = {str(f.relative_to(ROOT)): names for f in outside if (names := within_engines(f))}
    assert found.keys() == MEASURES


def test_an_engine_is_taken_by_itself_or_by_name():
    assert run(PROGRAM, "half", 3.0, engine=Halves()).results == (1.5,)
    assert run(PROGRAM, "half", 3.0, engine="interpreter").results == (1.5,)


@pytest.mark.parametrize(
    ("name", "ask", "why"),
    [
        ("f", Ask(), "it does not take f, which is not half"),
        ("half", Ask(work=True), "it does not count work and bytes"),
        (
            "half",
            Ask(meter=Meter(), values=Exact()),
            "it does not calculate with exact numbers or measure the memory that is alive",
        ),
    ],
)
def test_an_engine_that_cannot_what_is_asked_says_what_is_missing(name, ask, why):
    with pytest.raises(ProgramError) as caught:
        run(PROGRAM, name, 3.0, engine=Halves(), ask=ask)
    assert caught.value.message == (
        f"the engine halves cannot evaluate {name} as asked: {why}; leave engine= out, which takes "
        "the first engine that can: interpreter"
    )


def test_an_engine_that_is_not_there_is_an_error():
    with pytest.raises(ProgramError) as caught:
        run(PROGRAM, "f", 3.0, engine="compiled")
    assert str(caught.value) == (
        "there is no engine compiled; there is native, native exact, adaptive, adaptive exact, "
        "interpreter, jax"
    )


def test_work_that_was_not_counted_is_not_told():
    with pytest.raises(ProgramError) as caught:
        _ = run(PROGRAM, "half", 3.0, engine=Halves()).work
    assert str(caught.value) == (
        "work and bytes were not counted in this run; ask for them: "
        "engines.run(..., ask=Ask(work=True))"
    )


def test_the_last_engine_takes_every_program_and_can_all():
    assert ENGINES[-1].can == CAPABILITIES.keys()
    assert ENGINES[-1].takes(PROGRAM, "f") is None


SAME = {
    "a call": (PROGRAM, "f", (3.0,), (1.5,)),
    "a branch": (
        parse(
            "def a(x: f64;) -> (f64;) = x * x def b(x: f64;) -> (f64;) = sin(x) "
            "def f(p: bool, x: f64;) -> (f64;) = cond[a, b](p, x;)"
        ),
        "f",
        (True, 3.0),
        (9.0,),
    ),
    "an array": (
        parse("def f(x: f64[3], y: f64;) -> (f64[3];) = x * y"),
        "f",
        (np.arange(3.0), 2.0),
        (np.array([0.0, 2.0, 4.0]),),
    ),
}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("case", SAME)
def test_engines_give_the_same_results(engine, case):
    program, name, values, wanted = SAME[case]
    if engine.takes(program, name) is None:
        found = run(program, name, *values, engine=engine).results
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_what_looks_on_sees_every_call():
    seen = []
    run(
        PROGRAM, "f", 3.0, ask=Ask(entering=(lambda m, name, values: seen.append((name, *values)),))
    )
    assert seen == [("f", 3.0), ("half", 3.0)]


def test_exact_numbers_are_values_of_the_machine():
    assert run(PROGRAM, "f", 3.0, ask=Ask(values=Exact())).results == (Fraction(3, 2),)

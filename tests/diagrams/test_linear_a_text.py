"""Every diagram of a differentiation is a program of Linear A, with one value and one gradient."""

import random

import numpy as np
import pytest
from diagrams.judge import AT, close, complex_step, gradient_diagram, program
from diagrams.test_layout import WORKED

import lineara
from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.diagrams import Derivation, Net, copied, history, parse, simplify, snapshot
from lineara.diagrams import as_linear_a as written
from lineara.diagrams.lowering import lowered
from lineara.engines import run
from lineara.errors import DiagramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse as read


def at_one(net: Net) -> Net:
    """The diagram of a differentiation, its back-propagator applied to 1."""
    found = copied(net)
    *values, back = found.outputs
    found.outputs.clear()
    for w in (*values, back):
        w.target = None
    found.output(*values, *found.add("eval", (back, *found.add("const", data=1.0))))
    return found


def results(net: Net, *args: float) -> tuple:
    whole = written.program(net)
    check(whole)
    check(read(str(whole)))
    return run(whole, "program", *args).results


def test_every_step_of_the_worked_example_is_a_program_with_its_value_and_gradient():
    steps = list(history(parse(WORKED)))
    assert len(steps) == 18
    for _, _, after in steps:
        assert results(at_one(after), 3.0) == (12.0, 7.0)


@pytest.mark.parametrize("shard", range(4))
@pytest.mark.slow("runs every step of random programs: 13 s")
def test_every_step_of_random_programs_has_one_meaning(shard: int):
    moving = 0
    for seed in range(shard * 6, shard * 6 + 6):
        f = program(seed, 3)
        net = diagram_of(f)
        wanted = complex_step(f)
        d = Derivation(net)
        for step in d.steps(random.Random(seed)):
            if step.number % 7 == 1:
                assert close(results(at_one(snapshot(d)), *AT)[1:], wanted)
        assert close(results(gradient_diagram(net), *AT), wanted)
        assert close(results(simplify(gradient_diagram(net)), *AT), wanted)
        moving += any(wanted)
    assert moving >= 2


def test_branches_and_loops_are_programs_too():
    def rounds(x):
        c = lineara.while_loop(lambda c: c < 9, lambda c: c * x, x)
        y, _ = lineara.scan(lambda c, _: (np.sin(c) * x, None), c, None, 3)
        return lineara.cond(y < 0, lambda v: v * v, lambda v: v, y)

    for x in (1.7, 2.3):
        net = lowered(lineara.diagram(rounds, x, by="trace"), rounds=12)
        assert close(results(net, x), [rounds(x)])
        assert close(results(gradient_diagram(net), x), [lineara.grad(rounds)(x)])


def test_what_is_shown_leaves_out_what_the_passes_make():
    after = [net for _, _, net in history(parse(WORKED))]
    shown = written.text(after[3])
    assert "= rest1.jvp.nl(" in shown
    assert "= rest2.jvp.lin.t.e(" in shown
    assert "def rest1(" in shown
    assert "def rest1.jvp.nl(" not in shown
    assert read(written.text(parse("(x: R) => y = sin(x) -> y")))


def test_a_function_from_outside_has_no_text():
    with pytest.raises(DiagramError) as caught:
        written.program(parse("(f: (R -> R), x: R) => y = eval(f, x) -> y"))
    assert caught.value.message == (
        "a function that comes from outside has no text in Linear A; make the diagram of a "
        "function of numbers"
    )

"""What is forecast from types alone is what is measured when the program runs."""

import tracemalloc

import numpy as np
import pytest
from memory_programs import PROGRAMS, arguments, program

import lineara
from lineara.engines import Ask, Meter, forecast, run
from lineara.errors import ProgramError
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import vjp
from lineara.passes.minimal_tape import budget
from lineara.passes.policy_table import POLICIES, plan
from lineara.passes.store_policies import binomial, recompute_calls

ALL = {**POLICIES, "calls": recompute_calls(), "budget": budget(2_600_000), "binomial": binomial(3)}


def allocated(p, name, args):
    tracemalloc.start()
    try:
        run(p, name, *args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_forecast_is_right(name, policy):
    """Work and written bytes exactly; memory to a tenth of what the allocator says, too."""
    try:
        p = vjp(program(name), "f", ALL[policy])
    except ProgramError:
        assert policy == "budget"
        return
    for what in ("f", "f.vjp"):
        args, meter = arguments(p, what), Meter()
        foretold = forecast(p, what)
        found = run(p, what, *args, ask=Ask(meter=meter))
        assert (foretold.work, foretold.written) == (found.work, found.written)
        assert abs(foretold.peak - meter.peak) <= 0.02 * meter.peak
        del found
        assert abs(foretold.peak - allocated(p, what, args)) <= 0.1 * meter.peak


BRANCHES = """
def small(x: f64[1000];) -> (f64[1000];) = sin(x)
def large(x: f64[1000];) -> (f64[1000];) =
  let a = sin(x) in let b = exp(a) in let c = a * b in let d = c + x in d * b
def more(c: f64, x: f64[1000];) -> (bool;) = let (;) = drop(x) in let l = 10.0 in less(c, l)
def step(c: f64, x: f64[1000];) -> (f64, f64[1000];) =
  let a = exp(c) in let b = sin(x) in let d = b * x in (a, d;)
def f(c: f64, x: f64[1000];) -> (f64[1000];) =
  let l = 0.0 in
  let p = less(c, l) in
  let y = cond[small, large](p, x;) in
  let (r, z;) = while[more, step, 0](c, y;) in
  let (;) = drop(r) in
  z
"""


def test_what_is_known_is_followed():
    p = vjp(parse(BRANCHES), "f")
    for c in (-1.0, 1.0, 5.0):
        args, meter = (c, np.full(1000, 0.3), np.ones(1000)), Meter()
        found = run(p, "f.vjp", *args, ask=Ask(meter=meter))
        foretold = forecast(p, "f.vjp", c)
        assert (foretold.work, foretold.written) == (found.work, found.written)
        assert foretold.peak == meter.peak


def test_what_is_not_known_is_taken_to_be_dear():
    p = vjp(parse(BRANCHES), "f")
    with pytest.raises(ProgramError, match="depends on an unknown bool, which is known only when"):
        forecast(p, "f.vjp")
    meter = Meter()
    run(
        p, "f.vjp", 1.0, np.full(1000, 0.3), np.ones(1000), ask=Ask(meter=meter)
    )  # two rounds, and large
    assert forecast(p, "f.vjp", rounds=2).peak == meter.peak


@pytest.mark.parametrize("n", [5, 10, 200])
def test_a_loop_back_over_rows_most_of_which_are_one_goes_on_after_them(n):
    def filled(x):
        y = np.zeros(n)
        y[0] = x[0]
        for i in range(1, n):
            y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
        return y.sum()

    x = np.linspace(-0.5, 0.5, n)
    staged = lineara.jit(lineara.grad(filled)).program(x)
    p = vjp(staged.program, staged.name)
    foretold, meter = forecast(p, f"{staged.name}.vjp"), Meter()
    found = run(p, f"{staged.name}.vjp", x, np.ones(n), ask=Ask(meter=meter))
    assert (foretold.work, foretold.peak) == (found.work, meter.peak)
    assert found.written <= foretold.written <= 1.05 * found.written
    assert str(lineara.stages(lineara.grad(filled), x))


def test_a_plan_is_a_table():
    text = str(plan(program("a chain"), "f", {"budget": budget(2_000_000)}))
    assert text.splitlines()[0].split() == ["policy", "tape", "peak", "work", "again"]
    assert text.splitlines()[2].split() == [
        "budget", "2.00", "MB", "4.80", "MB", "2,150,000", "+19", "%"
    ]  # fmt: skip

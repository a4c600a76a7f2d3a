"""Every policy, and every forecast, on random programs."""

import random

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from programs import arguments, cases, value
from prove import identical

from lineara.engines import Ask, Meter, forecast, run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.passes.derivatives import vjp
from lineara.passes.minimal_tape import budget
from lineara.passes.policy_table import POLICIES
from lineara.passes.store_policies import binomial, recompute_calls

ALL = {**POLICIES, "calls": recompute_calls(), "budget": budget(100), "binomial": binomial(1)}


def compare(case, seen):
    """The derivative is the same, bit by bit, and takes what was forecast."""
    program, name, want = case.program, f"{case.name}.vjp", None
    for policy in ALL.values():
        try:
            p = check(vjp(program, case.name, policy))
        except ProgramError as error:
            if "smallest tape" not in str(error):
                raise
            continue
        args = arguments(case)
        rng = random.Random(case.seed)
        args += [value(p, a.type, rng) for a in p.defs[name].lxs]
        meter = Meter()
        found = run(p, name, *args, ask=Ask(meter=meter))
        results = (*found.results, *found.lresults)
        want = results if want is None else want
        assert identical(results, want)
        seen["derivatives"] += 1
        try:
            foretold = forecast(p, name, *args)
        except ProgramError as error:
            if "known only when the program runs" not in str(error):
                raise
            continue
        assert foretold.work == found.work
        assert abs(foretold.peak - meter.peak) <= 0.1 * meter.peak, (foretold.peak, meter.peak)
        seen["forecasts"] += 1


def test_every_policy_gives_the_same_and_takes_what_is_forecast():
    seen = dict.fromkeys(("derivatives", "forecasts"), 0)

    @hypothesis.seed(7)
    @settings(
        max_examples=30, database=None, deadline=None, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate,),
    )  # fmt: skip
    @given(cases("N", arrays=True))
    def hold(case):
        compare(case, seen)

    hold()
    assert seen["derivatives"] >= 150
    assert seen["forecasts"] >= 75

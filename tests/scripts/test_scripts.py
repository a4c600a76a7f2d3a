"""Random scripts come out inside of a differentiation as they do plainly."""

import pytest
from judge_scripts import judged

SCRIPTS = 1000


def test_random_scripts_see_and_give_what_they_do_plainly(request: pytest.FixtureRequest, share):
    first = request.config.getoption("--seed") * SCRIPTS
    seeds = share(range(first, first + SCRIPTS))
    counted = judged(seeds)
    assert counted["right"] > 0.9 * len(seeds), counted

"""Random higher-order programs: rules = machine = eager engine = complex step; steps keep types.

`make fuzz` runs 20,000.
"""

import pytest
from agree import agree, agree_functional, agree_staged
from shards import shards

SHARDS = 20


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_evaluators_agree_on_programs_without_derivatives_inside(shard: int):
    moving = [agree(seed, nested=False, typed=True) for seed in range(shard * 30, shard * 30 + 30)]
    assert sum(moving) > 10


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_evaluators_agree_on_derivatives_inside_derivatives(shard: int):
    moving = [agree(seed, nested=True, typed=True) for seed in range(shard * 20, shard * 20 + 20)]
    assert sum(moving) > 4


@pytest.mark.parametrize("nested", [False, True])
def test_the_program_in_linear_a_has_the_same_gradient(nested: bool, share):
    seeds = share(range(40))
    moving = [agree_staged(seed, nested, depth=4) for seed in seeds]
    assert sum(moving) > 15 or len(seeds) < 40


def test_a_branch_that_is_a_constant_in_a_derivative_once_failed():
    agree(778583, nested=True)


def test_a_functional_gradient_is_the_derivative_along_a_function(share):
    seeds = share(range(120))
    assert sum([agree_functional(seed) for seed in seeds]) > 20 or len(seeds) < 120


def test_a_staged_number_beside_one_of_a_tape_once_lost_it():
    assert agree_staged(4002645, nested=True)

"""Random higher-order programs: rules = machine = eager engine = complex step; steps keep types.

`make fuzz` runs 20,000.
"""

import pytest
from agree import agree, agree_functional, agree_staged

SHARDS = 10


@pytest.mark.parametrize("shard", range(SHARDS))
def test_evaluators_agree_on_programs_without_derivatives_inside(shard: int):
    moving = [agree(seed, nested=False, typed=True) for seed in range(shard * 60, shard * 60 + 60)]
    assert sum(moving) > 30


@pytest.mark.parametrize("shard", range(SHARDS))
def test_evaluators_agree_on_derivatives_inside_derivatives(shard: int):
    moving = [agree(seed, nested=True, typed=True) for seed in range(shard * 40, shard * 40 + 40)]
    assert sum(moving) > 12


@pytest.mark.parametrize("nested", [False, True])
def test_the_program_in_linear_a_has_the_same_gradient(nested: bool):
    moving = [agree_staged(seed, nested, depth=4) for seed in range(40)]
    assert sum(moving) > 15


def test_a_branch_that_is_a_constant_in_a_derivative_once_failed():
    agree(778583, nested=True)


def test_a_functional_gradient_is_the_derivative_along_a_function():
    assert sum([agree_functional(seed) for seed in range(120)]) > 20


def test_a_staged_number_beside_one_of_a_tape_once_lost_it():
    assert agree_staged(4002645, nested=True)

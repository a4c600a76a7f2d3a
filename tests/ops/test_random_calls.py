"""Random calls of NumPy's and SciPy's functions obey the laws; `make fuzz` draws more of them."""

import collections

import pytest
from judge_calls import Wrong, judge, judge_precision
from random_calls import Drawn, lines
from shards import shards

import lineara


@pytest.mark.parametrize("block", shards(12))
def test_random_calls_obey_the_laws(block):
    found = collections.Counter(judge(seed) for seed in range(25 * block, 25 * block + 25))
    assert found["holds"] >= 15, found  # most of what is drawn can be judged by every law


@pytest.mark.parametrize("block", shards(8))
def test_random_calls_are_right_in_single_precision_and_in_complex_numbers(block):
    found = collections.Counter(
        judge_precision(seed) for seed in range(25 * block, 25 * block + 25)
    )
    assert sum(n for k, n in found.items() if "holds" in k) >= 12, found


def test_a_tangent_that_is_twice_as_long_is_found(monkeypatch):
    right = lineara.jvp

    def twice(*args):
        y, moved = right(*args)
        return y, [2 * d for d in moved]

    monkeypatch.setattr(lineara, "jvp", twice)
    with pytest.raises(Wrong, match="forward"):
        collections.Counter(map(judge, range(5)))


def test_every_line_is_drawn_and_is_a_call_of_numpy():
    ran = set()
    for seed in range(4000):
        drawn = Drawn(seed)
        ran.add(drawn.template)
        if ran >= set(lines()):
            return
    raise AssertionError(f"never drawn: {sorted(set(lines()) - ran)}")

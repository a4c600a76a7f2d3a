"""What the passes write for a small program of each construct is what was read and kept."""

import pytest
from golden import everything


@pytest.mark.parametrize("part", everything(), ids=repr)
def test_the_text_is_the_one_that_is_kept(part):
    again = "look at what `python tests/linear_a/golden.py` changes, and keep it if it is better"
    assert part.made().strip("\n") == part.text, again

"""A `try` in which something may be raised as values say, and then an exception always is."""

import numpy as np
import pytest
from capture.agreement import outcomes_agree
from capture.plain_functions import ALWAYS_RAISED

CASES = [(np.array([1.0, 2, -1, 3, -1]),), (np.array([-1.0, 2, 1, -1, 1]),)]


@pytest.mark.parametrize("f", ALWAYS_RAISED, ids=lambda f: f.__name__)
def test_the_handler_of_each_runs(f):
    outcomes_agree(f, *CASES)

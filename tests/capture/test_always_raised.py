"""A `try` in which something may be raised as values say, and then an exception always is."""

import numpy as np
import pytest
from capture.agreement import outcomes_agree
from capture.plain_functions import ALWAYS_RAISED

from lineara import jit
from lineara.errors import StagingError

CASES = [(np.array([1.0, 2, -1, 3, -1]),), (np.array([-1.0, 2, 1, -1, 1]),)]


@pytest.mark.parametrize("f", ALWAYS_RAISED, ids=lambda f: f.__name__)
def test_the_handler_of_each_runs(f):
    outcomes_agree(f, *CASES)


def looks_up(x):
    d = {"a": 1.0}
    return d["c"] * x if x > 1 else x


def takes_an_item(x):
    xs, s = [1.0], 0.0
    if x > 1:
        s = xs[3]
    return s + x


@pytest.mark.parametrize(("f", "error"), [(looks_up, KeyError), (takes_an_item, IndexError)])
def test_what_only_one_branch_would_raise_is_refused_where_python_takes_the_other(f, error):
    g = jit(f)
    with pytest.raises(error):
        f(2.0)
    with pytest.raises(error):
        g(2.0)
    with pytest.raises(StagingError, match=f"in which Python raises {error.__name__}"):
        g(0.5)
    with pytest.warns(UserWarning, match=error.__name__):
        assert jit(f, fallback=True)(0.5) == f(0.5)


def test_a_power_with_a_modulus_is_right_or_refused():
    for f in (lambda x, n: pow(n, 3, 7) * x, lambda x, n: pow(2, n, 7) * x):
        assert jit(f)(5.0, 4) == f(5.0, 4)
    with pytest.raises(StagingError, match="pow with a modulus"):
        jit(lambda x: pow(int(x), 3, 7) * x)(5.0)
    with pytest.raises(TypeError, match="unless all arguments are integers"):
        jit(lambda x: pow(x, 2, 7))(5.0)

"""Functions that assert: pytest rewrites those of its own files, so they are not read there."""

import numpy as np


def checked(x, s):
    if s <= 0:
        raise ValueError("s must be positive")
    assert x.sum() > 0, "no mass"
    for v in x:
        if v < -1:
            raise RuntimeError("too low")
    return np.log(s) * x.sum()


def asserted(x):
    print("before")
    assert x > 2, f"{x} of " + "two"
    print("after")
    return x


def asserted_and_raised(x):
    try:
        assert x[0] > 0, "low"
        assert x[1] > 0
        return x[1] * x[2]
    except AssertionError as e:
        if str(e) == "low":
            raise RuntimeError("too low") from e
        if x[2] > 0:
            raise
        return x[3] * x[3]

"""Functions that assert: pytest rewrites those of its own files, so they are not read there."""

from types import SimpleNamespace

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


# --- an exception that is raised as values say, and then one that always is ---


def sometimes(v):
    if v > 0:
        raise KeyError("k")


def a_false_assertion(x):
    s = 1.0
    try:
        sometimes(x[0])
        assert 0.3 > 0.6, "low"
    except KeyError:
        s = s * x[1]
    except AssertionError as e:
        s = 0.5 * len(str(e))
    return s * x[2]


def a_builtin(x):
    s = 1.0
    try:
        sometimes(x[0])
        int("a")
    except KeyError:
        s = s * x[1]
    except ValueError:
        s = 0.5
    return s * x[2]


def an_inner_try(x):
    s = 1.0
    try:
        try:
            sometimes(x[0])
            raise RuntimeError("r")
        except KeyError:
            s = s * x[1]
    except RuntimeError:
        s = 0.25
    return s * x[2]


def no_handler(x):
    s = 1.0
    try:
        sometimes(x[0])
        raise RuntimeError("r")
    except KeyError:
        s = s * x[1]
    return s * x[2]


def of_the_same_class(x):
    s = 1.0
    try:
        sometimes(x[0])
        {}["a"]
    except KeyError as e:
        s = s * x[1] * (2 if e.args[0] == "k" else 3)
    return s * x[2]


def an_attribute(x):
    s = 1.0
    try:
        sometimes(x[0])
        s += SimpleNamespace().real
    except KeyError:
        s = s * x[1]
    except AttributeError:
        s = 0.1
    return s * x[2]


def one_handler_for_all(x):
    s = 1.0
    try:
        sometimes(x[0])
        s += 1
        assert len(x) > 7
    except Exception as e:
        s = s * x[1] * len(type(e).__name__)
    return s * x[2]


def a_finally(x):
    s = 1.0
    try:
        sometimes(x[0])
        s += 1
        assert len(x) > 7
    except KeyError:
        s *= x[1]
    except AssertionError:
        s *= 3
    finally:
        s += x[1]
    return s * x[2]


def a_round(x):
    s = 1.0
    for v in x:
        try:
            sometimes(v)
            s += 1
            assert len(x) > 7
        except KeyError:
            s *= x[1]
        except AssertionError:
            s *= 3
    return s


def a_walrus_in_a_finally(x):
    s = 1.0
    for i in range(len(x)):
        try:
            sometimes(x[i])
            if (u := i) and u:
                s *= x[u]
        except KeyError:
            s += x[i]
        finally:
            s *= 1.5
    return s


ALWAYS_RAISED = [
    a_false_assertion,
    a_builtin,
    an_inner_try,
    no_handler,
    of_the_same_class,
    an_attribute,
    one_handler_for_all,
    a_finally,
    a_round,
    a_walrus_in_a_finally,
]

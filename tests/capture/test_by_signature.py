"""What an operation writes is known by its signature: the program is the one that it would be."""

import numpy as np
import pytest
from call_counts import calls

from lineara import trace
from lineara.errors import StagingError
from lineara.facts.registry import registry


class Forgetful(dict):
    """Nothing that was written is remembered."""

    def __setitem__(self, key, value):
        pass


def squares(x, y):
    return x * x + x * y + y * y + y * x


def constants(x, y):
    s = x[0]
    return (
        s * 2,
        s * 2.0,
        s * True,
        s * 0.0,
        s * -0.0,
        2 * s,
        s + 1,
        x * 2,
        x * 2.0,
        s == 0,
        y < 1,
    )


def kinds(x, y):
    s, n, k = x[0], float(x[1]), 0
    for i in range(len(x)):
        n = n * 0.5 + s
        k = k + i
        s = s - n if x[i] > y[i] else s * k
    return s, n, k * s


def views(x, y):
    table, t = x.reshape(3, 2), 0.0
    for i in range(3):
        row = table[i]
        for j in range(2):
            t = t + row[j] * y[j]
        row[0] = t
    return table.T * 2.0, row + y[:2], t


def precision(x, y):
    single = x.astype("f4")
    return single * 0.1, single * y, single[0] * 0.1, single[0] * y[0], y[0] * single


def in_blocks(x, y):
    a = x * y
    for i in range(len(x)):
        b = a * x[i]
        if y[i] > 0.5:
            a = np.sin(a) * b - y
    return np.maximum(a, x), np.exp(-a) ** 2


FUNCTIONS = [squares, constants, kinds, views, precision, in_blocks]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_program_is_the_same_whatever_was_written_before(f, monkeypatch):
    x, y = np.linspace(0.1, 0.9, 6), np.linspace(-0.2, 1.7, 6)
    monkeypatch.setattr(registry, "writings", Forgetful())
    plain = str(trace(f, x, y))
    monkeypatch.setattr(registry, "writings", {})
    for other in FUNCTIONS:
        trace(other, x, y)
    assert registry.writings, "what was written is remembered"
    assert str(trace(f, x, y)) == plain
    assert str(trace(f, y, x)) == plain


def test_an_operation_written_before_is_refused_under_errstate():
    def f(x):
        y = x * 2.0
        with np.errstate(all="raise"):
            return y * 2.0

    for _ in range(2):
        with pytest.raises(StagingError, match=r"under np\.errstate"):
            trace(f, np.ones(3))


def test_an_operation_of_a_known_signature_takes_few_calls():
    def chain(n):
        def f(x):
            for _ in range(n):
                x = x * 0.5
                x = x + x
            return x

        return f

    few, many = (calls(lambda n=n: trace(chain(n), np.ones(3)), warm=2) for n in (10, 30))
    assert many - few <= 40 * 45, "the general way takes a hundred and more"

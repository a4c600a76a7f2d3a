"""numba: of traced values what it has compiled is the Python function behind."""

import math

from following import Cases

cases = Cases("numba")

import numba


@numba.njit
def power_sum(x, n):
    total = 0.0
    for i in range(n):
        total += x**i * math.sin(x)
    return total


@numba.jit(nopython=True)
def doubled(x):
    return power_sum(x, 3) * 2


@cases.at(0.5)
def nested(x):
    return doubled(x) + power_sum(x, 2)


@cases.at(0.5)
def plain_beside(x):
    return x * power_sum(0.3, 4)


test_works, test_refused, test_jitted = cases.tests()

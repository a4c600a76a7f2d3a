"""Values and adjoints by hand for numba: prints the least microseconds of each, as JSON."""

import json
import sys

import numba
import numpy as np
from least import least

STEPS = 1_000
H = 0.01


@numba.njit
def fill(x):
    n = x.shape[0]
    y = np.zeros(n)
    y[0] = x[0]
    for i in range(1, n):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


@numba.njit
def fill_gradient(x):
    n = x.shape[0]
    y = np.zeros(n)
    y[0] = x[0]
    for i in range(1, n):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    g = np.zeros(n)
    bar = 1.0
    for i in range(n - 1, 0, -1):
        g[i] = bar * y[i - 1]
        bar = 1.0 + bar * (0.9 + x[i])
    g[0] = bar
    return g


@numba.njit
def stages(x, y):
    k1, l1 = y, (1 - x * x) * y - x
    x2, y2 = x + 0.5 * H * k1, y + 0.5 * H * l1
    k2, l2 = y2, (1 - x2 * x2) * y2 - x2
    x3, y3 = x + 0.5 * H * k2, y + 0.5 * H * l2
    k3, l3 = y3, (1 - x3 * x3) * y3 - x3
    x4, y4 = x + H * k3, y + H * l3
    k4, l4 = y4, (1 - x4 * x4) * y4 - x4
    ahead = x + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y + H / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    return x2, y2, x3, y3, x4, y4, ahead[0], ahead[1]


@numba.njit
def oscillator(x, y):
    for _ in range(STEPS):
        _, _, _, _, _, _, x, y = stages(x, y)
    return x


@numba.njit
def oscillator_gradient(x, y):
    xs, ys = np.empty(STEPS), np.empty(STEPS)
    for i in range(STEPS):
        xs[i], ys[i] = x, y
        _, _, _, _, _, _, x, y = stages(x, y)
    xb, yb = 1.0, 0.0
    c = H / 6
    for i in range(STEPS - 1, -1, -1):
        x, y = xs[i], ys[i]
        x2, y2, x3, y3, x4, y4, _, _ = stages(x, y)
        k1b, k2b, k3b, k4b = c * xb, 2 * c * xb, 2 * c * xb, c * xb
        l1b, l2b, l3b, l4b = c * yb, 2 * c * yb, 2 * c * yb, c * yb
        y4b, x4b = k4b + l4b * (1 - x4 * x4), -l4b * (1 + 2 * x4 * y4)
        k3b, l3b = k3b + H * x4b, l3b + H * y4b
        y3b, x3b = k3b + l3b * (1 - x3 * x3), -l3b * (1 + 2 * x3 * y3)
        k2b, l2b = k2b + 0.5 * H * x3b, l2b + 0.5 * H * y3b
        y2b, x2b = k2b + l2b * (1 - x2 * x2), -l2b * (1 + 2 * x2 * y2)
        k1b, l1b = k1b + 0.5 * H * x2b, l1b + 0.5 * H * y2b
        yb = yb + y4b + y3b + y2b + k1b + l1b * (1 - x * x)
        xb = xb + x4b + x3b + x2b - l1b * (1 + 2 * x * y)
    return xb


if __name__ == "__main__":
    rows = {}
    for n in map(int, sys.argv[1:]):
        x = np.linspace(0.0999, 0.1001, n)
        rows[f"fill {n} value"] = least(fill, (x,), 2.0)
        rows[f"fill {n} gradient"] = least(fill_gradient, (x,), 2.0)
    rows["oscillator 1 value"] = least(oscillator, (1.0, 0.5), 2.0)
    rows["oscillator 1 gradient"] = least(oscillator_gradient, (1.0, 0.5), 2.0)
    print(json.dumps(rows))

"""A differential equation solved by its Taylor series, beside SciPy's best method.

y' = F(y) says of the coefficients of y(t):  (k + 1) y_{k+1} = [F(y(t))]_k,  and the right-hand side
needs y_0, .., y_k only.  So `lineara.taylor` of F alone gives the series of the solution, order by
order, and a step is as long as the last coefficients allow, which say where the series converges.

    python examples/taylor_ode.py
"""

import time

import numpy as np
from scipy.integrate import solve_ivp

import lineara

ORDER, TOLERANCE = 20, 1e-14


def pendulum(y):
    """The speed and the acceleration at an angle and a speed."""
    return np.array([y[1], -np.sin(y[0])])


def series(y):
    """The coefficients of the solution that begins at y, up to t^ORDER."""
    rows = [y]
    for k in range(ORDER):
        along = rows[1:] or [np.zeros(2)]
        rows.append(lineara.taylor(pendulum, y, along, k)[k] / (k + 1))
    return np.stack(rows)


def solve(coefficients, y, end):
    """y at the end, and the number of steps."""
    t, steps = 0.0, 0
    while t < end:
        rows = coefficients(y)
        last = [(TOLERANCE / np.abs(rows[k]).max()) ** (1 / k) for k in (ORDER - 1, ORDER)]
        h = min(*last, end - t)
        y = sum(rows[k] * h**k for k in range(ORDER, -1, -1))
        t, steps = t + h, steps + 1
    return y, steps


def energy(y):
    """What stays the same along a solution."""
    return y[1] ** 2 / 2 - np.cos(y[0])


def main():
    """Both solutions, how far each is from keeping the energy, and how long they took."""
    start, end = np.array([2.0, 0.0]), 50.0
    coefficients = lineara.jit(series, engine="native")
    coefficients(start)  # traced and compiled, in some seconds
    began = time.perf_counter()
    y, steps = solve(coefficients, start, end)
    middle = time.perf_counter()
    scipys = solve_ivp(
        lambda t, y: [y[1], -np.sin(y[0])], (0, end), start, "DOP853", rtol=1e-13, atol=1e-13
    )
    done = time.perf_counter()
    theirs = scipys.y[:, -1]
    for name, count, seconds, v in (
        ("Taylor series", steps, middle - began, y),
        ("DOP853", len(scipys.t) - 1, done - middle, theirs),
    ):
        drift = abs(energy(v) - energy(start))
        print(f"{name:14} {count} steps, {1e3 * seconds:.1f} ms, energy to {drift:.0e}")
    print(f"they differ by {np.abs(y - theirs).max():.0e}")


if __name__ == "__main__":
    main()

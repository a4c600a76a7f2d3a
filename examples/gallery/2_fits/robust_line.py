"""
A robust line
=============

Squares let outliers pull the line; a loss that grows like the absolute value does not.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

rng = np.random.default_rng(2)
x = np.linspace(0, 1, 30)
y = 1 + 2 * x + 0.1 * rng.normal(size=30)
y[[4, 11, 25]] += [3, 4, -3]


def fitted(loss):
    def total(p):
        return np.sum(loss(p[0] + p[1] * x - y))

    return minimize(lineara.value_and_grad(total), np.zeros(2), jac=True, method="BFGS").x


squares = fitted(lambda r: r**2)
robust = fitted(lambda r: np.sqrt(1 + (r / 0.1) ** 2))
print("squares", squares.round(2), "robust", robust.round(2), "true [1. 2.]")

fig, ax = plt.subplots()
ax.plot(x, y, "o", ms=4, color="C2")
ax.plot(x, squares[0] + squares[1] * x, label="squares")
ax.plot(x, robust[0] + robust[1] * x, label="robust")
ax.legend()
plt.show()

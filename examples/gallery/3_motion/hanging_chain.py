"""
A hanging chain
===============

Equal links that hang between two nails: the energy is least under a constraint, and both have
gradients.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

n, length = 20, 2.0


def chain(angles):
    steps = length / n * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.cumsum(steps, axis=0)


def energy(angles):
    return np.sum(chain(angles)[:, 1])


def ends(angles):
    return chain(angles)[-1] - np.array([1.2, 0.3])


fit = minimize(
    energy, np.linspace(-1.2, 1.4, n), jac=lineara.grad(energy), method="SLSQP",
    constraints={"type": "eq", "fun": ends, "jac": lineara.jacobian(ends)},
)  # fmt: skip
print(fit.message, "after", fit.nit, "steps")

links = np.concatenate([[[0.0, 0.0]], chain(fit.x)])
fig, ax = plt.subplots(figsize=(5, 3.4))
ax.plot(*links.T, "o-", ms=4)
ax.plot(*links[[0, -1]].T, "s", color="C1")
ax.set(aspect="equal")
plt.show()

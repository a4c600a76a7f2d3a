"""
A ridge chosen by its gradient
==============================

The error on held-out data is a function of the ridge, through a linear solve. Its derivative
finds the best one without a grid.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

rng = np.random.default_rng(1)
x = rng.uniform(-1, 1, 40)
X = np.stack([x**k for k in range(12)], axis=1)
y = np.sin(3 * x) + 0.2 * rng.normal(size=40)
train, test = np.arange(40) < 22, np.arange(40) >= 22


def weights(log_ridge):
    A = X[train].T @ X[train] + np.exp(log_ridge) * np.eye(12)
    return np.linalg.solve(A, X[train].T @ y[train])


def error(log_ridge):
    return np.mean((X[test] @ weights(log_ridge) - y[test]) ** 2)


fit = minimize(
    lambda v: error(v[0]), [0.0], jac=lambda v: np.array([lineara.grad(error)(v[0])]), method="BFGS"
)
grid = np.linspace(-12, 4, 60)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].plot(grid, [error(v) for v in grid])
axes[0].plot(fit.x, fit.fun, "o", color="C1")
axes[0].set(xlabel="log ridge", title="error on held-out data")
t = np.linspace(-1, 1, 100)
T = np.stack([t**k for k in range(12)], axis=1)
axes[1].plot(x, y, "o", ms=3, color="C2")
axes[1].plot(t, T @ weights(-12.0), lw=1, label="no ridge")
axes[1].plot(t, T @ weights(fit.x[0]), label="the best")
axes[1].set(ylim=(-1.8, 1.8))
axes[1].legend()
plt.show()

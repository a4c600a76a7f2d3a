"""
The score of a mixture
======================

The gradient of a logarithm of a density is its *score*: it points to where the density grows.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

import lineara

centres = np.array([[-1.5, 0.0], [1.0, 1.0], [1.0, -1.5]])


def log_density(p):
    return logsumexp(-np.sum((p - centres) ** 2, axis=1) / 0.8)


u = np.linspace(-3, 3, 22)
points = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2)
score = lineara.vmap(lineara.grad(log_density))(points)

fine = np.linspace(-3, 3, 100)
grid = np.stack(np.meshgrid(fine, fine), axis=-1)
density = np.exp(-np.sum((grid[..., None, :] - centres) ** 2, axis=-1) / 0.8).sum(axis=-1)
fig, ax = plt.subplots(figsize=(4.8, 4.5))
ax.contourf(fine, fine, density, 12, alpha=0.6)
ax.quiver(*points.T, *score.T, color="C1", width=0.004)
ax.set(aspect="equal")
plt.show()

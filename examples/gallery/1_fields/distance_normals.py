"""
Normals of a distance
=====================

The gradient of a distance to a shape has length 1 and points away from it. At the corner that
``max`` makes, one side is taken.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def distance(p):
    """To a square and a disc that overlap."""
    square = np.max(np.abs(p - np.array([-0.5, 0.0])) - 0.6)
    disc = np.sqrt(np.sum((p - np.array([0.5, 0.3])) ** 2)) - 0.7
    return np.minimum(square, disc)


u = np.linspace(-2, 2, 24)
points = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2) + 0.01
normal = lineara.vmap(lineara.grad(distance))(points)
print(
    "lengths from", np.linalg.norm(normal, axis=1).min(), "to", np.linalg.norm(normal, axis=1).max()
)

fine = np.linspace(-2, 2, 120)
grid = np.stack(np.meshgrid(fine, fine), axis=-1).reshape(-1, 2)
d = lineara.vmap(distance)(grid).reshape(120, 120)
fig, ax = plt.subplots(figsize=(4.8, 4.5))
ax.contour(fine, fine, d, np.arange(-0.6, 2, 0.2), linewidths=0.8)
ax.contour(fine, fine, d, [0.0], colors="C4", linewidths=2)
ax.quiver(*points.T, *normal.T, color="C0", width=0.004, scale=30)
ax.set(aspect="equal")
plt.show()

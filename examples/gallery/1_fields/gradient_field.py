"""
A gradient field
================

``vmap`` of a gradient evaluates it on a whole grid: here that of Himmelblau's function, with
its four minima.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def f(p):
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


u = np.linspace(-5, 5, 21)
points = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2)
g = lineara.vmap(lineara.grad(f))(points)
g /= np.linalg.norm(g, axis=1, keepdims=True) + 1.0

fine = np.linspace(-5, 5, 200)
fig, ax = plt.subplots(figsize=(5, 4.5))
ax.contour(fine, fine, np.log1p(f(np.meshgrid(fine, fine))), 18, linewidths=0.8)
ax.quiver(*points.T, *-g.T, color="C1", width=0.004)
ax.set(title="downhill", aspect="equal")
plt.show()

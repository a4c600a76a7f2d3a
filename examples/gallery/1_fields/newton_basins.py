"""
Newton's basins
===============

Newton's method for the roots of a complex polynomial. The slope is a directional derivative, of
all points at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def f(z):
    return z**3 - 1


u = np.linspace(-1.5, 1.5, 300)
z = u[None, :] + 1j * u[:, None]
for _ in range(25):
    value, slope = lineara.jvp(f, (z,), (np.ones_like(z),))
    z = z - value / slope

roots = np.exp(2j * np.pi * np.arange(3) / 3)
nearest = np.argmin(np.abs(z[..., None] - roots), axis=-1)
fig, ax = plt.subplots(figsize=(4.5, 4.5))
ax.imshow(nearest, extent=(-1.5, 1.5, -1.5, 1.5), origin="lower", cmap="viridis")
ax.grid(False)
ax.set(title="which root is found")
plt.show()

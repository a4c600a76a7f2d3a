"""
A soap film
===========

A film in a frame takes the form of least area. SciPy minimizes the area in all heights at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

n = 20
t = np.linspace(0, 2 * np.pi, n)
frame = np.zeros((n, n))
frame[0], frame[-1] = 0.5 * np.sin(t), 0.5 * np.sin(t)
frame[:, 0], frame[:, -1] = -0.3 * np.sin(t / 2) ** 2, 0.6 * np.sin(t / 2) ** 2


def surface(inner):
    z = np.copy(frame)
    z[1:-1, 1:-1] = inner.reshape(n - 2, n - 2)
    return z


def area(inner):
    z = surface(inner)
    across, down = np.diff(z, axis=1)[:-1] * n, np.diff(z, axis=0)[:, :-1] * n
    return np.sum(np.sqrt(1 + across**2 + down**2)) / n**2


start = np.zeros((n - 2) ** 2)
fit = minimize(lineara.value_and_grad(area), start, jac=True, method="L-BFGS-B")
print(f"area {area(start):.3f} -> {fit.fun:.3f} in {fit.nfev} gradients")

fig, ax = plt.subplots(figsize=(5, 4.2), subplot_kw={"projection": "3d"})
u = np.linspace(0, 1, n)
ax.plot_surface(*np.meshgrid(u, u), surface(fit.x), cmap="viridis", rstride=1, cstride=1)
ax.set(xticks=[], yticks=[], zticks=[])
plt.show()

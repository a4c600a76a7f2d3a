"""
A circle through points
=======================

Levenberg-Marquardt needs the Jacobian of the residuals: ``jacobian`` gives it to
``least_squares``.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import lineara

rng = np.random.default_rng(0)
angle = rng.uniform(0.3, 2.6, 25)
points = np.stack([2 * np.cos(angle) + 1, 2 * np.sin(angle) - 0.5], axis=1)
points += 0.08 * rng.normal(size=points.shape)


def residual(p):
    return np.sqrt((points[:, 0] - p[0]) ** 2 + (points[:, 1] - p[1]) ** 2) - p[2]


fit = least_squares(residual, [0.0, 0.0, 1.0], jac=lineara.jacobian(residual), method="lm")
print("centre", fit.x[:2].round(2), "radius", fit.x[2].round(2), "in", fit.nfev, "steps")

t = np.linspace(0, 2 * np.pi, 100)
fig, ax = plt.subplots(figsize=(4.6, 4.4))
ax.plot(*points.T, "o", ms=4, color="C1")
ax.plot(fit.x[0] + fit.x[2] * np.cos(t), fit.x[1] + fit.x[2] * np.sin(t))
ax.set(aspect="equal")
plt.show()

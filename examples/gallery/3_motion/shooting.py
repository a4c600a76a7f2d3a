"""
Shooting at a target
====================

Which velocity brings a body to a place at a time, past a star? Newton's method on the end of
the orbit.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara

start, target = np.array([1.0, 0.0]), np.array([-1.2, 0.8])


def orbit(v, steps=150, h=0.02):
    x, track = start, [start]
    v = v - 0.5 * h * x / np.sum(x**2) ** 1.5
    for _ in range(steps):
        x = x + h * v
        v = v - h * x / np.sum(x**2) ** 1.5
        track.append(x)
    return track


def miss(v):
    return orbit(v)[-1] - target


v, tries = np.array([0.1, 1.1]), []
for _ in range(8):
    tries.append(np.array(orbit(v)))
    v = v - np.linalg.solve(lineara.jacobian(miss)(v), miss(v))
    print(np.linalg.norm(miss(v)))

fig, ax = plt.subplots(figsize=(5, 4.2))
for k, track in enumerate(tries):
    ax.plot(*track.T, color="C0", alpha=0.25 + 0.75 * (k == len(tries) - 1), lw=1.2)
ax.plot(0, 0, "*", ms=14, color="C1")
ax.plot(*target, "x", ms=9, color="C4")
ax.set(aspect="equal")
plt.show()

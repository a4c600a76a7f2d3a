"""
The best angle of a throw
=========================

With air resistance 45 degrees is not the best angle. ``solve_ivp`` finds the landing as an
event, and its place has a derivative.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import lineara


def height(t, y):
    return y[1]


height.terminal, height.direction = True, -1


def distance(angle, drag=0.03):
    def motion(t, y):
        speed = np.sqrt(y[2] ** 2 + y[3] ** 2)
        return [y[2], y[3], -drag * speed * y[2], -9.81 - drag * speed * y[3]]

    start = [0.0, 0.0, 20 * np.cos(angle), 20 * np.sin(angle)]
    return solve_ivp(motion, (0, 10), start, events=height, rtol=1e-8).y[0, -1]


slope = lineara.grad(distance)
best = brentq(slope, 0.3, 1.2, xtol=1e-6)
print(f"best angle {np.degrees(best):.2f} degrees, {distance(best):.2f} m")

angles = np.radians(np.linspace(10, 80, 24))
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].plot(np.degrees(angles), [distance(a) for a in angles])
axes[0].axvline(np.degrees(best), color="C1", ls="--")
axes[0].set(xlabel="angle", title="distance, m")
axes[1].plot(np.degrees(angles), [slope(a) for a in angles])
axes[1].axvline(np.degrees(best), color="C1", ls="--")
axes[1].set(xlabel="angle", title="its derivative")
plt.show()

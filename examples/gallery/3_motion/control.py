"""
A soft landing
==============

The thrust of every moment is chosen so that a probe comes to rest on the ground with little
fuel: a gradient in sixty numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

n, h = 60, 0.1


def fall(thrust):
    height, speed, heights = 20.0, -4.0, np.zeros(n)
    for i in range(n):
        speed = speed + h * (thrust[i] - 3.7)
        height = height + h * speed
        heights[i] = height
    return heights, speed


def cost(thrust):
    heights, speed = fall(thrust)
    return 0.02 * h * np.sum(thrust**2) + heights[-1] ** 2 + speed**2


fit = minimize(
    lineara.value_and_grad(cost), np.full(n, 3.0), jac=True, method="L-BFGS-B", bounds=[(0, 8)] * n
)
heights, speed = fall(fit.x)
print(f"height {heights[-1]:.2f} m, speed {speed:.2f} m/s at the end")

t = h * np.arange(n)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].plot(t, heights)
axes[0].set(xlabel="time, s", title="height, m")
axes[1].step(t, fit.x, color="C1")
axes[1].set(xlabel="time, s", title="thrust")
plt.show()

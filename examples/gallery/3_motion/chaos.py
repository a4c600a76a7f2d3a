"""
How chaos grows
===============

The directional derivative of a trajectory in its start says how fast two neighbours part. Its
growth is the Lyapunov exponent, 0.906 for Lorenz's system.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def step(y, h=0.01):
    def slope(y):
        return np.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)
    k3 = slope(y + h / 2 * k2)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3))


y, v = np.array([1.0, 1.0, 20.0]), np.array([1.0, 0.0, 0.0])
track, growth, total = [], [], 0.0
for _ in range(3000):
    y, v = lineara.jvp(step, (y,), (v,))
    size = np.linalg.norm(v)
    total, v = total + np.log(size), v / size
    track.append(y)
    growth.append(total)
t = 0.01 * np.arange(1, 3001)
print("exponent", growth[-1] / t[-1])

track = np.array(track)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4))
axes[0].plot(track[:, 0], track[:, 2], lw=0.6)
axes[1].plot(t, growth)
axes[1].plot(t, 0.906 * t, "--", label="0.906 t")
axes[1].set(xlabel="time", title="logarithm of the distance")
axes[1].legend()
plt.show()

"""
A phase portrait from the energy alone
======================================

Hamilton's equations are the gradient of the energy, turned by a right angle. ``grad`` writes
them.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def energy(q, p):
    return np.sum(p**2 / 2 + 1 - np.cos(q))


slope_q, slope_p = lineara.grad(energy, 0), lineara.grad(energy, 1)
q = np.concatenate([np.linspace(-3, 3, 13), np.full(8, -np.pi), np.full(8, np.pi)])
p = np.concatenate([np.zeros(13), np.linspace(0.3, 2.2, 8), np.linspace(-2.2, -0.3, 8)])
track = [(q, p)]
for _ in range(400):  # Störmer-Verlet keeps the energy
    p = p - 0.025 * slope_q(q, p)
    q = q + 0.05 * slope_p(q, p)
    p = p - 0.025 * slope_q(q, p)
    track.append((q, p))
track = np.array(track)
print("the energy moved by", np.abs(energy(q, p) / energy(*track[0]) - 1))

fig, ax = plt.subplots(figsize=(6, 3.6))
ax.plot(track[:, 0], track[:, 1], lw=0.9, color="C0")
ax.set(xlim=(-np.pi, np.pi), xlabel="angle", ylabel="momentum", title="a pendulum")
plt.show()

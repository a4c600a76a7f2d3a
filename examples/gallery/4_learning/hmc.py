"""
Hamiltonian Monte Carlo
=======================

A sampler that follows the gradient of a log density draws from a bent distribution with few
rejections.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def log_density(x):
    return -(x[0] ** 2) / 8 - (x[1] - 0.5 * x[0] ** 2 + 2) ** 2


score = lineara.grad(log_density)
rng = np.random.default_rng(0)
x, draws, accepted = np.zeros(2), [], 0
for _ in range(400):
    p = rng.normal(size=2)
    y, q = x, p + 0.1 * score(x)
    for _ in range(12):
        y = y + 0.2 * q
        q = q + 0.2 * score(y)
    q = q - 0.1 * score(y)
    gain = log_density(y) - log_density(x) + (p @ p - q @ q) / 2
    if np.log(rng.uniform()) < gain:
        x, accepted = y, accepted + 1
    draws.append(x)
draws = np.array(draws)
print(f"{accepted / 4:.0f}% accepted; the spread of x is {draws[:, 0].std():.2f}, and should be 2")

u, v = np.meshgrid(np.linspace(-6, 6, 120), np.linspace(-5, 13, 120))
fig, ax = plt.subplots(figsize=(5.4, 4))
ax.contour(u, v, np.exp(log_density((u, v))), 6, alpha=0.5, linewidths=0.8)
ax.plot(*draws.T, ".", ms=4, color="C1")
plt.show()

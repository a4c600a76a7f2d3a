"""
A map from distances
====================

Places are found from the distances between them: descent in all coordinates at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

rng = np.random.default_rng(0)
t = np.linspace(0, 3 * np.pi, 40)
truth = np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / 9
i, j = np.triu_indices(40, 1)
noisy = np.linalg.norm(truth[i] - truth[j], axis=1) * (1 + 0.05 * rng.normal(size=i.size))


def stress(x):
    p = x.reshape(-1, 2)
    d = np.sqrt(np.sum((p[i] - p[j]) ** 2, axis=1) + 1e-12)
    return np.sum((d - noisy) ** 2)


fits = [
    minimize(lineara.value_and_grad(stress), rng.normal(size=80), jac=True, method="L-BFGS-B")
    for _ in range(4)
]
best = min(fits, key=lambda fit: fit.fun)
p = best.x.reshape(-1, 2)
p = p - p.mean(axis=0)
u, _, w = np.linalg.svd(p.T @ (truth - truth.mean(axis=0)))  # turned to lie on the truth
fig, ax = plt.subplots(figsize=(4.6, 4.4))
ax.plot(*truth.T, "-", lw=1, color="C2", label="true")
ax.scatter(*(p @ u @ w + truth.mean(axis=0)).T, c=t, s=18, label="found")
ax.set(aspect="equal")
ax.legend(fontsize=8)
plt.show()

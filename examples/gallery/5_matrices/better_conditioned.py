"""
A better conditioned matrix
===========================

The condition number is a function of singular values, and has a gradient. Descent scales the
rows of a matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara

rng = np.random.default_rng(0)
A = rng.normal(size=(8, 8)) * np.exp(rng.uniform(-3, 3, 8))[:, None]


def log_condition(scale):
    s = np.linalg.svd(np.exp(scale)[:, None] * A, compute_uv=False)
    return np.log(s[0] / s[-1])


scale, path = np.zeros(8), []
for _ in range(150):
    value, g = lineara.value_and_grad(log_condition)(scale)
    scale = scale - 0.3 * g
    path.append(np.exp(value))

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].semilogy(path)
axes[0].set(xlabel="step", title="condition number")
for k, (M, name) in enumerate([(A, "before"), (np.exp(scale)[:, None] * A, "after")]):
    axes[1].semilogy(np.linalg.svd(M, compute_uv=False), "o-", ms=4, color=f"C{k}", label=name)
axes[1].set(title="singular values")
axes[1].legend()
plt.show()

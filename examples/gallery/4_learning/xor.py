"""
XOR
===

The smallest network that needs a hidden layer, and the curve of its loss.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = np.array([0.0, 1.0, 1.0, 0.0])


def score(p, X):
    return np.tanh(X @ p["W"] + p["b"]) @ p["v"] + p["c"]


def loss(p):
    s = score(p, X)
    return np.mean(np.logaddexp(0.0, s) - y * s)


rng = np.random.default_rng(3)
p = {"W": rng.normal(size=(2, 4)), "b": np.zeros(4), "v": rng.normal(size=4), "c": 0.0}
losses = []
for _ in range(600):
    value, g = lineara.value_and_grad(loss)(p)
    p = {k: p[k] - 0.5 * g[k] for k in p}
    losses.append(value)

u = np.linspace(-0.4, 1.4, 80)
grid = np.stack(np.meshgrid(u, u), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4))
axes[0].semilogy(losses)
axes[0].set(xlabel="step", title="loss")
axes[1].contourf(u, u, 1 / (1 + np.exp(-score(p, grid))), 20, cmap="viridis")
axes[1].scatter(*X.T, c=["C4" if t else "w" for t in y], s=60, edgecolors="k")
axes[1].set(aspect="equal", title="probability of 1")
plt.show()

"""
A mixture of two
================

Maximum likelihood of a mixture of normal distributions, by descent instead of the EM algorithm.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

rng = np.random.default_rng(0)
data = np.concatenate([rng.normal(-1.0, 0.5, 150), rng.normal(1.5, 0.9, 250)])


def log_density(p, x):
    share = 1 / (1 + np.exp(-p[0]))
    first = np.log(share) - 0.5 * ((x - p[1]) / np.exp(p[2])) ** 2 - p[2]
    second = np.log(1 - share) - 0.5 * ((x - p[3]) / np.exp(p[4])) ** 2 - p[4]
    return np.logaddexp(first, second) - 0.5 * np.log(2 * np.pi)


def loss(p):
    return -np.sum(log_density(p, data))


start = np.array([0.0, -2.0, 0.0, 2.0, 0.0])
losses = [loss(start)]
fit = minimize(
    lineara.value_and_grad(loss), start, jac=True, method="BFGS",
    callback=lambda p: losses.append(loss(p)),
)  # fmt: skip
t = np.linspace(-3, 5, 200)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].hist(data, 40, density=True, alpha=0.4)
axes[0].plot(t, np.exp(log_density(fit.x, t)), color="C1")
axes[1].semilogy(np.array(losses) - fit.fun + 1e-6)
axes[1].set(xlabel="step", title="loss above the minimum")
plt.show()

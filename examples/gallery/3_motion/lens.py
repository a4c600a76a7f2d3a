"""
Fermat's light
==============

Light takes the fastest way through glass. The least time gives the path; Snell's law comes out
and is checked.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

index = np.array([1.0, 1.5, 1.2, 1.8, 1.0])  # of five layers, each of height 1
fig, ax = plt.subplots(figsize=(5, 4))
for end in np.linspace(0.5, 4.0, 5):

    def time(x, end=end):
        across = np.diff(np.concatenate([np.zeros(1), x, np.array([end])]))
        return np.sum(index * np.sqrt(1 + across**2))

    fit = minimize(
        lineara.value_and_grad(time), np.linspace(0, end, 6)[1:-1], jac=True, method="BFGS"
    )
    x = np.concatenate([[0.0], fit.x, [end]])
    across = np.diff(x)
    snell = index * across / np.sqrt(1 + across**2)  # n sin(angle) is constant
    assert np.ptp(snell) < 1e-4
    ax.plot(x, -np.arange(6), "o-", ms=3)
for k, n in enumerate(index):
    ax.axhspan(-k - 1, -k, color="C0", alpha=0.25 * (n - 1))
ax.set(yticks=[], title="darker is slower")
plt.show()

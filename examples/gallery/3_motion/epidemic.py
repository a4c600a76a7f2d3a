"""
Sensitivities of an epidemic
============================

How the infected of every day depend on the two rates: columns of a Jacobian, by forward mode.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def infected(p, days=100):
    s, i, curve = 0.99, 0.01, np.zeros(days)
    for day in range(days):
        new, gone = p[0] * s * i, p[1] * i
        s, i = s - new, i + new - gone
        curve[day] = i
    return curve


p = np.array([0.4, 0.1])
J = lineara.jacfwd(infected)(p)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].plot(infected(p))
axes[0].plot(infected(1.1 * p), "--", label="both rates 10% higher")
axes[0].plot(infected(p) + J @ (0.1 * p), ":", label="predicted")
axes[0].set(xlabel="day", title="infected")
axes[0].legend(fontsize=8)
axes[1].plot(J[:, 0], label="in the rate of infection")
axes[1].plot(J[:, 1], label="in the rate of recovery")
axes[1].set(xlabel="day", title="derivative")
axes[1].legend(fontsize=8)
plt.show()

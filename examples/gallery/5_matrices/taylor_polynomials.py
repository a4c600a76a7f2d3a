"""
Taylor polynomials
==================

All derivatives at a point in one run: the polynomials of a function, up to order 16.
"""

from math import factorial

import matplotlib.pyplot as plt
import numpy as np

import lineara


def f(x):
    return np.sin(x) * np.exp(-x / 4)


values = np.array(lineara.derivatives(f, 1.0, 16))
coefficients = values / [factorial(k) for k in range(17)]

t = np.linspace(-4, 6, 300)
fig, ax = plt.subplots()
ax.plot(t, f(t), lw=3, alpha=0.5, label="f")
for order in (1, 4, 8, 16):
    ax.plot(
        t,
        np.polynomial.polynomial.polyval(t - 1.0, coefficients[: order + 1]),
        lw=1.2,
        label=f"order {order}",
    )
ax.plot(1.0, f(1.0), "o", color="C1")
ax.set(ylim=(-3, 3))
ax.legend(fontsize=8, ncols=2)
plt.show()

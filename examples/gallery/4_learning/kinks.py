"""
Kinks
=====

At a kink there is a range of slopes. What the derivative is there is a choice, and ``kinks``
makes another one.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def f(x):
    return np.sum(np.abs(x) + np.maximum(x - 1.0, 0.0))


x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
fig, ax = plt.subplots()
t = np.linspace(-1.5, 2.5, 200)
ax.plot(t, np.abs(t) + np.maximum(t - 1.0, 0.0))
choices = {"default": {}, "abs=1, ties=first": {"abs": 1.0, "ties": "first"}}
for k, (name, choice) in enumerate(choices.items()):
    slopes = lineara.grad(lineara.kinks(**choice)(f))(x)
    print(name, slopes)
    for a, slope in zip(x, slopes, strict=True):
        value = np.abs(a) + np.maximum(a - 1.0, 0.0)
        d = np.array([-0.25, 0.25])
        ax.plot(
            a + d,
            value + slope * d,
            color=f"C{k + 1}",
            lw=3,
            alpha=0.7,
            label=name if a == 2 else None,
        )
ax.legend()
plt.show()

"""
The fastest slide
=================

The curve on which a body slides to a lower place in the least time is a cycloid. Descent in
thirty heights finds it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq, minimize

import lineara

x = np.linspace(0, 1, 32)


def depths(inner):
    y = np.zeros(32)
    y[1:-1] = np.exp(inner)
    y[-1] = 0.6
    return y


def time(inner):
    y = depths(inner)
    length = np.sqrt(np.diff(x) ** 2 + np.diff(y) ** 2)
    speed = np.sqrt(2 * 9.81 * y)
    return np.sum(2 * length / (speed[1:] + speed[:-1]))


start = np.log(0.6 * x[1:-1])
fit = minimize(lineara.value_and_grad(time), start, jac=True, method="BFGS")
print(f"straight {time(start):.4f} s, fastest {fit.fun:.4f} s")

end = brentq(lambda a: (a - np.sin(a)) / (1 - np.cos(a)) - 1 / 0.6, 0.1, 6.0)
a = np.linspace(0, end, 100)
r = 0.6 / (1 - np.cos(end))
fig, ax = plt.subplots()
ax.plot(x, -depths(start), label="straight", lw=1)
ax.plot(x, -depths(fit.x), "o", ms=4, label="found")
ax.plot(r * (a - np.sin(a)), -r * (1 - np.cos(a)), label="the cycloid")
ax.legend()
plt.show()

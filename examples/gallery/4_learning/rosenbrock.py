"""
Four ways down a valley
=======================

Rosenbrock's function with descent, momentum, Newton's method and BFGS. They differ in what they
ask: a gradient, or a Hessian too.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara


def f(p):
    return (1 - p[0]) ** 2 + 20 * (p[1] - p[0] ** 2) ** 2


grad, hessian = lineara.grad(f), lineara.hessian(f)
start = np.array([-1.2, 1.0])


def descent(momentum, rate, steps):
    x, v, path = start, np.zeros(2), [start]
    for _ in range(steps):
        v = momentum * v - rate * grad(x)
        x = x + v
        path.append(x)
    return path


newton = [start]
for _ in range(8):
    newton.append(newton[-1] - np.linalg.solve(hessian(newton[-1]), grad(newton[-1])))
bfgs = [start]
minimize(f, start, jac=grad, method="BFGS", callback=lambda x: bfgs.append(x.copy()))
paths = {
    "descent": descent(0.0, 0.004, 300),
    "momentum": descent(0.9, 0.002, 300),
    "Newton": newton,
    "BFGS": bfgs,
}

u, v = np.meshgrid(np.linspace(-1.6, 1.6, 150), np.linspace(-0.8, 1.8, 150))
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.6))
axes[0].contour(u, v, np.log(f((u, v)) + 0.1), 14, alpha=0.4, linewidths=0.8)
for name, path in paths.items():
    path = np.array(path)
    axes[0].plot(*path.T, ".-", ms=3, lw=1, label=name)
    axes[1].semilogy([f(x) + 1e-16 for x in path])
axes[0].legend(fontsize=8)
axes[1].set(xlabel="step", xlim=(0, 120), title="loss")
plt.show()

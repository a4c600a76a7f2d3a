"""
Peaks with error bars
=====================

Two overlapping lines of a spectrum, fitted by maximum likelihood; the errors come from the
Hessian.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import lineara

rng = np.random.default_rng(0)
x = np.linspace(0, 10, 120)


def model(p):
    first = p[0] * np.exp(-0.5 * ((x - p[1]) / p[2]) ** 2)
    return first + p[3] / (1 + ((x - p[4]) / p[5]) ** 2) + p[6]


truth = np.array([40.0, 4.0, 0.6, 25.0, 5.8, 0.5, 5.0])
counts = rng.poisson(model(truth))


def negative_log_likelihood(p):
    rate = model(p)
    return np.sum(rate - counts * np.log(rate))


start = np.array([30.0, 3.5, 1.0, 30.0, 6.0, 1.0, 4.0])
fit = minimize(
    lineara.value_and_grad(negative_log_likelihood), start, jac=True, method="L-BFGS-B",
    bounds=[(0.1, None)] * 7,
)  # fmt: skip
error = np.sqrt(np.diag(np.linalg.inv(lineara.hessian(negative_log_likelihood)(fit.x))))
for value, e, t in zip(fit.x, error, truth, strict=True):
    print(f"{value:7.3f} ± {e:.3f}   true {t}")

fig, ax = plt.subplots()
ax.errorbar(x, counts, np.sqrt(np.maximum(counts, 1)), fmt=".", lw=0.6, ms=3)
ax.plot(x, model(fit.x), color="C1")
ax.set(xlabel="channel", ylabel="counts")
plt.show()

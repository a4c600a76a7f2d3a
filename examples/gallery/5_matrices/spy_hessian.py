"""
An arrow
========

A chain with one parameter for all: its Hessian is banded, with an arm for the parameter.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara


def energy(x):
    stiffness, y = x[-1], x[:-1]
    return np.sum(np.cosh(stiffness * np.diff(y))) + np.sum(y**4)


x = np.linspace(0.1, 1.0, 41)
H = lineara.hessian(energy, sparse=True)(x)
assert np.allclose(H.toarray(), lineara.hessian(energy)(x))

fig, axes = plt.subplots(1, 2, figsize=(8, 3.9))
axes[0].spy(H.toarray(), markersize=3, color="C0")
axes[0].set(title=f"{H.nnz} of {x.size**2} entries")
picture = axes[1].imshow(np.log10(np.abs(H.toarray()) + 1e-3))
axes[1].grid(False)
fig.colorbar(picture, label="log10 of the size")
plt.show()

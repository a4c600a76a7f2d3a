"""
Where does the heat come from?
==============================

The gradient of the temperature at one sensor in the source at every place: one linear solve
backward gives all of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import diags_array, eye_array, kron
from scipy.sparse.linalg import spsolve

import lineara

n = 40
line = diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
wind = diags_array([-np.ones(n - 1), np.ones(n)], offsets=[-1, 0])
A = (kron(eye_array(n), line + 0.3 * wind) + kron(line, eye_array(n))).tocsr()


def at_sensor(source):
    return spsolve(A, source)[n * (n // 2) + 28]


sensitivity = lineara.grad(at_sensor)(np.ones(n * n)).reshape(n, n)
fig, ax = plt.subplots(figsize=(5, 4))
picture = ax.imshow(np.sqrt(sensitivity), cmap="inferno")
fig.colorbar(picture, label="root of the sensitivity")
ax.plot(28, n // 2, "wo", ms=5)
ax.grid(False)
ax.set(title="wind from the left, sensor in white")
plt.show()

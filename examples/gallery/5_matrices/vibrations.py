"""
Which mass tunes which tone?
============================

The eigenvalues of a chain of masses and springs, and their derivatives in every mass.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara

n = 12
K = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


def tones(mass):
    root = 1 / np.sqrt(mass)
    return np.sqrt(np.linalg.eigvalsh(root[:, None] * K * root))


mass = np.ones(n)
J = lineara.jacobian(tones)(mass)
h = 1e-6 * np.eye(n)
differences = np.array([(tones(mass + e) - tones(mass - e)) / 2e-6 for e in h]).T
assert np.allclose(J, differences, atol=1e-6)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4))
axes[0].stem(tones(mass))
axes[0].set(xlabel="tone", title="frequency")
picture = axes[1].imshow(J, cmap="viridis")
axes[1].grid(False)
axes[1].set(xlabel="mass", ylabel="tone", title="derivative")
fig.colorbar(picture)
plt.show()

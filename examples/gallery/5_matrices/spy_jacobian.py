"""
The pattern of a Jacobian
=========================

Which result depends on which argument: found from the function itself, without a number. A
reaction with diffusion on a ring, two substances at forty places.
"""

import matplotlib.pyplot as plt
import numpy as np

import lineara

n = 40


def rates(y):
    u, v = y[:n], y[n:]
    lap_u = np.roll(u, 1) - 2 * u + np.roll(u, -1)
    lap_v = np.roll(v, 1) - 2 * v + np.roll(v, -1)
    return np.concatenate([1 + u**2 * v - 4 * u + lap_u, 3 * u - u**2 * v + 10 * lap_v])


y = np.ones(2 * n)
J = lineara.jacobian(rates, sparse=True)(y)
plan = lineara.sparse_plan(rates, y)
print(plan)
assert np.allclose(J.toarray(), lineara.jacobian(rates)(y))

fig, ax = plt.subplots(figsize=(4.6, 4.6))
ax.spy(J.toarray(), markersize=2.5, color="C0")
ax.set(title=f"{J.nnz} of {4 * n * n} entries")
plt.show()

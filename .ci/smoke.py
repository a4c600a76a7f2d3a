"""What an installed Lineara must do in an environment that holds nothing else: one line a part."""

import pickle
import subprocess
import sys

import numpy as np

import lineara


def energy(x):
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[0] ** i * x[1]
    return y.sum()


X = np.array([2.0, 5.0])
G = np.array([5.0 * (1 + 4 + 12), 15.0])  # of x1 (1 + x0 + x0^2 + x0^3)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


close(lineara.grad(energy)(X), G)
close(lineara.grad(energy, policy="minimal_tape")(X), G)
close(pickle.loads(pickle.dumps(lineara.grad(energy)))(X), G)
fast = lineara.jit(lineara.grad(energy))
for _ in range(8):
    close(fast(X), G)
y, L = lineara.linearize(np.sin, X)
close(L @ np.ones(2), np.cos(X))
close(lineara.jacobian(lambda x: x[1:] * x[:-1], sparse=True)(np.ones(4)).sum(), 6.0)
close(lineara.hvp(energy)(X, np.array([0.0, 1.0])), [17.0, 0.0])
close(lineara.vmap(lineara.grad(energy))(np.stack([X, X])), [G, G])
lineara.diagram(lambda x: np.sin(x) * x, 1.0)
lineara.stages(lambda x: np.sin(x) * x, 1.0)
subprocess.run([sys.executable, "-m", "lineara", "--help"], check=True, stdout=subprocess.DEVNULL)
print(f"lineara {lineara.__version__} works on Python {sys.version.split()[0]}")

"""The operations: expressions as users write them, and the values that they are computed from.

What stands for a floating-point array in an expression is differentiated, all of it at once.
Where torch spells a call differently, the expression follows behind `#`.
"""

from pathlib import Path
from typing import Any

import numpy as np

LINES = Path(__file__).with_name("lines.txt")
"""A family, and below it, indented, its expressions."""


def expressions() -> dict[str, dict[str, str | None]]:
    """Family → NumPy's expression → torch's, where it is spelled out."""
    found: dict[str, dict[str, str | None]] = {}
    family: dict[str, str | None] = {}
    for line in LINES.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            ours, _, torch = line.strip().partition(" # ")
            family[ours] = torch or None
        elif line:
            family = found[line] = {}
    return found


def values() -> dict[str, Any]:
    """What the names in the expressions stand for: a value takes some 50 µs or longer."""
    rng = np.random.default_rng(0)
    n = 150
    noise = rng.standard_normal((n, n))
    k = rng.standard_normal((400, 8, 8))
    tall = rng.standard_normal((300, 80))
    return {
        "X": rng.uniform(0.1, 0.9, (400, 300)),
        "Y": rng.uniform(0.1, 0.9, (400, 300)),
        "Z": rng.standard_normal((400, 300)),
        "W": rng.standard_normal((300, 400)),
        "T": rng.standard_normal((40, 40, 40)),
        "v": rng.uniform(0.1, 0.9, 100_000),
        "w": rng.uniform(0.1, 0.9, 100_000),
        "u": rng.standard_normal(2_000),
        "s": 1.3,
        "S": noise / 12 + 2 * np.eye(n),
        "P": noise @ noise.T / n + np.diag(np.linspace(1, 2, n)),
        "L": np.tril(noise) / 12 + 2 * np.eye(n),
        "R": rng.standard_normal((n, 40)),
        "G": tall,
        "R2": rng.standard_normal((300, 5)),
        "K": k @ k.mT + 2 * np.eye(8),
        "XYZ": rng.standard_normal((20_000, 3)),
        "ZYX": rng.standard_normal((20_000, 3)),
        "BANDS": rng.uniform(0.1, 0.9, (3, 100_000)) + np.array([[0], [3], [0]]),
        "C": rng.standard_normal(50_001) + 1j * rng.standard_normal(50_001),
    }


def constants() -> dict[str, Any]:
    """What is not differentiated: positions, masks, grids, sparse matrices."""
    import scipy.sparse

    rng = np.random.default_rng(1)
    return {
        "MASK": rng.random((400, 300)) < 0.5,
        "TWO": rng.integers(0, 2, (400, 300)),
        "ROWS": rng.integers(0, 400, 1_000),
        "SPOTS": rng.integers(0, 1_000, 100_000),
        "STARTS": np.arange(0, 100_000, 100),
        "ORDER": np.argsort(rng.random((400, 300)), axis=1),
        "TIMES": np.linspace(0, 1, 2_000),
        "KNOTS": np.linspace(0, 1, 1_000),
        "POINTS": rng.uniform(0, 0.29, (20_000, 2)),
        "SPARSE": scipy.sparse.random_array((2_000, 100_000), density=1e-3, rng=2, format="csr"),
        "SPARSE_S": (
            scipy.sparse.random_array((2_000, 2_000), density=1e-3, rng=3)
            + 3 * scipy.sparse.eye_array(2_000)
        ).tocsc(),
    }

"""What a user writes, with deliberate mistakes: `check.py` looks for each.

A line that ends with `# mistake` must be refused by pyright and mypy in strict mode; no other may.
"""

from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import lineara

Vector = NDArray[np.float64]


@dataclass
class Params:
    rate: float
    start: Vector


def energy(x: Vector) -> float:
    return float(np.sum(x**2))


def model(p: Params, steps: int, *, scale: float = 1.0) -> float:
    return p.rate * steps * scale


def with_aux(x: Vector) -> tuple[float, str]:
    return energy(x), "seen"


def vector(x: Vector) -> Vector:
    return 2.0 * x


def name(x: Vector) -> str:
    return "a name"


def two(x: Vector, y: float) -> float:
    return energy(x) * y


def product(x: float, y: float) -> float:
    return x * y


X: Vector = np.array([1.0, 2.0])
P = Params(1.0, X)

# --- what comes back ------------------------------------------------------------------------------

assert_type(lineara.grad(energy)(X), Vector)
assert_type(lineara.value_and_grad(energy)(X), tuple[float, Vector])
assert_type(lineara.grad(model)(P, 3, scale=2.0), Params)
assert_type(lineara.value_and_grad(model)(P, 3), tuple[float, Params])
assert_type(lineara.grad(with_aux, has_aux=True)(X), tuple[Vector, str])
assert_type(lineara.grad(two, argnums=1)(X, 2.0), float)
assert_type(lineara.grad(two, argnums=(0, 1))(X, 2.0), tuple[Vector, float])
assert_type(lineara.grad(two, argnames=["x", "y"])(X, 2.0), dict[str, Any])
assert_type(lineara.hvp(energy)(X, X), Vector)
assert_type(lineara.hessian(energy)(X), Vector)
assert_type(lineara.jacobian(vector)(X), Vector)
y, L = lineara.linearize(vector, X)
assert_type(L, lineara.LinearMap[Vector, Vector])
assert_type(L @ X, Vector)
z, M = lineara.linearize(energy, X)
assert_type(M @ L, lineara.LinearMap[Vector, float])
assert_type(1.0 @ M, Vector)
assert_type(M.T, lineara.LinearMap[float, Vector])
assert_type(lineara.jvp(product, (2.0, 3.0), (1.0, 0.0)), tuple[float, float])
value, pull = lineara.vjp(two, X, 2.0)
assert_type(pull(1.0), tuple[Vector, float])
print(lineara.grad(energy, policy="store_all").certificate(X))
fast = lineara.jit(energy)
assert_type(fast(X), float)

# --- mistakes -------------------------------------------------------------------------------------

lineara.grad(name)(X)  # mistake
lineara.grad(vector)(X)  # mistake
lineara.value_and_grad(name)(X)  # mistake
lineara.grad(energy)("a vector")  # mistake
lineara.grad(energy)(X, X)  # mistake
lineara.grad(energy)()  # mistake
lineara.grad(model)(P, 3, scale="large")  # mistake
lineara.grad(model)(P, 3, scales=1.0)  # mistake
lineara.grad(energy)(X).rate  # mistake
lineara.grad(model)(P, 3).rates  # mistake
lineara.grad(energy, has_aux=True)(X)  # mistake
lineara.grad(energy, argnum=0)  # mistake
lineara.grad(energy, argnums="x")  # mistake
lineara.grad(energy, argnames=0)  # mistake
lineara.grad(energy, convention="upward")  # mistake
lineara.grad(3.0)  # mistake
lineara.value_and_grad(energy)(X) + 1.0  # mistake
wrong: float = lineara.grad(energy)(X)  # mistake
lineara.jvp(product, (2.0, 3.0), (1.0,))  # mistake
lineara.jvp(product, (2.0,), (1.0,))  # mistake
lineara.linearize(two, X)  # mistake
lineara.vjp(two, X, "two")  # mistake
L @ "a vector"  # mistake
M @ M  # mistake
M.T @ "a weight"  # mistake
L + M  # mistake
L.transposed  # mistake
lineara.hvp(name)(X, X)  # mistake
lineara.hvp(energy)(X, "along")  # mistake
lineara.hessian(name)  # mistake
lineara.jit(energy)("a vector")  # mistake
lineara.gradient(energy)  # mistake

"""(s) The cost of one operation: `z = sin(z*y + x)`, on scalars, short and longer arrays."""

import math

import numpy as np

from ..table import Call, Row, Table


def scalar_inputs(ops: int) -> tuple:
    """Two numbers and the number of steps; a step is three operations."""
    return 0.3, 0.7, ops // 3


def array_inputs(length: int, ops: int) -> tuple:
    """Two arrays and the number of steps."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(length), rng.standard_normal(length), ops // 3


def plain_scalar(x: float, y: float, steps: int) -> Call:
    def call():
        z = x
        for _ in range(steps):
            z = math.sin(z * y + x)
        return z

    return call


def lineara_scalar(x: float, y: float, steps: int) -> Call:
    import lineara

    def f(x, y):
        z = x
        for _ in range(steps):
            z = math.sin(z * y + x)
        return z

    gradient = lineara.value_and_grad(f, argnums=(0, 1))
    return lambda: gradient(x, y)[1]


def torch_scalar(x: float, y: float, steps: int) -> Call:
    import torch

    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(y, dtype=torch.float64, requires_grad=True)

    def call():
        x.grad = y.grad = None
        z = x
        for _ in range(steps):
            z = torch.sin(z * y + x)
        z.backward()
        return x.grad, y.grad

    return call


def jax_scalar(x: float, y: float, steps: int) -> Call:
    import jax
    import jax.numpy as jnp

    def f(x, y):
        z = x
        for _ in range(steps):
            z = jnp.sin(z * y + x)
        return z

    x, y, gradient = jnp.asarray(x), jnp.asarray(y), jax.value_and_grad(f, argnums=(0, 1))
    return lambda: jax.block_until_ready(gradient(x, y))[1]


def autograd_scalar(x: float, y: float, steps: int) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(x, y):
        z = x
        for _ in range(steps):
            z = anp.sin(z * y + x)
        return z

    gradient = autograd.value_and_grad(f, argnum=(0, 1))
    return lambda: gradient(x, y)[1]


def plain_array(x: np.ndarray, y: np.ndarray, steps: int) -> Call:
    def call():
        z = x
        for _ in range(steps):
            z = np.sin(z * y + x)
        return np.sum(z)

    return call


def lineara_array(x: np.ndarray, y: np.ndarray, steps: int) -> Call:
    import lineara

    def f(x, y):
        z = x
        for _ in range(steps):
            z = np.sin(z * y + x)
        return np.sum(z)

    gradient = lineara.value_and_grad(f, argnums=(0, 1))
    return lambda: gradient(x, y)[1]


def torch_array(x: np.ndarray, y: np.ndarray, steps: int) -> Call:
    import torch

    x, y = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y).requires_grad_()

    def call():
        x.grad = y.grad = None
        z = x
        for _ in range(steps):
            z = torch.sin(z * y + x)
        torch.sum(z).backward()
        return x.grad, y.grad

    return call


def jax_array(x: np.ndarray, y: np.ndarray, steps: int) -> Call:
    import jax
    import jax.numpy as jnp

    def f(x, y):
        z = x
        for _ in range(steps):
            z = jnp.sin(z * y + x)
        return jnp.sum(z)

    x, y, gradient = jnp.asarray(x), jnp.asarray(y), jax.value_and_grad(f, argnums=(0, 1))
    return lambda: jax.block_until_ready(gradient(x, y))[1]


def autograd_array(x: np.ndarray, y: np.ndarray, steps: int) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(x, y):
        z = x
        for _ in range(steps):
            z = anp.sin(z * y + x)
        return anp.sum(z)

    gradient = autograd.value_and_grad(f, argnum=(0, 1))
    return lambda: gradient(x, y)[1]


PLAIN = "NumPy, no derivative"
PLAIN_SCALAR = "plain Python, no derivative"

TABLES = (
    Table(
        key="s",
        title="a chain of scalars, z = sin(z*y + x), forward and backward",
        inputs=scalar_inputs,
        small={"ops": 30},
        ours={"lineara": lineara_scalar},
        peers={
            PLAIN_SCALAR: plain_scalar,
            "torch": torch_scalar,
            "autograd": autograd_scalar,
            "JAX": jax_scalar,
        },
        unit="operation",
        per="ops",
        rows=(
            Row(
                {"ops": 900},
                {
                    "lineara": 260,
                    PLAIN_SCALAR: 16,
                    "torch": 5150,
                    "autograd": 15_360,
                    "JAX": 394_000,
                },
                goals={PLAIN_SCALAR: 1 / 20, "torch": 12.0},
            ),
            Row({"ops": 90_000}, also=(PLAIN_SCALAR, "torch"), quick=False),
        ),
    ),
    Table(
        key="s",
        title="a chain of arrays, z = sin(z*y + x), forward and backward",
        inputs=array_inputs,
        small={"length": 4, "ops": 30},
        ours={"lineara": lineara_array},
        peers={
            PLAIN: plain_array,
            "torch": torch_array,
            "autograd": autograd_array,
            "JAX": jax_array,
        },
        unit="operation",
        per="ops",
        rows=(
            Row(
                {"length": 10, "ops": 900},
                {
                    "lineara": 1180,
                    PLAIN: 285,
                    "torch": 5180,
                    "autograd": 11_900,
                    "JAX": 398_000,
                },
                goals={"torch": 4.0},
            ),
            Row(
                {"length": 1000, "ops": 900},
                {
                    "lineara": 7870,
                    PLAIN: 3240,
                    "torch": 8190,
                    "autograd": 19_200,
                    "JAX": 307_000,
                },
                goals={"torch": 0.9},
            ),
            Row({"length": 10_000, "ops": 900}, also=(PLAIN, "torch", "autograd"), quick=False),
        ),
    ),
)

"""(j) The dense Jacobian of a stencil: three numbers a row of it are not zero."""

from typing import Any

import numpy as np

from ..table import Call, Row, Table


def inputs(n: int) -> tuple:
    """A vector."""
    return (np.linspace(0.0, 1.0, n),)


def stencil(np: Any, u: Any) -> Any:
    """Diffusion that depends on the value, with the borders held."""
    inside = (u[:-2] - 2.0 * u[1:-1] + u[2:]) * np.exp(u[1:-1])
    return np.concatenate([u[:1], inside, u[-1:]])


def ours(u: np.ndarray) -> Call:
    import lineara

    J = lineara.jacobian(lambda u: stencil(np, u))
    return lambda: J(u)


def autograd(u: np.ndarray) -> Call:
    import autograd
    import autograd.numpy as anp

    J = autograd.jacobian(lambda u: stencil(anp, u))
    return lambda: J(u)


def jax(way: str, jit: bool) -> Any:
    """By one sweep ahead or back, in a batch."""

    def build(u: np.ndarray) -> Call:
        import jax
        import jax.numpy as jnp

        J = getattr(jax, way)(lambda u: stencil(jnp, u))
        J, u = jax.jit(J) if jit else J, jnp.asarray(u)
        return lambda: jax.block_until_ready(J(u))

    return build


def torch(u: np.ndarray) -> Call:
    import torch

    def f(u):
        inside = (u[:-2] - 2.0 * u[1:-1] + u[2:]) * torch.exp(u[1:-1])
        return torch.cat([u[:1], inside, u[-1:]])

    J, given = torch.func.jacfwd(f), torch.from_numpy(u)
    return lambda: J(given)


PEERS = ("JAX jacfwd", "JAX jit jacfwd", "JAX jit jacrev", "torch", "autograd")
GOALS = dict.fromkeys(PEERS[:3], 1 / 1.5)

TABLES = (
    Table(
        key="j",
        title="the dense Jacobian of a stencil on n numbers",
        inputs=inputs,
        small={"n": 12},
        ours={"lineara": ours},
        peers={
            "JAX jacfwd": jax("jacfwd", jit=False),
            "JAX jit jacfwd": jax("jacfwd", jit=True),
            "JAX jit jacrev": jax("jacrev", jit=True),
            "torch": torch,
            "autograd": autograd,
        },
        rows=(
            Row({"n": 200}, also=PEERS, goals=GOALS, memory=True),
            Row({"n": 2000}, also=PEERS, goals=GOALS, memory=True),
        ),
        unit="Jacobian",
    ),
)

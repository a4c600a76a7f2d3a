"""(k) The likelihood of a Gaussian process, by Cholesky's factor and by a determinant.

With more threads than one: `python -m benchmarks.threads`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import Call, Row, Table

PLAIN = "NumPy, no derivative"


def inputs(n: int) -> tuple:
    """Parameters, squared distances of n points in space, what was observed there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    D = np.square(X[:, None] - X[None]).sum(-1)
    return np.array([0.5, 0.1, -3.0]), D, np.sin(X.sum(1)), np.eye(n)


def covariance(np: Any, p: Any, D: Any, eye: Any) -> Any:
    return np.exp(p[1]) * np.exp(-D / np.exp(p[0])) + np.exp(p[2]) * eye


def by_cholesky(np: Any, p: Any, D: Any, y: Any, eye: Any) -> Any:
    """Minus the log likelihood, from the triangular factor."""
    L = np.linalg.cholesky(covariance(np, p, D, eye))
    half = np.linalg.solve(L, y)
    return 0.5 * np.sum(half * half) + np.sum(np.log(np.diag(L)))


def by_determinant(np: Any, p: Any, D: Any, y: Any, eye: Any) -> Any:
    """The same, from the determinant and a solution."""
    K = covariance(np, p, D, eye)
    return 0.5 * np.sum(y * np.linalg.solve(K, y)) + 0.5 * np.linalg.slogdet(K)[1]


Program = Callable[..., Any]


def plainly(f: Program) -> Any:
    return lambda *given: lambda: f(np, *given)


def ours(f: Program) -> Any:
    def build(p: np.ndarray, *given: Any) -> Call:
        import lineara

        g = lineara.grad(lambda p: f(np, p, *given))
        return lambda: g(p)

    return build


def autograd(f: Program) -> Any:
    def build(p: np.ndarray, *given: Any) -> Call:
        import autograd
        import autograd.numpy as anp

        g = autograd.grad(lambda p: f(anp, p, *given))
        return lambda: g(p)

    return build


def torch(f: Program) -> Any:
    def build(p: np.ndarray, *given: Any) -> Call:
        import torch

        p, *given = (torch.from_numpy(a) for a in (p, *given))
        p.requires_grad_()

        def call():
            p.grad = None
            f(torch, p, *given).backward()
            return p.grad

        return call

    return build


def jax(f: Program) -> Any:
    def build(p: np.ndarray, *given: Any) -> Call:
        import jax
        import jax.numpy as jnp

        p, *given = (jnp.asarray(a) for a in (p, *given))
        g = jax.jit(jax.grad(lambda p: f(jnp, p, *given)))
        return lambda: jax.block_until_ready(g(p))

    return build


PEERS = (PLAIN, "torch", "JAX jit", "autograd")
GOALS = {"autograd": 1.0}


def table(title: str, f: Program) -> Table:
    return Table(
        key="k",
        title=title,
        inputs=inputs,
        small={"n": 7},
        ours={"lineara": ours(f)},
        peers=dict(zip(PEERS, (plainly(f), torch(f), jax(f), autograd(f)), strict=True)),
        rows=tuple(Row({"n": n}, also=PEERS, goals=GOALS) for n in (50, 200)),
        rtol=1e-7,
    )


TABLES = (
    table("the likelihood of n points, by Cholesky's factor", by_cholesky),
    table("the likelihood of n points, by a determinant", by_determinant),
)

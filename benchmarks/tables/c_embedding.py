"""(c) A table of V × 64 float32, a batch of 100 rows.  (c2) One step of descent on it."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..table import Call, Growth, Row, Table

WIDTH = 64
RATE = 1e-4


def inputs(V: int, batch: int) -> tuple:
    """The embedding and the rows that a batch looks up."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((V, WIDTH), dtype=np.float32)
    return weights, rng.integers(0, V, batch)


def _lineara(**options):
    def build(weights, ids):
        import lineara

        def loss(W):
            h = W[ids]
            return np.sum(h * h)

        gradient = lineara.grad(loss, **options)
        return lambda: gradient(weights)

    return build


def _torch(sparse: bool):
    def build(weights, ids):
        import torch

        W, ids = torch.from_numpy(weights).requires_grad_(), torch.from_numpy(ids)

        def call():
            h = torch.nn.functional.embedding(ids, W, sparse=sparse)
            torch.sum(h * h).backward()
            gradient, W.grad = W.grad, None
            return gradient

        return call

    return build


def _jax(jit: bool):
    def build(weights, ids):
        import jax
        import jax.numpy as jnp

        def loss(W, ids):
            h = W[ids]
            return jnp.sum(h * h)

        gradient = jax.jit(jax.grad(loss)) if jit else jax.grad(loss)
        weights, ids = jnp.asarray(weights), jnp.asarray(ids)
        return lambda: jax.block_until_ready(gradient(weights, ids))

    return build


def jax_refs(weights: np.ndarray, ids: np.ndarray) -> Call:
    """The gradient is added into a dense buffer that the caller owns (and nobody zeroes)."""
    import jax
    import jax.numpy as jnp

    weights, ids = jnp.asarray(weights), jnp.asarray(ids)
    ref = jax.new_ref(jnp.zeros_like(weights))

    @jax.jit
    def accumulate(W, ids, ref):
        y, pullback = jax.vjp(lambda W: jnp.sum(W[ids] * W[ids]), W)
        pullback.with_refs(ref)(jnp.ones_like(y))
        return y

    def call():
        jax.block_until_ready(accumulate(weights, ids, ref))
        return ref

    return call


def jax_rows(weights: np.ndarray, ids: np.ndarray) -> Call:
    """The user rewrites: gathers first, differentiates with respect to the rows."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def gradient(W, ids):
        return ids, jax.grad(lambda h: jnp.sum(h * h))(W[ids])

    weights, ids = jnp.asarray(weights), jnp.asarray(ids)
    return lambda: Gathered(weights.shape, *jax.block_until_ready(gradient(weights, ids)))


@dataclass(frozen=True)
class Gathered:
    """A gradient as rows and their places; only the check asks for it as an array."""

    shape: tuple[int, ...]
    ids: Any
    rows: Any

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = np.zeros(self.shape, dtype)
        np.add.at(dense, np.asarray(self.ids), np.asarray(self.rows))
        return dense


def autograd_eager(weights: np.ndarray, ids: np.ndarray) -> Call:
    import autograd
    import autograd.numpy as anp

    def loss(W):
        h = W[ids]
        return anp.sum(h * h)

    gradient = autograd.grad(loss)
    return lambda: gradient(weights)


def lineara_step(weights: np.ndarray, ids: np.ndarray) -> Call:
    import lineara

    W = weights.copy()

    def loss(W):
        h = W[ids]
        return np.sum(h * h)

    gradient = lineara.grad(loss, sparse=True)

    def call():
        nonlocal W
        W -= RATE * gradient(W)
        return W

    return call


def _torch_step(optimiser: str, sparse: bool):
    def build(weights, ids):
        import torch

        W, ids = torch.from_numpy(weights.copy()).requires_grad_(), torch.from_numpy(ids)
        step = getattr(torch.optim, optimiser)([W], lr=RATE)

        def call():
            h = torch.nn.functional.embedding(ids, W, sparse=sparse)
            torch.sum(h * h).backward()
            step.step()
            step.zero_grad()
            return W

        return call

    return build


def jax_step(weights: np.ndarray, ids: np.ndarray) -> Call:
    """The weights are donated, so that XLA may update them in place."""
    import jax
    import jax.numpy as jnp

    @partial(jax.jit, donate_argnums=0)
    def step(W, ids):
        return W - RATE * jax.grad(lambda W: jnp.sum(W[ids] * W[ids]))(W)

    W, ids = jnp.array(weights), jnp.asarray(ids)

    def call():
        nonlocal W
        W = jax.block_until_ready(step(W, ids))
        return W

    return call


REFS, ROWS = "JAX jit with_refs", "JAX jit rows by hand"

TABLES = (
    Table(
        key="c",
        title="embedding V × 64 float32, a batch of rows; the whole gradient",
        inputs=inputs,
        small={"V": 30, "batch": 7},
        ours={"lineara sparse": _lineara(sparse=True), "lineara": _lineara()},
        judged=("lineara sparse",),
        peers={
            "torch": _torch(sparse=False),
            "torch sparse": _torch(sparse=True),
            "JAX": _jax(jit=False),
            "JAX jit": _jax(jit=True),
            REFS: jax_refs,
            ROWS: jax_rows,
            "autograd": autograd_eager,
        },
        rtol=1e-5,
        rows=(
            Row({"V": 10_000, "batch": 100}, also=("torch", "torch sparse")),
            Row(
                {"V": 100_000, "batch": 100},
                {
                    "lineara": 0.05,
                    "torch": 0.89,
                    "torch sparse": 0.091,
                    "JAX": 21.8,
                    "JAX jit": 12.6,
                    REFS: 0.28,
                    ROWS: 0.022,
                    "autograd": 0.69,
                },
            ),
            Row(
                {"V": 1_000_000, "batch": 100},
                {
                    "lineara": 0.045,
                    "torch": 102,
                    "torch sparse": 0.088,
                    "JAX": 235,
                    "JAX jit": 116,
                    REFS: 0.23,
                    ROWS: 0.023,
                    "autograd": 11.7,
                },
                memory=True,
                quick=False,
            ),
        ),
        growth=(Growth("V", 0.05, judged=("lineara sparse",)),),
        note="with_refs needs a dense buffer of V × 64 from the caller, which is not counted.",
    ),
    Table(
        key="c2",
        title="one training step on the embedding (descent, learning rate fixed)",
        inputs=inputs,
        small={"V": 30, "batch": 7},
        ours={"lineara": lineara_step},
        peers={
            "torch SGD": _torch_step("SGD", sparse=False),
            "torch SGD sparse": _torch_step("SGD", sparse=True),
            "JAX jit donated": jax_step,
        },
        rtol=1e-6,
        unit="step",
        rows=(
            Row(
                {"V": 100_000, "batch": 100},
                {"lineara": 0.08, "JAX jit donated": 2.1},
                also=("torch SGD", "torch SGD sparse"),
            ),
            Row(
                {"V": 1_000_000, "batch": 100},
                {
                    "lineara": 0.08,
                    "torch SGD": 282,
                    "torch SGD sparse": 0.20,
                    "JAX jit donated": 397,
                },
                memory=True,
                quick=False,
            ),
        ),
    ),
)

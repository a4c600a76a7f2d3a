"""(w) One weight used T times, `h = tanh(W h)`: T outer products, or one product of matrices."""

import numpy as np

from ..table import Call, Row, Table


def inputs(size: int, T: int) -> tuple:
    """A square float32 weight, a start, the number of steps."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((size, size), dtype=np.float32) / np.float32(np.sqrt(size))
    return W, rng.standard_normal(size, dtype=np.float32), T


def lineara_dense(W: np.ndarray, start: np.ndarray, steps: int) -> Call:
    import lineara

    def f(W):
        h = start
        for _ in range(steps):
            h = np.tanh(W @ h)
        return np.sum(h)

    gradient = lineara.grad(f)
    return lambda: gradient(W)


def torch_eager(W: np.ndarray, start: np.ndarray, steps: int) -> Call:
    import torch

    W, start = torch.from_numpy(W).requires_grad_(), torch.from_numpy(start)

    def call():
        W.grad = None
        h = start
        for _ in range(steps):
            h = torch.tanh(W @ h)
        torch.sum(h).backward()
        return W.grad

    return call


def jax_scan(W: np.ndarray, start: np.ndarray, steps: int) -> Call:
    import jax
    import jax.numpy as jnp

    @jax.jit
    @jax.grad
    def gradient(W, start):
        h, _ = jax.lax.scan(lambda h, _: (jnp.tanh(W @ h), None), start, length=steps)
        return jnp.sum(h)

    W, start = jnp.asarray(W), jnp.asarray(start)
    return lambda: jax.block_until_ready(gradient(W, start))


def jax_unrolled(W: np.ndarray, start: np.ndarray, steps: int) -> Call:
    import jax
    import jax.numpy as jnp

    @jax.jit
    @jax.grad
    def gradient(W, start):
        h = start
        for _ in range(steps):
            h = jnp.tanh(W @ h)
        return jnp.sum(h)

    W, start = jnp.asarray(W), jnp.asarray(start)
    return lambda: jax.block_until_ready(gradient(W, start))


def autograd_eager(W: np.ndarray, start: np.ndarray, steps: int) -> Call:
    import autograd
    import autograd.numpy as anp

    W, start = W.astype(np.float64), start.astype(np.float64)

    def f(W):
        h = start
        for _ in range(steps):
            h = anp.tanh(W @ h)
        return anp.sum(h)

    gradient = autograd.grad(f)
    return lambda: gradient(W)


def by_hand(W: np.ndarray, start: np.ndarray, steps: int) -> Call:
    """Reverse mode written by hand; outer products are added in place as they come."""

    def call():
        hs = [start]
        for _ in range(steps):
            hs.append(np.tanh(W @ hs[-1]))
        total, bar = np.zeros_like(W), np.ones_like(start)
        product = np.empty_like(W)
        for t in range(steps, 0, -1):
            bar = bar * (1 - hs[t] * hs[t])
            np.multiply(bar[:, None], hs[t - 1], out=product)
            total += product
            bar = W.T @ bar
        return total

    return call


SCAN, LOOP, HAND = "JAX jit scan", "JAX jit unrolled", "NumPy by hand"

TABLES = (
    Table(
        key="w",
        title="h = tanh(W h), T times, W 512 × 512 float32; the whole gradient",
        inputs=inputs,
        small={"size": 6, "T": 5},
        ours={"lineara": lineara_dense},
        peers={
            "torch": torch_eager,
            SCAN: jax_scan,
            LOOP: jax_unrolled,
            "autograd (f64)": autograd_eager,
            HAND: by_hand,
        },
        rtol=1e-4,
        rows=(
            Row(
                {"size": 512, "T": 20},
                {
                    "lineara": 0.98,
                    "torch": 2.5,
                    SCAN: 1.7,
                    "autograd (f64)": 23.9,
                    HAND: 2.7,
                },
                also=(LOOP,),
            ),
            Row(
                {"size": 512, "T": 200},
                {
                    "lineara": 17.9,
                    "torch": 45,
                    SCAN: 26,
                    "autograd (f64)": 134,
                    HAND: 56.9,
                },
                long=(LOOP,),
            ),
        ),
    ),
)

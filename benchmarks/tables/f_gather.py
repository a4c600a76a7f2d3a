"""(f) Differences along the edges of a graph, `d = x[s] - x[r]`; x is n × 3, m edges."""

import numpy as np

from ..table import Call, Row, Table


def inputs(n: int, m: int) -> tuple:
    """Positions, senders, receivers."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)), rng.integers(0, n, m), rng.integers(0, n, m)


def _lineara(**options):
    def build(x, senders, receivers):
        import lineara

        def f(x):
            d = x[senders] - x[receivers]
            return np.sum(d * d)

        gradient = lineara.grad(f, **options)
        return lambda: gradient(x)

    return build


def _torch(gather):
    def build(x, senders, receivers):
        import torch

        x = torch.from_numpy(x).requires_grad_()
        senders, receivers = torch.from_numpy(senders), torch.from_numpy(receivers)

        def call():
            x.grad = None
            d = gather(x, senders) - gather(x, receivers)
            torch.sum(d * d).backward()
            return x.grad

        return call

    return build


def _jax(jit: bool):
    def build(x, senders, receivers):
        import jax
        import jax.numpy as jnp

        def f(x, senders, receivers):
            d = x[senders] - x[receivers]
            return jnp.sum(d * d)

        gradient = jax.jit(jax.grad(f)) if jit else jax.grad(f)
        arguments = jnp.asarray(x), jnp.asarray(senders), jnp.asarray(receivers)
        return lambda: jax.block_until_ready(gradient(*arguments))

    return build


def autograd_eager(x: np.ndarray, senders: np.ndarray, receivers: np.ndarray) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(x):
        d = x[senders] - x[receivers]
        return anp.sum(d * d)

    gradient = autograd.grad(f)
    return lambda: gradient(x)


INDEX, SELECT = "torch x[i]", "torch index_select"

TABLES = (
    Table(
        key="f",
        title="edges of a graph, d = x[s] - x[r], n nodes in space, m edges; the whole gradient",
        inputs=inputs,
        small={"n": 20, "m": 50},
        ours={"lineara": _lineara(), "lineara sparse": _lineara(sparse=True)},
        peers={
            INDEX: _torch(lambda x, i: x[i]),
            SELECT: _torch(lambda x, i: x.index_select(0, i)),
            "JAX": _jax(jit=False),
            "JAX jit": _jax(jit=True),
            "autograd": autograd_eager,
        },
        rows=(
            Row(
                {"n": 100_000, "m": 300_000},
                {"lineara": 71, INDEX: 16, SELECT: 15, "JAX": 33, "JAX jit": 11, "autograd": 61},
            ),
            Row(
                {"n": 1_000_000, "m": 3_000_000},
                {
                    "lineara": 1187,
                    INDEX: 743,
                    SELECT: 752,
                    "JAX": 633,
                    "JAX jit": 495,
                    "autograd": 2849,
                },
                quick=False,
            ),
            Row(
                {"n": 1_000_000, "m": 1_000},
                {
                    "lineara": 0.21,
                    INDEX: 2.2,
                    SELECT: 7.0,
                    "JAX": 72,
                    "JAX jit": 0.60,
                    "autograd": 1.4,
                },
            ),
        ),
        note="Full gathers are the domain of compiled kernels; local patches win in growth.",
    ),
)

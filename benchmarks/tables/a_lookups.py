"""(a) `s += sin(x[i])`: k random lookups in an array of n.  The gradient has k entries, not n."""

import math

import numpy as np

from ..table import Call, Growth, Row, Table


def inputs(n: int, k: int) -> tuple:
    """An array of n numbers and k places."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(n), rng.integers(0, n, k).tolist()


def lineara_sparse(x: np.ndarray, places: list[int]) -> Call:
    import lineara

    def f(x):
        s = 0.0
        for i in places:
            s = s + math.sin(x[i])
        return s

    gradient = lineara.grad(f, sparse=True)
    return lambda: gradient(x)


def lineara_dense(x: np.ndarray, places: list[int]) -> Call:
    import lineara

    def f(x):
        s = 0.0
        for i in places:
            s = s + math.sin(x[i])
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(x)


def torch_eager(x: np.ndarray, places: list[int]) -> Call:
    import torch

    x = torch.from_numpy(x).requires_grad_()

    def call():
        x.grad = None
        s = 0.0
        for i in places:
            s = s + torch.sin(x[i])
        s.backward()
        return x.grad

    return call


def jax_eager(x: np.ndarray, places: list[int]) -> Call:
    import jax
    import jax.numpy as jnp

    def f(x):
        s = 0.0
        for i in places:
            s = s + jnp.sin(x[i])
        return s

    x, gradient = jnp.asarray(x), jax.grad(f)
    return lambda: jax.block_until_ready(gradient(x))


def jax_unrolled(x: np.ndarray, places: list[int]) -> Call:
    import jax
    import jax.numpy as jnp

    @jax.jit
    @jax.grad
    def gradient(x):
        s = 0.0
        for i in places:
            s = s + jnp.sin(x[i])
        return s

    x = jnp.asarray(x)
    return lambda: jax.block_until_ready(gradient(x))


def jax_fori(x: np.ndarray, places: list[int]) -> Call:
    import jax
    import jax.numpy as jnp

    @jax.jit
    @jax.grad
    def gradient(x, places):
        def body(t, s):
            return s + jnp.sin(x[places[t]])

        return jax.lax.fori_loop(0, len(places), body, 0.0)

    x, at = jnp.asarray(x), jnp.asarray(places)
    return lambda: jax.block_until_ready(gradient(x, at))


def jax_gather(x: np.ndarray, places: list[int]) -> Call:
    import jax
    import jax.numpy as jnp

    @jax.jit
    @jax.grad
    def gradient(x, places):
        return jnp.sum(jnp.sin(x[places]))

    x, at = jnp.asarray(x), jnp.asarray(places)
    return lambda: jax.block_until_ready(gradient(x, at))


def autograd_eager(x: np.ndarray, places: list[int]) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(x):
        s = 0.0
        for i in places:
            s = s + anp.sin(x[i])
        return s

    gradient = autograd.grad(f)
    return lambda: gradient(x)


TABLES = (
    Table(
        key="a",
        title="s += sin(x[i]), k random lookups in an array of n",
        inputs=inputs,
        small={"n": 50, "k": 20},
        ours={"lineara sparse": lineara_sparse, "lineara": lineara_dense},
        judged=("lineara sparse",),
        peers={
            "torch": torch_eager,
            "JAX": jax_eager,
            "JAX jit unrolled": jax_unrolled,
            "autograd": autograd_eager,
            "JAX jit fori_loop": jax_fori,
            "JAX jit gather": jax_gather,
        },
        unit="lookup",
        per="k",
        note="Published for JAX at n=1e6, k=300: 6,257 µs a lookup.",
        rows=(
            Row(
                {"n": 1_000, "k": 100},
                {
                    "lineara": 0.91,
                    "torch": 15.6,
                    "JAX": 2647,
                    "JAX jit unrolled": 0.7,
                    "autograd": 56,
                    "JAX jit fori_loop": 0.08,
                },
            ),
            Row({"n": 10_000, "k": 100}, also=("torch", "autograd", "JAX jit fori_loop")),
            Row(
                {"n": 100_000, "k": 100},
                {
                    "lineara": 1.05,
                    "torch": 72.9,
                    "JAX": 2854,
                    "JAX jit unrolled": 52,
                    "autograd": 36,
                    "JAX jit fori_loop": 0.12,
                },
            ),
            Row(
                {"n": 1_000_000, "k": 100},
                {
                    "lineara": 0.91,
                    "torch": 452,
                    "JAX": 8360,
                    "JAX jit unrolled": 821,
                    "autograd": 40,
                    "JAX jit fori_loop": 0.9,
                },
            ),
            Row(
                {"n": 10_000_000, "k": 100},
                {"lineara": 0.91, "torch": 56_068, "autograd": 174, "JAX jit fori_loop": 388},
                quick=False,
            ),
            Row(
                {"n": 1_000_000, "k": 300},
                {"lineara": 0.91, "JAX jit unrolled": 1114},
                long=("JAX",),
                quick=False,
            ),
            Row(
                {"n": 1_000_000, "k": 1000},
                {
                    "lineara": 0.91,
                    "torch": 496,
                    "autograd": 90,
                    "JAX jit fori_loop": 0.07,
                    "JAX jit gather": 1.9,
                },
                quick=False,
            ),
            Row({"n": 1_000_000, "k": 10_000}, also=("JAX jit fori_loop",)),
        ),
        growth=(
            Growth("n", 0.05, {"k": 100}, ("lineara sparse",)),
            Growth("k", 0.05, {"n": 1_000_000}, ("lineara sparse",)),
        ),
    ),
)

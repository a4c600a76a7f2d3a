"""(e) Many small slices, and chained reads `X[i][j]`, `X.T[i][2:][j]`: a view costs O(1)."""

import math

import numpy as np

from ..table import Call, Growth, Row, Table


def inputs(n: int, k: int) -> tuple:
    """An array of n numbers and k places to slice at."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(n), rng.integers(0, n - 3, k).tolist()


def _lineara(**options):
    def build(x, places):
        import lineara

        def f(x):
            s = 0.0
            for i in places:
                s = s + np.sum(np.sin(x[i : i + 3]))
            return s

        gradient = lineara.grad(f, **options)
        return lambda: gradient(x)

    return build


def torch_eager(x: np.ndarray, places: list[int]) -> Call:
    import torch

    x = torch.from_numpy(x).requires_grad_()

    def call():
        x.grad = None
        s = 0.0
        for i in places:
            s = s + torch.sum(torch.sin(x[i : i + 3]))
        s.backward()
        return x.grad

    return call


def autograd_eager(x: np.ndarray, places: list[int]) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(x):
        s = 0.0
        for i in places:
            s = s + anp.sum(anp.sin(x[i : i + 3]))
        return s

    gradient = autograd.grad(f)
    return lambda: gradient(x)


def jax_eager(x: np.ndarray, places: list[int]) -> Call:
    import jax
    import jax.numpy as jnp

    def f(x):
        s = 0.0
        for i in places:
            s = s + jnp.sum(jnp.sin(x[i : i + 3]))
        return s

    x, gradient = jnp.asarray(x), jax.grad(f)
    return lambda: jax.block_until_ready(gradient(x))


def jax_fori(x: np.ndarray, places: list[int]) -> Call:
    import jax
    import jax.numpy as jnp

    @jax.jit
    @jax.grad
    def gradient(x, places):
        def body(t, s):
            return s + jnp.sum(jnp.sin(jax.lax.dynamic_slice(x, (places[t],), (3,))))

        return jax.lax.fori_loop(0, len(places), body, 0.0)

    x, at = jnp.asarray(x), jnp.asarray(places)
    return lambda: jax.block_until_ready(gradient(x, at))


def square_inputs(n: int, k: int) -> tuple:
    """An n × n array and k pairs of places."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, n - 2, (k, 2)).tolist()
    return rng.standard_normal((n, n)), pairs


def lineara_chained(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import lineara

    def f(X):
        s = 0.0
        for i, j in pairs:
            s = s + math.sin(X[i][j])
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(X)


def lineara_chained_sparse(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import lineara

    def f(X):
        s = 0.0
        for i, j in pairs:
            s = s + math.sin(X[i][j])
        return s

    gradient = lineara.grad(f, sparse=True)
    return lambda: gradient(X)


def torch_chained(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import torch

    X = torch.from_numpy(X).requires_grad_()

    def call():
        X.grad = None
        s = 0.0
        for i, j in pairs:
            s = s + torch.sin(X[i][j])
        s.backward()
        return X.grad

    return call


def autograd_chained(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(X):
        s = 0.0
        for i, j in pairs:
            s = s + anp.sin(X[i][j])
        return s

    gradient = autograd.grad(f)
    return lambda: gradient(X)


def lineara_views(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import lineara

    def f(X):
        s = 0.0
        for i, j in pairs:
            s = s + math.sin(X.T[i][2:][j])
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(X)


def torch_views(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import torch

    X = torch.from_numpy(X).requires_grad_()

    def call():
        X.grad = None
        s = 0.0
        for i, j in pairs:
            s = s + torch.sin(X.T[i][2:][j])
        s.backward()
        return X.grad

    return call


def autograd_views(X: np.ndarray, pairs: list[list[int]]) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(X):
        s = 0.0
        for i, j in pairs:
            s = s + anp.sin(X.T[i][2:][j])
        return s

    gradient = autograd.grad(f)
    return lambda: gradient(X)


TABLES = (
    Table(
        key="e",
        title="s += sum(sin(x[i:i+3])), k slices of an array of n",
        inputs=inputs,
        small={"n": 50, "k": 9},
        ours={"lineara": _lineara(), "lineara sparse": _lineara(sparse=True)},
        peers={
            "torch": torch_eager,
            "autograd": autograd_eager,
            "JAX": jax_eager,
            "JAX jit fori_loop": jax_fori,
        },
        unit="slice",
        per="k",
        rows=(
            Row(
                {"n": 1_000, "k": 100},
                {
                    "lineara": 6,
                    "torch": 20,
                    "autograd": 61,
                    "JAX": 1047,
                    "JAX jit fori_loop": 0.08,
                },
            ),
            Row({"n": 30_000, "k": 100}, also=("torch", "autograd")),
            Row(
                {"n": 1_000_000, "k": 100},
                {
                    "lineara": 7,
                    "torch": 258,
                    "autograd": 63,
                    "JAX": 3639,
                    "JAX jit fori_loop": 1.4,
                },
            ),
        ),
        growth=(Growth("n", 0.05, judged=("lineara", "lineara sparse")),),
    ),
    Table(
        key="e",
        title="s += sin(X[i][j]), k chained lookups in n × n",
        inputs=square_inputs,
        small={"n": 9, "k": 20},
        ours={"lineara": lineara_chained, "lineara sparse": lineara_chained_sparse},
        peers={"torch": torch_chained, "autograd": autograd_chained},
        unit="lookup",
        per="k",
        rows=(
            Row({"n": 100, "k": 100}, {"lineara": 2.7, "torch": 28, "autograd": 61}),
            Row({"n": 1000, "k": 100}, {"lineara": 2.7, "torch": 465, "autograd": 108}),
            Row(
                {"n": 4000, "k": 100},
                {"lineara": 2.7, "torch": 118_012, "autograd": 257},
                quick=False,
            ),
        ),
        growth=(Growth("n", 0.05, judged=("lineara", "lineara sparse")),),
    ),
    Table(
        key="e",
        title="s += sin(X.T[i][2:][j]), k lookups through a chain of views",
        inputs=square_inputs,
        small={"n": 9, "k": 20},
        ours={"lineara": lineara_views},
        peers={"torch": torch_views, "autograd": autograd_views},
        unit="lookup",
        per="k",
        rows=(
            Row({"n": 100, "k": 100}, also=("torch", "autograd")),
            Row({"n": 1000, "k": 100}, also=("torch", "autograd")),
            Row({"n": 4000, "k": 100}, quick=False),
        ),
        growth=(Growth("n", 0.05),),
        note="Published for ours: 3.1 µs, flat.",
    ),
)

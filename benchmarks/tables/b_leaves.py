"""(b) Parameters in nested dicts and tuples, many leaves, one of them used."""

import numpy as np

from ..table import Call, Growth, Row, Table


def inputs(leaves: int, size: int) -> tuple:
    """{"layers": ({"w": ..., "b": ...}, ...)} with that many float32 leaves; all of one size."""
    rng = np.random.default_rng(0)
    layers = tuple(
        {name: rng.standard_normal(size, dtype=np.float32) for name in "wb"}
        for _ in range(leaves // 2)
    )
    return ({"layers": layers},)


def lineara_dense(params: dict) -> Call:
    import lineara

    def f(p):
        return np.sum(np.sin(p["layers"][3]["w"]))

    gradient = lineara.grad(f)
    return lambda: gradient(params)


def lineara_sparse(params: dict) -> Call:
    import lineara

    def f(p):
        return np.sum(np.sin(p["layers"][3]["w"]))

    gradient = lineara.grad(f, sparse=True)
    return lambda: gradient(params)


def torch_backward(params: dict) -> Call:
    import torch

    layers = tuple(
        {name: torch.from_numpy(leaf).requires_grad_() for name, leaf in layer.items()}
        for layer in params["layers"]
    )

    def call():
        torch.sum(torch.sin(layers[3]["w"])).backward()
        grads = [{name: leaf.grad for name, leaf in layer.items()} for layer in layers]
        for layer in layers:
            for leaf in layer.values():
                leaf.grad = None
        return {"layers": grads}

    return call


def torch_func(params: dict) -> Call:
    import torch

    layers = tuple(
        {name: torch.from_numpy(leaf) for name, leaf in layer.items()} for layer in params["layers"]
    )
    params = {"layers": layers}
    gradient = torch.func.grad(lambda p: torch.sum(torch.sin(p["layers"][3]["w"])))
    return lambda: gradient(params)


def _jax(jit: bool):
    def build(params):
        import jax
        import jax.numpy as jnp

        params = jax.tree.map(jnp.asarray, params)
        gradient = jax.grad(lambda p: jnp.sum(jnp.sin(p["layers"][3]["w"])))
        gradient = jax.jit(gradient) if jit else gradient
        return lambda: jax.block_until_ready(gradient(params))

    return build


def autograd_eager(params: dict) -> Call:
    import autograd
    import autograd.numpy as anp

    gradient = autograd.grad(lambda p: anp.sum(anp.sin(p["layers"][3]["w"])))
    return lambda: gradient(params)


TABLES = (
    Table(
        key="b",
        title="nested dict and tuple of float32 leaves, one used; the whole gradient",
        inputs=inputs,
        small={"leaves": 10, "size": 5},
        ours={"lineara": lineara_dense, "lineara sparse": lineara_sparse},
        judged=("lineara", "lineara sparse"),
        peers={
            "torch .backward": torch_backward,
            "torch.func.grad": torch_func,
            "JAX": _jax(jit=False),
            "JAX jit": _jax(jit=True),
            "autograd": autograd_eager,
        },
        rtol=1e-5,
        rows=(
            Row(
                {"leaves": 40, "size": 10_000},
                {
                    "lineara": 0.016,
                    "torch .backward": 0.048,
                    "torch.func.grad": 1.0,
                    "JAX": 4.5,
                    "JAX jit": 0.37,
                    "autograd": 1.9,
                },
            ),
            Row(
                {"leaves": 40, "size": 1_000_000},
                {
                    "lineara": 10.4,
                    "torch .backward": 0.57,
                    "torch.func.grad": 8.4,
                    "JAX": 83.8,
                    "JAX jit": 14.9,
                    "autograd": 27.8,
                },
                memory=True,
                quick=False,
            ),
            Row(
                {"leaves": 400, "size": 10_000},
                {
                    "lineara": 0.012,
                    "torch.func.grad": 21.9,
                    "JAX": 78.4,
                    "JAX jit": 2.05,
                    "autograd": 3.2,
                },
                also=("torch .backward",),
            ),
            Row({"leaves": 4000, "size": 10_000}, quick=False),
            Row({"leaves": 4000, "size": 1_000}, {"lineara": 0.008}, also=("torch .backward",)),
        ),
        growth=(Growth("leaves", 0.05, {"size": 10_000}, ("lineara sparse",)),),
        note="lineara returns the whole tree (untouched leaves are fresh zeros), lineara sparse a "
        "tree whose untouched leaves are symbolic zeros.",
    ),
)

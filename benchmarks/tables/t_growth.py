"""(t) Growth of the linear graph: transposing a chain of n nodes, a diamond of depth n."""

import math

from ..table import Call, Growth, Row, Table


def inputs(n: int) -> tuple:
    """A number and how many nodes."""
    return 0.7, n


def lineara_transpose(x: float, n: int) -> Call:
    """The chain is linearized once; what is timed is `L.T` and its application."""
    import lineara

    def f(x):
        for _ in range(n):
            x = math.sin(x)
        return x

    _, L = lineara.linearize(f, x)
    return lambda: L.T @ 1.0


def torch_chain(x: float, n: int) -> Call:
    """The chain is recorded once; what is timed is the reverse sweep."""
    import torch

    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(n):
        y = torch.sin(y)
    return lambda: torch.autograd.grad(y, x, retain_graph=True)[0]


def lineara_diamond(x: float, n: int) -> Call:
    import lineara

    def f(x):
        for _ in range(n):
            x = 0.5 * x + 0.5 * x
        return x

    gradient = lineara.grad(f)
    return lambda: gradient(x)


def torch_diamond(x: float, n: int) -> Call:
    import torch

    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)

    def call():
        leaf.grad = None
        x = leaf
        for _ in range(n):
            x = 0.5 * x + 0.5 * x
        x.backward()
        return leaf.grad

    return call


def autograd_diamond(x: float, n: int) -> Call:
    import autograd

    def f(x):
        for _ in range(n):
            x = 0.5 * x + 0.5 * x
        return x

    gradient = autograd.grad(f)
    return lambda: gradient(x)


CACHES = "An exponent of 1 would be a slope of 0; the limit leaves room for the caches."

TABLES = (
    Table(
        key="t",
        title="transposing a chain of n nodes and applying it",
        inputs=inputs,
        small={"n": 12},
        ours={"lineara": lineara_transpose},
        peers={"torch": torch_chain},
        unit="node",
        per="n",
        rows=(
            Row({"n": 1_000}, also=("torch",)),
            Row({"n": 10_000}, also=("torch",)),
            Row({"n": 100_000}, also=("torch",)),
            Row({"n": 1_000_000}, quick=False),
        ),
        growth=(Growth("n", 0.2),),
        note=CACHES,
    ),
    Table(
        key="t",
        title="a diamond of depth n, x = 0.5 x + 0.5 x (2^n paths)",
        inputs=inputs,
        small={"n": 12},
        ours={"lineara": lineara_diamond},
        peers={"torch": torch_diamond, "autograd": autograd_diamond},
        unit="level",
        per="n",
        rows=(
            Row({"n": 1_000}, also=("torch", "autograd")),
            Row({"n": 10_000}, also=("torch", "autograd")),
            Row({"n": 100_000}, also=("torch",), long=("autograd",)),
        ),
        growth=(Growth("n", 0.2),),
        note=CACHES,
    ),
)

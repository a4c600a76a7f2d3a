"""(v) An array of constants that the function fills in place: a Vandermonde matrix."""

from typing import Any

import numpy as np

from ..table import Call, Row, Table

PLAIN = "NumPy, no derivative"


def inputs(n: int, k: int) -> tuple:
    """Points, and the coefficients of a polynomial."""
    return np.linspace(-1.0, 1.0, n), np.linspace(1.0, 2.0, k)


def by_cumprod(np: Any, points: Any, c: Any) -> Any:
    """The values of a polynomial, summed: the powers by one function of NumPy's."""
    V = np.ones((points.shape[0], c.shape[0]))
    V[:, 1:] = points[:, None]
    np.cumprod(V, axis=1, out=V)
    return np.sum(V @ c)


def by_columns(np: Any, points: Any, c: Any) -> Any:
    """The same, the powers column by column."""
    V = np.ones((points.shape[0], c.shape[0]))
    for j in range(1, c.shape[0]):
        V[:, j] = V[:, j - 1] * points
    return np.sum(V @ c)


def plainly(f: Any) -> Any:
    return lambda points, c: lambda: f(np, points, c)


def ours(f: Any) -> Any:
    def build(points: np.ndarray, c: np.ndarray) -> Call:
        import lineara

        g = lineara.grad(lambda c: f(np, points, c))
        return lambda: g(c)

    return build


def autograd(f: Any) -> Any:
    def build(points: np.ndarray, c: np.ndarray) -> Call:
        import autograd
        import autograd.numpy as anp

        g = autograd.grad(lambda c: f(anp, points, c))
        return lambda: g(c)

    return build


def torch_by_cumprod(points: np.ndarray, c: np.ndarray) -> Call:
    import torch

    x, c = torch.from_numpy(points), torch.from_numpy(c).requires_grad_()

    def call():
        c.grad = None
        V = torch.ones((len(x), len(c)), dtype=torch.float64)
        V[:, 1:] = x[:, None]
        torch.sum(torch.cumprod(V, 1) @ c).backward()
        return c.grad

    return call


def torch_by_columns(points: np.ndarray, c: np.ndarray) -> Call:
    import torch

    x, c = torch.from_numpy(points), torch.from_numpy(c).requires_grad_()

    def call():
        c.grad = None
        V = torch.ones((len(x), len(c)), dtype=torch.float64)
        for j in range(1, len(c)):
            V[:, j] = V[:, j - 1] * x
        torch.sum(V @ c).backward()
        return c.grad

    return call


def table(title: str, f: Any, torch: Any) -> Table:
    """One way to fill it, in every system."""
    peers = {PLAIN: plainly(f), "torch": torch, "autograd": autograd(f)}
    return Table(
        key="v",
        title=title,
        inputs=inputs,
        small={"n": 9, "k": 5},
        ours={"lineara": ours(f)},
        peers=peers,
        rows=(
            Row({"n": 1000, "k": 20}, also=(*peers,), goals={PLAIN: 1 / 1.5}),
            Row({"n": 1000, "k": 200}, also=(*peers,), goals={PLAIN: 1 / 1.5}),
        ),
    )


TABLES = (
    table("powers of n points by cumprod, k coefficients", by_cumprod, torch_by_cumprod),
    table("powers of n points column by column, k coefficients", by_columns, torch_by_columns),
)

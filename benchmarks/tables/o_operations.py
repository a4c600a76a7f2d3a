"""(o) One array operation at a time: several in a row on 4 × 4 arrays, forward and back.

In float32, too (o32), and with a sine in the derivative of a derivative (o2).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..table import Call, Row, Table

Step = Callable[[Any, Any, Any, Any], Any]
OPS = 50
OPS_AT_DEPTH = 10


class Column(NamedTuple):
    """An operation y = step(np, y, x, x[0]), as NumPy and autograd write it and as torch does."""

    title: str
    step: Step
    torch: Step


COLUMNS = (
    Column("sin", lambda np, y, x, r: np.sin(y), lambda torch, y, x, r: torch.sin(y)),
    Column("y * x + x", lambda np, y, x, r: y * x + x, lambda torch, y, x, r: y * x + x),
    Column("y + a row", lambda np, y, x, r: y + r, lambda torch, y, x, r: y + r),
    Column("y @ x", lambda np, y, x, r: y @ x, lambda torch, y, x, r: y @ x),
    Column(
        "slices, concatenated",
        lambda np, y, x, r: np.concatenate([y[2:], y[:2]]),
        lambda torch, y, x, r: torch.cat([y[2:], y[:2]]),
    ),
    Column(
        "y + sum(y, axis)",
        lambda np, y, x, r: y + np.sum(y, axis=0),
        lambda torch, y, x, r: y + torch.sum(y, 0),
    ),
    Column(
        "y - max(y, axis)",
        lambda np, y, x, r: y - np.max(y, axis=1, keepdims=True),
        lambda torch, y, x, r: y - torch.amax(y, 1, keepdim=True),
    ),
    Column(
        "solve(x, y)",
        lambda np, y, x, r: np.linalg.solve(x, y),
        lambda torch, y, x, r: torch.linalg.solve(x, y),
    ),
    Column(
        "y + slogdet(y)",
        lambda np, y, x, r: y + np.linalg.slogdet(y)[1],
        lambda torch, y, x, r: y + torch.linalg.slogdet(y)[1],
    ),
    Column(
        "where",
        lambda np, y, x, r: np.where(x > 0.0, y, x),
        lambda torch, y, x, r: torch.where(x > 0.0, y, x),
    ),
)


def inputs(ops: int) -> tuple:
    """A matrix near the identity, one of normal numbers, and how many operations."""
    rng = np.random.default_rng(0)
    return np.eye(4) + 0.1 * rng.standard_normal((4, 4)), rng.standard_normal((4, 4)), ops


def plain(step: Step) -> Callable[..., Call]:
    """NumPy alone."""
    return lambda x, y, ops: lambda: _chain(np, np.sum, step, ops)(x, y)


def lineara(step: Step, twice: bool = False) -> Callable[..., Call]:
    """Ours; `twice`, of a function of the gradient."""

    def build(x: Any, y: Any, ops: int) -> Call:
        import lineara

        return _gradient(lineara.grad, "argnums", np, step, ops, twice, x, y)

    return build


def autograd(step: Step, twice: bool = False) -> Callable[..., Call]:
    """autograd's."""

    def build(x: Any, y: Any, ops: int) -> Call:
        import autograd
        import autograd.numpy as anp

        return _gradient(autograd.grad, "argnum", anp, step, ops, twice, x, y)

    return build


def _gradient(
    grad: Callable[..., Any], places: str, space: Any, step: Step, ops: int, twice: bool,
    x: Any, y: Any,
) -> Call:  # fmt: skip
    """A gradient in both arguments, by a function that is told these by the name of `places`."""
    both = {places: (0, 1)}
    slopes = grad(_chain(space, space.sum, with_sine(step) if twice else step, ops), **both)
    if twice:
        inner = slopes
        slopes = grad(lambda x, y: _squares(space, inner(x, y)), **both)
    return lambda: slopes(x, y)


def torch(step: Step, twice: bool = False) -> Callable[..., Call]:
    """torch's."""

    def build(x: Any, y: Any, ops: int) -> Call:
        import torch

        x, y = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y).requires_grad_()
        f = _chain(torch, torch.sum, with_sine(step) if twice else step, ops)
        options: dict[str, Any] = {"allow_unused": True, "materialize_grads": True}

        def once():
            x.grad = y.grad = None
            f(x, y).backward()
            return x.grad, y.grad

        def again():
            slopes = torch.autograd.grad(f(x, y), (x, y), create_graph=True, **options)
            return torch.autograd.grad(_squares(torch, slopes), (x, y), **options)

        return again if twice else once

    return build


def single(ops: int) -> tuple:
    """The inputs in float32."""
    x, y, _ = inputs(ops)
    return x.astype(np.float32), y.astype(np.float32), ops


def with_sine(step: Step) -> Step:
    """The operation and a sine, so that second derivatives are not zero."""
    return lambda space, y, x, r: space.sin(step(space, y, x, r))


def _squares(space: Any, slopes: Any) -> Any:
    return sum([space.sum(g * g) for g in slopes])


def _chain(space: Any, total: Any, step: Step, ops: int) -> Callable[[Any, Any], Any]:
    def f(x: Any, y: Any) -> Any:
        row = x[0]
        for _ in range(ops):
            y = step(space, y, x, row)
        return total(y)

    return f


PLAIN = "NumPy, no derivative"


def table(column: Column, key: str, title: str, **options: Any) -> Table:
    """An operation in every system."""
    twice = key == "o2"
    return Table(
        key=key,
        title=title,
        ours={"lineara": lineara(column.step, twice)},
        peers={
            "torch": torch(column.torch, twice),
            "autograd": autograd(column.step, twice),
            PLAIN: plain(column.step),
        },
        unit="operation",
        per="ops",
        **options,
    )


TABLES = (
    *[
        table(
            column,
            "o",
            f"{column.title}: one operation on 4 × 4 arrays, forward and backward",
            inputs=inputs,
            small={"ops": 6},
            rows=(Row({"ops": OPS}, also=(PLAIN, "autograd", "torch"), goals={"torch": 1.0}),),
        )
        for column in COLUMNS
    ],
    *[
        table(
            column,
            "o32",
            f"{column.title}: one operation on 4 × 4 arrays of float32, forward and backward",
            inputs=single,
            small={"ops": 6},
            rtol=1e-3,
            rows=(Row({"ops": OPS}, also=("autograd", "torch")),),
        )
        for column in COLUMNS
    ],
    *[
        table(
            column,
            "o2",
            f"sin of {column.title}: one operation in the gradient of a function of a gradient",
            inputs=inputs,
            small={"ops": 4},
            rows=(Row({"ops": OPS_AT_DEPTH}, also=("autograd", "torch")),),
        )
        for column in COLUMNS
    ],
)

"""(p) Small programs of many kinds of array operations: a filter, a network, fits, logsumexp."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import Call, Row, Table

Program = Callable[..., Any]  # of the namespace and the arguments
PLAIN = "NumPy, no derivative"


def plain(program: Program) -> Callable[..., Call]:
    """NumPy alone."""
    return lambda *inputs: lambda: program(np, *inputs)


def lineara(program: Program, leaves: int) -> Callable[..., Call]:
    """Ours, with the derivative of the first arguments."""

    def build(*inputs: Any) -> Call:
        import lineara

        def f(*args: Any) -> Any:
            return program(np, *args)

        gradient = lineara.value_and_grad(f, argnums=tuple(range(leaves)))
        return lambda: gradient(*inputs)[1]

    return build


def autograd(program: Program, leaves: int) -> Callable[..., Call]:
    """autograd's."""

    def build(*inputs: Any) -> Call:
        import autograd
        import autograd.numpy as anp

        def f(*args: Any) -> Any:
            return program(anp, *args)

        gradient = autograd.value_and_grad(f, argnum=tuple(range(leaves)))
        return lambda: gradient(*inputs)[1]

    return build


def torch(program: Program, leaves: int) -> Callable[..., Call]:
    """torch's."""

    def build(*inputs: Any) -> Call:
        import torch

        given = [torch.from_numpy(a) for a in inputs]
        for a in given[:leaves]:
            a.requires_grad_()

        def call():
            for a in given[:leaves]:
                a.grad = None
            program(torch, *given).backward()
            return tuple([a.grad for a in given[:leaves]])

        return call

    return build


def kalman_inputs(steps: int) -> tuple:
    """A transition, noises of the state and of the measurement, what is measured, measurements."""
    rng = np.random.default_rng(0)
    F = 0.9 * np.eye(4) + 0.05 * rng.standard_normal((4, 4))
    H = rng.standard_normal((4, 4))
    return F, 0.1 * np.eye(4), 0.2 * np.eye(4), H, rng.standard_normal((steps, 4)), np.eye(4)


def kalman(np: Any, F: Any, Q: Any, R: Any, H: Any, zs: Any, eye: Any) -> Any:
    """Minus the log likelihood of measurements, by a Kalman filter."""
    m, P, total = zs[0], eye, 0.0
    for z in zs:
        m = F @ m
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        r = z - H @ m
        K = np.linalg.solve(S, H @ P).T
        m = m + K @ r
        P = P - K @ S @ K.T
        total = total + np.linalg.slogdet(S)[1] + r @ np.linalg.solve(S, r)
    return 0.5 * total


def network_inputs(batch: int) -> tuple:
    """Weights of two layers, 64 × 128 × 10, and a batch with its labels."""
    rng = np.random.default_rng(0)
    W1, W2 = rng.standard_normal((64, 128)) / 8, rng.standard_normal((128, 10)) / 11
    x, labels = rng.standard_normal((batch, 64)), np.eye(10)[rng.integers(0, 10, batch)]
    return W1, np.zeros(128), W2, np.zeros(10), x, labels


def network(np: Any, W1: Any, b1: Any, W2: Any, b2: Any, x: Any, labels: Any) -> Any:
    """The cross entropy of a network with one hidden layer."""
    y = np.tanh(x @ W1 + b1) @ W2 + b2
    y = y - _most(np, y)
    return np.sum(np.log(np.sum(np.exp(y), 1)) - np.sum(y * labels, 1))


def _most(np: Any, y: Any) -> Any:
    """The largest of each row."""
    return np.amax(y, 1)[:, None]


def fit_inputs(n: int, m: int) -> tuple:
    """A matrix of m rows, and a right side."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, n)), rng.standard_normal(m)


def fit(np: Any, A: Any, b: Any) -> Any:
    """The least sum of squares, by the normal equations."""
    r = A @ np.linalg.solve(A.T @ A, A.T @ b) - b
    return r @ r


def lse_inputs(n: int) -> tuple:
    """Normal numbers."""
    return (np.random.default_rng(0).standard_normal(n),)


def lse(np: Any, x: Any) -> Any:
    """The logarithm of the sum of the exponentials."""
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def lse_rows_inputs(n: int) -> tuple:
    """Normal numbers in rows of 50."""
    return (np.random.default_rng(0).standard_normal((n // 50, 50)),)


def lse_rows(np: Any, x: Any) -> Any:
    """The same of each row, summed."""
    m = np.amax(x, 1)
    return np.sum(m + np.log(np.sum(np.exp(x - m[:, None]), 1)))


def lse_library(np: Any, x: Any) -> Any:
    """The same by the libraries' own functions."""
    if np.__name__ == "torch":
        return np.logsumexp(x, 0)
    if np.__name__ == "numpy":
        from scipy.special import logsumexp
    else:
        from autograd.scipy.special import logsumexp
    return logsumexp(x)


def table(title: str, program: Program, inputs: Any, leaves: int, small: Any, rows: Any) -> Table:
    """A program in every system; the derivative of its first arguments."""
    return Table(
        key="p",
        title=title,
        inputs=inputs,
        small=small,
        ours={"lineara": lineara(program, leaves)},
        peers={
            "torch": torch(program, leaves),
            "autograd": autograd(program, leaves),
            PLAIN: plain(program),
        },
        rows=rows,
    )


def row(torch: float | None = None, autograd: float | None = None, **size: int) -> Row:
    """One size with what was agreed: peer time / our time, at least."""
    goals = {"torch": torch, "autograd": autograd}
    return Row(
        size,
        also=(PLAIN, "torch", "autograd"),
        goals={peer: goal for peer, goal in goals.items() if goal is not None},
        quick=size.get("n", 0) < 100_000,
    )


SIZES = (100, 2_500, 10_000, 100_000, 1_000_000)
_LSE = tuple(row(torch=1 / 1.1 if n >= 10_000 else None, autograd=1.0, n=n) for n in SIZES)

TABLES = (
    table(
        "a Kalman filter with four states and four measurements a step",
        *(kalman, kalman_inputs, 4, {"steps": 5}),
        (row(torch=1 / 0.7, steps=200),),
    ),
    table(
        "a network, 64 × 128 × 10",
        *(network, network_inputs, 4, {"batch": 4}),
        tuple(row(torch=1.0, batch=b) for b in (16, 64)),
    ),
    table(
        "least squares by the normal equations",
        *(fit, fit_inputs, 2, {"n": 4, "m": 8}),
        tuple(row(autograd=1.0, n=n, m=2 * n) for n in (8, 64, 128)),
    ),
    table("logsumexp of a vector", lse, lse_inputs, 1, {"n": 10}, _LSE),
    table("logsumexp of rows of 50", lse_rows, lse_rows_inputs, 1, {"n": 100}, _LSE),
    table("logsumexp, the libraries' own", lse_library, lse_inputs, 1, {"n": 10}, _LSE),
)

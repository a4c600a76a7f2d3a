"""(d) A fold over a list, `s = sin(s + e)`.  (d2) The same over a cons list of nested tuples."""

import math
import sys

import numpy as np

from ..table import Call, Growth, Row, Table


def inputs(k: int) -> tuple:
    """k Python floats."""
    return (np.random.default_rng(0).standard_normal(k).tolist(),)


def cons_inputs(k: int) -> tuple:
    """(x0, (x1, (x2, ... ())))."""
    return (cons(inputs(k)[0]),)


def cons(values: list) -> tuple:
    """A list as nested pairs."""
    cell: tuple = ()
    for value in reversed(values):
        cell = (value, cell)
    return cell


def lineara_list(xs: list[float]) -> Call:
    import lineara

    def f(xs):
        s = 0.0
        for e in xs:
            s = math.sin(s + e)
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(xs)


def torch_list(xs: list[float]) -> Call:
    import torch

    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in xs]

    def call():
        for leaf in leaves:
            leaf.grad = None
        s = torch.tensor(0.0, dtype=torch.float64)
        for e in leaves:
            s = torch.sin(s + e)
        s.backward()
        return [leaf.grad for leaf in leaves]

    return call


def torch_iter(xs: list[float]) -> Call:
    import torch

    x = torch.tensor(xs, dtype=torch.float64, requires_grad=True)

    def call():
        x.grad = None
        s = torch.tensor(0.0, dtype=torch.float64)
        for e in x:
            s = torch.sin(s + e)
        s.backward()
        return list(x.grad.numpy())

    return call


def torch_index(xs: list[float]) -> Call:
    import torch

    x = torch.tensor(xs, dtype=torch.float64, requires_grad=True)

    def call():
        x.grad = None
        s = torch.tensor(0.0, dtype=torch.float64)
        for i in range(len(x)):
            s = torch.sin(s + x[i])
        s.backward()
        return list(x.grad.numpy())

    return call


def _jax(jit: bool):
    def build(xs):
        import jax
        import jax.numpy as jnp

        def f(xs):
            s = 0.0
            for e in xs:
                s = jnp.sin(s + e)
            return s

        gradient = jax.jit(jax.grad(f)) if jit else jax.grad(f)
        return lambda: jax.block_until_ready(gradient(xs))

    return build


def autograd_list(xs: list[float]) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(xs):
        s = 0.0
        for e in xs:
            s = anp.sin(s + e)
        return s

    gradient = autograd.grad(f)
    return lambda: gradient(xs)


def lineara_cons(cell: tuple) -> Call:
    import lineara

    def f(cell):
        s = 0.0
        while cell:
            e, cell = cell
            s = math.sin(s + e)
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(cell)


def torch_cons(cell: tuple) -> Call:
    import torch

    def f(cell):
        s = torch.tensor(0.0, dtype=torch.float64)
        while cell:
            e, cell = cell
            s = torch.sin(s + e)
        return s

    gradient = torch.func.grad(f)
    values = []
    while cell:
        value, cell = cell
        values.append(torch.tensor(value, dtype=torch.float64))
    cell = cons(values)
    return _deep(lambda: gradient(cell))


def jax_cons(cell: tuple) -> Call:
    import jax
    import jax.numpy as jnp

    def f(cell):
        s = 0.0
        while cell:
            e, cell = cell
            s = jnp.sin(s + e)
        return s

    gradient = jax.grad(f)
    return lambda: jax.block_until_ready(gradient(cell))


def autograd_cons(cell: tuple) -> Call:
    import autograd
    import autograd.numpy as anp

    def f(cell):
        s = 0.0
        while len(cell):
            e, cell = cell
            s = anp.sin(s + e)
        return s

    gradient = autograd.grad(f)
    return _deep(lambda: gradient(cell))


def _deep(call: Call) -> Call:
    """`call`, whose library walks containers recursively and needs a higher limit than Python's."""

    def deep_call():
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)
        try:
            return call()
        finally:
            sys.setrecursionlimit(limit)

    return deep_call


LIST, ITER, INDEX = "torch list", "torch iter", "torch index"

TABLES = (
    Table(
        key="d",
        title="fold over a list of k numbers, s = sin(s + e)",
        inputs=inputs,
        small={"k": 9},
        ours={"lineara": lineara_list},
        peers={
            LIST: torch_list,
            ITER: torch_iter,
            INDEX: torch_index,
            "autograd": autograd_list,
            "JAX": _jax(jit=False),
            "JAX jit": _jax(jit=True),
        },
        unit="element",
        per="k",
        rows=(
            Row(
                {"k": 100},
                {
                    "lineara": 1.09,
                    LIST: 12,
                    ITER: 10,
                    INDEX: 14,
                    "autograd": 81,
                    "JAX": 316,
                    "JAX jit": 3.0,
                },
            ),
            Row(
                {"k": 400},
                {
                    "lineara": 1.13,
                    LIST: 12,
                    ITER: 10,
                    INDEX: 15,
                    "autograd": 208,
                    "JAX": 314,
                },
                long=("JAX jit",),
            ),
            Row(
                {"k": 1600},
                {"lineara": 1.23, LIST: 13, ITER: 10, INDEX: 15, "autograd": 859},
                quick=False,
            ),
            Row({"k": 10_000}),
            Row({"k": 100_000}, quick=False),
        ),
        growth=(Growth("k", 0.15),),
        note="JAX jit compiles every length anew, in time ~ k^1.9 (its first call). "
        "The growth limit leaves room for the caches.",
    ),
    Table(
        key="d2",
        title="the same fold over a cons list of nested tuples, depth k",
        inputs=cons_inputs,
        small={"k": 9},
        ours={"lineara": lineara_cons},
        peers={"autograd": autograd_cons, "JAX": jax_cons, "torch.func": torch_cons},
        unit="element",
        per="k",
        rows=(
            Row({"k": 100}, {"lineara": 1.7, "autograd": 1516, "JAX": 1496, "torch.func": 298}),
            Row({"k": 400}, {"lineara": 1.8, "autograd": 6970, "JAX": 1174, "torch.func": 201}),
            Row(
                {"k": 800},
                {"lineara": 4.5, "JAX": 1216, "torch.func": 269},
                long=("autograd",),
                quick=False,
            ),
            Row({"k": 10_000}),
        ),
        growth=(Growth("k", 0.25),),
        note="Published for k=800: autograd 15,229 µs an element. The published times of the peers "
        "are four to six times those of the list in (d), for the same operations; they have not "
        "been seen again, so the goals drawn from them are out of proportion. torch.func and "
        "autograd walk tuples recursively and are given a higher recursion limit. The growth limit "
        "leaves room for the caches.",
    ),
)

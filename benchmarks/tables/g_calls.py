"""(g) What a call costs: derivatives of functions so small that nothing else counts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import Call, Row, Table

Made = Callable[..., Call]


def square(x: Any) -> Any:
    return x * x


def cube(x: Any) -> Any:
    return x * x * x


def squares(x: Any) -> Any:
    return (x * x).sum()


def numbers(n: int) -> tuple:
    """A number where n is 1, else a vector."""
    return (3.0,) if n == 1 else (np.arange(float(n)) + 0.5,)


# --- first derivatives ----------------------------------------------------------------------------


def gradient(f: Any) -> Made:
    """Ours, made once."""

    def build(x: Any) -> Call:
        import lineara

        g = lineara.grad(f)
        return lambda: g(x)

    return build


def gradient_anew(x: Any) -> Call:
    """Ours, made at every call, as `jvp` and `linearize` are given their function."""
    import lineara

    return lambda: lineara.grad(square)(x)


def ahead(f: Any) -> Made:
    """Ours, in the direction of ones."""

    def build(x: Any) -> Call:
        import lineara

        v = along(x)
        return lambda: lineara.jvp(f, (x,), (v,))[1]

    return build


def by_map(f: Any) -> Made:
    """Ours, by a map that is applied once."""

    def build(x: Any) -> Call:
        import lineara

        v = along(x)
        return lambda: lineara.linearize(f, x)[1] @ v

    return build


def along(x: Any) -> Any:
    """Ones like x."""
    return 1.0 if isinstance(x, float) else np.ones_like(x)


def torch_backward(f: Any) -> Made:
    def build(x: Any) -> Call:
        import torch

        x = torch.tensor(x, dtype=torch.float64, requires_grad=True)

        def call():
            x.grad = None
            f(x).backward()
            return x.grad

        return call

    return build


def torch_jvp(f: Any) -> Made:
    def build(x: Any) -> Call:
        import torch

        x = torch.tensor(x, dtype=torch.float64)
        v = torch.ones_like(x)
        return lambda: torch.func.jvp(f, (x,), (v,))[1]

    return build


def jax_gradient(f: Any, jit: bool = False) -> Made:
    def build(x: Any) -> Call:
        import jax
        import jax.numpy as jnp

        x, g = jnp.asarray(x), jax.grad(f)
        g = jax.jit(g) if jit else g
        return lambda: jax.block_until_ready(g(x))

    return build


def jax_jvp(f: Any, jit: bool = False) -> Made:
    def build(x: Any) -> Call:
        import jax
        import jax.numpy as jnp

        x = jnp.asarray(x)
        v = jnp.ones_like(x)

        def directional(x):
            return jax.jvp(f, (x,), (v,))[1]

        run = jax.jit(directional) if jit else directional
        return lambda: jax.block_until_ready(run(x))

    return build


def autograd_gradient(f: Any) -> Made:
    def build(x: Any) -> Call:
        import autograd

        g = autograd.grad(f)
        return lambda: g(x)

    return build


def autograd_jvp(f: Any) -> Made:
    def build(x: Any) -> Call:
        import autograd

        v = along(x)
        return lambda: autograd.make_jvp(f)(x)(v)[1]

    return build


# --- second derivatives ---------------------------------------------------------------------------


def second(outer: str, inner: str) -> Made:
    """Ours, of the cube."""

    def build(x: float) -> Call:
        import lineara

        def forward(f: Any) -> Any:
            return lambda x: lineara.jvp(f, (x,), (1.0,))[1]

        ways = {"forward": forward, "reverse": lineara.grad}
        return lambda: ways[outer](ways[inner](cube))(x)

    return build


def torch_second(x: float) -> Call:
    import torch

    x = torch.tensor(x, dtype=torch.float64)
    return lambda: torch.func.grad(torch.func.grad(cube))(x)


def jax_second(jit: bool) -> Made:
    def build(x: float) -> Call:
        import jax
        import jax.numpy as jnp

        x, g = jnp.asarray(x), jax.grad(jax.grad(cube))
        g = jax.jit(g) if jit else g
        return lambda: jax.block_until_ready(g(x))

    return build


def autograd_second(x: float) -> Call:
    import autograd

    return lambda: autograd.grad(autograd.grad(cube))(x)


PEERS = ("torch", "JAX", "JAX jit", "autograd")
GOALS = {"torch": 1.0, "JAX": 1.0, "autograd": 1.0}

TABLES = (
    Table(
        key="g",
        title="the derivative of x * x at a number",
        inputs=numbers,
        small={"n": 1},
        ours={
            "lineara": gradient(square),
            "lineara made anew": gradient_anew,
            "lineara jvp": ahead(square),
            "lineara linearize": by_map(square),
        },
        peers={
            "torch": torch_backward(square),
            "torch.func.jvp": torch_jvp(square),
            "JAX": jax_gradient(square),
            "JAX jvp": jax_jvp(square),
            "JAX jit": jax_gradient(square, jit=True),
            "autograd": autograd_gradient(square),
            "autograd make_jvp": autograd_jvp(square),
        },
        rows=(
            Row(
                {"n": 1},
                also=(*PEERS, "torch.func.jvp", "JAX jvp", "autograd make_jvp"),
                goals=GOALS,
            ),
        ),
        note="Goals beside these: 8 µs for a gradient that is made once; 1.5 gradients, made anew "
        "at each call as theirs are, for jvp and linearize.",
    ),
    Table(
        key="g",
        title="the gradient of (x * x).sum()",
        inputs=numbers,
        small={"n": 10},
        ours={"lineara": gradient(squares)},
        peers={
            "torch": torch_backward(squares),
            "JAX": jax_gradient(squares),
            "JAX jit": jax_gradient(squares, jit=True),
            "autograd": autograd_gradient(squares),
        },
        rows=(Row({"n": 10}, also=PEERS, goals=GOALS),),
        note="The goal beside these: 25 µs.",
    ),
    Table(
        key="g",
        title="the derivative of (x * x).sum() in one direction",
        inputs=numbers,
        small={"n": 10},
        ours={"lineara": ahead(squares), "lineara linearize": by_map(squares)},
        peers={
            "torch": torch_jvp(squares),
            "JAX": jax_jvp(squares),
            "JAX jit": jax_jvp(squares, jit=True),
            "autograd": autograd_jvp(squares),
        },
        rows=(Row({"n": 10}, also=PEERS, goals=GOALS),),
    ),
    Table(
        key="g",
        title="the second derivative of x * x * x at a number",
        inputs=numbers,
        small={"n": 1},
        ours={
            "lineara": second("reverse", "reverse"),
            "lineara forward over forward": second("forward", "forward"),
            "lineara forward over reverse": second("forward", "reverse"),
            "lineara reverse over forward": second("reverse", "forward"),
        },
        peers={
            "torch": torch_second,
            "JAX": jax_second(jit=False),
            "JAX jit": jax_second(jit=True),
            "autograd": autograd_second,
        },
        rows=(Row({"n": 1}, also=PEERS, goals=GOALS),),
    ),
)

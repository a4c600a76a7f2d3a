"""(x) From a Python function to a program: capture beside JAX's tracing, and every stage."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import Call, Growth, Row, Table

NOTE = (
    "`trace` and `make_jaxpr` give a program, `lower` gives what XLA compiles, and `stages` all "
    "passes with their costs. A function has been seen before: its source is read once. JAX is "
    "given a new function each time, lest it give what it has kept. Python's loop is a loop of our "
    "program and is written out in JAX's, so its rows grow there."
)


def lines(xp: Any, x: Any, y: Any) -> Any:
    """Thirty lines without a loop."""
    a = xp.sin(x) * y
    b = a + x
    c = b * b - a
    d = xp.exp(-c)
    e = d.sum()
    f = e * a + b
    g = xp.tanh(f)
    h = g @ x
    i = h + e * 2
    j = xp.sqrt(i * i + 1)
    k = a[0] + b[1]
    p = a[1:] * b[:-1]
    m = p.sum() + k
    n = m * j
    o = xp.maximum(a, b)
    q = o.mean()
    r = q + n
    s = xp.log(1 + xp.exp(r))
    t = s * x
    u = t / (1 + y * y)
    v = u.reshape(-1, 1) * a
    w = v.sum(axis=0)
    z = xp.dot(w, w)
    aa = z + r
    bb = aa * 0.5
    cc = bb - s
    dd = cc * cc
    ee = xp.where(a > 0, a, -b)
    ff = ee.sum() * dd
    return ff + cc


def loop(xp: Any, x: Any, y: Any) -> Any:
    """A loop over an array, with what it carries."""
    s = 1.0
    t = 0.0
    for i in range(len(x)):
        s = s + xp.sin(x[i]) * s
        t = 0.9 * t + x[i] * y[i]
    return s * t


def inputs(n: int) -> tuple:
    """Two arrays."""
    rng = np.random.default_rng(0)
    return tuple(rng.uniform(0.1, 0.9, (2, n)))


def ours(name: str, f: Callable[..., Any]) -> Callable[..., Call]:
    """`trace` or `stages` of a function."""

    def build(x: Any, y: Any) -> Call:
        import lineara

        make = getattr(lineara, name)

        def program(a, b):
            return f(np, a, b)

        return lambda: make(program, x, y)

    return build


def jaxs(name: str, f: Callable[..., Any]) -> Callable[..., Call]:
    """`make_jaxpr` or `lower` of a function."""

    def build(x: Any, y: Any) -> Call:
        import jax
        import jax.numpy as jnp

        def call() -> Any:
            def program(a, b):
                return f(jnp, a, b)

            traced = jax.make_jaxpr(program) if name == "make_jaxpr" else jax.jit(program).lower
            return traced(x, y)

        return call

    return build


def table(title: str, f: Callable[..., Any], rows: tuple[Row, ...], **options: Any) -> Table:
    """The table of one function."""
    mine = {f"lineara {name}, no derivative": ours(name, f) for name in ("trace", "stages")}
    peers = {f"JAX {name}, no derivative": jaxs(name, f) for name in ("make_jaxpr", "lower")}
    return Table(
        key="x", title=title, inputs=inputs, small={"n": 8}, ours=mine, peers=peers, rows=rows,
        judged=("lineara trace, no derivative",), unit="program", **options,
    )  # fmt: skip


ALSO = ("JAX make_jaxpr, no derivative", "JAX lower, no derivative")
GROWTH = tuple(
    Growth("n", 0.1, judged=(f"lineara {name}, no derivative",)) for name in ("trace", "stages")
)

TABLES = (
    table("capture of thirty lines", lines, (Row({"n": 100}, also=ALSO),), note=NOTE),
    table(
        "capture of a loop",
        loop,
        tuple([Row({"n": n}, also=ALSO, quick=n < 1000) for n in (10, 100, 1000)]),
        growth=GROWTH,
    ),
)

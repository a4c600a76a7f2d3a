"""`python -m benchmarks.taylor_series`: Taylor coefficients beside JAX's jet; writes TAYLOR.md.

    python -m benchmarks.taylor_series             all problems and orders
    python -m benchmarks.taylor_series --quick     order 5 only, written nowhere

Each problem is one function, written once over a module like NumPy.  Both are compiled, and a time
is the least of many calls in turn; nested derivatives (`jax.jvp` of `jax.jvp`, compiled) stand
beside them where they end.  Then which functions each has a series for, compared to order 4.
Extra: `pip install lineara[peers]`.
"""

import argparse
import math
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import scipy.special
from jax.experimental.jet import jet

import lineara

from .side_by_side import least, table

REPORT = Path(__file__).with_name("TAYLOR.md")
NESTED = 5  # up to this order derivatives are nested
ROUNDS = 50
RNG = np.random.default_rng(5)
WEIGHTS = [RNG.normal(size=(32, 32)) / 6 for _ in range(3)]


class Problem(NamedTuple):
    """A function over a module, where it is expanded, along which line, and up to which orders."""

    f: Callable[[Any, Any], Any]
    x: Any
    d: Any
    orders: tuple[int, ...] = (5,)


def network(x: Any, m: Any) -> Any:
    """Three layers of tanh."""
    for w in WEIGHTS:
        x = m.tanh(w @ x)
    return m.sum(x)


def bodies(x: Any, m: Any) -> Any:
    """The pull of six bodies in a plane on each other."""
    p = x.reshape(6, 2)
    apart = p[:, None, :] - p[None, :, :]
    squares = m.sum(apart * apart, 2) + 0.1
    return m.sum(apart / (squares * m.sqrt(squares))[:, :, None], 1)


PROBLEMS = {
    "exp(sin x / (1 + x²))": Problem(
        lambda x, m: m.exp(m.sin(x) / (1 + x * x)), 0.3, 1.0, (5, 10, 20)
    ),
    "the same, of 1,000": Problem(
        lambda x, m: m.exp(m.sin(x) / (1 + x * x)), RNG.uniform(0.1, 1, 1000), np.ones(1000)
    ),
    "network, 32 wide": Problem(network, RNG.normal(size=32), RNG.normal(size=32)),
    "six bodies": Problem(bodies, RNG.normal(size=12), RNG.normal(size=12)),
}


def nested(f: Callable[[Any], Any], order: int) -> Callable[[Any, Any], list[Any]]:
    """The coefficients of f(x + t d), each the jvp of the one before."""

    def coefficients(x: Any, d: Any) -> list[Any]:
        gs = [lambda t: f(x + t * d)]
        for _ in range(order):
            gs.append(lambda t, g=gs[-1]: jax.jvp(g, (t,), (1.0,))[1])
        return [g(0.0) / math.factorial(k) for k, g in enumerate(gs)]

    return coefficients


def by_jet(f: Callable[[Any], Any], order: int) -> Callable[[Any, Any], Any]:
    """The coefficients by jet, which takes and gives derivatives."""

    def coefficients(x: Any, d: Any) -> Any:
        y, ys = jet(f, (x,), ([d, *[jnp.zeros_like(d)] * (order - 1)],))
        return [y, *[v / math.factorial(k) for k, v in enumerate(ys, 1)]]

    return coefficients


def compare(name: str, order: int) -> list[str]:
    """The row of one problem at one order; all coefficients are compared."""
    p = PROBLEMS[name]
    f = lambda x: p.f(x, jnp)  # noqa: E731
    ours = lineara.jit(
        lambda x, d: lineara.taylor(lambda v: p.f(v, np), x, [d], order), engine="native"
    )
    theirs = {"jet": jax.jit(by_jet(f, order))}
    if order <= NESTED:
        theirs["nested"] = jax.jit(nested(f, order))
    prepared, calls = {}, {}
    start = time.perf_counter()
    expected = ours(p.x, p.d)
    prepared["lineara"], calls["lineara"] = time.perf_counter() - start, lambda: ours(p.x, p.d)
    x, d = jnp.asarray(p.x), jnp.asarray(p.d)
    for key, call in theirs.items():
        start = time.perf_counter()
        rows = np.stack(jax.block_until_ready(call(x, d)))
        prepared[key] = time.perf_counter() - start
        scale = np.abs(expected).max()
        assert np.allclose(rows, expected, rtol=1e-6, atol=1e-9 * scale), f"{name}: {key} differs"
        calls[key] = lambda call=call: jax.block_until_ready(call(x, d))
    times = least(calls, ROUNDS)
    systems = ("lineara", "jet", "nested")
    row = [name, str(order), *[f"{times[k]:,.0f}" if k in times else "–" for k in systems]]
    row += [f"{1e3 * prepared[k]:,.0f}" if k in times else "–" for k in systems]
    print(*row, flush=True)
    return row


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **{
        name: (getattr(np, name), getattr(jnp, name))
        for name in (
            "exp", "expm1", "log", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos",
            "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "square", "reciprocal", "exp2",
            "sinc", "abs",
        )
    },
    **{
        name: (getattr(scipy.special, name), getattr(jax.scipy.special, name))
        for name in (
            "erf", "erfc", "erfinv", "gammaln", "gamma", "digamma", "expit", "log_ndtr", "ndtri",
            "i0", "i1",
        )
    },
    "power": (lambda x: x**2.5, lambda x: x**2.5),
    "x^x": (lambda x: x**x, lambda x: x**x),
    "hypot": (lambda x: np.hypot(x, 1 + x), lambda x: jnp.hypot(x, 1 + x)),
    "arctan2": (lambda x: np.arctan2(x, 1 + x), lambda x: jnp.arctan2(x, 1 + x)),
    "maximum": (lambda x: np.maximum(x, 0.1) * x, lambda x: jnp.maximum(x, 0.1) * x),
    "cumsum": (lambda x: np.cumsum(x * np.arange(3)), lambda x: jnp.cumsum(x * jnp.arange(3))),
    "cumprod": (lambda x: np.cumprod(x + np.arange(3)), lambda x: jnp.cumprod(x + jnp.arange(3))),
    "sort": (
        lambda x: np.sort(x * np.array([2, 1, 3])), lambda x: jnp.sort(x * jnp.array([2, 1, 3]))
    ),
    "prod": (lambda x: np.prod(x + np.arange(3)), lambda x: jnp.prod(x + jnp.arange(3))),
    "det": (lambda x: np.linalg.det(x * WELL + TURN), lambda x: jnp.linalg.det(x * WELL + TURN)),
    "inv": (lambda x: np.linalg.inv(x * WELL + TURN), lambda x: jnp.linalg.inv(x * WELL + TURN)),
    "solve": (
        lambda x: np.linalg.solve(x * WELL + TURN, x * np.ones(3)),
        lambda x: jnp.linalg.solve(x * WELL + TURN, x * jnp.ones(3)),
    ),
    "cholesky": (
        lambda x: np.linalg.cholesky(x * np.eye(3) + WELL @ WELL.T),
        lambda x: jnp.linalg.cholesky(x * jnp.eye(3) + WELL @ WELL.T),
    ),
    "eigh": (
        lambda x: np.linalg.eigh(x * x * np.diag(np.arange(3.0)) + WELL + WELL.T)[0],
        lambda x: jnp.linalg.eigh(x * x * jnp.diag(jnp.arange(3.0)) + WELL + WELL.T)[0],
    ),
    "fft": (
        lambda x: np.abs(np.fft.fft(x * x * np.arange(1.0, 4))) ** 2,
        lambda x: jnp.abs(jnp.fft.fft(x * x * jnp.arange(1.0, 4))) ** 2,
    ),
    "while": (
        lambda x: lineara.while_loop(lambda c: c < 5, lambda c: c * c + x, x + 1.3),
        lambda x: jax.lax.while_loop(lambda c: c < 5, lambda c: c * c + x, x + 1.3),
    ),
    "scan": (
        lambda x: lineara.scan(lambda c, _: (np.sin(c) * x, c), x, None, length=3)[1],
        lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=3)[1],
    ),
    "cond": (
        lambda x: lineara.cond(x > 0, np.sin, np.cos, x),
        lambda x: jax.lax.cond(x > 0, jnp.sin, jnp.cos, x),
    ),
}  # fmt: skip
WELL = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
TURN = RNG.normal(size=(3, 3))


def covered(name: str, order: int = 4, at: float = 0.3) -> list[str]:
    """Whether each has the series of a function, as nested derivatives have it."""
    ours, theirs = FUNCTIONS[name]
    expected = np.stack(nested(theirs, order)(at, 1.0))

    def says(coefficients: Callable[[], Any]) -> str:
        try:
            rows = np.stack(coefficients())
        except Exception as error:
            return type(error).__name__
        return "yes" if np.allclose(rows, expected, rtol=1e-5, atol=1e-7) else "differs"

    row = [
        name,
        says(lambda: lineara.taylor(ours, at, [1.0], order)),
        says(lambda: by_jet(theirs, order)(jnp.asarray(at), jnp.asarray(1.0))),
    ]
    print(*row, flush=True)
    return row


HEAD = """# Taylor coefficients, beside JAX's jet

Written by `python -m benchmarks.taylor_series`: one process, systems called in turn. A time is the
least of {rounds} calls, in µs, of compiled code: `lineara.jit(…, engine="native")` and `jax.jit`;
*prepared* is the first call, in ms. `nested` is `jax.jvp` of `jax.jvp`, compiled as well, up to
order {nested}: its work doubles with each order before XLA sees what is the same in it.
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    rows = [
        compare(name, k) for name in PROBLEMS for k in PROBLEMS[name].orders[: 1 if quick else None]
    ]
    kept = [covered(name) for name in FUNCTIONS]
    if quick:
        return
    systems = ["lineara", "jet", "nested"]
    times = table(["µs", "order", *systems], [row[:5] for row in rows])
    prepared = table(["prepared, ms", "order", *systems], [[*row[:2], *row[5:]] for row in rows])
    counts = [f"{k} {sum(row[i] == 'yes' for row in kept)}" for i, k in enumerate(systems[:2], 1)]
    odd = [row for row in kept if row[1:] != ["yes", "yes"]]
    text = HEAD.format(rounds=ROUNDS, nested=NESTED) + f"\n{date.today()}, NumPy {np.__version__}, "
    text += (
        f"JAX {jax.__version__}.\n\n## Times\n\n{times}\n\n## What is prepared once\n\n{prepared}\n"
    )
    text += f"\n## Which functions have a series\n\nOf {len(kept)} functions, to order 4 as nested "
    text += f"derivatives: {', '.join(counts)}. Where not both:\n\n"
    text += table(["function", "lineara", "jet"], odd) + "\n"
    REPORT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

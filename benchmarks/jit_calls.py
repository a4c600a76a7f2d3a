"""`python -m benchmarks.jit_calls`: what a call of a jitted function costs; JIT_CALLS.md.

Nanoseconds of CPU time, the least of interleaved rounds of some thousand calls each; arrays of 8.
"""

import math
from collections import namedtuple
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import lineara

from .machine import machine
from .timing import cpu_seconds

REPORT = Path(__file__).parent / "JIT_CALLS.md"
HEAD = """# What a call of a jitted function costs

Nanoseconds of CPU time, the least of nine interleaved rounds; arrays of 8 numbers, one thread. What
is calculated takes a nanosecond or ten: this is the way from Python's objects to it and back. JAX
is given its own arrays, and its result is not waited for. Python's own call of `math.sqrt`, and
NumPy's product of two arrays of 8, were measured beside.

Made by `python -m benchmarks.jit_calls`.
"""
X = np.linspace(0.1, 0.8, 8)
Pair = namedtuple("Pair", "a b")


def square(x: Any) -> Any:
    return x * x


def added(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def of_dict(p: Any) -> Any:
    return p["a"] * p["b"]


def loss(p: Any) -> Any:
    return (p["a"] * p["b"]).sum()


def of_pair(p: Any) -> Any:
    return (p.a * p.b).sum()


Case = tuple[str, Callable[..., Any], bool, tuple[Any, ...], dict[str, Any]]
CASES: list[Case] = [
    ("a float", square, False, (3.0,), {}),
    ("a float, its gradient", square, True, (3.0,), {}),
    ("three floats, by name", added, False, (3.0,), {"y": 2.0, "z": 1.0}),
    ("an array", square, False, (X,), {}),
    ("three arrays", added, False, (X, X, X), {}),
    ("a dict of two arrays", of_dict, False, ({"a": X, "b": X},), {}),
    ("a gradient as a dict of two arrays", loss, True, ({"a": X, "b": X},), {}),
    ("a gradient as a named tuple", of_pair, True, (Pair(X, X),), {}),
]


def by_jax(
    f: Callable[..., Any], gradient: bool, args: Any, kwargs: Any
) -> Callable[[], Any] | None:
    """The call of `jax.jit`, where JAX is installed."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(jax.grad(f) if gradient else f)
    given, named = jax.tree.map(jax.numpy.asarray, (args, kwargs))
    return lambda: compiled(*given, **named)


def least(
    calls: dict[str, Callable[[], Any]], rounds: int = 9, times: int = 5_000
) -> dict[str, float]:
    """Nanoseconds a call, without those of a lambda that does nothing."""
    best = dict.fromkeys([*calls, ""], float("inf"))
    for _ in range(rounds):
        for name, call in {**calls, "": lambda: None}.items():
            best[name] = min(best[name], 1e9 * cpu_seconds(call, times) / times)
    return {name: best[name] - best[""] for name in calls}


def main() -> None:
    """Measure, and write the table."""
    beside = least({"sqrt": lambda: math.sqrt(3.0), "multiply": lambda: np.multiply(X, X)})
    lines = ["| | lineara.jit | jax.jit |", "|---|--:|--:|"]
    for label, f, gradient, args, kwargs in CASES:
        jitted = lineara.jit(lineara.grad(f) if gradient else f, engine="native")
        for _ in range(4):
            jitted(*args, **kwargs)
        theirs = by_jax(f, gradient, args, kwargs)
        calls = {"ours": lambda: jitted(*args, **kwargs)}  # noqa: B023, called in this round
        told = least(calls | ({"jax": theirs} if theirs else {}))
        jax = f"{told['jax']:,.0f}" if theirs else "–"
        lines.append(f"| {label} | {told['ours']:,.0f} | {jax} |")
        print(lines[-1], flush=True)
    put = lineara.jit(square, engine="native").into(np.empty(8))
    for _ in range(4):
        put(X)
    into = least({"into": lambda: put(X)})["into"]
    lines.append(f"| an array, into one that is there | {into:,.0f} | |")
    lines.append(f"| `math.sqrt(3.0)` | {beside['sqrt']:,.0f} | |")
    lines.append(f"| `np.multiply(x, x)` | {beside['multiply']:,.0f} | |")
    said = ", ".join(machine().values())
    REPORT.write_text(f"{HEAD}\n{date.today()}: {said}\n\n" + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

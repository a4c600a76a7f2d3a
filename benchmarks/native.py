"""`python -m benchmarks.native`: derived machine code beside adjoints by hand; writes NATIVE.md.

    python -m benchmarks.native [--numba PYTHON] [--quick]

Microseconds of CPU time of the process, the least of many runs; who is in it takes turns.
numba runs in this Python or in the one that is named, g++ where it is installed.
"""

import argparse
import ctypes
import json
import math
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import lineara
from lineara.engines import run

from . import native_arrays, native_gallery
from .least import in_turns
from .machine import machine

HERE = Path(__file__).parent
REPORT = HERE / "NATIVE.md"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
STEPS = 1_000
HEAD = """# Loops as machine code

Microseconds of CPU time of the process, the least of many runs; JAX' are by the clock, since its
threads' CPU time is told late. `native` is the whole call of `lineara.jit(f, engine="native")`. By
hand are value and adjoint, written for numba and for g++, with -O3 -march=native (and -ffast-math).
The gradient of the fill stores one number a round; the one by hand stores none. The fill's numbers
stay near one: those that underflow take some 30 times as long, but in a process that has loaded
code of -ffast-math, where they are 0. Memory: the kernel keeps its workspace from call to call,
numba's arrays are new in each, which is most of the difference from n = 100000 on; the C++ is given
its arrays.

Made by `python -m benchmarks.native`.
"""


def fill(x: Any) -> Any:
    n = x.shape[0]
    y = np.zeros(n)
    y[0] = x[0]
    for i in range(1, n):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def oscillator(a: Any, b: Any) -> Any:
    x, y, h = a, b, 0.01
    for _ in range(STEPS):
        k1, l1 = y, (1 - x * x) * y - x
        x2, y2 = x + 0.5 * h * k1, y + 0.5 * h * l1
        k2, l2 = y2, (1 - x2 * x2) * y2 - x2
        x3, y3 = x + 0.5 * h * k2, y + 0.5 * h * l2
        k3, l3 = y3, (1 - x3 * x3) * y3 - x3
        x4, y4 = x + h * k3, y + h * l3
        k4, l4 = y4, (1 - x4 * x4) * y4 - x4
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        y = y + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    return x


def derived(f: Callable[..., Any], args: tuple, quick: bool) -> dict[str, Callable[[], Any]]:
    """Lineara's ways to a value or a gradient."""
    compiled = lineara.jit(f, engine="native")
    p = compiled.program(*args)
    operands = p.operands(args)
    ways = {"native": lambda: compiled(*args)}
    small = np.size(args[0]) <= 1_000 and not quick
    if small:
        ways["interpreter"] = lambda: run(p.program, p.name, *operands, engine="interpreter")
        ways["eager"] = lambda: f(*args)
    return ways


def compile_time(f: Callable[..., Any], args: tuple) -> float:
    """Milliseconds of CPU time from the function to its first result."""
    begun = time.process_time()
    lineara.jit(f, engine="native")(*args)
    return 1e3 * (time.process_time() - begun)


def by_jax(name: str, args: tuple) -> dict[str, Callable[[], Any]]:
    """The same with `lax.scan`, compiled, as value and gradient."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)

    def fill_(x: Any) -> Any:
        def step(y: Any, xi: Any) -> Any:
            y = 0.9 * y + xi * y
            return y, y

        _, ys = jax.lax.scan(step, x[0], x[1:])
        return x[0] + ys.sum()

    def oscillator_(a: Any, b: Any) -> Any:
        h = 0.01

        def slope(x: Any, y: Any) -> Any:
            return y, (1 - x * x) * y - x

        def step(state: Any, _: Any) -> Any:
            x, y = state
            k1, l1 = slope(x, y)
            k2, l2 = slope(x + 0.5 * h * k1, y + 0.5 * h * l1)
            k3, l3 = slope(x + 0.5 * h * k2, y + 0.5 * h * l2)
            k4, l4 = slope(x + h * k3, y + h * l3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return (x, y + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)), None

        (x, _), _ = jax.lax.scan(step, (a, b), None, length=STEPS)
        return x

    f = fill_ if name == "fill" else oscillator_
    value, gradient = jax.jit(f), jax.jit(jax.grad(f))
    given = [jnp.asarray(a) for a in args]
    return {
        "value": lambda: value(*given).block_until_ready(),
        "gradient": lambda: gradient(*given).block_until_ready(),
    }


def by_cpp(fast: bool, folder: Path) -> Any:
    """The library of the C++ by hand, if there is a g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    out = folder / f"native{fast}.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC", *["-ffast-math"] * fast]
    subprocess.run([compiler, *flags, HERE / "native.cpp", "-o", out], check=True)
    return ctypes.CDLL(str(out))


def cpp_calls(library: Any, name: str, args: tuple) -> dict[str, Callable[[], Any]]:
    """Calls of the C++ by hand."""
    if library is None:
        return {}
    if name == "fill":
        x, n = args[0], args[0].size
        y, g = np.empty(n), np.empty(n)
        library.fill.restype = ctypes.c_double
        at = [ctypes.c_void_p(a.ctypes.data) for a in (x, y, g)]
        held = (x, y, g)  # as long as the calls
        return {
            "value": lambda held=held: library.fill(*at[:2], ctypes.c_long(n)),
            "gradient": lambda held=held: library.fill_gradient(*at, ctypes.c_long(n)),
        }
    for f in (library.oscillator, library.oscillator_gradient):
        f.restype = ctypes.c_double
    a, b = map(ctypes.c_double, args)
    return {
        "value": lambda: library.oscillator(a, b),
        "gradient": lambda: library.oscillator_gradient(a, b),
    }


def by_numba(python: str) -> dict[str, Any]:
    """The least microseconds of the code by hand, in a process that has numba."""
    script = HERE / "native_numba.py"
    ran = subprocess.run([python, script, *map(str, SIZES)], capture_output=True, text=True)
    return json.loads(ran.stdout) if ran.returncode == 0 else {}


ARRAYS = """
## Programs of arrays

The whole call of `lineara.jit(.., engine="native")`, from source that NumPy runs as it is; `value`
is that of the function itself. Beside it the derivative by hand in NumPy, value and adjoint by hand
under g++ (the adjoints calculate the value, too), `jax.jit` of the same source, with `lax.scan` for
the loop, which may use both cores, and the same source run eagerly by torch on one thread; torch
refuses what a loop writes in place. Ratios of what is derived; the last is to its own value.
"""
WAYS = ("native", "value", "by hand", "g++", "g++ fast", "jax", "torch")
RATIOS = ("by hand", "g++", "g++ fast", "jax", "torch", "value")


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def arrays(quick: bool, libraries: dict[str, Any], loops: dict[str, Any]) -> list[str]:
    """The table of programs of arrays, and means, to which the gradients of loops belong."""
    lines = [ARRAYS, f"| | | {' | '.join(WAYS)} | {' | '.join([f'/ {c}' for c in RATIOS])} |"]
    lines.append("|---|---|" + "--:|" * (len(WAYS) + len(RATIOS)))
    rows = dict(loops)
    for p in native_arrays.PROGRAMS:
        row = in_turns(native_arrays.calls(p, libraries), 0.5 if quick else 2.0, ["jax"])
        rows[p.name] = row
        cells = [f"{row[c]:.1f}" if c in row else "–" for c in WAYS]
        cells += [f"{row['native'] / row[c]:.2f}" if c in row else "–" for c in RATIOS]
        lines.append(f"| {p.name} | {p.what} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    every = means(rows)
    some = means({name: rows[name] for name in SEVEN})
    said = (
        f"Geometric means, with those of the loops above: {every}. Of {', '.join(SEVEN)}: {some}."
    )
    return [*lines, "", *textwrap.wrap(said, 100)]


def means(rows: dict[str, Any]) -> str:
    """The geometric mean of the ratios to each of the others."""
    said = []
    for c in RATIOS[:-1]:
        ratios = [row["native"] / row[c] for row in rows.values() if c in row]
        said += [f"{mean(ratios):.2f} of {c} ({len(ratios)})"] if ratios else []
    return ", ".join(said)


SEVEN = (
    "logsumexp, n = 1000000", "mixture 1000×25×10", "LSTM cell, 128", "oscillator, 1000 steps",
    "gather and scatter, n = 1000000", "bundle adjustment, 100000 sights",
    "determinant in loops, 30×30",
)  # fmt: skip
"""Gradients whose goal is the time of the adjoint by hand under g++ -O3 -ffast-math."""
COLUMNS = ("native", "numba", "g++", "g++ fast", "jax", "interpreter", "eager", "compile ms")


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.native")
    parser.add_argument("--numba", default=sys.executable, help="a Python that has numba")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    options = parser.parse_args()
    rows = []
    numba = by_numba(options.numba)
    with tempfile.TemporaryDirectory() as folder:
        plain, fast = [by_cpp(f, Path(folder)) for f in (False, True)]
        cases: list[tuple[str, Any, tuple]] = [
            ("fill", fill, (np.linspace(0.0999, 0.1001, n),)) for n in SIZES
        ]
        cases.append(("oscillator", oscillator, (1.0, 0.5)))
        for name, f, args in cases:
            size = np.size(args[0])
            label = f"{name}, n = {size}" if name == "fill" else f"{name}, {STEPS} steps"
            for what, g in (("value", f), ("gradient", lineara.grad(f))):
                calls = derived(g, args, options.quick)
                calls |= {"jax": w} if (w := by_jax(name, args).get(what)) else {}
                calls |= {"g++": w} if (w := cpp_calls(plain, name, args).get(what)) else {}
                calls |= {"g++ fast": w} if (w := cpp_calls(fast, name, args).get(what)) else {}
                slow = {k: calls.pop(k) for k in ("interpreter", "eager") if k in calls}
                for call in calls.values():
                    call()
                row = in_turns(calls, 0.3 if options.quick else 2.0, ["jax"])
                row |= in_turns(slow, 0.5)
                row["compile ms"] = compile_time(g, args)
                key = f"{name} {size} {what}"
                row |= {"numba": numba[key]} if key in numba else {}
                rows.append((label, what, row))
                print(label, what, {k: round(v, 1) for k, v in row.items()}, flush=True)
        gradients = {label: row for label, what, row in rows if what == "gradient"}
        table = arrays(options.quick, {"g++": plain, "g++ fast": fast}, gradients)
    heads = [*COLUMNS, "native / numba", "native / g++ fast"]
    lines = [f"| | | {' | '.join(heads)} |", "|---|---|" + "--:|" * len(heads)]
    for label, what, row in rows:
        cells = [f"{row[c]:.1f}" if c in row else "–" for c in COLUMNS]
        for c in ("numba", "g++ fast"):
            cells.append(f"{row['native'] / row[c]:.2f}" if c in row else "–")
        lines.append(f"| {label} | {what} | {' | '.join(cells)} |")
    lines += table
    lines += native_gallery.table(options.numba)
    said = ", ".join(machine().values())
    text = f"{HEAD}\n{date.today()}: {said}\n\n" + "\n".join(lines) + "\n"
    REPORT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

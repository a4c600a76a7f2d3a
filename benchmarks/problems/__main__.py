"""`python -m benchmarks.problems`: six problems, ours beside every peer and C++ by hand.

    python -m benchmarks.problems [--size small] [--only llsq lse] [--seconds 2]

Microseconds of CPU time of the process, the least of many runs; who is in it takes turns.  Every
gradient is compared with that of the C++, before anything is measured.  Writes PROBLEMS.md, where
it was asked for all problems at the small sizes.
"""

import argparse
import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import lineara

from ..least import in_turns
from ..machine import machine
from . import ba, gmm, llsq, lse, lstm, ode

HERE = Path(__file__).parent
REPORT = HERE.parent / "PROBLEMS.md"
PROBLEMS = {"llsq": llsq, "lse": lse, "ode": ode, "gmm": gmm, "lstm": lstm, "ba": ba}
AGREE = 1e-9
HEAD = """# Six problems that differentiation tools are compared on

Each is written as a user writes it, in NumPy and Python's loops (`benchmarks/problems/`), and
measured as it stands: `native` is `lineara.jit(gradient, engine="native")`, the whole call; `eager`
the gradient without `jit`. C++ is value and adjoint by hand under g++ -O3 -march=native. JAX is the
best rewrite (`lax.scan`, `vmap`) under `jax.jit`; torch and autograd run eagerly. For `ba` the
gradient is the sparse Jacobian, built in the timed function. Every gradient agrees with the C++ to
1e-9 of its largest number before anything is measured; what native code does not run says why below
the tables. A dash of torch or autograd: the problem was not written for it.

Ratios first: below 1 is faster than what stands behind the stroke. Then microseconds of CPU time,
of JAX by the clock, the least of many runs that took turns. The first call is what capture, the
passes and LLVM take, with nothing on disk.

Made by `python -m benchmarks.problems`.
"""
Calls = dict[tuple[str, int], Callable[[], Any]]  # of a name and 0, a value, or 1, a gradient


def flat(tree: Any) -> np.ndarray:
    """All numbers of a gradient, in a row."""
    if hasattr(tree, "data") and hasattr(tree, "indptr"):  # a sparse matrix
        return np.asarray(tree.data).ravel()
    if isinstance(tree, tuple | list):
        return np.concatenate([flat(t) for t in tree])
    return np.asarray(tree, float).ravel()


def ours(problem: ModuleType, args: tuple, engine: str | None) -> tuple:
    """Value and gradient by Lineara; a Jacobian is put together of its numbers."""
    value, gradient = problem.value, problem.gradient
    if engine:
        value, gradient = [lineara.jit(f, engine=engine) for f in (value, gradient)]
    if hasattr(problem, "assembled"):
        return (lambda: value(*args)), (lambda: problem.assembled(gradient(*args), *args))
    return (lambda: value(*args)), (lambda: gradient(*args))


def library(folder: Path) -> Any:
    """The C++ by hand, if there is a g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    out = folder / "problems.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, HERE / "problems.cpp", "-o", out], check=True)
    return ctypes.CDLL(str(out))


def by_cpp(cpp: Any, problem: ModuleType, args: tuple) -> tuple:
    """Value and gradient by hand."""
    name, given, shapes = problem.by_cpp(*args)
    results = [np.empty(shape) for shape in shapes]
    held = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for v in given]

    def passed(v: Any) -> Any:
        if isinstance(v, np.ndarray):
            return ctypes.c_void_p(v.ctypes.data)
        return ctypes.c_double(v) if isinstance(v, float) else ctypes.c_longlong(v)

    value, gradient = getattr(cpp, name), getattr(cpp, f"{name}_gradient")
    value.restype, gradient.restype = ctypes.c_double, None
    operands, outputs = list(map(passed, held)), list(map(passed, results))

    def ahead(held: list = held) -> Any:
        return value(*operands)

    def back(held: list = held) -> Any:
        gradient(*operands, *outputs)
        if hasattr(problem, "assembled"):
            return problem.assembled(results[0], *args)
        return results

    return ahead, back


def by_jax(problem: ModuleType, args: tuple) -> tuple:
    """Value and gradient by JAX, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    f, g, given = problem.by_jax(*args)
    return (lambda: jax.block_until_ready(f(*given))), (lambda: jax.block_until_ready(g(*given)))


def by_torch(problem: ModuleType, args: tuple) -> tuple:
    """Value and gradient by torch, eagerly."""
    import torch

    torch.set_num_threads(1)
    f, places, given = problem.by_torch(*args)

    def back() -> Any:
        for i in places:
            given[i].requires_grad_(True)
        y = f(*given)
        gradient = torch.autograd.grad(y, [given[i] for i in places])
        for i in places:
            given[i].requires_grad_(False)
        return gradient

    return (lambda: f(*given)), back


def by_autograd(problem: ModuleType, args: tuple) -> tuple:
    """Value and gradient by autograd."""
    f, g, given = problem.by_autograd(*args)
    return (lambda: f(*given)), (lambda: g(*given))


PEERS = {"JAX": by_jax, "torch": by_torch, "autograd": by_autograd}


def ways(problem: ModuleType, args: tuple, cpp: Any) -> tuple[Calls, dict[str, str]]:
    """Who can do it, and why others cannot."""
    makers = {
        "native": lambda: ours(problem, args, "native"),
        "eager": lambda: ours(problem, args, None),
    }
    if cpp is not None:
        makers = {"C++": lambda: by_cpp(cpp, problem, args), **makers}
    for name, by in PEERS.items():
        if hasattr(problem, by.__name__):
            makers[name] = lambda by=by: by(problem, args)
    calls, refused, true = {}, {}, None
    for name, maker in makers.items():
        try:
            ahead, back = maker()
            gradient = flat(back())
        except Exception as error:
            refused[f"{name}, gradient"] = said(error)
            continue
        true = gradient if true is None else true
        assert gradient.shape == true.shape, (name, gradient.shape, true.shape)
        off = np.max(np.abs(gradient - true)) / max(np.max(np.abs(true)), 1e-300)
        assert off <= AGREE, f"{problem.__name__}: {name} is off by {off:.1e}"
        calls[name, 1] = back
        try:
            ahead()
            calls[name, 0] = ahead
        except Exception as error:
            refused[f"{name}, value"] = said(error)
    return calls, refused


def said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def first_call(problem: ModuleType, args: tuple) -> float:
    """Milliseconds of CPU time of the first gradient by machine code."""
    back = ours(problem, args, "native")[1]
    begun = time.process_time()
    back()
    return 1e3 * (time.process_time() - begun)


def measured(name: str, size: str, cpp: Any, seconds: float) -> tuple[list, dict[str, str]]:
    """A row of numbers, and who refuses why."""
    problem = PROBLEMS[name]
    args = problem.data(problem.SIZES[size])
    calls, refused = ways(problem, args, cpp)
    best = in_turns(calls, seconds, [("JAX", 0), ("JAX", 1)])
    first = first_call(problem, args) if ("native", 1) in calls else None
    label = f"{name} {' × '.join(map(str, problem.SIZES[size]))}"
    print(label, {f"{w}{'′' * k}": round(v, 1) for (w, k), v in best.items()}, refused, flush=True)
    return [label, best, first], refused


def cell(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def page(rows: list, refusals: dict[str, dict[str, str]]) -> str:
    """The tables."""
    peers = ("JAX", "torch", "autograd")
    text = [
        "| gradient | native / C++ | native / JAX | native / torch | native / autograd "
        "| eager / C++ | native: gradient / value |",
        "|---|" + "--:|" * 6,
    ]
    for label, best, _ in rows:

        def over(a: tuple, b: tuple, best: dict = best) -> str:
            return cell(best[a] / best[b] if a in best and b in best else None)

        native = ("native", 1)
        cells = [over(native, ("C++", 1)), *[over(native, (p, 1)) for p in peers]]
        cells += [over(("eager", 1), ("C++", 1)), over(native, ("native", 0))]
        text.append(f"| {label} | {' | '.join(cells)} |")
    who = ("native", "eager", "C++", *peers)
    text += ["", f"| µs | {' | '.join(who)} | first call, ms |", "|---|" + "--:|" * 7]
    for label, best, first in rows:
        for k, what in enumerate(("value", "gradient")):
            cells = [cell(best.get((w, k)), 1) for w in who]
            text.append(
                f"| {label}, {what} | {' | '.join(cells)} | {cell(first if k else None, 0)} |"
            )
    for label, refused in refusals.items():
        text += [""] + [f"- {label}, {w}: {why}" for w, why in refused.items()] if refused else []
    return "\n".join(text)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.problems")
    parser.add_argument("--size", default="small", choices=("tiny", "small", "medium", "large"))
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=[*PROBLEMS])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each call")
    options = parser.parse_args()
    os.environ["LINEARA_CACHE_DIR"] = "off"  # first calls compile
    rows, refusals = [], {}
    with tempfile.TemporaryDirectory() as folder:
        cpp = library(Path(folder))
        for name in options.only:
            sizes = [options.size] if options.size in PROBLEMS[name].SIZES else []
            if options.size == "small" and "tiny" in PROBLEMS[name].SIZES:
                sizes = ["tiny", *sizes]
            for size in sizes:
                row, refused = measured(name, size, cpp, options.seconds)
                rows.append(row)
                refusals[row[0]] = refused
    text = page(rows, refusals)
    print(text)
    if options.size == "small" and len(options.only) == len(PROBLEMS):
        said = ", ".join(machine().values())
        REPORT.write_text(f"{HEAD}\n{date.today()}: {said}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

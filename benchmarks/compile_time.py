"""`python -m benchmarks.compile_time`: from a Python function to its first gradient; COMPILING.md.

Milliseconds of CPU time of the process, the least of some runs: capture, passes, emission, LLVM and
the first run; with nothing on disk, with the machine code on disk, and `jax.jit(jax.grad(f))`.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import FunctionType
from typing import Any

import lineara
from lineara.python.structured_code import structured

from .machine import machine
from .native import fill

REPORT = Path(__file__).parent / "COMPILING.md"
HEAD = """# From a Python function to its first gradient

Milliseconds of CPU time of the process, the least of three runs: reading the source, capture, the
passes, emission, LLVM and the first run. `read before` is without the first of these, which is done
once for each function. `on disk` has the machine code of an earlier process. JAX compiles the best
rewrite of the loop (`lax.scan`), and the straight lines as they are; 20,000 of them were not waited
for. A new process is counted from the start of Python to the first value and gradient of the demo's
model.

Made by `python -m benchmarks.compile_time`.
"""
GOALS = {
    "10 lines with a loop": 60, "50 operations": 40, "1000 operations": 250,
    "20000 operations": 4000,
}  # fmt: skip
COLD = """
import time

import numpy as np

import lineara
from lineara.demo import model
years, pelts = model.hudson_bay()
naive, unravel = lineara.ravel(model.Parameters(0.6, 0.03, 0.8, 0.02, 30.0, 4.0, 0.3, 0.3))
begun = time.process_time()


def loss(x):
    return model.negative_log_likelihood(unravel(np.exp(x)), years, pelts)


lineara.jit(lineara.value_and_grad(loss))(np.log(naive))
print(time.process_time(), begun)
"""
"""A process that imports the library and has the demo's model differentiated: its CPU seconds, and
those of the imports."""
LINES = ("x = x * y", "y = y + 0.5", "y = y - x", "x = np.sin(x)")


def straight(n: int, module: str, folder: Path) -> Callable[..., Any]:
    """A function of two numbers with n operations in a row, in a file of its own."""
    rows = [f"    {LINES[k % 4]}" for k in range(n)]
    text = f"import {module} as np\n\n\ndef straight(x, y):\n" + "\n".join(rows)
    file = folder / f"straight_{n}_{module.replace('.', '_')}.py"
    file.write_text(text + "\n    return x + y\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.straight


def least(first: Callable[[], Any], runs: int = 3) -> float:
    """The least milliseconds."""
    best = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        first()
        best = min(best, 1e3 * (time.process_time() - begun))
    return best


def cold(folder: str, runs: int = 3) -> tuple[float, float]:
    """The least milliseconds of a new process up to the first gradient of the demo's model.

    Those of the whole process, and those after its imports; `folder` is where code is kept.
    """
    env = os.environ | {"LINEARA_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed library is not compiled each time
    said = [
        subprocess.run([sys.executable, "-c", COLD], check=True, capture_output=True, env=env)
        for _ in range(runs)
    ]
    ended, begun = zip(*[map(float, s.stdout.split()) for s in said], strict=True)
    after = [e - b for e, b in zip(ended, begun, strict=True)]
    return 1e3 * min(ended), 1e3 * min(after)


def by_jax(f: Callable[..., Any] | None, args: tuple, runs: int) -> float | None:
    """JAX's first gradient, where it is installed; None for the loop, as `lax.scan`."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)

    def scanned(x: Any) -> Any:
        _, ys = jax.lax.scan(lambda y, xi: (0.9 * y + xi * y,) * 2, x[0], x[1:])
        return x[0] + ys.sum()

    given = [jnp.asarray(a) for a in args]

    def first() -> None:
        jax.clear_caches()
        jax.jit(jax.grad(f or scanned))(*given).block_until_ready()

    return least(first, runs)


def main() -> None:
    """Measure, and write the table."""
    import numpy as np

    lines = ["| | goal | nothing on disk | read before | on disk | JAX |", "|---|" + "--:|" * 5]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loop = (np.linspace(-0.05, 0.05, 1000),)
        cases = [("10 lines with a loop", fill, None, loop)]
        for n in (50, 1000, 20_000):
            ours, theirs = [straight(n, m, folder) for m in ("numpy", "jax.numpy")]
            cases.append((f"{n} operations", ours, theirs, (0.3, 0.4)))
        lineara.jit(lineara.grad(lambda x: x * x), engine="native")(1.0)  # llvmlite is imported
        for label, f, theirs, args in cases:

            def first(f: Any = f, args: tuple = args) -> Any:
                return lineara.jit(lineara.grad(f), engine="native")(*args)

            def read(f: Any = f, first: Any = first) -> Any:
                structured.__self__.clear()  # the codes that were read; nor is there a copy of g
                g = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__)
                return first(g)

            os.environ["LINEARA_CACHE_DIR"] = "off"
            anew, again = least(read), least(first)
            os.environ["LINEARA_CACHE_DIR"] = name
            first()
            kept = least(first)
            theirs = None if "20000" in label else by_jax(theirs, args, 1 if "1000" in label else 3)
            jax = f"{theirs:.0f}" if theirs else "–"
            cells = [str(GOALS[label]), f"{anew:.0f}", f"{again:.0f}", f"{kept:.0f}", jax]
            lines.append(f"| {label} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        anew = cold("off")
        cold(name, 1)
        kept = cold(name)
        for label, goal, i in (
            ("a new process, the demo's model", "1000", 0),
            ("of that after the imports", "", 1),
        ):
            lines.append(f"| {label} | {goal} | {anew[i]:.0f} | – | {kept[i]:.0f} | – |")
            print(lines[-1], flush=True)
    said = ", ".join(machine().values())
    REPORT.write_text(f"{HEAD}\n{date.today()}: {said}\n\n" + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

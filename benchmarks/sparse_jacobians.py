"""`python -m benchmarks.sparse_jacobians`: sparse Jacobians beside three peers; writes SPARSE.md.

    python -m benchmarks.sparse_jacobians          all problems, n up to 10 000, and growth to 10^6
    python -m benchmarks.sparse_jacobians --quick  n = 1 000 only, written nowhere

Each problem is one function of a vector, written once over `Tools`: a module's sine, concatenation
and gather.  Every system finds its own pattern and colours (sparsejac is given ours, since it asks
for one), and is then called in turn; a time is the least of many calls with all that is prepared.
Extra: `pip install lineara[peers-sparse]`.
"""

import argparse
import math
import time
import tracemalloc
from collections.abc import Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO

import lineara

from .side_by_side import least, table

asdex: Any = import_module("asdex")  # of the extra: a checkout need not have them
casadi: Any = import_module("casadi")
sparsejac: Any = import_module("sparsejac")

REPORT = Path(__file__).with_name("SPARSE.md")
SIZES = (100, 1_000, 10_000)
GROWTH = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS, TURN = 20, 5


class Tools(NamedTuple):
    """What a problem is written with."""

    sin: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    cat: Callable[[list[Any]], Any]
    sum: Callable[[Any], Any]
    take: Callable[[Any, np.ndarray], Any]


NUMPY = Tools(np.sin, np.tanh, np.concatenate, lambda x: np.sum(x)[None], lambda x, at: x[at])
JAX = Tools(jnp.sin, jnp.tanh, jnp.concatenate, lambda x: jnp.sum(x)[None], lambda x, at: x[at])
CASADI = Tools(
    casadi.sin,
    casadi.tanh,
    lambda parts: casadi.vertcat(*parts),
    casadi.sum1,
    lambda x, at: x[at.tolist()],
)

Problem = Callable[[int], Callable[[Any, Tools], Any]]


def tridiagonal(n: int) -> Callable[[Any, Tools], Any]:
    """Broyden's tridiagonal system."""

    def f(x: Any, m: Tools) -> Any:
        inner = (3 - 2 * x[1:-1]) * x[1:-1] - x[:-2] - 2 * x[2:] + 1
        return m.cat([(3 - 2 * x[:1]) * x[:1] - 2 * x[1:2] + 1, inner, x[-1:] - x[-2:-1]])

    return f


def banded(n: int) -> Callable[[Any, Tools], Any]:
    """A band of seven."""

    def f(x: Any, m: Tools) -> Any:
        c = x[3:-3]
        return m.sin(c) * x[:-6] + x[1:-5] * x[2:-4] + c * x[4:-2] + x[5:-1] * x[6:]

    return f


def arrow(n: int) -> Callable[[Any, Tools], Any]:
    """A full row and a full column."""

    def f(x: Any, m: Tools) -> Any:
        return m.cat([m.sum(x * x), x[1:] * x[:1] + m.sin(x[1:])])

    return f


def five_points(n: int) -> Callable[[Any, Tools], Any]:
    """Bratu's problem on a square."""
    side = math.isqrt(n)
    at = np.arange(side * side).reshape(side, side)
    here, up, down = at[1:-1, 1:-1].ravel(), at[:-2, 1:-1].ravel(), at[2:, 1:-1].ravel()
    left, right = at[1:-1, :-2].ravel(), at[1:-1, 2:].ravel()

    def f(x: Any, m: Tools) -> Any:
        c = m.take(x, here)
        around = m.take(x, up) + m.take(x, down) + m.take(x, left) + m.take(x, right)
        return around - 4 * c + 0.1 * m.sin(c)

    return f


def burgers(n: int) -> Callable[[Any, Tools], Any]:
    """A step of Burgers' equation with viscosity, on a line with fixed ends."""

    def f(x: Any, m: Tools) -> Any:
        c, left, right = x[1:-1], x[:-2], x[2:]
        step = -c * (right - left) * 0.5 + 0.1 * (right - 2 * c + left)
        return m.cat([0 * x[:1], step, 0 * x[-1:]])

    return f


def random_sparse(n: int) -> Callable[[Any, Tools], Any]:
    """Three columns a row, at random."""
    i, j, k = np.random.default_rng(1).integers(0, n, (3, n))

    def f(x: Any, m: Tools) -> Any:
        return m.take(x, i) * m.take(x, j) + m.sin(m.take(x, k))

    return f


def network(n: int) -> Callable[[Any, Tools], Any]:
    """Flow balances of a network in which each node has four pipes."""
    rng = np.random.default_rng(2)
    rings = [rng.permutation(n) for _ in range(2)]
    others = []
    for ring in rings:
        after, before = np.empty(n, int), np.empty(n, int)
        after[ring], before[ring] = np.roll(ring, -1), np.roll(ring, 1)
        others += [after, before]

    def f(x: Any, m: Tools) -> Any:
        total = 0
        for at in others:
            total = total + m.tanh(m.take(x, at) - x)
        return total

    return f


def control(n: int) -> Callable[[Any, Tools], Any]:
    """A pendulum's optimal control, transcribed by trapezes: angles, speeds, torques."""
    k = n // 3

    def f(x: Any, m: Tools) -> Any:
        q, w, u = x[:k], x[k : 2 * k], x[2 * k : 3 * k]
        a = u - m.sin(q) - 0.1 * w
        first = q[1:] - q[:-1] - 0.05 * (w[1:] + w[:-1])
        second = w[1:] - w[:-1] - 0.05 * (a[1:] + a[:-1])
        return m.cat([first, second, q[:1], w[:1], q[-1:]])

    return f


PROBLEMS: dict[str, Problem] = {
    "tridiagonal": tridiagonal,
    "band of 7": banded,
    "arrow": arrow,
    "five points": five_points,
    "Burgers": burgers,
    "random, 3 a row": random_sparse,
    "network": network,
    "optimal control": control,
}


class System(NamedTuple):
    """One system on one problem: its entries, its colours, and one value of the Jacobian."""

    nnz: int
    colours: int
    call: Callable[[], Any]
    dense: Callable[[], np.ndarray]
    prepared: float


def ours(problem: Problem, n: int, x: np.ndarray, compile: bool = True) -> System:
    """A plan; without `compile` the eager engine."""
    f = problem(n)
    start = time.perf_counter()
    plan = lineara.sparse_plan(lambda x: f(x, NUMPY), x, compile=compile)
    plan(x)
    took = time.perf_counter() - start
    return System(plan.pattern.nnz, sum(plan.colours), lambda: plan(x), lambda: plan(x), took)


def eager(problem: Problem, n: int, x: np.ndarray) -> System:
    """The same without a program."""
    return ours(problem, n, x, compile=False)


def of_casadi(problem: Problem, n: int, x: np.ndarray) -> System:
    """An SX function, evaluated into a buffer of its own; its colours are those of its rule."""
    start = time.perf_counter()
    s = casadi.SX.sym("x", n)
    J = casadi.jacobian(problem(n)(s, CASADI), s)
    F = casadi.Function("F", [s], [J])
    buffer, run = F.buffer()
    values = np.zeros(J.nnz())
    buffer.set_arg(0, memoryview(x.data))
    buffer.set_res(0, memoryview(values.data))
    held = (F, buffer, values, x)  # which the buffer does not hold

    def call() -> Any:
        run()
        return held[2]

    call()
    took = time.perf_counter() - start
    pattern = J.sparsity()
    across, down = pattern.T.uni_coloring(pattern), pattern.uni_coloring(pattern.T)
    colours = min(across.size2(), down.size2())
    return System(J.nnz(), colours, call, lambda: np.array(F(x).full()), took)


def of_asdex(problem: Problem, n: int, x: np.ndarray) -> System:
    """A jitted Jacobian from a colouring that is kept."""
    f, y = problem(n), jnp.asarray(x)
    start = time.perf_counter()
    coloring = asdex.jacobian_coloring(lambda x: f(x, JAX), y)
    call = jax.jit(asdex.jacobian_from_coloring(lambda x: f(x, JAX), coloring))
    jax.block_until_ready(call(y))
    took = time.perf_counter() - start
    return System(
        coloring.sparsity.nnz,
        coloring.num_colors,
        lambda: jax.block_until_ready(call(y)),
        lambda: np.asarray(call(y).todense()),
        took,
    )


def of_sparsejac(problem: Problem, n: int, x: np.ndarray) -> System:
    """A jitted Jacobian from our pattern; it colours as it is traced, and does not say how."""
    f, y = problem(n), jnp.asarray(x)
    pattern = BCOO.from_scipy_sparse(lineara.sparsity(lambda x: f(x, NUMPY), x).astype(float))
    start = time.perf_counter()
    call = jax.jit(sparsejac.jacfwd(lambda x: f(x, JAX), pattern))
    jax.block_until_ready(call(y))
    took = time.perf_counter() - start
    return System(
        pattern.nse,
        0,
        lambda: jax.block_until_ready(call(y)),
        lambda: np.asarray(call(y).todense()),
        took,
    )


SYSTEMS = {
    "lineara": ours,
    "eager": eager,
    "CasADi": of_casadi,
    "asdex": of_asdex,
    "sparsejac": of_sparsejac,
}
SLOW = {"sparsejac": 1_000}  # sizes beyond which a system takes minutes to prepare
DENSE = {("asdex", "arrow"): 1_000}  # and beyond which it makes a dense matrix


def compare(name: str, n: int) -> list[str]:
    """The row of one problem at one size; all Jacobians are compared."""
    problem, x = PROBLEMS[name], np.random.default_rng(3).uniform(0.5, 1.5, n)
    systems = {}
    for key, make in SYSTEMS.items():
        if n <= min(SLOW.get(key, n), DENSE.get((key, name), n)):
            systems[key] = make(problem, n, x)
    if n <= 1_000:
        J = systems["lineara"].dense().toarray()  # type: ignore[attr-defined]
        for key, system in systems.items():
            dense = system.dense()
            other = dense if isinstance(dense, np.ndarray) else dense.toarray()
            assert np.allclose(J, other, rtol=1e-9, atol=1e-12), f"{name}: {key} differs"
    times = least({key: s.call for key, s in systems.items()}, ROUNDS, TURN)
    three = [systems.get(k) for k in ("lineara", "CasADi", "asdex")]
    columns = [
        *["–" if s is None else str(s.nnz) for s in three],
        *["–" if s is None else str(s.colours) for s in three],
        *[f"{times[k]:,.0f}" if k in times else "–" for k in SYSTEMS],
        *[f"{1e3 * systems[k].prepared:,.0f}" if k in times else "–" for k in SYSTEMS],
    ]
    print(name, n, *columns, flush=True)
    return [name, f"{n:,}", *columns]


def growth(name: str) -> list[list[str]]:
    """Time and memory against n; the last line is the slope of log time against log n.

    A copy of the matrix by SciPy shows what is the memory's: past 10^5 it leaves the caches.
    """
    lines, logs = [], []
    for n in GROWTH:
        f, x = PROBLEMS[name](n), np.random.default_rng(3).uniform(0.5, 1.5, n)
        start = time.perf_counter()
        pattern = lineara.sparsity(lambda x, f=f: f(x, NUMPY), x)
        took = time.perf_counter() - start
        tracemalloc.start()
        plan = lineara.sparse_plan(lambda x, f=f: f(x, NUMPY), x)
        plan(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        J = plan(x)
        calls = {"value": lambda plan=plan, x=x: plan(x), "copy": lambda J=J: J.copy()}
        best = least(calls, 5, TURN)
        value, copied = best["value"], best["copy"]
        logs.append((math.log(n), math.log(took), math.log(value), math.log(copied)))
        lines.append([
            name, f"{n:,}", f"{1e3 * took:,.1f}", f"{value / 1e3:,.2f}", f"{copied / 1e3:,.2f}",
            f"{peak / pattern.nnz:,.0f}", str(sum(plan.colours)),
        ])  # fmt: skip
        print(*lines[-1], flush=True)
    first, last = logs[-2:]
    slopes = [(b - a) / (last[0] - first[0]) for a, b in zip(first[1:], last[1:], strict=True)]
    lines.append([name, "slope", *[f"{slope:.2f}" for slope in slopes], "", ""])
    return lines


HEAD = """# Sparse Jacobians, beside CasADi, asdex and sparsejac

Written by `python -m benchmarks.sparse_jacobians`: one process, one thread, systems called in turn,
{turn} calls each. A time is the least of {calls} calls, in µs, with pattern, colours and code
prepared; *prepared* is what that took, in ms, the first call with it. `lineara` is a plan
(`sparse_plan`), `eager` the same without a program. CasADi evaluates its SX function into a buffer,
and makes no matrix; asdex and sparsejac are jitted, and sparsejac is given our pattern. Colours are
products of one kind or the other; CasADi's are the fewer of its colourings of columns and of rows.
A dash: sparsejac takes minutes to colour 10 000 columns; asdex makes a dense matrix of an arrow.
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    rows = [compare(name, n) for name in PROBLEMS for n in ((1_000,) if quick else SIZES)]
    if quick:
        return
    grown = [line for name in ("tridiagonal", "five points") for line in growth(name)]
    three = ["lineara", "CasADi", "asdex"]
    five = [*SYSTEMS]
    shapes = table(
        ["problem", "n", *[f"entries, {k}" for k in three], *[f"colours, {k}" for k in three]],
        [row[:8] for row in rows],
    )
    times = table(["µs", "n", *five], [[*row[:2], *row[8:13]] for row in rows])
    prepared = table(["prepared, ms", "n", *five], [[*row[:2], *row[13:]] for row in rows])
    grows = table(
        [
            *("problem", "n", "pattern, ms", "value, ms", "a copy of the matrix, ms"),
            *("bytes an entry, at most", "colours"),
        ],
        grown,
    )
    text = (
        HEAD.format(turn=TURN, calls=ROUNDS * TURN)
        + f"\n{date.today()}, Python and NumPy {np.__version__}, "
    )
    text += f"CasADi {casadi.__version__}, JAX {jax.__version__}.\n"
    text += f"\n## Values\n\n{times}\n\n## Patterns and colours\n\n{shapes}\n"
    text += f"\n## What is prepared once\n\n{prepared}\n\n## Growth\n\n{grows}\n"
    REPORT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.elsewhere`: programs of ours on XLA beside JAX's own; writes ELSEWHERE.md.

    python -m benchmarks.elsewhere             all programs
    python -m benchmarks.elsewhere --quick     a few calls of each, written nowhere

Each function is written once over a module like NumPy.  Ours is `lineara.jit` of its
`value_and_grad` with `engine="jax"`: our reverse mode as one program of XLA.  JAX's is `jax.jit` of
`jax.value_and_grad` of the same function.  Both get and give arrays of JAX's, in float64.
Extra: `pip install lineara[peers]`.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import lineara

from .side_by_side import least, table

REPORT = Path(__file__).with_name("ELSEWHERE.md")
ROUNDS = 60
RNG = np.random.default_rng(7)


class Problem(NamedTuple):
    """A function of its first argument, over a module, and what it is called with."""

    f: Callable[..., Any]
    args: Sequence[Any]


def logsumexp(m: Any, x: Any) -> Any:
    """The logarithm of a sum of exponentials."""
    top = m.max(x)
    return top + m.log(m.sum(m.exp(x - top)))


def network(m: Any, ws: Any, x: Any) -> Any:
    """Two layers of tanh."""
    w1, b1, w2 = ws
    return m.sum((m.tanh(x @ w1 + b1) @ w2) ** 2)


def mixture(m: Any, means: Any, x: Any) -> Any:
    """The log-likelihood of a mixture of normal distributions."""
    squares = m.sum((x[:, None, :] - means[None]) ** 2, 2)
    return m.sum(m.log(m.sum(m.exp(-0.5 * squares), 1)))


def lstm(m: Any, w: Any, x: Any, h: Any, c: Any) -> Any:
    """A cell of a recurrent network."""
    z = w @ m.concatenate([x, h])
    n = h.shape[0]
    i, f, o = [1 / (1 + m.exp(-z[k * n : (k + 1) * n])) for k in range(3)]
    c = f * c + i * m.tanh(z[3 * n :])
    return m.sum(o * m.tanh(c))


def logistic(m: Any, w: Any, x: Any, y: Any) -> Any:
    """The loss of a logistic regression."""
    z = x @ w
    return m.mean(m.log1p(m.exp(-m.abs(z))) + m.maximum(z, 0) - z * y)


def attention(m: Any, w: Any, x: Any) -> Any:
    """One head of self-attention."""
    q, k, v = x @ w[0], x @ w[1], x @ w[2]
    s = q @ k.T / math.sqrt(k.shape[1])
    e = m.exp(s - m.max(s, 1, keepdims=True))
    return m.sum((e / m.sum(e, 1, keepdims=True) @ v) ** 2)


def heat(m: Any, u: Any) -> Any:
    """Five steps of the heat equation in a square."""
    for _ in range(5):
        inner = u[1:-1, 1:-1]
        inner = inner + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner)
        u = m.pad(inner, 1)
    return m.sum(u**2)


def rosenbrock(m: Any, x: Any) -> Any:
    """The function of that name."""
    return m.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def chain(m: Any, x: Any) -> Any:
    """Elementwise functions in a row."""
    return m.sum(m.sin(x) * m.exp(-x * x) / (1 + m.cosh(x)) + m.sqrt(1 + x * x))


def softmax_loss(m: Any, w: Any, x: Any, y: Any) -> Any:
    """The cross entropy of classes."""
    z = x @ w
    z = z - m.max(z, 1, keepdims=True)
    return m.mean(m.log(m.sum(m.exp(z), 1)) - m.sum(z * y, 1))


def kernel(m: Any, x: Any, y: Any) -> Any:
    """A quadratic form of a kernel matrix."""
    squares = m.sum((x[:, None] - x[None]) ** 2, 2)
    return y @ m.exp(-0.5 * squares) @ y


def process(m: Any, theta: Any, x: Any, y: Any) -> Any:
    """The likelihood of a Gaussian process."""
    squares = (x[:, None] - x[None]) ** 2
    k = m.exp(theta[0]) * m.exp(-0.5 * squares * m.exp(theta[1])) + 0.1 * m.eye(x.shape[0])
    c = m.linalg.cholesky(k)
    return 0.5 * y @ m.linalg.solve(k, y) + m.sum(m.log(m.diagonal(c)))


def ridge(m: Any, a: Any, b: Any) -> Any:
    """The least squares of a regularized system."""
    x = m.linalg.solve(a.T @ a + m.eye(a.shape[1]), a.T @ b)
    return m.sum((a @ x - b) ** 2)


def normalized(m: Any, w: Any, x: Any) -> Any:
    """A layer whose results are normalized over a batch."""
    z = x @ w
    z = (z - m.mean(z, 0)) / m.sqrt(m.var(z, 0) + 1e-5)
    return m.sum(m.where(z > 0, z, 0.1 * z) ** 3)


def bodies(m: Any, p: Any) -> Any:
    """The potential of bodies that pull on each other."""
    apart = p[:, None] - p[None]
    return m.sum(1 / m.sqrt(m.sum(apart**2, 2) + 0.1))


def n(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RNG.normal(size=shape)


STRAIGHT = {
    "logsumexp, 10⁶": Problem(logsumexp, [n(10**6)]),
    "network, 64 × 128 × 10, 64 examples": Problem(
        network, [[n(64, 128) / 8, n(128), n(128, 10) / 8], n(64, 64)]
    ),
    "mixture, 1,000 × 25 × 10": Problem(mixture, [n(25, 10), n(1000, 10)]),
    "LSTM cell, 128": Problem(lstm, [n(512, 256) / 16, n(128), n(128), n(128)]),
    "logistic regression, 10,000 × 100": Problem(
        logistic, [n(100), n(10_000, 100), (n(10_000) > 0) * 1.0]
    ),
    "attention, 128 × 64": Problem(attention, [n(3, 64, 64) / 8, n(128, 64)]),
    "heat equation, 256²": Problem(heat, [n(256, 256)]),
    "Rosenbrock, 10⁵": Problem(rosenbrock, [n(10**5)]),
    "elementwise, 10⁶": Problem(chain, [n(10**6)]),
    "softmax, 1,000 × 50 × 20": Problem(
        softmax_loss, [n(50, 20), n(1000, 50), np.eye(20)[RNG.integers(20, size=1000)]]
    ),
    "kernel matrix, 300 × 5": Problem(kernel, [n(300, 5), n(300)]),
    "Gaussian process, 200": Problem(process, [np.array([0.1, 0.2]), n(200), n(200)]),
    "ridge regression, 500 × 50": Problem(ridge, [n(500, 50), n(500)]),
    "batch normalization, 256 × 128": Problem(normalized, [n(64, 128), n(256, 64)]),
    "bodies, 200": Problem(bodies, [n(200, 3)]),
}


def compare(name: str, problem: Problem, rounds: int) -> tuple[list[str], float]:
    """The row of a straight-line program, and the ratio."""
    f = problem.f
    with jax.enable_x64(True):
        args = jax.tree.map(jnp.asarray, list(problem.args))
        ours = lineara.jit(lineara.value_and_grad(lambda *a: f(np, *a)), engine="jax")
        theirs = jax.jit(jax.value_and_grad(lambda *a: f(jnp, *a)))
        expected, got = theirs(*args), ours(*args)
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * np.max(np.abs(a)))
        calls = {
            "lineara": lambda: jax.block_until_ready(ours(*args)),
            "JAX": lambda: jax.block_until_ready(theirs(*args)),
        }
        times = least(calls, rounds)
    ratio = times["lineara"] / times["JAX"]
    row = [name, f"{ratio:.2f}", *[f"{times[k]:,.0f}" for k in calls]]
    print(*row, flush=True)
    return row, ratio


def sums(m: Any, x: Any) -> Any:
    """A loop that reads an array."""
    s = 1.0
    for i in range(len(x)):
        s = s + 1e-3 * np.sin(x[i]) * s
    return s


def sums_of_jax(x: Any) -> Any:
    """The same as JAX has it."""
    return jax.lax.fori_loop(
        0, x.shape[0], lambda i, s: s + 1e-3 * jnp.sin(x[i]) * s, jnp.ones((), x.dtype)
    )


def fill(m: Any, x: Any) -> Any:
    """A loop that fills an array."""
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def fill_of_jax(x: Any) -> Any:
    """The same as JAX has it, with the array carried."""
    y = jnp.zeros(x.shape[0]).at[0].set(x[0])
    step = lambda i, y: y.at[i].set(0.9 * y[i - 1] + x[i] * y[i - 1])  # noqa: E731
    return jax.lax.fori_loop(1, x.shape[0], step, y).sum()


def fill_by_scan(x: Any) -> Any:
    """The same written anew, without the array."""

    def step(y: Any, v: Any) -> Any:
        y = 0.9 * y + v * y
        return y, y

    return x[0] + jax.lax.scan(step, x[0], x[1:])[1].sum()


def root(m: Any, a: Any) -> Any:
    """Newton's iteration to a tolerance."""
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


LOOPS: dict[str, tuple[Callable[..., Any], dict[str, Callable[..., Any]]]] = {
    "reads an array": (sums, {"as it is": sums_of_jax}),
    "fills an array": (fill, {"as it is": fill_of_jax, "by scan": fill_by_scan}),
}
SLOW = 30_000  # rounds from which the loop that carries its array is not run


def loop(name: str, size: int, rounds: int) -> list[str]:
    """The row of a loop of so many rounds: ours, JAX's of the same loop, and of the rewritten."""
    f, peers = LOOPS[name]
    with jax.enable_x64(True):
        x = jnp.asarray(RNG.uniform(0, 0.1, size))
        ours = lineara.jit(lineara.value_and_grad(lambda v: f(np, v)), engine="jax")
        expected = ours(x)
        calls = {"lineara": lambda: jax.block_until_ready(ours(x))}
        for key, g in peers.items():
            if g is fill_of_jax and size > SLOW:
                continue
            theirs = jax.jit(jax.value_and_grad(g))
            np.testing.assert_allclose(theirs(x)[1], expected[1], rtol=1e-8)
            calls[key] = lambda theirs=theirs: jax.block_until_ready(theirs(x))
        times = least(calls, rounds)
    row = [name, f"{size:,}"]
    row += [f"{times[k]:,.0f}" if k in times else "–" for k in ("lineara", "as it is", "by scan")]
    print(*row, flush=True)
    return row


PAGE = """# Programs on XLA, beside JAX's own

Written by `python -m benchmarks.elsewhere`: one process, calls in turn, a time is the least of
{rounds}, in µs, of the value and the gradient in float64. Measured on a CPU; no GPU was at hand.

{date}, NumPy {numpy}, JAX {jax}.

## Straight-line programs

Ours is `lineara.jit(lineara.value_and_grad(f), engine="jax")`, JAX's `jax.jit` of
`jax.value_and_grad(f)`, of one function over `numpy` and `jax.numpy`. The geometric mean of the
ratios is **{mean:.2f}** (goal 1.1).

{straight}

## Loops that index

Ours is the loop in Python. JAX has it as `fori_loop`, as it is, with the array that is filled as a
carry; and, for the second, as a `scan` without the array, which is another program. A `while` loop
has no gradient in JAX; that of Newton's iteration for a root of 9 takes {root:,.0f} µs here.

{loops}
"""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rounds = 3 if quick else ROUNDS
    pairs = [compare(name, problem, rounds) for name, problem in STRAIGHT.items()]
    mean = math.exp(sum(math.log(ratio) for _, ratio in pairs) / len(pairs))
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    loops = [loop(name, size, min(rounds, 20)) for name in LOOPS for size in sizes]
    slope = lineara.jit(lineara.value_and_grad(lambda a: root(np, a)), engine="jax")
    slope(9.0)
    newton = least({"root": lambda: jax.block_until_ready(slope(9.0))}, rounds)["root"]
    page = PAGE.format(
        rounds=rounds,
        date=date.today().isoformat(),
        numpy=np.__version__,
        jax=jax.__version__,
        mean=mean,
        root=newton,
        straight=table(["program", "ratio", "lineara", "JAX"], [row for row, _ in pairs]),
        loops=table(["loop", "rounds", "lineara", "JAX, as it is", "by scan"], loops),
    )
    print(f"geometric mean {mean:.2f}")
    if not quick:
        REPORT.write_text(page)


if __name__ == "__main__":
    main()

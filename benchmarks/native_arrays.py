"""Programs of arrays for `benchmarks.native`: Lineara's source, JAX', and gradients by hand.

`compiled` gives what Lineara runs, `by_jax` and `by_hand` what it is measured against.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import lineara

rng = np.random.default_rng(0)
SEEN = rng.normal(size=(200, 4))
MOVES = np.eye(4) + 0.1 * np.eye(4, k=1)
INPUTS, CLASSES = rng.normal(size=(64, 128)), np.eye(10)[rng.integers(0, 10, 64)]
EXAMPLES, WANTED = rng.normal(size=(256, 32)), rng.normal(size=256)
POINTS, GAUSSIANS = rng.normal(size=(1000, 10)), 25
HIDDEN = 128


class Program(NamedTuple):
    """A program: what Lineara compiles, where, the same for JAX, and by hand."""

    name: str
    f: Callable[..., Any]
    args: tuple[Any, ...]
    what: str  # gradient, per-example gradients or Hessian
    jax: Callable[[Any, Any], Any]  # of jax and its numpy, to a function
    by_hand: Callable[..., Any] | None = None


def kalman(noise: Any) -> Any:
    """Minus twice the log-likelihood of 200 observations of 4 states."""
    x, p, total = np.zeros(4), np.eye(4), 0.0
    for t in range(200):
        x, p = MOVES @ x, MOVES @ p @ MOVES.T + noise * np.eye(4)
        s = p + np.eye(4)
        v = SEEN[t] - x
        gain = np.linalg.solve(s, p).T
        x, p = x + gain @ v, p - gain @ p
        total = total + v @ np.linalg.solve(s, v) + np.log(np.linalg.det(s))
    return total


def kalman_of_jax(jax: Any, xp: Any) -> Any:
    def filtered(noise: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            x, p = state
            x, p = MOVES @ x, MOVES @ p @ MOVES.T + noise * xp.eye(4)
            s, v = p + xp.eye(4), y - x
            gain = xp.linalg.solve(s, p).T
            now = v @ xp.linalg.solve(s, v) + xp.log(xp.linalg.det(s))
            return (x + gain @ v, p - gain @ p), now

        return jax.lax.scan(step, (xp.zeros(4), xp.eye(4)), SEEN)[1].sum()

    return filtered


def network(w: Any, b: Any, u: Any, c: Any, xp: Any = np) -> Any:
    """The cross-entropy of a network of two layers."""
    z = xp.tanh(INPUTS @ w + b) @ u + c
    return xp.mean(xp.log(xp.sum(xp.exp(z), axis=1)) - xp.sum(z * CLASSES, axis=1))


def network_by_hand(w: Any, b: Any, u: Any, c: Any) -> Any:
    h = np.tanh(INPUTS @ w + b)
    e = np.exp(h @ u + c)
    z_bar = (e / e.sum(axis=1, keepdims=True) - CLASSES) / len(INPUTS)
    a_bar = (z_bar @ u.T) * (1 - h * h)
    return INPUTS.T @ a_bar, a_bar.sum(axis=0), h.T @ z_bar, z_bar.sum(axis=0)


def error(w: Any, x: Any, y: Any, xp: Any = np) -> Any:
    """The squared error of one example."""
    return (xp.tanh(x @ w[:-1].reshape(32, 16)).sum() * w[-1] - y) ** 2


def error_by_hand(w: Any, x: Any, y: Any) -> Any:
    h = np.tanh(x @ w[:-1].reshape(32, 16))
    total = h.sum(axis=1)
    out_bar = 2 * (total * w[-1] - y)
    a_bar = (out_bar * w[-1])[:, None] * (1 - h * h)
    outer = x[:, :, None] * a_bar[:, None, :]
    return np.concatenate([outer.reshape(len(x), -1), (out_bar * total)[:, None]], axis=1)


def rosenbrock(x: Any, xp: Any = np) -> Any:
    """A sum over neighbours."""
    return xp.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


def rosenbrock_by_hand(x: Any) -> Any:
    n = len(x)
    h = np.zeros((n, n))
    i = np.arange(n - 1)
    h[i, i] = 2 - 400 * (x[1:] - 3 * x[:-1] ** 2)
    h[i + 1, i + 1] += 200
    h[i, i + 1] = h[i + 1, i] = -400 * x[:-1]
    return h


def logsumexp(x: Any, xp: Any = np) -> Any:
    """log Σ exp, without overflow."""
    m = xp.max(x)
    return m + xp.log(xp.sum(xp.exp(x - m)))


def logsumexp_by_hand(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def mixture(logits: Any, means: Any, roots: Any, xp: Any = np) -> Any:
    """The log-likelihood of 1000 points under 25 Gaussians in 10 dimensions."""
    apart = POINTS[:, None, :] - means[None, :, :]
    scaled = xp.einsum("kij,nkj->nki", roots, apart)
    s = logits - 0.5 * xp.sum(scaled * scaled, axis=2)
    m = xp.max(s, axis=1)
    each = m + xp.log(xp.sum(xp.exp(s - m[:, None]), axis=1))
    return xp.sum(each) - len(POINTS) * xp.log(xp.sum(xp.exp(logits)))


def lstm(w: Any, b: Any, x: Any, h: Any, c: Any, xp: Any = np) -> Any:
    """One step of an LSTM cell, summed."""
    z = w @ xp.concatenate([x, h]) + b
    i, f, o = [1 / (1 + xp.exp(-z[k * HIDDEN : (k + 1) * HIDDEN])) for k in range(3)]
    return xp.sum(o * xp.tanh(f * c + i * xp.tanh(z[3 * HIDDEN :])))


def over(f: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """JAX' function of the same source."""
    return lambda jax, xp: lambda *args: f(*args, xp=xp)


PROGRAMS = [
    Program("Kalman filter, 200 × 4×4", kalman, (1.0,), "gradient", kalman_of_jax),
    Program(
        "network 64×128×10", network,
        (0.1 * rng.normal(size=(128, 64)), np.zeros(64), 0.1 * rng.normal(size=(64, 10)),
         np.zeros(10)),
        "gradient", over(network), network_by_hand,
    ),
    Program(
        "256 examples", error,
        (0.1 * rng.normal(size=513), EXAMPLES, WANTED), "per-example gradients", over(error),
        error_by_hand,
    ),
    Program(
        "Rosenbrock, d = 50", rosenbrock, (rng.normal(size=50),), "Hessian",
        over(rosenbrock), rosenbrock_by_hand,
    ),
    Program(
        "logsumexp, n = 1000000", logsumexp, (rng.normal(size=1_000_000),), "gradient",
        over(logsumexp), logsumexp_by_hand,
    ),
    Program(
        "mixture 1000×25×10", mixture,
        (rng.normal(size=GAUSSIANS), rng.normal(size=(GAUSSIANS, 10)),
         rng.normal(size=(GAUSSIANS, 10, 10))),
        "gradient", over(mixture),
    ),
    Program(
        "LSTM cell, 128", lstm,
        (0.1 * rng.normal(size=(512, 256)), rng.normal(size=512), rng.normal(size=HIDDEN),
         rng.normal(size=HIDDEN), rng.normal(size=HIDDEN)),
        "gradient", over(lstm),
    ),
]  # fmt: skip


def derived(p: Program, of: Any) -> Callable[..., Any]:
    """The derivative that is measured, by Lineara or JAX."""
    f = p.f if of is lineara else p.jax(of, of.numpy)
    if p.what == "Hessian":
        return of.hessian(f)
    if p.what == "gradient":
        return of.grad(f, tuple(range(len(p.args))) if len(p.args) > 1 else 0)
    return of.vmap(of.grad(f), (None, 0, 0))


def calls(p: Program) -> dict[str, Callable[[], Any]]:
    """What is measured; results that are not the same are an error."""
    ours = lineara.jit(derived(p, lineara), engine="native")
    ways = {"native": lambda: ours(*p.args)}
    by_hand = p.by_hand
    if by_hand is not None:
        ways["by hand"] = lambda: by_hand(*p.args)
    try:
        import jax
    except ImportError:
        pass
    else:
        jax.config.update("jax_enable_x64", True)
        theirs, given = jax.jit(derived(p, jax)), jax.device_put(p.args)
        ways["jax"] = lambda: jax.block_until_ready(theirs(*given))
    results = [way() for way in ways.values()]
    for other in results[1:]:
        pairs = zip(arrays_of(results[0]), arrays_of(other), strict=True)
        assert all([np.allclose(a, b, atol=1e-8) for a, b in pairs]), p.name
    return ways


def arrays_of(value: Any) -> list[Any]:
    """The arrays of a result."""
    return list(value) if isinstance(value, tuple | list) else [value]

"""Programs of arrays for `benchmarks.native`: Lineara's source, JAX', and gradients by hand.

`compiled` gives what Lineara runs, `by_jax` and `by_hand` what it is measured against.
"""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import lineara

from .peers import installed

rng = np.random.default_rng(0)
SEEN = rng.normal(size=(200, 4))
MOVES = np.eye(4) + 0.1 * np.eye(4, k=1)
INPUTS, CLASSES = rng.normal(size=(64, 128)), np.eye(10)[rng.integers(0, 10, 64)]
CAMERAS, PLACED, SIGHTS = 50, 10_000, 100_000
OF_CAMERA, OF_POINT = np.arange(SIGHTS) % CAMERAS, rng.integers(0, PLACED, SIGHTS)
PIXELS = rng.normal(size=(SIGHTS, 2))
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
    cpp: tuple[Any, ...] | None = None  # what the C++ of the same name takes after the arguments


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


SOURCES = rng.integers(0, 1_000_000, 1_000_000)
WEIGHTS = rng.normal(size=1_000_000)


def gather(x: Any, xp: Any = np) -> Any:
    """A sum over what is read at a million places."""
    return xp.sum(WEIGHTS * x[SOURCES] ** 2)


def gather_by_hand(x: Any) -> Any:
    return np.bincount(SOURCES, 2 * WEIGHTS * x[SOURCES], len(x))


def determinant(a: Any) -> Any:
    """By elimination, element by element."""
    n = a.shape[0]
    u = a.copy()
    product = 1.0
    for k in range(n):
        product = product * u[k, k]
        for i in range(k + 1, n):
            factor = u[i, k] / u[k, k]
            for j in range(k + 1, n):
                u[i, j] = u[i, j] - factor * u[k, j]
    return product


def determinant_by_hand(a: Any) -> Any:
    return np.linalg.det(a) * np.linalg.inv(a).T


def determinant_of_jax(jax: Any, xp: Any) -> Any:
    def value(a: Any) -> Any:
        n = a.shape[0]

        def step(k: Any, held: Any) -> Any:
            u, product = held
            factors = xp.where(xp.arange(n) > k, u[:, k] / u[k, k], 0.0)
            return u - factors[:, None] * u[k], product * u[k, k]

        return jax.lax.fori_loop(0, n, step, (a, 1.0))[1]

    return value


def bundle(cameras: Any, points: Any, xp: Any = np) -> Any:
    """Half the squared distances of pixels from where cameras see points."""
    c, x = cameras[OF_CAMERA], points[OF_POINT]
    apart = x - c[:, 3:6]
    angle = xp.sqrt(xp.sum(c[:, :3] ** 2, axis=1))
    v = c[:, :3] / angle[:, None]
    cos, sin = xp.cos(angle)[:, None], xp.sin(angle)[:, None]
    along = xp.sum(v * apart, axis=1)[:, None]
    seen = apart * cos + xp.cross(v, apart) * sin + v * along * (1 - cos)
    flat = seen[:, :2] / seen[:, 2:]
    rho = xp.sum(flat * flat, axis=1)
    bent = 1 + c[:, 9] * rho + c[:, 10] * rho * rho
    off = (c[:, 6] * bent)[:, None] * flat + c[:, 7:9] - PIXELS
    return 0.5 * xp.sum(off * off)


PLACES = rng.normal(size=(200, 3))
APART = np.square(PLACES[:, None] - PLACES[None]).sum(axis=-1)
OBSERVED, EYE = np.sin(PLACES.sum(axis=1)), np.eye(200)


def likelihood(p: Any, xp: Any = np) -> Any:
    """Minus the log likelihood of a Gaussian process."""
    k = xp.exp(p[1]) * xp.exp(-APART / xp.exp(p[0])) + xp.exp(p[2]) * EYE
    factor = xp.linalg.cholesky(k)
    half = xp.linalg.solve(factor, OBSERVED)
    return 0.5 * xp.sum(half * half) + xp.sum(xp.log(xp.diag(factor)))


def likelihood_by_hand(p: Any) -> Any:
    smooth = np.exp(p[1]) * np.exp(-APART / np.exp(p[0]))
    inverse = np.linalg.inv(smooth + np.exp(p[2]) * EYE)
    a = inverse @ OBSERVED
    k_bar = 0.5 * (inverse - np.outer(a, a))
    of_smooth = k_bar * smooth
    return np.array(
        [
            np.sum(of_smooth * APART) / np.exp(p[0]),
            np.sum(of_smooth),
            np.trace(k_bar) * np.exp(p[2]),
        ]
    )


def flow(s: Any, xp: Any = np) -> Any:
    """The right side of Lorenz' equations."""
    return xp.array([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])


def step_of_lorenz(s: Any, xp: Any = np) -> Any:
    """A step of Runge and Kutta's method."""
    h = 0.001
    k1 = flow(s, xp)
    k2 = flow(s + h / 2 * k1, xp)
    k3 = flow(s + h / 2 * k2, xp)
    k4 = flow(s + h * k3, xp)
    return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(start: Any) -> Any:
    """The sum of squares along 4,000 points of a trajectory, in the rows of an array."""
    y = np.zeros((4000, 3))
    y[0] = start
    for i in range(3999):
        y[i + 1] = step_of_lorenz(y[i])
    return np.sum(y * y)


def lorenz_of_jax(jax: Any, xp: Any) -> Any:
    def value(start: Any) -> Any:
        def step(s: Any, _: None) -> Any:
            return step_of_lorenz(s, xp), s

        return xp.sum(jax.lax.scan(step, start, None, 4000)[1] ** 2)

    return value


def over(f: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """JAX' function of the same source."""
    return lambda jax, xp: lambda *args: f(*args, xp=xp)


PROGRAMS = [
    Program("Kalman filter, 200 × 4×4", kalman, (1.0,), "gradient", kalman_of_jax, None,
            (MOVES, SEEN, 200)),
    Program("Lorenz in rows, 4000 points", lorenz, (np.array([1.0, 0.5, 20.0]),), "gradient",
            lorenz_of_jax, None, (4000, 0.001)),
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
        over(logsumexp), logsumexp_by_hand, (1_000_000,),
    ),
    Program(
        "mixture 1000×25×10", mixture,
        (rng.normal(size=GAUSSIANS), rng.normal(size=(GAUSSIANS, 10)),
         rng.normal(size=(GAUSSIANS, 10, 10))),
        "gradient", over(mixture), None, (POINTS, 1000, GAUSSIANS),
    ),
    Program(
        "LSTM cell, 128", lstm,
        (0.1 * rng.normal(size=(512, 256)), rng.normal(size=512), rng.normal(size=HIDDEN),
         rng.normal(size=HIDDEN), rng.normal(size=HIDDEN)),
        "gradient", over(lstm), None, (HIDDEN,),
    ),
    Program(
        "gather and scatter, n = 1000000", gather, (rng.normal(size=1_000_000),), "gradient",
        over(gather), gather_by_hand, (WEIGHTS, SOURCES, 1_000_000),
    ),
    Program(
        "determinant in loops, 30×30", determinant, (rng.normal(size=(30, 30)) + 6 * np.eye(30),),
        "gradient", determinant_of_jax, determinant_by_hand, (30,),
    ),
    Program(
        "bundle adjustment, 100000 sights", bundle,
        (rng.normal(size=(CAMERAS, 11)) + np.array([0.5] * 5 + [-9.0, 1.0] + [0.0] * 4),
         rng.normal(size=(PLACED, 3))),
        "gradient", over(bundle), None, (PIXELS, OF_CAMERA, OF_POINT, SIGHTS, CAMERAS, PLACED),
    ),
    Program(
        "Gaussian process, n = 200", likelihood, (np.array([0.5, 0.1, -3.0]),), "gradient",
        over(likelihood), likelihood_by_hand,
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


def by_cpp(p: Program, library: Any) -> dict[str, Callable[[], Any]]:
    """Value and gradient by the C++ of the program's name, which has the arrays it is given."""
    assert p.cpp is not None
    outputs = [np.empty(np.shape(a)) for a in p.args]
    held = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in (*p.args, *p.cpp)]

    def passed(a: Any) -> Any:
        if isinstance(a, np.ndarray):
            return ctypes.c_void_p(a.ctypes.data)
        return ctypes.c_double(a) if isinstance(a, float) else ctypes.c_long(a)

    operands, results = list(map(passed, held)), list(map(passed, outputs))
    value, gradient = getattr(library, p.f.__name__), getattr(library, f"{p.f.__name__}_gradient")
    value.restype, gradient.restype = ctypes.c_double, None

    def back(held: list = held) -> Any:
        gradient(*operands, *results)
        return outputs if len(outputs) > 1 else outputs[0]

    return {"value": lambda held=held: value(*operands), "gradient": back}


def calls(p: Program, libraries: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """What is measured; results that are not the same are an error."""
    ours = lineara.jit(derived(p, lineara), engine="native")
    ways = {"native": lambda: ours(*p.args)}
    if p.by_hand is not None:
        by_hand = p.by_hand
        ways["by hand"] = lambda: by_hand(*p.args)
    values = {}
    for name, library in libraries.items():
        if p.cpp is not None and library is not None:
            both = by_cpp(p, library)
            ways[name], values[f"{name} value"] = both["gradient"], both["value"]
    if installed("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        theirs, given = jax.jit(derived(p, jax)), jax.device_put(p.args)
        ways["jax"] = lambda: jax.block_until_ready(theirs(*given))
    if installed("torch"):
        from . import native_torch

        eagerly = native_torch.call(p)
        ways |= {"torch": eagerly} if eagerly else {}
    same(p, [way() for way in ways.values()])
    if p.what == "gradient":
        value = lineara.jit(p.f, engine="native")
        values["value"] = lambda: value(*p.args)
        same(p, [way() for way in values.values()])
    return ways | values


def same(p: Program, results: list[Any]) -> None:
    """Results that are not the same are an error."""
    for other in results[1:]:
        pairs = zip(arrays_of(results[0]), arrays_of(other), strict=True)
        assert all([np.allclose(a, b, rtol=1e-6, atol=1e-8) for a, b in pairs]), p.name


def arrays_of(value: Any) -> list[Any]:
    """The arrays of a result."""
    return list(value) if isinstance(value, tuple | list) else [value]

"""The laws that a random call is held to: its value is NumPy's, its derivatives agree.

`judge(seed)` says "holds", or by which law it was refused, or raises `Wrong`.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from random_calls import Drawn

import lineara
from lineara.errors import LinearaError, NoRuleError, TypeMismatchError

TIGHT, STEPS = 1e-6, (1e-3, 4e-4)


class Wrong(AssertionError):
    """A law does not hold: which one, of which call."""


def parts(y: Any) -> list[Any]:
    """The arrays of a result, which may be a tuple or a list."""
    return [p for q in y for p in parts(q)] if isinstance(y, tuple | list) else [y]


def floats(values: Sequence[Any]) -> list[Any]:
    """Those that have a derivative."""
    return [v for v in map(np.asarray, values) if v.dtype.kind in "fc"]


def near(a: Any, b: Any, tolerance: float) -> bool:
    """Whether arrays are equal up to rounding, measured by the largest element."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    finite = np.isfinite(b)
    size = np.max(np.abs(b[finite]), initial=0.0)
    return bool(np.all(np.abs(a[finite] - b[finite]) <= tolerance * (1 + size)))


def all_near(a: Sequence[Any], b: Sequence[Any], tolerance: float) -> bool:
    """Whether arrays are pairwise equal up to rounding."""
    return len(a) == len(b) and all(near(p, q, tolerance) for p, q in zip(a, b, strict=True))


def slopes(f: Callable[..., list], args: Sequence[Any], along: Sequence[Any]) -> list[Any] | None:
    """The derivative in a direction by differences; None if there is a kink or a pole nearby."""

    def shifted(h: float) -> list[Any]:
        return floats(f(*[a + h * t for a, t in zip(args, along, strict=True)]))

    found = []
    for h in STEPS:
        rows = zip(*(shifted(k * h) for k in (1, -1, 2, -2)), strict=True)
        found.append([(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in rows])
    smooth = all_near(*found, tolerance=TIGHT / 10)
    return found[1] if smooth and all(np.all(np.isfinite(s)) for s in found[1]) else None


def judge(seed: int) -> str:
    """Hold one call to all laws."""
    drawn = Drawn(seed)

    def demand(holds: bool, law: str, *seen: Any) -> None:
        if not holds:
            told = "".join(f"\n    {s}" for s in (*seen, drawn.arrays, drawn.constants))
            raise Wrong(f"seed {seed}: {law}: {drawn.text}{told}")

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _judged(drawn, np.random.default_rng(seed), demand)


def _judged(drawn: Drawn, rng: np.random.Generator, demand: Callable[..., None]) -> str:
    call, args = drawn.function(), tuple(drawn.arrays.values())
    try:
        plain = parts(call(*args))
    except Exception:
        try:
            lineara.linearize(call, *args)
        except Exception:
            return "raises, as NumPy"
        raise Wrong(f"NumPy raises an error: {drawn.text}") from None
    if not floats(plain):
        return "constant"
    f = lambda *a: parts(call(*a))  # noqa: E731
    try:
        y, _ = lineara.linearize(f, *args)
    except NoRuleError:
        return "refused"
    for a, b in zip(y, plain, strict=True):
        demand(np.shape(a) == np.shape(b) and near(a, b, 1e-12), "the value", a, b)
        demand(np.asarray(a).dtype == np.asarray(b).dtype, "the dtype", a, b)
    if not all(np.all(np.isfinite(p)) for p in floats(plain)):
        return "not finite"
    single = "float32" in drawn.text
    rough = 1e-3 if single else 1e-9
    tangents = tuple(_like(rng, a) for a in args)
    moved = lineara.jvp(f, args, tangents)[1]
    y_dot = [d for d, p in zip(moved, plain, strict=True) if floats([p])]
    by_differences = None if single else slopes(f, args, tangents)
    if by_differences is not None:
        demand(all_near(y_dot, by_differences, TIGHT), "forward", y_dot, by_differences)

    weights = [_like(rng, p) for p in plain]

    def loss(*a: Any) -> Any:
        pairs = zip(f(*a), weights, strict=True)
        return sum([np.sum(np.real(p * np.conj(w))) for p, w in pairs], 0.0)

    every = tuple(range(len(args)))
    gradient = lineara.grad(loss, argnums=every)(*args)
    for g, a in zip(gradient, args, strict=True):
        same = np.shape(g) == np.shape(a) and np.asarray(g).dtype == np.asarray(a).dtype
        demand(same, "the type of a gradient", g, a)
    inner = lambda p, q: sum(np.sum(np.real(np.conj(a) * b)) for a, b in zip(p, q, strict=True))  # noqa: E731
    forward = inner([w for w, p in zip(weights, plain, strict=True) if floats([p])], y_dot)
    size = 1 + abs(forward) + sum(np.sum(np.abs(w)) for w in weights)
    demand(abs(forward - inner(gradient, tangents)) <= rough * size, "the transpose", gradient)
    again = () if single or by_differences is None else tangents
    return _staged(loss, args, gradient, again, rough, demand)


def _staged(
    loss: Callable, args: tuple, gradient: tuple, along: tuple, rough: float, demand: Callable
) -> str:
    """The second order, a program, and lanes; what is refused there is refused with a reason."""
    every, refused = tuple(range(len(args))), []
    slope = lineara.grad(loss, argnums=every)
    if along:
        numeric = slopes(lambda *a: list(slope(*a)), args, along)
        moved = lineara.jvp(slope, args, along)[1]
        if numeric is not None:
            demand(all_near(moved, numeric, 10 * TIGHT), "the second order", moved, numeric)
    try:
        found = lineara.grad(lineara.trace(loss, *args), argnums=every)(*args)
        demand(all_near(found, gradient, rough), "the program", found, gradient)
    except LinearaError:
        refused.append("trace")
    if along:
        rows = [np.stack([a, a + 1e-3 * t]) for a, t in zip(args, along, strict=True)]
        try:
            lanes = lineara.vmap(loss)(*rows)
            one_by_one = [loss(*[r[i] for r in rows]) for i in range(2)]
            demand(near(lanes, one_by_one, 1e-9), "lanes", lanes, one_by_one)
        except LinearaError:
            refused.append("vmap")
    return f"holds, but {' and '.join(refused)} refused" if refused else "holds"


def judge_precision(seed: int) -> str:
    """Hold one call to the laws in single precision and in complex numbers."""
    drawn, rng = Drawn(seed), np.random.default_rng(seed)
    call, args = drawn.function(), tuple(drawn.arrays.values())
    complex_ones = tuple([a + 0.3j * rng.standard_normal(a.shape) for a in args])
    outcomes = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for kind, given in (("single", tuple(map(_single, args))), ("complex", complex_ones)):
            if all(np.ndim(a) for a in given):  # numbers take the precision of what they meet
                outcomes.append(_judged_in(kind, lambda *a: parts(call(*a)), given, drawn.text))
    return " ".join(outcomes) or "numbers"


def _judged_in(kind: str, f: Callable, args: tuple, text: str) -> str:
    try:
        plain = f(*args)
    except Exception:
        return f"{kind}: raises"
    if not floats(plain):
        return f"{kind}: constant"
    try:
        found, _ = lineara.linearize(f, *args)
    except (NoRuleError, TypeMismatchError):
        return f"{kind}: refused"
    for a, b in zip(found, plain, strict=True):
        same = np.asarray(a).dtype == np.asarray(b).dtype or not np.ndim(b)
        if not same or not near(a, b, 1e-5 if kind == "single" else 1e-12):
            raise Wrong(f"the value in {kind} numbers: {text}\n    {a!r}\n    {b!r}")
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal(np.shape(p)) for p in plain]

    def loss(*a: Any) -> Any:
        turned = [np.sum(np.real(p * np.exp(1j * w))) for p, w in zip(f(*a), weights, strict=True)]
        return sum(turned, 0.0)

    every = tuple(range(len(args)))
    gradient = lineara.grad(loss, argnums=every)(*args)
    along = tuple(_like(rng, a) for a in args)
    moved = sum(np.sum(np.real(np.conj(g) * t)) for g, t in zip(gradient, along, strict=True))
    if kind == "single":
        wide = lineara.grad(loss, argnums=every)(*map(_double, args))
        want = sum(np.sum(np.real(np.conj(g) * t)) for g, t in zip(wide, along, strict=True))
        size = 1 + sum(np.sum(np.abs(g)) for g in wide)
        right = not np.isfinite(want) or abs(moved - want) <= 1e-3 * size
    else:
        numeric = slopes(lambda *a: [loss(*a)], args, along)
        right = numeric is None or near(moved, numeric[0], 10 * TIGHT)
    if not right or any(g.dtype != a.dtype for g, a in zip(gradient, args, strict=True)):
        raise Wrong(f"the gradient in {kind} numbers: {text}\n    {gradient}")
    return f"{kind}: holds"


def _single(a: Any) -> Any:
    return np.asarray(a).astype(np.complex64 if np.iscomplexobj(a) else np.float32)


def _double(a: Any) -> Any:
    return a.astype(complex if np.iscomplexobj(a) else float)


def _like(rng: np.random.Generator, a: Any) -> Any:
    """Random numbers of the shape of a value, complex if it is."""
    found = rng.standard_normal(np.shape(a))
    if np.iscomplexobj(a):
        found = found + 1j * rng.standard_normal(np.shape(a))
    return found if isinstance(a, np.ndarray) else np.asarray(found)[()].item()

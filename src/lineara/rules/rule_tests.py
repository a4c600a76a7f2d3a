"""The laws of a rule, checked with numbers that say which side is off.

    value           the rule's value is the function's
    derivative      <w, J v> by the rule is that by a finite difference of the function
    dot product     <w, J v> = <J^T w, v>
    linearity       J (a u + b v) = a J u + b J v

v and w are random directions.  A finite difference is taken at several steps; where the function
has a kink the point is moved, and where no step gives a finite number there is no verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lineara.api import linear_transpose
from lineara.cotangent.builder import Builder
from lineara.errors import LinearaError, LinearityError, RuleError
from lineara.facts.box import Own
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.types import type_of
from lineara.rules.call_as_operation import Form, Rule, finished, moves, opened, settled, still
from lineara.rules.pullback import Pullback
from lineara.tape.levels import outside
from lineara.tape.node import plain
from lineara.trees import flatten, unflatten

# <w, J v> by the rule, from leaves, w and v; and its size, had nothing cancelled
Claim = Callable[[list[Any], Sequence[Any], Sequence[Any]], tuple[float, float]]
STEPS = (1.0, 0.1, 0.01, 10.0)  # of eps^(1/5), relative to the size of the argument
MEANT = "mend the rule, or give check=False if this is meant"


# --- vectors ------------------------------------------------------------------------------------


def dot(w: Sequence[Any], v: Sequence[Any]) -> float:
    """The real inner product of two lists of vectors; None is zero."""
    return float(sum(_terms(w, v)))


def _terms(w: Sequence[Any], v: Sequence[Any]) -> list[float]:
    return [float(np.sum(np.real(np.conj(a) * b))) for a, b in _pairs(w, v)]


def _pairs(w: Sequence[Any], v: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The parts of two lists of vectors that meet; of a builder only where it is not zero."""
    for a, b in zip(w, v, strict=True):
        if type(a) is Own or type(b) is Own:
            yield from _pairs([finished(a)], [finished(b)])
        elif isinstance(a, Builder) and b is not None:
            where, values = a.cells()
            yield values, np.ravel(b)[where]
        elif isinstance(b, Builder) and a is not None:
            where, values = b.cells()
            yield np.ravel(a)[where], values
        elif a is not None and b is not None:
            yield a, b


def size(w: Sequence[Any], v: Sequence[Any]) -> float:
    """The sum of the moduli in an inner product: what it could be if nothing cancelled."""
    return float(sum(np.sum(np.abs(np.multiply(a, b, dtype=complex))) for a, b in _pairs(w, v)))


def random_like(rng: np.random.Generator, leaf: Any, scaled: bool = False) -> Any:
    """A random vector like a leaf, of the leaf's size if `scaled`; None for what does not move."""
    if not moves(leaf):
        return None
    t = (
        type_of(leaf)
        if hasattr(leaf, "dtype")
        else type_of(float(leaf) if not isinstance(leaf, complex) else leaf)
    )
    v = rng.standard_normal(t.shape)
    if t.dtype.kind == "c":
        v = v + 1j * rng.standard_normal(t.shape)
    v = np.asarray(v).astype(t.dtype)
    if scaled:
        v = v * t.dtype.type(_scale(leaf))
    return v if t.shape else v.item()


def _scale(leaf: Leaf) -> float:
    x = np.abs(np.asarray(leaf, dtype=complex if isinstance(leaf, complex) else None)).astype(float)
    top = float(np.max(x, initial=0.0))
    if not 0 < top < np.inf:
        return 1.0
    return top * float(np.sqrt(np.mean((x / top) ** 2)))


def _axpy(x: Value, h: float, v: Shaped | None) -> Any:
    """x + h v, in x' own type."""
    if v is None:
        return x
    y = x + np.asarray(h, type_of(v).dtype) * v
    return (
        y
        if isinstance(x, np.ndarray)
        else y.item()
        if isinstance(y, np.ndarray | np.generic)
        else y
    )


def _precision(leaves: Sequence[Any]) -> float:
    """The eps of the coarsest floating leaf."""
    kinds = [type_of(v).dtype for v in leaves if hasattr(v, "dtype") and moves(v)]
    return max([float(np.finfo(d).eps) for d in kinds], default=float(np.finfo(float).eps))


def _close(a: float, b: float, scale: float, tolerance: float) -> bool:
    """Whether two numbers agree; where one is not finite, nothing is said against it."""
    return not np.isfinite(a - b) or abs(a - b) <= tolerance * max(scale, abs(a), abs(b))


def _show(a: float) -> str:
    return f"{a:.6g}"


# --- a function at a point ----------------------------------------------------------------------


class Point:
    """A function at a point, seen as one from leaves to leaves."""

    options: dict[str, Any]
    form: Form
    f: Callable[..., Any]

    def __init__(
        self, f: Callable[..., Any], leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> None:
        self.f, self.leaves, self.form, self.options = f, list(leaves), form, options

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the result, plain."""
        given = [v.copy() if isinstance(v, np.ndarray) else v for v in leaves]
        with outside():
            y = self.f(*self.form.arguments(given), **self.options)
        return [plain(settled(v)) for v in flatten(y)[0]]

    def difference(
        self, w: Sequence[Any], v: Sequence[Any], h: float
    ) -> tuple[float, float, float]:
        """<w, J v> by differences with step h: extrapolated, to the right, to the left."""
        f0, f1, f2, f3, f4 = (self._along(w, v, t) for t in (0.0, h, -h, h / 2, -h / 2))
        wide, narrow = (f1 - f2) / (2 * h), (f3 - f4) / h
        return (4 * narrow - wide) / 3, (f3 - f0) / (h / 2), (f0 - f4) / (h / 2)

    def _along(self, w: Sequence[Any], v: Sequence[Any], t: float) -> float:
        try:
            with np.errstate(all="ignore"):
                return dot(w, self([_axpy(x, t, d) for x, d in zip(self.leaves, v, strict=True)]))
        except (ArithmeticError, ValueError):
            return float("nan")

    def moved(self, rng: np.random.Generator) -> bool:
        """Look beside a kink or the end of the domain; False where that is outside of it."""
        move = [random_like(rng, x, scaled=True) for x in self.leaves]
        there = [_axpy(x, 0.05, d) for x, d in zip(self.leaves, move, strict=True)]
        try:
            with np.errstate(all="ignore"):
                self(there)
        except (ArithmeticError, ValueError):
            return False
        self.leaves: list[Any] = there
        return True

    def verdict(self, claim: float, scale: float, w: Sequence[Any], v: Sequence[Any]) -> "Verdict":
        """Whether <w, J v> is `claim`, by finite differences."""
        y = self(self.leaves)
        eps = _precision([*self.leaves, *y])
        tolerance = max(1e-5, 30 * eps**0.5)
        tried = []
        for h in (step * eps**0.2 for step in STEPS):
            slope, right, left = self.difference(w, v, h)
            if np.isfinite(slope):
                noise = 100 * eps * size(w, y) / h
                if abs(slope - claim) <= noise + tolerance * max(scale, abs(slope)):
                    return Verdict(True, slope)
                tried.append((slope, abs(right - left), noise))
        if len(tried) < 2:
            return Verdict(None, claim)
        (wide, wide_gap, _), (narrow, narrow_gap, noise) = tried[:2]
        kink = narrow_gap > max(0.5 * wide_gap, 4 * noise)  # of a smooth function it goes with h
        rough = abs(wide - narrow) > 0.5 * min(abs(wide - claim), abs(narrow - claim))
        return Verdict(None if kink or rough else False, wide)


@dataclass
class Verdict:
    """True, False, or None where nothing can be said; and the number that was found."""

    holds: bool | None
    found: float


class Wrong(NamedTuple):
    """What a rule claims of <w, J v>, what a difference says, and the directions."""

    said: float
    found: float
    w: list[Any]
    v: list[Any]


def first_wrong(point: Point, claim: Claim, rng: np.random.Generator) -> Wrong | None:
    """A claim that a finite difference denies, in two random directions; or None."""
    agreed = 0
    for _ in range(4):
        w = [random_like(rng, y) for y in point(point.leaves)]
        v = [random_like(rng, x, scaled=True) for x in point.leaves]
        said, scale = claim(point.leaves, w, v)
        verdict = point.verdict(said, scale, w, v) if np.isfinite(said) else Verdict(None, said)
        if verdict.holds is False:
            return Wrong(said, verdict.found, w, v)
        agreed += verdict.holds is True
        if agreed == 2 or not (verdict.holds or point.moved(rng)):
            break
    return None


# --- the three kinds of rules -------------------------------------------------------------------


def check_jvp(rule: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Test a custom_jvp at these arguments."""
    rng = np.random.default_rng(0)
    leaves, form = opened(args)
    point = Point(rule.f, leaves, form, options)
    y = point(leaves)
    w = [random_like(rng, v) for v in y]

    def at(x: list[Any], v: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        dots = [still(a) if d is None else d for a, d in zip(x, v, strict=True)]
        with outside():
            out = rule.jvp(tuple(form.arguments(x)), tuple(form.arguments(dots)), **options)
        value, y_dot = rule.parts(out)
        numbers = [plain(settled(a)) for a in flatten(value)[0]]
        return numbers, [None if d is None else plain(d) for d in rule.aligned(value, y_dot)]

    v = [random_like(rng, x, scaled=True) for x in leaves]
    value, dots = at(leaves, v)
    _check_value(rule, "the rule", value, y)
    active = [i for i, x in enumerate(leaves) if moves(x)]
    _, joint = rule.trace(None, leaves, active, form, options)  # raises where it is not linear
    bars = joint.back(_moving(w, y))
    ahead, behind = dot(w, dots), dot(bars, [v[i] for i in active])
    if not _close(ahead, behind, size(w, dots), max(1e-7, 100 * _precision([*leaves, *y]))):
        raise RuleError(
            f"{rule!r}: the rule's tangent gives <w, J v> = {_show(ahead)}, but its transposed "
            f"text <J^T w, v> = {_show(behind)}; the rule must be a linear function of the "
            "tangents alone"
        )

    def claim(x: list[Any], w: Sequence[Any], v: Sequence[Any]) -> tuple[float, float]:
        _, dots = at(x, v)
        return dot(w, dots), size(w, dots)

    _compare(rule, point, claim, rng, "the rule", "<w, J v> is")


def check_vjp(rule: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Test a custom_vjp at these arguments."""
    rng = np.random.default_rng(0)
    leaves, form = opened(args)
    point = Point(rule.f, leaves, form, options)
    y = point(leaves)
    w, u = ([random_like(rng, v) for v in y] for _ in range(2))

    def at(x: list[Any]) -> tuple[Any, Any]:
        with outside():
            value, residuals = rule.parts(rule.fwd(*form.arguments(x), **options))
        return value, Pullback(rule, x, form, value, residuals)

    value, pull = at(leaves)
    _check_value(rule, "fwd", [plain(settled(a)) for a in flatten(value)[0]], y)
    bars = pull.direct(w)
    v = [random_like(rng, x, scaled=True) for x in leaves]
    tolerance = max(1e-7, 100 * _precision([*leaves, *y]))
    mixed = [None if a is None else 2 * a - 3 * b for a, b in zip(w, u, strict=True)]
    together, apart = dot(pull.direct(mixed), v), 2 * dot(bars, v) - 3 * dot(pull.direct(u), v)
    if not _close(together, apart, size(bars, v), tolerance):
        raise RuleError(
            f"{rule!r}: bwd is not linear in y_bar: of 2 u - 3 w it gives {_show(together)}, "
            f"but 2 times that of u minus 3 times that of w is {_show(apart)}; {MEANT}"
        )
    try:
        behind = dot(_moving(w, y), pull.text.back(v))
    except LinearaError:  # bwd looks at values: there will be no forward mode, and it says why
        behind = dot(bars, v)
    if not _close(behind, dot(bars, v), size(bars, v), tolerance):
        raise RuleError(
            f"{rule!r}: bwd gives <J^T w, v> = {_show(dot(bars, v))}, but its transposed text "
            f"<w, J v> = {_show(behind)}; bwd must be a function of its residuals and, linearly, "
            "of y_bar alone"
        )

    def claim(x: list[Any], w: Sequence[Any], v: Sequence[Any]) -> tuple[float, float]:
        gradient = at(x)[1].direct(w)
        return dot(gradient, v), size(gradient, v)

    _compare(rule, point, claim, rng, rule.stated_by, "<J^T w, v> is")


def check_external(rule: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Test an external at these arguments."""
    rng = np.random.default_rng(0)
    leaves, form = opened(args)
    active = [i for i, x in enumerate(leaves) if moves(x)]
    point = Point(rule.f, leaves, form, options)
    y = point(leaves)
    w = _moving([random_like(rng, v) for v in y], y)
    v = [random_like(rng, x, scaled=True) for x in leaves]

    def at(x: list[Any]) -> Any:
        return rule.trace(None, x, active, form, options)[1]

    if rule.jvp is not None and rule.vjp is not None:
        dots = at(leaves).forward([v[i] for i in active])
        ahead, behind = dot(w, dots), dot(at(leaves).back(w), [v[i] for i in active])
        if not _close(ahead, behind, size(w, dots), max(1e-7, 100 * _precision([*leaves, *y]))):
            raise RuleError(
                f"{rule!r}: jvp= gives <w, J v> = {_show(ahead)}, but vjp= <J^T w, v> = "
                f"{_show(behind)}; each must be the other's transpose: {MEANT}"
            )

    def claim(x: list[Any], w: Sequence[Any], v: Sequence[Any]) -> tuple[float, float]:
        moving = [v[i] for i in active]
        if rule.vjp is not None and rule.jvp is None:
            w, moving = moving, at(x).back(w)  # <v, J^T w> is <w, J v>
        else:
            moving = at(x).forward(moving)
        return dot(w, moving), size(w, moving)

    who = "the difference" if rule.difference else "vjp=" if rule.jvp is None else "jvp="
    _compare(rule, point, claim, rng, who, "<w, J v> is")


def _moving(w: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    return [d if moves(v) else None for d, v in zip(w, y, strict=True)]


def _check_value(rule: Rule, who: str, value: Sequence[Any], y: Sequence[Any]) -> None:
    """The value that a rule gives is the function's."""
    if len(value) != len(y):
        raise RuleError(
            f"{rule!r}: {who} returns a value of {len(value)} leaves, the function {len(y)}; "
            "they must be alike"
        )
    tolerance = max(1e-7, 100 * _precision(y))
    for a, b in zip(value, y, strict=True):
        if not moves(b):
            continue
        if type_of(a).shape != type_of(b).shape:
            raise RuleError(
                f"{rule!r}: {who} returns a value {type_of(a)}, the function {type_of(b)}; "
                "they must be alike"
            )
        if not np.allclose(a, b, tolerance, tolerance * _scale(b), equal_nan=True):
            worst = np.unravel_index(np.argmax(np.abs(np.subtract(a, b))), np.shape(b))
            raise RuleError(
                f"{rule!r}: {who} returns the value {_entry(a, worst)}, but the function "
                f"{_entry(b, worst)}; {MEANT}"
            )


def _entry(a: Shaped, at: Any) -> str:
    value = np.asarray(a)[at]
    where = f" at [{', '.join(str(int(i)) for i in at)}]" if at else ""
    return (_show(float(value)) if np.isrealobj(value) else f"{value:.6g}") + where


def _compare(
    rule: Rule,
    point: Point,
    claim: Callable[..., Any],
    rng: np.random.Generator,
    who: str,
    product: str,
) -> None:
    """The rule's derivative against finite differences of the function, or RuleError."""
    wrong = first_wrong(point, claim, rng)
    if wrong is None:
        return
    moving = [d for d in (*wrong.v, *wrong.w) if d is not None]
    if len(moving) == 2 and all(isinstance(d, float) for d in moving):  # one number of one number
        product, unit = "the derivative is", moving[0] * moving[1]
    else:
        unit = 1.0
    raise RuleError(
        f"{rule!r}: {who} says that {product} {_show(wrong.said / unit)}, but a finite difference "
        f"of the function {_show(wrong.found / unit)}{_culprits(rule, point, claim, wrong)}; "
        f"{MEANT}"
    )


def _culprits(rule: Any, point: Point, claim: Claim, wrong: Wrong) -> str:
    """The arguments whose derivative is off, where there are several."""
    parts = point.form.split(wrong.v)
    moving = [i for i, part in enumerate(parts) if any(d is not None for d in part)]
    if len(moving) < 2:
        return ""
    names = []
    for i in moving:
        flags = [j == i for j, part in enumerate(parts) for _ in part]
        only = [d if f or d is None else d * 0 for d, f in zip(wrong.v, flags, strict=True)]
        said, scale = claim(point.leaves, wrong.w, only)
        if point.verdict(said, scale, wrong.w, only).holds is False:
            names.append(rule.argument(i))
    return f" (the derivative with respect to {', '.join(names)} is off)" if names else ""


# --- linear functions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearReport:
    """How far a function is from being linear, and from its transpose: relative errors."""

    linearity: float
    transpose: float


def check_linear(f: Callable[..., Any], *args: Any) -> LinearReport:
    """Check that f is linear in its arguments jointly, and that its transpose is one.

        f(a u + b v) = a f(u) + b f(v)        <w, f(v)> = <f^T w, v>

    The arguments say the types; u, v and w are random. LinearityError where f is not linear,
    RuleError where the transpose law fails; else a report of the relative errors.

    >>> import numpy as np
    >>> report = check_linear(lambda x: x[1:] - x[:-1], np.zeros(5))
    >>> report.linearity < 1e-14, report.transpose < 1e-14
    (True, True)
    >>> check_linear(lambda x: x + 1, 2.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    lineara.errors.LinearityError: add of a linear f64[] and a constant that is not zero is ...
    """
    name = f"check_linear of {getattr(f, '__name__', type(f).__name__)}"
    leaves, form = opened(args)
    leaves = [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in leaves]
    back = linear_transpose(f, *form.arguments(leaves))

    def transpose(y_bar: Value) -> list[Any]:
        return opened(back(y_bar))[0]

    everything = [moves(v) for v in leaves]
    return _laws(name, Point(f, leaves, form, {}), everything, transpose)


def check_pair(rule: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Test a custom_linear at these arguments."""
    leaves, form = opened(args)
    linear = [flag and moves(v) for v, flag in zip(leaves, rule.linear_leaves(form), strict=True)]
    active = [i for i, flag in enumerate(linear) if flag]
    point = Point(rule.f, leaves, form, options)

    def transpose(y_bar: Value) -> list[Any]:
        y = flatten(y_bar)[0]
        bars = dict(zip(active, joint.back(y), strict=True))
        return [bars.get(i) for i in range(len(leaves))]

    with outside():
        joint = rule.joint(
            leaves, active, form, options, rule.f(*form.arguments(leaves), **options)
        )
    _laws(repr(rule), point, linear, transpose)


def _laws(
    name: str, point: Point, linear: Sequence[bool], transpose: Callable[[Any], list[Any]]
) -> LinearReport:
    rng = np.random.default_rng(0)

    def draw() -> list[Any]:
        return [
            random_like(rng, x) if flag else None
            for x, flag in zip(point.leaves, linear, strict=True)
        ]

    def at(v: Sequence[Any]) -> list[Any]:
        return point([x if d is None else d for x, d in zip(point.leaves, v, strict=True)])

    u, v, (a, b) = draw(), draw(), (2.0, -3.0)
    mixed = [None if p is None else a * p + b * q for p, q in zip(u, v, strict=True)]
    f_mixed, f_u, f_v = at(mixed), at(u), at(v)
    w = [random_like(rng, y) for y in f_v]
    together, apart = dot(w, f_mixed), a * dot(w, f_u) + b * dot(w, f_v)
    scale = abs(a) * size(w, f_u) + abs(b) * size(w, f_v)
    tolerance = max(1e-7, 100 * _precision([*point.leaves, *f_v]))
    if not _close(together, apart, scale, tolerance):
        raise LinearityError(
            f"{name}: f(a u + b v) is {_show(together)} in a random direction, but a f(u) + b f(v) "
            f"{_show(apart)}; the function is not linear"
        )
    with outside():
        structure = flatten(point.f(*point.form.arguments(point.leaves), **point.options))[1]
    filled = [0.0 if d is None else d for d in w]
    bars = transpose(unflatten(structure, filled))
    ahead, behind = dot(w, f_v), dot(bars, v)
    if not _close(ahead, behind, size(w, f_v), tolerance):
        raise RuleError(
            f"{name}: <w, f(v)> is {_show(ahead)}, but <transpose(w), v> is {_show(behind)}; "
            f"f is linear, so the transpose is off: {MEANT}"
        )
    return LinearReport(_relative(together, apart, scale), _relative(ahead, behind, size(w, f_v)))


def _relative(a: float, b: float, scale: float) -> float:
    return abs(a - b) / scale if scale else abs(a - b)


__all__ = ["LinearReport", "check_external", "check_jvp", "check_linear", "check_pair", "check_vjp"]

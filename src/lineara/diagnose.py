"""Two ways to doubt a derivative: compare it with differences, and ask where a NaN was born.

`check_grads` reports numbers: forward mode against central differences, reverse mode against
forward mode (or the differences, where forward mode is not asked for) by the dot-product identity
<w, J v> = <J^T w, v>, and the same again for the derivatives of these.  `explain_nan` runs the
function once more with the user's line recorded beside every entry of the tape, and sweeps it one
entry at a time.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from lineara.api import jvp, vjp
from lineara.containers.foreign_arrays import as_numpy, is_foreign
from lineara.cotangent.dead_lanes import Masked, unmasked
from lineara.errors import RuleError, TypeMismatchError, describe_line, user_frame
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Elementwise, Outer, Own, Piece, registry
from lineara.python.user_code import lifted, method, seen
from lineara.tape.codegen import OPERATORS
from lineara.tape.contributions import add
from lineara.tape.leaves import Leaves, kind_of_number, lift_args
from lineara.tape.level import Entry, Level
from lineara.tape.levels import deeper, open_level
from lineara.tape.node import ONE, Array, Scalar, Traced, plain
from lineara.tape.reads import Reads
from lineara.tape.sweep import arrived, clear
from lineara.trees import flatten, leaf_paths, unflatten

# --- comparing with differences -------------------------------------------------------------


@dataclass(frozen=True)
class Deviation:
    """One comparison: the largest deviation found, and what was allowed where it was found."""

    order: int
    mode: str
    deviation: float
    allowed: float

    @property
    def passed(self) -> bool:
        """Whether the deviation is within what is allowed; a NaN is not."""
        return self.deviation <= self.allowed


@dataclass(frozen=True)
class GradCheck:
    """What `check_grads` found: true where every comparison passed, and printed as a table."""

    rows: tuple[Deviation, ...]

    def __bool__(self) -> bool:
        return all(row.passed for row in self.rows)

    def largest(self, order: int, mode: str) -> float:
        """The largest deviation of an order and a mode, "fwd" or "rev"."""
        return max(r.deviation for r in self.rows if r.order == order and r.mode.startswith(mode))

    def __str__(self) -> str:
        width = max(len("mode"), *(len(row.mode) for row in self.rows))
        lines = [f"order  {'mode':{width}}  deviation  allowed  "]
        for r in self.rows:
            verdict = "passed" if r.passed else "FAILED"
            numbers = f"{r.deviation:9.1e}  {r.allowed:7.1e}"
            lines.append(f"{r.order:5}  {r.mode:{width}}  {numbers}  {verdict}")
        return "\n".join(lines)

    __repr__ = __str__

    def raise_if_failed(self) -> None:
        """Raise RuleError, with the table, where a comparison failed."""
        if not self:
            raise RuleError(
                "check_grads: a derivative deviates from what it should be; forward mode is "
                "compared with central differences, reverse mode with forward mode, "
                f"or alone with the differences\n{self}"
            )


TOLERANCE = {2: 3e-2, 4: 3e-3, 8: 1e-6}  # by the bytes of a real number
LEVELS = 6  # step sizes of an extrapolation, each half the last


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    seed: int = 0,
) -> GradCheck:
    """Compare the derivatives of f at `args` with differences, and report the numbers.

    Along random directions, forward mode is compared with central differences (extrapolated) and
    reverse mode with forward mode, by <w, J v> = <J^T w, v>; without "fwd" in `modes`, with the
    differences themselves. For order 2 and more the same is done with these derivatives as the
    functions: `rev over fwd` is reverse mode of a jvp. A deviation is allowed up to
    atol + rtol * |expected|; both default to 1e-6 for float64 and 3e-3 for float32. Arguments and
    results may be containers, and complex.

    It does not raise where a derivative is wrong: the report says so, is false, and has
    `raise_if_failed()`. At a kink or a pole the differences mean nothing.

    Raises TypeMismatchError for modes or an order that are none, and for args that are no tuple.

    >>> import numpy as np
    >>> report = check_grads(lambda x: np.sum(np.sin(x) ** 2), (np.array([0.3, 2.0]),), order=2)
    >>> bool(report), report.largest(1, "rev") < 1e-12, [row.mode for row in report.rows]
    (True, True, ['fwd', 'rev', 'fwd over fwd', 'rev over fwd', 'fwd over rev', 'rev over rev'])
    """
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if unknown or isinstance(modes, str) or not modes:
        raise TypeMismatchError(
            f"check_grads: modes={modes!r} is not known; give one or both of 'fwd' and 'rev'"
        )
    if order < 1:
        raise TypeMismatchError(f"check_grads: order={order} is not an order; give 1 or more")
    if not isinstance(args, tuple | list):
        raise TypeMismatchError("check_grads: args is the tuple of the arguments of f")
    flat, point = _flat(f, tuple(args))
    bytes_ = min(np.finfo(x.dtype).dtype.itemsize for x in map(np.asarray, point))
    default = TOLERANCE.get(bytes_, 1e-6)
    allowed = (default if atol is None else atol, default if rtol is None else rtol)
    rng = np.random.default_rng(seed)
    rows = _compare(flat, point, "", order, tuple(modes), allowed, rng)
    return GradCheck(tuple(sorted(rows, key=lambda row: row.order)))


Flat = Callable[..., tuple[Any, ...]]


def _flat(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Flat, list[Any]]:
    """f as a function of its moving leaves, with the leaves of its result; and those leaves."""
    leaves, structure = flatten(args)
    leaves = [as_numpy(v) if is_foreign(type(v)) else v for v in leaves]
    kinds = [kind_of_number(v) for v in leaves]
    moving = [i for i, k in enumerate(kinds) if k in tuple("fc")]
    moving = moving or [i for i, k in enumerate(kinds) if k == "i"]
    if not moving:
        raise TypeMismatchError("check_grads: there is no number in args, so nothing to check")
    point = [leaves[i] if kinds[i] != "i" else np.asarray(leaves[i], float)[()] for i in moving]

    def flat(*xs: Any) -> tuple[Any, ...]:
        filled = list(leaves)
        for i, x in zip(moving, xs, strict=True):
            filled[i] = x
        results = flatten(seen(f)(*lifted(unflatten(structure, filled))))[0]
        return tuple([y for y in results if kind_of_number(y) in tuple("fc")])

    return flat, point


def _compare(
    f: Flat,
    point: list[Any],
    over: str,
    order: int,
    modes: tuple[str, ...],
    allowed: tuple[float, float],
    rng: np.random.Generator,
) -> list[Deviation]:
    """The comparisons of f in every mode, and of its derivatives up to the order."""
    v = [_direction(x, rng) for x in point]
    with np.errstate(all="ignore"):
        y_dot: Sequence[Any] = _differences(f, point, v)
    name = f" over {over}" if over else ""
    depth = len(name.split(" over "))
    rows = []
    if "fwd" in modes:
        differences, y_dot = y_dot, jvp(f, tuple(point), tuple(v))[1]
        rows.append(_row(depth, "fwd" + name, y_dot, differences, allowed))
    y, pull_back = vjp(f, *point)
    w = [_direction(x, rng) for x in y]
    if "rev" in modes:
        claimed = np.array([_inner(pull_back(tuple(w)), v)])
        expected = np.array([_inner(w, y_dot)])
        rows.append(_row(depth, "rev" + name, claimed, expected, allowed))
    if order > 1:
        if "fwd" in modes:
            ahead = _pushed(f, v)
            rows += _compare(ahead, point, "fwd" + name, order - 1, modes, allowed, rng)
        if "rev" in modes:
            rows += _compare(_pulled(f, w), point, "rev" + name, order - 1, modes, allowed, rng)
    return rows


def _pushed(f: Flat, v: list[Any]) -> Flat:
    return lambda *xs: jvp(f, xs, tuple(v))[1]


def _pulled(f: Flat, w: list[Any]) -> Flat:
    return lambda *xs: vjp(f, *xs)[1](tuple(w))


def _direction(like: Value, rng: np.random.Generator) -> Any:
    """A random vector of the type of a value."""
    x = np.asarray(like)
    v = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        v = v + 1j * rng.standard_normal(x.shape)
    return np.asarray(v).astype(x.dtype)[()]


def _inner(a: Iterable[Any], b: Iterable[Any]) -> float:
    """Re <a, b>, the real inner product of lists of arrays, in double precision."""
    pairs = zip(a, b, strict=True)
    return float(sum(np.real(np.sum(np.conj(_wide(x)) * _wide(y))) for x, y in pairs))


def _wide(x: Value) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.result_type(x.dtype, np.float64))


def _differences(f: Flat, point: list[Any], v: list[Any]) -> list[np.ndarray]:
    """The derivative in the direction v by central differences, extrapolated  [Ridders 1982]."""
    at, along = [_wide(x) for x in point], [_wide(d) for d in v]
    size = max([1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in at)])
    speed = max([1e-300, *(float(np.max(np.abs(d), initial=0.0)) for d in along)])
    h = 0.02 * size / speed

    def central(step: float) -> list[np.ndarray]:
        ahead = f(*(_moved(x, d, step) for x, d in zip(at, along, strict=True)))
        behind = f(*(_moved(x, d, -step) for x, d in zip(at, along, strict=True)))
        pairs = zip(ahead, behind, strict=True)
        return [(_wide(a) - _wide(b)) / (2 * step) for a, b in pairs]

    row = [central(h)]
    best, error = row[0], np.inf
    for level in range(1, LEVELS):
        last, row = row, [central(h / 2**level)]
        for k in range(1, level + 1):
            pairs = zip(row[k - 1], last[k - 1], strict=True)
            row.append([a + (a - b) / (4**k - 1) for a, b in pairs])
            spread = max(_distance(row[k], row[k - 1]), _distance(row[k], last[k - 1]))
            if spread <= error:
                best, error = row[k], spread
    return best


def _moved(x: np.ndarray, d: np.ndarray, step: float) -> Any:
    moved = x + step * d
    return moved if moved.ndim else moved.item()


def _distance(a: Iterable[np.ndarray], b: Iterable[np.ndarray]) -> float:
    return max(
        [0.0, *(float(np.max(np.abs(x - y), initial=0.0)) for x, y in zip(a, b, strict=True))]
    )


def _row(
    order: int, mode: str, found: Any, expected: Any, allowed: tuple[float, float]
) -> Deviation:
    """The worst element: the largest deviation measured in what is allowed there."""
    atol, rtol = allowed
    worst, ratio = Deviation(order, mode, 0.0, atol), -1.0
    for a, b in zip(found, expected, strict=True):
        gaps, sizes = np.ravel(np.abs(_wide(a) - _wide(b))), np.ravel(np.abs(_wide(b)))
        for gap, size in zip(gaps.tolist(), sizes.tolist(), strict=True):
            limit = atol + rtol * size
            measured = gap / limit if limit else math.inf * gap if gap else 0.0
            if not measured <= ratio:
                worst, ratio = Deviation(order, mode, gap, limit), measured
    return worst


# --- where a NaN was born -------------------------------------------------------------------


@dataclass(frozen=True)
class Birth:
    """Where a NaN or an infinity came to be: the operation, the line, and the numbers.

    `kind` is "value" for one that appeared in the function itself, else "gradient". `operands` are
    the differentiated arguments of the operation, `partial` is None where it is not one number.
    """

    kind: str
    operation: str
    line: str
    at: tuple[int, ...]
    operands: tuple[Any, ...]
    partial: Any
    cotangent: Any
    result: Any

    def __str__(self) -> str:
        place = f" at [{', '.join(map(str, self.at))}]" if self.at else ""
        line = f" at {self.line}" if self.line else ""
        names = [f"{n} is {_number(v)}" for n, v in zip("xwuvz", self.operands, strict=False)]
        given = f", {' and '.join(names)}" if names else ""
        if self.kind == "value":
            return f"{self.operation}{line}\n    the value{place} is {_number(self.result)}{given}"
        if self.partial is None:
            sent = f"the cotangent {_number(self.cotangent)} becomes {_number(self.result)}"
            return f"{self.operation}{line}\n    {sent}{place}{given}"
        product = f"{_number(self.cotangent)} * {_number(self.partial)} = {_number(self.result)}"
        why = f" because {' and '.join(names)}" if names else ""
        partial = f"the partial{place} is {_number(self.partial)}{why}"
        cotangent = f"cotangent {_number(self.cotangent)}"
        return f"{self.operation}{line}\n    {partial}; {cotangent}; {product}"


@dataclass(frozen=True)
class NanReport:
    """What `explain_nan` found: where each NaN or infinity was born, and which leaves it reached.

    It is true where there is one.
    """

    births: tuple[Birth, ...]
    leaves: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.births or self.leaves)

    def __str__(self) -> str:
        if not self:
            return "no NaN or infinity in the value or in the gradient"
        words = {"value": "in the value, born in", "gradient": "in the gradient of {}, born in"}
        lines = []
        for kind, births in groupby(self.births, key=lambda birth: birth.kind):
            lines.append("a NaN or infinity " + words[kind].format(", ".join(self.leaves)))
            lines += [f"  {birth}" for birth in births]
        return "\n".join(lines) or f"a NaN or infinity in {', '.join(self.leaves)}"

    __repr__ = __str__


class Lines(list[Any]):
    """A tape that knows the user's line of every entry, and the name of its operation."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def append(self, entry: object) -> None:
        """One more entry, recorded by the user's code that runs now."""
        super().append(entry)
        frame = sys._getframe(1)
        where = user_frame(frame)
        line = ""
        if where is not None:
            code = where.f_code
            line = describe_line(code.co_filename, where.f_lineno, code.co_name)
        self.lines.append((_operation(entry, frame), line))


_NAMES = {f"__{r}{stem}__": name for name, stem in OPERATORS.items() for r in ("", "r")}
_NAMES |= {"__neg__": "negative", "__abs__": "abs"}


def _operation(entry: object, frame: Any) -> str:
    """The operation that pushes an entry: a generated method has its name, `careful` is told it."""
    if isinstance(entry, Entry):
        return str(entry.name)
    name = frame.f_code.co_name
    name = str(frame.f_locals["name"] if name == "careful" else name)
    short = name.removeprefix("math_").removeprefix("np_")
    return _NAMES.get(name, short)


def explain_nan(f: Callable[..., Any], *x: Any) -> NanReport:
    """Where the NaN or infinity in the value or the gradient of f at x was born.

    f runs once more, with the user's line recorded beside every operation; the report names the
    operation, the line, the operands, the partial and the cotangent that arrived. Zeros of lanes
    that `where`, a maximum or an index do not select are no cause: they stay zero.

    >>> import numpy as np
    >>> def loss(x):
    ...     return np.sum(np.sqrt(x) ** 2)
    >>> report = explain_nan(loss, np.array([4.0, 0.0]))
    >>> report.births[0].operation, report.births[0].partial, report.births[0].cotangent
    ('sqrt', inf, 0.0)
    >>> explain_nan(loss, np.array([4.0, 1.0]))
    no NaN or infinity in the value or in the gradient
    """
    with open_level() as level, np.errstate(all="ignore"):
        level.start(tape := Lines())
        leaves = Leaves(level, x, method)
        lifted = lift_args(x, range(len(x)), leaves)
        results = flatten(seen(f)(*lifted))[0]
        births, reached = _sweep(level, results, leaves)
        born = _values(tape) if any(map(_is_bad, results)) else []
        born += [_constant(r) for r in results if not isinstance(r, Traced) and _is_bad(r)]
        return NanReport((*born, *births), _names(x, leaves, reached, lifted))


def _values(tape: Lines) -> list[Birth]:
    """Operations whose value is not finite though their operands are; the first of them."""
    for entry, (name, line) in zip(tape, tape.lines, strict=True):
        out, parents = _edges(entry)
        if _is_bad(out) and not any(map(_is_bad, parents)):
            v = np.asarray(plain(out))
            at = _first_bad(v)
            operands = tuple([_lane(plain(p), at, v.shape) for p in parents])
            return [Birth("value", name, line, at, operands, None, None, v[at].item())]
    return []


def _constant(result: object) -> Birth:
    """A result that does not depend on the arguments."""
    v = np.asarray(result)
    at = _first_bad(v)
    return Birth("value", "a constant that f returns", "", at, (), None, None, v[at].item())


def _edges(entry: Any) -> tuple[Any, list[Any]]:
    if isinstance(entry, Entry):
        return entry.out, list(entry.parents)
    return entry, [p for p in (entry.a, entry.b) if p is not None]


Origins = dict[int, set[int]]


def _sweep(level: Level, results: list[Any], leaves: Leaves) -> tuple[list[Birth], list[Any]]:
    """The reverse sweep, entry by entry: births that reach a leaf, and the leaves they reach."""
    births_so_far: list[Birth] = []
    origins: Origins = {}  # by node: the births whose numbers have arrived there
    tape: Any = level.tape
    with deeper() as depth:
        for r in results:
            n = r.now() if isinstance(r, Traced) else r
            if isinstance(n, Traced) and n.level is level:
                add(n, Masked(np.ones(n.shape)[()] if n.shape else 1.0, None, depth))
        for entry, (name, line) in zip(reversed(tape), reversed(tape.lines), strict=True):
            _step(entry, name, line, births_so_far, origins)
        reached = [n for n in leaves.nodes if _has_bad(arrived(n))]
    births = sorted(set().union(*[_collected(n, origins) for n in reached]))
    return [births_so_far[i] for i in births], reached


def _step(entry: Any, name: str, line: str, births_so_far: list[Birth], origins: Origins) -> None:
    """One entry hands its cotangent on; what is born here is noted."""
    out, parents = _edges(entry)
    g = arrived(out)
    earlier = _collected(out, origins)
    clear(out, last=False)
    if g is None:
        return
    if isinstance(entry, Entry):
        gives = list(zip(parents, entry.joint.back(g), [None] * len(parents), strict=True))
    else:
        weights = [d for d in (entry.d, entry.e if entry.b is not None else None) if d is not None]
        gives = [(p, g if d is ONE else g * d, d) for p, d in zip(parents, weights, strict=True)]
    for p, c, d in gives:
        if c is None:
            continue
        if _has_bad(c):
            mine = set(earlier)
            if not _has_bad(g):
                mine = {len(births_so_far)}
                births_so_far.append(_birth(name, line, out, parents, parents.index(p), (g, c, d)))
            origins.setdefault(id(p), set()).update(mine)
        add(p, c)


def _collected(n: Traced, origins: Origins) -> set[int]:
    """The births that arrived at a node or at what was read of it."""
    mine = origins.get(id(n), set())
    if isinstance(n, Array) and type(n.k) is Reads:
        mine = mine.union(*[origins.get(id(o), set()) for o in (*n.k.nodes, *n.k.views)])
    return mine


def _birth(
    name: str, line: str, out: Array, parents: list[Any], place: int, numbers: tuple[Any, Any, Any]
) -> Birth:
    """The birth in an operation, at its first lane that is not finite."""
    g, c, d = (None if v is None else np.asarray(plain(unmasked(_content(v)))) for v in numbers)
    assert g is not None, "a birth needs a cotangent"
    assert c is not None, "a birth is a contribution"
    if d is None:
        d = _weight(name, out, parents, place)
    at = _first_bad(c)
    operands = tuple([_lane(plain(p), at, c.shape) for p in parents])
    partial = None if d is None else _lane(d, at, c.shape)
    cotangent = _lane(g, at, c.shape)
    return Birth("gradient", name, line, at, operands, partial, cotangent, c[at].item())


def _weight(name: str, out: object, parents: list[Any], place: int) -> Any:
    """The partial of an elementwise operation all of whose arguments are differentiated."""
    primitive = registry.primitives.get(name)
    if not isinstance(primitive, Elementwise) or primitive.arity != len(parents):
        return None
    values = [np.asarray(plain(p)) for p in parents]
    if any(v.dtype.kind != "f" for v in values):
        return None
    return np.asarray(primitive.weights[place](np.asarray(plain(out)), *values))


def _content(c: Value) -> Any:
    if type(c) is Own:
        return c.finish()
    return c.x_bar if type(c) is Piece else c.u if isinstance(c, Outer) else c


def _lane(value: Shaped, at: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The number of a lane, or the value where its lanes are others."""
    value = np.asarray(value)
    if not value.shape:
        return value.item()
    return value[at].item() if value.shape == shape else value


def _number(value: Shaped) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    return np.array2string(value, threshold=6, edgeitems=2, separator=", ").replace("\n", "")


def _first_bad(v: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(np.argmin(np.isfinite(v)), v.shape))


def _is_bad(node: Scalar) -> bool:
    """Whether a value is not finite somewhere."""
    return not _is_finite(plain(node))


def _has_bad(c: Any) -> bool:
    """Whether a contribution to a cotangent is not finite somewhere."""
    return c is not None and not _is_finite(plain(unmasked(_content(c))))


def _is_finite(v: Value) -> bool:
    v = np.asarray(v)
    return v.dtype.kind not in "fc" or bool(np.all(np.isfinite(v)))


def _names(
    args: tuple[Any, ...], leaves: Leaves, reached: list[Any], lifted: list[Any]
) -> tuple[str, ...]:
    """The paths of the leaves that a NaN or infinity has reached."""
    if len(args) == 1 and isinstance(lifted[0], Traced):
        return ("args[0]",) * bool(reached)
    nodes = [n for n in flatten(list(lifted))[0] if isinstance(n, Traced)]
    paths = dict(zip(map(id, nodes), leaf_paths(list(lifted), root="args"), strict=False))
    return tuple([paths.get(id(n), "an argument") for n in reached])

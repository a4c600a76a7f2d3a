"""Points: values whose tangents and cotangents have types of their own.

A *manifold* says how the program sees a point while it moves, `lifted(p, v)` with coordinates v,
and in which types tangents and cotangents are written.  Three kinds are known: those that a user
declares on a class (lineara.geometry), moments and spans of time, and quantities with units.
Coordinates are numbers or containers of numbers; the linear map sees nothing else.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from lineara.containers.foreign_arrays import ForeignArrays, is_foreign
from lineara.errors import GeometryError, StructureError
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.types import show_type
from lineara.linear_map import Space
from lineara.trees import map_leaves
from lineara.trees.kinds import Kind, RecordKind, kind_of, own_kind

ATTRIBUTE = "__lineara_manifold__"  # where a class keeps what was declared of it
MANIFOLDS: dict[type, Callable[[Any], Any]] = {}  # for Python's own classes: value -> manifold


def manifold_of(x: Value) -> Any:
    """The manifold that a value is a point of; None for numbers, arrays and plain containers."""
    cls = type(x)
    if cls is float or cls is np.ndarray:
        return None
    manifold = getattr(cls, ATTRIBUTE, None)
    if manifold is not None:
        return manifold
    if cls in MANIFOLDS:
        return MANIFOLDS[cls](x)
    if issubclass(cls, datetime):
        return MOMENTS
    if issubclass(cls, timedelta):
        return SPANS
    if is_foreign(cls):
        return ForeignArrays.of(x)
    return QUANTITIES if is_quantity(x) else None


def is_point(x: Any) -> bool:
    """Whether a value is a point, and so one leaf of what is differentiated."""
    return manifold_of(x) is not None


def is_quantity(x: Value) -> bool:
    """Whether a value is a number or an array with a unit, as pint makes them."""
    cls = type(x)
    return hasattr(cls, "magnitude") and hasattr(cls, "units")


def without_unit(x: Any) -> tuple[Any, Any]:
    """The number in a quantity and its unit, None for any other; without labels, if it had some."""
    if is_quantity(x):
        return x.magnitude, x.units
    return (MANIFOLDS[type(x)](x).number(x) if is_labelled(x) else x), None


def is_labelled(x: Tree) -> bool:
    """Whether a value is an array with labels (labels/frames), which answers operations itself."""
    return hasattr(MANIFOLDS.get(type(x)), "columns")


def operated(act: Callable[[Any, Any], Any], p: object, q: Tree) -> Any:
    """act(p, q) where one is a labelled array that leaves it to us; else NotImplemented."""
    for x in (p, q):
        labelled: Any = MANIFOLDS[type(x)](x) if is_labelled(x) else None
        if hasattr(labelled, "operated"):
            return labelled.operated(act, p, q)
    return NotImplemented


def release_within(x: Any, release: Callable[[Any], Any]) -> Any:
    """A quantity, moment or span with `release` of the number in it; anything else as it is."""
    if type(x) is Moment or type(x) is Span:
        return x.released(release)
    if is_quantity(x):
        return type(x)(release(x.magnitude), x.units)
    points = manifold_of(x)
    return points.released(x, release) if hasattr(points, "released") else x


def answers_itself(x: Leaf) -> bool:
    """Whether `traced * x` is for the class of x to answer: containers, points, nothing at all."""
    return x is None or isinstance(x, str | bytes) or kind_of(type(x)) is not None or is_point(x)


def lifts_whole(cls: type) -> bool:
    """Whether the points of a class are lifted as a whole, and not leaf by leaf."""
    manifold = getattr(cls, ATTRIBUTE, None)
    return manifold is not None and manifold.is_whole


# --- vectors in the declared types --------------------------------------------------------------


def recast(cls: Any, tree: Shaped) -> Any:
    """The components of `tree` as a `cls`: field by field, or else in order."""
    kind, into = kind_of(type(tree)), kind_of(cls) if isinstance(cls, type) else None
    if cls is None or type(tree) is cls or (kind and into and kind.cls is into.cls):
        return tree
    keys = [] if kind is None else kind.keys(tree)
    children = [tree] if kind is None else kind.children(tree, keys)
    if into is None and isinstance(cls, type):
        if len(children) != 1:
            raise _misfit(cls.__name__, 1, tree, len(children))
        is_numpy = cls in (float, complex) and isinstance(children[0], np.generic)
        return children[0].item() if is_numpy else children[0]
    names = into.known if isinstance(into, RecordKind) else getattr(into, "fields", ())
    if into is None or not names:
        return cls(*children)
    matched = _matched(names, keys, children)
    if matched is None:
        raise _misfit(cls.__name__, len(names), tree, len(children))
    return into.make((), names, matched)


def _matched(names: tuple[Any, ...], keys: list[Any], children: list[Any]) -> list[Any] | None:
    by_name = dict(zip(keys, children, strict=False))
    if all(name in by_name for name in names):
        return [by_name[name] for name in names]
    return children if len(names) == len(children) else None


def _misfit(name: str, wanted: int, tree: Tree, found: int) -> GeometryError:
    return GeometryError(
        f"manifold: a {name} has {wanted} component{'s' * (wanted != 1)}, but the vectors at a "
        f"{type(tree).__name__} have {found}; declare a class with the same field names, or as many"
    )


def recast_like(entry: Any, vector: Value) -> Any:
    """The inverse of `recast`: the container `entry` of a structure, or a leaf; missing is zero."""
    kind = kind_of(type(vector))
    if entry is not None and kind is not None and kind.cls is entry.kind.cls:
        return vector
    keys = [] if kind is None else kind.keys(vector)
    children = [vector] if kind is None else kind.children(vector, keys)
    if entry is None:
        return children[0] if len(children) == 1 else vector
    by_name = dict(zip(keys, children, strict=False))
    if by_name and by_name.keys() <= set(entry.keys):
        parts = [by_name.get(key, 0.0) for key in entry.keys]
    elif len(children) == len(entry.keys):
        parts = children
    else:
        raise StructureError(
            f"a {type(vector).__name__} has {len(children)} components, but the point has "
            f"{len(entry.keys)}"
        )
    return entry.kind.make(entry.aux, entry.keys, parts)


@dataclass(frozen=True)
class Chart:
    """The vectors at one point: leaves of coordinates inside, the declared type outside."""

    manifold: Any
    space: Space  # of the coordinates
    unit: Any = None  # of the vectors, and of the covectors
    counit: Any = None
    dual: bool = False

    @property
    def width(self) -> int:
        """The number of leaves."""
        return len(self.space.types)

    def opposite(self) -> "Chart":
        """The chart of the covectors, for vectors; and back."""
        space, dual = self.space.dual, not self.dual
        return replace(self, space=space, dual=dual, unit=self.counit, counit=self.unit)

    def make(self, leaves: list[Any]) -> Any:
        """The vector with those leaves."""
        return self.manifold.vector(self.space.tree(leaves), self)

    def read(self, vector: Tree, asked: str) -> list[Any]:
        """The leaves of a vector."""
        return self.space.leaves(self.manifold.components(vector, self, asked), asked)

    @property
    def word(self) -> str:
        """What an error calls the vectors."""
        return "cotangent" if self.dual else "tangent"


# --- manifolds that users declare ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Manifold:
    """What `lineara.manifold` declares.

    Without `retract` a point is a container, its leaves are the coordinates, and it is lifted leaf
    by leaf.  With it the coordinates are those of the tangent at p, which is zero at p.
    """

    point: type
    tangent: Any
    cotangent: Any
    retract: Callable[[Any, Any], Any] | None = None
    diff: Callable[[Any, Any], Any] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether a point is lifted as a whole."""
        return self.retract is not None or self.tangent is None

    def coordinates(self, p: Any) -> Any:
        """The zero tangent at p; or p itself, seen as a container."""
        if self.tangent is None:
            return ()
        if self.retract is None:
            return p
        return self.zero(p) if self.diff is None else self.diff(p, p)

    def zero(self, p: Value) -> Any:
        """The zero tangent, where the tangent has the fields of the point."""
        return recast(self.tangent, map_leaves(lambda x: x * 0, p))

    def lifted(self, p: Tree, v: Tree) -> Any:
        """The point as the program sees it, moved by v."""
        if self.retract is None:
            return p if self.tangent is None else v
        return self.retract(p, v)

    def outgoing(self, r: Tree, still: object) -> Any:
        """The coordinates of the result r, near the point `still` which is its value."""
        if not self.retract or not self.tangent:
            return self.coordinates(r)
        if self.diff is not None:
            return self.diff(r, still)
        raise GeometryError(
            f"the function returned a {self.point.__name__}, whose tangent is a difference of "
            f"points; declare manifold({self.point.__name__}, ..., diff=...)"
        )

    def vector(self, tree: Shaped, chart: Chart) -> Any:
        """Coordinates as a vector of the declared type."""
        return self.covector(None, tree, None) if chart.dual else recast(self.tangent, tree)

    def covector(self, p: Tree, tree: Shaped, unit: Any) -> Any:
        """Coordinates as a cotangent of the declared type: a gradient with respect to p."""
        del unit
        return p if self.tangent is None else recast(self.cotangent, tree)

    def components(self, vector: Any, chart: Chart, asked: str) -> Any:
        """The coordinates of a vector."""
        if self.tangent is None:
            return ()
        self.check(vector, chart.word, asked)
        return recast_like(chart.space.structure.entries[-1], vector)

    def check(self, x: Shaped, word: str, asked: str) -> None:
        """Refuse a point, a tangent or a cotangent where another of the three is wanted."""
        wanted = getattr(self, word)
        if isinstance(wanted, type) and isinstance(x, wanted):
            return
        if any(_is_own(c) and (c is wanted or isinstance(x, c)) for c in self._classes):
            whose = "a point" if word == "point" else f"a {word} at a {self.point.__name__}"
            hint = "; a metric turns a gradient into a tangent: lineara.Metric.L2(gradient)"
            raise GeometryError(
                f"{asked}: {whose} is a {getattr(wanted, '__name__', wanted)}, but was given "
                f"{show_type(x)}{hint if word == 'tangent' and self.is_gradient(x) else ''}"
            )

    def is_gradient(self, x: Tree) -> bool:
        """Whether x is of the class of cotangents, and that one is the user's."""
        return _is_own(self.cotangent) and isinstance(x, self.cotangent)

    @property
    def _classes(self) -> tuple[Any, Any, Any]:
        return self.point, self.tangent, self.cotangent


def _is_own(cls: type) -> bool:
    return isinstance(cls, type) and own_kind(cls) is not None


def declared(kind: Kind) -> Manifold | None:
    """The manifold of containers that are points and are lifted leaf by leaf."""
    manifold = getattr(kind.cls, ATTRIBUTE, None)
    return None if manifold is None or manifold.is_whole else manifold


# --- quantities with units ----------------------------------------------------------------------


class Quantities:
    """Quantities (pint's): the magnitude is the coordinate, the library itself reckons the units.

    A tangent has the unit of the point.  A cotangent has the unit of the result over that of the
    point; where results of several units leave a function, the cotangents given back to them must
    have the inverse units.
    """

    is_whole = True
    point: type | None = None

    def coordinates(self, p: Any) -> Any:
        """The magnitude."""
        return p.magnitude

    def lifted(self, p: Any, v: Value) -> Any:
        """A quantity whose magnitude is traced."""
        return type(p)(v, p.units)

    def outgoing(self, r: Any, still: object) -> Any:
        """The magnitude of a result."""
        del still
        return r.magnitude

    def vector(self, tree: Any, chart: Chart) -> Any:
        """The number with the unit of the vectors; a row of a Jacobian has a unit already."""
        if is_quantity(tree):
            return tree / chart.counit
        return type(1 * chart.unit)(tree, chart.unit)

    def covector(self, p: Any, tree: Value, unit: object) -> Any:
        """A gradient: the unit of the result over the unit of p."""
        return type(p)(tree, _over(unit, p.units))

    def components(self, vector: Any, chart: Chart, asked: str) -> Any:
        """The magnitude of a vector in its unit."""
        if is_quantity(vector):
            if vector.check(chart.unit.dimensionality):
                return vector.m_as(chart.unit)
            found = f"{vector.units:~}"
        elif chart.unit.dimensionless:
            return vector
        else:
            found = "no unit"
        raise GeometryError(
            f"{asked}: the {chart.word} has {found or 'no unit'}, but {chart.unit} would fit"
        )


def _over(unit: object, other: Any) -> Any:
    return other**-1 if unit is None else unit / other


def with_units(domain: Space, codomain: Space) -> tuple[Space, Space]:
    """The spaces, knowing the units of their cotangents.

    If all results have one unit, cotangents of them may be plain numbers, and those of the
    arguments are in that unit over their own.
    """
    if not (domain.charts or codomain.charts):
        return domain, codomain
    units = [None if c is None else c.unit for c in codomain.charts]
    common = units[0] if units and all(u == units[0] for u in units) else None
    return _with_counits(domain, common), _with_counits(codomain, common)


def _with_counits(space: Space, common: object) -> Space:
    if not any(space.charts):
        return space
    charts = []
    for c in space.charts:
        if c is not None:
            counit = None if c.unit is None else _over(common, c.unit)
            c = replace(c, space=_with_counits(c.space, common), counit=counit)
        charts.append(c)
    return replace(space, charts=tuple(charts))


# --- time ---------------------------------------------------------------------------------------


class Span:
    """A timedelta that moves: a traced number of seconds."""

    __lineara_leaf__ = True
    __slots__ = ("_seconds",)

    def __init__(self, seconds: Value) -> None:
        self._seconds = seconds

    __class__ = property(lambda self: timedelta)  # type: ignore[assignment]  # for isinstance

    def total_seconds(self) -> Any:
        """The seconds, traced."""
        return self._seconds

    def released(self, release: Callable[[Any], Any]) -> Any:
        """The span without a level; a plain timedelta when none is left."""
        seconds = release(self._seconds)
        return timedelta(seconds=seconds) if isinstance(seconds, float) else Span(seconds)

    def __add__(self, other: object) -> Any:
        if isinstance(other, datetime):
            return Moment.of(other) + self
        return _span(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return _span(operator.sub, self, other)

    def __rsub__(self, other: object) -> Any:
        if isinstance(other, datetime):
            return Moment.of(other) - self
        return _span(operator.sub, other, self)

    def __mul__(self, c: Value) -> Any:
        return Span(self._seconds * c)

    __rmul__ = __mul__

    def __truediv__(self, other: timedelta) -> Any:
        if isinstance(other, timedelta):
            return self._seconds / other.total_seconds()
        return Span(self._seconds / other)

    def __rtruediv__(self, other: timedelta) -> Any:
        return other.total_seconds() / self._seconds

    def __neg__(self) -> Any:
        return Span(-self._seconds)

    def __abs__(self) -> Any:
        return Span(abs(self._seconds))

    def __getattr__(self, name: str) -> Any:
        return getattr(timedelta(seconds=_float(self._seconds)), name)  # locally constant

    def __repr__(self) -> str:
        return f"traced({timedelta(seconds=_float(self._seconds))!r})"


class Moment:
    """A datetime that moves: a plain one, and a traced number of seconds from there."""

    __lineara_leaf__ = True
    __slots__ = ("_origin", "_seconds")

    def __init__(self, origin: datetime, seconds: Value) -> None:
        self._origin = origin
        self._seconds = seconds

    __class__ = property(lambda self: datetime)  # type: ignore[assignment]  # for isinstance

    @staticmethod
    def of(x: Any) -> "Moment":
        """A datetime as a Moment."""
        return x if type(x) is Moment else Moment(x, 0.0)

    def released(self, release: Callable[[Any], Any]) -> Any:
        """The moment without a level; a plain datetime when none is left."""
        seconds = release(self._seconds)
        return self._at(seconds) if isinstance(seconds, float) else Moment(self._origin, seconds)

    def _at(self, seconds: float) -> datetime:
        return self._origin + timedelta(seconds=seconds)

    def __add__(self, other: "Moment | Span") -> Any:
        if isinstance(other, datetime):
            raise GeometryError(
                "two moments cannot be added; their difference is a timedelta, which can be"
            )
        if not isinstance(other, timedelta):
            return NotImplemented
        return Moment(self._origin, self._seconds + other.total_seconds())

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        if isinstance(other, timedelta):
            return Moment(self._origin, self._seconds - other.total_seconds())
        if not isinstance(other, datetime):
            return NotImplemented
        other = Moment.of(other)
        gap = (self._origin - other._origin).total_seconds()
        return Span(self._seconds - other._seconds + gap)

    def __rsub__(self, other: object) -> Any:
        return Moment.of(other) - self

    def timestamp(self) -> Any:
        """Seconds since 1970, traced."""
        return self._origin.timestamp() + self._seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._at(_float(self._seconds)), name)  # locally constant

    def __repr__(self) -> str:
        return f"traced({self._at(_float(self._seconds))!r})"


def _span(act: Callable[[Any, Any], Any], a: object, b: object) -> Any:
    if not (isinstance(a, timedelta) and isinstance(b, timedelta)):
        return NotImplemented
    return Span(act(a.total_seconds(), b.total_seconds()))


def _float(x: Any) -> float:
    while hasattr(x, "v"):
        x = x.v
    return float(x)


def _compared(name: str) -> Callable[[Any, Any], Any]:
    act = getattr(operator, name)

    def method(self: Any, other: object) -> Any:
        if isinstance(other, datetime) and isinstance(self, datetime):
            return act((Moment.of(self) - other).total_seconds(), 0.0)
        if isinstance(other, timedelta) and isinstance(self, timedelta):
            return act(self.total_seconds(), other.total_seconds())
        return NotImplemented

    return method


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    for _cls in (Span, Moment):
        setattr(_cls, f"__{_name}__", _compared(_name))


class Times:
    """Moments move by spans, spans by seconds; a cotangent is a number, per second."""

    is_whole = True

    def __init__(self, point: type) -> None:
        self.point = point

    def coordinates(self, p: Any) -> Any:
        """Seconds: of a moment, from there."""
        return 0.0 if self.point is datetime else p.total_seconds()

    def lifted(self, p: Any, v: Value) -> Any:
        """What stands for p in the program."""
        if self.point is timedelta:
            return Span(v)
        return Moment(p._origin, p._seconds + v) if type(p) is Moment else Moment(p, v)

    def outgoing(self, r: Any, still: datetime) -> Any:
        """Seconds of a result."""
        del still
        return r.total_seconds() if self.point is timedelta else Moment.of(r)._seconds

    def vector(self, tree: float, chart: Chart) -> Any:
        """A timedelta, or seconds to the power -1."""
        return timedelta(seconds=tree) if isinstance(tree, float) and not chart.dual else tree

    def covector(self, p: object, tree: float, unit: Any) -> Any:
        """A gradient, per second."""
        del p, unit
        return tree

    def components(self, vector: Any, chart: Chart, asked: str) -> Any:
        """Seconds of a timedelta."""
        if isinstance(vector, timedelta) == chart.dual:
            want = "number, per second" if chart.dual else "timedelta"
            raise GeometryError(
                f"{asked}: a {chart.word} at a {self.point.__name__} is a {want}, but was given "
                f"{show_type(vector)}"
            )
        return vector if chart.dual else vector.total_seconds()


MOMENTS, SPANS, QUANTITIES = Times(datetime), Times(timedelta), Quantities()
setattr(Moment, ATTRIBUTE, MOMENTS)
setattr(Span, ATTRIBUTE, SPANS)

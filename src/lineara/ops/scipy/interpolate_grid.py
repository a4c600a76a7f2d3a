"""interp1d and RegularGridInterpolator; differentiable in values and points."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.eigen import has_values
from lineara.ops.index import index, take
from lineara.ops.scipy.bsplines import on_grid, tensor_splines, through
from lineara.ops.scipy.interpolate_1d import Pieces, any_box, cubic_spline, linear, of_plain
from lineara.ops.shape import as_array, real_only

_DEGREE: dict[Any, Any] = {"zero": 0, "quadratic": 2}
_SPLINES = {"slinear": 1, "cubic": 3, "quintic": 5}
_STEPS = ("nearest", "nearest-up", "previous", "next")


class _Line:
    """The interpolant of interp1d: polynomials, or one value for each piece."""

    def __init__(self, x: Any, y: Any, kind: int | str, axis: int, sort: bool) -> None:
        x, y = as_array(x), as_array(y)
        if sort:
            order = np.argsort(x)
            x, y = x[order], np.take(y, order, axis=axis)
        self.x, self.y, self.kind = x, y, kind
        self.axis = axis % type_of(y).ndim
        if kind in ("linear", "slinear", 1):
            self.pieces = linear(x, y, True, axis)
        elif kind in ("cubic", 3):
            self.pieces = cubic_spline(x, y, axis)
        elif kind in _DEGREE or type(kind) is int:
            self.pieces = through(x, y, _DEGREE.get(kind, kind), None, axis)
        elif kind not in _STEPS:
            raise NoRuleError(
                f"interp1d: kind={kind!r} has no rule; the degree of a spline, 'zero', 'slinear', "
                "'linear', 'quadratic', 'cubic', 'nearest', 'nearest-up', 'previous' and 'next' "
                "have one"
            )

    def inside(self, t: Any) -> Any:
        """The values at points t, extrapolated outside of the breaks."""
        if self.kind not in _STEPS:
            return self.pieces(t)
        n = type_of(self.x).shape[0]
        if self.kind in ("previous", "next"):
            side, shift = ("right", -1) if self.kind == "previous" else ("left", 0)
            at = np.clip(np.searchsorted(self.x, t, side=side) + shift, 0, n - 1)
        else:
            side = "left" if self.kind == "nearest" else "right"
            at = np.searchsorted(self.x[1:] / 2.0 + self.x[:-1] / 2.0, t, side=side)
        y = np.moveaxis(self.y, self.axis, 0)
        y = y if type_of(y).dtype.kind in "fc" else y * 1.0
        return Pieces(y[None], np.arange(n + 1.0), True, self.axis)(at + 0.5)


def seen(condition: object) -> bool:
    """Whether a condition is known to be true; in a program, where it is not known, False."""
    return has_values(condition) and bool(condition)


def _beside(fill: Shaped, line: _Line, t: Shaped) -> Any:
    """A fill value broadcast to the shape of the values at points t."""
    shape, axis = type_of(line.y).shape, line.axis
    before, after = shape[:axis], shape[axis + 1 :]
    if not type_of(fill).ndim or not before + after:
        return np.reshape(fill, ())
    ones = (1,) * type_of(t).ndim
    return np.reshape(np.broadcast_to(fill, before + after), (*before, *ones, *after))


def _methods_of_line(base: type) -> dict[str, Any]:
    def init(
        self: Any,
        x: Shaped,
        y: Shaped,
        kind: int | str = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        if not any_box((x, y, fill_value)):
            plain = base(x, y, kind, axis, copy, bounds_error, fill_value, assume_sorted)
            return take(self, plain)
        self.line = _Line(x, y, kind, axis, not assume_sorted)
        extrapolate = isinstance(fill_value, str)
        pair = isinstance(fill_value, tuple) and len(fill_value) == 2
        low, high = fill_value if pair else (fill_value, fill_value)
        nan = not extrapolate and not pair and fill_value is np.nan
        refuses = (nan if bounds_error is None else bounds_error) and not extrapolate
        if bounds_error is None and not extrapolate and not nan:
            refuses = True
        self.outside = None if extrapolate else (low, high, refuses)

    def take(self: Any, plain: Any) -> None:
        kind = plain._kind
        if kind == "spline":
            line = object.__new__(_Line)
            line.x, line.y, line.kind, line.axis = plain.x, plain.y, kind, plain.axis
            pieces = of_plain(plain._spline)
            c = pieces.c
            shape = plain.y.shape[: plain.axis] + plain.y.shape[plain.axis + 1 :]
            line.pieces = Pieces(c.reshape(*c.shape[:2], *shape), pieces.x, True, plain.axis)
        else:
            line = _Line(plain.x, plain.y, kind, plain.axis, False)
        self.line = line
        bounds = (
            (plain._fill_value_below, plain._fill_value_above) if not plain._extrapolate else ()
        )
        self.outside = None if plain._extrapolate else (*bounds, plain.bounds_error)

    def call(self: Any, x: Shaped) -> Any:
        t, line = as_array(x), self.line
        real_only("interp1d", t)
        y = line.inside(t)
        if self.outside is None:
            return y
        low, high, refuses = self.outside
        below, above = t < line.x[0], t > line.x[-1]
        if refuses and seen(np.any(below)):
            raise ValueError("A value in x_new is below the interpolation range.")
        if refuses and seen(np.any(above)):
            raise ValueError("A value in x_new is above the interpolation range.")
        shape = (*(1,) * line.axis, *type_of(t).shape)
        rest = type_of(y).ndim - len(shape)
        wide = lambda m: np.reshape(m, (*shape, *(1,) * rest))  # noqa: E731
        inside = type_of(y).dtype
        y = np.where(wide(below), _beside(low, line, t), y)
        y = np.where(wide(above), _beside(high, line, t), y)
        wider = type_of(y).dtype != inside and type_of(y).dtype.kind == inside.kind
        return op("astype")(y, dtype=inside) if wider else y  # in the values' precision

    def of(plain: object) -> Any:
        cls: Any = registry.foreign[base].ours
        interpolator = object.__new__(cls)
        take(interpolator, plain)
        return interpolator

    fields = {
        name: property(lambda self, name=name: getattr(self.line, name))
        for name in ("x", "y", "axis")
    }
    return {"__init__": init, "__call__": call, "of": staticmethod(of)} | fields


# --- grids --------------------------------------------------------------------------------------


class _Table(NamedTuple):
    """The data of a RegularGridInterpolator; `plain` is SciPy's object if nothing is traced."""

    grid: tuple[Any, ...]
    values: Any
    method: str
    bounds_error: bool
    fill_value: Any
    plain: Any = None


_SEEN = _Table._fields[:-1]


def _coordinates(xi: Any, dimensions: int) -> Any:
    """Points as an array (..., d)."""
    if isinstance(xi, tuple) and any(type_of(as_array(v)).ndim for v in xi):
        return np.stack(np.broadcast_arrays(*map(as_array, xi)), axis=-1)
    xi = as_array(list(xi) if isinstance(xi, tuple) else xi)
    if type_of(xi).ndim == 1:
        return xi[:, None] if dimensions == 1 else xi[None]
    return xi


def _on_grid(grid: tuple[Any, ...], values: Shaped, t: Shaped, method: str) -> Any:
    """Multilinear interpolation at points t, or the value of the nearest corner."""
    starts, weights = [], []
    for d, g in enumerate(grid):
        g = as_array(g)
        i = np.clip(np.searchsorted(g, t[..., d], side="right") - 1, 0, type_of(g).shape[0] - 2)
        starts.append(i)
        low, high = take(g, i, 0), take(g, i + 1, 0)
        weights.append((t[..., d] - low) / (high - low))
    if method == "nearest":
        nearest = tuple(i + (w > 0.5) for i, w in zip(starts, weights, strict=True))
        return index(as_array(values), at=nearest)
    rest, y = type_of(values).ndim - len(starts), 0.0
    for corner in itertools.product((0, 1), repeat=len(starts)):
        weight = 1.0
        for w, up in zip(weights, corner, strict=True):
            weight = weight * (w if up else 1.0 - w)
        at = tuple(i + up for i, up in zip(starts, corner, strict=True))
        weight = np.reshape(weight, (*type_of(weight).shape, *(1,) * rest))
        y = y + weight * index(as_array(values), at=at)
    return y


def _splines_of(table: _Table, method: str) -> tuple[list[Any], Any]:
    """(knots along each axis, coefficients).

    SciPy computes the coefficients to about six digits; those of its object are used if present.
    """
    spline = getattr(table.plain, "_spline", None)
    if spline is not None and method == table.method:
        return list(spline.t), spline.c
    return tensor_splines(table.grid, as_array(table.values), _SPLINES[method])


def _methods_of_grid(base: type) -> dict[str, Any]:
    def init(
        self: Any,
        points: tuple[Any, ...],
        values: Shaped,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: float | None = np.nan,
        **solver: Any,
    ) -> None:
        if not any_box((points, values, fill_value)):
            return take(self, base(points, values, method, bounds_error, fill_value, **solver))
        grid = tuple(map(as_array, points))
        self.table = _Table(grid, as_array(values), method, bounds_error, fill_value)

    def take(self: Any, plain: object) -> None:
        self.table = _Table(**{name: getattr(plain, name) for name in _SEEN}, plain=plain)

    def call(self: Any, xi: Shaped, method: str | None = None, *, nu: object = None) -> Any:
        table = self.table
        method = method or table.method
        if not any_box((xi,)) and table.plain is not None:
            return table.plain(xi, method, nu=nu)
        if method not in ("linear", "nearest", *_SPLINES) or nu is not None:
            raise NoRuleError(
                f"RegularGridInterpolator: method={method!r}{', nu=' * (nu is not None)} has no "
                "rule; 'linear', 'nearest', 'slinear', 'cubic' and 'quintic' have one, without nu"
            )
        t = _coordinates(xi, len(table.grid))
        real_only("RegularGridInterpolator", t)
        if method in _SPLINES:
            y = on_grid(_splines_of(table, method), t, _SPLINES[method])
        else:
            y = _on_grid(table.grid, table.values, t, method)
        ends = [(g[0], g[-1]) for g in table.grid]
        low, high = (np.stack([as_array(e[k]) for e in ends]) for k in (0, 1))
        outside = np.any((t < low) | (t > high), axis=-1)
        if table.bounds_error and seen(np.any(outside)):
            raise ValueError("One of the requested xi is out of bounds")
        fill = np.nan if table.bounds_error else table.fill_value
        if fill is None or (table.bounds_error and has_values(outside)):
            return y
        rest = type_of(y).ndim - type_of(outside).ndim
        outside = np.reshape(outside, (*type_of(outside).shape, *(1,) * rest))
        return np.where(outside, fill, y)

    def of(plain: object) -> Any:
        cls: Any = registry.foreign[base].ours
        interpolator = object.__new__(cls)
        take(interpolator, plain)
        return interpolator

    fields = {name: property(lambda self, name=name: getattr(self.table, name)) for name in _SEEN}
    return {"__init__": init, "__call__": call, "of": staticmethod(of)} | fields


def _declare(name: str, methods: Any) -> None:
    def declare(original: type) -> None:
        cls: Any = type(original.__name__, (original,), methods(original))
        registry.declare(original, kind="ours", ours=cls, of_object=cls.of)

    registry.await_(f"scipy.interpolate.{name}", declare)


_declare("interp1d", _methods_of_line)
_declare("RegularGridInterpolator", _methods_of_grid)


@implements("scipy.interpolate.interpn", always=True)
def interpn(points, values, xi, method="linear", bounds_error=True, fill_value=np.nan):
    """`RegularGridInterpolator` of the grid, called once."""
    from scipy.interpolate import RegularGridInterpolator

    ours: Any = registry.foreign[RegularGridInterpolator].ours
    return ours(points, values, method, bounds_error, fill_value)(xi)

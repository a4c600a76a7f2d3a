"""scipy.interpolate: piecewise polynomials; differentiable in values, breaks and points.

The stand-in for an interpolator of SciPy's is an instance of a subclass, which has a `Pieces`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Box, op, registry
from lineara.facts.types import type_of
from lineara.ops.eigen import has_values
from lineara.ops.index import take
from lineara.ops.scipy.matrix_functions import banded
from lineara.ops.shape import as_array, real_only


def under(h: Any, like: Shaped) -> Any:
    """h with unit axes appended to the rank of `like`, so that the two broadcast."""
    missing = type_of(like).ndim - type_of(h).ndim
    return h if missing <= 0 else np.reshape(h, (*type_of(h).shape, *(1,) * missing))


class Pieces(NamedTuple):
    """Polynomials between breaks: sum of c[j, i] (t - x[i])^(k-j) for x[i] <= t < x[i+1]."""

    c: Any  # (k+1, pieces, ...)
    x: Any  # (pieces + 1)
    extrapolate: Any  # True, False (NaN outside), "periodic"
    axis: int = 0  # the place of the points' axis among the axes of the values

    def __call__(self, t: Shaped, nu: int = 0, extrapolate: object = None) -> Any:
        """The values, or the derivatives of the order nu, at t."""
        t = as_array(t)
        real_only("scipy.interpolate", t)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        first, last = self.x[0], self.x[-1]
        if extrapolate == "periodic":
            t = first + (t - first) % (last - first)
        i = np.clip(np.searchsorted(self.x, t, side="right") - 1, 0, type_of(self.x).shape[0] - 2)
        order = type_of(self.c).shape[0] - 1
        h, y = t - take(as_array(self.x), i, 0), None
        for j in range(order + 1 - nu):
            c = take(as_array(self.c[j]), i, 0) * float(math.perm(order - j, nu))
            y = c if y is None else y * under(h, c) + c
        if y is None:
            y = take(as_array(self.c[0]), i, 0) * 0.0
        if not extrapolate:
            inside = (t >= first) & (t <= last)
            y = np.where(under(inside, y), y, np.nan)
        axes, rank = list(range(type_of(y).ndim)), type_of(t).ndim
        order_of_axes = (*axes[rank : rank + self.axis], *axes[:rank], *axes[rank + self.axis :])
        return y if not self.axis else np.transpose(y, order_of_axes)

    def derivative(self, nu: int = 1) -> "Pieces":
        """The pieces of the derivative; of a negative order, of the antiderivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        order = type_of(self.c).shape[0] - 1
        kept = range(max(order + 1 - nu, 1))
        factors = np.array([float(math.perm(order - j, nu)) for j in kept])
        return self._replace(c=self.c[: len(kept)] * under(factors, self.c))

    def antiderivative(self, nu: int = 1) -> "Pieces":
        """The pieces of the integral from the first break, nu times."""
        pieces = self
        for _ in range(nu):
            order = type_of(pieces.c).shape[0]
            c = pieces.c / under(np.arange(order, 0, -1.0), pieces.c)
            h, ends = np.diff(pieces.x), c[0] * 0.0
            for j in range(order):
                ends = (ends + c[j]) * under(h, c[j])
            start = np.concatenate([ends[:1] * 0.0, np.cumsum(ends, axis=0)[:-1]])
            periodic = pieces.extrapolate == "periodic"
            pieces = pieces._replace(
                c=np.concatenate([c, start[None]]),
                extrapolate=False if periodic else pieces.extrapolate,
            )
        return pieces

    def integrate(self, a: Shaped, b: Shaped, extrapolate: object = None) -> Any:
        """The integral from a to b."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            raise NoRuleError(
                "integrate: of a periodic interpolator it has no rule; integrate over each period "
                "with extrapolate=True"
            )
        whole = self._replace(extrapolate=extrapolate, axis=0).antiderivative()
        return whole(b) - whole(a)


# --- from values to polynomials -----------------------------------------------------------------


def hermite(x: Shaped, y: Shaped, slopes: Shaped, extrapolate: object, axis: int) -> Pieces:
    """The cubic pieces with values y and slopes at the breaks x, along the first axis."""
    h = under(np.diff(x), y)
    rise = np.diff(y, axis=0) / h
    bend = (slopes[:-1] + slopes[1:] - 2.0 * rise) / h
    c = [bend / h, (rise - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]]
    return Pieces(np.stack(c), x, extrapolate, axis)


def _rows(*parts: Any) -> Any:
    return np.concatenate([np.reshape(p, (1, *type_of(p).shape)) for p in parts])


def _cubic_slopes(x: Shaped, y: Shaped, bc: list[Any]) -> Any:
    """The slopes at the breaks that make the cubic spline twice continuously differentiable."""
    h = np.diff(x)
    n = type_of(x).shape[0]
    wide = under(h, y)
    rise = np.diff(y, axis=0) / wide
    if n == 2:
        bc = [(1, rise[0]) if b in ("not-a-knot", "periodic") else b for b in bc]
    if n == 3 and list(bc) == ["not-a-knot"] * 2:  # one parabola
        middle = (wide[1] * rise[0] + wide[0] * rise[1]) / (wide[0] + wide[1])
        return _rows(2.0 * rise[0] - middle, middle, 2.0 * rise[1] - middle)
    if "periodic" in bc:
        return _periodic_slopes(h, wide, rise)
    start = _end(bc[0], h, wide, rise, 1.0)
    stop = _end(bc[1], h[::-1], wide[::-1], rise[::-1], -1.0)
    inner = 3.0 * (wide[1:] * rise[:-1] + wide[:-1] * rise[1:])
    zero = np.zeros(1)
    above = [zero, start[1][None], h[:-1]]
    main = [start[0][None], 2.0 * (h[:-1] + h[1:]), stop[0][None]]
    below = [h[1:], stop[1][None], zero]
    ab = _rows(*(np.concatenate(d) for d in (above, main, below)))
    right = np.concatenate([start[2][None], inner, stop[2][None]])
    return np.reshape(banded(ab, np.reshape(right, (n, -1)), below=1), type_of(y).shape)


def _end(
    bc: str | tuple[Any, ...], h: Shaped, wide: Shaped, rise: Shaped, sign: float
) -> tuple[Any, Any, Any]:
    """The system's row for one end: two coefficients and the right side."""
    if isinstance(bc, str):  # not-a-knot: the third derivative is continuous at the second break
        d = wide[0] + wide[1]
        right = ((wide[0] + 2.0 * d) * wide[1] * rise[0] + wide[0] ** 2 * rise[1]) / d
        return h[1], h[0] + h[1], right
    order, value = bc
    if order == 1:
        return h[0] * 0.0 + 1.0, h[0] * 0.0, rise[0] * 0.0 + value
    return 2.0 * h[0], h[0], 3.0 * rise[0] * wide[0] - sign * 0.5 * value * wide[0] ** 2


def _periodic_slopes(h: Shaped, wide: Any, rise: Any) -> Any:
    m = type_of(h).shape[0]
    i, before = np.arange(m), np.arange(m) - 1
    eye = np.eye(m)
    a = eye * (2.0 * (h[before] + h))[:, None]
    a = a + eye[before] * h[:, None] + eye[(i + 1) % m] * h[before][:, None]
    right = 3.0 * (wide * rise[before] + wide[before] * rise)
    slopes = np.linalg.solve(a, np.reshape(right, (m, -1)))
    slopes = np.reshape(slopes, type_of(rise).shape)
    return np.concatenate([slopes, slopes[:1]])


_ENDS = {"clamped": (1, 0.0), "natural": (2, 0.0)}


def checked(name: str, x: Shaped, y: Any, axis: int) -> tuple[Any, Any, int]:
    """(breaks, values with their axis first, axis), after checking their shapes."""
    x, y = as_array(x), as_array(y)
    axis = axis % max(1, type_of(y).ndim)
    if type_of(x).ndim != 1 or not type_of(y).ndim or y.shape[axis] != x.shape[0]:
        raise ShapeError(
            f"{name}: {type_of(x)} breaks and {type_of(y)} values do not fit; along axis {axis} "
            "there must be a value for each break"
        )
    real_only(name, x)
    rising = np.all(x[1:] > x[:-1])
    if has_values(rising) and not rising:
        raise ValueError("`x` must be strictly increasing sequence.")
    y = y if type_of(y).dtype.kind in "fc" else op("astype")(y, dtype=np.dtype(float))
    return x, np.moveaxis(y, axis, 0) if axis else y, axis


def cubic_spline(
    x: Shaped, y: Shaped, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> Pieces:
    """As scipy.interpolate.CubicSpline."""
    x, y, axis = checked("CubicSpline", x, y, axis)
    both = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    bc = [_ENDS.get(b, b) if isinstance(b, str) else b for b in both]
    if extrapolate is None:
        extrapolate = "periodic" if bc_type == "periodic" else True
    return hermite(x, y, _cubic_slopes(x, y, bc), extrapolate, axis)


def cubic_hermite(
    x: Shaped, y: Shaped, dydx: Shaped, axis: int = 0, extrapolate: Any = None
) -> Pieces:
    """As scipy.interpolate.CubicHermiteSpline."""
    slopes = checked("CubicHermiteSpline", x, dydx, axis)[1]
    x, y, axis = checked("CubicHermiteSpline", x, y, axis)
    return hermite(x, y, slopes, True if extrapolate is None else extrapolate, axis)


def linear(x: Shaped, y: Shaped, extrapolate: bool, axis: int) -> Pieces:
    """Straight lines between the values."""
    x, y, axis = checked("interpolation", x, y, axis)
    rise = np.diff(y, axis=0) / under(np.diff(x), y)
    return Pieces(np.stack([rise, y[:-1]]), x, extrapolate, axis)


def pchip(x: Shaped, y: Shaped, axis: int = 0, extrapolate: Any = None) -> Pieces:
    """As scipy.interpolate.PchipInterpolator: monotone where the values are."""
    x, y, axis = checked("PchipInterpolator", x, y, axis)
    h = under(np.diff(x), y)
    rise = np.diff(y, axis=0) / h
    if type_of(x).shape[0] == 2:
        slopes = np.concatenate([rise, rise])
    else:
        a, b = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
        same = np.sign(rise[1:]) * np.sign(rise[:-1]) > 0
        left, right = (np.where(same, r, 1.0) for r in (rise[:-1], rise[1:]))
        inner = np.where(same, (a + b) / (a / left + b / right), 0.0)
        first = _pchip_end(h[0], h[1], rise[0], rise[1])
        last = _pchip_end(h[-1], h[-2], rise[-1], rise[-2])
        slopes = np.concatenate([first[None], inner, last[None]])
    return hermite(x, y, slopes, True if extrapolate is None else extrapolate, axis)


def akima(
    x: Shaped, y: Shaped, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
) -> Pieces:
    """As scipy.interpolate.Akima1DInterpolator, of [Akima 1970]; weights as asked."""
    if method not in ("akima", "makima"):
        raise ShapeError(f"Akima1DInterpolator: method={method!r}; it is 'akima' or 'makima'")
    x, y, axis = checked("Akima1DInterpolator", x, y, axis)
    real_only("Akima1DInterpolator", y)
    rise = np.diff(y, axis=0) / under(np.diff(x), y)
    if type_of(x).shape[0] == 2:
        slopes = np.concatenate([rise, rise])
    else:
        before, after = 2.0 * rise[0] - rise[1], 2.0 * rise[-1] - rise[-2]
        ends = (_rows(2.0 * before - rise[0], before), _rows(after, 2.0 * after - rise[-1]))
        rise = np.concatenate([ends[0], rise, ends[1]])
        turn = abs(np.diff(rise, axis=0))
        if method == "makima":
            turn = turn + abs(rise[1:] + rise[:-1]) / 2.0
        left, right = turn[2:], turn[:-2]
        both = left + right
        defined = both > 1e-9 * np.max(both)  # elsewhere both neighbouring slopes have equal weight
        share = np.where(defined, right, 0.5) / np.where(defined, both, 1.0)
        even = 0.5 * (rise[3:] + rise[:-3])
        slopes = np.where(defined, rise[1:-2] + share * (rise[2:-1] - rise[1:-2]), even)
    return hermite(x, y, slopes, False if extrapolate is None else extrapolate, axis)


def _pchip_end(h: Value, k: Value, rise: Any, after: Any) -> Any:
    """The end slope of the parabola through three values, limited to keep the shape monotone."""
    slope = ((2.0 * h + k) * rise - h * after) / (h + k)
    steep = (np.sign(rise) != np.sign(after)) & (abs(slope) > 3.0 * abs(rise))
    return np.where(np.sign(slope) != np.sign(rise), 0.0, np.where(steep, 3.0 * rise, slope))


# --- objects ------------------------------------------------------------------------------------


def of_plain(spline: Any) -> Pieces:
    """The pieces of SciPy's object; of a B-spline, from its derivatives at the knots."""
    if hasattr(spline, "x"):
        return Pieces(spline.c, spline.x, spline.extrapolate, spline.axis)
    t, k = spline.t, spline.k
    x = np.unique(t[k : len(t) - k])
    terms = [spline(x[:-1], nu) / math.factorial(nu) for nu in range(k, -1, -1)]
    c = np.stack([np.moveaxis(term, spline.axis, 0) for term in terms])
    return Pieces(c, x, spline.extrapolate, spline.axis)


def _methods(base: type, build: Callable[..., Pieces] | None) -> dict[str, Any]:
    def of(pieces: Pieces, plain: object = None) -> Any:
        spline = object.__new__(made_class())
        spline.pieces, spline.plain = pieces, plain
        return spline

    def made_class() -> Any:
        return registry.foreign[base].ours

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        self.plain = None
        if build is not None and any_box((args, kwargs)):
            self.pieces = build(*args, **kwargs)
        else:
            self.plain = base(*args, **kwargs)
            self.pieces = of_plain(self.plain)

    def call(self: Any, x: Value, nu: int = 0, extrapolate: object = None) -> Any:
        return self.pieces(x, nu, extrapolate)

    def integrate(self: Any, a: Value, b: Value, extrapolate: object = None) -> Any:
        return self.pieces.integrate(a, b, extrapolate)

    def turned(name: str) -> Any:
        def method(self: Any, nu: int = 1) -> Any:
            return of(getattr(self.pieces, name)(nu))

        return method

    def refuse(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            raise NoRuleError(
                f"{base.__name__}.{name}: has no rule; calling it, derivative, antiderivative and "
                "integrate have"
            )

        return method

    def stored(name: str) -> Any:
        def read(self: Any) -> Any:
            if base.__name__ != "BSpline" or name == "extrapolate":
                return getattr(self.pieces, name)
            if self.plain is None:
                raise NoRuleError(f"BSpline.{name}: has no rule where the values are traced")
            return getattr(self.plain, name)

        return property(read)

    return {
        "of": staticmethod(of),
        "__init__": init,
        "__call__": call,
        "integrate": integrate,
        "derivative": turned("derivative"),
        "antiderivative": turned("antiderivative"),
        "solve": refuse("solve"),
        "roots": refuse("roots"),
        "extend": refuse("extend"),
        **{name: stored(name) for name in _STORED[base.__name__ == "BSpline"]},
    }


def any_box(values: Any) -> bool:
    """Whether one of the values is traced, also inside containers."""
    if isinstance(values, dict):
        values = values.values()
    for v in values:
        if isinstance(v, Box) or (isinstance(v, list | tuple | dict) and any_box(v)):
            return True
    return False


_STORED = (("c", "x", "extrapolate", "axis"), ("t", "c", "k", "extrapolate", "axis"))


def _declare(name: str, build: Callable[..., Pieces] | None) -> None:
    def declare(original: type) -> None:
        cls: Any = type(original.__name__, (original,), _methods(original, build))

        def traced(spline: object) -> Any:
            return cls.of(of_plain(spline), spline)

        registry.declare(original, kind="ours", ours=cls, of_object=traced)

    registry.await_(f"scipy.interpolate.{name}", declare)


_BUILDERS: dict[str, Callable[..., Pieces] | None] = {
    "CubicSpline": cubic_spline,
    "CubicHermiteSpline": cubic_hermite,
    "PchipInterpolator": pchip,
    "PPoly": lambda c, x, extrapolate=None, axis=0: Pieces(
        as_array(c), as_array(x), True if extrapolate is None else extrapolate, axis
    ),
    "Akima1DInterpolator": akima,
    "BSpline": None,
}


for _name, _build in _BUILDERS.items():
    _declare(_name, _build)

"""scipy.ndimage: spline interpolation of images; differentiable in the image and the coordinates.

The image is a sum of splines, one around each element [Unser 1999].  The splines' weights are a
linear filter of the image along each axis, whose matrix is computed by SciPy's filter.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements, op
from lineara.facts.types import type_of
from lineara.ops.scipy.image_filters import each, refuse_integers, written
from lineara.ops.shape import as_array, as_floats, normal_axis

_PAD = 12  # SciPy's padding for modes in which the filter has no closed form at the edge


@functools.lru_cache(32)
def _filter(n: int, order: int, mode: str) -> np.ndarray:
    """The matrix (n, n) from values along an axis to the weights of the splines."""
    from scipy.ndimage import spline_filter1d

    return spline_filter1d(np.eye(n), order, axis=0, mode=mode)


def _filtered(x: Shaped, order: int, axis: int, mode: str) -> Any:
    x = as_floats(x)
    if order < 2 or type_of(x).shape[axis] == 1:
        return x
    matrix = _filter(type_of(x).shape[axis], order, mode)
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)


@implements("scipy.ndimage.spline_filter1d")
def spline_filter1d(input, order=3, axis=-1, output=np.float64, mode="mirror"):  # SciPy's name
    """The weights of the splines that interpolate the values along one axis."""
    axis = normal_axis(axis, type_of(as_array(input)).ndim, "spline_filter1d")
    return written(output, _filtered(input, _known(order), axis, mode))


@implements("scipy.ndimage.spline_filter")
def spline_filter(input, order=3, output=np.float64, mode="mirror"):  # SciPy's name
    """The weights of the splines that interpolate the values along all axes."""
    for axis in range(type_of(as_array(input)).ndim):
        input = _filtered(input, _known(order), axis, mode)
    return written(output, input)


def _known(order: int) -> int:
    if not 0 <= order <= 5:
        raise RuntimeError("spline order not supported")
    return order


def _weights(v: Shaped, order: int) -> list[Any]:
    """The B-spline of that order at v, v+1, ..., v+order, by recursion in the order."""
    weights: list[Any] = [1.0]
    for d in range(1, order + 1):
        before = [0.0, *weights, 0.0]
        weights = [
            ((v + j) * before[j + 1] + (d + 1 - j - v) * before[j]) / d for j in range(d + 1)
        ]
    return weights[::-1]


def _place(at: Shaped, n: int, mode: str) -> Any:
    """Positions beyond an array of n elements mapped into it, by the mode of extension."""
    if mode in ("reflect", "grid-mirror"):
        at = at % (2 * n)
        return np.where(at < n, at, 2 * n - 1 - at)
    if mode == "grid-wrap":
        return at % n
    if mode == "nearest":
        return np.clip(at, 0, n - 1)
    if n == 1:
        return at * 0
    at = at % (2 * n - 2)
    return np.where(at < n, at, 2 * n - 2 - at)


class _Image:
    """An image as splines along its first `count` axes, which can be evaluated at places."""

    def __init__(
        self, x: Any, count: int, order: int, mode: str, cval: Any, prefilter: bool
    ) -> None:
        if mode not in _MODES:
            raise RuntimeError("boundary mode not supported")
        x, self.pad = as_floats(x), 0
        ndim, filters = type_of(x).ndim, prefilter and order > 1
        self.order, self.mode, self.cval = _known(order), mode, cval
        if mode == "grid-constant":
            x = x - cval
        if filters and mode in ("nearest", "grid-constant"):
            widths = [(_PAD, _PAD) if i < count else (0, 0) for i in range(ndim)]
            x = np.pad(x, widths, mode="edge" if mode == "nearest" else "constant")
            self.pad = _PAD
        for axis in range(count if filters else 0):
            x = _filtered(x, order, axis, mode)
        self.weights, self.count = x, count

    def __call__(self, places: Sequence[Any]) -> Any:
        """The values at places, given as one array of coordinates for each axis."""
        sizes = type_of(self.weights).shape[: self.count]
        parts = [self._along(p, n) for p, n in zip(places, sizes, strict=True)]
        rest = type_of(self.weights).ndim - self.count
        total: Any = 0.0
        for terms in itertools.product(*[nodes for nodes, _ in parts]):
            weight = functools.reduce(lambda a, b: a * b, [w for _, w in terms])
            read = self.weights[tuple([at for at, _ in terms])]
            weight = np.reshape(weight, (*type_of(as_array(weight)).shape, *(1,) * rest))
            total = total + weight * read
        if self.mode == "grid-constant":
            return total + self.cval
        if self.mode == "constant":
            inside = functools.reduce(np.logical_and, [ok for _, ok in parts])
            inside = np.reshape(inside, (*np.shape(inside), *(1,) * rest))
            return np.where(inside, total, self.cval)
        return total

    def _along(self, x: Shaped, n: int) -> tuple[list[tuple[Any, Any]], Any]:
        """([(positions, weights)] of the splines that overlap x on an axis, mask of x inside)."""
        x, order = x + self.pad, self.order
        inside = np.logical_and(x >= 0, x <= n - 1)
        if self.mode == "wrap" and n > 1:
            x = np.where(inside, x, x - (n - 1) * np.floor(x / (n - 1)))
        elif self.mode == "nearest":
            x = np.clip(x, 0, n - 1)
        base = np.floor(x) if order % 2 else np.floor(x + 0.5)
        v = x - base if order % 2 else x + 0.5 - base
        first = op("astype")(as_array(base), dtype=np.dtype(int)) - order // 2
        pairs = []
        for j, w in enumerate(_weights(v, order)):
            at = first + j
            if self.mode == "grid-constant":
                w = w * np.logical_and(at >= 0, at < n)
            pairs.append((_place(at, n, self.mode), w))
        return pairs, inside


_MODES = (
    "reflect",
    "grid-mirror",
    "constant",
    "grid-constant",
    "nearest",
    "mirror",
    "grid-wrap",
    "wrap",
)


def _result(name: str, x: Shaped, output: object, y: Shaped) -> Any:
    """The result in the dtype of `output=`, or else of the image."""
    refuse_integers(name, x, output)
    return written(type_of(as_array(x)).dtype if output is None else output, y)


@implements("scipy.ndimage.map_coordinates")
def map_coordinates(
    input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True
):  # SciPy's names
    """The image at coordinates :  (n1, ..., nd), (d, ...) -> (...)."""
    places, ndim = as_array(coordinates), type_of(as_array(input)).ndim
    if type_of(places).ndim < 2 or not ndim:
        raise RuntimeError("input and output rank must be > 0")
    if type_of(places).shape[0] != ndim:
        raise RuntimeError("invalid shape for coordinate array")
    image = _Image(input, ndim, order, mode, cval, prefilter)
    return _result("map_coordinates", input, output, image([places[i] for i in range(ndim)]))


@implements("scipy.ndimage.geometric_transform", always=True)
def geometric_transform(
    input,
    mapping,
    output_shape=None,
    output=None,
    order=3,
    mode="constant",
    cval=0.0,
    prefilter=True,
    extra_arguments=(),
    extra_keywords=None,
):  # SciPy's names
    """The image at the coordinates that `mapping` returns for each element of the result."""
    shape = type_of(as_array(input)).shape if output_shape is None else tuple(output_shape)
    ask = functools.partial(mapping, **(extra_keywords or {}))
    points = [np.stack(list(ask(at, *extra_arguments))) for at in np.ndindex(*shape)]
    places = np.reshape(np.stack(points, axis=1), (-1, *shape))
    return map_coordinates(input, places, output, order, mode, cval, prefilter)


def _separate(
    x: Any, places: Sequence[Any], order: int, mode: str, cval: Any, prefilter: bool
) -> Any:
    """The image on a grid, given by a vector of coordinates for each axis."""
    outside: Any = False
    for axis, p in enumerate(places):
        n = type_of(as_array(x)).shape[axis]
        image = _Image(np.moveaxis(x, axis, 0), 1, order, mode, 0.0, prefilter)
        if mode == "constant":
            out = np.logical_or(p < 0, p > n - 1)
            outside = np.logical_or(
                outside, np.reshape(out, (-1, *(1,) * (len(places) - 1 - axis)))
            )
        x = np.moveaxis(image([p]), 0, axis)
    return np.where(outside, cval, x) if mode == "constant" else x


def _on_grid(
    name: str,
    x: Shaped,
    places: Sequence[Any],
    output: object,
    order: int,
    mode: str,
    cval: object,
    prefilter: bool,
) -> Any:
    if mode == "grid-constant":
        y = _separate(as_floats(x) - cval, places, order, mode, 0.0, prefilter) + cval
    else:
        y = _separate(as_floats(x), places, order, mode, cval, prefilter)
    return _result(name, x, output, y)


@implements("scipy.ndimage.shift")
def shift(
    input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True
):  # SciPy's names
    """The shifted image; differentiable in the image and the shift."""
    sizes = type_of(as_array(input)).shape
    steps = each(shift, tuple(range(len(sizes))))
    places = [np.arange(n) - s for n, s in zip(sizes, steps, strict=True)]
    return _on_grid("shift", input, places, output, order, mode, cval, prefilter)


@implements("scipy.ndimage.zoom")
def zoom(
    input,
    zoom,
    output=None,
    order=3,
    mode="constant",
    cval=0.0,
    prefilter=True,
    *,
    grid_mode=False,
):  # SciPy's names
    """The image in another size; the factors determine a shape, and have no derivative."""
    sizes = type_of(as_array(input)).shape
    factors = each(zoom, tuple(range(len(sizes))))
    wide = [int(np.round(n * f)) for n, f in zip(sizes, factors, strict=True)]
    places = []
    for n, m in zip(sizes, wide, strict=True):
        if grid_mode:
            places.append((np.arange(m) + 0.5) * (n / m) - 0.5)
        else:
            places.append(np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 1.0))
    return _on_grid("zoom", input, places, output, order, mode, cval, prefilter)


@implements("scipy.ndimage.affine_transform")
def affine_transform(
    input,
    matrix,
    offset=0.0,
    output_shape=None,
    output=None,
    order=3,
    mode="constant",
    cval=0.0,
    prefilter=True,
):  # SciPy's names
    """The image at matrix @ o + offset for each element o; differentiable in all three."""
    sizes = type_of(as_array(input)).shape
    d, matrix = len(sizes), as_array(matrix)
    shape = sizes if output_shape is None else tuple(int(n) for n in output_shape)
    if type_of(matrix).shape in ((d, d + 1), (d + 1, d + 1)) and type_of(matrix).ndim == 2:
        matrix, offset = matrix[:d, :d], matrix[:d, d]
    offsets = each(offset, tuple(range(d)))
    if type_of(matrix).shape[0] != d:
        raise RuntimeError("affine matrix has wrong number of rows")
    if type_of(matrix).ndim == 1:
        rows = zip(shape, offsets, strict=True)
        places = [np.arange(n) * matrix[i] + o for i, (n, o) in enumerate(rows)]
        return _on_grid("affine_transform", input, places, output, order, mode, cval, prefilter)
    grid = np.indices(shape)
    places = [sum(matrix[i, j] * grid[j] for j in range(len(shape))) + offsets[i] for i in range(d)]
    image = _Image(input, d, order, mode, cval, prefilter)
    return _result("affine_transform", input, output, image(places))


@implements("scipy.ndimage.rotate")
def rotate(
    input,
    angle,
    axes=(1, 0),
    reshape=True,
    output=None,
    order=3,
    mode="constant",
    cval=0.0,
    prefilter=True,
):  # SciPy's names
    """The image rotated in the plane of two axes; differentiable in the image and the angle."""
    x = as_array(input)
    ndim = type_of(x).ndim
    if ndim < 2:
        raise ValueError("input array should be at least 2D")
    first, second = sorted([normal_axis(a, ndim, "rotate") for a in axes])
    plane = np.moveaxis(x, (first, second), (0, 1))
    ny, nx = type_of(plane).shape[:2]
    c, s = op("cosdg")(angle), op("sindg")(angle)
    my, mx = ny, nx
    if reshape:
        spread = [np.abs(c) * ny + np.abs(s) * nx, np.abs(s) * ny + np.abs(c) * nx]
        my, mx = (int(np.floor(v + 0.5)) for v in spread)
    gy, gx = np.indices((my, mx))
    gy, gx = gy - (my - 1) / 2, gx - (mx - 1) / 2
    places = [c * gy + s * gx + (ny - 1) / 2, c * gx - s * gy + (nx - 1) / 2]
    y = _Image(plane, 2, order, mode, cval, prefilter)(places)
    return _result("rotate", input, output, np.moveaxis(y, (0, 1), (first, second)))

"""scipy.ndimage: linear filters, as sums of products with a window over a padded image."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.primitive import Box, conjugate, implements, op
from lineara.facts.types import type_of
from lineara.ops.scipy.signal_filters import correlate_inside
from lineara.ops.shape import as_array, as_floats, normal_axes, normal_axis

EDGES: dict[str, Any] = {  # SciPy's mode -> np.pad's arguments
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def _window(
    name: str, x: Shaped, w: Shaped, mode: str, cval: float, origin: Sequence[int], output: object
) -> Any:
    """In each element the sum of products of a window around it; w has as many axes as x."""
    if not isinstance(mode, str):
        raise NoRuleError(f"{name}: mode={mode!r} has no rule; one mode for all axes has")
    x = image(name, x, output)
    left = [m // 2 + o for m, o in zip(type_of(w).shape, origin, strict=True)]
    widths = [(a, m - 1 - a) for a, m in zip(left, type_of(w).shape, strict=True)]
    if any(min(pair) < 0 for pair in widths):
        raise ValueError("invalid origin")
    plain = "constant" not in mode or (not isinstance(cval, Box) and cval == 0)
    wide = np.pad(x, widths, mode=EDGES[mode]) if plain else np.pad(x - cval, widths) + cval
    return written(output, _stored(correlate_inside(wide, w), x))


def _stored(y: Shaped, x: Shaped) -> Any:
    """The result converted to the precision of the image."""
    dtype = type_of(x).dtype
    dtype = np.result_type(dtype, np.complex64) if type_of(y).dtype.kind == "c" else dtype
    return y if type_of(y).dtype == dtype else op("astype")(y, dtype=dtype)


def refuse_integers(name: str, x: Shaped, output: object) -> None:
    """Raise an error for an image of integers without `output=`: the result would be integers."""
    dtype = type_of(as_array(x)).dtype
    if output is None and dtype.kind not in "fc":
        raise NoRuleError(
            f"{name}: the image has {dtype}, and so has the result, which does not move; give "
            "image.astype(float), or output=float"
        )


def image(name: str, x: Shaped, output: object) -> Any:
    """The image in floating point; an error if the result would have integers."""
    refuse_integers(name, x, output)
    return as_floats(x)


def written(output: Any, y: Leaf) -> Any:
    """The result for `output=`: y for None, converted to a dtype, or written into an array."""
    if output is None:
        return y
    if isinstance(output, Box | np.ndarray):
        if not isinstance(output, Box):
            raise NoRuleError(
                "output= is a plain array, which cannot hold a derivative; make it in the "
                "differentiated function, or use the result"
            )
        output[...] = y  # type: ignore[index]  # an array of the engine's
        return output
    dtype = np.dtype(output)  # a complex image has a complex result, whatever is asked for
    dtype = np.result_type(dtype, np.complex64) if type_of(y).dtype.kind == "c" else dtype
    return op("astype")(y, dtype=dtype)


def origins(origin: int | list[Any] | tuple[Any, ...], ndim: int) -> list[int]:
    """The shift of the window's centre along each axis."""
    return [int(o) for o in np.broadcast_to(origin, ndim)]


@implements("scipy.ndimage.correlate")
def correlate(
    input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # SciPy's names
    """y[k] = sum_j conj(weights[j]) input[k + j - center]."""
    w = conjugate(as_array(weights))
    return _whole("correlate", input, w, mode, cval, origin, output, axes)


@implements("scipy.ndimage.convolve")
def convolve(
    input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # SciPy's names
    """y[k] = sum_j weights[j] input[k - j + center]."""
    w = as_array(weights)
    turned = w[(slice(None, None, -1),) * type_of(w).ndim]
    places = zip(origins(origin, type_of(w).ndim), type_of(w).shape, strict=True)
    origin = [-o - (m % 2 == 0) for o, m in places]
    return _whole("convolve", input, turned, mode, cval, origin, output, axes)


def _whole(
    name: str, x: Shaped, w: Shaped, mode: str, cval: float, origin: Any, output: Any, axes: Any
) -> Any:
    ndim = type_of(as_array(x)).ndim
    if axes is not None and set(normal_axes(axes, ndim, name)) != set(range(ndim)):
        raise NoRuleError(f"{name}: axes={axes!r} has no rule; along all axes it has one")
    if type_of(w).ndim != ndim:
        raise RuntimeError("filter weights array has incorrect shape.")
    return _window(name, x, w, mode, cval, origins(origin, ndim), output)


@implements("scipy.ndimage.correlate1d")
def correlate1d(
    input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0
):  # SciPy's names
    """The same along one axis."""
    return _along(input, conjugate(as_array(weights)), axis, output, mode, cval, origin)


def _along(
    input: Shaped, w: Shaped, axis: int, output: object, mode: str, cval: float, origin: int
) -> Any:
    """In each element the sum of products of a window along one axis."""
    x = as_array(input)
    ndim = type_of(x).ndim
    axis = normal_axis(axis, ndim, "correlate1d")
    wide = np.reshape(w, [-1 if i == axis else 1 for i in range(ndim)])
    origins = [origin if i == axis else 0 for i in range(ndim)]
    return _window("correlate1d", x, wide, mode, cval, origins, output)


@implements("scipy.ndimage.convolve1d")
def convolve1d(
    input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0
):  # SciPy's names
    """The same with the window turned around."""
    w = as_array(weights)
    origin = -origin - (type_of(w).shape[0] % 2 == 0)
    return _along(input, w[::-1], axis, output, mode, cval, origin)


@implements("scipy.ndimage.uniform_filter1d")
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """The mean of a window along one axis."""
    return correlate1d(input, np.full(size, 1.0 / size), axis, output, mode, cval, origin)


def _gaussian(sigma: Value, order: int, radius: int) -> Any:
    """Gaussian weights of sum 1, or a derivative of them: the weights times a polynomial."""
    x = np.arange(-radius, radius + 1)
    bell = np.exp(-0.5 * x**2 / sigma**2)
    bell = bell / np.sum(bell)
    terms = {0: 1.0}  # the polynomial, by powers: q' - q x / sigma^2 for each derivative
    for _ in range(order):
        derived: dict[int, Any] = {}
        for p, c in terms.items():
            if p:
                derived[p - 1] = derived.get(p - 1, 0.0) + p * c
            derived[p + 1] = -c / sigma**2  # the powers ascend
        terms = derived
    return bell * sum(c * x**p for p, c in terms.items())


@implements("scipy.ndimage.gaussian_filter1d")
def gaussian_filter1d(
    input,
    sigma,
    axis=-1,
    order=0,
    output=None,
    mode="reflect",
    cval=0.0,
    truncate=4.0,
    *,
    radius=None,
):  # SciPy's names
    """A Gaussian filter along one axis, differentiable in sigma for a constant window size."""
    r = int(truncate * sigma + 0.5) if radius is None else radius
    return correlate1d(input, _gaussian(sigma, order, r)[::-1], axis, output, mode, cval, 0)


def each(value: Any, axes: tuple[int, ...]) -> list[Any]:
    """A list of one value for each axis; a single value is repeated."""
    alone = not isinstance(value, list | tuple) and not type_of(as_array(value)).ndim
    return [value] * len(axes) if alone or isinstance(value, str) else list(value)


def _axes(x: Shaped, axes: Any, name: str) -> tuple[int, ...]:
    return normal_axes(axes, type_of(as_array(x)).ndim, name)


@implements("scipy.ndimage.gaussian_filter")
def gaussian_filter(
    input,
    sigma,
    order=0,
    output=None,
    mode="reflect",
    cval=0.0,
    truncate=4.0,
    *,
    radius=None,
    axes=None,
):  # SciPy's names
    """The same along each axis."""
    y = input = image("gaussian_filter", input, output)
    along = _axes(input, axes, "gaussian_filter")
    modes = [mode] * len(along) if isinstance(mode, str) else list(mode)
    settings = (each(v, along) for v in (sigma, order, radius if radius is not None else -1))
    for axis, s, k, r, m in zip(along, *settings, modes, strict=True):
        if s > 1e-15:
            r = None if r == -1 else r
            y = gaussian_filter1d(y, s, axis, k, None, m, cval, truncate, radius=r)
    return written(output, y if y is not input else +as_array(input))


def _derivatives(
    name: str, k: int, x: Shaped, sigma: Value, output: object, *rest: Any, axes: Any, **more
):
    """The k-th Gaussian derivative of the image along each axis."""
    x = image(name, x, output)
    n = len(_axes(x, axes, name))
    orders = [[k if j == i else 0 for j in range(n)] for i in range(n)]
    return [gaussian_filter(x, sigma, order, None, *rest, axes=axes, **more) for order in orders]


@implements("scipy.ndimage.gaussian_laplace")
def gaussian_laplace(
    input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **options
):  # SciPy's names
    """The sum of the second Gaussian derivatives of the image."""
    name = "gaussian_laplace"
    terms = _derivatives(name, 2, input, sigma, output, mode, cval, axes=axes, **options)
    return written(output, sum(terms[1:], terms[0]))


@implements("scipy.ndimage.gaussian_gradient_magnitude")
def gaussian_gradient_magnitude(
    input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **options
):  # SciPy's names
    """The norm of the Gaussian gradient of the image; its slope is 0 where the norm is 0."""
    name = "gaussian_gradient_magnitude"
    terms = _derivatives(name, 1, input, sigma, output, mode, cval, axes=axes, **options)
    stacked = np.stack(terms)
    if type_of(stacked).dtype.kind == "c":  # as SciPy has it: the root of the sum of squares
        return written(output, np.sqrt(np.sum(stacked * stacked, axis=0)))
    return written(output, np.linalg.norm(stacked, axis=0))


@implements("scipy.ndimage.uniform_filter")
def uniform_filter(
    input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # SciPy's names
    """The mean of a box around each element."""
    y = image("uniform_filter", input, output)
    along = _axes(input, axes, "uniform_filter")
    modes = [mode] * len(along) if isinstance(mode, str) else list(mode)
    for axis, n, o, m in zip(along, each(size, along), each(origin, along), modes, strict=True):
        y = uniform_filter1d(y, n, axis, None, m, cval, o)
    return written(output, y)


def _slope(
    name: str, x: Shaped, axis: int, across: list[Any], output: object, mode: str, cval: float
) -> Any:
    x = image(name, x, output)
    ndim = type_of(x).ndim
    axis = normal_axis(axis, ndim, name)
    y = correlate1d(x, np.array([-1.0, 0.0, 1.0]), axis, None, mode, cval)
    for i in range(ndim):
        if i != axis:
            y = correlate1d(y, np.array(across), i, None, mode, cval)
    return written(output, y)


@implements("scipy.ndimage.sobel")
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):  # SciPy's names
    """The Sobel filter: differences along one axis, smoothed along the others."""
    return _slope("sobel", input, axis, [1.0, 2.0, 1.0], output, mode, cval)


@implements("scipy.ndimage.prewitt")
def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0):  # SciPy's names
    """The Prewitt filter: differences along one axis, averaged along the others."""
    return _slope("prewitt", input, axis, [1.0, 1.0, 1.0], output, mode, cval)


@implements("scipy.ndimage.laplace")
def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None):  # SciPy's names
    """The sum of second differences."""
    input = image("laplace", input, output)
    window, along = np.array([1.0, -2.0, 1.0]), _axes(input, axes, "laplace")
    terms = [correlate1d(input, window, i, None, mode, cval) for i in along]
    return written(output, sum(terms[1:], terms[0]))

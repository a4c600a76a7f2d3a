"""scipy.ndimage: rank filters, which select an element of a window, and grey-scale morphology."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements
from lineara.facts.types import type_of
from lineara.ops.pad import pad
from lineara.ops.scipy.image_filters import EDGES, each, origins, written
from lineara.ops.shape import as_array, normal_axes


def ranked(x: Shaped, box: Shaped, rank: int, mode: str, cval: float, origin: Sequence[int]) -> Any:
    """In each element of x the element of this rank in the window `box` around it."""
    left = [m // 2 + o for m, o in zip(box.shape, origin, strict=True)]
    widths = [(a, m - 1 - a) for a, m in zip(left, box.shape, strict=True)]
    if any(min(pair) < 0 for pair in widths):
        raise ValueError("invalid origin")
    beside = {"constant_values": cval} if "constant" in mode else {}
    wide = pad(x, widths, mode=EDGES[mode], **beside)
    windows = np.lib.stride_tricks.sliding_window_view(wide, box.shape)
    windows = np.reshape(windows, (*type_of(x).shape, box.size))
    windows = windows if box.all() else windows[..., np.flatnonzero(box)]
    n = type_of(windows).shape[-1]
    if rank in (0, n - 1):
        return np.max(windows, axis=-1) if rank else np.min(windows, axis=-1)
    return np.partition(windows, rank, axis=-1)[..., rank]


def _chosen(
    name: str,
    rank: Callable[[int], int],
    x: Shaped,
    size: Any,
    footprint: Any,
    output: object,
    mode: str,
    cval: float,
    origin: int | list[Any],
    axes: Any,
) -> Any:
    """The rank filter whose rank is a function of the number of elements in the window."""
    x = as_array(x)
    if not isinstance(mode, str):
        raise NoRuleError(f"{name}: mode={mode!r} has no rule; one mode for all axes has")
    ndim = type_of(x).ndim
    along = normal_axes(axes, ndim, name)
    if footprint is None and size is None:
        raise RuntimeError("no footprint or filter size provided")
    shape = [int(n) for n in each(size, along)] if footprint is None else np.shape(footprint)
    box = np.ones(shape, bool) if footprint is None else np.asarray(footprint, dtype=bool)
    if box.ndim != len(along):
        raise RuntimeError(f"footprint.ndim ({box.ndim}) must match len(axes) ({len(along)})")
    at = dict(zip(along, origins(origin, len(along)), strict=True))
    box = np.expand_dims(box, [i for i in range(ndim) if i not in along])
    n = int(np.count_nonzero(box))
    k = rank(n)
    if not -n <= k < n:
        raise RuntimeError("rank not within filter footprint size")
    y = ranked(x, box, k % n, mode, cval, [at.get(i, 0) for i in range(ndim)])
    return written(output, y)


def _of_window(name: str, rank: Callable[[int], int], doc: str) -> Any:
    """Declare the rank filter of that name."""

    @implements(f"scipy.ndimage.{name}")
    def call(
        input,
        size=None,
        footprint=None,
        output=None,
        mode="reflect",
        cval=0.0,
        origin=0,
        *,
        axes=None,
    ):
        return _chosen(name, rank, input, size, footprint, output, mode, cval, origin, axes)

    call.__name__, call.__doc__ = name, doc
    return call


minimum_filter: Any = _of_window("minimum_filter", lambda n: 0, "The smallest of a window.")
maximum_filter: Any = _of_window("maximum_filter", lambda n: n - 1, "The largest of a window.")
median_filter: Any = _of_window(
    "median_filter", lambda n: n // 2, "The one in the middle of a window."
)


@implements("scipy.ndimage.rank_filter")
def rank_filter(input, rank, *args, **options):  # SciPy's name
    """The element of that rank in a window; counted from the largest if negative."""
    return _with_rank("rank_filter", lambda n: rank, input, *args, **options)


@implements("scipy.ndimage.percentile_filter")
def percentile_filter(input, percentile, *args, **options):  # SciPy's name
    """The element at that percentile of a window."""
    part = percentile % 100.0 if percentile < 0 else percentile

    def rank(n: int) -> int:
        return n - 1 if part == 100.0 else int(float(n) * part / 100.0)

    return _with_rank("percentile_filter", rank, input, *args, **options)


def _with_rank(
    name: str,
    rank: Callable[[int], int],
    x: Shaped,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    return _chosen(name, rank, x, size, footprint, output, mode, cval, origin, axes)


@implements("scipy.ndimage.minimum_filter1d")
def minimum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """The smallest of a window along one axis."""
    return minimum_filter(input, (size,), None, output, mode, cval, (origin,), axes=(axis,))


@implements("scipy.ndimage.maximum_filter1d")
def maximum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """The largest of a window along one axis."""
    return maximum_filter(input, (size,), None, output, mode, cval, (origin,), axes=(axis,))


# --- grey-scale morphology ------------------------------------------------------------------------


def _flat(name: str, structure: Shaped | None) -> None:
    if structure is not None:
        raise NoRuleError(f"{name}: structure= has no rule; a footprint, which is flat, has one")


def _eroded(filter: Callable[..., Any], sign: int) -> Any:
    """Declare the erosion, or the dilation, whose window is reflected."""
    name = "grey_erosion" if sign > 0 else "grey_dilation"

    @implements(f"scipy.ndimage.{name}")
    def call(
        input,
        size=None,
        footprint=None,
        structure=None,
        output=None,
        mode="reflect",
        cval=0.0,
        origin=0,
        *,
        axes=None,
    ):
        _flat(name, structure)
        if sign < 0:
            along = normal_axes(axes, type_of(as_array(input)).ndim, name)
            shape = each(size, along) if footprint is None else np.shape(footprint)
            places = zip(shape, origins(origin, len(along)), strict=True)
            origin = [-o - (n % 2 == 0) for n, o in places]
            if footprint is not None:
                footprint = np.flip(np.asarray(footprint))
        return filter(input, size, footprint, output, mode, cval, origin, axes=axes)

    call.__name__ = name
    call.__doc__ = "The smallest, or the largest, of a window."
    return call


grey_erosion: Any = _eroded(minimum_filter, 1)
grey_dilation: Any = _eroded(maximum_filter, -1)


def _of_both(name: str, doc: str) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function composed of erosions and dilations with the same window."""

    def register(formula: Callable[..., Any]) -> Any:
        @implements(f"scipy.ndimage.{name}")
        @functools.wraps(formula)
        def call(
            input,
            size=None,
            footprint=None,
            structure=None,
            output=None,
            mode="reflect",
            cval=0.0,
            origin=0,
            *,
            axes=None,
        ):
            def pass_(filter: Callable[..., Any], x: Shaped) -> Any:
                return filter(x, size, footprint, structure, None, mode, cval, origin, axes=axes)

            erode, dilate = (functools.partial(pass_, f) for f in (grey_erosion, grey_dilation))
            return written(output, formula(as_array(input), erode, dilate))

        call.__name__, call.__doc__ = name, doc
        return call

    return register


_of_both("grey_opening", "What an erosion and a dilation leave.")(lambda x, e, d: d(e(x)))
_of_both("grey_closing", "What a dilation and an erosion leave.")(lambda x, e, d: e(d(x)))
_of_both("white_tophat", "What an opening takes away.")(lambda x, e, d: x - d(e(x)))
_of_both("black_tophat", "What a closing adds.")(lambda x, e, d: e(d(x)) - x)
_of_both("morphological_gradient", "A dilation without the erosion.")(lambda x, e, d: d(x) - e(x))
_of_both("morphological_laplace", "The second difference of both.")(
    lambda x, e, d: d(x) + e(x) - 2 * x
)

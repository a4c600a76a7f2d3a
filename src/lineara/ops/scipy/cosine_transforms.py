"""Cosine and sine transforms of scipy.fft: an orthogonal primitive, and SciPy's scalings of it."""

import math
import operator
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import Linear, implements, op, primitive, reals
from lineara.facts.types import type_of
from lineara.ops.elementwise import real_dtype
from lineara.ops.fft import OPPOSITE, _fitted, _lengths, _norm, along
from lineara.ops.shape import as_array, normal_axis

TURNED = {1: 1, 2: 3, 3: 2, 4: 4}  # kind -> the kind of the transpose


@primitive
class waves(Linear):
    """The orthogonal cosine or sine transform of the kinds 1 to 4 along an axis.

    The transpose is the inverse: kinds 1 and 4 are symmetric, 2 and 3 a pair [Strang 1999].
    """

    host = True

    def result(self, x, *, kind, sine, axis):
        t = along(self.name, x, (axis,), "ortho")
        if operator.index(kind) not in TURNED or type(sine) is not bool:
            raise ShapeError(f"{self.name}: kind={kind}, sine={sine}; the kinds are 1, 2, 3 and 4")
        if kind == 1 and not sine and t.shape[axis] < 2:
            raise ShapeError(f"{self.name}: {t} along axis {axis}; kind 1 takes at least 2 points")
        return t

    def evaluate(self, xp, /, x, *, kind, sine, axis):
        import scipy.fft

        transform = scipy.fft.dst if sine else scipy.fft.dct
        return transform(x, kind, axis=axis, norm="ortho", orthogonalize=True)

    def arithmetic(self, y, args, params):
        n = y.shape[params["axis"]]
        return (10 * max(1, (n - 1).bit_length()) + 4) * reals(y)

    def transpose(self, y_bar, /, x, *, kind, sine, axis):
        return (waves(y_bar, kind=TURNED[kind], sine=sine, axis=axis),)

    def batch(self, args, batched, params):
        return waves(*args, **params | {"axis": params["axis"] + 1})


def _period(kind: int, sine: bool, n: int) -> int:
    """2N, the square of the scale between SciPy's formula and the orthogonal matrix."""
    return 2 * (n if kind > 1 else n + 1 if sine else n - 1)


def _weights(kind: int, sine: bool, n: int, dtype: np.dtype) -> tuple[Any, Any]:
    """The weights of SciPy's formula for its input and its output; None for ones."""
    root = math.sqrt(2)
    before, after = np.ones(n, dtype), np.ones(n, dtype)
    if kind == 1 and not sine:
        before[[0, -1]], after[[0, -1]] = 1 / root, root
        return before, after
    if kind in (2, 3):
        (after if kind == 2 else before)[-1 if sine else 0] = root if kind == 2 else 1 / root
        return (None, after) if kind == 2 else (before, None)
    return None, None


def _one(x: Shaped, kind: int, sine: bool, axis: int, norm: str, orthogonal: bool) -> Any:
    n = type_of(x).shape[axis]
    behind = (1,) * (type_of(x).ndim - axis - 1)
    dtype = np.result_type(type_of(x).dtype, np.float32)
    real = real_dtype(dtype)
    before, after = (None, None) if orthogonal else _weights(kind, sine, n, real)
    x = x if before is None else x * np.reshape(before, (n, *behind))
    y = waves(x, kind=kind, sine=sine, axis=axis)
    size = _period(kind, sine, n)
    scale = {"backward": math.sqrt(size), "ortho": 1.0, "forward": 1 / math.sqrt(size)}[norm]
    y = y if scale == 1 else y * real.type(scale)
    return y if after is None else y * np.reshape(after, (n, *behind))


def _transformed(name, x, kind, lengths, axes, norm, orthogonalize, inverse) -> Any:
    sine = "s" in name
    norm = _norm(norm)
    if kind not in TURNED:
        raise ValueError("Type must be an integer 1, 2, 3 or 4")
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    if inverse:
        kind, norm = TURNED[kind], OPPOSITE[norm]
    if type_of(x).dtype.kind not in "fc":
        x = op("astype")(x, dtype=np.dtype(float))
    for n, axis in zip(lengths, axes, strict=True):
        x = _one(_fitted(x, n, axis), kind, sine, axis, norm, orthogonal)
    return x


def _declare(name: str, inverse: bool) -> None:
    """Declare dct and dctn, or dst and dstn, or their inverses."""

    def one(
        x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None
    ):  # SciPy's names
        """The transform along one axis."""
        x = as_array(x)
        axis = normal_axis(axis, type_of(x).ndim, name)
        n = type_of(x).shape[axis] if n is None else n
        return _transformed(name, x, type, [n], [axis], norm, orthogonalize, inverse)

    def several(
        x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *,
        orthogonalize=None,
    ):  # SciPy's names  # fmt: skip
        """The transform along several axes."""
        x = as_array(x)
        axes, lengths = _lengths(f"{name}n", x, s, axes)
        return _transformed(name, x, type, lengths, axes, norm, orthogonalize, inverse)

    implements(f"scipy.fft.{name}")(one)
    implements(f"scipy.fft.{name}n")(several)


for _name in ("dct", "dst"):
    _declare(_name, False)
    _declare(f"i{_name}", True)

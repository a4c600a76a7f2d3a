"""Fourier transforms: linear primitives, each with another one as its transpose.

The adjoint of a transform is the inverse transform under the opposite norm. Between real and
complex numbers, the inner product counts a coefficient twice if it stands for two conjugate ones.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Namespace, Shaped
from lineara.facts.primitive import Linear, conjugate, implements, op, primitive, reals
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.elementwise import real_dtype
from lineara.ops.shape import as_array, normal_axes, normal_axis, roll, sizes

OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _wide(dtype: np.dtype) -> np.dtype:
    """The complex dtype of a transform."""
    return np.result_type(dtype, np.complex64)


def _as_complex(xp: Namespace, x: Shaped) -> Any:
    """What the array API transforms: complex numbers; NumPy takes real ones too."""
    if xp is np or xp.isdtype(x.dtype, "complex floating"):
        return x
    return xp.astype(x, xp.complex64 if x.dtype == xp.float32 else xp.complex128)


def _work(y: ArrayType, shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The counted work: 5 n log n for each line along the axes."""
    size, steps = int(np.prod(shape)), sum(max(1, shape[i] - 1).bit_length() for i in axes)
    return (5 * steps + 4) * size - reals(y)


def along(name: str, x: ArrayType, axes: tuple[Any, ...], norm: str) -> ArrayType:
    """The type of x, after checking the axes and the name of the norm."""
    t = type_of(x)
    fine = type(axes) is tuple and axes and norm in OPPOSITE
    if not fine or any([isinstance(i, bool) for i in axes]):
        raise TypeError(
            f"{name}: axes are whole numbers, one or more, and norm is one of {[*OPPOSITE]}"
        )
    places = list(map(operator.index, axes))
    if len({*places}) < len(places) or not all([0 <= i < t.ndim and t.shape[i] for i in places]):
        raise ShapeError(
            f"{name}: {t} is not transformed along {axes}; axes count from 0, each stands once, "
            "and none is empty"
        )
    return t


@primitive
class fft(Linear):
    """The complex transform along axes, or its inverse.  Transpose: the other of the two."""

    def result(self, x, *, axes, inverse, norm):
        along(self.name, x, axes, norm)
        return ArrayType(type_of(x).shape, _wide(type_of(x).dtype))

    def evaluate(self, xp, /, x, *, axes, inverse, norm):
        transform = xp.fft.ifftn if inverse else xp.fft.fftn
        return transform(_as_complex(xp, x), axes=axes, norm=norm)

    def arithmetic(self, y, args, params):
        return _work(y, y.shape, params["axes"])

    def transpose(self, y_bar, /, x, *, axes, inverse, norm):
        return (fft(y_bar, axes=axes, inverse=not inverse, norm=OPPOSITE[norm]),)

    def batch(self, args, batched, params):
        return fft(*args, **params | {"axes": tuple(i + 1 for i in params["axes"])})


def _doubled(xp: Namespace, c: Shaped, n: int, axis: int, factor: float) -> Any:
    """`c` with the coefficients that stand for two multiplied by a factor; changes c in place."""
    if xp is not np:
        k = np.arange(c.shape[axis]).reshape(-1, *(1,) * (c.ndim - axis - 1))
        return xp.where(xp.asarray((k > 0) & (k < (n + 1) // 2)), c * factor, c)
    c[(*(slice(None),) * axis, slice(1, (n + 1) // 2))] *= factor
    return c


@primitive
class rfft(Linear):
    """The transform of real numbers along an axis  :  n -> n//2 + 1.

    With `weighted` it is the adjoint of `irfft`: the coefficients that stand for two are doubled.
    """

    def result(self, x, *, axis, norm, weighted=False):
        t = along(self.name, x, (axis,), norm)
        shape = (*t.shape[:axis], t.shape[axis] // 2 + 1, *t.shape[axis + 1 :])
        return ArrayType(shape, _wide(t.dtype))

    def evaluate(self, xp, /, x, *, axis, norm, weighted=False):
        y = xp.fft.rfft(x, axis=axis, norm=norm)
        return _doubled(xp, y, x.shape[axis], axis, 2) if weighted else y

    def arithmetic(self, y, args, params):
        return _work(y, args[0].shape, (params["axis"],))

    def transpose(self, y_bar, /, x, *, axis, norm, weighted=False):
        n = x.shape[axis]
        return (irfft(y_bar, n=n, axis=axis, norm=OPPOSITE[norm], weighted=not weighted),)

    def batch(self, args, batched, params):
        return rfft(*args, **params | {"axis": params["axis"] + 1})


@primitive
class irfft(Linear):
    """n real numbers from the first half of their transform.

    With `weighted` it is the adjoint of `rfft`: the coefficients that stand for two are halved.
    """

    def result(self, x, *, n, axis, norm, weighted=False):
        t = along(self.name, x, (axis,), norm)
        if operator.index(n) < 1 or isinstance(n, bool):
            raise ShapeError(f"{self.name}: {n} numbers; there is at least one")
        return ArrayType((*t.shape[:axis], n, *t.shape[axis + 1 :]), real_dtype(_wide(t.dtype)))

    def evaluate(self, xp, /, x, *, n, axis, norm, weighted=False):
        if weighted:
            x = _doubled(xp, np.array(x, _wide(x.dtype)) if xp is np else x, n, axis, 0.5)
        return xp.fft.irfft(_as_complex(xp, x), n=n, axis=axis, norm=norm)

    def arithmetic(self, y, args, params):
        return _work(y, y.shape, (params["axis"],))

    def transpose(self, y_bar, /, x, *, n, axis, norm, weighted=False):
        return (rfft(y_bar, axis=axis, norm=OPPOSITE[norm], weighted=not weighted),)

    def batch(self, args, batched, params):
        return irfft(*args, **params | {"axis": params["axis"] + 1})


# --- NumPy's functions --------------------------------------------------------------------------


def _fitted(a: Shaped, n: int, axis: int) -> Any:
    """The array with n elements along an axis: cut off, or padded with zeros."""
    *_, m = shape = list(type_of(a).shape)
    m = shape[axis]
    if n < 1:
        raise ShapeError(
            f"fft: {n} points along axis {axis} of {type_of(a)}; at least one is needed"
        )
    if n < m:
        return a[(*(slice(None),) * axis, slice(0, n))]
    if n == m:
        return a
    shape[axis] = n - m
    return op("concat")(a, np.zeros(shape, type_of(a).dtype), axis=axis)


def _norm(norm: str | None) -> str:
    norm = "backward" if norm is None else norm
    if norm not in OPPOSITE:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return norm


def _lengths(name: str, a: Shaped, s: Any, axes: Any) -> tuple[tuple[int, ...], list[int]]:
    """The axes of a multi-dimensional transform, and the lengths along them."""
    ndim = type_of(a).ndim
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    listed = tuple(normal_axis(i, ndim, name) for i in sizes(axes))
    if s is None:
        return listed, [type_of(a).shape[i] for i in listed]
    if len(s) != len(listed):
        raise ValueError("Shape and axes have different lengths.")
    pairs = zip(sizes(s), listed, strict=True)
    return listed, [type_of(a).shape[i] if n == -1 else n for n, i in pairs]


def _transform(
    a: Shaped,
    lengths: list[Any],
    axes: Sequence[Any],
    inverse: bool,
    norm: str | None,
    turn: int = -1,
) -> Any:
    """The transform along several axes; one that is named twice is transformed twice, in turn."""
    lines = list(zip(lengths, axes, strict=True))
    once = len(set(axes)) == len(axes)
    for group in [lines] if once else [[line] for line in lines[::turn]]:
        for n, i in group:
            a = _fitted(a, n, i)
        if group:
            a = fft(a, axes=tuple([i for _, i in group]), inverse=inverse, norm=_norm(norm))
    return a


def _both(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function for np.fft and scipy.fft, whose additional options change no value."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def of_scipy(x, *args, overwrite_x=False, workers=None, plan=None, **options):
            return function(x, *args[:3], **options)

        implements(f"scipy.fft.{name}")(of_scipy)
        return implements(getattr(np.fft, name))(function) if hasattr(np.fft, name) else function

    return register


def _declare(name: str, inverse: bool) -> None:
    """Declare fft, fft2 and fftn, or their inverses."""

    def one(a, n=None, axis=-1, norm=None, out=None):
        """The transform along one axis."""
        a = as_array(a)
        axis = normal_axis(axis, type_of(a).ndim, name)
        n = type_of(a).shape[axis] if n is None else n
        return _transform(a, [n], [axis], inverse, norm)

    def several(a, s=None, axes=None, norm=None, out=None):
        """The transform along several axes."""
        a = as_array(a)
        axes, lengths = _lengths(f"{name}n", a, s, axes)
        return _transform(a, lengths, axes, inverse, norm)

    def plane(a, s=None, axes=(-2, -1), norm=None, out=None):
        """The transform along two axes."""
        return several(a, s, axes, norm)

    for suffix, function in (("", one), ("n", several), ("2", plane)):
        _both(name + suffix)(function)


_declare("fft", False)
_declare("ifft", True)


@_both("rfft")
def np_rfft(a, n=None, axis=-1, norm=None, out=None):
    """The transform of real numbers along one axis."""
    return rfftn(a, None if n is None else (n,), (axis,), norm)


@_both("rfftn")
def rfftn(a, s=None, axes=None, norm=None, out=None):
    """The transform of real numbers along several axes, the last of them first."""
    a = as_array(a)
    if is_complex(a):
        raise TypeError(f"rfft: takes real numbers, not {type_of(a)}; use fft, or the real part")
    axes, lengths = _lengths("rfftn", a, s, axes)
    y = rfft(_fitted(a, lengths[-1], axes[-1]), axis=axes[-1], norm=_norm(norm))
    return _transform(y, lengths[:-1], axes[:-1], False, norm)


@_both("rfft2")
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """The transform of real numbers along two axes."""
    return rfftn(a, s, axes, norm)


@_both("irfft")
def np_irfft(a, n=None, axis=-1, norm=None, out=None):
    """Real numbers from the first half of their transform along one axis."""
    return irfftn(a, None if n is None else (n,), (axis,), norm)


@_both("irfftn")
def irfftn(a, s=None, axes=None, norm=None, out=None):
    """Real numbers from the first half of their transform along several axes."""
    a = as_array(a)
    axes, lengths = _lengths("irfftn", a, s, axes)
    if s is None:
        lengths[-1] = 2 * (lengths[-1] - 1)
    a = _transform(a, lengths[:-1], axes[:-1], True, norm, 1)
    a = _fitted(a, lengths[-1] // 2 + 1, axes[-1])
    if lengths[-1] < 1:
        raise ShapeError(f"irfft: {lengths[-1]} points of {type_of(a)}; give n=")
    return irfft(a, n=lengths[-1], axis=axes[-1], norm=_norm(norm))


@_both("irfft2")
def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Real numbers from the first half of their transform along two axes."""
    return irfftn(a, s, axes, norm)


@_both("hfft")
def hfft(a, n=None, axis=-1, norm=None, out=None):
    """The real transform of a sequence with Hermitian symmetry, given by its first half."""
    return np_irfft(conjugate(as_array(a)), n, axis, OPPOSITE[_norm(norm)])


@_both("ihfft")
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """The inverse of hfft: the first half of a sequence with Hermitian symmetry."""
    return conjugate(np_rfft(a, n, axis, OPPOSITE[_norm(norm)]))


@_both("hfftn")
def hfftn(a, s=None, axes=None, norm=None):
    """hfft along the last axis, and complex transforms along the others."""
    return irfftn(conjugate(as_array(a)), s, axes, OPPOSITE[_norm(norm)])


@_both("ihfftn")
def ihfftn(a, s=None, axes=None, norm=None):
    """The inverse of hfftn: the first half along the last axis."""
    return conjugate(rfftn(a, s, axes, OPPOSITE[_norm(norm)]))


@_both("hfft2")
def hfft2(a, s=None, axes=(-2, -1), norm=None):
    """hfftn along two axes, the last two by default."""
    return hfftn(a, s, axes, norm)


@_both("ihfft2")
def ihfft2(a, s=None, axes=(-2, -1), norm=None):
    """ihfftn along two axes, the last two by default."""
    return ihfftn(a, s, axes, norm)


def _shifted(x: Shaped, axes: Any, name: str, turn: int) -> Any:
    shape = type_of(as_array(x)).shape
    along = range(len(shape)) if axes is None else normal_axes(axes, len(shape), name)
    steps = [turn * (shape[i] // 2) for i in along]
    return roll(as_array(x), tuple(steps), tuple(along))


@implements(np.fft.fftshift, "scipy.fft.fftshift")
def fftshift(x, axes=None):
    """The array rolled so that the zero frequency is in the middle."""
    return _shifted(x, axes, "fftshift", 1)


@implements(np.fft.ifftshift, "scipy.fft.ifftshift")
def ifftshift(x, axes=None):
    """The array rolled so that the zero frequency is first again."""
    return _shifted(x, axes, "ifftshift", -1)


@implements(np.fft.fftfreq, "scipy.fft.fftfreq")
def fftfreq(n, d=1.0, device=None):
    """The sample frequencies of a transform of length n and spacing d, which may be traced."""
    return np.fft.fftfreq(n) / d


@implements(np.fft.rfftfreq, "scipy.fft.rfftfreq")
def rfftfreq(n, d=1.0, device=None):
    """The sample frequencies of a transform of n real numbers with spacing d."""
    return np.fft.rfftfreq(n) / d

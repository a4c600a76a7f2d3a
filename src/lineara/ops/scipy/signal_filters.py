"""scipy.signal: convolutions and recursive filters; differentiable in signal and coefficients."""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import (
    General,
    Linear,
    Multilinear,
    conjugate,
    implements,
    primitive,
    reals,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.shape import as_array, as_floats


def _convolved(x: Shaped, w: Shaped, mode: str) -> Any:
    from scipy.signal import convolve

    dtype = np.result_type(x.dtype, w.dtype)
    return convolve(x.astype(dtype, copy=False), w.astype(dtype, copy=False), mode)


def flipped(w: Shaped) -> Any:
    """The array reversed along all axes."""
    return w[(slice(None, None, -1),) * type_of(w).ndim]


class _OfWindow(Multilinear):
    """Sums of products of two arrays of the same number of axes, shifted along each other."""

    def _type(self, x: Shaped, w: Shaped, sign: int) -> ArrayType:
        s, t = type_of(x), type_of(w)
        shape = tuple(n + sign * (m - 1) for n, m in zip(s.shape, t.shape, strict=True))
        return ArrayType(shape, np.result_type(s.dtype, t.dtype))


@primitive
class convolve_all(_OfWindow):
    """The full convolution y[k] = sum_j w[j] x[k-j] :  (n, ...), (m, ...) -> (n+m-1, ...)."""

    host = True

    def result(self, x, w):
        return self._type(x, w, 1)

    def evaluate(self, xp, /, x, w):
        return _convolved(x, w, "full")

    def arithmetic(self, y, args, params):
        x, w = args
        return 2 * x.size * w.size * (1 + is_complex(y)) - reals(y)

    def transpose(self, place, y_bar, /, x, w):
        return correlate_inside(y_bar, x if place else w)


@primitive
class correlate_inside(_OfWindow):
    """y[k] = sum_j w[j] x[k+j], with w inside of x :  (n, ...), (m, ...) -> (n-m+1, ...)."""

    host = True

    def result(self, x, w):
        return self._type(x, w, -1)

    def evaluate(self, xp, /, x, w):
        return _convolved(x, flipped(w), "valid")

    def arithmetic(self, y, args, params):
        return (2 * args[1].size - 1) * reals(y)

    def transpose(self, place, y_bar, /, x, w):
        return correlate_inside(x, y_bar) if place else convolve_all(y_bar, w)


# --- recursion ----------------------------------------------------------------------------------


class _Recursion(General):
    """y with a[0] y[k] + a[1] y[k-1] + ... = u[k] along the last axis :  (m), (...,n) -> (...,n).

    With `adjoint` the recursion runs from the last element to the first.
    """

    host = True
    linear = (1,)

    def result(self, a, u, *, adjoint=False):
        s, t = type_of(a), type_of(u)
        if s.ndim != 1 or not s.shape[0] or not t.ndim:
            raise ShapeError(
                f"{self.name}: takes a row of coefficients, one or more, and an array with an axis "
                f"for time, not {s} and {t}"
            )
        return ArrayType(t.shape, np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, u, *, adjoint=False):
        from scipy.signal import lfilter

        dtype = np.result_type(a.dtype, u.dtype)
        a, u = a.astype(dtype, copy=False), u.astype(dtype, copy=False)
        if adjoint:
            return np.flip(np.asarray(lfilter(np.ones(1, dtype), np.conj(a), u[..., ::-1])), -1)
        return lfilter(np.ones(1, dtype), a, u)

    def arithmetic(self, y, args, params):
        return 2 * args[0].size * reals(y)

    def jvp(self, y, primals, tangents, /, *, adjoint=False):
        (a, _), (a_dot, right) = primals, tangents
        if a_dot is not None:
            moved = -delayed(conjugate(a_dot), y, True) if adjoint else -delayed(a_dot, y)
            right = moved if right is None else right + moved
        return linear_recursion(a, right, adjoint=adjoint)


def delayed(b: Shaped, x: Shaped, ahead: bool = False) -> Any:
    """sum_j b[j] x[k-j] along the last axis, with the length of x; with `ahead` x[k+j]."""
    n, ndim = type_of(x).shape[-1], type_of(x).ndim
    b = np.reshape(b, (*(1,) * (ndim - 1), type_of(b).shape[0]))
    if ahead:
        return convolve_all(x[..., ::-1], b)[..., :n][..., ::-1]
    return convolve_all(x, b)[..., :n]


recursion: _Recursion = _Recursion("recursion")


@primitive
class linear_recursion(Linear):
    """The same, linear in u."""

    host = True
    linear = (1,)

    def result(self, a, u, *, adjoint=False):
        return recursion.result(a, u)

    def evaluate(self, xp, /, a, u, *, adjoint=False):
        return recursion.evaluate(xp, a, u, adjoint=adjoint)

    def arithmetic(self, y, args, params):
        return recursion.arithmetic(y, args, params)

    def transpose(self, y_bar, /, a, u, *, adjoint=False):
        return (linear_recursion(a, y_bar, adjoint=not adjoint),)

    def linearize(self, y, args, active, params, recur):
        kind = recursion if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)


# --- what users write ---------------------------------------------------------------------------


def _convolve(name: str, x: Shaped, w: Shaped, mode: str) -> Any:
    x, w = as_array(x), as_array(w)
    whole = all([type_of(v).dtype.kind in "iu" for v in (x, w)])
    if not whole or name == "fftconvolve":
        x, w = as_floats(x), as_floats(w)
    n, m = type_of(x).shape, type_of(w).shape
    if len(n) != len(m):
        raise ValueError(f"{name}: in1 and in2 should have the same dimensionality")
    if not n:
        return x * w
    if mode == "valid":
        if all(i >= j for i, j in zip(n, m, strict=True)):
            return correlate_inside(x, flipped(w))
        if all(i <= j for i, j in zip(n, m, strict=True)):
            return correlate_inside(w, flipped(x))
        raise ValueError(
            f"{name}: for mode='valid' one input must be at least as large in each axis"
        )
    if mode not in ("full", "same"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    y = convolve_all(x, w)
    starts = [(j - 1) // 2 for j in m]
    inner = tuple(slice(s, s + i) for s, i in zip(starts, n, strict=True))
    return y if mode == "full" else y[inner]


@implements("scipy.signal.convolve")
def convolve(in1, in2, mode="full", method="auto"):
    """The convolution of two arrays."""
    return _convolve("convolve", in1, in2, mode)


def _all_axes(name: str, x: Shaped, axes: Any) -> None:
    ndim = type_of(as_array(x)).ndim
    if axes is not None and {i % ndim for i in np.atleast_1d(axes)} != set(range(ndim)):
        raise NoRuleError(f"{name}: axes={axes!r} has no rule; along all axes it has one")


@implements("scipy.signal.fftconvolve", "scipy.signal.oaconvolve")
def fftconvolve(in1, in2, mode="full", axes=None):
    """The convolution of two arrays, in floating point, as SciPy's by Fourier transforms."""
    _all_axes("fftconvolve", in1, axes)
    return _convolve("fftconvolve", in1, in2, mode)


@implements("scipy.signal.correlate")
def correlate(in1, in2, mode="full", method="auto"):
    """The cross-correlation of two arrays."""
    return _convolve("correlate", in1, conjugate(flipped(as_array(in2))), mode)


@implements("scipy.signal.lfilter")
def lfilter(b, a, x, axis=-1, zi=None):
    """A rational filter: a[0] y[k] + a[1] y[k-1] + ... = b[0] x[k] + b[1] x[k-1] + ..."""
    b, a, x = as_floats(b), as_floats(a), as_floats(x)
    x = np.moveaxis(x, axis, -1)
    inputs = delayed(b, x)
    n, order = type_of(x).shape[-1], max(type_of(b).shape[0], type_of(a).shape[0]) - 1
    if zi is None:
        return np.moveaxis(recursion(a, inputs), -1, axis)
    zi = np.moveaxis(as_floats(zi), axis, -1)
    longer = [*[(0, 0)] * (type_of(x).ndim - 1), (0, order)]
    later = np.pad(x, longer)
    started = np.concatenate([zi * a[0], np.zeros((*type_of(zi).shape[:-1], n))], axis=-1)
    driven = delayed(b, later) + started
    y = recursion(a, driven[..., :n])
    left = (driven - delayed(a, np.pad(y, longer)))[..., n:] / a[0]
    return np.moveaxis(y, -1, axis), np.moveaxis(left, -1, axis)


@implements("scipy.signal.sosfilt")
def sosfilt(sos, x, axis=-1, zi=None):
    """A cascade of filters of the second order."""
    sos, y, left = as_floats(sos), x, []
    for i in range(type_of(sos).shape[0]):
        y = lfilter(sos[i, :3], sos[i, 3:], y, axis, None if zi is None else zi[i])
        if zi is not None:
            y, state = y
            left.append(state)
    return y if zi is None else (y, np.stack(left))


def steady(b: Shaped, a: Shaped) -> Any:
    """The state of the filter in which a constant signal stays as it is."""
    size = max(type_of(b).shape[0], type_of(a).shape[0])
    b, a = (np.pad(v / a[0], (0, size - type_of(v).shape[0])) for v in (b, a))
    shift = np.eye(size - 1, k=1)
    turned = (
        np.eye(size - 1)
        - shift
        + np.concatenate([a[1:, None], np.zeros((size - 1, size - 2))], axis=1)
    )
    return np.linalg.solve(turned, b[1:] - a[1:] * b[0])


@implements("scipy.signal.filtfilt")
def filtfilt(b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None):
    """The filter applied forward and then backward, which has no phase shift."""
    if method != "pad" or padtype not in ("odd", "even", "constant", None):
        raise NoRuleError(f"filtfilt: method={method!r}, padtype={padtype!r} has no rule")
    b, a = (np.reshape(as_floats(v), (-1,)) for v in (b, a))
    x = np.moveaxis(as_floats(x), axis, -1)
    size = max(type_of(b).shape[0], type_of(a).shape[0])
    n, k = type_of(x).shape[-1], 3 * size if padlen is None else padlen
    k = 0 if padtype is None else k
    if n <= k:
        raise ValueError(f"filtfilt: the signal must be longer than padlen, which is {k}")
    long = x
    if k:
        before, after = x[..., k:0:-1], x[..., -2 : -k - 2 : -1]
        first, last = x[..., :1], x[..., -1:]
        if padtype == "odd":
            before, after = 2.0 * first - before, 2.0 * last - after
        elif padtype == "constant":
            before, after = before * 0.0 + first, after * 0.0 + last
        long = np.concatenate([before, x, after], axis=-1)
    zi = steady(b, a)
    for _ in range(2):  # the second time backward
        long = lfilter(b, a, long, -1, zi * long[..., :1])[0][..., ::-1]
    return np.moveaxis(long[..., k : k + n], -1, axis)


@implements("scipy.signal.detrend")
def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=False):  # SciPy's name
    """The signal minus its mean, or minus its straight line of least squares."""
    x = np.moveaxis(as_floats(data), axis, -1)
    n = type_of(x).shape[-1]
    if type in ("constant", "c"):
        y = x - np.mean(x, axis=-1, keepdims=True)
    elif np.any(np.asarray(bp) != 0):
        raise NoRuleError(f"detrend: bp={bp!r} has no rule; without breaks it has one")
    else:
        line = np.linalg.qr(np.stack([np.ones(n), np.linspace(-1, 1, n)], axis=1))[0]
        y = x - (x @ line) @ line.T
    return np.moveaxis(y, -1, axis)


@implements("scipy.signal.hilbert")
def hilbert(x, N=None, axis=-1):  # SciPy's name
    """The analytic signal, which has no negative frequencies."""
    x = np.moveaxis(as_floats(x), axis, -1)
    n = type_of(x).shape[-1] if N is None else N
    weights = np.zeros(n)
    weights[: (n + 1) // 2] = 2.0
    weights[0] = 1.0
    if n % 2 == 0:
        weights[n // 2] = 1.0
    return np.moveaxis(np.fft.ifft(np.fft.fft(x, n) * weights), -1, axis)

"""What the Python array API standard asks of arrays and functions beyond NumPy's everyday ones."""

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from lineara.errors import is_own_file
from lineara.facts.hints import Index, Shaped, Value
from lineara.facts.primitive import implements, op
from lineara.tape.node import Scalar, Traced, withhold


def _of_dtype(original: Callable[..., Any]) -> Any:
    """A function that only asks for the dtypes of its arguments."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        return original(*[a.dtype if isinstance(a, Traced) else a for a in args], **kwargs)

    return ask


for _function in (np.can_cast, np.isdtype, np.finfo, np.iinfo):
    implements(_function)(_of_dtype(_function))


def astype(x: Shaped, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """An array in another dtype, itself if it has that dtype and copy=False."""
    _check_device(device)
    return x.astype(dtype, copy=copy)


def from_dlpack(x: Shaped, /, *, device: object = None, copy: bool | None = None) -> Any:
    """A traced array is an array of ours already."""
    _check_device(device)
    return x.copy() if copy else x


for _function, _ours in ((getattr(np, "astype", None), astype), (np.from_dlpack, from_dlpack)):
    if _function is not None:  # NumPy 2.0 has no astype
        implements(_function)(_ours)


def _check_device(device: object) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"device {device!r} is not there: traced arrays live on 'cpu'")


def _to_device(self: Traced, device: object, /, *, stream: object = None) -> Any:
    """The array itself: there is one device."""
    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    _check_device(device)
    return self


def _scalar_at(self: Scalar, at: Index) -> Any:
    """A traced number at `()`, `...`, new axes or one truth value, as an array without axes.

    Python's numbers have no elements; our own code may ask them all the same.
    """
    if self.weak and not is_own_file(sys._getframe(1).f_code.co_filename):
        raise TypeError(f"'{type(self).__name__}' object is not subscriptable")
    parts = at if isinstance(at, tuple) else (at,)
    if all(p is None or p is ... for p in parts):
        new = parts.count(None)
        return op("reshape")(self, shape=(1,) * new) if new else self
    if isinstance(at, bool | np.bool | np.ndarray) and np.shape(at) == ():
        return op("reshape")(self, shape=(1,))[np.reshape(at, 1)]
    raise IndexError("invalid index to scalar variable.")


def _set_device(self: Traced, value: Value) -> None:
    cast(Any, np.empty(0)).device = value  # raises NumPy's AttributeError


def _no_matrix(self: Scalar) -> Any:
    raise ValueError("matrix transpose with ndim < 2 is undefined")


Traced.device = property(lambda self: "cpu", _set_device)  # type: ignore[attr-defined]
Traced.to_device = _to_device  # type: ignore[attr-defined]
Scalar.__getitem__ = _scalar_at  # type: ignore[method-assign]
Scalar.__iter__ = None  # type: ignore[assignment]  # Python would try x[0], x[1], ...
Scalar.__contains__ = None  # type: ignore[assignment]
Scalar.mT = property(_no_matrix)  # type: ignore[attr-defined]
withhold(Scalar, "__array__", "__dlpack__", "__dlpack_device__")

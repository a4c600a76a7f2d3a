"""NumPy's operators and functions on a builder: `W -= 0.1 * g` is a scatter into W.

Every rule here keeps a builder sparse.  An operation without a rule converts it to a dense array,
with a `DensifyWarning` if that is large.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lineara.errors import TypeMismatchError
from lineara.facts.hints import Shaped, Value

Operator: TypeAlias = Callable[[Any, Any], Any]


def _operator(ufunc: np.ufunc, reflected: bool = False) -> Operator:
    def method(self: Any, other: Value) -> Any:
        if getattr(other, "__array_ufunc__", ufunc) is None:  # the other one wants to decide
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return method


class Algebra:
    """NumPy's operators, in terms of the methods below that each kind of builder defines."""

    __slots__ = ()
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def plus(self, other: Any) -> Any:
        """`self + other` of two builders."""
        raise NotImplementedError

    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The arrays that hold the numbers."""
        raise NotImplementedError

    def map(self, f: Callable[[Any], Any]) -> Any:
        """The builder with f, a multiplication by a constant, applied to its numbers."""
        raise NotImplementedError

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """`ufunc(self, *others)` where it maps 0 to 0 cell by cell, or NotImplemented."""
        return NotImplemented

    def matmul(self, other: Any, left: bool) -> Any:
        """`self @ other`, or `other @ self` if `left`, or NotImplemented."""
        return NotImplemented

    def add_into(self, out: Any, ufunc: np.ufunc = np.add) -> None:
        """`out += self` in place (`-=` for `np.subtract`), in O(stored numbers)."""
        raise NotImplementedError

    def check_cast(self, dtype: np.dtype[Any]) -> None:
        """Raise an error unless NumPy would add the numbers to an array of `dtype` in place."""
        raise NotImplementedError

    def dense(self, asked: str) -> Any:
        """The dense array, with a warning that `asked` needs it if it is large."""
        raise NotImplementedError

    __add__: ClassVar[Operator] = _operator(np.add)
    __radd__: ClassVar[Operator] = _operator(np.add, True)
    __sub__: ClassVar[Operator] = _operator(np.subtract)
    __rsub__: ClassVar[Operator] = _operator(np.subtract, True)
    __mul__: ClassVar[Operator] = _operator(np.multiply)
    __rmul__: ClassVar[Operator] = _operator(np.multiply, True)
    __truediv__: ClassVar[Operator] = _operator(np.divide)
    __rtruediv__: ClassVar[Operator] = _operator(np.divide, True)
    __matmul__: ClassVar[Operator] = _operator(np.matmul)
    __rmatmul__: ClassVar[Operator] = _operator(np.matmul, True)
    __pow__: ClassVar[Operator] = _operator(np.power)

    def __neg__(self) -> Any:
        return self.map(np.negative)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return np.absolute(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if not all(_ours_to_decide(x) for x in inputs):
            return NotImplemented
        if method == "__call__" and ufunc in _RULES:
            out = options.get("out")
            if not options:
                result = _RULES[ufunc](ufunc, *inputs)
            elif len(options) == 1 and out is not None and ufunc in (np.add, np.subtract):
                result = _in_place(ufunc, out[0], *inputs)
            else:
                result = NotImplemented
            if result is not NotImplemented:
                return result
        name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        return getattr(ufunc, method)(*_densified(inputs, name), **_densified(options, name))

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: tuple[Any, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        rule = _FUNCTIONS.get(func)
        if rule is not None and len(args) == 1 and not kwargs:
            return rule(args[0])
        name = f"{func.__module__.replace('numpy', 'np')}.{func.__name__}"
        return func(*_densified(args, name), **_densified(kwargs, name))


def _ours_to_decide(x: Value) -> bool:
    theirs = getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__)
    return isinstance(x, Algebra) or theirs is np.ndarray.__array_ufunc__


def _densified(args: object, asked: str) -> Any:
    """`args` with dense arrays in place of builders, at any depth of lists, tuples and dicts."""
    if isinstance(args, Algebra):
        return args.dense(asked)
    if isinstance(args, dict):
        return {key: _densified(value, asked) for key, value in args.items()}
    if isinstance(args, (list, tuple)):
        return type(args)(_densified(value, asked) for value in args)
    return args


def _add(ufunc: np.ufunc, a: Shaped, b: Shaped) -> Any:
    if isinstance(a, Algebra) and isinstance(b, Algebra):
        return a.plus(b if ufunc is np.add else -b)
    if type(a) is int and a == 0 and ufunc is np.add:
        return b  # the start of the built-in sum
    if np.shape(a) != np.shape(b):
        return NotImplemented
    if isinstance(a, Algebra):
        a, b, ufunc = ufunc(0, b), a, np.add  # g - W = -W + g
    a = np.asarray(a)
    return _in_place(ufunc, np.empty(a.shape, np.result_type(a.dtype, b.dtype)), a, b)


def _in_place(ufunc: np.ufunc, out: Value, a: Any, b: Any) -> Any:
    """`ufunc(a, b, out=out)` for np.add or np.subtract: an optimiser's step is a scatter."""
    if not isinstance(out, np.ndarray):
        raise TypeMismatchError(
            f"np.{ufunc.__name__}: out= is a {type(out).__name__}, which is immutable; "
            "write g = g + h, or give an ndarray as out="
        )
    if isinstance(a, Algebra) and ufunc is np.add:
        a, b = b, a
    if isinstance(a, Algebra) or not np.shape(a) == np.shape(b) == out.shape:
        return NotImplemented
    b.check_cast(out.dtype)
    if any(np.may_share_memory(out, array) for array in b.arrays()):
        b = deepcopy(b)
    if a is not out:
        out[...] = a
    b.add_into(out, ufunc)
    return out


def _scale(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """c * g, g * c, g / c, and products with an array, read only where g is not zero."""
    if isinstance(b, Algebra):
        if isinstance(a, Algebra) or ufunc is np.divide:
            return NotImplemented
        a, b = b, a
    if np.ndim(b) == 0:
        return a.map(lambda v: ufunc(v, b))
    if np.ndim(b) > a.ndim or np.broadcast_shapes(np.shape(b), a.shape) != a.shape:
        return NotImplemented
    return a.pointwise(ufunc, b)


def _matmul(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    return a.matmul(b, False) if isinstance(a, Algebra) else b.matmul(a, True)


def _power(ufunc: np.ufunc, a: Algebra, b: Shaped) -> Any:
    zero_to_zero = isinstance(a, Algebra) and np.ndim(b) == 0 and np.isreal(b) and b > 0
    return a.pointwise(ufunc, b) if zero_to_zero else NotImplemented


def _linear(ufunc: np.ufunc, a: Any) -> Any:
    return a.map(ufunc)


def _cellwise(ufunc: np.ufunc, a: Algebra) -> Any:
    return a.pointwise(ufunc)


ADDITIVE = frozenset({np.multiply, np.divide, np.conjugate})
_RULES: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _add,
    np.subtract: _add,
    np.multiply: _scale,
    np.divide: _scale,
    np.matmul: _matmul,
    np.power: _power,
    np.float_power: _power,
    **dict.fromkeys((np.negative, np.positive), _linear),
    **dict.fromkeys((np.conjugate, np.square, np.absolute, np.fabs, np.sqrt, np.sign), _cellwise),
    **dict.fromkeys((np.sin, np.tan, np.sinh, np.tanh, np.expm1, np.log1p), _cellwise),
}
_FUNCTIONS: dict[Any, Callable[[Any], Any]] = {
    np.linalg.norm: lambda g: g.norm(),
    np.transpose: lambda g: g.T,
    np.shape: lambda g: g.shape,
    np.ndim: lambda g: g.ndim,
    np.size: lambda g: g.size,
}

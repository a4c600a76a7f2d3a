"""A pandas column of traced numbers; imported only when a frame is differentiated."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype
from pandas.api.indexers import check_array_indexer

from lineara.errors import NoRuleError
from lineara.facts.hints import DType, Index, Leaf, Shaped
from lineara.facts.registry import WRITE
from lineara.python.array_makers import any_traced, array
from lineara.python.duck_array import called
from lineara.tape.node import Array, Traced, as_type, objects, plain
from lineara.tape.numpy_errors import about_to_become_plain

# --- the type ------------------------------------------------------------------------------------


class TracedDtype(ExtensionDtype):
    """The dtype of traced floating-point numbers."""

    name = "traced"  # type: ignore[assignment]  # a plain attribute where pandas declares a property
    type = float  # type: ignore[assignment]
    kind = "f"  # type: ignore[assignment]
    na_value: float = np.nan  # type: ignore[assignment]
    _is_numeric = True  # type: ignore[assignment]

    def construct_array_type(self) -> Any:
        """The class of columns with this dtype."""
        return TracedColumn

    def _get_common_dtype(self, dtypes: Any) -> Any:
        """The common dtype of traced and plain numbers: traced."""
        numbers = all(isinstance(d, TracedDtype) or d.kind in "fiu" for d in dtypes)
        return self if numbers else None


def opened(value: Leaf) -> Any:
    """The array in a column; anything else unchanged."""
    return value.values if isinstance(value, TracedColumn) else value


def closed(value: Any) -> Any:
    """A traced vector as a column; anything else unchanged."""
    return TracedColumn(value) if isinstance(value, Array) and value.ndim == 1 else value


# --- the column ----------------------------------------------------------------------------------


class TracedColumn(ExtensionArray):
    """The values of a Series or of a column of a DataFrame : (n,)."""

    __array_priority__ = 1000

    def __init__(self, values: Shaped) -> None:
        self.values: Any = values

    dtype: TracedDtype = TracedDtype()  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """The number of bytes of the values."""
        return self.values.nbytes

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: object = None, copy: bool = False) -> Any:
        del dtype
        scalars = opened(scalars)
        if isinstance(scalars, Traced):
            return cls(scalars.copy() if copy else scalars)
        if isinstance(scalars, pd.Series | pd.Index | ExtensionArray):
            scalars = scalars.to_numpy(dtype=float)
        scalars = list(scalars) if any_traced(scalars) else np.array(scalars, dtype=float)
        return cls(array(scalars))

    @classmethod
    def _from_factorized(cls, values: Any, original: Any) -> Any:
        del values
        raise about_to_become_plain(original.values)

    @classmethod
    def _concat_same_type(cls, to_concat: Any) -> Any:
        return cls(called(np.concatenate, [c.values for c in to_concat]))

    def _values_for_factorize(self) -> Any:
        return plain(self.values), np.nan

    def _values_for_argsort(self) -> Any:
        return plain(self.values)

    def __getitem__(self, at: Any) -> Any:
        at = check_array_indexer(self, at)
        return closed(self.values[at])

    def __setitem__(self, at: Index, value: object) -> None:
        at, copied = check_array_indexer(self, at), array(self.values)
        copied[at] = opened(value)
        self.values = copied

    def take(self, indices: object, *, allow_fill: bool = False, fill_value: Any = None) -> Any:
        """The elements at positions; with `allow_fill`, -1 stands for a missing element."""
        indices = np.asarray(indices, dtype=int)
        if not allow_fill:
            return TracedColumn(self.values[indices])
        fill = np.nan if fill_value is None else fill_value
        if not len(self):
            return TracedColumn(np.full(indices.shape, fill))
        rows = self.values[np.where(indices < 0, 0, indices)]
        return TracedColumn(called(np.where, indices < 0, fill, rows))

    def isna(self) -> Any:
        """The mask of missing elements (NaN), a plain array."""
        return np.isnan(plain(self.values))

    def copy(self) -> Any:
        """A copy of the column, which can be written independently."""
        return TracedColumn(self.values)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The column in another dtype; integers and booleans have no derivative."""
        if not isinstance(dtype, TracedDtype) and isinstance(dtype, ExtensionDtype):
            return dtype.construct_array_type()._from_sequence(self.values.__array__(), dtype=dtype)
        if isinstance(dtype, TracedDtype) or np.dtype(dtype) == self.values.dtype:
            return self.copy() if copy else self
        return closed(as_type(self.values, np.dtype(dtype)))

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: object = None) -> Any:
        """The traced array."""
        if na_value is np.nan and isinstance(self.values, Traced):  # asked by pandas' compiled code
            return self.values.__array__()
        dtype = self.values.dtype if dtype is None else np.dtype(dtype)
        if dtype == self.values.dtype:
            return self.values.copy() if copy else self.values
        return as_type(self.values, dtype)

    # --- what leaves ------------------------------------------------------------------------------

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> Any:
        del copy
        if dtype is not None and np.dtype(dtype).kind == "O":
            return objects(self.values)
        return self.values.__array__()

    def interpolate(self, **_: Any) -> Any:
        """Refused with advice, since pandas interpolates in compiled code."""
        return self.values.__array__()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(v, pd.Series | pd.Index | pd.DataFrame) for v in inputs):
            return NotImplemented
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return closed(function(*map(opened, inputs), **kwargs))

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        del types
        return func(*map(opened, args), **{k: opened(v) for k, v in kwargs.items()})

    # --- reductions -------------------------------------------------------------------------------

    def _reduce(
        self, name: str, *, skipna: bool = True, keepdims: bool = False, **options: Any
    ) -> Any:
        values = self.values
        if skipna and self.isna().any():
            values = values[~self.isna()]
        y = _reduced(name, values, **options)
        return TracedColumn(called(np.reshape, y, (1,))) if keepdims else y

    def _quantile(self, qs: Any, interpolation: object) -> Any:
        values = self.values[~self.isna()] if self.isna().any() else self.values
        if not len(values):
            return TracedColumn(np.full(len(qs), np.nan))
        return TracedColumn(called(np.quantile, values, np.asarray(qs), method=interpolation))

    def _accumulate(self, name: str, *, skipna: bool = True, **options: Any) -> Any:
        del options
        values, missing = self.values, self.isna()
        if not (skipna and missing.any()):
            return TracedColumn(_running(name)(values))
        kept = np.flatnonzero(~missing)
        filled = array(np.full(len(self), np.nan))
        filled[kept] = _running(name)(values[kept])
        return TracedColumn(filled)

    def _groupby_op(
        self,
        *,
        how: str,
        has_dropped_na: bool,
        min_count: int,
        ngroups: int,
        ids: Shaped,
        **options: Any,
    ) -> Any:
        del has_dropped_na
        skipna = options.pop("skipna", True)
        parts = [TracedColumn(self.values[np.flatnonzero(ids == g)]) for g in range(ngroups)]
        if how in ("cumsum", "cumprod", "cummax", "cummin"):
            runs, order = [p._accumulate(how, skipna=skipna).values for p in parts], _order(ids)
            return TracedColumn(called(np.concatenate, runs)[np.argsort(order)])
        if min_count > 1:
            raise _no_rule(f"groupby.{how} with min_count")
        return TracedColumn(array([p._reduce(how, skipna=skipna, **options) for p in parts]))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.values, name)  # attributes of ndarray, which users expect of `.values`


def _order(ids: Any) -> Any:
    """The positions of the elements, sorted by group."""
    return np.argsort(ids, kind="stable")


def _no_rule(what: str) -> NoRuleError:
    return NoRuleError(f"pandas' {what} of traced values has no derivative rule; {WRITE}")


def _running(name: str) -> Any:
    rule = {
        "cumsum": np.add.accumulate,
        "cumprod": np.multiply.accumulate,
        "cummax": np.maximum.accumulate,
        "cummin": np.minimum.accumulate,
    }.get(name)
    if rule is None:
        raise _no_rule(name)
    return rule


def _reduced(name: str, values: Array, ddof: int = 1, min_count: int = 0, **options: Any) -> Any:
    """The reduction with pandas' name `name`, of values without missing ones."""
    del options
    if len(values) < min_count or (not len(values) and name not in ("sum", "prod", "any", "all")):
        return np.nan
    if name in ("std", "var", "sem"):
        if len(values) <= ddof:
            return np.nan
        spread = called(np.var if name == "var" else np.std, values, ddof=ddof)
        return spread / len(values) ** 0.5 if name == "sem" else spread
    if name in ("skew", "kurt"):
        return _shape_of(name, values)
    if name in ("first", "last"):
        return values[0 if name == "first" else -1]
    if name in ("sum", "mean", "prod", "min", "max", "median", "any", "all"):
        return called(getattr(np, name), values)
    raise _no_rule(name)


def _shape_of(name: str, values: Shaped) -> Any:
    """Unbiased skewness or excess kurtosis, as in pandas."""
    n, apart = len(values), values - called(np.mean, values)
    if n < (3 if name == "skew" else 4):
        return np.nan
    m2, m3, m4 = (called(np.sum, apart**k) for k in (2, 3, 4))
    if name == "skew":
        return n * (n - 1) ** 0.5 / (n - 2) * m3 / m2**1.5
    above = n * (n + 1) * (n - 1) * m4 / ((n - 2) * (n - 3) * m2**2)
    return above - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))


# --- operators -----------------------------------------------------------------------------------


def _operator(name: str) -> Any:
    reflected = name.startswith("r") and hasattr(operator, f"__{name[1:]}__")
    act = getattr(operator, f"__{name[1:] if reflected else name}__")

    def method(self: TracedColumn, *others: Any) -> Any:
        if any(isinstance(o, pd.Series | pd.Index | pd.DataFrame) for o in others):
            return NotImplemented
        values = [_number(opened(v)) for v in (self, *others)]
        return closed(act(*reversed(values)) if reflected else act(*values))

    method.__name__ = f"__{name}__"
    return method


def _number(value: Shaped) -> Any:
    """A plain pandas column as a NumPy array; anything else unchanged."""
    return value.to_numpy(dtype=float) if isinstance(value, ExtensionArray) else value


_BINARY = ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv")
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
for _name in (*_BINARY, *(f"r{_n}" for _n in _BINARY), *_COMPARED, "neg", "pos", "abs", "matmul"):
    setattr(TracedColumn, f"__{_name}__", _operator(_name))


__all__ = ["TracedColumn", "closed", "opened"]

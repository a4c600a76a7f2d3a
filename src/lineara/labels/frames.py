"""Gradients of labelled arrays: pandas' Series and DataFrames, xarray's DataArrays and Datasets.

The labels are constants, the floating-point values are differentiable, and a gradient has the same
labels.  The two libraries are not imported here before the user imports them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from lineara.containers.points import MANIFOLDS, Chart
from lineara.errors import GeometryError
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.primitive import implements, registry
from lineara.facts.types import show_type
from lineara.ops.shape import as_array
from lineara.python.number_classes import maker_class
from lineara.tape.node import Array, Traced, follows, plain


class Labelled:
    """A labelled array as a point of a manifold, whose coordinates are its columns."""

    is_whole = True
    is_one = True  # whether there is only one column, which has no name

    def __init__(self, labels: Any) -> None:
        self.labels = labels  # the point, whose labels a tangent has
        self.point: type = type(labels)

    def is_like(self, p: Value) -> bool:
        """Whether p has the labels of this point."""
        raise NotImplementedError

    def columns(self, p: Value) -> list[tuple[Any, Any]]:
        """The pair (key, array) of each column or variable."""
        raise NotImplementedError

    def made(self, p: Value, columns: list[Any]) -> Any:
        """An object with the labels of p and the given columns."""
        raise NotImplementedError

    def moving(self, p: Any) -> list[int]:
        """The numbers of the differentiable columns: the floating ones, or else the integers."""
        kinds = [_kind(values) for _, values in self.columns(p)]
        wanted = "fc" if {*kinds} & {"f", "c"} else "iu"
        return [i for i, kind in enumerate(kinds) if kind in wanted]

    def coordinates(self, p: Any) -> Any:
        """The differentiable columns, in floating point."""
        columns = [self.columns(p)[i][1] for i in self.moving(p)]
        return [v if _kind(v) in "fc" else v.astype(float) for v in columns]

    def lifted(self, p: Any, v: list[Any]) -> Any:
        """The labels of p with traced columns v."""
        columns = [values for _, values in self.columns(p)]
        for i, traced in zip(self.moving(p), v, strict=True):
            columns[i] = traced
        return self.made(p, columns)

    def outgoing(self, r: object, still: object) -> Any:
        """The columns of a result, as values to differentiate."""
        del still
        return self.coordinates(r)

    def number(self, r: Any) -> Any:
        """The array without labels, if there is only one column; else r itself."""
        return self.columns(r)[0][1] if self.is_one else r

    def released(self, r: Any, release: Callable[[Any], Any]) -> Any:
        """A result whose values left their level: `release` applied to every column."""
        return self.made(r, [release(values) for _, values in self.columns(r)])

    def vector(self, tree: Any, chart: Chart) -> Any:
        """A tangent with the labels of its point; a block of a matrix has no labels."""
        columns = self.columns(self.labels)
        moving = [columns[i] for i in self.moving(self.labels)]
        pairs = [(key, v) for (key, _), v in zip(moving, tree, strict=True)]
        if all(np.shape(v) == np.shape(x) for (_, x), v in zip(moving, tree, strict=True)):
            return self.covector(self.labels, tree, chart.unit)
        return tree[0] if self.is_one else dict(pairs)

    def covector(self, p: Any, tree: Any, unit: object) -> Any:
        """The gradient with the labels of p, zero in columns that are constants."""
        del unit
        columns = [_zero_gradient(values) for _, values in self.columns(p)]
        for i, values in zip(self.moving(p), tree, strict=True):
            columns[i] = values
        return self.made(p, columns)

    def components(self, vector: Shaped, chart: Chart, asked: str) -> Any:
        """The columns of a tangent that belong to differentiable columns."""
        if type(vector) is not self.point or not self.is_like(vector):
            raise GeometryError(
                f"{asked}: a {chart.word} at a {self.point.__name__} is a {self.point.__name__} "
                f"with the same labels, but was given {show_type(vector)}"
            )
        columns = [values for _, values in self.columns(vector)]
        return [columns[i] for i in self.moving(self.labels)]


def _kind(values: object) -> str:
    dtype = getattr(values, "dtype", None)
    dtype = getattr(dtype, "numpy_dtype", dtype)
    return getattr(dtype, "kind", "O")


def _zero_gradient(values: Shaped) -> Any:
    """The gradient of a column of constants: zeros for numbers; other columns unchanged."""
    return np.zeros(np.shape(values)) if _kind(values) in "iu" else values


# --- pandas --------------------------------------------------------------------------------------


def _plain_column(values: Any) -> Any:
    """The NumPy array of a pandas column; a column without numbers unchanged."""
    if _kind(values) not in "fciu":
        return values
    if type(values).__module__ == "lineara.labels.pandas_column":
        return values.values
    missing = {} if _kind(values) in "c" else {"na_value": np.nan}
    return (
        values.to_numpy()
        if _kind(values) in "iu"
        else values.to_numpy(values.dtype.type, **missing)
    )


def _pandas_column(values: object) -> Any:
    """A traced array as a pandas column."""
    return import_module("lineara.labels.pandas_column").closed(values)


class Pandas(Labelled):
    """Operators between traced values and pandas objects, which pandas leaves to the former."""

    def part(self, other: Value, i: int) -> Any:
        """The part of the other operand that is combined with column i."""
        del i
        return other

    def operated(self, act: Callable[[Any, Any], Any], p: Value, q: Value) -> Any:
        """act(p, q) column by column, where one of the two is the labelled array."""
        columns = [values for _, values in self.columns(self.labels)]
        parts = [self.part(q if p is self.labels else p, i) for i in range(len(columns))]
        pairs = list(zip(columns, parts, strict=True))
        return self.made(
            self.labels, [act(x, y) if p is self.labels else act(y, x) for x, y in pairs]
        )


class Series(Pandas):
    """pandas.Series."""

    def is_like(self, p: Any) -> bool:
        """Whether the index is the same."""
        return p.index.equals(self.labels.index)

    def columns(self, p: Any) -> list[tuple[Any, Any]]:
        """The one column."""
        return [(p.name, _plain_column(p.array))]

    def made(self, p: Any, columns: list[Any]) -> Any:
        """A Series with the index and the name of p."""
        return type(p)(_pandas_column(columns[0]), index=p.index, name=p.name)


class Frame(Pandas):
    """pandas.DataFrame."""

    is_one = False

    def is_like(self, p: Any) -> bool:
        """Whether index and columns are the same."""
        return p.index.equals(self.labels.index) and p.columns.equals(self.labels.columns)

    def part(self, other: Any, i: int) -> Any:
        """A number is combined with every column, a row of numbers by position."""
        return other[..., i] if np.ndim(other) else other

    def columns(self, p: Any) -> list[tuple[Any, Any]]:
        """The pairs (name, array) of the columns, in order."""
        return [(k, _plain_column(p.iloc[:, i].array)) for i, k in enumerate(p.columns)]

    def made(self, p: Any, columns: list[Any]) -> Any:
        """A DataFrame with the index and the columns of p."""
        data = {i: _pandas_column(values) for i, values in enumerate(columns)}
        frame = type(p)(data, index=p.index)
        frame.columns = p.columns
        return frame


# --- xarray --------------------------------------------------------------------------------------


def _duck(values: Value) -> Any:
    """A traced array in the wrapper that xarray accepts."""
    return import_module("lineara.python.duck_array").closed(values)


def _in_duck(values: Value) -> Any:
    """The array in that wrapper."""
    return import_module("lineara.python.duck_array").opened(values)


def _of_class(p: Any, traced: bool) -> Any:
    """p in the subclass for traced values, or in the user's class."""
    classes = import_module("lineara.labels.xarray_array").CLASSES
    for cls, traced_cls in classes.items():
        MANIFOLDS[traced_cls] = MANIFOLDS[cls]
    MANIFOLDS[import_module("lineara.python.duck_array").Duck] = Bare
    wanted = classes if traced else {new: old for old, new in classes.items()}
    cls = wanted.get(type(p), type(p))
    if cls is type(p):
        return p
    if hasattr(p, "data_vars"):
        return cls(p.data_vars, coords=p.coords, attrs=p.attrs)
    return cls(p)


def _same_coordinates(p: Any, q: Any) -> bool:
    shared = [k for k in p.coords if k in q.coords]
    return p.sizes == q.sizes and all(p.coords[k].equals(q.coords[k]) for k in shared)


class Bare(Labelled):
    """The traced array of an xarray object without labels; only occurs as a result."""

    def columns(self, p: Any) -> list[tuple[Any, Any]]:
        """The one array."""
        return [(None, p.value)]

    def made(self, p: Any, columns: list[Any]) -> Any:
        """The first column."""
        return columns[0]


class DataArray(Labelled):
    """xarray.DataArray: dimensions, coordinates, name and attributes are labels."""

    def is_like(self, p: Any) -> bool:
        """Whether the dimensions and the shared coordinates are the same."""
        return p.dims == self.labels.dims and _same_coordinates(p, self.labels)

    def columns(self, p: Any) -> list[tuple[Any, Any]]:
        """The one array."""
        return [(p.name, _in_duck(p.data))]

    def made(self, p: Any, columns: list[Any]) -> Any:
        """The same labels."""
        array = p.copy(data=_duck(columns[0]))
        return _of_class(array, isinstance(columns[0], Traced))


class Dataset(Labelled):
    """xarray.Dataset: the data variables are the columns."""

    is_one = False

    def is_like(self, p: Any) -> bool:
        """Whether variables, dimensions and coordinates are the same."""
        return list(p) == list(self.labels) and _same_coordinates(p, self.labels)

    def columns(self, p: Any) -> list[tuple[Any, Any]]:
        """The pairs (name, array) of the data variables."""
        return [(name, _in_duck(p[name].data)) for name in p.data_vars]

    def made(self, p: Any, columns: list[Any]) -> Any:
        """The same labels."""
        variables = {k: _duck(v) for k, v in zip(p.data_vars, columns, strict=True)}
        dataset = p.copy(data=variables)
        return _of_class(dataset, any(isinstance(v, Traced) for v in columns))


Traced.__pandas_priority__ = 5000  # type: ignore[attr-defined]  # a DataFrame's is 4000


def _kind_in_pandas(self: Array) -> str | None:
    """pandas' type tag, read in `df["z"] = x`: "series" makes pandas read `_values`."""
    return "series" if self.ndim == 1 and follows(self) else None


Array._typ = property(_kind_in_pandas)  # type: ignore[attr-defined]  # pandas' own protocol
Array._values = property(_pandas_column)  # type: ignore[attr-defined]


# --- labels around traced arrays ------------------------------------------------------------------


def _as_column(values: Leaf) -> Any:
    """A traced array as a pandas column; an array without derivative as a plain array."""
    if isinstance(values, list | tuple) and follows(values):
        values = as_array(values)
    if not isinstance(values, Traced):
        return values
    return _pandas_column(values) if follows(values) else np.array(plain(values))


def _series(cls: type) -> Callable[..., Any]:
    """The stand-in for pandas.Series, whose data may be traced."""

    def make(data: Leaf = None, *args: Any, **options: Any) -> Any:
        return cls(_as_column(data), *args, **options)

    return make


def _frame(cls: type) -> Callable[..., Any]:
    """The stand-in for pandas.DataFrame, whose columns may be traced."""

    def make(
        data: Value | None = None, index: Any = None, columns: object = None, **options: Any
    ) -> Any:
        if isinstance(data, dict):
            contents = {k: _as_column(v) for k, v in data.items()}
            n = next(
                (len(v) for v in contents.values() if np.ndim(v)),
                0 if index is None else len(index),
            )
            contents = {k: _repeated(v, n) for k, v in contents.items()}
            return cls(contents, index=index, columns=columns, **options)
        if isinstance(data, Traced) and follows(data) and data.ndim == 2:
            contents = {i: _as_column(data[:, i]) for i in range(data.shape[1])}
            frame = cls(contents, index=index, **options)
            if columns is not None:
                frame.columns = columns
            return frame
        return cls(_as_column(data), index=index, columns=columns, **options)

    return make


def _repeated(value: Value, n: int) -> Any:
    """A traced number as a column of n equal rows; other values unchanged."""
    return _as_column(value * np.ones(n)) if isinstance(value, Traced) and not value.ndim else value


def _await(name: str, manifold: type[Labelled], make: Callable[..., Any] | None = None) -> None:
    def declare(cls: type) -> None:
        MANIFOLDS[cls] = manifold
        if make is not None:
            implements(cls, always=True)(maker_class(cls, make(cls)))

    registry.await_(name, declare)


_await("pandas.Series", Series, _series)
_await("pandas.DataFrame", Frame, _frame)
_await("xarray.DataArray", DataArray)
_await("xarray.Dataset", Dataset)

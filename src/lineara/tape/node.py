"""Traced values: what every level's scalars and arrays have in common.

A node is its value and at most two inline weighted edges: `a` with weight `d`, `b` with weight
`e`.  Every other linear map is an entry of its own on the tape.  Creation order is topological
order.  `g` holds the cotangent (in the reverse sweep) or the tangent (in the forward sweep).
"""

import dis
import functools
import math
import operator
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from lineara.containers.points import operated
from lineara.errors import (
    DetachError,
    LeakedVariableError,
    MutationError,
    NoRuleError,
    StagingError,
    TypeMismatchError,
    is_library_file,
)
from lineara.facts.box import Joint
from lineara.facts.hints import DType, Index, Leaf, Shaped, Tree, Value
from lineara.facts.primitive import ArrayBox, Box, Primitive, innermost, op, registry
from lineara.facts.types import show, type_of
from lineara.ops.index import check_index, is_basic, read
from lineara.tape.class_questions import (
    as_shown,
    asks_who_multiplies,
    formats,
    in_object,
    in_patterns,
    withhold,
)
from lineara.tape.numpy_errors import about_to_become_plain, asks_by_name
from lineara.tape.strides import in_c_order, laid_out, narrow, packed, strides_of

_STORED = dis.opmap["STORE_SUBSCR"]  # where a number is written into an array of whole ones

# Nothing has arrived: compared by identity, so it is a float object of its own (a literal 0.0 could
# be shared with other code); a 0.0 that was computed is another object.
zero: float = float("0.0")
ONE = object()  # the weight of the identity


class Leaked:
    """Stands in the cotangent slot of every node of a closed trace, so that adding to it raises."""

    def _raise(self, *_: Any) -> Any:
        raise outlived()

    __add__ = _raise
    __radd__ = _raise
    __mul__ = _raise
    __rmul__ = _raise

    @property
    def shape(self) -> Any:
        """Raises, as all of it does."""
        raise outlived()


leaked: Leaked = Leaked()


def outlived() -> LeakedVariableError:
    """The error for a traced value that is used after its differentiation."""
    return LeakedVariableError(
        "a traced value was used after the differentiation that made it had ended; "
        "return it from the function (has_aux=True) or take its value inside, instead of storing it"
    )


class Entry:
    """A tape entry for a linear map that is not an inline weight: parents -> out."""

    __slots__ = ("joint", "name", "out", "parents", "work")

    def __init__(
        self, out: "Traced", parents: Sequence[Any], joint: Joint, name: str, work: int
    ) -> None:
        self.out: Traced = out
        self.parents: Sequence[Any] = parents
        self.joint: Joint = joint
        self.name: str = name
        self.work: int = work


class Traced(ArrayBox):
    """A number or an array that a differentiation is following."""

    __slots__ = ()
    level: Any  # the Level that the class belongs to
    v: Any
    known = True  # whether there is a value to look at, at all
    in_plans: str | None = None  # what it is in the signature of a call; None where it has none

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Evaluate one level below and record the linear map beside."""
        return self.level.apply(primitive, args, params)

    def scattered(self, at: Any, shape: tuple[int, ...]) -> Any:
        """Zeros of this shape with the values at an index; several at one place are added."""
        return op("scatter")(self, at=at, shape=shape)

    # --- leaving the trace -----------------------------------------------------------------

    def __array__(self, *_: Any, **__: Any) -> Any:
        if not self.level.open:
            raise outlived()
        if asks_who_multiplies(sys._getframe(1)):
            return in_object(self)
        if asks_by_name(sys._getframe(1)):
            return self
        raise about_to_become_plain(self)

    def __float__(self) -> float:
        if not self.level.open:
            raise outlived()
        if formats(sys._getframe(1)):
            return float(plain(self))
        raise DetachError(
            f"float() of a traced {type_of(self)} here would lose its derivative: a plain array "
            "cannot hold it, nor can code that Lineara does not see; make the array that is "
            "written with np.zeros, np.array(a) or np.copy(a) in the differentiated function, or "
            "use lineara.stop_gradient to mean it"
        )

    def __complex__(self) -> complex:
        if not self.level.open:
            raise outlived()
        raise DetachError(
            f"complex() of a traced {type_of(self)} would lose its derivative; make the array that "
            "is written in the differentiated function, or use lineara.stop_gradient to mean it"
        )

    def __bool__(self) -> bool:
        return bool(self.below())

    def __int__(self) -> int:
        frame = sys._getframe(1)
        stored = frame.f_code.co_code[frame.f_lasti] == _STORED and not getattr(self, "weak", True)
        if stored and not (self.dtype.kind == "f" and math.isfinite(plain(self))):
            raise about_to_become_plain(self, True)  # NumPy casts its own numbers without an error
        return int(self.below())

    def __round__(self, digits: int | None = None) -> Any:
        return round(plain(self), digits)

    def __format__(self, spec: str) -> str:
        return format(plain(self), spec)

    def __repr__(self) -> str:
        v = plain(self)
        return f"traced({float(v) if type(v) is np.float64 else v!r})"

    def __reduce__(self) -> Any:
        raise DetachError(
            "a traced value cannot be pickled: it belongs to a differentiation that runs here; "
            "take lineara.stop_gradient of it, or differentiate inside the other process"
        )

    def __sizeof__(self) -> int:
        raise NoRuleError(
            f"sys.getsizeof: a traced {type_of(self)} is not stored as NumPy's value is; use nbytes"
        )

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        return self

    # --- what it is --------------------------------------------------------------------------

    def now(self) -> Any:
        """The node that stands for the present content."""
        return self

    def constant(self) -> Any:
        """The plain content of an array in which nothing is traced; else None."""
        return None

    def memory(self, to_write: bool = False) -> np.ndarray | None:
        """The values of an array that nothing traced has reached; else None."""
        return None

    def give(self, array: np.ndarray) -> None:
        """Note that a plain view of the content was handed out; only written arrays keep track."""

    def below(self) -> Any:
        """The value one level below, for code that looks at it."""
        return self.v

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return np.shape(self.v) if not isinstance(self.v, Box) else self.v.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the value."""
        v = self.v
        return v.dtype if hasattr(v, "dtype") else np.result_type(type(v))

    @property
    def nbytes(self) -> int:
        """Bytes of the value."""
        return self.size * self.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def real(self) -> Any:
        """The real part."""
        return derived(op("real")(self), self) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        part = op("imag")(self)
        if isinstance(self, Array) and self.dtype.kind != "c":
            part = laid(part, packed(self.shape, self.lay, "A"))
        return derived(part, self)

    def conjugate(self) -> Any:
        """The complex conjugate."""
        return op("conj")(self) if self.dtype.kind == "c" else self

    conj = conjugate

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if has_priority(other) else _divided(other, self)

    def __divmod__(self, other: Value) -> Any:
        return NotImplemented if has_priority(other) else _divided(self, other)

    def __floor__(self) -> Any:
        return int(np.floor(plain(self)))

    def __ceil__(self) -> Any:
        return int(np.ceil(plain(self)))

    def __trunc__(self) -> Any:
        return int(plain(self))


def _divided(p: Any, q: Any) -> tuple[Any, Any]:
    """(p // q, p % q), with the exception of Python's `divmod`."""
    try:
        return p // q, p % q
    except ZeroDivisionError:
        return divmod(plain(p), plain(q))


def plain(value: Tree) -> Any:
    """The number or array under every level of tracing."""
    while isinstance(value, Traced):
        value = value.now()
        value = value.below() if isinstance(value, Traced) else value
    return value


def plain_deep(value: Leaf) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(plain_deep, value))
    return plain(value)


def follows(value: Leaf) -> bool:
    """Whether a value is traced; a written array that holds only constants is not."""
    if isinstance(value, list | tuple):
        return any([follows(v) for v in value])
    return isinstance(value, Traced) and value.constant() is None


def derived(result: Box, source: Any) -> Any:
    """The result of a function that gives a view of `source` in NumPy."""
    if not isinstance(source, Array) or result is source or not isinstance(result, Traced):
        return result
    if isinstance(result, Array) or not source.shape:
        return source.level.derived(result, source)
    return result


def laid(value: Shaped, lay: tuple[int, ...]) -> Any:
    """The array with the memory layout that these strides describe."""
    if isinstance(value, np.ndarray):
        return laid_out(value, lay)
    node = value.now() if isinstance(value, Traced) else value
    if isinstance(node, np.ndarray):  # a written array of constants
        return value.level.own(laid_out(node, lay))
    return node.level.laid(node, lay) if isinstance(node, Array) else node


class Scalar(Traced):
    """A traced scalar."""

    __slots__ = ("a", "b", "d", "e", "g", "v")
    __class__ = as_shown  # type: ignore[assignment]  # for isinstance

    of_type: Any = None  # the type of all numbers of the class, where they have one

    @property
    def weak(self) -> bool:
        """Whether it is a number of Python's, which takes the precision of an array it meets."""
        v = self.v
        return v.weak if isinstance(v, Scalar) else not isinstance(v, Box | np.generic)

    def typed(self) -> Any:
        """The number as NumPy's."""
        return self.level.alias(self, weak=False)

    def stands_for(self) -> type:
        """The class that the plain number has."""
        v = self.v
        return v.stands_for() if isinstance(v, Scalar) else type(plain(self))

    def __getnewargs__(self) -> tuple[Any, ...]:
        """What makes the number anew."""
        return (self,) if self.dtype.kind == "f" else (self.real, self.imag)

    def item(self, *_: Any) -> Any:
        """The number as Python's: it keeps its derivative."""
        return self.level.alias(self, weak=True)

    tolist = item

    @property
    def shape(self) -> tuple[int, ...]:
        """No axes."""
        return ()

    @property
    def T(self) -> Any:
        """The scalar itself."""
        return self

    def copy(self, *_: Any) -> Any:
        """The scalar itself: nobody can write it."""
        return self

    def astype(self, dtype: DType, order: str = "K", casting: str = "unsafe", **_: Any) -> Any:
        """The scalar in another dtype; integers and booleans are constants."""
        return self if np.dtype(dtype).kind == "O" else as_type(self, np.dtype(dtype), casting)


@in_patterns
class Array(Traced):
    """A traced array."""

    __slots__ = ("a", "b", "d", "e", "g", "k", "s", "v", "w")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # object has one; an ndarray has none
    __class__ = as_shown  # type: ignore[assignment]  # for isinstance

    def stands_for(self) -> type:
        """The class that NumPy's array has."""
        return np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.s

    @shape.setter
    def shape(self, value: Value) -> None:
        self.level.begin(self)
        self.set_shape(value)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the value."""
        return self.v.dtype

    @dtype.setter
    def dtype(self, value: str | type) -> None:
        self.view(value)  # raises where the dtype is another one

    def total(self) -> Any:
        """The sum of all elements."""
        return op("sum")(self, axis=tuple(range(self.ndim)), keepdims=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a traced array without axes")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Value) -> bool:
        return bool(np.any(self == value))

    def __getitem__(self, at: Index) -> Any:
        return self.level.getitem(self, at)

    def __setitem__(self, at: Index, value: Any) -> None:
        self.level.setitem(self, at, value)

    def __delitem__(self, at: Index) -> None:
        operator.delitem(cast(Any, np.empty(0)), at)  # raises NumPy's error

    def item(self, *at: Any) -> Any:
        """One element as Python's number, traced."""
        if not at and self.size != 1:
            raise ValueError("item() of an array with more than one element; say which")
        at = (at[0] if isinstance(at[0], tuple) else at) if at else (0,)
        flat = op("reshape")(self, shape=(self.size,)) if len(at) == 1 else self
        return flat[at].item()

    def tolist(self) -> list[Any]:
        """Nested lists of traced scalars; of an array without axes its number."""
        return [v.tolist() for v in self] if self.shape else self.item()

    def copy(self, order: str = "C") -> Any:
        """An array that may be written without changing this one."""
        return self.level.copy(self, order)

    def __copy__(self) -> Any:
        return self.copy(order="K")

    def __deepcopy__(self, memo: object) -> Any:
        return self.copy(order="K")

    def __pos__(self) -> Any:
        return self.copy(order="K")

    @property
    def lay(self) -> tuple[int, ...]:
        """The strides of NumPy's array, in elements."""
        return strides_of(self.v)

    def lying(self) -> tuple[int, ...]:
        """The strides, where values depend on them."""
        return self.lay

    @property
    def in_order(self) -> bool:
        """Whether the elements lie in memory in C order, one after the other."""
        return in_c_order(self.shape, self.lay)

    def fill(self, value: Value) -> None:
        """Write one value everywhere."""
        self[...] = value

    def astype(
        self,
        dtype: DType,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """The array in another dtype; integers and booleans are constants."""
        lay = packed(self.shape, self.lay, order)
        as_it_is = order == "K" or narrow(self.shape, lay) == narrow(self.shape, self.lay)
        if not copy and np.dtype(dtype) == self.dtype and as_it_is:
            return self
        array = as_type(self, np.dtype(dtype), casting)
        if issubclass(type(array), Scalar):
            return array.level.buffer(array)
        return array if as_it_is else laid(array, lay)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """The elements under another shape."""
        shape = shape[0] if len(shape) == 1 else shape
        array = registry.foreign[np.reshape].ours(self, shape, order, copy=copy)
        return self.only() if isinstance(array, Scalar) and not staged(array) else array

    def only(self) -> Any:
        """The only element as a view without axes."""
        return self[(*(0,) * self.ndim, ...)]

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order."""
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return registry.foreign[np.transpose].ours(self, axes or None)

    @property
    def T(self) -> Any:
        """The axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return op("permute_dims")(self, axes=(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    @property
    def flat(self) -> Any:
        """The elements in C order, to read and to write."""
        if self.ndim > 32:
            np.empty((0,) * self.ndim).flat  # noqa: B018  # which refuses so many axes
        return FlatElements(self)

    @flat.setter
    def flat(self, value: Scalar) -> None:
        self.flat[:] = value

    def view(self, dtype: DType = None, type: object = None) -> Any:
        """Another array object with the same elements; with another dtype, of constants only."""
        own = dtype is None or dtype is np.ndarray or np.dtype(dtype) == self.dtype
        if own and (type is None or type is np.ndarray):
            return self[...]
        if self.constant() is None:
            seen = dtype if type is None else type
            raise NoRuleError(f"view: {type_of(self)} has no derivative when seen as {seen}")
        plainly: np.ndarray = self.__array__()
        options = {"type": type} if type is not None else {}
        return plainly.view(**options) if dtype is None else plainly.view(dtype, **options)

    def put(self, indices: object, values: Value, mode: str = "raise") -> None:
        """self.flat[indices] = values."""
        registry.foreign[np.put].ours(self, indices, values, mode)

    def flatten(self, order: str = "C") -> Any:
        """A copy with one axis."""
        return registry.foreign[np.ravel].ours(self, order).copy()

    def sort(self, axis: int = -1, kind: object = None, order: object = None) -> None:
        """Sort in place."""
        self[...] = registry.foreign[np.sort].ours(self, axis, kind, order)


def refuse_own_rules(name: str, value: Shaped) -> None:
    """Refuse an array of objects, or of a class of its own, as a matrix or a masked array."""
    if is_of_objects(value):
        raise NoRuleError(
            f"{name}: an array of objects is calculated with element by element, which has no rule "
            "here; give an array of numbers, or calculate with its elements"
        )
    if has_own_rules(value):
        refuse_class(name, type(value))


def has_own_rules(value: object) -> bool:
    """Whether it is an array of a class that calculates otherwise than NumPy's arrays do."""
    kind = type(value)
    return issubclass(kind, np.ndarray) and kind not in (np.ndarray, np.memmap)


def refuse_class(name: str, cls: type) -> NoReturn:
    """Refuse a class whose results NumPy makes to be of that class."""
    raise NoRuleError(
        f"{name}: a {cls.__name__} has rules of its own, which are not followed here; "
        "give numpy.asarray of it"
    )


def _whole_quotient(p: Any, q: Any) -> Any:
    """p // q of the plain values, a constant; the division may raise or warn as it does there."""
    if has_priority(p) or has_priority(q):
        return operated(op("floor_divide"), p, q)
    if is_of_objects(p) or is_of_objects(q):
        return np.floor_divide(in_objects(p), in_objects(q))
    arrays = isinstance(p, Array) or isinstance(q, Array)
    if arrays or staged((p, q)):
        return op("floor_divide")(p, q)
    return plain(p) // plain(q)


def _of_plain(name: str) -> Any:
    """A method that answers for the plain number: a constant."""
    return lambda p, *args: getattr(plain(p), name)(*args)


Traced.__floordiv__ = _whole_quotient  # type: ignore[method-assign]  # in place of Box's
Traced.__rfloordiv__ = lambda p, q: _whole_quotient(q, p)  # type: ignore[method-assign]
Traced.__str__ = _of_plain("__str__")
for _name in ("__hash__", "hex", "is_integer"):
    setattr(Scalar, _name, _of_plain(_name))


def _as_ratio(x: Scalar) -> tuple[int, int]:
    """The plain number's, for the user's code; a library goes on with it in place of the number."""
    frame = sys._getframe(1)
    asker = str(frame.f_globals.get("__name__")).partition(".")[0]
    if asker in sys.stdlib_module_names or is_library_file(frame.f_code.co_filename):
        raise DetachError(
            f"{asker} calculates with the integer ratio of a traced number, which would lose its "
            "derivative; write the sum itself, or use lineara.stop_gradient(x) to mean a constant"
        )
    ratio: tuple[int, int] = plain(x).as_integer_ratio()
    return ratio


Scalar.as_integer_ratio = _as_ratio  # type: ignore[attr-defined]


def _hashed(x: Scalar, plainly: Callable[..., Any] = Scalar.__hash__) -> int:
    """The plain number's hash; refused in a library, whose caches would drop the derivative."""
    frame = sys._getframe(1)
    if is_library_file(frame.f_code.co_filename):
        raise TypeMismatchError(
            "a library looks up a traced number in a dict or a set, as in a cache: what it finds "
            "there for an equal number has another derivative; give the call a derivative with "
            "lineara.external"
        )
    x.level.asked[:] = [True]
    value = plain(x)
    return plainly(x) if value == value else object.__hash__(x)  # a NaN has its object's hash


_WRITTEN_OUT = [dis.opmap[name] for name in ("COMPARE_OP", "CONTAINS_OP")]
_COMPARING = [os.path.join(os.path.dirname(__file__), name) for name in ("node.py", "codegen.py")]
_COMPARING += ["<lineara codegen>", functools.__file__]


def refuse_found(p: Scalar, q: Value) -> None:
    """Refuse the comparison by which a dict finds an equal key; `==` in the user's code is fine.

    What a memo holds for the equal number has the derivative of that one, or none.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _COMPARING:
        frame = frame.f_back
    if p is not q and frame.f_code.co_code[frame.f_lasti] not in _WRITTEN_OUT:
        raise DetachError(
            f"a dict or a set was asked for a traced {type_of(p)} and has another number that is "
            "equal: what it holds has the derivative of that number, or none; give each "
            "differentiation a memo of its own, or ask for lineara.stop_gradient(x) to mean it"
        )


Scalar.__hash__ = _hashed  # type: ignore[method-assign]


def has_priority(other: object) -> bool:
    """Whether NumPy's arrays let the other side answer: a unit, a sparse matrix, a linear map."""
    if isinstance(other, Box):
        return False
    if getattr(type(other), "__array_ufunc__", ...) is None:
        return True
    plain = isinstance(other, np.ndarray | np.generic)
    return not plain and getattr(other, "__array_priority__", 0) > 0


def as_type(value: Traced, dtype: np.dtype, casting: Any = "unsafe") -> Any:
    """A traced value in another dtype, with its derivative; integers and flags are constants.

    A cast that NumPy refuses or warns of is refused or warned of by NumPy.
    """
    constant = dtype.kind in "biu" or not follows(value)
    if dtype.kind != "O" and not staged(value) and constant and dtype.kind not in "fc":
        array = np.asarray(plain(value)).astype(dtype, casting=casting)
        return array if isinstance(value, Array) else array[()]
    if casting == "same_value" and not np.can_cast(value.dtype, dtype):
        if staged(value):
            raise StagingError(
                f"astype: whether {type_of(value)} has the same values as {dtype} depends on "
                "staged values; cast with casting='unsafe', or test the numbers outside"
            )
        np.asarray(plain(value)).astype(dtype, casting=casting)
    elif casting != "unsafe" or (value.dtype.kind == "c" and dtype.kind in "biuf"):
        np.zeros((0,) * value.ndim, value.dtype).astype(dtype, casting=casting)
    if dtype.kind in "fcbiu":
        return op("astype")(value, dtype=dtype)
    if dtype.kind == "O":
        return objects(value)
    raise becomes_other(value, dtype)


def becomes_other(value: Value, dtype: np.dtype) -> DetachError:
    """The error for traced numbers that an array of another type was about to get."""
    what = f"traced {type_of(value)}" if isinstance(value, Traced) else "list of traced numbers"
    return DetachError(
        f"a {what} was about to become {_ODD.get(dtype.kind, dtype)}, which "
        "cannot hold its derivative; keep it as numbers, or use lineara.stop_gradient to mean it"
    )


_ODD = {
    "S": "bytes",
    "U": "text",
    "T": "text",
    "M": "moments",
    "m": "spans of time",
    "V": "records",
}


def objects(value: Shaped) -> np.ndarray:
    """np.array(value, dtype=object): its elements keep their derivatives."""
    shape = np.array(plain_deep(value), dtype=object).shape
    array = np.empty(math.prod(shape), dtype=object)
    for i, at in enumerate(np.ndindex(shape)):
        array[i] = _element(value, at)
    return array.reshape(shape)


def is_of_objects(value: Shaped) -> bool:
    """Whether a plain array, or one in a list, has dtype object: it may hold traced numbers."""
    if issubclass(type(value), list | tuple):
        return any([type(v) is np.ndarray and v.dtype.kind == "O" for v in value])
    return type(value) is np.ndarray and value.dtype.kind == "O"


def in_objects(value: Any) -> Any:
    """Traced values as arrays of objects: Python's operators calculate with their elements."""
    if issubclass(type(value), list | tuple):
        return type(value)(map(in_objects, value))
    if isinstance(value, Scalar):
        return objects(value.item())
    return objects(value) if isinstance(value, Traced) else value


def _element(value: Shaped, at: tuple[int, ...]) -> Any:
    """The element of nested sequences at an index; NumPy's numbers become Python's."""
    given, whole = value, at
    while at and isinstance(value, list | tuple):
        value, at = value[at[0]], at[1:]
    if not isinstance(value, Array | np.ndarray) or (whole and value is not given and not at):
        return value
    element = value[at]
    return element.item() if value.dtype.kind != "O" else element


class FlatElements:
    """What `x.flat` is: the elements in C order, an iterator that can be indexed and assigned."""

    __slots__ = ("_index", "base")

    def __init__(self, base: Array) -> None:
        self.base: Array = base
        self._index: int = 0

    @property
    def index(self) -> int:
        """How many elements it has given."""
        return self._index

    @property
    def coords(self) -> tuple[int, ...]:
        """The place in the array of the element that is next."""
        first, *rest = self.base.shape or (1,)
        places = np.unravel_index(self._index, (first + 1, *rest))
        return tuple([int(i) for i in places])[: self.base.ndim]

    def __len__(self) -> int:
        return self.base.size

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.copy().__array__(*args, **options)

    def copy(self) -> Any:
        """The elements as an array of their own."""
        return self.base.flatten()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self._index >= len(self):
            raise StopIteration
        self._index += 1
        return self[self._index - 1]

    def _at(self, at: Index) -> Any:
        if isinstance(at, int | np.integer) and not isinstance(at, bool):
            n = len(self)
            if not -n <= at < n:
                raise IndexError(f"index {at} is out of bounds for size {n}")
            return tuple([int(i) for i in np.unravel_index(at % n, self.base.shape)])
        if isinstance(at, Array):  # one that was made of constants in a program is known
            content = cast(Any, at).constant()
            at = at if content is None else content
        numbers = np.arange(len(self))
        chosen = numbers[at] if staged(at) else numbers.flat[cast(Any, at)]
        return np.unravel_index(chosen, self._spread().shape)

    def _spread(self) -> Any:
        """The array with at least one axis."""
        return self.base if self.base.shape else self.base[None]

    def __getitem__(self, at: Index) -> Any:
        return (self.base if isinstance(at, int | np.integer) else self._spread())[self._at(at)]

    def __delitem__(self, at: Index) -> None:
        operator.delitem(cast(Any, np.empty(0).flat), at)  # raises NumPy's error

    def __setitem__(self, at: Index, value: Box) -> None:
        if type(at) is tuple and not at:
            np.empty(len(self)).flat[at] = 0  # type: ignore[index]  # which NumPy refuses
        places = self._at(at)
        if not isinstance(at, int | np.integer):  # the values in turn, as often as they fit
            value = registry.foreign[np.resize].ours(value, places[0].shape)
            self._spread()[places] = value
            return
        self.base[places] = value


_NUMBERS = Box | np.ndarray | np.generic | int | float | complex


def _in_place(stem: str) -> Any:
    act = getattr(operator, f"{stem}_" if stem in ("and", "or") else stem)
    in_memory = getattr(operator, f"i{stem}")

    def method(self: Any, other: Any) -> Any:
        values = self.memory(to_write=True)
        plain_other = other.memory() if isinstance(other, Array) else other
        if values is not None and type(plain_other) in (float, int, np.ndarray, np.float64):
            try:
                in_memory(values, plain_other)
            except (ValueError, TypeError):  # the general way raises a clearer error
                pass
            else:
                self.rewritten()
                return self
        y = act(self, other)
        if not issubclass(type(y), _NUMBERS):  # the other one's answer
            if getattr(type(other), "__array_ufunc__", ...) is None:
                in_memory(np.empty(0), other)  # raises NumPy's error
            return y
        if is_of_objects(y):
            in_memory(np.empty(self.shape, self.dtype), in_objects(other))  # raises NumPy's error
        if not np.can_cast(type_of(y).dtype, self.dtype, "same_kind"):
            shown = layout(other) if isinstance(other, Traced) else other
            in_memory(np.empty(self.shape, self.dtype), shown)  # raises NumPy's error
        return self.level.assign_all(self, y)

    method.__name__ = f"__i{stem}__"
    return method


_STEMS = "add sub mul truediv pow mod floordiv matmul lshift rshift and xor or"
for _name in _STEMS.split():
    setattr(Array, f"__i{_name}__", _in_place(_name))


class OfArray:
    """What an argument that is an array without axes has beside a number: it refuses writes.

    It is a number in a differentiation and in a program, so other names of the array would not
    see what is written.
    """

    __slots__ = ()

    def stands_for(self) -> type:
        """The class that NumPy's array has."""
        return np.ndarray

    def _refuse(self, *_: object) -> Any:
        raise MutationError(
            f"an argument that is an array without axes ({show(type_of(self))}) was written in "
            "place, which its other names would not see: it is a number here; bind a new value, "
            "t = t + 1, or write into a copy, t.copy()"
        )

    def copy(self: Any, *_: str) -> Any:
        """A number that is no array."""
        return self * 1

    __setitem__ = _refuse


for _name in _STEMS.split():
    setattr(OfArray, f"__i{_name}__", OfArray._refuse)


_MEMORY = ("__array_interface__", "__array_struct__", "data", "tobytes", "tofile", "dump", "dumps")
withhold(Scalar, "__array__", *_MEMORY)
withhold(Array, "__array__", *_MEMORY, "__dlpack__", "__dlpack_device__", "ctypes")
withhold(Array, "__array__", "strides", "flags", "base", "getfield", "byteswap")


# --- values that have a type only --------------------------------------------------------------


def staged(value: Any) -> bool:
    """Whether a value is staged: at some level below it there is only a type."""
    if issubclass(type(value), list | tuple):
        return any([staged(v) for v in value])
    while issubclass(type(value), Traced):
        value = value.now()
        if issubclass(type(value), Traced):
            if not value.known:
                return True
            value = value.v
    return False


def layout(value: Any) -> Any:
    """The plain value; for a staged value, which has only a type, zeros of that type."""
    if not staged(value):
        return plain(value)
    t = type_of(value)
    if issubclass(type(value), Scalar):
        return t.dtype.type(0).item() if value.weak else t.dtype.type(0)
    return laid_out(np.zeros(t.shape, t.dtype), strides_of(value))


__all__ = ["Array", "Scalar", "Traced", "check_index", "innermost", "is_basic", "plain", "read"]

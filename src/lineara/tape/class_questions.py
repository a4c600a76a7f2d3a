"""What a traced value shows to code that asks what it is: what NumPy's value would answer.

`isinstance`, patterns, `functools.singledispatch` and the abstract classes all ask for
`x.__class__`.  Our own code asks too, and sees the traced class itself.  An `isinstance` that says
no is slow therefore: where it often does, on hot paths, we ask `issubclass(type(x), ...)`.
"""

import dis
import functools
import inspect
import sys
from abc import ABCMeta
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from lineara.errors import DetachError, NoRuleError, is_own_file
from lineara.facts.hints import Shaped, Value
from lineara.facts.registry import registry
from lineara.facts.types import type_of
from lineara.tape.strides import overlap, strides_of

C = TypeVar("C", bound=type)
_ABSTRACT = "<frozen abc>"  # isinstance asks an abstract class there, for its caller
# Modules of classes with rules of their own: where they meet a class unknown to them, ours answers.
_OWN_RULES = {"fractions", "numpy.matrixlib.defmatrix", "scipy.sparse._base"}
_OWN_RULES |= {"scipy.sparse._sputils"}
_OWN_RULES |= {"pandas.core.ops.array_ops", "xarray.core.variable", "xarray.namedarray.core"}
_PRODUCTS = ("_matmul_dispatch", "_divide", "multiply", "_multiply_2d_with_broadcasting")
_PATTERN = dis.opmap["MATCH_CLASS"]
_OPERATOR, _REMAINDERS = dis.opmap["BINARY_OP"], (6, 19)  # % and %=
_INDEXES = [dis.opmap[name] for name in ("BINARY_SUBSCR", "STORE_SUBSCR") if name in dis.opmap]
_SEQUENCE = 1 << 5  # CPython's flag of the classes that sequence patterns take apart


def class_shown(value: Any) -> type:
    """The class that the code now running should see."""
    frame: Any = sys._getframe(1)
    if frame.f_code.co_filename == _ABSTRACT:
        frame = frame.f_back
    if frame.f_code.co_name == "isscalar" and frame.f_back is not None:  # NumPy's, for its caller
        frame = frame.f_back
    asker = frame.f_globals.get("__name__")
    if asker == "fractions" and frame.f_code.co_name in ("__new__", "from_float"):
        raise DetachError(
            "a Fraction of a traced number would lose its derivative; compute with floats, or give "
            "it lineara.stop_gradient(x) to mean a constant"
        )
    if is_own_file(frame.f_code.co_filename) or asker in _OWN_RULES:
        return type(value)
    if asker == "json.encoder" and not value.shape:  # json writes the digits of a float
        return type(value.__float__())
    if type(frame.f_globals) is not dict and _reads_class(frame):  # a copy of the user's function
        cls = type_shown(value)
        return registry.number_class(cls) or cls
    shown: type = value.stands_for()
    return shown


def _reads_class(frame: FrameType) -> bool:
    """Whether a function names `__class__`; a pattern asks for it too, as isinstance does."""
    code = frame.f_code
    return "__class__" in code.co_names and code.co_code[frame.f_lasti] != _PATTERN


# Whoever is registered here gets the flag, and is no `collections.abc.Sequence` by it.
_Sequences: Any = ABCMeta("_Sequences", (), {"__abc_tpflags__": _SEQUENCE})


def in_patterns(cls: C) -> C:
    """The class of arrays, which `case [a, b]` takes apart if it does NumPy's: from 2.5 on."""
    if np.ndarray.__flags__ & _SEQUENCE:
        _Sequences.register(cls)
    return cls


def formats(frame: FrameType) -> bool:
    """Whether the operator % of a text asks for a float."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == _OPERATOR and code[at + 1] in _REMAINDERS


def asks_as_index(frame: FrameType) -> bool:
    """Whether the user's code is indexing: `__index__` is called for what stands in brackets."""
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_code[frame.f_lasti] in _INDEXES


def asks_who_multiplies(frame: FrameType) -> bool:
    """Whether a product of SciPy's sparse matrices asks what class the other factor has."""
    module = frame.f_globals.get("__name__", "")
    if frame.f_code.co_name not in _PRODUCTS or not module.startswith("scipy.sparse."):
        return False
    asker: Any = frame
    while asker is not None and asker.f_globals.get("__name__", "").startswith("scipy.sparse."):
        if asker.f_code.co_name.startswith("__"):  # an operator may return NotImplemented
            return True
        asker = asker.f_back
    return frame.f_code.co_name == "_matmul_dispatch"


def in_object(value: Value) -> np.ndarray:
    """The value in an array of objects: a sparse matrix leaves such a product to the value."""
    array = np.empty((), object)
    array[()] = value
    return array


# The object's own `__class__` is set when an array turns into one that was written.
as_shown: property = property(class_shown, vars(object)["__class__"].__set__)


def type_shown(value: Any) -> type:
    """What type() says of a traced value."""
    shown: type = value.stands_for()
    return shown


class TracedAddress:
    """What stands for the address of an array that is made in a trace: to use it is refused."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def _refuse(self, *_: Any) -> Any:
        raise DetachError(
            f"{self.__name__}: what is written at the address of an array that is made in a "
            "differentiated function would be lost; take a plain copy, np.array(y.tolist()), "
            "and write it back with y[...] = copy"
        )

    __getattr__ = _refuse
    __getitem__ = _refuse
    __iter__ = _refuse
    __int__ = _refuse
    __index__ = _refuse


class Withheld:
    """An attribute of NumPy's value that gives its memory or its digits away.

    It is refused, not missing: code that asks `hasattr` would take another branch.
    """

    def __init__(self, name: str, way: str) -> None:
        self.name = name
        self.way = way  # the method that refuses, or gives a plain value where nothing is traced

    def __get__(self, value: Any, owner: type) -> Any:
        if value is None:
            return self
        if self.name.startswith("__array_"):
            frame = sys._getframe(1)  # `__array__` tells an index from what is stored, by a dtype
            if asks_who_multiplies(frame) or (not value.size and asks_as_index(frame)):
                raise AttributeError(self.name)
        constant = value.constant() if self.name in ("flags", "strides") else None
        if constant is not None:  # what it says of itself gives nothing away
            constant.flags.writeable = not overlap(constant.shape, strides_of(constant))
            return constant.strides if self.name == "strides" else Flags(constant.flags)
        attribute = getattr(getattr(value, self.way)(), self.name)
        if self.name == "__array_interface__":
            return attribute | {"data": TracedAddress(self.name)}
        if self.name == "__dlpack__":
            return functools.partial(_exported, attribute)
        return TracedAddress(self.name) if self.name == "ctypes" else attribute


def _exported(export: Callable[..., Any], **options: Any) -> Any:
    """The memory of a constant array, for who says that it is only read."""
    try:
        return export(**options)
    except BufferError as e:
        raise DetachError(
            f"DLPack exports the array of a trace as memory that is only read ({e}): what another "
            "library writes there would be lost; ask for max_version=(1, 0), or give a plain copy, "
            "np.array(x.tolist())"
        ) from None


class Flags:
    """What NumPy's array says in its `flags`; to be read only, and not of who has its memory."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        object.__setattr__(self, "_of", of)

    def __getattr__(self, name: str) -> Any:
        if name == "owndata":
            raise NoRuleError(
                "flags.owndata of an array that is made in a trace: which array owns its memory is "
                "not known; take a.copy() for one that does"
            )
        return getattr(self._of, name)

    def __getitem__(self, name: str) -> Any:
        return self.owndata if name in ("O", "OWNDATA") else self._of[name]

    def __setattr__(self, name: str, value: object) -> None:
        raise NoRuleError(
            f"flags.{name} = {value} of an array that is made in a trace has no effect there: "
            "lineara keeps what it needs from being written"
        )

    def __setitem__(self, name: str, value: object) -> None:
        setattr(self, name.lower(), value)

    def __repr__(self) -> str:
        return repr(self._of)


class Hidden:
    """An attribute of NumPy's numbers that Python's have not: there for our own code only."""

    def __init__(self, name: str, own: object, shown: type) -> None:
        self.name = name
        self.own = own
        self.shown = shown

    def __get__(self, value: Any, owner: type) -> Any:
        if value is None:
            return self.own
        if not value.weak or is_own_file(sys._getframe(1).f_code.co_filename):
            get = getattr(type(self.own), "__get__", None)
            return self.own if get is None else get(self.own, value, owner)
        raise AttributeError(f"'{self.shown.__name__}' object has no attribute '{self.name}'")


def hidden(cls: type, numpys: type, pythons: type) -> dict[str, Hidden]:
    """Descriptors for what `cls` answers as a number of NumPy's and not as one of Python's."""
    names = [n for n in dir(numpys) if not n.startswith("__") and not hasattr(pythons, n)]
    own = {n: inspect.getattr_static(cls, n, None) for n in names}
    return {n: Hidden(n, v or Lacking(n), pythons) for n, v in own.items()}


class Lacking:
    """An attribute of NumPy's value without a rule: refused, so that `getattr` finds no default."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, value: Shaped, owner: type) -> Any:
        if value is None:
            return self
        raise NoRuleError(
            f"{self.name}: a traced {type_of(value)} has no such attribute; use the functions of "
            "NumPy that have a rule"
        )


def lacking(cls: type, numpys: type) -> dict[str, Lacking]:
    """Descriptors for what a value of NumPy's has and `cls` does not answer."""
    names = [n for n in dir(numpys) if not n.startswith("__") and not hasattr(cls, n)]
    return {n: Lacking(n) for n in names}


def withhold(cls: type, way: str, *names: str) -> None:
    """Refuse these attributes of a class, as the method `way` refuses."""
    for name in names:
        setattr(cls, name, Withheld(name, way))

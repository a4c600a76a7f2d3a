"""Functions outside that code calls: the C library's, and the loops of NumPy's ufuncs.

Python's `math` calls the C library, and a ufunc runs one of its loops, whose addresses stand in the
object, as NumPy's header says.  So what is called here is what the interpreter calls, to the bit.
A look at the object comes first: where it does not look as the header says, there are no loops.
"""

import ctypes
import importlib
import os
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lineara.ops.blas_threads import scipys_threads

CODES = {
    "f64": "d", "f32": "f", "c128": "D", "bool": "?",
    "i64": "l" if np.dtype("l").itemsize == 8 else "q",
}  # fmt: skip
_HEAD = object.__basicsize__  # where the fields of an array begin
FIELDS = {
    "CLASS": _HEAD - 8, "DATA": _HEAD, "AXES": _HEAD + 8, "DIMS": _HEAD + 16,
    "STRIDES": _HEAD + 24, "DTYPE": _HEAD + 40, "FLAGS": _HEAD + 48,
}  # fmt: skip
"""Where the class of an object and the fields of an array stand, as the headers say."""
OF_FUNCTION = {"CODE": _HEAD + 32, "DEFAULTS": _HEAD + 40, "OPTIONS": _HEAD + 48}
"""Where a function of Python's has its code, and the defaults of its parameters."""


class Loop(NamedTuple):
    """A loop of a ufunc: where its code is, the data that it wants, and for which kinds it is."""

    address: int
    data: int
    of: tuple[np.ufunc, tuple[str, ...], str]


@cache
def c_function(name: str) -> int | None:
    """The address of a function of the C library that the process has."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):
        return None


@cache
def numpy_loop(f: np.ufunc, kinds: tuple[str, ...], result: str) -> Loop | None:
    """The loop that a ufunc has for these kinds, if the object is what NumPy's header says."""
    plain = f.signature is None and all([k in CODES for k in (*kinds, result)])
    if not plain or not _is_as_stated(f):
        return None
    wanted = "".join([CODES[k] for k in kinds]) + "->" + CODES[result]
    if wanted not in f.types:
        return None
    functions, data = _words(f)[:2]
    at = 8 * f.types.index(wanted)
    address = ctypes.c_void_p.from_address(functions + at).value
    if address is None:
        return None
    data = ctypes.c_void_p.from_address(data + at).value or 0
    return Loop(address, data, (f, kinds, result))


@cache
def steps_of_one(loop: Loop) -> tuple[int, ...] | None:
    """The strides with which a loop makes of numbers what NumPy makes of them, to the bit.

    Of complex numbers a loop may calculate otherwise where a stride is zero, and which ones NumPy
    passes depends on the number of arguments: it is tried at many points.
    """
    f, kinds, result = loop.of
    sizes = tuple([np.dtype(CODES[k]).itemsize for k in (*kinds, result)])
    if "c128" not in (*kinds, result):
        return (0,) * len(sizes)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop.address)
    rng, n = np.random.default_rng(0), np.array([1])
    drawn = rng.normal(size=(64, len(kinds))) + 1j * rng.normal(size=(64, len(kinds)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [
            [
                np.array([z if k == "c128" else z.real], CODES[k])
                for z, k in zip(row, kinds, strict=True)
            ]
            for row in drawn
        ]
        for steps in ((0,) * len(sizes), sizes):
            strides, same = np.array(steps), True
            for row in rows:
                y = np.zeros(1, CODES[result])
                places = np.array([x.ctypes.data for x in (*row, y)])
                call(places.ctypes.data, n.ctypes.data, strides.ctypes.data, loop.data)
                same = same and np.array(f(*[x[0] for x in row])).tobytes() == y.tobytes()
            if same:
                return steps
    return None


def _words(f: np.ufunc) -> tuple[int, int, int, int, int]:
    """The addresses of the functions, of their data, how many there are, the name, the types."""
    at = id(f) + object.__basicsize__ + 16
    functions, data, name, types = [
        ctypes.c_void_p.from_address(at + i).value or 0 for i in (0, 8, 24, 32)
    ]
    return functions, data, ctypes.c_int.from_address(at + 16).value, name, types


def _is_as_stated(f: np.ufunc) -> bool:
    """Whether the numbers of arguments, the name and the types stand where they should."""
    at = id(f) + object.__basicsize__
    numbers = [ctypes.c_int.from_address(at + 4 * i).value for i in range(3)]
    if numbers != [f.nin, f.nout, f.nargs] or not f.types:
        return False
    functions, data, n, name, types = _words(f)
    if n != len(f.types) or not (functions and data and name and types):
        return False
    text = "".join([t.replace("->", "") for t in f.types])
    codes = bytes(ctypes.string_at(types, len(text)))
    return ctypes.string_at(name) == f.__name__.encode() and codes == bytes(
        [np.dtype(c).num for c in text]
    )


@cache
def objects_are_as_stated() -> bool:
    """Whether classes of objects and fields of arrays stand where the headers say."""
    word = ctypes.c_void_p.from_address
    things: list[Any] = [1, 2.5, "text", (), [1], {}, np.zeros(3), np.ndarray, word]
    if any([word(id(x) + FIELDS["CLASS"]).value != id(type(x)) for x in things]):
        return False
    grid = np.arange(24.0).reshape(2, 3, 4)
    number = ctypes.c_int64.from_address
    for x in (
        grid,
        grid[1, :, ::-2],
        grid.T,
        grid.astype(np.int32),
        np.zeros(()),
        np.zeros((0, 5)),
    ):
        at, axes = id(x), x.ndim
        dims, strides = (
            word(at + FIELDS["DIMS"]).value or 0,
            word(at + FIELDS["STRIDES"]).value or 0,
        )
        same = (
            word(at + FIELDS["DATA"]).value == x.__array_interface__["data"][0]
            and ctypes.c_int.from_address(at + FIELDS["AXES"]).value == axes
            and word(at + FIELDS["DTYPE"]).value == id(x.dtype)
            and ctypes.c_int.from_address(at + FIELDS["FLAGS"]).value == x.flags.num
            and [number(dims + 8 * i).value for i in range(axes)] == [*x.shape]
            and [number(strides + 8 * i).value for i in range(axes)] == [*x.strides]
        )
        if not same:
            return False
    return True


@cache
def functions_are_as_stated() -> bool:
    """Whether functions of Python's have their fields where the headers say; null is None."""
    word = ctypes.c_void_p.from_address

    def plain(x: object) -> object:
        return x

    def given(x: object = 1, *, y: object = 2) -> object:
        return x, y

    for f in (plain, given):
        there = [word(id(f) + at).value or id(None) for at in OF_FUNCTION.values()]
        if there != [id(f.__code__), id(f.__defaults__), id(f.__kwdefaults__)]:
            return False
    return True


@cache
def array_maker() -> int | None:
    """The address of NumPy's PyArray_New, where it makes what its header says."""
    api = ctypes.pythonapi
    pointer = api.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        table = pointer(importlib.import_module("numpy._core.multiarray")._ARRAY_API, None)
    except (ImportError, AttributeError, ValueError):
        return None
    functions = (ctypes.c_void_p * (ARRAY_NEW + 1)).from_address(table)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(functions[0])()
    address = functions[ARRAY_NEW]
    if version not in ARRAY_VERSIONS or address is None or not objects_are_as_stated():
        return None
    none, sizes = ctypes.c_void_p(), (ctypes.c_ssize_t * 2)(2, 3)
    kinds = [ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 2]
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    made = new(address)(np.ndarray, 2, sizes, np.dtype(float).num, none, none, 0, 0, none)
    fine = type(made) is np.ndarray and made.shape == (2, 3) and made.dtype == float
    return address if fine and made.flags.c_contiguous and made.flags.owndata else None


ARRAY_NEW = 93  # PyArray_New in the table of NumPy's C interface
ARRAY_VERSIONS = (0x01000009, 0x02000000)  # of NumPy 1 and 2: the table has had it there since


@cache
def adds_as_sum(kind: str) -> Loop | None:
    """The loop of NumPy's sum, if sums of some rows are what it adds to zero, to the bit."""
    loop, dtype = numpy_loop(np.add, (kind, kind), kind), np.dtype(CODES[kind])
    if loop is None:
        return None
    add = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop.address)
    for n in (1, 7, 130, 1000, 20_001):
        x, total = np.sin(np.arange(n) ** 2.0).astype(dtype), np.zeros(1, dtype)
        places, strides = np.zeros(3, np.intp), np.array([0, dtype.itemsize, 0])
        places[:] = total.ctypes.data, x.ctypes.data, total.ctypes.data
        size = np.array([n])
        add(places.ctypes.data, size.ctypes.data, strides.ctypes.data, loop.data)
        if total[0] != np.sum(x):
            return None
    return loop


def named(name: str, loops: Mapping[str, Any]) -> int | None:
    """The address of what code calls by a name; of a loop of NumPy's it is told which one it is."""
    family, _, rest = name.partition(".")
    if family == "numpy":
        f = loops.get(name.removesuffix(".data"))
        loop = None if f is None else numpy_loop(*f)
        return loop and (loop.data if name.endswith(".data") else loop.address)
    families = {"c": c_function, "py": address_of, "blas": blas, "lapack": lapack}
    of = (families | {"threads": of_threads}).get(family)
    return None if of is None else of(rest)


@cache
def address_of(name: str) -> int | None:
    """Where a function of Python's C interface, or of the C library, is."""
    for library in (ctypes.pythonapi, ctypes.CDLL(None)):
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


@cache
def blas(name: str) -> int | None:
    """The address of a routine of the BLAS that SciPy has; it takes everything by address."""
    return _capsule("scipy.linalg.cython_blas", name)


@cache
def lapack(name: str) -> int | None:
    """The same of LAPACK."""
    return _capsule("scipy.linalg.cython_lapack", name)


def _capsule(module: str, name: str) -> int | None:
    """The address in a capsule of a module that is loaded when it is first needed."""
    try:
        capsule = importlib.import_module(module).__pyx_capi__[name]
    except (ImportError, AttributeError, KeyError):
        return None
    api = ctypes.pythonapi
    named = api.PyCapsule_GetName
    named.restype, named.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = api.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, named(capsule))


@cache
def of_threads(name: str) -> int | None:
    """The functions that tell and set how many threads SciPy's BLAS has, and that tell of NumPy's.

    `state` is three words: a lock, how many calls are inside, and how many threads there were.
    """
    alone = scipys_threads()
    if alone is None:
        return None
    if name == "state":
        words = (ctypes.c_int64 * 3)()
        os.register_at_fork(after_in_child=lambda: ctypes.memset(words, 0, ctypes.sizeof(words)))
        return ctypes.addressof(words)
    function: Any = {"get": alone.ours.get, "set": alone.ours.set, "other": alone.other.get}[name]
    return ctypes.cast(function, ctypes.c_void_p).value

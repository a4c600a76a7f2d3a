"""Functions outside that code calls: the C library's, and the loops of NumPy's ufuncs.

Python's `math` calls the C library, and a ufunc runs one of its loops, whose addresses stand in the
object, as NumPy's header says.  So what is called here is what the interpreter calls, to the bit.
A look at the object comes first: where it does not look as the header says, there are no loops.
"""

import ctypes
import importlib
from functools import cache
from typing import NamedTuple

import numpy as np

KINDS = {"f64": "d", "bool": "?"}


class Loop(NamedTuple):
    """A loop of a ufunc: where its code is, and the data that it wants."""

    address: int
    data: int


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
    plain = f.signature is None and all([k in KINDS for k in (*kinds, result)])
    if not plain or not _is_as_stated(f):
        return None
    wanted = "".join([KINDS[k] for k in kinds]) + "->" + KINDS[result]
    if wanted not in f.types:
        return None
    functions, data = _words(f)[:2]
    at = 8 * f.types.index(wanted)
    address = ctypes.c_void_p.from_address(functions + at).value
    if address is None:
        return None
    return Loop(address, ctypes.c_void_p.from_address(data + at).value or 0)


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
def adds_as_sum() -> Loop | None:
    """The loop of NumPy's sum, if sums of some rows are what it adds to zero, to the bit."""
    loop = numpy_loop(np.add, ("f64", "f64"), "f64")
    if loop is None:
        return None
    add = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop.address)
    for n in (1, 7, 130, 1000, 20_001):
        x, total = np.sin(np.arange(n) ** 2.0), np.zeros(1)
        places, strides = np.zeros(3, np.intp), np.array([0, 8, 0])
        places[:] = total.ctypes.data, x.ctypes.data, total.ctypes.data
        size = np.array([n])
        add(places.ctypes.data, size.ctypes.data, strides.ctypes.data, loop.data)
        if total[0] != np.sum(x):
            return None
    return loop


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

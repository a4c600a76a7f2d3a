"""A class whose instances are called by machine code, each by code of its own or by none.

    class with_room(Base): what Base is, and two words: a vectorcallfunc, and what that reads

Python calls an instance by the address in its first word, and by `__call__` where there is none
[PEP 590].  The class is made by `PyType_FromSpecWithBases` with a member `__vectorcalloffset__`,
which Python documents; nothing is assumed about how objects are laid out.
"""

import ctypes
import sys
from functools import cache

MEMBERS = 72  # Py_tp_members, in the stable ABI
PLACE, READ_ONLY = 19, 1  # T_PYSSIZET, READONLY
FLAGS = 1 << 9 | 1 << 10 | 1 << 11  # HEAPTYPE, BASETYPE, HAVE_VECTORCALL
WORD = ctypes.sizeof(ctypes.c_void_p)


class Member(ctypes.Structure):
    """Python's PyMemberDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


class Slot(ctypes.Structure):
    """Python's PyType_Slot."""

    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class Spec(ctypes.Structure):
    """Python's PyType_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint), ("slots", ctypes.c_void_p),
    )  # fmt: skip


@cache  # a class lives as long as what describes it
def _made(base: type) -> tuple[type, tuple[ctypes.Array[Member], ctypes.Array[Slot], Spec]] | None:
    """A class with room, and what Python may read of its description as long as it lives."""
    if WORD != 8 or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    name = f"{base.__module__}.{base.__qualname__}".encode()
    place = base.__basicsize__
    members = (Member * 2)(Member(b"__vectorcalloffset__", PLACE, place, READ_ONLY, None))
    slots = (Slot * 2)(Slot(MEMBERS, ctypes.addressof(members)))
    spec = Spec(name, place + 2 * WORD, 0, FLAGS, ctypes.addressof(slots))
    try:
        new = ctypes.pythonapi.PyType_FromSpecWithBases
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
        made = new(ctypes.addressof(spec), (base,))
    except (AttributeError, TypeError, SystemError):  # another Python has no such function
        return None
    return made, (members, slots, spec)


def with_room(base: type) -> type:
    """A class derived from one, with room for machine code; the class itself where there is none.

    >>> class Plain:
    ...     def __call__(self, x):
    ...         return 2 * x
    >>> made = with_room(Plain)
    >>> made.__name__, made()(3)
    ('Plain', 6)
    """
    made = _made(base)
    return base if made is None else made[0]


def set_code(x: object, base: type, code: int = 0, table: int = 0) -> None:
    """Have an instance of `with_room(base)` called by the code at an address; 0: by `__call__`.

    >>> class Plain:
    ...     def __call__(self, x):
    ...         return 2 * x
    >>> x = with_room(Plain)()
    >>> set_code(x, Plain)
    >>> x(3)
    6
    """
    if _made(base) is None:
        return
    at = id(x) + base.__basicsize__
    word = ctypes.c_void_p.from_address
    word(at).value = None  # the code is never called with another table
    word(at + WORD).value = table
    word(at).value = code or None


__all__ = ["WORD", "set_code", "with_room"]

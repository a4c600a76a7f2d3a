"""Where the stack of the main thread lies, so that a recursion ends before it does."""

import ctypes
import sys
import threading
from typing import Any


class _Attributes(ctypes.Structure):
    _fields_ = (("words", ctypes.c_int64 * 16),)


def ends_of_stack() -> tuple[int, int]:
    """Where the stack of the main thread lies; (0, 0) in another thread, or if that is not known.

    Other threads come and go, and other stacks would lie where theirs were.
    """
    if threading.current_thread() is not threading.main_thread():
        return 0, 0
    try:
        return _ends_of_this()
    except (AttributeError, OSError):
        return 0, 0


def _ends_of_this() -> tuple[int, int]:
    """Where the stack of this thread lies."""
    library: Any = ctypes.CDLL(None)
    me = library.pthread_self
    me.restype = ctypes.c_void_p
    thread, size, begin = ctypes.c_void_p(me()), ctypes.c_size_t(), ctypes.c_void_p()
    if sys.platform == "darwin":
        top, length = library.pthread_get_stackaddr_np, library.pthread_get_stacksize_np
        top.restype, length.restype = ctypes.c_void_p, ctypes.c_size_t
        high = int(top(thread))
        return high - int(length(thread)), high
    attributes = _Attributes()
    if library.pthread_getattr_np(thread, ctypes.byref(attributes)):
        return 0, 0
    library.pthread_attr_getstack(ctypes.byref(attributes), ctypes.byref(begin), ctypes.byref(size))
    library.pthread_attr_destroy(ctypes.byref(attributes))
    low = begin.value or 0
    return low, low + size.value


__all__ = ["ends_of_stack"]

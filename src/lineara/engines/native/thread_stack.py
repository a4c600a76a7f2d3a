"""Where the stack of a thread lies, so that a recursion ends before it does."""

import contextlib
import ctypes
import sys
import threading
from typing import Any

import numpy as np


class _Attributes(ctypes.Structure):
    _fields_ = (("words", ctypes.c_int64 * 16),)


_KNOWN = threading.local()


def ends_of_stack() -> np.ndarray:
    """Where the stack of this thread lies, in memory that lasts as the thread does; or zeros."""
    ends: np.ndarray | None = getattr(_KNOWN, "ends", None)
    if ends is None:
        ends = _KNOWN.ends = np.zeros(2, np.int64)
        with contextlib.suppress(AttributeError, OSError):
            ends[:] = _ends_of_this()
    return ends


def _ends_of_this() -> tuple[int, int]:
    """Where the stack of this thread lies."""
    if sys.platform == "win32":
        low, high = ctypes.c_size_t(), ctypes.c_size_t()
        windows: Any = ctypes.WinDLL("kernel32")
        windows.GetCurrentThreadStackLimits(ctypes.byref(low), ctypes.byref(high))
        return low.value, high.value
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

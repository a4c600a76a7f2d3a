"""What a captured function may call: a program runs it again, and what it calls runs once.

Lineara's own functions, the user's, those of installed libraries, and those of Python's library
that give the same for the same arguments may be called.  What asks for the time, reads or writes a
file, draws a number that no seed decides, or looks at the process is refused where it is called.
"""

import builtins
import dataclasses
import functools
import random
import sys
import time
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from lineara.errors import StagingError, is_own_file
from lineara.python.namespaces import Namespace
from lineara.python.structured_code import structured
from lineara.python.user_code import reading
from lineara.staging.capture.lists import new

# Modules of Python's library that give the same for the same arguments, `_x` being part of `x`.
_SAME = frozenset(
    """
    abc array ast base64 binascii bisect builtins calendar cmath codecs collections colorsys
    contextlib contextvars copy copyreg csv dataclasses datetime difflib dis enum fractions
    functools genericpath graphlib hashlib heapq html importlib inspect itertools json keyword
    math numbers ntpath opcode operator posixpath pprint queue random re reprlib sre statistics
    string struct textwrap thread threading token tokenize traceback types typing unicodedata
    warnings weakref zlib
    """.split()  # noqa: SIM905
)

# What else of these and of NumPy, SciPy and their neighbours is not, by the end of its name.
_NOT = {
    "lineara": {"globals"},
    "builtins": {"open", "input", "breakpoint", "help", "globals", "exit", "quit"},
    "datetime": {"now", "today", "utcnow"},
    "genericpath": {"exists", "isfile", "isdir", "islink", "getsize", "getmtime", "getatime"},
    "posixpath": {"abspath", "realpath", "expanduser", "expandvars", "ismount", "lexists"},
    "random": {"SystemRandom", "seed", "setstate"},
    "thread": {"start_new_thread", "get_ident", "get_native_id"},
    "threading": {"start", "get_ident", "get_native_id"},
    "numpy": {
        *("load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "tofile", "dump"),
        *("save", "savetxt", "savez", "savez_compressed", "seterr", "seterrcall", "setbufsize"),
        *("seed", "set_state", "get_printoptions", "set_printoptions", "open_memmap"),
    },
}
_NOT["ntpath"] = _NOT["posixpath"]
_READERS = ("read_", "open_", "load_", "fetch_", "save_")  # of pandas, xarray and their like
_STORES = ("scipy.io", "scipy.datasets")
_DRAW = (random.Random, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)


def asked(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is called; an error if it would run once for all runs of the program."""
    if f is list:
        return lambda *args: new(list(*args))
    now = reading()
    if now is None:
        return f
    g = f.__func__ if isinstance(f, MethodType) else f
    if type(g) is FunctionType and type(g.__globals__) is Namespace:
        now.called.add(g.__code__)
        return f
    if not now.calls:
        return f
    inner: Any = f
    while type(inner) is functools.partial:
        inner = inner.func
    module, name = _home(inner)
    if _is_outside(module, name):
        raise refusal(name)
    seeded = inner is np.random.default_rng or (
        isinstance(inner, type) and issubclass(inner, _DRAW)
    )
    return _seeded(f) if seeded else f


def with_lists(f: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a function; of a dataclass, its fields that begin as empty lists can be staged.

    What a dataclass calls to make them is not read, as its `__init__` has no source.
    """
    if not isinstance(f, type) or not hasattr(f, "__dataclass_fields__"):
        return call
    fields: Mapping[str, dataclasses.Field[Any]] = f.__dataclass_fields__
    names = [n for n, field in fields.items() if field.default_factory is list]
    if not names or hasattr(f, "__post_init__"):  # which may hold the list under another name
        return call

    def made(*args: Any, **options: Any) -> Any:
        y = call(*args, **options)
        given = [*args, *options.values()]
        for n in names:
            values = getattr(y, n)
            if type(values) is list and not any([values is v for v in given]):
                object.__setattr__(y, n, new(values))
        return y

    return made


def refuse_unread(f: FunctionType, names: Mapping[str, object]) -> None:
    """Refuse a function whose calls are not asked for, if it names what is outside of a program."""
    said = [n for n, v in names.items() if _leads_outside(v, names)]
    why = structured(f) if said else ""
    if isinstance(why, str) and said:
        raise StagingError(
            f"{f.__name__} names {said[0]}, and whether it calls that is not known, since {why}: a "
            "program would not call it again; call it outside of the function, and pass what it "
            "gives"
        )


def _leads_outside(v: object, names: Mapping[str, object]) -> bool:
    """Whether what a name stands for may be asked for what is outside of a program."""
    if isinstance(v, ModuleType):
        module, name = v.__name__, ""
    elif callable(v):
        module, name = _home(v)
    else:
        return any([_is_outside(c.__module__, c.__qualname__) for c in type(v).__mro__])
    part = module.partition(".")[0].lstrip("_")
    return _is_outside(module, name) or not _NOT.get(part, set()).isdisjoint(names)


def once(f: Callable[..., Any]) -> Any:
    """A function that is only called outside of programs, however it is reached."""

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        now = reading()
        if now is not None and now.calls:
            raise refusal(f.__name__)
        return f(*args, **options)

    return call


def refusal(name: str) -> StagingError:
    """The error for a call that a program could not repeat when it runs."""
    return StagingError(
        f"{name} would be called once, as the program is written, and not in each call of it; "
        "call it outside of the function, and pass what it gives"
    )


def _home(f: Callable[..., Any]) -> tuple[str, str]:
    """The module of a callable, and its name there."""
    if isinstance(f, MethodType):
        f = f.__func__
    if isinstance(f, FunctionType):
        own = is_own_file(f.__code__.co_filename)
        return ("lineara" if own else f.__module__ or ""), f.__qualname__
    owner: Any = f.__self__ if isinstance(f, BuiltinFunctionType) else f
    if isinstance(owner, ModuleType):
        return owner.__name__, f.__name__
    kind: type = owner if isinstance(owner, type) else type(owner)
    if "function_or_method" in kind.__name__:  # of compiled code
        return str(f.__module__ or ""), f.__qualname__
    method = "" if owner is f else f".{f.__name__}"
    for c in kind.__mro__:  # a class of the user's may be derived from one of a file's
        if _is_outside(c.__module__, f"{c.__qualname__}{method}"):
            return c.__module__, f"{kind.__qualname__}{method}"
    return kind.__module__, f"{kind.__qualname__}{method}"


@functools.cache
def _is_outside(module: str, name: str) -> bool:
    """Whether such a callable may give another result, or have an effect, at each call."""
    package = module.partition(".")[0]
    part, last = package.lstrip("_"), name.rpartition(".")[2]
    if part == "io":
        return not name.startswith(("StringIO", "BytesIO"))
    if package in sys.stdlib_module_names and part not in _SAME:
        return True
    if package in ("pandas", "xarray", "sklearn", "skimage") and last.startswith(_READERS):
        return True
    return last in _NOT.get(part, ()) or module.startswith(_STORES)


def _seeded(f: Callable[..., Any]) -> Any:
    """A maker of random generators, which is allowed with a seed only."""

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        if all([v is None for v in (*args, *options.values())]):
            raise StagingError(
                f"{f.__name__} without a seed draws one as the program is written, and not in each "
                "call of it; give it a seed, or pass the numbers that are drawn"
            )
        return f(*args, **options)

    return call


ONCE = (
    *[(f, once(f)) for f in (builtins.input, builtins.open)],
    *[(f, once(f)) for f in vars(time).values() if type(f) is BuiltinFunctionType],
)

__all__ = ["ONCE", "asked", "refusal"]

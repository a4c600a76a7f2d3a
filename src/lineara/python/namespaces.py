"""Namespaces of copied functions: they fall through to the real module and replace what is read.

CPython reads a global of a function whose globals are a subclass of dict by `globals[name]`,
so a hit costs a dict hit and a miss calls `__missing__`.  Three places go around that:

* a class body reads the dict itself, then the builtins: `Builtins.__missing__` leads it back here;
* `def` looks for `__builtins__` and `__name__` in the dict itself: they lie there;
* an assignment to a global writes to the dict itself: `facts` turns it into a store by name,
  which in a function without the flag CO_OPTIMIZED goes to `globals.__setitem__`.
"""

import builtins
import dis
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from operator import is_
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol

from lineara.errors import is_library_file
from lineara.facts.hints import Value
from lineara.python.class_identity import compared
from lineara.tape.swallowed_errors import refuse_caught

FORMS = "__lineara_forms__"  # the name under which structured code finds the forms
_LYING = ("__name__", "__package__", "__spec__", "__loader__", "__file__", "__path__", "__doc__")
_OURS = ("__builtins__", ".super", FORMS)  # what copied code finds there beside
_LARGE = 65536  # bytes; an array above this is read from the module each time, never kept alive
_ABSENT = object()
_CATCH = (ValueError, *TypeError.__mro__[:-1])  # the classes that catch what a traced value meets


Cells = list[tuple[Any, Any]]  # cells of closures, small lists and dicts; and what they held


class Replacer(Protocol):
    """The protocol of the overlay, for the parts that it is made of."""

    run: int  # the number of this run
    lock: Any  # held while copies and twins are made

    def forget(self) -> None:
        """Drop everything remembered."""
        ...

    def needs(self, value: object, depth: int = 4) -> bool:
        """Whether copied code must see something else in place of `value`."""
        ...

    def replace(self, value: object) -> Any:
        """What copied code sees in place of `value`."""
        ...

    def shown(self, value: object) -> Any:
        """What an attribute that holds `value` is in copied code."""
        ...

    def refuse_inputs(self, name: str, /) -> None:
        """Refuse to copy an object of such a class where an array may be an input."""
        ...

    def original(self, value: object) -> Any:
        """The user's value behind `value`, which was met in copied code."""
        ...

    def read(self, f: FunctionType, /) -> CodeType:
        """The code that the copy of a function of the user's runs."""
        ...

    kept: Any  # what libraries keep from call to call
    forms: Any  # what structured code calls, or None where code is as it was
    build_class: Any  # what a class statement calls

    def stands_in(self, value: Value) -> bool:
        """Whether copied code sees this in place of something else."""
        ...

    def stable(self, value: object, cells: Cells) -> bool:
        """Whether `replace(value)` stays right as long as `value` is the same object.

        What functions captured is added to `cells`, and what their defaults hold that may be
        written: these must be the same objects, too.
        """
        ...


def held(holder: Any) -> Any:
    """The content of a cell, or the entries of a list or a dict."""
    if type(holder) is CellType:
        return holder.cell_contents
    return [*holder, *holder.values()] if type(holder) is dict else holder.copy()


def unchanged(cells: Iterable[tuple[Any, Any]]) -> bool:
    """Whether cells and containers hold what they held."""
    try:
        return all(
            [h.cell_contents is v if type(h) is CellType else same(v, held(h)) for h, v in cells]
        )
    except ValueError:  # a cell is empty now
        return False


def same(seen: list[Any], now: Iterable[Any]) -> bool:
    """Whether these are the same objects; a list compares by identity first, which is quick."""
    try:
        return seen == [*now]
    except Exception:  # objects that differ and cannot be compared
        return False


class Facts(NamedTuple):
    """How a code object, with those nested in it, uses names that are not local to it."""

    stored: frozenset[str]  # globals that are assigned or deleted
    written: frozenset[str]  # cells of the closure that are assigned or deleted
    code: CodeType  # the code to run: itself unless globals are assigned, or `is` is followed


_STORES = {"STORE_GLOBAL": dis.opmap["STORE_NAME"], "DELETE_GLOBAL": dis.opmap["DELETE_NAME"]}
_WRITES = ("STORE_DEREF", "DELETE_DEREF")
_INTERESTING = frozenset(dis.opmap[name] for name in (*_STORES, *_WRITES))


class _FactsOf(weakref.WeakKeyDictionary[CodeType, Facts]):
    """The facts of each code object, found once."""

    def of(self, code: CodeType) -> Facts:
        known = self.get(code)
        if known is None:
            known = self[code] = _find_facts(code)
        return known


facts: Callable[[CodeType], Facts] = _FactsOf().of


def _find_facts(code: CodeType) -> Facts:
    nested = {i: facts(c) for i, c in enumerate(code.co_consts) if isinstance(c, CodeType)}
    stored = frozenset[str]().union(*(n.stored for n in nested.values()))
    written = frozenset[str]().union(*(n.written for n in nested.values()))
    flat, flags, names = bytearray(code.co_code), code.co_flags, code.co_names
    if not _INTERESTING.isdisjoint(flat[::2]):
        stores = [i for i in dis.get_instructions(code) if i.opname in _STORES]
        written |= {i.argval for i in dis.get_instructions(code) if i.opname in _WRITES}
        stored |= {i.argval for i in stores}
        if stores and flags & inspect.CO_OPTIMIZED:
            for i in stores:
                flat[i.offset] = _STORES[i.opname]
            flags &= ~inspect.CO_OPTIMIZED
            # such a frame has no f_locals for our `super` to look at, so it gets Python's own
            names = tuple(".super" if n == "super" else n for n in names)
    consts = [nested[i].code if i in nested else c for i, c in enumerate(code.co_consts)]
    compared(code, flat, consts, local=flags == code.co_flags)
    if any([a is not b for a, b in zip_longest(consts, code.co_consts)]) or stored:
        changed = {"co_code": bytes(flat), "co_flags": flags, "co_names": names}
        code = code.replace(co_consts=tuple(consts), **changed)
    return Facts(stored, written & frozenset(code.co_freevars), code)


class Namespace(dict[str, Any]):
    """The globals of the copies of one module's functions."""

    __slots__ = (
        "__weakref__",
        "absent",
        "cells",
        "former",
        "held",
        "library",
        "live",
        "open",
        "overlay",
        "real",
        "records",
        "seen",
        "stored",
        "volatile",
    )
    real: dict[str, Any]
    overlay: Replacer

    def __init__(self, real: dict[str, Any], overlay: Replacer) -> None:
        super().__init__({name: real[name] for name in _LYING if name in real})
        self.real, self.overlay = real, overlay
        self.seen: dict[str, Any] = {}  # name -> the real value that was replaced and kept
        self.absent: set[str] = set()  # names that came from the builtins
        self.volatile: list[str] = []  # names to be read anew in the next run
        self.cells: dict[str, Cells] = {}  # name -> what its functions captured, and what that held
        self.former: dict[str, Any] = {}  # what these were: views live on from run to run
        self.stored: set[str] = set()  # names that copied code assigns: never kept
        self.library: bool = is_library_file(str(real.get("__file__")))
        self.open: bool = False  # the user holds the real dict in hand: nothing is kept
        self.records: dict[int, Any] = {}  # copies of this module's functions
        self.live: LiveModule | None = None
        lying = Builtins(self)
        dict.__setitem__(self, "__builtins__", lying)
        dict.__setitem__(self, ".super", super)
        made = real.get(FORMS) if type(real) is Namespace else None  # by code that calls them
        dict.__setitem__(self, FORMS, overlay.forms or made)
        self.held: dict[tuple[int, str], Any] = {}  # locals that a debugger wrote

    def __missing__(self, name: str) -> Any:
        """The value of `name` that copied code sees."""
        if self.held:
            key = id(sys._getframe(1)), name
            if key in self.held:
                return self.held[key]
        try:
            value, absent = self.real[name], False
        except KeyError:
            value, absent = builtins.__dict__[name], True
        if isinstance(value, type) and any([value is c for c in _CATCH]):
            refuse_caught()  # an `except` asks, each time anew
            return value
        if self.library and not absent:
            self.overlay.kept.note(value)
        new = self.overlay.replace(value)
        if name in self.stored or self.open or (new is value and _is_large(value)):
            return new
        cells: Cells = []
        is_stable = self.overlay.stable(value, cells)
        if not is_stable:
            self.volatile.append(name)
        elif absent:
            self.absent.add(name)
        else:
            self.seen[name] = value
        if cells and is_stable:
            self.cells[name] = cells
        dict.__setitem__(self, name, new)
        return new

    def __setitem__(self, name: str, value: Any) -> None:
        """An assignment `global name; name = value` in copied code: it reaches the real module.

        Up to Python 3.12 a debugger writes the locals of such a function here and reads them
        again.  They are held for that frame; a name that is global elsewhere is kept no more.
        """
        frame = sys._getframe(1)
        if _is_local(name, frame.f_code):
            self.held[id(frame), name] = value
            self.declare(frozenset([name]))
        elif name in self.stored:
            if self.library:
                self.overlay.kept.assign(self.real, name)
            self.real[name] = self.overlay.original(value)

    def __delitem__(self, name: str) -> None:
        """`global name; del name`."""
        frame = sys._getframe(1)
        if _is_local(name, frame.f_code):
            self.held.pop((id(frame), name), None)
        elif name in self.stored:
            del self.real[name]

    def get(self, name: str, default: object = None) -> Any:
        """As `globals().get`, for another overlay on top of this one."""
        try:
            return self[name]
        except KeyError:
            return default

    def declare(self, stored: frozenset[str]) -> None:
        """Copied code assigns these names from now on."""
        if not stored <= self.stored:
            self.stored |= stored
            self.drop(*stored)

    def drop(self, *names: str) -> None:
        """Forget what was read under `names`."""
        for name in names:
            self.seen.pop(name, None)
            self.cells.pop(name, None)
            self.absent.discard(name)
            if name not in _LYING and name not in _OURS:
                self.pop(name, None)

    def refresh(self) -> None:
        """A run begins: forget what has changed in the real module."""
        if self.volatile or self.former:
            names, self.volatile = self.volatile, []
            self.former = {name: self.pop(name, None) for name in names}
        real, seen = self.real, self.seen
        try:
            if self.cells and not unchanged(chain.from_iterable(self.cells.values())):
                self.drop(*seen, *self.cells)
                return
            if all(map(is_, map(real.get, seen), seen.values())) and (
                not self.absent or self.absent.isdisjoint(real)
            ):
                return
            changed = [n for n, v in seen.items() if real.get(n, _ABSENT) is not v]
            self.drop(*changed, *self.absent.intersection(real))
        except RuntimeError:  # another thread is adding a name just now
            self.drop(*list(seen), *list(self.absent))


class Builtins(dict[str, Any]):
    """The builtins of copied functions; names that a class body reads come here after globals."""

    __slots__ = ("__weakref__", "space")

    def __init__(self, space: Namespace) -> None:
        super().__init__(
            __import__=_importer(space.overlay),
            __build_class__=space.overlay.build_class,
            __name__="builtins",
        )
        self.space: Namespace = space
        if "open" not in space.real:  # NumPy's fromfile looks into the dict itself
            self["open"] = open

    def __missing__(self, name: str) -> Any:
        """A module's name hides a builtin, so it is asked first."""
        return self.space[name]


def _is_local(name: str, code: CodeType) -> bool:
    return name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars


def _is_large(value: Any) -> bool:
    return hasattr(type(value), "nbytes") and value.nbytes > _LARGE


def _importer(overlay: Replacer) -> Callable[..., Any]:
    def import_(
        name: str,
        globals: Any = None,
        locals: Namespace | None = None,
        fromlist: Sequence[Any] | None = (),
        level: int = 0,
    ) -> Any:
        """Python's `__import__`; the module it gives is the one that copied code sees."""
        while isinstance(globals, Namespace):
            globals = globals.real
        return overlay.replace(builtins.__import__(name, globals, locals, fromlist, level))

    return import_


def stand_in(module: ModuleType, replace: Callable[[Any], Any]) -> ModuleType:
    """A module that looks like `module`, its attributes replaced by `replace` when first read.

    It is a plain module with a `__getattr__` (PEP 562), so a second read costs what a read of
    the real module costs.  Mutable values are read from the real module each time.

    >>> import math
    >>> m = stand_in(math, lambda value: abs if value is math.sin else value)
    >>> m.sin is abs, m.pi == math.pi, repr(m) == repr(math)
    (True, True, True)
    """
    made = ModuleType(module.__name__, module.__doc__)
    space = made.__dict__
    space.update({name: vars(module)[name] for name in _LYING if name in vars(module)})

    def read(name: str) -> Any:
        value = getattr(module, name)
        new = replace(value)
        known = name in vars(module)  # of others the module is asked each time: it may warn
        if known and (callable(new) or isinstance(new, ModuleType | int | float)):
            space[name] = new
        return new

    space["__getattr__"] = read
    space["__dir__"] = lambda: dir(module)
    return made


class LiveModule(ModuleType):
    """A module of the user's as copied code sees it: it reads through, and writes reach it."""

    __slots__ = ("__lineara_module__", "__lineara_space__")

    def __init__(self, module: ModuleType, space: Namespace) -> None:
        super().__init__(module.__name__, module.__doc__)
        vars(self).update({name: vars(module)[name] for name in _LYING if name in vars(module)})
        object.__setattr__(self, "__lineara_module__", module)
        object.__setattr__(self, "__lineara_space__", space)

    def __getattr__(self, name: str) -> Any:
        """The value that copied code of that module reads under the name."""
        module, space = self.__lineara_module__, self.__lineara_space__
        if name in module.__dict__:
            return space[name]
        return space.overlay.replace(getattr(module, name))

    def __setattr__(self, name: str, value: Value) -> None:
        space = self.__lineara_space__
        setattr(self.__lineara_module__, name, space.overlay.original(value))
        space.drop(name)

    def __delattr__(self, name: str) -> None:
        delattr(self.__lineara_module__, name)
        self.__lineara_space__.drop(name)

    def __repr__(self) -> str:
        return repr(self.__lineara_module__)

    def __dir__(self) -> list[str]:
        return dir(self.__lineara_module__)

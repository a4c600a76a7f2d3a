"""Copies of functions: the same code over other globals, cells and defaults.

A cell whose contents are replaced is a fresh cell in the copy; any other cell is shared, so
`nonlocal` reaches the user's.  A cell that the code itself assigns is always shared.

A copy lives as long as its original, which it must not keep alive.  It is kept by the
namespace of its module, unless one of its cells may lead back to the original: of those, the
last few are kept.
"""

import functools
import gc
import operator
import types
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from lineara.errors import is_library_file, is_user_file
from lineara.facts.hints import Shaped
from lineara.facts.registry import registry
from lineara.python.namespaces import Namespace, Replacer, facts

_CALLED = (FunctionType, MethodType)
_CODE, _DEFAULTS, _OPTIONS = map(
    operator.attrgetter, ("__code__", "__defaults__", "__kwdefaults__")
)


_is_user_file = functools.cache(is_user_file)


def is_user_code(filename: str) -> bool:
    """Whether code of that file is copied: a user's file, a library's, or one declared as such."""
    known = _is_user_file(filename) or is_library_file(filename)
    return known or filename.startswith(registry.sources)


def is_user_function(value: object) -> bool:
    """Whether this is a Python function from a user's file (the maker of a namedtuple is not)."""
    if type(value) is not FunctionType or not is_user_code(value.__code__.co_filename):
        return False
    return not str(value.__globals__.get("__name__", "")).startswith("namedtuple_")


class Recent(dict[int, Any]):
    """A memory of the last few; the oldest goes first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __setitem__(self, key: int, value: Any) -> None:
        super().__setitem__(key, value)
        while len(self) > self.size:
            self.pop(next(iter(self)), None)


class Copy:
    """The copy of a function, and what it was made from."""

    __slots__ = (
        "__weakref__",
        "busy",
        "cells",
        "code",
        "copy",
        "defaults",
        "run",
        "source",
        "still",
    )
    run: int
    defaults: tuple[tuple[Any, ...] | None, dict[str, Any] | None]
    copy: Callable[..., Any]
    busy: bool

    def __init__(
        self, source: weakref.ref[FunctionType], f: FunctionType, copy: Callable[..., Any]
    ) -> None:
        self.source: weakref.ref[FunctionType] = source
        self.copy = copy
        self.code: CodeType
        self.code, self.defaults = f.__code__, (f.__defaults__, f.__kwdefaults__)
        self.cells: list[tuple[CellType, CellType | None]] = []
        self.run, self.busy = -1, False
        self.still: bool = (
            False  # True where no cells and no defaults have to be read anew in each run
        )

    def fits(self, f: FunctionType) -> bool:
        """Whether the function is still as it was when it was copied."""
        defaults, kwdefaults = self.defaults
        return (
            f.__code__ is self.code
            and f.__defaults__ is defaults
            and f.__kwdefaults__ is kwdefaults
        )


class Functions:
    """The copies of functions that one overlay has made."""

    def __init__(self, overlay: Replacer) -> None:
        self.overlay = overlay
        self.spaces: Recent = Recent(256)
        self.cyclic: Recent = Recent(64)  # copies that may keep their original alive
        self.users: dict[int, tuple[Any, ...]] = {}  # what functions of users are made of
        self.watched: list[list[Any]] | None = None

    def forget(self) -> None:
        """Drop all copies."""
        self.spaces.clear()
        self.cyclic.clear()
        self.users.clear()
        self.watched = None

    def refresh(self) -> None:
        """A run begins: what has changed in the user's modules is read again.

        All is, if a function of the user's has other code or defaults than when it was copied: an
        editor's reload changes functions that way which others hold.
        """
        if self.watched is None:
            users = [*self.users.values()]
            given = [u for u in users if u[2] or u[3]]
            self.watched = [[u[0] for u in us] for us in (users, given)]
            self.watched += [[u[1] for u in users], [u[2] for u in given], [u[3] for u in given]]
        users, given, codes, defaults, options = self.watched
        try:
            still = (
                all(map(operator.is_, map(_CODE, map(operator.call, users)), codes))
                and all(map(operator.is_, map(_DEFAULTS, map(operator.call, given)), defaults))
                and all(map(operator.is_, map(_OPTIONS, map(operator.call, given)), options))
            )
        except AttributeError:  # one has gone just now
            still = False
        if not still:
            self.overlay.forget()
        for space in tuple(self.spaces.values()):
            if space.volatile or space.seen or space.absent:
                space.refresh()

    def space(self, real: dict[str, Any]) -> Namespace:
        """The globals of copies of functions whose globals are `real`."""
        space = self.spaces.get(id(real))
        if space is None or space.real is not real:
            space = self.spaces[id(real)] = Namespace(real, self.overlay)
        return space

    def ready(self, f: Callable[..., Any]) -> Any:
        """The copy of a function, where neither it nor what it read has changed; else None."""
        if type(f) is not FunctionType:
            return None
        space = self.spaces.get(id(f.__globals__))
        record = None if space is None else space.records.get(id(f))
        if (
            record is not None
            and record.still
            and record.source() is f
            and f.__code__ is record.code
            and not f.__defaults__
            and not f.__kwdefaults__
        ):
            return record.copy
        return None

    def get(self, f: FunctionType) -> Any:
        """The copy of `f`, up to date in this run; `f` itself if it is left alone."""
        record = self._known(f)
        if record is not None and (
            record.run == self.overlay.run or (record.still and record.fits(f))
        ):
            return record.copy
        if record is None and not self.wants(f):
            return f
        with self.overlay.lock:
            record = self._known(f)
            if record is not None and (record.busy or self._refreshed(record, f)):
                return record.copy
            return self._copy(f)

    def wants(self, f: Any, depth: int = 4) -> bool:
        """Whether `f` is copied: a function of the user's, or a decorator's wrapper around one."""
        space = f.__globals__
        if type(space) is Namespace and space.overlay is self.overlay:
            return False
        if is_user_function(f):
            return True
        if not f.__closure__ or depth == 0 or self.overlay.stands_in(f):
            return False
        parts = f.registry.values() if _is_dispatcher(f) else map(contents, f.__closure__)
        return any(self.overlay.needs(p, depth - 1) for p in parts if type(p) in _CALLED)

    def original(self, copy: FunctionType) -> Any:
        """The function whose copy this is; any other function itself."""
        space = copy.__globals__
        if type(space) is Namespace and space.overlay is self.overlay:
            for record in (*space.records.values(), *self.cyclic.values()):
                if record.copy is copy:
                    return record.source() or copy
        return copy

    def _known(self, f: FunctionType) -> Copy | None:
        space = self.spaces.get(id(f.__globals__))
        record = space.records.get(id(f)) if space is not None else None
        if record is None:
            record = self.cyclic.get(id(f))
        return record if record is not None and record.source() is f else None

    def _refreshed(self, record: Copy, f: FunctionType) -> bool:
        """Bring the copy up to date; False if it must be made again."""
        if not record.fits(f):
            return False
        for source, fresh in record.cells:
            if fresh is None and self.overlay.needs(contents(source)):
                return False
        self._fill(record, f)
        return True

    def _fill(self, record: Copy, f: FunctionType) -> None:
        run, record.busy, replace = self.overlay.run, True, self.overlay.replace
        try:
            for source, fresh in record.cells:
                if fresh is not None:
                    fresh.cell_contents = replace(contents(source))
            if f.__defaults__:
                record.copy.__defaults__ = tuple(map(replace, f.__defaults__))
            if f.__kwdefaults__:
                kwdefaults = {k: replace(v) for k, v in f.__kwdefaults__.items()}
                record.copy.__kwdefaults__ = kwdefaults
        finally:
            record.busy = False
        record.run = run

    def _copy(self, f: FunctionType) -> Any:
        user = is_user_function(f)
        if not user and _is_dispatcher(f):
            return self._single_dispatch(f)
        code = self.overlay.read(f) if user else f.__code__
        known = facts(code)
        space: Any = f.__globals__
        if user:
            space = self.space(space)
            space.declare(known.stored)
        names, cells = code.co_freevars, f.__closure__ or ()
        if names != f.__code__.co_freevars:
            by_name = dict(zip(f.__code__.co_freevars, cells, strict=True))
            cells = tuple([by_name[name] for name in names])
        free = [name not in known.written and name != "__class__" for name in names]
        fresh = [
            CellType() if movable and self._wants_cell(contents(cell), user) else None
            for movable, cell in zip(free, cells, strict=True)
        ]
        closure = tuple(new or cell for new, cell in zip(fresh, cells, strict=True))
        copy = FunctionType(known.code if user else code, space, f.__name__, None, closure)
        dress(copy, f)
        record = self._remember(f, copy)
        triples = zip(free, cells, fresh, strict=True)
        record.cells = [(cell, new) for movable, cell, new in triples if new or (user and movable)]
        if user and space.library:
            for cell in cells:
                self.overlay.kept.note(contents(cell))
        record.still = not (record.cells or f.__defaults__ or f.__kwdefaults__)
        self._fill(record, f)
        if user and not any(map(self._leads_back, cells, fresh)):
            self.cyclic.pop(id(f), None)
            space.records[id(f)] = record
        return copy

    def _wants_cell(self, value: Shaped, user: bool) -> bool:
        return (user or type(value) in _CALLED) and self.overlay.needs(value)

    def _leads_back(self, cell: CellType, fresh: CellType | None) -> bool:
        """Whether a copy may reach its original through this cell."""
        try:
            value = cell.cell_contents
        except ValueError:  # anything may come
            return True
        if fresh is not None and type(value) is FunctionType:
            return id(value) in self.cyclic
        return gc.is_tracked(value)

    def _remember(self, f: FunctionType, copy: FunctionType) -> Copy:
        key, me = id(f), weakref.ref(self)
        space = weakref.ref(copy.__globals__) if type(copy.__globals__) is Namespace else None

        def gone(_: object) -> None:
            functions, home = me(), space() if space else None
            if functions is not None:
                functions.cyclic.pop(key, None)
                functions.users.pop(key, None)
                functions.watched = None
            if home is not None:
                home.records.pop(key, None)

        record = self.cyclic[key] = Copy(weakref.ref(f, gone), f, copy)
        if _is_user_file(f.__code__.co_filename):
            self.users[key] = record.source, record.code, *record.defaults
            self.watched = None
        return record

    def _single_dispatch(self, f: Any) -> Any:
        made = functools.singledispatch(self.overlay.replace(f.registry[object]))
        for cls, implementation in f.registry.items():
            made.register(cls, self.overlay.replace(implementation))
        return made


def _is_dispatcher(f: Callable[..., Any]) -> bool:
    """Whether `functools.singledispatch` made this function."""
    return hasattr(f, "registry") and hasattr(f, "dispatch")


def contents(cell: types.CellType) -> Any:
    """What the cell holds; None if it was not assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def dress(copy: FunctionType, f: FunctionType) -> None:
    """Name, documentation, annotations and attributes, the last shared with the original."""
    copy.__qualname__, copy.__module__, copy.__doc__ = f.__qualname__, f.__module__, f.__doc__
    copy.__dict__ = f.__dict__
    lazy = getattr(f, "__annotate__", None)  # from 3.14 on, annotations are computed when read
    if lazy is not None:
        vars(type(copy))["__annotate__"].__set__(copy, lazy)
    else:
        copy.__annotations__ = f.__annotations__
    if parameters := getattr(f, "__type_params__", None):  # from 3.12 on
        vars(type(copy))["__type_params__"].__set__(copy, parameters)

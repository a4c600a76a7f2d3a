"""Containers, arrays and objects that a block may reach: what it changes in them is put back.

A block that becomes a definition runs once while the program is written, so a list that it changes
would be changed once, whatever the condition or the number of rounds.
"""

import dis
import functools
import io
import pickle
import random
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import (
    MutationError,
    StagingError,
    is_own_file,
    is_user_file,
    user_line,
    with_article,
)
from lineara.facts.hints import Leaf, Tree
from lineara.facts.pickled import Transformed
from lineara.python.function_copies import is_user_code
from lineara.python.namespaces import Namespace
from lineara.python.structured_code import is_block, structured
from lineara.python.user_code import overlay, reading
from lineara.staging.capture.hidden_state import Hidden, hidden, is_compiled, is_pythons, opaque
from lineara.staging.capture.list_items import Example, Pool
from lineara.staging.capture.lists import List, Row, Stacked, raw
from lineara.staging.capture.variables import UNSET, Entry, contents, put
from lineara.staging.staged_arrays import LITERAL
from lineara.staging.staged_level import StagedLevel
from lineara.tape.node import Traced

LIMIT = 40_000  # entries that are looked at
_PLAIN = (int, float, complex, bool, str, bytes, type(None), range, slice, ModuleType, Traced)
_BUILT_IN = (dict, list, List, Stacked, Row, Pool, set, deque, bytearray, np.ndarray, type)
_PLAIN += (np.generic, np.ufunc, type(np.sum), np.dtype)  # NumPy keeps notes of its own in these


_DRAWS = (random.Random, np.random.Generator, np.random.RandomState)
GENERATORS = (random.random.__self__, np.random.normal.__self__)  # type: ignore[attr-defined]


class Name(NamedTuple):
    """A closure's variable or a global, and the value that it held."""

    space: Any  # a cell, or a module's dict
    name: str
    was: Any

    def now(self) -> Any:
        """The value that it holds now."""
        if isinstance(self.space, CellType):
            return contents(self.space)
        return self.space.get(self.name, UNSET)

    def restore(self) -> None:
        """Give it the old value back."""
        if isinstance(self.space, CellType):
            put(self.space, self.was)
        elif self.was is UNSET:
            self.space.pop(self.name, None)
        else:
            self.space[self.name] = self.was


class Remembers:
    """A wrapper that caches results of a function: the function is looked at in its place."""

    f: Any


class Consumed(Remembers):
    """A generator that one form alone iterates: what it holds is reached by its rounds."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.items: Iterator[Any] = iter(values)

    @property
    def f(self) -> Any:
        """The variables of the generator."""
        frame = getattr(self.items, "gi_frame", None)
        return tuple([v for n, v in frame.f_locals.items() if n != ".0"]) if frame else ()

    def __iter__(self) -> Iterator[Any]:
        return self.items


class Given(Remembers):
    """What a block of ours is given of the user's: it is reached, and may be changed."""

    def __init__(self, *parts: Any) -> None:
        self.f = parts


class Watched(NamedTuple):
    """A function, a place or an object, which is to be as it was."""

    thing: Any
    was: Any
    reader: Callable[[Any], Any]

    def read(self) -> Any:
        """What it is now."""
        return self.reader(self.thing)

    def is_same(self, now: Any) -> bool:
        """Whether that is what it was."""
        if isinstance(self.thing, Name):
            return self.was is now or _one(self.was, now)
        if isinstance(self.thing, FunctionType):
            return len(now) == len(self.was) and all(map(_one, now, self.was))
        return _same(self.was, now)

    def __str__(self) -> str:
        if not isinstance(self.thing, FunctionType):
            return _named(self.thing)
        what = "a default" if self.thing.__code__ is self.was[0] else "the code"
        return f"{what} of {self.thing.__name__}"


class Snapshot:
    """What a block can reach of variables, lists, dicts, sets, arrays, classes and objects."""

    def __init__(self, *blocks: Any) -> None:
        self.blocks = blocks  # they live as long as what is known of them
        self.kept: dict[int, tuple[Any, Any]] = {}
        self.readers: list[Callable[[Any], Any]] = []  # of what is kept
        self.seen: set[int] = set()
        self.places: dict[tuple[int, str], Name] = {}
        self.functions: list[tuple[FunctionType, Any]] = []  # with what they are
        todo: list[Any] = [*blocks]
        while todo and len(self.seen) < LIMIT:
            todo += self._parts(todo.pop())

    def _parts(self, x: Leaf) -> list[Any]:
        """Remember the state of one object; the objects that it leads to."""
        if issubclass(type(x), _PLAIN) or id(x) in self.seen or _is_ours(x):
            return []
        self.seen.add(id(x))
        if isinstance(x, Row):
            return [x.pool]
        if isinstance(x, FunctionType):
            made = made_of(x)
            self.functions.append((x, made))
            places = places_of(x)
            self.places |= {(id(p.space), p.name): p for p in places}
            code = x.__code__
            own = [] if is_block(code) or is_own_file(code.co_filename) else [vars(x)]
            return [*made[1:], *[p.was for p in places if p.was is not UNSET], *own]
        parts = behind(x)
        if parts is not None:
            return parts
        read = _reader(x)
        if read is None:
            return [*x] if isinstance(x, tuple | frozenset) else []
        state = read(x)
        self.kept[id(x)] = x, state
        self.readers.append(read)
        if isinstance(state, Hidden):
            return state.parts
        own = [] if type(x) in _BUILT_IN else [type(x)]
        if isinstance(x, dict):
            return [*x.values(), *own]
        if isinstance(x, Stacked | Pool):
            return [p for p in (x.form.pools if x.form else ()) if p]
        if isinstance(x, list | deque | set):
            return [*state, *own]
        if isinstance(x, np.ndarray):
            held = dict_of(x)  # of a class that is derived from NumPy's
            own += [held] if held else []
            return [*own, *(_plain(x).flat if x.dtype.hasobject else ())]
        if isinstance(x, type):
            return [*x.__bases__, *state.values(), *own]
        return [*state.values()] if isinstance(state, dict) else own

    def watched(self) -> list[Watched]:
        """What is to be as it was: what functions are and name, and what that holds.

        Generators of random numbers and files are not, from which a function that is captured
        draws and reads nothing.
        """
        each = zip(self.kept.values(), self.readers, strict=True)
        functions = [Watched(f, made, made_of) for f, made in self.functions]
        names = [Watched(p, p.was, Name.now) for p in self.places.values()]
        things = [Watched(x, was, r) for (x, was), r in each if not _is_unwatched(x, was)]
        return [*functions, *names, *things]

    def is_stale(self) -> bool:
        """Whether anything is not as it was."""
        return not all([w.is_same(w.read()) for w in self.watched()])

    def advances(self) -> list[Any]:
        """The objects that give something else each time, and cannot be put back."""
        return [x for x, was in self.kept.values() if isinstance(was, Hidden) and was.goes_on]

    def unread(
        self, top: object, called: Iterable[CodeType]
    ) -> list[tuple[FunctionType, dict[str, Any]]]:
        """The functions that are traced as they run, with what the names in their code stand for.

        Of those that are called, and of the user's own files.
        """
        places = {_place(c) for c in called}
        todo = [f for f, _ in self.functions if f is top or _place(f.__code__) in places]
        known = {}
        while todo:
            f = todo.pop()
            own = is_user_file(f.__code__.co_filename)
            if f not in known and own and isinstance(structured(f), str):
                known[f] = {p.name: p.was for p in places_of(f)}
                todo += [v for v in known[f].values() if isinstance(v, FunctionType)]
        return [*known.items()]

    def unseen(self) -> list[Any]:
        """The objects whose state cannot be seen."""
        return [x for x, was in self.kept.values() if isinstance(was, Hidden) and was.is_unseen]

    def changed(self) -> list[tuple[Any, Any]]:
        """The things that have changed, with their old state."""
        return self._things() + [(p, p.was) for p in self._names()]

    @property
    def stacked(self) -> list[Stacked | Pool]:
        """The stacked lists, and the pools of those in lists."""
        return [x for x, _ in self.kept.values() if isinstance(x, Stacked | Pool)]

    def has(self, entry: Entry) -> bool:
        """Whether an entry belongs to a container that the block reaches."""
        x, state = self.kept.get(id(entry.container), (None, ()))
        there = range(len(state)) if isinstance(state, list) else state
        return x is entry.container and entry.key in there

    def entries(self, what: str) -> dict[Entry, Any]:
        """The entries that were changed of containers that are else as they were; what they held.

        Any other change is refused, and one of what there was before the function was called.
        """
        entries = {}
        for x, was in self._things():
            now = _state(x)
            if type(x) is List and len(was) != len(now):
                kept = len(now) > len(was) and all(map(_one, was, now))
                new = now[len(was) :] if kept else now
                x.want([*map(Example.of, new)], max(0, len(now) - len(was)))
            keys = _keys(x, was, now)
            if keys is None or id(overlay().original(x)) in _outside():
                refuse_changes([(x, was)], what)
            entries |= {Entry(x, k): was[k] for k in keys or () if not _one(was[k], now[k])}
        return entries

    def _things(self) -> list[tuple[Any, Any]]:
        each = zip(self.kept.values(), self.readers, strict=True)
        return [(x, was) for (x, was), read in each if not _same(was, read(x))]

    def _names(self) -> list[Name]:
        return [p for p in self.places.values() if not _one(p.was, p.now())]

    def undo(self) -> list[tuple[Any, Any]]:
        """Put back what was changed."""
        changed = self.changed()
        for x, was in changed:
            _restore(x, was)
        return changed


def is_large(a: np.ndarray, least: int = LITERAL) -> bool:
    """Whether an array of numbers is no part of a program's text."""
    return a.size > least and a.dtype.kind in "fciub" and a.dtype.isnative


def _keys(x: Tree, was: Any, now: Any) -> Any:
    """The keys of a container that has the same ones as before; None for anything else."""
    if isinstance(x, list | deque) and not isinstance(x, Stacked):
        return range(len(was)) if len(was) == len(now) else None
    if isinstance(x, type) or not isinstance(was, dict) or [*was] != [*now]:
        return None
    return was if was.get("__class__") is now.get("__class__") or isinstance(x, dict) else None


def _outside() -> set[int]:
    """The ids of what the traced function reaches without its arguments."""
    now = reading()
    assert now is not None, "containers are looked at where functions are read"
    if now.outside is None:
        now.outside = Snapshot(now.function)
    return now.outside.seen


class Doubtful(NamedTuple):
    """A container that a form gave, or one of which it may be another name, and its contents.

    Python gives what one of the blocks gave, which others may hold; in a program it is a copy.
    """

    container: Any
    was: Any
    versions: list[int]
    line: str

    def refuse_change(self) -> None:
        """Refuse it where it was changed since."""
        now = _state(self.container), _versions(self.container)
        if not _same(self.was, now[0]) or self.versions != now[1]:
            raise MutationError(
                f"{_named(self.container)} was changed that the staged branch or loop {self.line} "
                "gave, or that it may have given another name: whether there is one or are two "
                "depends on values; let it give a new one, copy.copy(a)"
            )


def doubt(level: StagedLevel, containers: Sequence[Any]) -> None:
    """Refuse changes of these containers from now on."""
    if containers:
        line = user_line()
        level.shared.doubtful += [Doubtful(x, _state(x), _versions(x), line) for x in containers]


def _versions(x: Tree) -> list[int]:
    """How often the arrays of a stacked list have been written."""
    if not isinstance(x, Stacked):
        return []
    rows = [v for p in x.form.pools if p for v in p.parts()]
    return [a.w.buffer.version for a in (*x.arrays, *rows)]


def in_use(
    level: StagedLevel, snapshot: Snapshot, before: Sequence[Any], columns: Iterable[Any]
) -> set[int]:
    """The containers that others may hold than the place of a block where one stands."""
    each = Counter([id(x) for c in columns for x in c.containers])
    shared = [x for x, count in each.items() if count > 1]
    doubtful = [id(d.container) for d in level.shared.doubtful]
    return snapshot.seen.union(map(id, before), shared, doubtful)


def _is_ours(x: object) -> bool:
    """Whether a class or an object is one of Lineara's own, and holds nothing of the user's."""
    kind = x if isinstance(x, type) else type(x)
    ours = Remembers | Pool | Transformed
    holds = issubclass(kind, list | dict | set | deque | np.ndarray | ours)
    holds = holds or hasattr(kind, "__next__")  # an iterator of the user's list
    return not holds and str(kind.__module__).partition(".")[0] == "lineara"


def refuse_changes(
    changed: list[tuple[Any, Any]],
    what: str,
    why: str = "depends on staged values",
    line: str | None = None,
) -> None:
    """Refuse what a block changed, at the line that has changed it where that is known."""
    refuse_what_went_on(changed, what, why, line)
    if not changed:
        return
    x = _named(changed[0][0])
    said = (
        f"{x} was changed in a {what} that {why}: a program cannot change it when it runs; bind a "
        "new value to a variable instead, or write into an array"
    )
    if isinstance(changed[0][0], _DRAWS):
        said = (
            f"random numbers were drawn from {x} in a {what} that {why}: a program would have the "
            "same ones whenever it runs; draw them before and pass them as an argument, or have "
            "the same ones from lineara.random or a generator that the function makes of a seed"
        )
    raise StagingError(said, line=line)


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _named(x: Leaf) -> str:
    if isinstance(x, Name):
        return f"the variable {x.name!r}"
    return f"the class {x.__name__}" if isinstance(x, type) else with_article(type(x).__name__)


def refuse_what_went_on(
    changed: list[tuple[Any, Any]], what: str, why: str, line: str | None = None
) -> None:
    """Refuse what cannot be put back, so that nothing else can be tried."""
    for x, was in changed:
        if _cannot_be_put_back(was):
            error = StagingError(
                f"an iterator or file ({type(x).__name__}) went on in a {what} that {why}: a "
                "program cannot advance it when it runs; go through a list, or an array",
                line=line,
            )
            error.final = True
            raise error


def _is_unwatched(x: object, state: object) -> bool:
    """Whether changes of x are ignored: random generators, and files that cannot be put back."""
    return isinstance(x, _DRAWS) or (isinstance(x, io.IOBase) and _cannot_be_put_back(state))


def _cannot_be_put_back(state: object) -> bool:
    return isinstance(state, Hidden) and state.restore is None


def made_of(f: FunctionType) -> list[Any]:
    """The code and the defaults of a function; of one that is not the user's what it holds."""
    if is_user_code(f.__code__.co_filename):
        options = f.__kwdefaults__
        return [f.__code__, *(f.__defaults__ or ()), *(options.values() if options else ())]
    return [f.__code__, *called([contents(c) for c in f.__closure__ or ()]), *vars(f).values()]


def places_of(f: FunctionType) -> list[Name]:
    """The variables that a function of the user's names: of its closure, globals, and modules.

    Of modules among these it reaches what it names of them, and all of the user's where it asks by
    a text.
    """
    code = f.__code__
    if not is_user_code(code.co_filename):
        return []
    names = dict.fromkeys(names_of(code))
    asks = not _BY_TEXT.isdisjoint(names)
    if asks:
        names |= dict.fromkeys(_texts(code))
    real = globals_of(f)
    imported: Any = sys.modules if asks or has_instruction(code, "IMPORT_NAME") else {}
    spaces = [imported if n in imported and n not in real else real for n in names]
    places = [Name(space, n, space.get(n, UNSET)) for space, n in zip(spaces, names, strict=True)]
    cells = zip(code.co_freevars, f.__closure__ or (), strict=True)
    places += [Name(cell, n, contents(cell)) for n, cell in cells]
    modules = [p.was for p in places if issubclass(type(p.was), ModuleType)]
    for m in modules:  # grows as it is gone through
        held = vars(m)
        file = held.get("__file__") or ("" if _is_pythons_module(m) else "<made>")
        every = asks and bool(file) and is_user_file(file)
        named = [*held] if every else [n for n in names if n in held]
        places += [Name(held, n, held[n]) for n in named]
        parts = [held[n] for n in named]
        modules += [v for v in parts if isinstance(v, ModuleType) and v not in modules]
    return places


def _is_pythons_module(m: ModuleType) -> bool:
    """Whether a module is of Python's library: `sys` leads to what hooks and others left there."""
    return m.__name__.partition(".")[0] in sys.stdlib_module_names


_BY_TEXT = {"getattr", "vars", "__dict__", "modules", "import_module"}
ASKS = {*_BY_TEXT, "attrgetter", "eval", "exec", "globals", "locals", "__globals__", "__closure__"}
ASKS |= {"cell_contents", "f_back", "f_globals", "f_locals", "_getframe", "currentframe"}


def called(values: Any) -> list[Any]:
    """The functions among values and the tuples of them, and what forms go through."""
    each = [called(v) if type(v) in (tuple, list) else [v] for v in values]
    return [v for part in each for v in part if callable(v) or isinstance(v, Remembers)]


def globals_of(f: FunctionType) -> Any:
    """The globals of a function, or of the one that it is a copy of."""
    space: Any = f.__globals__
    return space.real if isinstance(space, Namespace) else space


def names_of(code: CodeType) -> list[str]:
    """The globals and attributes that code names, and the code within it."""
    inner = [n for c in code.co_consts if isinstance(c, CodeType) for n in names_of(c)]
    return [*code.co_names, *inner]


def has_instruction(code: CodeType, name: str) -> bool:
    """Whether code, or the code within it, has an instruction of that name."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return dis.opmap[name] in code.co_code[::2] or any([has_instruction(c, name) for c in inner])


def _texts(code: CodeType) -> list[str]:
    """The texts that code mentions, which may name something."""
    inner = [t for c in code.co_consts if isinstance(c, CodeType) for t in _texts(c)]
    return [c for c in code.co_consts if type(c) is str] + inner


def behind(x: Any) -> list[Any] | None:
    """The function or iterable behind a wrapper; None for an object that is looked at itself."""
    if isinstance(x, MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, Remembers):
        return [x.f]
    if isinstance(x, Transformed):
        return [x.f, x.made.args, x.made.kwargs]
    if isinstance(x, functools.partial):
        return [x.func, x.args, x.keywords]
    if isinstance(x, property):
        return [x.fget, x.fset]
    if isinstance(x, staticmethod | classmethod):
        return [x.__func__]
    if isinstance(x, BuiltinFunctionType | MethodWrapperType):  # of an object, perhaps
        return [] if isinstance(x.__self__, ModuleType | type) else [x.__self__]
    return [] if isinstance(x, type) and not _is_users(x) else None


def _is_users(c: type) -> bool:
    """Whether a class is of a user's module."""
    file = getattr(sys.modules.get(c.__module__), "__file__", None)
    return c.__module__ == "__main__" or (file is not None and is_user_code(file))


def _state(x: Leaf) -> Any:
    """A copy of the mutable state of an object; None for an immutable one."""
    read = _reader(x)
    return None if read is None else read(x)


def _reader(x: Leaf) -> Callable[[Any], Any] | None:
    """The function that copies the state of an object, whatever that holds; None likewise."""
    if isinstance(x, Stacked | Pool):
        return _extent
    if isinstance(x, List):
        return raw
    if hidden(x) is not None:
        return hidden
    if isinstance(x, list | deque):
        return list
    if isinstance(x, dict):
        return dict
    if isinstance(x, set | bytearray):
        return type(x).copy
    if isinstance(x, np.ndarray):
        return elements if x.flags.writeable or x.base is not None else None
    if isinstance(x, _DRAWS):
        return pickle.dumps
    if isinstance(x, type):
        return entries_of_class
    kind: type = type(x)
    if is_compiled(kind) and not callable(x):
        return _opaque
    having = [c for c in kind.__mro__ if "__slots__" in vars(c) and not is_pythons(c)]
    names = [n for c in having for n in _slots(c) if getattr(kind, n) is vars(c)[n]]
    if names:
        return functools.partial(slotted, names)
    return None if dict_of(x) is None else attributes


def _extent(x: Stacked | Pool) -> dict[str, Any]:
    return {"length": x.extent}


def elements(x: np.ndarray) -> np.ndarray:
    """A copy of an array."""
    return np.array(_plain(x))


def lying(x: np.ndarray) -> tuple[Any, ...]:
    """What is known of an array that is an input."""
    return x.shape, x.dtype, x.strides


def entries_of_class(x: type) -> dict[str, Any]:
    """What a class has, but for what Python keeps there."""
    return {n: v for n, v in vars(x).items() if n not in _OF_PYTHON}


def _opaque(x: Leaf) -> Hidden:
    return opaque(x, dict_of(x))


def slotted(names: list[str], x: Leaf) -> dict[str, Any]:
    """The attributes of an object, of which some lie in slots, and its class."""
    held = {n: getattr(x, n) for n in names if hasattr(x, n)}
    return {**held, **(dict_of(x) or {}), "__class__": type(x)}


def attributes(x: Leaf) -> dict[str, Any]:
    """The attributes of an object, and its class."""
    return {**(dict_of(x) or {}), "__class__": type(x)}


def _plain(x: np.ndarray) -> np.ndarray:
    """The elements of an array, whatever its class is."""
    return np.ndarray.view(x, np.ndarray)


def dict_of(x: Leaf) -> dict[str, Any] | None:
    """The dict in which an object has its attributes."""
    own = getattr(x, "__dict__", None)
    return own if type(own) is dict else None  # what is a dict's may be answered by __getattr__


def _slots(c: type) -> list[str]:
    """The attributes of a class that do not lie in a dict."""
    slots = vars(c)["__slots__"]
    names = [n for n in ([slots] if isinstance(slots, str) else slots) if not n.startswith("__")]
    return [n for n in names if isinstance(vars(c).get(n), MemberDescriptorType)]


_OF_PYTHON = ("__dict__", "__weakref__", "__annotations__", "__annotations_cache__", "__doc__")
_OF_PYTHON += ("_abc_impl", "__abstractmethods__", "__slotnames__")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Hidden) and isinstance(b, Hidden):
        return len(a.state) == len(b.state) and all(map(_one, a.state, b.state))
    if isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.hasobject:
            return all(map(_one, _plain(a).flat, _plain(b).flat))
        return bool(_plain(a).tobytes() == _plain(b).tobytes())
    if type(a) is dict and type(b) is dict:
        return [*a] == [*b] and all([_one(v, b[k]) for k, v in a.items()])
    if type(a) is list:
        return len(a) == len(b) and all(map(_one, a, b))
    return bool(a == b)


def _one(a: object, b: Any) -> bool:
    """Whether two entries are identical; states of generators are compared by equality."""
    if a is b:
        return True
    if isinstance(a, Traced) or isinstance(b, Traced) or type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a.hex() == b.hex()  # a zero has a sign
    return isinstance(a, int | str | bytes) and bool(a == b)


def _restore(x: Any, was: Any) -> None:
    if isinstance(was, Hidden):
        if was.restore is not None:
            was.restore()
    elif isinstance(x, Stacked | Pool):
        x.extent = was["length"]
    elif isinstance(x, list):
        x[:] = was
    elif isinstance(x, deque):
        x.clear()
        x.extend(was)
    elif isinstance(x, dict | set):
        x.clear()
        x.update(was)
    elif isinstance(x, bytearray):
        x[:] = was
    elif isinstance(x, np.ndarray):
        _plain(x)[...] = was
    elif isinstance(x, random.Random):
        x.setstate(pickle.loads(was).getstate())
    elif isinstance(x, np.random.Generator):
        x.bit_generator.state = pickle.loads(was).bit_generator.state
    elif isinstance(x, np.random.RandomState):
        x.set_state(pickle.loads(was).get_state())
    elif isinstance(x, Name):
        x.restore()
    else:
        for name in _state(x).keys() - was.keys():
            delattr(x, name)
        now = _state(x)
        for name, v in was.items():
            if now.get(name, UNSET) is not v:
                plain = name == "__class__" or isinstance(x, type)
                setattr(x, name, v) if plain else Entry(x, name).put(v)

"""What a function captured, by name, and the same function with other captured values.

    def make(w, helper):                      captured(f) == {"w": w, "helper": {"v": ...}}
        def f(x): return helper(x) * w        g = with_captured(f, {"w": 2.0})
        return f                              f still has the old w

Names are those of the program, and what a captured function captured in turn is nested:

    a closure           its free variables
    a partial           the parameters it fixes; "__func__" for what its function captured
    a bound method      "self": the object's attributes; "__func__" for what the function captured
    a callable object   "self": its attributes
    grad(f) and others  what f captured
    a list, tuple or    the same container, if it holds any of these; {} stands for those
    dict of these       that captured nothing

Left out are defaults, globals, modules, classes, and functions that captured nothing.  A cell
or an object that is reached twice is listed where it is reached first.

>>> def make(w):
...     def f(x):
...         return w * x
...     return f
>>> f = make(3.0)
>>> captured(f), with_captured(f, {"w": 5.0})(2.0), f(2.0)
({'w': 3.0}, 10.0, 6.0)
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from lineara.containers.points import ATTRIBUTE
from lineara.containers.proxy import Front
from lineara.errors import StructureError, is_own_file
from lineara.facts.hints import Leaf, Shaped, Tree
from lineara.facts.pickled import Transformed
from lineara.python.class_copies import LRU, has_user_code
from lineara.python.function_copies import dress, is_user_function
from lineara.python.twins import members

_FUNC, _SELF = "__func__", "self"
_LEFT_OUT = object()


def captured(f: Any, keep: Callable[[Any], bool] = lambda value: True) -> dict[str, Any]:
    """What `f` captured, by name (see the table of this module): the values that `keep` accepts.

    Law: `with_captured(f, captured(f))` behaves like `f`.
    """
    values = _Reader(keep).read(f)
    return values if values is not _LEFT_OUT and _opens(f) else {}


def with_captured(
    f: Callable[..., Any],
    values: Mapping[str, Any],
    shown: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """`f` with these captured values; those that are not named stay, and `f` is not changed.

    A captured function may be given in place of the values that it captured.  Variables that
    several of the functions share are still shared by the new ones.  Each value is `shown` first.
    """
    writer = _Writer(shown)
    writer.collect(f, values, "")
    return writer.build(f)


class _Part(NamedTuple):
    """A captured value: its name, the place that holds it (a cell, ..), and the value."""

    name: str
    place: Any  # a cell, or (id of the holder, name)
    value: Any


def _opens(value: Any) -> bool:
    """Whether a value is listed by what it captured, not as itself."""
    kind = type(value)
    if kind is FunctionType:
        return _is_closure(value)
    if kind is MethodType:
        owner = value.__self__
        return _has_attributes(owner) or isinstance(owner, Front) or _opens(value.__func__)
    if kind is LRU:
        return _opens(value.__wrapped__)
    if kind is Transformed:
        return _opens(value.f)
    return kind is functools.partial or (callable(value) and _has_attributes(value))


def _is_closure(f: FunctionType, depth: int = 4) -> bool:
    """Whether a function has cells, and is the user's or a decorator's around one of the user's."""
    if is_user_function(f):
        return any(True for _ in _cells(f))
    inner = [part.value for part in _cells(f) if type(part.value) is FunctionType]
    return any(is_user_function(g) or (depth > 0 and _is_closure(g, depth - 1)) for g in inner)


def _has_attributes(obj: object) -> bool:
    """Whether this is an object of a user's class, and no container whose leaves are traced."""
    return not isinstance(obj, type | _Self | Front) and any(map(has_user_code, type(obj).__mro__))


def _is_left_out(value: Tree) -> bool:
    """Whether this is a module, a class or a function that captured nothing."""
    if isinstance(value, ModuleType):
        return True
    return callable(value) and hasattr(value, "__name__") and not hasattr(type(value), ATTRIBUTE)


def _holds(value: Any) -> bool:
    """Whether this is a container of values that are listed by what they captured."""
    if type(value) is dict:
        return any(_opens(v) or _holds(v) for v in value.values())
    return type(value) in (list, tuple) and any(_opens(v) or _holds(v) for v in value)


def _cells(f: FunctionType) -> Iterator[_Part]:
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            if name != "__class__":
                yield _Part(name, cell, cell.cell_contents)
        except ValueError:  # not assigned yet
            continue


def _fixed(p: functools.partial[Any]) -> Iterator[_Part]:
    """The arguments that a partial fixes, by the names of the parameters."""
    for name, value in zip(_parameters(p), p.args, strict=False):
        yield _Part(name, (id(p), name), value)
    for name, value in p.keywords.items():
        yield _Part(name, (id(p), name), value)


def _parameters(p: functools.partial[Any]) -> Iterator[str]:
    """Names for the positional arguments: `x`, `y`, then `rest[0]`, `rest[1]`, ..."""
    own = type(p.func) is FunctionType and is_own_file(p.func.__code__.co_filename)
    names, rest = _known_names(p.func) if own else _names(p.func)
    yield from names
    for i in range(len(p.args)):
        yield f"{rest}[{i}]"


def _names(f: Callable[..., Any]) -> tuple[list[str], str]:
    """The names of the positional parameters, and that of the one that takes all others."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not say
        parameters = ()
    names, rest = [], "args"
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = parameter.name
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        names.append(parameter.name)
    return names, rest


_known_names = functools.lru_cache(maxsize=256)(_names)  # of our own functions, which stay


def _attributes(obj: Tree) -> dict[str, Any]:
    state = dict(getattr(obj, "__dict__", {}))
    for name, member in members(type(obj)):
        if hasattr(obj, name):
            state[name] = member.__get__(obj)
    return state


def _parts(value: object) -> Iterator[_Part]:
    """What this value captured; the parts `self` and `__func__` are opened in turn."""
    if isinstance(value, _Self):
        for name, attribute in _attributes(value.obj).items():
            yield _Part(name, (id(value.obj), name), attribute)
    elif type(value) is FunctionType:
        yield from _cells(value)
    elif type(value) is LRU:
        yield from _parts(value.__wrapped__)
    elif type(value) is Transformed:
        yield from _parts(value.f)
    elif type(value) is functools.partial:
        yield from _fixed(value)
        yield _Part(_FUNC, None, value.func)
    elif type(value) is MethodType:
        if _has_attributes(value.__self__):
            yield _Part(_SELF, None, _Self(value.__self__))
        elif isinstance(value.__self__, Front):
            yield _Part(_SELF, (id(value.__self__), _SELF), value.__self__)
        yield _Part(_FUNC, None, value.__func__)
    else:
        yield _Part(_SELF, None, _Self(value))


class _Self:
    """An object whose attributes are asked for."""

    def __init__(self, obj: Tree) -> None:
        self.obj = obj


class _Reader:
    """One walk through all that was captured; a place or an object is read once."""

    def __init__(self, keep: Callable[[Any], bool]) -> None:
        self.seen: dict[int, Any] = {}
        self.keep = keep

    def is_new(self, thing: object) -> bool:
        """Whether `thing` is met for the first time."""
        new = id(thing) not in self.seen
        self.seen[id(thing)] = thing
        return new

    def read(self, value: Shaped) -> Any:
        """The entry for `value` in the result."""
        if isinstance(value, _Self) or _opens(value):
            return self.open(value)
        if _holds(value):
            return self.read_container(value)
        return _LEFT_OUT if _is_left_out(value) else value

    def open(self, value: object) -> Any:
        """What `value` captured, by name."""
        values = {}
        holder = value.obj if isinstance(value, _Self) else value
        if _has_attributes(value) or self.is_new(holder):  # the attributes come with `self`
            for name, place, part in _parts(value):
                if type(place) is not CellType or self.is_new(place):
                    read = self.read(part)
                    values[name] = read if read is not part or self.keep(part) else _LEFT_OUT
        return {k: v for k, v in values.items() if v is not _LEFT_OUT} or _LEFT_OUT

    def read_container(self, value: Any) -> Any:
        """The container with what its entries captured; {} for an entry that captured nothing."""

        def entry(item: Any) -> Any:
            value = self.read(item)
            return {} if value is _LEFT_OUT else value

        if not self.is_new(value):
            return _LEFT_OUT
        if type(value) is dict:
            return {k: entry(v) for k, v in value.items()}
        return type(value)(map(entry, value))


class _Writer:
    """New values for places, and then all functions made again around them."""

    def __init__(self, shown: Callable[[Any], Any]) -> None:
        self.shown = shown
        self.new: dict[Any, Any] = {}  # place -> its new value
        self.made: dict[int, tuple[Any, Any]] = {}  # id -> (old, new)

    def collect(self, old: object, values: object, path: str) -> None:
        """Note what is new in `values`, which has the form that `captured` gives for `old`."""
        if not isinstance(values, Mapping):
            raise StructureError(
                f"with_captured: {path or 'the values'} must be a dict of names, as `captured` "
                f"gives it; found {type(values).__name__}"
            )
        parts = {part.name: part for part in _parts(old)} if _can_open(old) else {}
        for name, value in values.items():
            where = f"{path}.{name}" if path else name
            if name not in parts:
                known = ", ".join(parts) or "nothing"
                raise StructureError(
                    f"with_captured: there is no `{where}`; what was captured there: {known}"
                )
            self.collect_one(parts[name].place, parts[name].value, value, where)

    def collect_one(self, place: object, old: Any, value: Any, path: str) -> None:
        """Note the new value of one place."""
        if _can_open(old) and (place is None or isinstance(value, Mapping)):
            self.collect(old, value, path)
        elif _holds(old) and type(value) is type(old) and len(value) == len(old):
            for key, item in old.items() if type(old) is dict else enumerate(old):
                self.collect_one((id(old), key), item, value[key], f"{path}[{key!r}]")
        elif place is None and value:
            raise StructureError(f"with_captured: `{path}` captured nothing")
        elif not (
            _is_left_out(old) and isinstance(value, Mapping)
        ):  # {} stands for what captured nothing
            self.new[_key(place)] = self.shown(value)

    def build(self, value: Any) -> Any:
        """`value` made again around the new values; itself if it captured nothing."""
        if id(value) in self.made:
            return self.made[id(value)][1]
        kind = type(value)
        if kind is LRU:
            return self.build(value.__wrapped__)
        if kind in (list, tuple, dict) and _holds(value):
            return self.container(value)
        if not _opens(value):
            return value
        if kind is Transformed:
            return self.remember(value, value.of(self.build(value.f)))
        if kind is FunctionType:
            return self.function(value)
        if kind is functools.partial:
            return self.partial(value)
        if kind is MethodType:
            owner = value.__self__
            place = (id(owner), _SELF)
            owner = self.object(owner) if _has_attributes(owner) else self.at(place, owner)
            return MethodType(self.build(value.__func__), owner)
        return self.object(value)

    def remember(self, old: object, new: object) -> Any:
        """Let every other mention of `old` become `new`."""
        self.made[id(old)] = (old, new)
        return new

    def at(self, place: object, old: object) -> Any:
        """The value that a place has now."""
        return self.new[_key(place)] if _key(place) in self.new else self.build(old)

    def function(self, f: FunctionType) -> FunctionType:
        """The same code over new cells; a cell whose value stays is shared."""
        renewed = [part for part in _cells(f) if self.is_renewed(part)]
        cells = {id(cell): cell for cell in f.__closure__ or ()}
        fresh = []
        for part in renewed:
            if id(part.place) not in self.made:
                fresh.append((part, self.remember(part.place, CellType())))
            cells[id(part.place)] = self.made[id(part.place)][1]
        closure = tuple(cells[id(cell)] for cell in f.__closure__ or ())
        new = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, closure)
        self.remember(f, new)
        for part, cell in fresh:
            cell.cell_contents = self.at(part.place, part.value)
        dress(new, f)
        new.__kwdefaults__ = f.__kwdefaults__
        new.__dict__ = {name: self.build(value) for name, value in f.__dict__.items()}
        return new

    def is_renewed(self, part: _Part) -> bool:
        """Whether the cell needs a fresh one."""
        return _key(part.place) in self.new or _opens(part.value) or _holds(part.value)

    def partial(self, p: functools.partial[Any]) -> Any:
        """The partial with new arguments."""
        values = [self.at(part.place, part.value) for part in _fixed(p)]
        args, rest = values[: len(p.args)], values[len(p.args) :]
        options = dict(zip(p.keywords, rest, strict=True))
        return self.remember(p, functools.partial(self.build(p.func), *args, **options))

    def object(self, obj: Tree) -> Any:
        """An object of the same class with new attributes; `__init__` is not run again."""
        if id(obj) in self.made:
            return self.made[id(obj)][1]
        new = self.remember(obj, _blank(obj))
        for name, value in _attributes(obj).items():
            object.__setattr__(new, name, self.at((id(obj), name), value))
        return new

    def container(self, value: Any) -> Any:
        """The container with its entries made again."""
        if type(value) is tuple:
            items = (self.at((id(value), i), item) for i, item in enumerate(value))
            return self.remember(value, tuple(items))
        new = self.remember(value, type(value)())
        if type(value) is list:
            new.extend(self.at((id(value), i), item) for i, item in enumerate(value))
        else:
            new.update((k, self.at((id(value), k), item)) for k, item in value.items())
        return new


def _can_open(value: Leaf) -> bool:
    return isinstance(value, _Self) or _opens(value)


def _key(place: object) -> Any:
    return id(place) if type(place) is CellType else place


def _blank(obj: Any) -> Any:
    """An object of the same class without attributes; its other state, if any, is copied."""
    kind = type(obj)
    try:
        return object.__new__(kind)
    except TypeError:  # a list, a dict, ... by its own class
        base = next(b for b in kind.__mro__ if not b.__flags__ & 1 << 9)
        new = base.__new__(kind, *((obj,) if issubclass(base, tuple | str | int | float) else ()))
        if isinstance(obj, list):
            list.extend(new, obj)
        elif isinstance(obj, dict):
            dict.update(new, obj)
        return new

"""Containers at the boundary: lifted lazily on the way in, rebuilt as a gradient on the way out.

>>> params, read = {"w": 2.0, "b": [3.0, 4.0]}, []
>>> p = lift(params, lambda x: read.append(x) or 10 * x)
>>> p["b"][0], read
(30.0, [3.0])
>>> rebuild(params, p, lambda x, lifted: 0 if lifted is UNTOUCHED else lifted)
{'w': 0, 'b': [30.0, 0]}
"""

import enum
import functools
import itertools
import types
from abc import ABCMeta
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, is_, methodcaller
from typing import Any, Final

import numpy as np

from lineara.containers.lazy_dict import DictFront, LazyDefaultDict, LazyDict, LazyOrderedDict
from lineara.containers.lazy_record import Cached, LazyNamespace, LazyRecord, RecordFront
from lineara.containers.lazy_sequence import LazyList, LazyTuple, ListFront, TupleFront
from lineara.containers.points import declared, lifts_whole
from lineara.containers.proxy import Front, Lasting, Leaf, Places, State
from lineara.errors import TypeMismatchError, with_article
from lineara.facts.hints import Tree
from lineara.trees.fold import Node, Path, contains_itself, fold
from lineara.trees.kinds import Answering, Kind, kind_of, own_kind

Method = Callable[[Any], Any]


class Mark(enum.Enum):
    """What stands for a value that is not there."""

    UNTOUCHED = "never read"


UNTOUCHED: Final = Mark.UNTOUCHED

_PAIRS: dict[
    type, tuple[type[Front], type]
] = {  # root: what comes before, what after the user's class
    dict: (DictFront, LazyDict),
    OrderedDict: (DictFront, LazyOrderedDict),
    defaultdict: (DictFront, LazyDefaultDict),
    list: (ListFront, LazyList),
    tuple: (TupleFront, LazyTuple),
    types.SimpleNamespace: (RecordFront, LazyNamespace),
    object: (RecordFront, LazyRecord),
}
_NOT_COPIED = ("__new__", "__init_subclass__", "__class_getitem__", "__getattr__", "__missing__")


def same(cls: type) -> Any:
    """The hook `method` that leaves the user's classes and methods as they are."""
    return cls


def lift(source: Tree, leaf: Leaf, *, method: Method = same, places: Places | None = None) -> Any:
    """`leaf(source)` of a leaf; of a container a proxy that calls `leaf` when a leaf is first read.

    `places` knows the containers of the call, of which one may stand in two places.
    `method` gives what stands for a user's class, and for its functions; proxy classes are kept
    for the same `method`, so pass one that lives long.
    """
    classes = _classes(method)
    proxy_class = classes(type(source))
    if proxy_class is None:
        return leaf(source)
    return _opened(source, proxy_class, leaf, classes, places)


def _opened(
    source: Tree, proxy_class: type, leaf: Leaf, classes: Callable[..., Any], places: Places | None
) -> Any:
    proxy = proxy_class._lineara_open(State(source, proxy_class, leaf, classes, places=places))
    if places is not None and proxy is not source:
        places.open(source, proxy)
    return proxy


def shown(tree: Tree, method: Method, places: Places | None = None) -> Any:
    """Containers of traced values, made by us, as those of an argument: the methods of the user's
    classes see our NumPy.  What no proxy can stand for is given as it is.
    """
    classes = _classes(method, strict=False)
    proxy_class = classes(type(tree))
    return tree if proxy_class is None else _opened(tree, proxy_class, _itself, classes, places)


def repeats(tree: Tree) -> bool:
    """Whether a container that can be written stands in two places of a tree."""
    seen: set[int] = set()
    stack = [tree]
    while stack:
        x = stack.pop()
        kind = None if type(x) in _PLAIN else own_kind(type(x))
        if kind is None:
            continue
        if kind.root is not tuple:
            if id(x) in seen:
                return True
            seen.add(id(x))
        stack += [c for c in kind.children(x, kind.keys(x)) if type(c) is not float]
    return False


def _itself(x: object) -> Any:
    return x


class _Kept:
    """A proxy class, and the functions of the user's class, which may be assigned anew."""

    __slots__ = ("attributes", "codes", "functions", "proxy")

    def __init__(self, cls: type, proxy: Any) -> None:
        self.proxy = proxy
        self.attributes = [] if proxy is None or cls in _BUILT_IN else _attributes(cls)
        self.functions = _functions(self.attributes)
        self.codes = [*map(_CODE, self.functions)]

    def is_of(self, cls: type) -> bool:
        """Whether the functions of the class are what they were."""
        now = _attributes(cls)
        if not _alike(now, self.attributes):
            if not _alike(_functions(now), self.functions):
                return False
            self.attributes = now  # what else it has is read where it is
        return all(map(is_, map(_CODE, self.functions), self.codes))


def _alike(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(map(is_, now, before))


_CODE, _VALUES = attrgetter("__code__"), methodcaller("values")


def _attributes(cls: type) -> list[Any]:
    """What a class and its bases have."""
    return [*chain.from_iterable(map(_VALUES, map(vars, cls.__mro__)))]


def _functions(attributes: list[Any]) -> list[types.FunctionType]:
    """The functions among what classes have, and in it."""
    functions: list[types.FunctionType] = []
    for value in attributes:
        parts: tuple[Any, ...] = (getattr(value, "__func__", value),)
        if isinstance(value, property):
            parts = value.fget, value.fset, value.fdel
        elif isinstance(value, functools.cached_property):
            parts = (value.func,)
        functions += [f for f in parts if type(f) is types.FunctionType]
    return functions


# Two bounded caches: a proxy class is a pure function of what the user's class has, and the hook.
@functools.lru_cache(maxsize=16)
def _classes(method: Method, strict: bool = True) -> Callable[[type], Any]:
    @functools.lru_cache(maxsize=1024)
    def known(_: int, cls: type) -> list[_Kept]:  # of one, which may be replaced
        return [_Kept(cls, proxy_class(method, cls, strict))]

    def made(cls: type) -> Any:
        place = known(id(cls), cls)  # a class and its twin compare equal
        (kept,) = place
        if kept.attributes and not kept.is_of(cls):  # none of a leaf, or of Python's own
            kept = place[0] = _Kept(cls, proxy_class(method, cls, strict))
        return kept.proxy

    return made


def forget_classes() -> None:
    """Make the proxy classes again, since what `method` gives has changed."""
    _classes.cache_clear()


def proxy_class(method: Method, cls: type, strict: bool = True) -> type[Front] | None:
    """The class of the proxies of instances of `cls`; None for leaves.

    A container that no proxy can stand for is refused, or counts as a leaf where not `strict`.
    """
    kind = own_kind(cls)
    cls = cls if kind is None else kind.cls
    if (kind is None and kind_of(cls) is None) or lifts_whole(cls):
        return None
    if not strict and (kind is None or kind.root not in _PAIRS):
        return None
    if kind is None or kind.root not in _PAIRS:
        raise TypeMismatchError(
            f"{with_article(cls.__name__)} cannot be followed element by element; "
            "pass a list, tuple, dict or dataclass instead"
        )
    return _make_class(cls, kind, method)


def _make_class(cls: type, kind: Kind, method: Method) -> Any:
    front, lazy = _PAIRS[kind.root]
    as_seen = method(cls)
    names = {
        **_copied_methods(cls, kind.root, method),
        **front._lineara_names(kind),
        "__class__": property(lambda self: as_seen),
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "_lineara_kind": kind,
    }
    if kind.root is not tuple:  # a subclass of tuple cannot have slots
        names["__slots__"] = ("_lineara",)
    if hasattr(cls, "__del__"):
        names["__del__"] = lambda self: None
    bases = (front, lazy) if cls is kind.root else (front, cls, lazy)
    # The metaclass's own __new__ may do anything; ABCMeta's must run.
    new = ABCMeta.__new__ if isinstance(cls, ABCMeta) else type.__new__
    return new(type(cls), cls.__name__, bases, names)


def _copied_methods(cls: type, root: type, method: Method) -> dict[str, Any]:
    """The functions of the user's class that the hook replaces."""
    above = root.__mro__
    merged = {
        name: value
        for base in reversed(cls.__mro__)
        if base not in above
        for name, value in vars(base).items()
        if name not in _NOT_COPIED
    }
    copies = {name: _copied(name, value, method) for name, value in merged.items()}
    return {name: copy for name, copy in copies.items() if copy is not merged[name]}


def _copied(name: str, attribute: object, method: Method) -> Any:
    """The attribute with its functions replaced; the attribute itself where none was."""
    match attribute:
        case types.FunctionType():
            return method(attribute)
        case staticmethod() | classmethod():
            new = _copied(name, attribute.__func__, method)
            return attribute if new is attribute.__func__ else type(attribute)(new)
        case property():
            old = (attribute.fget, attribute.fset, attribute.fdel)
            new = [_copied(name, f, method) for f in old]
            return attribute if all(map(_is, old, new)) else property(*new, doc=attribute.__doc__)
        case functools.cached_property():
            return Cached(_copied(name, attribute.func, method))
    return attribute


def _is(x: object, y: object) -> bool:
    return x is y


def rebuild(
    source: Tree, proxy: object, finish: Callable[[Any, Any], Any], *, sparse: bool = False
) -> Any:
    """The container `source` with `finish(leaf, lifted)` in place of each leaf.

    `proxy` is what `lift(source, ...)` gave, whatever was written to it since.  `lifted` is
    `UNTOUCHED` for a leaf that was never read.  If `sparse`, what was never read is visited only
    when somebody asks for it, but for the fields of a container of which something was read:
    a dict gives what was read (in that order) and is asked for the rest, see `Touched`.

    >>> p = lift([1.0, {"a": 2.0, "b": 3.0}], lambda x: x)
    >>> p[1]["b"]
    3.0
    >>> rebuild([1.0, {"a": 2.0, "b": 3.0}], p, lambda x, lifted: lifted is UNTOUCHED)
    [True, {'a': True, 'b': False}]
    >>> g = rebuild([1.0, {"a": 2.0, "b": 3.0}], p, lambda x, lifted: 0, sparse=True)
    >>> g, g[1]["a"]
    ([0.0, {'b': 0}], 0)
    """
    if not sparse:
        return _rebuild_all(source, proxy, finish)
    return fold(
        Node(source, proxy),
        _expand_touched,
        lambda node: finish(node.value, node.rest),
        functools.partial(_close_touched, Zeros(finish)),
    )


_PLAIN = (float, np.ndarray)  # leaves, without a second look
_BUILT_IN = {cls: kind_of(cls) for cls in (tuple, list, dict)}


def _kind(x: Tree) -> Kind | None:
    cls = type(x)
    if cls in _BUILT_IN:
        return _BUILT_IN[cls]
    return None if lifts_whole(cls) else own_kind(cls) or kind_of(cls)


def _rebuild_all(source: Tree, proxy: object, finish: Callable[[Any, Any], Any]) -> Any:
    """Every leaf, in one loop; the containers around it wait on a stack.

    With each waits the key of the child that it waits for, and what has been done of it.
    """
    kind = _kind(source)
    if kind is None:
        return finish(source, proxy)
    stack: list[tuple[Any, ...]] = []
    around = {id(source)}
    keys, left = _children(kind, source)
    memo, values = _memo(proxy), []
    while True:
        for key, child in left:
            lifted = memo.get(key, UNTOUCHED)
            inner = None if type(child) in _PLAIN else _kind(child)
            if inner is None:
                values.append(finish(child, lifted))
                continue
            stack.append((kind, key, source, keys, left, memo, values))
            if id(child) in around:
                raise contains_itself(_path(stack))
            around.add(id(child))
            kind, source = inner, child
            keys, left = _children(kind, source)
            memo, values = _memo(lifted), []
            break
        else:
            made = _closed(kind, source, keys, values)
            if not stack:
                return made
            around.discard(id(source))
            kind, _, source, keys, left, memo, values = stack.pop()
            values.append(made)


def _children(kind: Kind, source: object) -> tuple[Sequence[Any], Iterator[tuple[Any, Any]]]:
    """The keys of a container, where `make` asks for them, and its (key, child) pairs."""
    if type(source) is tuple or type(source) is list:
        return (), enumerate(tuple(source))
    keys = kind.keys(source)
    if type(source) is dict:
        return keys, zip(keys, list(source.values()), strict=True)
    return keys, zip(keys, kind.children(source, keys), strict=True)


def _closed(kind: Kind, source: object, keys: Sequence[Any], values: list[Any]) -> Any:
    """The container with its values; of a point the cotangent."""
    if type(source) is tuple:
        return tuple(values)
    made = kind.make(kind.aux(source), keys, values)
    if type(source) in _BUILT_IN:
        return made
    points = declared(kind)
    return made if points is None else points.covector(source, made, None)


def _path(stack: list[tuple[Any, ...]]) -> Path:
    """The way to the child that the last container is about to open."""
    path: Path = None
    for kind, key, *_ in stack:
        path = (path, kind, key)
    return path


# --- of what was touched ------------------------------------------------------------------------

_LONG = 64  # elements, beyond which a list or tuple of arrays or containers makes its zeros lazily


class Zeros(Lasting):
    """The zero of whatever was never read: of a leaf at once, of a container when it is read."""

    __slots__ = ("finish",)

    def __init__(self, finish: Callable[[Any, Any], Any]) -> None:
        self.finish: Callable[[Any, Any], Any] = finish

    def __call__(self, x: Any) -> Any:
        """The zero of a leaf; the zeros of a container, nothing read."""
        kind = _kind(x)
        if kind is None:
            return self.finish(x, UNTOUCHED)
        if kind.cls is dict:
            return Touched(x, self)
        if kind.root not in _PAIRS:  # no proxy stands for it
            return _rebuild_all(x, UNTOUCHED, self.finish)
        return self.opened(x)

    def opened(self, x: Sequence[Any]) -> Any:
        """A proxy of x in which every leaf is zero."""
        cls = _zero_class(type(x))
        return cls._lineara_open(State(x, cls, self, _zero_class))


def _zero_class(cls: type) -> Any:
    """The class of a proxy; None for what `Zeros` makes itself."""
    kind = None if cls in _PLAIN else own_kind(cls)
    if kind is None or kind.cls is dict or kind.root not in _PAIRS:
        return None
    return _classes(same)(cls)


class Touched(Answering, dict):
    """The sparse gradient of a dict: it holds what was touched, and knows that the rest is zero.

    Iteration, `len` and `in` go by what was touched; `g[key]` and `g.get(key)` answer a zero for
    every other key of the dict that was differentiated.  A copy or pickle is a plain dict.

    >>> g = Touched({"w": 1.0, "b": 2.0}, lambda x: 0 * x, {"w": 5.0})
    >>> g, g["b"], g.get("b"), g.get("c"), "b" in g
    ({'w': 5.0}, 0.0, 0.0, None, False)
    """

    __slots__ = ("_source", "_zeros")
    _lineara_kind = kind_of(dict)

    def __init__(self, source: Any, zeros: Callable[[Any], Any], held: Any = ()) -> None:
        super().__init__(held)
        self._source = source
        self._zeros = zeros

    def __missing__(self, key: object) -> Any:
        return self._zeros(self._source[key])

    def get(self, key: object, default: Any = None) -> Any:
        """What was touched, or the zero of what was not; the default for a key of neither."""
        return self[key] if key in self or key in self._source else default

    def _lineara_all_keys(self) -> list[Any]:
        return list(self._source)

    def __reduce_ex__(self, protocol: object) -> Any:
        return dict, (dict(self),)


def _expand_touched(node: Node) -> tuple[Kind, list[Node]] | None:
    kind = _kind(node.value)
    if kind is None:
        return None
    return kind, [
        Node(kind.child(node.value, key), lifted, (node.path, kind, key))
        for key, lifted in _memo(node.rest).items()
    ]


def _memo(proxy: object) -> dict[Any, Any]:
    """What was lifted of a container."""
    return proxy._lineara.memo if isinstance(proxy, Front) else {}


def _close_touched(zeros: Zeros, node: Node, kind: Kind, values: list[Any]) -> Any:
    source, closed = node.value, dict(zip(_memo(node.rest), values, strict=True))
    if kind.cls is dict:
        return Touched(source, zeros, closed)
    if kind.cls in (list, tuple) and len(source) > _LONG and _may_be_read_later(source[0]):
        made = zeros.opened(source)
        made._lineara.memo.update(closed)
        if kind.cls is list:
            for i, value in closed.items():
                list.__setitem__(made, i, value)
        return made
    if kind.cls in (list, tuple) and _of_one_class(source) is float:
        numbers = [0.0] * len(source)
        for i, value in closed.items():
            numbers[i] = value
        return _closed(kind, source, (), numbers)
    keys = kind.keys(source)
    whole = {
        key: closed[key] if key in closed else 0.0 if type(child) is float else zeros(child)
        for key, child in zip(keys, kind.children(source, keys), strict=True)
    }
    return _closed(kind, source, keys, list(whole.values()))


def _of_one_class(source: Sequence[Any]) -> type | None:
    """The class that all elements are of; None where they are of several."""
    classes = [cls for cls, _ in itertools.islice(itertools.groupby(source, type), 2)]
    return classes[0] if len(classes) == 1 else None


def _may_be_read_later(x: Tree) -> bool:
    return type(x) is float or isinstance(x, np.ndarray) or _kind(x) is not None

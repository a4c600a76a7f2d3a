"""Kinds of containers: how each is split into (key, child) pairs and rebuilt.

`kind_of(cls)` is the kind of a class, or None for the classes of leaves.  For every kind

    keys = kind.keys(x)
    kind.make(kind.aux(x), keys, kind.children(x, keys))     is a copy of     x

and `make` calls no `__init__`, `__new__` or `__post_init__` of the user's class.
"""

# ruff: noqa: D102  # `Kind` says what keys, child, aux, make and step are
import dataclasses
import functools
import struct
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

_ROOTS = (dict, list, tuple, OrderedDict, defaultdict, deque, types.SimpleNamespace, object)
NAMESPACE = "lineara"  # searched by optree before its global registry
_LEAVES = frozenset((float, int, complex, bool, str, bytes, type(None), type, types.FunctionType))
_ARRAY_NAMES = (
    "__array__",
    "__array_ufunc__",
    "__array_function__",
    "__array_priority__",
    "__jax_array__",
)
_NUMBER_NAMES = ("__float__", "__complex__", "__index__")
_PLAIN_STDLIB = ("__main__", "collections", "types", "typing")
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class created at run time
_POINTER = struct.calcsize("P")


class Proxy:
    """Base of the lazy proxies (containers/proxy.py), which read their own children."""

    __slots__ = ()
    _lineara_kind: Any  # the Kind of the user's class
    _lineara_keys: Any
    _lineara_child: Any
    _lineara_has: Any


class Answering:
    """Base of dicts that store some of their children and compute `x[key]` for the others."""

    __slots__ = ()
    _lineara_kind: Any  # the kind of dict: rebuilt, it is a plain dict
    _lineara_all_keys: Any


class Attr(NamedTuple):
    """The key of an instance attribute of a dict, list or tuple subclass."""

    name: str


def is_container(x: object) -> bool:
    """Whether `x` is a container, not a leaf.

    >>> is_container({"w": 1.0}), is_container(1.0), is_container("w"), is_container(None)
    (True, False, False, False)
    """
    return kind_of(type(x)) is not None


_PLAIN_MODULES = {"builtins", "collections", "numpy"}  # modules whose classes are not registered


def kind_of(cls: type) -> "Kind | None":
    """The kind of the instances of `cls`: optree's if registered, else ours; None for leaves."""
    if cls in _LEAVES:
        return None
    if cls.__module__ in _PLAIN_MODULES:
        return own_kind(cls)
    return _registered(cls) or own_kind(cls)


def own_kind(cls: type) -> "Kind | None":
    """The kind of the instances of `cls`, without optree's registry; None for leaves."""
    return _own_kind(id(cls), cls)  # a class and its twin (python/twins) compare equal


# The cache is bounded, and its values depend on the class alone.
@functools.lru_cache(maxsize=4096)
def _own_kind(_: int, cls: type) -> "Kind | None":
    if issubclass(cls, Proxy | Answering):
        return cls._lineara_kind
    root = next(base for base in cls.__mro__ if base in _ROOTS)
    if _is_leaf_class(cls, root):
        return None
    return _KINDS[root](cls, root)


def _is_leaf_class(cls: type, root: type) -> bool:
    if cls in _ROOTS:
        return cls is object
    if getattr(cls, "__lineara_leaf__", False) or not _is_pure(cls, root):
        return True
    if issubclass(cls, (type, Enum)) or _has_any(cls, _ARRAY_NAMES):
        return True
    if root is not object or is_record_class(cls):
        return False
    return _has_any(cls, _NUMBER_NAMES) or _is_stdlib(cls)


def is_record_class(cls: type) -> bool:
    """Whether the class declares its fields: a dataclass or an attrs class."""
    return dataclasses.is_dataclass(cls) or hasattr(cls, "__attrs_attrs__")


def _has_any(cls: type, names: Iterable[str]) -> bool:
    return any(getattr(cls, name, None) is not None for name in names)


def _is_stdlib(cls: type) -> bool:
    top = cls.__module__.partition(".")[0]
    return top in sys.stdlib_module_names and top not in _PLAIN_STDLIB


def _is_pure(cls: type, root: type) -> bool:
    """Whether `cls` derives from `root` by `class` statements, without C fields of its own."""
    if hasattr(cls, "n_sequence_fields"):  # such as os.stat_result
        return False
    spare = len(slots_of(cls)) + 2  # two more for __dict__ and __weakref__
    is_small = cls.__basicsize__ <= root.__basicsize__ + spare * _POINTER
    return is_small and bool(cls.__flags__ & _HEAP_TYPE)


def _between(cls: type, root: type) -> list[type]:
    return [base for base in cls.__mro__ if base not in _ROOTS]


def slots_of(cls: type) -> dict[str, types.MemberDescriptorType]:
    """The slots of a class and its bases, those of bases first."""
    return {
        name: value
        for base in reversed(_between(cls, object))
        for name, value in vars(base).items()
        if type(value) is types.MemberDescriptorType
    }


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class Kind:
    """How the instances of one class are split into children and rebuilt."""

    def __init__(self, cls: type, root: type) -> None:
        self.cls = cls
        self.root: Any = root
        self.getitem: Any = getattr(root, "__getitem__", None)
        self.has_dict: bool = root is not types.SimpleNamespace and cls.__dictoffset__ != 0

    def keys(self, x: object) -> list[Any]:
        """The keys of the children, in their order."""
        raise NotImplementedError

    def child(self, x: Any, key: Any) -> Any:
        """The child at a key of `keys(x)`, without the user's `__getitem__`."""
        if type(key) is Attr:
            return vars(x)[key.name]
        return x._lineara_child(key) if isinstance(x, Proxy) else self.getitem(x, key)

    def children(self, x: object, keys: Sequence[Any]) -> list[Any]:
        """The children at the given keys, in their order."""
        if type(x) is list or type(x) is tuple:
            return list(x)
        return [self.child(x, key) for key in keys]

    def aux(self, x: Any) -> Any:
        """The part of the container that is neither key nor child, such as a default factory."""
        return None

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        """A container with these keys and children."""
        raise NotImplementedError

    def step(self, key: object) -> str:
        """The key as Python writes it after a path: `['w']`, `[2]`, `.w`."""
        return f".{key.name}" if type(key) is Attr else f"[{key!r}]"

    def attributes(self, x: object) -> list[Attr]:
        """The instance attributes of a dict, list or tuple subclass, as keys."""
        members = vars(x) if self.has_dict else {}
        return [] if members is x else [Attr(name) for name in members if name != "_lineara"]

    def __repr__(self) -> str:
        return self.cls.__qualname__


def _with_attributes(x: object, keys: Sequence[Any], values: Sequence[Any]) -> Any:
    for key, value in zip(keys, values, strict=True):
        if type(key) is Attr:
            vars(x)[key.name] = value
    return x


def _items(keys: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    return [v for k, v in zip(keys, values, strict=True) if type(k) is not Attr]


class MappingKind(Kind):
    """dict and its subclasses, also OrderedDict and defaultdict."""

    def __init__(self, cls: type, root: type) -> None:
        super().__init__(cls, root)
        self.has_factory: bool = root is defaultdict

    def keys(self, x: Any) -> list[Any]:
        keys = x._lineara_keys() if isinstance(x, Proxy) else self.root.__iter__(x)
        return [*keys, *self.attributes(x)]

    def aux(self, x: Any) -> Any:
        return (x.default_factory if self.has_factory else None, self.has_dict and vars(x) is x)

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        if self.cls is dict:
            return dict(zip(keys, values, strict=True))
        new = self.root.__new__(self.cls)
        for key, value in zip(keys, values, strict=True):
            if type(key) is not Attr:
                self.root.__setitem__(new, key, value)
        factory, is_own_dict = aux
        if self.has_factory:
            new.default_factory = factory
        if is_own_dict:
            new.__dict__ = new
        return _with_attributes(new, keys, values)


class ListKind(Kind):
    """list and its subclasses."""

    def keys(self, x: Any) -> list[Any]:
        places = range(self.root.__len__(x))
        return [*places, *self.attributes(x)] if self.has_dict else list(places)

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        if self.cls is list:
            return list(values)
        new = list.__new__(self.cls)
        list.extend(new, _items(keys, values))
        return _with_attributes(new, keys, values)


class DequeKind(ListKind):
    """collections.deque and its subclasses."""

    def aux(self, x: Any) -> Any:
        return x.maxlen

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        new = deque.__new__(self.cls)
        deque.__init__(new, _items(keys, values), aux)
        return _with_attributes(new, keys, values)


class TupleKind(ListKind):
    """tuple and its subclasses; a NamedTuple's path is written with its fields."""

    def __init__(self, cls: type, root: type) -> None:
        super().__init__(cls, root)
        fields = getattr(cls, "_fields", ())
        self.fields: tuple[str, ...] = fields if isinstance(fields, tuple) else ()

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        if not self.has_dict:
            return tuple.__new__(self.cls, values)
        return _with_attributes(tuple.__new__(self.cls, _items(keys, values)), keys, values)

    def step(self, key: object) -> str:
        if type(key) is int and key < len(self.fields):
            return f".{self.fields[key]}"
        return super().step(key)


class RecordKind(Kind):
    """Objects with fields: dataclasses, attrs classes, SimpleNamespace, plain instances."""

    def __init__(self, cls: type, root: type) -> None:
        super().__init__(cls, root)
        self.has_dict: bool = cls.__dictoffset__ != 0
        # a view of an object is read by its attributes, and what is made in its place is no view
        self.made: type = vars(cls).get("__lineara_record__", cls)
        self.is_view: bool = self.made is not cls
        slots = slots_of(self.made)
        self.slots: dict[str, types.MemberDescriptorType] = {
            name: slot for name, slot in slots.items() if not _is_dunder(name)
        }
        self.hidden: list[types.MemberDescriptorType] = [
            slot for name, slot in slots.items() if _is_dunder(name)
        ]
        self.known: tuple[str, ...] = tuple(dict.fromkeys((*_declared(cls), *self.slots)))
        self.recomputed: frozenset[str] = frozenset(_cached_properties(cls))

    def keys(self, x: Any) -> list[Any]:
        if isinstance(x, Proxy):
            return x._lineara_keys()
        members = vars(x) if self.has_dict else {}
        slots = self.slots
        names = [n for n in self.known if n in members or (n in slots and self._is_set(n, x))]
        names = dict.fromkeys((*names, *members)) if members else names
        return [name for name in names if name not in self.recomputed]

    def child(self, x: Any, key: Any) -> Any:
        if isinstance(x, Proxy):
            return x._lineara_child(key)
        if self.is_view:
            return getattr(x, key)
        return self.slots[key].__get__(x) if key in self.slots else vars(x)[key]

    def _is_set(self, name: str, x: object) -> bool:
        """Whether a slot holds something."""
        return hasattr(x, name) if self.is_view else _is_set(self.slots[name], x)

    def children(self, x: Any, keys: Sequence[Any]) -> list[Any]:
        if self.slots or self.is_view or isinstance(x, Proxy):
            return super().children(x, keys)
        members = vars(x) if keys else {}
        return [members[key] for key in keys]

    def has(self, x: object, name: str) -> bool:
        """Whether `name` is one of `keys(x)`, in constant time."""
        if isinstance(x, Proxy):
            return x._lineara_has(name)
        if name in self.slots:
            return self._is_set(name, x)
        return self.has_dict and name in vars(x) and name not in self.recomputed

    def aux(self, x: Any) -> Any:
        if not self.hidden:
            return ()
        return tuple((slot, slot.__get__(x)) for slot in self.hidden if _is_set(slot, x))

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        new = self.root.__new__(self.made)
        for slot, value in aux:
            slot.__set__(new, value)
        members = vars(new) if self.has_dict else {}
        for key, value in zip(keys, values, strict=True):
            if key in self.slots:
                self.slots[key].__set__(new, value)
            else:
                members[key] = value
        return new

    def step(self, key: object) -> str:
        return f".{key}"


def _is_set(slot: types.MemberDescriptorType, x: object) -> bool:
    try:
        slot.__get__(x)
    except AttributeError:
        return False
    return True


def _declared(cls: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(field.name for field in getattr(cls, "__attrs_attrs__", ()))


def _cached_properties(cls: type) -> list[str]:
    """Names of cached properties, whose values a rebuilt object computes again."""
    names = {name for base in cls.__mro__ for name in vars(base)}
    return [n for n in names if isinstance(getattr(cls, n, None), functools.cached_property)]


class RegisteredKind(Kind):
    """A class that its author registered with optree."""

    def __init__(self, entry: Any) -> None:
        super().__init__(entry.type, object)
        self._flatten: Callable[..., Any] = entry.flatten_func
        self._unflatten: Callable[..., Any] = entry.unflatten_func

    def keys(self, x: Any) -> list[Any]:
        children, _, *names = self._flatten(x)
        return list(names[0]) if names and names[0] else list(range(len(tuple(children))))

    def children(self, x: Any, keys: Sequence[Any]) -> list[Any]:
        return list(self._flatten(x)[0])

    def aux(self, x: Any) -> Any:
        return self._flatten(x)[1]

    def make(self, aux: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        return self._unflatten(aux, tuple(values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegisteredKind) and self.cls is other.cls

    def __hash__(self) -> int:
        return hash(self.cls)


def _registered(cls: type) -> RegisteredKind | None:
    """The kind of a class in optree's registry; None if optree is not imported."""
    optree = sys.modules.get("optree")
    if optree is None:
        return None
    entry = optree.register_pytree_node.get(cls, namespace=NAMESPACE)
    return RegisteredKind(entry) if entry is not None and entry.type is cls else None


_KINDS: dict[type, type[Kind]] = {
    dict: MappingKind,
    OrderedDict: MappingKind,
    defaultdict: MappingKind,
    list: ListKind,
    deque: DequeKind,
    tuple: TupleKind,
    types.SimpleNamespace: RecordKind,
    object: RecordKind,
}

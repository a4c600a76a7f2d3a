"""Proxies: subclasses of the user's classes that lift a child when it is first read.

The class of a proxy of a C is made once, with the bases

    Front   what must win over the user's class: construction, the first read
    C       the user's class, whose own methods stay in force
    Lazy*   dict, list, tuple or object again, each method reading through the first read
    dict, list, tuple, object

so `super().get(...)` in a method of C finds the lazy method, never the raw one.  The storage
that C code may see holds lifted children and `UNREAD`, and so no raw leaf.  (C code that looks
into a dict without asking it, as `dict.items(p)` does, finds only what has been read, and
`UNREAD`.)
"""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from lineara.errors import MutationError, TypeMismatchError
from lineara.facts.hints import Tree
from lineara.trees.fold import Path, contains_itself
from lineara.trees.kinds import Kind, Proxy, own_kind

Leaf = Callable[[Any], Any]


class Unread:
    """What lies in the storage of a lazy list or tuple where nothing has been read yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<not read yet>"

    def _refuse(self, *args: Any) -> Any:
        raise TypeMismatchError(
            "C code read the storage of a list or tuple that is being differentiated; "
            "give it a plain copy instead: list(x) or tuple(x)"
        )

    __float__ = _refuse
    __index__ = _refuse
    __lt__ = _refuse
    __le__ = _refuse
    __gt__ = _refuse
    __ge__ = _refuse
    __add__ = _refuse
    __radd__ = _refuse
    __mul__ = _refuse
    __rmul__ = _refuse


UNREAD = Unread()


class Places:
    """The lists, dicts and records that one call opened: one may stand in two places.

    Each place has a proxy of its own, since each has a gradient of its own; so none may be written.
    `beside` are the arguments that are not differentiated; `strict` says that some stand in two.
    """

    __slots__ = ("beside", "careful", "proxies", "several", "strict")

    def __init__(self, beside: Sequence[Any] = (), strict: bool = False) -> None:
        self.proxies: dict[int, Any] = {}  # the first of each container
        self.several: dict[int, list[Any]] = {}  # where there are more
        self.beside: dict[int, Any] = {}
        if beside:
            self.beside = {id(x): copy.copy(x) for x in beside if _is_mutable(own_kind(type(x)))}
        self.strict: bool = strict
        self.careful: bool = strict or bool(self.beside)

    def open(self, source: Tree, proxy: Proxy) -> None:
        """A proxy was made of a container of the user's."""
        first = self.proxies.setdefault(id(source), proxy)
        if first is proxy and not self.careful:
            return
        if not _is_mutable(proxy._lineara_kind):
            return
        if first is not proxy or self.strict or id(source) in self.beside:
            self.several.setdefault(id(source), [first]).append(proxy)
            self.settle()

    def settle(self) -> None:
        """Refuse what was written so far."""
        for proxies in self.several.values():
            source = proxies[0]._lineara.source
            now = self.beside.get(id(source), source)
            if any([p._lineara_written() for p in proxies]) or not _holds_the_same(source, now):
                raise MutationError(
                    f"an argument ({type(source).__name__}) that was given in several places was "
                    "written in one of them, which the others would not see; give copies, or write "
                    "to a copy"
                )

    def close(self) -> None:
        """Refuse what was written; forget the proxies, which know of these places.

        The function has returned.  What forms no cycle is freed at once, with the arguments.
        """
        self.settle()
        self.proxies.clear()
        self.several.clear()


def _is_mutable(kind: Kind | None) -> bool:
    return kind is not None and kind.root is not tuple


def _holds_the_same(source: Tree, copied: object) -> bool:
    if source is copied:
        return True
    kind: Any = own_kind(type(source))
    keys, others = kind.keys(source), kind.keys(copied)
    pairs = zip(kind.children(source, keys), kind.children(copied, others), strict=False)
    return list(keys) == list(others) and all([x is y for x, y in pairs])


class State:
    """What a proxy knows: its source, how to lift, and what was lifted, whatever is written.

    `classes(cls)` is the proxy class for a class, or None for the class of a leaf.  `keys` is
    for the proxy's own use: what has been added or deleted.
    """

    __slots__ = (
        "classes",
        "depth",
        "keys",
        "kind",
        "leaf",
        "memo",
        "path",
        "places",
        "proxy_class",
        "source",
        "turtle",
    )
    turtle: Any
    source: Any

    keys: Any

    def __init__(
        self,
        source: Any,
        proxy_class: type,
        leaf: Leaf,
        classes: Callable[[type], Any],
        path: Path = None,
        depth: int = 0,
        places: Places | None = None,
    ) -> None:
        self.source = self.turtle = source
        self.proxy_class: type = proxy_class
        self.kind: Kind = proxy_class._lineara_kind
        self.leaf: Leaf = leaf
        self.classes: Callable[[type], Any] = classes
        self.path: Path = path
        self.depth: int = depth
        self.places: Places | None = places
        self.memo: dict[Any, Any] = {}

    def child(self, key: Any) -> Any:
        """The child at a key, lifted for the first time."""
        return self.lift(key, self.kind.child(self.source, key))

    def lift(self, key: int | str, raw: object) -> Any:
        """The child `raw` that lies at a key, lifted for the first time."""
        cls = type(raw)
        if cls is float:
            lifted = self.memo[key] = self.leaf(raw)
            return lifted
        # A child often is of its parent's class: a cell of a list, a node of a tree.
        proxy_class = self.proxy_class if cls is type(self.source) else self.classes(cls)
        if proxy_class is None:
            lifted = self.leaf(raw)
        else:
            lifted = proxy_class._lineara_open(self._below(key, raw, proxy_class))
            if self.places is not None and lifted is not raw:
                self.places.open(raw, lifted)
        self.memo[key] = lifted
        return lifted

    def _below(self, key: int | str, raw: object, proxy_class: type) -> "State":
        """The state of a child container.

        On the way down a turtle stays behind at each power of two [Brent 1980], so a program
        that goes round and round in a container is noticed, at constant cost a step.
        """
        path = (self.path, self.kind, key)
        if raw is self.source or raw is self.turtle:
            raise contains_itself(path)
        depth = self.depth + 1
        state = State(raw, proxy_class, self.leaf, self.classes, path, depth, self.places)
        if depth & self.depth:  # not a power of two
            state.turtle = self.turtle
        return state


class Lasting:
    """Base of a `Leaf` whose values belong to no call: a pickle of its proxies is plain."""

    __slots__ = ()


class Front(Proxy):
    """What a proxy class has before the user's class."""

    __slots__ = ()
    _lineara: State

    @classmethod
    def _lineara_open(cls: type, state: State) -> Any:
        """The proxy of `state.source`, nothing read."""
        raise NotImplementedError

    @staticmethod
    def _lineara_names(kind: Any) -> dict[str, Any]:
        """What the proxy class of a kind must define itself, before the user's class."""
        return {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """`type(p)(...)` makes what the user's class makes."""
        return cls._lineara_kind.cls(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Say nothing to the user's class: the registries it may keep are not for proxies."""


class Back:
    """What a proxy class has after the user's class: copies are plain, pickles mostly refused."""

    __slots__ = ()
    _lineara: State

    def __copy__(self) -> Any:
        return plain(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _remade(self, lambda child: copy.deepcopy(child, memo))

    def __reduce_ex__(self, protocol: object) -> Any:
        if isinstance(self._lineara.leaf, Lasting):
            return _itself, (plain(self),)
        name = self._lineara.kind.cls.__name__
        raise TypeMismatchError(
            f"pickle: this {name} is being differentiated, and its leaves belong to this call; "
            "pickle the argument itself, outside of the function that is differentiated"
        )


def _itself(x: list[Any]) -> Any:
    return x


def is_lazy(x: Tree) -> bool:
    """Whether `x` is a proxy."""
    return isinstance(x, Front)


def plain(proxy: object) -> Any:
    """The container that a proxy stands for: everything in it is read, one level deep."""
    return _remade(proxy, lambda child: child)


def _remade(proxy: object, f: Callable[[Any], Any]) -> Any:
    kind: Any = own_kind(proxy.__class__)  # the class that the program sees
    keys = kind.keys(proxy)
    return kind.make(kind.aux(proxy), keys, [f(child) for child in kind.children(proxy, keys)])


def through(cls: type, name: str) -> Callable[..., Any]:
    """The method of a plain list, tuple or dict, on a copy of what the proxy holds."""
    function = getattr(cls, name)

    @functools.wraps(function)
    def method(self: Any, *args: Any) -> Any:
        return function(
            cls(self), *[cls(x) if is_lazy(x) and isinstance(x, cls) else x for x in args]
        )

    return method


def open_attributes(self: Any, state: State) -> None:
    """Lift the instance attributes of a dict, list or tuple subclass; they are few."""
    if vars(state.source) is state.source:  # class AttrDict(dict): self.__dict__ = self
        self.__dict__ = self
        return
    for key in state.kind.attributes(state.source):
        vars(self)[key.name] = state.child(key)

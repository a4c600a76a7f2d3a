"""Twins: classes whose functions are copies, and objects that share the state of others.

The twin X' of a class X is a subclass of X with the same layout.  The bases of X' are X and the
twins of X's bases, so Python's own order of resolution puts each twin just before its class:

    class A; class B(A); class C(A); class D(B, C)
    D'  D  B'  B  C'  C  A'  A  object

`super()` in a copied method of B still starts after B, and finds the copy in the next twin.

A *view* of an object is an instance of a subclass of the twin that shares the `__dict__` of
the object and reads its slots; attributes that hold functions, objects or containers of them
go through the overlay.  A twin or a view is equal to what it stands for, and hashes the same.
"""

import copy
import copyreg
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple, cast

from lineara.facts.hints import Shaped, Tree
from lineara.python.namespaces import Replacer, same
from lineara.tape.node import Traced
from lineara.tape.numpy_errors import asks_by_name
from lineara.tape.swallowed_errors import Told

_LINK = "__lineara_link__"
_ORIGIN = "__lineara_origin__"
_LOOKED = "__lineara_looked__"  # at which attributes, in which run
_FRESH = "__lineara_fresh__"
_OWN = ("__module__", "__qualname__", "__doc__", "__slots__", "__abstractmethods__", _LINK)


class Link(NamedTuple):
    """The class that a twin stands for; `view`: the twin is a class of views."""

    real: type
    twin: "type | None"
    overlay: Replacer


class _Shield:
    """Between a new twin and its class, so that the user's `__init_subclass__` is not run."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        pass


def link_of(cls: type) -> Link | None:
    """The link of a twin or a class of views; any other class has none."""
    return type.__getattribute__(cls, "__dict__").get(_LINK)


class TwinType(type):
    """The class of twins.  What is asked of a twin is answered by the real class."""

    def mro(cls) -> list[type]:
        """Python's order; while the twin is being made, with a shield after it."""
        order = super().mro()
        return [order[0], _Shield, *order[1:]] if _FRESH in vars(cls) else order

    def __instancecheck__(cls, obj: Tree) -> bool:
        link = link_of(cls)
        return isinstance(obj, link.real) if link else super().__instancecheck__(obj)

    def __subclasscheck__(cls, other: type) -> bool:
        link = link_of(cls)
        if link is None:
            return super().__subclasscheck__(other)
        return type.__subclasscheck__(link.real, other)  # an ABC would ask its twin again

    def __eq__(cls, other: object) -> bool:
        link = link_of(cls)
        if link is None:
            return cls is other
        theirs = link_of(other) if isinstance(other, type) else None
        return link.real is (theirs.real if theirs else other)

    def __hash__(cls) -> int:
        link = link_of(cls)
        return hash(link.real) if link else type.__hash__(cls)

    def __getitem__(cls, item: type) -> Any:
        if hasattr(super(), "__getitem__"):  # the user's metaclass has one
            return super().__getitem__(item)  # type: ignore[misc]  # just asked for
        own, link = getattr(cast(Any, cls).__class_getitem__, "__func__", None), link_of(cls)
        if link is None or (type(own) is types.FunctionType and own.__module__ != "typing"):
            return cast(Any, cls).__class_getitem__(item)
        # typing remembers what X[int] was by X, and would take X' for X
        return types.GenericAlias(cls, typing.get_args(cast(Any, link.real)[item]))

    def __setattr__(cls, name: str, value: object) -> None:
        link = link_of(cls)
        if link is None:
            super().__setattr__(name, value)
            return
        setattr(link.real, name, link.overlay.original(value))
        take(cls, name)

    def __delattr__(cls, name: str) -> None:
        link = link_of(cls)
        if link is None:
            super().__delattr__(name)
            return
        delattr(link.real, name)
        take(cls, name)

    def __subclasses__(cls) -> Any:
        link = link_of(cls)
        if link is None:
            return type.__subclasses__(cls)
        return [link.overlay.replace(c) for c in real_subclasses(link.real)]


def real_subclasses(cls: type) -> list[type]:
    """The subclasses that the user wrote."""
    return [c for c in cls.__subclasses__() if not link_of(c)]


# By these NumPy asks a class, and gets a traced array, or names a function of its own, which copied
# code knows by its stand-in.
PROTOCOLS = ("__array__", "__array_function__", "__array_ufunc__")


def answering(method: types.FunctionType, overlay: Replacer) -> Any:
    """The copy of a method of such a protocol as NumPy calls it."""

    @functools.wraps(method)
    def answer(self: Any, func: Any, *args: Any, **options: Any) -> Any:
        return method(self, overlay.replace(func), *args, **options)

    @functools.wraps(method)
    def tell(self: Any, *args: Any, **options: Any) -> Any:
        y = method(self, *args, **options)
        if not isinstance(y, Traced) or asks_by_name(sys._getframe(1)):
            return y
        raise Told(self, y, options.get("copy") is True)

    return tell if method.__name__ == "__array__" else answer


def take(twin: type, name: str) -> None:
    """Let the twin have the attribute `name` as its class has it now."""
    link = cast(Link, link_of(twin))
    value = vars(link.real).get(name)
    new = link.overlay.replace(value)
    if new is not value:
        if name in PROTOCOLS and type(new) is types.FunctionType:
            new = answering(new, link.overlay)
        if hasattr(type(new), "__get__") and not hasattr(type(value), "__get__"):
            new = staticmethod(new)  # in place of a builtin, which is no method of instances
        _with_own(twin, name, lambda: type.__setattr__(twin, name, new))
    elif name in vars(twin) and name not in _OWN:
        _with_own(twin, name, lambda: type.__delattr__(twin, name))


def _with_own(twin: type, name: str, change: Callable[[], None]) -> None:
    """Change an entry of a class also where its metaclass has a property of that name.

    Python would give the entry to that property; a plain attribute hides it meanwhile.
    """
    meta = type(twin)
    if not hasattr(meta, name) or name in vars(meta):
        change()
        return
    type.__setattr__(meta, name, None)
    try:
        change()
    finally:
        type.__delattr__(meta, name)


@functools.cache  # for the few metaclasses there are: type, ABCMeta, ...
def _metaclass(meta: type) -> type:
    """The class of twins of its classes, derived as it is: classes of two may be combined."""
    if issubclass(meta, TwinType):
        return meta
    if meta is type:
        return TwinType
    bases = [_metaclass(base) for base in meta.__bases__ if issubclass(base, type)]
    made = type.__new__(type, meta.__name__, (*bases, meta), {})
    copyreg.pickle(made, _pickle_class)  # type: ignore[arg-type]  # a reducer of classes
    return made


def _pickle_class(cls: type) -> Any:
    link = link_of(cls)
    return (itemgetter(0), ((link.real,),)) if link else cls.__qualname__


copyreg.pickle(TwinType, _pickle_class)  # type: ignore[arg-type]  # a reducer of classes


def twin_in_use(cls: type, overlay: Replacer) -> type | None:
    """The twin of `cls` that an overlay made and that something still holds."""
    for derived in type.__subclasses__(cls):
        link = link_of(derived)
        if link and link.real is cls and link.twin is None and link.overlay is overlay:
            return derived
    return None


def make_twin(cls: type, bases: Iterable[type], overlay: Replacer) -> type:
    """A twin of `cls` that has no functions yet; `bases` are the twins of its bases."""
    return _make(cls, (cls, *bases), Link(cls, None, overlay), {"__slots__": ()})


def _make(cls: type, bases: tuple[type, ...], link: Link, body: dict[str, Any]) -> type:
    body |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    body |= {"__doc__": cls.__doc__, _LINK: link, _FRESH: True}
    meta = _metaclass(type(cls))
    made = type.__new__(meta, cls.__name__, bases, body)  # the user's metaclass is not run
    type.__delattr__(made, _FRESH)
    type.__setattr__(made, "__bases__", made.__bases__)  # the order again, without the shield
    abstract = getattr(cls, "__abstractmethods__", None)
    if abstract:
        type.__setattr__(made, "__abstractmethods__", abstract)
    return made


def make_view_class(cls: type, twin: type, overlay: Replacer) -> type:
    """The class of views of instances of `cls`."""
    slots = [_ORIGIN, _LOOKED] + ([] if cls.__weakrefoffset__ else ["__weakref__"])
    body: dict[str, Any] = {
        "__slots__": tuple(slots),
        "__class__": property(lambda self: twin),
        "__lineara_record__": twin,  # what is made of other children in place of a view
        "__copy__": lambda self: _as_twin(copy.copy(_whole(self)), twin),
        "__deepcopy__": lambda self, memo: _as_twin(copy.deepcopy(_whole(self), memo), twin),
        "__reduce_ex__": lambda self, protocol: (itemgetter(0), ((_whole(self),),)),
    }
    if cls.__hash__ is object.__hash__:
        body["__hash__"] = lambda self: hash(origin_of(self))
    if cls.__eq__ is object.__eq__:
        body["__eq__"] = lambda self, other: origin_of(self) is origin_of(other)
        body.setdefault("__hash__", cls.__hash__)
    if hasattr(cls, "__del__"):
        body["__del__"] = lambda self: None  # the object itself is not going away
    view = _make(cls, (twin,), Link(cls, twin, overlay), body)
    for name, member in members(cls):
        if inspect.getattr_static(cls, name) is member:  # no property of a class below hides it
            type.__setattr__(view, name, _Slot(member, overlay))
    return view


def members(cls: type) -> Iterable[tuple[str, types.MemberDescriptorType]]:
    """The slots of a class and its bases that were written in Python."""
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            if type(member) is types.MemberDescriptorType and base.__flags__ & 1 << 9:
                yield name, member


def _as_twin(obj: Tree, twin: type) -> Any:
    object.__setattr__(obj, "__class__", twin)
    return obj


def origin_of(obj: Tree) -> Any:
    """The object that a view shows; any other object itself."""
    link = link_of(type(obj))
    return getattr(obj, _ORIGIN) if link and link.twin else obj


def _whole(view: Any) -> Any:
    """The object that a view shows, whose attributes are read without it."""
    link = link_of(type(view))
    assert link is not None, "it is a view"
    link.overlay.refuse_inputs(type(view).__name__)
    return origin_of(view)


class _Slot:
    """A slot of the object, seen through the overlay."""

    def __init__(self, member: types.MemberDescriptorType, overlay: Replacer) -> None:
        self.member, self.overlay = member, overlay

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        if obj is None:
            return self
        return self.overlay.shown(self.member.__get__(origin_of(obj)))

    def __set__(self, obj: Tree, value: Shaped) -> None:
        self.member.__set__(origin_of(obj), self.overlay.original(value))

    def __delete__(self, obj: object) -> None:
        self.member.__delete__(origin_of(obj))


class _Attribute:
    """An attribute in the shared `__dict__`, seen through the overlay."""

    def __init__(self, name: str, view: type, overlay: Replacer) -> None:
        self.name, self.view, self.overlay = name, view, overlay

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        if obj is None:
            return self
        state = object.__getattribute__(obj, "__dict__")
        if self.name not in state:
            return getattr(super(self.view, obj), self.name)
        return self.overlay.shown(state[self.name])

    def __set__(self, obj: object, value: Shaped) -> None:
        object.__getattribute__(obj, "__dict__")[self.name] = self.overlay.original(value)

    def __delete__(self, obj: object) -> None:
        try:
            del object.__getattribute__(obj, "__dict__")[self.name]
        except KeyError:
            raise AttributeError(self.name) from None


def make_view(obj: Tree, view: type, overlay: Replacer, watch: Callable[[Any], bool]) -> Any:
    """A view of `obj`; the attributes whose values `watch` wants go through the overlay."""
    made = object.__new__(view)
    object.__setattr__(made, _ORIGIN, obj)
    object.__setattr__(made, _LOOKED, (-1, [made]))
    if view.__dictoffset__:
        object.__setattr__(made, "__dict__", object.__getattribute__(obj, "__dict__"))
    look_again(made, watch, overlay)
    return made


def look_again(made: object, watch: Callable[[Any], bool], overlay: Replacer) -> None:
    """Begin a new run: watch the attributes whose values have changed."""
    view = type(made)
    run, values = object.__getattribute__(made, _LOOKED)
    if run == overlay.run or not view.__dictoffset__:
        return
    state = object.__getattribute__(made, "__dict__")
    if not same(values, state.values()):
        values = [*state.values()]
        for name, value in list(state.items()):
            if watch(value) and not hasattr(getattr(view, name, None), "__set__"):
                type.__setattr__(view, name, _Attribute(name, view, overlay))
    object.__setattr__(made, _LOOKED, (overlay.run, values))

"""The overlay: a copy of the user's function that sees other values than the original does.

    import numpy as np                        overlay = Overlay({id(np.exp): our_exp}, ["numpy"])
    def f(x): return np.exp(x)                overlay(f)(x)     is     our_exp(x)

Values are replaced by identity wherever copied code meets them: globals under any name,
builtins, cells, defaults, attributes of stood-in modules, imports inside functions.  The user's
own functions met on the way are copied in turn, classes get twins, objects get views, small
containers of such things are copied.  Nothing of the user's is changed, and assignments to
globals, cells, attributes and tables reach the user's own.

A *run* begins at each call `overlay(f)`.  What was read is remembered until then.
"""

import functools
import itertools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from lineara.errors import StagingError, is_library_file
from lineara.facts.hints import Leaf, Tree
from lineara.python.builtins import build_class, replaced_builtins
from lineara.python.class_copies import LRU, Classes, is_from_library, parts_of
from lineara.python.container_copies import LIMIT, DictView, ListView
from lineara.python.function_copies import Functions, Recent, contents, is_user_code
from lineara.python.library_caches import Kept
from lineara.python.namespaces import Cells, LiveModule, Namespace, held, stand_in
from lineara.python.restore import Restoration
from lineara.python.twins import link_of, origin_of

_ORIGINAL = "__lineara_original__"
SMALL = 300  # entries; a container with fewer is known again if it holds what it held
_DATA = frozenset({int, float, complex, bool, str, bytes, type(None)})  # never replaced
_INERT = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, type(None), type(...), range, slice}
    | {CodeType, types.CellType, types.GeneratorType, types.GetSetDescriptorType}
    | {types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType}
    | {types.MappingProxyType, weakref.ref, types.GenericAlias, types.NotImplementedType}
)


class Later:
    """A replacement that is made when its value is first met."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class Overlay:
    """Replaces values by identity in copies of the user's functions.

    `replacements` maps `id(value)` to the replacement, or to one that is made `Later`, or is a
    function `value -> replacement` (the value itself where there is none).  Modules of `packages`
    are stood in for: their attributes are replaced, as those of their submodules.
    `is_instance(obj, cls)` and `type_of(obj)` may answer for `isinstance` and `type` in copied
    code; None means no opinion.
    `objects` maps foreign classes to what makes the replacement of one of their objects, which is
    of a subclass of theirs.  When modules have been imported `arrive()` may add to both tables,
    and says whether it did.  Values that pass with the run, of which `is_passing(value)` says so,
    are taken out of what libraries keep by `kept.tidy()`.  `read(f)` is the code that the copy of a
    function runs, which finds `forms` under the name FORMS.  `inputs(array)` is the level of which
    an array that an attribute holds is an input, or None.

    >>> import math
    >>> def f(x):
    ...     return math.floor(x) + abs(x)
    >>> overlay = Overlay({id(math.floor): lambda x: 100}, ["math"])
    >>> overlay(f)(-2.5), f(-2.5)
    (102.5, -0.5)
    """

    forms: Any

    def __init__(
        self,
        replacements: Mapping[int, Any] | Callable[[Any], Any],
        packages: Iterable[str] = (),
        is_instance: Callable[[Any, Any], bool | None] | None = None,
        type_of: Callable[[Any], type | None] | None = None,
        objects: Mapping[type, Callable[[Any], Any]] = types.MappingProxyType({}),
        arrive: Callable[[], bool] = lambda: False,
        is_passing: Callable[[Any], bool] = lambda value: False,
        read: Callable[[FunctionType], CodeType] = lambda f: f.__code__,
        forms: Any = None,
    ) -> None:
        self.read: Callable[[FunctionType], CodeType] = read
        self.forms: Any = forms
        self.inputs: Callable[[Any], Any] | None = None
        self._packages = frozenset(packages)
        self._seen_through = self._packages | {"contextlib"}  # contextlib, for `suppress`
        self.build_class: Callable[..., Any] = functools.partial(build_class, self)
        known = replaced_builtins(self, is_instance, type_of)
        self._tabled = self._table(replacements, known.get)
        self._objects, self._arrive = objects, arrive
        self._modules = 0  # how many were imported when last looked
        self._stood = Recent(LIMIT)  # id(object) -> it and its replacement in this run
        self._origins: dict[int, tuple[Any, Any]] = {}  # id(replacement) -> both
        self._caches: dict[int, tuple[Any, Any]] = Recent(LIMIT)
        self._stand_ins: dict[int, tuple[ModuleType, ModuleType]] = {}
        self._functions = Functions(self)
        self._classes = Classes(self, self._packages)
        self.kept: Kept = Kept(
            is_passing, lambda cls: is_from_library(cls) and self._is_users_class(cls)
        )
        self._runs = itertools.count(1)
        self.run: int = 0
        self.lock: threading.RLock = threading.RLock()
        self._makers = self._wrappers()

    def _wrappers(self) -> dict[type, Callable[[Any], Any]]:
        """For each type of wrapper or container, how it is made again with replaced parts."""
        new = self.replace
        return {
            MethodType: self._bound,
            functools.partial: lambda p: functools.partial(
                new(p.func), *self._args(p), **self._options(p)
            ),
            functools.partialmethod: lambda p: functools.partialmethod(
                new(p.func), *self._args(p), **self._options(p)
            ),
            LRU: self._cached,
            staticmethod: lambda value: staticmethod(new(value.__func__)),
            classmethod: lambda value: classmethod(new(value.__func__)),
            property: lambda p: property(new(p.fget), new(p.fset), new(p.fdel), p.__doc__),
            functools.cached_property: self._cached_property,
            dict: self._container,
            list: self._container,
            tuple: lambda value: tuple(map(new, value)),
        }

    def __call__(self, f: Callable[..., Any]) -> Any:
        """The copy of `f` for one run; what the user has changed since the last run is seen."""
        if type(f) is FunctionType:
            space = f.__globals__
            if type(space) is Namespace and space.overlay is self:
                return f
        self.run = next(self._runs)
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            if self._arrive():
                self.forget()
        if self._stood:
            self._stood.clear()
        if self._classes.kept:  # a view that nobody holds is not needed any more
            self._classes.kept.clear()
        self._functions.refresh()
        return self._functions.ready(f) or self.replace(f)

    def forget(self) -> None:
        """Drop everything remembered: copies, twins, and what was read."""
        self._functions.forget()
        self._classes.forget()
        self._stand_ins.clear()

    # -- what copied code sees ------------------------------------------------------------------

    def replace(self, value: Any) -> Any:
        """What copied code sees in place of `value`: often the value itself."""
        new = self._tabled(value)
        if new is not value:
            return new
        kind = type(value)
        if kind in _INERT:
            return value
        if kind is FunctionType:
            return self._functions.get(value)
        if not self.needs(value):
            return value
        with self.lock:
            maker = self._makers.get(kind)
            if maker is not None:
                return maker(value)
            if hasattr(kind, "_self_wrapper"):
                return self._wrapped(value)
            if isinstance(value, ModuleType):
                return self._module(value)
            if kind in self._objects:
                return self._object(value)
            if isinstance(value, type):
                record = self._classes.of(value)
                return record.twin if record else value
            if isinstance(value, tuple):
                return self._namedtuple(value)
            return self._classes.view(value, self._is_watched)

    def shown(self, value: Any) -> Any:
        """What an attribute that holds `value` is in copied code: an array may be an input."""
        if self.inputs is not None and type(value) is np.ndarray:
            level = self.inputs(value)
            return value if level is None else level.input(value)
        return self.replace(value)

    def refuse_inputs(self, name: str) -> None:
        """Refuse to copy an object of such a class where an array may be an input.

        What an attribute holds is copied without being read.
        """
        if self.inputs is not None and self.inputs(None) is not None:
            raise StagingError(
                f"an object of the class {name} was copied: its arrays are constants"
            )

    def followed(self, f: FunctionType) -> Any:
        """The copy of a library's function for which `replace` gives a stand-in."""
        return self._functions.get(f)

    def needs(self, value: Leaf, depth: int = 4) -> bool:
        """Whether copied code must see something else in place of `value`."""
        if self._tabled(value) is not value:
            return True
        kind = type(value)
        if kind in _INERT or depth == 0:
            return False
        if kind in self._objects:
            return True
        if kind is FunctionType:
            return self._functions.wants(value, depth)
        if kind in (dict, list, tuple):
            return self._holds(value, depth)
        parts = parts_of(value)
        if parts is not None:
            return any(self.needs(part, depth - 1) for part in parts)
        if isinstance(value, ModuleType):
            return self._is_seen_through(value)
        if isinstance(value, type):
            return link_of(value) is None and self._classes.of(value) is not None
        if isinstance(value, tuple) and kind.__dict__.get("_fields") is not None:
            return self._classes.of(kind) is not None or self._holds(value, depth)
        return self._classes.viewable(kind)

    def stands_in(self, value: object) -> bool:
        """Whether copied code sees this in place of something else."""
        known = self._origins.get(id(value))
        return known is not None and known[0] is value

    def stable(self, value: Any, cells: Cells, depth: int = 4) -> bool:
        """Whether `replace(value)` stays right while `value` and those cells hold the same."""
        kind = type(value)
        if kind in _INERT or self._tabled(value) is not value:
            return True
        if depth == 0:
            return False
        if kind is FunctionType:
            names = value.__code__.co_freevars
            own = zip(names, value.__closure__ or (), strict=True)
            captured = [(c, contents(c)) for name, c in own if name != "__class__"]
            cells += captured
            parts = [v for _, v in captured]
            parts += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            return len(cells) < LIMIT and all([self.stable(p, cells, depth - 1) for p in parts])
        if kind in (list, dict) and len(value) < SMALL:
            cells.append((value, held(value)))
            return not self.needs(value)
        parts = value if kind is tuple else None if kind is MethodType else parts_of(value)
        if parts is not None:
            return all([self.stable(part, cells, depth - 1) for part in parts])
        return kind not in self._makers and (isinstance(value, ModuleType) or not self.needs(value))

    def original(self, value: Any) -> Any:
        """What `value`, met in copied code, stands for outside of it."""
        kind = type(value)
        if kind in _INERT:
            return value
        known = self._origins.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        if kind is FunctionType:
            return self._functions.original(value)
        if kind is MethodType:
            f, self_ = self.original(value.__func__), self.original(value.__self__)
            same = f is value.__func__ and self_ is value.__self__
            return value if same else MethodType(f, self_)
        if kind.__base__ in self._objects:
            return vars(value).get(_ORIGINAL, value)
        if kind is LiveModule:
            return value.__lineara_module__
        if kind is DictView or kind is ListView:
            return value.origin
        if isinstance(value, type):
            link = link_of(value)
            return link.real if link else value
        return origin_of(value)

    def restore(self, result: object) -> Any:
        """`result` with the user's own classes, functions and objects where copies stood.

        Objects made by copied code get their class; lists, dicts and objects are mended in place.
        """
        if type(result) in _INERT:
            return result
        return Restoration(self.original, _INERT.__contains__, self._is_users_class).run(result)

    def _is_users_class(self, cls: type) -> bool:
        return self._classes.of(cls) is not None

    def _table(self, replacements: object, ours: Callable[[int, Any], Any]) -> Callable[[Any], Any]:
        """The replacement of a value, or the value itself; this is where most time goes."""
        get = replacements.get if isinstance(replacements, Mapping) else None
        ask: Any = replacements
        table: Any = replacements  # what is made stays there

        def tabled(value: Tree) -> Any:
            new = get(id(value), value) if get else ask(value)
            if new is value:
                new = ours(id(value), value)
                if new is value:
                    return value
            elif type(new) is Later:
                new = self._made(table, id(value))
            if id(new) not in self._origins and hasattr(value, "__name__"):
                self._origins[id(new)] = (new, value)
            return new

        return tabled

    def _made(self, table: dict[int, Any], place: int) -> Any:
        """The replacement in a table, which is made now."""
        with self.lock:
            if type(table[place]) is Later:
                table[place] = table[place].make()
        return table[place]

    # -- modules, containers, wrappers ----------------------------------------------------------

    def _bound(self, method: MethodType) -> Any:
        """A bound method, rebound to the replacement of its object, by that class' own method."""
        held = self.replace(method.__self__)
        own = getattr(held, method.__name__, None)
        if type(method.__self__) in self._objects and own is not None:
            return own
        return MethodType(self.replace(method.__func__), held)

    def _wrapped(self, value: Any) -> Any:
        """A function that is decorated with wrapt, bound or not."""
        parent = getattr(value, "_self_parent", None)
        if parent is not None:
            held = self.replace(value._self_instance)
            return self.replace(parent).__get__(held, value._self_owner or type(held))
        made = next(c for c in type(value).__mro__ if c.__name__ == "FunctionWrapper")
        return made(self.replace(value.__wrapped__), self.replace(value._self_wrapper))

    def _args(self, partial: Any) -> Iterable[Any]:
        return map(self.replace, partial.args)

    def _options(self, partial: Any) -> dict[str, Any]:
        return {k: self.replace(v) for k, v in partial.keywords.items()}

    def _cached_property(self, value: Any) -> Any:
        made = functools.cached_property(self.replace(value.func))
        made.attrname = value.attrname
        return made

    def _cached(self, cached: Callable[..., Any]) -> Any:
        """A function with a cache: a new cache for each run, which compares arguments by identity.

        Of plain numbers and texts alone a library's is asked itself.
        """
        known = self._caches.get(id(cached))
        if known is None or known[0] is not cached:
            known = self._caches[id(cached)] = cached, self._cache(cached)
        return known[1]

    def _cache(self, cached: Any) -> Any:
        plain = is_library_file(str(getattr(cached.__wrapped__, "__globals__", {}).get("__file__")))
        entries, run, replace = Recent(LIMIT), -1, self.replace

        @functools.wraps(cached)
        def call(*args: Any, **options: Any) -> Any:
            nonlocal run
            given = (*args, *options.values())
            data = all([type(v) in _DATA for v in given])
            if plain and given and data:
                return replace(cached(*args, **options))
            for v in given:
                if type(v).__hash__ is None:
                    raise TypeError(f"unhashable type: '{type(v).__name__}'")
            if run != self.run:
                entries.clear()
                run = self.run
            key: Any = (*[(type(v), v) if type(v) in _DATA else id(v) for v in given], *options)
            if key not in entries:
                entries[key] = given, replace(cached.__wrapped__)(*args, **options)
            return entries[key][1]

        call.cache_info, call.cache_clear = cached.cache_info, cached.cache_clear  # type: ignore[attr-defined]
        call.cache_parameters = cached.cache_parameters  # type: ignore[attr-defined]
        return call

    def _is_seen_through(self, module: ModuleType) -> bool:
        if type(module) is LiveModule or id(module) in self._origins:
            return False
        if module.__name__.partition(".")[0] in self._seen_through:
            return True
        filename = module.__dict__.get("__file__")
        return isinstance(filename, str) and is_user_code(filename)

    def _module(self, module: ModuleType) -> ModuleType:
        if module.__name__.partition(".")[0] in self._seen_through:
            known = self._stand_ins.get(id(module))
            if known is None:
                self._arrive()
                known = self._stand_ins[id(module)] = (module, stand_in(module, self.replace))
                self._origins[id(known[1])] = (known[1], module)
            return known[1]
        space = self._functions.space(module.__dict__)
        if space.live is None:
            space.live = LiveModule(module, space)
        return space.live

    def _object(self, value: Leaf) -> Any:
        """The replacement of an object of a foreign class, one in a run."""
        known = self._stood.get(id(value))
        if known is None or known[0] is not value:
            known = self._stood[id(value)] = (value, self._objects[type(value)](value))
            vars(known[1])[_ORIGINAL] = value
        return known[1]

    def _holds(self, container: Any, depth: int) -> bool:
        """Whether a small container holds something to replace."""
        stack, entries = [container], 0
        while stack:
            top = stack.pop()
            entries += len(top) + 1
            if entries > LIMIT:
                return False
            for value in [*top, *top.values()] if type(top) is dict else top:
                if type(value) in _DATA:
                    continue
                if type(value) in _INERT:
                    if self._tabled(value) is not value:
                        return True
                elif type(value) in (dict, list, tuple):
                    stack.append(value)
                elif self.needs(value, depth - 1):
                    return True
        return False

    def _container(self, value: Any) -> Any:
        classes = self._classes
        known = classes.views.get(id(value))
        if known is not None and known.origin is value:
            known.take()
            return known
        made = DictView(value, self) if type(value) is dict else ListView(value, self)
        classes.views[id(value)] = classes.kept[id(value)] = made
        made.take()
        return made

    def _is_watched(self, value: Leaf) -> bool:
        """Whether an attribute with this value goes through the overlay when it is read."""
        kind = type(value)
        always = (dict, list) if self.inputs is None else (dict, list, np.ndarray)
        return kind not in _INERT and (kind in always or self.needs(value))

    def _namedtuple(self, value: tuple[Any, ...]) -> Any:
        """A namedtuple; one with methods of the user's gets its twin."""
        record = self._classes.of(type(value))
        cls = record.twin if record else type(value)
        return tuple.__new__(cls, map(self.replace, value))

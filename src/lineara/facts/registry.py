"""The one registry: primitives by name, and what stands in for the functions of other libraries."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

Function = Callable[..., Any]
Declare = Callable[[Any], None]


# What to do about a function without a rule that has no advice of its own.
WRITE = (
    "write it with functions that have one, "
    "or declare it with lineara.custom_jvp or lineara.custom_vjp"
)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A function or class of another library, and what becomes of it in a differentiation.

    The kind says what stands in for it in the user's code (`lineara.python.stand_ins`):

        rule        `ours` where an argument is traced, else the original
        ours        `ours` in any case
        followed    a copy of its source where an argument is traced
        tried       the original; where that loses a traced value, an error with the `advice`
        refused     the original; of a traced argument an error with the `advice`
        class       a class of numbers: the class that is its `stand_in`
        ""          itself: NumPy asks us, where it is called with a traced value
    """

    original: Any
    kind: str = ""
    ours: Any = None  # the function that it is of traced values
    in_programs: Any = None  # the function for staged values, where it differs from `ours`
    sequence: bool = False  # takes a sequence of arrays, which becomes no array
    reads: bool = False  # makes text or answers of plain values
    advice: str = ""  # what works in its place
    around: Any = None  # called as around(copy, *args) in place of a followed function's copy
    stand_in: Any = None  # what stands in for it, where that is declared and not chosen by kind
    of_object: Callable[[Any], Any] | None = None  # what an object of a foreign class is


class Registry:
    """Primitives by name, and the record of each foreign function."""

    def __init__(self) -> None:
        self.primitives: dict[str, Any] = {}
        self.foreign: dict[Any, Foreign] = {}
        self.sources: tuple[str, ...] = ()  # where the source of followed functions lies
        # How NumPy's function lays its result out, of (function, args, kwargs, result): as it is.
        self.lay: Callable[..., Any] = lambda function, args, kwargs, result: result
        # The same of a result that is an array in NumPy also without axes.
        self.array: Callable[..., Any] = lambda function, args, kwargs, result: result
        self.awaited: dict[str, list[tuple[str, Declare]]] = {}  # by module: names, what to do
        self.readers: dict[Any, Any] = {}  # of calls, by the classes of the arguments, and
        self.plans: dict[Any, Any] = {}  # by signature: see tape/plans.py
        self.writings: dict[Any, Any] = {}  # by signature: see staging/by_signature.py
        self.arrivals: int = 0  # how often something has been declared that was waited for

    def declare(self, original: object, **facts: Any) -> None:
        """Add facts to the record of a foreign function."""
        known = self.foreign.get(original)
        self.foreign[original] = replace(known or Foreign(original), **facts)

    def ours(self, original: object) -> Any:
        """The function that a foreign one is of traced values; None where it has no rule."""
        record = self.foreign.get(original)
        return None if record is None else record.ours

    def number_class(self, cls: type) -> type | None:
        """The class that stands for a class of numbers in the user's code; None for others."""
        record = self.foreign.get(cls)
        return record.stand_in if record is not None and record.kind == "class" else None

    def await_(self, foreign: str, declare: Declare) -> None:
        """Call `declare` with what a dotted name stands for, as soon as its module is imported."""
        module, _, name = foreign.rpartition(".")
        self.awaited.setdefault(module, []).append((name, declare))

    def arrive(self) -> bool:
        """Declare what waited for modules that have been imported since; whether there was any."""
        arrived = [module for module in self.awaited if module in sys.modules]
        for module in arrived:
            for name, declare in self.awaited.pop(module, []):
                if hasattr(sys.modules[module], name):  # not every version has every function
                    declare(getattr(sys.modules[module], name))
        self.arrivals += len(arrived)
        return bool(arrived)


registry: Registry = Registry()


def op(name: str) -> Any:
    """The primitive of that name."""
    return registry.primitives[name]


def implements(
    *foreign: Any, always: bool = False, sequence: bool = False
) -> Callable[[Function], Function]:
    """Declare that the decorated function, written with primitives, stands in for `foreign`.

    @implements(np.mean)
    def mean(x, axis=None): ...

    A dotted name stands for what it will mean when somebody has imported its module: SciPy is
    slow to import, and whoever does not use it does not wait for it.

    @implements("scipy.special.expit")
    def expit(x): ...

    Ours is called if an argument is traced; or `always`, if it is a class, or takes functions that
    may read traced values. A list or tuple of traced values becomes one array, but for functions
    that take a `sequence` of several things.
    """

    def register(function: Function) -> Function:
        facts = {"ours": function, "kind": "ours" if always else "rule", "sequence": sequence}

        def declare(original: object) -> None:
            for f in {original, getattr(original, "__wrapped__", original)}:  # either is called
                registry.declare(f, **facts)

        for f in foreign:
            registry.await_(f, declare) if isinstance(f, str) else declare(f)
        return function

    return register


def refuses(*foreign: Any, advice: str) -> None:
    """Declare that functions have no rule, and what works in their place.

    A function under a dotted name is tried all the same, as other Python code of its library is:
    where it loses a traced value, the error names it and says what works.
    """
    for f in foreign:
        if isinstance(f, str):
            registry.await_(f, lambda original: _advise(original, advice))
        else:
            registry.declare(f, kind="refused", advice=advice)


def _advise(original: object, advice: str, kind: str = "tried", **facts: Any) -> None:
    """Declare what works in place of a function, and of which kind it is if it has no rule."""
    record = registry.foreign.get(original)
    is_ufunc = hasattr(original, "nin")  # NumPy calls our __array_ufunc__ for it
    if (record is None or record.kind in ("", "tried")) and not is_ufunc:
        facts["kind"] = kind
    registry.declare(original, advice=advice, **facts)


def follows(module: str, names: str, advice: str, around: Callable[..., Any] | None = None) -> None:
    """Declare that functions of a module are differentiated as if the user had written them.

    Their source, and what it calls in the same package, is read with our NumPy in place of NumPy.
    Where it comes to compiled code all the same, the error names the function and gives `advice`.
    `around(copy, *args)` is called in place of the copy, for what the source takes a shortcut for.
    """

    def declare(original: Callable[..., Any]) -> None:
        _advise(original, advice, "followed", around=around)
        source = (sys.modules[module].__file__ or "").removesuffix("__init__.py")
        if source not in registry.sources:
            registry.sources += (source,)

    for name in names.split():
        registry.await_(f"{module}.{name}", declare)


def refuses_rest(*modules: str, advice: str) -> None:
    """Declare the same of whatever in these modules has neither a rule nor its own advice."""

    def declare(module: str) -> None:
        for name, value in vars(sys.modules[module]).items():
            called = callable(value) and not isinstance(value, type) and hasattr(value, "__name__")
            if called and not name.startswith("_"):
                record = registry.foreign.get(value)
                if record is None or not (record.ours or record.advice):
                    _advise(value, advice)

    for module in modules:
        registry.await_(f"{module}.__name__", declare)


def stands_for(foreign: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Declare what an object of the foreign class of that dotted name is in the user's code.

    @stands_for("scipy.interpolate.CubicSpline")
    def traced_spline(spline): ...      one that takes traced arguments
    """

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        registry.await_(foreign, lambda cls: registry.declare(cls, of_object=function))
        return function

    return register

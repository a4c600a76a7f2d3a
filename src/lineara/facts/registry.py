"""The one registry: primitives by name, and what stands in for the functions of other libraries."""

import sys
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Declare = Callable[[Any], None]


class Registry:
    """The one table of the library: primitives by name, and what stands in for a function."""

    def __init__(self) -> None:
        self.primitives: dict[str, Any] = {}
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.in_programs: dict[Any, Callable[..., Any]] = {}  # the same where values are not known
        self.classes: dict[type, type] = {}  # what a type is in the user's code
        self.objects: dict[type, Callable[[Any], Any]] = {}  # what objects of a foreign class are
        self.always: set[Any] = set()  # foreign functions that are ours in any case
        self.sequences: set[Any] = set()  # foreign functions that take a sequence of arrays
        self.readers: set[Any] = set()  # functions that make text or answers of plain values
        self.advice: dict[Any, str] = {}  # what works in place of a function without a rule
        self.named: dict[Any, str] = {}  # the same of functions that are tried before
        self.around: dict[Any, Any] = {}  # of followed ones: what is called with the copy first
        self.followed: set[Any] = set()  # foreign functions whose source is read as the user's
        self.sources: tuple[str, ...] = ()  # where that source lies
        # How NumPy's function lays its result out, of (function, args, kwargs, result): as it is.
        self.lay: Callable[..., Any] = lambda function, args, kwargs, result: result
        # The same of a result that is an array in NumPy also without axes.
        self.array: Callable[..., Any] = lambda function, args, kwargs, result: result
        self.awaited: dict[str, dict[str, Declare]] = {}  # by module: names in it, and what to do

    def await_(self, foreign: str, declare: Declare) -> None:
        """Call `declare` with what a dotted name stands for, as soon as its module is imported."""
        module, _, name = foreign.rpartition(".")
        self.awaited.setdefault(module, {})[name] = declare

    def arrive(self) -> bool:
        """Declare what waited for modules that have been imported since; whether there was any."""
        arrived = [module for module in self.awaited if module in sys.modules]
        for module in arrived:
            for name, declare in self.awaited.pop(module, {}).items():
                if hasattr(sys.modules[module], name):  # not every version has every function
                    declare(getattr(sys.modules[module], name))
        return bool(arrived)


registry = Registry()


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
        def declare(found: Any) -> None:
            for f in {found, getattr(found, "__wrapped__", found)}:  # its library may call either
                registry.functions[f] = function
                if always:
                    registry.always.add(f)
                if sequence:
                    registry.sequences.add(f)

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
            registry.await_(f, lambda found: registry.named.update({found: advice}))
        else:
            registry.advice[f] = advice


def follows(module: str, names: str, advice: str, around: Any = None) -> None:
    """Declare that functions of a module are differentiated as if the user had written them.

    Their source, and what it calls in the same package, is read with our NumPy in place of NumPy.
    Where it comes to compiled code all the same, the error names the function and gives `advice`.
    `around(copy, *args)` is called in place of the copy, for what the source takes a shortcut for.
    """

    def declare(found: Any) -> None:
        registry.followed.add(found)
        registry.named[found] = advice
        if around is not None:
            registry.around[found] = around
        source = sys.modules[module].__file__ or ""
        source = source.removesuffix("__init__.py")
        if source not in registry.sources:
            registry.sources += (source,)

    for name in names.split():
        registry.await_(f"{module}.{name}", declare)


def refuses_rest(*modules: str, advice: str) -> None:
    """Declare the same of whatever in these modules has neither a rule nor its own advice."""

    def declare(module: str) -> None:
        for name, found in vars(sys.modules[module]).items():
            called = callable(found) and not isinstance(found, type) and hasattr(found, "__name__")
            if called and not name.startswith("_") and found not in registry.functions:
                registry.named.setdefault(found, advice)

    for module in modules:
        registry.await_(f"{module}.__name__", declare)


def stands_for(foreign: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Declare what an object of the foreign class of that dotted name is in the user's code.

    @stands_for("scipy.interpolate.CubicSpline")
    def traced_spline(spline): ...      one that takes traced arguments
    """

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def declare(found: Any) -> None:
            registry.objects[found] = function

        registry.await_(foreign, declare)
        return function

    return register

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
        self.classes: dict[type, type] = {}  # what a type is in the user's code
        self.objects: dict[type, Callable[[Any], Any]] = {}  # what objects of a foreign class are
        self.always: set[Any] = set()  # foreign functions that are ours in any case
        self.sequences: set[Any] = set()  # foreign functions that take a sequence of arrays
        self.readers: set[Any] = set()  # functions that make text or answers of plain values
        self.advice: dict[Any, str] = {}  # what works in place of a function without a rule
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
            registry.functions[found] = function
            if always:
                registry.always.add(found)
            if sequence:
                registry.sequences.add(found)

        for f in foreign:
            registry.await_(f, declare) if isinstance(f, str) else declare(f)
        return function

    return register


def refuses(*foreign: Any, advice: str) -> None:
    """Declare that functions have no rule, and what works in their place."""
    registry.advice.update(dict.fromkeys(foreign, advice))


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

"""Boxes: values that an interpreter stands behind, and the one registry they are dispatched by.

A primitive applied to boxes is interpreted by the innermost one.  Linear maps between them are
`Joint`s; what is summed later travels as `Piece` and `Outer`.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple


Declare = Callable[[Any], None]


class Registry:
    """The one table of the library: primitives by name, and what stands in for a function."""

    def __init__(self) -> None:
        self.primitives: dict[str, Any] = {}
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.classes: dict[type, type] = {}  # what a type is in the user's code
        self.objects: dict[type, Callable[[Any], Any]] = {}  # what objects of a foreign class are
        self.always: set[Any] = set()  # foreign functions that are ours without traced arguments too
        self.sequences: set[Any] = set()  # foreign functions that take a sequence of arrays
        self.awaited: dict[str, dict[str, Declare]] = {}  # by module: names in it, and what to do

    def await_(self, foreign: str, declare: "Declare") -> None:
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


def implements(*foreign: Any, always: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare that the decorated function, written with primitives, stands in for `foreign`.

    @implements(np.mean)
    def mean(x, axis=None): ...

    A dotted name stands for what it will mean when somebody has imported its module: SciPy is
    slow to import, and whoever does not use it does not wait for it.

    @implements("scipy.special.expit")
    def expit(x): ...

    Ours is called if an argument is traced; or `always`, if it is a class, or takes functions that
    may read traced values.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def declare(found: Any) -> None:
            registry.functions[found] = function
            if always:
                registry.always.add(found)

        for f in foreign:
            registry.await_(f, declare) if isinstance(f, str) else declare(f)
        return function

    return register


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


class Joint(NamedTuple):
    """A linear map from several tangents to one (or several), with its transpose.

    `forward(tangents) -> y_dot`, `back(y_bar) -> [x_bar, ...]`; None is zero on both sides.
    """

    forward: Callable[[Sequence[Any]], Any]
    back: Callable[[Any], Sequence[Any]]


class Piece(NamedTuple):
    """A contribution to the part x[at] of an array's cotangent, to be summed when x' turn comes."""

    at: Any
    x_bar: Any


class Outer(NamedTuple):
    """A contribution u v^T to a matrix' cotangent :  (m,k), (n,k); all become one product."""

    u: Any
    v: Any


class Box:
    """A value that an interpreter stands behind: traced, batched, masked, linear or symbolic.

    A primitive applied to boxes is interpreted by the innermost one, the one of greatest `depth`.
    """

    __slots__ = ()
    depth: Any = 0
    v: Any  # the value inside, of every box but a symbol
    __array_ufunc__: Any = None  # so that ndarray * box asks the box

    if TYPE_CHECKING:  # a box answers as the value that it stands for

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, at: Any) -> Any: ...
        def __setitem__(self, at: Any, value: Any) -> None: ...

    def interpret(self, primitive: Any, args: tuple, params: dict[str, Any]) -> Any:
        """Apply `primitive` to arguments of which `self` is the innermost box."""
        raise NotImplementedError

    def __neg__(self) -> Any:
        return op("negative")(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return op("abs")(self)


def _operators() -> None:
    """Give Box the binary operators of the primitives that they name."""
    named = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
    named |= {"pow": "power", "matmul": "matmul", "mod": "remainder", "floordiv": "floor_divide"}
    for stem, name in named.items():
        setattr(Box, f"__{stem}__", lambda a, b, _n=name: op(_n)(a, b))
        setattr(Box, f"__r{stem}__", lambda a, b, _n=name: op(_n)(b, a))
    compare = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for stem, name in (compare | {"eq": "equal", "ne": "not_equal"}).items():
        setattr(Box, f"__{stem}__", lambda a, b, _n=name: op(_n)(a, b))
    Box.__hash__ = object.__hash__  # type: ignore[method-assign]  # __eq__ above is elementwise


_operators()


def innermost(args: tuple) -> Box | None:
    """The box of greatest depth among the arguments."""
    found = None
    for a in args:
        if isinstance(a, Box) and (found is None or a.depth > found.depth):
            found = a
    return found

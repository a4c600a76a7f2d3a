"""The bag of probes: a cotangent of a function, as a sum of its derivatives at points.

    sum_i (x_i; d_1, ..., d_n |> k_i)        u  ↦  sum_i <k_i, the n-th derivative of u at x_i>

along the directions d of each probe; without directions a probe asks for the value u(x_i).  The
same functional on functions as in the calculus [Pullback].
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent.formal import Formal
from lineara.errors import StructureError, TypeMismatchError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.primitive import Box, conjugate, op, real_part
from lineara.facts.types import show_type, type_of
from lineara.python.user_code import method, seen
from lineara.tape.linearize import linearize
from lineara.tape.node import Traced
from lineara.trees import flatten, map_leaves


class Probe(NamedTuple):
    """u ↦ <cotangent, derivative of u at the point `at`, once along each of `along`>.

    `at` is the argument of the function, or the tuple of its arguments, of which there are several;
    a direction is like it, None at what does not move.
    """

    at: Any
    cotangent: Any
    along: tuple[Any, ...] = ()


@dataclass(frozen=True, init=False, eq=False)
class Probes:
    """A cotangent of a function: a sum of probes.

    Made of pairs (point, cotangent), of triples with directions, or of a dict from points to
    cotangents.  `g @ u` pairs it with a function u: the derivative along u of whatever it is the
    gradient of.  Sums and multiples are those of functionals.

    Raises StructureError for what is no probe, TypeMismatchError for `g @ u` of a u that is no
    function.

    >>> g = Probes({2.0: 9.0, 3.0: 4.0})
    >>> g @ (lambda x: x * x), len(g + 2 * g)
    (72.0, 4)
    >>> Probes([(2.0, 9.0, (1.0,))]) @ (lambda x: x * x)  # its slope at 2
    36.0
    """

    probes: tuple[Probe, ...]

    def __init__(self, probes: Iterable[Any] | Mapping[Any, Any] = ()) -> None:
        given = probes.items() if isinstance(probes, Mapping) else probes
        object.__setattr__(self, "probes", tuple(map(_probe, given)))

    def __iter__(self) -> Iterator[Probe]:
        return iter(self.probes)

    def __len__(self) -> int:
        return len(self.probes)

    def __repr__(self) -> str:
        shown = [repr(tuple(p) if p.along else tuple(p)[:2]) for p in self.probes]
        return f"Probes([{', '.join(shown)}])"

    def __matmul__(self, u: Callable[..., Any]) -> Any:
        if not callable(u):
            raise TypeMismatchError(
                f"probes @ u: u is a function, the direction, but was given {show_type(u)}"
            )
        total: Any = 0.0
        for p in self.probes:
            total = total + paired(p.cotangent, derivative(u, arguments(p.at), p.along))
        return total

    def __add__(self, other: "Probes") -> "Probes":
        return Probes(self.probes + other.probes) if isinstance(other, Probes) else NotImplemented

    def __mul__(self, r: Value) -> "Probes":
        if isinstance(r, Probes):
            return NotImplemented
        return Probes([p._replace(cotangent=scaled(p.cotangent, r)) for p in self.probes])

    __rmul__ = __mul__


def _probe(given: object) -> Probe:
    if isinstance(given, Probe):
        return given
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise StructureError(
            "Probes: a probe is a pair (point, cotangent), or a triple with a tuple of directions, "
            f"but was given {show_type(given)}"
        )
    made = Probe(*given)
    if not isinstance(made.along, tuple):
        raise StructureError(
            f"Probes: the directions of a probe are a tuple, but it has {show_type(made.along)}"
        )
    return made


def arguments(at: Value) -> tuple[Any, ...]:
    """The arguments of a function at a point: a tuple is several."""
    return at if type(at) is tuple else (at,)


def point(args: tuple[Any, ...]) -> Any:
    """The point that stands for arguments."""
    return args[0] if len(args) == 1 and type(args[0]) is not tuple else args


def scaled(tree: Tree, r: Value) -> Any:
    """A multiple of a vector."""
    return map_leaves(lambda v: r * v, tree)


def paired(k: Value, v: Value) -> Any:
    """<k, v>, real; None, and leaves without a tangent, contribute zero."""
    left, shape = flatten(k)
    right, other = flatten(v)
    if shape != other:
        raise StructureError(
            f"probes @ u: the cotangent is {shape}, but u gave {other}; u is like the function"
        )
    total: Any = 0.0
    for a, b in zip(left, right, strict=True):
        if a is None or b is None or not _moves(a):
            continue
        if type_of(a).shape != type_of(b).shape:
            raise StructureError(
                f"probes @ u: the cotangent is {type_of(a)}, but u gave {type_of(b)}; u is like "
                "the function"
            )
        c = real_part(conjugate(a) * b)
        if type_of(c).shape:
            c = op("sum")(c, axis=tuple(range(len(type_of(c).shape))), keepdims=False)
        total = total + (c.item() if isinstance(c, np.generic | np.ndarray) else c)
    return total


def _moves(v: Shaped) -> bool:
    return isinstance(v, Traced | float | complex) or type_of(v).dtype.kind in "fciO"


def derivative(u: Callable[..., Any], args: tuple[Any, ...], along: tuple[Any, ...]) -> Any:
    """The derivative of u at the arguments, once along each direction.

    >>> derivative(lambda x: x**3, (2.0,), (1.0, 5.0))
    60.0
    """
    if not along:
        return seen(u)(*args)
    *inner, d = along

    def below(*moved: Any) -> Any:
        return derivative(u, moved, tuple(inner))

    _, L, _ = linearize(below, args, {}, range(len(args)), False, method, "probes @ u")
    parts = arguments(d)
    return L @ (parts[0] if len(args) == 1 else parts)


# --- as they flow through the linear map --------------------------------------------------------


class Bag(Formal):
    """A sum of probes under construction: O(1) to add, read once."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts  # probes and bags, the latest call first

    def __add__(self, other: object) -> "Bag":
        if isinstance(other, Bag):
            return Bag((self, other))
        return self if type(other) in (int, float) and other == 0 else NotImplemented

    def __mul__(self, r: Value) -> "Bag":
        return Bag(tuple([p._replace(cotangent=scaled(p.cotangent, r)) for p in self]))

    def __iter__(self) -> Iterator[Probe]:
        todo: list[Any] = [self]
        while todo:
            top = todo.pop()
            if isinstance(top, Bag):
                todo.extend(reversed(top.parts))
            else:
                yield top

    def numbers(self) -> Iterator[Any]:
        """The cotangents and directions of all probes."""
        for p in self:
            yield from flatten((p.cotangent, p.along))[0]

    def read(self) -> Probes:
        """The probes in the order of the calls that they come from.

        Derivatives along nothing, as a Hessian asks for by its basis, are left out.
        """
        probes = [p for p in self if not (p.along and any(map(_still, (p.cotangent, *p.along))))]
        return Probes(probes[::-1])


def _still(tree: Value) -> bool:
    """Whether every leaf of a vector is known to be zero."""
    leaves = [v for v in flatten(tree)[0] if v is not None]
    return not any([isinstance(v, Box) or np.any(v) for v in leaves])


class Direction(Formal):
    """A tangent of a function: a sum of multiples of functions."""

    def __init__(self, terms: tuple[tuple[Any, Callable[..., Any]], ...]) -> None:
        self.terms = terms

    def __add__(self, other: object) -> "Direction":
        if isinstance(other, Direction):
            return Direction(self.terms + other.terms)
        return self if type(other) in (int, float) and other == 0 else NotImplemented

    def __mul__(self, r: Value) -> "Direction":
        return Direction(tuple([(r * c, u) for c, u in self.terms]))

    def derivative(self, args: tuple[Any, ...], along: tuple[Any, ...]) -> Any:
        """The derivative of the sum of functions."""
        total: Any = None
        for c, u in self.terms:
            part = derivative(u, args, along)
            part = part if type(c) is int and c == 1 else scaled(part, c)
            total = part if total is None else map_leaves(lambda a, b: a + b, total, part)
        return total

    def function(self) -> Callable[..., Any]:
        """The sum as one function."""
        if len(self.terms) == 1 and self.terms[0][0] is ONE:  # the value itself, unscaled
            return self.terms[0][1]
        return lambda *args: self.derivative(args, ())


ONE = 1

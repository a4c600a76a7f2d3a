"""Values of programs as trees of JAX's arrays, which its loops and branches can hand on.

array, number    an array of JAX's of the type's dtype; one of NumPy's while it is known
product          a tuple
stack[n, t]      a value of t whose arrays have one more axis, the first, of length n
stack[t]         `Rows`: how many there are, and as many as there is room for
sum              a `Tagged` while the tag is known; `Either` from then on
"""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

from lineara.engines.values import Tagged
from lineara.errors import ProgramError
from lineara.facts.types import ArrayType, Named, Product, Stack, Sum, Type, show
from lineara.linear_a.program import Program

Held: TypeAlias = Any  # a value as above; both libraries' arrays have the operators of either
Place: TypeAlias = tuple[Any, ...]  # an index by its parts, some of which are arrays of JAX's


class Rows(NamedTuple):
    """The values of the rounds of a loop that goes as long as it must."""

    n: Any
    rows: Any


class Either(NamedTuple):
    """A value of a sum whose tag is known when the program runs; other payloads are zeros."""

    tag: Any
    payloads: tuple[Any, ...]


def is_known(value: object) -> bool:
    """Whether a value is NumPy's or Python's, so that it can be calculated with right away."""
    return isinstance(value, np.ndarray | np.generic | bool | int | float | complex)


class Shapes:
    """What values of the types of a program look like."""

    def __init__(self, program: Program, room: int) -> None:
        self.program = program
        self.room = room  # rows that a stack without a length is given where it is all zeros

    def zero(self, t: Type, lead: tuple[int, ...] = (), within: tuple[str, ...] = ()) -> Any:
        """The zero of a type, with more axes in front."""
        if isinstance(t, Named):
            if t.name in within:
                raise ProgramError(
                    f"a value of the recursive type {show(t)} is handed on by a loop or a branch, "
                    "whose size XLA has to know; leave engine= out, or let the depth of the "
                    "recursion follow from the shapes of the arguments"
                )
            within = (*within, t.name)
        t = self.program.unfold(t)
        if isinstance(t, ArrayType):
            return jnp.zeros((*lead, *t.shape), t.dtype)
        if isinstance(t, Stack):
            if t.n is not None:
                return self.zero(t.items[0], (*lead, t.n), within)
            rows = self.zero(t.items[0], (*lead, self.room), within)
            return Rows(jnp.zeros(lead, np.int64), rows)
        assert not isinstance(t, Named), "unfolded"
        items = tuple([self.zero(item, lead, within) for item in t.items])
        return Either(jnp.zeros(lead, np.int32), items) if isinstance(t, Sum) else items

    def uniform(self, t: Type, value: Any) -> Any:
        """A value as every other of the type is: arrays of JAX's only, and no tag that is known."""
        t = self.program.unfold(t)
        if isinstance(t, ArrayType):
            return jnp.asarray(value, t.dtype)
        if isinstance(t, Product):
            return tuple([self.uniform(s, v) for s, v in zip(t.items, value, strict=True)])
        if isinstance(t, Sum):
            if isinstance(value, Tagged):
                payloads = [
                    self.uniform(s, value.payload) if i == value.tag else self.zero(s)
                    for i, s in enumerate(t.items)
                ]
                return Either(jnp.asarray(value.tag, np.int32), tuple(payloads))
            payloads = [self.uniform(s, v) for s, v in zip(t.items, value.payloads, strict=True)]
            return Either(value.tag, tuple(payloads))
        return value  # a stack has been through a loop

    def plus(self, t: Type, x: Any, y: Any) -> Any:
        """The sum of two values of a type of tangents, which have one tag."""
        t = self.program.unfold(t)
        if isinstance(t, ArrayType):
            return x + y
        if isinstance(t, Stack):
            if t.n is None:
                return Rows(jnp.maximum(x.n, y.n), self.plus(t.items[0], x.rows, y.rows))
            return self.plus(t.items[0], x, y)
        if isinstance(t, Sum):
            if isinstance(x, Tagged) and isinstance(y, Tagged):
                return Tagged(x.tag, self.plus(t.items[x.tag], x.payload, y.payload))
            x, y = self.uniform(t, x), self.uniform(t, y)
            sums = zip(t.items, x.payloads, y.payloads, strict=True)
            return Either(jnp.maximum(x.tag, y.tag), tuple([self.plus(*each) for each in sums]))
        assert isinstance(t, Product), "tangents are in products"
        return tuple([self.plus(*each) for each in zip(t.items, x, y, strict=True)])

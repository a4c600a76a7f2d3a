"""What a program does as it runs beside giving values: it prints, warns, or raises an error.

    report(fails, *values)      fails, and the effect where an element of it is true

The effect is a call of Python's with a template of its arguments, in which holes stand for the
values.  It is done each time that the report is evaluated, in the order of the program, and for
each lane; to derivatives it is a constant that they do not need.  A derivative that calculates
values again has reports that are `done`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lineara.facts.hints import Leaf, Namespace, Shaped
from lineara.facts.primitive import Constant, batch_size, op
from lineara.facts.types import ArrayType, type_of
from lineara.trees import Structure, unflatten


@dataclass(frozen=True, eq=False)
class Hole:
    """The place of a value that is known when the program runs."""

    place: int
    weak: object  # False for a number of NumPy's

    def of(self, values: Sequence[Any]) -> Any:
        """The value."""
        v = values[self.place]
        if isinstance(v, np.ndarray) and v.ndim:
            return v.copy()
        return v.item() if self.weak is not False and hasattr(v, "item") else v

    def __repr__(self) -> str:
        return f"{{{self.place}}}"


@dataclass(frozen=True, eq=False)
class Late:
    """A value in containers, some of whose leaves are holes or what is calculated from them."""

    structure: Structure
    leaves: tuple[Any, ...]

    def of(self, values: Sequence[Any]) -> Any:
        """The value."""
        leaves = [v.of(values) if isinstance(v, Hole | Said) else v for v in self.leaves]
        return unflatten(self.structure, leaves)

    def __repr__(self) -> str:
        return ", ".join(map(repr, self.leaves))


@dataclass(frozen=True, eq=False)
class Said:
    """What a call of Python's gives of values that are known when the program runs: a text."""

    call: Callable[..., Any]
    given: Late  # its arguments, by position and by name

    def of(self, values: Sequence[Any]) -> Any:
        """The text."""
        args, named = self.given.of(values)
        return self.call(*args, **named)

    def __repr__(self) -> str:
        return f"{getattr(self.call, '__name__', 'text')}({self.given!r})"


class Report(Constant):
    """fails, and an effect for each element of it that is true."""

    acts = True

    def result(self, fails: Leaf, *values: Leaf, effect: Said, **_: Any) -> ArrayType:
        """The type of what says whether it is done."""
        if not isinstance(effect, Said):
            raise TypeError(f"{self.name}: the effect is {effect!r}, which is no call of Python's")
        return type_of(fails)

    def evaluate(
        self, xp: Namespace, /, fails: Shaped, *values: Any, effect: Said, line: str = "",
        done: bool = False,
    ) -> Any:  # fmt: skip
        """Do it; the values have the axes of lanes that `fails` has."""
        for at in () if done else np.argwhere(fails):
            effect.of([v[tuple(at)] for v in values] if len(at) else values)
        return fails

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        """In every lane, as a loop over them would."""
        n = batch_size(args, batched)
        pairs = zip(args, batched, strict=True)
        rows = [a if b else op("broadcast_to")(a, shape=(n, *type_of(a).shape)) for a, b in pairs]
        return self(*rows, **params)


Report("report", host=True)

__all__ = ["Hole", "Late", "Report", "Said"]

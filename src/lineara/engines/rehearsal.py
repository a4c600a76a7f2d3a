"""A rehearsal: the evaluator on arrays without numbers.

Every array is a shadow, which knows its type and whose memory it shows; whatever depends on types
alone happens as it will: what is entered, what dies, what is written in place, work, bytes.  So the
work and the peak of memory are known before anything is computed.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.interpreter import ZERO, Machine, Tagged, dims_given
from lineara.engines.memory import Meter, owner
from lineara.errors import ProgramError
from lineara.facts.primitive import Elementwise
from lineara.facts.types import ArrayType, Product, Stack, Sum, Type, show
from lineara.linear_a.dimensions import with_dims
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Part, Prim, Var


class Forecast(NamedTuple):
    """What a run will take: W, bytes written, and the most bytes of arrays alive at a time."""

    work: int
    written: int
    peak: int


def rehearse(program: Program, name: str, *args: Any, rounds: int | None = None) -> Forecast:
    """What a run of a definition takes, from the types of its arguments.

    Numbers among `args` are known, so what depends on them is followed; None stands for a value
    that is not known.  A branch on what is not known is taken as the dearest one, a while loop as
    `rounds` rounds.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64[1000];) -> (f64[1000];) = let y = sin(x) in y * y")
    >>> rehearse(p, "f")
    Forecast(work=2000, written=16000, peak=24000)
    """
    stage, _ = rehearsed(program, name, *args, rounds=rounds)
    return Forecast(stage.work, stage.written, stage.meter.peak)


def rehearsed(
    program: Program, name: str, *args: Any, rounds: int | None = None
) -> tuple["Stage", list[Any]]:
    """The evaluator after the rehearsal, and the results: arrays as shadows."""
    d = program.defs[name]
    given = [*args, *[None] * (len(d.params) - len(args))]
    stage = Stage(program, rounds)
    stage.dims = dims_given(program, name, given)
    values = tuple([stage.argument(p, a) for p, a in zip(d.params, given, strict=True)])
    stage.meter.made(values)
    found = stage.drive(stage.enter(name, list(values)))
    stage.dims = dims_given(program, name, given)
    types = (*d.results, *d.lresults)
    dense = [stage.shadow(t) if v is ZERO else v for v, t in zip(found, types, strict=True)]
    stage.given_away(tuple(dense))
    return stage, dense


class Shadow:
    """An array, or a number, of which only the type is known.

    `base` is the shadow whose memory it shows; `whole` says that its elements lie in order, and
    `axes` in which order the axes of such an array are shown.
    """

    __slots__ = ("__weakref__", "axes", "base", "flags", "type", "whole")
    __array_ufunc__ = None  # so that a number times a shadow asks the shadow

    def __init__(
        self, type: ArrayType, base: Any = None, whole: bool = True, writeable: bool = True
    ) -> None:
        self.type = type
        self.base = base
        self.whole = whole
        self.axes: tuple[int, ...] | None = tuple(range(type.ndim)) if whole else None
        self.flags = SimpleNamespace(writeable=writeable)

    def __repr__(self) -> str:
        return f"an unknown {show(self.type)}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.ndim

    @property
    def nbytes(self) -> int:
        """The bytes that the array will take."""
        return self.type.size * self.type.dtype.itemsize

    def astype(self, dtype: Any) -> "Shadow":
        """In another dtype."""
        return Shadow(ArrayType(self.shape, np.dtype(dtype)))

    def __add__(self, other: Any) -> "Shadow":
        return Shadow(self.type)

    def __mul__(self, other: Any) -> "Shadow":
        return Shadow(other.type if getattr(other, "ndim", 0) else self.type)

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, row: int) -> "Shadow":
        t = ArrayType(self.shape[1:], self.dtype)
        return Shadow(t, owner(self), self.whole) if t.shape else Shadow(t)

    def _unknown(self, *_: Any) -> Any:
        raise ProgramError(
            f"what is done next depends on {self!r}, which is known only when the program runs; "
            "give the rehearsal numbers for the arguments that it depends on"
        )

    __bool__ = __index__ = __float__ = __le__ = __lt__ = __gt__ = __ge__ = _unknown


class Stage(Machine):
    """The evaluator on shadows."""

    meter: Meter

    def __init__(self, program: Program, rounds: int | None = None) -> None:
        super().__init__(program, meter=Meter())
        self.rounds = rounds
        self.types: dict[Prim, tuple[Type, ...]] = {}
        self.dearest: dict[tuple[str, ...], int | None] = {}  # None: it is being found

    def argument(self, p: Var, given: Any) -> Any:
        """A number that is known, or a shadow of the type."""
        t = p.type
        if given is None or not isinstance(t, ArrayType) or t.shape:
            return self.shadow(t)
        return t.dtype.type(given)

    def shadow(self, t: Type) -> Any:
        """A shadow of a value of any type; of a sum, of its first alternative."""
        t = self.program.unfold(with_dims(t, self.dims))
        if isinstance(t, ArrayType):
            return Shadow(t)
        if isinstance(t, Sum):
            return Tagged(0, self.shadow(t.items[0]))
        if isinstance(t, Stack):
            n = self.rounds if t.n is None else t.n
            return [self.shadow(t.items[0]) for _ in range(n or 0)]
        assert isinstance(t, Product)
        return tuple(map(self.shadow, t.items))

    def apply(self, e: Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """A shadow of the result; numbers that are known give a number."""
        if e not in self.types:
            self.types[e] = (*sum(self.judge.leaf(e), ()),)
        (t,) = self.types[e]
        t = self.program.unfold(with_dims(t, self.dims))
        assert isinstance(t, ArrayType)
        if not t.shape and not any(isinstance(a, Shadow) or np.ndim(a) for a in args):
            return super().apply(e, args, params)
        if e.primitive.view and getattr(args[0], "ndim", 0):
            x = args[0]
            if e.name != "reshape" or getattr(x, "whole", True):
                axes, still = getattr(x, "axes", None), e.name in ("reshape", "checkpoint_name")
                if e.name == "permute_dims" and axes is not None:
                    axes = tuple([axes[i] for i in params["axes"]])
                    still = axes == tuple(range(len(axes)))
                found = Shadow(t, owner(x), still, e.name != "broadcast_to")
                found.axes = axes if e.name == "permute_dims" else found.axes
                return found
        like = [a.whole for a in args if isinstance(a, Shadow) and a.shape == t.shape]
        return Shadow(t, whole=not isinstance(e.primitive, Elementwise) or not like or any(like))

    def chosen(self, e: Any, value: Any) -> tuple[int, list[Any]]:
        """The branch that a known value chooses, else the one that takes most memory and work."""
        if not isinstance(value, Shadow):
            return super().chosen(e, value)
        if e.functions not in self.dearest:
            self.dearest[e.functions] = None
            takes = [self.alone(f) for f in e.functions]
            self.dearest[e.functions] = takes.index(max(takes))
        found = self.dearest[e.functions]
        return value._unknown() if found is None else (found, [])

    def alone(self, name: str) -> tuple[int, int]:
        """The peak and the work of a definition of which no argument is known."""
        stage = Stage(self.program, self.rounds)
        stage.dearest = self.dearest
        values = [stage.argument(p, None) for p in self.program.defs[name].params]
        stage.meter.made(values)
        stage.drive(stage.enter(name, values))
        return stage.meter.peak, stage.work

    def holds(self, condition: Any, done: int) -> bool:
        """What a known condition says, else whether the rounds are not over."""
        if isinstance(condition, Shadow) and self.rounds is not None:
            return done < self.rounds
        return bool(condition)

    def copied(self, x: Any, dtype: Any = None) -> Any:
        """A shadow of its own."""
        t = ArrayType(x.shape, np.dtype(dtype or x.dtype))
        return self.new(Shadow(t))

    def part_of(self, e: Part, x: Any, at: Any) -> Any:
        """A shadow of what is read."""
        return self.shadow(self.judge.leaf(e).lxs[0])

    def within(self, e: Any, x: Any, at: Any, y: Any) -> None:
        """What has no numbers is not looked at."""

    def write(self, e: Any, x: Any, at: Any, y: Any) -> None:
        """Nothing."""

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """A shadow of the rows in one."""
        return Shadow(t)

    def zero(self, t: Type) -> Any:
        """Shadows of zeros."""
        return self.new(self.shadow(t))

"""A rehearsal: the interpreter on arrays without numbers.

Every array is a shadow, which knows its type and whose memory it shows; whatever depends on types
alone happens as it will: what is entered, what dies, what is written in place, work, bytes.  So the
work and the peak of memory are known before anything is computed.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.interpreter import Machine, Numbers
from lineara.engines.memory import Meter, owner
from lineara.engines.steady_rounds import Steady, repeated
from lineara.engines.values import ZERO, Tagged, dims_given
from lineara.errors import ProgramError
from lineara.facts.hints import DType, Index, Leaf, Shaped, Value
from lineara.facts.primitive import Elementwise
from lineara.facts.types import ArrayType, Product, Stack, Sum, Type, show, type_of
from lineara.linear_a.dimensions import with_dims
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Part, Prim, Var


class Forecast(NamedTuple):
    """What a run will take: W, bytes written, the most bytes of arrays alive at a time.

    `results` are numbers where those are known, and shadows of the arrays.
    """

    work: int
    written: int
    peak: int
    results: tuple[Any, ...]


def forecast(program: Program, name: str, *known: Any, rounds: int | None = None) -> Forecast:
    """What a run of a definition takes, from the types of its arguments.

    Numbers among `known` are known, so what depends on them is followed; None stands for a value
    that is not known.  A branch on what is not known is taken as the dearest one, a while loop as
    `rounds` rounds.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64[1000];) -> (f64[1000];) = let y = sin(x) in y * y")
    >>> forecast(p, "f")
    Forecast(work=2000, written=16000, peak=24000, results=(an unknown f64[1000],))
    """
    d = program.defs[name]
    given = [*known, *[None] * (len(d.params) - len(known))]
    shadows = Shadows(rounds)
    machine = Machine(program, shadows, Meter())
    machine.dims = dims_given(program, name, given)
    values = [shadows.argument(machine, p, a) for p, a in zip(d.params, given, strict=True)]
    run = shadows.rehearsed(machine, name, values)
    machine.dims = dims_given(program, name, given)
    types = (*d.results, *d.lresults)
    dense = [
        shadows.shadow(machine, t) if v is ZERO else v for v, t in zip(run, types, strict=True)
    ]
    machine.given_away(tuple(dense))
    assert machine.meter is not None, "it measures memory"
    return Forecast(machine.work, machine.written, machine.meter.peak, tuple(dense))


class Shadow:
    """An array, or a number, of which only the type is known.

    `base` is the shadow whose memory it shows; `whole` says that its elements lie in order, and
    `axes` in which order the axes of such an array are shown.
    """

    __slots__ = ("__weakref__", "axes", "base", "flags", "type", "whole")
    __array_ufunc__ = None  # so that a number times a shadow asks the shadow

    def __init__(
        self,
        type: ArrayType,
        base: "Shadow | None" = None,
        whole: bool = True,
        writeable: bool = True,
    ) -> None:
        self.type: ArrayType = type
        self.base: Shadow | None = base
        self.whole: bool = whole
        self.axes: tuple[int, ...] | None = tuple(range(type.ndim)) if whole else None
        self.flags: SimpleNamespace = SimpleNamespace(writeable=writeable)

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

    def astype(self, dtype: DType) -> "Shadow":
        """In another dtype."""
        return Shadow(ArrayType(self.shape, np.dtype(dtype)))

    def __add__(self, other: object) -> "Shadow":
        return Shadow(self.type)

    def __mul__(self, other: Any) -> "Shadow":
        return Shadow(other.type if getattr(other, "ndim", 0) else self.type)

    __radd__ = __add__
    __rmul__ = __mul__

    def __getitem__(self, row: int) -> "Shadow":
        t = ArrayType(self.shape[1:], self.dtype)
        return Shadow(t, owner(self), self.whole) if t.shape else Shadow(t)

    def _unknown(self, *_: Any) -> Any:
        raise ProgramError(
            f"what is done next depends on {self!r}, which is known only when the program runs; "
            "give the rehearsal numbers for the arguments that it depends on"
        )

    __bool__ = _unknown
    __index__ = _unknown
    __float__ = _unknown
    __le__ = _unknown
    __lt__ = _unknown
    __gt__ = _unknown
    __ge__ = _unknown


def unknown(number: Value, *shape: int) -> Shadow:
    """A shadow of a number, or of an array of such."""
    return Shadow(ArrayType(shape, type_of(number).dtype))


class Shadows(Numbers):
    """Values of which only the types are known."""

    def __init__(self, rounds: int | None = None) -> None:
        self.rounds = rounds
        self.types: dict[Prim, tuple[Type, ...]] = {}
        self.dearest: dict[tuple[str, ...], int | None] = {}  # None: it is being found
        self.decisions: int = 0  # how often a number that is known has chosen what is done

    def argument(self, machine: Machine, p: Var, given: Value | None) -> Any:
        """A number that is known, or a shadow of the type; shadows of another rehearsal."""
        t = p.type
        if isinstance(given, Shadow | tuple | list):
            return given
        if given is None or not isinstance(t, ArrayType) or t.shape:
            return self.shadow(machine, t)
        return t.dtype.type(given)

    def rehearsed(self, machine: Machine, name: str, values: Sequence[Any]) -> list[Any]:
        """The results of a definition; its arguments stay alive, as in a run."""
        assert machine.meter is not None, "it measures memory"
        machine.meter.made(tuple(values))
        return machine.drive(machine.enter(name, list(values)))

    def shadow(self, machine: Machine, t: Type) -> Any:
        """A shadow of a value of any type; of a sum, of its first alternative."""
        t = machine.program.unfold(with_dims(t, machine.dims))
        if isinstance(t, ArrayType):
            return Shadow(t)
        if isinstance(t, Sum):
            return Tagged(0, self.shadow(machine, t.items[0]))
        if isinstance(t, Stack):
            n = self.rounds if t.n is None else t.n
            row = [self.shadow(machine, t.items[0])]
            return repeated(row, n - 1, None, unknown) if n else []
        assert isinstance(t, Product)
        return tuple([self.shadow(machine, item) for item in t.items])

    def apply(self, machine: Machine, e: Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """A shadow of the result; numbers that are known give a number."""
        if e not in self.types:
            self.types[e] = (*sum(machine.judge.leaf(e), ()),)
        (t,) = self.types[e]
        t = machine.program.unfold(with_dims(t, machine.dims))
        assert isinstance(t, ArrayType)
        if e.primitive.acts:
            return args[0]
        if not t.shape and not any(isinstance(a, Shadow) or np.ndim(a) for a in args):
            return super().apply(machine, e, args, params)
        if e.primitive.view and getattr(args[0], "ndim", 0):
            x = args[0]
            if e.name != "reshape" or getattr(x, "whole", True):
                axes, still = getattr(x, "axes", None), e.name in ("reshape", "checkpoint_name")
                if e.name == "permute_dims" and axes is not None:
                    axes = tuple([axes[i] for i in params["axes"]])
                    still = axes == tuple(range(len(axes)))
                view = Shadow(t, owner(x), still, e.name != "broadcast_to")
                view.axes = axes if e.name == "permute_dims" else view.axes
                return view
        like = [a.whole for a in args if isinstance(a, Shadow) and a.shape == t.shape]
        return Shadow(t, whole=not isinstance(e.primitive, Elementwise) or not like or any(like))

    def chosen(self, machine: Machine, e: Any, value: Value) -> tuple[int, list[Any]]:
        """The branch that a known value chooses, else the one that takes most memory and work."""
        if not isinstance(value, Shadow):
            self.decisions += not isinstance(value, Tagged)  # a tag is a kind, not a number
            return super().chosen(machine, e, value)
        if e.functions not in self.dearest:
            self.dearest[e.functions] = None
            takes = [self.alone(machine.program, f) for f in e.functions]
            self.dearest[e.functions] = takes.index(max(takes))
        branch = self.dearest[e.functions]
        return value._unknown() if branch is None else (branch, [])

    def alone(self, program: Program, name: str) -> tuple[int, int]:
        """The peak and the work of a definition of which no argument is known."""
        meter = Meter()
        machine = Machine(program, self, meter)
        values = [self.argument(machine, p, None) for p in program.defs[name].params]
        self.rehearsed(machine, name, values)
        return meter.peak, machine.work

    def holds(self, condition: Any, done: int) -> bool:
        """What a known condition says, else whether the rounds are not over."""
        if isinstance(condition, Shadow) and self.rounds is not None:
            return done < self.rounds
        self.decisions += 1
        return bool(condition)

    def left(self, condition: object, done: int) -> int:
        """How many rounds are left of a loop; none that is known where a condition tells."""
        return self.rounds - done if isinstance(condition, Shadow) and self.rounds else 0

    def steady(self, machine: Machine, body: str) -> Steady | None:
        """Rounds are multiplied, unless sizes are numbers that rounds are given."""
        if machine.program.dims(body):
            return None
        return Steady(machine, unknown)

    def copied(self, x: Any, like: Shaped | None = None) -> Any:
        """A shadow of its own."""
        return Shadow(ArrayType(x.shape, x.dtype if like is None else np.result_type(x, like)))

    def part_of(self, machine: Machine, e: Part, x: Leaf, at: object) -> Any:
        """A shadow of what is read."""
        return self.shadow(machine, machine.judge.leaf(e).lxs[0])

    def within(self, machine: Machine, e: object, x: object, at: object, y: object) -> None:
        """Nothing to check: the positions have no values here."""

    def write(self, e: object, x: object, at: Index, y: object) -> Any:
        """The array, into which nothing is written."""
        return x

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """A shadow of the rows in one."""
        return Shadow(t)

    def zero(self, machine: Machine, t: Type) -> Any:
        """Shadows of zeros."""
        return self.shadow(machine, t)

"""Memory of arrays while code is written: which buffers live, and what is known to lie in them.

What is alive at a place is what the frames hold there: the variables of the definitions that are
open, and what loops around keep.  A slot of the workspace that no frame holds is taken again, and
an array that only its last reader holds is written in place.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from lineara.engines.native import numbers as nm
from lineara.engines.native.code import ROLLED, Code
from lineara.engines.native.places import Places, Reached, may_be_later
from lineara.facts.types import ArrayType

HELD = 0.5
"""Of the bytes of a column as many may be held instead, in an array that is read again."""
FEW_ROUNDS, SMALL_NEST = 8, 128
"""Rounds below which LLVM unrolls a loop of a nest, and below which it may unroll a whole nest."""
REGISTER = re.compile(r"%[\w.]+")
MANY, WORTH = 2**22, 2**10
"""Places that loops over arrays go to, some milliseconds, from which on they can be interrupted
between rounds, and those of a round beside which a look whether they are takes no time."""


class Touch(NamedTuple):
    """What a line reads or stores: at which place, how many bytes, and in the rounds of which."""

    at: nm.Affine | None
    width: int
    stores: bool
    rounds: Sequence[nm.Round]


Taped = tuple[int | None, ArrayType, str]
"""A column of a tape: of how many rounds, the type of a row, and the user's place."""


class Memory(Code):
    """Text of LLVM whose values lie in registers and in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[Iterable[nm.Held]] = []
        self.reserved: list[Iterable[nm.Held]] = []  # memory of loops, which a round may write
        self.around: float = 1  # how often what is being written runs, at most
        self.loops_around: list[tuple[nm.Round, Sequence[nm.Held]]] = []  # with what stays the same
        self.there = Places()  # what lies where in arrays, in the block that is open
        self.reached = Reached()  # by the rounds of the innermost loop that is open
        self.touched: dict[str, Touch] = {}  # lines in loops that read or store one number
        self.choices: list[tuple[nm.Choice, nm.Read, Sequence[nm.Round]]] = []  # that are open
        self.slots: list[nm.Buffer] = []
        self.arenas: list[nm.Arena] = []
        self.kept_arenas: set[nm.Buffer] = set()  # where rows lie that an enclosing loop keeps
        self.emptied: list[tuple[int, str, list[nm.Arena]]] = []  # lines where others are emptied
        self.apart: frozenset[str] = frozenset()  # definitions that are functions
        self.in_blocks = False  # whether loops over places are parts of a larger one
        self.taped: list[Taped] = []  # columns of tapes

    def line(self, text: str) -> None:
        """An instruction; what lies in arrays is forgotten where it may read or store there."""
        if ("call " in text or "load " in text or text.startswith("store")) and not (
            text.endswith("%doubt") or "load ptr," in text
        ):
            self.there, self.reached.is_known = Places(), False
        self.lines.append(f"  {text}")

    def block(self, label: str) -> None:
        """Go on in the block of that label."""
        self.there = Places()
        super().block(label)

    @contextmanager
    def kept(self, values: Iterable[nm.Held]) -> Iterator[None]:
        """These values live while the block is emitted."""
        self.frames.append(values)
        yield
        self.frames.pop()

    def lasts(self, source: nm.Read, nbytes: float) -> bool:
        """Whether what was read is still there on the way back, at the price of so many bytes.

        Arguments and constants are.  Another array is, if it stays the same in all loops around and
        was read within one of them, so that what holds the place keeps it from then on.
        """
        buffer = source.array.buffer
        if isinstance(buffer, nm.Arena | nm.Node):
            return False
        if not buffer.written:
            return True
        return (
            buffer.nbytes <= nbytes < math.inf
            and any([source.loop is r for r, _ in self.loops_around])
            and all([buffer in nm.buffers(nm.Tup(tuple(xs))) for _, xs in self.loops_around])
        )

    def may_last(self, source: nm.Read, nbytes: float) -> nm.Choice | None:
        """A choice that is made when the loops are over: whether what was read is there yet.

        The price is that the array is held, so it has to be small beside what would be stored.
        """
        buffer, rounds = source.array.buffer, [r for r, _ in self.loops_around]
        if source.loop not in rounds:
            return None
        if not buffer.nbytes <= HELD * nbytes < math.inf:
            return None
        self.choices.append((nm.Choice(), source, rounds[: rounds.index(source.loop) + 1]))
        return self.choices[-1][0]

    def choose(self, begin: int) -> None:
        """The loops that begin at a line are over: choose what is read again, and not stored."""
        lines: dict[str, list[str]] = {s.array.buffer.register: [] for _, s, _ in self.choices}
        for line in self.lines[begin:] if lines else ():
            for register in lines.keys() & set(REGISTER.findall(line)):
                lines[register].append(line)
        stores = {register: self.stored(of) for register, of in lines.items()}
        for choice, source, rounds in self.choices:
            if choice.again is None:
                choice.again = self.stays(source, rounds, stores[source.array.buffer.register])
            for i, line, memory in choice.stores if choice.again else ():
                assert self.lines[i] == line, "nothing moved it"
                self.lines[i] = ""
                memory.nbytes = 0
            for told in choice.told if choice.again else ():
                self.taped[:] = [t for t in self.taped if t is not told]
        self.choices.clear()

    def stored(self, lines: Sequence[str]) -> list[Touch] | None:
        """Where lines with the name of memory store; None if one of them is not known."""
        known = [self.touched.get(line) for line in lines]
        return None if None in known else [t for t in known if t is not None and t.stores]

    def stays(
        self, source: nm.Read, rounds: Sequence[nm.Round], stores: Sequence[Touch] | None
    ) -> bool:
        """Whether none of the stores is later to the place of what was read in rounds."""
        at, width = source.at.affine, source.array.type.dtype.itemsize
        assert at is not None, "rounds tell it"
        return stores is not None and all([
            t.width == width
            and t.at is not None
            and not may_be_later(at, rounds, t.at, t.rounds)
            for t in stores
        ])  # fmt: skip

    def touch(self, begin: int, array: nm.Arr, at: nm.Num | None, stores: bool) -> None:
        """The lines from one on read or store a number of an array."""
        if self.loops_around and array.buffer.written:
            where = None if array.at else nm.Affine(0) if at is None else at.affine
            rounds = [r for r, _ in self.loops_around]
            told = Touch(where, array.type.dtype.itemsize, stores, rounds)
            for line in self.lines[begin:]:
                if array.buffer.register in line:
                    self.touched[line] = told

    @contextmanager
    def within(self, r: nm.Round, same: Sequence[nm.Held]) -> Iterator[None]:
        """What is emitted in the block is the body of a loop, in which these stay the same."""
        begin = len(self.lines)
        self.loops_around.append((r, same))
        with self.kept(same):
            yield
        self.loops_around.pop()
        if not self.loops_around:
            self.choose(begin)

    @contextmanager
    def repeated(self, most: float) -> Iterator[None]:
        """What is emitted in the block runs so many times, at most."""
        before = self.around
        self.around = before * most
        yield
        self.around = before

    @contextmanager
    def memory_of(self, values: Iterable[nm.Held]) -> Iterator[None]:
        """The memory of these values is not taken again while the block is emitted."""
        self.reserved.append(values)
        yield
        self.reserved.pop()

    def is_held(self, buffer: nm.Buffer) -> bool:
        """Whether something that lives on lies in a buffer."""
        return any([buffer in nm.buffers(value) for frame in self.frames for value in frame])

    def array(self, t: ArrayType, fresh: bool = False) -> nm.Arr:
        """An array that is not filled yet; a fresh one has memory that nothing had before."""
        nbytes = t.size * t.dtype.itemsize
        frames = [*self.frames, *self.reserved]
        alive = {b for frame in frames for value in frame for b in nm.buffers(value)}
        fitting = [s for s in self.slots if s.nbytes == nbytes and s not in alive]
        if fitting and not fresh:
            return nm.Arr(fitting[-1], t)
        self.slots.append(nm.Buffer(f"%s{len(self.slots)}", nbytes, True))
        return nm.Arr(self.slots[-1], t)

    def address(self, array: nm.Arr, more: nm.Num | None = None) -> str:
        """The address of an element, counted from the beginning of an array."""
        base = array.buffer.register
        if isinstance(array.buffer, nm.Arena):
            base = self.let(f"load ptr, ptr {base}")
        unit = nm.IN_MEMORY.get(nm.kind_of(array.type) or "", f"[{array.type.dtype.itemsize} x i8]")
        for index in (array.at, "" if more is None else self.text(more)):
            if index and index != "0":
                base = self.let(f"getelementptr inbounds {unit}, ptr {base}, i64 {index}")
        return base

    def load(self, array: nm.Arr, at: nm.Num | None = None) -> nm.Num:
        """A number of an array."""
        kind = nm.kind_of(array.type)
        assert kind is not None, "a register holds it"
        source = None
        if at is not None and at.affine is not None and not array.at:
            source = nm.Read(array, at, self.loops_around[-1][0] if self.loops_around else None)
        number = self.there.read(array, at)
        if number is None:
            begin = len(self.lines)
            with self.reaching(array, at, False):
                number = self.load_at(self.address(array, at), kind)
            self.touch(begin, array, at, False)
            self.there.know(array, at, number)
        return number._replace(source=source)

    def store(self, x: nm.Num, array: nm.Arr, at: nm.Num | None = None) -> None:
        """Put a number into an array."""
        same = self.there.over(array, at)
        lies, line = same and same.number, None
        if same and same.line is not None:
            self.lines[same.line] = ""
            lies = same.before
        if lies is None or not x.register or lies.register != x.register:
            begin = len(self.lines)
            with self.reaching(array, at, True):
                self.store_at(x, self.address(array, at))
            self.touch(begin, array, at, True)
            line = len(self.lines) - 1
        self.there.know(array, at, x, line, lies)

    def move(self, source: nm.Arr, of: nm.Num, into: nm.Arr, to: nm.Num) -> None:
        """Put an element of an array into another, also one that no register holds."""
        if nm.kind_of(source.type) is not None:
            self.store(self.load(source, of), into, to)
            return
        dtype = source.type.dtype
        bits, near = f"i{8 * dtype.itemsize}", f"align {dtype.alignment}"
        x = self.let(f"load {bits}, ptr {self.address(source, of)}, {near}")
        self.line(f"store {bits} {x}, ptr {self.address(into, to)}, {near}")

    @contextmanager
    def reaching(self, array: nm.Arr, at: nm.Num | None, stores: bool) -> Iterator[None]:
        """The lines of the block read or store a number of an array, and nothing else."""
        there, is_known = self.there, self.reached.is_known
        yield
        self.there, self.reached.is_known = there, is_known and nm.kind_of(array.type) != "bool"
        if self.reached.is_known:
            self.lines[-1] += f", !llvm.access.group {self.reached.group}"
            self.reached.add(array, at, stores)

    @contextmanager
    def round_of_loop(self) -> Iterator[Reached]:
        """What is emitted in the block is a round of a loop; gives the places that it reaches."""
        around, self.reached = self.reached, Reached(self.fact("distinct !{}"))
        yield self.reached
        self.reached = around
        self.reached.is_known = self.reached.is_innermost = False

    def copy(self, source: nm.Arr, into: nm.Arr) -> None:
        """Copy an array."""
        if source.strides is not None:
            steps = [source.strides, nm.strides_of(into.type.shape)]
            with self.nest(into.type.shape, *steps) as (of, to):
                self.move(source, of, into, to)
        elif into.type.size:
            move = self.outside("llvm.memmove.p0.p0.i64", "void (ptr, ptr, i64, i1)")
            nbytes = into.type.size * into.type.dtype.itemsize
            target, origin = self.address(into), self.address(source)
            self.line(f"call void {move}(ptr {target}, ptr {origin}, i64 {nbytes}, i1 false)")

    def cleared(self, array: nm.Arr) -> None:
        """Fill an array with zeros."""
        if array.type.size:
            fill = self.outside("llvm.memset.p0.i64", "void (ptr, i8, i64, i1)")
            nbytes = array.type.size * array.type.dtype.itemsize
            self.line(f"call void {fill}(ptr {self.address(array)}, i8 0, i64 {nbytes}, i1 false)")

    def in_order(self, values: Iterable[nm.Held]) -> list[nm.Held]:
        """Values whose arrays lie in C order."""
        ordered = list(values)
        if all([isinstance(x, nm.Num) for x in ordered]):
            return ordered
        with self.kept(ordered):
            for i, x in enumerate(ordered):
                if isinstance(x, nm.Arr) and x.strides is not None:
                    ordered[i] = self.copied(x)
        return ordered

    def copied(self, array: nm.Arr) -> nm.Arr:
        """The same numbers in C order, in memory of their own."""
        made = self.array(array.type)._replace(lay=array.lay)
        self.copy(array, made)
        return made

    def is_whole(self, array: nm.Arr) -> bool:
        """Whether an array is all of its memory, in C order, and that may be written."""
        nbytes = array.type.size * array.type.dtype.itemsize
        return nbytes == array.buffer.nbytes and array.strides is None and array.buffer.written

    def is_left(self, array: nm.Arr) -> bool:
        """Whether all memory of an array may be written, since nobody holds it any more."""
        return self.is_whole(array) and not self.is_held(array.buffer)

    def over(self, args: Sequence[nm.Held], t: ArrayType) -> nm.Arr:
        """An array for what is made of arguments place by place: over one that is left, or new."""
        arrays = [x for x in args if isinstance(x, nm.Arr)]
        for x in arrays:
            alike = x.type.shape == t.shape and x.type.dtype.itemsize == t.dtype.itemsize
            others = {(y.at, y.strides, y.type.shape) for y in arrays if y.buffer is x.buffer}
            if alike and len(others) == 1 and self.is_left(x):
                return nm.Arr(x.buffer, t)
        with self.kept(args):
            return self.array(t)

    def own(self, array: nm.Arr, mine: bool) -> nm.Arr:
        """The array where nobody else holds it, or a copy."""
        if mine and self.is_left(array):
            return array
        with self.kept([array]):
            return self.copied(array)._replace(lay=nm.C)

    def interruptible(self, done: str, spent: int) -> None:
        """Have Python asked now and then whether it interrupts rounds of so many operations."""
        raise NotImplementedError

    @contextmanager
    def each(self, n: int | str, rolled: bool = False, spent: int = 1) -> Iterator[nm.Num]:
        """A loop over n elements, or as many as a register says; gives the position.

        LLVM unrolls none that is `rolled`.  One that goes to many places, `spent` in each round,
        can be interrupted.
        """
        self.reached.is_known = False
        r = nm.Round(n if isinstance(n, int) else None)
        before, head, body, after = self.label, *map(self.name, ("head", "body", "after"))
        self.jump(head)
        self.block(head)
        r.register = f"%r{self.name()}"
        place = len(self.lines)
        self.line("")
        self.branch(self.let(f"icmp ult i64 {r.register}, {n}"), body, after)
        self.block(body)
        if is_long(n, spent):
            self.interruptible(r.register, spent)
        yield nm.Num("i64", affine=nm.Affine(0, ((r, 1),)))
        more = self.let(f"add nuw nsw i64 {r.register}, 1")
        phi = f"phi i64 [0, %{before}], [{more}, %{self.label}]"
        self.lines[place] = f"  {r.register} = {phi}"
        if rolled:
            self.line(f"br label %{head}{self.of_loop(f'!{ROLLED}')}")
        else:
            self.jump(head)
        self.block(after)

    @contextmanager
    def nest(
        self, shape: Sequence[int], *strides: Sequence[int], spent: int = 1
    ) -> Iterator[list[nm.Num]]:
        """Loops over the places of a shape; gives the offset that each of the strides has there.

        At each of them the code goes to `spent` places.
        """
        axes = [(n, steps) for n, *steps in zip(shape, *strides, strict=True) if n != 1]
        merged: list[tuple[int, list[int]]] = []
        for n, steps in axes:  # an axis that goes on where the next one ends is one with it
            if merged and all([a == b * n for a, b in zip(merged[-1][1], steps, strict=True)]):
                merged[-1] = merged[-1][0] * n, steps
            else:
                merged.append((n, steps))
        offsets = [nm.Affine(0) for _ in strides]
        is_large = math.prod([n for n, _ in merged]) > SMALL_NEST
        works = [spent * math.prod([n for n, _ in merged[j:]]) for j in range(1, len(merged) + 1)]
        asks = max([j for j, (n, _) in enumerate(merged) if is_long(n, works[j])], default=None)
        with ExitStack() as loops:
            for j, (n, steps) in enumerate(merged):
                rolled = self.in_blocks or (is_large and j == len(merged) - 1)
                rolled = rolled and len(merged) > 1 and n >= FEW_ROUNDS
                i = loops.enter_context(self.each(n, rolled, works[j] if j == asks else 1)).affine
                assert i is not None, "a loop counts its rounds"
                offsets = [a.plus(i, k) for a, k in zip(offsets, steps, strict=True)]
            yield [nm.Num("i64", affine=a) for a in offsets]


def is_long(n: int | str, spent: int) -> bool:
    """Whether rounds that go to so many places each are looked at, and are many."""
    return isinstance(n, int) and spent >= WORTH and n * spent >= MANY


__all__ = ["Memory", "Taped"]

"""Emitting a definition: its bindings in order, each value in registers or in buffers.

The body of a definition stands where it is called, so a program becomes one function of machine
code.
"""

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.memory import Deaths, deaths
from lineara.engines.native import numbers as nm
from lineara.engines.native.demand import Demand
from lineara.engines.native.memory import Memory
from lineara.engines.native.places import Places, Reached
from lineara.facts.types import ArrayType, Named, Product, Stack, Sum, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.check import Judge
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_binding, show_leaf

SITES, CALLED = 2, 3  # of the places where tables end, those of what may fail
LISTED = "; "  # begins a comment of LLVM's
LARGEST = 200_000
"""Leaves, written where they are called, from which a program is refused: emission has an end."""
INDEX = ArrayType((), np.dtype(np.int64))


class Site(NamedTuple):
    """Where code calls back: what it hands over, what it wants, and who answers."""

    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    answer: Callable[[list[Any]], Sequence[Any]]
    lays: tuple[nm.Lay, ...]  # how the interpreter's operands and results lie; None: who knows
    what: str  # in words, for the report
    place: str = ""  # the user's, `file:number`, where that is known
    leaves: int = 1  # of the text that it is; a look whether Python interrupts is none of it


OWN = (
    "lines", "entry", "label", "slots", "arenas", "emptied", "kept_arenas", "scratch", "around",
    "frames", "reserved", "remembered", "loops_around", "there", "reached", "unnoted", "free",
    "choices",
)  # fmt: skip
"""What of an emitter belongs to the function that is being written."""
OPENED = ("around", "trying", "in_blocks", "place", "reached", "unnoted", "free")
"""What is otherwise while something is being written."""


class Emitter(Memory):
    """One program on its way to machine code."""

    label: Any

    def __init__(self, program: Program, trusting: bool = False, exact: bool = True) -> None:
        super().__init__()
        self.program = program
        self.source: Program = program  # of which it was made, and of which errors speak
        self.leaves_of_source: dict[ir.Leaf, ir.Leaf] = {}
        self.exact = exact  # every bit is the interpreter's
        self.lays: dict[Any, Any] = {}  # how results of leaves and loops lie, of what lies so
        self.judge: Judge = Judge(program, "")
        self.trusting = trusting  # factors of masked products are taken as they are
        self.cotangents: set[ir.Leaf] = set()  # leaves of the source whose rounding is free
        self.free = False  # whether what is being written is one of these, and of numbers
        self.unnoted: bool | None = None  # whether a loop after which that is noted has factors
        self.doubt: str = ""  # the register that says whether a factor was not finite
        self.demand: Demand = Demand(program, trusting)
        self.remembered: list[dict[ir.Var, nm.Tup]] = [{}]  # factors, in the blocks that are open
        self.constants: list[np.ndarray] = []
        self.sites: list[Site] = []
        self.open: list[str] = []  # the definitions that are being written
        self.called: list[Any] = []  # functions, as often as they are called
        self.functions: dict[Any, Any] = {}  # by the definition and what is wanted of it
        self.refused: dict[str, str] = {}  # definitions that are called back, and why
        self.stack: int | None = None  # the constant that says where the stack is
        self.nodes: dict[Type, bool] = {}  # sums, and whether values of them are nodes
        self.deaths: dict[str, Deaths] = {}
        self.leaves: int = 0
        self.narrow: dict[ir.Block, dict[int, int]] = {}  # rows, and from where regions of them are
        self.trying: bool = False  # whether the lines are emitted on trial and dropped
        self.scratch: int = 1
        self.helpers: dict[str, str] = {}  # functions of this module, by their names
        self.fused: list[tuple[str, tuple[str, ...]]] = []  # in words, and the user's places
        self.listed = False  # whether the program's lines stand in the text, as comments
        self.told: dict[str, str] = {}  # the user's places of these comments
        self.place: str = ""  # the user's, of what is being written, if that is listed
        self.origins: dict[int, tuple[nm.Held, str]] = {}  # of values, by identity: likewise
        self.addresses: dict[str, int] = {}  # of functions outside, by their names here
        self.loops: dict[str, Any] = {}  # which loop of NumPy's a name is

    # --- definitions ---------------------------------------------------------------------------

    def call(
        self, name: str, values: Sequence[nm.Held], wanted: Sequence[bool] | None = None
    ) -> list[nm.Held]:
        """What a definition makes of values; what is not wanted may be anything.

        One that is not lowered is called back, if what goes in and out are numbers and arrays.
        """
        results = self.program.defs[name].results
        wanted = (True,) * len(results) if wanted is None else tuple(wanted)
        places, state = self.places(), self.state()
        try:
            if name in self.refused:
                raise nm.Refused(self.refused[name])
            if name in self.apart:
                return self.function_called(name, values, wanted)
            return self.body(name, values, wanted)
        except nm.Refused as why:
            if isinstance(why, nm.TooLong) or not state[0]:
                raise
            self.set_state(state)
            self.back_to(places)
            return self.definition_called_back(name, values, why)

    def state(self) -> tuple[Any, ...]:
        """What is open."""
        stacks = self.open, self.frames, self.reserved, self.remembered, self.loops_around
        return (*map(len, stacks), *[getattr(self, name) for name in OPENED])

    def set_state(self, state: tuple[Any, ...]) -> None:
        """Leave what was opened since."""
        for name, value in zip(OPENED, state[-len(OPENED) :], strict=True):
            setattr(self, name, value)
        stacks = self.open, self.frames, self.reserved, self.remembered, self.loops_around
        for stack, n in zip(stacks, state, strict=False):
            del stack[n:]

    def function_called(
        self, name: str, values: Sequence[nm.Held], wanted: tuple[bool, ...]
    ) -> list[nm.Held]:
        """The results of a definition that is a function."""
        raise NotImplementedError

    def definition_called_back(
        self, name: str, values: Sequence[nm.Held], why: nm.Refused
    ) -> list[nm.Held]:
        """What the interpreter makes of a definition that is not lowered."""
        raise NotImplementedError

    def body(self, name: str, values: Sequence[nm.Held], wanted: Sequence[bool]) -> list[nm.Held]:
        """The body of a definition on values."""
        d = self.program.defs[name]
        if name not in self.deaths:
            self.deaths[name] = deaths(d)
        env: dict[ir.Var, nm.Held] = dict(zip(d.params, values, strict=True))
        dying = [v for rows in self.deaths[name].values() for row in rows for v in row]
        for v in {*d.params}.difference(dying):  # nothing reads it
            del env[v]
        self.open.append(name)
        types = (*d.results, *d.lresults)
        with self.kept(env.values()):
            results = self.block_of(d.body, env, types, self.deaths[name], wanted)
        self.open.pop()
        return results

    def block_of(
        self,
        block: ir.Block,
        env: dict[ir.Var, nm.Held],
        types: Sequence[Type],
        dying: Deaths,
        wanted: Sequence[bool],
    ) -> list[nm.Held]:
        """The bindings in order, then the values of the leaf."""
        *rows, at_last = dying[block]
        needed, runs = self.demand.block(block, tuple(wanted))
        left = set(runs)  # those that are not emitted, with lines before them or alone
        lone = set[ir.Var]() if self.exact else lone_zeros(block, runs)
        env.update(dict.fromkeys(lone, nm.NIL))
        self.remembered.append({})
        self.frames.append(self.remembered[-1].values())
        for i, (b, dead) in enumerate(zip(block.bindings, rows, strict=True)):
            if i in left:
                left -= self.region(block, i, left, env)
            if self.listed and i in left:
                self.tell(b)
            is_done = i in runs and i not in left
            left.discard(i)
            if is_done:
                values: Sequence[nm.Held] = [env[v] for v in b.vars]
            elif i not in runs:
                values = [nm.UNREAD] * len(b.vars)
            elif b.vars and b.vars[0] in lone:
                values = [nm.NIL]
            elif isinstance(b, ir.Unpack):
                whole = env[b.arg]
                assert isinstance(whole, nm.Tup), "what is taken apart is a product"
                values = whole.items
            else:
                read = [v in needed for v in b.vars]
                before = None if any(read) or not read else self.places()
                if before:
                    self.there = Places()  # a store before is not taken back for what is dropped
                values = self.expression(b.rhs, env, [v.type for v in b.vars], dead, dying, read)
                asks = before and [s for s in self.sites[before[SITES] :] if s.leaves]
                if before and not asks and len(self.called) == before[CALLED]:
                    self.back_to(before)  # nobody reads it, and nothing in it can fail
                    values = [nm.UNREAD] * len(read)
            for v, value in zip(b.vars, values, strict=True):
                env[v] = value
                if self.listed:
                    self.origins.setdefault(id(value), (value, v.line))
            for v in dead:
                env.pop(v, None)
                self.remembered[-1].pop(v, None)
        self.tell(block.leaf)
        results = list(self.expression(block.leaf, env, types, at_last, dying, wanted))
        self.remembered.pop()
        self.frames.pop()
        return results

    def place_of(self, value: nm.Held) -> str:
        """The user's place that a value comes from, if that is listed."""
        return self.origins.get(id(value), (None, ""))[1]

    def tell(self, e: ir.Binding | ir.Leaf) -> None:
        """The program's line, above the code of it."""
        if self.listed and not isinstance(e, ir.Drop | ir.Ret):
            text = show_leaf(e) if isinstance(e, ir.Leaf) else show_binding(e)
            self.place = ir.line_of(e)
            at = f"  at {self.place.rpartition(os.sep)[2]}" if self.place else ""
            comment = f"{self.open[-1]}: {' '.join(text.split())}{at}"
            self.told[comment] = self.place
            self.lines.append(f"  {LISTED}{comment}")

    def expression(
        self,
        e: ir.Leaf | ir.Block,
        env: dict[ir.Var, nm.Held],
        types: Sequence[Type],
        dead: ir.Vars,
        dying: Deaths,
        wanted: Sequence[bool],
    ) -> Sequence[nm.Held]:
        """The values of a leaf or a block."""
        if isinstance(e, ir.Block):
            return self.block_of(e, env, types, dying, wanted)
        if isinstance(e, ir.Drop):
            shown = self.types_of(e.body)
            self.expression(e.body, env, shown, dead, dying, [False] * len(shown))
            return []
        self.leaves += 1
        if self.leaves > LARGEST:
            raise nm.TooLong(
                f"it has more than {LARGEST:,} operations, with what it calls written out"
            )
        at = {v: env[v] for v in e.operands()}
        args = [at[v] for v in e.args]
        given = args[isinstance(e, ir.Accum) :]
        free = self.is_free(e) and all([isinstance(x, nm.Num) for x in given])
        for v in dead:
            env.pop(v, None)
        if type(e) is Call:
            return self.call(e.functions[0], args, wanted)
        if isinstance(e, ir.Accum | ir.Put) and e.args[0] in dead:
            self.set_apart(args, env)
        self.free = free
        values = self.leaf(e, args, at, types, dead, wanted)
        self.free = False  # for whoever asked: a region writes lines of arrays next
        return values

    def set_apart(self, args: list[nm.Held], env: dict[ir.Var, nm.Held]) -> None:
        """Copy the parts of the first array that live on, where only they hold it: it is written.

        So a round that reads a row and writes another costs two rows, and not all of them.
        """
        whole = args[0]
        if not isinstance(whole, nm.Arr) or not self.is_whole(whole):
            return

        def parts(values: Iterable[tuple[Any, nm.Held]]) -> list[tuple[Any, nm.Arr]]:
            arrays = [(k, x) for k, x in values if isinstance(x, nm.Arr)]
            return [(k, x) for k, x in arrays if x.buffer is whole.buffer]

        living, given = parts(env.items()), parts([*enumerate(args)][1:])
        held = [x for frame in self.frames for x in frame if whole.buffer in nm.buffers(x)]
        size = sum([x.type.size for _, x in (*living, *given)])
        if len(held) != len(living) or 2 * size > whole.type.size:
            return
        with self.kept(args):
            for v, x in living:  # one by one, so that each copy is held when the next one is made
                env[v] = self.copied(x)
            for i, x in given:
                args[i] = self.copied(x)

    def is_free(self, e: ir.Leaf) -> bool:
        """Whether a leaf calculates with cotangents, whose rounding is free."""
        return self.leaves_of_source.get(e, e) in self.cotangents

    def freedom(self, instruction: str) -> str:
        """How LLVM may round an instruction on floats otherwise than it is written."""
        if not self.free:
            return ""
        return " contract" if instruction == "mul" else " reassoc nsz contract"

    def types_of(self, e: ir.Leaf | ir.Block) -> Sequence[Type]:
        """The types of what is dropped."""
        while isinstance(e, ir.Block):
            e = e.leaf
        return () if isinstance(e, ir.Drop) else sum(self.judge.leaf(e), ())

    def leaf(
        self,
        e: ir.Leaf,
        args: list[nm.Held],
        at: dict[ir.Var, nm.Held],
        types: Sequence[Type],
        dead: ir.Vars,
        wanted: Sequence[bool],
    ) -> Sequence[nm.Held]:
        """The values of a leaf."""
        match e:
            case ir.Prim():
                t = self.program.unfold(types[0])
                if e.name == "add" and not isinstance(t, ArrayType):
                    return [self.sum_of(e, t, *args)]
                return [self.primitive(e, args, at, self.array_type(t))]
            case ir.Ret() | ir.Copy():
                return args
            case ir.Lit(value=value):
                return [self.literal(value, e.type)]
            case ir.Tup():
                left = self.demand.left_out(types[0])
                args = [nm.UNREAD if i in left else x for i, x in enumerate(args)]
                return [nm.Tup(tuple(self.in_order(args)))]
            case ir.Zero(type=t):
                return [self.zero(t)]
            case ir.Inj(tag=tag, type=t):
                whole = self.program.unfold(t)
                assert isinstance(whole, Sum)
                (payload,) = self.in_order(args)
                if self.is_node(whole):
                    return [self.node(tag, payload, whole)]
                items = [payload if i == tag else None for i in range(len(whole.items))]
                return [nm.Tag(nm.constant("i64", tag), tuple(items))]
            case ir.Proj(tag=tag) if isinstance(args[0], nm.Tup):
                whole = self.program.unfold(e.args[0].type)
                assert isinstance(whole, Sum)
                return [self.projected(args[0], whole.items[tag])]
            case ir.Proj(tag=tag):
                item = args[0].items[tag] if isinstance(args[0], nm.Tag) else None
                return [self.zero(types[0]) if item is None else item]
            case ir.Accum() | ir.Put():
                args[:] = self.in_order(args)
                mine = e.args[0] in dead and e.args.count(e.args[0]) == 1  # so it may be written
                return [self.written(e, args, at, self.array_type(types[0]), mine)]
            case ir.Application():
                args[:] = self.in_order(args)
                return self.applied(e, args, wanted)
        raise nm.Refused(f"it has {type(e).__name__.lower()}, which only linear programs have")

    def primitive(
        self, e: ir.Prim, args: list[nm.Held], at: dict[ir.Var, nm.Held], t: ArrayType
    ) -> nm.Held:
        """The value of a primitive."""
        raise NotImplementedError

    def region(
        self, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
    ) -> set[int]:
        """Bindings of a block that are emitted together, from one on; those that are done."""
        raise NotImplementedError

    def node(self, tag: int, payload: nm.Held, whole: Sum) -> nm.Held:
        """A value of a sum that holds itself."""
        raise NotImplementedError

    def projected(self, value: nm.Tup, t: Type) -> nm.Held:
        """What such a value holds, of type t; zeros if it is zero."""
        raise NotImplementedError

    def sum_of(self, e: ir.Prim, t: Type, x: nm.Held, y: nm.Held) -> nm.Held:
        """The sum of two values of any type; of an alternative that one cannot be it is the other.

        What is zero has the tag -1, so a sum has the tag of either value that is not.
        """
        t = self.program.unfold(t)
        if x is nm.NIL or x is None:
            return y
        if y is nm.NIL or y is None:
            return x
        if isinstance(t, ArrayType):
            a, b = ir.Var("a", t), ir.Var("b", t)
            e = ir.Prim((a, b), e.primitive)
            return self.primitive(e, [x, y], {a: x, b: y}, self.array_type(t))
        if not isinstance(t, Product | Sum) or (isinstance(t, Sum) and self.is_node(t)):
            raise nm.Refused(f"it calculates with a whole {show(t)}")
        assert isinstance(x, nm.Tup | nm.Tag)
        assert isinstance(y, nm.Tup | nm.Tag)
        items: list[nm.Held] = []
        with self.kept([x, y]), self.kept(items):
            for s, *pair in zip(t.items, x.items, y.items, strict=True):
                items.append(self.sum_of(e, s, *pair))
        if isinstance(x, nm.Tup) or isinstance(y, nm.Tup):
            return nm.Tup(tuple(items))
        if x.tag == y.tag:
            return nm.Tag(x.tag, tuple(items))
        assert isinstance(x.tag, nm.Num)
        assert isinstance(y.tag, nm.Num)
        either = self.outside("llvm.smax.i64", "i64 (i64, i64)")
        tag = self.let(f"call i64 {either}(i64 {self.text(x.tag)}, i64 {self.text(y.tag)})")
        return nm.Tag(nm.Num("i64", tag), tuple(items))

    def written(
        self, e: ir.Part, args: list[nm.Held], at: dict[ir.Var, nm.Held], t: ArrayType, mine: bool
    ) -> nm.Held:
        """An array after a part of it was written, or added to."""
        raise NotImplementedError

    def applied(
        self, e: ir.Application, args: list[nm.Held], wanted: Sequence[bool]
    ) -> Sequence[nm.Held]:
        """The results of a call, a branch or a loop."""
        raise NotImplementedError

    # --- types and values ------------------------------------------------------------------------

    def is_node(self, t: Sum) -> bool:
        """Whether values of a sum are nodes: they may hold values of a type that holds itself."""
        if t not in self.nodes:
            names = names_in(self.program, t)
            self.nodes[t] = any([n in names_in(self.program, n) for n in names])
        return self.nodes[t]

    def array_type(self, t: Type) -> ArrayType:
        """The type of an array or a number, whose size is known."""
        t = self.program.unfold(t)
        if not isinstance(t, ArrayType):
            raise nm.Refused(f"it calculates with a whole {show(t)}")
        if t.shape and not all([isinstance(n, int) for n in t.shape]):
            raise nm.Refused(f"it has an array of the type {show(t)}, whose size is a value")
        if t.dtype.kind not in "fciub" or t.dtype.itemsize > 16:
            raise nm.Refused(f"it has values of the type {show(t)}")
        return t

    def literal(self, value: Any, t: Type) -> nm.Held:
        """A number or an array that the text has."""
        t = self.array_type(t)
        kind = nm.kind_of(t)
        if kind is not None and not t.shape:
            return nm.constant(kind, value)
        self.constants.append(np.array(value, t.dtype, order="C"))
        buffer = nm.Buffer(f"%c{len(self.constants) - 1}", self.constants[-1].nbytes, False)
        return nm.Arr(buffer, t)

    def zero(self, t: Type) -> nm.Held:
        """Zeros of a type."""
        t = self.program.unfold(t)
        if isinstance(t, Sum | Stack):
            return nm.NIL
        if isinstance(t, Product):
            return nm.Tup(tuple([self.zero(item) for item in t.items]))
        t = self.array_type(t)
        kind = nm.kind_of(t)
        if kind is not None and not t.shape:
            return nm.constant(kind, 0)
        array = self.array(t)
        self.cleared(array)
        return array

    # --- calling back --------------------------------------------------------------------------

    def answered(
        self,
        operands: Sequence[nm.Num | nm.Arr],
        types: Sequence[ArrayType],
        results: Sequence[ArrayType],
        answer: Callable[[list[Any]], Sequence[Any]],
        lays: Sequence[nm.Lay] = (),
        what: str = "a question of Python's",
    ) -> list[nm.Num | nm.Arr]:
        """What Python answers; where it raises, or results do not lie as told, the run ends."""
        lays = [*[getattr(x, "lay", nm.C) for x in operands], *(lays or [None] * len(results))]
        self.sites.append(Site(tuple(types), tuple(results), answer, tuple(lays), what, self.place))
        operands = self.as_numpys(operands)
        self.scratch = max(self.scratch, 1 + len(types) + len(results))
        with self.kept(operands):
            arrays: list[nm.Arr | None] = []
            with self.memory_of(arrays):
                for t in results:
                    arrays.append(None if nm.word_of(t) else self.array(t))
        self.line("store i64 0, ptr %scratch")  # Python puts 1 there, unless it is interrupted
        for i, x in enumerate([*operands, *arrays], 1):
            place = self.let(f"getelementptr inbounds i64, ptr %scratch, i64 {i}")
            if isinstance(x, nm.Num) and nm.word_of(nm.TYPES[x.kind]):
                self.store_at(x, place)
            elif x is not None:
                memory = self.boxed(x) if isinstance(x, nm.Num) else self.address(x)
                self.line(f"store ptr {memory}, ptr {place}")
        call = self.outside("lineara.answer", "void (i64, i64, ptr)")
        site = len(self.sites) - 1
        self.line(f"call void {call}(i64 %run, i64 {site}, ptr %scratch)")
        code, on = self.let("load i64, ptr %scratch"), self.name("on")
        fine = self.let(f"icmp eq i64 {code}, 1")
        self.branch(fine, on, "failed")
        self.block(on)
        values: list[nm.Num | nm.Arr] = []
        for i, (t, array) in enumerate(zip(results, arrays, strict=True), 1 + len(operands)):
            kind = nm.kind_of(t)
            if array is None:
                assert kind is not None, "a register holds it"
                place = self.let(f"getelementptr inbounds i64, ptr %scratch, i64 {i}")
                values.append(self.load_at(place, kind))
            elif kind and not t.shape:
                values.append(self.load(array))
            else:
                lay = lays[i - 1]
                values.append(array._replace(lay=nm.unsure(t) if lay is None else lay))
        return values

    def as_numpys(self, values: Sequence[nm.Num | nm.Arr]) -> list[nm.Num | nm.Arr]:
        """Arrays in memory that is laid out as NumPy's is, where that is known, and numbers."""
        laid = list(values)
        with self.kept(values), self.kept(laid):
            for i, x in enumerate(values):
                if isinstance(x, nm.Arr) and x.lay:
                    y = self.array(ArrayType((nm.extent(x.type, x.lay),), x.type.dtype))
                    with self.nest(x.type.shape, nm.strides_of(x.type.shape), x.lay) as (of, to):
                        self.move(x, of, y, to)
                    laid[i] = y
        return laid

    def must(self, fine: str, complain: Callable[[], object]) -> None:
        """Go on where a condition holds; else Python is asked, which raises."""
        on, no = self.name("on"), self.name("no")
        self.branch(fine, on, no)
        self.block(no)
        complain()
        self.jump("failed")
        self.block(on)

    def unless(self, fine: str, fast: nm.Num, slow: Callable[[], nm.Num]) -> nm.Num:
        """A number, and another way to it where a condition does not hold."""
        value, before = self.text(fast), self.label
        on, no = self.name("on"), self.name("no")
        self.branch(fine, on, no)
        self.block(no)
        other = self.text(slow())
        after = self.label
        self.jump(on)
        self.block(on)
        phi = f"phi {nm.LLVM[fast.kind]} [{value}, %{before}], [{other}, %{after}]"
        return nm.Num(fast.kind, self.let(phi))

    def trust(self, x: nm.Num) -> None:
        """Note where a number is not finite."""
        if x.constant is not None and math.isfinite(x.constant):
            return
        if self.unnoted is not None:
            self.unnoted = True
            return
        if x.kind == "c128":
            for i in range(2):
                part = self.let(f"extractelement <2 x double> {self.text(x)}, i64 {i}")
                self.trust(nm.Num("f64", part))
            return
        if not self.doubt:
            self.doubt = "%doubt"
        value = self.text(x)
        if x.kind == "f32":
            value = self.let(f"fpext float {value} to double")
        nothing = self.let(f"fmul double {value}, 0.0")  # or NaN, which every sum stays
        before = self.let("load double, ptr %doubt")
        both = self.let(f"fadd reassoc nsz double {before}, {nothing}")
        self.line(f"store double {both}, ptr %doubt")

    # --- what is thrown away ----------------------------------------------------------------------

    def places(self) -> tuple[Any, ...]:
        """Where the text and its tables end."""
        return self.label, self.leaves, *map(len, self.tables())

    def tables(self) -> tuple[list[Any], ...]:
        """What grows as code is emitted."""
        return (
            self.sites, self.called, self.lines, self.entry, self.slots, self.constants,
            self.arenas, self.emptied, self.taped, self.fused, self.choices,
        )  # fmt: skip

    def back_to(self, places: tuple[Any, ...]) -> None:
        """Throw away what was emitted since."""
        self.there = Places()
        self.label, self.leaves, *lengths = places
        for table, n in zip(self.tables(), lengths, strict=True):
            del table[n:]

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is emitted in the block is not kept."""
        places, before, there = self.places(), self.trying, self.there
        self.trying, self.there = True, Places()
        self.remembered.append({})
        yield
        self.remembered.pop()
        self.back_to(places)
        self.trying, self.there = before, there

    @contextmanager
    def function(self) -> Iterator[None]:
        """What is emitted in the block is another function."""
        mine = {name: getattr(self, name) for name in OWN}
        self.lines, self.entry, self.label, self.slots, self.arenas = [], [], "start", [], []
        self.emptied, self.kept_arenas, self.scratch, self.around = [], set(), 1, math.inf
        self.frames, self.reserved, self.remembered, self.loops_around = [], [], [{}], []
        self.there, self.reached, self.unnoted, self.free = Places(), Reached(), None, False
        self.choices = []
        yield
        for name, value in mine.items():
            setattr(self, name, value)

    def finished(self) -> str:
        """The lines of a function that is done; before a loop its arenas are empty, or kept."""
        for line, used, held in self.emptied:
            if not self.kept_arenas.intersection(held):
                self.lines[line] = f"  store i64 0, ptr {used}"
        return "\n".join([line for line in self.lines if line])

    @contextmanager
    def elsewhere(self, place: int) -> Iterator[None]:
        """What is emitted in the block stands in the empty line at a place."""
        end, label = len(self.lines), self.label
        self.there = Places()
        yield
        self.there = Places()
        self.lines[place] = "\n".join(self.lines[end:])
        del self.lines[end:]
        self.label = label


def names_in(program: Program, t: Type) -> set[Type]:
    """The names of types that are in a type, in what these stand for, and so on."""
    names, todo = set[Type](), [program.unfold(t)]
    while todo:
        s = todo.pop()
        if isinstance(s, Named):
            if s not in names:
                names.add(s)
                todo.append(program.unfold(s))
        elif not isinstance(s, ArrayType):
            todo += s.items
    return names


def lone_zeros(block: ir.Block, runs: set[int]) -> set[ir.Var]:
    """The arrays of zeros that are read once, by what adds to a part of them."""
    lets = [b for i, b in enumerate(block.bindings) if i in runs and isinstance(b, ir.Let)]
    zeros = {b.vars[0] for b in lets if isinstance(b.rhs, ir.Zero)}
    if not zeros:
        return zeros
    adds = [b.rhs for b in lets if isinstance(b.rhs, ir.Accum)]
    added = {e.args[0] for e in adds if len(e.operands()) == len(e.args)}  # at a known place
    reads = Counter([v for i in runs for v in ir.reads(block.bindings[i])])
    reads.update(block.leaf.operands())
    arrays = [z for z in zeros & added if isinstance(z.type, ArrayType) and z.type.shape]
    return {z for z in arrays if reads[z] == 1}


__all__ = ["Emitter", "Site"]

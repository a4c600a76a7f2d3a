"""Calls, branches and loops.

A call is the body that it calls.  A branch emits each body in a block of its own, and where they
meet numbers are chosen by the block that was left, and arrays lie in one buffer.  A loop carries
numbers in registers and arrays in buffers that are its own for all rounds; what it stacks goes to
`stacks`.  The body of a loop is looked at once before it is emitted: a whole number that grows by
a constant each round is affine in the rounds and not carried at all; and booleans that stay true,
once all are true, are constants of a second loop, which goes on from the round where they are.  A
while loop that such a number ends has as many rounds as are told when it begins, and is a scan.
"""

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lineara.engines.native import nodes, stacks
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import INDEX, Emitter
from lineara.engines.native.places import Reached
from lineara.engines.native.strided import steps_of
from lineara.facts.types import ArrayType, Sum, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case, Choice, Cond, Switch
from lineara.linear_a.calls import Sized
from lineara.linear_a.cost import operations
from lineara.linear_a.loops import Scan, While

Plain = nm.Num | nm.Arr


def applied(
    em: Emitter, e: ir.Application, args: list[nm.Held], wanted: Sequence[bool]
) -> Sequence[nm.Held]:
    """The results of a call, a branch or a loop; what is not wanted may be anything."""
    match e:
        case Sized():
            raise nm.Refused("it has arrays whose size is a value")
        case Choice():
            return chosen(em, e, args, wanted)
        case Scan() if em.is_free(e) and em.unnoted is None and is_noted_after(em, e):
            em.unnoted = False
            results = scan(em, e, args, wanted)
            has_factors, em.unnoted = em.unnoted, None
            if has_factors:
                noted(em, results)
            return results
        case Scan():
            return scan(em, e, args, wanted)
        case While():
            return while_(em, e, args, wanted)
    raise nm.Refused(f"it has {e.head()}")


def is_noted_after(em: Emitter, e: Scan) -> bool:
    """Whether a loop on cotangents is over before it is noted that these are not finite.

    A product of a zero and what is not finite is none of either, and so is all that is made of it.
    To look at results costs less than to look at each factor where a loop is within the loop, or
    where results are numbers.
    """
    types = [em.program.unfold(t) for t in em.program.defs[e.body].results]
    if not all([isinstance(t, ArrayType) for t in types]):
        return False
    bodies = [em.program.defs[f].body for f in em.program.reached(e.body)]
    inner = [a for body in bodies for a in ir.applications(body) if isinstance(a, Scan)]
    return bool(inner) or not any([t.shape for t in types if isinstance(t, ArrayType)])


def noted(em: Emitter, results: Sequence[nm.Held]) -> None:
    """Note which cotangents are not finite."""
    for x in results:
        if isinstance(x, nm.Num) and x.kind in nm.FLOATS:
            em.trust(x)
        elif isinstance(x, nm.Arr) and nm.kind_of(x.type) in nm.FLOATS:
            with em.kept(results), em.nest(x.type.shape, steps_of(x)) as (i,):
                em.trust(em.load(x, i))


# --- branches -------------------------------------------------------------------------------------


def chosen(
    em: Emitter, e: Choice, args: list[nm.Held], wanted: Sequence[bool]
) -> Sequence[nm.Held]:
    """The results of the branch that a value chooses."""
    which, *rest = args
    args.clear()
    leads: list[list[nm.Held]] = [[] for _ in e.functions]
    if isinstance(e, Case) and isinstance(which, nm.Tup):
        selector, ways = nodes.tag_of(em, which), [*range(len(leads))]
    elif isinstance(e, Case):
        assert isinstance(which, nm.Tag)
        assert isinstance(which.tag, nm.Num)
        leads = [[] if item is None else [item] for item in which.items]
        ways = [i for i, lead in enumerate(leads) if lead]
        selector = which.tag
    else:
        assert isinstance(which, nm.Num)
        selector, ways = which, [*range(len(e.functions))]
    known = told(e, selector)
    if known is not None:
        return em.call(e.functions[known], [*leads[known], *rest], wanted)
    if isinstance(e, Switch):
        n = len(e.functions)
        em.must(
            em.let(f"icmp ult i64 {em.text(selector)}, {n}"),
            lambda: em.answered([selector], [INDEX], [], lambda v: [e.chosen(v[0])] * 0),
        )
    if len(ways) == 1 and not isinstance(which, nm.Tup):
        return em.call(e.functions[ways[0]], [*leads[ways[0]], *rest], wanted)
    labels = [em.name("way") for _ in ways]
    if isinstance(e, Cond):
        em.branch(em.text(selector), *labels)
    else:
        cases = " ".join([f"i64 {i}, label %{x}" for i, x in zip(ways, labels, strict=True)][1:])
        em.line(f"switch i64 {em.text(selector)}, label %{labels[0]} [{cases}]")
    results, tails = [], []
    for i, label in zip(ways, labels, strict=True):
        em.block(label)
        if isinstance(e, Case) and isinstance(which, nm.Tup):
            sum_ = em.program.unfold(e.args[0].type)
            assert isinstance(sum_, Sum)
            leads[i] = [nodes.held_by(em, which, sum_.items[i])]
        results.append(em.call(e.functions[i], [*leads[i], *rest], wanted))
        tails.append(em.name("tail"))
        em.jump(tails[-1])
    return met(em, tails, results, wanted)


def told(e: Choice, selector: nm.Num) -> int | None:
    """The branch, if it is known."""
    if isinstance(e, Cond):
        return None if selector.constant is None else int(not selector.constant)
    a = selector.affine
    return (
        a.constant if a is not None and not a.terms and 0 <= a.constant < len(e.functions) else None
    )


class Meeting:
    """Where branches meet: copies at the end of each, and a choice of registers after them."""

    def __init__(self, em: Emitter, ways: int) -> None:
        self.em = em
        self.copies: list[list[tuple[nm.Arr | nm.Nil, nm.Arr]]] = [[] for _ in range(ways)]
        self.choices: list[tuple[str, str, list[nm.Num]]] = []

    def of(self, values: Sequence[nm.Held]) -> nm.Held:
        """What stands for the values of the branches; None is one that is never looked at."""
        there = [v for v in values if v is not None]
        first = next((v for v in there if v is not nm.NIL), nm.NIL if there else None)
        if first is None or first is nm.NIL:
            return first
        if any([type(v) is not type(first) and v is not nm.NIL for v in there]):
            raise nm.Refused("a branch chooses between stacks")
        if all([v == first for v in there]) and (len(there) > 1 or self.everywhere(first)):
            return first
        if isinstance(first, nm.Num):
            one = self.number([v if isinstance(v, nm.Num) else None for v in values], first.kind)
            return one._replace(source=first.source) if len(there) == 1 else one
        if isinstance(first, nm.Arr):
            return self.array(values, first.type)
        if isinstance(first, nm.Tup):
            columns = [self.of([self.item(v, i) for v in values]) for i in range(len(first.items))]
            return nm.Tup(tuple([c for c in columns if c is not None]))
        if isinstance(first, nm.Tag):
            tag = self.of([self.tag(v) for v in values])
            assert isinstance(tag, nm.Num)
            return nm.Tag(
                tag,
                tuple(
                    [self.of([self.item(v, i) for v in values]) for i in range(len(first.items))]
                ),
            )
        if isinstance(first, nm.Stk) and len(there) == 1:
            n, base = [
                self.number([part(v) if isinstance(v, nm.Stk) else None for v in values], "i64")
                for part in (lambda s: s.n, lambda s: s.base)
            ]
            return first._replace(n=n, base=base)
        raise nm.Refused("a branch chooses between stacks")

    def tag(self, value: nm.Held) -> nm.Held:
        """Which alternative a value is; zero is none of them."""
        if isinstance(value, nm.Tag):
            return value.tag
        return nm.constant("i64", -1) if value is nm.NIL else None

    def item(self, value: nm.Held, i: int) -> nm.Held:
        """A part of a product or an alternative."""
        return value.items[i] if isinstance(value, nm.Tup | nm.Tag) else value

    def everywhere(self, value: nm.Held) -> bool:
        """Whether a value of one branch is told without a register of it."""
        if isinstance(value, nm.Num):
            return not value.register
        if not isinstance(value, nm.Arr) or isinstance(value.buffer, nm.Node):
            return False
        return not value.at

    def number(self, values: Sequence[nm.Num | None], kind: str) -> nm.Num:
        """One of the numbers."""
        register = f"%v{self.em.name()}"
        given = [nm.constant(kind, 0) if v is None else v for v in values]
        self.choices.append((register, nm.LLVM[kind], given))
        return nm.Num(kind, register)

    def array(self, values: Sequence[nm.Held], t: ArrayType) -> nm.Arr:
        """One buffer for the arrays."""
        with self.em.kept(values):
            y = self.em.array(t, fresh=True)
        lays = {getattr(x, "lay", nm.C) for x in values}
        y = y._replace(lay=lays.pop() if len(lays) == 1 else nm.unsure(t))
        for copies, value in zip(self.copies, values, strict=True):
            if isinstance(value, nm.Arr | nm.Nil):
                copies.append((value, y))
        return y


def met(
    em: Emitter, tails: list[str], results: list[list[nm.Held]], wanted: Sequence[bool]
) -> list[nm.Held]:
    """The results of branches, where they meet."""
    meeting = Meeting(em, len(tails))
    columns = zip(*results, strict=True)
    values = [
        meeting.of(column) if is_wanted else nm.UNREAD
        for column, is_wanted in zip(columns, wanted, strict=True)
    ]
    after = em.name("met")
    texts: list[list[str]] = []
    ends = []  # the blocks from which control comes: a copy may be a loop
    for i, tail in enumerate(tails):
        em.block(tail)
        for source, into in meeting.copies[i]:
            if isinstance(source, nm.Arr):
                em.copy(source, into)
            else:
                em.cleared(into)
        texts.append([em.text(numbers[i]) for _, _, numbers in meeting.choices])
        ends.append(em.label)
        em.jump(after)
    em.block(after)
    for k, (register, kind, _) in enumerate(meeting.choices):
        ways = ", ".join([f"[{t[k]}, %{end}]" for t, end in zip(texts, ends, strict=True)])
        em.line(f"{register} = phi {kind} {ways}")
    return [v for v in values if v is not None]


# --- what a loop carries --------------------------------------------------------------------------


def leaves(value: nm.Held) -> Iterator[Plain]:
    """The numbers and arrays that a carry is made of."""
    if isinstance(value, nm.Num | nm.Arr):
        yield value
    elif isinstance(value, nm.Tup):
        for item in value.items:
            yield from leaves(item)
    else:
        raise nm.Refused("a loop carries a stack or a value of a sum")


def built(like: nm.Held, parts: Iterator[Plain]) -> nm.Held:
    """A carry of other numbers and arrays."""
    if isinstance(like, nm.Tup):
        return nm.Tup(tuple([built(item, parts) for item in like.items]))
    return next(parts)


class Carried:
    """The carries of a loop: registers, whole numbers that rounds tell, and buffers."""

    def __init__(self, em: Emitter, initial: Sequence[nm.Held], held: Sequence[nm.Held]) -> None:
        self.em = em
        self.like: list[nm.Held] = list(initial)
        self.initial: list[Plain] = [leaf for value in initial for leaf in leaves(value)]
        self.buffers: dict[int, nm.Arr] = {}
        everything = [*held, *self.initial]
        for i, x in enumerate(self.initial):
            if isinstance(x, nm.Arr):
                alone = sum([x.buffer in nm.buffers(v) for v in everything]) == 1
                with em.memory_of([*everything, *self.buffers.values()]):
                    y = em.own(x, alone)
                self.buffers[i] = y._replace(lay=nm.unsure(x.type) if x.type.ndim < 2 else x.lay)

    def values(self, numbers: Sequence[nm.Num | None]) -> list[nm.Held]:
        """The carries of a round, given its numbers."""
        parts = iter([self.buffers[i] if x is None else x for i, x in enumerate(numbers)])
        return [built(like, parts) for like in self.like]

    def settle(
        self, body: str, held: Sequence[nm.Held], look: Callable[[], Sequence[nm.Held]]
    ) -> None:
        """Find out which matrices NumPy lays out in all rounds as at first.

        `look` gives what a round makes of the carries, without emitting it.
        """
        open_ = [i for i, y in self.buffers.items() if y.type.ndim > 1 and y.lay is not None]
        if not self.em.exact or not open_:
            return
        lays = [nm.lays(x) for x in (*held, *self.buffers.values())]
        known, key = self.em.lays, (body, *lays)
        while key not in known:
            after = [leaf for value in look() for leaf in leaves(value)]
            odd = [i for i in open_ if nm.lays(after[i]) != nm.lays(self.buffers[i])]
            for i in odd:
                self.buffers[i] = self.buffers[i]._replace(lay=None)
            open_ = [i for i in open_ if i not in odd]
            if not odd:
                known[key] = [y.lay for y in self.buffers.values()]
        for (i, y), lay in zip([*self.buffers.items()], known[key], strict=True):
            self.buffers[i] = y._replace(lay=lay)

    def handed_on(self, values: Sequence[nm.Held]) -> list[nm.Num | None]:
        """The numbers for the next round; arrays are put to the buffers of the loop."""
        given = [leaf for value in values for leaf in leaves(value)]
        if self.em.exact and not self.em.trying:
            for i, y in self.buffers.items():
                is_as_before = y.lay in (nm.unsure(y.type), *nm.lays(given[i]))
                assert is_as_before or not isinstance(given[i], nm.Arr), "it is settled"
        moves = [
            (x, self.buffers[i])
            for i, x in enumerate(given)
            if isinstance(x, nm.Arr)
            and (x.buffer is not self.buffers[i].buffer or x.at or x.strides is not None)
        ]
        mine = {y.buffer for y in self.buffers.values()}
        crossing = len(moves) > 1 and any([x.buffer in mine for x, _ in moves])
        if crossing or any([(x.at or x.strides) and x.buffer in mine for x, _ in moves]):
            staged = []
            for x, y in moves:
                with self.em.kept([*given, *self.buffers.values(), *[s for s, _ in staged]]):
                    copied = self.em.array(x.type)
                self.em.copy(x, copied)
                staged.append((copied, y))
            moves = staged
        for x, y in moves:
            self.em.copy(x, y)
        return [x if isinstance(x, nm.Num) else None for x in given]


class Rounds:
    """A loop that is being emitted: its blocks, and the registers that go from round to round."""

    head: str

    def __init__(self, em: Emitter, r: nm.Round | None) -> None:
        self.em = em
        self.r = r
        self.places: list[tuple[int, str, str, str]] = []  # line, register, kind, first value

    def begin(self, first: Sequence[tuple[str, str]]) -> list[str]:
        """Open the block that each round begins with; a register for each (kind, first value)."""
        em = self.em
        self.before: str = em.label
        self.head: str = em.name("head")
        em.jump(self.head)
        em.block(self.head)
        for kind, value in first:
            self.places.append((len(em.lines), f"%v{em.name()}", kind, value))
            em.line("")
        return [register for _, register, _, _ in self.places]

    def again(self, values: Sequence[str], known: str = "") -> None:
        """End a round; the next one begins with these. LLVM is told what is known of the loop."""
        for (line, register, kind, first), value in zip(self.places, values, strict=True):
            phi = f"phi {kind} [{first}, %{self.before}], [{value}, %{self.em.label}]"
            self.em.lines[line] = f"  {register} = {phi}"
        self.em.line(f"br label %{self.head}{known}")


# --- loops ----------------------------------------------------------------------------------------


def scan(
    em: Emitter,
    e: Scan,
    args: list[nm.Held],
    wanted: Sequence[bool],
    count: nm.Num | None = None,
) -> Sequence[nm.Held]:
    """n rounds, in one direction or the other; what no wanted result needs is not carried."""
    k, c = e.nk, e.nk + e.nc
    carries, given = em.demand.carries(e, tuple(wanted))
    args[:] = [x if is_needed else nm.UNREAD for x, is_needed in zip(args, given, strict=True)]
    ks, cs, xs = args[:k], args[k:c], args[c:]
    xs = [nodes.opened(em, x, v.type) for x, v in zip(xs, e.args[c:], strict=True)]
    args.clear()
    d = em.program.defs[e.body]
    if e.n is not None and not isinstance(e.n, int):
        raise nm.Refused("it has a loop whose number of rounds is a dimension")
    most = None if count is None else nm.Affine(nm.MOST)  # of a while loop up to a register
    if count is None:
        count = nm.constant("i64", e.n) if e.n is not None else counted(xs)
    r = nm.Round(e.n, count.affine or most)
    carried = Carried(em, cs, [*ks, *xs])
    step = Step(em, e, carried, r, ks, xs, count, (*carries, *wanted[e.nc :]))
    types = [em.program.unfold(t) for t in d.results[e.nc :]]
    with em.repeated(step.most):
        rows = stacks.Rows(em, r, count, types, e.direction == "rev")
    mine = [*carried.buffers.values()]
    with em.within(r, [*ks, *xs]), em.memory_of(mine), em.memory_of(rows.kept):
        return rounds(em, step, rows)


def counted(xs: Sequence[nm.Held]) -> nm.Num:
    """How many rounds a loop has that goes as long as its stacks."""
    n = next((x.n for x in xs if isinstance(x, nm.Stk)), None)
    if not isinstance(n, nm.Num):
        raise nm.Refused("it has a loop without a length")
    return n


class Step:
    """One round of a scan."""

    wanted: Sequence[bool]
    em: Emitter
    e: Scan
    carried: Carried
    r: nm.Round
    ks: Sequence[nm.Held]
    xs: Sequence[nm.Held]
    count: nm.Num

    def __init__(
        self,
        em: Emitter,
        e: Scan,
        carried: Carried,
        r: nm.Round,
        ks: Sequence[nm.Held],
        xs: Sequence[nm.Held],
        count: nm.Num,
        wanted: Sequence[bool],
    ) -> None:
        self.em, self.e, self.carried, self.r = em, e, carried, r
        self.ks, self.xs, self.count, self.wanted = ks, xs, count, wanted
        self.spent = operations(em.program, e.body)
        ends = count.affine.range() if count.affine is not None else None
        self.most: float = math.inf if ends is None else max(ends[1], 0)
        self.longest: float = self.spent * max(self.most, 1)
        is_long = self.longest >= LONG
        self.asks: int | None = between_questions(self.spent) if is_long else None
        self.frees: bool = frees(em, e)
        self.counts_down: bool = e.direction == "rev" and count.affine is None

    def enter(self, done: str) -> None:
        """A round begins, after so many; where their number is not told it counts those to come."""
        em = self.em
        self.r.register = done
        if self.counts_down:
            last = em.let(f"sub i64 {em.text(self.count)}, 1")
            self.r.register = em.let(f"sub i64 {last}, {done}")

    def position(self) -> nm.Num:
        """Where the rows of the round are."""
        i = nm.Affine(0, ((self.r, 1),))
        if self.e.direction == "fwd" or self.counts_down:
            return nm.Num("i64", affine=i)
        assert self.count.affine is not None
        return nm.Num("i64", affine=self.count.affine.plus(nm.Affine(-1)).plus(i, -1))

    def row(self, x: nm.Held, t: Type, i: nm.Num) -> nm.Held:
        """What the round gets of a stack."""
        if x is nm.NIL:
            return self.em.zero(t)
        return x if x is nm.UNREAD else stacks.row(self.em, x, i)

    def __call__(self, numbers: Sequence[nm.Num | None]) -> list[nm.Held]:
        """The results of the body, given the numbers that are carried."""
        i = self.position()
        formals = self.em.program.defs[self.e.body].params[len(self.e.args) - len(self.xs) :]
        rows = [self.row(x, v.type, i) for x, v in zip(self.xs, formals, strict=True)]
        given = [*self.ks, *self.carried.values(numbers), *rows]
        with self.em.repeated(self.most):
            results = self.em.call(self.e.body, given, self.wanted)
        pairs = zip(results, self.wanted, strict=True)
        return [x if is_wanted else nm.UNREAD for x, is_wanted in pairs]


def signs_of(initial: Sequence[Plain]) -> dict[int, nm.Round]:
    """What stands for the whole numbers among carries, known as they are at first, in any round."""
    signs = {i: nm.Round(None) for i, x in enumerate(initial) if isinstance(x, nm.Num) and x.affine}
    for i, sign in signs.items():
        sign.register = f"%sign{i}"
    return signs


def symbols(initial: Sequence[Plain], signs: dict[int, nm.Round]) -> list[nm.Num | None]:
    """Of each carry the number that a sign stands for."""
    return [
        nm.Num("i64", affine=nm.Affine(0, ((signs[i], 1),))) if i in signs else None
        for i in range(len(initial))
    ]


def grown(
    r: nm.Round, sign: nm.Round, first: Plain, after: Plain
) -> tuple[nm.Affine, nm.Affine] | None:
    """A number before and after any round, if each round adds a constant to it."""
    assert isinstance(first, nm.Num)
    assert first.affine is not None
    a = after.affine if isinstance(after, nm.Num) else None
    if a is None or a.terms != ((sign, 1),):
        return None
    number = first.affine.plus(nm.Affine(0, ((r, a.constant),) if a.constant else ()))
    return number, number.plus(nm.Affine(a.constant))


def tried(carried: Carried, known: Sequence[nm.Num | None]) -> list[nm.Num | None]:
    """The numbers of a round that is looked at: those that are known, and registers."""
    return [
        None if isinstance(x, nm.Arr) else k or nm.Num(x.kind, f"%try{i}")
        for i, (x, k) in enumerate(zip(carried.initial, known, strict=True))
    ]


def looked_at(em: Emitter, step: Step, known: Sequence[nm.Num | None]) -> list[Plain]:
    """What a round makes of its carries, looked at without being emitted."""
    with em.trial():
        step.r.register = step.r.register or "%try"
        results = step(tried(step.carried, known))
        return [leaf for value in results[: step.e.nc] for leaf in leaves(value)]


def rounds(em: Emitter, step: Step, rows: "stacks.Rows") -> Sequence[nm.Held]:
    """The rounds of a scan, and its results."""
    r, initial = step.r, step.carried.initial
    signs = signs_of(initial)
    told = {i: nm.UNREAD for i, x in enumerate(initial) if x is nm.UNREAD}
    held = [*step.ks, *step.xs]
    none = [told.get(i) for i in range(len(initial))]
    step.carried.settle(step.e.body, held, lambda: looked_at(em, step, none))
    if signs.keys() - told.keys() and not em.trying:
        after = looked_at(em, step, symbols(initial, signs))
        for i in signs.keys() - told.keys():
            number = grown(r, signs[i], initial[i], after[i])
            if number is not None and all([a.fits() for a in number]):
                told[i] = nm.Num("i64", affine=number[0])
    flags = [i for i, x in enumerate(initial) if isinstance(x, nm.Num) and x.kind == "bool"]
    true = nm.constant("bool", True)
    steady = False
    if flags and not em.trying and not rows.types:
        known = [true if i in flags else told.get(i) for i in range(len(initial))]
        after = looked_at(em, step, known)
        steady = all([after[i] == true for i in flags])
    start = "0"
    begun: Sequence[Plain | None] = initial
    if steady and not all([initial[i] == true for i in flags]):
        start, begun = once(em, step, rows, told, [], start, begun, flags)
    fixed = flags if steady else []
    _, numbers = once(em, step, rows, told, fixed, start, begun, [])
    ends: list[nm.Num | None] = []
    whole = step.count.affine
    for i, x in enumerate(numbers):
        if x is nm.UNREAD:
            ends.append(x)
        elif i in told:
            a = told[i].affine
            assert a is not None
            end = nm.Num("i64", affine=a if whole is None else a.at(r, whole))
            ends.append(end if whole is not None else nm.Num("i64", em.text(end)))
        elif i in fixed:
            before = begun[i]
            ends.append(before if isinstance(before, nm.Num) else None)
        else:
            ends.append(x)
    return [*step.carried.values(ends), *rows.results()]


def once(
    em: Emitter,
    step: Step,
    rows: "stacks.Rows",
    told: dict[int, nm.Num],
    fixed: Sequence[int],
    start: str,
    begun: Sequence[Plain | None],
    until: Sequence[int],
) -> tuple[str, list[nm.Num | None]]:
    """One loop: of the rounds from `start` on, until all have been or these booleans are true."""
    loop = Rounds(em, step.r)
    moving = [
        i for i, x in enumerate(begun) if isinstance(x, nm.Num) and i not in told and i not in fixed
    ]
    first = [("i64", start)]
    for i in moving:
        x = begun[i]
        assert isinstance(x, nm.Num)
        first.append((nm.LLVM[x.kind], em.text(x)))
    total = em.text(step.count)
    if not step.asks and step.r.n is None and step.longest >= SHORT:
        asked(em, em.let(f"icmp ugt i64 {total}, {int(SHORT / step.spent)}"))
    registers = loop.begin(first)
    numbers: list[nm.Num | None] = []
    for i, x in enumerate(begun):
        if isinstance(x, nm.Arr) or x is None:
            numbers.append(None)
        elif i in moving:
            numbers.append(nm.Num(x.kind, registers[1 + moving.index(i)]))
        else:
            numbers.append(told.get(i) or nm.constant("bool", True))
    body, after = em.name("body"), em.name("after")
    more = em.let(f"icmp ult i64 {registers[0]}, {total}")
    if until:
        every = "true"
        for i in until:
            x = numbers[i]
            assert x is not None
            every = em.let(f"and i1 {every}, {em.text(x)}")
        more = em.let(f"and i1 {more}, {em.let(f'xor i1 {every}, true')}")
    em.branch(more, body, after)
    em.block(body)
    step.enter(registers[0])
    if step.asks:
        interrupted(em, registers[0], step.asks)
    with em.round_of_loop() as reached:
        begun_at = nodes.mark(em) if step.frees else None
        results = step(numbers)
        values, stacked_ = results[: step.e.nc], results[step.e.nc :]
        with em.kept(results):
            rows.push(step.position(), stacked_)
        given = step.carried.handed_on(values)
        with em.kept(values):
            texts = []
            for i in moving:
                x = given[i]
                assert x is not None
                texts.append(em.text(x))
        if begun_at:
            nodes.back(em, begun_at)
    texts.insert(0, em.let(f"add nuw nsw i64 {registers[0]}, 1"))
    loop.again(texts, em.of_loop(*known_of(em, step, reached)))
    em.block(after)
    return registers[0], numbers


def known_of(em: Emitter, step: Step, reached: Reached) -> Iterator[str]:
    """What LLVM is told of a loop."""
    if reached.are_apart(step.r):
        yield em.fact(f'!{{!"llvm.loop.parallel_accesses", {reached.group}}}')
    if reached.is_innermost and step.most <= FEW:
        yield em.fact('!{!"llvm.loop.interleave.count", i32 1}')


FEW = 64
"""Rounds up to which a loop is one vector at a time: of more what is left would be too long."""


def frees(em: Emitter, e: Scan | While) -> bool:
    """Whether nodes that a round makes are taken back at its end."""
    return bool(em.apart) and not nodes.has_addresses(em, em.program.defs[e.body].results)


LEFT: dict[str, Callable[[nm.Affine, nm.Affine], nm.Affine]] = {
    "slt": lambda x, w: w.plus(x, -1),
    "sle": lambda x, w: w.plus(x, -1).plus(nm.Affine(1)),
    "sgt": lambda x, w: x.plus(w, -1),
    "sge": lambda x, w: x.plus(w, -1).plus(nm.Affine(1)),
}
"""What is positive where a comparison holds."""
Compared = tuple[str, nm.Affine, nm.Affine]


def compared(go: nm.Held, at: Callable[[nm.Affine], nm.Affine | None]) -> Compared | None:
    """The comparison of numbers that rounds tell which a condition is."""
    how, *pair = (isinstance(go, nm.Num) and go.compared) or ("",)
    told = [at(x.affine) for x in pair if isinstance(x, nm.Num) and x.affine is not None]
    x, w = told if len(told) == 2 else (None, None)
    return None if how not in LEFT or x is None or w is None else (str(how), x, w)


def rounds_of(em: Emitter, e: While, args: Sequence[nm.Held]) -> nm.Num | None:
    """How many rounds a while loop has that is over when a number has come to another one.

    What is left between them gets less by one in each round, and nothing overflows on the way.
    """
    ks, cs = args[: e.nk], args[e.nk :]
    p, d = [em.program.defs[f] for f in e.functions]
    if em.trying or em.demand.fails(p.name):
        return None
    with em.trial():
        (go,) = em.call(p.name, [*ks, *cs][: len(p.params)])
        carried = Carried(em, cs, ks)
        initial = carried.initial
        signs = signs_of(initial)
        numbers = tried(carried, symbols(initial, signs))
        with em.memory_of([*carried.buffers.values()]):
            results = em.call(d.name, [*ks, *carried.values(numbers)])[: len(cs)]
            (again,) = em.call(p.name, [*ks, *results][: len(p.params)])
    after = [leaf for value in results for leaf in leaves(value)]
    r = nm.Round(None)
    known = {sign: grown(r, sign, initial[i], after[i]) for i, sign in signs.items()}

    def in_round(a: nm.Affine) -> nm.Affine | None:
        for sign in [sign for sign, _ in a.terms if sign in known]:
            number = known[sign]
            if number is None:
                return None
            a = a.at(sign, number[0])
        return a

    if limit := limited(again, go, in_round, r):
        (go,) = em.call(p.name, [*ks, *cs][: len(p.params)])
        assert isinstance(go, nm.Num)
        begin, end = limit
        rest = em.let(f"sub i64 {end}, {begin}")
        return nm.Num("i64", em.let(f"select i1 {em.text(go)}, i64 {rest}, i64 0"))
    last, first = compared(again, in_round), compared(go, lambda a: a)
    rest = LEFT[last[0]](*last[1:]) if last else nm.Affine(0)
    if dict(rest.terms).get(r) != -1:
        return None
    r.most = n = rest.at(r, nm.Affine(-1))  # what was left before the first round
    ends = n.range()
    told = [a for how in (last, first) if how for a in how[1:]]
    if ends is None or not all([a.fits() for a in (n, *told)]):
        return None
    begins = isinstance(go, nm.Num) and go.constant is True and ends[0] >= 1
    if first is not None:
        begins = ends[0] >= 0 and LEFT[first[0]](*first[1:]).plus(n, -1) == nm.Affine(0)
    return nm.Num("i64", affine=n) if begins else None


def limited(
    again: nm.Held, go: nm.Held, at: Callable[[nm.Affine], nm.Affine | None], r: nm.Round
) -> tuple[int, str] | None:
    """Where a number begins that each round adds one to, and the register that it is to come to."""
    both: list[tuple[nm.Affine, str]] = []
    for test in (go, again):
        match test:
            case nm.Num(compared=("slt", nm.Num(affine=nm.Affine() as a), nm.Num() as limit)):
                number = at(a)
            case nm.Num(compared=("sgt", nm.Num() as limit, nm.Num(affine=nm.Affine() as a))):
                number = at(a)
            case _:
                return None
        if number is None or not limit.register:
            return None
        both.append((number, limit.register))
    (begin, end), later = both
    by_one = later == (begin.plus(nm.Affine(1, ((r, 1),))), end)
    return (begin.constant, end) if by_one and begin.constant >= 0 and not begin.terms else None


def while_(em: Emitter, e: While, args: list[nm.Held], wanted: Sequence[bool]) -> Sequence[nm.Held]:
    """Rounds while a condition holds."""
    count = rounds_of(em, e, args)
    if count is not None:
        loop = Scan(e.args, (e.body,), None, "fwd", e.nk, len(args) - e.nk, 0)
        return scan(em, loop, args, wanted, count)
    ks, cs = args[: e.nk], args[e.nk :]
    args.clear()
    p, d = [em.program.defs[f] for f in e.functions]
    carried = Carried(em, cs, ks)
    r = nm.Round(None)
    rows = stacks.Rows(em, r, None, [em.program.unfold(t) for t in d.results[len(cs) :]])
    mine = [*carried.buffers.values()]
    with em.within(r, ks), em.memory_of(mine), em.memory_of(rows.kept):
        loop = Rounds(em, r)
        moving = [i for i, x in enumerate(carried.initial) if isinstance(x, nm.Num)]
        first = [("i64", "0")]
        for i in moving:
            x = carried.initial[i]
            assert isinstance(x, nm.Num)
            first.append((nm.LLVM[x.kind], em.text(x)))

        def look() -> Sequence[nm.Held]:
            with em.trial():
                r.register = r.register or "%try"
                given = carried.values(tried(carried, [None] * len(carried.initial)))
                return em.call(d.name, [*ks, *given])[: len(cs)]

        carried.settle(d.name, ks, look)
        registers = loop.begin(first)
        r.register = registers[0]
        numbers = [
            nm.Num(x.kind, registers[1 + moving.index(i)]) if isinstance(x, nm.Num) else None
            for i, x in enumerate(carried.initial)
        ]
        values = carried.values(numbers)
        with em.kept(values):
            (go,) = em.call(p.name, [*ks, *values][: len(p.params)])
        assert isinstance(go, nm.Num)
        body, after = em.name("body"), em.name("after")
        em.branch(em.text(go), body, after)
        em.block(body)
        spent = sum([operations(em.program, f) for f in e.functions])
        interrupted(em, registers[0], between_questions(spent))
        begun_at = nodes.mark(em) if frees(em, e) else None
        with em.repeated(math.inf):
            results = em.call(d.name, [*ks, *values])
        with em.kept(results):
            rows.push(nm.Num("i64", affine=nm.Affine(0, ((r, 1),))), results[len(cs) :])
        given = carried.handed_on(results[: len(cs)])
        if begun_at:
            nodes.back(em, begun_at)
        texts = [em.let(f"add nuw nsw i64 {registers[0]}, 1")]
        for i in moving:
            x = given[i]
            assert x is not None
            texts.append(em.text(x))
        loop.again(texts)
        em.block(after)
        return [*carried.values(numbers), *rows.results()]


def between_questions(spent: float) -> int:
    """Rounds of so many operations that take some milliseconds; a power of two."""
    return 2**10 if math.isinf(spent) else max(2**20 >> int(spent).bit_length(), 1)


def interrupted(em: Emitter, done: str, rounds: int) -> None:
    """Once in so many rounds a loop that may be long asks whether Python wants to stop it."""
    asked(em, em.let(f"icmp eq i64 {em.let(f'and i64 {done}, {rounds - 1}')}, {rounds - 1}"))


def asked(em: Emitter, asks: str) -> None:
    """Where a condition holds, have Python handle its signals; what a handler raises ends the run.

    Python is not entered to ask: an exception would come before the first line of what is called.
    """
    on, ask, quiet, stop = (em.name(like) for like in ("on", "ask", "quiet", "stop"))

    def python(name: str, type: str, arguments: str = "") -> str:
        result = type.partition(" ")[0]
        return f"call {result} {em.outside(f'py.{name}', type)}({arguments})"

    em.branch(asks, ask, on)
    em.block(ask)
    state = em.let(python("PyGILState_Ensure", "i32 ()"))
    said = em.let(python("PyErr_CheckSignals", "i32 ()"))
    release = python("PyGILState_Release", "void (i32)", f"i32 {state}")
    em.branch(em.let(f"icmp eq i32 {said}, 0"), quiet, stop)
    em.block(stop)
    error = em.at_entry("alloca [3 x ptr]")
    places = [em.let(f"getelementptr inbounds ptr, ptr {error}, i64 {i}") for i in range(3)]
    every = ", ".join([f"ptr {place}" for place in places])
    em.line(python("PyErr_Fetch", "void (ptr, ptr, ptr)", every))
    em.line(python("PyErr_NormalizeException", "void (ptr, ptr, ptr)", every))
    em.line(release)
    objects = [nm.Num("i64", em.let(f"load i64, ptr {place}")) for place in places]
    em.answered(objects, [INDEX] * 3, [], raised, what="a look whether Python interrupts a loop")
    em.sites[-1] = em.sites[-1]._replace(leaves=0)
    em.jump(on)
    em.block(quiet)
    em.line(release)
    em.jump(on)
    em.block(on)


def raised(addresses: Sequence[int]) -> Any:
    """Raise an exception of which code holds the class, the object and the traceback."""
    _, error, at = [_taken(int(address)) for address in addresses]
    raise error.with_traceback(at)


def _taken(address: int) -> Any:
    """The object at an address, which is code's no longer; None where there is none."""
    if not address:
        return None
    x = ctypes.cast(address, ctypes.py_object)
    value = x.value
    ctypes.pythonapi.Py_DecRef(x)
    return value


LONG = 2**26
"""Operations of a counted loop, some tenths of a second, from which on it can be interrupted."""
SHORT = 2**20
"""Operations of a loop that is counted when it begins, some tenths of a millisecond, from which on
Python is asked before it."""

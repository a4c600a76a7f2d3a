"""A definition that calls itself is a function of the module, and so are its derivatives.

    { i32, results } @of3(arguments, memory of results, what a run has)      the status comes first

A value goes in and out as the parts of its type (`nodes.py`): a number in a register, an array by
its address.  In a program that would be too long with its calls written out, what is applied in
more than one place is a function, too.  Small slots are on the stack, larger ones in one piece of
memory that a call takes and gives back.  What a run has are these words:

    0 where the stack ends   1 what was done since Python was asked   2, 3 where the free memory
    of nodes begins and ends   4 the newest chunk of it
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.nodes import (
    Part,
    apart,
    back,
    has_addresses,
    is_number,
    mark,
    parts,
    put,
    together,
)
from lineara.engines.native.pieces import LONGEST
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import Costs
from lineara.linear_a.program import Program

WORDS = 5
SPENT = 1
MARGIN = 2**19
"""Bytes of a stack that are left for what functions call, as Python and LAPACK."""
LITTLE = 2**18
"""Bytes that functions take of a stack where the system does not tell where it ends."""
OFTEN = 2**20
"""Operations, some tenths of a millisecond, after which Python is asked whether it interrupts."""

FEW = 50
"""Leaves up to which a definition is written out wherever it is called."""


class Function(NamedTuple):
    """A definition that is a function, for what is wanted of it."""

    name: str
    wanted: tuple[bool, ...]
    register: str


# --- functions ------------------------------------------------------------------------------------


def called(
    em: Emitter, name: str, values: Sequence[nm.Held], wanted: tuple[bool, ...]
) -> list[nm.Held]:
    """A call of a definition that is a function."""
    d = em.program.defs[name]
    f = em.functions.setdefault((name, wanted), Function(name, wanted, f"@of{em.name()}"))
    em.called.append(f)
    values = em.in_order(values)
    given: list[str] = []
    held: list[nm.Held] = list(values)
    with em.kept(held):
        needed = em.demand.of(name, wanted)
        for x, p, is_needed in zip(values, d.params, needed, strict=True):
            if is_needed:
                made = [*apart(em, x, p.type)]
                held += made
                for y, t in zip(made, parts(em, p.type), strict=True):
                    given.append(argument(em, y, t))
        made_of: list[list[nm.Held]] = []
        for t, is_wanted in zip(d.results, wanted, strict=True):
            made_of.append([])
            for s in parts(em, t) if is_wanted else ():
                y = None if is_number(s) else em.array(s)._replace(lay=nm.unsure(s))
                held.append(y)
                made_of[-1].append(y)
                given += [f"ptr {em.address(y)}"] if y is not None else []
    kinds = numbers_of(em, f)
    of = ", ".join(["i32", *[nm.LLVM[kind] for kind in kinds]])
    every = ", ".join([*given, "ptr %ran", "ptr %doubt", "ptr %constants", "i64 %run"])
    result = em.let(f"call {{ {of} }} {f.register}({every})")
    status, *registers = [
        em.let(f"extractvalue {{ {of} }} {result}, {i}") for i in range(len(kinds) + 1)
    ]
    em.line(f"store i32 {status}, ptr %code")
    on = em.name("on")
    em.branch(em.let(f"icmp eq i32 {status}, 0"), on, "passed")
    em.block(on)
    numbers = iter([nm.Num(kind, r) for kind, r in zip(kinds, registers, strict=True)])
    results: list[nm.Held] = []
    for t, made, is_wanted in zip(d.results, made_of, wanted, strict=True):
        every_part = [next(numbers) if y is None else y for y in made]
        results.append(together(em, t, iter(every_part)) if is_wanted else nm.UNREAD)
    return results


def argument(em: Emitter, x: Part, t: ArrayType) -> str:
    """A part as an operand of a call."""
    if not is_number(t):
        array = x if isinstance(x, nm.Arr) else em.array(t)  # which is copied, and not looked at
        return f"ptr {em.address(array)}"
    kind = nm.kind_of(t) or ""
    number = x if isinstance(x, nm.Num) else nm.constant(kind, 0)
    return f"{nm.LLVM[kind]} {em.text(number)}"


def numbers_of(em: Emitter, f: Function) -> list[str]:
    """The kinds of the numbers that a function gives, in order."""
    d = em.program.defs[f.name]
    every = [
        s for t, is_wanted in zip(d.results, f.wanted, strict=True) if is_wanted
        for s in parts(em, t)
    ]  # fmt: skip
    return [nm.kind_of(s) or "" for s in every if is_number(s)]


def functions(em: Emitter, asked: Callable[[], None]) -> list[str]:
    """The texts of the functions that are called, and of those that they call."""
    done: dict[str, str] = {}
    costs = Costs(em.program)
    while todo := [f for f in em.called if f.register not in done]:
        done[todo[0].register] = function(em, todo[0], costs)
    return [*done.values(), question(em, asked)] if done else []


def function(em: Emitter, f: Function, costs: Costs) -> str:
    """The text of one function."""
    d = em.program.defs[f.name]
    formals: list[str] = []
    values: list[nm.Held] = []
    with em.function():
        for p, is_needed in zip(d.params, em.demand.of(f.name, f.wanted), strict=True):
            if not is_needed:
                values.append(nm.UNREAD)
                continue
            given: list[nm.Held] = []
            for t in parts(em, p.type):
                register, nbytes = f"%a{len(formals)}", t.size * t.dtype.itemsize
                if is_number(t):
                    kind = nm.kind_of(t) or ""
                    formals.append(f"{nm.LLVM[kind]} {register}")
                    given.append(nm.Num(kind, register))
                else:
                    formals.append(f"ptr noalias readonly {register}")
                    buffer = nm.Buffer(register, nbytes, False)
                    given.append(nm.Arr(buffer, t, lay=nm.unsure(t)))
            values.append(together(em, p.type, iter(given)))
        counted(em, costs.definition(f.name))
        begin = None if has_addresses(em, d.results) else mark(em)
        try:
            results = em.body(f.name, values, f.wanted)
        except nm.TooLong:
            raise
        except nm.Refused as why:
            raise nm.Unfit(str(why), f.name) from None
        kinds = numbers_of(em, f)
        k = 0
        with em.kept(results):
            for value, t, is_wanted in zip(results, d.results, f.wanted, strict=True):
                if not is_wanted:
                    continue
                given_out = [*apart(em, value, t)]
                with em.kept([value, *given_out]):
                    for x, s in zip(given_out, parts(em, t), strict=True):
                        if is_number(s):
                            put(em, x, s, f"%out{k}")
                            k += 1
                        else:
                            register = f"%a{len(formals)}"
                            formals.append(f"ptr noalias {register}")
                            put(em, x, s, register)
        if begin:
            back(em, begin)
        return framed(em, f.register, formals, kinds)


def counted(em: Emitter, work: int) -> None:
    """Have Python asked now and then whether it interrupts."""
    place = em.let(f"getelementptr inbounds i64, ptr %ran, i64 {SPENT}")
    spent = em.let(f"add i64 {em.let(f'load i64, ptr {place}')}, {min(work + 10, OFTEN)}")
    often = em.let(f"icmp ugt i64 {spent}, {OFTEN}")
    em.line(f"store i64 {em.let(f'select i1 {often}, i64 0, i64 {spent}')}, ptr {place}")
    ask, on = em.name("ask"), em.name("on")
    em.branch(often, ask, on)
    em.block(ask)
    result = em.let("call { i32 } @asks(ptr %ran, ptr %doubt, ptr %constants, i64 %run)")
    status = em.let(f"extractvalue {{ i32 }} {result}, 0")
    em.line(f"store i32 {status}, ptr %code")
    em.branch(em.let(f"icmp eq i32 {status}, 0"), on, "passed")
    em.block(on)


def question(em: Emitter, asked: Callable[[], None]) -> str:
    """The function that asks."""
    with em.function():
        asked()
        return framed(em, "@asks", [], [])


def framed(em: Emitter, register: str, formals: Sequence[str], kinds: Sequence[str]) -> str:
    """The text of what was emitted as a function: its memory, and what it gives."""
    lines = em.finished()
    if lines.count("\n") > LONGEST:
        raise nm.TooLong(f"it calls itself, and has more than {LONGEST:,} lines of code")
    whole = f"{{ {', '.join(['i32', *[nm.LLVM[kind] for kind in kinds]])} }}"
    every = ", ".join([*formals, "ptr %ran", "ptr %doubt", "ptr %constants", "i64 %run"])
    head = [f'define internal {whole} {register}({every}) "disable-tail-calls"="true" {{', "entry:"]
    head += em.entry
    size, large, small = 0, [], 0
    for slot in em.slots:
        small += slot.nbytes if slot.nbytes <= 256 else 0
        if slot.nbytes <= 256 and small <= 4096:
            head.append(f"  {slot.register} = alloca [{slot.nbytes} x i8], align 16")
        else:
            large.append((slot.register, size))
            size += -(-slot.nbytes // 64) * 64
    head.append(f"  %scratch = alloca [{em.scratch} x i64]")
    head += ["  %code = alloca i32", "  store i32 0, ptr %code"]
    head += [f"  %out{i} = alloca {nm.IN_MEMORY[kind]}, align 8" for i, kind in enumerate(kinds)]
    for i in sorted({int(i) for i in re.findall(r"%c(\d+)\b", lines)}):
        head.append(f"  %at{i} = getelementptr inbounds i64, ptr %constants, i64 {i}")
        head.append(f"  %c{i} = load ptr, ptr %at{i}")
    tail: list[str] = []
    if large:
        head += ["  %frame = alloca ptr", "  store ptr null, ptr %frame"]
    head += [
        "  %here = call ptr @llvm.frameaddress.p0(i32 0)",
        "  %now = ptrtoint ptr %here to i64",
        "  %ends = load i64, ptr %ran",
        "  %deep = icmp ult i64 %now, %ends",
        "  br i1 %deep, label %too.deep, label %first",
        "first:",
    ]
    if large:
        for name, t in (("c.malloc", "ptr (i64)"), ("c.free", "void (ptr)")):
            em.outside(name, t)
        head += [
            f'  %room = call noalias ptr @"c.malloc"(i64 {size + 64})',
            "  store ptr %room, ptr %frame",
            "  %none = icmp eq ptr %room, null",
            "  br i1 %none, label %exhausted, label %there",
            "there:",
            "  %rest = ptrtoint ptr %room to i64",
            "  %less = sub i64 0, %rest",
            "  %skip = and i64 %less, 63",
            *[
                line
                for i, (slot, at) in enumerate(large)
                for line in (
                    f"  %skip{i} = add i64 %skip, {at}",
                    f"  {slot} = getelementptr inbounds i8, ptr %room, i64 %skip{i}",
                )
            ],
        ]
        tail += ["  %gone = load ptr, ptr %frame", '  call void @"c.free"(ptr %gone)']
    for i, arena in enumerate(em.arenas):
        em.outside("c.free", "void (ptr)")
        tail.append(f"  %f{i} = load ptr, ptr {arena.register}")
        tail.append(f'  call void @"c.free"(ptr %f{i})')
    tail.append("  %status = load i32, ptr %code")
    tail.append(f"  %y = insertvalue {whole} undef, i32 %status, 0")
    result = "%y"
    for i, kind in enumerate(kinds):
        near = ", align 8" if kind == "c128" else ""
        tail.append(f"  %in{i} = load {nm.IN_MEMORY[kind]}, ptr %out{i}{near}")
        got_ = f"%in{i}"
        if kind == "bool":
            tail.append(f"  %is{i} = trunc i8 %in{i} to i1")
            got_ = f"%is{i}"
        tail.append(f"  %y{i} = insertvalue {whole} {result}, {nm.LLVM[kind]} {got_}, {i + 1}")
        result = f"%y{i}"
    return "\n".join([
        *head, "  br label %start", "start:", lines, "  br label %end",
        *ending("exhausted", 2), *ending("failed", 1), *ending("too.deep", 4),
        *PASSED, "  br label %end", "end:", *tail, f"  ret {whole} {result}", "}",
    ])  # fmt: skip


PASSED = [  # a recursion that was too deep counts its calls on the way out: eight for each
    "passed:", "  %told = load i32, ptr %code", "  %what = and i32 %told, 7",
    "  %was.deep = icmp eq i32 %what, 4", "  %call = select i1 %was.deep, i32 8, i32 0",
    "  %counted = add i32 %told, %call", "  store i32 %counted, ptr %code",
]  # fmt: skip


def ending(label: str, code: int) -> list[str]:
    """A block that ends a function with a status."""
    return [f"{label}:", f"  store i32 {code}, ptr %code", "  br label %end"]


# --- which definitions are functions --------------------------------------------------------------


def those_that_call_themselves(program: Program, name: str) -> frozenset[str]:
    """Those without which none would call itself, whatever way it goes."""
    heads, done = set[str](), set[str]()
    path: list[tuple[str, Iterator[str]]] = []

    def enter(f: str) -> None:
        path.append((f, iter(ir.functions(program.defs[f].body))))
        inside.add(f)

    inside = set[str]()
    enter(name)
    while path:
        f, rest = path[-1]
        g = next(rest, None)
        if g is None:
            path.pop()
            inside.discard(f)
            done.add(f)
        elif g in inside:
            heads.add(g)
        elif g not in done:
            enter(g)
    return frozenset(heads)


def written_out(program: Program, name: str) -> dict[str, float]:
    """How many leaves definitions have with their calls written out; callees come first."""
    sizes: dict[str, float] = {}
    for f in ir.callees_first([name], lambda f: ir.functions(program.defs[f].body)):
        body = program.defs[f].body
        sizes[f] = len(ir.leaves(body)) + sum([sizes.get(g, 0) for g in ir.functions(body)])
    return sizes


def those_that_are_called_often(program: Program, name: str) -> frozenset[str]:
    """Definitions that are applied in more than one place, and are no few lines."""
    reached = program.reached(name)
    applied = Counter([g for f in reached for g in ir.functions(program.defs[f].body)])
    sizes = written_out(program, name)
    return frozenset([f for f, n in applied.items() if n > 1 and sizes[f] >= FEW])


# --- memory of a run ------------------------------------------------------------------------------


def ran(stack: str) -> list[str]:
    """The lines that make what a run has, given the constant that says where the stack is.

    A direct call finds the main thread's there.  On the stack of another thread every recursion is
    too deep for it, and the general call looks where that stack is.
    """
    return [
        f"  %ran = alloca [{WORDS} x i64]",
        f"  call void @llvm.memset.p0.i64(ptr %ran, i8 0, i64 {8 * WORDS}, i1 false)",
        "  %here = call ptr @llvm.frameaddress.p0(i32 0)",
        "  %now = ptrtoint ptr %here to i64",
        f"  %low = load i64, ptr {stack}",
        f"  %after = getelementptr inbounds i64, ptr {stack}, i64 1",
        "  %high = load i64, ptr %after",
        "  %above = icmp ugt i64 %now, %low",
        "  %below = icmp ult i64 %now, %high",
        "  %known = and i1 %above, %below",
        f"  %all = add i64 %low, {MARGIN}",
        f"  %some = sub i64 %now, {LITTLE}",
        "  %told = icmp ne i64 %high, 0",
        "  %other = select i1 %told, i64 %now, i64 %some",
        "  %ends = select i1 %known, i64 %all, i64 %other",
        "  store i64 %ends, ptr %ran",
    ]


__all__ = [
    "called", "functions", "ran", "those_that_are_called_often",
    "those_that_call_themselves", "written_out",
]  # fmt: skip

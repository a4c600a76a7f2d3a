"""A definition as one function of LLVM, and what a run hands to it.

    i32 @run(ptr %io, i64 %run)     0: done; 1: an exception; 2: out of memory; 3: in doubt;
                                    4: too deep a recursion for the stack

`io` has eight bytes for each number and for the address of each array: arguments, constants, the
slots of the workspace, results.  A slot that ends as a result is the result's own memory; a small
one is on the stack; no two overlap, which LLVM is told.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from lineara.engines.native import (
    arrays,
    calling_back,
    direct,
    forms,
    functions,
    nodes,
    regions,
    rows,
)
from lineara.engines.native import numbers as nm
from lineara.engines.native.code import ROLLED
from lineara.engines.native.cotangent_sums import cotangent_sums
from lineara.engines.native.cotangents import of_cotangents
from lineara.engines.native.emit import LARGEST, Emitter, Site
from lineara.engines.native.layouts import UNKNOWN, axes_of
from lineara.engines.native.memory import Taped
from lineara.engines.native.pieces import LONG, in_pieces
from lineara.engines.native.spliced import spliced
from lineara.engines.native.strided import steps_of
from lineara.engines.native.symbols import address_of, named
from lineara.engines.native.unread_items import unread_items
from lineara.engines.primal import one_primal
from lineara.facts.gc_pause import uncollected
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Product, Sum, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import operations
from lineara.linear_a.program import Program

ON_STACK = 1024
"""Bytes of a slot up to which it is on the stack, where LLVM may keep it in registers."""


DOUBTS = [
    "  %sum = load double, ptr %doubt",
    "  %odd = fcmp uno double %sum, 0.0",
    "  %again = select i1 %odd, i32 3, i32 0",
    "  store i32 %again, ptr %code",
]
"""Whether a factor of a masked product was not finite."""


class Lowering(Emitter):
    """The emitter with the code of primitives and of forms."""

    def primitive(
        self, e: ir.Prim, args: list[nm.Held], at: dict[ir.Var, nm.Held], t: ArrayType
    ) -> nm.Held:
        """The value of a primitive."""
        return arrays.primitive(self, e, args, at, t)

    def region(
        self, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
    ) -> set[int]:
        """Bindings of a block that are emitted together, from one on; those that are done."""
        b = block.bindings[start]
        args = getattr(getattr(b, "rhs", None), "args", ())
        if not any([getattr(v.type, "shape", True) for v in (*b.vars, *args)]):
            return set()  # it is of numbers alone
        made = rows.rows(self, block, start, runs, env)
        return made or regions.region(self, block, start, runs, env)

    def written(
        self, e: ir.Part, args: list[nm.Held], at: dict[ir.Var, nm.Held], t: ArrayType, mine: bool
    ) -> nm.Held:
        """An array after a part of it was written, or added to."""
        return arrays.written(self, e, args, at, t, mine)

    def applied(
        self, e: ir.Application, args: list[nm.Held], wanted: Sequence[bool]
    ) -> Sequence[nm.Held]:
        """The results of a call, a branch or a loop."""
        return forms.applied(self, e, args, wanted)

    def function_called(
        self, name: str, values: Sequence[nm.Held], wanted: tuple[bool, ...]
    ) -> list[nm.Held]:
        """The results of a definition that is a function."""
        return functions.called(self, name, values, wanted)

    def interruptible(self, done: str, spent: int) -> None:
        """Have Python asked now and then whether it interrupts rounds of so many operations."""
        forms.interrupted(self, done, forms.between_questions(spent))

    def node(self, tag: int, payload: nm.Held, whole: Sum) -> nm.Held:
        """A value of a sum that holds itself."""
        return nodes.node(self, tag, payload, whole.items[tag])

    def projected(self, value: nm.Tup, t: Type) -> nm.Held:
        """What such a value holds, of type t; zeros if it is zero."""
        return nodes.projected(self, value, t)

    def definition_called_back(
        self, name: str, values: Sequence[nm.Held], why: nm.Refused
    ) -> list[nm.Held]:
        """What the interpreter makes of a definition that is not lowered."""
        return calling_back.definition_called_back(self, name, values, why)


@dataclass(frozen=True)
class Lowered:
    """The text of a definition, and what a run of it needs."""

    text: str
    params: tuple[Type, ...]
    results: tuple[Type, ...]
    inputs: tuple[ArrayType, ...]  # arrays and numbers, with products taken apart
    outputs: tuple[ArrayType, ...]
    constants: list[np.ndarray]
    workspace: int  # bytes
    places: tuple[int | None, ...]  # where slots begin in the workspace; None: on the stack
    bound: dict[int, int]  # output -> the slot that is its memory
    turned: dict[int, tuple[int, ...]]  # output -> where its axes are in memory, if elsewhere
    sites: list[Site]
    addresses: dict[str, int]
    loops: dict[str, Any]  # which loop of NumPy's a name is
    taped: tuple[Taped, ...]  # columns of tapes
    fused: tuple[tuple[str, tuple[str, ...]], ...]  # lines that are one region, and their places
    leaves: int
    is_direct: bool  # whether the text has `call`
    key: str = ""  # of the definition on disk, if it may be there
    machine_code: bytes = b""  # what LLVM has made of the text, if that is known
    told: dict[str, str] = field(default_factory=dict)  # the user's places of the comments in it
    stack: int | None = None  # the constant that says where the stack is
    acts: bool = False  # whether a run is not done again


@uncollected
def lowered(
    program: Program, name: str, trusting: bool = False, exact: bool = True, listed: bool = False
) -> Lowered:
    """A definition as machine code's text; `Refused` says why there is none.

    If `trusting`, the masks of factors are not looked at, and a run in which a factor is not finite
    is in doubt.  If `listed`, the program's lines stand in the text, as comments.
    """
    refused: dict[str, str] = {}
    often, whole = False, None
    while True:
        try:
            return _lowered(program, name, trusting, exact, listed, refused, often, whole)
        except nm.Unlaid as error:
            if whole:
                raise
            whole = error
        except nm.Unfit as error:
            refused[error.name] = str(error)
        except nm.TooLong:
            if often:
                raise
            often = True


def _lowered(
    program: Program,
    name: str,
    trusting: bool,
    exact: bool,
    listed: bool,
    refused: dict[str, str],
    often: bool,
    why: nm.Unlaid | None,
) -> Lowered:
    """The same where it is known what is no function, and whether what is called often is one.

    If it is known `why` the bits of the whole are the interpreter's alone, that is called back.
    """
    whole = program.whole
    source = one_primal(whole, name)
    program, origins = spliced(source, name)
    free = of_cotangents(whole, name) if trusting and not exact else set[ir.Leaf]()
    summing = op("sum")
    if any([isinstance(e, ir.Prim) and e.primitive is summing for e in free]):
        program = cotangent_sums(program, name, lambda e: origins.get(e, e) in free)
    d = program.defs[name]
    reached = [program.defs[f] for f in program.reached(name)]
    if any([f.lresults or any([v.linear for v in ir.binders(f)]) for f in reached]):
        raise nm.Refused("it has linear variables, whose zeros have no numbers; erase it")
    em = Lowering(program, trusting, exact)
    em.source, em.leaves_of_source = source, origins
    em.listed = listed
    em.cotangents = free
    em.apart = functions.those_that_call_themselves(program, name)
    if often or functions.written_out(program, name)[name] > LARGEST:
        em.apart |= functions.those_that_are_called_often(program, name)
    em.refused = refused
    em.demand.called_back = refused
    if not em.apart:
        em.demand.unread = unread_items(program, name, trusting, refused)
    parameters: list[str] = []
    inputs: list[ArrayType] = []
    outputs: list[ArrayType] = []
    values = [_given(em, p.type, inputs, parameters) for p in d.params]
    if why is None:
        results = em.in_order(em.call(name, values))
    else:
        em.place = why.place
        results = em.definition_called_back(name, values, why)
    bound: dict[int, int] = {}
    turned: dict[int, tuple[int, ...]] = {}
    with em.kept(results):
        for value, t in zip(results, d.results, strict=True):
            _result(em, value, t, outputs, bound, turned, why is not None)
    others = functions.functions(em, lambda: forms.asked(em, "true"))
    if others or em.helpers.keys() & nodes.HELPERS.keys():
        em.stack = len(em.constants)
        em.constants.append(np.zeros(2, np.int64))
    told = [
        (t, lay)
        for s in em.sites
        for t, lay in zip(s.results, s.lays[len(s.operands) :], strict=True)
    ]
    relaid = [t for t, lay in told if lay is not None and t.ndim > 1]
    if relaid and program.acting[name]:
        raise nm.Unlaid(
            f"it prints, warns or the like, and NumPy may lay a {show(relaid[0])} out otherwise, "
            "so that the run would be done again"
        )
    held = [8 * t.size for t in (*inputs, *outputs)] + [slot.nbytes for slot in em.slots]
    short = em.leaves <= direct.SHORT and sum(held) <= 8 * direct.SHORT
    short = short and operations(program, name) <= direct.SHORT
    return _assembled(em, d, inputs, outputs, parameters, bound, turned, short, others)


def parts(program: Program, t: Type) -> Iterator[ArrayType]:
    """The arrays and numbers of an argument or a result."""
    t = program.unfold(t)
    if isinstance(t, Product):
        for item in t.items:
            yield from parts(program, item)
    elif isinstance(t, ArrayType):
        yield t
    else:
        raise nm.Refused(f"a value of the type {show(t)} goes in or out")


def _given(em: Emitter, t: Type, inputs: list[ArrayType], parameters: list[str]) -> nm.Held:
    """An argument: its parameters, and the value that these make."""
    t = em.program.unfold(t)
    if isinstance(t, Product):
        return nm.Tup(tuple([_given(em, item, inputs, parameters) for item in t.items]))
    if not isinstance(t, ArrayType):
        raise nm.Refused(f"a value of the type {show(t)} goes in or out")
    t = em.array_type(t)
    register = f"%x{len(inputs)}"
    inputs.append(t)
    kind = nm.word_of(t)
    if kind is not None:
        parameters.append(f"{nm.LLVM[kind]} {register}")
        return nm.Num(kind, register)
    nbytes = t.size * t.dtype.itemsize
    parameters.append(f"ptr noalias readonly {_there(nbytes)}{register}")
    given = nm.Arr(nm.Buffer(register, nbytes, False), t)
    return em.load(given) if nm.kind_of(t) and not t.shape else given


def _there(nbytes: int) -> str:
    """How many bytes may be read whatever happens."""
    return f"dereferenceable({nbytes}) " if nbytes else ""


def _result(
    em: Emitter,
    value: nm.Held,
    t: Type,
    outputs: list[ArrayType],
    bound: dict[int, int],
    turned: dict[int, tuple[int, ...]],
    whole: bool,
) -> None:
    """Hand out a result."""
    t = em.program.unfold(t)
    if isinstance(t, Product):
        assert isinstance(value, nm.Tup)
        for item, s in zip(value.items, t.items, strict=True):
            _result(em, item, s, outputs, bound, turned, whole)
        return
    if not isinstance(t, ArrayType):
        raise nm.Refused(f"a value of the type {show(t)} goes in or out")
    t = em.array_type(t)
    outputs.append(t)
    place = len(outputs) - 1
    if isinstance(value, nm.Num) and nm.word_of(t):
        em.store_at(value, em.let(f"getelementptr inbounds i64, ptr %out, i64 {place}"))
        return
    if isinstance(value, nm.Num):
        memory = em.array(t, fresh=True)
        em.store(value, memory)
        value = memory
    assert isinstance(value, nm.Arr)
    if value.lay is None and not whole:
        raise nm.Unlaid(f"it gives a {show(t)} of which {UNKNOWN}", em.place)
    if value.lay:
        value = _turned(em, value, turned.setdefault(place, axes_of(t, value.lay)))
        outputs[place] = value.type
    whole = t.size * t.dtype.itemsize == value.buffer.nbytes
    if not (value.buffer in em.slots and whole and em.slots.index(value.buffer) not in bound):
        copied = em.array(t, fresh=True)
        em.copy(value, copied)
        value = copied
    bound[em.slots.index(value.buffer)] = place


def _turned(em: Emitter, x: nm.Arr, back: Sequence[int]) -> nm.Arr:
    """An array whose axes are in another order; `back` has them as they were."""
    axes = np.argsort(back)
    y = em.array(ArrayType(tuple([x.type.shape[i] for i in axes]), x.type.dtype), fresh=True)
    steps = nm.strides_of(y.type.shape)
    with em.nest(x.type.shape, steps_of(x), [steps[i] for i in back]) as (of, to):
        em.move(x, of, y, to)
    return y


def _assembled(
    em: Emitter,
    d: ir.Def,
    inputs: Sequence[ArrayType],
    outputs: Sequence[ArrayType],
    parameters: list[str],
    bound: dict[int, int],
    turned: dict[int, tuple[int, ...]],
    short: bool,
    others: Sequence[str],
) -> Lowered:
    """The whole text: the function, and the one that takes its arguments out of `io`."""
    lines = em.finished().split("\n")
    pieces: list[str] = []
    if len(lines) > LONG:
        lines, pieces = _cut(em, lines, parameters)
    places, size = _placed(em, bound, parameters)
    constants = [f"ptr noalias readonly %c{i}" for i in range(len(em.constants))]
    every = [*parameters[: len(inputs)], *constants, *parameters[len(inputs) :]]
    freed = _freed(em)  # declares what frees
    em.addresses |= _addresses(em.declared)
    if em.stack is not None:
        nodes.with_nodes(em)
    head = ", ".join([*every, "ptr noalias %out", "ptr %constants", "i64 %run"])
    body = _body(em, head, lines, freed, bool(em.doubt or others))
    made = None
    if not turned:
        made = _direct(inputs, outputs, len(em.constants), places, bound, size, short)
    if made is not None:
        em.addresses |= {name: a for name, a in _api().items() if f'"{name}"' in made}
    whole = [*em.helpers.values(), *pieces, *others, body, _run(every, len(inputs)), made or ""]
    facts = [*em.facts, f'!{ROLLED} = !{{!"llvm.loop.unroll.disable"}}'] if em.facts else []
    return Lowered(
        "\n".join([*_declared(em), *whole, *facts]),
        tuple([p.type for p in d.params]),
        d.results,
        tuple(inputs),
        tuple(outputs),
        em.constants,
        size,
        tuple(places),
        bound,
        turned,
        em.sites,
        em.addresses,
        em.loops,
        tuple(em.taped),
        tuple(em.fused),
        em.leaves,
        made is not None,
        told=em.told,
        stack=em.stack,
        acts=em.program.acting[d.name],
    )


def _placed(
    em: Emitter, bound: dict[int, int], parameters: list[str]
) -> tuple[list[int | None], int]:
    """Where each slot is in the workspace, None on the stack, and how many bytes that has."""
    places: list[int | None] = []
    size = 0
    for i, slot in enumerate(em.slots):
        small = slot.nbytes <= ON_STACK and i not in bound
        places.append(None if small else size)
        if small:
            em.entry.append(f"  {slot.register} = alloca [{slot.nbytes} x i8], align 64")
        else:
            parameters.append(f"ptr noalias align 8 {_there(slot.nbytes)}{slot.register}")
            size += 0 if i in bound else -(-slot.nbytes // 64) * 64
    return places, size


def _freed(em: Emitter) -> list[str]:
    """The lines that give memory back, whatever has happened."""
    lines: list[str] = []
    if em.arenas:
        release = em.outside("c.free", "void (ptr)")
        for i, arena in enumerate(em.arenas):
            lines += [
                f"  %f{i} = load ptr, ptr {arena.register}",
                f"  call void {release}(ptr %f{i})",
            ]
    return lines if em.stack is None else [*lines, '  call void @"nodes.end"(ptr %ran)']


def _body(em: Emitter, head: str, lines: Sequence[str], freed: Sequence[str], is_told: bool) -> str:
    """The function of the definition, whose parameters are registers."""
    text = [
        f"define internal i32 @body({head}) {{",
        "entry:",
        *em.entry,
        f"  %scratch = alloca [{em.scratch} x i64]",
        "  %code = alloca i32",
        "  store i32 0, ptr %code",
        *(["  %doubt = alloca double", "  store double 0.0, ptr %doubt"] * is_told),
        *([] if em.stack is None else functions.ran(f"%c{em.stack}")),
        "  br label %start",
        "start:",
        *lines,
        *(DOUBTS if em.doubt else []),
        "  br label %end",
        "exhausted:",
        "  store i32 2, ptr %code",
        "  br label %end",
        "failed:",
        "  store i32 1, ptr %code",
        "  br label %end",
        "passed:",
        "  br label %end",
        "end:",
        *freed,
        "  %status = load i32, ptr %code",
        "  ret i32 %status",
        "}",
    ]
    return "\n".join(text)


def _run(every: Sequence[str], inputs: int) -> str:
    """The function that takes the parameters of the body out of `io`."""
    lines = ["define i32 @run(ptr %io, i64 %run) noinline {"]
    given: list[str] = []
    for i, parameter in enumerate(every):
        t = parameter.split()[0]
        lines.append(f"  %p{i} = getelementptr inbounds i64, ptr %io, i64 {i}")
        lines.append(f"  %a{i} = load {'i8' if t == 'i1' else t}, ptr %p{i}")
        if t == "i1":
            lines.append(f"  %b{i} = trunc i8 %a{i} to i1")
        given.append(f"{t} %{'b' if t == 'i1' else 'a'}{i}")
    given += ["ptr %out", "ptr %constants", "i64 %run"]
    lines += [
        f"  %out = getelementptr inbounds i64, ptr %io, i64 {len(every)}",
        f"  %constants = getelementptr inbounds i64, ptr %io, i64 {inputs}",
        f"  %status = call i32 @body({', '.join(given)})",
        "  ret i32 %status",
        "}",
    ]
    return "\n".join(lines)


def _declared(em: Emitter) -> list[str]:
    """The functions outside, as LLVM declares them."""
    lines: list[str] = []
    for name, t in em.declared.items():
        result, _, rest = t.partition(" (")
        if t.startswith("{"):
            result, rest = t[: t.index("}") + 1], t[t.index("(") + 1 :]
        lines.append(f'declare {result} @"{name}"({rest}')
    return lines


def _cut(
    em: Emitter, lines: Sequence[str], parameters: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The lines of a body that calls its pieces, and the pieces; the workspace has their frame."""
    given = {p.split()[-1]: p.split()[0] for p in parameters}
    pointers = [line.partition(" = ")[0].strip() for line in em.entry]
    pointers += [f"%c{i}" for i in range(len(em.constants))] + [s.register for s in em.slots]
    given |= dict.fromkeys(
        [*pointers, "%out", "%scratch", "%code", "%doubt", "%ran", "%constants"], "ptr"
    )
    frame = f"%s{len(em.slots)}"
    pieces, lines, room = in_pieces(lines, given | {"%run": "i64"}, frame)
    em.slots.append(nm.Buffer(frame, 8 * room, True))
    return lines, pieces


def _direct(
    inputs: Sequence[ArrayType],
    outputs: Sequence[ArrayType],
    constants: int,
    places: Sequence[int | None],
    bound: dict[int, int],
    size: int,
    short: bool,
) -> str | None:
    """The text of the direct call; None where there is none."""
    slots = [(p, bound.get(i)) for i, p in enumerate(places) if p is not None]
    fine = all([direct.is_direct(t, ("f64", "f32", "i64")) for t in inputs])
    fine = fine and all([direct.is_direct(t, ("f64", "f32", "i64", "bool")) for t in outputs])
    if not fine or len(inputs) + constants + len(slots) + len(outputs) >= direct.WORDS:
        return None
    return direct.Text(inputs, outputs, constants, slots, size, short).text() if _api() else None


@cache
def _api() -> dict[str, int]:
    """The functions that a direct call needs; none where the process lacks one."""
    there = {f"py.{name}": address_of(name) for name in direct.API}
    known = {name: a for name, a in there.items() if a is not None}
    return known if len(known) == len(there) else {}


def _addresses(declared: dict[str, str]) -> dict[str, int]:
    """Where the functions of the C library and of Python are."""
    names = [name for name in declared if name.partition(".")[0] in ("c", "py")]
    there = {name: named(name, {}) for name in names}
    missing = [name for name, address in there.items() if address is None]
    if missing:
        raise nm.Refused(f"the process has no function {missing[0].partition('.')[2]}")
    return {name: address for name, address in there.items() if address is not None}


__all__ = ["Lowered", "lowered"]

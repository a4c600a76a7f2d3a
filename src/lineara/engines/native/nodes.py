"""Values of types that hold themselves are nodes, and any value is the parts of its type.

A part is a number or an array.  A value of a sum that may hold itself is the address of a node: the
tag, then the parts of what it holds; a stack is how many rows it has, and the addresses of columns,
one for each part of a row.  Nodes and columns lie in chunks of memory that belong to the run.  They
are taken back where a function or a round ends whose results hold no address, all at once.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from lineara.engines.native import numbers as nm
from lineara.engines.native import stacks
from lineara.engines.native.emit import INDEX, Emitter
from lineara.facts.types import ArrayType, Named, Product, Stack, Sum, Type

Part = nm.Num | nm.Arr | None  # None: of an alternative that the value is not
FREE, CHUNK = 2, 4  # where what a run has says where its memory is; see `functions.py`


# --- values as parts of their types ---------------------------------------------------------------


def parts(em: Emitter, t: Type) -> Iterator[ArrayType]:
    """The types of the parts of a value."""
    t = em.program.unfold(t)
    if isinstance(t, ArrayType):
        yield em.array_type(t)
    elif isinstance(t, Stack):
        yield INDEX
        for _ in parts(em, t.items[0]):
            yield INDEX
    elif isinstance(t, Sum):
        yield INDEX
        if not em.is_node(t):
            for item in t.items:
                yield from parts(em, item)
    else:
        assert isinstance(t, Product)
        for item in t.items:
            yield from parts(em, item)


def apart(em: Emitter, value: nm.Held, t: Type) -> Iterator[Part]:
    """The parts of a value; a stack gets columns that live on."""
    t = em.program.unfold(t)
    if value is nm.NIL:
        yield from zeros(em, t)
    elif isinstance(value, nm.Stk):
        assert isinstance(t, Stack)
        yield from laid_out(em, value, t.items[0])
    elif isinstance(t, Product):
        items = value.items if isinstance(value, nm.Tup) else [None] * len(t.items)
        for item, s in zip(items, t.items, strict=True):
            yield from apart(em, item, s)
    elif isinstance(t, Sum) and not em.is_node(t):
        items = value.items if isinstance(value, nm.Tag) else [None] * len(t.items)
        yield from apart(em, value.tag if isinstance(value, nm.Tag) else None, INDEX)
        for item, s in zip(items, t.items, strict=True):
            yield from apart(em, item, s)
    elif isinstance(value, nm.Tup):  # a node, or a stack whose columns are known
        yield from [x for x in value.items if isinstance(x, nm.Num)]
    elif isinstance(value, nm.Num | nm.Arr):
        yield value
    else:
        yield from [None for _ in parts(em, t)]


def zeros(em: Emitter, t: Type) -> Iterator[Part]:
    """The parts of a zero; the address of a node that is zero is zero."""
    types = [*parts(em, t)]
    if has_stacks(em, t):
        raise nm.Refused("a recursion keeps a stack that is zero")
    for s in types:
        x = em.zero(s)
        assert isinstance(x, nm.Num | nm.Arr)
        yield x


def has_stacks(em: Emitter, t: Type) -> bool:
    """Whether a stack is among the parts of a value."""
    t = em.program.unfold(t)
    if isinstance(t, ArrayType) or (isinstance(t, Sum) and em.is_node(t)):
        return False
    assert not isinstance(t, Named)
    return isinstance(t, Stack) or any([has_stacks(em, item) for item in t.items])


def together(em: Emitter, t: Type, given: Iterator[nm.Held]) -> nm.Held:
    """A value of the parts of its type."""
    t = em.program.unfold(t)
    if isinstance(t, ArrayType):
        return next(given)
    if isinstance(t, Product):
        return nm.Tup(tuple([together(em, item, given) for item in t.items]))
    if isinstance(t, Sum) and not em.is_node(t):
        tag = next(given)
        return nm.Tag(tag, tuple([together(em, item, given) for item in t.items]))
    return nm.Tup(tuple([next(given) for _ in parts(em, t)]))


def is_number(t: ArrayType) -> bool:
    """Whether a part is in a register."""
    return not t.shape and nm.kind_of(t) is not None


def has_addresses(em: Emitter, types: Sequence[Type]) -> bool:
    """Whether values of these types may hold nodes or columns."""
    every = [em.program.unfold(t) for t in types]
    return any([
        isinstance(t, Stack) or (isinstance(t, Sum) and em.is_node(t))
        or (not isinstance(t, ArrayType | Named) and has_addresses(em, t.items))
        for t in every
    ])  # fmt: skip


# --- nodes ----------------------------------------------------------------------------------------


def width(t: ArrayType) -> int:
    """Bytes of a part in a node."""
    return -(-max(t.size * t.dtype.itemsize, 8) // 8) * 8


def memory(em: Emitter, nbytes: str) -> str:
    """Memory of the run; as many bytes as a register says, a multiple of 16."""
    with_nodes(em)
    place = em.let(f'call ptr @"nodes.new"(ptr %ran, i64 {nbytes})')
    fine = em.name("fine")
    em.branch(em.let(f"icmp eq ptr {place}, null"), "exhausted", fine)
    em.block(fine)
    return place


def offset(em: Emitter, place: str, nbytes: int) -> str:
    """The address so many bytes further."""
    return em.let(f"getelementptr inbounds i8, ptr {place}, i64 {nbytes}") if nbytes else place


def put(em: Emitter, x: Part, t: ArrayType, place: str) -> None:
    """Put a part to an address."""
    if is_number(t):
        em.store_at(x if isinstance(x, nm.Num) else nm.constant(nm.kind_of(t) or "", 0), place)
    elif isinstance(x, nm.Arr):
        em.copy(x, nm.Arr(nm.Buffer(place, t.size * t.dtype.itemsize, True), t))


def got(em: Emitter, t: ArrayType, place: str) -> nm.Num | nm.Arr:
    """The part at an address."""
    if is_number(t):
        return em.load_at(place, nm.kind_of(t) or "")
    return nm.Arr(nm.Node(place, t.size * t.dtype.itemsize, False), t, lay=nm.unsure(t))


def node(em: Emitter, tag: int, value: nm.Held, t: Type) -> nm.Tup:
    """A node of a sum, given its tag and what it holds, of type t."""
    types = [*parts(em, t)]
    with em.kept([value]):
        given = [*apart(em, value, t)]
        with em.kept(given):
            place = memory(em, str(-(-sum(map(width, types), 8) // 16) * 16))
            em.line(f"store i64 {tag}, ptr {place}")
            at = 8
            for x, s in zip(given, types, strict=True):
                put(em, x, s, offset(em, place, at))
                at += width(s)
    return nm.Tup((nm.Num("i64", em.let(f"ptrtoint ptr {place} to i64")),))


def tag_of(em: Emitter, value: nm.Tup) -> nm.Num:
    """The tag of a node."""
    return em.load_at(pointer(em, value.items[0]), "i64")


def held_by(em: Emitter, value: nm.Tup, t: Type) -> nm.Held:
    """What a node holds, of type t."""
    return held_at(em, pointer(em, value.items[0]), t)


def projected(em: Emitter, value: nm.Tup, t: Type) -> nm.Held:
    """What a node of a vector holds, of type t; zeros if its address is zero."""
    if has_stacks(em, t):
        raise nm.Refused("a recursion keeps a stack that may be zero")
    words = (8 + sum(map(width, parts(em, t)))) // 8
    nothing = em.literal(np.zeros(words, np.int64), ArrayType((words,), INDEX.dtype))
    assert isinstance(nothing, nm.Arr)
    place = pointer(em, value.items[0])
    none = em.let(f"icmp eq ptr {place}, null")
    other = em.let(f"select i1 {none}, ptr {em.address(nothing)}, ptr {place}")
    return held_at(em, other, t)


def held_at(em: Emitter, place: str, t: Type) -> nm.Held:
    """What the node at an address holds."""
    at = 8
    given: list[nm.Held] = []
    for s in parts(em, t):
        given.append(got(em, s, offset(em, place, at)))
        at += width(s)
    return together(em, t, iter(given))


def pointer(em: Emitter, x: nm.Held) -> str:
    """A pointer to an address that is a number."""
    assert isinstance(x, nm.Num)
    return em.let(f"inttoptr i64 {em.text(x)} to ptr")


# --- stacks ---------------------------------------------------------------------------------------


def laid_out(em: Emitter, value: nm.Stk, t: Type) -> list[nm.Num]:
    """How many rows a stack has, and the addresses of columns of their own, one for each part."""
    assert isinstance(value.n, nm.Num)
    n, types = em.text(value.n), [*parts(em, t)]
    sizes = [max(s.size * s.dtype.itemsize, 1) for s in types]
    sane = em.name("sane")
    em.branch(em.let(f"icmp ule i64 {n}, {2**58 // max([*sizes, 1])}"), sane, "exhausted")
    em.block(sane)
    places: list[str] = []
    with em.kept([value]):
        for size in sizes:
            nbytes = em.let(f"add i64 {em.let(f'mul i64 {n}, {size}')}, 15")
            places.append(memory(em, em.let(f"and i64 {nbytes}, -16")))
        with em.each(n) as i:
            row = stacks.row(em, value, i)
            with em.kept([row]):
                for x, s, place, size in zip(apart(em, row, t), types, places, sizes, strict=True):
                    at = em.let(f"mul i64 {em.text(i)}, {size}")
                    put(em, x, s, em.let(f"getelementptr inbounds i8, ptr {place}, i64 {at}"))
    numbers = [nm.Num("i64", em.let(f"ptrtoint ptr {place} to i64")) for place in places]
    return [value.n, *numbers]


def opened(em: Emitter, value: nm.Held, t: Type) -> nm.Held:
    """A stack whose columns are known, as what a loop goes over."""
    t = em.program.unfold(t)
    if not (isinstance(t, Stack) and isinstance(value, nm.Tup)):
        return value
    n, *places = value.items
    columns = [
        nm.Column(nm.Node(pointer(em, x), 0, False), s)
        for x, s in zip(places, parts(em, t.items[0]), strict=True)
    ]
    row = together(em, t.items[0], iter(columns))
    return nm.Stk(nm.Round(t.n), n, nm.constant("i64", 0), row)


# --- memory ---------------------------------------------------------------------------------------


def with_nodes(em: Emitter) -> None:
    """The module has the functions that make nodes and take them back."""
    em.helpers.update(HELPERS)
    em.outside("c.malloc", "ptr (i64)")
    em.outside("c.free", "void (ptr)")


def mark(em: Emitter) -> tuple[str, str]:
    """Where the memory of the run has come to."""
    places = [em.let(f"getelementptr inbounds i64, ptr %ran, i64 {i}") for i in (FREE, CHUNK)]
    return em.let(f"load i64, ptr {places[0]}"), em.let(f"load i64, ptr {places[1]}")


def back(em: Emitter, marked: tuple[str, str]) -> None:
    """Take back what was made since."""
    with_nodes(em)
    em.line(f'call void @"nodes.back"(ptr %ran, i64 {marked[0]}, i64 {marked[1]})')


HELPERS = {
    "nodes.new": """define internal ptr @"nodes.new"(ptr %ran, i64 %n) nounwind {
  %p = getelementptr inbounds i64, ptr %ran, i64 2
  %e = getelementptr inbounds i64, ptr %ran, i64 3
  %begin = load i64, ptr %p
  %end = load i64, ptr %e
  %room = sub i64 %end, %begin
  %fits = icmp ule i64 %n, %room
  br i1 %fits, label %take, label %more
take:
  %next = add i64 %begin, %n
  store i64 %next, ptr %p
  %y = inttoptr i64 %begin to ptr
  ret ptr %y
more:
  %new = call ptr @"nodes.more"(ptr %ran, i64 %n)
  ret ptr %new
}""",
    "nodes.more": """define internal ptr @"nodes.more"(ptr %ran, i64 %n) noinline cold nounwind {
first:
  %h = getelementptr inbounds i64, ptr %ran, i64 4
  %e = getelementptr inbounds i64, ptr %ran, i64 3
  %newest = load ptr, ptr %h
  %end = load i64, ptr %e
  %at = ptrtoint ptr %newest to i64
  %last = sub i64 %end, %at
  %twice = mul i64 %last, 2
  %least = call i64 @llvm.umax.i64(i64 %twice, i64 65536)
  %usual = call i64 @llvm.umin.i64(i64 %least, i64 67108864)
  %size = call i64 @llvm.umax.i64(i64 %usual, i64 %n)
  %whole = add i64 %size, 16
  %c = call ptr @"c.malloc"(i64 %whole)
  %none = icmp eq ptr %c, null
  br i1 %none, label %no, label %yes
no:
  ret ptr null
yes:
  store ptr %newest, ptr %c
  store ptr %c, ptr %h
  %a = ptrtoint ptr %c to i64
  %begin = add i64 %a, 16
  %over = add i64 %begin, %size
  %ce = getelementptr inbounds i64, ptr %c, i64 1
  store i64 %over, ptr %ce
  store i64 %over, ptr %e
  %p = getelementptr inbounds i64, ptr %ran, i64 2
  %next = add i64 %begin, %n
  store i64 %next, ptr %p
  %y = inttoptr i64 %begin to ptr
  ret ptr %y
}""",
    "nodes.back": """define internal void @"nodes.back"(ptr %ran, i64 %free, i64 %then) nounwind {
first:
  %chunk = inttoptr i64 %then to ptr
  %h = getelementptr inbounds i64, ptr %ran, i64 4
  %p = getelementptr inbounds i64, ptr %ran, i64 2
  %begun = load ptr, ptr %h
  %same = icmp eq ptr %begun, %chunk
  br i1 %same, label %done, label %look
done:
  store i64 %free, ptr %p
  ret void
look:
  %newest = load ptr, ptr %h
  %before = load ptr, ptr %newest
  %last = icmp eq ptr %before, %chunk
  br i1 %last, label %stays, label %goes
goes:
  store ptr %before, ptr %h
  call void @"c.free"(ptr %newest)
  br label %look
stays:
  %a = ptrtoint ptr %newest to i64
  %begin = add i64 %a, 16
  store i64 %begin, ptr %p
  %ce = getelementptr inbounds i64, ptr %newest, i64 1
  %end = load i64, ptr %ce
  %e = getelementptr inbounds i64, ptr %ran, i64 3
  store i64 %end, ptr %e
  ret void
}""",
    "nodes.end": """define internal void @"nodes.end"(ptr %ran) nounwind {
  call void @"nodes.back"(ptr %ran, i64 0, i64 0)
  %h = getelementptr inbounds i64, ptr %ran, i64 4
  %chunk = load ptr, ptr %h
  call void @"c.free"(ptr %chunk)
  ret void
}""",
}
"""Nodes are taken back up to the first chunk that was made since: the next round has that."""


__all__ = [
    "Part", "apart", "back", "has_addresses", "held_by", "is_number", "mark", "node",
    "opened", "parts", "projected", "put", "tag_of", "together", "with_nodes",
]  # fmt: skip

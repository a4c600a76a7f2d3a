"""What a program costs: W, the arithmetic of a leaf, and the size of a text  [YOLO, §3].

    Prim                                 what the primitive says; 1 for an operation on numbers
    ~a + ~b, x * ~a at u                 |u|
    accum, put of ~y                     |y|
    index of a linear ~a                 |a|, for the rest of it is forgotten
    drop of a non-linear x               one for each array in it
    drop of a linear ~a: u               |u|
    everything else                      0

Adding up n numbers costs n - 1, a contraction its multiplications and additions, reading a part
of a non-linear array its length, joining arrays the length of the result; what only moves costs
nothing, and what forgets costs what is forgotten.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lineara.facts.primitive import reals
from lineara.facts.types import UNIT, ArrayType, Family, Named, Stack, Sum, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.dimensions import dims_in, is_open, with_dims
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program

NONE: dict[ir.Var, int] = {}


def cells(program: Program, t: Type) -> int:
    """How many arrays and numbers a non-linear value has: what it costs to drop it."""
    return sum(1 for _ in program.leaves(t))


def weight(program: Program, v: ir.Var) -> int:
    """What a variable counts in the balance of work: |u| if linear, else its arrays."""
    return program.scalars(v.type) if v.linear else cells(program, v.type)


def drop_work(program: Program, xs: Sequence[Type], lxs: Sequence[Type]) -> int:
    """What it costs to forget values of those types."""
    return sum(cells(program, t) for t in xs) + sum(program.scalars(t) for t in lxs)


def work(program: Program, e: ir.Leaf, y: Type | None, dims: dict[Any, Any] = NONE) -> int:
    """W of a leaf that applies no definition; y is the type of its (first) result.

    `dims` are the dimensions of types in numbers.
    """
    args = [with_dims(a.type, dims) if dims else a.type for a in e.args]
    if isinstance(e, ir.Accum | ir.Put):
        return sum([extent(program, t) for t in args[1:]])
    if not isinstance(e, ir.Prim):
        return 0
    if not any(a.linear for a in e.args):
        if e.name == "add" and not isinstance(program.unfold(args[0]), ArrayType):
            return program.scalars(args[0])
    elif e.name in ("add", "multiply"):
        return program.scalars(args[0 if e.args[0].linear else 1])
    elif e.name == "index":
        return program.scalars(args[0])
    types = tuple(map(program.unfold, args))
    whole = program.unfold(with_dims(y, dims)) if y is not None else None
    params = ir.renamed_params(e.params, lambda v: dims.get(v, v)) if dims else e.params
    return e.primitive.arithmetic(whole, types, params)


def extent(program: Program, t: Type) -> int:
    """How many numbers an array has, two for each complex one."""
    array = program.unfold(t)
    assert isinstance(array, ArrayType)
    return reals(array)


# --- the work of a definition ------------------------------------------------------------------


def static_works(program: Program) -> dict[str, int | None]:
    """W of every definition; None where it depends on values, as under branches and loops.

    >>> from lineara.linear_a.parse import parse
    >>> static_works(parse("def f(x: f64;) -> (f64;) = let y = sin(x) in y * x"))
    {'f': 2}
    """
    works: dict[str, int | None] = {}
    for f in ir.callees_first(program.defs, lambda f: _calls(program, f)):
        d = program.defs.get(f)
        works[f] = None if d is None else _static(program, d.body, works)
    return works


def most(
    program: Program, name: str, kept: str, count: Callable[[ir.Leaf, Type | None], int]
) -> float:
    """The most that a run of a definition counts, each leaf in each round and of one branch.

    It is infinite where values tell how many rounds there are.  `count` is asked of a leaf that
    applies no definition, and of the type of its first result; what a call counts beside what it
    calls is 1.  The numbers are noted at the program, under the name `kept`.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64;) -> (f64;) = let y = sin(x) in y * x")
    >>> most(p, "f", "leaves", lambda e, y: 1)
    2
    """
    known: dict[str, float] = program.noted[kept]
    if name not in known:
        for f in ir.callees_first([name], lambda f: _calls(program, f)):
            body = program.defs[f].body
            recursion = any([g not in known for g in ir.functions(body)])
            pairs = () if recursion else _typed(body, None)
            total = sum([_most_of_leaf(e, y, known, count) for e, y in pairs])
            known[f] = math.inf if recursion else total
    return known[name]


def operations(program: Program, name: str) -> float:
    """The most operations of a run: one for each leaf, and its W where that does not vary.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64[8];) -> (f64[8];) = let y = sin(x) in y * x")
    >>> operations(p, "f")
    18
    """

    def count(e: ir.Leaf, y: Type | None) -> int:
        return 1 + (_static_leaf(program, e, {}, y=y) or 0)

    return most(program, name, "operations", count)


def _most_of_leaf(
    e: ir.Leaf,
    y: Type | None,
    known: dict[str, float],
    count: Callable[[ir.Leaf, Type | None], int],
) -> float:
    match e:
        case While():
            return math.inf
        case Scan():
            return known[e.body] * e.n if isinstance(e.n, int) else math.inf
        case ir.Application():
            return 1 + max([known[f] for f in e.functions])
    return count(e, y)


def _calls(program: Program, name: str) -> list[str]:
    return ir.functions(program.defs[name].body) if name in program.defs else []


def _static(program: Program, body: ir.Block, known: dict[str, int | None]) -> int | None:
    total = 0
    for e, y in _typed(body, None):
        w = _static_leaf(program, e, known, y=y)
        if w is None:
            return None
        total += w
    return total


def _typed(e: ir.Leaf | ir.Block, y: Type | None) -> Iterator[tuple[ir.Leaf, Type | None]]:
    """Every leaf with the type of the variable that its result is bound to, if it is bound."""
    if isinstance(e, ir.Block):
        for b in e.bindings:
            if isinstance(b, ir.Let):
                yield from _typed(b.rhs, b.vars[0].type if b.vars else None)
        yield from _typed(e.leaf, y)
        return
    yield e, y
    if isinstance(e, ir.Drop):
        yield from _typed(e.body, None)


def _static_leaf(
    program: Program,
    e: ir.Leaf,
    known: dict[str, int | None],
    dims: Any = NONE,
    y: Type | None = None,
) -> int | None:
    if isinstance(e, ir.Application):
        return e.work([known.get(f) for f in e.functions])
    if isinstance(e, ir.Drop):
        last = e.body
        while isinstance(last, ir.Block):
            last = last.leaf
        if isinstance(last, ir.Drop):
            return 0
        xs, us = type_of_leaf(program, last)
        us = tuple([with_dims(t, dims) for t in us])
        return None if _unknown(program, us) else drop_work(program, xs, us)
    if not isinstance(e, ir.Prim | ir.Accum | ir.Put):
        return 0
    if y is None:
        xs, us = type_of_leaf(program, e)
        y = (*us, *xs)[0]
    if all([_is_fixed(a.type) for a in e.args]) and _is_fixed(y):
        return work(program, e, y)
    linear = [with_dims(a.type, dims) for a in e.args if a.linear]
    if _unknown(program, linear) or (not dims and any(dims_in((y, [a.type for a in e.args])))):
        return None
    return work(program, e, y, dims)


def _is_fixed(t: Type) -> bool:
    """Whether a type is that of arrays whose shape is of numbers."""
    return isinstance(t, ArrayType) and all([type(n) is int for n in t.shape])


def _unknown(program: Program, types: Sequence[Type]) -> bool:
    """Whether only a run can tell how large values are: they have tags, or dimensions."""
    return any(varies(t) for u in types for t in program.leaves(u)) or any(dims_in(types))


def varies(t: Type) -> bool:
    """Whether values of one type differ in size: the type has tags or open dimensions."""
    return isinstance(t, Sum | Stack) or is_open(t)


# --- what policies weigh --------------------------------------------------------------------------


NOMINAL = 1000  # what policies take a dimension for


class _Sample(dict[ir.Var, int]):
    """Every dimension at its nominal size."""

    def __contains__(self, v: object) -> bool:
        return isinstance(v, ir.Var)

    def __missing__(self, v: ir.Var) -> int:
        return NOMINAL

    def get(self, v: ir.Var, default: object = None) -> int:
        """The nominal size, whatever the variable."""
        return NOMINAL

    def __bool__(self) -> bool:
        return True


SAMPLE = _Sample()


def _rounds(n: Any) -> int:
    return NOMINAL if isinstance(n, ir.Var) else n or 1


class Costs:
    """Bytes of types and work of bindings as far as the text tells; each definition's found once.

    Where only a run can tell, a dimension counts as 1000, a branch as its most expensive one, a
    loop of unknown length and a recursion as one round, and what has tags as nothing.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._types: dict[str, int] = {}
        self._defs: dict[str, int] = {}

    def bytes(self, t: Type) -> int:
        """The bytes of a value of the type."""
        if isinstance(t, ArrayType):
            return with_dims(t, SAMPLE).size * t.dtype.itemsize
        if isinstance(t, Named):
            if t.name not in self._types:
                self._types[t.name] = 0
                known = t.name in self.program.types
                self._types[t.name] = self.bytes(self.program.stated(t.name) if known else UNIT)
            return self._types[t.name]
        sizes = [self.bytes(item) for item in t.items]
        if isinstance(t, Stack):
            return _rounds(t.n) * sizes[0]
        return max(sizes, default=0) if isinstance(t, Sum) else sum(sizes)

    def tape(self, found: Iterable[ir.Var]) -> int:
        """The bytes of a tape of those variables."""
        return sum([self.bytes(v.type) for v in found])

    def work(self, e: ir.Binding | ir.Leaf | ir.Block) -> int:
        """W of a binding or an expression."""
        match e:
            case ir.Unpack():
                return 0
            case ir.Let():
                return self.work(e.rhs)
            case ir.Block():
                return sum(map(self.work, e.bindings)) + self.work(e.leaf)
            case ir.Application():
                rounds = _rounds(getattr(e, "n", None))
                return rounds * max([self.definition(f) for f in e.functions], default=0)
        inner = self.work(e.body) if isinstance(e, ir.Drop) else 0
        return inner + (_static_leaf(self.program, e, {}, SAMPLE) or 0)

    def definition(self, name: str) -> int:
        """W of a definition."""
        if name not in self._defs:
            self._defs[name] = 0
            d = self.program.defs.get(name)
            self._defs[name] = 0 if d is None else self.work(d.body)
        return self._defs[name]


# --- the size of a program ---------------------------------------------------------------------


def type_size(t: Type | Family) -> int:
    """1 for numbers, arrays and names; 1 + the sum of the parts for products and sums."""
    if isinstance(t, ArrayType | Named):
        return 1
    if isinstance(t, Family):
        return type_size(t.type)
    return 1 + sum(map(type_size, t.items))


def size(e: Any) -> int:
    """The size of a leaf, a block, a definition or a program."""
    match e:
        case Program():
            return sum(1 + type_size(t) for t in e.types.values()) + sum(map(size, e.defs.values()))
        case ir.Def():
            stated = sum(map(type_size, (*e.results, *e.lresults)))
            return 2 + _binders(e.params) + stated + size(e.body)
        case ir.Block():
            return sum(map(size, e.bindings)) + size(e.leaf)
        case ir.Let():
            return 1 + _binders(e.vars) + size(e.rhs)
        case ir.Unpack():
            return 2 + _binders(e.vars)
        case ir.Drop():
            return 1 + size(e.body)
    return 1 + len(e.operands())


def _binders(found: Sequence[ir.Var]) -> int:
    return sum(1 + type_size(v.type) for v in found)

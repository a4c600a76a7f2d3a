"""Which arguments of a definition its wanted results need, and which bindings of a block are run.

    of(f, wanted)             whether each argument of a definition is needed
    block(block, wanted)      the variables that are needed, and the places of the bindings that run
    carries(scan, wanted)     whether each carry of a loop is needed, and each argument

A binding runs if a result of it is read, or if it may raise.  Of the leaves of a block that take
one place in arrays of one shape the first one answers for the others: where it does not raise they
do not.  So the masks of vectors, which nothing reads in the end, are not calculated.
"""

from collections.abc import Collection, Mapping, Sequence

from lineara.facts.primitive import Constant, Elementwise, Structural
from lineara.facts.types import ArrayType, Named, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Choice, Switch
from lineara.linear_a.calls import Call
from lineara.linear_a.check import Judge
from lineara.linear_a.loops import Scan
from lineara.linear_a.program import Program

Wanted = tuple[bool, ...]
Items = Mapping[str, frozenset[int]]  # by the names of products' types: places of some items
TOTAL = {"sum", "cumsum", "where", "live_factor", "keep", "astype", "matmul", "einsum"}
"""Primitives of other kinds that do not raise."""


class Demand:
    """The demands of one program; `trusting`: of a masked product the mask is not looked at."""

    def __init__(self, program: Program, trusting: bool) -> None:
        self.program = program
        self.judge: Judge = Judge(program, "")
        self.trusting = trusting
        self.known: dict[tuple[str, Wanted], Wanted] = {}
        self.failing: dict[str, bool] = {}
        self.open: set[str] = set()
        self.unread: Items = {}
        self.called_back: Collection[str] = ()  # definitions that Python evaluates, with all masks

    def of(self, name: str, wanted: Wanted) -> Wanted:
        """Whether each argument of a definition is needed for these of its results."""
        d = self.program.defs[name]
        if name in self.open or name in self.called_back:
            return (True,) * len(d.params)
        if (name, wanted) not in self.known:
            self.open.add(name)
            needed, _ = self.block(d.body, wanted)
            self.open.discard(name)
            self.known[name, wanted] = tuple([v in needed for v in d.params])
        return self.known[name, wanted]

    def block(self, block: ir.Block, wanted: Wanted) -> tuple[set[ir.Var], set[int]]:
        """The variables that are needed, and the places of the bindings that run."""
        needed, runs = set(self.reads(block.leaf, wanted)), set()
        spots = [None if isinstance(b, ir.Unpack) else place(b.rhs) for b in block.bindings]
        first: dict[object, int] = {}
        for i, spot in enumerate(spots):
            if spot is not None:
                first.setdefault(spot, i)
        answering = set(first.values())
        for i in reversed(range(len(block.bindings))):
            b = block.bindings[i]
            here = tuple([v in needed for v in b.vars])
            if isinstance(b, ir.Unpack):
                if not any(here):
                    continue
                reads = (b.arg,)
            elif isinstance(b.rhs, ir.Tup) and any(here):
                left = self.left_out(b.vars[0].type)
                reads = tuple([v for i, v in enumerate(b.rhs.args) if i not in left])
            elif any(here) or i in answering or (spots[i] is None and self.may_fail(b.rhs)):
                reads = self.reads(b.rhs, here)
            else:
                continue
            needed.update(reads)
            runs.add(i)
        return needed, runs

    def left_out(self, t: Type) -> frozenset[int]:
        """The places of items of a product that nobody reads."""
        return self.unread.get(t.name, frozenset()) if isinstance(t, Named) else frozenset()

    def reads(self, e: ir.Leaf | ir.Block, wanted: Wanted) -> Sequence[ir.Var]:
        """The free variables that an expression needs for these of its results."""
        if isinstance(e, ir.Block):
            return [*self.block(e, wanted)[0]]
        match e:
            case ir.Prim():
                trusted = e.name == "live_factor" and self.trusts(e)
                return e.args[1:2] if trusted else e.operands()
            case ir.Ret() | ir.Copy():
                return [v for v, is_wanted in zip(e.args, wanted, strict=True) if is_wanted]
            case ir.Drop():
                return self.reads(e.body, (False,) * self.results_of(e.body))
            case Scan() if e.n is None or isinstance(e.n, int):
                _, given = self.carries(e, wanted)
            case Choice():
                each = [self.of(f, wanted) for f in e.functions]
                rest = len(e.args) - 1  # a payload comes before what all of them get
                last = [
                    any(column) for column in zip(*[w[len(w) - rest :] for w in each], strict=True)
                ]
                given = (True, *last)
            case Call() if type(e) is Call:
                given = self.of(e.functions[0], wanted)
            case _:
                return e.operands()
        return [v for v, is_given in zip(e.args, given, strict=True) if is_given]

    def carries(self, e: Scan, wanted: Wanted) -> tuple[Wanted, Wanted]:
        """Whether each carry of a loop is needed, and each argument."""
        carried, end = wanted[: e.nc], e.nk + e.nc
        while True:
            given = self.of(e.body, (*carried, *wanted[e.nc :]))
            again = tuple([a or b for a, b in zip(carried, given[e.nk : end], strict=True)])
            if again == carried:
                rows = given[end:] if e.n is not None else (True,) * len(given[end:])  # the length
                return carried, (*given[: e.nk], *carried, *rows)
            carried = again

    def trusts(self, e: ir.Prim) -> bool:
        """Whether a factor is taken as it is, and looked at whether it is finite."""
        t = e.args[1].type
        return self.trusting and isinstance(t, ArrayType) and t.dtype == float

    # --- what may raise ---------------------------------------------------------------------------

    def may_fail(self, e: ir.Leaf | ir.Block) -> bool:
        """Whether an expression may raise, warn, or not end."""
        if isinstance(e, ir.Block):
            return any([self.may_fail(leaf) for leaf in ir.leaves(e)])
        match e:
            case ir.Prim():
                p = e.primitive
                moves = isinstance(p, Structural) and not any([ints(v) for v in e.args])
                tame = moves or isinstance(p, Elementwise | Constant) or e.name in TOTAL
                return not tame or p.pythons or p.acts or bool(p.raised) or has_values(e)
            case ir.Ret() | ir.Copy() | ir.Lit() | ir.Zero() | ir.Tup() | ir.Inj():
                return False
            case ir.Drop():
                return self.may_fail(e.body)
            case ir.Part():
                return has_values(e)
            case Switch():
                return True
            case Call() | Choice() | Scan():
                return any([self.fails(f) for f in e.functions])
        return True

    def fails(self, name: str) -> bool:
        """Whether a definition may raise."""
        if name not in self.failing:
            self.failing[name] = True  # as one that calls itself may
            self.failing[name] = self.may_fail(self.program.defs[name].body)
        return self.failing[name]

    def results_of(self, e: ir.Leaf | ir.Block) -> int:
        """How many results an expression has."""
        while isinstance(e, ir.Block):
            e = e.leaf
        return 0 if isinstance(e, ir.Drop) else len(sum(self.judge.leaf(e), ()))


def ints(v: ir.Var) -> bool:
    """Whether a variable may be a place, as those that `take` takes."""
    return not isinstance(v.type, ArrayType) or v.type.dtype.kind not in "fcb"


def has_values(e: ir.Leaf) -> bool:
    """Whether a place or a size is a value."""
    return len(e.operands()) > len(e.args)


def place(e: ir.Leaf | ir.Block) -> object:
    """Which place a leaf takes in an array of which shape, if it is a value."""
    at = e.params["at"] if isinstance(e, ir.Prim) and e.name == "index" else getattr(e, "at", None)
    if at is None or isinstance(e, ir.Block) or not has_values(e):
        return None
    t = e.args[0].type
    return (t.shape, repr(at)) if isinstance(t, ArrayType) else None


__all__ = ["Demand"]

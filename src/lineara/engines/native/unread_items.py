"""Items of tapes that nobody reads: rounds neither store them nor calculate them for that.

    t = <x, y> of each round .. let <x, y> = t in e       =>      <x, _>, where e needs no y

The way back of a loop reads what the cotangents of all its arguments are made of, and a gradient is
often wanted in some of them.  An item is told by the name of the product's type: rows of a loop's
stack are products of one name, and where nothing but Unpack looks into values of it, what these
give and nobody needs is unread.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from lineara.engines.native.demand import Demand, Items, Wanted
from lineara.facts.types import Named, Product, Stack, Sum, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Choice
from lineara.linear_a.calls import Call
from lineara.linear_a.loops import Scan
from lineara.linear_a.program import Program


def unread_items(
    program: Program, name: str, trusting: bool, called_back: Collection[str] = ()
) -> Items:
    """The places of items that no run of a definition reads, by the names of the rows' types.

    Definitions that are called back read all that they are given.
    """
    binders = [v for f in program.reached(name) for v in ir.binders(program.defs[f])]
    rows = {v.type.items[0] for v in binders if isinstance(v.type, Stack)}
    named = {t.name: program.unfold(t) for t in rows if isinstance(t, Named)}
    sizes = {n: len(t.items) for n, t in named.items() if isinstance(t, Product)}
    unread: Items = {}
    while sizes:
        reading = Reading(program, trusting, unread, sizes)
        reading.called_back = called_back
        reading.all_of(name)
        now = {n: frozenset(range(k)) - reading.read[n] for n, k in sizes.items()}
        if now == unread:
            break
        unread = now
    return unread


class Reading(Demand):
    """Notes which items of products a run reads; items that are `unread` so far are not made."""

    def __init__(
        self, program: Program, trusting: bool, unread: Items, sizes: dict[str, int]
    ) -> None:
        super().__init__(program, trusting)
        self.unread = unread
        self.sizes = sizes
        self.read: dict[str, set[int]] = {n: set() for n in sizes}
        self.recursive: list[str] = []

    def all_of(self, name: str) -> None:
        """Look at a definition all of whose results are wanted, and from outside."""
        d = self.program.defs[name]
        self.meet([v.type for v in d.params], [])
        self.meet(d.results, [])
        self.of(name, (True,) * len(d.results))
        for f in self.recursive:
            self.of(f, (True,) * len(self.program.defs[f].results))

    def of(self, name: str, wanted: Wanted) -> Wanted:
        """Whether each argument of a definition is needed for these of its results."""
        if name in self.called_back:
            self.meet([v.type for v in self.program.defs[name].params], [])
        if name in self.open and name not in self.recursive:
            self.recursive.append(name)
        return super().of(name, wanted)

    def block(self, block: ir.Block, wanted: Wanted) -> tuple[set[ir.Var], set[int]]:
        """The variables that are needed, and the places of the bindings that run."""
        needed, runs = super().block(block, wanted)
        for b in [block.bindings[i] for i in runs]:
            if not isinstance(b, ir.Unpack):
                self.looked(b.rhs, [v.type for v in b.vars])
            elif isinstance(b.arg.type, Named) and b.arg.type.name in self.sizes:
                places = [i for i, v in enumerate(b.vars) if v in needed]
                self.read[b.arg.type.name].update(places)
        if isinstance(block.leaf, ir.Application):
            self.looked(block.leaf, [t for ts in self.judge.leaf(block.leaf) for t in ts])
        return needed, runs

    def looked(self, e: ir.Leaf | ir.Block, types: Sequence[Type]) -> None:
        """A leaf is bound to variables of these types."""
        given = [v.type for v in e.operands()] if isinstance(e, ir.Leaf) else []
        match e:
            case ir.Application():
                defs = [self.program.defs[f] for f in e.functions]
                self.meet(given, [v.type for d in defs for v in d.params])
                self.meet(types, [t for d in defs for t in d.results])
                if not (type(e) is Call or isinstance(e, Choice | Scan)):
                    for d in defs:
                        self.of(d.name, (True,) * len(d.results))
            case ir.Tup():
                whole = self.program.unfold(types[0])
                self.meet(given, whole.items if isinstance(whole, Product) else [])
            case ir.Ret() | ir.Copy():
                self.meet(given, types)
            case ir.Leaf() if not isinstance(e, ir.Drop):
                self.meet(given, [])

    def meet(self, some: Iterable[Type], others: Iterable[Type]) -> None:
        """Values of some types become those of others, so all is read where names differ."""
        for n in {*self.names(some)} ^ {*self.names(others)}:
            self.read[n].update(range(self.sizes[n]))

    def names(self, types: Iterable[Type]) -> Iterator[str]:
        """The names of rows that values of types hold."""
        todo, seen = [*types], set[str]()
        while todo:
            t = todo.pop()
            if isinstance(t, Named):
                if t.name in self.sizes:
                    yield t.name
                todo += [] if t.name in seen else [self.program.stated(t.name)]
                seen.add(t.name)
            elif isinstance(t, Product | Stack | Sum):
                todo += t.items


__all__ = ["unread_items"]

"""Late: what is computed again, is computed just before it is read.

    let x = e in D in d[x]     becomes     D in let x = e in d[x]

Unzip puts what f.lin computes again in front, and T leaves it there, where all of it would be alive
at once.  Moved down to its first use, a value and all that it is made of live for as long as the
stretch between two stored values takes: that is what checkpoints save memory by.  Non-linear code
has no effects, so only what it reads limits where it stands.
"""

from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program


def late(program: Program, name: str) -> Program:
    """The program in which `name` and what it applies compute late."""
    defs = [program.defs[f] for f in program.reached(name)]
    return program.with_(*[delayed(d) for d in defs if d.lxs])


def delayed(d: ir.Def) -> ir.Def:
    """The definition with its non-linear bindings at their first uses."""
    bindings = d.body.bindings
    place = {v: i for i, b in enumerate(bindings) if waits(b) for v in b.vars}
    if not place:
        return d
    drops: dict[int, list[ir.Binding]] = {}
    for b in [b for b in bindings if not b.vars]:
        (v, *more) = ir.reads(b) or (None,)
        if not more and v in place:
            drops.setdefault(place[v], []).append(b)
    later = {bindings[i] for i in place.values()}
    later |= {b for of_variable in drops.values() for b in of_variable}
    made: list[ir.Binding] = []
    written: set[int] = set()

    def write(reads: tuple[ir.Var, ...]) -> None:
        """Write the bindings that these variables need, in their old order."""
        open_ = [place[v] for v in reads if v in place]
        wanted = set()
        while open_:
            i = open_.pop()
            if i not in written and i not in wanted:
                wanted.add(i)
                open_ += [place[v] for v in ir.reads(bindings[i]) if v in place]
        for i in sorted(wanted):
            made.extend((bindings[i], *drops.get(i, ())))
        written.update(wanted)

    for b in bindings:
        if b not in later:
            write(tuple(ir.reads(b)))
            made.append(b)
    write(d.body.leaf.operands())
    for i in drops:  # bindings that only drops read
        write(bindings[i].vars)
    return ir.Def(d.name, d.params, d.results, d.lresults, ir.Block(tuple(made), d.body.leaf))


def waits(b: ir.Binding) -> bool:
    """Whether a binding is non-linear and gives something; a tape is taken apart at once."""
    if not b.vars or isinstance(b, ir.Unpack):
        return False
    return not any([v.linear for v in (*b.vars, *ir.reads(b))])

"""Literal sizes: a number that stands where a dimension does makes an instance of the definition.

    def g(n: i64, x: f64[n];) -> (f64[n];) = …          g(5_i64, x;)

is a call of `g'5(n: i64, x: f64[5];) -> (f64[5];)`, which is made once a number, as are those of
what g applies to n.  Types then mention formals and numbers only; n keeps its place as an argument.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import matching, with_dims
from lineara.linear_a.program import Program

RULES = (".jvp", ".t", ".e")  # what a program may say of a definition under its name


def with_instances(program: Program, numbers: Mapping[ir.Var, int]) -> Program:
    """The program, where variables that are bound to numbers are no dimensions any more."""
    if not numbers:
        return program
    run = _Instances(program)
    defs = {name: _Rewriter(run, numbers).definition(d, name) for name, d in program.defs.items()}
    if all([defs[name] is d for name, d in program.defs.items()]):
        return program
    return Program(program.types, {**run.made, **defs}, run.places, program.text, program.file)


def mentioned(block: ir.Block) -> set[ir.Var]:
    """What the bindings and the leaf of a block read."""
    read = [(b.arg,) if isinstance(b, ir.Unpack) else ir.occurrences(b.rhs) for b in block.bindings]
    return {*block.leaf.operands(), *[v for vs in read for v in vs]}


class _Instances:
    """The instances of the definitions of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.places = dict(program.places)
        self.names = ir.Names(program.defs)
        self.known: dict[Any, str] = {}
        self.made: dict[str, ir.Def] = {}

    def of(self, f: str, at: Mapping[ir.Var, int]) -> str:
        """The name of the instance for some dimensions."""
        d = self.program.defs[f]
        sizes = tuple([at.get(p) for p in d.xs])
        if (f, sizes) not in self.known:
            shown = [str(n) for n in sizes if n is not None]
            self.known[f, sizes] = name = self.names("'".join([f, *shown]))
            for rule in ("", *RULES):
                g = self.program.defs.get(f + rule)
                if g is not None:
                    own = {p: n for p, n in zip(g.xs, sizes, strict=False) if n is not None}
                    self.made[name + rule] = _Rewriter(self, own).definition(g, name + rule)
        return self.known[f, sizes]


class _Rewriter:
    """One definition, with numbers for some dimensions."""

    def __init__(self, run: _Instances, at: Mapping[ir.Var, int]) -> None:
        self.run = run
        self.numbers = at
        self.vars: dict[ir.Var, ir.Var] = {}
        self.changed = False

    def definition(self, d: ir.Def, name: str) -> ir.Def:
        """The definition under a name; itself, if nothing differs."""
        params = tuple(map(self.binder, d.params))
        body = self.block(d.body)
        if not self.changed and name == d.name:
            return d
        used = set(ir.occurrences(body))
        idle = [p for p in params if p in self.numbers and p not in used]
        dropped = [ir.Let((), ir.drop(*idle))] if idle else []
        ts, us = (tuple(map(self.type, zone)) for zone in (d.results, d.lresults))
        made = ir.Def(name, params, ts, us, ir.Block((*dropped, *body.bindings), body.leaf))
        return self.placed(d, made)

    def placed(self, old: Any, new: Any) -> Any:
        """What stands where the old one stood."""
        if old in self.run.places:
            self.run.places[new] = self.run.places[old]
        return new

    def type(self, t: Any) -> Any:
        """A type with the numbers."""
        return with_dims(t, self.numbers)

    def binder(self, v: ir.Var) -> ir.Var:
        """A variable of the type with the numbers."""
        t = self.type(v.type)
        if t != v.type:
            self.changed = True
            self.vars[v] = ir.Var(v.name, t, v.linear)
        return self.at(v)

    def at(self, v: ir.Var) -> ir.Var:
        """The variable that stands for another one."""
        return self.vars.get(v, v)

    def block(self, block: ir.Block) -> ir.Block:
        """The bindings and the leaf."""
        made: list[ir.Binding] = []
        for b in block.bindings:
            if isinstance(b, ir.Unpack):
                arg = self.at(b.arg)
                found: ir.Binding = ir.Unpack(tuple(map(self.binder, b.vars)), arg)
            else:
                rhs = self.expression(b.rhs)
                found = ir.Let(tuple(map(self.binder, b.vars)), rhs)
            made.append(self.placed(b, found))
        found_block = ir.Block(tuple(made), self.leaf(block.leaf))
        gone = {v for v in mentioned(block) - mentioned(found_block) if v in self.numbers}
        kept = [b for b in made if not (isinstance(b, ir.Let) and gone.intersection(b.vars))]
        return ir.Block(tuple(kept), found_block.leaf)

    def expression(self, e: ir.Leaf | ir.Block) -> ir.Leaf | ir.Block:
        """A leaf or a block."""
        return self.block(e) if isinstance(e, ir.Block) else self.leaf(e)

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf on variables of these types."""
        if isinstance(e, ir.Drop):
            made: ir.Leaf = ir.Drop((), self.expression(e.body))
        elif isinstance(e, ir.Applied):
            made = self.applied(e)
        elif isinstance(e, ir.Prim):
            params = self.params(e.params)
            self.changed = self.changed or params != e.params
            made = ir.Prim(e.args, e.primitive, params).renamed(self.at)
        elif isinstance(e, ir.Zero):
            made = ir.Zero((), self.type(e.type), e.linear)
        elif isinstance(e, ir.Inj):
            made = ir.Inj(tuple(map(self.at, e.args)), e.tag, self.type(e.type))
        else:
            made = e.renamed(self.at)
        return self.placed(e, made)

    def applied(self, e: ir.Applied) -> ir.Leaf:
        """What is applied at sizes that are numbers: the instances."""
        defs = self.run.program.defs
        named: dict[str, str] = {}
        for f, formals, args in e.zipped(defs):
            of = matching(formals, args)
            dims = {p: self.numbers[of[p]] for p in self.run.program.dims(f)
                    if of.get(p) in self.numbers}  # fmt: skip
            if dims:
                named[f] = self.run.of(f, dims)
        n = getattr(e, "n", None)
        self.changed = self.changed or bool(named) or n in self.numbers
        made = e.renamed(self.at).with_length(self.numbers)
        return made.on(made.args, tuple([named.get(f, f) for f in e.functions]))

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters, where sizes are numbers; a position stays what it is."""
        return {k: self.size(v, k == ir.PLACE) for k, v in params.items()}

    def size(self, value: Any, place: bool) -> Any:
        """A number for a variable that says how large something is."""
        if isinstance(value, ir.Var):
            return value if place else self.numbers.get(value, value)
        if type(value) is tuple:
            return tuple([self.size(v, place) for v in value])
        if isinstance(value, slice):
            parts: Sequence[Any] = (value.start, value.stop, value.step)
            return slice(*[self.size(v, False) for v in parts])
        return value

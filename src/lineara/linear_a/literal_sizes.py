"""Literal sizes: a number that stands where a dimension does makes an instance of the definition.

    def g(n: i64, x: f64[n];) -> (f64[n];) = …          g(5_i64, x;)

is a call of `g'5(n: i64, x: f64[5];) -> (f64[5];)`, which is made once a number, as are those of
what g applies to n.  Types then mention formals and numbers only; n keeps its place as an argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineara.facts.hints import Tree
from lineara.facts.types import Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import matching, with_dims
from lineara.linear_a.program import Program

RULES = (".jvp", ".t", ".e")  # what a program may say of a definition under its name


def with_instances(program: Program, numbers: Mapping[ir.Var, int]) -> Program:
    """The program, where variables that are bound to numbers are no dimensions any more."""
    if not numbers:
        return program
    run = _Instances(program)
    defs = {name: _Instance(run, numbers).instance(d, name) for name, d in program.defs.items()}
    if all([defs[name] is d for name, d in program.defs.items()]):
        return program
    return Program(program.types, {**run.made, **defs}, run.places, program.text, program.file)


def _reads(block: ir.Block) -> set[ir.Var]:
    return {*block.leaf.operands(), *[v for b in block.bindings for v in ir.reads(b)]}


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
                    self.made[name + rule] = _Instance(self, own).instance(g, name + rule)
        return self.known[f, sizes]


class _Instance(ir.Mapped):
    """One definition, with numbers for some dimensions."""

    def __init__(self, run: _Instances, at: Mapping[ir.Var, int]) -> None:
        super().__init__()
        self.run = run
        self.numbers = at
        self.changed = False

    def instance(self, d: ir.Def, name: str) -> ir.Def:
        """The definition under a name; d, if nothing differs."""
        made = self.definition(d)
        if not self.changed and name == d.name:
            return d
        body = made.body
        used = set(ir.occurrences(body))
        idle = [p for p in made.params if p in self.numbers and p not in used]
        dropped = [ir.Let((), ir.drop(*idle))] if idle else []
        body = ir.Block((*dropped, *body.bindings), body.leaf)
        return self.placed(d, replace(made, name=name, body=body))

    def placed(self, old: object, new: object) -> Any:
        """`new` with the place in the text that `old` has."""
        if old in self.run.places:
            self.run.places[new] = self.run.places[old]
        return new

    def type(self, t: Type) -> Type:
        """A type with the numbers."""
        made = with_dims(t, self.numbers)
        self.changed = self.changed or made != t
        return made

    def block(self, block: ir.Block) -> ir.Block:
        """A block; literals that only were dimensions are left out."""
        made = super().block(block)
        gone = {v for v in _reads(block) - _reads(made) if v in self.numbers}
        kept = [b for b in made.bindings if not (isinstance(b, ir.Let) and gone & {*b.vars})]
        return ir.Block(tuple(kept), made.leaf)

    def binding(self, b: ir.Binding) -> None:
        """Append the binding, which keeps its place in the text."""
        super().binding(b)
        self.placed(b, self.out[-1])

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf on variables of these types."""
        if not isinstance(e, ir.Prim):
            return self.placed(e, super().leaf(e))
        params = self.params(e.params)
        self.changed = self.changed or params != e.params
        return self.placed(e, ir.Prim(e.args, e.primitive, params).renamed(self.at))

    def application(self, e: ir.Application) -> ir.Leaf:
        """A call, branch or loop at sizes that are numbers applies the instances."""
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

    def size(self, value: Tree, place: bool) -> Any:
        """A number for a variable that says how large something is."""
        if isinstance(value, ir.Var):
            return value if place else self.numbers.get(value, value)
        if type(value) is tuple:
            return tuple([self.size(v, place) for v in value])
        if isinstance(value, slice):
            parts: Sequence[Any] = (value.start, value.stop, value.step)
            return slice(*[self.size(v, False) for v in parts])
        return value

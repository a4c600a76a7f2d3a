"""A program with other names for definitions and types; what it means is the same.

A pass keeps what it makes under names of its own, and takes what has such a name for what it would
make.  Derived definitions that become source, of which only some are kept, need other names.
"""

from collections.abc import Callable
from typing import Any

from lineara.facts.types import ArrayType, Family, Named, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program

Renamed = Callable[[str], str]


def rename(program: Program, names: Renamed) -> Program:
    """The program in which every definition and every named type has its new name.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("type T = <f64> def f(x: T;) -> (T;) = x def g(x: T;) -> (T;) = f(x;)")
    >>> print(rename(p, lambda name: name * 2).defs["gg"].body.leaf.functions)
    ('ff',)
    """
    one = _Rename(names)
    types = {names(k): one.stated(t) for k, t in program.types.items()}
    return Program(types, {names(k): one.definition(d) for k, d in program.defs.items()})


class _Rename:
    """The new names, and the variables whose types have them."""

    def __init__(self, names: Renamed) -> None:
        self.names = names
        self.vars: dict[ir.Var, ir.Var] = {}

    def stated(self, t: Type | Family) -> Type | Family:
        """What a name stands for."""
        return Family(t.dims, self.type(t.type)) if isinstance(t, Family) else self.type(t)

    def type(self, t: Type) -> Type:
        """A type."""
        if isinstance(t, ArrayType):
            return t
        if isinstance(t, Named):
            return Named(self.names(t.name), t.dims)
        return t._replace(items=tuple(map(self.type, t.items)))

    def definition(self, d: ir.Def) -> ir.Def:
        """A definition."""
        results, lresults = (tuple(map(self.type, ts)) for ts in (d.results, d.lresults))
        body = self.block(d.body)
        return ir.Def(self.names(d.name), self.all(d.params), results, lresults, body)

    def var(self, v: ir.Var) -> ir.Var:
        """A variable; one whose type is as before is as before."""
        if v not in self.vars:
            t = self.type(v.type)
            self.vars[v] = v if t == v.type else ir.Var(v.name, t, v.linear)
        return self.vars[v]

    def all(self, found: ir.Vars) -> ir.Vars:
        """Variables."""
        return tuple(map(self.var, found))

    def block(self, block: ir.Block) -> ir.Block:
        """A block."""
        found: list[ir.Binding] = [
            ir.Unpack(self.all(b.vars), self.var(b.arg))
            if isinstance(b, ir.Unpack)
            else ir.Let(self.all(b.vars), self.expression(b.rhs))
            for b in block.bindings
        ]
        return ir.Block(tuple(found), self.leaf(block.leaf))

    def expression(self, e: ir.Leaf | ir.Block) -> Any:
        """A right-hand side."""
        return self.block(e) if isinstance(e, ir.Block) else self.leaf(e)

    def leaf(self, e: ir.Leaf) -> Any:
        """A leaf."""
        match e:
            case ir.Drop():
                return ir.Drop((), self.expression(e.body))
            case ir.Zero():
                return ir.Zero((), self.type(e.type), e.linear)
            case ir.Inj():
                return ir.Inj(self.all(e.args), e.tag, self.type(e.type))
            case ir.Applied():
                found = e.renamed(self.var)
                return found.on(found.args, tuple(map(self.names, found.functions)))
        return e.renamed(self.var)


__all__ = ["rename"]

"""A program with other names for definitions and types; what it means is the same.

A pass keeps what it makes under names of its own, and takes what has such a name for what it would
make.  Derived definitions that become source, of which only some are kept, need other names.
"""

from collections.abc import Callable

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


class _Rename(ir.Mapped):
    """The new names, and the variables whose types have them."""

    def __init__(self, names: Renamed) -> None:
        super().__init__()
        self.names = names

    def stated(self, t: Type | Family) -> Type | Family:
        """The renamed type that a name stands for."""
        return Family(t.dims, self.type(t.type)) if isinstance(t, Family) else self.type(t)

    def type(self, t: Type) -> Type:
        """A type about the new names."""
        if isinstance(t, ArrayType):
            return t
        if isinstance(t, Named):
            return Named(self.names(t.name), t.dims)
        return t._replace(items=tuple(map(self.type, t.items)))

    def function(self, name: str) -> str:
        """The new name of a definition."""
        return self.names(name)


__all__ = ["rename"]

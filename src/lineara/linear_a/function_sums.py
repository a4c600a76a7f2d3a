"""Functions as values of a program: a sum of what they captured, and a definition for each.

    a function          inj[i, fn](<captured>)
    f x                 case f of f1 | .. | fn with (x)
    the i-th function   def fi(env, x) = let <captured> = env in ...

The calculus and the diagrams are written so.  Which functions stand in one sum, and what becomes of
a derivative, each says for itself.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lineara.facts.types import Named, Product, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case


class FunctionSum(NamedTuple):
    """The sum of the functions that may meet one call; `definitions` has one for each."""

    name: str
    definitions: tuple[str, ...]

    @property
    def type(self) -> Named:
        """The type of a function of the sum."""
        return Named(self.name)

    def inject(self, i: int, environment: ir.Var) -> ir.Inj:
        """The i-th function, with what it has captured."""
        return ir.Inj((environment,), i, self.type)

    def apply(self, args: ir.Vars) -> Case:
        """The call of a function, the first of the arguments, on the others."""
        return Case(args, self.definitions)


class Body:
    """The bindings of one definition, as they are written."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.names: ir.Names = ir.Names(taken)
        self.bindings: list[ir.Binding] = []

    def several(self, likes: Sequence[str], types: Sequence[Type], leaf: ir.Leaf) -> ir.Vars:
        """The variables that the results of a leaf are bound to."""
        pairs = zip(likes, types, strict=True)
        results = tuple([ir.Var(self.names(like), t) for like, t in pairs])
        self.bindings.append(ir.Let(results, leaf))
        return results

    def bind(self, like: str, t: Type, leaf: ir.Leaf) -> ir.Var:
        """The variable that a leaf with one result is bound to."""
        return self.several((like,), (t,), leaf)[0]

    def pack(self, like: str, parts: Sequence[ir.Var]) -> ir.Var:
        """The product of several."""
        return self.bind(like, Product(tuple([v.type for v in parts])), ir.Tup(tuple(parts)))

    def unpack(self, likes: Sequence[str], whole: ir.Var) -> ir.Vars:
        """The parts of a product."""
        assert isinstance(whole.type, Product), f"{whole.type} is no product"
        pairs = zip(likes, whole.type.items, strict=True)
        parts = tuple([ir.Var(self.names(like), t) for like, t in pairs])
        self.bindings.append(ir.Unpack(parts, whole))
        return parts

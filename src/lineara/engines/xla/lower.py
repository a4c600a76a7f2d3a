"""A definition as one function of JAX: the program is walked once, on JAX's tracers.

    [[ let (xs) = e in b ]] env  =  [[ b ]] env, xs = [[ e ]] env

What is known while the program is walked is calculated by NumPy there and then: sizes, constants,
branches that constants choose.  Linear variables are as others; `dup` costs nothing and `drop` is
not evaluated.

JAX raises and prints nothing while it calculates.  So a run that meets what may be an exception, or
an effect, is in `doubt`, one flag that loops and branches hand on; the interpreter then tells what
there is to tell.
"""

from collections.abc import Sequence
from typing import Any

from lineara.engines.values import Tagged
from lineara.engines.xla import forms, operations
from lineara.engines.xla.values import is_known
from lineara.engines.xla.walk import Env, Walk
from lineara.errors import ProgramError
from lineara.facts.hints import Tree
from lineara.facts.types import ArrayType, Type, is_ring, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import with_dims
from lineara.linear_a.program import Program


class OpenSize(ProgramError):
    """A size that depends on values."""


class Lowering(Walk):
    """A walk through definitions and blocks."""

    def enter(self, name: str, values: Sequence[Any]) -> list[Any]:
        """The results of a definition."""
        if name in self.entered and None in self.entered[self.entered.index(name) :]:
            raise ProgramError(
                f"{name} calls itself as values have it, and XLA has no calls that do; leave "
                "engine= out, or write the recursion as a loop"
            )
        d = self.program.defs[name]
        env = Env(zip(d.params, values, strict=True))
        env.dims = {v: self.size(env[v], name, v) for v in self.program.dims(name)}
        env.written = self.written(d)
        self.entered.append(name)
        results = self.block(d.body, env, (*d.results, *d.lresults))
        self.entered.pop()
        return results

    def written(self, d: ir.Def) -> set[ir.Var]:
        """The variables of a definition that are arrays of which it writes a part."""
        known = self.program.noted["written"]
        if d.name not in known:
            parts = [e for e in ir.leaves(d.body) if isinstance(e, ir.Accum | ir.Put)]
            known[d.name] = {e.args[0] for e in parts}
        return known[d.name]

    def size(self, value: Tree, name: str, v: ir.Var) -> int:
        """A dimension as a number."""
        if not is_known(value):
            raise OpenSize(
                f"{v!r} is a size in {name} and depends on values, but XLA has to know all sizes; "
                "leave engine= out, or make it follow from the shapes of the arguments"
            )
        return int(value)  # type: ignore[call-overload]

    def block(self, block: ir.Block, env: Env, types: Sequence[Type]) -> list[Any]:
        """The bindings in order, then the values of the leaf, which have the types."""
        for b in block.bindings:
            if isinstance(b, ir.Unpack):
                values: Any = env[b.arg]
            else:
                values = self.expression(b.rhs, env, [v.type for v in b.vars])
            env.update(zip(b.vars, values, strict=True))
        return self.expression(block.leaf, env, types)

    def expression(self, e: ir.Leaf | ir.Block, env: Env, types: Sequence[Type]) -> list[Any]:
        """The values of a leaf or a block, which have the types."""
        if isinstance(e, ir.Block):
            return self.block(e, env, types)
        if isinstance(e, ir.Drop):
            return self.drop(e, env)
        types = [with_dims(t, env.dims) for t in types]
        args = [env[a] for a in e.args]
        if isinstance(e, ir.Application):
            return forms.applied(self, e.with_length(env.dims), args)
        return list(self.leaf(e, args, env, types))

    def drop(self, e: ir.Drop, env: Env) -> list[Any]:
        """Nothing; what may end in an exception is evaluated for that."""
        if self.program.may_raise(ir.Let((), e)) or self.program.may_act(ir.Let((), e)):
            self.expression(e.body, env, ())
        return []

    def leaf(self, e: ir.Leaf, args: list[Any], env: Env, types: Sequence[Type]) -> Sequence[Any]:
        """The values of a leaf that applies no definition."""
        match e:
            case ir.Prim():
                return (operations.primitive(self, e, args, env, types[0]),)
            case ir.Read():
                at = ir.renamed_params(e.at, env.__getitem__)
                return operations.read(self, args[0], at, True), args[0]
            case ir.Accum():
                at = ir.renamed_params(e.at, env.__getitem__)
                return (operations.accumulated(self, args[0], at, args[1]),)
            case ir.Put():
                at = ir.renamed_params(e.at, env.__getitem__)
                return (operations.put(self, args[0], at, *args[1:]),)
            case ir.Ret() | ir.Copy():
                return args
            case ir.Dup():
                return args * 2
            case ir.Lit(value=value):
                return (value,)
            case ir.Tup():
                return (tuple(args),)
            case ir.Zero():
                return (self.shapes().zero(types[0]),)
            case ir.Inj(tag=tag):
                return (Tagged(tag, args[0]),)
            case ir.Proj(tag=tag):
                return (args[0].payload if isinstance(args[0], Tagged) else args[0].payloads[tag],)
        raise AssertionError(type(e).__name__)


def why_not(program: Program, name: str) -> str | None:
    """Why XLA does not take a definition, as far as its text tells."""
    d = program.defs[name]
    for t in (*[v.type for v in d.params], *d.results, *d.lresults):
        if any([not isinstance(leaf, ArrayType) for leaf in program.leaves(t)]):
            return f"a value of the type {show(t)} goes in or out"
    for f in program.reached(name):
        d = program.defs[f]
        for t in (*[v.type for v in ir.binders(d)], *d.results):
            if any([is_ring(leaf) for leaf in program.leaves(t)]):
                return f"{f} has a value of the type {show(t)}, which is no number of a machine"
    return None


def loops_that_keep(program: Program, name: str) -> list[ir.Leaf]:
    """The loops without a length that keep what their rounds give."""
    return [
        e
        for f in program.reached(name)
        for e in ir.applications(program.defs[f].body)
        if forms.keeps(program, e)
    ]


__all__ = ["Lowering", "OpenSize", "loops_that_keep", "why_not"]

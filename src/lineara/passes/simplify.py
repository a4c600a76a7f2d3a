"""Simplification:  the same results, bit by bit, and never more work.

    blocks                 { let .. in e } is flattened into the block around it
    copies                 let a = (y;), let ~b = ~a: the name goes
    products               let p = <x, y> in let <u, v> = p: u is x, v is y
    common subexpressions  a non-linear leaf on the same variables is computed once
    zeros                  ~a + 0 = ~a, x * 0 = 0, so are read and dup of 0; accum of 0 is ~a
    algebra                x * 1, x / 1, x - 0, x + (-0), -(-x), and 1 * ~a: exact for signed
                           zeros, infinities and NaN.  x + 0 is not (-0 + 0 is 0), nor is anything
                           complex, where 1 has an imaginary part.  x to the power 1; where(k, x, y)
    constants              sums, products and comparisons of whole numbers
    dead code              what is only dropped, and the drops; a drop of a linear result becomes
                           drops of what it is made from, where that is no more work

A linear zero is one symbol to the evaluator, so that the rules for zeros are exact as well.  Calls,
branches and loops stay as they are, and definitions keep their types.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.types import ArrayType, Type, is_complex
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.cost import cells, weight, work
from lineara.linear_a.dimensions import dims_in, mentioned
from lineara.linear_a.program import Program
from lineara.linear_a.same_leaves import key_of
from lineara.passes.unzip import flat

UNCHANGING = ("reshape", "broadcast_to", "astype")  # where type and dtype stay as they are
KEEPS = {"multiply": 1.0, "divide": 1.0, "subtract": 0.0, "add": -0.0, "power": 1.0}
"""What changes nothing on the right; on the left neither, where the operation commutes."""
COMMUTE = ("multiply", "add")
FOLDED = ("add", "subtract", "multiply", "negative", "equal", "not_equal", "less", "greater")
"""What is exact on whole numbers in every ring that has them."""
WHOLE = 2**31


@uncollected
def simplify(program: Program, *names: str) -> Program:
    """The program with these definitions simplified, or all of them.

    >>> from lineara.linear_a.parse import parse
    >>> text = "def f(x: f64; ~a: f64) -> (; f64) = let y = x * 1.0 in let ~z = zero[f64] in "
    >>> print(simplify(parse(text + "let ~b = y * ~a in ~b + ~z")))
    def f(x: f64; ~a: f64) -> (; f64) =
      x * ~a
    <BLANKLINE>
    """
    for name in names:
        if name not in program.defs:
            raise ProgramError(f"simplify: there is no definition {name}")
    chosen = names or tuple(program.defs)
    return program.with_(*[_Simplify(program, program.defs[name]).definition() for name in chosen])


class _Simplify:
    """One definition."""

    def __init__(self, program: Program, d: ir.Def) -> None:
        self.program = program
        self.d = d
        self.names = ir.Names([v.name for v in ir.binders(d)])
        self.at: dict[ir.Var, ir.Var] = {}  # what stands for a variable
        self.zeros: set[ir.Var] = set()  # linear variables that are zero, and not bound yet
        self.made: dict[ir.Var, ir.Leaf] = {}  # what non-linear variables, and linear products, are
        self.known: dict[Any, tuple[ir.Var, ...]] = {}
        self.out: list[ir.Binding] = []
        self.products: dict[ir.Var, ir.Binding] = {}  # where linear products are bound
        self.gone: set[ir.Binding] = set()
        self.dropped: dict[ir.Var, None] = {}
        self.line = ""  # the user's, of the binding at hand
        self.saved = 0  # work of what is gone, at least, less that of new drops

    def definition(self) -> ir.Def:
        """The simplified definition; the old one where drops would cost more than they save."""
        d = self.d
        self.block(d.body)
        self.line = ir.line_of(self.last)
        results = [self.fresh("r", t, False) for t in d.results]
        results += [self.fresh("r", t, True) for t in d.lresults]
        self.let(results, self.last)  # named, so that the rules apply to the leaf too
        leaf = self.operands(self.renamed(ir.Ret(tuple(results))))
        bindings = self.live(self.out, leaf)
        if self.saved < 0:
            return d
        body = flat(bindings, leaf.renamed(self.find))
        if isinstance(body.leaf, ir.Ret) and len(body.leaf.args) == 1:
            body = ir.Block(body.bindings, ir.Copy(body.leaf.args))
        return ir.Def(d.name, d.params, d.results, d.lresults, body)

    def fresh(self, like: str, v: Any, linear: bool) -> ir.Var:
        """A variable with a name that is free."""
        return ir.Var(self.names(like), v, linear, self.line)

    def find(self, v: ir.Var) -> ir.Var:
        """The variable that a variable is finally replaced by."""
        while v in self.at:
            v = self.at[v]
        return v

    def renamed(self, e: ir.Leaf) -> ir.Leaf:
        """The leaf with its variables replaced by those that stand for them."""
        for v in e.operands():
            if v in self.at:
                return e.renamed(self.find)
        return e

    # --- forward ------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> None:
        """The bindings, flattened; the leaf is kept in `last`."""
        for b in block.bindings:
            self.line = ir.line_of(b)
            if isinstance(b, ir.Unpack):
                self.unpack(b)
            else:
                self.let(b.vars, b.rhs)
        self.last: ir.Leaf = block.leaf

    def let(self, binders: Sequence[ir.Var], e: ir.Leaf | ir.Block) -> None:
        """One binding, whatever its right-hand side."""
        if isinstance(e, ir.Block):
            self.block(e)
            e = self.last
        if isinstance(e, ir.Drop):
            self.drop(e.body)
            return
        e = self.renamed(e)
        if isinstance(e, ir.Ret | ir.Copy):
            self.at.update(zip(binders, e.args, strict=True))
        elif any([v.linear for v in (*binders, *e.args)]):
            self.linear(tuple(binders), e)
        else:
            self.nonlinear(tuple(binders), e)

    def drop(self, e: ir.Leaf | ir.Block) -> None:
        """The variables that a drop forgets; an expression without a name is bound first."""
        if isinstance(e, ir.Block):
            self.block(e)
            e = self.last
        if isinstance(e, ir.Drop):
            self.drop(e.body)
            return
        if isinstance(e, ir.Ret | ir.Copy):
            dropped = [self.find(v) for v in e.args]
        else:
            ts, us = type_of_leaf(self.program, e)
            dropped = [self.fresh("u", t, False) for t in ts] + [
                self.fresh("u", t, True) for t in us
            ]
            self.let(dropped, e)
            dropped = [self.find(v) for v in dropped]
        for v in dropped:
            if not v.linear:
                self.saved += cells(self.program, v.type)
            elif v in self.zeros:
                self.saved += self.weight(v)
            else:
                self.dropped[v] = None

    def unpack(self, b: ir.Unpack) -> None:
        """A product that was built here is not taken apart."""
        arg = self.find(b.arg)
        held = self.made.get(arg)
        if isinstance(held, ir.Tup):
            if arg.linear:
                self.gone.add(self.products[arg])
            self.at.update(zip(b.vars, held.args, strict=True))
            return
        if arg in self.zeros:
            self.zeros.update(b.vars)
            return
        key = (ir.Unpack, arg)
        if key in self.known:
            self.at.update(zip(b.vars, self.known[key], strict=True))
            return
        self.known[key] = b.vars
        self.out.append(ir.Unpack(b.vars, arg))

    def nonlinear(self, binders: tuple[ir.Var, ...], e: ir.Leaf) -> None:
        """Write a non-linear leaf, unless it equals an operand or a leaf that is already bound."""
        same = self.same(binders, e)
        if same is not None:
            self.at[binders[0]] = same
            self.saved += self.work(e, binders)
            return
        folded = self.folded(binders, e)
        if folded is not None:
            self.saved += self.work(e, binders)
            e = folded
        key = None if self.program.may_act(ir.Let(binders, e)) else key_of(e)
        if key is not None:
            known = self.known.get(key)
            if known is not None:
                self.at.update(zip(binders, known, strict=True))
                self.saved += self.work(e, binders)
                return
            self.known[key] = binders
        if len(binders) == 1:
            self.made[binders[0]] = e
        self.out.append(ir.Let(binders, e))

    def same(self, binders: tuple[ir.Var, ...], e: ir.Leaf) -> ir.Var | None:
        """The operand that the leaf is equal to, bit by bit."""
        if not isinstance(e, ir.Prim):
            return None
        (y,), x = binders, e.args[0]
        if e.name in KEEPS and not is_complex(y.type):
            for x, k in (e.args, e.args[::-1])[: 1 + (e.name in COMMUTE)]:
                if y.type == x.type and self.is_neutral(e.name, k, y.type):
                    return x
        elif y.type == x.type and e.name in UNCHANGING:
            return x
        elif e.name == "where" and isinstance(held := self.made.get(x), ir.Lit):
            chosen = e.args[1 if held.value else 2]
            return chosen if chosen.type == y.type else None
        elif e.name == "negative":
            inner = self.made.get(x)
            if isinstance(inner, ir.Prim) and inner.name == "negative":
                return inner.args[0]
        return None

    def folded(self, binders: tuple[ir.Var, ...], e: ir.Leaf) -> ir.Lit | None:
        """The whole number, or the truth, that a leaf is where its operands are whole numbers."""
        if not isinstance(e, ir.Prim) or e.name not in FOLDED:
            return None
        numbers = []
        for v in e.args:
            held, t = self.made.get(v), v.type
            if not isinstance(held, ir.Lit) or not isinstance(t, ArrayType):
                return None
            if t.shape or t.dtype.kind not in "fi":
                return None
            numbers.append(np.asarray(held.value, t.dtype)[()])
        with np.errstate(over="ignore"):  # of few bits
            value = e.primitive.evaluate(np, *numbers)
        whole = all([abs(k) < WHOLE and k == int(k) for k in (*numbers, value)])
        weak = value.dtype in (float, int, bool)  # a number of Python's is of these
        return ir.lit(value.item() if weak else value, binders[0].type) if whole else None

    def is_neutral(self, name: str, k: ir.Var, t: Type) -> bool:
        """Whether a number on the right of an operation changes nothing; t is the result's type."""
        held = self.made.get(k)
        if not isinstance(held, ir.Lit):
            return False
        assert isinstance(t, ArrayType)
        value = np.asarray(held.value, t.dtype)  # an integer 0 is a float's 0.0, and not its -0.0
        if value.size == 0:
            return False
        wanted = KEEPS[name]
        if value.dtype.kind != "f":
            return bool((value == int(wanted)).all())  # a quotient of integers has another type
        return bool((value == wanted).all() and (np.signbit(value) == np.signbit(wanted)).all())

    def is_unit(self, k: ir.Var, y: ir.Var) -> bool:
        """Whether a factor is 1, of a value that holds real numbers only."""
        if not self.is_neutral("multiply", k, k.type):
            return False
        leaves = self.program.leaves(y.type)
        return all([isinstance(t, ArrayType) and t.dtype.kind == "f" for t in leaves])

    # --- linear code --------------------------------------------------------------------------

    def linear(self, binders: tuple[ir.Var, ...], e: ir.Leaf) -> None:
        """Zeros go through; what is left is written, with its zeros made."""
        zeros = [a for a in e.args if a in self.zeros]
        if isinstance(e, ir.Zero) or (zeros and self.of_zeros(binders, e, zeros)):
            self.zeros.update(binders if isinstance(e, ir.Zero) else ())
            return
        if isinstance(e, ir.Prim):
            (y,) = binders
            unit = e.name == "multiply" and self.is_unit(e.args[0], y)
            if unit or (e.name in UNCHANGING and y.type == e.args[0].type):
                self.at[y] = e.args[-1]
                self.saved += self.work(e, binders)
                return
        e = self.operands(e)
        made = ir.Let(binders, e)
        if isinstance(e, ir.Tup):
            self.made[binders[0]] = e
            self.products[binders[0]] = made
        self.out.append(made)

    def of_zeros(self, binders: tuple[ir.Var, ...], e: ir.Leaf, zeros: Sequence[ir.Var]) -> bool:
        """Whether a leaf on zeros is zero, or one of its operands; if so that is noted."""
        linear = [a for a in e.args if a.linear]
        if isinstance(e, ir.Prim) and e.name == "add":
            self.at[binders[0]] = next((a for a in linear if a not in zeros), linear[0])
        elif isinstance(e, ir.Accum) and e.args[1] in zeros:
            self.at[binders[0]] = e.args[0]
        elif isinstance(e, ir.Prim | ir.Dup | ir.Read | ir.Proj | ir.Tup) and len(zeros) == len(
            linear
        ):
            self.zeros.update(binders)
        else:
            return False
        self.saved += self.work(e, binders)
        return True

    def operands(self, e: ir.Leaf) -> ir.Leaf:
        """The leaf, with the zeros that it reads bound before it."""
        for v in e.args:
            if v in self.zeros:
                self.zeros.discard(v)  # it is bound, and may come back from a product
                self.out.append(ir.Let((v,), ir.zero(v.type)))
        return e

    # --- backward -----------------------------------------------------------------------------

    def live(self, bindings: Sequence[ir.Binding], leaf: ir.Leaf) -> list[ir.Binding]:
        """The bindings that the leaf needs; what is left over is dropped where it is bound."""
        needed = set(leaf.operands())
        dropped = self.dropped
        kept: list[ir.Binding] = []
        for b in reversed([b for b in bindings if b not in self.gone]):
            args = ir.reads(b)
            dead = [v for v in b.vars if (v in dropped if v.linear else v not in needed)]
            if len(dead) == len(b.vars) and self.may_go(b, args):
                dropped.update(dict.fromkeys(args))
                continue
            if dead and isinstance(b, ir.Let) and isinstance(b.rhs, ir.Dup):
                (other,) = [v for v in b.vars if v not in dropped]
                self.saved += self.weight(other)
                self.at[other] = args[0]
                continue
            self.forget(dead, kept)
            kept.append(b)
            needed.update(args)
        needed.update(mentioned(replace(self.d, body=ir.Block(tuple(kept), leaf))))
        self.forget(
            [p for p in self.d.params if (p in dropped if p.linear else p not in needed)], kept
        )
        return [self.final(b) for b in reversed(kept)]

    def forget(self, dead: Sequence[ir.Var], kept: list[ir.Binding]) -> None:
        """Drops, one a variable."""
        for v in dead:
            kept.append(ir.Let((), ir.drop(v)))
            self.saved -= 0 if v.linear else cells(self.program, v.type)

    def may_go(self, b: ir.Binding, args: Sequence[ir.Var]) -> bool:
        """Whether an unneeded binding is removed; its linear operands are then dropped."""
        if self.program.may_raise(b):
            return False
        saved = 0 if isinstance(b, ir.Unpack) else self.work(b.rhs, b.vars)  # type: ignore[arg-type]
        linear = [a for a in args if a.linear]
        if any(dims_in([a.type for a in linear])):  # the cheaper one is known for copies only
            return isinstance(b, ir.Let) and isinstance(b.rhs, ir.Dup)
        saved += sum([self.weight(v) for v in b.vars if v.linear])
        saved -= sum([self.weight(a) for a in linear])
        if saved < 0:
            return False
        self.saved += saved
        return True

    def final(self, b: ir.Binding) -> ir.Binding:
        """The binding with its variables replaced by those that now stand for them."""
        if isinstance(b, ir.Unpack):
            return ir.Unpack(b.vars, self.find(b.arg))
        assert isinstance(b.rhs, ir.Leaf)
        return ir.Let(b.vars, self.renamed(b.rhs))

    def weight(self, v: ir.Var) -> int:
        """A lower bound of a linear variable's size: 0 if a dimension is not known."""
        return 0 if any(dims_in(v.type)) else weight(self.program, v)

    def work(self, e: ir.Leaf, binders: Sequence[ir.Var]) -> int:
        """A lower bound of a leaf's work: 0 for calls and for dimensions that are not known."""
        if not isinstance(e, ir.Prim | ir.Part) or any(
            dims_in([v.type for v in (*e.args, *binders)])
        ):
            return 0
        return work(self.program, e, binders[0].type)

"""Random well-typed programs of Linear A, drawn choice by choice so that failures shrink.

Zero is always the simplest choice: no further binding, the newest variable, the type f64.  A block
is made in one of three zones: N has nothing linear, L has linear results only (Linear B), M both.
"""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from random_forms import BOOL, I64, SUMS, F, Forms

from lineara import ops as _ops  # noqa: F401  the primitives declare themselves
from lineara.engines import Tagged
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Named, Product, Stack, Sum, Type
from lineara.linear_a.calls import Call
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.dimensions import result_type, with_dims
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Accum,
    Binding,
    Block,
    Copy,
    Def,
    Drop,
    Dup,
    Inj,
    Leaf,
    Let,
    Names,
    Prim,
    Put,
    Read,
    Ret,
    Tup,
    Unpack,
    Var,
    drop,
    lit,
    occurrences,
    zero,
)

DEFS, BINDINGS, DEPTH = 4, 12, 2
PAIR = Product((F, F))
CORE = (F, F, F, PAIR, Product(), Product((F,)), Product((PAIR, F)), Product((Product(), F)),
        Product((F, PAIR), ("a", "b")), Named("pair"))  # fmt: skip
UNARY = ("sin", "cos", "tanh", "exp", "negative")
BINARY = ("multiply", "add", "subtract")
DIVIDING = ("divide", "reciprocal")
LITERALS = (1.0, 0.5, -0.75, 2.0, 0.0)
SHAPES = ((3,), (2, 3), (2,), (1,), (3, 2), (2, 2))
DTYPES = tuple(np.dtype(d) for d in ("f8", "f8", "f8", "f4", "c16"))


class Case(NamedTuple):
    """A program, the definition that is looked at, and where its arguments come from."""

    program: Program
    name: str
    seed: int

    def __repr__(self) -> str:
        return f"the program and the test\n\n{as_test(self)}"


def as_test(case: Case) -> str:
    """A test that can be pasted into a file of tests."""
    d = case.program.defs[case.name]
    values = ", ".join(f"{p!r} = {v!r}" for p, v in zip(d.params, arguments(case), strict=True))
    text = "\n".join(f"    {line}".rstrip() for line in str(case.program).splitlines())
    return (
        f"def test_found():\n    program = parse('''\n{text}\n    ''')\n"
        f"    # {values or 'no arguments'}\n"
        f"    prove(Case(program, {case.name!r}, {case.seed}))\n"
    )


def arguments(case: Case, offset: int = 0) -> list[Any]:
    """Arguments of the definition: numbers between -1.5 and 1.5."""
    return drawn(case.program, case.name, random.Random(case.seed + 1000 * offset))


def drawn(program: Program, name: str, rng: random.Random) -> list[Any]:
    """Arguments of a definition; dimensions are 1, 2 or 3."""
    at = {v: rng.randrange(1, 4) for v in program.dims(name)}
    params = program.defs[name].params
    return [at[p] if p in at else value(program, with_dims(p.type, at), rng) for p in params]


def value(program: Program, t: Type, rng: random.Random) -> Any:
    """A value of a type."""
    t = program.unfold(t)
    if isinstance(t, Sum):
        tag = rng.randrange(len(t.items))
        return Tagged(tag, value(program, t.items[tag], rng))
    if isinstance(t, Product):
        return tuple([value(program, s, rng) for s in t.items])
    assert isinstance(t, ArrayType)
    drawn = {
        "b": lambda: rng.random() < 0.5,
        "i": lambda: rng.randrange(2),
        "c": lambda: complex(rng.uniform(-1.5, 1.5), rng.uniform(-1.5, 1.5)),
    }.get(t.dtype.kind, lambda: rng.uniform(-1.5, 1.5))
    found = np.array([drawn() for _ in range(t.size)], t.dtype).reshape(t.shape)
    return found if t.shape else found[()]


@functools.cache
def _below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


@st.composite
def cases(
    draw: Any, zones: str = "NML", arrays: bool = False, scalar: bool = False,
    control: bool = False, dims: bool = False,
) -> Case:  # fmt: skip
    """Programs whose last definition is in one of the zones.

    `arrays` makes some of the variables arrays, `scalar` gives the last definition one number as
    its result, `control` adds branches, tagged sums, loops and recursion, and `dims` gives every
    definition a dimension and arrays of that length.
    """

    def pick(n: int) -> int:
        return draw(_below(n)) if n > 1 else 0

    maker = _Maker(pick, arrays, dims, control)
    for i in range(pick(DEFS - control)):
        maker.definition(f"f{i}", "NML"[pick(3)])
        if control:
            maker.form(i)
    maker.definition("f", zones[pick(len(zones))], scalar)
    return Case(maker.shown(), "f", pick(1 << 16))


class _Maker(Forms):
    """A program in the making."""

    def __init__(self, pick: Callable[[int], int], arrays: bool, dims: bool, control: bool) -> None:
        super().__init__()
        self.pick = pick
        self.arrays = arrays
        self.control = control
        self.n = Var("n", I64) if dims else None
        self.shapes = [(self.n,), (2, self.n), (self.n, self.n), (3,)] if dims else [*SHAPES]
        self.zones: dict[str, str] = {}
        self.program = Program({"pair": PAIR}, {})
        self.names = Names()
        self.scope: list[Var] = []
        self.used: set[Var] = set()

    # --- choices ---------------------------------------------------------------------------

    def newest(self, choices: Sequence[Any]) -> Any:
        """One of them; the last one is the simplest."""
        return choices[-1 - self.pick(len(choices))]

    def type(self) -> Type:
        """A type whose values move, or the unit, or (with arrays) anything."""
        if self.n is not None and self.pick(2):
            return ArrayType(self.shapes[self.pick(4)], np.dtype(float))
        if self.arrays and self.pick(2):
            shape = ((), *SHAPES)[self.pick(1 + len(SHAPES))]
            return ArrayType(shape, DTYPES[self.pick(len(DTYPES))])
        return CORE[self.pick(len(CORE))]

    def fresh(self, like: str, t: Type, linear: bool = False) -> Var:
        return Var(self.names(like), t, linear)

    def same(self, s: Type, t: Type) -> bool:
        return self.program.same(s, t)

    def of_type(self, t: Type) -> list[Var]:
        return [v for v in self.scope if self.same(v.type, t)]

    def arrays_of(self, kinds: str) -> list[Var]:
        """The numbers and arrays in scope of these kinds of dtype."""
        return [
            v for v in self.scope if isinstance(v.type, ArrayType) and v.type.dtype.kind in kinds
        ]

    # --- definitions -----------------------------------------------------------------------

    def definition(self, name: str, zone: str, scalar: bool = False) -> None:
        """One more definition, which may call the earlier ones."""
        self.names, self.scope, self.used = Names("n" * (self.n is not None)), [], set()
        xs = [self.fresh("x", self.type()) for _ in range(self.pick(4))]
        if self.n is not None:
            xs.append(self.fresh("x", ArrayType((self.n,), F.dtype)))
        if self.arrays and self.pick(4) == 1:
            xs.append(self.fresh("i", (I64, BOOL)[self.pick(2)]))
        if self.control and name != "f" and self.pick(4) == 1:
            xs.append(self.fresh("s", SUMS[self.pick(len(SUMS))]))
        us = (
            [] if zone == "N" else [self.fresh("a", self.type(), True) for _ in range(self.pick(4))]
        )
        body = self.block(zone, 0, xs, us, scalar)
        found = type_of_leaf(self.program, body.leaf)
        self.finished(Def(name, (*xs, *us), found.xs, found.lxs, body))
        self.zones[name] = zone

    def shaped(
        self, name: str, zone: str, params: Sequence[Type], lparams: Sequence[Type],
        wanted: tuple[Sequence[Type], Sequence[Type]], lead: Sequence[Type] = (),
    ) -> None:  # fmt: skip
        """A definition of a given type; what `lead` has stands before the dimension."""
        self.names, self.scope, self.used = Names("n" * (self.n is not None)), [], set()
        xs = [self.fresh("x", t) for t in (*lead, *params)]
        us = [self.fresh("a", t, True) for t in lparams]
        body = self.block(zone, 0, xs, us, wanted)
        made = Def(name, (*xs, *us), tuple(wanted[0]), tuple(wanted[1]), body)
        self.finished(made, len(lead))

    def finished(self, d: Def, lead: int = 0) -> None:
        """A definition with its dimension among the formals; if it has none, it is dropped."""
        if self.n is not None:
            d = replace(d, params=(*d.params[:lead], self.n, *d.params[lead:]))
            if self.n not in self.program.with_(d).dims(d.name):
                unread = Let((), drop(self.n))
                d = replace(d, body=Block((unread, *d.body.bindings), d.body.leaf))
        self.program = self.program.with_(d)

    def shown(self) -> Program:
        """The program; of f no result has a tag or a length that only a run can tell."""
        d = self.program.defs["f"]
        if not any(map(self.hidden, d.results)):
            return self.program
        names = Names([p.name for p in d.params])
        rs = [Var(names("x"), t) for t in d.results]
        lrs = [Var(names("a"), t, True) for t in d.lresults]
        kept = [r for r in rs if not self.hidden(r.type)]
        body = Block(
            (
                Let((*rs, *lrs), Call(d.params, ("inner",))),
                Let((), drop(*[r for r in rs if r not in kept])),
            ),
            Ret((*kept, *lrs)),
        )
        inner, f = replace(d, name="inner"), replace(d, results=(), body=body)
        f = replace(f, results=tuple([r.type for r in kept]))
        defs = {k: v for k, v in self.program.defs.items() if k != "f"}
        return Program(self.program.types, {**defs, "inner": inner, "f": f})

    def hidden(self, t: Type) -> bool:
        """Whether there is a sum or a stack in a type."""
        return any(isinstance(s, Sum | Stack) for s in self.program.leaves(t))

    def block(self, zone: str, depth: int, own: list[Var], us: list[Var], scalar=False) -> Block:
        """A block that uses up what it owns: `own` at least once, `us` exactly once."""
        mark, own, us = len(self.scope), list(own), list(us)
        self.scope += own
        made: list[Binding] = []
        while len(made) < BINDINGS and self.pick(6):
            self.binding(zone, depth, own, us, made)
        leaf = self.ending(zone, own, us, made, scalar)
        self.used.update(leaf.operands())
        left = [v for v in own if v not in self.used]
        if len(left) > 1 and self.pick(2):
            made.append(Let((), drop(*left)))
        else:
            made += [Let((), drop(v)) for v in left]
        self.used.update(left)
        del self.scope[mark:]
        return Block(tuple(made), leaf)

    # --- bindings --------------------------------------------------------------------------

    def bind(self, rhs: Leaf | Block, own: list[Var], us: list[Var], made: list[Binding]) -> None:
        """A binding of all the results of a right-hand side."""
        last = rhs
        while isinstance(last, Block):
            last = last.leaf
        ts, lts = ((), ()) if isinstance(last, Drop) else type_of_leaf(self.program, last)
        self.used.update(v for v in occurrences(rhs))
        xs = [self.fresh("x", t) for t in ts]
        lxs = [self.fresh("a", t, True) for t in lts]
        made.append(Let((*xs, *lxs), rhs))
        own += xs
        self.scope += xs
        us += lxs

    def binding(self, zone: str, depth: int, own: list, us: list, made: list[Binding]) -> None:
        """One of the forms of bindings; what a leaf needs may be bound before it."""
        linear = zone != "N" and self.pick(3 if zone == "M" else 4)
        kind = self.pick(10)
        if kind == 1 and depth < DEPTH:
            inner = zone if zone != "M" else "MNL"[self.pick(3)]
            inner = "N" if zone == "L" and not linear else inner
            taken = [us.pop(self.pick(len(us))) for _ in range(self.pick(len(us) + 1))] if (
                inner != "N"
            ) else []  # fmt: skip
            body = self.block(inner, depth + 1, [], taken)
            self.bind(Drop((), body) if self.pick(4) == 1 else body, own, us, made)
        elif kind == 2:
            self.unpack(linear, own, us, made)
        elif kind == 3:
            self.forget(linear, us, made)
        elif linear:
            self.bind(self.linear_leaf(us, own, made), own, us, made)
        else:
            self.bind(self.leaf(own, made), own, us, made)

    def unpack(self, linear: Any, own: list, us: list, made: list[Binding]) -> None:
        """A product is taken apart."""
        products = [
            v for v in (us if linear else self.scope)
            if isinstance(self.program.unfold(v.type), Product)
        ]  # fmt: skip
        if products:
            whole = self.newest(products)
        else:
            t = CORE[3 + self.pick(len(CORE) - 3)]
            whole = self.take(t, us, made) if linear else self.supply(t, own, made)
        parts = [
            self.fresh("a" if linear else "x", t, bool(linear))
            for t in self.program.unfold(whole.type).items  # type: ignore[union-attr]
        ]
        made.append(Unpack(tuple(parts), whole))
        if linear:
            if whole in us:
                us.remove(whole)
            us += parts
        else:
            self.used.add(whole)
            own += parts
            self.scope += parts

    def forget(self, linear: Any, us: list, made: list[Binding]) -> None:
        """drop of variables, or of a leaf."""
        if linear and us:
            gone = [us.pop(self.pick(len(us)))]
            xs = [self.newest(self.scope)] if self.scope and self.pick(3) == 1 else []
            made.append(Let((), drop(*xs, *gone)))
            self.used.update(xs)
        elif self.scope:
            own: list[Var] = []
            e = drop(self.newest(self.scope)) if self.pick(2) == 0 else (
                Drop((), self.leaf(own, made))
            )  # fmt: skip
            self.used.update(e.operands())
            made.append(Let((), e))
            made += [Let((), drop(v)) for v in own if v not in self.used]
            self.scope = [v for v in self.scope if v not in own]

    # --- what is needed ---------------------------------------------------------------------

    def supply(self, t: Type, own: list[Var], made: list[Binding]) -> Var:
        """A non-linear variable of a type: one that there is, or a constant."""
        there = self.of_type(t)
        if there and self.pick(8) != 1:
            return self.newest(there)
        u = self.program.unfold(t)
        if isinstance(u, Sum):
            tag = self.pick(len(u.items))
            e: Leaf = Inj((self.supply(u.items[tag], own, made),), tag, t)
        elif isinstance(u, Product):
            e = Tup(tuple([self.supply(s, own, made) for s in u.items]), False, u.fields)
        elif self.n in getattr(u, "shape", ()):
            x = self.supply(ArrayType((), u.dtype), own, made)  # type: ignore[union-attr]
            e = Prim((x,), op("broadcast_to"), {"shape": u.shape})  # type: ignore[union-attr]
        else:
            assert isinstance(u, ArrayType)
            e = self.literal(u)
        self.used.update(e.operands())
        x = self.fresh("x", t)
        made.append(Let((x,), e))
        own.append(x)
        self.scope.append(x)
        return x

    def literal(self, t: ArrayType) -> Leaf:
        """A constant of a type."""
        if t.dtype.kind in "bi":
            return lit(np.full(t.shape, self.pick(2), t.dtype)[()], t)
        first = LITERALS[self.pick(len(LITERALS))]
        found = np.resize(np.array([first, 1.0, -0.5], t.dtype), t.size).reshape(t.shape)
        return lit(found if t.shape else t.dtype.type(first), t)

    def take(self, t: Type, us: list[Var], made: list[Binding]) -> Var:
        """A linear variable of a type, which is gone then: one that there is, or a zero."""
        there = [a for a in us if self.same(a.type, t)]
        if there and self.pick(8) != 1:
            a = self.newest(there)
            us.remove(a)
            return a
        a = self.fresh("a", t, True)
        made.append(Let((a,), zero(t)))
        return a

    # --- non-linear leaves ------------------------------------------------------------------

    def leaf(self, own: list[Var], made: list[Binding]) -> Leaf:
        """A non-linear leaf."""
        kind = self.pick(12)
        if kind == 1:
            return lit(np.float64(LITERALS[self.pick(len(LITERALS))]), F)
        if kind == 2:
            return self.tup(self.scope, False)
        if kind == 3:
            callees = [f for f, zone in self.zones.items() if zone == "N"]
            if callees:
                return self.call(self.newest(callees), own, [], made)
        if kind == 4 and self.scope:
            xs = [self.newest(self.scope) for _ in range(self.pick(3) + 1)]
            return Copy((xs[0],)) if len(xs) == 1 and self.pick(2) else Ret(tuple(xs))
        if kind == 5:
            return zero(self.moving(), linear=False)
        if (self.arrays or self.n is not None) and kind > 7:
            return self.array_leaf(own, made)
        if self.arrays and kind == 7:  # numbers of other kinds
            t = ArrayType((), DTYPES[-1 - self.pick(2)])
            x = self.supply(t, own, made)
            if self.pick(3) == 1:
                return Prim((x,), op(UNARY[self.pick(len(UNARY))]))
            p = op((*BINARY, "divide")[self.pick(4)])
            return Prim((x, x if self.pick(4) == 1 else self.supply(t, own, made)), p)
        if kind < 8:
            p = op(BINARY[self.pick(3)])
            x = self.number(own, made)
            y = x if self.pick(4) == 1 else self.number(own, made)
            return Prim((x, y), p)
        p = op((*UNARY, *DIVIDING[1:])[self.pick(6)])
        if p.name == "reciprocal":
            return Prim((self.number(own, made), self.number(own, made)), op("divide"))
        return Prim((self.number(own, made),), p)

    def moving(self) -> Type:
        """A type whose values form a vector space."""
        return self.type()

    def number(self, own: list[Var], made: list[Binding]) -> Var:
        return self.supply(F, own, made)

    def tup(self, from_: Sequence[Var], linear: bool) -> Leaf:
        """A tuple or a record of depth two at most, the unit among them."""
        small = [v for v in from_ if self.height(v.type) < 2]
        xs: list[Var] = []
        for _ in range(self.pick(4) if small else 0):
            if not linear or len(xs) < len(small):
                x = self.newest([v for v in small if not linear or v not in xs])
                xs.append(x)
        if linear:
            for x in xs:
                from_.remove(x)  # type: ignore[attr-defined]
        fields = tuple("abc"[: len(xs)]) if xs and self.pick(5) == 1 else None
        return Tup(tuple(xs), linear, fields)

    def height(self, t: Type) -> int:
        t = self.program.unfold(t)
        return 1 + max(map(self.height, t.items), default=0) if isinstance(t, Product) else 0

    # --- linear leaves ----------------------------------------------------------------------

    def linear_leaf(self, us: list[Var], own: list[Var], made: list[Binding]) -> Leaf:
        """A leaf with linear results; it may have non-linear ones as well if it is a call."""
        kind = self.pick(11)
        if kind == 1:
            return zero(self.moving())
        if kind == 2:
            return self.tup(us, True)
        if kind == 3:
            callees = [f for f, zone in self.zones.items() if zone == "L"]
            if callees:
                return self.call(self.newest(callees), own, us, made)
        if kind == 4 and us:
            taken = [us.pop(self.pick(len(us))) for _ in range(1 + self.pick(2)) if us]
            return Copy((taken[0],)) if len(taken) == 1 and self.pick(2) else Ret(tuple(taken))
        if kind in (5, 6):
            return Dup((self.some(us, made),))
        if (self.arrays or self.n is not None) and kind > 8:
            return self.linear_array_leaf(us, own, made)
        a = self.some(us, made)
        if kind in (7, 8):
            return Prim((a, self.take(a.type, us, made)), op("add"))
        if not self.program.has_scalars(a.type) or any(
            isinstance(t, Sum | Stack) for t in self.program.leaves(a.type)
        ):
            return Copy((a,))
        x = self.factor(a.type, own, made)
        return Prim((x, a), op("multiply"))

    def factor(self, t: Type, own: list[Var], made: list[Binding]) -> Var:
        """A number that scales a value of the type."""
        kinds = {u.dtype for u in self.program.leaves(t)}  # type: ignore[union-attr]
        if kinds <= {np.dtype(float), np.dtype(complex)}:
            return self.number(own, made)
        return self.supply(ArrayType((), min(kinds, key=lambda k: k.itemsize)), own, made)

    def some(self, us: list[Var], made: list[Binding]) -> Var:
        """A linear variable, which is gone then."""
        if us and self.pick(8) != 1:
            return us.pop(-1 - self.pick(len(us)))
        return self.take(self.moving(), us, made)

    # --- arrays: the leaves of programs with arrays -------------------------------------------

    def array_type(self) -> ArrayType:
        """The type of an array."""
        dtype = F.dtype if self.n is not None else DTYPES[self.pick(len(DTYPES))]
        return ArrayType(self.shapes[self.pick(len(self.shapes))], dtype)

    def array(self, own: list[Var], made: list[Binding]) -> Var:
        """A non-linear array."""
        there = [v for v in self.arrays_of("fc") if v.type.shape]  # type: ignore[union-attr]
        if there and self.pick(8) != 1:
            return self.newest(there)
        return self.supply(self.array_type(), own, made)

    def like(self, x: Var, own: list[Var], made: list[Binding]) -> Var:
        """An array of the type of another, or the same."""
        return x if self.pick(4) == 1 else self.supply(x.type, own, made)

    def array_leaf(self, own: list[Var], made: list[Binding]) -> Leaf:
        """A primitive on arrays."""
        x = self.array(own, made)
        t = x.type
        assert isinstance(t, ArrayType)
        kind = self.pick(13)
        if kind == 0:
            return Prim((x,), op(UNARY[self.pick(len(UNARY))]))
        if kind == 1:
            return Prim((x, self.like(x, own, made)), op(BINARY[self.pick(3)]))
        if kind == 2:
            k = self.supply(ArrayType((), t.dtype), own, made)
            return Prim((k, x)[:: 1 - 2 * self.pick(2)], op((*BINARY, "divide")[self.pick(4)]))
        if kind == 3:
            y = self.like(x, own, made)
            return Prim((self.mask(t, own, made), x, y), op("where"))
        if kind == 4:
            return self.product(x, own, made, False)
        if kind == 5 and self.n is None:  # the rules of products need numbers
            name = ("prod", "max")[self.pick(2)] if t.dtype.kind == "f" else "prod"
            return Prim((x,), op(name), self.along(t))
        if kind == 6 and t.dtype.kind == "c":
            return Prim((x,), op(("conj", "real", "imag")[self.pick(3)]))
        if kind == 7:
            put = self.pick(2)
            at = self.position(t, not put)
            y = self.supply(_part(t, at), own, made)
            return (Accum, Put)[put]((x, y), at)
        if kind == 8 and self.n is None:  # n + n has no name
            return Prim((x, self.like(x, own, made)), op("concat"), {"axis": 0})
        if kind == 9:
            return Prim((x,), op("index"), {"at": self.position(t)})
        return self.moved(x, kind)

    def moved(self, x: Var, kind: int) -> Leaf:
        """What sums or moves the elements of one array, linear or not."""
        t = x.type
        assert isinstance(t, ArrayType)
        choice = self.pick(6)
        if choice == 0:
            return Prim((x,), op("sum"), self.along(t))
        if choice == 1:
            return Prim((x,), op("cumsum"), {"axis": self.pick(t.ndim)})
        if choice == 2 and (self.n is None or t.ndim == 1):  # n * n has no name
            shape = (t.size,) if t.ndim > 1 else (1, *t.shape)
            return Prim((x,), op("reshape"), {"shape": shape})
        if choice == 3:
            return Prim((x,), op("permute_dims"), {"axes": tuple(range(t.ndim))[::-1]})
        if choice == 4:
            return Prim((x,), op("broadcast_to"), {"shape": (2, *t.shape)})
        wide = np.dtype(complex if t.dtype.kind == "c" else float)
        return Prim((x,), op("astype"), {"dtype": wide})

    def along(self, t: ArrayType) -> dict[str, Any]:
        """All axes, or one of them."""
        i = self.pick(t.ndim + 1)
        return {"axis": tuple(range(t.ndim)) if not i else (i - 1,), "keepdims": bool(self.pick(2))}

    def position(self, t: ArrayType, twice: bool = True) -> tuple[Any, ...]:
        """An index: a number, a part, a known position, several positions, one of them twice."""
        if t.shape[0] == 0:  # no number is a position
            return (slice(None, None, -1),)
        at = [0, slice(1, None), slice(None, None, -1), np.array([-1, 0])]
        if twice or t.shape[0] in (1, self.n):
            at[-1] = np.array([0, 0, -1]) if twice else -1
        if t.shape[0] is self.n:
            at[1] = slice(0, 1)
        elif t.shape[0] > 1:
            at += [v for v in self.scope if v.type == I64][:2]
        found = at[self.pick(len(at))]
        self.used.update([found] if isinstance(found, Var) else ())
        return (found,)

    def mask(self, t: ArrayType, own: list[Var], made: list[Binding]) -> Var:
        """A condition for each element, from a comparison."""
        u = ArrayType(t.shape, np.dtype(float))
        x, y = self.supply(u, own, made), self.supply(u, own, made)
        self.used.update((x, y))
        c = self.fresh("c", ArrayType(t.shape, BOOL.dtype))
        made.append(Let((c,), Prim((x, y), op("greater"))))
        own.append(c)
        self.scope.append(c)
        return c

    def product(self, x: Var, own: list[Var], made: list[Binding], linear: bool) -> Leaf:
        """A product of matrices or vectors; x stands on one side."""
        t = x.type
        assert isinstance(t, ArrayType)
        if self.pick(2):
            other = self.supply(ArrayType((*t.shape[-1:], 2), t.dtype), own, made)
            return Prim((x, other), op("matmul"))
        n = t.shape[-2:][0]
        shape = (n,) if self.pick(2) else (2, n)
        return Prim((self.supply(ArrayType(shape, t.dtype), own, made), x), op("matmul"))

    def linear_array_leaf(self, us: list[Var], own: list[Var], made: list[Binding]) -> Leaf:
        """A linear map on arrays."""
        there = [a for a in us if isinstance(a.type, ArrayType) and a.type.shape]
        if there and self.pick(8) != 1:
            a = self.newest(there)
            us.remove(a)
        else:
            a = self.take(self.array_type(), us, made)
        t = a.type
        assert isinstance(t, ArrayType)
        kind = self.pick(11)
        if kind == 0:
            return Prim((self.supply(t, own, made), a), op("multiply"))
        if kind == 1:
            return Read((a,), self.position(t))
        if kind in (2, 3):
            at = self.position(t, kind == 2)
            y = self.take(_part(t, at), us, made)
            return (Accum, Put)[kind - 2]((a, y), at)
        if kind == 4:
            c = self.mask(t, own, made)
            return Prim((c, a, self.take(t, us, made)), op("where"))
        if kind == 5:
            return self.product(a, own, made, True)
        if kind == 6 and t.dtype.kind == "c":
            return Prim((a,), op(("conj", "real", "imag")[self.pick(3)]))
        if kind == 7 and self.n is None:
            return Prim((a, self.take(t, us, made)), op("concat"), {"axis": 0})
        if kind == 8:
            return Prim((a,), op("index"), {"at": self.position(t)})
        return self.moved(a, kind)

    # --- endings ----------------------------------------------------------------------------

    def ending(
        self, zone: str, own: list[Var], us: list[Var], made: list[Binding], scalar: Any
    ) -> Leaf:
        """The leaf with the results; the linear variables that are left go in it."""
        if isinstance(scalar, tuple):
            xs = [self.supply(t, own, made) for t in scalar[0]]
            lxs = [self.take(t, us, made) for t in scalar[1]]
            made += [Let((), drop(a)) for a in us]
            return Ret((*xs, *lxs))
        if scalar and zone == "N":
            fresh = [v for v in own if v.type == F and v not in self.used]
            return Copy((self.newest(fresh),)) if fresh else Prim(
                (self.number(own, made), self.number(own, made)), op(BINARY[self.pick(3)])
            )  # fmt: skip
        if zone == "N":
            if self.pick(3) == 1:
                return self.leaf(own, made)
            unused = [v for v in own if v not in self.used]
            xs = [v for v in unused if self.pick(4)]
            xs += [self.newest(self.scope) for _ in range(self.pick(2)) if self.scope]
            return Ret(tuple(xs))
        if self.pick(3) == 1:
            callees = [f for f, z in self.zones.items() if z == "M" and zone == "M"]
            e = self.linear_leaf(us, own, made) if not callees or self.pick(2) else (
                self.call(self.newest(callees), own, us, made)
            )  # fmt: skip
            made += [Let((), drop(a)) for a in us]
            return e
        gone = [a for a in us if self.pick(4) == 1]
        made += [Let((), drop(a)) for a in gone]
        lxs = [a for a in us if a not in gone]
        if len(lxs) > 1 and self.pick(2):
            lxs = lxs[::-1]
        unused = [v for v in own if v not in self.used] if zone == "M" else []
        return Ret((*[v for v in unused if self.pick(4)], *lxs))


def _part(t: ArrayType, at: tuple[Any, ...]) -> ArrayType:
    """The type of a part of an array; a variable in the index counts as a number."""
    plain = tuple([0 if isinstance(p, Var) else p for p in at])
    return result_type(op("index"), [t], {"at": plain})

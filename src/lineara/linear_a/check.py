"""The checker:  P; G; D |- e : (ts ; us), one function a judgement, in linear time.

A non-linear variable is used at least once and a linear one exactly once; every binder has a name
of its own in its definition and stores its type.  What is accepted denotes a linear map in its
linear inputs  [YOLO, §3].
"""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lineara.errors import LinearaError, ProgramError, described
from lineara.facts.gc_pause import uncollected
from lineara.facts.hints import Tree
from lineara.facts.primitive import Elementwise, Linear, Multilinear
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Family, Named, Product, Sum, Type, is_ring, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import (
    dims_in,
    is_index,
    matching,
    mentioned_by,
    result_type,
    with_dims,
)
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_binding, show_leaf
from lineara.linear_a.syntax import Leaf
from lineara.text.language import did_you_mean
from lineara.text.source_location import Place
from lineara.text.source_location import located as shown_at

Types = tuple[Type, ...]
DEPTH = 100  # of blocks within blocks


class Typing(NamedTuple):
    """(ts ; us)."""

    xs: Types
    lxs: Types


@uncollected
def check(program: Program) -> Program:
    """The program itself, if every definition is well typed; else a ProgramError.

    >>> from lineara.linear_a.parse import parse
    >>> _ = check(parse("def f(x: f64;) -> (f64;) = sin(x)"))
    >>> from lineara.errors import ProgramError
    >>> try:
    ...     check(parse("def f(; ~a: f64) -> (; f64) = ~a + ~a"))
    ... except ProgramError as error:
    ...     print(error)
    1:36: ~a is used again, but a linear variable is used exactly once; dup(~a) makes two of it
      def f(; ~a: f64) -> (; f64) = ~a + ~a
                                         ^
    """
    for name, t in program.types.items():
        judge = Judge(program, name)
        judge.dims = set(t.dims) if isinstance(t, Family) else set()
        judge.well_formed(program.stated(name))
        if endless(program, name):
            raise ProgramError(ENDLESS.format(name))
    for d in program.defs.values():
        check_def(program, d)
    return program


def check_def(program: Program, d: ir.Def) -> None:
    """TypeDef: the body has the stated results and uses exactly the formals."""
    judge = Judge(program, d.name)
    judge.at = d
    judge.dims = set(filter(is_index, d.xs))
    for i, p in enumerate(d.params):
        judge.bind(p, d, i)
    for t in (*d.results, *d.lresults):
        judge.well_formed(t)
    typing = judge.block(d.body)
    for stated, got in ((d.results, typing.xs), (d.lresults, typing.lxs)):
        if len(stated) != len(got) or not all(map(program.same, stated, got)):
            judge.wrong(
                f"the results of {d.name} are stated as {show_zones(d.results, d.lresults)}, but "
                f"its body has {show_zones(*typing)}; let the two agree",
                d.body.leaf,
            )
    judge.close(d.params, d)


def type_of_leaf(program: Program, leaf: ir.Leaf, where: str = "") -> Typing:
    """The types of the results of a leaf, from the types that its variables store."""
    return Judge(program, where).leaf(leaf)


def counted(n: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "argument"), counted(0, "argument")
    ('1 argument', '0 arguments')
    """
    return f"{n} {word}{'s' * (n != 1)}"


def show_zones(xs: Iterable[Type], lxs: Iterable[Type]) -> str:
    """Types as they stand in a definition.

    >>> from lineara.facts.types import UNIT
    >>> show_zones([], [UNIT])
    '(; <>)'
    """
    left, right = ", ".join(map(show, xs)), ", ".join(map(show, lxs))
    return f"({left};{' ' * bool(right)}{right})"


class Judge:
    """The judgements about one definition, and the environment so far."""

    def __init__(
        self, program: Program, name: str, known: dict[Any, ArrayType] | None = None
    ) -> None:
        self.program = program
        self.name = name
        self.known: dict[Any, ArrayType] = (
            {} if known is None else known
        )  # of primitives, by their argument types
        self.scope: set[ir.Var] = set()
        self.used: set[ir.Var] = set()  # linear ones too: once is all they may
        self.names: set[str] = set()
        self.depth: int = 0
        self.at: Any = None  # the binding or leaf that is being judged
        self.dims: set[Any] | None = None  # what dimensions may be, if that is judged
        self.numbers: dict[Any, int] = {}  # what a text binds to numbers, before it has instances

    # --- errors ----------------------------------------------------------------------------

    def wrong(
        self, message: str, at: Any = None, which: int = -1, kind: type[ProgramError] = ProgramError
    ) -> NoReturn:
        """Raise the error about a leaf, a binding or a definition, and one of its variables."""
        at = self.at if at is None else at
        if at is None:
            raise kind(f"in {self.name}: {message}")
        places = self.program.places.get(at, ())
        if places:
            place = places[min(which + 1, len(places) - 1)]
            raise kind(located(self.program, place, message))
        text, caret = self._equation(at, which)
        where = f"in {self.name}: " if self.name else ""
        said = f"{where}{message}\n  {text}\n  {' ' * caret}^" if text else message
        raise kind(said, self.users_line(at) if isinstance(at, ir.Leaf) else "")

    def users_line(self, e: Leaf) -> str:
        """`model.py:12: y = x[i]`, where it is known of what a run may stop at."""
        if not ir.may_fail(e):
            return ""
        lines = [ir.users_line(e, d.body) for d in self.program.defs.values()]
        return described(next(filter(None, lines), ""))

    def too_deep(self) -> RecursionError:
        """The error of a recursion that is too deep, with the lines of calls that lead back."""
        lines = [
            ir.line_of(b) for d in self.program.defs.values() for block in ir.blocks(d.body)
            for b in block.bindings if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Application)
            and d.name in self.program.reached(*b.rhs.functions)
        ]  # fmt: skip
        told = [f"\n  at {described(line)}" for line in dict.fromkeys(lines) if line]
        return RecursionError("maximum recursion depth exceeded in a program" + "".join(told))

    def _equation(self, at: Leaf, which: int) -> tuple[str, int]:
        """The equation as it prints, on one line, and where the variable stands in it."""
        if isinstance(at, ir.Def):
            return f"def {at.name}", 4
        if isinstance(at, ir.Leaf):
            text = " ".join(show_leaf(at).split())
            args = at.args
        else:
            text = " ".join(show_binding(at).split())
            args = at.vars
        if not 0 <= which < len(args):
            return text, 0
        column = last = 0
        for a in args[: which + 1]:
            position = text.find(repr(a), column)
            column = position if position >= 0 else column
            last, column = column, column + 1
        return text, last

    # --- the environment --------------------------------------------------------------------

    def bind(self, v: ir.Var, at: object, which: int = -1) -> None:
        """A binder enters the environment."""
        if v.name in self.names:
            self.wrong(f"{v!r} is bound twice in {self.name}; give one another name", at, which)
        self.well_formed(v.type)
        if v.linear and not self.program.is_linear(v.type):
            self.wrong(
                f"{v!r} is linear, but {show(v.type)} is not a vector space; only floating and "
                "complex numbers and products of them are: make it non-linear",
                at,
                which,
            )
        self.names.add(v.name)
        self.scope.add(v)

    def use(self, args: Sequence[ir.Var], at: object) -> None:
        """Occurrences of variables: the only one, where the variable is linear."""
        for i, v in enumerate(args):
            if v not in self.scope:
                self.wrong(
                    f"{v!r} is not known here; bind it before, or take it as an argument", at, i
                )
            if v.linear and v in self.used:
                self.wrong(
                    f"{v!r} is used again, but a linear variable is used exactly once; "
                    f"dup({v!r}) makes two of it",
                    at,
                    i,
                )
            self.used.add(v)

    def close(self, binders: Sequence[ir.Var], at: object = None) -> None:
        """Binders leave the environment; each was used."""
        for i, v in enumerate(binders):
            if v not in self.used:
                times = "exactly once" if v.linear else "at least once"
                self.wrong(f"{v!r} is never used; use it {times}, or drop({v!r})", at, i)
            self.scope.discard(v)

    def well_formed(self, t: Type) -> None:
        """Every name in a type is defined; its dimensions are formals, which count as used."""
        self.dimensions(dims_in(t))
        open_ = [t]
        while open_:
            t = open_.pop()
            if isinstance(t, Named):
                if t.name not in self.program.types:
                    self.wrong(f"there is no type {t.name}; define it: type {t.name} = …")
                stated = self.program.types[t.name]
                known = len(stated.dims) if isinstance(stated, Family) else 0
                if len(t.dims) != known:
                    self.wrong(f"{t.name} has {known} dimensions, not {len(t.dims)}: {show(t)}")
            elif not isinstance(t, ArrayType):
                open_ += t.items
            elif is_ring(t) and t.shape:
                self.wrong(
                    f"{show(t)} is an array of elements of a ring; a product or a stack of them "
                    "has several: <object, object>"
                )

    def dimensions(self, variables: Iterable[ir.Var]) -> None:
        """Variables that stand for dimensions: i64 formals, which count as used."""
        if self.dims is None:
            return
        for v in variables:
            if v not in self.dims:
                self.wrong(
                    f"{v!r} is the dimension of a type, but no i64 formal of {self.name}; take it "
                    f"as an argument: {v.name}: i64"
                )
            self.used.add(v)

    # --- blocks -------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> Typing:
        """TypeLet, TypeUnpack, TypeLUnpack and the leaf at the end."""
        self.depth += 1
        if self.depth > DEPTH:
            self.wrong(f"blocks lie in each other deeper than {DEPTH}; make one a definition")
        for b in block.bindings:
            self.at = b
            self.binding(b)
        self.at = block.leaf
        typing = self.expression(block.leaf)
        for b in reversed(block.bindings):
            self.close(b.vars, b)
        self.depth -= 1
        return typing

    def binding(self, b: ir.Binding) -> None:
        """The binders have the types of what they are bound to."""
        if isinstance(b, ir.Unpack):
            self.use((b.arg,), b)
            types: Types = self.items(b)
            zones = [(tuple(b.vars), types)]
        else:
            typing = self.expression(b.rhs)
            self.at = b
            split = [tuple([v for v in b.vars if v.linear is k]) for k in (False, True)]
            zones = list(zip(split, typing, strict=True))
        for binders, types in zones:
            if len(binders) != len(types):
                self.wrong(
                    f"{len(binders)} names for {len(types)} values; bind each value once: "
                    f"{', '.join(map(show, types)) or 'there is none'}",
                    b,
                )
            for v, t in zip(binders, types, strict=True):
                if not self.program.same(v.type, t):
                    self.wrong(
                        f"{v!r} is said to be {show(v.type)}, but is {show(t)}; "
                        f"write {v!r}: {show(t)}",
                        b,
                        b.vars.index(v),
                    )
        for i, v in enumerate(b.vars):
            self.bind(v, b, i)

    def items(self, b: ir.Unpack) -> Types:
        """The components of the product that is taken apart."""
        t = self.program.unfold(b.arg.type)
        if not isinstance(t, Product):
            self.wrong(f"{b.arg!r} is no product but {show(t)}; only a product has components", b)
        assert isinstance(t, Product)
        if any(v.linear is not b.arg.linear for v in b.vars):
            self.wrong(f"the parts of {b.arg!r} are in its own zone: all linear, or none", b)
        return t.items

    def expression(self, e: ir.Leaf | ir.Block) -> Typing:
        """A leaf or a block."""
        if isinstance(e, ir.Block):
            return self.block(e)
        if isinstance(e, ir.Drop):
            self.expression(e.body)
            return Typing((), ())
        self.use(e.operands(), e)
        self.dimensions(mentioned_by(e))
        if isinstance(e, ir.Application) and self.dims is not None:
            self.application(e)
        return self.leaf(e)

    def application(self, e: ir.Application) -> None:
        """An argument that a callee uses as a dimension is one here, the same in every round."""
        for f, formals, args in e.zipped(self.program.defs):
            at = matching(formals, args)
            for p in self.program.dims(f):
                if p not in at:
                    self.wrong(
                        f"{p!r} is a dimension in {f}, which is the same in every round and under "
                        "every alternative: it stands among the arguments that do not change",
                        e,
                    )
                if at[p] is not None:  # a size that is computed
                    self.dimensions([at[p]])

    # --- leaves -------------------------------------------------------------------------------

    def leaf(self, e: ir.Leaf) -> Typing:
        """The types of the results, from the types of the operands."""
        rule = _RULES.get(type(e))
        if rule is None:
            assert isinstance(e, ir.Application)
            return Typing(*e.result(self))
        typing = rule(self, e)
        return typing if isinstance(typing, Typing) else self._zoned(typing, e)

    def _zoned(self, t: Type, e: ir.Leaf) -> Typing:
        """One result, in the zone of the arguments."""
        return Typing((), (t,)) if any(a.linear for a in e.args) else Typing((t,), ())

    def definition(self, name: str, at: Leaf) -> ir.Def:
        """The definition of that name."""
        if name not in self.program.defs:
            near = did_you_mean(name, self.program.defs)
            self.wrong(f"there is no definition {name}{near}", at)
        return self.program.defs[name]

    def fits(self, at: Leaf, what: str, formals: Sequence[ir.Var], args: Sequence[ir.Var]) -> None:
        """The arguments have the types and zones of the formals, about the dimensions given."""
        dims: dict[ir.Var, Any] = {}
        for linear, zone in ((False, "non-linear"), (True, "linear")):
            want = [p for p in formals if p.linear is linear]
            got = [a for a in args if a.linear is linear]
            if len(want) != len(got):
                self.wrong(
                    f"{what} takes {counted(len(want), f'{zone} argument')} "
                    f"({', '.join(show(p.type) for p in want)}), not {len(got)}",
                    at,
                )
            if not linear:
                dims = matching(want, got)
                dims |= {want[i]: None for i in getattr(at, "sizes", ())}
            for p, a in zip(want, got, strict=True):
                t = with_dims(with_dims(p.type, dims), self.numbers)
                if not self.program.same(t, a.type):
                    self.wrong(
                        f"{what} takes {show(t)} as {p!r}, but {a!r} is {show(a.type)}",
                        at,
                        list(args).index(a),
                    )

    def array(self, v: ir.Var, e: ir.Leaf, i: int) -> ArrayType:
        """The type of an operand that must be a number or an array."""
        t = self.program.unfold(v.type)
        if not isinstance(t, ArrayType):
            self.wrong(f"{v!r} is {show(v.type)}; a number or an array is needed here", e, i)
        assert isinstance(t, ArrayType)
        return t

    def prim(self, e: ir.Prim) -> Any:
        """TypePrim, TypeLinAdd, TypeLinMul, and the linear maps that primitives are."""
        if any(a.linear for a in e.args):
            return self.linear_prim(e)
        if e.name == "add" and len(e.args) == 2 and not self._arrays(e.args):
            return self.equal_types(e)  # the erasure of a linear sum
        types = tuple([self.array(a, e, i) for i, a in enumerate(e.args)])
        return Typing((self.primitive(e, types),), ())

    def _arrays(self, args: Sequence[ir.Var]) -> bool:
        return all(isinstance(self.program.unfold(a.type), ArrayType) for a in args)

    def equal_types(self, e: ir.Prim) -> Type:
        """The common type of the two operands of a sum."""
        s, t = (a.type for a in e.args)
        if not self.program.same(s, t):
            self.wrong(
                f"{e.args[0]!r} is {show(s)} and {e.args[1]!r} is {show(t)}; only values of "
                "one type add",
                e,
                1,
            )
        return s

    def primitive(self, e: ir.Prim, types: tuple[ArrayType, ...], at: object = None) -> ArrayType:
        """The type of a primitive's result for arguments of those types; errors show e, or `at`."""
        try:
            key: Any = (e.primitive, types, hashable(e.params))
            if key in self.known:
                return self.known[key]
        except TypeError:
            key = None
        if isinstance(e.primitive, Elementwise):
            if len(types) != e.primitive.arity:
                self.wrong(
                    f"{e.name} takes {counted(e.primitive.arity, 'argument')}, not {len(types)}", e
                )
            shapes = {t.shape for t in types if t.shape}
            if len(shapes) > 1:
                self.wrong(
                    f"{e.name} of {' and '.join(map(show, types))}: give it arrays of one shape, "
                    "or numbers; broadcast_to[shape=…] repeats an array along axes",
                    e,
                )
        try:
            y = result_type(e.primitive, types, e.params)
        except (LinearaError, TypeError, ValueError, IndexError) as error:
            text = error.message if isinstance(error, LinearaError) else str(error)
            if isinstance(error, TypeError) and not isinstance(error, LinearaError):
                text = f"it is not written so; {_form(e.primitive)}"
            at = e if at is None else at
            self.wrong(text if text.startswith(e.name) else f"{e.name}: {text}", at)
        if is_ring(y) and not all(map(is_ring, types)):
            self.wrong(
                f"{e.name} of {' and '.join(map(show, types))}: of elements of a ring all or none; "
                "a whole number as one of them is written 2_object",
                e,
            )
        if key is not None:
            self.known[key] = y
        return y

    def linear_prim(self, e: ir.Prim) -> Any:
        """A primitive in the arguments that it is linear in."""
        linear = tuple([i for i, a in enumerate(e.args) if a.linear])
        p = e.primitive
        if p.name == "add" and linear == (0, 1) and len(e.args) == 2:
            return self.equal_types(e)
        if p.name == "multiply" and len(linear) == 1 and len(e.args) == 2:
            return self.scale(e, *ir.scaling(e))
        if any([is_ring(self.program.unfold(a.type)) for a in e.args]):
            self.wrong(
                f"{p.name} is not stated for linear elements of a ring; linear in them are "
                "~a + ~b, x * ~a and ~a * x",
                e,
                linear[0],
            )
        if isinstance(p, Linear):
            places = tuple(range(len(e.args))) if p.linear is None else p.linear
            fine = linear == places
        else:
            fine = isinstance(p, Multilinear) and len(linear) == 1
        if not fine:
            self.wrong(
                f"{p.name} is not linear in {', '.join(repr(e.args[i]) for i in linear)}; linear "
                "are ~a + ~b, x * ~a, and the primitives that move, sum or contract",
                e,
                linear[0],
            )
        types = tuple([self.array(a, e, i) for i, a in enumerate(e.args)])
        return self.primitive(e, types)

    def scale(self, e: ir.Prim, x: ir.Var, a: ir.Var) -> Type:
        """TypeLinMul: the factor is a number, or has the shape of the linear operand.

        It stands on either side in a ring, and before numbers, which commute.
        """
        k = self.array(x, e, e.args.index(x))
        u = self.program.unfold(a.type)
        fits = all(
            isinstance(t, ArrayType)
            and np.result_type(k.dtype, t.dtype) == t.dtype
            and is_ring(k) is is_ring(t)
            for t in self.program.leaves(u)
        )
        if e.args[0] is a and not is_ring(k):
            self.wrong(f"the factor comes first, since numbers commute: {x!r} * {a!r}", e, 1)
        shapes = ((), u.shape) if isinstance(u, ArrayType) else ((),)
        scalars = isinstance(u, ArrayType) or self.program.has_scalars(u)  # an array may be empty
        if k.shape not in shapes or not fits or not scalars:
            self.wrong(
                f"{x!r}: {show(k)} does not scale {a!r}: {show(a.type)}; the factor is a number, "
                "or has the shape of what it scales, and no wider dtype than any array there; a "
                "sum or a stack is not scaled",
                e,
                e.args.index(x),
            )
        return a.type

    def linear_args(self, e: ir.Leaf, n: int) -> None:
        """A form that takes n linear arguments and nothing else."""
        if len(e.args) != n or not all(a.linear for a in e.args):
            word = type(e).__name__.lower()
            self.wrong(
                f"{word} takes {n} linear variable{'s' * (n > 1)}, not "
                f"({', '.join(map(repr, e.args))}); non-linear values are used as often as needed",
                e,
            )

    def part(self, e: ir.Part) -> Typing:
        """read, accum and put: of linear arrays, or accum and put of others."""
        word = type(e).__name__.lower()
        if isinstance(e, ir.Read):
            self.linear_args(e, 1)
        elif len(e.args) not in ((2,) if isinstance(e, ir.Accum) else (1, 2)):
            self.wrong(f"{word} takes an array and a part, not {len(e.args)} variables", e)
        linear = e.args[0].linear
        if any(a.linear is not linear for a in e.args):
            self.wrong(f"{word} takes an array and a part of one zone: both linear, or none", e, 1)
        x = self.array(e.args[0], e, 0)
        y = self.primitive(ir.Prim((), op("index"), {"at": e.at}), (x,), e)
        if isinstance(e, ir.Read):
            return Typing((), (y, x))
        if len(e.args) == 2 and self.array(e.args[1], e, 1) != y:
            self.wrong(f"the part is {show(y)}, but {e.args[1]!r} is {show(e.args[1].type)}", e, 1)
        return Typing((), (x,)) if linear else Typing((x,), ())

    def tagged(self, e: ir.Inj | ir.Proj) -> Any:
        """inj and proj: the payload has the type of its tag."""
        t = self.program.unfold(e.type if isinstance(e, ir.Inj) else e.args[0].type)
        if not isinstance(t, Sum) or not 0 <= e.tag < len(t.items):
            self.wrong(f"{show(t)} has no alternative {e.tag}; alternatives count from 0", e)
        assert isinstance(t, Sum)
        if isinstance(e, ir.Proj):
            return t.items[e.tag]
        if not self.program.same(t.items[e.tag], e.args[0].type):
            self.wrong(
                f"alternative {e.tag} of {show(e.type)} is {show(t.items[e.tag])}, but "
                f"{e.args[0]!r} is {show(e.args[0].type)}",
                e,
                0,
            )
        return e.type

    def tup(self, e: ir.Tup) -> Typing:
        """TypeTup, TypeLinTup."""
        if any(a.linear is not e.linear for a in e.args):
            self.wrong("a product is wholly linear or wholly non-linear: ~<~a, ~b> or <x, y>", e)
        t = Product(tuple([a.type for a in e.args]), e.fields)
        return Typing((), (t,)) if e.linear else Typing((t,), ())

    def ret(self, e: ir.Ret) -> Typing:
        """TypeRet."""
        return Typing(tuple([v.type for v in e.xs]), tuple([v.type for v in e.lxs]))

    def copy(self, e: ir.Copy) -> Type:
        """TypeVar, TypeLinVar."""
        return e.args[0].type

    def dup(self, e: ir.Dup) -> Typing:
        """TypeDup."""
        self.linear_args(e, 1)
        return Typing((), (e.args[0].type,) * 2)

    def literal(self, e: ir.Lit) -> Typing:
        """TypeLit."""
        return Typing((e.type,), ())

    def zero(self, e: ir.Zero) -> Typing:
        """TypeLinZero."""
        self.well_formed(e.type)
        if e.linear and not self.program.is_linear(e.type):
            self.wrong(f"{show(e.type)} has no zero; only vector spaces have", e)
        return Typing((), (e.type,)) if e.linear else Typing((e.type,), ())


_RULES: dict[type, Any] = {
    ir.Ret: Judge.ret,
    ir.Copy: Judge.copy,
    ir.Dup: Judge.dup,
    ir.Lit: Judge.literal,
    ir.Zero: Judge.zero,
    ir.Tup: Judge.tup,
    ir.Prim: Judge.prim,
    ir.Read: Judge.part,
    ir.Accum: Judge.part,
    ir.Put: Judge.part,
    ir.Inj: Judge.tagged,
    ir.Proj: Judge.tagged,
}


ENDLESS = "the type {} contains itself; let it do so under an alternative: [<> | …]"


def endless(program: Program, name: str) -> bool:
    """Whether a named type contains itself, so that it has no finite value."""
    seen, open_ = set(), [program.stated(name)]
    while open_:
        t = open_.pop()
        if isinstance(t, Product):
            open_ += t.items
        elif isinstance(t, Named) and t.name in program.types:
            if t.name == name:
                return True
            if t.name not in seen:
                seen.add(t.name)
                open_.append(program.stated(t.name))
    return False


def located(program: Program, place: Place, message: str) -> str:
    """The message with `file:line:column`, the line of the text and a caret."""
    return shown_at(program.text, program.file, place, message)


def hashable(params: dict[str, Any]) -> Any:
    """The parameters as a key: of variables only the type matters, unless they are dimensions."""
    if isinstance(params, ir.Var):
        return params.type
    if isinstance(params, dict):
        return tuple([(k, hashable(v) if k == ir.PLACE else _sized(v)) for k, v in params.items()])
    if isinstance(params, tuple):
        return tuple([hashable(v) for v in params])
    if isinstance(params, slice):
        return ("slice", params.start, params.stop, params.step)  # an end is a dimension
    hash(params)
    return (type(params), params)


def _sized(value: Tree) -> Any:
    return tuple(map(_sized, value)) if type(value) is tuple else (type(value), value)


def _form(primitive: Any) -> str:
    """How a primitive is written: sum[axis=…, keepdims=…](x)."""
    for method, first in ((primitive.result, 0), (primitive.evaluate, 1)):
        parameters = [*inspect.signature(method).parameters.values()][first:]
        if all([p.kind is not p.VAR_KEYWORD for p in parameters]):
            params = ", ".join([f"{p.name}=…" for p in parameters if p.kind is p.KEYWORD_ONLY])
            args = ", ".join([p.name for p in parameters if p.kind is not p.KEYWORD_ONLY])
            return f"write {primitive.name}{f'[{params}]' if params else ''}({args})"
    return f"write {primitive.name} with what numpy.{primitive.name} takes"

"""The abstract syntax of Linear A: frozen data, flat blocks, one Var a binder.

A variable is compared by identity; its name is what is printed, unique in its definition, and its
type is stored.  A leaf lists its operands in one tuple, `args`, linear and non-linear in the order
of the text.

    Def       def f(xs:ts ; ~as:us) -> (ss ; rs) = block
    Block     bindings, then one leaf
    Binding   Let (xs ; ~as) = leaf or block   |   Unpack <xs> = y   |   Unpack ~<~as> = ~b
    Leaf      Ret  Copy  Lit  Tup  Zero  Dup  Drop  Prim  Read  Accum  Put  Inj  Proj, and
              applications of definitions
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Index, Value
from lineara.facts.types import ArrayType, Type

C = TypeVar("C")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(slots: bool = True, kw_only: bool = False) -> Callable[[type[C]], type[C]]:
    """A class of syntax, which is itself only; that nobody writes into it is a checker's to say.

    At run time frozen classes are built in twice the time, which passes would spend on little else.
    """
    return dataclass(slots=slots, eq=False, kw_only=kw_only)


class Var:
    """A variable: its name without the sigil, its type, and whether it is linear.

    `line` is the user's, `file:number`, that its value comes from; empty where nobody asked.
    """

    __slots__ = ("line", "linear", "name", "type")

    def __init__(self, name: str, type: Type, linear: bool = False, line: str = "") -> None:
        self.name: str = name
        self.type: Type = type
        self.linear: bool = linear
        self.line: str = line

    def __repr__(self) -> str:
        return f"~{self.name}" if self.linear else self.name


Vars = tuple[Var, ...]
Rename = Callable[[Var], Var]


def vars_in(params: object) -> Iterator[Var]:
    """The variables that parameters mention: all are non-linear."""
    if isinstance(params, Var):
        yield params
    elif isinstance(params, tuple):
        for p in params:
            yield from vars_in(p)
    elif isinstance(params, dict):
        for p in params.values():
            yield from vars_in(p)
    elif isinstance(params, slice):
        yield from vars_in((params.start, params.stop, params.step))


def renamed_params(params: object, rename: Rename) -> Any:
    """The same parameters about other variables."""
    if isinstance(params, Var):
        return rename(params)
    if isinstance(params, tuple):
        return tuple([renamed_params(p, rename) for p in params])
    if isinstance(params, dict):
        return {k: renamed_params(p, rename) for k, p in params.items()}
    if isinstance(params, slice):
        return slice(*renamed_params((params.start, params.stop, params.step), rename))
    return params


PLACE = "at"  # the parameter that says where; variables in the others say how large


def sampled(params: object, at: dict[Any, Any] | None = None, place: bool = False) -> Any:
    """Parameters where variables are zeros of their types, for the sake of a shape.

    Dimensions are the numbers that `at` has for them; a variable in a `place` is a position.
    """
    if isinstance(params, Var):
        if at and not place and params in at:
            return at[params]
        t = params.type
        assert isinstance(t, ArrayType)
        if t.dtype.kind == "b":
            raise ShapeError(
                "how much a staged mask picks depends on values, and a type has a fixed "
                "shape; where(c, a, b) chooses without counting, and a written mask is fine"
            )
        shape = [(at or {}).get(n, n) for n in t.shape]
        return np.zeros(shape, t.dtype) if shape else t.dtype.type(0)
    if isinstance(params, tuple):
        return tuple([sampled(p, at, place) for p in params])
    if isinstance(params, dict):
        return {k: sampled(p, at, k == PLACE) for k, p in params.items()}
    return params


def parts_of(at: Index) -> tuple[Any, ...]:
    """An index as the tuple of its parts."""
    return at if isinstance(at, tuple) else (at,)


@node()
class Leaf:
    """An expression of variables only."""

    args: Vars

    def operands(self) -> Vars:
        """Every occurrence of a variable, those in parameters too."""
        return self.args

    def renamed(self, rename: Rename) -> "Leaf":
        """The same about other variables."""
        return type(self)(tuple([rename(a) for a in self.args]))

    @property
    def xs(self) -> Vars:
        """The non-linear arguments."""
        return tuple([a for a in self.args if not a.linear])

    @property
    def lxs(self) -> Vars:
        """The linear arguments."""
        return tuple([a for a in self.args if a.linear])


class Ret(Leaf):
    """(x1,..,xk ; ~a1,..,~al): several values, which only a binder can take apart."""

    __slots__ = ()


class Copy(Leaf):
    """x, or ~a."""

    __slots__ = ()


class Dup(Leaf):
    """dup(~a): the same linear value twice."""

    __slots__ = ()


@node()
class Lit(Leaf):
    """A number, or an array of them; its type is that of the value."""

    value: Any
    type: Type

    def renamed(self, rename: Rename) -> Leaf:
        """Itself."""
        return self


def lit(value: Value, type: Type) -> Lit:
    """The literal of that type."""
    return Lit((), value, type)


@node()
class Zero(Leaf):
    """zero[t], linear; or zeros[t], the same as a non-linear value."""

    type: Type
    linear: bool = True

    def renamed(self, rename: Rename) -> Leaf:
        """Itself."""
        return self


def zero(type: Type, linear: bool = True) -> Zero:
    """The zero of that type."""
    return Zero((), type, linear)


@node()
class Tup(Leaf):
    """<x1,..,xn>, ~<~a1,..,~an>, or a record {a: x}, ~{a: ~x}."""

    linear: bool = False
    fields: tuple[str, ...] | None = None

    def renamed(self, rename: Rename) -> Leaf:
        """The same about other variables."""
        return Tup(tuple([rename(a) for a in self.args]), self.linear, self.fields)


@node()
class Drop(Leaf):
    """drop(e): evaluate e, which is a leaf or a block, and forget its results."""

    body: "Leaf | Block"

    def operands(self) -> Vars:
        """The free occurrences of the body."""
        return tuple(occurrences(self.body))

    def renamed(self, rename: Rename) -> Leaf:
        """The same about other variables; a block renames its own binders."""
        assert isinstance(self.body, Leaf), "a block is renamed by the pass that walks it"
        return Drop((), self.body.renamed(rename))


def drop(*args: Var) -> Drop:
    """drop(x), drop(~a), or drop((xs ; ~as)) for several."""
    return Drop((), Copy(args) if len(args) == 1 else Ret(args))


@node()
class Prim(Leaf):
    """A primitive on variables.  With linear arguments it is the linear map that it is in them."""

    primitive: Any
    params: dict[str, Any] = field(default_factory=dict)

    def operands(self) -> Vars:
        """The arguments, and the variables among the parameters."""
        return (*self.args, *vars_in(self.params)) if self.params else self.args

    def renamed(self, rename: Rename) -> Leaf:
        """The same about other variables."""
        args = tuple([rename(a) for a in self.args])
        params = renamed_params(self.params, rename) if self.params else self.params
        return Prim(args, self.primitive, params)

    @property
    def name(self) -> str:
        """The name of the primitive."""
        return self.primitive.name


def scaling(e: Prim) -> tuple[Var, Var]:
    """The factor and the linear variable of x * ~a, or of ~a * x."""
    x, a = e.args
    return (a, x) if x.linear else (x, a)


@node()
class Part(Leaf):
    """What reads or writes the part of a linear array at an index, and hands the array on."""

    at: tuple[Any, ...]

    def operands(self) -> Vars:
        """The arguments, and the variables in the index."""
        return (*self.args, *vars_in(self.at))

    def renamed(self, rename: Rename) -> Leaf:
        """The same about other variables."""
        return type(self)(tuple([rename(a) for a in self.args]), renamed_params(self.at, rename))


class Read(Part):
    """read[at](~x) -> (; ~y, ~x'): the part, and the array."""

    __slots__ = ()


class Accum(Part):
    """accum[at](~x, ~y) -> (; ~x'): the array with y added to the part."""

    __slots__ = ()


class Put(Part):
    """put[at](~x, ~y) -> (; ~x'): the array with y in place of the part; put[at](~x), with zero."""

    __slots__ = ()


@node()
class Inj(Leaf):
    """inj[i, t](x): a value of the sum t with the tag i; linear as well."""

    tag: int
    type: Type

    def renamed(self, rename: Rename) -> Leaf:
        """The same about another variable."""
        return Inj((rename(self.args[0]),), self.tag, self.type)


@node()
class Proj(Leaf):
    """proj[i](x): the payload of the tag i, zero if the sum has no tag yet; linear as well."""

    tag: int

    def renamed(self, rename: Rename) -> Leaf:
        """The same about another variable."""
        return Proj((rename(self.args[0]),), self.tag)


@node()
class Application(Leaf):
    """A call, branch or loop: a leaf that applies definitions to its arguments.

    Its kinds are classes with a method a pass, so that one file tells all of a form; a pass says
    what it does with other leaves in one `match`, so that its rules stand together.
    """

    functions: tuple[str, ...]
    HANDS_ALL_ON: ClassVar[bool] = False  # whether J hands tangents of numbers on, too

    def renamed(self, rename: Rename) -> "Application":
        """The same about other variables."""
        return self.on(tuple([rename(a) for a in self.args]))

    def on(self, args: Vars, functions: tuple[str, ...] | None = None) -> Any:
        """The same on other arguments, and with other definitions."""
        raise NotImplementedError

    def head(self) -> str:
        """The text before the arguments."""
        raise NotImplementedError

    def shown(self) -> Vars:
        """The arguments that stand between the brackets."""
        return self.args

    def zipped(self, defs: Any) -> "Iterator[tuple[str, Vars, Vars]]":
        """Each definition, its non-linear formals that never change, and what they are here."""
        raise NotImplementedError

    def with_length(self, dims: object) -> "Application":
        """The same with a number of rounds that is no variable."""
        return self

    def result(self, judge: Any) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """The type rule: (ts ; us), or a complaint of the judge."""
        raise NotImplementedError

    def run(self, machine: Any, values: list[Any]) -> Any:
        """The evaluation, as a generator that yields what it enters."""
        raise NotImplementedError

    def work(self, works: list[int | None]) -> int | None:
        """W, from those of the definitions; None where only a run can tell."""
        return None

    def may_end(self, ends: list[bool]) -> bool:
        """Whether there is a way through it, from whether there is one through the definitions."""
        return all(ends)

    def jvp(self, j: Any, phi: Any, later: Any) -> "Leaf":
        """J; `j.recur` names the jvp of a definition, `later` has what is to stay in φ."""
        raise NotImplementedError

    def unzip(self, u: object) -> "tuple[Leaf, Leaf]":
        """U; `u.recur` names the halves of a definition and its tape."""
        raise NotImplementedError

    def without_tape(self, u: Any, b: Any, dead: list[Var]) -> Any:
        """The binders and the leaf of a binding whose tape is dead, or None."""
        return None

    def transpose(self, t: object, cs: Any) -> dict[Var, Var]:
        """T; `t.recur` names the transpose of a definition."""
        raise NotImplementedError

    def erase(self, e: object) -> "Leaf":
        """E; `e.recur` names the erasure of a definition."""
        raise NotImplementedError

    def batch(self, b: object, args: list[Var]) -> list[Var]:
        """The results over lanes; `b.recur` names a definition over lanes."""
        raise NotImplementedError


@node()
class Let:
    """let (xs ; ~as) = rhs: binds the results in order, the non-linear ones first."""

    vars: Vars
    rhs: "Leaf | Block"


@node()
class Unpack:
    """let <xs> = y, or let ~<~as> = ~b."""

    vars: Vars
    arg: Var


Binding = Let | Unpack
BINDING = (Let, Unpack)


@node(slots=False)
class Block:
    """Bindings in order and the leaf that has the results."""

    bindings: tuple[Binding, ...]
    leaf: Leaf

    @cached_property
    def doing(self) -> tuple[Leaf, ...]:
        """Its leaves that may do more than give values, in order: many ask, of one that stays."""
        return tuple([e for e in leaves(self) if does(e)])


NESTS = {Block, Drop}
"""Expressions in which others are."""


@node()
class Def:
    """def name(xs ; ~as) -> (results ; lresults) = body; params has the non-linear ones first.

    It may say in which of its formals it is `linear`: in the ones of each set together.
    """

    name: str
    params: Vars
    results: tuple[Type, ...]
    lresults: tuple[Type, ...]
    body: Block
    linear: tuple[tuple[int, ...], ...] = ()

    @property
    def xs(self) -> Vars:
        """The non-linear formals."""
        return tuple([p for p in self.params if not p.linear])

    @property
    def lxs(self) -> Vars:
        """The linear formals."""
        return tuple([p for p in self.params if p.linear])


def linear_in(d: Def, places: tuple[int, ...], between: str = ", ") -> str:
    """The formals of a set, as the text has them."""
    return between.join([d.params[i].name for i in places])


def linear_form(d: Def, places: tuple[int, ...]) -> str:
    """The name of a definition with the formals of a set as linear ones: f'x, f'x'y."""
    return f"{d.name}'{linear_in(d, places, chr(39))}"


# --- walks: the passes that ask for one thing of an expression filter what these give ----------


def occurrences(e: "Leaf | Block") -> Vars:
    """The free occurrences of variables in an expression, in order, with repetitions."""
    if isinstance(e, Leaf):
        return e.operands()
    bound: set[Var] = set()
    unbound: list[Var] = []
    for b in e.bindings:
        unbound += [v for v in reads(b) if v not in bound]
        bound.update(b.vars)
    return (*unbound, *[v for v in e.leaf.operands() if v not in bound])


def reads(b: Binding) -> Vars:
    """The free occurrences of variables in what is bound."""
    if isinstance(b, Let):
        return occurrences(b.rhs) if isinstance(b.rhs, Block) else b.rhs.operands()
    return (b.arg,)


def checks(e: Prim) -> bool:
    """Whether values decide if a primitive has a value, beside positions among its parameters."""
    return bool(e.primitive.raised) or e.primitive.name.startswith("check_")


def may_fail(e: Leaf) -> bool:
    """Whether values decide if a leaf has a value: positions that are values, or no solution."""
    if isinstance(e, Prim):
        return len(e.operands()) > len(e.args) or checks(e)
    return isinstance(e, Part) and len(e.operands()) > len(e.args)


def users_line(e: Leaf, body: "Block") -> str:
    """The user's line that a leaf was written for; empty where nobody asked, or it is elsewhere."""
    for block in blocks(body):
        for b in block.bindings:
            if isinstance(b, Let) and b.rhs is e and b.vars:
                return b.vars[0].line
    return ""


def line_of(e: "Binding | Leaf | Block") -> str:
    """The user's line that a binding or a leaf is of: of what it binds or else reads."""
    is_binding = isinstance(e, BINDING)
    told = [v.line for v in ((*e.vars, *reads(e)) if is_binding else occurrences(e)[::-1])]
    return next(filter(None, told), "")


def free(e: "Leaf | Block") -> dict[Var, None]:
    """The free variables of an expression, in the order of their first occurrence."""
    return dict.fromkeys(occurrences(e))


def leaves(e: "Leaf | Block") -> list[Leaf]:
    """Every leaf of an expression, in order; a drop comes before the leaves that it drops."""
    if isinstance(e, Leaf) and not isinstance(e, Drop):
        return [e]
    order: list[Leaf] = []
    open_: list[Leaf | Block] = [e]
    while open_:
        e = open_.pop()
        if isinstance(e, Leaf):
            order.append(e)
            if isinstance(e, Drop):
                open_.append(e.body)
        else:
            inside = [*[b.rhs for b in e.bindings if isinstance(b, Let)], e.leaf]
            if NESTS.isdisjoint(map(type, inside)):
                order += inside  # type: ignore[arg-type]
            else:
                open_ += inside[::-1]
    return order


def blocks(e: "Leaf | Block") -> list[Block]:
    """Every block of an expression, each before the blocks in it."""
    order: list[Block] = []
    open_: list[Leaf | Block] = [e]
    while open_:
        e = open_.pop()
        if isinstance(e, Block):
            order.append(e)
            inside = [*[b.rhs for b in e.bindings if isinstance(b, Let)], e.leaf]
            if not NESTS.isdisjoint(map(type, inside)):
                open_ += [r for r in inside if type(r) in NESTS]
        elif isinstance(e, Drop):
            open_.append(e.body)
    return order


def binders(d: Def) -> list[Var]:
    """Every variable that a definition binds."""
    return [*d.params, *[v for block in blocks(d.body) for b in block.bindings for v in b.vars]]


def does(e: Leaf) -> bool:
    """Whether a leaf may do more than give values: it acts or raises, or applies definitions."""
    if isinstance(e, Prim):
        return bool(e.primitive.acts or e.primitive.raised)
    return isinstance(e, Application)


def doing(e: "Leaf | Block") -> Sequence[Leaf]:
    """The leaves of an expression that may do more than give values, in order."""
    return e.doing if isinstance(e, Block) else [leaf for leaf in leaves(e) if does(leaf)]


def applications(e: "Leaf | Block") -> list[Application]:
    """The calls, branches and loops of an expression, in order."""
    return [leaf for leaf in doing(e) if isinstance(leaf, Application)]


def functions(e: "Leaf | Block") -> list[str]:
    """The definitions that an expression applies, in order, with repetitions."""
    return [f for leaf in applications(e) for f in leaf.functions]


def callees_first(names: Iterable[str], callees: Callable[[str], Iterable[str]]) -> list[str]:
    """The definitions and their callees, each after its own callees but for those that call it.

    >>> callees_first(["f"], {"f": ["g", "h"], "g": ["h", "f"], "h": []}.__getitem__)
    ['h', 'g', 'f']
    """
    order: dict[str, None] = {}
    entered: set[str] = set()
    open_ = [*names][::-1]
    while open_:
        f = open_[-1]
        entered.add(f)
        waiting = [g for g in callees(f) if g not in entered]
        open_ += waiting[::-1]
        if not waiting:
            order[open_.pop()] = None
    return list(order)


# --- rebuilding ----------------------------------------------------------------------------------


class Mapped:
    """Rebuilds definitions about other types, variables and definitions.

    A pass overrides what it changes: a type, the name of a definition, what stands for a variable,
    which has an entry in `vars` then, a binding, a leaf.  What it appends to `out` is bound before
    the binding or leaf at hand.
    """

    def __init__(self) -> None:
        self.vars: dict[Var, Var] = {}
        self.out: list[Binding] = []

    def type(self, t: Type) -> Type:
        """The type that stands for t."""
        return t

    def function(self, name: str) -> str:
        """The definition that stands for another one."""
        return name

    def at(self, v: Var) -> Var:
        """The variable that stands for an occurrence of v."""
        return self.vars.get(v, v)

    def binder(self, v: Var) -> Var:
        """The variable that stands for v where it is bound; v itself if its type stays."""
        t = self.type(v.type)
        if t is not v.type and t != v.type:
            self.vars[v] = Var(v.name, t, v.linear)
        return self.at(v)

    def binders(self, vs: Vars) -> Vars:
        """The variables that stand for binders."""
        return tuple(map(self.binder, vs))

    def definition(self, d: Def) -> Def:
        """The definition that stands for d."""
        params = self.binders(d.params)
        results, lresults = (tuple(map(self.type, ts)) for ts in (d.results, d.lresults))
        return Def(self.function(d.name), params, results, lresults, self.block(d.body))

    def block(self, block: Block) -> Block:
        """The bindings and the leaf, about what stands for their variables."""
        outside, self.out = self.out, []
        leaf = self.lines(block.bindings, block.leaf)
        inside, self.out = tuple(self.out), outside
        same = leaf is block.leaf and inside == block.bindings
        return block if same else Block(inside, leaf)

    def lines(self, bindings: Sequence[Binding], leaf: Leaf) -> Leaf:
        """The leaf, after what stands for the bindings is appended."""
        for b in bindings:
            self.binding(b)
        return self.leaf(leaf)

    def binding(self, b: Binding) -> None:
        """Append the binding that stands for b; b itself where nothing in it differs."""
        if isinstance(b, Unpack):
            arg, vs = self.at(b.arg), self.binders(b.vars)
            self.out.append(b if arg is b.arg and vs == b.vars else Unpack(vs, arg))
        else:
            rhs, vs = self.expression(b.rhs), self.binders(b.vars)
            self.out.append(b if rhs is b.rhs and vs == b.vars else Let(vs, rhs))

    def expression(self, e: "Leaf | Block") -> "Leaf | Block":
        """The leaf or the block that stands for e."""
        return self.block(e) if isinstance(e, Block) else self.leaf(e)

    def leaf(self, e: Leaf) -> Leaf:
        """The leaf that stands for e."""
        match e:
            case Prim():
                pass  # most leaves are
            case Drop():
                return Drop((), self.expression(e.body))
            case Zero():
                return Zero((), self.type(e.type), e.linear)
            case Inj(args=(a,)):
                return Inj((self.at(a),), e.tag, self.type(e.type))
            case Application():
                return self.application(e)
        return e if self.vars.keys().isdisjoint(e.operands()) else e.renamed(self.at)

    def application(self, e: Application) -> Leaf:
        """The call, branch or loop that stands for e."""
        made = e.renamed(self.at)
        return made.on(made.args, tuple(map(self.function, made.functions)))


DTYPES = {
    "bool", "f16", "f32", "f64", "c64", "c128", "i8", "i16", "i32", "i64", "object", "u8", "u16",
    "u32", "u64",
}  # fmt: skip
KEYWORDS = DTYPES | {
    "case", "complex", "def", "drop", "false", "in", "inf", "let", "nan", "None", "of", "stack",
    "true", "type", "with", "zero", "zeros",
}  # fmt: skip


class Names:
    """Fresh names for the binders of one definition.

    >>> names = Names()
    >>> names("y"), names("y"), names("y2"), names("x7")
    ('y', 'y2', 'y3', 'x7')
    """

    def __init__(self, taken: Any = ()) -> None:
        self._taken = {*KEYWORDS, *taken}
        self._next: dict[str, int] = {}

    def copy(self) -> "Names":
        """The same names are taken."""
        names = Names(self._taken)
        names._next = dict(self._next)
        return names

    def __call__(self, like: str) -> str:
        """A name like that one which nothing else has."""
        if like not in self._taken:
            self._taken.add(like)
            return like
        stem = like.rstrip("0123456789") or "v"
        n = self._next.get(stem, 2)
        while (name := f"{stem}{n}") in self._taken:
            n += 1
        self._next[stem] = n + 1
        self._taken.add(name)
        return name

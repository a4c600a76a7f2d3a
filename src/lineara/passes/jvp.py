"""J, forward mode:  J(φ; e), with φ from the variables of e to the names of their tangents.

    f(xs:ts ;) -> (ss ;)      =>      f.jvp(xs:ts ; ~dxs:ts') -> (ss ; ss')

Domain: definitions without linear formals, results or syntax.  φ has exactly the free variables of
e that move, each tangent is free exactly once in the output, and the output has a tangent for each
result that moves.  What never moves, integers and booleans, has no tangent variable, and a
constant has none until its zero is asked for.

The rule of a primitive is not written here: its declaration's one derivative fact is run on boxed
variables, once a signature, and the text that comes out is copied  [YOLO, §4].
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lineara.errors import ProgramError
from lineara.linear_a.check import Judge, hashable
from lineara.linear_a.collector import uncollected
from lineara.linear_a.dims import Samples
from lineara.linear_a.emit import Emitter, Text, chained, text
from lineara.linear_a.program import Program, tangent_type, tangent_types
from lineara.linear_a.syntax import (
    PLACE,
    Accum,
    Applied,
    Binding,
    Block,
    Copy,
    Def,
    Drop,
    Inj,
    Leaf,
    Let,
    Lit,
    Names,
    Prim,
    Proj,
    Put,
    Read,
    Ret,
    Tup,
    Unpack,
    Var,
    Vars,
    Zero,
    drop,
    free,
    parts_of,
    zero,
)
from lineara.passes.names import JVP, mangled, tangent
from lineara.passes.signatures import agree, defined, jvp_signature
from lineara.primitive import Constant, Joint
from lineara.types import ArrayType, Product, Type

Phi = dict[Var, Var]


@uncollected
def jvp(program: Program, name: str) -> Program:
    """The program with `name.jvp`, and with the jvp of every definition that it calls.

    Raises ProgramError for a definition with linear formals or results: erase it first.

    >>> from lineara.linear_a.parse import parse
    >>> from lineara.linear_a.show import show_def
    >>> print(show_def(jvp(parse("def f(x: f64;) -> (f64;) = exp(x)"), "f").defs["f.jvp"]))
    def f.jvp(x: f64; ~dx: f64) -> (f64; f64) =
      let y: f64 = exp(x) in
      let ~dp: f64 = y * ~dx in
      (y; ~dp)
    <BLANKLINE>
    """
    todo, done = [name], {}
    rules: dict[Any, Text] = {}
    known: dict[Any, ArrayType] = {}
    helpers: dict[str, Def] = {}
    seen: set[Type] = set()
    while todo:
        f = todo.pop()
        if f in done:
            continue
        if f + JVP in program.defs:
            there = program.defs[f + JVP]
            what = f"the definition {there.name} that the program has"
            agree(program, what, there, jvp_signature(program, defined(program, f)))
            continue
        run = _Jvp(program, f, rules, known)
        done[f] = run.definition()
        todo += run.needed
        helpers |= run.helpers
        seen |= run.seen
    program = program.with_(*helpers.values(), *[done[f] for f in reversed(done)])
    return program.with_(types=tangent_types(program, iter(seen)))


class _Jvp:
    """J of one definition."""

    def __init__(
        self, program: Program, name: str, rules: dict[Any, Text], known: dict[Any, ArrayType]
    ) -> None:
        if name not in program.defs:
            raise ProgramError(f"jvp: there is no definition {name}")
        self.program = program
        self.d = program.defs[name]
        self.rules = rules
        self.judge = Judge(program, name, known)
        self.needed: list[str] = []
        self.helpers: dict[str, Def] = {}
        self.seen: set[Type] = set()  # types whose tangents were asked for
        taken = [v.name for v in all_vars(self.d)]
        self.out = Emitter(Names(taken))

    def definition(self) -> Def:
        """f.jvp."""
        d = self.d
        if d.lresults or any(v.linear for v in all_vars(d)):
            raise ProgramError(
                f"jvp: {d.name} has linear variables or results; J differentiates the non-linear "
                f"fragment: erase {d.name} first"
            )
        phi = {x: self.tangent_of(x) for x in d.params if self.moves(x.type)}
        tangents = tuple(phi.values())
        body = self.block(d.body, phi)
        results = tuple([self.tangent_type(t) for t in d.results if self.moves(t)])
        return Def(d.name + JVP, (*d.params, *tangents), d.results, results, body)

    def recur(self, name: str) -> str:
        """The name of the jvp of a definition that is called."""
        self.needed.append(name)
        return name + JVP

    def define(self, d: Def) -> None:
        """A definition that a form needs beside the jvps."""
        self.helpers[d.name] = d

    def copy(self, name: str) -> tuple[Def, Emitter]:
        """The jvp of a definition, for a wrapper to hold, and where its names come from."""
        run = _Jvp(self.program, name, self.rules, self.judge.known)
        made = run.definition()
        self.needed += run.needed
        self.helpers |= run.helpers
        self.seen |= run.seen
        return made, run.out

    def mangled(self, t: Type) -> str:
        """The text of a type as part of a name."""
        return mangled(t)

    # --- tangents ----------------------------------------------------------------------------

    def moves(self, t: Type) -> bool:
        """Whether values of the type have tangents."""
        return not self.program.is_inert(t)

    def tangent_type(self, t: Type) -> Type:
        """t'."""
        self.seen.add(t)
        return tangent_type(self.program, t)

    def tangent_of(self, x: Var) -> Var:
        """A fresh variable for the tangent of x."""
        return self.out.fresh(tangent(x.name), self.tangent_type(x.type), True)

    def split(self, phi: Phi, here: Iterable[Var], last: dict[Var, int], i: int) -> Phi:
        """Tangents for the variables of binding i; what is needed later is dup'd."""
        found = {}
        for x in here:
            if x in phi:
                if last[x] > i:
                    (found[x], phi[x]), chain = chained(self.out, phi[x], 2)
                    self.out.bindings += chain
                else:
                    found[x] = phi.pop(x)
        return found

    def operands(self, phi: Phi, args: Sequence[Var]) -> list[Var | None]:
        """A tangent for every occurrence, zero for a constant; of what cannot move, None."""
        found = zip(args, self.known(phi, args), strict=True)
        return [self.zero(a.type) if d is None and self.moves(a.type) else d for a, d in found]

    def known(self, phi: Phi, args: Sequence[Var]) -> list[Var | None]:
        """A tangent for every occurrence of what moves here; of constants, None."""
        times: dict[Var, int] = {}
        for a in args:
            times[a] = times.get(a, 0) + 1
        ready: dict[Var, Any] = {}
        for a, n in times.items():
            if a in phi:
                made, chain = chained(self.out, phi.pop(a), n)
                self.out.bindings += chain
                ready[a] = iter(made)
        return [next(ready[a]) if a in ready else None for a in args]

    # --- blocks -------------------------------------------------------------------------------

    def block(self, block: Block, phi: Phi) -> Block:
        """JLet and JUnpack along the bindings, then the leaf."""
        outside, self.out.bindings = self.out.bindings, []
        last: dict[Var, int] = {}
        for i, b in enumerate(block.bindings):
            if not self.is_still(b):
                last |= dict.fromkeys(reads(b), i)
        last |= dict.fromkeys(block.leaf.operands(), len(block.bindings))
        self.discard([phi.pop(x) for x in list(phi) if x not in last])
        for i, b in enumerate(block.bindings):
            if self.is_still(b) or self.is_constant(b, phi):
                self.out.bindings.append(b)
                continue
            if isinstance(b, Unpack):
                self.unpack(b, phi, last, i)
                continue
            if isinstance(b.rhs, Prim) and b.rhs.name == "index":
                self.index(b, b.rhs, phi, last, i)
                continue
            local = self.split(phi, free(b.rhs), last, i)
            made = self.inner(b.rhs, local)
            moving = [v for v in b.vars if self.moves(v.type)]
            tangents = [self.tangent_of(v) for v in moving]
            self.out.bindings.append(Let((*b.vars, *tangents), made))
            self.enter(zip(moving, tangents, strict=True), phi, last, i)
        leaf = self.leaf(block.leaf, phi)
        made = Block(tuple(self.out.bindings), leaf)
        self.out.bindings = outside
        return made

    def is_still(self, b: Binding) -> bool:
        """Whether what is bound moves with nothing that it reads: a comparison, a rounding."""
        if not isinstance(b, Let) or not isinstance(b.rhs, Prim):
            return False
        return isinstance(b.rhs.primitive, Constant) or not any(self.moves(v.type) for v in b.vars)

    def is_constant(self, b: Binding, phi: Phi) -> bool:
        """Whether nothing moves that is read; blocks are looked into."""
        plain = isinstance(b, Unpack) or not isinstance(b.rhs, Block | Drop)
        return plain and not any(v in phi for v in reads(b))

    def enter(self, found: Iterable[tuple[Var, Var]], phi: Phi, last: Any, i: int) -> None:
        """New tangents; of a variable that is only read where nothing moves, it is dropped."""
        for v, t in found:
            if v in last:
                phi[v] = t
            else:
                self.discard([t])

    def inner(self, e: Leaf | Block, phi: Phi) -> Leaf | Block:
        """A right-hand side: a leaf where its J is one, else a block."""
        if isinstance(e, Block):
            return self.block(e, phi)
        outside, self.out.bindings = self.out.bindings, []
        leaf = self.leaf(e, phi)
        made = Block(tuple(self.out.bindings), leaf) if self.out.bindings else leaf
        self.out.bindings = outside
        return made

    def unpack(self, b: Unpack, phi: Phi, last: dict[Var, int], i: int) -> None:
        """JUnpack: the tangent is taken apart as the value is."""
        local = self.split(phi, [b.arg], last, i)
        self.out.bindings.append(b)
        tangents = [self.tangent_of(v) for v in b.vars]
        self.out.bindings.append(Unpack(tuple(tangents), local[b.arg]))
        for v, t in zip(b.vars, tangents, strict=True):
            if self.moves(v.type):
                self.enter([(v, t)], phi, last, i)
            else:
                self.discard([t])

    def discard(self, tangents: Sequence[Var]) -> None:
        """Drop tangents."""
        for t in tangents:
            self.out.bindings.append(Let((), drop(t)))

    # --- leaves -------------------------------------------------------------------------------

    def leaf(self, e: Leaf, phi: Phi) -> Leaf:
        """J of a leaf: bindings are written, and the leaf that ends them is given."""
        match e:
            case Ret() | Copy():
                tangents = [t for t in self.operands(phi, e.args) if t is not None]
                return Ret((*e.args, *tangents))
            case Drop(body=body):
                return Drop((), self.inner(body, phi))
            case Lit(type=t):
                return self.constant("y", e, t)
            case Zero(type=t, linear=False):
                return self.constant("y", e, t)
            case Tup(linear=False):
                return self.tup(e, phi)
            case Prim():
                return self.prim(e, phi)
            case Accum() | Put() if not e.lxs:
                return self.part(e, phi)
            case Inj() | Proj():
                return self.tagged(e, phi)
            case Applied():
                return e.jvp(self, phi)
        raise ProgramError(f"jvp: {type(e).__name__.lower()} is linear syntax; erase it first")

    def constant(self, like: str, e: Leaf, t: Type) -> Leaf:
        """JLit: the tangent of a constant is zero."""
        y = self.out.bind(like, t, e)
        if not self.moves(t):
            return Ret((y,))
        return Ret((y, self.zero(t)))

    def zero(self, t: Type) -> Var:
        """A zero tangent for a value of type t."""
        u = self.tangent_type(t)
        return self.out.bind("dy", u, zero(u), linear=True)

    def tup(self, e: Tup, phi: Phi) -> Leaf:
        """JTup; what does not move has a zero of the unit in the tangent."""
        found = self.operands(phi, e.args)
        t = Product(tuple([a.type for a in e.args]), e.fields)
        y = self.out.bind("y", t, e)
        if not self.moves(t):
            return Ret((y,))
        parts = [self.zero(a.type) if d is None else d for a, d in zip(e.args, found, strict=True)]
        made = Tup(tuple(parts), True, e.fields)
        return Ret((y, self.out.bind("dy", self.tangent_type(t), made, linear=True)))

    def tagged(self, e: Inj | Proj, phi: Phi) -> Leaf:
        """A tangent has the tag of its value."""
        (t,), _ = self.judge.leaf(e)
        (d,) = self.operands(phi, e.args)
        y = self.out.bind("y", t, e)
        if not self.moves(t):
            if d is not None:
                self.discard([d])
            return Ret((y,))
        u = self.tangent_type(t)
        if isinstance(e, Inj):
            d = self.zero(e.args[0].type) if d is None else d
            made: Leaf = Inj((d,), e.tag, u)
        else:
            assert d is not None
            made = Proj((d,), e.tag)
        return Ret((y, self.out.bind("dy", u, made, linear=True)))

    def prim(self, e: Prim, phi: Phi) -> Leaf:
        """JPrim: the text of the primitive's rule, copied."""
        (t,), _ = self.judge.leaf(e)
        if not isinstance(self.program.unfold(t), ArrayType):  # a sum of products
            a, b = self.operands(phi, e.args)
            y = self.out.bind("y", t, e)
            if not self.moves(t):
                return Ret((y,))
            made = Prim((a, b), e.primitive)  # type: ignore[arg-type]
            return Ret((y, self.out.bind("ds", self.tangent_type(t), made, linear=True)))
        tangents = self.known(phi, e.args)
        y = self.out.bind("y", t, e)
        active = tuple([i for i, d in enumerate(tangents) if d is not None])
        given = [d for d in tangents if d is not None]
        if not self.moves(t) or isinstance(e.primitive, Constant):
            self.discard(given)
            return Ret((y,)) if not self.moves(t) else Ret((y, self.zero(t)))
        if not active:
            return Ret((y, self.zero(t)))
        rule = self.rule(e, y, active)
        likes: dict[Var, str] = {}
        (dy,) = rule.copied((y, *e.operands(), *given), self.out, likes)
        return Ret((y, dy))

    def index(self, b: Let, e: Prim, phi: Phi, last: dict[Var, int], i: int) -> None:
        """JRead: the part is read and the array handed on, so n reads are no n copies."""
        (x,), (y,) = e.args, b.vars
        part, rest = self.tangent_of(y), self.tangent_of(x)
        self.out.bindings += [b, Let((part, rest), Read((phi.pop(x),), parts_of(e.params["at"])))]
        self.enter([(y, part)], phi, last, i)
        if last[x] > i:
            phi[x] = rest
        else:
            self.discard([rest])

    def part(self, e: Accum | Put, phi: Phi) -> Leaf:
        """JAccum and JPut: the same of the tangents."""
        x = e.args[0]
        tangents = self.operands(phi, e.args)
        y = self.out.bind("y", x.type, e)
        if not self.moves(x.type):
            return Ret((y,))
        made = type(e)(tuple(tangents), e.at)  # type: ignore[arg-type]  # one dtype: all move
        return Ret((y, self.out.bind("dy", y.type, made, linear=True)))

    def rule(self, e: Prim, y: Var, active: tuple[int, ...]) -> Text:
        """The derivative fact of a primitive at these types, as text over formals of its own."""
        known = tuple([a.type for a in e.operands()]), active
        return remembered(self.rules, e, known, lambda: rule_text(e, y.type, active))


def remembered(rules: dict[Any, Text], e: Prim, known: Any, make: Callable[[], Text]) -> Text:
    """The text of a rule, made once; anew where a parameter cannot be part of a key."""
    try:
        key = (e.primitive, known, hashable(e.params))
        hash(key)
    except TypeError:
        return make()
    if key not in rules:
        rules[key] = make()
    return rules[key]


def reads(b: Binding) -> Iterable[Var]:
    """The free variables of what is bound."""
    return (b.arg,) if isinstance(b, Unpack) else free(b.rhs)


def rule_text(e: Prim, y: Type, active: tuple[int, ...]) -> Text:
    """y, args and parameters, then tangents of the active ones, to the tangent of y."""
    operands = e.operands()
    formals: Vars = (
        Var("y", y),
        *[Var(f"x{i}", a.type) for i, a in enumerate(operands)],
        *[Var(f"d{i}", e.args[i].type, True) for i in active],
    )
    n, k = len(operands), len(e.args)

    def rule(samples: Samples, boxed: Any, *rest: Any) -> Sequence[Any]:
        params = reboxed(e.params, iter(rest[k:n]), samples.at)
        joint = e.primitive.linearize(boxed, rest[:k], active, params, recur)
        return [joint.forward(rest[n:])]

    def recur(of_tangents: Any, types: Any) -> Joint:
        return Joint(lambda tangents: of_tangents(*tangents), _no_transpose)

    return text(e, rule, formals, [y])


def _no_transpose(y_bar: Any) -> Any:
    raise AssertionError("J asks no rule for its transpose")


def reboxed(params: Any, boxes: Iterator[Any], dims: Any) -> Any:
    """Parameters with a box in place of each occurrence of a variable, in the order of `vars_in`.

    Where it says how large something is, the number that is its sample.

    Occurrences, not variables: the text is copied for other operands, which may differ.
    """
    if isinstance(params, Var):
        box = next(boxes)
        return dims.get(params, box)
    if isinstance(params, dict):
        none: dict[Var, int] = {}
        return {k: reboxed(v, boxes, none if k == PLACE else dims) for k, v in params.items()}
    return tuple([reboxed(v, boxes, dims) for v in params]) if type(params) is tuple else params


def all_vars(d: Def) -> list[Var]:
    """Every binder of a definition."""
    found = list(d.params)
    open_: list[Any] = [d.body]
    while open_:
        block = open_.pop()
        for b in block.bindings:
            found += b.vars
            if isinstance(b, Let):
                open_ += nested(b.rhs)
        open_ += nested(block.leaf)
    return found


def nested(e: Leaf | Block) -> list[Block]:
    """The blocks directly in an expression."""
    if isinstance(e, Block):
        return [e]
    return nested(e.body) if isinstance(e, Drop) else []

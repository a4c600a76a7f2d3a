"""T, transposition:  T(e; cs) = (D; m), for cs the cotangents of the linear results of e.

    f(xs ; ~as) -> (; rs)       =>       f.t(xs ; ~cs:rs) -> (; us)

Domain: definitions that are Linear B (`linear_a/linear_b`) and have no non-linear results.  D is a
list of bindings, m maps the free linear variables of e to their cotangents; each of the cs is used
once by D and m together.  Non-linear bindings come first, in their order, then the linear ones
transposed, from the last to the first.  The transpose of a primitive is the text that its declared
fact writes for boxed variables  [YOLO, §6].
"""

from collections.abc import Sequence
from typing import Any

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.primitive import Multilinear, conjugate
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Type, is_complex, is_ring
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.dimensions import Samples
from lineara.linear_a.linear_b import linear_b
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Emitter, Text, reboxed, text
from lineara.passes.jvp import remembered
from lineara.passes.names import T, cotangent
from lineara.passes.unzip import flat

Map = dict[ir.Var, ir.Var]


@uncollected
def transpose(program: Program, name: str, exact: bool = False, unzipped: bool = False) -> Program:
    """The program with `name.t`, and with the transpose of every linear definition it calls.

    They are Linear B, or else a ProgramError says what is not; what unzip has made is, and if
    `unzipped` nobody looks.

    `exact` transposes what is dropped at zero, which keeps the work of T(T(e)) that of e; else
    zeros are made for what the dropped expression would read.

    >>> from lineara.linear_a.parse import parse
    >>> print(transpose(parse("def f(x: f64; ~a: f64) -> (; f64) = x * ~a"), "f").defs["f.t"].name)
    f.t
    """
    todo, done = [name], {}
    rules: dict[Any, Text] = {}
    while todo:
        f = todo.pop()
        if f in done or f + T in program.defs:
            continue
        if not unzipped:
            _judge(program, f)
        one = _Transpose(program, f, rules, exact)
        done[f] = one.definition()
        todo += one.needed
    return program.with_(*[done[f] for f in reversed(done)])


def _judge(program: Program, name: str) -> None:
    """A ProgramError for what is not Linear B, or not linear."""
    if name not in program.defs:
        raise ProgramError(f"transpose: there is no definition {name}")
    if program.defs[name].results:
        raise ProgramError(
            f"transpose: {name} has non-linear results; T is for Linear B definitions: "
            f"unzip {name} and transpose {name}.lin"
        )
    linear_b(program, [name])


class _Transpose:
    """T of one definition."""

    def __init__(self, program: Program, name: str, rules: dict[Any, Text], exact: bool) -> None:
        self.program = program
        self.d = program.defs[name]
        self.rules = rules
        self.exact = exact
        self.needed: list[str] = []
        self.out = Emitter(ir.Names([v.name for v in ir.binders(self.d)]))

    def definition(self) -> ir.Def:
        """f.t."""
        d = self.d
        cs = [self.out.fresh("ct", t, True) for t in d.lresults]
        m = self.expression(d.body, cs)
        results = ir.Ret(tuple([m[a] for a in d.lxs]))
        types = tuple([a.type for a in d.lxs])
        return ir.Def(d.name + T, (*d.xs, *cs), (), types, flat(self.out.bindings, results))

    def recur(self, name: str) -> str:
        """The transpose of a definition that is called."""
        self.needed.append(name)
        return name + T

    def fresh(self, a: ir.Var) -> ir.Var:
        """A cotangent of ~a."""
        return self.out.fresh(cotangent(a.name), a.type, True)

    def write(self, binders: Sequence[ir.Var], e: ir.Leaf) -> None:
        """One more binding of D."""
        self.out.bindings.append(ir.Let(tuple(binders), e))

    # --- T -----------------------------------------------------------------------------------

    def expression(self, e: ir.Leaf | ir.Block, cs: Sequence[ir.Var]) -> Map:
        """T(e; cs): D is written, m is given."""
        if isinstance(e, ir.Leaf):
            return self.leaf(e, cs)
        linear = []
        for b in e.bindings:
            code = any([v.linear for v in (*b.vars, *ir.reads(b))])
            (linear if code else self.out.bindings).append(b)
        self.out.line = ir.line_of(e.leaf)
        m = self.expression(e.leaf, cs)
        for b in reversed(linear):
            self.out.line = ir.line_of(b)
            given = [m.pop(v) for v in b.vars]
            if isinstance(b, ir.Unpack):
                m[b.arg] = c = self.fresh(b.arg)
                self.write([c], ir.Tup(tuple(given), True, self.fields(b.arg.type)))
            else:
                m |= self.expression(b.rhs, given)
        return m

    def fields(self, t: Type) -> tuple[str, ...] | None:
        """The names of the parts of a record."""
        return getattr(self.program.unfold(t), "fields", None)

    def leaf(self, e: ir.Leaf, cs: Sequence[ir.Var]) -> Map:
        """T of a leaf."""
        match e:
            case ir.Prim():
                return self.prim(e, cs[0])
            case ir.Ret() | ir.Copy():
                return dict(zip(e.lxs, cs, strict=True))
            case ir.Dup(args=(a,)):
                c = self.fresh(a)
                self.write([c], ir.Prim(tuple(cs), op("add")))
                return {a: c}
            case ir.Zero():
                self.write([], ir.drop(cs[0]))
                return {}
            case ir.Tup(args=args):
                made = [self.fresh(a) for a in args]
                self.out.bindings.append(ir.Unpack(tuple(made), cs[0]))
                return dict(zip(args, made, strict=True))
            case ir.Drop(body=body):
                return self.dropped(body)
            case ir.Read(args=(x,), at=at):
                c = self.fresh(x)
                self.write([c], ir.Accum((cs[1], cs[0]), at))
                return {x: c}
            case ir.Accum(args=(x, y), at=at):
                cy, cx = self.fresh(y), self.fresh(x)
                self.write([cy, cx], ir.Read((cs[0],), at))
                return {x: cx, y: cy}
            case ir.Put(args=(x, *ys), at=at):
                return self.put(x, ys, at, cs[0])
            case ir.Inj(args=(a,), tag=tag):
                c = self.fresh(a)
                self.write([c], ir.Proj((cs[0],), tag))
                return {a: c}
            case ir.Proj(args=(a,), tag=tag):
                c = self.fresh(a)
                self.write([c], ir.Inj((cs[0],), tag, a.type))
                return {a: c}
            case ir.Application():
                return e.transpose(self, cs)
        raise AssertionError(type(e).__name__)

    def dropped(self, e: ir.Leaf | ir.Block) -> Map:
        """TDrop, TDrop' and TNon."""
        linear = [v for v in ir.free(e) if v.linear]
        if not linear:
            self.write([], ir.Drop((), e))
            return {}
        if self.exact or reads_for_nothing(e) or any(map(self.has_tags, ir.free(e))):
            zeros = []
            for t in self.results(e):
                z = self.out.fresh("z", t, True)
                self.write([z], ir.zero(t))
                zeros.append(z)
            return self.expression(e, zeros)
        dims = self.program.dims(self.d.name)
        for v in ir.free(e):
            if not v.linear and v not in dims:
                self.write([], ir.drop(v))
        m = {}
        for a in linear:
            m[a] = self.fresh(a)
            self.write([m[a]], ir.zero(a.type))
        return m

    def has_tags(self, v: ir.Var) -> bool:
        """Whether a value has parts that branches or loops read without work: tags, a stack."""
        return not v.linear and not all(
            [isinstance(t, ArrayType) for t in self.program.leaves(v.type)]
        )

    def results(self, e: ir.Leaf | ir.Block) -> Sequence[Type]:
        """The types of the linear results of an expression."""
        while isinstance(e, ir.Block):
            e = e.leaf
        return () if isinstance(e, ir.Drop) else type_of_leaf(self.program, e).lxs

    def put(self, x: ir.Var, ys: Sequence[ir.Var], at: tuple[Any, ...], c: ir.Var) -> Map:
        """put overwrites: the part of the cotangent is read, and zero stays behind."""
        m = {y: self.fresh(y) for y in ys}
        if m:
            rest = self.out.fresh(c.name, c.type, True)
            self.write([*m.values(), rest], ir.Read((c,), at))
            c = rest
        m[x] = self.fresh(x)
        self.write([m[x]], ir.Put((c,), at))
        return m

    def prim(self, e: ir.Prim, c: ir.Var) -> Map:
        """TAdd, TScale, and the transposes that primitives declare."""
        if e.name == "add":
            a, b = e.args
            ca, cb = self.fresh(a), self.fresh(b)
            self.write([ca, cb], ir.Dup((c,)))
            return {a: ca, b: cb}
        if e.name == "multiply":
            k, a = ir.scaling(e)
            if is_complex(k.type):
                k = self.out.bind("k", k.type, ir.Prim((k,), op("conj")))
            ca = self.fresh(a)
            right = is_ring(k.type) and k is e.args[0]  # tr(c k a) is tr(a c k)
            self.write([ca], ir.Prim((c, k) if right else (k, c), e.primitive))
            return {a: ca}
        rule = self.rule(e, c)
        plain = [v for v in e.operands() if not v.linear]
        linear = list(e.lxs)
        likes = {v: cotangent(a.name) for v, a in zip(rule.results, linear, strict=True)}
        cotangents = rule.copied((*plain, c), self.out, likes)
        return dict(zip(linear, cotangents, strict=True))

    def rule(self, e: ir.Prim, c: ir.Var) -> Text:
        """The transpose of a primitive at these types, as text over formals of its own."""
        known = tuple([(v.type, v.linear) for v in e.operands()]), c.type
        return remembered(self.rules, e, known, lambda: rule_text(e, c.type))


def reads_for_nothing(e: ir.Leaf | ir.Block) -> bool:
    """Whether an index or mask is read by no work: dropping it would cost more than it saves."""
    return any(
        len(leaf.operands()) > len(leaf.args) or (isinstance(leaf, ir.Prim) and leaf.name == "keep")
        for leaf in ir.leaves(e)
        if not isinstance(leaf, ir.Drop)
    )


def rule_text(e: ir.Prim, y: Type) -> Text:
    """The non-linear operands, then the cotangent of the result, to those of the linear ones."""
    plain = [v for v in e.operands() if not v.linear]
    formals = [*[ir.Var(f"x{i}", v.type) for i, v in enumerate(plain)], ir.Var("c", y, True)]

    def rule(samples: Samples, *boxed: Any) -> Sequence[Any]:
        boxes = iter(boxed[:-1])
        given = [(a, samples.type(a.type) if a.linear else next(boxes)) for a in e.args]
        params = reboxed(e.params, boxes, samples.at)
        if isinstance(e.primitive, Multilinear):
            (place,) = [i for i, a in enumerate(e.args) if a.linear]
            args = [x if a.linear else conjugate(x) for a, x in given]
            cotangents = [e.primitive.transpose(place, boxed[-1], *args, **params)]
        else:
            args = [x for _, x in given]
            cotangents = e.primitive.transpose(boxed[-1], *args, **params)
        return cotangents

    return text(e, rule, formals, [a.type for a in e.lxs])

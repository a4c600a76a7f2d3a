"""Taylor series:  f along a curve, by the coefficients of the curve and of what f gives.

    f(xs) -> (ss)      =>      f.s<K>.<axes>(xs' ;) -> (ss' ;)

A variable that moves has its coefficients up to t^K on an axis in front, as lanes have theirs in
`batch`, of which this is a kind: what does not move is computed once, and calls, branches and loops
are what they are over lanes.  Where these differ, this is the rule:

    a value that all lanes share        has zeros for its further coefficients
    a primitive                         gives the series that follow from its fact (facts/series)
    a comparison, an integer            does not move: it is that of the leading coefficients

So a branch goes where the point of the curve at t = 0 goes, and a loop does as many rounds.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.gc_pause import uncollected
from lineara.facts.primitive import Constant, Elementwise, Primitive, op
from lineara.facts.series import NUMBERS, Run, Series, coefficients, first, integrated
from lineara.facts.types import ArrayType, Product, Type, carries_tangents
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call, call
from lineara.linear_a.dimensions import Samples
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Emitter, Text, reboxed, text
from lineara.passes.batch import Axes, Batch, Flags, OverLanesOf
from lineara.passes.erase import erase
from lineara.passes.jvp import remembered
from lineara.passes.names import JVP, E


@uncollected
def along_curve(
    program: Program, name: str, moves: Sequence[bool], order: int
) -> tuple[Program, str]:
    """The program with `name` along a curve, whose formals that move have `order` + 1 coefficients.

    All results that have tangents have coefficients.  Also gives the name of the definition.

    Raises NoRuleError for what has no series.

    >>> from lineara.linear_a.parse import parse
    >>> from lineara.linear_a.show import show_def
    >>> program = parse("def f(x: f64;) -> (f64;) = x * x")
    >>> program, name = along_curve(program, "f", [True], 1)
    >>> print(show_def(program.defs[name]))
    def f.s1.0(x: f64[2];) -> (f64[2];) =
      let k: f64 = index[at=0](x) in
      let k2: f64 = k * k in
      let k3: f64 = index[at=1](x) in
      let k4: f64 = k * k3 in
      let k5: f64 = k3 * k in
      let k6: f64 = k4 + k5 in
      let v: f64[2] = stack(k2, k6) in
      (v;)
    <BLANKLINE>
    """
    run = _Curve(program, name)
    d = program.defs[name]
    want = tuple([not program.is_inert(t) for t in d.results])
    made, _ = run.definition(name, tuple([0 if m else None for m in moves]), order + 1, want)
    return run.program_with(), made


class _Curve(Batch):
    """All definitions of one run."""

    def __init__(self, program: Program, owner: str) -> None:
        super().__init__(program, owner)
        self.one = _Along

    @staticmethod
    def named(name: str, axes: Axes, size: int | None = None) -> str:
        """f.s3.0n: up to t^3, of which the first formal moves."""
        assert size is not None, "an order is a number"
        return f"{name}.s{size - 1}.{''.join(['n' if a is None else str(a) for a in axes])}"

    def with_rules(self, one: OverLanesOf, new: str, flags: Flags) -> None:
        """The derivative of a definition along a curve is that of its text."""


class _Along(OverLanesOf):
    """One definition along a curve."""

    def write(self) -> None:
        """The formals and the body; an integer that moves in a recursion does not."""
        self.numbers: dict[ir.Var, Any] = {}  # of new variables that are literals, the number
        super().write()

    def body(self) -> list[ir.Var]:
        """The results; of a definition that has a derivative of its own, what follows from that."""
        name, params = self.d.name, [self.at[p] for p in self.d.params]
        if name + JVP not in self.program.defs or not any(self.has_lanes(params)):
            return super().body()
        of_rule = OfRule(self.program, self.out, name)
        order = self.lanes - 1
        boxes = [self.out.box(v) for v in params]
        given = [
            of_rule.run.given(b, order) if v in self.batched else of_rule.run.still(b)
            for b, v in zip(boxes, params, strict=True)
        ]
        made = [self.out.unbox(y.whole(order)) for y in of_rule.call(name, given)]
        self.batched.update(made)
        return [self.fixed(v) for v in made]

    # --- variables -----------------------------------------------------------------------------

    def lift(self, v: ir.Var) -> ir.Var:
        """A variable with coefficients; one that does not move has zeros after the first."""
        t = self.unfold(v.type)
        if v in self.batched or not isinstance(t, ArrayType):
            return super().lift(v)
        whole = self.type(t)
        row = ArrayType((1, *t.shape), t.dtype)
        rest = ArrayType((self.lanes - 1, *t.shape), t.dtype)
        if not rest.shape[0]:
            return super().lift(v)
        head = self.out.bind(v.name, row, ir.Prim((v,), op("reshape"), {"shape": row.shape}))
        zeros = self.out.bind("z", rest, ir.Zero((), rest, False))
        made = ir.Prim((head, zeros), op("concat"), {"axis": 0})
        return self.bind(v.name, whole, made, False)

    def leading(self, v: ir.Var) -> ir.Var:
        """The first coefficient; what does not move is itself."""
        if v not in self.batched:
            return v
        t = self.unfold(v.type)
        assert isinstance(t, ArrayType), "a product is taken apart first"
        made = ir.Prim((v,), op("index"), {"at": 0})
        return self.out.bind(v.name, ArrayType(t.shape[1:], t.dtype), made)

    def fixed(self, v: ir.Var) -> ir.Var:
        """The variable; an integer's leading coefficient, for it does not move."""
        t = self.unfold(v.type)
        moves = not isinstance(t, ArrayType) or carries_tangents(t.dtype)
        return v if moves else self.leading(v)

    def parts(self, v: ir.Var, t: Product, batched: bool) -> list[ir.Var]:
        """The components of a product."""
        return [self.fixed(p) for p in super().parts(v, t, batched)]

    # --- expressions ---------------------------------------------------------------------------

    def leaf(self, e: ir.Leaf) -> list[ir.Var]:
        """The results of a leaf."""
        results = [self.fixed(v) for v in super().leaf(e)]
        if isinstance(e, ir.Lit) and np.ndim(e.value) == 0:
            self.numbers[results[0]] = e.value
        return results

    def refuse(self, e: ir.Leaf, why: str) -> NoReturn:
        """Raise the error about what has no series."""
        what = e.head() if isinstance(e, ir.Application) else type(e).__name__.lower()
        raise NoRuleError(f"taylor: in {self.d.name}, {what} has no series: it {why}")

    def in_turn(self, e: ir.Leaf, args: Sequence[ir.Var]) -> list[ir.Var]:
        """Coefficients do not go one after the other."""
        self.refuse(e, "is none over an axis of coefficients")

    def prim(self, e: ir.Prim, args: list[ir.Var]) -> ir.Var:
        """The series of a primitive's result."""
        (t,) = self.outcome(e)[False]
        if not isinstance(self.unfold(t), ArrayType):
            return super().prim(e, args)
        p = e.primitive
        active = tuple([i for i, a in enumerate(args) if a in self.batched])
        if not carries_tangents(t.dtype) or isinstance(p, Constant):
            made = e.renamed(dict(zip(e.args, map(self.leading, args), strict=True)).__getitem__)
            return self.out.bind(self.like(0), t, made)
        zero = p.linear_in(active, len(args))
        if not isinstance(zero, str) and not isinstance(p, Elementwise):  # all coefficients alike
            return super().prim(e, [self.lift(a) if i in zero else a for i, a in enumerate(args)])
        return super().prim(e, args)

    def rule(self, e: ir.Prim, args: Sequence[ir.Var], flags: Flags, y: Type) -> Text:
        """The series at these types, as text over formals of its own."""
        p: Primitive = e.primitive
        zero = p.linear_in([i for i, f in enumerate(flags) if f], len(args))
        if not isinstance(zero, str) and not isinstance(p, Elementwise):
            return super().rule(e, args, flags, y)
        operands = [*args, *[self.at[v] for v in e.operands()[len(args) :]]]
        numbers = [self.numbers.get(v) for v in args]
        formals = [ir.Var(f"x{i}", v.type) for i, v in enumerate(operands)]
        k = len(args)

        def written(samples: Samples, *boxed: Any) -> Sequence[Any]:
            params = reboxed(e.params, iter(boxed[k:]), samples.at)
            once = [boxed[args.index(v)] for v in args]
            given = [b if n is None else n for b, n in zip(once, numbers, strict=True)]
            return [coefficients(p, given, flags, params, self.lanes - 1)]

        known = (
            tuple([v.type for v in operands]),
            flags,
            repr(numbers),
            tuple(map(args.index, args)),
        )
        return remembered(self.run.rules, e, known, lambda: text(e, written, formals, [y]))


class OfRule:
    """Definitions with derivatives of their own, on series: y' is what f.jvp gives for x and x'.

    f itself is called for the leading coefficients only.
    """

    def __init__(self, program: Program, out: Emitter, name: str) -> None:
        self.program: Program = program
        self.out = out
        self.run: Run = Run(name)
        self.called: dict[Any, list[Series]] = {}  # by the definition and its arguments

    def call(self, name: str, args: Sequence[Any]) -> list[Any]:
        """What a definition gives, for series and for constants."""
        moves = any([isinstance(a, Series) and not a.still for a in args])
        if name + JVP not in self.program.defs or not moves:
            return self.block(name, args)
        key = (name, *map(id, args))
        if key not in self.called:
            self.called[key] = self.by_rule(name, args)
        return self.called[key]

    def by_rule(self, name: str, args: Sequence[Any]) -> list[Series]:
        """The series that solve  y' = f.jvp(x, x')."""
        d = self.program.defs[name]
        types = zip(d.params, d.results, strict=False)
        assert all([isinstance(t, ArrayType) for p, t in types]), "rules are of arrays"
        values: list[Any] = []
        slopes: list[Any] = []

        def value(i: int) -> Any:
            if not values:
                made = [self.out.fresh("y", t) for t in d.results]
                given = [self.out.unbox(first(a)) for a in args]
                self.out.bindings.append(ir.Let(tuple(made), call(name, *given)))
                values.extend(map(self.out.box, made))
            return values[i]

        def slope(i: int) -> Any:
            if not slopes:
                slopes.extend(self.slopes(name, args))
            return slopes[i]

        moving = [i for i, t in enumerate(d.results) if not self.program.is_inert(t)]

        def series(i: int, t: Any) -> Series:
            def coefficient(k: int) -> Any:
                if not k:
                    return value(i)
                s = slope(moving.index(i))
                return integrated(s, k) if isinstance(s, Series) else None

            return Series(self.run, t, coefficient, still=i not in moving)

        return [series(i, t) for i, t in enumerate(d.results)]

    def slopes(self, name: str, args: Sequence[Any]) -> list[Any]:
        """The tangents that the rule gives."""
        d = self.program.defs[name]
        self.program = erase(self.program, name + JVP)
        tangents = [
            a.derivative() if isinstance(a, Series) and not a.still else _zeros(p.type)
            for a, p in zip(args, d.params, strict=True)
            if not self.program.is_inert(p.type)
        ]
        return self.call(name + JVP + E, [*args, *tangents])[len(d.results) :]

    def block(self, name: str, args: Sequence[Any]) -> list[Any]:
        """The results of a definition's body."""
        d = self.program.defs[name]
        at: dict[ir.Var, Any] = dict(zip(d.params, args, strict=True))
        if not isinstance(d.body, ir.Block):
            return self.leaf(d.body, at)
        for b in d.body.bindings:
            if isinstance(b, ir.Unpack):
                at.update(zip(b.vars, at[b.arg], strict=True))
            else:
                at.update(zip(b.vars, self.leaf(b.rhs, at), strict=True))
        return self.leaf(d.body.leaf, at)

    def leaf(self, e: Any, at: dict[ir.Var, Any]) -> list[Any]:
        """The results of a leaf."""
        match e:
            case ir.Ret() | ir.Copy():
                return [at[a] for a in e.args]
            case ir.Drop():
                return []
            case ir.Lit(value=value):
                return [value if isinstance(value, NUMBERS) else self.run.still(value)]
            case ir.Zero(type=t):
                return [_zeros(t)]
            case ir.Tup():
                return [tuple([at[a] for a in e.args])]
            case ir.Prim():
                args, rest = e.args, e.operands()[len(e.args) :]
                params = reboxed(e.params, iter([at[v] for v in rest]), {})
                return [e.primitive(*[at[a] for a in args], **params)]
            case Call(functions=(f,)):
                return self.call(f, [at[a] for a in e.args])
        what = e.head() if isinstance(e, ir.Application) else type(e).__name__.lower()
        raise NoRuleError(
            f"taylor: the rule of {self.run.name} has {what}, which gives no series; write the "
            "rule without branches and loops, or nest lineara.jvp for a few orders"
        )


def _zeros(t: Any) -> Any:
    """A zero tangent."""
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0)


__all__ = ["along_curve"]

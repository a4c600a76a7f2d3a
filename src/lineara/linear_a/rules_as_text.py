"""Rules of primitives as text: a rule runs once on boxed variables, and what it applies is written.

Linear boxes may be used as often as a rule likes; `threaded` puts the dups and drops in.  A rule
text is a block with formals of its own, made once a signature and copied wherever it is needed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError, LinearityError, NoRuleError, ProgramError, ShapeError
from lineara.facts.hints import Leaf, Shaped
from lineara.facts.operand import Operand
from lineara.facts.primitive import (
    Elementwise,
    General,
    OfType,
    Primitive,
    op,
)
from lineara.facts.types import (
    ArrayType,
    Type,
    broadcast,
    carries_tangents,
    is_ring,
    show,
    type_of,
)
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.dimensions import Samples, dims_in, result_type, samples, sizes_in
from lineara.linear_a.show import show_binding

NO_SAMPLES = Samples({})


class Emitter:
    """Bindings as they are written down."""

    def __init__(self, names: ir.Names | None = None, samples: Samples = NO_SAMPLES) -> None:
        self.names: ir.Names = names or ir.Names()
        self.samples = samples  # what rules see for dimensions that are variables
        self.bindings: list[ir.Binding] = []
        self.like = "k"  # what results of operations on values are called
        self.line = ""  # the user's, of what is being written
        self.seek: Callable[[], str] | None = None  # tells that line, of a function that is traced
        self.every = False  # whether it is told of each variable, not just of what may fail

    def fresh(self, like: str, t: Type, linear: bool = False) -> ir.Var:
        """A variable with a name that is free."""
        line = self.seek() if self.seek and self.every else self.line
        return ir.Var(self.names(like), t, linear, line)

    def line_of(self, leaf: ir.Leaf) -> str:
        """The user's line, of what a leaf is bound to, where errors or reports need it."""
        asked = self.seek and (self.every or ir.may_fail(leaf) or isinstance(leaf, Call))
        return self.seek() if asked and self.seek else self.line

    def bind(self, like: str, t: Type, leaf: ir.Leaf, linear: bool = False) -> ir.Var:
        """The variable that a leaf with one result is bound to."""
        v = ir.Var(self.names(like), self.samples.back(t), linear, self.line_of(leaf))
        self.bindings.append(ir.Let((v,), leaf))
        return v

    def box(self, v: ir.Var) -> "Boxed":
        """A variable as rules see it."""
        return Boxed(self, v)

    def unbox(self, value: Leaf, t: ArrayType | None = None) -> ir.Var:
        """The variable of a box; of a plain value, a literal's."""
        if isinstance(value, Boxed):
            return value.var
        t = type_of(value) if t is None else t
        number = np.asarray(value, t.dtype)[()]
        stated = self.samples.back(t)
        if stated == t:
            return self.bind("k", t, ir.lit(number, t))
        if np.any(number != number.flat[0]):
            raise ShapeError(f"an array of constants has the dimensions {stated}")
        k = self.bind("k", ArrayType((), t.dtype), ir.lit(number.flat[0], ArrayType((), t.dtype)))
        return self.bind("k", t, ir.Prim((k,), op("broadcast_to"), {"shape": stated.shape}))

    # --- interpreting -----------------------------------------------------------------------

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Write one application of a primitive down; the box of its result."""
        linear = tuple([i for i, a in enumerate(args) if type(a) is Boxed and a.var.linear])
        params = _unboxed(params)
        if not linear:
            return self.nonlinear(primitive, args, params)
        zero = primitive.linear_in(linear, len(args))
        if isinstance(zero, str):
            raise LinearityError(
                f"{primitive.name} is not linear in a tangent; a rule adds, moves, sums, contracts "
                "and scales tangents"
            )
        if isinstance(primitive, Elementwise):
            if any(isinstance(args[i], Boxed) or np.any(args[i]) for i in zero):
                raise LinearityError(f"{primitive.name} of a tangent and a constant is affine")
            return self.combination(primitive, args, linear)
        if isinstance(primitive, General):
            tangents = [a if i in linear else None for i, a in enumerate(args)]
            return primitive.jvp(None, args, tangents, **params)
        if primitive.name == "index":
            return self.read(args[0], params["at"])
        like = args[linear[0]].dtype
        args = tuple([self.as_linear(a, like) if i in zero else a for i, a in enumerate(args)])
        return self.apply(primitive, args, params, "d")

    def read(self, x: "Boxed", at: Any) -> Any:
        """A part of a linear array, which is handed on: the box stands for the rest from here."""
        part = result_type(op("index"), (x.var.type,), {"at": at})  # type: ignore[arg-type]
        y, rest = self.fresh("d", part, True), self.fresh(x.var.name, x.var.type, True)
        self.bindings.append(ir.Let((y, rest), ir.Read((x.var,), ir.parts_of(at))))
        x.var = rest
        return Boxed(self, y)

    def nonlinear(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """An operation on non-linear values, with its broadcasts written out."""
        if isinstance(primitive, OfType):
            return primitive.known(*args, **params)
        if isinstance(primitive, Elementwise):
            args = tuple(self.level(args))
        elif primitive.name in ("round", "around"):  # the number of digits is an integer
            args = (args[0], *map(np.int64, args[1:]))
        return self.apply(primitive, args, params, self.like)

    def level(self, args: Sequence[Any]) -> list[Any]:
        """The operands with one shape: arrays are broadcast to it, numbers stay."""
        shapes = [type_of(a).shape for a in args]
        shape = broadcast(shapes)
        return [
            op("broadcast_to")(a, shape=shape) if s and s != shape else a
            for a, s in zip(args, shapes, strict=True)
        ]

    def apply(
        self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any], like: str
    ) -> Any:
        """The primitive on variables; a plain argument becomes a literal."""
        types = [a.type if isinstance(a, Boxed) else a for a in args]
        y = primitive.result(*types, **(ir.sampled(params, self.samples.at) if params else params))
        operands = tuple(
            [
                a.var if isinstance(a, Boxed)
                else self.unbox(a, self.literal_type(primitive, i, a, y))
                for i, a in enumerate(args)
            ]
        )  # fmt: skip
        linear = any([v.linear for v in operands])
        made = ir.Prim(operands, primitive, self.samples.params(params))
        return Boxed(self, self.bind(like, type_of(y), made, linear))

    def literal_type(self, p: Primitive, place: int, a: Any, y: ArrayType) -> ArrayType | None:
        """The type of a literal: a Python number has the dtype of what it meets."""
        kinds = {int: "iufc", float: "fc", complex: "c"}
        if y.dtype.kind not in kinds.get(type(a), ""):
            return None
        stated = p.literal(place, a, y.dtype) if isinstance(p, Elementwise) else y.dtype
        return ArrayType((), stated)

    def as_linear(self, a: Shaped, dtype: np.dtype) -> Any:
        """A linear operand; a plain zero becomes a linear one, beside others of that dtype."""
        if isinstance(a, Boxed):
            return a
        t = type_of(a)
        if np.any(a):
            raise LinearityError(f"a rule adds a constant {t} to tangents; that is affine")
        if not has_tangent(t):
            t = ArrayType(t.shape, np.result_type(t.dtype, dtype))
        return Boxed(self, self.bind("z", t, ir.zero(self.samples.back(t)), linear=True))

    # --- sums and multiples of tangents -------------------------------------------------------

    def combination(self, p: Elementwise, args: tuple[Any, ...], linear: tuple[int, ...]) -> Any:
        """An elementwise primitive that is linear in its linear arguments: scale them, and add."""
        y = p.result(*[type_of(a) if isinstance(a, Boxed) else a for a in args])
        terms = []
        for i in linear:
            values = [None if j in linear else a for j, a in enumerate(args)]
            right = is_ring(y) and p.name == "multiply" and i == 0
            terms.append(self.scaled(args[i], p.weights[i](None, *values), y, right))
        if len(terms) == 1:
            return terms[0]
        a, b = (t.var for t in terms)
        return Boxed(self, self.bind("ds", a.type, ir.Prim((a, b), op("add")), linear=True))

    def scaled(self, a: "Boxed", k: Shaped, y: ArrayType, right: bool = False) -> "Boxed":
        """k * ~a in the shape and dtype of y; a factor that is the number 1 is left out.

        In a ring the factor may stand on the `right`.
        """
        if type_of(a) != y:
            t = a.dtype
            a = a if a.shape == y.shape else op("broadcast_to")(a, shape=y.shape)
            a = a if t == y.dtype else op("astype")(a, dtype=y.dtype)
        if not isinstance(k, Boxed) and np.ndim(k) == 0 and k == 1:
            return a
        if type_of(k).shape not in ((), y.shape):
            k = op("broadcast_to")(k, shape=y.shape)
        plain = None if isinstance(k, Boxed) else ArrayType(np.shape(k), y.dtype)
        factor = self.unbox(k, plain)
        made = ir.Prim((a.var, factor) if right else (factor, a.var), op("multiply"))
        return Boxed(self, self.bind("dp", y, made, linear=True))


class Boxed(Operand):
    """A variable as the rules of primitives see it: an array of some type."""

    __slots__ = ("emitter", "var")

    def __init__(self, emitter: Emitter, var: ir.Var) -> None:
        self.emitter: Emitter = emitter
        self.var: ir.Var = var
        samples = emitter.samples
        self.type: Any = var.type if samples is NO_SAMPLES else samples.type(var.type)

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Write it down."""
        return self.emitter.interpret(primitive, args, params)

    @property
    def named(self) -> str:
        """Its type in the program, where dimensions may be variables."""
        return show(self.var.type)


def _unboxed(params: object) -> Any:
    if isinstance(params, Boxed):
        return params.var
    if isinstance(params, dict):
        return {k: _unboxed(v) for k, v in params.items()} if params else params
    if isinstance(params, slice):
        return slice(*map(_unboxed, (params.start, params.stop, params.step)))
    return tuple(map(_unboxed, params)) if type(params) is tuple else params


def reboxed(params: object, boxes: Iterator[Any], dims: dict[Any, Any]) -> Any:
    """Parameters with a box in place of each occurrence of a variable, in the order of `vars_in`.

    Where it says how large something is, the number that is its sample.

    Occurrences, not variables: the text is copied for other operands, which may differ.
    """
    if isinstance(params, ir.Var):
        box = next(boxes)
        return dims.get(params, box)
    if isinstance(params, dict):
        none: dict[ir.Var, int] = {}
        return {k: reboxed(v, boxes, none if k == ir.PLACE else dims) for k, v in params.items()}
    return tuple([reboxed(v, boxes, dims) for v in params]) if type(params) is tuple else params


# --- rule texts ---------------------------------------------------------------------------------


class Standing(dict[ir.Var, ir.Var]):
    """What stands for variables; others stand for themselves, as a dimension in a parameter."""

    def __missing__(self, v: ir.Var) -> ir.Var:
        """The variable itself."""
        return v


class Text(NamedTuple):
    """A block with formals: what a rule writes for one signature."""

    formals: ir.Vars
    bindings: tuple[ir.Binding, ...]
    results: ir.Vars

    def copied(
        self, args: Sequence[ir.Var], emitter: Emitter, likes: dict[ir.Var, str]
    ) -> list[ir.Var]:
        """Write the text down about other variables; the variables of its results."""
        at = Standing(zip(self.formals, args, strict=True))
        for b in self.bindings:
            of = at[b.arg] if isinstance(b, ir.Unpack) else b.rhs.renamed(at.__getitem__)  # type: ignore[union-attr]
            for v in b.vars:
                at[v] = emitter.fresh(likes.get(v, v.name), v.type, v.linear)
            made = tuple([at[v] for v in b.vars])
            emitter.bindings.append(
                ir.Unpack(made, of) if isinstance(of, ir.Var) else ir.Let(made, of)
            )
        return [at[v] for v in self.results]


def text(
    e: ir.Prim,
    rule: Callable[..., Sequence[Any]],
    formals: Sequence[ir.Var],
    wanted: Sequence[Type],
) -> Text:
    """What the rule of a primitive writes when it runs on samples of dimensions, and on boxes.

    Results that are None are zero.  A rule must write the same for every sample.
    """
    types = tuple([f.type for f in formals])
    variables = [*dims_in((*types, *wanted)), *sizes_in(e.params)]
    if not variables:
        return _text(rule, formals, wanted, NO_SAMPLES)
    failed = ""
    texts: list[Text] = []
    for s in samples(variables, types, e.params):
        try:
            texts.append(_text(rule, formals, wanted, s))
        except (LinearityError, NoRuleError):
            raise
        except (LinearaError, TypeError, ValueError, IndexError) as error:
            message = error.message if isinstance(error, LinearaError) else str(error)
            failed = f" ({s.text(message)})"
    if failed or _shown(texts[0]) != _shown(texts[1]):
        names = " and ".join(map(repr, dict.fromkeys(variables)))
        raise ProgramError(
            f"{e.name}: its derivative depends on the number that {names} is{failed}; give that "
            "dimension a number in the program"
        )
    return texts[0]


def _shown(made: Text) -> tuple[Any, ...]:
    return (*map(show_binding, made.bindings), *map(repr, made.results))


def _text(
    rule: Callable[..., Sequence[Any]],
    formals: Sequence[ir.Var],
    wanted: Sequence[Type],
    samples: Samples,
) -> Text:
    """The text that `rule` writes for one sample."""
    emitter = Emitter(ir.Names([f.name for f in formals]), samples)
    with np.errstate(all="ignore"):
        boxes = rule(samples, *map(emitter.box, formals))
    results = []
    for r, t in zip(boxes, wanted, strict=True):
        if isinstance(r, Boxed):
            results.append(seen(r, t).var)
        elif r is None or not np.any(r):
            results.append(emitter.bind("z", t, ir.zero(t), linear=True))
        else:
            raise LinearityError("a rule gives a constant as a tangent; that is affine")
    kept, _ = tidy(emitter.bindings, results)
    bindings, results = threaded(emitter, formals, kept, results)
    return Text(tuple(formals), tuple(bindings), tuple(results))


def seen(x: Boxed, t: Type) -> Boxed:
    """A tangent or cotangent in the dtype of its value; the real part, where that is real."""
    if not isinstance(t, ArrayType) or x.dtype == t.dtype:
        return x
    x = op("real")(x) if x.dtype.kind == "c" != t.dtype.kind else x
    return x if x.dtype == t.dtype else x.astype(t.dtype)


def tidy(
    bindings: Sequence[ir.Binding],
    results: Sequence[ir.Var],
    stays: Callable[[ir.Binding], bool] = lambda b: False,
) -> tuple[list[ir.Binding], set[ir.Var]]:
    """The bindings that results depend on, and those with effects; what these and they use."""
    used, kept = set(results), []
    for b in reversed(bindings):
        if not used.isdisjoint(b.vars) or stays(b):
            kept.append(b)
            used.update(b.rhs.operands() if isinstance(b, ir.Let) else (b.arg,))  # type: ignore
    return kept[::-1], used


def closed(
    bindings: Sequence[ir.Binding],
    formals: Sequence[ir.Var],
    results: Sequence[ir.Var],
    stays: Callable[[ir.Binding], bool] = lambda b: False,
) -> list[ir.Binding]:
    """The bindings that results need and those that stay, with drops of what is not used."""
    return dropping(*tidy(bindings, results, stays), formals)


def dropping(
    kept: Sequence[ir.Binding], used: Set[ir.Var], formals: Sequence[ir.Var]
) -> list[ir.Binding]:
    """Bindings with drops of what is not used."""
    whole: list[ir.Binding] = [ir.Let((), ir.drop(v)) for v in formals if v not in used]
    for b in kept:
        whole.append(b)
        whole += [ir.Let((), ir.drop(v)) for v in b.vars if v not in used]
    return whole


def threaded(
    emitter: Emitter,
    formals: Sequence[ir.Var],
    bindings: Sequence[ir.Binding],
    results: Sequence[ir.Var],
) -> tuple[list[ir.Binding], list[ir.Var]]:
    """The same with every linear variable used exactly once: dups where it is used more often.

    Linear formals that are not used are dropped.
    """
    uses: dict[ir.Var, int] = {}
    for b in bindings:
        for v in ir.reads(b):
            uses[v] = uses.get(v, 0) + 1
    for v in results:
        uses[v] = uses.get(v, 0) + 1
    copies: dict[ir.Var, Any] = {}
    written: list[ir.Binding] = []

    def enter(binders: Iterable[ir.Var]) -> None:
        for v in binders:
            if v.linear and uses.get(v, 0) > 1:
                made, chain = chained(emitter, v, uses[v])
                written.extend(chain)
                copies[v] = iter(made)
            elif v.linear and not uses.get(v, 0):
                written.append(ir.Let((), ir.drop(v)))

    def occurrence(v: ir.Var) -> ir.Var:
        return next(copies[v]) if v in copies else v

    enter(formals)
    for b in bindings:
        if isinstance(b, ir.Unpack):
            written.append(ir.Unpack(b.vars, occurrence(b.arg)))
        else:
            assert isinstance(b.rhs, ir.Leaf)
            written.append(ir.Let(b.vars, b.rhs.renamed(occurrence)))
        enter(b.vars)
    return written, [occurrence(v) for v in results]


def chained(emitter: Emitter, v: ir.Var, times: int) -> tuple[list[ir.Var], list[ir.Binding]]:
    """`times` copies of a linear variable, and the chain of dups that makes them."""
    made, chain = list[ir.Var](), list[ir.Binding]()
    for _ in range(times - 1):
        a, b = emitter.fresh(v.name, v.type, True), emitter.fresh(v.name, v.type, True)
        chain.append(ir.Let((a, b), ir.Dup((v,))))
        made.append(a)
        v = b
    return [*made, v], chain


def has_tangent(t: Type) -> bool:
    """Whether a number or array of the type has a tangent of its own."""
    return isinstance(t, ArrayType) and carries_tangents(t.dtype)

"""Linear A programs as diagrams, and back.

A primitive is an op on its wires; a call, a branch or a loop is a labelled frame with the diagrams
of what it applies; a linear variable is a wire that is marked, its dup a copy and its drop a drop.
What else a program has, tuples, reads and tags, is a frame without a body.

>>> from lineara import diagrams
>>> from lineara.linear_a.parse import parse
>>> program = parse("def f(x: f64; ~a: f64) -> (; f64) = x * ~a")
>>> drawn = diagram_of(program, "f")
>>> print(diagrams.show(drawn.net))
(x1: R, ~x2: R) =>
  ~v1 = multiply(x1, ~x2)
  -> ~v1
>>> print(program_of(drawn))
def f(x: f64; ~x2: f64) -> (; f64) =
  let ~v: f64 = x * ~x2 in
  (; ~v)
<BLANKLINE>
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.diagrams import operations
from lineara.diagrams.draft import Draft
from lineara.diagrams.names import variables
from lineara.diagrams.net import Net, Node, Wire, topological
from lineara.diagrams.operations import marked, marks, unmarked
from lineara.diagrams.types import Base, Foreign, additive, array_of, of_array
from lineara.diagrams.types import Type as WireType
from lineara.errors import DiagramError
from lineara.facts.primitive import registry
from lineara.facts.types import ArrayType, Family, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case, Cond, Switch
from lineara.linear_a.calls import Call, Sized
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program
from lineara.text.language import did_you_mean
from lineara.trampoline import run

LARGEST = 20_000  # nodes of a diagram in which every call is unfolded


class Drawn(NamedTuple):
    """The diagram of a definition, and what the types of its wires are in the program."""

    net: Net
    name: str
    types: Mapping[str, Type | Family]
    foreign: dict[str, Type]


def diagram_of(program: Program, name: str, unfold: bool = True) -> Drawn:
    """The diagram of a definition; without `unfold` the body of each is drawn once.

    Raises a DiagramError for dimensions that are known at run time only, and for a program that is
    too large with all its calls unfolded.
    """
    if name not in program.defs:
        hint = did_you_mean(name, program.defs)
        raise DiagramError(f"there is no definition {name} in the program{hint}")
    drawing = _Drawing(program, unfold)
    net = run(drawing.definition(name, ()))
    return Drawn(net, name, program.types, drawing.foreign)


class _Drawing:
    """Definitions on their way to diagrams."""

    def __init__(self, program: Program, unfold: bool) -> None:
        self.program = program
        self.unfold = unfold
        self.foreign: dict[str, Type] = {}
        self.drawn: set[str] = set()
        self.nodes = 0

    def wire_type(self, t: Type) -> WireType:
        """The type of a wire; one that no array has keeps its own words."""
        if isinstance(t, ArrayType):
            if not all([isinstance(n, int) for n in t.shape]):
                raise DiagramError(
                    f"a wire has no type {show(t)} with a dimension that is known at run time; "
                    "trace the function for arrays of one size"
                )
            return of_array(t)
        text = show(t)
        self.foreign[text] = t
        return Foreign(text)

    def definition(self, name: str, within: tuple[str, ...]) -> Any:
        """The diagram of a definition; of one that is being drawn, a frame that says so."""
        d = self.program.defs[name]
        draft = Draft()
        env = {p: draft.input(self.wire_type(p.type), p.linear) for p in (*d.xs, *d.lxs)}
        for p, w in env.items():
            w.name = "" if within else p.name  # those within are named as what is given to them
        if name in within or (not self.unfold and name in self.drawn):
            kinds = [(t, False) for t in d.results] + [(t, True) for t in d.lresults]
            outs = draft.add(
                "frame", list(env.values()), name=f"again {name}",
                gives=[self.wire_type(t) for t, _ in kinds], linear=[k for _, k in kinds],
            )  # fmt: skip
            return draft.done(*outs)
        self.drawn.add(name)
        outs = yield from self.block(d.body, env, draft, (*within, name))
        self.nodes += len(draft.entries)
        if self.nodes > LARGEST:
            raise DiagramError(
                f"the diagram of {name} has more than {LARGEST} nodes when every call is unfolded; "
                "unfold=False draws the body of each definition once"
            )
        return draft.done(*outs)

    def block(
        self, e: ir.Leaf | ir.Block, env: dict[ir.Var, Wire], d: Draft, within: tuple[Any, ...]
    ) -> Any:
        """The wires of the results."""
        if isinstance(e, ir.Leaf):
            return (yield from self.leaf(e, env, d, within, None))
        names = variables(e)
        for b in e.bindings:
            if isinstance(b, ir.Unpack):
                t = [self.wire_type(v.type) for v in b.vars]
                outs = d.add(
                    "frame",
                    (env[b.arg],),
                    name="untuple",
                    gives=t,
                    linear=[v.linear for v in b.vars],
                )
            elif isinstance(b.rhs, ir.Leaf):
                outs = yield from self.leaf(b.rhs, env, d, within, b.vars)
            else:
                outs = yield from self.block(b.rhs, env, d, within)
            for v, w in zip(b.vars, outs, strict=True):
                env[v] = w.called(w.name or names.get(v, ""), w.line or v.line)
        return (yield from self.block(e.leaf, env, d, within))

    def leaf(
        self,
        e: ir.Leaf,
        env: dict[ir.Var, Wire],
        d: Draft,
        within: tuple[Any, ...],
        binders: ir.Vars | None,
    ) -> Any:
        """The wires of a leaf's results."""
        match e:
            case ir.Ret() | ir.Copy():
                return [env[a] for a in e.args]
            case ir.Dup():
                return [env[e.args[0]]] * 2
            case ir.Drop(body=body):
                yield from self.block(body, dict(env), d, within)
                return []
            case ir.Lit(value=value, type=t):
                return [d.const(_plain(value, t))]
            case ir.Zero(type=t, linear=linear) if self._adds(t):
                return d.add("zero", data=self.wire_type(t), linear=[linear])
        ins = [env[a] for a in e.operands()]
        kinds = self.results(e, binders)
        gives, linear = [self.wire_type(t) for t, _ in kinds], [k for _, k in kinds]
        if isinstance(e, ir.Application):
            bodies = []
            for f in e.functions:
                bodies.append((yield self.definition(f, within)))
                for own, given in zip(reversed(bodies[-1].inputs), reversed(ins), strict=False):
                    own.called(own.name or given.name, own.line)
            held, _ = marked(_extras(e), ir.Var)
            return d.add(
                "frame", ins, name=_head(e), data=(type(e).__name__, e.functions, held),
                bodies=bodies, gives=gives, linear=linear,
            )  # fmt: skip
        if isinstance(e, ir.Prim):
            params, _ = marked(tuple(e.params.items()), ir.Var)
            if self._is_op(e.name, ins, gives, params):
                return d.add(
                    "op", ins, name=e.name, data=params or None, gives=gives, linear=linear
                )
        name, held = _stated(e)
        return d.add("frame", ins, name=name, data=held, gives=gives, linear=linear)

    def _adds(self, t: Type) -> bool:
        w = self.wire_type(t)
        return isinstance(w, Base) and additive(w)

    def _is_op(
        self, name: str, ins: Sequence[Wire], gives: list[WireType], params: tuple[Any, ...]
    ) -> bool:
        try:
            return list(operations.gives(name, [w.type for w in ins], params)) == gives
        except DiagramError:
            return False

    def results(self, e: ir.Leaf, binders: ir.Vars | None) -> list[tuple[Type, bool]]:
        """The types of what a leaf gives, and which are linear."""
        if binders is not None:
            return [(v.type, v.linear) for v in binders]
        given = type_of_leaf(self.program, e)
        return [(t, False) for t in given.xs] + [(t, True) for t in given.lxs]


def _plain(value: object, t: Type) -> Any:
    """A literal as a node holds it."""
    assert isinstance(t, ArrayType), "a literal is a number or an array"
    array = np.asarray(value, t.dtype)
    if t.shape:
        return array
    short = repr(t)
    if short == "f64[]":
        return float(array)
    return bool(array) if short == "bool[]" else int(array) if short == "i64[]" else array[()]


def _head(e: ir.Application) -> str:
    return f"call {e.functions[0]}" if type(e) is Call else e.head().strip()


def _extras(e: ir.Application) -> Any:
    """The numbers of an application, such as lengths of loops, beside definitions and arguments."""
    match e:
        case Scan():
            return (e.n, e.direction, e.nk, e.nc, e.nlc)
        case While():
            return (e.nk,)
        case Sized():
            return e.sizes
    return ()


def _stated(e: ir.Leaf) -> tuple[str, Any]:
    """The name of a leaf that is a frame, and what it holds."""
    match e:
        case ir.Prim(primitive=p, params=params):
            return p.name, ("prim", marked(tuple(params.items()), ir.Var)[0])
        case ir.Part(at=at):
            return type(e).__name__.lower(), ("part", marked(at, ir.Var)[0])
        case ir.Tup(linear=linear, fields=fields):
            return "tuple", ("tuple", linear, fields)
        case ir.Zero(linear=linear):
            return "zero", ("zero", linear)
        case ir.Inj(tag=tag):
            return f"inj {tag}", ("inj", tag)
        case ir.Proj(tag=tag):
            return f"proj {tag}", ("proj", tag)
    raise AssertionError(f"no frame for {type(e).__name__}")


# --- back -----------------------------------------------------------------------------------------


def program_of(drawn: Drawn) -> Program:
    """The program of a diagram: a definition for it and for each body of its frames."""
    writing = _Writing(drawn)
    run(writing.definition(drawn.name, drawn.net))
    return Program(drawn.types, writing.defs)


class _Writing:
    """Diagrams on their way to definitions."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.defs: dict[str, ir.Def] = {}
        self.begun: set[str] = set()

    def type(self, t: WireType) -> Type:
        """The type of a wire in the program."""
        if isinstance(t, Base) and t.name != "E":
            return array_of(t)
        if isinstance(t, Foreign):
            return self.drawn.foreign[t.text]
        raise DiagramError(
            "a wire that carries a function or a bundle has no type in Linear A; simplify the "
            "diagram first, or evaluate it"
        )

    def definition(self, name: str, net: Net) -> Any:
        """The definition of a diagram, once."""
        if name in self.begun:
            return
        (again, *_) = [*net.nodes.values(), None]
        if again is not None and again.kind == "frame" and again.name == f"again {name}":
            return
        self.begun.add(name)
        names, env = ir.Names(), {}
        bindings: list[Any] = []

        def bind(like: str, w: Wire) -> ir.Var:
            env[w] = v = ir.Var(names(like), self.type(w.type), w.linear)
            return v

        for w in net.inputs:
            bind("x", w)
        params = [env[w] for w in net.inputs]
        for node in topological(net):
            yield from self.node(node, env, bind, bindings)
        outs = [env[w] for w in net.outputs]
        xs, lxs = ([v for v in outs if v.linear is k] for k in (False, True))
        ts, us = tuple([v.type for v in xs]), tuple([v.type for v in lxs])
        ordered = [v for k in (False, True) for v in params if v.linear is k]
        body = ir.Block(tuple(bindings), ir.Ret((*xs, *lxs)))
        self.defs[name] = ir.Def(name, tuple(ordered), ts, us, body)

    def node(self, node: Node, env: dict[Wire, ir.Var], bind: Any, bindings: list[Any]) -> Any:
        """The bindings of a node."""
        args = tuple([env[w] for w in node.ins])
        if node.kind == "copy" and not node.ins[0].linear:
            env.update(dict.fromkeys(node.outs, args[0]))
            return
        if node.kind == "drop":
            if node.ins[0].linear or not _used_elsewhere(node.ins[0]):
                bindings.append(ir.Let((), ir.drop(args[0])))
            return
        if node.kind == "frame":
            leaf = yield from self.framed(node, args)
        else:
            leaf = self.plain(node, args)
        like = "k" if node.kind == "const" else "v"
        variables = tuple([bind(like, w) for w in node.outs])
        if leaf is None:
            bindings.append(ir.Unpack(variables, args[0]))
        else:
            bindings.append(ir.Let(variables, leaf))

    def plain(self, node: Node, args: ir.Vars) -> ir.Leaf:
        """The leaf of a node that the diagrams have themselves."""
        match node.kind:
            case "const":
                t = self.type(node.outs[0].type)
                assert isinstance(t, ArrayType), "constants are numbers and arrays"
                return ir.lit(np.asarray(node.data, t.dtype)[()], t)
            case "op":
                n = len(args) - marks(node.data or ())
                params = unmarked(node.data or (), args[n:])
                return ir.Prim(args[:n], registry.primitives[node.name], dict(params))
            case "copy":
                return ir.Dup(args)
            case "add":
                return ir.Prim(args, registry.primitives["add"])
            case "zero":
                return ir.zero(self.type(node.data), node.outs[0].linear)
            case "sel":
                return ir.Prim(args, registry.primitives["where"])
        raise DiagramError(f"{node!r} has no counterpart in Linear A; simplify the diagram first")

    def framed(self, node: Node, args: ir.Vars) -> Any:
        """The leaf of a frame; None for taking a tuple apart."""
        if node.name == "untuple":
            return None
        held = node.data
        if not isinstance(held, tuple) or not held:
            raise DiagramError(f"{node!r} is no frame of a Linear A program")
        if held[0] in _FORMS:
            _, functions, extras = held
            for f, body in zip(functions, node.bodies, strict=True):
                yield self.definition(f, body)
            n = len(args) - marks(extras)
            extras = unmarked(extras, args[n:])
            return _FORMS[held[0]](args[:n], functions, extras)
        word, *rest = held
        n = len(args) - marks(tuple(rest))
        rest = unmarked(tuple(rest), args[n:])
        out = node.outs[0] if node.outs else None
        return self.stated(word, node, args[:n], rest, out)

    def stated(self, word: str, node: Node, args: ir.Vars, rest: Any, out: Wire | None) -> ir.Leaf:
        """The leaf of a frame without a body."""
        match word:
            case "prim":
                return ir.Prim(args, registry.primitives[node.name], dict(rest[0]))
            case "part":
                kind: Any = {"read": ir.Read, "accum": ir.Accum, "put": ir.Put}[node.name]
                return kind(args, rest[0])
            case "tuple":
                return ir.Tup(args, *rest)
            case "proj":
                return ir.Proj(args, rest[0])
        assert out is not None, f"{word} gives a value"
        if word == "inj":
            return ir.Inj(args, rest[0], self.type(out.type))
        if word == "zero":
            return ir.zero(self.type(out.type), rest[0])
        raise DiagramError(f"{node!r} is no frame of a Linear A program")


def _used_elsewhere(w: Wire) -> bool:
    """Whether a value that is dropped is a copy: then it is used, or dropped, once more."""
    return w.source is not None and isinstance(w.source[0], Node) and w.source[0].kind == "copy"


_FORMS: dict[str, Any] = {
    "Call": lambda args, fs, _: Call(args, fs),
    "Cond": lambda args, fs, _: Cond(args, fs),
    "Switch": lambda args, fs, _: Switch(args, fs),
    "Case": lambda args, fs, _: Case(args, fs),
    "Scan": lambda args, fs, extras: Scan(args, fs, *extras),
    "While": lambda args, fs, extras: While(args, fs, *extras),
    "Sized": lambda args, fs, sizes: Sized(args, fs, sizes),
}

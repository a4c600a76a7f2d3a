"""A diagram, between two steps of its differentiation too, as a program of Linear A.

    a box            a definition; its value is the tuple of what it captured, in a sum of such
    eval             case of that sum
    E                a sum of the bundles that are packed, and of nothing
    ORANGE, GREEN    what the passes make of a definition with what is left in the frame: the
                     non-linear half of its jvp, and the linear half transposed

>>> from lineara.diagrams.parse import parse
>>> print(text(parse("(x: R) => f = box() { (y: R) => z = sin(y) -> z } z = eval(f, x) -> z")))
type fn1 = [<>]
<BLANKLINE>
def program(x: f64;) -> (f64;) =
  let v: <> = <> in
  let x2: fn1 = inj[0, fn1](v) in
  let x3: f64 = case x2 of f with (x;) in
  (x3;)
<BLANKLINE>
def f(env: <>, x: f64;) -> (f64;) =
  let x2: f64 = sin(x) in
  let (;) = drop(env) in
  (x2;)
<BLANKLINE>
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lineara.diagrams.adjoint import finished
from lineara.diagrams.net import Net, Node, Wire, topological
from lineara.diagrams.operations import marks, unmarked
from lineara.diagrams.types import Arrow, E, Foreign, Stack, Type, array_of
from lineara.errors import DiagramError
from lineara.facts.primitive import registry
from lineara.facts.types import ArrayType, Named, Product, Sum
from lineara.facts.types import Stack as Stacked
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case, Cond
from lineara.linear_a.calls import Call
from lineara.linear_a.function_sums import Body, FunctionSum
from lineara.linear_a.loops import Scan
from lineara.linear_a.program import Program
from lineara.passes.names import JVP, LIN, NL, T, mangled
from lineara.passes.names import E as ERASED

WireNames = Mapping[Wire, str]
WHOLE, BUNDLE = "program", "E"
FRAMES = {"BLUE": ".vjp", "ORANGE": JVP + NL, "GREEN": JVP + LIN + T + ERASED}


def text(net: Net, names: WireNames | None = None) -> str:
    """The text of the program, without what passes make and without what adds and opens bundles."""
    whole = program(net, names)
    shown = {name: d for name, d in whole.defs.items() if "." not in name}
    return str(Program(whole.types, shown))


def program(net: Net, names: WireNames | None = None) -> Program:
    """The program of a diagram, with all that it needs; it checks, and it runs.

    Raises a DiagramError for a function among the inputs, whose text is not known.
    """
    if any([isinstance(w.type, Arrow) for w in net.inputs]):
        raise DiagramError(
            "a function that comes from outside has no text in Linear A; make the diagram of a "
            "function of numbers"
        )
    return _Writer(net, names or {}).written()


class _Writer:
    """Definitions and types as they are met."""

    def __init__(self, net: Net, names: WireNames) -> None:
        self.net = net
        self.names = names
        self.fresh = ir.Names([WHOLE])
        self.defs: dict[str, ir.Def] = {}
        self.world = ""
        self.worlds: dict[Net, str] = {}
        self.functions: dict[tuple[Type, str], str] = {}
        self.boxes: dict[tuple[Type, str], list[Node]] = {}
        self.labels: dict[Node, str] = {}
        self.bundles: list[tuple[Type, ...]] = []
        self.rests: dict[Node, str] = {}
        self.comes_to: dict[Node, Net] = {}
        self.bundled = False

    def written(self) -> Program:
        """The whole."""
        self.seen(self.net)
        self.definition(WHOLE, self.net)
        for node, label in self.labels.items():
            self.definition(label, node.body, len(node.ins))
        types: dict[str, Any] = {}
        for (t, world), name in self.functions.items():
            self.world = world
            ways = [self.product(_types(b.ins)) for b in self.boxes.get((t, world), ())]
            types[name] = Sum(tuple(ways) or (Product(()),))
        if self.bundled:
            types[BUNDLE] = Sum((Product(()), *map(self.product, self.bundles)))
        return Program(types, self.defs)

    def seen(self, net: Net) -> None:
        """The boxes, bundles and frames of all levels, and of what the frames come to.

        What a frame holds is a world of its own: its functions never meet those outside.
        """
        open_ = [(net, "", "")]
        while open_:
            n, world, made_by = open_.pop()
            self.worlds[n] = world
            for node in topological(n):
                within = world
                if node.kind == "box":
                    self.boxes.setdefault((node.outs[0].type, world), []).append(node)
                    self.labels[node] = self.fresh(made_by or self.names.get(node.outs[0], "f"))
                elif node.kind == "pack" and _types(node.ins) not in self.bundles:
                    self.bundles.append(_types(node.ins))
                elif node.kind in FRAMES:
                    self.rests[node] = within = f"rest{len(self.rests) + 1}"
                    self.comes_to[node] = finished_body = finished(node)
                    open_.append((finished_body, world, f"{within}{FRAMES[node.kind]}.f"))
                open_ += [(body, within, made_by) for body in node.bodies]

    # --- types ------------------------------------------------------------------------------------

    def type(self, t: Type) -> Any:
        """The type of a wire."""
        match t:
            case Arrow():
                return self.functions_of(t).type
            case Stack(n, item):
                return Stacked((self.type(item),), n)
            case Foreign():
                raise DiagramError(f"a wire of the type {t.text} has no text in Linear A here")
        if t == E:
            self.bundled = True
            return Named(BUNDLE)
        return array_of(t)

    def functions_of(self, t: Type) -> FunctionSum:
        """The sum of the functions of an arrow's type in the world that is written."""
        at = t, self.world
        name = self.functions.setdefault(at, f"fn{len(self.functions) + 1}")
        return FunctionSum(name, tuple([self.labels[box] for box in self.boxes.get(at, ())]))

    def product(self, ts: Sequence[Type]) -> Product:
        """Several in one."""
        return Product(tuple(map(self.type, ts)))

    # --- definitions ------------------------------------------------------------------------------

    def definition(self, name: str, net: Net, captured: int | None = None) -> None:
        """The definition of a diagram; what a box captured comes as one tuple."""
        self.world = self.worlds[net]
        b = _Body(self)
        formals = [b.formal(w) for w in net.inputs]
        params = formals
        if captured is not None:
            whole = ir.Var(b.names("env"), self.product(_types(net.inputs[:captured])))
            params = [whole, *formals[captured:]]
            if captured:
                b.bindings.append(ir.Unpack(tuple(formals[:captured]), whole))
        self.reserve(name)
        for node in topological(net):
            b.node(node)
        self.defs[name] = b.done(name, params, [b.env[w] for w in net.outputs])

    def reserve(self, name: str) -> None:
        """The place of a definition that stands before what it needs."""
        self.defs[name] = ir.Def(name, (), (), (), ir.Block((), ir.Ret(())))

    def short(
        self, name: str, types: Sequence[Any], act: Callable[["_Body", list[ir.Var]], Any]
    ) -> str:
        """A definition of a few lines, written once."""
        if name not in self.defs:
            b = _Body(self)
            params = [ir.Var(f"a{i}", t) for i, t in enumerate(types)]
            self.defs[name] = b.done(name, params, act(b, params))
        return name


class _Body(Body):
    """The bindings of a definition."""

    def __init__(self, writer: _Writer) -> None:
        super().__init__(writer.names.values())
        self.w = writer
        self.env: dict[Wire, ir.Var] = {}

    def done(self, name: str, params: Sequence[ir.Var], outs: Sequence[ir.Var]) -> ir.Def:
        """The definition; what nobody uses is dropped."""
        used = {v for b in self.bindings for v in ir.reads(b)} | set(outs)
        bound = [*params, *[v for b in self.bindings for v in b.vars]]
        idle = [v for v in bound if v not in used]
        drops = [ir.Let((), ir.drop(*idle))] if idle else []
        body = ir.Block((*self.bindings, *drops), ir.Ret(tuple(outs)))
        return ir.Def(name, tuple(params), tuple([v.type for v in outs]), (), body)

    def formal(self, w: Wire) -> ir.Var:
        """The variable of a wire."""
        name = self.w.names.get(w, "").lstrip("~") or self.names("x")
        self.env[w] = v = ir.Var(name, self.w.type(w.type))
        return v

    def let(self, leaf: ir.Leaf, *types: Any) -> ir.Vars:
        """Variables for what a leaf gives."""
        return self.several(["v"] * len(types), types, leaf)

    def bundle(self, tag: int, *parts: ir.Var) -> ir.Var:
        """A bundle; 0 is that of nothing."""
        return self.bind("v", Named(BUNDLE), self.in_bundle(tag, parts))

    def in_bundle(self, tag: int, parts: Sequence[ir.Var]) -> ir.Inj:
        """The leaf of a bundle."""
        return ir.Inj((self.pack("v", parts),), tag, Named(BUNDLE))

    def zero(self, t: Any) -> ir.Var:
        """A zero of a type."""
        return self.bundle(0) if t == Named(BUNDLE) else self.bind("v", t, ir.zero(t, False))

    def node(self, node: Node) -> None:
        """Write the node."""
        ins = [self.env[w] for w in node.ins]
        if node.kind == "copy":
            self.env.update(dict.fromkeys(node.outs, ins[0]))
            return
        if node.kind != "drop":
            leaf = self.leaf(node, ins)
            self.bindings.append(ir.Let(tuple([self.formal(w) for w in node.outs]), leaf))

    def leaf(self, node: Node, ins: list[ir.Var]) -> Any:
        """The leaf that gives what the node gives."""
        args, types = tuple(ins), [self.w.type(w.type) for w in node.outs]
        match node.kind:
            case "const":
                return ir.lit(np.asarray(node.data, types[0].dtype)[()], types[0])
            case "op":
                n = len(args) - marks(node.data or ())
                params = dict(unmarked(node.data or (), args[n:]))
                return ir.Prim(args[:n], registry.primitives[node.name], params)
            case "box":
                t = node.outs[0].type
                i = self.w.boxes[t, self.w.world].index(node)
                return self.w.functions_of(t).inject(i, self.pack("v", args))
            case "eval":
                return self.applied(node.ins[0].type, args)
            case "add" if types[0] == Named(BUNDLE):
                return Call(args, (self.adds(),))
            case "add" if isinstance(types[0], ArrayType):
                return ir.Prim(args, registry.primitives["add"])
            case "zero" if types[0] == Named(BUNDLE):
                return self.in_bundle(0, ())
            case "zero":
                return ir.zero(types[0], False)
            case "pack":
                return self.in_bundle(self.w.bundles.index(_types(node.ins)) + 1, args)
            case "unpack":
                return Call(args, (self.opens(tuple(node.data)),))
            case "sel" if isinstance(types[0], ArrayType):
                return ir.Prim(args, registry.primitives["where"])
            case "sel":
                return Cond(args, tuple([self.side(i, types[0]) for i in (0, 1)]))
            case "route":
                return Cond(args, tuple([self.way(i, types[0]) for i in (0, 1)]))
            case "scan":
                return self.rounds(node, args)
            case "BLUE" | "ORANGE" | "GREEN":
                name, world = self.w.rests[node], self.w.world
                self.w.definition(name, node.body)
                self.w.definition(name + FRAMES[node.kind], self.w.comes_to[node])
                self.w.world = world
                return Call(args, (name + FRAMES[node.kind],))
        raise DiagramError(f"{node.label} has no text in Linear A here")

    def applied(self, t: Any, args: tuple[ir.Var, ...]) -> Any:
        """A function value at arguments."""
        functions = self.w.functions_of(t)
        if functions.definitions:
            return functions.apply(args)
        name = f"{args[0].type}.apply"  # in what a frame holds, which is not run: a loop

        def again(b: _Body, a: list[ir.Var]) -> tuple[ir.Var, ...]:
            return b.let(Call(tuple(a), (name,)), *map(self.w.type, t.target))

        return Call(args, (self.w.short(name, [v.type for v in args], again),))

    def rounds(self, node: Node, args: tuple[ir.Var, ...]) -> Scan:
        """A scan: the function is the same in every round."""
        n, carries, reverse = node.data
        t = node.ins[0].type
        types = [args[0].type, *[self.w.type(s) for s in t.source]]  # type: ignore[union-attr]
        given = [self.w.type(s) for s in t.target]  # type: ignore[union-attr]
        name = self.w.short(
            f"{args[0].type}.round", types, lambda b, a: b.let(b.applied(t, tuple(a)), *given)
        )
        return Scan(args, (name,), n, "rev" if reverse else "fwd", 1, carries, 0)

    # --- what bundles and choices need ------------------------------------------------------------

    def side(self, i: int, t: Any) -> str:
        """The first or the second of two values."""
        name = f"{BUNDLE}.{('first', 'second')[i]}.{mangled(t)}"
        return self.w.short(name, [t, t], lambda b, a: (a[i],))

    def way(self, i: int, t: Any) -> str:
        """A cotangent on one side, and zero on the other."""

        def act(b: _Body, a: list[ir.Var]) -> tuple[ir.Var, ...]:
            nothing = b.zero(t)
            return (nothing, a[0]) if i else (a[0], nothing)

        return self.w.short(f"{BUNDLE}.{('left', 'right')[i]}.{mangled(t)}", [t], act)

    def opens(self, ts: tuple[Type, ...]) -> str:
        """The parts of a bundle of those types, or zeros."""
        types = [self.w.type(t) for t in ts]
        known = self.w.bundles.index(ts) + 1 if ts in self.w.bundles else 0
        name = f"{BUNDLE}.open{known}" if known else f"{BUNDLE}.open.{len(self.w.defs)}"

        def parts(b: _Body, a: list[ir.Var]) -> tuple[ir.Var, ...]:
            return b.unpack(["p"] * len(types), a[0])

        def zeros(b: _Body, a: list[ir.Var]) -> tuple[ir.Var, ...]:
            return tuple([b.zero(t) for t in types])

        ways = []
        for tag, payload in enumerate(self.payloads()):
            act = parts if tag == known and tag else zeros
            ways.append(self.w.short(f"{name}.{tag}", [payload], act))
        act = lambda b, a: b.let(Case((a[0],), tuple(ways)), *types)  # noqa: E731
        return self.w.short(name, [Named(BUNDLE)], act)

    def payloads(self) -> list[Product]:
        """The types of the payloads of a bundle's alternatives."""
        return [self.w.product(ts) for ts in ((), *self.w.bundles)]

    def adds(self) -> str:
        """The sum of two bundles: they are of one function, or one is nothing."""
        name, e = f"{BUNDLE}.add", Named(BUNDLE)
        if name in self.w.defs:
            return name
        payloads = self.payloads()

        def both(tag: int, other: int) -> Any:
            def act(b: _Body, a: list[ir.Var]) -> tuple[ir.Var, ...]:
                if tag != other:  # the other is nothing: two functions never meet
                    return b.let(ir.Inj((a[1],), tag, e), e)
                sides = [b.unpack(["p"] * len(payloads[tag].items), v) for v in a]
                return (b.bundle(tag, *[b.total(x, y) for x, y in zip(*sides, strict=True)]),)

            return self.w.short(f"{name}.{tag}.{other}", [payloads[other], payloads[tag]], act)

        def first(tag: int) -> str:
            if tag == 0:
                return self.w.short(f"{name}.0", [payloads[0], e], lambda b, a: (a[1],))
            ways = tuple([both(tag, other) for other in range(len(payloads))])
            act = lambda b, a: b.let(Case((a[1], a[0]), ways), e)  # noqa: E731
            return self.w.short(f"{name}.{tag}", [payloads[tag], e], act)

        self.w.reserve(name)  # bundles hold bundles
        ways = tuple([first(tag) for tag in range(len(payloads))])
        del self.w.defs[name]
        return self.w.short(name, [e, e], lambda b, a: b.let(Case(tuple(a), ways), e))

    def total(self, x: ir.Var, y: ir.Var) -> ir.Var:
        """The sum of two cotangents."""
        if x.type == Named(BUNDLE):
            return self.bind("v", x.type, Call((x, y), (f"{BUNDLE}.add",)))
        return self.bind("v", x.type, ir.Prim((x, y), registry.primitives["add"]))


def _types(wires: Sequence[Wire]) -> tuple[Type, ...]:
    return tuple([w.type for w in wires])


Act = Callable[[_Body, list[ir.Var]], Sequence[ir.Var]]

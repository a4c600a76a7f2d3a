r"""Terms of the calculus as diagrams, and diagrams as terms  [Diagrams].

    x           the wires of x                      let x = u in t   t with the wires of u for x
    \x. t       a box that captures FV(\x. t)       <s, t>           both, side by side
    t u         eval                                if c then s else t   sel of two boxes, then eval

A pair is two wires and a function is one; what is used twice is copied, what is not used dropped.

>>> from lineara import calculus, diagrams
>>> print(diagrams.show(diagram_of(calculus.term(r"\x. let f = \y. x * y in f x"))))
(x1: R) =>
  v1, v2 = copy(x1)
  f1 = box(v1) { (x2: R, x3: R) =>
    v4 = multiply(x2, x3)
    -> v4 }
  v3 = eval(f1, v2)
  -> v3
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from lineara.calculus import terms as tm
from lineara.calculus import types as ty
from lineara.calculus.interface import linear_a, to_python
from lineara.calculus.machine import Machine
from lineara.calculus.symbols import Foreign, Symbol, declared, standard
from lineara.diagrams.draft import Draft
from lineara.diagrams.from_programs import diagram_of as diagram_of_program
from lineara.diagrams.lowering import lowered
from lineara.diagrams.names import branches_named
from lineara.diagrams.net import Net, Node, Wire, topological
from lineara.diagrams.types import Arrow as Function
from lineara.diagrams.types import B, R, Z, show
from lineara.diagrams.types import Type as WireType
from lineara.errors import CalculusError, DiagramError
from lineara.staging.capture import trace
from lineara.trampoline import Deep, run

Scope = dict[str, list[Wire]]
_DERIVED = (
    tm.J,
    tm.Pull,
    tm.JFun,
    tm.DualMap,
    tm.At,
    tm.Covec,
    tm.Copair,
    tm.Probe,
    tm.Ev,
    tm.Scale,
)
_LISTS = (tm.Fix, tm.List, tm.Cons, tm.Head, tm.Tail, tm.IsNil)
_BASES = {ty.R: R, ty.BOOL: B, ty.INT: Z}
_EXACT = {
    "iadd": "add", "isub": "subtract", "imul": "multiply", "idiv": "floor_divide",
    "imod": "remainder", "ilt": "less", "ile": "less_equal", "ieq": "equal",
    "and": "logical_and", "or": "logical_or", "not": "logical_not",
}  # fmt: skip


def flat(t: ty.Type) -> list[WireType]:
    """The wires of a type: one for a number or a function, those of both for a pair."""
    match t:
        case ty.Product(a, b):
            return flat(a) + flat(b)
        case ty.Arrow(a, b):
            return [Function(tuple(flat(a)), tuple(flat(b)))]
    if t in _BASES:
        return [_BASES[t]]
    raise DiagramError(
        f"values of {ty.show(t)} have no wire; a diagram has numbers, truth values, pairs and "
        "functions"
    )


def diagram_of(term: tm.Term) -> Net:
    """The diagram of a closed term; the arguments of a function are its inputs.

    Recursion, lists and derivatives have no node.  A term that has them is evaluated as far as it
    is known: its diagram is that of its program.  Raises a DiagramError where that has a recursion,
    or a function whose text numbers decide, and for functions among the inputs.
    """
    missing = next((s for s in _subterms(term) if isinstance(s, (*_DERIVED, *_LISTS))), None)
    if missing is not None:
        return _evaluated(term, missing)
    try:
        return branches_named(run(_whole(term)))
    except RecursionError:
        raise DiagramError(ty.TOO_DEEP) from None


def _subterms(term: tm.Term) -> Iterator[tm.Term]:
    open_, seen = [term], set()
    while open_:
        t = open_.pop()
        if t not in seen:
            seen.add(t)
            yield t
            open_ += t.parts
            if isinstance(t, tm.Fun) and t.symbol.body is not None:
                open_.append(t.symbol.body)


def _evaluated(term: tm.Term, missing: tm.Term) -> Net:
    """The diagram of the program that a term comes to."""
    try:
        if isinstance(term.type, ty.Arrow):
            staged = linear_a(term)
        else:
            function = to_python(Machine().value(term), term.type)
            if isinstance(function, tm.Term):
                raise CalculusError("its value is no number")
            staged = trace(lambda: function)
        return lowered(diagram_of_program(staged.program, staged.name).net)
    except CalculusError as error:
        why = error.message.removeprefix("linear_a: ")
    except DiagramError:
        why = "numbers decide how far it goes, or which function it is"
    other = "take the derivative of the diagram, by diagrams.adjoint"
    if isinstance(missing, _LISTS):
        other = "write a recursion, or a list, out as far as it goes"
    raise DiagramError(
        f"{type(missing).__name__} has no node, and cannot be evaluated beforehand: {why}; {other}"
    )


def _whole(term: tm.Term) -> Deep:
    d, scope, t = Draft(), {}, term.type
    while isinstance(term, tm.Let) and isinstance(term.parts[1], tm.Var):
        if term.parts[1].name != term.name:
            break
        term = term.parts[0]  # a definition that is all there is
    while isinstance(term, tm.Lam):
        scope[term.name] = _named(term.name, [d.input(s) for s in flat(term.source)])
        term = term.parts[0]
        t = term.type
    outs = yield _compiled(term, scope, d)
    while isinstance(t, ty.Arrow):
        args = [d.input(s) for s in flat(t.source)]
        outs = list(d.add("eval", (*outs, *args)))
        t = t.target
    return d.done(*outs)


def _compiled(t: tm.Term, scope: Scope, d: Draft) -> Deep:
    """The wires of a term."""
    match t:
        case tm.Var(_, name):
            return scope[name]
        case tm.Literal(_, held):
            return [d.const(held)]
        case tm.Zero(_, stated):
            return _zeros(d, stated)
        case tm.Lam((body,), name, source):
            return [(yield _box(body, [(name, source)], scope, d))]
        case tm.Let((bound, body), name):
            if isinstance(bound, tm.Literal) and name not in body.free:
                return (yield _compiled(body, scope, d))  # such as the counter of a loop
            wires = _named(name, (yield _compiled(bound, scope, d)))
            return (yield _compiled(body, {**scope, name: wires}, d))
        case tm.If((c, yes, no)):
            asked = yield _compiled(c, scope, d)
            sides = []
            for s in (yes, no):
                sides.append((yield _box(s, [], scope, d)))
            return list(d.add("eval", d.add("sel", (*asked, *sides))))
    assert isinstance(t, tm.App | tm.Pair | tm.Fst | tm.Snd | tm.Fun | tm.Sum), (
        "others are evaluated before"
    )
    parts = []
    for p in t.parts:
        parts.append((yield _compiled(p, scope, d)))
    match t:
        case tm.App():
            return list(d.add("eval", parts[0] + parts[1]))
        case tm.Pair():
            return parts[0] + parts[1]
        case tm.Fst():
            return parts[0][: len(flat(t.type))]
        case tm.Snd():
            return parts[0][-len(flat(t.type)) :]
        case tm.Fun(_, symbol):
            return (yield _called(symbol, parts[0], d))
    return _sum(d, parts, flat(t.type))


def _named(name: str, wires: list[Wire]) -> list[Wire]:
    """The wires of a variable, called by its name unless they have one."""
    if len(wires) == 1:
        wires[0].name = wires[0].name or name
    return wires


def _called(symbol: Symbol, args: list[Wire], d: Draft) -> Deep:
    if symbol.body is not None:
        f = yield _compiled(symbol.body, {}, d)
        return list(d.add("eval", (*f, *args)))
    if symbol.name == "real":
        return list(d.add("op", args, name="astype", data=(("dtype", "float64"),)))
    if isinstance(symbol, Foreign):
        raise DiagramError(
            f"{symbol} is a function of Python that is only called; calculus.of reads its text"
        )
    name = _EXACT.get(symbol.name) or symbol.primitive.name
    return [d.op(name, *args)]


def _box(body: tm.Term, bound: Sequence[tuple[str, ty.Type]], scope: Scope, d: Draft) -> Deep:
    names = sorted(body.free.difference([x for x, _ in bound]))
    inner = Draft()
    within = {x: _named(x, [inner.input(w.type) for w in scope[x]]) for x in names}
    within |= {x: _named(x, [inner.input(s) for s in flat(t)]) for x, t in bound}
    outs = yield _compiled(body, within, inner)
    captured = [w for x in names for w in scope[x]]
    return d.add("box", captured, bodies=[inner.done(*outs)])[0]


def _sum(d: Draft, terms: list[list[Wire]], types: list[WireType]) -> list[Wire]:
    """The sum of values, wire by wire; of functions, a function."""
    sums = []
    for column, t in zip(zip(*terms, strict=True), types, strict=True):
        total = column[0]
        for w in column[1:]:
            total = _plus(d, total, w, t)
        sums.append(total)
    return sums


def _plus(d: Draft, a: Wire, b: Wire, t: WireType) -> Wire:
    if not isinstance(t, Function):
        return d.op("add", a, b)
    inner = Draft()
    f, g = inner.input(t), inner.input(t)
    xs = [inner.input(s) for s in t.source]
    both = [list(inner.add("eval", (h, *xs))) for h in (f, g)]
    return d.add("box", (a, b), bodies=[inner.done(*_sum(inner, both, list(t.target)))])[0]


def _zeros(d: Draft, t: ty.Type) -> list[Wire]:
    zeros = []
    for w in flat(t):
        if isinstance(w, Function):
            inner = Draft()
            for s in w.source:
                inner.input(s)
            target = t.target if isinstance(t, ty.Arrow) else None
            assert target is not None, "the zero of a pair with functions is a pair of zeros"
            zeros.append(d.add("box", bodies=[inner.done(*_zeros(inner, target))])[0])
        else:
            zeros.append(d.const({R: 0.0, Z: 0, B: False}[w]))  # type: ignore[index]
    return zeros


# --- back -----------------------------------------------------------------------------------------


def nested(types: Sequence[ty.Type]) -> ty.Type:
    """The type of several values: pairs nested to the right."""
    pair = types[-1]
    for t in reversed(types[:-1]):
        pair = ty.Product(t, pair)
    return pair


def unflat(t: WireType) -> ty.Type:
    """The type of the values of a wire; a function of nothing is what it gives."""
    if isinstance(t, Function):
        target = nested([unflat(s) for s in t.target])
        return ty.Arrow(nested([unflat(s) for s in t.source]), target) if t.source else target
    for known, wire in _BASES.items():
        if wire == t:
            return known
    raise DiagramError(f"a wire of the type {show(t)} has no values in the calculus")


def term_of(net: Net) -> tm.Term:
    r"""The term of a diagram: a function of its inputs one by one, each node a let.

    >>> from lineara import calculus, diagrams
    >>> net = diagrams.parse("(x: R) => a, b = copy(x) y = multiply(a, b) z = sin(y) -> z")
    >>> calculus.show(term_of(net))
    '\\x%1:R. let y%2 = multiply(x%1, x%1) in let y%3 = sin(y%2) in y%3'
    """
    names = itertools.count(1)
    return run(_abstracted(net, len(net.inputs), names))


def _abstracted(net: Net, own: int, names: Any) -> Deep:
    """Lambdas for the inputs, over the nodes of the diagram as lets."""
    binders = [(f"x%{next(names)}", unflat(w.type)) for w in net.inputs[:own]]
    known: dict[Wire, tm.Term] = {
        w: tm.Var((), *x) for w, x in zip(net.inputs, binders, strict=False)
    }
    body = yield _body(net, known, names)
    for x in reversed(binders):
        body = tm.lam(x, body)
    return body


def _body(net: Net, known: dict[Wire, tm.Term], names: Any) -> Deep:
    lets: list[tuple[str, tm.Term]] = []
    for node in topological(net):
        ins = [known[w] for w in node.ins]
        if node.kind in ("copy", "drop"):
            known.update(dict.fromkeys(node.outs, ins[0]))
            continue
        made = yield _node(node, ins, names)
        if isinstance(made, tm.Literal):
            known[node.outs[0]] = made
            continue
        name = f"y%{next(names)}"
        lets.append((name, made))
        whole = tm.Var((), name, made.type)
        known.update(zip(node.outs, taken_apart(whole, len(node.outs)), strict=True))
    if not net.outputs:
        raise DiagramError("a diagram without outputs has no value, and a term has one")
    body = tupled([known[w] for w in net.outputs])
    for name, made in reversed(lets):
        body = tm.let(name, made, body)
    return body


def _node(node: Node, ins: list[tm.Term], names: object) -> Deep:
    match node.kind:
        case "const":
            return tm.Literal((), node.data)
        case "zero" if node.data == R:
            return tm.Literal((), 0.0)
        case "op" if not node.data:
            symbol = _symbol(node)
            return tm.Fun((tupled(ins),), symbol)
        case "add" if node.outs[0].type == R:
            return tm.Sum(tuple(ins))
        case "eval":
            return tm.app(ins[0], tupled(ins[1:])) if ins[1:] else ins[0]
        case "sel":
            return tm.If(tuple(ins))
        case "box":
            return (yield _lambda(node, ins, names))
    raise DiagramError(f"{node!r} has no term; bundles and frames are the diagrams' own")


def _symbol(node: Node) -> Symbol:
    if node.ins and node.ins[0].type in (Z, B):
        short = {(v, k[0] == "i" or v.startswith("logical")): k for k, v in _EXACT.items()}
        name = short.get((node.name, True))
        if name is not None:
            return standard()[name]
    symbol = declared().get(node.name)
    if symbol is None:
        raise DiagramError(f"{node.name} is no function symbol of the calculus")
    return symbol


def _lambda(node: Node, ins: list[tm.Term], names: Any) -> Deep:
    body = node.body
    known: dict[Wire, tm.Term] = dict(zip(body.inputs, ins, strict=False))
    bound = body.inputs[len(ins) :]
    if not bound:
        return (yield _body(body, known, names))
    x = (f"x%{next(names)}", nested([unflat(w.type) for w in bound]))
    known.update(zip(bound, taken_apart(tm.Var((), *x), len(bound)), strict=True))
    return tm.lam(x, (yield _body(body, known, names)))


def tupled(parts: Sequence[tm.Term]) -> tm.Term:
    """Several terms as pairs nested to the right."""
    pair = parts[-1]
    for p in reversed(parts[:-1]):
        pair = tm.Pair((p, pair))
    return pair


def taken_apart(t: tm.Term, n: int) -> list[tm.Term]:
    """The parts of a tuple of n."""
    parts = []
    for _ in range(n - 1):
        parts.append(tm.Fst((t,)))
        t = tm.Snd((t,))
    return [*parts, t] if n else []

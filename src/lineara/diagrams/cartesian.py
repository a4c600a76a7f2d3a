"""The cartesian form: a hash-consed term graph, in which a value may be used any number of times.

Copies and drops are gone, equal nodes are one, and a box is known by its body with what it
captured put in: so diagrams that differ by the laws of copy and drop, by their naturality, or by
where a captured value is computed, have one form  [Diagrams].

>>> from lineara.diagrams.parse import parse
>>> a = parse("(x: R) => y = sin(x) a, b = copy(y) z = multiply(a, b) -> z")
>>> b = parse("(x: R) => a, b = copy(x) y = sin(a) w = sin(b) z = multiply(y, w) -> z")
>>> cartesian(a).digest == cartesian(b).digest
True
"""

from collections.abc import Generator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from lineara.diagrams.canonical import held
from lineara.diagrams.draft import Draft
from lineara.diagrams.net import Net, Wire, topological
from lineara.diagrams.types import Arrow, Type, Types, show
from lineara.facts.hints import Leaf, Shaped
from lineara.trampoline import run


class Entry(NamedTuple):
    """A value: an input, a bound variable, an output of a node, or a box with its results."""

    kind: str
    name: str
    data: Any
    args: tuple[int, ...]
    type: Type
    free: frozenset[int]  # the open binders whose variables it depends on
    height: int  # how deep boxes lie in boxes in it
    binds: Types = ()  # of a box
    given: Types = ()  # the types of all outputs of the node
    port: int = 0


def shown(kind: str, data: Shaped | None) -> str:
    """The content of a value as a text, without the tag of a pack."""
    return "" if kind == "pack" else held(data)


class Cartesian:
    """Values by number, each made once; the outputs."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.known: dict[Any, int] = {}
        self.takes: Types = ()
        self.outputs: tuple[int, ...] = ()
        self._binders = 0

    @property
    def digest(self) -> bytes:
        """A text that differs where normal forms differ, however values are numbered."""
        digests: list[bytes] = []
        for e in self.entries:
            h = blake2b(digest_size=20)
            h.update(repr((e.kind, e.name, shown(e.kind, e.data), show(e.type), e.port)).encode())
            h.update(repr([show(t) for t in e.binds]).encode())
            for a in e.args:
                h.update(digests[a])
            digests.append(h.digest())
        whole = blake2b(repr([show(t) for t in self.takes]).encode(), digest_size=20)
        for i in self.outputs:
            whole.update(digests[i])
        return whole.digest()

    @property
    def size(self) -> int:
        """How many different values the outputs need, inputs not counted."""
        needed = self.needed(self.outputs)
        return sum([self.entries[i].kind not in ("input", "bound") for i in needed])

    def needed(self, outputs: Sequence[int]) -> list[int]:
        """The values that those depend on, and they, in order."""
        seen, open_ = set(outputs), list(outputs)
        while open_:
            for a in self.entries[open_.pop()].args:
                if a not in seen:
                    seen.add(a)
                    open_.append(a)
        return sorted(seen)

    def value(
        self,
        kind: str,
        args: Sequence[int],
        type: Type,
        *,
        name: str = "",
        data: Any = None,
        binds: Types = (),
        given: Types = (),
        port: int = 0,
        free: frozenset[int] | None = None,
        height: int | None = None,
    ) -> int:
        """The number of a value; one that is there already is not made again."""
        key = (kind, name, shown(kind, data), tuple(args), type, binds, port)
        number = self.known.get(key)
        if number is None:
            parts = [self.entries[a] for a in args]
            if free is None:
                free = frozenset().union(*[p.free for p in parts])
            if height is None:
                height = max([p.height for p in parts], default=0)
            number = self.known[key] = len(self.entries)
            self.entries.append(
                Entry(kind, name, data, tuple(args), type, free, height, binds, given, port)
            )
        return number

    def outputs_of(
        self, kind: str, args: Sequence[int], given: Types, name: str = "", data: Leaf = None
    ) -> list[int]:
        """The outputs of a node."""
        return [
            self.value(kind, args, t, name=name, data=data, given=given, port=i)
            for i, t in enumerate(given)
        ]

    # --- boxes ------------------------------------------------------------------------------

    def closed(self, binder: int, variables: Sequence[int], results: Sequence[int]) -> int:
        """The box of a body over variables that have been open until now.

        Variables are named by height: a box is the same at whatever depth it stands, and the boxes
        within it are lower, so no name hides another.
        """
        height = 1 + max([self.entries[r].height for r in results], default=0)
        binds = tuple([self.entries[v].type for v in variables])
        table = {
            v: self.value("bound", (), t, data=(height, i), height=0)
            for i, (v, t) in enumerate(zip(variables, binds, strict=True))
        }
        for i in self._dependent(binder, results):
            e = self.entries[i]
            if i not in table:
                table[i] = self.value(
                    e.kind, [table.get(a, a) for a in e.args], e.type, name=e.name, data=e.data,
                    binds=e.binds, given=e.given, port=e.port, height=e.height,
                )  # fmt: skip
        closed_results = [table.get(r, r) for r in results]
        t = Arrow(binds, tuple([self.entries[r].type for r in closed_results]))
        return self.value("box", closed_results, t, data=height, binds=binds, height=height)

    def _dependent(self, binder: int, results: Sequence[int]) -> list[int]:
        """The values that the results need and that depend on the binder, in order."""
        seen, open_ = set(), list(results)
        while open_:
            i = open_.pop()
            if i not in seen and binder in self.entries[i].free:
                seen.add(i)
                open_ += self.entries[i].args
        return sorted(seen)

    def binder(self, types: Types) -> tuple[int, list[int]]:
        """A new binder and its variables."""
        self._binders += 1
        own = frozenset((self._binders,))
        return self._binders, [
            self.value("open", (), t, data=(self._binders, i), free=own, height=0)
            for i, t in enumerate(types)
        ]


def cartesian(net: Net) -> Cartesian:
    """The cartesian form of a diagram."""
    c = Cartesian()
    c.outputs = _put(c, net)
    return c


def joint(a: Net, b: Net) -> tuple[Cartesian, tuple[int, ...], tuple[int, ...]]:
    """Two diagrams on the same inputs in one form: what is equal has one number."""
    c = Cartesian()
    return c, _put(c, a), _put(c, b)


def _put(c: Cartesian, net: Net) -> tuple[int, ...]:
    c.takes = net.takes
    inputs = [c.value("input", (), t, data=i) for i, t in enumerate(net.takes)]
    return tuple(run(_consed(c, net, inputs)))


def _consed(c: Cartesian, net: Net, inputs: Sequence[int]) -> Generator[Any, Any, list[int]]:
    at: dict[Wire, int] = dict(zip(net.inputs, inputs, strict=True))
    for node in topological(net):
        ins = [at[w] for w in node.ins]
        if node.kind == "copy":
            outs = ins * 2
        elif node.kind == "box":
            body = node.body
            binder, variables = c.binder(body.takes[len(ins) :])
            results = yield _consed(c, body, [*ins, *variables])
            outs = [c.closed(binder, variables, results)]
        elif node.bodies:
            inner = [cartesian(b).digest for b in node.bodies]
            given = tuple([w.type for w in node.outs])
            outs = c.outputs_of(node.kind, ins, given, node.name, (held(node.data), *inner))
        else:
            given = tuple([w.type for w in node.outs])
            outs = c.outputs_of(node.kind, ins, given, node.name, node.held)
        at.update(zip(node.outs, outs, strict=True))
    return [at[w] for w in net.outputs]


# --- back -----------------------------------------------------------------------------------------


def monogamous(c: Cartesian) -> Net:
    """The diagram of a cartesian form, with copies and drops; a value is computed once a level.

    >>> from lineara.diagrams.canonical import isomorphic
    >>> from lineara.diagrams.parse import parse
    >>> net = parse("(x: R) => a, b = copy(x) z = multiply(a, b) -> z")
    >>> isomorphic(monogamous(cartesian(net)), net)
    True
    """
    scope = _Scope(None, Draft())
    for i, t in enumerate(c.takes):
        scope.at[c.known[("input", "", held(i), (), t, (), 0)]] = scope.draft.input(t)
    outs = run(_emitted(c, scope, c.outputs))
    return scope.draft.done(*outs)


class _Scope:
    """A level on its way back: which values have wires here."""

    def __init__(self, outer: "_Scope | None", draft: Draft) -> None:
        self.outer = outer
        self.draft = draft
        self.at: dict[int, Wire] = {}
        self.captured: list[tuple[Wire, Wire]] = []  # outside, inside

    def wire(self, i: int) -> Wire | None:
        """The wire of a value; one of a level outside is captured."""
        chain: list[_Scope] = [self]
        while i not in chain[-1].at:
            outer = chain[-1].outer
            if outer is None:
                return None
            chain.append(outer)
        wire = chain.pop().at[i]
        for scope in reversed(chain):
            inner = scope.draft.input(wire.type)
            scope.captured.append((wire, inner))
            scope.at[i] = wire = inner
        return wire


def _emitted(c: Cartesian, scope: _Scope, wanted: Sequence[int]) -> Generator[Any, Any, list[Wire]]:
    open_ = list(reversed(wanted))
    while open_:
        i = open_[-1]
        if scope.wire(i) is not None:
            open_.pop()
            continue
        e = c.entries[i]
        if e.kind == "box":
            open_.pop()
            scope.at[i] = yield _boxed(c, scope, e)
            continue
        missing = [a for a in e.args if scope.wire(a) is None]
        if missing:
            open_ += reversed(missing)
            continue
        open_.pop()
        ins = [w for a in e.args if (w := scope.wire(a))]
        outs = scope.draft.add(e.kind, ins, name=e.name, data=e.data, gives=e.given)
        for port, (w, t) in enumerate(zip(outs, e.given, strict=True)):
            key = (e.kind, e.name, shown(e.kind, e.data), e.args, t, e.binds, port)
            if key in c.known:
                scope.at[c.known[key]] = w
    return [w for i in wanted if (w := scope.wire(i))]


def _boxed(c: Cartesian, scope: _Scope, e: Entry) -> Generator[Any, Any, Wire]:
    inner = _Scope(scope, Draft())
    bound = []
    for i, t in enumerate(e.binds):
        w = inner.draft.input(t)
        bound.append(w)
        inner.at[c.known[("bound", "", held((e.data, i)), (), t, (), 0)]] = w
    outs = yield _emitted(c, inner, e.args)
    inner.draft.inputs = [w for _, w in inner.captured] + bound
    body = inner.draft.done(*outs)
    return scope.draft.add("box", [w for w, _ in inner.captured], bodies=[body])[0]

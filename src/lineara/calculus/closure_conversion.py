r"""Closure conversion: a function of numbers becomes a Linear A program, its branches and all.

    a function      a sum of environments, one alternative for each function that may stand there
    f x             case f of l1 | .. | ln with (x)
    if              cond
    a recursion     a definition that calls itself; a list is a sum, a fold a recursion on it
    J(f; s) a       f.jvp, erased
    pull(f; w) a    f.jvp unzipped; w at the value; the transpose of the linear half, erased

A derivative needs the text of all that its function may call.  So the definitions of a derivative
are finished before it is taken, innermost first.  What would differentiate itself has no program of
finite length, and is refused.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.calculus import types as ty
from lineara.calculus.reachable_functions import (
    Both,
    Flow,
    Functions,
    Items,
    Label,
    Node,
    flow,
    free,
)
from lineara.calculus.show import show
from lineara.calculus.symbols import Foreign, Symbol
from lineara.calculus.terms import Term, app
from lineara.calculus.terms import Var as Variable
from lineara.calculus.types import BOOL, INT, Arrow, Product, R, Type, is_ground
from lineara.errors import CalculusError
from lineara.facts.primitive import op
from lineara.facts.types import UNIT, ArrayType, Named
from lineara.facts.types import Product as Tuple
from lineara.facts.types import Sum as Alternatives
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case, Cond, Switch
from lineara.linear_a.calls import call
from lineara.linear_a.function_sums import Body, FunctionSum
from lineara.linear_a.program import Program, tangent_type, tangent_types
from lineara.linear_a.rules_as_text import closed
from lineara.passes.derivatives import reverse
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.names import JVP, LIN, NL, E, T
from lineara.staging.definitions import Definition, named_types, needed
from lineara.staging.tracing import VARIABLE, Results, Signature, Staged
from lineara.trampoline import Deep, run
from lineara.trees import flatten

F64, I64, TRUTH = [ArrayType((), np.dtype(k)) for k in (np.float64, np.int64, np.bool_)]
BASES = {R: F64, INT: I64, BOOL: TRUTH}

EXACT = {
    "iadd": "add", "isub": "subtract", "imul": "multiply", "idiv": "floor_divide",
    "imod": "remainder", "ilt": "less", "ile": "less_equal", "ieq": "equal",
    "and": "logical_and", "or": "logical_or", "not": "logical_not",
}  # fmt: skip


class Text(Body):
    """One definition as it is written."""

    def __init__(self, names: dict[str, ir.Var], formals: Sequence[ir.Var]) -> None:
        super().__init__([v.name for v in formals])
        self.env = names
        self.formals: tuple[ir.Var, ...] = tuple(formals)
        self.pairs: dict[ir.Var, tuple[ir.Var, ...]] = {}  # variables of pairs built here

    def pair(self, a: ir.Var, b: ir.Var) -> ir.Var:
        """<a, b>."""
        p = self.pack("p", (a, b))
        self.pairs[p] = (a, b)
        return p

    def parts(self, v: ir.Var) -> ir.Vars:
        """The parts of a product."""
        if v in self.pairs:
            return self.pairs[v]
        t: Any = v.type
        stem = v.name.rstrip("0123456789")
        return self.unpack([f"{stem}.{i}" for i in range(len(t.items))], v)


class Conversion:
    """The program of a tree."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.program: Program = Program({}, {})
        self.classes: dict[Functions, str] = {}
        self.lists: dict[str, str] = {}
        self.state: dict[Label, str] = {}
        self.calls: dict[Label, list[Functions]] = {}
        self.open: list[Label] = []
        self.wanted: list[Functions] = []  # called outside of all functions
        self.text: Text = Text({}, ())
        self.branches: int = 0
        self.types: dict[str, Any] = {}

    # --- types ----------------------------------------------------------------------------------

    def type(self, t: Any) -> Any:
        """The type of what stands for values of an annotated type."""
        if isinstance(t, Functions):
            return Named(self.name(t.root()))
        if isinstance(t, Both):
            return Tuple((self.type(t.left), self.type(t.right)))
        if isinstance(t, Items):
            item = self.type(t.item)
            name = self.lists.setdefault(repr(item), f"list{len(self.lists) + 1}")
            self.types[name] = Alternatives((UNIT, Tuple((item, Named(name)))))
            return Named(name)
        return BASES[t]

    def name(self, c: Functions) -> str:
        """The name of the type of a set of functions."""
        if c not in self.classes:
            name = self.classes[c] = f"fn{len(self.classes) + 1}"
            self.types[name] = UNIT
            self.types[name] = Alternatives(tuple(map(self.environment, c.labels)))
        return self.classes[c]

    def environment(self, label: Label) -> Tuple:
        """The type of what a function captured."""
        return Tuple(tuple([self.type(self.flow.names[x]) for x in label.free]))

    def functions(self, c: Functions) -> FunctionSum:
        """The sum of the functions of a set."""
        name = self.name(c)
        return FunctionSum(name, tuple([f"{name}_{i}" for i in range(len(c.labels))]))

    # --- writing --------------------------------------------------------------------------------

    def prim(self, name: str, *args: ir.Var, **params: Any) -> ir.Var:
        """A primitive applied."""
        p = op(name)
        t = p.result(*[a.type for a in args], **params)
        return self.text.bind("k", t, ir.Prim(args, p, params))

    def number(self, held: float) -> ir.Var:
        """A constant."""
        t = TRUTH if isinstance(held, bool) else I64 if isinstance(held, int) else F64
        return self.text.bind("k", t, ir.lit(t.dtype.type(held), t))

    def define(self, name: str, formals: Sequence[ir.Var], results: Sequence[ir.Var]) -> None:
        """The definition that has been written."""
        bindings = closed(self.text.bindings, formals, results)
        types = tuple([v.type for v in results])
        definition = ir.Def(
            name, tuple(formals), types, (), ir.Block(tuple(bindings), ir.Ret(tuple(results)))
        )
        self.program = self.program.with_(definition, types=self.types)

    def helper(self, name: str, formals: Sequence[Any], body: Any) -> str:
        """A small definition, written once: `body` gives its result from its formals."""
        if name not in self.program.defs:
            outer = self.text
            params = [ir.Var(f"x{i}", t) for i, t in enumerate(formals)]
            self.text = Text({}, params)
            self.define(name, params, [body(*params)])
            self.text = outer
        return name

    # --- numbers of ground types ------------------------------------------------------------------

    def zeros(self, t: Type) -> ir.Var:
        """Zero of a ground type."""
        if isinstance(t, Product):
            return self.text.pair(self.zeros(t.left), self.zeros(t.right))
        return self.number(0.0)

    def each(self, t: Type, act: Callable[..., Any], *vs: ir.Var) -> ir.Var:
        """An operation on the numbers of vectors of a ground type."""
        if not isinstance(t, Product):
            return act(*vs)
        pairs = [self.text.parts(v) for v in vs]
        left, right = zip(*pairs, strict=True)
        return self.text.pair(self.each(t.left, act, *left), self.each(t.right, act, *right))

    def dot(self, t: Type, k: ir.Var, v: ir.Var) -> ir.Var:
        """The sum of the products of the numbers."""
        if not isinstance(t, Product):
            return self.prim("multiply", k, v)
        (a, b), (c, d) = [self.text.parts(x) for x in (k, v)]
        return self.prim("add", self.dot(t.left, a, c), self.dot(t.right, b, d))

    # --- expressions ------------------------------------------------------------------------------

    def value(self, n: Node) -> Deep:
        """The variable of a tree's value."""
        return (yield getattr(self, f"_{n.kind}")(n))

    def _values(self, n: Node) -> Deep:
        values = []
        for p in n.parts:
            values.append((yield self.value(p)))
        return values

    def _var(self, n: Node) -> Deep:
        return self.text.env[n.data]
        yield

    def _number(self, n: Node) -> Deep:
        return self.number(n.data)
        yield

    def _zero(self, n: Node) -> Deep:
        return self.zeros(n.data)
        yield

    def _let(self, n: Node) -> Deep:
        self.text.env[n.data] = yield self.value(n.parts[0])
        return (yield self.value(n.parts[1]))

    def _pair(self, n: Node) -> Deep:
        return self.text.pair(*(yield self._values(n)))

    def _fst(self, n: Node) -> Deep:
        (p,) = yield self._values(n)
        return self.text.parts(p)[0]

    def _snd(self, n: Node) -> Deep:
        (p,) = yield self._values(n)
        return self.text.parts(p)[1]

    def _fun(self, n: Node) -> Deep:
        (a,) = yield self._values(n)
        symbol: Symbol = n.data
        args = []
        while isinstance(a.type, Tuple):
            first, a = self.text.parts(a)
            args.append(first)
        args.append(a)
        if symbol.name == "real":
            return self.prim("astype", a, dtype=F64.dtype)
        if symbol.name in ("idiv", "imod"):  # NumPy gives 0 where there is no quotient
            name, types = EXACT[symbol.name], (I64, I64)
            none = self.helper(
                f"{name}.none", types, lambda x, y: self.nothing(I64, "quotient_by_0")
            )
            some = self.helper(f"{name}.some", types, lambda x, y: self.prim(name, x, y))
            without = self.prim("equal", args[1], self.number(0))
            return self.text.bind("k", I64, Cond((without, *args), (none, some)))
        if isinstance(symbol, Foreign):
            raise CalculusError(
                f"linear_a: {symbol} is a function of Python that is only called, and here numbers "
                "decide a choice, so that the text of all functions is needed; calculus.of reads it"
            )
        return self.prim(EXACT.get(symbol.name) or symbol.primitive.name, *args)

    def _add(self, n: Node) -> Deep:
        first, *rest = yield self._values(n)
        for v in rest:
            first = self.each(n.data, lambda a, b: self.prim("add", a, b), first, v)
        return first

    def _scale(self, n: Node) -> Deep:
        r, v = yield self._values(n)
        return self.each(n.data, lambda a: self.prim("multiply", r, a), v)

    def _dot(self, n: Node) -> Deep:
        k, v = yield self._values(n)
        return self.dot(n.data, k, v)

    def _if(self, n: Node) -> Deep:
        c = yield self.value(n.parts[0])
        names = list(dict.fromkeys([*free(n.parts[1]), *free(n.parts[2])]))
        arguments = [self.text.env[x] for x in names]
        self.branches += 1
        ways = (f"then{self.branches}", f"else{self.branches}")
        for name, p in zip(ways, n.parts[1:], strict=True):
            outer, taken = self.text, ir.Names()
            formals = [ir.Var(taken(x), v.type) for x, v in zip(names, arguments, strict=True)]
            self.text = Text(dict(zip(names, formals, strict=True)), formals)
            self.define(name, formals, [(yield self.value(p))])
            self.text = outer
        return self.text.bind("y", self.type(n.type), Cond((c, *arguments), ways))

    # --- lists ------------------------------------------------------------------------------------

    def _nil(self, n: Node) -> Deep:
        unit = self.text.bind("u", UNIT, ir.Tup(()))
        return self.text.bind("l", self.type(n.type), ir.Inj((unit,), 0, self.type(n.type)))
        yield

    def _cons(self, n: Node) -> Deep:
        head, tail = yield self._values(n)
        return self.text.bind("l", tail.type, ir.Inj((self.text.pair(head, tail),), 1, tail.type))

    def _asked(self, n: Node, word: str, empty: object, full: object) -> Deep:
        (items,) = yield self._values(n)
        name = items.type.name
        none, some = self.types[name].items
        ways = (
            self.helper(f"{name}.{word}0", (none,), empty),
            self.helper(f"{name}.{word}1", (some,), full),
        )
        return self.text.bind("y", self.type(n.type), Case((items,), ways))

    def _isnil(self, n: Node) -> Deep:
        return self._asked(n, "isnil", lambda u: self.number(True), lambda p: self.number(False))

    def _head(self, n: Node) -> Deep:
        t = self.type(n.type)
        first = lambda p: self.text.parts(p)[0]  # noqa: E731
        return self._asked(n, "head", lambda u: self.nothing(t, "head_of_an_empty_list"), first)

    def _tail(self, n: Node) -> Deep:
        t = self.type(n.type)
        rest = lambda p: self.text.parts(p)[1]  # noqa: E731
        return self._asked(n, "tail", lambda u: self.nothing(t, "tail_of_an_empty_list"), rest)

    def nothing(self, t: Any, why: str) -> ir.Var:
        """A result that there is not: the program ends with an error, in which `why` stands."""
        while why in self.program.defs:
            why += "'"
        name = self.helper(why, (), lambda: self.some(t, ()))
        return self.text.bind("y", t, Switch((self.number(1),), (name,)))

    def some(self, t: Any, within: tuple[str, ...]) -> ir.Var:
        """An arbitrary value of a type, for code that is never reached."""
        if isinstance(t, Named):
            ways = self.types[t.name].items
            for i, way in enumerate(ways):
                if t.name not in within and t.name not in _names(way):
                    payload = self.some(way, (*within, t.name))
                    return self.text.bind("s", t, ir.Inj((payload,), i, t))
            raise CalculusError("linear_a: a list of functions is empty, and none stands in it")
        if isinstance(t, Tuple):
            return self.text.pack("p", [self.some(s, within) for s in t.items])
        return self.number(t.dtype.type(0).item())

    # --- functions --------------------------------------------------------------------------------

    def _function(self, n: Node) -> Deep:
        env = [self.text.env[x] for x in n.data.free]
        return self.closure(n.data, n.type.root(), self.text.pack("env", env))
        yield

    def closure(self, label: Label, c: Functions, env: ir.Var) -> ir.Var:
        """A function with its environment."""
        functions = self.functions(c)
        return self.text.bind("f", functions.type, functions.inject(c.labels.index(label), env))

    def _apply(self, n: Node) -> Deep:
        f, a = yield self._values(n)
        c = self.called(n.parts[0].type)
        if not c.labels:
            return self.nothing(self.type(n.type), "no_function")
        return self.text.bind("y", self.type(n.type), self.functions(c).apply((f, a)))

    def called(self, functions: Functions) -> Functions:
        """A set of functions that is called here, noted for the function that is being written."""
        noted = self.calls[self.open[-1]] if self.open else self.wanted
        noted.append(functions.root())
        return functions.root()

    def label(self, label: Label, c: Functions, name: str) -> Deep:
        """The definition of a function: its environment, its formal, its body."""
        self.state[label], self.calls[label] = "open", []
        self.open.append(label)
        outer = self.text
        env = ir.Var("env", self.environment(label))
        formal = ir.Var("x", self.type(self.flow.names[label.formal]))
        self.text = Text({label.formal: formal}, (env, formal))
        self.text.env |= zip(label.free, self.text.parts(env), strict=True)
        if label.own is not None:
            self.text.env[label.own] = self.closure(label, c, env)
        result = yield self.value(label.body)
        self.define(name, (env, formal), [result])
        self.text = outer
        self.open.pop()
        self.state[label] = "done"

    def finish(self, classes: Sequence[Functions], within: bool = False) -> Deep:
        """Write all functions that calls of these sets may reach; `within` others, wholly."""
        todo, seen = list(classes), set()
        while todo:
            c = todo.pop().root()
            if c in seen:
                continue
            seen.add(c)
            for label, name in zip(c.labels, self.functions(c).definitions, strict=True):
                state = self.state.get(label)
                if state == "open" and within:
                    raise CalculusError(
                        f"linear_a: the derivative of what is called here is taken within "
                        f"{show(label.text)}, which it may call itself; a program would have one "
                        "derivative within another without end, and the machine has as many as it "
                        "meets"
                    )
                if state is None:
                    yield self.label(label, c, name)
                todo += self.calls[label]

    # --- derivatives ------------------------------------------------------------------------------

    def primal(self, n: Node) -> Deep:
        """The definition of the function that is differentiated, in a closure and its argument."""
        c = self.called(n.parts[0].type)
        yield self.finish([c], within=True)
        name = f"{self.name(c)}.at"
        if name not in self.program.defs:
            outer = self.text
            f, a = ir.Var("f", self.type(c)), ir.Var("x", self.type(c.source))
            self.text = Text({}, (f, a))
            y = self.text.bind("y", self.type(c.target), self.functions(c).apply((f, a)))
            self.define(name, (f, a), [y])
            self.text = outer
        return name

    def _along(self, n: Node) -> Deep:
        f, a, s = yield self._values(n)
        name = yield self.primal(n)
        self.program = erase(jvp(self.program, name), name + JVP)
        d = self.program.defs[name + JVP + E]
        arguments = [f, a, *self.zero_tangent(f), s]
        return self.text.several(("y", "dy"), d.results, call(d.name, *arguments))[1]

    def zero_tangent(self, f: ir.Var) -> list[ir.Var]:
        """A list with the zero tangent of a function; empty if the type has no tangents."""
        if self.program.is_inert(f.type):
            return []
        t = tangent_type(self.program, f.type)
        self.program = self.program.with_(types=tangent_types(self.program, iter([t, f.type])))
        return [self.text.bind("df", t, ir.zero(t, linear=False))]

    def _pull(self, n: Node) -> Deep:
        f = yield self.value(n.parts[0])
        a = yield self.value(n.parts[1])
        name = yield self.primal(n)
        half = name + JVP + LIN + T
        self.program = erase(reverse(self.program, name), half)
        nl, back = self.program.defs[name + JVP + NL], self.program.defs[half + E]
        y, tape = self.text.several(("y", "t"), nl.results, call(nl.name, f, a))
        self.text.env[n.data] = y
        k = yield self.value(n.parts[2])
        bars = ["c"] * len(back.results)
        return self.text.several(bars, back.results, call(back.name, tape, k))[-1]


def _names(t: object) -> set[str]:
    if isinstance(t, Named):
        return {t.name}
    return set().union(*[_names(s) for s in t.items]) if isinstance(t, Tuple) else set()


# --- the whole ------------------------------------------------------------------------------------


def converted(term: Term, python: Callable[..., Any], samples: Sequence[Any]) -> Staged:
    """The program of a function of numbers; `python` is the same as a function of Python."""
    t, names, body = term.type, {}, term
    while isinstance(t, Arrow):
        x = f"x%{len(names)}"
        names[x] = t.source
        body = app(body, Variable((), x, t.source))
        t = t.target
    node, functions, own = flow(body, names)
    conversion = Conversion(functions)
    formals: list[ir.Var] = []
    leaves: list[ir.Var] = []

    def whole() -> Deep:
        for i, (x, s) in enumerate(names.items()):
            conversion.text.env[own[x]] = _formal(conversion, f"x{i}", s, formals)
        _results(conversion, (yield conversion.value(node)), t, leaves)
        yield conversion.finish(conversion.wanted)
        conversion.define(python.__name__, formals, leaves)

    run(whole())
    structure = flatten((tuple(samples), {}))[1]
    signature = Signature(structure, (F64,) * len(formals), (None,) * len(formals))
    results = Results(flatten(sample(t))[1], (VARIABLE,) * len(leaves), (True,) * len(leaves))
    kept = _kept(conversion.program, python.__name__)
    return Staged(Definition(kept, python.__name__, {}), signature, results, [], python)


def _kept(program: Program, name: str) -> Program:
    """The definitions that this one needs, with all that a pass has made of any of them.

    A pass goes on where it finds its own work, so that must be whole.
    """
    defs = needed(program, name).defs
    while True:
        bases = {f.partition(JVP)[0] for f in defs if JVP in f}
        tangent_definitions = [f for f in program.defs if JVP in f and f.partition(JVP)[0] in bases]
        kept = dict(defs).keys() | {g for f in tangent_definitions for g in needed(program, f).defs}
        if len(kept) == len(defs):
            return Program(named_types(program, defs.values()), defs)
        defs = {f: d for f, d in program.defs.items() if f in kept}


def _formal(conversion: Conversion, name: str, t: Type, formals: list[ir.Var]) -> ir.Var:
    if not isinstance(t, Product):
        formals.append(ir.Var(conversion.text.names(name), F64))
        return formals[-1]
    left = _formal(conversion, f"{name}.0", t.left, formals)
    return conversion.text.pair(left, _formal(conversion, f"{name}.1", t.right, formals))


def _results(conversion: Conversion, y: ir.Var, t: Type, leaves: list[ir.Var]) -> None:
    t = t.of if isinstance(t, ty.Dual) and is_ground(t.of) else t
    if isinstance(t, Product):
        for v, s in zip(conversion.text.parts(y), (t.left, t.right), strict=True):
            _results(conversion, v, s, leaves)
    elif t in BASES:
        leaves.append(y)
    else:
        raise CalculusError(f"linear_a: a result of a program is made of numbers, not {ty.show(t)}")


def sample(t: Type) -> Any:
    """Numbers in Python's form of a ground type, or of the functionals on one."""
    t = t.of if isinstance(t, ty.Dual) else t
    if not isinstance(t, Product):
        return 0.5
    right = sample(t.right)
    return (sample(t.left), *(right if isinstance(t.right, Product) else (right,)))

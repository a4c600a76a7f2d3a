r"""Which functions a call may reach: at each arrow in the types of a program those that get there.

    t     becomes     a tree in which names are unique, functionals are numbers, and every type is
                      annotated:   s -> t   is   s -{l1, .., ln}-> t

Where two types must be equal their annotations become one, as in inference, so a set of labels is
closed under everything that the program can do.  A definition is copied to each of its uses, as
long as the program does not swell, so that one use of `map` is not taken for another; what holds a
derivative is copied in any case, since a derivative needs the functions of its own.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lineara.calculus import terms as tm
from lineara.calculus import types as ty
from lineara.calculus.show import show
from lineara.calculus.substitution import Fresh, subst, subterms
from lineara.calculus.types import Arrow, Base, Dual, ListOf, Product, Type, is_ground
from lineara.errors import CalculusError
from lineara.trampoline import Deep, run

GROWTH = 20_000  # subterms that copies of definitions may add


# --- annotated types ------------------------------------------------------------------------------


@dataclass(eq=False)
class Functions:
    """An arrow with the functions that may stand there; several may have been found to be one."""

    source: Any
    target: Any
    labels: list["Label"] = field(default_factory=list)
    same: "Functions | None" = None

    def root(self) -> "Functions":
        """The one that stands for all that are the same."""
        while self.same is not None:
            self = self.same
        return self


@dataclass(frozen=True, eq=False)
class Both:
    """A product."""

    left: Any
    right: Any


@dataclass(frozen=True, eq=False)
class Items:
    """A list."""

    item: Any


Annotated = Base | Functions | Both | Items


def annotated(t: Type) -> Annotated:
    """The type with a set of functions of its own at each arrow; a functional is its numbers."""
    match t:
        case Arrow(a, b):
            return Functions(annotated(a), annotated(b))
        case Product(a, b):
            return Both(annotated(a), annotated(b))
        case ListOf(a):
            return Items(annotated(a))
        case Dual(a) if is_ground(a):
            return annotated(a)
        case Base():
            return t
    raise CalculusError(
        f"linear_a: {ty.show(t)} has no numbers that a program could hold; functionals on R and "
        "its products have, and the machine has the others"
    )


def unify(s: Annotated, t: Annotated) -> None:
    """Two annotations of one type become the same."""
    open_ = [(s, t)]
    while open_:
        s, t = open_.pop()
        if isinstance(s, Functions) and isinstance(t, Functions):
            s, t = s.root(), t.root()
            if s is not t:
                t.same = s
                s.labels += t.labels
                open_ += [(s.source, t.source), (s.target, t.target)]
        elif isinstance(s, Both) and isinstance(t, Both):
            open_ += [(s.left, t.left), (s.right, t.right)]
        elif isinstance(s, Items) and isinstance(t, Items):
            open_.append((s.item, t.item))
        else:
            assert s == t, f"{s} meets {t}"


# --- the tree -------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A construct: its kind, its parts, its annotated type, what else it states, what it binds."""

    kind: str
    parts: tuple["Node", ...]
    type: Any
    data: Any = None
    binds: tuple[str, ...] = ()


@dataclass(eq=False)
class Label:
    """A function in the text: its own name if it is recursive, its formal, its body."""

    own: str | None
    formal: str
    body: Node
    text: tm.Term
    free: tuple[str, ...] = ()


Scope = dict[str, tuple[str, Annotated]]


class Flow:
    """The tree of a term, and the annotated types of its names."""

    def __init__(self, term: tm.Term) -> None:
        self.fresh: Fresh = Fresh(term)
        self.names: dict[str, Annotated] = {}
        self.labels: list[Label] = []
        self.count: Iterator[int] = itertools.count(1)
        self.growth: int = GROWTH

    def name(self, like: str, t: Annotated) -> str:
        """A name that nothing else has."""
        stem = "".join([c if c.isalnum() or c == "_" else "" for c in like.partition("%")[0]])
        name = f"{stem or 'x'}_{next(self.count)}"
        self.names[name] = t
        return name

    def visit(self, t: tm.Term, scope: Scope) -> Deep:
        """The tree of a term in a scope."""
        match t:
            case tm.Var(_, name):
                own, node = scope[name]
                return Node("var", (), node, own)
            case tm.Literal(_, held):
                return Node("number", (), t.type, held)
            case tm.Zero():
                return (yield self._zero(t, scope))
            case tm.Lam() | tm.Fix():
                return (yield self._function(t, scope))
            case tm.Let((e, body), x):
                return (yield self._let(x, e, body, scope))
            case tm.App():
                return (yield self._apply(t, scope))
            case tm.J() | tm.JFun() | tm.Pull():
                return (yield self.visit(self._expanded(t), scope))
            case tm.Sum() | tm.Scale() if isinstance(t.type, Arrow):
                return (yield self.visit(self._expanded(t), scope))
            case tm.DualMap((s, k), x, source):
                f = tm.lam((x, source), s)
                at = tm.Zero((), source)
                y = self.fresh("k")
                bound = tm.lam(("_", s.type), tm.Var((), y, k.type))
                return (yield self.visit(tm.let(y, k, tm.app(tm.Pull((f, bound)), at)), scope))
            case tm.Covec((a,)):
                return (yield self.visit(a, scope))
            case tm.Fun(_, symbol) if symbol.body is not None:
                return (yield self.visit(tm.app(symbol.body, t.parts[0]), scope))
            case tm.List(parts, item, dual):
                if dual:
                    self.refuse(t)
                node: Any = Node("nil", (), annotated(ListOf(item)))
                for p in reversed(parts):
                    head = yield self.visit(p, scope)
                    unify(node.type.item, head.type)
                    node = Node("cons", (head, node), node.type)
                return node
        return (yield self._plain(t, scope))

    def refuse(self, t: tm.Term) -> NoReturn:
        """The error of what has no counterpart in a program."""
        raise CalculusError(
            f"linear_a: {show(t)} has no counterpart in a program; the machine has it, and so have "
            "the rules"
        )

    def _plain(self, t: tm.Term, scope: Scope) -> Deep:
        nodes = []
        for p in t.parts:
            nodes.append((yield self.visit(p, scope)))
        parts: Any = tuple(nodes)
        match t:
            case tm.Pair() | tm.Copair():
                return Node("pair", parts, Both(parts[0].type, parts[1].type))
            case tm.Fst():
                return Node("fst", parts, parts[0].type.left)
            case tm.Snd():
                return Node("snd", parts, parts[0].type.right)
            case tm.Fun(_, symbol):
                return Node("fun", parts, annotated(t.type), symbol)
            case tm.If():
                unify(parts[1].type, parts[2].type)
                return Node("if", parts, parts[1].type)
            case tm.Cons():
                unify(parts[0].type, parts[1].type.item)
                return Node("cons", parts, parts[1].type)
            case tm.Head():
                return Node("head", parts, parts[0].type.item)
            case tm.Tail():
                return Node("tail", parts, parts[0].type)
            case tm.IsNil():
                return Node("isnil", parts, t.type)
            case tm.At() if is_ground(t.parts[1].type):
                return Node("dot", parts, t.type, t.parts[1].type)
            case tm.Sum() if _numbers(t.type):
                return Node("add", parts, parts[0].type, _numbers(t.type))
            case tm.Scale() if _numbers(t.type):
                return Node("scale", parts, parts[1].type, _numbers(t.type))
        self.refuse(t)

    def _zero(self, t: Any, scope: Scope) -> Deep:
        if isinstance(t.type, Arrow):
            function = tm.lam((self.fresh("x"), t.type.source), tm.Zero((), t.type.target))
            return (yield self.visit(function, scope))
        if isinstance(t.type, ListOf):
            return Node("nil", (), annotated(t.type))
        if not _numbers(t.type):
            self.refuse(t)
        return Node("zero", (), annotated(t.type), _numbers(t.type))

    def _function(self, t: Any, scope: Scope) -> Deep:
        functions = annotated(t.type)
        assert isinstance(functions, Functions)
        formal = self.name(t.name, functions.source)
        inner, own = {**scope, t.name: (formal, functions.source)}, None
        if isinstance(t, tm.Fix):
            own = self.name(t.own, functions)
            inner = {**scope, t.own: (own, functions), t.name: (formal, functions.source)}
        body = yield self.visit(t.parts[0], inner)
        unify(functions.target, body.type)
        label = Label(own, formal, body, t)
        label.free = tuple([x for x in free(body) if x not in (own, formal)])
        self.labels.append(label)
        functions.root().labels.append(label)
        return Node("function", (), functions, label)

    def _let(self, x: str, e: tm.Term, body: tm.Term, scope: Scope) -> Deep:
        if isinstance(e, tm.Lam | tm.Fix) and self._copies(x, e, body):
            return (yield self.visit(subst(body, {x: e}), scope))
        bound = yield self.visit(e, scope)
        own = self.name(x, bound.type)
        inner = yield self.visit(body, {**scope, x: (own, bound.type)})
        return Node("let", (bound, inner), inner.type, own, (own,))

    def _copies(self, x: str, e: tm.Term, body: tm.Term) -> bool:
        """Whether a function is copied to where it is used."""
        if x not in body.free:
            return False
        inside = list(subterms(e))
        uses = sum([isinstance(s, tm.Var) and s.name == x for s in subterms(body)])
        if uses > 1 and not any(
            [isinstance(s, tm.J | tm.JFun | tm.Pull | tm.DualMap) for s in inside]
        ):
            added = (uses - 1) * len(inside)
            if added > self.growth:
                return False
            self.growth -= added
        return True

    def _apply(self, t: tm.Term, scope: Scope) -> Deep:
        f, a = t.parts
        if isinstance(f, tm.Lam):
            return (yield self._let(f.name, a, f.parts[0], scope))
        if isinstance(f, tm.Let):  # let x = e in f, applied
            x = self.fresh(f.name)
            own = tm.Var((), x, f.parts[0].type)
            moved = tm.let(x, f.parts[0], tm.app(subst(f.parts[1], {f.name: own}), a))
            return (yield self.visit(moved, scope))
        if isinstance(f, tm.J | tm.JFun | tm.Pull):
            return (yield self._derivative(f, a, scope))
        function, argument = (yield self.visit(f, scope)), (yield self.visit(a, scope))
        unify(function.type.source, argument.type)
        return Node("apply", (function, argument), function.type.target)

    def _derivative(self, f: Any, a: tm.Term, scope: Scope) -> Deep:
        """J(g; s) a and pull(g; w) a, of g from numbers to numbers."""
        function: Any = self._of_symbol(f) if isinstance(f, tm.JFun) else f.parts[0]
        source, target = function.type.source, function.type.target
        if not (is_ground(source) and is_ground(target)):
            raise CalculusError(
                f"linear_a: {show(f)} is a derivative of {ty.show(function.type)}; a program has "
                "those of functions from numbers to numbers, whatever they captured"
            )
        at = yield self.visit(a, scope)
        g = yield self.visit(function, scope)
        unify(g.type.source, at.type)
        if isinstance(f, tm.Pull):
            y = self.fresh("y")
            own = self.name(y, g.type.target)
            form = tm.app(f.parts[1], tm.Var((), y, target))
            w = yield self.visit(form, {**scope, y: (own, g.type.target)})
            return Node("pull", (g, at, w), annotated(source), own, (own,))
        s = yield self.visit(f.parts[-1], scope)
        return Node("along", (g, at, s), annotated(target))

    def _of_symbol(self, f: Any) -> tm.Term:
        x = (self.fresh("x"), f.type.source)
        return tm.lam(x, tm.Fun((tm.var(x),), f.symbol))

    def _expanded(self, t: Any) -> tm.Term:
        r"""A function that is no abstraction as one: let its parts be evaluated, then \z. it z."""
        names = [(self.fresh("f"), p.type) for p in t.parts]
        z = (self.fresh("z"), t.type.source)
        own = tuple([tm.var(x) for x in names])
        if isinstance(t, tm.Sum):
            body: tm.Term = tm.Sum(tuple([tm.app(f, tm.var(z)) for f in own]))
        elif isinstance(t, tm.Scale):
            body = tm.Scale((own[0], tm.app(own[1], tm.var(z))))
        else:
            body = tm.app(t.on(own), tm.var(z))
        term: tm.Term = tm.lam(z, body)
        for x, p in reversed(list(zip(names, t.parts, strict=True))):
            term = tm.let(x[0], p, term)
        return term


def _numbers(t: Type) -> Type | None:
    """The ground type that a value or a functional has the numbers of, if it is one."""
    t = t.of if isinstance(t, Dual) else t
    return t if is_ground(t) else None


def free(node: Node) -> Iterator[str]:
    """The names that a tree uses and does not bind, once each."""
    used: dict[str, None] = {}
    bound: set[str] = set()
    open_ = [node]
    while open_:
        n = open_.pop()
        bound.update(n.binds)
        if n.kind == "var":
            used[n.data] = None
        elif n.kind == "function":
            used.update(dict.fromkeys(n.data.free))
        open_ += reversed(n.parts)
    return (x for x in used if x not in bound)


def flow(term: tm.Term, names: dict[str, Type]) -> tuple[Node, Flow, dict[str, str]]:
    """The tree of a term with free names, whose types are ground; and what these are called."""
    functions = Flow(term)
    scope: Scope = {}
    for x, t in names.items():
        a = annotated(t)
        scope[x] = functions.name(x, a), a
    node = run(functions.visit(term, scope))
    return node, functions, {x: own for x, (own, _) in scope.items()}

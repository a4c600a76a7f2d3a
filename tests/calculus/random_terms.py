"""Random well-typed terms, and what they mean in plain Python."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import lineara
from lineara.calculus.symbols import standard
from lineara.calculus.terms import (
    App,
    At,
    Covec,
    Fix,
    Fst,
    Fun,
    If,
    J,
    Lam,
    Let,
    Literal,
    Pair,
    Pull,
    Snd,
    Sum,
    Term,
    Var,
    Zero,
    app,
    constant_form,
    lam,
    let,
    num,
)
from lineara.calculus.types import Arrow, Product, R, Type, power

UNARY = ("sin", "cos", "tanh", "negative", "atan", "expm1")
FF = Arrow(Arrow(R, R), R)
TYPES = (R, Product(R, R), Arrow(R, R), FF, Product(Arrow(R, R), R), Arrow(R, Arrow(R, R)))


class Random:
    """Terms of a type; `nested` says whether J and pull may lie within."""

    def __init__(self, seed: int, nested: bool = False, branches: bool = True) -> None:
        self.random = random.Random(seed)
        self.nested = nested
        self.branches = branches

    def under(self, scope: list, t: Type) -> tuple[tuple[str, Type], list]:
        """A binder, and the scope within it: names are few, so that they hide each other."""
        x = (self.random.choice("pqxyz"), t)
        return x, [*[y for y in scope if y[0] != x[0]], x]

    def function(self, source: Type, depth: int = 4) -> Lam:
        """A closed function of the source to R, which uses its argument."""
        x = ("p", source)
        return lam(x, self.term(R, [x], depth))

    def term(self, t: Type, scope: list, depth: int) -> Term:
        having = [x for x in scope if x[1] == t]
        if having and (depth <= 0 or self.random.random() < 0.2):
            return Var((), *self.random.choice(having))
        if depth > 0 and self.random.random() < 0.25:
            return self.bound(t, scope, depth - 1)
        match t:
            case Arrow(s, u):
                return self.arrow(t, s, u, scope, depth)
            case Product(a, b):
                return Pair((self.term(a, scope, depth - 1), self.term(b, scope, depth - 1)))
        return self.number(scope, depth)

    def bound(self, t: Type, scope: list, depth: int) -> Term:
        """A let, so that things are shared."""
        s = self.random.choice(TYPES)
        x, inner = self.under(scope, s)
        return let(x[0], self.term(s, scope, depth), self.term(t, inner, depth))

    def arrow(self, t: Arrow, s: Type, u: Type, scope: list, depth: int) -> Term:
        way = self.random.random()
        if depth > 1 and way < 0.15:
            return Sum((self.arrow(t, s, u, scope, 1), self.term(t, scope, depth - 1)))
        if depth > 1 and self.nested and way < 0.3 and s == R and u == R:
            return J((self.term(t, scope, depth - 2), self.term(s, scope, 0)))
        x, inner = self.under(scope, s)
        return lam(x, self.term(u, inner, depth - 1))

    def number(self, scope: list, depth: int) -> Term:
        pick = self.random.random
        if depth <= 0:
            pairs = [x for x in scope if x[1] == Product(R, R)]
            if pairs and pick() < 0.6:
                part = self.random.choice((Fst, Snd))
                return part((Var((), *self.random.choice(pairs)),))
            return num(round(self.random.uniform(-1.5, 1.5), 2))
        ways: list[Callable[[], Term]] = [
            lambda: Fun((self.term(R, scope, depth - 1),), self.symbol(UNARY)),
            lambda: Fun((self.two(scope, depth),), self.symbol(("multiply", "subtract"))),
            lambda: Fun((self.two(scope, depth),), self.symbol(("multiply", "hypot"))),
            lambda: Sum((self.term(R, scope, depth - 1), self.term(R, scope, depth - 1))),
            lambda: self.applied(scope, depth),
            lambda: self.applied(scope, depth),
            lambda: (self.choice if self.branches else self.applied)(scope, depth),
        ]
        if self.nested:
            ways += [lambda: self.derivative(scope, depth)] * 2
        return self.random.choice(ways)()

    def symbol(self, names: tuple[str, ...]) -> Any:
        return standard()[self.random.choice(names)]

    def two(self, scope: list, depth: int) -> Term:
        return Pair((self.term(R, scope, depth - 1), self.term(R, scope, depth - 1)))

    def applied(self, scope: list, depth: int) -> Term:
        s = self.random.choice((R, R, Arrow(R, R), FF, Product(Arrow(R, R), R)))
        f = self.term(Arrow(s, R), scope, depth - 1)
        return app(f, self.term(s, scope, depth - 1))

    def choice(self, scope: list, depth: int) -> Term:
        asked = Fun((self.two(scope, 1),), standard()["less"])
        return If((asked, self.term(R, scope, depth - 1), self.term(R, scope, depth - 1)))

    def derivative(self, scope: list, depth: int) -> Term:
        """J(f; d) a, or pull(f; covec 1) a @ d, at R or R * R."""
        s = self.random.choice((R, power(2)))
        f = self.term(Arrow(s, R), scope, depth - 1)
        a, d = self.term(s, scope, depth - 2), self.term(s, scope, depth - 2)
        if self.random.random() < 0.4:
            return app(J((f, d)), a)
        return At((app(Pull((f, constant_form(R, Covec((num(1),))))), a), d))


# --- what a term means ----------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "negative": np.negative, "expm1": np.expm1,
    "atan": np.arctan, "multiply": lambda x, y: x * y, "subtract": lambda x, y: x - y,
    "less": lambda x, y: bool(np.real(x) < np.real(y)), "divide": lambda x, y: x / y,
    "square": lambda x: x * x,
}  # fmt: skip


def hypot(x: Any, y: Any) -> Any:
    """Analytic, for the complex step; the library's own for what is traced."""
    return np.sqrt(x * x + y * y) if isinstance(x + y, complex) else np.hypot(x, y)


FUNCTIONS["hypot"] = hypot


def meaning(t: Term, env: dict[str, Any]) -> Any:
    """A value in Python: closures are closures, and derivatives the eager engine's."""
    match t:
        case Var(_, name):
            return env[name]
        case Literal(_, held):
            return held
        case Lam((body,), x):
            return lambda a: meaning(body, {**env, x: a})
        case Fix((body,), own, x):

            def f(a: Any) -> Any:
                return meaning(body, {**env, own: f, x: a})

            return f
        case Let((e, body), x):
            return meaning(body, {**env, x: meaning(e, env)})
        case If((c, a, b)):
            return meaning(a if meaning(c, env) else b, env)
        case App((Pull((f, _)), a)):  # of a number, with covec(1)
            return lineara.grad(meaning(f, env))(meaning(a, env))
        case Zero():
            return 0.0
    parts = [meaning(p, env) for p in t.parts]
    match t:
        case App():
            return parts[0](parts[1])
        case Pair():
            return parts[0], parts[1]
        case Fst():
            return parts[0][0]
        case Snd():
            return parts[0][1]
        case Fun(_, symbol):
            args = parts if t.parts[0].type == R else parts[0]
            return FUNCTIONS[symbol.name](*args)
        case Sum():
            return total(t.type, parts)
        case J():
            return lambda a: lineara.jvp(parts[0], (a,), (parts[1],))[1]
        case At():
            k, v = parts
            return k * v if t.parts[1].type == R else k[0] * v[0] + k[1] * v[1]
    raise NotImplementedError(type(t).__name__)


def total(t: Type, parts: list) -> Any:
    """The sum of values."""
    if isinstance(t, Arrow):
        return lambda a: total(t.target, [p(a) for p in parts])
    if isinstance(t, Product):
        columns = zip((t.left, t.right), zip(*parts, strict=True), strict=True)
        return tuple([total(s, list(c)) for s, c in columns])
    return sum(parts[1:], parts[0])

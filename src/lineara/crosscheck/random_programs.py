"""Random programs: closures, functions of functions, branches, loops, pairs and arrays.

Where an operation has a domain its argument is put into it, so most programs are smooth and finite
at their point; those that are not are left out by the judge, and counted.
"""

import random
from collections.abc import Callable

from lineara.crosscheck.language import (
    Array,
    Arrow,
    Program,
    R,
    Real,
    Term,
    Two,
    Type,
    app,
    choice,
    dot,
    index,
    lam,
    let,
    loop,
    num,
    op,
    pair,
    part,
    stack,
    subterms,
    total,
    var,
)

UNARY = (
    "abs", "asinh", "atan", "cbrt", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "negative",
    "rad2deg", "sin", "sinh", "square", "tan", "tanh",
)  # fmt: skip
POSITIVE = ("log", "log10", "log1p", "log2", "reciprocal", "sqrt")  # of what is at least 1/2
WITHIN = ("acos", "asin", "atanh")  # of what lies between -1 and 1
BINARY = (
    "add", "add", "add", "multiply", "multiply", "multiply", "subtract", "subtract", "hypot",
    "atan2", "maximum", "minimum", "logaddexp",
)  # fmt: skip
DIVIDED = ("divide", "power")  # by, or of, what is at least 1/2
OPERATIONS = tuple(sorted({*UNARY, *POSITIVE, *WITHIN, *BINARY, *DIVIDED}))
RR = Arrow(R, R)


class Random:
    """Programs from a seed; `size` is about how many constructs they have."""

    def __init__(self, seed: int, size: int = 14) -> None:
        self.random: random.Random = random.Random(seed)
        self.size = size
        self.count: int = 0
        self.n = self.random.choice((2, 3))
        self.used: set[str] = set()

    def program(self) -> Program:
        """The program."""
        types = [R, *self.random.choices((R, Array(self.n)), k=self.random.randrange(3))]
        self.random.shuffle(types)
        scope = [var(self.name("x"), t) for t in types]
        body = self.term(R, scope, self.size)
        read = {e.held for e in subterms(body) if e.head == "var"}
        kept = [x for x in scope if x.held in read] or scope[:1]
        at = [self.point(x.type) for x in kept]
        return Program(tuple([(x.held, x.type) for x in kept]), body, tuple(at))

    def point(self, t: Type) -> float | tuple[float, ...]:
        """A value for an input."""
        if isinstance(t, Array):
            return tuple([self.number() for _ in range(t.n)])
        return self.number()

    def number(self) -> float:
        """A number with two digits behind the point."""
        return round(self.random.uniform(-1.6, 1.6), 2) or 0.5

    def name(self, letter: str) -> str:
        """One that nothing has yet."""
        self.count += 1
        return f"{letter}{self.count}"

    def split(self, size: int, parts: int) -> list[int]:
        """Sizes of some parts of a construct."""
        rest = max(size - 1, parts)
        cuts = sorted(self.random.randint(0, rest) for _ in range(parts - 1))
        return [b - a for a, b in zip([0, *cuts], [*cuts, rest], strict=True)]

    # --- by type ----------------------------------------------------------------------------

    def term(self, t: Type, scope: list[Term], size: int) -> Term:
        """A term of a type."""
        having = [x for x in scope if x.type == t]
        if having and (size <= 1 or self.random.random() < 0.08):
            fresh = [x for x in having if x.held not in self.used]
            x = self.random.choice(fresh or having)
            self.used.add(x.held)
            return x
        if size > 3 and self.random.random() < 0.2:
            return self.bound(t, scope, size)
        if size > 4 and self.random.random() < 0.1:
            a, b, yes, no = self.split(size, 4)
            asked = self.apart(self.term(R, scope, a), self.term(R, scope, min(b, 2)))
            return choice(*asked, self.term(t, scope, yes), self.term(t, scope, no))
        if size > 4 and self.random.random() < 0.15:
            return self.applied(t, scope, size)
        match t:
            case Real():
                return self.real(scope, size)
            case Array():
                return self.array(t, scope, size)
            case Two(left, right):
                m, n = self.split(size, 2)
                return pair(self.term(left, scope, m), self.term(right, scope, n))
            case Arrow(source, target):
                x = var(self.name("a"), source)
                return lam(x.held, source, self.term(target, [*scope, x], size - 1))

    def some_type(self) -> Type:
        """What a name may stand for."""
        pick = (R, R, Array(self.n), Two(R, R), RR, RR, Arrow(RR, R), Arrow(R, RR), Two(RR, R))
        return self.random.choice(pick)

    def bound(self, t: Type, scope: list[Term], size: int) -> Term:
        """A let, so that things are shared."""
        m, n = self.split(size, 2)
        s = self.some_type()
        x = var(self.name("f" if isinstance(s, Arrow) else "y"), s)
        return let(x.held, self.term(s, scope, m), self.term(t, [*scope, x], n))

    def applied(self, t: Type, scope: list[Term], size: int) -> Term:
        """A function applied: one that has a name, if there is one."""
        m, n = self.split(size, 2)
        known = [x for x in scope if isinstance(x.type, Arrow) and x.type.target == t]
        if known and self.random.random() < 0.8:
            f = self.random.choice(known)
            assert isinstance(f.type, Arrow)
            return app(f, self.term(f.type.source, scope, size - 2))
        s = self.random.choice((R, R, Array(self.n), RR, Two(R, R)))
        return app(self.term(Arrow(s, t), scope, m), self.term(s, scope, n))

    def of_pair(self, t: Type, scope: list[Term], size: int) -> Term:
        """A part of a pair."""
        side = self.random.choice(("first", "second"))
        s = Two(t, R) if side == "first" else Two(R, t)
        return part(side, self.term(s, scope, size - 1))

    def looped(self, t: Type, scope: list[Term], size: int) -> Term:
        """Up to three rounds."""
        m, n = self.split(size, 2)
        x = var(self.name("c"), t)
        body = lam(x.held, t, self.term(t, [*scope, x], max(m, 2)))
        return loop(self.random.randrange(1, 4), body, self.term(t, scope, min(n, 4)))

    def elementwise(self, t: Type, scope: list[Term], size: int) -> Term:
        """An operation on numbers or on arrays, its argument put into its domain."""
        pick = self.random.random
        if pick() < 0.45 or size <= 2:
            x = self.term(t, scope, size - 1)
            way = pick()
            if way < 0.2 and size > 3:
                return op(self.random.choice(POSITIVE), self.positive(x))
            if way < 0.3 and size > 3:
                return op(self.random.choice(WITHIN), op("multiply", num(0.9), op("sin", x)))
            return op(self.random.choice(UNARY), x)
        m, n = self.split(size, 2)
        other = R if isinstance(t, Array) and pick() < 0.4 else t  # a number among arrays
        x, w = self.term(t, scope, m), self.term(other, scope, n)
        if pick() < 0.15 and size > 3:
            name = self.random.choice(DIVIDED)
            return (
                op(name, x, self.positive(w)) if name == "divide" else op(name, self.positive(x), w)
            )
        x, w = (x, w) if pick() < 0.5 else (w, x)
        name = self.random.choice(BINARY)
        return op(name, *(self.apart(x, w) if name in ("maximum", "minimum") else (x, w)))

    def apart(self, x: Term, w: Term) -> tuple[Term, Term]:
        """Two terms to be compared, which are not the same variable."""
        if x.head == w.head == "var" and x.held == w.held:
            return x, op("add", num(self.number()), w)
        return x, w

    def positive(self, x: Term) -> Term:
        """Something that is at least 1/2."""
        return op("add", num(round(self.random.uniform(0.5, 2.0), 2)), op("square", x))

    def real(self, scope: list[Term], size: int) -> Term:
        """A number."""
        if size <= 1:
            arrays = [x for x in scope if isinstance(x.type, Array)]
            if arrays and self.random.random() < 0.5:
                return index(self.random.choice(arrays), self.random.randrange(self.n))
            return num(self.number())
        ways: list[Callable[[], Term]] = [
            *[lambda: self.elementwise(R, scope, size)] * 8,
            lambda: total(self.term(Array(self.n), scope, size - 1)),
            lambda: index(self.term(Array(self.n), scope, size - 1), self.random.randrange(self.n)),
            lambda: dot(*[self.term(Array(self.n), scope, m) for m in self.split(size, 2)]),
            lambda: self.looped(R, scope, size),
            lambda: self.applied(R, scope, size),
            lambda: self.of_pair(R, scope, size),
        ]
        return self.random.choice(ways)()

    def array(self, t: Array, scope: list[Term], size: int) -> Term:
        """An array."""
        if size > 2 and self.random.random() < 0.6:
            return self.elementwise(t, scope, size)
        if size > 4 and self.random.random() < 0.2:
            return self.looped(t, scope, size)
        return stack(*[self.term(R, scope, m) for m in self.split(size, t.n)])

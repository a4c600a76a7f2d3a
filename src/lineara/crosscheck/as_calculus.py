"""A program as a term of the pullback calculus; an array is a tuple of numbers."""

from lineara.calculus import terms as c
from lineara.calculus.symbols import standard
from lineara.calculus.types import Arrow, Product, R, Type, power
from lineara.crosscheck import language
from lineara.crosscheck.language import Program, Term


def type_of(t: language.Type) -> Type:
    """The type in the calculus."""
    match t:
        case language.Real():
            return R
        case language.Array(n):
            return power(n)
        case language.Two(left, right):
            return Product(type_of(left), type_of(right))
        case language.Arrow(source, target):
            return Arrow(type_of(source), type_of(target))


def term_of(program: Program) -> c.Term:
    r"""The function of one tuple, of all the numbers of the inputs.

    >>> from lineara.calculus.show import show
    >>> x, y = language.var("x", language.R), language.var("y", language.R)
    >>> inputs = (("x", language.R), ("y", language.R))
    >>> show(term_of(Program(inputs, language.op("multiply", x, y), (0.5, 2.0))))
    '\\at:R * R. let x = fst at in let y = snd at in multiply(x, y)'
    """
    types = [type_of(t) for _, t in program.inputs]
    whole = types[-1]
    for t in reversed(types[:-1]):
        whole = Product(t, whole)
    rest: c.Term = c.var(("at", whole))
    parts: list[c.Term] = []
    for _ in types[1:]:
        parts.append(c.Fst((rest,)))
        rest = c.Snd((rest,))
    parts.append(rest)
    body = _Writer().term(program.body)
    for (name, _), p in reversed(list(zip(program.inputs, parts, strict=True))):
        body = c.let(name, p, body)
    return c.lam(("at", whole), body)


def value_of(numbers: list[float], t: Type) -> c.Term:
    """Numbers as a value of the type."""
    rest = iter(numbers)

    def made(t: Type) -> c.Term:
        if not isinstance(t, Product):
            return c.num(next(rest))
        left = made(t.left)
        return c.Pair((left, made(t.right)))

    return made(t)


class _Writer:
    """Terms; an array that is taken apart has a name."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v_{self.count}"

    def term(self, e: Term) -> c.Term:
        match e.head:
            case "var":
                return c.var((e.held, type_of(e.type)))
            case "num":
                return c.num(e.held)
            case "lam":
                assert isinstance(e.type, language.Arrow)
                return c.lam((e.held, type_of(e.type.source)), self.term(e.parts[0]))
            case "let":
                return c.let(e.held, *[self.term(p) for p in e.parts])
        parts = [self.term(p) for p in e.parts]
        match e.head:
            case "op":
                return self.operation(e, parts)
            case "if":
                a, b, yes, no = parts
                return c.If((c.Fun((c.Pair((a, b)),), standard()["less"]), yes, no))
            case "app":
                return c.app(*parts)
            case "pair":
                return c.Pair(tuple(parts))
            case "first" | "second":
                return (c.Fst if e.head == "first" else c.Snd)(tuple(parts))
            case "stack":
                return tupled(parts)
            case "loop":
                return self.loop(e.held, *parts)
        return self.of_array(e, parts)

    def operation(self, e: Term, parts: list[c.Term]) -> c.Term:
        symbol = standard()[e.held]
        if isinstance(e.type, language.Real):
            return c.Fun((tupled(parts),), symbol)
        assert isinstance(e.type, language.Array)
        names = [self.fresh() for _ in parts]
        columns = [self.elements(x, p.type, e.type.n) for x, p in zip(names, parts, strict=True)]
        body = tupled([c.Fun((tupled(list(r)),), symbol) for r in zip(*columns, strict=True)])
        for x, p in reversed(list(zip(names, parts, strict=True))):
            body = c.let(x, p, body)
        return body

    def elements(self, name: str, t: Type, n: int) -> list[c.Term]:
        """The elements of a named array, or a number n times."""
        rest: c.Term = c.var((name, t))
        if t == R:
            return [rest] * n
        elements = []
        for _ in range(n - 1):
            elements.append(c.Fst((rest,)))
            rest = c.Snd((rest,))
        return [*elements, rest]

    def loop(self, n: int, f: c.Term, start: c.Term) -> c.Term:
        name = self.fresh()
        g = c.var((name, f.type))
        for _ in range(n):
            start = c.app(g, start)
        return c.let(name, f, start)

    def of_array(self, e: Term, parts: list[c.Term]) -> c.Term:
        t = e.parts[0].type
        assert isinstance(t, language.Array)
        names = [self.fresh() for _ in parts]
        columns = [self.elements(x, p.type, t.n) for x, p in zip(names, parts, strict=True)]
        if e.head == "index":
            body = columns[0][e.held]
        else:
            products = columns[0]
            if e.head == "dot":
                times = standard()["multiply"]
                products = [c.Fun((c.Pair(r),), times) for r in zip(*columns, strict=True)]
            body = c.Sum(tuple(products))
        for x, p in reversed(list(zip(names, parts, strict=True))):
            body = c.let(x, p, body)
        return body


def tupled(parts: list[c.Term]) -> c.Term:
    """Several terms as pairs nested to the right."""
    term = parts[-1]
    for p in reversed(parts[:-1]):
        term = c.Pair((p, term))
    return term

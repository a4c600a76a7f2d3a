"""A program in Linear A, which has no functions as values: each application is a definition.

A function is known where the text is written, so what it captured is handed to a definition as
arguments, and a function that a branch gives is both functions and the condition.

It shares nothing with `linear_a.function_sums`, by which the calculus and the diagrams become
programs: one mistake there would be made on both sides of a comparison.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lineara.crosscheck.language import Array, Program, Real, Term, Two, Type, free


@dataclass(frozen=True, slots=True)
class Name:
    """A variable of a definition."""

    text: str
    type: str


@dataclass(frozen=True, slots=True)
class Closure:
    """A function: its text, and what its free variables stand for."""

    lam: Term
    env: dict[str, "Value"]


@dataclass(frozen=True, slots=True)
class Either:
    """One of two functions, by a condition."""

    asked: Name
    yes: "Value"
    no: "Value"


Value = Name | Closure | Either | tuple["Value", "Value"]


def text_of(program: Program) -> str:
    """The text, whose last definition is f; implicit drops are left to the parser's sugar.

    >>> from lineara.crosscheck.language import R, op, var
    >>> x = var("x", R)
    >>> print(text_of(Program((("x", R),), op("multiply", x, op("sin", x)), (0.5,))))
    def f(x: f64;) -> (f64;) =
      let r1 = sin(x) in
      let r2 = multiply(x, r1) in
      (r2;)
    """
    writer = _Writer()
    env: dict[str, Value] = {x: Name(x, _type(t)) for x, t in program.inputs}
    d = _Def(writer, "f", [v for v in env.values() if isinstance(v, Name)])
    d.close(d.value(program.body, env))
    return "\n\n".join(writer.defs)


def _type(t: Type) -> str:
    assert isinstance(t, Real | Array), "inputs are numbers and arrays"
    return "f64" if isinstance(t, Real) else f"f64[{t.n}]"


def leaves(v: Value) -> list[Name]:
    """The variables that a value is made of, each once."""
    match v:
        case Name():
            return [v]
        case Closure(_, env):
            parts = list(env.values())
        case Either(asked, yes, no):
            parts = [asked, yes, no]
        case (left, right):
            parts = [left, right]
    return list(dict.fromkeys([x for p in parts for x in leaves(p)]))


def renamed(v: Value, to: dict[Name, Name]) -> Value:
    """The value with other variables."""
    match v:
        case Name():
            return to[v]
        case Closure(lam, env):
            return Closure(lam, {x: renamed(a, to) for x, a in env.items()})
        case Either(asked, yes, no):
            return Either(to[asked], renamed(yes, to), renamed(no, to))
        case (left, right):
            return renamed(left, to), renamed(right, to)


@dataclass(slots=True)
class _Writer:
    """Definitions, each behind those that it uses."""

    defs: list[str] = field(default_factory=list)
    count: int = 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"


class _Def:
    """One definition: its formals, its lines, its results."""

    def __init__(self, writer: _Writer, name: str, formals: list[Name]) -> None:
        self.writer = writer
        self.name = name
        self.formals = formals
        self.lines: list[str] = []

    def bind(self, right: str, t: str = "f64") -> Name:
        x = Name(self.writer.name("r"), t)
        self.lines.append(f"  let {x.text} = {right} in")
        return x

    def close(self, v: Value) -> None:
        """Write it; its results are what the value is made of."""
        out = leaves(v)
        head = ", ".join([f"{x.text}: {x.type}" for x in self.formals])
        gives = ", ".join([x.type for x in out])
        last = f"  ({', '.join([x.text for x in out])};)"
        self.writer.defs.append(
            "\n".join([f"def {self.name}({head};) -> ({gives};) =", *self.lines, last])
        )

    def within(self, given: list[Name], letter: str) -> tuple["_Def", dict[Name, Name]]:
        """A new definition with formals for some variables of this one."""
        to = {x: Name(self.writer.name("p"), x.type) for x in given}
        return _Def(self.writer, self.writer.name(letter), list(to.values())), to

    def results(self, right: str, v: Value) -> Value:
        """Variables for the results of an application, and the value made of them."""
        out = leaves(v)
        if not out:
            return v
        to = {x: Name(self.writer.name("r"), x.type) for x in out}
        self.lines.append(f"  let ({', '.join([x.text for x in to.values()])};) = {right} in")
        return renamed(v, to)

    # --- terms --------------------------------------------------------------------------------

    def value(self, e: Term, env: dict[str, Value]) -> Value:
        match e.head:
            case "var":
                return env[e.held]
            case "num":
                return self.bind(repr(e.held))
            case "lam":
                return Closure(e, {x: env[x] for x in free(e)})
            case "let":
                bound, body = e.parts
                return self.value(body, {**env, e.held: self.value(bound, env)})
            case "if":
                return self.choice(e, env)
        parts = [self.value(p, env) for p in e.parts]
        match e.head:
            case "app":
                return self.applied(parts[0], parts[1])
            case "pair":
                return parts[0], parts[1]
            case "first" | "second":
                (both,) = parts
                assert isinstance(both, tuple)
                return both[e.head == "second"]
            case "loop":
                return self.loop(e.held, parts[0], parts[1])
        names = [x.text for x in leaves_in_order(parts)]
        given = ", ".join(names)
        match e.head:
            case "op":
                return self.bind(f"{e.held}({given})", _type(e.type))
            case "sum":
                return self.bind(f"sum[axis=(0,), keepdims=false]({given})")
            case "index":
                return self.bind(f"index[at=({e.held},)]({given})")
        return self.bind(f"{'stack' if e.head == 'stack' else 'matmul'}({given})", _type(e.type))

    def applied(self, f: Value, a: Value) -> Value:
        if isinstance(f, Either):
            if _ground(_target(f)):  # each within its branch: the other may overflow
                given = leaves((f.yes, (f.no, a)))
                side = lambda g: lambda d, to: d.applied(renamed(g, to), renamed(a, to))  # noqa: E731
                return self.cond(f.asked, [*given], side(f.yes), side(f.no))
            yes, no = self.applied(f.yes, a), self.applied(f.no, a)
            return self.chosen(f.asked, yes, no)
        assert isinstance(f, Closure)
        d, to = self.within(leaves((f, a)), "g")
        inner = renamed(f, to)
        assert isinstance(inner, Closure)
        env = {**inner.env, f.lam.held: renamed(a, to)}
        result = d.value(f.lam.parts[0], env)
        d.close(result)
        return self.results(f"{d.name}({', '.join([x.text for x in to])};)", result)

    def chosen(self, asked: Name, yes: Value, no: Value) -> Value:
        """One of two values: a number by `cond`, a function as both."""
        if isinstance(yes, tuple) and isinstance(no, tuple):
            return self.chosen(asked, yes[0], no[0]), self.chosen(asked, yes[1], no[1])
        if not isinstance(yes, Name) or not isinstance(no, Name):
            return Either(asked, yes, no)
        return self.cond(asked, [yes, no], lambda d, to: to[yes], lambda d, to: to[no])

    def choice(self, e: Term, env: dict[str, Value]) -> Value:
        a, b, yes, no = e.parts
        left, right = self.value(a, env), self.value(b, env)
        assert isinstance(left, Name)
        assert isinstance(right, Name)
        asked = self.bind(f"less({left.text}, {right.text})", "bool")
        if not _ground(e.type):
            return self.chosen(asked, self.value(yes, env), self.value(no, env))
        read = {x: env[x] for x in {**free(yes), **free(no)}}
        given = list(dict.fromkeys([n for v in read.values() for n in leaves(v)]))

        def side(s: Term) -> Side:
            return lambda d, to: d.value(s, {x: renamed(v, to) for x, v in read.items()})

        return self.cond(asked, given, side(yes), side(no))

    def cond(self, asked: Name, given: list[Name], *sides: "Side") -> Value:
        """The two sides as definitions on the same arguments."""
        names, results = [], None
        for side in sides:
            d, to = self.within(list(dict.fromkeys(given)), "h")
            made = side(d, to)
            fresh = _one_each(d, made)
            d.close(fresh)
            names.append(d.name)
            results = results or fresh
        assert results is not None
        args = ", ".join([x.text for x in (asked, *dict.fromkeys(given))])
        return self.results(f"cond[{', '.join(names)}]({args};)", results)

    def loop(self, n: int, f: Value, start: Value) -> Value:
        """A scan over a definition that is handed what f captured, and what is carried."""
        d, to = self.within(leaves(f), "b")
        outer = leaves_in_order([start])
        formals = [Name(self.writer.name("p"), x.type) for x in outer]
        d.formals = [*to.values(), *formals]
        results = _one_each(d, d.applied(renamed(f, to), _refilled(start, iter(formals))))
        d.close(results)
        args = ", ".join([x.text for x in [*to, *outer]])
        right = f"scan[{d.name}, {n}, fwd, {len(to)}, {len(outer)}, 0]({args};)"
        return self.results(right, results)


Side = Callable[[_Def, dict[Name, Name]], Value]  # a branch, written into a definition


def leaves_in_order(parts: list[Value]) -> list[Name]:
    """The variables of numbers and pairs in order, with repetitions."""
    names: list[Name] = []
    for p in parts:
        match p:
            case Name():
                names.append(p)
            case (left, right):
                names += leaves_in_order([left, right])
    return names


def _refilled(v: Value, names: Iterator[Name]) -> Value:
    """The same pairs of other variables."""
    if isinstance(v, tuple):
        left = _refilled(v[0], names)
        return left, _refilled(v[1], names)
    return next(names)


def _one_each(d: _Def, v: Value) -> Value:
    """The value with a variable of its own in every place, so that its results have an order."""
    if isinstance(v, tuple):
        return _one_each(d, v[0]), _one_each(d, v[1])
    assert isinstance(v, Name)
    return d.bind(v.text, v.type)


def _target(f: Value) -> Type:
    """What a function gives."""
    while isinstance(f, Either):
        f = f.yes
    assert isinstance(f, Closure)
    return f.lam.parts[0].type


def _ground(t: Type) -> bool:
    match t:
        case Two(left, right):
            return _ground(left) and _ground(right)
    return isinstance(t, Real | Array)

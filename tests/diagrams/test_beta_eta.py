r"""`same` decides βη-equality, against a normaliser of λ-terms that knows nothing of diagrams.

Normalisation by evaluation: a term is evaluated to Python's functions and pairs, and what it comes
to is read back with functions as λ and pairs as pairs (η-long), bound variables by their depth.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.calculus.terms import App, Fst, Lam, Let, Pair, Snd, Term, Var, lam
from lineara.calculus.types import Arrow, Product, R, Type
from lineara.diagrams import check, isomorphic, parse, same, simplify
from lineara.diagrams.abstraction_laws import Frames
from lineara.diagrams.net import nodes_in
from lineara.diagrams.normal_form import TooLarge, normal_forms
from lineara.diagrams.saturate import available

FORMS = ("isomorphic", "proved")


# --- normalisation by evaluation ------------------------------------------------------------------


class Stuck(NamedTuple):
    """A variable, or what is done to it: fst, snd, or an application to (type, value)."""

    what: str
    of: Any
    argument: Any = None


def meaning(t: Term, env: dict[str, Any]) -> Any:
    match t:
        case Var():
            return env[t.name]
        case Lam():
            return lambda v: meaning(t.parts[0], {**env, t.name: v})
        case App():
            return meaning(t.parts[0], env)(meaning(t.parts[1], env))
        case Let():
            return meaning(t.parts[1], {**env, t.name: meaning(t.parts[0], env)})
        case Pair():
            return meaning(t.parts[0], env), meaning(t.parts[1], env)
        case Fst():
            return meaning(t.parts[0], env)[0]
    assert isinstance(t, Snd)
    return meaning(t.parts[0], env)[1]


def reflected(t: Type, n: Stuck) -> Any:
    if isinstance(t, Arrow):
        return lambda v: reflected(t.target, Stuck("app", n, (t.source, v)))
    if isinstance(t, Product):
        return reflected(t.left, Stuck("fst", n)), reflected(t.right, Stuck("snd", n))
    return n


def read_back(t: Type, v: Any, depth: int) -> Any:
    if isinstance(t, Arrow):
        x = reflected(t.source, Stuck("var", depth))
        return ("lam", read_back(t.target, v(x), depth + 1))
    if isinstance(t, Product):
        return ("pair", read_back(t.left, v[0], depth), read_back(t.right, v[1], depth))
    return stuck(v, depth)


def stuck(n: Stuck, depth: int) -> Any:
    if n.what == "var":
        return ("var", n.of)
    if n.what == "app":
        t, v = n.argument
        return ("app", stuck(n.of, depth), read_back(t, v, depth))
    return (n.what, stuck(n.of, depth))


def normal(t: Term) -> Any:
    return read_back(t.type, meaning(t, {}), 0)


def test_the_normaliser_knows_beta_and_eta():
    f, x = ("f", Arrow(R, R)), ("x", R)
    identity = lam(f, Var((), *f))
    expanded = lam(f, lam(x, App((Var((), *f), Var((), *x)))))
    assert normal(identity) == normal(expanded) == ("lam", ("lam", ("app", ("var", 0), ("var", 1))))
    twice = lam(f, lam(x, App((Var((), *f), App((Var((), *f), Var((), *x)))))))
    assert normal(twice) != normal(identity)
    p = ("p", Product(R, R))
    assert normal(lam(p, Pair((Fst((Var((), *p),)), Snd((Var((), *p),)))))) == normal(
        lam(p, Var((), *p))
    )


# --- random terms ---------------------------------------------------------------------------------

SMALL = (R, R, R, Product(R, R), Arrow(R, R), Product(Arrow(R, R), R))
LARGE = (
    *SMALL, Arrow(Arrow(R, R), R), Arrow(R, Arrow(R, R)), Arrow(Product(R, R), R),
    Arrow(R, Product(R, R)), Arrow(Arrow(R, R), Arrow(R, R)),
)  # fmt: skip
Scope = list[tuple[str, Type]]


class Terms:
    """Closed terms without constants; there is always a variable of type R."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def name(self, t: Type) -> tuple[str, Type]:
        self.names += 1
        return f"x{self.names}", t

    def program(self, takes: list[Type], gives: Type, depth: int) -> Term:
        scope = [self.name(t) for t in takes]
        t = self.term(gives, scope, depth)
        for x in reversed(scope):
            t = lam(x, t)
        return t

    def term(self, t: Type, scope: Scope, depth: int) -> Term:
        if depth > 0 and self.random.random() < 0.25:
            return self.redex(t, scope, depth - 1)
        heads = [h for x in scope for h in self.heads(Var((), *x), t)]
        if heads and (t == R or self.random.random() < 0.4):
            if depth <= 0:
                heads = [h for h in heads if not h[1]] or heads
            return self.applied(*self.random.choice(heads), scope, depth)
        if isinstance(t, Arrow):
            x = self.name(t.source)
            return lam(x, self.term(t.target, [*scope, x], depth - 1))
        assert isinstance(t, Product), "a number has a variable"
        return Pair((self.term(t.left, scope, depth - 1), self.term(t.right, scope, depth - 1)))

    def heads(self, h: Term, t: Type) -> list[tuple[Callable[[list[Term]], Term], list[Type]]]:
        """The ways to come from a variable to a type, each with the arguments that it needs."""
        found: list[Any] = []

        def go(build: Callable[[list[Term]], Term], needs: list[Type], s: Type) -> None:
            if s == t:
                found.append((build, needs))
            if isinstance(s, Arrow):
                n = len(needs)
                go(lambda a: App((build(a), a[n])), [*needs, s.source], s.target)
            if isinstance(s, Product):
                go(lambda a: Fst((build(a),)), needs, s.left)
                go(lambda a: Snd((build(a),)), needs, s.right)

        go(lambda a: h, [], h.type)
        return found

    def applied(self, build: Any, needs: list[Type], scope: Scope, depth: int) -> Term:
        return build([self.term(s, scope, depth - 1) for s in needs])

    def redex(self, t: Type, scope: Scope, depth: int) -> Term:
        """A function that is applied, a let, or a part of a pair."""
        s = self.random.choice(SMALL)
        other = self.term(s, scope, depth)
        x = self.name(s)
        match self.random.randrange(4):
            case 0:
                return App((lam(x, self.term(t, [*scope, x], depth)), other))
            case 1:
                return Let((other, self.term(t, [*scope, x], depth)), x[0])
            case 2:
                return Fst((Pair((self.term(t, scope, depth), other)),))
        return Snd((Pair((other, self.term(t, scope, depth))),))

    def disguised(self, t: Term, scope: Scope) -> Term:
        """An equal term: redexes and η-expansions are put in at random."""
        match t:
            case Lam():
                x = (t.name, t.source)
                new: Term = lam(x, self.disguised(t.parts[0], [*scope, x]))
            case Let():
                x = (t.name, t.parts[0].type)
                new = Let(
                    (self.disguised(t.parts[0], scope), self.disguised(t.parts[1], [*scope, x])),
                    t.name,
                )
            case Var():
                new = t
            case _:
                new = type(t)(tuple([self.disguised(p, scope) for p in t.parts]))
        r = self.random.random()
        if r < 0.15 and isinstance(new.type, Arrow):
            x = self.name(new.type.source)
            return lam(x, App((new, Var((), *x))))
        if r < 0.15 and isinstance(new.type, Product):
            return Pair((Fst((new,)), Snd((new,))))
        if r > 0.92 and scope:
            x = self.name(self.random.choice(SMALL))
            unused = self.term(x[1], scope, 1)
            return App((lam(x, new), unused)) if r > 0.96 else Let((unused, new), x[0])
        return new

    def one_changed(self, t: Term) -> Term:
        """The term with one variable that is another one, of the same type, in its place."""
        places: list[tuple[Var, Scope]] = []

        def walk(s: Term, scope: Scope) -> None:
            if isinstance(s, Var):
                places.append((s, scope))
            elif isinstance(s, Lam):
                walk(s.parts[0], [*scope, (s.name, s.source)])
            elif isinstance(s, Let):
                walk(s.parts[0], scope)
                walk(s.parts[1], [*scope, (s.name, s.parts[0].type)])
            else:
                for p in s.parts:
                    walk(p, scope)

        walk(t, [])
        may = [(v, x) for v, scope in places for x in scope if x[1] == v.type and x[0] != v.name]
        if not may:
            return t
        chosen, x = self.random.choice(may)
        left = [i for i, (v, _) in enumerate(places) if v is chosen]
        wanted, seen = self.random.choice(left), -1

        def again(s: Term) -> Term:
            nonlocal seen
            if isinstance(s, Var):
                seen += 1
                return Var((), *x) if seen == wanted else s
            if isinstance(s, Lam):
                return lam((s.name, s.source), again(s.parts[0]))
            if isinstance(s, Let):
                return Let((again(s.parts[0]), again(s.parts[1])), s.name)
            return type(s)(tuple([again(p) for p in s.parts]))

        return again(t)


def pair(seed: int) -> tuple[Term, Term]:
    """Two terms of one type: equal by construction, all but the same, or independent."""
    make = Terms(seed)
    takes = [R, *[make.random.choice(LARGE) for _ in range(make.random.randrange(1, 4))]]
    gives = make.random.choice(LARGE)
    a = make.program(takes, gives, 3)
    if seed % 2 == 0:
        return a, make.disguised(a, [])
    if seed % 4 == 1:
        return a, make.disguised(make.one_changed(a), [])
    return a, make.program(takes, gives, 3)


def judge(seeds: range) -> None:
    equal = 0
    for seed in seeds:
        a, b = pair(seed)
        wanted = normal(a) == normal(b)
        verdict = same(diagram_of(a), diagram_of(b))
        assert verdict.equal is wanted, seed
        assert verdict.how in FORMS, seed
        equal += wanted
    assert 0.5 * len(seeds) <= equal <= 0.75 * len(seeds), equal


def test_same_decides_beta_eta_equality():
    judge(range(300))


@pytest.mark.slow("9,700 more pairs of terms")
@pytest.mark.parametrize("first", range(300, 10_000, 970))
def test_same_decides_beta_eta_equality_of_more(first: int):
    judge(range(first, first + 970))


# --- where η is -----------------------------------------------------------------------------------

ETA = "f = box(g) { (g: (R -> R), x: R) => y = eval(g, x) -> y }"


def verdict(a: str, b: str) -> tuple[bool | None, str]:
    return same(parse(a), parse(b))


def test_a_function_is_what_it_does_to_its_argument():
    assert verdict(f"(g: (R -> R)) => {ETA} -> f", "(g: (R -> R)) => -> g") == (True, "proved")
    assert verdict(
        f"(g: (R -> R), k: ((R -> R) -> R)) => {ETA} y = eval(k, f) -> y",
        "(g: (R -> R), k: ((R -> R) -> R)) => y = eval(k, g) -> y",
    ) == (True, "proved")
    later = (
        "f = box(h, c) { (h: (R -> (R -> R)), c: R, x: R) => g = eval(h, c) y = eval(g, x) -> y }"
    )
    takes = "(h: (R -> (R -> R)), c: R)"
    assert verdict(f"{takes} => {later} -> f", f"{takes} => f = eval(h, c) -> f") == (
        True, "proved",
    )  # fmt: skip
    swapped = "f = box(g) { (g: (R, R -> R), x: R, y: R) => z = eval(g, y, x) -> z }"
    assert verdict(
        f"(g: (R, R -> R)) => {swapped} -> f", "(g: (R, R -> R)) => -> g"
    ) == (False, "proved")  # fmt: skip
    takes = "(f: (R -> ), g: (R -> ))"
    assert verdict(f"{takes} => drop(f) -> g", f"{takes} => drop(g) -> f") == (True, "proved")


def test_with_primitives_what_congruence_gives_is_proved_and_a_difference_is_tried():
    takes = "(c: B, g: (R -> R), h: (R -> R))"
    assert verdict(
        f"{takes} => {ETA} s = sel(c, f, h) -> s", f"{takes} => s = sel(c, g, h) -> s"
    ) == (True, "proved")
    assert verdict(f"{takes} => s = sel(c, g, h) -> s", f"{takes} => s = sel(c, h, g) -> s") == (
        False, "numeric",
    )  # fmt: skip
    rounds = "{ (a: R, x: R) => y = sin(a) drop(x) b, z = copy(y) -> b, z }"
    wrapped = "g = box(f) { (f: (R, R -> R, R), a: R, x: R) => y, z = eval(f, a, x) -> y, z }"
    scanned = "y, ys = scan[3, 1, fwd](%s, a, xs) -> y, ys"
    assert verdict(
        f"(a: R, xs: stack[3, R]) => f = box() {rounds} {wrapped} {scanned % 'g'}",
        f"(a: R, xs: stack[3, R]) => f = box() {rounds} {scanned % 'f'}",
    ) == (True, "proved")


def test_a_frame_of_equal_diagrams_is_the_same_frame():
    frame = "F: 'F(R)' = frame[\"F\"](x) { (x: R) => %s }"
    left = frame % "f = box() { (a: R) => b = sin(a) -> b } y = eval(f, x) -> y"
    right = frame % "y = sin(x) -> y"
    other = frame % "y = cos(x) -> y"
    takes = "(x: 'F(R)') => "
    assert verdict(f"{takes}{left} -> F", f"{takes}{right} -> F") == (True, "proved")
    assert not verdict(f"{takes}{left} -> F", f"{takes}{other} -> F")[0]


def test_on_finitely_many_values_different_forms_are_no_proof():
    """On truth values f(f(f(x))) is f(x), though no law of functions says so."""
    thrice = (
        "(f: (B -> B), x: B) => g, h = copy(f) i, j = copy(h) a = eval(g, x) b = eval(i, a)"
        " c = eval(j, b) -> c"
    )
    once = "(f: (B -> B), x: B) => y = eval(f, x) -> y"
    assert verdict(thrice, once)[0] is None
    real = [text.replace("B", "R") for text in (thrice, once)]
    assert verdict(*real) == (False, "proved")
    nothing = [text.replace("B", "f64[0]") for text in (thrice, once)]
    assert verdict(*nothing)[0] is not False


def tower(n: int) -> Term:
    """2 to the 2 to the 2 ..., n high, times a function, as Church writes numbers."""
    types: list[Type] = [R]
    for _ in range(n):
        types.append(Arrow(types[-1], types[-1]))

    def twice(t: Type) -> Term:
        f, x = ("f", Arrow(t, t)), ("x", t)
        inner = App((Var((), *f), Var((), *x)))
        return lam(f, lam(x, App((Var((), *f), inner))))

    h = twice(types[n - 1])
    for k in reversed(range(n - 1)):
        h = App((h, twice(types[k])))
    g, y = ("g", Arrow(R, R)), ("y", R)
    return lam(g, lam(y, App((App((h, Var((), *g))), Var((), *y)))))


def test_a_normal_form_that_is_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch):
    a, b = diagram_of(tower(4)), diagram_of(tower(3))
    with pytest.raises(TooLarge):
        normal_forms(a, b, largest=1_000)
    with monkeypatch.context() as patch:
        patch.setattr("lineara.diagrams.equality.LARGEST", 1_000)
        assert same(a, b) == (None, "a normal form takes more than 1000 steps")
    assert same(b, diagram_of(tower(3))).equal


def test_simplify_takes_a_box_away_that_only_evaluates():
    found = simplify(parse(f"(g: (R -> R)) => {ETA} -> f"))
    assert isomorphic(found, parse("(g: (R -> R)) => -> g"))
    computing = (
        "(c: R) => f = box(c) { (c: R, x: R) => h = box(c) { (c: R, y: R) => z = multiply(c, y)"
        " -> z } y = eval(h, x) -> y } -> f"
    )
    assert len(list(nodes_in(simplify(parse(computing))))) == 2
    kept = parse(
        "(h: (R -> (R -> R)), c: R) =>"
        " f = box(h, c) { (h: (R -> (R -> R)), c: R, x: R) => g = eval(h, c) y = eval(g, x) -> y }"
        " -> f"
    )
    assert isomorphic(simplify(kept), kept)  # what h does is not done before it is asked for


def test_eta_is_a_triangle_of_eval_and_coeval():
    s = Frames(parse(f"(g: (R -> R)) => {ETA} -> f"), lambda step, now: check(now))
    (box,) = s.net.nodes.values()
    s.eta(box)
    assert [step.rule for step in s.log] == ["unfold", "triangle"]
    assert isomorphic(s.net, parse("(g: (R -> R)) => -> g"))


@pytest.mark.skipif(not available(), reason="egglog is an extra: pip install lineara[egglog]")
def test_eta_and_algebra_together_are_proved_in_the_e_graph():
    takes = "(g: (R -> R), k: ((R -> R) -> R), a: R)"
    left = f"{takes} => {ETA} u = eval(k, f) y = add(u, a) -> y"
    right = f"{takes} => u = eval(k, g) y = add(a, u) -> y"
    assert verdict(left, right) == (True, "egglog")
    inside = (
        "(k: ((R -> R) -> R), c: R) =>"
        " h = box(c) { (c: R, x: R) => y = %s -> y } g = box(h) { (g: (R -> R), x: R) =>"
        " y = eval(g, x) -> y } u = eval(k, g) -> u"
    )
    assert verdict(inside % "add(c, x)", inside % "add(x, c)") == (True, "egglog")

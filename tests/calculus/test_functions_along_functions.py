r"""A function argument differentiated along another: the machine agrees with the rules.

f is the argument of one pullback and is applied to g, the argument of one within it.  The rules
know nothing of the machine's slopes.  Values are paired with a direction, which makes them numbers.
"""

import itertools
import math
import random

import pytest

from lineara import calculus
from lineara.calculus.terms import Literal, Term

W = r"\_. covec(1)"
F, F2 = r"(\g:R -> R. g 1 * g 0.5)", r"(\g:R -> R. sin(g 2))"
FUNCTIONAL = r"\f:(R -> R) -> R. f (\x. x * x) * f (\x. sin(x))"


def number(t: Term) -> float:
    assert isinstance(t, Literal)
    return t.held


def outer(body: str, f: str = F, along: str = F2, t: str = "(R -> R) -> R") -> str:
    return rf"(pull(\f:{t}. {body}; {W}) {f}) @ {along}"


def inner(body: str) -> str:
    return rf"(pull(\g:R -> R. {body}; {W}) (\x. sin(x)) @ (\x. cos(x)))"


def third(body: str) -> str:
    return rf"(pull(\F:((R -> R) -> R) -> R. {body}; {W}) ({FUNCTIONAL})) @ (\f. f (\x. cos(x)))"


SINE = r"(\x. sin(x))"
POINT = r"<\x:R. sin(x), 2> @ <\x:R. cos(x), 3>"
SCALED = outer(inner(r"f (\z:R. g (x * z))"))
PROGRAMS = {
    "applied": outer(inner("f g")),
    "used twice": outer(
        rf"let k = pull(\g:R -> R. f g; {W}) {SINE} in (k @ (\x. cos(x))) * (k @ (\x. x * x))"
    ),
    "squared": outer(f"let k = {inner('f g')} in k * k * f (\\x. x)"),
    "within itself": outer(inner(r"f (\x. f g * g x)")),
    "in a closure": outer(inner(r"f (\x. g x * x + g (x * x))")),
    "f of two": outer(
        inner("f g 2"),
        r"(\g:R -> R. \y:R. g y * g 1)",
        r"(\g:R -> R. \y:R. y * g (g y))",
        "(R -> R) -> R -> R",
    ),
    "g of two": outer(
        rf"(pull(\g:R -> R -> R. f (g 2); {W}) (\x y. sin(x * y)) @ (\x y. x * y * y))"
    ),
    "beside a number": outer(rf"(pull(\<g, y>. f (\x:R. g (x * y)); {W}) {POINT})"),
    "in a pair": outer(
        rf"(pull(\<g, y>. f <g, y * y>; {W}) {POINT})",
        r"(\<g:R -> R, y:R>. g y * g 1)",
        r"(\<g:R -> R, y:R>. g (y * y))",
        "(R -> R) * R -> R",
    ),
    "three": third(outer(inner("F f * f g"))),
    "three in each other": third(outer(inner(r"F (\h:R -> R. f (\x:R. g (h x)))"))),
    "J within": outer(inner(r"J(\x:R. f (\z:R. x * g z); 1) 2")),
    "pull within": outer(inner(rf"(pull(\x:R. f (\z:R. x * g z); {W}) 2 @ 3)")),
    "J of what captures": outer(r"J(\x:R. f (\z:R. x * z); 1) 2"),
    "J around": rf"J(\x:R. {SCALED}; 1) 2",
    "pull around": rf"pull(\x:R. {SCALED}; {W}) 2 @ 1",
    "twice along g": outer(
        rf"(pull(\h:R -> R. (pull(\g:R -> R. f g; {W}) h @ h); {W}) {SINE} @ (\x. cos(x)))"
    ),
    "its cotangent as an argument": (
        rf"(pull(\<f:(R -> R) -> R, H:(R -> R)^ -> R>. H (pull(\g. f g; {W}) {SINE}); {W}) "
        rf"<{F}, \k:(R -> R)^. (k @ (\x. x)) * (k @ (\x. x * x))>) "
        rf"@ <{F2}, \k:(R -> R)^. k @ (\x. x * x * x)>"
    ),
    "its cotangent along its cotangent": outer(
        rf"(pull(\k:(R -> R)^. (k @ (\x. x)) * (k @ (\x. x * x)); {W}) "
        rf"(pull(\g. f g; {W}) {SINE}) @ (pull(\g. f (\x. g (g x)); {W}) (\x. cos(x))))"
    ),
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_the_machine_agrees_with_the_rules(text):
    t = calculus.term(text)
    wanted = number(calculus.reduce(t))
    assert wanted != 0
    assert number(calculus.run(t)) == pytest.approx(wanted, rel=1e-12)


class Bodies:
    """Random texts of type R, of a function g, a function of functions f, and numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.fresh = itertools.count()

    def number(self, depth: int, names: tuple[str, ...] = ("0.4",)) -> str:
        kind = self.random.random() if depth > 0 else 1.0
        if kind == 1.0:
            return self.random.choice((*names, "0.7", "1.3"))
        if kind < 0.35:
            sign = self.random.choice("*+")
            return f"({self.number(depth - 1, names)} {sign} {self.number(depth - 1, names)})"
        if kind < 0.55:
            return f"({self.function(depth - 1, names)} ({self.number(depth - 1, names)}))"
        if kind < 0.8:
            return f"(f {self.function(depth - 1, names)})"
        x = f"x{next(self.fresh)}"
        body, at = self.number(depth - 1, (*names, x)), self.number(depth - 2, names)
        along = self.number(depth - 2, names)
        if kind < 0.9:
            return rf"(J(\{x}:R. {body}; {along}) ({at}))"
        return rf"((pull(\{x}:R. {body}; {W}) ({at})) @ ({along}))"

    def function(self, depth: int, names: tuple[str, ...]) -> str:
        if depth <= 0 or self.random.random() < 0.4:
            return self.random.choice(("g", "g", r"(\z:R. cos(z))"))
        x = f"y{next(self.fresh)}"
        return rf"(\{x}:R. {self.number(depth - 1, (*names, x))})"


def test_the_machine_agrees_with_the_rules_on_random_bodies(share):
    moving, seeds = 0, share(range(40))
    for seed in seeds:
        t = calculus.term(outer(inner(Bodies(seed).number(3))))
        wanted = number(calculus.reduce(t))
        assert number(calculus.run(t)) == pytest.approx(wanted, rel=1e-10, abs=1e-12), seed
        moving += wanted != 0
    assert moving > 5 or len(seeds) < 40


def test_the_mixed_derivative_is_the_one_on_paper():
    # d/dt d/ds at 0 of (F + t F2)(sin + s cos) = F2'(sin)[cos] = cos(sin 2) cos 2
    wanted = math.cos(math.sin(2)) * math.cos(2)
    assert number(calculus.run(PROGRAMS["applied"])) == pytest.approx(wanted, rel=1e-14)


def test_such_a_cotangent_is_shown_as_the_bag_of_probes_that_it_is():
    at_k = rf"pull(\<f, H:(R -> R)^ -> R>. H (pull(\g. f g; {W}) (\x. x * x)); {W})"
    square = r"\k:(R -> R)^. (k @ (\x. x)) * (k @ (\x. 1))"
    value = calculus.show(calculus.run(rf"{at_k} <\g:R -> R. g 2 * g 3, {square}>"))
    # k = 9 δ_2 + 4 δ_3, paired with x and 1: 30 and 13
    assert value == (
        r"[(\x:R. multiply(x, x); \x:R. 1 |>' covec(30)) + (\x:R. multiply(x, x); \x:R. x |>' "
        r"covec(13))|(3 |> covec(4)) + (2 |> covec(9)) |> covec(1)]"
    )


def test_a_bag_of_probes_is_that_of_the_rules():
    t = calculus.term(rf"pull(\f:(R -> R) -> R. {inner('f g')}; {W}) {F}")
    shown = r"(\x:R. sin(x); \x:R. cos(x) |>' covec(1))"
    assert calculus.show(calculus.run(t)) == calculus.show(calculus.reduce(t)) == shown


def test_an_argument_that_captures_what_moves_has_a_probe_along_its_tangent():
    text = (
        rf"pull(\f:(R -> R) -> R. J(\x:R. f (\z:R. x * z); 1) 2; {W}) {F} @ (\g:R -> R. g 3 * g 4)"
    )
    assert number(calculus.run(text)) == 48.0  # d/dx 12 x^2 at 2

"""What is asked of a random program: all find the same gradient, and every step is typed."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from random_terms import Random, meaning
from shrink import smallest

import lineara
from lineara import calculus
from lineara.calculus.check import Known, check
from lineara.calculus.closure_conversion import converted
from lineara.calculus.machine import Machine
from lineara.calculus.parse import parse
from lineara.calculus.program import term
from lineara.calculus.readback import read_back
from lineara.calculus.reducer import Reducer
from lineara.calculus.show import show
from lineara.calculus.term_numbers import numbers_of
from lineara.calculus.terms import At, Covec, J, Pair, Pull, Term, app, constant_form, lam, num, var
from lineara.calculus.types import Arrow, R, power
from lineara.engines import run as evaluate
from lineara.errors import LinearaError
from lineara.linear_a.check import check as well_typed
from lineara.passes import derivatives

AT = (0.7, -0.4)
H = 1e-30
LONGEST = 60_000  # steps; a term of these sizes needs far fewer


def gradient_of(f: Term) -> Term:
    """The gradient of a function of two numbers, at AT."""
    pulled = Pull((f, constant_form(R, Covec((num(1),)))))
    return app(pulled, Pair((num(AT[0]), num(AT[1]))))


def reduced(t: Term, typed: bool) -> list[float]:
    """By the rules; with `typed` each contractum is checked to have the type of its redex."""
    known: Known = {}
    stated = check(t, known)
    r = Reducer(t)
    for s in r:
        assert not s.redex.free
        assert r.steps < LONGEST, "this does not seem to end"
        if typed:
            assert check(s.contractum, known) == s.redex.type == s.contractum.type
    value = r.term()
    assert value.value
    assert check(value) == stated
    return numbers_of(value)


worst = 0.0  # the largest disagreement that was seen, relative to the number
comparisons = 0


def shrunk(check: Callable[..., bool]) -> Callable[..., bool]:
    """A check of the program of a seed; where it fails the error shows a smallest such program."""

    @functools.wraps(check)
    def checked(seed: int, nested: bool, depth: int = 5, **options: Any) -> bool:
        f = Random(seed, nested, **options.pop("made", {})).function(power(2), depth)
        try:
            return check(f, nested, **options)
        except (AssertionError, LinearaError) as error:

            def fails(g: Term) -> bool:
                try:
                    check(g, nested, **options)
                except (AssertionError, LinearaError):
                    return True
                except Exception:  # another failure, which a smaller program may well have
                    return False
                return False

            said = show(smallest(f, fails))
            raise AssertionError(f"{check.__name__}, seed {seed}: {said}") from error

    return checked


@shrunk
def agree(f: Term, nested: bool, typed: bool = False) -> bool:
    """All agree on the program of the seed; whether its gradient is not zero."""
    t = gradient_of(f)
    by_rules = reduced(t, typed)
    by_machine = numbers_of(read_back(Machine().value(t), t.type))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a program may be constant, which eager warns of
        found = eager(f)
        if not nested:
            assert close(by_machine, complex_step(f)), show(t)
    assert close(by_rules, by_machine), show(t)
    assert close(by_machine, found), show(t)
    text = show(f)
    assert show(term(text)) == text
    assert parse(text).term is not None
    return any(by_machine)


def agree_staged(seed: int, nested: bool, depth: int = 5) -> bool:
    """The machine's gradient is Linear A's, by its passes and by running pull on variables."""
    return staged(seed, nested, depth, made={"branches": False})


@shrunk
def staged(f: Term, nested: bool) -> bool:
    """The same of a program."""
    by_machine = numbers_of(calculus.run(gradient_of(f)))
    staged = calculus.linear_a(f)
    derived = derivatives.grad(staged.program, staged.name)
    found = [float(x) for x in evaluate(derived, f"{staged.name}.grad", *AT).results]
    assert close(by_machine, found), show(f)
    x = ("x", power(2))
    pulled = lam(x, app(calculus.gradient(f), var(x)))
    assert close(by_machine, list(calculus.linear_a(pulled)(AT))), show(f)
    return any(by_machine)


@shrunk
def agree_converted(f: Term, nested: bool) -> bool:
    """Converted to closures in Linear A, a program with branches keeps its value and gradient.

    The gradient is taken of the program by the passes, and by the program that `pull` becomes.
    """
    by_machine = numbers_of(calculus.run(gradient_of(f)))
    x = ("x", power(2))
    pulled = lam(x, app(calculus.gradient(f), var(x)))
    made, derivative = [converted(t, calculus.function(t), [(0.5, 0.5)]) for t in (f, pulled)]
    for program in (made.program, derivative.program):
        well_typed(program)
    assert close([made(AT)], [calculus.function(f)(AT)]), show(f)
    derived = derivatives.grad(made.program, made.name)
    found = [float(x) for x in evaluate(derived, f"{made.name}.grad", *AT).results]
    assert close(by_machine, found), show(f)
    assert close(by_machine, list(derivative(AT))), show(f)
    if not nested:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            assert close(found, complex_step(f)), show(f)
    return any(by_machine)


def agree_functional(seed: int) -> bool:
    """A gradient with respect to a function, paired with another, is the derivative along it."""
    made, t = Random(seed, nested=bool(seed % 2)), Arrow(R, R)
    f, at, along = made.function(t, 4), made.term(t, [], 2), made.term(t, [], 2)
    backward = At((app(calculus.gradient(f), at), along))
    forward = app(J((f, along)), at)
    value, u, v = meaning(f, {}), meaning(at, {}), meaning(along, {})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = lineara.grad(lambda s: value(lambda x: u(x) + s * v(x)) + 0.0 * s)(0.0)
    for term_of_it in (backward, forward):
        by_machine = Machine().value(term_of_it)
        assert close([*reduced(term_of_it, False), by_machine], [wanted] * 2), show(f)
    return bool(wanted)


def eager(f: Term) -> list[float]:
    """The gradient of what the term means in Python, by the eager engine."""
    value = meaning(f, {})
    wrapped = lambda p: value(p) + 0.0 * p[0]  # noqa: E731  # a constant one is a number too
    return [float(x) for x in lineara.grad(wrapped)(AT)]


def complex_step(f: Term) -> list[float]:
    """The gradient by a step of 1e-30 i."""
    value = meaning(f, {})
    x, y = AT
    return [np.imag(value(p)) / H for p in ((x + 1j * H, y + 0j), (x + 0j, y + 1j * H))]


def close(a: list[float], b: list[float]) -> bool:
    """Within 1e-9."""
    global worst, comparisons
    comparisons += len(a)
    gaps = [abs(x - y) / max(1.0, abs(x)) for x, y in zip(a, b, strict=True)]
    good = bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))
    if good:
        worst = max([worst, *[g for g in gaps if np.isfinite(g)]])
    return good

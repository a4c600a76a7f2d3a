"""A failing program shrinks to one that a person can read, and that still fails."""

import agree as agreement
import pytest
from agree import agree
from random_terms import Random
from shrink import smaller, smallest

from lineara import calculus
from lineara.calculus import scalars
from lineara.calculus.check import check
from lineara.calculus.program import term
from lineara.calculus.show import show
from lineara.calculus.substitution import subterms
from lineara.calculus.terms import App, Fun, J, Term
from lineara.calculus.types import power


def has(f: Term, name: str) -> bool:
    return any([isinstance(s, Fun) and s.symbol.name == name for s in subterms(f)])


def test_every_smaller_term_is_well_typed_and_closed():
    for seed in range(20):
        f = Random(seed, nested=True).function(power(2), 4)
        for g in list(smaller(f))[:200]:
            assert check(g) == f.type


def test_what_is_left_is_minimal_and_reads_back():
    seeds = [s for s in range(40) if has(Random(s, True).function(power(2), 5), "tanh")]
    assert len(seeds) > 5
    for seed in seeds:
        f = Random(seed, nested=True).function(power(2), 5)
        found = smallest(f, lambda g: has(g, "tanh"))
        assert show(found) == "\\p:R * R. tanh(0)"
        assert show(term(show(found))) == show(found)


def test_a_choice_of_shapes_is_kept():
    def applies_a_derivative(g: Term) -> bool:
        return any([isinstance(s, App) and isinstance(s.parts[0], J) for s in subterms(g)])

    seeds = range(60)
    programs = [Random(s, nested=True).function(power(2), 5) for s in seeds]
    found = [smallest(f, applies_a_derivative) for f in programs if applies_a_derivative(f)]
    assert len(found) > 3
    sizes = sorted([len(list(subterms(f))) for f in found])
    assert sizes[len(sizes) // 2] == 7  # \\p. J(\\q. 0; 0) 0
    assert sizes[-1] <= 20


def test_a_wrong_derivative_is_reported_as_a_small_program(monkeypatch):
    right = scalars.weight

    def wrong(symbol, i, y, args):
        factor = 1.5 if symbol.name == "cos" else 1.0
        return factor * right(symbol, i, y, args)

    seed = next(
        s for s in range(100)
        if has(Random(s, False).function(power(2), 5), "cos") and agree(s, nested=False)
    )  # fmt: skip
    monkeypatch.setattr(scalars, "weight", wrong)
    failing = [s for s in range(seed, seed + 60) if not passes(s)]
    assert failing
    for s in failing[:4]:
        with pytest.raises(AssertionError) as caught:
            agree(s, nested=False)
        text = str(caught.value).partition(": ")[2].partition("\n")[0]
        f = calculus.term(text)
        assert has(f, "cos")
        assert len(list(subterms(f))) <= 6, text


def passes(seed: int) -> bool:
    f = Random(seed, False).function(power(2), 5)
    try:
        agreement.agree.__wrapped__(f, False)
    except AssertionError:
        return False
    return True

"""The differential λ-calculus beside the pullback calculus: one derivative, and other counts."""

import itertools

import pytest
from random_terms import Random

from lineara import calculus
from lineara.calculus.linear_substitution import (
    compare,
    functions_for_duals,
    linear_substitution,
    translated,
)
from lineara.calculus.substitution import Fresh
from lineara.calculus.terms import At, Covec, Lam, Pair, Pull, Term, app, constant_form, num
from lineara.calculus.types import Product, R
from lineara.errors import CalculusError

W = r"\_. covec(1)"


def substituted(text: str) -> str:
    f = calculus.term(text)
    assert isinstance(f, Lam)
    return calculus.show(linear_substitution(f.parts[0], f.name, num(7), Fresh(f)))


@pytest.mark.parametrize(
    ("text", "partial"),
    [
        (r"\x. x", "7"),
        (r"\x. 3", "0:R"),
        (r"\x. x + 3 + x", "7 + 0:R + 7"),
        (r"\x. <x, sin(x)>", "<7, J{sin}(7) x>"),
        (r"\x. \y. x * y", r"\y:R. J{multiply}(<7, 0:R>) <x, y>"),
        # an application has two summands: the function moves, and the argument does
        (r"\x. (\y. y + x) (sin(x))",
         r"(\y:R. 0:R + 7) sin(x) + J(\y:R. y + x; J{sin}(7) x) sin(x)"),
        (r"\x. let y = sin(x) in y * y", r"J(\y:R. multiply(y, y); J{sin}(7) x) sin(x)"),
        (r"\x. J(\y. y * x; x) x",
         r"(J(\y:R. J{multiply}(<0:R, 7>) <y, x>; x) + J(\y:R. multiply(y, x); 7)) x + "
         r"J(J(\y:R. multiply(y, x); x); 7) x"),
    ],
)  # fmt: skip
def test_linear_substitution_takes_one_occurrence_at_a_time(text, partial):
    assert substituted(text) == partial


PROGRAMS = [
    rf"pull(\x. pull(\y. y * y * y; {W}) x @ 1; {W}) 2 @ 1",
    rf"(pull(\f:R -> R. f 2 * f 3; {W}) (\x. x * x)) @ (\x. 1)",
    rf"(pull(\f:R -> R. J(f; 3) 2; {W}) (\x. x * x)) @ (\x. x * x * x)",
    rf"(J(\x. pull(\<y, z>. y * z * x; {W}) <x, 2>; 1) 3) @ <1, 2>",
    r"dual(\<x, y>. <y, 2 * x>; [covec(3)|covec(4)]) @ <5, 6>",
    r"dual(\v:R. 5 |> covec(v); ev(\x. x * x)) @ 1",
    r"dual(\f:R -> R. f; (5; 2 |>' covec(3))) @ (\x. x * x)",
    r"scale(2, covec(<1, 2>)) @ <3, 4> + (0:(R * R)^) @ <1, 1>",
    rf"pull(\x. if less(x, 1) then x * x else 3 * x; {W}) 0.5 @ 1",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_both_calculi_give_the_same_number(text):
    ours, theirs = compare(text)
    assert calculus.show(ours.value) == calculus.show(theirs.value)
    assert ours.value.type == theirs.value.type == R


def slope(f: Term) -> Term:
    """The derivative of a function of two numbers at a point along a vector."""
    at, along = Pair((num(0.4), num(-0.7))), Pair((num(1.0), num(0.5)))
    return At((app(Pull((f, constant_form(R, Covec((num(1),))))), at), along))


@pytest.mark.parametrize("nested", [False, True])
def test_both_calculi_agree_on_random_programs(nested, share):
    compared, seeds = 0, share(range(40))
    for seed in seeds:
        t = slope(Random(seed, nested).function(Product(R, R)))
        try:
            theirs = translated(t)
        except CalculusError:
            continue  # a recursion
        assert calculus.check(theirs) == functions_for_duals(t.type)
        a, b = [float(calculus.show(c.value)) for c in compare(t)]
        assert a == pytest.approx(b, rel=1e-11, abs=1e-13)
        compared += 1
    assert compared > 20 or len(seeds) < 40


def chain(n: int) -> str:
    """Each line uses the two before."""
    lines = [f"let x{k} = x{k - 1} * x{k - 2} in" for k in range(2, n + 1)]
    return rf"pull(\x0. let x1 = sin(x0) in {' '.join(lines)} x{n}; {W}) 0.9 @ 1"


def test_a_name_that_is_used_twice_is_differentiated_twice_by_linear_substitution():
    counts = [compare(chain(n)) for n in range(2, 9)]
    steps = [(ours.steps, theirs.steps) for ours, theirs in counts]
    assert {b[0] - a[0] for a, b in itertools.pairwise(steps)} == {12}
    assert steps[0] == (22, 32)
    assert steps[-1] == (94, 560)  # as Fibonacci's numbers: each is nearly the sum of two before
    assert [t.terms for _, t in counts][-1] > 7 * [o.terms for o, _ in counts][-1]


def test_what_is_not_there_is_refused_in_words():
    with pytest.raises(CalculusError) as caught:
        compare("head [1, 2]")
    assert caught.value.message == (
        "[1, 2]: the differential λ-calculus has variables, functions, products, sums, function "
        "symbols and derivatives; functionals come there by `translated`, and lists and recursion "
        "do not"
    )
    with pytest.raises(CalculusError) as caught:
        compare(r"\x. x")
    assert caught.value.message == (
        "values are compared as numbers, and this is R -> R; pair a functional with a vector, k @ v"
    )

"""The laws of explicit substitution, foliations, and the cartesian form, on random terms.

t[x/u] is `let x = u in t`: the wires of u stand for x.
"""

import itertools
import math

import numpy as np
import pytest
from calculus.random_terms import Random
from diagrams.judge import AT, close, primal
from diagrams.test_hypernets import WORKED, chain, scattered

from lineara.bridges.calculus_and_diagrams import diagram_of, term_of
from lineara.calculus.terms import App, Let, Pair, Term, Var, lam, num
from lineara.calculus.types import Arrow, Product
from lineara.calculus.types import R as Real
from lineara.diagrams import adjoint, check, identity, isomorphic, parse, permutation, show, tensor
from lineara.diagrams.cartesian import cartesian, monogamous
from lineara.diagrams.equality import same
from lineara.diagrams.evaluate import evaluate
from lineara.diagrams.foliate import (
    Foliation,
    Leaf,
    Symmetry,
    count_foliations,
    foliated,
    foliations,
    recomposed,
    separated,
)
from lineara.diagrams.net import Net, Node, every_net
from lineara.diagrams.stepper import Derivation
from lineara.diagrams.types import R
from lineara.errors import DiagramError

TERMS = range(200)
P = ("p", Product(Real, Real))
X, Y = ("x", Real), ("y", Real)


def terms(seed: int, *scopes: list) -> list[Term]:
    """A random term for each scope; binders within have names of their own."""
    made = Random(seed)
    return [made.term(Real, [P, *s], 3) for s in scopes]


def substituted(t: Term, x: tuple, u: Term) -> Term:
    return Let((u, t), x[0])


def equal(a: Term, b: Term) -> None:
    """The cartesian forms of two terms that mention p only are one."""
    left, right = diagram_of(lam(P, a)), diagram_of(lam(P, b))
    assert cartesian(left).digest == cartesian(right).digest, show(left)


@pytest.mark.parametrize("law", ["ce", "var", "gc", "app", "comp"])
@pytest.mark.slow("compares large diagrams: 4 s")
def test_laws_that_hold_as_term_graphs(law: str):
    for seed in TERMS:
        t, s, u, v = terms(seed, [X, Y], [X], [], [])
        if law == "ce":
            equal(substituted(substituted(t, X, u), Y, v), substituted(substituted(t, Y, v), X, u))
        elif law == "var":
            equal(substituted(Var((), *X), X, u), u)
        elif law == "gc":
            equal(substituted(v, X, u), v)
        elif law == "app":
            f = Random(seed + 1000).term(Arrow(Real, Real), [P, X], 3)
            equal(
                substituted(App((f, s)), X, u),
                App((substituted(f, X, u), substituted(s, X, u))),
            )
        else:  # y is in t and in what is put for x
            inner = terms(seed + 5000, [Y])[0]
            equal(
                substituted(substituted(t, X, inner), Y, v),
                substituted(substituted(t, Y, v), X, substituted(inner, Y, v)),
            )


@pytest.mark.parametrize("law", ["lamb", "br"])
def test_laws_that_hold_in_normal_form(law: str, share):
    alike, seeds = 0, share(TERMS)
    for seed in seeds:
        t, u = terms(seed, [X, Y], [])
        if law == "lamb":
            left = Pair((substituted(lam(Y, t), X, u), num(1)))  # in a pair it is a wire
            right = Pair((lam(Y, substituted(t, X, u)), num(1)))
        else:
            body, v = terms(seed, [X, Y], [])[0], terms(seed + 7000, [])[0]
            left = substituted(App((lam(X, body), u)), Y, v)
            right = substituted(substituted(body, X, u), Y, v)
        a, b = diagram_of(lam(P, left)), diagram_of(lam(P, right))
        alike += cartesian(a).digest == cartesian(b).digest
        verdict = same(a, b)
        assert verdict.equal
        assert verdict.how in ("isomorphic", "proved"), show(a)
    assert alike > 0.6 * len(seeds) or law == "br"


def test_terms_go_to_diagrams_and_back(share):
    for seed in share(TERMS):
        net = primal(seed, 4)
        again = diagram_of(term_of(net))
        check(again)
        with np.errstate(all="ignore"):
            assert close(evaluate(net, *AT), evaluate(again, *AT))


# --- foliations -----------------------------------------------------------------------------------


def test_a_foliation_is_the_diagram_again(share):
    for seed in share(TERMS):
        net = primal(seed, 3 + seed % 3)
        leaves = foliated(net)
        assert len(leaves.leaves) == len(net.nodes)
        again = recomposed(leaves)
        check(again)
        assert isomorphic(again, net)


def test_the_foliation_of_the_worked_example():
    found = foliated(parse(WORKED))
    assert [(leaf.kind, leaf.order) for leaf in nodes_of(found)] == [
        ("copy", (0,)),
        ("box", (0, 1)),
        ("copy", (1, 0)),
        ("eval", (2, 0, 1)),
        ("op", (0, 1)),
    ]
    assert nodes_of(nodes_of(found)[1].bodies[0])[0].name == "multiply"
    long = foliated(chain(5_000))
    assert isomorphic(recomposed(long), chain(5_000))


def brute_force(net: Net) -> int:
    """How many orders of the nodes of a level put none before what it needs."""
    nodes = list(net.nodes.values())
    good = 0
    for order in itertools.permutations(range(len(nodes))):
        place = {id(nodes[i]): k for k, i in enumerate(order)}
        good += all([
            not isinstance(w.source[0], Node) or place[id(w.source[0])] < place[id(n)]
            for n in nodes for w in n.ins if w.source is not None
        ])  # fmt: skip
    return good


def nodes_of(f: Foliation) -> list[Leaf]:
    return [leaf for leaf in f.leaves if isinstance(leaf, Leaf)]


def test_all_foliations_are_enumerated_once_and_counted():
    two = tensor(parse("(x: R) => y = sin(x) -> y"), parse("(x: R) => y = cos(x) -> y"))
    assert [[leaf.name for leaf in nodes_of(f)] for f in foliations(two)] == [
        ["sin", "cos"],
        ["cos", "sin"],
    ]
    compared = 0
    for seed in range(120):
        net = primal(seed, 3)
        levels = every_net(net)
        if max(len(n.nodes) for n in levels) > 8 or count_foliations(net) > 400:
            continue
        several = list(foliations(net))
        assert len(several) == count_foliations(net) == math.prod(map(brute_force, levels))
        assert len(set(map(repr, several))) == len(several)
        compared += len(several) > 1
    assert compared > 15


def test_the_derivative_does_not_depend_on_the_foliation():
    """The nodes of a recomposed diagram come in the order of its leaves, and so do the steps.

    Residuals do too, so boxes capture them in another order: the cartesian form is the same.
    """
    tried = 0
    for seed in range(30):
        net = primal(seed, 2)
        wanted = cartesian(adjoint(net)).digest
        for f in itertools.islice(foliations(net, 10**9), 12):
            again = recomposed(f)
            assert [n.kind for n in again.nodes.values()] == [leaf.kind for leaf in nodes_of(f)]
            check(again)
            assert isomorphic(again, net)
            assert cartesian(adjoint(again)).digest == wanted
            stepped = Derivation(again)
            for _ in stepped.steps():
                pass
            assert isomorphic(stepped.result(), adjoint(again))
            tried += 1
    assert tried > 150


def test_a_symmetry_is_a_leaf_of_its_own_in_the_form_of_the_definition(share):
    for seed in share(TERMS):
        net = primal(seed, 4)
        f = separated(foliated(net))
        assert isomorphic(recomposed(f), net)
        assert separated(f) == f
        open_ = [f]
        for g in open_:
            assert g.last == tuple(range(len(g.last)))
            for leaf in g.leaves:
                still = leaf.order == tuple(range(len(leaf.order)))
                assert still == isinstance(leaf, Leaf)
                open_ += leaf.bodies if isinstance(leaf, Leaf) else ()
    swapped = separated(foliated(parse("(x: R, y: R) => z = subtract(y, x) -> z")))
    assert swapped.leaves[0] == Symmetry((1, 0))
    assert separated(foliated(permutation((R, R), (1, 0)))).leaves == (Symmetry((1, 0)),)
    assert separated(foliated(identity((R, R)))).leaves == ()


def test_parts_without_common_wires_are_counted_by_themselves():
    """An order of the whole is a shuffle of orders of the parts."""
    sine = parse("(x: R) => y = sin(x) -> y")
    assert count_foliations(tensor(*[sine] * 60)) == math.factorial(60)
    two = parse("(x: R) => y = sin(x) z = cos(y) -> z")
    fan = parse("(x: R) => a, b = copy(x) c = sin(a) d = cos(b) e = add(c, d) -> e")
    parts = [two, fan, sine, fan]
    assert [count_foliations(n) for n in parts] == [1, 2, 1, 2]
    shuffles = math.factorial(11) // math.prod([math.factorial(len(n.nodes)) for n in parts])
    assert count_foliations(tensor(*parts)) == 4 * shuffles


def test_more_foliations_than_were_asked_for_are_an_error():
    wide = tensor(*[parse("(x: R) => y = sin(x) -> y")] * 12)
    assert count_foliations(wide) == math.factorial(12)
    several = foliations(wide, limit=5)
    assert len([next(several) for _ in range(5)]) == 5
    with pytest.raises(DiagramError) as caught:
        next(several)
    assert str(caught.value) == (
        "there are more than 5 foliations; ask for more by limit=, or count them by "
        "count_foliations"
    )
    sums = " ".join([f"s{i} = add({'y0' if i == 1 else f's{i - 1}'}, y{i})" for i in range(1, 8)])
    inputs = ", ".join([f"x{i}: R" for i in range(8)])
    sines = " ".join([f"y{i} = sin(x{i})" for i in range(8)])
    joined = parse(f"({inputs}) => {sines} {sums} -> s7")
    with pytest.raises(DiagramError) as caught:
        count_foliations(joined, largest=100)
    assert str(caught.value) == (
        "more than 100 sets of nodes may come first, so the foliations are not counted; ask for "
        "more by largest="
    )
    assert len(list(foliations(parse("(x: R) => -> x"), limit=1))) == 1


# --- the cartesian form ---------------------------------------------------------------------------


def test_the_cartesian_form_goes_back_to_a_diagram_that_has_it(share):
    for seed in share(TERMS):
        net = primal(seed, 4)
        form = cartesian(net)
        back = monogamous(form)
        check(back)
        assert cartesian(back).digest == form.digest
        assert cartesian(scattered(net, seed)).digest == form.digest
        with np.errstate(all="ignore"):
            assert close(evaluate(net, *AT), evaluate(back, *AT))


def test_copies_associate():
    a, b = "x1, x2 = copy(x) x3, x4 = copy(x1)", "x3, y = copy(x) x4, x2 = copy(y)"
    rest = " p = multiply(x3, x4) z = add(p, x2) -> z"
    left, right = parse(f"(x: R) => {a}{rest}"), parse(f"(x: R) => {b}{rest}")
    assert not isomorphic(left, right)
    assert cartesian(left).digest == cartesian(right).digest


def test_a_box_is_known_by_its_body_wherever_it_stands():
    inside = parse(
        "(x: R) => f = box() { (y: R) => g = box() { (z: R) => w = sin(z) -> w } v = eval(g, y)"
        " -> v } r = eval(f, x) -> r"
    )
    outside = parse(
        "(x: R) => g = box() { (z: R) => w = sin(z) -> w } f = box(g) { (g: (R -> R), y: R) =>"
        " v = eval(g, y) -> v } r = eval(f, x) -> r"
    )
    other = parse(
        "(x: R) => f = box() { (y: R) => g = box() { (z: R) => w = cos(z) -> w } v = eval(g, y)"
        " -> v } r = eval(f, x) -> r"
    )
    assert cartesian(inside).digest == cartesian(outside).digest
    assert cartesian(inside).digest != cartesian(other).digest


def test_names_of_binders_do_not_hide_each_other():
    net = parse(
        "(x: R) => f = box() { (y: R) => i = box() { (z: R) => -> z } i1, i2 = copy(i)"
        " y1, y2 = copy(y) v = eval(i1, y1) g = box(i2) { (i: (R -> R), z: R) => u = eval(i, z)"
        " -> u } w = eval(g, y2) s = add(v, w) -> s } r = eval(f, x) -> r"
    )
    back = monogamous(cartesian(net))
    assert cartesian(back).digest == cartesian(net).digest
    assert evaluate(back, 1.5) == (3.0,)

"""The laws of functorial frames; (BR) and (Lamb) derived from them, and linear λ-terms."""

import re

import numpy as np
import pytest
from diagrams.judge import AT, close, primal

from lineara.diagrams import check, compose, copied, evaluate, identity, isomorphic, parse, same
from lineara.diagrams.abstraction_laws import Frames, check_monoidal, cut, unfolded
from lineara.diagrams.functors import (
    Beside,
    Hom,
    Labelled,
    Natural,
    adjoint_functors,
    both,
    both_keeps_composition,
    both_keeps_identity,
    closed,
    framed,
    functor_of,
    group,
    groups_cancel,
    keeps_composition,
    keeps_identity,
    strictly,
    ungroup,
)
from lineara.diagrams.net import Net, Node, every_net, nodes_in
from lineara.diagrams.show import show
from lineara.diagrams.simplify import source, target
from lineara.diagrams.svg import svg
from lineara.diagrams.types import Arrow, B, R
from lineara.errors import DiagramError

F = parse("(x: R) => a, b = copy(x) y = sin(a) -> y, b")
G = parse("(y: R, b: R) => z = multiply(y, b) -> z")
H = parse("(x: R) => y = tanh(x) -> y")
K = parse("(x: R) => y = cos(x) -> y")
KNOWN = [Beside((R,)), Beside((R, B)), Hom((R,)), Hom((R, Arrow((R,), (R,))))]
NAMED = [Labelled("F"), *KNOWN]


def only(net: Net, name: str) -> Node:
    (found,) = [n for n in net.nodes.values() if n.label == name]
    return found


def agree(left: Net, right: Net) -> bool:
    """The two sides of an equation have one border, and stand for the same diagram."""
    assert (left.takes, left.gives) == (right.takes, right.gives)
    for side in (left, right):
        check(side)
        check(unfolded(side))
    return same(unfolded(left), unfolded(right)).how in ("isomorphic", "proved")


# --- functors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", KNOWN, ids=lambda f: f.label)
@pytest.mark.slow("compares large diagrams: 4 s")
def test_what_frames_stand_for_obeys_the_laws_of_a_functor(f):
    assert agree(*keeps_identity(f, (R, R)))
    assert agree(*keeps_composition(f, F, G))
    for seed in range(20):
        net = primal(seed, 3)
        for n in range(0, len(net.nodes) + 1, 3):
            assert agree(*keeps_composition(f, *cut(net, n)))


@pytest.mark.parametrize("f", NAMED, ids=lambda f: f.label)
def test_a_frame_is_split_and_merged_step_by_step(f):
    left, right = keeps_composition(f, F, G)
    s = Frames(left)
    (frame,) = s.net.nodes.values()
    first, second = s.split(frame, 2)
    check(s.net)
    assert isomorphic(s.net, right)
    s.merge(first, second)
    assert isomorphic(s.net, left)
    assert [step.rule for step in s.log] == ["composition", "composition"]


@pytest.mark.parametrize("f", NAMED, ids=lambda f: f.label)
def test_a_frame_around_bare_wires_vanishes(f):
    left, right = keeps_identity(f, (R, R))
    s = Frames(left)
    s.identity(*s.net.nodes.values())
    assert isomorphic(s.net, right)
    more = Frames(framed((f,), copied(F)))
    with pytest.raises(DiagramError, match=r"has more within than bare wires"):
        more.identity(*more.net.nodes.values())


@pytest.mark.parametrize("f", NAMED, ids=lambda f: f.label)
def test_a_frame_is_known_by_its_text(f):
    net = framed((f, Labelled("G")), copied(F))
    again = parse(show(net))
    assert isomorphic(again, net)
    (node,) = again.nodes.values()
    assert functor_of(node) == f
    assert functor_of(only(node.body, "G")) == Labelled("G")


def test_cutting_and_composing_gives_the_diagram_back():
    for seed in range(30):
        net = primal(seed, 3)
        for n in range(len(net.nodes) + 1):
            first, second = cut(net, n)
            check(first)
            check(second)
            assert len(first.nodes) == n
            assert isomorphic(compose(first, second), net)


# --- natural transformations and adjunctions ------------------------------------------------------


def test_a_node_slides_along_a_natural_transformation():
    theta = Natural("θ", (Labelled("F"),), (Labelled("G"), Labelled("H")))
    left, right = theta.naturality(F)
    s = Frames(left)
    s.natural(theta, only(s.net, "F"), only(s.net, "θ"))
    check(s.net)
    assert isomorphic(s.net, right)
    s.conatural(theta, only(s.net, "θ"), only(s.net, "G"))
    assert isomorphic(s.net, left)


def test_eval_and_coeval_are_natural():
    for x in ((R,), (R, R)):
        both_ways = closed(x)
        for f in (F, G, H):
            assert agree(*both_ways.counit.naturality(f))
            assert agree(*both_ways.unit.naturality(f))


def test_the_triangles_of_eval_and_coeval():
    for x in ((R,), (R, Arrow((R,), (R,)))):
        for left, right in closed(x).triangles((R, R), (R,)):
            assert agree(left, right)


@pytest.mark.parametrize("adjunction", [adjoint_functors("L", "R"), closed((R,))])
@pytest.mark.parametrize("which", [0, 1])
def test_the_triangles_are_steps(adjunction, which: int):
    left, right = adjunction.triangles((R, R), (R, R))[which]
    s = Frames(left)
    first, second = s.net.nodes.values()
    s.triangle(adjunction, first, second)
    assert isomorphic(s.net, right)
    assert s.log[-1].rule == "triangle"


# --- the tensor -----------------------------------------------------------------------------------


def test_the_tensor_is_a_functor_of_two_arguments():
    for left, right in (
        both_keeps_composition(F, G, H, K),
        both_keeps_identity((R, R), (R,)),
        *groups_cancel((R, R), (R,)),
    ):
        assert (left.takes, left.gives) == (right.takes, right.gives)
    f = both_keeps_composition(F, G, H, K)
    sides = [compose(group((R,), (R,)), side, ungroup((R,), (R,))) for side in f]
    assert agree(*sides)
    i = both_keeps_identity((R, R), (R,))
    assert agree(*[compose(group((R, R), (R,)), side, ungroup((R, R), (R,))) for side in i])


def test_grouped_wires_become_strict_lists_and_back():
    net = compose(group((R,), (R,)), both(copied(H), copied(K)), ungroup((R,), (R,)))
    s = Frames(net)
    s.strictly(only(s.net, "⊗"))
    check(s.net)
    left, right = strictly(H, K)
    assert isomorphic(s.net, compose(group((R,), (R,)), right, ungroup((R,), (R,))))
    for _ in range(2):
        n = next(n for n in s.net.nodes.values()
                 if n.label == "ungroup" and source(n.ins[0]) is not None
                 and source(n.ins[0]).label == "group")  # fmt: skip
        s.cancel(source(n.ins[0]), n)
    assert [step.rule for step in s.log] == ["strict"] * 3
    assert isomorphic(s.net, parse("(x: R, y: R) => a = tanh(x) b = cos(y) -> a, b"))
    with pytest.raises(DiagramError) as caught:
        unfolded(left)
    assert re.fullmatch(
        r"ungroup#\d+ stands at an interface; group the wires there too", str(caught.value)
    )


# --- abstraction ----------------------------------------------------------------------------------


def test_boxes_unfold_and_fold():
    for seed in range(40):
        net = primal(seed, 3)
        s = Frames(net)
        boxes = [n for n in nodes_in(s.net) if n.kind == "box"]
        for box in reversed(boxes):  # what lies within first
            coeval, hom = s.unfold(box)
            check(s.net)
            s.fold(coeval, hom)
        assert isomorphic(s.net, net)
        s = Frames(net)
        while boxes := [n for n in nodes_in(s.net) if n.kind == "box"]:
            s.unfold(boxes[-1])
        check(s.net)
        assert not any(n.kind == "box" for n in nodes_in(s.net))
        assert same(unfolded(s.net), net)


def values(net: Net) -> tuple:
    with np.errstate(all="ignore"):
        return evaluate(unfolded(net), *AT)


def test_br_is_derived_from_naturality_of_eval_and_a_triangle():
    derived = 0
    for seed in range(120):
        net = primal(seed, 3)
        wanted = values(net)
        shown = []

        def seen(step, now, wanted=wanted, shown=shown):
            check(now)
            assert close(values(now), wanted), step
            shown.append(step.rule)

        s = Frames(net, seen)
        here = [n for n in nodes_in(s.net) if n.kind == "eval" and source(n.ins[0]) is not None]
        for n in [n for n in here if source(n.ins[0]).kind == "box"][:2]:
            if n.net.nodes.get(n.id) is not n:
                continue  # it lay in a body that was moved
            left = len(s.log)
            s.br(n)
            rules = [step.rule for step in s.log[left:]]
            assert rules == ["unfold", "tensor", "composition", "naturality", "triangle"]
            derived += 1
        assert shown == [step.rule for step in s.log]
    assert derived > 60


def test_a_derivation_is_drawn_step_by_step():
    net = parse("(c: R, u: R) => w = sin(c) f = box(w) { (c: R, x: R) => y = multiply(c, x) -> y }"
                " z = eval(f, u) -> z")  # fmt: skip
    drawn = []
    s = Frames(net, lambda step, now: drawn.append(svg(now)))
    s.lamb(only(s.net, "sin"), only(s.net, "box"))
    s.br(only(s.net, "eval"))
    labels = ["R ⊸ -", "- ⊗ R", "- ⊗ R", "R ⊸ -", "box", "R ⊸ -", "- ⊗ R", "- ⊗ R", "- ⊗ R", "sin"]
    assert len(drawn) == len(s.log) == 10
    for label, picture in zip(labels, drawn, strict=True):
        assert label == "box" or f">{label}<" in picture
        assert (">coeval<" in picture) == (label not in ("box", "sin"))


def test_br_ends_in_what_beta_gives():
    net = parse("(c: R, u: R) => f = box(c) { (c: R, x: R) => a, b = copy(x) y = multiply(c, a)"
                " z = add(y, b) -> z } z = eval(f, u) -> z")  # fmt: skip
    s = Frames(net)
    s.br(only(s.net, "eval"))
    assert isomorphic(
        s.net,
        parse("(c: R, u: R) => a, b = copy(u) y = multiply(c, a) z = add(y, b) -> z"),
    )


def test_lamb_is_derived_from_naturality_of_coeval():
    derived = 0
    for seed in range(150):
        net = primal(seed, 4)
        wanted = values(net)

        def seen(step, now, wanted=wanted):
            check(now)
            assert close(values(now), wanted), step

        s = Frames(net, seen)
        for level in every_net(s.net):
            for n in list(level.nodes.values()):
                boxes = {target(w) for w in n.outs}
                box = boxes.pop() if len(boxes) == 1 else None
                if box is None or box.kind != "box" or level.nodes.get(n.id) is not n:
                    continue
                left = len(s.log)
                made = s.lamb(n, box)
                rules = [step.rule for step in s.log[left:]]
                assert rules == ["unfold", "naturality", "composition", "tensor", "fold"]
                assert made.kind == "box"
                derived += 1
                break
    assert derived > 30


def test_lamb_moves_what_a_box_captures_into_it():
    net = parse(
        "(c: R, d: R) => u, v = copy(c) w = sin(u) f = box(d, w) "
        "{ (d: R, w: R, x: R) => y = multiply(w, x) z = add(y, d) -> z } -> f, v"
    )
    s = Frames(net)
    s.lamb(only(s.net, "sin"), only(s.net, "box"))
    assert isomorphic(
        s.net,
        parse("(c: R, d: R) => u, v = copy(c) f = box(d, u) "
              "{ (d: R, u: R, x: R) => w = sin(u) y = multiply(w, x) z = add(y, d) -> z } -> f, v"),
    )  # fmt: skip


# --- linear terms ---------------------------------------------------------------------------------


def test_a_monoidal_closed_diagram_uses_every_wire_once():
    check_monoidal(parse("(c: R) => f = box(c) { (c: R, x: R) => y = multiply(c, x) -> y } -> f"))
    copying = "(x: R) => f = box(x) { (x: R) => a, b = copy(x) y = add(a, b) -> y } -> f"
    for text, kind, often in (
        (copying, "copy", "twice"),
        ("(x: R, f: (R -> R)) => drop(x) -> f", "drop", "not at all"),
    ):
        with pytest.raises(DiagramError) as caught:
            check_monoidal(parse(text))
        assert re.fullmatch(
            rf"{kind}#\d+ uses a wire of the type R {often}; a monoidal closed diagram uses every "
            "wire once, and copy and drop belong to a cartesian closed one",
            str(caught.value),
        )


# --- what is refused ------------------------------------------------------------------------------


def message(act) -> str:
    with pytest.raises(DiagramError) as caught:
        act()
    return re.sub(r"#\d+", "", str(caught.value))


def test_a_law_where_it_does_not_apply_says_why():
    net = compose(framed((Labelled("F"),), copied(H)), framed((Labelled("F"),), copied(K)))
    s = Frames(net)
    first, second = s.net.nodes.values()
    assert message(lambda: s.merge(second, first)) == (
        "F does not follow on F; all the wires of the first go to the second, in order"
    )
    assert message(lambda: s.beside(first)) == "F is no tensor with some wires"
    assert message(lambda: s.strictly(first)) == "F is no tensor of two diagrams"
    assert message(lambda: s.unfold(first)) == "F is no box"
    assert message(lambda: s.br(first)) == "F is no evaluation of a box, so (BR) has no place"
    assert message(lambda: s.eta(first)) == (
        "F is no box that only evaluates what it captures, so (η) has no place"
    )
    assert message(lambda: s.cancel(first, second)) == "F and F are not group and ungroup"
    assert message(lambda: s.fold(first, second)) == "F, F: a box is coeval and a frame (X ⊸ -)"
    assert message(lambda: s.natural(closed((R,)).counit, first, second)) == (
        "F is no frame - ⊗ R of R ⊸ -"
    )
    assert message(lambda: unfolded(net)) == (
        "frame 'F' is a functor of which only the name is known; its laws apply, but it stands "
        "for nothing else"
    )
    other = compose(framed((Labelled("F"),), identity(Labelled("G").on((R,)))),
                    Natural("ε", (Labelled("F"), Labelled("G")), ()).at((R,)))  # fmt: skip
    s = Frames(other)
    frame, counit = s.net.nodes.values()
    assert message(lambda: s.triangle(adjoint_functors("F", "G"), frame, counit)) == (
        "F is not F of η"
    )
    free = parse("(c: R) => a, b = copy(c) f = box(a) { (a: R, x: R) => drop(x) -> a } -> f, b")
    s = Frames(free)
    assert message(lambda: s.lamb(only(s.net, "copy"), only(s.net, "box"))) == (
        "copy gives something to others than box; only what a box alone needs moves into it"
    )

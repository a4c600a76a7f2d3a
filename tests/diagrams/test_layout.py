"""Drawings: nothing overlaps, everything is within what it belongs to, wires run one way."""

import random
from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise

import pytest
from diagrams.judge import program

from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.diagrams import Net, adjoint, copied, layout, parse, snapshot
from lineara.diagrams.crossing_order import Edge, Item, arrange, crossings
from lineara.diagrams.layout import Picture, Placed, Region
from lineara.diagrams.net import every_net, nodes_in
from lineara.diagrams.stepper import Derivation
from lineara.diagrams.types import R
from lineara.errors import DiagramError

CLOSE = 1e-6
WORKED = """(x: R) =>
  x1, x2 = copy(x)
  m = box(x1) { (c: R, y: R) => p = multiply(c, y) -> p }
  x3, x4 = copy(x2)
  a = eval(m, x3)
  z = add(a, x4)
  -> z"""


def snapshots(net: Net, rng: random.Random, every: int = 5) -> Iterator[Net]:
    """Some of the diagrams between a diagram and its adjoint, and these two."""
    yield net
    d = Derivation(net)
    for step in d.steps(rng):
        if step.number % every == 1:
            yield snapshot(d)
    yield d.result()


@cache
def samples() -> list[Net]:
    """Small and middling diagrams, of a written program and of random ones."""
    found = list(snapshots(parse(WORKED), random.Random(0), every=1))
    for seed in range(3):
        found += snapshots(diagram_of(program(seed)), random.Random(seed), every=25)
    return [net for net in found if len(list(nodes_in(net))) < 250]


@cache
def pictures() -> list[Picture]:
    """Their drawings."""
    return [layout(net) for net in samples()]


def chain(n: int) -> Net:
    net = Net()
    w = net.input(R)
    for i in range(n):
        (w,) = net.add("op", (w,), name="sin" if i % 2 else "tanh")
    net.output(w)
    return net


def grid(n: int, wide: int, seed: int) -> Net:
    """`n` nodes, copies and products of neighbours among `wide` wires: it can be drawn plane."""
    rng, net = random.Random(seed), Net()
    wires = [net.input(R) for _ in range(wide)]
    for _ in range(n // 2):
        i = rng.randrange(wide - 1)
        a, b = net.add("copy", wires[i : i + 1])
        wires[i] = a
        (wires[i + 1],) = net.add("op", (b, wires[i + 1]), name="multiply")
    net.output(*wires)
    return net


def inside(inner: Placed | Region, outer: Placed | Region) -> bool:
    return (
        outer.x - CLOSE <= inner.x
        and inner.x + inner.width <= outer.x + outer.width + CLOSE
        and outer.y - CLOSE <= inner.y
        and inner.y + inner.height <= outer.y + outer.height + CLOSE
    )


def levels(picture: Picture) -> Iterator[tuple[Region, list[Placed]]]:
    held: dict[int, list[Placed]] = {}
    for p in picture.placed:
        held.setdefault(id(p.node.net), []).append(p)
    for region in picture.regions:
        yield region, held.get(id(region.net), [])


def test_no_two_nodes_of_a_level_overlap():
    for picture in pictures():
        for _, nodes in levels(picture):
            for a, b in combinations(nodes, 2):
                apart = (
                    a.x + a.width < b.x or b.x + b.width < a.x
                    or a.y + a.height < b.y or b.y + b.height < a.y
                )  # fmt: skip
                assert apart, (a.node, b.node)


def test_children_lie_within_their_parents():
    for picture in pictures():
        around = {p.node.id: p for p in picture.placed}
        for region, nodes in levels(picture):
            assert all([inside(p, region) for p in nodes])
            if region.net.owner:
                assert inside(region, around[region.net.owner.id])


def test_borders_do_not_touch():
    net = parse("() => f = box() { () => g = box() { () => -> } -> g } drop(f) ->")
    outer, inner = sorted(
        [p for p in layout(net).placed if p.node.kind == "box"], key=lambda p: p.x
    )
    assert inner.x > outer.x + 5
    assert inner.x + inner.width < outer.x + outer.width - 5


def test_wires_run_one_way_and_end_at_their_ports():
    for picture in pictures():
        ports = {}
        for p in picture.placed:
            ports.update({(w, 0): at for w, at in zip(p.node.outs, p.outs, strict=True)})
            ports.update({(w, 1): at for w, at in zip(p.node.ins, p.ins, strict=True)})
        for routed in picture.wires:
            xs = [x for x, _ in routed.points]
            for a, b in pairwise(reversed(xs) if routed.mirrored else xs):
                assert a <= b + CLOSE
            for i, end in enumerate((routed.points[0], routed.points[-1])):
                if (routed.wire, i) in ports:
                    assert end == pytest.approx(ports[routed.wire, i])


def test_a_wire_that_goes_through_a_border_is_one_line():
    for picture in pictures():
        regions = {id(r.net): r for r in picture.regions}
        for p in picture.placed:
            if p.node.kind != "box" or p.folded:
                continue
            inner = regions[id(p.node.body)]
            starts = {r.wire: r.points[0] for r in picture.wires}
            for at, w in zip(p.ins, inner.net.inputs, strict=False):
                assert starts[w] == pytest.approx(at)


def test_no_wire_runs_over_a_node_of_its_level():
    for picture in pictures():
        held = {id(region.net): nodes for region, nodes in levels(picture)}
        for routed in picture.wires:
            end = routed.wire.source[0]
            level = end if isinstance(end, Net) else end.net
            for (x1, y1), (x2, y2) in pairwise(routed.points):  # the curves stay in these bounds
                for p in held[id(level)]:
                    over = (
                        min(x1, x2) < p.x + p.width - CLOSE and max(x1, x2) > p.x + CLOSE
                        and min(y1, y2) < p.y + p.height - CLOSE and max(y1, y2) > p.y + CLOSE
                    )  # fmt: skip
                    assert not over, (routed.wire, p.node)


def test_ports_stay_in_their_order():
    for picture in pictures():
        for p in picture.placed:
            for ports in (p.ins, p.outs):
                heights = [y for _, y in ports]
                assert all([a <= b for a, b in pairwise(heights)])


def test_a_chain_is_a_straight_line():
    picture = layout(chain(40))
    assert len({y for routed in picture.wires for _, y in routed.points}) == 1
    assert picture.crossings == 0


def test_how_often_wires_cross():
    assert layout(parse(WORKED)).crossings == 0
    swap = parse("(a: R, b: R) => -> b, a")
    assert layout(swap).crossings == 1
    twisted = parse(
        "(a: R, b: R) => c, d = copy(a) e, f = copy(b) "
        "x = multiply(c, e) y = multiply(d, f) -> x, y"
    )
    assert layout(twisted).crossings == 1  # K(2, 2) between two columns
    planar = parse(
        "(a: R, b: R, c: R) => y = sin(b) x = sin(a) z = sin(c) "
        "p = multiply(x, y) q = multiply(p, z) -> q"
    )
    assert layout(planar).crossings == 0


def test_crossings_are_counted():
    rng = random.Random(3)
    for _ in range(50):
        left = [Item(1, 1, (), (0, 0)) for _ in range(3)]
        right = [Item(1, 1, (0, 0), ()) for _ in range(3)]
        ends = [(i, p) for i in range(3) for p in range(2)]
        others = rng.sample(ends, len(ends))
        edges = [Edge(left[i], p, right[j], q) for (i, p), (j, q) in zip(ends, others, strict=True)]
        expected = sum([a > b for a, b in combinations(others, 2)])
        assert arrange(left, [], right, edges).crossings == expected


def test_sweeps_take_crossings_away():
    net = grid(200, 12, 1)
    assert len(net.nodes) == 200
    rng = random.Random(0)
    left = [Item(4, 4, (), (2.0,)) for _ in range(30)]
    right = [Item(4, 4, (2.0,), ()) for _ in range(30)]
    middle = [Item(4, 4, (2.0,), (2.0,)) for _ in range(30)]
    rng.shuffle(middle)
    edges = [Edge(a, 0, b, 0) for a, b in zip(left, middle, strict=True)]
    edges += [Edge(a, 0, b, 0) for a, b in zip(middle, right, strict=True)]
    assert arrange(left, middle, right, edges).crossings == 0
    assert crossings([left, sorted(middle, key=lambda i: i.y), right]) == 0
    assert layout(net).crossings == 0


def test_isomorphic_diagrams_have_one_drawing(share):
    for net in share(samples()[:20]):
        other = copied(net)
        for n in every_net(other):
            nodes = list(n.nodes.items())
            random.Random(1).shuffle(nodes)
            n.nodes = dict(nodes)
        a, b = layout(net), layout(other)
        assert [(p.label, p.x, p.y) for p in a.placed] == [(p.label, p.x, p.y) for p in b.placed]
        assert [r.points for r in a.wires] == [r.points for r in b.wires]


def test_a_box_that_is_shut_shows_nothing_of_what_is_within():
    net = adjoint(parse(WORKED))
    whole = layout(net)
    shut = layout(net, fold=0)
    assert {p.node.id for p in shut.placed} == set(net.nodes)
    assert shut.width * shut.height < whole.width * whole.height
    box = next(n for n in net.nodes.values() if n.kind == "box")
    one = layout(net, fold=[box.id])
    assert [p.node.id for p in one.placed if p.folded] == [box.id]
    assert len(layout(net, fold=1).placed) < len(whole.placed)


def test_a_diagram_that_is_too_large_says_how_to_fold():
    net = Net()
    inner = chain(1600)
    x = net.input(R)
    (f,) = net.add("box", bodies=[inner])
    net.output(*net.add("eval", (f, x)))
    with pytest.raises(DiagramError) as caught:
        layout(net)
    assert str(caught.value) == (
        "the picture would show 1602 nodes, and can be read with up to 1500; fold=0 (--fold 0) "
        "shuts the boxes within 0 others, and leaves 2"
    )
    assert len(layout(net, fold=0).placed) == 2
    with pytest.raises(DiagramError) as caught:
        layout(chain(2000))
    assert str(caught.value) == (
        "the picture would show 2000 nodes, and can be read with up to 1500; draw a part of it: "
        "its outermost level alone has 2000"
    )

"""Hypernets: well-formedness, isomorphism, composition, and the text."""

import random

import pytest

from lineara.diagrams import (
    Net,
    check,
    compose,
    copied,
    identity,
    isomorphic,
    parse,
    permutation,
    show,
    tensor,
)
from lineara.diagrams.evaluate import evaluate
from lineara.diagrams.net import Wire, every_net, nodes_in, topological
from lineara.diagrams.types import R
from lineara.errors import DiagramError

WORKED = """(x: R) =>
  x1, x2 = copy(x)
  m = box(x1) { (c: R, y: R) => p = multiply(c, y) -> p }
  x3, x4 = copy(x2)
  a = eval(m, x3)
  z = add(a, x4)
  -> z"""


def scattered(net: Net, seed: int) -> Net:
    """The same diagram, its nodes in another order."""
    shuffled = copied(net)
    for n in every_net(shuffled):
        nodes = list(n.nodes.items())
        random.Random(seed).shuffle(nodes)
        n.nodes = dict(nodes)
    return shuffled


def chain(n: int) -> Net:
    net = Net()
    w = net.input(R)
    for i in range(n):
        (w,) = net.add("op", (w,), name="sin" if i % 2 else "tanh")
    net.output(w)
    return net


def test_the_text_of_a_diagram_is_its_identity():
    net = parse(WORKED)
    check(net)
    assert show(parse(show(net))) == show(net)
    assert show(scattered(net, 1)) == show(net)
    assert show(net) == (
        "(x1: R) =>\n"
        "  v1, v2 = copy(x1)\n"
        "  f1 = box(v1) { (x2: R, x3: R) =>\n"
        "    v7 = multiply(x2, x3)\n"
        "    -> v7 }\n"
        "  v3, v4 = copy(v2)\n"
        "  v5 = eval(f1, v3)\n"
        "  v6 = add(v5, v4)\n"
        "  -> v6"
    )


@pytest.mark.parametrize(
    "text",
    [
        "(x: f64[3], c: B) => y = sum[axis=(0,), keepdims=false](x)  "
        "k = const[f64[2]: [1.0, -2.5]]() z, w = copy(k)  v = sel(c, z, w)  -> y, v",
        "(e: E, c: E) => a, b = unpack[R, E](e)  u = add[E](b, c)  -> a, u",
        "(x: 'tape[3]', f: (R, (-> R) -> E)) => -> f, x",
        '(x: R) => y: R, z: E = frame["call f", 3](x) { (a: R) => -> a } { () => -> } -> z, y',
        "(f: (R, R -> R, R), c: R, xs: stack[4, R]) => d, ys = scan[4, 1, rev](f, c, xs) -> ys, d",
        "(x: f64[3]) => y = index[at=(slice(0, 2, none), )](x) -> y",
        "(~a: R, x: R) => ~b = multiply(~a, x) -> ~b",
        "() => a = const[inf]()  b = const[-1e-05]()  c = const[true]()  n = const[-3]()"
        " -> a, b, c, n",
        "() => x = const[nan]() drop(x) y = const[1.5]() drop(y) ->",
    ],
)
def test_every_kind_goes_through_its_text(text: str):
    net = parse(text)
    check(net)
    again = parse(show(net))
    assert isomorphic(net, again)
    assert show(again) == show(net)


def test_isomorphism_sees_ports_and_not_ids():
    net = parse(WORKED)
    other = parse(WORKED.replace("multiply(c, y)", "multiply(y, c)"))
    assert isomorphic(net, copied(net))
    assert not isomorphic(net, other)
    assert not isomorphic(net, parse(WORKED.replace("eval(m, x3)", "eval(m, x4)").replace(
        "add(a, x4)", "add(a, x3)").replace("add(a", "subtract(a")))  # fmt: skip


def test_components_that_nothing_touches_are_a_multiset():
    a = "() => a = const[1.0]() drop(a) b = const[2.0]() drop(b) ->"
    b = "() => a = const[2.0]() drop(a) b = const[1.0]() drop(b) ->"
    c = "() => a = const[2.0]() drop(a) b = const[2.0]() drop(b) ->"
    assert isomorphic(parse(a), parse(b))
    assert not isomorphic(parse(a), parse(c))


def test_composition_and_tensor_are_those_of_a_category():
    f, g, h = parse(WORKED), chain(3), chain(2)
    assert isomorphic(compose(f, compose(g, h)), compose(compose(f, g), h))
    assert isomorphic(compose(f, identity((R,))), f)
    assert isomorphic(compose(identity((R,)), f), f)
    assert isomorphic(tensor(tensor(f, g), h), tensor(f, tensor(g, h)))
    assert isomorphic(tensor(f, identity(())), f)
    left = compose(tensor(f, g), tensor(g, h))
    assert isomorphic(left, tensor(compose(f, g), compose(g, h)))
    swap = permutation((R, R), (1, 0))
    assert isomorphic(compose(swap, swap), identity((R, R)))
    assert isomorphic(compose(tensor(f, g), swap), compose(swap, tensor(g, f)))
    for net in (f, g, h, left):
        check(net)


def test_a_diagram_that_does_not_compose():
    with pytest.raises(DiagramError) as caught:
        compose(identity((R, R)), chain(1))
    assert str(caught.value) == (
        "(R, R) does not compose with (R); the outputs of the first are the inputs of the second"
    )


@pytest.mark.slow("diagrams of thousands of boxes")
def test_long_and_deep_diagrams_need_no_stack():
    text = "-> x"
    for _ in range(400):
        text = f"m = box() {{ (x: R) => {text} }} y = eval(m, x) -> y"
    net = parse(f"(x: R) => {text}")
    check(net)
    assert isomorphic(net, parse(show(net)))
    long = chain(50_000)
    assert [n.name for n in topological(long)][:2] == ["tanh", "sin"]
    assert isomorphic(long, copied(long))


def test_a_change_touches_what_changes_only():
    for size in (10, 10_000):
        net = chain(size)
        node = list(net.nodes.values())[size // 2]
        before = net.meter.touched
        (x,), (y,) = node.ins, node.outs
        net.remove(node)
        net.join(x, y)
        assert net.meter.touched - before == 5
        check(net)


# --- what is not well formed ----------------------------------------------------------------------


def broken(change) -> str:
    net = parse(WORKED)
    nodes = {n.label: n for n in nodes_in(net)}
    change(net, nodes)
    with pytest.raises(DiagramError) as caught:
        check(net)
    message = str(caught.value)
    for node in sorted(nodes_in(net), key=lambda n: -n.id):
        message = message.replace(f"#{node.id}", "").replace(f" in {node.id}:", " in the box:")
    return "".join(["w" if c == "w" else c for c in message])


def test_w1_a_wire_with_two_targets():
    def change(net, nodes):
        a, m = nodes["add"], nodes["eval"]
        a.ins = (m.ins[1], a.ins[1])

    assert " has two targets, eval and add; copy it" in broken(change)


def test_w1_a_dangling_wire():
    def change(net, nodes):
        w = nodes["add"].outs[0]
        net.outputs.remove(w)

    assert broken(change).endswith("of add ends nowhere; drop it")


def test_w2_a_cycle():
    def change(net, nodes):
        a, e = nodes["add"], nodes["eval"]
        old, z = e.ins[1], a.outs[0]
        e.ins = (e.ins[0], z)
        net.outputs[0] = old
        z.target, old.target = (e, 1), (net, 0)

    message = broken(change)
    assert message.startswith("the diagram has a cycle through ")
    assert message.endswith("; a wire runs from what makes it to what needs it")


def test_w3_a_port_of_another_type():
    def change(net, nodes):
        nodes["eval"].name, nodes["eval"].kind = "sin", "op"

    assert broken(change) == ("W3: sin: sin takes numbers and arrays, not (R -> R)")


def test_w4_a_wire_that_crosses_a_border():
    def change(net, nodes):
        inner = nodes["multiply"]
        outer = nodes["add"].ins[1]
        inner.ins = (outer, inner.ins[1])

    assert broken(change).endswith(
        "goes to multiply and comes from nowhere at this level; a box gets what it captures by its "
        "ports"
    )


def test_w5_an_interface_that_repeats():
    def change(net, nodes):
        net.outputs.append(net.outputs[0])

    assert broken(change).endswith("is twice among the outputs; copy it")


def test_w7_a_frame_that_is_left():
    net = parse("(x: R) => y, k = BLUE(x) { (x: R) => y = sin(x) -> y } -> y, k")
    check(net, finished=False)
    with pytest.raises(DiagramError) as caught:
        check(net)
    (node,) = net.nodes
    assert str(caught.value) == (
        f"W7: BLUE#{node} is left in a diagram that is finished; go on rewriting"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "(x: R) => -> x, x",
            "1:17: x is used a second time; `x1, x2 = copy(x)` makes two of it\n"
            "  (x: R) => -> x, x\n"
            "                  ^",
        ),
        (
            "(x: R) =>\n  y = sin(z)\n  -> y",
            "2:11: there is no wire z at this level (a box gets what it captures by its ports)\n"
            "    y = sin(z)\n"
            "            ^",
        ),
        (
            "(x: R) => ->",
            "1:2: x ends nowhere; `drop(x)` says that it is unused\n"
            "  (x: R) => ->\n"
            "   ^",
        ),
        (
            "(x: R) => y = sni(x) -> y",
            "1:15: there is no operation sni; did you mean sin?\n"
            "  (x: R) => y = sni(x) -> y\n"
            "                ^",
        ),
        (
            "(x: R) => a = sin(b)\n b = cos(a) -> x",
            "1:19: b is used before it is made in line 2; lines are in order, and a diagram has no "
            "cycle\n"
            "  (x: R) => a = sin(b)\n"
            "                    ^",
        ),
        (
            "(x: R",
            "1:6: the text ends here; expected ')' or ','\n"
            "  (x: R\n"
            "       ^",
        ),
        (
            "(x: R) => a, b = sin(x) -> a",
            "1:18: sin gives 1 wires, but 2 are named\n"
            "  (x: R) => a, b = sin(x) -> a\n"
            "                   ^",
        ),
        (
            "(x: R) => f = box(x) { (y: E) => -> y } -> f",
            "1:15: box takes the first inputs of (E), not (R)\n"
            "  (x: R) => f = box(x) { (y: E) => -> y } -> f\n"
            "                ^",
        ),
        (
            "(f: (R -> R), e: E) => y = eval(f, e) -> y",
            "1:28: eval takes (R -> R) and (R), not ((R -> R), E)\n"
            "  (f: (R -> R), e: E) => y = eval(f, e) -> y\n"
            "                             ^",
        ),
        (
            "(x: R) => y = scan[3](x) -> y",
            "1:15: scan is written `scan[n, carries, fwd](f, ...)`\n"
            "  (x: R) => y = scan[3](x) -> y\n"
            "                ^",
        ),
    ],
)  # fmt: skip
def test_a_text_that_is_no_diagram(text: str, message: str):
    with pytest.raises(DiagramError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_a_wire_that_ends_twice_is_refused_when_it_is_made():
    net = Net()
    x = net.input(R)
    net.add("drop", (x,))
    with pytest.raises(DiagramError) as caught:
        net.add("drop", (x,))
    assert str(caught.value) == f"the wire {x!r} ends twice; a copy gives two wires of one"
    assert isinstance(x, Wire)


def test_a_permutation_has_each_place_once():
    for order in [(0, 0), (0,), (1, 2)]:
        with pytest.raises(DiagramError) as caught:
            permutation((R, R), order)
        assert caught.value.message == (
            f"a permutation of 2 wires has each of their places once, and {order} has not"
        )


@pytest.mark.parametrize("given", ["3", None, (1.0, 2.0)])
def test_an_input_of_numbers_takes_numbers(given):
    with pytest.raises(DiagramError) as caught:
        evaluate(parse("(x: R) => y = sin(x) -> y"), given)
    assert caught.value.message == (
        f"an input of the diagram is R, a number, but {given!r} is given"
    )

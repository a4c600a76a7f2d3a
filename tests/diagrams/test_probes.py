"""Functions that come in and go out: probes, against complex steps."""

import numpy as np
import pytest
from calculus.random_terms import Random, meaning
from diagrams.judge import close

from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.calculus.terms import lam
from lineara.calculus.types import Arrow, R
from lineara.diagrams import Probes, cotangents, parse
from lineara.errors import DiagramError

H = 1e-30
RR = Arrow(R, R)


def values(x: float) -> float:
    return np.sin(1.3 * x) + 0.2 * x * x


def slopes(x: float) -> float:
    return 1.3 * np.cos(1.3 * x) + 0.4 * x


GIVEN = (lambda x: (values(x),), lambda xs, ss: (ss[0] * slopes(xs[0]),))


def test_the_gradient_with_respect_to_a_function_is_a_bag_of_probes():
    moving = 0
    for seed in range(200):
        made = Random(seed)
        f = made.function(RR, 4)
        (probes,) = cotangents(diagram_of(f), [GIVEN], [1.0])
        along = Random(seed + 999).term(RR, [], 2)
        delta = meaning(along, {})
        with np.errstate(all="ignore"):
            found = sum([s * delta(x) for (x,), (s,) in probes.items])
            stepped = meaning(f, {})(lambda x: values(x) + 1j * H * delta(x))  # noqa: B023
        assert close(found, np.imag(stepped) / H), seed
        moving += bool(found)
    assert moving > 30


def test_a_function_that_goes_out_is_probed_where_one_says():
    moving = 0
    for seed in range(200):
        made = Random(seed)
        x, y = ("x", R), ("y", R)
        inner = made.term(R, [x, y], 4)
        f = diagram_of_function(lam(x, lam(y, inner)))
        probes = Probes(((0.3,), (1.5,)), ((-0.8,), (0.5,)))
        (found,) = cotangents(f, [0.7], [probes])
        value = meaning(lam(x, lam(y, inner)), {})
        with np.errstate(all="ignore"):
            h = value(0.7 + 1j * H)
            wanted = np.imag(1.5 * h(0.3 + 0j) + 0.5 * h(-0.8 + 0j)) / H
        assert close(found, wanted), seed
        moving += bool(found)
    assert moving > 30


def diagram_of_function(f):
    """The diagram of x ↦ a function, the function a wire."""
    from lineara.diagrams.net import Net

    whole = diagram_of(f)
    net = Net()
    x = net.input(whole.takes[0])
    net.output(*net.add("box", (x,), bodies=[whole]))
    return net


def test_a_product_of_two_values_of_a_function():
    net = parse(
        "(f: (R -> R)) => f1, f2 = copy(f) a = const[2.0]() b = const[3.0]() u = eval(f1, a)"
        " v = eval(f2, b) z = multiply(u, v) -> z"
    )
    (probes,) = cotangents(net, [GIVEN], [1.0])
    assert probes.items == (((2.0,), (values(3.0),)), ((3.0,), (values(2.0),)))
    unused = parse("(f: (R -> R), x: R) => drop(f) -> x")
    found = cotangents(unused, [GIVEN, 1.0], [2.0])
    assert (found[0].items, found[1]) == ((), 2.0)


@pytest.mark.parametrize(
    ("args", "bars", "message"),
    [
        (
            [np.sin], [1.0],
            "(R -> R) is asked for: give a diagram, or a function and its vjp, not <ufunc 'sin'>",
        ),
        ([], [1.0], "the diagram has 1 inputs, not 0"),
        ([GIVEN], [1.0, 1.0], "1 outputs of the diagram move, but 2 cotangents are given"),
        (
            [parse("(x: R, y: R) => drop(y) -> x")], [1.0],
            "the diagram of a function (R -> R) is given for another type",
        ),
    ],
)  # fmt: skip
def test_what_is_no_function_and_what_is_no_cotangent(args, bars, message):
    net = parse("(f: (R -> R)) => a = const[2.0]() u = eval(f, a) -> u")
    with pytest.raises(DiagramError) as caught:
        cotangents(net, args, bars)
    assert str(caught.value) == message


def test_a_function_that_goes_out_asks_for_probes():
    net = parse("(x: R) => f = box(x) { (x: R, y: R) => z = multiply(x, y) -> z } -> f")
    assert cotangents(net, [2.0], [Probes(((5.0,), (1.0,)))]) == (5.0,)
    with pytest.raises(DiagramError) as caught:
        cotangents(net, [2.0], [1.0])
    assert str(caught.value) == (
        "the cotangent of a function is Probes(((x,), (s,)), ...), arguments and the cotangents "
        "of what it gives there, not 1.0"
    )
    higher = parse("(F: ((R -> R) -> R)) => f = box() { (x: R) => -> x } y = eval(F, f) -> y")
    with pytest.raises(DiagramError) as caught:
        cotangents(higher, [GIVEN], [1.0])
    assert str(caught.value) == (
        "a function at the border takes and gives numbers, not (R -> R); a function of functions "
        "can be applied within the diagram"
    )

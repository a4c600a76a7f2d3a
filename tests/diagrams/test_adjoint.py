"""Differentiation by rewriting: the worked example, any order, step counts, linear cost."""

import math
import random

import mpmath
import numpy as np
import pytest
from diagrams.judge import agree, close, expected_steps, gradient_diagram, primal
from diagrams.test_hypernets import WORKED, chain
from shards import shards

from lineara.diagrams import check, isomorphic, parse, show
from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.cartesian import cartesian, monogamous
from lineara.diagrams.evaluate import Bundle, Evaluator, evaluate, gradient
from lineara.diagrams.net import Net, nodes_in
from lineara.diagrams.simplify import Simplifier, simplify
from lineara.diagrams.snapshot import history
from lineara.diagrams.stepper import Derivation
from lineara.diagrams.types import R, Stack
from lineara.errors import DiagramError
from lineara.facts.gc_pause import uncollected

SHARDS = 40


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_gradients_of_random_higher_order_programs_are_right_in_every_order(shard: int):
    seeds = range(shard * 25, shard * 25 + 25)
    moving = [agree(s, depth=3 + s % 2, simplified=s % 10 == 3) for s in seeds]
    assert sum(moving) > 5


def test_every_step_leaves_a_well_formed_diagram(share):
    for seed in share(range(30)):
        agree(seed, depth=3, every_step=True)


# --- section 10 of the specification, diagram by diagram ------------------------------------------

TOP = """(x: R) =>
  x1, x2 = copy(x)
  m = box(x1) { (c: R, y: R) => %s }
  x3, x4 = copy(x2)
  a, b = eval(m, x3)
  a1, r1 = copy(a)
  u, r2 = copy(x4)
  z = add(a1, u)
  k = box(b, r1, r2) { (b: (R -> E, R), r1: R, r2: R, s: R) => %s }
  -> z, k"""
BLUE = "v, q = BLUE[1](c, y) { (c: R, y: R) => p = multiply(c, y) -> p } -> v, q"
BACK = "s1, s2 = copy(s) drop(r1) drop(r2) "
EVAL = "e, sy = eval(b, s1) "
ORANGE = [
    "",
    "x1, x2 = copy(x) ",
    "m = box(x1) { (c: R, y: R) => p = multiply(c, y) -> p } ",
    "x3, x4 = copy(x2) ",
    "a = eval(m, x3) ",
    "z = add(a, x4) ",
]
FORWARD = [
    "",
    "x1, x2 = copy(x) ",
    f"m = box(x1) {{ (c: R, y: R) => {BLUE} }} ",
    "x3, x4 = copy(x2) ",
    "a, b = eval(m, x3) ",
    "a1, r1 = copy(a) u, r2 = copy(x4) z = add(a1, u) ",
]
INSIDE = ["x: R", "x1: R, x2: R", "x2: R, m: (R -> R)", "m: (R -> R), x3: R, x4: R", "x4: R, a: R"]
OUTSIDE = ["x", "x1, x2", "x2, m", "m, x3, x4", "x4, a", "z"]
GREEN = "g = GREEN[(R -> E, R), R, R](b, r1, r2, s) { (x: R) => " + "".join(ORANGE) + "-> z } -> g"


def during_orange(n: int) -> str:
    """The diagram after n nodes have left ORANGE, 0 to 5."""
    inside = [*INSIDE, "z: R"][n]
    rest = "".join(ORANGE[n + 1 :])
    outs = "z, b, r1, r2" if n < 4 else "z, r1, r2" if n == 4 else "w"
    resid = {0: "(R -> E, R), R, R", 4: "R, R", 5: ""}.get(n, "(R -> E, R), R, R")
    held = f"[{resid}]" if resid else ""
    return (
        "(x: R) => "
        + "".join(FORWARD[: n + 1])
        + f"{outs} = ORANGE{held}({OUTSIDE[n]}) {{ ({inside}) => {rest} -> z }} "
        + f"k = box(b, r1, r2) {{ (b: (R -> E, R), r1: R, r2: R, s: R) => {GREEN} }} "
        + f"-> {'w' if n == 5 else 'z'}, k"
    )


def during_green(back: str) -> str:
    return TOP % (BLUE, back)


INNER = (
    "c1, rc = copy(c) y1, ry = copy(y) v = multiply(c1, y1) "
    "q = box(rc, ry) { (rc: R, ry: R, s: R) => %s e = pack(sc) -> e, sy } -> v, q"
)
DONE = BACK + EVAL + "sc = unpack[R](e) t = add[R](sy, s2) g = add[R](sc, t) -> g"
EXPECTED = [
    *[during_orange(n) for n in range(6)],
    during_green(GREEN),
    during_green(
        BACK + "g = GREEN[(R -> E, R)](b, s2, s1) { (x: R) => " + "".join(ORANGE[1:5])
        + "-> x4, a } -> g"
    ),
    during_green(
        BACK + EVAL + "g = GREEN(e, sy, s2) { (x: R) => " + "".join(ORANGE[1:4])
        + "-> m, x3, x4 } -> g"
    ),
    during_green(
        BACK + EVAL + "sc = unpack[R](e) g = GREEN(sc, sy, s2) { (x: R) => x1, x2 = copy(x) "
        "x3, x4 = copy(x2) -> x1, x3, x4 } -> g"
    ),
    during_green(
        BACK + EVAL + "sc = unpack[R](e) t = add[R](sy, s2) g = GREEN(sc, t) { (x: R) => "
        "x1, x2 = copy(x) -> x1, x2 } -> g"
    ),
    during_green(
        BACK + EVAL + "sc = unpack[R](e) t = add[R](sy, s2) w = add[R](sc, t) "
        "g = GREEN(w) { (x: R) => -> x } -> g"
    ),
    during_green(DONE),
    TOP % (
        "v, rc, ry = ORANGE[R, R](c, y) { (c: R, y: R) => p = multiply(c, y) -> p } "
        "q = box(rc, ry) { (rc: R, ry: R, s: R) => sc, sy = GREEN[R, R](rc, ry, s) "
        "{ (c: R, y: R) => p = multiply(c, y) -> p } e = pack(sc) -> e, sy } -> v, q",
        DONE,
    ),
    TOP % (
        "c1, rc = copy(c) y1, ry = copy(y) w = multiply(c1, y1) "
        "v = ORANGE(w) { (p: R) => -> p } "
        "q = box(rc, ry) { (rc: R, ry: R, s: R) => sc, sy = GREEN[R, R](rc, ry, s) "
        "{ (c: R, y: R) => p = multiply(c, y) -> p } e = pack(sc) -> e, sy } -> v, q",
        DONE,
    ),
    TOP % (INNER % (
        "sc, sy = GREEN[R, R](rc, ry, s) { (c: R, y: R) => p = multiply(c, y) -> p }"
    ), DONE),
    TOP % (INNER % (
        "s1, s2 = copy(s) p = multiply(s1, ry) w = multiply(s2, rc) "
        "sc, sy = GREEN(p, w) { (c: R, y: R) => -> c, y }"
    ), DONE),
    TOP % (INNER % "s1, s2 = copy(s) sc = multiply(s1, ry) sy = multiply(s2, rc)", DONE),
]  # fmt: skip
RULES = [
    "blue",
    "O-copy",
    "O-box",
    "O-copy",
    "O-eval",
    "O-op",
    "O-id",
    "G-op",
    "G-eval",
    "G-box",
    "G-copy",
    "G-copy",
    "G-id",
    "blue",
    "O-op",
    "O-id",
    "G-op",
    "G-id",
]


def test_the_worked_example_diagram_by_diagram():
    found = list(history(parse(WORKED)))
    assert [step.rule for step, _, _ in found] == RULES
    assert len(found) == len(EXPECTED) == 18
    for (step, _, after), wanted in zip(found, EXPECTED, strict=True):
        check(after, finished=False)
        assert isomorphic(after, parse(wanted)), f"step {step.number}\n{show(after)}"
    value, back = evaluate(found[-1][2], 3.0)
    assert (value, Evaluator().apply(back, 1.0)) == (12.0, (7.0,))


def test_what_a_step_does_not_touch_keeps_its_id():
    for seed in range(3):
        for step, before, after in history(primal(seed, 3), random.Random(seed)):
            old = {n.id for n in nodes_in(before) if not inside_a_frame(n)}
            new = {n.id for n in nodes_in(after) if not inside_a_frame(n)}
            assert set(step.made) <= new
            assert old - new <= {step.node}
            frames = {n.id for n in nodes_in(after) if n.kind in ("BLUE", "ORANGE", "GREEN")}
            assert new - old <= {*step.made, *frames}


def inside_a_frame(node) -> bool:
    net = node.net
    while net.owner is not None:
        if net.owner.kind in ("BLUE", "ORANGE", "GREEN"):
            return True
        net = net.owner.net
    return False


def test_the_gradient_of_the_worked_example_is_x_plus_x_plus_one():
    s = Simplifier(gradient_diagram(parse(WORKED)))
    rules = [step.rule for step in s.steps()]
    wanted = "(x: R) => a, b = copy(x) o = const[1.0]() t = add[R](a, o) g = add[R](b, t) -> g"
    assert isomorphic(s.net, parse(wanted))
    counts = {rule: rules.count(rule) for rule in rules}
    assert counts == {
        "beta": 3, "gc": 2, "counit": 5, "dup": 2, "unpack-pack": 1, "mul-one": 2,
    }  # fmt: skip


# --- cost -----------------------------------------------------------------------------------------


@uncollected
def touched(net: Net, rng: random.Random | None = None) -> tuple[int, int, int]:
    """The most and all that steps touched, and how many there were."""
    d, most = Derivation(net), 0
    before = d.meter.touched
    for _ in d.steps(rng):
        most = max(most, d.meter.touched - before)
        before = d.meter.touched
    return most, before, len(d.log)


def lines(n: int) -> Net:
    """n lines x = sin(x) * x."""
    net = Net()
    w = net.input(R)
    for _ in range(n):
        a, b = net.add("copy", (w,))
        (w,) = net.add("op", (*net.add("op", (a,), name="sin"), b), name="multiply")
    net.output(w)
    return net


@pytest.mark.slow("steps along a chain of hundreds of boxes")
def test_a_step_touches_as_much_on_a_long_chain_as_on_a_short_one():
    found = {n: touched(lines(n)) for n in (10, 1_000, 10_000)}
    assert len({most for most, _, _ in found.values()}) == 1
    for n, (_, total, steps) in found.items():
        assert steps == 2 * 3 * n + 3
        assert total <= 66 * n + 10


def test_a_step_touches_as_much_in_any_order():
    assert {touched(lines(n), random.Random(n))[0] for n in (30, 300)} == {touched(lines(10))[0]}


@pytest.mark.slow("a chain of thousands of boxes")
def test_the_adjoint_of_a_long_chain_needs_no_stack_and_is_right():
    net = chain(20_001)
    value = x = 0.3
    slope = 1.0
    for i in range(20_001):
        d = math.cos(x) if i % 2 else 1 - math.tanh(x) ** 2
        x = math.sin(x) if i % 2 else math.tanh(x)
        slope *= d
    value = x
    machine = Evaluator()
    found, back = machine.run(adjoint(net), (0.3,))
    assert close(found, value)
    assert close(machine.apply(back, 1.0), slope)


def nested(k: int) -> Net:
    r"""f_k = \z. let g = \w. f_{k-1}(w * z) in g z, with f_0 = sin."""
    text = "(z: R) => y = sin(z) -> y"
    for _ in range(k):
        text = (
            "(z: R) => z1, z2 = copy(z) g = box(z1) { (z: R, w: R) => t = multiply(w, z) "
            f"f = box() {{ {text} }} y = eval(f, t) -> y }} y = eval(g, z2) -> y"
        )
    return parse(text)


def test_nested_closures_cost_a_constant_a_level():
    counts = {}
    for k in (1, 2, 4, 50, 100, 200):
        net = nested(k)
        machine = Evaluator()
        machine.run(net, (0.9,))
        forward = machine.calls
        machine = Evaluator()
        value, back = machine.run(adjoint(net), (0.9,))
        (slope,) = machine.apply(back, 1.0)
        counts[k] = (forward, machine.calls, len(list(nodes_in(adjoint(net)))))
        y = 0.9 ** (2**k) if k < 10 else 0.0
        assert close(value, math.sin(y))
        if k < 5:
            assert close(slope, 2**k * 0.9 ** (2**k - 1) * math.cos(y))
    for k, (forward, calls, nodes) in counts.items():
        assert forward == k + 1
        assert calls == 3 * k + 3
        assert nodes == counts[1][2] + (k - 1) * (counts[2][2] - counts[1][2])
    assert touched(nested(200))[0] == touched(nested(3))[0]


# --- orders ---------------------------------------------------------------------------------------


def test_order_four_of_sin_of_x_cubed_stays_small():
    net = parse(
        "(x: R) => a, b = copy(x) c, d = copy(b) e = multiply(a, c) f = multiply(e, d) y = sin(f)"
        " -> y"
    )
    sizes = []
    for order in range(1, 5):
        net = simplify(gradient_diagram(net))
        check(net)
        sizes.append(len(list(nodes_in(net))))
        with mpmath.workdps(40):
            wanted = mpmath.diff(lambda x: mpmath.sin(x**3), mpmath.mpf("0.7"), order)
        assert close(evaluate(net, 0.7), float(wanted))
    assert sizes == [17, 39, 87, 189]


@pytest.mark.parametrize("first_simplified", [False, True])
def test_order_two_of_random_programs(first_simplified: bool):
    from calculus.random_terms import meaning
    from diagrams.judge import AT, program

    moving = 0
    for seed in range(60):
        f, net = program(seed, 3), primal(seed, 3)
        first = gradient_diagram(net)
        part = first.outputs.pop()  # the derivative along the first argument only
        part.target = None
        first.add("drop", (part,))
        machine = Evaluator()
        _, back = machine.run(adjoint(simplify(first) if first_simplified else first), AT)
        found = machine.apply(back, 1.0)
        value, h = meaning(f, {}), 1e-30

        def slope(x: float, y: complex, value=value, h=h) -> complex:
            step = 1e-4  # central differences of the complex step, order 4
            return sum(
                [w * np.imag(value((x + k * step + 1j * h, y))) / h
                 for w, k in ((1 / 12, -2), (-2 / 3, -1), (2 / 3, 1), (-1 / 12, 2))]
            ) / step  # fmt: skip

        assert close(found[0], slope(AT[0], AT[1]), 1e-6), seed
        moving += bool(found[0])
    assert moving > 8


# --- choices, loops, bundles ----------------------------------------------------------------------

CHOICE = """(x: R, y: R) =>
  x1, x2 = copy(x)  x3, x4 = copy(x1)
  y1, y2 = copy(y)
  c = less(x3, y1)
  f = box(x2) { (a: R, z: R) => p = multiply(a, z) -> p }
  g = box(x4, y2) { (a: R, b: R, z: R) => p = multiply(a, b) q = multiply(p, z) -> q }
  h = sel(c, f, g)
  k = const[3.0]()
  r = eval(h, k)
  -> r"""


def test_a_choice_between_closures_that_captured_different_things():
    net = parse(CHOICE)
    assert gradient(adjoint(net), 1.0, 2.0) == (3.0, 0.0)
    assert gradient(adjoint(net), 2.0, 1.5) == (4.5, 6.0)
    for seed in range(20):
        assert isomorphic(Derivation(net).result(random.Random(seed)), adjoint(net))


SCAN = """(a: R, c: R, xs: stack[4, R]) =>
  f = box(a) { (a: R, c: R, x: R) =>
    u = multiply(a, c) v = sin(x) w = add(u, v) w1, w2 = copy(w) s = multiply(w1, v2) -> w2, s }
  d, ys = scan[4, 1, fwd](f, c, xs)
  -> d, ys""".replace("v = sin(x) w = add(u, v)", "v = sin(x) v1, v2 = copy(v) w = add(u, v1)")


def scanned(a, c, xs, seed_d, seed_ys):
    total = 0.0
    for x, s in zip(xs, seed_ys, strict=True):
        v = np.sin(x)
        c = a * c + v
        total = total + s * c * v
    return total + seed_d * c


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_back_over_the_back_propagators_that_it_stacked(reverse: bool):
    net = parse(SCAN.replace("fwd", "rev") if reverse else SCAN)
    check(net)
    found = adjoint(net)
    check(found)
    assert isomorphic(found, Derivation(net).result(random.Random(1)))
    assert isomorphic(parse(show(found)), found)
    a, c, xs = 0.8, 0.5, [0.1, -0.3, 0.7, 1.1]
    sd, sy = 0.9, [1.0, -2.0, 0.5, 0.25]
    machine = Evaluator()
    d, ys, back = machine.run(found, (a, c, xs))
    bars = machine.apply(back, sd, sy)
    order = slice(None, None, -1) if reverse else slice(None)

    def value(a, c, *xs):
        return scanned(a, c, xs[order], sd, sy[order])

    assert close(sd * d + np.dot(sy, ys), value(a, c, *xs))
    args = [a, c, *xs]
    h = 1e-30
    wanted = [
        np.imag(value(*[x + 1j * h * (i == j) for j, x in enumerate(args)])) / h
        for i in range(len(args))
    ]
    assert close([bars[0], bars[1], *bars[2]], wanted)


def test_scans_over_random_bodies_that_capture(share):
    from calculus.random_terms import Random, meaning
    from diagrams.judge import AT

    from lineara.bridges.calculus_and_diagrams import diagram_of
    from lineara.calculus.terms import Pair, lam
    from lineara.calculus.types import R as Real
    from lineara.calculus.types import power

    p, c, y = ("p", power(2)), ("c", Real), ("y", Real)
    rows, moving, h = [0.4, -0.9, 1.2], 0, 1e-30
    seeds = share(range(100))
    for seed in seeds:
        made = Random(seed)
        term = Pair((made.term(Real, [p, c, y], 3), made.term(Real, [p, c, y], 3)))
        f = lam(p, lam(c, lam(y, term)))
        net = Net()
        captured = [net.input(R) for _ in range(2)]
        start, xs = net.input(R), net.input(Stack(3, R))
        (box,) = net.add("box", captured, bodies=[diagram_of(f)])
        net.output(*net.add("scan", (box, start, xs), data=(3, 1, bool(seed % 2))))
        check(net)
        found = adjoint(net)
        check(found)
        assert isomorphic(found, Derivation(net).result(random.Random(seed)))
        machine = Evaluator()
        *_, back = machine.run(found, (*AT, 0.3, rows))
        bars = machine.apply(back, 1.5, [0.5, -1.0, 2.0])

        def value(args, f=f, reverse=bool(seed % 2)):
            body = meaning(f, {})((args[0], args[1]))
            carry, total = args[2], 0.0
            for i in reversed(range(3)) if reverse else range(3):
                carry, row = body(carry)(args[3 + i])
                total = total + (0.5, -1.0, 2.0)[i] * row
            return total + 1.5 * carry

        args = [*AT, 0.3, *rows]
        with np.errstate(all="ignore"):
            wanted = [
                np.imag(value([a + 1j * h * (i == j) for j, a in enumerate(args)])) / h
                for i in range(6)
            ]
        assert close([*bars[:3], *bars[3]], wanted), seed
        moving += any(wanted)
    assert moving > 0.3 * len(seeds)


def test_a_scan_is_differentiated_twice():
    net = parse(
        "(a: R, c: R) => f = box(a) { (a: R, c: R) => a1, a2 = copy(a) s = sin(a1) "
        "m = multiply(s, c) r = multiply(m, a2) -> r } d = scan[3, 1, fwd](f, c) -> d"
    )
    first = gradient_diagram(net)
    out = first.outputs.pop()
    out.target = None
    first.add("drop", (out,))
    for whole in (first, simplify(first)):
        second = simplify(gradient_diagram(whole))
        check(second)
        with mpmath.workdps(40):
            wanted = mpmath.diff(lambda a: (a * mpmath.sin(a)) ** 3 * mpmath.mpf("0.5"), 0.7, 2)
            mixed = mpmath.diff(lambda a: (a * mpmath.sin(a)) ** 3, 0.7)
        assert close(evaluate(second, 0.7, 0.5), (float(wanted), float(mixed)))


SHARED = """(x: R) =>
  x1, x2 = copy(x)  x3, x4 = copy(x1)  x5, x6 = copy(x2)
  f = box(x3) { (a: R, z: R) => p = multiply(a, z)  q = sin(p) -> q }
  g = box() { (z: R) => p = cos(z) -> p }
  f1, f2 = copy(f)  g1, g2 = copy(g)
  k1 = const[0.0]()  k2 = const[5.0]()  x7, x8 = copy(x4)
  c1 = greater(x7, k1)  c2 = less(x8, k2)
  h1 = sel(c1, f1, g1)  h2 = sel(c2, f2, g2)
  u = eval(h1, x5)  v = eval(h2, x6)  w = multiply(u, v)
  -> w"""


def test_a_function_that_is_there_twice_still_opens_its_bundles():
    whole = gradient_diagram(parse(SHARED))
    wanted = 4 * 0.7 * math.sin(0.49) * math.cos(0.49)
    for net in (whole, simplify(whole), monogamous(cartesian(simplify(whole)))):
        assert close(evaluate(net, 0.7), wanted)


def test_bundles_of_different_functions_do_not_add():
    net = parse("(a: E, b: E) => c = add[E](a, b) -> c")
    with pytest.raises(DiagramError) as caught:
        evaluate(net, Bundle((1.0,), 3), Bundle((1.0,), 4))
    assert str(caught.value) == (
        "bundles of two different functions were added, those of pack#3 and pack#4; a bundle is "
        "opened by what made it, and goes nowhere else"
    )


def test_what_has_no_derivative_says_so():
    frame = parse('(x: R) => y: R = frame["call f"](x) { (x: R) => -> x } -> y')
    with pytest.raises(DiagramError) as caught:
        adjoint(frame)
    assert str(caught.value) == (
        "frame 'call f' has no derivative rule; lineara.diagrams.lowered puts what it stands for "
        "in its place"
    )
    with pytest.raises(DiagramError) as caught:
        adjoint(parse("(x: 'tape') => -> x"))
    assert str(caught.value) == (
        "a wire of the type tape has no derivative here; differentiate the program that the "
        "diagram was made of"
    )
    d = Derivation(parse("(x: R) => -> x"))
    list(d.steps())
    with pytest.raises(DiagramError, match=r"^no frame is left: the derivation has ended$"):
        d.fire()


def test_a_gradient_is_of_the_adjoint_of_one_real_output():
    square = "(x: R) => a, b = copy(x) y = multiply(a, b) -> y"
    two = adjoint(parse("(x: R) => a, b = copy(x) y = sin(a) -> y, b"))
    vector = adjoint(parse("(x: f64[3]) => -> x"))
    function = adjoint(parse("(c: R) => f = box(c) { (c: R, x: R) => y = add(c, x) -> y } -> f"))
    with pytest.raises(DiagramError) as caught:
        gradient(parse(square), 3.0)
    assert str(caught.value) == (
        "gradient takes an adjoint, whose last output is the way back, and this diagram goes from "
        "(R) to (R); differentiate it first: gradient(adjoint(net), ...)"
    )
    for net, args, shown in (
        (two, (3.0,), "R, R"),
        (vector, (np.zeros(3),), "f64[3]"),
        (function, (3.0,), "(R -> R, (R -> E, R))"),
    ):
        with pytest.raises(DiagramError) as caught:
            gradient(net, *args)
        assert str(caught.value) == (
            f"gradient is of one real output, and this adjoint has ({shown}); give a cotangent for "
            "each that moves: cotangents(net, args, bars), of the diagram itself"
        )
    for other in ("(x: R) => drop(x) ->", "(x: R, f: (R -> R)) => -> x, f"):
        with pytest.raises(DiagramError, match=r"^gradient takes an adjoint, whose"):
            gradient(parse(other), 3.0)
    for other, kind in ((3.0, "float"), (lambda x: x, "function")):
        with pytest.raises(DiagramError) as caught:
            gradient(other, 3.0)
        assert str(caught.value) == (
            f"gradient takes the adjoint of a diagram, and this is one {kind}; draw it first, "
            "gradient(adjoint(lineara.diagram(f)), ...), or take lineara.grad of a function"
        )
    moving = adjoint(parse("(x: R, c: B) => a, b = copy(x) y = sin(a) z = less(a, b) -> y, c"
                           .replace(" z = less(a, b)", " drop(b)")))  # fmt: skip
    assert gradient(moving, 0.0, True) == (1.0,)


def test_an_order_is_a_constant_or_an_error():
    bessel = "n1, n2 = copy(n) f = box(n1) { (n: R, x: R) => y = jv(n, x) -> y } drop(n2)"
    net = parse(f"(x: R) => n = const[2.0]() {bessel} y = eval(f, x) -> y")
    (found,) = gradient(adjoint(net), 1.3)
    assert close(found, float(mpmath.diff(lambda x: mpmath.besselj(2, x), 1.3)))
    for first in (gradient_diagram(net), simplify(gradient_diagram(net))):
        (found,) = gradient(adjoint(first), 1.3)
        assert close(found, float(mpmath.diff(lambda x: mpmath.besselj(2, x), 1.3, 2)))
    for text in (
        f"(n: R, x: R) => {bessel} y = eval(f, x) -> y",
        "(n: R, x: R) => y = jv(n, x) -> y",
        "(x: R) => f = box() { (n: R) => k = const[1.0]() y = jv(n, k) -> y } y = eval(f, x) -> y",
    ):
        with pytest.raises(DiagramError) as caught:
            adjoint(parse(text))
        assert str(caught.value) == (
            "jv has no derivative with respect to its argument 1, and what comes in there is "
            "computed; make it a constant"
        )


def test_a_step_is_taken_once():
    d = Derivation(parse(WORKED))
    (blue,) = d.redexes
    d.fire(blue)
    with pytest.raises(DiagramError, match=r"^that step has been taken, or cannot be taken yet$"):
        d.fire(blue)
    assert expected_steps(parse(WORKED)) == 18

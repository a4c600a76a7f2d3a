"""Linear A programs and Python functions as diagrams, and back."""

import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from calculus.random_terms import Random
from diagrams.judge import AT, close
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import lineara
from lineara import calculus
from lineara.bridges.calculus_and_diagrams import diagram_of as diagram_of_term
from lineara.bridges.calculus_and_diagrams import term_of
from lineara.calculus.types import power
from lineara.diagrams import Derivation, adjoint, check, evaluate, gradient, isomorphic, parse, show
from lineara.diagrams.from_programs import diagram_of, program_of
from lineara.diagrams.lowering import lowered
from lineara.diagrams.net import nodes_in
from lineara.diagrams.pullbacks import pullback
from lineara.diagrams.types import R, of_array
from lineara.engines import run
from lineara.errors import BoundsError, DiagramError, LinearaError
from lineara.facts.types import type_of
from lineara.linear_a.check import check as check_program
from lineara.linear_a.parse import parse as parse_program
from lineara.passes import derivatives

sys.path.insert(0, str(Path(__file__).parent.parent / "linear_a"))
from programs import Case, arguments, cases  # the generator of the tests of Linear A

KINDS = st.one_of(
    cases("NML"),
    cases("NML", arrays=True),
    cases("NML", control=True),
    cases("N", scalar=True, arrays=True, control=True),
    cases("NML", arrays=True, control=True),
)


@hypothesis.seed(0)
@settings(
    max_examples=200, database=None, deadline=None, suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)  # fmt: skip
@given(KINDS)
def test_programs_go_to_diagrams_and_back(case: Case):
    drawn = diagram_of(case.program, case.name)
    check(drawn.net)
    assert isomorphic(parse(show(drawn.net)), drawn.net)
    back = program_of(drawn)
    check_program(back)
    args = arguments(case)
    wanted, found = run(case.program, case.name, *args), run(back, case.name, *args)
    assert repr(found.results) == repr(wanted.results)
    assert repr(found.lresults) == repr(wanted.lresults)


SCALAR = st.one_of(
    cases("N", scalar=True),
    cases("N", scalar=True, arrays=True),
    cases("N", scalar=True, control=True),
    cases("N", scalar=True, arrays=True, control=True),
)


def test_rewriting_agrees_with_linear_a_where_a_program_has_nodes_with_rules(share):
    compared, moving, tried = [], [], max(60, len(share(range(120))))

    @hypothesis.seed(0)
    @settings(
        max_examples=tried, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(SCALAR)
    def agree(case: Case) -> None:
        try:
            derived = adjoint(lowered(diagram_of(case.program, case.name).net))
        except DiagramError:
            return
        check(derived)
        args = arguments(case)
        name = f"{case.name}.grad"
        wanted = run(derivatives.grad(case.program, case.name), name, *args).results
        found = gradient(derived, *args)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert close(a, b), str(case.program)
        compared.append(case)
        moving.append(any(np.any(np.asarray(a) != 0) for a in found))

    agree()
    assert len(compared) > tried // 3
    assert any(moving)


LOOP = """
def body(k: f64, c: f64; ~a: f64) -> (f64; f64) =
  let c2: f64 = k * c in
  let ~a2: f64 = k * ~a in
  (c2; ~a2)
def g(x: f64;) -> (f64;) = sin(x)
def f(x: f64, y: f64; ~a: f64) -> (f64; f64) =
  let z: f64 = g(y;) in
  let (w: f64; ~b: f64) = scan[body, 4, fwd, 1, 1, 1](x, z; ~a) in
  (w; ~b)
"""


def test_calls_and_loops_are_labelled_frames_and_linear_wires_are_marked():
    program = parse_program(LOOP)
    drawn = diagram_of(program, "f")
    wanted = (
        "(x1: R, x2: R, ~x3: R) =>\n"
        '  v1: R = frame["call g", ("Call", ("g",), ())](x2) { (x4: R) =>\n'
        "    v3 = sin(x4)\n"
        "    -> v3 }\n"
        '  v2: R, ~v1: R = frame["scan[body, 4, fwd, 1, 1, 1]", ("Scan", ("body",), '
        '(4, "fwd", 1, 1, 1))](x1, v1, ~x3) { (x5: R, x6: R, ~x7: R) =>\n'
        "    v4, v5 = copy(x5)\n"
        "    v6 = multiply(v4, x6)\n"
        "    ~v7 = multiply(v5, ~x7)\n"
        "    -> v6, ~v7 }\n"
        "  -> v2, ~v1"
    )
    assert isomorphic(drawn.net, parse(wanted)), show(drawn.net)
    again = program_of(drawn)
    assert list(again.defs) == ["g", "body", "f"]
    assert run(again, "f", 0.5, 0.3, 2.0) == run(program, "f", 0.5, 0.3, 2.0)


def test_a_derived_program_goes_through_its_diagram():
    def f(x):
        return lineara.fori_loop(0, 4, lambda i, c: np.sin(c) * x, x)

    staged = lineara.trace(f, 0.8)
    derived = derivatives.grad(staged.program, staged.name)
    name = f"{staged.name}.grad"
    back = program_of(diagram_of(derived, name))
    check_program(back)
    assert close(run(back, name, 0.8).results[0], lineara.grad(f)(0.8))


def test_recursion_and_shared_calls_are_drawn_once():
    text = "def f0(x: f64;) -> (f64;) = sin(x)\n"
    for i in range(1, 18):
        text += f"def f{i}(x: f64;) -> (f64;) =\n  let y: f64 = f{i - 1}(x;) in\n  f{i - 1}(y;)\n"
    program = parse_program(text)
    with pytest.raises(DiagramError) as caught:
        diagram_of(program, "f17")
    assert str(caught.value).endswith(
        " has more than 20000 nodes when every call is unfolded; unfold=False draws the body of "
        "each definition once"
    )
    drawn = diagram_of(program, "f17", unfold=False)
    assert len(list(nodes_in(drawn.net))) < 80
    assert run(program_of(drawn), "f3", 0.3) == run(program, "f3", 0.3)
    recursive = parse_program(
        "def f(x: f64;) -> (f64;) =\n  let k: f64 = 1.0 in\n  let p: bool = less(x, k) in\n"
        "  let (;) = drop(k) in\n  cond[g, f2](p, x;)\n"
        "def g(x: f64;) -> (f64;) = sin(x)\n"
        "def f2(x: f64;) -> (f64;) =\n  let h: f64 = 0.5 in\n  let y: f64 = x * h in\n  f(y;)\n"
    )
    drawn = diagram_of(recursive, "f")
    check(drawn.net)
    again = program_of(drawn)
    check_program(again)
    assert run(again, "f", 5.0).results == run(recursive, "f", 5.0).results


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(DiagramError) as caught:
        diagram_of(parse_program(LOOP), "ff")
    assert str(caught.value) == "there is no definition ff in the program; did you mean f?"
    sized = parse_program("def f(n: i64, x: f64[n];) -> (f64[n];) = (x;)")
    with pytest.raises(DiagramError) as caught:
        diagram_of(sized, "f")
    assert str(caught.value) == (
        "a wire has no type f64[n] with a dimension that is known at run time; trace the function "
        "for arrays of one size"
    )
    bundle = parse("(e: E) => -> e")
    drawn = diagram_of(parse_program("def f(x: f64;) -> (f64;) = (x;)"), "f")
    with pytest.raises(DiagramError) as caught:
        program_of(drawn._replace(net=bundle))
    assert str(caught.value) == (
        "a wire that carries a function or a bundle has no type in Linear A; simplify the diagram "
        "first, or evaluate it"
    )


# --- Python ---------------------------------------------------------------------------------------


def with_closure(x, y):
    def g(z):
        return z * x

    return g(y) + np.sin(x)


def test_a_function_of_numbers_is_read_from_its_source():
    net = lineara.diagram(with_closure, 1.0, 2.0)
    assert isomorphic(
        net,
        parse(
            "(x: R, y: R) => a, b = copy(x) f = box(a) { (x: R, z: R) => p = multiply(z, x) -> p }"
            " u = eval(f, y) v = sin(b) w = add(u, v) -> w"
        ),
    )
    assert close(
        gradient(adjoint(net), 0.7, 0.4), lineara.grad(with_closure, argnums=(0, 1))(0.7, 0.4)
    )
    traced = lineara.diagram(with_closure, 1.0, 2.0, by="trace")
    assert {n.kind for n in nodes_in(traced)} == {"copy", "op"}
    with pytest.raises(DiagramError) as caught:
        lineara.diagram(with_closure, 1.0, 2.0, by="magic")
    assert str(caught.value) == (
        "a diagram is made by source, by trace or by linear, not by 'magic'"
    )


def fills(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] ** 2
    return lineara.fori_loop(0, 3, lambda i, c: c * x[0] + 1.0, y.sum())


def rows(x):
    def body(c, r):
        c = c * np.sin(r[0]) + r[1]
        return c, c * c

    c, ys = lineara.scan(body, x[0, 0], x)
    return c + (ys * ys).sum()


def chooses(x):
    return lineara.cond(x > 0, lambda x: np.sin(x) * x, lambda x: x * x * x, x)


def test_a_traced_function_is_differentiated_by_rewriting():
    net = lowered(lineara.diagram(fills, np.ones(3)))
    check(net)
    x = np.array([0.5, 1.5, -1.0])
    assert close(evaluate(net, x), fills(x))
    assert close(gradient(adjoint(net), x), lineara.grad(fills)(x))
    net = lowered(lineara.diagram(rows, np.ones((3, 2))))
    x = np.array([[0.3, 0.4], [0.5, -0.2], [1.1, 0.7]])
    assert close(gradient(adjoint(net), x), lineara.grad(rows)(x))
    branch = lowered(lineara.diagram(chooses, 1.0, by="trace"))
    for x in (-2.0, 2.0):
        assert close(gradient(adjoint(branch), x), lineara.grad(chooses)(x))
    called = lineara.function(np.tanh)
    net = lowered(lineara.diagram(lambda x: called(x) * called(2 * x), 0.3, by="trace"))
    assert close(
        gradient(adjoint(net), 0.3), lineara.grad(lambda x: np.tanh(x) * np.tanh(2 * x))(0.3)
    )


def grows(x):
    return lineara.while_loop(lambda c: c < 9, lambda c: c * x, x)


def one_of(x):
    count = lineara.while_loop(lambda c: c < 2, lambda c: c + 1, 0)
    ways = [lambda x: x * x, lambda x: np.sin(x), lambda x: x**3]
    return lineara.switch(count, ways, x)


def fills_by_a_loop(x):
    def round_(c):
        i, y = c
        y[i] = np.sin(x[i] * y[i - 1])
        return i + 1, y

    _, y = lineara.while_loop(lambda c: c[0] < 4, round_, (1, x * 1.0))
    return np.sum(y * y)


def goes_over_rows(x, reverse=False):
    def round_(c, row):
        return c * np.sum(np.sin(row)) + 1, (row * c, c)

    c, (rows, cs) = lineara.scan(round_, 1.0, x, reverse=reverse)
    return c + np.sum(rows**2 * np.arange(4.0)[:, None]) + np.sum(cs) * c


LINE = np.arange(4.0) + 0.5
LOOPS = [
    (grows, 2.0), (grows, 1.2), (one_of, 0.7), (fills_by_a_loop, LINE),
    (goes_over_rows, np.outer(LINE, LINE)[:, :2]),
    (lambda x: goes_over_rows(x, True), np.outer(LINE, LINE)[:, :2]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x"), LOOPS)
def test_while_loops_switches_and_computed_positions_are_nodes(f, x):
    net = lowered(lineara.diagram(f, x, by="trace"))
    check(net)
    assert isomorphic(parse(show(net)), net)
    assert close(evaluate(net, x)[0], f(x))
    assert close(gradient(adjoint(net), x)[0], lineara.grad(f)(x))
    slope = adjoint(net)  # without its value, and applied to 1
    value, back = slope.outputs
    slope.outputs.clear()
    value.target = back.target = None
    slope.add("drop", (value,))
    found = slope.add("eval", (back, *slope.add("const", data=1.0)))
    if not isinstance(x, float):
        whole = (("axis", (*range(x.ndim),)), ("keepdims", False))
        found = slope.add("op", found, name="sum", data=whole)
    slope.output(*found)
    wanted = lineara.grad(lambda x: np.sum(lineara.grad(f)(x)))(x)
    assert close(gradient(adjoint(slope), x)[0], wanted)


def test_a_while_loop_has_no_value_after_its_last_round():
    net = lineara.diagram(grows, 1.2, by="trace")
    assert close(evaluate(lowered(net, rounds=13), 1.2)[0], grows(1.2))
    assert 1.2**12 < 9 < 1.2**13
    assert close(evaluate(lowered(net, rounds=12), 1.2)[0], 1.2**13)
    with pytest.raises(BoundsError):
        evaluate(lowered(net, rounds=11), 1.2)


def test_a_position_out_of_range_is_an_error():
    text = "def a(x: f64;) -> (f64;) = sin(x)\ndef b(x: f64;) -> (f64;) = cos(x)\n"
    text += "def f(i: i64, x: f64;) -> (f64;) = switch[a, b](i, x;)"
    net = lowered(diagram_of(parse_program(text), "f").net)
    assert [evaluate(net, i, 0.0) for i in (0, 1)] == [(0.0,), (1.0,)]
    for i in (-1, 2):
        with pytest.raises(BoundsError):
            evaluate(net, i, 0.0)


RECURSION = """
def stop(x: f64;) -> (f64;) = x
def go(x: f64;) -> (f64;) = let h = x * 0.5 in f(h;)
def f(x: f64;) -> (f64;) = let c = less(x, 1.0) in cond[stop, go](c, x;)
"""
SUM = """
type t = [<> | <f64>]
def none(u: <>, x: f64;) -> (f64;) = x
def some(p: <f64>, x: f64;) -> (f64;) = let <y> = p in y * x
def f(s: t, x: f64;) -> (f64;) = case s of none | some with (x;)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RECURSION,
         "again f has no derivative rule here: a diagram has no recursion; write it as a loop"),
        (SUM,
         "case s of none | some has no derivative rule here: no wire carries a sum; differentiate "
         "the program itself"),
    ],
)  # fmt: skip
def test_what_has_no_nodes_with_rules_says_so(text, said):
    with pytest.raises(DiagramError) as caught:
        lowered(diagram_of(parse_program(text), "f").net)
    assert str(caught.value) == said


# --- pullback diagrams are the declared facts -----------------------------------------------------

CALLS = [
    ("sin", [0.3], {}),
    ("atan2", [0.3, -1.2], {}),
    ("maximum", [0.3, 0.3], {}),
    ("maximum", [0.3, 0.7], {}),
    ("minimum", [0.3, 0.7], {}),
    ("power", [1.3, 2.0], {}),
    ("multiply", [np.ones((2, 3)) * 1.5, np.arange(3.0)], {}),
    ("matmul", [np.arange(6.0).reshape(2, 3), np.arange(3.0) - 1], {}),
    ("matmul", [np.arange(6.0).reshape(2, 3), np.ones((3, 2))], {}),
    ("sum", [np.arange(6.0).reshape(2, 3)], {"axis": (0,), "keepdims": False}),
    ("index", [np.arange(6.0).reshape(2, 3)], {"at": (0, slice(0, 2))}),
    ("reshape", [np.arange(6.0)], {"shape": (2, 3)}),
    ("concat", [np.arange(2.0), np.arange(3.0)], {"axis": 0}),
]


@pytest.mark.parametrize(("name", "args", "params"), CALLS)
def test_the_pullback_diagram_is_the_transposed_derivative(name, args, params):
    takes = [of_array(type_of(a)) for a in args]
    net = pullback(name, takes, tuple(params.items()))
    check(net)
    primitive = lineara.facts.primitive.registry.primitives[name]
    value, back = lineara.vjp(lambda *xs: primitive(*xs, **params), *args)
    s = np.asarray(value) * 0 + np.linspace(0.5, 1.5, np.size(value)).reshape(np.shape(value))
    s = float(s) if not np.shape(s) else s
    for found, wanted in zip(evaluate(net, *args, s), back(s), strict=True):
        assert close(found, wanted)


M = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.4, 0.2, 1.1]])
GENERAL = [
    ("det", [M], {}), ("inv", [M], {}), ("solve", [M, M[:, :2]], {}), ("expm", [M], {}),
    ("prod", [M], {"axis": (0,), "keepdims": False}), ("cholesky", [M @ M.T], {}),
    ("max", [M], {"axis": (0,), "keepdims": False}), ("eigvalsh", [M @ M.T], {}),
    ("eigh_vectors", [M @ M.T], {}), ("qr", [M], {"complete": False}), ("svdvals", [M], {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "params"), GENERAL)
def test_a_fact_that_is_a_jvp_is_transposed_as_programs_are(name, args, params):
    net = pullback(name, [of_array(type_of(a)) for a in args], tuple(params.items()))
    check(net)
    primitive = lineara.facts.primitive.registry.primitives[name]
    value, back = lineara.vjp(lambda *xs: primitive(*xs, **params), *args)
    several = isinstance(value, tuple)
    rng = np.random.default_rng(0)
    bars = [rng.normal(size=np.shape(y))[()] for y in (value if several else (value,))]
    wanted = back(tuple(bars) if several else bars[0])
    for found, w in zip(evaluate(net, *args, *bars), wanted, strict=True):
        assert close(found, w)


def test_linear_algebra_is_differentiated_by_rewriting_to_the_second_order():
    def f(a):
        return np.log(np.linalg.det(a @ a.T)) + np.prod(a) * np.max(a)

    net = lowered(lineara.diagram(f, M))
    d = Derivation(net)
    for _ in d.steps():
        pass
    assert isomorphic(d.result(), adjoint(net))
    assert close(gradient(d.result(), M)[0], lineara.grad(f)(M))
    slope = lambda a: np.sum(lineara.grad(f)(a) * np.sin(M))  # noqa: E731
    net = lowered(lineara.diagram(slope, M))
    assert close(gradient(adjoint(net), M)[0], lineara.grad(slope)(M))


# --- terms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            r"\x. (rec f x. if less(x, 1) then x else f (x * 0.5)) x",
            "Fix has no node, and cannot be evaluated beforehand: numbers decide how far it goes, "
            "or which function it is; write a recursion, or a list, out as far as it goes",
        ),
        (
            r"\x. if less(x, 1) then J(sin; 1) x else x",
            "J has no node, and cannot be evaluated beforehand: numbers decide how far it goes, or "
            "which function it is; take the derivative of the diagram, by diagrams.adjoint",
        ),
        (
            r"\f:R -> R. pull(f; \_. covec(1)) 2 @ 1",
            "At has no node, and cannot be evaluated beforehand: an argument of a program is made "
            "of numbers, not R -> R; take the derivative of the diagram, by diagrams.adjoint",
        ),
        (
            r"pull(\f:R -> R. f 1; \_. covec(1)) sin",
            "Pull has no node, and cannot be evaluated beforehand: its value is no number; take "
            "the derivative of the diagram, by diagrams.adjoint",
        ),
        (
            r"\k:R^. 2",
            "values of R^ have no wire; a diagram has numbers, truth values, pairs and functions",
        ),
    ],
)
def test_terms_without_a_diagram(text: str, message: str):
    with pytest.raises(DiagramError) as caught:
        diagram_of_term(calculus.term(text))
    assert str(caught.value) == message


@pytest.mark.parametrize("deep", [600, 3000])  # one of them is a term, as Python's versions count
def test_a_type_that_nests_too_deep_is_refused(deep):
    text = "let f = " + "".join([rf"\x{i}. " for i in range(deep)]) + "1 in \\y. f y"
    with pytest.raises(LinearaError, match=r"a function type here nests too deep; give the func"):
        diagram_of_term(calculus.term(text))


EVALUATED = [  # with their values and slopes at 1.5
    (r"\x. pull(\y. y * y * y; \_. covec(1)) x @ 2", 6 * 1.5**2, 12 * 1.5),
    (r"\x. J(\y. pull(\z. z * z * z; \_. covec(1)) y @ 1; 1) x", 6 * 1.5, 6.0),
    (r"\x. fold (\a b. a * b) 1 [x, head [x], 3]", 3 * 1.5**2, 6 * 1.5),
    (r"\x. iterate 3i (\y. y * x) x", 1.5**4, 4 * 1.5**3),
    (r"\x. pull(\f:R -> R. f x * f 3; \_. covec(1)) (\y. y * y) @ (\y. y)",
     1.5 * 9 + 1.5**2 * 3, 9 + 2 * 1.5 * 3),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "slope"), EVALUATED)
def test_derivatives_lists_and_recursion_are_evaluated_beforehand(text, value, slope):
    net = lineara.diagram(calculus.term(text))
    check(net)
    assert close(evaluate(net, 1.5)[0], value)
    assert close(gradient(adjoint(net), 1.5)[0], slope)


@pytest.mark.parametrize("shard", range(4))
def test_random_terms_with_derivatives_within_have_diagrams(shard: int):
    moving = 0
    for seed in range(shard * 10, shard * 10 + 10):
        f = Random(seed, nested=True, branches=False).function(power(2), 4)
        net = diagram_of_term(f)
        check(net)
        wanted = calculus.function(calculus.gradient(f))(AT)
        assert close(gradient(adjoint(net), *AT), wanted)
        moving += any(wanted)
    assert moving > 2


def test_a_closed_term_is_its_numbers():
    net = lineara.diagram(calculus.term(r"pull(\<x, y>. x * y; \_. covec(1)) <3, 4>"))
    assert evaluate(net) == (4.0, 3.0)


def test_integers_and_declared_symbols_have_nodes():
    term = calculus.term(
        "symbol cube x = x * x * x in \\x. if 2i * 3i == 6i then cube(x) else x".replace(
            "2i * 3i == 6i", "ieq(2i * 3i, 6i)"
        )
    )
    net = diagram_of_term(term)
    check(net)
    assert evaluate(net, 2.0) == (8.0,)
    assert gradient(adjoint(net), 2.0) == (12.0,)
    assert net.takes == (R,)


def test_diagrams_without_a_term():
    with pytest.raises(DiagramError) as caught:
        term_of(parse("(e: E) => -> e"))
    assert str(caught.value) == "a wire of the type E has no values in the calculus"
    net = parse("(x: R) => drop(x) ->")
    with pytest.raises(DiagramError) as caught:
        term_of(net)
    assert str(caught.value) == ("a diagram without outputs has no value, and a term has one")

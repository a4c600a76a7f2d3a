"""The worked examples of the paper: values, rules, and how many steps and calls they take."""

import itertools

import pytest

from lineara import calculus
from lineara.calculus.machine import Machine
from lineara.calculus.readback import read_back
from lineara.calculus.reducer import Reducer
from lineara.calculus.symbols import standard
from lineara.calculus.terms import Fun, Pair, Sum, Term, app, lam, let, num, var
from lineara.calculus.types import R

LIST = "(\\f:R -> R -> R. \\d:R. f 7 (f -1 d))"
PLUS, TIMES = "(\\r:R. \\d:R. r + d)", "(\\r:R. \\d:R. r * d)"
FUNCTIONAL = "pull(\\l:(R -> R -> R) -> R -> R. l {} {}; \\_. covec(1)) " + LIST
TANGENT = "(J(\\t:R. \\f:R -> R -> R. \\d:R. f (7 + 2 * t) (f (-1 + 5 * t) d); 1) 0)"
CUBE = "symbol cube x = x * x * x in "
FIRST = "pull(\\x. cube(x); \\_. covec(1))"
SECOND = f"pull(\\y. {FIRST} y @ 1; \\_. covec(1))"
THIRD = f"pull(\\z. {SECOND} z @ 1; \\_. covec(1))"
EXAMPLE = (
    "symbol g x y = <x + 1, 2 * x + y * y> in "
    "pull(\\p:R * R. pow2(mul(g(p))); \\_:R. covec(1)) <1, 3>"
)

# The term, its value, and the most steps: those of the experiment in the spec.
EXAMPLES = [
    (EXAMPLE, "[covec(660)|covec(528)]", 24),
    (FUNCTIONAL.format(PLUS, 0), "(\\r:R. \\d:R. r + d) |> 0 |> covec(1)", 26),
    (FUNCTIONAL.format(TIMES, 1), "(\\r:R. \\d:R. multiply(r, d)) |> 1 |> covec(1)", 26),
    (f"({FUNCTIONAL.format(PLUS, 0)}) @ {TANGENT}", "7", 200),
    (f"({FUNCTIONAL.format(TIMES, 1)}) @ {TANGENT}", "33", 200),
    (f"pull(\\p. (\\f:R -> R -> R. \\d:R. f (fst p) (f (snd p) d)) {PLUS} 0; "
     "\\_. covec(1)) <7, -1>", "[covec(1)|covec(1)]", 200),
    (f"pull(\\p. (\\f:R -> R -> R. \\d:R. f (fst p) (f (snd p) (f (fst p) d))) {TIMES} 1; "
     "\\_. covec(1)) <7, -1>", "[covec(-14)|covec(49)]", 200),
    (f"{CUBE}{FIRST} 2", "covec(12)", 12),
    (f"{CUBE}{SECOND} 2", "covec(12)", 166),
    (f"{CUBE}{THIRD} 2", "covec(6)", 4039),
    ("pull(\\x. x * (pull(\\y. x + y; \\_. covec(1)) 1 @ 1); \\_. covec(1)) 1", "covec(1)", 200),
    ("J(\\x. x * (J(\\y. x + y; 1) 1); 1) 1", "1", 200),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "steps"), EXAMPLES)
def test_an_example_has_its_value_in_as_few_steps(text, value, steps):
    t = calculus.term(text)
    r = Reducer(t)
    r.run()
    assert calculus.show(r.term()) == value
    assert r.steps <= steps
    assert calculus.show(calculus.run(t)) == value


def test_the_steps_of_the_first_example():
    steps = list(calculus.trace(calculus.term(EXAMPLE)))
    assert [s.rule.number for s in steps] == [
        *"A", "15", "3", "15", "3", "15", "3", "7", "1", "8", "5", "5", "8", "5", "5", "8", "5",
        "5", "8",
    ]  # fmt: skip
    shown = [calculus.show(s.redex()) for s in steps]
    assert shown[1] == (
        "pull(\\<p%1>. let a%2 = g(p%1) in let a%3 = multiply(a%2) in let a%4 = square(a%3) "
        "in a%4; \\_:R. covec(1))<<1, 3>>"
    )
    assert shown[2] == "g(1, 3)"
    assert [calculus.show(s.contractum) for s in steps if s.rule.number == "8"] == [
        "{0:(R * R)^, 0:(R * R)^, dual(\\da%3:R. J{square}(da%3) 22; covec(1))}",
        "{0:(R * R)^, dual(\\da%2:R * R. J{multiply}(da%2) <2, 11>; covec(44))}",
        "{dual(\\dp%1:R * R. J{g}(dp%1) <1, 3>; [covec(484)|covec(88)])}",
        "[covec(660)|covec(528)]",
    ]


def test_the_first_example_calls_each_symbol_once_each_way():
    r = Reducer(calculus.term(EXAMPLE))
    r.run()
    assert (r.calls, r.vjps) == (3, 3)


# --- no expression swell --------------------------------------------------------------------------


symbols = standard()


def chain(n: int) -> str:
    """x_{k+1} = sin(x_k) x_k + x_k."""
    lines = [f"let x{k} = sin(x{k - 1}) * x{k - 1} + x{k - 1} in\n" for k in range(1, n + 1)]
    return f"pull(\\x0. {''.join(lines)} x{n}; \\_. covec(1)) 0.1"


def counts(text: str) -> tuple[int, int, int]:
    r = Reducer(calculus.term(text))
    r.run()
    return r.steps, r.calls, r.vjps


def machine_counts(text: str) -> tuple[int, int, int]:
    m = Machine()
    m.value(calculus.term(text))
    return m.steps, m.calls, m.vjps


def test_a_chain_takes_the_same_for_each_line():
    found = [counts(chain(n)) for n in (5, 10, 20)]
    assert [steps for steps, _, _ in found] == [119, 234, 464]  # 23 a line; the experiment had 42
    assert [(c, v) for _, c, v in found] == [(10, 10), (20, 20), (40, 40)]  # sin and *


@pytest.mark.slow("a chain of thousands of steps")
def test_a_long_chain_runs_on_the_machine_without_recursion():
    names = [("x0", R)] + [(f"x{k}", R) for k in range(1, 10_001)]
    body: Term = var(names[-1])
    for x, y in reversed(list(itertools.pairwise(names))):
        line = Fun((Pair((Fun((var(x),), symbols["sin"]), var(x))),), symbols["multiply"])
        body = let(y[0], Sum((line, var(x))), body)
    m = Machine()
    m.value(app(calculus.gradient(lam(names[0], body)), num(0.1)))
    assert (m.steps, m.calls, m.vjps) == (40_001, 20_000, 20_000)


def nested_closures(k: int) -> str:
    """f_0 = sin, f_k = \\z. let g = \\w. f_{k-1}(w z) in g z."""
    f = "\\z. sin(z)"
    for _ in range(k):
        f = f"\\z. let g = \\w. ({f}) (w * z) in g z"
    return f"pull({f}; \\_. covec(1)) 0.9"


def test_nested_closures_double_in_the_reducer_and_not_in_the_machine():
    found = [counts(nested_closures(k))[1] for k in range(1, 7)]
    assert found == [6, 17, 40, 87, 182, 373]  # extensional: each level runs its body again
    assert [machine_counts(nested_closures(k))[1:] for k in (1, 8, 32)] == [
        (2, 2),
        (9, 9),
        (33, 33),
    ]


def test_a_church_numeral_takes_the_same_for_each_iteration():
    def church(n: int) -> str:
        body = "f (" * n + "x" + ")" * n
        return f"pull(\\a. (\\f:R -> R. \\x:R. {body}) (\\y. y * a) 1; \\_. covec(1)) 1.1"

    steps = [counts(church(n))[0] for n in (2, 4, 6, 8)]
    assert steps[3] - steps[2] == steps[2] - steps[1] == steps[1] - steps[0] <= 2 * 89


@pytest.mark.slow("10,000 rounds: 2 s")
def test_a_fold_of_ten_thousand_runs_on_the_machine():
    text = "pull(\\x. fold (\\i. \\y. y * x) 1 (range 0i 10000i); \\_. covec(1)) 1"
    assert calculus.show(calculus.run(text)) == "covec(10000)"


# --- what the experiment left out -----------------------------------------------------------------


ORDERS = [
    ("J(f; 1) 2", "(2; 1 |>' covec(1))"),
    ("J(J(f; 1); 3) 2", "(2; 3, 1 |>' covec(1))"),
    ("J(J(J(f; 1); 3); 5) 2", "(2; 5, 3, 1 |>' covec(1))"),
    ("pull(f; \\_. covec(1)) 2 @ 4", "(2; 4 |>' covec(1))"),
]


@pytest.mark.parametrize(("use", "probe"), ORDERS)
def test_a_probe_may_have_any_number_of_directions(use, probe):
    text = f"pull(\\f:R -> R. {use}; \\_. covec(1)) (\\x. sin(x))"
    t = calculus.term(text)
    found = calculus.reduce(t)
    directions = sorted(p.held for p in found.parts[1:-1])
    wanted = calculus.term(probe)
    assert directions == sorted(p.held for p in wanted.parts[1:-1])
    # paired with x^4, it is the derivative of that order at 2
    product = 1.0
    for d in directions:
        product *= d
    value = {1: 32.0, 2: 48.0, 3: 48.0}[len(directions)] * product
    for k in (found, calculus.run(t)):
        paired = calculus.reduce(f"({calculus.show(k)}) @ (\\x. x * x * x * x)")
        assert paired.held == value


def test_third_order_through_a_function_argument():
    text = (
        "(pull(\\f:R -> R. pull(\\x. pull(f; \\_. covec(1)) x @ 1; \\_. covec(1)) 2 @ 1;"
        " \\_. covec(1)) (\\x. sin(x))) @ (\\x. x * x * x)"
    )
    assert calculus.reduce(text).held == 12.0
    assert read_back(Machine().value(calculus.term(text))).held == 12.0


def test_a_tag_is_not_confused_when_a_derivative_is_a_function_applied_within_itself():
    # d/dx at 0 of f(x) = \g. \y. g (x + y), applied in itself: the tags of both are apart
    text = "let d = J(\\x:R. \\g:R -> R. \\y:R. g (x + y); 1) 0 in d (d (\\z. sin(z))) 0.3"
    wanted = calculus.reduce("negative(sin(0.3))").held
    assert calculus.reduce(text).held == pytest.approx(wanted, abs=1e-15)
    assert calculus.run(text).held == pytest.approx(wanted, abs=1e-15)


def test_a_list_of_numbers_and_functions_is_differentiated_item_by_item():
    text = (
        "pull(\\l. fold (\\p. \\y. (fst p) (snd p) + y) 0 l; \\_. covec(1)) "
        "[<\\x:R. x * x, 3>, <\\x:R. sin(x), 0>]"
    )
    wanted = "covs[[3 |> covec(1)|covec(6)], [0 |> covec(1)|covec(1)]]"
    assert calculus.show(calculus.reduce(text)) == wanted
    assert calculus.show(calculus.run(text)) == wanted


EVERY_FUNCTIONAL = [
    ("pull(\\k:R^. k @ 3; \\_. covec(1)) covec(2)", "ev(3)"),
    ("pull(\\k:R^. covec(2); \\k. ev(k @ 5)) covec(1) @ covec(4)", "0"),
    ("dual(\\k:R^. k; ev(4)) @ covec(3)", "12"),
    ("dual(\\p:R * R. <snd p, fst p + snd p>; [covec(1)|covec(2)])", "[covec(2)|covec(3)]"),
    ("dual(\\<x, <y, z>>. <y, 3 * x + z>; [covec(1)|covec(2)])", "[covec(6)|[covec(1)|covec(2)]]"),
    ("dual(\\<f, y>. f 3 + y; covec(2)) @ <\\x. x * x, 5>", "28"),
    (
        "let rec f <n, y> = if less(n, 1) then y else f <n - 1, y * 2> in "
        "pull(\\y. f <3, y>; \\_. covec(1)) 1",
        "covec(8)",
    ),
    ("dual(\\f:R -> R. f 3; covec(2)) @ (\\x. x * x)", "18"),
    ("dual(\\r:R. scale(r, <1, 2>); [covec(3)|covec(4)])", "covec(11)"),
    ("dual(\\r:R. \\x:R. r * x; (5 |> covec(2)) + (1; 7 |>' covec(1)))", "covec(17)"),
    ("dual(\\l:List R. <head l, head (tail l)>; [covec(1)|covec(2)]) @ [3, 4]", "11"),
    ("dual(\\r:R. [r, 2 * r]; covs[covec(3), covec(4)])", "covec(11)"),
    ("dual(\\r:R. cons(r, [scale(2, r)]); covs[covec(3), covec(4)])", "covec(11)"),
    ("dual(\\v:R. covec(v); ev(3))", "covec(3)"),
    ("dual(\\v:R. [covec(v)|covec(2 * v)]; ev(<3, 4>))", "covec(11)"),
    ("dual(\\v:R. 5 |> covec(v); ev(\\x. x * x))", "covec(25)"),
    ("dual(\\v:R. (5; v |>' covec(1)); ev(\\x. x * x))", "covec(10)"),
    ("dual(\\v:R. J(\\x. x * x; v); (3 |> covec(1)) + (3; 2 |>' covec(1)))", "covec(10)"),
    ("dual(\\v:R. J{square}(v); (3 |> covec(1)) + (3; 2 |>' covec(1)))", "covec(10)"),
    ("dual(\\v:R. dual(\\w:R. w * v; covec(3)); ev(2))", "covec(6)"),
    ("dual(\\v:R. dual(\\w:R. 4 * w; covec(v)); ev(2))", "covec(8)"),
    ("dual(\\v:R. pull(\\x:R. x * x; \\_. covec(v)) 3; ev(2))", "covec(12)"),
    ("dual(\\v:R. if less(1, 2) then v else 2 * v; covec(3))", "covec(3)"),
    ("dual(\\f:R -> R. J(f; 2) 3; covec(5)) @ (\\x. x * x)", "60"),
    ("dual(\\v:R. ev(v); ev(covec(3)))", "covec(3)"),
    ("pull(\\x. (3 |> covec(x)) @ (\\y. y * x); \\_. covec(1)) 2", "covec(12)"),
    ("pull(\\x. (x |> covec(x)) @ (\\y. y * y); \\_. covec(1)) 2", "covec(12)"),
    ("pull(\\x. (x; x |>' covec(x)) @ (\\y. y * y * y); \\_. covec(1)) 1", "covec(12)"),
    ("J(\\x. scale(x, \\y:R. y * x); 1) 3 2", "12"),
    ("(J(\\x:R. covec(x * x); 1) 3) @ 5", "30"),
    ("(0:(R -> R)) 3 + (J(0:(R -> R); 1)) 2", "0"),
    ("(J(rec f n:R -> R. if less_equal(n, 0) then 1 else n * f (n - 1); 1)) 2.5", "5.75"),
]


@pytest.mark.parametrize(("text", "value"), EVERY_FUNCTIONAL)
def test_each_form_of_a_linear_map_is_transposed(text, value):
    assert calculus.show(calculus.reduce(text)) == value
    assert calculus.show(calculus.run(text)) == value

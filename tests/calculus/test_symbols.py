"""Function symbols: both evaluators differentiate each of them twice, as differences do."""

import numpy as np
import pytest

import lineara
from lineara import calculus
from lineara.calculus.symbols import Symbol, standard
from lineara.calculus.types import R
from lineara.errors import CalculusError

MOVING = {s.name: s for s in standard().values() if s.moves}
AT = {"acosh": (1.7,)}


def vector(numbers: tuple[float, ...]) -> str:
    return f"<{', '.join(map(str, numbers))}>" if len(numbers) > 1 else str(numbers[0])


def differences(symbol: Symbol, at: tuple[float, ...], along: tuple[float, ...]) -> float:
    """The second derivative along a line."""

    def f(t: float) -> float:
        return float(
            symbol.evaluate([np.float64(a + t * d) for a, d in zip(at, along, strict=True)])
        )

    h = 1e-4
    return (f(h) - 2 * f(0.0) + f(-h)) / h**2


@pytest.mark.parametrize("symbol", MOVING.values(), ids=list(MOVING))
def test_the_second_derivative_of_a_symbol(symbol: Symbol):
    n = 1 if symbol.takes == R else 2
    at, along = AT.get(symbol.name, (0.3, 0.6)[:n]), (1.0, 0.5)[:n]
    text = f"J(J(\\x. {symbol}(x); {vector(along)}); {vector(along)}) {vector(at)}"
    by_rules, by_machine = calculus.reduce(text).held, calculus.run(text).held
    assert by_machine == pytest.approx(by_rules, rel=1e-12, abs=1e-12)
    assert by_rules == pytest.approx(differences(symbol, at, along), rel=1e-4, abs=1e-5)


def test_a_lane_that_is_not_chosen_is_a_structural_zero():
    text = "pull(\\x. if less(x, 1) then 2 * x else sqrt(x - 1); \\_. covec(1)) 0"
    for evaluate in (calculus.reduce, calculus.run):
        assert calculus.show(evaluate(text)) == "covec(2)"
        chosen = evaluate("pull(\\x. maximum(x, sqrt(x) - 9); \\_. covec(1)) 0")
        assert calculus.show(chosen) == "covec(1)"


def test_infinities_are_numbers():
    for evaluate in (calculus.reduce, calculus.run):
        assert evaluate("pull(\\x. 1 / x; \\_. covec(1)) 0 @ 1").held == -np.inf


def test_special_functions_are_symbols():
    for f, g, x in (("gammaln", "digamma", 2.5), ("erf", "exp", 0.3), ("ndtr", "exp", 0.3)):
        slope = calculus.run(f"pull(\\x. {f}(x); \\_. covec(1)) {x} @ 1").held
        symbol = standard()[f]
        h = 1e-6
        differences = [float(symbol.evaluate([np.float64(x + s * h)])) for s in (1, -1)]
        assert slope == pytest.approx((differences[0] - differences[1]) / (2 * h), rel=1e-8)
        assert g in standard()
    with pytest.raises(CalculusError, match="there is no function betainc; did you mean"):
        calculus.term("betainc(<1, 2, 0.5>)")  # a symbol takes one number or a pair


VECTORS = [  # a text in <x, y> and w, R^2 each, and the same with NumPy
    ("sum_2(x) * sum_2(w)", lambda x, w: np.sum(x) * np.sum(w)),
    ("dot_2(<x, w>)", np.dot),
    ("dot_2(<x, cumsum_2(w)>)", lambda x, w: np.dot(x, np.cumsum(w))),
    ("sum_2(matvec_2(<<fst x, <snd x, w>>, x>))",
     lambda x, w: np.sum(np.reshape(np.concatenate([x, w]), (2, 2)) @ x)),
    ("sin(dot_2(<x, x>)) * dot_4(<<fst x, <snd x, w>>, <fst w, <snd w, x>>>)",
     lambda x, w: np.sin(np.dot(x, x)) * 2 * np.dot(x, w)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "f"), VECTORS)
def test_small_vector_primitives_are_symbols(text, f):
    term = calculus.term(f"\\x:R * R. \\w:R * R. {text}")
    x, w = (0.3, -0.7), (1.1, 0.4)
    made = calculus.function(term)
    assert made(x, w) == pytest.approx(f(np.array(x), np.array(w)), rel=1e-14)
    wanted = lineara.grad(f)(np.array(x), np.array(w))
    assert lineara.grad(made)(x, w) == pytest.approx(tuple(wanted), rel=1e-13)
    slope = f"\\u. pull(\\x:R * R. let w = <1.1, 0.4> in {text}; \\_. covec(1)) u"
    for evaluate in (calculus.run, calculus.reduce):
        found = evaluate(f"({slope}) <0.3, -0.7>")
        assert [p.parts[0].held for p in found.parts] == pytest.approx(list(wanted), rel=1e-13)
    second = f"\\u. J(\\u. ({slope}) u @ <1, 2>; <3, 4>) u"
    direction = np.array([3.0, 4.0])
    hvp = lineara.hvp(lambda x: f(x, np.array(w)))(np.array(x), direction) @ [1.0, 2.0]
    assert calculus.function(second)(x) == pytest.approx(hvp, rel=1e-12)
    assert calculus.linear_a(second)(x) == pytest.approx(hvp, rel=1e-12)


def test_vector_symbols_are_linear_where_they_are():
    for text in ("dual(\\v. sum_3(<v, v, 2 * v>); covec(3)) @ 1",
                 "dual(\\v. dot_2(<<v, 3 * v>, <3, 3>>); covec(1)) @ 1"):  # fmt: skip
        assert calculus.run(text).held == calculus.reduce(text).held == 12.0


def test_a_symbol_of_a_file_with_the_name_of_one_of_the_library_is_its_own():
    text = "symbol add x y = x * y symbol multiply x y = x + y in add(2, 3) * add(1, 5) - 1"
    assert calculus.run(text).held == calculus.reduce(text).held == 29.0
    with pytest.raises(CalculusError, match=r"add\(v, v\) is not linear in it"):
        calculus.run("symbol add x y = x * y in dual(\\v. add(v, v); covec(1)) @ 3")


ZEROS = [
    ("J(\\x. power(x, 2); 1) (-3)", -6.0),
    ("J(J(\\x. power(x, 2); 1); 1) (-3)", 2.0),
    ("pull(\\x. pull(\\x. power(x, 3); \\_. covec(1)) x @ 1; \\_. covec(1)) (-3) @ 1", -18.0),
]


@pytest.mark.parametrize(("text", "value"), ZEROS)
def test_what_does_not_move_meets_no_partial(text, value):
    # log(-3) is in the partial with respect to the exponent, which is a constant
    assert calculus.run(text).held == calculus.reduce(text).held == value

"""Function symbols: both evaluators differentiate each of them twice, as differences do."""

import numpy as np
import pytest

from lineara import calculus
from lineara.calculus.symbols import Symbol, standard
from lineara.calculus.types import R

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

"""A function of Python given to one of the calculus: values, derivatives of any order, refusals."""

import math
from math import cos, sin

import numpy as np
import pytest

import lineara
from lineara import calculus, grad, probed
from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.calculus.python_calls import foreign
from lineara.calculus.terms import app
from lineara.calculus.types import Arrow, R
from lineara.errors import CalculusError

NTH = (  # the n-th derivative, by pulls in pulls, by Js in Js, and mixed
    "\\f:R -> R. \\x. f x",
    "\\f:R -> R. \\x. pull(f; \\_. covec(1)) x @ 1",
    "\\f:R -> R. \\x. J(\\x. pull(f; \\_. covec(1)) x @ 1; 1) x",
    "\\f:R -> R. \\x. pull(\\x. J(\\x. pull(f; \\_. covec(1)) x @ 1; 1) x; \\_. covec(1)) x @ 1",
)
SINES = (sin, cos, lambda x: -sin(x), lambda x: -cos(x))


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("f", [np.sin, math.sin, lambda x: np.sin(np.array([x, 1.0]))[0]])
def test_a_function_of_python_has_derivatives_of_every_order(n, f):
    assert calculus.function(NTH[n])(f, 0.3) == pytest.approx(SINES[n](0.3), abs=1e-14)
    t = app(app(calculus.term(NTH[n]), foreign(f, Arrow(R, R))), calculus.term("0.3"))
    assert float(calculus.show(calculus.reduce(t))) == pytest.approx(SINES[n](0.3), abs=1e-14)


@pytest.mark.parametrize("n", range(3))
def test_what_it_captured_is_differentiated_by_the_eager_engine(n):
    a, x = 1.5, 0.3
    found = grad(lambda a: calculus.function(NTH[n])(lambda x: np.sin(a * x), x))(a)
    # d/da of a^n sin^(n)(a x)
    n_th, next_ = SINES[n](a * x), SINES[n + 1](a * x)
    assert found == pytest.approx(n * a ** (n - 1) * n_th + a**n * x * next_, abs=1e-14)


def test_it_is_an_argument_whose_gradient_is_asked_for():
    bag = calculus.function("\\f:R -> R. pull(\\f:R -> R. f 2 * f 3; \\_. covec(1)) f")
    assert calculus.show(bag(lambda x: x * x)) == "(3 |> covec(4)) + (2 |> covec(9))"
    product = calculus.function("\\f:R -> R. f 2 * f 3")
    assert [p[:2] for p in grad(product)(probed(np.sin)).probes] == [(2.0, sin(3)), (3.0, sin(2))]
    slope = calculus.function(NTH[1])
    assert grad(lambda f: slope(f, 2.0))(probed(np.sin)).probes[0].along == (1.0,)


def test_products_and_several_arguments_are_as_in_python():
    turned = calculus.function("\\f:R * R -> R * R. \\x. fst (f <x, 2>) * snd (f <3, x>)")
    f = lambda p: (p[0] * p[1], p[0] + p[1])  # noqa: E731
    assert turned(f, 5.0) == 80.0
    assert grad(turned, argnums=1)(f, 5.0) == 2 * (3 + 5) + 2 * 5
    twice = calculus.function("\\f:R -> R -> R. pull(\\x. f x x; \\_. covec(1)) 3 @ 1")
    assert twice(lambda x, y: x * x * y) == 27.0
    spread = calculus.function("\\f:R -> R * R * R. let <a, r> = f 2 in a + fst r * snd r")
    assert spread(lambda x: (x, x + 1, x + 2)) == 14.0


def test_a_function_of_functions_is_read():
    both = calculus.function("\\f:(R -> R) -> R. f sin * f cos")
    assert both(lambda g: g(1.0)) == sin(1) * cos(1)
    with pytest.raises(CalculusError) as caught:
        both(lambda x: x)
    assert caught.value.message.startswith("(R -> R) -> R is asked for, and <function ")
    with pytest.raises(CalculusError, match="is no function whose source can be read"):
        both(len)


def test_a_function_is_one_symbol_of_the_trace():
    t = app(calculus.term("\\f:R -> R. pull(f; \\_. covec(1)) 0"), foreign(np.sin, Arrow(R, R)))
    calls = [s for s in calculus.trace(t) if s.rule.name == "symbol at numbers"]
    assert [calculus.show(s.redex()) for s in calls] == ["sin(0)"]


PRODUCT = "\\f:R -> R. f 2 * f 3"
REFUSED = [
    (lambda: calculus.function(PRODUCT)(lambda x: [x, x]),
     "python gives [2.0, 2.0], and R is asked for"),
    (lambda: calculus.function("\\f:R -> R * R. fst (f 2)")(np.sin),
     f"sin gives {np.sin(2.0)!r}, and R * R is asked for"),
    (lambda: calculus.function(PRODUCT)(3.0),
     "R -> R is asked for, and 3.0 is given: give a function, or a term of the calculus, such as "
     "calculus.term(r'\\x. x * x')"),
    (lambda: calculus.linear_a(app(calculus.term("\\f:R -> R. \\x. if less(x, 2) then f x else x"),
                                   foreign(np.sin, Arrow(R, R)))),
     "linear_a: sin is a function of Python that is only called, and here numbers decide a choice, "
     "so that the text of all functions is needed; calculus.of reads it"),
    (lambda: diagram_of(app(calculus.term(PRODUCT), foreign(np.sin, Arrow(R, R)))),
     "sin is a function of Python that is only called; calculus.of reads its text"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "said"), REFUSED)
def test_what_is_refused_says_what_would_work(act, said):
    with pytest.raises(lineara.errors.LinearaError) as caught:
        act()
    assert caught.value.message.split("\n")[0] == said

"""`calculus.of`: Python functions as terms, and what has no counterpart, with its line."""

import math

import numpy as np
import pytest

import lineara
from lineara import calculus
from lineara.errors import CalculusError

FACTOR = 2.5


def helper(u):
    return np.sin(u) * FACTOR


def model(x, y):
    """A docstring."""
    z = x * y + 1

    def g(w):
        return helper(w) ** 2 - z

    a, b, c = g(x), max(y, 0.3), math.exp(-x)
    for i in range(3):
        a += b * i
    if a > 0 and not y < -1:
        a = a + c
    else:
        return z
    return (lambda k: k(a) / 2)(g) if x < 1e9 else a


def factorial(n):
    return 1.0 if n <= 0 else n * factorial(n - 1)


def twice(f, x):
    return f(f(x))


def local_recursion(x):
    def power(n, y):
        return y if n <= 0 else power(n - 1, y * x)

    return power(3, 1.0)


@pytest.mark.parametrize(
    ("f", "at"), [(model, (0.7, 0.4)), (model, (-0.2, -1.4)), (local_recursion, (1.3,))]
)
def test_a_function_and_its_term_have_the_same_value_and_gradient(f, at):
    made = calculus.function(calculus.of(f))
    assert made(*at) == pytest.approx(f(*at), rel=1e-14)
    for i in range(len(at)):
        by_term, direct = (lineara.grad(g, argnums=i)(*at) for g in (made, f))
        assert by_term == pytest.approx(direct, rel=1e-12)


def test_a_python_function_is_shown_as_a_term():
    scale = 3
    assert calculus.show(calculus.of(lambda x: scale * np.tanh(x))) == (
        "let function = \\x:R. multiply(3, tanh(x)) in function"
    )
    assert calculus.type_of(calculus.of(twice)) == "(R -> R) -> R -> R"
    assert calculus.function(calculus.of(factorial))(5.0) == 120.0


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (math.sin, r"\x%1:R. sin(x%1)"),
        (np.multiply, r"\x%1:R * R. multiply(x%1)"),
        (abs, r"\x%1:R. abs(x%1)"),
    ],
)
def test_an_operation_is_its_symbol_and_a_term_prints_as_its_text(f, text):
    found = calculus.of(f)
    assert repr(found) == f"{found}" == calculus.show(found)
    assert calculus.show(calculus.term(repr(found))) == repr(found)
    assert repr(found) == text


def test_a_name_that_the_calculus_reserves_gets_a_prime():
    def f(fst, sin):
        let = fst * sin
        return let

    assert calculus.function(calculus.of(f))(2.0, 3.0) == 6.0


def loops(x):
    while x > 0:
        x = x - 1
    return x


def falls_off(x):
    x = x + 1


def late(x):
    z = x
    g = lambda w: w * z  # noqa: E731
    z = 2 * x
    return g(z)


def attribute(x):
    return x.real


def starred(*xs):
    return xs[0]


def mixed(x):
    return x + (x < 1)


REFUSED = [
    (loops, "`while` has no counterpart in the calculus; a recursion or a fold has",
     "while x > 0:"),
    (falls_off, "this ends without a return, and a term has a value", "def falls_off(x):"),
    (late, "this function reads z, which changes after it is made, and Python would read the later "
     "value; give what changes another name", "lambda w: w * z"),
    (attribute, "`x.real` has no counterpart in the calculus", "x.real"),
    (starred, "a function of the calculus has plain arguments, one or more", "def starred(*xs):"),
    (mixed, "expected R, found Bool; summands have one type", "x < 1"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "said", "at"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_has_no_counterpart_is_refused_at_its_place(f, said, at):
    with pytest.raises(CalculusError) as caught:
        calculus.of(f)
    head, line, caret = caught.value.message.split("\n")
    assert head.startswith(f"{__file__}:")
    assert head.split(": ", 1)[1] == said
    assert line[caret.index("^") :].startswith(at)


def test_what_has_no_source_is_refused():
    made = eval("lambda x: x")
    with pytest.raises(CalculusError, match="its source is not there; define it in a file"):
        calculus.of(made)
    with pytest.raises(CalculusError) as caught:
        calculus.of(len)
    assert str(caught.value) == "builtins.len is no function whose source can be read"


# --- Linear A, and the two cotangents of a closure ------------------------------------------------


def test_a_program_takes_numbers():
    with pytest.raises(CalculusError, match=r"^linear_a: an argument .* not R -> R$"):
        calculus.linear_a("\\f:R -> R. f 2")


def test_the_cotangent_of_a_closure_is_that_of_what_it_captured():
    # a bag of probes on functions, pulled back along the environment's map to the closure
    bag = "(5 |> covec(1)) + (7; 1 |>' covec(2))"
    closure = "\\a. let h = \\y. y * a in \\x. h x + 3 * x"
    for evaluate in (calculus.run, calculus.reduce):
        found = evaluate(f"pull({closure}; \\_. {bag}) 2")
        assert calculus.show(found) == "covec(7)"  # of a x + 3 x: 5 at 5, and twice 1, the slope
        both = evaluate(f"pull(\\p:(R -> R) * R. \\x. fst p x + snd p * x; \\_. {bag}) <sin, 3>")
        on_sin, on_three = both.parts
        assert calculus.show(on_three) == "covec(7)"
        at_squares = evaluate(f"({calculus.show(on_sin)}) @ (\\y. y * y)")
        assert at_squares.held == 25 + 2 * 2 * 7

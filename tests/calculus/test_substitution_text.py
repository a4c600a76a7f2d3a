"""t[x/u]: an explicit substitution is a term, the one that `let x = u in t` is."""

import pytest

from lineara import calculus
from lineara.errors import CalculusError


@pytest.mark.parametrize(
    ("text", "same", "value"),
    [
        ("(x * x)[x/3]", "let x = 3 in x * x", "9"),
        ("x[x/y][y/2]", "let y = 2 in let x = y in x", "2"),
        ("sin(x)[x / 0]", "let x = 0 in sin(x)", "0"),
        ("fst p[p/<1, 2>]", "fst (let p = <1, 2> in p)", "1"),
        (r"(\y. x * y)[x/2] 3", r"(let x = 2 in \y. x * y) 3", "6"),
        ("let x = 5 in x[x/x + 1]", "let x = 5 in let x = x + 1 in x", "6"),
        ("f[f/\\x. x * x] 3", "(let f = \\x. x * x in f) 3", "9"),
    ],
)
def test_a_substitution_is_a_let(text: str, same: str, value: str):
    assert calculus.show(calculus.term(text)) == calculus.show(calculus.term(same))
    assert calculus.show(calculus.run(text)) == value


def test_a_space_makes_it_an_application_to_a_list():
    assert calculus.show(calculus.run(r"let f = \l. head l in f [6/2]")) == "3"
    assert calculus.show(calculus.run(r"let f = \l. head l in let x = 6 in f [x/2, 1]")) == "3"


def test_its_gradient_is_that_of_the_let():
    text = r"pull(\a. (x * sin(x))[x/a * a]; \z. covec(1)) 0.7"
    let = r"pull(\a. let x = a * a in x * sin(x); \z. covec(1)) 0.7"
    assert calculus.show(calculus.run(text)) == calculus.show(calculus.run(let))


def test_an_unfinished_substitution_shows_its_place():
    with pytest.raises(CalculusError) as caught:
        calculus.term("(x * x)[x/]")
    assert caught.value.message.splitlines()[0].startswith("1:11: ']' is not expected here")

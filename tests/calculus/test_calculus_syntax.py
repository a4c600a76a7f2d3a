"""The language: what a text stands for, its type, its canonical text, and what an error shows."""

import pytest

from lineara import calculus
from lineara.calculus import types as ty
from lineara.calculus.parse import parse
from lineara.calculus.symbols import standard
from lineara.errors import CalculusError

# A text, its canonical form, its type.
TEXTS = [
    ("1.50", "1.5", "R"),
    ("let f x y = x * y in f 3 -4", "let f = \\x:R. \\y:R. multiply(x, y) in f 3 -4", "R"),
    ("\\x. x - 1", "\\x:R. subtract(x, 1)", "R -> R"),
    ("\\x. -x / 2", "\\x:R. divide(negative(x), 2)", "R -> R"),
    ("\\x. sin", "\\x:R. \\x%1:R. sin(x%1)", "R -> R -> R"),
    ("\\x y. x y", "\\x:R -> R. \\y:R. x y", "(R -> R) -> R -> R"),
    ("\\<x, y>. x * y",
     "\\xy%0:R * R. let x = fst xy%0 in let y = snd xy%0 in multiply(x, y)", "R * R -> R"),
    ("\\<x, y, <u, v>>. x + y * u + v",
     "\\xyuv%0:R * R * R * R. let x = fst xyuv%0 in let y = fst (snd xyuv%0) in "
     "let uv%0 = snd (snd xyuv%0) in let u = fst uv%0 in let v = snd uv%0 in "
     "x + multiply(y, u) + v", "R * R * R * R -> R"),
    ("dual(\\<x, y>. 2 * x + y; covec(1))",
     "dual(\\xy%0:R * R. let x = fst xy%0 in let y = snd xy%0 in multiply(2, x) + y; covec(1))",
     "(R * R)^"),
    ("let f <x, y> = x * y in f <2, 3>",
     "let f = \\xy%0:R * R. let x = fst xy%0 in let y = snd xy%0 in multiply(x, y) in f <2, 3>",
     "R"),
    ("<1, 2, 3>", "<1, <2, 3>>", "R * R * R"),
    ("(1 + 2) + 3 + 4", "(1 + 2) + 3 + 4", "R"),
    ("J{sin}(2) 3", "J{sin}(2) 3", "R"),
    ("J(\\x. x; 1) 2", "J(\\x:R. x; 1) 2", "R"),
    ("dual(\\v. let w = 2 * v in w + v; covec(1))",
     "dual(\\v:R. let w = multiply(2, v) in w + v; covec(1))", "R^"),
    ("[covec(1)|covec(<1, 2>)] @ <1, 2, 3>", "[covec(1)|covec(<1, 2>)] @ <1, <2, 3>>", "R"),
    ("1 |> 2 |> covec(1)", "1 |> 2 |> covec(1)", "(R -> R -> R)^"),
    ("(1; 2, 3 |>' covec(1))", "(1; 2, 3 |>' covec(1))", "(R -> R)^"),
    ("ev(3) @ covec(2)", "ev(3) @ covec(2)", "R"),
    ("0:(R -> R)^", "0:(R -> R)^", "(R -> R)^"),
    ("scale(2, <1, 2>)", "scale(2, <1, 2>)", "R * R"),
    ("2i * 3i + 1i", "iadd(imul(2i, 3i), 1i)", "Int"),
    ("if less(1, 2) then [1] else []", "if less(1, 2) then [1] else []", "List R"),
    ("let rec f x = f x in f 1", "let f = rec f x:R -> R. f x in f 1", "R"),
    ("covs[covec(1)]", "covs[covec(1)]", "(List R)^"),
    ("(\\x. x : (R * R) -> R * R)", "\\x:R * R. x", "R * R -> R * R"),
    ("let sin = 1 in sin  # a comment", "let sin%1 = 1 in sin%1", "R"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown", "stated"), TEXTS, ids=[t[0] for t in TEXTS])
def test_a_text_has_a_type_and_a_canonical_form_that_reads_back(text, shown, stated):
    made = calculus.term(text)
    assert calculus.show(made) == shown
    assert calculus.type_of(made) == stated
    again = calculus.term(shown)
    assert (calculus.show(again), again.type) == (shown, made.type)
    assert calculus.check(made) == made.type


def test_a_definition_is_as_general_as_it_can_be():
    text = "def twice f x = f (f x) in <twice (\\x. x * x) 3, twice (\\p. <snd p, fst p>) <1, 2>>"
    assert calculus.type_of(text) == "R * R * R"
    assert calculus.show(calculus.run(text)) == "<81, <1, 2>>"


def test_a_long_program_is_read_without_recursion():
    lines = [f"let x{k} = x{k - 1} + 1 in" for k in range(1, 1501)]
    text = "let x0 = 0 in " + "\n".join(lines) + " x1500"
    assert calculus.show(calculus.run(text)) == "1500"


# --- errors ---------------------------------------------------------------------------------------

ERRORS = [
    ("fst 3",
     "1:5: expected a * b, found R; fst takes a pair\n  fst 3\n      ^"),
    ("let f = \\x. x in\nf <1, 2> + ff",
     "2:12: ff is not known here; did you mean f?\n  f <1, 2> + ff\n             ^"),
    ("(\\f. f 1) 2",
     "1:11: expected R -> a, found R; this is what the function before it takes\n"
     "  (\\f. f 1) 2\n            ^"),
    ("3 4",
     "1:1: expected a -> b, found R; only a function is applied; a difference has a space after "
     "the minus: x - 1\n  3 4\n  ^"),
    ("\\x. x x",
     "1:7: expected a, found a -> b; this is what the function before it takes\n"
     "  \\x. x x\n        ^"),
    ("pull(\\x. x; 3)",
     "1:13: expected a -> a^, found R; the 1-form w maps a result of t to a functional on such "
     "results\n  pull(\\x. x; 3)\n              ^"),
    ("sine(2)",
     "1:1: there is no function sine; did you mean sin?\n  sine(2)\n  ^"),
    ("let sin = \\x. x in sin(3)",
     "1:20: sin(…) is the function symbol, but sin is bound here too; apply the variable with a "
     "space, sin (…), or give it another name\n  let sin = \\x. x in sin(3)\n"
     "                     ^"),
    ("dual(\\x. 2 * (x * x); covec(1))",
     "1:17: dual needs a map that is linear in x, and multiply(x, x) is not linear in it; linear "
     "are sums, pairs, fst, snd, a product with what does not contain it, and it as the function "
     "that is applied\n  dual(\\x. 2 * (x * x); covec(1))\n                  ^"),
    ("dual(\\<x, y>. x * y; covec(1))",
     "1:17: dual needs a map that is linear in <x, y>, and multiply(x, y) is not linear in it; "
     "linear are sums, pairs, fst, snd, a product with what does not contain it, and it as the "
     "function that is applied\n  dual(\\<x, y>. x * y; covec(1))\n                  ^"),
    ("dual(\\x. x + 1; covec(1))",
     "1:14: dual needs a map that is linear in x, and 1 is not linear in it; linear are sums, "
     "pairs, fst, snd, a product with what does not contain it, and it as the function that is "
     "applied\n  dual(\\x. x + 1; covec(1))\n               ^"),
    ("covec([1])",
     "1:1: covec is for R and its products, found List R; on functions there are probes, V |> K, "
     "on lists covs[K, K]\n  covec([1])\n  ^"),
    ("true + false",
     "1:1: Bool is not added; there are and(…), or(…), not(…)\n  true + false\n  ^"),
    ("<1, 2> * <3, 4>",
     "1:8: * is for numbers, found R * R; scale(r, S) multiplies any vector, a + scale(-1, b) is "
     "a difference\n  <1, 2> * <3, 4>\n         ^"),
    ("0:Bool", "1:1: Bool has no zero: nothing in it moves\n  0:Bool\n  ^"),
    ("J{sign}(1)",
     "1:3: sign is locally constant, so J{sign} is zero; leave it out\n  J{sign}(1)\n    ^"),
    ("let rec f = 3 in f",
     "1:9: f takes nothing, so it cannot be recursive; write rec f x\n"
     "  let rec f = 3 in f\n          ^"),
    ("(1 + ", "1:6: the text ends here; expected a term\n  (1 + \n       ^"),
    ("let x 3",
     "1:7: '3' is not expected here; expected '(' or ':' or '<' or '=' or a name\n"
     "  let x 3\n        ^"),
    ("1 ? 2", "1:3: the character '?' has no meaning\n  1 ? 2\n    ^"),
    ("symbol f x = \\y. x in f(1)",
     "1:8: a function symbol maps numbers to numbers, but f is R -> R -> R\n"
     "  symbol f x = \\y. x in f(1)\n         ^"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), ERRORS, ids=[e[0] for e in ERRORS])
def test_an_error_shows_the_place_what_was_found_and_a_mend(text, said):
    with pytest.raises(CalculusError) as caught:
        calculus.term(text)
    assert caught.value.message == said


def test_fuel_names_the_loop():
    text = "let rec loop x = loop x in loop 1"
    for evaluate in (calculus.run, calculus.reduce):
        with pytest.raises(CalculusError) as caught:
            evaluate(text, fuel=50)
        assert caught.value.message == (
            "loop was unfolded until 50 calls of recursive functions were spent; if it ends, "
            "give it more fuel"
        )


@pytest.mark.parametrize("word", ["head", "tail"])
def test_an_empty_list_has_no_first_item(word):
    for evaluate in (calculus.run, calculus.reduce):
        with pytest.raises(CalculusError, match=f"^{word} of an empty list; ask isnil before$"):
            evaluate(f"{word} (tail [1])")


def test_an_open_term_is_not_evaluated():
    body = calculus.term("\\x. x").parts[0]
    with pytest.raises(CalculusError, match=r"^only a closed term is reduced, and x is free here$"):
        calculus.reduce(body)


# --- files ----------------------------------------------------------------------------------------


def test_a_file_imports_another(tmp_path):
    (tmp_path / "a.pb").write_text("def double x = x + x")
    (tmp_path / "b.pb").write_text('import "a.pb"\nin double 4')
    assert calculus.show(calculus.run(calculus.read(str(tmp_path / "b.pb")).term())) == "8"


def test_an_import_that_fails_shows_its_line(tmp_path):
    file = tmp_path / "b.pb"
    file.write_text('import "no.pb"\nin 4')
    with pytest.raises(CalculusError) as caught:
        calculus.read(str(file))
    assert caught.value.message == (
        f"{file}:1:8: {tmp_path}/no.pb: cannot be read: No such file or directory\n"
        '  import "no.pb"\n         ^'
    )


def test_a_file_does_not_import_itself(tmp_path):
    (tmp_path / "a.pb").write_text('import "b.pb"\ndef x = 1')
    (tmp_path / "b.pb").write_text('import "a.pb"\nin 4')
    with pytest.raises(CalculusError, match=r"a\.pb:1:8: b\.pb imports itself, by way of "):
        calculus.read(str(tmp_path / "b.pb"))


def test_an_error_in_an_imported_file_is_shown_there(tmp_path):
    (tmp_path / "a.pb").write_text("def x = fst 1")
    (tmp_path / "b.pb").write_text('import "a.pb"\nin 4')
    with pytest.raises(CalculusError, match=r"a\.pb:1:13: expected a \* b, found R"):
        calculus.read(str(tmp_path / "b.pb"))


def test_the_places_of_a_tree():
    found = parse("let x = 1 in\n  x + 2").term
    assert found is not None
    assert found.parts[1].parts[1].place == (2, 7)


def test_no_definition_of_the_prelude_is_called_as_a_symbol_is():
    assert standard().keys().isdisjoint(calculus.program("1").definitions)


def test_an_operation_with_an_order_is_no_symbol():
    assert {"polygamma", "bessel_i", "length"}.isdisjoint(standard())
    assert {"tanh", "copysign", "hypot"} <= standard().keys()


# --- what is no term, and what is no type ---------------------------------------------------------


@pytest.mark.parametrize("asked", ["run", "type_of", "gradient", "function", "linear_a", "reduce"])
def test_what_is_neither_a_term_nor_a_text_is_an_error_in_words(asked):
    with pytest.raises(CalculusError) as caught:
        getattr(calculus, asked)(3.5)
    assert str(caught.value) == (
        f"calculus.{asked} takes a term or a text, such as r'\\x. x * x', and got 3.5; "
        "calculus.of(f) is the term of a Python function"
    )


@pytest.mark.parametrize("asked", ["show", "check"])
def test_what_is_no_term_is_an_error_in_words(asked):
    with pytest.raises(CalculusError) as caught:
        getattr(calculus, asked)("x")
    assert str(caught.value) == (
        f"calculus.{asked} takes a term, and got 'x'; calculus.term reads one"
    )


@pytest.mark.parametrize("foreign", [float, 3, None, "R"])
@pytest.mark.parametrize("around", [lambda t: t, ty.Dual, lambda t: ty.Arrow(ty.R, t)])
def test_what_is_no_type_is_an_error_in_words_wherever_it_lies(around, foreign):
    with pytest.raises(CalculusError) as caught:
        ty.show(around(foreign))
    assert str(caught.value) == (
        f"calculus.types.show: {foreign!r} is no type of the calculus; a type is R, INT, BOOL, "
        "or a Product, Arrow, Dual, ListOf, Row or Hole"
    )

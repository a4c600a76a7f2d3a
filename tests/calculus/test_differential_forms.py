"""Differential forms: their algebra, d, pullbacks and Stokes' theorem, on random forms and maps."""

import itertools
import math

import numpy as np
import pytest

import lineara
from lineara import calculus
from lineara.calculus import Form, boundary, coordinates, form
from lineara.errors import CalculusError

SEEDS = range(4)
NAMES = "xyz"


def pattern(n: int) -> str:
    return "\\" + (NAMES[0] if n == 1 else f"<{', '.join(NAMES[:n])}>")


class Draw:
    """Random polynomials and sines, forms, maps, points: of a seed."""

    def __init__(self, seed: int, polynomial: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.polynomial = polynomial

    def number(self) -> float:
        return round(float(self.rng.uniform(-1, 1)), 3)

    def expression(self, n: int) -> str:
        def factor() -> str:
            x = NAMES[self.rng.integers(n)]
            return x if self.polynomial or self.rng.random() < 0.6 else f"sin({x} + {x} * x)"

        return " + ".join([f"{self.number()} * {factor()} * {factor()}" for _ in range(2)])

    def form(self, n: int, k: int) -> Form:
        dx = [c.d() for c in coordinates(n)]
        total = None
        for chosen in itertools.combinations(range(n), k):
            part = form(f"{pattern(n)}. {self.expression(n)}")
            for i in chosen:
                part = part * dx[i]
            total = part if total is None else total + part
        assert total is not None
        return total

    def map(self, m: int, n: int) -> str:
        results = [self.expression(m) for _ in range(n)]
        return f"{pattern(m)}. " + (results[0] if n == 1 else f"<{', '.join(results)}>")

    def point(self, n: int):
        numbers = tuple([self.number() for _ in range(n)])
        return numbers[0] if n == 1 else numbers

    def at(self, w: Form, n: int) -> tuple:
        return tuple([self.point(n) for _ in range(w.degree + 1)])


def same(draw: Draw, n: int, a: Form, b: Form) -> None:
    assert (a.space, a.degree) == (b.space, b.degree)
    for _ in range(2):
        at = draw.at(a, n)
        assert a(*at) == pytest.approx(b(*at), rel=1e-9, abs=1e-11)


SHAPES = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_d_of_d_is_zero(n, k, seed):
    draw = Draw(seed)
    w = draw.form(n, k).d().d()
    assert w(*draw.at(w, n)) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 2, 0), (2, 2, 1), (2, 3, 1), (3, 2, 1), (3, 3, 2)])
def test_d_is_natural(m, n, k, seed):
    draw = Draw(seed)
    f, w = draw.map(m, n), draw.form(n, k)
    same(draw, m, w.d().pullback(f), w.pullback(f).d())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "k", "q"), [(2, 0, 1), (2, 1, 0), (3, 1, 1), (3, 0, 2), (1, 0, 0)])
def test_d_is_a_derivation(n, k, q, seed):
    draw = Draw(seed)
    a, b = draw.form(n, k), draw.form(n, q)
    same(draw, n, (a * b).d(), a.d() * b + (-1) ** k * (a * b.d()))


@pytest.mark.parametrize("seed", SEEDS)
def test_pullbacks_compose_and_keep_products(seed):
    draw = Draw(seed)
    f, g, a, b = draw.map(2, 3), draw.map(3, 2), draw.form(2, 1), draw.form(2, 1)
    both = rf"\p. ({g}) (({f}) p)"
    same(draw, 2, a.pullback(both), a.pullback(g).pullback(f))
    same(draw, 3, (a * b).pullback(g), a.pullback(g) * b.pullback(g))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_wedge_product_is_graded_and_associative(seed):
    draw = Draw(seed)
    a, b, c = draw.form(3, 1), draw.form(3, 2), draw.form(3, 1)
    same(draw, 3, a * b, b * a)
    same(draw, 3, a * c, -(c * a))
    same(draw, 3, (a * c) * a, a * (c * a))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_form_is_multilinear_and_alternating(seed):
    draw = Draw(seed)
    w = draw.form(3, 1).d()
    p, u, v, s = [np.array(draw.point(3)) for _ in range(4)]

    def at(*vectors: np.ndarray) -> float:
        return w(tuple(p), *[tuple(x) for x in vectors])

    assert at(u, v) == pytest.approx(-at(v, u), rel=1e-12)
    assert at(u, u) == pytest.approx(0, abs=1e-14)
    assert at(2 * u + s, v) == pytest.approx(2 * at(u, v) + at(s, v), rel=1e-9)


@pytest.mark.parametrize("n", [2, 3])
def test_a_product_of_coordinates_is_the_minor_of_a_determinant(n):
    draw = Draw(0)
    dx = [c.d() for c in coordinates(n)]
    for chosen in itertools.permutations(range(n), 2):
        vectors = np.array([draw.point(n), draw.point(n)])
        area = (dx[chosen[0]] * dx[chosen[1]])(draw.point(n), *map(tuple, vectors))
        assert area == pytest.approx(np.linalg.det(vectors[:, chosen]), rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_volume_pulls_back_to_the_determinant_of_the_jacobian(seed):
    draw = Draw(seed)
    f, at = draw.map(3, 3), draw.point(3)
    x, y, z = coordinates(3)
    volume = (x.d() * y.d() * z.d()).pullback(f)
    g = calculus.function(f)
    matrix = lineara.jacobian(lambda p: np.stack(g((p[0], p[1], p[2]))))(np.array(at))
    found = volume(at, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    assert found == pytest.approx(np.linalg.det(matrix), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_one_form_pulls_back_as_the_term_pull_does(seed):
    draw = Draw(seed)
    f, w = draw.map(2, 3), rf"{pattern(3)}. covec(<{', '.join([draw.expression(3)] * 3)}>)"
    p, v = draw.point(2), draw.point(2)
    reverse = calculus.function(rf"\p v. pull({f}; {w}) p @ v")(p, v)
    assert form(w).pullback(f)(p, v) == pytest.approx(reverse, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_interior_product_is_a_derivation_of_square_zero(seed):
    draw = Draw(seed)
    field, a, b = draw.map(3, 3), draw.form(3, 1), draw.form(3, 2)
    same(draw, 3, (a * b).interior(field), a.interior(field) * b - a * b.interior(field))
    assert b.interior(field).interior(field)(draw.point(3)) == pytest.approx(0, abs=1e-14)


# --- Stokes ---------------------------------------------------------------------------------------


def flux(w: Form, cell: str) -> float:
    return math.fsum([sign * w.integral(face, 6) for sign, face in boundary(cell)])


def box(draw: Draw, n: int) -> str:
    sides = [f"{draw.number()} + {draw.number()} * {NAMES[i]}" for i in range(n)]
    return f"{pattern(n)}. " + (sides[0] if n == 1 else f"<{', '.join(sides)}>")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_stokes_on_a_box(n, seed):
    draw = Draw(seed, polynomial=True)
    w, cell = draw.form(n, n - 1), box(draw, n)
    assert w.d().integral(cell, 3) == pytest.approx(flux(w, cell), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_stokes_on_a_curved_surface_in_space(seed):
    draw = Draw(seed, polynomial=True)
    w, cell = draw.form(3, 1), draw.map(2, 3)
    assert w.d().integral(cell, 5) == pytest.approx(flux(w, cell), rel=1e-9, abs=1e-11)


# --- other spaces, other evaluators, errors -------------------------------------------------------


def test_a_form_on_functions():
    # F(f) = f 1 * f 2 and G(f) = f 3, so F dG at f on u is f 1 f 2 u 3
    w = form(r"\f:R -> R. f 1 * f 2") * form(r"\f:R -> R. f 3").d()
    square, cube = calculus.term(r"\x. x * x"), calculus.term(r"\x. x * x * x")
    assert w(square, cube) == 4.0 * 27.0
    # d(F dG) on u, v is (u 1 f 2 + f 1 u 2) v 3 - (v 1 f 2 + f 1 v 2) u 3
    assert w.d()(square, cube, square) == (1 * 4 + 1 * 8) * 9 - (1 * 4 + 1 * 4) * 27


def test_the_rules_give_what_the_machine_gives():
    x, y = coordinates(2)
    w = (x * x * y * y.d()).d()
    at = f"({calculus.show(w.term)}) <3, 5> <1, 2> <4, -1>"
    assert calculus.show(calculus.reduce(at)) == calculus.show(calculus.run(at)) == "-270"


def test_a_form_is_differentiated_by_the_library_too():
    x, y = coordinates(2)
    w = x * y * y.d()
    assert lineara.grad(lambda a: w((a, 5.0), (0.0, 1.0)))(2.0) == 5.0


REFUSED = [
    (lambda x, y: form(r"\x. <x, x>"),
     "a form begins as a function s -> R or as a 1-form s -> s^, and this is R -> R * R; those of "
     "higher degree are made by d, * and pullback"),
    (lambda x, y: x + y.d(),
     "a form of degree 0 on R * R + a form of degree 1 on R * R: a sum has forms of one degree"),
    (lambda x, y: x * coordinates(3)[0],
     "a form of degree 0 on R * R * a form of degree 0 on R * R * R: both have to be on one space"),
    (lambda x, y: x.d()((1.0, 2.0)),
     "a form of degree 1 on R * R: it takes 1 vectors, and got 0"),
    (lambda x, y: x.pullback(r"\t. sin(t)"),
     "a form of degree 0 on R * R is pulled back along a function into R * R, and this is R -> R"),
    (lambda x, y: x.interior(r"\p:R * R. p"),
     "a form of degree 0 on R * R meets a vector field R * R -> R * R: it has to be of degree 1 or "
     "more, and the field R * R -> R * R"),
    (lambda x, y: x.d().integral(r"\<s, t>. <s, t>"),
     "a form of degree 1 on R * R is integrated over a cell R -> R * R, and this is "
     "R * R -> R * R"),
    (lambda x, y: list(boundary("<1, 2>")),
     "a cell is a function from R, R * R, ..., and this is R * R"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
def test_forms_that_do_not_meet_are_refused_in_words(wrong, said):
    with pytest.raises(CalculusError) as caught:
        wrong(*coordinates(2))
    assert caught.value.message == said


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_a_space_has_coordinates(n):
    with pytest.raises(CalculusError) as caught:
        coordinates(n)
    assert caught.value.message == f"a space has 1, 2, ... coordinates, not {n}"


def test_an_integral_has_nodes():
    (x,) = coordinates(1)
    with pytest.raises(CalculusError) as caught:
        x.d().integral(r"\t. t", nodes=0)
    assert caught.value.message == "an integral takes 1 node a direction or more, not 0"


def test_on_a_line_vectors_are_numbers():
    (x,) = coordinates(1)
    assert x.d()(3.0, 2.0) == 2.0
    with pytest.raises(CalculusError) as caught:
        x.d()((3.0,), (2.0,))
    assert caught.value.message == "R is a number, but (3.0,) is given"

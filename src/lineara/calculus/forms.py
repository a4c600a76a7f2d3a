r"""Differential forms of any degree, as terms: wedge, exterior derivative, pullback, integral.

    ω : τ → τ → ... → τ → R      a k-form at a point, on k vectors: linear in each, alternating
    (dω) x v0 ... vk  =  Σ_i (-1)^i J(\x. ω x v0 ..(no vi).. vk; vi) x
    (f*ω) x v1 ... vk =  ω (f x) (J(f; v1) x) ... (J(f; vk) x)
    (α β) x v1 ... vn =  Σ over shuffles (I, J) of sign(I, J) (α x v_I) (β x v_J)

A form begins as a function τ → R, of degree 0, or as a 1-form τ → τ^ of the calculus [Pullback],
whose type says that it is linear; every other one is made of those by the operations here, so it is
multilinear and alternating by construction.  Spaces of functions are spaces like any other.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lineara.calculus import terms as tm
from lineara.calculus.interface import function
from lineara.calculus.program import as_term
from lineara.calculus.symbols import standard
from lineara.calculus.types import Arrow, Dual, Product, R, Type, power, show
from lineara.errors import CalculusError


@dataclass(frozen=True, eq=False)
class Form:
    r"""A k-form on the space: `form(x, v1, ..., vk)` is its number at a point on k vectors.

    `a + b`, `a - b`, `-a`; `a * b` is the wedge product, of which a product with a function, a form
    of degree 0, or with a number, is a case.  Its `term` is one of the calculus, to be shown,
    traced and run like any other.  CalculusError for forms that do not meet.

    >>> x, y = coordinates(2)
    >>> w = (x * y.d()).d()
    >>> w((3.0, 4.0), (1.0, 0.0), (0.0, 1.0))
    1.0
    >>> (w.degree, w.d().degree)
    (2, 3)
    """

    space: Type
    degree: int
    term: tm.Term = field(repr=False)

    def __call__(self, point: Any, *vectors: Any) -> Any:
        """The number at a point on as many vectors as the degree says."""
        if len(vectors) != self.degree:
            raise CalculusError(f"{self}: it takes {self.degree} vectors, and got {len(vectors)}")
        return self._function(point, *vectors)

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        return function(self.term)

    def __str__(self) -> str:
        return f"a form of degree {self.degree} on {show(self.space)}"

    def at(self, x: tm.Term, vectors: Sequence[tm.Term]) -> tm.Term:
        """The term of its number at terms."""
        return functools.reduce(tm.app, vectors, tm.app(self.term, x))

    def __add__(self, other: "Form") -> "Form":
        if not isinstance(other, Form):
            return NotImplemented
        self._meets(other, "+")
        if other.degree != self.degree:
            raise CalculusError(f"{self} + {other}: a sum has forms of one degree")
        return _form(self.space, self.degree, lambda x, v: tm.Sum((self.at(x, v), other.at(x, v))))

    def __neg__(self) -> "Form":
        return -1 * self

    def __sub__(self, other: "Form") -> "Form":
        return self + -other

    def __mul__(self, other: "Form | float") -> "Form":
        if not isinstance(other, Form | int | float):
            return NotImplemented
        b = other if isinstance(other, Form) else _constant(self.space, other)
        self._meets(b, "*")
        k, n = self.degree, self.degree + b.degree

        def wedge(x: tm.Term, v: Sequence[tm.Term]) -> tm.Term:
            terms = []
            for chosen in itertools.combinations(range(n), k):
                rest = [i for i in range(n) if i not in chosen]
                inversions = sum([i > j for i in chosen for j in rest])
                left, right = self.at(x, [v[i] for i in chosen]), b.at(x, [v[i] for i in rest])
                terms.append(_signed(inversions, _product(left, right)))
            return tm.total(terms, R)

        return _form(self.space, n, wedge)

    def __rmul__(self, other: float) -> "Form":
        if not isinstance(other, int | float):
            return NotImplemented
        return _constant(self.space, other) * self

    def d(self) -> "Form":
        r"""The exterior derivative, of degree one more.

        >>> x, y, z = coordinates(3)
        >>> (x * y).d()((2.0, 5.0, 0.0), (1.0, 10.0, 0.0))
        25.0
        """

        def derived(x: tm.Term, v: Sequence[tm.Term]) -> tm.Term:
            terms = []
            for i in range(self.degree + 1):
                along = tm.lam(_X(self.space), self.at(_var("x", self.space), _without(v, i)))
                terms.append(_signed(i, tm.app(tm.J((along, v[i])), x)))
            return tm.total(terms, R)

        return _form(self.space, self.degree + 1, derived)

    def pullback(self, f: tm.Term | str) -> "Form":
        r"""The form pulled back along a function of the calculus into the space.

        Of the volume it is the Jacobian determinant.  CalculusError for another kind of term.

        >>> x, y = coordinates(2)
        >>> area = (x.d() * y.d()).pullback(r"\<r, t>. <r * cos(t), r * sin(t)>")
        >>> round(area((2.0, 0.3), (1.0, 0.0), (0.0, 1.0)), 12)
        2.0
        """
        g = as_term(f, "Form.pullback")
        if not isinstance(g.type, Arrow) or g.type.target != self.space:
            raise CalculusError(
                f"{self} is pulled back along a function into {show(self.space)}, and this is "
                f"{show(g.type)}"
            )

        def pulled(x: tm.Term, v: Sequence[tm.Term]) -> tm.Term:
            return self.at(tm.app(g, x), [tm.app(tm.J((g, u)), x) for u in v])

        return _form(g.type.source, self.degree, pulled)

    def interior(self, field: tm.Term | str) -> "Form":
        r"""The interior product with a vector field: its first vector is that of the field.

        CalculusError for what is no field on the space, and for a form of degree 0.

        >>> x, y = coordinates(2)
        >>> (x.d() * y.d()).interior(r"\<x, y>. <x, y>")((2.0, 5.0), (0.0, 1.0))
        2.0
        """
        g = as_term(field, "Form.interior")
        if self.degree == 0 or g.type != Arrow(self.space, self.space):
            raise CalculusError(
                f"{self} meets a vector field {show(g.type)}: it has to be of degree 1 or more, "
                f"and the field {show(Arrow(self.space, self.space))}"
            )
        return _form(self.space, self.degree - 1, lambda x, v: self.at(x, (tm.app(g, x), *v)))

    def integral(self, cell: tm.Term | str, nodes: int = 8) -> float:
        r"""The integral over a cell, a function from [0, 1]^k into the space; k is the degree.

        Gauss and Legendre's rule with so many nodes a direction: exact for what pulls back to
        polynomials of degree less than twice that.  For degree 0 a cell is a point.
        CalculusError for a cell of another dimension, and for no nodes.

        >>> x, y = coordinates(2)
        >>> circle = r"\t. <cos(6.283185307179586 * t), sin(6.283185307179586 * t)>"
        >>> round((x * y.d()).integral(circle, nodes=20), 9)  # the area that it encloses
        3.141592654
        """
        g = as_term(cell, "Form.integral")
        if self.degree == 0 and g.type == self.space:
            return function(tm.lam(("_", R), tm.app(self.term, g)))(0.0)
        if self.degree == 0 or g.type != Arrow(power(self.degree), self.space):
            wanted = Arrow(power(self.degree), self.space) if self.degree else self.space
            raise CalculusError(
                f"{self} is integrated over a cell {show(wanted)}, and this is {show(g.type)}"
            )
        if nodes < 1:
            raise CalculusError(f"an integral takes 1 node a direction or more, not {nodes}")
        density, k = self.pullback(g), self.degree
        basis = [_point([float(i == j) for j in range(k)]) for i in range(k)]
        at, weights = np.polynomial.legendre.leggauss(nodes)
        rule = [(float(t) / 2 + 0.5, float(w) / 2) for t, w in zip(at, weights, strict=True)]
        return math.fsum(
            [
                math.prod([w for _, w in chosen]) * density(_point([t for t, _ in chosen]), *basis)
                for chosen in itertools.product(rule, repeat=k)
            ]
        )

    def _meets(self, other: "Form", sign: str) -> None:
        if other.space != self.space:
            raise CalculusError(f"{self} {sign} {other}: both have to be on one space")


def form(term: tm.Term | str) -> Form:
    r"""The form of a function τ → R, of degree 0, or of a 1-form τ → τ^ of the calculus.

    CalculusError for a term of another type.

    >>> form(r"\<x, y>. covec(<y, x * x>)")((2.0, 3.0), (10.0, 1.0))
    34.0
    """
    t = as_term(term, "form")
    match t.type:
        case Arrow(space, target) if target == R:
            return Form(space, 0, t)
        case Arrow(space, target) if target == Dual(space):
            return _form(space, 1, lambda x, v: tm.At((tm.app(t, x), v[0])))
    raise CalculusError(
        f"a form begins as a function s -> R or as a 1-form s -> s^, and this is {show(t.type)}; "
        "those of higher degree are made by d, * and pullback"
    )


def coordinates(n: int) -> tuple[Form, ...]:
    """The n coordinates of R^n, forms of degree 0.

    CalculusError for another n than 1, 2, ...

    >>> [x((4.0, 5.0, 6.0)) for x in coordinates(3)]
    [4.0, 5.0, 6.0]
    """
    if not isinstance(n, int) or n < 1:
        raise CalculusError(f"a space has 1, 2, ... coordinates, not {n}")
    p = _var("x", power(n))
    terms: list[tm.Term] = []
    for i in range(n):
        part = functools.reduce(lambda t, _: tm.Snd((t,)), range(i), p)
        terms.append(tm.Fst((part,)) if i < n - 1 else part)
    return tuple([Form(power(n), 0, tm.lam(_X(power(n)), t)) for t in terms])


def boundary(cell: tm.Term | str) -> Iterator[tuple[int, tm.Term]]:
    r"""The faces of a cell, a function from [0, 1]^k, each with its sign in Stokes' theorem.

    CalculusError for what is no function from R^k.

    >>> w, square = form(r"\<x, y>. covec(<y * y, 3 * x>)"), r"\<s, t>. <s, t>"
    >>> round(sum(sign * w.integral(face) for sign, face in boundary(square)), 9)
    2.0
    >>> round(w.d().integral(square), 9)
    2.0
    """
    g = as_term(cell, "boundary")
    k = _dimension(g.type.source) if isinstance(g.type, Arrow) else 0
    if not k:
        raise CalculusError(f"a cell is a function from R, R * R, ..., and this is {show(g.type)}")
    for i, end in itertools.product(range(k), (0, 1)):
        yield (-1) ** (i + end + 1), _face(g, k, i, float(end))


# --- terms ----------------------------------------------------------------------------------------


def _form(space: Type, degree: int, body: Callable[[tm.Term, Sequence[tm.Term]], tm.Term]) -> Form:
    """The form whose term at x on v0, v1, ... is the body."""
    vectors = [(f"v{i}", space) for i in range(degree)]
    term = body(_var("x", space), [tm.var(v) for v in vectors])
    for v in reversed(vectors):
        term = tm.lam(v, term)
    return Form(space, degree, tm.lam(_X(space), term))


def _X(space: Type) -> tm.Binder:
    return "x", space


def _var(name: str, t: Type) -> tm.Var:
    return tm.var((name, t))


def _constant(space: Type, r: float) -> Form:
    return Form(space, 0, tm.lam(_X(space), tm.num(r)))


def _product(a: tm.Term, b: tm.Term) -> tm.Term:
    return tm.Fun((tm.Pair((a, b)),), standard()["multiply"])


def _signed(n: int, t: tm.Term) -> tm.Term:
    """(-1)^n t."""
    return tm.Fun((t,), standard()["negative"]) if n % 2 else t


def _without(v: Sequence[tm.Term], i: int) -> list[tm.Term]:
    return [*v[:i], *v[i + 1 :]]


def _point(numbers: Sequence[float]) -> Any:
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _dimension(t: Type) -> int:
    """k of R^k; 0 of another type."""
    if isinstance(t, Product) and t.left == R:
        rest = _dimension(t.right)
        return rest + 1 if rest else 0
    return 1 if t == R else 0


def _face(cell: tm.Term, k: int, i: int, end: float) -> tm.Term:
    """The cell where the i-th of its k parameters is the number; a point for k = 1."""
    if k == 1:
        return tm.app(cell, tm.num(end))
    others = [c.at(_var("x", power(k - 1)), ()) for c in coordinates(k - 1)]
    parameters = [*others[:i], tm.num(end), *others[i:]]
    at = functools.reduce(lambda t, p: tm.Pair((p, t)), reversed(parameters[:-1]), parameters[-1])
    return tm.lam(_X(power(k - 1)), tm.app(cell, at))

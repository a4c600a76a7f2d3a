"""The algebraic Riccati equations of linear-quadratic control.

With the gain K = R^-1 B^H X (in discrete time (R + B^H X B)^-1 B^H X A) and the closed loop
C = A - B K, the tangent of X solves a Lyapunov equation of C, whose right side is linear in the
tangents of the four matrices.
"""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import General, implements, op
from lineara.facts.types import ArrayType, type_of
from lineara.ops.contract import matmul
from lineara.ops.eigen import has_values
from lineara.ops.linalg import adjoint, linear_solve, np_solve, square
from lineara.ops.scipy.matrix_functions import linear_sylvester
from lineara.ops.shape import as_array


def _half(m: Shaped) -> Any:
    """The Hermitian part."""
    return (m + adjoint(m)) * 0.5


class _Riccati(General):
    """X of A, B, and the Hermitian parts of Q and R :  (n,n), (n,k), (n,n), (k,k) -> (n,n)."""

    host = True

    def __init__(self, name: str, discrete: bool) -> None:
        super().__init__(name)
        self.discrete = discrete

    def result(self, a, b, q, r):
        types = [type_of(m) for m in (a, b, q, r)]
        n, k = types[1].shape if types[1].ndim == 2 else (-1, -1)
        if [t.shape for t in types] != [(n, n), (n, k), (n, n), (k, k)]:
            raise ShapeError(f"{self.name}: {', '.join(map(repr, types))} do not make one equation")
        return ArrayType((n, n), np.result_type(*(t.dtype for t in types)))

    def evaluate(self, xp, /, a, b, q, r):
        from scipy.linalg import solve_continuous_are, solve_discrete_are

        dtype = np.result_type(a.dtype, b.dtype, q.dtype, r.dtype)
        solve = solve_discrete_are if self.discrete else solve_continuous_are
        return solve(a, b, _half(q), _half(r)).astype(dtype, copy=False)

    def arithmetic(self, y, args, params):
        return 200 * y.size * y.shape[0]

    def jvp(self, y, primals, tangents, /):
        (a, b, _, r), (a_dot, b_dot, q_dot, r_dot) = primals, tangents
        r, bx = _half(r), matmul(adjoint(b), y)
        k = np_solve(r + matmul(bx, b), matmul(bx, a)) if self.discrete else np_solve(r, bx)
        closed = a - matmul(b, k)
        seen = matmul(y, closed) if self.discrete else y
        terms = [] if q_dot is None else [_half(q_dot)]
        if a_dot is not None:
            moved = matmul(adjoint(a_dot), seen)
            terms.append(moved + adjoint(moved))
        if b_dot is not None:
            moved = -matmul(adjoint(matmul(b_dot, k)), seen)
            terms.append(moved + adjoint(moved))
        if r_dot is not None:
            terms.append(matmul(adjoint(k), matmul(_half(r_dot), k)))
        right = sum(terms[1:], terms[0])
        if not self.discrete:  # C^H X_dot + X_dot C = -right
            return linear_sylvester(adjoint(closed), closed, -right)
        # C^H X_dot C - X_dot = -right, with C^H = (1 + W) / (1 - W) the other equation
        eye = np.eye(type_of(a).shape[0], dtype=type_of(closed).dtype)
        turned = adjoint(closed)
        w = adjoint(np_solve(adjoint(turned + eye), adjoint(turned - eye)))
        inner = linear_solve(turned + eye, right)
        inner = adjoint(linear_solve(turned + eye, adjoint(inner)))
        return linear_sylvester(w, adjoint(w), -2 * inner)


care: _Riccati = _Riccati("care", False)
dare: _Riccati = _Riccati("dare", True)


def _solve(
    name: str,
    primitive: _Riccati,
    a: Shaped,
    b: Shaped,
    q: Shaped,
    r: Shaped,
    others: tuple[Any, ...],
) -> Any:
    if any([v is not None for v in others]):
        raise NoRuleError(f"scipy.linalg.{name}: e= and s= of traced values have no rule")
    a, b, q, r = (np.atleast_2d(as_array(m)) for m in (a, b, q, r))
    a = square(name, a)
    for m, letter in ((q, "q"), (r, "r")):
        even = np.all(abs(m - adjoint(m)) <= 1e-10 * np.max(abs(m)))
        if has_values(even) and not even:
            raise ValueError(f"Matrix {letter} should be symmetric/hermitian.")
    a, b, q, r = (
        m if type_of(m).dtype.kind in "fc" else op("astype")(m, dtype=np.dtype(float))
        for m in (a, b, q, r)
    )
    return primitive(a, b, q, r)


@implements("scipy.linalg.solve_continuous_are")
def solve_continuous_are(a, b, q, r, e=None, s=None, balanced=True):
    """X with X A + A^H X - X B R^-1 B^H X + Q = 0."""
    return _solve("solve_continuous_are", care, a, b, q, r, (e, s))


@implements("scipy.linalg.solve_discrete_are")
def solve_discrete_are(a, b, q, r, e=None, s=None, balanced=True):
    """X with A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0."""
    return _solve("solve_discrete_are", dare, a, b, q, r, (e, s))

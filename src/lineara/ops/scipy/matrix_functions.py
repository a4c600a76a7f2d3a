"""Functions of matrices (exp, log, sqrt, cos), Sylvester's equation, and band matrices.

A function f of a matrix has the derivative L(A, E), and

    f([A E; 0 A]) = [f(A) L(A, E); 0 f(A)],

so the derivative of L is a block of L itself, for matrices of twice the size  [Mathias 1996].
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import (
    Box,
    General,
    Linear,
    aligned,
    conjugate,
    implements,
    op,
    primitive,
    reals,
    unbroadcast,
)
from lineara.facts.types import ArrayType, type_of
from lineara.ops.contract import matmul
from lineara.ops.lapack import each
from lineara.ops.linalg import adjoint, factoring, square, squares
from lineara.ops.scipy.linalg import in_columns
from lineara.ops.shape import as_array, as_floats

Plain = Callable[..., Any]


def _late(name: str) -> Plain:
    def call(*args: Any, **options: Any) -> Any:
        import scipy.linalg

        return getattr(scipy.linalg, name)(*args, **options)

    return call


def _over(a: Shaped, e: Shaped) -> Any:
    """The block matrix [A E; 0 A]."""
    s, t = type_of(a), type_of(e)
    if s.ndim != t.ndim:  # a stack of one of them
        shape = np.broadcast_shapes(s.shape, t.shape)
        a, e = (op("broadcast_to")(v, shape=shape) for v in (a, e))
    above = op("concat")(a, e, axis=-1)
    below = op("concat")(np.zeros(type_of(a).shape, type_of(e).dtype), a, axis=-1)
    return op("concat")(above, below, axis=-2)


class _MatrixFunction(General):
    """f(A) :  (...,n,n) -> (...,n,n), for a function f with real values on the real numbers."""

    host = True

    def __init__(self, name: str, plain: Plain, tangent: Plain | None = None) -> None:
        super().__init__(name)
        self.plain = plain
        linear = _Tangent(f"linear_{name}", self, tangent or self._by_block)
        self.tangent: _MovingTangent = _MovingTangent(f"tangent_of_{name}", linear)

    def result(self, a):
        return squares(self.name, a)

    def evaluate(self, xp, /, a):
        y = each(lambda m: self._one(m), a.shape[-2:], a.dtype, a)
        return y.astype(a.dtype, copy=False)

    def _one(self, a: np.ndarray) -> np.ndarray:
        y = self.plain(a)
        if y.dtype.kind == "c" and a.dtype.kind != "c":
            raise NoRuleError(
                f"{self.name}: of this real matrix it is complex, which has no rule; give it a "
                "complex matrix, A.astype(complex)"
            )
        return y

    def _by_block(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        n = a.shape[-1]
        return self._one(np.asarray(_over(a, e)))[:n, n:]

    def arithmetic(self, y, args, params):
        return 30 * factoring(y, y.shape[:-2])

    def jvp(self, y, primals, tangents, /):
        return self.tangent.linear_in_e(primals[0], tangents[0])

    def batch(self, args, batched, params):
        return self(*args)


class _Tangent(Linear):
    """L(A, E), linear in E; the adjoint is L(A, Y^H)^H, also where f(A^H) is not f(A)^H."""

    plain: Plain
    of: _MatrixFunction

    host = True
    linear = (1,)

    def __init__(self, name: str, of: _MatrixFunction, plain: Plain) -> None:
        super().__init__(name)
        self.of, self.plain = of, plain

    def result(self, a, e):
        s, t = squares(self.name, a), squares(self.name, e)
        if s.shape[-1] != t.shape[-1]:
            raise ShapeError(f"{self.name}: a direction is like its matrix {s}, not {t}")
        return ArrayType(np.broadcast_shapes(s.shape, t.shape), np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, e):
        dtype = np.result_type(a.dtype, e.dtype)
        a, e = a.astype(dtype, copy=False), e.astype(dtype, copy=False)
        y = each(lambda m, v: self.plain(m, v), a.shape[-2:], dtype, a, e)
        return y.astype(dtype, copy=False)

    def arithmetic(self, y, args, params):
        return 60 * factoring(y, y.shape[:-2])

    def transpose(self, y_bar, /, a, e):
        return (unbroadcast(adjoint(self(a, adjoint(y_bar))), e),)

    def linearize(self, y, args, active, params, recur):
        kind = self.of.tangent if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


class _MovingTangent(General):
    """L(A, E) as a function of A too; its tangent is a block of the tangent of f([A E; 0 A])."""

    host = True
    linear = (1,)

    def __init__(self, name: str, linear_in_e: _Tangent) -> None:
        super().__init__(name)
        self.linear_in_e = linear_in_e

    def result(self, a, e):
        return self.linear_in_e.result(a, e)

    def evaluate(self, xp, /, a, e):
        return self.linear_in_e.evaluate(xp, a, e)

    def arithmetic(self, y, args, params):
        return self.linear_in_e.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /):
        (a, e), (a_dot, e_dot) = primals, tangents
        if a_dot is None:
            return self.linear_in_e(a, e_dot)
        n = type_of(a).shape[-1]
        tangent = np.zeros(type_of(e).shape, type_of(e).dtype) if e_dot is None else e_dot
        return self.linear_in_e(_over(a, e), _over(a_dot, tangent))[..., :n, n:]

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


def _exp_tangent(a: np.ndarray, e: np.ndarray) -> np.ndarray:
    return _late("expm_frechet")(a, e, compute_expm=False, check_finite=False)


def _sqrt_tangent(a: np.ndarray, e: np.ndarray) -> np.ndarray:
    root = sqrtm.plain(a)
    return _late("solve_sylvester")(root, root, e)  # X X_dot + X_dot X = E


expm: _MatrixFunction = _MatrixFunction("expm", _late("expm"), _exp_tangent)
sqrtm: _MatrixFunction = _MatrixFunction("sqrtm", _late("sqrtm"), _sqrt_tangent)
_MatrixFunction("logm", lambda a: _late("logm")(a.astype(np.result_type(a, float))))
for _name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
    _MatrixFunction(_name, _late(_name))


def _of_scipy(name: str) -> None:
    def call(A, disp=True, blocksize=None):  # SciPy's names
        if disp is False:
            raise NoRuleError(f"{name}: disp=False has no rule; without it {name} has one")
        A = square(name, A)
        return op(name)(_with_complex_root(A) if name == "sqrtm" else A)

    call.__doc__ = op(name).__doc__
    implements(f"scipy.linalg.{name}")(call)


def _with_complex_root(a: Shaped) -> Any:
    """a, converted to complex if its values are known and its square root is complex."""
    values = op("stop_gradient")(a)
    if isinstance(values, Box) or values.dtype.kind == "c" or not values.size:
        return a
    eigenvalues = np.linalg.eigvals(values)
    if not np.any((np.real(eigenvalues) < 0) & (np.imag(eigenvalues) == 0)):
        return a
    roots = [sqrtm.plain(m) for m in values.reshape(-1, *values.shape[-2:])]
    is_complex = any(root.dtype.kind == "c" for root in roots)
    return op("astype")(a, dtype=np.result_type(values, np.complex64)) if is_complex else a


for _name in ("expm", "sqrtm", "logm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
    _of_scipy(_name)


# --- Sylvester's equation -----------------------------------------------------------------------


class _Sylvester(General):
    """X with A X + X B = Q, or A^H X + X B^H = Q :  (n,n), (k,k), (n,k) -> (n,k)."""

    host = True
    linear = (2,)

    def result(self, a, b, q, *, adjoint=False):
        r, s, t = squares(self.name, a), squares(self.name, b), type_of(q)
        if r.ndim != 2 or s.ndim != 2 or t.shape != (r.shape[0], s.shape[0]):
            raise ShapeError(f"{self.name}: {r}, {s} and {t} do not make one equation")
        return ArrayType(t.shape, np.result_type(r.dtype, s.dtype, t.dtype))

    def evaluate(self, xp, /, a, b, q, *, adjoint=False):
        dtype = np.result_type(
            a.dtype, b.dtype, q.dtype
        )  # one dtype for all: SciPy is wrong for mixed ones
        a, b, q = (m.astype(dtype, copy=False) for m in (a, b, q))
        a, b = (np.conj(m.swapaxes(-1, -2)) if adjoint else m for m in (a, b))
        return each(_late("solve_sylvester"), q.shape[-2:], dtype, a, b, q)

    def arithmetic(self, y, args, params):
        return 25 * sum(factoring(m, y.shape[:-2]) for m in args[:2])

    def jvp(self, y, primals, tangents, /, *, adjoint=False):
        (a, b, _), (a_dot, b_dot, right) = primals, tangents
        turn = _turned if adjoint else _same
        terms = [] if right is None else [right]
        if a_dot is not None:
            terms.append(-matmul(turn(a_dot), y))
        if b_dot is not None:
            terms.append(-matmul(y, turn(b_dot)))
        return linear_sylvester(a, b, sum(terms[1:], terms[0]), adjoint=adjoint)

    def batch(self, args, batched, params):
        return self(*aligned(args, batched), **params)


def _turned(a: Shaped) -> Any:
    return adjoint(a)


def _same(a: Value) -> Any:
    return a


sylvester: _Sylvester = _Sylvester("sylvester")


@primitive
class linear_sylvester(Linear):
    """The same, linear in Q."""

    host = True
    linear = (2,)

    def result(self, a, b, q, *, adjoint=False):
        return sylvester.result(a, b, q)

    def evaluate(self, xp, /, a, b, q, *, adjoint=False):
        return sylvester.evaluate(xp, a, b, q, adjoint=adjoint)

    def arithmetic(self, y, args, params):
        return sylvester.arithmetic(y, args, params)

    def transpose(self, y_bar, /, a, b, q, *, adjoint=False):
        return (unbroadcast(linear_sylvester(a, b, y_bar, adjoint=not adjoint), q),)

    def linearize(self, y, args, active, params, recur):
        kind = sylvester if 0 in active or 1 in active else super()
        return kind.linearize(y, args, active, params, recur)

    def batch(self, args, batched, params):
        return linear_sylvester(*aligned(args, batched), **params)


@implements("scipy.linalg.solve_sylvester")
def solve_sylvester(a, b, q):
    """X with A X + X B = Q."""
    a, b, q = square("solve_sylvester", a), square("solve_sylvester", b), as_array(q)
    if type_of(q).shape[-2:] != (type_of(a).shape[-1], type_of(b).shape[-1]):
        raise ShapeError(f"solve_sylvester: {type_of(a)}, {type_of(b)}, {type_of(q)} do not fit")
    return sylvester(a, b, q)


@implements("scipy.linalg.solve_continuous_lyapunov", "scipy.linalg.solve_lyapunov")
def solve_continuous_lyapunov(a, q):
    """X with A X + X A^H = Q."""
    return solve_sylvester(a, adjoint(square("solve_continuous_lyapunov", a)), q)


# --- band matrices ------------------------------------------------------------------------------


def band_product(ab: Shaped, x: Shaped, below: int, adjoint: bool = False) -> Any:
    """A X, or A^H X, for a band matrix with `below` diagonals under the main one."""
    rows, n = type_of(ab).shape
    terms = []
    for i in range(rows):
        k = rows - 1 - below - i  # the diagonal A[j-k, j] = ab[i, j]
        at = slice(max(k, 0), n + min(k, 0))  # its columns j
        to = slice(max(-k, 0), n - max(k, 0))
        weights = ab[i, at][:, None]
        if adjoint:
            term, to = conjugate(weights) * x[..., to, :], at
        else:
            term = weights * x[..., at, :]
        terms.append(op("scatter")(term, at=(Ellipsis, to, slice(None)), shape=type_of(x).shape))
    return sum(terms[1:], terms[0])


class _Banded(General):
    """X with A X = B, or A^H X = B, for A[i,j] = ab[u+i-j,j]; ab : (l+u+1,n), B : (n,k)."""

    host = True
    linear = (1,)

    def result(self, ab, b, *, below, adjoint=False):
        s, t = type_of(ab), type_of(b)
        if s.ndim != 2 or t.ndim != 2 or s.shape[1] != t.shape[0] or below not in range(s.shape[0]):
            raise ShapeError(
                f"{self.name}: {s} is no band, {below} diagonals of it below, of a system with {t}"
            )
        if s.dtype.kind not in "fc" or t.dtype.kind not in "fc":
            raise ShapeError(f"{self.name}: takes floating-point numbers, not {s} and {t}")
        return ArrayType(t.shape, np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, ab, b, *, below, adjoint=False):
        above = ab.shape[0] - 1 - below
        if adjoint:
            ab, below, above = _adjoint_band(ab, below), above, below
        dtype, sides = np.result_type(ab.dtype, b.dtype), (int(below), int(above))
        return _late("solve_banded")(sides, ab, b, check_finite=False).astype(dtype)

    def arithmetic(self, y, args, params):
        return 2 * args[0].shape[0] * reals(y)

    def jvp(self, y, primals, tangents, /, *, below, adjoint=False):
        (ab, _), (ab_dot, right) = primals, tangents
        if ab_dot is not None:
            moved = -band_product(ab_dot, y, below, adjoint)
            right = moved if right is None else right + moved
        return linear_banded(ab, right, below=below, adjoint=adjoint)


def _adjoint_band(ab: np.ndarray, below: int) -> np.ndarray:
    """The band storage of A^H: the diagonals in reverse order, each shifted to its columns."""
    rows, n = ab.shape
    out = np.zeros_like(ab)
    for i in range(rows):
        k = rows - 1 - below - i
        columns = slice(max(k, 0), n + min(k, 0))
        out[rows - 1 - i, max(-k, 0) : n - max(k, 0)] = np.conj(ab[i, columns])
    return out


banded: _Banded = _Banded("banded")


@primitive
class linear_banded(Linear):
    """The same, linear in B."""

    host = True
    linear = (1,)

    def result(self, ab, b, *, below, adjoint=False):
        return banded.result(ab, b, below=below)

    def evaluate(self, xp, /, ab, b, *, below, adjoint=False):
        return banded.evaluate(xp, ab, b, below=below, adjoint=adjoint)

    def arithmetic(self, y, args, params):
        return banded.arithmetic(y, args, params)

    def transpose(self, y_bar, /, ab, b, *, below, adjoint=False):
        return (linear_banded(ab, y_bar, below=below, adjoint=not adjoint),)

    def linearize(self, y, args, active, params, recur):
        kind = banded if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)


@implements("scipy.linalg.solve_banded")
def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    """The solution of A x = b from the diagonals of A."""
    ab, (below, above) = as_floats(ab), l_and_u
    t = type_of(ab)
    if t.ndim != 2 or t.shape[0] != below + above + 1:
        raise ShapeError(f"solve_banded: {below + above + 1} diagonals are wanted, not {t}")
    return in_columns("solve_banded", lambda v: banded(ab, v, below=int(below)), t.shape[1], b)


@implements("scipy.linalg.solveh_banded")
def solveh_banded(ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True):
    """The solution of A x = b for Hermitian A, from its diagonals on one side."""
    ab = as_floats(ab)
    rows = type_of(ab).shape[0]
    order = range(1, rows) if lower else range(rows - 2, -1, -1)
    others = [_shifted(conjugate(ab[i]), i if lower else i + 1 - rows) for i in order]
    if lower:
        full = op("concat")(*[v[None] for v in others[::-1]], ab, axis=0)
    else:
        full = op("concat")(ab, *[v[None] for v in others], axis=0)
    return solve_banded((rows - 1, rows - 1), full, b)


def _shifted(v: Shaped, k: int) -> Any:
    """v shifted by k places, with zeros filled in."""
    n = type_of(v).shape[0]
    source, to = slice(max(-k, 0), n - max(k, 0)), slice(max(k, 0), n + min(k, 0))
    return op("scatter")(v[source], at=to, shape=(n,))

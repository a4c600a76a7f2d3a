"""One line for each primitive; from it the laws that every primitive keeps are checked.

A line is the name, the arguments, and the parameters as a last dict. Arguments of floats are
differentiated, others (integers, booleans, indices) are not.
"""

import cmath
import functools
import itertools
import math
import operator
import warnings
from functools import cache

import mpmath
import numpy as np
import pytest
from special_lines import SPECIAL
from tables import Laws

import lineara
from lineara.errors import LinearaError, LinearityError, StagingError
from lineara.facts.primitive import (
    Box,
    Constant,
    Elementwise,
    General,
    HigherOrder,
    Linear,
    Multilinear,
    Primitive,
    op,
    registry,
)
from lineara.facts.types import type_of
from lineara.ops.effects import Late, Said
from lineara.ops.python_numbers import Own
from lineara.ops.value_checks import CHECKED
from lineara.tape.levels import linear_map_of
from lineara.trees import flatten

rng = np.random.default_rng(7)
STATISTICS = ["mean", "fmean", "median", "variance", "pvariance", "stdev", "pstdev"]
x = np.array([0.31, 0.72, 0.55])  # inside every domain of (0, 1)
w = np.array([0.83, 0.24, 0.61])
z = np.array([-1.3, 0.4, 2.2])
big = np.array([1.2, 3.4, 2.0])
row = np.array([[0.9, 0.2, 0.7]])
col = np.array([[0.35], [0.65]])
A = rng.normal(size=(3, 4))
B = rng.normal(size=(4, 2))
T = rng.normal(size=(2, 3, 4))
U = rng.normal(size=(2, 4, 2))
M = rng.normal(size=(3, 3)) + 3 * np.eye(3)
N = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)
P = M @ M.T
ties = np.array([[1.0, 3.0, 3.0], [2.0, -1.0, 2.0]])
holes = np.array([[0.0, 2.0, 3.0], [0.0, 5.0, 0.0], [1.5, 2.0, -1.0]])
mask = np.array([True, False, True])
whole, flags = np.array([12, 7, 30]), np.array([4, 1, 6])
PLACES = np.array([0, 1, 2, 2])
MATRIX = ("exp", "sqrt", "log", "cos", "sin", "tan", "cosh", "sinh", "tanh")
where = np.array([[True, False, True, True], [False, False, True, True], [True, True, True, False]])


def over(*axis: int, keepdims: bool = False) -> dict:
    return {"axis": axis, "keepdims": keepdims}


LINES = [
    # arithmetic
    ("add", x, z),
    ("add", col, row),
    ("add", x, 2.0),
    ("subtract", z, x),
    ("subtract", 3.0, A),
    ("multiply", x, z),
    ("multiply", row, T[:, :, :3]),
    ("multiply", 2, x),
    ("divide", z, x),
    ("divide", 1.0, z),
    ("divide", z, 4),
    ("negative", z),
    ("power", x, w),
    ("power", z, 3),
    ("power", x, -2.0),
    ("power", 2.0, z),
    ("power", big, np.array([2, 0, 1])),
    ("square", z),
    ("reciprocal", z),
    ("remainder", z, w),
    ("remainder", z, -0.7),
    ("fmod", z, w),
    ("abs", z),
    ("fabs", z),
    # powers, exponentials, logarithms
    ("sqrt", x),
    ("cbrt", z),
    ("exp", z),
    ("exp2", z),
    ("expm1", z),
    ("log", x),
    ("log2", x),
    ("log10", x),
    ("log1p", x),
    ("logaddexp", z, x),
    ("logaddexp2", z, x),
    # trigonometry
    ("sin", z),
    ("cos", z),
    ("tan", z),
    ("asin", x),
    ("acos", x),
    ("atan", z),
    ("atan2", z, x),
    ("atan2", x, -z),
    ("sinh", z),
    ("cosh", z),
    ("tanh", z),
    ("asinh", z),
    ("acosh", big),
    ("atanh", x),
    ("hypot", z, x),
    ("hypot", col, row),
    ("deg2rad", z),
    ("rad2deg", z),
    ("math_norm", A),
    ("math_norm", x),
    ("math_fsum", A),
    ("math_fsum", x),
    *[(f"statistics_{name}", rows) for name in STATISTICS for rows in (A, x)],
    ("copysign", z, -x),
    ("copysign", z, z[::-1]),
    ("copysign", -x, 2.0),
    # selections
    ("maximum", z, x),
    ("maximum", A, 0.0),
    ("minimum", z, x),
    ("minimum", col, row),
    ("fmax", z, x),
    ("clip_below", z, x),
    ("clip_above", col, row),
    ("length", x),
    ("fmin", z, x),
    ("where", mask, x, z),
    ("where", mask[:, None], x, A[:, :1]),
    ("where", True, x, z),
    ("live_factor", mask, x, 0.0),
    ("keep", A, mask[:, None]),
    ("where", where, A, 0.0),
    ("where", mask, x, A[:, :3]),
    ("keep", x, mask),
    ("keep", A[:, :1], where),
    # complex parts
    ("conj", z),
    ("real", z),
    ("imag", z),
    ("of_parts", z, x),
    ("of_parts", A, row[:, :1]),
    # checks
    *[(f"check_{k.__name__}", A, mask & False, {"text": "no"}) for k in CHECKED],
    ("report", mask & False, x, {"effect": Said(print, Late(flatten(((), {}))[1], ()))}),
    # special functions
    ("sinc", z),
    ("sinc", np.array([0.0, 0.02, -0.3])),
    *[line[:-1] for line in SPECIAL],
    # the representation
    ("ldexp", z, np.array([2, -1, 0])),
    ("nextafter", z, x),
    ("fraction", z),
    ("rect_real", z, x),
    ("rect_imag", z, x),
    # reductions
    ("sum", A, over(0, 1)),
    ("sum", T, over(1)),
    ("sum", T, over(2, 0, keepdims=True)),
    ("sum", x, over()),
    ("sum", x[:0], over(0)),
    ("sum", A[:0], over(0, keepdims=True)),
    ("sum", A, over(1, keepdims=True)),
    ("cumsum", T, {"axis": 1}),
    ("cumsum", x, {"axis": 0}),
    ("cumsum", T, {"axis": 2}),
    ("cumprod", x, {"axis": 0}),
    ("cumprod", T, {"axis": 1}),
    ("cumprod", holes, {"axis": 1}),
    ("recurrence", x[1:], x, {"axis": 0}),
    ("recurrence", T[:, 1:], T, {"axis": 1}),
    ("recurrence", T[:, :, 1:], T, {"axis": 2, "reverse": True}),
    ("prod", x, over(0)),
    ("prod", x[:0], over(0)),
    ("prod", x[:1], over(0)),
    ("prod", A[:, :0], over(1)),
    ("prod", A, over(0, 1, keepdims=True)),
    ("prod", holes, over(0)),
    ("prod", T, over(1, 2, keepdims=True)),
    ("prod", T, over(0, 2)),
    ("prod", holes, over(1, keepdims=True)),
    ("prod", holes, over(0, 1)),
    ("max", A, over(0, 1)),
    ("max", A[:1], over(0)),
    ("max", A, over(1, 0, keepdims=True)),
    ("min", T, over(1, keepdims=True)),
    ("min", ties, over(0)),
    ("max", T, over(1)),
    ("max", ties, over(1, keepdims=True)),
    ("min", T, over(2, 0)),
    ("min", x, over(0)),
    # shapes
    ("reshape", A, {"shape": (2, 6)}),
    ("reshape", x[:1], {"shape": ()}),
    ("permute_dims", T, {"axes": (2, 0, 1)}),
    ("broadcast_to", x, {"shape": (2, 3)}),
    ("broadcast_to", row, {"shape": (2, 2, 3)}),
    ("broadcast_to", col, {"shape": (4, 2, 3)}),
    ("astype", x, {"dtype": np.dtype(np.float64)}),
    ("concat", A, M, {"axis": 1}),
    ("concat", A, A[:0], {"axis": 0}),
    ("concat", T, T[:, :, :1], T, {"axis": 2}),
    ("concat", x, {"axis": 0}),
    ("concat", A, A, A[:1], {"axis": 0}),
    ("concat", A, M, {"axis": -1}),
    ("checkpoint_name", A, {"name": "a"}),
    ("stack", x, z),
    ("stack", A, A, A),
    # indexing
    ("index", A, {"at": (1, slice(None, None, -2))}),
    ("index", A, {"at": (slice(2, 0, -1), 0)}),
    ("index", A, {"at": ()}),
    ("index", T, {"at": (1, Ellipsis, np.array([1, 1]))}),
    ("index", T, {"at": (slice(None), np.array([[0, 2], [2, 2]]))}),
    ("index", A, {"at": (Ellipsis, None, 2)}),
    ("index", A, {"at": np.array([2, 0, 2])}),
    ("index", T, {"at": (np.array([0, 1]), slice(None), np.array([3, 3]))}),
    ("index", A, {"at": where}),
    ("scatter", x, {"at": slice(1, None, 2), "shape": (6,)}),
    ("scatter", x[:0], {"at": np.array([], int), "shape": (3,)}),
    ("scatter", A, {"at": (slice(None), 1), "shape": (3, 2, 4)}),
    ("scatter", T[0], {"at": (np.array([1, 0, 1]), slice(None)), "shape": (2, 4)}),
    ("scatter", x, {"at": np.array([2, 0, 2]), "shape": (4,)}),
    ("scatter", A, {"at": (slice(None), np.array([1, 1, 0, 2])), "shape": (3, 3)}),
    # contractions
    ("matmul", A, B),
    ("matmul", x[:0], A[:0]),
    ("matmul", A[:, :0], B[:0]),
    ("matmul", col, row),
    ("matmul", T[:1], U),
    ("matmul", T[:, None], U),
    ("matmul", x, A),
    ("matmul", A, B[:, 0]),
    ("matmul", x, z),
    ("matmul", T, U),
    ("matmul", A, U),
    ("matmul", T, B),
    ("matmul", T, B[:, 1]),
    ("matmul", A[0], U),
    ("einsum", A, B, {"subscripts": "ij,jk->ki"}),
    ("einsum", M, {"subscripts": "ii->"}),
    ("einsum", M, A, {"subscripts": "ij,ik->jk"}),
    ("einsum", T, {"subscripts": "abc->ca"}),
    ("einsum", x, A, {"subscripts": "i,ab->iab"}),
    ("einsum", A, A, {"subscripts": "ij,ij->"}),
    ("einsum", N, {"subscripts": "aij->ji"}),
    ("einsum", row, A, {"subscripts": "ij,kl->jl"}),
    ("einsum", M, x, {"subscripts": "ii,i->i"}),
    ("einsum", T, {"subscripts": "abc->b"}),
    ("einsum", A, B, x, {"subscripts": "ij,jk,i->k"}),
    ("einsum", N, M, {"subscripts": "aij,ij->"}),
    ("einsum", col, A[:1, :2], {"subscripts": "ij,kj->ik"}),
    ("convolve", big, np.array([0.4, -1.1])),
    ("convolve", x, A[0]),
    ("convolve", x[:1], A[0]),
    ("correlate", A[0], np.array([0.4, -1.1])),
    ("correlate", x, z),
    # linear algebra
    ("roots", np.array([2.0, 0.4, 1.2, -0.7])),
    ("linear_solve", M, A),
    ("linear_solve", N, A),
    ("linear_solve", M, T),
    ("solve", M, A),
    ("solve", N, A),
    ("solve", M, T),
    ("inv", M),
    ("inv", N),
    ("inv_or_nan", N),
    ("inv_or_nan", T[:, :2, :2] + M[:2, :2]),
    ("det", N),
    ("det", M),
    ("det", M[:2, :2]),
    ("det", M[:1, :1]),
    ("inv", M[:1, :1]),
    ("adjugate", M[:1, :1]),
    ("adjugate", M[:2, :2]),
    ("adjugate", T[:, :2, :2]),
    ("logabsdet", M),
    ("detphase", M),
    ("logabsdet", N),
    ("adjugate", M),
    ("adjugate", N),
    ("detphase", N),
    ("gauge", A, {"shape": (2, 2), "unitary": False}),
    ("linear_triangular", M, A, {"lower": True}),
    ("linear_triangular", N, A, {"lower": True}),
    ("linear_triangular", M, T, {"lower": False, "adjoint": True}),
    ("triangular_solve", M, T, {"lower": False}),
    ("triangular_solve", N, N[::-1, :, :2], {"lower": True, "adjoint": True}),
    ("triangular_solve", M, A, {"lower": True}),
    ("triangular_solve", N, A, {"lower": False, "adjoint": True}),
    ("cholesky", P),
    ("linear_cholesky", M, A[:, :3]),
    ("tangent_of_cholesky", M, A[:, :3]),
    ("tangent_of_cholesky", N, A[:, :3]),
    ("tangent_of_cholesky", M, N),
    ("linear_cholesky", N, A[:, :3]),
    ("linear_cholesky", M, N),
    ("cholesky", P[:1, :1]),
    ("tangent_of_cholesky", N, M, {"adjoint": True}),
    ("cholesky", N @ N.mT),
    ("qr", A.T, {"complete": False}),
    ("qr", T, {"complete": False}),
    ("qr", M, {"complete": False}),
    ("qr", A, {"complete": False}),
    ("eigvalsh", P),
    ("eigvalsh", M, {"lower": True}),
    ("eigvalsh", P[:1, :1]),
    ("eigvalsh", N, {"lower": False}),
    ("eigh_vectors", P, {"lower": True}),
    ("eigh_vectors", N, {"lower": False}),
    ("eigvals", N),
    ("eig_vectors", M),
    ("svdvals", A),
    ("svdvals", A.T),
    ("svdvals", A[:1]),
    ("svdvals", T),
    ("svd_vectors", A.T, {"full": False}),
    ("svd_vectors", M, {"full": False}),
    ("svdvals", N),
    ("svd_vectors", A, {"full": False}),
    ("svd_vectors", N, {"full": False}),
    ("svd_vectors", T.mT, {"full": False}),
    ("pinv", A, {"rcond": 1e-15}),
    ("pinv", A.T, {"rcond": 1e-15}),
    ("pinv", M, {"rcond": 1e-15}),
    ("pinv", T, {"rcond": 1e-15}),
    ("pinv", T.mT, {"rcond": 1e-15}),
    ("lstsq", A, M, {"rcond": 1e-15}),
    ("lstsq", M, A, {"rcond": 1e-15}),
    ("lstsq", A.T, A.T[:, :2], {"rcond": 1e-15}),
    # functions of matrices, Sylvester's equation, bands
    *[(f"{name}m", 0.3 * M) for name in MATRIX],
    *[(f"linear_{name}m", 0.3 * M, N[0]) for name in MATRIX],
    *[(f"tangent_of_{name}m", 0.3 * M, N[0]) for name in MATRIX],
    ("expm", N),
    ("sqrtm", N),
    ("tangent_of_expm", N, M),
    ("sylvester", M, N[0], A[:, :3]),
    ("sylvester", M, N[0], M[::-1], {"adjoint": True}),
    ("linear_sylvester", M, B[:2] + 3 * np.eye(2), A[:, :2], {"adjoint": True}),
    ("sylvester", M, B[:2] + 3 * np.eye(2), A[:, :2], {"adjoint": True}),
    ("linear_sylvester", M, N[0], A[:, :3]),
    ("lu_packed", M),
    ("lu_packed", M[::-1]),
    ("range_basis", A[:, :1], {"rank": 1, "rcond": 1e-15}),
    ("null_basis", A, {"rank": 3, "rcond": 1e-15}),
    ("unitary_factor", M),
    ("unitary_factor", B),
    ("unitary_factor", A.T),
    ("care", -M, A[:, :2], P, P[:2, :2]),
    ("dare", 0.3 * M, A[:, :2], P, P[:2, :2]),
    ("banded", A + 3 * (np.arange(3) == 1)[:, None], B, {"below": 1}),
    ("banded", A + 3 * (np.arange(3) == 2)[:, None], B, {"below": 0}),
    ("banded", A + 3 * (np.arange(3) == 1)[:, None], B, {"below": 1, "adjoint": True}),
    ("linear_banded", A + 3 * (np.arange(3) == 0)[:, None], B, {"below": 2, "adjoint": True}),
    ("banded", A + 3 * (np.arange(3) == 0)[:, None], B, {"below": 2, "adjoint": True}),
    ("linear_banded", A + 3 * (np.arange(3) == 1)[:, None], B, {"below": 1}),
    # filters
    ("convolve_all", A, B),
    ("convolve_all", B, A),
    ("convolve_all", T, U),
    ("correlate_inside", x, x[:1]),
    ("convolve_all", x, z),
    ("correlate_inside", A, B[:2]),
    ("correlate_inside", T, U[:1, :2]),
    ("recursion", big, A),
    ("recursion", big[:1], A),
    ("recursion", big, A, {"adjoint": True}),
    ("linear_recursion", big, A, {"adjoint": True}),
    ("recursion", big, z, {"adjoint": True}),
    ("linear_recursion", big, A),
    # sparse matrices: values, rows, columns
    ("sparse_product", z, np.array([0, 2, 2]), np.array([1, 0, 1]), A, {"size": 4}),
    ("linear_sparse_solve", A[0] + 2, np.arange(4) % 3, PLACES, M, {"adjoint": True}),
    ("products_at", A, T[0], np.array([0, 2, 2, 1]), PLACES),
    ("sparse_solve", big, np.array([0, 2, 1]), np.array([1, 2, 0]), A),
    ("sparse_solve", A[0] + 2, np.arange(4) % 3, PLACES, M, {"adjoint": True}),
    ("linear_sparse_solve", A[0] + 2, np.arange(4) % 3, PLACES, M),
    # Fourier transforms
    ("fft", T, {"axes": (0, 2), "inverse": False, "norm": "ortho"}),
    ("fft", A, {"axes": (1,), "inverse": True, "norm": "backward"}),
    ("fft", A, {"axes": (0, 1), "inverse": False, "norm": "forward"}),
    ("fft", A, {"axes": (0,), "inverse": True, "norm": "ortho"}),
    ("fft", A, {"axes": (1,), "inverse": True, "norm": "forward"}),
    ("fft", A[:1], {"axes": (0, 1), "inverse": False, "norm": "backward"}),
    ("rfft", A, {"axis": 1, "norm": "backward"}),
    *[
        ("rfft", a, {"axis": axis, "norm": norm, "weighted": weighted})
        for norm in ("backward", "ortho", "forward")
        for weighted in (False, True)
        for a, axis in ((A, 0), (A, 1))
    ],
    *[
        ("irfft", A, {"n": n, "axis": axis, "norm": norm, "weighted": weighted})
        for norm in ("backward", "ortho", "forward")
        for weighted in (False, True)
        for n, axis in ((6, 1), (7, 1), (4, 0), (5, 0))
    ],
    ("rfft", T, {"axis": 1, "norm": "forward", "weighted": True}),
    ("irfft", A, {"n": 6, "axis": 1, "norm": "ortho"}),
    ("irfft", T, {"n": 5, "axis": 1, "norm": "backward", "weighted": True}),
    ("waves", A, {"kind": 1, "sine": False, "axis": 1}),
    *[
        ("waves", A, {"kind": kind, "sine": sine, "axis": axis})
        for kind in (1, 2, 3, 4)
        for sine in (False, True)
        for axis in (0, 1)
    ],
    ("waves", T, {"kind": 2, "sine": True, "axis": 0}),
    ("waves", A, {"kind": 3, "sine": False, "axis": 0}),
    ("waves", z, {"kind": 4, "sine": True, "axis": 0}),
    # locally constant
    ("lu_factors", N),
    ("lu_pivots", M),
    ("row_order", np.array([2, 2, 2])),
    ("detsign", N),
    ("eigh_factors", P),
    ("eig_factors", M),
    ("svd_factors", T, {"full": True}),
    ("rank_of_lstsq", A, {"rcond": 1e-15}),
    ("matrix_rank", T),
    ("sign", z),
    ("gammasgn", z),
    ("floor", z),
    ("ceil", z),
    ("trunc", z),
    ("rint", z),
    ("round", z, 1),
    ("around", z),
    ("fix", z),
    ("floor_divide", z, x),
    ("signbit", z),
    ("isnan", z),
    ("isinf", z),
    ("isfinite", z),
    ("isneginf", z),
    ("isposinf", z),
    ("isreal", z),
    ("iscomplex", z),
    ("isclose", z, x),
    ("allclose", z, x),
    ("array_equal", z, x),
    ("array_equiv", z, x),
    ("equal", z, x),
    ("not_equal", z, x),
    ("less", z, x),
    ("less_equal", z, x),
    ("greater", z, x),
    ("greater_equal", z, x),
    ("logical_and", z, x),
    ("logical_or", z, x),
    ("logical_xor", z, x),
    ("logical_not", z),
    ("compiled", np.True_),  # as what is compiled has it
    ("spacing", z),
    ("exponent", z),
    ("gcd", whole, flags),
    ("lcm", whole, flags),
    ("bitwise_and", whole, flags),
    ("bitwise_or", whole, flags),
    ("bitwise_xor", whole, flags),
    ("bitwise_count", whole),
    ("invert", whole),
    ("left_shift", whole, 2),
    ("right_shift", whole, flags),
    ("isin", whole, flags),
    ("stored", 9 * z, {"dtype": np.dtype(np.int8)}),
    ("exception_of", z - 0.5, {"of": "math_sqrt", "kinds": "ValueError"}),
    ("stop_gradient", z),
    ("argmax", A, {"axis": 1}),
    ("nanargmax", A, {"axis": 1}),
    ("nanargmin", A),
    ("argmin", A),
    ("argsort", A),
    ("argpartition", x, 1),
    ("partition_order", x, 1, {"axis": 0}),
    ("lexsort", A),
    ("nonzero", z),
    ("flatnonzero", z),
    ("argwhere", z),
    ("distinct", A),
    ("searchsorted", np.sort(z), x),
    ("digitize", x, np.sort(z)),
    ("any", z),
    ("all", z),
    ("count_nonzero", z),
    ("attains", A, np.max(A, axis=1, keepdims=True)),
    ("attains", np.where(A > 1, np.nan, A), np.max(np.where(A > 1, np.nan, A), 0)),
    ("ties", np.max(A, axis=0) == A, over(0) | {"dtype": np.dtype(float)}),
    ("ties", np.round(A) == np.max(np.round(A)), over(0, 1) | {"dtype": np.dtype(np.float32)}),
    ("shape", A),
    ("ndim", A),
    ("size", A),
    ("iscomplexobj", A),
    ("isrealobj", A),
    ("result_type", A),
]


class Line:
    """A line of the table: the primitive as a function of the arguments that are differentiated."""

    def __init__(self, name, *rest, function=None):
        self.params = rest[-1] if isinstance(rest[-1], dict) else {}
        self.args = rest[:-1] if self.params else rest
        self.name = name
        self.primitive = op(name)
        self.function = function or self.primitive
        self.active = [i for i, a in enumerate(self.args) if self.differentiable(i, a)]

    def differentiable(self, i, a):
        linear = self.primitive.linear
        if isinstance(self.primitive, Linear) and linear is not None and i not in linear:
            return False
        if i in getattr(self.primitive, "without", ()):  # an argument that has no rule
            return False
        return isinstance(a, float | complex) or getattr(a, "dtype", np.dtype(int)).kind in "fc"

    def cast(self, dtype):
        """The same line with arguments of another dtype; numbers of Python's stay as they are."""
        return self.of(
            a.astype(dtype) if isinstance(a, np.ndarray) and i in self.active else a
            for i, a in enumerate(self.args)
        )

    def complex(self):
        """The same line with complex arguments."""
        return self.of(
            a * (1 + 0.3j) + 0.2j if isinstance(a, np.ndarray) and i in self.active else a
            for i, a in enumerate(self.args)
        )

    def point(self):
        return [self.args[i] for i in self.active]

    def of(self, args):
        """The same line with other arguments."""
        params = [self.params] if self.params else []
        return Line(self.name, *args, *params, function=self.function)

    def filled(self, values):
        """All arguments, from those that are differentiated."""
        args = list(self.args)
        for i, v in zip(self.active, values, strict=True):
            args[i] = v
        return args

    def __call__(self, *values):
        return self.function(*self.filled(values), **self.params)

    def plain(self):
        """The line as a function that a user may have written."""
        f, filled, params = self.function, self.filled, self.params
        return lambda *values: f(*filled(values), **params)

    def linearize(self):
        return lineara.linearize(self.plain(), *self.point())

    def __repr__(self):
        shapes = "_".join(
            "x".join(map(str, np.shape(a))) or repr(a) if not isinstance(a, bool) else str(a)
            for a in self.args
        )
        spelled = "" if self.function is self.primitive else f"-{self.function!r}"
        return f"{self.name}-{shapes}{spelled}"


TABLE = [Line(*line) for line in LINES]
OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
OPERATORS |= {"divide": operator.truediv, "power": operator.pow, "remainder": operator.mod}
OPERATORS |= {"negative": operator.neg, "abs": abs}
ELEMENTWISE = [line for line in TABLE if isinstance(line.primitive, Elementwise)]
ELEMENTWISE += [
    Line(line.name, *line.args, function=f)
    for line in ELEMENTWISE
    for f in (line.primitive.array, OPERATORS.get(line.name))
    if isinstance(f, np.ufunc) or f in OPERATORS.values()
]
OTHERS = [line for line in TABLE if not isinstance(line.primitive, Elementwise | Constant)]
SMOOTH = [*ELEMENTWISE, *OTHERS]
AWAY_FROM_KINKS = [line for line in SMOOTH if line.args[0] is not ties]


laws = Laws()


def close(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 10)


def random_like(value, seed=0):
    rng = np.random.default_rng(seed)
    real = rng.normal(size=np.shape(value))
    if np.iscomplexobj(value):
        return real + 1j * rng.normal(size=np.shape(value))
    return real if np.shape(value) else float(real)


def inner(a, b):
    """The inner product Re<a, b> of arrays, or of tuples of them."""
    if isinstance(a, tuple):
        return sum(inner(u, v) for u, v in zip(a, b, strict=True))
    return float(np.sum(np.conj(a) * b).real)


def in_reals(value):
    """The real part of what is complex."""
    return np.real(value) if np.iscomplexobj(value) else value


def as_vector(parts):
    return parts[0] if len(parts) == 1 else tuple(parts)


def as_tuple(vector):
    return vector if isinstance(vector, tuple) else (vector,)


def difference(f, point, direction, step=1e-6):
    """The central difference of f, of the fourth order."""
    at = [
        f(*(p + k * step * d for p, d in zip(point, direction, strict=True)))
        for k in (-2, -1, 1, 2)
    ]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)


@cache
def supports_complex(name):
    line = next(line for line in SMOOTH if line.name == name)
    if name in ("astype", "keep", "fabs", "max", "min", "polygamma", "real", "imag", "of_parts"):
        return name in ("keep", "real", "imag")
    phases = ("eigh_vectors", "svd_vectors", "gauge", "range_basis", "null_basis")  # test_linalg
    if name in ("maximum", "minimum", "fmax", "fmin", *phases):
        return False
    try:
        line.complex()(*line.complex().point())
    except TypeError:
        return False
    return True


def takes_complex(line):
    return supports_complex(line.name)


# --- Python's own ---------------------------------------------------------------------------------

PYTHONS = [p for p in registry.primitives.values() if isinstance(p, Own)]
FLOATS = [0.3, -0.7, 1.5, 2.0, 0.0, -0.0, 710.5, -1e308, 1e308, math.inf, math.nan]


def outcome(act, args):
    """The bits of a value, or the class of an exception."""
    try:
        y = act(*args)
    except (ArithmeticError, ValueError, LinearaError) as e:
        return type(e)
    if isinstance(y, complex):
        return y.real.hex(), y.imag.hex()
    return int(y) if isinstance(y, int | np.integer | np.bool_) else float(y).hex()


WHOLE_NUMBERS = [3, -2, 0, 70, 2**62]
OPTIONS = {"math_round_to": {"digits": 1}}
COMPLEX_NUMBERS = [0.3 - 1j, 2 + 0j, 0j, 1e308j, complex(math.nan, 1)]


def points_of(p):
    """Arguments of Python's own function: floats, and where it takes them whole or complex ones."""
    if p.name == "math_ldexp":
        return itertools.product(FLOATS, WHOLE_NUMBERS)
    if p.name in ("math_gcd", "math_lcm"):
        return itertools.product(WHOLE_NUMBERS[:4], repeat=2)
    two = "shift" in p.name or p.base.name in ("floor_divide", "isclose")
    taken = getattr(p, "arity", 2 if two else 1)
    kinds = [FLOATS] if p.name.startswith(("math", "cmath_rect")) else [COMPLEX_NUMBERS]
    if p.name.startswith("python"):
        kinds = [WHOLE_NUMBERS] if "shift" in p.name else [FLOATS, WHOLE_NUMBERS]
        kinds += [COMPLEX_NUMBERS] * (
            p.name.removeprefix("python_") in ("divide", "multiply", "abs")
        )
    found = itertools.chain(*[itertools.product(numbers, repeat=taken) for numbers in kinds])
    large = ("python_power", "python_left_shift", "python_right_shift")
    return (v for v in found if p.name not in large or type(v[1]) is float or v[1] < 99)


def test_pythons_own_have_their_values_exceptions_and_the_derivative_of_their_base():
    """Of numbers, and of lanes, where two in the last place are left to NumPy's functions."""
    for p in PYTHONS:
        act, ours = (functools.partial(f, **OPTIONS.get(p.name, {})) for f in (p.act, p))
        for args in points_of(p):
            want = outcome(act, args)
            found = outcome(ours, [np.asarray(a)[()] for a in args])
            lanes = outcome(lambda *a, f=ours: f(*map(np.atleast_1d, a))[0], args)
            assert found in (want, StagingError), (p, args)
            if found is StagingError:  # the type depends on the value, or it has over 64 bits
                assert type(want) is not type, (p, args)
            elif type(want) is str:
                near = [float.fromhex(v) for v in (lanes, want)]
                assert lanes == want or math.isclose(*near, rel_tol=5e-16), (p, args)
            elif type(want) is not tuple:  # NumPy's complex functions are of another precision
                assert lanes == want, (p, args)
            smooth = isinstance(p, Elementwise) and type(args[0]) is float
            if type(found) is str and smooth and math.isfinite(args[0]):
                typed = tuple(map(np.float64, args))
                maps = [q.linearize(p(*args), typed, (0,), {}, None) for q in (p, p.base)]
                one, other = (float(m.forward([1.0])) for m in maps)
                assert one == other or (one != one and other != other), (p, args)


# --- the laws ------------------------------------------------------------------------------------


def test_every_primitive_has_a_line():
    take_functions = {n for n, p in registry.primitives.items() if isinstance(p, HigherOrder)}
    known = take_functions | {line.name for line in TABLE} | {p.name for p in PYTHONS}
    missing = set(registry.primitives) - known
    assert not missing, f"primitives without a line in the table of tests: {sorted(missing)}"


@laws.of(TABLE)
def what_is_said_to_be_a_view_is_one(line):
    """A policy never stores a view, since it would store the argument."""
    if getattr(registry.primitives[line.name], "view", False):
        y = line.primitive.evaluate(np, *line.args, **line.params)
        assert any(np.shares_memory(y, a) for a in line.args)


OTHERWISE = ("astype", "eigvalsh", "fft", "lstsq", "qr")  # called as NumPy's are not


@laws.of(TABLE)
def the_value_is_that_of_numpy(line):
    name, args, params = line.name, line.args, dict(line.params)
    if name in ("concat", "stack"):
        args = (args,)
    if name == "einsum":
        args = (params.pop("subscripts"), *args)
    oracle = getattr(np, name, getattr(np.linalg, name, None))
    if oracle is None or name in OTHERWISE:
        return
    found = line(*line.point())
    if name != "result_type":
        close(found, oracle(*args, **params), 1e-15)
    assert type_of(found) == type_of(oracle(*args, **params))


@laws.of(SMOOTH)
def the_type_rule_agrees_with_the_value(line):
    for dtype in (np.float64, np.float32):
        cast = line.cast(dtype) if line.name != "astype" else line
        value = cast(*cast.point())
        types = [type_of(a) if isinstance(a, np.ndarray) else a for a in cast.args]
        assert line.primitive.result(*types, **line.params) == type_of(value)


@laws.of(AWAY_FROM_KINKS)
def the_jvp_is_the_limit_of_differences(line):
    _, L = line.linearize()
    point = line.point()
    direction = [random_like(p, i) for i, p in enumerate(point)]
    found = L @ as_vector(direction)
    close(found, difference(line, point, direction), 1e-8)


@laws.of(SMOOTH)
def the_transpose_is_the_adjoint(line):
    y, L = line.linearize()
    x_dot = as_vector([random_like(p, i) for i, p in enumerate(line.point())])
    y_bar = random_like(y, 9)
    close(inner(y_bar, L @ x_dot), inner(y_bar @ L, x_dot))


@laws.of([line for line in SMOOTH if len(line.active) > 1])
def each_argument_moves_alone_as_it_does_among_the_others(line):
    y, L = line.linearize()
    point, y_bar = line.point(), random_like(y, 9)
    still = [0.0 * p for p in point]
    for k, together in enumerate(y_bar @ L):
        others = lambda v, k=k: line(*point[:k], v, *point[k + 1 :])  # noqa: E731
        _, alone = lineara.linearize(others, point[k])
        x_dot = random_like(point[k], 1)
        close(y_bar @ alone, together)
        close(alone @ x_dot, L @ (*still[:k], x_dot, *still[k + 1 :]))


@laws.of(SMOOTH, where=takes_complex)
def complex_derivatives_are_those_of_pairs_of_reals(line):
    line = line.complex()
    y, L = line.linearize()
    point = line.point()
    for seed in (0, 5):
        direction = [random_like(p, i + seed) for i, p in enumerate(point)]
        found = L @ as_vector(direction)
        close(found, difference(line, point, direction), 2e-7)
        y_bar = random_like(y, 9)
        close(inner(y_bar, found), inner(y_bar @ L, as_vector(direction)))


@laws.of(SMOOTH)
def single_precision_stays_single(line):
    exact, single = line, line.cast(np.float32)
    if not any(isinstance(a, np.ndarray) for a in line.point()):
        return
    y, L = single.linearize()
    direction = [random_like(p, i) for i, p in enumerate(line.point())]
    narrow = [np.float32(d) if isinstance(d, np.ndarray) else d for d in direction]
    found = L @ as_vector(narrow)
    if np.shape(y):
        assert type_of(y).dtype == type_of(found).dtype
    pulled = as_tuple(random_like(y, 9) @ L)
    for g, p in zip(pulled, single.point(), strict=True):
        assert isinstance(p, float) or g.dtype == np.float32
    close(found, exact.linearize()[1] @ as_vector(direction), 2e-4)


@laws.of(AWAY_FROM_KINKS)
def second_derivatives_are_the_limit_of_differences_of_first_ones(line):
    point = line.point()
    c = random_like(line(*point), 3)
    places = tuple(range(len(point)))
    f = line.plain()
    gradient = lineara.grad(lambda *v: np.sum(np.real(c * f(*v))), places)
    direction = [random_like(p, i) for i, p in enumerate(point)]
    for i in places:
        of_one = lambda *v, i=i: np.sum(gradient(*v)[i] * 1.0)  # noqa: E731
        _, found = lineara.jvp(of_one, tuple(point), tuple(direction))
        close(found, difference(of_one, point, direction), 1e-7)


@laws.of(SMOOTH)
def the_jacobian_is_one_sweep_for_each_basis_vector(line):
    y, L = line.linearize()
    point = line.point()
    places = tuple(range(len(point))) if len(point) > 1 else 0
    loop = [[] for _ in point]
    for k in range(np.size(y)):
        e = np.zeros(np.shape(y))
        e.reshape(-1)[k] = 1.0
        e = e if e.shape else 1.0
        turned = as_tuple(1j * e @ L) if np.iscomplexobj(y) else [0.0] * len(point)
        for rows, g, h in zip(loop, as_tuple(e @ L), turned, strict=True):
            rows.append(np.ravel(g) + (1j * np.ravel(h) if np.iscomplexobj(y) else 0.0))
    for mode in ("forward", "reverse"):
        J = as_tuple(lineara.jacobian(line.plain(), places, mode=mode)(*point))
        for block, rows, p in zip(J, loop, point, strict=True):
            close(np.reshape(block, (np.size(y), np.size(p))), rows)


@laws.of(SMOOTH)
def batching_is_a_loop(line):
    arrays = [i for i in line.active if isinstance(line.args[i], np.ndarray)]
    for subset in [arrays, *([i] for i in arrays)]:
        flags = tuple(i in subset for i in range(len(line.args)))
        stacks = [
            np.stack([a, a * 0.9, a * 1.1]) if b else a
            for a, b in zip(line.args, flags, strict=True)
        ]
        if line.name in ("asin", "acos", "atanh", "acosh"):
            stacks = [
                np.stack([a, a[::-1], a]) if b else a for a, b in zip(line.args, flags, strict=True)
            ]
        loop = [
            line.primitive(
                *(s[k] if b else s for s, b in zip(stacks, flags, strict=True)), **line.params
            )
            for k in range(3)
        ]
        close(line.primitive.batch(tuple(stacks), flags, line.params), np.stack(loop))


@laws.of([line for line in SMOOTH if isinstance(line.primitive, Linear | Multilinear)])
def linear_ones_run_on_types_alone(line):
    for i in line.active:
        if isinstance(line.primitive, Linear) and len(line.active) > 1:
            continue
        partial = lambda v, i=i: line(*(v if j == i else line.args[j] for j in line.active))  # noqa: E731
        joint = linear_map_of(partial, [type_of(line.args[i])])
        v = random_like(line.args[i])
        close(joint.forward([v]), partial(v))
        y_bar = random_like(line(*line.point()), 9)
        close(inner(joint.back(y_bar)[0], v), inner(y_bar, partial(v)))


@laws.of([line for line in SMOOTH if isinstance(line.primitive, General)])
def others_are_refused_where_there_is_no_value(line):
    with pytest.raises(LinearityError):
        linear_map_of(line, [type_of(p) for p in line.point()])


@laws.of([line for line in TABLE if isinstance(line.primitive, Constant)])
def constants_are_plain_and_have_no_derivative(line):
    seen = []

    def f(v):
        found = line(v, *line.point()[1:]) if line.active else line()
        seen.append(found)
        return np.sum(v)

    g = lineara.grad(f)(line.point()[0] if line.active else z)
    close(g, np.ones_like(g))
    parts = seen[0] if isinstance(seen[0], tuple) else seen
    assert not any(isinstance(v, Box) for v in parts)


# --- elementwise ---------------------------------------------------------------------------------


def scalars(line):
    """The line element by element."""
    arrays = np.broadcast_arrays(*line.args)
    for values in zip(*(a.ravel() for a in arrays), strict=True):
        yield [v.item() for v in values]


@laws.of(ELEMENTWISE)
def python_scalars_and_arrays_agree(line):
    """The scalar path of the engine, under every name of the function, is the array path."""
    named = [f for f, record in registry.foreign.items() if record.ours is line.primitive]
    named = named if line.function is line.primitive else [line.function]
    weights = [np.ravel(v) for v in as_tuple(np.ones(np.shape(line(*line.point()))) @ full(line))]
    floating = [i for i in line.active]
    for k, values in enumerate(scalars(line)):
        point = tuple(float(values[i]) for i in floating)
        for f in named:

            def of_active(*v, f=f, values=values):
                filled = list(values)
                for i, u in zip(floating, v, strict=True):
                    filled[i] = u
                return in_reals(f(*filled))

            found = lineara.grad(of_active, tuple(range(len(point))))(*point)
            close(found, [weight[k] for weight in weights], 1e-14)


def full(line):
    """The linear map of the line with its arguments broadcast."""
    arrays = np.broadcast_arrays(*line.args)
    return line.of(
        np.array(a) if i in line.active else a for i, a in enumerate(arrays)
    ).linearize()[1]


REFERENCE = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda a: -a,
    "square": lambda a: a * a,
    "reciprocal": lambda a: 1 / a,
    "remainder": lambda a, b: a - b * mpmath.floor(a / b),
    "fmod": lambda a, b: a - b * int(a / b),
    "abs": mpmath.fabs,
    "cbrt": lambda a: mpmath.sign(a) * mpmath.cbrt(abs(a)),
    "exp2": lambda a: mpmath.mpf(2) ** a,
    "log2": lambda a: mpmath.log(a, 2),
    "log1p": lambda a: mpmath.log(1 + a),
    "logaddexp": lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
    "logaddexp2": lambda a, b: mpmath.log(mpmath.mpf(2) ** a + mpmath.mpf(2) ** b, 2),
    "deg2rad": mpmath.radians,
    "rad2deg": mpmath.degrees,
    "copysign": lambda a, b: abs(a) * mpmath.sign(b),
    "maximum": max,
    "fmax": max,
    "minimum": min,
    "fmin": min,
    "clip_below": max,
    "clip_above": min,
    "length": mpmath.sqrt,
    "gammasgn": lambda a: mpmath.sign(mpmath.gamma(a)),
    "sinc": mpmath.sincpi,
    "ldexp": lambda a, n: a * mpmath.mpf(2) ** n,
    "nextafter": lambda a, b: a,
    "fraction": lambda a: a - int(a),
    "rect_real": lambda a, b: a * mpmath.cos(b),
    "rect_imag": lambda a, b: a * mpmath.sin(b),
} | {name: reference for name, *_, reference in SPECIAL}


@laws.of([line for line in ELEMENTWISE if line.function is line.primitive])
def partials_have_full_precision(line):
    """To 1e-12, against derivatives computed with 40 digits."""
    reference = REFERENCE.get(line.name) or getattr(mpmath, line.name)
    with mpmath.workdps(40):
        for values in scalars(line):
            exact = [mpmath.mpf(v) if isinstance(v, float) else v for v in values]
            y = line.primitive(*values)
            for i in line.active:
                order = tuple(int(i == j) for j in line.active)
                point = [exact[j] for j in line.active]

                def of_active(*v, exact=exact):
                    filled = list(exact)
                    for j, u in zip(line.active, v, strict=True):
                        filled[j] = u
                    return reference(*filled)

                truth = mpmath.diff(of_active, tuple(point), order)
                found = line.primitive.weights[i](y, *map(np.float64, values))
                close(complex(found), complex(truth))


@laws.of([line for line in ELEMENTWISE if line.name != "abs"], where=takes_complex)
def complex_step_agrees(line):
    """An independent derivative without cancellation, of functions that are analytic."""
    if "D->D" not in "".join(getattr(line.primitive.array, "types", [])).replace("DD", "D"):
        return
    point = line.point()
    direction = [random_like(p, i) for i, p in enumerate(point)]
    stepped = line(*(p + 1e-30j * d for p, d in zip(point, direction, strict=True)))
    close(line.linearize()[1] @ as_vector(direction), np.imag(stepped) / 1e-30)


HARD = [0.0, -0.0, 1.0, -1.0, 1e-200, 1e200, 1e-310, 5.0]


@laws.of(ELEMENTWISE)
def derivatives_do_not_signal(line):
    """Where the value raises no floating-point error, neither do its partials.

    A rule may look at an array as a whole, so the arrays are those of all points, and those of the
    points that have one number in common.
    """
    count = len(line.active)

    def total(y):
        with np.errstate(all="ignore"):  # infinite values of several points
            return np.sum(in_reals(y))

    def at(points):
        columns = dict(zip(line.active, zip(*points, strict=True), strict=True))
        return line.of(np.array(columns[i]) if i in columns else a for i, a in enumerate(ones))

    ones = [
        a[:1] if np.ndim(a) == 1 and i not in line.active else a for i, a in enumerate(line.args)
    ]
    silent = []
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for numbers in itertools.product(HARD if count < 3 else HARD[::2], repeat=count):
            try:
                line.primitive(*at([numbers, numbers]).args)
            except (FloatingPointError, ValueError, RuntimeWarning):
                continue
            silent.append(numbers)
        common = [[v for v in silent if v[k] == x] for k in range(count) for x in set(HARD)]
        for points in filter(None, [silent, *common]):
            f, point = at(points).plain(), at(points).point()
            lineara.linearize(f, *point)
            lineara.grad(lambda *v, f=f: total(f(*v)))(*point)
        for numbers in silent if count == len(line.args) else ():
            lineara.grad(lambda *v: in_reals(line.plain()(*v)))(*numbers)


# --- edges of domains ----------------------------------------------------------------------------

inf, nan = math.inf, math.nan
EDGES = [
    # name, point, partials
    ("power", (0.0, 2.0), (0.0, 0.0)),
    ("power", (0.0, 1.0), (1.0, 0.0)),
    ("power", (0.0, 0.0), (0.0, 0.0)),
    ("power", (0.0, 0.5), (inf, 0.0)),
    ("power", (-2.0, 3.0), (12.0, nan)),
    ("power", (-2.0, 0.0), (0.0, nan)),
    ("power", (0.0, -1.0), (-inf, nan)),
    ("power", (2.0, 0.0), (0.0, math.log(2))),
    ("hypot", (0.0, 0.0), (0.0, 0.0)),
    ("hypot", (3e200, 4e200), (0.6, 0.8)),
    ("hypot", (3e-200, 4e-200), (0.6, 0.8)),
    ("atan2", (0.0, 0.0), (0.0, 0.0)),
    ("atan2", (3e200, 4e200), (0.16e-200, -0.12e-200)),
    ("atan2", (3e-200, 4e-200), (0.16e200, -0.12e200)),
    ("atan2", (inf, 2.0), (0.0, 0.0)),
    ("atan2", (2.0, inf), (0.0, 0.0)),
    ("atan2", (nan, 0.0), (nan, nan)),
    ("abs", (0.0,), (0.0,)),
    ("sqrt", (0.0,), (inf,)),
    ("beip", (0.0,), (0.5,)),
    ("copysign", (0.0, 1.0), (0.0, 0.0)),
    ("hyperbolic_sine_integral", (0.0,), (1.0,)),
    ("sine_integral", (0.0,), (1.0,)),
    ("berp", (0.0,), (0.0,)),
    ("xlogy", (0.0, 2.0), (math.log(2), 0.0)),
    ("xlog1py", (0.0, 1.0), (math.log(2), 0.0)),
    ("rel_entr", (0.0, 2.0), (-inf, 0.0)),
    ("rel_entr", (-1.0, 2.0), (0.0, 0.0)),
    ("rel_entr", (1.0, -2.0), (0.0, 0.0)),
    ("kl_div", (0.0, 2.0), (-inf, 1.0)),
    ("beta_density", (2.0, 3.0, -0.5), (0.0, 0.0, 0.0)),
    ("beta_density", (2.5, 3.5, 1.5), (0.0, 0.0, 0.0)),
    ("beta_density", (2.5, 3.5, -0.5), (0.0, 0.0, 0.0)),
    ("beta_density", (2.0, 3.0, 1.5), (0.0, 0.0, 0.0)),
    ("beta_density", (2.0, 3.0, 0.0), (0.0, 0.0, 0.0)),
    ("beta_density", (2.0, 3.0, 1.0), (0.0, 0.0, 0.0)),
    ("beta_density", (2.0, 1.0, 1.0), (1.0, 0.0, 0.0)),  # a, b at the ends of x
    ("beta_density", (1.0, 2.0, 0.0), (0.0, 1.0, 0.0)),
    ("boxcox", (0.0, 2.0), (0.0, 0.25)),
    ("boxcox1p", (-1.0, 2.0), (0.0, 0.25)),
    ("gamma_density", (2.0, 0.0), (0.0, 1.0)),
    ("gamma_density", (3.0, 0.0), (0.0, 0.0)),
    ("gamma_density", (2.0, -1.0), (0.0, 0.0)),
    ("kl_div", (-1.0, 1.0), (0.0, 0.0)),
    ("kl_div", (1.0, -1.0), (0.0, 0.0)),
    ("binom", (2.0, -1.0), (0.0, 1 / 3)),  # the value is 0, its slope is not
    ("binom", (2.0, 3.0), (1 / 3, -1 / 3)),
    ("cbrt", (0.0,), (inf,)),
    ("log", (0.0,), (inf,)),
    ("maximum", (1.0, 1.0), (0.5, 0.5)),
    ("minimum", (1.0, 1.0), (0.5, 0.5)),
    ("maximum", (1.0, nan), (1.0, 1.0)),
    ("fmax", (1.0, nan), (1.0, 0.0)),
    ("fmin", (nan, 2.0), (0.0, 1.0)),
    ("remainder", (-7.0, 3.0), (1.0, 3.0)),
    ("fmod", (-7.0, 3.0), (1.0, 2.0)),
    ("asin", (1 - 1e-15,), (1 / math.sqrt(2e-15),)),
    ("logaddexp", (-1000.0, 0.0), (0.0, 1.0)),
    ("logaddexp", (1000.0, 1000.0), (0.5, 0.5)),
    ("tanh", (400.0,), (0.0,)),
    ("expm1", (-40.0,), (math.exp(-40),)),
    ("divide", (1.0, 0.0), (inf, -inf)),
]


@pytest.mark.parametrize(("name", "point", "partials"), EDGES, ids=lambda v: str(v))
def test_partials_at_edges(name, point, partials):
    places = tuple(range(len(point)))
    with np.errstate(all="ignore"):
        of_scalars = lineara.grad(lambda *v: op(name)(*v), places)(*point)
        of_arrays = lineara.grad(lambda *v: np.sum(op(name)(*v)), places)(*map(np.array, point))
        wide = [np.full(2, v) for v in point]
        of_vectors = lineara.grad(lambda *v: np.sum(op(name)(*v)), places)(*wide)
    np.testing.assert_allclose(of_scalars, partials, rtol=1e-2 if name == "asin" else 1e-12)
    np.testing.assert_allclose(of_arrays, of_scalars, rtol=1e-12)
    np.testing.assert_allclose([g[0] for g in of_vectors], of_scalars, rtol=1e-12)


def test_powers_of_zero_to_every_order():
    for n in (0, 1, 2, 3, 2.0, 5):
        f = lambda x, n=n: x**n  # noqa: E731
        for order in range(1, 5):
            f = lineara.grad(f)
            falling = math.prod(n - k for k in range(order))
            assert f(0.0) == (float(falling) if order == n else 0.0), (n, order)


def test_the_modulus_of_a_complex_number_has_slope_zero_at_zero():
    g = lineara.grad(lambda z: np.sum(np.abs(z)))(np.array([0j, 3 + 4j]))
    close(g, [0, 0.6 + 0.8j])


def test_a_partial_is_checked_when_it_is_declared():
    with pytest.raises(AssertionError, match="must take"):
        lineara.facts.primitive.elementwise("half_wrong", lambda y, x, w: 1)
    assert "half_wrong" not in registry.primitives


def test_two_primitives_of_one_name_are_refused():
    with pytest.raises(AssertionError, match="declared twice"):
        Primitive("sin")


def test_a_new_primitive_is_one_line():
    cube = lineara.facts.primitive.elementwise(
        "cube_of_test", lambda y, x: 3 * x * x, array=lambda x: x**3
    )
    try:
        close(lineara.grad(lambda x: np.sum(cube(x)))(z), 3 * z**2)
        close(lineara.grad(lambda x: cube(x))(2.0), 12.0)
        close(lineara.grad(lineara.grad(lambda x: cube(x)))(2.0), 12.0)
    finally:
        del registry.primitives["cube_of_test"]


def test_cmath_is_the_oracle_of_complex_functions():
    point = 0.4 + 0.3j
    for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "asin", "acos"):
        near = getattr(cmath, name)(point + 1e-6) - getattr(cmath, name)(point - 1e-6)
        _, found = lineara.jvp(
            lambda z, name=name: op(name)(z), (np.array([point]),), (np.ones(1),)
        )
        close(found[0], near / 2e-6, 1e-8)


@pytest.mark.parametrize("side", [0.0, -0.0])
@pytest.mark.parametrize(
    ("name", "cuts"),
    [
        ("asin", (1.7, -1.7)),
        ("acos", (1.7, -1.7)),
        ("acosh", (0.4, -0.4, -2.0)),
        ("asinh", (2j, -2j)),
        ("atanh", (1.7, -1.7)),
        ("sqrt", (-2.0,)),
        ("log", (-2.0,)),
    ],
)
def test_slopes_along_a_branch_cut_are_those_of_its_side(name, cuts, side):
    """A zero has a sign, which says on which side of the cut a number lies."""
    for cut in cuts:
        along = 1j if name == "asinh" else 1.0

        def at(step, cut=cut, along=along):
            z = cut + along * step
            return np.array([complex(side, z.imag) if along == 1j else complex(z.real, side)])

        _, found = lineara.jvp(lambda z: op(name)(z), (at(0.0),), (np.array([along + 0j]),))
        with np.errstate(all="ignore"):
            near = (op(name)(at(1e-6)) - op(name)(at(-1e-6))) / 2e-6
        close(found, near, 1e-7)


test_every_law = laws.test()

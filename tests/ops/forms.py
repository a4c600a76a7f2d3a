"""Expressions of NumPy as users write them, and the arrays that they mention."""

import re

import numpy as np
from linalg_forms import LINALG

rng = np.random.default_rng(3)
POINT = {
    "s": 0.7,
    "x": np.array([0.31, -0.72, 0.55]),
    "y": np.array([0.83, 0.26, -0.61]),
    "v": np.array([0.9, 1.7, 0.4, 2.3]),
    "A": rng.normal(size=(3, 4)),
    "B": rng.normal(size=(4, 2)),
    "T": rng.normal(size=(2, 3, 4)),
    "U": rng.normal(size=(2, 4, 2)),
    "M": rng.normal(size=(3, 3)) + 3 * np.eye(3),
    "N": rng.normal(size=(2, 3, 3)) + 3 * np.eye(3),
    "P": rng.uniform(0.2, 2.0, size=(3, 4)),
    "Q": np.random.default_rng(4).normal(size=(4, 3)),
    "H": np.array([[0.0, 2.0, 3.0], [0.0, 5.0, 0.0], [1.5, 2.0, -1.0]]),
}
POINT["G"] = np.where(POINT["P"] > 1.35, np.nan, POINT["P"])
mask = np.array([[True, False, True, True], [False, False, True, True], [True, True, True, False]])
rows = np.array([2, 0, 2])

FORMS = """
# elementwise arithmetic
x + y; x - y; x * y; x / P[:, 0]; -x; +x; abs(x); x ** 3; x ** -2; P ** P; 2 ** x; 2.5 ** x
P ** 0.5; x + s; s * A; A - x[:, None]; 1 / P; x % 0.4; x // 0.4 + x; divmod(x, 0.4); np.add(x, y)
np.subtract(x, 1); np.multiply(2, x); np.divide(x, P[:, 1]); np.true_divide(x, 3); np.power(P, 2)
np.power(P, A); np.pow(P, 1.5); np.float_power(P, 2); np.square(x); np.reciprocal(v); np.negative(x)
np.positive(x); np.abs(x); np.absolute(x); np.fabs(x); np.sign(x) * x; np.mod(x, 0.4)
np.remainder(x, y); np.fmod(x, y); np.divmod(x, y); np.modf(x); np.ldexp(x, 3); np.copysign(x, y)
np.heaviside(x, s); np.round(x) + x; np.rint(x) * x; np.floor(x) * x; np.real(x); np.imag(x)
np.conj(x); np.conjugate(x); np.angle(x + 0.3j * y); np.abs(x + 1j * y)
# exponentials, logarithms, trigonometry
np.exp(A); np.exp2(A); np.expm1(A); np.log(P); np.log2(P); np.log10(P); np.log1p(P); np.sqrt(P)
np.cbrt(A); np.logaddexp(x, y); np.logaddexp2(x, y); np.sin(x); np.cos(x); np.tan(x); np.arcsin(x)
np.arccos(x); np.arctan(x); np.asin(x); np.atan(x); np.arctan2(x, y); np.atan2(x, y); np.hypot(x, y)
np.sinh(x); np.cosh(x); np.tanh(x); np.arcsinh(x); np.arccosh(1 + P); np.arctanh(x); np.deg2rad(x)
np.rad2deg(x); np.degrees(x); np.radians(x); np.exp(1j * x).real; np.exp((x + 1j * y) ** 2).imag
# comparisons and choices
np.where(x > 0, x, y); np.where(A > 0, np.log(np.abs(A)), 0); np.where(mask, A, x[:, None])
np.where(x > y, x, 1.0); np.where([True, False, True], [s, 1.0, s * s], x); np.where(x, x, y)
np.maximum(x, y); np.minimum(x, 0.1); np.fmax(x, y); np.fmin(x, y); np.maximum(A, x[:, None])
np.clip(A, -0.5, 0.5); np.clip(x, None, y); np.clip(A, min=0.1); np.clip(x, y - 1, y + 0.2)
np.select([x > 0.5, x < 0], [x, y * 2], s); (x > y) * x; np.sum(x[x > 0]); x * (x >= y)
max(x[0], x[1]); min(x[0], y[0], x[2]); sorted([x[2], x[0], x[1]])[1]; sum(x); np.heaviside(x, 0.5)
# sums, products, means
np.sum(A); np.sum(A, axis=0); np.sum(A, 1); np.sum(T, axis=(0, 2))
np.sum(A, axis=-1, keepdims=True); np.sum(A, where=mask); np.sum(A, axis=1, where=mask, initial=2.0)
np.sum(A, initial=s); A.sum(1); np.sum(x, axis=()); np.sum([x, y]); np.sum([x, y], axis=0)
np.sum(A, axis=0, dtype=np.float64); np.sum(s); np.sum((x, 2 * y)); np.add.reduce(A)
np.add.reduce(A, axis=1); np.add.accumulate(A); np.prod(x); np.prod(A, axis=0)
np.prod(T, axis=(2, 0), keepdims=True); np.prod(A, where=mask); np.prod(H); np.prod(H, axis=0)
np.prod(H, axis=1); np.prod(x, initial=s); np.multiply.reduce(A); A.prod(); x.prod(keepdims=True)
np.multiply.accumulate(A, axis=1); np.prod(H[:, :1], axis=1); np.mean(A); np.mean(A, axis=0)
np.mean(T, axis=(0, 1), keepdims=True); np.mean(A, where=mask); np.mean(A, axis=1, where=mask)
np.mean(A, axis=0, keepdims=True, where=mask); A.mean(1); np.mean(s); np.average(A)
np.average(A, weights=P); np.average(A, 0, weights=[1, 2, 3.0]); np.average(A, -1, v)
np.average(x, weights=P[:, 0], returned=True); np.average(T, (0, 2), weights=A[:2] ** 2); np.var(A)
np.var(A, axis=0); np.var(A, ddof=1); np.var(A, axis=1, keepdims=True, ddof=2); A.var()
np.var(A, where=mask); np.var(A, axis=1, where=mask, ddof=1); np.var(x + 1j * y); np.var(A, mean=s)
np.std(A); np.std(A, axis=0, ddof=1); np.std(A, axis=1, where=mask); A.std(1); np.std(x + 1j * y)
np.var(A, axis=0, correction=1); np.std(A, correction=1); np.ptp(A); np.ptp(A, axis=1); np.max(A)
np.max(A, axis=0); np.max(T, axis=(0, 2)); np.max(A, axis=1, keepdims=True); A.max(); np.amax(A, 1)
np.max(A, initial=0.5); np.max(A, axis=1, where=mask, initial=-1.0); np.max([x, y]); np.min(A)
np.min(A, axis=0); np.amin(A, 1); A.min(axis=1); np.min(A, where=mask, initial=s)
np.maximum.reduce(A); np.minimum.reduce(A, axis=1); np.max(np.zeros((0, 3)), axis=0, initial=s)
np.cumsum(A); np.cumsum(A, axis=0); np.cumsum(T, -1); A.cumsum(1); np.cumsum([x, y], axis=0)
np.cumprod(A); np.cumprod(A, axis=0); np.cumprod(H, axis=1); x.cumprod(); np.diff(A); np.diff(A, 2)
np.diff(A, axis=0); np.diff(x, prepend=s); np.diff(A, append=1.0, axis=0); np.diff(A, n=0)
np.cumulative_sum(A, axis=1, include_initial=True); np.cumulative_prod(x, include_initial=True)
# shapes
np.reshape(A, (2, 6)); np.reshape(A, -1); np.reshape(A, (6, -1)); np.reshape(A, (4, 3), order="F")
A.reshape(2, 6); A.reshape((3, 2, 2)); A.reshape(-1, order="F"); np.reshape(s, (1, 1))
np.append(np.array(s)[None], x); A.ravel(); np.ravel(A); np.ravel(A.T); np.ravel(A, "F")
A.flatten(); A.T.flatten() * 1; np.reshape(x[:0], (0, 3)); np.transpose(A)
np.transpose(T, (1, 0, 2)); np.transpose(T, (-1, 0, 1)); A.T; T.transpose(2, 0, 1)
np.permute_dims(T, (1, 2, 0)); np.swapaxes(T, 0, -1); T.swapaxes(0, 1); np.matrix_transpose(T); T.mT
np.moveaxis(T, 0, -1); np.moveaxis(T, (0, 1), (-1, 0)); np.rollaxis(T, 2); np.rollaxis(T, 0, 3)
np.expand_dims(x, 0); np.expand_dims(A, (0, 3)); np.squeeze(A[None, :, :, None]); T[:1].squeeze(0)
np.squeeze(A[:, :1, None], axis=(1, 2)); x[None]; x[:, None]; x[..., np.newaxis]
np.broadcast_to(x, (2, 3)); np.broadcast_to(s, (2, 2)); np.broadcast_to(x[:, None], (3, 4))
np.broadcast_arrays(x, A[:, :1]); np.atleast_1d(s); np.atleast_2d(x); np.atleast_3d(x)
np.atleast_3d(A); np.atleast_1d(s, x); A.astype(np.float64); x.astype(complex).imag
np.concatenate([A, M], axis=1); np.concatenate([A, A[:1]]); np.concatenate([A, x], axis=None)
np.concatenate((x, [1.0, 2.0], y)); np.concat([x, y]); np.concatenate([A, M, A], axis=-1)
np.stack([x, y]); np.stack([x, y], axis=1); np.stack([A, P], axis=-1); np.stack((x, [1, 2, 3]))
np.vstack([x, y]); np.vstack([A, A[0]]); np.hstack([x, y]); np.hstack([A, M]); np.dstack([A, P])
np.dstack([x, y]); np.column_stack([x, y]); np.column_stack([A, x]); np.append(x, y)
np.append(x, s); np.append(A, A, axis=0); np.block([[A, M], [A, M]]); np.block([x, y])
np.block([[s, s], [s, 1.0]]); np.array([x[0], x[1] * s]); np.array([[s, 1.0], [0.0, s]])
np.array([x, y]); np.array([A, P]); np.asarray([s, s * s]); np.array(x); np.asarray(x) * 2
np.copy(x); x.copy(); np.array(s); np.flip(A); np.flip(A, 0); np.flip(T, (0, 2)); np.flipud(A)
np.fliplr(A); np.rot90(A); np.rot90(A, -1); np.roll(A, 2); np.roll(A, 1, axis=1)
np.roll(A, (1, -1), axis=(0, 1)); np.roll(x, -7); np.roll(A, 3, 0); np.repeat(x, 2)
np.repeat(A, 3, axis=1); np.repeat(x, [1, 0, 2]); A.repeat(2, 0); np.repeat(s, 3); np.tile(x, 2)
np.tile(x, (2, 2)); np.tile(A, (2, 1)); np.tile(A, (1, 2, 1)); np.tile(s, 3); np.split(v, 2)
np.split(A, [1, 3], axis=1); np.array_split(v, 3); np.vsplit(A, 3); np.hsplit(A, 2); np.hsplit(v, 2)
np.dsplit(T, 2); np.unstack(A); np.unstack(A, axis=1); list(A); list(x); np.trace(M); np.trace(A, 1)
np.trace(T); np.diagonal(A); np.diagonal(T, 1, 1, 2); np.diag(x); np.diag(x, 1); np.diag(A, -1)
np.diagflat(A[:2, :2]); np.tril(A); np.triu(A, 1); np.tril(T, -1); np.triu(N); M.trace()
A.diagonal(1); np.delete(x, 1); np.delete(A, [0, 2], axis=1); np.sort(A); np.sort(A, axis=0)
np.sort(A, axis=None); np.sort(x)[::-1]; x[np.argsort(x)]; np.ravel(s)
# indexing
x[0]; x[-1]; A[1]; A[1, 2]; A[-1, -2]; A[1][2]; T[0, 1, 2]; A[:, 1]; A[1:]; A[::2]; A[::-1, ::-2]
A[...]; A[..., 1]; A[1, ...]; T[..., 0, :]; T[0, ..., 1]; A[None, 1]; A[:, None, 1]; A[None]; x[()]
A[1:1]; x[5:]; x[-2:]; x[2:0:-1]; T[:, ::-1][0, 1:]; A[1:, 1:][::2]; A.T[1]; A.T[1:, ::-1][0]
A[[0, 2]]; A[[0, 2, 0]]; A[rows]; A[rows, 1]; A[:, rows]; A[rows, rows]; A[[0, 1], [1, 3]]; A[[]]
A[rows[:, None], [0, 3]]; A[np.ix_([0, 2], [1, 3])]; A[[-1, -2]]; x[[[0, 1], [2, 2]]]; x[rows - 3]
T[[0, 1], :, [1, 2]]; T[:, [0, 1], [1, 2]]; T[[0, 1], [1, 2]]; T[0, :, rows]; T[:, rows, 1]
T[..., rows]; T[rows % 2, ..., 0]; T[[0, 1], None, [1, 2]]; T[None, :, rows]; T[[1], 1:, 2]; A[mask]
A[mask.any(1)]; A[:, mask[0]]; A[A > 0]; T[:, mask]; T[mask[:2, 0]]; A[mask[:, 0], 1]
A[np.array(1)]; A[np.int64(1)]; x[np.array([], int)]; x[[True, False, True]]; A[[0, 1], 1:3]
x[True]; np.take(A, [0, 5]); np.take(A, [0, 2], axis=0); np.take(A, rows, axis=1); np.take(x, 1)
x.take(rows); np.take(x, [5, -4], mode="wrap"); np.take(x, [5, -4], mode="clip")
np.take(A, [[0, 1], [2, 1]], 1); np.take_along_axis(A, np.argsort(A, 1), 1)
np.take_along_axis(A, np.array([[1], [2], [0]]), axis=1)
np.take_along_axis(A, np.array([[0, 1, 1, 0]]), axis=0); np.compress([True, False, True], x)
np.compress([0, 1, 1], A, axis=0); np.extract(mask, A); x[x.argmax()]; A[np.nonzero(A > 0)]
x.item(1); A.item(1, 2); A.flat[5] if hasattr(A.flat, "__getitem__") else A.item(5)
x.tolist()[1] * 2
# contractions
A @ B; x @ A; A @ v; x @ y; T @ U; A @ U; T @ B; T @ v; x @ N; N @ x; T @ B @ B.T; np.matmul(A, B)
np.matmul(T, U); np.matmul(x, A); np.dot(A, B); np.dot(x, y); np.dot(x, A); np.dot(A, v)
np.dot(s, A); np.dot(A, s); np.dot(T, B); np.dot(T, v); np.dot(A, U); np.dot(T, U); A.dot(B)
x.dot(y); np.dot([s, 1.0], [s, s]); np.vdot(A, P); np.vdot(x + 1j * y, y + 2j * x).real
np.inner(x, y); np.inner(A, P); np.inner(T, A); np.inner(s, x); np.outer(x, v); np.outer(A, x)
np.outer(s, x); np.tensordot(A, B, 1); np.tensordot(T, T, 3); np.tensordot(A, P)
np.tensordot(x, v, 0); np.tensordot(T, A, axes=([1, 2], [0, 1])); np.tensordot(T, A, (1, 0))
np.tensordot(A, A, ([-1], [-1])); np.kron(x, v); np.kron(A, B); np.kron(x, A); np.cross(x, y)
np.cross(M, x); np.cross(N, x, axisa=1); np.multiply.outer(x, v); np.add.outer(x, y)
np.subtract.outer(x, A); np.vecdot(A, P); np.vecdot(A, v); np.vecdot(x + 1j * y, y + 2j * x).imag
np.linalg.multi_dot([A, B, B.T]); np.linalg.outer(x, y); np.linalg.matrix_power(M, 3)
np.linalg.matrix_power(M, -2); np.linalg.matrix_power(N, 4); np.linalg.matrix_power(M, 0) * s
np.linalg.matmul(A, B); np.linalg.vecdot(x, y); np.linalg.trace(N)
# einsum
np.einsum("ij,jk", A, B); np.einsum("ij,jk->ik", A, B); np.einsum("ij,jk->ki", A, B)
np.einsum("ij->ji", A); np.einsum("ij", A); np.einsum("ji", A); np.einsum("ij->", A)
np.einsum("i,i", x, y); np.einsum("ii", M); np.einsum("ii->i", M); np.einsum("ij->j", A)
np.einsum("i,j->ij", x, v); np.einsum("ii,i->i", M, x); np.einsum("iij->j", T[:2, :2])
np.einsum("iii->i", T[:2, :2, :2]); np.einsum("...j,jk->...k", T, B); np.einsum("...ij->...ji", T)
np.einsum("i...->...", T); np.einsum("...,...", A, P); np.einsum("...ii->...i", N)
np.einsum("...i,...i", T, A); np.einsum("ij,...jk->...ik", A, U)
np.einsum("a...,...b->a...b", x, v); np.einsum(",i->i", s, x); np.einsum("ij,jk,k->i", A, B, B[0])
np.einsum("i,i,i->", x, y, x); np.einsum("ij,ij,ij->i", A, A, P); np.einsum(A, [0, 1], B, [1, 2])
np.einsum(A, [0, 1], B, [1, 2], [2, 0]); np.einsum(M, [0, 0]); np.einsum(T, [..., 0], v, [0])
np.einsum(T, [..., 0], v, [0], [...]); np.einsum(" ij , jk -> ik", A, B)
np.einsum("ij,kj->ik", A[:, :1], P); np.einsum("Ab,bC->CA", A, B)
np.einsum("i->", x, optimize=True); np.einsum("...i,...", T[None], x)
# linear algebra
np.linalg.solve(M, x); np.linalg.solve(M, A); np.linalg.solve(N, A); np.linalg.solve(N, x)
np.linalg.solve(M, T); np.linalg.solve(N, N); np.linalg.inv(M); np.linalg.inv(N); np.linalg.det(M)
np.linalg.det(N); np.linalg.slogdet(N)[1]; np.linalg.slogdet(M).logabsdet
np.linalg.det(M + 0j).real; np.linalg.norm(x); np.linalg.norm(A); np.linalg.norm(A, axis=0)
np.linalg.norm(A, axis=1, keepdims=True); np.linalg.norm(T, axis=(0, 2)); np.linalg.norm(x, 1)
np.linalg.norm(x, np.inf); np.linalg.norm(x, -np.inf); np.linalg.norm(x, 3); np.linalg.norm(x, 0.5)
np.linalg.norm(x, s + 2); np.linalg.norm(A, s - s + 2.0, axis=0); divmod(5.3, s + 1)[1]
np.linalg.norm(x, -1); np.linalg.norm(x, 2.5); np.linalg.norm(x, -2); np.linalg.norm(x, 0) + s
np.linalg.norm(A, 3, axis=1); np.linalg.norm(A, "fro"); np.linalg.norm(A, 1); np.linalg.norm(A, -1)
np.linalg.norm(A, np.inf); np.linalg.norm(A, -np.inf); np.linalg.norm([s, 1.0])
np.linalg.norm(x + 1j * y); np.linalg.norm(x + 1j * y, 1); np.linalg.norm(T, 1, axis=(2, 0))
np.linalg.vector_norm(A, axis=1, ord=3); np.linalg.vector_norm(A); np.linalg.matrix_norm(T)
np.linalg.matrix_norm(T, ord=1, keepdims=True); np.linalg.norm(A, ord=2, axis=0)
"""


FORMS += """
# ufuncs with options, and their methods
np.add(x, y, where=[True, False, True], out=x * x); np.exp(x, where=x > 0, out=np.ones(3))
np.multiply(A, A, where=mask, out=np.zeros((3, 4))); np.add(x, 1, dtype=np.float64)
np.hypot(s, 2.0, out=np.ones(3), where=[True, False, True]); np.ravel(s, "F"); np.transpose(s, ())
np.hypot(s, 2.0, out=np.full((), 3.0), where=np.array(True)); np.diff(A, 0, prepend=s, append=2.0)
np.hypot(s, 2.0, out=np.full((), 3.0), where=np.array(False)); np.nanprod(s) * s
np.subtract.reduce(A, axis=1, initial=s, where=mask); np.divide.reduce(P, initial=s, where=mask)
np.multiply(x, y, casting="safe"); np.sqrt(P, order="C"); np.modf(x, np.zeros(3), np.zeros(3))[0]
np.add.reduce([x, y]); np.add.reduce(A, axis=(0, 1))
np.add.reduce(A, axis=1, keepdims=True, initial=s); np.add.reduce(A, where=mask)
np.subtract.reduce(A); np.subtract.reduce(A, axis=1, initial=s); np.divide.reduce(P, axis=1)
np.power.reduce(P[:, :2], axis=1); np.logaddexp.reduce(A); np.logaddexp.reduce(A, axis=1)
np.logaddexp.reduce(A, axis=None); np.logaddexp.reduce(T, axis=(0, 2), keepdims=True)
np.logaddexp.reduce(A, axis=1, where=mask); np.logaddexp.reduce(x, initial=s)
np.logaddexp2.reduce(A); np.hypot.reduce(A, axis=1); np.hypot.reduce(x); np.fmax.reduce(A)
np.fmin.reduce(A, axis=1); np.fmax.reduce(A, where=mask, initial=0.1); np.arctan2.reduce(P)
np.maximum.reduce(A, axis=None); np.minimum.reduce(A, axis=(0, 1), keepdims=True)
np.maximum.reduce(A, axis=1, where=mask, initial=s); np.hypot.reduce(x[:0]) + s
np.add.accumulate(A, axis=1); np.subtract.accumulate(A, axis=1); np.divide.accumulate(P)
np.maximum.accumulate(A, axis=1); np.minimum.accumulate(A); np.fmax.accumulate(A[:, 0])
np.logaddexp.accumulate(A, axis=1); np.multiply.accumulate(A); np.power.accumulate(P[:, :3], axis=1)
np.multiply.accumulate(H, axis=1); np.add.reduceat(v, [0, 2]); np.add.reduceat(A, [2, 0, 1, 1])
np.add.reduceat(A, [0, 3, 1], axis=1); np.multiply.reduceat(v, [1, 3, 0])
np.maximum.reduceat(A, [0, 2], axis=1); np.logaddexp.reduceat(v, [0, 1]); np.power.outer(P[0], x)
np.arctan2.outer(x, v); np.maximum.outer(x, A); np.add.outer(s, x); np.hypot.outer(x, 2.0)
# numbers, and what is not one
np.sinc(x); np.sinc(np.append(x, 0.0)); np.sinc(A * 1e-6); np.i0(x); np.i0(A * 3); np.frexp(x)[0]
np.frexp(v * 9)[0]; np.ldexp(A, rows[:, None]); np.ldexp(A, 3); np.ldexp(s, -2)
np.nextafter(x, 1.0); np.spacing(x) * x; np.nan_to_num(x)
np.nan_to_num(np.append(x, [np.inf, -np.inf]), posinf=2.0, neginf=s)
np.nan_to_num(np.array([x[0], np.nan, x[1]]), nan=1.5); np.real_if_close(x + 0j * x)
np.real_if_close(x); np.signbit(x) * x; np.logaddexp(x, -np.inf); np.isin(rows, [2]) * x
# order
np.sort_complex(x + 1j * y).imag; np.partition(x, 1)[1]; np.partition(A, (0, 2), axis=1)[:, ::2]
np.partition(A, 5, axis=None)[5]; np.median(x); np.median(v); np.median(A, axis=0)
np.median(A, axis=1, keepdims=True); np.median(T, axis=(0, 2)); np.median(s); np.quantile(x, 0.3)
np.quantile(A, 0.25, axis=1); np.quantile(A, [0.1, 0.5, 0.9], axis=0); np.quantile(A, s)
np.quantile(A, [s, s * s], axis=1, keepdims=True); np.quantile(T, [[0.2], [0.7]], axis=(0, 1))
np.quantile(v, 0.4, method="inverted_cdf"); np.quantile(v, 0.5, method="averaged_inverted_cdf")
np.quantile(v, [0.5, 0.3], method="closest_observation"); np.quantile(v, s, method="hazen")
np.quantile(v, [0.1, s], method="interpolated_inverted_cdf"); np.quantile(v, s, method="weibull")
np.quantile(v, s, method="median_unbiased"); np.quantile(A, 0.9, 0, method="normal_unbiased")
np.quantile(v, 0.4, method="lower"); np.quantile(v, 0.4, method="higher")
np.quantile(v, [0.4, 0.5], method="midpoint"); np.quantile(v, 0.6, method="nearest")
np.quantile(v, [0.0, 1.0]); np.quantile(v, 0.6, method="inverted_cdf", weights=[1, 2, 0, 3])
np.quantile(A, [0.2, 0.6], 1, method="inverted_cdf", weights=P[0]); np.percentile(A, 30)
np.quantile(A, 0.4, axis=0, weights=P, method="inverted_cdf"); np.percentile(A, [10, 75], axis=1)
np.percentile(v, 100 * s); np.quantile(np.where(mask, A, np.nan), 0.5, axis=0)[2]; np.unique(x)
np.unique(rows * s); np.unique(A[[0, 2, 0]], axis=0); np.unique(np.round(A, 0) * s)
np.unique(x, return_index=True)[0]; np.unique(A, True, True, True)[0]; np.unique_values(x)
np.unique_counts(x * x).values; np.unique_inverse(A).values; np.unique_all(x)[0]; np.union1d(x, v)
np.intersect1d(A, A[1:]); np.intersect1d(x, x[:2], return_indices=True)[0]; np.setdiff1d(v, v[:2])
np.setxor1d(v, v[1:]); np.setdiff1d(x, y, assume_unique=True)
# what is not a number is left out
np.nansum(G); np.nansum(G, axis=0); np.nansum(G, axis=1, keepdims=True, initial=s); np.nanprod(G)
np.nanprod(G, axis=1); np.nanmean(G); np.nanmean(G, axis=0); np.nanmean(G, axis=1, where=mask)
np.nanvar(G); np.nanvar(G, axis=1, ddof=1, keepdims=True); np.nanstd(G, axis=0); np.nanmax(G)
np.nanmin(G, axis=1); np.nanmax(G, axis=0, initial=0.1); np.nanmin(A); np.nanmax(x, keepdims=True)
np.nanmedian(G); np.nanmedian(G, axis=0); np.nanmedian(G, axis=1, keepdims=True)
np.nanquantile(G, 0.3, axis=1); np.nanquantile(G, [0.2, s], axis=0); np.nanpercentile(G, 40)
np.nanpercentile(G, [10, 90], axis=1, method="hazen"); np.nancumsum(G, axis=1); np.nancumprod(G)
np.nanargmax(G, axis=1) * x; np.nanmean(x + 1j * y).imag; np.nanvar(x + 1j * y)
# known at points
np.interp(x, v, [1.0, 2.0, 0.5, 0.3]); np.interp([0.5, 1.0, 2.0], np.sort(v), v)
np.interp(x, [-1.0, 0.0, 0.4, 1.0], v); np.interp(A, [-1.0, 0.0, 0.4, 1.0], v, left=s, right=0.0)
np.interp(s, [0.0, 1.0], y[:2]); np.interp(x, [0.1, 0.5, 0.9, 1.3], v, period=1.7)
np.interp(x, np.sort(v), 1j * v).imag; np.interp(np.linspace(-1, 3, 9), np.sort(v), v * v)
np.ediff1d(A); np.ediff1d(x, to_end=s, to_begin=[1.0, 2.0]); np.trapezoid(x); np.trapezoid(A, dx=s)
np.trapezoid(A, v); np.trapezoid(A, A * A); np.trapezoid(A, x, axis=0); np.gradient(v)
np.gradient(A); np.gradient(A, axis=0); np.gradient(v, s); np.gradient(A, s, 0.5)
np.gradient(v, np.cumsum(v)); np.gradient(A, x, v); np.gradient(v, edge_order=2)
np.gradient(v, v, edge_order=2); np.gradient(A, 0.3, axis=(1, 0), edge_order=2); np.unwrap(5 * A)
np.unwrap(4 * v, period=3.0); np.unwrap(7 * A, axis=0, discont=4.0); np.convolve(v, x)
np.convolve(x, v, "same"); np.convolve(v, x, mode="valid"); np.convolve(x, y, "valid")
np.convolve(x, [0.5, 0.5]); np.convolve(x + 1j * y, v).imag; np.correlate(v, x)
np.correlate(v, x, "full"); np.correlate(x, v, "full"); np.correlate(x, v, "same")
np.correlate(v, x, "same"); np.correlate(v[:3], x[:2], "same"); np.correlate(x[:2], v, "same")
np.correlate(v, x + 1j * y, "full").imag; np.cov(A); np.cov(A, rowvar=False); np.cov(x, y)
np.cov(A[:1], rowvar=False, ddof=0); np.cov(A[:2], A[:1, :2], rowvar=False)
np.cov(A, A[:1, :3], rowvar=False)
np.cov(x); np.cov(A, bias=True); np.cov(A, ddof=0, fweights=[1, 2, 1, 3]); np.cov(A, aweights=v)
np.cov(A, aweights=v, fweights=[1, 2, 1, 3]); np.cov(x + 1j * y, v[:3]).imag; np.corrcoef(A)
np.corrcoef(x, y); np.corrcoef(A, rowvar=False)[0, 1]
# counted
np.bincount([0, 2, 2], x); np.bincount([1, 0, 1], weights=y * s, minlength=5)
np.histogram(A, bins=4, weights=P)[0]; np.histogram(A, 4)[1]; np.histogram(A, 4, density=True)[0]
np.histogram(x, [-1.0, 0.0, 0.5, 1.0], weights=y, density=True)[0]
np.histogram(x, bins=3, range=(-s, s), weights=y); np.histogram(v, bins="sturges")[1] * s
np.histogram(A, bins=[-1.0, 0.2, 3.0]); np.histogram_bin_edges(x, 5)
np.histogram2d(x, y, bins=2, weights=v[:3])[0]; np.histogram2d(x, y, bins=[2, 3])[1]
np.histogram2d(x, y, 2, density=True)[0]; np.histogramdd(A, bins=2, weights=x)[0]
np.histogramdd([x, y], bins=[2, [-1.0, 0.0, 1.0]], weights=v[1:])[0]
# larger and smaller
np.pad(x, 2, mode="linear_ramp"); np.pad(A, 1, "linear_ramp")
np.pad(x, 2); np.pad(A, ((1, 2), (0, 1))); np.pad(A, 1, constant_values=s)
np.pad(A, 1, constant_values=((1.0, s), (2.0, 3.0))); np.pad(x, (1, 2), "edge")
np.pad(A, ((2, 1), (1, 3)), mode="reflect"); np.pad(A, 2, "symmetric"); np.pad(x, 4, "wrap")
np.pad(x, 5, "reflect"); np.pad(A, 2, "reflect", reflect_type="odd"); np.pad(x, 0)
np.pad(x, 3, "symmetric", reflect_type="odd"); np.pad(A, 1, "linear_ramp", end_values=s)
np.pad(x, (3, 2), "linear_ramp", end_values=(1.0, s)); np.pad(A, 1, "maximum"); np.pad(A, 2, "mean")
np.pad(A, 1, "minimum", stat_length=2); np.pad(A, ((1, 0), (0, 2)), "median"); np.pad(A, {-1: 2})
np.pad(x, 2, "mean", stat_length=(1, 2)); np.insert(x, 1, s); np.insert(x, [0, 2], y[:2])
np.insert(A, 1, v, axis=0); np.insert(A, 2, x, axis=1); np.insert(A, [1, 3], s, axis=1)
np.insert(A, 1, B.T, axis=0); np.insert(x, slice(0, 3, 2), [1.0, 2.0]); np.insert(A, 5, s)
np.insert(x, -1, y); np.resize(x, (2, 4)); np.resize(A, 5); np.resize(s, 3)
np.trim_zeros(np.array([0.0, 0.0, x[0], 0.0, x[1], 0.0])); np.trim_zeros(np.pad(A, 2))
np.trim_zeros(np.pad(x, 1), "f"); np.lib.stride_tricks.sliding_window_view(v, 2)
np.lib.stride_tricks.sliding_window_view(A, (2, 3)) * s
np.lib.stride_tricks.sliding_window_view(A, 2, axis=1)
# polynomials
np.polyval(x, y); np.polyval(x, A); np.polyval([1.0, 2.0], s); np.polyval(x, 1j * y).imag
np.polyadd(v, x)
np.polyadd(x, v); np.polysub(x, v); np.polymul(x, v); np.polydiv(v, x)[0]; np.polydiv(v, y[:2])[1]
np.polydiv(y[:2], v)[1]; np.polyder(v); np.polyder(v, 2); np.polyint(x); np.polyint(x, 2, [s, 1.0])
np.polyint(x, 2, k=s); np.poly(x); np.poly(x + 1j * y).imag; np.roots(v).imag; np.roots(v).real
np.roots([s, -2.0, 0.3]); np.roots(np.append(x, 0.0)).real; np.roots(x + 1j * y).imag; np.vander(x)
np.vander(x, 4, increasing=True); np.vander(v, 2); np.vander(s * rows, 3)
np.polynomial.polynomial.polyval(x, v); np.polynomial.polynomial.polyval(x, v[:1])
np.polynomial.chebyshev.chebval(x, v)
np.polynomial.legendre.legval(A, v); np.polynomial.hermite.hermval(s, v)
np.polynomial.hermite_e.hermeval(x, v); np.polynomial.laguerre.lagval(x, A)
np.polynomial.chebyshev.chebval(x, A[:, :3], tensor=False); np.polynomial.legendre.legval(x, [2.0])
np.polynomial.chebyshev.chebval(x, [1.0, 0.5]); np.polynomial.polynomial.polyvander(x, 3)
np.polynomial.chebyshev.chebvander(A, 3); np.polynomial.legendre.legvander(x, 4)
np.polynomial.hermite.hermvander(x, 3); np.polynomial.hermite_e.hermevander(s, 3)
np.polynomial.laguerre.lagvander(x, 3); np.polynomial.chebyshev.chebvander(x, 0) + s
# joined in brackets, and functions on parts
np.r_[x, y]; np.r_[x, 1.0, s]; np.r_[0:s:4j, x]; np.r_["0,2", x, y]; np.r_["1,2,0", x, y]
np.c_[x, y]; np.c_[A, x]; np.c_[s, 1.0]; np.r_["-1", A, A]; np.r_["0,3,-1", x, y]; np.r_[-1:1:3j, s]
np.mgrid[0:s:3j, 0:1:2j]; np.ogrid[0:s:3j, 0:1:2j]; np.mgrid[0:s:5j]; np.meshgrid(x, v)
np.meshgrid(x, v, indexing="ij"); np.meshgrid(x, y, [1.0, s], sparse=True)[2]
np.geomspace(s, 2.0, 5); np.linspace(s, x, 4); np.logspace(s, 1.0, 4); np.kaiser(5, s)
np.arange(s, 3.0, 0.5); np.fromiter((v[i] * s for i in range(3)), float); np.astype(x, np.float64)
np.asarray_chkfinite(x); np.require([s, s * s]); np.full(3, s); np.full_like(A, s)
A[np.tril_indices_from(A)]; M[np.diag_indices_from(M)]; M[np.triu_indices(3, 1)]
np.apply_along_axis(np.cumsum, 0, A); np.apply_along_axis(lambda r: np.sum(r * r), 1, A)
np.apply_along_axis(lambda r: np.outer(r, r), 2, T); np.apply_along_axis(np.sort, 0, A)
np.apply_over_axes(np.sum, T, [0, 2]); np.piecewise(x, [x < 0, x >= 0], [lambda t: t * t, 2.0])
np.piecewise(x, [x > 0.5], [np.sqrt, np.exp]); np.piecewise(A, [A > 0, A < -1], [np.log, s, -1.0])
np.piecewise(s, [s > 0], [lambda t: 3 * t]); np.choose(rows, [x, y, 1.0])
np.choose([1, 0, 1], [s, x]); np.choose([0, 5, -3], [x, y], mode="clip")
np.choose([[0], [1]], (x, y), mode="wrap"); np.vectorize(lambda a, b: a * b + 1.0)(x[:, None], v)
np.vectorize(lambda a: (a, a * a))(x); np.vectorize(lambda a: a if a else 0.5)([1, 0, 2]) * s
np.vectorize(lambda a: 0.0 if a < 0 else a)(x)
np.piecewise(np.arange(4), [np.arange(4) > 1], [1.7]) * s; np.mgrid[0:2, 0:2] * s; np.r_[1:4] * s
np.c_[rows, rows] * s; np.vectorize(lambda a, b: a**b, excluded=[1])(x, 2)
np.vectorize(lambda a: a * s)([1.0, 2.0]); np.vectorize(lambda a: 2 * a, otypes=[float])(A)
x.compress([True, False, True])
# complex if it has to be
np.emath.sqrt(x).imag; np.emath.sqrt(v); np.emath.log(A).real; np.emath.log2(x).imag
np.emath.log10(v); np.emath.arccos(v).imag; np.emath.arcsin(x); np.emath.power(x, 1.5).imag
np.emath.power(v[:3], x); np.emath.logn(s, v); np.emath.arctanh(v).real; np.poly1d(x)(s)
np.poly1d(v).deriv()(x); np.polyfit([0.0, 1.0, 2.0, 4.0], v, 2); np.polyfit(x, y, 1)
np.polyfit(v, A[0], 1, w=[1.0, 2.0, 1.0, 0.5]); np.polyfit(np.arange(4.0), A.T, 1); np.poly(M)
sum(i[0] * u for i, u in np.ndenumerate(A)); len(np.array_str(rows)) * s
# corners of all of these
np.polyadd(x, s); np.polysub(v, y[:2]); np.polydiv(v, v[:2])[0]; np.polyint(v, 3)
np.polyder(x, 3); np.polymul(x[:1], v); np.poly(v); np.polynomial.hermite.hermval(x, y[:2])
np.polynomial.legendre.legval(x, v); np.polynomial.chebyshev.chebval(s, x[:1])
np.polynomial.polynomial.polyval(A, A[:2, :3], tensor=True); np.cross(M, N, axis=1)
np.gradient(T, axis=1); np.gradient(T, s, axis=(0, 2)); np.gradient(A, v, axis=1, edge_order=2)
np.trapezoid(T, axis=1); np.trapezoid(T, v); np.diff(T, 2, axis=1)
np.diff(A, 3, append=A, prepend=x[:, None]); np.interp(x, v, v * s, left=s, period=None)
np.interp(A, np.sort(v), v, right=s); np.ediff1d(v[:1], s); np.unwrap(T * 4, axis=1)
np.unwrap(3 * v, discont=4.0, period=5.0); np.cov(M, rowvar=False, bias=True)
np.cov(A, aweights=v, ddof=0); np.cov(A, fweights=[2, 1, 1, 2], bias=True)
np.corrcoef(x, v[:3] * y); np.pad(T, ((0, 1), (2, 0), (1, 1)), "wrap")
np.pad(A, (3, 5), "symmetric"); np.pad(A, (4, 6), "reflect")
np.pad(A, ((2, 0), (0, 3)), "linear_ramp", end_values=((s, 1.0), (0.3, s)))
np.pad(x[:1], 2, "edge"); np.pad(A, 2, "maximum", stat_length=((1, 2), (3, 1)))
np.pad(A, 2, "median", stat_length=3); np.pad(A, 3, "symmetric", reflect_type="odd")
np.pad(v, (1, 3), "reflect", reflect_type="odd")
np.pad(x, (0, 3), "mean"); np.pad(A, ((1, 1), (0, 0))); np.nanmean(T, axis=(0, 2))
np.nanvar(G, axis=0, keepdims=True); np.nanstd(G, ddof=1); np.nansum(T, axis=1)
np.nanmax(G, axis=(0, 1)); np.nanmin(G, keepdims=True); np.nanprod(G, axis=0, keepdims=True)
np.nanquantile(G, 0.6, method="hazen"); np.nanpercentile(G, 20, axis=0, method="weibull")
np.quantile(T, 0.3, axis=1); np.quantile(A, s, axis=0, method="linear"); np.quantile(x[:1], 0.3)
np.quantile(A, [0.2, s], axis=1, method="hazen", keepdims=True)
np.percentile(T, 100 * s, axis=(0, 2)); np.median(T, axis=1, keepdims=True)
np.median(A[:, :2], axis=1); np.partition(A, 1, axis=0)[1]; np.linalg.norm(T, axis=(1, 2))
np.linalg.norm(A, 4, axis=0); np.linalg.norm(T, np.inf, axis=(1, 0))
np.linalg.norm(A, -3, axis=1, keepdims=True); np.linalg.norm(T, -1, axis=(0, 2), keepdims=True)
np.linalg.norm(M, 2); np.linalg.norm(M, -2); np.linalg.norm(M, "nuc")
np.linalg.norm(N, 2, axis=(1, 2)); np.linalg.matrix_power(M, 1); np.linalg.matrix_power(M, 5)
np.linalg.matrix_power(M, -1); np.linalg.multi_dot([x, A, B]); np.linalg.multi_dot([A, v])
np.linalg.multi_dot([x, M, A, v]); np.linalg.solve(M[:1, :1], x[:1]); np.linalg.inv(M[:2, :2])
np.linalg.det(M[:1, :1]); np.kron(T, x); np.kron(s, A); np.kron(M, x[:, None])
np.tensordot(T, U, ([2], [1])); np.inner(T, v); np.tensordot(T, N, ([1, 0], [2, 0]))
np.einsum("ij,jk,kl", A, B, B.T); np.einsum("ij,ij,j->i", A, P, v)
np.einsum("aij,ajk,k->ai", T, U, y[:2]); np.einsum("ii,ij,j", M, M, x)
np.roll(T, (1, 2), axis=(1, 2)); np.roll(A, 5); np.repeat(T, [1, 2, 0], axis=1)
np.tile(T, (2, 1, 1)); np.insert(x, 3, y); np.insert(A, [0, 0], x[:2, None], axis=0)
np.insert(v, [3, 1, 1], x); np.delete(T, [0, 2], axis=1); np.delete(v, slice(0, 3, 2))
np.histogram(A, bins=[-1.0, 0.2, 3.0], density=True)[0]
np.histogram(x, 2, weights=y, density=True)[0]; np.choose([2, 0, 1], [x, y, s])
np.select([A > 0.5, A < 0], [A, x[:, None]], v); np.select([x > 0], [y])
np.logaddexp.reduce(T, axis=1, keepdims=True); np.logaddexp2.reduce(A, axis=1, initial=s)
np.hypot.reduce(T, axis=2); np.multiply.reduceat(A, [0, 2], axis=1)
np.minimum.reduceat(v, [0, 2, 1]); np.cumprod(T, axis=1); np.cumprod(H, axis=0)
np.prod(H, axis=(0, 1), keepdims=True); np.cumprod(x[:1]); np.trapezoid(T, x, axis=1)
np.polyval(v, x); np.polynomial.laguerre.lagval(x, [0.3])
np.polynomial.hermite_e.hermeval(A, [1.0, 0.3]); np.gradient(A, [0.0, 0.3, 1.0], v, edge_order=2)
np.insert(A, [3, -2, 1], x, axis=1); np.insert(x, [1], y); np.insert(A, [2], M, axis=1)
np.insert(v, mask[0], x); np.insert(A, slice(2, 0, -1), B.T, axis=0)
np.insert(v, -2, s)
np.histogram(np.full(3, s), 2)[1]; np.histogram(np.full(3, s) * 4, 3)[1]
np.histogram(x[:0], 3)[1] * s; np.nan_to_num(x + 1j * y).imag
np.quantile(A, 0.4, axis=1, weights=P, method="inverted_cdf")
np.quantile(v, [0.0, 0.5], method="inverted_cdf", weights=[1.0, 2.0, 0.0, 1.0])
np.histogramdd(x, bins=2, weights=y)[0]; np.polyadd(x, y); np.block([[A], [P]]); np.block([[x]])
np.vectorize(lambda a, b: a * b)(s, 2.0); np.vectorize(lambda a: a * a)(np.array(s))
np.piecewise(s, [s > 0], [lambda t, a: t - a * a], 0.5)
np.piecewise(x, [x > 0], [lambda t, a: t - a * a], 0.5)
np.piecewise(x, [x > 9, x <= 9], [np.exp, np.sin]); np.nansum(A > 0) * s
np.quantile((3 * A).astype(int), 0.4, method="lower") * s; np.corrcoef(x)
np.fft.fftn(A, s=(-1, 3), axes=(0, 1)).real; np.fft.irfftn(A, s=(2, -1), axes=(0, 1))
np.fft.rfft2(A, s=(5, -1)).imag; np.fft.ifft2(A, s=(-1, 1), norm="forward").real
"""

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "median_unbiased", "normal_unbiased", "linear", "lower", "higher",
    "midpoint", "nearest",
)  # fmt: skip
FORMS += "\n".join(f"np.quantile(v, [0.0, 0.3, 1.0], method={method!r})" for method in METHODS)
FORMS += LINALG
LINES = [f.strip() for text in FORMS.splitlines() if text[:1] != "#" for f in text.split(";")]
LINES = [line for line in LINES if line]

DEPENDS = "depends on( staged)? values"
UNKNOWN = "whether it is true is not known"
# From NumPy 2.5 on eigenvalues are complex, whatever they are.
COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"
ASKS = {  # what a form cannot do while a program is written, where values are not known
    r"A\[A > 0\]|nonzero": DEPENDS,
    r"np\.(unique|union1d|intersect1d|setdiff1d|setxor1d|trim_zeros)": DEPENDS,
    r"sturges|poly1d": DEPENDS,
    r"np\.arange\(s": "not known while a program is written",
    r"np\.poly\(M": UNKNOWN if COMPLEX else DEPENDS,
    r"real_if_close\(x \+|roots|emath|if a < 0": UNKNOWN,
    r"np\.poly(div\([vy][^,]*, [xv]\)|\(x \+)": UNKNOWN,
}
if not COMPLEX:
    ASKS[r"np\.linalg\.eig(vals)?\((gram|np)"] = DEPENDS


ONE_NUMBER = (  # a traced number takes the precision of what it meets: docs/numbers.md
    r"\.item\(|tolist|dot\(s, A|dot\(A, s|inner\(s, x|logn\(s|poly1d\(x\)\(s|polydiv\(v, y"
    r"|norm\(x, 0\)"
)


def asks(line):
    """What the error says that a form raises; None where there is none."""
    return next((said for form, said in ASKS.items() if re.search(form, line)), None)

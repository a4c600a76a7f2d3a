"""Solves and factorisations in JAX's arrays, in the forms in which the primitives keep them."""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
from collections.abc import Callable, Mapping

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax.lax.linalg import triangular_solve


def lu_factors(a: jax.Array) -> jax.Array:
    """L and U of the transposed matrix in one, transposed, and the pivots in a row below."""
    lu, pivots = jax.scipy.linalg.lu_factor(jnp.matrix_transpose(a))
    return jnp.concat([jnp.matrix_transpose(lu), pivots[..., None, :].astype(a.dtype)], axis=-2)


def solve(a: jax.Array, b: jax.Array, *f: jax.Array, adjoint: bool = False) -> jax.Array:
    """X with A X = B, or A^H X = B; by the factors of A, if there are any."""
    if not f:
        return jnp.linalg.solve(jnp.conj(jnp.matrix_transpose(a)) if adjoint else a, b)
    packed, b = _alike(f[0], b)
    lu = jnp.matrix_transpose(packed[..., :-1, :])
    pivots = jnp.real(packed[..., -1, :]).astype(np.int32)
    if adjoint:
        return jnp.conj(jax.scipy.linalg.lu_solve((lu, pivots), jnp.conj(b)))
    return jax.scipy.linalg.lu_solve((lu, pivots), b, trans=1)


def triangular(a: jax.Array, b: jax.Array, lower: bool, adjoint: bool = False) -> jax.Array:
    """X with A X = B, or A^H X = B, for triangular A."""
    a, b = _alike(a, b)
    return triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint
    )


def cholesky_tangent(low: jax.Array, s: jax.Array, adjoint: bool = False) -> jax.Array:
    """Lower X with X L^H + L X^H = S, the Hermitian part of S; or the adjoint  [Murray 2016]."""
    low, s = _alike(low, s)
    low = jnp.tril(low, -1) + _diagonal(low)
    if not adjoint:
        y = triangular(low, (s + _h(s)) / 2, lower=True)
        return jnp.tril(low @ _halves(_h(triangular(low, _h(y), lower=True))))
    y = triangular(low, _halves(_h(low) @ jnp.tril(s)), lower=True, adjoint=True)
    y = _h(triangular(low, _h(y), lower=True, adjoint=True))
    return (y + _h(y)) / 2


def _h(a: jax.Array) -> jax.Array:
    return jnp.conj(jnp.matrix_transpose(a))


def _diagonal(a: jax.Array) -> jax.Array:
    """The real part of the diagonal, as a matrix."""
    return jnp.real(a) * jnp.eye(a.shape[-1], dtype=a.dtype)


def _halves(x: jax.Array) -> jax.Array:
    """The lower triangle of x with half of its diagonal."""
    return jnp.tril(x, -1) + x * (jnp.eye(x.shape[-1], dtype=x.dtype) / 2)


def _alike(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two stacks of matrices of one length and one dtype."""
    dtype = jnp.result_type(a.dtype, b.dtype)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = [jnp.broadcast_to(m, (*lead, *m.shape[-2:])).astype(dtype) for m in (a, b)]
    return a, b


OWN: Mapping[str, Callable[..., jax.Array]] = {
    "lu_factors": lu_factors,
    "linear_solve": solve,
    "solve": solve,
    "linear_triangular": triangular,
    "triangular_solve": triangular,
    "linear_cholesky": cholesky_tangent,
    "tangent_of_cholesky": cholesky_tangent,
}
"""By the names of primitives."""

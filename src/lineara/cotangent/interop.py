"""Sparse tensors of other libraries, from coordinates `indices` (m, k) and `values` (m, ...).

The first k dimensions of `shape` are sparse, the others dense.  A library is imported at first use.
"""

from importlib import import_module
from typing import Any

import numpy as np

from lineara.cotangent.scatter import Array, Ints
from lineara.errors import LinearaError

Shape = tuple[int, ...]


class MissingLibraryError(LinearaError, ImportError):
    """The library that a conversion needs is not installed."""


def library(asked: str, module: str, package: str) -> Any:
    """A module of another library, which is imported when it is asked for."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingLibraryError(
            f"{asked}: {module} cannot be imported ({error}); `pip install {package}` brings it"
        ) from None


def to_scipy(indices: Ints, values: Array, shape: Shape) -> Any:
    """A `scipy.sparse.coo_array`; every dimension is sparse."""
    sparse = library("to_scipy", "scipy.sparse", "scipy")
    where, what = _all_sparse(indices, values)
    return sparse.coo_array((what, tuple(where.T)), shape=shape)


def to_torch(indices: Ints, values: Array, shape: Shape) -> Any:
    """A coalesced `torch.sparse_coo_tensor`."""
    torch = library("to_torch", "torch", "torch")
    where, what = torch.tensor(indices.T.copy()), torch.tensor(np.ascontiguousarray(values))
    return torch.sparse_coo_tensor(where, what, shape, is_coalesced=True, check_invariants=False)


def to_jax(indices: Ints, values: Array, shape: Shape) -> Any:
    """A `jax.experimental.sparse.BCOO`, in float32 unless JAX is configured for float64."""
    sparse = library("to_jax", "jax.experimental.sparse", "jax")
    jax = library("to_jax", "jax.numpy", "jax")
    data = (jax.asarray(values), jax.asarray(indices))
    return sparse.BCOO(data, shape=shape, indices_sorted=True, unique_indices=True)


def to_tf(indices: Ints, values: Array, shape: Shape) -> Any:
    """`tf.IndexedSlices` where one dimension is sparse, otherwise a `tf.sparse.SparseTensor`."""
    tf = library("to_tf", "tensorflow", "tensorflow")
    if indices.shape[1] == 1 and len(shape) > 1:
        return tf.IndexedSlices(tf.constant(values), tf.constant(indices[:, 0]), tf.constant(shape))
    return tf.sparse.SparseTensor(indices, values, shape)


def _all_sparse(indices: Ints, values: Array) -> tuple[Ints, Array]:
    """Coordinates of every dimension, from those of the first few and dense values."""
    if values.ndim == 1:
        return indices, values
    rest = np.indices(values.shape[1:]).reshape(values.ndim - 1, -1).T
    m, r = len(indices), len(rest)
    return np.hstack([np.repeat(indices, r, 0), np.tile(rest, (m, 1))]), values.ravel()

"""Functions of NumPy's in a program of XLA, which calls them on the host.

`jax.pure_callback` goes through arrays of JAX's, which are of 32 bits in a thread that XLA runs
them in, whatever the program has, and which may wait for that thread.  Here the function gets the
memory itself, and its results come back as bytes.
"""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from lineara.facts.types import ArrayType

called = Primitive("lineara_called")
called.multiple_results = True


def call(
    function: Callable[..., Sequence[np.ndarray]], types: Sequence[ArrayType], args: Sequence[Any]
) -> list[jax.Array]:
    """The results of a function of NumPy's arrays, which have these types."""
    raw = called.bind(*args, function=function, types=tuple(types))
    return [_of_bytes(row, t) for row, t in zip(raw, types, strict=True)]


def _of_bytes(row: jax.Array, t: ArrayType) -> jax.Array:
    """An array of a type from its bytes."""
    if t.dtype.kind == "b":
        return row.reshape(t.shape) != 0
    if t.dtype.kind == "c":
        part = np.dtype(f"f{t.dtype.itemsize // 2}")
        parts = _of_bytes(row, ArrayType((*t.shape, 2), part))
        return jax.lax.complex(parts[..., 0], parts[..., 1])
    rows = row.reshape((*t.shape, t.dtype.itemsize))
    if t.dtype.itemsize == 1:
        rows = rows[..., 0]
    return jax.lax.bitcast_convert_type(rows, t.dtype)


@called.def_abstract_eval
def _types(
    *args: Any, function: Callable[..., Any], types: Sequence[ArrayType]
) -> list[ShapedArray]:
    sizes = [math.prod(t.shape) * t.dtype.itemsize for t in types]
    return [ShapedArray((n,), np.dtype(np.uint8)) for n in sizes]


@called.def_impl
def _at_once(*args: Any, **params: Any) -> Any:
    return jax.jit(lambda *xs: called.bind(*xs, **params))(*args)


def _lowered(
    ctx: Any, *operands: Any, function: Callable[..., Any], types: Sequence[ArrayType]
) -> Any:
    def on_host(*args: Any) -> tuple[np.ndarray, ...]:
        results = function(*[np.asarray(a) for a in args])
        return tuple([np.frombuffer(np.ascontiguousarray(y).tobytes(), np.uint8) for y in results])

    results, *_ = mlir.emit_python_callback(
        ctx, on_host, None, list(operands), ctx.avals_in, ctx.avals_out, has_side_effect=False
    )
    return results


mlir.register_lowering(called, _lowered)


def _lane_by_lane(
    args: Sequence[Any], axes: Sequence[int | None], **params: Any
) -> tuple[Any, Sequence[int]]:
    front = [a if i is None else jnp.moveaxis(a, i, 0) for a, i in zip(args, axes, strict=True)]
    moving = [a for a, i in zip(front, axes, strict=True) if i is not None]

    def one(rows: Sequence[Any]) -> Any:
        left = iter(rows)
        pairs = zip(front, axes, strict=True)
        return called.bind(*[a if i is None else next(left) for a, i in pairs], **params)

    results = jax.lax.map(one, moving)
    return results, [0] * len(results)


batching.primitive_batchers[called] = _lane_by_lane

__all__ = ["call"]

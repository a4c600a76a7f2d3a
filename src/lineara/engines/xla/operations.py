"""Primitives in JAX's arrays: their own evaluation in that namespace, and where it cannot raise.

A primitive is evaluated in the namespace `jax.numpy`, by the declaration that all engines share; in
JAX's the arguments have NumPy's common dtype first.  One that NumPy or SciPy alone evaluates is
JAX's function of the same name, if there is one, and else called back.  What NumPy refuses by value
puts the run in doubt.
"""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from lineara.engines.values import times
from lineara.engines.xla import callbacks, factorizations
from lineara.engines.xla.values import Held, Place, is_known
from lineara.engines.xla.walk import Env, Walk
from lineara.errors import ProgramError
from lineara.facts.hints import Tree
from lineara.facts.primitive import Elementwise
from lineara.facts.types import ArrayType, Type, type_of
from lineara.linear_a import syntax as ir
from lineara.ops.value_checks import Check

SMALL = 1024  # elements up to which what is known is calculated while the program is walked
LIMIT = float(2**62)  # whole numbers that may be too large for 64 bits


def primitive(m: Walk, e: ir.Prim, args: list[Any], env: Env, t: Type) -> Any:
    """The value of a primitive, of the type."""
    p, params = e.primitive, ir.renamed_params(e.params, env.__getitem__)
    if not isinstance(t, ArrayType):
        if p.name == "add":
            return m.shapes().plus(t, *args)
        return times(*args)
    if p.acts:
        m.doubts(np.False_ if params.get("done") else args[0])
        return args[0]
    if all(map(is_known, (*args, *values_in(e.params, env)))):
        if t.size <= SMALL:
            return known(m, p, args, params, t)
        if args and is_of_elements(p) and all(map(is_uniform, args)):
            one = [np.asarray(a).flat[0] for a in args]
            params = {} if p.name in MOVES else params
            y = one[0] if p.name in MOVES else known(m, p, one, params, ArrayType((), t.dtype))
            return np.broadcast_to(np.asarray(y, t.dtype), t.shape)
    if isinstance(p, Check):
        m.doubts(args[1])
        return args[0]
    if p.name == "index":
        return of_type(read(m, args[0], params["at"], e.args[0] in env.written), t, p.name)
    y = of_type(applied(m, p, args, params, t), t, p.name)
    if p.name == "multiply":
        note_negative(m, y, args)
    return y


MOVES = ("reshape", "broadcast_to", "astype", "permute_dims")


def is_of_elements(p: Any) -> bool:
    """Whether an element of the result is that of the elements there, or one of the argument's."""
    return p.name in MOVES or isinstance(p, Elementwise) or p.name in COMPARISONS


def is_uniform(a: Any) -> bool:
    """Whether what is known is one number, as often as it may be."""
    return not np.ndim(a) or (np.size(a) > 0 and not any(a.strides))


def as_jax(a: Any) -> Any:
    """An array of JAX's; of one number many times, its text has the number."""
    if is_known(a) and np.ndim(a) and is_uniform(a):
        return jnp.broadcast_to(jnp.asarray(a.flat[0]), a.shape)
    return jnp.asarray(a)


def values_in(params: Tree, env: Env) -> list[Any]:
    """The values of the variables in parameters."""
    return [env[v] for v in ir.vars_in(params)]


def known(m: Walk, p: Any, args: list[Any], params: dict[str, Any], t: ArrayType) -> Any:
    """The value of a primitive on what is known; what would raise puts the run in doubt."""
    try:
        with np.errstate(all="ignore"):
            return p.evaluate(np, *args, **params)
    except Exception:
        m.doubts(np.True_)
        return np.zeros(t.shape, t.dtype)[()]


def of_type(y: Held, t: ArrayType, name: str) -> Any:
    """An array in the dtype of the type."""
    y = jnp.asarray(y, t.dtype)
    if y.shape != t.shape:
        raise ProgramError(
            f"{name}: {t} should come out, but the shape is {y.shape}; a part of an array lies "
            "within it"
        )
    return y


def applied(m: Walk, p: Any, args: list[Any], params: dict[str, Any], t: ArrayType) -> Any:
    """The value of a primitive, some of whose arguments are known at run time only."""
    args = [as_jax(a) for a in args]
    if p.name == "scatter":
        at = place(m, params["at"], t.shape)
        return added(jnp.zeros(t.shape, t.dtype), at, args[0])
    if p.pythons and hasattr(p, "base"):
        return of_python(m, p, args, t)
    if p.name == "permute_dims" and params["axes"] == (1, 0):
        y = args[0].T
        m.transposes[id(y)] = y, args[0]
        return y
    if p.name == "matmul" and all([a.ndim in (1, 2) for a in args]):
        return product(m, *in_common(args))
    if p.name == "sum":
        return total(m, args[0], **params)
    own = OWN.get(p.name)
    if p.host and own is None:
        return called_back(m, p, args, params, t)
    if isinstance(p, Elementwise) or p.name in OF_ONE_DTYPE:
        args = in_common(args)
    refuse_by_value(m, p, args, t)
    given = {k: v for k, v in params.items() if k != "kind"}  # JAX sorts stably, which serves all
    try:
        y = own(*args, **given) if own is not None else p.evaluate(jnp, *args, **given)
    except (TypeError, NotImplementedError):  # a declaration that asks for more than JAX has
        return called_back(m, p, args, params, t)
    if p.raised:
        m.doubts(~jnp.isfinite(y) if t.dtype.kind in "fc" else y < 0)
    return y


SPECIAL = "betainc betaln digamma entr erf erfc erfinv expit gammainc gammaincc i0 i0e i1 i1e"
SPECIAL += " kl_div log_ndtr logit ndtr ndtri rel_entr xlog1py xlogy"
NUMPYS = "bitwise_count cbrt fmax fmin fmod gcd invert isneginf isposinf lcm left_shift"
NUMPYS += " right_shift rint sinc"


def recurrence(a: jax.Array, b: jax.Array, *, axis: int, reverse: bool = False) -> jax.Array:
    """z with z_i = a_(i-1) z_(i-1) + b_i along an axis; of a stretch the product and the sum."""
    beside = [(0, 0)] * b.ndim
    beside[axis] = (0, 1) if reverse else (1, 0)

    def joined(one: Any, other: Any) -> Any:
        (p, z), (q, w) = one, other
        return p * q, jnp.where(z == 0, 0, q * z) + w

    pairs = jnp.pad(a, beside, constant_values=1), b
    return jax.lax.associative_scan(joined, pairs, reverse, axis)[1] if b.size else b


OWN = {name: getattr(jax.scipy.special, name) for name in SPECIAL.split()}
OWN |= {name: getattr(jnp, name) for name in NUMPYS.split()} | {"lgamma": jax.lax.lgamma}
OWN |= {**factorizations.OWN, "recurrence": recurrence}
"""JAX's functions for what only NumPy and SciPy evaluate, where they are as exact; its `hyp2f1`,
for one, is not."""


def product(m: Walk, x: Held, y: Held) -> Any:
    """The product of two matrices or vectors; XLA copies transposes that it is given as such."""
    _, x_as_it_lies = m.transposes.get(id(x), (x, None))
    _, y_as_it_lies = m.transposes.get(id(y), (y, None))
    i, j = x.ndim - 1, 0
    if x_as_it_lies is not None:
        x, i = x_as_it_lies, 0
    if y_as_it_lies is not None:
        y, j = y_as_it_lies, 1
    return jax.lax.dot_general(x, y, (((i,), (j,)), ((), ())))


def note_negative(m: Walk, y: Held, args: Sequence[Any]) -> None:
    """Note of what a product is the negative, if one factor is known to be -1."""
    for c, x in (args, args[::-1]):
        if is_known(c) and not np.ndim(c) and c == -1 and type_of(x) == type_of(y):
            m.negatives[id(y)] = y, x


def total(m: Walk, x: Held, **params: Any) -> Any:
    """A sum; of negatives, the negative of the sum, which rounds alike and negates less."""
    _, positive = m.negatives.get(id(x), (x, None))
    return jnp.sum(x, **params) if positive is None else -jnp.sum(positive, **params)


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
OF_ONE_DTYPE = (*COMPARISONS, "concat", "where", "matmul", "dot", "stack")


def in_common(args: Sequence[Any]) -> list[Any]:
    """Arrays in the dtype that NumPy calculates in, where they have several; not booleans."""
    dtypes = {a.dtype for a in args} - {np.dtype(bool)}
    if len(dtypes) < 2:
        return list(args)
    common = np.result_type(*dtypes)
    return [a if a.dtype == bool else a.astype(common) for a in args]


def refuse_by_value(m: Walk, p: Any, args: Sequence[Any], t: ArrayType) -> None:
    """Where NumPy warns, and gives what is no number in whole ones, the run is in doubt."""
    whole = t.dtype.kind in "iu"
    if p.name in ("floor_divide", "remainder", "mod", "fmod") and whole:
        m.doubts(args[1] == 0)
    if p.name == "astype" and whole and args[0].dtype.kind in "fc":
        m.doubts(~(jnp.abs(args[0]) < LIMIT))


def of_python(m: Walk, p: Any, args: Sequence[Any], t: ArrayType) -> Any:
    """Python's own on numbers: in doubt where it may raise, or needs more than 64 bits."""
    y = p.base.evaluate(jnp, *in_common(args))
    if t.dtype.kind in "fc":
        m.doubts(~jnp.isfinite(y))
    elif t.dtype.kind in "iu":
        wide = p.base.evaluate(jnp, *[a.astype(float) for a in args])
        m.doubts(~(jnp.abs(wide) < LIMIT))
    return y


def called_back(m: Walk, p: Any, args: Sequence[Any], params: dict[str, Any], t: ArrayType) -> Any:
    """The value by NumPy and SciPy, on the host."""
    if not m.callbacks:
        raise ProgramError(
            f"{p.name} is evaluated by NumPy and SciPy on the host, and host='error' refuses that; "
            "take host='call', which calls them back"
        )
    m.called_back[p.name] = None
    values, rebuilt = flat_params(params)
    k = len(args)

    def on_host(*given: np.ndarray) -> tuple[Any, Any]:
        arrays = [a[()] for a in given]
        try:
            with np.errstate(all="ignore"):
                y = p.evaluate(np, *arrays[:k], **rebuilt(arrays[k:]))
            return np.asarray(y, t.dtype), np.False_
        except Exception:
            return np.zeros(t.shape, t.dtype), np.True_

    y, failed = callbacks.call(on_host, [t, ArrayType((), np.dtype(bool))], [*args, *values])
    m.doubts(failed)
    return y


def flat_params(params: dict[str, Any]) -> tuple[list[Any], Any]:
    """The arrays of JAX's among parameters, and the parameters with others in their place."""
    leaves, tree = jax.tree.flatten(params, is_leaf=lambda v: v is None)
    places = [i for i, v in enumerate(leaves) if isinstance(v, jax.Array)]

    def rebuilt(values: Sequence[Any]) -> dict[str, Any]:
        filled = dict(zip(places, values, strict=True))
        return jax.tree.unflatten(tree, [filled.get(i, v) for i, v in enumerate(leaves)])

    return [leaves[i] for i in places], rebuilt


# --- parts of arrays ------------------------------------------------------------------------------


def place(m: Walk, at: Place, shape: tuple[int, ...]) -> Any:
    """An index whose integers lie within an array of the shape, or else the run is in doubt."""
    parts = ir.parts_of(at)
    taken = [axes(p) for p in parts]
    axis = 0
    for p, n in zip(parts, taken, strict=True):
        if n == 1 and not isinstance(p, slice):
            size = shape[axis]
            m.doubts((p < -size) | (p >= size) if size else np.True_)
        axis += len(shape) - sum(taken) if p is ... else n
    return tuple(parts)


def axes(part: Held) -> int:
    """How many axes of an array a part of an index is about."""
    if part is None or part is ...:
        return 0
    return part.ndim if is_mask(part) else 1


def is_mask(part: Held) -> bool:
    """Whether a part of an index says of each position whether it is meant."""
    return getattr(getattr(part, "dtype", None), "kind", "") == "b"


def read(m: Walk, x: Held, at: Place, once: bool = False) -> Any:
    """A part of an array, which is written later if it is to be read once and for all."""
    x = as_jax(x)
    at = place(m, at, x.shape)
    block = one_block(at, x.shape)
    return x[at] if block is None else in_block(x, block, once).reshape(block.shape)


class Block(NamedTuple):
    """A part whose elements lie side by side: where it begins, how large it is, and its shape."""

    starts: list[Any]
    sizes: list[int]
    shape: tuple[int, ...]


def one_block(at: tuple[Any, ...], shape: tuple[int, ...]) -> Block | None:
    """The block that an index of numbers, ranges and new axes means; None where it is no block.

    XLA writes a block in place, and goes through the elements of any other part.
    """
    starts: list[Any] = []
    sizes: list[int] = []
    of_part: list[int] = []
    left = len(shape) - sum(map(axes, at))
    for p in at:
        axis = len(starts)
        if p is ...:
            starts += [0] * left
            sizes += shape[axis : axis + left]
            of_part += shape[axis : axis + left]
        elif p is None:
            of_part.append(1)
        elif isinstance(p, slice):
            start, stop, step = p.indices(shape[axis])
            if step != 1 or stop <= start:
                return None
            starts.append(start)
            sizes.append(stop - start)
            of_part.append(stop - start)
        elif np.ndim(p) or is_mask(p) or isinstance(p, bool):
            return None
        else:
            starts.append((np if is_known(p) else jnp).where(p < 0, p + shape[axis], p))
            sizes.append(1)
    rest = shape[len(starts) :]
    starts += [0] * len(rest)
    return Block(starts, [*sizes, *rest], (*of_part, *rest))


def in_block(x: Held, block: Block, once: bool) -> Any:
    """What an array has in a block, in as many axes as the array has."""
    y = jax.lax.dynamic_slice(x, block.starts, block.sizes)
    late = [start for start in block.starts if not is_known(start)]
    return read_once(y, late[0]) if once and late and y.size <= FEW else y


FEW = 64  # numbers that are read once and for all


def read_once(y: Held, start: Held) -> Any:
    """What was read, in a form that XLA does not read again where it uses it.

    It does so with what is cheap, also after the array was written, for which it then copies the
    whole array in each round of a loop.  A division of whole numbers is not cheap: the bits are
    divided by one, which XLA cannot know, since it is 1 for any `start` that is no negative number.
    """
    one = 1 + (start < 0).astype(np.int64)
    if y.dtype.kind == "b":
        return jax.lax.div(y.astype(np.int64), jnp.broadcast_to(one, y.shape)) != 0
    if y.dtype.kind == "c":
        return jax.lax.complex(read_once(y.real, start), read_once(y.imag, start))
    bits = jax.lax.bitcast_convert_type(y, np.dtype(f"i{y.dtype.itemsize}"))
    bits = jax.lax.div(bits, jnp.broadcast_to(one.astype(bits.dtype), y.shape))
    return jax.lax.bitcast_convert_type(bits, y.dtype)


def added(x: Held, at: Place, y: Held) -> Any:
    """An array with y added to a part; of booleans, where one of both is true."""
    block = one_block(at, x.shape)
    if block is not None:
        y = jnp.broadcast_to(y, block.shape).reshape(block.sizes)
        if 2 * y.size >= x.size and x.dtype != bool and all(map(is_known, block.starts)):
            return x + padded(y, block.starts, x)
        before = in_block(x, block, True)
        y = before | y if x.dtype == bool else before + y
        return jax.lax.dynamic_update_slice(x, y, block.starts)
    return x.at[at].max(y) if x.dtype == bool else x.at[at].add(y)


def padded(y: Held, starts: Sequence[Any], x: Held) -> Any:
    """A block with zeros around it, in the shape of x: XLA makes it within what it is added in."""
    around = zip(starts, y.shape, x.shape, strict=True)
    edges = [(int(a), n - int(a) - k, 0) for a, k, n in around]
    return jax.lax.pad(y.astype(x.dtype), jnp.zeros((), x.dtype), edges)


def accumulated(m: Walk, x: Held, at: Place, y: Held) -> Any:
    """An array with y added to a part."""
    return added(jnp.asarray(x), place(m, at, x.shape), y)


def put(m: Walk, x: Held, at: Place, y: Held = 0) -> Any:
    """An array with y in place of a part; one mask alone says which elements are y."""
    x, y = jnp.asarray(x), jnp.asarray(y, x.dtype)
    if len(at) == 1 and is_mask(at[0]) and not np.ndim(y):
        mask = at[0].reshape(at[0].shape + (1,) * (x.ndim - at[0].ndim))
        return jnp.where(mask, y, x)
    at = place(m, at, x.shape)
    block = one_block(at, x.shape)
    if block is not None:
        y = jnp.broadcast_to(y, block.shape).reshape(block.sizes)
        return jax.lax.dynamic_update_slice(x, y, block.starts)
    m.doubts(repeats(at, x.shape))
    return x.at[at].set(y)


def repeats(at: Place, shape: tuple[int, ...]) -> Any:
    """Whether an index of integer arrays has a place more than once."""
    if not any([np.ndim(p) and not is_mask(p) for p in at if not isinstance(p, slice)]):
        return np.False_
    counts = jnp.zeros(shape, np.int32).at[at].add(1)
    return counts > 1

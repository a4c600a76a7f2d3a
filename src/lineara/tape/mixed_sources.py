"""What a region of a written array is made of: one node, a part of one, or a mixture of several.

`src` says for each element which of the `sources` it comes from (or that it is a constant), `pos`
from which place there.
"""

from typing import Any

import numpy as np

from lineara.facts.primitive import Box, Joint, Piece, op
from lineara.facts.types import type_of
from lineara.tape.node import Array, Scalar
from lineara.tape.reads import place, view
from lineara.tape.strides import Flat, c_strides, grid, narrow, strides_of

CONSTANT = -1
Origin = tuple[Any, np.ndarray, np.ndarray]  # (node, places here, places there)


def assemble(level: Any, sources: list[Any], v: Any, src: np.ndarray, pos: np.ndarray) -> Any:
    """The node for a region of value v: its only source, a part of it, or a mixture of several."""
    if not src.size:
        return v
    flat, there = src.reshape(-1), pos.reshape(-1)
    if (flat == flat[0]).all():
        if flat[0] == CONSTANT:
            return v
        node = sources[flat[0]]
        if isinstance(node, Array):
            if tuple(node.v.shape) == src.shape and (there == np.arange(there.size)).all():
                if src.ndim < 2 or alike(node.v, v):
                    return node
                return region(level, node, 0, c_strides(src.shape), v)
            strides = _steps(pos)
            if strides is not None:
                return region(level, node, int(there[0]), strides, v)
        elif not src.shape:
            return node
    return mixed(level, sources, v, src, pos)


def alike(a: Any, b: Any) -> bool:
    """Whether two arrays of one shape lie in memory alike, so that sums add in the same order."""
    shape = tuple(a.shape)
    return narrow(shape, strides_of(a)) == narrow(shape, strides_of(b))


def mixed(level: Any, sources: list[Any], v: Any, src: np.ndarray, pos: np.ndarray) -> Any:
    """A new node of value v for elements of several sources; v itself where all are constants."""
    flat, there = src.reshape(-1), pos.reshape(-1)
    order = np.argsort(flat, kind="stable")
    kinds = flat[order]
    ends = [*(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), kinds.size]
    origins, start = [], 0
    for end in ends if kinds.size else ():
        k, here = kinds[start], order[start:end]
        if k != CONSTANT:
            origins.append((sources[k], here, there[here]))
        start = end
    return mixture(level, v, origins) if origins else v


def _steps(pos: np.ndarray) -> tuple[int, ...] | None:
    """The strides of positions that lie on a grid and are all different, or None."""
    first = pos[(0,) * pos.ndim]
    steps = []
    for axis, n in enumerate(pos.shape):
        at = tuple(min(1, n - 1) if i == axis else 0 for i in range(pos.ndim))
        steps.append(int(pos[at] - first))
    reach = 0
    for s, n in sorted((abs(s), n) for s, n in zip(steps, pos.shape, strict=True) if n > 1):
        if s <= reach:
            return None
        reach += s * (n - 1)
    return tuple(steps) if (grid(int(first), tuple(steps), pos.shape) == pos).all() else None


def region(level: Any, node: Array, offset: int, strides: tuple[int, ...], v: Any) -> Any:
    """A part of a node: a view of its root."""
    root, start, outer = place(node)
    if outer == c_strides(tuple(node.v.shape)):
        return view(level, root, v, start + offset, strides, fixed=True)
    there = grid(offset, strides, tuple(type_of(v).shape)).reshape(-1)
    return mixture(level, v, [(node, np.arange(there.size), there)])


def mixture(level: Any, v: Any, origins: list[Origin]) -> Any:
    """A node of value v whose elements come from other nodes: (node, places here, places there)."""
    shape = tuple(type_of(v).shape)
    size = int(np.prod(shape))
    numbers = [o for o in origins if issubclass(type(o[0]), Scalar)]
    arrays = [o for o in origins if not issubclass(type(o[0]), Scalar)]
    counts = [here.size for _, here, _ in numbers]
    places = np.concatenate([here for _, here, _ in numbers]) if numbers else np.zeros(0, np.int64)
    starts = np.cumsum([0, *counts[:-1]])
    dtype = type_of(v).dtype

    def forward(tangents: Any) -> Any:
        if all(t is None for t in tangents):
            return None
        t_numbers, t_arrays = tangents[: len(numbers)], tangents[len(numbers) :]
        if any(isinstance(t, Box) for t in tangents):
            return forward_boxes(t_numbers, t_arrays)
        total = np.zeros(
            size, np.result_type(dtype, *(np.asarray(t) for t in tangents if t is not None))
        )
        total[places] = np.repeat([0.0 if t is None else t for t in t_numbers], counts)
        for (_, here, there), t in zip(arrays, t_arrays, strict=True):
            if t is not None:
                total[here] = t.reshape(-1)[there]
        return total.reshape(shape)

    def forward_boxes(t_numbers: Any, t_arrays: Any) -> Any:
        terms = []
        if any(t is not None for t in t_numbers):
            spread = np.repeat(np.arange(len(counts)), counts)
            t = op("stack")(*(0.0 if t is None else t for t in t_numbers))
            terms.append((places, op("index")(t, at=(spread,))))
        for (node, here, there), t in zip(arrays, t_arrays, strict=True):
            if t is not None:
                flat = op("reshape")(t, shape=(int(np.prod(node.v.shape)),))
                terms.append((here, op("index")(flat, at=(there,))))
        total = None
        for here, t in terms:
            t = op("scatter")(t, at=(here,), shape=(size,))
            total = t if total is None else total + t
        return op("reshape")(total, shape=shape)

    def back(y_bar: Any) -> list[Any]:
        if isinstance(y_bar, Box):
            flat, read = op("reshape")(y_bar, shape=(size,)), op("index")
            take = lambda here: read(flat, at=(here,))  # noqa: E731
        else:
            take = y_bar.reshape(-1).__getitem__
        bars = sums(take(places)) if numbers else []
        return bars + [Piece(Flat(there), take(here)) for _, here, there in arrays]

    def sums(parts: Any) -> list[Any]:
        if isinstance(parts, Box):
            ends = starts + counts
            return [
                parts[int(i)]
                if n == 1
                else op("sum")(parts[int(i) : int(j)], axis=(0,), keepdims=False)
                for i, j, n in zip(starts, ends, counts, strict=True)
            ]
        return (parts if len(counts) == len(places) else np.add.reduceat(parts, starts)).tolist()

    nodes = [node for node, _, _ in (*numbers, *arrays)]
    return level.record(v, nodes, Joint(forward, back), "assemble", size)

"""A Jacobian in blocks: a container of the result's, of containers like the argument."""

from typing import Any

import numpy as np

from lineara.facts.primitive import real_part
from lineara.facts.types import is_complex
from lineara.linear_map import LinearMap


def blocks(L: LinearMap[Any, Any], ahead: bool, alone: bool) -> Any:
    """The Jacobian in blocks: for each leaf of the result, a container like the argument.

    An argument that is `alone` in a list of positions is in a tuple of its own, as in `grad`.
    """
    ins, outs = L.domain, L.codomain
    columns = L.columns() if ahead else L.rows()
    stops = np.cumsum([0, *(t.size for t in (ins if ahead else outs).types)])
    rows = []
    for i, y in enumerate(outs.types):
        row = []
        for j, x in enumerate(ins.types):
            if ahead:  # (inputs, *y) -> (*y, *x)
                block = columns[i][int(stops[j]) : int(stops[j + 1])]
                order = (*range(1, y.ndim + 1), 0)
                moved = block.transpose(order)
            else:  # (outputs, *x) -> (*y, *x)
                moved = columns[j][int(stops[i]) : int(stops[i + 1])]
                moved = moved if is_complex(x) or is_complex(y) else real_part(moved)
            row.append(_shaped(moved, (*y.shape, *x.shape), len(ins.types) * len(outs.types) == 1))
        tree = ins.dual.tree(row)
        rows.append((tree,) if alone else tree)
    return outs.tree(rows)


def _shaped(block: np.ndarray, shape: tuple[int, ...], only: bool) -> Any:
    """A block in its shape; copied where it is one of several in an array, or lies otherwise."""
    if not shape:
        return block.reshape(()).item()
    shaped = block.reshape(shape)
    if isinstance(shaped, np.ndarray) and not (only and shaped.flags.carray):
        shaped = np.array(shaped, order="C")
    return shaped

"""Linear definitions on vectors with dead lanes: zero times infinity, in programs.

A plain run comes first.  Where it gives a NaN, the text runs again with masks, which say of every
vector which of its lanes are structural zeros (`passes/masks.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.cotangent.dead_lanes import pairs_of
from lineara.engines import ZERO, Tagged, run
from lineara.facts.hints import Value
from lineara.linear_a.program import Program
from lineara.passes.masks import masks
from lineara.passes.names import M
from lineara.tape.masked_sweep import has_nan


def run_linear(
    program: Program, name: str, values: Sequence[Any], vectors: Sequence[Any]
) -> list[Any]:
    """The linear results of a definition, on what its coefficients need and on vectors."""
    results = list(run(program, name, *values, *vectors).lresults)
    return run_live(program, name, values, vectors) if of_dead_lanes(results, vectors) else results


def of_dead_lanes(results: Any, vectors: Any) -> bool:
    """Whether a NaN came out where none went in."""
    return _has_nan(results) and not _has_nan(vectors)


def run_live(
    program: Program, name: str, values: Sequence[Any], vectors: Sequence[Any]
) -> list[Any]:
    """All results with dead lanes as zeros; the arguments have the types of the formals.

    A plain zero in a vector is a dead lane: nothing is moved there, or asked of it.
    """
    d = program.defs[name]
    alive = [each(v, lambda a: np.not_equal(a, 0)) for v in vectors]
    known = program.noted["masks"]
    if name not in known:
        known[name] = masks(program, name)
    results = run(known[name], name + M, *values, *pairs_of(vectors, alive)).results
    k = len(d.results)
    return [*results[:k], *results[k::2]]


def each(value: Value, f: Callable[..., Any]) -> Any:
    """f of the arrays in a value of any type."""
    if isinstance(value, Tagged):
        return Tagged(value.tag, each(value.payload, f))
    if isinstance(value, tuple | list):
        return type(value)([each(v, f) for v in value])
    return value if value is ZERO else f(value)


def _has_nan(value: Value) -> bool:
    if isinstance(value, Tagged):
        return _has_nan(value.payload)
    if isinstance(value, tuple | list):
        return any(map(_has_nan, value))
    return value is not ZERO and has_nan(np.asarray(value))

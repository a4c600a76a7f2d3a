"""Taylor series of functions: traced once, for the types of the argument, and expanded.

As in `vmap`, the program along the curve is called in a trace; on plain values it is evaluated, and
on those of a differentiation played, so a coefficient is differentiated as any other number.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.foreign_arrays import refuse_foreign
from lineara.errors import OutOfRoom, ShapeError, StructureError, TypeMismatchError
from lineara.facts.hints import Shaped, Tree
from lineara.facts.primitive import op
from lineara.facts.types import show_type, type_of
from lineara.python.user_code import Rooms, lifted, seen
from lineara.staging.vmap import read_apart, run_definition
from lineara.tape.leaves import kind_of_number, may_move
from lineara.tape.node import Traced
from lineara.trees import flatten, map_leaves, unflatten


def taylor(f: Callable[..., Any], x: Any, directions: Sequence[Any], order: int) -> Any:
    """The Taylor coefficients of f along the curve x + d1 t + d2 t^2 + ..., up to t^order.

    `directions` is a list or tuple with d1, d2, ..., each like x: one of them is a straight line.
    In place of each array of the result comes an array of shape (order + 1, *its shape), with the
    coefficients of t^0, t^1, ... in front, of the same dtype.  For several arguments give a
    container of them, to an f that takes one.  Integers, flags and text in the result stay as
    they are.

    Elementwise functions and products cost an amount that is quadratic in the order; functions each
    derivative of which is a new one (`gamma`), and factorizations, a cubic one.  f is traced, as by
    `jit`: its branches and loops go as they do at x.  The result is differentiated and traced.

    Raises StructureError or ShapeError for directions that are not like x, TypeMismatchError for an
    order that is no whole number or below 0, for arguments without derivative and for complex
    directions of real numbers, NoRuleError for
    an operation that has no series, and where f cannot be traced what `trace` raises.  At a point
    where f is singular nothing is raised: its first derivative that does not exist is infinite or
    NaN, and so may be all after it.

    >>> taylor(np.exp, 0.0, [1.0], 4)
    array([1.        , 1.        , 0.5       , 0.16666667, 0.04166667])
    >>> circle = taylor(lambda p: p["x"] ** 2 + p["y"] ** 2, {"x": 1.0, "y": 0.0},
    ...     [{"x": 0.0, "y": 1.0}, {"x": -0.5, "y": 0.0}], 4)
    >>> circle
    array([1.  , 0.  , 0.  , 0.  , 0.25])
    """
    return _expanded(f, x, directions, order, "taylor")


def derivatives(f: Callable[..., Any], x: Any, order: int) -> Any:
    """f(x), f'(x), f''(x), ..., up to the derivative of that order, for a function of one number.

    In place of each array of the result comes an array of shape (order + 1, *its shape).

    Raises TypeMismatchError for an x that is not one real or complex number, and what `taylor`
    raises.  Where f is singular, derivatives are infinite or NaN from the first that does not
    exist on: the root has none at 0.

    >>> derivatives(np.sin, 0.0, 5)
    array([ 0.,  1.,  0., -1.,  0.,  1.])
    >>> derivatives(np.sqrt, 0.0, 2)
    array([ 0., inf, nan])
    """
    if not may_move(x) or kind_of_number(x) == "-" or type_of(x).shape:
        raise TypeMismatchError(
            f"derivatives: x is {show_type(x)}; give one floating number, or ask "
            "lineara.taylor for the coefficients along a direction"
        )
    cs = _expanded(f, x, [1.0], order, "derivatives")
    return map_leaves(_with_factorials, cs)


def _with_factorials(rows: Shaped) -> Any:
    """The derivatives of which an array has the Taylor coefficients."""
    t = type_of(rows)
    ks = np.array([math.factorial(k) for k in range(t.shape[0])], float)
    return rows * ks.astype(t.dtype).reshape(-1, *(1,) * (t.ndim - 1))


def _expanded(
    f: Callable[..., Any], x: Any, directions: Sequence[Any], order: int, name: str
) -> Any:
    """The coefficients of f along a curve."""
    order = _whole(order, name)
    leaves, structure = flatten(x)
    refuse_foreign(leaves, name)
    leaves = _promoted(leaves, x, name)
    along = _directions(leaves, structure, directions, name)
    rows = [
        _rows(v, [d[i] for d in along], order) if _moves(v) else v for i, v in enumerate(leaves)
    ]
    types = [type_of(v) if _moves(v) else None for v in leaves]

    def of_point(*nodes: Any) -> Any:
        for v, node in zip(leaves, nodes, strict=True):
            if isinstance(node, Traced) and node.shape:
                node.level.overlaps.add(v, node)
        return seen(f)(*lifted((unflatten(structure, nodes),)))

    rooms = Rooms()
    while True:
        one = read_apart(of_point, f, leaves, types, rooms, "curve")
        moves = (*[True] * len(one.given), *[False] * len(one.mentions))
        along_it = one.definition.along_curve(moves, order)
        try:
            results = run_definition(along_it, [*[rows[i] for i in one.given], *one.mentions], name)
            break
        except OutOfRoom as e:
            if not rooms.outgrown(e):
                raise
    return one.tree(results, lambda c: _still(c, order))


def _moves(v: Any) -> bool:
    """Whether a leaf has coefficients: a floating or complex number, or an array of them."""
    if isinstance(v, np.ndarray | np.generic | Traced):
        return v.dtype.kind in "fc"
    return isinstance(v, float | complex)


def _promoted(leaves: list[Any], x: Tree, name: str) -> list[Any]:
    """The leaves; integers as floating numbers, where there is nothing else that moves."""
    for v in leaves:
        if may_move(v) and not _moves(v) and kind_of_number(v) != "i":
            raise TypeMismatchError(
                f"{name}: takes floating and complex numbers and arrays of them, but the argument "
                f"has {show_type(v)}"
            )
    if any(map(_moves, leaves)):
        return leaves
    if not any(map(may_move, leaves)):
        raise TypeMismatchError(
            f"{name}: there is no number in {show_type(x)}, so nothing moves; give floating-point "
            "numbers or arrays, or containers of them"
        )
    return [
        v if not may_move(v) else op("astype")(v, dtype=np.dtype(float)) if np.ndim(v) else float(v)
        for v in leaves
    ]


def _whole(order: Any, name: str) -> int:
    try:
        whole = operator.index(order)
    except TypeError:
        whole = -1
    if whole < 0:
        raise TypeMismatchError(
            f"{name}: the order is {order!r}; give a whole number, 0 for the value alone"
        )
    return whole


def _directions(
    leaves: list[Any], structure: Any, directions: Sequence[Any], name: str
) -> list[list[Any]]:
    """The leaves of each direction."""
    if not isinstance(directions, list | tuple) or not directions:
        raise StructureError(
            f"{name}: directions is {show_type(directions)}; give a list of them, [d] for a "
            "straight line"
        )
    along = []
    for d in directions:
        parts, form = flatten(d)
        if form != structure:
            raise StructureError(f"{name}: a direction has {form}, but the argument is {structure}")
        for v, p in zip(leaves, parts, strict=True):
            if _moves(v):
                _fits(v, p, name)
        along.append(parts)
    return along


def _fits(v: Any, d: Any, name: str) -> None:
    """Raise unless d is a direction for v."""
    kinds = "ifc" if type_of(v).dtype.kind == "c" else "if"
    if kind_of_number(d) not in kinds:
        raise TypeMismatchError(
            f"{name}: a direction has {show_type(d)} where the argument is {type_of(v)}; give "
            f"{'complex' if 'c' in kinds else 'real'} numbers"
        )
    if type_of(d).shape != type_of(v).shape:
        raise ShapeError(
            f"{name}: a direction has {type_of(d)} where the argument is {type_of(v)}; give arrays "
            "of the same shapes"
        )


def _rows(v: Any, ds: Sequence[Any], order: int) -> Any:
    """The coefficients of one leaf along the curve, those after the directions zeros."""
    t = type_of(v)
    zero = np.zeros(t.shape, t.dtype)
    rows = [v, *ds][: order + 1]
    rows += [zero] * (order + 1 - len(rows))
    if any([isinstance(r, Traced) for r in rows]):
        return op("astype")(op("stack")(*rows), dtype=t.dtype)
    return np.stack(rows).astype(t.dtype)


def _still(c: Any, order: int) -> Any:
    """A constant result: a floating number and its zeros; anything else as it is."""
    return _rows(c, [], order) if _moves(c) else c


__all__ = ["derivatives", "taylor"]

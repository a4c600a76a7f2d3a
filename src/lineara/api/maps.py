"""The derivative as a linear map: `linearize`, applied along a direction, transposed."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple, overload

import numpy as np

from lineara.api.arguments import opened, require_callable
from lineara.api.gradient_functions import certificate_of, refuse_inside
from lineara.errors import StructureError, TypeMismatchError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.pickled import transformation
from lineara.facts.types import ArrayType, type_of
from lineara.linear_map import LinearMap, Space
from lineara.python.user_code import lifted, method, restored, seen
from lineara.tape.levels import open_level
from lineara.tape.linear_level import record_linear
from lineara.tape.linearize import directional
from lineara.tape.linearize import linearize as linearized
from lineara.tape.node import Traced
from lineara.trees import flatten, unflatten

if TYPE_CHECKING:
    from lineara.policies import Policy

A = TypeVar("A")
X = TypeVar("X")
Y = TypeVar("Y")
Xs = TypeVarTuple("Xs")


@overload
def linearize(f: Callable[[X], Y], x: X, /) -> tuple[Y, LinearMap[X, Y]]: ...
@overload
def linearize(
    f: Callable[[X], tuple[Y, A]], x: X, /, *, has_aux: Literal[True]
) -> tuple[Y, LinearMap[X, Y], A]: ...
@overload
def linearize(f: Callable[[*Xs], Y], *args: *Xs) -> tuple[Y, LinearMap[tuple[*Xs], Y]]: ...
@overload
def linearize(
    f: Callable[[*Xs], tuple[Y, A]], *args: *Xs, has_aux: Literal[True]
) -> tuple[Y, LinearMap[tuple[*Xs], Y], A]: ...
def linearize(f: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
    """(f(*args), L): the value and the derivative there, as a `LinearMap` of all arguments.

    With several arguments, vectors of the domain are tuples. The map holds its own copy of what it
    needs and can be applied and transposed as often as wanted. What is not to be differentiated,
    keyword arguments among it, is closed over: `lambda x: f(x, n, key=...)` or `functools.partial`.

    Raises TypeMismatchError for arguments or results without derivative; the map raises ShapeError,
    TypeMismatchError or StructureError for a vector that is not of its domain.

    >>> import numpy as np
    >>> y, L = linearize(lambda x: np.sum(x * x), np.array([1.0, 2.0]))
    >>> y, L @ np.array([1.0, 0.0]), 1.0 @ L
    (5.0, 2.0, array([2., 4.]))
    """
    return _linearized(f, args, has_aux, "linearize")


def _linearized(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    has_aux: bool,
    name: str,
    sparse: bool | None = None,
) -> Any:
    run, args = opened(f, args, None, name)
    y, L, aux = linearized(run, args, {}, None, has_aux, method, name, restored, sparse)
    return (y, L, aux) if has_aux else (y, L)


@overload
def jvp(f: Callable[[*Xs], Y], primals: tuple[*Xs], tangents: tuple[*Xs]) -> tuple[Y, Y]: ...
@overload
def jvp(
    f: Callable[[*Xs], tuple[Y, A]],
    primals: tuple[*Xs],
    tangents: tuple[*Xs],
    *,
    has_aux: Literal[True],
) -> tuple[Y, Y, A]: ...
@overload
def jvp(f: Callable[..., Y], primals: list[Any], tangents: list[Any]) -> tuple[Y, Y]: ...
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> Any:
    """(f(*primals), its derivative in the direction `tangents`).

    With `has_aux`, f returns (value, aux), and aux comes third. As in `linearize`, other arguments
    are closed over.

    Raises TypeMismatchError unless primals and tangents are tuples, StructureError unless they are
    alike, ShapeError for a tangent of another shape.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))
    (6.0, 3.0)
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeMismatchError("jvp: primals and tangents are tuples, one entry for each argument")
    if len(primals) != len(tangents):
        raise StructureError(
            f"jvp: {len(primals)} primals but {len(tangents)} tangents; give one for each argument"
        )
    run, args = opened(f, tuple(primals), None, "jvp")
    along = tangents[0] if len(tangents) == 1 else tuple(tangents)
    y, y_dot, aux = directional(run, args, along, has_aux, method, "jvp", restored)
    return (y, y_dot, aux) if has_aux else (y, y_dot)


@overload
def vjp(
    f: Callable[[*Xs], Y],
    *args: *Xs,
    sparse: Literal[False] = False,
    policy: "Policy | str | None" = None,
) -> tuple[Y, Callable[[Any], tuple[*Xs]]]: ...
@overload
def vjp(
    f: Callable[[*Xs], tuple[Y, A]], *args: *Xs, has_aux: Literal[True]
) -> tuple[Y, Callable[[Any], tuple[*Xs]], A]: ...
@overload
def vjp(
    f: Callable[[*Xs], Y], *args: *Xs, sparse: Literal[True]
) -> tuple[Y, Callable[[Any], tuple[Any, ...]]]: ...
def vjp(
    f: Callable[..., Any],
    *args: Any,
    has_aux: bool = False,
    sparse: bool = False,
    policy: "Policy | str | None" = None,
) -> Any:
    """(f(*args), pull): pull(w) gives the cotangents of all arguments, as a tuple.

    With `has_aux`, f returns (value, aux), and aux comes third. As in `linearize`, other arguments
    are closed over. Where the result is a function, its cotangent is a dict of what it captured, or
    `Probes`. With a `policy` (`lineara.policies`) f is traced, `pull` has what that stores,
    and `pull.certificate()` is what is proved and counted, as in `grad`. With `sparse=True` an
    array that was read in parts has Rows, Coo, LowRank or Zero as its cotangent, as in `grad`, and
    so has one whose weight w was Rows or Coo all the way.

    Raises TypeMismatchError for arguments without derivative and for a `policy` with `has_aux` or
    `sparse`;
    `pull` raises ShapeError or StructureError for a cotangent that is not like the result.

    >>> y, pull = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> y, pull(1.0)
    (6.0, (3.0, 2.0))
    >>> from lineara import Probes
    >>> line, pull = vjp(lambda slope: lambda x: slope * x, 2.0)
    >>> line(5.0), pull({"slope": 1.0}), pull(Probes({5.0: 1.0}))
    (10.0, (1.0,), (5.0,))
    """
    if policy is not None:
        if sparse:
            raise TypeMismatchError("vjp: sparse= does not go with policy=; leave one of them out")
        return _vjp_under_policy(f, args, has_aux, policy)
    y, L, *aux = _linearized(f, args, has_aux, "vjp", sparse)

    def pull(w: Tree) -> tuple[Any, ...]:
        bars = L.T @ w
        return (bars,) if len(args) == 1 else tuple(bars)

    return (y, pull, *aux)


def _vjp_under_policy(
    f: Callable[..., Any], args: tuple[Any, ...], has_aux: bool, policy: "Policy | str"
) -> Any:
    """The value and the pullback, by way of a program."""
    from lineara.policies import chosen
    from lineara.staging.value_and_map import Halves

    require_callable(f, "vjp")
    if has_aux:
        raise TypeMismatchError("vjp: policy= does not go with has_aux; return the value alone")
    kept = chosen(policy, "vjp")
    refuse_inside(f, args, {}, "vjp")
    halves = Halves.of(f, args, {}, kept)

    def pull(w: dict[Any, Any]) -> tuple[Any, ...]:
        return halves.gradient(halves.cotangents(w))[0]

    pull.certificate = functools.partial(certificate_of, f, kept, *args)  # type: ignore[attr-defined]
    return halves.value, pull


@transformation
def linear_transpose(f: Callable[..., Any], *types: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear f: a function w -> cotangents, a tuple with one for each argument.

    `types` are arrays, `ArrayType`s, anything with a shape and a dtype, or containers of these:
    only shapes and dtypes matter, for f runs on arguments that have a type but no value.
    LinearityError where f is not linear in all of them jointly: a product of two, a constant
    added, a value read.

    >>> import numpy as np
    >>> back = linear_transpose(lambda x: x[1:] - x[:-1], np.zeros(3))
    >>> back(np.array([1.0, 10.0]))
    (array([-1., -9., 10.]),)
    """
    require_callable(f, "linear_transpose")
    flat, structure = flatten(types, is_leaf=_has_type)
    spaces = [_linear_type(v) for v in flat]
    places = [i for i, t in enumerate(spaces) if t is not None]
    out_structure: list[Any] = []
    run = seen(f)

    def of_nodes(*nodes: Any) -> list[Any]:
        given = dict(zip(places, nodes, strict=True))
        out = run(*lifted(unflatten(structure, [given.get(i, v) for i, v in enumerate(flat)])))
        results, shape_of_out = flatten(out)
        out_structure.append(shape_of_out)
        return results

    wanted = [t for t in spaces if t is not None]
    shown, joint = record_linear(open_level, of_nodes, wanted)
    codomain = Space(tuple(_linear_type(v) or type_of(0.0) for v in shown), out_structure[0])

    def transposed(w: Tree) -> tuple[Any, ...]:
        by_place = dict(
            zip(places, joint.back(codomain.leaves(w, "linear_transpose")), strict=True)
        )
        return unflatten(
            structure,
            [None if t is None else _fitted(by_place[i], t) for i, t in enumerate(spaces)],
        )

    return transposed


def _has_type(value: Tree) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _linear_type(value: Shaped) -> ArrayType | None:
    """The type of a linear argument or result, integers as floating; None for what is no number."""
    if isinstance(value, bool):
        return None
    if not (_has_type(value) or isinstance(value, int | float | complex)):
        return None
    t = type_of(value)
    return t if t.dtype.kind in "fc" else ArrayType(t.shape, np.dtype(float))


def _fitted(x_bar: Value | None, t: ArrayType) -> Any:
    """A cotangent as an array of its own, or a number."""
    if isinstance(x_bar, Traced):
        return x_bar
    if x_bar is None:
        return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()
    return np.array(x_bar, t.dtype, order="C") if t.shape else np.asarray(x_bar).item()

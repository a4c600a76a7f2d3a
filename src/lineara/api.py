"""The public functions: compositions of a few lines over the eager engine."""

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lineara.colouring import Recent
from lineara.containers.foreign_arrays import ForeignArrays, is_foreign, refuse_foreign
from lineara.errors import NonScalarOutputError, ShapeError, StructureError, TypeMismatchError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.pickled import transformation
from lineara.facts.primitive import conjugate, real_part
from lineara.facts.types import ArrayType, is_complex, show_type, type_of
from lineara.linear_map import LinearMap, Space
from lineara.ops.elementwise import stop_gradient as still
from lineara.ops.shape import as_array, concat, reshape
from lineara.python.captured_values import captured, with_captured
from lineara.python.function_points import FUNCTIONS
from lineara.python.user_code import lifted, method, restored, seen
from lineara.tape import gradient as differentiate
from lineara.tape.gradient import Asked
from lineara.tape.leaves import may_move
from lineara.tape.levels import open_level
from lineara.tape.linear_level import record_linear
from lineara.tape.linearize import directional
from lineara.tape.linearize import linearize as linearized
from lineara.tape.node import Scalar, Traced, plain, staged
from lineara.trees import flatten, map_leaves, unflatten

if TYPE_CHECKING:
    from lineara.policies import Policy

Argnums = int | Sequence[int]


def _argnums(argnums: Any, name: str) -> Argnums:
    """The positions as Python's integers."""
    try:
        if hasattr(argnums, "__index__"):
            return operator.index(argnums)
        return tuple([operator.index(i) for i in argnums])
    except TypeError:
        raise TypeMismatchError(
            f"{name}: argnums={argnums!r} is not a position; give an integer or several, "
            "counted from 0"
        ) from None


def _positions(argnums: Argnums, count: int, name: str) -> tuple[int, ...]:
    """The positions counted from the front, in a call with `count` positional arguments."""
    listed = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in listed:
        if not -count <= i < count:
            raise TypeMismatchError(
                f"{name}: argnums={argnums} asks for argument {i}, but the call has {count} "
                f"positional argument{'s' * (count != 1)}; "
                "differentiated arguments are given by position"
            )
    return tuple(i % count for i in listed)


def _opened(
    f: Callable[..., Any], args: tuple, places: Sequence[int] | None, name: str
) -> tuple[Any, tuple]:
    """Functions among the arguments as what they captured: (f of that, arguments).

    `places`: of the arguments that are differentiated; None for all.
    """
    _callable(f, name)
    run = seen(f)
    for a in args if places is None else [args[i] for i in places]:
        if issubclass(type(a), FUNCTIONS):
            return _of_captured(run, args, range(len(args)) if places is None else places, name)
    return run, args


def _of_captured(
    run: Callable[..., Any], args: tuple, places: Sequence[int], name: str
) -> tuple[Any, tuple]:
    """The function of what functions among the arguments captured, and the arguments as that."""
    functions = {i: args[i] for i in places if isinstance(args[i], FUNCTIONS)}
    if len(functions) == len(places) and not any(map(captured, functions.values())):
        raise TypeMismatchError(
            f"{name}: the function captured nothing (globals and defaults do not count), so there "
            "is nothing to differentiate; let it be a closure over its numbers, a functools."
            "partial, or a method, or pass the numbers as arguments; lineara.probed(f) asks how "
            "much each value of f counts"
        )

    def of_captured(*given: Any, **kwargs: Any) -> Any:
        made = [
            seen(with_captured(functions[i], a)) if i in functions else a
            for i, a in enumerate(given)
        ]
        return run(*made, **kwargs)

    return of_captured, tuple(captured(a) if i in functions else a for i, a in enumerate(args))


def _callable(f: Callable[..., Any], name: str) -> None:
    if not callable(f):
        raise TypeMismatchError(f"{name}: takes a function, but was given {show_type(f)}")


@transformation
def value_and_grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    sparse: bool | Sequence[str] = False,
    combine: Callable[[Any, Any], Any] | None = None,
    out: str | None = None,
    strong_zero: bool = False,
    convention: str = "ascent",
    policy: "Policy | str | None" = None,
) -> Callable[..., Any]:
    """The function x -> (f(x), gradient of f at x), for f with one real result.

    The gradient has the container type of the argument: a dataclass gives the same dataclass.
    It is dense and writable; with `sparse=True` (or the names of some leaves) arrays that were only
    read in parts give `Rows`, `Coo`, `LowRank` or `Zero`. See `grad` for all keywords.

    Raises NonScalarOutputError where f does not return one real number, TypeMismatchError for
    arguments without derivative.

    >>> import numpy as np
    >>> value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (5.0, array([2., 4.]))
    """
    name = "value_and_grad"
    _callable(f, name)
    asked = Asked((), has_aux, _names(sparse), combine, _builder(out, name), strong_zero, name)
    return _gradient_function(f, argnums, asked, policy, convention, alone=False)


@transformation
def grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    sparse: bool | Sequence[str] = False,
    combine: Callable[[Any, Any], Any] | None = None,
    out: str | None = None,
    strong_zero: bool = False,
    convention: str = "ascent",
    policy: "Policy | str | None" = None,
) -> Callable[..., Any]:
    """The gradient of f, a function of arrays, numbers and containers with one real result.

    argnums      the position of the argument to differentiate, or several: then a tuple comes back
    has_aux      f returns (value, aux), and the gradient function (gradient, aux)
    sparse       True, or the names of leaves: Rows, Coo, LowRank or Zero where only parts were read
    combine      called with (leaf, its gradient) once for each leaf that is a number or an array,
                 in order, gives the result; strings, flags and None are kept
    out          "builder": the unsummed contributions, a monoid for `combine` and `finish`
    strong_zero  zero times infinity is zero everywhere, not only for structural zeros
    convention   of a complex argument z = x + iy: "ascent", df/dx + i df/dy; "conjugate", df/dx -
                 i df/dy, as JAX and Autograd; "holomorphic", f'(z) of an f with a complex result
    policy       what is stored and what is computed again (`lineara.policies`); f is then traced

    With a policy the result has `certificate(*args)`: what is proved of the gradient for arguments
    of these types, and what it will take in work and memory. It prints, and nothing is run.

    A differentiated argument may be a function, or hold functions: their gradients have the
    cotangents of what they captured, by name; of `lineara.probed(f)`, how much each value counts.

    Raises NonScalarOutputError where f does not return one real number, TypeMismatchError for
    arguments without derivative.

    >>> import numpy as np
    >>> grad(lambda x: np.sin(x) * x)(2.0)  # doctest: +ELLIPSIS
    0.0770...
    >>> grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [3.0, 4.0]})
    {'a': 3.0, 'b': [2.0, 0.0]}
    >>> def line(slope):
    ...     return lambda x: slope * x
    >>> grad(lambda g: g(5.0))(line(2.0))
    {'slope': 5.0}
    """
    _callable(f, "grad")
    asked = Asked((), has_aux, _names(sparse), combine, _builder(out, "grad"), strong_zero, "grad")
    return _gradient_function(f, argnums, asked, policy, convention, alone=True)


def _names(sparse: bool | Sequence[str]) -> bool | tuple[str, ...]:
    """The names of the sparse leaves; True for all, False for none."""
    if isinstance(sparse, bool):
        return sparse
    return (sparse,) if isinstance(sparse, str) else tuple(sparse)


def _builder(out: str | None, name: str) -> bool:
    """Whether the unsummed contributions are asked for."""
    if out not in (None, "builder"):
        raise TypeMismatchError(f"{name}: out={out!r} is not known; leave it out or give 'builder'")
    return out == "builder"


def _gradient_function(
    f: Callable[..., Any],
    argnums: Argnums,
    asked: Asked,
    policy: "Policy | str | None",
    convention: str,
    alone: bool,
) -> Callable[..., Any]:
    """The function to (value, gradient), or to the gradient alone; with the names of `f`."""
    argnums, has_aux = _argnums(argnums, asked.name), asked.has_aux
    if convention == "ascent" and policy is None:
        made = _tape_gradient(f, argnums, asked, alone)
    else:
        both = (
            _under_policy(f, argnums, asked, policy)
            if convention == "ascent" and policy is not None
            else _in_convention(convention, f, argnums, asked, policy)
        )

        def gradient(*args: Any, **kwargs: Any) -> Any:
            value, g = both(*args, **kwargs)
            return (g, value[1]) if has_aux else g

        made = gradient if alone else both
    functools.update_wrapper(made, f, ("__name__", "__qualname__", "__doc__"), ())
    return _certified(made, f, policy, asked.name)


def _tape_gradient(
    f: Callable[..., Any], argnums: Argnums, asked: Asked, alone: bool
) -> Callable[..., Any]:
    """The function to (value, gradient), or to the gradient alone, by one sweep over a tape."""
    has_aux, name, first = asked.has_aux, asked.name, isinstance(argnums, int)
    counted: dict[int, Asked] = {}  # by the length of a call: with positions from the front

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        here = counted.get(len(args))
        if here is None:
            places = _positions(argnums, len(args), name)
            here = counted[len(args)] = replace(asked, argnums=places)
        run = seen(f)
        for i in here.argnums:
            if issubclass(type(args[i]), FUNCTIONS):
                run, args = _of_captured(run, args, here.argnums, name)
                break
        value, gradients, aux = differentiate.backward(run, args, kwargs, here, method)
        g = gradients[0] if first else tuple(gradients)
        if has_aux:
            aux = restored(aux)
            return (g, aux) if alone else ((value, aux), g)
        return g if alone else (value, g)

    return differentiated


CONVENTIONS = ("ascent", "conjugate", "holomorphic")


def _in_convention(
    convention: str, f: Callable[..., Any], argnums: Argnums, asked: Asked, policy: Any
) -> Callable[..., Any]:
    """The function to (value, gradient) with another meaning of the complex gradient."""
    name, has_aux = asked.name, asked.has_aux
    if convention not in CONVENTIONS:
        raise TypeMismatchError(
            f"{name}: convention={convention!r} is not known; give {', '.join(CONVENTIONS)}"
        )
    if asked != Asked((), has_aux, False, None, False, asked.strong_zero, name):
        raise TypeMismatchError(
            f"{name}: convention={convention!r} does not go with sparse, combine or out; "
            "conjugate what they give"
        )
    if convention == "conjugate":
        ascent = _gradient_function(f, argnums, asked, policy, "ascent", alone=False)

        def conjugated(*args: Any, **kwargs: Any) -> Any:
            value, g = ascent(*args, **kwargs)
            return value, map_leaves(_conjugated, g)

        return conjugated
    if policy is not None or asked.strong_zero:
        raise TypeMismatchError(f"{name}: 'holomorphic' does not go with policy= or strong_zero=")

    def holomorphic(*args: Any, **kwargs: Any) -> Any:
        places = _positions(argnums, len(args), name)
        run, args = _opened(f, args, places, name)
        y, L, aux = linearized(run, args, kwargs, places, has_aux, method, name, restored)
        if L.codomain.size != 1:
            raise NonScalarOutputError(
                f"{name}: a holomorphic derivative is of one complex number, but the function "
                f"returned {show_type(y)}; use jacobian"
            )
        g = _blocks(L, False, alone=not isinstance(argnums, int) and len(places) == 1)
        return ((y, restored(aux)), g) if has_aux else (y, g)

    return holomorphic


def _conjugated(v: Shaped) -> Any:
    if not is_complex(v):
        return v
    return conjugate(v) if isinstance(v, Traced) else v.conjugate()


def _under_policy(
    f: Callable[..., Any], argnums: Argnums, asked: Asked, policy: "Policy | str"
) -> Callable[..., Any]:
    """The function to (value, gradient), by way of a program."""
    from lineara.policies import chosen
    from lineara.staging.value_and_map import Halves

    name = asked.name
    kept = chosen(policy, name)
    plain = Asked((), False, False, None, False, False, name)
    if asked != plain:
        raise TypeMismatchError(
            f"{name}: policy= goes with argnums only; leave out has_aux, sparse, combine, out and "
            "strong_zero, or wrap a part of f in lineara.checkpoint(part, policy=...)"
        )

    def both(*args: Any, **kwargs: Any) -> Any:
        _refuse_inside(f, args, kwargs, name)
        places = _positions(argnums, len(args), name)
        halves = Halves.of(f, args, kwargs, kept)
        halves.real(name)
        gradients, _ = halves.gradient([1.0])
        g = (
            gradients[places[0]]
            if isinstance(argnums, int)
            else tuple([gradients[i] for i in places])
        )
        return halves.value, g

    return both


def _refuse_inside(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> None:
    """A policy is for a differentiation that no other is around."""
    for v in flatten((args, kwargs, captured(f)))[0]:
        if isinstance(v, Traced):
            raise TypeMismatchError(
                f"{name}: policy= takes plain values, but a differentiation or a trace around gave "
                f"{show_type(v)}; there, {name} of lineara.checkpoint(f, policy=...) keeps the same"
            )


def _certified(made: Any, f: Any, policy: "Policy | str | None", name: str) -> Any:
    """A function that knows its certificate, if there is a policy."""
    if policy is not None:
        from lineara.policies import chosen

        made.certificate = functools.partial(_certificate, f, chosen(policy, name))
    return made


def _certificate(f: Callable[..., Any], kept: "Policy", *args: Any, **kwargs: Any) -> Any:
    """The certificate of the derivative for these arguments."""
    from lineara.staging.capture import trace
    from lineara.staging.certificate import certified

    staged = trace(f, *args, **kwargs)
    return certified(staged.program, staged.name, kept, staged.operands(args, kwargs))


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
    f: Callable[..., Any], args: tuple, has_aux: bool, name: str, sparse: bool | None = None
) -> Any:
    run, args = _opened(f, args, None, name)
    y, L, aux = linearized(run, args, {}, None, has_aux, method, name, restored, sparse)
    return (y, L, aux) if has_aux else (y, L)


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
    run, args = _opened(f, tuple(primals), None, "jvp")
    along = tangents[0] if len(tangents) == 1 else tuple(tangents)
    y, y_dot, aux = directional(run, args, along, has_aux, method, "jvp", restored)
    return (y, y_dot, aux) if has_aux else (y, y_dot)


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
    f: Callable[..., Any], args: tuple, has_aux: bool, policy: "Policy | str"
) -> Any:
    """The value and the pullback, by way of a program."""
    from lineara.policies import chosen
    from lineara.staging.value_and_map import Halves

    _callable(f, "vjp")
    if has_aux:
        raise TypeMismatchError("vjp: policy= does not go with has_aux; return the value alone")
    kept = chosen(policy, "vjp")
    _refuse_inside(f, args, {}, "vjp")
    halves = Halves.of(f, args, {}, kept)

    def pull(w: dict[Any, Any]) -> tuple[Any, ...]:
        return halves.gradient(halves.cotangents(w))[0]

    pull.certificate = functools.partial(_certificate, f, kept, *args)  # type: ignore[attr-defined]
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
    _callable(f, "linear_transpose")
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


@transformation
def jacobian(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    mode: str = "auto",
    has_aux: bool = False,
    sparse: Any = False,
) -> Callable[..., Any]:
    """The Jacobian of f: an array of shape (*result, *argument), from one batched sweep.

    `mode` is "forward", "reverse", or "auto": whichever has fewer scalars on its side. Containers
    in the result and in the argument give nested containers, the result's outside.

    With respect to complex numbers it is the matrix of complex derivatives of a holomorphic f; of
    any other f no complex matrix is the derivative: a LinearityError.

    With `sparse` it is one `scipy.sparse` array in compressed rows, (scalars of the result, scalars
    of the argument): what the operations of this run depend on is followed, and columns and rows
    that do not meet share a product, and one more product tests the result.  In place of True a
    pattern may be given.  `lineara.sparse_plan` keeps pattern, colours and code for many calls.

    Raises TypeMismatchError for another `mode`, for arguments without derivative, and for `sparse`
    with complex numbers; StructureError for a pattern that lacks an entry.

    >>> import numpy as np
    >>> jacobian(lambda x: np.array([x[0] * x[1], x[1]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [0., 1.]])
    """
    _callable(f, "jacobian")
    argnums = _argnums(argnums, "jacobian")
    if mode not in ("auto", "forward", "reverse"):
        raise TypeMismatchError(
            f"jacobian: mode={mode!r} is not known; use auto, forward or reverse"
        )
    colours = _colours(sparse, symmetric=False)

    def function(*args: Any, **kwargs: Any) -> Any:
        places = _positions(argnums, len(args), "jacobian")
        run, args = _opened(f, args, places, "jacobian")
        _, L, aux = linearized(run, args, kwargs, places, has_aux, method, "jacobian", restored)
        if colours is not None:
            J = colours.matrix(L)
            return (J, restored(aux)) if has_aux else J
        ahead = L.domain.size <= L.codomain.size if mode == "auto" else mode == "forward"
        J = _blocks(L, ahead, alone=not isinstance(argnums, int) and len(places) == 1)
        return (J, restored(aux)) if has_aux else J

    return function


def _blocks(L: LinearMap, ahead: bool, alone: bool) -> Any:
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


def jacfwd(
    f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian by one batched forward sweep.

    Raises what `jacobian` raises.

    >>> import numpy as np
    >>> jacfwd(lambda x: np.array([x * x, 3 * x]))(2.0)
    array([4., 3.])
    """
    return jacobian(f, argnums, mode="forward", has_aux=has_aux)


def jacrev(
    f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian by one batched reverse sweep.

    Raises what `jacobian` raises.

    >>> import numpy as np
    >>> jacrev(lambda x: x[0] * x[1])(np.array([2.0, 5.0]))
    array([5., 2.])
    """
    return jacobian(f, argnums, mode="reverse", has_aux=has_aux)


def _colours(sparse: Any, symmetric: bool) -> Any:
    """What finds the colours of a sparse matrix, and keeps the last ones; None for a dense one."""
    if sparse is False:
        return None
    return Recent(None if sparse is True else sparse, symmetric)


@transformation
def hessian(
    f: Callable[..., Any], argnums: Argnums = 0, *, sparse: Any = False
) -> Callable[..., Any]:
    """The matrix of second derivatives: the Jacobian, forward, of the gradient.

    With `sparse` it is one `scipy.sparse` array in compressed rows, from products with vectors that
    a star colouring of its pattern gives; in place of True, of a pattern that is given, and tested.

    Raises NonScalarOutputError where f does not return one real number, and what `jacobian` raises.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    _callable(f, "hessian")
    gradient = _numbers_of(grad(f, argnums))
    if sparse is False:
        return jacfwd(gradient, argnums)
    places, colours = _argnums(argnums, "hessian"), _colours(sparse, symmetric=True)

    def function(*args: Any, **kwargs: Any) -> Any:
        at = _positions(places, len(args), "hessian")
        run, args = _opened(gradient, args, at, "hessian")
        L = linearized(run, args, kwargs, at, False, method, "hessian", restored)[1]
        return colours.matrix(L)

    return function


def _numbers_of(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient function to differentiate: with 0 for what is no number, as a Jacobian has it."""

    def numbers(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(gradient(*args, **kwargs))
        return unflatten(structure, [v if may_move(v) else 0.0 for v in leaves])

    return numbers


def hvp(f: Callable[..., Any], x: Tree, v: Tree) -> Any:
    """The Hessian of f at x times v, forward over reverse: no matrix is made.

    x is one argument, and v like it. For several give a container of them: f of one tuple or dict.

    Raises NonScalarOutputError where f does not return one real number, ShapeError or
    StructureError for a direction that is not like the argument.

    >>> import numpy as np
    >>> hvp(lambda x: x[0] ** 2 * x[1], np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    array([6., 2.])
    """
    tangent = jvp(_numbers_of(grad(f)), (x,), (v,))[1]
    leaves = flatten(x)[0]
    if all(map(may_move, leaves)) and not any([is_foreign(type(a)) for a in leaves]):
        return tangent
    return map_leaves(_alike, x, tangent)


def _alike(a: Shaped, a_dot: Shaped) -> Any:
    """A tangent as an array of the library of its leaf; what is no number as it is."""
    if is_foreign(type(a)):
        return ForeignArrays.of(a).made(a_dot)
    return a_dot if may_move(a) else a


def stop_gradient(x: Any) -> Any:
    """x as a constant: its value without its derivative, at every order.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    if staged(x) and isinstance(x, Traced):
        x = x.now()
        return stop_gradient(x.v) if x.known else still(x)
    if isinstance(x, Traced):
        value = plain(x)
        return value.copy() if isinstance(value, np.ndarray) else value  # the user may write to it
    return map_leaves(lambda v: stop_gradient(v) if isinstance(v, Traced) else v, x)


def ravel(tree: Tree) -> tuple[Any, Callable[[Any], Any]]:
    """(flat, unravel): the numbers of a container as one vector, and the way back.

    Integers, strings and None are kept as they are. Both directions are differentiable.

    `unravel` raises ShapeError for a vector of another length.

    >>> flat, unravel = ravel({"a": 1.0, "b": [2.0, 3.0]})
    >>> flat
    array([1., 2., 3.])
    >>> unravel(flat * 2)
    {'a': 2.0, 'b': [4.0, 6.0]}
    """
    leaves, structure = flatten(tree)
    refuse_foreign(leaves, "ravel")
    moving = [_is_floating(v) for v in leaves]
    types = [type_of(v) if m else None for v, m in zip(leaves, moving, strict=True)]
    parts = [
        reshape(as_array(v), shape=(type_of(v).size,)) if isinstance(v, Traced) else np.ravel(v)
        for v, m in zip(leaves, moving, strict=True)
        if m
    ]
    flat = concat(*parts, axis=0) if parts else np.zeros(0)
    size = sum(t.size for t in types if t is not None)

    def unravel(vector: Any) -> Any:
        if type_of(vector).shape != (size,):
            raise ShapeError(f"unravel: takes a vector of {size} numbers, not {type_of(vector)}")
        parts, start = [], 0
        for v, t in zip(leaves, types, strict=True):
            if t is None:
                parts.append(v)
                continue
            part = vector[start : start + t.size]
            parts.append(part.reshape(t.shape) if t.shape else _number(part[0], v))
            start += t.size
        return unflatten(structure, parts)

    return flat, unravel


def _number(part: Scalar, like: Value) -> Any:
    return float(part) if type(like) is float and not isinstance(part, Traced) else part


def _is_floating(value: Shaped) -> bool:
    if isinstance(value, bool | int | str | bytes) or value is None:
        return False
    return (hasattr(value, "dtype") and value.dtype.kind in "fc") or isinstance(
        value, float | complex
    )

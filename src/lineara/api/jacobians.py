"""Matrices of first and second derivatives, and products with the second."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from lineara.api.arguments import (
    Argnums,
    as_positions,
    by_name,
    opened,
    positions,
    require_callable,
)
from lineara.api.blocks import blocks
from lineara.api.gradients import grad
from lineara.api.maps import jvp
from lineara.colouring import Recent
from lineara.containers.foreign_arrays import ForeignArrays, is_foreign
from lineara.errors import TypeMismatchError
from lineara.facts.hints import Real, Shaped
from lineara.facts.pickled import transformation
from lineara.python.user_code import method, restored
from lineara.tape.leaves import may_move
from lineara.tape.linearize import linearize as linearized
from lineara.trees import flatten, map_leaves, unflatten

P = ParamSpec("P")
X = TypeVar("X")
A = TypeVar("A", bound=np.ndarray[Any, Any])


@overload
def jacobian(
    f: Callable[Concatenate[A, P], Real | np.ndarray[Any, Any]],
    argnums: Literal[0] = 0,
    *,
    mode: str = "auto",
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacobian(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    mode: str = "auto",
    has_aux: bool = False,
    sparse: Any = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[P, Any]: ...
@transformation
def jacobian(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    mode: str = "auto",
    has_aux: bool = False,
    sparse: Any = False,
    argnames: str | Sequence[str] | None = None,
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

    `argnums` and `argnames` are as in `grad`: of several names it is a dict.

    Raises TypeMismatchError for another `mode`, for arguments without derivative, and for `sparse`
    with complex numbers; StructureError for a pattern that lacks an entry.

    >>> import numpy as np
    >>> jacobian(lambda x: np.array([x[0] * x[1], x[1]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [0., 1.]])
    """
    require_callable(f, "jacobian")
    if argnames is not None:
        of = functools.partial(jacobian, mode=mode, has_aux=has_aux, sparse=sparse)
        return by_name(of, f, argnums, argnames, "jacobian")
    argnums = as_positions(argnums, "jacobian")
    if mode not in ("auto", "forward", "reverse"):
        raise TypeMismatchError(
            f"jacobian: mode={mode!r} is not known; use auto, forward or reverse"
        )
    colours = _colours(sparse, symmetric=False)

    def function(*args: Any, **kwargs: Any) -> Any:
        places = positions(argnums, len(args), "jacobian")
        run, args = opened(f, args, places, "jacobian")
        _, L, aux = linearized(run, args, kwargs, places, has_aux, method, "jacobian", restored)
        if colours is not None:
            J = colours.matrix(L)
            return (J, restored(aux)) if has_aux else J
        ahead = L.domain.size <= L.codomain.size if mode == "auto" else mode == "forward"
        J = blocks(L, ahead, alone=not isinstance(argnums, int) and len(places) == 1)
        return (J, restored(aux)) if has_aux else J

    return function


@overload
def jacfwd(
    f: Callable[Concatenate[A, P], Real | np.ndarray[Any, Any]], argnums: Literal[0] = 0
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacfwd(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[P, Any]: ...
def jacfwd(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The Jacobian by one batched forward sweep.

    Raises what `jacobian` raises.

    >>> import numpy as np
    >>> jacfwd(lambda x: np.array([x * x, 3 * x]))(2.0)
    array([4., 3.])
    """
    return jacobian(f, argnums, mode="forward", has_aux=has_aux, argnames=argnames)


@overload
def jacrev(
    f: Callable[Concatenate[A, P], Real | np.ndarray[Any, Any]], argnums: Literal[0] = 0
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacrev(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[P, Any]: ...
def jacrev(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The Jacobian by one batched reverse sweep.

    Raises what `jacobian` raises.

    >>> import numpy as np
    >>> jacrev(lambda x: x[0] * x[1])(np.array([2.0, 5.0]))
    array([5., 2.])
    """
    return jacobian(f, argnums, mode="reverse", has_aux=has_aux, argnames=argnames)


def _colours(sparse: Any, symmetric: bool) -> Any:
    """What finds the colours of a sparse matrix, and keeps the last ones; None for a dense one."""
    if sparse is False:
        return None
    return Recent(None if sparse is True else sparse, symmetric)


@overload
def hessian(
    f: Callable[Concatenate[A, P], Real], argnums: Literal[0] = 0
) -> Callable[Concatenate[A, P], A]: ...
@overload
def hessian(
    f: Callable[P, Real],
    argnums: Argnums = 0,
    *,
    sparse: Any = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[P, Any]: ...
@transformation
def hessian(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    sparse: Any = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The matrix of second derivatives: the Jacobian, forward, of the gradient.

    With `sparse` it is one `scipy.sparse` array in compressed rows, from products with vectors that
    a star colouring of its pattern gives; in place of True, of a pattern that is given, and tested.

    `argnums` and `argnames` are as in `grad`.

    Raises NonScalarOutputError where f does not return one real number, and what `jacobian` raises.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    require_callable(f, "hessian")
    if argnames is not None:
        of = functools.partial(hessian, sparse=sparse)
        return by_name(of, f, argnums, argnames, "hessian")
    gradient = _numbers_of(grad(f, argnums))
    if sparse is False:
        return jacfwd(gradient, argnums)
    places, colours = as_positions(argnums, "hessian"), _colours(sparse, symmetric=True)

    def function(*args: Any, **kwargs: Any) -> Any:
        at = positions(places, len(args), "hessian")
        run, args = opened(gradient, args, at, "hessian")
        L = linearized(run, args, kwargs, at, False, method, "hessian", restored)[1]
        return colours.matrix(L)

    return function


def _numbers_of(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient function to differentiate: with 0 for what is no number, as a Jacobian has it."""

    def numbers(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(gradient(*args, **kwargs))
        return unflatten(structure, [v if may_move(v) else 0.0 for v in leaves])

    return numbers


NOTHING: Any = object()


@overload
def hvp(f: Callable[[X], Real], argnums: Literal[0] = 0) -> Callable[[X, X], X]: ...
@overload
def hvp(
    f: Callable[..., Real], argnums: Argnums = 0, *, argnames: str | Sequence[str] | None = None
) -> Callable[..., Any]: ...
@overload
def hvp(f: Callable[[X], Real], x: X, v: X, /) -> X: ...  # until 0.3
def hvp(
    f: Callable[..., Any],
    argnums: Any = 0,
    v: Any = NOTHING,
    *,
    argnames: str | Sequence[str] | None = None,
    x: Any = NOTHING,
) -> Any:
    """The function (x, v) -> Hessian of f at x times v: forward over reverse, without a matrix.

    It takes the arguments of f, then v, which is like the argument to differentiate: with several
    `argnums` a tuple, with several `argnames` a dict. `argnums` and `argnames` are as in `grad`.

    `hvp(f, x, v)` in one call is deprecated: it goes in version 0.3.

    Raises NonScalarOutputError where f does not return one real number, ShapeError or
    StructureError for a direction that is not like the argument.

    >>> import numpy as np
    >>> hvp(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    array([6., 2.])
    >>> hvp(lambda x, rate: rate * x**3, argnames="x")(2.0, 1.0, rate=5.0)
    60.0
    """
    if v is not NOTHING:
        warnings.warn(
            "hvp(f, x, v) is deprecated, and goes in version 0.3: write hvp(f)(x, v)",
            DeprecationWarning,
            stacklevel=2,
        )
        return hessian_products(f)(argnums if x is NOTHING else x, v)
    return hessian_products(f, argnums, argnames=argnames)


@transformation
def hessian_products(
    f: Callable[..., Any], argnums: Any = 0, *, argnames: str | Sequence[str] | None = None
) -> Callable[..., Any]:
    """The function of f's arguments and a direction."""
    require_callable(f, "hvp")
    if argnames is not None:
        return by_name(hessian_products, f, argnums, argnames, "hvp", beyond=1)
    asked = as_positions(argnums, "hvp")
    gradient = _numbers_of(grad(f, argnums))

    def product(*given: Any, **kwargs: Any) -> Any:
        *args, v = _with_direction(given)
        places = positions(asked, len(args), "hvp")

        def of_moved(*moved: Any) -> Any:
            filled = [*args]
            for i, a in zip(places, moved, strict=True):
                filled[i] = a
            return gradient(*filled, **kwargs)

        x = tuple([args[i] for i in places])
        tangent = jvp(of_moved, x, (v,) if isinstance(asked, int) else v)[1]
        like = x[0] if isinstance(asked, int) else x
        leaves = flatten(like)[0]
        if all(map(may_move, leaves)) and not any([is_foreign(type(a)) for a in leaves]):
            return tangent
        return map_leaves(_alike, like, tangent)

    return product


def _with_direction(given: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(given) < 2:
        raise TypeMismatchError(
            f"hvp: takes the arguments of f, then the direction v, but was given {len(given)} "
            "positional argument(s); write hvp(f)(x, v)"
        )
    return given


def _alike(a: Shaped, a_dot: Shaped) -> Any:
    """A tangent as an array of the library of its leaf; what is no number as it is."""
    if is_foreign(type(a)):
        return ForeignArrays.of(a).made(a_dot)
    return a_dot if may_move(a) else a

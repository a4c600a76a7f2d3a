"""grad and value_and_grad, with what they give of functions of known types.

Of a function of one array they give a function of such an array whose result is one: a checker of
types knows it, and what was asked in a way that cannot be, such as the gradient of a string.
"""

from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

import numpy as np

from lineara.api.arguments import Argnums, require_callable
from lineara.api.gradient_functions import gradient_function, sparse_names, wants_builder
from lineara.facts.hints import Certified, Real
from lineara.facts.pickled import transformation
from lineara.tape.gradient import Asked

if TYPE_CHECKING:
    from lineara.policies import Policy

P = ParamSpec("P")
A = TypeVar("A")
X = TypeVar("X")
Y = TypeVar("Y")


class Plain(TypedDict, total=False):
    """The keywords that do not change what comes back."""

    sparse: Literal[False]
    combine: None
    out: None
    strong_zero: bool
    convention: Literal["ascent", "conjugate"]
    policy: None


class Every(TypedDict, total=False):
    """The keywords that go with a gradient in another form."""

    has_aux: bool
    strong_zero: bool
    argnames: str | Sequence[str] | None


@overload
def value_and_grad(
    f: Callable[Concatenate[X, P], Real], argnums: Literal[0] = 0, **options: Unpack[Plain]
) -> Callable[Concatenate[X, P], tuple[float, X]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[X, P], tuple[Real, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Plain],
) -> Callable[Concatenate[X, P], tuple[tuple[float, A], X]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[X, Y, P], Real], argnums: Literal[1], **options: Unpack[Plain]
) -> Callable[Concatenate[X, Y, P], tuple[float, Y]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[X, Y, P], Real],
    argnums: tuple[Literal[0], Literal[1]],
    **options: Unpack[Plain],
) -> Callable[Concatenate[X, Y, P], tuple[float, tuple[X, Y]]]: ...
@overload
def value_and_grad(
    f: Callable[P, Real], argnums: int, **options: Unpack[Plain]
) -> Callable[P, tuple[float, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Real], argnums: Sequence[int], **options: Unpack[Plain]
) -> Callable[P, tuple[float, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[P, tuple[Real, A]],
    argnums: Argnums,
    *,
    has_aux: Literal[True],
    **options: Unpack[Plain],
) -> Callable[P, tuple[tuple[float, A], Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Real], *, argnames: str, **options: Unpack[Plain]
) -> Callable[P, tuple[float, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Real], *, argnames: Sequence[str], **options: Unpack[Plain]
) -> Callable[P, tuple[float, dict[str, Any]]]: ...
@overload
def value_and_grad(
    f: Callable[P, tuple[Real, A]],
    *,
    argnames: str | Sequence[str],
    has_aux: Literal[True],
    **options: Unpack[Plain],
) -> Callable[P, tuple[tuple[float, A], Any]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[X, P], complex | np.complexfloating[Any, Any]],
    argnums: Literal[0] = 0,
    *,
    convention: Literal["holomorphic"],
    strong_zero: Literal[False] = False,
) -> Callable[Concatenate[X, P], tuple[complex, X]]: ...
@overload
def value_and_grad(
    f: Callable[P, Real],
    argnums: Argnums = 0,
    *,
    policy: "Policy | str",
    argnames: str | Sequence[str] | None = None,
) -> Certified[P, tuple[float, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Real | tuple[Real, Any]],
    argnums: Argnums = 0,
    *,
    sparse: Literal[True] | Sequence[str],
    **options: Unpack[Every],
) -> Callable[P, Any]: ...
@overload
def value_and_grad(
    f: Callable[P, Real | tuple[Real, Any]],
    argnums: Argnums = 0,
    *,
    combine: Callable[[Any, Any], Any],
    **options: Unpack[Every],
) -> Callable[P, Any]: ...
@overload
def value_and_grad(
    f: Callable[P, Real | tuple[Real, Any]],
    argnums: Argnums = 0,
    *,
    out: Literal["builder"],
    **options: Unpack[Every],
) -> Callable[P, Any]: ...
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
    argnames: str | Sequence[str] | None = None,
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
    require_callable(f, name)
    asked = Asked(
        (), has_aux, sparse_names(sparse), combine, wants_builder(out, name), strong_zero, name
    )
    return gradient_function(f, argnums, asked, policy, convention, alone=False, argnames=argnames)


@overload
def grad(
    f: Callable[Concatenate[X, P], Real], argnums: Literal[0] = 0, **options: Unpack[Plain]
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(
    f: Callable[Concatenate[X, P], tuple[Real, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Plain],
) -> Callable[Concatenate[X, P], tuple[X, A]]: ...
@overload
def grad(
    f: Callable[Concatenate[X, Y, P], Real], argnums: Literal[1], **options: Unpack[Plain]
) -> Callable[Concatenate[X, Y, P], Y]: ...
@overload
def grad(
    f: Callable[Concatenate[X, Y, P], Real],
    argnums: tuple[Literal[0], Literal[1]],
    **options: Unpack[Plain],
) -> Callable[Concatenate[X, Y, P], tuple[X, Y]]: ...
@overload
def grad(f: Callable[P, Real], argnums: int, **options: Unpack[Plain]) -> Callable[P, Any]: ...
@overload
def grad(
    f: Callable[P, Real], argnums: Sequence[int], **options: Unpack[Plain]
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    f: Callable[P, tuple[Real, A]],
    argnums: Argnums,
    *,
    has_aux: Literal[True],
    **options: Unpack[Plain],
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(f: Callable[P, Real], *, argnames: str, **options: Unpack[Plain]) -> Callable[P, Any]: ...
@overload
def grad(
    f: Callable[P, Real], *, argnames: Sequence[str], **options: Unpack[Plain]
) -> Callable[P, dict[str, Any]]: ...
@overload
def grad(
    f: Callable[P, tuple[Real, A]],
    *,
    argnames: str | Sequence[str],
    has_aux: Literal[True],
    **options: Unpack[Plain],
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(
    f: Callable[Concatenate[X, P], complex | np.complexfloating[Any, Any]],
    argnums: Literal[0] = 0,
    *,
    convention: Literal["holomorphic"],
    strong_zero: Literal[False] = False,
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(
    f: Callable[P, Real],
    argnums: Argnums = 0,
    *,
    policy: "Policy | str",
    argnames: str | Sequence[str] | None = None,
) -> Certified[P, Any]: ...
@overload
def grad(
    f: Callable[P, Real | tuple[Real, Any]],
    argnums: Argnums = 0,
    *,
    sparse: Literal[True] | Sequence[str],
    **options: Unpack[Every],
) -> Callable[P, Any]: ...
@overload
def grad(
    f: Callable[P, Real | tuple[Real, Any]],
    argnums: Argnums = 0,
    *,
    combine: Callable[[Any, Any], Any],
    **options: Unpack[Every],
) -> Callable[P, Any]: ...
@overload
def grad(
    f: Callable[P, Real | tuple[Real, Any]],
    argnums: Argnums = 0,
    *,
    out: Literal["builder"],
    **options: Unpack[Every],
) -> Callable[P, Any]: ...
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
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The gradient of f, a function of arrays, numbers and containers with one real result.

    argnums      the position of the argument to differentiate, or several: then a tuple comes back
    argnames     the name of a parameter in its place, however it is given, or several: then a dict
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
    >>> grad(lambda rate, time: rate * time, argnames=["time"])(2.0, time=3.0)
    {'time': 2.0}
    >>> def line(slope):
    ...     return lambda x: slope * x
    >>> grad(lambda g: g(5.0))(line(2.0))
    {'slope': 5.0}
    """
    require_callable(f, "grad")
    asked = Asked(
        (), has_aux, sparse_names(sparse), combine, wants_builder(out, "grad"), strong_zero, "grad"
    )
    return gradient_function(f, argnums, asked, policy, convention, alone=True, argnames=argnames)

"""Geometry: points that cannot be added, tangents, cotangents, and the metrics between those two.

A gradient is a cotangent: it eats a tangent and gives a number.  To step along it one needs a
metric, which turns it into a tangent, and a retraction, which moves a point along a tangent:

    p = retract(p, -rate * metric(grad(f)(p)))

>>> from dataclasses import dataclass
>>> import lineara
>>> @dataclass(frozen=True)
... class Vector:
...     dx: float
...     dy: float
>>> @dataclass(frozen=True)
... class Gradient:
...     x: float
...     y: float
>>> @lineara.manifold(tangent=Vector, cotangent=Gradient)
... @dataclass(frozen=True)
... class Point:
...     x: float
...     y: float
>>> f = lambda p: p.x**2 + 3 * p.y
>>> g = lineara.grad(f)(Point(2.0, 1.0))
>>> g
Gradient(x=4.0, y=3.0)
>>> v = lineara.Metric.L2(g)
>>> v, vdot(g, v)
(Vector(dx=4.0, dy=3.0), 25.0)
>>> retract(Point(2.0, 1.0), -0.5 * v)
Point(x=0.0, y=-0.5)
"""

import operator
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

import numpy as np

from lineara.containers.points import (
    ATTRIBUTE,
    Manifold,
    is_quantity,
    manifold_of,
    recast,
    recast_like,
)
from lineara.cotangent import Builder, Zero
from lineara.errors import GeometryError
from lineara.facts.box import Box
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.types import show_type
from lineara.python.user_code import seen
from lineara.tape.node import staged
from lineara.trees import flatten, map_leaves, unflatten
from lineara.trees.kinds import kind_of

DUAL = "__lineara_dual__"  # where a class of cotangents keeps the class of the tangents
CODUALS = "__lineara_coduals__"  # where a class of tangents keeps the classes of the cotangents

C = TypeVar("C", bound=type)


def manifold(
    point: Tree = None,
    *,
    tangent: Any,
    cotangent: Any = None,
    retract: Callable[[Any, Any], Any] | None = None,
    diff: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Declare that the instances of a class are points; as a function or as a decorator.

    tangent     the class of tangents: of velocities, differences, steps; None for a constant label
    cotangent   the class of cotangents: of gradients; that of the tangents where it is left out
    retract     retract(p, v): the point p moved along the tangent v, where v = 0 leaves it in place
    diff        diff(q, p): the tangent at p with retract(p, v) = q

    Without `retract` the fields of the point are its coordinates, and the declared classes have
    the same names or as many.  With it the derivative is the one in v at v = 0, so a point may
    have more numbers than the manifold has dimensions.  The fact is kept on the class itself, in
    `__lineara_manifold__`.  Points get `p + v` and `q - p` where the class has none of its own, and
    `p + q` is a GeometryError; vectors get `+`, `-` and the product with a number.

    Raises GeometryError where `point` is no class, or its class of cotangents is that of other
    tangents.

    >>> import numpy as np, lineara
    >>> class Angle:  # a point of the circle, kept as the number of its direction
    ...     def __init__(self, z): self.z = z
    >>> _ = manifold(
    ...     Angle,
    ...     tangent=float,
    ...     retract=lambda p, v: Angle(p.z * np.exp(1j * v)),
    ...     diff=lambda q, p: np.log(q.z / p.z).imag,
    ... )
    >>> lineara.grad(lambda p: p.z.real)(Angle(1j))
    -1.0
    """
    if point is None:
        return lambda cls: manifold(
            cls, tangent=tangent, cotangent=cotangent, retract=retract, diff=diff
        )
    if not isinstance(point, type):
        raise GeometryError(
            f"manifold: takes the class of the points, but was given {show_type(point)}"
        )
    cotangent = tangent if cotangent is None else cotangent
    fact = Manifold(point, tangent, cotangent, _seeing(retract), _seeing(diff))
    try:
        setattr(point, ATTRIBUTE, fact)
    except TypeError:
        raise GeometryError(
            f"manifold: the class {point.__name__} cannot be told that it is one; "
            "declare a class of your own that holds it"
        ) from None
    if tangent is not None:
        _pair(tangent, cotangent)
        if point not in (tangent, cotangent):
            _point_operators(point)
    return point


def _seeing(f: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any] | None:
    """The user's function, seeing our NumPy from its first call on."""
    return None if f is None else lambda p, v: seen(f)(p, v)


def _pair(tangent: type, cotangent: type) -> None:
    """Tell the classes of vectors of each other, and how to add and scale."""
    for cls in {id(c): c for c in (tangent, cotangent)}.values():
        if _is_user_class(cls):
            for name, method in _VECTOR.items():
                if _own(cls, name) is None:
                    setattr(cls, name, method)
    if _is_user_class(cotangent):
        held = vars(cotangent).get(DUAL, tangent)
        if held is not tangent:
            raise GeometryError(
                f"manifold: the cotangents {cotangent.__name__} already belong to the tangents "
                f"{held.__name__}, not to {getattr(tangent, '__name__', tangent)}; "
                "declare a class of cotangents for each"
            )
        setattr(cotangent, DUAL, tangent)
    if _is_user_class(tangent):
        held = vars(tangent).get(CODUALS, ())
        setattr(tangent, CODUALS, held if cotangent in held else (*held, cotangent))


def _is_user_class(cls: type) -> bool:
    return isinstance(cls, type) and kind_of(cls) is not None and cls.__module__ != "builtins"


# --- operators for classes that have none -------------------------------------------------------


def _own(cls: type, name: str) -> Any:
    """What the user wrote; joining and repeating tuples is no sum and no product."""
    attribute = getattr(cls, name, None)
    return None if attribute is getattr(tuple, name, None) else attribute


def _add_to_point(p: Any, v: Tree) -> Any:
    if isinstance(v, manifold_of(p).point):
        name = manifold_of(p).point.__name__
        raise GeometryError(
            f"two points of {name} cannot be added; their difference is a tangent, "
            "and p + v is p moved along the tangent v"
        )
    manifold_of(p).check(v, "tangent", f"{manifold_of(p).point.__name__} + v")
    return retract(p, v)


def _subtract_from_point(p: Any, other: Any) -> Any:
    points = manifold_of(p)
    if isinstance(other, points.point):
        return diff(p, other)
    points.check(other, "tangent", f"{points.point.__name__} - v")
    return retract(p, scale(-1, other))


def _refuse(p: Any, *_: Any) -> Any:
    name = manifold_of(p).point.__name__
    raise GeometryError(
        f"a point of {name} cannot be multiplied or negated; its differences to other points can"
    )


_POINT: dict[str, Callable[..., Any]] = {
    "__add__": _add_to_point,
    "__sub__": _subtract_from_point,
    **dict.fromkeys(("__mul__", "__rmul__", "__truediv__", "__neg__"), _refuse),
}


def _point_operators(cls: type) -> None:
    for name, method in _POINT.items():
        own = _own(cls, name)
        if own is None:
            setattr(cls, name, method)
        elif name in ("__add__", "__sub__") and own is not method:
            setattr(cls, name, _guarded(own, name))


def _guarded(own: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    """The user's `p + v` or `p - v`, which points to add and gradients are not given to."""

    def method(p: Any, v: Tree) -> Any:
        points = manifold_of(p)
        if isinstance(v, points.point):
            return own(p, v) if name == "__sub__" else _add_to_point(p, v)
        if points.is_gradient(v):
            points.check(v, "tangent", f"{points.point.__name__} {_SIGNS[name]} v")
        return own(p, v)

    return method


_SIGNS = {"__add__": "+", "__sub__": "-"}


def _leafwise(act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda u, v: map_leaves(act, u, v) if type(v) is type(u) else NotImplemented


_VECTOR: dict[str, Callable[..., Any]] = {
    "__add__": _leafwise(operator.add),
    "__sub__": _leafwise(operator.sub),
    "__neg__": lambda v: scale(-1, v),
    "__mul__": lambda v, c: scale(c, v),
    "__rmul__": lambda v, c: scale(c, v),
    "__truediv__": lambda v, c: map_leaves(lambda x: x / c, v),
}


# --- vectors ------------------------------------------------------------------------------------


def scale(c: Value, v: Value) -> Any:
    """The number c times a vector, of any type that holds numbers.

    >>> scale(2, {"w": 1.5, "b": [1.0]})
    {'w': 3.0, 'b': [2.0]}
    """
    return map_leaves(lambda x: c * x, v)


def vdot(w: Tree, v: Tree) -> Any:
    """The number that the cotangent w makes of the tangent v; what is sparse is not made dense.

    Complex numbers are pairs of real ones: a pair contributes Re(conj(w) v).

    Raises GeometryError where the two have not as many numbers.

    >>> import numpy as np
    >>> vdot({"a": 2.0, "b": np.ones(2)}, {"a": 3.0, "b": np.array([1.0, 2.0])})
    9.0
    >>> vdot(1j, 2 + 3j)
    3.0
    """
    (left, one), (right, other) = _leaves(w), _leaves(v)
    if len(left) != len(right):
        raise GeometryError(f"vdot: a cotangent {one} does not fit a tangent {other}")
    terms = [_product(a, b) for a, b in zip(left, right, strict=True)]
    return sum(terms[1:], terms[0]) if terms else 0.0


def _leaves(v: Tree) -> tuple[list[Any], Any]:
    leaves, structure = flatten(v, is_leaf=lambda x: isinstance(x, Builder))
    return leaves, structure


def _product(w: Any, v: Any) -> Any:
    w, v = (x.total_seconds() if isinstance(x, timedelta) else x for x in (w, v))
    product: Any
    if isinstance(w, Zero) or isinstance(v, Zero) or w is None or isinstance(w, str | bool):
        return 0.0
    if isinstance(w, Builder) or isinstance(v, Builder):
        return _sparse_product(w, v) if isinstance(w, Builder) else _sparse_product(v, w)
    conjugate = getattr(w, "conjugate", None)
    product = w * v if conjugate is None else conjugate() * v
    if np.shape(product if not is_quantity(product) else product.magnitude):
        product = product.sum()
    product = product.real if hasattr(product, "real") else product
    return product.item() if isinstance(product, np.generic) else product


def _sparse_product(w: Builder, v: Any) -> float:
    at, held = w.coalesce().cells()
    if not isinstance(v, Builder):
        return float(held @ np.reshape(v, -1)[at])
    where, other = v.coalesce().cells()
    _, i, j = np.intersect1d(at, where, return_indices=True)
    return float(held[i] @ other[j])


def inner(u: dict[Any, Any] | list[Any], v: dict[Any, Any] | list[Any]) -> Any:
    """The Euclidean inner product of two vectors of one type.

    >>> inner((1.0, 2.0), (3.0, 4.0))
    11.0
    """
    return vdot(u, v)


# --- moving -------------------------------------------------------------------------------------


def retract(p: Tree, v: Tree) -> Any:
    """The point p moved along the tangent v: as declared, and number by number for all else.

    >>> retract({"w": 1.0, "b": [2.0]}, {"w": 0.5, "b": [0.0]})
    {'w': 1.5, 'b': [2.0]}
    """
    return _along(p, v, "retract", _moved)


def diff(q: Tree, p: Tree) -> Any:
    """The tangent at p that leads to q.

    >>> diff([1.0, 2.0], [0.5, 2.0])
    [0.5, 0.0]
    """
    return _along(p, q, "diff", lambda x, y: y - x)


def _along(p: Tree, other: Tree, word: str, each: Callable[[Any, Any], Any]) -> Any:
    def leaf(x: Any, y: Value) -> Any:
        points = manifold_of(x)
        if not isinstance(points, Manifold):
            return each(x, y)
        return _declared(points, x, y, word, each)

    return map_leaves(leaf, p, other, is_leaf=lambda x: isinstance(manifold_of(x), Manifold))


def _declared(
    points: Manifold, p: Tree, other: Any, word: str, each: Callable[[Any, Any], Any]
) -> Any:
    points.check(other, "tangent" if word == "retract" else "point", word)
    own = getattr(points, word)
    if own is not None:
        return own(p, other) if word == "retract" else own(other, p)
    name = points.point.__name__
    if points.tangent is None:
        return p
    if points.retract is not None:
        raise GeometryError(
            f"{word}: the points of {name} have none; declare manifold({name}, ..., {word}=...)"
        )
    leaves, structure = flatten(p)
    others = flatten(recast_like(structure.entries[-1], other))[0]
    moved = [each(x, y) for x, y in zip(leaves, others, strict=True)]
    tree = unflatten(structure, moved)
    return tree if word == "retract" else recast(points.tangent, tree)


def _moved(x: Value, v: Value) -> Any:
    if x is None or isinstance(x, str | bool) or v is None:
        return x
    return x + (np.asarray(v) if isinstance(v, Builder) else v)


# --- metrics ------------------------------------------------------------------------------------


class Metric:
    """From cotangents to tangents: what a gradient needs before a point can step along it.

    `metric(g)` is the tangent of a gradient (it is the *inverse* metric tensor, a preconditioner):
    linear, symmetric and positive, which `check` tests.  `metric.lower(v)` is the way back, from
    tangents to cotangents (the metric tensor; the Riesz map of the inner product).  `Metric.L2`
    leaves the numbers as they are, `Metric.diag(tree)` multiplies each leaf by its own number (or
    array, or quantity, traced ones too), `Metric.matrix(M)` is a matrix on the numbers in their
    order, and `Metric(f, lower=g)` any function f and its inverse g, which may be left out.
    A sparse gradient gives a sparse tangent, and the other way round, except through a matrix.

    Raises GeometryError for a matrix or a number that is no metric, and in `check` for samples that
    show it not symmetric or not positive.

    >>> import numpy as np
    >>> metric = Metric.diag({"w": 0.1, "b": 2.0})
    >>> metric({"w": np.ones(2), "b": 3.0})
    {'w': array([0.1, 0.1]), 'b': 6.0}
    >>> metric.inner({"w": np.ones(2), "b": 3.0}, {"w": np.ones(2), "b": 1.0})
    6.2
    >>> Metric.matrix(np.array([[2.0, 1.0], [1.0, 2.0]]))([1.0, 0.0])
    [2.0, 1.0]
    >>> metric.lower(metric({"w": np.ones(2), "b": 3.0}))
    {'w': array([1., 1.]), 'b': 3.0}
    """

    L2: ClassVar["Metric"]

    def __init__(
        self,
        raise_index: Callable[[Any], Any],
        name: str | None = None,
        *,
        lower: Callable[[Any], Any] | None = None,
    ) -> None:
        self._raise, self._lower = raise_index, lower
        self._name = name or f"Metric({getattr(raise_index, '__name__', raise_index)})"

    @classmethod
    def diag(cls, tree: Any) -> "Metric":
        """Each leaf times its own positive number; `tree` may stop above the leaves.

        GeometryError for a number that is not positive; a program's numbers are not looked at.

        >>> Metric.diag(0.5)((4.0, [2.0]))
        (2.0, [1.0])
        """
        for weight in flatten(tree)[0]:
            size = _number_of(weight)
            if size is not None and not np.all(np.asarray(size) > 0):
                raise GeometryError(
                    f"Metric.diag: a metric is positive, but was given {weight!r}; "
                    "leave what must not move out of the differentiated arguments"
                )

        def raised(g: Tree) -> Any:
            return map_leaves(scale, *_matching(tree, g))

        def lowered(v: Tree) -> Any:
            return map_leaves(_unscale, *_matching(tree, v))

        return cls(raised, f"Metric.diag({tree!r})", lower=lowered)

    @classmethod
    def matrix(cls, matrix: Any) -> "Metric":
        """A symmetric positive matrix (or anything with `@`) on all the numbers, in their order."""
        if isinstance(matrix, np.ndarray):
            _check_matrix(matrix)

        def on_numbers(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def moved(g: Tree) -> Any:
                leaves, structure = flatten(g)
                flat = np.concatenate([np.ravel(x) for x in leaves])
                parts = np.split(act(flat), np.cumsum([np.size(x) for x in leaves])[:-1])
                shaped = [
                    m.reshape(np.shape(x)) if np.ndim(x) else m[0].item()
                    for m, x in zip(parts, leaves, strict=True)
                ]
                return unflatten(structure, shaped)

            return moved

        back = None
        if isinstance(matrix, np.ndarray):
            back = on_numbers(lambda flat: np.linalg.solve(matrix, flat))
        raised = on_numbers(lambda flat: matrix @ flat)
        return cls(raised, f"Metric.matrix({show_type(matrix)})", lower=back)

    def __call__(self, g: Tree) -> Any:
        """The tangent of a cotangent, in the type that was declared for tangents."""
        raised = self._raise(g)
        return _as_tangent(raised)

    def lower(self, v: Tree) -> Any:
        """The cotangent of a tangent, in the type that was declared: the inverse of `metric(g)`.

        GeometryError where the metric knows one direction only, and where the class of the tangent
        belongs to several classes of cotangents.

        >>> Metric.diag(0.5).lower((2.0, [1.0]))
        (4.0, [2.0])
        """
        if self._lower is None:
            raise GeometryError(
                f"lower: {self!r} was given as a function from cotangents to tangents, and its "
                "inverse is not known; give it as Metric(f, lower=g), or take a Metric.diag or a "
                "Metric.matrix of an array"
            )
        return _as_cotangent(self._lower(v))

    def inner(self, g: Tree, h: Tree) -> Any:
        """The inner product of two cotangents."""
        return vdot(g, self(h))

    def norm(self, g: Tree) -> Any:
        """The length of a cotangent: of a gradient, the slope in the steepest direction."""
        return self.inner(g, g) ** 0.5

    def check(self, *samples: Any, tolerance: float = 1e-9) -> None:
        """Raise GeometryError unless the metric is symmetric and positive on these cotangents.

        Where `lower` is known, it is tested to be the inverse.

        >>> Metric.L2.check(1.0, -2.0)
        >>> Metric(lambda g: -g).check(1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        lineara.errors.GeometryError: Metric.check: inner(g, g) = -1.0 for g = 1.0, ...
        """
        for i, g in enumerate(samples):
            size = self.inner(g, g)
            if not size > 0:
                raise GeometryError(
                    f"Metric.check: inner(g, g) = {size!r} for g = {g!r}, but a metric is positive"
                )
            self._check_symmetry(g, samples[:i], tolerance)
            if self._lower is not None:
                self._check_inverse(g, size, tolerance)

    def _check_symmetry(self, g: object, others: Sequence[Any], tolerance: float) -> None:
        for h in others:
            one, two = self.inner(g, h), self.inner(h, g)
            if not abs(one - two) <= tolerance * (abs(one) + abs(two)):
                raise GeometryError(
                    f"Metric.check: inner(g, h) = {one!r} but inner(h, g) = {two!r} for "
                    f"g = {g!r}, h = {h!r}; a metric is symmetric"
                )

    def _check_inverse(self, g: Tree, size: Any, tolerance: float) -> None:
        again = self.lower(self(g))
        rest = map_leaves(operator.sub, again, g)
        if not self.inner(rest, rest) <= tolerance**2 * size:
            raise GeometryError(
                f"Metric.check: lower(metric(g)) = {again!r} for g = {g!r}; lower is the inverse "
                "of the metric"
            )

    def __repr__(self) -> str:
        return self._name


Metric.L2 = Metric(lambda g: g, "Metric.L2", lower=lambda v: v)


def _as_tangent(g: Value) -> Any:
    """A container of cotangents with each declared class replaced by that of its tangents."""
    if kind_of(type(g)) is None:
        return g
    return map_leaves(lambda x: recast(_dual(x), x), g, is_leaf=lambda x: _dual(x) is not None)


def _dual(x: Tree) -> Any:
    return getattr(type(x), DUAL, None)


def _as_cotangent(v: Value) -> Any:
    """A container of tangents with each declared class replaced by that of its cotangents."""
    if kind_of(type(v)) is None:
        return v
    return map_leaves(_covector, v, is_leaf=lambda x: hasattr(type(x), CODUALS))


def _covector(x: Any) -> Any:
    classes = getattr(type(x), CODUALS, ())
    if len(classes) > 1:
        names = " and ".join(c.__name__ for c in classes)
        raise GeometryError(
            f"lower: the tangents {type(x).__name__} belong to the cotangents {names}; declare a "
            "class of tangents for each"
        )
    return recast(classes[0], x) if classes else x


def _unscale(c: Value, v: Value) -> Any:
    return map_leaves(lambda x: x / c, v)


def _number_of(weight: Any) -> Any:
    """The numbers of a weight, without its unit and without what traces it; None in a program."""
    size = weight.magnitude if is_quantity(weight) else weight
    while isinstance(size, Box):
        if staged(size):
            return None
        size = size.v
    return size


def _matching(tree: Shaped, g: Tree) -> tuple[Any, Any]:
    """The weights with the containers of g as far down as they go."""
    kind = kind_of(type(tree))
    if kind is not None and type(g) is not type(tree) and kind_of(type(g)) is not None:
        return recast(type(g), tree), g
    return tree, g


def _check_matrix(matrix: np.ndarray) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GeometryError(
            f"Metric.matrix: takes a square matrix, but was given {show_type(matrix)}"
        )
    if not np.allclose(matrix, matrix.T):
        raise GeometryError(
            "Metric.matrix: a metric is symmetric; this matrix is not its transpose"
        )
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise GeometryError(
            "Metric.matrix: a metric is positive, but an eigenvalue of this matrix is not"
        ) from None

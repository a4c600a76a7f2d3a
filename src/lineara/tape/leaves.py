"""Leaves: how an argument becomes traced, and how its cotangent becomes a gradient.

Floating and complex leaves are differentiated.  Integers are constants, unless a call has no
other numbers: then they are promoted.  Strings, None, enums and booleans stay as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from lineara.containers.boundary import UNTOUCHED, lift, rebuild
from lineara.containers.foreign_arrays import as_numpy, is_foreign
from lineara.containers.points import manifold_of
from lineara.containers.proxy import Places
from lineara.cotangent import Zero
from lineara.errors import TypeMismatchError, with_article
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.primitive import Box, op
from lineara.facts.types import FLOATS, is_number, type_of
from lineara.tape.cotangent_builders import builder
from lineara.tape.lazy_zeros import Zeros, is_own
from lineara.tape.level import Level
from lineara.tape.node import Array, OfArray, Scalar, Traced, has_own_rules, layout
from lineara.tape.node import zero as nothing
from lineara.tape.pull_reads import pull
from lineara.tape.reads import is_fixed, snapshot
from lineara.tape.shared_memory import shares
from lineara.trees import flatten

EXACT = (Fraction, Decimal)  # numbers that floats do not mix with, or would spoil


def one_like(value: Shaped) -> Any:
    """The unit cotangent of a result: the int 1 for exact numbers, which stay exact."""
    return 1.0 if type(value) in FLOATS or not isinstance(layout(value), EXACT) else 1


def kind_of_number(value: Shaped) -> str:
    """`f`loating (or exact), `c`omplex, `i`nteger, `O`bject array, or `-` for what is no number."""
    if type(value) is np.ndarray and value.dtype.kind == "f":
        return "f"
    if isinstance(value, np.ndarray | np.generic | Traced):
        kind = value.dtype.kind
        if kind == "O" and not value.shape:  # an exact number of an outer level
            return "f"
        return "i" if kind in "iu" else kind if kind in "fcOSUMmV" else "-"
    if is_foreign(type(value)):
        return kind_of_number(as_numpy(value))
    if not is_number(value):
        return "-"
    return "i" if isinstance(value, int) else "c" if isinstance(value, complex) else "f"


def may_move(leaf: Shaped) -> bool:
    """Whether a leaf can have a tangent: numbers, points, functions that captured numbers."""
    return kind_of_number(leaf) != "-" or manifold_of(leaf) is not None


def beside(args: Sequence[Any], kwargs: dict[str, Any], argnums: Sequence[int]) -> Sequence[Any]:
    """The arguments of a call that are not differentiated."""
    if len(args) == len(argnums) and not kwargs:
        return ()
    return [*[a for i, a in enumerate(args) if i not in argnums], *kwargs.values()]


NONE: Mapping[int, Any] = MappingProxyType({})


class Leaves:
    """The leaves of one call: lifted when they are first read."""

    places: Places | None = None  # the containers among the arguments
    points: Mapping[int, tuple[Any, Any, Any]] = NONE  # by id: point, coordinates, lifted ones
    _plain: list[np.ndarray] | None = None  # arrays among `others`, and inside them
    _promote: bool | None = None

    def __init__(
        self, level: Level, args: Sequence[Any], method: Any, others: Sequence[Any] = ()
    ) -> None:
        self.level = level
        self.scalar: Callable[..., Any] = level.scalar
        self.method = method  # how a user's class in an argument sees our NumPy
        self.args = args
        self.others = others  # the arguments that are not differentiated
        self.nodes: list[Any] = level.roots

    def __call__(self, value: Any) -> Any:
        """The traced form of a leaf; a constant as it is."""
        if type(value) is float:  # the most frequent leaf, in one step
            node = self.scalar(value)
            self.nodes.append(node)
            return node
        if issubclass(type(value), Scalar) and value.of_type is not None:  # of an outer level
            node = self.scalar(value, self.level.S if value.weak else self.level.N)
            node = self.level.of_array(node) if isinstance(value, OfArray) else node
            self.nodes.append(node)
            return node
        if type(value) is np.ndarray and value.dtype.kind == "f":
            node = self._node(value)
            if value.ndim:
                self.level.overlaps.add(value, node)
                if self.others:
                    self._note_others(value)
            return node
        manifold = manifold_of(value)
        if manifold is not None:
            return self._point(value, manifold)
        kind = kind_of_number(value)
        if kind in "OSUMmV" or has_own_rules(value):
            raise TypeMismatchError(
                f"an argument holds {_show_array(value)}; "
                "give a floating-point array, or keep it outside the differentiated arguments"
            )
        if kind == "-" or (kind == "i" and not self.promote()):
            return value
        node = self._node(self._floating(value) if kind == "i" else value)
        if node.shape:
            self.level.overlaps.add(value, node)
            self._note_others(value)
        return node

    def _note_others(self, value: Shaped) -> None:
        """Watch arrays among the other arguments: one may share memory that is written later."""
        level = self.level
        if self._plain is None:
            self._plain = [a for x in self.others for a in _arrays_of(x)]
        for a in self._plain:
            if shares(value, a):
                level.overlaps.add(a, None)
                level.locks.take(a, watch=True)

    def _point(self, p: Tree, manifold: Any) -> Any:
        """A point whose coordinates are traced."""
        at = manifold.coordinates(p)
        v = lift(at, self, method=self.method, places=self.places)
        lifted = manifold.lifted(p, v)
        if self.points is NONE:
            self.points = {}
        self.points[id(lifted)] = (lifted, at, v)  # type: ignore[index]  # its own from here on
        return lifted

    def promote(self) -> bool:
        """Whether all numbers of the call are integers, which then count as floating."""
        if self._promote is None:
            kinds = {kind_of_number(v) for v in flatten(list(self.args))[0]}
            self._promote = "i" in kinds and not kinds & {"f", "c"}
        return self._promote

    @staticmethod
    def _floating(value: Shaped) -> Any:
        is_array = isinstance(value, np.ndarray | np.generic) or getattr(value, "ndim", 0)
        return value.astype(float) if is_array else float(value)

    def _node(self, value: Shaped) -> Any:
        level = self.level
        if isinstance(value, np.ndarray) and value.ndim:
            held = np.asarray(value)
            if not held.dtype.isnative:  # compiled libraries refuse the other byte order
                held = held.astype(held.dtype.newbyteorder("="))
            node = level.wrap(level.guard(held, watch=False))
        else:
            node = level.wrap(snapshot(value))
            if isinstance(value, np.ndarray | OfArray):
                node = level.of_array(node)
        self.nodes.append(node)
        return node


def lift_args(args: Sequence[Any], argnums: Sequence[int], leaves: Leaves) -> list[Any]:
    """The arguments of a call; those to differentiate as containers that trace leaves when read."""
    lifted = list(args)
    for i in argnums:
        a = args[i]
        if type(a) is float or (type(a) is np.ndarray and a.dtype.kind == "f"):
            lifted[i] = leaves(a)
            continue
        if leaves.places is None:
            leaves.places = Places(leaves.others)
        lifted[i] = lift(a, leaves, method=leaves.method, places=leaves.places)
    return lifted


def _arrays_of(x: Shaped) -> list[np.ndarray]:
    """The plain arrays in an argument: itself, or the elements of a small list, tuple or dict."""
    parts = x.values() if type(x) is dict else x if type(x) in (list, tuple) else (x,)
    return [a for a in parts if isinstance(a, np.ndarray)] if len(parts) <= _FEW else []


_FEW = 64  # arrays in a container that is not differentiated, that are looked at


def _show_array(value: Shaped) -> str:
    if has_own_rules(value):
        return f"{with_article(type(value).__name__)}, whose own rules are not followed"
    word = {"O": "an object array", "S": "an array of strings", "U": "an array of strings"}
    return f"{word.get(value.dtype.kind, f'an array of {value.dtype}')}, which has no derivative"


# --- gradients -----------------------------------------------------------------------------------


class Absent:
    """A tangent that does not exist, and why: harmless until something is computed with it."""

    def __init__(self, error: Exception) -> None:
        vars(self)["error"] = error

    def __getattr__(self, name: str) -> Any:
        raise self.error

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise self.error

    __add__ = _raise
    __radd__ = _raise
    __mul__ = _raise
    __rmul__ = _raise
    __truediv__ = _raise
    __rtruediv__ = _raise
    __matmul__ = _raise
    __sub__ = _raise
    __rsub__ = _raise
    __neg__ = _raise
    __rmatmul__ = _raise
    __getitem__ = _raise
    __array__ = _raise
    __array_ufunc__ = _raise


class Gradients:
    """Turns cotangents of leaves into what the user gets: fresh, writable, of the leaf's type."""

    zeros: Zeros | None = None

    def __init__(self, level: Level, points: Mapping[int, Any] = NONE, unit: Any = None) -> None:
        self.level = level
        self.points = points
        self.unit = unit  # of the result, if it has one
        self.given: set[int] = set()  # arrays handed out already: no two results share memory

    def dense(self, leaf: Any, node: Any) -> Any:
        """The gradient of one leaf as a number or an array; of a point as its cotangent."""
        if type(leaf) is float:
            if node is UNTOUCHED:
                return 0.0
            if issubclass(type(node), Scalar) and type(node.g) is float:
                return node.g
        if node is UNTOUCHED and type(leaf) is np.ndarray and leaf.dtype.kind in "fc":
            self.zeros = self.zeros or Zeros()
            return self.zeros(leaf.shape, leaf.dtype)
        if type(leaf) is not np.ndarray:
            manifold = manifold_of(leaf)
            if manifold is not None:
                return self._point(leaf, node, manifold, sparse=False)
        if node is UNTOUCHED or not (isinstance(node, Traced) and node.level is self.level):
            return zero_of(leaf)
        g = node.g if issubclass(type(node), Scalar) else pull(node)  # pyright: ignore  # an Array
        return self.fit(leaf, g)

    def _point(self, p: Tree, node: object, manifold: Any, sparse: bool) -> Any:
        point = self.points.get(id(node))
        _, at, v = (None, manifold.coordinates(p), UNTOUCHED) if point is None else point
        tree = rebuild(at, v, self.sparse if sparse else self.dense)
        return manifold.covector(p, tree, self.unit)

    def fit(self, leaf: Any, g: Shaped) -> Any:
        """A cotangent in the type of the leaf that it belongs to."""
        if type(g) is float and type(leaf) is float:
            return g
        if g is None or g is nothing or (type(g) is int and g == 0):
            return zero_of(leaf)
        if isinstance(g, Box):
            return self._distinct(_of_kind(leaf, _as_leaf(leaf, g)))
        if type(g) is Absent:
            raise g.error
        if isinstance(leaf, np.ndarray):
            dtype = leaf.dtype if leaf.dtype.kind in "fc" else np.dtype(float)
            if g is not None and isinstance(g, np.ndarray) and self._own(g, dtype):
                return g
            return np.array(g, dtype=dtype, order="C").reshape(leaf.shape)
        if isinstance(leaf, np.floating | np.complexfloating):
            return leaf.dtype.type(g)
        number = _exact(leaf)
        if number is not None:
            return type(number)(g) if type(g) is int else g
        if kind_of_number(leaf) == "c" and kind_of_number(g) == "f":  # at a real part alone
            g = np.asarray(g, type_of(leaf).dtype)[()]
        return g.item() if isinstance(g, np.generic | np.ndarray) and np.ndim(g) == 0 else g

    def _distinct(self, g: Traced) -> Any:
        """An outer level's value as an object of its own: the user may write to each result."""
        if not isinstance(g, Array):
            return g
        g = g.now()
        if isinstance(g, Array) and (id(g) in self.given or is_fixed(g)):
            return g.copy()
        self.given.add(id(g))
        return g

    def _own(self, g: np.ndarray, dtype: np.dtype) -> bool:
        """Whether an array may be handed out without a copy."""
        flags = g.flags
        if not (flags.carray and (flags.owndata or is_own(g)) and g.dtype == dtype):
            return False
        if id(g) in self.given:
            return False
        self.given.add(id(g))
        return True

    def sparse(self, leaf: Any, node: object) -> Any:
        """The gradient of one leaf, its class decided by which operations were traced."""
        manifold = manifold_of(leaf)
        if manifold is not None:
            return self._point(leaf, node, manifold, sparse=True)
        if not isinstance(leaf, np.ndarray) or not leaf.ndim:
            return self.dense(leaf, node)
        if node is UNTOUCHED or not isinstance(node, Array):
            return Zero(leaf.shape, leaf.dtype if leaf.dtype.kind in "fc" else np.dtype(float))
        sparse = builder(node, leaf)
        return self.dense(leaf, node) if sparse is None else sparse


def _as_leaf(leaf: Shaped, g: Shaped) -> Any:
    """An outer level's value in the precision of the leaf, and complex if the leaf is."""
    want, have = type_of(leaf).dtype, type_of(g).dtype
    if {want.kind, have.kind} - {"f", "c"}:
        return g
    differs = have.itemsize > want.itemsize if have.kind == want.kind else want.kind == "c"
    return op("astype")(g, dtype=want) if differs else g


def _of_kind(leaf: Value, g: Traced) -> Any:
    """An outer level's number as Python's or NumPy's, as the leaf is."""
    if not isinstance(g, Scalar):
        return g
    weak = leaf.weak if isinstance(leaf, Scalar) else not isinstance(leaf, np.generic)
    return g.level.alias(g, weak)


def _exact(leaf: Leaf) -> Any:
    """The exact number that a leaf is, or stands for at an outer level; else None."""
    while isinstance(leaf, Box) and hasattr(leaf, "v"):
        leaf = leaf.v
    return leaf if isinstance(leaf, EXACT) else None


def zero_of(leaf: Any) -> Any:
    """The zero gradient of a leaf; a leaf that is no number is returned as it is."""
    kind = kind_of_number(leaf)
    if kind == "-":
        return leaf
    number = _exact(leaf)
    if number is not None:
        return number * 0
    if isinstance(leaf, np.ndarray | Traced):
        zero = np.zeros(leaf.shape, leaf.dtype if leaf.dtype.kind in "fc" else float)
        return zero if leaf.shape or isinstance(leaf, np.ndarray) else zero.item()
    if isinstance(leaf, np.floating | np.complexfloating):
        return leaf.dtype.type(0)
    if isinstance(leaf, int | float | np.integer):
        return 0.0
    return leaf * 0

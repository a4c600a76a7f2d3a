"""The monoid of cotangents of any value: `combine` adds, `finish` reads, `zero` is the identity.

    finish(combine([a, b])) == finish(a) + finish(b)       finish(zero(like), like) == 0 * like

So the gradient of a sum over data is the combination of the gradients of its chunks, wherever each
was computed.  Cotangents are builders, ndarrays, numbers, containers (added by key; a missing key
is zero), and instances of classes with `merge(terms)` and `finish(like)`, or with `+`.  A sum of
numbers is the rounded true sum, and stores the rounding error.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from numbers import Number
from typing import Any

import numpy as np

from lineara.cotangent.builder import Builder, How, Zero, total
from lineara.cotangent.dense import Dense
from lineara.cotangent.pending_sum import Terms
from lineara.cotangent.true_sum import parts_of, plain, summed
from lineara.errors import StructureError, with_article
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.types import is_label
from lineara.trees.flat import flatten
from lineara.trees.fold import Node, fold
from lineara.trees.kinds import Kind, RecordKind, is_record_class, kind_of, slots_of


def combine(terms: Iterable[Any], *, order: Iterable[Any] | None = None) -> Any:
    """The sum of cotangents of one value, in O(number of terms); None counts as zero.

    Terms are added in the given order, or sorted by the numbers in `order` (of their chunks): then
    the sum does not depend on the order in which they arrive.

    Raises StructureError where there are no terms, and for a container and an array.

    >>> combine([np.ones(2), None, Zero((2,)), np.ones(2)])
    Dense(2, float64)
    >>> finish(combine([{"w": 1.0}, {"w": 2.0, "b": 5.0}]))
    {'w': 3.0, 'b': 5.0}
    """
    ordered = list(terms)
    if order is not None:
        ranked = sorted(zip(order, ordered, strict=True), key=lambda pair: pair[0])
        ordered = [term for _, term in ranked]
    if not ordered:
        raise StructureError("combine: there is nothing to combine; give at least a Zero(shape)")
    live = [term for term in ordered if term is not None]
    return (live or [None])[0] if len(live) < 2 else _combine(live)


def _combine(terms: list[Any]) -> Any:
    first = terms[0]
    if any(isinstance(term, (Builder, np.ndarray)) for term in terms):
        return total([_builder(term) for term in terms])
    if any(isinstance(term, Record) or _kind(term) is not None for term in terms):
        return Record.merge([Record.of(term) for term in terms])
    if hasattr(type(first), "merge"):
        return type(first).merge(terms)
    return first if is_label(first) else summed(terms)  # a label (no number) is returned unchanged


def _builder(x: Shaped) -> Builder:
    return x if isinstance(x, Builder) else total([Dense(part) for part in parts_of(x)])


def finish(builder: Any, like: Shaped | None = None, *, sum: How = "fast") -> Any:
    """The value of a cotangent: an ndarray, a number, or a container of these.

    An array is new, writable and C-contiguous.  `like` determines the dtype, the types of
    containers, and the shape of zeros.  With `sum='exact'` each element is the true sum, rounded
    once (as numbers always are), so that it does not depend on chunks and their order.

    Raises StructureError for a cotangent that does not fit `like`.

    >>> import numpy as np
    >>> from lineara.cotangent import Rows, Zero
    >>> finish(Rows([1, 1], [2.0, 3.0], (3,))), finish(None, like=2.0)
    (array([0., 5., 0.]), 0.0)
    >>> finish(combine([np.full(1, 1e16), np.ones(1), np.full(1, -1e16)]), sum="exact")
    array([1.])
    """
    return fold(
        _pair(builder, like, None),
        _below,
        lambda node: _finish_leaf(node.rest, sum),
        _finished,
        identity=lambda node: _identity(node.value),
    )


def _pair(builder: object, like: object, path: tuple[Any, ...] | None) -> Node:
    if like is None and isinstance(builder, Record):
        like = builder.like
    return Node(like if builder is None else builder, (builder, like), path)


def _below(node: Node) -> tuple[list[Any], list[Node]] | None:
    builder, like = node.rest
    if isinstance(builder, (Builder, np.ndarray)):
        return None
    parts, wanted = fields(builder), fields(like)
    if wanted is None and (parts is None or like is None):
        return _nodes(node, parts, {})
    if wanted is None or (parts is None and builder is not None) or set(parts or ()) - set(wanted):
        raise StructureError(
            f"finish: a cotangent with {_holds(builder)} does not belong to a "
            f"{type(like).__name__} with {_holds(like)}; "
            "give the value that was differentiated as like="
        )
    return _nodes(node, dict.fromkeys(wanted) | (parts or {}), wanted)


def _nodes(
    node: Node, parts: dict[Any, Any] | None, likes: dict[Any, Any]
) -> tuple[list[Any], list[Node]] | None:
    if parts is None:
        return None
    kind = _shape(node.value)
    return list(parts), [
        _pair(value, likes.get(key), (node.path, kind, key)) for key, value in parts.items()
    ]


def _holds(x: Tree) -> str:
    parts = fields(x)
    return "no keys" if parts is None else f"the keys {list(parts)}"


def _kind(x: Tree) -> Kind | None:
    """The kind of a container; None for anything else, also for instances of classes with `+`."""
    cls = type(x)
    kind = kind_of(cls)
    if is_builder_class(cls):
        return None
    if isinstance(kind, RecordKind) and not is_record_class(cls):
        return None if hasattr(cls, "merge") or hasattr(cls, "__add__") else kind
    return kind


def is_builder_class(cls: type) -> bool:
    """Whether instances are builders of a class of the user's: `finish`, and `merge` or `+`."""
    adds = hasattr(cls, "merge") or hasattr(cls, "__add__")
    return adds and hasattr(cls, "finish") and not issubclass(cls, Builder)


def attributes(builder: object) -> list[Any]:
    """The leaves of a builder of the user's; itself where its class keeps them from view."""
    if kind_of(type(builder)) is not None:
        return flatten(builder)[0]
    slots = [getattr(builder, name, None) for name in slots_of(type(builder))]
    return flatten([*getattr(builder, "__dict__", {}).values(), *slots] or builder)[0]


def _shape(x: Tree) -> Any:
    """The kind of a container, or of the value that a Record is a cotangent of; used in paths."""
    if isinstance(x, Record):
        x = x.like if x.like is not None else x.shell
    return kind_of(type(x)) or kind_of(dict)


def fields(x: Leaf) -> dict[Any, Any] | None:
    """The children of a Record or a container, by key; None for anything else.

    >>> fields((1.0, [2.0])), fields(3.0)
    ({0: 1.0, 1: [2.0]}, None)
    """
    if isinstance(x, Record):
        return x.fields
    kind = _kind(x)
    if kind is None:
        return None
    keys = kind.keys(x)
    names = getattr(kind, "fields", ())  # of a NamedTuple
    return dict(zip((*names, *keys[len(names) :]), kind.children(x, keys), strict=True))


def fold_fields(
    root: object, leaf: Callable[[Any], Any], branch: Callable[[Any, dict[Any, Any]], Any]
) -> Any:
    """Fold a tree from its leaves up: `leaf(x)` at leaves, else `branch(node, {key: result})`.

    >>> fold_fields([1, [2, 3]], lambda x: x, lambda node, children: sum(children.values()))
    6
    """

    def expand(node: Node) -> tuple[list[Any], list[Node]] | None:
        children = fields(node.value)
        if children is None:
            return None
        kind = _shape(node.value)
        return list(children), [
            Node(x, None, (node.path, kind, key)) for key, x in children.items()
        ]

    return fold(
        Node(root),
        expand,
        lambda node: leaf(node.value),
        lambda node, keys, values: branch(node.value, dict(zip(keys, values, strict=True))),
        identity=lambda node: _identity(node.value),
    )


def _identity(x: Value) -> Any:
    """A key that detects cycles: an object's id; of a sum, the ids of its containers."""
    return tuple(map(_shell_id, x.addends())) if isinstance(x, Record) else id(x)


def _shell_id(x: "Record") -> int:
    return id(x if x.shell is None else x.shell)


def _finished(node: Node, keys: list[Any], values: list[Any]) -> Any:
    builder, like = node.rest
    if like is None:
        like = builder.shell if isinstance(builder, Record) else builder
    new = dict(zip(keys, values, strict=True))
    return new if like is None else _like(like, new)


def _like(like: Tree, new: dict[Any, Any]) -> Any:
    """A container of the type of `like` with the children `new`."""
    kind: Any = kind_of(type(like))
    ordered = {key: new[key] for key in fields(like) or () if key in new} | new
    return kind.make(kind.aux(like), list(ordered), list(ordered.values()))


def _finish_leaf(pair: tuple[Any, Any], how: How) -> Any:
    builder, like = pair
    if builder is None:
        return _zero_value(like)
    if isinstance(builder, np.ndarray):
        builder = Dense(builder)
    if isinstance(builder, Builder):
        dense = builder.finish(like, how)
        return dense.item() if isinstance(like, (int, float, complex)) else dense
    return builder.finish(like) if hasattr(builder, "finish") else plain(builder)


def _zero_value(like: Value | None) -> Any:
    if isinstance(like, np.ndarray):
        return np.zeros(like.shape, like.dtype)
    number: Any = type(like)
    return number(0) if isinstance(like, Number) else like


def zero(like: Any) -> Any:
    """The identity of `combine` for cotangents of `like`, in O(1).

    >>> zero(np.ones((3, 2))), zero({"w": np.ones(3)}), zero(2.0)
    (Zero(3 x 2, float64), Record(), 0.0)
    """
    if isinstance(like, (np.ndarray, Builder)):
        return Zero(like.shape, like.dtype)
    if hasattr(type(like), "zero"):
        return type(like).zero(like)
    if isinstance(like, Record) or _kind(like) is not None:
        return Record({}, like.like if isinstance(like, Record) else like)
    return _zero_value(like)


class Record(Terms, Mapping[Any, Any]):
    """The cotangent of a container: a mapping of its children's cotangents; a missing one is zero.

    `like` is the container that it is a cotangent of, if known.  `shell` is a container whose type
    `finish` returns if there is no `like`; without both, `finish` returns a dict.

    >>> g = Record({"w": Zero((2,)), "b": 1.0}) + Record({"b": 2.0})
    >>> g["b"], finish(2 * g, {"w": np.ones(2), "b": 0.0, "c": 0.0})
    (3.0, {'w': array([0., 0.]), 'b': 6.0, 'c': 0.0})
    """

    __slots__ = ("_fields", "_terms", "like", "shell")
    shell: object
    like: dict[Any, Any] | tuple[Any, ...] | None
    __array_ufunc__ = None
    __hash__ = None  # pyright: ignore[reportAssignmentType]  # equal by value

    def __init__(
        self,
        fields: Mapping[Any, Any],
        like: dict[Any, Any] | tuple[Any, ...] | None = None,
        shell: object = None,
    ) -> None:
        self._fields, self.like, self.shell = dict(fields), like, shell
        self._terms: tuple[Record, ...] = ()

    @classmethod
    def of(cls, x: Leaf) -> "Record":
        """A container converted to a Record; a Record unchanged."""
        if isinstance(x, Record):
            return x
        parts = fields(x)
        if parts is None:
            raise StructureError(
                f"combine: {with_article(type(x).__name__)} and a container do not add; "
                "all terms must be cotangents of the same value"
            )
        return cls(parts, shell=x)

    @classmethod
    def merge(cls, terms: "Sequence[Record]") -> "Record":
        """The sum of records in O(number of terms); nested fields are merged when they are read."""
        like = next((t.like for t in terms if t.like is not None), None)
        lazy = cls({}, like, next((t.shell for t in terms if t.shell is not None), None))
        lazy._terms = tuple(terms)
        return lazy

    @property
    def fields(self) -> dict[Any, Any]:
        """The cotangents by key, in order of their first contribution."""
        if self._terms:
            groups: dict[Any, list[Any]] = {}
            for leaf in self.addends():
                for key, value in leaf._fields.items():
                    groups.setdefault(key, []).append(value)
            self._fields = {key: combine(values) for key, values in groups.items()}
            self._terms = ()
        return self._fields

    def map(self, f: Callable[..., Any]) -> "Record":
        """The Record with f applied to every leaf."""
        return fold_fields(self, f, _refilled)

    def leaves(self) -> list[Any]:
        """All leaves: the cotangents that are no containers."""
        leaves: list[Any] = []
        fold_fields(self, leaves.append, lambda node, new: None)
        return leaves

    def coalesce(self, sum: How = "fast") -> "Record":
        """An equal Record with all sums computed."""
        return self.map(lambda v: v.coalesce(sum) if isinstance(v, Builder) else v)

    def norm(self) -> float:
        """The Euclidean norm of all leaves as one vector."""
        return sqrt(sum(_norm(leaf) ** 2 for leaf in self.leaves()))

    @property
    def nbytes(self) -> int:
        """The number of bytes in the arrays of all leaves."""
        return sum(getattr(leaf, "nbytes", 0) for leaf in self.leaves())

    def __add__(self, other: Tree) -> "Record":
        return combine([self, other])

    def __radd__(self, other: Value) -> "Record":
        starts_sum = type(other) is int and other == 0
        return self if starts_sum else combine([other, self])

    def __neg__(self) -> "Record":
        return self.map(lambda v: -v if not is_label(v) else v)

    def __sub__(self, other: "Record") -> "Record":
        return self + -Record.of(other)

    def __mul__(self, c: Value) -> "Record":
        return self.map(lambda v: v * c if not is_label(v) else v)

    __rmul__ = __mul__

    def __truediv__(self, c: Value) -> "Record":
        return self.map(lambda v: v / c if not is_label(v) else v)

    def __getitem__(self, key: Any) -> Any:
        return self.fields[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, (self.fields, self.like, self.shell)

    def __repr__(self) -> str:
        inside = ", ".join(f"{key!r}: {value!r}" for key, value in self.fields.items())
        return f"Record({f'{{{inside}}}' if inside else ''})"


def _refilled(node: Record, new: dict[Any, Any]) -> Any:
    return Record(new, node.like, node.shell) if isinstance(node, Record) else _like(node, new)


def _norm(x: Any) -> float:
    if isinstance(x, Builder):
        return x.norm()
    return 0.0 if is_label(x) else float(np.linalg.norm(np.ravel(x)))

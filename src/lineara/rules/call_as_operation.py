"""A call taken as one operation: its containers as leaves, its linear map as one tape entry.

A *whole* runs on the values one level below and says its linear map, between lists of vectors:
one vector for each leaf of the arguments that is traced, one for each leaf of the result.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent.batched import Batched
from lineara.cotangent.builder import Builder
from lineara.cotangent.dead_lanes import Masked, unmasked
from lineara.cotangent.monoid import attributes, is_builder_class
from lineara.errors import MutationError, RuleError, TypeMismatchError
from lineara.facts.hints import Leaf, Namespace, Shaped, Tree, Value
from lineara.facts.pickled import Remade
from lineara.facts.primitive import Box, HigherOrder, Joint, Own, innermost, op, real_part, total
from lineara.facts.types import ArrayType, type_of
from lineara.python.captured_values import captured
from lineara.python.user_code import lifted, method, overlay
from lineara.tape.leaves import kind_of_number
from lineara.tape.level import Entry, Level
from lineara.tape.levels import innermost_level, outside
from lineara.tape.linear_level import owned
from lineara.tape.node import Traced, plain
from lineara.tape.written_arrays import Written
from lineara.trees import Structure, flatten, is_container, unflatten

# --- the arguments of a call --------------------------------------------------------------------


class Form(NamedTuple):
    """How leaves make up the arguments of a call; None stands for an argument that is one leaf."""

    structures: tuple[Structure | None, ...]

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments with these leaves."""
        parts = self.split(leaves)
        return [
            p[0] if s is None else unflatten(s, p)
            for s, p in zip(self.structures, parts, strict=True)
        ]

    def split(self, leaves: Sequence[Any]) -> list[list[Any]]:
        """The leaves of each argument."""
        parts, start = [], 0
        for s in self.structures:
            stop = start + (1 if s is None else s.leaf_count)
            parts.append(list(leaves[start:stop]))
            start = stop
        return parts


def opened(args: Sequence[Any]) -> tuple[list[Any], Form]:
    """The leaves of arguments; a container in which nothing moves is passed as it is."""
    leaves: list[Any] = []
    structures: list[Structure | None] = []
    for a in args:
        own_leaves, structure = [a], None
        if is_container(a):
            a = overlay().original(a)
            own_leaves, structure = flatten(a)
        if structure is not None and not any(
            isinstance(v, np.ndarray) or moves(v) for v in own_leaves
        ):
            own_leaves, structure = [a], None
        leaves += [settled(v) for v in own_leaves]
        structures.append(structure)
    return leaves, Form(tuple(structures))


def settled(v: Leaf) -> Any:
    """A traced value as the node (or the plain array) for its present content."""
    return v.now() if isinstance(v, Traced) else v


def moves(v: Any) -> bool:
    """Whether a leaf has tangents: a floating or complex number or array."""
    return not is_container(v) and kind_of_number(v) in "fc"


def still(v: Shaped) -> Any:
    """The tangent of a leaf that does not move: a zero like it; None where it is no number."""
    if is_container(v) or kind_of_number(v) not in "fci":
        return None
    t = (
        type_of(v)
        if hasattr(v, "dtype")
        else ArrayType((), np.dtype(complex if isinstance(v, complex) else float))
    )
    dtype = t.dtype if t.dtype.kind in "fc" else np.dtype(float)
    return np.zeros(t.shape, dtype) if t.shape else 0j if dtype.kind == "c" else 0.0


def fitted(bar: Any, v: Shaped, who: str, by: str) -> Any:
    """A cotangent of the leaf v that `by` gave: an array, a builder, or None for zero.

    Raises RuleError for another shape than that of v, which belongs to the argument `who`.
    """
    bar = settled(bar)
    if type(bar) is Own:
        return bar
    if bar is None or is_zero(bar) or not moves(v):
        return None
    if is_user_builder(bar):
        return as_contribution(bar, v, who, by)
    if type_of(bar).shape != type_of(v).shape:
        raise RuleError(
            f"{who} is {type_of(v)}, but its cotangent from {by} is {type_of(bar)}; they must have "
            "the same shape"
        )
    if type_of(v).dtype.kind == "c":
        return bar
    return bar.map(np.real) if isinstance(bar, Builder) else real_part(bar)


def is_user_builder(bar: object) -> bool:
    """Whether a cotangent is a builder of a class of the user's."""
    return hasattr(type(bar), "finish") and not isinstance(bar, Builder)


def is_summed_builder(bar: object) -> bool:
    """Whether it is one whose class has a sum."""
    return is_builder_class(type(bar))


def split_as(bar: Any, structure: Structure | None) -> tuple[list[Any], Structure | None]:
    """The cotangents of leaves, and their structure, of what a rule gave for an argument."""
    if structure is None:
        return [bar], None
    leaves, shape = flatten(bar)
    return (leaves, shape) if shape == structure else flatten(bar, is_summed_builder)


def as_contribution(bar: Any, v: Shaped, who: str, by: str) -> Any:
    """A builder of the user's, kept as it is; an array where it holds traced values.

    Raises RuleError where its class has no sum, and, when it is finished, for another shape than
    that of v.
    """
    if not is_builder_class(type(bar)):
        raise RuleError(
            f"{who} has a cotangent from {by} of the class {type(bar).__name__}, which has "
            "finish() but no sum; give the class merge(terms) or +, or return what finish() gives"
        )

    def read(builder: Any) -> Any:
        value = finished(builder, v)
        if type_of(value).shape != type_of(v).shape:
            raise RuleError(
                f"{who} is {type_of(v)}, but its cotangent from {by}, a {type(bar).__name__}, is "
                f"finished to {type_of(value)}; they must have the same shape"
            )
        value = value if type_of(v).dtype.kind == "c" else real_part(value)
        return value if isinstance(value, Box) else np.array(value, type_of(v).dtype)

    own = Own(bar, read)
    traced = isinstance(v, Box) or any(isinstance(part, Box) for part in attributes(bar))
    return own if type_of(v).shape and not traced else own.finish()


def finished(bar: Any, like: Any = None) -> Any:
    """What a builder stands for; of a class of the user's by its own `finish`."""
    if not hasattr(type(bar), "finish"):
        return bar
    if type(bar) is Own or isinstance(bar, Builder):
        return bar.finish()
    f = type(bar).finish
    if any(isinstance(part, Box) for part in [like, *attributes(bar)]):
        return copied(f)(bar, like)
    with outside():
        return f(bar, like)


def is_zero(d: Shaped) -> bool:
    """Whether a vector is the number zero, which stands for a zero of any shape."""
    return isinstance(d, int | float) and d == 0


# --- running the user's code --------------------------------------------------------------------


def any_traced(tree: Tree) -> bool:
    """Whether a leaf of a container is traced."""
    return any(isinstance(v, Traced) for v in flatten(tree)[0])


def as_written(f: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """`f` as it is best run on these arguments: with traced ones its copy that sees our NumPy.

    With plain ones it is run as it stands, outside of all traces, so that it may call any code.
    """
    if innermost_level() is None:
        return f
    if any_traced(list(args)) or any_traced(captured(f)):
        return copied(f)

    @functools.wraps(f, updated=())
    def run(*args: Any, **options: Any) -> Any:
        with outside():
            return f(*args, **options)

    return run


def copied(f: Callable[..., Any]) -> Callable[..., Any]:
    """The copy of `f` that sees our NumPy, given containers whose methods see it too."""
    g = method(f)

    @functools.wraps(f, updated=())
    def run(*args: Any, **options: Any) -> Any:
        return g(*lifted(args), **options)

    return run


def name_of(f: Callable[..., Any]) -> str:
    """How a message calls a function."""
    return getattr(f, "__name__", None) or type(f).__name__


@contextmanager
def unwritten(name: str, leaves: Sequence[Any]) -> Iterator[None]:
    """The block runs code that may not write into its arguments."""
    before = [isinstance(v, Written) for v in leaves]
    try:
        yield
    except ValueError as e:
        if "read-only" not in str(e):
            raise
        raise wrote(name) from None
    if before != [isinstance(v, Written) for v in leaves]:
        raise wrote(name)


def wrote(name: str) -> MutationError:
    """The error for a function with a rule that writes into its arguments."""
    return MutationError(
        f"{name} writes into an array that it was given, which its rule still needs; "
        "let it write into a copy"
    )


def value_below(level: Level, a: Value) -> Any:
    """A leaf as the code below sees it: without this level, and arrays not to be written."""
    if isinstance(a, Traced):
        v = settled(a.v) if a.level is level else a
    else:
        v = level.guard(a) if isinstance(a, np.ndarray) else a
    if isinstance(v, np.ndarray):
        v = v.view()
        v.flags.writeable = False
    return v


# --- results ------------------------------------------------------------------------------------


NOTHING = np.zeros(0)  # the value of a node that stands for several


class Several:
    """The tangent or cotangent of several results at once; a part that is None is zero."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts: list[Any] = list(parts)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        """All numbers in a row, for who looks for a NaN."""
        parts = [plain(unmasked(p)) for p in self.parts if p is not None]
        return np.concatenate([np.zeros(0), *(np.ravel(p) for p in parts)])

    def __add__(self, other: "Several") -> "Several":
        return Several([total(pair) for pair in zip(self.parts, other.parts, strict=True)])


def record(level: Level, y: Tree, parents: Sequence[Any], joint: Joint, name: str) -> Any:
    """The result y at a level: its leaves are nodes; `joint` maps the parents to them."""
    leaves, structure = flatten(y)
    leaves = [_fresh(level, v, name) for v in leaves]
    return unflatten(structure, record_leaves(level, leaves, parents, joint, name))


def record_leaves(
    level: Level, leaves: Sequence[Any], parents: Sequence[Any], joint: Joint, name: str
) -> list[Any]:
    """Nodes for values (or types); several have one entry together, of which each is a part."""
    nodes = list(leaves)
    places = [i for i, v in enumerate(nodes) if isinstance(v, ArrayType) or moves(v)]
    work = sum(type_of(v).size for v in [*(nodes[i] for i in places), *parents])
    if len(places) == 1:
        only = places[0]
        single = Joint(
            lambda tangents: joint.forward(tangents)[only],
            lambda y_bar: joint.back(_only(len(nodes), only, y_bar)),
        )
        nodes[only] = level.record(nodes[only], parents, single, name, work)
    elif places:
        whole = level.array(NOTHING)
        both = Joint(
            lambda tangents: Several(joint.forward(tangents)), lambda w: joint.back(w.parts)
        )
        level.tape.append(Entry(whole, tuple(parents), both, name, work))
        for i in places:
            nodes[i] = level.record(nodes[i], (whole,), _part(len(nodes), i), name, 0)
    return nodes


def _fresh(level: Level, v: Shaped, name: str) -> Any:
    v = settled(v)
    if isinstance(v, np.ndarray) and v.dtype.kind == "O":
        raise TypeMismatchError(
            f"{name} returned an object array, which has no derivative; return numbers, arrays of "
            "them, or containers"
        )
    if isinstance(v, np.ndarray) and not v.flags.writeable:
        return v.copy()
    if owned(level, v) is not None:
        raise encloses(name)
    return v


def encloses(name: str) -> RuleError:
    """The error for a function with a rule that closes over a traced value."""
    return RuleError(
        f"{name} uses a traced value that is not among its arguments; "
        "pass it as an argument, so that its derivative is known"
    )


def _only(count: int, at: int, y_bar: Any) -> list[Any]:
    bars = [None] * count
    bars[at] = y_bar
    return bars


def _part(count: int, at: int) -> Joint:
    return Joint(
        lambda tangents: None if tangents[0] is None else tangents[0].parts[at],
        lambda y_bar: [Several(_only(count, at, y_bar))],
    )


# --- what flows through code that takes plain or traced values only -----------------------------


def spread(
    f: Callable[[list[Any]], list[Any]],
    vectors: Sequence[Any],
    batch: Callable[[list[Any]], list[Any] | None] | None = None,
    masked: Callable[[list[Any]], list[Any]] | None = None,
) -> list[Any]:
    """`f`, linear, of vectors that may have dead lanes or a batch axis.

    That is `batch` of them, if it is not None; else a batch goes one by one.  Of vectors with dead
    lanes it is `masked`, if there is one; else dead lanes read as zero.
    """
    boxes = [v for v in vectors if isinstance(v, Batched | Masked)]
    box = innermost(tuple(boxes))
    if box is None:
        return f(list(vectors))

    def dense(vs: list[Any]) -> list[Any]:
        return [finished(v) for v in f(vs)]

    vectors_out = None if batch is None else batch(list(vectors))
    if vectors_out is not None:
        return vectors_out
    mine = [type(v) is type(box) and v.depth == box.depth for v in vectors]
    if isinstance(box, Masked):
        if masked is not None:
            return masked(list(vectors))
        vectors_out = spread(dense, [v.v if m else v for v, m in zip(vectors, mine, strict=True)])
        return [None if v is None else Masked(v, None, box.depth, box.strong) for v in vectors_out]
    assert isinstance(box, Batched), f"{box} is neither batched nor masked"
    rows = [
        spread(
            dense,
            [_row(v.v, i) if m else v for v, m in zip(vectors, mine, strict=True)],
            None,
            masked,
        )
        for i in range(box.v.shape[0])
    ]
    return [_stacked(column, box.depth) for column in zip(*rows, strict=True)]


def _row(v: np.ndarray, i: int) -> Any:
    row = v[i]
    return row.item() if isinstance(row, np.generic) else row


def _stacked(column: Sequence[Any], depth: int) -> Any:
    like = next((v for v in column if v is not None), None)
    if like is None:
        return None
    t = type_of(like)
    filled = [np.zeros(t.shape, t.dtype) if v is None else v for v in column]
    return Batched(op("stack")(*filled), depth)


# --- the primitive ------------------------------------------------------------------------------


class Whole(HigherOrder):
    """A call taken as one operation; the parameter `rule` says what it does.

    `rule.run(args, options)` is the value, `rule.trace(level, values, active, form, options)` the
    value and its linear map.
    """

    def evaluate(self, xp: Namespace, /, *leaves: Any, **params: Any) -> Any:
        """The value."""
        return params["rule"].run(params["form"].arguments(leaves), params["options"])

    def trace(self, level: Level, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The value below, and one entry for the linear map."""
        rule, form, options = params["rule"], params["form"], params["options"]
        active = [i for i, a in enumerate(args) if level.mine(a)]
        values = [value_below(level, a) for a in args]
        if not active:
            return self(*values, **params)
        name = f"{self.name} of {name_of(rule)}"
        with unwritten(name, values):
            y, joint = rule.trace(level, values, active, form, options)
        return record(level, y, [args[i] for i in active], joint, name)

    def trace_linear(self, level: Level, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The function itself, for its argument has no value at which it could be linearized."""
        return params["rule"].trace_linear(level, args, params["form"], params["options"])

    def trace_staged(self, level: Level, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What the rule makes of it in a program."""
        return params["rule"].trace_staged(level, args, params["form"], params["options"])


class Rule(Remade):
    """A function that is called through a primitive, which `__call__` applies."""

    __lineara_leaf__ = True
    __name__: str

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeMismatchError(f"{type(self).__name__}: takes a function, not {f!r}")
        functools.update_wrapper(self, f, updated=())
        self.f = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, at the level of the arguments."""
        raise NotImplementedError

    def __get__(self, obj: Any, owner: object = None) -> Any:
        return self if obj is None else MethodType(self, obj)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({name_of(self.f)})"

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The value of the function."""
        return as_written(self.f, args)(*args, **options)

    def trace_linear(
        self, level: Level, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """The function itself at a level of types."""
        return copied(self.f)(*form.arguments(leaves), **options)

    def trace_staged(
        self, level: Level, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """The function itself; its text is differentiated as any other."""
        return Rule.trace_linear(self, level, leaves, form, options)

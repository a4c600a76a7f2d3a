"""What an op node computes: a primitive of the library, under its own name.

Nothing about a derivative stands here or anywhere in the diagrams: `pullbacks.py` reads the
declared facts.  A parameter may be a wire, as the position of an index: it comes in after the
arguments, and a mark stands in its place.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara import ops as _ops  # declares the primitives
from lineara.diagrams.types import Base, R, Type, Types, array_of, of_array, show_all
from lineara.errors import DiagramError, LinearaError
from lineara.facts.hints import Value
from lineara.facts.primitive import Elementwise, Primitive, registry
from lineara.facts.types import ArrayType
from lineara.text.language import did_you_mean

del _ops

Params = tuple[tuple[str, Any], ...]  # the parameters of an op, by name
MARK = "$"  # stands for a wire among parameters: $0 is the first after the arguments


def marked(held: tuple[Any, ...], kind: type) -> tuple[Any, list[Any]]:
    """Parameters with marks for what in them is of a kind, and that, in order.

    >>> marked((("at", (2.0, slice(3.0, None))),), float)
    ((('at', ('$0', slice('$1', None, None))),), [2.0, 3.0])
    """
    taken: list[Any] = []

    def mark(p: Value) -> Any:
        if not isinstance(p, kind):
            return p
        taken.append(p)
        return f"{MARK}{len(taken) - 1}"

    return _mapped(held, mark), taken


def unmarked(held: object, values: Sequence[Any]) -> Any:
    """Parameters with values for their marks.

    >>> unmarked((("at", ("$0", slice("$1", None))),), [2, 3])
    (('at', (2, slice(3, None, None))),)
    """
    return _mapped(held, lambda p: values[int(p[1:])] if _is_mark(p) else p)


def marks(held: object) -> int:
    """How many wires the marks among parameters stand for."""
    taken: list[Any] = []
    _mapped(held, lambda p: taken.append(p) if _is_mark(p) else p)
    return len(taken)


def _is_mark(p: Value) -> bool:
    return isinstance(p, str) and p.startswith(MARK)


def _mapped(held: object, change: Callable[..., Any]) -> Any:
    if isinstance(held, tuple):
        return tuple([_mapped(q, change) for q in held])
    if isinstance(held, slice):
        return slice(*[_mapped(q, change) for q in (held.start, held.stop, held.step)])
    return change(held)


def primitive(name: str) -> Primitive:
    """The primitive of that name.

    >>> primitive("sine")
    Traceback (most recent call last):
    ...
    lineara.errors.DiagramError: there is no operation sine; did you mean sin?
    """
    declared = registry.primitives.get(name)
    if declared is None:
        hint = did_you_mean(name, registry.primitives)
        raise DiagramError(f"there is no operation {name}{hint}")
    return declared


def gives(name: str, takes: Sequence[Type], params: Params = ()) -> Types:
    """The types of what an operation gives.

    >>> from lineara.diagrams.types import R
    >>> gives("sin", (R,)), gives("less", (R, R))
    ((Base(name='R'),), (Base(name='B'),))
    """
    p = primitive(name)
    if isinstance(p, Elementwise) and not params and all([t == R for t in takes]):
        if len(takes) != p.arity:
            raise DiagramError(f"{name} takes {p.arity} numbers, but {len(takes)} wires come in")
        return (R,)
    return _given(p, tuple(takes), Held(params))


class Held:
    """Parameters as a key of a cache: by their text, since arrays have no hash."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.text: str = repr(params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@functools.cache
def _given(p: Primitive, takes: Types, held: Held) -> Types:
    wrong = [t for t in takes if not isinstance(t, Base) or t.name == "E"]
    if wrong:
        raise DiagramError(f"{p.name} takes numbers and arrays, not {show_all(wrong)}")
    types = [array_of(t) for t in takes if isinstance(t, Base)]
    n = len(types) - marks(held.params)
    places = [0 if t.shape == () else np.zeros(t.shape, t.dtype) for t in types[n:]]
    try:
        types_given = p.result(*types[:n], **dict(unmarked(held.params, places)))
    except (LinearaError, TypeError, ValueError) as error:
        what = error.message if isinstance(error, LinearaError) else str(error)
        raise DiagramError(f"{p.name} does not take {show_all(takes)}: {what}") from None
    parts = types_given if type(types_given) is tuple else (types_given,)
    return tuple([of_array(t) for t in parts if isinstance(t, ArrayType)])


def evaluate(name: str, args: Sequence[Any], params: Params = ()) -> tuple[Any, ...]:
    """The values that an operation gives.

    >>> evaluate("multiply", (2.0, 3.0))
    (6.0,)
    """
    p = primitive(name)
    if not params and isinstance(p, Elementwise):
        y = p.evaluate(np, *args)
    else:
        n = len(args) - marks(params)
        y = p(*args[:n], **dict(unmarked(params, args[n:])))
    if type(y) is np.float64:
        return (float(y),)
    return y if type(y) is tuple else (y,)

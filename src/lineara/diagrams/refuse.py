"""What is no diagram is refused in words, by every function that takes one.

The annotations of a function say what it takes: a diagram, a foliation, a derivation, a text, or a
sequence.

>>> @refusing
... def length(text: str) -> int:
...     return len(text)
>>> length(3.0)
Traceback (most recent call last):
...
lineara.errors.DiagramError: length: text must be a str, and f64[] was given
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, get_origin

from lineara.errors import DiagramError
from lineara.facts.types import show_type

P = ParamSpec("P")
T = TypeVar("T")

WORDS = {
    "Net": "a diagram, which lineara.diagram draws of a function and diagrams.parse reads",
    "Foliation": "a foliation, which diagrams.foliated gives",
    "Derivation": "a derivation, which diagrams.Derivation begins",
    "str": "a str",
    "Sequence": "a list or a tuple",
}
PUBLIC = {"read": "rules"}  # functions that have another name in `lineara.diagrams`


def refusing(f: Callable[P, T]) -> Callable[P, T]:
    """The function, or the method `__init__`, refusing arguments of other classes than it states.

    Raises DiagramError, called with one.
    """
    signature = inspect.signature(f)
    kinds = {name: _kind(p.annotation) for name, p in signature.parameters.items()}
    stated = {name: kind for name, kind in kinds.items() if kind is not None}
    places = [*signature.parameters]
    rest = next((n for n, p in signature.parameters.items() if p.kind is p.VAR_POSITIONAL), "")
    called = PUBLIC.get(f.__name__, f.__qualname__.removesuffix(".__init__"))

    @functools.wraps(f)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for i, value in enumerate(args):
            name = places[i] if i < len(places) and places[i] != rest else rest
            if name in stated:
                _check(called, name, value, stated[name])
        for name, value in kwargs.items():
            if name in stated:
                _check(called, name, value, stated[name])
        return f(*args, **kwargs)

    return checked


def _kind(annotation: Any) -> type | None:
    """The class that an annotation asks for, if it is one of those with words."""
    kind = get_origin(annotation) or annotation
    return kind if isinstance(kind, type) and kind.__name__ in WORDS else None


def _check(called: str, name: str, value: object, kind: type) -> None:
    if kind is Sequence:
        fits = isinstance(value, Iterable) and not isinstance(value, str)
    else:
        fits = isinstance(value, kind)
    if fits:
        return
    what = "None" if value is None else show_type(value)
    raise DiagramError(f"{called}: {name} must be {WORDS[kind.__name__]}, and {what} was given")

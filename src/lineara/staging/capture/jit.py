"""`jit`: a function that is captured once for each form of its arguments, and run as a program.

What the program depends on is looked at in each call: the containers and types of the arguments,
and what of them is no number; and all that the function reaches, its globals, cells, defaults and
attributes with what these hold.  Where any of it is not what it was the function is captured anew.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import (
    LinearaError,
    NoRuleError,
    ShapeError,
    StagingError,
    StructureError,
    TypeMismatchError,
)
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import show_type, type_of
from lineara.python.user_code import reading, seen
from lineara.staging.capture import STRUCTURED
from lineara.staging.capture.containers import (
    GENERATORS,
    LIMIT,
    Remembers,
    Snapshot,
    refuse_changes,
    refuse_what_went_on,
)
from lineara.staging.capture.side_effects import line_of_change
from lineara.staging.control_flow import plain_key
from lineara.staging.staged_level import weakness
from lineara.staging.tracing import VARIABLE, Staged, Whole, traced
from lineara.tape.node import Array, Traced
from lineara.tape.shared_memory import shares, written_in_one_place
from lineara.tape.strides import narrow, strides_of
from lineara.trees import flatten, unflatten


class Captured(NamedTuple):
    """A program, and what it was made from."""

    staged: Staged
    reached: Snapshot  # what the function reaches, as it was


class Jitted(Remembers):
    """A function that runs as a program.

    programs   by the form of the arguments, the programs that were made
    captures   how often the function was captured
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self.f = f
        self.programs: dict[Any, Captured] = {}
        self.constants: dict[Any, set[int]] = {}  # by structure, whole numbers that Python needs
        self.captures = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value."""
        if reading() is not None:
            return seen(self.f)(*args, **kwargs)
        handled = [str(v) for v in np.geterr().values() if v not in ("ignore", "warn")]
        if handled:
            raise StagingError(
                f"jit: under np.errstate({handled[0]!r}) {self.f.__name__} would stop where "
                "NumPy meets an error, and a program goes on; call the function itself there, or "
                "test what it gives with np.isfinite"
            )
        leaves, structure = flatten((args, kwargs))
        staged, reached = self._program(leaves, structure, args, kwargs)
        if any([isinstance(v, Traced) for v in leaves]):
            return _as_operation(staged, args, kwargs)
        for i in staged.writes:
            if any([shares(leaves[i], x) for x, _ in reached.kept.values() if _is_array(x)]):
                raise written_in_one_place(leaves[i])
        return staged(*args, **kwargs)

    def program(self, *args: Any, **kwargs: Any) -> Staged:
        """The program for arguments of this form."""
        return self._program(*flatten((args, kwargs)), args, kwargs).staged

    def _program(
        self, leaves: list[Any], structure: Any, args: tuple, kwargs: dict[str, Any]
    ) -> Captured:
        constants = self.constants.setdefault(structure, set())
        places = enumerate(leaves)
        forms = [_form(v, _is_whole(v) and i not in constants) for i, v in places]
        key = structure, tuple(forms), tuple(np.geterr().values())
        known = self.programs.get(key)
        if known is None or known.reached.is_stale():
            others = [v for v in leaves if not isinstance(v, Traced) and not _is_numeric(v)]
            reached, drawn = Snapshot(self.f, *others), Snapshot(*GENERATORS)
            if len(reached.seen) >= LIMIT:
                raise StagingError(
                    f"jit: {self.f.__name__} reaches more than {LIMIT} objects, and whether they "
                    "have changed is looked at in each call; pass what it needs as arguments"
                )
            whole = [i for i, v in enumerate(leaves) if _is_whole(v) and i not in constants]
            given = [Whole(v) if i in whole else v for i, v in enumerate(leaves)]

            def captured() -> Staged:
                args_given, kwargs_given = unflatten(structure, given)
                return traced(self.f, args_given, kwargs_given, STRUCTURED, True)

            error: LinearaError | None = None
            staged: Any = None
            try:
                staged = captured()
            except (StagingError, StructureError, ShapeError, NoRuleError) as e:
                error = e
            finally:
                changed = reached.undo() + drawn.undo()
            if changed and error is None:
                line = line_of_change(captured, (reached, drawn))
                refuse_changes(changed, "function", "is captured once", line)
            if error is not None:
                if not whole or (isinstance(error, StagingError) and error.final):
                    raise error
                refuse_what_went_on(changed, "function", "is captured once")
                constants |= {*whole}  # Python needs them
                return self._program(leaves, structure, args, kwargs)
            known = self.programs[key] = Captured(staged, reached)
            self.captures += 1
        return known

    def __get__(self, owner: object, cls: type | None = None) -> Any:
        """The method of an object."""
        return self if owner is None else functools.partial(self, owner)

    def __repr__(self) -> str:
        return f"<lineara.jit of {self.f!r}>"


def _form(v: Leaf, is_input: bool) -> Any:
    """What a program depends on of an argument: the type of an input, and else the value."""
    if is_input:
        return int
    if isinstance(v, Traced) or _is_numeric(v):
        t = type_of(v)
        if t.shape or t.dtype.kind in "fc":
            return t, weakness(v), narrow(t.shape, strides_of(v))
    return plain_key(v)


def _is_array(v: Leaf) -> bool:
    return isinstance(v, np.ndarray | Array)


def _is_numeric(v: Leaf) -> bool:
    """Whether a leaf has a type of the program: a number or an array of numbers."""
    if isinstance(v, np.ndarray | np.generic):
        return v.dtype.kind in "fciub"
    return isinstance(v, float | complex)


def _is_whole(v: Leaf) -> bool:
    """Whether a leaf may be an input as a whole number, which has 63 bits beside the sign."""
    return type(v) is int and v.bit_length() < 64


def _as_operation(staged: Staged, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The program as one operation of a differentiation."""
    if staged.writes:
        raise StagingError(
            f"jit: {staged.name} writes into its arguments, which a derivative of it would "
            "not do; differentiate the function itself, or let it return a new array"
        )
    leaves, _ = flatten((args, kwargs))
    types, constants = staged.signature.types, staged.results.constants
    values = [v for v, t in zip(leaves, types, strict=True) if t is not None]
    operands = (*values, *staged.beside)
    given = iter(op("defined")(*operands, definition=staged.definition, name=staged.name))
    parts = [next(given) if c is VARIABLE else c for c in constants]
    return unflatten(staged.results.structure, parts)


def jit(f: Callable[..., Any]) -> Jitted:
    """f, captured as a program when it is first called with arguments of some form.

    Branches and loops that depend on the arguments are those of the program.  Numbers and arrays
    are inputs of it; whole numbers of Python's are constants where Python needs them, as the length
    of a list, and so is all else.  For another constant the function is captured again.
    TypeMismatchError where f is no function, StagingError where it cannot be captured.

    >>> @jit
    ... def root(a):
    ...     x = a
    ...     while abs(x * x - a) > 1e-12 * a:
    ...         x = 0.5 * (x + a / x)
    ...     return x
    >>> root(2.0)
    1.414213562373095
    >>> root(9.0), root.captures
    (3.0, 1)
    """
    if not callable(f):
        raise TypeMismatchError(f"jit: takes a function, but was given {show_type(f)}")
    return Jitted(f)


__all__ = ["Jitted", "jit"]

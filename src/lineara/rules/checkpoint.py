"""Checkpointing: a call keeps its inputs only, and is run again when its derivative is asked for.

It is the free choice of unzip between storing a non-linear value and computing it again
[YOLO, §5], made for a whole function.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from lineara.errors import MutationError, TypeMismatchError
from lineara.facts.hints import Shaped
from lineara.facts.pickled import transformation
from lineara.facts.primitive import Box, Joint, op
from lineara.facts.types import show_type, type_of
from lineara.python.captured_values import captured, with_captured
from lineara.rules.call_as_operation import (
    Form,
    Rule,
    Whole,
    any_traced,
    as_written,
    copied,
    moves,
    name_of,
    opened,
    settled,
)
from lineara.tape.level import Level
from lineara.tape.levels import open_level, outside
from lineara.tape.linear_level import free_tape, owned, tape_map
from lineara.tape.node import plain, staged
from lineara.trees import flatten

if TYPE_CHECKING:
    from lineara.policies import Policy

Whole("checkpoint")


class Call(Rule):
    """A call's function, of positional arguments only.

    `names` are those of the arguments that were given by name, `cells` those of what the function
    captured.
    """

    names: Sequence[str]
    count: int
    cells: Sequence[str]

    def __init__(
        self, f: Callable[..., Any], count: int, names: Sequence[str], cells: Sequence[str]
    ) -> None:
        super().__init__(f)
        self.count, self.names, self.cells = count, names, cells

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The value of the function."""
        f, given, named = self._given(args)
        return as_written(f, [*given, *named.values()])(*given, **named)

    def _given(self, args: Sequence[Any]) -> tuple[Any, Sequence[Any], dict[str, Any]]:
        stop = self.count + len(self.names)
        cells = dict(zip(self.cells, args[stop:], strict=True))
        f = with_captured(self.f, cells) if cells else self.f
        return f, args[: self.count], dict(zip(self.names, args[self.count : stop], strict=True))

    def traced(self, args: Sequence[Any]) -> Any:
        """The value of the function's copy that sees our NumPy."""
        f, given, named = self._given(args)
        return copied(f)(*given, **named)

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[str, Any],
    ) -> tuple[Any, Joint]:
        """The value; the linear map is that of another run, each time."""
        y = op("checkpoint")(*values, rule=self, form=form, options=options)
        before = [settled(v) for v in flatten(y)[0]]

        def again(swept: Callable[[Joint], Sequence[Any]]) -> Sequence[Any]:
            with open_level() as inner:
                inner.keep_copies = True  # the tape outlives the trace
                nodes = [inner.wrap(values[i]) for i in active]
                at = dict(zip(active, nodes, strict=True))
                leaves = [at.get(i, v) for i, v in enumerate(values)]
                results = [settled(v) for v in flatten(self.traced(form.arguments(leaves)))[0]]
                self._same(before, results)
                outs = [owned(inner, v) for v in results]
                tape, linear = list(inner.tape), tape_map(inner, nodes, outs)
            try:
                return swept(linear)
            finally:
                free_tape(tape, (inner.S, inner.N), nodes)

        return y, Joint(
            lambda ts: again(lambda linear: linear.forward(ts)),
            lambda bars: again(lambda linear: linear.back(bars)),
        )

    def _same(self, before: Sequence[Any], again: Sequence[Any]) -> None:
        """Refuse a function that gives something else when it is run again."""
        if len(before) == len(again) and all(map(_alike, before, again)):
            return
        raise MutationError(
            f"checkpoint of {name_of(self.f)}: the function gave another result when it was run "
            "again for its derivative; it must depend on nothing but its arguments, so pass it "
            "what changes (arrays that are overwritten, random numbers)"
        )

    def trace_linear(
        self, level: Level, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """The function itself."""
        return self.traced(form.arguments(leaves))

    trace_staged = trace_linear


def _alike(a: Shaped, b: Shaped) -> bool:
    if staged(a) or staged(b):
        return type_of(a) == type_of(b)
    a, b = plain(a), plain(b)
    if not moves(a):
        return True
    if type_of(a).shape != type_of(b).shape:
        return False
    eps = float(np.finfo(type_of(a).dtype).eps) if hasattr(a, "dtype") else 2.3e-16
    size = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return bool(np.allclose(a, b, eps**0.5, eps**0.5 * size, equal_nan=True))


class Stored(Call):
    """A call whose derivative keeps what a policy says.

    Under further levels, and along a batch, the call is run again as by any checkpoint.
    """

    def __init__(self, policy: "Policy", *call: Any) -> None:
        super().__init__(*call)
        self.policy = policy

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[str, Any],
    ) -> tuple[Any, Joint]:
        """The value, and the linear map of the halves of the program that the function is."""
        y, again = super().trace(level, values, active, form, options)
        if any(isinstance(v, Box) for v in values):
            return y, again
        from lineara.staging.value_and_map import Halves

        with outside():
            halves = Halves.of(self._of_leaves(form), values, {}, self.policy)

        def forward(tangents: Sequence[Any]) -> Any:
            if any(isinstance(t, Box) for t in tangents):
                return again.forward(tangents)
            at = dict(zip(active, tangents, strict=True))
            return halves.spread(halves.ahead([at.get(i) for i in range(len(values))]))

        def back(bars: Sequence[Any]) -> Any:
            if any(isinstance(c, Box) for c in bars):
                return again.back(bars)
            cotangents = halves.back(halves.picked(bars))
            return [cotangents[i] for i in active]

        return y, Joint(forward, back)

    def _of_leaves(self, form: Form) -> Callable[..., Any]:
        return lambda *leaves: flatten(self.traced(form.arguments(leaves)))[0]


P = ParamSpec("P")
R = TypeVar("R")


@transformation
def checkpoint(f: Callable[P, R], *, policy: "Policy | str | None" = None) -> Callable[P, R]:
    """f, run again when its derivative is asked for: between, only its inputs are kept.

    Memory for time: a sweep through a call of f costs one more run of f, and holds what that run
    records only while it is swept. Works at every order and in both modes; what f captured has its
    derivative too. f must give the same result when it is run again.

    With a `policy` (`lineara.policies`) f is traced, and what the policy stores is kept as well.

    Raises TypeMismatchError where f is no function; in the sweep MutationError where f gives
    another result when it is run again.

    >>> import math, lineara
    >>> def step(x):
    ...     return math.sin(x) * x
    >>> def f(x):
    ...     for _ in range(3):
    ...         x = checkpoint(step)(x)
    ...     return x
    >>> lineara.grad(f)(2.0) == lineara.grad(lambda x: step(step(step(x))))(2.0)
    True
    """
    if not callable(f):
        raise TypeMismatchError(f"checkpoint: takes a function, but was given {show_type(f)}")
    if policy is None and getattr(f, "__lineara_checkpoint__", False):
        return f
    kept = None
    if policy is not None:
        from lineara.policies import chosen

        kept = chosen(policy, "checkpoint")

    @functools.wraps(f, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return _call(f, args, kwargs, kept)

    checkpointed.__lineara_checkpoint__ = True  # type: ignore[attr-defined]  # a mark on a function
    return checkpointed


def _call(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], policy: "Policy | None"
) -> Any:
    """The call's arguments: those by position, those by name, and what f captured, if traced."""
    cells = {k: v for k, v in captured(f).items() if any_traced(v)}
    call = (f, len(args), tuple(kwargs), tuple(cells))
    rule = Call(*call) if policy is None else Stored(policy, *call)
    leaves, form = opened([*args, *kwargs.values(), *cells.values()])
    return op("checkpoint")(*leaves, rule=rule, form=form, options={})


__all__ = ["checkpoint"]

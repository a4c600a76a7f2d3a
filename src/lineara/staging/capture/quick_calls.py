"""Calls by machine code alone: what a call depends on, and what it runs, as checks and a program.

The order is this: that no trace is open; what Python has to be asked, since other threads may run
then; the arguments, which their caller holds; what the function reaches; and, last, what lies in
containers, which is held from then on.
"""

import functools
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from lineara import engines
from lineara.errors import OutOfRoom
from lineara.staging.by_signature import error_state
from lineara.staging.capture.argument_forms import Form
from lineara.staging.capture.guards import Guard, Term, asked
from lineara.staging.tracing import Direct, Staged
from lineara.tape.levels import collector, threads


class Errors(NamedTuple):
    """How NumPy handled errors when a function was captured."""

    state: Callable[[], object]
    seen: object
    handled: dict[str, Any]

    @classmethod
    def now(cls) -> "Errors":
        """How it does now."""
        return cls(error_state(), error_state()(), {**np.geterr()})

    def still(self) -> bool:
        """Whether it does so still."""
        return self.state() is self.seen or np.geterr() == self.handled


class Quick(NamedTuple):
    """What a call of a captured function depends on, and what it runs."""

    form: Form
    errors: Errors
    guard: Guard
    staged: Staged


_one_at_a_time = threading.RLock()  # so that the table that code reads is the one that is held


def attach(x: Any, base: type, every: Sequence[Quick], out: Sequence[np.ndarray] = ()) -> None:
    """Have x called as `attached` says, if its programs have changed; any thread may ask.

    x.parts is what of them is machine code, x.table what has to live as long as that.
    """
    with _one_at_a_time:
        parts = [part for q in every for part in (q.guard.terms, q.staged.direct)]
        if len(parts) != len(x.parts) or not all(map(is_, parts, x.parts)):
            x.parts = parts
            x.table = attached(x, base, every, out)


def attached(
    x: Callable[..., object], base: type, every: Sequence[Quick], out: Sequence[np.ndarray] = ()
) -> Any:
    """Have x called by the programs that are machine code; what is to live as long as that.

    They put their results into `out`, if that is given.
    """
    ready = [q for q in every if q.guard.code is not None and _is_machine_code(q.staged.direct)]
    if not ready:
        return engines.set_code(x, base)
    programs = [_program(q, out) for q in ready]
    return engines.guarded_call.attached(x, base, programs, x.__call__, OutOfRoom)


def _is_machine_code(direct: Direct | None) -> bool:
    """Whether a program is called by machine code: other engines' are functions of Python."""
    return direct is not None and isinstance(direct.run, BuiltinFunctionType)


def _program(q: Quick, out: Sequence[np.ndarray]) -> Any:
    """One program for machine code."""
    call, direct, form = engines.guarded_call, q.staged.direct, q.form
    assert direct is not None, "it is ready"
    word = call.Word
    return call.Program(
        form.given,
        form.names,
        [*_checks(q)],
        form.slots,
        direct.run,
        [*[word(form.places[i]) for i in direct.places], *direct.beside, *out],
        direct.fill,
        direct.several,
    )


def _checks(q: Quick) -> Iterator[Any]:
    """All that is looked at."""
    call, form = engines.guarded_call, q.form
    yield call.Check("none", collector.tracing, (threads, "open"))
    yield call.Check("context", engines.engine_here, (None, _none_named))
    terms = [(t, _check(t)) for t in q.guard.terms]
    rest = [t for t, checks in terms if checks is None]
    if rest:
        yield call.Check("ask", asked(rest).holds)
    if isinstance(q.errors.state, functools.partial):
        variable = q.errors.state.func.__self__  # type: ignore[attr-defined]  # its method `get`
        yield call.Check("context", variable, (q.errors.seen, q.errors.still))
    else:
        yield call.Check("ask", q.errors.still)
    looks = [(t, _look(t, form)) for t in form.looks]
    yield from [check for t, check in looks if t.operands[0] < form.given and t.kind not in _HOLD]
    for _, checks in terms:
        yield from checks or ()
    yield from [check for t, check in looks if t.operands[0] >= form.given or t.kind in _HOLD]


def _none_named() -> bool:
    """Whether no engine is named around this call."""
    return engines.engine_here.get() is None


_HOLD = ("items", "entries", "fields")


def _look(t: Term, form: Form) -> Any:
    """A look at an argument as a check."""
    call = engines.guarded_call
    word, block, (number, *rest) = call.Word, call.Block, t.operands
    words: tuple[Any, ...] = tuple(rest)
    if t.kind == "array":
        _, shape, dtype, strides = rest
        words = (call.array_block(shape, dtype, strides),)
    elif t.kind == "items":
        kind, count = rest
        words = (block((kind, word(count))), word(form.inner[number]))
    elif t.kind in _HOLD:
        kind, keys = rest
        words = (block((kind, str, word(len(keys)), *keys)), word(form.inner[number]))
    return call.Check(t.kind, word(number), words)


def _check(t: Term) -> list[Any] | None:
    """What a guard asks as checks; None where Python has to be asked."""
    call = engines.guarded_call
    word, block, null = call.Word, call.Block, call.Word(0)
    x, *rest = t.operands
    kind, words = t.kind, tuple(rest)
    if kind == "entries of a class":
        x, kind = _dict_of_class(x), "dict"
    if kind in ("item", "absent", "dict") and type(x) is not dict:
        return None
    if kind == "absent":
        return [call.Check("item", x, (name, null)) for name in rest[0]]
    if kind in ("defaults", "options"):
        words = tuple([null if v is None else v for v in rest])
    elif kind in ("dict", "attributes"):
        keys, values = rest
        pairs = [v for pair in zip(keys, values, strict=True) for v in pair]
        words = (block((word(len(keys)), *pairs)),)
    elif kind == "list":
        if type(x) is not list:
            return None
        words = (block((word(len(rest[0])), *rest[0])),)
    elif kind in ("array", "bytes", "bytes in place"):
        shape, dtype, strides, *held = rest
        if type(x) is not np.ndarray or (held and not x.flags.c_contiguous):
            return None
        words = (call.array_block(shape, dtype, strides), *map(_bytes, held))
        kind = "array"
    elif kind not in ("item", "cell", "code", "class", "attribute"):
        return None
    return [call.Check(kind, x, words)]


def _dict_of_class(cls: type) -> dict[str, Any] | None:
    """The dict of a class, which Python shows as a mapping that refers to it alone."""
    behind = gc.get_referents(vars(cls))
    if len(behind) != 1 or type(behind[0]) is not dict:
        return None
    return behind[0] if all(map(is_, behind[0].values(), vars(cls).values())) else None


def _bytes(held: bytes) -> Any:
    """What an array is to hold: how many bytes, and where they are."""
    call = engines.guarded_call
    memory = np.frombuffer(held, np.uint8)
    where = memory.__array_interface__["data"][0]
    return call.Block((call.Word(len(held)), call.Word(where), held))  # the last keeps them there


__all__ = ["Errors", "Quick", "attach", "attached"]

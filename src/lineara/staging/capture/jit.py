"""`jit`: a function that is captured once for each form of its arguments, and run as a program.

What the program depends on is looked at in each call: the containers and types of the arguments,
and what of them is no number; and all that the function reaches, its globals, cells, defaults and
attributes with what these hold.  Where any of it is not what it was the function is captured anew.
"""

import functools
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import (
    LinearaError,
    OutOfRoom,
    StagingError,
    TypeMismatchError,
)
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import show_type, type_of
from lineara.linear_a import syntax as ir
from lineara.ops.effects import Report
from lineara.python.user_code import Reading, Rooms, reading, seen
from lineara.staging.capture import STRUCTURED
from lineara.staging.capture.containers import (
    GENERATORS,
    LIMIT,
    Reach,
    Remembers,
    Snapshot,
    refuse_changes,
    refuse_what_went_on,
)
from lineara.staging.capture.guards import Code, Guard
from lineara.staging.capture.outside import refuse_unread
from lineara.staging.capture.side_effects import line_of_change
from lineara.staging.control_flow import plain_key
from lineara.staging.staged_level import weakness
from lineara.staging.tracing import Fixed, Staged, Whole, names_of_leaves, traced
from lineara.tape.levels import innermost_level, threads
from lineara.tape.library_errors import line_of
from lineara.tape.node import Traced
from lineara.tape.shared_memory import shares, written_in_one_place
from lineara.tape.strides import narrow, strides_of
from lineara.trees import Structure, flatten, flatten_call, positions, unflatten

WAYS_OUT = (
    "jit(f, fallback=True) runs a function that cannot be captured as it is; lineara.static(n) "
    "makes a number that Python needs a constant, with a program for each value"
)
DEFAULT = "adaptive"  # the engine of programs
RECENT = 4  # programs whose forms are tried first
TRIED = 8  # whole numbers of which each is tried as an input where one has to be a constant


class Captured(NamedTuple):
    """A program, and the state of what it depends on."""

    staged: Staged
    reached: Snapshot  # what the function reaches, as it was
    guard: Guard  # whether that is still so
    fits: (
        Callable[[tuple], bool] | None
    )  # whether a call's arguments have its form, if code can tell
    is_full: bool = False  # whether it has too little room for a list


class Call(NamedTuple):
    """The arguments of a call, taken apart."""

    args: tuple
    kwargs: dict[str, Any]
    leaves: list[Any]
    structure: Structure

    @classmethod
    def of(cls, args: tuple, kwargs: dict[str, Any]) -> "Call":
        """The arguments, with their leaves."""
        return cls(args, kwargs, *flatten_call(args, kwargs))


class Jitted(Remembers):
    """A function that runs as a program.

    programs    by the form of the arguments, the programs that were made
    constants   by the containers of the arguments, the numbers among them that are constants, and
                the line that needs their values
    history     why the function was captured each time
    """

    def __init__(
        self,
        f: Callable[..., Any],
        exact: bool = False,
        fallback: bool = False,
        engine: str = DEFAULT,
    ) -> None:
        functools.update_wrapper(self, f)
        self.f, self.exact, self.fallback, self.engine = f, exact, fallback, engine
        self.name = getattr(f, "__name__", type(f).__name__)
        self.programs: dict[Any, Captured] = {}
        self.constants: dict[Structure, dict[int, str]] = {}
        self.history: list[str] = []
        self.refused = set[Any]()  # the forms that cannot be captured: f runs as it is
        self.rooms = Rooms()
        self.recent: tuple[Captured, ...] = ()  # programs that calls of their form may run at once

    @property
    def captures(self) -> int:
        """How often the function was captured."""
        return len(self.history)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function, by its program."""
        if not kwargs and not threads.open:
            for known in self.recent:
                if known.fits(args):  # type: ignore[misc]  # that of a recent one tells
                    if known.guard.is_stale():
                        break
                    try:
                        return known.staged.called(args)
                    except OutOfRoom:
                        break
        if self.exact:
            return self._as_it_is(*args, **kwargs)
        if reading() is not None:
            return seen(self.f)(*args, **kwargs)
        call = Call.of(args, kwargs)
        while True:
            try:
                return self._value(call)
            except OutOfRoom as e:
                self.recent = ()
                key = self._key(call)
                known = self.programs.get(key)
                if not self.rooms.outgrown(e) or known is None:
                    raise
                self.programs[key] = known._replace(is_full=True)
                if _reports(known.staged):  # and may have done so
                    raise

    def _value(self, call: Call) -> Any:
        """The value of the function, unless the program has too little room."""
        args, kwargs = call.args, call.kwargs
        known, failed = None, None
        try:
            self._refuse_errors()
            key = self._key(call)
            known = None if key in self.refused else self._program(call, key)
        except Exception as e:
            refused = isinstance(e, LinearaError)
            if refused and (not self.fallback or (isinstance(e, StagingError) and e.final)):
                raise
            failed = e
        if failed is not None and self.fallback:
            return self._fall_back(call, failed)
        if known is None:
            value = self._as_it_is(*args, **kwargs)  # does what it does before it raises the same
            if failed is not None:
                raise failed
            return value
        staged = known.staged
        if any([isinstance(v, Traced) for v in call.leaves]):
            return _as_operation(staged, args, kwargs)
        for i in staged.writes:
            if any([shares(call.leaves[i], x) for x in known.guard.arrays]):
                raise written_in_one_place(call.leaves[i])
        if not staged.writes:
            if known.fits is not None and all([known is not k for k in self.recent]):
                self.recent = (known, *self.recent)[:RECENT]
            return staged.value(call.leaves)
        try:
            return staged.value(call.leaves)
        except LinearaError:
            raise
        except Exception as e:
            error = e
        if _reports(staged):
            raise StagingError(
                f"jit: {staged.name} has raised {type(error).__name__} after it may have written "
                "into its arguments, and prints or warns: whether these hold what Python leaves in "
                "them is not known; return a new array, or check before anything is written"
            ) from error
        self._as_it_is(*args, **kwargs)  # which writes as far as it comes, and raises the same
        raise error

    def program(self, *args: Any, **kwargs: Any) -> Staged:
        """The program for arguments of this form."""
        call = Call.of(args, kwargs)
        return self._program(call, self._key(call)).staged

    def _as_it_is(self, *args: Any, **kwargs: Any) -> Any:
        f = self.f if innermost_level() is None else seen(self.f)
        return f(*args, **kwargs)

    def _fall_back(self, call: Call, error: Exception) -> Any:
        """The value of the function itself; the first time after a warning that says why."""
        value = self._as_it_is(*call.args, **call.kwargs)
        if not self.refused:
            why = str(error) if isinstance(error, LinearaError) else repr(error)
            said = f"jit: {self.name} runs as it is, since it cannot be captured: {why}"
            warnings.warn(said, UserWarning, stacklevel=4)
        self.refused.add(self._key(call))
        return value

    def _refuse_errors(self) -> None:
        handled = [str(v) for v in np.geterr().values() if v not in ("ignore", "warn")]
        if handled:
            raise StagingError(
                f"jit: under np.errstate({handled[0]!r}) {self.name} would stop where "
                "NumPy meets an error, and a program goes on; call the function itself there, or "
                "test what it gives with np.isfinite"
            )

    def _key(self, call: Call) -> Any:
        """What a program depends on: the form of the arguments, and how NumPy handles errors."""
        constants = self.constants.setdefault(call.structure, {})
        forms = [_form(v, i in constants) for i, v in enumerate(call.leaves)]
        return call.structure, tuple(forms), tuple(np.geterr().values())

    def _program(self, call: Call, key: Any) -> Captured:
        known = self.programs.get(key)
        if known is not None and not known.is_full and not known.guard.is_stale():
            return known
        why = self._why(call, key) if known is None else f"{known.guard.what_changed()} changed"
        if known is not None and known.is_full:
            why = "a list became longer than the program had room for"
        try:
            known = self.captured(call)
        except LinearaError as e:
            e.add_note(WAYS_OUT)
            raise
        self.history.append(why)
        self.recent = ()
        self.programs[self._key(call)] = known  # numbers may have become constants
        return known

    def captured(self, call: Call, now: Reading | None = None) -> Captured:
        """The function captured anew; numbers that Python needs become constants."""
        constants = self.constants.setdefault(call.structure, {})
        before = {**constants}
        others = [v for v in call.leaves if not isinstance(v, Traced) and not _is_numeric(v)]
        reached, drawn = Reach(self.f, *others), Snapshot(*GENERATORS)
        arrays = inputs = reached.inputs(self.f) if now is None else now.inputs
        if len(reached.seen) >= LIMIT:
            raise StagingError(
                f"jit: {self.name} reaches more than {LIMIT} objects, and whether they "
                "have changed is looked at in each call; pass what it needs as arguments"
            )
        if unseen := reached.unseen():
            raise StagingError(
                f"jit: {self.name} reaches a {type(unseen[0]).__name__}, which does not tell what "
                "it holds, so a change of it would not be seen; pass what is needed of it as an "
                "argument"
            )

        how = now

        def run(fixed: Collection[int]) -> Staged:
            nonlocal how
            how = now or Reading(STRUCTURED, True, self.f, self.rooms, inputs)
            leaves = [_given(v, i in fixed) for i, v in enumerate(call.leaves)]
            given: Any = unflatten(call.structure, leaves)
            return traced(self.f, given[0], given[1], how)

        def attempt(fixed: Collection[int]) -> tuple[Staged, list[Any]]:
            try:
                staged = run(fixed)
            finally:
                changed = reached.undo() + drawn.undo()
                refuse_what_went_on(changed, "function", "is captured once")
            return staged, changed

        while True:
            try:
                staged, changed = attempt(constants)
            except Exception as e:  # Python's too: a range may be empty, islice takes no staged one
                final = isinstance(e, StagingError) and e.final
                if inputs and not final:  # Python may need what they hold
                    inputs = {}
                    continue
                asked = e.leaves if isinstance(e, StagingError) else ()
                whole = [i for i, v in enumerate(call.leaves) if _is_whole(v)]
                open_ = [i for i in whole if i not in constants]
                needed = {*asked} - {*constants} or _needed(attempt, constants, open_)
                if final or not needed:
                    constants.clear()
                    constants |= before
                    raise
                constants |= dict.fromkeys(
                    needed, e.line if isinstance(e, LinearaError) else line_of(e)
                )
                inputs = arrays
                continue
            for f, names in reached.unread(self.f, how.called if how else ()):
                refuse_unread(f, names)
            if changed:
                line = line_of_change(functools.partial(run, constants), (reached, drawn))
                refuse_changes(changed, "function", "is captured once", line)
            staged.definition = staged.definition._replace(engine=self.engine)
            guard = Guard(reached, inputs, staged.inputs)
            return Captured(staged, reached, guard, self._test(call, constants, staged))

    def _test(
        self, call: Call, constants: Mapping[int, str], staged: Staged
    ) -> Callable[[tuple], bool] | None:
        """Whether arguments have the form of these; None where that is left to their keys."""
        if call.structure != positions(len(call.args)) or staged.writes or _reports(staged):
            return None
        scope: dict[str, Any] = {"geterr": np.geterr, "errors": np.geterr()}
        scope |= {"state": _error_state(), "handled": _error_state()()}
        texts = [f"len(args) == {len(call.leaves)}"]
        for i, v in enumerate(call.leaves):
            term = _term(v, i in constants)
            if term is None:
                return None
            texts.append(term[0].replace("$", str(i)))
            scope |= {f"{k}{i}": value for k, value in term[1].items()}
        texts.append("(state() is handled or geterr() == errors)")
        return Code.of(" and ".join(texts), scope, "args").holds

    def _why(self, call: Call, key: Any) -> str:
        """How a call differs from the one before that was captured."""
        if not self.programs:
            return "it was called for the first time"
        before = [*self.programs][-1]
        if before[0] != key[0]:
            return "the arguments are other containers"
        names = names_of_leaves(self.f, call.args, call.kwargs)
        for name, was, is_, v in zip(names, before[1], key[1], call.leaves, strict=True):
            if was != is_:
                return f"{name} is {show_form(v, is_)}"
        return "np.errstate differs"

    def __get__(self, owner: object, cls: type | None = None) -> Any:
        """The method of an object."""
        return self if owner is None else functools.partial(self, owner)

    def __repr__(self) -> str:
        return f"<lineara.jit of {self.f!r}>"


def _needed(
    attempt: Callable[[Collection[int]], object], constants: Collection[int], open_: Sequence[int]
) -> set[int]:
    """Which of some numbers have to be constants where not all of them can be inputs."""
    needed = {*open_}
    if len(open_) in range(2, TRIED + 1):
        for i in open_:
            try:
                attempt({*constants} | (needed - {i}))
                needed.remove(i)
            except Exception:
                continue
    return needed


def _given(v: Leaf, fixed: bool) -> Any:
    """A leaf as it is captured: a number that is a constant, or a whole one that is an input."""
    if fixed:
        return Fixed(v) if isinstance(v, float) else v
    return Whole(v) if _is_whole(v) else v  # type: ignore[call-overload]


def _form(v: Leaf, fixed: bool) -> Any:
    """The form of an argument, which a program depends on: an input's type, a constant's value."""
    if fixed and isinstance(v, float):
        return float, v.hex()
    if _is_whole(v) and not fixed:
        return int
    if isinstance(v, Traced) or _is_numeric(v):
        t = type_of(v)
        if t.shape or t.dtype.kind in "fc":
            return t, weakness(v), narrow(t.shape, strides_of(v))
    return plain_key(v)


@functools.cache
def _error_state() -> Callable[[], object]:
    """What gives an object that is another one while NumPy handles errors in another way.

    NumPy's variable does, and is asked in a tenth of the time that `np.geterr` takes, where it is
    found and is seen to change; else each object is another one.
    """
    variable = getattr(getattr(np, "_core", None), "umath", None)
    get = getattr(getattr(variable, "_extobj_contextvar", None), "get", None)
    if get is None:
        return object
    state = functools.partial(get, None)
    before = state()
    with np.errstate(divide="raise"):
        changes = state() is not before
    return state if changes and state() is before else object


def _term(v: Any, fixed: bool) -> tuple[str, dict[str, Any]] | None:
    """An expression for a value of the form of v, and what it mentions; None where there is none.

    It is enough for one, and cheap; `$` stands for the number of the argument.
    """
    kind = type(v)
    if (
        kind is np.ndarray
        and _is_numeric(v)
        and v.dtype.isbuiltin == 1
        and (v.shape or v.dtype.kind in "fc")
    ):
        known = {"array": np.ndarray, "t": v.dtype, "s": v.shape, "w": v.strides}
        lies = "args[$].dtype is t$ and args[$].shape == s$ and args[$].strides == w$"
        return f"type(args[$]) is array$ and {lies}", known
    if v is None or kind in (bool, str) or (fixed and kind is int):
        same = "is" if v is None or kind is bool else "=="
        return f"type(args[$]) is k$ and args[$] {same} v$", {"k": kind, "v": v}
    if not fixed and _is_whole(v):
        return f"type(args[$]) is int and {-(2**63) + 1} <= args[$] < {2**63}", {}
    if not fixed and (kind in (float, complex) or (_is_numeric(v) and v.dtype.kind in "fc")):
        return "type(args[$]) is k$", {"k": kind}
    return None


def show_form(v: Leaf, form: Any) -> str:
    """The form of an argument in words."""
    if form is int:
        return "a whole number"
    if isinstance(v, Traced | np.ndarray | np.generic) or form[0] not in (float, type(v)):
        return show_type(v)
    return repr(v)


def _is_numeric(v: Leaf) -> bool:
    """Whether a leaf has a type of the program: a number or an array of numbers."""
    if isinstance(v, np.ndarray | np.generic):
        return v.dtype.kind in "fciub"
    return isinstance(v, float | complex)


def _is_whole(v: Leaf) -> bool:
    """Whether a leaf may be an input as a whole number: one that fits into an int64."""
    return type(v) is int and v.bit_length() < 64


def _reports(staged: Staged) -> bool:
    """Whether a program does something beside giving values and raising Python's exceptions."""
    bodies = [d.body for d in staged.program.defs.values()]
    every = [e for body in bodies for e in ir.leaves(body)]
    return any([isinstance(e, ir.Prim) and isinstance(e.primitive, Report) for e in every])


def _as_operation(staged: Staged, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The program as one operation of a differentiation."""
    if staged.writes:
        raise StagingError(
            f"jit: {staged.name} writes into its arguments, which a derivative of it would "
            "not do; differentiate the function itself, or let it return a new array"
        )
    leaves, _ = flatten((args, kwargs))
    types = staged.signature.types
    values = [v for v, t in zip(leaves, types, strict=True) if t is not None]
    operands = (*values, *[a.copy() for a in staged.inputs], *staged.constants)
    results = op("defined")(*operands, definition=staged.definition, name=staged.name)
    return staged.results.filled(iter(results))


def jit(
    f: Callable[..., Any] | None = None,
    *,
    exact: bool = False,
    fallback: bool = False,
    engine: str = DEFAULT,
) -> Any:
    """f, captured as a program when it is first called with arguments of some form.

    Branches and loops that depend on the arguments are those of the program.  Numbers and arrays
    are inputs of it; whole numbers of Python's are constants where Python needs them, as the length
    of a list, and so is all else.  For another constant the function is captured again.
    TypeMismatchError where f is no function, StagingError where it cannot be captured.

    exact      values are f's to the last bit.  No engine promises that of programs today, so f
               itself is run
    fallback   an f that cannot be captured is run as it is, and a UserWarning says why, once
    engine     the one that runs the program, by its name: "adaptive" interprets it until compiling
               it pays, "native" compiles it before it is run first, and one that it does not take
               is a ProgramError; "interpreter" never does

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
    if f is None:
        return functools.partial(jit, exact=exact, fallback=fallback, engine=engine)
    if not callable(f):
        raise TypeMismatchError(f"jit: takes a function, but was given {show_type(f)}")
    return Jitted(f, exact, fallback, engine)


__all__ = ["Jitted", "jit"]

"""`jit`: a function that is captured once for each form of its arguments, and run as a program.

What the program depends on is looked at in each call: the containers and types of the arguments,
and what of them is no number; and all that the function reaches, its globals, cells, defaults and
attributes with what these hold.  Where any of it is not what it was the function is captured anew.
"""

import functools
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np

from lineara.containers.foreign_arrays import is_foreign
from lineara.engines import Engine, engine_here, engine_of, exact_engine, with_room
from lineara.errors import (
    LinearaError,
    OutOfRoom,
    StagingError,
    TypeMismatchError,
    warn_at_users_line,
    with_article,
)
from lineara.facts.hints import Leaf
from lineara.facts.pickled import Making, Remade
from lineara.facts.types import show_type, type_of
from lineara.linear_a import syntax as ir
from lineara.ops.effects import Report
from lineara.python.user_code import Reading, Rooms, reading, seen
from lineara.staging.capture import STRUCTURED
from lineara.staging.capture.argument_forms import Form, form_of
from lineara.staging.capture.containers import (
    GENERATORS,
    LIMIT,
    Remembers,
    Snapshot,
    refuse_changes,
    refuse_what_went_on,
)
from lineara.staging.capture.guards import Guard
from lineara.staging.capture.into import Into
from lineara.staging.capture.outside import refuse_unread
from lineara.staging.capture.outside_arrays import Reach
from lineara.staging.capture.quick_calls import Errors, Quick, attach
from lineara.staging.capture.side_effects import line_of_change
from lineara.staging.control_flow import plain_key
from lineara.staging.staged_level import is_of_array, weakness
from lineara.staging.texts import only_raises
from lineara.staging.tracing import (
    Fixed,
    Staged,
    Whole,
    names_of_leaves,
    traced,
)
from lineara.tape.levels import innermost_level, threads
from lineara.tape.library_errors import line_of
from lineara.tape.node import Traced, has_own_rules
from lineara.tape.shared_memory import shares, written_in_one_place
from lineara.tape.strides import narrow, strides_of
from lineara.trees import Structure, flatten_call, unflatten

WAYS_OUT = (
    "jit(f, fallback=True) runs a function that cannot be captured as it is; lineara.static(n) "
    "makes a number that Python needs a constant, with a program for each value"
)
DEFAULT = "adaptive"  # the engine of programs, outside of `with lineara.engine(...)`
RECENT = 4  # programs whose forms are tried first
TRIED = 8  # whole numbers of which each is tried as an input where one has to be a constant


class Captured(NamedTuple):
    """A program, and the state of what it depends on."""

    staged: Staged
    reached: Snapshot  # what the function reaches, as it was
    guard: Guard  # whether that is still so
    form: Form | None  # the form of its arguments, if code can tell
    errors: Errors  # how NumPy handled them
    is_full: bool = False  # whether it has too little room for a list


class Call(NamedTuple):
    """The arguments of a call, taken apart; in place of the engine's arrays are NumPy's."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    structure: Structure
    values: list[Any]  # what the program is run on

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], engine: Engine | str = "") -> "Call":
        """The arguments, with their leaves."""
        values, structure = flatten_call(args, kwargs)
        if isinstance(engine, str) and engine != "jax":
            return cls(args, kwargs, values, structure, values)
        of_type = engine_of(engine).of_type
        leaves = [of_type(v) for v in values]
        args, kwargs = unflatten(structure, leaves)
        return cls(args, kwargs, leaves, structure, values)

    def on_host(self) -> list[Any]:
        """The leaves, with arrays of NumPy's that have the engine's values."""
        return [np.asarray(v) if is_foreign(type(v)) else v for v in self.values]


class Jitted(Remade, Remembers):
    """A function that runs as a program.

    programs    by the form of the arguments, the programs that were made
    constants   by the containers of the arguments, the numbers among them that are constants, and
                the line that needs their values
    history     why the function was captured each time
    """

    fallback: bool
    f: Any
    exact: bool
    engine: Engine | str
    goes_along: bool

    __lineara_leaf__ = True  # it is a function, and no container

    def __new__(cls, *args: Any, **kwargs: Any) -> "Jitted":
        """An object that machine code may call."""
        return super().__new__(with_room(cls))

    def __init__(
        self,
        f: Callable[..., Any],
        exact: bool = False,
        fallback: bool = False,
        engine: Engine | str = DEFAULT,
    ) -> None:
        functools.update_wrapper(self, f)
        self.f, self.exact, self.fallback = f, exact, fallback
        self.engine = exact_engine(engine) if exact else engine
        self.goes_along = engine == DEFAULT  # with the engine of `with lineara.engine(...)`
        self.name: Any | str = getattr(f, "__name__", type(f).__name__)
        self.programs: dict[Any, Captured] = {}
        self.constants: dict[Structure, dict[int, str]] = {}
        self.history: list[str] = []
        self.refused: set[Any] = set[Any]()  # the forms that cannot be captured: f runs as it is
        self.rooms: Rooms = Rooms()
        self.recent: tuple[Quick, ...] = ()  # programs that calls of their form may run at once
        self.parts: list[Any] = []  # of what of them is machine code now
        self.table: Any = None  # which that reads
        self.elsewhere: dict[Engine, Jitted] = {}  # the same by other engines

    def made_by(self) -> Making:
        """The function, to be captured anew: what it reaches may be other things elsewhere."""
        engine = DEFAULT if self.goes_along else self.engine
        options = {"exact": self.exact, "fallback": self.fallback, "engine": engine}
        return Making(jit, (self.f,), options)

    @property
    def captures(self) -> int:
        """How often the function was captured."""
        return len(self.history)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function, by its program."""
        here = engine_here.get()
        if here is not None and self.goes_along:
            return self._by(here)(*args, **kwargs)
        try:
            if not threads.open:
                for q in self.recent:
                    leaves = q.form.leaves(args, kwargs)
                    if leaves is not None and q.errors.still():
                        if q.guard.is_stale():
                            break
                        value = q.staged.called(leaves)
                        attach(self, Jitted, self.recent)
                        return value
        except OutOfRoom:
            pass
        if reading() is not None:
            return seen(self.f)(*args, **kwargs)
        call = Call.of(args, kwargs, self.engine)
        while True:
            try:
                return self._value(call)
            except OutOfRoom as e:
                self._set_recent(())
                key = self._key(call)
                known = self.programs.get(key)
                if not self.rooms.outgrown(e) or known is None:
                    raise
                self.programs[key] = known._replace(is_full=True)
                if _reports(known.staged):  # and may have done so
                    raise

    def _by(self, engine: Engine) -> "Jitted":
        """The same function by another engine."""
        if engine not in self.elsewhere:
            self.elsewhere[engine] = Jitted(self.f, self.exact, self.fallback, engine)
        return self.elsewhere[engine]

    def _value(self, call: Call) -> Any:
        """The value of the function, unless the program has too little room."""
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
            args, kwargs = unflatten(call.structure, call.on_host())
            value = self._as_it_is(*args, **kwargs)  # does what it does before it raises the same
            if failed is None:
                return value
            if isinstance(failed, LinearaError):
                raise failed
            error = StagingError(
                f"jit: {self.name} has a block that values decide on, in which Python raises "
                f"{failed!r} whatever the values are, and for these it does not come there; ask "
                "before, as `if key in d` does, or raise the exception yourself",
                line=line_of(failed),
            )
            error.add_note(WAYS_OUT)
            raise error from failed
        staged = known.staged
        if any([isinstance(v, Traced) for v in call.leaves]):
            return staged.operation(call.on_host())
        for i in staged.writes:
            if is_foreign(type(call.values[i])):
                raise StagingError(
                    f"jit: {staged.name} writes into an argument, which is an array of "
                    f"{type(call.values[i]).__module__.partition('.')[0]} and cannot be written; "
                    "pass an array of NumPy's, or return what it is to hold"
                )
            if any([shares(call.leaves[i], x) for x in known.guard.arrays]):
                raise written_in_one_place(call.leaves[i])
        if not staged.writes:
            form = known.form
            if form is not None and all([staged is not q.staged for q in self.recent]):
                quick = Quick(form, known.errors, known.guard, staged)
                self._set_recent((quick, *self.recent)[:RECENT])
            return staged.value(call.values)
        try:
            return staged.value(call.values)
        except Exception as e:
            if isinstance(e, LinearaError) and not isinstance(e, IndexError):
                raise
            error = e
        if _reports(staged):
            kind = IndexError if isinstance(error, IndexError) else type(error)
            raise StagingError(
                f"jit: {staged.name} has raised {kind.__name__} after it may have written "
                "into its arguments, and prints or warns: whether these hold what Python leaves in "
                "them is not known; return a new array, or check before anything is written",
                line=_line_within(error),
            ) from error
        args, kwargs = unflatten(call.structure, call.on_host())
        self._as_it_is(*args, **kwargs)  # which writes as far as it comes, and raises the same
        raise error

    def into(self, out: Any) -> Into:
        """The function with arrays that its results are put into, which a call gives back.

        `out` is an array of NumPy's, or arrays in the containers of the result, each of the shape
        and the dtype of its result; a number goes into an array without axes, more slowly.  A call
        gives these arrays, in containers like those of `out`.  No array is made in a call, which
        saves most of what is left of it where the function is small, and the memory where it is
        large.  An array that shares memory with an argument is fine, and costs a copy, as one does
        that is not in C order.
        After an exception what the arrays hold is not said; two threads need two sets of them.

        Raises TypeMismatchError for what is no array or is read-only; StructureError for other
        containers, and for arrays that share memory; ShapeError for another shape or dtype;
        StagingError where a call is differentiated or captured.

        >>> import numpy as np, lineara
        >>> slope = lineara.jit(lineara.grad(lambda x: np.sum(x * x)))
        >>> out = np.empty(3)
        >>> step = slope.into(out)
        >>> step(np.array([1.0, 2.0, 3.0])) is out
        True
        >>> out
        array([2., 4., 6.])
        """
        return Into(self, out)

    def _set_recent(self, recent: tuple[Quick, ...]) -> None:
        self.recent = recent
        attach(self, Jitted, self.recent)

    def program(self, *args: Any, **kwargs: Any) -> Staged:
        """The program for arguments of this form."""
        call = Call.of(args, kwargs, self.engine)
        return self._program(call, self._key(call)).staged

    def _as_it_is(self, *args: Any, **kwargs: Any) -> Any:
        f = self.f if innermost_level() is None else seen(self.f)
        return f(*args, **kwargs)

    def _fall_back(self, call: Call, error: Exception) -> Any:
        """The value of the function itself; the first time after a warning that says why."""
        args, kwargs = unflatten(call.structure, call.on_host())
        value = self._as_it_is(*args, **kwargs)
        if not self.refused:
            why = str(error) if isinstance(error, LinearaError) else repr(error)
            said = f"jit: {self.name} runs as it is, since it cannot be captured: {why}"
            warn_at_users_line(said, UserWarning)
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
            if _may_run(e):
                e.add_note(WAYS_OUT)
            raise
        known.staged.program.tell_what_took_long(f"{self.name} was captured")
        self.history.append(why)
        self._set_recent(())
        self.programs[self._key(call)] = known  # numbers may have become constants
        return known

    def captured(self, call: Call, now: Reading | None = None) -> Captured:
        """The function captured anew; numbers that Python needs become constants."""
        begun = time.thread_time()
        constants = self.constants.setdefault(call.structure, {})
        before = {**constants}
        others = [v for v in call.leaves if not isinstance(v, Traced) and not _is_numeric(v)]
        others += {e.kind.cls: None for e in call.structure.entries if e is not None}
        reached, drawn = Reach(self.f, *others), Snapshot(*GENERATORS)
        arrays = inputs = reached.inputs() if now is None else now.inputs
        if len(reached.seen) >= LIMIT:
            raise StagingError(
                f"jit: {self.name} reaches more than {LIMIT} objects, and whether they "
                "have changed is looked at in each call; pass what it needs as arguments"
            )
        if unseen := reached.unseen():
            raise StagingError(
                f"jit: {self.name} reaches {with_article(type(unseen[0]).__name__)}, which does "
                "not tell what it holds, so a change of it would not be seen; pass what is needed "
                "of it as an argument"
            )

        how, refused = now, None

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
                if refused is not None:
                    raise refused from None
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
                    every = {} if final or now else reached.inputs(small=True)
                    if every.keys() == arrays.keys():
                        raise
                    refused, inputs = e, every  # a copy of a small one may be written, too
                    continue
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
            steps = staged.program.seconds
            steps["capture"] = time.thread_time() - begun - steps["passes"]
            form = None
            if not staged.writes and not _reports(staged):
                args, kwargs = unflatten(call.structure, call.values)
                form = form_of(args, kwargs, call.structure, constants)
            return Captured(staged, reached, guard, form, Errors.now())

    def _why(self, call: Call, key: Any) -> str:
        """How a call differs from the one before that was captured."""
        if not self.programs:
            return "it was called for the first time"
        before = [*self.programs][-1]
        if before[0] != key[0]:
            return "the arguments are other containers"
        names = names_of_leaves(self.f, call.args, call.kwargs)
        for name, was, form, v in zip(names, before[1], key[1], call.leaves, strict=True):
            if was != form:
                return f"{name} is {show_form(v, form)}"
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
            return t, weakness(v), narrow(t.shape, strides_of(v)), is_of_array(v)
    return plain_key(v)


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
        return v.dtype.kind in "fciub" and not has_own_rules(v)
    return isinstance(v, float | complex)


def _is_whole(v: Leaf) -> bool:
    """Whether a leaf may be an input as a whole number: one that fits into an int64."""
    return type(v) is int and v.bit_length() < 64


def _may_run(error: LinearaError) -> bool:
    """Whether Python may run a function that is refused: not with another result, or an axis."""
    return error.refuses and not (isinstance(error, StagingError) and error.final)


def _reports(staged: Staged) -> bool:
    """Whether a program does something beside giving values and raising exceptions."""
    bodies = [d.body for d in staged.program.outline.defs.values()]
    every = [e for body in bodies for e in ir.leaves(body) if isinstance(e, ir.Prim)]
    acting = [e.params["effect"] for e in every if isinstance(e.primitive, Report)]
    return not all(map(only_raises, acting))


def _line_within(error: BaseException) -> str | None:
    """The line of the program that has raised an error, if that is told."""
    told = [*f"{error}".splitlines(), *getattr(error, "__notes__", ())]
    lines = [t.strip().removeprefix("at ") for t in told if t.strip().startswith("at ")]
    return lines[0] if lines else None


P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    f: Callable[P, R], *, exact: bool = False, fallback: bool = False, engine: Engine | str = ...
) -> Callable[P, R]: ...
@overload
def jit(
    f: None = None, *, exact: bool = False, fallback: bool = False, engine: Engine | str = ...
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def jit(
    f: Callable[..., Any] | None = None,
    *,
    exact: bool = False,
    fallback: bool = False,
    engine: Engine | str = DEFAULT,
) -> Any:
    """f, captured as a program when it is first called with arguments of some form.

    Branches and loops that depend on the arguments are those of the program.  Numbers and arrays
    are inputs of it; whole numbers of Python's are constants where Python needs them, as the length
    of a list, and so is all else.  For another constant the function is captured again.
    TypeMismatchError where f is no function, ProgramError where there is no engine of the name;
    StagingError in the call, where f cannot be captured.

    exact      values are what NumPy and Python make of the program, one operation after another, to
               the last bit: `engine` is its exact twin, "native exact" for "native".  Those of f
               itself may differ in the last bits, where the program has other operations
    fallback   an f that cannot be captured is run as it is, and a UserWarning says why, once
    engine     the one that runs the program, by its name: "adaptive" interprets it until compiling
               it pays, "native" compiles it before it is run first, and one that it does not take
               is a ProgramError; "interpreter" never does.  "jax" runs it by XLA: arguments may be
               arrays of JAX's, and results are; an engine itself may be given, too.  Within
               `with lineara.engine(...)` that engine runs what names none

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
    if exact or engine != "jax":  # which is loaded when it is needed
        engine_of(exact_engine(engine) if exact else engine)
    return Jitted(f, exact, fallback, engine)


__all__ = ["Jitted", "jit"]

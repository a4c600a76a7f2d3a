"""What a rewritten test calls: each floating value that it makes becomes a leaf of a derivative.

The values are those of the plain run, bit for bit; a derivative is followed beside them.  What a
test compares goes back to plain numbers first, so that NumPy's own comparisons look at them.

Loaded under a name that Lineara takes for its own: the code here is not followed.
"""

import contextlib
import functools
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import lanes
import numpy as np
import programs

import lineara
from lineara.errors import LinearaError, StagingError
from lineara.facts.registry import registry
from lineara.staging.staged_arrays import Cell, Region
from lineara.staging.staged_level import StagedLevel
from lineara.tape.level import Level
from lineara.tape.levels import innermost_level, threads
from lineara.tape.node import Array, Scalar, Traced, plain, staged
from lineara.tape.swallowed_errors import raise_swallowed
from lineara.tape.written_arrays import Written

SECONDS = 20  # of the processor; a test that takes longer is not judged
LARGE = 200_000  # elements; a larger array stays plain, for the sake of memory
_NUMBERS = {np.dtype(char).type for char in "efdgFDG"}
OPTIONS = {"lift": "none"}  # or "tape", or "lanes": the plugin sets it


def lift(value: Any) -> Any:
    """A value that the test made, as a leaf of the open differentiation if it is floating."""
    kind = type(value)
    if kind is float or kind is complex or kind in _NUMBERS:
        level = innermost_level()
        return _LEAF.get(type(level), _as_it_is)(level, value) if _moves(value) else value
    if kind is np.ndarray or isinstance(value, Written):
        level = innermost_level()
        if type(level) in _LEAF and sys.getrefcount(value) <= _FRESH:
            return _lifted_array(level, value)
    return value


def _moves(value: Any) -> bool:
    """Whether a number is to be lifted; `np.nan` is known by its identity."""
    return np.result_type(value).char in "fdFD" and value is not np.nan


def _on_tape(level: Level, value: Any) -> Any:
    node = level.scalar(value) if type(value) is float else level.wrap(value)
    level.roots.append(node)
    return level.buffer(node) if np.ndim(value) else node


def _in_lane(level: StagedLevel, value: Any) -> Any:
    lane = lanes.lane()
    return value if lane is None else lane.lifted(value)


def _as_it_is(level: Any, value: Any) -> Any:
    return value


_LEAF = {Level: _on_tape, StagedLevel: _in_lane}


def _references(value: Any) -> int:
    return sys.getrefcount(value)


_FRESH = _references(np.zeros(1))  # of a value that nobody but the call has
_ALONE = Region.whole(Cell(None, np.zeros(1), ()))
_HELD = _references(_ALONE.buffer)  # of a storage that one array shows


def _lifted_array(level: Level, value: Any) -> Any:
    """A new array; one of which others see a part stays as it is, since they would see writes."""
    own = type(value) is np.ndarray
    content = value if own else value.constant()
    if content is None or content.dtype.char not in "fdFD" or not content.dtype.isnative:
        return value
    if not content.ndim or not 0 < content.size < LARGE:
        return value
    if own and value.base is not None and sys.getrefcount(value.base) > 2:
        return value
    if not own and (value.level is not level or _is_shared(value.w.buffer)):
        return value
    return _LEAF[type(level)](level, content.copy(order="K"))


def _is_shared(buffer: Any) -> bool:
    """Whether others see a part of the storage."""
    if isinstance(buffer, Cell):
        return sys.getrefcount(buffer) > _HELD or bool(buffer.given)
    return buffer.shared


def _originals() -> dict[int, type]:
    """The class of numbers that each of our stand-ins stands for."""
    numbers = [f for f in registry.foreign.values() if f.kind == "class"]
    return {id(f.stand_in): f.original for f in numbers}


def unlift(value: Any) -> Any:
    """The plain value, also in containers."""
    lane = lanes.lane()
    if lane is not None:
        nodes = list(_staged(value))
        known = dict(zip(map(id, nodes), lane.values(nodes), strict=True)) if nodes else {}
        return _unlifted(value, lambda n: known.get(id(n), n))
    return _unlifted(value, _off_tape)


def _staged(value: Any) -> Iterator[Any]:
    """The values of a lane in what is compared."""
    if isinstance(value, Traced) and value.level.open:
        yield value
    elif type(value) in (list, tuple, dict):
        for v in value.values() if type(value) is dict else value:
            yield from _staged(v)
    elif type(value) is np.ndarray and value.dtype.kind == "O":
        for v in value.flat:
            yield from _staged(v if v is not value else None)


def _unlifted(value: Any, plainly: Callable[[Any], Any]) -> Any:
    if isinstance(value, Traced):
        return plainly(value)
    kind = type(value)
    if isinstance(value, type):
        return _originals().get(id(value), value)
    if kind is list or kind is tuple:
        return kind([_unlifted(v, plainly) for v in value])
    if kind is np.ndarray and value.dtype.kind == "O":
        known = np.empty(value.shape, object)
        for at in np.ndindex(value.shape):
            known[at] = value[at] if value[at] is value else _unlifted(value[at], plainly)
        return known
    return {k: _unlifted(v, plainly) for k, v in value.items()} if kind is dict else value


def _off_tape(value: Any) -> Any:
    if not value.level.open:
        return value
    found = plain(value)
    if isinstance(value, Array):
        return np.asarray(found)  # also without axes
    return np.float64(found) if not value.weak and type(found) is float else found


# --- tests ---------------------------------------------------------------------------------------


class Late(Exception):
    """The test takes too long."""


class _Stop(KeyboardInterrupt):
    """Which a subtest lets out."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise _Stop

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except _Stop:
        raise Late(f"more than {SECONDS} s") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def lifted(test: Any) -> Any:
    """The test, run inside of a differentiation."""
    if inspect.isgeneratorfunction(test) or inspect.iscoroutinefunction(test):
        return test

    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> Any:
        if OPTIONS["lift"] == "none":
            return test(*args, **options)
        program = programs.of(test, args, options, lift, _Tell())
        with _limited():
            if OPTIONS["lift"] == "tape":
                lineara.grad(program)(1.0)
            else:
                lineara.vmap(program)(np.ones(1))

    return run


class _Tell:
    """A refusal that somebody caught is what went wrong, if something did."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            lanes.close()
        elif not isinstance(error, LinearaError):
            raise_swallowed(threads.refused)
            _refuse_late()


def _refuse_late() -> None:
    """Raise what a program refuses as it runs: the test went on without it."""
    try:
        lanes.settle()
    except LinearaError:
        raise
    except Exception:  # what plain numbers may raise, too
        return


class _Raises:
    """`pytest.raises` and its kin, which let our refusals pass."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __enter__(self) -> Any:
        return self.made.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if isinstance(error, LinearaError) and (error.refuses or isinstance(error, StagingError)):
            return False
        try:
            if error is None:
                lanes.settle()
        except Exception as late:  # what the program raises as it runs
            kind, error, trace = type(late), late, late.__traceback__
            if not self.made.__exit__(kind, error, trace):
                raise
            return True
        try:
            return self.made.__exit__(kind, error, trace)
        except BaseException:
            if isinstance(error, LinearaError):
                error.message = f"behind raises: {error.message}"
                raise error from None
            raise


def raises(form: Any, *args: Any, **options: Any) -> Any:
    """A form that expects an exception or a warning, as a context or of a call."""
    call = next((i for i, a in enumerate(args) if i and callable(a)), None)
    if call is None:
        return _Raises(form(*args, **options))
    with _Raises(form(*args[:call])):
        return args[call](*args[call + 1 :], **options)
    return None


def truth(value: Any) -> Any:
    """What `is` looks at: a truth value of a lane as what it is, anything else itself."""
    boolean = isinstance(value, Scalar) and staged(value) and value.dtype.kind == "b"
    return unlift(value) if boolean else value


GIVEN = MappingProxyType(
    {
        "_lift": lift,
        "_lifted_test": lifted,
        "_raises": raises,
        "_truth": truth,
        "_unlift": unlift,
    }
)

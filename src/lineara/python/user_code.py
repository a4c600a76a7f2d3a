"""The overlay of differentiation: NumPy, SciPy, math and some builtins, seen through ours."""

import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, NoReturn

import numpy as np

from lineara.containers.boundary import forget_classes, shown
from lineara.errors import OutOfRoom
from lineara.facts.hints import Value
from lineara.facts.primitive import registry
from lineara.facts.registry import stands_for
from lineara.ops.apply_functions import Vectorized
from lineara.python.array_makers import any_traced
from lineara.python.overlay import Overlay
from lineara.python.stand_ins import class_of, is_instance, replacements
from lineara.tape.levels import collector, threads
from lineara.tape.node import Traced


@dataclass(frozen=True, eq=False)  # one is asked for at every look at the overlay: by identity
class Way:
    """How the user's functions are read: the code that a copy runs, and what that finds."""

    read: Callable[[FunctionType], CodeType]  # the code that a copy runs
    forms: Any  # what that code calls
    builtins: tuple[tuple[Any, Any], ...]  # builtins, and what stands in for them
    inside: Callable[[Any], Any]  # prepares a function that is differentiated there


class Reading:
    """A trace that reads functions in some way, and what it has found of them so far.

    way          how they are read
    calls        whether the program stands for calls of its function
    function     the function that is traced
    inputs       the arrays of outside of it that are inputs of the program, by their ids
    outside      what that reaches, once it is asked for
    refusals     why loops could not be forms, by their code
    carries      what loops carried when they were written last, by their code
    statements   what branches and loops became, by their code
    called       the code of the functions that were called
    recursive    the code that calls itself where staged values decide, and which of its whole
                 numbers change from call to call
    entered      the calls of such code that go on, and where
    choosing     the loops that may carry one of several values, by their code
    left         which of such values are left in the block that is being written
    missed       the variables that were read where they may have no value, in this order
    tries        the tries whose blocks are being written, the innermost last
    regions      the blocks in them, which are split where something may raise
    sites        the exceptions that may be raised in them, by their codes
    told         what conditions tell of these, by their variables
    rooms        for how many items there is room in lists whose growth depends on values
    lines        whether variables of the program know the user's lines
    """

    way: Way
    inputs: Mapping[int, Any]
    function: Callable[..., Any]
    calls: bool

    def __init__(
        self, way: Way, calls: bool, function: Callable[..., Any], rooms: "Rooms | None" = None,
        inputs: Mapping[int, Any] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.way, self.calls, self.function, self.inputs = way, calls, function, inputs
        self.recursive: dict[CodeType, set[int]] = {}
        self.rooms: Rooms = Rooms() if rooms is None else rooms
        self.lines = False
        self.begin()

    def begin(self) -> None:
        """Forget what was found, but which functions call themselves."""
        self.outside: Any = None
        self.refusals: dict[CodeType, list[Exception]] = defaultdict(list)
        self.carries: dict[CodeType, Any] = {}
        self.statements: dict[CodeType, Any] = {}
        self.called: set[CodeType] = set()
        self.entered: dict[CodeType, list[Any]] = defaultdict(list)
        self.choosing: set[CodeType] = set()
        self.left: dict[int, tuple[Any, frozenset[int]]] = {}
        self.missed: list[str] = []
        self.tries: list[Any] = []
        self.regions: list[Any] = []
        self.sites: list[Any] = []
        self.told: dict[Any, Any] = {}

    def traced(self, trace: Callable[[], Any]) -> Any:
        """What a trace gives; it begins again where it asks for that."""
        while True:
            try:
                return trace()
            except Again as again:
                if again.reading is not self:
                    raise
                self.begin()
            finally:
                _overlay(self.way).kept.tidy()  # the trace has ended: let go of what was traced

    def again(self) -> NoReturn:
        """Begin the trace again, with what has been found of functions that call themselves."""
        raise Again(self)


class Rooms:
    """For how many items programs of a function have room, by the place where a list grows.

    How long a list becomes is known where the program runs, which says it where that is too long.
    """

    FIRST, FACTOR = 64, 4

    def __init__(self) -> None:
        self.at: dict[Any, int] = {}
        self.errors: dict[str, Any] = {}  # the places, by what programs say

    def of(self, place: Any, line: str) -> tuple[int, str]:
        """The room at a place, and what a program says where a list becomes longer."""
        room = self.at.setdefault(place, self.FIRST)
        said = (
            f"a list became longer than {room} items, for which this program has room, in a loop "
            f"whose number of rounds depends on values ({line}); trace the function again, with "
            "arguments for which it becomes as long"
        )
        self.errors[said] = place, room * self.FACTOR
        return room, said

    def outgrown(self, error: OutOfRoom) -> bool:
        """Whether a program has failed for want of room; then there is more in the next one."""
        known = self.errors.get(error.message)
        if known is not None:
            place, room = known
            self.at[place] = max(self.at[place], room)
        return known is not None


class Again(BaseException):
    """A trace is to begin again."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading


def reading() -> Reading | None:
    """How functions are read just now; None where copies run the code that they have."""
    for level in reversed(threads.open):
        if level.reading is not None:
            return level.reading
    return None


def input_level(a: Any) -> Any:
    """The open level of which an array of outside is an input; of None, any that has inputs."""
    for level in threads.open:  # those of a trace have one reading, and its inputs are the first's
        inputs = level.reading.inputs if level.reading is not None else ()
        if inputs and (a is None or id(a) in inputs):
            return level
    return None


def shows(x: object, way: Way) -> bool:
    """Whether copied code sees an object through a view."""
    return _overlay(way).replace(x) is not x


_making = threading.RLock()


def overlay() -> Overlay:
    """The overlay of the process, or of the way in which functions are read just now.

    It holds copies of functions and no state of a trace.
    """
    now = reading()
    return _overlay(None if now is None else now.way)


@functools.cache
def _overlay(way: Way | None) -> Overlay:
    with _making:  # threads that ask for the first time at once get the same one
        return _new_overlay(way)


@functools.cache
def _new_overlay(way: Way | None) -> Overlay:
    table: dict[int, Any] = {}
    objects: dict[type, Callable[[Any], Any]] = {}
    arrivals = -1

    def copy(f: Callable[..., Any]) -> Callable[..., Any]:
        return seen.followed(f)

    def arrive() -> bool:
        """Whether modules have been imported since; their functions have their stand-ins."""
        nonlocal arrivals
        registry.arrive()
        if arrivals == registry.arrivals:
            return False
        arrivals = registry.arrivals
        table.update(replacements(copy, known=table))
        if way is not None:
            table.update({id(old): new for old, new in way.builtins})
        objects.update({f: r.of_object for f, r in registry.foreign.items() if r.of_object})
        forget_classes()
        return True

    arrive()
    packages = ["numpy", "math", "cmath", "statistics", "scipy", "pandas", "pickle"]
    seen = Overlay(table, packages, is_instance, class_of, objects, arrive, _is_traced)
    if way is not None:
        seen.read, seen.forms, seen.inputs = way.read, way.forms, input_level
    if way is None:
        collector.keeper = seen.kept
    return seen


def _is_traced(value: Value) -> bool:
    return issubclass(type(value), Traced)


def _vectorized(v: np.vectorize) -> Any:
    """np.vectorize made outside of the differentiated function: its function sees our NumPy."""
    f = overlay().replace(v.pyfunc)
    return Vectorized(f, v.otypes, v.__doc__, v.excluded, v.cache, v.signature)


registry.declare(np.vectorize, of_object=_vectorized)


@stands_for("numba.core.registry.CPUDispatcher")
def _compiled_by_numba(dispatcher: Any) -> Any:
    """A function that numba compiled: traced values go to the Python function behind it."""
    f = overlay().replace(dispatcher.py_func)

    @functools.wraps(dispatcher.py_func)
    def call(*args: Any, **kwargs: Any) -> Any:
        traced = any_traced(args) or any_traced(kwargs.values())
        return (f if traced else dispatcher)(*args, **kwargs)

    return call


def _told_to_numpy(ask: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's that takes or gives functions of NumPy's."""

    @functools.wraps(ask)
    def call(*functions: Any) -> Any:
        functions_asked = ask(*map(overlay().original, functions))
        return (
            set(map(overlay().replace, functions_asked))
            if isinstance(functions_asked, set)
            else functions_asked
        )

    return call


def _declare(ask: Callable[..., Any]) -> None:
    registry.declare(ask, stand_in=_told_to_numpy(ask))


for _name in ("allows_array_function_override", "allows_array_ufunc_override"):
    registry.await_(f"numpy.testing.overrides.{_name}", _declare)
for _name in ("get_overridable_numpy_array_functions", "get_overridable_numpy_ufuncs"):
    registry.await_(f"numpy.testing.overrides.{_name}", _declare)


def seen(f: Callable[..., Any]) -> Callable[..., Any]:
    """The user's function, seeing our NumPy."""
    now = reading()
    if now is None:
        return _overlay(None)(f)
    return now.way.inside(_overlay(now.way)(f))


def seen_eagerly(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same as outside of a trace: no branch, loop or call of it is read for a program."""
    return _overlay(None)(f)


def restored(result: Any) -> Any:
    """A result of the user's own classes, not of their twins."""
    return overlay().restore(result)


class _Method:
    """A class of the user's whose instance is an argument, or a method, seeing our NumPy.

    What is made of classes is kept under the hash, so it is made for each way to read functions.
    """

    def __call__(self, f: Any) -> Any:
        return overlay().replace(f)

    def __hash__(self) -> int:
        now = reading()
        return 0 if now is None else hash(now.way)

    def __eq__(self, other: object) -> bool:
        return self is other


method: _Method = _Method()


def lifted(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments that we put together; containers become proxies, whose methods see our NumPy."""
    return tuple(shown(a, method) for a in args)

"""A program that is machine code: it is called with values, and calls back.

Each run has an `io` of its own, so threads may run one kernel at a time, and the GIL is released
while they do; the io and the workspace of the last run are kept for the next one, until there is a
direct call, which keeps a workspace of its own.
"""

import ctypes
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lineara.engines.native.direct import LARGEST_KEPT, builtin, maker, objects_of
from lineara.engines.native.emit import Site
from lineara.engines.native.emitted import keep
from lineara.engines.native.layouts import lay_of
from lineara.engines.native.lower import Lowered
from lineara.engines.native.machine_code import Compiler
from lineara.engines.native.numbers import FLOATS, TYPES, C, Lay, extent, word_of
from lineara.engines.native.symbols import address_of
from lineara.engines.native.thread_stack import ends_of_stack
from lineara.engines.native.vector_loops import quicker
from lineara.facts.types import ArrayType
from lineara.linear_a.check import Judge
from lineara.linear_a.program import Program

ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
NUMBERS: dict[str, Any] = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "bool": ctypes.c_bool,
}  # fmt: skip
WORD = ctypes.c_int64.from_address


class Relaid(Exception):
    """NumPy lays a result out otherwise, so that later sums would have another order."""


class Doubted(Exception):
    """A factor was not finite, so the masks of products have to be looked at."""


class TooDeep(Exception):
    """The stack has an end before the recursion, so the interpreter has this run."""


class Io:
    """What a run hands to the code, and the memory that it works in."""

    def __init__(self, words: int, workspace: int) -> None:
        self.memory: bytearray = bytearray(8 * max(words, 1))
        view = memoryview(self.memory)
        self.views: dict[str, memoryview[Any]] = {
            "f64": view.cast("d"), "f32": view.cast("f")[::2], "i64": view.cast("q"),
        }  # fmt: skip
        self.address: int = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.workspace: np.ndarray = np.empty(workspace + 64, np.uint8)
        begin = self.workspace.__array_interface__["data"][0]
        self.begin: Any = begin + -begin % 64


class Kernel:
    """A definition as machine code."""

    def __init__(self, program: Program, code: Lowered, compiler: Compiler) -> None:
        self.program = program
        self.code = code
        self.answer: Callable[..., Any] = ANSWER(self._answer)
        if code.stack is not None and threading.current_thread() is threading.main_thread():
            code.constants[code.stack][:] = ends_of_stack()  # of a direct call
        symbols = {name: quicker(name, a, compiler) for name, a in code.addresses.items()}
        if code.sites:
            address = ctypes.cast(self.answer, ctypes.c_void_p).value
            assert address is not None
            symbols["lineara.answer"] = address
        self.library: Any = self._loaded(compiler, symbols)
        self.run: Callable[..., Any] = RUN(self.library["run"])
        self.inputs: list[str | None] = [word_of(t) for t in code.inputs]
        self.outputs: list[str | None] = [word_of(t) for t in code.outputs]
        self.free: list[Io] = []
        self.table: np.ndarray | None = None  # of direct calls
        self.calls: dict[tuple[bool, ...], weakref.ref[Any]] = {}  # by which results are Python's
        self.errors: dict[int, BaseException] = {}
        self.answers: list[Answer] = list(map(Answer, code.sites))
        # of each site: how often, seconds in all
        self.asked: list[list[float]] = [[0, 0.0] for _ in code.sites]
        self.numbers: Iterator[int] = itertools.count()
        self.slots: list[tuple[int, int]] = [
            (i, p) for i, p in enumerate(code.places) if p is not None
        ]
        self.first_slot: int = len(code.inputs) + len(code.constants)
        self.first_output: int = self.first_slot + len(self.slots)

    def _loaded(self, compiler: Compiler, symbols: dict[str, int]) -> Any:
        """The code in memory: what was on disk, or what LLVM makes of the text."""
        code, machine_code = self.code, self.code.machine_code
        if not code.key:
            return compiler.loaded(code.text, code.leaves, symbols)
        if not machine_code:
            machine_code = compiler.object_code(code.text, code.leaves)
            keep(self.program, code, machine_code)
        return compiler.linked(machine_code, symbols, ["run", *["call"] * code.is_direct])

    def io(self) -> Io:
        """What no other run has; the addresses in it that are always the same are there."""
        try:
            return self.free.pop()
        except IndexError:  # all that there are run
            pass
        io = Io(self.first_output + len(self.outputs), self.code.workspace)
        words = io.views["i64"]
        for i, array in enumerate(self.code.constants):
            words[len(self.inputs) + i] = array.__array_interface__["data"][0]
        for i, (_, place) in enumerate(self.slots):  # a result has new memory in each run
            words[self.first_slot + i] = io.begin + place
        return io

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The results, arrays and numbers in a row; of arguments in a row, of the right types."""
        io = self.io()
        words = io.views["i64"]
        if self.code.stack is not None:
            ends = ends_of_stack()
            words[len(self.inputs) + self.code.stack] = ends.__array_interface__["data"][0]
        for i, (kind, value) in enumerate(zip(self.inputs, values, strict=True)):
            if kind is None:
                words[i] = value.__array_interface__["data"][0]
            elif kind in FLOATS:
                io.views[kind][i] = value
            else:
                words[i] = int(value)
        results: list[Any] = [None] * len(self.outputs)
        for i, (slot, _) in enumerate(self.slots):
            place = self.code.bound.get(slot)
            if place is not None:
                t = self.code.outputs[place]
                results[place] = np.empty(t.shape, t.dtype)
                words[self.first_slot + i] = results[place].__array_interface__["data"][0]
        run = next(self.numbers)
        status = self.run(io.address, run)
        for i, kind in enumerate(self.outputs, self.first_output):
            if kind:
                number = io.memory[8 * i] if kind == "bool" else io.views[kind][i]
                results[i - self.first_output] = TYPES[kind].dtype.type(number)
        if self.table is None and self.code.workspace <= LARGEST_KEPT:
            self.free.append(io)
        if status:
            raise self._error(status, run)
        results = [y[()] if isinstance(y, np.ndarray) and not y.ndim else y for y in results]
        for place, axes in self.code.turned.items():
            results[place] = results[place].transpose(axes)
        return results

    def _error(self, status: int, number: int) -> BaseException:
        """Why a run did not end well."""
        if status == 2:
            return MemoryError("the tape of a loop found no memory to grow")
        if status == 3:
            return Doubted("a factor is infinite or no number")
        if status % 8 == 4:
            if self.code.acts or status // 8 >= sys.getrecursionlimit():
                return Judge(self.program.whole, "").too_deep()
            return TooDeep("a recursion is deeper than the stack of the thread")
        return self.errors.pop(number, KeyboardInterrupt())  # none was stored: an interrupt

    # --- the direct call --------------------------------------------------------------------------

    def direct(self, weak: Sequence[bool]) -> Any:
        """A function of Python's objects, the arguments one by one, or None where there is none.

        It gives the result, or a tuple of them: numbers that are `weak` are Python's.  It gives
        NotImplemented for what does not fit, and where the run has to be done again.  While one is
        in use it is the one that is given.
        """
        if not self.code.is_direct:
            return None
        known = self.calls.get(tuple(weak))
        call = known() if known is not None else None
        if call is None:
            call = self._call(weak)
            self.calls[tuple(weak)] = weakref.ref(call)
        return call

    def _call(self, weak: Sequence[bool]) -> Any:
        """A direct call."""
        if self.table is None:
            places = [a.__array_interface__["data"][0] for a in self.code.constants]
            objects = objects_of(self.code.inputs, self.code.outputs)
            self.table = np.array([0, *places, *objects], np.int64)
            self.free.clear()
            weakref.finalize(self, _release, self.table)
        table = self.table.__array_interface__["data"][0]
        makers = [
            maker(t) if t.shape else NotImplemented if w else t.dtype.type
            for t, w in zip(self.code.outputs, weak, strict=True)
        ]
        held = (table, self._failed, NotImplemented, *makers, self)
        return builtin(self.library["call"], held)

    def _failed(self, told: int) -> Any:
        """What a direct call gives whose run did not end well, unless that is raised."""
        error = self._error(told % 8, told // 8)
        if isinstance(error, Doubted | Relaid | TooDeep):
            return NotImplemented
        raise error

    # --- calls back -------------------------------------------------------------------------------

    def _answer(self, number: int, place: int, address: int) -> None:
        """Answer a site: the values are read where the code has them, and the results put there."""
        begun = time.perf_counter()
        try:
            self.answers[place](address)
            WORD(address).value = 1
        except BaseException as error:
            self.errors[number] = error
        asked = self.asked[place]
        asked[0] += 1
        asked[1] += time.perf_counter() - begun


class Answer:
    """The answer of a site: values are read where the code has them, and the results put there.

    How is known before the first one, since a loop may call back in each round.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        lays = iter(site.lays)
        self.readers = [(_reader(t, next(lays)), 8 * i) for i, t in enumerate(site.operands, 1)]
        first = 8 * (1 + len(site.operands))
        self.writers = [(_writer(t, next(lays)), first + 8 * i) for i, t in enumerate(site.results)]

    def __call__(self, address: int) -> None:
        values = [read(address + place) for read, place in self.readers]
        with np.errstate(all="ignore"):
            results = self.site.answer(values)
        for (write, place), y in zip(self.writers, results, strict=True):
            write(address + place, y)


def _reader(t: ArrayType, lay: Lay) -> Callable[[int], Any]:
    """What reads an argument, a number or the address of an array, that stands at an address."""
    kind = word_of(t)
    if kind:
        make, number = t.dtype.type, NUMBERS[kind].from_address
        return lambda address: make(number(address).value)
    array = _arrays(t, lay)
    if not t.shape:
        return lambda address: array(WORD(address).value)[()]
    return lambda address: array(WORD(address).value)


def _writer(t: ArrayType, lay: Lay) -> Callable[[int, Any], None]:
    """What hands a result to the code."""
    kind = word_of(t)
    array = _arrays(t)

    def put(address: int, y: Any) -> None:
        if not kind:
            if lay is not None and np.ndim(y) > 1 and lay_of(y) != lay:
                raise Relaid(f"{t} comes out laid out by {lay_of(y)}, and not by {lay}")
            address = WORD(address).value
        assert np.shape(y) == t.shape, f"{t} should come out, and {np.shape(y)} does"
        if t.size:
            array(address)[...] = y

    return put


def _release(table: np.ndarray) -> None:
    """Give the workspace back that direct calls have kept."""
    kept, table[0] = int(table[0]), 0
    free = address_of("free")
    if kept and free is not None:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)(kept)


def _arrays(t: ArrayType, lay: Lay = C) -> Callable[[int], np.ndarray]:
    """What gives the array of that type and layout at an address."""
    shape, dtype = t
    if not t.size:
        return lambda _: np.empty(shape, dtype)
    n = extent(t, lay) if lay else t.size
    strides = tuple([k * dtype.itemsize for k in lay]) if lay else None
    memory: Any = (ctypes.c_char * (n * dtype.itemsize)).from_address
    return lambda address: np.ndarray(shape, dtype, memory(address), 0, strides)


__all__ = ["Doubted", "Kernel", "Relaid", "TooDeep"]

"""The direct call: from Python's objects to machine code and back, in machine code.

    ptr @call(ptr %self, ptr %args, i64 %n)     METH_FASTCALL; self is a tuple

Floats and whole numbers are read, arrays lend their memory, results are new; the GIL is released
while the definition runs, unless that is short.  After the arguments may come the arrays that
results are put into.  What does not fit gives NotImplemented, and the caller goes the long way; so
does it where the run has to be done again.  It has no loop, so LLVM does not make it faster: that
took longer than most definitions do, and no call was.

Objects are used by the documented functions of C.  An array of the very class and dtype that lies
as it should is read, and made, as NumPy's headers say, where they are right (symbols.py): the
buffer protocol takes longer than the rest of a call.

self holds the address of a table, what answers a failed run, NotImplemented, what makes each array
that is a result, and what makes NumPy's number of each result that is one, or NotImplemented for
Python's.  The table has the workspace that no run uses, the addresses of the constants, and what
arrays are read and made by: the class, what makes one, and the dtypes.
"""

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.engines.native.numbers import LLVM, kind_of
from lineara.engines.native.symbols import FIELDS, address_of, array_maker
from lineara.facts.types import ArrayType

WORDS = 4096  # of a call's io, which is on the stack
LARGEST_KEPT = 2**26
"""Bytes of a workspace that is kept from run to run."""
READ, WRITTEN = 0x38, 0x39  # PyBUF_C_CONTIGUOUS, and with PyBUF_WRITABLE
TABLE, FAILED, OTHER, MAKERS = range(4)  # where things stand in self
API = {
    "PyEval_RestoreThread": "void (ptr)",
    "PyEval_SaveThread": "ptr ()",
    "PyBool_FromLong": "ptr (i64)",
    "PyBuffer_Release": "void (ptr)",
    "PyErr_Clear": "void ()",
    "PyErr_NoMemory": "ptr ()",
    "PyErr_Occurred": "ptr ()",
    "PyFloat_AsDouble": "double (ptr)",
    "PyFloat_FromDouble": "ptr (double)",
    "PyLong_AsLongLong": "i64 (ptr)",
    "PyLong_AsVoidPtr": "ptr (ptr)",
    "PyLong_FromLongLong": "ptr (i64)",
    "PyObject_CallNoArgs": "ptr (ptr)",
    "PyObject_CallOneArg": "ptr (ptr, ptr)",
    "PyObject_GetBuffer": "i32 (ptr, ptr, i32)",
    "PyTuple_GetItem": "ptr (ptr, i64)",
    "PyTuple_New": "ptr (i64)",
    "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
    "Py_DecRef": "void (ptr)",
    "Py_IncRef": "void (ptr)",
    "malloc": "ptr (i64)",
    "free": "void (ptr)",
}


LYING = 0x0101  # NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED
WRITEABLE = 0x0400  # NPY_ARRAY_WRITEABLE
SHORT = 1000
"""Operations, and numbers in memory, up to which a run keeps the GIL: some microseconds."""


def described(inputs: Sequence[ArrayType], outputs: Sequence[ArrayType]) -> list[np.dtype]:
    """The dtypes of arrays that are read and made as NumPy's headers say; none where they are not.

    Those are NumPy's own, of which arrays have one object each; a type may have an equal one.
    """
    arrays = [t.dtype for t in (*inputs, *outputs) if t.shape]
    own = dict.fromkeys([np.dtype(d.char) for d in arrays if d == np.dtype(d.char)])
    return list(own) if array_maker() is not None else []


def objects_of(inputs: Sequence[ArrayType], outputs: Sequence[ArrayType]) -> list[int]:
    """What stands in the table of them: the class of arrays, what makes one, and the dtypes."""
    dtypes = described(inputs, outputs)
    return [id(np.ndarray), array_maker() or 0, *map(id, dtypes)] if dtypes else []


def is_direct(t: ArrayType, kinds: Sequence[str]) -> bool:
    """Whether an argument or a result is an array, or a number of one of these kinds."""
    return bool(t.shape) or kind_of(t) in kinds


class Text:
    """The text of `call`."""

    workspace: int
    slots: Sequence[tuple[int | None, int | None]]
    short: bool
    outputs: Sequence[ArrayType]
    inputs: Sequence[ArrayType]
    constants: int

    def __init__(
        self,
        inputs: Sequence[ArrayType],
        outputs: Sequence[ArrayType],
        constants: int,
        slots: Sequence[tuple[int | None, int | None]],
        workspace: int,
        short: bool,
    ) -> None:
        self.inputs, self.outputs, self.constants = inputs, outputs, constants
        self.slots, self.workspace, self.short = slots, workspace, short
        self.dtypes: list[np.dtype] = described(inputs, outputs)
        self.takes_results: bool = all([t.shape and t.dtype in self.dtypes for t in outputs])
        self.lines: list[str] = []
        self.used: dict[str, str] = {}
        self.names: int = 0

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def let(self, text: str) -> str:
        """The register of a result."""
        self.names += 1
        self.line(f"%v{self.names} = {text}")
        return f"%v{self.names}"

    def call(self, name: str, *args: str) -> str:
        """A call of a function of C's."""
        result, _, rest = API[name].partition(" (")
        self.used[f"py.{name}"] = f"{result} ({rest}"
        types = [t for t in rest.rstrip(")").split(", ") if t]
        given = ", ".join([f"{t} {a}" for t, a in zip(types, args, strict=True)])
        text = f'call {result} @"py.{name}"({given})'
        if result == "void":
            self.line(text)
            return ""
        return self.let(text)

    def must(self, condition: str, otherwise: str) -> None:
        """Go on where a condition holds."""
        self.names += 1
        self.line(f"br i1 {condition}, label %on{self.names}, label %{otherwise}")
        self.lines.append(f"on{self.names}:")

    def there(self, pointer: str, otherwise: str) -> str:
        """A pointer that is not null."""
        self.must(self.let(f"icmp ne ptr {pointer}, null"), otherwise)
        return pointer

    def at(self, base: str, i: int) -> str:
        """The address of a word."""
        return self.let(f"getelementptr inbounds i64, ptr {base}, i64 {i}")

    def held(self, i: int) -> str:
        """What self holds in a place."""
        return self.call("PyTuple_GetItem", "%self", str(i))

    def buffer(self, x: str, i: int, t: ArrayType, flags: int, otherwise: str) -> str:
        """The memory that an array lends; of another size, or not aligned, it does not fit."""
        view = self.at("%views", 10 * i)
        self.line("store i1 true, ptr %lent")
        lent = self.call("PyObject_GetBuffer", x, view, str(flags))
        self.must(self.let(f"icmp eq i32 {lent}, 0"), otherwise)
        memory = self.let(f"load ptr, ptr {view}")
        nbytes = self.let(f"load i64, ptr {self.at(view, 2)}")
        fine = self.let(f"icmp eq i64 {nbytes}, {t.size * t.dtype.itemsize}")
        low = self.let(f"and i64 {self.let(f'ptrtoint ptr {memory} to i64')}, 7")
        self.must(self.let(f"and i1 {fine}, {self.let(f'icmp eq i64 {low}, 0')}"), otherwise)
        return memory

    def field(self, x: str, name: str, kind: str = "ptr") -> str:
        """A field of an array."""
        return self.let(
            f"load {kind}, ptr " + self.let(f"getelementptr i8, ptr {x}, i64 {FIELDS[name]}")
        )

    def known(self, i: int) -> str:
        """One of the objects that arrays are read and made by."""
        return self.let(f"load ptr, ptr {self.at('%table', 1 + self.constants + i)}")

    def lent(self, x: str, i: int, t: ArrayType) -> None:
        """The word of an argument: its memory, read off the array or by the buffer protocol."""
        if t.dtype in self.dtypes:
            self.names += 1
            lend, ready = f"lend{self.names}", f"ready{self.names}"
            self.lies(x, t, LYING, lend)
            self.put(self.field(x, "DATA"), "ptr", i)
            self.line(f"br label %{ready}")
            self.lines.append(f"{lend}:")
            self.put(self.buffer(x, i, t, READ, "unfit"), "ptr", i)
            self.line(f"br label %{ready}")
            self.lines.append(f"{ready}:")
        else:
            self.put(self.buffer(x, i, t, READ, "unfit"), "ptr", i)

    def result(self, output: int, t: ArrayType, place: int) -> None:
        """The word of a result: the memory of the array that is given for it, or of a new one."""
        if not self.takes_results:
            self.put(self.new(output, t), "ptr", place)
            return
        self.names += 1
        given, make, ready = (f"{what}{self.names}" for what in ("given", "make", "ready"))
        self.line(f"br i1 %given, label %{given}, label %{make}")
        self.lines.append(f"{given}:")
        self.put(self.given(output, t), "ptr", place)
        self.line(f"br label %{ready}")
        self.lines.append(f"{make}:")
        self.put(self.new(output, t), "ptr", place)
        self.line(f"br label %{ready}")
        self.lines.append(f"{ready}:")

    def given(self, output: int, t: ArrayType) -> str:
        """The memory of an array that a result is put into; it shares none with an argument."""
        x = self.let(f"load ptr, ptr {self.at('%args', len(self.inputs) + output)}")
        self.lies(x, t, LYING | WRITEABLE, "unfit")
        data = self.field(x, "DATA")
        first = self.let(f"ptrtoint ptr {data} to i64")
        end = self.let(f"add i64 {first}, {t.size * t.dtype.itemsize}")
        for i, s in enumerate(self.inputs):
            if s.shape:
                theirs = self.let(f"load i64, ptr {self.at('%words', i)}")
                last = self.let(f"add i64 {theirs}, {s.size * s.dtype.itemsize}")
                below = self.let(f"icmp ule i64 {end}, {theirs}")
                above = self.let(f"icmp uge i64 {first}, {last}")
                self.must(self.let(f"or i1 {below}, {above}"), "unfit")
        self.call("Py_IncRef", x)
        self.line(f"store ptr {x}, ptr {self.at('%made', output)}")
        return data

    def lies(self, x: str, t: ArrayType, flags: int, otherwise: str) -> None:
        """Go on where an object is an array of that type, with these flags."""

        def same(kind: str, value: str, stated: object) -> None:
            self.must(self.let(f"icmp eq {kind} {value}, {stated}"), otherwise)

        same("ptr", self.field(x, "CLASS"), self.known(0))
        same("ptr", self.field(x, "DTYPE"), self.known(2 + self.dtypes.index(t.dtype)))
        same("i32", self.let(f"and i32 {self.field(x, 'FLAGS', 'i32')}, {flags}"), flags)
        same("i32", self.field(x, "AXES", "i32"), t.ndim)
        dims = self.field(x, "DIMS")
        for k, n in enumerate(t.shape):
            same("i64", self.let(f"load i64, ptr {self.at(dims, k)}"), n)

    def new(self, output: int, t: ArrayType) -> str:
        """The memory of a result, which is a new array."""
        if t.dtype not in self.dtypes:
            made = self.there(self.call("PyObject_CallNoArgs", self.held(MAKERS + output)), "over")
            self.line(f"store ptr {made}, ptr {self.at('%made', output)}")
            return self.buffer(made, len(self.inputs) + output, t, WRITTEN, "over")
        for k, n in enumerate(t.shape):
            self.line(f"store i64 {n}, ptr {self.at('%dims', k)}")
        of = f"ptr {self.known(0)}, i32 {t.ndim}, ptr %dims, i32 {t.dtype.num}"
        rest = "ptr null, ptr null, i32 0, i32 0, ptr null"
        made = self.there(self.let(f"call ptr {self.known(1)}({of}, {rest})"), "over")
        self.line(f"store ptr {made}, ptr {self.at('%made', output)}")
        return self.field(made, "DATA")

    def put(self, value: str, kind: str, i: int) -> None:
        """A word for the definition."""
        self.line(f"store {kind} {value}, ptr {self.at('%words', i)}")

    def arguments(self) -> None:
        """The words of the arguments."""
        for i, t in enumerate(self.inputs):
            x = self.let(f"load ptr, ptr {self.at('%args', i)}")
            if t.shape:
                self.lent(x, i, t)
                continue
            kind = kind_of(t)
            read, failed = "PyFloat_AsDouble", "fcmp oeq double {}, -1.0"
            if kind == "i64":
                read, failed = "PyLong_AsLongLong", "icmp eq i64 {}, -1"
            value = self.call(read, x)
            odd = self.let(failed.format(value))
            if kind == "f32":
                value = self.let(f"fptrunc double {value} to float")
            self.put(value, LLVM[kind or ""], i)
            self.names += 1
            ask, fine = f"ask{self.names}", f"fine{self.names}"
            self.line(f"br i1 {odd}, label %{ask}, label %{fine}")
            self.lines.append(f"{ask}:")
            error = self.call("PyErr_Occurred")
            none = self.let(f"icmp eq ptr {error}, null")
            self.line(f"br i1 {none}, label %{fine}, label %unfit")
            self.lines.append(f"{fine}:")

    def memory(self) -> None:
        """The words of the constants and the slots; results are made."""
        k = len(self.inputs)
        for i in range(self.constants):
            self.put(self.let(f"load ptr, ptr {self.at('%table', 1 + i)}"), "ptr", k + i)
        k += self.constants
        for i, (place, output) in enumerate(self.slots):
            if output is None:
                where = self.let(f"getelementptr inbounds i8, ptr %begin, i64 {place}")
                self.put(where, "ptr", k + i)
            else:
                self.result(output, self.outputs[output], k + i)

    def numbers(self, first: int) -> None:
        """The results that are numbers, as Python's or as NumPy's."""
        for i, t in enumerate(self.outputs):
            if t.shape:
                continue
            kind, word = kind_of(t), self.at("%words", first + i)
            if kind == "bool":
                byte = self.let(f"load i8, ptr {word}")
                y = self.call("PyBool_FromLong", self.let(f"zext i8 {byte} to i64"))
            elif kind == "i64":
                y = self.call("PyLong_FromLongLong", self.let(f"load i64, ptr {word}"))
            else:
                value = self.let(f"load {LLVM[kind or '']}, ptr {word}")
                if kind == "f32":
                    value = self.let(f"fpext float {value} to double")
                y = self.call("PyFloat_FromDouble", value)
            self.there(y, "over")
            place = self.at("%made", i)
            self.line(f"store ptr {y}, ptr {place}")
            how, other = self.held(MAKERS + i), self.held(OTHER)
            self.names += 1
            as_numpys, done = f"as{self.names}", f"done{self.names}"
            plain = self.let(f"icmp eq ptr {how}, {other}")
            self.line(f"br i1 {plain}, label %{done}, label %{as_numpys}")
            self.lines.append(f"{as_numpys}:")
            z = self.call("PyObject_CallOneArg", how, y)
            self.call("Py_DecRef", y)
            self.line(f"store ptr {z}, ptr {place}")
            self.there(z, "over")
            self.line(f"br label %{done}")
            self.lines.append(f"{done}:")

    def text(self) -> str:
        """The function."""
        first = len(self.inputs) + self.constants + len(self.slots)
        views, made = len(self.inputs) + len(self.outputs), len(self.outputs)
        self.lines += [
            "define ptr @call(ptr %self, ptr %args, i64 %n) noinline optnone {",
            "entry:",
            f"  %words = alloca [{first + made + 1} x i64], align 64",
            f"  %views = alloca [{10 * views + 1} x i64], align 16",
            f"  %made = alloca [{made + 1} x ptr], align 16",
            f"  %dims = alloca [{max([t.ndim for t in self.outputs], default=0) + 1} x i64]",
            "  %answer = alloca ptr",
            "  %used = alloca ptr",
            "  store ptr null, ptr %answer",
            "  store ptr null, ptr %used",
            "  %lent = alloca i1",
            "  store i1 false, ptr %lent",
        ]
        for i in range(views):
            self.line(f"store ptr null, ptr {self.at('%views', 10 * i + 1)}")
        for i in range(made):
            self.line(f"store ptr null, ptr {self.at('%made', i)}")
        table = self.call("PyLong_AsVoidPtr", self.held(TABLE))
        self.line(f"%table = getelementptr inbounds i8, ptr {table}, i64 0")
        many, more = len(self.inputs), len(self.inputs) + len(self.outputs)
        self.line(f"%fresh = icmp eq i64 %n, {many}")
        self.line(f"%given = icmp eq i64 %n, {more if self.takes_results else many}")
        self.line("%many = or i1 %fresh, %given")
        self.must("%many", "unfit")
        self.arguments()
        if self.workspace:
            self.works()
        self.memory()
        thread = "" if self.short else self.call("PyEval_SaveThread")
        number = self.let("ptrtoint ptr %words to i64")
        status = self.let(f"call i32 @run(ptr %words, i64 {number})")
        if thread:
            self.call("PyEval_RestoreThread", thread)
        self.names += 1
        self.line(f"br i1 {self.let(f'icmp eq i32 {status}, 0')}, label %ran, label %failed")
        self.lines.append("failed:")
        wide = self.let(f"zext i32 {status} to i64")
        told = self.let(f"add i64 {self.let(f'mul i64 {number}, 8')}, {wide}")
        argument = self.call("PyLong_FromLongLong", told)
        self.there(argument, "over")
        raised = self.call("PyObject_CallOneArg", self.held(FAILED), argument)
        self.call("Py_DecRef", argument)
        self.line(f"store ptr {raised}, ptr %answer")
        self.line("br label %over")
        self.lines.append("ran:")
        self.numbers(first)
        self.handed_over()
        self.line("br label %views.over")
        self.lines.append("unfit:")
        self.call("PyErr_Clear")
        other = self.held(OTHER)
        self.call("Py_IncRef", other)
        self.line(f"store ptr {other}, ptr %answer")
        self.line("br label %over")
        self.lines.append("over:")
        for i in range(made):
            self.call("Py_DecRef", self.let(f"load ptr, ptr {self.at('%made', i)}"))
        self.line("br label %views.over")
        self.lines.append("views.over:")
        any_ = self.let("load i1, ptr %lent")
        self.line(f"br i1 {any_}, label %release, label %released")
        self.lines.append("release:")
        for i in range(views):
            self.call("PyBuffer_Release", self.at("%views", 10 * i))
        self.line("br label %released")
        self.lines.append("released:")
        if self.workspace:
            self.rests()
        self.line(f"ret ptr {self.let('load ptr, ptr %answer')}")
        self.lines.append("}")
        types = [(name, *t.split(" ", 1)) for name, t in self.used.items()]
        declared = [f'declare {result} @"{name}"{formals}' for name, result, formals in types]
        return "\n".join([*declared, *self.lines, ""])

    def works(self) -> None:
        """A workspace: the one that is kept, unless another run has it, or a new one."""
        kept = self.let("atomicrmw xchg ptr %table, ptr null seq_cst")
        self.names += 1
        self.line("store ptr " + kept + ", ptr %used")
        self.line(f"br i1 {self.let(f'icmp eq ptr {kept}, null')}, label %new, label %works")
        self.lines.append("new:")
        fresh = self.call("malloc", str(self.workspace + 64))
        self.line(f"store ptr {fresh}, ptr %used")
        self.line(f"br i1 {self.let(f'icmp ne ptr {fresh}, null')}, label %works, label %exhausted")
        self.lines.append("exhausted:")
        self.call("PyErr_NoMemory")
        self.line("br label %over")
        self.lines.append("works:")
        used = self.let("ptrtoint ptr " + self.let("load ptr, ptr %used") + " to i64")
        begin = self.let(f"and i64 {self.let(f'add i64 {used}, 63')}, -64")
        self.line(f"%begin = inttoptr i64 {begin} to ptr")

    def rests(self) -> None:
        """Keep the workspace for the next run, or give it back."""
        used = self.let("load ptr, ptr %used")
        if self.workspace <= LARGEST_KEPT:
            self.names += 1
            keep, on = f"keep{self.names}", f"kept{self.names}"
            self.line(f"br i1 {self.let(f'icmp ne ptr {used}, null')}, label %{keep}, label %{on}")
            self.lines.append(f"{keep}:")
            old = self.let(f"atomicrmw xchg ptr %table, ptr {used} seq_cst")
            self.call("free", old)
            self.line(f"br label %{on}")
            self.lines.append(f"{on}:")
        else:
            self.call("free", used)

    def handed_over(self) -> None:
        """The result, or a tuple of the results."""
        if len(self.outputs) == 1:
            self.line(f"store ptr {self.let('load ptr, ptr %made')}, ptr %answer")
            return
        whole = self.there(self.call("PyTuple_New", str(len(self.outputs))), "over")
        for i in range(len(self.outputs)):
            y = self.let(f"load ptr, ptr {self.at('%made', i)}")
            self.call("PyTuple_SetItem", whole, str(i), y)
        self.line(f"store ptr {whole}, ptr %answer")


class MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


METH_FASTCALL = 0x80


def builtin(address: int, self: tuple[Any, ...]) -> Any:
    """The code at an address as a function of Python's; it keeps `self`, and its definition."""
    definition = MethodDef(b"run", address, METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCMethod_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p]
    held = (*self, definition)
    return new(ctypes.addressof(definition), held, None, None)


def maker(t: ArrayType) -> Any:
    """What makes an array of a type, not filled."""
    return functools.partial(np.empty, t.shape, t.dtype)


__all__ = ["API", "LARGEST_KEPT", "WORDS", "Text", "address_of", "builtin", "is_direct", "maker"]

"""Machine code that looks at each place before it reads or writes there: `pytest --bounds`.

The text of LLVM is changed, so what is looked at does not depend on how it was emitted.  Each
pointer is followed back to where memory begins whose size is known: an argument of the function, an
`alloca`, or what `realloc` gave for a tape that grows.  A load, a store and a copy of memory asks
`lineara.place` for its address: outside of that memory it is noted which line of the program is at
fault, the address of a spare place is given, and the run ends with OutOfPlace.

What functions outside do with a pointer (NumPy's loops, BLAS) is not seen.  Of nodes, of the
arguments of a definition that calls itself, and of the pointers that the pieces of a long program
hand on, no size is known.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lineara.engines import native
from lineara.engines.native.kernel import Kernel
from lineara.engines.native.lower import Lowered, lowered

WIDTHS = {"double": 8, "float": 4, "ptr": 8, "i1": 1}
PLACE = """
@lineara.spare = internal global [64 x i8] zeroinitializer, align 64
@lineara.odd = internal global i32 0
declare void @"lineara.outside"(i64, i64, i64, i64)

define internal i1 @lineara.within(ptr %p, ptr %base, i64 %size, i64 %width, i64 %site) noinline {
  %from = ptrtoint ptr %p to i64
  %begin = ptrtoint ptr %base to i64
  %at = sub i64 %from, %begin
  %rest = sub i64 %size, %at
  %low = icmp sge i64 %at, 0
  %high = icmp sge i64 %rest, %width
  %both = and i1 %low, %high
  %none = icmp eq i64 %width, 0
  %fine = or i1 %both, %none
  br i1 %fine, label %good, label %bad
bad:
  store i32 1, ptr @lineara.odd
  call void @"lineara.outside"(i64 %site, i64 %at, i64 %width, i64 %size)
  br label %good
good:
  ret i1 %fine
}
define internal ptr @lineara.place(ptr %p, ptr %base, i64 %size, i64 %width, i64 %site) {
  %fine = call i1 @lineara.within(ptr %p, ptr %base, i64 %size, i64 %width, i64 %site)
  %q = select i1 %fine, ptr %p, ptr @lineara.spare
  ret ptr %q
}
define internal i64 @lineara.length(ptr %p, ptr %base, i64 %size, i64 %width, i64 %site) {
  %fine = call i1 @lineara.within(ptr %p, ptr %base, i64 %size, i64 %width, i64 %site)
  %n = select i1 %fine, i64 %width, i64 0
  ret i64 %n
}
define internal i64 @lineara.left(ptr %p, ptr %base, i64 %size) {
  %from = ptrtoint ptr %p to i64
  %begin = ptrtoint ptr %base to i64
  %at = sub i64 %from, %begin
  %rest = sub i64 %size, %at
  ret i64 %rest
}
"""
STATUS = """  %ended = load i32, ptr %code
  %was = load i32, ptr @lineara.odd
  store i32 0, ptr @lineara.odd
  %bad = icmp ne i32 %was, 0
  %status = select i1 %bad, i32 1, i32 %ended"""
OPEN = re.compile(r'define internal (\S+) @"?([\w.]+)"?\((.+)\) (?:noinline )?\{$')
OWN = re.compile(
    r"(define internal .+ @(of\d+|asks|piece\d+)\((.+)\) "
    r'(?:"disable-tail-calls"="true"|noinline) \{)$'
)
POINTER = re.compile(r"ptr (?:noalias |readonly |align \d+ )*(?:dereferenceable\((\d+)\) )?(%\w+)")
STEP = re.compile(r"  (%[\w.]+) = getelementptr inbounds .+, ptr (%\w+), i64 \S+$")
ALLOCA = re.compile(r"  (%\w+) = alloca (.+?)(, align \d+)?$")
ACCESS = re.compile(r"  (?:(%\w+) = load ([^,]+)|store (<.+>|\S+) (.+?)), ptr (%[\w.]+)(.*)$")
COPY = re.compile(r'  call void @"(llvm\.mem\w+)[^"]*"\((.*)\)$')
CALL = re.compile(r'  (?:(%\w+) = )?call (\S+) @"(lineara\.(?!answer)[\w.]+)"\((.*)\)$')
CONSTANT = re.compile(r"  (%c(\d+)) = load ptr")
ANY = str(2**48)
NODE = re.compile(
    r"  (%\w+) = (?:inttoptr|select .*, ptr|call (?:noalias )?ptr @\"(?:nodes|c.malloc))"
)
RENEW = re.compile(r'  (%\w+) = call ptr @"c\.realloc"\(ptr %\w+, i64 (%\w+)\)$')


class OutOfPlace(Exception):
    """Machine code reads or writes outside of the memory that it was given."""


class Checked:
    """The text of a definition, with a look at each place."""

    def __init__(self, code: Lowered) -> None:
        self.errors: list[OutOfPlace] = []
        self.constants = [array.nbytes for array in code.constants]
        self.outputs = len(code.outputs)
        self.sites: list[tuple[str, str]] = []  # the program's line, and that of the code
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
        self.outside = kind(self._outside)

    def _outside(self, site: int, at: int, width: int, size: int) -> None:
        where, line = self.sites[site]
        self.errors.append(
            OutOfPlace(f"{where}: {line.strip()}: bytes {at} to {at + width - 1} of {size}")
        )

    def text(self, text: str) -> str:
        """The whole text."""
        lines: list[str] = []
        changing = False
        for line in text.splitlines():
            begins, own = OPEN.match(line), OWN.match(line)
            if own:
                changing = True
                self.where, self.renewed, self.tapes = own[2], {}, set()
                self.known = {r: (r, ANY) for _, r in POINTER.findall(own[3])}
                lines.append(line)
            elif begins:
                changing = True
                lines.append(self.function(*begins.groups()))
            elif changing:
                lines += self.line(line)
                changing = line != "}"
            else:
                lines.append(line)
        return "\n".join([PLACE, *lines])

    def function(self, result: str, name: str, formals: str) -> str:
        """The first line of a function; those beside the body are given the sizes of memory."""
        self.where = name
        self.known: dict[str, tuple[str, str]] = {}  # a pointer -> where memory begins, its size
        self.renewed: dict[str, str] = {}
        self.tapes: set[str] = set()  # registers that have the address of a pointer to a tape
        for nbytes, register in POINTER.findall(formals):
            size = (nbytes or "0") if name == "body" else f"{register}.size"
            self.known[register] = register, size
        if name == "body":
            self.known["%out"] = "%out", str(8 * self.outputs)
            for i, n in enumerate(self.constants):
                self.known[f"%c{i}"] = f"%c{i}", str(n)
        else:
            formals = re.sub(r"ptr (%\w+)", r"ptr \1, i64 \1.size", formals)
        return f'define internal {result} @"{name}"({formals}) {{'

    def line(self, line: str) -> Iterator[str]:
        """A line of a function, and what comes before and after it."""
        if line.startswith("  ; "):
            self.where = line.removeprefix("  ; ")
        if m := STEP.match(line):
            self.known[m[1]] = self.known[m[2]]
        if m := CONSTANT.match(line):
            self.known[m[1]] = m[1], str(self.constants[int(m[2])])
            yield line
            return
        if m := NODE.match(line):
            self.known[m[1]] = m[1], ANY
        if m := ALLOCA.match(line):
            self.known[m[1]] = m[1], str(bytes_of(m[2]))
            if m[2] == "ptr":  # of a tape that grows
                self.tapes.add(m[1])
                yield f"  {m[1]}.size = alloca i64"
                yield f"  store i64 0, ptr {m[1]}.size"
        elif m := RENEW.match(line):
            self.renewed[m[1]] = m[2]
        elif line == "  %status = load i32, ptr %code":
            yield STATUS
            return
        elif m := ACCESS.match(line):
            loaded, kind, given, value, place, rest = m.groups()
            kind = kind or given
            q = f"{place}.{len(self.sites)}"
            yield self.asked("ptr", "place", q, place, bytes_of(kind), line)
            begin = f"  {loaded} = load {kind}" if loaded else f"  store {kind} {value}"
            yield f"{begin}, ptr {q}{rest}"
            if kind == "ptr" and loaded and place not in self.tapes:
                self.known[loaded] = loaded, ANY
            elif kind == "ptr" and loaded:
                yield f"  {loaded}.size = load i64, ptr {place}.size"
                self.known[loaded] = loaded, f"{loaded}.size"
            elif kind == "ptr" and value in self.renewed and place in self.tapes:
                yield f"  store i64 {self.renewed[value]}, ptr {place}.size"
            return
        elif m := COPY.match(line):
            args = [a.split(" ", 1) for a in m[2].split(", ")]
            n = next(a for t, a in args if t == "i64")
            for t, a in args:
                if t == "ptr":
                    q = f"%length.{len(self.sites)}"
                    yield self.asked("i64", "length", q, a, n, line)
                    n = q
            yield re.sub(r"i64 [%\w.]+", f"i64 {n}", line)
            return
        elif m := CALL.match(line):
            longer: list[str] = []
            for register in re.findall(r"ptr (%\w+)", m[4]):
                base, size = self.known[register]
                self.lefts += 1
                left = f"%left.{self.lefts}"
                yield f"  {left} = call i64 @lineara.left(ptr {register}, ptr {base}, i64 {size})"
                longer.append(f"ptr {register}, i64 {left}")
            given = re.sub(r"ptr %\w+", lambda _: longer.pop(0), m[4])
            yield line.replace(m[4], given)
            return
        yield line

    def asked(self, kind: str, how: str, q: str, place: str, width: Any, line: str) -> str:
        """The line that asks for a place."""
        self.sites.append((self.where, line))
        base, size = self.known[place]
        given = f"ptr {place}, ptr {base}, i64 {size}, i64 {width}, i64 {len(self.sites) - 1}"
        return f"  {q} = call {kind} @lineara.{how}({given})"

    lefts = 0


def bytes_of(kind: str) -> int:
    """The bytes of a value: of a number, or of an array or a vector of them."""
    if m := re.fullmatch(r"[\[<](\d+) x (.+)[\]>]", kind):
        return int(m[1]) * bytes_of(m[2])
    return WIDTHS.get(kind) or int(kind.removeprefix("i")) // 8


def checked(program: Any, name: str, trusting: bool = False, exact: bool = True) -> Lowered:
    """A definition as text that looks at places."""
    code = lowered(program, name, trusting, exact, listed=True)
    looks = Checked(code)
    address = ctypes.cast(looks.outside, ctypes.c_void_p).value
    LOOKS.append(looks)
    return replace(
        code,
        text=looks.text(code.text),
        addresses={**code.addresses, "lineara.outside": address or 0},
    )


LOOKS: list[Checked] = []
"""They live as long as the process, as code does that calls them."""


def told() -> OutOfPlace | None:
    """The first that was out of place since this was asked."""
    errors = [error for looks in LOOKS for error in looks.errors]
    for looks in LOOKS:
        looks.errors.clear()
    return errors[0] if errors else None


def switch_on(put: Callable[[object, str, Any], object] = setattr) -> None:
    """From now on, what is compiled looks at places; a run that is out of place raises."""
    raised = Kernel._error

    def error(self: Kernel, status: int, number: int) -> BaseException:
        return told() or raised(self, status, number)

    put(Kernel, "_error", error)
    put(native.emitted, "lowered", checked)
    put(native.emitted, "key_of", lambda *_: "")  # it is for this process alone

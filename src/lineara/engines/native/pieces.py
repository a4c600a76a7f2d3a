"""A body that is very long, as functions of a bounded length that are called one after the other.

What LLVM does to one function grows faster than the function, and so does the stack of a thread
that runs it.  A body is cut within a block, where no jump and no choice of a value crosses the cut:
in straight lines anywhere, in a loop nowhere.  What is made before a cut and read after it lies in
a frame, eight bytes each, which is part of the workspace.

    i32 @piece3(ptr %frame)     0: go on; 1: an exception; 2: out of memory; 3: `%code` says
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lineara.engines.native import numbers as nm

LONG = 30_000
"""Lines up to which a body is one function."""
PIECE = 8_000
"""Lines that a piece has if it can be cut anywhere."""
LONGEST = 100_000
"""Lines of a piece from which a body is refused: its stack would be too large for a thread."""

NAME = re.compile(r"%[\w.]+")
LET = re.compile(r"^ *(%[\w.]+) = (.*)", re.MULTILINE)
LABEL = re.compile(r"label %([\w.]+)")
CHOICES = re.compile(r", %([\w.]+)\]")
EXITS = {"failed": 1, "exhausted": 2, "passed": 3}
TYPE = re.compile(
    r"(?:(?:nuw|nsw|reassoc|nsz|contract) )*"
    r"(double|float|i64|i32|i8|i1|ptr|<\d+ x (?:double|float|i64)>)"
)
CASTS = {
    "zext", "sext", "trunc", "sitofp", "uitofp", "fptosi", "fptrunc", "fpext", "bitcast",
    "ptrtoint",
}  # fmt: skip
LISTED = "  ;"  # begins a comment


def in_pieces(
    lines: Sequence[str], given: dict[str, str], frame: str
) -> tuple[list[str], list[str], int]:
    """The functions, the body that calls them, and how many values the frame has room for.

    `given` has the types of the registers that are there before the lines; `frame` is the register
    of the frame.
    """
    cuts = places_of_cuts(lines)
    ends = [0, *cuts, len(lines)]
    longest = max([b - a for a, b in pairwise(ends)])
    if longest > LONGEST:
        raise nm.TooLong(
            "it has a loop or a branch of too many operations, with what they call: "
            f"its code has {longest:,} lines in one piece, and may have {LONGEST:,}"
        )
    pieces = [lines[a:b] for a, b in pairwise(ends)]
    types, last, reads, makes = registers_of(pieces, given)
    room = Frame()
    body = [room.put(r, types[r], last[r], frame, "i") for r in sorted(last) if r in given]
    functions: list[str] = []
    label = "start"
    for k, piece in enumerate(pieces):
        before = [room.get(r, types[r]) for r in sorted(reads[k])]
        room.free(k)
        after = [room.put(r, types[r], last[r], "%frame", "o") for r in makes[k] if last[r] > k]
        functions += function(f"piece{k}", before, label, piece, after)
        label = next((line[:-1] for line in reversed(piece) if line.endswith(":")), label)
        exits = " ".join([f"i32 {code}, label %{name}" for name, code in EXITS.items()])
        body += [
            f"  %p{k} = call i32 @piece{k}(ptr {frame})",
            f"  switch i32 %p{k}, label %done{k} [{exits}]",
            f"done{k}:",
        ]
    return functions, body, room.size


def function(
    name: str, before: Iterable[str], label: str, lines: Iterable[str], after: Iterable[str]
) -> list[str]:
    """One piece; its first block has the label of the block that it goes on with."""
    head = [f"define internal i32 @{name}(ptr %frame) noinline {{", "entry:", *before]
    ends = [line for exit, code in EXITS.items() for line in (f"{exit}:", f"  ret i32 {code}")]
    return [*head, f"  br label %{label}", f"{label}:", *lines, *after, "  ret i32 0", *ends, "}"]


class Frame:
    """The places of the frame, each taken again when nothing reads it any more."""

    def __init__(self) -> None:
        self.size: int = 0  # in words of eight bytes
        self.places: dict[str, tuple[int, int, int]] = {}  # of a register: place, words, last use
        self.unused: defaultdict[int, list[int]] = defaultdict[int, list[int]](
            list
        )  # places, by their words

    def put(self, register: str, t: str, last: int, frame: str, like: str) -> str:
        """The lines that store a register."""
        words = int(t[1:].partition(" ")[0]) if t.startswith("<") else 1
        if self.unused[words]:
            place = self.unused[words].pop()
        else:
            place, self.size = self.size, self.size + words
        self.places[register] = place, words, last
        at = f"%{like}.{register[1:]}"
        where = f"  {at} = getelementptr inbounds i64, ptr {frame}, i64 {place}\n"
        return where + f"  store {t} {register}, ptr {at}, align 8"

    def get(self, register: str, t: str) -> str:
        """The lines that load a register."""
        at, (place, *_) = f"%i.{register[1:]}", self.places[register]
        where = f"  {at} = getelementptr inbounds i64, ptr %frame, i64 {place}\n"
        return where + f"  {register} = load {t}, ptr {at}, align 8"

    def free(self, k: int) -> None:
        """A piece has begun: what no later one reads needs no place."""
        for register, (place, words, last) in [*self.places.items()]:
            if last <= k:
                del self.places[register]
                self.unused[words].append(place)


def registers_of(
    pieces: Sequence[Sequence[str]], given: dict[str, str]
) -> tuple[dict[str, str], dict[str, int], list[set[str]], list[list[str]]]:
    """The types of registers that cross a cut, their last readers; what pieces read, and make."""
    made = dict.fromkeys(given, -1)
    types, last = dict(given), dict[str, int]()
    reads, makes = [set[str]() for _ in pieces], [list[str]() for _ in pieces]
    for k, piece in enumerate(pieces):
        text = "\n".join([line for line in piece if not line.startswith(LISTED)])
        lets = dict(LET.findall(text))
        made |= dict.fromkeys(lets, k)
        makes[k] += lets
        reads[k] |= {r for r in NAME.findall(text) if made.get(r, k) < k}
        last |= dict.fromkeys([*lets, *reads[k]], k)
        types |= lets
    for r, text in types.items():
        if r not in given and last[r] > made[r]:
            types[r] = type_of(text)
    return types, last, reads, makes


def type_of(text: str) -> str:
    """The type of what an instruction makes."""
    word, _, rest = text.partition(" ")
    if word in ("icmp", "fcmp"):
        return "i1"
    if word in ("getelementptr", "alloca", "inttoptr"):
        return "ptr"
    if word in CASTS:
        return rest.rpartition(" to ")[2]
    if word == "extractvalue":
        of, _, place = rest.removeprefix("{ ").partition(" }")
        return of.split(", ")[int(place.rpartition(", ")[2])]
    if word == "extractelement":
        return "double"
    if word == "select":
        rest = rest.partition(", ")[2]
    known = TYPE.match(rest)
    if known is None:
        raise nm.Refused(f"it has too many operations for one function, and `{text}` among them")
    return known[1]


def places_of_cuts(lines: Sequence[str]) -> list[int]:
    """Where lines are cut: before these, about so many lines apart."""
    crossed = crossings(lines)
    cuts: list[int] = []
    begun = 0
    for i in range(1, len(lines)):
        if i - begun >= PIECE and not crossed[i]:
            cuts.append(i)
            begun = i
    return cuts


def crossings(lines: Sequence[str]) -> list[int]:
    """How many jumps and choices a cut before each line would cross."""
    defined = {"start": -1} | {x[:-1]: i for i, x in enumerate(lines) if x.endswith(":")}
    ends = dict(pairwise([*defined.values(), len(lines)]))
    change = [0] * (len(lines) + 1)

    def forbid(first: int, end: int) -> None:
        if first < end:
            change[first] += 1
            change[end] -= 1

    for i, line in enumerate(lines):
        if line.startswith(LISTED):
            continue
        if "label %" in line:
            for label in LABEL.findall(line):
                if label not in EXITS:
                    at = defined[label]
                    forbid(min(i, at) + 1, max(i, at) + 1)
        elif "= call { " in line:  # several values, which the next lines take apart
            forbid(i + 1, i + 2 + line.partition(" }")[0].count(", "))
        elif "= phi " in line:
            for label in CHOICES.findall(line):
                forbid(ends[defined[label]], i + 1)
    total, crossed = 0, []
    for k in change[:-1]:
        total += k
        crossed.append(total)
    return crossed


__all__ = ["LONG", "in_pieces"]

"""What machine code was made of a definition: in words, and as LLVM and the processor see it.

`machine_code_facts` says what is stored on tapes and what runs have called back.
`machine_code_listing` emits the definition once more with the program's lines as comments, and has
LLVM carry their numbers to the assembly.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from lineara.engines.native import Native
from lineara.engines.native.emit import LISTED
from lineara.engines.native.lower import Lowered, lowered
from lineara.engines.native.machine_code import MISSING, compiler
from lineara.engines.native.numbers import Refused
from lineara.errors import described
from lineara.facts.types import show
from lineara.linear_a.program import Program


class CalledBack(NamedTuple):
    """A place where code asks Python: for what, how often runs have, and seconds in all."""

    what: str
    times: int
    seconds: float

    def __str__(self) -> str:
        often = "once" if self.times == 1 else f"{self.times:,} times"
        each = f"{duration(self.seconds / self.times)}{' each' * (self.times > 1)}"
        return f"{self.what}: {often}, {each}"


def duration(seconds: float) -> str:
    """A time, in a unit of which it has at least one.

    >>> duration(2.5e-7), duration(0.2620677), duration(33.0)
    ('0.2 µs', '262.1 ms', '33.0 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1e6 * seconds:.1f} µs"


def machine_code_facts(
    program: Program,
    name: str,
    native: Native | None = None,
    lined: Program | None = None,
    waits: bool = True,
) -> list[str]:
    """What machine code was made of a definition, and what its runs have asked Python; lines.

    Of `lined`, the same program whose variables know the user's lines, these lines are told;
    `waits` is whether the engine interprets until compiling pays.

    >>> from lineara.linear_a.parse import parse
    >>> machine_code_facts(parse("def f(x: f64;) -> (f64;) = x * x"), "f")[0]
    '1 operation, 0 bytes of workspace'
    """
    native = native or Native()
    why = native.takes(program, name)
    if native.exact and name in program.noted["native relaid"]:
        why = "NumPy laid out a result in another order in a run"
    if why is not None:
        return [f"interpreted: {why}"]
    code = native.code(program, name)
    assert not isinstance(code, str), "it is taken"
    kernel = program.noted["native"].get(native.key(program, name))
    operations = "operation" if code.leaves == 1 else "operations"
    said = [f"{code.leaves:,} {operations}, {code.workspace:,} bytes of workspace"]
    if kernel is None:
        later = "interpreted so far: it is compiled once that pays"
        said += [later if waits else "not compiled yet: the first call does that"]
    known = _with_places(program if lined is None else lined, native.key(program, name), code)
    for (n, t), k in Counter([(n, t) for n, t, _ in code.taped]).items():
        rounds = "as many rounds as there are" if n is None else f"{n:,} rounds"
        held = "" if n is None else f", {k * n * t.size * t.dtype.itemsize:,} bytes"
        said.append(f"on a tape: {f'{k} times ' * (k > 1)}{show(t)} in each of {rounds}{held}")
        said += _at([place for *column, place in known.taped if column == [n, t]])
    for region, places in known.fused:
        said += [f"fused: {region}", *_at(places)]
    spent: dict[str, tuple[int, float, tuple[str, ...]]] = {}
    for site, (times, seconds) in zip(known.sites, kernel.asked if kernel else [], strict=False):
        n, s, places = spent.get(site.what, (0, 0.0, ()))
        spent[site.what] = n + int(times), s + seconds, (*places, *[site.place] * bool(times))
    for what, (n, s, places) in sorted(spent.items(), key=lambda c: -c[1][1]):
        if n:
            said += [f"called back: {CalledBack(what, n, s)}", *_at(places)]
    return said


def _at(places: Iterable[str]) -> list[str]:
    """The user's lines, one each."""
    return [f"  at {described(place)}" for place in dict.fromkeys(places) if place]


def _with_places(program: Program, choices: tuple[str, bool, bool], code: Lowered) -> Lowered:
    """The same code, with the user's places where the program knows them."""
    try:
        listed = lowered(program, *choices, listed=True)
    except Refused:
        return code
    one, other = [
        ([s.what for s in c.sites], [t[:2] for t in c.taped], [f[0] for f in c.fused])
        for c in (listed, code)
    ]
    return listed if one == other else code


class Listing(NamedTuple):
    """A definition as LLVM's text and as assembly, with the program's lines as comments.

    `places` are the user's, of these comments; `workspace` is the bytes that a run takes beside its
    arguments and results.  It prints as the text of LLVM.
    """

    llvm: str
    assembly: str
    places: dict[str, str]
    workspace: int

    def __str__(self) -> str:
        return self.llvm

    def __repr__(self) -> str:
        llvm, assembly = [len(text.splitlines()) for text in (self.llvm, self.assembly)]
        return f"<Listing: {llvm:,} lines of LLVM, {assembly:,} lines of assembly>"


def machine_code_listing(program: Program, name: str) -> Listing | str:
    """A definition beside its machine code, or why there is none.

    >>> from lineara.linear_a.parse import parse
    >>> shown = machine_code_listing(parse("def f(x: f64;) -> (f64;) = x * x"), "f")
    >>> "fmul double" in shown.llvm
    True
    """
    llvm = compiler()
    if llvm is None:
        return MISSING
    try:
        code = lowered(program, *Native().key(program, name), listed=True)
    except Refused as error:
        return f"{name} is not lowered: {error}"
    text, lines = located(code.text, name)
    module, machine = llvm.module(text, code.leaves)
    assembly = commented(machine.emit_assembly(module), lines)
    return Listing(code.text, assembly, code.told, code.workspace)


def located(text: str, name: str) -> tuple[str, list[str]]:
    """The text in which each instruction says which of the program's lines it is of; the lines."""
    lines, out, function = [f"{name} begins or ends"], [], 0
    facts = [
        "distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: LineTablesOnly)",
        '!{i32 2, !"Debug Info Version", i32 3}',
        '!DIFile(filename: "program", directory: "")',
        "!DISubroutineType(types: !{null})",
    ]
    for row in text.splitlines():
        if row.startswith("define") and '@"' not in row:  # helpers, which have no lines, come first
            function, line = len(facts), 1
            facts.append(
                "distinct !DISubprogram(file: !2, unit: !0, type: !3, spFlags: DISPFlagDefinition)"
            )
            row = row.removesuffix("{") + f"!dbg !{function} {{"
            facts.append(f"!DILocation(line: {line}, scope: !{function})")
        elif row.startswith(f"  {LISTED}"):
            lines.append(row.strip().removeprefix(LISTED))
            facts.append(f"!DILocation(line: {len(lines)}, scope: !{function})")
        elif row.startswith("  ") and row.strip() and function:
            row += f", !dbg !{len(facts) - 1}"
        out.append(row)
    named = ["!llvm.dbg.cu = !{!0}", "!llvm.module.flags = !{!1}"]
    return "\n".join([*out, *named, *[f"!{i} = {f}" for i, f in enumerate(facts)], ""]), lines


LOCATION = re.compile(r"\s+\.loc\s+\d+\s+(\d+)")
DIRECTIVE = re.compile(r"\s+\.(?!loc)|\.?L?(tmp|debug|func_|section)|\s*#")


def commented(assembly: str, lines: list[str]) -> str:
    """Assembly with the program's lines as comments in place of their numbers."""
    out, last = [], 0
    for row in assembly.splitlines():
        place = LOCATION.match(row)
        if place:
            number = int(place[1])
            if number not in (0, last):
                out.append(f"# {lines[number - 1]}")
                last = number
        elif row.strip() and not DIRECTIVE.match(row) and not row.startswith(".Ltmp"):
            out.append(re.sub(r"\s+#.*", "", row))
    return "\n".join(out)


__all__ = ["CalledBack", "Listing", "machine_code_facts", "machine_code_listing"]

"""Text of LLVM that is being written: lines, blocks, names that are free, and facts of loops."""

from collections.abc import Iterator
from contextlib import contextmanager

from lineara.engines.native import numbers as nm

NEAR = {"c128": ", align 8"}
"""Where numbers lie at other addresses than multiples of their size."""
ROLLED = 1_000_000
"""The number of the fact that a loop is not unrolled; other facts have the next ones."""
ITSELF = "ITSELF"
"""In the text of a fact its own name."""


class Code:
    """Text of LLVM: the lines, the block that is open, and names that are free."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []  # lines that run once, before all others
        self.label: str = "start"
        self.names: int = 0
        self.facts: list[str] = []  # what LLVM is told of loops
        self.declared: dict[str, str] = {}  # functions outside, and their types

    def name(self, like: str = "") -> str:
        """A name that is free."""
        self.names += 1
        return f"{like}{self.names}"

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def let(self, text: str) -> str:
        """The register of an instruction's result."""
        self.names += 1
        register = f"%v{self.names}"
        self.line(f"{register} = {text}")
        return register

    def at_entry(self, text: str) -> str:
        """The register of something that is made once."""
        register = f"%e{self.name()}"
        self.entry.append(f"  {register} = {text}")
        return register

    def block(self, label: str) -> None:
        """Go on in the block of that label."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """End the block."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block, one way or the other."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    @contextmanager
    def loop(self, start: str, stop: str) -> Iterator[str]:
        """Rounds from one number to before another one; gives the register of the number."""
        before, head, body, after = self.label, *map(self.name, ("head", "body", "after"))
        self.jump(head)
        self.block(head)
        i, place = f"%r{self.name()}", len(self.lines)
        self.line("")
        self.branch(self.let(f"icmp slt i64 {i}, {stop}"), body, after)
        self.block(body)
        yield i
        more = self.let(f"add nsw i64 {i}, 1")
        self.lines[place] = f"  {i} = phi i64 [{start}, %{before}], [{more}, %{self.label}]"
        self.jump(head)
        self.block(after)

    def outside(self, name: str, type: str) -> str:
        """A function of that name and type, which is linked when the code is loaded.

        LLVM declares its own functions, `llvm.*`, where it reads a call of them.
        """
        self.declared[name] = type
        return f'@"{name}"'

    def text(self, x: nm.Num) -> str:
        """A number as an operand."""
        if x.register:
            return x.register
        if x.affine is not None:
            return self.of_rounds(x.affine)
        if x.kind == "bool":
            return "true" if x.constant else "false"
        assert x.constant is not None, "it is known"
        return nm.in_text(x.constant)

    def load_at(self, place: str, kind: str) -> nm.Num:
        """The number at an address."""
        x = self.let(f"load {nm.IN_MEMORY[kind]}, ptr {place}{NEAR.get(kind, '')}")
        return nm.Num(kind, self.let(f"trunc i8 {x} to i1") if kind == "bool" else x)

    def store_at(self, x: nm.Num, place: str) -> None:
        """Put a number to an address."""
        value = self.text(x)
        if x.kind == "bool":
            value = self.let(f"zext i1 {value} to i8")
        self.line(f"store {nm.IN_MEMORY[x.kind]} {value}, ptr {place}{NEAR.get(x.kind, '')}")

    def boxed(self, x: nm.Num) -> str:
        """The address of a number."""
        place = self.at_entry(f"alloca {nm.IN_MEMORY[x.kind]}, align 8")
        self.store_at(x, place)
        return place

    def of_rounds(self, a: nm.Affine) -> str:
        """A whole number that the rounds of loops tell."""
        y = ""
        for r, k in a.terms:
            term = r.register if k == 1 else self.let(f"mul i64 {r.register}, {k}")
            y = self.let(f"add i64 {y}, {term}") if y else term
        if not y:
            return str(a.constant)
        return self.let(f"add i64 {y}, {a.constant}") if a.constant else y

    def of_loop(self, *facts: str) -> str:
        """What ends the jump of a loop of which LLVM is told facts, or nothing."""
        known = "".join([f", {fact}" for fact in facts])
        return f", !llvm.loop {self.fact(f'distinct !{{{ITSELF}{known}}}')}" if facts else ""

    def fact(self, text: str) -> str:
        """The name of a fact for LLVM."""
        name = f"!{ROLLED + 1 + len(self.facts)}"
        self.facts.append(f"{name} = {text.replace(ITSELF, name)}")
        return name


__all__ = ["ROLLED", "Code"]

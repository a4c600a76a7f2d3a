"""An interactive session of the calculus: definitions stay, terms are evaluated."""

import contextlib
import sys
from collections.abc import Iterator

from lineara.calculus.machine import FUEL, Machine
from lineara.calculus.parse import KEYWORDS
from lineara.calculus.program import Program, program
from lineara.calculus.readback import read_back
from lineara.calculus.show import show
from lineara.calculus.trace import trace, value_of
from lineara.calculus.types import show as show_type
from lineara.errors import LinearaError

HELP = """\
a term           its value and type             def f x = ...    a definition, which stays
:type TERM       its type                       :trace TERM      every step
:grad F TERM     the gradient of F at TERM      :reduce TERM     the value by the rules
:defs            the definitions                :quit            the end"""


class Session:
    """What has been defined so far."""

    def __init__(self, file: str | None, fuel: int) -> None:
        self.fuel = fuel
        self.defined = f'import "{file}"' if file else ""

    def names(self) -> list[str]:
        """What can be completed."""
        p = self._program("")
        return sorted({*KEYWORDS, *p.symbols, *p.definitions, "pull(", "covec(", "dual("})

    def _program(self, text: str) -> Program:
        if not text:
            return program(self.defined)
        return program(f"{self.defined}\nin {text}" if self.defined else text)

    def answer(self, line: str) -> Iterator[str]:
        """What is printed for a line."""
        word, _, rest = line.strip().partition(" ")
        if word in ("def", "symbol", "import"):
            program(f"{self.defined}\n{line}")
            self.defined += f"\n{line}"
            return
        if word == ":defs":
            yield self.defined.strip()
        elif word == ":help":
            yield HELP
        elif word == ":type":
            yield show_type(self._program(rest).term().type)
        elif word == ":trace":
            t = self._program(rest).term()
            yield from map(str, trace(t, self.fuel))
            yield show(value_of(t, self.fuel))
        elif word == ":reduce":
            yield show(value_of(self._program(rest).term(), self.fuel))
        elif word.startswith(":") and word != ":grad":
            yield f"there is no command {word}\n{HELP}"
        elif word:
            f, _, at = rest.partition(" ")
            text = f"pull({f}; \\y:R. covec(1)) ({at})" if word == ":grad" else line
            t = self._program(text).term()
            value = read_back(Machine(self.fuel).value(t), t.type)
            yield f"{show(value)} : {show_type(t.type)}"


def session(file: str | None = None, fuel: int = FUEL) -> int:
    """Read lines until there are no more, with history and completion where there is readline."""
    held = Session(file, fuel)
    held.names()  # so that a file that is wrong says so at once
    with contextlib.suppress(ImportError):
        _complete(held)
    print(":help says what there is")
    while True:
        try:
            line = input("pb> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if line.strip() in (":quit", ":q"):
            return 0
        try:
            for text in held.answer(line):
                print(text)
        except LinearaError as error:
            print(error.message, file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


def _complete(held: Session) -> None:
    import readline

    def completion(text: str, state: int) -> str | None:
        found = [n for n in held.names() if n.startswith(text)]
        return found[state] if state < len(found) else None

    readline.set_completer(completion)
    readline.set_completer_delims(" \t\n<>()[]{};,.|@+*/\\")
    readline.parse_and_bind("tab: complete")

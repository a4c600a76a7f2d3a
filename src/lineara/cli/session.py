"""An interactive session of the calculus: definitions stay, terms are evaluated."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from lineara.calculus.machine import FUEL, Machine
from lineara.calculus.parse import KEYWORDS
from lineara.calculus.program import Program, program
from lineara.calculus.readback import read_back
from lineara.calculus.reduction_steps import trace, value_of
from lineara.calculus.show import show
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
        self.defined: str = f'import "{file}"' if file else ""

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


HISTORY = 1000  # lines that are kept


def history_file() -> Path:
    """Where lines are kept between sessions: in the user's directory for such things."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "lineara" / "calculus_history"


def session(file: str | None = None, fuel: int = FUEL, history: Path | None = None) -> int:
    """Read lines until there are no more.

    On a terminal that has readline they are edited, TAB completes, and what was typed is kept in
    the file `history`, if one is given, for the next session.
    """
    held = Session(file, fuel)
    held.names()  # so that a file that is wrong says so at once
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError):
            _complete(held)
            if history is not None and sys.stdin.isatty():
                stack.enter_context(_kept(history))
        print(":help says what there is")
        return _lines(held)


@contextlib.contextmanager
def _kept(history: Path) -> Iterator[None]:
    """The lines of earlier sessions, and those of this one for later."""
    import readline

    readline.clear_history()
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    yield
    try:
        history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        readline.set_history_length(HISTORY)
        readline.write_history_file(history)
    except OSError as error:
        why = error.strerror or error
        print(f"{history}: what was typed cannot be kept there: {why}", file=sys.stderr)


def _lines(held: Session) -> int:
    """Read, answer, and so on."""
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
            print(error, file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


def _complete(held: Session) -> None:
    import readline

    def completion(text: str, state: int) -> str | None:
        names = [n for n in held.names() if n.startswith(text)]
        return names[state] if state < len(names) else None

    readline.set_completer(completion)
    readline.set_completer_delims(" \t\n<>()[]{};,.|@+*/\\")
    readline.parse_and_bind("tab: complete")

"""The calculus from the command line: `python -m lineara calculus run FILE.pb` and its sisters."""

import argparse
import json
import sys
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from lineara.calculus.infer import Letters
from lineara.calculus.interface import gradient, linear_a
from lineara.calculus.machine import FUEL, Machine
from lineara.calculus.program import Program, program
from lineara.calculus.readback import read_back
from lineara.calculus.reduction_steps import Traced, page, rich_text, trace, value_of
from lineara.calculus.show import show
from lineara.calculus.terms import Term, app
from lineara.calculus.types import Arrow
from lineara.calculus.types import show as show_type
from lineara.errors import CalculusError
from lineara.text.options import at_least

ACTIONS = {
    "run": "the value of the program, in the syntax of the calculus",
    "type": "the types of the program and of its definitions",
    "step": "the term after each of the first steps (--steps)",
    "trace": "the steps with their rules; the redex is marked, and what is far from it cut",
    "grad": "value and gradient of the program, a function to R, at --at",
    "linear-a": "a definition on numbers as a Linear A program (--def)",
    "session": "an interactive session",
}


LEVELS = (9, 4, 2)  # of the term that a step of a trace shows: the first that is not longer than
LONG = 300
SHOWN = 500  # steps of a trace that are printed unasked


def _levels(text: str) -> Any:
    return None if text == "all" else text if text == "short" else int(text)


def _around(step: Traced, asked: Any) -> int | None:
    """How many levels of a step are shown."""
    if asked != "short":
        return asked
    return next((n for n in LEVELS if len(step.text(n)) <= LONG), LEVELS[-1])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, the file, and what the actions take beside it."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "actions:\n" + "".join([f"  {n:<8} {d}\n" for n, d in ACTIONS.items()])
    parser.add_argument("action", choices=ACTIONS, help="see below")
    parser.add_argument(
        "file", metavar="FILE.pb", nargs="?", help="the program; - is standard input"
    )
    parser.add_argument("--def", dest="name", metavar="f", help="a definition, not the file's term")
    parser.add_argument("--at", metavar="TERM", help="where to take the gradient, such as '<1, 3>'")
    parser.add_argument("--steps", type=at_least(0), metavar="N", help="how many steps at most")
    parser.add_argument(
        "--from",
        dest="first",
        type=at_least(1),
        default=1,
        metavar="N",
        help="trace: the first step",
    )
    parser.add_argument(
        "--around",
        type=_levels,
        default="short",
        metavar="N",
        help=f"trace: show so many levels about what changes, or all; as many as {LONG} characters "
        "hold unless it is given",
    )
    parser.add_argument(
        "--fuel", type=at_least(0), default=FUEL, help="how often recursions may unfold"
    )
    parser.add_argument("--reduce", action="store_true", help="run by the rules, not the machine")
    parser.add_argument("--html", action="store_true", help="trace: print a page")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--no-history", action="store_true", help="session: keep nothing of what is typed"
    )


def run(options: argparse.Namespace) -> int:
    """Print what the action finds; 2 if the file is missing."""
    if options.action == "session":
        from lineara.cli.session import history_file, session

        history = None if options.no_history else history_file()
        return session(options.file, options.fuel, history)
    if options.file is None:
        print(f"calculus {options.action}: the file is missing", file=sys.stderr)
        return 2
    _ACTS[options.action](_read(options.file), options)
    return 0


def _read(file: str) -> Program:
    if file == "-":
        return program(sys.stdin.read(), "<stdin>")
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CalculusError(f"{file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CalculusError(
            f"{file}: the byte {error.object[error.start]:#04x} at {error.start} is not UTF-8"
        ) from None
    return program(text, file)


def _said(named: dict[str, Any], options: argparse.Namespace) -> None:
    """A few named things, as JSON or line by line."""
    if options.json:
        print(json.dumps(named))
        return
    width = max(map(len, named))
    for name, text in named.items():
        print(text if len(named) == 1 else f"{name:<{width}}  {text}")


def _value(t: Term, options: argparse.Namespace) -> Term:
    if options.reduce:
        return value_of(t, options.fuel)
    return read_back(Machine(options.fuel).value(t), t.type)


def _run(p: Program, options: argparse.Namespace) -> None:
    _said({"value": show(_value(p.term(options.name), options))}, options)


def _type(p: Program, options: argparse.Namespace) -> None:
    own = [n for n, d in p.definitions.items() if d.text.file == p.text.file]
    names = own if options.name is None else [options.name]
    named = {n: Letters()(p.type_of(n)) for n in names}
    if p.main is not None and options.name is None:
        named["it"] = show_type(p.term().type)
    if not named:
        raise CalculusError(f"{p.text.file}: there is nothing in it")
    _said(named, options)


def _step(p: Program, options: argparse.Namespace) -> None:
    t = p.term(options.name)
    steps = list(islice(trace(t, options.fuel), (options.steps or 1) + 1))
    terms = [show(s.term) for s in steps]
    if len(steps) <= (options.steps or 1):  # the last one is the value
        terms.append(show(value_of(t, options.fuel)))
    print(json.dumps(terms) if options.json else "\n".join(terms))


def _trace(p: Program, options: argparse.Namespace) -> None:
    t = p.term(options.name)
    most = options.steps or SHOWN
    steps = trace(t, options.fuel, options.first, options.first + most - 1)
    if options.html:
        value, levels = value_of(t, options.fuel), partial(_around, asked=options.around)
        print(page(steps, value, p.text.file, levels))
        return
    if options.json:
        print(json.dumps([s.json(_around(s, options.around)) for s in steps]))
        return
    count = 0
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        for s in steps:
            count += 1
            console.print(rich_text(s, _around(s, options.around)))
    else:
        for s in steps:
            count += 1
            print(s.head(), s.text(_around(s, options.around)), sep="  ")
    if count < most:
        print(f"     value{'':28}{show(value_of(t, options.fuel))}")
    elif options.steps is None:
        print(f"     more: --from {options.first + most} goes on, --steps N prints N steps")


def _grad(p: Program, options: argparse.Namespace) -> None:
    f = p.term(options.name)
    if not isinstance(f.type, Arrow):
        raise CalculusError(
            f"{p.text.file}: a gradient is of a function, but this is {show_type(f.type)}; "
            "--def f chooses a definition"
        )
    if options.at is None:
        raise CalculusError(f"--at is missing: a value of {show_type(f.type.source)}")
    at = program(options.at, "--at").term(stated=f.type.source)
    value = _value(app(f, at), options)
    _said({"value": show(value), "gradient": show(_value(app(gradient(f), at), options))}, options)


def _linear_a(p: Program, options: argparse.Namespace) -> None:
    print(str(linear_a(p.term(options.name), options.fuel)).rstrip("\n"))


_ACTS = {
    "linear-a": _linear_a,
    "run": _run,
    "type": _type,
    "step": _step,
    "trace": _trace,
    "grad": _grad,
}

"""Pictures from the command line: `python -m lineara diagram FILE -o out.svg`."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from lineara.bridges.calculus_and_diagrams import diagram_of as diagram_of_term
from lineara.bridges.python_and_diagrams import diagram
from lineara.calculus.program import program
from lineara.cli import commands
from lineara.cli.functions import SOURCE, arguments_of, function_of, is_function, said, wanted
from lineara.cli.progress import Progress
from lineara.diagrams import Derivation, Net, check, parse, show, snapshot
from lineara.diagrams.from_programs import diagram_of as diagram_of_program
from lineara.diagrams.lowering import lowered
from lineara.diagrams.player import page, sheet
from lineara.diagrams.svg import svg
from lineara.errors import CalculusError, DiagramError
from lineara.text.options import at_least

SOURCES = (
    f"FILE.pb (calculus), FILE.lina (Linear A), FILE.diagram (the notation of diagrams), {SOURCE}"
)


class Usage(Exception):
    """A command line that means nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The program, which step of its differentiation, and where the picture goes."""
    parser.add_argument("source", metavar="FILE|FILE.py:function", help=SOURCES)
    parser.add_argument("--def", dest="name", metavar="f", help="a definition, not the file's term")
    parser.add_argument("--args", metavar="LIST", help="a JSON list at which to trace a function")
    parser.add_argument(
        "--linear",
        action="store_true",
        help="of a function: the linear graph of its derivative at --args, and a sweep back",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--step", type=at_least(0), metavar="K", help="after K steps of differentiation"
    )
    which.add_argument("--all", action="store_true", help="every step of the differentiation")
    parser.add_argument(
        "--gradient", action="store_true", help="with --all: then apply it to 1, and simplify"
    )
    parser.add_argument(
        "--law",
        choices=("br", "eta", "lamb"),
        default="",
        help="with --all or a page: not the differentiation, but (BR), (η) or (Lamb) from frames",
    )
    parser.add_argument(
        "--fold", type=at_least(0), metavar="N", help="shut the boxes within N others"
    )
    parser.add_argument(
        "-o",
        dest="out",
        metavar="OUT",
        help="OUT.svg, OUT.html to play all steps, or OUT.diagram; else stdout",
    )


def run(options: argparse.Namespace) -> int:
    """Draw; 2 and a message if something is wrong with the command line.

    A file is written when its whole text is there, and not before.
    """
    try:
        write = _format(options)
        text = write(_asked(_read(options), options), options)
        if options.out is None:
            print(text, end="")
        else:
            _save(options.out, text)
    except Usage as error:
        print(f"diagram: {error}", file=sys.stderr)
        return 2
    return 0


# --- what is drawn --------------------------------------------------------------------------------


def _read(options: argparse.Namespace) -> Net:
    """The diagram of a program."""
    source: str = options.source
    match Path(source).suffix:
        case ".pb":
            return _calculus(source, options.name)
        case ".lina":
            return _linear_a(source, options.name)
        case ".diagram":
            net = parse(_text(source), source)
            try:
                check(net)
            except DiagramError as error:
                raise DiagramError(f"{source}: {error.message}") from None
            return net
    if is_function(source):
        return _function(options)
    raise Usage(f"{source} is neither of {SOURCES}")


def _text(file: str) -> str:
    try:
        return Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DiagramError(f"{file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DiagramError(
            f"{file}: the byte {error.object[error.start]:#04x} at {error.start} is not UTF-8; "
            "save the file as UTF-8"
        ) from None


def _calculus(file: str, name: str | None) -> Net:
    """The diagram of the term of a file, or of a definition."""
    read = program(_text(file), file)
    term = read.term(name)
    try:
        return diagram_of_term(term)
    except DiagramError as error:
        own = [n for n, d in read.definitions.items() if d.text.file == file and n != name]
        hint = f"\n--def draws a definition: {', '.join(own)}" if own else ""
        raise DiagramError(f"{file}: {error}{hint}") from None


def _linear_a(file: str, name: str | None) -> Net:
    """The diagram of a definition, which must be named if there are several."""
    read = commands.read(file)
    if name is None and len(read.defs) > 1:
        raise Usage(f"{file} has several definitions, --def says which: {', '.join(read.defs)}")
    d = commands.definition(read, next(iter(read.defs), "") if name is None else name)
    with commands.blamed(read, d.name):
        return diagram_of_program(read, d.name).net


def _function(options: argparse.Namespace) -> Net:
    """The diagram of a function: of numbers, or traced at --args."""
    f = function_of(options.source)
    traced = options.linear or options.args is not None
    args = arguments_of(f, options.args) if traced else []
    try:
        with said(f"{options.source} failed at these arguments"):
            return diagram(f, *args, by="linear" if options.linear else "")
    except CalculusError as error:
        if args:
            raise
        raise DiagramError(f"{error}\nwith --args it is traced instead: {wanted(f)}") from None


def _asked(net: Net, options: argparse.Namespace) -> Net:
    """The diagram at the step that was asked for."""
    if options.step is None:
        return net
    if options.step == 0:
        return net
    d = Derivation(lowered(net))
    for step in d.steps():
        if step.number == options.step:
            return snapshot(d)
    raise DiagramError(
        f"{options.source}: the differentiation ends after {len(d.log)} steps; "
        f"--step {options.step} is none of them"
    )


# --- where it goes --------------------------------------------------------------------------------

Write = Callable[[Net, argparse.Namespace], str]


def _svg(net: Net, options: argparse.Namespace) -> str:
    if options.all:
        return sheet(net, options.gradient, options.law)
    return svg(net, options.fold)


def _html(net: Net, options: argparse.Namespace) -> str:
    title = f"{options.source}, step by step"
    with Progress("drawn", "steps") as told:
        return page(net, title, options.gradient, options.law, told=told)


def _notation(net: Net, options: argparse.Namespace) -> str:
    return f"{show(net)}\n"


_FORMATS: dict[str, Write] = {".svg": _svg, ".html": _html, ".diagram": _notation}


def _format(options: argparse.Namespace) -> Write:
    suffix = ".svg" if options.out is None else Path(options.out).suffix
    changed = options.step is not None or options.all or options.gradient or options.law
    if options.linear and (changed or not is_function(options.source)):
        raise Usage("--linear draws a function, without --step, --all, --gradient and --law")
    if suffix not in _FORMATS:
        raise Usage(f"-o {options.out}: pictures end in {', '.join(_FORMATS)}")
    if suffix == ".html" and options.step is not None:
        raise Usage("a page plays all steps; -o OUT.svg draws one of them")
    if suffix == ".diagram" and options.all:
        raise Usage("a text has one diagram; --step K chooses it")
    every = options.all or suffix == ".html"
    if options.gradient and not every:
        raise Usage("--gradient goes with --all, or -o OUT.html")
    if options.law and (options.gradient or not every):
        raise Usage("--law goes with --all, or -o OUT.html, and without --gradient")
    if options.fold is not None and every:
        raise Usage("--fold goes with one picture; a page folds by itself")
    return _FORMATS[suffix]


def _save(out: str, text: str) -> None:
    try:
        Path(out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DiagramError(f"{out}: cannot be written: {error.strerror or error}") from None

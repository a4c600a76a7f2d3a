"""What each command does: a program comes in as text, and text or JSON goes out."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lineara.cli.json_values import plain, read_arguments, readable, value_of
from lineara.engines import Ask
from lineara.engines import run as evaluate
from lineara.errors import LinearaError, ProgramError
from lineara.facts.types import show
from lineara.linear_a.check import check as well_typed
from lineara.linear_a.check import counted, located
from lineara.linear_a.cost import size, static_works
from lineara.linear_a.dimensions import with_dims
from lineara.linear_a.linear_b import linear_b
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Def, Var, blocks
from lineara.passes import derivatives
from lineara.passes import erase as erasing
from lineara.passes import jvp as forward
from lineara.passes import transpose as transposing
from lineara.passes import unzip as unzipping
from lineara.passes.inline import inline
from lineara.passes.multiply_out import multiply_out
from lineara.passes.names import GRAD, JVP, VJP
from lineara.passes.simplify import simplify
from lineara.rules.rules_beside_text import check_rules
from lineara.staging.dead_lanes import of_dead_lanes, run_live
from lineara.text.language import did_you_mean
from lineara.text.options import at_least
from lineara.text.source_location import Place

Act = Callable[[Program, argparse.Namespace], str]


class Command:
    """A command on one file: its options, and the text that it prints."""

    def __init__(
        self,
        act: Act,
        *,
        definition: bool | None = None,
        values: bool = False,
        rules: bool = False,
        linear_b: bool = False,
    ) -> None:
        self.act = act
        self.definition = definition  # whether --def must be given; None: there is no such option
        self.values = values
        self.rules = rules  # whether it uses those that stand beside a definition
        self.linear_b = linear_b  # whether it can judge that, too

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, and what the command takes beside it."""
        parser.add_argument(
            "file", metavar="FILE.lina", help="the program; - is the standard input"
        )
        if self.definition is not None:
            parser.add_argument(
                "--def", dest="name", metavar="f", required=self.definition, help="the definition"
            )
        if self.values:
            parser.add_argument(
                "--args", metavar="LIST", help="a JSON list of arguments; @file.npy is an array"
            )
            parser.add_argument("--ieee", action="store_true", help="go on with infinities and NaN")
            parser.add_argument(
                "--fuel",
                type=at_least(0),
                metavar="N",
                help="stop after N calls and rounds of loops",
            )
            parser.add_argument("--json", action="store_true", help="print JSON")
        if self.rules:
            parser.add_argument(
                "--trust", action="store_true", help="do not test the rules that the file gives"
            )
        if self.linear_b:
            parser.add_argument(
                "--linear-b",
                action="store_true",
                help="also that no expression mixes what is linear and what is not, as unzip leaves"
                " it and transpose takes it",
            )

    def run(self, options: argparse.Namespace) -> int:
        """Print what the command finds; an error that is not ours is told as one."""
        try:
            print(self.act(read(options.file), options).rstrip("\n"), flush=True)
        except (LinearaError, BrokenPipeError):
            raise
        except MemoryError as error:
            return failed(f"{options.file}: the program needs more memory than there is: {error}")
        except Exception as error:
            return failed(
                f"{options.file}: {type(error).__name__}: {error}; "
                "this is a mistake in Lineara: please report it with the program"
            )
        return 0


def failed(message: str) -> int:
    """A message on stderr; the exit status of an error."""
    print(message, file=sys.stderr)
    return 1


# --- reading --------------------------------------------------------------------------------------


def read(name: str) -> Program:
    """The well typed program of a file."""
    file = "<stdin>" if name == "-" else name
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ProgramError(f"{file}: cannot be read: {error.strerror or error}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        held = Program({}, {}, {}, raw.decode("utf-8", "replace"), file)
        message = f"the byte {raw[error.start]:#04x} is not UTF-8; save the file as UTF-8"
        raise ProgramError(located(held, Place(line, column), message)) from None
    program = well_typed(parse(text, file))
    if not program.types and not program.defs:
        message = "the file defines nothing; a program has a definition: def f(x: f64;) -> …"
        raise ProgramError(located(program, Place(1, 1), message))
    return program


def definition(program: Program, name: str) -> Def:
    """The definition that --def names."""
    if name not in program.defs:
        hint = did_you_mean(name, program.defs) or f"; there is {', '.join(program.defs)}"
        raise ProgramError(f"{program.file}: there is no definition {name}{hint}")
    return program.defs[name]


@contextmanager
def blamed(program: Program, name: str) -> Iterator[None]:
    """What a pass says about a definition is said at its place."""
    d = definition(program, name)
    try:
        yield
    except LinearaError as error:
        if error.message.startswith(f"{program.file}:"):
            raise
        place = program.places[d][0]
        if "\n" in error.message:  # the message shows the equation already
            at = f"{program.file}:{place.line}:{place.column}"
            raise ProgramError(f"{at}: {error.message}") from None
        raise ProgramError(located(program, place, error.message)) from None


def check_trust(program: Program, options: argparse.Namespace, values: list[Any] | None) -> None:
    """Test the rules that the derivative of the definition uses, unless they are to be trusted."""
    if not options.trust:
        hint = "mend the rule, or give --trust if this is meant"
        check_rules(program, options.name, values, hint)


def arguments(program: Program, options: argparse.Namespace) -> list[Any]:
    """The values of --args, each of the type of its formal; errors show the formal."""
    d = definition(program, options.name)
    given = [] if options.args is None else read_arguments(options.args)
    places = program.places[d]
    if len(given) != len(d.params):
        formals = ", ".join(f"{p!r}: {show(p.type)}" for p in d.params) or "nothing"
        message = f"{d.name} takes {counted(len(d.params), 'argument')} ({formals})"
        said = f"{message}, but --args has {len(given)}"
        raise ProgramError(located(program, places[0], said))
    sizes = program.dims(d.name)
    dims: dict[Var, int] = {}
    values: dict[Var, Any] = {}
    rows = list(zip(d.params, given, places[1:], strict=True))
    for p, value, place in sorted(rows, key=lambda row: row[0] not in sizes):  # dimensions first
        try:
            values[p] = value_of(program, with_dims(p.type, dims), value, f"{p!r}")
            if p in sizes:
                dims[p] = length(values[p], f"{p!r}")
        except ProgramError as error:
            raise ProgramError(located(program, place, error.message)) from None
    return [values[p] for p in d.params]


def length(value: Any, where: str) -> int:
    """A dimension; no array has a negative one."""
    if value < 0:
        raise ProgramError(f"{where} is a dimension, so it is 0 or more, but {value} is given")
    return int(value)


# --- the commands ---------------------------------------------------------------------------------


def _check(program: Program, options: argparse.Namespace) -> str:
    """How much is well typed: all, or one definition and what it applies."""
    names = [*program.defs]
    if options.name is not None:
        names = [*program.reached(definition(program, options.name).name)]
    if options.linear_b:
        linear_b(program, names)
    count = sum([bindings(program.defs[f]) for f in names])
    counts = f"{counted(len(names), 'definition')}, {counted(count, 'binding')}"
    return f"{program.file}: well typed{', Linear B' * options.linear_b}: {counts}"


def _print(program: Program, options: argparse.Namespace) -> str:
    return str(program)


def _pass(transform: Callable[[Program, str], Program]) -> Act:
    """The program with what a pass adds, checked."""

    def act(program: Program, options: argparse.Namespace) -> str:
        with blamed(program, options.name):
            check_trust(program, options, None)
            return str(well_typed(transform(program, options.name)))

    return act


def _unzip(program: Program, options: argparse.Namespace) -> str:
    """The two halves; of a definition without a linear side the second is empty, which is said."""
    text = _pass(unzipping.unzip)(program, options)
    d = definition(program, options.name)
    if d.lxs or d.lresults:
        return text
    jvp = d.name + JVP
    why = f"{d.name} has no linear side, so that its tape is empty; jvp writes {jvp}, which has one"
    return f"# {why}\n{text}"


def _multiply(program: Program, options: argparse.Namespace) -> str:
    """The program in which a definition is one sparse matrix where that is less, and the work."""
    name = options.name
    with blamed(program, name):
        flat = simplify(inline(program, name), name)
        made = well_typed(multiply_out(flat, name))
        works = [static_works(p)[name] for p in (program, flat, made)]
    said = ", ".join(["depends on the values" if w is None else str(w) for w in works])
    return f"# work of {name}: as it is, with calls inlined, multiplied out: {said}\n{made}"


def _run(program: Program, options: argparse.Namespace) -> str:
    d, values = definition(program, options.name), arguments(program, options)
    with blamed(program, d.name):
        outcome = evaluate(program, d.name, *values, ask=_ask(options))
    results = list(
        zip((*d.results, *d.lresults), (*outcome.results, *outcome.lresults), strict=True)
    )
    if options.json:
        held = [plain(program, t, v) for t, v in results]
        return json.dumps({"results": held, "work": outcome.work})
    lines = [f"{show(t)}  {readable(program, t, v)}" for t, v in results]
    return "\n".join([*lines, f"work  {outcome.work}"])


def _ask(options: argparse.Namespace) -> Ask:
    return Ask(work=True, ieee=options.ieee, fuel=options.fuel)


def _grad(program: Program, options: argparse.Namespace) -> str:
    """The value, and for each argument its gradient: nothing for what cannot move."""
    d, values = definition(program, options.name), arguments(program, options)
    with blamed(program, d.name):
        derived = derivatives.grad(program, d.name)
        check_trust(program, options, values)
        value = evaluate(program, d.name, *values, ask=_ask(options))
        outcome = evaluate(derived, d.name + GRAD, *values, ask=_ask(options))
        slopes = outcome.results
        if of_dead_lanes(slopes, values):
            one = value.results[0].dtype.type(1)
            given = derivatives.vjp(program, d.name), d.name + VJP, values, [one]
            slopes = run_live(*given)[len(d.results) :]
    made = derived.defs[d.name + GRAD]
    parts = iter(zip(made.results, slopes, strict=True))
    gradient = [None if program.is_inert(p.type) else next(parts) for p in d.params]
    if options.json:
        return json.dumps(
            {
                "value": plain(program, d.results[0], value.results[0]),
                "gradient": [g and plain(derived, *g) for g in gradient],
                "work": {"value": value.work, "gradient": outcome.work},
            }
        )
    lines = [
        f"{p!r}: {show(p.type)}  {readable(derived, *g) if g else '-'}"
        for p, g in zip(d.params, gradient, strict=True)
    ]
    return "\n".join(
        [
            f"value  {readable(program, d.results[0], value.results[0])}",
            "gradient",
            *[f"  {line}" for line in lines],
            f"work  value {value.work}, gradient {outcome.work}",
        ]
    )


def _cost(program: Program, options: argparse.Namespace) -> str:
    """Work and size of one definition, or of all; executed work if there are arguments."""
    if options.args is not None and options.name is None:
        raise ProgramError("--args goes with --def: say which definition the values are for")
    works: dict[str, int | None] = static_works(program)
    if options.name is not None:
        d = definition(program, options.name)
        works = {d.name: works[d.name]}
        if options.args is not None:
            values = arguments(program, options)
            with blamed(program, d.name):
                works[d.name] = evaluate(program, d.name, *values, ask=_ask(options)).work
    costs = {f: {"work": w, "size": size(program.defs[f])} for f, w in works.items()}
    if options.json:
        return json.dumps(costs if options.name is None else costs[options.name])
    lines = [
        f"{f}  work {'depends on the values' if c['work'] is None else c['work']}, size {c['size']}"
        for f, c in costs.items()
    ]
    if options.name is None:
        lines.append(f"program  size {size(program)}")
    return "\n".join(lines)


def bindings(d: Def) -> int:
    """How many bindings a definition has, those of blocks within it too."""
    return sum([len(block.bindings) for block in blocks(d.body)])


check: Command = Command(_check, definition=False, linear_b=True)
print_: Command = Command(_print)
jvp: Command = Command(_pass(forward.jvp), definition=True, rules=True)
unzip: Command = Command(_unzip, definition=True, rules=True)
transpose: Command = Command(_pass(transposing.transpose), definition=True, rules=True)
erase: Command = Command(_pass(erasing.erase), definition=True, rules=True)
multiply: Command = Command(_multiply, definition=True)
run: Command = Command(_run, definition=True, values=True)
grad: Command = Command(_grad, definition=True, values=True, rules=True)
cost: Command = Command(_cost, definition=False, values=True)

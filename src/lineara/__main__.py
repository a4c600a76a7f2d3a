"""The command line, `python -m lineara`: one table of commands, each in a module of its own."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import lineara
from lineara.errors import LinearaError

# A command has `add_arguments(parser)` and `run(arguments) -> exit status`, and a line here: the
# module that it is, or the name that a module has for it, and what it does.  Only the module that
# is asked for loads.  A LinearaError of a command is printed here.
TEXT = "lineara.cli.commands"
COMMANDS = {
    "demo": (
        "lineara.demo.command",
        "fit a predator-prey model to the pelts of Hudson Bay, and draw it",
    ),
    "check": (f"{TEXT}:check", "check the types of a program, and that what is linear is"),
    "print": (f"{TEXT}:print_", "print a program in its canonical form"),
    "jvp": (f"{TEXT}:jvp", "print the program with the forward derivative of a definition"),
    "unzip": (f"{TEXT}:unzip", "print the program with a definition split in value and linear map"),
    "transpose": (f"{TEXT}:transpose", "print the program with a linear definition run backwards"),
    "erase": (f"{TEXT}:erase", "print the program with a definition that forgets what is linear"),
    "multiply": (f"{TEXT}:multiply", "print the program with linear calls multiplied out, if less"),
    "run": (f"{TEXT}:run", "run a definition on arguments, and count the work"),
    "grad": (f"{TEXT}:grad", "value and gradient of a definition, and the work of both"),
    "cost": (f"{TEXT}:cost", "work and size of definitions"),
    "crosscheck": ("lineara.crosscheck.command", "run random programs through each engine"),
    "cache": ("lineara.cli.cache", "where compiled code is kept on disk; remove it"),
    "calculus": ("lineara.cli.calculus", "run, trace and differentiate terms of the calculus"),
    "explore": ("lineara.explorer.command", "a page on a function: source, stages, costs a line"),
    "diagram": ("lineara.cli.diagram", "draw a program, and its differentiation step by step"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 1 after an error, 2 after wrong use."""
    parser = argparse.ArgumentParser(
        prog="python -m lineara",
        description="Lineara differentiates ordinary Python numeric code.",
        epilog="commands:\n"
        + "".join(f"  {name:<11} {does}\n" for name, (_, does) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lineara {lineara.__version__}")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="command", help="see below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the command takes")
    asked = parser.parse_args(argv)
    if asked.command is None:
        parser.error(f"a command is missing; there is: {', '.join(COMMANDS)}")

    where, does = COMMANDS[asked.command]
    module, _, name = where.partition(":")
    command = import_module(module)
    command = getattr(command, name) if name else command
    parser = argparse.ArgumentParser(prog=f"python -m lineara {asked.command}", description=does)
    command.add_arguments(parser)
    options = parser.parse_intermixed_args(asked.arguments)  # an option may stand before the file
    try:
        return command.run(options)
    except LinearaError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""The command line, `python -m lineara`: one table of commands, each in a module of its own."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

import lineara

# A command is a module with `add_arguments(parser)` and `run(arguments) -> exit status`, and a line
# here: the module and what it does.  Only the module that is asked for loads.
COMMANDS = {
    "demo": ("lineara.demo", "fit a predator-prey model to the pelts of Hudson Bay, and draw it"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status.  Usage errors exit with 2."""
    parser = argparse.ArgumentParser(
        prog="python -m lineara",
        description="Lineara differentiates ordinary Python numeric code.",
        epilog="commands:\n"
        + "".join(f"  {name:<10} {does}\n" for name, (_, does) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lineara {lineara.__version__}")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="command", help="see below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the command takes")
    asked = parser.parse_args(argv)
    if asked.command is None:
        parser.error(f"a command is missing; there is: {', '.join(COMMANDS)}")

    module, does = COMMANDS[asked.command]
    command = import_module(module)
    parser = argparse.ArgumentParser(prog=f"python -m lineara {asked.command}", description=does)
    command.add_arguments(parser)
    return command.run(parser.parse_args(asked.arguments))


if __name__ == "__main__":
    sys.exit(main())

"""`python -m lineara explore FILE.py:function --args LIST -o page.html`."""

import argparse

from lineara.cli.functions import SOURCE, arguments_of, function_of, said
from lineara.errors import ProgramError
from lineara.explorer.exploration import explore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The function, where it is explored, and where the page goes."""
    parser.description = (
        "Write a page on a function: its source, what every pass makes of it, and what each line "
        "costs. FILE.py is imported, which runs what stands in it."
    )
    parser.add_argument("source", metavar="FILE.py:function", help=f"{SOURCE}; it is run")
    parser.add_argument(
        "--args",
        metavar="LIST",
        help="a JSON list of arguments: numbers, lists (arrays), @file.npy",
    )
    parser.add_argument("-o", dest="out", metavar="OUT.html", required=True, help="the page")


def run(options: argparse.Namespace) -> int:
    """Write the page; what is wrong is said in words."""
    f = function_of(options.source)
    args = arguments_of(f, options.args)
    with said(f"{options.source} failed at these arguments"):
        explored = explore(f, *args)
    try:
        explored.save(options.out)
    except OSError as error:
        raise ProgramError(f"{options.out}: cannot be written: {error.strerror or error}") from None
    print(explored)
    return 0

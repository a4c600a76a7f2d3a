"""`python -m lineara crosscheck`: the four engines and machine code on random programs."""

import argparse
import json

from lineara.crosscheck.report import SIZE, crosscheck
from lineara.text.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many, and which."""
    parser.add_argument(
        "--programs", type=at_least(1), default=200, metavar="N", help="default: 200"
    )
    parser.add_argument(
        "--seed", type=at_least(0), default=0, metavar="S", help="the first program's"
    )
    parser.add_argument("--size", type=at_least(1), default=SIZE, help="constructs, about")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print what was found; 1 if there is a disagreement."""
    report = crosscheck(options.programs, options.seed, options.size)
    print(json.dumps(report.json()) if options.json else report.text())
    return int(report.wrong)

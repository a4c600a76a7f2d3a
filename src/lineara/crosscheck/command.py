"""`python -m lineara crosscheck`: the four engines against each other on random programs."""

import argparse
import json

from lineara.crosscheck.report import SIZE, crosscheck


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many, and which."""
    parser.add_argument("--programs", type=_count, default=200, metavar="N", help="default: 200")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first program's")
    parser.add_argument("--size", type=_count, default=SIZE, help="constructs, about")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _count(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"{n} is not at least 1")
    return n


def run(options: argparse.Namespace) -> int:
    """Print what was found; 1 if there is a disagreement."""
    report = crosscheck(options.programs, options.seed, options.size)
    print(json.dumps(report.json()) if options.json else report.text())
    return int(report.wrong)

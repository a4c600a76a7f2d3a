"""`python -m lineara demo`: the fit, its report and the picture."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from timeit import repeat
from typing import Any

import numpy as np
from rich.console import Console

import lineara
from lineara.demo import fit, model, picture, screen
from lineara.text.options import at_least

DRAWS = 200
FORMATS = (".png", ".pdf", ".svg")
NO_MATPLOTLIB = (
    "lineara demo: the picture needs matplotlib, which is not installed; "
    "everything else above is complete. Install it with:  pip install 'lineara[plot]'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m lineara demo`."""
    parser.add_argument(
        "--out",
        type=_picture_path,
        default=Path("lynx-hare.png"),
        metavar="PATH",
        help="where the picture goes: a .png, .pdf or .svg file, or a folder (%(default)s)",
    )
    parser.add_argument(
        "--starts", type=at_least(1), default=8, metavar="N", help="BFGS runs (%(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=at_least(0),
        default=0,
        metavar="S",
        help="of the random starts (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit the model, print the report and draw the picture; returns the exit status."""
    console = Console()
    years, pelts = model.hudson_bay()
    console.print(screen.opening(pelts))

    f, naive = fit.objective(years, pelts)
    value_and_gradient = fit.gradient_of(f)
    ended = []
    with screen.Descents(console) as descents:
        for start in fit.starts(naive, arguments.starts, arguments.seed):
            descents.begin()
            ended.append(fit.descend(value_and_gradient, start, descents.tell))
            descents.end(ended[-1])
    best = min(ended, key=lambda d: d.value)
    console.print(screen.verdict(ended, best))

    covariance = fit.covariance(f, best.x)
    console.print(screen.parameters(np.exp(best.x), fit.standard_errors(best.x, covariance)))
    console.print(screen.check(lineara.check_grads(f, (best.x,), order=2, modes=("fwd", "rev"))))
    console.print(screen.cost(_cost(f, best.x)))

    if not picture.can_draw():
        print(NO_MATPLOTLIB, file=sys.stderr)
        return 1
    draws = fit.draws(best.x, covariance, DRAWS, arguments.seed)
    try:
        picture.draw(model.Parameters(*np.exp(best.x)), draws, years, pelts, arguments.out)
    except OSError as error:
        print(f"lineara demo: the picture cannot be saved: {error}", file=sys.stderr)
        return 1
    console.print(f"\nThe picture: {arguments.out}", soft_wrap=True, highlight=False)
    return 0


def _cost(f: Callable[[np.ndarray], Any], x: np.ndarray) -> screen.Cost:
    """The best of several timings, and the counted work of the gradient's linear map."""

    def seconds(g: Callable[[np.ndarray], Any]) -> float:
        return min(repeat(lambda: g(x), number=1, repeat=10))

    gradient, work = lineara.value_and_grad(f), lineara.linearize(f, x)[1].work
    jitted = (
        [seconds(lineara.jit(g, engine="native")) for g in (f, gradient)] if fit.COMPILES else []
    )
    return screen.Cost((seconds(f), seconds(gradient)), jitted, work.value, work.reverse)


def _picture_path(text: str) -> Path:
    """The path of the picture; an unusable one is refused before the fit."""
    path = Path(text)
    if path.is_dir():
        return path / "lynx-hare.png"
    if path.suffix.lower() not in FORMATS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a folder nor a file that ends in {', '.join(FORMATS)}"
        )
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r}; make it first")
    return path

"""The gallery's functions under `numba.njit`, unchanged: prints the least microseconds, as JSON."""

import json
import sys
import time
import warnings
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from gallery import (
    audio,
    biology,
    control,
    finance,
    geometry,
    graphs,
    imaging,
    physics,
    statistics,
    text,
)
from gallery.snippets import GALLERY

PAGES = (audio, biology, control, finance, geometry, graphs, imaging, physics, statistics, text)
CALLS, SECONDS = 50, 0.3


def least(f, args):
    """The least microseconds of CPU time of a call."""
    best, until = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        begun = time.process_time_ns()
        for _ in range(CALLS):
            f(*args)
        best = min(best, (time.process_time_ns() - begun) / CALLS / 1e3)
    return best


def main():
    measured, refused = {}, {}
    warnings.simplefilter("ignore")
    for snippet in GALLERY:
        name = f"{snippet.f.__module__.partition('.')[2]}: {snippet.f.__name__}"
        f = numba.njit(snippet.f)
        try:
            value = f(*snippet.args)
        except Exception as error:
            refused[name] = type(error).__name__
            continue
        if not np.isclose(value, snippet.f(*snippet.args), rtol=1e-9):
            refused[name] = "another value"
            continue
        measured[name] = least(f, snippet.args)
    print(json.dumps({"measured": measured, "refused": refused}))


if __name__ == "__main__":
    main()

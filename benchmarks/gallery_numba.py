"""The gallery's functions under `numba.njit`, unchanged: prints the least microseconds, as JSON."""

import json
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
from least import least

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
        measured[name] = least(f, snippet.args, SECONDS, CALLS)
    print(json.dumps({"measured": measured, "refused": refused}))


if __name__ == "__main__":
    main()

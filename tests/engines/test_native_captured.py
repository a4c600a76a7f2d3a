"""Machine code gives what the interpreter gives on captured functions and their derivatives.

They are random functions of plain Python, random functions that give arrays several names, and the
gallery.  Exact, code has the same bits; by default the bound of `rounding.py` holds.
Many more functions are tried in `make fuzz`.
"""

import collections
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from shards import shards
from test_native_random import EXACT, NATIVE, agree

import lineara
from lineara.errors import LinearaError

sys.path.insert(0, str(Path(__file__).parent.parent / "capture"))
try:
    from random_rows import Buffers, Rows
    from random_source import module, source
    from test_gallery_captured import GALLERY, REFUSED, name
finally:
    sys.path.pop(0)

SHORT = 300  # lines of the program: up to there the second derivative is compared
FUNCTIONS, SHARDS = 16, 4


def compared(functions, args, counts):
    """Compare the engines on each of these functions; counts what became of it."""
    for order, f in enumerate(functions):
        try:
            p = lineara.jit(f).program(*args)
            lines = str(p.program).splitlines()
        except (LinearaError, NameError):
            counts["refused"] += 1
            return
        for engine in (EXACT, NATIVE):
            if engine.takes(p.program, p.name) is None:
                counts[f"{engine.name}, order {order}"] += 1
                with np.errstate(all="ignore"):
                    agree(p, p.operands(args), engine)
        if len(lines) > SHORT:
            return


def explore(seed: int, folder: str) -> collections.Counter[str]:
    """Compare the engines on a random function and its derivatives, and on one of arrays."""
    counts = collections.Counter[str]()
    rng = np.random.default_rng(seed)
    size = rng.integers(3, 7)
    x, s, u, r = rng.normal(size=size), float(rng.normal()), rng.normal(size=size), rng.normal()
    f = module(source(seed), folder, f"native_source_{seed}").f
    g = lineara.grad(f, (0, 1))
    rows = module((Rows, Buffers)[seed % 2](seed).source(), folder, f"native_rows_{seed}").f
    slope = lineara.grad(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflow, which is Python's own
        along = lambda x, s, n: lineara.jvp(lambda *at: g(*at, n), (x, s), (u, float(r)))  # noqa: E731
        compared([f, g, along], (x, s, 3), counts)
        compared([rows, slope, lineara.grad(slope)], (0.7, rng.normal(size=(4, 3))), counts)
    return counts


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_random_functions_and_their_derivatives_have_the_interpreters_values(shard, request):
    functions = FUNCTIONS * (5 if request.config.option.all else 1)
    counts = collections.Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(shard, functions, SHARDS):
            try:
                counts += explore(seed, folder)
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise
    assert all([counts[f"native, order {order}"] for order in range(3)]), counts
    assert counts["native exact, order 0"] >= functions / SHARDS / 2, counts


@pytest.mark.parametrize("snippet", [s for s in GALLERY if s.f.__name__ not in REFUSED], ids=name)
def test_a_function_of_the_gallery_and_its_gradient_have_the_interpreters_values(snippet):
    counts = collections.Counter[str]()
    gradient = lineara.grad(snippet.f, tuple(range(len(snippet.args))))
    compared([snippet.f, gradient], snippet.args, counts)
    assert counts["native, order 0"] == 1, counts

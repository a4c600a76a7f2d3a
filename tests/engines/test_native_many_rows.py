"""Every operation among others, on so many rows that they are one region of machine code.

What is calculated before an operation, the operation and what is calculated of its results are
emitted row by row there, if it can be told what a row of it needs.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from rounding import leaves
from test_native import EXACT, bits
from test_native_operations import CONSTANTS, MASKED, PRIMITIVES, numbers

from lineara.engines import run
from lineara.errors import LinearaError
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.passes.batch import batch, batched_name
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase

sys.path.insert(0, str(Path(__file__).parent.parent / "linear_a"))
try:
    from staged import captured
finally:
    sys.path.pop(0)

LANES, SHARDS = 64, 16
LINES = [*PRIMITIVES, *CONSTANTS]


def doubled(y):
    """Twice a number; of whether something holds, a number that tells it."""
    if type_of(y).dtype.kind == "b":
        return op("where")(y, 2.0, 1.0)
    return op("add")(y, y)


def among_others(line):
    """The operation of a line of the table on calculated arguments, and their values."""

    def f(*values):
        given = iter([op("multiply")(v, one(v)) if one(v) else v for v in values])
        args = [next(given) if i in inputs else a for i, a in enumerate(line.args)]
        return doubled(line.primitive(*args, **line.params))

    def one(v):
        dtype = type_of(v).dtype
        return dtype.type(1) if dtype.kind in "fc" else None

    inputs = [i for i, a in enumerate(line.args) if i in line.active or isinstance(a, np.ndarray)]
    values = [line.args[i] for i in inputs]
    return captured(f, values), values


def over_lanes(values, rng):
    """Values for all lanes, of which each has a little less."""

    def smaller(v):
        part = rng.uniform(0.97, 1.0, (LANES, *[1] * v.ndim)).astype(v.real.dtype)
        return v * part if v.dtype.kind in "fc" else np.stack([v] * LANES)

    return list(map(smaller, values))


def agree(program, name, given, line):
    """Compare machine code with the interpreter; gives how often it was compared."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            expected = run(program, name, *given, engine="interpreter").results
        except Exception:
            return 0  # there is no value in one of the lanes
        compared = 0
        for engine in (EXACT, MASKED):
            if engine.takes(program, name) is not None:
                continue
            ours = run(program, name, *given, engine=engine).results
            compared += 1
            if engine is EXACT:
                assert bits(ours) == bits(expected), line
            else:
                for a, b in zip(leaves(ours), leaves(expected), strict=True):
                    close = 1e-9 if a.dtype.itemsize >= 8 else 1e-3
                    scale = np.max(np.abs(b), initial=1.0, where=np.isfinite(b))
                    np.testing.assert_allclose(a, b, close, close * scale, err_msg=line)
    return compared


@pytest.mark.slow("three definitions of each operation are compiled")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_each_operation_among_others_on_many_rows(shard):
    rng = np.random.default_rng(shard)
    compared = 0
    for line in LINES[shard::SHARDS]:
        try:
            program, values = among_others(line)
            program = erase(erase(vjp(program, "f"), "f.jvp"), "f.vjp")
        except (LinearaError, TypeError):
            continue  # it gives no numbers in a program, or has no derivative
        for name in ("f", "f.jvp.e", "f.vjp.e"):
            given = [np.asarray(v) for v in numbers(program.defs[name], values, 0)]
            axes = (0,) * len(given)
            try:
                made = batch(program, name, axes, LANES)
            except LinearaError:
                continue  # it has no lanes
            lanes, g = over_lanes(given, rng), batched_name(name, axes, LANES)
            compared += agree(made, g, lanes, f"{line}, {name}")
    assert compared > 25

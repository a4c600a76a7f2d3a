"""What was captured keeps none of the arguments that it was captured with."""

import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import lineara
from lineara.errors import LinearaError

trace = lineara.trace


def steps(x, s):
    t = 0.0
    for v in x:
        if v > s:
            t += np.sin(v) * s
    return t


def halved(x, s):
    return steps(x, s) if s < 0.1 else halved(x, s * 0.5)


def held(d):
    return np.sin(d["x"]).sum() * d["s"]


@dataclass
class Pair:
    x: np.ndarray
    s: float


def in_a_pair(p):
    return steps(p.x, p.s)


def written(x, s):
    x[0] = s
    return x.sum()


def called(program, *args):
    program(*args)
    return program


def refused(x):
    program = lineara.jit(lambda x: x[: int(x[0])])
    with pytest.raises(LinearaError):
        program(x)
    return program


KEEPERS = {
    "trace": lambda x: called(trace(steps, x, 0.2), x, 0.2),
    "jit": lambda x: called(lineara.jit(steps), x, 0.2),
    "jit of a gradient": lambda x: called(lineara.jit(lineara.grad(steps)), x, 0.2),
    "jit of a vmap": lambda x: called(lineara.jit(lineara.vmap(np.sin)), x),
    "a gradient of jit": lambda x: called(lineara.grad(lineara.jit(steps)), x, 0.2),
    "recursion": lambda x: called(lineara.jit(halved), x, 9.0),
    "a dict": lambda x: called(lineara.jit(held), {"x": x, "s": 2.0}),
    "an object": lambda x: called(lineara.jit(in_a_pair), Pair(x, 0.2)),
    "a written argument": lambda x: called(lineara.jit(written), x, 0.2),
    "another form": lambda x: called(called(lineara.jit(steps), x, 0.2), x[1:], 0.2),
    "a refusal": refused,
}


@pytest.mark.parametrize("keeper", KEEPERS.values(), ids=KEEPERS)
def test_arguments_are_not_kept(keeper):
    x = np.linspace(0.5, 1.5, 100)
    of_x = weakref.ref(x)
    kept = keeper(x)
    del x
    gc.collect()
    assert kept is not None
    assert of_x() is None

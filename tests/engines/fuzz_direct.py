"""Calls of machine code with every kind of bad argument: `make fuzz`, and a test.

    python tests/engines/fuzz_direct.py [CALLS] [--seed N]

A direct call has the result of the plain function, or it gives NotImplemented or raises; it never
crashes, keeps nothing, and leaves arguments as they are.  Run it with PYTHONMALLOC=debug: Python
looks then at the ends of each block of memory.
"""

import argparse
import array
import contextlib
import decimal
import fractions
import gc
import math
import random
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import lineara
from lineara.engines import ENGINES, with_room
from lineara.staging.capture.quick_calls import attached

NATIVE = next(e for e in ENGINES if e.name == "native")
X = np.array([0.3, 0.9, 0.51, 0.11, 0.7])
M = np.arange(6.0).reshape(2, 3)


def a_number(x, n):
    return x * x + n


def several(x, y):
    return x * y, x.sum(), np.sin(y)


def taped(x, n):
    total = 0.0
    y = np.zeros(5)
    for i in range(5):
        y[i] = x[i] * total + x[n]
        total = total + y[i] * y[i]
    return total


def of_matrix(m, x):
    return m @ m.T, x[::-1] * 2.0


def of_containers(p, n):
    return {"y": p["w"] * p["b"][0], "n": (n + 1, "text")}


FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (a_number, (3.0, 4)),
    (several, (X, X + 1.0)),
    (lineara.value_and_grad(taped), (X, 2)),
    (of_matrix, (M, X)),
]
RESULTS = np.empty((2, 2)), np.empty(5)  # of `of_matrix`, which may be put into others
OF_CONTAINERS: tuple[Callable[..., Any], tuple[Any, ...]] = (
    of_containers, ({"w": X, "b": [0.5, X]}, 3),
)  # fmt: skip


class Plain:
    """What is called where machine code does not run a program."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented


class Guarded:
    """The calls of a jitted function by machine code: these arguments, and the last by name."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        jitted = lineara.jit(f, engine="native")
        with np.errstate(all="ignore"):  # as in the calls below
            for _ in range(3):
                jitted(*args)
        self.call = with_room(Plain)()
        self.table = attached(self.call, Plain, jitted.recent)
        assert self.table is not None


class Own(np.ndarray):
    """An array of a class of one's own."""


class Number:
    """What says that it is a number, and raises, or gives something else."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __float__(self) -> float:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    __index__ = __float__  # type: ignore[assignment]


class Whole(int):
    """A whole number of a class of one's own."""


class Real(float):
    """A float of a class of one's own."""


def unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    y = memory[1:].view(x.dtype)
    y[...] = x.ravel()
    return y.reshape(x.shape)


def read_only(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y.flags.writeable = False
    return y


KEPT = np.zeros(64)
GOOD: list[Callable[[np.ndarray], Any]] = [  # of the right type, and fitting
    np.copy, read_only, lambda x: x * np.nan, lambda x: x + np.inf, lambda x: x * 0.0,
    lambda x: KEPT[3 : 3 + x.size].reshape(x.shape),
]  # fmt: skip
BAD: list[Callable[[np.ndarray], Any]] = [
    lambda x: np.asfortranarray(x), lambda x: x[::-1], lambda x: np.repeat(x, 2, 0)[::2],
    unaligned, lambda x: x[1:], lambda x: x[:0], lambda x: np.zeros((0, *x.shape)),
    lambda x: x.astype(np.float32), lambda x: x.astype(">f8"), lambda x: x.astype(np.int64),
    lambda x: x.astype(complex), lambda x: x.astype(bool), lambda x: x.astype(object),
    lambda x: np.concatenate([x, x]).astype(np.float32), lambda x: x.astype("f2"),
    lambda x: x.view(Own), lambda x: np.ma.masked_array(x, x > 0.4), lambda x: x.view("M8[s]"),
    lambda x: np.broadcast_to(x, (10**6, *x.shape)), lambda x: np.broadcast_to(1.0, (10**9,)),
    lambda x: x.reshape(-1)[:, None], lambda x: x.reshape(-1)[0], lambda x: np.asarray(0.5),
    lambda x: list(x), lambda x: tuple(x), lambda x: {"x": x}, lambda x: memoryview(x),
    lambda x: x.tobytes(), lambda x: bytearray(x.tobytes()), lambda x: array.array("d", x.ravel()),
    lambda x: np.array(list("abcde")), lambda x: np.zeros(5, [("a", "f8")]), lambda x: iter(x),
]  # fmt: skip
NUMBERS: list[Any] = [
    0.5, -1.0, -1, 3, 0, 4, math.nan, math.inf, -0.0, 1e308, 5e-324, True, Whole(3), Real(-1.0),
    np.float64(0.3), np.int64(-1), np.float32(0.5), np.int8(3), np.bool_(True), np.longdouble(0.5),
    2**63 - 1, -(2**63),
]  # fmt: skip
NO_NUMBERS: list[Any] = [
    None, "text", b"bytes", 2**63, 10**400, 1j, np.complex128(1j), object(), [], (), {}, [1.0],
    decimal.Decimal("0.5"), fractions.Fraction(1, 2), Number(0.25), Number(ValueError("no")),
    Number("text"), Number(KeyError("no")), Number(10**30), NotImplemented, Ellipsis, int, len, X,
    M, np.array("text"), np.datetime64("2020-01-01"), range(5), slice(3),
]  # fmt: skip


BAD_CONTAINERS: list[Callable[[Any], Any]] = [
    tuple, str, len, iter, lambda c: [*c, 1.0], lambda c: [*c][:-1], lambda c: {1: c},
    lambda c: [c], lambda c: dict(enumerate(c)), lambda c: dict(reversed([*enumerate(c)])),
    lambda c: {**dict.fromkeys("wb", X), "z": X}, lambda c: type("Own", (type(c),), {})(c),
    lambda c: {f"{k}"[:1]: X for k in c},
]  # fmt: skip


def drawn(rng: random.Random, like: Any) -> tuple[Any, bool]:
    """An argument in the place of one that fits, and whether it has the right type."""
    kind = rng.random()
    if isinstance(like, dict | list):
        if kind < 0.1:
            return rng.choice(NO_NUMBERS + NUMBERS), False
        items = [*like.values()] if isinstance(like, dict) else like
        pairs = [(v, True) if rng.random() < 0.7 else drawn(rng, v) for v in items]
        new: Any = [v for v, _ in pairs]
        new = dict(zip(like, new, strict=True)) if isinstance(like, dict) else new
        if kind < 0.3:
            return rng.choice(BAD_CONTAINERS)(new), False
        return new, all([fine for _, fine in pairs])
    if isinstance(like, np.ndarray):
        if kind < 0.4:
            return rng.choice(GOOD)(like), True
        with np.errstate(all="ignore"):  # casts of what is not finite
            return rng.choice(BAD)(like) if kind < 0.8 else rng.choice(NO_NUMBERS + NUMBERS), False
    if kind < 0.4:
        return type(like)(rng.choice([-2, -1, 0, 1, 3, 4])), True
    return (rng.choice(NUMBERS) if kind < 0.7 else rng.choice(NO_NUMBERS)), False


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal up to rounding, NaN in the same places."""
    pairs = zip(lineara.trees.flatten(a)[0], lineara.trees.flatten(b)[0], strict=True)
    return all(
        [
            u == v if isinstance(u, str) else np.allclose(u, v, 1e-12, 1e-12, equal_nan=True)
            for u, v in pairs
        ]
    )


class Calls:
    """The functions, their direct calls, and what came of the calls so far."""

    def __init__(self) -> None:
        self.directs = []
        self.told = dict.fromkeys(("right", "not implemented", "raised", "anything"), 0)
        for f, args in FUNCTIONS:
            staged = lineara.jit(f, engine="native").program(*args)
            staged(*args)  # it is compiled
            weak = [False] * len(staged.program.defs[staged.name].results)
            direct = NATIVE.direct(staged.program, staged.name, weak)
            assert direct is not None
            assert not staged.beside
            self.directs.append((f, args, direct))
        self.guarded = [Guarded(f, args) for f, args in (*FUNCTIONS, OF_CONTAINERS)]
        pairs = zip((*FUNCTIONS, OF_CONTAINERS), self.guarded, strict=True)
        self.directs += [(f, args, g.call) for (f, args), g in pairs]

    def one(self, rng: random.Random) -> None:
        """One call; it is compared where the arguments have the right types."""
        f, args, direct = rng.choice(self.directs)
        pairs = [drawn(rng, like) for like in args]
        given = [value for value, _ in pairs]
        fits = all([fine for _, fine in pairs])
        if rng.random() < 0.1:  # too few, too many, or one thing twice
            how = rng.randrange(3)
            given = [given[:-1], [*given, rng.choice(NO_NUMBERS)], [given[0]] * len(given)][how]
            fits = False
        before = [v.copy() if type(v) is np.ndarray else None for v in given if fits]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, of a complex number that is taken
                y = direct(*given)
        except Exception as error:
            self.told["raised"] += 1
            if fits and not isinstance(error, lineara.errors.BoundsError):
                raise AssertionError(f"{f} of {given} raises") from error
            return
        if y is NotImplemented:
            self.told["not implemented"] += 1
            assert not fits or f is FUNCTIONS[2][0], f"{f} of {given} is not taken"  # in doubt
        elif fits:
            self.told["right"] += 1
            with np.errstate(all="ignore"):
                assert same(y, f(*given)), (f, given, y)
            for v, b in zip(given, before, strict=True):
                assert b is None or np.array_equal(v, b, equal_nan=True), "an argument is written"
        else:
            self.told["anything"] += 1  # a buffer of that size is read whatever its type

    def put(self, rng: random.Random) -> None:
        """One call with arrays for the results: these are there, or nothing was written."""
        f, args, direct = self.directs[3]
        pairs = [(v, True) if rng.random() < 0.8 else drawn(rng, v) for v in args]
        given, fits = [v for v, _ in pairs], all([fine for _, fine in pairs])
        out = [v.copy() if rng.random() < 0.6 else drawn(rng, v)[0] for v in RESULTS]
        if rng.random() < 0.1:
            given[0] = np.arange(9.0)[3:].reshape(2, 3)
            out[1] = given[0].base[rng.randrange(5) :][:5]  # of which some is an argument
        plain = [type(v) is np.ndarray and v.size < 100 for v in (*given, *out)]
        kept = [v.copy() if p else v for v, p in zip((*given, *out), plain, strict=True)]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = direct(*given, *out)
        except Exception:
            self.told["raised"] += 1
            y = NotImplemented
        if y is NotImplemented:
            self.told["not implemented"] += 1
            for v, k, p in zip((*given, *out), kept, plain, strict=True):
                assert not p or v.tobytes() == k.tobytes(), "it is written, and not done"
            return
        self.told["right"] += 1
        assert all([a is b for a, b in zip(y, out, strict=True)]), "they are not given back"
        for v, like in zip(out, RESULTS, strict=True):
            assert type(v) is np.ndarray
            assert v.flags.carray
            assert (v.shape, v.dtype) == (like.shape, like.dtype)
            assert not any([isinstance(a, np.ndarray) and np.shares_memory(v, a) for a in given])
        with np.errstate(all="ignore"):
            apart = not np.shares_memory(*out)  # `Jitted.into` looks at that
            assert not fits or not apart or same(y, f(*kept[:2])), (given, y)


def many(calls: int, rng: random.Random) -> None:
    """So many calls that do not draw: of what fits, of what does not, and of what raises."""
    everything = Calls()
    rest = [value for value in NO_NUMBERS if value is not None]
    for k in range(3):
        if k == 1:
            gc.collect()
            blocks, size = (
                sys.getallocatedblocks(),
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            )
        for f, args, direct in everything.directs:
            bad = [*args[:-1], "text"]
            for _ in range(calls // 20 if k else 1000):
                direct(*args)
                direct(*args)
                direct(*bad)
                direct()
                if isinstance(direct, Plain):
                    direct(*args[:-1], n=args[-1])
            for _ in range(calls // 20 if k and f is of_matrix else 1000):
                direct(*args, *RESULTS)
            for _ in range(1000):
                with contextlib.suppress(Exception):
                    direct(args[0], rng.choice(rest))
            if f is FUNCTIONS[2][0]:
                for _ in range(calls // 400 if k else 100):
                    try:
                        direct(X, 7)
                    except lineara.errors.BoundsError:
                        continue
                    raise AssertionError("there is no such place")
    gc.collect()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size
    print(f"{sys.getallocatedblocks() - blocks} blocks, {grown} KiB more after {calls:,} calls")
    assert sys.getallocatedblocks() - blocks < 1_000
    assert grown < 4096


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    rng = random.Random(given.seed)
    fuzzed = Calls()
    for f, args in FUNCTIONS:  # the derivative that results are compared with keeps code
        f(*args)
    shared = (int, str, tuple, bool, type, type(None))  # everybody has these
    kept = [v for v in (*NO_NUMBERS, *NUMBERS, X, M, KEPT, *RESULTS) if type(v) not in shared]
    references = list(map(sys.getrefcount, kept))
    for _ in range(min(given.calls // 20, 100_000)):
        fuzzed.one(rng)
        fuzzed.put(rng)
    gc.collect()
    after = list(map(sys.getrefcount, kept))
    grown = [a - b for a, b in zip(after, references, strict=True)]
    told = [(type(v), k) for v, k in zip(kept, grown, strict=True) if abs(k) > given.calls // 1000]
    assert not told, told
    print(f"seed {given.seed}: {fuzzed.told}")
    with np.errstate(all="ignore"):
        many(given.calls, rng)

"""Memory that several names see: arguments that overlap, and views that are older than a lock."""

import ctypes
import itertools
import operator
import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from tables import try_all

from lineara import grad, hessian, jit, jvp, linearize, trace, value_and_grad, vjp, vmap
from lineara.errors import DetachError, LinearaError, MutationError
from lineara.tape.locked_arrays import WHOLE, imprint

# --- arguments that overlap ----------------------------------------------------------------------

CUTS = {
    "whole": lambda a: a,
    "rest": lambda a: a[1:],
    "head": lambda a: a[:5],
    "even": lambda a: a[::2],
    "odd": lambda a: a[1::2],
    "backward": lambda a: a[::-1],
    "tail backward": lambda a: a[:6:-1],
    "table": lambda a: a.reshape(3, 4),
    "turned": lambda a: a.reshape(4, 3).T,
    "column": lambda a: a.reshape(3, 4)[:, 1],
    "block": lambda a: a.reshape(3, 4)[1:, 2:],
    "memory": lambda a: np.asarray(memoryview(a)),
    "buffer": lambda a: np.frombuffer(a, a.dtype, 4, 2 * a.itemsize),
    "copy": lambda a: a.copy(),
}


class Program:
    """A few writes among arrays, and a sum of all elements with different weights."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self.steps = [
            (rng.randrange(count), rng.randrange(count), rng.choice(["one", "some", "in place"]))
            for _ in range(rng.randrange(3))
        ]
        self.constant = rng.random() < 0.3

    def __call__(self, *arrays: Any) -> Any:
        total = 0.0
        for i, (to, of, how) in enumerate(self.steps):
            x, y = arrays[to], arrays[of]
            s = y.sum()
            total = total + (i + 2) * (s * s)
            if how == "one":
                x[(-1,) * x.ndim] = 1.5 if self.constant else s * 0.5
            elif how == "some":
                x[..., :2] = 0.5 * x[..., :2] if self.constant else x[..., :2] * s
            else:
                x *= 1.25
        for i, x in enumerate(arrays):
            total = total + (i + 1) * (x * x).sum() + x[(0,) * x.ndim]
        return total

    def writes(self) -> set[int]:
        return {to for to, _, _ in self.steps}


def drawn(rng: random.Random) -> tuple[list[str], Program]:
    names = [rng.choice(sorted(CUTS)) for _ in range(rng.randrange(2, 4))]
    return names, Program(rng, len(names))


def cut(names: list[str]) -> list[Any]:
    base = np.linspace(0.3, 1.7, 12)
    return [CUTS[name](base) for name in names]


def clash(names: list[str], written: set[int]) -> bool:
    """Whether an array that is written has an element of another one, by counting elements."""
    places = np.arange(12)
    marks = [set() if n == "copy" else set(CUTS[n](places).ravel().tolist()) for n in names]
    return any(marks[i] & marks[j] for i in written for j in range(len(names)) if i != j)


def by_complex_step(f: Any, arrays: list[Any], way: list[Any]) -> float:
    moved = [x + 1e-30j * v for x, v in zip(arrays, way, strict=True)]
    return f(*moved).imag / 1e-30


def in_a_dict(f: Any, arrays: list[Any]) -> Any:
    given = {str(i): x for i, x in enumerate(arrays)}
    value, g = value_and_grad(lambda p: f(*[p[k] for k in given]))(given)
    return value, [g[k] for k in given]


def nested(f: Any, arrays: list[Any]) -> Any:
    every = tuple(range(len(arrays)))

    def inner(*xs: Any) -> Any:
        return value_and_grad(f, argnums=every)(*xs)[0]

    return value_and_grad(inner, argnums=every)(*arrays)


def by_vjp(f: Any, arrays: list[Any]) -> Any:
    value, back = vjp(f, *arrays)
    return value, back(1.0)


MODES = {
    "positions": lambda f, xs: value_and_grad(f, argnums=tuple(range(len(xs))))(*xs),
    "one position": lambda f, xs: (value_and_grad(f)(*xs)[0], None),
    "dict": in_a_dict,
    "policy": lambda f, xs: value_and_grad(f, argnums=tuple(range(len(xs))), policy="store_all")(
        *xs
    ),
    "linearize": lambda f, xs: (linearize(f, *xs)[0], None),
    "jvp": lambda f, xs: (jvp(f, tuple(xs), tuple(map(np.ones_like, xs)))[0], None),
    "vjp": by_vjp,
    "nested": nested,
    "trace": lambda f, xs: (trace(f, *xs)(*xs), None),
    "vmap": lambda f, xs: (_lane(f, xs), None),
}


def _lane(f: Any, xs: list[Any]) -> Any:
    return vmap(f)(*[x[None] for x in xs])[0]


@pytest.mark.parametrize("mode", MODES)
def test_arguments_that_overlap_are_right_or_refused(mode):
    try_all(mode, [partial(overlaps_are_right_or_refused, seed=n) for n in range(60)])


def overlaps_are_right_or_refused(mode, seed):
    names, f = drawn(random.Random(f"{mode} {seed}"))
    expected = f(*cut(names))
    refused = clash(names, f.writes())
    if refused:
        # A traced value that is written into an argument that is not differentiated comes first.
        errors = (MutationError, DetachError) if mode == "one position" else MutationError
        with pytest.raises(errors):
            MODES[mode](f, cut(names))
        return
    if mode == "one position" and f.writes() - {0}:
        return  # a traced value does not fit into a plain array
    value, g = MODES[mode](f, cut(names))
    assert value == pytest.approx(expected, rel=1e-13)
    if g is not None:
        arrays = cut(names)
        way = [np.cos(np.arange(x.size) + i).reshape(x.shape) for i, x in enumerate(arrays)]
        slope = by_complex_step(f, arrays, way)
        assert sum((a * b).sum() for a, b in zip(g, way, strict=True)) == pytest.approx(slope)


def test_overlapping_integers_that_are_promoted_are_refused_too():
    def f(a, b):
        b[0] = 5 * a[0]
        return (a * b.sum()).sum()

    a = np.arange(1, 5)
    with pytest.raises(MutationError):
        grad(f, argnums=(0, 1))(a, a[1:])


def test_second_derivatives_see_that_arguments_overlap():
    def f(p):
        p["flat"][0] = p["flat"][1] * 3
        return p["W"].sum() * p["flat"].sum()

    a = np.arange(1.0, 5.0)
    with pytest.raises(MutationError):
        hessian(f)({"flat": a, "W": a.reshape(2, 2)})


def test_a_plain_argument_that_overlaps_can_be_written_afterwards():
    a = np.ones(4)

    def f(a, b):
        b[0] = 2.0
        return a.sum()

    with pytest.raises(MutationError):
        grad(f)(a, a[1:])
    assert grad(lambda a, b: a @ b)(a, a).tolist() == [1.0] * 4
    a[1:] = 3.0


# --- arrays that must not change -----------------------------------------------------------------


def _swapped(a: Any, rng: Any) -> None:
    i, j = rng.integers(len(a), size=2)
    a[[i, j]] = a[[j, i]]


def _turned(a: Any, rng: Any) -> None:
    a[...] = np.roll(a, int(rng.integers(1, len(a))), axis=0)


def _shuffled(a: Any, rng: Any) -> None:
    rng.shuffle(a)


def _one(a: Any, rng: Any) -> None:
    a.flat[rng.integers(a.size)] += 1e-9


def _sorted(a: Any, rng: Any) -> None:
    a.sort(axis=None if a.ndim < 2 else 0)


def _upside_down(a: Any, rng: Any) -> None:
    a[...] = a[::-1].copy()


def _two_elements(a: Any, rng: Any) -> None:
    i, j = rng.integers(a.size, size=2)
    a.flat[i], a.flat[j] = a.flat[j], a.flat[i]


def _negated(a: Any, rng: Any) -> None:
    i, j = rng.integers(len(a), size=2)
    a[i] *= -1
    a[j] *= -1


CHANGES = (_swapped, _turned, _shuffled, _one, _sorted, _upside_down, _two_elements, _negated)
WIDTHS = (1, 3, 8, 509, 1013, 1021, 2042, 4084)  # of rows, among them those of the sums


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_content_changes_the_imprint(change):
    for width, whole_numbers in itertools.product(WIDTHS, (False, True)):
        changes_the_imprint(change, width, whole_numbers)


def changes_the_imprint(change, width, whole_numbers):
    rng = np.random.default_rng([width, whole_numbers, CHANGES.index(change)])
    for _ in range(5):
        rows = int(rng.integers(9000 // width + 2, WHOLE // 8 // width + 1))
        a = rng.integers(1, 9, (rows, width)) + (0.0 if whole_numbers else rng.random(width))
        before, content = imprint(a), a.tobytes()
        change(a, rng)
        assert (imprint(a) == before) == (a.tobytes() == content)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_through_an_older_view_is_refused(change):
    rng = np.random.default_rng(CHANGES.index(change))
    for rows, width in ((20, 1021), (40, 1021), (60, 509), (200, 102)):
        a = rng.random((rows, width))
        older = a[:]

        def f(x, a=a, older=older):
            y = (a * x).sum()
            change(older, rng)
            return y

        content = a.tobytes()
        try:
            found = grad(f)(np.ones(width))
        except MutationError:
            assert a.tobytes() != content
        else:
            assert a.tobytes() == content
            np.testing.assert_allclose(found, a.sum(0))


def test_what_one_call_has_looked_at_is_forgotten_by_the_next():
    a = np.ones(20_000)
    older = a[:]
    a.flags.writeable = False
    grad(lambda x: (a * x).sum())(np.ones(20_000))
    older[3] = 2.0
    assert grad(lambda x: x * x)(3.0) == 6.0


# --- the memory of an array that is made inside ---------------------------------------------------

POINTER = ctypes.POINTER(ctypes.c_double)
WAYS = {
    "memoryview": memoryview,
    "data": lambda y: y.data,
    "frombuffer": np.frombuffer,
    "asarray of memoryview": lambda y: np.asarray(memoryview(y)),
    "as_array": np.ctypeslib.as_array,
    "as_ctypes": np.ctypeslib.as_ctypes,
    "ctypes": lambda y: y.ctypes.data_as(POINTER),
    "interface": lambda y: (ctypes.c_double * 3).from_address(y.__array_interface__["data"][0]),
    "computed name": lambda y: getattr(y, "ct" + "ypes").data_as(POINTER),
    "attrgetter": lambda y: operator.attrgetter("ctypes")(y).data_as(POINTER),
    "getattribute": lambda y: y.__getattribute__("ctypes").data_as(POINTER),
    "getfield": lambda y: y.getfield(float),
    "from_dlpack": np.from_dlpack,
    "view": lambda y: y.view(),
}
MADE = {
    "zeros": lambda x: np.zeros(3),
    "like": np.ones_like,
    "product": lambda x: 2.0 * x,
    "written": lambda x: _with(np.zeros(3), x[0]),
    "argument": lambda x: x,
    "copy": lambda x: x.copy(),
}
FEW = {
    "grad": lambda f, x: value_and_grad(f)(x)[0],
    "linearize": lambda f, x: linearize(f, x)[0],
    "trace": lambda f, x: trace(f, x)(x),
}


def _with(y: Any, v: Any) -> Any:
    y[1] = v
    return y


@pytest.mark.parametrize("way", WAYS)
def test_a_write_through_the_memory_of_an_array_counts_or_is_refused(way):
    for made, mode in itertools.product(MADE, FEW):
        counts_or_is_refused(way, made, mode)


def counts_or_is_refused(way, made, mode):
    def f(x: Any) -> Any:
        y = MADE[made](x)
        WAYS[way](y)[0] = 7.0
        return (y * y).sum() + 3 * x.sum()

    x = np.array([0.5, 1.5, 2.5])
    try:
        found = FEW[mode](f, x.copy())
    except (LinearaError, TypeError, ValueError):  # NumPy's words for memory that is read-only
        return
    assert found == f(x.copy())


def test_what_was_read_through_memory_is_not_overtaken_by_a_write():
    def f(x: Any) -> Any:
        y = np.zeros(3)
        seen = memoryview(y)
        y[0] = 4.0
        return x.sum() * seen[0]

    with pytest.raises(MutationError):
        grad(f)(np.ones(3))


# --- a new shape in place -------------------------------------------------------------------------

SHAPES = [(2, 3), (3, 2), 6, (-1,), (1, 6, 1), (4,), (-1, 4), (6, 1, 1), (2, -1)]
STARTS = {
    "vector": lambda x: x * np.arange(1.0, 7.0),
    "table": lambda x: np.outer(x[:2], x[:3]),
    "turned": lambda x: np.outer(x[:2], x[:3]).T,
    "zeros": lambda x: np.zeros((3, 2)),
    "slice": lambda x: np.concatenate([x, x])[::2],
}


@pytest.mark.parametrize("mode", FEW)
@pytest.mark.parametrize("start", STARTS)
def test_a_shape_is_set_as_numpy_sets_it(start, mode):
    for shape in SHAPES:

        def f(x: Any, shape: Any = shape) -> Any:
            y = STARTS[start](x)
            older = y[1:2]
            try:
                y.shape = shape
            except (AttributeError, ValueError) as e:
                return x.sum() * (2.0 if isinstance(e, ValueError) else 3.0)
            y[(0,) * y.ndim] = x[0] * x[1]
            y[(-1,) * y.ndim] = 2.0
            first = y[0] if y.ndim > 1 else y[:3]
            return (y * y).sum() + 5 * first.sum() + older.sum() + y.ndim

        x = np.linspace(0.5, 1.5, 6)
        assert FEW[mode](f, x) == pytest.approx(f(x), rel=1e-13), shape
        if mode == "grad":
            way = np.cos(np.arange(6))
            slope = (f(x + 1e-7 * way) - f(x - 1e-7 * way)) / 2e-7
            assert grad(f)(x) @ way == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("engine", ["interpreter", "native", "adaptive"])
def test_an_argument_that_overlaps_itself_is_read_and_a_write_to_it_is_refused(engine):
    def written(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 2 + i
        return x.sum()

    def read(x):
        return (x * x).sum()

    jitted, plain = jit(written, engine=engine), np.arange(5.0)
    assert jitted(plain.copy()) == written(plain.copy())
    windows = np.lib.stride_tricks.sliding_window_view(np.ones(6), 3, writeable=True)
    for x in (np.lib.stride_tricks.as_strided(np.ones(10), (5,), (0,)), windows):
        before = x.copy()
        with pytest.raises(MutationError, match=r"elements share their memory.* give a copy"):
            jitted(x)
        assert np.array_equal(x, before)
        assert jit(read, engine=engine)(x) == read(x)

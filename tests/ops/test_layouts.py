"""Every layout in memory, empty arrays, no axes, NaN and infinity, for every primitive."""

import itertools
import warnings

import numpy as np
import pytest
from tables import Laws
from test_primitives import ELEMENTWISE, SMOOTH, Line, as_tuple, close, random_like

from lineara.errors import ShapeError

laws = Laws()


def strided(a):
    """A view of every second element along each axis."""
    big = np.full(tuple(2 * n for n in a.shape), np.nan, a.dtype)
    big[tuple(slice(None, None, 2) for _ in a.shape)] = a
    return big[tuple(slice(None, None, 2) for _ in a.shape)]


def reversed_(a):
    """A view that runs backwards through memory along each axis."""
    return np.flip(np.flip(a).copy())


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def swapped(a):
    """Numbers in the other byte order."""
    return a.astype(a.dtype.newbyteorder())


LAYOUTS = [np.asfortranarray, strided, reversed_, read_only, swapped]


@laws.of([line for line in SMOOTH if any(isinstance(a, np.ndarray) for a in line.point())])
def the_layout_in_memory_changes_nothing(line):
    y, L = line.linearize()
    c = random_like(y, 3)
    pulled = as_tuple(c @ L)
    for layout in LAYOUTS:
        if layout is swapped and line.name == "astype":
            continue  # the dtype is what it is about
        args = [
            layout(a) if isinstance(a, np.ndarray) and i in line.active and a.size else a
            for i, a in enumerate(line.args)
        ]
        other = line.of(args)
        found, M = other.linearize()
        close(found, y)
        for a, b in zip(as_tuple(c @ M), pulled, strict=True):
            close(a, b)
            assert not isinstance(a, np.ndarray) or (a.flags.writeable and a.flags.c_contiguous)


OF_ARRAYS = [line for line in ELEMENTWISE if line.function is line.primitive]
OF_ARRAYS = list({line.name: line for line in OF_ARRAYS if line.name != "polygamma"}.values())


def filled(line, *shapes):
    """The line at arrays of these shapes, with numbers inside its domain."""
    args = []
    for i, (a, shape) in enumerate(zip(line.args, itertools.cycle(shapes), strict=False)):
        number = np.ravel(a)[0]
        args.append(np.full(shape, number) if i in line.active or np.ndim(a) else a)
    return line.of(args)


@laws.of(OF_ARRAYS)
def empty_arrays_and_arrays_without_axes(line):
    for shape in [(0,), (0, 3), (2, 0), ()]:
        of = filled(line, shape)
        y, L = of.linearize()
        assert np.shape(y) == shape
        for g, p in zip(
            as_tuple(np.ones(shape) @ L if shape else 1.0 @ L), of.point(), strict=True
        ):
            assert np.shape(g) == np.shape(p)


SHAPES = [(), (1,), (3,), (2, 1), (1, 3), (2, 3), (4, 1, 3), (0, 3), (2,)]


@laws.of([line for line in OF_ARRAYS if len(line.args) == 2])
def every_broadcasting_case(line):
    for a, b in itertools.product(SHAPES, repeat=2):
        of = filled(line, a, b)
        if len(of.active) < 2:
            continue
        try:
            shape = np.broadcast_shapes(a, b)
        except ValueError:
            with pytest.raises(ShapeError, match="cannot broadcast"):
                of.linearize()
            continue
        y, L = of.linearize()
        assert np.shape(y) == shape
        c = random_like(y, 1)
        spread = filled(line, shape, shape)
        whole = as_tuple(c @ spread.linearize()[1])
        for g, w, p in zip(as_tuple(c @ L), whole, of.point(), strict=True):
            lead = len(shape) - np.ndim(p)
            kept = tuple(i + lead for i, n in enumerate(np.shape(p)) if n == 1 != shape[i + lead])
            summed = np.sum(w, axis=(*range(lead), *kept)).reshape(np.shape(p))
            close(g, summed)


@laws.of(OF_ARRAYS)
def a_nan_or_an_infinity_stays_in_its_lane(line):
    for odd in (np.nan, np.inf, -np.inf):
        clean = filled(line, (3,))
        args = list(clean.args)
        i = clean.active[0]
        args[i] = np.array([args[i][0], odd, args[i][2]])
        stays_in_its_lane(line, clean, args)


def stays_in_its_lane(line, clean, args):
    """The first of the arguments has something odd in its middle lane."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        y, L = clean.of(args).linearize()
        expected = line.primitive(*args)
        np.testing.assert_array_equal(y, expected)
        lanes = as_tuple(np.ones(3) @ L)[0]
        usual = as_tuple(np.ones(3) @ clean.linearize()[1])[0]
    close(lanes[[0, 2]], usual[[0, 2]])


def test_a_line_for_each_elementwise_primitive_is_looked_at():
    assert {line.name for line in OF_ARRAYS} >= {
        line.name for line in ELEMENTWISE if line.name != "polygamma"
    }
    assert all(isinstance(line, Line) for line in OF_ARRAYS)


test_every_law = laws.test()

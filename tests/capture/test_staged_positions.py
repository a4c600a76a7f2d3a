"""Arrays written at positions that are arguments, in each way that NumPy indexes, and repeated."""

import itertools

import numpy as np
import pytest

import lineara

FORMS = {
    "i": lambda i, j: (i,),
    "i, j": lambda i, j: (i, j),
    "i[:, None], j": lambda i, j: (i[:, None], j),
    "i, :": lambda i, j: (i, slice(None)),
    ":, i": lambda i, j: (slice(None), i),
    "..., i": lambda i, j: (..., i),
    "i, ..., j": lambda i, j: (i, ..., j),
    "i, :, j": lambda i, j: (i, slice(None), j),
    ":, i, j": lambda i, j: (slice(None), i, j),
    "2, i": lambda i, j: (2, i),
    "i, :, 2": lambda i, j: (i, slice(None), 2),
    ":, None, i": lambda i, j: (slice(None), None, i),
    "None, i": lambda i, j: (None, i),
    "i, None": lambda i, j: (i, None),
    "1:4, i": lambda i, j: (slice(1, 4), i),
    "::-2, i": lambda i, j: (slice(None, None, -2), i),
    "ix_(i, j)": lambda i, j: np.ix_(i, j),
    "i[:2], mask": lambda i, j: (i[:2], np.array([True, False, True, False])),
}


def fill(z, at, v):
    z[at] = v


def add(z, at, v):
    z[at] += v


def fill_transposed(z, at, v):
    z.T[at] = v


def fill_reversed(z, at, v):
    z[::-1][at] = v


def negate(z, at, v):
    np.negative.at(z, at)


WRITES = [fill, add, fill_transposed, fill_reversed, negate]
WRITES += [u.at for u in (np.add, np.subtract, np.multiply, np.maximum, np.hypot)]
WEIGHTS = np.cos(np.arange(64.0)).reshape(4, 4, 4)


@pytest.mark.parametrize("form", FORMS)
def test_a_write_at_positions_that_are_arguments_is_numpys(form):
    for write, n in itertools.product(WRITES, (2, 12)):
        assert_write_is_numpys(form, write, n)


def assert_write_is_numpys(form, write, n):
    def written(x, v, i, j):
        z = 2.0 * x
        write(z, FORMS[form](i, j), np.cosh(v))
        return z

    def weighted(x, v, i, j):
        return (written(x, v, i, j) * WEIGHTS).sum()

    rng = np.random.default_rng(n)
    x = rng.uniform(0.5, 1.5, (4, 4, 4))
    i, j = rng.integers(-4, 4, (2, n))
    shape = x[FORMS[form](i, j)].shape
    captured, derived = lineara.jit(written), lineara.jit(lineara.grad(weighted, (0, 1)))
    for v in (rng.normal(size=shape), rng.normal(size=shape[-1:]), np.array(0.3)):
        assert np.array_equal(captured(x, v, i, j), written(x, v, i, j))
        eager = lineara.grad(lambda x, v: weighted(x, v, i, j), (0, 1))(x, v)
        for ours, expected in zip(derived(x, v, i, j), eager, strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [9, 900])
def test_a_write_at_many_positions_is_one_loop_over_them(n):
    def written(x, i):
        z = np.zeros(5)
        np.maximum.at(z, i, x)
        z[i] = x * x
        return z

    args = (np.ones(n), np.arange(n) % 5)
    program = lineara.trace(written, *args)
    assert program.size() < 90
    assert program.run(*args).work <= 20 * n


@pytest.mark.parametrize("dtype", [int, np.float32, bool])
def test_an_array_of_another_kind_keeps_it(dtype):
    def written(x, i):
        z = np.zeros(4, dtype)
        np.maximum.at(z, i, x)
        z[i[:9]] = x[:9]
        return z

    x, i = np.linspace(-3, 3, 12), np.arange(12) * 5 % 4
    assert lineara.jit(written)(x, i).dtype == dtype
    assert np.array_equal(lineara.jit(written)(x, i), written(x, i))


@pytest.mark.parametrize("n", [2, 12])
@pytest.mark.parametrize(("write", "verb"), [(fill, "written"), (np.maximum.at, "read")])
def test_a_position_that_is_not_there_is_told_at_its_line(write, verb, n):
    def f(x, i):
        z = np.zeros(4)
        write(z, i, x)
        return z

    with pytest.raises(IndexError) as e:
        lineara.jit(f)(np.ones(n), np.arange(n) + 4)
    assert e.value.message == (
        f"f64[4] was {verb} at a place that it does not have: index 4 is out of bounds for axis 0 "
        "with size 4; count from 0 to 3, or backwards from -1 to -4"
    )
    assert "test_staged_positions.py:" in str(e.value)

    def caught(x, i):
        z = np.zeros(4)
        try:
            write(z, i, x)
        except IndexError:
            z[:] = x[0]
        return z

    assert np.array_equal(lineara.jit(caught)(np.full(n, 2.0), np.arange(n) + 4), np.full(4, 2.0))


def test_what_does_not_fit_at_positions_is_told():
    def f(x, i):
        z = np.zeros((4, 3))
        z[i, :2] = x
        return z

    with pytest.raises(lineara.errors.ShapeError) as e:
        lineara.jit(f)(np.ones(3), np.arange(12) % 4)
    assert e.value.message == (
        "write: f64[3] does not fit at [i64[12], :2] of an array of shape (4, 3): it has the "
        "shape (3,), not (12, 2)"
    )


DTYPES = np.typecodes["AllInteger"][:8] + "?fdFD"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:Casting complex", "ignore:invalid value", "ignore:overflow")
def test_each_turn_of_at_is_rounded_to_the_dtype_of_the_array(dtype):
    for of in DTYPES:
        assert_at_is_numpys(dtype, of)


def assert_at_is_numpys(dtype, of):
    z, v = np.array([3, -3, 5, 1]).astype(dtype), np.array([1.6, -0.5, -0.5, 2, 100, -128])
    v, places = v.astype(of), [0, 1, 1, 2, -1, 1]

    for ufunc in (np.add, np.subtract, np.multiply, np.maximum):

        def staged(z, i, v, ufunc=ufunc):
            z = np.array(z)
            ufunc.at(z, i, v)
            return z

        def constant(z, v, ufunc=ufunc):
            z = np.array(z)
            ufunc.at(z, places, v)
            return z

        try:
            expected = constant(z, v)
        except TypeError:  # the negative of booleans
            for f, args in ((staged, (z, np.array(places), v)), (constant, (z, v))):
                with pytest.raises(TypeError):
                    lineara.jit(f)(*args)
        else:
            for f, args in ((staged, (z, np.array(places), v)), (constant, (z, v))):
                np.testing.assert_array_equal(lineara.jit(f)(*args), expected, strict=True)


MASKED = {
    "rows": lambda z, x: z.__setitem__(z[:, 0, 0] > 1, x[0, 0, 0]),
    "rows, a row": lambda z, x: z.__setitem__(z[:, :, 0] > 1, x[1, 2]),
    "rows and ...": lambda z, x: z.__setitem__((z[:, 0, 0] > 1, ...), np.ones((4, 4)) * x[1]),
    "columns": lambda z, x: z.__setitem__((slice(None), z[0, :, 0] > 1), 2.0),
    "columns and :": lambda z, x: z.__setitem__(
        (slice(None), z[0, :, 0] > 1, slice(None)), x[0, 0]
    ),
    "the last axis": lambda z, x: z.__setitem__((..., z[0, 0] > 1), 2.0),
    "all": lambda z, x: z.__setitem__(z > 1, x[0, 0, :1]),
    "all, added": lambda z, x: np.add.at(z, z > 1, x[0, 0, 0]),
    "all, the larger": lambda z, x: np.maximum.at(z, z > 1, 1.2 * x[0, 0, 0]),
    "of a view": lambda z, x: z[::-1].T.__setitem__(z[0, 0] > 1, 3.0),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_of_whole_axes_is_written(name):
    def written(x):
        z = 2.0 * x
        MASKED[name](z, x)
        return z

    def weighted(x):
        return (written(x) * WEIGHTS).sum()

    x = np.random.default_rng(1).uniform(0.1, 1.0, (4, 4, 4))
    assert np.array_equal(lineara.jit(written)(x), written(x))
    eager = lineara.grad(weighted)(x)
    np.testing.assert_allclose(lineara.jit(lineara.grad(weighted))(x), eager, rtol=1e-12)


@pytest.mark.parametrize(
    "write",
    [
        lambda z: z.__setitem__(z[:, 0] > 0, np.ones((1, 3))),
        lambda z: z.__setitem__((z[:, 0] > 0, 0), 1.0),
        lambda z: z.__setitem__(z[0] > 0, 1.0),
    ],
)
def test_a_mask_of_which_values_tell_what_is_written_is_refused(write):
    def written(x):
        z = 2.0 * x
        write(z)
        return z

    with pytest.raises(lineara.errors.StagingError) as e:
        lineara.jit(written)(np.arange(12.0).reshape(4, 3) - 5)
    assert e.value.message == (
        "a write where a mask holds whose values are not known yet: the mask has to be of whole "
        "axes, all other axes are written whole, and the value is the same at each place, as one "
        "number; for an array of values use np.where(mask, values, array)"
    )

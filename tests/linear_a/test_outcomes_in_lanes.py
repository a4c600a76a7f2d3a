"""What a function gives, raises and shares in a lane, in a trace and on the tape is as in NumPy."""

import contextlib
import itertools
import operator
import warnings

import numpy as np
import pytest

import lineara
from lineara.errors import MutationError, NoRuleError

MODES = {
    "grad": lambda f, x: lineara.value_and_grad(lambda a: f(1.0 * a).sum())(x)[0],
    "vmap": lambda f, x: lineara.vmap(f)(x[None])[0].sum(),
    "trace": lambda f, x: lineara.trace(f, x)(x).sum(),
}
# Calls for which there is nothing to do: some give the array itself, or a view, and most a copy.
IDLE = {
    "block": np.block,
    "block of a list": lambda a: np.block([a]),
    "concatenate": lambda a: np.concatenate([a]),
    "tile": lambda a: np.tile(a, 1),
    "repeat": lambda a: np.repeat(a, 1, axis=0),
    "roll by nothing": lambda a: np.roll(a, 0),
    "roll along nothing": lambda a: np.roll(a, (), ()),
    "fftshift along nothing": lambda a: np.fft.fftshift(a, axes=()),
    "ifftshift along nothing": lambda a: np.fft.ifftshift(a, ()),
    "take of a row": lambda a: np.take(a, 0, axis=0),
    "take of all": lambda a: np.take(a, range(2), axis=0),
    "take_along_axis": lambda a: np.take_along_axis(a, np.array([[0], [1]]), 1),
    "pad": lambda a: np.pad(a, 0),
    "delete": lambda a: np.delete(a, [], axis=0),
    "insert": lambda a: np.insert(a, 0, []),
    "append": lambda a: np.append(a, []),
    "clip": lambda a: np.clip(a, -9.0, 9.0),
    "nan_to_num": np.nan_to_num,
    "nan_to_num without a copy": lambda a: np.nan_to_num(a, copy=False),
    "tril": lambda a: np.tril(a, 9),
    "sum along nothing": lambda a: np.sum(a, axis=()),
    "max along nothing": lambda a: np.max(a, axis=()),
    "mean of one": lambda a: np.mean(a[None], axis=0),
    "median of one": lambda a: np.median(a[None], axis=0),
    "maximum.reduce": lambda a: np.maximum.reduce(a[None], 0),
    "rot90": lambda a: np.rot90(a, 4),
    "squeeze": np.squeeze,
    "atleast_2d": np.atleast_2d,
    "resize": lambda a: np.resize(a, a.shape),
    "astype": lambda a: a.astype(float),
    "astype without a copy": lambda a: a.astype(float, copy=False),
    "asarray": np.asarray,
    "float64": np.float64,
    "positive": np.positive,
    "real": np.real,
    "conj": np.conj,
    "where": lambda a: np.where(True, a, a),
    "matrix_power": lambda a: np.linalg.matrix_power(a, 1),
    "einsum": lambda a: np.einsum("ij->ij", a),
    "diff": lambda a: np.diff(a, 0),
    "moveaxis": lambda a: np.moveaxis(a, 0, 0),
    "flip along nothing": lambda a: np.flip(a, ()),
    "split": lambda a: np.split(a, 1)[0],
    "ravel": np.ravel,
    "flatten": lambda a: a.flatten(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", IDLE)
def test_a_call_that_changes_nothing_gives_a_copy_where_numpys_does(name, mode):
    def f(a):
        r = IDLE[name](a)
        r[...] = 7.0
        return a

    x = np.arange(1.0, 5.0).reshape(2, 2)
    with contextlib.suppress(MutationError, NoRuleError):
        assert MODES[mode](f, x.copy()) == f(x.copy()).sum()


STAGED = [2.0, 2j, *[np.dtype(c).type(2) for c in "fdFD"]]
NUMBERS = [True, 2, 2.0, 2j, np.True_, *[np.dtype(c).type(2) for c in "bilQefdgFD"]]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
ARITHMETIC += [operator.mod, operator.pow, operator.eq, operator.lt]


@pytest.mark.parametrize("act", ARITHMETIC)
def test_a_number_of_a_lane_has_the_class_that_it_has_plainly(act):
    """Of every operator on a number that is staged and one that is not, in either order."""

    def kind(a, b):
        try:
            with np.errstate(all="ignore"):
                return type(act(a, b))
        except TypeError:
            return TypeError

    for staged, other in itertools.product(STAGED, NUMBERS):
        found = []

        def f(x, y=other):
            found.extend([type(act(x, y)), type(act(y, x))])  # noqa: B023
            return x

        plainly = [kind(staged, other), kind(other, staged)]
        turned = act is operator.eq and {type(staged), type(other)} == {complex, np.float64}
        if TypeError not in plainly and not turned:  # of which Python does not tell the left one
            lineara.trace(f, staged)
            assert found == plainly, (staged, other)


REFUSED = {
    "an axis": lambda a: np.expand_dims(a, -9),
    "an axis of several": lambda a: np.concatenate([a, a], 5),
    "an axis of a sum": lambda a: np.sum(a, axis=7),
    "a cast": lambda a: np.hstack([a, a], casting="safe", dtype=np.int64),
    "a matrix that is not square": np.linalg.inv,
    "a shape": lambda a: np.reshape(a, 7),
    "shapes": lambda a: np.dot(a, a),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_of_its_type_a_lane_refuses_with_its_exception(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception) as plainly:  # noqa: PT011
            REFUSED[name](np.ones((2, 3)))
        with pytest.raises(plainly.type):
            lineara.vmap(REFUSED[name])(np.ones((1, 2, 3)))

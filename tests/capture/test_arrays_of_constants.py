"""Arrays that a captured function makes of constants: NumPy's answers, errors and warnings.

In a program they may be written with staged values, so they are arrays of the trace; what is asked
of them before that is known.
"""

import operator
import re
import warnings

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from lineara import grad, jit, vmap
from lineara.errors import DetachError, MutationError, NoRuleError, StagingError


class Held:
    """What has an array, and gives it."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array.__array__(dtype=dtype, copy=copy)


class Own(np.ndarray):
    pass


def copied(casting, value, where=True, dtype=int):
    def act():
        a = np.arange(6).reshape(2, 3).astype(dtype)
        np.copyto(a, value, casting=casting, where=where)
        return a.tolist()

    return act


def whole():
    return np.arange(12).reshape(3, 4)


MASK = [True, False, True]
RECORD = np.dtype([("a", int), ("b", float)])
ASKED = {
    "a shared copy": lambda: np.shares_memory(whole(), whole().astype(int, copy=False)),
    "rows": lambda: [np.may_share_memory(a[1:], b) for a in [whole()] for b in (a[:2], a[:1])],
    "another dtype without a copy": lambda: np.array(Held(whole()), np.int16, copy=False),
    "an array without a copy": lambda: np.array(Held(whole()), copy=False).tolist(),
    "__array__ without a copy": lambda: whole().__array__(np.float32, copy=False),
    "copyto same_kind": copied("same_kind", 3.5),
    "copyto same_kind where": copied("same_kind", 3.5, MASK),
    "copyto safe": copied("safe", np.float64(3.5), MASK, np.float32),
    "copyto safe of Python's": copied("safe", 3.5, MASK, np.float32),
    "copyto unsafe": copied("unsafe", 3.5, MASK),
    "copyto equiv": copied("equiv", np.int32(3), MASK),
    "as bytes": lambda: np.array([1, 258], "<i4").view("u1").tolist(),
    "as a class": lambda: type(whole().view(Own)) is Own,
    "as a class by name": lambda: type(whole().view(type=Own)) is Own,
    "another kind of class": lambda: type(np.empty(0).__array_wrap__(np.zeros(()).view(Own))),
    "mT": lambda: np.arange(3).mT,
    "mT of a matrix": lambda: whole().mT.tolist(),
    "strides": lambda: [whole().T.strides, np.broadcast_to(whole(), (2, 3, 4)).strides],
    "writable": lambda: [whole().flags.writeable, whole().T.flags["F_CONTIGUOUS"]],
    "diagonals": lambda: as_strided(whole(), (3,), (40,)).tolist(),
    "windows": lambda: as_strided(whole(), (2, 3, 2, 2), (32, 8, 32, 8)).tolist(),
    "from the end": lambda: as_strided(whole()[::-1], (2,), (-32,)).tolist(),
    "as_strided as it is": lambda: as_strided(whole().T).tolist(),
    "flat of a truth value": lambda: whole().flat[True].tolist(),
    "flat of None": lambda: whole().flat[None],
    "flat of truth values": lambda: whole().flat[[True] * 12],
    "flat of a short mask": lambda: whole().flat[np.array([True])],
    "flat of places": lambda: whole().flat[[1, -1]].tolist(),
    "flat of nothing written": lambda: whole().flat.__setitem__((), 3),
    "flat gone through": lambda: [(int(next(it)), it.index, it.coords) for it in [whole().flat]],
    "flat at its end": lambda: [([*it][:0], it.index, it.coords) for it in [whole().flat]],
    "sorted another way": lambda: np.arange(3).sort(kind="x"),
    "placed another way": lambda: np.arange(3).argpartition(1, kind="x"),
    "numbers": lambda: [float(np.array(2)), np.array(2).__float__(), np.array(2).__int__()],
    "an index": lambda: [range(3)[np.array(1)], [4, 5][np.array(1)], (4, 5)[np.array(0)]],
    "no index": lambda: [4, 5][np.array([1])],
    "no place": lambda: [4, 5].__setitem__(np.array([1]), 3),
    "partition along none": lambda: whole().partition(1, axis=None),
    "a small out": lambda: np.add(np.array(2), [1], out=np.array(3)),
    "putmask by name": lambda: np.putmask(a=np.arange(3), mask=MASK, values=[1]),
    "a stream": lambda: np.arange(3).to_device("cpu", stream=1),
    "a list more": lambda: ([1.0, 2.0] + np.ones(2)).tolist(),  # noqa: RUF005
    "a list and a number": lambda: ([1.0, 2.0] + np.float64(1)).tolist(),  # noqa: RUF005
    "a list times": lambda: [([1.0, 2.0] * np.ones(2)).tolist(), [1, 2] * np.int64(2), [1] * 2],
    "names in a list": lambda: np.rec.fromrecords([(1, 2.0)], names=["a", "b"]).tolist(),
    "an item of a dtype": lambda: operator.getitem(RECORD, ["a", "b"]) == RECORD,
    "a list as sizes": lambda: [*np.ndindex([2, 3])],
    "an axis too far": lambda: np.rollaxis(whole(), 0, 5),
    "no arguments": lambda: whole().__array_function__(np.reshape, (), whole(), (2, 6)),
    "records": lambda: RECORD[["a", "b"]] == RECORD,
    "in records": lambda: np.array([[(1,), (2,)], np.arange(2)], "2i").tolist(),
    "a shape of truth values": lambda: np.reshape(whole(), (True, -1)),
    "a huge one": lambda: np.array(np.broadcast_to(np.array(1, np.uint8), 2**62)),
    "classes": lambda: [np.dtype("i1").type is np.int8, np.int8 is np.dtype("i1").type],
    "nditer": lambda: [int(v) for v in np.nditer(whole(), ["external_loop"], order="F")][:0],
    "nditer of two": lambda: [(int(a), int(b)) for a, b in np.nditer([whole(), np.arange(4)])],
    "nditer begun": lambda: [
        (int(next(it)), int(next(it.copy()))) for it in [np.nditer(np.arange(3))]
    ],
    "nditer closed": lambda: [it.close() or [*it] for it in [np.nditer(np.arange(3))]],
    "nditer without": lambda: np.nditer(np.arange(3)).nothing,
}


def outcome(act):
    """What comes out: the result, or the class and the text of an exception; and the warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = act()
        except Exception as e:
            result = [type(e).__name__, re.sub("^_Array", "", str(e)).partition("\n")[0]]
    return repr(result), [(w.category, str(w.message)) for w in seen]


@pytest.mark.parametrize("name", ASKED)
def test_arrays_of_constants_answer_as_numpys(name):
    outcomes = []

    def f(x):
        outcomes.append(outcome(ASKED[name]))
        return x * 1.0

    f(1.0)
    grad(f)(1.0)
    vmap(f)(np.ones(2))
    assert outcomes[1] == outcomes[0], "on the tape"
    assert outcomes[2] == outcomes[0], "in a program"


def test_the_class_of_a_dtype_is_the_class_of_numbers():
    def f(x):
        return x * 2.0 if x.dtype.type is np.float64 and x.dtype.type is not np.float32 else -x

    assert jit(f)(np.ones(2)).tolist() == vmap(f)(np.ones(2)).tolist() == [2.0, 2.0]


def test_copyto_of_staged_values_casts_as_numpy_allows():
    def f(x):
        a = np.arange(3)
        np.copyto(a, x, where=np.array(MASK))
        return a

    with pytest.raises(TypeError, match="according to the rule 'same_kind'"):
        f(np.ones(3))
    for run in (jit(f), lambda x: vmap(f)(x[None])):
        with pytest.raises(TypeError, match="according to the rule 'same_kind'"):
            run(np.ones(3))


def test_slices_take_whole_numbers():
    for end in (lambda x: x[0], lambda x: x[:1]):
        with pytest.raises(TypeError, match=r"slice indices|only integer scalar arrays"):
            jit(lambda x, end=end: np.arange(5)[end(x) :])(np.ones(2))


def test_what_as_strided_would_read_beside_an_array_is_refused():
    def f(x):
        return as_strided(np.zeros(100)[30:31], (5,), (16,)) * x

    for run in (jit(f), grad(lambda x: f(x).sum())):
        with pytest.raises(NoRuleError, match="reaches beyond the elements of the array of"):
            run(2.0)


def test_what_numpy_sees_of_constants_is_only_read():
    def written(x, seen):
        a = np.zeros(3)
        seen(a)[0] = 1
        return a * x

    def stale(x, seen):
        a = np.zeros(3)
        b = seen(a)
        a[0] = x
        return a + b.view(float)

    for seen in (lambda a: a.view(np.int64), lambda a: as_strided(a, (2,), (8,))):
        for f in (written, stale):
            with pytest.raises(MutationError, match=r"plain view|read only"):
                jit(lambda x, f=f, seen=seen: f(x, seen))(2.0)


def test_memory_that_dlpack_would_write_is_refused():
    def f(x):
        np.zeros(3).__dlpack__()
        return x

    with pytest.raises(DetachError, match="would be lost"):
        vmap(f)(np.ones(2))


def test_flags_that_would_have_no_effect_are_refused():
    def locked(x):
        a = np.arange(3)
        a.flags.writeable = False
        return a * x

    with pytest.raises(NoRuleError, match=r"flags.writeable = False .* has no effect there"):
        jit(locked)(2.0)
    with pytest.raises(NoRuleError, match="which array owns its memory is not known"):
        jit(lambda x: x * np.arange(3)[1:].flags["OWNDATA"])(2.0)


@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_rows_are_not_shuffled_in_place():
    def f(x):
        rows = np.outer(x, np.ones(2))
        np.random.default_rng(0).shuffle(rows)
        return rows.sum()

    def numbers(x):
        kept = x * 1.0
        np.random.default_rng(0).shuffle(kept)
        return kept

    x = np.arange(4.0)
    for run in (grad(f), lambda x: vmap(f)(x[None])):
        with pytest.raises(NoRuleError, match=r"x\[rng.permutation\(len\(x\)\)\]"):
            run(x)
    assert vmap(numbers)(x[None])[0].tolist() == numbers(x).tolist()


@pytest.mark.parametrize("start", ["staged", "constant"])
def test_a_reshape_that_copies_is_no_view(start):
    def f(x):
        a = x * np.ones(6) if start == "staged" else np.zeros(6)
        copies = [np.reshape(a, (2, 3), copy=True), a.reshape(3, 2, order="F", copy=True)]
        for y in copies:
            y[0, 0] = 5.0 * x
        views = [np.reshape(a, (2, 3)), a.reshape(3, 2, copy=None)]
        views[1][2, 1] = x * x
        return a.sum() + 10.0 * copies[0].sum() + 100.0 * copies[1].sum() + views[0].sum()

    step = (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6
    assert jit(f)(2.0) == vmap(f)(np.array([2.0]))[0] == f(2.0)
    assert grad(f)(2.0) == jit(grad(f))(2.0) == pytest.approx(step)


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType(na_object=None)])
def test_arrays_of_texts_are_gone_through(dtype):
    texts = np.array(["a", None, "b" * 20, "a"], dtype)

    def f(x):
        for i in range(len(texts)):
            if texts[i] == "a":
                x = x * 3
        return x + sum(v is None for v in texts) + sum([1 for v in texts if v == "a"])

    assert jit(f)(1.0) == vmap(f)(np.ones(1))[0] == f(1.0) == 12.0


def test_arrays_of_objects_are_gone_through():
    several = np.array([1, "a", None, 2.5, np.sin], object)
    rows = np.array([["a", "b"]] * 5, object)
    acts = np.array([np.sin, np.cos, np.exp, np.tan], object)

    def f(x):
        for i in range(5):
            x = x * 2 if rows[i, 1] == "b" else x
        return x + sum(v is None for v in several) + sum(act(x) for act in acts)

    assert jit(f)(1.0) == vmap(f)(np.ones(1))[0] == f(1.0)


def test_lists_and_staged_arrays_are_added_item_by_item():
    def f(x):
        return [1.0, 2.0] + x, [1.0, 2.0] * x, [x[0], 3.0] + x[1]  # noqa: RUF005

    x = np.array([0.5, -2.0])
    for got, said in zip(jit(f)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, said)


def test_a_text_of_staged_values_is_refused_by_compiled_code():
    with pytest.raises(DetachError, match="compiled code takes no traced text"):
        jit(lambda x: f"{x}" in "0.5")(2.0)


def test_nditer_of_staged_arrays_says_what_it_has():
    def indexed(x):
        return sum(it.multi_index[0] for it in [np.nditer(x)])

    def moved(x):
        it = np.nditer(x)
        it.iterindex = 2
        return next(it)

    def written(x):
        a = np.zeros(3)
        for v in np.nditer(a, [], ["readwrite"]):
            v[...] = 1.0
        return a * x

    for f in (indexed, moved, written):
        with pytest.raises(StagingError, match=r"np.ndindex\(a.shape\)"):
            jit(f)(np.ones(3))

    def entered(x):
        with np.nditer(x) as it:
            return sum(v * v for v in it)

    assert jit(entered)(np.arange(4.0)) == 14.0

"""The direct call gives what the long way gives; what does not fit goes that way."""

import concurrent.futures
import ctypes
import gc
import math
import sys
import threading

import numpy as np
import pytest
from call_counts import calls

import lineara
from lineara.engines import ENGINES
from lineara.engines.native import direct as direct_calls
from lineara.errors import BoundsError
from lineara.facts.types import ArrayType

pytest.importorskip("llvmlite")

NATIVE = next(e for e in ENGINES if e.name == "native")
X = np.array([0.3, 0.9, 0.51, 0.11, 0.7])


def prepared(f, *args):
    """A jitted function whose calls are direct, and the direct call."""
    jitted = lineara.jit(f, engine="native")
    for _ in range(3):
        jitted(*args)
    direct = jitted.program(*args).direct
    assert direct is not None
    return jitted, direct


def filled(x):
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


CASES = {
    "a number": (lambda x: x * x, (3.0,)),
    "NumPy's number": (lambda x: np.sin(x) * x, (np.float64(3.0),)),
    "a whole number": (lambda x, n: (x * n, n + 1), (3.0, 4)),
    "an array": (lambda x: np.sin(x) * x, (X,)),
    "a matrix": (lambda m: m * 2.0, (np.arange(6.0).reshape(2, 3),)),
    "no result": (lambda x: None, (3.0,)),
    "an array that is constant": (lambda x: np.arange(3.0), (3.0,)),
    "the other byte order": (lambda x: np.full((2, 3), x, np.dtype("f8").newbyteorder()), (2.5,)),
    "a constant": (lambda x, flag: x + 1.0 if flag else x, (3.0, True)),
    "containers": (lambda x: {"a": x * 2.0, "b": (x.sum(), x[0] > 0.1, "label")}, (X,)),
    "a large constant": (lambda x: x + np.arange(1000.0)[:5], (X,)),
    # exact in any order of rounding: each round keeps the number or turns its sign
    "a tape": (lineara.grad(filled), (np.where(np.arange(500) % 3, 0.5, -1.5),)),
    "whole numbers in an array": (lambda x, k: x[k], (X, np.array([2, 0]))),
    "nothing": (lambda x: x * 2.0, (np.zeros(0),)),
}


def described(tree):
    """The leaves with their types and bits."""
    leaves, structure = lineara.trees.flatten(tree)
    return structure, [
        (type(v), np.asarray(v).dtype.str, np.shape(v), np.asarray(v).tobytes())
        if isinstance(v, np.ndarray | np.generic | float | int)
        else v
        for v in leaves
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_direct_call_gives_what_the_interpreter_gives(case):
    f, args = CASES[case]
    jitted, direct = prepared(f, *args)
    expected = described(lineara.jit(f, engine="interpreter")(*args))
    assert described(direct(*args)) == expected
    assert described(jitted(*args)) == expected


def test_results_own_their_memory_and_arguments_are_not_kept():
    x = X.copy()
    _, direct = prepared(lambda x: (x * 2.0, x + 1.0, x), x)
    before = sys.getrefcount(x)
    a, b, c = direct(x)
    assert sys.getrefcount(x) == before
    a[:] = b[:] = c[:] = 7.0
    assert np.array_equal(x, X)
    assert all([v.flags.owndata and v.flags.writeable for v in (a, b, c)])
    x.resize(9, refcheck=False)  # no view of it is left
    assert np.array_equal(direct(X)[0], X * 2.0)


class Lent(np.ndarray):
    """Arrays of another class than NumPy's own, so they lend their memory."""


def test_what_is_lent_is_given_back_whether_all_fits_or_not():
    lent = [X.copy().view(Lent) for _ in range(3)]
    _, direct = prepared(lambda x, y, z: x * y + z, X, X, X)
    before = [sys.getrefcount(x) for x in lent]
    for _ in range(3):
        assert np.array_equal(direct(*lent), X * X + X)
        assert direct(*lent[:2], lent[2][1:]) is NotImplemented
    assert [sys.getrefcount(x) for x in lent] == before


def test_arrays_of_numpys_own_lend_nothing():
    """What lends its memory has to give it back, which takes longer than the rest of a call."""
    types = [ArrayType((2, 3), np.dtype(t)) for t in (">f8", "f8", "f4")]
    text = direct_calls.Text(types, [], 0, [], 0, True).text()
    assert text.count("\nlend") == 2
    assert f"%views = alloca [{10 * 3 + 1} x i64]" in text
    assert "%made = alloca [1 x ptr]" in text


@pytest.mark.parametrize(
    "args",
    [
        (),
        (X, X),
        ("text",),
        (None,),
        (np.arange(10.0)[::2],),
        (np.arange(4.0),),
        (np.frombuffer(bytes(41), np.uint8)[1:].view(float),),
        (np.arange(5.0).astype(np.float32),),
    ],
    ids=["none", "two", "text", "None", "strides", "short", "not aligned", "float32"],
)
def test_what_does_not_fit_is_left_to_the_long_way(args):
    _, direct = prepared(lambda x: x * 2.0, X)
    assert direct(*args) is NotImplemented


@pytest.mark.parametrize("value", ["text", None, X, 2**70, 1j])
def test_what_is_no_number_is_left_to_the_long_way(value):
    _, direct = prepared(lambda x, n: x * n, 3.0, 4)
    assert direct(3.0, value) is NotImplemented
    assert direct(-1.0, -1) == 1.0  # what C's functions give for an error is a number, too


def test_calls_leave_nothing_behind():
    f, args = CASES["containers"]
    for direct in (prepared(f, *args)[1], prepared(lineara.grad(filled), X)[1]):
        for _ in range(100):
            direct(X)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(20_000):
            direct(X)
        for _ in range(20_000):
            direct(X[::-1])
        gc.collect()
        assert sys.getallocatedblocks() - before < 1_000


def beyond(x, n):
    total = 0.0
    for i in range(3):
        total = total + x[i + n]
    return total


def test_an_exception_is_raised_by_each_call():
    jitted, direct = prepared(beyond, X, 1)
    for call in (direct, jitted, direct):
        with pytest.raises(BoundsError, match="index 5 is out of bounds for axis 0 with size 5"):
            call(X, 3)
        assert call(X, 1) == beyond(X, 1)


def test_an_exception_of_pythons_is_raised():
    jitted, direct = prepared(lambda x: math.log(x), 2.0)
    for call in (direct, jitted):
        with pytest.raises(ValueError, match="math domain error"):
            call(-1.0)


def test_a_run_in_doubt_is_done_again():
    def f(x):
        return np.sum(np.where(x > 0.0, np.sqrt(x), 0.0))

    g = lineara.grad(f)
    jitted, _ = prepared(g, X)
    odd = np.array([0.3, 0.0, -1.0, 0.0, 0.7])
    expected = lineara.jit(g, engine="interpreter")(odd)
    assert np.array_equal(jitted(odd), expected)
    assert np.array_equal(jitted(odd), expected)
    assert np.array_equal(jitted(X), lineara.jit(g, engine="interpreter")(X))


def kept(direct):
    """Where the workspace lies that the next run takes, or 0."""
    return ctypes.c_int64.from_address(direct.run.__self__[direct_calls.TABLE]).value


def test_a_workspace_is_kept_unless_it_is_large(monkeypatch):
    x = np.linspace(-0.5, 0.5, 4000)
    monkeypatch.setenv("LINEARA_CACHE_DIR", "off")
    _, direct = prepared(lineara.grad(filled), x)
    first = kept(direct)
    assert first
    direct(x)
    assert kept(direct) == first
    monkeypatch.setattr(direct_calls, "LARGEST_KEPT", 1)
    _, direct = prepared(lineara.grad(filled), x[1:])
    assert not kept(direct)


@pytest.mark.parametrize(
    ("size", "taken", "freed"), [(0, 0, 0), (2**12, 2, 1), (direct_calls.LARGEST_KEPT + 1, 1, 1)]
)
def test_a_workspace_is_taken_and_put_back_or_freed(size, taken, freed):
    text = direct_calls.Text([], [], 0, [], size, True).text()
    counted = [text.count(s) for s in ("atomicrmw xchg ptr %table", 'call void @"py.free"')]
    assert counted == [taken, freed]


def test_no_memory_for_a_workspace_is_an_error(monkeypatch):
    class Large(direct_calls.Text):
        workspace = property(lambda self: 2**62, lambda self, size: None)

    monkeypatch.setenv("LINEARA_CACHE_DIR", "off")
    monkeypatch.setattr(direct_calls, "Text", Large)
    jitted = lineara.jit(lambda x: np.sin(x) * 3.0, engine="native")
    for _ in range(2):
        jitted(X)
    direct = jitted.program(X).direct
    for _ in range(2):
        with pytest.raises(MemoryError):
            direct(X)


def test_an_error_of_what_makes_a_number_is_raised():
    def refuse(y):
        raise ValueError(f"no {y}")

    _, direct = prepared(lambda x: (x * 2.0, x + 1.0), 3.0)
    table, failed, other, *_, kernel = direct.run.__self__[:-1]
    code = kernel.library["call"]
    for makers in ([refuse, other], [other, refuse]):
        again = direct_calls.builtin(code, (table, failed, other, *makers, kernel))
        with pytest.raises(ValueError, match="no "):
            again(3.0)


def test_threads_have_a_workspace_each():
    x = np.linspace(-0.5, 0.5, 4000)
    _, direct = prepared(lineara.grad(filled), x)
    points = [x / k for k in range(1, 9)]
    alone = [direct(p) for p in points]
    start = threading.Barrier(4)

    def work(_):
        start.wait()
        return [direct(p) for p in points * 5]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for together in pool.map(work, range(4)):
            pairs = zip(together, alone * 5, strict=True)
            assert all([np.array_equal(a, b) for a, b in pairs])


def test_code_lives_as_long_as_its_call():
    direct = prepared(lineara.grad(filled), X)[1]
    expected = direct(X)
    for _ in range(20):
        gc.collect()
        prepared(lambda x: x * 2.0 + x, X)
    assert np.array_equal(direct(X), expected)


def test_where_numpys_headers_are_wrong_all_arrays_lend_their_memory(monkeypatch):
    monkeypatch.setenv("LINEARA_CACHE_DIR", "off")
    monkeypatch.setattr(direct_calls, "array_maker", lambda: None)
    jitted, direct = prepared(lambda x: (np.sin(x) * x, x.sum()), X)
    for call in (direct, jitted):
        assert np.array_equal(call(X)[0], np.sin(X) * X)
    assert direct(X[1:]) is NotImplemented


def test_where_there_is_no_c_interface_the_long_way_is_gone(monkeypatch):
    monkeypatch.setattr("lineara.engines.native.lower._api", dict)
    jitted = lineara.jit(lambda x: x * 3.0, engine="native")
    assert [jitted(2.0) for _ in range(3)] == [6.0] * 3
    assert jitted.program(2.0).direct is None


# --- the call of a jitted function ----------------------------------------------------------------


OF = [lambda f: f, lambda f: lineara.grad(f, (0, 1)), lineara.value_and_grad]


@pytest.mark.parametrize("of", OF, ids=["value", "gradients", "value and gradient"])
def test_a_call_is_no_function_of_pythons(of):
    """Machine code looks at the arguments and at what is reached, and calls machine code."""
    f = lineara.jit(of(lambda x, y: x * x * y), engine="native")
    assert calls(lambda: f(3.0, 2.0), warm=4) == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x, [x * 2]),
        lambda x: (x * 2,),
        lambda x: [x, x],
        lambda x: (x, None),
        lambda x: (),
    ],
    ids=["nested", "one", "a list", "a constant", "nothing"],
)
def test_results_are_in_their_containers(f):
    jitted = lineara.jit(f, engine="native")
    assert [jitted(3.0) for _ in range(5)] == [f(3.0)] * 5
    assert type(jitted(3.0)) is type(f(3.0))


def test_calls_of_several_forms_are_none_either():
    f = lineara.jit(lambda x: x * 2.0, engine="native")
    forms = [3.0, np.float64(3.0), X, np.stack([X, X])]

    def run():
        return [f(v) for v in forms]

    before = run()
    for _ in range(3):
        run()
    assert all(map(np.array_equal, run(), before))
    assert f.captures == len(forms)
    assert calls(run) == calls(lambda: [None for _ in forms])


def test_a_call_sees_what_has_changed():
    rate, settings = 2.0, {"offset": 1.0}

    def f(x, power=1):
        return (x * rate + settings["offset"]) ** power

    g = lineara.jit(lineara.grad(f), engine="native")
    for _ in range(5):
        assert g(3.0) == 2.0
    rate = 5.0
    assert [g(3.0) for _ in range(5)] == [5.0] * 5
    quick = calls(lambda: g(3.0))
    settings["offset"] = float("1.0")  # an equal one: one full look, and then it is the known one
    assert g(3.0) == 5.0
    assert calls(lambda: g(3.0)) == quick
    assert g.captures == 2
    f.__defaults__ = (2,)
    assert [g(3.0) for _ in range(5)] == [160.0] * 5
    with np.errstate(over="raise"), pytest.raises(lineara.errors.StagingError, match="errstate"):
        g(3.0)
    assert lineara.grad(g)(3.0) == 50.0


def test_a_call_within_a_capture_is_part_of_the_program():
    scale = [2.0]
    g = lineara.jit(lambda x: x * scale[0], engine="native")
    for _ in range(5):
        g(3.0)

    @lineara.jit
    def around(x):
        scale[0] = 5.0
        try:
            return g(3.0) * x
        finally:
            scale[0] = 2.0

    assert around(1.0) == 15.0

"""A jitted function is called by machine code, and is in all else the object that it was."""

import collections
import concurrent.futures
import copy
import dataclasses
import functools
import gc
import inspect
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from call_counts import calls

import lineara
from lineara.engines import with_room
from lineara.engines.native import guarded_call, symbols
from lineara.staging.capture.argument_forms import form_of
from lineara.staging.capture.quick_calls import attached

pytest.importorskip("llvmlite")

X = np.array([0.3, 0.9, 0.51, 0.11, 0.7])


def scaled(x, by=2.0, *, shift=1.0):
    """x by a factor, and shifted."""
    return x * by + shift


def hot(f, *args, **kwargs):
    """A jitted function whose calls with these arguments are machine code."""
    jitted = lineara.jit(f, engine="native")
    for _ in range(3):
        jitted(*args, **kwargs)
    assert jitted.table is not None
    return jitted


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    a: Any
    b: Any


PARAMS = {"w": X, "b": 0.5, "inner": [X + 1.0, (2.0, 3)]}


def of_params(p, x):
    return {"y": p["w"] * p["inner"][0] * x + p["b"], "n": p["inner"][1], "label": "y"}


CALLS = {
    "by position": (scaled, (3.0, 4.0), {}),
    "a default": (scaled, (3.0,), {}),
    "by name": (scaled, (3.0,), {"shift": 4.0, "by": 5.0}),
    "arrays": (scaled, (X, X), {"shift": X}),
    "containers": (of_params, (PARAMS, 2.0), {}),
    "an object": (lambda p, x: p.a * p.b * x, (Point(2.0, X), 3.0), {}),
    "objects in objects": (
        lambda p: (p.a.b, p.b[0].a, p.b[1].a),
        (Point(Point(1.0, X), (Point(2.0, X), Point(3.0, 4.0))),), {},
    ),
    "a container by name": (of_params, (), {"x": X, "p": PARAMS}),
    "empty containers": (lambda x, none: (x, [], {}, ()), (2.0, [{}, ()]), {}),
    "constants": (lambda x, up, s, n: x if up and s == "a" else n, (2.0, True, "a", None), {}),
    "no argument": (lambda: 2.0, (), {}),
    "complex steps of a number": (lambda n, x: x * n, (3, np.float64(2.0)), {}),
}  # fmt: skip


def flat(tree):
    leaves, structure = lineara.trees.flatten(tree)
    return structure, [(type(v), np.asarray(v).tobytes()) for v in leaves]


@pytest.mark.parametrize("case", CALLS)
def test_a_call_is_machine_code_alone(case):
    f, args, kwargs = CALLS[case]
    jitted = hot(f, *args, **kwargs)
    (q,) = jitted.recent
    filled = q.staged.direct.fill is not None  # by one function, made for the result
    assert calls(lambda: jitted(*args, **kwargs)) == 1 + filled
    assert flat(jitted(*args, **kwargs)) == flat(
        lineara.jit(f, engine="interpreter")(*args, **kwargs)
    )
    assert jitted.captures == 1


class Mapping(dict):
    pass


class Real(float):
    pass


class Array(np.ndarray):
    pass


def with_more(p):
    p.more = 5.0
    return p


def reordered(p):
    p.a = vars(p).pop("a")
    return p


OTHERS = {
    "an int": ((2.0,), (3,)),
    "a bool": ((2.0,), (True,)),
    "NumPy's number": ((2.0,), (np.float64(3.0),)),
    "a class of floats": ((2.0,), (Real(3.0),)),
    "float32": ((X,), (X.astype("f4"),)),
    "bytes swapped": ((X,), (X.astype(">f8"),)),
    "a class of arrays": ((X,), (X.view(Array),)),
    "reversed": ((X,), (X[::-1],)),
    "shorter": ((X,), (X[1:],)),
    "another shape": ((X,), (X[:, None],)),
    "no axes": ((X,), (np.array(2.0),)),
    "a matrix transposed": ((np.ones((2, 3)),), (np.ones((3, 2)).T,)),
    "one number everywhere": ((X,), (np.broadcast_to(2.0, 5),)),
    "an array for a number": ((2.0,), (X,)),
    "whole numbers at the end": ((2,), (-(2**63),)),
    "a larger whole number": ((2,), (2**70,)),
    "a float for an int": ((2,), (2.0,)),
    "another order of keys": (({"a": 1.0, "b": 2.0},), ({"b": 2.0, "a": 1.0},)),
    "another key": (({"a": 1.0},), ({"c": 1.0},)),
    "a key that is no text": (({"a": 1.0},), ({1: 1.0},)),
    "a key more": (({"a": 1.0},), ({"a": 1.0, "c": 2.0},)),
    "no key": (({"a": 1.0},), ({},)),
    "a class of dicts": (({"a": 1.0},), (Mapping(a=1.0),)),
    "an int in a dict": (({"a": 1.0},), ({"a": 1},)),
    "a tuple": (([1.0, 2.0],), ((1.0, 2.0),)),
    "a named tuple": (((1.0, 2.0),), (Pair(1.0, 2.0),)),
    "a longer list": (([1.0, 2.0],), ([1.0, 2.0, 3.0],)),
    "an empty list": (([1.0, 2.0],), ([],)),
    "a number for a list": (([1.0, 2.0],), (1.0,)),
    "an object for a list": (([1.0, 2.0],), (Point(1.0, 2.0),)),
    "an object of another class": ((Point(1.0, 2.0),), (Pair(3.0, 4.0),)),
    "an attribute more": ((Point(1.0, 2.0),), (with_more(Point(3.0, 2.0)),)),
    "attributes in another order": ((Point(1.0, 2.0),), (reordered(Point(3.0, 2.0)),)),
    "another constant": ((2.0, True), (2.0, False)),
    "another text": ((2.0, "a"), (2.0, "b")),
    "another constant of None": ((2.0, None), (2.0, False)),
    "too many": ((2.0,), (2.0, 3.0)),
    "too few": ((2.0, 3.0), (2.0,)),
    "none": ((2.0, 3.0), ()),
}


class Called:
    def __call__(self, *args, **kwargs):
        return "Python is called"


@functools.cache
def one():
    """A program that is machine code, and what it reaches."""
    (q,) = hot(lambda: 1.0).recent
    return q


@pytest.mark.parametrize("case", OTHERS)
def test_arguments_of_another_form_are_pythons(case):
    first, second = OTHERS[case]
    form = form_of(first, {}, lineara.trees.flatten_call(first, {})[1], ())
    assert form is not None
    assert form.leaves(first, {}) == tuple(lineara.trees.flatten_call(first, {})[0])
    assert form.leaves(second, {}) is None
    x = with_room(Called)()
    table = attached(x, Called, [one()._replace(form=form)])
    assert table is not None
    assert [x(*first), x(*second), x(*first)] == [1.0, "Python is called", 1.0]
    if len(first) == 1:
        assert x(first=first[0]) == x(*first, more=1.0) == "Python is called"


@pytest.mark.parametrize(
    ("slots", "fits"), [(guarded_call.SLOTS, True), (guarded_call.SLOTS + 1, False)]
)
def test_a_call_has_code_as_long_as_there_are_slots(slots, fits):
    program = guarded_call.Program(0, (), (), slots, len, (), None, False)
    x = with_room(Called)()
    table = guarded_call.attached(x, Called, [program], Called(), ValueError)
    assert (table is not None) is fits


def test_what_has_no_form_of_its_own_is_left_to_its_key():
    for v in (object(), Mapping(a=1.0), collections.deque([1.0]), X.view(Array), Real(1.0)):
        assert form_of((v,), {}, lineara.trees.flatten_call((v,), {})[1], ()) is None


def test_a_key_that_is_equal_and_another_object_is_the_same_key():
    jitted = hot(lambda p: p["weights"] * 2.0, {"weights": 2.0})
    key = "".join(["wei", "ghts"])
    assert calls(lambda: jitted({key: 3.0})) == 1
    assert jitted({key: 3.0}) == 6.0


def test_wrong_arguments_are_pythons_errors():
    jitted = hot(scaled, 3.0)
    with pytest.raises(TypeError, match="positional"):
        jitted(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        jitted(1.0, other=2.0)
    assert jitted(3.0) == 7.0


def test_it_is_the_object_that_it_was():
    jitted = hot(scaled, 3.0)
    assert isinstance(jitted, type(lineara.jit(scaled)))
    assert inspect.signature(jitted) == inspect.signature(scaled)
    assert (jitted.__name__, jitted.__doc__, jitted.__wrapped__) == (
        "scaled", scaled.__doc__, scaled,
    )  # fmt: skip
    assert repr(jitted) == f"<lineara.jit of {scaled!r}>"
    assert callable(jitted)
    assert functools.partial(jitted, by=5.0)(2.0) == 11.0
    assert [*map(jitted, [1.0, 2.0])] == [3.0, 5.0]
    assert type(jitted).__name__ == "Jitted"
    assert len({jitted, jitted}) == 1

    class Model:
        rate = 3.0
        method = lineara.jit(lambda self, x: self.rate * x, engine="native")

    assert [Model().method(2.0) for _ in range(4)] == [6.0] * 4


def test_copies_are_functions_of_their_own():
    jitted = hot(scaled, 3.0)
    for other in (copy.deepcopy(jitted), pickle.loads(pickle.dumps(jitted))):
        assert other is not jitted
        assert other.engine == "native"
        assert [other(3.0) for _ in range(4)] == [7.0] * 4
        assert (jitted.captures, other.captures) == (1, 1)


def test_it_is_a_leaf_of_arguments():
    jitted = hot(scaled, 3.0)
    assert lineara.trees.flatten([jitted])[0] == [jitted]
    assert lineara.grad(lambda x, f: f(x))(3.0, jitted) == 2.0


def test_a_derivative_is_pythons():
    jitted = hot(lambda x: x * x * x, 3.0)
    assert lineara.grad(jitted)(3.0) == 27.0
    assert lineara.grad(lineara.grad(jitted))(3.0) == 18.0
    assert lineara.grad(lambda x: x * jitted(2.0))(3.0) == 8.0
    assert jitted(3.0) == 27.0


def test_what_is_no_longer_used_is_freed():
    def made():
        big = np.zeros(3)
        jitted = hot(lambda p: p["x"] * big[0], {"x": X})
        return weakref.ref(jitted), weakref.ref(jitted.table)

    refs = made()
    gc.collect()
    assert [r() for r in refs] == [None, None]


def test_threads_call_while_what_is_reached_is_another_object():
    rate = [2.0]
    jitted = hot(lambda x: x * rate[0], 3.0)
    start, wrong = threading.Barrier(4), []

    def work(k):
        start.wait()
        for _ in range(300):
            if k == 0:  # an equal number: the table is made anew, while others read the one before
                rate[0] = float("2.0")
            got = jitted(3.0)
            wrong.extend([got] * (got != 6.0))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert wrong == []
    assert jitted.captures == 1
    rate[0] = 7.0
    assert jitted(3.0) == 21.0


def test_a_call_may_change_the_function_that_is_called():
    """The table that a call reads lives as long as the call, and so does what it names."""
    jitted = hot(lambda x: x * 2.0, 3.0)
    for v in (X, np.float64(2.0), {"no": 1.0}, 1, X[::2]):
        for _ in range(4):
            try:
                jitted(v)
            except TypeError:
                continue
        gc.collect()
    assert jitted(3.0) == 6.0


def test_a_list_that_outgrows_its_room_is_run_again():
    def f(x, limit):
        items = []
        while x < limit:
            items.append(x)
            x = x * 1.1
        return sum(items)

    jitted = hot(f, 1.0, 2.0)
    for limit in (2.0, 50.0, 1e6, 2.0):
        assert jitted(1.0, limit) == pytest.approx(f(1.0, limit))


def test_where_objects_are_not_as_stated_calls_are_pythons(monkeypatch):
    monkeypatch.setattr(guarded_call, "_loaded", lambda table: None)
    jitted = lineara.jit(scaled, engine="native")
    assert [jitted(3.0, shift=2.0) for _ in range(5)] == [8.0] * 5
    assert jitted.table is None
    assert calls(lambda: jitted(3.0, shift=2.0)) > 1


def test_a_class_without_room_is_pythons(monkeypatch):
    monkeypatch.setattr("lineara.engines.callable_class._made", lambda base: None)

    class Plain:
        def __call__(self, x):
            return x

    assert with_room(Plain) is Plain
    jitted = lineara.jit(scaled, engine="native")
    assert [jitted(3.0) for _ in range(5)] == [7.0] * 5
    assert jitted.table is None


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("compiler", lambda: None),
        ("address_of", lambda name: None),
        ("objects_are_as_stated", lambda: False),
        ("functions_are_as_stated", lambda: False),
    ],
)
def test_there_is_no_code_for_calls_where_python_is_not_as_stated(name, other, monkeypatch):
    assert guarded_call._loaded.__wrapped__(8) is not None
    monkeypatch.setattr(guarded_call, name, other)
    assert guarded_call._loaded.__wrapped__(8) is None


@pytest.mark.parametrize(
    ("name", "other"), [("ARRAY_VERSIONS", ()), ("objects_are_as_stated", lambda: False)]
)
def test_code_makes_no_array_where_numpy_is_not_as_stated(name, other, monkeypatch):
    assert symbols.array_maker.__wrapped__() is not None
    monkeypatch.setattr(symbols, name, other)
    assert symbols.array_maker.__wrapped__() is None


def test_an_array_that_is_copied_leaves_the_call_as_it_is():
    """Of columns, reversed rows and other orders of bytes the general call makes copies."""
    matrix = np.arange(20.0).reshape(5, 4)
    for x in (matrix[:, 1], X[::-1], matrix.T[2:], matrix.astype(">f8")):
        jitted = lineara.jit(lineara.grad(lambda x: np.sum(x * x)), engine="native")
        for _ in range(3):
            jitted(x)
        table, parts = jitted.table, jitted.parts
        for _ in range(3):
            np.testing.assert_array_equal(jitted(x), 2 * x)
        assert jitted.table is table
        assert jitted.parts is parts

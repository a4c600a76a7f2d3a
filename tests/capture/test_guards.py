"""Guards: what a program depends on is compared by identity, and in full where that differs."""

import collections
import functools
import tracemalloc
import types

import numpy as np
import pytest
from call_counts import calls

from lineara import grad, jit
from lineara.engines import with_room
from lineara.engines.native import is_installed
from lineara.errors import StagingError
from lineara.staging.capture.containers import Snapshot
from lineara.staging.capture.guards import Guard
from lineara.staging.capture.quick_calls import attached


class Slots:
    __slots__ = ("k", "later")


class Base:
    k = 2.0


class Derived(Base):
    pass


def quick(guard):
    """Whether the code of a guard says that all is as it was; machine code says the same."""
    assert guard.code is not None, "it was asked"
    said = guard.code.holds()
    if is_installed():
        assert by_machine_code(guard) == said
    return said


class Called:
    def __call__(self, *args):
        return "Python is called"


@functools.cache
def doubled():
    """A form of one argument, and a program that is machine code."""
    f = jit(lambda x: x * 2.0, engine="native")
    for _ in range(3):
        f(2.0)
    (q,) = f.recent
    return q


def by_machine_code(guard):
    x = with_room(Called)()
    table = attached(x, Called, [doubled()._replace(guard=guard)])
    return with_room(Called) is not Called and table is not None and x(2.0) == 4.0


class Plain:
    k: float
    n: int


class Number(float):
    pass


def scaled(x, by=2.0, *, shift=1.0):
    return x * by + shift


def _slots():
    o = Slots()
    o.k = 2.0
    return o


def _plain():
    o = Plain()
    o.k, o.n = 2.0, 1
    return o


def _set(d, key, value):
    d[key] = value


def _again(d, key):
    d[key] = d.pop(key)


def _attribute(o, name, value):
    setattr(o, name, value)


def _class_of(o):
    o.__class__ = type("Other", (Plain,), {})


def _reshape(a):
    a.shape = (2, 2)


def _altered(f, **what):
    for name, value in what.items():
        setattr(f, name, value)


MANY = {f"k{i}": float(i) for i in range(100)}
WAYS = {
    "an item": (lambda: [2.0, 3.0], lambda o: _set(o, 0, 5.0)),
    "one more item": (lambda: [2.0, 3.0], lambda o: o.append(1.0)),
    "an item less": (lambda: [2.0, 3.0], lambda o: o.pop()),
    "the first item of none": (list, lambda o: o.append(1.0)),
    "an item of a deque": (lambda: collections.deque([2.0, 3.0]), lambda o: o.rotate()),
    "a whole number that becomes a float": (lambda: [1, 2], lambda o: _set(o, 0, 1.0)),
    "a whole number that becomes a truth": (lambda: [1, 2], lambda o: _set(o, 0, True)),
    "the sign of a zero": (lambda: [0.0, 2.0], lambda o: _set(o, 0, -0.0)),
    "a number of another class": (lambda: [2.0], lambda o: _set(o, 0, Number(2.0))),
    "a number of NumPy's": (lambda: [2.0], lambda o: _set(o, 0, np.float64(2.0))),
    "what a dict has": (lambda: {"k": 2.0}, lambda o: _set(o, "k", 5.0)),
    "a key more": (lambda: {"k": 2.0}, lambda o: _set(o, "l", 5.0)),
    "the first key": (dict, lambda o: _set(o, "l", 5.0)),
    "a key less": (lambda: {"k": 2.0, "l": 3.0}, lambda o: o.pop("l")),
    "the order of keys": (lambda: {"k": 2.0, "l": 3.0}, lambda o: _again(o, "k")),
    "keys that are numbers": (lambda: {1: 2.0, 2: 3.0}, lambda o: _again(o, 1)),
    "one of many keys": (lambda: {**MANY}, lambda o: _set(o, "k7", 5.0)),
    "the order of many keys": (lambda: {**MANY}, lambda o: _again(o, "k7")),
    "a member of a set": (lambda: {2.0}, lambda o: o.add(3.0)),
    "a default dict": (lambda: collections.defaultdict(float, k=2.0), lambda o: o["z"]),
    "an element": (lambda: np.array([2.0, 3.0]), lambda o: _set(o, 0, 5.0)),
    "the shape of an array": (lambda: np.arange(4.0), _reshape),
    "an element of many": (lambda: np.arange(500.0), lambda o: _set(o, 77, 5.0)),
    "an element of objects": (lambda: np.array([2.0, None]), lambda o: _set(o, 1, 3.0)),
    "an attribute": (_plain, lambda o: _attribute(o, "k", 5.0)),
    "an attribute more": (_plain, lambda o: _attribute(o, "l", 5.0)),
    "an attribute less": (_plain, lambda o: delattr(o, "n")),
    "the dict of attributes": (_plain, lambda o: _attribute(o, "__dict__", {"k": 5.0, "n": 1})),
    "the class of an object": (_plain, _class_of),
    "a slot": (_slots, lambda o: _attribute(o, "k", 5.0)),
    "a slot that had nothing": (_slots, lambda o: _attribute(o, "later", 5.0)),
    "a slot that has nothing now": (_slots, lambda o: delattr(o, "k")),
    "what a class has": (Derived, lambda o: _attribute(Derived, "l", 5.0)),
    "what its base has": (Derived, lambda o: _attribute(Base, "k", 5.0)),
    "a default": (lambda: _copied(scaled), lambda f: _altered(f, __defaults__=(5.0,))),
    "an option": (lambda: _copied(scaled), lambda f: _set(f.__kwdefaults__, "shift", 5.0)),
    "all options": (lambda: _copied(scaled), lambda f: _altered(f, __kwdefaults__={"shift": 5.0})),
    "the code": (lambda: _copied(scaled), lambda f: _altered(f, __code__=(lambda x: x).__code__)),
    "an attribute of a function": (lambda: _copied(scaled), lambda f: _altered(f, rate=5.0)),
}


def _copied(f):
    made = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    made.__kwdefaults__ = {**f.__kwdefaults__}
    return made


@pytest.fixture(autouse=True)
def _classes():
    yield
    Base.k = 2.0
    if "l" in vars(Derived):
        delattr(Derived, "l")


@pytest.mark.parametrize(("make", "change"), WAYS.values(), ids=WAYS)
def test_a_guard_sees_what_a_snapshot_sees(make, change):
    o = make()
    snapshot = Snapshot(o)
    guard = Guard(snapshot)
    assert not guard.is_stale()
    assert quick(guard)
    assert not guard.is_stale()
    change(o)
    assert snapshot.is_stale()
    assert not quick(guard)
    assert guard.is_stale()


def test_names_that_are_bound_deleted_and_rebound_are_seen():
    space = {"__builtins__": __builtins__, "k": 2.0}
    exec("def f(x): return abs(x) * k", space)
    guard = Guard(Snapshot(space["f"]))
    assert not guard.is_stale()
    assert quick(guard)
    for change in (
        lambda: space.__setitem__("k", 3.0),
        lambda: space.__delitem__("k"),
        lambda: space.__setitem__("abs", min),
    ):
        before = {**space}
        change()
        assert not quick(guard)
        assert guard.is_stale()
        space.clear()
        space.update(before)
        assert not guard.is_stale()


def test_a_variable_of_a_closure_that_is_rebound_or_deleted_is_seen():
    k = 2.0

    def f(x):
        return x * k

    guard = Guard(Snapshot(f))
    assert not guard.is_stale()
    assert quick(guard)
    k = 3.0
    assert not quick(guard)
    assert guard.is_stale()
    del k
    assert guard.is_stale()
    k = 2.0
    assert not guard.is_stale()


def test_what_is_equal_under_another_identity_is_no_change():
    settings, numbers = {"rate": 1e6}, [1e6]

    @jit
    def f(x):
        return x * settings["rate"] + numbers[0]

    assert f(1.0) == f(1.0) == 2e6
    for _ in range(3):
        settings["rate"], numbers[0] = float("1e6"), float("1e6")
        assert f(1.0) == 2e6
        (known,) = f.programs.values()
        assert quick(known.guard)  # with the objects that are there now
    assert f.captures == 1
    numbers[0] = 0.0
    assert f(1.0) == 1e6
    assert f.captures == 2


class Rated:
    rate = 3.0

    def __init__(self):
        self.k = 2.0

    def scaled(self, x):
        return self.rate * self.k * x


class More(Rated):
    pass


@pytest.mark.parametrize("engine", ["adaptive", "native"])
@pytest.mark.parametrize("make", [More, lambda: {"in": [More()]}], ids=["itself", "within"])
def test_what_the_class_of_an_argument_has_is_looked_at(make, engine, monkeypatch):
    def f(model, x):
        return (model["in"][0] if isinstance(model, dict) else model).scaled(x)

    if engine == "native":
        pytest.importorskip("llvmlite")
    g = jit(f, engine=engine)
    model = make()
    assert [g(model, 5.0) for _ in range(4)] == [30.0] * 4
    monkeypatch.setattr(Rated, "rate", 4.0)
    assert [g(model, 5.0) for _ in range(4)] == [40.0] * 4
    monkeypatch.setattr(Rated, "scaled", lambda self, x: self.k * x)
    assert [g(model, 5.0) for _ in range(4)] == [10.0] * 4
    assert g.captures == 3


def test_a_call_asks_the_same_however_much_is_reached():
    def calls_with(n):
        numbers, table = [float(k) for k in range(n)], {f"k{k}": float(k) for k in range(n)}

        @jit
        def f(x):
            return x * numbers[0] + table["k1"]

        return calls(lambda: f(2.0), warm=3)

    assert calls_with(1000) == calls_with(10)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8", "u1", "?", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_each_element_of_a_large_array_in_an_attribute_is_compared(dtype, order):
    plain = Plain()
    plain.w = np.array(np.arange(600).reshape(20, 30) % 2, dtype, order=order)
    guard = Guard(Snapshot(lambda: plain.w))
    assert not guard.is_stale()
    assert quick(guard)
    for place in ((0, 0), (7, 11), (19, 29)):
        was = plain.w[place]
        plain.w[place] = 1 - was
        assert not quick(guard)
        assert guard.is_stale()
        plain.w[place] = was
        assert not guard.is_stale()
        assert quick(guard)


def test_a_large_array_in_an_attribute_is_compared_where_it_lies():
    plain = Plain()
    plain.w = np.zeros(100_000)
    guard = Guard(Snapshot(lambda: plain.w))
    assert not guard.is_stale()
    assert quick(guard)
    tracemalloc.start()
    try:
        assert guard.code.holds()
        assert tracemalloc.get_traced_memory()[1] < plain.w.nbytes / 100
    finally:
        tracemalloc.stop()
    plain.w[-1] = -0.0
    assert not quick(guard)
    assert guard.is_stale()


def test_forms_of_calls_that_take_turns_run_at_once():
    @jit
    def f(x, n, mode="double"):
        total = 0.0
        for _ in range(n):
            total = total + (2 * x if mode == "double" else x)
        return np.sum(total)

    given = [
        (2.0, 3), (np.float64(2.0), 3), (np.arange(3.0), 3), (np.arange(3.0), 3, "single"),
        (np.arange(6.0)[::2], 3), (2.0 + 1j, 3), (np.arange(3), 3), (True, 3), (2, 3),
        (2.0, 3.0 // 2 == 1), (np.arange(4.0).reshape(2, 2).T, 3), (np.array(2.0), 3),
        (np.arange(3.0, dtype=">f8"), 3), (np.arange(3.0, dtype=np.float32), 3),
    ]  # fmt: skip
    for _ in range(3):
        for args in given:
            want = f.f(*args)
            got = f(*args)
            assert type(got) is type(want)
            assert got == want
    captured = f.captures
    for args in given:
        f(*args)
    assert f.captures == captured
    assert f(2.0, 5) == 20.0
    assert f(2.0, n=5) == 20.0
    assert grad(f)(2.0, 3) == 6.0


def test_a_call_with_too_few_arguments_is_an_error_of_pythons():
    f = jit(lambda x, y: x * y)
    assert f(2.0, 3.0) == f(2.0, 3.0) == 6.0
    for args in ((2.0,), (2.0, 3.0, 4.0)):
        with pytest.raises(TypeError, match="positional argument"):
            f(*args)


def test_how_numpy_handles_errors_is_asked_in_each_call():
    f = jit(lambda x: np.float64(1.0) / x)
    with np.errstate(divide="ignore"):
        assert f(np.float64(2.0)) == f(np.float64(2.0)) == 0.5
        with np.errstate(divide="ignore"):  # the same under another identity
            assert f(np.float64(2.0)) == 0.5
        assert f.captures == 1
        for _ in range(2):
            with np.errstate(divide="raise"), pytest.raises(StagingError):
                f(np.float64(0.0))
            before = np.seterr(divide="raise")
            try:
                with pytest.raises(StagingError):
                    f(np.float64(0.0))
            finally:
                np.seterr(**before)
            assert np.isinf(f(np.float64(0.0)))
    assert f.captures == 1

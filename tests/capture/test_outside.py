"""What a program cannot look at or change is refused at its line; the rest is looked at."""

import array
import builtins
import contextvars
import ctypes
import datetime
import functools
import io
import itertools
import logging
import os
import pathlib
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import uuid
import warnings
import weakref
from time import perf_counter as t

import numpy as np
import pytest

from lineara import grad, jit, trace
from lineara.errors import StagingError

PLACE = pathlib.Path(__file__)
LOG = logging.getLogger("lineara.tests")


def opens(x):
    with open(PLACE) as f:
        return x * len(f.read())


class Stamp(datetime.datetime):
    """A class of the user's that is derived from one of Python's library."""


def clocks():
    yield "datetime.now", lambda x: x * datetime.datetime.now().microsecond
    yield "Stamp.now", lambda x: x * Stamp.now().microsecond
    yield "date.today", lambda x: x * datetime.date.today().day
    yield "perf_counter", lambda x: x * t()
    yield "monotonic_ns", lambda x: x * time.monotonic_ns()
    yield "localtime", lambda x: x * time.localtime().tm_sec
    yield "perf_counter", lambda x: x * max(map(lambda g: g(), [t]))
    yield "sleep", lambda x: (time.sleep(0), x)[1]


def files():
    yield "Path.read_text", lambda x: x * len(PLACE.read_text())
    yield "open", opens
    yield "open", lambda x: x * len(io.open(PLACE).read())  # noqa: SIM115, UP020
    yield "open", lambda x: x * len(builtins.open(PLACE).read())  # noqa: SIM115
    yield "listdir", lambda x: x * len(os.listdir(PLACE.parent))
    yield "exists", lambda x: x * os.path.exists(PLACE)
    yield "loadtxt", lambda x: x * np.loadtxt(PLACE)
    yield "fromfile", lambda x: x * np.fromfile(PLACE, "u1")[0]
    yield "ndarray.tofile", lambda x: (np.ones(2).tofile(os.devnull), x)[1]
    yield "NamedTemporaryFile", lambda x: (tempfile.NamedTemporaryFile(), x)[1]  # noqa: SIM115
    yield "input", lambda x: x * float(input())
    yield "socket", lambda x: (socket.socket(), x)[1]
    yield "check_output", lambda x: x * len(subprocess.check_output(["true"]))


def process():
    yield "getenv", lambda x: x * len(os.getenv("HOME", ""))
    yield "getcwd", lambda x: x * len(os.getcwd())
    yield "getrecursionlimit", lambda x: x * sys.getrecursionlimit()
    yield "get_printoptions", lambda x: x * np.get_printoptions()["precision"]
    yield "globals", lambda x: x * len(globals())
    yield "Logger.warning", lambda x: (LOG.warning("seen"), x)[1]
    yield "get_ident", lambda x: x * threading.get_ident()


def chances():
    yield "SystemRandom", lambda x: x * random.SystemRandom().random()
    yield "urandom", lambda x: x * os.urandom(1)[0]
    yield "randbelow", lambda x: x * secrets.randbelow(9)
    yield "uuid4", lambda x: x * (uuid.uuid4().int % 9)
    yield "Random.seed", lambda x: x if random.seed(3) else -x
    yield "seed", lambda x: x if np.random.seed(3) else -x


OUTSIDE = [*clocks(), *files(), *process(), *chances()]


@pytest.mark.parametrize(("name", "f"), OUTSIDE, ids=[n for n, _ in OUTSIDE])
def test_a_call_that_would_be_made_once_is_refused_at_its_line(name, f):
    with pytest.raises(StagingError) as e:
        jit(f)(2.0)
    assert e.value.message == (
        f"{name} would be called once, as the program is written, and not in each call of it; "
        "call it outside of the function, and pass what it gives"
    )
    assert e.value.line.startswith("test_outside.py:")


def test_a_call_within_a_function_that_is_called_or_a_generator_is_refused():
    def stamp():
        return functools.partial(t)()

    def stamps():
        yield t()

    with pytest.raises(StagingError, match="perf_counter would be called once"):
        jit(lambda x: x * stamp())(2.0)
    with pytest.raises(StagingError, match=r"perf_counter would be called once|stamps names t"):
        jit(lambda x: x * sum(stamps()))(2.0)
    uncalled = jit(lambda x: x * len([map(t, ())]))
    assert uncalled(2.0) == 2.0


def test_a_program_that_stands_for_no_calls_may_look():
    assert trace(lambda x: x * len(os.getcwd()), 2.0)(3.0) == 3.0 * len(os.getcwd())
    assert trace(lambda x: x * len(globals()["PLACE"].name), 2.0)(1.0) == len(PLACE.name)


UNREAD = """
def clock(x): return x * datetime.datetime.now().microsecond
def folder(x): return x * len(os.getcwd())
def place(x): return x * len(list(PLACE.parent.iterdir()))
def within(x): return clock(x)
def seeds(x): return x if random.seed(3) is None else -x
def reads(x): return x * np.fromfile(PLACE, "u1")[0]
"""


def test_a_function_without_source_that_names_what_is_outside_is_refused():
    space = dict(globals())
    exec(UNREAD, space)
    named = {"clock": "datetime", "folder": "os", "place": "PLACE", "seeds": "random"}
    for f, said in {**named, "reads": "np"}.items():
        with pytest.raises(StagingError) as e:
            jit(space[f])(2.0)
        assert e.value.message == (
            f"{f} names {said}, and whether it calls that is not known, since its source is not "
            "there: a program would not call it again; call it outside of the function, and pass "
            "what it gives"
        )
    with pytest.raises(StagingError, match="clock names datetime"):
        jit(space["within"])(2.0)
    exec("def fine(x): return np.sin(x) + datetime.timedelta(1).days", space)
    assert jit(space["fine"])(2.0) == space["fine"](2.0)


@pytest.mark.parametrize("name", ["select", "signal", "platform", "profile"])
def test_an_attribute_named_as_a_module_of_pythons_is_not_that_module(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    space = {"own": types.SimpleNamespace(**{name: np.sin})}
    exec(f"def named(x): return own.{name}(x)\ndef imported(x): import {name}; return x", space)
    assert jit(space["named"])(2.0) == np.sin(2.0)
    with pytest.raises(StagingError, match=f"imported names {name}, and whether it calls that"):
        jit(space["imported"])(2.0)


UNSEEDED = [
    ("default_rng", lambda x: x * np.random.default_rng().random()),
    ("default_rng", lambda x: x * np.random.default_rng(seed=None).random()),
    ("PCG64", lambda x: x * np.random.Generator(np.random.PCG64()).random()),
    ("RandomState", lambda x: x * np.random.RandomState().rand()),
    ("SeedSequence", lambda x: x * np.random.SeedSequence().generate_state(1)[0]),
    ("Random", lambda x: x * random.Random().random()),
]


@pytest.mark.parametrize(("name", "f"), UNSEEDED, ids=[n for n, _ in UNSEEDED])
def test_a_generator_without_a_seed_is_refused(name, f):
    with pytest.raises(StagingError) as e:
        jit(f)(2.0)
    assert e.value.message == (
        f"{name} without a seed draws one as the program is written, and not in each call of it; "
        "give it a seed, or pass the numbers that are drawn"
    )


def test_a_generator_with_a_seed_is_a_constant():
    def f(x):
        rng = np.random.default_rng(3)
        return x * rng.random() + random.Random(5).random()

    g = jit(f)
    assert [g(2.0), g(3.0)] == [f(2.0), f(3.0)]
    assert g.captures == 1


def test_calls_that_give_the_same_for_the_same_are_made():
    def f(x):
        day = datetime.datetime(2020, 1, 2).toordinal()
        text = io.StringIO()
        text.write("1 2")
        names = os.path.join("a", "b").split("/")
        warnings.warn_explicit("seen", ImportWarning, "x", 1, registry={"x": 1})
        return x * day + len(text.getvalue()) + len(names) + next(itertools.count(3))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert jit(f)(2.0) == f(2.0)


ADVANCED = [
    ("list_iterator", lambda: iter([1.0, 2.0, 3.0]), lambda it: lambda x: x * next(it)),
    ("list_iterator", lambda: iter([1.0, 2.0, 3.0]), lambda it: lambda x: sum(x * k for k in it)),
    ("count", lambda: itertools.count(1), lambda it: lambda x: x * next(it)),
    ("enumerate", lambda: enumerate("abc"), lambda it: lambda x: x * next(it)[0] + x),
    ("list_iterator", lambda: zip([1.0, 2.0]), lambda it: lambda x: x * next(it)[0]),
    ("list_iterator", lambda: map(float, [1, 2]), lambda it: lambda x: x * next(it)),
    ("generator", lambda: (k for k in (1.0, 2.0)), lambda it: lambda x: x * next(it)),
    ("cycle", lambda: itertools.cycle([1.0, 2.0]), lambda it: lambda x: x * next(it)),
]


@pytest.mark.parametrize(("kind", "make", "using"), ADVANCED)
def test_an_iterator_that_outlives_the_call_is_refused(kind, make, using):
    f = using(make())
    with pytest.raises(StagingError) as e:
        jit(f)(2.0)
    if kind not in ("cycle", "count"):  # from 3.14 on, these do not tell where they are
        assert f"({kind}) went on in a function that is captured once" in e.value.message
    assert "go through a list, or an array" in e.value.message


def test_iterators_of_the_functions_own_go_on_in_rounds_of_python():
    def rounds(x):
        given = iter([1.0, 2.0, 3.0, 4.0, 5.0])
        numbers = (float(k) for k in range(9))
        total = 0.0
        for _ in range(5):
            total = total + x * next(given) * next(numbers)
        return total

    def until(x):
        given, total = iter([1.0, 2.0, 3.0, 4.0, 5.0]), 0.0
        while total < 10 * x:
            total = total + x * next(given)
        return total

    def chosen(x):
        given = iter([1.0, 2.0])
        y = next(given) * x if x > 0 else x
        return y + next(given)

    assert jit(rounds)(2.0) == rounds(2.0)
    for f in (until, chosen):
        with pytest.raises(StagingError, match="go through a list, or an array"):
            jit(f)(2.0)


def test_state_that_no_attribute_shows_is_looked_at_in_each_call():
    variable = contextvars.ContextVar("variable", default=2.0)
    numbers, mapping, text = array.array("d", [2.0]), {"k": 2.0}, io.StringIO("a")
    proxy = types.MappingProxyType(mapping)
    memory, target = memoryview(bytearray(b"ab")), Box()
    target.k = 2.0
    reference, base = weakref.ref(target), np.array([2.0, 3.0])
    shown = base[:]
    shown.flags.writeable = False
    cases = [
        (lambda x: x * variable.get(), lambda: variable.set(5.0)),
        (lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 5.0)),
        (lambda x: x * proxy["k"], lambda: mapping.__setitem__("k", 5.0)),
        (lambda x: x * len(text.getvalue()), lambda: text.write("bc")),
        (lambda x: x * memory[0], lambda: memory.__setitem__(0, 5)),
        (lambda x: x * reference().k, lambda: setattr(target, "k", 5.0)),
        (lambda x: x * shown[0], lambda: base.__setitem__(0, 5.0)),
    ]
    for f, change in cases:
        g = jit(f)
        before = g(2.0)
        assert before == f(2.0) == g(2.0)
        change()
        assert g(2.0) == f(2.0) != before
        assert g.captures == 2


def test_what_is_changed_there_is_put_back_and_refused():
    variable = contextvars.ContextVar("variable", default=2.0)
    numbers, text = array.array("d", [2.0]), io.StringIO("a")
    variable.set(3.0)

    def sets(x):
        variable.set(9.0)
        return x

    def stores(x):
        numbers[0] = 9.0
        return x

    def writes(x):
        text.write("b")
        return x

    for f, kind in [(sets, "a ContextVar"), (stores, "an array"), (writes, "a StringIO")]:
        with pytest.raises(StagingError, match=f"{kind} was changed in a function"):
            jit(f)(2.0)
    assert (variable.get(), numbers[0], text.getvalue()) == (3.0, 2.0, "a")


def test_how_numpy_handles_errors_is_part_of_the_form_of_a_call():
    g = jit(lambda x: x / np.zeros(1))
    with np.errstate(divide="ignore"):
        assert np.isinf(g(2.0)[0])
    with np.errstate(divide="raise"), pytest.raises(StagingError) as e:
        g(2.0)
    assert e.value.message == (
        "jit: under np.errstate('raise') <lambda> would stop where NumPy meets an error, and a "
        "program goes on; call the function itself there, or test what it gives with np.isfinite"
    )
    with np.errstate(divide="ignore"):
        assert np.isinf(g(3.0)[0])
    assert jit(lambda x: x * len(np.geterr()["over"]))(1.0) == len(np.geterr()["over"])


KEPT = {"log": [], "count": 0}


class Box:
    total = 0.0


BOX = Box()


def test_a_side_effect_is_refused_at_its_line():
    def note(x):
        y = x * 2
        KEPT["log"].append(1)
        return y

    def inner(x):
        return x + 1

    def around(x):
        y = inner(x)
        KEPT["log"].append(inner(x))
        return y

    def counts(x):
        KEPT["count"] += 1
        return x

    def binds(x):
        global BOX
        BOX = x
        return x

    def sets(x):
        BOX.total = 3.0
        return x * BOX.total

    def last(x):
        return KEPT["log"].append(1) or x

    expected = {
        note: 'note: KEPT["log"].append(1)',
        around: 'around: KEPT["log"].append(inner(x))',
        counts: 'counts: KEPT["count"] += 1',
        binds: "binds: BOX = x",
        sets: "sets: BOX.total = 3.0",
        last: 'last: return KEPT["log"].append(1) or x',
    }
    for f, line in expected.items():
        with pytest.raises(StagingError, match="was changed in a function that is captured") as e:
            jit(f)(1.0)
        assert e.value.line.endswith(f"in {line}")
    assert KEPT == {"log": [], "count": 0}
    assert (type(BOX), BOX.total) == (Box, 0.0)


class Meta(type):
    k = 2.0


class Made(metaclass=Meta):
    pass


class Answers(dict):
    def __missing__(self, key):
        return self.k

    k = 2.0


def test_what_is_reached_in_other_ways_is_looked_at_too(monkeypatch):
    numbers, table, a, box = [2.0], {"k": 2.0}, np.array([2.0, 3.0]), Box()
    get, item, total = table.get, numbers.__getitem__, a.sum
    module = types.ModuleType("lineara_tests_settings")
    module.k, name, answers = 2.0, "k", Answers()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    references, refined, flat = weakref.WeakValueDictionary(b=box), weakref.WeakSet([box]), a.flat
    box.total = 2.0
    of_kind = functools.singledispatch(lambda x: x * 2.0)
    cases = [
        (lambda x: x * get("k"), lambda: table.__setitem__("k", 5.0)),
        (lambda x: x * item(0), lambda: numbers.__setitem__(0, 5.0)),
        (lambda x: x * total(), lambda: a.__setitem__(0, 5.0)),
        (lambda x: x * flat[0], lambda: a.__setitem__(0, 6.0)),
        (lambda x: x * references["b"].total, lambda: setattr(box, "total", 5.0)),
        (lambda x: x * next(iter(refined)).total, lambda: setattr(box, "total", 6.0)),
        (lambda x: x * getattr(module, name), lambda: setattr(module, "k", 5.0)),
        (lambda x: x * module.__dict__["k"], lambda: setattr(module, "k", 6.0)),
        (
            lambda x: x * sys.modules["lineara_tests_settings"].k,
            lambda: setattr(module, "k", 7.0),
        ),
        (lambda x: x * Made.k, lambda: monkeypatch.setattr(Meta, "k", 5.0)),
        (lambda x: x * answers["z"], lambda: monkeypatch.setattr(Answers, "k", 5.0)),
        (lambda x: of_kind(x), lambda: of_kind.register(float, lambda x: x * 3.0)),
    ]
    for f, change in cases:
        g = jit(f)
        before = g(2.0)
        assert before == f(2.0) == g(2.0)
        change()
        assert g(2.0) == f(2.0) != before
        assert g.captures in (2, 3)  # a cache of singledispatch is looked at too


def test_what_others_keep_in_a_module_of_python_is_not_gone_through(monkeypatch):
    module = types.ModuleType("lineara_tests_settings")
    module.k = 2.0
    monkeypatch.setitem(sys.modules, module.__name__, module)
    kept = [[] for _ in range(50_000)]  # more than jit looks at
    monkeypatch.setattr(sys, "lineara_tests_hook", kept, raising=False)
    g = jit(lambda x: x * sys.modules["lineara_tests_settings"].k)
    assert g(2.0) == 4.0
    kept.clear()
    assert (g(2.0), g.captures) == (4.0, 1)
    module.k = 3.0
    assert (g(2.0), g.captures) == (6.0, 2)
    h = jit(lambda x: x * len(sys.lineara_tests_hook))
    assert h(2.0) == 0.0
    kept.append(1)
    assert h(2.0) == 2.0


def test_an_object_that_does_not_tell_what_it_holds_is_refused():
    memory = (ctypes.c_double * 2)(1.0, 2.0)
    with pytest.raises(StagingError) as e:
        jit(lambda x: x * memory[0])(2.0)
    assert e.value.message == (
        "jit: <lambda> reaches a c_double_Array_2, which does not tell what it holds, so a change "
        "of it would not be seen; pass what is needed of it as an argument"
    )


FIRST_BOUND: float


def test_attributes_of_modules_and_globals_that_are_bound_first_are_refused(monkeypatch):
    module = types.ModuleType("lineara_tests_settings")
    module.k = 2.0

    def sets(x):
        module.k = 3.0
        return x * module.k

    def binds(x):
        global FIRST_BOUND
        FIRST_BOUND = 3.0
        return x

    for f, name in [(sets, "k"), (binds, "FIRST_BOUND")]:
        with pytest.raises(StagingError, match=f"the variable '{name}' was changed in a function"):
            jit(f)(2.0)
    assert module.k == 2.0
    assert "FIRST_BOUND" not in globals()


MADE = [
    lambda: iter([1.0, 2.0, 3.0, 4.0, 5.0]),
    lambda: (v for _, v in enumerate([1.0, 2.0, 3.0, 4.0, 5.0])),
    lambda: map(float, [1, 2, 3, 4, 5]),
    lambda: reversed([1.0, 2.0, 3.0, 4.0, 5.0]),
    lambda: iter(range(9)),
    lambda: iter({1.0: 2, 2.0: 3, 3.0: 1, 4.0: 5}),
    lambda: iter(np.arange(9.0)),
    lambda: map(sum, zip(range(9), range(9), strict=True)),
]


@pytest.mark.parametrize("make", MADE)
def test_an_iterator_that_is_made_in_the_function_goes_on_once_a_round(make):
    def f(x):
        given, total = make(), 0.0
        for _ in range(4):
            total = total + x * next(given)
        return total

    assert jit(f)(2.0) == f(2.0)


LENGTHS = {
    "zeros": lambda n, x: np.zeros(n),
    "ones": lambda n, x: np.ones((2, n)),
    "empty": lambda n, x: np.empty(shape=n),
    "full": lambda n, x: np.full(n, x),
    "full of a constant": lambda n, x: np.full((n, 2), 3.0),
    "full by keywords": lambda n, x: np.full(fill_value=x, shape=[n]),
    "zeros_like": lambda n, x: np.zeros_like(np.ones(3), shape=n),
    "full_like": lambda n, x: np.full_like(np.ones(3), x, shape=(n, 1)),
    "eye": lambda n, x: np.eye(n),
    "identity": lambda n, x: np.identity(n),
    "tri": lambda n, x: np.tri(3, n),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_an_array_as_long_as_a_value_of_the_program_is_refused_with_a_way_out(name):
    make = LENGTHS[name]

    def f(x):
        return (make(int(x), x) * x).sum()

    with pytest.raises(StagingError, match=r"length depends on staged values.* as long as it can"):
        jit(f)(2.0)

    def g(x, n):
        return (make(n, x) * x).sum() * (0 if name == "empty" else 1)

    for n in (2, 3):  # a whole number that is given becomes a constant
        assert jit(g)(2.0, n) == g(2.0, n)


def test_full_like_takes_the_arguments_of_numpy():
    x = np.ones(3)
    ways = [
        lambda v: np.full_like(x, v, shape=2),
        lambda v: np.full_like(a=x, fill_value=v),
        lambda v: np.full(fill_value=v, shape=(2, 2)),
        lambda v: np.full(4, v, float),
    ]
    for make in ways:
        assert grad(lambda v, make=make: (make(v) * v).sum())(2.0) == 4.0 * make(2.0).size
    with pytest.raises(TypeError):
        grad(lambda v: np.full(3) * v)(2.0)

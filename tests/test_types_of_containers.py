"""What a program sees of the classes of its containers is what it sees without differentiation."""

import copy
import functools
import json
import math
import random
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_hess

from lineara import (
    grad,
    hessian,
    hvp,
    jacobian,
    jit,
    jvp,
    linearize,
    trace,
    value_and_grad,
    vjp,
    vmap,
)
from lineara.python.user_code import overlay
from lineara.trees import map_leaves

Pair = namedtuple("Pair", "w b")


class Named(NamedTuple):
    w: Any
    b: Any

    def curve(self) -> Any:
        return math.sin(_number(self.w))


@dataclass
class Record:
    w: Any
    b: Any

    def curve(self) -> Any:
        return math.sin(_number(self.w))


@dataclass(frozen=True)
class Frozen:
    w: Any
    b: Any


class Own:
    def __init__(self, w: Any, b: Any) -> None:
        self.w = w
        self.b = b

    def curve(self) -> Any:
        return math.cos(_number(self.b))


class Table(dict):
    def curve(self) -> Any:
        return math.exp(_number(self["w"]) / 9)


class Row(list):
    pass


def _default(w: Any, b: Any) -> Any:
    return defaultdict(float, w=w, b=b)


MAKERS: dict[Any, Any] = {
    dict: lambda w, b: {"w": w, "b": b},
    list: lambda w, b: [w, b],
    tuple: lambda w, b: (w, b),
    OrderedDict: lambda w, b: OrderedDict(w=w, b=b),
    defaultdict: _default,
    Table: lambda w, b: Table(w=w, b=b),
    Row: lambda w, b: Row([w, b]),
    SimpleNamespace: lambda w, b: SimpleNamespace(w=w, b=b),
    **{cls: cls for cls in (Pair, Named, Record, Frozen, Own)},
}
CLASSES = tuple(MAKERS)
VALUES: dict[Any, float] = {cls: 1.0 + i / 8 for i, cls in enumerate(CLASSES)}
CONFIG = {
    "list": [np.tanh, math.sin],
    "dict": {"f": np.tanh, "of": {"dtype": np.float32}},
    "tuple": (np.tanh, np.float64),
}


def _parts(p: Any) -> list[Any]:
    if isinstance(p, dict):
        return list(p.values())
    return list(p) if isinstance(p, list | tuple) else [p.w, p.b]


def _number(p: Any) -> Any:
    """A number that depends on all leaves."""
    while not isinstance(p, float):
        p = _parts(p)[0] if isinstance(_parts(p)[0], float) else _parts(p)[-1]
    return p


def _sum(p: Any) -> Any:
    return p if isinstance(p, float) else sum(_sum(x) for x in _parts(p))


def by_pattern(p: Any) -> Any:
    match p:
        case Record(w=_, b=_):
            return 1.0
        case Named(_, _):
            return 2.0
        case {"w": _, **rest} if len(rest) == 1:
            return 3.0
        case [_, _]:
            return 4.0
        case Own():
            return 5.0
    return 6.0


def by_ladder(p: Any) -> Any:
    kind = type(p)
    if kind in (list, tuple):
        return 1.0
    if kind is dict or kind == OrderedDict:
        return 2.0
    if kind is Record or kind is Own or kind is Frozen:
        return 3.0
    return 4.0 if kind is Named else 5.0


@functools.singledispatch
def by_dispatch(p: Any) -> Any:
    return 1.0


@by_dispatch.register(dict)
def _(p: Any) -> Any:
    return 2.0


@by_dispatch.register(Record)
def _(p: Any) -> Any:
    return 3.0


def again(p: Any) -> Any:
    """`type(p)(..)`, as each class is made."""
    kind = type(p)
    if issubclass(kind, defaultdict):
        return kind(p.default_factory, p)
    if issubclass(kind, dict):
        return kind(p)
    if kind in (list, tuple, Row):
        return kind(_parts(p))
    return kind(**vars(p)) if kind is SimpleNamespace else kind(*_parts(p))


def unpacked(p: Any) -> Any:
    """C code that takes containers apart."""
    if isinstance(p, dict):
        made: Any = {**p}
        keyed = (lambda **options: len(options) if type(options) is dict else 0.0)(**p)
        return VALUES[type(made)] + keyed + len(dict(p))
    if isinstance(p, list | tuple):
        made = [*p]
        (lambda *args: None)(*p)
        return VALUES[type(made)] + len((*p,)) + len(list(p))
    return 0.0


QUESTIONS = {
    "type is": lambda p: sum(v for c, v in VALUES.items() if type(p) is c),
    "type ==": lambda p: sum(v for c, v in VALUES.items() if type(p) == c),  # noqa: E721
    "type in": lambda p: 1.0 if type(p) in (dict, tuple, Record, Pair) else 2.0,
    "table": lambda p: VALUES.get(type(p), -1.0),
    "ladder": by_ladder,
    "__class__ is": lambda p: sum(v for c, v in VALUES.items() if p.__class__ is c),
    "__class__ is type": lambda p: 1.0 if p.__class__ is type(p) else 2.0,
    "__name__": lambda p: float(len(type(p).__name__) + len(p.__class__.__qualname__)),
    "type of type": lambda p: 1.0 if type(type(p)) is type else 2.0,
    "map": lambda p: VALUES.get(next(iter(map(type, [p]))), -1.0),
    "copy": lambda p: VALUES.get(type(copy.copy(p)), -1.0),
    "deepcopy": lambda p: VALUES.get(type(copy.deepcopy(p)), -1.0),
    "same as a copy": lambda p: 1.0 if type(p) is type(copy.copy(p)) else 2.0,
    "equal to a copy": lambda p: 1.0 if p == copy.copy(p) else 2.0,
    "made again": lambda p: VALUES.get(type(again(p)), -1.0),
    "equal when made again": lambda p: 1.0 if p == again(p) else 2.0,
    "replaced": lambda p: _sum(replace(p, w=2.0) if type(p) in (Record, Frozen) else p),
    "isinstance": lambda p: float(sum(isinstance(p, c) for c in CLASSES)),
    "issubclass": lambda p: float(sum(issubclass(type(p), c) for c in CLASSES)),
    "match": by_pattern,
    "dispatch": by_dispatch,
    "unpacked": unpacked,
    "_replace": lambda p: float(
        p._replace(w=0.5).curve() + VALUES[type(p._replace(w=0.5))] if type(p) is Named else 0.0
    ),
    "method": lambda p: p.curve() if hasattr(p, "curve") else 0.5,
    "parts": lambda p: sum(VALUES.get(type(x), 0.25) for x in _parts(p)),
    "config": lambda p: sum(VALUES[type(c)] for c in CONFIG.values()),
    "config class": lambda p: sum(VALUES[c.__class__] for c in CONFIG.values()),
    "config copied": lambda p: sum(VALUES[type(copy.copy(c))] for c in CONFIG.values()),
    "config inside": lambda p: 1.0 if type(CONFIG["dict"]["of"]) is dict else 2.0,
    "config holds": lambda p: 1.0 if type(CONFIG["list"][0]) is np.ufunc else 2.0,
    "config deep": lambda p: float(copy.deepcopy(CONFIG["list"])[0](_number(p))),
}
ALL_ENTRIES = {
    "plain": lambda f, p: f(p),
    "value_and_grad": lambda f, p: value_and_grad(f)(p)[0],
    "sparse": lambda f, p: value_and_grad(f, sparse=True)(p)[0],
    "policy": lambda f, p: value_and_grad(f, policy="store_all")(p)[0],
    "vjp": lambda f, p: vjp(f, p)[0],
    "jvp": lambda f, p: jvp(f, (p,), (map_leaves(lambda x: 1.0, p),))[0],
    "linearize": lambda f, p: linearize(f, p)[0],
    "jacobian": lambda f, p: _seen(jacobian, f, p),
    "hessian": lambda f, p: _seen(hessian, f, p),
    "grad of grad": lambda f, p: _seen(lambda g: jacobian(grad(g)), f, p),
    "trace": lambda f, p: trace(f, p)(p),
    "vmap": lambda f, p: vmap(f)(map_leaves(lambda x: np.array([x]), p))[0],
}


def _seen(mode: Any, f: Any, p: Any) -> Any:
    """The value that f has inside a mode that gives derivatives only."""
    found: list[Any] = []

    def noted(p: Any) -> Any:
        y = f(p)
        found.append(y)
        return y

    mode(noted)(p)
    return _plain(found[-1])


def _plain(x: Any) -> Any:
    while hasattr(x, "v"):
        x = x.v
    return x


def drawn(rng: random.Random, depth: int = 0) -> Any:
    """A container of some kind, with numbers and containers in it."""
    deeper = depth < 2 and rng.random() < 0.4
    w = round(rng.uniform(0.1, 2.0), 3)
    b = drawn(rng, depth + 1) if deeper else round(rng.uniform(0.1, 2.0), 3)
    return MAKERS[rng.choice(CLASSES)](w, b)


@pytest.mark.parametrize("entry", sorted(ALL_ENTRIES.keys() - {"plain"}))
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_for_a_class_has_the_plain_answer(question, entry):
    ask, rng = QUESTIONS[question], random.Random(f"{question} {entry}")
    trees = [make(0.5, 1.25) for make in MAKERS.values()] if entry in FAST else []
    for p in [*trees, *[drawn(rng) for _ in range(4)]]:

        def f(p: Any) -> Any:
            return _sum(p) * ask(p)

        expected = f(p)
        found = ALL_ENTRIES[entry](f, copy.deepcopy(p))
        assert float(found) == pytest.approx(expected, rel=1e-14), p


@pytest.mark.parametrize(
    "entry", ["value_and_grad", "sparse", "policy", "vjp", "linearize", "trace"]
)
def test_constants_in_an_argument_can_be_written_as_json(entry):
    options = {"sizes": [1, 2, {"name": "x"}, {}], "flags": (True, None)}

    def f(p: Any) -> Any:
        return p["w"] * len(json.dumps([p["options"], {**p["options"]}, p["options"]["sizes"]]))

    p = {"w": 2.0, "options": options}
    assert float(ALL_ENTRIES[entry](f, p)) == f(p)


@pytest.mark.parametrize("entry", ["value_and_grad", "policy", "vjp", "linearize", "trace"])
def test_a_class_of_numbers_in_an_argument_is_a_constant(entry):
    def f(p: Any) -> Any:
        return p["w"] * np.ones(2, p["dtype"]).itemsize * len(p["kinds"])

    p = {"w": 2.0, "dtype": np.float32, "kinds": [np.float64, np.integer, int]}
    assert float(ALL_ENTRIES[entry](f, p)) == f(p) == 24.0


FAST = ("value_and_grad", "linearize", "jvp")


@dataclass(frozen=True)
class Counted:
    w: float

    def __post_init__(self) -> None:
        super().__setattr__("twice", 2 * self.w)

    def again(self) -> Any:
        super().__setattr__("kept", 3 * self.w)
        return self.kept


@pytest.mark.parametrize("entry", sorted(ALL_ENTRIES.keys() - {"plain", "vmap"}))
def test_a_frozen_record_may_set_its_own_attributes(entry):
    def f(p: Any) -> Any:
        return p.w * p.again() + Counted(p.w * p.w).twice

    assert float(ALL_ENTRIES[entry](f, Counted(1.5))) == f(Counted(1.5)) == 11.25


def test_a_function_of_a_library_is_differentiated_twice_by_its_own_name():
    x = np.array([1.0, 2.0, -0.5])
    np.testing.assert_allclose(hessian(rosen)(x), rosen_hess(x))
    np.testing.assert_allclose(jacobian(grad(rosen))(x), rosen_hess(x))
    np.testing.assert_allclose(jacobian(jacobian(grad(rosen)))(x)[0, 0, 0], 2400.0 * x[0])


@dataclass
class Weighted:
    w: float

    def total(self):
        return self.w * 2


def of_its_own_class(p):
    return p.total() * (3.0 if type(p) is Weighted and p.__class__ is Weighted else 1.0)


def test_a_class_is_itself_after_any_number_of_others_and_after_imports():
    """What argues of a class keeps its twin; the overlay holds the last few only."""
    p, gradient = Weighted(0.5), grad(of_its_own_class)
    assert gradient(p).w == 6.0
    for _ in range(300):

        @dataclass
        class Other:
            w: float

            def total(self):
                return self.w

        assert grad(lambda p, c=Other: p.total() * (type(p) is c))(Other(0.5)).w == 1.0
    assert gradient(p).w == 6.0
    overlay().forget()
    assert gradient(p).w == 6.0


@dataclass
class Labelled:
    """Numbers beside what is none."""

    a: float
    w: np.ndarray
    name: str = "spring"
    nothing: None = None
    on: bool = True
    n: int = 3


def energy(p: Any) -> Any:
    return p.a**2 * np.sum(p.w**3) * p.n if p.on and p.name == "spring" else 0.0


def test_second_derivatives_of_containers_that_hold_more_than_numbers():
    p = Labelled(2.0, np.array([1.0, -0.5]))
    v = Labelled(0.3, np.array([0.1, 0.2]), name="a direction")
    H = hessian(energy)(p)
    np.testing.assert_allclose(H.w.w, np.diag(6 * p.n * p.a**2 * p.w))
    assert (H.a.name, H.name.a, H.n.a, H.a.n) == (0.0, 0.0, 0.0, 0.0)
    along = hvp(energy)(p, v)
    np.testing.assert_allclose(along.w, H.w.a * v.a + H.w.w @ v.w)
    assert along.a == pytest.approx(H.a.a * v.a + H.a.w @ v.w)
    assert (along.name, along.nothing, along.on, along.n) == ("spring", None, True, 0.0)


def test_a_direction_may_be_a_gradient():
    p = Labelled(2.0, np.array([1.0, -0.5]))
    g = grad(energy)(p)
    slope = g.a**2 + g.w @ g.w
    assert jvp(energy, (p,), (g,))[1] == pytest.approx(slope)
    assert linearize(energy, p)[1] @ g == pytest.approx(slope)


def test_a_program_gives_whole_numbers_the_gradient_that_grad_gives():
    d = {"a": 2.0, "n": 3, "k": np.arange(3), "s": "x", "i": np.int64(3)}

    def f(d: Any) -> Any:
        return d["a"] ** 2 * d["n"]

    expected = grad(f)(d)
    found = jit(grad(f))(d)
    assert [type(v) for v in found.values()] == [type(v) for v in expected.values()]
    assert found["k"].dtype == expected["k"].dtype == float
    assert type(jit(lambda x: jacobian(lambda y: y**2)(x))(2.0)) is float

"""Installed libraries are followed: a library as pip would install it, with what real ones do.

What is checked of real libraries is in tests/libraries.
"""

import importlib
import math
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from call_counts import calls

import lineara
from lineara.errors import LinearaError
from lineara.python.user_code import overlay

SOURCE = '''
import abc, functools, math
import numpy as np

CACHE, LOG, CALLS, LAST = {}, [], [], None

class Named(type):
    @property
    def name(cls): return cls.__name__

class Model(metaclass=Named):
    """A class with an attribute that its metaclass has as a property, too."""
    def __init__(self, name): self._name = name
    @property
    def name(self): return self._name
    def value(self, x): return math.sin(x) * len(self.name)

class Mixin:
    def twice(self, x): return 2 * math.exp(x)

class Estimator(Mixin, abc.ABC):
    """Of a plain class and an abstract one."""
    @abc.abstractmethod
    def fit(self, x): ...

class Line(Estimator):
    def fit(self, x): return self.twice(x) * math.tanh(x)

class Cell:
    """An object that is an array to NumPy."""
    def __init__(self, array): self.array = np.array(array)
    def __array__(self, dtype=None, copy=None): return self.array
    @property
    def volume(self): return abs(np.linalg.det(self))
    def sides(self): return np.asarray(self) * 2

class Box:
    memo = {}
    def __init__(self): self.state = 1.0
    def put(self, v):
        self.state = v
        self.memo[len(self.memo)] = v
        return v

BOX = Box()
REGISTRY = {i: Box() for i in range(3000)}
REGISTRY["self"] = REGISTRY

def of_registry(x): return math.sin(x) * len(REGISTRY)

FEW, MANY = [Box() for _ in range(2)], [Box() for _ in range(200)]

def of_few(x): return math.sin(x) * len(FEW)
def of_many(x): return math.sin(x) * len(MANY)

@functools.lru_cache(maxsize=None)
def fibonacci(n, x):
    CALLS.append(n)
    return x if n < 2 else fibonacci(n - 1, x) + fibonacci(n - 2, x)

@functools.lru_cache(maxsize=None)
def settings(name): return [name]

def in_dict(x):
    if "v" not in CACHE: CACHE["v"] = math.sin(x)
    return CACHE["v"]

def in_list(x):
    LOG.append(math.sin(x))
    return LOG[-1]

def in_global(x):
    global LAST
    LAST = math.sin(x)
    return LAST

def memoized(f):
    seen = {}
    @functools.wraps(f)
    def call(x):
        if "v" not in seen: seen["v"] = f(x)
        return seen["v"]
    return call

in_closure = memoized(lambda x: math.sin(x))

def in_object(x): return BOX.put(math.sin(x))

space = {"math": math, "__name__": __name__, "__file__": __file__}
exec("def generated(x): return math.sin(x) ** 2", space)
generated = space["generated"]

def compiled(x): return CACHE.setdefault(x, 2 * x)

def converted(x): return np.frombuffer(np.asarray(x, order="C").data)[0]

def even(n, x): return x if n == 0 else odd(n - 1, math.sin(x))
def odd(n, x): return 1.0 if n == 0 else even(n - 1, math.cos(x))
'''


@pytest.fixture
def library(tmp_path, monkeypatch) -> Iterator[ModuleType]:
    place = tmp_path / "site-packages"
    place.mkdir()
    name = f"installed_{abs(hash(str(tmp_path)))}"
    (place / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    yield importlib.import_module(name)
    del sys.modules[name]


def agrees(f, x: float) -> None:
    """The value of the plain call and the gradient of differences."""
    value, slope = lineara.value_and_grad(f)(x)
    h = 1e-5
    assert value == f(x)
    assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-7)


def test_a_metaclass_with_a_property_of_the_same_name(library):
    agrees(lambda x: library.Model("sine").value(x), 0.7)
    assert library.Model.name == "Model"


def test_a_class_derived_from_a_plain_and_an_abstract_one(library):
    agrees(lambda x: library.Line().fit(x), 0.7)
    line = library.Line()
    agrees(line.fit, 0.7)


def test_an_object_that_is_an_array_to_numpy(library):
    def f(x):
        cell = library.Cell([[x, 1.0], [0.5, x * x]])
        product = np.array([x, 1.0]) @ cell
        return cell.volume + np.sum(cell.sides()) + np.sum(product)

    agrees(f, 1.7)


def test_a_module_of_thousands_of_objects_that_contains_itself(library):
    agrees(library.of_registry, 0.7)


def test_generated_code_and_recursion(library):
    agrees(library.generated, 0.7)
    agrees(lambda x: library.even(6, x), 0.7)


KEEPS = ["in_dict", "in_list", "in_global", "in_closure", "in_object"]


@pytest.mark.parametrize("name", KEEPS)
@pytest.mark.parametrize("way", ["grad", "jvp", "vjp", "jacobian", "hessian"])
def test_what_a_library_keeps_is_not_traced_afterwards(library, name, way):
    f = getattr(library, name)
    ways = {
        "grad": lambda: lineara.grad(f)(0.7),
        "jvp": lambda: lineara.jvp(f, (0.7,), (1.0,)),
        "vjp": lambda: lineara.vjp(f, 0.7)[1](1.0),
        "jacobian": lambda: lineara.jacobian(f)(0.7),
        "hessian": lambda: lineara.hessian(f)(0.7),
    }
    ways[way]()
    assert (library.LOG, library.LAST, library.CACHE) == ([], None, {})
    assert (library.BOX.state, library.Box.memo) == (1.0, {})
    assert f(0.2) == math.sin(0.2)
    assert f(0.2) == f(0.2)


@pytest.mark.parametrize("name", KEEPS)
def test_what_a_library_kept_before_is_there_afterwards(library, name):
    kept = getattr(library, name)(0.3)
    lineara.grad(lambda x: x * getattr(library, name)(0.3))(0.7)
    if name in ("in_dict", "in_closure"):
        assert getattr(library, name)(0.9) == kept


def test_what_libraries_keep_costs_other_derivatives_no_calls(library):
    def count(f) -> int:
        first = iter([lambda: lineara.grad(f)(0.7)])
        return calls(lambda: next(first, lambda: lineara.grad(square)(3.0))(), warm=3)

    few, looked_at = count(library.of_few), len(overlay().kept.holders)
    assert count(library.of_many) == few
    assert len(overlay().kept.holders) == looked_at + 198


def square(x):
    return x * x


def test_nothing_traced_is_kept_when_the_function_raises(library):
    def f(x):
        library.in_dict(x)
        raise KeyError("meant")

    with pytest.raises(KeyError, match="meant"):
        lineara.grad(f)(0.7)
    assert library.in_dict(0.2) == math.sin(0.2)


def test_a_cache_knows_traced_values_by_identity(library):
    assert lineara.grad(lambda x: library.fibonacci(30, x))(0.5) == 1346269.0
    assert len(library.CALLS) == 31, "each once"
    both = lineara.grad(lambda x, y: library.fibonacci(1, x) + 3 * library.fibonacci(1, y), (0, 1))
    assert both(0.5, 0.5) == (1.0, 3.0)
    assert library.fibonacci.cache_info().currsize == 0
    with pytest.raises(TypeError, match="unhashable"):
        lineara.grad(lambda x: library.fibonacci([1], x))(0.5)


def test_a_cache_asked_with_texts_alone_is_the_librarys(library):
    same = []

    def f(x):
        same.append(library.settings("a") is library.settings("a"))
        return x

    lineara.grad(f)(0.5)
    assert same == [True]
    assert library.settings.cache_info().currsize == 1


def test_a_method_patched_between_runs_is_seen(library, monkeypatch):
    f = lineara.grad(lambda x: library.Line().fit(x) + library.of_registry(x))
    before = f(0.7)
    monkeypatch.setattr(library.Mixin, "twice", lambda self, x: 4 * math.exp(x))
    monkeypatch.setattr(library, "of_registry", lambda x: 5 * x)
    h = 1e-6

    def line(x):
        return 4 * math.exp(x) * math.tanh(x) + 5 * x

    assert f(0.7) == pytest.approx((line(0.7 + h) - line(0.7 - h)) / (2 * h), rel=1e-6)
    assert f(0.7) != before


def test_an_error_inside_a_library_names_its_line_and_the_users(library):
    with pytest.raises(LinearaError) as caught:
        lineara.grad(lambda x: library.converted(np.array([x])))(0.7)
    _, inside, line = str(caught.value).splitlines()
    assert inside.startswith(f"  in {library.__name__}.py:")
    assert inside.endswith(
        'in converted: def converted(x): return np.frombuffer(np.asarray(x, order="C").data)[0]'
    )
    assert line.startswith("  at test_libraries.py:")
    with pytest.raises(LinearaError, match=r"in compiled[\s\S]* at test_libraries"):
        lineara.grad(lambda x: library.compiled(x))(0.7)


def test_a_library_that_is_not_called_is_not_read(library):
    from lineara.python.user_code import overlay

    def f(x):
        return x * x

    f.__globals__["unused_library"] = library
    lineara.grad(f)(0.7)
    del f.__globals__["unused_library"]
    assert id(vars(library)) not in overlay()._functions.spaces

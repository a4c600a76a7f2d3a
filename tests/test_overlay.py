"""The overlay: every form in which a function can reach another is followed."""

import abc
import builtins
import contextlib
import copy
import dataclasses
import enum
import functools
import gc
import importlib
import math
import pickle
import sys
import textwrap
import threading
import timeit
import traceback
import types
import typing
import weakref
from math import sin as renamed_sin

import numpy as np
import pytest

from lineara.python.namespaces import stand_in
from lineara.python.overlay import Later, Overlay

HUNDRED = 100.0


def our_sin(x):
    return HUNDRED


def our_cos(x):
    return 200.0


def our_norm(x):
    return 300.0


def our_sum(x):
    return 400.0


OURS = {math.sin: our_sin, math.cos: our_cos, np.linalg.norm: our_norm, sum: our_sum}


@pytest.fixture
def overlay():
    return Overlay({id(old): new for old, new in OURS.items()}, ["math", "numpy"])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that writes a module of the user's and imports it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        made.append(name)
        return importlib.import_module(name)

    yield write
    for name in made:
        sys.modules.pop(name, None)


# -- globals ------------------------------------------------------------------------------------


def by_module(x):
    return math.sin(x)


def by_other_name(x):
    return renamed_sin(x)


def by_submodule(x):
    return np.linalg.norm(x)


def by_builtin(x):
    return sum(x)


def plain_global(x):
    return counter


counter = 1


def test_a_function_of_a_module_is_replaced(overlay):
    assert overlay(by_module)(1.0) == HUNDRED
    assert by_module(1.0) == math.sin(1.0)


def test_a_function_under_another_name_is_replaced(overlay):
    assert overlay(by_other_name)(1.0) == HUNDRED


def test_a_function_of_a_submodule_is_replaced(overlay):
    assert overlay(by_submodule)(np.ones(2)) == 300.0


def test_a_builtin_is_replaced(overlay):
    assert overlay(by_builtin)([1, 2]) == 400.0
    assert sum([1, 2]) == 3


def test_star_imports_are_replaced(overlay, module):
    m = module("star_user", "from math import *\ndef f(x): return sin(x) + pi\n")
    assert overlay(m.f)(1.0) == HUNDRED + math.pi


def test_a_global_changed_between_runs_is_seen(overlay, monkeypatch):
    assert overlay(plain_global)(0) == 1
    monkeypatch.setattr(sys.modules[__name__], "counter", 2)
    assert overlay(plain_global)(0) == 2


def test_a_new_global_hides_a_builtin_in_the_next_run(overlay, module):
    m = module("hides", "def f(x): return abs(x)\n")
    assert overlay(m.f)(-1) == 1
    m.abs = lambda x: 7
    assert overlay(m.f)(-1) == 7
    del m.abs
    assert overlay(m.f)(-1) == 1


def test_a_missing_name_is_a_name_error(overlay):
    def f():
        return no_such_name  # noqa: F821  # that it is missing is the point

    with pytest.raises(NameError, match="no_such_name"):
        overlay(f)()


def test_assigned_globals_reach_the_module_at_once(overlay, module):
    m = module(
        "counts",
        """
        import math
        n = 0
        seen = []
        def look(): return n
        def f(x):
            global n
            n += 1
            seen.append(hook())
            n += 1
            return math.sin(x) + look()
        def g():
            global n, fresh
            n = 10
            fresh = math.sin
            del n
            raise KeyError("stop")
        """,
    )
    m.hook = functools.partial(vars(m).__getitem__, "n")  # reads the real module
    copied = overlay(m.f)
    assert copied(1.0) == HUNDRED + 2
    assert copied(1.0) == HUNDRED + 4
    assert m.n == 4
    assert m.seen == [1, 3]
    with pytest.raises(KeyError):
        overlay(m.g)()
    assert not hasattr(m, "n")
    assert m.fresh is math.sin


def test_assigned_globals_in_generators_and_nested_functions(overlay, module):
    m = module(
        "counts2",
        """
        n = 0
        def gen():
            global n
            for _ in range(3):
                n += 1
                yield n
        def outer():
            def inner():
                global n
                n += 1
            inner()
            return n
        class C:
            def bump(self):
                global n
                n += 1
                return super().__init__()
        """,
    )
    g = overlay(m.gen)()
    assert next(g) == 1
    assert m.n == 1
    m.n = 10
    assert list(g) == [11, 12]
    assert overlay(m.outer)() == 13
    overlay(m.C().bump)()
    assert m.n == 14


def test_the_dict_of_globals_is_the_real_one(overlay, module):
    m = module(
        "by_dict",
        """
        n = 1
        def f():
            before = n
            globals()["n"] = before + 1
            return n, globals().get("n"), "n" in globals()
        """,
    )
    assert overlay(m.f)() == (2, 2, True)
    assert m.n == 2


def test_imports_inside_functions_are_replaced(overlay):
    def f(x):
        import math as m
        from math import cos as c

        import numpy.linalg as la

        return m.sin(x) + c(x) + la.norm(x)

    assert overlay(f)(1.0) == 600.0


def test_a_class_body_inside_a_function_sees_replaced_globals(overlay):
    def f(x):
        class Local:
            factor = math.sin(x)
            count = counter

            def get(self):
                return self.factor + math.cos(x) + self.count

        return Local().get()

    assert overlay(f)(1.0) == 301.0


def test_large_arrays_are_not_kept_alive(overlay, module):
    m = module("large", "import numpy as np\ndata = np.zeros(10**5)\ndef f(): return data.size\n")
    assert overlay(m.f)() == 10**5
    gone = weakref.ref(m.data)
    m.data = None
    assert gone() is None


# -- functions that lead to others --------------------------------------------------------------


def recursive(n, x):
    return math.sin(x) if n == 0 else 1 + recursive(n - 1, x)


def test_recursion_through_globals(overlay):
    assert overlay(recursive)(5, 1.0) == HUNDRED + 5


def test_recursion_through_a_cell(overlay):
    def f(n, x):
        return math.sin(x) if n == 0 else 1 + f(n - 1, x)

    assert overlay(f)(5, 1.0) == HUNDRED + 5
    assert overlay(f) is overlay(f)


def test_mutual_recursion_through_cells(overlay):
    def even(n):
        return math.sin(0.0) if n == 0 else odd(n - 1)

    early = overlay(even)

    def odd(n):
        return math.cos(0.0) if n == 0 else even(n - 1)

    assert early is not even
    assert overlay(even)(4) == HUNDRED
    assert overlay(even)(5) == 200.0


def test_mutual_recursion_between_two_modules(overlay, module):
    module("ping", "x = 1")
    module("pong", "import ping, math\ndef b(n): return ping.a(n - 1) if n else math.cos(n)\n")
    ping = module("ping", "import pong, math\ndef a(n): return pong.b(n - 1) if n else math.sin(n)")
    sys.modules["pong"].ping = ping
    assert overlay(ping.a)(4) == HUNDRED
    assert overlay(ping.a)(5) == 200.0


def test_a_function_from_another_module(overlay, module):
    helper = module("helper_a", "import math\ndef f(x): return math.sin(x)\nscale = 2\n")
    user = module(
        "user_a",
        """
        import helper_a
        from helper_a import f as g
        def h(x):
            from helper_a import f
            helper_a.scale = helper_a.scale + 1
            return helper_a.f(x) + g(x) + f(x) + helper_a.scale
        """,
    )
    assert overlay(user.h)(1.0) == 3 * HUNDRED + 3
    assert helper.scale == 3
    helper.f = lambda x: 1.0
    assert overlay(user.h)(1.0) == HUNDRED + 2 + 4


def test_cells_are_followed_and_data_cells_are_shared(overlay):
    total = 0
    s = math.sin

    def f(x):
        nonlocal total
        total += 1
        return s(x) + total

    assert overlay(f)(1.0) == HUNDRED + 1
    assert overlay(f)(1.0) == HUNDRED + 2
    assert total == 2
    assert s is math.sin


def test_a_cell_that_changes_between_runs_is_seen(overlay):
    s = math.sin

    def f(x):
        return s(x)

    assert overlay(f)(1.0) == HUNDRED
    s = math.cos
    assert overlay(f)(1.0) == 200.0
    s = abs
    assert overlay(f)(-1.0) == 1.0
    s = by_module
    assert overlay(f)(1.0) == HUNDRED


def test_a_cell_that_changes_from_data_to_function_is_seen(overlay):
    act = None

    def f(x):
        return x if act is None else act(x)

    assert overlay(f)(1.0) == 1.0
    act = by_module
    assert overlay(f)(1.0) == HUNDRED


def test_a_global_closure_whose_cell_changes_is_seen(overlay, module):
    m = module(
        "factory",
        """
        import math
        def make():
            act = math.sin
            def g(x): return act(x)
            def change(new):
                nonlocal act
                act = new
            return g, change
        g, change = make()
        def f(x): return g(x)
        """,
    )
    assert overlay(m.f)(1.0) == HUNDRED
    m.change(math.cos)
    assert overlay(m.f)(1.0) == 200.0


def test_defaults_are_replaced(overlay):
    def f(x, s=math.sin, *, c=math.cos):
        return s(x) + c(x)

    assert overlay(f)(1.0) == 300.0
    f.__defaults__ = (abs,)
    assert overlay(f)(-1.0) == 201.0


def test_partials_are_followed(overlay):
    f = functools.partial(recursive, 2)
    assert overlay(f)(1.0) == HUNDRED + 2
    assert overlay(functools.partial(lambda s, x: s(x), math.sin))(1.0) == HUNDRED


def test_bound_methods_are_followed(overlay):
    assert overlay(Model(3.0).forward)(1.0) == HUNDRED * 3


def test_callable_objects_are_followed(overlay):
    model = Model(3.0)
    assert overlay(model)(1.0) == HUNDRED * 3
    assert isinstance(overlay(model), Model)


def test_lambdas_and_nested_functions_are_followed(overlay):
    assert overlay(lambda x: (lambda y: math.sin(y))(x))(1.0) == HUNDRED


def test_generators_are_followed(overlay):
    def f(x):
        for _ in range(2):
            yield math.sin(x)
        yield from (math.cos(x) for _ in range(1))

    assert list(overlay(f)(1.0)) == [HUNDRED, HUNDRED, 200.0]


def logged(f):
    @functools.wraps(f)
    def wrapper(*args, **options):
        wrapper.calls += 1
        return f(*args, **options)

    wrapper.calls = 0
    return wrapper


def doubled(factor):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args):
            return factor * f(*args)

        return wrapper

    return decorate


@logged
@doubled(2)
@functools.lru_cache
@logged
def decorated(x):
    return math.sin(x)


def test_stacked_decorators_are_followed(overlay):
    assert decorated(1.0) == 2 * math.sin(1.0)
    calls = decorated.calls
    assert overlay(decorated)(1.0) == 2 * HUNDRED
    assert decorated.calls == calls + 1
    assert decorated(1.0) == 2 * math.sin(1.0)


def test_a_cached_function_runs_without_its_cache(overlay):
    seen = []

    @functools.cache
    def f(x):
        seen.append(x)
        return math.sin(x)

    f(1.0)
    assert overlay(f)(1.0) == HUNDRED
    assert overlay(f)(1.0) == HUNDRED
    assert f(1.0) == math.sin(1.0)
    assert seen == [1.0, 1.0, 1.0]


@contextlib.contextmanager
def scaled(x):
    yield math.sin(x)


def test_context_managers_made_by_a_library_decorator(overlay):
    def f(x):
        with scaled(x) as y:
            return y

    assert overlay(f)(1.0) == HUNDRED


@functools.singledispatch
def shape_of(x):
    return math.sin(0.0)


@shape_of.register
def _(x: list):
    return math.cos(0.0)


def test_single_dispatch_is_followed(overlay):
    def f(x):
        return shape_of(x)

    assert overlay(f)(1.0) == HUNDRED
    assert overlay(f)([]) == 200.0
    assert shape_of([]) == 1.0


TABLE = {"sin": math.sin, "own": by_module, "nested": [by_module, (math.cos, 3)]}
HOOKS = [by_module]
DATA = {"a": [1.0, 2.0]}


class Pair(typing.NamedTuple):
    init: object
    update: object


PAIR = Pair(by_module, math.cos)


def test_tables_of_functions_are_copied_and_data_is_not(overlay):
    def f(x):
        (own, (cos, three)) = TABLE["nested"]
        total = TABLE["sin"](x) + TABLE["own"](x) + own(x) + cos(x) + three
        return total + PAIR.init(x) + PAIR[1](x), DATA

    total, data = overlay(f)(1.0)
    assert total == HUNDRED * 3 + 203.0 + 300.0
    assert data is DATA
    assert TABLE["sin"] is math.sin


def test_writes_to_a_table_reach_the_users(overlay):
    def f(x):
        for hook in HOOKS:
            assert HOOKS
            hook(x)
        HOOKS.append(math.sin)
        TABLE["new"] = math.cos
        for key in TABLE:
            TABLE[key] = TABLE[key]
        return HOOKS[-1](x) + TABLE["new"](x) + len(HOOKS) + TABLE.pop("new")(x)

    assert overlay(f)(1.0) == 300.0 + 2 + 200.0
    assert [by_module, math.sin] == HOOKS
    assert HOOKS.pop() is math.sin
    assert "new" not in TABLE
    assert TABLE["own"] is by_module


def test_a_table_that_contains_itself(overlay):
    table = {"f": by_module}
    table["self"] = table

    def f(x):
        return table["self"]["self"]["f"](x)

    assert overlay(f)(1.0) == HUNDRED


def test_library_functions_and_containers_of_data_are_left_alone(overlay):
    values = list(range(10**5))
    for value in (len, textwrap.dedent, values, np.ones(3), "text", None, functools.partial(len)):
        assert overlay(value) is value


# -- classes ------------------------------------------------------------------------------------


class Base:
    count = 0
    act = staticmethod(math.sin)

    def __init__(self, w):
        self.w = w
        Base.count += 1

    def forward(self, x):
        return math.sin(x) * self.w

    def __call__(self, x):
        return self.forward(x)

    @property
    def size(self):
        return math.cos(0.0)

    @size.setter
    def size(self, value):
        self.w = math.sin(value)

    @functools.cached_property
    def slow(self):
        return math.cos(1.0)

    @staticmethod
    def static(x):
        return math.sin(x)

    @classmethod
    def build(cls, x):
        made = cls(math.sin(x))
        cls.last = x
        return made

    partial = functools.partialmethod(forward, 1.0)


class Model(Base):
    def forward(self, x):
        return super().forward(x)


class Explicit(Model):
    def forward(self, x):
        return super(Explicit, self).forward(x) + Base.forward(self, x)  # noqa: UP008


def test_a_class_made_in_copied_code_runs_copies(overlay):
    def f(x):
        return Model(2.0).forward(x)

    assert overlay(f)(1.0) == 2 * HUNDRED


def test_super_calls_each_method_once(overlay):
    def f(x):
        return Explicit(1.0).forward(x)

    assert overlay(f)(1.0) == 2 * HUNDRED


class Left(Base):
    def forward(self, x):
        return 1 + super().forward(x)


class Right(Base):
    def forward(self, x):
        return 10 + super().forward(x)


class Diamond(Left, Right):
    def forward(self, x):
        return 1000 + super().forward(x)


def test_a_diamond_of_classes(overlay):
    def f(x):
        return Diamond(1.0)(x)

    assert overlay(f)(1.0) == 1111.0
    names = [c.__name__ for c in type(overlay(Diamond(1.0))).__mro__]
    assert names[1:] == [
        "Diamond",
        "Diamond",
        "Left",
        "Left",
        "Right",
        "Right",
        "Base",
        "Base",
        "object",
    ]


def test_properties_static_and_class_methods(overlay):
    def f():
        m = Model.build(1.0)
        first = m.w
        m.size = 1.0
        return first, m.size, m.slow, m.static(1.0), Model.static(1.0), m.act(1.0), m.w, m.partial()

    assert overlay(f)() == (100.0, 200.0, 200.0, 100.0, 100.0, 100.0, 100.0, 10000.0)
    assert Model.last == 1.0
    del Model.last


def test_class_attributes_are_written_to_the_real_class(overlay):
    before = Base.count

    def f():
        Model(1.0)
        return Base.count, Model.count

    assert overlay(f)() == (before + 1, before + 1)
    assert Base.count == before + 1


def test_a_method_changed_between_runs_is_seen(overlay, monkeypatch):
    def f(x):
        return Model(1.0).forward(x)

    assert overlay(f)(1.0) == HUNDRED
    monkeypatch.setattr(Base, "forward", lambda self, x: math.cos(x))
    assert overlay(f)(1.0) == 200.0


def test_isinstance_works_both_ways(overlay):
    real = Model(1.0)

    def f(given):
        made = Model(1.0)
        assert isinstance(given, Model)
        assert isinstance(made, (int, Base))
        assert isinstance(made, Model | int)
        assert issubclass(type(made), Base)
        assert type(given) is Model
        assert type(made) is Model
        assert made.__class__ is Model
        assert {Model: 1}[type(given)] == 1
        return made

    made = overlay(f)(real)
    assert isinstance(made, Model)
    assert isinstance(real, type(made))
    assert issubclass(Model, type(made))
    assert type(made) == Model  # noqa: E721  # twins are equal to their class
    assert {Model: 1}[type(made)] == 1


def test_isinstance_asks_the_caller_first():
    class Number:
        pass

    def is_instance(obj, cls):
        return True if isinstance(obj, Number) and cls is float else None

    ours = type("float", (), {})
    overlay = Overlay(
        {id(float): ours}, (), is_instance, lambda x: float if isinstance(x, Number) else None
    )

    def f(x):
        return (
            isinstance(x, float),
            isinstance(x, (int, str)),
            isinstance(1.0, float),
            type(x) is float,
            float is float,
        )

    assert overlay(f)(Number()) == (True, False, True, True, True)


def test_the_builtin_type_is_still_a_type(overlay):
    def f():
        class Meta(type):
            def answer(cls):
                return 42

        class C(metaclass=Meta):
            pass

        made = type("Made", (Model,), {"forward": lambda self, x: math.cos(x)})
        return C.answer(), made(1.0).forward(0.0), isinstance(C, type), type(C).__name__, type[int]

    assert overlay(f)() == (42, 200.0, True, "Meta", type[int])


MODEL = Model(5.0)


class Network:
    def __init__(self):
        self.first = Model(1.0)
        self.layers = [Model(2.0), Left(3.0)]
        self.act = math.cos
        self.table = {"s": math.sin}
        self.step = 0

    def forward(self, x):
        self.step += 1
        self.last = x
        return (
            self.first(x)
            + sum_of(layer(x) for layer in self.layers)
            + self.act(x)
            + self.table["s"](x)
        )


def sum_of(values):
    total = 0
    for v in values:
        total = total + v
    return total


def test_objects_share_their_state_with_the_views(overlay):
    def f(x):
        MODEL.w = MODEL.w + 1
        MODEL.fresh = x
        return MODEL(x)

    MODEL.w = 5.0
    assert overlay(f)(1.0) == 6 * HUNDRED
    assert (MODEL.w, MODEL.fresh) == (6.0, 1.0)
    assert type(MODEL) is Model
    assert MODEL(1.0) == 6.0 * math.sin(1.0)


def test_objects_in_attributes_are_followed(overlay):
    net = Network()
    assert overlay(net.forward)(1.0) == 100 + 200 + 301 + 200 + 100
    assert net.step == 1
    assert net.last == 1.0
    net.layers.append(net.first)
    net.act = abs
    assert overlay(lambda x: net.forward(x))(1.0) == 100 + 200 + 301 + 100 + 1 + 100
    assert type(net.first) is Model


def test_views_are_equal_to_what_they_show(overlay):
    cache = {MODEL: "found"}

    def f():
        return cache[MODEL], MODEL in {MODEL}, MODEL == MODEL, MODEL.__class__(1.0).forward(0.0)

    assert overlay(f)() == ("found", True, True, HUNDRED)
    assert overlay(MODEL) == MODEL
    assert overlay(MODEL) == MODEL


class Slotted:
    __slots__ = ("act", "w")

    def __init__(self, w):
        self.w, self.act = w, math.sin

    def forward(self, x):
        self.w = self.w + 1
        return self.act(x) * self.w


def test_slotted_objects_share_their_state(overlay):
    s = Slotted(1.0)

    def f(x):
        return s.forward(x) + Slotted(0.0).forward(x)

    assert overlay(f)(1.0) == 300.0
    assert s.w == 2.0


class Answered(Slotted):
    """A class whose property hides a slot of its base, as mpmath's constants are."""

    __slots__ = ()

    @property
    def w(self):
        return 7.0

    @w.setter
    def w(self, value):
        pass


def test_a_property_hides_the_slot_of_a_base(overlay):
    s = Answered(1.0)

    def f(x):
        return s.act(x) * s.w

    assert overlay(f)(1.0) == 7 * HUNDRED


@dataclasses.dataclass
class Config:
    rate: float = 1.0
    table: object = dataclasses.field(default_factory=lambda: math.sin(0.0))

    def scaled(self):
        return math.cos(0.0) * self.rate


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: float

    def scaled(self):
        return math.cos(0.0) * self.rate

    def again(self):
        return dataclasses.replace(self, rate=2.0).scaled()


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Small:
    x: float

    def f(self):
        return math.sin(self.x)


DEFAULT = Config()


def test_dataclasses(overlay):
    def f():
        c = Config()
        assert c == Config()
        assert (Config(table=0.0) == DEFAULT) is True
        with pytest.raises(dataclasses.FrozenInstanceError):
            Small(1.0).x = 2.0
        assert Small(1.0) < Small(2.0)
        match c:
            case Config(rate=r):
                pass
        return c.table, c.scaled(), Small(1.0).f(), dataclasses.asdict(c), r

    assert overlay(f)() == (100.0, 200.0, 100.0, {"rate": 1.0, "table": 100.0}, 1.0)


def test_frozen_dataclasses_and_replace(overlay):
    frozen = Frozen(1.0)

    def f():
        return frozen.again() + Frozen(3.0).scaled()

    assert overlay(f)() == 1000.0


class Point(typing.NamedTuple):
    x: float
    y: float

    def norm(self):
        return math.sin(self.x)


def test_namedtuples_with_methods(overlay):
    p = Point(1.0, 2.0)

    def f():
        q = Point(1.0, 2.0)
        return p.norm() + q.norm(), q, q._replace(x=3.0)

    total, q, r = overlay.restore(overlay(f)())
    assert total == 200.0
    assert q == p
    assert type(q) is Point
    assert type(r) is Point
    assert r.x == 3.0


class Kind(enum.Enum):
    A = 1

    def value_of(self):
        return self.value


class MyError(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.where = math.sin(0.0)


def test_enums_and_exceptions_are_left_alone(overlay):
    def f():
        try:
            raise MyError("x")
        except MyError as e:
            return Kind.A, type(e), Kind(1) is Kind.A

    kind, error, same = overlay(f)()
    assert kind is Kind.A
    assert error is MyError
    assert same


def test_exceptions_cross_the_overlay_with_the_users_lines(overlay):
    def f(x):
        return 1 / x

    def g(x):
        raise MyError("boom") from None

    with pytest.raises(ZeroDivisionError) as info:
        overlay(f)(0)
    last = traceback.extract_tb(info.value.__traceback__)[-1]
    assert (last.filename, last.name, last.line) == (__file__, "f", "return 1 / x")
    with pytest.raises(MyError):
        overlay(g)(0)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    def twice(self):
        return 2 * self.area()


class Square(Shape):
    def area(self):
        return math.sin(0.0)


@Shape.register
class Virtual:
    def area(self):
        return math.cos(0.0)


class Sized(typing.Protocol):
    def area(self): ...

    def half(self):
        return math.sin(0.0) / 2


class Concrete(Sized):
    def area(self):
        return self.half()


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, value):
        self.value = value

    def get(self):
        return math.sin(self.value)


class IntBox(Box[int]):
    def get(self):
        return 1 + super().get()


def test_abstract_classes_protocols_and_generics(overlay):
    def f():
        with pytest.raises(TypeError, match="abstract"):
            Shape()
        assert isinstance(Virtual(), Shape)
        assert isinstance(Square(), Shape)
        assert not isinstance(Box(1), Shape)

        class Local(Shape):
            def area(self):
                return math.cos(0.0)

        assert isinstance(Local(), Shape)
        return (
            Square().twice(),
            Local().twice(),
            Concrete().area(),
            Box[int](1).get(),
            IntBox(1).get(),
        )

    assert overlay(f)() == (200.0, 400.0, 50.0, 100.0, 101.0)
    assert isinstance(Square(), Shape)
    assert not isinstance(Box(1), Shape)
    assert isinstance(Virtual(), Shape)


REGISTRY = []


class Plugin:
    def __init_subclass__(cls, **options):
        REGISTRY.append(cls.__name__)

    def run(self):
        return math.sin(0.0)


class First(Plugin):
    pass


def test_twins_are_not_registered_as_subclasses(overlay):
    def f():
        return First().run(), [c.__name__ for c in Plugin.__subclasses__()]

    assert overlay(f)() == (HUNDRED, ["First"])
    assert REGISTRY == ["First"]


class Closing:
    closed = 0

    def use(self):
        return math.sin(0.0)

    def __del__(self):
        Closing.closed += 1


def test_a_view_going_away_does_not_finalise_the_object(overlay):
    c = Closing()
    assert overlay(c.use)() == HUNDRED
    overlay.forget()
    gc.collect()
    assert Closing.closed == 0
    del c
    assert Closing.closed == 1


def test_twins_pickle_and_copy_as_the_real_class(overlay):
    def f():
        return Model(2.0), MODEL, Model

    made, view, twin = overlay(f)()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for obj in (made, view):
            again = pickle.loads(pickle.dumps(obj, protocol))
            assert type(again) is Model
            assert again.w == obj.w
        assert pickle.loads(pickle.dumps(twin, protocol)) is Model
    for one in (copy.copy(view), copy.deepcopy(view)):
        assert one.w == MODEL.w
        assert one is not MODEL
        assert one.forward(0.0) == HUNDRED * MODEL.w


def test_restore_gives_the_users_classes(overlay):
    net = Network()

    def f():
        net.extra = Model(1.0)
        return {
            "a": [Model(1.0), MODEL, (Slotted(1.0), 3)],
            "net": net,
            "f": by_module,
            "c": Model,
            "t": TABLE,
        }

    result = overlay.restore(overlay(f)())
    made, same, (slotted, three) = result["a"]
    assert type(made) is Model
    assert same is MODEL
    assert type(slotted) is Slotted
    assert three == 3
    assert result["net"] is net
    assert type(net.extra) is Model
    assert result["f"] is by_module
    assert result["c"] is Model
    assert result["t"] is TABLE


def test_restore_of_a_deep_chain(overlay):
    def f():
        node = None
        for _ in range(20000):
            made = Model(1.0)
            made.next = node
            node = made
        return node

    node = overlay.restore(overlay(f)())
    while node is not None:
        assert type(node) is Model
        following, node.next = node.next, None
        node = following


# -- the copies ---------------------------------------------------------------------------------


def test_a_copy_looks_like_the_original(overlay):
    def f(x: float, *, y: int = 3) -> float:
        """Document."""
        return math.sin(x)

    made = overlay(f)
    for name in (
        "__name__",
        "__qualname__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__code__",
        "__kwdefaults__",
    ):
        assert getattr(made, name) == getattr(f, name)
    f.mark = 1
    assert made.mark == 1


def test_the_copy_of_a_copy_is_itself(overlay):
    made = overlay(by_module)
    assert overlay(made) is made
    assert overlay(overlay(MODEL)) is not None
    assert overlay.original(made) is by_module


def test_an_overlay_on_an_overlay(overlay):
    second = Overlay({id(abs): lambda x: 10.0, id(our_cos): lambda x: 7.0}, ["math"])

    def f(x):
        return math.sin(x), math.cos(x), abs(x), counter

    plain = (math.sin(-1.0), math.cos(-1.0), 1.0, counter)
    assert overlay(f)(-1.0) == (HUNDRED, 200.0, 1.0, counter)
    assert second(f)(-1.0) == (plain[0], plain[1], 10.0, counter)
    assert second(overlay(f))(-1.0)[2:] == (10.0, counter)
    assert f(-1.0) == plain


def test_runs_nest(overlay):
    def inner(x):
        return math.sin(x)

    def outer(x):
        return overlay(inner)(x) + math.cos(x)

    assert overlay(outer)(1.0) == 300.0


@pytest.mark.slow("many threads, each with many gradients: 6 s")
def test_threads_do_not_disturb_each_other(overlay, module):
    m = module(
        "threaded",
        """
        import math
        n = 0
        def f(x):
            return math.sin(x) + g(x)
        def g(x):
            return math.cos(x)
        """,
    )
    wrong, stop = [], threading.Event()

    def plain():
        while not stop.is_set():
            if m.f(1.0) != math.sin(1.0) + math.cos(1.0) or math.sin(0.0) != 0.0:
                wrong.append("plain")

    def copied():
        for _ in range(300):
            if overlay(m.f)(1.0) != 300.0 or overlay(Explicit(1.0))(1.0) != 200.0:
                wrong.append("copied")

    others = [threading.Thread(target=plain)]
    workers = [threading.Thread(target=copied) for _ in range(4)]
    for t in others + workers:
        t.start()
    for t in workers:
        t.join()
    stop.set()
    others[0].join()
    assert wrong == []


def test_nothing_is_patched(overlay):
    before = dict(vars(math)), dict(vars(builtins)), dict(globals())
    overlay(lambda: Model(1.0)(1.0) + MODEL(1.0) + sum([1]) + decorated(1.0))()
    after = dict(vars(math)), dict(vars(builtins)), dict(globals())
    for old, new in zip(before, after, strict=True):
        assert old.keys() == new.keys()
        assert all(old[k] is new[k] for k in old)


def make_closure(big):
    def f(x):
        return math.sin(x) + big[0]

    return f


def make_cycle(big):
    def f(x, n=0):
        return math.sin(x) + holder["big"][0] + (holder["f"](x, n - 1) if n else 0)

    holder = {"f": f, "big": big}
    return f


class Token:
    pass


@pytest.mark.parametrize("make", [make_closure, make_cycle])
def test_copies_do_not_keep_functions_alive(overlay, make):
    gone = []
    for i in range(200):
        f = make([float(i)])
        assert overlay(f)(1.0) == HUNDRED + i
        gone.append(weakref.ref(f))
    del f
    gc.collect()
    alive = sum(r() is not None for r in gone)
    assert alive <= (0 if make is make_closure else 64)


def test_a_stand_in_looks_like_its_module():
    made = stand_in(np, lambda v: our_norm if v is np.sin else v)
    assert made.sin is our_norm
    assert made.pi == np.pi
    assert isinstance(made, types.ModuleType)
    assert repr(made) == repr(np)
    assert dir(made) == dir(np)
    with pytest.raises(AttributeError, match="no_such"):
        made.no_such  # noqa: B018  # reading it is the test


def test_a_function_may_be_the_table():
    overlay = Overlay(lambda v: our_sin if v is math.sin else v, ["math"])
    assert overlay(by_module)(1.0) == HUNDRED


def test_async_functions_are_copied(overlay):
    async def f(x):
        return math.sin(x)

    with pytest.raises(StopIteration) as stop:
        overlay(f)(1.0).send(None)
    assert stop.value.value == HUNDRED


def test_a_second_overlay_of_a_function_is_cheap(overlay):
    overlay(by_module)(1.0)
    assert min(timeit.repeat(lambda: overlay(by_module), number=1000, repeat=5)) < 20e-3


# -- what found bugs ----------------------------------------------------------------------------


def test_a_decorated_function_with_state_in_its_cell(overlay):
    def remember(f):
        known = {}

        def wrapper(x):
            if x not in known:
                known[x] = f(x)
            return known[x]

        return wrapper

    @remember
    def f(x):
        return math.sin(x)

    assert overlay(f)(1.0) == HUNDRED
    assert f(1.0) == HUNDRED  # the cell holds data: it is shared, as any state of the user's


def test_debuggers_do_not_write_their_locals_to_the_module(overlay, module):
    m = module(
        "traced",
        """
        n = 0
        local = 10
        def g():
            return local
        def f(x):
            global n
            local = x
            n = local + 1
            if x < 5:
                f(x + 1)
            return n + local + g()
        """,
    )
    names = set(vars(m))
    copied = overlay(m.f)
    assert copied(1) == 6 + 1 + 10
    old = sys.gettrace()

    def trace(frame, event, arg):
        return trace

    sys.settrace(trace)
    try:
        assert copied(1) == 6 + 1 + 10
    finally:
        sys.settrace(old)
    assert set(vars(m)) == names
    assert (m.n, m.local) == (6, 10)


def test_iteration_over_modules_and_names(overlay, module):
    m = (
        module("dirs", "import math\nimport helper_b\ndef f(): return dir(helper_b), helper_b\n")
        if (module("helper_b", "a = 1\nb = math = None\n"))
        else None
    )
    names, live = overlay(m.f)()
    assert "a" in names
    assert repr(live) == repr(sys.modules["helper_b"])
    assert isinstance(live, types.ModuleType)
    assert overlay.restore(live) is sys.modules["helper_b"]
    with pytest.raises(AttributeError):
        live.no_such  # noqa: B018  # reading it is the test
    live.c = 3
    assert sys.modules["helper_b"].c == 3
    del live.c
    assert not hasattr(sys.modules["helper_b"], "c")


class Descriptor:
    def __set_name__(self, owner, name):
        self.owner = owner

    def __get__(self, obj, owner=None):
        return math.sin(0.0)


class Described:
    field = Descriptor()

    def get(self):
        return self.field


def test_descriptors_of_the_users(overlay):
    assert overlay(lambda: Described().get())() == HUNDRED
    assert vars(Described)["field"].owner is Described


class Singleton(type):
    made: typing.ClassVar = {}

    def __call__(cls, *args):
        if cls not in Singleton.made:
            Singleton.made[cls] = super().__call__(*args)
        return Singleton.made[cls]


class Only(metaclass=Singleton):
    def get(self):
        return math.sin(0.0)


def test_a_metaclass_of_the_users(overlay):
    first = Only()
    assert overlay(lambda: Only() == first)()
    assert Only() is first


class Ordered:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    def __lt__(self, other):
        return math.sin(self.x) < other.x

    def __add__(self, other):
        return Ordered(self.x + math.sin(other.x))

    __hash__ = None

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return math.cos(0.0)

    def __iter__(self):
        yield math.sin(0.0)

    def __enter__(self):
        return self

    def __exit__(self, *info):
        return True

    def __getitem__(self, i):
        return math.sin(i)

    def __len__(self):
        return 3


GLOBAL = Ordered(1.0)


def test_operators_and_special_methods(overlay):
    def f():
        with GLOBAL as g:
            raise KeyError
        a = Ordered(1.0)
        assert a == GLOBAL
        assert not (a < GLOBAL)
        return (a + GLOBAL).x, GLOBAL.missing, list(g), g[0], len(g), a.other

    assert overlay(f)() == (101.0, 200.0, [100.0], 100.0, 3, 200.0)


class Outer:
    class Inner:
        def get(self):
            return math.sin(0.0)

    def make(self):
        return self.Inner()

    @property
    def inner(self):
        return Outer.Inner()


def test_nested_classes(overlay):
    assert overlay(lambda: Outer().make().get() + Outer().inner.get())() == 200.0


def test_a_class_defined_in_a_function_and_captured(overlay):
    class Local(Model):
        def forward(self, x):
            return super().forward(x) + math.cos(x)

    def f(x):
        return Local(1.0).forward(x)

    assert overlay(f)(1.0) == 300.0
    assert overlay(Local(1.0).forward)(1.0) == 300.0


def test_a_class_itself_may_be_the_function(overlay):
    made = overlay.restore(overlay(Config)(rate=2.0))
    assert type(made) is Config
    assert made.table == HUNDRED


def test_user_containers_by_class(overlay):
    class Params(dict):
        def get_sin(self):
            return math.sin(self["x"])

    p = Params(x=1.0)

    def f():
        return Params(x=2.0).get_sin(), p["x"], len(p)

    assert overlay(f)() == (HUNDRED, 1.0, 1)


def test_eval_in_copied_code_reads_through(overlay):
    def f(x):
        return eval("math.sin(x) + counter")

    assert overlay(f)(1.0) == HUNDRED + 1


def test_a_generator_resumed_after_the_run(overlay, monkeypatch):
    def f():
        while True:
            yield counter

    g = overlay(f)()
    assert next(g) == 1
    monkeypatch.setattr(sys.modules[__name__], "counter", 5)
    assert next(overlay(f)()) == 5
    assert next(g) == 5


def test_twins_do_not_disturb_what_typing_remembers(overlay):
    def f():
        return Box[str]

    overlay(f)()
    assert type(Box[str](1)) is Box


def test_a_replacement_is_made_when_its_value_is_first_met_and_once():
    made = []

    def make(name):
        made.append(name)
        return lambda x: f"{name} of {x}"

    known = (math.floor, math.ceil, math.trunc)
    table = {id(f): Later(functools.partial(make, f.__name__)) for f in known}
    overlay = Overlay(table, ["math"])

    def f(x):
        return math.floor(x), math.floor(x), (math.ceil if x > 5 else abs)(x)

    assert made == []
    assert overlay(f)(2) == ("floor of 2", "floor of 2", 2)
    assert made == ["floor"]
    assert overlay(f)(7) == ("floor of 7", "floor of 7", "ceil of 7")
    assert made == ["floor", "ceil"]

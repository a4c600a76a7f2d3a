"""jit: captured once for each form of the arguments, and anew where what it reached has changed."""

import collections
import functools
import itertools
import types

import numpy as np
import pytest

import lineara
from lineara import grad, hessian, jit, value_and_grad, vmap
from lineara.errors import MutationError, ProgramError, StagingError, TypeMismatchError

RATE = 3.0
SETTINGS = {"scale": 1.0, "powers": [1, 2]}


class Model:
    def __init__(self):
        self.weight = 2.0


MODEL = Model()


def loss(x, n):
    total = 0.0
    for i in range(n):
        if x[i] > 0.5:
            total = total + RATE * x[i] * SETTINGS["scale"] * MODEL.weight * SETTINGS["powers"][0]
    return total


X = np.linspace(0, 1, 9)


def test_whatever_the_function_reaches_is_looked_at_in_each_call(monkeypatch):
    monkeypatch.setitem(SETTINGS, "powers", powers := [1, 2])
    f = jit(loss)
    assert f(X, 9) == loss(X, 9)
    assert f.captures == 1
    changes = [
        lambda: monkeypatch.setitem(globals(), "RATE", 4.0),
        lambda: monkeypatch.setitem(SETTINGS, "scale", 2.0),
        lambda: monkeypatch.setattr(MODEL, "weight", 5.0),
        lambda: powers.__setitem__(0, 7),
        lambda: monkeypatch.setattr(loss, "__code__", (lambda x, n: x[0] + n).__code__),
    ]
    for k, change in enumerate(changes, 2):
        change()
        assert f(X, 9) == loss(X, 9)
        assert f(X, 9) == loss(X, 9)
        assert f.captures == k


def test_a_function_that_it_calls_is_looked_at_too(monkeypatch):
    def inner(x):
        return x * scale

    def outer(x):
        return inner(x) + 1.0

    scale = 2.0
    f = jit(outer)
    assert f(3.0) == 7.0
    scale = 5.0
    assert f(3.0) == 16.0


def test_a_whole_number_is_an_input_unless_python_needs_it():
    @jit
    def powers(x, n):
        total = 0.0
        for k in range(n):
            total = total + x**k
        return total

    assert [powers(2.0, n) for n in (1, 5, 50)] == [1.0, 31.0, 2.0**50 - 1]
    assert powers.captures == 1

    @jit
    def in_rows(x, n):
        return x.reshape(n, -1).sum(0)

    assert in_rows(np.arange(6.0), 2).tolist() == [3.0, 5.0, 7.0]
    assert in_rows(np.arange(6.0), 3).tolist() == [6.0, 9.0]
    assert in_rows(np.arange(6.0) + 1, 3).tolist() == [9.0, 12.0]
    assert in_rows.captures == 2


def test_whole_numbers_stay_whole():
    @jit
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    found = [steps(n) for n in (1, 7, 27)]
    assert found == [0, 16, 111]
    assert {type(n) for n in found} == {int}
    assert steps.captures == 1


def test_what_is_no_number_is_a_constant():
    @jit
    def f(x, mode="double", *, offset=0.0):
        return (x * 2 if mode == "double" else x * 3) + offset

    assert [f(1.0), f(1.0, "triple"), f(1.0, mode="triple"), f(2.0, offset=1.0)] == [2, 3, 3, 5]
    assert f.captures == 4


def test_every_composition_with_derivatives():
    def f(x):
        total = 0.0
        for v in x:
            total = total + np.sin(v) * total if v > 0.3 else total + v * v
        return total

    g = grad(f)(X)
    assert np.allclose(jit(grad(f))(X), g, rtol=1e-13)
    assert np.allclose(grad(jit(f))(X), g, rtol=1e-13)
    assert np.allclose(jit(grad(jit(f)))(X), g, rtol=1e-13)
    value, h = jit(value_and_grad(f))(X)
    assert value == f(X)
    assert np.allclose(h, g, rtol=1e-13)
    assert np.allclose(jit(hessian(f))(X), hessian(f)(X), rtol=1e-11, atol=1e-12)
    assert np.allclose(hessian(jit(f))(X), hessian(f)(X), rtol=1e-11, atol=1e-12)
    rows = np.stack([X, 2 * X])
    each = np.stack([grad(f)(r) for r in rows])
    assert np.allclose(jit(vmap(grad(f)))(rows), each, rtol=1e-13)
    assert np.allclose(vmap(grad(jit(f)))(rows), each, rtol=1e-13)
    tangent = lineara.jvp(f, (X,), (X,))
    assert np.allclose(jit(lambda x: lineara.jvp(f, (x,), (x,)))(X), tangent, rtol=1e-13)


def test_a_loop_of_a_derivative_stays_a_loop():
    def f(x):
        y = np.zeros(len(x))
        for i in range(1, len(x)):
            y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1] + x[i]
        return y.sum()

    sizes = [jit(grad(f)).program(np.ones(n)).size() for n in (8, 80)]
    assert sizes[0] == sizes[1]


def test_what_is_written_into_an_argument_reaches_the_callers_array():
    @jit
    def scale(x, y):
        for i in range(len(x)):
            if x[i] > 0:
                x[i] = x[i] * 2
                y[i] += x[i]
        return x.sum()

    x, y = np.linspace(-1, 1, 6), np.zeros(6)
    plain_x, plain_y = x.copy(), y.copy()
    for _ in range(2):
        assert scale(x, y) == scale.f(plain_x, plain_y)
        assert np.array_equal(x, plain_x)
        assert np.array_equal(y, plain_y)
    with pytest.raises(MutationError, match="given in several places was written in one of them"):
        scale(x, x)
    with pytest.raises(StagingError, match=r"^scale writes into its arguments"):
        grad(scale)(x, y)


def test_an_argument_that_is_reached_otherwise_too():
    held = np.zeros(3)

    @jit
    def fills(a):
        a[0] = 7.0
        return held.sum()

    assert fills(np.zeros(3)) == 0.0
    with pytest.raises(MutationError, match="given in several places was written in one of them"):
        fills(held)


@pytest.mark.parametrize(
    "around",
    [lambda a: (a, 1.0), lambda a: {"k": ((a,), 1.0)}, lambda a: types.SimpleNamespace(k=(a,))],
)
def test_a_list_that_is_changed_inside_of_an_argument_is_refused(around):
    def fill(p):
        inner = p
        while not isinstance(inner, list):
            inner = (
                inner["k"] if isinstance(inner, dict)
                else inner.k if isinstance(inner, types.SimpleNamespace)
                else inner[0]
            )  # fmt: skip
        inner[0] = 7.0
        return inner[0]

    with pytest.raises(StagingError, match=r"an argument \(list\) was changed"):
        jit(fill)(around([1.0, 2.0]))


def test_a_container_that_is_changed_is_refused():
    def fill(d):
        d["new"] = d["x"] + 1
        return d["new"]

    with pytest.raises(StagingError) as e:
        jit(fill)({"x": 1.0})
    assert e.value.message == (
        "an argument (dict) was changed: a program cannot change it when it runs; return what it "
        "is to hold"
    )


def test_jit_of_what_is_no_function():
    with pytest.raises(TypeMismatchError, match="jit: takes a function, but was given"):
        jit(3.0)


def test_methods():
    class Line:
        def __init__(self, slope):
            self.slope = slope

        @jit
        def at(self, x):
            return self.slope * x if x > 0 else 0.0 * x

    line = Line(2.0)
    assert [line.at(3.0), line.at(-3.0)] == [6.0, 0.0]
    line.slope = 4.0
    assert line.at(3.0) == 12.0


def test_side_effects_are_refused():
    log = []

    def keeps(x):
        log.append(1)
        return x

    def draws(x):
        return x * np.random.normal()

    with pytest.raises(StagingError) as e:
        jit(keeps)(1.0)
    assert e.value.message == (
        "a list was changed in a function that is captured once: a program cannot change it when "
        "it runs; bind a new value to a variable instead, or write into an array"
    )
    assert log == []
    with pytest.raises(StagingError, match="drawn from a RandomState in a function that is"):
        jit(draws)(1.0)


class Base:
    factor = 2.0

    def times(self, x):
        return self.factor * x


class Derived(Base):
    pass


class Slotted:
    __slots__ = ("k",)


def scaled(x):
    return sum([v * RATE for v in (x,)]) + (lambda y: y * RATE)(x)


def test_classes_modules_slots_and_code_within_are_looked_at(monkeypatch):
    module = types.ModuleType("settings")
    module.k = 2.0
    slotted, objects, shaped, part = Slotted(), np.array([1, None, 2.0], object), np.ones(6), [2.0]
    slotted.k = 2.0
    zero = 0.0
    derived = Derived()

    def named(x):
        return x * named.k

    named.k = 2.0
    first = functools.partial(lambda p, x: p[0] * x, part)

    def make_zero_negative():
        nonlocal zero
        zero = -0.0

    cases = [
        (lambda x: derived.factor * x, lambda: monkeypatch.setattr(Base, "factor", 3.0)),
        (lambda x: Derived.factor * x, lambda: monkeypatch.setattr(Base, "factor", 4.0)),
        (
            lambda x: derived.times(x),
            lambda: monkeypatch.setattr(Base, "times", lambda self, x: 9 * x),
        ),
        (lambda x: module.k * x, lambda: setattr(module, "k", 3.0)),
        (lambda x: slotted.k * x, lambda: setattr(slotted, "k", 3.0)),
        (lambda x: objects[2] * x, lambda: objects.__setitem__(2, 3.0)),
        (lambda x: shaped.shape[0] * x, lambda: setattr(shaped, "shape", (2, 3))),
        (named, lambda: setattr(named, "k", 3.0)),
        (lambda x: first(x), lambda: part.__setitem__(0, 3.0)),
        (lambda x: np.copysign(x, zero), make_zero_negative),
        (scaled, lambda: monkeypatch.setitem(globals(), "RATE", 7.0)),
    ]
    for f, change in cases:
        g = jit(f)
        before = g(2.0)
        assert before == f(2.0)
        change()
        assert g(2.0) == f(2.0) != before
        assert g.captures == 2


def test_constants_among_the_arguments_are_looked_at():
    numbers, texts, data = {1.0}, np.array(["a", "b"]), np.array([1.0, 2.0], object)
    sums = jit(lambda x, s: sum(s) * x)
    assert sums(2.0, numbers) == 2.0
    numbers.add(4.0)
    assert sums(2.0, numbers) == 10.0
    chosen = jit(lambda x, t: x if t[0] == "a" else -x)
    assert chosen(2.0, texts) == 2.0
    texts[0] = "z"
    assert chosen(2.0, texts) == -2.0
    assert chosen(2.0, np.array(["a", "b"])) == 2.0
    held = jit(lambda x, d: d[0] * x)
    assert held(2.0, data) == 2.0
    data[0] = 5.0
    assert held(2.0, data) == 10.0


def test_whole_numbers():
    assert jit(lambda n: n * 4)(2**63) == 2**65
    ones = jit(lambda n: np.ones(abs(n)).sum())
    assert [ones(3), ones(-5)] == [3.0, 5.0]
    length = jit(lambda n: len(range(1, n, 2)))
    assert [length(n) for n in (4, 0, 9)] == [2, 0, 4]
    item = jit(lambda n: range(n)[-1] + (range(n) == range(3)))
    assert [item(3), item(5)] == [3, 4]


def counter():
    count = 0

    def bump(v):
        nonlocal count
        count += 1
        return v + 0.0 * count

    return bump, lambda: count


def test_variables_of_functions_that_another_function_made_are_refused():
    def in_a_generator(x):
        bump, count = counter()
        ok = all(bump(v) > 0 for v in x)
        return count() + ok * x[0]

    def in_a_branch(x):
        bump, count = counter()
        for v in x:
            if v > 0:
                bump(v)
        return x[0] * count()

    def in_a_condition(x, n):
        bump, count = counter()
        k = 0
        while bump(k) < n[0]:
            k = k + 1
        return x * count()

    def in_known_rounds(x):
        bump, count = counter()
        for v in x:
            bump(v)
        return x[0] + count()

    for f, args in [(in_a_generator, (X,)), (in_a_branch, (X,)), (in_a_condition, (1.0, X))]:
        with pytest.raises(StagingError, match="the variable 'count' was changed in a "):
            jit(f)(*args)
    assert jit(in_known_rounds)(X) == in_known_rounds(X)


def test_variables_and_classes_that_outlive_the_call_are_refused(monkeypatch):
    monkeypatch.setitem(globals(), "RATE", 1.0)
    calls = 0

    def binds_a_global(x):
        global RATE
        RATE = 2.0
        return x

    def binds_a_cell(x):
        nonlocal calls
        calls += 1
        return x

    def changes_a_class(x):
        Base.factor = 5.0
        return x

    for f, what in [
        (binds_a_global, "the variable 'RATE'"),
        (binds_a_cell, "the variable 'calls'"),
        (changes_a_class, "the class Base"),
    ]:
        with pytest.raises(StagingError) as e:
            jit(f)(1.0)
        assert e.value.message == (
            f"{what} was changed in a function that is captured once: a program cannot change it "
            "when it runs; bind a new value to a variable instead, or write into an array"
        )
    assert (RATE, calls, Base.factor) == (1.0, 0, 2.0)


def fills_until_it_fails(out, x):
    out[0] = x[0] * 2
    for i in range(len(x)):
        out[i] = x[i]
        if x[i] < 0:
            raise ValueError("below zero")
    return x.sum()


def test_what_was_written_before_an_exception_is_in_the_arguments():
    f = jit(fills_until_it_fails)
    for x in (np.arange(5.0), np.array([1.0, 2.0, -3.0, 4.0, 5.0])):
        ours, pythons, outcomes = np.zeros(5), np.zeros(5), []
        for g, out in ((f, ours), (fills_until_it_fails, pythons)):
            try:
                outcomes.append(g(out, x))
            except ValueError as e:
                outcomes.append(e.args)
        assert outcomes[0] == outcomes[1]
        np.testing.assert_array_equal(ours, pythons)
    assert f.captures == 1


class BelowZero(Exception):
    def __init__(self, x):
        super().__init__(f"{x} is below zero")
        self.x = x


def goes_beyond_the_end(a, n):
    for i in range(n):
        a[i] = a[i] + 1.0
    return a.sum()


def reads_beyond_the_end(a, i):
    a[0] = 7.0
    return a[i] + a[1]


def reads_beyond_a_list(a, i):
    a[0] = 7.0
    return [a[1], a[2]][i]


def says_what_it_found(a, i):
    a[0] = 7.0
    if a[i % 3] > 1.0:
        raise ValueError(f"element {i} is {a[i % 3]}")
    return a.sum()


def raises_its_own(a, i):
    a[0] = -a[i % 3]
    if a[0] < 0.0:
        raise BelowZero(a[0])
    return a.sum()


@pytest.mark.parametrize("engine", ["native", "interpreter"])
@pytest.mark.parametrize(
    "plain",
    [
        goes_beyond_the_end,
        reads_beyond_the_end,
        reads_beyond_a_list,
        says_what_it_found,
        raises_its_own,
    ],
)
def test_writes_before_a_place_beyond_the_end_or_a_text_of_values_are_in_the_arguments(
    plain, engine
):
    f = jit(plain, engine=engine)
    for i in (0, 5):
        outcomes = []
        for g in (f, plain):
            for a in (np.arange(3.0), np.arange(6.0)[::2]):
                try:
                    said = g(a, i)
                except (IndexError, ValueError, BelowZero) as e:
                    said = type(e), e.args, getattr(e, "x", None)
                outcomes.append((said, a.tolist()))
        assert outcomes[:2] == outcomes[2:]
    assert f.captures <= 2
    with pytest.raises((IndexError, ValueError, BelowZero)):
        f(np.arange(3.0), 5)


def test_writes_before_an_exception_of_a_function_that_prints_are_refused(capsys):
    def f(out, x):
        out[0] = x
        print("x is", x)
        if x < 0:
            raise ValueError("below zero")
        return x

    out = np.zeros(1)
    assert jit(f)(out, 2.0) == 2.0
    with pytest.raises(StagingError) as e:
        jit(f)(out, -2.0)
    assert e.value.message == (
        "jit: f has raised ValueError after it may have written into its arguments, and prints or "
        "warns: whether these hold what Python leaves in them is not known; return a new array, or "
        "check before anything is written"
    )
    assert e.value.line.endswith('raise ValueError("below zero")')
    assert capsys.readouterr().out == "x is 2.0\nx is -2.0\n"

    def beyond(a, i):
        print("a is", a[0])
        a[0] = a[i]
        return a

    with pytest.raises(StagingError, match="beyond has raised IndexError after it may") as e:
        jit(beyond)(np.ones(2), 3)
    assert e.value.line.endswith("a[0] = a[i]")
    assert capsys.readouterr().out == "a is 1.0\n"


def test_a_number_for_which_a_loop_or_a_call_needs_a_value_is_a_constant():
    def last(x, n):
        for i in range(n):  # of no round, and then i is unbound
            i = 2 * i
            x = x + i
        else:
            i += 1
        return x * i

    def above(x, n):
        for i in range(n):
            x = x + i
        if x > 3:
            i += 1
        return x * i

    def first(x, n):
        return x * sum(itertools.islice((1.0, 2.0, 3.0, 4.0), n))

    def recent(x, n):
        window = collections.deque(maxlen=n)
        for k in range(4):
            window.append(k * x)
        return sum(window)

    for f in (last, above, first, recent):
        g = jit(f)
        for n in (3, 2, 3):
            assert g(2.0, n) == f(2.0, n)
            assert jit(grad(f))(2.0, n) == grad(f)(2.0, n)
        assert g.captures == (1 if f in (last, above) else 2)
    for f in (last, above):
        with pytest.raises(UnboundLocalError):
            jit(f)(2.0, 0)


def test_an_exception_that_a_number_does_not_cause_leaves_it_an_input():
    def checked(x, n, mode):
        if mode == "bad":
            raise ValueError("no such mode")
        total = 0.0
        for i in range(n):
            total = total + i * x
        return total

    f = jit(checked)
    with pytest.raises(ValueError, match="no such mode"):
        f(2.0, 5, "bad")
    assert [f(2.0, n, "good") for n in (5, 6, 7)] == [20.0, 30.0, 42.0]
    assert f.captures == 1


def test_a_variable_of_a_block_that_has_no_value_is_a_local_one():
    def rises(x):
        for v in x:
            if v > 5:
                last = v
        if x[0] > 0:
            last += 1
        return last

    with pytest.raises(UnboundLocalError, match="cannot access local variable 'last' where"):
        jit(rises)(X)


def test_what_is_done_before_an_exception_that_ends_the_capture_is_done(capsys):
    def f(x, mode):
        print("start", x[0])
        x[0] = 9.0
        if mode == "bad":
            raise KeyError("mode")
        return x[1]

    def loss(x, mode):
        print("start", x[1])
        return {"good": 2.0}[mode] * x[1]

    for g, plain in ((jit(f), f), (jit(grad(loss)), grad(loss))):
        for mode in ("good", "bad", "bad"):
            done = []
            for h in (g, plain):
                given = X.copy()
                try:
                    value = h(given, mode)
                except KeyError as e:
                    value = str(e)
                done.append((str(value), given.tolist(), capsys.readouterr().out))
            assert done[0] == done[1]
            assert "start" in done[0][2]


def test_a_function_that_runs_as_it_is_runs_once_when_it_raises(capsys):
    def f(x):
        print("start")
        if x.tolist()[0] > 0:
            raise ValueError("positive")
        return x[x > 0]

    g = jit(f, fallback=True)
    with pytest.warns(UserWarning, match="cannot be captured"):
        g(-X)
    capsys.readouterr()
    with pytest.raises(ValueError, match="positive"):
        g(X + 1)
    assert capsys.readouterr().out == "start\n"


GIVEN = {
    "whole numbers": lambda x: np.zeros(3, int),
    "of a list": lambda x: np.array([1, 2]),
    "truths": lambda x: np.ones(3, bool),
    "texts": lambda x: np.array(["a", "b"]),
    "objects": lambda x: np.array([None, "b"]),
    "the other byte order": lambda x: np.zeros(3, np.dtype(float).newbyteorder()),
    "in a container": lambda x: {"a": [x, np.arange(3)]},
}


@pytest.mark.parametrize("f", GIVEN.values(), ids=GIVEN)
def test_arrays_of_constants_that_a_program_gives_are_new_in_each_call(f):
    def array_of(given):
        return given["a"][1] if isinstance(given, dict) else given

    g = jit(f)
    want = array_of(f(1.0))
    first, second = array_of(g(1.0)), array_of(g(1.0))
    for given in (first, second):
        assert type(given) is np.ndarray
        assert given.dtype == want.dtype
        assert given.tolist() == want.tolist()
    first[0] = first[1] = second[-1]
    assert array_of(g(1.0)).tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4", "i8"])
def test_an_array_of_one_number_has_the_dtype_that_is_asked_for(dtype):
    for order in "<>":
        t = np.dtype(dtype).newbyteorder(order)
        for f in (
            lambda x, t=t: np.full((2, 3), x, t),
            lambda x, t=t: np.full_like(np.zeros(3, t), x),
            lambda x, t=t: np.full(3, x, dtype=t) * 2,
        ):
            want, given = f(np.float64(2.5)), jit(f)(np.float64(2.5))
            assert given.dtype == want.dtype
            assert given.tolist() == want.tolist()


def test_an_engine_that_there_is_not_is_told_at_once():
    with pytest.raises(ProgramError) as caught:
        lineara.jit(np.sin, engine="fast")
    names = "native, native exact, adaptive, adaptive exact, interpreter, jax"
    assert caught.value.message == f"there is no engine fast; there is {names}"


def test_the_gradient_of_whole_numbers_is_that_of_floats():
    for x in (np.arange(4), np.arange(4, dtype=np.int8), [1, 2], 3, np.int64(3)):
        f = lineara.grad(lambda x: np.sum(np.asarray(x) * x * x))
        for engine in ("native", "interpreter"):
            jitted = lineara.jit(f, engine=engine)(x)
            np.testing.assert_array_equal(jitted, f(x))
            assert np.asarray(jitted).dtype == np.asarray(f(x)).dtype


CONSTANT = {
    "a number": lambda x: 3.0,
    "a number of NumPy's": lambda x: np.float64(2.0),
    "a sum of constants": lambda x: np.sum(np.ones(3)),
    "an empty sum": lambda x: sum(v * x for v in []),
    "a branch": lambda x: 1.0 if x > 0 else 2.0,
}


@pytest.mark.parametrize("name", CONSTANT)
def test_the_gradient_of_what_does_not_depend_on_the_argument_is_zero(name):
    f = CONSTANT[name]
    for way in (jit(grad(f)), grad(jit(f)), jit(jit(grad(f))), jit(grad(f), engine="native")):
        assert way(2.0) == 0.0 == grad(f)(2.0)
    value, slope = jit(lineara.value_and_grad(f))(2.0)
    assert (value, slope) == (f(2.0), 0.0)
    np.testing.assert_array_equal(lineara.vmap(grad(f))(np.ones(3)), np.zeros(3))


def test_whether_a_function_is_holomorphic_is_not_asked_in_programs():
    cube = grad(lambda z: z**3, convention="holomorphic")
    for f, z in ((jit(cube), 1 + 2j), (lineara.vmap(cube), np.array([1 + 2j]))):
        with pytest.raises(StagingError, match="whether a function is holomorphic depends on"):
            f(z)
    assert grad(jit(lambda z: z**3), convention="holomorphic")(1 + 2j) == -9 + 12j


def middle(x):
    return sorted(x * 2)[1]


def into_part(x, i):
    y = np.zeros(4)
    y[i : i + 2] = x[:2]
    return y.sum()


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_values_for_which_a_program_has_no_equation_are_refused_at_the_users_line(engine):
    pytest.importorskip("llvmlite")
    for f, fine, other, said, line in (
        (middle, (np.ones(3),), (np.array([1.0, np.nan, 2.0]),),
         "sorted() of a NaN, whose place Python does not define", "return sorted(x * 2)[1]"),
        (into_part, (np.ones(3), 1), (np.ones(3), 3),
         "a slice of 2 elements at a staged place leaves an axis of 4, where Python gives fewer or "
         "counts from the end; keep it within", "y[i : i + 2] = x[:2]"),
    ):  # fmt: skip
        program = jit(f, engine=engine)
        assert program(*fine) == f(*fine)
        with pytest.raises(StagingError) as e:
            program(*other)
        first, second = str(e.value).splitlines()[:2]
        assert first == said
        assert second.endswith(line)

"""What a user has in hand about capture: explain, static, exact= and fallback=."""

import gc
import math
import pickle
import warnings

import numpy as np
import pytest

import lineara
from lineara import explain, grad, jit, static, trace
from lineara.engines import Engine
from lineara.errors import DetachError, LinearaError, ProgramError, StagingError, TypeMismatchError

SETTINGS = {"scale": [1.0, 2.0]}
TABLE = np.arange(400.0) ** 2


def scaled(v):
    return v * SETTINGS["scale"][0]


def one(x):
    yield x


def model(x, n, rows, mode):
    s = 0.0
    for k in range(n):
        if x[k] > 0.5:
            s = s + scaled(x[k])
    for j in range(3):
        s = s + j
    for _ in SETTINGS:
        s = s + 1
    while s < 10:
        s = s * 2 + 1
    for v in one(x):
        s = s + v[0]
    for k in range(5):
        s = s + float(str(k))
    return s + x.reshape(rows, -1).sum() + x @ TABLE[: len(x)] + (mode == "a")


X = np.linspace(0.1, 0.9, 8)


def test_a_report_says_what_each_statement_became():
    report = explain(model, X, 8, 2, "a")
    assert report.refused is None
    said = {e.where.partition(" in model: ")[2]: e.what for e in report.statements}
    assert said == {
        "for k in range(n):": "a loop of the program",
        "if x[k] > 0.5:": "a branch of the program",
        "for j in range(3):": "written out: it has 3 rounds",
        "for _ in SETTINGS:": "written out: Python goes through a dict",
        "while s < 10:": "a loop of the program",
        "for v in one(x):": "written out: Python goes through a generator",
        "for k in range(5):": said["for k in range(5):"],
    }
    assert said["for k in range(5):"].startswith("written out: a text of staged values was used")
    functions = {e.where.partition(" in ")[2]: e.what for e in report.functions}
    assert functions == {
        "scaled": "read from its source",
        "one": "traced as it runs, since it is a generator",
        "model": "read from its source",
    }
    (rows,) = report.constants
    assert rows.where == "rows"
    assert "in model: return s + x.reshape(rows, -1).sum()" in rows.what
    assert {"scaled", "SETTINGS", "TABLE", "one"} <= {*report.guarded}
    text = str(report)
    assert text.startswith("model: captured\n  branches and loops\n    test_front.py:")
    assert "\n  constants\n    rows: its value is needed at test_front.py:" in text


def test_a_report_counts_all_rounds_of_a_comprehension():
    def pairs(x):
        places = [(i, 7 * i % 5) for i in range(6)]
        return sum([x[i] * x[k] for i, k in places])

    report = explain(pairs, X)
    assert [e.what for e in report.statements][:1] == ["written out: it has 6 rounds"]


def test_a_report_of_a_jitted_function_says_what_programs_there_are_and_why(monkeypatch):
    monkeypatch.setitem(SETTINGS, "scale", scale := [1.0, 2.0])
    f = jit(model)
    for rows in (2, 4):
        assert f(X, 8, rows, "a") == pytest.approx(model(X, 8, rows, "a"), rel=1e-14)
    f(X, 5, 4, "b")
    f(X[:4], 3, 4, "b")
    scale[0] = 5.0
    f(X, 8, 4, "b")
    f(x=X, n=8, rows=4, mode="b")
    monkeypatch.setattr(model, "__code__", (lambda x, n, rows, mode: n * x[0]).__code__)
    f(X, 8, 4, "b")
    assert f.history == [
        "it was called for the first time",
        "rows is 4",
        "mode is 'b'",
        "x is f64[4]",
        "a list changed",
        "the arguments are other containers",
        "the code of model changed",
    ]
    report = explain(f, X, 8, 4, "b")
    assert report.history == tuple(f.history)
    assert "model(f64[8], i64[], 2, 'a')" in report.programs
    assert len(report.programs) == len(f.programs) == 5
    assert f.captures == 7


def test_a_report_of_what_is_refused_says_why():
    report = explain(lambda x: len(str(x)) * x, 2.5)
    assert report.refused is not None
    assert report.refused.startswith("a text of staged values was used, which is not known while")
    assert "\n  at test_front.py:" in report.refused
    assert str(report).startswith("<lambda>: refused\n  a text of staged values was used")
    with pytest.raises(TypeMismatchError, match="jit: takes a function"):
        explain(3.0, 2.0)


def test_only_the_number_that_python_needs_is_a_constant():
    @jit
    def f(x, n, rows, m):
        for _ in range(n):
            x = x * 1.5
        return x.reshape(rows, -1).sum(0) + m

    for n, rows, m in [(3, 2, 1), (5, 2, 4), (7, 3, 1), (2, 3, 0)]:
        assert np.array_equal(f(np.arange(6.0), n, rows, m), f.f(np.arange(6.0), n, rows, m))
    assert f.captures == 2
    (constants,) = f.constants.values()
    assert [*constants] == [2]


def test_static_makes_an_argument_a_constant():
    @jit
    def f(x, k, threshold):
        if static(threshold) > 1.5:
            return x ** static(k)
        return x

    cases = [(3.0, 2, 2.0), (3.0, 3, 2.0), (5.0, 2, 2.0), (3.0, 2, 1.0), (3.0, 2, 2.0)]
    assert [f(*c) for c in cases] == [f.f(*c) for c in cases] == [9.0, 27.0, 25.0, 3.0, 9.0]
    assert f.captures == 3
    assert "branch" not in str(f.program(3.0, 2, 2.0))
    of_zeros = jit(lambda x, z: np.copysign(x, static(z)))
    assert [of_zeros(2.0, 0.0), of_zeros(2.0, -0.0)] == [2.0, -2.0]
    inside = jit(lambda p: p["x"] * static(p["k"]))
    assert [inside({"x": 2.0, "k": k}) for k in (2.0, 3.0, 2.0)] == [4.0, 6.0, 4.0]
    assert inside.captures == 2


def test_static_elsewhere_is_the_value():
    assert static(3) == 3
    assert grad(lambda x, k: x ** static(k))(2.0, 3) == 12.0
    assert grad(jit(lambda x, k: x ** static(k)))(2.0, 3) == 12.0
    program = trace(lambda x, k: x * k if static(k) > 1.0 else x, 2.0, 3.0)
    assert program(5.0, 3.0) == 15.0
    with pytest.raises(StagingError, match=r"traced with the constant 3\.0"):
        program(5.0, 2.0)


def test_static_of_what_cannot_be_a_constant():
    text = (
        "lineara.static was given a staged {}, whose value is not known while the program is "
        "written; take it of an argument that is a number of Python's, by itself"
    )
    for f, x, t in [
        (lambda x: x * static(x * 2), 2.0, "f64[]"),
        (lambda x: x * static(x), np.ones(2), "f64[2]"),
        (lambda x: x * static(x), np.float64(2.0), "f64[]"),
    ]:
        with pytest.raises(StagingError) as e:
            jit(f)(x)
        assert e.value.message == text.format(t)
        assert e.value.line.startswith("test_front.py:")
    with pytest.raises(DetachError) as d:
        grad(lambda x: x * static(x))(2.0)
    assert d.value.message == (
        "lineara.static was given a value that is differentiated, and a constant has no "
        "derivative; take static of a number that is not, or outside of the derivative"
    )


def test_a_refusal_tells_the_two_ways_out():
    with pytest.raises(StagingError) as e:
        jit(lambda x: len(str(x)) * x)(2.5)
    assert e.value.line.startswith("test_front.py:")
    (note,) = e.value.__notes__
    assert note == (
        "jit(f, fallback=True) runs a function that cannot be captured as it is; lineara.static(n)"
        " makes a number that Python needs a constant, with a program for each value"
    )


def gives_later(x):
    yield x * 2.0


async def gives_when_awaited(x):
    return x * 2.0


async def goes_on_when_awaited(x):
    yield x * 2.0


@pytest.mark.parametrize(
    ("f", "given", "works"),
    [
        (gives_later, "a generator", "go through it in the function, and return a list"),
        (lambda x: {"rows": (2.0 * v for v in x)}, "a generator", "go through it in the function"),
        (gives_when_awaited, "a coroutine", "leave async to the caller"),
        (goes_on_when_awaited, "an async_generator", "leave async to the caller"),
    ],
)
def test_results_that_would_run_after_the_program_is_written_are_refused(f, given, works):
    x = np.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that nobody awaits is one
        for run in (jit(f), lambda x: trace(f, x)):
            with pytest.raises(StagingError, match=f"gives {given}, which runs after.*{works}"):
                run(x)
        gc.collect()


def test_a_generator_function_falls_back():
    with pytest.warns(UserWarning, match="runs as it is"):
        assert [*jit(gives_later, fallback=True)(2.0)] == [4.0]


def test_a_refusal_that_python_shares_names_no_way_out():
    axis = jit(lambda x: np.sum(x, axis=3))
    for f in (jit(grad(lambda x: "a")), jit(grad(lambda x: x)), axis):
        with pytest.raises(LinearaError) as e:
            f(np.ones(3))
        assert not [n for n in getattr(e.value, "__notes__", []) if "fallback" in n]
    drawn = np.random.default_rng(0)
    with pytest.raises(StagingError, match=r"drawn from a Generator .* pass them as an arg") as e:
        jit(lambda x: x + drawn.normal())(2.5)
    assert "fallback=True" in e.value.__notes__[0]


class Account:
    total = 0.0


def test_classes_have_the_article_that_they_are_read_with():
    kept = Account()

    def adds(x):
        kept.total = x
        return x

    with pytest.raises(StagingError, match=r"^an Account was changed in a function"):
        jit(adds)(1.0)


LOG = []


def test_a_function_that_cannot_be_captured_falls_back_and_says_so_once():
    @jit(fallback=True)
    def f(x):
        LOG.append(x)
        return len(str(x)) * x

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert [f(2.5), f(3.5)] == [7.5, 10.5]
        assert grad(f)(2.5) == 3.0
        assert f.f(4.5) == 13.5
    assert LOG[:2] == [2.5, 3.5]
    assert len(LOG) == 4
    (warning,) = seen
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith(
        "jit: f runs as it is, since it cannot be captured: a text of staged values was used"
    )
    assert "in f: return len(str(x)) * x" in text
    LOG.clear()


def test_a_fallback_goes_on_with_programs_where_there_are_some():
    @jit(fallback=True)
    def f(x, whole):
        return len(str(x)) * x if whole else x * x

    with pytest.warns(UserWarning, match="jit: f runs as it is"):
        assert f(2.5, True) == 7.5
    assert f(2.5, False) == 6.25
    assert f.captures == 1
    assert f(3.5, True) == 10.5


def test_what_went_on_is_not_run_again():
    given = iter([1.0, 2.0, 3.0])
    f = jit(lambda x: x * next(given), fallback=True)
    with pytest.raises(StagingError, match="went on in a function that is captured once"):
        f(2.0)


def test_an_error_of_the_users_own_is_the_same_with_a_fallback():
    def f(x):
        return {}["missing"]

    with pytest.raises(KeyError, match="missing"):
        jit(f, fallback=True)(2.0)


def power_of_mean(x):
    return x.mean() ** 1.5 + np.dot(x[::2], x[1::2]) * np.cumprod(x)[-1]


@pytest.mark.parametrize("engine", ["adaptive", "native", "native exact", "interpreter"])
def test_exact_values_are_those_of_the_program_to_the_last_bit(engine):
    if engine.startswith("native"):
        pytest.importorskip("llvmlite")
    f = lineara.value_and_grad(power_of_mean)
    g, slow = jit(f, engine=engine, exact=True), jit(f, engine="interpreter")
    for seed in range(20):
        x = np.random.default_rng(seed).random(8)
        for y, z in zip(g(x), slow(x), strict=True):
            np.testing.assert_array_equal(y, z, strict=True)
    assert g.captures == 1  # it is a program, and f is not run
    assert pickle.loads(pickle.dumps(jit(math.sin, engine=engine, exact=True))).engine == g.engine


def test_an_exact_function_is_run_by_the_exact_twin_of_the_engine_around_it():
    pytest.importorskip("llvmlite")
    g = jit(power_of_mean, exact=True)
    with lineara.engine("native"):
        g(np.ones(8))
    assert [twin.engine for twin in g.elsewhere.values()] == ["native exact"]
    toy = Engine()
    toy.name = "toy"
    with lineara.engine(toy), pytest.raises(ProgramError, match="and the engine toy does not"):
        g(np.ones(8))


def test_jit_with_options_is_a_decorator():
    @jit(exact=True)
    def f(x):
        return x + 1

    assert f(1.0) == 2.0
    assert f.engine == "adaptive exact"
    with pytest.raises(TypeMismatchError, match="jit: takes a function, but was given"):
        jit(fallback=True)(3.0)


def twice(x):
    y = 2 * x
    return y, y[::2], y


@pytest.mark.parametrize("engine", ["native", "adaptive", "interpreter"])
def test_results_are_arrays_of_their_own_in_the_processors_order(engine):
    if engine == "native":
        pytest.importorskip("llvmlite")
    x = np.arange(4.0)
    for results in (jit(twice, engine=engine)(x), jit(lambda x: (x, x[::2]), engine=engine)(x)):
        for i, y in enumerate(results):
            assert not any(np.shares_memory(y, z) for z in (x, *results[i + 1 :]))
    swapped = x.astype(">f8")
    slope = grad(lambda x: np.sum(x * x))
    assert slope(swapped).dtype == swapped.dtype
    assert jit(slope, engine=engine)(swapped).dtype == x.dtype
    np.testing.assert_array_equal(jit(slope, engine=engine)(swapped), slope(swapped))


@pytest.mark.parametrize("f", [min, lambda n, x: n if n < x else x])
@pytest.mark.parametrize("engine", ["native", "adaptive", "interpreter"])
def test_a_choice_between_a_whole_number_and_a_float_is_a_float(f, engine):
    if engine == "native":
        pytest.importorskip("llvmlite")
    g = jit(lambda n, x: f(n, x), engine=engine)
    for n, x in ((1, 2.0), (2, 1.0), (1, 1.0)):
        assert type(g(n, x)) is float
        assert g(n, x) == f(n, x)

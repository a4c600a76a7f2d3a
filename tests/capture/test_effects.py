"""What captured functions print, warn of and raise: as their programs run, in Python's order."""

import contextlib
import dataclasses
import io
import warnings

import numpy as np
import pytest
from capture.plain_functions import asserted

import lineara
from lineara.errors import StagingError
from lineara.staging.capture import trace as capture


class OutOfRange(Exception):
    """An exception that looks at what it is given."""

    def __init__(self, x, why, code=3):
        super().__init__(f"{why}: {x}")
        self.x, self.code = x, code


class Plain(ValueError):
    pass


@dataclasses.dataclass
class Point:
    a: float
    b: float


def outcome(f, *args):
    """What a call gives or raises, what it prints and what it warns of, with the lines."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            gave = f(*args)
        except Exception as e:
            attributes = {k: v for k, v in vars(e).items() if k != "__notes__"}
            cause = e.__cause__ and (type(e.__cause__), e.__cause__.args)
            gave = type(e), e.args, str(e), attributes, cause
    told = [(str(w.message), w.category, w.lineno, w.filename) for w in warned]
    return gave, out.getvalue(), told


def shown(x):
    print("start", x, f"{x:.3f} {x!r:>8}", [x, 2], sep=" | ")
    y = 0.0
    for i in range(6):
        y += x * i
        if y > 10:
            print("round", i, y, end=";")
            print(Point(x, y))
            break
    print()
    return y * x


def of_arrays(x):
    a = np.arange(3.0) * x
    print(a, {"mean": a.mean()}, a.sum().dtype)
    a[0] = 5.0
    print("%s and %.2f" % (a, x), "{:g} {y}".format(x, y=a[1]), ", ".join([str(x), repr(a[2])]))  # noqa: UP031, UP032
    return a.sum()


def warned_of(x):
    if x > 2:
        warnings.warn(f"{x} is large", stacklevel=1)
        warnings.warn(RuntimeWarning("very"))  # noqa: B028
    return x * x


def own_class(x):
    y = x * x
    if x < 2:
        raise OutOfRange(y, "low", code=4)
    return y


def plain_class(x):
    if x < 2:
        raise Plain(f"low: {x}", x)
    return x


def with_a_cause(x):
    if x < 2:
        try:
            {}["key"]
        except KeyError as e:
            raise Plain("no key") from e
    return x


def in_order(x):
    for i in range(5):
        if x * i > 7:
            raise KeyError(i, x)
        print(i, x * i)
    return x


def calculated_before(x):
    if x < 2:
        y = x * x
        print("low", y)
        for k in range(3):
            y += k
        raise OutOfRange(y, f"low by {2 - x}", code=y)
    return x


def of_pythons(x):
    if x < 1.2:
        raise OSError(2, "no file", "name")
    if x < 2:
        raise KeyError("k")
    return x


def nested_cause(x):
    def f(v):
        if v < 2:
            try:
                raise ValueError("inner", 3)
            except ValueError as e:
                raise RuntimeError(f"outer {v}") from e
        return v

    return f(x)


def with_a_note(x):
    if x < 2:
        error = ValueError("n")
        error.add_note("more")
        raise error
    return x


def of_no_value(x):
    print("called")
    if x > 2:
        pass
    return x


FUNCTIONS = [shown, of_arrays, warned_of, own_class, plain_class, with_a_cause, asserted, in_order]
FUNCTIONS += [of_no_value, calculated_before, of_pythons, nested_cause, with_a_note]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_program_prints_warns_and_raises_as_the_function_does(f):
    program, jitted = capture(f, 3.0), lineara.jit(f)
    for x in (3.0, 1.5, 2.5, 1.0):
        assert outcome(program, x) == outcome(jitted, x) == outcome(f, x)
    assert jitted.captures == 1


def heard(x):
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        for i in range(3):
            warnings.warn(f"round {i}", stacklevel=1)
    return x + len(recorded)


def ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("nobody hears", stacklevel=1)
    warnings.warn("everybody hears", stacklevel=1)
    return x * 2


def raised(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("an exception", stacklevel=1)
        except UserWarning:
            return x * 3
    return x


def printed_into(x):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("four")
    print("then")
    return x + len(out.getvalue())


@pytest.mark.parametrize("f", [heard, ignored, raised, printed_into])
def test_what_a_with_of_the_function_hears_is_said_in_it(f):
    for x in (1.0, 2.0):
        assert outcome(lineara.jit(f), x) == outcome(f, x)
    gave, *said = outcome(f, 1.0)
    lanes, *told = outcome(lineara.vmap(f), np.ones(1))
    assert (lanes.tolist(), told) == ([gave], said)


def test_what_a_with_hears_as_often_as_values_say_is_refused():
    def warns(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if x > 1:
                warnings.warn("large", stacklevel=1)
        return x

    def prints(x):
        with contextlib.redirect_stdout(io.StringIO()):
            while x > 1:
                print("large")
                x = x / 2
        return x

    for f in (warns, prints):
        with pytest.raises(StagingError, match="how often it is called depends on staged values"):
            lineara.jit(f)(3.0)


def quiet(f):
    """f without its prints and warnings."""
    return lambda x: outcome(f, x)[0]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_derivative_prints_and_raises_once_for_the_value(f):
    for x in (3.0, 1.5):
        gave, *said = outcome(f, x)
        for g in (
            lineara.grad(lineara.jit(f)),
            lineara.jit(lineara.grad(f)),
            lineara.grad(f, policy="store_all"),
            lineara.grad(f, policy="recompute_all"),
            lambda x: lineara.jvp(lineara.jit(f), (x,), (1.0,))[1],
        ):
            slope, *told = outcome(g, x)
            assert told == said
            if isinstance(gave, tuple):
                assert slope == gave
            else:
                step = (quiet(f)(x + 1e-6) - quiet(f)(x - 1e-6)) / 2e-6
                assert slope == pytest.approx(step, rel=1e-6)


def test_each_lane_prints():
    def f(x):
        if x > 1:
            print("large", x)
        return x * 2

    out = outcome(lineara.jit(lineara.vmap(f)), np.array([0.5, 1.5, 2.5]))[1]
    assert out.splitlines() == ["large 1.5", "large 2.5"]


def test_a_note_tells_the_line_that_raised():
    with pytest.raises(OutOfRange) as e:
        capture(own_class, 3.0)(1.0)
    assert e.value.__notes__[0].endswith('in own_class: raise OutOfRange(y, "low", code=4)')


def test_forecasts_print_nothing(capsys):
    program = lineara.stages(shown, 3.0)
    assert capsys.readouterr().out == ""
    assert program.value_and_grad(3.0)[0] == shown(3.0)
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]


def test_two_programs_of_one_text_print_what_is_theirs(capsys):
    def made(name):
        kind = type("Kind", (Exception,), {"name": name})

        def f(x):
            if x > 1:
                raise kind("no")
            return x

        return kind, lineara.jit(lambda x: lineara.vmap(f)(np.stack([x, x])).sum())

    for kind, f in (made("a"), made("b")):
        with pytest.raises(kind):
            f(2.0)


def text_as_key(x):
    return {"1.0": 2.0}[f"{x}"]


def text_compared(x):
    return x if str(x) == "1.0" else 2 * x


def text_returned(x):
    return f"{x}"


def text_measured(x):
    return len("%s" % x)  # noqa: UP031


@pytest.mark.parametrize("f", [text_as_key, text_compared, text_returned, text_measured])
def test_a_text_of_staged_values_is_for_people(f):
    with pytest.raises(StagingError) as e:
        capture(f, 1.0)
    assert e.value.message == (
        "a text of staged values was used, which is not known while a program is written; it can "
        "be printed, raised and put into other texts by f-strings, format, % and join"
    )


def test_what_a_function_raises_whatever_the_values_is_refused_where_it_has_values_in_it():
    def f(x):
        raise Plain(f"always: {x}")

    with pytest.raises(StagingError) as e:
        capture(f, 1.0)
    assert e.value.message == (
        "the function raises Plain whatever its arguments are, with values that are not known "
        "while a program is written"
    )


def test_an_index_beyond_an_array_is_an_index_error():
    def count(x):
        k = 0
        for i in range(9):
            if x > i:
                k += 1
        return k

    def read(x):
        return (np.arange(3.0) * x)[count(x)]

    def written(x):
        a = np.arange(3.0) * x
        a[count(x)] = 7.0
        return a.sum()

    for f in (read, written):
        for g in (capture(f, 1.0), lineara.jit(f), lineara.grad(lineara.jit(f))):
            with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 3"):
                g(6.0)


def test_an_exception_that_ends_an_iterator_is_refused():
    def f(x):
        if x > 1:
            raise StopIteration(3)
        return x

    with pytest.raises(StagingError) as e:
        capture(f, 1.0)
    assert e.value.message == (
        "a program cannot raise StopIteration, which would end the iterator that runs it; return, "
        "or raise another exception"
    )


def test_a_program_ends_the_process_as_the_function_would():
    def f(x):
        if x > 2:
            raise SystemExit(3)
        return x

    program = capture(f, 1.0)
    assert program(1.0) == 1.0
    with pytest.raises(SystemExit) as e:
        program(3.0)
    assert e.value.code == 3

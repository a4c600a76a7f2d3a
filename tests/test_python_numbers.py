"""Traced numbers stay what they are: types, branches, exceptions, bits are those of plain Python.

Random expressions over Python's and NumPy's numbers run plainly and traced.
"""

import contextlib
import math
import operator
import random
import re
import warnings

import numpy as np
import pytest

import lineara
from lineara import grad, kinks, value_and_grad
from lineara.errors import LinearaError, StagingError
from lineara.tape.node import plain

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# --- random expressions --------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.5, 2.0, 3.7, 1e308, -1e308, 1e-320, math.inf, -8.0, 710.0]


def words(text):
    return text.split()


CONSTANTS = words("""
np.float64(0.7) np.float64(-2.5) np.float64(0.0) np.float32(0.3) np.float32(-2.0) np.int64(3)
np.uint8(2) np.True_ True False (1+2j) np.complex128(0.5-1j) 2 3 0 -1 0.5 -0.25 0.0 1e300
""")
OF_MATH = words("""
sin cos tan exp log sqrt tanh atan asin acosh expm1 log1p log10 log2 fabs floor ceil trunc
isnan isfinite degrees erf gamma lgamma sinh cosh cbrt erfc atanh
""")
OF_NUMPY = words("""
sin cos tan exp log sqrt tanh arctan arcsin expm1 log1p log10 log2 abs floor ceil sign isnan
square reciprocal negative cbrt exp2 rint isfinite deg2rad sinh fabs positive real imag conj
isscalar ndim
""")
PAIRS_OF_MATH = ["pow", "atan2", "hypot", "fmod", "copysign", "remainder", "log"]
PAIRS_OF_NUMPY = words("""
power arctan2 hypot fmod copysign maximum minimum add divide multiply subtract remainder
logaddexp fmax less equal floor_divide
""")
ASKED = [
    "round({})", "round({}, 2)", "int({})", "float({})", "bool({})", "str({})", "({}).hex()",
    "format({}, '.3g')", "np.float64({})", "np.float32({})", "np.int64({})", "type({}).__name__",
    "isinstance({}, float)", "isinstance({}, np.floating)", "isinstance({}, int)", "({}).real",
    "hasattr({}, 'dtype')", "hasattr({}, '__iter__')", "hasattr({}, '__and__')", "({}).imag",
    "hasattr({}, '__len__')", "hasattr({}, 'reshape')", "({}).is_integer()", "({}).conjugate()",
    "operator.is_({}, True)", "[1.5, 2.5][{}]", "({}).dtype", "({}).as_integer_ratio()",
    "{{{}: 2}}", "complex({})",
]  # fmt: skip
OF_TWO = [
    "max({}, {})", "min({}, {})", "divmod({}, {})[0]", "divmod({}, {})[1]", "pow({}, {})",
    "sum([{}, {}])", "sorted([{}, {}])[0]", "math.fsum([{}, {}])", "math.dist([{}], [{}])",
    "math.prod([{}, {}])", "np.clip({}, {}, 2.0)", "({} if {} else 1.5)",
]  # fmt: skip


def expression(rng, depth):
    """A random expression in x and y."""
    if not depth:
        return rng.choice("xy") if rng.random() < 0.6 else rng.choice(CONSTANTS)
    made = [expression(rng, depth - 1) for _ in range(2)]
    forms = [
        f"({{}} {rng.choice(['+', '-', '*', '/', '**', '%', '//'])} {{}})",
        f"({{}} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {{}})",
        f"{rng.choice(['-', '+', 'abs', '~'])}({{}})",
        f"math.{rng.choice(OF_MATH)}({{}})",
        f"np.{rng.choice(OF_NUMPY)}({{}})",
        f"math.{rng.choice(PAIRS_OF_MATH)}({{}}, {{}})",
        f"np.{rng.choice(PAIRS_OF_NUMPY)}({{}}, {{}})",
        rng.choice(ASKED),
        rng.choice(OF_TWO),
        "attempt(lambda: {}, lambda: {})",
    ]
    form = rng.choices(forms, [8, 2, 1, 3, 3, 1, 2, 3, 2, 1])[0]
    return form.format(*made)


def attempt(first, second):
    """A branch that an exception decides."""
    try:
        return first()
    except (ZeroDivisionError, OverflowError, ValueError, TypeError):
        return second()


def shown(v):
    """A value to compare bit for bit, with the types in it."""
    v = plain(v)
    if isinstance(v, float | np.floating):
        text = "nan" if v != v else float(v).hex()
    elif isinstance(v, complex | np.complexfloating):
        text = shown(v.real), shown(v.imag)
    elif isinstance(v, list | tuple | dict | np.ndarray):
        text = tuple([shown(part) for part in v])
    else:
        text = repr(v)
    return type(v).__name__, text


def outcome(f, args):
    """The type and bits of a value, or the class of the exception; NumPy's own are TypeErrors."""
    try:
        return shown(f(*args))
    except LinearaError as e:
        return "refused", type(e).__name__
    except TypeError:
        return "raised", "TypeError"
    except Exception as e:
        return "raised", type(e).__name__


def inside(f, args, around=lambda g: g, depth=1):
    """The outcome in a differentiation, or in one inside another."""
    found = []

    def seen(*traced):
        found.append(outcome(f, traced))
        return 0.0

    def first(*outer):
        return grad(around(seen), argnums=(0, 1))(*outer)[0]

    (first if depth == 1 else grad(first, argnums=(0, 1)))(*args)
    return found[0]


def odd(text):
    """What is known to differ: docs/numbers.md."""
    known = ["(1+2j) ==", "(1+2j) !=", "% (", "np.complex128(0.5-1j)"]
    return any([k in text for k in known])


def cases(seed, count):
    rng = random.Random(seed)
    while count:
        text = expression(rng, rng.choice([1, 1, 2, 2, 3]))
        args = [rng.choice(SPECIAL) if rng.random() < 0.5 else rng.uniform(-3, 3) for _ in "xy"]
        args = [rng.choice([float, np.float64])(v) for v in args]
        if not odd(text):
            count -= 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a list that is indexed with a float
                f = eval(f"lambda x, y: {text}", globals() | {"attempt": attempt})
            yield text, f, args


WAYS = {"one": {}, "two": {"depth": 2}, "decided": {"around": kinks()}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_types_bits_and_exceptions_are_pythons(seed, way):
    with np.errstate(all="ignore"):
        for text, f, args in cases(seed, 200):
            want = outcome(f, args)
            if "nan" not in str(want) or "hash" not in text:
                assert inside(f, args, **WAYS[way]) == want, (text, args)


def traced(f, args):
    return lineara.trace(f, *args)(*args)


def with_policy(f, args):
    return lineara.vjp(f, *args, policy="store_all")[0]


def in_a_lane(f, args):
    return lineara.vmap(f)(*[np.array([v]) for v in args])


def near(found, want):
    """Whether a lane has a value, up to rounding."""
    if isinstance(want, tuple | list):
        return all(map(near, found, want))
    if not isinstance(want, bool | int | float | complex | np.generic):
        return type(found) is type(want)
    return np.allclose(np.asarray(found).reshape(-1)[0], want, 1e-14, 0, equal_nan=True)


@pytest.mark.parametrize("run", [traced, with_policy, in_a_lane])
def test_programs_have_pythons_types_bits_and_exceptions_or_refuse(run, share):
    """What Python refuses when it sees the types is raised before what it refuses of values."""
    refused, count = 0, len(share(range(400)))
    with np.errstate(all="ignore"):
        for text, f, args in cases(9, count):
            args = [np.float64(v) for v in args] if run is in_a_lane else args
            want, found = outcome(f, args), outcome(lambda *a, f=f: run(f, a), args)
            if found[0] == "refused":
                refused += 1
            elif "raised" in (want[0], found[0]):
                assert found == want or (want[0], found[1]) == ("raised", "TypeError"), (text, args)
            elif run is in_a_lane:
                assert near(run(f, args), f(*args)), (text, args, found, want)
            else:
                assert found == want, (text, args)
    assert 0 < refused < count / 4


# --- slopes ---------------------------------------------------------------------------------------

SMOOTH = [
    lambda x: x * ((x > 1) + (x > 2) + (x > 3)),
    lambda x: x**3 / (2 + x) - 2.0**x,
    lambda x: x * np.float64(3.0) + np.float64(0.5) ** x,
    lambda x: x * float(np.float32(0.5) * 3) * x,
    lambda x: (x * (1 + 2j)).real + (x - 1j).imag * x,
    lambda x: [x, 2 * x][x > 1] * (x % 0.75) + x // 2,
    lambda x: divmod(x, 0.6)[1] + float(np.exp(x)) * (x > 0),
    lambda x: (-x) ** 1.5 * 1j * x if x < 0 else x**1.5,
    lambda x: abs(x * 1j + 3) ** 2,
    lambda x: sum([x, x * 2, np.sin(x)]) * attempt(lambda: x / 0, lambda: x),
    lambda x: attempt(lambda: math.exp(1000 * x), lambda: x * x) + 0 * (~(x > 0)),
    lambda x: {1.5: 2, x: 3}[x] * x + hash(x > 0) * x,
    lambda x: math.fsum([x, x * x]) + math.hypot(x, 2) + math.prod([x, x]),
    lambda x: (
        math.fsum([x, 1e16, x * x, -1e16]) * math.hypot(x, 2, x) + math.dist([x, 1, x], [2, x, x])
    ),
    lambda x: np.multiply(x, x) + np.sin(x).item() + complex(x, x).imag,
]


@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("f", SMOOTH)
def test_slopes_are_those_of_differences(f, kind):
    x, h = 3.7, 1e-6

    def real(x):
        y = f(x)
        return y.real if isinstance(y, complex) else y

    if outcome(real, [kind(x)])[0] == "raised":
        with pytest.raises(TypeError):
            grad(real)(kind(x))
        return
    ahead, behind = (float(real(kind(x + d))) for d in (h, -h))
    if math.isfinite(ahead):
        slope = (ahead - behind) / (2 * h)
        assert math.isclose(grad(real)(kind(x)), slope, rel_tol=1e-5, abs_tol=1e-5)


def test_a_value_has_the_bits_of_the_function_that_gives_it():
    rng = np.random.default_rng(0)
    for x in rng.normal(size=300).tolist():
        for f in (math.tanh, np.tanh, np.exp, math.exp, math.cbrt, np.cbrt, np.log1p, math.expm1):
            with np.errstate(all="ignore"):
                if f is not np.log1p or x > -1:
                    assert value_and_grad(f)(x)[0] == f(x)


def test_a_truth_value_is_pythons_or_numpys():
    def f(x):
        seen.append((type(x > 1), type(np.sin(x) > 1), isinstance(x > 1, int), (x > 1) is True))
        return x

    seen = []
    grad(f)(3.7)
    assert seen == [(bool, np.bool_, True, True)]


def test_the_kind_decides_the_precision():
    single = np.ones(2, np.float32)

    def f(x):
        seen.append([(v * single).dtype for v in (x, np.sin(x), float(np.sin(x)))])
        return x

    seen = []
    grad(f)(0.5)
    assert seen == [[np.float32, np.float64, np.float32]]


def test_numpy_warns_and_python_raises():
    for act in (lambda x: 1 / x, lambda x: 1e308 * (x + 1e308), lambda x: (x - 1) ** 0.5):
        with pytest.warns(RuntimeWarning):
            grad(act)(np.float64(0.0))
    for act, error in (
        (lambda x: 1 / x, ZeroDivisionError),
        (lambda x: 1e9 ** (x + 99), OverflowError),
    ):
        with pytest.raises(error):
            grad(act)(0.0)


@pytest.mark.parametrize("pair", [(3.7, 0.0), (3.7, 0), (7, 0.0)])
@pytest.mark.parametrize("act", [divmod, operator.floordiv, operator.mod, operator.truediv])
def test_the_text_of_a_division_by_zero_is_that_of_the_operator(act, pair):
    def f(x, y):
        try:
            return act(x, y)
        except ZeroDivisionError as e:
            return 1.0 * len(str(e))

    assert value_and_grad(f, argnums=(0, 1))(*pair) == (f(*pair), (0.0, 0.0))


def test_gradients_inside_a_differentiation_have_the_kind_of_their_argument():
    def outer(x):
        for v in (x, np.sin(x)):
            seen.append(type(grad(lambda z: z * np.sin(z))(v)))
        return x

    seen = []
    grad(outer)(0.3)
    assert seen == [float, np.float64]


def test_attributes_are_those_of_the_number():
    def f(x):
        for v in (x, np.sin(x)):
            seen.append(
                [hasattr(v, n) for n in ("__iter__", "__len__", "dtype", "reshape", "__and__")]
            )
        with pytest.raises(AttributeError, match="'float' object has no attribute 'shape'"):
            x.shape()
        with pytest.raises(TypeError):
            iter(x)
        return x

    seen = []
    grad(f)(0.3)
    assert seen == [[False] * 5, [False, False, True, True, True]]


def test_whole_numbers_made_of_traced_ones_are_constants():
    types = [np.int64, np.int32, np.intp, np.uint8, np.int8]
    for t in types:
        assert grad(lambda x, t=t: t(x) * x)(3.7) == 3.0
        assert grad(lambda x, t=t: np.sum(t(x) * x))(np.array([3.7, 2.2])).tolist() == [3.0, 2.0]


def test_the_power_of_two_of_a_number_is_an_int():
    assert grad(lambda x: float(math.frexp(x)[1] ** 40) * x)(3.7e9) == float(32**40)


class Waves:
    """A class whose attributes are builtin functions: they are no methods."""

    sin, tanh = math.sin, np.tanh

    def both(self, x):
        return self.sin(x) + self.tanh(x)


class Pair:
    """An object that says what array it is."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0])


class Doubled:
    """An object whose array is calculated."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return 2 * np.asarray(self.x)


def test_builtin_functions_as_attributes_of_a_class():
    found = grad(lambda x: Waves().both(x))(0.3)
    assert found == pytest.approx(math.cos(0.3) + 1 - math.tanh(0.3) ** 2)
    assert grad(Waves().both)(0.3) == found


def test_objects_that_say_what_array_they_are():
    assert grad(lambda x: np.sum(np.multiply(x, Pair())))(2.0) == 3.0
    assert grad(lambda x: np.sum(np.multiply(x, Pair())))(np.ones(2)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.exp(Doubled(x))),
        lambda x: np.sum(x * Doubled(x)),
        lambda x: np.sum(Doubled(x) / x**2),
        lambda x: np.sum(np.add(Doubled(x), Doubled(x))),
        lambda x: np.sum(Doubled(x)) + np.dot(x, Doubled(x)),
    ],
)
def test_objects_that_calculate_what_array_they_are(f):
    x, d = np.array([0.3, -0.7]), np.array([1.0, 2.0])
    value, slopes = value_and_grad(f)(x)
    assert value == f(x)
    assert slopes @ d == pytest.approx((f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6)


# --- programs: what is not known while they are written ------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: [1.0, 2.0][x > 1] * x,
        lambda x: {x: 1.0}[x] * x,
        lambda x: len(str(x)) * x,
        lambda x: len(f"{x}") * x,
        lambda x: hash(x) * x,
    ],
)
def test_what_depends_on_the_value_is_refused_in_programs(f):
    for run in (lambda: lineara.trace(f, 3.7)(3.7), lambda: lineara.vmap(f)(np.array([3.7]))):
        with pytest.raises((LinearaError, TypeError)):
            run()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * ((x > 1) + (x > 2) + (x > 3)),
        lambda x: x * ((x > 1) - (x > 2)) if isinstance(x > 1, int) else -x,
        lambda x: x * ~(x > 1) * isinstance(x > 1, int),
        lambda x: math.frexp(x * 1e9)[1] ** 9 * x,
        lambda x: x * np.ones(2, np.float32) * x,
    ],
)
@pytest.mark.parametrize("kind", [float, np.float64])
def test_programs_know_which_numbers_are_pythons(f, kind):
    x = kind(3.7)
    want = outcome(f, [x])
    assert outcome(lambda x: traced(f, [x]), [x]) == want
    assert outcome(lambda x: with_policy(f, [x]), [x]) == want
    if kind is not float and want[0] != "raised":
        assert np.all(lineara.vmap(f)(np.array([x]))[0] == f(x))


def test_what_python_raises_is_raised_as_the_program_runs_with_the_line():
    def f(x, y):
        x / y  # nobody uses it
        return x

    def loop(x, y):
        lineara.fori_loop(0, 2, lambda i, c: c / y, x)
        return x

    for g in (f, loop):
        for run in (
            lambda g=g: lineara.trace(g, 1.0, 2.0)(1.0, 0.0),
            lambda g=g: grad(g, policy="store_all")(1.0, 0.0),
            lambda g=g: grad(g, policy="minimal_tape")(1.0, 0.0),
            lambda g=g: lineara.stages(g, 1.0, 2.0).value_and_grad(1.0, 0.0),
            lambda g=g: lineara.vmap(lambda x: g(float(x), 0.0))(np.ones(2)),
            lambda g=g: lineara.vmap(grad(lambda x, y: g(float(x), y.item())))(
                np.ones(2), np.array([1.0, 0.0])
            ),
        ):
            with pytest.raises(ZeroDivisionError, match="float division by zero") as e:
                run()
            if g is f:
                (note,) = e.value.__notes__
                assert note.startswith("in a program, at test_python_numbers.py:")
                assert note.endswith(" in f: x / y  # nobody uses it")


def test_exceptions_that_the_function_would_catch_are_branches_or_refused():
    def caught(x):
        try:
            return 1 / x
        except ZeroDivisionError:
            return x

    def swallowed(x):
        try:
            return math.log(x)
        except Exception:
            return x

    def called(x):
        y = inverse(x)
        try:
            return inverse(y)
        except (KeyError, ArithmeticError):
            return x

    def suppressed(x):
        with contextlib.suppress(ZeroDivisionError):
            return 1 / x
        return x

    def let_out(x):
        try:
            with np.errstate(all="ignore"):
                return 1 / x
        except (KeyError, np.linalg.LinAlgError) as e:
            return e
        finally:
            x = 3.0

    inverse = lineara.function(lambda x: 1 / x)
    for f in (caught, swallowed, lambda x: attempt(lambda: 1 / float(x), lambda: x)):
        for x in (4.0, 0.0):
            assert lineara.trace(f, 2.0)(x) == f(x)
            lanes = np.array([x, 3.0])
            with np.errstate(divide="ignore"):
                assert lineara.vmap(f)(lanes).tolist() == [f(v) for v in lanes]
    with pytest.raises(StagingError) as e:
        lineara.trace(called, 2.0)
    assert e.value.message == (
        "what function does stands in a try that catches ZeroDivisionError: whether it is raised "
        "is not known while a program is written; choose with lineara.cond on the numbers, or let "
        "the exception out"
    )
    for f in (called, suppressed):
        with pytest.raises(StagingError, match="stands in a try that catches"):
            lineara.trace(f, 2.0)
    assert lineara.trace(let_out, 2.0)(4.0) == 0.25
    assert lineara.trace(caught, np.float64(2.0))(np.float64(4.0)) == 0.25  # NumPy's raise nothing


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if (x > 1) is not False else 2 * x,
        lambda x: x if (x > 1) is True else 2 * x,
        lambda x: x if (float(x) > 1) is True else 2 * x,
    ],
)
def test_is_true_is_what_it_is_plainly_of_pythons_truth_values_and_of_numpys(f):
    for x in (2.0, 0.5, np.float64(2.0), np.float64(0.5)):
        assert lineara.trace(f, x)(x) == lineara.jit(f)(x) == value_and_grad(f)(x)[0] == f(x)
        (lane,) = lineara.vmap(f)(np.array([x]))
        assert lane == f(np.float64(x))


def test_numbers_that_are_pythons_in_one_round_and_numpys_in_another():
    def f(act):
        return lambda x: lineara.fori_loop(0, 2, lambda i, c: act(c) + np.sin(x), 0.0)

    assert lineara.trace(f(lambda c: 2 * c), 0.3)(0.3) == f(lambda c: 2 * c)(0.3)
    for g, text in (
        (f(lambda c: (c > 0) + (c > 1)), "add of a staged bool[]: Python's truth values"),
        (f(lambda c: type(c)(1)), "the class of a staged f64[] was asked for"),
    ):
        with pytest.raises(StagingError, match=re.escape(text)):
            lineara.trace(g, 0.3)
    p = lineara.trace(lambda x: lineara.fori_loop(0, 2, lambda i, c: np.sin(x) * 0.5 % c, 0.0), 0.3)
    assert np.isnan(p(0.3))  # a float64 of NumPy's meets it
    p = lineara.trace(f(lambda c: 1 / c), 0.3)
    with pytest.raises(StagingError) as e:
        p(0.3)
    assert e.value.message == (
        "Python's arithmetic raises ZeroDivisionError here and NumPy's does not, and the number is "
        "Python's in one branch or round of a loop and NumPy's in another; make it one of them "
        "where it begins, float(x) or np.float64(x)"
    )


def test_values_whose_type_depends_on_the_value_stop_the_program():
    p = lineara.trace(lambda x: x**0.5, 2.0)
    assert p(4.0) == 2.0
    with pytest.raises(StagingError) as e:
        p(-4.0)
    assert e.value.message == (
        "-4.0 ** 0.5 has the class complex in Python, but a program knows the types of its values "
        "before it runs; take complex(x) ** y, float(x) ** y, or np.float64(x) ** y"
    )
    with pytest.raises(StagingError, match="a whole number of Python's has 71 bits here"):
        lineara.trace(lambda x: math.frexp(x)[1] ** 25 * x, 3.0)(8.0**2)


def test_a_program_is_for_numbers_of_one_kind():
    p = lineara.trace(lambda x: 1 / x, 2.0)
    with pytest.raises(StagingError) as e:
        p(np.float64(2.0))
    assert e.value.message == (
        "f does what Python does with its own numbers and NumPy with its: it was traced for one of "
        "Python's at arguments[0][0], but was given one of NumPy's; trace it again, or give it "
        "float(x)"
    )
    assert lineara.trace(lambda x: 3 * x, 2.0)(np.float64(2.0)) == 6.0  # there it is all the same
    for kind in (float, np.float64):
        assert type(grad(lambda x: x * x, policy="store_all")(kind(2.0))) is kind


def test_counting_truth_values_in_programs():
    def f(x):
        return x * sum([x > 1, x > 2, x > 3])

    assert lineara.trace(f, 3.7)(3.7) == f(3.7)
    assert lineara.vmap(f)(np.array([3.7]))[0] == f(np.float64(3.7))


# --- memos ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, complex])
@pytest.mark.parametrize("at", [(2.0, 3.0), (2.0, 2.0)])
@pytest.mark.parametrize("ask", [dict.__getitem__, dict.get, lambda m, k: m.setdefault(k, 0.0)])
def test_a_memo_gives_what_was_stored_for_the_very_number(kind, at, ask):
    def f(x, y):
        memo = {}

        def square(a):
            if a not in memo:
                memo[a] = abs(a) ** 2
            return ask(memo, a)

        return square(x) + 3 * square(y) + square(x)

    x, y = map(kind, at)
    if x == y:
        with pytest.raises(LinearaError, match="has another number that is equal"):
            lineara.grad(f, (0, 1))(x, y)
        with pytest.raises(LinearaError, match="has another number that is equal"):
            lineara.grad(lambda v: lineara.grad(f)(v, y).real)(x)
    else:
        assert lineara.grad(f, (0, 1))(x, y) == (4 * x, 6 * y)


def test_membership_and_comparisons_after_a_lookup_are_those_of_the_number():
    table = {1.5: 2.0}

    def f(x):
        found = table.get(x, 5.0) * x
        return found * (x == 3.0) + x * (x in {3.0, 4.0}) + x * (x in table) + x * (x != 1.5)

    assert lineara.grad(f)(3.0) == 7.0
    assert lineara.value_and_grad(lambda x: x * table.get(lineara.stop_gradient(x)))(1.5) == (3, 2)

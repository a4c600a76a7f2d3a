"""`int`, `round` and `math` of staged numbers: whole numbers that a program calculates."""

import itertools
import math

import numpy as np
import pytest
from capture.agreement import agrees

import lineara
from lineara.errors import StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])


def as_index(x, s):
    i, j = int(s * 2), math.floor(s)
    return x[i] * s + x[j] * x[round(s)] + x[math.ceil(s) - 3] * x[math.trunc(-s)]


def as_bound(x, s):
    total = 0.0 * s
    for i in range(int(s), round(s * s)):
        total = total * 0.5 + x[i % 5] * s
    while int(total) < 3:
        total = total * 1.5 + 0.25
    return total


def in_arithmetic(x, s):
    k = int(s * 10)
    quotient, rest = divmod(k, 3)
    digits = 0
    while k > 0:
        digits, k = digits + k % 10, k // 10
    return s * (quotient - rest) + digits + int(s > 1) + (k << 2) + int(k == 0)


def into_a_table(x, s):
    counts = np.zeros(4, int)
    for v in x:
        counts[int(abs(v) * 1.3)] += 1
    return counts @ np.arange(4.0) * s + round(s)


def pointers(x, s):
    before, reached = np.zeros(len(x), int), np.full(len(x), False)
    for i in range(len(x)):
        before[i] = np.argmax(x * s + i * (np.arange(5) == i))
        reached[before[i]] = x[i] > 0
    k = before[-1]
    for _ in range(4):
        k = before[k]
    return x[k] * s + reached.sum() + before.sum()


TABLE, SQUARES = np.arange(5.0), np.arange(10.0).reshape(5, 2) ** 2
WEIGHTS, STEPS, ACTS, NAMES = [1.0, 2.5, 3.0, 4.0], (1, 2, 3, 9), [np.sin, np.cos, math.exp], "abc"
BY_NAME = {"a": np.sin, "b": math.exp, "c": np.cos}


def constant_tables(x, s):
    k = int(s)
    total = TABLE[k] * s + SQUARES[np.argmax(x), 1] * x[1] + SQUARES[k] @ x[:2]
    for i in range(5):
        total = total * 0.5 + TABLE[x.size - 1 - i] * x[[3, 1, 0, 2, 4][i]]
    return total + WEIGHTS[k] * x[0] - WEIGHTS[-1 - k] + STEPS[k] // 2


def constant_choices(x, s):
    k = int(s)
    name = [*NAMES][k]
    return ACTS[k](x[0]) + ACTS[k - 2](x[1]) + (s if name == "b" else x[2]) + BY_NAME[name](s)


def half_to_even(x, s):
    return float(round(s)) + round(-s) * x[0] + round(float(s), 1) * x[1] + round(x[4], 1)


def of_what_it_is_already(x, s):
    k = int(s) + round(int(s)) + int(True) + int("7") + int("ff", 16) + int(3.9)
    known = isinstance(int(s), int) and type(int(s)) is int and type(round(s)) is int
    return s * k if known else 0.0


FUNCTIONS = [as_index, as_bound, in_arithmetic, into_a_table, pointers]
FUNCTIONS += [constant_tables, constant_choices]
FUNCTIONS += [half_to_even, of_what_it_is_already]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_whole_numbers_are_pythons(f):
    agrees(f, *[(X, s) for s in (1.6, 2.3, 1.5, 2.0, 0.5, 2.4)])


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_pass_by_what_is_rounded(f):
    program = lineara.jit(lineara.grad(f, (0, 1)))
    for s in (1.6, 2.3, 0.7):
        for found, expected in zip(program(X, s), lineara.grad(f, (0, 1))(X, s), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert program.captures == 1


def test_int_is_the_class_that_it_was():
    def f(x):
        class Count(int):
            pass

        k = Count(3)
        same = int is int and isinstance(k, int) and issubclass(Count, int) and int in {int: 1}
        made = [*map(int, "12"), int.from_bytes(b"\x01", "big"), int.__add__(1, 2)]
        match 4:
            case int(n):
                made.append(n)
        return x * sum(made) * np.ones(2, int) @ np.zeros(2, dtype=int).astype(int) + x * same

    agrees(f, (2.0,), (-1.0,))


def test_of_arrays_truth_values_and_complex_numbers():
    def f(x):
        z = x[0] + 2j * x[1]
        k = int(np.sum(x)) + int(np.array(x[1])) + int(x[2] > 0) + int(np.int32(4)) + round(z.imag)
        return x[0] * k

    agrees(f, (X,), (X * 3,))


@pytest.mark.parametrize(
    "wrong", [lambda x: int(1j * x[0]), lambda x: round(x), lambda x: round(x[0] > 0), int]
)
def test_what_python_refuses_is_refused(wrong):
    with pytest.raises(TypeError) as plain:
        wrong(X)
    with pytest.raises(TypeError) as e:
        capture(lambda x: wrong(x), X)
    assert e.value.args == plain.value.args


@pytest.mark.parametrize("act", [int, round, math.floor, math.ceil, math.trunc])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_has_no_whole_number_raises_as_in_python(act, value):
    def f(x):
        return x * act(x)

    program = capture(f, 2.5)
    with pytest.raises((ValueError, OverflowError)) as plain:
        f(value)
    with pytest.raises(type(plain.value)) as e:
        program(value)
    assert e.value.args == plain.value.args


def test_what_has_more_than_63_bits_is_refused_as_the_program_runs():
    program = capture(lambda x: x * int(x), 2.5)
    assert program(2.0**62) == 2.0**124
    with pytest.raises(StagingError, match="has 64 bits here, but in a program it may have 63"):
        program(2.0**63)


def test_a_number_that_may_be_pythons_or_numpys_is_not_rounded_to_digits():
    def f(x):
        s = 1.0 if x[0] > 0 else x[1]
        return round(s, 1)

    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert e.value.message == (
        "round(x, 1) of a staged f64[]: Python's numbers are rounded in another way than NumPy's, "
        "and which it is, is not known while a program is written; use round(float(x), n) or "
        "np.round(x, n)"
    )


def test_a_place_outside_of_a_list_raises_as_in_python():
    program = capture(lambda x: WEIGHTS[int(x)] * x, 1.0)
    assert program(-4.0) == -4.0
    for x in (4.0, -5.0):
        with pytest.raises(IndexError) as e:
            program(x)
        assert e.value.args == ("list index out of range",)


def test_a_loop_to_a_whole_number_costs_its_rounds():
    def f(x):
        s = 0.0
        for i in range(int(x[0])):
            s = s * 0.5 + x[i + 1]
        return s

    x = np.ones(100)
    program = capture(f, x)
    works = []
    for n in (20.5, 40.5, 80.5):
        x[0] = n
        works.append(program.run(x).work)
    few, some, many = works
    assert many - some == pytest.approx(2 * (some - few), abs=2)


def to_a_bound_beyond_int64(n, x):
    while x < 10.0 and n <= 2**80:
        x = x * 2.0
        n = n + 1
    return x, n


def sums_to(n):
    s = 0
    while s < 2**63:
        s = s + n
    return s


def test_a_loop_to_a_bound_that_no_whole_number_of_a_program_reaches_stays_a_loop():
    f, g = lineara.jit(to_a_bound_beyond_int64), lineara.jit(sums_to)
    assert f(3, 1.5) == to_a_bound_beyond_int64(3, 1.5) == (12.0, 6)
    assert f.captures == 1
    assert g.program(2**50).size() == g.program(3).size() < 100
    with pytest.raises(StagingError) as e:
        g(2**61)
    assert e.value.message == (
        "a whole number of Python's has 64 bits here, but in a program it may have 63 beside the "
        "sign; make it a float before"
    )


def test_what_no_whole_number_is_is_known_outside_of_loops():
    @lineara.jit
    def f(n):
        return "large" if n > 2**64 else n + 1

    assert (f(3), f(2**62)) == (4, 2**62 + 1)
    assert f.captures == 1


def test_isclose_is_pythons_with_tolerances_that_are_computed():
    numbers = [0.0, 1.0, 1 + 1e-10, 1.1, -1.0, math.inf, -math.inf, math.nan, 1e300, 5e-324]

    def close(a, b, t):
        return math.isclose(a, b), math.isclose(a, b, rel_tol=t, abs_tol=t / 2)

    program = lineara.jit(close)
    for a, b, t in itertools.product(numbers, numbers, (0.0, 0.3, math.inf, math.nan)):
        got = program(a, b, t)
        assert got == close(a, b, t)
        assert [*map(type, got)] == [bool, bool]
    with pytest.raises(ValueError, match="tolerances must be non-negative"):
        program(1.0, 2.0, -1.0)
    with pytest.raises(ValueError, match="tolerances must be non-negative"):
        lineara.jit(lambda a: math.isclose(a, 1.0, abs_tol=-1.0))(2.0)


ATTRIBUTES = {
    "bit_length": lambda n: n.bit_length(),
    "bit_count": lambda n: n.bit_count(),
    "numerator": lambda n: n.numerator,
    "denominator": lambda n: n.denominator,
    "real": lambda n: n.real + n.imag,
}
FAR = [0, 1, -1, 2, 7, -8, 255, 256, 2**53 - 1, 2**53 + 1, 2**62 - 1, 2**62, -(2**62) - 1]
FAR += [2**63 - 1, -(2**63), -(2**63) + 1]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_whole_numbers_have_the_attributes_of_pythons(name):
    act = ATTRIBUTES[name]
    program = lineara.jit(act)
    for n in FAR:
        assert (program(n), type(program(n))) == (act(n), type(act(n)))
    small = np.array(FAR[:6], np.int32)
    of_lanes = lineara.vmap(lambda n: act(int(n)))(small)
    assert of_lanes.tolist() == [act(int(n)) for n in small]
    truth = lineara.jit(lambda x: act(x > 0))
    for x in (1.0, -1.0):
        assert (truth(x), type(truth(x))) == (act(x > 0), type(act(x > 0)))


def test_a_float_says_whether_it_is_an_integer():
    program = lineara.jit(lambda x: x.is_integer())
    for x in (0.0, -3.0, 2.5, 2.0**70, math.inf, math.nan):
        assert program(x) is x.is_integer()


def test_numbers_lack_what_their_class_lacks_and_refuse_what_is_made_of_the_value():
    for wrong in (lambda x: x.bit_length(), lambda x: np.float64(x).numerator + x.bit_count()):
        with pytest.raises(AttributeError, match=r"'(numpy\.)?float(64)?' object has no"):
            lineara.jit(wrong)(2.0)
    for wrong in (lambda x: int(x).to_bytes(8, "little"), lambda x: int(x).from_bytes(b"a", "big")):
        with pytest.raises(StagingError, match=r"made of the number's own value.*call int"):
            lineara.jit(wrong)(2.0)


def test_a_truth_value_of_pythons_is_raised_to_a_power_as_a_number():
    for k in (0, 1, 2, 3):
        program = lineara.jit(lambda x, k=k: (x > 0) ** k)
        for x in (5.5, -5.5):
            assert (program(x), type(program(x))) == ((x > 0) ** k, int)
    squares = lineara.jit(lambda x: (x > 0) ** 2)(np.array([1.0, -1.0]))
    assert (squares.dtype, squares.tolist()) == (np.int8, [1, 0])


def test_ldexp_takes_whole_numbers_of_lanes():
    x, n = np.array([1.0, 0.75, -3.0]), np.array([0, 5, -2], np.int32)
    assert lineara.vmap(lambda x, n: math.ldexp(x, int(n)))(x, n).tolist() == [1.0, 24.0, -0.75]

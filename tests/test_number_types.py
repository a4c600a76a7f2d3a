"""Numbers beside float64: what keeps its precision, what is a constant, what is refused."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import lineara
from lineara.errors import DetachError, NoRuleError, TypeMismatchError
from lineara.facts.primitive import op

X = np.array([1.0, 2.0, 3.0], np.float32)
FUNCTIONS = [
    lambda x: np.sum(np.sin(x) ** 2),
    lambda x: np.sum(x) ** 3,
    lambda x: x @ np.eye(3, dtype=x.dtype) @ x,
    np.linalg.norm,
    lambda x: sum(v * v for v in x),
    lambda x: np.log(np.sum(np.exp(x))),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("f", FUNCTIONS[:2])
def test_gradients_have_the_dtype_of_their_argument(f, dtype):
    x = X.astype(dtype)
    assert lineara.grad(f)(x).dtype == dtype
    rough = {np.float16: 2e-2, np.float32: 1e-5}.get(dtype, 1e-12)
    wide = lineara.grad(f)(X.astype(float))
    np.testing.assert_allclose(lineara.grad(f)(x).astype(float), wide, rtol=rough, atol=rough)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_matrices_of_second_derivatives_stay_single(f):
    for of in (
        lineara.hessian(f),
        lineara.jacfwd(lineara.grad(f)),
        lineara.jacrev(lineara.grad(f)),
    ):
        found = of(X)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, lineara.hessian(f)(X.astype(float)), rtol=1e-4, atol=1e-5)


def test_a_matrix_of_single_complex_numbers_stays_single():
    assert lineara.jacobian(lambda z: z * z)(X.astype(np.complex64)).dtype == np.complex64


def test_integers_count_as_floating_and_do_not_overflow():
    small = np.array([100, 100], np.int8)
    assert list(lineara.grad(lambda v: np.sum(v * v))(small)) == [200.0, 200.0]
    assert lineara.grad(lambda v: np.sum(v * v))(np.array([2**62, 1]))[0] == 2.0**63


def test_what_overflows_outside_of_the_trace_is_numpys():
    wrapped = np.array([100], np.int8) * np.int8(2)  # -56, also without us
    assert list(lineara.grad(lambda x: np.sum(x * wrapped))(np.ones(2))) == [-56.0, -56.0]


REFUSED = [
    (np.ma.array([1.0, 2.0], mask=[0, 1]), "an argument holds a MaskedArray, whose own rules are "
     "not followed; give a floating-point array, or keep it outside the differentiated arguments"),
    (np.zeros(2, [("a", float)]), "an argument holds an array of [('a', '<f8')], which has no "
     "derivative; give a floating-point array, or keep it outside the differentiated arguments"),
    (np.array([1.0, 2.0], object), "an argument holds an object array, which has no derivative; "
     "give a floating-point array, or keep it outside the differentiated arguments"),
    (np.array([True, False]), "grad: there is no number in bool[2], so there is nothing to "
     "differentiate; give floating-point numbers or arrays, or containers of them"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "text"), REFUSED)
def test_arrays_with_rules_of_their_own_are_refused(argument, text):
    with pytest.raises(TypeMismatchError) as caught:
        lineara.grad(lambda v: np.sum(v * v))(argument)
    assert caught.value.message == text


def test_a_masked_constant_is_refused():
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    with pytest.raises(NoRuleError, match="a MaskedArray has rules of its own, which") as caught:
        lineara.grad(lambda x: np.sum(x * masked))(np.ones(3))
    assert caught.value.message == (
        "multiply: a MaskedArray has rules of its own, which are not followed here; give "
        "numpy.asarray of it"
    )


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value)")
def test_an_array_over_the_number_zero_is_infinite_as_in_numpy(zero):
    slope = np.divide(1.0, np.float64(zero))
    gradient = lineara.grad(lambda x: np.sum(x / zero))(np.array([1.0, -2.0]))
    np.testing.assert_array_equal(gradient, [slope, slope])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_type_of_numpys_takes_arrays_of_any_shape(kind):
    def f(x):
        number, row = kind(np.asarray(x)), kind(np.full(2, x))
        assert isinstance(number, kind)
        assert isinstance(row, np.ndarray)
        assert row.dtype == kind
        return number * x + row[0] * x

    assert lineara.grad(f)(3.0) == 12.0


OWN_RULES = [
    np.array([[1.0, 2.0]]).view(np.matrix),
    np.ma.array([[1.0, 2.0]], mask=[[0, 1]]),
    np.ma.masked,
]
MIXES = {
    "concatenate": lambda x, own: np.concatenate([np.atleast_2d(own), x], axis=-1),
    "stack": lambda x, own: np.stack([x[:, : own.size].reshape(own.shape), own]),
    "a list": lambda x, own: np.array([x[0, 0], own]),
    "a list of rows": lambda x, own: np.array([x, own]),
    "a product": lambda x, own: np.dot(x.T, own),
    "an operator": lambda x, own: x * own,
    "an operator of its own": lambda x, own: own * x,
    "a ufunc": lambda x, own: np.maximum(own, x),
}


@pytest.mark.parametrize("own", OWN_RULES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", MIXES)
def test_what_is_mixed_with_a_matrix_or_a_masked_array_is_refused(name, own):
    with pytest.raises((NoRuleError, DetachError), match=r"rules of its own|a plain array"):
        lineara.grad(lambda x: np.sum(MIXES[name](x, own)))(np.ones((1, 2)))


@pytest.mark.parametrize("own", [np.array([0.5, 0.5]), [0.5, 0.5]], ids=repr)
def test_an_array_of_objects_in_a_masked_array_is_none_of_its_numbers(own):
    def f(x):
        held = np.ma.array([None, None], dtype=object)
        held[0], held[1] = x * own, x
        seen.append((held[1] is x, np.ma.count_masked(held)))
        held[0] = np.ma.masked
        return np.sum(held[0].data) + x[0]

    seen = []
    assert f(np.ones(2)) == 2.0
    with pytest.raises(DetachError, match="a masked array holds no derivatives"):
        lineara.grad(f)(np.ones(2))
    assert seen == [(True, 0)] * 2


# --- exact numbers --------------------------------------------------------------------------------

STILL = {
    "an argument that is not read": lambda x, y: x * x,
    "a constant": lambda x, y: 5.0,
    "the other side of a branch": lambda x, y: x if y < 9 else y,
    "what is not the largest": max,
    "a container": lambda x, y: [x, y][0],
    "a linear function twice": lambda x, y: lineara.grad(lambda z: 2 * z)(y),
    "a product three times": lambda x, y: lineara.grad(lineara.grad(lambda z: z * z))(y),
}


@pytest.mark.parametrize("number", [Fraction, Decimal])
@pytest.mark.parametrize("name", STILL)
def test_a_zero_of_exact_numbers_is_theirs(name, number):
    """And no 0.0, which a Decimal does not mix with."""
    f, x, y = STILL[name], number(5), number(3)
    zeros = [
        lineara.grad(f, argnums=1)(x, y),
        lineara.vjp(f, x, y)[1](1)[1],
        lineara.jvp(f, (x, y), (number(0), number(1)))[1] if name != "a constant" else number(0),
    ]
    assert [type(z) for z in zeros] == [number] * 3
    assert zeros == [0, 0, 0]


# --- values in programs: the dtypes of NumPy, and in each its largest numbers ---------------------

CODES = "? u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16"
DTYPES = [np.dtype(t) for t in CODES.split()]
ENGINES = ("interpreter", "native")


def numbers(dtype):
    """Twelve numbers of a dtype; of whole numbers, those whose sums leave it."""
    if dtype.kind in "iu":
        most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
        rows = (most, most - 1, most, 3, 1, most // 2, most, least, most - 3, 2, most // 3, 7)
        return np.array(rows, dtype).reshape(3, 4)
    if dtype.kind == "b":
        return np.arange(12).reshape(3, 4) % 3 > 0
    parts = np.random.default_rng(0).normal(size=(2, 3, 4)) * 3
    return (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)


def assert_as_numpys(f, *args):
    """Both engines give the values of plain Python, in its dtypes."""
    plain = f(*args)
    plain = plain if isinstance(plain, tuple) else (plain,)
    for engine in ENGINES:
        found = lineara.jit(f, engine=engine)(*args)
        found = found if isinstance(found, tuple) else (found,)
        for value, expected in zip(map(np.asarray, found), map(np.asarray, plain), strict=True):
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape), engine
            rough = 8 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
            np.testing.assert_allclose(value, expected, rtol=rough, err_msg=engine)


SOME = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], bool)
FOUR = np.array([1, 2, 3, 4], np.int8)
MEANS = {
    "mean": lambda a: np.mean(a),
    "rows": lambda a: (np.mean(a, axis=1, keepdims=True), a.mean(axis=(0, 1))),
    "some": lambda a: np.mean(a, axis=0, where=SOME),
    "dtypes": lambda a: (np.mean(a, dtype=np.float32), np.var(a, axis=0, dtype=np.float64)),
    "var": lambda a: (np.var(a), np.std(a)),
    "free": lambda a: (np.var(a, axis=0, ddof=1, keepdims=True), a.std(axis=-1, ddof=1)),
    "some squares": lambda a: (np.var(a, axis=1, where=SOME), np.std(a, where=SOME)),
    "from a mean": lambda a: np.var(a, axis=0, mean=np.mean(a, axis=0, keepdims=True)),
    "average": lambda a: np.average(a, axis=0, returned=True),
    "of weights": lambda a: np.average(a, axis=1, weights=FOUR, returned=True),
    "of single weights": lambda a: np.average(a, axis=1, weights=FOUR.astype(np.float32)),
    "of itself": lambda a: np.average(a, weights=a, returned=True),
    "without NaNs": lambda a: (np.nanmean(a), np.nanvar(a, axis=1), np.nanstd(a, axis=0, ddof=1)),
    "some numbers": lambda a: (np.nanmean(a, axis=0, where=SOME), np.nanvar(a, where=SOME)),
}


@pytest.mark.parametrize("f", MEANS.values(), ids=MEANS)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_means_of_every_dtype_are_numpys(f):
    for dtype in DTYPES:
        assert_as_numpys(f, numbers(dtype))


@pytest.mark.parametrize(
    "dtype", [t for t in DTYPES if t.kind != "b" and t.name[-2:] != "64"], ids=str
)
@pytest.mark.parametrize("mode", ["mean", "median"])
def test_padding_with_a_mean_of_whole_numbers_is_rounded(mode, dtype):
    assert_as_numpys(lambda a: np.pad(a, (1, 2), mode=mode), numbers(dtype))


REDUCING = (np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.bitwise_or, np.logical_and)
METHODS = {
    "reduce": lambda u, a, **o: u.reduce(a, axis=1, **o),
    "accumulate": lambda u, a, **o: u.accumulate(a, axis=1, **o),
    "reduceat": lambda u, a, **o: (u.reduceat(a, [0, 2, 1], axis=1, **o), u.reduceat(a, [1], **o)),
}


@pytest.mark.parametrize("ufunc", REDUCING, ids=lambda u: u.__name__)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_methods_of_ufuncs_widen_small_whole_numbers_where_numpy_does(method, ufunc):
    logical = "logical" in ufunc.__name__
    of_whole = logical or ufunc is np.bitwise_or
    for dtype in [t for t in DTYPES if not (of_whole and t.kind in "fc")]:
        a = numbers(dtype)
        assert_as_numpys(lambda a: method(ufunc, a), a)
        if not logical:
            assert_as_numpys(lambda a, dtype=dtype: method(ufunc, a, dtype=dtype), a)


def of_every_kind(dtype):
    """Numbers of a dtype; of floats both zeros, both ends, no number and what is near a whole."""
    if dtype.kind != "f":
        return np.array([0, 1, 2, 5, 100]).astype(dtype)
    ends = [np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny]
    return np.array([0.0, -0.0, 2.0, -2.0, 2.5, -2.5, -0.25, 3e-8, -3e-8, *ends], dtype)


@pytest.mark.parametrize("dtype", [t for t in DTYPES if t.kind != "c"], ids=str)
def test_parts_of_numbers_are_numpys_with_the_signs_of_their_zeros(dtype):
    x = of_every_kind(dtype)
    for engine in ENGINES:
        for part, expected in zip(lineara.jit(np.modf, engine=engine)(x), np.modf(x), strict=True):
            assert part.dtype == expected.dtype
            np.testing.assert_array_equal(part, expected)
            np.testing.assert_array_equal(np.signbit(part), np.signbit(expected))


@pytest.mark.parametrize("x", [np.inf, -np.inf, -0.0, -2.0, 2.5])
def test_the_fraction_of_a_number_has_slope_1(x):
    def f(x):
        return np.modf(x)[0]

    for of in (lineara.value_and_grad(f), lineara.jit(lineara.value_and_grad(f))):
        value, slope = of(np.float64(x))
        assert (value, np.signbit(value), slope) == (f(x), np.signbit(f(x)), 1.0)


RUNNING = {
    "cumprod": lambda a: (np.cumprod(a), np.cumprod(a, axis=0), a.cumprod(axis=1)),
    "accumulate": lambda a: np.multiply.accumulate(a, axis=1),
    "without NaNs": lambda a: np.nancumprod(a, axis=0),
    "of a dtype": lambda a: np.cumprod(a, axis=1, dtype=a.dtype),
    "of doubles": lambda a: np.cumprod(
        a.T, axis=0, dtype=complex if a.dtype.kind == "c" else float
    ),
}


@pytest.mark.parametrize("f", RUNNING.values(), ids=RUNNING)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value)")
def test_running_products_are_numpys_to_the_last_bit(f):
    for dtype in DTYPES:
        assert_product_is_numpys(f, dtype)


def assert_product_is_numpys(f, dtype):
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1.0, 1.1]
    drawn = (
        np.random.default_rng(0).choice(special, (30, 4)) if dtype.kind in "fc" else [[7] * 4] * 9
    )
    for a in (numbers(dtype), np.asarray(drawn).astype(dtype), np.full((2, 40), 1.1).astype(dtype)):
        plain = f(a) if isinstance(f(a), tuple) else (f(a),)
        for options in ({"engine": "interpreter"}, {"engine": "native"}, {"exact": True}):
            result = lineara.jit(f, **options)(a)
            for y, expected in zip(result if len(plain) > 1 else (result,), plain, strict=True):
                assert y.dtype == expected.dtype
                np.testing.assert_array_equal(y, expected, str(options))
                if dtype.kind in "f":
                    number = ~np.isnan(expected)
                    assert np.all(np.signbit(y[number]) == np.signbit(expected[number]))


def slopes_of_running_products(x, weights):
    """The gradient of the weighted sum of running products, in exact numbers."""
    x, weights = [[Fraction(v) for v in row] for row in (x, weights)]
    exact = []
    for j in range(len(x)):
        others = [*x[:j], Fraction(1), *x[j + 1 :]]
        exact.append(sum(weights[i] * math.prod(others[: i + 1]) for i in range(j, len(x))))
    return [float(v) for v in exact]


FACTORS = [
    [1.5, -0.5, 2.0, 0.25, 3.0],
    [0.0, 2.0, 0.0, 3.0, -1.0],
    [2.0, -0.0, 5.0, 0.5, 1.5],
    [1e-150, 1e-140, 1e150, 1e145, 3.0],
    [1e200, 1e100, 1e-200, 1e-100, 0.0],
    [7.0],
]


@pytest.mark.parametrize("x", FACTORS, ids=repr)
@pytest.mark.parametrize("how", [np.cumprod, np.multiply.accumulate], ids=["cumprod", "accumulate"])
def test_slopes_of_running_products_are_right_where_factors_are_zero_or_far_apart(how, x):
    weights = np.arange(1.0, 1 + len(x))
    slope = lineara.grad(lambda v: np.sum(how(v) * weights))
    expected = slopes_of_running_products(x, weights)
    for of in (slope, *[lineara.jit(slope, engine=engine) for engine in ENGINES]):
        np.testing.assert_allclose(of(np.array(x)), expected, rtol=1e-13)


def test_what_comes_after_an_infinity_leaves_the_slopes_before_it():
    x = np.array([2.0, 3.0, np.inf, np.nan])
    slope = lineara.grad(lambda v: np.cumprod(v)[1])
    for of in (slope, *[lineara.jit(slope, engine=engine) for engine in ENGINES]):
        np.testing.assert_array_equal(of(x)[:2], [3.0, 2.0])


def test_second_derivatives_of_running_products_are_differences_of_first_ones():
    x, v, step = np.array([1.5, -0.5, 2.0, 0.25]), np.array([0.3, 1.0, -2.0, 0.7]), 1e-6
    slope = lineara.grad(lambda x: np.sum(np.sin(np.cumprod(x))))
    expected = (slope(x + step * v) - slope(x - step * v)) / (2 * step)
    second = lineara.hessian(lambda x: np.sum(np.sin(np.cumprod(x))))
    for of in (second, *[lineara.jit(second, engine=engine) for engine in ENGINES]):
        np.testing.assert_allclose(of(x) @ v, expected, rtol=1e-7)


def set_one(x, k):
    x = np.array(x)
    x[0] = k
    return x


def set_some(x, k):
    x = np.array(x)
    x[x > 3] = k
    x[1:] = k
    return x


def added_in_place(x, k):
    x = np.array(x)
    x += k
    return x


MEETINGS = {
    "sum": lambda x, k: x + k,
    "product": lambda x, k: x * k,
    "difference": lambda x, k: k - x,
    "quotient": lambda x, k: x / k,
    "floor": lambda x, k: divmod(x, k),
    "power": lambda x, k: x ** abs(k),
    "bits": lambda x, k: (x & k, x | k, k ^ x),
    "shift": lambda x, k: x << k,
    "order": lambda x, k: (x > k, x <= k, k < x),
    "equality": lambda x, k: (x == k, x != k, np.isclose(x, k), np.isin(x, k)),
    "maximum": lambda x, k: np.maximum(x, k),
    "where": lambda x, k: np.where(x > 3, x, k),
    "divisor": lambda x, k: np.gcd(x, k),
    "number": lambda x, k: x[0] * k,
    "one": set_one,
    "some": set_some,
    "in place": added_in_place,
    "full": lambda x, k: (np.full(3, k, x.dtype), np.full_like(x, k)),
    "array": lambda x, k: (np.array([k, 1], x.dtype), np.array(k, x.dtype), np.asarray(k, x.dtype)),
    "outer": lambda x, k: np.multiply.outer(x, k),
    "of NumPy's": lambda x, k: x * np.int64(k),
}


def said_by(f, *args):
    """What plain Python says where a number does not fit; None where it gives a value."""
    try:
        f(*args)
    except OverflowError as e:
        return str(e)
    return None


WHOLE = [np.array([5, 7, 1], t) for t in DTYPES if t.kind in "iu"]


@pytest.mark.parametrize("f", MEETINGS.values(), ids=MEETINGS)
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value|overflow)")
def test_a_whole_number_of_pythons_meets_every_dtype_as_in_numpy(f):
    for x, k in itertools.product(WHOLE, (3, -1, 300, 70000, 2**40, -(2**40))):
        if (said := said_by(f, x, k)) is None:
            assert_as_numpys(f, x, k)
            continue
        for engine in ENGINES:
            with pytest.raises(OverflowError) as caught:
                lineara.jit(f, engine=engine)(x, k)
            assert str(caught.value).splitlines()[0] == said


@pytest.mark.parametrize("dtype", DTYPES[-4:], ids=str)
@pytest.mark.parametrize("k", [2, -1, 0.5, 2.0, 3, 0, 1, -2], ids=repr)
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value|overflow)")
def test_powers_of_arrays_are_numpys_where_they_overflow_and_in_the_signs_of_zeros(k, dtype):
    parts = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e308, -1e308, 5e-324, 3.0])
    real, imaginary = [a.ravel() for a in np.meshgrid(parts, parts)]
    with np.errstate(all="ignore"):
        x = (real + 1j * imaginary if dtype.kind == "c" else parts).astype(dtype)
    for engine in ENGINES:
        y = lineara.jit(lambda x: x**k, engine=engine)(x)
        assert list(map(repr, y)) == list(map(repr, x**k))


@pytest.mark.parametrize("reverse", [False, True])
def test_lanes_of_a_recurrence_have_the_bits_of_each_alone(reverse):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 100)), rng.normal(size=(6, 100))
    a[rng.random(a.shape) < 0.3], b[rng.random(b.shape) < 0.3] = 0.0, -0.0
    run = op("recurrence").evaluate
    together = run(np, a, b, axis=0, reverse=reverse)
    for lane in range(100):
        alone = run(np, a[:, lane], b[:, lane], axis=0, reverse=reverse)
        assert together[:, lane].tobytes() == alone.tobytes()

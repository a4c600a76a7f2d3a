"""What a function gives, raises and warns of in a differentiation is what it does plainly."""

import cmath
import inspect
import math
import operator
import pickle
import statistics
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lineara import grad, value_and_grad
from lineara.errors import DetachError, LinearaError
from lineara.facts.registry import registry
from lineara.tape.node import plain


class Given:
    """An object whose conversion to a float gives a number that may be traced."""

    def __init__(self, x):
        self.x = x

    def __float__(self):
        return self.x


class Both(Given):
    """An object that is a real number and a complex one."""

    def __complex__(self):
        return 1j * self.x


class Whole(Given):
    """An object with an integer part of its own."""

    def __trunc__(self):
        return 23

    __floor__ = __ceil__ = __trunc__


class Failing(Given):
    """An object that fails when it is asked."""

    def __float__(self):
        raise ZeroDivisionError(f"asked {self.x}")


class Float(float):
    """A float whose conversion says something else."""

    def __float__(self):
        return 5.0


class Answering:
    """An object that answers operators in the place of an array."""

    __array_priority__ = 1

    def __radd__(self, other):
        return "own", other.shape

    __rfloordiv__ = __rdivmod__ = __radd__


class NoUfunc(Answering):
    """One with which NumPy does not calculate in place."""

    __array_ufunc__ = None


def filled(x, write):
    a = np.zeros((2, 3)) * x
    write(a, np.array([x, 2.0, 3.0]))
    return a.tolist()


def written(a, at):
    a[at] = 1


PLAIN = np.zeros((2, 2))


def stored_nothing():
    PLAIN[2:, :] = -np.zeros((3, 2))[np.zeros(3, bool)]


def complex_parts(x):
    z = np.full(2, complex(np.nan, np.nan)) * x
    z.real = [x, 2.0]
    z.imag = np.array([3.0, x])
    return z.tolist()


def classes(x):
    t, f, n = type(x), float, np.float64
    return t is f, f is t, n is type(np.float64(x)), type(n(x)) is n, t is n, t is not n


def subclass_of_numbers(x):
    class Own(np.float64):
        pass

    class More(Own):
        pass

    return More(2.0) * x, type("Third", (float,), {"__add__": lambda a, b: "own"})(1.0) + x


def memory(x):
    a, b = np.arange(6.0) * x, np.zeros(6)
    b[0] = x
    pairs = [(a, a[::-1]), (a[:3], a[3:]), (a[::2], a[1::2]), (b, b[2:]), (a, b)]
    return [np.shares_memory(*p) for p in pairs], [np.may_share_memory(*p) for p in pairs]


def raising(f):
    def call(x):
        with np.errstate(all="raise"):
            return f(x)

    return call


def other_byte_order(x):
    made = [np.zeros(2, ">f8"), np.arange(x, dtype=">f4"), np.array([x], ">c16"), np.eye(2) * x]
    made += [np.concatenate([made[3], made[3]], dtype=">f4"), made[3].astype(">f8")]
    return [(m.dtype.byteorder, m.tolist()) for m in made]


def set_parts(a, values):
    a.real, a.imag = values, values[::-1]
    a.flat = [1, 2.5]


MATRIX = np.ones(2).view(type("Own", (np.ndarray,), {}))


def classes_in_objects(x):
    a = np.array([x, 2 * x])
    made = [a.astype(object), a.astype("f4").astype(object), (1j * a).astype(object)]
    made += [np.array([a[0], x, a[0].item()], object), np.array([a, [x, 1]], object)]
    made += [np.full(2, a[0], object), np.array(np.array(x), object)]
    return [[type(v) is float or type(v) is np.float64 for v in m.ravel()] for m in made]


def vectorized(x):
    seen = []

    def f(v, w=1, *, u=2):
        seen.append((type(v) is float, isinstance(v, np.floating), v, w, u))
        return v * w

    a = np.array([[x, 2.0], [3.0, 4.0]])
    for options in ({}, {"otypes": "d"}, {"cache": True}, {"excluded": ["u"]}):
        made = np.vectorize(f, **options)
        seen += [made(a.T), made(a, w=a, u=np.float64(5)), made(a.astype("f4"), 2).dtype, made(x)]
    return seen


def outputs(x):
    a, y = np.array([x, 2 * x]), np.zeros(2)
    made = [np.sin(a, None), np.sin(a, out=(None,)), np.add(a, 1, None), np.frexp(a, y)[0], y]
    made += [np.frexp(a, None, None)[0], np.einsum("ii->i", np.outer(a, a), out=np.ones(2))]
    return made, np.einsum("i->i", a, out=y) is y


def again(act):
    """What is decided once a signature is decided as it is plainly."""

    def f(x):
        kinds = []
        for _ in range(6):
            try:
                kinds.append(type(act(x)) is float)
            except TypeError as e:
                kinds.append(type(e) is TypeError)
        return kinds

    return f


def namespaces(x):
    given = (np.ones(2), np.float64(2), np.zeros(2) + x, np.float64(x))
    return [xp is np for xp in [v.__array_namespace__() for v in given]], np is not math


def pickled(x):
    made = [pickle.loads(pickle.dumps(f)) for f in (np.sin, np.sum, math.exp, outputs, Given)]
    return made[0] is np.sin, made[1] is np.sum, made[3] is outputs, made[4] is Given, x


def attributes(x):
    asked = ("sin", "v", "shape", "weak", "__array_wrap__", "__float__", "hex", "typed")
    given = (x, np.float64(x), np.array([x]), np.zeros(1), 1j * x)
    has = [[hasattr(v, name) for name in asked] for v in given]
    ends = [np.float64(x).__array_wrap__(np.array(2), None, b) for b in (None, True, False)]
    return has, [type(v) is np.ndarray for v in ends], np.bool_[int], np.bool_.__mro__ == ()


def vectorized_later(x):
    calls = []
    f = np.vectorize(lambda v: calls.append(v) or 2 * v)
    f.cache = True
    made = f(np.array([x, 2.0]))
    f.otypes = "f"
    return len(calls), f.cache, f.otypes, made, f(np.array([x])).dtype


def containing_itself(x):
    a = [x]
    a.append(a)
    b = []
    b.append(b)
    return np.array([b, [None], b], object).shape, np.array(b, object).ndim, len(a)


def memoized(x):
    """What a memo does that takes arrays, too."""
    found = []
    for v in (x, np.float64(x), np.ones(2) * x, [x]):
        try:
            found.append(hash(v) == hash(1.0))
        except TypeError:
            found.append("unhashable")
    return found


def among_objects(act):
    """What is done with an array whose elements Python's operators are asked for."""

    def f(x):
        a = np.full(3, 7.0) * x
        found = act(a, np.array([1, 2, 3], object))
        return found is a, [float(v) for v in a]

    return f


CASES = {
    "a cast that is not safe": lambda x: np.array([x]).astype(np.float32, casting="safe"),
    "a number's cast that is not safe": lambda x: np.float64(x).astype("f4", casting="safe"),
    "a cast to the same value": lambda x: np.array([x / 3]).astype(int, casting="same_value"),
    "a complex array made real": lambda x: np.array([1j * x]).astype(float).tolist(),
    "a complex number made whole": lambda x: np.complex128(1j * x).astype(int),
    "a list with NaN made whole": lambda x: np.array([x * np.nan], dtype=int),
    "a list with a complex number": lambda x: np.array([1j * x], dtype=float),
    "a ragged list": lambda x: np.array([[1.0, 2.0], [x]]),
    "float.__add__": lambda x: (float.__add__(x, 2), float.__radd__(2.0, x), float.hex(x)),
    "complex.__pow__": lambda x: complex.__pow__(1j * x, 2, 3),
    "complex.__eq__": lambda x: (complex.__eq__(1j * x, 1j * x), float.__eq__(x, "a")),
    "__getnewargs__": lambda x: x.__getnewargs__(),
    "__float__": lambda x: (float(Given(x)), complex(Given(x)), np.sin(float(Given(x)))),
    "a wrong __float__": lambda x: float(Given(1j * x)),
    "classes": classes,
    "classes of its own": subclass_of_numbers,
    "put": lambda x: filled(x, lambda a, v: np.put(a, [0, 5], v)),
    "put of nothing": lambda x: filled(x, lambda a, v: np.put(a, [0, 5], [])),
    "put too far": lambda x: filled(x, lambda a, v: np.put(a, [7], v)),
    "put around": lambda x: filled(x, lambda a, v: np.put(a, [7, -8], v, mode="wrap")),
    "putmask": lambda x: filled(x, lambda a, v: np.putmask(a, a < 1, v)),
    "place": lambda x: filled(x, lambda a, v: np.place(a, [[True, False, True]] * 2, v)),
    "copyto": lambda x: filled(x, lambda a, v: np.copyto(a, v, where=[True, False, True])),
    "copyto of complex": lambda x: filled(x, lambda a, v: np.copyto(a, 1j * v)),
    "along an axis": lambda x: filled(x, lambda a, v: np.put_along_axis(a, np.array([[1]]), v, 1)),
    "a diagonal": lambda x: filled(x, lambda a, v: np.fill_diagonal(a, v[:2])),
    "a complex array into a real one": lambda x: filled(x, lambda a, v: a.__setitem__(0, 1j * v)),
    "real and imaginary part": complex_parts,
    "equal to a text": lambda x: (
        (np.array([x]) == "a").tolist(),
        bool(np.float64(x) == "a"),
    ),
    "a sum of infinities": lambda x: np.add.reduce(np.array([np.inf, -np.inf]) * x),
    "an error of floats": raising(lambda x: np.add.accumulate(np.array([np.inf, -np.inf]) * x)),
    "a power with a modulus": lambda x: pow(1j * x, 2, 3),
    "a power of ten beyond all": lambda x: (math.ldexp(x, -(10**20)), math.ldexp(x, 10**20)),
    "no identity": lambda x: np.maximum.reduce(np.array([x, 2.0]), where=[True, False]),
    "out=...": lambda x: np.add(np.float64(x), 2.0, out=...).shape,
    "a grid": lambda x: [np.mgrid[-1 * x : 1 : 5j], *np.ogrid[0:x:2j, 0:2], np.r_[x:2:3j]],
    "a grid of another dtype": lambda x: np.mgrid[np.float32(0.1) * x : 1 : np.float32(0.5),].dtype,
    "quantile's dtype": lambda x: np.percentile(np.ones(3, "f4"), np.float64(50) * x).dtype,
    "memory": memory,
    "ufuncs": lambda x: (np.sin.types, np.isnat.nin, np.add.identity),
    "the texts of NumPy's makers": lambda x: [np.mgrid.__doc__, np.r_.__doc__, np.sin.__doc__],
    "outputs": outputs,
    "a product with True again": again(lambda x: True * x),
    "a sum with True again": again(lambda x: x + np.bool_(True)),
    "a product with a list again": again(lambda x: x * [1.0]),
    "a sum with a tuple again": again(lambda x: operator.add(x, (1.0,))),
    "namespaces": namespaces,
    "pickled functions": pickled,
    "attributes": attributes,
    "equal to an array without axes": lambda x: [
        op(v, np.asarray(np.float64(x))).dtype
        for v in (x, 1j * x, 2.0, 2j)
        for op in (operator.eq, operator.ne)
    ],
    "a class of its own": lambda x: type(np.linspace(MATRIX, 1.0, 3)) is type(MATRIX),
    "a decorator": lambda x: np.vectorize(otypes=[float])(lambda v: 2 * v)(np.array([x])),
    "vectorize of nothing": lambda x: np.vectorize(lambda v: v, otypes=[int])(np.zeros(0) * x),
    "another byte order": other_byte_order,
    "parts from lists": lambda x: filled(1j * x, lambda a, v: set_parts(a, [[1, 2, 3]] * 2)),
    "an index of floats": lambda x: (np.ones(3) * x)[np.array([1.0])],
    "an empty index of floats": lambda x: (np.ones(3) * x).__setitem__(np.array([]), 2),
    "an empty index of floats of integers": lambda x: np.arange(3)[np.array([])],
    "an empty index that is written": lambda x: written(np.arange(3), np.array([])),
    "a store of nothing": lambda x: stored_nothing(),
    "an index that is a float": lambda x: np.zeros(3)[x],
    "a deletion": lambda x: (np.ones(3) * x).__delitem__(0),
    "constants equal to a text": lambda x: ((np.zeros(3) == "a").tolist(), np.zeros(1) != "a"),
    "float of a complex number": lambda x: float(1j * x),
    "float of NumPy's complex number": lambda x: float(np.complex128(1j * x)),
    "float of a complex array": lambda x: float(np.array(1j * x)),
    "numbers as objects": lambda x: np.array([1 / x, 0.0]).astype(object)[1] ** -1,
    "numbers in objects": classes_in_objects,
    "what vectorize passes": vectorized,
    "vectorize divides by zero": lambda x: np.vectorize(lambda v: 1 / v)(np.array([x, 0.0])),
    "vectorize gives arrays": lambda x: np.vectorize(lambda v: np.ones(2) * v)(np.array([x])),
    "vectorize gives objects": lambda x: np.vectorize(lambda v: [v], otypes=[object])(None).item(),
    "vectorize calls with nothing": lambda x: np.vectorize(lambda: x)(),
    "vectorize is told later": vectorized_later,
    "an array of objects fails": lambda x: np.quantile(np.array([], object), [x]),
    "degrees of freedom of objects": lambda x: [
        (type(v) is np.float64, v)
        for f in (np.var, np.nanvar)
        for v in [f(np.array([1.0, 2.0, x], object), ddof=0.5 * x)]
    ],
    "a list that contains itself": containing_itself,
    "classes of numbers in a pickle": lambda x: [
        pickle.loads(pickle.dumps([c, c(2)])) == [c, c(2)] for c in (float, np.float64, np.int8)
    ],
    "the device": lambda x: setattr(np.ones(2) * x, "device", "other"),
    "complex of an array": lambda x: [complex(np.array(7, t)) for t in "ifdFD"],
    "who answers in place": lambda x: operator.iadd(np.ones(2) * x, Answering()),
    "who answers quotients": lambda x: [
        act(np.ones(2) * x, Answering()) for act in (operator.floordiv, divmod)
    ],
    "a quotient of objects": lambda x: [
        float(v) for v in (np.ones(2) * x) // np.array([2, 0.5], object)
    ],
    "who answers no ufunc": lambda x: operator.iadd(np.ones(2) * x, NoUfunc()),
    "a wrapped function": lambda x: [
        inspect.signature(f) == inspect.signature(f.__wrapped__)
        for f in (np.empty_like, np.concatenate, np.sum)
    ],
    "hashes": memoized,
    "signatures of classes": lambda x: [
        str(inspect.signature(c))
        for c in (float, complex, np.float64, np.complex64, np.int8, np.bool_, np.finfo)
    ],
    "a class as dtype": lambda x: np.array(np.ones(2) * x, dtype=np.dtype),
    "a histogram with edges and a number of bins": lambda x: np.histogram2d(
        np.arange(3) * x, [x, 2, 3], ((0.0, x, 3.0), 2)
    ),
    "out= of another shape": lambda x: np.percentile(np.arange(4), 50, out=np.ones(1) * x),
    "out= that is a number": lambda x: np.sum(np.arange(4), out=np.float64(x)),
    "an array takes objects": among_objects(lambda a, o: np.copyto(a, o, casting="unsafe")),
    "an array takes large numbers": among_objects(
        lambda a, o: np.copyto(a.astype("f4"), o * 10**60, casting="unsafe")
    ),
    "objects are put": among_objects(lambda a, o: np.put(a, [0, 1], o)),
    "objects where a mask holds": among_objects(lambda a, o: np.putmask(a, a > 1, o)),
    "objects are added at": among_objects(lambda a, o: np.add.at(a, [0, 1], o[:2])),
    "objects are added in place": among_objects(lambda a, o: operator.iadd(a, o)),
    "a sum of objects": among_objects(lambda a, o: np.sum([o, o], axis=0, out=a)),
    "objects added": among_objects(lambda a, o: np.add(o, o, out=a)),
    "objects taken": among_objects(lambda a, o: np.take(o, [2, 1, 0], out=a)),
    "a median that is a whole number": lambda x: [
        (type(v) is int, type(v) is np.int64, type(v) is bool, v)
        for given in ([x, 1, 3], [x, np.int64(2), 3], [x, True, False], [x, 1, 2, 3], [x, x, 1])
        for v in [statistics.median(given)]
    ],
    "take_along_axis": lambda x: np.take_along_axis(np.ones((2, 2)) * x, np.array(1), axis=1),
}


def outcome(f, x):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = shown(f(x))
        except Exception as e:
            found = {c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"}
    return found, sorted({(w.category.__name__, str(w.message)) for w in warned})


def shown(value):
    if isinstance(value, list | tuple):
        return type(value)(map(shown, value))
    known = plain(value)
    return (known.dtype, known.tolist()) if isinstance(value, np.ndarray) else known


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_is_that_of_the_plain_call(name):
    f, found = CASES[name], []

    def seen(x):
        found.append(outcome(f, x))
        return x

    grad(seen)(1.0)
    (ours, our_warnings), (plainly, plain_warnings) = found[0], outcome(f, 1.0)
    assert our_warnings == plain_warnings
    if isinstance(plainly, set):  # the classes of an exception: ours may be of more
        assert isinstance(ours, set)
        assert plainly <= ours
    else:
        assert repr(ours) == repr(plainly)


def caught(act):
    def f(x):
        try:
            act(x)
        except TypeError:
            return 3.0 * x
        return x

    return f


class Shown:
    """An array by the address of another one."""

    def __init__(self, a):
        self.__array_interface__ = a.__array_interface__


COMPILED = [Decimal, Decimal.from_float, Fraction, Fraction.from_float]
COMPILED += [lambda x: np.array([0, 1]).choose((0.5, 1.5), out=np.zeros(2) + x)]
COMPILED += [lambda x: np.array(Shown(np.zeros(2)))]


@pytest.mark.parametrize("act", COMPILED)
def test_a_value_that_python_takes_and_a_traced_one_not_is_no_other_branch(act):
    assert caught(act)(2.0) == 2.0
    for f in (caught(act), lambda x: (act(x), x)[1]):
        with pytest.raises(DetachError):
            grad(f)(2.0)


def test_a_number_that_python_refuses_too_is_the_same_branch():
    for act in (operator.index, lambda x: [1, 2][x], lambda x: x + "a", len, iter):
        assert grad(caught(act))(2.0) == 3.0


NUMBERS = {
    "a Fraction": lambda x: Fraction(1, 2),
    "a Decimal": lambda x: Decimal("0.5"),
    "an object": Given,
    "an object with both parts": Both,
    "an object with an integer part": Whole,
    "an object that fails": Failing,
    "a wrong object": lambda x: Given(1j * x),
    "a float that says something else": lambda x: Float(0.25),
    "a text": lambda x: "0.5",
    "a number": lambda x: x,
    "a large number": lambda x: 10**400,
}
CLASSES_OF_NUMBERS = [float, complex, np.float64, np.float32, np.complex128, np.int64, np.bool_]
OF_OPERATORS = ("prod", "sumprod")
FUNCTIONS = {f"{f.__name__} of {f.__module__}": f for f in CLASSES_OF_NUMBERS} | {
    f"{module.__name__}.{name}": f
    for module in (math, cmath)
    for name, f in vars(module).items()
    if callable(f) and registry.ours(f) is not None and name not in OF_OPERATORS
}


def told(f, x):
    """The outcome, with the text of an error that names no class, or that the call is refused."""
    try:
        return repr(shown(f(x)))
    except LinearaError:
        return "refused"
    except TypeError:
        return "TypeError"
    except Exception as e:
        return f"{type(e).__name__}: {e}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_objects_are_asked_for_their_numbers_as_python_asks_them(name):
    function, seen = FUNCTIONS[name], []

    def ask(x):
        for first in NUMBERS.values():
            seen.append(told(lambda t, a=first: function(a(t)), x))
            seen.append(told(lambda t, a=first: function([a(t), t]), x))
            seen.append(told(lambda t, a=first: function([a(t)], [t]), x))
            seen.append(told(lambda t, a=first: function(a(t), imag=t), x))
            for second in NUMBERS.values():
                seen.append(told(lambda t, a=first, b=second: function(a(t), b(t)), x))
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ask(0.5)
        grad(ask)(0.5)
    half = len(seen) // 2
    for plainly, ours in zip(seen[:half], seen[half:], strict=True):
        assert ours in (plainly, "refused")
    assert seen[half:].count("refused") < half / 10


SLOPES = {
    "an object": lambda x: math.sin(Given(x)) + float(Given(x)),
    "an object and a number": lambda x: math.hypot(Given(x), 2 * x) + math.atan2(x, Decimal(1)),
    "objects in a list": lambda x: (
        math.fsum([Given(x), Fraction(1, 2)]) * math.dist([x], [Given(5.0)])
    ),
    "a part": lambda x: abs(complex(Fraction(1, 2), imag=x)) + complex(imag=x).imag,
    "two parts": lambda x: abs(np.complex128(Given(x), 2 * x)) + complex(1.0, Given(x)).imag,
    "a complex object": lambda x: abs(complex(Both(x))) + abs(cmath.exp(Both(x)) - 1),
    "a large base": lambda x: math.log(x, 10**400) + math.log(10**400, x),
}


@pytest.mark.parametrize("name", SLOPES)
def test_the_number_of_an_object_keeps_its_derivative(name):
    f, slope = SLOPES[name], grad(SLOPES[name])(2.0)
    assert abs(slope - (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6) < 1e-5 * (1 + abs(slope))


def test_a_list_of_traced_numbers_is_no_constant():
    with pytest.raises(DetachError):
        grad(lambda x: np.float64([x, 2.0])[0])(1.0)


OUT_OF_RANGE = {
    "an element": lambda x: x[6],
    "a row": lambda x: np.reshape(x, (1, 2))[3],
    "an index array": lambda x: x[np.array([0, 5])],
    "a write": lambda x: np.zeros(2).__setitem__(7, x[0]),
    "a write at an index array": lambda x: np.zeros(2).__setitem__(np.array([5]), x[0]),
    "take": lambda x: np.take(x, 9),
    "a mask": lambda x: x[np.array([True, False, True])],
    "an axis that is none": lambda x: np.sum(x, axis=3),  # NumPy's error is both
    "shapes that do not fit": lambda x: x + np.ones(3),
}


@pytest.mark.parametrize("first", [ValueError, IndexError])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_the_handler_is_the_one_that_python_takes(name, first):
    act = OUT_OF_RANGE[name]
    second = IndexError if first is ValueError else ValueError

    def f(x):
        try:
            act(x)
        except first:
            return x[0] * 5.0
        except second:
            return x[1] * 7.0

    x = np.array([1.0, 2.0])
    value, slope = value_and_grad(f)(x)
    assert value == f(x)
    assert slope.tolist() == ([5.0, 0.0] if value == 5.0 else [0.0, 7.0])

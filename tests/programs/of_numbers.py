"""Python's and NumPy's numbers: their types, texts, exceptions and branches."""

# ruff: noqa: B905, E721, SIM210

import bisect
import cmath
import collections
import copy
import decimal
import functools
import heapq
import itertools
import json
import math
import numbers as abstract
import operator
import statistics

import numpy as np
from judge_programs import Programs

PROGRAMS = Programs()


@PROGRAMS.at(3.7)
def n1(saw, x):
    saw.append(x.__class__.__name__)
    saw.append(x.as_integer_ratio())
    saw.append(x.hex())
    return x * x


@PROGRAMS.at(3.7)
def n2(saw, x):
    a, b = divmod(x, 1.2)
    saw.append(a)
    saw.append(b)
    return a * b


@PROGRAMS.at(3.7)
def n3(saw, x):
    return x // 0.5 + x % 0.7 + (-x) % 0.7 + (-x) // 0.3 * x


@PROGRAMS.at(-8.0)
def n4(saw, x):
    z = x ** (1 / 3)
    saw.append(isinstance(z, complex))
    return abs(z)


@PROGRAMS.at(2.0)
def n5(saw, x):
    try:
        return x / (x - 2)
    except ZeroDivisionError as e:
        saw.append(str(e))
        return x * 3


@PROGRAMS.at(2.0)
def n6(saw, x):
    try:
        return (x - 2) ** -1
    except ZeroDivisionError as e:
        saw.append(str(e))
        return x * 4


@PROGRAMS.at(800.0)
def n7(saw, x):
    try:
        return math.exp(x)
    except OverflowError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(1e200)
def n8(saw, x):
    try:
        return x**2
    except OverflowError as e:
        saw.append(e.args)
        return x / 1e200


@PROGRAMS.at(1e200)
def n9(saw, x):
    return x * x == math.inf and x / 1e200


@PROGRAMS.at(-1.0)
def n10(saw, x):
    try:
        return math.log(x)
    except ValueError as e:
        saw.append(str(e)[:10])
        return x * x


@PROGRAMS.at(-1.0)
def n11(saw, x):
    try:
        return math.sqrt(x)
    except ValueError:
        return x * x


@PROGRAMS.at(2.5)
def n12(saw, x):
    saw.append(round(x))
    saw.append(round(x, 1))
    saw.append(int(x))
    saw.append(math.floor(x))
    saw.append(math.trunc(x))
    return x * round(x)


@PROGRAMS.at(2.5)
def n13(saw, x):
    return (
        sum([x, 2, True])
        + math.fsum([x, x, 0.1])
        + max(x, 1)
        + min([x, 3], key=lambda t: -t)
        + abs(-x)
        + pow(x, 2)
        + pow(x, -1.5)
    )


@PROGRAMS.at(2.5)
def n14(saw, x):
    return [10, 20, 30][int(x)] * x + {2: 1.5}.get(int(x), 0) * x


@PROGRAMS.at(2.5)
def n15(saw, x):
    return x * sum(range(int(x))) + len("a" * int(x)) * x


@PROGRAMS.at(2.5)
def n16(saw, x):
    saw.append(f"{x:>10.3f}|{x!r:>5}|{x}|{x:g}|{x:%}"[:9])
    return x * len(f"{x:08.3f}")


@PROGRAMS.at(2.5)
def n17(saw, x):
    saw.append(sorted([x, 1.0, 3.0]) == [1.0, 2.5, 3.0])
    return sorted([x, 1.0, x * x], reverse=True)[0]


@PROGRAMS.at(2.5)
def n18(saw, x):
    return bisect.bisect([1.0, 2.0, 3.0], x) * x + bisect.bisect_left([1.0, 2.5, 3.0], x)


@PROGRAMS.at(2.5)
def n19(saw, x):
    h = [x, 1.0, 3.0 * x]
    heapq.heapify(h)
    heapq.heappush(h, 0.5 * x)
    return heapq.heappop(h) * heapq.nlargest(1, h)[0]


@PROGRAMS.at(2.5)
def n20(saw, x):
    return (
        statistics.mean([x, 1.0, 2.0])
        + statistics.median([x, 1.0, 5.0])
        + statistics.pstdev([x, 1.0, 2.0])
        + statistics.fmean([x, x * x])
    )


@PROGRAMS.at(2.5)
def n21(saw, x):
    return (
        math.hypot(x, 1, 2)
        + math.dist([x, 0], [1, 2])
        + math.prod([x, 2, x])
        + math.copysign(x, -1)
        + math.fmod(x, 0.7)
        + math.remainder(x, 0.7)
    )


@PROGRAMS.at(2.5)
def n22(saw, x):
    m, e = math.frexp(x)
    saw.append(type(e).__name__)
    return math.ldexp(m, e + 1) + math.modf(x)[0] * math.modf(x)[1]


@PROGRAMS.at(2.5)
def n23(saw, x):
    return (
        math.isclose(x, 2.5) * x
        + math.isfinite(x) * x
        + math.isnan(x)
        + math.gcd(4, 6) * x
        + math.comb(5, int(x)) * x
        + math.factorial(int(x)) * x
    )


@PROGRAMS.at(2.5)
def n24(saw, x):
    z = complex(x, 1)
    saw.append(type(z).__name__)
    return (z * z.conjugate()).real + abs(z) + cmath.phase(z) + cmath.exp(1j * x).imag


@PROGRAMS.at(2.5)
def n25(saw, x):
    return (
        functools.reduce(operator.mul, [x, 2, x], 1)
        + operator.truediv(x, 3)
        + operator.neg(x)
        + operator.pow(x, 2)
    )


@PROGRAMS.at(2.5)
def n26(saw, x):
    return sum(itertools.accumulate([x, x, x])) + sum(a * b for a, b in zip([x, 2], [x, x]))


@PROGRAMS.at(2.5)
def n27(saw, x):
    saw.append(isinstance(x, float))
    saw.append(isinstance(x, (int, float)))
    saw.append(isinstance(x, abstract.Real))
    saw.append(type(x) is float)
    saw.append(type(x) == float)
    return x * (type(x + 1) is float)


@PROGRAMS.at(2.5)
def n28(saw, x):
    match x:
        case int():
            return x
        case float():
            return x * x
        case _:
            return 0.0


@PROGRAMS.at(2.5)
def n29(saw, x):
    return x if x else 0.0


@PROGRAMS.at(0.0)
def n30(saw, x):
    return (x or 3.0) * 2 + (x and 5.0) + (not x) * x


@PROGRAMS.at(2.5)
def n31(saw, x):
    return (
        ((x > 1) + (x > 2)) * x
        + (x > 1) * (x < 3) * x
        + (1 < x < 3) * x
        + [0.0, x][x > 1]
        + (True if x == 2.5 else False) * x
    )


@PROGRAMS.at(2.5)
def n32(saw, x):
    saw.append(x > 1)
    saw.append(not x > 1)
    saw.append((x > 1) is True)
    saw.append((x > 1) & (x < 9))
    saw.append((x > 1) ^ True)
    saw.append(~(x > 1) + 2 if False else 0)
    return x


@PROGRAMS.at(2.5)
def n33(saw, x):
    saw.append(x.is_integer())
    saw.append((x * 2).is_integer())
    saw.append(x.real)
    saw.append(x.imag)
    saw.append(x.conjugate())
    return x * x.real


@PROGRAMS.at(2.5)
def n34(saw, x):
    saw.append(hash(x) == hash(2.5))
    saw.append(x in {2.5: 1}) if False else None
    return x


@PROGRAMS.at(2.5)
def n35(saw, x):
    return (
        float(x) * float("1.5")
        + float(3) * x
        + int("3") * x
        + bool(x) * x
        + float(np.float32(1.5)) * x
    )


@PROGRAMS.at(2.5)
def n36(saw, x):
    y = np.float64(x)
    saw.append(type(y).__name__)
    return y / 2 + y**2


@PROGRAMS.at(2.5)
def n37(saw, x):
    y = np.float32(x)
    saw.append(type(y * 2).__name__)
    saw.append(type(y * np.float64(2)).__name__)
    saw.append(type(y * 2.0).__name__)
    return float(y * y)


@PROGRAMS.at(2.5)
def n38(saw, x):
    a = np.ones(2, np.float32) * x
    saw.append(a.dtype)
    b = np.ones(2, np.float32) * np.float64(x)
    saw.append(b.dtype)
    return float(a.sum() + b.sum())


@PROGRAMS.at(2.5)
def n39(saw, x):
    a = np.arange(3) * x
    saw.append(a.dtype)
    saw.append((np.arange(3) + 1).dtype)
    return (a / 2).sum()


@PROGRAMS.at(2.5)
def n40(saw, x):
    return np.sqrt(x) + math.sqrt(x) + x**0.5


@PROGRAMS.at(2.5)
def n41(saw, x):
    saw.append(type(np.sqrt(x)).__name__)
    saw.append(type(np.sum([x, x])).__name__)
    saw.append(type(np.array([x])[0]).__name__)
    saw.append(type(np.array([x]).tolist()[0]).__name__)
    saw.append(type(np.array([x]).item()).__name__)
    saw.append(type(np.array(x)).__name__)
    saw.append(type(np.array(x)[()]).__name__)
    saw.append(type(np.array(x) * 1).__name__)
    return x


@PROGRAMS.at(np.float64(2.5))
def n42(saw, x):
    saw.append(type(x * 2).__name__)
    saw.append(type(2 * x).__name__)
    saw.append(type(x**2).__name__)
    saw.append(type(-x).__name__)
    saw.append(type(abs(x)).__name__)
    saw.append(type(round(x, 1)).__name__)
    saw.append(type(round(x)).__name__)
    saw.append(type(x > 1).__name__)
    saw.append(type(x.item()).__name__)
    saw.append(type(float(x)).__name__)
    saw.append(type(math.sin(x)).__name__)
    saw.append(type(x // 1).__name__)
    saw.append(type(divmod(x, 1)[1]).__name__)
    saw.append(type(max(x, 1)).__name__)
    saw.append(type(sum([x])).__name__)
    return x


@PROGRAMS.at(np.float64(0.0))
def n43(saw, x):
    return (1 / (x + 1)) + (np.float64(1) / x > 5) * 1.0 * (x + 2)


@PROGRAMS.at(np.float64(-8.0))
def n44(saw, x):
    z = x ** (1 / 3)
    saw.append(str(z))
    return x * 2 if z != z else x


@PROGRAMS.at(np.float32(1.5))
def n45(saw, x):
    saw.append(type(x * 2).__name__)
    saw.append(type(x * np.float32(3)).__name__)
    saw.append(type(x + 1.1).__name__)
    saw.append(type(np.sin(x)).__name__)
    saw.append(type(math.sin(x)).__name__)
    saw.append(type(x * np.ones(2)[0]).__name__)
    return x * x


@PROGRAMS.at(2.5)
def n46(saw, x):
    return sum(x**k / math.factorial(k) for k in range(5))


@PROGRAMS.at(2.5)
def n49(saw, x):
    try:
        return x < "a"
    except TypeError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n62(saw, x):
    try:
        return -(x < 1j) * x
    except TypeError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n63(saw, x):
    try:
        return x % 0
    except ZeroDivisionError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n64(saw, x):
    try:
        return x // 0.0
    except ZeroDivisionError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n66(saw, x):
    try:
        return math.acos(x)
    except ValueError:
        return x


@PROGRAMS.at(2.5)
def n67(saw, x):
    try:
        return int(x * math.inf)
    except OverflowError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n68(saw, x):
    try:
        return int(x * math.nan)
    except ValueError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n70(saw, x):
    try:
        return x * decimal.Decimal(2)
    except TypeError as e:
        saw.append(str(e))
        return x


@PROGRAMS.at(2.5)
def n71(saw, x):
    return x * json.loads(json.dumps({"a": 1.5}))["a"]


@PROGRAMS.at(2.5)
def n73(saw, x):
    return x * (x if x > math.nan else 1) + min(x, math.nan) * 0 if False else x * 2


@PROGRAMS.at(2.5)
def n74(saw, x):
    d = collections.defaultdict(float)
    d["a"] += x
    d["b"] -= x * 2
    c = collections.Counter()
    c["q"] += x
    return d["a"] * d["b"] + c["q"]


@PROGRAMS.at(2.5)
def n75(saw, x):
    return sum(np.linspace(0, x, 5)) + np.arange(0, x, 1.0).sum() + len(np.arange(0, x, 0.5)) * x


@PROGRAMS.at(2.5)
def n76(saw, x):
    saw.append(np.isscalar(x))
    saw.append(np.ndim(x))
    saw.append(np.shape(x))
    saw.append(np.size(x))
    saw.append(np.iscomplexobj(x))
    saw.append(np.isrealobj(x))
    saw.append(callable(x))
    saw.append(hasattr(x, "shape"))
    saw.append(hasattr(x, "dtype"))
    saw.append(hasattr(x, "__len__"))
    saw.append(hasattr(x, "__iter__"))
    saw.append(hasattr(x, "__float__"))
    saw.append(hasattr(x, "__array__"))
    return x


@PROGRAMS.at(np.float64(2.5))
def n77(saw, x):
    saw.append(hasattr(x, "shape"))
    saw.append(x.shape)
    saw.append(x.ndim)
    saw.append(x.dtype)
    saw.append(x.size)
    saw.append(hasattr(x, "__len__"))
    saw.append(hasattr(x, "__iter__"))
    saw.append(isinstance(x, float))
    saw.append(isinstance(x, np.floating))
    saw.append(isinstance(x, np.generic))
    saw.append(isinstance(x, np.ndarray))
    saw.append(x.T.shape)
    saw.append(x.itemsize)
    saw.append(x.nbytes)
    saw.append(type(x.real).__name__)
    saw.append(type(x.imag).__name__)
    saw.append(type(x.astype(int)).__name__)
    saw.append(type(x.sum()).__name__)
    saw.append(type(x.reshape(1)).__name__)
    saw.append(type(x[()]).__name__)
    saw.append(type(x[None]).__name__)
    saw.append(type(x.max()).__name__)
    saw.append(type(x.round(1)).__name__)
    saw.append(type(x.copy()).__name__)
    saw.append(type(x.view(np.int64)).__name__ if False else 0)
    return x


@PROGRAMS.at(2.5, 1.5)
def n79(saw, x, y):
    x, y = y, x
    x += y
    y *= x
    x -= 1
    y /= 2
    x **= 2
    y //= 0.5
    x %= 3.3
    return x * y + x


@PROGRAMS.at(2.5)
def n80(saw, x):
    return copy.copy(x) * copy.deepcopy(x) + (lambda *a, **k: a[0] * k["b"])(x, b=x)

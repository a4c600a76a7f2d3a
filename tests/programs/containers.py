"""Lists, dicts, tuples, records: what programs do with them."""

# ruff: noqa: B905, E742, RUF005, RUF059

import copy
import dataclasses
import functools
import itertools
import math
import types
from collections import (
    ChainMap,
    OrderedDict,
    defaultdict,
    deque,
    namedtuple,
)
from dataclasses import asdict, astuple, dataclass, fields, replace

import numpy as np
from judge_programs import Programs

PROGRAMS = Programs()
Pt = namedtuple("Pt", "a b")


@dataclass
class D:
    a: float
    b: list


@dataclass(frozen=True)
class F:
    a: float
    b: float


@dataclass(order=True)
class O:
    a: float
    b: float


class K:
    def __init__(s, a, b):
        s.a = a
        s.b = b

    def __eq__(s, o):
        return isinstance(o, K) and s.a == o.a

    def __hash__(s):
        return 1


class Sub(dict):
    pass


class Lst(list):
    def total(self):
        return sum(self)


L3 = [0.5, 1.5, 2.5]
DD = {"a": 0.5, "b": [1.5, 2.5]}


@PROGRAMS.at(L3)
def c1(saw, x):
    saw.append(type(x) is list)
    saw.append(len(x))
    saw.append(x == [0.5, 1.5, 2.5])
    saw.append(isinstance(x, list))
    return sum(x) + x[-1]


@PROGRAMS.at(L3)
def c2(saw, x):
    a, *b = x
    saw.append(type(b) is list)
    return a * sum(b)


@PROGRAMS.at(L3)
def c3(saw, x):
    y = x + [4.0]
    saw.append(len(y))
    y += x
    saw.append(len(y))
    return sum(y)


@PROGRAMS.at(L3)
def c4(saw, x):
    y = x
    y += [x[0]]
    saw.append(len(x))
    return sum(x)


@PROGRAMS.at(L3)
def c5(saw, x):
    y = x[:]
    y[0] = 9.0
    saw.append(x is y)
    return sum(x) + y[0]


@PROGRAMS.at(L3)
def c6(saw, x):
    x[0] = x[1] * 2
    x[1:] = [1.0, x[2]]
    return sum(v * i for i, v in enumerate(x))


@PROGRAMS.at(L3)
def c7(saw, x):
    x.sort(key=lambda v: -v)
    return x[0] * 2 + x[1]


@PROGRAMS.at(L3)
def c8(saw, x):
    x.reverse()
    x.insert(1, x[0])
    del x[0]
    return x[0] * x[1] + x.pop()


@PROGRAMS.at(L3)
def c9(saw, x):
    x.extend(v * 2 for v in x[:2])
    x.append(x.pop(0))
    return sum(v * i for i, v in enumerate(x))


@PROGRAMS.at(L3)
def c10(saw, x):
    saw.append(x.index(1.5))
    saw.append(x.count(0.5))
    saw.append(2.5 in x)
    saw.append(7.0 in x)
    return x[x.index(2.5)]


@PROGRAMS.at(L3)
def c11(saw, x):
    saw.append(x < [1.0])
    saw.append(x > [0.5, 1.4])
    saw.append(max(x) == 2.5)
    return max(x) * min(x)


@PROGRAMS.at(L3)
def c12(saw, x):
    return (
        sum(map(lambda v: v * v, filter(lambda v: v > 1, x)))
        + math.prod(x)
        + functools.reduce(lambda a, b: a * b, x)
    )


@PROGRAMS.at(L3)
def c13(saw, x):
    return (
        sum(a * b for a, b in itertools.product(x, x))
        + sum(itertools.chain(x, x[::-1]))
        + sum(a * b for a, b in itertools.combinations(x, 2))
    )


@PROGRAMS.at(L3)
def c14(saw, x):
    y = copy.copy(x)
    z = copy.deepcopy(x)
    y[0] = 1.0
    z[1] = 1.0
    saw.append(type(y) is list)
    return sum(x) + sum(y) * sum(z)


@PROGRAMS.at(L3)
def c15(saw, x):
    return np.array(x) @ np.array(x[::-1]) + np.sum(x) + np.dot(x, x) + np.linalg.norm(x)


@PROGRAMS.at(L3)
def c16(saw, x):
    y = x * 2
    saw.append(len(y))
    x *= 2
    saw.append(len(x))
    return sum(y) + sum(x[:4])


@PROGRAMS.at(L3)
def c17(saw, x):
    d = deque(x, maxlen=2)
    d.append(x[0])
    saw.append(len(d))
    return sum(d) + d[0]


@PROGRAMS.at(L3)
def c18(saw, x):
    y = tuple(x)
    saw.append(type(y) is tuple)
    saw.append(hash((1, 2)) == hash((1, 2)))
    return y[0] * y[1]


@PROGRAMS.at(L3)
def c19(saw, x):
    y = set()
    y.add(1)
    z = [v for v in x if v not in y]
    return sum(z)


@PROGRAMS.at(L3)
def c20(saw, x):
    match x:
        case [a, b]:
            return a
        case [a, b, c]:
            return a * b * c
        case _:
            return 0.0


@PROGRAMS.at(L3)
def c21(saw, x):
    match x:
        case [a, *r] if a > 0:
            return a * sum(r)
    return 0.0


@PROGRAMS.at(DD)
def c22(saw, x):
    saw.append(type(x) is dict)
    saw.append(list(x))
    saw.append("a" in x)
    saw.append(x.get("z", 3))
    saw.append(len(x))
    return x["a"] * sum(x["b"])


@PROGRAMS.at(DD)
def c23(saw, x):
    y = {**x, "c": 2.0}
    saw.append(list(y))
    z = x | {"a": 3.0}
    saw.append(z["a"])
    return y["a"] * y["c"] + z["b"][0] + x["a"]


@PROGRAMS.at(DD)
def c24(saw, x):
    x["c"] = x["a"] * 2
    x["a"] = 1.0
    saw.append(list(x))
    return x["c"] + x["a"]


@PROGRAMS.at(DD)
def c25(saw, x):
    v = x.pop("a")
    saw.append(list(x))
    x.setdefault("q", v)
    x.update(r=v * 2)
    return x["q"] * x["r"]


@PROGRAMS.at(DD)
def c27(saw, x):
    t = 0.0
    for k, v in x.items():
        t = t + (v if k == "a" else v[0])
    for v in x.values():
        t = t + (v if isinstance(v, float) else sum(v))
    return t


@PROGRAMS.at(DD)
def c28(saw, x):
    match x:
        case {"a": float() as a, "b": [b, c]}:
            return a * b * c
    return 0.0


@PROGRAMS.at(DD)
def c29(saw, x):
    y = dict(x)
    y["a"] = 7.0
    z = x.copy()
    z["a"] = 8.0
    w = copy.deepcopy(x)
    w["b"][0] = 9.0
    saw.append(x == DD)
    return x["a"] * y["a"] * z["a"] + w["b"][0] * x["b"][0]


@PROGRAMS.at(DD)
def c30(saw, x):
    x["b"][0] = x["a"]
    x["b"].append(x["a"])
    return sum(x["b"])


@PROGRAMS.at(DD)
def c31(saw, x):
    return (lambda a, b: a * b[1])(**x)


@PROGRAMS.at(DD)
def c32(saw, x):
    d = defaultdict(list)
    d["k"].append(x["a"])
    d["k"].extend(x["b"])
    return sum(d["k"])


@PROGRAMS.at(DD)
def c33(saw, x):
    c = ChainMap({"a": 2.0}, x)
    return c["a"] * c["b"][0] * x["a"]


@PROGRAMS.at(DD)
def c34(saw, x):
    try:
        return x["zz"]
    except KeyError as e:
        saw.append(str(e))
        return x["a"]


@PROGRAMS.at(L3)
def c35(saw, x):
    try:
        return x[10]
    except IndexError as e:
        saw.append(str(e))
        return x[0]


@PROGRAMS.at(L3)
def c36(saw, x):
    try:
        return x["a"]
    except TypeError as e:
        saw.append(str(e))
        return x[0]


@PROGRAMS.at(L3)
def c37(saw, x):
    try:
        x.remove(99.0)
    except ValueError:
        saw.append("v")
        return x[0]
    return x[1]


@PROGRAMS.at(L3)
def c38(saw, x):
    try:
        a, b = x
    except ValueError as e:
        saw.append(str(e))
        return x[0]
    return a


@PROGRAMS.at(L3)
def c39(saw, x):
    try:
        return {x: 1}[x]
    except TypeError as e:
        saw.append(str(e))
        return x[0]


@PROGRAMS.at(Pt(0.5, 1.5))
def c40(saw, x):
    saw.append(type(x) is Pt)
    saw.append(x._fields)
    saw.append(isinstance(x, tuple))
    y = x._replace(a=2.0)
    saw.append(type(y) is Pt)
    d = x._asdict()
    saw.append(type(d) is dict)
    return x.a * y.b + d["a"] + x[0] * len(x)


@PROGRAMS.at(Pt(0.5, [1.5, 2.0]))
def c41(saw, x):
    a, b = x
    b[0] = 3.0
    saw.append(type(x + (1,)) is tuple)
    return a * sum(x.b)


@PROGRAMS.at((0.5, (1.5, 2.5)))
def c42(saw, x):
    saw.append(type(x) is tuple)
    a, (b, c) = x
    saw.append(x < (1.0,))
    saw.append(x == (0.5, (1.5, 2.5)))
    return a * b * c + sum(x[1]) + (x + (1.0,))[0] + x[::-1][1]


@PROGRAMS.at((0.5, 1.5))
def c43(saw, x):
    try:
        x[0] = 1.0
    except TypeError as e:
        saw.append(str(e))
        return x[0]
    return x[1]


@PROGRAMS.at(D(0.5, [1.5, 2.5]))
def c44(saw, x):
    saw.append(type(x) is D)
    saw.append(type(x).__name__)
    y = replace(x, a=2.0)
    saw.append(type(y) is D)
    saw.append([f.name for f in fields(x)])
    d = asdict(x)
    saw.append(type(d) is dict)
    t = astuple(x)
    return x.a * y.b[0] + d["a"] * t[1][1]


@PROGRAMS.at(D(0.5, [1.5, 2.5]))
def c45(saw, x):
    x.a *= 3
    x.b.append(x.a)
    x.c = x.a
    saw.append(hasattr(x, "c"))
    saw.append(sorted(vars(x)))
    return sum(x.b) + x.c


@PROGRAMS.at(D(0.5, [1.5, 2.5]))
def c46(saw, x):
    y = copy.copy(x)
    y.a = 9.0
    y.b[0] = 7.0
    z = copy.deepcopy(x)
    z.b[1] = 3.0
    saw.append(x == y)
    return x.a * y.a + x.b[0] * x.b[1] + z.b[1]


@PROGRAMS.at(D(0.5, [1.5, 2.5]))
def c47(saw, x):
    saw.append(x == D(0.5, [1.5, 2.5]))
    saw.append(isinstance(x, D))
    saw.append(dataclasses.is_dataclass(x))
    saw.append(getattr(x, "zz", 3))
    x.a = x.a * 2
    return x.a


@PROGRAMS.at(F(0.5, 1.5))
def c48(saw, x):
    try:
        x.a = 3.0
    except dataclasses.FrozenInstanceError as e:
        saw.append(str(e))
        return x.a * x.b
    return x.a


@PROGRAMS.at(F(0.5, 1.5))
def c49(saw, x):
    match x:
        case F(a=a, b=b):
            return a * b
    return 0.0


@PROGRAMS.at(O(0.5, 1.5))
def c50(saw, x):
    saw.append(x < O(1.0, 0.0))
    saw.append(sorted([x, O(0.0, 0.0)])[0].a == 0)
    return max([x, O(0.0, 9.0)]).b * x.a


@PROGRAMS.at(K(0.5, 1.5))
def c51(saw, x):
    saw.append(x == K(0.5, 2.0))
    saw.append(x in [K(0.5, 9.0)])
    saw.append(type(x) is K)
    saw.append(hash(x))
    d = {x: 2.0}
    return x.a * d[K(0.5, 1.0)] * x.b


@PROGRAMS.at(K(0.5, np.array([1.5, 2.5])))
def c52(saw, x):
    x.b[0] = x.a
    x.b += 1
    y = x.b
    y *= 2
    return x.b.sum()


@PROGRAMS.at(Sub(a=0.5, b=1.5))
def c53(saw, x):
    saw.append(type(x) is Sub)
    saw.append(isinstance(x, dict))
    y = Sub(x)
    y["a"] = 2.0
    return x["a"] * x["b"] + y["a"]


@PROGRAMS.at(Lst([0.5, 1.5]))
def c54(saw, x):
    saw.append(type(x) is Lst)
    saw.append(type(x[:]) is list)
    saw.append(type(x + x) is list)
    return x.total() * x[0]


@PROGRAMS.at(OrderedDict(a=0.5, b=1.5))
def c55(saw, x):
    saw.append(type(x) is OrderedDict)
    x.move_to_end("a")
    saw.append(list(x))
    k, v = x.popitem(last=False)
    saw.append(k)
    return v * x["a"]


@PROGRAMS.at([[0.5, 1.5], [2.5, 3.5]])
def c56(saw, x):
    t = list(zip(*x))
    saw.append(type(t[0]) is tuple)
    return sum(a * b for a, b in t) + sum(sum(r) for r in x)


@PROGRAMS.at([[0.5, 1.5], [2.5, 3.5]])
def c57(saw, x):
    x[0], x[1] = x[1], x[0]
    x[0][0], x[1][1] = x[1][1], x[0][0]
    return x[0][0] * 2 + x[1][1] * 3 + x[0][1]


@PROGRAMS.at([[0.5, 1.5], [2.5, 3.5]])
def c58(saw, x):
    r = x[0]
    x[0] = [9.0, 9.0]
    r[0] = 4.0
    return sum(r) + sum(x[0])


@PROGRAMS.at([[0.5, 1.5], [2.5, 3.5]])
def c59(saw, x):
    y = [r[:] for r in x]
    y[0][0] = 1.0
    z = list(x)
    z[1][1] = 8.0
    return sum(map(sum, x)) + sum(map(sum, y))


@PROGRAMS.at([[0.5, 1.5], [2.5, 3.5]])
def c60(saw, x):
    x.append(x[0])
    x[2][0] = 7.0
    saw.append(x[2] is x[0])
    return x[0][0] * x[1][0]


@PROGRAMS.at({"w": np.array([1.0, 2.0]), "n": 3, "s": "tanh", "f": None, "k": [1, 2.0]})
def c61(saw, x):
    saw.append(x["n"])
    saw.append(x["s"])
    saw.append(x["f"] is None)
    saw.append(type(x["n"]) is int)
    saw.append(type(x["k"][0]) is int)
    return x["w"].sum() * x["n"] * x["k"][1]


@PROGRAMS.at({"w": np.array([1.0, 2.0]), "b": np.float32(1.5)})
def c62(saw, x):
    x["w"] *= 2
    w = x["w"]
    w[0] = 5
    x["w"] = w + 1
    return (x["w"] * w).sum() * float(x["b"])


@PROGRAMS.at({1: 0.5, (2, 3): 1.5})
def c63(saw, x):
    return x[1] * x[2, 3] + x.get((2, 3))


@PROGRAMS.at(types.SimpleNamespace(a=0.5, b=[1.5]))
def c64(saw, x):
    saw.append(type(x) is types.SimpleNamespace)
    x.a += 1
    x.c = x.b
    x.c.append(x.a)
    saw.append(sorted(vars(x)))
    return sum(x.b) + x.a


@PROGRAMS.at([0.5, [1.5, [2.5, [3.5]]]])
def c65(saw, x):
    def tot(v):
        return sum(map(tot, v)) if isinstance(v, list) else v

    return tot(x) ** 2


@PROGRAMS.at({"a": {"b": {"c": 0.5}}})
def c66(saw, x):
    y = x["a"]
    z = y["b"]
    z["c"] = z["c"] * 2
    saw.append(x["a"]["b"] is z)
    return x["a"]["b"]["c"]


@PROGRAMS.at([0.5, 1.5])
def c67(saw, x):
    it = iter(x)
    a = next(it)
    x[1] = 9.0
    return a * next(it)


@PROGRAMS.at([0.5, 1.5])
def c68(saw, x):
    out = []
    for v in x:
        out.append(v)
        if len(x) < 4:
            x.append(v * 2)
    saw.append(len(x))
    return sum(out)


@PROGRAMS.at({"a": 0.5, "b": 1.5})
def c69(saw, x):
    try:
        for k in x:
            x[k + "z"] = 1.0
    except RuntimeError as e:
        saw.append(str(e))
        return x["a"]
    return x["b"]


@PROGRAMS.at({"a": 0.5, "b": 1.5})
def c70(saw, x):
    ks = x.keys()
    vs = x.values()
    x["c"] = 2.5
    saw.append(list(ks))
    saw.append(len(vs))
    return sum(vs)

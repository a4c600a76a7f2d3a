"""Large arrays that a function reads without being given them are inputs of its program."""

import copy
import dataclasses
import functools
import pickle
import types

import numpy as np
import pytest
from call_counts import calls

import lineara
from lineara import explain, grad, jit
from lineara.errors import LinearaError, MutationError
from lineara.staging.capture.containers import elements

W = np.linspace(0.0, 1.0, 100)
V = np.linspace(1.0, 2.0, 100)
INDEX = np.arange(100)[::-1].copy()
MASK = np.arange(100) % 3 == 0
HOLDER = types.SimpleNamespace(w=np.linspace(0.0, 1.0, 100))
SETTINGS = types.ModuleType("settings")
SETTINGS.W = np.linspace(0.0, 1.0, 100)  # type: ignore[attr-defined]


@dataclasses.dataclass
class Part:
    w: np.ndarray

    def norm(self):
        return (self.w**2).sum()


class Base:
    def first(self, x):
        return x * self.w[7]


class Slotted:
    __slots__ = ("w",)

    def __init__(self):
        self.w = np.linspace(0.0, 1.0, 100)

    def called(self, x):
        return x * self.w[7]


class Model(Base):
    def __init__(self):
        self.w = np.linspace(0.0, 1.0, 100)
        self.part = Part(np.linspace(1.0, 2.0, 100))
        self.slotted = Slotted()

    @property
    def total(self):
        return self.w.sum()

    def __len__(self):
        return len(self.w)

    def __call__(self, x):
        return self.loss(x)

    def loss(self, x):
        s = 0.0
        for i in range(len(self)):
            s = s + self.w[i] * x
        return s + super().first(x)

    def parts(self):
        yield from self.w

    def through_a_generator(self, x):
        return sum([w * x for w in self.parts()])

    def handed_on(self, x):
        return given_an_object(self, x) + functools.reduce(lambda s, f: s + f(x), [self.loss], x)

    def along_a_part(self, x):
        g = grad(lambda m: (m.w**2).sum())(self.part)
        return g.w[7] * x + lineara.jvp(lambda m: m.norm(), (self.part,), (self.part,))[1] * x

    def along_parts(self, x):
        g = grad(lambda d: (d["p"].w * x).sum() + d["s"].called(x))(
            {"p": self.part, "s": self.slotted}
        )
        return g["s"].w.sum() + self.part.norm() * x

    def of_a_class(self, x):
        return Model.loss(self, x) + Part(self.w).norm() * x

    def in_lanes(self, x):
        return lineara.vmap(lambda v: v * x)(self.w).sum()

    def pickled(self, x):
        return pickle.loads(pickle.dumps(self.part)).w[7] * x

    def slope(self, x):
        return grad(self.loss)(x) * self.total


def given_an_object(model, x):
    return getattr_of_a_library(model) * x


def getattr_of_a_library(model):
    return dataclasses.replace(model.part, w=model.w).w[7] + dataclasses.astuple(model.part)[0][8]


MODEL = Model()


def helper(v, w):
    return v * w[7]


def named(v):
    return v * W[7]


def by_default(x):
    def inner(v, w=W, *, u=W):
        return v * w.sum() + u[7]

    return inner(x)


def by_a_class(x):
    class Inner:
        w = W

    return x * Inner.w[7] + x * Inner().w.sum()


def by_a_decorator(x):
    @functools.partial(lambda w, f: lambda v: f(v) * w[7], W)
    def inner(v):
        return v * 2.0

    return inner(x)


def by_a_generator(x):
    def parts():
        for w in W:
            yield w * x

    return sum(parts())


def by_a_loop(x):
    s = 0.0
    for i, w in enumerate(W):
        if w > 0.5:
            s = s + x * w * i
    return s


def by_a_condition(x):
    if W[7] > 0.5:
        return x * 3.0
    while x < 10.0 * W[7]:
        x = x + 1.0
    return x


def by_a_shadow(x):
    parts = [W * x for W in W[:5]]
    return sum(parts)


def by_statements(x):
    if not W[7] < 1e9:
        raise ValueError(W.shape)
    with np.errstate(divide="ignore"):
        s = x * W[7]
    try:
        s += W[8]
    finally:
        s *= W[9]
    return s


def by_another_name(x):
    w = W
    u, (v, _) = w, (W, 1.0)
    return x * (w[7] + u[8] * v[9]) + (t := W)[7] * t.sum()


READS = {
    "an item": lambda x: x * W[7],
    "an item at a staged place": lambda x: x * W[int(x) + 5],
    "slices": lambda x: x * W[5:9].sum() + W.reshape(10, -1)[0, 7] * W.reshape(10, -1).T[7, 0],
    "all": lambda x: (W * x).sum() + np.sum(x - W) + (W @ W) * x,
    "of arrays alone": lambda x: x * np.linalg.norm(W) + W.mean() + (2 * W).max(),
    "a choice": lambda x: x if W[7] > 0.5 else -x,
    "a truth": lambda x: x * (2.0 if any(W > 0.9) and not W[7] > 2 else 3.0),
    "np.where": lambda x: np.where(W > 0.5, x, -x).sum(),
    "numbers": lambda x: x * float(W[7]) + int(10 * W[7]) + round(float(W[7]), 1),
    "a list": lambda x: x * list(W)[7] + sorted(W)[7] + max(W) + sum(W),
    "a tuple": lambda x: x * (W, 1.0)[0][7] + {"w": W}["w"][8] + [W][0][9],
    "a star": lambda x: helper(*[x, W]) + helper(x, w=W) + helper(**{"v": x, "w": W}),
    "stacks": lambda x: x * np.stack([W, W])[1, 7] + np.concatenate((W, W))[107],
    "a lambda": lambda x: (lambda v, w=W: v * w[7] + W[8])(x),
    "a comprehension": lambda x: sum([w * x for w in W]) + sum(w * x for w in W if w > 0.5),
    "a function": lambda x: named(x) + helper(x, W),
    "a map": lambda x: sum(map(lambda w: w * x, W)) + functools.reduce(lambda s, w: s + w, W, x),
    "a derivative": lambda x: (
        grad(lambda v: (W * v * v).sum())(x) + lineara.jvp(named, (x,), (1.0,))[1]
    ),
    "a program": lambda x: jit(named)(x) + lineara.fori_loop(0, 9, lambda i, s: s * W[i], x),
    "an index": lambda x: (np.arange(100.0)[INDEX] * x)[7] + INDEX[7] * x,
    "a mask": lambda x: (np.arange(100.0)[MASK] * x).sum(),
    "an attribute of a module": lambda x: x * SETTINGS.W[7] + SETTINGS.W.sum(),
    "an attribute of an object": lambda x: x * HOLDER.w[7] + HOLDER.w.sum(),
    "an attribute of a model": lambda x: x * MODEL.w[7] + MODEL.w.sum(),
    "a method of a model": lambda x: MODEL.loss(x),
    "a call of a model": lambda x: MODEL(x),
    "a property of a model": lambda x: MODEL.total * x,
    "a generator of a model": lambda x: MODEL.through_a_generator(x),
    "an object in an object": lambda x: x * MODEL.part.w[7] + x * MODEL.slotted.w[7],
    "a slot of an object": lambda x: MODEL.slotted.called(x),
    "what is handed on": lambda x: MODEL.handed_on(x),
    "a derivative of a method": lambda x: MODEL.slope(x),
    "a copy of an object": lambda x: copy.copy(MODEL).w[7] * x,
    "a deep copy of an object": lambda x: copy.deepcopy(MODEL.part).w[7] * x,
    "objects in a list": lambda x: [MODEL][0].w[7] * x + OBJECTS[0].w[7] * x,
    "by a text": lambda x: x * globals()["W"][7] + vars(SETTINGS)["W"][8],
    "the shape": lambda x: x * len(W) * W.shape[0] * W.size * W.ndim,
    "what is given": lambda x: (W, x, {"w": W * 2})[2]["w"][7] * x,
}
OBJECTS = [MODEL.part]
READS |= {f.__name__: f for f in [
    MODEL.loss, MODEL.slope, MODEL.along_a_part, MODEL.along_parts, MODEL.of_a_class,
    MODEL.in_lanes, MODEL.pickled,
    by_default, by_a_class, by_a_decorator, by_a_generator, by_a_loop, by_a_condition, by_a_shadow,
    by_statements, by_another_name,
]}  # fmt: skip
CONSTANT = {
    "a comprehension",
    "an attribute of an object",
    "a copy of an object",
    "a deep copy of an object",
    "objects in a list",
    "pickled",
    "by a text",
}  # what is compared whole


def compared_whole(g):
    """The large arrays that a call of a jitted function compares whole."""
    (known,) = g.programs.values()
    return [w.thing for w in known.guard.watched if w.reader is elements and w.thing.size > 64]


@pytest.mark.parametrize("name", READS)
def test_what_an_array_of_outside_holds_is_read_in_each_call(name, monkeypatch):
    f = READS[name]
    g = jit(f)
    arrays = [W, INDEX, MASK, HOLDER.w, SETTINGS.W, MODEL.w, MODEL.part.w, MODEL.slotted.w]
    kept = [a.copy() for a in arrays]

    def agrees():
        for x in (2.0, 3.0):
            assert g(x) == pytest.approx(f(x), rel=1e-12)

    try:
        agrees()
        agrees()
        assert bool(compared_whole(g)) is (name in CONSTANT)
        for a in arrays:
            a[7:10] = a[7:10] * 0 + (a.dtype.type(1.75) if a.dtype.kind == "f" else 1)
        agrees()
        agrees()
        assert g.captures == 1 + (name in CONSTANT)
        for n, holder in (("W", globals()), ("INDEX", globals()), ("MASK", globals())):
            monkeypatch.setitem(holder, n, globals()[n][::-1].copy())
        monkeypatch.setattr(SETTINGS, "W", SETTINGS.W[::-1].copy())
        for holder in (HOLDER, MODEL, MODEL.part, MODEL.slotted):
            monkeypatch.setattr(holder, "w", holder.w[::-1].copy())
        agrees()
        agrees()
        W[7] = W[8] = MODEL.w[7] = MODEL.part.w[7] = MODEL.slotted.w[7] = 0.25
        SETTINGS.W[7] = 0.25
        agrees()
        monkeypatch.setitem(globals(), "W", np.linspace(3.0, 4.0, 120))
        agrees()
        agrees()
    finally:
        for a, was in zip(arrays, kept, strict=True):
            a[...] = was


def test_an_array_under_another_name_lies_or_is_of_another_type(monkeypatch):
    def f(x):
        return (W * x).sum() + V[7]

    g = jit(f)
    for w in (
        W, W[::-1], np.asfortranarray(W), np.repeat(W, 2)[::2], W.astype(np.float32), W + 1j,
        W.reshape(10, 10), W.tolist(), V,
    ):  # fmt: skip
        monkeypatch.setitem(globals(), "W", w)
        if isinstance(w, list):
            w = globals()["W"] = np.array(w)
        for _ in range(3):
            assert g(2.0) == pytest.approx(f(2.0))


def test_names_for_one_array_may_part(monkeypatch):
    monkeypatch.setitem(globals(), "V", W)

    def f(x):
        return W[7] * x + (V[7] if W is V else 10.0 * V[7])

    g = jit(f)
    assert g(2.0) == g(2.0) == f(2.0)
    monkeypatch.setitem(globals(), "V", W + 1.0)
    assert g(2.0) == g(2.0) == f(2.0)
    monkeypatch.setitem(globals(), "V", W)
    assert g(2.0) == g(2.0) == f(2.0)


def test_a_variable_of_a_closure_that_is_rebound_is_the_input():
    w = np.arange(100.0)

    @jit
    def f(x):
        return x * w.sum()

    for k in range(5):
        w = np.arange(100.0) * k
        assert f(2.0) == 2.0 * w.sum()
    assert f.captures == 1


def test_a_call_asks_the_same_however_long_an_array_is():
    def cost(n):
        w = np.ones(n)

        @jit
        def f(x):
            return x * w[3]

        return calls(lambda: f(2.0), warm=3)

    assert cost(100_000) == cost(100)


def test_derivatives_take_the_array_as_it_is_at_the_call():
    w = np.arange(100.0)

    @jit
    def f(x):
        s = 0.0
        for v in w:
            s = s + np.sin(v * x)
        return s

    for _ in range(2):
        assert grad(f)(0.3) == pytest.approx((w * np.cos(0.3 * w)).sum())
        value, back = lineara.vjp(f, 0.3)
        assert value == pytest.approx(np.sin(0.3 * w).sum())
        want = (w * np.cos(0.3 * w)).sum()
        w[7] = 50.0
        assert back(1.0)[0] == pytest.approx(want)
    assert f.captures == 1


def test_a_write_into_an_array_of_outside_is_refused():
    w = np.ones(100)

    def sets(x):
        w[7] = 2.0
        return x * w[7]

    def adds(x):
        w[7] += x
        return x

    def sorts(x):
        w.sort()
        w[0] = 5.0
        return x * w[0]

    for f in (sets, adds, sorts):
        with pytest.raises(LinearaError):
            jit(f)(2.0)
        assert w.tolist() == [1.0] * 100


def test_an_argument_that_is_written_may_not_be_an_array_of_outside():
    w = np.ones(100)

    @jit
    def f(x):
        x[0] = 5.0
        return x * w

    assert f(np.zeros(100))[0] == 5.0
    with pytest.raises(MutationError):
        f(w[:])
    w = np.ones(100)
    with pytest.raises(MutationError):
        f(w)


def test_explain_tells_of_the_arrays():
    w, mask = np.arange(100.0), np.arange(100) % 3 == 0

    def reads(x):
        return x * w.sum()

    def needs(x):
        return (w[mask] * x).sum()

    for f in (reads, needs):
        report = explain(f, 2.0)
        assert report.refused is None
    assert explain(reads, 2.0).inputs == ("float64[100]",)
    assert len(explain(reads, 2.0).statements) == 0


def until(x):
    while x < 10.0 * W[7]:
        x = x + 1.0
    return x


def test_what_is_written_into_another_array_of_the_name_is_read_by_machine_code(monkeypatch):
    g = jit(until)  # the loop is compiled at once
    monkeypatch.setitem(globals(), "W", np.full(100, 0.5))
    assert [g(2.0), g(2.0)] == [5.0, 5.0]
    other = np.full(100, 0.5)
    monkeypatch.setitem(globals(), "W", other)
    assert [g(2.0), g(2.0)] == [5.0, 5.0]
    other[7] = 0.75
    assert [g(2.0), g(2.0)] == [8.0, 8.0]
    assert g.captures == 1


FIRST, SECOND = np.linspace(0.0, 1.0, 100), np.linspace(1.0, 2.0, 100)


def in_two_loops(x):
    s = x * 1.0
    for i in range(5):
        for j in range(100):
            s = s * 0.5 * x + FIRST[j] * SECOND[i]
    return s


def in_a_branch_of_a_loop(x):
    s = x * 1.0
    for i in range(100):
        if x > i:
            s = s * 0.9 + x * FIRST[i] if x > 2 * i else s - SECOND[i]
    return s


def in_while_loops(x):
    s, i = x * 1.0, 0
    while i < 80:
        k = 0
        while k < 3:
            s, k = s * 0.9 + FIRST[i] * x, k + 1
        i += 1
    return s


def of_a_function(x):
    def step(s, i):
        for j in range(66):
            s = s * 0.99 + FIRST[j] * SECOND[i] * x
        return s

    for i in range(70):
        x = step(x, i)
    return x


@pytest.mark.parametrize("f", [in_two_loops, in_a_branch_of_a_loop, in_while_loops, of_a_function])
@pytest.mark.parametrize("derived", [lineara.grad, lambda f: lineara.grad(lineara.grad(f))])
def test_a_form_within_a_form_reads_large_arrays_under_a_differentiation(f, derived, monkeypatch):
    jitted = lineara.jit(derived(f))
    for x in (0.5, 5.5):
        np.testing.assert_allclose(jitted(x), derived(f)(x), rtol=1e-12)
    monkeypatch.setitem(globals(), "FIRST", np.cos(FIRST))
    np.testing.assert_allclose(jitted(5.5), derived(f)(5.5), rtol=1e-12)
    told = [s.what for s in lineara.explain(jitted, 0.5).statements]
    assert not [what for what in told if "written out" in what]

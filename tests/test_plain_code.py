"""Plain NumPy and Python code works unchanged: one test for each form of code that users write.

`check` compares the value with the plain run and the gradient with central differences.
"""

import copy
import functools
import itertools
import math
import operator
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp as math_exp
from math import pi
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy import exp, sin, sqrt, zeros
from numpy.linalg import norm

import lineara
from lineara.errors import DetachError, LeakedVariableError, NonScalarOutputError, TypeMismatchError

X = np.array([0.6, -0.4, 1.3, 0.8])


def differences(f: Callable[[Any], Any], x: Any, h: float = 1e-6) -> Any:
    """Central differences of fourth order, plain NumPy only."""
    x = np.asarray(x, float)
    found = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[i] = h

        def at(k: int, e: Any = e) -> float:
            y = x + k * e
            return float(f(y if y.ndim else float(y)))

        found[i] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    return found


def check(f: Callable[[Any], Any], x: Any = X, tol: float = 1e-8) -> None:
    """The value of the plain run, the gradient of differences, forward, reverse and nested."""
    x = x.copy() if isinstance(x, np.ndarray) else x
    before = copy.deepcopy(x)
    value, g = lineara.value_and_grad(f)(x)
    assert np.array_equal(x, before), "the argument is as it was"
    plain = f(copy.deepcopy(x))
    assert abs(value - plain) <= 1e-15 * (1 + abs(plain)), f"{value!r} but plain {plain!r}"
    expected = differences(f, x)
    scale = 1 + np.max(np.abs(expected))
    assert np.allclose(g, expected, rtol=0, atol=tol * scale), f"{g} but {expected}"
    v = np.cos(np.arange(expected.size)).reshape(expected.shape)
    _, ahead = lineara.jvp(f, (x,), (v if v.ndim else float(v),))
    assert abs(ahead - np.sum(expected * v)) <= tol * scale * (1 + v.size)
    outer = lineara.grad(lambda y: np.sum(lineara.grad(f)(y) * v))(x)
    second = (lineara.grad(f)(x + 1e-5 * v) - lineara.grad(f)(x - 1e-5 * v)) / 2e-5
    assert np.allclose(outer, second, rtol=1e-5, atol=1e-5 * scale), f"{outer} but {second}"


# --- making and filling arrays -------------------------------------------------------------------


def test_zeros_then_elements_are_assigned() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(4)
        for i in range(4):
            y[i] = x[i] ** 2 * (i + 1)
        return np.sum(np.sin(y))

    check(f)


def test_array_of_traced_numbers() -> None:
    def f(x: Any) -> Any:
        return np.array([x[0], x[1] * x[2], 3.0]) @ np.array([1.0, x[3], x[0]])

    check(f)


def test_array_of_nested_lists() -> None:
    def f(x: Any) -> Any:
        rotation = np.array([[np.cos(x[0]), -np.sin(x[0])], [np.sin(x[0]), np.cos(x[0])]])
        return (rotation @ x[1:3])[0] * np.array((x[0], 1, 2))[1:].sum()

    check(f)


def test_functions_imported_by_name() -> None:
    def f(x: Any) -> Any:
        y = zeros(2)
        y[0] = exp(x[0]) + sin(x[1]) * math_exp(x[2])
        y[1] = sqrt(x[3]) * pi
        return norm(y)

    check(f)


OF_MATH = "sin cos tan exp expm1 log log2 log10 log1p sqrt tanh sinh cosh atan asin asinh erf erfc"
OF_MATH += " gamma lgamma fabs radians degrees cbrt exp2"


@pytest.mark.parametrize("name", OF_MATH.split())
def test_functions_of_math(name: str) -> None:
    check(lambda x: getattr(math, name)(x) * x, 0.7)


def test_functions_of_math_with_several_arguments() -> None:
    def f(x: Any) -> Any:
        return (
            math.atan2(x[0], x[1])
            + math.hypot(x[0], x[1], x[2])
            + math.pow(x[3], 3)
            + math.fsum([x[0], x[1] * x[2], 1.0])
            + math.prod([x[0], x[3], 2])
            + math.dist([x[0], x[1]], [x[2], 0.0])
            + math.copysign(x[0], -1.0)
            + math.fmod(5.0 * x[2], 2.0)
            + math.log(x[3], 3.0)
        )

    check(f)


def test_locally_constant_functions_of_math() -> None:
    def f(x: Any) -> Any:
        n = math.floor(x[2]) + math.ceil(x[0]) + math.trunc(x[2] * 3) + round(x[3]) + int(x[2] * 7)
        ok = not math.isnan(x[0]) and math.isfinite(x[1]) and math.isclose(x[0], x[0])
        return x[0] * n if ok else x[1]

    check(f)


def test_constants_that_are_made_then_written() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        made = [np.linspace(0, 1, 4), np.arange(4.0), np.ones(4), np.full(4, 2.0), np.empty_like(x)]
        made += [np.eye(4)[0], np.zeros_like(x), np.full_like(x, 0.5), np.logspace(0, 1, 4)]
        made += [
            np.tri(4)[2],
            np.zeros(4) + 1.0,
            2 * np.ones(4) - np.arange(4.0),
            np.geomspace(1, 2, 4),
        ]
        made += [
            np.sqrt(np.linspace(0, 1, 4)),
            np.array([1.0, 2.0, 3.0, 4.0]),
            np.asarray([1.0] * 4),
        ]
        for k, y in enumerate(made):
            y[:] = y if k != 4 else 0.0
            y[k % 4] = x[k % 4] * (k + 1)
            total += y @ y + y[0]
        return total

    check(f)


def test_constants_go_to_functions_without_a_rule() -> None:
    def f(x: Any) -> Any:
        t = np.linspace(0.1, 0.9, 4)
        window = np.kaiser(4, 2.0) + np.interp(t, [0.0, 1.0], [1.0, 3.0])
        found = np.unwrap(t) + np.nan_to_num(t) + np.histogram(t, 4)[0] + window
        return x @ found + float(t[1]) * x[0] + complex(t[0]).real * x[1] + np.asarray(t) @ x

    check(f)


def test_linspace_and_arange_of_traced_bounds() -> None:
    def f(x: Any) -> Any:
        a = np.linspace(x[0], 3 * x[2], 5)
        b = np.linspace(0.0, x[3], 4, endpoint=False)
        c, step = np.linspace(x[1], 2.0, 3, retstep=True)
        d = np.arange(x[0], 4.0, 0.7)
        e = np.full((2, 2), x[0]) + np.full(2, x[1:3])
        h = np.logspace(x[0], 1.0, 4)
        return (a**2).sum() + (b**3).sum() + (c * step).sum() + np.sin(d).sum() + e.sum() + h.sum()

    check(f)


def test_integer_arrays_truncate_as_in_numpy() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3, dtype=int)
        y[0] = x[2] * 3
        y[1] = 7
        return y[0] * x[0] + y[1] * x[1]

    check(f)


def test_float_is_a_dtype_a_class_and_a_function() -> None:
    def f(x: Any) -> Any:
        def inner(v: float | Any, w: "float" = 1.0) -> float:
            return v * w

        y = np.zeros(3, float)
        y[0] = float(x[0]) + np.float64(x[1]) ** 2
        y[1:] = np.arange(2).astype(float) + float("0.5") + np.ones(2, dtype=np.float64)
        kinds = isinstance(x[0], float) and isinstance(x[0] * 1.0, float | int)
        shapes = isinstance(x, np.ndarray) and not isinstance(x[0], np.ndarray | int | str)
        assert kinds
        assert shapes
        assert y.dtype in (float, np.float64)
        assert np.finfo(float).eps < 1e-15
        assert np.issubdtype(y.dtype, np.floating)
        assert isinstance(float(3), float)
        match x[2] * 1.0:
            case int():
                return x[0]
            case float(v):
                return inner(v, y.sum()) + x[1]

    check(f)


def test_single_precision() -> None:
    x = np.array([0.5, 0.25, 2.0], np.float32)

    def f(v: Any) -> Any:
        y = np.zeros(3, np.float32)
        y[0] = v[0] * 3
        y[1:] = v[:2] * v[2]
        y *= v
        return (y * np.float32(2)).sum()

    value, g = lineara.value_and_grad(f)(x)
    assert value == f(x)
    assert g.dtype == np.float32
    assert g.tolist() == [7.0, 10.0, 2.25]


def test_double_written_into_single_precision_is_rounded() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(2, np.float32)
        y[0] = x[0]
        y[1] = 1 / 3
        return y[0] * 3.0 + y[1]

    value, g = lineara.value_and_grad(f)(np.array([1 / 3]))
    assert value == f(np.array([1 / 3]))
    assert g.tolist() == [3.0]


def test_of_a_complex_number_of_numpys_written_into_real_ones_the_real_part_counts() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(2)
        y[0] = x[0] * (2 + 1j)
        return y[0]

    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        value, slope = lineara.value_and_grad(f)(X)
    assert (value, slope.tolist()) == (2 * X[0], [2.0, *[0.0] * (len(X) - 1)])


def test_a_complex_number_of_pythons_written_into_real_ones_is_an_error() -> None:
    def f(z: Any) -> Any:
        y = np.zeros(2)
        y[0] = z * 1j
        return y[0]

    with pytest.raises(TypeMismatchError, match="take its real part, or make the array complex"):
        lineara.grad(f)(1.0)


def test_complex_arrays_inside_a_real_function() -> None:
    def f(x: Any) -> Any:
        z = np.zeros(4, complex)
        z[:2] = x[:2] + 1j * x[2:]
        z[2] = complex(x[0], x[3])
        z *= np.exp(1j * x)
        return (z * z.conj()).real.sum() + abs(z[0] + z[2]) + z.imag[1] + np.angle(z[2])

    check(f)


def test_arrays_without_axes() -> None:
    def f(x: Any) -> Any:
        s = np.array(0.0)
        for v in x:
            s += v**2
        t = s
        t *= x[0]
        u = np.zeros(())
        u[()] = x[1]
        u[...] *= 3
        w = np.array(x[2])
        w += 1
        return s + u + math.sin(w) + np.float64(2.0) * s.item() + x[2]

    check(f)


def test_numpy_scalars_as_operands() -> None:
    def f(x: Any) -> Any:
        a, b, n = np.float64(2.5), np.float32(0.5), np.int64(3)
        return (a * x[0] + x[1] / a - b * x[2] + x[3] ** n + n * x[0] + x.sum() * a) / n + a / x[3]

    check(f)


def test_int_arguments_are_promoted() -> None:
    assert lineara.grad(lambda x: x**2)(3) == 6.0
    assert lineara.grad(lambda p: p["a"] * p["b"])({"a": 2, "b": 3}) == {"a": 3.0, "b": 2.0}
    assert lineara.grad(lambda x: (x**2).sum())(np.array([1, 2])).tolist() == [2.0, 4.0]


def test_ints_and_flags_beside_floats_are_constants() -> None:
    g = lineara.grad(lambda p: p[0] ** p[1] if p[2] else 0.0)((3.0, 2, True))
    assert g == (6.0, 0, True)
    assert lineara.grad(lambda p: p["x"] * p["n"])({"x": 2.0, "n": 5, "name": "a", "no": None}) == {
        "x": 5.0,
        "n": 0.0,
        "name": "a",
        "no": None,
    }


# --- control flow --------------------------------------------------------------------------------


def test_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i, v in enumerate(x):
            if v > 0.7:
                total += v**2
            elif v < 0:
                total -= v * i
            else:
                total *= v if total else 1.0
        n = 0
        while total < 10 and n < 50:
            total = total * 1.3 + x[0]
            n += 1
        return total

    check(f)


def test_recursion() -> None:
    def power(v: Any, n: int) -> Any:
        return 1.0 if n == 0 else v * power(v, n - 1)

    check(lambda x: power(x[0], 5) + power(x[2], 3))


def test_closures_comprehensions_and_generators() -> None:
    def f(x: Any) -> Any:
        scale = x[0] * 2

        def g(v: Any) -> Any:
            return v * scale

        squares = [g(v) ** 2 for v in x if v > 0]
        table = {i: v for i, v in enumerate(x)}
        lazy = (v * table[0] for v in squares)
        return sum(lazy) + sum(map(g, x)) + functools.reduce(operator.mul, [v + 2 for v in x])

    check(f)


def test_iteration_unpacking_membership_and_length() -> None:
    def f(x: Any) -> Any:
        a, *rest, d = x
        (p, q), (r, s) = x.reshape(2, 2)
        pairs = [u * v for u, v in itertools.pairwise(x)]
        within = 1.0 * (99.0 not in x)
        n = len(x) + len(x[1:]) + len(list(x)) + x.size + x.ndim + x.shape[0]
        back = [v for v in reversed(x)]
        return a * d + sum(rest) + p * s - q * r + sum(pairs) * n * within + back[0] * back[1]

    check(f)


def test_builtins() -> None:
    def f(x: Any) -> Any:
        ordered = sorted(x, key=lambda v: -v)
        return (
            sum(x)
            + min(x) * max(x)
            + abs(x[1])
            + ordered[0] ** 2
            + sorted(x)[1]
            + round(x[2]) * x[0]
            + pow(x[0], 2)
            + max(x[0], 0.5)
            + min(x.tolist(), key=abs)
            + divmod(x[2], 0.5)[1]
            + any(v > 1 for v in x) * x[3]
            + all(x > -1) * x[0]
            + sum((v for v in x), start=x[0])
        )

    check(f)


def test_text_of_traced_values() -> None:
    seen: dict[str, str] = {}

    def f(x: Any) -> Any:
        seen["repr"], seen["str"] = repr(x), str(x[0])
        seen["format"] = f"{x[0]:.2f}|{x[0]}|{x[0]!r}"
        return x[0] ** 2

    lineara.grad(f)(X)
    assert seen["repr"] == "traced(array([ 0.6, -0.4,  1.3,  0.8]))"
    assert seen["str"] == "0.6"
    assert seen["format"] == "0.60|0.6|traced(0.6)"


def test_printing_a_traced_value(capsys: Any) -> None:
    def f(x: Any) -> Any:
        y = np.zeros(2)
        y[0] = x[0]
        print(x[0], y)
        return y[0]

    lineara.grad(f)(X)
    assert capsys.readouterr().out == "0.6 [0.6 0. ]\n"


# --- containers and classes ----------------------------------------------------------------------


@dataclass
class Params:
    """Parameters of a model."""

    w: Any
    b: float = 0.5
    name: str = "model"
    layers: list[Any] = field(default_factory=list)

    def apply(self, x: Any) -> Any:
        """The model."""
        return np.tanh(self.w * x + self.b).sum()

    @property
    def size(self) -> Any:
        """A penalty."""
        return (self.w**2).sum() + self.b**2


def test_dataclass() -> None:
    p = Params(np.array([0.5, -0.3]), 0.2, "a", [np.array([1.0]), 2.0])

    def f(p: Params) -> Any:
        q = replace(p, b=p.b * 2)
        return q.apply(1.5) + p.size * p.layers[1] + p.layers[0].sum()

    g = lineara.grad(f)(p)
    assert isinstance(g, Params)
    assert g.name == "a"
    expected = differences(lambda w: f(Params(w, 0.2, "a", p.layers)), p.w)
    assert np.allclose(g.w, expected, atol=1e-8)
    assert abs(g.b - differences(lambda b: f(Params(p.w, b, "a", p.layers)), 0.2)) < 1e-8
    assert g.layers[0].tolist() == [1.0]
    assert abs(g.layers[1] - p.size) < 1e-12


class Point(NamedTuple):
    """A point of the plane."""

    x: Any
    y: Any

    def norm(self) -> Any:
        """Its length."""
        return math.sqrt(self.x**2 + self.y**2)


Pair = namedtuple("Pair", "left right")


def test_named_tuples() -> None:
    g = lineara.grad(lambda p: p.norm() * p.x + Point(p.y, p.x).norm())(Point(3.0, 4.0))
    assert isinstance(g, Point)
    assert np.allclose(g, (5 + 9 / 5 + 3 / 5, 12 / 5 + 4 / 5))
    h = lineara.grad(lambda p: p.left * p.right[0]._replace(x=2.0).x)(Pair(3.0, [Point(1.0, 2.0)]))
    assert h == Pair(2.0, [Point(0.0, 0.0)])


def test_attrs_classes() -> None:
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Model:
        w: Any
        b: float

        def loss(self, x: Any) -> Any:
            return np.sum((self.w * x + self.b) ** 2)

    g = lineara.grad(lambda m: m.loss(2.0))(Model(np.array([1.0, 2.0]), 0.5))
    assert isinstance(g, Model)
    assert g.w.tolist() == [10.0, 18.0]
    assert g.b == 14.0


def test_lists_of_arrays_and_dicts_of_lists() -> None:
    params = {"layers": [np.ones((2, 2)), np.full((2, 2), 0.5)], "bias": [0.1, 0.2]}

    def f(p: Any) -> Any:
        h = np.array([1.0, 2.0])
        for w, b in zip(p["layers"], p["bias"], strict=True):
            h = np.tanh(w @ h + b)
        return h.sum() + sum(p["bias"])

    g = lineara.grad(f)(params)
    expected = differences(
        lambda w: f({**params, "layers": [w, params["layers"][1]]}), np.ones((2, 2))
    )
    assert np.allclose(g["layers"][0], expected, atol=1e-8)
    assert isinstance(g["bias"], list)


def test_local_containers() -> None:
    def f(x: Any) -> Any:
        queue = deque([x[0]])
        queue.append(x[1] * 2)
        groups: Any = defaultdict(list)
        for i, v in enumerate(x):
            groups[i % 2].append(v)
        memo = {}
        memo["a"] = queue.popleft() * queue[0]
        memo.setdefault("b", x[2])
        total = memo["a"] + memo.pop("b")
        for pair in itertools.combinations(x, 2):
            total += pair[0] * pair[1]
        return total + sum(groups[0]) * groups[1][0] + np.array(groups[1]).prod()

    check(f)


def test_lists_that_become_arrays() -> None:
    def f(x: Any) -> Any:
        rows, flat = [], []
        for i in range(3):
            rows.append(x * (i + 1))
            flat.append(x[i] ** 2)
            flat.append(1.0)
        a, b = np.array(rows), np.stack(rows, axis=1)
        c = np.concatenate([rows[0], np.array(flat)])
        d = np.vstack([x, rows[1]]) @ np.hstack([x[:2], x[2:]])
        return (
            (a @ b).sum()
            + c @ c
            + np.array(flat)[::2].prod()
            + d.sum()
            + np.column_stack(rows).sum()
        )

    check(f)


def test_classes_with_methods_and_state() -> None:
    class Body:
        count = 0

        def __init__(self, mass: Any, at: Any) -> None:
            self.mass, self.at = mass, at
            self.speed = np.zeros(2)
            self.path: list[Any] = []

        def step(self, force: Any, dt: float) -> None:
            self.speed += dt * force / self.mass
            self.at = self.at + dt * self.speed
            self.path.append(self.at[0])
            Body.count += 1

        def __call__(self) -> Any:
            return self.energy

        @property
        def energy(self) -> Any:
            return 0.5 * self.mass * (self.speed**2).sum()

        def __lt__(self, other: "Body") -> bool:
            return self.energy < other.energy

    def f(x: Any) -> Any:
        bodies = [Body(x[0] + 1, x[1:3]), Body(2.0, np.array([x[3], 0.0]))]
        for _ in range(4):
            d = bodies[0].at - bodies[1].at
            pull = -d / np.linalg.norm(d) ** 3
            bodies[0].step(pull, 0.1)
            bodies[1].step(-pull, 0.1)
        return max(bodies)() + sum(bodies[0].path) + bodies[1].energy

    check(f)


# --- writing, in every form ----------------------------------------------------------------------


def test_slices_are_assigned() -> None:
    def f(x: Any) -> Any:
        y = np.zeros((4, 4))
        y[0] = x
        y[1:3, 2] = x[:2] * 3
        y[:, 0] += x[::-1]
        y[3, :] = 2.0
        y[-1, 1:3] = [x[0], x[1] * x[2]]
        y[..., 1] *= x[3]
        y[2] = y[0]
        y[0, 0] = 7.0
        return np.sum(y * y) + y[2] @ y[0]

    check(f)


def test_masks_and_index_arrays_are_assigned() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[y > 1] = x[0]
        y[[0, 2]] *= x[1]
        y[np.array([3, 1])] += x[2:]
        z = np.zeros((2, 4))
        z[:, [1, 3]] = x[:2]
        z[z == 0] = x[3] ** 2
        z[np.ix_([0, 1], [0, 2])] += x[:2]
        return np.sin(y).sum() + (z**2).sum()

    check(f)


def test_swaps() -> None:
    def f(x: Any) -> Any:
        y = x * np.arange(1.0, 5.0)
        y[0], y[2] = y[2], y[0]
        a = np.outer(y, x)
        a[[0, 1]] = a[[1, 0]]
        a[2], a[3] = a[3], a[2]
        b = a.copy()
        b[0], b[1] = b[1].copy(), b[0].copy()
        return y @ np.arange(4.0) + (a * np.arange(16.0).reshape(4, 4)).sum() + (b[0] ** 2).sum()

    check(f)


def test_in_place_on_the_argument_and_its_aliases() -> None:
    def f(x: Any) -> Any:
        y = x
        y += 1
        row = y[1:]
        row *= 2
        x[0] = x[3] ** 2
        z = x[::-1]
        z -= x.mean()
        x **= 2
        x /= 3.0
        return np.sin(y).sum() + row @ z[1:]

    check(f)


def test_in_place_writes_of_views_of_views() -> None:
    def f(x: Any) -> Any:
        a = np.zeros((3, 4))
        a += x
        block = a[1:, ::2]
        column = block.T[1]
        column += x[:2]
        column[0] = x[3]
        a.T[0][1:] *= 3
        a.reshape(-1)[5] = x[1] ** 2
        a.ravel()[2] = x[2] ** 2
        a.flat[7] = x[0]
        return (a**2).sum() + column.sum() * block[0, 0]

    check(f)


def test_flat_and_flatten() -> None:
    def f(x: Any) -> Any:
        a = x.reshape(2, 2).copy()
        copied = a.flatten()
        a.flat[1:3] = x[0] * 2
        a.T.flat[1] = x[3]
        total = sum(v * k for k, v in enumerate(a.flat))
        return total + copied @ x + a.flat[2] ** 2 + (a**2).sum() + len(a.flat)

    check(f)


def test_functions_that_write() -> None:
    def f(x: Any) -> Any:
        y, z = np.zeros(4), np.zeros((2, 4))
        np.copyto(y, x)
        np.copyto(z, x, where=np.array([[True], [False]]))
        y.fill(x[0])
        np.put(z, [1, 6], x[:2])
        np.putmask(z, z == 0, x[2:])
        np.place(y, np.array([1, 0, 1, 0]), [x[1], x[2]])
        w = np.zeros((3, 3))
        np.fill_diagonal(w, x[0])
        w[np.diag_indices(3)] += x[:3]
        np.put_along_axis(w, np.array([[0], [1], [2]]), x[3] ** 2, axis=1)
        np.add.at(y, [0, 0, 3], x[:3])
        np.subtract.at(y, [1, 1], x[0])
        return np.sin(y).sum() + (z * np.arange(8.0).reshape(2, 4)).sum() + (w**2).sum()

    check(f)


def test_sort_in_place_and_methods_of_arrays() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y.sort()
        z = y.copy()
        z[::2].sort()
        m = x.reshape(2, 2)
        return (
            y @ np.arange(4.0)
            + z.sum()
            + x.mean() * x.std()
            + x.var()
            + x.prod()
            + x.max()
            - x.min()
            + x.cumsum()[2]
            + x.cumprod()[3]
            + x.dot(x)
            + m.T.dot(m).trace()
            + m.swapaxes(0, 1)[0, 1]
            + x.clip(-0.2, 1.0).sum()
            + x.repeat(2)[3]
            + x.take([1, 1]).sum()
            + m.diagonal().sum()
            + x.astype(float).sum()
            + m.squeeze().sum(axis=0)[1]
            + x[x.argmax()] ** 2
            + x[x.argsort()][0]
            + x.round(1).sum()
            + m.item(1, 1)
        )

    check(f)


def test_ufuncs_with_out_where_and_their_methods() -> None:
    def f(x: Any) -> Any:
        y = np.empty(4)
        np.multiply(x, 2.0, out=y)
        np.add(y, x, y)
        z = np.zeros(4)
        np.sqrt(x, out=z, where=x > 0)
        w = np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.7)
        total = np.add.reduce(y) + np.multiply.reduce(x) + np.add.accumulate(x)[2]
        total += (
            np.multiply.outer(x, y).sum() + np.maximum.reduce(x) + np.add.outer(x, x)[1, 2] ** 2
        )
        s = np.zeros(1)
        np.sum(y, axis=0, keepdims=True, out=s)
        steps, flags = np.zeros(4), np.zeros(4, bool)
        np.floor(x * 3, out=steps)
        np.greater(x, 0, out=flags)
        total += steps @ x + flags @ x + np.add.reduce(x, where=flags)
        np.add.reduce(x * x, out=s[0, ...])
        return total + z @ z + w.sum() + s[0] ** 2

    check(f)


def test_where_and_select() -> None:
    def f(x: Any) -> Any:
        mask = np.zeros(4, bool)
        mask[1] = True
        y = np.where(mask, x * 2, x**2)
        mask[:] = True
        return y @ np.where(x > 0, x, 0.1 * x) + np.maximum(x, 0).sum() + np.abs(x).sum()

    check(f)


def test_a_reused_buffer_gives_the_right_gradient() -> None:
    def f(x: Any) -> Any:
        buffer, total = np.zeros(4), 0.0
        for k in range(3):
            buffer[:] = k + np.arange(4)
            total += x @ (buffer * x)
            buffer *= x[0]
            total += buffer.sum()
        return total

    check(f)


CAPTURED = np.array([1.0, 2.0, 3.0, 4.0])


def test_a_captured_array_that_changes_after_its_use() -> None:
    small, total = np.zeros(4), []

    def f(x: Any) -> Any:
        y = 0.0
        for k in range(3):
            small[:] = k
            y = y + np.sum(x * small * x) + small @ x
        total.append(y)
        return y + (CAPTURED * x).sum()

    check(f)
    assert CAPTURED.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_traced_number_written_into_a_captured_array_is_an_error() -> None:
    def f(x: Any) -> Any:
        CAPTURED[0] = x[0]
        return CAPTURED.sum()

    with pytest.raises(DetachError, match="make the array that is written"):
        lineara.grad(f)(X)
    assert CAPTURED.tolist() == [1.0, 2.0, 3.0, 4.0]


# --- algorithms by hand --------------------------------------------------------------------------


def test_matrix_built_row_by_row() -> None:
    def f(x: Any) -> Any:
        n = len(x)
        a = np.zeros((n, n))
        for i in range(n):
            a[i] = np.roll(x, i) * (i + 1)
            a[i, i] += 1
        return np.trace(a @ a.T) + np.linalg.solve(a + 5 * np.eye(n), x)[0]

    check(f)


def test_finite_difference_stencil() -> None:
    def f(x: Any) -> Any:
        u = np.zeros((5, 5))
        u[2, 1:] = x
        for _ in range(3):
            new = u.copy()
            for i in range(1, 4):
                for j in range(1, 4):
                    new[i, j] = u[i, j] + 0.2 * (
                        u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j]
                    )
            u[1:-1, 1:-1] = new[1:-1, 1:-1]
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] - u[:-2, 1:-1]) * u[1:-1, 1:-1]
        return (u**2).sum()

    check(f)


def test_gauss_elimination_in_place() -> None:
    def f(x: Any) -> Any:
        a = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]])
        a[0, 2] = x[0]
        a[1, 0] *= x[2]
        b = x[:3].copy()
        n = 3
        for k in range(n):
            pivot = k + int(np.argmax(np.abs(a[k:, k])))
            if pivot != k:
                a[[k, pivot]] = a[[pivot, k]]
                b[k], b[pivot] = b[pivot], b[k]
            for i in range(k + 1, n):
                c = a[i, k] / a[k, k]
                a[i, k:] -= c * a[k, k:]
                b[i] -= c * b[k]
        y = np.zeros(n)
        for i in reversed(range(n)):
            y[i] = (b[i] - a[i, i + 1 :] @ y[i + 1 :]) / a[i, i]
        return y @ y

    check(f)


def test_cholesky_by_hand() -> None:
    def f(x: Any) -> Any:
        a = np.outer(x, x) + 3 * np.eye(4)
        low = np.zeros_like(a)
        for i in range(4):
            for j in range(i + 1):
                s = a[i, j] - sum(low[i, k] * low[j, k] for k in range(j))
                low[i, j] = math.sqrt(s) if i == j else s / low[j, j]
        return np.log(np.diag(low)).sum() + low[3, 0]

    check(f)


def test_thomas_algorithm() -> None:
    def f(x: Any) -> Any:
        n = 4
        a, b, c, d = np.full(n, -1.0), 3.0 + x, np.full(n, -1.0), x**2
        for i in range(1, n):
            w = a[i] / b[i - 1]
            b[i] -= w * c[i - 1]
            d[i] -= w * d[i - 1]
        y = np.empty(n)
        y[-1] = d[-1] / b[-1]
        for i in range(n - 2, -1, -1):
            y[i] = (d[i] - c[i] * y[i + 1]) / b[i]
        return y @ y

    check(f)


def test_runge_kutta_that_fills_a_trajectory() -> None:
    def f(x: Any) -> Any:
        def rate(z: Any, t: float) -> Any:
            u, v = z
            return np.array([x[0] * u - u * v, x[3] * u * v - v + 0.1 * np.sin(t)])

        z = np.zeros((8, 2))
        z[0] = x[2], 0.5
        dt = 0.1
        for i in range(7):
            k1 = rate(z[i], i * dt)
            k2 = rate(z[i] + dt / 2 * k1, i * dt + dt / 2)
            k3 = rate(z[i] + dt / 2 * k2, i * dt + dt / 2)
            k4 = rate(z[i] + dt * k3, i * dt + dt)
            z[i + 1] = z[i] + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return np.sum((z[:, 0] - 1) ** 2) + z[-1, 1]

    check(f)


def test_newton_with_while() -> None:
    def f(x: Any) -> Any:
        y = 1.0
        while abs(y * y - x[3]) > 1e-13:
            y = y - (y * y - x[3]) / (2 * y)
        return y * x[0]

    check(f)


def test_fft_by_recursion() -> None:
    def fft(v: Any) -> Any:
        n = len(v)
        if n == 1:
            return v
        even, odd = fft(v[::2]), fft(v[1::2])
        turn = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
        return np.concatenate([even + turn, even - turn])

    def f(x: Any) -> Any:
        z = fft(x + 0j)
        return (np.abs(z) ** 2 * np.arange(4)).sum() + z[1].imag

    check(f)


def test_dynamic_programming_table() -> None:
    def f(x: Any) -> Any:
        n = 4
        best = np.zeros((n + 1, n + 1))
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                cost = (x[i - 1] - 0.5 * x[j - 1]) ** 2
                best[i, j] = cost + min(best[i - 1, j], best[i, j - 1], best[i - 1, j - 1])
        return best[n, n]

    check(f)


def test_gradient_descent_inside() -> None:
    def f(x: Any) -> Any:
        w = x * 1.0
        for _ in range(3):
            w -= 0.1 * lineara.grad(lambda v: np.sum((v * x - 1) ** 2))(w)
        return w @ w

    assert np.allclose(lineara.grad(f)(X), differences(f, X), atol=1e-7)


# --- what traced values leave behind -------------------------------------------------------------


def test_a_cache_of_constants_survives_the_trace() -> None:
    cache: dict[int, Any] = {}

    def nodes(n: int) -> Any:
        if n not in cache:
            t = np.linspace(0.0, 1.0, n)
            t[0] = 0.25
            cache[n] = t
        return cache[n]

    def f(x: Any) -> Any:
        return (nodes(4) * x).sum()

    first = lineara.grad(f)(X)
    assert np.array_equal(lineara.grad(f)(X), first)
    assert f(X) == np.sum(np.array([0.25, 1 / 3, 2 / 3, 1.0]) * X)
    assert np.array_equal(np.asarray(cache[4]), first)
    assert float(cache[4].sum()) == float(first.sum())


def test_a_value_that_outlives_its_trace_is_an_error() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = np.zeros(4)
        y[0] = x[0]
        kept.extend([x, x[0] * 2, y])
        return x.sum()

    lineara.grad(f)(X)
    for v in kept:
        with pytest.raises(LeakedVariableError, match="a traced value was used after the"):
            _ = v + 1
        with pytest.raises(LeakedVariableError, match="a traced value was used after the"):
            lineara.grad(lambda x, v=v: (x * v).sum())(X)


def test_results_and_auxiliary_values_are_plain_and_the_users_own() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(4)
        y[:2] = x[:2]
        return x @ x, {"y": y, "row": y[:2], "x": x, "made": np.ones(3), "s": x[0] * 2}

    _, aux = lineara.grad(f, has_aux=True)(X)
    assert [type(aux[k]) for k in ("y", "row", "x", "made")] == [np.ndarray] * 4
    assert type(aux["s"]) is float
    aux["x"][0] = 99.0
    aux["made"][0] = 5.0
    assert X[0] == 0.6


def test_writing_to_a_result_does_not_disturb_its_linear_map() -> None:
    y, L = lineara.linearize(lambda x: np.exp(x), X)
    y[:] = 0.0
    assert np.allclose(L @ np.ones(4), np.exp(X))
    z, pull = lineara.vjp(lambda x: x * x, x := X.copy())
    x[:] = 0.0
    z[:] = 0.0
    assert np.allclose(pull(np.ones(4))[0], 2 * X)


def test_stop_gradient_gives_an_array_of_its_own() -> None:
    def f(x: Any) -> Any:
        c = lineara.stop_gradient(x)
        c[0] = 5.0
        return (x * x).sum() + c[0] * x[1]

    assert np.allclose(lineara.grad(f)(X), 2 * X + np.array([0, 5.0, 0, 0]))


def test_a_function_that_returns_nothing() -> None:
    def f(x: Any) -> None:
        x[0] = 1.0

    with pytest.raises(NonScalarOutputError, match="is a `return` missing"):
        lineara.grad(f)(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[0].reshape(1)[0] ** 2,
        lambda x: x[0].reshape((1, 1)).sum() ** 2,
        lambda x: x[0].flatten()[0] ** 2,
        lambda x: x[0].copy() ** 2,
        lambda x: x[0] ** 2 + x[0].std() + x[0].var() + 0.0 * x[0].round(1),
    ],
)
def test_a_number_has_the_methods_of_numpys(f):
    assert np.array_equal(lineara.grad(f)(np.array([3.0, 1.0])), [6.0, 0.0])


@dataclass
class Stored:
    w: float
    v: float

    def product(self) -> float:
        return self.w * self.v


@dataclass(slots=True)
class Slotted:
    w: float
    v: float

    def product(self) -> float:
        return self.w * self.v


@pytest.mark.parametrize("state", [Stored(2.0, 3.0), Slotted(2.0, 3.0)], ids=["dict", "slots"])
def test_an_object_of_outside_is_an_argument_of_a_differentiation_inside(state):
    def f(x):
        slope = lineara.grad(lambda m: m.product() * m.w * x)(state)
        return slope.w * x + slope.v

    check(f, 1.5)
    assert lineara.grad(lineara.grad(f))(1.5) == 24.0
    assert lineara.jit(f)(1.5) == f(1.5) == 33.0

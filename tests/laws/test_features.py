"""The features F1 to F20 of the linear graph, one class each: what a user may rely on.

The words after each number are those of the specification's list.  Costs are counted, in nodes of
the tape, in calls and in bytes.
"""

import importlib
import math
import re
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple, NewType

import attrs
import numpy as np
import pytest
from mpmath import mp, mpf

import lineara
from lineara import Metric, grad, hessian, jvp, linearize, manifold, value_and_grad, vjp
from lineara.cotangent import Coo, Rows, Zero, combine, finish
from lineara.errors import (
    GeometryError,
    LeakedVariableError,
    LinearityError,
    NonScalarOutputError,
    StructureError,
)
from lineara.geometry import diff, inner, retract, scale, vdot
from lineara.tape.levels import innermost_level
from lineara.testing import check_builder, count_bytes, count_calls

F = Fraction


@pytest.fixture(scope="module")
def units():
    """The units of pint, which take a third of a second to make."""
    return importlib.import_module("pint").UnitRegistry()


def tape_length(f: Any, *args: Any) -> int:
    """How many entries the tape has when f has run."""
    lengths = []

    def counted(*traced: Any) -> Any:
        y = f(*traced)
        level = innermost_level()
        assert level is not None
        lengths.append(len(level.tape))
        return y

    linearize(counted, *args)
    return lengths[0]


class TestF1ValueAndLinearExpression:
    def test_the_variable_has_the_identity_as_its_derivative(self):
        _, pull = vjp(lambda x: x, np.array([1.0, 2.0]))
        assert np.array_equal(pull(np.array([3.0, 5.0]))[0], [3.0, 5.0])

    def test_a_constant_has_the_empty_sum(self):
        _, pull = vjp(lambda x: 7.0, 2.0)
        assert pull(3.0) == (0.0,)

    def test_the_seed_is_a_cotangent_of_any_type(self):
        _, pull = vjp(lambda x: {"a": 2 * x, "b": [x * x]}, 3.0)
        assert pull({"a": 1.0, "b": [10.0]}) == (62.0,)

    def test_the_value_is_there_at_once(self):
        def f(x):
            n = 0
            while x > 1:  # ordinary control flow on values
                x, n = x / 2, n + 1
            return x * n

        assert grad(f)(10.0) == 4 / 16

    def test_a_variable_of_a_closed_level_is_a_leak(self):
        kept = []
        grad(lambda x: kept.append(x) or x * x)(2.0)
        with pytest.raises(LeakedVariableError):
            grad(lambda x: x * kept[0])(1.0)


class TestF2NodesAndEdges:
    def test_an_operation_of_two_variables_is_one_node(self):
        assert tape_length(lambda x, y: x * y, 2.0, 3.0) == 1
        assert tape_length(lambda x, y: x * y, np.ones(5), np.ones(5)) == 1

    def test_only_the_linear_part_is_recorded(self):
        assert tape_length(lambda x: (x > 0) + math.floor(x) + int(x), 2.0) == 0

    def test_edges_are_linear(self):
        _, L = linearize(lambda x: np.sin(x) @ x, np.array([0.5, 1.5, 2.5]))
        u, v = np.array([1.0, 2.0, 4.0]), np.array([0.5, -1.0, 8.0])
        assert L @ (2 * u + 4 * v) == pytest.approx(2 * (L @ u) + 4 * (L @ v), rel=1e-15)


class TestF3BothDirections:
    def test_four_uses_of_one_product(self):
        _, L = linearize(lambda x: np.array([x[0] * x[1], x[1]]), np.array([2.0, 3.0]))
        _, M = linearize(lambda y: y * y, np.array([6.0, 3.0]))
        u, w = np.array([1.0, 4.0]), np.array([5.0, 7.0])
        assert np.array_equal(L @ u, [11.0, 4.0])  # evaluation
        assert np.array_equal(w @ L, [15.0, 17.0])  # pullback
        assert np.array_equal((M @ L) @ u, M @ (L @ u))  # composition
        assert w @ (L @ u) == (w @ L) @ u  # pairing

    def test_transposing_twice_is_the_map_itself(self):
        _, L = linearize(np.sin, np.ones(2))
        assert L.T.T is L

    def test_a_diamond_of_2_to_the_400_paths_is_exact(self):
        def double(x):
            for _ in range(400):
                x = x + x
            return x

        _, L = linearize(double, F(1))
        assert (L @ F(1), F(1) @ L) == (2**400, 2**400)


class TestF4Sharing:
    def test_what_is_shared_is_one_node(self):
        def f(x):
            shared = np.sin(x)
            return shared * shared + shared

        assert tape_length(f, 1.0) == 3

    def test_no_recursion_at_any_depth(self):
        def f(x):
            for _ in range(100_000):
                x = x + x * 0.0
            return x

        assert grad(f)(1.0) == 1.0


class TestF5TransposedGraph:
    def test_the_same_tape_in_both_directions(self):
        def f(x):
            y = np.zeros(3)
            for i in range(3):
                y[i] = np.prod(x[: i + 1]) * np.sin(x[i])
            return y

        x = np.array([0.5, 1.5, 2.5])
        _, L = linearize(f, x)
        assert np.allclose(L.to_dense(), L.T.to_dense().T, rtol=1e-15)

    def test_each_node_is_finished_once(self):
        """A number that is used 500 times hands its cotangent on once: counted in multiplies."""
        products = 0

        class Counted(F):
            def __mul__(self, other):
                nonlocal products
                products += 1
                return Counted(F(self) * other)

            __rmul__ = __mul__

            def __add__(self, other):
                return Counted(F(self) + other)

            __radd__ = __add__

        def count(k):
            nonlocal products

            def f(x):
                y = x * 3
                s = y
                for _ in range(k):
                    s = s + y
                return s

            _, L = linearize(f, Counted(1))
            products = 0
            assert Counted(1) @ L == 3 * (k + 1)
            return products

        assert count(500) - count(1) <= 2 * 499  # one for each addition's two weights, none for y


class TestF6BuildersAreAMonoid:
    def test_builders_combine_and_finish(self):
        g = grad(lambda W: W[2] @ W[2], out="builder")(np.eye(4))
        h = grad(lambda W: W[1, 1] * 3.0, out="builder")(np.eye(4))
        dense = grad(lambda W: W[2] @ W[2] + W[1, 1] * 3.0)(np.eye(4))
        assert np.array_equal(finish(combine([g, h])), dense)
        check_builder([g, h])

    def test_the_zero_of_a_huge_array_has_no_size(self):
        huge = np.broadcast_to(0.0, (10**6, 10**6))
        assert count_bytes(lambda: lineara.cotangent.zero(huge)) < 1024


class TestF7BuilderInstances:
    @pytest.mark.parametrize(
        ("number", "gradient"),
        [
            (3.0, 6.0),
            (3, 6.0),
            (F(1, 3), F(2, 3)),
            (Decimal("1.5"), Decimal("3.0")),
            (1 + 2j, 2 + 4j),
            (np.float32(3), np.float32(6)),
        ],
        ids=lambda x: type(x).__name__,
    )
    def test_numbers(self, number, gradient):
        g = grad(lambda x: (x * x.conjugate()).real if isinstance(number, complex) else x * x)
        found = g(number)
        assert found == gradient
        assert type(found) is type(gradient)

    def test_tuples_records_and_dicts(self):
        Pair = namedtuple("Pair", "a b")
        g = grad(lambda p: p["u"].a * p["v"][1])({"u": Pair(2.0, 5.0), "v": (1.0, 3.0)})
        assert g == {"u": Pair(3.0, 0.0), "v": (0.0, 2.0)}

    def test_vector_classes_of_the_user(self):
        assert grad(lambda v: (2 * v + v).dot(v))(Arrow(1.0, np.ones(2))) == Arrow(6.0, [6.0, 6.0])

    def test_arrays_collect_parts(self):
        x = np.zeros((50, 4))
        assert isinstance(grad(lambda x: x[3].sum(), sparse=True)(x), Rows)
        assert isinstance(grad(lambda x: x[3, 1] * 2.0, sparse=True)(x), Coo)
        assert isinstance(grad(lambda x: 0.0, sparse=True)(x), Zero)


class TestF8StoragePolicies:
    def test_deep_access_costs_its_depth_once(self):
        def nested(depth):
            tree: Any = 2.0
            for _ in range(depth):
                tree = {"next": tree, "other": np.zeros(1000)}
            return tree

        def read(depth, k):
            def f(tree):
                for _ in range(depth):
                    tree = tree["next"]
                return sum(tree for _ in range(k))

            return f

        lengths = [tape_length(read(40, k), nested(40)) for k in (10, 20)]
        assert lengths == [10, 20]

    def test_a_chain_of_views_costs_one_view(self):
        def count(f):
            x = np.arange(36.0).reshape(6, 6)
            return tape_length(f, x)

        assert count(lambda x: x.T[1][2:][3]) == count(lambda x: x[5, 1]) == 0

    def test_wrappers_add_no_node(self, units):
        @dataclass
        class Wrapped:
            value: float

        Metres = NewType("Metres", float)
        plain = tape_length(lambda x: x * x, 3.0)
        assert tape_length(lambda w: w.value * w.value, Wrapped(3.0)) == plain
        assert tape_length(lambda x: Metres(x) * Metres(x), 3.0) == plain
        assert tape_length(lambda q: q * q, 3.0 * units.m) == plain


class TestF9LiftingFunctions:
    def test_three_ways_to_write_an_operation_agree(self):
        x = np.array([1.0, 2.0, 3.0])
        dense = grad(lambda x: (x * np.array([0.0, 0.0, 1.0])).sum())(x)
        builder = grad(lambda x: x[np.array([2])].sum())(x)
        structural = grad(lambda x: x[2])(x)
        assert dense.tolist() == builder.tolist() == structural.tolist() == [0.0, 0.0, 1.0]

    def test_edges_of_constants_do_not_exist(self):
        still = lambda x, y: lineara.stop_gradient(x) * 3.0 + y * 2.0  # noqa: E731
        assert tape_length(still, 1.0, 2.0) == 2  # y * 2.0, and the sum


class TestF10Tuples:
    def test_splitting_and_joining_is_the_identity(self):
        def split(p):
            a, b, *rest = p
            return a * b + rest[0]

        def joined(p):
            a, b, c = p
            return split((a, b, c))

        p = (2.0, 3.0, 4.0)
        assert value_and_grad(split)(p) == value_and_grad(joined)(p)
        assert tape_length(joined, p) == tape_length(split, p)

    def test_match_sees_a_tuple(self):
        def f(p):
            match p:
                case (a, (b, c)):
                    return a * b * c
            raise AssertionError

        assert grad(f)((2.0, (3.0, 5.0))) == (15.0, (10.0, 6.0))


@dataclass(frozen=True)
class Frozen:
    label: str
    a: float
    b: Any
    flag: bool = True


class Named(NamedTuple):
    a: float
    label: str


@attrs.define
class Defined:
    a: float
    label: str = "x"


class Plain:
    def __init__(self, a, label):
        self.a, self.label = a, label


class TestF11Records:
    @pytest.mark.parametrize(
        "record",
        [
            Frozen("n", 3.0, [1.0]),
            Named(3.0, "n"),
            Defined(3.0),
            SimpleNamespace(a=3.0, label="n"),
            Plain(3.0, "n"),
        ],
        ids=lambda r: type(r).__name__,
    )
    def test_the_gradient_is_a_record_of_the_same_class(self, record):
        g = grad(lambda r: r.a * r.a)(record)
        assert isinstance(g, type(record))
        assert (g.a, g.label) == (6.0, record.label)

    def test_fields_cost_what_is_read(self):
        def calls(n):
            wide = SimpleNamespace(**{f"f{i}": float(i) for i in range(n)})
            f = grad(lambda r: r.f1 * r.f2, sparse=True)
            f(wide)
            return count_calls(lambda: f(wide))

        assert calls(2000) <= calls(20) + 10 + 2000  # the result has all names, and no more is done

    def test_reading_all_fields_is_linear(self):
        def calls(n):
            names = [f"f{i}" for i in range(n)]
            wide = SimpleNamespace(**dict.fromkeys(names, 1.0))
            f = grad(lambda r: sum(getattr(r, name) for name in names))
            f(wide)
            return count_calls(lambda: f(wide))

        assert calls(1600) < 2.3 * calls(800)


class TestF12Newtypes:
    def test_a_wrapped_number_has_the_nodes_of_the_number(self):
        @dataclass(frozen=True)
        class Kelvin:
            degrees: float

        f = lambda t: np.exp(-1 / t.degrees)  # noqa: E731
        assert tape_length(f, Kelvin(3.0)) == tape_length(lambda t: np.exp(-1 / t), 3.0)
        assert isinstance(grad(f)(Kelvin(3.0)), Kelvin)


class TestF13Traversables:
    def test_combine_gets_each_value_with_its_gradient(self):
        tree = OrderedDict(z=[1.0, 2.0], a=(3.0, "name"), m=None)
        g = grad(lambda t: t["z"][0] * t["a"][0], combine=lambda v, g: (v, g))(tree)
        assert list(g) == ["z", "a", "m"]
        assert g["z"] == [(1.0, 3.0), (2.0, 0.0)]
        assert g["a"][0] == (3.0, 1.0)

    def test_combine_is_called_once_for_each_element_in_order(self):
        seen = []
        values = [float(i) for i in range(100)]

        def f(p):
            return p[70] * p[3] + p[3]

        g = grad(f, combine=lambda v, g: seen.append((v, g)) or g)(values)
        assert [v for v, _ in seen] == values
        assert [i for i, (_, d) in enumerate(seen) if d] == [3, 70]
        assert g == [d for _, d in seen]

    def test_a_step_of_descent_is_a_combine(self):
        step = grad(lambda p: p["w"] @ p["w"], combine=lambda v, g: v - 0.5 * g)
        assert step({"w": np.array([1.0, 2.0])})["w"].tolist() == [0.0, 0.0]

    def test_functions_that_know_nothing_of_derivatives(self):
        assert grad(sum)([1.0, 2.0, 3.0]) == [1.0, 1.0, 1.0]
        assert grad(lambda d: max(d.values()))({"a": 1.0, "b": 5.0}) == {"a": 0.0, "b": 1.0}
        assert grad(lambda p: math.prod(x * x for x in p))([2.0, 3.0]) == [36.0, 24.0]

    @pytest.mark.slow("a million elements")
    def test_a_fold_over_a_million_elements(self):
        n = 1_000_000

        def f(p):
            s = 0.0
            for x in p:
                s = s + x
            return s

        g = grad(f)([1.0] * n)
        assert len(g) == n
        assert set(g) == {1.0}

    def test_a_fold_is_linear(self):
        def calls(k):
            f = grad(lambda p: sum(x * x for x in p))
            f([1.0] * k)
            return count_calls(lambda: f([1.0] * k))

        assert calls(4000) < 2.3 * calls(2000)

    def test_a_cons_list_10_000_deep(self):
        depth = 10_000
        cons = None
        for i in range(depth):
            cons = (float(i % 3), cons)

        def f(c):
            s = 0.0
            while c is not None:
                head, c = c
                s = s + head * head
            return s

        g = grad(f)(cons)
        found = []
        while g is not None:
            head, g = g
            found.append(head)
        assert found == [2.0 * (i % 3) for i in reversed(range(depth))]


ELEMENTARY = {
    np.exp: 0.7,
    np.log: 0.7,
    np.sin: 0.7,
    np.cos: 0.7,
    np.tan: 0.7,
    np.sinh: 0.7,
    np.cosh: 0.7,
    np.tanh: 0.7,
    np.sqrt: 0.7,
    np.arcsin: 0.3,
    np.arccos: 0.3,
    np.arctan: 0.3,
    np.arcsinh: 0.3,
    np.arccosh: 1.3,
    np.arctanh: 0.3,
}
MP = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
MP |= {"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}


class TestF14NumericTower:
    @pytest.mark.parametrize("f", ELEMENTARY, ids=lambda f: f.__name__)
    def test_elementary_functions_against_mpmath(self, f):
        x = ELEMENTARY[f]
        true = mp.diff(getattr(mp, MP.get(f.__name__, f.__name__)), mpf(x))
        assert grad(f)(x) == pytest.approx(float(true), rel=1e-12)

    def test_powers_of_zero_and_of_negative_numbers(self):
        square = grad(lambda x: x**2)
        assert (square(0.0), square(-1.0)) == (0.0, -2.0)
        assert grad(lambda x: x**1)(0.0) == 1.0
        assert grad(lambda x: x**0)(0.0) == 0.0

    def test_the_root_is_steep_at_zero(self):
        assert grad(np.sqrt)(0.0) == math.inf

    def test_a_product_is_one_node(self):
        assert tape_length(lambda x, y: x * y, 2.0, 3.0) == 1

    def test_the_absolute_value_at_its_kink(self):
        assert grad(abs)(0.0) == 0.0
        assert grad(abs)(-2.0) == -1.0


@dataclass(frozen=True, eq=False)
class Arrow:
    """A vector class of a user, with its own operators."""

    a: Any
    b: Any

    def __add__(self, other):
        return Arrow(self.a + other.a, self.b + other.b)

    def __sub__(self, other):
        return Arrow(self.a - other.a, self.b - other.b)

    def __mul__(self, c):
        return Arrow(self.a * c, self.b * c)

    __rmul__ = __mul__

    def dot(self, other):
        return self.a * other.a + np.sum(self.b * other.b)

    def __eq__(self, other):
        return self.a == other.a and np.array_equal(self.b, other.b)


class TestF15VectorSpaces:
    def test_operators_of_the_users_own_class(self):
        u, v = Arrow(1.0, np.array([2.0, 3.0])), Arrow(4.0, np.array([5.0, 6.0]))
        assert grad(lambda u: (u - 3.0 * v).dot(u + v))(u) == u + u - 2.0 * v

    def test_a_traced_factor_of_a_plain_vector(self):
        v = Arrow(1.0, np.array([2.0, 3.0]))
        for factor in (lambda c: c * v, lambda c: v * c):
            assert grad(lambda c, factor=factor: factor(c).dot(v))(2.0) == v.dot(v)

    def test_scale_inner_and_vdot_are_differentiable_in_each_argument(self):
        u, v = {"a": 2.0, "b": np.array([1.0, 4.0])}, {"a": 3.0, "b": np.array([5.0, 7.0])}
        g, h = grad(inner, argnums=(0, 1))(u, v)
        assert (g["a"], g["b"].tolist()) == (3.0, [5.0, 7.0])
        assert (h["a"], h["b"].tolist()) == (2.0, [1.0, 4.0])
        assert grad(lambda c: vdot(u, scale(c, v)))(1.0) == vdot(u, v) == 39.0

    def test_the_product_of_a_vector_that_a_function_returns(self):
        v = Arrow(1.0, np.array([2.0, 3.0]))
        _, L = linearize(lambda c: c * v, 5.0)
        assert 2.0 * v == L @ 2.0
        assert v @ L == v.dot(v)

    def test_a_vector_is_no_scalar_result(self):
        with pytest.raises(NonScalarOutputError):
            grad(lambda u: 2.0 * u)(Arrow(1.0, np.ones(2)))


class TestF16HigherOrder:
    @pytest.mark.parametrize("order", range(1, 7))
    def test_derivatives_of_the_exponential(self, order):
        f = lambda x: np.exp(2 * x)  # noqa: E731
        for _ in range(order):
            f = grad(f)
        assert f(0.3) == pytest.approx(2**order * math.exp(0.6), rel=1e-14)

    def test_no_perturbation_confusion(self):
        assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(5.0) == 1.0
        assert grad(lambda x: x * grad(lambda y: x * y * y)(3.0))(2.0) == 24.0
        assert jvp(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1], (5.0,), (1.0,))[1] == 1.0

    def test_all_orders_of_modes_agree(self):
        f = lambda x: x[0] ** 3 * np.sin(x[1]) + x[x.shape[0] - 1] * x[0]  # noqa: E731
        x, v = np.array([1.2, 0.4, 2.0]), np.array([1.0, -2.0, 0.5])
        H = hessian(f)(x)
        assert np.allclose(H, H.T, rtol=1e-15)
        assert np.allclose(H @ v, lineara.hvp(f)(x, v), rtol=1e-13)
        assert np.allclose(H @ v, grad(lambda x: vdot(v, grad(f)(x)))(x), rtol=1e-13)
        assert np.allclose(H, lineara.jacrev(grad(f))(x), rtol=1e-13)

    def test_second_derivatives_of_lookups_touch_what_was_looked_up(self):
        x = np.zeros(1_000_000)
        i = np.array([5, 7, 7])

        def slope(x):
            return grad(lambda x: (x[i] ** 3).sum() + x[3] ** 2, sparse=True)(x).norm()

        g = grad(lambda x: (x[i] ** 3).sum(), sparse=True)(x)
        assert isinstance(g, Rows)
        assert np.array_equal(np.unique(g.indices), [5, 7])

    def test_fractions_to_the_second_order(self):
        assert grad(grad(lambda x: x**4 - x / 3))(F(1, 2)) == F(3)

    def test_containers_nest(self):
        def f(p):
            inner_gradient = grad(lambda q: q["a"] ** 2 * p["b"][0])({"a": p["a"]})
            return inner_gradient["a"]

        assert grad(f)({"a": 3.0, "b": [5.0]}) == {"a": 10.0, "b": [6.0]}


class TestF17ExactArithmetic:
    @pytest.mark.parametrize("number", [F, lambda n, d=1: Decimal(n) / Decimal(d)], ids=["F", "D"])
    def test_polynomials_are_exact(self, number):
        x = number(3, 4)
        value, slope = value_and_grad(lambda x: 5 * x**3 - x * x / 2 + 7 * x - 1)(x)
        assert slope == 15 * x * x - x + 7
        assert type(slope) is type(value) is type(x)

    def test_rational_functions_are_exact(self):
        f = lambda p: p[0] / p[1] - 1 / p[2]  # noqa: E731
        assert grad(f)([F(1), F(2), F(3)]) == [F(1, 2), F(-1, 4), F(1, 9)]

    def test_unused_and_identical(self):
        assert grad(lambda p: p[0])([F(1, 3), F(1, 7)]) == [1, 0]
        assert all(type(g) is F for g in grad(lambda p: p[0])([F(1, 3), F(1, 7)]))

    def test_directions_are_exact(self):
        _, L = linearize(lambda x, y: x * x * y, F(1, 3), F(5))
        assert L @ (F(1), F(2)) == F(32, 9)
        assert F(1, 2) @ L == (F(5, 3), F(1, 18))

    def test_integers_count_as_floats(self):
        assert grad(lambda x: x**3)(2) == 12.0


@dataclass(frozen=True)
class Vector:
    dx: float
    dy: float


@dataclass(frozen=True)
class Gradient:
    gx: float
    gy: float


@dataclass(frozen=True)
class Point:
    x: float
    y: float


manifold(Point, tangent=Vector, cotangent=Gradient)


@dataclass(frozen=True)
class Rotation:
    """A unit quaternion; a tangent is a rotation vector."""

    q: Any

    @staticmethod
    def times(a, b):
        (w, x), (s, y) = (a[0], a[1:]), (b[0], b[1:])
        return np.concatenate([[w * s - x @ y], w * y + s * x + np.cross(x, y)])

    def turn(self, v):
        w, u = self.q[0], self.q[1:]
        c = cross(u, v)
        return v + 2 * w * c + 2 * cross(u, c)


def cross(a, b):
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def product(a, b):
    (w, u), (s, v) = (a[0], a[1:]), (b[0], b[1:])
    x = cross(u, v) + w * v + s * u
    return np.array([w * s - u @ v, x[0], x[1], x[2]])


def turned(p, v):
    q = product(p.q, np.array([1.0, v[0] / 2, v[1] / 2, v[2] / 2]))
    return Rotation(q / np.sqrt(q @ q))


def turn_between(q, p):
    inverse = p.q * np.array([1.0, -1.0, -1.0, -1.0])
    d = product(inverse, q.q)
    return 2 * d[1:] / d[0]


manifold(Rotation, tangent=np.ndarray, retract=turned, diff=turn_between)


@dataclass(frozen=True)
class Simplex:
    """Probabilities; a tangent is what is added to their logarithms."""

    p: Any


def tilted(s, v):
    w = s.p * np.exp(v)
    return Simplex(w / np.sum(w))


manifold(
    Simplex,
    tangent=np.ndarray,
    retract=tilted,
    diff=lambda q, p: np.log(q.p) - np.log(p.p),
)

NOON = datetime(2024, 2, 29, 12)
HOUR = timedelta(hours=1)


def plain_points():
    return Point, Vector, Gradient


def tuples():
    point = namedtuple("Place", "x y")
    vector, gradient = namedtuple("Step", "x y"), namedtuple("Slope", "x y")
    return manifold(point, tangent=vector, cotangent=gradient), vector, gradient


def _pairs():
    @dataclass(frozen=True)
    class Step:
        x: float
        y: float

    @dataclass(frozen=True)
    class Slope:
        x: float
        y: float

    return Step, Slope


def with_own_operators():
    vector, gradient = _pairs()

    @manifold(tangent=vector, cotangent=gradient)
    @dataclass(frozen=True)
    class Place:
        x: float
        y: float

        def __add__(self, v):
            return Place(self.x + v.x, self.y + v.y)

        def __sub__(self, v):
            make = vector if isinstance(v, Place) else Place
            return make(self.x - v.x, self.y - v.y)

    return Place, vector, gradient


def with_own_retract():
    vector, gradient = _pairs()

    @manifold(
        tangent=vector,
        cotangent=gradient,
        retract=lambda p, v: type(p)(p.x + v.x, p.y + v.y),
        diff=lambda q, p: vector(q.x - p.x, q.y - p.y),
    )
    @dataclass(frozen=True)
    class Place:
        x: float
        y: float

    return Place, vector, gradient


class TestF18Manifolds:
    def test_value_tangent_and_cotangent_have_three_types(self):
        f = lambda p: p.x**2 * p.y  # noqa: E731
        p = Point(2.0, 3.0)
        assert grad(f)(p) == Gradient(12.0, 4.0)
        assert jvp(f, (p,), (Vector(1.0, 10.0),)) == (12.0, 52.0)
        assert vjp(f, p)[1](2.0) == (Gradient(24.0, 8.0),)

    def test_a_map_between_manifolds(self):
        f = lambda p: Point(p.x * p.y, p.x)  # noqa: E731
        y, L = linearize(f, Point(2.0, 3.0))
        assert y == Point(6.0, 2.0)
        assert L @ Vector(1.0, 0.0) == Vector(3.0, 1.0)
        assert Gradient(1.0, 0.0) @ L == Gradient(3.0, 2.0)
        assert vdot(Gradient(5.0, 7.0), L @ Vector(1.0, 2.0)) == vdot(
            Gradient(5.0, 7.0) @ L, Vector(1.0, 2.0)
        )

    @pytest.mark.parametrize("wrong", [Point(1.0, 0.0), Gradient(1.0, 0.0)])
    def test_only_a_tangent_is_a_tangent(self, wrong):
        with pytest.raises(GeometryError, match="a tangent at a Point is a Vector"):
            jvp(lambda p: p.x, (Point(2.0, 3.0),), (wrong,))

    def test_points_cannot_be_added(self):
        with pytest.raises(GeometryError, match="two points of Point cannot be added"):
            Point(1.0, 2.0) + Point(1.0, 2.0)
        with pytest.raises(GeometryError):
            grad(lambda p: (p + p).x)(Point(1.0, 2.0))
        with pytest.raises(GeometryError):
            grad(lambda p: (2 * p).x)(Point(1.0, 2.0))

    @pytest.mark.parametrize("made", [plain_points, tuples, with_own_operators, with_own_retract])
    @pytest.mark.parametrize(
        "inside", [lambda f, p: f(p), lambda f, p: grad(lambda p: f(p) and p.x)(p)]
    )
    def test_each_operation_takes_its_own_kind_alone(self, made, inside):
        point, vector, gradient = made()
        p, v, g = point(1.0, 2.0), vector(3.0, 4.0), gradient(3.0, 4.0)
        kinds = {"point": p, "vector": v, "gradient": g}
        operations = {
            "retract": (lambda x: lambda p: retract(p, x), {"vector"}),
            "retract in a dict": (lambda x: lambda p: retract({"a": p}, {"a": x}), {"vector"}),
            "+": (lambda x: lambda p: p + x, {"vector"}),
            "-": (lambda x: lambda p: p - x, {"vector", "point"}),
            "scaled": (lambda x: lambda p: p - 0.5 * x, {"vector"}),
            "diff": (lambda x: lambda p: diff(p, x), {"point"}),
        }
        for operation, fitting in operations.values():
            for kind, x in kinds.items():
                if kind in fitting:
                    inside(operation(x), p)
                else:
                    with pytest.raises((GeometryError, StructureError, TypeError)):
                        inside(operation(x), p)

    def test_the_error_says_what_makes_a_tangent_of_a_gradient(self):
        p = Point(1.0, 2.0)
        g = grad(lambda p: p.x * p.y)(p)
        with pytest.raises(GeometryError) as caught:
            p - 0.1 * g
        assert caught.value.message == (
            "Point - v: a tangent at a Point is a Vector, but was given Gradient; a metric turns a "
            "gradient into a tangent: lineara.Metric.L2(gradient)"
        )
        assert p - 0.5 * Metric.L2(g) == Point(0.0, 1.5)

    def test_a_point_and_a_vector_can(self):
        p, q, v = Point(1.0, 2.0), Point(4.0, 6.0), Vector(3.0, 4.0)
        assert (p + v, q - v, q - p) == (q, p, v)
        assert grad(lambda p: (q - p).dx ** 2)(p) == Gradient(-6.0, 0.0)
        assert (diff(q, p), retract(p, v)) == (v, q)

    def test_tuples_with_names_move_instead_of_joining(self):
        point, vector, _ = tuples()
        p, v = point(1.0, 2.0), vector(3.0, 4.0)
        assert (p + v, p - v, 2 * v, v + v) == ((4.0, 6.0), (-2.0, -2.0), (6.0, 8.0), (6.0, 8.0))
        assert type(p + v) is point

    def test_points_inside_containers(self):
        g = grad(lambda t: t["p"][1].x * t["w"])(
            {"p": [Point(1.0, 2.0), Point(3.0, 4.0)], "w": 5.0}
        )
        assert g == {"p": [Gradient(0.0, 0.0), Gradient(5.0, 0.0)], "w": 3.0}

    def test_a_gradient_on_rotations_has_three_components(self):
        v, p = np.array([1.0, 2.0, 3.0]), Rotation(np.array([1.0, 0.0, 0.0, 0.0]))
        target = np.array([0.0, 1.0, 0.0])
        f = lambda r: target @ r.turn(v)  # noqa: E731
        assert np.allclose(grad(f)(p), np.cross(v, target), atol=1e-15)

    def test_the_tangent_of_a_rotation(self):
        p = turned(Rotation(np.array([1.0, 0.0, 0.0, 0.0])), np.array([0.3, -0.2, 0.5]))
        w = np.array([0.1, 0.2, 0.3])
        y, t = jvp(lambda r: r, (p,), (w,))
        assert np.allclose(y.q, p.q, atol=1e-15)
        assert np.allclose(t, w, atol=1e-15)

    def test_descent_on_probabilities_stays_there(self):
        s, goal = Simplex(np.array([0.2, 0.3, 0.5])), np.array([0.5, 0.25, 0.25])
        f = lambda s: -goal @ np.log(s.p)  # noqa: E731
        for _ in range(200):
            s = retract(s, -1.0 * grad(f)(s))
        assert s.p.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.allclose(s.p, goal, atol=1e-9)

    def test_the_gradient_does_not_depend_on_the_chart(self):
        """grad(f . phi) = phi* (grad f), for polar coordinates."""
        f = lambda p: p.x**2 * p.y + np.sin(p.y)  # noqa: E731
        phi = lambda c: Point(c[0] * np.cos(c[1]), c[0] * np.sin(c[1]))  # noqa: E731
        c = np.array([2.0, 0.7])
        y, L = linearize(phi, c)
        assert np.allclose(grad(lambda c: f(phi(c)))(c), grad(f)(y) @ L, rtol=1e-14)

    def test_moments_move_by_spans(self):
        f = lambda t: ((t - datetime(2024, 2, 28)) / HOUR) ** 2  # noqa: E731
        value, slope = value_and_grad(f)(NOON)
        assert (value, slope) == (1296.0, 72 / 3600)  # per second
        assert jvp(f, (NOON,), (HOUR,))[1] == 72.0
        assert jvp(lambda t: t + 2 * (t - NOON), (NOON,), (HOUR,)) == (NOON, 3 * HOUR)
        with pytest.raises(GeometryError, match="two moments cannot be added"):
            grad(lambda t: (t + t).total_seconds())(NOON)

    def test_spans_are_vectors(self):
        assert grad(lambda d: d.total_seconds() ** 2)(HOUR) == 7200.0
        assert grad(lambda x: (x * HOUR).total_seconds())(2.0) == 3600.0

    def test_a_label_is_a_constant(self):
        @dataclass(frozen=True)
        class Species:
            number: float

        manifold(Species, tangent=None)
        g = grad(lambda p: p["s"].number * p["x"])({"s": Species(3.0), "x": 2.0})
        assert g == {"s": Species(3.0), "x": 3.0}

    def test_the_unit_of_a_gradient(self, units):
        p = {"m": 2.0 * units.kg, "v": np.array([3.0, 4.0]) * units.m / units.s}
        energy = lambda p: (p["m"] * (p["v"] ** 2).sum() / 2).to("joule")  # noqa: E731
        value, g = value_and_grad(energy)(p)
        assert value == 25.0 * units.joule
        assert g["m"].check("[energy]/[mass]")
        assert g["m"].to("J/kg").magnitude == 12.5
        assert np.allclose(g["v"].to("kg m/s").magnitude, [6.0, 8.0])

    def test_units_of_directions(self, units):
        area = lambda x: x * x  # noqa: E731
        y, t = jvp(area, (3.0 * units.m,), (10.0 * units.cm,))
        assert (y, t.to("m^2").magnitude) == (9.0 * units.m**2, pytest.approx(0.6))
        with pytest.raises(GeometryError, match="the tangent has s, but meter would fit"):
            jvp(area, (3.0 * units.m,), (1.0 * units.s,))

    def test_units_of_the_second_derivative(self, units):
        assert hessian(lambda x: x**3)(2.0 * units.m) == 12.0 * units.m

    def test_complex_numbers_are_pairs_of_real_ones(self):
        f = lambda z: abs(z) ** 2 + (z * z).imag  # noqa: E731
        z, t = 1 + 2j, 0.5 - 1j
        assert vdot(grad(f)(z), t) == pytest.approx(jvp(f, (z,), (t,))[1], rel=1e-14)

    def test_gradient_and_tangent_pair_to_the_directional_derivative(self):
        cases = [
            (lambda p: p.x**2 * np.sin(p.y), Point(2.0, 3.0), Vector(0.5, -1.0)),
            (lambda s: np.log(s.p[0]) * s.p[2], Simplex(np.full(3, 1 / 3)), np.array([1.0, 2, 4])),
            (lambda t: ((t - datetime(2024, 1, 1)) / HOUR) ** 2, NOON, HOUR),
        ]
        for f, p, v in cases:
            assert vdot(grad(f)(p), v) == pytest.approx(jvp(f, (p,), (v,))[1], rel=1e-13)

    def test_a_cotangent_class_belongs_to_one_tangent_class(self):
        @dataclass
        class Other:
            x: float
            y: float

        with pytest.raises(GeometryError, match="already belong to the tangents Vector"):
            manifold(Other, tangent=Other, cotangent=Gradient)


class TestF19Metrics:
    def test_a_metric_turns_gradients_into_tangents(self):
        assert Metric.L2(Gradient(1.0, 2.0)) == Vector(1.0, 2.0)
        assert Metric.diag(0.5)(Gradient(1.0, 2.0)) == Vector(0.5, 1.0)
        assert Metric.matrix(np.array([[2.0, 1.0], [1.0, 3.0]]))(Gradient(1.0, 2.0)) == Vector(
            4.0, 7.0
        )
        assert Metric(lambda g: Vector(g.gx, 4 * g.gy))(Gradient(1.0, 2.0)) == Vector(1.0, 8.0)

    def test_the_fermat_point(self):
        """The point of least total distance to (0,0), (0,1), (1,0)."""
        corners = [Point(0.0, 0.0), Point(0.0, 1.0), Point(1.0, 0.0)]

        def total(p):
            return sum(np.sqrt((p - c).dx ** 2 + (p - c).dy ** 2) for c in corners)

        p = Point(0.5, 0.4)
        for _ in range(300):
            p = p + -0.1 * Metric.L2(grad(total)(p))
        assert (p.x, p.y) == (pytest.approx(0.2113, abs=5e-5), pytest.approx(0.2113, abs=5e-5))

    def test_rescaling_the_metric_is_a_change_of_units(self):
        """x' = x / s goes the same way as x, if the metric is that of x."""
        s = {"a": 4.0, "b": 0.5}
        f = lambda p: (p["a"] - 1) ** 2 + p["a"] * p["b"] + p["b"] ** 4  # noqa: E731
        g = lambda p: f({k: s[k] * p[k] for k in s})  # noqa: E731
        p = {"a": 3.0, "b": 2.0}
        q = {k: p[k] / s[k] for k in s}
        metric = Metric.diag({k: 1 / s[k] ** 2 for k in s})
        for _ in range(20):
            p = retract(p, scale(-0.03, Metric.L2(grad(f)(p))))
            q = retract(q, scale(-0.03, metric(grad(g)(q))))
        assert {k: s[k] * q[k] for k in s} == pytest.approx(p, rel=1e-12)

    def test_a_step_with_units_needs_a_metric_with_units(self, units):
        f = lambda x: (x - 3.0 * units.m) ** 2 * (2.0 * units.N / units.m)  # noqa: E731
        x = 1.0 * units.m
        step = Metric.diag(0.25 * units.m / units.N)(grad(f)(x))
        assert retract(x, -step).to("m").magnitude == pytest.approx(3.0)
        with pytest.raises(importlib.import_module("pint").DimensionalityError):
            retract(x, -1.0 * Metric.L2(grad(f)(x)))

    def test_a_sparse_gradient_gives_a_sparse_tangent(self):
        table = {"emb": np.ones((100_000, 8)), "b": np.ones(8)}
        f = lambda t: t["emb"][np.array([3, 7, 3])].sum() * t["b"].sum()  # noqa: E731
        g = grad(f, sparse=True)(table)
        for metric in (Metric.L2, Metric.diag(0.5), Metric.diag({"emb": 0.1, "b": 1.0})):
            v = metric(g)
            assert isinstance(v["emb"], Rows)
            assert vdot(g, v) == metric.inner(g, g) > 0
        assert count_bytes(lambda: Metric.diag(0.5)(g)) < 100_000

    def test_the_length_of_a_gradient(self):
        assert Metric.L2.norm(Gradient(3.0, 4.0)) == 5.0
        assert Metric.diag(4.0).norm(Gradient(3.0, 4.0)) == 10.0

    def test_what_is_no_metric(self):
        with pytest.raises(GeometryError, match="symmetric"):
            Metric.matrix(np.array([[1.0, 1.0], [0.0, 1.0]]))
        with pytest.raises(GeometryError, match="positive"):
            Metric.matrix(np.diag([1.0, -1.0]))
        with pytest.raises(GeometryError, match="positive"):
            Metric.diag({"a": 0.0})
        with pytest.raises(GeometryError, match="symmetric"):
            Metric(lambda g: Vector(g.gx + g.gy, g.gy)).check(
                Gradient(1.0, 0.5), Gradient(0.0, 1.0)
            )

    def test_a_natural_gradient_step(self):
        """On the simplex the Fisher metric in exponential coordinates is diag(p)."""
        s = Simplex(np.array([0.2, 0.3, 0.5]))
        loss = lambda s: s.p @ np.array([1.0, 2.0, 4.0])  # noqa: E731
        g = grad(loss)(s)
        step = Metric.diag(1 / s.p)(g)
        assert loss(retract(s, -0.1 * step)) < loss(s)


class TestF20EulerIdentity:
    def test_the_tests_of_downhill(self):
        assert grad(lambda x: 5)(3) == 0
        assert grad(lambda x: x)(F(3)) == 1
        assert grad(lambda x: x * x * x - 2 * x)(F(3)) == 25

    def test_a_record_of_a_pair_and_a_list(self):
        @dataclass
        class Record:
            pair: tuple[Any, Any]
            rest: list[Any] = field(default_factory=list)

        r = Record((F(2), F(3)), [F(5), F(7)])
        g = grad(
            lambda r: r.pair[0] * r.pair[1] + sum(x * x for x in r.rest),
            combine=lambda v, g: (v, g),
        )(r)
        assert g == Record(((F(2), F(3)), (F(3), F(2))), [(F(5), F(10)), (F(7), F(14))])

    def test_a_bilinear_map_pairs_with_both_arguments_alike(self):
        """<du, u> = <dz, z> = <dv, v>, without a finite difference."""
        f = lambda u, v: [u[0] * v[1], u[1] * v[0] - 3 * u[0] * v[0]]  # noqa: E731
        u, v, dz = [F(1, 2), F(3)], [F(5, 7), F(-2)], [F(11), F(1, 13)]
        z, pull = vjp(f, u, v)
        du, dv = pull(dz)
        assert vdot(du, u) == vdot(dz, z) == vdot(dv, v)


def test_structures_and_linearity_are_checked():
    _, L = linearize(lambda p: p["a"], {"a": 1.0})
    with pytest.raises(StructureError):
        L @ {"b": 1.0}
    assert issubclass(LinearityError, lineara.errors.LinearaError)


def test_two_threads_do_not_disturb_each_other():
    found = {}

    def work(k):
        found[k] = [grad(lambda x: x**k)(2.0) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {2: [4.0] * 50, 3: [12.0] * 50}


def test_the_list_has_no_gap():
    numbers = [
        int(re.match(r"TestF(\d+)", name)[1]) for name in globals() if name.startswith("TestF")
    ]
    assert numbers == list(range(1, 21))

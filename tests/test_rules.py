"""A rule of the user's serves every mode and every order, and is tested."""

import functools
import math
from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import lineara
from lineara import (
    custom_jvp,
    custom_linear,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from lineara.errors import (
    DetachError,
    LinearityError,
    MutationError,
    NoRuleError,
    RuleError,
    TypeMismatchError,
)
from lineara.testing import check_linear

X = np.array([0.5, -1.0, 2.0])
V = np.array([1.0, 0.5, -0.25])
A = np.array([[2.0, 1.0, 0.0], [0.5, 3.0, -1.0]])


def text(error):
    """The message of an error without the line."""
    return error.value.message


# --- the same function, plain and with each kind of rule ----------------------------------------


def plain_wave(x, a):
    return np.sin(a * x) * x


@custom_jvp
def jvp_wave(x, a):
    return np.sin(a * x) * x


@jvp_wave.defjvp
def jvp_wave_rule(primals, tangents):
    (x, a), (x_dot, a_dot) = primals, tangents
    s, c = np.sin(a * x), np.cos(a * x)
    return s * x, s * x_dot + c * x * (a * x_dot + x * a_dot)


def wave_fwd(x, a):
    return jvp_wave.f(x, a), (x, a)


def wave_bwd(residuals, y_bar):
    x, a = residuals
    s, c = np.sin(a * x), np.cos(a * x)
    return (s + c * x * a) * y_bar, np.sum(c * x * x * y_bar)


vjp_wave = custom_vjp(plain_wave, wave_fwd, wave_bwd)

WAVES = pytest.mark.parametrize("wave", [jvp_wave, vjp_wave], ids=["custom_jvp", "custom_vjp"])


@WAVES
def test_reverse_mode_equals_the_plain_function(wave):
    for f in (lambda x: np.sum(wave(x, 1.5)), lambda x: np.sum(wave(x, 1.5) ** 2)):
        assert np.allclose(grad(f)(X), grad(_with(f, wave, plain_wave))(X))


def _with(f, old, new):
    """The same function of another wave."""
    return lineara.python.captured_values.with_captured(f, {"wave": new}) if old is not new else f


@WAVES
def test_every_mode_and_order_equals_the_plain_function(wave):
    def programs(w):
        def loss(x, a):
            return np.sum(w(x, a) * np.array([1.0, 2.0, 3.0]))

        yield grad(loss)(X, 1.5)
        yield grad(loss, argnums=1)(X, 1.5)
        yield grad(loss, argnums=(0, 1))(X, 1.5)
        yield jvp(w, (X, 1.5), (V, 0.3))
        yield vjp(w, X, 1.5)[1](V)
        yield jacfwd(w)(X, 1.5)
        yield jacrev(w)(X, 1.5)
        yield jacfwd(w, argnums=1)(X, 1.5)
        yield jacrev(w, argnums=1)(X, 1.5)
        yield hessian(loss)(X, 1.5)
        yield hvp(lambda x: loss(x, 1.5))(X, V)
        yield grad(lambda x: np.sum(grad(loss)(x, 1.5) * V))(X)
        yield grad(lambda a: grad(loss, argnums=1)(X, a))(1.5)
        yield jvp(lambda x: grad(loss)(x, 1.5), (X,), (V,))[1]
        yield grad(lambda x: jvp(lambda z: loss(z, 1.5), (x,), (V,))[1])(X)
        yield jvp(lambda x: jvp(lambda z: w(z, 1.5), (x,), (V,))[1], (X,), (V,))[1]
        yield jacfwd(jacfwd(w))(X, 1.5)
        yield jacrev(jacrev(w))(X, 1.5)
        yield jacrev(jacfwd(w))(X, 1.5)
        yield linearize(lambda x: w(x, 1.5), X)[1].to_dense()

    for ours, plain in zip(programs(wave), programs(plain_wave), strict=True):
        for a, b in zip(_flat(ours), _flat(plain), strict=True):
            assert np.allclose(a, b, rtol=1e-10, atol=1e-12)


def _flat(tree):
    return lineara.trees.flatten(tree)[0]


@WAVES
def test_third_derivatives_equal_the_closed_form(wave):
    def f(x):
        return wave(x, 1.0)

    third = -3 * math.sin(0.7) - 0.7 * math.cos(0.7)  # of x sin x
    assert grad(grad(grad(f)))(0.7) == pytest.approx(third)
    up = jvp(lambda x: jvp(grad(f), (x,), (1.0,))[1], (0.7,), (1.0,))[1]
    assert up == pytest.approx(third)
    assert jacfwd(jacrev(jacfwd(f)))(0.7) == pytest.approx(third)


def test_hessian_of_a_custom_vjp_function():
    log = custom_vjp(np.log, lambda x: (np.log(x), x), lambda x, y_bar: (y_bar / x,))
    assert np.allclose(
        hessian(lambda x: np.sum(log(x)))(np.array([1.0, 2.0])), [[-1, 0], [0, -0.25]]
    )


def test_forward_jacobian_of_a_custom_vjp_function():
    square = custom_vjp(lambda x: x * x, lambda x: (x * x, x), lambda x, y_bar: (2 * x * y_bar,))
    assert np.allclose(jacfwd(square)(X), np.diag(2 * X))


def test_a_rule_states_the_derivative_even_where_it_differs_from_the_function():
    straight = custom_jvp(np.round, lambda p, t: (np.round(p[0]), t[0]), check=False)
    assert grad(lambda x: straight(x) ** 2)(2.7) == 6.0
    flip = custom_vjp(lambda x: x, lambda x: (x, None), lambda _, y_bar: (-y_bar,), check=False)
    assert grad(lambda x: flip(x) * x)(3.0) == 0.0
    assert jvp(flip, (3.0,), (1.0,)) == (3.0, -1.0)


def test_a_rule_that_clips_its_cotangent_serves_reverse_mode_unchecked():
    clip = custom_vjp(
        lambda x: x, lambda x: (x, None), lambda _, w: (np.clip(w, -1, 1),), check=False
    )
    assert grad(lambda x: 10 * clip(x))(3.0) == 1.0
    assert np.allclose(jacrev(lambda x: clip(x) * 5)(X), np.eye(3))


def test_perturbations_of_nested_levels_are_not_confused():
    square = custom_jvp(lambda x: x * x, lambda p, t: (p[0] * p[0], 2 * p[0] * t[0]))
    assert grad(lambda x: x * grad(lambda y: square(y) * x)(2.0))(3.0) == 24.0
    assert grad(lambda x: x * jvp(lambda y: square(y + x), (1.0,), (1.0,))[1])(3.0) == 14.0


# --- containers, names, arguments that are no numbers -------------------------------------------


@dataclass
class Spring:
    k: float
    rest: np.ndarray
    label: str = "steel"

    def energy(self, x):
        return 0.5 * self.k * np.sum((x - self.rest) ** 2)


class Pair(NamedTuple):
    a: float
    b: np.ndarray


SPRING = Spring(2.0, np.array([0.1, 0.2, 0.3]))


def force(s, x):
    return {"force": s.k * (x - s.rest), "energy": s.energy(x), "label": s.label}


def force_jvp(primals, tangents):
    (s, x), (s_dot, x_dot) = primals, tangents
    moved = s_dot.k * (x - s.rest) + s.k * (x_dot - s_dot.rest)
    lost = 0.5 * s_dot.k * np.sum((x - s.rest) ** 2) + np.sum(
        s.k * (x - s.rest) * (x_dot - s_dot.rest)
    )
    assert s_dot.label is None
    return force(s, x), {"force": moved, "energy": lost, "label": None}


def force_fwd(s, x):
    return force(s, x), (s, x)


def force_bwd(residuals, bar):
    s, x = residuals
    u = x - s.rest
    x_bar = s.k * bar["force"] + s.k * u * bar["energy"]
    k_bar = np.sum(bar["force"] * u) + 0.5 * np.sum(u**2) * bar["energy"]
    assert bar["label"] is None
    return Spring(k_bar, -x_bar, None), x_bar


FORCES = pytest.mark.parametrize(
    "rule",
    [custom_jvp(force, force_jvp, example=(SPRING, X)), custom_vjp(force, force_fwd, force_bwd)],
    ids=["custom_jvp", "custom_vjp"],
)


@FORCES
def test_arguments_and_results_may_be_containers(rule):
    def loss(s, x, f):
        y = f(s, x)
        assert y["label"] == "steel"
        return np.sum(y["force"] ** 2) + y["energy"]

    for argnums in (0, 1):
        ours = grad(lambda s, x: loss(s, x, rule), argnums)(SPRING, X)
        plain = grad(lambda s, x: loss(s, x, force), argnums)(SPRING, X)
        assert type(ours) is type(plain)
        assert all(np.allclose(a, b) for a, b in zip(_numbers(ours), _numbers(plain), strict=True))
    ours, plain = (hessian(lambda x, f=f: loss(SPRING, x, f))(X) for f in (rule, force))
    assert np.allclose(ours, plain)


def _numbers(tree):
    return [v for v in _flat(tree) if not isinstance(v, str)]


@FORCES
def test_only_one_of_several_results_may_be_used(rule):
    assert np.allclose(grad(lambda x: rule(SPRING, x)["energy"])(X), 2.0 * (X - SPRING.rest))
    assert np.allclose(jacobian(lambda x: rule(SPRING, x)["force"])(X), 2.0 * np.eye(3))


@FORCES
def test_jacobians_of_several_results_are_one_batched_sweep(rule):
    for mode in ("forward", "reverse"):
        J = jacobian(lambda x: [rule(SPRING, x)["force"], rule(SPRING, x)["energy"]], mode=mode)(X)
        assert np.allclose(J[0], 2.0 * np.eye(3))
        assert np.allclose(J[1], 2.0 * (X - SPRING.rest))


def test_dicts_are_arguments():
    f = custom_vjp(
        lambda p: p["w"] * p["b"][0],
        lambda p: (p["w"] * p["b"][0], p),
        lambda p, bar: ({"w": bar * p["b"][0], "b": [bar * p["w"]]},),
    )
    assert grad(f)({"w": 2.0, "b": [3.0]}) == {"w": 3.0, "b": [2.0]}
    assert jvp(f, ({"w": 2.0, "b": [3.0]},), ({"w": 1.0, "b": [1.0]},)) == (6.0, 5.0)


def test_named_tuples_come_back_as_such():
    f = custom_jvp(lambda p: p.a * np.sum(p.b), lambda p, t: _pair_rule(p[0], t[0]))
    g = grad(f)(Pair(2.0, X))
    assert isinstance(g, Pair)
    assert g.a == X.sum()
    assert np.allclose(g.b, 2.0)


def _pair_rule(p, p_dot):
    return p.a * np.sum(p.b), p_dot.a * np.sum(p.b) + p.a * np.sum(p_dot.b)


def test_what_is_no_number_falls_out_of_the_type():
    @custom_jvp
    def apply(f, x, n, flag, word, nothing):
        assert (n, flag, word, nothing) == (3, True, "word", None)
        return f(x) * n

    @apply.defjvp
    def rule(primals, tangents):
        f, x, n, *_ = primals
        f_dot, x_dot, n_dot, *rest = tangents
        assert f_dot is None
        assert n_dot == 0.0
        assert rest == [None, None, None]
        return f(x) * n, n * np.cos(x) * x_dot + f(x) * n_dot

    assert grad(lambda x: apply(np.sin, x, 3, True, "word", None))(0.5) == pytest.approx(
        3 * math.cos(0.5)
    )


def test_arguments_by_name_and_defaults_reach_the_rule_by_position():
    @custom_vjp
    def power(x, n=2, *, scale=1.0):
        return scale * x**n

    power.defvjp(
        lambda x, n, scale: (scale * x**n, (x, n, scale)),
        lambda res, bar: (res[2] * res[1] * res[0] ** (res[1] - 1) * bar, None),
    )
    assert grad(power)(3.0) == 6.0
    assert grad(lambda x: power(n=3, x=x, scale=2.0))(3.0) == 54.0


def test_a_traced_argument_by_keyword_only_is_refused():
    f = custom_jvp(lambda x, *, a: x * a, lambda p, t, a: (p[0] * a, t[0] * a))
    with pytest.raises(TypeMismatchError, match="the argument a is traced, but a rule states") as e:
        grad(lambda a: f(1.0, a=a))(2.0)
    assert text(e) == (
        "custom_jvp(<lambda>): the argument a is traced, but a rule states derivatives "
        "with respect "
        "to positional arguments; declare it as one"
    )


def test_rules_decorate_methods():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.partial(custom_jvp, check=False)
        def predict(self, x):
            return self.w * x

        @predict.defjvp
        def rule(primals, tangents):
            (model, x), (model_dot, x_dot) = primals, tangents
            return model.w * x, model_dot.w * x + model.w * x_dot

    assert grad(Model(3.0).predict)(2.0) == 3.0
    assert grad(lambda w: Model(w).predict(2.0))(3.0) == 2.0


def test_a_custom_function_keeps_its_name_and_documentation():
    def f(x):
        """Doubles."""
        return 2 * x

    g = custom_jvp(f, lambda p, t: (2 * p[0], 2 * t[0]))
    assert (g.__name__, g.__doc__, repr(g)) == ("f", "Doubles.", "custom_jvp(f)")
    assert g(2.0) == 4.0


def test_float32_and_complex_arguments():
    square = custom_vjp(
        lambda x: x * x, lambda x: (x * x, x), lambda x, bar: (2 * np.conj(x) * bar,)
    )
    assert grad(lambda x: np.sum(square(x)))(np.float32([1, 2])).dtype == np.float32
    z = np.array([1 + 2j, -1j])
    ours, plain = (grad(lambda z, f=f: np.sum(np.abs(f(z)) ** 2))(z) for f in (square, np.square))
    assert np.allclose(ours, plain)


def test_code_without_rules_runs_inside_a_rule():
    """f, fwd and bwd may call any code, for they get plain arrays, those they make included."""

    def solve(a, b):
        out = np.zeros(2)
        out[:] = array("d", np.linalg.lstsq(a, b)[0])
        return out

    def bwd(res, bar):
        a, y = res
        b_bar = np.array(array("d", np.linalg.lstsq(a.T, bar)[0]))
        return -np.outer(b_bar, y), b_bar

    def fwd(a, b):
        y = solve(a, b)
        return y, (a, y)

    f = custom_vjp(solve, fwd, bwd)
    a, b = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, 2.0])
    for argnums in (0, 1):
        ours = jacrev(f, argnums)(a, b)
        assert np.allclose(ours, jacrev(np.linalg.solve, argnums)(a, b))
    with pytest.raises(DetachError, match="float"):
        jvp(lambda b: f(a, b), (b,), (b,))


def test_rules_write_into_arrays():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y_dot = np.zeros(3)
        for i in range(3):
            y_dot[i] = 2 * x[i] * x_dot[i]
        return x * x, y_dot

    square = custom_jvp(lambda x: x * x, rule)
    assert np.allclose(jacrev(square)(X), np.diag(2 * X))
    assert np.allclose(jacfwd(square)(X), np.diag(2 * X))
    assert np.allclose(hessian(lambda x: np.sum(square(x) * X))(X), np.diag(2 * X))


def test_a_zero_tangent_may_be_the_number_zero():
    f = custom_jvp(np.floor, lambda p, t: (np.floor(p[0]), 0.0))
    assert grad(lambda x: np.sum(f(x) * x))(X).tolist() == np.floor(X).tolist()


def test_jvp_rules_run_once_a_call_and_the_function_not_at_all():
    calls = []

    @functools.partial(custom_jvp, check=False)
    def f(x):
        calls.append("f")
        return x * x

    @f.defjvp
    def rule(primals, tangents):
        calls.append("rule")
        return primals[0] ** 2, 2 * primals[0] * tangents[0]

    _, L = linearize(f, 3.0)
    assert (L @ 1.0, 2.0 @ L) == (6.0, 12.0)
    assert calls == ["rule"]


def test_a_lane_that_where_does_not_take_has_no_nan():
    jvp_root = custom_jvp(np.sqrt, lambda p, t: (np.sqrt(p[0]), t[0] / (2 * np.sqrt(p[0]))))
    vjp_root = custom_vjp(np.sqrt, lambda x: (np.sqrt(x), np.sqrt(x)), lambda y, w: (w / (2 * y),))
    x = np.array([4.0, 0.0])
    for root in (jvp_root, vjp_root):
        g = grad(lambda x, f=root: np.sum(np.where(x > 0, f(x), 0.0)))(x)
        assert g.tolist() == [0.25, 0.0]


def test_a_result_is_the_callers_own():
    same = custom_vjp(lambda x: x, lambda x: (x, None), lambda _, w: (w,))
    y, pull = vjp(same, X)
    assert y.flags.writeable
    assert not np.shares_memory(y, X)
    (x_bar,) = pull(V)
    assert x_bar.flags.writeable
    assert not np.shares_memory(x_bar, V)


def test_a_nan_is_found_beyond_a_function_with_several_results():
    two = custom_vjp(
        lambda x: (x, 2 * x), lambda x: ((x, 2 * x), None), lambda _, w: (w[0] + 2 * w[1],)
    )
    report = str(lineara.explain_nan(lambda x: np.sum(np.sqrt(two(x)[0])), np.zeros(2)))
    assert "sqrt at" in report
    assert "custom_vjp" not in report


def test_two_threads_use_a_rule_at_once():
    f = custom_jvp(lambda x: x**3, lambda p, t: (p[0] ** 3, 3 * p[0] ** 2 * t[0]))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(grad(lambda x: f(x) + f(2 * x)), [float(i) for i in range(50)]))
    assert found == [27.0 * i * i for i in range(50)]


# --- custom_linear ------------------------------------------------------------------------------


def matvec(x, a):
    return np.fromiter((float(np.dot(row, x)) for row in a), float)


def matvec_transpose(y_bar, a):
    return np.fromiter((float(np.dot(col, y_bar)) for col in a.T), float)


MATVEC = custom_linear(matvec, matvec_transpose)


def test_linear_code_of_any_kind_has_every_mode_and_order():
    def loss(x):
        return np.sum(MATVEC(np.sin(x), A) ** 2)

    def plain(x):
        return np.sum((A @ np.sin(x)) ** 2)

    assert np.allclose(grad(loss)(X), grad(plain)(X))
    assert np.allclose(hessian(loss)(X), hessian(plain)(X))
    assert np.allclose(
        grad(lambda x: np.sum(hvp(loss)(x, V)))(X), grad(lambda x: np.sum(hvp(plain)(x, V)))(X)
    )
    assert np.allclose(jacfwd(lambda x: MATVEC(x, A))(X), A)
    assert np.allclose(jacrev(lambda x: MATVEC(x, A))(X), A)
    assert np.allclose(
        jacfwd(jacrev(lambda x: MATVEC(x * x, A)))(X), jacfwd(jacrev(lambda x: A @ (x * x)))(X)
    )


def test_the_transpose_of_a_linear_function_is_one():
    assert np.allclose(MATVEC.T(np.ones(2), A), A.sum(0))
    assert np.allclose(grad(lambda w: np.sum(MATVEC.T(w, A) * X))(np.ones(2)), A @ X)
    assert np.allclose(lineara.linear_transpose(lambda x: MATVEC(x, A), X)(np.ones(2))[0], A.sum(0))


def test_several_linear_arguments_have_a_tuple_of_cotangents():
    f = custom_linear(lambda a, x, b: a - 2 * b, lambda w, x: (w, -2 * w), argnums=(0, 2))
    assert grad(lambda a, b: f(a, "x", b) ** 2, argnums=(0, 1))(3.0, 1.0) == (2.0, -4.0)


def test_the_linear_argument_may_be_a_container():
    f = custom_linear(lambda p: p["u"] + 3 * p["v"], lambda w: {"u": w, "v": 3 * w})
    assert grad(lambda u, v: f({"u": u, "v": v}), argnums=(0, 1))(1.0, 2.0) == (1.0, 3.0)
    assert jvp(lambda u: f({"u": u, "v": 2.0}), (1.0,), (1.0,)) == (7.0, 1.0)


def test_a_linear_function_is_used_in_the_rule_of_another():
    solve = custom_linear(
        lambda b, a: np.linalg.lstsq(a, b)[0], lambda w, a: np.linalg.lstsq(a.T, w)[0]
    )

    def rule(primals, tangents):
        (a, b), (a_dot, b_dot) = primals, tangents
        y = solve(b, a)
        return y, solve(b_dot - a_dot @ y, a)

    f = custom_jvp(lambda a, b: solve(b, a), rule)
    a, b = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, 2.0])
    for argnums in (0, 1):
        for jac in (jacfwd, jacrev):
            assert np.allclose(jac(f, argnums)(a, b), jac(np.linalg.solve, argnums)(a, b))


def test_the_derivative_with_respect_to_a_parameter_is_refused():
    with pytest.raises(NoRuleError, match="no derivative with respect to the argument") as e:
        grad(lambda a: np.sum(MATVEC(X, a)))(A)
    assert text(e) == (
        "custom_linear(matvec): no derivative with respect to the argument `a`, in which it is not "
        "declared linear (argnums); give it a plain value, or declare a custom_jvp"
    )


# --- rules are tested ---------------------------------------------------------------------------


def test_a_wrong_jvp_is_refused_with_both_numbers():
    with pytest.raises(RuleError, match="but a finite difference of the function") as e:
        custom_jvp(lambda x: x**3, lambda p, t: (p[0] ** 3, 2 * p[0] ** 2 * t[0]), example=(2.0,))
    assert text(e) == (
        "custom_jvp(<lambda>): the rule says that the derivative is 8, but a finite "
        "difference of the "
        "function 12; mend the rule, or give check=False if this is meant"
    )


def test_a_wrong_rule_is_refused_at_the_first_call_and_every_later_one():
    f = custom_jvp(lambda x: x**3, lambda p, t: (p[0] ** 3, 2 * p[0] ** 2 * t[0]))
    for _ in range(2):
        with pytest.raises(RuleError, match="but a finite difference of the function"):
            f(2.0)
    with pytest.raises(RuleError, match=r"test_rules.py:\d+ in test_a_wrong_rule"):
        grad(f)(2.0)


def test_the_argument_whose_cotangent_is_wrong_is_named():
    def bwd(res, bar):
        x, y = res
        return y * bar, -x * bar

    with pytest.raises(RuleError, match="but a finite difference of the function") as e:
        custom_vjp(lambda x, y: x * y, lambda x, y: (x * y, (x, y)), bwd, example=(2.0, 3.0))
    assert text(e).endswith(
        "(the derivative with respect to `y` is off); mend the rule, or give check=False "
        "if this is meant"
    )


def test_a_wrong_value_is_refused():
    with pytest.raises(RuleError, match="mend the rule, or give check") as e:
        custom_jvp(
            lambda x: x * x, lambda p, t: (p[0], 2 * p[0] * t[0]), example=(np.array([1.0, 3.0]),)
        )
    assert text(e) == (
        "custom_jvp(<lambda>): the rule returns the value 3 at [1], but the function 9 at [1]; "
        "mend the rule, or give check=False if this is meant"
    )


def test_a_rule_that_is_not_linear_is_refused_at_its_line():
    with pytest.raises(LinearityError, match="a linear function adds, subtracts, moves") as e:
        custom_jvp(lambda x: x * x, lambda p, t: (p[0] ** 2, t[0] * t[0]), example=(2.0,))
    assert text(e) == (
        "multiply is not linear in f64[], f64[]; a linear function adds, subtracts, "
        "moves elements, "
        "and multiplies by constants"
    )
    assert "t[0] * t[0]" in e.value.line
    with pytest.raises(RuleError, match="mend the rule, or give check") as e:
        custom_vjp(lambda x: x, lambda x: (x, None), lambda _, w: (np.abs(w),), example=(2.0,))
    assert text(e).startswith(
        "custom_vjp(<lambda>): bwd is not linear in y_bar: of 2 u - 3 w it gives"
    )


def test_a_wrong_transpose_is_refused():
    with pytest.raises(RuleError, match="f is linear, so the transpose is off") as e:
        custom_linear(lambda x: 2 * x, lambda w: 3 * w, example=(1.0,))
    assert text(e) == (
        "custom_linear(<lambda>): <w, f(v)> is -0.169206, but <transpose(w), v> is -0.253809; f is "
        "linear, so the transpose is off: mend the rule, or give check=False if this is meant"
    )


def test_a_custom_linear_that_is_not_linear_is_refused():
    with pytest.raises(LinearityError, match="in a random direction, but a f") as e:
        custom_linear(lambda x: x + 1.0, lambda w: w, example=(1.0,))
    assert text(e).startswith("custom_linear(<lambda>): f(a u + b v) is ")
    assert text(e).endswith("; the function is not linear")


def test_check_false_switches_the_test_off():
    f = custom_jvp(lambda x: x**3, lambda p, t: (p[0] ** 3, 7.0 * t[0]), check=False)
    assert grad(f)(2.0) == 7.0


def test_right_rules_pass_where_the_function_has_a_kink():
    relu = custom_jvp(
        lambda x: np.maximum(x, 0.0), lambda p, t: (np.maximum(p[0], 0.0), (p[0] > 0) * t[0])
    )
    assert relu(0.0) == 0.0
    assert relu(np.zeros(4)).tolist() == [0.0] * 4
    assert grad(lambda x: np.sum(relu(x)))(np.array([-1.0, 0.0, 2.0])).tolist() == [0.0, 0.0, 1.0]


def test_right_rules_pass_at_the_end_of_a_domain():
    root = custom_jvp(math.sqrt, lambda p, t: (math.sqrt(p[0]), t[0] / (2 * math.sqrt(p[0]))))
    assert root(1e-300) == 1e-150
    assert grad(root)(4.0) == 0.25
    log = custom_jvp(np.log, lambda p, t: (np.log(p[0]), t[0] / p[0]), example=(1e-8,))
    assert grad(log)(2.0) == 0.5


def test_a_rule_is_tested_with_float32():
    f = custom_jvp(np.sin, lambda p, t: (np.sin(p[0]), np.cos(p[0]) * t[0]))
    assert f(np.float32([0.1, 2.0])).dtype == np.float32
    with pytest.raises(RuleError, match="finite difference"):
        custom_jvp(np.sin, lambda p, t: (np.sin(p[0]), np.sin(p[0]) * t[0]))(np.float32([0.1, 2.0]))


def test_what_a_rule_returns_is_checked():
    with pytest.raises(RuleError, match="the rule must return") as e:
        grad(custom_jvp(lambda x: x, lambda p, t: t[0], check=False))(1.0)
    assert text(e) == "custom_jvp(<lambda>): the rule must return (y, y_dot), but it returned f64[]"
    with pytest.raises(RuleError, match="they must have the same shape") as e:
        jvp(custom_jvp(lambda x: x, lambda p, t: (p[0], np.sum(t[0])), check=False), (X,), (X,))
    assert text(e) == (
        "custom_jvp(<lambda>): the rule returned a value f64[3] but a tangent f64[]; "
        "they must have the same shape"
    )
    with pytest.raises(RuleError, match="cotangents, one for each argument") as e:
        grad(custom_vjp(lambda x: x, lambda x: (x, None), lambda r, w: w, check=False))(1.0)
    assert text(e) == (
        "custom_vjp(<lambda>): bwd must return a tuple of 1 cotangents, one for each "
        "argument (None "
        "for zero), but it returned f64[]"
    )
    f = custom_vjp(lambda x: np.sum(x), lambda x: (np.sum(x), None), lambda r, w: (w,), check=False)
    with pytest.raises(RuleError, match="but its cotangent from bwd is f") as e:
        grad(f)(X)
    assert text(e) == (
        "custom_vjp(<lambda>): the argument `x` is f64[3], but its cotangent from bwd is f64[]; "
        "they must have the same shape"
    )


def test_a_function_without_a_rule_says_so_when_it_is_differentiated():
    @custom_jvp
    def f(x):
        return x

    assert f(2.0) == 2.0
    with pytest.raises(RuleError, match="declare it with f") as e:
        grad(f)(2.0)
    assert text(e) == "custom_jvp(f) has no rule yet; declare it with f.defjvp"


def test_a_captured_traced_value_is_refused():
    def loss(w):
        f = custom_jvp(lambda x: w * x, lambda p, t: (w * p[0], w * t[0]), check=False)
        return f(w)

    with pytest.raises(lineara.errors.LinearaError, match="not among its arguments"):
        grad(loss)(2.0)


def test_a_function_that_writes_into_its_argument_is_refused():
    def f(x):
        x[0] = 0.0
        return x * 1.0

    with pytest.raises(MutationError, match="vjp of f writes into an array that it was") as e:
        grad(
            lambda x: np.sum(
                custom_vjp(f, lambda x: (f(x), None), lambda r, w: (w,), check=False)(x)
            )
        )(X)
    assert text(e) == (
        "custom_vjp of f writes into an array that it was given, which its rule still needs; "
        "let it write into a copy"
    )


# --- check_linear -------------------------------------------------------------------------------


def test_check_linear_reports_errors_of_rounding():
    report = check_linear(lambda x, y: A @ x + np.cumsum(y), X, np.zeros(2))
    assert report.linearity < 1e-13
    assert report.transpose < 1e-13


def test_check_linear_refuses_what_is_not_linear():
    with pytest.raises(LinearityError, match="exp is not linear"):
        check_linear(np.exp, X)


def test_check_linear_finds_a_wrong_transpose():
    wrong = custom_linear(lambda x: 2 * x, lambda w: 3 * w, check=False)
    with pytest.raises(RuleError, match="f is linear, so the transpose is off") as e:
        check_linear(wrong, 1.0)
    assert text(e) == (
        "check_linear of <lambda>: <w, f(v)> is -0.169206, but <transpose(w), v> is "
        "-0.253809; f is "
        "linear, so the transpose is off: mend the rule, or give check=False if this is meant"
    )


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "custom_linear"])
def test_a_rule_that_closes_over_a_traced_value_says_so(kind):
    def f(x):
        if kind == "custom_jvp":
            g = custom_jvp(lambda y: y * x)
            g.defjvp(lambda primals, tangents: (primals[0] * x, tangents[0] * x))
        elif kind == "custom_vjp":
            g = custom_vjp(lambda y: y * x)
            g.defvjp(lambda y: (y * x, None), lambda _, y_bar: (y_bar * x,))
        else:
            g = custom_linear(lambda y: y * x, transpose=lambda y_bar: y_bar * x)
        return g(x)

    with pytest.raises(RuleError, match=rf"^{kind}\(<lambda>\) uses a traced value that is not "):
        grad(f)(2.0)

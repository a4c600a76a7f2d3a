"""Solutions of differential equations, as functions of parameters, starts and times."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import RK45, odeint, solve_ivp

from lineara import grad, hessian, jacobian, jvp, value_and_grad, vjp
from lineara.solvers import ode
from lineara.tape.levels import innermost_level

METHODS = ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]
SLOW = pytest.mark.slow("as an explicit and an implicit method are tested: 0.3 s each")
EVERY = ["RK45", "BDF", *[pytest.param(m, marks=SLOW) for m in METHODS if m not in ("RK45", "BDF")]]
SMOOTH = {"rtol": 1e-8, "atol": 1e-10}
TIGHT = {m: SMOOTH | ({"rtol": 1e-6} if m in ("RK23", "Radau", "BDF") else {}) for m in METHODS}


def near(ours, closed, p, rtol=1e-5, second=True):
    """Whether ours has SciPy's value, and in every mode the derivatives of the closed form."""
    p = np.array(p)
    value, slope = value_and_grad(ours)(p)
    expected = grad(closed)(p)
    size = np.max(np.abs(expected))
    assert value == ours(p)
    assert np.allclose(slope, expected, rtol=rtol, atol=rtol * size)
    assert np.allclose(jvp(ours, (p,), (np.ones(len(p)),))[1], np.sum(slope), rtol=1e-9)
    if second:
        H = hessian(closed)(p)
        size = np.max(np.abs(H))
        assert np.allclose(hessian(ours)(p), H, rtol=30 * rtol, atol=30 * rtol * size)
    return True


def oscillator(t, y, w):
    return [y[1], -w * w * y[0]]


# --- every method -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow("solves equations by every method: 4 s")
def test_the_end(method):
    def ours(p):
        options = TIGHT[method] | {"method": method, "args": (p[0],)}
        return solve_ivp(oscillator, (0, 2.0), [p[1], 0.0], **options).y[0, -1]

    assert near(ours, lambda p: p[1] * np.cos(2 * p[0]), [1.3, 0.7], 1e-4)


@pytest.mark.parametrize("method", EVERY)
def test_times_that_are_asked_for(method):
    times = np.array([0.0, 0.3, 0.31, 1.9, 2.0])

    def ours(p):
        found = solve_ivp(
            lambda t, y: p[0] * np.cos(t) * y, (0, 2.0), p[1:], method, times, **TIGHT[method]
        )
        return np.sum(found.y[0] * np.arange(5.0))

    def closed(p):
        return np.sum(p[1] * np.exp(p[0] * np.sin(times)) * np.arange(5.0))

    assert near(ours, closed, [0.8, 1.5], 1e-4, second=method not in ("Radau", "BDF"))


def on_the_ground(t, y):
    return y[0]


on_the_ground.terminal, on_the_ground.direction = True, -1


@pytest.mark.parametrize("method", EVERY)
def test_a_terminal_event(method):
    def ours(p):
        options = TIGHT[method] | {"method": method, "events": on_the_ground}
        found = solve_ivp(lambda t, y: [y[1], -p[0]], (0, 9.0), [p[1], 0.0], **options)
        return found.t_events[0][0] + 2 * found.t[-1] + found.y[1, -1] * found.y_events[0][0, 1]

    assert near(ours, lambda p: 3 * np.sqrt(2 * p[1] / p[0]) + 2 * p[0] * p[1], [9.8, 5.0], 1e-6)


def test_events_with_parameters_one_after_the_other():
    def ours(p):
        def falls(t, y, k):
            return y[0] - p[1]

        def lower(t, y, k):
            return y[0] - p[1] / 2

        found = solve_ivp(
            lambda t, y, k: -k * y, (0, 5.0), [2.0], events=[falls, lower], args=(p[0],), **SMOOTH
        )
        return found.t_events[0][0] * found.t_events[1][0] + found.y_events[1][0][0]

    def closed(p):
        return np.log(2 / p[1]) / p[0] * np.log(4 / p[1]) / p[0] + p[1] / 2

    assert near(ours, closed, [0.9, 1.1])


@pytest.mark.parametrize("method", EVERY)
def test_dense_output_and_moving_ends(method):
    def ours(p):
        span, options = (p[1], p[2]), TIGHT[method] | {"dense_output": True}
        found = solve_ivp(lambda t, y: -p[0] * t * y, span, [p[3]], method, **options)
        late = found.sol([1.7, p[2] - 0.1])[0]
        return found.y[0, -1] * found.t[-1] + found.sol(1.5)[0] ** 2 + np.sum(late) + found.t[0]

    def closed(p):
        def y(t):
            return p[3] * np.exp(-p[0] * (t * t - p[1] ** 2) / 2)

        return y(p[2]) * p[2] + y(1.5) ** 2 + y(1.7) + y(p[2] - 0.1) + p[1]

    assert near(ours, closed, [0.8, 0.5, 2.5, 3.0], 1e-4, second=False)


def test_backward_in_time():
    def ours(p):
        found = solve_ivp(
            lambda t, y: -p[0] * y, (p[1], p[2]), [p[3]], t_eval=[2.0, p[2]], **SMOOTH
        )
        return found.y[0, 0] + found.y[0, 1] * found.t[1]

    def closed(p):
        y = p[3] * np.exp(-p[0] * (2.0 - p[1]))
        return y + p[3] * np.exp(-p[0] * (p[2] - p[1])) * p[2]

    assert near(ours, closed, [0.3, 2.5, 0.5, 3.0])


def test_a_derivative_is_that_of_the_computed_numbers():
    def ours(k):  # a tolerance so loose that the numbers are far from the solution
        options = {"rtol": 1.0, "atol": 1.0, "first_step": 0.5, "max_step": 0.5}
        return solve_ivp(lambda t, y: -k * y, (0, 1.0), [1.0], **options).y[0, -1]

    def closed(k):  # two steps of the method, whose stability polynomial has this coefficient
        z = -0.5 * k
        return sum(z**i / f for i, f in enumerate((1, 1, 2, 6, 24, 120, 600))) ** 2

    assert ours(3.0) == pytest.approx(closed(3.0), rel=1e-14)
    assert grad(ours)(3.0) == pytest.approx(grad(closed)(3.0), rel=1e-13)
    assert grad(grad(ours))(3.0) == pytest.approx(grad(grad(closed))(3.0), rel=1e-13)


def test_a_class_in_place_of_a_name_and_a_vectorized_function():
    def ours(p):
        one = solve_ivp(lambda t, y: -p[0] * y, (0, 1.0), [1.0], RK45, **SMOOTH)
        two = solve_ivp(
            lambda t, y: np.stack([-p[0] * y[0]]), (0, 1), [1], "BDF", vectorized=True, rtol=1e-6
        )
        return one.y[0, -1] + two.y[0, -1]

    assert near(ours, lambda p: 2 * np.exp(-p[0]), [0.8], 1e-4)


@dataclass
class Model:
    k: float
    source: np.ndarray

    def slope(self, t, y):
        return self.source - self.k * y


def test_a_model_with_a_method():
    def ours(m):
        return np.sum(solve_ivp(m.slope, (0, 1.0), np.zeros(2), **SMOOTH).y[:, -1])

    m = Model(0.7, np.array([1.0, 3.0]))
    g = grad(ours)(m)
    assert isinstance(g, Model)
    assert np.allclose(g.source, (1 - np.exp(-0.7)) / 0.7, rtol=1e-6)
    assert g.k == pytest.approx(4 * (np.exp(-0.7) * 1.7 - 1) / 0.49, rel=1e-6)


def test_a_large_state_is_computed_again_and_not_kept(monkeypatch):
    start = np.random.default_rng(0).normal(size=8)

    def f(k):
        found = solve_ivp(lambda t, y: np.roll(y, 1) - k * y, (0, 1.0), start, **SMOOTH)
        return np.sum(found.y[:, -1] ** 2)

    kept = grad(f)(1.0), grad(grad(f))(1.0)
    monkeypatch.setattr(ode, "LARGE", 8)
    assert np.allclose((grad(f)(1.0), grad(grad(f))(1.0)), kept, rtol=1e-12)


def test_the_solver_runs_once_on_numbers():
    seen = []

    def f(k):
        def slope(t, y):
            seen.append(type(y))
            return -k * y

        return solve_ivp(slope, (0, 1.0), [1.0]).y[0, -1]

    f(1.0)
    count = len(seen)
    seen.clear()
    _, pull = vjp(f, 1.0)
    again = len(seen)
    assert seen[:count] == [np.ndarray] * count
    assert again < 2 * count  # the steps once more; those that were rejected are not
    pull(1.0), pull(2.0)
    assert len(seen) == again


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_a_jacobian_of_the_users(method):
    def ours(p):
        options = TIGHT[method] | {"jac": lambda t, y, k: np.array([[-k]]), "args": (p[0],)}
        return solve_ivp(lambda t, y, k: -k * y, (0, 1.0), [1.0], method, **options).y[0, -1]

    assert near(ours, lambda p: np.exp(-p[0]), [1.3], 1e-4)


def test_complex_numbers():
    def ours(p):
        y = solve_ivp(lambda t, y: (1j - 0.5) * p * y, (0, 1.0), [1.0 + 0j], **SMOOTH).y[0, -1]
        return np.abs(y) ** 2 + np.imag(y)

    assert near(lambda p: ours(p[0]), lambda p: _spiral(p[0]), [1.3])


def _spiral(p):
    return np.exp(-p) + np.exp(-0.5 * p) * np.sin(p)


def test_a_solver_that_gives_up_on_its_way():
    def solve(p):
        return solve_ivp(lambda t, y: p * y**2, (0, 10.0), [1.0], rtol=1e-6)  # 1 / (1 - p t)

    found = solve(1.0)
    assert not found.success
    slope = grad(lambda p: solve(p).y[0, 3])(1.0)
    assert slope == pytest.approx(found.t[3] * found.y[0, 3] ** 2, rel=1e-4)


# --- odeint -------------------------------------------------------------------------------------


def test_odeint():
    times = np.linspace(0.0, 2.0, 5)

    def ours(p):
        y = odeint(lambda y, t, w: oscillator(t, y, w), [p[1], 0.0], times, args=(p[0],))
        return np.sum(y[:, 0] ** 2)

    assert near(ours, lambda p: np.sum((p[1] * np.cos(p[0] * times)) ** 2), [1.3, 0.7])


def test_odeint_in_its_times():
    def ours(p):
        y, _ = odeint(lambda t, y: -p[0] * y, p[1], [0.0, 1.0, p[2]], tfirst=True, full_output=True)
        return y[-1, 0]

    assert near(ours, lambda p: p[1] * np.exp(-p[0] * p[2]), [1.3, 0.7, 2.0])


@pytest.mark.parametrize(
    "solve",
    [
        lambda f: odeint(f, [0.3], [0.0, 1.0], tfirst=True)[-1, 0],
        lambda f: solve_ivp(f, (0, 1.0), [0.3], "LSODA", **SMOOTH).y[0, -1],
        lambda f: solve_ivp(f, (0, 1.0), [0.3], "Radau", **SMOOTH).y[0, -1],
    ],
)
def test_stiff(solve):
    def ours(k):
        return solve(lambda t, y: -k * (y - np.cos(t)))

    def closed(k):  # y = (k^2 cos t + k sin t) / (k^2 + 1) when the start is forgotten
        return (k * k * np.cos(1.0) + k * np.sin(1.0)) / (k * k + 1)

    assert grad(ours)(1e4) == pytest.approx(grad(closed)(1e4), rel=1e-3)


def test_a_jacobian_in_both_modes():
    def flow(y):
        return solve_ivp(oscillator, (0, 1.0), y, args=(2.0,), **SMOOTH).y[:, -1]

    exact = [[np.cos(2), np.sin(2) / 2], [-2 * np.sin(2), np.cos(2)]]
    for mode in ("forward", "reverse"):
        assert np.allclose(jacobian(flow, mode=mode)(np.array([1.0, 0.5])), exact, rtol=1e-6)


# --- the continuous adjoint ---------------------------------------------------------------------

CONTINUOUS = {"adjoint": "continuous", "rtol": 1e-7, "atol": 1e-9}


@pytest.mark.parametrize(
    "method", ["RK45", pytest.param("Radau", marks=SLOW), pytest.param("LSODA", marks=SLOW)]
)
def test_the_continuous_adjoint(method):
    def ours(p):
        options = CONTINUOUS | {"method": method, "t_eval": [p[1], 1.0, p[2]]}
        found = solve_ivp(lambda t, y: -p[0] * t * y, (p[1], p[2]), p[3:], **options)
        return np.sum(found.y[0] * found.t)

    def closed(p):
        t = np.stack([p[1], 1.0, p[2]])
        return np.sum(t * p[3] * np.exp(-p[0] * (t * t - p[1] ** 2) / 2))

    p = np.array([0.8, 0.5, 2.0, 3.0])
    slope = vjp(ours, p)[1](1.0)[0]
    assert np.allclose(slope, grad(closed)(p), rtol=1e-4, atol=1e-5)
    assert jvp(ours, (p,), (np.ones(4),))[1] == pytest.approx(np.sum(slope), rel=1e-4)


def test_the_continuous_adjoint_of_itself():
    def ours(p):
        return solve_ivp(lambda t, y: -p[0] * y, (0, 1), p[1:], t_eval=[1.0], **CONTINUOUS).y[0, 0]

    p = np.array([0.8, 1.5])
    exact = np.exp(-0.8) * np.array([[1.5, -1.0], [-1.0, 0.0]])
    assert np.allclose(hessian(ours)(p), exact, atol=1e-5)


def test_the_continuous_adjoint_keeps_no_steps():
    lengths = []

    def f(k, adjoint):
        before = len(innermost_level().tape)
        y = solve_ivp(lambda t, y: -k * y, (0, 1.0), [k], t_eval=[1.0], adjoint=adjoint).y[0, 0]
        lengths.append(len(innermost_level().tape) - before)
        return y

    found = [grad(lambda k, a=a: f(k, a))(0.5) for a in ("continuous", "discrete")]
    assert np.allclose(found, 0.5 * np.exp(-0.5), rtol=1e-2)
    assert lengths[0] < 20 < lengths[1]


def test_the_arguments_may_be_a_list():
    def last(a, kind=list):
        def decay(t, y, a, b):
            return -a * b * y

        return solve_ivp(decay, (0, 1.0), [1.0], args=kind([a, 0.5]), rtol=1e-9).y[0, -1]

    assert grad(last)(2.0) == grad(lambda a: last(a, tuple))(2.0)

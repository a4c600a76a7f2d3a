"""python-control: responses, feedback, poles and regulators."""

import numpy as np
from following import Cases

cases = Cases("control")

import control


@cases.at(2.0, 0.7)
def response_at(k, zeta):
    g = control.tf([k], [1.0, 2 * zeta, 1.0])
    return abs(g(1j * 0.8))


@cases.at(2.0, 0.7)
def closed_loop(k, zeta):
    g = control.tf([k], [1.0, 2 * zeta, 1.0])
    return abs(control.feedback(g, 1)(0.5j))


@cases.at(2.0, 0.7)
def gain(k, a):
    return control.tf([k, 1.0], [1.0, a, 3.0]).dcgain()


@cases.at(2.0, 0.7)
def series(k, a):
    g = control.tf([k], [1.0, a]) * control.tf([1.0, a], [1.0, 2.0, k])
    return (g + control.tf([1.0], [1.0, 1.0]))(0.3j).real


@cases.at(2.0, 0.7)
def state_space(k, a):
    s = control.ss([[-a, 1.0], [0.0, -k]], [[0.0], [1.0]], [[1.0, a]], [[0.0]])
    return abs(s(0.5j))


@cases.at(2.0, 0.7)
def poles(k, a):
    return np.sum(control.tf([1.0], [1.0, k, a]).poles().real ** 2)


@cases.at(2.0, 0.7)
def regulator(q, r):
    A, B = np.array([[0.0, 1.0], [-1.0, -0.5]]), np.array([[0.0], [1.0]])
    K, _, _ = control.lqr(A, B, np.diag([q, 1.0]), np.array([[r]]))
    return K[0, 0] * K[0, 1]


@cases.at(2.0, 0.7)
def lyapunov(k, a):
    return control.lyap(np.array([[-k, a], [0.0, -1.0]]), np.eye(2))[0, 1]


@cases.refuses(
    2.0,
    0.7,
    match="plain array",
    why="its result is an array of a class derived from NumPy's, which cannot hold derivatives",
)
def step(k, zeta):
    g = control.tf([k], [1.0, 2 * zeta, 1.0])
    return control.step_response(g, np.linspace(0, 3, 20)).outputs[-1]


@cases.refuses(
    2.0,
    0.7,
    match="plain array",
    why="its result is an array of a class derived from NumPy's, which cannot hold derivatives",
)
def bode(k, zeta):
    g = control.tf([k], [1.0, 2 * zeta, 1.0])
    r = control.frequency_response(g, np.array([0.3, 0.9]))
    return np.sum(r.magnitude) + r.phase[0]


@cases.at(2.0, 0.7)
def placed(a, b):
    A, B = np.array([[0.0, 1.0], [a, b]]), np.array([[0.0], [1.0]])
    return np.ravel(control.acker(A, B, [-1.0, -2.0]))[1]


cases.not_captured(
    "response_at",
    "closed_loop",
    "gain",
    "series",
    "poles",
    why="it writes into arrays of arrays in a branch",
)
cases.not_captured("state_space", why="it catches what arithmetic may raise as the program runs")
cases.not_captured("regulator", why="whether eigenvalues are real depends on values")

test_works, test_refused, test_jitted = cases.tests()

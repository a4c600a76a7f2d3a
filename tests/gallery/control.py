"""Control: loops that are closed, trajectories, filters, optimal inputs."""

from dataclasses import dataclass, field, replace

import numpy as np

from gallery.snippets import at, some

A = np.array([[1.0, 0.1], [-0.2, 0.95]])
B = np.array([[0.0], [0.1]])


@at(some(1, 2, seed=1))
def lqr_cost(K):
    x = np.array([1.0, -0.5])
    cost = 0.0
    for _ in range(25):
        u = -K @ x
        cost += x @ x + 0.1 * (u @ u)
        x = A @ x + B @ u
    return cost


@dataclass
class Gains:
    p: float
    i: float = 0.1
    d: float = 0.05


class Plant:
    def __init__(self):
        self.level = 0.0
        self.speed = 0.0

    def step(self, force, dt):
        self.speed += dt * (force - 0.4 * self.speed - self.level)
        self.level += dt * self.speed
        return self.level


@at(Gains(2.0))
def pid_tracking(gains):
    plant = Plant()
    total, last, cost = 0.0, 1.0, 0.0
    for _ in range(30):
        err = 1.0 - plant.level
        total += err * 0.1
        force = gains.p * err + gains.i * total + gains.d * (err - last) / 0.1
        last = err
        plant.step(force, 0.1)
        cost += err**2
    return cost


@at(some(12, seed=2, low=-1, high=1))
def rocket_landing(thrust):
    h, v, m = 10.0, -2.0, 1.0
    for u in thrust:
        a = (9 + u) / m - 9.81
        v += 0.1 * a
        h += 0.1 * v
        m -= 0.01 * (9 + u) / 9
    return h**2 + 4 * v**2 + 0.01 * (thrust**2).sum()


@at(0.1, 0.4)
def kalman_likelihood(q, r):
    measured = np.cumsum(some(20, seed=3, low=-1, high=1))
    mean, var, ll = 0.0, 1.0, 0.0
    for z in measured:
        var = var + q
        s = var + r
        ll -= 0.5 * (np.log(s) + (z - mean) ** 2 / s)
        gain = var / s
        mean = mean + gain * (z - mean)
        var = (1 - gain) * var
    return ll


@at(some(2, 2, seed=4), some(2, 2, seed=5))
def matrix_kalman(Q, R):
    P = np.eye(2)
    cost = 0
    for _ in range(5):
        P = A @ P @ A.T + Q @ Q.T
        S = P + R @ R.T + 0.1 * np.eye(2)
        K = np.linalg.solve(S, P).T
        P = (np.eye(2) - K) @ P
        cost += np.trace(P)
    return cost


@at(0.7, 1.5)
def step_response_overshoot(zeta, wn):
    wd = wn * (1 - zeta**2) ** 0.5
    t = np.linspace(0, 3, 40)
    y = 1 - np.exp(-zeta * wn * t) * (np.cos(wd * t) + zeta * wn / wd * np.sin(wd * t))
    return ((y - 1) ** 2).sum()


@at(some(3, seed=6))
def gain_margin(k):
    s = 1j * 2.0
    plant = 1 / (s**2 + 0.5 * s + 1)
    controller = k[0] + k[1] / s + k[2] * s
    return np.abs(1 / (1 + plant * controller))


@at(some(4, 4, seed=7) / 6)
def controllability(M):
    b = np.array([1.0, 0.0, 0.5, 0.0])
    columns = [b]
    for _ in range(3):
        columns.append(M @ columns[-1])
    gram = np.column_stack(columns)
    return np.linalg.det(gram.T @ gram)


@at(some(2, 2, seed=8))
def lyapunov_by_iteration(F):
    F = 0.3 * F
    P = np.eye(2)
    for _ in range(40):
        P = F.T @ P @ F + np.eye(2)
    return np.trace(P)


@at(np.array([0.5, 0.2]))
def cart_with_saturation(k):
    x, v, cost = 1.0, 0.0, 0.0
    for _ in range(20):
        u = -k[0] * x - k[1] * v
        u = 2 * np.tanh(u / 2)
        x, v = x + 0.1 * v, v + 0.1 * u
        cost += x * x
    return cost


@at(some(6, seed=9))
def spline_path(knots):
    t = np.linspace(0, 5 - 1e-9, 30)
    i = t.astype(int)
    w = t - i
    path = (1 - w) * knots[i] + w * knots[i + 1]
    return np.sum(np.diff(path, 2) ** 2) + path[-1]


@dataclass(frozen=True)
class State:
    x: float
    theta: float
    trail: list = field(default_factory=list)


@at(0.3, 0.8)
def unicycle(speed, turn):
    s = State(0.0, 0.1)
    for _ in range(10):
        s = replace(s, x=s.x + speed * np.cos(s.theta), theta=s.theta + 0.1 * turn)
        s.trail.append(s.x)
    return max(s.trail) ** 2 + sum(s.trail)


@at(some(5, seed=10))
def barrier(u):
    t = 10.0
    cost = np.sum((u - 0.4) ** 2)
    walls = np.sum(np.log(u)) + np.sum(np.log(2.0 - u))
    return t * cost - walls


@at(0.9, 0.2)
def bang_bang_until_target(force, drag):
    v, t = 0.0, 0
    while v < 1.0 and t < 100:
        v = v + 0.1 * (force - drag * v)
        t += 1
    return v**2 + t

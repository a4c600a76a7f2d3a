"""Physics: mechanics, fields, heat, optics, a little quantum mechanics."""

import math
from math import cos, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy import exp

from gallery.snippets import at, some


@at(0.9, 1.2)
def pendulum_energy(theta, omega):
    m, length, g = 1.3, 0.7, 9.81
    return 0.5 * m * (length * omega) ** 2 + m * g * length * (1 - cos(theta))


@at(np.array([1.0, 0.0, 0.0, 0.9]))
def kepler_orbit(state):
    s = state.copy()
    dt = 0.01
    for _ in range(50):
        r3 = (s[0] ** 2 + s[1] ** 2) ** 1.5
        s[2] -= dt * s[0] / r3
        s[3] -= dt * s[1] / r3
        s[0] += dt * s[2]
        s[1] += dt * s[3]
    return s[0] * s[3] - s[1] * s[2] + 0.1 * s[0]


@at(some(5, 3, seed=1))
def lennard_jones(pos):
    e = 0.0
    n = len(pos)
    for i in range(n):
        for j in range(i + 1, n):
            r2 = np.sum((pos[i] - pos[j]) ** 2) + 0.5
            e += 4 * (1 / r2**6 - 1 / r2**3)
    return e


@at(some(6, seed=2), some(6, 2, seed=3))
def coulomb(charges, where):
    d = where[:, None, :] - where[None, :, :]
    r = np.sqrt((d**2).sum(-1) + 0.1)
    q = charges[:, None] * charges[None, :]
    return 0.5 * np.sum(np.triu(q / r, k=1))


@at(some(16, seed=4))
def heat_equation(u0):
    u = u0.copy()
    for step in range(20):
        lap = np.zeros_like(u)
        lap[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
        u = u + 0.2 * lap
    return np.sum(u**2)


@at(some(8, seed=5), 0.5)
def wave_with_rolls(u, c):
    prev = u
    now = u + 0.0
    for _ in range(10):
        nxt = 2 * now - prev + c**2 * (np.roll(now, 1) - 2 * now + np.roll(now, -1))
        prev, now = now, nxt
    return now @ now


class Lens(NamedTuple):
    focal: float
    gap: float


@at([Lens(1.5, 0.4), Lens(2.5, 0.3), Lens(-3.0, 0.2)])
def ray_through_lenses(lenses):
    ray = np.array([0.1, 0.05])
    for lens in lenses:
        free = np.array([[1.0, lens.gap], [0.0, 1.0]])
        thin = np.array([[1.0, 0.0], [-1.0 / lens.focal, 1.0]])
        ray = thin @ (free @ ray)
    return ray[0] ** 2 + 3 * ray[1]


@at(1.1, 0.6)
def snells_law(n1, angle):
    inner = math.asin(n1 * sin(angle) / 1.5)
    rs = (n1 * cos(angle) - 1.5 * cos(inner)) / (n1 * cos(angle) + 1.5 * cos(inner))
    return rs * rs


@at(some(5, seed=6))
def ising_mean_field(h):
    m = np.tanh(h)
    for _ in range(30):
        m = np.tanh(h + 0.3 * (np.roll(m, 1) + np.roll(m, -1)))
    return m.sum()


@at(some(4, 4, seed=7))
def ground_state_energy(A):
    H = (A + A.T) / 2 + np.diag([1.0, 2.0, 4.0, 8.0])
    return np.linalg.eigvalsh(H)[0]


@at(0.7, 1.3)
def two_level_system(delta, rabi):
    t = 0.8
    w = sqrt(delta**2 + rabi**2)
    phase = np.exp(-1j * w * t / 2)
    amplitude = rabi / w * (phase - np.conj(phase)) / 2
    return abs(amplitude) ** 2


@at(300.0, 2.5e-3)
def planck(T, lam):
    c2 = 14.388
    x = c2 / (lam * 1e3 * T / 100)
    return 1 / (lam * 10) ** 5 / (exp(x) - 1)


@at(1.0, 0.3)
def van_der_waals(v, t):
    p = 8 * t / (3 * v - 1) - 3 / v**2
    return p if v > 0.5 else 0.0 * v


@at(np.array([0.1, 0.2, 0.3]), np.array([0.9, -0.4, 0.5]))
def lorentz_force(x, v):
    B = np.array([0.0, 0.0, 1.0])
    dt = 0.05
    for _ in range(20):
        a = np.cross(v, B) - 0.1 * v
        v = v + dt * a
        x = x + dt * v
    return np.dot(x, x)


@at(some(3, 3, seed=8))
def strain_energy(F):
    C = F.T @ F
    E = 0.5 * (C - np.eye(3))
    return 0.5 * np.trace(E) ** 2 + np.sum(E * E)


@at(0.02, 2.0)
def colebrook_friction(rough, re):
    # fixed-point iteration until it settles
    f = 0.02 + 0 * re
    for _ in range(40):
        f = 1 / (-2 * np.log10(rough / 3.7 + 2.51 / (re * 1e4 * np.sqrt(f)))) ** 2
    return f


@at(some(12, seed=9))
def dipole_field_on_a_ring(moment):
    phi = np.linspace(0, 2 * pi, 12, endpoint=False)
    bx = sum(m * cos(p) for m, p in zip(moment, phi))
    by = sum(m * sin(p) for m, p in zip(moment, phi))
    return np.hypot(bx, by)


@at(1.0, 0.6)
def trajectory_of_adaptive_steps(y, rate):
    t, h = 0.0, 0.1
    ts, ys = [t], [y]
    while t < 1.0:
        k1 = -rate * y + np.sin(3 * t)
        k2 = -rate * (y + h * k1) + np.sin(3 * (t + h))
        error = 0.5 * h * abs(k2 - k1)
        if error < 0.01:
            t, y = t + h, y + 0.5 * h * (k1 + k2)
            ts.append(t)
            ys.append(y)
            h = min(0.2, 1.001 - t)
        else:
            h *= 0.5
    area = 0.0
    for k in range(1, len(ys)):
        area += 0.5 * (ys[k] + ys[k - 1]) * (ts[k] - ts[k - 1])
    return area + ys[-1] ** 2


@at(some(4, 5, seed=30), 0.2)
def heat_in_lists(u0, alpha):
    u = [[v for v in row] for row in u0]
    n, m = len(u), len(u[0])
    for _ in range(6):
        new = [[0.0] * m for _ in range(n)]
        for i in range(n):
            for j in range(m):
                around = u[i - 1][j] + u[(i + 1) % n][j] + u[i][j - 1] + u[i][(j + 1) % m]
                new[i][j] = u[i][j] + alpha * (around - 4 * u[i][j])
        u = new
    return sum([sum([v * v for v in row]) for row in u])

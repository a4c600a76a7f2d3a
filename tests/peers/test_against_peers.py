"""The same programs, differentiated by the peers: one text, four libraries.

A program takes the library's array namespace and uses only names that all of them have.
"""

import math
from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy
import jax
import jax.numpy
import numpy as np
import pytest
import torch

import lineara

jax.config.update("jax_enable_x64", True)
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

Program = Callable[[Any, Any], Any]
N = 6
MATRIX = np.random.default_rng(0).normal(size=(N, N)) / N


def polynomial(xp, x):
    return xp.sum(x**3 - 2 * x * x + x / 3)


def chain(xp, x):
    z = x
    for _ in range(20):
        z = xp.sin(z * x + 0.5)
    return xp.sum(z)


def elementary(xp, x):
    y = xp.exp(-x * x) + xp.log1p(x * x) + xp.sqrt(1 + x * x)
    return xp.sum(y + xp.tanh(x) * xp.arctan(x) + xp.cosh(x) - xp.sinh(x))


def branches(xp, x):
    y = xp.where(x > 0, x * x, xp.sin(x))
    return xp.sum(xp.maximum(y, 0.3 * x) + xp.minimum(x, x * x) + xp.abs(x))


def products(xp, x):
    a = xp.asarray(MATRIX)
    return xp.sum(xp.tanh(a @ x)) + x @ a @ x + xp.sum(xp.outer(x, x) * a)


def contraction(xp, x):
    return xp.einsum("i,ij,j->", x, xp.asarray(MATRIX), xp.cos(x))


def solve(xp, x):
    a = xp.asarray(MATRIX) + xp.asarray(np.eye(N)) * (2 + xp.sum(x * x))
    return xp.sum(xp.linalg.solve(a, x) ** 2)


def norm(xp, x):
    return xp.linalg.norm(x - 0.5) * xp.log(xp.sum(xp.exp(x)))


def indexing(xp, x):
    s = x[0] * x[-1]
    for i in range(1, N):
        s = s + xp.sin(x[i] * x[i - 1])
    return s + xp.sum(x[1:4] * x[2:5]) + xp.sum(x[::2]) * x[3]


def gather(xp, x):
    return xp.sum(xp.exp(x[np.array([0, 2, 2, 5])]) * x[np.array([1, 1, 3, 0])])


def reshaping(xp, x):
    m = xp.reshape(x, (2, 3))
    return xp.sum(m.T @ m) + xp.sum(xp.concatenate([x, x * x])) * xp.sum(xp.stack([x, 2 * x])[1])


def reductions(xp, x):
    return xp.prod(x + 2) + xp.mean(x * x) + xp.sum(xp.cumsum(x, 0) ** 2) + xp.max(x) * xp.min(x)


def newton(xp, x):
    """A loop that runs until it has converged: the square root of 2 + |x|²."""
    a = 2 + xp.sum(x * x)
    z = a
    while abs(float(numeric(z * z - a))) > 1e-13:
        z = (z + a / z) / 2
    return z


PROGRAMS = [
    polynomial,
    chain,
    elementary,
    branches,
    products,
    contraction,
    solve,
    norm,
    indexing,
    gather,
    reshaping,
    reductions,
    newton,
]


def numeric(value: Any) -> Any:
    """A plain number, for the condition of a loop, from any of the libraries."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, jax.Array):
        return jax.lax.stop_gradient(value)
    while hasattr(value, "_value"):  # autograd's box
        value = value._value
    return lineara.stop_gradient(value)


def by_torch(program: Program, x: np.ndarray) -> np.ndarray:
    point = torch.tensor(x, requires_grad=True)
    program(torch, point).backward()
    assert point.grad is not None
    return point.grad.numpy()


def by_jax(program: Program, x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.grad(lambda v: program(jax.numpy, v))(x))


def by_autograd(program: Program, x: np.ndarray) -> np.ndarray:
    return autograd.grad(lambda v: program(autograd.numpy, v))(x)


@pytest.fixture(params=range(3), ids="point{}".format)
def point(request) -> np.ndarray:
    return np.random.default_rng(request.param).normal(size=N)


@pytest.mark.parametrize("peer", [by_torch, by_jax, by_autograd], ids=lambda f: f.__name__)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient_equals_the_peers(program: Program, peer, point: np.ndarray):
    ours = lineara.grad(lambda v: program(np, v))(point)
    np.testing.assert_allclose(ours, peer(program, point), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_forward_mode_equals_jax(program: Program, point: np.ndarray):
    v = np.cos(np.arange(N))
    y, y_dot = lineara.jvp(lambda x: program(np, x), (point,), (v,))
    peer, peer_dot = jax.jvp(lambda x: program(jax.numpy, x), (point,), (v,))
    np.testing.assert_allclose(y, peer, rtol=1e-12)
    np.testing.assert_allclose(y_dot, peer_dot, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_hessian_equals_jax(program: Program, point: np.ndarray):
    ours = lineara.hessian(lambda v: program(np, v))(point)
    peer = jax.hessian(lambda v: program(jax.numpy, v))(point)
    np.testing.assert_allclose(ours, peer, rtol=1e-9, atol=1e-10)


def test_all_four_take_a_dictionary():
    def f(p, xp=np):
        return xp.sum(p["w"] * xp.sin(p["b"]))

    params = {"w": np.arange(3.0), "b": np.ones(3)}
    ours = lineara.grad(f)(params)
    for peer in (jax.grad(f, 0)(params, jax.numpy), autograd.grad(f)(params, autograd.numpy)):
        for name in params:
            np.testing.assert_allclose(ours[name], peer[name], rtol=1e-12)
    assert math.isclose(ours["w"][0], math.sin(1.0), rel_tol=1e-15)

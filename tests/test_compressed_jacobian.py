"""Jacobians from compressed basis vectors are those from dense ones, and cost what they hold."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lineara import grad, hessian, jacfwd, jacrev, linearize
from lineara.cotangent import compressed
from lineara.cotangent.batched import Batched

N = 300
RNG = np.random.default_rng(5)
X = RNG.uniform(0.5, 2.0, N)
A = RNG.standard_normal((N, N))
PLACES = RNG.integers(0, N, 90)
DISTINCT = RNG.permutation(N)[:90]


def steps(u: Any) -> Any:
    """Heat in a rod, ten steps."""
    for _ in range(10):
        u = u.copy()
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def by_element(x: Any) -> Any:
    """A loop over elements."""
    y = np.zeros(40)
    for i in range(1, 39):
        y[i] = x[i + 1] * x[i - 1] - x[i] / y[i - 1] if i > 1 else x[0]
    return y


def grid(x: Any) -> Any:
    """A Laplacian of a grid."""
    u = x.reshape(20, 15)
    inside = u[1:-1, 1:-1]
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inside**2


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "constant": lambda x: np.ones(N),
    "elementwise": lambda x: np.sin(x) * x / (1 + x),
    "a stencil": lambda x: x[2:] * x[:-2] - np.exp(x[1:-1]),
    "a circular stencil": lambda x: np.roll(x, 1) - 2 * x + np.roll(x, -2) ** 2,
    "steps": steps,
    "by element": by_element,
    "a grid": grid,
    "transposed": lambda x: (x.reshape(20, 15) * x.reshape(15, 20).T).T[::-1, ::2],
    "gathered, some twice": lambda x: x[PLACES] * x[:90],
    "added at places, some twice": lambda x: x + np.bincount(PLACES, x[:90], N),
    "put": lambda x: np.put_along_axis(y := 2 * x, DISTINCT, x[:90], 0) or y,
    "chosen": lambda x: np.where(x > 1, x * x, x[::-1]),
    "chosen or zero": lambda x: np.where(x > 1, np.log(x), 0.0),
    "maxima": lambda x: np.maximum(x, x[::-1]),
    "joined": lambda x: np.concatenate([x[5:], [1.0, 2.0], x[:7] * 3]),
    "stacked": lambda x: np.stack([x, 0 * x, x[::-1]], axis=1),
    "padded": lambda x: np.pad(x, 3) * 2,
    "sums of pairs": lambda x: x.reshape(150, 2).sum(1) * x[:150],
    "sums": lambda x: x.reshape(3, 100).sum(1, keepdims=True) * x.reshape(3, 100),
    "a sum": lambda x: x / x.sum(),
    "cumulative": lambda x: np.cumsum(x) * x,
    "differences": lambda x: np.diff(x, n=3),
    "a product of matrices": lambda x: A @ np.sin(x),
    "an inner product": lambda x: (x @ x) * x[:3],
    "sorted": lambda x: np.sort(x)[:50],
    "a norm": lambda x: x / np.linalg.norm(x),
    "Fourier": lambda x: np.fft.irfft(np.fft.rfft(x) * 2, N),
    "complex parts": lambda x: ((x + 1j * x[::-1]) * (2 - 1j)).imag,
    "broadcast": lambda x: x[:30, None] * x[None, :10] + x[0],
    "repeated": lambda x: np.repeat(x, 2) * np.tile(x, 2),
    "a number": lambda x: x[3] * x[4],
    "numbers": lambda x: np.array([x[3] * x[4], 1.0, x[5]]),
    "no numbers": lambda x: x[:0],
    "single precision": lambda x: (x.astype(np.float32) * np.float32(3))[1:],
    "infinite slopes": lambda x: np.sqrt(np.where(x > 1, x - 1, 0.0)),
    "containers": lambda x: {"a": x[1:] * x[:-1], "b": (x.sum(), 3.0)},
}


def same(one: Any, other: Any) -> None:
    """Equal up to rounding, and alike to the caller."""
    if isinstance(one, dict | tuple):
        assert type(one) is type(other)
        items = one.values() if isinstance(one, dict) else one
        others = other.values() if isinstance(other, dict) else other
        for a, b in zip(items, others, strict=True):
            same(a, b)
        return
    assert type(one) is type(other)
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.flags.carray == other.flags.carray


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
def test_compressed_and_dense_jacobians_agree(
    name: str, jacobian: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = FUNCTIONS[name]
    monkeypatch.setattr(compressed, "FEW", 2)
    found = jacobian(f)(X)
    monkeypatch.setattr(compressed, "FEW", N * N * N)
    same(found, jacobian(f)(X))


def test_several_arguments_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(p: Any, c: Any) -> Any:
        return p["u"][1:] * c + p["w"] * p["u"][:-1], p["u"] * p["k"]

    args = {"u": X, "w": X[1:].astype(np.float32), "k": 2.0}, 3.0
    for jacobian in (jacfwd, jacrev):
        monkeypatch.setattr(compressed, "FEW", 2)
        found = jacobian(f, argnums=(0, 1))(*args)
        monkeypatch.setattr(compressed, "FEW", 10**9)
        same(found, jacobian(f, argnums=(0, 1))(*args))


def test_a_hessian_and_a_jacobian_within_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    def chained(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    found = {}
    for few in (2, 10**9):
        monkeypatch.setattr(compressed, "FEW", few)
        inner = grad(lambda x: np.sum(jacfwd(lambda y: y[1:] * y[:-1] ** 2)(x) ** 2))(X[:40])
        found[few] = hessian(chained)(X[:40]), inner
    same(found[2], found[10**9])


def test_blocks_of_a_large_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "FEW", 2)
    monkeypatch.setattr("lineara.linear_map.BLOCK", N * 70)
    _, L = linearize(FUNCTIONS["a stencil"], X)
    J = L.to_dense()
    same(jacfwd(FUNCTIONS["a stencil"])(X), J)
    same(jacrev(FUNCTIONS["a stencil"])(X), J)


def test_a_stencil_never_becomes_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a dense batch")

    monkeypatch.setattr(Batched, "interpret", refuse)
    for f in ("a stencil", "a circular stencil", "steps", "chosen", "padded"):
        jacfwd(FUNCTIONS[f])(X)
        jacrev(FUNCTIONS[f])(X)


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
def test_a_jacobian_takes_hardly_more_memory_than_it_has(jacobian: Any) -> None:
    x = np.linspace(1.0, 2.0, 1500)
    jacobian(FUNCTIONS["a stencil"])(x)
    tracemalloc.start()
    try:
        J = jacobian(FUNCTIONS["a stencil"])(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * J.nbytes


def test_results_may_be_written() -> None:
    f = FUNCTIONS["itself"]
    for jacobian in (jacfwd, jacrev):
        J = jacobian(f)(X)
        J[...] = 7.0
        assert jacobian(f)(X)[0, 0] == 1.0
        one, other = jacobian(lambda x: (x, x))(X)
        one[...] = 7.0
        assert other[0, 0] == 1.0

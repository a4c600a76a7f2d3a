"""Exact code knows how NumPy lays arrays out: its results have the same bits and order."""

import numpy as np
import pytest
import scipy.linalg

import lineara
from lineara import grad, hessian, jit, vmap
from lineara.engines import run
from lineara.engines.native import Native, kernel

pytest.importorskip("llvmlite")

A = np.random.default_rng(0).random((4, 3))
S = A @ A.T + np.eye(4)
WIDE = np.random.default_rng(1).random((40, 100)) * (1 + 0.5j)
LARGE = np.random.default_rng(2).random((70, 71))
V = np.arange(1.0, 5.0)


def loop(x):
    y = x
    for _ in range(60):
        y = np.tanh(y @ S[:3, :3])
    return np.sum(y**2)


def turned_in_loops(x):
    y = x
    for _ in range(60):
        z = x
        for _ in range(50):
            z = 0.5 * (z + np.tanh(y @ x.T) @ x)
        y = (z.T * 1.5).T
    return np.sum(y @ x.T)


def branch(x):
    y = x.T * 2 if np.sum(x) > 1 else x.T * 3
    return np.sum(np.tanh(y @ S))


def mixed(x):
    y = x.T * 2 if np.sum(x) > 1 else np.tanh(x).reshape(3, 4)
    return np.sum(y @ S, axis=1)


def with_an_axis_of_one(x):
    y = x.T[:, None, :]
    return (y * 2 if np.sum(x) > 1 else (x * 3)[None].transpose(2, 0, 1)).sum(axis=0)


def turned_in_each_round(x):
    y = x @ x.T
    for _ in range(60):
        y = np.tanh(y).T * 0.5
    return np.sum(y.T @ y)


FUNCTIONS = {
    "turned": (lambda x: x.T, A),
    "turned, of many numbers": (lambda x: x.T.sum(axis=0), LARGE),
    "factors": (lambda x: scipy.linalg.lu(x, permute_l=True)[0], S),
    "turned and scaled": (lambda x: x.T * 2, A),
    "sums of columns": (lambda x: (x.T * 2).sum(axis=0), A),
    "a product": (lambda x: x.T @ x, A),
    "reshaped": (lambda x: (x.T + 1).reshape(4, 3) @ x.T, A),
    "einsum": (lambda x: np.einsum("ij,kj->ik", x.T, x.T), A),
    "broadcast": (lambda x: np.broadcast_to(x[0], (4, 3)) * np.ones((1, 3)), A),
    "one number in all places": (lambda x: np.dot(np.broadcast_to(x[0, 0], (4,)), x[:, 1]), A),
    "rows and columns": (lambda x: np.concatenate([x.T, x.T * 2], axis=1).sum(axis=0), A),
    "stack": (lambda x: np.stack([x.T, x.T * 2]).transpose(2, 0, 1).sum(axis=(0, 2)), A),
    "written": (lambda x: written(x.T * 2), A),
    "complex": (lambda x: np.sum((x.T * (1 + 2j)).imag, axis=0), A),
    "its own transpose": (lambda z: z @ z.T, WIDE),
    "its own transpose in front": (lambda z: z.T @ z, WIDE),
    "the transpose of another": (lambda z: z @ (z * 1.5).T, WIDE),
    "its own transpose, of float32": (lambda z: z @ z.T, WIDE.real.astype("f4")),
    "where": (lambda x: np.where(x.T > 0.5, x.T, 1.0).sum(axis=0), A),
    "cumsum": (lambda x: np.cumsum(x.T, axis=1), A),
    "logdet": (hessian(lambda x: np.linalg.slogdet(x)[1]), S),
    "squares": (hessian(lambda x: np.sum((x @ x.T) ** 2)), A),
    "inverse": (hessian(lambda x: np.trace(np.linalg.inv(x))), S),
    "cholesky": (hessian(lambda x: np.sum(np.linalg.cholesky(x) ** 2)), S),
    "solution": (hessian(lambda x: V @ np.linalg.solve(x, V)), S),
    "axes": (hessian(lambda x: np.sum(x.sum(0) ** 3)), A),
    "logsumexp": (hessian(lambda x: np.sum(np.log(np.sum(np.exp(x), axis=1)))), A),
    "network": (
        hessian(lambda w: np.sum(np.tanh(np.ones((5, 4)) @ w).mean(axis=0) ** 2)),
        A,
    ),
    "extrema": (hessian(lambda x: np.sum(np.max(x, axis=0) ** 2)), A),
    "eigenvalues": (grad(lambda x: np.sum(np.linalg.eigh(x)[0] ** 2)), S),
    "a vector": (hessian(lambda x: np.sum(np.tanh(S @ x) ** 2)), V),
    "lanes": (vmap(grad(lambda x: np.sum(np.outer(x, x) @ x))), A),
    "a loop": (grad(loop), A),
    "loops": (turned_in_loops, A),
    "a branch": (grad(branch), A),
    "an axis of one": (with_an_axis_of_one, A),
}


def written(y):
    y[1] = y[0] * 3
    return y @ S


def same(f, x):
    g = jit(f, engine="native exact")
    y, z = g(x), jit(f, engine="interpreter")(x)
    np.testing.assert_array_equal(y, z, strict=True)
    return g, y, z


@pytest.mark.parametrize("dtype", "?" + np.typecodes["AllInteger"] + "efdgFD")  # c256 is refused
def test_a_turned_matrix_of_any_dtype_is_turned_back(dtype):
    x = (10 * A).astype(dtype)
    for f in (lambda x: x.T, lambda x: np.cumsum(x.T, axis=1), lambda x: np.kron(x.T, x)):
        _, y, z = same(f, x)
        assert y.strides == z.strides


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_and_order_are_those_of_the_interpreter(name):
    f, x = FUNCTIONS[name]
    g, y, z = same(f, x)
    assert y.strides == z.strides
    assert not [
        line
        for line in lineara.explain(g, x).machine_code
        if line.startswith("interpreted") or ", since " in line
    ]


def test_a_part_times_its_transpose_has_numpys_bits():
    """NumPy calculates a triangle of it; the interpreter copies what is read, and all of it."""

    def f(z):
        return z[3:] @ z[3:].T

    np.testing.assert_array_equal(jit(f, engine="native exact")(WIDE), f(WIDE), strict=True)


@pytest.mark.parametrize("f", [mixed, turned_in_each_round, grad(turned_in_each_round)])
def test_what_branches_or_rounds_lay_out_is_called_back_and_told(f):
    g, *_ = same(f, A)
    told = lineara.explain(g, A).machine_code
    (whole,) = [line for line in told if line.startswith("called back: ") and ", since " in line]
    assert "of which branches or rounds of a loop tell how NumPy lays it out: once" in whole
    assert not lineara.explain(jit(f, engine="native"), A).machine_code[0].startswith("interpreted")


def as_tall(y):
    return y if y.shape == (4, 3) else y.T


STEPS = [
    lambda x, y: y.T,
    lambda x, y: y * 1.5,
    lambda x, y: y + (as_tall(x).T if y.shape == (3, 4) else as_tall(y)),
    lambda x, y: y.reshape(y.shape[::-1]),
    lambda x, y: np.broadcast_to(y[:1], y.shape),
    lambda x, y: np.concatenate([y[1:], y[:1]]),
    lambda x, y: np.sin(y)[::-1],
    lambda x, y: np.where(y > 0.5, y, x.reshape(y.shape)),
    lambda x, y: np.einsum("ij,jk->ik", y, y.T) @ y,
    lambda x, y: np.linalg.solve(y @ y.T + 9 * np.eye(len(y)), y),
    lambda x, y: y - y.mean(axis=0),
    lambda x, y: np.stack([y, 2 * y], axis=1)[:, 1],
]


def random_function(rng):
    """Matrices of 3 × 4 and 4 × 3 numbers, laid out in every way, and what sums them."""
    steps = rng.integers(0, len(STEPS), size=6)

    def f(x):
        y, total = x, np.zeros(3)
        for k in steps:
            y = STEPS[k](x, y)
            tall = as_tall(y)
            total = total + tall.T.sum(axis=1) + (tall.T @ tall)[0]
        return y, total

    return f


@pytest.mark.parametrize("seed", range(16))
def test_random_layouts_have_the_interpreters_bits(seed):
    g = random_function(np.random.default_rng(seed))
    f = (g, grad(lambda x: np.sum(g(x)[0] ** 2) + np.sum(g(x)[1])))[seed % 2]
    results = [jit(f, engine=engine)(A) for engine in ("native exact", "interpreter")]
    for y, z in zip(*[r if isinstance(r, tuple) else (r,) for r in results], strict=True):
        np.testing.assert_array_equal(y, z, strict=True)
        assert y.strides == z.strides


def test_code_that_foresaw_another_layout_runs_once(monkeypatch):
    """What Python gives back lies otherwise; the interpreter runs the program from then on."""
    runs, called = [], kernel.Kernel.__call__

    def counted(self, values):
        runs.append(1)
        return called(self, values)

    monkeypatch.setattr(kernel.Kernel, "__call__", counted)
    monkeypatch.setattr(kernel, "lay_of", lambda y: ())
    p, engine = jit(lambda x: np.sum(np.exp(x @ x.T), axis=0)).program(A), Native(True)
    for _ in range(3):
        (y,) = run(p.program, p.name, *p.operands((A,)), engine=engine).results
        np.testing.assert_array_equal(y, np.sum(np.exp(A @ A.T), axis=0))
    assert len(runs) == 1

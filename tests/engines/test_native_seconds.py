"""Second derivatives of loops and branches are machine code: to the bit what is interpreted.

The engine is named, so a program that is refused is an error here.
"""

import numpy as np
import pytest
from random_loops import N, RandomLoops
from shards import shards
from test_native import EXACT, NATIVE, agree

import lineara
from lineara.engines.native import machine_code
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")

X = np.array([0.5, -0.3, 0.8, -0.6])
V = np.array([0.3, -0.2, 0.5, 0.7])
STEP = 1e-30
PROGRAMS = 3
"""Random functions of one test."""


def derivatives(f):
    """A gradient and what is made of it, each a function of a vector and a number."""
    g = lineara.grad(f)
    return {
        "gradient": g,
        "forward over reverse": lambda x, n: lineara.jvp(lambda x: g(x, n), (x,), (V,))[1],
        "reverse over reverse": lineara.grad(lambda x, n: np.sum(g(x, n) * V)),
        "hessian": lineara.hessian(f),
    }


def near(a, b, tol):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def proved(f, *points):
    """Each derivative is that of the interpreter, of eager code, and of numbers alone."""
    for name, d in derivatives(f).items():
        ours = lineara.jit(d, engine="native")
        expected = lineara.jit(d, engine="interpreter")
        for x, n in points:
            y = ours(x, n)
            near(y, expected(x, n), 1e-12)
            near(y, d(x, n), 1e-10)
            if name == "gradient":
                near(y @ V, f(x + 1j * STEP * V, n).imag / STEP, 1e-10)
                continue
            g = lineara.grad(f)
            slope = (g(x + 1e-6 * V, n) - g(x - 1e-6 * V, n)) / 2e-6
            near(y @ V if name == "hessian" else y, slope, 1e-6)


@pytest.mark.parametrize("shard", shards(30))
def test_derivatives_of_random_loops(shard, monkeypatch):
    """LLVM does as little as it can, since what it does is not looked at."""
    monkeypatch.setenv("LINEARA_CACHE_DIR", "off")
    monkeypatch.setattr(machine_code, "level_of", lambda text, leaves: 0)
    for seed in range(PROGRAMS * shard, PROGRAMS * (shard + 1)):
        rng = np.random.default_rng(seed)
        points = [(rng.uniform(-1.2, 1.2, N), n) for n in (3, 5)]
        proved(RandomLoops(seed).function(), *points)


def with_a_branch(x, n):
    total = 0.0
    for i in range(x.shape[0]):
        if np.real(x[i]) > 0:
            total = total + x[i] ** 2
    return total


def with_a_loop_in_a_branch(x, n):
    total = 0.0
    for i in range(N):
        if np.real(x[i]) > 0:
            for j in range(i, N):
                total = total * x[j] + x[i]
        else:
            while np.real(total) < 2.0:
                total = total + x[0] * x[0] + 0.5
    return total


def with_an_array_in_a_branch(x, n):
    y = x * 1.0
    for i in range(N):
        if np.real(x[i]) > 0:
            y = np.sin(y * x) * x[i]
        elif np.real(y[i]) > 0:
            y = y + x * y[i]
    return y @ y


def by_while(x, n):
    total, k = x[0], 0
    while np.real(total) < 10.0 and k < 50:
        total = total * 1.3 + x[1] * total * total * 0.01
        k = k + 1
    return total * x[2]


def left_early(x, n):
    total = 0.0
    for i in range(N):
        total = total + np.sin(x[i]) * total + x[i] * x[i]
        if np.real(total) > 0.5:
            break
    return total


def of_an_argument(x, n):
    total = 0.0
    for i in range(n):
        total = total + x[i % 3] * total * 0.1 + x[0] * x[1]
    return total


def from_below_zero(x, n):
    total = 0.0
    for i in range(N):
        for j in range(-i, i):
            total = total + x[i] * x[j] * total * 0.01 + x[j] ** 3
    return total


def by_steps(x, n):
    total = 0.0
    for i in range(N):
        for j in range(i, N, 2):
            total = total + x[i] * x[j] * total * 0.01 + x[j] ** 3
    return total


def of_matrices(x, n):
    a = np.outer(x, x) + np.eye(N)
    total = x[0]
    for i in range(n):
        a = a + np.outer(a[i % N], x) * 0.1
        for j in range(i):
            if np.real(a[i % N, j % N]) > 0.0:
                total = total * 0.5 + a[j % N] @ x
    return total


@pytest.mark.parametrize(
    "f",
    [
        with_a_branch, with_a_loop_in_a_branch, with_an_array_in_a_branch, by_while, left_early,
        of_an_argument, from_below_zero, by_steps, of_matrices,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_derivatives_of_loops(f):
    proved(f, (X, 3), (-X, 5), (X[::-1].copy(), 1), (X, 0))


TAGS = """
type either = [<f64, f64[2]> | f64]

def left(x: f64, y: f64[2];) -> (either;) =
  let p: <f64, f64[2]> = <x, y> in
  inj[0, either](p)

def none(x: f64, y: f64[2];) -> (either;) =
  let (;) = drop((x, y;)) in
  zeros[either]

def right(x: f64, y: f64[2];) -> (either;) =
  let (;) = drop(y) in
  inj[1, either](x)

def of_pair(p: <f64, f64[2]>;) -> (f64;) =
  let <x: f64, y: f64[2]> = p in
  let (;) = drop(y) in
  (x;)

def of_number(x: f64;) -> (f64;) =
  negative(x)

def f(p: bool, q: bool, x: f64, y: f64[2];) -> (f64, f64[2];) =
  let a: either = cond[left, none](p, x, y;) in
  let b: either = cond[none, left](q, x, y;) in
  let c: either = a + b in
  let d: either = c + a in
  let <u: f64, v: f64[2]> = proj[0](d) in
  (u, v;)

def g(p: bool, q: bool, r: bool, x: f64, y: f64[2];) -> (f64;) =
  let a: either = cond[left, right](r, x, y;) in
  let b: either = zeros[either] in
  let c: either = cond[first, second](p, a, b;) in
  let d: either = cond[first, second](q, b, a;) in
  let e: either = c + d in
  case e of of_pair | of_number with (;)

def first(a: either, b: either;) -> (either;) =
  let (;) = drop(b) in
  (a;)

def second(a: either, b: either;) -> (either;) =
  let (;) = drop(a) in
  (b;)
"""
"""Sums of tagged values, of which some are zero, which has no tag."""


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("q", [True, False])
def test_tagged_values_are_added(p, q):
    program = check(parse(TAGS))
    assert [e.takes(program, "f") for e in (EXACT, NATIVE)] == [None, None]
    u, v = agree(program, "f", p, q, 1.5, np.array([1.0, 2.0]))
    times = 2 * p + (not q)
    assert u == 1.5 * times
    assert (v == np.array([1.0, 2.0]) * times).all()


@pytest.mark.parametrize("r", [True, False])
@pytest.mark.parametrize(("p", "q"), [(True, True), (False, False), (True, False)])
def test_a_sum_has_the_tag_of_what_is_not_zero(p, q, r):
    program = check(parse(TAGS))
    assert [e.takes(program, "g") for e in (EXACT, NATIVE)] == [None, None]
    (y,) = agree(program, "g", p, q, r, 1.5, np.array([1.0, 2.0]))
    assert y == (1.5 if r else -1.5) * (p + (not q))

"""Lanes that go different ways, and sizes that are values: machine code and the interpreter.

By default machine code takes one lane after the other, so that nothing has a size that is counted;
exact code has the sums of lanes that are packed, so there such definitions are called back.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from test_native import EXACT, NATIVE, agree

import lineara
from lineara import grad, jit, vmap
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.batch import batch, batched_name
from lineara.passes.derivatives import grad as grad_of
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase

pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).parent.parent / "linear_a"))
try:
    from test_partition import CASES, N
finally:
    sys.path.pop(0)

SEED = np.random.default_rng(0)
REFUSED = "whose size is a value", "calls itself"
"""Why exact code is refused."""


def branch(x):
    if x > 0:
        return x * x
    return math.sin(x) * 3


def loop(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            s = s + x[i] * x[i] * s
            continue
        s = s + math.sin(x[i])
    return s


def nested(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            if x[i] * x[j] > 0:
                s = s + x[i] * x[j] * s * 0.1
            elif x[j] < -1.0:
                s = s - x[j]
            else:
                s = s + math.sin(x[i])
    return s


def root(x):
    y = abs(x) + 0.1
    while abs(y * y - abs(x)) > 1e-9:
        y = 0.5 * (y + abs(x) / y)
    return y


def left(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = s + x[i] * x[i]
        if s > 2:
            break
    return s


def arrays(x):
    h = np.outer(x, x) @ x
    if h[0] > 0:
        return np.sum(np.tanh(h))
    return np.sum(h * x)


OVER = {
    "vmap": vmap,
    "vmap of grad": lambda f: vmap(grad(f)),
    "grad of vmap": lambda f: grad(lambda xs: np.sum(vmap(f)(xs))),
    "vmap of vmap": lambda f: lambda xs: vmap(vmap(f))(np.stack([xs, -xs])),
    "grad of vmap of vmap": lambda f: grad(
        lambda xs: np.sum(vmap(vmap(f))(np.stack([xs, -xs * 0.5])))
    ),
    "vmap of Hessian": lambda f: vmap(grad(lambda x: np.sum(grad(f)(x)))),
}


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("f", [branch, loop, nested, root, left, arrays])
def test_functions_over_lanes_have_the_interpreters_values_and_python_s(f, over):
    g = OVER[over](f)
    for lanes in (1, 5):
        xs = SEED.normal(size=lanes if f in (branch, root) else (lanes, 4))
        expected = jit(g, engine="interpreter")(xs)
        ours = jit(g, engine="native")
        np.testing.assert_allclose(ours(xs), expected, rtol=1e-12, atol=1e-14)
        told = lineara.explain(ours, xs).machine_code
        assert not [line for line in told if "called back" in line]
        p = jit(g).program(xs)
        why = EXACT.takes(p.program, p.name)
        if why is None:
            np.testing.assert_array_equal(jit(g, engine=EXACT)(xs), expected)
        assert why is None or any([known in why for known in REFUSED])
        np.testing.assert_allclose(g(xs), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_definitions_over_lanes_and_their_derivatives(case):
    text, axes, args = CASES[case]
    args = [np.array(a) if isinstance(a, list) else a for a in args]
    name = batched_name("f", axes, N)
    program = batch(check(parse(text)), "f", axes, N)
    agree(program, name, *args)
    cs = [SEED.normal(size=getattr(t, "shape", ()))[()] for t in program.defs[name].results]
    back = erase(vjp(program, name), f"{name}.vjp")
    agree(back, f"{name}.vjp.e", *args, *cs)
    for f in (name, f"{name}.vjp.e"):
        why = NATIVE.takes(back, f)
        assert ("whose size is a value" in why) if why else case != "recursion" or f == name


SIZED = """
def g(m: i64, n: i64, p: bool[9], x: f64[9];) -> (f64[9];) =
  let (;) = drop(n) in
  let order = argsort(p) in
  let pos = index[at=(0:m,)](order) in
  let y = index[at=(pos,)](x) in
  put[pos](x, y * sin(y))
def round(k: f64, x: f64[9];) -> (f64[9];) =
  let p = greater(x, k) in
  let c = count_nonzero(p) in
  let n = 9_i64 in
  let m = n - c in
  sized[g, 0](m, n, p, x;)
def f(x: f64[9];) -> (f64;) =
  let k = 0.1 in
  let y = scan[round, 5, fwd, 1, 1, 0](k, x;) in
  sum[axis=(0,), keepdims=false](y * y)
"""


def test_a_definition_with_a_size_that_is_a_value_is_called_back():
    program = grad_of(check(parse(SIZED)), "f")
    program = erase(program, "f.grad")
    assert NATIVE.takes(program, "f") is None
    agree(program, "f", SEED.normal(size=9))
    (site,) = NATIVE.code(program, "f").sites
    assert "round(f64, f64[9]), since it has arrays whose size is a value" in site.what
    assert "whose size is a value" in NATIVE.takes(program, "f.grad.e")


def chain(branches):
    """A function with so many branches, each within the one before."""

    def f(x, k=0):
        return f(x * x + k, k + 1) if k < branches and x * (k + 2) > 0.3 else x

    return lambda x: f(x)


def leaves_of(g, *args):
    p = jit(g).program(*args)
    return sum([len(ir.leaves(p.program.defs[f].body)) for f in p.program.reached(p.name)])


@pytest.mark.parametrize("way", [vmap, lambda f: vmap(grad(f))], ids=["value", "gradient"])
def test_both_texts_are_as_long_as_the_branches_are_many(way):
    x = np.linspace(-1.0, 1.0, 5)
    few, more, many = [leaves_of(way(chain(n)), x) for n in (4, 8, 16)]
    assert many - more <= 2.2 * (more - few)


def test_each_vmap_adds_the_same_to_both_texts():
    sizes, f = [], branch
    for n in (1, 2, 3, 4):
        f = vmap(f)
        sizes.append(leaves_of(f, np.ones((2,) * n)))
    first, *others = np.diff(sizes)
    assert max(others) <= 1.5 * first, sizes

"""Whichever definition is called back, the results are the interpreter's."""

import numpy as np
import pytest
from random_loops import RandomLoops

import lineara
from lineara.engines import run
from lineara.engines.native import Native, emitted, lower
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")


def layers(x, w, b):
    """Rounds in rounds, with a branch in each."""
    h, total = np.zeros(3), 0.0
    for t in range(x.shape[0]):
        h = np.tanh(w @ h + x[t] * b)
        for k in range(3):
            total = total + (h[k] * np.sin(b[k] * total) if h[k] > 0 else np.sqrt(-h[k]))
    return total


def edges(x):
    """Roots of zero, whose slopes are infinite in lanes that are not chosen and in those that are.

    The sums of squares have slopes of zero, so masked products are what they are.
    """
    s = 0.0
    for i in range(x.shape[0]):
        s = s + (np.sqrt(x[i]) if x[i] > 0 else x[i] * 0.0)
    y = np.where(x > 0.5, x, np.sqrt(np.abs(x)) ** 2)
    return s * np.sum(y) + np.max(np.sqrt(x)) * 0.0


def rare(x):
    """A loop until something holds, in a branch."""
    y, n = x[0], 0
    if x[1] > 0.0:
        while y * y < 4.0 and n < 10:
            y = y * 1.3 + x[1] * np.cos(y)
            n += 1
    return y * x[2]


def arguments():
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    yield lineara.grad(layers, (0, 1, 2)), (x, w, b)
    yield lineara.value_and_grad(layers, 1), (x, w, b)
    yield lineara.grad(edges), (np.array([0.0, 1.0, 0.3, 2.0, 0.0]),)
    yield lineara.grad(rare), (np.array([0.5, 0.4, 2.0]),)
    for seed in range(2):
        yield lineara.grad(RandomLoops(seed).function()), (np.linspace(0.3, 0.9, 4), 3)


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value)")
def test_each_definition_may_be_called_back(monkeypatch):
    monkeypatch.setattr(emitted, "key_of", lambda *_: "")
    lowered, refused, count = lower._lowered, {}, 0
    monkeypatch.setattr(lower, "_lowered", lambda *of: lowered(*of[:5], of[5] | refused, *of[6:]))
    for f, args in arguments():
        refused.clear()
        p = lineara.jit(f).program(*args)
        expected = run(p.program, p.name, *p.operands(args), engine="interpreter").results
        for name in {*p.program.reached(p.name)} - {p.name}:
            refused.clear()
            refused[name] = "it is refused here"
            p, engine = lineara.jit(f).program(*args), Native()
            code = engine.code(p.program, p.name)
            sites = [] if isinstance(code, str) else code.sites
            if any(["since it is refused here" in site.what for site in sites]):
                count += 1
                ours = run(p.program, p.name, *p.operands(args), engine=engine).results
                for y, other in zip(ours, expected, strict=True):
                    np.testing.assert_allclose(y, other, rtol=1e-11, atol=1e-14, err_msg=name)
    assert count > 30  # half as many where masks are not asked for


def test_a_leaf_on_one_array_under_two_names_is_called_back():
    program = check(
        parse("""
def pair(x: f64;) -> (f64, f64;) =
  let k: f64 = 1.0 in let y: f64 = k * k in let (;) = drop(x) in (y, y;)
def round(count: i64, x: f64;) -> (i64, f64, f64;) =
  let one: i64 = 1_i64 in
  let then: i64 = count + one in
  let (a: f64, b: f64;) = pair(x;) in
  (then, a, b;)
def until(count: i64;) -> (bool;) =
  let last: i64 = 0_i64 in
  less(count, last)
def f(x: f64[3];) -> (f64[3];) =
  let x2: <f64[3]> = <x> in
  let <x3: f64[3]> = x2 in
  let count: i64 = 0_i64 in
  let x4: f64 = 1.0 in
  let (n: i64, x5: f64, ys: stack[f64];) = while[until, round, 0](count, x4;) in
  let (;) = drop((n, ys;)) in
  let x6: f64 = (x5;) in
  let x7: f64 = x6 * x6 in
  let (;) = drop(x7) in
  accum[::-1](x, x3)
""")
    )
    x = np.array([1.0, 2.0, 4.0])
    for engine in ("interpreter", "native", "native exact"):
        (y,) = run(program, "f", x, engine=engine).results
        np.testing.assert_array_equal(y, [5.0, 4.0, 5.0])

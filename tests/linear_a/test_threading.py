"""A derivative costs a constant times the value: arrays in loops are threaded, never copied.

Work is counted by the evaluator at n, 2 n and 4 n; the slope is that of log work over log n.
"""

import math

import numpy as np
import pytest

from lineara.linear_a.check import check
from lineara.linear_a.evaluate import run
from lineara.linear_a.parse import parse
from lineara.passes.compose import grad, vjp
from lineara.passes.jvp import jvp
from lineara.passes.simplify import simplify

SCAN = """
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let (i2: i64, s2: f64;) = scan[round, N, fwd, 1, 2, 0](x, i, s;) in
  let (;) = drop(i2) in
  s2
"""
COUNT = "let one: i64 = 1_i64 in let j: i64 = i + one in"
PROGRAMS = {
    "read": f"""
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = sin(a) in
  let t = b * s in
  let u = s + t in
  {COUNT}
  (j, u;)
{SCAN}""",
    "branch": f"""
def yes(x: f64[N], i: i64, s: f64;) -> (f64;) =
  let a = index[at=(i,)](x) in let b = sin(a) in b * s
def no(x: f64[N], i: i64, s: f64;) -> (f64;) =
  let (;) = drop((x, i;)) in let k = 0.5 in k * s
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let one_: f64 = 1.0 in
  let c = less(s, one_) in
  let t = cond[yes, no](c, x, i, s;) in
  let u = s + t in
  {COUNT}
  (j, u;)
{SCAN}""",
    "nested loop": f"""
def inner(x: f64[N], i: i64, k: i64, t: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = index[at=(k,)](x) in
  let p = a * b in
  let q = t + p in
  let one: i64 = 1_i64 in
  let l: i64 = k + one in
  (l, q;)
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let k: i64 = 0_i64 in
  let (k2: i64, t: f64;) = scan[inner, 3, fwd, 2, 2, 0](x, i, k, s;) in
  let (;) = drop(k2) in
  let u = sin(t) in
  {COUNT}
  (j, u;)
{SCAN}""",
    "call": f"""
def g(x: f64[N], i: i64;) -> (f64;) = let a = index[at=(i,)](x) in sin(a)
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = g(x, i;) in
  let t = a * s in
  let u = s + t in
  {COUNT}
  (j, u;)
{SCAN}""",
    "while": f"""
def p(x: f64[N], i: i64, s: f64;) -> (bool;) =
  let (;) = drop((x, s;)) in
  let n: i64 = N_i64 in
  less(i, n)
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = sin(a) in
  let t = b * s in
  let u = s + t in
  {COUNT}
  (j, u;)
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let (i2: i64, s2: f64;) = while[p, round, 1](x, i, s;) in
  let (;) = drop(i2) in
  s2
""",
    "fill": f"""
def round(x: f64[N], i: i64, y: f64[N];) -> (i64, f64[N];) =
  {COUNT}
  let a = index[at=(i,)](y) in
  let k = 0.9 in
  let b = k * a in
  let c = index[at=(j,)](x) in
  let d = c * a in
  let e = b + d in
  let z = put[j](y, e) in
  (j, z;)
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let y: f64[N] = zeros[f64[N]] in
  let zero: i64 = 0_i64 in
  let first = index[at=(zero,)](x) in
  let y0 = put[zero](y, first) in
  let (i2: i64, y2: f64[N];) = scan[round, N_1, fwd, 1, 2, 0](x, i, y0;) in
  let (;) = drop(i2) in
  sum[axis=(0,), keepdims=false](y2)
""",
    "two arrays": f"""
def round(x: f64[N], z: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = index[at=(i,)](z) in
  let p = a * b in
  let t = p * s in
  let u = s + t in
  {COUNT}
  (j, u;)
def f(x: f64[N], z: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let (i2: i64, s2: f64;) = scan[round, N, fwd, 2, 2, 0](x, z, i, s;) in
  let (;) = drop(i2) in
  s2
""",
}


def ratios(text, name="f", args=1, sizes=(64, 128, 256)):
    """The slope of each derivative's work, and its ratio to the work of the value."""
    works = []
    for n in sizes:
        numbered = text.replace("N_1", str(n - 1)).replace("N_i64", f"{n}_i64")
        works.append(measured(numbered.replace("[N", f"[{n}").replace(", N,", f", {n},"), n, args))
    return {
        what: (math.log2(works[2][what] / works[1][what]), works[2][what] / works[2]["value"])
        for what in works[0]
    }


def measured(text, n, args):
    """The work of the value and of its derivatives, of two orders."""
    program = check(parse(text))
    rng = np.random.default_rng(n)
    xs = [0.3 * rng.standard_normal(n) for _ in range(args)]
    ds = [rng.standard_normal(n) for _ in range(args)]
    first = check(grad(jvp(program, "f"), "f"))
    over = check(jvp(first, "f.grad"))
    back = check(vjp(first, "f.grad"))
    runs = {
        "value": run(program, "f", *xs),
        "jvp": run(first, "f.jvp", *xs, *ds),
        "gradient": run(first, "f.grad", *xs),
        "forward over reverse": run(over, "f.grad.jvp", *xs, *ds),
        "reverse over reverse": run(back, "f.grad.vjp", *xs, *ds),
    }
    return {what: found.work for what, found in runs.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_of_every_order_is_linear_in_the_number_of_rounds(name):
    found = ratios(PROGRAMS[name], args=2 if name == "two arrays" else 1)
    print(name, {k: f"{s:.3f} x{r:.1f}" for k, (s, r) in found.items()})
    assert {k: s for k, (s, _) in found.items() if s > 1.02} == {}

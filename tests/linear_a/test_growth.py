"""Loops are loops: value, jvp and transposed work of n rounds are closed forms in n.

Work is known from the text of a loop, so it is stated up to a million rounds; up to ten thousand
it is what a run counts as well.
"""

import pytest

from lineara.linear_a.check import check
from lineara.linear_a.cost import static_works
from lineara.linear_a.evaluate import run
from lineara.linear_a.parse import parse
from lineara.passes.compose import grad

CARRY = """
def body(k: f64, c: f64, x: f64;) -> (f64, f64;) =
  let a = k * c in let b = sin(a) in let d = b + x in (d, b;)
def f(k: f64, c: f64;) -> (f64;) =
  let xs = broadcast_to[shape=(N,)](k) in
  let (d: f64, ys: f64[N];) = scan[body, N, fwd, 1, 1, 0](k, c, xs;) in
  let s = sum[axis=(0,), keepdims=false](ys) in
  s * d
"""


def derived(text, n):
    return check(grad(parse(text.replace("N", str(n))), "f"))


@pytest.mark.parametrize("n", [10**3, 10**4, 10**5, 10**6])
def test_a_loop_costs_what_its_rounds_cost_in_every_direction(n):
    works = static_works(derived(CARRY, n))
    assert works["f"] == 4 * n  # three operations a round, and the sum
    assert works["f.jvp"] == 11 * n + 3
    assert works["f.jvp.lin.t"] == 6 * n + 2
    assert works["f.grad"] == 11 * n + 3


@pytest.mark.parametrize("n", [1, 10**3, 10**4])
def test_a_run_counts_what_the_text_says(n):
    program = derived(CARRY, n)
    works = static_works(program)
    for name, args in (("f", (0.5, 0.7)), ("f.jvp", (0.5, 0.7, 1.0, 1.0)), ("f.grad", (0.5, 0.7))):
        assert run(program, name, *args).work == works[name]

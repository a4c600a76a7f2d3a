"""Loops are loops: value, jvp and transposed work of n rounds are closed forms in n.

Work is known from the text of a loop, so it is stated up to a million rounds; up to ten thousand
it is what a run counts as well.
"""

import numpy as np
import pytest

import lineara
from lineara.engines import run
from lineara.linear_a.check import check
from lineara.linear_a.cost import static_works
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp

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
@pytest.mark.slow("counts every operation of ten thousand rounds")
def test_a_run_counts_what_the_text_says(n):
    program = derived(CARRY, n)
    works = static_works(program)
    for name, args in (("f", (0.5, 0.7)), ("f.jvp", (0.5, 0.7, 1.0, 1.0)), ("f.grad", (0.5, 0.7))):
        assert run(program, name, *args).work == works[name]


# --- y[i] from y[i - 1] ---------------------------------------------------------------------------
# Work is a closed form of the text up to 10^6 rounds; runs count it, and the bytes written, up to
# 10^3 here.  A run of 10^6 rounds takes three minutes: `make fuzz` does it (million.py).

WORK = {
    "f": lambda n: 6 * n - 4,
    "f.jvp": lambda n: 10 * n - 7,
    "f.jvp.lin": lambda n: 3 * n - 2,
    "f.jvp.lin.t": lambda n: 3 * n - 2,
    "f.vjp": lambda n: 10 * n - 7,
}
WRITTEN = {  # numbers of eight bytes
    "f": lambda n: 6 * n - 3,
    "f.jvp": lambda n: 11 * n - 5,
    "f.jvp.lin": lambda n: 4 * n - 1,
    "f.jvp.lin.t": lambda n: 4 * n - 1,
    "f.vjp": lambda n: 11 * n - 5,
}


def filling(n):
    """The program of a loop that fills an array, with its derivatives."""

    def f(x):
        y = np.zeros(n)
        y[0] = x

        def body(i, y):
            y[i] = np.sin(y[i - 1])
            return y

        return np.sum(lineara.fori_loop(1, n, body, y))

    return check(vjp(lineara.trace(f, 0.5).program, "f"))


def counted(n):
    """Work, and numbers written, of a run of each definition; and the derivative both ways."""
    program = filling(n)
    *_, tape = run(program, "f.jvp.nl", 0.5).results
    args = {"f": (0.5,), "f.jvp.lin": (tape, 1.0), "f.jvp.lin.t": (tape, 1.0)}
    found = {name: run(program, name, *args.get(name, (0.5, 1.0))) for name in WORK}
    ahead, back = found["f.jvp"].lresults[0], found["f.vjp"].lresults[0]
    works = {name: o.work for name, o in found.items()}
    return works, {name: o.written // 8 for name, o in found.items()}, ahead, back


def stated(forms, n):
    return {name: form(n) for name, form in forms.items()}


@pytest.mark.parametrize("n", [2, 10**3, 10**4, 10**5, 10**6])
def test_filling_an_array_costs_a_constant_an_element(n):
    works = static_works(filling(n))
    assert {name: works[name] for name in WORK} == stated(WORK, n)


@pytest.mark.parametrize("n", [2, 3, 10**3])
def test_a_run_that_fills_an_array_counts_the_same_and_its_bytes(n):
    works, written, ahead, back = counted(n)
    assert works == stated(WORK, n)
    assert written == stated(WRITTEN, n)
    assert ahead == pytest.approx(back, rel=1e-12)

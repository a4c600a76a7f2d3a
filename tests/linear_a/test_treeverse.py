"""Binomial checkpoints: the fewest steps there are, and the same derivatives."""

from functools import cache

import numpy as np
import pytest

from lineara.engines import Ask, Meter, Tagged, forecast, run
from lineara.facts.types import show
from lineara.linear_a.binomial_loops import advances, split
from lineara.linear_a.check import check
from lineara.linear_a.cost import Costs
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import reverse, vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.store_policies import binomial

PAIRS = [(n, s) for s in range(8) for n in range(2, 91)][:: 89 * 8 // 200][:200]


@cache
def fewest(n, s):
    """The least number of steps forward, by trying every place for the next snapshot."""
    if n == 1:
        return 0
    if not s:
        return n * (n - 1) // 2
    return min(k + fewest(n - k, s - 1) + fewest(k, s) for k in range(1, n))


def test_the_schedule_meets_the_optimal_step_count():
    assert len(set(PAIRS)) == 200
    for n, s in PAIRS:
        k = split(n, s)
        assert advances(n, s) == fewest(n, s)
        assert k + advances(n - k, max(s - 1, 0)) + advances(k, s) == fewest(n, s)


def chain(n, shape=""):
    t = f"f64{shape}"
    return parse(
        f"def step(c: {t};) -> ({t};) = sin(c)\n"
        f"def f(c: {t};) -> ({t};) = scan[step, {n}, fwd, 0, 1, 0](c;)"
    )


@pytest.mark.parametrize(("n", "s"), [(2, 0), (7, 0), (6, 1), (10, 2), (30, 3), (31, 5), (64, 4)])
def test_the_work_that_is_done_is_the_formula(n, s):
    p = reverse(chain(n), "f", binomial(s))
    found = run(p, "f.jvp.lin.t", (0.5,), 1.0)
    assert found.work == advances(n, s) + 4 * n  # sin, cos, a drop and a product in each step
    assert Costs(p).bytes(p.types["f.jvp.tape"]) == 8


@pytest.mark.parametrize(("n", "s"), [(30, 1), (30, 3), (100, 4)])
def test_so_many_snapshots_are_alive(n, s):
    p, meter = reverse(chain(n, "[1000]"), "f", binomial(s)), Meter()
    run(p, "f.jvp.lin.t", (np.full(1000, 0.5),), np.ones(1000), ask=Ask(meter=meter))
    assert s + 3 <= meter.peak / 8000 <= s + 6  # the start, the snapshots, and one step at work


WHOLE = """
def step(k: f64, m: f64[2], i: i64, c: f64[2], x: f64[2];) -> (i64, f64[2], f64, f64[2];) =
  let one = 1_i64 in
  let j = i + one in
  let a = c * m in
  let b = k * a in
  let d = sin(b) in
  let e = d + x in
  let y = sum[axis=(0,), keepdims=false](d) in
  (j, e, y, d;)
def f(k: f64, m: f64[2], c: f64[2], x: f64[{n},2];) -> (f64;) =
  let i = 0_i64 in
  let (j, e, y, d;) = scan[step, {n}, {way}, 2, 2, 0](k, m, i, c, x;) in
  let (;) = drop(j) in
  let z = d * x in
  let s = sum[axis=(0,1), keepdims=false](z) in
  let t = sum[axis=(0,), keepdims=false](e) in
  let u = sum[axis=(0,), keepdims=false](y) in
  let v = s * t in
  v + u
"""


def arguments(n):
    return (
        0.7,
        np.array([0.4, 1.1]),
        np.array([0.3, 0.2]),
        np.linspace(0.1, 0.9, 2 * n).reshape(n, 2),
    )


@pytest.mark.parametrize("way", ["fwd", "rev"])
@pytest.mark.parametrize(("n", "s"), [(2, 0), (5, 1), (9, 2)])
def test_a_loop_with_everything_has_the_same_derivatives(n, s, way):
    p = parse(WHOLE.format(n=n, way=way))
    want = run(vjp(p, "f"), "f.vjp", *arguments(n), 1.0)
    q = check(vjp(p, "f", binomial(s)))
    found = run(q, "f.vjp", *arguments(n), 1.0)
    for a, b in zip(
        (*want.results, *want.lresults), (*found.results, *found.lresults), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert str(parse(str(q))) == str(q)


def test_the_second_derivative_goes_through_snapshots():
    """Forward over reverse, and reverse over reverse, against a complex step of the gradient."""
    n, h = 5, 1e-30
    p = vjp(parse(WHOLE.format(n=n, way="fwd")), "f", binomial(1))
    p = jvp(erase(p, "f.vjp"), "f.vjp.e")
    k, m, c, x = arguments(n)
    shifted = run(p, "f.vjp.e", k + 1j * h, m, c, x, 1.0, checked=False)
    want = [np.imag(g) / h for g in shifted.results]
    zeros = [np.zeros(2), np.zeros(2), np.zeros((n, 2)), 0.0]
    found = run(p, "f.vjp.e.jvp", k, m, c, x, 1.0, 1.0, *zeros).lresults
    for a, b in zip(want, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    q = check(vjp(p, "f.vjp.e", binomial(2)))
    seeds = [np.zeros_like(np.asarray(v)) for v in run(p, "f.vjp.e", k, m, c, x, 1.0).results]
    seeds[1] = np.asarray(1.0)  # the row of the Hessian that belongs to k
    row = run(q, "f.vjp.e.vjp", k, m, c, x, 1.0, *seeds).lresults
    for a, b in zip(want[1:], row, strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


# --- loops of unknown length --------------------------------------------------------------------

UNKNOWN = """
def more(k: f64, i: i64, c: {t};) -> (bool;) =
  let (;) = drop((k, c;)) in let n = {n}_i64 in less(i, n)
def body(k: f64, i: i64, c: {t};) -> (i64, {t};) =
  let one = 1_i64 in let j = i + one in {beside}
  let b = sin(c) in let h = k * b in (j, h;)
def f(k: f64, c: {t};) -> ({t};) =
  let i = 0_i64 in
  let (j, r;) = while[more, body, 1](k, i, c;) in
  let (;) = drop(j) in
  r
"""
BESIDE = "let e = i + one in let (;) = drop(e) in"  # no derivative, so it counts the rounds


def unknown(n, t="f64", beside=""):
    return parse(UNKNOWN.format(n=n, t=t, beside=beside))


@pytest.mark.parametrize("s", [0, 1, 2, 5])
def test_a_while_loop_takes_the_fewest_steps_too(s, share):
    def work(n, beside):
        p = reverse(unknown(n, beside=beside), "f", binomial(s))
        return run(p, "f.jvp.lin.t", run(p, "f.jvp.nl", 0.9, 0.3).results[-1], 1.0).work

    for n in (0, 1, 2, 3, *share([4, 5, 7, 10, 19, 28, 37, 64])):
        rounds, rest = divmod(work(n, BESIDE) - work(n, ""), 2)
        assert rest == 0
        assert rounds == advances(n, s) + n


@pytest.mark.parametrize("s", [0, 1, 2, 5])
@pytest.mark.slow("loops of thousands of rounds")
def test_and_holds_the_start_the_snapshots_and_one_round(s):
    def peak(n):
        p, meter = reverse(unknown(n, "f64[1000]"), "f", binomial(s)), Meter()
        tape = run(p, "f.jvp.nl", 0.9, np.linspace(0.1, 1, 1000)).results[-1]
        run(p, "f.jvp.lin.t", tape, np.ones(1000), ask=Ask(meter=meter))
        return meter.peak / 8000

    assert peak(40) == peak(120) == s + 7


@pytest.mark.parametrize("s", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
def test_a_while_loop_with_snapshots_has_the_same_derivatives(n, s):
    p = unknown(n, "f64[3]")
    args = (0.9, np.linspace(0.1, 1, 3), np.ones(3))
    q = check(vjp(p, "f", binomial(s)))
    want, found = run(vjp(p, "f"), "f.vjp", *args), run(q, "f.vjp", *args)
    np.testing.assert_array_equal(want.results[0], found.results[0])
    for a, b in zip(want.lresults, found.lresults, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert str(parse(str(q))) == str(q)


def test_snapshots_are_differentiated_again():
    h, p = 1e-30, vjp(unknown(5), "f", binomial(1))
    p = check(vjp(erase(p, "f.vjp"), "f.vjp.e", binomial(1)))
    shifted = run(p, "f.vjp.e", 0.9, 0.3 + 1j * h, 1.0, checked=False).results
    found = run(p, "f.vjp.e.vjp", 0.9, 0.3, 1.0, 0.0, 0.0, 1.0).lresults  # of the gradient in c
    np.testing.assert_allclose(found[1], np.imag(shifted[2]) / h, rtol=1e-12)


STRUCTURES = """
type state = {a: f64[50], b: <f64[50], [f64 | <>]>}
def body(k: f64[50], c: state;) -> (state;) =
  let <a, b> = c in
  let <p, q> = b in
  let s = sin(a * p) in
  let u = s + k in
  let d = <u, q> in
  {a: s, b: d}
def f(k: f64[50], c: state;) -> (state;) = scan[body, 64, fwd, 1, 1, 0](k, c;)
"""


def test_a_carry_of_any_type_has_snapshots():
    """The tape is what the loop starts from, and the memory is that of s states, as foretold."""
    program = check(parse(STRUCTURES))
    x = np.linspace(0.1, 1.0, 50)
    values = (x, (x, (2 * x, Tagged(0, 3.0))), (x, (x, Tagged(0, 1.0))))
    stored = run(check(vjp(program, "f")), "f.vjp", *values)
    peaks = {}
    for s in (0, 2, 5):
        derived = check(vjp(program, "f", binomial(s)))
        assert show(derived.types["f.jvp.tape"]) == "<f64[50], state>"
        meter = Meter()
        found = run(derived, "f.vjp", *values, ask=Ask(meter=meter))
        assert str(found.lresults) == str(stored.lresults)
        peaks[s] = meter.peak
        foretold = forecast(derived, "f.vjp").peak
        assert 0.9 <= foretold / meter.peak <= 1.1
    assert peaks[0] < peaks[2] < peaks[5] < peaks[0] + 6 * 2 * x.nbytes

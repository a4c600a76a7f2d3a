"""P1 to P13 on random programs: a thousand in each run, and as many as you like in fuzz.py."""

import collections

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from programs import Case, cases
from prove import prove, proved, random_policy

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp
from lineara.passes.jvp import jvp
from lineara.passes.unzip import unzip

SHARDS, PROGRAMS = 10, 1000
KINDS = st.one_of(
    cases("NML"),
    cases("N", scalar=True),
    cases("NML", arrays=True),
    cases("N", scalar=True, arrays=True),
    cases("NML", control=True),
    cases("N", scalar=True, control=True),
    cases("NML", arrays=True, control=True),
    cases("N", scalar=True, arrays=True, control=True),
    cases("NML", dims=True),
    cases("NML", dims=True, control=True),
    cases("N", scalar=True, dims=True, control=True),
)
# Each of these was compared at least so often, in a shard of a hundred programs.
OFTEN = {
    "programs": 100, "P1": 80, "P2": 100, "P3": 100, "M": 60, "M dead lanes": 20,
    "P4 complex step": 40, "P4 eager": 30, "P5": 100, "P6": 100, "P7": 250, "P8": 250, "texts": 120,
    "P9": 80, "P11 policies": 80, "P11 Hessian": 1, "P11 third order": 1, "P13": 100,
}  # fmt: skip


def explore(seed: int, programs: int) -> collections.Counter[str]:
    """Prove the properties of that many random programs; what was compared, and how often."""
    proved.clear()

    @hypothesis.seed(seed)
    @settings(
        max_examples=programs, database=None, deadline=None, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(KINDS)
    def every_property_holds(case: Case) -> None:
        prove(case)

    every_property_holds()
    return proved


@pytest.mark.slow("a thousand programs")
@pytest.mark.parametrize("seed", range(SHARDS))
def test_every_property_holds_of_random_programs(seed):
    compared = explore(seed, PROGRAMS // SHARDS)
    assert {k: compared[k] for k, n in OFTEN.items() if compared[k] < n} == {}


def test_every_property_holds_of_a_few_random_programs():
    compared = explore(SHARDS, 20)
    assert compared["programs"] >= 20
    assert (
        min(compared[k] for k in ("P1", "P2", "P3", "P5", "P6", "P7", "P8", "P13", "Linear B"))
        >= 10
    )


# --- what the random programs found -----------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: f64;) -> (; f64, f64) = dup(x)",
        "def f(;) -> (; f64, f64) = dup()",
        "def f(; ~a: f64, ~b: f64) -> (; f64, f64) = dup(~a, ~b)",
        "def f(x: f64[3];) -> (; f64, f64[3]) = read[0](x)",
        "def f(x: f64[3]; ~y: f64) -> (; f64[3]) = accum[0](x, ~y)",
        "def f(; ~x: f64[3]) -> (; f64[3]) = accum[0](~x)",
        "def f(; ~a: <>) -> (; f64) = ~a",
        "def f(x: <>; ~a: f64) -> (; f64) = x * ~a",
    ],
)
def test_a_value_does_not_become_linear_and_the_unit_is_no_number(text):
    with pytest.raises(ProgramError):
        check(parse(text))


@pytest.mark.parametrize(
    "body",
    [
        "let (;) = drop(zero[f64]) in (;)",
        "let ~a: <> = ~<> in let (;) = drop(~a) in (;)",
        "let ~a = zero[f64] in let x = 1.0 in let ~b = x * ~a in let (;) = drop(~b) in (;)",
    ],
)
def test_linear_code_without_linear_results_is_erased_before_it_is_differentiated(body):
    program = check(parse(f"def f(;) -> (;) = {body}"))
    with pytest.raises(ProgramError, match=r"erase (f|it) first"):
        jvp(program, "f")


def test_what_is_computed_again_only_to_be_dropped_still_uses_the_tape():
    program = parse("""
    def f(a: f64, b: f64;) -> (f64;) =
      let (;) = drop({
        let x = sin(b) in
        let y = sin(x) in
        let z = y * b in
        let (;) = drop(z) in
        (a;)
      }) in
      a * b
    """)
    for key in range(20):
        check(vjp(program, "f", random_policy(key)))


@pytest.mark.parametrize("t", ["f32", "<f64, f32[2]>", "<f64, [f64 | <>]>", "f64[2]"])
def test_what_is_scaled_keeps_its_type(t):
    k = "f64[3]" if t == "f64[2]" else "f64"
    with pytest.raises(ProgramError) as error:
        check(parse(f"def f(x: {k}; ~a: {t}) -> (; {t}) = x * ~a"))
    assert error.value.message.splitlines()[0].partition(": ")[2] == (
        f"x: {k} does not scale ~a: {t}; the factor is a number, or has the shape of what it "
        "scales, and no wider dtype than any array there; a sum or a stack is not scaled"
    )


def test_the_zero_of_a_sum_is_a_number_once_it_is_taken_apart():
    program = parse("""
    def one(x: f64;) -> ([f64 | <>];) = inj[0, [f64 | <>]](x)
    def two(x: f64;) -> ([f64 | <>];) = let (;) = drop(x) in let u = <> in inj[1, [f64 | <>]](u)
    def f(x: f64, y: f64;) -> (f64;) =
      let c = less(x, y) in
      let s = cond[one, two](c, x;) in
      let (;) = drop(s) in
      y
    """)
    found = run(check(grad(program, "f")), "f.grad", 1.0, 2.0).results
    assert found == (0.0, 1.0)
    assert all(isinstance(g, np.floating) for g in found)


def test_the_primal_form_drops_a_dimension_that_only_linear_code_has():
    program = parse("""
    def g(n: i64, k: i64; ~a: f64[n]) -> (; f64) =
      let (;) = drop(k) in
      sum[axis=(0,), keepdims=false](~a)
    def f(n: i64; ~a: f64[n]) -> (; f64) = let k = 1_i64 in g(n, k; ~a)
    """)
    program = check(unzip(check(program), "f"))
    t, *_ = run(program, "f.nl", 3).results
    assert run(program, "f.lin", t, 3, np.ones(3)).lresults == (3.0,)
    assert run(program, "g.pri", 3, 1).results == ()


STILL_TAPE = """
def w(count: i64, x: f64;) -> (i64, f64;) =
  let one: i64 = 1_i64 in
  let then: i64 = count + one in
  (then, x;)
def p(count: i64;) -> (bool;) = let last: i64 = 2_i64 in less(count, last)
def f(x: f64;) -> (f64;) =
  let (;) = drop(x * x) in
  let count: i64 = 0_i64 in
  let (count2: i64, x2: f64;) = while[p, w, 0](count, x;) in
  let (;) = drop(count2) in
  (x2;)
"""
ROWS_OF_TWO_KINDS = """
def h(; ~a: f64, ~b: f64, ~c: f64) -> (; f64, f64, f64) = (; ~b, ~c, ~a)
def f(; ~b: f64) -> (; f64, f64, f64[2]) =
  let ~a: f64 = zero[f64] in
  let ~c: f64[2] = zero[f64[2]] in
  scan[h, 2, fwd, 0, 0, 2](; ~a, ~b, ~c)
"""
READ_BY_LINEAR_CODE = """
def h(x: f64, y: f64; ~a: f64) -> (f64; f64) =
  let ~b: f64 = x * ~a in
  let z: f64 = sin(y) in
  (z; ~b)
def f(x: f64, y: f64; ~a: f64) -> (f64; f64) = scan[h, 3, fwd, 1, 1, 1](x, y; ~a)
"""
NO_ELEMENTS = """
def f(x: f64;) -> (f64[0];) =
  let y: f64[0] = []_f64[0] in
  let z: f64 = sin(x) in
  let a: f64[0,2] = []_f64[0,2] in
  let b: f64[2] = matmul(y, a) in
  let (;) = drop(b) in
  z * y
"""


@pytest.mark.parametrize("text", [STILL_TAPE, ROWS_OF_TWO_KINDS, READ_BY_LINEAR_CODE, NO_ELEMENTS])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_every_property_holds_of_what_random_programs_found(text, seed):
    prove(Case(parse(text), "f", seed))


def test_a_tape_with_a_stack_in_which_nothing_moves_needs_no_type_of_tangents():
    program = grad(parse(STILL_TAPE), "f")
    second = vjp(program, "f.grad")
    check(second)
    assert "f.jvp.tape" in second.types
    assert not [name for name in second.types if name.endswith(".tan")]

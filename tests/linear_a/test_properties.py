"""P1 to P13 on random programs: a thousand in each run, and as many as you like in fuzz.py."""

import collections

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from programs import Case, cases
from prove import prove, proved, random_policy

from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.compose import vjp
from lineara.passes.jvp import jvp

SHARDS, PROGRAMS = 10, 1000
KINDS = st.one_of(
    cases("NML"),
    cases("N", scalar=True),
    cases("NML", arrays=True),
    cases("N", scalar=True, arrays=True),
    cases("NML", control=True),
    cases("N", scalar=True, control=True),
)
# Each of these was compared at least so often, in a shard of a hundred programs.
OFTEN = {
    "programs": 100, "P1": 80, "P2": 100, "P3": 100, "P4 complex step": 40, "P4 eager": 30,
    "P5": 100, "P6": 100, "P7": 300, "P8": 300, "P9": 80, "P11 policies": 80, "P11 Hessian": 1,
    "P11 third order": 1, "P13": 100,
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


@pytest.mark.parametrize("seed", range(SHARDS))
def test_every_property_holds_of_random_programs(seed):
    found = explore(seed, PROGRAMS // SHARDS)
    assert {k: found[k] for k, n in OFTEN.items() if found[k] < n} == {}


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

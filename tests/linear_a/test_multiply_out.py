"""A composition of linear maps as one sparse matrix: the same map, where that is less work."""

import random

import numpy as np
import pytest

import lineara
from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.cost import static_works
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.passes.inline import inline
from lineara.passes.multiply_out import multiply_out
from lineara.passes.simplify import simplify
from lineara.passes.transpose import transpose

SQUARED = """
def A(; ~x: f64, ~y: f64) -> (; f64, f64) =
  let k = 2.0 in
  let l = 3.0 in
  (; k * ~x + ~y, l * ~y + ~x)
def AA(; ~x: f64, ~y: f64) -> (; f64, f64) = let (; ~a, ~b) = A(; ~x, ~y) in A(; ~a, ~b)
"""


def test_a_squared_is_the_square_of_the_matrix():
    program = check(parse(SQUARED, sugar=True))
    flat = simplify(inline(program, "AA"), "AA")
    made = check(multiply_out(flat, "AA"))
    assert (static_works(flat)["AA"], static_works(made)["AA"]) == (8, 6)
    rows = [run(made, "AA", *e).lresults for e in ((1.0, 0.0), (0.0, 1.0))]
    assert np.array_equal(np.transpose(rows), np.linalg.matrix_power([[2.0, 1.0], [1.0, 3.0]], 2))
    assert "AA.t" in check(transpose(made, "AA")).defs


def work(program: Program) -> int:
    """The work of f."""
    known = static_works(program)["f"]
    assert known is not None
    return known


FACTORS = ("2.0", "-1.0", "0.5")


def banded(rng: random.Random, n: int, depth: int, factors: tuple[str, ...]) -> str:
    """Maps of n numbers one after another, with two entries a row, literals or formals."""
    lines, names = [], [f"~a{i}" for i in range(n)]
    for level in range(depth):
        after = []
        for i in range(n):
            k = rng.choice(factors)
            if k == "x":
                lines.append(f"let ~b{level}x{i} = x * {names[i]} + {names[(i + 1) % n]} in")
            else:
                lines.append(f"let k{level}x{i} = {k} in")
                lines.append(
                    f"let ~b{level}x{i} = k{level}x{i} * {names[i]} + {names[(i + 1) % n]} in"
                )
            after.append(f"~b{level}x{i}")
        names = after
    formals = ", ".join(f"~a{i}: f64" for i in range(n))
    body = "\n  ".join([*lines, f"(; {', '.join(names[: n - 1])}, ~<{names[-1]}, ~a0>)"])
    results = ", ".join(["f64"] * (n - 1) + ["<f64, f64>"])
    return f"def f(x: f64; {formals}) -> (; {results}) =\n  {body}\n"


@pytest.mark.parametrize("seed", range(12))
def test_a_random_composition_is_the_same_map_at_no_more_work(seed):
    rng = random.Random(seed)
    n, depth = rng.randrange(2, 5), rng.randrange(1, 6)
    program = check(parse(banded(rng, n, depth, (*FACTORS, "x")), sugar=True))
    made = check(multiply_out(program, "f"))
    assert made is program or work(made) < work(program)
    values = [0.25 * rng.randrange(-8, 9) for _ in range(n + 1)]
    assert run(made, "f", *values).lresults == run(program, "f", *values).lresults


@pytest.mark.parametrize("depth", [2, 3, 8])
def test_two_numbers_take_six_operations_however_many_maps_there_are(depth):
    program = check(parse(banded(random.Random(depth), 2, depth, FACTORS), sugar=True))
    made = check(multiply_out(program, "f"))
    assert work(program) == 4 * depth + 1  # x is dropped
    assert work(made) <= 6 + 1


def test_what_is_not_used_is_dropped_and_what_is_nothing_is_zero():
    text = """
def f(x: f64; ~a: f64, ~p: <f64, <f64, f64>>) -> (; f64, <f64, f64>) =
  let k = 2.0 in
  let ~b = k * ~a in
  let ~<~c, ~q> = ~p in
  let ~z = zero[<f64, f64>] in
  (; k * ~b, k * ~z)
"""
    program = check(parse(text, sugar=True))
    made = check(multiply_out(program, "f"))
    assert work(made) < work(program)
    assert run(made, "f", 5.0, 3.0, (1.0, (1.0, 1.0))).lresults == (12.0, (0.0, 0.0))


STAYS = {
    "one scaling": "def f(x: f64; ~a: f64) -> (; f64) = x * ~a",
    "factors that would have to be multiplied": (
        "def f(x: f64, y: f64; ~a: f64) -> (; f64) = let ~b = x * ~a in y * ~b"
    ),
    "arrays": "def f(; ~a: f64[2]) -> (; f64[2]) = let k = 2.0 in let ~b = k * ~a in k * ~b",
    "a call": "def g(; ~a: f64) -> (; f64) = ~a\ndef f(; ~a: f64) -> (; f64) = g(; ~a)",
    "a factor of another dtype": (
        "def f(; ~a: f64) -> (; f64) = let k = 2.0_f32 in let ~b = k * ~a in k * ~b"
    ),
    "rows that grow with the definition": (
        "def f(; "
        + ", ".join(f"~a{i}: f64" for i in range(400))
        + ") -> (; f64, f64) =\n  let ~s0 = ~a0 in\n"
        + "\n".join(f"  let ~s{i} = ~s{i - 1} + ~a{i} in" for i in range(1, 400))
        + "\n  (; ~s399, ~s0)"
    ),
    "elements of a ring": (
        "def f(; ~a: object) -> (; object) = let k = 2_object in let ~b = k * ~a in k * ~b"
    ),
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_is_no_less_work_as_a_matrix_stays(text):
    program = check(parse(text, sugar=True))
    assert multiply_out(program, "f") is program


def test_what_is_no_linear_map_is_refused():
    program = check(parse("def f(x: f64; ~a: f64) -> (f64; f64) = (x; ~a)"))
    with pytest.raises(ProgramError, match="this has results in both zones"):
        multiply_out(program, "f")
    program = check(parse("def f(x: f64;) -> (f64;) = x"))
    with pytest.raises(ProgramError, match=r"unzip f and multiply f\.lin out"):
        multiply_out(program, "f")


def test_the_certificate_says_what_the_matrix_would_take():
    def once(p):
        x, y = p
        return 2.0 * x + y, 3.0 * y + x

    found = lineara.stages(lambda p: once(once(once(p)))[0], (1.0, 2.0)).certificate
    assert found.multiplied is not None
    before, after = found.multiplied
    assert after == 2 < before
    assert f"as one matrix: {found.linear[-1]} does 2 in place of {before}\n" in str(found)
    assert lineara.stages(np.sin, 3.0).certificate.multiplied is None

"""Elements of rings as scalars: J and T of random programs, where products may not commute.

J is compared with dual numbers over the ring, T by tr(c f(a)) = tr(f.t(c) a), where tr is a map
to a field with tr(x y) = tr(y x): the real part of a quaternion, the trace of a matrix.
"""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from prove import Meter, Run
from rings import RINGS, Dual, Mod7, Quaternion, Ring, elements, evaluated, pairing

from lineara.__main__ import main
from lineara.engines import Ask, Exact, run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.linear_b import linear_b
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.passes.batch import batch
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.masks import masks
from lineara.passes.simplify import simplify
from lineara.passes.transpose import transpose
from lineara.passes.unzip import unzip
from lineara.passes.work_bound import c_jvp

# --- random programs ------------------------------------------------------------------------------

PAIR = "<object, object>"
HELPERS = f"""
def twice(x: object, p: {PAIR};) -> (object, {PAIR};) =
  let <a, b> = p in
  let c = a * x in
  let d = x * b in
  (c + b, <d, a>;)
def left(x: object, p: {PAIR};) -> (object;) = let <a, b> = p in a * x + b
def right(x: object, p: {PAIR};) -> (object;) = let <a, b> = p in x * b - a
def round(k: object, c: object;) -> (object;) = k * c + c * k
"""


def nonlinear(rng: random.Random, divides: bool) -> str:
    """A program whose f takes x, y, p and a boolean q, and gives a number and a pair."""
    numbers, pairs, lines = ["x", "y"], ["p"], []
    for i in range(rng.randrange(3, 9)):
        a, b, q = rng.choice(numbers[-4:]), rng.choice(numbers), rng.choice(pairs)
        leaves = [f"{a} {op} {b}" for op in "+-*"] + [f"negative({a})", f"square({b})"]
        leaves += [f"{a} / {b}", f"reciprocal({a})"] if divides else []
        leaves += [f"{rng.randrange(-2, 3)}_object", "zeros[object]"] * (rng.random() < 0.3)
        leaves += [f"cond[left, right](q, {a}, {q};)", f"scan[round, 2, fwd, 1, 1, 0]({a}, {b};)"]
        kind = rng.random()
        if kind < 0.15:
            lines.append(f"let <v{i}, w{i}> = {q} in")
            numbers += [f"v{i}", f"w{i}"]
        elif kind < 0.3:
            lines.append(f"let (v{i}, q{i};) = twice({a}, {q};) in")
            numbers.append(f"v{i}")
            pairs.append(f"q{i}")
        elif kind < 0.4:
            lines.append(f"let q{i} = <{a}, {b}> in")
            pairs.append(f"q{i}")
        else:
            lines.append(f"let v{i} = {rng.choice(leaves)} in")
            numbers.append(f"v{i}")
    body = "\n  ".join([*lines, f"({numbers[-1]}, {pairs[-1]};)"])
    formals = f"x: object, y: object, p: {PAIR}, q: bool;"
    return f"{HELPERS}def f({formals}) -> (object, {PAIR};) =\n  {body}\n"


def linear(rng: random.Random) -> str:
    """A Linear B program whose f scales, adds and calls, from both sides."""
    numbers, pairs, lines = ["~a", "~b"], ["~r"], []
    for i in range(rng.randrange(3, 9)):
        a, b, q = rng.choice(numbers[-3:]), rng.choice(numbers), rng.choice(pairs)
        k = rng.choice("xy")
        kind = rng.random()
        if kind < 0.15:
            lines.append(f"let ~<~v{i}, ~w{i}> = {q} in")
            numbers += [f"~v{i}", f"~w{i}"]
        elif kind < 0.4:
            leaves = [f"~<{a}, {b}>", f"{k} * {q}", f"{q} * {k}", f"{q} + {rng.choice(pairs)}"]
            lines.append(f"let ~q{i} = {rng.choice(leaves)} in")
            pairs.append(f"~q{i}")
        else:
            leaves = [f"{k} * {a}", f"{a} * {k}", f"{a} + {b}", f"{a} - {b}", "zero[object]"]
            leaves += [f"around({k}; {a})", f"scan[around, 3, rev, 1, 0, 1]({k}; {a})"]
            lines.append(f"let ~v{i} = {rng.choice(leaves)} in")
            numbers.append(f"~v{i}")
    body = "\n  ".join([*lines, f"(; {numbers[-1]}, {pairs[-1]})"])
    formals = f"x: object, y: object; ~a: object, ~b: object, ~r: {PAIR}"
    return (
        "def around(k: object; ~a: object) -> (; object) = let ~b = k * ~a in ~b * k + ~a\n"
        f"def f({formals}) -> (; object, {PAIR}) =\n  {body}\n"
    )


def joined(x: Any, dx: Any) -> Any:
    return tuple(map(joined, x, dx)) if isinstance(x, tuple) else Dual(x, dx)


def taken_apart(v: Any, i: int) -> Any:
    return tuple([taken_apart(p, i) for p in v]) if isinstance(v, tuple) else v.parts[i]


def defined(ring: Ring, rng: random.Random) -> tuple[Program, list[Any], bool, Any]:
    """A program, arguments, and its results, which exist: it divides if that goes well."""
    for divides in (True, True, False):
        program = check(parse(nonlinear(rng, divides), sugar=True))
        xs, q = elements(ring, rng, 2), rng.random() < 0.5
        try:
            return program, xs, q, evaluated(ring, program, "f", *xs, q)
        except ProgramError as error:
            if not divides or "fails as the program runs" not in error.message:
                raise
    raise AssertionError("without division there is a result")


CASES = [(name, seed) for name in RINGS for seed in range(12)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_j_is_the_derivative_and_its_transpose_the_gradient(name, seed):
    ring, rng = RINGS[name], random.Random(f"{name} {seed}")
    program, xs, q, ys = defined(ring, rng)
    dxs = elements(ring, rng, 2)
    derived = check(vjp(program, "f"))
    assert str(check(parse(str(derived)))) == str(derived)
    dual = Ring(lambda n: Dual(ring.number(n), ring.number(0)), ring.element, ring.trace)
    moved = evaluated(ring, derived, "f.jvp", *xs, q, *dxs)
    expected = evaluated(dual, program, "f", *map(joined, xs, dxs), q).results
    assert moved.results == ys.results
    assert moved.lresults == tuple([taken_apart(v, 1) for v in expected])
    cs = tuple(elements(ring, rng, 1))
    back = evaluated(ring, derived, "f.vjp", *xs, q, *cs)
    assert back.results == ys.results
    assert pairing(ring, cs, moved.lresults) == pairing(ring, back.lresults, tuple(dxs))
    out, into = 3, 4
    assert back.work <= moved.work + out - into
    metered = Run(program, "f", [*xs, q], lambda p: Meter(p, Exact(ring.number)))
    bound = c_jvp(program, "f")
    assert bound is not None
    assert moved.work <= bound * ys.work + metered.surplus + into
    lean = check(simplify(derived, "f.vjp"))
    assert evaluated(ring, lean, "f.vjp", *xs, q, *cs).lresults == back.lresults


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_t_transposes_scalings_of_both_sides_at_no_more_work(name, seed):
    ring, rng = RINGS[name], random.Random(f"{name} {seed}")
    program = linear_b(check(parse(linear(rng), sugar=True)), ["f"])
    turned = check(transpose(program, "f", exact=True))
    linear_b(turned, turned.defs)
    xs, us = [ring.element(rng), ring.element(rng)], elements(ring, rng, 2)
    cs = tuple(elements(ring, rng, 1))
    ran = evaluated(ring, program, "f", *xs, *us)
    back = evaluated(ring, turned, "f.t", *xs, *cs)
    assert pairing(ring, cs, ran.lresults) == pairing(ring, back.lresults, tuple(us))
    out, into = 3, 4
    assert back.work - out == ran.work - into
    twice = evaluated(ring, check(transpose(turned, "f.t", exact=True)), "f.t.t", *xs, *us)
    assert (twice.lresults, twice.work) == (ran.lresults, ran.work)
    erased = evaluated(ring, check(erase(program, "f")), "f.e", *xs, *us)
    assert (erased.results, erased.work) == (ran.lresults, ran.work)


def test_the_order_of_factors_matters_in_what_was_compared():
    """Left in place of right scaling is another function, and would have been seen."""
    ring, rng = RINGS["quaternions"], random.Random(1)
    sides = "def f(x: object; ~a: object) -> (; object) = "
    x, a = ring.element(rng), ring.element(rng)
    values = [
        evaluated(ring, check(parse(sides + leaf)), "f", x, a).lresults
        for leaf in ("x * ~a", "~a * x")
    ]
    assert values[0] == (x * a,)
    assert values[1] == (a * x,) != values[0]


# --- zeros are the ring's -------------------------------------------------------------------------


@pytest.mark.parametrize("name", RINGS)
def test_a_structural_zero_is_the_zero_of_the_ring(name):
    ring = RINGS[name]
    text = f"def f(x: object;) -> (object, {PAIR};) = let k = 2_object in (k, <x, k>;)"
    program = check(vjp(check(parse(text, sugar=True)), "f"))
    x, zero = ring.number(3), ring.number(0)
    outcome = evaluated(ring, program, "f.jvp", x, x)
    assert outcome.results == (ring.number(2), (x, ring.number(2)))
    assert outcome.lresults == (zero, (x, zero))
    assert all(type(v) is type(zero) for v in (outcome.lresults[0], outcome.lresults[1][1]))


@pytest.mark.parametrize(("number", "kind"), [(Fraction, Fraction), (Mod7, Mod7)])
def test_in_an_exact_run_of_a_program_of_f64_zeros_are_exact(number, kind):
    text = "def f(x: f64; ~a: f64) -> (; f64, <f64, f64>) = (; x * ~a, zero[<f64, f64>])"
    program = check(parse(text, sugar=True))
    outcome = run(program, "f", 2.0, 3.0, ask=Ask(values=Exact(number)))
    y, (z, w) = outcome.lresults
    assert (y, z, w) == (number(6), number(0), number(0))
    assert {type(v) for v in (y, z, w)} == {kind}


def test_without_a_ring_its_zero_is_refused():
    program = check(parse("def f(; ~a: object) -> (; object) = let (;) = drop(~a) in zero[object]"))
    with pytest.raises(ProgramError) as error:
        run(program, "f", Quaternion(1, 0, 0, 0))
    assert error.value.message == (
        "a zero is asked for as an element of a ring, and nothing tells which ring it is; run with "
        "ask=Ask(values=Exact(number)), where number(0) is that zero"
    )


# --- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "def f(x: object, k: f64;) -> (object;) = k * x": (
        "1:42: multiply of f64 and object: of elements of a ring all or none; a whole number as "
        "one of them is written 2_object"
    ),
    "def f(x: object[3];) -> (object[3];) = x": (
        "1:5: object[3] is an array of elements of a ring; a product or a stack of them has "
        "several: <object, object>"
    ),
    "def f(x: f64; ~a: f64) -> (; f64) = ~a * x": (
        "1:42: the factor comes first, since numbers commute: x * ~a"
    ),
    "def f(x: object;) -> (object;) = x * 2.5_object": (
        "1:38: this does not fit into object; write another suffix"
    ),
    "def f(c: bool; ~a: object, ~b: object) -> (; object) = where(c, ~a, ~b)": (
        "1:65: where is not stated for linear elements of a ring; linear in them are ~a + ~b, "
        "x * ~a and ~a * x"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_meaning_in_a_ring_is_refused_in_its_line(text):
    with pytest.raises(ProgramError) as error:
        check(parse(text))
    assert error.value.message.splitlines()[0] == REFUSED[text]


def test_passes_for_numbers_say_that_a_ring_has_other_rules():
    program = check(parse("def f(x: object;) -> (object;) = x * x"))
    with pytest.raises(ProgramError, match="elements of a ring have no lanes; run f for one"):
        batch(program, "f", (0,), 3)
    with pytest.raises(ProgramError, match="elements of a ring have no lanes that could be dead"):
        masks(jvp(program, "f"), "f.jvp")
    with pytest.raises(ProgramError, match="it has values of the type object"):
        run(program, "f", Fraction(1), engine="native")
    with pytest.raises(ProgramError, match="is no element of a ring; give what has"):
        run(program, "f", np.ones((2, 2)))
    with pytest.raises(ProgramError) as error:
        jvp(check(parse("def f(x: object;) -> (object;) = sin(x)")), "f")
    assert error.value.message == (
        "jvp: sin has no derivative in a ring, whose products may not commute; there is add, "
        "subtract, multiply, divide, negative, square, reciprocal"
    )


def test_the_command_line_prints_derivatives_and_takes_no_elements(capsys, tmp_path):
    file = tmp_path / "p.lina"
    file.write_text("def f(x: object;) -> (object;) = x * x\n")
    assert main(["jvp", str(file), "--def", "f"]) == 0
    assert "let ~dp: object = ~dx2 * x in\n  let ~dp2: object = x * ~dx3" in capsys.readouterr().out
    assert main(["run", str(file), "--def", "f", "--args", "[2]"]) == 1
    assert "x is an element of a ring, which JSON has no text for" in capsys.readouterr().err


def test_halves_of_a_program_over_a_ring_are_linear_b():
    program = jvp(check(parse(nonlinear(random.Random(3), True), sugar=True)), "f")
    halves = check(unzip(program, "f.jvp"))
    linear_b(halves, [f for f in halves.defs if f not in program.defs])

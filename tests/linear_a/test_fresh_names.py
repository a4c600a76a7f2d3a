"""Names that passes would give may be taken, in a block or in a drop: then they give others."""

import pytest

from lineara.engines import run
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.syntax import binders
from lineara.passes.derivatives import grad, vjp
from lineara.passes.erase import erase
from lineara.passes.transpose import transpose

# what J, U, T and E call tangents, results, tapes, cotangents, zeros and parts
TAKEN = ("dx", "dy", "y", "dp", "ds", "t", "r", "ts", "ct", "cx", "cdx", "z", "k", "p", "q", "a")
CHAIN = " ".join(
    f"let {v} = sin({u}) in" for u, v in zip(("x", *TAKEN), TAKEN, strict=False)
)  # fmt: skip
PROGRAMS = {
    "a block": f"def f(x: f64;) -> (f64;) = let w = {{ {CHAIN} a * a }} in w * x",
    "a drop": f"def f(x: f64;) -> (f64;) = let (;) = drop({{ {CHAIN} a * a }}) in x * x",
    "the end": f"def f(x: f64;) -> (f64;) = {CHAIN} a * a",
}


def test_a_drop_at_the_end_has_names_too():
    program = check(parse("def f(x: f64;) -> (;) = drop({ let dx = sin(x) in dx * dx })"))
    assert [v.name for v in binders(program.defs["f"])] == ["x", "dx"]
    check(vjp(program, "f"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_do_not_take_them(name):
    program = check(grad(check(parse(PROGRAMS[name])), "f"))
    moved = run(program, "f", 0.5 + 1e-30j, checked=False).results[0].imag / 1e-30
    assert run(program, "f.grad", 0.5).results[0] == pytest.approx(moved, rel=1e-12)
    check(vjp(program, "f.grad"))


LINEAR = " ".join(
    f"let ~{v} = k * ~{u} in" for u, v in zip(("b", *TAKEN[:12]), TAKEN[:12], strict=False)
)
BODIES = {
    "a block": f"let ~w = {{ {LINEAR} k * ~z }} in ~w",
    "a drop": f"let ~w = zero[f64] in let (;) = drop({{ {LINEAR} k * ~z }}) in ~w",
    "the end": f"{LINEAR} k * ~z",
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_linear_passes_do_not_take_them(name, exact):
    program = check(parse(f"def f(k: f64; ~b: f64) -> (; f64) = {BODIES[name]}"))
    program = check(erase(check(transpose(program, "f", exact)), "f"))
    want = run(program, "f", 0.5, 2.0).lresults
    assert run(program, "f.t", 0.5, 2.0).lresults == want
    assert run(program, "f.e", 0.5, 2.0).results == want

"""Rule texts are copied for operands that were others when the text was made."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from lineara.engines import run
from lineara.facts.registry import op
from lineara.facts.types import type_of
from lineara.linear_a import check as judging
from lineara.linear_a import rules_as_text
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_def
from lineara.linear_a.syntax import Prim, Var
from lineara.passes.batch import batch
from lineara.passes.derivatives import vjp
from lineara.passes.jvp import jvp, remembered
from lineara.passes.transpose import transpose

TWICE_AND_ONCE = """
def f(; ~v: f64) -> (; f64[2,2], f64[2,2]) =
  let i = 0_i64 in
  let j = 1_i64 in
  let (; ~u, ~w) = dup(~v) in
  let ~a = scatter[at=(i, i), shape=(2, 2)](~u) in
  let ~b = scatter[at=(i, j), shape=(2, 2)](~w) in
  (; ~a, ~b)
"""


def test_a_variable_that_a_parameter_mentions_twice_is_two_occurrences():
    for text in (TWICE_AND_ONCE, TWICE_AND_ONCE.replace("(i, i)", "(j, i)")):
        program = check(transpose(check(parse(text)), "f"))
        a, b = np.eye(2), np.array([[0.0, 5.0], [7.0, 0.0]])
        x, y = run(program, "f", 1.0).lresults
        (back,) = run(program, "f.t", a, b).lresults
        assert back == (x * a).sum() + (y * b).sum()


def test_an_operand_that_occurs_twice_is_two_operands():
    program = check(
        parse("""
def f(x: f64, y: f64;) -> (f64;) =
  let a = x * x in
  let b = x * y in
  let c = hypot(a, a) in
  let d = hypot(a, b) in
  c * d
""")
    )
    program = check(vjp(program, "f"))
    got = run(program, "f.vjp", 0.5, 0.7, 1.0).lresults
    step = 1e-7
    want = [
        (run(program, "f", 0.5 + s, 0.7 + t).results[0] - run(program, "f", 0.5, 0.7).results[0])
        / step
        for s, t in ((step, 0.0), (0.0, step))
    ]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_the_transpose_of_a_product_of_matrices_reads_its_own_operand():
    program = check(
        parse("""
def f(A: f64[2,2], B: f64[2,2]; ~v: f64[2], ~w: f64[2]) -> (; f64[2], f64[2]) =
  let ~a = matmul(A, ~v) in
  let ~b = matmul(B, ~w) in
  (; ~a, ~b)
""")
    )
    program = check(transpose(program, "f"))
    A, B = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    c, d = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    got = run(program, "f.t", A, B, c, d).lresults
    np.testing.assert_array_equal(got, [A.T @ c, B.T @ d])


def chains(n: int) -> Program:
    """Each of the definitions has n products of one signature, one more is in a loop."""

    def links(sigil: str, like: str) -> str:
        return "".join(
            [f"let {sigil}{like}{i + 1} = matmul(m, {sigil}{like}{i}) in " for i in range(n)]
        )

    m, a, b = "m: f64[2,2]", links("", "x"), links("~", "a")
    return check(parse(
        f"def s({m}, x: f64[2];) -> (f64[2];) = matmul(m, x)\n"
        f"def f1({m}, x0: f64[2];) -> (f64[2];) = {a} scan[s, 2, fwd, 1, 1, 0](m, x{n};)\n"
        f"def f({m}, x: f64[2];) -> (f64[2];) = let x0 = f1(m, x;) in {a} x{n}\n"
        f"def g1({m}; ~a0: f64[2]) -> (; f64[2]) = {b} ~a{n}\n"
        f"def g({m}; ~a: f64[2]) -> (; f64[2]) = let ~a0 = g1(m; ~a) in {b} ~a{n}"
    ))  # fmt: skip


PASSES = {
    "jvp": lambda program: jvp(program, "f"),
    "transpose": lambda program: transpose(program, "g"),
    "batch": lambda program: batch(program, "f", (None, 0), 3),
}


def times(
    module: ModuleType, name: str, run: Callable[[], object], patch: pytest.MonkeyPatch
) -> int:
    """How often a function of a module is called."""
    found, made = [], getattr(module, name)
    with patch.context() as here:
        here.setattr(module, name, lambda *args: found.append(args) or made(*args))
        run()
    return len(found)


@pytest.mark.parametrize("one", PASSES)
def test_a_rule_runs_once_for_a_signature(one, monkeypatch):
    for n in (1, 4):
        program = chains(n)
        assert times(rules_as_text, "_text", lambda p=program: PASSES[one](p), monkeypatch) == 1


def test_a_result_is_typed_once_for_a_signature(monkeypatch):
    few, many = [
        times(judging, "result_type", lambda p=p: jvp(p, "f"), monkeypatch)
        for p in (chains(1), chains(4))
    ]
    assert few == many


def test_a_rule_with_a_parameter_that_is_no_key_is_made_anew():
    e = Prim((Var("x", type_of(1.0)),), op("sin"), {"k": [1.0]})
    rules: dict = {}
    assert remembered(rules, e, (), lambda: "made") == "made"
    assert rules == {}


def test_only_a_complex_factor_is_conjugated():
    for kind, times in (("f64", 0), ("c128", 1)):
        text = f"def f(x: {kind}; ~a: {kind}) -> (; {kind}) = x * ~a"
        made = check(transpose(check(parse(text)), "f"))
        assert show_def(made.defs["f.t"]).count("conj") == times


def test_parts_that_are_looked_up_are_read_of_one_tangent():
    text = "let y = index[at=(0,)](x) in let z = index[at=(1,)](x) in y * z"
    program = check(parse(f"def f(x: f64[3];) -> (f64;) = {text}"))
    made = show_def(check(vjp(program, "f")).defs["f.jvp"])
    assert (made.count("read["), made.count("dup")) == (2, 0)

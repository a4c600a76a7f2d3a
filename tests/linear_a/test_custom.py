"""Rules that are written in Linear A: proved linear by their type, and tested when installed."""

import numpy as np
import pytest

from lineara.engines import run
from lineara.errors import ProgramError, RuleError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp
from lineara.passes.jvp import jvp
from lineara.passes.rules_in_text import custom_jvp, custom_linear, custom_vjp
from lineara.passes.transpose import transpose

LOG1PEXP = """
def f(x: f64;) -> (f64;) =
  let e = exp(x) in log1p(e)
def rule(x: f64; ~d: f64) -> (f64; f64) =
  let e = exp(x) in
  let y = log1p(e) in
  let m = negative(x) in
  let n = exp(m) in
  let one = 1.0 in
  let s = one + n in
  let k = reciprocal(s) in
  let ~e2 = k * ~d in
  (y; ~e2)
def fwd(x: f64;) -> (f64, f64;) =
  let e = exp(x) in let y = log1p(e) in (y, x;)
def bwd(x: f64; ~c: f64) -> (; f64) =
  let m = negative(x) in
  let n = exp(m) in
  let one = 1.0 in
  let s = one + n in
  let k = reciprocal(s) in
  k * ~c
def g(x: f64;) -> (f64;) =
  let a = x * x in f(a;)
"""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


RULES = {
    "jvp": lambda p: custom_jvp(p, "f", "rule"),
    "vjp": lambda p: custom_vjp(p, "f", "fwd", "bwd"),
}


@pytest.mark.parametrize("install", RULES.values(), ids=RULES)
def test_a_rule_serves_every_mode_and_every_order(install):
    program = install(check(parse(LOG1PEXP)))
    program = check(vjp(jvp(grad(program, "g"), "g.grad"), "g.grad"))
    s = sigmoid(4.0)
    first, second = 4 * s, 2 * s + 16 * s * (1 - s)
    assert run(program, "g.grad", 2.0).results[0] == pytest.approx(first)
    assert run(program, "g.grad.jvp", 2.0, 1.0).lresults[0] == pytest.approx(second)
    assert run(program, "g.grad.vjp", 2.0, 1.0).lresults[0] == pytest.approx(second)


def test_the_rule_is_used_where_the_function_overflows():
    program = custom_jvp(check(parse(LOG1PEXP)), "f", "rule")
    assert run(grad(program, "f"), "f.grad", 800.0).results[0] == 1.0
    plain = check(parse(LOG1PEXP))
    assert np.isnan(run(grad(plain, "f"), "f.grad", 800.0).results[0])


def test_the_transpose_of_a_transposed_rule_is_the_rule():
    program = custom_vjp(check(parse(LOG1PEXP)), "f", "fwd", "bwd")
    assert program.defs["bwd.t.t"].body is program.defs["bwd"].body


def test_stop_gradient_is_a_rule_that_drops_the_tangent():
    program = parse("""
def still(x: f64;) -> (f64;) = x
def rule(x: f64; ~d: f64) -> (f64; f64) =
  let (;) = drop(~d) in let ~z = zero[f64] in (x; ~z)
def g(x: f64;) -> (f64;) = let s = still(x;) in x * s
""")
    program = check(grad(custom_jvp(program, "still", "rule", test=False), "g"))
    assert run(program, "g.grad", 3.0).results == (3.0,)


NOT_LINEAR = {
    "drops its tangent": "let y = sin(x) in let ~z = zero[f64] in (y; ~z)",
    "duplicates its tangent": "let y = sin(x) in let ~e = ~d + ~d in (y; ~e)",
}


@pytest.mark.parametrize("body", NOT_LINEAR.values(), ids=NOT_LINEAR)
def test_the_checker_refuses_a_rule_that_is_not_linear(body):
    program = parse(
        f"def f(x: f64;) -> (f64;) = sin(x) def rule(x: f64; ~d: f64) -> (f64; f64) = {body}"
    )
    with pytest.raises(ProgramError, match=r"~d is (never used|used again)"):
        custom_jvp(program, "f", "rule")


MESSAGES = {
    "another signature": (
        "def f(x: f64;) -> (f64;) = sin(x)\n"
        "def rule(x: f64; ~d: <f64>) -> (f64; f64) =\n"
        "  let y = sin(x) in let k = cos(x) in let ~<~e> = ~d in let ~g = k * ~e in (y; ~g)",
        ProgramError,
        "the jvp rule rule of f is (f64; <f64>) -> (f64; f64); it must be (f64; f64) -> (f64; f64)",
    ),
    "another value": (
        "def f(x: f64;) -> (f64;) = sin(x)\n"
        "def rule(x: f64; ~d: f64) -> (f64; f64) =\n"
        "  let y = cos(x) in let k = cos(x) in let ~e = k * ~d in (y; ~e)",
        RuleError,
        "the rule rule gives the value 0.420353 for f, which is 0.907361 at 1.13696; "
        "a rule keeps the value",
    ),
    "another slope": (
        "def f(x: f64;) -> (f64;) = sin(x)\n"
        "def rule(x: f64; ~d: f64) -> (f64; f64) =\n"
        "  let y = sin(x) in let ~e = y * ~d in (y; ~e)",
        RuleError,
        "the rule rule gives the tangent 0.698474 for f, where differences give 0.323582, "
        "at 1.13696 along 0.769787",
    ),
    "no rule": (
        "def f(x: f64;) -> (f64;) = sin(x)",
        ProgramError,
        "there is no definition rule",
    ),
}


@pytest.mark.parametrize(("text", "kind", "message"), MESSAGES.values(), ids=MESSAGES)
def test_a_wrong_rule_is_refused_with_figures(text, kind, message):
    with pytest.raises(kind) as error:
        custom_jvp(check(parse(text)), "f", "rule")
    assert error.value.message == message


LINEAR = """
def twice(k: f64; ~a: <f64, f64>) -> (; f64, f64) =
  let ~<~x, ~y> = ~a in
  let ~u = k * ~x in
  let (; ~y1, ~y2) = dup(~y) in
  let ~v = ~u + ~y1 in
  (; ~v, ~y2)
def back(k: f64; ~v: f64, ~w: f64) -> (; <f64, f64>) =
  let (; ~u, ~y1) = dup(~v) in
  let ~x = k * ~u in
  let ~y = ~y1 + ~w in
  ~<~x, ~y>
def wrong(k: f64; ~v: f64, ~w: f64) -> (; <f64, f64>) =
  let ~x = k * ~w in
  ~<~x, ~v>
def use(k: f64; ~a: <f64, f64>) -> (; f64) =
  let (; ~u, ~v) = twice(k; ~a) in ~u + ~v
"""


def test_a_linear_rule_is_its_own_transpose_both_ways():
    program = custom_linear(check(parse(LINEAR)), "twice", "back")
    program = check(transpose(program, "use"))
    assert run(program, "use.t", 3.0, 1.0).lresults == ((3.0, 2.0),)
    assert program.defs["twice.t"].body is program.defs["back"].body


def test_a_transpose_that_is_none_is_refused_with_figures():
    with pytest.raises(RuleError) as error:
        custom_linear(check(parse(LINEAR)), "twice", "wrong")
    assert error.value.message.startswith("wrong is not the transpose of twice: <twice(a), c> is ")


def test_a_jvp_in_the_text_needs_the_signature_of_one():
    text = "def f(x: f64;) -> (f64;) = sin(x)\ndef f.jvp(x: f64; ~d: f64) -> (; f64) = x * ~d"
    with pytest.raises(ProgramError) as error:
        jvp(check(parse(text)), "f")
    assert str(error.value) == (
        "the definition f.jvp that the program has is (f64; f64) -> (; f64); "
        "it must be (f64; f64) -> (f64; f64)"
    )

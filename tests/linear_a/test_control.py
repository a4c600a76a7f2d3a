"""Calls, branches, loops and recursion: to order 3 forward and reverse, against complex steps.

The first three derivatives of a program are all made by the passes, erased in between; each is
compared with the imaginary part of the order below it at a complex argument.
"""

import numpy as np
import pytest

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.transpose import transpose

STEP = 1e-30

PROGRAMS = {
    "cond": """
def g(x: f64, y: f64;) -> (f64;) = let a = sin(x) in a * y
def h(x: f64, y: f64;) -> (f64;) = let a = x * y in let b = exp(a) in b * b
def f(x: f64, y: f64;) -> (f64;) =
  let p = less(x, y) in
  let r = cond[g, h](p, x, y;) in
  let q = cond[h, g](p, y, r;) in
  q * x
""",
    "switch": """
def g(x: f64, y: f64;) -> (f64;) = let a = sin(x) in a * y
def h(x: f64, y: f64;) -> (f64;) = let a = x * y in let b = exp(a) in b * b
def k(x: f64, y: f64;) -> (f64;) = x / y
def f(x: f64, y: f64;) -> (f64;) =
  let i = 2_i64 in
  let j = 0_i64 in
  let r = switch[g, h, k](i, x, y;) in
  let q = switch[g, h, k](j, y, r;) in
  q * x
""",
    "case": """
def g(p: f64, y: f64;) -> (f64;) = let a = sin(p) in a * y
def h(p: <f64, f64>, y: f64;) -> (f64;) =
  let <u, v> = p in let b = u * v in let c = y * b in sin(c)
def one(x: f64;) -> ([f64 | <f64, f64>];) = inj[0, [f64 | <f64, f64>]](x)
def two(x: f64;) -> ([f64 | <f64, f64>];) =
  let t = <x, x> in inj[1, [f64 | <f64, f64>]](t)
def f(x: f64, y: f64;) -> (f64;) =
  let p = less(x, y) in
  let s = cond[one, two](p, x;) in
  let t = cond[two, one](p, y;) in
  let r = case s of g | h with (y;) in
  let q = case t of g | h with (r;) in
  q * x
""",
    "scan": """
def body(k: f64, c: f64, x: f64;) -> (f64, f64;) =
  let a = k * c in let b = sin(a) in let d = b + x in (d, b;)
def f(k: f64, c: f64;) -> (f64;) =
  let xs = broadcast_to[shape=(4,)](k) in
  let (d: f64, ys: f64[4];) = scan[body, 4, fwd, 1, 1, 0](k, c, xs;) in
  let s = sum[axis=(0,), keepdims=false](ys) in
  s * d
""",
    "scan from the end": """
def body(k: f64, c: f64, x: f64;) -> (f64, f64;) =
  let a = k * c in let b = sin(a) in let d = b + x in (d, b;)
def f(k: f64, c: f64;) -> (f64;) =
  let xs = [0.5, 1.0, -2.0] in
  let (d: f64, ys: f64[3];) = scan[body, 3, rev, 1, 1, 0](k, c, xs;) in
  let s = sum[axis=(0,), keepdims=false](ys) in
  s * d
""",
    "scan in scan": """
def inner(k: f64, c: f64, x: f64;) -> (f64;) =
  let a = k * c in let b = sin(a) in b + x
def outer(k: f64, c: f64, xs: f64[3];) -> (f64;) =
  let d = scan[inner, 3, fwd, 1, 1, 0](k, c, xs;) in d * k
def f(k: f64, c: f64;) -> (f64;) =
  let xs = broadcast_to[shape=(2, 3)](c) in
  scan[outer, 2, fwd, 1, 1, 0](k, c, xs;)
""",
    "cond in scan": """
def g(k: f64, c: f64;) -> (f64;) = let a = k * c in sin(a)
def h(k: f64, c: f64;) -> (f64;) = let a = k * c in a * c
def inner(k: f64, c: f64, x: f64;) -> (f64;) =
  let p = less(c, x) in let b = cond[g, h](p, k, c;) in b + x
def f(k: f64, c: f64;) -> (f64;) =
  let xs = broadcast_to[shape=(4,)](c) in
  scan[inner, 4, fwd, 1, 1, 0](k, c, xs;)
""",
    "a loop that does not go round": """
def body(k: f64, c: f64;) -> (f64;) = k * c
def f(k: f64, c: f64;) -> (f64;) =
  let d = scan[body, 0, fwd, 1, 1, 0](k, c;) in d * k
""",
    "while": """
def p(k: f64, c: f64;) -> (bool;) =
  let (;) = drop(k) in let ten = 10.0 in less(c, ten)
def body(k: f64, c: f64;) -> (f64;) = let a = c * c in let b = a * k in b + c
def f(k: f64, c: f64;) -> (f64;) = while[p, body, 1](k, c;)
""",
    "while with a count": """
def p(k: f64, i: i64, c: f64;) -> (bool;) =
  let (;) = drop((k, c;)) in let three = 3_i64 in less(i, three)
def body(k: f64, i: i64, c: f64;) -> (i64, f64, f64;) =
  let one = 1_i64 in
  let j = i + one in
  let a = c * k in
  let b = sin(a) in
  (j, b, a;)
def f(k: f64, c: f64;) -> (f64;) =
  let zero_ = 0_i64 in
  let (i: i64, d: f64, ys: stack[f64];) = while[p, body, 1](k, zero_, c;) in
  let (;) = drop((i, ys;)) in
  d * k
""",
    "while in scan": """
def p(k: f64, c: f64;) -> (bool;) =
  let (;) = drop(k) in let ten = 10.0 in less(c, ten)
def step(k: f64, c: f64;) -> (f64;) = let a = c * c in let b = a * k in b + c
def round(k: f64, c: f64, x: f64;) -> (f64;) =
  let d = while[p, step, 1](k, c;) in let e = log(d) in e * x
def f(k: f64, c: f64;) -> (f64;) =
  let xs = [1.5, 0.7, 2.0] in
  scan[round, 3, fwd, 1, 1, 0](k, c, xs;)
""",
    "recursion": """
def base(x: f64, n: i64;) -> (f64;) = let (;) = drop(n) in sin(x)
def rec(x: f64, n: i64;) -> (f64;) =
  let one = 1_i64 in let m = n - one in let r = pow(x, m;) in r * x
def pow(x: f64, n: i64;) -> (f64;) =
  let z = 0_i64 in let p = equal(n, z) in cond[base, rec](p, x, n;)
def f(x: f64, y: f64;) -> (f64;) = let n = 3_i64 in let r = pow(x, n;) in r * y
""",
    "recursion that branches": """
def base(x: f64, n: i64;) -> (f64;) = let (;) = drop(n) in sin(x)
def rec(x: f64, n: i64;) -> (f64;) =
  let one = 1_i64 in
  let z = 0_i64 in
  let m = n - one in
  let a = fib(x, m;) in
  let l = m - one in
  let l0 = maximum(l, z) in
  let b = fib(x, l0;) in
  a * b
def fib(x: f64, n: i64;) -> (f64;) =
  let z = 0_i64 in let p = equal(n, z) in cond[base, rec](p, x, n;)
def f(x: f64, y: f64;) -> (f64;) = let n = 4_i64 in let r = fib(x, n;) in r * y
""",
}


def derivative(program, name, args, i):
    """The derivative of all results in argument i, by a complex step."""
    moved = [complex(a) for a in args]
    moved[i] += STEP * 1j
    return [np.imag(r) / STEP for r in run(program, name, *moved, checked=False).results]


@pytest.fixture(params=PROGRAMS, scope="module")
def program(request):
    return check(parse(PROGRAMS[request.param]))


ARGS = (0.5, 0.7)
BASIS = np.eye(2).tolist()


def test_the_text_is_the_program(program):
    assert parse(str(program)) == program


def test_first_order(program):
    found = check(jvp(grad(program, "f"), "f"))
    assert parse(str(found)) == found
    want = [derivative(program, "f", ARGS, i)[0] for i in range(2)]
    forward = [run(found, "f.jvp", *ARGS, *e).lresults[0] for e in BASIS]
    np.testing.assert_allclose(forward, want, rtol=1e-12)
    np.testing.assert_allclose(run(found, "f.grad", *ARGS).results, want, rtol=1e-12)


def test_second_order_forward_over_reverse_and_reverse_over_reverse(program):
    found = grad(program, "f")
    found = check(vjp(jvp(found, "f.grad"), "f.grad"))
    assert parse(str(found)) == found
    for i, e in enumerate(BASIS):
        want = derivative(found, "f.grad", ARGS, i)
        for name in ("f.grad.jvp", "f.grad.vjp"):
            np.testing.assert_allclose(run(found, name, *ARGS, *e).lresults, want, rtol=1e-11)


def test_third_order(program):
    second = "f.grad.vjp.e"
    found = erase(vjp(grad(program, "f"), "f.grad"), "f.grad.vjp")
    found = check(vjp(jvp(found, second), second))
    for e in BASIS:
        at = (*ARGS, *e)
        jacobian = [derivative(found, second, at, i) for i in range(2)]
        for i, want in enumerate(jacobian):
            moved = [0.0] * 4
            moved[i] = 1.0
            got = run(found, f"{second}.jvp", *at, *moved).lresults
            np.testing.assert_allclose(got, want, rtol=1e-10)
        for j in range(len(jacobian[0])):
            c = [0.0] * len(jacobian[0])
            c[j] = 1.0
            back = run(found, f"{second}.vjp", *at, *c).lresults[:2]
            np.testing.assert_allclose(back, [row[j] for row in jacobian], rtol=1e-10)


def test_only_the_branch_that_is_taken_is_evaluated():
    program = parse("""
def root(x: f64;) -> (f64;) = sqrt(x)
def none(x: f64;) -> (f64;) = let (;) = drop(x) in 0.0
def f(x: f64;) -> (f64;) =
  let z = 0.0 in let p = greater(x, z) in cond[root, none](p, x;)
""")
    program = check(grad(program, "f"))
    assert run(program, "f.grad", 0.0).results == (0.0,)
    assert run(program, "f.grad", 4.0).results == (0.25,)


def test_what_is_the_same_in_every_round_is_on_no_tape():
    program = check(grad(parse(PROGRAMS["scan"]), "f"))
    loop = program.defs["body.jvp.on0.lin'1"]
    k, tape, *_ = loop.params
    assert repr(k) == "k"
    assert repr(tape.type) == "body.jvp.on0.tape'1"
    assert k not in loop.body.bindings[0].vars


def test_the_tape_of_recursion_is_a_type_of_constant_size():
    program = grad(parse(PROGRAMS["recursion"]), "f")
    found = {name: str(t) for name, t in program.types.items()}
    assert found["base.jvp'rec.jvp.tape"] == "[base.jvp.tape | rec.jvp.tape]"
    assert "pow.jvp.tape" in found["rec.jvp.tape"]


def test_recursion_has_no_limit_but_memory():
    program = grad(parse(PROGRAMS["recursion"].replace("n = 3_i64", "n = 3000_i64")), "f")
    assert run(program, "f", 1.0, 2.0).results[0] == pytest.approx(2 * np.sin(1.0))
    slope = run(program, "f.grad", 1.0, 2.0).results[0]
    assert slope == pytest.approx(2 * (np.cos(1.0) + 3000 * np.sin(1.0)))


ILL_TYPED = {
    "the branches differ": (
        "def g(x: f64;) -> (f64;) = sin(x)\n"
        "def h(x: f64;) -> (f64, f64;) = (x, x;)\n"
        "def f(p: bool, x: f64;) -> (f64;) = cond[g, h](p, x;)",
        "3:37: h has other results than g; branches have one type\n"
        "  def f(p: bool, x: f64;) -> (f64;) = cond[g, h](p, x;)\n"
        "                                      ^",
    ),
    "the condition is no bool": (
        "def g(x: f64;) -> (f64;) = sin(x)\ndef f(x: f64;) -> (f64;) = cond[g, g](x, x;)",
        "2:28: the form is cond[f, g](p, xs; ~as), where p is a bool\n"
        "  def f(x: f64;) -> (f64;) = cond[g, g](x, x;)\n"
        "                             ^",
    ),
    "no such branch": (
        "def g(x: f64;) -> (f64;) = sin(x)\ndef f(p: bool, x: f64;) -> (f64;) = cond[g, gg](p, x;)",
        "2:37: there is no definition gg; did you mean g?\n"
        "  def f(p: bool, x: f64;) -> (f64;) = cond[g, gg](p, x;)\n"
        "                                      ^",
    ),
    "a carry changes its type": (
        "def b(c: f64;) -> (<f64>;) = <c>\n"
        "def f(x: f64;) -> (<f64>;) = scan[b, 3, fwd, 0, 1, 0](x;)",
        "2:30: b takes the carry c: f64, but hands <f64> on; a carry has one type\n"
        "  def f(x: f64;) -> (<f64>;) = scan[b, 3, fwd, 0, 1, 0](x;)\n"
        "                               ^",
    ),
    "the stack has another length": (
        "def b(c: f64, x: f64;) -> (f64;) = c * x\n"
        "def f(c: f64, x: f64[4];) -> (f64;) = scan[b, 3, fwd, 0, 1, 0](c, x;)",
        "2:67: scan[b, 3, fwd, 0, 1, 0] takes f64[3] as x, but x is f64[4]\n"
        "  def f(c: f64, x: f64[4];) -> (f64;) = scan[b, 3, fwd, 0, 1, 0](c, x;)\n"
        "                                                                    ^",
    ),
    "the form": (
        "def b(c: f64;) -> (f64;) = sin(c)\ndef f(c: f64;) -> (f64;) = scan[b, 3](c;)",
        "2:28: the form is scan[f, n, fwd|rev, nk, nc, nlc](ks, cs, xs; ~lcs, ~lxs)\n"
        "  def f(c: f64;) -> (f64;) = scan[b, 3](c;)\n"
        "                             ^",
    ),
}


@pytest.mark.parametrize(("text", "message"), ILL_TYPED.values(), ids=ILL_TYPED)
def test_what_is_ill_typed_is_shown(text, message):
    with pytest.raises(ProgramError) as error:
        check(parse(text))
    assert str(error.value) == message


def test_a_switch_has_a_branch_for_its_index():
    program = check(
        parse("""
def g(x: f64;) -> (f64;) = sin(x)
def f(i: i64, x: f64;) -> (f64;) = switch[g, g](i, x;)
""")
    )
    assert run(program, "f", 1, 0.0).results == (0.0,)
    with pytest.raises(ProgramError, match="the index 2 is out of range for 2 branches"):
        run(program, "f", 2, 0.0)


def test_a_loop_that_is_not_unzipped_is_not_transposed():
    program = check(
        parse("""
def b(c: f64; ~a: f64) -> (f64; f64) = let ~d = c * ~a in (c; ~d)
def f(c: f64; ~a: f64) -> (f64; f64) = scan[b, 3, fwd, 0, 1, 1](c; ~a)
def g(c: f64; ~a: f64) -> (; f64) =
  let (d: f64; ~b: f64) = scan[b, 3, fwd, 0, 1, 1](c; ~a) in
  let (;) = drop(d) in
  ~b
""")
    )
    with pytest.raises(ProgramError, match="f has non-linear results; T is for Linear B"):
        transpose(program, "f")
    with pytest.raises(ProgramError, match="5:27: this has results in both zones"):
        transpose(program, "g")

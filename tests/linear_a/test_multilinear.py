"""Definitions that are linear in one formal, in another, or in several together, as they say."""

import random

import numpy as np
import pytest
from rings import RINGS, elements, evaluated, pairing

from lineara.__main__ import main
from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.linear_b import linear_b
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.simplify import simplify
from lineara.passes.transpose import transpose


def read(text: str) -> Program:
    """The well-typed program of a text with sugar; its canonical text gives it again."""
    program = check(parse(text, sugar=True))
    assert str(check(parse(str(program)))) == str(program)
    return program


# --- random definitions ------------------------------------------------------------------------

HELPERS = """
def near(k: object, c: object;) -> (object;) = k * c - c * k
def far(k: object, c: object;) -> (object;) = c * k
def step(k: object, c: object;) -> (object;) = k * c + c
def both(p: <object, object>, q: object;) -> (<object, object>;) =
  let <a, b> = p in
  <a * q, b>
"""


def bilinear(rng: random.Random) -> str:
    """f(p, k, x): a sum of products of k's, one part of the pair p each, and one x each."""
    of = {"": ["k"], "p": [], "x": ["x"], "px": []}
    lines = ["let <a, b> = p in"]
    of["p"] += ["a", "b"]

    def pick(tag: str) -> str:
        return rng.choice(of[tag][-3:])

    for i in range(rng.randrange(4, 11)):
        tag = rng.choice(["", "p", "x", "px", "px"])
        if tag == "px" and (not of[tag] or rng.random() < 0.6):
            parts = [pick("p"), pick("x")]
            rng.shuffle(parts)
            leaf = " * ".join(parts)
        else:
            u, w, k = pick(tag), pick(tag), pick("")
            leaf = rng.choice([
                f"{u} + {w}", f"{u} - {w}", f"negative({u})", f"{k} * {u}", f"{u} * {k}",
                f"cond[near, far](t, {k}, {u};)", f"scan[step, 2, fwd, 1, 1, 0]({k}, {u};)",
                f"{{ let r = {u} * {k} in r + {w} }}",
            ])  # fmt: skip
        lines.append(f"let v{i} = {leaf} in")
        of[tag].append(f"v{i}")
        if tag == "p" and rng.random() < 0.5:
            lines.append(f"let r{i} = both(<{pick('p')}, {pick('p')}>, {pick('')};) in")
            lines.append(f"let <c{i}, d{i}> = r{i} in")
            of["p"] += [f"c{i}", f"d{i}"]
    out = pick("px") if of["px"] else f"{pick('p')} * {pick('x')}"
    lines.append(f"let y = {out} in\n  (y, <{pick('px') if of['px'] else 'y'}, y>;)")
    formals = "k: object, p: <object, object>, t: bool, x: object;"
    body = "\n  ".join(lines)
    results = "(object, <object, object>;)"
    return f"{HELPERS}def f({formals}) -> {results} linear in p | x =\n  {body}\n"


@pytest.mark.parametrize(("name", "seed"), [(r, s) for r in RINGS for s in range(8)])
def test_a_bilinear_definition_is_linear_and_transposed_in_each_of_its_arguments(name, seed):
    ring, rng = RINGS[name], random.Random(f"{name} {seed}")
    program = read(bilinear(rng))
    k, x, p = elements(ring, rng, 2)
    t = rng.random() < 0.5
    ys = evaluated(ring, program, "f", k, p, t, x).results
    cs = tuple(elements(ring, rng, 1))
    for form, others, vector in (("f'p", (k, t, x), p), ("f'x", (k, p, t), x)):
        ran = evaluated(ring, program, form, *others, vector)
        assert (ran.results, ran.lresults) == ((), ys)
        turned = check(transpose(linear_b(program, [form]), form))
        back = evaluated(ring, turned, f"{form}.t", *others, *cs)
        assert pairing(ring, cs, ys) == pairing(ring, back.lresults[0], vector)
        erased = check(erase(program, form))
        assert evaluated(ring, erased, f"{form}.e", *others, vector).results == ys
    derived = check(vjp(program, "f"))
    moved = evaluated(ring, derived, "f.vjp", k, p, t, x, *cs).lresults
    assert pairing(ring, cs, ys) == pairing(ring, moved[1], p) == pairing(ring, moved[2], x)


# --- what a text says --------------------------------------------------------------------------

USED = """def f(x: f64, y: f64, z: f64;) -> (f64;) linear in x, z | y = x * y + y * z
def g(y: f64; ~a: f64) -> (; f64) = f(~a, y, ~a;)
def h(x: f64; ~a: f64) -> (; f64) = f(x, ~a, x;)
def k(x: f64;) -> (f64;) = f(x, x, x;)
"""


def test_one_definition_is_used_as_linear_in_one_in_another_jointly_and_not_at_all():
    program = read(USED)
    assert "def f(x: f64, y: f64, z: f64;) -> (f64;) linear in x, z | y =\n" in str(program)
    assert "f'x'z(y; ~a2, ~a3)" in str(program)
    assert "f'y(x, x; ~a)" in str(program)
    assert run(program, "g", 3.0, 5.0).lresults == run(program, "h", 3.0, 5.0).lresults == (30.0,)
    assert run(program, "k", 3.0).results == (18.0,)
    turned = check(transpose(check(transpose(program, "g")), "h"))
    assert run(turned, "g.t", 3.0, 7.0).lresults == run(turned, "h.t", 3.0, 7.0).lresults == (42.0,)


def test_arrays_branches_loops_and_dimensions_may_be_in_it():
    program = read(
        """
def scaled(x: f64[n], n: i64, k: f64;) -> (f64[n];) = x * k
def left(x: f64[n], n: i64, k: f64;) -> (f64[n];) = x + scaled(x, n, k;)
def f(n: i64, q: bool, A: f64[n,n], x: f64[n], k: f64;) -> (f64[n];) linear in A | x =
  let y = matmul(A, x) in
  let z = cond[scaled, left](q, y, n, k;) in
  let w = cumsum[axis=0](z) in
  let s = sum[axis=(0,), keepdims=false](w) in
  w + broadcast_to[shape=(n,)](s * index[at=(0,)](A * k + A) * 0.0)
""".replace(" * index[at=(0,)](A * k + A) * 0.0", "")
    )
    rng = np.random.default_rng(0)
    A, x, c = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    (y,) = run(program, "f", 3, True, A, x, 2.0).results
    for form, others, v in (("f'A", (x,), A), ("f'x", (A,), x)):
        assert np.allclose(run(program, form, 3, True, *others, 2.0, v).lresults[0], y)
        turned = check(transpose(program, form))
        (back,) = run(turned, f"{form}.t", 3, True, *others, 2.0, c).lresults
        assert np.isclose(np.sum(back * v), c @ y)


def test_a_choice_by_a_tag_may_be_in_it_if_the_tag_is_no_vector():
    text = """
type s = [f64 | <>]
def some(a: f64, x: f64;) -> (f64;) = a * x
def none(u: <>, x: f64;) -> (f64;) = let (;) = drop(u) in x
def f(t: s, x: f64;) -> (f64;) linear in x = case t of some | none with (x;)
def g(x: f64;) -> (f64;) linear in x =
  let t = inj[0, s](x) in
  f(t, x;)
"""
    program = read(text[: text.index("def g")])
    assert program.defs["f'x"].lresults
    with pytest.raises(ProgramError, match="g says that it is linear in x: a vector is no payload"):
        parse(text, sugar=True)


def test_a_form_that_is_changed_is_no_longer_said_of_the_definition():
    text = "def f(x: f64, y: f64;) -> (f64;) linear in x = let z = zeros[f64] in x * y + x * z"
    program = read(text)
    simpler = check(simplify(program, "f'x"))
    assert "linear in" not in str(simpler)
    assert str(check(parse(str(simpler)))) == str(simpler)
    assert run(simpler, "f'x", 2.0, 3.0).lresults == (6.0,)


SAID = {
    "def f(x: f64, y: f64;) -> (f64;) linear in x | y = x * y + x": (
        "1:48: f says that it is linear in y: add of a tangent and a constant is affine"
    ),
    "def f(x: f64;) -> (f64;) linear in x = sin(x)": (
        "1:36: f says that it is linear in x: sin is not linear in argument 1; a linear function "
        "adds, moves, sums, contracts and scales vectors"
    ),
    "def f(x: f64, y: f64;) -> (f64, f64;) linear in x = (x * y, y;)": (
        "1:49: f says that it is linear in x: a constant f64 that is not zero stands where a "
        "vector does, which is affine; a linear function maps zero to zero"
    ),
    "def f(x: f64;) -> (f64;) linear in z = x": "1:36: z is no formal of f",
    "def f(x: f64; ~a: f64) -> (; f64) linear in x = x * ~a": (
        "1:45: f has linear variables already; linear in … is for what has none"
    ),
    "def f(x: f64;) -> (f64;) linear in x = y": (
        "1:40: y is not known here; bind it before, or take it as an argument"
    ),
    "def f(x: f64;) -> (f64;) linear in x = x * 2.0\ndef f'x(; ~x: f64) -> (; f64) = ~x": (
        "2:5: f'x is not what f is in x; leave it out"
    ),
    "def f(n: i64, x: f64[n], k: f64;) -> (f64[n];) linear in x = x * k\n"
    "def g(k: f64; ~a: f64[3]) -> (; f64[3]) = f(3_i64, ~a, k;)": (
        "2:43: n of f is the literal 3 here, and where an operand is linear a size is a variable; "
        "take it as an argument"
    ),
    "def f(x: f64, y: f64;) -> (f64;) linear in x | y = x * y\n"
    "def g(; ~a: f64, ~b: f64) -> (; f64) = f(~a, ~b;)": (
        "2:40: f is linear in x | y; an operand stands where its formal does, before the "
        "semicolon, with ~ if it is linear"
    ),
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_not_as_it_says_is_refused_in_its_line(text):
    with pytest.raises(ProgramError) as error:
        check(parse(text, sugar=True))
    assert error.value.message.splitlines()[0] == SAID[text]


def test_an_integer_is_no_vector():
    with pytest.raises(ProgramError, match="~n is linear, but i64 is not a vector space"):
        check(parse("def f(n: i64;) -> (i64;) linear in n = n + n"))


def test_the_command_line_takes_such_a_file(capsys, tmp_path):
    file = tmp_path / "p.lina"
    file.write_text("def f(x: f64, y: f64;) -> (f64;) linear in x | y = x * y\n")
    assert main(["transpose", str(file), "--def", "f'y"]) == 0
    assert "def f'y.t(x: f64; ~ct: f64) -> (; f64)" in capsys.readouterr().out
    assert main(["run", str(file), "--def", "f'x", "--args", "[2.0, 3.0]"]) == 0
    assert capsys.readouterr().out == "f64  6.0\nwork  1\n"
    assert main(["run", str(file), "--def", "f'x", "--args", "[2.0]"]) == 1
    assert f"{file}:1:44: f'x takes 2 arguments (y: f64, ~x: f64), but" in capsys.readouterr().err

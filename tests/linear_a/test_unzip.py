"""What unzip refuses, and a recursion through a loop."""

import numpy as np
import pytest

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_def
from lineara.linear_a.syntax import functions
from lineara.passes.derivatives import grad, vjp
from lineara.passes.erase import erase
from lineara.passes.store_policies import recompute_all
from lineara.passes.unzip import is_nonlinear, unzip


def test_a_policy_is_not_ignored_where_halves_exist():
    program = vjp(parse("def f(x: f64;) -> (f64;) = let y = sin(x) in y * y"), "f")
    assert vjp(program, "f").defs["f.jvp.nl"] is program.defs["f.jvp.nl"]
    with pytest.raises(ProgramError) as error:
        vjp(program, "f", recompute_all)
    assert str(error.value) == (
        "unzip: the program has halves of f.jvp already, made under some policy; to choose "
        "another one, start from a program without f.jvp.nl"
    )


def test_a_body_may_loop_over_itself():
    program = check(parse("""
    def body(d: i64, x: f64;) -> (f64;) =
      let none = 0_i64 in let c = less(none, d) in cond[deep, flat](c, d, x;)
    def deep(d: i64, x: f64;) -> (f64;) =
      let one = 1_i64 in let e = d - one in scan[body, 2, fwd, 1, 1, 0](e, x;)
    def flat(d: i64, x: f64;) -> (f64;) = let (;) = drop(d) in sin(x)
    """))  # fmt: skip
    (found,) = run(check(grad(program, "deep")), "deep.grad", 2, 0.5).results
    x, slope = 0.5, 1.0
    for _ in range(4):
        x, slope = np.sin(x), slope * np.cos(x)
    np.testing.assert_allclose(found, slope, rtol=1e-15)


def test_a_body_may_loop_over_itself_for_arrays_of_a_size():
    program = check(parse("""
    def body(n: i64, d: i64, x: f64[n];) -> (f64[n];) =
      let none = 0_i64 in let c = less(none, d) in cond[deep, flat](c, n, d, x;)
    def deep(n: i64, d: i64, x: f64[n];) -> (f64[n];) =
      let one = 1_i64 in let e = d - one in scan[body, 2, fwd, 2, 1, 0](n, e, x;)
    def flat(n: i64, d: i64, x: f64[n];) -> (f64[n];) = let (;) = drop(d) in sin(x)
    def f(n: i64, d: i64, x: f64[n];) -> (f64[n];) = scan[body, 1, fwd, 2, 1, 0](n, d, x;)
    """))  # fmt: skip
    x = np.array([0.5, 1.5, 2.5])
    found = run(check(vjp(program, "f")), "f.vjp", 3, 1, x, np.ones(3)).lresults[0]
    np.testing.assert_allclose(found, np.cos(np.sin(x)) * np.cos(x), rtol=1e-15)


def test_a_loop_of_tangents_has_the_loop_itself_for_a_primal_form():
    program = check(parse("""
    def body(k: f64, x: f64;) -> (f64;) = let y = k * x in sin(y)
    def f(k: f64, x: f64;) -> (f64;) = scan[body, 3, fwd, 1, 1, 0](k, x;)
    """))  # fmt: skip
    assert not [name for name in check(grad(program, "f")).defs if name.endswith(".pri")]


def test_a_result_that_only_linear_code_reads_is_dropped_in_the_primal_form():
    program = check(parse("""
    def g(x: f64;) -> (f64, f64;) = let y = sin(x) in (x, y;)
    def f(x: f64; ~a: f64) -> (f64; f64) =
      let (u, v;) = g(x;) in let ~b = v * ~a in (u; ~b)
    """))  # fmt: skip
    program = check(unzip(program, "f"))
    assert run(program, "f.pri", 0.5).results == (0.5,)


@pytest.mark.parametrize(
    ("part", "stored"),
    [
        ("index[at=(1:,)](w)", 2),
        ("index[at=(::-2,)](w)", 2),
        ("{ let v = index[at=(0,)](w) in broadcast_to[shape=(3,)](v) }", 2),
        ("{ let v = reshape[shape=(2, 3)](w) in index[at=(1,)](v) }", 2),
        ("index[at=([0, 2, 2]_i64,)](w)", 3),  # is copied
        ("{ let v = index[at=(1:4,)](w) in sin(v) }", 4),  # and the factor of its sine
        ("{ let v = index[at=(:3,)](w) in v * x }", 3),
    ],
)
def test_a_part_of_an_array_that_all_rounds_have_is_on_no_tape(part, stored):
    size = 5 if "1:," in part else 3
    program = check(parse(f"""
    def body(w: f64[6], x: f64[{size}];) -> (f64[{size}];) =
      let p: f64[{size}] = {part} in
      let y = p * x in
      sin(y)
    def f(w: f64[6], x: f64[{size}];) -> (f64[{size}];) = scan[body, 7, fwd, 1, 1, 0](w, x;)
    """))  # fmt: skip
    made = check(vjp(program, "f"))
    (row,) = [t for name, t in made.types.items() if name.startswith("body")]
    assert [t.shape for t in made.leaves(row)] == [(size,)] * stored  # beside x and a cosine
    w, x, ct = np.arange(6.0) - 2.5, np.linspace(0.1, 0.9, size), np.ones(size)
    slopes = run(made, "f.vjp", w, x, ct).lresults
    for i, given in enumerate((w, x)):
        for k in range(given.size):
            step = np.zeros(given.size)
            step[k] = 1e-6
            ends = [
                run(program, "f", *(w + s * step, x) if i == 0 else (w, x + s * step)).results[0]
                for s in (1, -1)
            ]
            slope = np.sum(ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(slopes[i][k], slope, atol=1e-8)


@pytest.mark.parametrize(
    "body",
    [
        "let (;) = drop(zero[f64]) in (x;)",
        "let (;) = drop({ let y = sin(x) in let (;) = drop(y) in zero[f64] }) in (x;)",
        "let (;) = drop({ let (;) = drop(zero[f64]) in sin(x) }) in (x;)",
        "let u = sin(x) in let (;) = drop(~<>) in (u;)",
    ],
)
def test_what_makes_a_linear_value_and_drops_it_has_a_linear_part(body):
    program = check(parse(f"def f(x: f64;) -> (f64;) = {body}"))
    assert not is_nonlinear(program, "f")
    assert is_nonlinear(check(erase(program, "f")), "f.e")


def test_a_leaf_that_is_no_variable_is_bound_on_the_non_linear_side():
    program = check(parse("def f(x: f64; ~a: f64) -> (f64;) = let (;) = drop(~a) in sin(x)"))
    program = check(unzip(program, "f"))
    assert run(program, "f.nl", 0.5).results == (np.sin(0.5), ())


def test_the_primal_form_drops_no_dimension_that_it_mentions():
    program = check(parse("def f(n: i64, x: f64[n]; ~a: f64) -> (f64[n]; f64) = (x; ~a)"))
    assert "drop" not in show_def(check(unzip(program, "f")).defs["f.pri"])


LAYERS = """
def h(x: f64; ~a: f64) -> (f64; f64) = let y = sin(x) in let ~b = y * ~a in (y; ~b)
def g(x: f64; ~a: f64) -> (f64; f64) = h(x; ~a)
def f(x: f64; ~a: f64) -> (f64; f64) =
  let y = exp(x) in let (;) = drop(y) in
  let (u; ~b) = g(x; ~a) in
  let k = cos(u) in
  let ~c = k * ~b in
  scan[g, 2, fwd, 0, 1, 1](u; ~c)
"""


def test_a_policy_is_told_which_definition_was_asked_for_and_what_would_be_kept():
    cuts = {}

    def policy(cut):
        assert cuts.setdefault(cut.name, cut) is cut
        return set()

    made = unzip(check(parse(LAYERS)), "f", policy)
    assert {name for name, cut in cuts.items() if cut.outermost} == {"f"}
    cut = cuts["f"]
    _, stored = cut.tape(set())
    assert cut.kept(stored) == list(cut.context), "the drop is work of f.nl too"
    assert show_def(made.defs["f.nl"]).count("drop") == 1


def test_halves_of_a_callee_are_taken_as_they_are():
    program = unzip(check(parse(LAYERS.replace("scan[g, 2, fwd, 0, 1, 1]", "g"))), "g")
    made = check(unzip(program, "f", recompute_all))
    assert made.defs["g.nl"] is program.defs["g.nl"]


def test_halves_of_what_the_body_of_a_loop_calls_are_taken_too():
    program = unzip(check(parse(LAYERS)), "h")
    made = check(unzip(program, "f", recompute_all))
    assert made.defs["h.nl"] is program.defs["h.nl"]


def test_what_is_applied_in_a_drop_is_applied():
    text = "let (;) = drop(h(x;)) in let (;) = drop({ let y = g(x;) in y * y }) in (x;)"
    calls = "def h(x: f64;) -> (f64;) = sin(x) def g(x: f64;) -> (f64;) = cos(x)"
    program = check(parse(f"{calls} def f(x: f64;) -> (f64;) = {text}"))
    assert {*functions(program.defs["f"].body)} == {"g", "h"}


def test_what_is_computed_again_drops_the_results_that_nobody_reads():
    program = check(parse("""
    def g(x: f64;) -> (f64, f64;) = let y = sin(x) in (x, y;)
    def f(x: f64; ~a: f64) -> (; f64) = let (u, v;) = g(x;) in let (;) = drop(u) in v * ~a
    """))  # fmt: skip
    program = check(unzip(program, "f", lambda cut: {*cut.context}))
    assert show_def(program.defs["f.lin"]).count("drop(") == 1
    (t,) = run(program, "f.nl", 0.5).results
    assert run(program, "f.lin", t, 2.0).lresults == (2 * np.sin(0.5),)


def test_a_tape_has_no_literals_and_nothing_twice():
    program = parse("""
    def body(x: f64[9], i: i64, a: f64[9];) -> (i64, f64[9];) =
      let one = 1_i64 in let j = i - one in
      let k = 0.9 in let p = index[at=(j,)](a) in let s = k * p in
      let q = index[at=(i,)](x) in
      let uno = 1_i64 in let j2 = i - uno in let r = index[at=(j2,)](a) in let t = q * r in
      let sum = s + t in let b = put[i](a, sum) in let n = i + one in
      (n, b;)
    def f(x: f64[9], i: i64;) -> (f64[9];) =
      let (n, a;) = scan[body, 5, fwd, 1, 2, 0](x, i, x;) in let (;) = drop(n) in (a;)
    """)
    derived = check(vjp(program, "f"))
    (tape,) = [t for name, t in derived.types.items() if name.startswith("body")]
    assert repr(tape) == "<i64, i64, f64, f64>"  # i and i - 1; x[i], and a[i - 1] once
    x = np.linspace(0.1, 0.9, 9)
    (back,) = run(derived, "f.vjp", x, 2, np.ones(9)).lresults[:1]
    for k in range(9):
        z = x + 1e-30j * (np.arange(9) == k)
        a = z.copy()
        for i in range(2, 7):
            a[i] = 0.9 * a[i - 1] + z[i] * a[i - 1]
        np.testing.assert_allclose(back[k], a.sum().imag / 1e-30, rtol=1e-13)

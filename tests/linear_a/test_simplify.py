"""Simplify: the same results bit by bit, never more work, and the rules one by one."""

import numpy as np
import programs
import prove
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import cases
from random_texts import Text

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, show
from lineara.linear_a.check import check
from lineara.linear_a.cost import static_works
from lineara.linear_a.dimensions import result_type
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_def
from lineara.passes.derivatives import grad, vjp
from lineara.passes.simplify import simplify


def bits(value) -> object:
    """A value by its bits: -0.0 is not 0.0; any NaN is NaN."""
    if isinstance(value, tuple | list):
        return [bits(v) for v in value]
    found = np.asarray(value)
    return (found.shape, str(found.dtype), repr(found.tolist()))


def arguments(program: Program, name: str, rng) -> list:
    def value(t):
        t = program.unfold(t)
        if hasattr(t, "items"):
            return tuple([value(s) for s in t.items])
        return rng.choice([0.0, -0.0, 1.0, -2.5, 3.25, np.inf], t.shape)

    return [value(p.type) for p in program.defs[name].params]


@pytest.mark.parametrize("seed", range(150))
def test_results_are_the_same_bit_by_bit_and_work_never_increases(seed):
    program = check(parse(Text(seed).text, sugar=True))
    made = check(simplify(program))
    args = arguments(program, "f", np.random.default_rng(seed))
    before, after = run(program, "f", *args), run(made, "f", *args)
    assert bits(after.results) == bits(before.results)
    assert bits(after.lresults) == bits(before.lresults)
    assert after.work <= before.work
    assert before.work == static_works(program)["f"]
    assert str(check(parse(str(made)))) == str(made)


@given(st.one_of(cases("NML"), cases("NML", arrays=True, dims=True)))
@settings(max_examples=200, deadline=None, database=None)
def test_a_random_program_and_all_its_definitions(case):
    made = check(simplify(case.program))
    compare(case.program, made, case.name, programs.arguments(case))
    again = simplify(made)
    assert (
        run(again, case.name, *programs.arguments(case)).work
        <= run(made, case.name, *programs.arguments(case)).work
    )


def test_what_is_linear_is_made_as_often_as_it_is_used():
    text = """
    def g(x: f64;) -> (; f64) = let (;) = drop(x) in zero[f64]
    def f(x: f64;) -> (; f64) = let ~a = g(x;) in let ~b = g(x;) in ~a + ~b
    """
    program = check(parse(text))
    assert show_def(check(simplify(program)).defs["f"]) == show_def(program.defs["f"])


DIMENSIONS = {
    "dead code": (
        "(n: i64, k: f64; ~a: f64[n]) -> (;)", "let ~b = k * ~a in drop(~b)",
        "let ~b: f64[n] = k * ~a in let (;) = drop(~b) in (;)",
    ),
    "a number made an array": (
        "(n: i64; ~a: f64) -> (;)",
        "let ~b = broadcast_to[shape=(n,)](~a) in drop(~b)",
        "let ~b: f64[n] = broadcast_to[shape=(n,)](~a) in let (;) = drop(~b) in (;)",
    ),
    "values": (
        "(n: i64, x: f64[n];) -> (f64[n];)", "let y = sin(x) in let (;) = drop(y) in x * x",
        "x * x",
    ),
    "a zero": (
        "(n: i64; ~a: f64[n]) -> (; f64[n])",
        "let ~z = zero[f64[n]] in let (; ~y, ~w) = dup(~z) in let (;) = drop(~w) in ~a + ~y", "~a",
    ),
    "a product": (
        "(n: i64; ~p: <f64[n], f64[n]>) -> (;)", "let ~<~a, ~b> = ~p in drop((; ~a, ~b))",
        "let ~<~a: f64[n], ~b: f64[n]> = ~p in let (;) = drop(~b) in let (;) = drop(~a) in (;)",
    ),
    "one of two": (
        "(n: i64; ~a: f64[n]) -> (; f64[n])",
        "let (; ~y, ~w) = dup(~a) in let (;) = drop(~w) in ~y", "~a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_size_makes_it_more_work(name, n):
    head, text, want = DIMENSIONS[name]
    assert body(head, text) == want
    program = check(parse(f"def f{head} = {text}"))
    values = {
        "n": n,
        "k": 2.0,
        "x": np.ones(n),
        "a": np.ones(n) if "f64[n]" in head else 1.0,
        "p": (np.ones(n), np.ones(n)),
    }
    args = [values[p.name] for p in program.defs["f"].params]
    compare(program, simplify(program), "f", args)


@given(cases("N", scalar=True))
@settings(max_examples=60, deadline=None, database=None)
def test_derivatives_are_simplified_like_any_program(case):
    derived = vjp(grad(case.program, case.name), case.name)
    made = check(simplify(derived))
    args = programs.arguments(case)
    compare(derived, made, f"{case.name}.grad", args)
    compare(derived, made, f"{case.name}.vjp", [*args, 1.0])


@given(cases("N", scalar=True))
@settings(max_examples=30, deadline=None, database=None)
def test_what_is_simplified_has_the_same_derivative(case):
    args = programs.arguments(case)
    want = run(grad(case.program, case.name), f"{case.name}.grad", *args).results
    found = run(grad(simplify(case.program), case.name), f"{case.name}.grad", *args).results
    for w, f in zip(prove.leaves(want), prove.leaves(found), strict=True):
        if np.isfinite(w):  # dead code may have a NaN for a derivative
            assert np.isclose(f, w, rtol=1e-9, atol=1e-9)


def compare(before: Program, after: Program, name: str, args: list) -> None:
    old, new = run(before, name, *args), run(after, name, *args)
    assert bits((new.results, new.lresults)) == bits((old.results, old.lresults))
    assert new.work <= old.work


def body(head: str, text: str) -> str:
    """The body that simplification leaves, on one line."""
    found = str(check(simplify(check(parse(f"def f{head} = {text}")))))
    return " ".join(found.split(" =\n", 1)[1].split())


X, LX = "(x: f64;) -> (f64;)", "(x: f64; ~a: f64) -> (; f64)"
RULES = [
    # blocks, copies, products
    (X, "let y = { let z = sin(x) in z } in y * y", "let z: f64 = sin(x) in z * z"),
    (X, "let (y, z;) = (x, x;) in let w = z in y * w", "x * x"),
    (X, "let p = <x, x> in let <u, v> = p in u * v", "x * x"),
    (LX, "let (;) = drop(x) in let ~p = ~<~a> in let ~<~b> = ~p in ~b", "let (;) = drop(x) in ~a"),
    # common subexpressions
    (X, "let y = sin(x) in let z = sin(x) in y * z", "let y: f64 = sin(x) in y * y"),
    (X, "let k = 2.0 in let m = 2.0 in let y = k * x in let z = m * x in y + z",
     "let k: f64 = 2.0 in let y: f64 = k * x in y + y"),
    (X, "let k = 0.0 in let m = -0.0 in let y = k * x in let z = m * x in y + z",
     "let k: f64 = 0.0 in let m: f64 = -0.0 in let y: f64 = k * x in let z: f64 = m * x in y + z"),
    # zeros
    (LX, "let ~z = zero[f64] in let ~b = x * ~z in ~a + ~b", "let (;) = drop(x) in ~a"),
    ("(; ~a: f64[2]) -> (; f64[2])", "let ~z = zero[f64] in accum[0](~a, ~z)", "~a"),
    ("(; ~a: f64[2]) -> (; f64, f64[2])", "let ~z = zero[f64[2]] in let (;~p, ~r) = read[0](~z) in "
     "(; ~p, ~a + ~r)", "let ~p: f64 = zero[f64] in (; ~p, ~a)"),
    # algebra
    (X, "let k = 1.0 in k * (x / k) - 0.0 + (-0.0)", "x"),
    (X, "x + 0.0", "let v: f64 = 0.0 in x + v"),
    (X, "x - (-0.0)", "let v: f64 = -0.0 in x - v"),
    (X, "let k = 0.0 in k - x", "let k: f64 = 0.0 in k - x"),
    (X, "let k = 1.0 in k / x", "let k: f64 = 1.0 in k / x"),
    (X, "negative(negative(x))", "x"),
    ("(x: f32;) -> (f64;)", "x * 1.0", "let v: f64 = 1.0 in x * v"),
    ("(x: c128;) -> (c128;)", "x * 1.0", "let v: f64 = 1.0 in x * v"),
    ("(x: i64;) -> (i64;)", "let k = 0_i64 in x + k", "x"),
    ("(x: i64;) -> (i64;)", "let k = 5_i64 in x + k", "let k: i64 = 5_i64 in x + k"),
    ("(x: i64;) -> (i64;)", "let k = 1_i64 in k * x", "x"),
    ("(; ~a: f64[2]) -> (; f64[2])", "reshape[shape=(2,)](~a)", "~a"),
    ("(x: f64[2];) -> (f64[2];)", "reshape[shape=(2,)](x) * [1.0, 1.0]", "x"),
    ("(x: f64[2];) -> (f64[2];)", "astype[dtype=f64](x)", "x"),
    ("(; ~a: f64) -> (; f64)", "let k = 1.0 in k * ~a", "~a"),
    (X, "let k = 1.0 in power(x, k)", "x"),
    (X, "let k = 1.0 in power(k, x)", "let k: f64 = 1.0 in power(k, x)"),
    (X, "let k = less(2.0, 3.0) in where(k, x, sin(x))", "x"),
    ("(x: f32;) -> (f64;)", "let k = less(2.0, 3.0) in where(k, x, 2.0)",
     "let v: f64 = 2.0 in let k: bool = true in where(k, x, v)"),
    # constants
    (X, "x + (3.0 - 2.0 * 4.0)", "let v5: f64 = -5.0 in x + v5"),
    (X, "x * (3.0 + 0.5)",
     "let v: f64 = 3.0 in let v2: f64 = 0.5 in let v3: f64 = v + v2 in x * v3"),
    ("(x: i64;) -> (i64;)", "let k = 2147483647_i64 in x * (k + k)",
     "let k: i64 = 2147483647_i64 in let v: i64 = k + k in x * v"),
    # dead code
    (X, "let y = sin(x) in let (;) = drop(y) in x", "x"),
    (X, "let (;) = drop(x) in x", "x"),
    (X, "let (;) = drop({ let y = sin(x) in exp(y) }) in x", "x"),
    (LX, "let ~b = x * ~a in let (;) = drop(~b) in zero[f64]",
     "let (;) = drop(~a) in let (;) = drop(x) in zero[f64]"),
    (LX, "let (;) = drop(drop(~a)) in let (;) = drop(x) in zero[f64]",
     "let (;) = drop(~a) in let (;) = drop(x) in zero[f64]"),
    (LX, "let (;) = drop({ let ~b = x * ~a in drop(~b) }) in zero[f64]",
     "let (;) = drop(~a) in let (;) = drop(x) in zero[f64]"),
    ("(; ~a: f64) -> (; f64)", "let (; ~b, ~c) = dup(~a) in let (;) = drop(~b) in ~c", "~a"),
    ("(; ~a: f64[2], ~b: f64) -> (; f64)",
     "let ~c = reshape[shape=(1, 2)](~a) in let (;) = drop(~c) in ~b",
     "let (;) = drop(~a) in ~b"),
    ("(; ~a: f64[9]) -> (; f64[9])", "let (; ~b, ~c) = dup(~a) in let ~p = index[at=(0,)](~b) in "
     "let (;) = drop(~p) in ~c", "~a"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "before", "after"), RULES, ids=[r[1][:60] for r in RULES])
def test_a_rule(head, before, after):
    assert body(head, before) == after


DTYPES = {"f64": "f8", "f32": "f4", "c128": "c16", "i64": "i8", "u8": "u1", "bool": "?"}
NUMBERS = {"f64": "{}.0", "f32": "{}.0_f32", "i64": "{}_i64", "u8": "{}_u8", "bool": "{}"}
FORMS = {
    "add": ("x + k", "k + x"),
    "subtract": ("x - k", "k - x"),
    "multiply": ("x * k", "k * x"),
    "divide": ("x / k", "k / x"),
    "power": ("power(x, k)",),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("u", NUMBERS)
def test_a_number_of_any_dtype_goes_only_where_it_changes_no_bit(name, t, u):
    if name == "subtract" and t == u == "bool":
        return  # NumPy has no such difference
    one, two = (ArrayType((), np.dtype(DTYPES[s])) for s in (t, u))
    result = show(result_type(op(name), [one, two], {}))
    words = ["false", "true"] if u == "bool" else ["0", "1", "-0", "-1"][: 2 if u == "u8" else 4]
    if name == "power" and result.startswith(("i", "u")):
        words = words[:2]  # NumPy refuses negative powers of integers
    x = np.array([0.0, -0.0, 1.0, 2.0]).astype(one.dtype)
    x = np.append(x, [np.nan, -np.inf]).astype(one.dtype) if one.dtype.kind in "fc" else x
    for word in words:
        k = NUMBERS[u].format(word)
        for e in FORMS[name]:
            p = check(parse(f"def f(x: {t};) -> ({result};) = let k = {k} in {e}"))
            made = check(simplify(p))
            for v in x:
                assert bits(run(made, "f", v).results) == bits(run(p, "f", v).results), (e, k, v)


def test_an_unknown_definition_is_refused():
    with pytest.raises(ProgramError, match=r"^simplify: there is no definition g$"):
        simplify(parse("def f(;) -> (;) = (;)"), "g")


SAVINGS = [  # texts about z and ~a that give w and ~b
    "let w = sin(z) in let ~b = ~a",
    "let u = sin(z) in let v = sin(z) in let w = u * v in let ~b = ~a",
    "let k = 1.0 in let w = z * k in let ~b = ~a",
    "let w = negative(negative(z)) in let ~b = ~a",
    "let u = cos(z) in let (;) = drop(u) in let w = sin(z) in let ~b = ~a",
    "let (;) = drop(cos(z)) in let w = sin(z) in let ~b = ~a",
    "let w = sin(z) in let k = 1.0 in let ~b = k * ~a",
    "let w = sin(z) in let ~o = zero[f64[3]] in let ~b = ~a + ~o",
    "let w = sin(z) in let ~o = zero[f64[3]] in let ~p = zero[f64[3]] in let ~b = ~a + (~o + ~p)",
    "let w = sin(z) in let ~o = zero[f64[3]] in let (;) = drop(~o) in let ~b = ~a",
    "let w = sin(z) in let (; ~c, ~b) = dup(~a) in let (;) = drop(~c)",
    "let w = sin(z) in let (; ~c, ~b) = dup(~a) in let ~d = z * ~c in let (;) = drop(~d)",
    "let w = sin(z) in let (; ~c, ~b) = dup(~a) in let ~d = sum[axis=(0,), keepdims=false](~c) in "
    "let (;) = drop(~d)",
    "let w = sin(z) in let ~o = zero[f64] in let ~b = accum[0](~a, ~o)",
    "let w = sin(z) in let ~o = zero[f64] in let ~p = zero[f64[3]] in "
    "let ~q = accum[0](~p, ~o) in let ~b = ~a + ~q",
    "let w = sin(z) in let ~p = zero[f64[3]] in let (; ~c, ~q) = read[0](~p) in "
    "let (;) = drop(~c) in let ~b = ~a + ~q",
]  # fmt: skip


@pytest.mark.parametrize("text", SAVINGS)
def test_work_that_is_saved_pays_for_drops_and_no_more(text):
    """A call whose result is dropped is left out if what is saved pays for dropping its args."""

    def calling(m: int) -> Program:
        xs = [f"x{i}" for i in range(m)]
        formals = "".join(f"{x}: f64, " for x in xs)
        drops = "".join(f"let (;) = drop({x}) in " for x in xs[1:])
        g = f"def g({formals[:-2]};) -> (f64;) = {drops}x0 * x0\n"
        call = f"let (;) = drop(g({', '.join(xs)};)) in " if m else ""
        f = f"def f({formals}z: f64; ~a: f64[3]) -> (f64; f64[3]) = {call}{text} in (w; ~b)"
        return check(parse(g * bool(m) + f))

    plain = calling(0)
    args = [0.5, np.array([1.0, 2.0, 3.0])]
    before, after = run(plain, "f", *args), run(check(simplify(plain)), "f", *args)
    assert bits((after.results, after.lresults)) == bits((before.results, before.lresults))
    saved = before.work - after.work
    kept = {m: simplify(calling(m), "f").defs["f"] for m in (saved + 1, saved + 2)}
    assert "g(" not in show_def(kept[saved + 1])
    assert "g(" in show_def(kept[saved + 2])


def test_parts_at_the_same_place_are_looked_up_once():
    parts = "let u = index[at=(1:,)](x) in let v = index[at=(1:,)](x) in u * v"
    head = "(x: f64[3];) -> (f64[2];)"
    assert body(head, parts) == "let u: f64[2] = index[at=(1:,)](x) in u * u"
    assert body(head, parts.replace("1:", ":2", 1)).count("index") == 2


def test_arrays_of_positions_are_looked_up_once_if_they_have_the_same_numbers():
    parts = "let u = index[at=([0, 2]_i64,)](x) in let v = index[at=([0, 2]_i64,)](x) in u * v"
    head = "(x: f64[3];) -> (f64[2];)"
    assert body(head, parts).count("index") == 1
    assert body(head, parts.replace("2]", "1]", 1)).count("index") == 2


def test_results_that_are_dropped_without_a_name_get_different_ones():
    program = check(
        parse("""
    def g(; ~a: f64[3]) -> (; f64, f64) =
      let (; ~p, ~r) = read[0](~a) in
      let (; ~q, ~s) = read[1](~r) in
      let (;) = drop(~s) in
      (; ~p, ~q)
    def f(; ~a: f64[3], ~b: f64) -> (; f64) = let (;) = drop(g(; ~a)) in ~b
    """)
    )
    made = check(simplify(program, "f"))
    assert show_def(made.defs["f"]).count("drop") == 2
    assert run(made, "f", np.ones(3), 2.0) == run(program, "f", np.ones(3), 2.0)


def test_what_is_calculated_has_the_dtype_of_the_operation():
    program = parse("def f(x: f32;) -> (f32;) =\n  let k: f32 = 1.0_f32 in\n  (k + k) * x\n")
    whole = parse("def f(x: f32;) -> (f32;) =\n  let (;) = drop(x) in\n  1.0_f32 + 1.0_f32\n")
    for p in (program, whole):
        (y,) = run(simplify(p), "f", np.float32(3.0)).results
        assert y.dtype == np.float32

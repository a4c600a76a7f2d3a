"""Text and programs: the canonical text comes back, sugar is written out, errors show the place."""

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark, Tree

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.facts.registry import registry
from lineara.facts.types import ArrayType, Named, Product, Stack, Sum, Type
from lineara.linear_a.check import check
from lineara.linear_a.parse import FORMS, GRAMMAR, LANGUAGE, OWN, parse
from lineara.linear_a.plain_lines import PLAIN, binding
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Block, Def, Let, Prim, Ret, Var, lit

# --- a plain binding is one token -----------------------------------------------------------------

NAMES = st.sampled_from(["x", "dx'", "f.jvp", "_a1", "letter", "f64x", "in.", "drops", "zero_"])
VARS = st.tuples(st.sampled_from(["", "~"]), NAMES).map("".join)
SPACE = st.sampled_from(["", " ", "  "])
STATED = st.sampled_from(["", ": f64", ":bool[3]", " : c128[2, 10]"])
BINDERS = st.tuples(VARS, STATED).map("".join)


def listed(items) -> st.SearchStrategy[str]:
    return st.lists(items, max_size=3).map(", ".join)


TARGETS = BINDERS | st.tuples(listed(BINDERS), listed(BINDERS)).map(lambda p: f"({p[0]}; {p[1]})")
NUMBERS = st.sampled_from(["2", "-7_i32", "1e-3", "-2.5_f32", "3.", "10_f64"])
CALLS = st.tuples(NAMES, SPACE, listed(VARS), st.sampled_from(["", ";", "; ~q", ";~q, ~p"]))
RIGHTS = (
    VARS
    | NUMBERS
    | st.tuples(VARS, SPACE, st.sampled_from("+-*/"), SPACE, VARS).map("".join)
    | CALLS.map(lambda c: f"{c[0]}{c[1]}({c[2]}{c[3]})")
    | VARS.map("drop({})".format)
)


@functools.cache
def general() -> Any:
    """The grammar without the token."""
    rules = GRAMMAR.replace("(binding | PLAIN)*", "binding*").replace("PLAIN.9: /@PLAIN@/", "")
    return Lark(rules, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def assert_same_tree(found, expected):
    if not isinstance(expected, Tree):
        assert found == expected
        if hasattr(found, "line"):
            assert (found.line, found.column) == (expected.line, expected.column)
        return
    assert found.data == expected.data
    given = [c for c in expected.children if c is not None or expected.data != "binders"]
    for a, b in zip(found.children, given, strict=True):
        assert_same_tree(a, b)
    if not expected.meta.empty:
        assert (found.line, found.column) == (expected.meta.line, expected.meta.column)


@given(TARGETS, RIGHTS, SPACE)
@settings(max_examples=300, deadline=None)
def test_a_plain_binding_has_the_tree_that_the_grammar_gives(target, right, space):
    text = f"def f(;) -> (;) =\n {space}let {target}{space}={space}{right} in (;)"
    (definition,) = general().parse(text).children
    expected = definition.children[-1].children[0]
    (definition,) = LANGUAGE.parser.parse(text).children
    token = definition.children[-1].children[0]
    assert isinstance(token, str)
    assert_same_tree(binding(token), expected)


@pytest.mark.parametrize(
    "line",
    [
        "let x = true in", "let true = x in", "let drop = x in", "let x = inf in", "let x = 3in",
        "let x = f(1.0) in", "let x = y * z * w in", "let x = f[at=(i,)] (y) in", "let x =\n y in",
        "let <x> = y in", "let x = {y} in", "let x: t = y in", "let x: f64[n] = y in",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_grammar(line):
    assert re.match(PLAIN, line) is None


# --- parse(show(P)) == P --------------------------------------------------------------------------

DTYPES = [np.dtype(d) for d in "efdFDbhiqBHIQ?"]


@st.composite
def array_types(draw) -> ArrayType:
    shape = draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))
    return ArrayType(shape, draw(st.sampled_from(DTYPES)))


def products(items) -> st.SearchStrategy[Type]:
    plain = st.lists(items, max_size=3).map(lambda ts: Product(tuple(ts)))
    names = st.lists(st.sampled_from(["a", "b.c", "d'"]), min_size=1, max_size=3, unique=True)
    record = names.flatmap(
        lambda fields: st.tuples(*[items] * len(fields)).map(lambda ts: Product(ts, tuple(fields)))
    )
    sums = st.lists(items, min_size=1, max_size=3).map(lambda ts: Sum(tuple(ts)))
    stacks = st.tuples(items, st.none() | st.integers(0, 3)).map(lambda p: Stack((p[0],), p[1]))
    return plain | record | sums | stacks


TYPES = st.recursive(array_types() | st.just(Named("NAME")), products, max_leaves=6)


@given(TYPES)
@settings(max_examples=150, deadline=None)
def test_every_type_prints_and_parses(t):
    x = Var("x", t)
    d = Def("f", (x,), (t,), (), Block((), Ret((x,))))
    program = check(Program({"NAME": Product((ArrayType((2,), DTYPES[0]),))}, {"f": d}))
    again = check(parse(str(program)))
    assert again == program
    assert again.defs["f"].params[0].type == t


@st.composite
def literals(draw):
    t = draw(array_types())
    kind = t.dtype.kind
    n = t.size
    if kind in "iu":
        limits = np.iinfo(t.dtype)
        numbers = st.integers(int(limits.min), int(limits.max))
    elif kind == "b":
        numbers = st.booleans()
    else:
        width = {2: 16, 4: 32, 8: 64}[t.dtype.itemsize // (2 if kind == "c" else 1)]
        numbers = st.floats(width=width)
        numbers = st.builds(complex, numbers, numbers) if kind == "c" else numbers
    values = draw(st.lists(numbers, min_size=n, max_size=n))
    return np.array(values, t.dtype).reshape(t.shape)[()]


@given(literals())
@settings(max_examples=300, deadline=None)
def test_every_literal_comes_back_bit_by_bit(value):
    t = ArrayType(value.shape, value.dtype)
    d = Def("f", (), (t,), (), Block((), lit(value, t)))
    program = check(Program({}, {"f": d}))
    again = check(parse(str(program)))
    assert again == program
    found = again.defs["f"].body.leaf.value
    assert found.dtype == value.dtype
    assert np.array_equal(np.isnan(found), np.isnan(value)) if value.dtype.kind in "fc" else True
    assert repr(found.tolist()) == repr(value.tolist())  # with signed zeros, NaN for NaN


PARAMS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.just(...)
    | st.sampled_from(DTYPES[:5]) | st.text("ab '\"\\\n{}~ü", max_size=4)
    | st.builds(slice, st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3), st.none()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)  # fmt: skip


@given(PARAMS)
@settings(max_examples=200, deadline=None)
def test_every_parameter_of_a_primitive_prints_and_parses(value):
    x = Var("x", ArrayType((2,), np.dtype(float)))
    y = Var("y", x.type)
    e = Prim((x,), registry.primitives["index"], {"at": value, "axis": (x, value)})
    d = Def("f", (x,), (y.type,), (), Block((Let((y,), e),), Ret((y,))))
    text = str(Program({}, {"f": d}))
    made = parse_untyped(text)
    assert made["at"] == value
    assert type(made["at"]) is type(value)
    assert made["axis"][1] == value


def parse_untyped(text: str) -> dict:
    """The parameters of the only primitive of a text, whatever its type rule says of them."""
    index = registry.primitives["index"]
    own = type(index).result
    type(index).result = lambda self, x, **params: x
    try:
        (binding,) = parse(text).defs["f"].body.bindings
    finally:
        type(index).result = own
    return binding.rhs.params


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: f64[3], i: i64; ~a: f64[3]) -> (; f64[3]) = let (;) = drop(x) in "
        "let (; ~p, ~b) = read[i](~a) in let (; ~p2, ~p3) = dup(~p) in "
        "let ~c = accum[i](~b, ~p2) in put[-1](~c, ~p3)",
        "type t = [<> | <f64, t>] def f(x: f64;) -> (t;) = "
        "let u = <> in let e = inj[0, t](u) in let p = <x, e> in inj[1, t](p)",
        "def f(; ~a: f64, ~b: f64) -> (; {x: f64, y: <f64>}) = let ~p = ~<~b> in ~{x: ~a, y: ~p}",
        "def f(x: f64; ~a: f64) -> (f64; f64) = let (;) = drop({ let y = sin(x) in "
        "(y, y;) }) in let (y: f64; ~b: f64) = { let z = cos(x) in let ~c = z * ~a in (z; ~c) } in "
        "(y; ~b)",
        "def in'(;) -> (;) = (;)\ndef f.jvp.t'.e(x1_: f64, X: f64;) -> (f64;) = X + x1_",
        "def f(A: c128[2,2]; ~x: c128[2]) -> (; c128[2]) = matmul(A, ~x)",
        "def f(p: bool[2], x: f64[2]; ~a: f64[2], ~b: f64[2]) -> (f64[2]; f64[2]) = "
        "let y = astype[dtype=f32](x) in let z = astype[dtype=f64](y) in "
        "let ~c = where(p, ~a, ~b) in (z; ~c)",
    ],
)  # fmt: skip
def test_canonical_text_is_a_fixed_point(text):
    program = check(parse(text))
    assert str(check(parse(str(program)))) == str(program)


# --- sugar ----------------------------------------------------------------------------------------


def body(text: str, **options) -> str:
    """The body of the only definition."""
    lines = str(check(parse(text, **options))).splitlines()[1:]
    return "\n".join(line.strip() for line in lines)


def test_operands_are_named_from_left_to_right_products_first():
    assert body("def f(x: f64, y: f64;) -> (f64;) = sin(x * y) + 2.0 * x - y / (x * y)") == (
        "let v: f64 = x * y in\n"
        "let v2: f64 = sin(v) in\n"
        "let v3: f64 = 2.0 in\n"
        "let v4: f64 = v3 * x in\n"
        "let v5: f64 = v2 + v4 in\n"
        "let v6: f64 = x * y in\n"
        "let v7: f64 = y / v6 in\n"
        "v5 - v7"
    )


def test_operands_of_every_form_may_be_expressions():
    text = (
        "def g(x: f64; ~a: f64) -> (f64; f64) = (x; ~a)\n"
        "def f(x: f64; ~a: f64) -> (<f64, {u: f64}>; f64) =\n"
        "  let (y; ~b) = g(x + x; x * ~a) in\n"
        "  let <u, v> = <cos(y), 1.0> in\n"
        "  (<u * v, {u: -2.0}>; ~b + zero[f64])"
    )
    found = run(check(parse(text)), "f", 1.0, 3.0)
    assert found.results == ((np.cos(2.0), (-2.0,)),)
    assert found.lresults == (3.0,)


def test_a_difference_of_linear_values_is_a_sum():
    assert body("def f(; ~a: f32, ~b: f32) -> (; f32) = ~a - ~b") == (
        "let v: f32 = -1.0_f32 in\nlet ~v2: f32 = v * ~b in\n~a + ~v2"
    )


def test_dups_and_drops_are_written_only_if_asked_for():
    text = (
        "def f(x: f64, y: f64; ~a: f64, ~b: f64) -> (; f64, f64) =\n"
        "  let (; ~c, ~d) = { let ~e = x * ~a in (; ~e + ~a, ~a) } in\n"
        "  (; ~c, ~c)"
    )
    assert body(text, sugar=True) == (
        "let (;) = drop(y) in\n"
        "let (; ~a2: f64, ~a3: f64) = dup(~a) in\n"
        "let (; ~a4: f64, ~a5: f64) = dup(~a3) in\n"
        "let (;) = drop(~b) in\n"
        "let (; ~c: f64, ~d: f64) = {\n"
        "let ~e: f64 = x * ~a2 in\n"
        "let ~v: f64 = ~e + ~a4 in\n"
        "(; ~v, ~a5)\n"
        "} in\n"
        "let (; ~c2: f64, ~c3: f64) = dup(~c) in\n"
        "let (;) = drop(~d) in\n"
        "(; ~c2, ~c3)"
    )
    with pytest.raises(ProgramError, match="~a is used again"):
        check(parse(text))


def test_a_sugared_program_that_is_wrong_shows_the_place():
    with pytest.raises(ProgramError, match=r"^p:2:7: add is not linear in ~a"):
        check(parse("def f(x: f64; ~a: f64) -> (; f64) =\n  x + ~a", "p", sugar=True))


# --- errors ---------------------------------------------------------------------------------------

LINEAR = "def f(x: f64; ~a: f64) -> (; f64) = "
ERRORS = {
    # the text, in one line; the error, of which line and caret are checked too
    "def f(x: f64;) -> (f64;) = sin(x": "33: the text ends here; expected ')' or ',' or ';'",
    "def f(x: f64) -> (f64;) = x": "13: ')' is not expected here; expected ',' or ';'",
    "def f(x: f64;) -> (f64;) = (x; ": "32: the text ends here; expected ')' or an expression",
    "def f(x: f64;) -> (f64;) = x ? x": "30: the character '?' has no meaning",
    LINEAR + "~a + ~a": "42: ~a is used again, but a linear variable is used exactly once; "
    "dup(~a) makes two of it",
    LINEAR + "sin(~a)": "41: sin is not linear in ~a; linear are ~a + ~b, x * ~a, and the "
    "primitives that move, sum or contract",
    LINEAR + "x * ~b": "41: ~b is not known here; bind it before, or take it as an argument",
    "def f(; ~a: f64) -> (;) = (;)": "9: ~a is never used; use it exactly once, or drop(~a)",
    "def f(x: f64;) -> (;) = (;)": "7: x is never used; use it at least once, or drop(x)",
    "def f(x: f64; ~a: i64) -> (f64; i64) = (x; ~a)": "15: ~a is linear, but i64 is not a vector "
    "space; only floating and complex numbers and products of them are: make it non-linear",
    "def f(x: f64;) -> (f64;) = sin(x, x)": "28: sin takes 1 argument, not 2",
    "def f(x: f64;) -> (f64;) = sine(x)": "28: there is no primitive sine; did you mean sin?",
    "def f(x: f64;) -> (f64;) = f(x)": "28: there is no primitive f; a call has a semicolon",
    "def fun(x: f64;) -> (f64;) = fan(x;)": "30: there is no definition fan; did you mean fun?",
    "def f(x: f64[2], y: f64[3];) -> (f64[2];) = x + y": "45: add of f64[2] and f64[3]: give it "
    "arrays of one shape, or numbers; broadcast_to[shape=…] repeats an array along axes",
    "def f(x: f64[2,3];) -> (f64[2];) = matmul(x, x)": "36: matmul: f64[2,3] @ f64[2,3] does not "
    "compose; the last dimension of the left must equal the first of the right",
    "def f(x: f64[2];) -> (f64;) = index[at=(5,)](x)": "31: index: 5 does not index f64[2]: index "
    "5 is out of bounds for axis 0 with size 2",
    "def f(x: f64[2];) -> (f64;) = sum[axes=(0,)](x)": "31: sum: it is not written so; "
    "write sum[axis=…, keepdims=…](x)",
    "def f(x: f64[2]; ~a: f64[2]) -> (f64[2]; f64) = (x; read[7](~a))": "53: index: 7 does not "
    "index f64[2]: index 7 is out of bounds for axis 0 with size 2",
    "def f(x: f64;) -> (f32;) = x": "28: the results of f are stated as (f32;), but its body has "
    "(f64;); let the two agree",
    "def g(x: f32;) -> (f32;) = x def f(x: f64;) -> (f32;) = g(x;)": "59: g takes f32 as x, but x "
    "is f64",
    "def g(x: f32;) -> (f32;) = x def f(;) -> (f32;) = g(;)": "51: g takes 1 non-linear argument "
    "(f32), not 0",
    "def f(x: tree;) -> (tree;) = x type tee = f64": "10: there is no type tree; did you mean tee?",
    "def f(x: u;) -> (u;) = x": "10: there is no type u; define it: type u = …",
    "type t = <f64, s> type s = <t>": "6: the type t contains itself; let it do so under an "
    "alternative: [<> | …]",
    "def f(x: f64;) -> (f64;) = let y: f32 = x in y": "32: y is said to be f32, but is f64; "
    "write y: f64",
    "def f(x: f64;) -> (f64;) = let (y, z;) = x in y": "32: 2 names for 1 values; bind each once",
    "def f(x: f64;) -> (f64;) = let <y> = x in y": "38: x is f64; only a product is taken apart",
    "def f(x: f64, x: f64;) -> (f64;) = x": "15: x is taken; give it another name",
    "def f(;) -> (;) = (;) def f(;) -> (;) = (;)": "27: f is defined twice; keep one",
    "def scan(;) -> (;) = (;)": "5: scan has a meaning; give the definition another name",
    "def f(x: f64;) -> (f64;) = dup(x)": "28: the form is dup(~a), of one linear variable",
    "def f(x: f64;) -> (f64;) = scan[f](x;)": "28: the form is scan[f, n, fwd|rev, nk, nc, nlc]"
    "(ks, cs, xs; ~lcs, ~lxs)",
    "def f(;) -> (f64;) = sin((1.0, 2.0))": "30: ',' is not expected here; expected ')'",
    "def f(x: f64; ~a: f64) -> (f64; f64) = (~a; x)": "41: before the semicolon stand non-linear "
    "names, after it linear ones",
    "def f(x: f64; ~a: f64) -> (f64; f64) = <x, ~a>": "40: a product is wholly linear or wholly "
    "non-linear: ~<~a, ~b> or <x, y>",
    "def f(;) -> (f64;) = 1e400": "22: this does not fit into f64; write inf if you mean it",
    "def f(;) -> (i8;) = 300_i8": "21: this does not fit into i8; write another suffix",
    "def f(;) -> (i64;) = 2.5_i64": "22: this does not fit into i64; write another suffix",
    "def f(;) -> (f64[2];) = [1.0, [2.0]]": "25: rows have one length, and an array "
    "has no more than 64 axes",
    "def f(;) -> (f64[-1];) = zeros[f64[-1]]": "18: a dimension is not negative; count from 0",
    "def f(x: f64;) -> (f64;) = " + "(" * 101 + "x" + ")" * 101: "127: brackets lie in each other "
    "deeper than 100; give some a name of their own",
    "def f(;) -> (;) = " + "drop(" * 5000 + "(;)" + ")" * 5000: "514: expressions lie in each "
    "other deeper than 100; give some a name of their own",
    "def f(;) -> (" + "<" * 5000 + ">" * 5000 + ";) = (;)": "114: types lie in each other deeper "
    "than 100; give some a name of their own",
    "def f(;) -> (f64;) = " + "[" * 5000 + "1.0" + "]" * 5000: "22: rows have one length, and an "
    "array has no more than 64 axes",
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS, ids=lambda t: t[:50])
def test_an_error_shows_place_line_and_caret(text):
    with pytest.raises(ProgramError) as caught:
        check(parse(text, "p.lina"))
    message, line, caret = caught.value.message.split("\n")
    assert message == f"p.lina:1:{ERRORS[text]}"
    column = int(ERRORS[text].split(":")[0])
    if len(text) <= 160:
        assert line == f"  {text}"
        assert caret == " " * (column + 1) + "^"
    assert line[len(caret) - 1 :][:1] == text[column - 1 :][:1]


def test_lines_are_counted_as_editors_do_and_tabs_keep_the_caret():
    with pytest.raises(ProgramError) as caught:
        parse("# ü\f\u2028 one line\r\ndef f(x: f64;) ->\r\n\t(f64;) =\ty", "p")
    assert caught.value.message == (
        "p:3:11: y is not known here; bind it before, or take it as an argument\n"
        "  \t(f64;) =\ty\n  \t        \t^"
    )


# --- speed ----------------------------------------------------------------------------------------


def test_names_in_nested_blocks_do_not_cost_the_names_outside():
    """A block in a definition of n bindings does not copy the scope: the text is read in O(n)."""
    n = 300
    lines = [f"let (y{i}; ~b{i}) = {{ let (z; ~c) = (x; ~a{i}) in (z; ~c) }} in" for i in range(n)]
    for i in range(1, n):
        lines[i] = lines[i].replace(f"~a{i}", f"~b{i - 1}")
    text = f"def f(x: f64; ~a0: f64) -> (f64; f64) = {' '.join(lines)}"
    text += "".join(f"let (;) = drop(y{i}) in " for i in range(n)) + f"(x; ~b{n - 1})"
    program = check(parse(text))
    assert len(program.defs["f"].body.bindings) == 2 * n
    assert str(parse(str(program))) == str(program)


@pytest.mark.parametrize(
    ("parameter", "hint"),
    [("keepdims=False", "false"), ("keepdims=no", "'no'"), ("axis=(xs,)", "x")],
)
def test_a_bare_name_among_parameters_is_that_of_a_variable(parameter, hint):
    text = f"def f(x: f64[3];) -> (f64;) = sum[{parameter}](x)"
    with pytest.raises(ProgramError) as error:
        parse(text)
    name = parameter.split("=")[1].strip("(,)")
    assert str(error.value) == (
        f"1:{text.index(name, 34) + 1}: {name} is not known here; did you mean {hint}?\n"
        f"  {text}\n"
        f"  {' ' * text.index(name, 34)}^"
    )


@pytest.mark.parametrize("name", ["c256", "f128", "u128"])
def test_what_looks_like_a_dtype_and_is_none_names_the_dtypes(name):
    for text, said in (
        (f"def f(x: f64[3];) -> (f64[3];) = astype[dtype={name}](x)", f"{name} is not known here"),
        (f"def f(x: {name}[3];) -> (f64[3];) = x", f"there is no type {name}"),
    ):
        with pytest.raises(
            ProgramError, match=rf"{said}; the dtypes of a text are bool, c128, c64"
        ):
            parse(text)


# --- the page on the language ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["case x of", "with", "stack", *FORMS, *OWN])
def test_the_page_on_the_language_has_every_form(form):
    page = (Path(__file__).parents[2] / "docs" / "linear-a.md").read_text(encoding="utf-8")
    assert re.search(rf"`[^`]*\b{form}\b", page)

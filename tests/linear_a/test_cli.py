"""The command line on text programs: what it prints, and what it says of bad input."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lineara.__main__ import main
from lineara.errors import RuleError
from lineara.linear_a.parse import parse
from lineara.rules.rules_beside_text import check_rules

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PRODUCT = str(EXAMPLES / "product.lina")
AT = ["--args", "[0.5, 2.0]"]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Writes a text to p.lina in an empty folder, where the test then is."""
    monkeypatch.chdir(tmp_path)

    def write(text: str | bytes) -> str:
        raw = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "p.lina").write_bytes(raw)
        return "p.lina"

    return write


def said(capsys, *argv: str) -> str:
    """What a command prints; it succeeds."""
    assert main(argv) == 0, capsys.readouterr().err
    found = capsys.readouterr()
    assert found.err == ""
    return found.out


def refused(capsys, *argv: str) -> str:
    """What a command says on stderr; it fails with 1 and prints nothing."""
    assert main(argv) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert "Traceback" not in found.err
    return found.err.rstrip("\n")


# --- rules that a file gives ----------------------------------------------------------------------

RULED = """def g(x: f64, y: f64;) -> (f64;) = x * x + sin(y)
def g.jvp(x: f64, y: f64; ~dx: f64, ~dy: f64) -> (f64; f64) =
  let v = {value} in
  let a = {slope} in
  let c = cos(y) in
  let ~p = a * ~dx in
  let ~q = c * ~dy in
  (v; ~p + ~q)
def f(x: f64, y: f64;) -> (f64;) = exp(g(x, y;))
def l(c: f64; ~x: f64) -> (; f64) = c * ~x
def l.t(c: f64; ~z: f64) -> (; f64) = {back} * ~z
def l.e(c: f64, x: f64;) -> (f64;) = {erased}
"""
RIGHT = {"value": "x * x + sin(y)", "slope": "x + x", "back": "c", "erased": "c * x"}
USES = [
    (["grad", "--def", "g", "--args", "[-3.0, 1.0]"], {"value", "slope"}),
    (["grad", "--def", "f", "--args", "[-0.3, 1.0]"], {"value", "slope"}),
    (["jvp", "--def", "g"], {"value", "slope"}),
    (["jvp", "--def", "f"], {"value", "slope"}),
    (["unzip", "--def", "g.jvp"], {"value", "slope"}),
    (["transpose", "--def", "l"], {"back", "erased"}),
    (["erase", "--def", "l"], {"back", "erased"}),
]


@pytest.mark.parametrize(("argv", "uses"), USES)
def test_a_rule_beside_a_definition_is_tested_before_it_is_used(capsys, program, argv, uses):
    faults = {"value": "x * x", "slope": "x", "back": "c * c", "erased": "c * c * x"}
    command, *rest = argv
    said(capsys, command, program(RULED.format(**RIGHT)), *rest)
    for part in uses:
        file = program(RULED.format(**RIGHT | {part: faults[part]}))
        assert "--trust" in refused(capsys, command, file, *rest)
        said(capsys, command, file, *rest, "--trust")


def test_the_error_has_the_numbers_and_the_place_of_the_rule(capsys, program):
    text = """def g(x: f64;) -> (f64;) = x * x
def g.jvp(x: f64; ~d: f64) -> (f64; f64) = (x * x; x * ~d)
"""
    assert refused(capsys, "grad", program(text), "--def", "g", "--args", "[3.0]").startswith(
        "p.lina:2:5: g.jvp gives the slope 3, where differences of g give 6, at 3; "
        "mend the rule, or give --trust if this is meant\n"
    )


@pytest.mark.parametrize("at", ["-2.0", "0.0", "1e-9", "3.0", "1e9"])
@pytest.mark.parametrize("k", [0.0, 0.5, 0.999, 1.0, 1.001, 2.0])
def test_a_rule_is_judged_where_it_is_used(at, k):
    """|x| with the rule k sign(x), and slope 0 at the kink, whatever k is."""
    text = f"""def size(x: f64;) -> (f64;) = sqrt(x * x)
def size.jvp(x: f64; ~d: f64) -> (f64; f64) =
  let s = sign(x) in
  let k = {k} * s in
  (sqrt(x * x); k * ~d)
"""
    judged = parse(text)
    if k == 1.0 or at == "0.0":
        check_rules(judged, "size", [float(at)])
    else:
        with pytest.raises(RuleError, match=r"size\.jvp gives the slope"):
            check_rules(judged, "size", [float(at)])


@pytest.mark.parametrize("f", ["f", "g"])
def test_what_a_pass_wrote_is_no_rule(capsys, program, f):
    """Also where random arguments have no meaning: here they are sums."""
    text = RULED.format(**RIGHT)
    for command, name in (("jvp", f), ("unzip", f"{f}.jvp"), ("transpose", f"{f}.jvp.lin")):
        text = said(capsys, command, program(text), "--def", name)
    said(capsys, "erase", program(text), "--def", f"{f}.jvp.lin.t")


# --- what the commands print ----------------------------------------------------------------------


def test_run_gives_the_results_and_the_work_of_the_worked_example(capsys):
    found = json.loads(said(capsys, "run", PRODUCT, "--def", "f", *AT, "--json"))
    assert found == {"results": [0.958851077208406], "work": 2}


def test_grad_gives_value_gradient_and_both_works_of_the_worked_example(capsys):
    found = json.loads(said(capsys, "grad", PRODUCT, "--def", "f", *AT, "--json"))
    assert found == {
        "value": 0.958851077208406,
        "gradient": [1.7551651237807455, 0.479425538604203],
        "work": {"value": 2, "gradient": 7},
    }


def test_without_json_the_same_is_readable(capsys):
    assert said(capsys, "run", PRODUCT, "--def", "f", *AT) == "f64  0.958851077208406\nwork  2\n"
    assert said(capsys, "grad", PRODUCT, "--def", "f", *AT) == (
        "value  0.958851077208406\ngradient\n  x: f64  1.7551651237807455\n"
        "  y: f64  0.479425538604203\nwork  value 2, gradient 7\n"
    )


def test_check_counts_and_print_is_canonical(capsys):
    assert said(capsys, "check", PRODUCT) == f"{PRODUCT}: well typed: 1 definition, 1 binding\n"
    printed = said(capsys, "print", PRODUCT)
    assert printed == "def f(x: f64, y: f64;) -> (f64;) =\n  let a: f64 = sin(x) in\n  a * y\n"
    assert str(parse(printed)) == printed


def test_cost_is_static_for_all_and_executed_for_arguments(capsys, program):
    file = program("def g(x: f64;) -> (f64;) = sin(x)\ndef f(x: f64;) -> (f64;) = g(x;)")
    assert said(capsys, "cost", file) == (
        "g  work 1, size 7\nf  work 1, size 7\nprogram  size 14\n"
    )
    asked = said(capsys, "cost", file, "--def", "f", "--args", "[1]", "--json")
    assert json.loads(asked) == {"work": 1, "size": 7}
    assert json.loads(said(capsys, "cost", file, "--json"))["g"] == {"work": 1, "size": 7}


def test_the_passes_print_programs_that_the_next_one_reads(capsys, program):
    text = said(capsys, "jvp", PRODUCT, "--def", "f")
    for command, name in (("unzip", "f.jvp"), ("transpose", "f.jvp.lin"), ("erase", "f.jvp.lin.t")):
        text = said(capsys, command, program(text), "--def", name)
    assert [*parse(text).defs] == [
        "f", "f.jvp", "f.jvp.nl", "f.jvp.lin", "f.jvp.lin.t", "f.jvp.lin.t.e"
    ]  # fmt: skip


def test_unzip_says_why_a_tape_is_empty(capsys):
    head = "# f has no linear side, so that its tape is empty; jvp writes f.jvp, which has one"
    text = said(capsys, "unzip", PRODUCT, "--def", "f")
    assert text.splitlines()[:2] == [head, "type f.tape = <>"]
    assert not said(capsys, "unzip", str(EXAMPLES / "tangent.lina"), "--def", "f").startswith("#")


COMPOSED = """def A(; ~x: f64, ~y: f64) -> (; f64, f64) =
  let k = 2.0 in
  let (; ~x1, ~x2) = dup(~x) in
  let (; ~y1, ~y2) = dup(~y) in
  let ~p = k * ~x1 in
  let ~q = ~p + ~y1 in
  let ~r = k * ~y2 in
  let ~s = ~r + ~x2 in
  (; ~q, ~s)
def AA(; ~x: f64, ~y: f64) -> (; f64, f64) =
  let (; ~a, ~b) = A(; ~x, ~y) in
  A(; ~a, ~b)
"""


def test_a_composition_is_multiplied_out_where_that_is_less(capsys, program):
    text = said(capsys, "multiply", program(COMPOSED), "--def", "AA")
    head = "# work of AA: as it is, with calls inlined, multiplied out: 8, 8, 6\n"
    assert text.startswith(head)
    made = parse(text).defs["AA"]
    scales = [b.rhs.value for b in made.body.bindings if hasattr(b.rhs, "value")]
    assert scales == [5.0, 4.0, 5.0, 4.0]  # the square of [[2, 1], [1, 2]]
    assert ": 4, 4, 4\n" in said(capsys, "multiply", program(COMPOSED), "--def", "A")
    said_so = refused(capsys, "multiply", program("def f(x: f64;) -> (f64;) = x"), "--def", "f")
    assert "unzip f and multiply f.lin out" in said_so


@pytest.mark.parametrize(
    "file",
    [f for f in sorted(EXAMPLES.iterdir()) if f.suffix in (".lina", ".pb", ".diagram")],
    ids=lambda f: f.name,
)
def test_the_commands_in_the_comments_of_an_example_work(file, capsys, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    commands = [
        line.removeprefix("#   python -m lineara ")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("#   python -m lineara ")
    ]
    assert commands
    for command in commands:
        words = [w for i, w in enumerate(command.split("'")) for w in ([w] if i % 2 else w.split())]
        assert said(capsys, *words)


def test_the_module_runs_as_a_process_and_reads_standard_input():
    done = subprocess.run(
        [sys.executable, "-m", "lineara", "run", "-", "--def", "f", "--json"],
        input="def f(;) -> (f64;) = 2.5", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"results": [2.5], "work": 0}\n', "")


# --- values ---------------------------------------------------------------------------------------


def echo(capsys, program, t: str, given: str) -> object:
    """A value through the identity on a type."""
    file = program(f"def f(x: {t};) -> ({t};) = x")
    return json.loads(said(capsys, "run", file, "--def", "f", "--args", f"[{given}]", "--json"))[
        "results"
    ][0]


@pytest.mark.parametrize(
    ("t", "given"),
    [
        ("f64", "0.1"),
        ("f64", '"-inf"'),
        ("f64", '"nan"'),
        ("i32", "-7"),
        ("bool", "true"),
        ("c128", "[1.0, 2.0]"),
        ("f64[2,3]", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"),
        ("f64[0]", "[]"),
        ("c128[2]", "[[1.0, 0.0], [0.0, 1.0]]"),
        ("<f64, <>, <i64, f32>>", "[1.0, [], [2, 0.5]]"),
        ("{a: f64, b: bool[2]}", '{"a": 1.0, "b": [true, false]}'),
        ("[<> | <> | <>]", "2"),
        ("stack[2, <f64, bool>]", "[[1.0, true], [2.0, false]]"),
        ("[f64 | <>]", '{"tag": 0, "value": 1.5}'),
    ],
)
def test_values_go_in_and_out_as_json(capsys, program, t, given):
    assert echo(capsys, program, t, given) == json.loads(given)


def test_a_plain_number_is_a_complex_one_and_a_list_serves_as_a_record(capsys, program):
    assert echo(capsys, program, "c64", "2") == [2.0, 0.0]
    assert echo(capsys, program, "{a: f64}", "[2]") == {"a": 2.0}


def test_arrays_come_from_files(capsys, program):
    file = program("def f(x: f64[3], k: f64;) -> (f64[3];) = k * x")
    np.save("x.npy", np.arange(3.0))
    for given in ('["@x.npy", 2]', "[@x.npy, 2]"):
        found = json.loads(said(capsys, "run", file, "--def", "f", "--args", given, "--json"))
        assert found == {"results": [[0.0, 2.0, 4.0]], "work": 3}


def test_what_does_not_move_has_no_gradient(capsys, program):
    file = program("def f(n: i64, x: f64;) -> (f64;) = let (;) = drop(n) in x * x")
    found = said(capsys, "grad", file, "--def", "f", "--args", "[1, 3]", "--json")
    assert json.loads(found)["gradient"] == [None, 6.0]


# --- bad input ------------------------------------------------------------------------------------


def test_an_ill_typed_program_shows_line_and_caret(capsys, program):
    file = program("def f(; ~a: f64) -> (; f64) =\n  ~a + ~a\n")
    for command in (["check"], ["print"], ["jvp", "--def", "f"]):
        assert refused(capsys, command[0], file, *command[1:]) == (
            "p.lina:2:8: ~a is used again, but a linear variable is used exactly once; "
            "dup(~a) makes two of it\n    ~a + ~a\n         ^"
        )


def test_files_that_cannot_be_read(capsys, program, tmp_path):
    program("")
    assert refused(capsys, "check", "no.lina") == (
        "no.lina: cannot be read: No such file or directory"
    )
    assert refused(capsys, "check", str(tmp_path)).endswith("cannot be read: Is a directory")
    assert refused(capsys, "check", program("# ü\n".encode() + b"ab\xff")) == (
        "p.lina:2:3: the byte 0xff is not UTF-8; save the file as UTF-8\n  ab\ufffd\n    ^"
    )
    assert refused(capsys, "check", program("# nothing")) == (
        "p.lina:1:1: the file defines nothing; a program has a definition: def f(x: f64;) -> …\n"
        "  # nothing\n  ^"
    )


def test_an_unknown_definition_has_a_hint(capsys, program):
    file = program("def loss(x: f64;) -> (f64;) = x\ndef g(;) -> (f64;) = 1.0")
    assert refused(capsys, "jvp", file, "--def", "los") == (
        "p.lina: there is no definition los; did you mean loss?"
    )
    assert refused(capsys, "run", file, "--def", "q") == (
        "p.lina: there is no definition q; there is loss, g"
    )


def test_a_pass_that_does_not_apply_says_so_at_the_definition(capsys, program):
    file = program("def f(x: f64;) -> (f64, f64;) = (x, x;)")
    assert refused(capsys, "transpose", file, "--def", "f") == (
        "p.lina:1:5: transpose: f has non-linear results; T is for Linear B definitions: "
        "unzip f and transpose f.lin\n  def f(x: f64;) -> (f64, f64;) = (x, x;)\n      ^"
    )
    assert refused(capsys, "grad", file, "--def", "f", "--args", "[1]").startswith(
        "p.lina:1:5: grad: f has the results (f64, f64), not one real number"
    )


BAD_ARGUMENTS = [
    ("f64", "[]", "p.lina:1:5: f takes 1 argument (x: f64), but --args has 0"),
    ("f64", '["a"]', 'p.lina:1:7: x is f64, but "a" is given'),
    ("f64", "[true]", "p.lina:1:7: x is f64, but true is given"),
    ("i64", "[1.5]", "p.lina:1:7: x is i64, but 1.5 is given"),
    ("i8", "[300]", "p.lina:1:7: x is i8, into which 300 does not fit"),
    ("f64", "[1e999]", "p.lina:1:7: x is f64, into which Infinity does not fit"),
    ("f64", f"[1{'0' * 400}]", "p.lina:1:7: x is f64, into which"),
    ("f32", "[1e300]", "p.lina:1:7: x is f32, into which 1e+300 does not fit"),
    ("f64[2]", "[[1]]", "p.lina:1:7: x is a list of 2 numbers, for f64[2], but [1] is given"),
    ("f64[2,1]", "[[1, 2]]", "p.lina:1:7: x[0] is a list of 1 numbers"),
    ("f64[2]", "[[1, null]]", "p.lina:1:7: x[1] is f64, but null is given"),
    ("<f64, f64>", "[[1]]", "p.lina:1:7: x is <f64, f64>, a list of 2 values, but [1] is given"),
    ("{a: f64}", '[{"b": 1}]', "p.lina:1:7: x has the fields a, not b"),
    ("[<> | <>]", "[2]", "p.lina:1:7: x is [<> | <>]: a tag from 0 to 1"),
    ("f64", "[NaN]", '--args:1:2: NaN is no JSON; write "inf", "-inf" or "nan", in quotes'),
    ("f64", "[1,", "--args:1:4: this is no JSON: Expecting value"),
    ("f64", "3", "--args:1:1: the arguments are a JSON list"),
    ("f64", f"[{'9' * 5000}]", "--args:1:1: this is no JSON"),
    ("f64", "[" * 100000, "--args:1:1: lists lie in each other too deep"),
    ("f64", "[@no.npy]", "p.lina:1:7: x: no.npy cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(
    ("t", "given", "message"), BAD_ARGUMENTS, ids=[m[:60] for _, _, m in BAD_ARGUMENTS]
)
def test_values_that_do_not_fit_are_refused(capsys, program, t, given, message):
    file = program(f"def f(x: {t};) -> ({t};) = x")
    assert refused(capsys, "run", file, "--def", "f", "--args", given).startswith(message)


def test_an_array_file_of_another_type_is_refused_and_not_touched(capsys, program):
    file = program("def f(x: f64[2];) -> (f64[2];) = x")
    np.save("x.npy", np.zeros(2, np.float32))
    before = Path("x.npy").read_bytes()
    asked = ["run", file, "--def", "f", "--args", "[@x.npy]"]
    assert refused(capsys, *asked).startswith(
        "p.lina:1:7: x is f64[2], but x.npy holds f32[2]; save it as float64: "
        "numpy.save(file, x.astype('float64'))"
    )
    assert Path("x.npy").read_bytes() == before
    np.save("x.npy", np.zeros((3, 1)))
    assert "x is f64[2], but x.npy holds f64[3,1]\n" in refused(capsys, *asked)
    Path("x.npy").write_bytes(b"PK nothing")
    assert "x.npy is no array in NumPy's format" in refused(capsys, *asked)
    Path("x.npy").write_bytes(b"")
    assert "x.npy is no array in NumPy's format" in refused(capsys, *asked)
    np.save("x.npy", np.array([{}, 1], object), allow_pickle=True)
    assert "x.npy is no array in NumPy's format" in refused(capsys, *asked)


def test_a_division_by_zero_is_shown_unless_infinities_are_asked_for(capsys, program):
    file = program("def f(x: f64;) -> (f64;) =\n  let a: f64 = 1.0 in\n  a / x")
    asked = ["run", file, "--def", "f", "--args", "[0]"]
    assert refused(capsys, *asked) == (
        "p.lina:3:3: divide fails as the program runs: divide by zero encountered in divide; "
        "keep it away from there, or ask for infinities and NaN: ieee=True, --ieee\n"
        "    a / x\n    ^"
    )
    assert said(capsys, *asked, "--ieee", "--json") == '{"results": ["inf"], "work": 1}\n'
    assert refused(capsys, "grad", *asked[1:]).startswith("p.lina:3:3: divide fails")


ROOTS = """def f(x: f64[n], n: i64;) -> (f64;) =
  let z = zeros[f64[n]] in
  let c = greater(x, z) in
  let s = sqrt(x) in
  let w = where(c, s, z) in
  sum[axis=(0,), keepdims=false] (w)"""


def test_arguments_may_be_dimensions_and_lanes_that_where_left_out_stay_zero(capsys, program):
    asked = ["grad", program(ROOTS), "--def", "f", "--ieee", "--json", "--args"]
    found = json.loads(said(capsys, *asked, "[[4, 0, -1], 3]"))
    assert (found["value"], found["gradient"]) == (2.0, [[0.25, 0.0, 0.0], None])
    assert refused(capsys, *asked, "[[4, 0, -1], 2]") == (
        "p.lina:1:7: x is a list of 2 numbers, for f64[2], but [4, 0, -1] is given\n"
        "  def f(x: f64[n], n: i64;) -> (f64;) =\n        ^"
    )
    assert refused(capsys, *asked, "[[], -1]") == (
        "p.lina:1:18: n is a dimension, so it is 0 or more, but -1 is given\n"
        "  def f(x: f64[n], n: i64;) -> (f64;) =\n                   ^"
    )


def test_more_memory_than_there_is_has_no_traceback(capsys, program):
    file = program("def f(;) -> (f64[1000000000000000];) = zeros[f64[1000000000000000]]")
    assert refused(capsys, "run", file, "--def", "f").startswith("p.lina: the program needs more")


@pytest.mark.parametrize(
    "argv",
    [[], ["frob"], ["check"], ["jvp", PRODUCT], ["run", PRODUCT, "--deff", "f"], ["run", "--json"]],
    ids=" ".join,
)
def test_usage_errors_exit_with_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: python -m lineara" in capsys.readouterr().err


ENDLESS = """
def f(x: f64;) -> (f64;) = f(x;)
def both(p: bool, x: f64;) -> (f64;) = cond[f, other](p, x;)
def other(x: f64;) -> (f64;) = let y = x * 2.0 in both(true, y;)
def counts(n: i64, x: f64;) -> (f64;) =
  let z = 0_i64 in let p = less(z, n) in cond[again, done](p, n, x;)
def again(n: i64, x: f64;) -> (f64;) = let m = n - 1_i64 in let y = x * 2.0 in counts(m, y;)
def done(n: i64, x: f64;) -> (f64;) = let (;) = drop(n) in x
def small(x: f64;) -> (bool;) = less(x, 100.0)
def same(x: f64;) -> (f64;) = x
def loop(x: f64;) -> (f64;) = while[small, same, 0](x;)
def never(x: f64;) -> (f64;) = while[small, f, 0](x;)
"""


@pytest.mark.parametrize("name", ["f", "both", "other"])
def test_what_calls_itself_on_every_way_is_refused(program, capsys, name):
    file = program(ENDLESS)
    values = "[true, 1.0]" if name == "both" else "[1.0]"
    for command in ("run", "grad"):
        text = refused(capsys, command, file, "--def", name, "--args", values)
        assert (
            f"{name} calls itself whatever its arguments are, so it never ends; let a branch of a "
            "cond, switch or case end without the call\n"
        ) in text


def test_a_run_stops_when_its_fuel_is_spent(program, capsys):
    file = program(ENDLESS)
    asked = ["run", file, "--def", "counts", "--args"]
    assert said(capsys, *asked, "[5, 1.0]", "--fuel", "12", "--json").startswith(
        '{"results": [32.0]'
    )  # counts and again five times, counts and done once
    text = refused(capsys, *asked, "[5, 1.0]", "--fuel", "11")
    assert (
        "the run is out of fuel as done is entered; a recursion or a loop through it may never "
        "end: look at the condition that ends it, or give more, --fuel N\n"
    ) in text
    text = refused(capsys, "run", file, "--def", "loop", "--args", "[1.0]", "--fuel", "1000")
    assert "out of fuel as same is entered" in text
    found = said(capsys, "run", file, "--def", "never", "--args", "[200.0]")
    assert found.startswith("f64  200.0")  # a loop may take no round

"""`python -m lineara calculus` and `calculus.function`: what they print, and what they refuse."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import lineara
from lineara import calculus
from lineara.__main__ import main
from lineara.calculus.reduction_steps import rich_text
from lineara.cli.session import Session
from lineara.errors import CalculusError

PRODUCT = str(Path(__file__).parent.parent.parent / "examples" / "product.pb")


def said(capsys, *argv: str) -> str:
    assert main(["calculus", *argv]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys, *argv: str) -> str:
    assert main(["calculus", *argv]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.rstrip("\n")


def test_run_prints_the_value_in_the_concrete_syntax(capsys):
    assert said(capsys, "run", PRODUCT) == "[covec(660)|covec(528)]\n"
    assert said(capsys, "run", PRODUCT, "--reduce") == "[covec(660)|covec(528)]\n"
    assert json.loads(said(capsys, "run", PRODUCT, "--json")) == {
        "value": "[covec(660)|covec(528)]"
    }


@pytest.mark.parametrize("file", sorted(Path(PRODUCT).parent.glob("*.pb")), ids=lambda f: f.stem)
def test_an_example_has_one_value_by_the_machine_and_by_the_rules(capsys, file):
    by_machine, by_rules = (said(capsys, "run", str(file), *a) for a in ((), ("--reduce",)))
    assert sorted(by_machine.split(" + ")) == sorted(by_rules.split(" + "))


def test_type_says_how_general_a_definition_is(capsys, tmp_path):
    file = tmp_path / "p.pb"
    file.write_text("def swap p = <snd p, fst p>\ndef both f x = <f x, x>")
    assert said(capsys, "type", str(file)) == (
        "swap  a * b -> b * a\nboth  (a -> b) -> a -> b * a\n"
    )


def test_linear_a_prints_a_program(capsys):
    found = said(capsys, "linear-a", PRODUCT, "--def", "f")
    assert found.startswith("def calculus_function(x0.0: f64, x0.1: f64;) -> (f64;) =\n")


def test_type_names_the_definitions(capsys):
    assert said(capsys, "type", PRODUCT) == "f   R * R -> R\nit  (R * R)^\n"


def test_grad_gives_value_and_gradient(capsys):
    found = said(capsys, "grad", PRODUCT, "--def", "f", "--at", "<1, 3>")
    assert found == "value     484\ngradient  [covec(660)|covec(528)]\n"


def test_step_prints_terms(capsys):
    first, second, *_ = said(capsys, "step", PRODUCT, "--steps", "2").splitlines()
    assert first.startswith("let f = ")
    assert second == "pull(\\p:R * R. square(multiply(g(p))); \\z:R. covec(1)) <1, 3>"


def test_trace_marks_the_redex_and_ends_with_the_value(capsys):
    lines = said(capsys, "trace", PRODUCT).splitlines()
    assert lines[3].endswith(
        "pick(dual(\\<dp%1>. <dp%1, J{g}(dp%1) <1, 3>>; pull(\\<p%1, a%2>. let a%3 = "
        "multiply(a%2) in let a%4 = square(a%3) in a%4; \\z:R. covec(1))<<1, 3>, «g(1, 3)»>))"
    )
    assert lines[-1].split() == ["value", "[covec(660)|covec(528)]"]
    steps = json.loads(said(capsys, "trace", PRODUCT, "--json"))
    assert [s["rule"] for s in steps][:4] == ["1", "A", "15", "3"]
    page = said(capsys, "trace", PRODUCT, "--html")
    assert "<mark>g(1, 3)</mark>" in page
    assert "Value: <code>[covec(660)|covec(528)]</code>" in page


def test_what_is_wrong_with_a_file_goes_to_stderr(capsys, tmp_path):
    file = tmp_path / "p.pb"
    file.write_text("let f x = x in\nf <1,\n")
    assert refused(capsys, "run", str(file)) == (
        f"{file}:3:1: the text ends here; expected a term\n  \n  ^"
    )
    file.write_bytes(b"1 + \xff")
    assert refused(capsys, "run", str(file)) == f"{file}: the byte 0xff at 4 is not UTF-8"
    assert refused(capsys, "run", "no.pb") == ("no.pb: cannot be read: No such file or directory")
    assert refused(capsys, "run", PRODUCT, "--def", "ff") == (
        f"{PRODUCT}: there is no definition ff; did you mean f?"
    )
    assert refused(capsys, "grad", PRODUCT, "--def", "f") == "--at is missing: a value of R * R"
    assert refused(capsys, "grad", PRODUCT, "--def", "f", "--at", "3") == (
        "--at:1:1: expected R * R, found R\n  3\n  ^"
    )


def test_wrong_use_exits_with_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["calculus", "fly", PRODUCT])
    assert caught.value.code == 2
    assert main(["calculus", "run"]) == 2
    assert capsys.readouterr().err.endswith("calculus run: the file is missing\n")


@pytest.mark.parametrize("order", ["run {} --json", "run --json {}", "--json run {}"])
def test_options_may_stand_anywhere(order, tmp_path, capsys):
    file = tmp_path / "sum.pb"
    file.write_text("1 + 2")
    assert main(["calculus", *order.format(file).split()]) == 0
    assert capsys.readouterr().out == '{"value": "3"}\n'


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    file = tmp_path / "long.pb"
    file.write_text("fold (\\x. \\y. x + y) 0 (map (\\n. real(n)) (range 0i 40i))")
    command = [sys.executable, "-m", "lineara", "calculus", "trace", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline().startswith(b"  1  1     let")
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 1


def test_a_session_keeps_definitions():
    held = Session(None, 100)
    assert list(held.answer("def square_of x = x * x")) == []
    assert list(held.answer("square_of 3")) == ["9 : R"]
    assert list(held.answer(":type square_of")) == ["R -> R"]
    assert list(held.answer(":grad square_of 3")) == ["covec(6) : R^"]
    assert "square_of" in held.names()
    with pytest.raises(CalculusError, match="squareof is not known here; did you mean square_of"):
        list(held.answer("squareof 3"))


def test_a_terminal_shows_the_redex_in_colour():
    console = Console(width=200, force_terminal=True, color_system="standard", file=io.StringIO())
    for step in calculus.trace("(\\x. x * x) 3"):
        console.print(rich_text(step))
    text = console.file.getvalue()
    assert ";7mmultiply(3, 3)\x1b[0m" in text


def test_the_session_reads_until_it_ends(capsys, monkeypatch):
    lines = iter(["1 + 1", "fst 3", ":fly", ":trace 1 + 1", ":quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    assert main(["calculus", "session"]) == 0
    found = capsys.readouterr()
    said = found.out.splitlines()
    assert said[:3] == [":help says what there is", "2 : R", "there is no command :fly"]
    assert said[-2:] == ["  1  sum   sum                       «1 + 1»", "2"]
    assert found.err.startswith("1:5: expected a * b, found R; fst takes a pair")


# --- called from Python ---------------------------------------------------------------------------


def test_a_function_of_the_calculus_is_one_of_python():
    f = calculus.function("\\<x, y>. x * sin(y)")
    assert f((2.0, 0.5)) == pytest.approx(2 * np.sin(0.5))
    assert lineara.grad(f)((2.0, 0.5)) == pytest.approx((np.sin(0.5), 2 * np.cos(0.5)))


def test_eager_goes_through_derivatives_of_the_calculus():
    second = calculus.function("\\x. pull(\\y. y * y * y; \\_. covec(1)) x @ 1")
    assert second(2.0) == 12.0
    assert lineara.grad(second)(2.0) == 12.0
    assert lineara.grad(lineara.grad(second))(2.0) == 6.0


@pytest.mark.parametrize("body", ["x + y", "x * y", "x - y", "x / y", "atan2(x, y)", "hypot(x, y)"])
def test_traced_numbers_meet_those_of_a_tape(body):
    f = calculus.function(f"\\x. pull(\\y. {body}; \\_. covec(1)) x @ (x * x)")
    direct = calculus.function(f"\\x. J(\\y. {body}; x * x) x")
    h = 1e-6
    for g in (f, direct):
        slope = (f(2.0 + h) - f(2.0 - h)) / (2 * h)
        assert g(2.0) == pytest.approx(f(2.0))
        assert lineara.grad(g)(2.0) == pytest.approx(slope, rel=1e-6)
        assert lineara.trace(g, 2.0)(2.0) == pytest.approx(f(2.0))


def test_lists_functionals_and_functions_cross_the_border():
    gradient = calculus.function("\\l. pull(fold (\\x. \\y. x * y) 1; \\_. covec(1)) l")
    assert gradient([2.0, 3.0, 4.0]) == [12.0, 8.0, 6.0]
    twice = calculus.function("\\f:R -> R. f (f 2)")
    assert twice(calculus.term("\\x. x * x")) == 16.0
    captured = calculus.term("let a = sin(2) in let b = cos(2) in \\x. a * x + b")
    f = calculus.function("\\f:R -> R. \\y. let u = f y in let v = f u in u * v")
    a, b = np.sin(2), np.cos(2)
    assert f(captured, 3.0) == pytest.approx((a * 3 + b) * (a * (a * 3 + b) + b))
    with pytest.raises(CalculusError, match=r"^R \* R is a tuple, but 3\.0 is given$"):
        calculus.function("\\p. fst p + snd p")(3.0)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("\\x. x * x", (1.0, 2.0), "R is a number, but (1.0, 2.0) is given"),
        ("\\x. x * x", "2", "R is a number, but '2' is given"),
        ("\\x. x * x", None, "R is a number, but None is given"),
        ("\\p:R * R. snd p", (1.0, 2.0, 3.0), "R is a number, but (2.0, 3.0) is given"),
        ("\\l. fold (\\x. \\y. x * y) 1 l", 3.0, "List R is a list, but 3.0 is given"),
        ("\\n:Int. n", 2.5, "Int is asked for, but 2.5 is given"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(text, given, message):
    with pytest.raises(CalculusError) as caught:
        calculus.function(text)(given)
    assert caught.value.message == message

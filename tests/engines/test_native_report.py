"""What is said of machine code: what is on tapes, what was called back, and each line's code."""

import dataclasses
import itertools
import re
import time

import numpy as np
import pytest
from call_counts import calls

import lineara
from lineara.engines.native import report
from lineara.errors import StagingError
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")


def recurrence(x):
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def sorted_sum(x):
    return np.sum(np.sort(x) * np.arange(300.0))


def squared(x):
    while x < 100.0:
        x = x * x
    return x


def said(f, *args):
    return lineara.explain(f, *args).machine_code


def test_the_tape_is_told_and_nothing_is_called_back():
    f = lineara.jit(lineara.grad(recurrence), engine="native")
    f(np.ones(50))
    operations, tape, line = said(f, np.ones(50))
    assert re.fullmatch(r"\d+ operations, 0 bytes of workspace", operations)
    assert tape == "on a tape: f64 in each of 49 rounds, 392 bytes"
    place = recurrence.__code__.co_firstlineno + 4
    assert line == f"  at test_native_report.py:{place}: y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]"
    assert "machine code\n    " + operations in str(lineara.explain(f, np.ones(50)))


def test_a_while_loop_has_as_many_rows_as_rounds():
    told = said(lineara.jit(lineara.grad(squared)), 8.0)
    assert "on a tape: f64 in each of as many rounds as there are" in told


def test_calls_back_are_counted():
    f = lineara.jit(sorted_sum, engine="native")
    for _ in range(3):
        f(np.ones(300))
    told = said(f, np.ones(300))
    (i,) = [i for i, s in enumerate(told) if s.startswith("called back: argsort")]
    assert re.fullmatch(
        r"called back: argsort\(f64\[300\]\): 3 times, [\d.]+ (µs|ms) each", told[i]
    )
    place = sorted_sum.__code__.co_firstlineno + 1
    assert (
        told[i + 1]
        == f"  at test_native_report.py:{place}: return np.sum(np.sort(x) * np.arange(300.0))"
    )


def test_one_call_back_is_told_as_one():
    f = lineara.jit(lambda x: x[np.argsort(x)][0], engine="native")
    f(np.ones(300))
    (told,) = [s for s in said(f, np.ones(300)) if s.startswith("called back: argsort")]
    assert re.fullmatch(r"called back: argsort\(f64\[300\]\): once, [\d.]+ (µs|ms)", told)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (4e-7, "0.4 µs"),
        (9.99e-4, "999.0 µs"),
        (1e-3, "1.0 ms"),
        (0.2620677, "262.1 ms"),
        (75, "75.0 s"),
    ],
)
def test_what_takes_long_is_told_in_larger_units(seconds, said):
    assert str(report.CalledBack("f", 1, seconds)) == f"f: once, {said}"
    assert str(report.CalledBack("f", 2, 2 * seconds)) == f"f: 2 times, {said} each"


def smooth(x):
    z = np.exp(x - 1.0)
    return np.sum(z * np.tanh(x))


def test_what_is_fused_names_the_lines_of_the_user():
    f = lineara.jit(lineara.grad(smooth), engine="native")
    x = np.linspace(0.0, 1.0, 10_000)
    f(x)
    told = said(f, x)
    fused = [i for i, s in enumerate(told) if s.startswith("fused: ")]
    assert fused
    first = smooth.__code__.co_firstlineno
    lines = {
        f"  at test_native_report.py:{first + 1}: z = np.exp(x - 1.0)",
        f"  at test_native_report.py:{first + 2}: return np.sum(z * np.tanh(x))",
    }
    assert all([told[i + 1] in lines for i in fused])
    assert lines == {s for s in told if s.startswith("  at")}


def test_what_was_not_compiled_yet_says_so():
    f = lineara.jit(recurrence)
    f(np.ones(5))
    assert "interpreted so far: it is compiled once that pays" in said(f, np.ones(5))
    at_once = lineara.jit(lambda x: x * 3.0, engine="native")
    assert said(at_once, np.ones(5))[1] == "not compiled yet: the first call does that"
    at_once(np.ones(5))
    assert not [s for s in said(at_once, np.ones(5)) if "yet" in s]


def test_what_is_refused_says_why():
    def f(x):
        return x * x

    args = (np.ones(3, np.clongdouble),)
    refused = "interpreted: f is not lowered: it has values of the type c256[3]"
    assert said(f, *args) == (refused,)
    asked = lineara.jit(f, engine="interpreter")
    assert said(asked, *args) == ("interpreted: engine='interpreter' was asked for",)
    with pytest.raises(StagingError, match=r"stages: there is no machine code: .* c256"):
        _ = lineara.stages(f, *args).machine_code


def test_every_line_of_the_program_stands_above_its_code():
    x = np.ones(50)
    listed = lineara.stages(recurrence, x).machine_code
    comments = re.findall(r"^  ; (.*)$", listed.llvm, re.M)
    line = f"  at test_native_report.py:{recurrence.__code__.co_firstlineno + 4}"
    assert any([c.endswith(f" = v7 * v5{line}") for c in comments])
    kept = re.findall(r"^# (.*)$", listed.assembly, re.M)
    assert set(kept) - {"recurrence.vjp.e begins or ends"} <= set(comments)
    assert any([c.endswith(f" = v7 * v5{line}") for c in kept])
    assert not [a for a, b in itertools.pairwise(kept) if a == b]
    assert "run:" in listed.assembly
    assert str(listed) == listed.llvm
    assert re.fullmatch(r"<Listing: [\d,]+ lines of LLVM, [\d,]+ lines of assembly>", repr(listed))
    assert not re.search(r"\.loc|\.debug|\.cfi", listed.assembly)


def test_functions_of_the_module_have_no_lines_of_the_program():
    listed = lineara.stages(lineara.jit(lambda a: np.linalg.det(a)), np.eye(4)).machine_code
    (helper,) = re.findall(
        r'(?m)^define internal i1 @"lineara.factor.4".*\n(?:.*\n)+?}', listed.llvm
    )
    located, _ = report.located(listed.llvm, "f")
    assert "!dbg" in located
    assert helper in located  # as it was


def test_one_operation_is_told_as_one():
    told = [said(lineara.jit(f, engine="native"), 3.0)[0] for f in (lambda x: x, lambda x: x * x)]
    assert [t.partition(",")[0] for t in told] == ["1 operation", "2 operations"]


def test_what_a_definition_ends_with_is_a_line_too():
    from lineara.engines.native.lower import lowered

    program = parse("def f(x: f64;) -> (f64;) = let y = cos(x) in sin(y)")
    comments = re.findall(r"^  ; (.*)$", lowered(program, "f", listed=True).text, re.M)
    assert comments == ["f: y: f64 = cos(x)", "f: sin(y)"]
    assert not re.findall(r"^  ; ", lowered(program, "f").text, re.M)


def test_the_code_that_is_listed_is_the_code_that_runs():
    program = lineara.jit(recurrence).program(np.ones(9))
    from lineara.engines.native.lower import lowered

    plain = lowered(program.program, program.name)
    listed = lowered(program.program, program.name, listed=True)
    rest = [row for row in listed.text.splitlines() if not row.startswith("  ; ")]
    assert rest == plain.text.splitlines()


def test_without_llvmlite_there_is_no_machine_code(monkeypatch):
    monkeypatch.setattr("lineara.engines.native.report.compiler", lambda: None)
    text = (
        "stages: there is no machine code: it compiles with llvmlite, which is not installed "
        "(`pip install llvmlite`); the program runs interpreted"
    )
    with pytest.raises(StagingError, match=re.escape(text)):
        _ = lineara.stages(recurrence, np.ones(3)).machine_code


def test_a_long_compilation_says_its_parts(monkeypatch, capsys):
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + x[i] ** 3
        return s

    x = np.linspace(0.0, 1.0, 9)
    monkeypatch.setattr("lineara.linear_a.program.LONG", 1e9)
    lineara.jit(total, engine="native")(x)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("lineara.linear_a.program.LONG", 0.0)
    gradient = lineara.jit(lineara.grad(total), engine="native")
    for _ in range(2):
        gradient(x)
    said = re.sub(r", \d+ op", ", # op", re.sub(r"\d+\.\d", "#", capsys.readouterr().err))
    assert said.splitlines() == [
        "lineara: total was captured: capture # s, passes # s",
        "lineara: total, # operations, was compiled: passes # s, emission # s, LLVM # s",
    ]
    value = lineara.jit(total, engine="native")
    lineara.grad(value)(x)
    captured, of_value, of_gradient = capsys.readouterr().err.splitlines()
    assert captured.startswith("lineara: total was captured: capture ")
    assert "total, " in of_value
    assert of_gradient.startswith("lineara: total'vjp'e, ")
    assert "passes" in of_gradient
    assert "capture" not in of_gradient


def test_a_long_capture_of_what_is_not_compiled_is_told_of(monkeypatch, capsys):
    monkeypatch.setattr("lineara.linear_a.program.LONG", 0.0)
    for engine in ("interpreter", "adaptive"):
        f = lineara.jit(recurrence, engine=engine)
        for _ in range(2):
            f(np.ones(3))
        said = re.sub(r"\d+\.\d", "#", capsys.readouterr().err)
        assert said == "lineara: recurrence was captured: capture # s, passes # s\n"


def test_what_takes_long_is_the_processors_time_and_not_that_of_others(monkeypatch, capsys):
    years = itertools.count(0.0, 3e7)
    monkeypatch.setattr(time, "perf_counter", lambda: next(years))
    monkeypatch.setattr("lineara.linear_a.program.LONG", 1e6)
    lineara.jit(lineara.grad(recurrence), engine="native")(np.ones(3))
    assert capsys.readouterr().err == ""


def test_a_call_back_takes_few_calls_of_python():
    """A loop may call back in each round."""

    def f(x):
        s = x[0]
        for i in range(1, x.shape[0]):
            s = s * x[i]
        return s

    jitted = lineara.jit(f, engine="native")
    taken = []
    for n in (100, 300):
        x = np.ones(n, np.float32)
        taken.append(calls(lambda x=x: jitted(x), warm=3))
    assert taken[1] - taken[0] <= 400 * 34  # two in a round: an element, and a product


@pytest.mark.parametrize("table", ["sites", "taped", "fused"])
def test_no_places_are_told_of_code_that_is_listed_otherwise(table, monkeypatch, pytestconfig):
    """Places come from a listing, which is a compilation of its own."""
    if pytestconfig.option.bounds:
        pytest.skip("code that looks at its places is not what is listed")

    def both(x):
        return np.sort(np.exp(x) * x + 1.0).sum() + recurrence(x)

    x = np.ones(300)
    f = lineara.jit(lineara.grad(both), engine="native")
    f(x)
    assert any([row.startswith("  at ") for row in said(f, x)])
    own = report.lowered

    def lowered(*args, listed=False, **options):
        code = own(*args, listed=listed, **options)
        rows = getattr(code, table)
        assert rows
        return dataclasses.replace(code, **{table: rows[1:]}) if listed else code

    monkeypatch.setattr(report, "lowered", lowered)
    assert not [row for row in said(f, x) if row.startswith("  at ")]

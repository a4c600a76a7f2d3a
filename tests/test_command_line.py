"""Functions on the command line: what `explore` and `diagram` say of good and of bad input."""

import json
import re
import sys

import numpy as np
import pytest

import lineara
from lineara.__main__ import main
from lineara.errors import DiagramError

MODEL = r"""import numpy as np

def two(x, y):
    return x * y

def shapes(x):
    y = np.ones(3) * x
    return np.sum(y + np.ones(4))

def plain(x):
    return x + [1.0][7]

def text(x):
    return "hello"

def late(x):
    while np.sum(x) > 1.0:
        x = np.sin(x) * 0.5
    return np.sum(x * x)

def rows(x):
    return np.sum(x * x)
"""
SHAPES = (
    "add: cannot broadcast f64[3] with f64[4]; trailing dimensions must be equal or 1\n"
    "  at model.py:8 in shapes: return np.sum(y + np.ones(4))\n"
)
TWO = "a JSON list with a value for each parameter: --args '[x, y]'\n"
ONE = "a JSON list with a value for each parameter: --args '[x]'\n"


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("model", "kept_in_a_module"):
        (tmp_path / f"{name}.py").write_text(MODEL)
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "broken.py").write_text("x = 1\n1 / 0\n")
    np.save(tmp_path / "x.npy", np.ones(3))
    return tmp_path


COMMANDS = [["explore"], ["diagram"], ["diagram", "--linear"]]
REFUSED = [
    ("model.py:shapes", "[2.0]", SHAPES),
    ("model.py:two", "[1.0]", "two(x, y) does not take 1 argument: missing a required argument: "
     f"'y'; --args is {TWO}"),
    ("model.py:two", "[1, 2, 3]", "two(x, y) does not take 3 arguments: too many positional "
     f"arguments; --args is {TWO}"),
    ("model.py:rows", "[[[1, 2], [3]]]", "the argument 1 of --args is no array: its lists are not "
     "equally long, or hold something other than numbers\n"),
    ("model.py:rows", "[@y.npy]", "the argument 1 of --args: y.npy cannot be read: No such file or "
     "directory\n"),
    ("model.py:plain", "[1.0]", "model.py:plain failed at these arguments: IndexError: list index "
     "out of range\n  at model.py:11 in plain: return x + [1.0][7]\n"),
    ("model.py:row", "[1.0]", "model.py has no function row; did you mean rows?\n"),
    ("nothing.py:row", "[1.0]", "there is no file nothing.py\n"),
    ("no_module:row", "[1.0]", "no_module cannot be imported: ModuleNotFoundError: No module named "
     "'no_module'\n"),
    ("broken.py:f", "[1.0]", "broken.py failed as it was run: ZeroDivisionError: division by zero\n"
     "  at broken.py:2 in <module>: 1 / 0\n"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("source", "args", "message"), REFUSED)
def test_what_is_refused_has_the_users_line_and_says_what_would_work(
    model, capsys, command, source, args, message
):
    assert main([*command, source, "--args", args, "-o", "out.html"]) == 1
    assert capsys.readouterr().err == message
    assert not (model / "out.html").exists()


def test_without_arguments_it_says_which(model, capsys):
    for command in (["explore"], ["diagram", "--linear"]):
        assert main([*command, "model.py:two", "-o", "out.html"]) == 1
        assert capsys.readouterr().err == (
            "two(x, y) does not take 0 arguments: missing a required argument: 'x'; "
            f"--args is {TWO}"
        )
    assert main(["diagram", "model.py:shapes", "-o", "out.svg"]) == 1
    assert capsys.readouterr().err == (
        f"{model}/model.py:7:9: numpy.ones has no counterpart in the calculus\n"
        "      y = np.ones(3) * x\n          ^\n"
        f"with --args it is traced instead: {ONE}"
    )


def test_a_function_is_found_in_a_file_and_in_a_module_and_arrays_in_files(model, capsys):
    for command in COMMANDS:
        for source in ("model.py:rows", f"{model}/model.py:rows", "kept_in_a_module:rows"):
            assert main([*command, source, "--args", "[@x.npy]", "-o", "out.html"]) == 0
            assert capsys.readouterr().err == ""


@pytest.mark.parametrize("args", [(1.0,), (1.0, 2.0, 3.0)])
@pytest.mark.parametrize("by", ["", "source", "trace", "linear"])
def test_a_diagram_refuses_arguments_that_the_function_does_not_take(args, by):
    def two(x, y):
        return x * y

    with pytest.raises(DiagramError) as caught:
        lineara.diagram(two, *args, by=by)
    assert re.fullmatch(
        r"diagram: two\(x, y\) does not take \d arguments?: (missing a required|too many).*",
        str(caught.value),
    )


def test_a_term_takes_no_arguments():
    term = lineara.calculus.term(r"\x:R. x")
    with pytest.raises(DiagramError, match="a term is drawn as it is, and takes no arguments"):
        lineara.diagram(term, 1.0)


def test_a_function_without_numbers_is_refused(model, capsys):
    assert main(["explore", "model.py:text", "--args", "[1.0]", "-o", "out.html"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "explore: text returned str 'hello', which has no derivative; return numbers, arrays or "
        "containers of them\n"
    )


def test_a_while_loop_over_the_arguments_is_explored(model, capsys):
    args = json.dumps([[8.0, 9.0, 7.5]])
    assert main(["explore", "model.py:late", "--args", args, "-o", "out.html"]) == 0
    assert "np.sin(x) * 0.5" in capsys.readouterr().out.split("\n")[1]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("diagram", "--step"), ("diagram", "--fold"), ("run", "--fuel"), ("grad", "--fuel"),
        ("calculus run", "--fuel"), ("calculus step", "--steps"),
        ("crosscheck", "--seed"), ("demo", "--seed"),
    ],
)  # fmt: skip
def test_a_number_of_an_option_is_not_negative(capsys, command, option):
    needed = ["--def", "f"] if command in ("run", "grad") else []
    file = ["FILE"] if command not in ("crosscheck", "demo") else []
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), *file, option, "-1", *needed])
    assert caught.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"python -m lineara {command.split()[0]}: error: argument {option}: "
        "a whole number of at least 0 is needed, '-1' was given"
    )


def test_a_missing_action_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["calculus"])
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == (
        "python -m lineara calculus: error: the following arguments are required: action"
    )
    assert "{run,type,step,trace,grad,linear-a,session}" in " ".join(said.split())

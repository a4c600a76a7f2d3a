"""SVG, and `python -m lineara diagram`: what they draw, and what they refuse."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lineara.__main__ import main
from lineara.diagrams import adjoint, history, isomorphic, parse, svg
from lineara.errors import DiagramError

EXAMPLE = "(x: R) => a, b = copy(x) y = multiply(a, b) -> y\n"
CALCULUS = "\\x. let mul = \\y. x * y in mul x + x\n"


def square(x):
    return x * x


def classes(text: str) -> list[str]:
    return [e.get("class", "") for e in ElementTree.fromstring(text).iter()]


def test_the_same_diagram_is_the_same_svg():
    assert svg(parse(EXAMPLE)) == svg(parse(EXAMPLE))
    assert parse(EXAMPLE)._repr_svg_() == svg(parse(EXAMPLE))


def test_an_svg_has_a_shape_for_every_node_and_wire():
    text = svg(parse(EXAMPLE), legend=False)
    found = classes(text)
    assert found.count("node copy") == 1
    assert found.count("node op") == 1
    assert found.count("wire real") == 4
    assert text.count(">x1</text>") == 1
    assert "<desc>(x1: R) =&gt;" in text


def test_what_is_written_is_escaped():
    net = parse('(x: R) => y: R = frame["<&>"](x) {() => ->} -> y')
    found = [e.text for e in ElementTree.fromstring(svg(net)).iter() if e.text]
    assert "<&>" in found


def test_wires_that_differ_in_kind_look_different():
    found = set(classes(svg(adjoint(parse(CLOSURE)))))
    assert {"wire real", "wire function", "wire bundle"} <= found
    assert "wire real linear" in classes(svg(parse("(~a: R) => -> ~a")))


CLOSURE = "(x: R) => f = box(x) { (c: R) => -> c } y = eval(f) -> y"


def test_light_dark_and_printed():
    text = svg(parse(EXAMPLE))
    for media in ("prefers-color-scheme:dark", "print"):
        assert media in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


# --- the command ----------------------------------------------------------------------------------


def written(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_a_diagram_is_drawn_from_its_text(tmp_path, capsys):
    assert main(["diagram", written(tmp_path, "a.diagram", EXAMPLE)]) == 0
    assert capsys.readouterr().out == svg(parse(EXAMPLE))


def test_a_step_is_drawn(tmp_path):
    file, out = written(tmp_path, "a.pb", CALCULUS), tmp_path / "out.svg"
    assert main(["diagram", file, "--step", "1", "-o", str(out)]) == 0
    assert {"node around orange", "node around green"} <= set(classes(out.read_text()))
    out = tmp_path / "out.diagram"
    assert main(["diagram", file, "--step", "18", "-o", str(out)]) == 0
    worked = parse(
        "(x: R) => x1, x2 = copy(x) m = box(x1) { (c: R, y: R) => p = multiply(c, y) -> p } "
        "x3, x4 = copy(x2) a = eval(m, x3) z = add(a, x4) -> z"
    )
    (*_, (_, _, last)) = history(worked)
    assert isomorphic(parse(out.read_text()), last)


def test_a_linear_a_program_is_drawn(tmp_path, capsys):
    text = "def f(x: f64; ~a: f64) -> (; f64) = x * ~a\ndef g(x: f64;) -> (f64;) = sin(x)\n"
    file = written(tmp_path, "a.lina", text)
    assert main(["diagram", file, "--def", "f"]) == 0
    assert classes(capsys.readouterr().out).count("wire real linear") == 2
    assert main(["diagram", file]) == 2
    assert capsys.readouterr().err == (
        f"diagram: {file} has several definitions, --def says which: f, g\n"
    )
    assert main(["diagram", file, "--def", "h"]) == 1
    assert capsys.readouterr().err == f"{file}: there is no definition h; there is f, g\n"


def test_a_frame_is_drawn_around_all_its_bodies():
    net = parse(
        '(x: R) => y: R = frame["cond"](x) { (a: R) => b = sin(a) -> b } '
        "{ (a: R) => b = cos(a) -> b } -> y"
    )
    found = classes(svg(net, legend=False))
    assert found.count("node op") == 2
    assert found.count("node around frame") == 1


def test_an_ill_typed_program_is_not_drawn(tmp_path, capsys):
    text = "def f(x: f64;) -> (f64;) =\n  sin(y)\n"
    assert main(["diagram", written(tmp_path, "a.lina", text)]) == 1
    assert "a.lina:2:" in capsys.readouterr().err


def test_a_function_of_arrays_is_traced(capsys):
    assert main(["diagram", "diagrams.test_pictures:square", "--args", "[[1, 2]]"]) == 0
    assert "f64[2]" in capsys.readouterr().out


def test_a_function_is_drawn(capsys):
    assert main(["diagram", "diagrams.test_pictures:square"]) == 0
    assert classes(capsys.readouterr().out).count("node op") == 1


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["no.pb"], 1, "no.pb: cannot be read: No such file or directory"),
        (["no.txt"], 2, "diagram: no.txt is neither of FILE.pb (calculus), FILE.lina (Linear "
         "A), FILE.diagram (the notation of diagrams), FILE.py:function or module:function"),
        (["no_such_module:f"], 1, "no_such_module cannot be imported: "
         "ModuleNotFoundError: No module named 'no_such_module'"),
        (["math:nothing"], 1, "math has no function nothing"),
        (["math:frexp"], 1, "math.frexp is no function whose source can be read\n"
         "with --args it is traced instead: a JSON list with a value for each parameter: --args "
         "'[x]'"),
        (["a.diagram", "--step", "99"], 1, "a.diagram: the differentiation ends after 7 steps; "
         "--step 99 is none of them"),
        (["a.diagram", "-o", "a.gif"], 2, "diagram: -o a.gif: pictures end in .svg, .html, "
         ".diagram"),
        (["a.diagram", "-o", "no/a.svg"], 1, "no/a.svg: cannot be written: No such file or "
         "directory"),
        (["a.diagram", "-o", "a.html", "--step", "1"], 2, "diagram: a page plays all steps; -o "
         "OUT.svg draws one of them"),
        (["a.diagram", "-o", "b.diagram", "--all"], 2, "diagram: a text has one diagram; --step K "
         "chooses it"),
        (["a.diagram", "--gradient"], 2, "diagram: --gradient goes with --all, or -o OUT.html"),
        (["a.diagram", "--all", "--fold", "1"], 2, "diagram: --fold goes with one picture; a page "
         "folds by itself"),
        (["c.diagram", "--all", "--gradient"], 1, "a gradient is of a diagram with one real "
         "output"),
        (["b.diagram"], 1, "b.diagram:1:15: there is no operation sine; did you mean sin?\n"
         "  (x: R) => y = sine(x) -> y\n                ^"),
        (["c.pb"], 1, None),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn(argv, status, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "a.diagram", EXAMPLE)
    written(tmp_path, "b.diagram", "(x: R) => y = sine(x) -> y")
    written(tmp_path, "c.diagram", "(x: R) => a, b = copy(x) -> a, b")
    written(tmp_path, "c.pb", "\\x. x * ")
    kept = written(tmp_path, "kept.svg", "as it was")
    out = [] if "-o" in argv else ["-o", "kept.svg"]
    assert main(["diagram", *argv, *out]) == status
    found = capsys.readouterr()
    assert found.out == ""
    if message is not None:
        assert found.err == f"{message}\n"
    assert "c.pb:" in found.err or "c.pb" not in argv
    assert Path(kept).read_text() == "as it was"


def test_a_diagram_that_is_too_large_is_not_drawn(tmp_path, capsys):
    lines = "".join([f"x{i + 1} = sin(x{i}) " for i in range(1600)])
    inner = f"(x0: R) => {lines} -> x1600"
    text = f"(x: R) => f = box() {{ {inner} }} y = eval(f, x) -> y"
    file = written(tmp_path, "a.diagram", text)
    assert main(["diagram", file]) == 1
    assert capsys.readouterr().err == (
        "the picture would show 1602 nodes, and can be read with up to 1500; fold=0 (--fold 0) "
        "shuts the boxes within 0 others, and leaves 2\n"
    )
    assert main(["diagram", file, "--fold", "0"]) == 0
    with pytest.raises(DiagramError, match="--fold 0"):
        svg(parse(text))

"""The page that plays a differentiation: what it holds, and what it does in a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from diagrams.judge import program
from diagrams.test_layout import WORKED

from lineara.__main__ import main
from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.bridges.python_and_diagrams import diagram
from lineara.diagrams import check, history, parse, show
from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.canonical import isomorphic
from lineara.diagrams.cells import cells
from lineara.diagrams.moments import LONGEST, differentiated
from lineara.diagrams.net import Net, nodes_in
from lineara.diagrams.node_kinds import PLAIN
from lineara.diagrams.pictured import RULES, SIMPLIFIED, pictured
from lineara.diagrams.player import Reel, Shot, derivation, differentiation, page
from lineara.diagrams.simplify import SCHEMAS
from lineara.diagrams.still import seen
from lineara.diagrams.types import R
from lineara.engines import run as run_program
from lineara.errors import DiagramError
from lineara.linear_a.parse import parse as read_program

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


def film(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="film">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.fixture(scope="module")
def worked() -> list[Shot]:
    return differentiation(parse(WORKED), gradient=True).shots


def test_the_worked_example_is_played_to_its_simplified_gradient(worked):
    rules = [shot.rule for shot in worked]
    assert rules[1:19] == [step.rule for step, _, _ in history(parse(WORKED))]
    assert (
        isomorphic(
            parse(worked[-1].text),
            parse("(x: R) => a, b = copy(x) k = const[1.0]() u = add(b, k) v = add(a, u) -> v"),
        )
        or worked[-1].text.count("add") == 2
    )
    assert all([shot.said for shot in worked])


def test_every_text_of_a_shot_is_its_diagram(worked):
    after = [net for _, _, net in history(parse(WORKED))]
    for shot, net in zip(worked[1:], after, strict=False):
        assert isomorphic(parse(shot.text), parse(show(net)))


def models(shots) -> list[tuple[dict, dict]]:
    """What there is after each shot, as a page finds it: blocks and wires by their keys."""
    blocks, wires, found = {}, {}, []
    for shot in shots:
        for key in shot.change.gone:
            del blocks[key]
        for key in shot.change.cut:
            del wires[key]
        blocks |= {b.key: (b, name) for b, name, _ in shot.change.put}
        wires |= {w.key: w for w, _ in shot.change.wire}
        found.append((dict(blocks), dict(wires)))
    return found


def test_what_fires_is_there_what_is_new_is_new_and_every_wire_has_its_ends(worked):
    seen_before: set[str] = set()
    for (shot, after), (blocks, wires) in zip(
        zip(worked, [*worked[1:], None], strict=True), models(worked), strict=True
    ):
        if after is not None and after.rule:
            assert shot.fires in blocks
        assert not seen_before & set(shot.made)
        assert {end.key for w in wires.values() for end in (w.source, w.target)} <= set(blocks)
        ends = [end for w in wires.values() for end in (w.source, w.target)]
        assert len(ends) == len(set(ends))  # a wire ends alone at a port
        seen_before = set(blocks) - {shot.fires}


def test_every_rule_is_said_and_has_a_picture():
    kinds = set(PLAIN) - {"frame"}
    wanted = {f"{side}-{kind}" for side in "OG" for kind in kinds} | {"blue", "O-id", "G-id"}
    assert wanted | set(SCHEMAS) == set(RULES)
    assert set(SIMPLIFIED) == set(SCHEMAS)


@pytest.mark.parametrize("rule", sorted(SCHEMAS))
def test_the_picture_of_a_schema_is_what_it_does(rule):
    found = pictured(rule, None)
    assert found is not None
    check(found.left)
    check(found.right)
    assert not isomorphic(found.left, found.right)
    assert (found.left.takes, found.left.gives) == (found.right.takes, found.right.gives)


EVERY_KIND = """(x: R, c: B, xs: stack[3, R]) =>
  x1, x2 = copy(x)   x3, x4 = copy(x2)
  k = const[2.0]()
  m = box(x1, k) { (a: R, b: R, y: R) => p = multiply(a, b) q = multiply(p, y) -> q }
  n = box() { (y: R) => z = zero[R]() w = add[R](y, z) -> w }
  g = sel(c, m, n)
  u = eval(g, x3)
  f = box() { (s: R, r: R) => t = multiply(s, r)  a, b = copy(t) -> a, b }
  v, ys = scan[3, 1, fwd](f, u, xs)
  drop(ys)
  z = add(v, x4)
  -> z"""


def test_the_picture_of_a_step_is_what_it_does():
    """At every node of a diagram and of its adjoint: well formed, and of one interface."""
    seen = set()
    for net in (parse(EVERY_KIND), adjoint(parse(EVERY_KIND))):
        for node in nodes_in(net):
            for side in "OG":
                found = pictured(f"{side}-{node.kind}", node)
                assert found is not None
                seen.add((side, node.kind))
                check(found.left, finished=False)
                check(found.right, finished=False)
                assert found.left.takes == found.right.takes
                assert found.left.gives == found.right.gives
    for rule in ("blue", "O-id", "G-id"):
        found = pictured(rule, None)
        assert found is not None
        assert (found.left.takes, found.left.gives) == (found.right.takes, found.right.gives)
    assert {kind for _, kind in seen} == set(PLAIN) - {"frame"}


@pytest.mark.slow("draws three pages")
def test_a_page_stands_by_itself(tmp_path):
    (tmp_path / "a.diagram").write_text(WORKED)
    out = tmp_path / "a.html"
    assert main(["diagram", str(tmp_path / "a.diagram"), "--gradient", "-o", str(out)]) == 0
    text = out.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "@" not in re.sub(r"@media|<script type=.*?</script>", "", text, flags=re.DOTALL)
    found = film(text)
    assert len(found["shots"]) == 19 + 16
    assert {shot["said"] for shot in found["shots"]} == set(range(len(found["said"])))
    for words in ('aria-live="polite"', "prefers-reduced-motion", "focus-visible", "<label>Step"):
        assert words in text
    assert page(parse(WORKED)) == page(parse(WORKED))


def compared(net: Net) -> None:
    """After every step: what the steps have changed is what a look at the whole finds."""
    reel = Reel(texts=False)

    def visit(m) -> None:
        reel.visit(m)
        whole = seen(m.net, reel.namer)
        ends = {(w.source, w.target) for w, _ in reel.film.wires.values()}
        assert ends == {(w.source, w.target) for w in whole.wires.values()}, m.rule
        known = {k: b for k, (b, _, _) in reel.film.blocks.items()}
        assert known.keys() == whole.blocks.keys(), m.rule
        nodes = [k for k, b in known.items() if b.looks.startswith("node")]
        assert [known[k] for k in nodes] == [whole.blocks[k] for k in nodes]

    places, _ = cells(*differentiated(net, visit))
    for _, named in zip(reel.shots, models(reel.shots), strict=True):
        for block, name in named[0].values():
            assert name in places or block.title in ("BLUE", "ORANGE", "GREEN"), block


@pytest.mark.parametrize("text", ["worked", "every kind"])
def test_a_step_changes_what_a_look_at_the_whole_finds_changed(text):
    compared(parse({"worked": WORKED, "every kind": EVERY_KIND}[text]))


@pytest.mark.slow("a look at the whole after each of 600 steps: 3 s")
@pytest.mark.parametrize("seed", range(6))
def test_a_step_of_a_random_program_changes_what_a_look_finds_changed(seed):
    compared(diagram_of(program(seed)))


def chain(n: int) -> Net:
    """n operations, every other one of an input that is copied throughout."""
    net = Net()
    a, b = net.add("copy", (net.input(R),))
    for i in range(n):
        if i % 2:
            (a,) = net.add("op", (a,), name="sin")
        else:
            c, b = net.add("copy", (b,))
            (a,) = net.add("op", (a, c), name="multiply")
    net.add("drop", (b,))
    net.output(a)
    return net


def test_a_page_grows_with_the_number_of_operations():
    """Blocks and wires that are written, at two sizes: the same for each operation."""
    written = []
    for n in (40, 80):
        shots = differentiation(chain(n)).shots
        written.append(sum([len(s.change.put) + len(s.change.wire) for s in shots]) / n)
        assert len(shots) == 4 + 2 * (n + n // 2 + 2)
    assert written[1] <= 1.02 * written[0]


def test_a_page_of_twice_as_many_operations_is_at_most_twice_as_long():
    """Long wires too: these have a bend in each column that they pass."""
    once, twice = [len(page(chain(n))) for n in (75, 150)]
    assert twice <= 2 * once


def test_a_function_from_outside_is_said_instead_of_the_program():
    (first, *_) = differentiation(
        parse("(f: (R -> R)) => c = const[1.0]() y = eval(f, c) -> y")
    ).shots
    assert first.program.startswith("# a function that comes from outside has no text in Linear A")


def test_all_steps_on_a_sheet(tmp_path):
    (tmp_path / "a.diagram").write_text(WORKED)
    out = tmp_path / "a.svg"
    assert main(["diagram", str(tmp_path / "a.diagram"), "--all", "-o", str(out)]) == 0
    assert out.read_text().count('class="step"') == 19


def test_a_differentiation_that_is_too_long_to_play():
    net = Net()
    (w,) = net.add("const", data=1.0)
    for _ in range(LONGEST // 2):
        (w,) = net.add("op", (w,), name="sin")
    net.output(w)
    with pytest.raises(DiagramError) as caught:
        page(net)
    assert str(caught.value) == (
        "there are 6005 steps or more, and a page plays up to 6000; draw single steps (--step K), "
        "or differentiate a part of the diagram"
    )


LAW = """(c: R, u: R) =>
  d = sin(c)
  f = box(d) { (c: R, x: R) => y = multiply(c, x) -> y }
  z = eval(f, u)
  -> z"""
WRAPPED = LAW.replace("eval(f, u)", "eval(g, u)").replace(
    "  z =", "  g = box(f) { (f: (R -> R), x: R) => y = eval(f, x) -> y }\n  z ="
)


@pytest.mark.parametrize(
    ("law", "rules", "becomes"),
    [
        ("br", ["unfold", "tensor", "composition", "naturality", "triangle"],
         "(c: R, u: R) => d = sin(c) y = multiply(d, u) -> y"),
        ("lamb", ["unfold", "naturality", "composition", "tensor", "fold"],
         "(c: R, u: R) => f = box(c) { (c: R, x: R) => d = sin(c) y = multiply(d, x) -> y } "
         "z = eval(f, u) -> z"),
        ("eta", ["unfold", "triangle"], LAW),
    ],
)  # fmt: skip
def test_the_laws_of_substitution_are_played_from_frames(law, rules, becomes, tmp_path):
    text = WRAPPED if law == "eta" else LAW
    shots = derivation(parse(text), law).shots
    assert [shot.rule for shot in shots] == ["", *rules]
    assert isomorphic(parse(shots[-1].text), parse(becomes))
    there = [set(blocks) for blocks, _ in models(shots)]
    assert all([s.fires in keys for s, keys in zip(shots[:-1], there[:-1], strict=True)])
    for shot in shots:  # what frames stand for is a program, the same throughout
        read = read_program(shot.program)
        assert run_program(read, "program", 0.3, 2.0).results == (np.sin(0.3) * 2.0,)
    (tmp_path / "a.diagram").write_text(text)
    given = ["diagram", str(tmp_path / "a.diagram"), "--law", law, "-o"]
    assert main([*given, str(tmp_path / "a.html")]) == 0
    assert len(film((tmp_path / "a.html").read_text())["shots"]) == len(shots)
    assert main([*given, str(tmp_path / "a.svg"), "--all"]) == 0
    assert (tmp_path / "a.svg").read_text().count('class="step"') == len(shots)


def test_a_law_without_a_place_and_in_a_wrong_place(tmp_path, capsys):
    (tmp_path / "a.diagram").write_text("(x: R) => y = sin(x) -> y")
    given = ["diagram", str(tmp_path / "a.diagram"), "--law", "br"]
    assert main([*given, "--all"]) == 1
    assert capsys.readouterr().err == (
        "there is no place for the law here: (BR): a box that is evaluated where it is made is "
        "its body.\n"
    )
    assert main(given) == 2
    assert capsys.readouterr().err == (
        "diagram: --law goes with --all, or -o OUT.html, and without --gradient\n"
    )


# --- in a browser: that it opens; tests/browser tries every control -------------------------------


@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium to open the page with")
@pytest.mark.slow("starts a browser: 3 s")
def test_the_page_opens_in_a_browser(tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(page(parse(WORKED)))
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000", "--enable-logging=stderr", "--dump-dom",
            f"{file.as_uri()}#1",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    assert "1 of 18</span>" in done.stdout
    assert 'class="head orange"' in done.stdout


def test_a_diagram_without_nodes_has_a_page():
    shots = differentiation(parse("(x: R, y: R) => -> y, x")).shots
    assert [shot.rule for shot in shots] == ["", "blue", "O-id", "G-id"]


EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_the_examples_to_draw_are_worth_it(tmp_path, capsys):
    """A diagram with a closure, and a definition with a linear side, whose tape holds something."""
    closure = str(EXAMPLES / "closure.diagram")
    assert main(["diagram", closure, "--gradient", "-o", str(tmp_path / "a.html")]) == 0
    assert len(film((tmp_path / "a.html").read_text())["shots"]) > 30
    tangent = [str(EXAMPLES / "tangent.lina"), "--def", "f"]
    assert main(["diagram", *tangent, "-o", str(tmp_path / "f.svg")]) == 0
    assert main(["unzip", *tangent]) == 0
    assert "type f.tape = <f64, f64, f64>" in capsys.readouterr().out


def test_a_term_that_cannot_be_drawn_says_which_definitions_can(capsys):
    functional = str(EXAMPLES / "functional.pb")
    assert main(["diagram", functional]) == 1
    assert capsys.readouterr().err == (
        f"{functional}: Pull has no node, and cannot be evaluated beforehand: its value is no "
        "number; take the derivative of the diagram, by diagrams.adjoint\n"
        "--def draws a definition: energy\n"
    )
    assert main(["diagram", functional, "--def", "energy"]) == 0


def chosen(x):
    return np.sin(x) if x > 0.2 else x * x


def test_a_page_of_a_traced_function_has_branches_in_the_place_of_frames():
    net = diagram(chosen, 0.3, by="trace")
    before = show(net)
    assert "cond" in before
    assert "if x > 0.2" in page(net)
    assert show(net) == before

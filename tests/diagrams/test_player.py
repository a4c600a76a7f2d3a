"""The page that plays a differentiation: what it holds, and what it does in a browser."""

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from diagrams.test_layout import WORKED

from lineara.__main__ import main
from lineara.diagrams import check, history, parse, player, show
from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.canonical import isomorphic
from lineara.diagrams.net import Net, nodes_in
from lineara.diagrams.node_kinds import PLAIN
from lineara.diagrams.pictured import RULES, SIMPLIFIED, pictured
from lineara.diagrams.player import CLICKED, Shot, derivation, differentiation, page
from lineara.diagrams.simplify import SCHEMAS
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
    return differentiation(parse(WORKED), gradient=True)


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


def test_a_shape_has_one_key_and_what_stays_keeps_it(worked):
    for shot in worked:
        for shapes, _, _ in shot.scenes:
            keys = [s.key for s in shapes]
            assert len(set(keys)) == len(keys)
    for a, b in pairwise(worked[:19]):
        ours, theirs = ({s.key for s in shot.scenes[0][0]} for shot in (a, b))
        if b.rule not in ("", "blue"):  # all but the node that fired, and the ends of its wires
            assert len(ours - theirs) <= 12


def test_the_node_that_fires_is_there_and_what_is_new_is_new(worked):
    for a, b in pairwise(worked):
        if b.rule:
            assert a.fires in {s.key for s in a.scenes[0][0]}
        taken = {s.key for s in a.scenes[0][0]} - {a.fires}
        assert not taken & set(b.made)


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
    used = {i for shot in found["shots"] for numbers, _ in shot["scenes"] for i in numbers}
    assert used == set(range(len(found["shapes"])))
    for words in ('aria-live="polite"', "prefers-reduced-motion", "focus-visible", "<label>Step"):
        assert words in text
    assert page(parse(WORKED)) == page(parse(WORKED))


def test_every_box_that_is_shown_can_be_shut_alone_and_every_scene_is_named(worked):
    for shot in worked:
        assert set(shot.boxes) <= {name for name in shot.states if "," not in name}
        for name, i in shot.states.items():
            keys = {s.key for s in shot.scenes[i][0]}
            shut = {*name.split(",")} - {""}
            assert shut <= keys
            inside = {key for key in shot.boxes if _around(key, shot.boxes) & shut}
            assert set(shot.boxes) & keys == set(shot.boxes) - inside


def _around(key: str, boxes: dict[str, str]) -> set[str]:
    found = set()
    while boxes[key]:
        key = boxes[key]
        found.add(key)
    return found


@pytest.mark.slow("draws a long page: 4 s")
def test_a_long_page_has_fewer_scenes(monkeypatch):
    monkeypatch.setattr(player, "CLICKED", CLICKED // 8)  # as of a diagram with more nodes
    net = parse(EVERY_KIND)
    shots = differentiation(net)
    nodes = len(list(nodes_in(net)))
    assert max([len(shot.scenes) for shot in shots]) <= 3 + player.CLICKED // (
        (len(shots) - 1) * nodes
    )
    assert all([len(shot.scenes) >= 3 for shot in shots])


def test_a_function_from_outside_is_said_instead_of_the_program():
    (first, *_) = differentiation(parse("(f: (R -> R)) => c = const[1.0]() y = eval(f, c) -> y"))
    assert first.program.startswith("# a function that comes from outside has no text in Linear A")


def test_all_steps_on_a_sheet(tmp_path):
    (tmp_path / "a.diagram").write_text(WORKED)
    out = tmp_path / "a.svg"
    assert main(["diagram", str(tmp_path / "a.diagram"), "--all", "-o", str(out)]) == 0
    assert out.read_text().count('class="step"') == 19


def test_a_differentiation_that_is_too_long_to_play():
    net = Net()
    (w,) = net.add("const", data=1.0)
    for _ in range(160):
        (w,) = net.add("op", (w,), name="sin")
    net.output(w)
    with pytest.raises(DiagramError) as caught:
        page(net)
    assert str(caught.value) == (
        "there are 325 steps or more, and a page plays up to 300; draw single steps (--step K), or "
        "differentiate a part of the diagram"
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
    shots = derivation(parse(text), law)
    assert [shot.rule for shot in shots] == ["", *rules]
    assert isomorphic(parse(shots[-1].text), parse(becomes))
    assert all([shot.fires in {s.key for s in shot.scenes[0][0]} for shot in shots[:-1]])
    for shot in shots:  # what frames stand for is a program, the same throughout
        program = read_program(shot.program)
        assert run_program(program, "program", 0.3, 2.0).results == (np.sin(0.3) * 2.0,)
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


# --- in a browser ---------------------------------------------------------------------------------

DRIVEN = """
<script>
const said = [];
addEventListener("error", e => said.push("error: " + e.message));
const wait = ms => new Promise(done => setTimeout(done, ms));
const press = key =>
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const note = () => said.push([
  document.getElementById("count").textContent,
  document.getElementById("rule").textContent,
  document.getElementById("said").textContent, document.querySelectorAll("#stage .node").length,
  document.querySelectorAll("#stage .fires").length,
  document.querySelectorAll("#picture svg").length,
].join("|"));
addEventListener("load", async () => {
  note();
  document.getElementById("next").click(); await wait(700); note();
  press("ArrowRight"); await wait(700); note();
  press("ArrowLeft"); await wait(700); note();
  press("End"); await wait(100); note();
  press("Home"); await wait(100); note();
  const slider = document.getElementById("slider");
  slider.value = 5; slider.dispatchEvent(new Event("input")); await wait(100); note();
  document.getElementById("speed").value = "700";
  press(" "); await wait(1200); press(" "); await wait(600); note();
  const fold = document.getElementById("fold");
  fold.value = "2"; fold.dispatchEvent(new Event("change")); await wait(700); note();
  const first = Object.entries(film.shots[6].boxes).find(([, around]) => !around)[0];
  const box = () => document.querySelector(`#stage [data-box="${first}"]`);
  box().dispatchEvent(new MouseEvent("click", { bubbles: true })); await wait(700); note();
  box().focus();
  const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true });
  document.activeElement.dispatchEvent(enter); await wait(700); note();
  said.push([first, document.activeElement.dataset.box, box().getAttribute("aria-expanded"),
    document.getElementById("text").textContent.split(" ")[0]].join("|"));
  const language = document.getElementById("language");
  language.value = "1"; language.dispatchEvent(new Event("change"));
  said.push(document.getElementById("text").textContent.split(" ").slice(0, 2).join("|"));
  const size = document.getElementById("size");
  const picture = document.getElementById("picture-of-step");
  for (const value of ["full", "fit"]) {
    size.value = value; size.dispatchEvent(new Event("change"));
    said.push(`${picture.style.width}|${picture.getAttribute("viewBox").split(" ")[2]}px`);
  }
  document.title = "driven";
  const out = document.createElement("pre");
  out.id = "driven"; out.textContent = said.join("\\n");
  document.body.append(out);
});
</script>
"""


@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium to open the page with")
@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.slow("starts a browser: 7 s")
def test_the_page_steps_plays_and_folds_in_a_browser(moving: bool, tmp_path: Path, worked):
    text = page(parse(WORKED), gradient=True).replace("</head>", f"{DRIVEN}</head>")
    file = tmp_path / "page.html"
    file.write_text(text)
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom",
            *([] if moving else ["--force-prefers-reduced-motion"]), file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    found = re.search(r'<pre id="driven">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    lines = [line.split("|") for line in found[1].split("\n")]

    def expected(n: int, fold: int = 0) -> list[str]:
        shot = worked[n]
        nodes = sum(["node" in s.looks.split() for s in shot.scenes[fold][0]])
        fires = sum([s.key == shot.fires for s in shot.scenes[fold][0]])
        sides = 0 if shot.picture is None else 2
        return [f"{n} of 34", shot.rule, shot.said, str(nodes), str(fires), str(sides)]

    *lines, shut, text, full, fit = lines
    assert full[0] == full[1]
    assert fit[0] == ""
    first = shut[0]
    assert shut == [first, first, "false", "type"]
    assert text == ["(x1:", "R)"]
    outer = [key for key, box in worked[6].boxes.items() if not box]
    assert first in outer
    opened = worked[6].states[",".join(sorted({*outer} - {first}))]
    wanted = [*map(expected, (0, 1, 2, 1, 34, 0, 5, 6))]
    wanted += [expected(6, fold) for fold in (2, opened, 2)]
    if moving:  # what is on its way out may still be seen
        lines, wanted = ([line[:3] for line in found] for found in (lines, wanted))
    assert lines == wanted


def test_a_diagram_without_nodes_has_a_page():
    shots = differentiation(parse("(x: R, y: R) => -> y, x"))
    assert [shot.rule for shot in shots] == ["", "blue", "O-id", "G-id"]

"""The player and the explorer in Debian's chromium, driven by Playwright: `make test-browser`."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from diagrams.test_layout import WORKED
from diagrams.test_names_of_wires import loss
from diagrams.test_player import chain

import lineara
from lineara.diagrams import page, parse
from lineara.diagrams.lowering import lowered

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium to open pages with")
SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "mobile": {"viewport": {"width": 360, "height": 780}, "color_scheme": "light"},
    "in a page": {"viewport": {"width": 820, "height": 560}, "color_scheme": "light"},
}


def wave(x, w):
    y = np.sin(x) * w
    for _ in range(20):
        y = np.tanh(y)
    return np.sum(np.abs(y))


def path(initial_position_of_the_particle, weight):
    speed = initial_position_of_the_particle * 0.0
    position = initial_position_of_the_particle
    for _ in range(5):
        force = -np.sin(position) * weight + np.cos(position)
        if initial_position_of_the_particle[0] > 0:
            speed = speed + 0.1 * force * np.exp(-speed * speed)
        else:
            drag = 0.1 * force
            speed = speed - drag
        position = position + 0.1 * speed * np.tanh(speed) * (1.0 - np.tanh(position) * 0.2)
    return np.sum(position * position + speed * speed)


def rate(initial_concentration_of_the_substrate, temperature):
    return np.exp(-temperature) * initial_concentration_of_the_substrate


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "small": page(parse(WORKED), "Worked", gradient=True),
        "large": page(chain(300), "300 operations"),
        "lines": page(lowered(lineara.diagram(loss, 0.5, np.ones(3)))),
        "loops": page(lowered(lineara.diagram(path, np.ones(3), 2.0))),
        "names": page(lineara.diagram(rate, 0.4, 2.0)),
        "explorer": lineara.explore(wave, np.ones(3), 2.0).page,
        "steps": lineara.explore(path, np.ones(3), 2.0).page,
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture
def opened(browser, files):
    """Opens a page on a screen; at the end nothing must have been written to its console."""
    contexts, said = [], []

    def open_(name: str, screen: str = "light", at: str = "", motion: str = "reduce"):
        context = browser.new_context(reduced_motion=motion, **SCREENS[screen])
        contexts.append(context)
        shown = context.new_page()
        shown.on("pageerror", lambda e: said.append(str(e)))
        shown.on("console", lambda m: said.append(m.text))
        shown.goto(f"{files[name].as_uri()}{at}")
        return shown

    yield open_
    for context in contexts:
        context.close()
    assert said == []


def count(shown) -> int:
    return int(shown.locator("#count").inner_text().split()[0])


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", ["small", "large", "loops", "explorer", "steps"])
def test_nothing_is_cut_off_and_all_that_can_be_used_has_a_name(opened, name, screen):
    shown = opened(name, screen, "#7" if name in ("small", "large", "loops") else "")
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = shown.evaluate(
        """() => [...document.querySelectorAll("h1, h2, p, button, label, output")]
        .filter(e => e.getClientRects().length && e.scrollWidth > e.clientWidth + 1
          && getComputedStyle(e).display !== "inline").map(e => e.outerHTML)"""
    )
    assert cut == []
    unnamed = shown.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [role=button], [tabindex]")]
        .filter(e => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
        .map(e => e.outerHTML)"""
    )
    assert unnamed == []


@pytest.mark.parametrize(
    ("name", "step", "fold"),
    [*[("small", step, "open") for step in (0, 6, 18, 34)], ("loops", 0, "lines"),
     ("loops", 30, "lines"), ("loops", 70, "lines")],
)  # fmt: skip
def test_a_label_lies_in_its_node_and_can_be_read(opened, name, step, fold):
    shown = opened(name, at=f"#{step}")
    shown.locator("#fold").select_option(fold)
    outside = shown.evaluate(
        """() => [...document.querySelectorAll("#over g")].filter(g => {
          const label = g.querySelector("text.label"), node = g.querySelector(".node");
          if (!label || !node) return false;
          const a = label.getBoundingClientRect(), b = node.getBoundingClientRect();
          return a.width && (a.left < b.left || a.right > b.right);
        }).map(g => g.textContent)"""
    )
    assert outside == []
    small = shown.evaluate(
        """() => [...document.querySelectorAll("#world text")].filter(t => {
          const s = parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a;
          return t.getClientRects().length && t.getBBox().width && s < 8.99;
        }).map(t => t.textContent)"""
    )
    assert small == []


OVERLAPPING = """boxes => boxes.flatMap((a, i) => boxes.slice(0, i).filter(b =>
  Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 0.5
  && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 0.5
).map(b => [a.text, b.text]))"""
BLOCKS = """[...document.querySelectorAll("#over .node")].map(node => {
  const { x, y, width, height } = node.getBBox();
  return { x, y, width, height, text: node.parentNode.textContent }; })"""
HEADS = """[...document.querySelectorAll("#under text.head")].filter(
  t => getComputedStyle(t).visibility === "visible").map(t => {
  const { x, y, width, height } = t.getBoundingClientRect();
  return { x, y, width, height, text: t.textContent }; })"""


@pytest.mark.parametrize("fold", ["open", "lines", "near", "branches"])
def test_no_two_blocks_overlap_and_no_two_heads(opened, fold):
    shown = opened("loops")
    shown.locator("#fold").select_option(fold)
    last = int(shown.locator("#slider").get_attribute("max") or 0)
    grouped = 0
    for step in range(0, last + 1, last // 12):
        shown.locator("#slider").fill(str(step))
        for view in ("#all", "#here"):
            shown.locator(view).click()
            assert shown.evaluate(f"({OVERLAPPING})({BLOCKS})") == [], (step, view)
            assert shown.evaluate(f"({OVERLAPPING})({HEADS})") == [], (step, view)
            if step < last:
                assert shown.locator("#world .fires, #world .new").count() > 0, (step, view)
            grouped += shown.locator("#over text.label", has_text="0.1 * force * np.").count()
    assert (grouped > 0) == (fold == "lines")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_long_name_of_an_argument_is_all_in_the_view(opened, screen):
    shown = opened("names", screen)
    if SCREENS[screen]["viewport"]["width"] > 1000:  # where all of it can be read at once
        shown.locator("#all").click()
    stage = shown.locator("#stage").bounding_box()
    name = shown.locator("#over text.name", has_text=rate.__code__.co_varnames[0]).first
    box = name.bounding_box()
    assert stage is not None
    assert box is not None
    assert stage["x"] <= box["x"]
    assert box["x"] + box["width"] <= stage["x"] + stage["width"]


@pytest.mark.parametrize("screen", SCREENS)
def test_no_button_lies_on_another_or_on_a_block(opened, screen):
    shown = opened("small", screen, "#12")
    boxes = """[...document.querySelectorAll("#view button, #map")].filter(
      e => e.getClientRects().length).map(e => {
      const { x, y, width, height } = e.getBoundingClientRect();
      return { x, y, width, height, text: e.id }; })"""
    assert shown.evaluate(f"({OVERLAPPING})({boxes})") == []
    assert shown.locator("#over text.label").first.is_visible()
    shown.locator("#all").click()
    blocks = boxes.replace("#view button, #map", "#view button, #over .node")
    pairs = shown.evaluate(f"({OVERLAPPING})({blocks})")
    assert [pair for pair in pairs if any(pair)] == []


def test_every_control_of_the_player(opened):
    shown = opened("small")
    for control, at in (("next", 1), ("next", 2), ("back", 1), ("last", 34), ("first", 0)):
        shown.locator(f"#{control}").click()
        assert count(shown) == at
    for key, at in (("ArrowRight", 1), ("ArrowLeft", 0), ("End", 34), ("Home", 0)):
        shown.keyboard.press(key)
        assert count(shown) == at
    shown.locator("#steps").select_option("6")
    assert count(shown) == 6
    assert shown.locator("#said").inner_text().startswith("add leaves ORANGE")
    shown.locator("#slider").fill("18")
    assert count(shown) == 18
    assert "18 of 34" in (shown.locator("#slider").get_attribute("aria-valuetext") or "")
    shown.locator("#speed").select_option("700")
    shown.locator("#play").click()
    assert shown.get_by_role("button", name="Pause").count() == 1
    shown.wait_for_function("document.getElementById('count').textContent.startsWith('19')")
    shown.locator("#play").click()
    shown.locator("#language").select_option("1")
    assert shown.locator("#text").inner_text().startswith("(x")


def test_boxes_shut_and_open_and_their_wires_end_at_them(opened):
    shown = opened("small", at="#18")
    boxes = shown.locator("#stage [data-box]")
    many, wires = boxes.count(), shown.locator("#wires path").count()
    box = boxes.first
    box.focus()
    shown.keyboard.press("Enter")
    assert box.get_attribute("aria-expanded") == "false"
    assert boxes.count() < many
    assert 0 < shown.locator("#wires path").count() < wires
    shown.keyboard.press("Enter")
    assert boxes.count() == many
    shown.locator("#fold").select_option("shut")
    assert boxes.count() < many
    shown.locator("#fold").select_option("open")
    assert shown.locator("#wires path").count() == wires


def test_a_block_a_line_and_the_boxes_of_branches(opened):
    shown = opened("lines")
    leaves = shown.locator("#steps option", has_text="O-op tanh").first.get_attribute("value")
    shown.locator("#slider").fill(str(int(leaves or 0) - 1))
    shown.locator("#all").click()
    blocks = shown.locator("#over g").count()
    assert shown.locator("#line").inner_text().startswith("test_names_of_wires.py:")
    shown.locator("#fold").select_option("branches")
    assert shown.locator("#stage [aria-expanded=false]").count() > 0
    shown.locator("#fold").select_option("lines")
    assert 0 < shown.locator("#over g").count() < blocks
    shown.locator("#fold").select_option("open")
    assert shown.locator("#over g").count() == blocks


def test_a_view_of_300_operations_has_the_elements_that_it_shows_and_follows(opened):
    shown = opened("large")
    for step in (100, 700, 903):
        shown.locator("#slider").fill(str(step))
        assert shown.locator("#world *").count() < 1200
        mark = shown.locator("#over .fires, #over .new").first
        if step != 903:
            box, stage = mark.bounding_box(), shown.locator("#stage").bounding_box()
            assert box is not None
            assert stage is not None
            assert stage["x"] <= box["x"] <= stage["x"] + stage["width"]
    before = shown.locator("#world").get_attribute("transform")
    for key in ("+", "-", "0", "f"):
        shown.keyboard.press(key)
        after = shown.locator("#world").get_attribute("transform")
        assert after != before, key
        before = after
    shown.locator("#map").click(position={"x": 30, "y": 50})
    assert shown.locator("#world").get_attribute("transform") != before


def test_a_line_is_marked_wherever_it_went(opened):
    shown = opened("explorer")
    line = shown.locator("#source .row", has_text="np.tanh(y)")
    line.hover()
    for name in ("captured", "jvp", "transposed", "simplified", "machine code", "diagram"):
        shown.get_by_role("tab", name=name, exact=True).click()
        line.hover()
        assert shown.locator("#panel .on").count() > 0, name
    assert "tanh" in " ".join(shown.locator("#panel .on").all_text_contents())
    shown.get_by_role("tab", name="captured", exact=True).click()
    shown.locator("#panel .row", has_text="sin(").first.hover()
    assert "np.sin(x)" in shown.locator("#source .on").inner_text()


@pytest.mark.parametrize("screen", ["light", "mobile"])
def test_a_line_that_is_too_long_goes_on_further_in_than_it_began(opened, screen):
    shown = opened("steps", screen)
    rows = shown.evaluate(
        """[...document.querySelectorAll("#source .code")].map(e => {
          const range = document.createRange(), text = e.firstChild;
          range.setStart(text, text.data.search(/\\S/));
          range.setEnd(text, text.length);
          const lefts = [...range.getClientRects()].map(r => r.left);
          return [lefts.length, lefts[0] < Math.min(Infinity, ...lefts.slice(1))];
        })"""
    )
    assert max([lines for lines, _ in rows]) > 1
    assert all([further for _, further in rows])
    shown.get_by_role("tab", name="sparsity", exact=True).click()
    assert shown.locator("#panel p").inner_text() == (
        "The derivative has 1 row and 4 columns; 4 places, 100 %, may be other than 0."
    )


def test_the_explorer_by_keyboard_and_its_slider(opened):
    shown = opened("explorer")
    shown.locator("#source").focus()
    shown.keyboard.press("Home")
    shown.keyboard.press("ArrowDown")
    assert "np.sin(x)" in shown.locator("#source .on").inner_text()
    shown.keyboard.press("Escape")
    assert shown.locator("#source .on").count() == 0
    shown.get_by_role("tab", name="captured", exact=True).focus()
    shown.keyboard.press("ArrowRight")
    assert shown.get_by_role("tab", selected=True).inner_text() == "jvp"
    policy = shown.locator("#chosen").inner_text()
    shown.locator("#policy").fill("1")
    assert shown.locator("#chosen").inner_text() != policy
    assert "a second time" in shown.locator("#said").inner_text()
    for name in ("sparsity", "kinks"):
        shown.get_by_role("tab", name=name, exact=True).click()
        assert shown.locator("#panel").inner_text()
    shown.locator("#metric").select_option("2")
    assert shown.locator("#source .cost i").count() > 0
    shown.locator("#slow button").first.click()
    assert shown.locator("#source .pinned").count() == 1


FRAMES = """([act, frames]) => new Promise(done => {
  const touched = [], observer = new MutationObserver(records => {
    for (const r of records)
      for (const n of r.type === "childList" ? [...r.addedNodes, ...r.removedNodes] : [r.target])
        touched.at(-1)?.add(n);
  });
  observer.observe(document,
    {subtree: true, childList: true, attributes: true, characterData: true});
  const acts = {
    pan: () => look({...view, x: view.x - 6}), step: i => i % 25 || go(step + 1),
    zoom: i => zoom(i < frames / 2 ? 1 / 1.03 : 1.03),
  };
  const frame = () => {
    const i = touched.length;
    if (i === frames) { observer.disconnect(); return done(touched.map(each => each.size)); }
    touched.push(new Set());
    acts[act](i);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def traced(shown, act: str, frames: int) -> tuple[list[int], float, float]:
    """Elements touched in each frame; elements styled a frame; milliseconds of the main thread."""
    events, done = [], []
    session = shown.context.new_cdp_session(shown)
    session.on("Tracing.dataCollected", lambda e: events.extend(e["value"]))
    session.on("Tracing.tracingComplete", lambda _: done.append(True))
    config = {"includedCategories": ["devtools.timeline"], "enableArgumentFilter": False}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
    touched = shown.evaluate(FRAMES, [act, frames])
    session.send("Tracing.end")
    while not done:
        shown.wait_for_timeout(20)
    styled = sum([e["args"].get("elementCount", 0) for e in events if e["name"] == STYLED])
    spent = sum([e.get("tdur", 0) for e in events if e["name"] in MAIN]) / 1e3
    return touched, styled / frames, spent / frames


STYLED = "UpdateLayoutTree"
MAIN = (STYLED, "FireAnimationFrame", "Layout", "PrePaint", "Paint", "Layerize", "Commit")


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("act", ["pan", "zoom", "step"])
def test_a_frame_of_300_operations_touches_few_elements(opened, act, far):
    """Counts, since times depend on what else the machine does; `-s` shows the times as well."""
    shown = opened("large", at="#400", motion="no-preference")
    shown.locator("#all" if far else "#here").click()
    shown.wait_for_timeout(600)
    touched, styled, spent = traced(shown, act, 50)
    print(
        f"{act}, far {far}: touched {sum(touched) / 50:.1f}, at most {max(touched)}; "
        f"styled {styled:.1f}; {spent:.1f} ms"
    )
    assert sum(touched) / 50 < 40
    assert styled < 200


def test_dashes_are_drawn_only_where_they_are_seen_and_short(opened):
    """A dash of less than a pixel takes as long to draw as another, and a frame had 100,000."""
    shown = opened("large", at="#400")
    dashed = """Math.max(0, ...[...document.querySelectorAll("#wires path")].filter(
      p => getComputedStyle(p).strokeDasharray !== "none").map(p => p.getTotalLength()))"""
    assert opened("small", at="#6").evaluate(dashed) > 0
    assert shown.evaluate(dashed) < 3000
    shown.locator("#all").click()
    assert shown.locator("#wires path").count() > 1000
    assert shown.evaluate(dashed) == 0

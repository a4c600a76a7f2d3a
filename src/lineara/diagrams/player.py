"""A rewriting as a page that plays it: one file, no network, keyboard and screen reader included.

So is the sweep back through a linear graph, an edge a step, beside the lines that recorded them.

A shot is what a step changes in the drawing, and what is said of it: the text, the program, and the
rule.  A node of a differentiation has one place from the first step to the last (`cells`), so a
page grows with the number of steps and not with its square.

>>> from lineara.diagrams.parse import parse
>>> reel = differentiation(parse("(x: R) => y = sin(x) -> y"))
>>> [shot.rule for shot in reel.shots]
['', 'blue', 'O-op', 'O-id', 'G-op', 'G-id']
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from lineara.diagrams.abstraction_laws import unfolded
from lineara.diagrams.adjoint import types_in, types_out
from lineara.diagrams.as_linear_a import text
from lineara.diagrams.cells import beside, cells
from lineara.diagrams.film import Change, Film, short, written
from lineara.diagrams.layout import layout, text_width
from lineara.diagrams.lowering import lowered
from lineara.diagrams.moments import (
    DRAWN,
    Moment,
    Visit,
    derived,
    differentiated,
    has_gradient,
    simplified,
    steps_of,
)
from lineara.diagrams.net import Net, Node, Wire, topological
from lineara.diagrams.one_step import left
from lineara.diagrams.pictured import Pictured, pictured
from lineara.diagrams.refuse import refusing
from lineara.diagrams.show import show
from lineara.diagrams.still import Place, seen, stands
from lineara.diagrams.svg import STYLE, Namer, Shape, drawn, element, number
from lineara.diagrams.svg import written as svg_of
from lineara.diagrams.sweeps import flow, is_swept
from lineara.errors import DiagramError

MARK = re.compile("(@[A-Z]+@)")
LINES = 12_000  # of all texts of a page; where there would be more it has none
Told = Callable[[int, int], object]  # how many steps there are so far, and about how many in all


@dataclass(slots=True)
class Shot:
    """What is shown after a step: what changes in the drawing, and what is said of it."""

    rule: str
    said: str
    change: Change
    what: str = ""  # the label of the node that the step was taken at
    text: str = ""
    program: str = ""
    picture: str = ""  # the key of the rule's picture
    fires: str = ""  # the key of the node that the next step erases
    made: list[str] = field(default_factory=list)  # the keys of what this step made
    marked: frozenset[str] = frozenset()  # lines of the texts that are marked, beside those new


class Reel:
    """All shots, the places of what stays where it is, and the pictures of the rules.

    `still` says that each moment is laid out by itself; else places are given at the end.
    """

    told: Told | None
    texts: bool
    still: bool
    steps: int
    namer: Namer
    film: Film

    def __init__(
        self,
        names: Mapping[int, str] | None = None,
        texts: bool = True,
        still: bool = False,
        told: Told | None = None,
        steps: int = 0,
    ) -> None:
        self.shots: list[Shot] = []
        self.places: dict[str, Place] = {}
        self.bends: dict[int, tuple[float, ...]] = {}
        self.pictures: dict[str, Pictured] = {}
        self.namer, self.film = Namer(names), Film()
        self.texts, self.still, self.told, self.steps = texts, still, told, steps

    def visit(self, m: Moment) -> None:
        """One more shot."""
        for old, new in m.same:
            self.namer.same(old, new)
        for old, new in m.wires:
            self.namer.goes_on(old, new)
        if self.shots and m.erased:
            self.shots[-1].fires = self.namer.key(m.erased)
        names = self.namer.named(m.net) if self.texts or self.still else {}
        at = stands(layout(m.net, None, names)) if self.still else (None, None)
        if m.leaving:
            change = left(self.film, *m.leaving, self.namer)
        else:
            change = self.film.then(seen(m.net, self.namer), *at)
        shot = Shot(m.rule, m.said, change, m.at.label if m.at else "")
        shot.made = [self.namer.key(i) for i in m.made]
        shot.picture = self.pictured(m.rule, m.at)
        if self.texts:
            shot.text, shot.program = show(m.net, names), _program(m.net, names)
        self.shots.append(shot)
        if self.told:
            self.told(len(self.shots), self.steps)

    def pictured(self, rule: str, node: Node | None) -> str:
        """The key of the picture of a rule at a node; of nodes that are alike it is one."""
        what = node and (node.kind, node.name, repr(node.data), types_in(node), types_out(node))
        key = f"{rule} {what}" if node is not None else rule
        if rule and key not in self.pictures:
            picture = pictured(rule, node)
            if picture is None:
                return ""
            self.pictures[key] = picture
        return key


class Words(NamedTuple):
    """How a page names its texts, and what it marks."""

    languages: tuple[str, str]
    marks: tuple[str, str]


REWRITING = Words(("Linear A", "the text of diagrams"), ("fires next", "new"))
SWEEP = Words(("the lines of Python", "the text of diagrams"), ("sends next", "has just sent"))


def differentiation(
    net: Net,
    gradient: bool = False,
    names: Mapping[int, str] | None = None,
    told: Told | None = None,
) -> Reel:
    """The shots of a differentiation; with `gradient` those of simplifying what it gives, too.

    `names` has names for wires by their ids, `told` hears of each step.  The gradient is that of a
    diagram with one real output.  Raises a DiagramError for a differentiation that is longer than
    a page plays.
    """
    if gradient:
        has_gradient(net)
    steps, nodes = steps_of(net), sum([1 for _ in topological(net)])
    reel = Reel(names, steps * nodes * (1 + gradient) <= LINES, told=told, steps=steps)
    d, fired = differentiated(net, reel.visit)
    reel.places, reel.bends = cells(d, fired)
    if gradient:

        def visit(m: Moment) -> None:
            beside(reel.places, reel.bends, m)
            reel.visit(m)

        simplified(d.result(), visit)
    return reel


def derivation(net: Net, law: str) -> Reel:
    """The shots of (BR), (η) or (Lamb), derived from the laws of frames wherever it has a place.

    Raises a DiagramError if it has none.
    """
    reel = Reel(still=True)

    def visit(m: Moment) -> None:
        reel.visit(m)
        reel.shots[-1].program = _program(unfolded(m.net), {})

    derived(net, law, visit)
    return reel


def _program(net: Net, names: Mapping[Wire, str]) -> str:
    """The same in Linear A, or why not."""
    try:
        return text(net, names)
    except DiagramError as error:
        return f"# {error.message}"


def sheet(net: Net, gradient: bool = False, law: str = "") -> str:
    """All steps, one below the other, as one SVG."""
    namer = Namer()
    seen: list[tuple[Moment, list[Shape], float, float, str]] = []

    def visit(m: Moment) -> None:
        for old, new in m.same:
            namer.same(old, new)
        picture, shapes, names = drawn(m.net, namer=namer)
        seen.append((m, shapes, picture.width, picture.height, show(m.net, names)))

    _play(lowered(net), gradient, law, visit)
    parts, texts, y, wide = [], [], 0.0, 0.0
    for n, (m, shapes, width, height, shown) in enumerate(seen):
        said = f"{n}  {m.rule}  {m.said}" if m.rule else f"{n}  {m.said}"
        parts.append(element(Shape("", "text", "step", (0, y + 8), said)))
        fires = namer.key(seen[n + 1][0].erased) if n + 1 < len(seen) else ""
        marks = {namer.key(i): " new" for i in m.made} | {fires: " fires"}
        marked = [s._replace(looks=s.looks + marks.get(s.key, "")) for s in shapes]
        body = "\n".join(map(element, marked))
        parts.append(f'<g transform="translate(0 {number(y + 26)})">\n{body}\n</g>')
        texts.append(f"{said}\n{shown}")
        y += height + 60
        wide = max(wide, width, text_width(said))
    return svg_of("\n".join(parts), wide, y - 34, "\n\n".join(texts))


def _play(net: Net, gradient: bool, law: str, visit: Visit) -> None:
    """Visit what is to be drawn, step by step."""
    if law:
        derived(net, law, visit)
        return
    if gradient:
        has_gradient(net)
    d, _ = differentiated(net, visit, DRAWN)
    if gradient:
        simplified(d.result(), visit, DRAWN)


def sweep(net: Net) -> Reel:
    """The shots of the sweep back through a linear graph, the last edge first."""
    reel = Reel(still=True)
    said = "A linear graph. A cotangent of its results is sent back, edge by edge."
    reel.visit(Moment("", said, lambda: net))
    names = reel.namer.named(net)
    flows = [(n, f) for n in reversed(list(topological(net))) if (f := flow(n))]
    lines = sorted({f.line for _, f in flows if f.line}, key=_place)
    listed = "\n".join(lines) or 'lineara.diagram(f, *args, by="linear") knows the lines of f'
    first = reel.shots[0]
    first.program = listed
    for node, told in flows:
        reel.shots[-1].fires = key = reel.namer.key(node.id)
        start = f"{names[node.outs[0]]}: "
        marked = {t for t in first.text.split("\n") if t.strip().startswith(start)} | {told.line}
        said = f"{node.name} sends {told.sent} back."
        nothing = Change([], [], [], [])
        shot = Shot(node.name, said, nothing, "", first.text, listed, made=[key])
        shot.marked = frozenset(marked)
        reel.shots.append(shot)
    return reel


def _place(line: str) -> tuple[str, int]:
    file, number = line.split(" in ", 1)[0].rsplit(":", 1)
    return file, int(number)


# --- the page -------------------------------------------------------------------------------------


@refusing
def page(
    net: Net,
    title: str = "Step by step",
    gradient: bool = False,
    law: str = "",
    names: Mapping[int, str] | None = None,
    told: Told | None = None,
) -> str:
    """The page of a differentiation, or of the derivation of a law, as one text of HTML.

    Of a linear graph it is the page of the sweep back: a click on an edge shows what it sends, and
    marks the line that recorded it.  `names` are for wires, by their ids; `told(step, steps)` is
    called after each step that has been drawn.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> "<title>The square</title>" in page(square, "The square")
    True
    """
    if is_swept(net):
        reel = sweep(net)
    else:
        net = lowered(net)
        reel = derivation(net, law) if law else differentiation(net, gradient, names, told)
    words = SWEEP if is_swept(net) else REWRITING
    data = json.dumps(_data(reel, is_swept(net)), ensure_ascii=False, separators=(",", ":"))
    parts = {
        "@TITLE@": escape(title),
        "@STYLE@": STYLE + _asset("player.css"),
        "@SCRIPT@": _asset("player.js"),
        "@LAST@": str(len(reel.shots) - 1),
        "@FIRES@": words.marks[0],
        "@NEW@": words.marks[1],
        "@LANGUAGES@": "".join(
            [f'<option value="{i}">{w}</option>' for i, w in enumerate(words.languages)]
        ),
        "@DATA@": data.replace("<", "\\u003c"),
    }
    template = _asset("player.html")
    return "".join([parts.get(part, part) for part in MARK.split(template)])


def _asset(name: str) -> str:
    return files("lineara.diagrams").joinpath(name).read_text(encoding="utf-8")


def _data(reel: Reel, swept: bool) -> dict[str, object]:
    """What the page reads: each line, sentence and rule once, and shots that number them."""
    lines: dict[str, int] = {}
    said: dict[str, int] = {}
    numbers = {key: i for i, key in enumerate(reel.pictures)}
    told: list[dict[str, Any]] = []
    before: list[list[str]] = [[], []]
    for shot in reel.shots:
        texts = [shot.program.rstrip().split("\n"), shot.text.split("\n")]
        one = {
            "rule": shot.rule,
            "what": shot.what,
            "said": said.setdefault(shot.said, len(said)),
            "fires": shot.fires,
            "made": shot.made,
            "picture": numbers.get(shot.picture, -1),
            **{k: v for k, v in written(shot.change, reel.places, reel.bends).items() if v},
        }
        if shot.text:
            one["texts"] = [_fresh(*t, lines, shot.marked) for t in zip(texts, before, strict=True)]
        told.append(one)
        before = texts
    return {
        "said": [*said],
        "rules": [_sides(p) for p in reel.pictures.values()],
        "lines": [*lines],
        "shots": told,
        "steps": {k: i for i, s in enumerate(reel.shots) for k in s.made if swept},
    }


def _fresh(
    text: list[str], before: list[str], lines: dict[str, int], marked: frozenset[str]
) -> list[list[int]]:
    """The lines of a text by their numbers, and whether each is new or marked."""
    old = {line.strip() for line in before}
    new = [int((bool(before) and line.strip() not in old) or line in marked) for line in text]
    return [
        [lines.setdefault(line, len(lines)), mark] for line, mark in zip(text, new, strict=True)
    ]


def _sides(picture: Pictured) -> list[list[Any]]:
    """What a rule takes and what it makes, as SVG with its size."""
    sides = []
    for net in (picture.left, picture.right):
        side, shapes, _ = drawn(net)
        body = "".join(map(element, [s for s in shapes if not s.looks.startswith("name")]))
        sides.append([body, short(side.width), short(side.height)])
    return sides

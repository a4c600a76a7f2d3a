"""A rewriting as a page that plays it: one file, no network, keyboard and screen reader included.

So is the sweep back through a linear graph, an edge a step, beside the lines that recorded them.

A shot is what there is after a step: the shapes, with what is new and what fires next marked, the
text, the program, and the rule.  Shapes keep their keys from shot to shot, so the page moves them.
A scene is a shot with some of its boxes shut; the page has those that a reader may click for.

>>> from lineara.diagrams.parse import parse
>>> shots = differentiation(parse("(x: R) => y = sin(x) -> y"))
>>> [shot.rule for shot in shots]
['', 'blue', 'O-op', 'O-id', 'G-op', 'G-id']
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import NamedTuple

from lineara.diagrams.abstraction_laws import Frames, unfolded
from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.as_linear_a import text
from lineara.diagrams.layout import text_width
from lineara.diagrams.net import Net, Node, Wire, copied, every_net, nodes_in, topological
from lineara.diagrams.pictured import LAWS, RULES, Pictured, pictured
from lineara.diagrams.show import show
from lineara.diagrams.simplify import Simplifier, only_evaluates, source, target
from lineara.diagrams.snapshot import snapshot
from lineara.diagrams.stepper import Derivation, Redex, Step
from lineara.diagrams.svg import MARGIN, STYLE, Namer, Shape, drawn, element, number, written
from lineara.diagrams.sweeps import flow, is_swept
from lineara.diagrams.types import R
from lineara.errors import DiagramError

LONGEST = 300  # steps that a page plays
FOLDS = {
    "all": None,
    "the outer ones": 1,
    "none": 0,
}  # which boxes are open: those so deep are shut
CLICKED = 8_000  # nodes in all scenes of a page for boxes that are clicked


@dataclass(slots=True)
class Shot:
    """What is shown after a step; `scenes` has the shapes and the size for each way to fold.

    First stand those of FOLDS; `states` has the scene for the keys of the boxes that are shut, and
    `boxes` the key of the box around each.
    """

    rule: str
    said: str
    text: str
    program: str
    scenes: list[tuple[list[Shape], float, float]]
    states: dict[str, int]
    boxes: dict[str, str]
    picture: Pictured | None = None
    fires: str = ""  # the key of the node that the next step erases
    made: list[str] = field(default_factory=list)  # the keys of what this step made
    marked: frozenset[str] = frozenset()  # lines of the texts that are marked, beside those new


class Words(NamedTuple):
    """How a page names its texts, what it marks, and the ways to fold."""

    languages: tuple[str, str]
    marks: tuple[str, str]
    folds: tuple[str, ...]


REWRITING = Words(("Linear A", "the text of diagrams"), ("fires next", "new"), tuple(FOLDS))
SWEEP = Words(
    ("the lines of Python", "the text of diagrams"), ("sends next", "has just sent"), ("all",)
)


def differentiation(net: Net, gradient: bool = False) -> list[Shot]:
    """The shots of a differentiation; with `gradient` those of simplifying what it gives, too.

    The gradient is that of a diagram with one real output.  Raises a DiagramError for a
    differentiation that is longer than a page plays.
    """
    nodes = list(nodes_in(net))
    steps = 2 * len(nodes) + 3 * (1 + sum([n.kind == "box" for n in nodes]))
    _short_enough(steps)
    namer, more = Namer(), CLICKED // (steps * max(1, len(nodes)) * (1 + gradient))
    d = Derivation(net)
    shots = [_shot(snapshot(d), namer, "", "A diagram that is to be differentiated.", more=more)]
    while not d.done:
        redex = d.redexes[0]
        shots[-1].fires = namer.key(_drawn_as(d, redex))
        picture = pictured(redex.rule, redex.node)
        step = d.fire(redex)
        now = snapshot(d)
        _taken_over(now, redex, step, namer)
        shots.append(_shot(now, namer, step.rule, _said(step.rule, redex), picture, step, more))
    return shots + list(_simplified(net, more)) if gradient else shots


def _short_enough(steps: int) -> None:
    if steps > LONGEST:
        raise DiagramError(
            f"there are {steps} steps or more, and a page plays up to {LONGEST}; "
            "draw single steps (--step K), or differentiate a part of the diagram"
        )


def _shot(
    net: Net,
    namer: Namer,
    rule: str,
    said: str,
    picture: Pictured | None = None,
    step: Step | None = None,
    more: int = 0,
) -> Shot:
    scenes, states = [], {}
    around = {
        node: net_.owner for net_ in every_net(net) for node in net_.nodes.values() if node.bodies
    }
    names: dict[Wire, str] = {}
    for shut in _shut(around, more):
        picture_size, shapes, names = drawn(net, [n.id for n in shut], namer)
        states.setdefault(",".join(sorted([namer.key(n.id) for n in shut])), len(scenes))
        scenes.append((shapes, picture_size.width, picture_size.height))
    new_keys = [namer.key(i) for i in step.made] if step else []
    boxes = {namer.key(n.id): namer.key(b.id) if b else "" for n, b in around.items()}
    return Shot(
        rule,
        said,
        show(net, names),
        _program(net, names),
        scenes,
        states,
        boxes,
        picture,
        "",
        new_keys,
    )


def _shut(around: Mapping[Node, Node | None], more: int) -> list[tuple[Node, ...]]:
    """The boxes that are shut in each scene: those of FOLDS, each alone, then several."""
    depth: dict[Node | None, int] = {None: -1}
    for node, box in around.items():  # the outer ones come first
        depth[node] = depth[box] + 1
    scenes = [tuple([n for n in around if depth[n] == fold]) for fold in FOLDS.values()]
    several = [(node,) for node in around]
    for some in several:
        if len(several) > more:
            break
        _, *later = itertools.dropwhile(lambda n, last=some[-1]: n is not last, around)
        several += [(*some, n) for n in later if not _within(n, some, around)]
    known = set(map(frozenset, scenes))
    return scenes + [some for some in several[:more] if frozenset(some) not in known]


def _within(node: Node, some: Sequence[Node], around: Mapping[Node, Node | None]) -> bool:
    """Whether a box lies in one of others."""
    box = around[node]
    while box is not None and box not in some:
        box = around[box]
    return box is not None


def _program(net: Net, names: Mapping[Wire, str]) -> str:
    """The same in Linear A, or why not."""
    try:
        return text(net, names)
    except DiagramError as error:
        return f"# {error.message}"


def _drawn_as(d: Derivation, redex: Redex) -> int:
    """The id under which a picture shows what fires: GREEN's nodes are copies."""
    if redex.node is None:
        return redex.frame.id
    return d.ghosts.get((redex.frame.id, redex.node.id), redex.node.id)


def _taken_over(net: Net, redex: Redex, step: Step, namer: Namer) -> None:
    """A node that leaves ORANGE is the one outside: it moves there."""
    node = redex.node
    if node is None or redex.frame.kind != "ORANGE":
        return
    for n in every_net(net):
        for i in step.made:
            other = n.nodes.get(i)
            if other is not None and (other.kind, other.name) == (node.kind, node.name):
                namer.same(node.id, i)
                return


def _said(rule: str, redex: Redex) -> str:
    what = redex.node.label if redex.node is not None else redex.frame.kind
    return RULES.get(rule, "").format(what=what)


def _simplified(net: Net, more: int) -> Iterator[Shot]:
    """The function that goes back is applied to 1, and that is simplified."""
    if net.gives != (R,):
        raise DiagramError("a gradient is of a diagram with one real output")
    gradient = adjoint(net)
    value, back = gradient.outputs
    gradient.outputs.clear()
    value.target = back.target = None
    gradient.add("drop", (value,))
    gradient.output(*gradient.add("eval", (back, *gradient.add("const", data=1.0))))
    namer = Namer()
    s = Simplifier(gradient)
    said = "The adjoint, applied to 1: the gradient. Now it is simplified."
    last = _shot(s.net, namer, "", said, more=more)
    for step in s.steps():
        last.fires = namer.key(step.node)
        yield last
        _short_enough(step.number)
        said = RULES.get(step.rule, "")
        last = _shot(s.net, namer, step.rule, said, pictured(step.rule, None), step, more)
    yield last


def derivation(net: Net, law: str) -> list[Shot]:
    """The shots of (BR), (η) or (Lamb), derived from the laws of frames wherever it has a place.

    Raises a DiagramError if it has none.
    """
    find, said = _LAWS[law]
    namer = Namer()
    shots: list[Shot] = []

    def seen(step: Step, now: Net) -> None:
        shots[-1].fires = namer.key(step.node)
        _short_enough(step.number)
        shots.append(_shot(now, namer, step.rule, LAWS[step.rule], step=step))
        shots[-1].program = _program(unfolded(now), {})

    frames = Frames(net, seen)
    shots.append(_shot(frames.net, namer, "", said))
    while match := find(frames.net):
        getattr(frames, law)(*match)
    if len(shots) == 1:
        raise DiagramError(f"there is no place for the law here: {said}")
    return shots


def _evaluated(net: Net) -> tuple[Node, ...] | None:
    """An eval that follows on a box."""
    evals = [n for n in nodes_in(net) if n.kind == "eval"]
    return next(((n,) for n in evals if (m := source(n.ins[0])) and m.kind == "box"), None)


def _evaluating(net: Net) -> tuple[Node, ...] | None:
    """A box that only evaluates what it captures."""
    return next(((n,) for n in nodes_in(net) if only_evaluates(n)), None)


def _captured(net: Net) -> tuple[Node, ...] | None:
    """A node that only a box needs, and that box."""
    for box in nodes_in(net):
        if box.kind == "box":
            for w in box.ins:
                node = source(w)
                if node is not None and all([target(v) is box for v in node.outs]):
                    return node, box
    return None


_LAWS = {
    "br": (_evaluated, "(BR): a box that is evaluated where it is made is its body."),
    "eta": (_evaluating, "(η): a box that only evaluates what it captures is what it captures."),
    "lamb": (_captured, "(Lamb): what only a box needs is computed within the box."),
}


def sheet(net: Net, gradient: bool = False, law: str = "") -> str:
    """All steps, one below the other, as one SVG."""
    parts, texts, y, wide = [], [], 0.0, 0.0
    for n, shot in enumerate(_shots(net, gradient, law)):
        shapes, width, height = shot.scenes[0]
        said = f"{n}  {shot.rule}  {shot.said}" if shot.rule else f"{n}  {shot.said}"
        parts.append(element(Shape("", "text", "step", (0, y + 8), said)))
        body = "\n".join(map(element, _marked(shapes, shot)))
        parts.append(f'<g transform="translate(0 {number(y + 26)})">\n{body}\n</g>')
        texts.append(f"{said}\n{shot.text}")
        y += height + 60
        wide = max(wide, width, text_width(said))
    return written("\n".join(parts), wide, y - 34, "\n\n".join(texts))


def sweep(net: Net) -> list[Shot]:
    """The shots of the sweep back through a linear graph, the last edge first."""
    namer = Namer()
    picture, shapes, names = drawn(net, namer=namer)
    scene = (shapes, picture.width, picture.height)
    flows = [(n, f) for n in reversed(list(topological(net))) if (f := flow(n))]
    lines = sorted({f.line for _, f in flows if f.line}, key=_place)
    listed = "\n".join(lines) or 'lineara.diagram(f, *args, by="linear") knows the lines of f'
    text = show(net, names)
    said = "A linear graph. A cotangent of its results is sent back, edge by edge."
    shots = [Shot("", said, text, listed, [scene], {"": 0}, {})]
    for node, told in flows:
        shots[-1].fires = key = namer.key(node.id)
        start = f"{names[node.outs[0]]}: "
        marked = {t for t in text.split("\n") if t.strip().startswith(start)} | {told.line}
        said = f"{node.name} sends {told.sent} back."
        shot = Shot(node.name, said, text, listed, [scene], {"": 0}, {}, made=[key])
        shot.marked = frozenset(marked)
        shots.append(shot)
    return shots


def _place(line: str) -> tuple[str, int]:
    file, number = line.split(" in ", 1)[0].rsplit(":", 1)
    return file, int(number)


def _shots(net: Net, gradient: bool, law: str) -> list[Shot]:
    if is_swept(net):
        return sweep(net)
    return derivation(net, law) if law else differentiation(copied(net), gradient)


# --- the page -------------------------------------------------------------------------------------


def page(net: Net, title: str = "Step by step", gradient: bool = False, law: str = "") -> str:
    """The page of a differentiation, or of the derivation of a law, as one text of HTML.

    Of a linear graph it is the page of the sweep back: a click on an edge shows what it sends, and
    marks the line that recorded it.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> "<title>The square</title>" in page(square, "The square")
    True
    """
    shots = _shots(net, gradient, law)
    words = SWEEP if is_swept(net) else REWRITING
    template = files("lineara.diagrams").joinpath("player.html").read_text(encoding="utf-8")
    data = json.dumps(_data(shots, words), ensure_ascii=False, separators=(",", ":"))
    parts = {
        "@TITLE@": escape(title),
        "@STYLE@": STYLE,
        "@LAST@": str(len(shots) - 1),
        "@FIRES@": words.marks[0],
        "@NEW@": words.marks[1],
        "@LANGUAGES@": "".join(
            [f'<option value="{i}">{w}</option>' for i, w in enumerate(words.languages)]
        ),
        "@DATA@": data.replace("<", "\\u003c"),
    }
    for mark, part in parts.items():
        template = template.replace(mark, part)
    return template


def _data(shots: Sequence[Shot], words: Words) -> dict[str, object]:
    """What the page reads: each shape, line and rule once, and shots that number them."""
    shapes: dict[str, int] = {}
    rules: dict[str, int] = {}
    lines: dict[str, int] = {}
    told = []
    before: list[list[str]] = [[], []]
    for shot in shots:
        scenes = []
        for drawn_, width, height in shot.scenes:
            numbers = []
            for s in _marked(drawn_, shot):
                written = json.dumps(
                    [s.key, s.tag, s.looks, [_short(x) for x in s.numbers], s.text, s.title],
                    ensure_ascii=False,
                )
                numbers.append(shapes.setdefault(written, len(shapes)))
            box = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN]
            scenes.append([numbers, [_short(x) for x in box]])
        texts = [shot.program.rstrip().split("\n"), shot.text.split("\n")]
        told.append(
            {
                "rule": shot.rule,
                "said": shot.said,
                "scenes": scenes,
                "states": shot.states,
                "boxes": shot.boxes,
                "texts": [_fresh(*t, lines, shot.marked) for t in zip(texts, before, strict=True)],
                "picture": -1 if shot.picture is None else _numbered(shot.picture, rules),
            }
        )
        before = texts
    return {
        "shapes": [json.loads(t) for t in shapes],
        "rules": [json.loads(t) for t in rules],
        "lines": list(lines),
        "shots": told,
        "folds": list(words.folds),
        "steps": {k: i for i, shot in enumerate(shots) for k in shot.made if shot.marked},
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


def _marked(shapes: Sequence[Shape], shot: Shot) -> Iterator[Shape]:
    for s in shapes:
        mark = " fires" if s.key == shot.fires else " new" if s.key in shot.made else ""
        yield s._replace(looks=s.looks + mark)


def _short(x: float) -> float:
    rounded = round(x, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _numbered(picture: Pictured, rules: dict[str, int]) -> int:
    sides = []
    for net in (picture.left, picture.right):
        side, shapes, _ = drawn(net)
        body = "".join(map(element, [s for s in shapes if not s.looks.startswith("name")]))
        sides.append([body, _short(side.width), _short(side.height)])
    return rules.setdefault(json.dumps(sides), len(rules))

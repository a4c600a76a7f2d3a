"""Diagrams as SVG that can be printed, light and dark.

A drawing is a list of shapes with stable keys (`scene`); `svg` writes them, and `player.py` moves
them.  In a notebook a diagram shows itself.

>>> from lineara.diagrams.parse import parse
>>> svg(parse("(x: R) => y = sin(x) -> y")).startswith("<svg")
True
"""

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from lineara.diagrams.layout import DOTS, HEAD, Picture, Placed, Point, Region, Routed, layout
from lineara.diagrams.net import Net, Wire, every_net
from lineara.diagrams.refuse import refusing
from lineara.diagrams.show import show, show_kind
from lineara.diagrams.sweeps import flow
from lineara.diagrams.types import Arrow, B, E, R, Stack, Type, Z
from lineara.diagrams.types import show as show_type

MARGIN = 12.0
Names = Mapping[Wire, str]


class Shape(NamedTuple):
    """Something drawn: the same key at another time is the same thing somewhere else."""

    key: str
    tag: str  # rect: x y width height radius; circle: x y radius; text: x y; path, polygon: points
    looks: str  # the names of its styles
    numbers: tuple[float, ...]
    text: str = ""
    title: str = ""
    place: tuple[str, str] = ("", "")  # the user's file and the number of a line, to be linked to


# --- names ----------------------------------------------------------------------------------------


class Namer:
    """Names of wires and keys of nodes that stay the same from picture to picture.

    A wire is named as the user's variable, `guess`, and what shares that name `guess_2`; the others
    come by the first appearance: x for inputs, f for functions, e for bundles, v for others.
    """

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        self.names: dict[int, str] = dict(names or {})
        self.taken: set[str] = set(self.names.values())
        self.last: dict[str, int] = {}
        self.keys: dict[int, str] = {}

    def named(self, net: Net) -> dict[Wire, str]:
        """The names of all wires of a diagram."""
        names = {}
        for n in every_net(net):
            for w in n.inputs:
                names[w] = self.name(w, "x")
            for node in n.nodes.values():
                names.update({w: self.name(w, "v") for w in node.outs})
        return names

    def name(self, w: Wire, stem: str) -> str:
        """The name of a wire."""
        if w.id not in self.names:
            word = w.name.lstrip("~")
            known = word.isidentifier() and not keyword.iskeyword(word)
            if known and not isinstance(w.type, Arrow):
                name = self.free(w.name, w.name + "_")
            else:
                stem = "f" if isinstance(w.type, Arrow) else "e" if w.type == E else stem
                name = self.free("", f"{'~' * w.linear}{stem}")
            self.names[w.id] = name
            self.taken.add(name)
        return self.names[w.id]

    def free(self, name: str, stem: str) -> str:
        """The name if no wire has it, else the first numbered one that none has."""
        while not name or name in self.taken:
            self.last[stem] = n = self.last.get(stem, 1 if stem.endswith("_") else 0) + 1
            name = f"{stem}{n}"
        return name

    def key(self, id: int) -> str:
        """A short word for the id of a node or wire."""
        return self.keys.setdefault(id, f"n{len(self.keys) + 1}")

    def goes_on(self, old: int, new: int) -> None:
        """Give the wire with the id `new` the name of one that is gone."""
        if old in self.names:
            self.names[new] = self.names[old]

    def same(self, old: int, new: int) -> None:
        """Draw the object with the id `new` as a continuation of the one with the id `old`."""
        self.keys[new] = self.key(old)
        self.goes_on(old, new)


# --- shapes ---------------------------------------------------------------------------------------

FRAMES = {"BLUE": "blue", "ORANGE": "orange", "GREEN": "green"}


def scene(
    picture: Picture,
    namer: Namer,
    names: Names,
) -> list[Shape]:
    """The shapes of a picture, those behind first."""
    shapes: list[tuple[int, int, Shape]] = []
    for region in picture.regions:
        shapes += [(region.depth, 3, s) for s in _interface(region, namer, names)]
    for placed in picture.placed:
        shapes += [(placed.depth, 2, s) for s in _node(placed, namer)]
    for routed in picture.wires:
        shapes.append((routed.depth, 1, _wire(routed, namer, names)))
    return [s for _, _, s in sorted(shapes, key=lambda item: item[:2])]


def look_of(t: Type) -> str:
    """The style of the wires of a type."""
    match t:
        case Arrow():
            return "function"
        case Stack():
            return "array"
    if t in (R, E, B, Z):
        return {R: "real", E: "bundle", B: "truth", Z: "truth"}[t]
    return "array"


def _wire(routed: Routed, namer: Namer, names: Names) -> Shape:
    w = routed.wire
    looks = f"wire {look_of(w.type)}{' linear' if w.linear else ''}"
    title = f"{names.get(w, '')}: {show_type(w.type)}".removeprefix(": ")
    return Shape(f"{namer.key(w.id)}w", "path", looks, _curves(routed.points), "", title)


def _curves(points: Sequence[Point]) -> tuple[float, ...]:
    """A start, then three points for each piece of a curve; pieces without length are left out."""
    x0, y0 = points[0]
    coordinates = [x0, y0]
    level = x0
    for (x1, y1), (x2, y2) in zip(points[1::2], points[2::2], strict=False):
        if y1 == y2:
            continue
        if x1 != level:
            coordinates += _piece(level, y1, x1, y1)
        coordinates += _piece(x1, y1, x2, y2)
        level = x2
    x, y = points[-1]
    if x != level or len(coordinates) == 2:
        coordinates += _piece(level, y, x, y)
    return tuple(coordinates)


def _piece(x1: float, y1: float, x2: float, y2: float) -> list[float]:
    if y1 == y2:
        third = (x2 - x1) / 3
        return [x1 + third, y1, x2 - third, y2, x2, y2]
    middle = (x1 + x2) / 2
    return [middle, y1, middle, y2, x2, y2]


def _node(placed: Placed, namer: Namer) -> list[Shape]:
    """The outline of a node and its label, with the line that recorded it."""
    told = flow(placed.node)
    line = re.match(r"([^<].*?):(\d+) in ", told.line) if told else None
    shapes = _outlined(placed, namer)
    return [s._replace(place=(line[1], line[2])) for s in shapes] if line else shapes


def _outlined(placed: Placed, namer: Namer) -> list[Shape]:
    node, key = placed.node, namer.key(placed.node.id)
    x, y, w, h = placed.x, placed.y, placed.width, placed.height
    title = show_kind(node)
    middle = (x + w / 2, y + h / 2)
    if node.kind in DOTS:
        r = {"copy": 3.6, "drop": 4.0}.get(node.kind, w / 2)
        shapes = [Shape(key, "circle", f"node {node.kind}", (*middle, r), "", title)]
        if placed.label:
            shapes.append(Shape(f"{key}l", "text", "label", middle, placed.label))
        return shapes
    if placed.node.bodies and not placed.folded:
        kind = FRAMES.get(node.kind, node.kind)
        outline = Shape(key, "rect", f"node around {kind}", (x, y, w, h, 9), "", title)
        at = (x + 9, y + HEAD / 2 + 3)
        return [outline, Shape(f"{key}l", "text", f"head {kind}", at, placed.label)]
    if node.kind in ("pack", "unpack", "sel", "route"):
        outline = _trapezoid(placed, f"{key}", f"node {node.kind}", title)
    else:
        kind = FRAMES.get(node.kind, node.kind)
        radius = {"const": h / 2, "eval": 4, "op": 4}.get(node.kind, 9)
        looks = f"node {kind}{' folded' if placed.folded else ''}"
        outline = Shape(key, "rect", looks, (x, y, w, h, radius), "", title)
    return [outline, Shape(f"{key}l", "text", "label", middle, placed.label)]


def _trapezoid(placed: Placed, key: str, looks: str, title: str) -> Shape:
    """Narrow on the side where there is one wire, whichever way the picture runs."""
    x, y, w, h = placed.x, placed.y, placed.width, placed.height
    cut = min(5.0, h / 5)
    many_left = placed.node.kind in ("pack", "sel")
    if placed.ins and placed.outs and placed.ins[0][0] > placed.outs[0][0]:
        many_left = not many_left
    a, b = (0.0, cut) if many_left else (cut, 0.0)
    points = (x, y + a, x + w, y + b, x + w, y + h - b, x, y + h - a)
    return Shape(key, "polygon", looks, points, "", title)


def _interface(region: Region, namer: Namer, names: Names) -> list[Shape]:
    """Where wires begin and end: the names of those that do not go on outside."""
    shapes = []
    ends = [(region.inputs, region.net.inputs, region.captured, "i", True)]
    ends.append((region.outputs, region.net.outputs, region.shared, "o", False))
    for points, wires, through, letter, first in ends:
        for (x, y), w in list(zip(points, wires, strict=True))[through:]:
            key = f"{namer.key(w.id)}{letter}"
            left = first != region.mirrored
            text = names.get(w, "")
            shapes.append(Shape(key, "circle", "port", (x, y, 2.2)))
            if text:
                at = (x - 5, y) if left else (x + 5, y)
                shapes.append(Shape(f"{key}l", "text", "name left" if left else "name", at, text))
    return shapes


# --- text -----------------------------------------------------------------------------------------

STYLE = """
.lineara{--paper:#fff;--ink:#1b1f24;--soft:#57606a;--wire:#4a5563;--fill:#f3f6fa;--edge:#5b6673;
--fn:#7b3fb0;--env:#9a5b00;--lin:#0b7a53;--blue:#1f5fc4;--orange:#b54a08;--green:#1a7f37;
--box:#7b3fb00d;--bluef:#1f5fc412;--orangef:#b54a0812;--greenf:#1a7f3712;--fire:#ffd33d;--new:#bfe3ff;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media (prefers-color-scheme:dark){.lineara{--paper:#14181d;--ink:#e8edf2;--soft:#a3adb8;
--wire:#aab4c0;--fill:#232a33;--edge:#8d98a5;--fn:#c79bf2;--env:#e9b04a;--lin:#54cf9f;--blue:#7fb0ff;
--orange:#ff9d5c;--green:#6fd68a;--box:#c79bf212;--bluef:#7fb0ff1a;--orangef:#ff9d5c1a;
--greenf:#6fd68a1a;--fire:#8a6a00;--new:#1d4f78}}
@media print{.lineara{--paper:#fff;--ink:#000;--soft:#333;--wire:#222;--fill:#fff;--edge:#222;
--fn:#5b2a8a;--env:#7a4700;--lin:#075c3e;--blue:#1f5fc4;--orange:#b54a08;--green:#1a7f37;
--box:#7b3fb00a;--bluef:#1f5fc40d;--orangef:#b54a080d;--greenf:#1a7f370d}}
.lineara .paper{fill:var(--paper)}
.lineara .wire{fill:none;stroke:var(--wire);stroke-width:1.4;stroke-linecap:round}
.lineara .array{stroke-width:2.2}
.lineara .function{stroke:var(--fn);stroke-width:2.6}
.lineara .bundle{stroke:var(--env);stroke-width:2;stroke-dasharray:6 3}
.lineara .truth{stroke:var(--soft);stroke-dasharray:1 3}
.lineara .linear{stroke:var(--lin);stroke-width:1.8}
.lineara .node{fill:var(--fill);stroke:var(--edge);stroke-width:1.1}
.lineara .copy{fill:var(--wire);stroke:none}
.lineara .drop,.lineara .add,.lineara .zero,.lineara .const{fill:var(--paper)}
.lineara .eval,.lineara .box{stroke:var(--fn)}
.lineara .pack,.lineara .unpack{stroke:var(--env)}
.lineara .around{fill:var(--box);stroke-width:1.3}
.lineara .around.frame{fill:none;stroke-dasharray:none;stroke-width:2}
.lineara .node.blue{stroke:var(--blue);fill:var(--bluef);stroke-width:1.8}
.lineara .node.orange{stroke:var(--orange);fill:var(--orangef);stroke-width:1.8}
.lineara .node.green{stroke:var(--green);fill:var(--greenf);stroke-width:1.8}
.lineara .folded{stroke-dasharray:4 2}
.lineara .fires{stroke:var(--ink);stroke-width:2.6;fill:var(--fire)}
.lineara .around.fires{fill-opacity:.3}
.lineara .copy.fires{stroke-width:2.2}
.lineara .new{fill:var(--new)}
.lineara .around.new{fill-opacity:.35}
.lineara .port{fill:var(--wire)}
.lineara text{fill:var(--ink);font-size:12px;text-anchor:middle;dominant-baseline:central}
.lineara text.head{font-size:11px;text-anchor:start;fill:var(--fn)}
.lineara text.head.blue{fill:var(--blue)}
.lineara text.head.orange{fill:var(--orange)}
.lineara text.head.green{fill:var(--green)}
.lineara text.head.frame{fill:var(--ink)}
.lineara text.name{font-size:10.5px;font-style:italic;text-anchor:start;fill:var(--soft)}
.lineara text.name.left{text-anchor:end}
.lineara text.step{text-anchor:start;font-weight:600}
""".strip()

LEGEND = {
    "function": "function", "bundle": "bundle of cotangents (E)", "array": "array",
    "truth": "truth value or integer", "linear": "linear",
}  # fmt: skip


def number(x: float) -> str:
    """A coordinate: at most one digit behind the point.

    >>> number(3.0), number(2.26), number(-0.04)
    ('3', '2.3', '0')
    """
    return f"{round(x, 1) + 0.0:.1f}".removesuffix(".0")


def _attributes(s: Shape) -> str:
    n = [number(x) for x in s.numbers]
    match s.tag:
        case "rect":
            names = ("x", "y", "width", "height", "rx")
        case "circle":
            names = ("cx", "cy", "r")
        case "text":
            names = ("x", "y")
        case "polygon":
            return f'points="{" ".join(n)}"'
        case _:
            return f'd="M{" ".join(n[:2])}C{" ".join(n[2:])}"'
    return " ".join([f'{a}="{v}"' for a, v in zip(names, n, strict=True)])


LINK = "{file}#L{line}"


def element(s: Shape, link: str = LINK) -> str:
    """A shape as an element of SVG, in a link if it has a place."""
    if s.place[0]:
        file, line = s.place
        to = link.format(file=quote(file), line=line)
        return f'<a href="{escape(to)}">{element(s._replace(place=("", "")))}</a>'
    inner = escape(s.text, quote=False)
    if s.title:
        inner = f"<title>{escape(s.title, quote=False)}</title>{inner}"
    head = f'<{s.tag} class="{s.looks}" {_attributes(s)}'
    return f"{head}>{inner}</{s.tag}>" if inner else f"{head}/>"


def _legend(picture: Picture, y: float) -> tuple[list[Shape], float]:
    """The legend of the kinds of wires that occur."""
    used = {"linear" if r.wire.linear else look_of(r.wire.type) for r in picture.wires}
    shapes, x = [], 0.0
    for i, (look, text) in enumerate(LEGEND.items()):
        if look in used:
            line = (x, y, x + 8, y, x + 18, y, x + 26, y)
            shapes.append(Shape(f"legend{i}", "path", f"wire {look}", line))
            shapes.append(Shape(f"legend{i}l", "text", "name", (x + 32, y), text))
            x += 44 + 6.2 * len(text)
    return shapes, x


def drawn(
    net: Net,
    fold: int | Collection[int] | None = None,
    namer: Namer | None = None,
) -> tuple[Picture, list[Shape], dict[Wire, str]]:
    """The picture of a diagram, its shapes and the names of its wires."""
    namer = namer or Namer()
    names = namer.named(net)
    picture = layout(net, fold, names)
    return picture, scene(picture, namer, names), names


@refusing
def svg(
    net: Net,
    fold: int | Collection[int] | None = None,
    legend: bool = True,
    link: str = LINK,
) -> str:
    """The picture of a diagram as a text of SVG, the same for isomorphic diagrams.

    `fold` shuts boxes: those within so many others, or those with the ids given.  An edge of a
    linear graph is a link to the line that recorded it, `link` with the name of the file and the
    number of the line: `"vscode://file/home/me/{file}:{line}"` opens an editor.  Raises a
    DiagramError if there is too much to draw.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> svg(square).startswith("<svg ")
    True
    """
    picture, shapes, names = drawn(net, fold)
    width, height = picture.width, picture.height
    if legend:
        more, wide = _legend(picture, height + 18)
        shapes, width = [*shapes, *more], max(width, wide)
        height += 26 if more else 0
    return written("\n".join([element(s, link) for s in shapes]), width, height, show(net, names))


def written(body: str, width: float, height: float, described: str) -> str:
    """Elements as a text of SVG that stands by itself."""
    w, h = width + 2 * MARGIN, height + 2 * MARGIN
    size = f'width="{number(w)}" height="{number(h)}"'
    box = f'viewBox="{number(-MARGIN)} {number(-MARGIN)} {number(w)} {number(h)}"'
    paper = f'<rect class="paper" x="{number(-MARGIN)}" y="{number(-MARGIN)}" {size}/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lineara" role="img" {size} {box}>'
        f"<title>String diagram</title><desc>{escape(described, quote=False)}</desc>"
        f"<style>{STYLE}</style>\n{paper}\n{body}\n</svg>\n"
    )


Net._repr_svg_ = svg  # a notebook asks a diagram, and diagrams lie below their pictures

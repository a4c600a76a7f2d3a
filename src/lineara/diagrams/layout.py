"""Where everything in a diagram is drawn: levels within levels, wires from left to right.

No wire crosses the border of a box (W4), so every level is laid out by itself, the inner ones
first, and is then one rectangle of the level around it, whose ports are where its own wires end.
The body of GREEN is mirrored: what runs back runs from right to left.  Isomorphic diagrams have the
same drawing, since `canonical` decides where the picture leaves a choice.

>>> from lineara.diagrams.parse import parse
>>> picture = layout(parse("(x: R) => y = sin(x) -> y"))
>>> [p.node.label for p in picture.placed], picture.crossings
(['sin'], 0)
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lineara.diagrams.canonical import canonicals
from lineara.diagrams.crossing_order import Edge, Item, arrange
from lineara.diagrams.names import SIGNS, condition
from lineara.diagrams.net import Net, Node, Wire, every_net
from lineara.diagrams.refuse import refusing
from lineara.diagrams.show import ordered
from lineara.diagrams.types import tan
from lineara.errors import DiagramError
from lineara.facts.hints import Value

LIMIT = 1500  # nodes that a picture may show
PAD = 14.0  # between the border of a level and what is in it
HEAD = 17.0  # for the label of a box
PORT = 14.0  # between ports
Point = tuple[float, float]


@dataclass(slots=True)
class Placed:
    """A node in its place; `parts` are the levels drawn within it."""

    node: Node
    x: float
    y: float
    width: float
    height: float
    ins: list[Point]
    outs: list[Point]
    depth: int
    label: str
    folded: bool


@dataclass(slots=True)
class Region:
    """A level in its place, and the points where its interface is."""

    net: Net
    x: float
    y: float
    width: float
    height: float
    inputs: list[Point]
    outputs: list[Point]
    captured: int  # inputs that come from outside the box; the others are bound
    shared: int  # outputs that go on outside
    mirrored: bool
    depth: int


@dataclass(slots=True)
class Routed:
    """A wire in its place: level from point 0 to 1, curved from 1 to 2, and so on by turns."""

    wire: Wire
    points: list[Point]
    depth: int
    mirrored: bool


@dataclass(slots=True)
class Picture:
    """A drawing; what lies within comes after what it lies in."""

    net: Net
    width: float = 0.0
    height: float = 0.0
    crossings: int = 0
    placed: list[Placed] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    wires: list[Routed] = field(default_factory=list)


# --- what a node looks like -----------------------------------------------------------------------

DOTS = {"copy": 8.0, "drop": 10.0, "add": 18.0, "zero": 18.0}  # round, and how large
_NARROW, _WIDE = frozenset("iljtfr.,:;'|![]() -"), frozenset("mwMW@%+×\N{MINUS SIGN}÷<>≤≥=≠λ→")


def text_width(text: str, size: float = 12.0) -> float:
    """How wide a label is, more or less; never too little.

    >>> text_width("sin") < text_width("multiply")
    True
    """
    units = [0.38 if c in _NARROW else 0.92 if c in _WIDE else 0.62 for c in text]
    return float(math.ceil(size * sum(units)))


def label_of(node: Node) -> str:
    """The label of a node."""
    match node.kind:
        case "op":
            return _short(SIGNS.get(node.name, node.name))
        case "const":
            return _short(_number(node.data))
        case "add":
            return "+"
        case "zero":
            return "0"
        case "copy" | "drop":
            return ""
        case "scan":
            return f"scan {'←' if node.data[2] else '→'} {node.data[0]}"
        case "box":
            return _short(node.outs[0].name if node.outs else "") or "λ"
        case "frame" if isinstance(node.data, tuple) and node.data[:1] == ("Cond",):
            return _short(f"if {condition(node.ins[0])}")
        case "frame":
            return _short(node.name)
    return node.kind


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:23]}…"


def _number(x: Value) -> str:
    if isinstance(x, bool | int | np.bool_ | np.integer):
        return str(x)
    if isinstance(x, float | np.floating):
        return f"{float(x):.6g}"
    array = np.asarray(x)
    return str(x) if array.ndim == 0 else f"[{'×'.join(map(str, array.shape))}]"


def _spread(n: int, height: float) -> list[float]:
    """n ports in the middle of a side."""
    first = height / 2 - PORT * (n - 1) / 2
    return [first + PORT * i for i in range(n)]


def plain_item(node: Node, label: str) -> Item:
    """A node without anything within."""
    if node.kind in DOTS:
        d = DOTS[node.kind]
        middle = [d / 2]
        if node.kind == "add":
            return Item(d, d, (d / 2 - 4, d / 2 + 4), middle)
        return Item(d, d, middle * len(node.ins), middle * len(node.outs))
    ports = max(len(node.ins), len(node.outs), 1)
    height = max(24.0, PORT * (ports - 1) + 18)
    width = max(24.0, text_width(label) + 14)
    return Item(width, height, _spread(len(node.ins), height), _spread(len(node.outs), height))


# --- one level after the other --------------------------------------------------------------------


@dataclass(slots=True)
class _Level:
    """A level that has been laid out, from its own upper left corner."""

    net: Net
    width: float
    height: float
    first: list[Item]
    last: list[Item]
    nodes: list[tuple[Node, Item, "_Inside"]]
    edges: list[tuple[Wire, Edge]]
    captured: int
    shared: int
    mirrored: bool = False

    def widen(self, width: float) -> None:
        """Make room between the last layer and the outputs."""
        for item in self.last:
            item.shift(width - self.width)
        self.width = width

    def inputs(self) -> list[float]:
        """The heights of the inputs."""
        return [i.y + i.outs[0] for i in self.first]

    def outputs(self) -> list[float]:
        """The heights of the outputs."""
        return [i.y + i.ins[0] for i in self.last]


@dataclass(slots=True)
class _Inside:
    """The drawing within a node: its levels and their positions."""

    label: str
    folded: bool
    parts: list[tuple[_Level, float]]


class Folds:
    """Which boxes are shut: those deeper than a number, and those with the ids given."""

    def __init__(self, fold: int | Collection[int] | None) -> None:
        self.depth: int | None = fold if isinstance(fold, int) else None
        self.ids: frozenset[int] = (
            frozenset() if fold is None or isinstance(fold, int) else frozenset(fold)
        )

    def __call__(self, node: Node, depth: int) -> bool:
        """Whether a box within `depth` others is shut."""
        return node.id in self.ids or (self.depth is not None and depth >= self.depth)


@refusing
def layout(
    net: Net, fold: int | Collection[int] | None = None, names: Mapping[Wire, str] | None = None
) -> Picture:
    """The drawing of a diagram.

    `fold` shuts boxes: all within so many others (0: every one), or those with the ids given.
    `names` are written at the ends of the wires that come from outside and go there.  Raises a
    DiagramError if there is too much to draw, which says how to fold.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> picture = layout(square)
    >>> picture.width > 0, picture.crossings
    (True, 0)
    """
    folds = Folds(fold)
    shown = _shown(net, folds)
    _drawable(net, sum([len(n.nodes) for n, _ in shown]), folds)
    canons = canonicals(net)
    laid_out: dict[int, _Level] = {}
    crossed = 0
    for n, depth in reversed(shown):
        order = ordered(n, canons[id(n)])
        laid_out[id(n)], crossings = _level(n, order, laid_out, folds, depth, names or {})
        crossed += crossings
    level = laid_out[id(net)]
    picture = Picture(net, level.width, level.height, crossed)
    _emit(picture, level)
    return picture


def _shown(net: Net, folds: Folds) -> list[tuple[Net, int]]:
    """The levels that are drawn, and how many boxes each lies in."""
    levels = [(net, 0)]
    for n, depth in levels:
        for node in n.nodes.values():
            if node.bodies and not folds(node, depth):
                levels += [(b, depth + 1) for b in node.bodies]
    return levels


def _drawable(net: Net, shown: int, folds: Folds) -> None:
    if shown <= LIMIT:
        return
    by_depth: dict[int, int] = {}
    for n in every_net(net):
        by_depth[len(n.path)] = by_depth.get(len(n.path), 0) + len(n.nodes)
    base = min(by_depth)
    total, best = 0, None
    for depth in sorted(by_depth):
        total += by_depth[depth]
        if total <= LIMIT:
            best = (depth - base, total)
    mend = (
        f"draw a part of it: its outermost level alone has {by_depth[base]}"
        if best is None
        else f"fold={best[0]} (--fold {best[0]}) shuts the boxes within {best[0]} others, and "
        f"leaves {best[1]}"
    )
    raise DiagramError(
        f"the picture would show {shown} nodes, and can be read with up to {LIMIT}; {mend}"
    )


def _level(
    net: Net,
    order: Sequence[Node],
    laid_out: Mapping[int, _Level],
    folds: Folds,
    depth: int,
    names: Mapping[Wire, str],
) -> tuple[_Level, int]:
    """Lay out one level whose inner levels are there."""
    owner = net.owner if depth else None
    captured, shared = _through(owner, net) if owner else (0, 0)
    first = _ends([names.get(w, "") for w in net.inputs], captured, depth, True)
    last = _ends([names.get(w, "") for w in net.outputs], shared, depth, False)
    source: dict[Wire, tuple[Item, int]] = {
        w: (i, 0) for w, i in zip(net.inputs, first, strict=True)
    }
    target: dict[Wire, tuple[Item, int]] = {
        w: (i, 0) for w, i in zip(net.outputs, last, strict=True)
    }
    nodes = []
    for node in order:
        item, inside = _node(node, laid_out, folds, depth)
        nodes.append((node, item, inside))
        source.update({w: (item, i) for i, w in enumerate(node.outs)})
        target.update({w: (item, i) for i, w in enumerate(node.ins)})
    wires = [*net.inputs, *[w for node in order for w in node.outs]]
    edges = [(w, Edge(*source[w], *target[w])) for w in wires]
    drawing = arrange(first, [item for _, item, _ in nodes], last, [e for _, e in edges])
    for item in first[:captured]:
        item.width = 0  # from the border on
    for item in last[:shared]:
        item.x, item.width = item.x + item.width, 0
    width = drawing.width
    if not first:
        width += PAD
        bends = [bend for _, e in edges for bend in e.bends]
        for item in (*[item for _, item, _ in nodes], *last, *bends):
            item.shift(PAD)
    if not last:
        width += PAD
    level = _Level(net, width, drawing.height, first, last, nodes, edges, captured, shared)
    return level, drawing.crossings


def _ends(labels: list[str], through: int, depth: int, first: bool) -> list[Item]:
    """The interface: at the border where it goes on outside, with room for a name elsewhere."""
    width = 0.0
    if labels:
        widths = [text_width(t, 10.5) + 8 if t else 0.0 for t in labels]
        own = widths if not depth else widths[through:]
        width = max([10.0, *own])
    ports = ([], [2.0]) if first else ([2.0], [])
    return [Item(width, 4, *ports) for _ in labels]


def _through(owner: Node, net: Net) -> tuple[int, int]:
    """How many inputs and outputs of a body are also ports of the node around it."""
    match owner.kind:
        case "box":
            return len(owner.ins), 0
        case "BLUE" | "ORANGE" | "GREEN":
            return len(net.inputs), len(net.outputs)
    joined = len(owner.bodies) == 1
    ins = len(net.inputs) if joined and len(owner.ins) == len(net.inputs) else 0
    outs = len(net.outputs) if joined and len(owner.outs) == len(net.outputs) else 0
    return ins, outs


def _node(
    node: Node, laid_out: Mapping[int, _Level], folds: Folds, depth: int
) -> tuple[Item, _Inside]:
    label = label_of(node)
    if not node.bodies:
        return plain_item(node, label), _Inside(label, False, [])
    if folds(node, depth):
        count = sum([len(n.nodes) for b in node.bodies for n in every_net(b)])
        label = f"{label} ⋯ {count}"
        return plain_item(node, label), _Inside(label, True, [])
    label += " ◂" * (node.kind == "GREEN")  # a GREEN node runs from right to left
    return _around(node, label, [laid_out[id(b)] for b in node.bodies])


def _around(node: Node, label: str, levels: Sequence[_Level]) -> tuple[Item, _Inside]:
    """A node around its levels, one above the other; its ports are at theirs where they are one."""
    width = max([text_width(label, 11) + 16, *[level.width for level in levels]])
    for level in levels:
        level.widen(width)
    ins: list[float | None] = [None] * len(node.ins)
    outs: list[float | None] = [None] * len(node.outs)
    if len(levels) == 1:
        ins, outs = _matched(node, levels[0])
    above = max(_before(ins), _before(outs))
    y = HEAD + PAD / 2 + above * PORT
    parts = []
    for level in levels:
        level.mirrored = node.kind == "GREEN"
        parts.append((level, y))
        y += level.height + PAD
    start = parts[0][1] if parts else y
    below = max(_after(ins), _after(outs))
    height = y - PAD / 2 + below * PORT
    item = Item(width, height, _heights(ins, start, height), _heights(outs, start, height))
    return item, _Inside(label, False, parts)


def _matched(node: Node, level: _Level) -> tuple[list[float | None], list[float | None]]:
    """For each port the height of what it is within, or None."""
    net = level.net
    inputs, outputs = level.inputs(), level.outputs()
    ins: list[float | None] = [None] * len(node.ins)
    outs: list[float | None] = [None] * len(node.outs)
    match node.kind:
        case "box":
            ins[:] = inputs[: len(ins)]
        case "BLUE" | "ORANGE":
            ins[:] = inputs
            outs[: len(outputs)] = outputs
        case "GREEN":
            moving = [y for y, w in zip(outputs, net.outputs, strict=True) if tan(w.type)]
            ins[len(ins) - len(moving) :] = moving
            outs[:] = [y for y, w in zip(inputs, net.inputs, strict=True) if tan(w.type)]
        case _:
            ins[:] = inputs if level.captured else ins
            outs[:] = outputs if level.shared else outs
    return ins, outs


def _before(ports: Sequence[float | None]) -> int:
    """How many ports lie above those that have a height."""
    known = [i for i, y in enumerate(ports) if y is not None]
    return known[0] if known else 0


def _after(ports: Sequence[float | None]) -> int:
    known = [i for i, y in enumerate(ports) if y is not None]
    return len(ports) - 1 - known[-1] if known else 0


def _heights(ports: Sequence[float | None], start: float, height: float) -> list[float]:
    """The heights of all ports: those within where they are, the others above and below them."""
    known = [(i, y + start) for i, y in enumerate(ports) if y is not None]
    if not known:
        return _spread(len(ports), height)
    (i0, top), (i1, bottom) = known[0], known[-1]
    heights = dict(known)
    return [
        heights[i]
        if i in heights
        else top - PORT * (i0 - i)
        if i < i0
        else bottom + PORT * (i - i1)
        for i in range(len(ports))
    ]


# --- absolute places ------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class _Frame:
    """From a level's own coordinates to the picture's: x goes to ox + sign * x."""

    ox: float
    oy: float
    sign: int
    depth: int

    def point(self, x: float, y: float) -> Point:
        return self.ox + self.sign * x, self.oy + y

    def left(self, x: float, width: float) -> float:
        return self.ox + self.sign * x - (width if self.sign < 0 else 0)


def _emit(picture: Picture, root: _Level) -> None:
    """Put everything into the picture, the outer levels first."""
    open_ = [(root, _Frame(0, 0, 1, 0))]
    for level, at in open_:
        picture.regions.append(_region(level, at))
        for w, e in level.edges:
            points = [at.point(*p) for p in _course(e)]
            picture.wires.append(Routed(w, points, at.depth, at.sign < 0))
        for node, item, inside in level.nodes:
            placed = Placed(
                node,
                at.left(item.x, item.width),
                at.oy + item.y,
                item.width,
                item.height,
                [at.point(item.x, item.y + y) for y in item.ins],
                [at.point(item.x + item.width, item.y + y) for y in item.outs],
                at.depth,
                inside.label,
                inside.folded,
            )
            picture.placed.append(placed)
            for part, y in inside.parts:
                open_.append((part, _within(at, item, part, y)))


def _within(at: _Frame, item: Item, part: _Level, y: float) -> _Frame:
    """The coordinates of a level within a node, mirrored if it is."""
    sign = -at.sign if part.mirrored else at.sign
    start = item.x + (part.width if part.mirrored else 0)
    ox, oy = at.point(start, item.y + y)
    return _Frame(ox, oy, sign, at.depth + 1)


def _region(level: _Level, at: _Frame) -> Region:
    inputs = [at.point(i.x + i.width, i.y + i.outs[0]) for i in level.first]
    outputs = [at.point(i.x, i.y + i.ins[0]) for i in level.last]
    return Region(
        level.net,
        at.left(0, level.width),
        at.oy,
        level.width,
        level.height,
        inputs,
        outputs,
        level.captured,
        level.shared,
        at.sign < 0,
        at.depth,
    )


def _course(e: Edge) -> Iterator[Point]:
    """The points of a wire, two by two: level through a layer, and curved to the next."""
    yield e.source.x + e.source.width, e.source.y + e.source.outs[e.out]
    yield e.source.column[1], e.source.y + e.source.outs[e.out]
    for bend in e.bends:
        yield bend.column[0], bend.y
        yield bend.column[1], bend.y
    yield e.target.column[0], e.target.y + e.target.ins[e.into]
    yield e.target.x, e.target.y + e.target.ins[e.into]

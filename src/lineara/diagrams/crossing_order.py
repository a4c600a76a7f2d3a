"""Items in layers, from left to right: few crossings, straight wires  [Sugiyama].

The four steps of a layered drawing: a layer for each item, an order within each layer by sweeps of
barycentres, heights by isotonic medians, and columns.  A wire over several layers bends at items of
no width, one a layer.  Nothing here knows what a diagram is; equal inputs give equal drawings.

>>> a, b = Item(10, 10, outs=[5]), Item(10, 20, ins=[10])
>>> drawing = arrange([], [a, b], [], [Edge(a, 0, b, 0)])
>>> b.x > a.x + a.width, a.y + 5 == b.y + 10
(True, True)
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP = 10.0  # between items of a layer
PITCH = 9.0  # between wires that run side by side
CHANNEL = 26.0  # between layers, at least
SWEEPS = 12  # of barycentres
SETTLING = 6  # of heights, each there and back


@dataclass(slots=True, eq=False)
class Item:
    """A rectangle with ports, which are heights below its upper edge; a bend if it has no width."""

    width: float
    height: float
    ins: Sequence[float] = ()
    outs: Sequence[float] = ()
    x: float = 0.0
    y: float = 0.0
    layer: int = 0
    rank: int = 0
    column: tuple[float, float] = (0.0, 0.0)  # from where to where its layer is
    left: list["Link"] = field(default_factory=list)
    right: list["Link"] = field(default_factory=list)

    def shift(self, by: float) -> None:
        """Move to the right, with its column."""
        self.x += by
        self.column = (self.column[0] + by, self.column[1] + by)

    @property
    def bend(self) -> bool:
        """Whether it only marks where a wire passes a layer."""
        return self.width == 0 and self.height == 0


@dataclass(slots=True, eq=False)
class Link:
    """A piece of a wire between two neighbouring layers, seen from one of its ends."""

    port: int  # of the item that has it
    item: Item  # at the other end
    at: int  # the port there
    rise: float  # height of this end's item below the other's where the wire is straight
    weight: float


@dataclass(slots=True, eq=False)
class Edge:
    """A wire: from a port to a port, by the bends in between."""

    source: Item
    out: int
    target: Item
    into: int
    bends: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class Drawing:
    """A finished drawing: its size, and how often wires cross."""

    width: float
    height: float
    crossings: int


def arrange(
    first: Sequence[Item], items: Sequence[Item], last: Sequence[Item], edges: Sequence[Edge]
) -> Drawing:
    """Give every item its `x` and `y`; `first` and `last` are columns that keep their order.

    `items` are in topological order, and that order decides where nothing else does.
    """
    if not [*first, *items, *last]:
        return Drawing(0, 0, 0)
    _layered(first, items, last, edges)
    layers = _linked([*first, *items, *last], edges)
    crossed = _ordered(layers, bool(first), bool(last))
    _settled(layers)
    return _columns(layers, crossed)


# --- layers ---------------------------------------------------------------------------------------


def _layered(
    first: Sequence[Item], items: Sequence[Item], last: Sequence[Item], edges: Sequence[Edge]
) -> None:
    """As far left as possible; then whatever has more wires to its right moves there.

    What depends on nothing goes where it is needed, what nothing needs stays where it arises.
    """
    before: dict[Item, list[Item]] = {}
    after: dict[Item, list[Item]] = {}
    for e in edges:
        before.setdefault(e.target, []).append(e.source)
        after.setdefault(e.source, []).append(e.target)
    rootless = set()
    for item in items:
        item.layer = 1 + max([p.layer for p in before.get(item, ())], default=0)
        if all([p in rootless for p in before.get(item, ())]):
            rootless.add(item)
    end = 1 + max([i.layer for i in items], default=0)
    for item in last:
        item.layer = end
    for item in reversed(items):
        ahead = after.get(item, ())
        if ahead and (item in rootless or len(ahead) > len(before.get(item, ()))):
            item.layer = min([n.layer for n in ahead]) - 1
    everything = [*first, *items, *last]
    dense = {n: i for i, n in enumerate(sorted({item.layer for item in everything}))}
    for item in everything:
        item.layer = dense[item.layer]


def _linked(items: Sequence[Item], edges: Sequence[Edge]) -> list[list[Item]]:
    """The layers with their bends, and the links between neighbours."""
    layers: list[list[Item]] = [[] for _ in range(1 + max([i.layer for i in items], default=0))]
    for item in items:
        layers[item.layer].append(item)
    for e in edges:
        between = range(e.source.layer + 1, e.target.layer)
        e.bends = [Item(0, 0, (0,), (0,), layer=n) for n in between]
        path = [e.source, *e.bends, e.target]
        for i, (a, b) in enumerate(pairwise(path)):
            out, into = (e.out if i == 0 else 0), (e.into if i == len(path) - 2 else 0)
            weight = (1.0, 2.0, 8.0)[a.bend + b.bend]
            rise = b.ins[into] - a.outs[out]  # straight: a.y = b.y + rise
            a.right.append(Link(out, b, into, rise, weight))
            b.left.append(Link(into, a, out, -rise, weight))
        for bend in e.bends:
            layers[bend.layer].append(bend)
    for layer in layers:
        _ranked(layer)
    return layers


def _ranked(layer: Iterable[Item]) -> None:
    for i, item in enumerate(layer):
        item.rank = i


# --- order ----------------------------------------------------------------------------------------


def _ordered(layers: list[list[Item]], first: bool, last: bool) -> int:
    """Sort every layer by what its items are joined to; the best order met is kept."""
    free = layers[1 if first else 0 : -1 if last and len(layers) > 1 else None]
    best, best_layers = crossings(layers), [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        if best == 0:
            break
        leftward = sweep % 2 == 1
        for layer in reversed(free) if leftward else free:
            layer.sort(key=lambda item: _barycentre(item, leftward))
            _ranked(layer)
        for _ in range(2):
            for layer in free:
                _exchanged(layer)
        n = crossings(layers)
        if n < best:
            best, best_layers = n, [list(layer) for layer in layers]
    for layer, kept in zip(layers, best_layers, strict=True):
        layer[:] = kept
        _ranked(layer)
    return best


def _position(item: Item, port: int, ports: int) -> float:
    return item.rank + (port + 1) / (ports + 1)


def _barycentre(item: Item, leftward: bool) -> tuple[float, int]:
    """The mean place of what it is joined to on one side."""
    links = item.right if leftward else item.left
    if not links:
        return item.rank + 0.5, item.rank
    places = [_position(k.item, k.at, len(k.item.ins if leftward else k.item.outs)) for k in links]
    return sum(places) / len(places), item.rank


def _exchanged(layer: list[Item]) -> None:
    """Swap neighbours where that saves crossings."""
    for i in range(len(layer) - 1):
        a, b = layer[i], layer[i + 1]
        if _between(b, a) < _between(a, b):
            layer[i], layer[i + 1] = b, a
            a.rank, b.rank = b.rank, a.rank


def _between(a: Item, b: Item) -> int:
    """How often wires of `a` cross those of `b` if `a` is above it."""
    count = 0
    for ours, theirs in ((a.left, b.left), (a.right, b.right)):
        ends = sorted([(k.item.rank, k.at) for k in theirs])
        for k in ours:
            count += _below((k.item.rank, k.at), ends)
    return count


def _below(end: tuple[int, int], ends: Sequence[tuple[int, int]]) -> int:
    """How many of the sorted ends come before one."""
    count = 0
    while count < len(ends) and ends[count] < end:
        count += 1
    return count


def crossings(layers: Sequence[Sequence[Item]]) -> int:
    """How often wires cross between neighbouring layers."""
    count = 0
    for layer in layers:
        pairs = [(item.rank, k.port, k.item.rank, k.at) for item in layer for k in item.right]
        seen: list[tuple[int, int]] = []
        for _, _, rank, port in sorted(pairs):
            count += len(seen) - bisect_right(seen, (rank, port))
            insort(seen, (rank, port))
    return count


# --- heights --------------------------------------------------------------------------------------


def _settled(layers: list[list[Item]]) -> None:
    """Heights that keep the order and make as many wires as possible straight."""
    for layer in layers:
        for above, item in pairwise(layer):
            item.y = above.y + _apart(above, item)
    for turn in range(SETTLING):
        for layer in layers:
            _level(layer, [i.left or i.right for i in layer])
        for layer in reversed(layers):
            _level(layer, [i.right or i.left for i in layer])
        if turn >= SETTLING // 2:
            for layer in (*layers, *reversed(layers)):
                _level(layer, [[*i.left, *i.right] for i in layer])
    top = min([item.y for layer in layers for item in layer], default=0.0)
    for layer in layers:
        for item in layer:
            item.y -= top


def _apart(above: Item, below: Item) -> float:
    """The least distance between the upper edges of neighbours."""
    return above.height + (PITCH if above.bend or below.bend else GAP)


def _level(layer: list[Item], links: list[list[Link]]) -> None:
    """The heights nearest to those at which the links are straight, in the order of the layer.

    Subtracting the least distances leaves an isotonic regression; in the absolute norm a block is
    at a weighted median, which is where one of its wires is straight.
    """
    shifts = [0.0]
    for above, item in pairwise(layer):
        shifts.append(shifts[-1] + _apart(above, item))
    blocks: list[_Block] = []
    for i, item in enumerate(layer):
        near = item.y - shifts[i]
        wanted = [(k.item.y + k.rise - shifts[i], k.weight) for k in links[i]]
        blocks.append(_Block(i, wanted or [(near, 0.01)], near))
        while len(blocks) > 1 and blocks[-1].at < blocks[-2].at:
            lower, upper = blocks.pop(), blocks.pop()
            blocks.append(_Block(upper.start, upper.wanted + lower.wanted, upper.at))
    for block, end in zip(blocks, [*[b.start for b in blocks[1:]], len(layer)], strict=True):
        for i in range(block.start, end):
            layer[i].y = block.at + shifts[i]


class _Block:
    """Items that touch, and the height that suits most of their wires."""

    def __init__(self, start: int, wanted: list[tuple[float, float]], near: float) -> None:
        self.start = start
        self.wanted = wanted
        self.at = median(wanted, near)


def median(wanted: Iterable[tuple[float, float]], near: float) -> float:
    """The weighted median; where an interval is as good, the end of it that is nearest.

    >>> median([(1.0, 1.0), (5.0, 1.0)], 4.5), median([(1.0, 1.0), (5.0, 1.0), (9.0, 3.0)], 0.0)
    (5.0, 9.0)
    """
    points = sorted(wanted)
    half, sum_ = sum([w for _, w in points]) / 2, 0.0
    for i, (at, weight) in enumerate(points):
        sum_ += weight
        if sum_ > half or i == len(points) - 1:
            return at
        if sum_ == half:
            return min(at, points[i + 1][0], key=lambda end: abs(end - near))
    return near


# --- columns --------------------------------------------------------------------------------------


def _beside(item: Item, room: float) -> float:
    """In the middle of a column; near what it is joined to if the column is much wider."""
    if room < item.width + CHANNEL:
        return room / 2
    return 0 if item.left else room


def _columns(layers: list[list[Item]], crossed: int) -> Drawing:
    """Columns as wide as their widest item, channels as wide as their steepest wire asks for."""
    x = 0.0
    for layer in layers:
        width = max([item.width for item in layer], default=0.0)
        for item in layer:
            item.x = x + _beside(item, width - item.width)
            item.column = (x, x + width)
        falls = [abs(k.item.y + k.rise - item.y) for item in layer for k in item.right]
        x += width + (min(96.0, max(CHANNEL, 14 + 0.3 * max(falls))) if falls else CHANNEL)
    height = max([item.y + item.height for layer in layers for item in layer], default=0.0)
    last = layers[-1]
    return Drawing(max([i.x + i.width for i in last], default=0.0), height, crossed)

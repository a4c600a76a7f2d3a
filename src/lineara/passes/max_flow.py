"""A minimum cut of a directed graph with integer capacities  [Dinic 1970].

Nodes are numbered, edges are added one by one, and `sink_side` gives the smallest set with the sink
that a minimum cut separates from the source.
"""


class Network:
    """A directed graph with capacities.

    >>> g = Network()
    >>> s, a, b, t = (g.node() for _ in range(4))
    >>> for edge in ((s, a, 3), (a, b, 2), (b, t, 5)):
    ...     g.edge(*edge)
    >>> g.flow(s, t), g.sink_side(t) == {b, t}
    (2, True)
    """

    def __init__(self) -> None:
        self.heads: list[list[int]] = []  # edges from each node
        self.to: list[int] = []
        self.room: list[int] = []  # edge i ^ 1 is edge i backwards

    def node(self) -> int:
        """A new node."""
        self.heads.append([])
        return len(self.heads) - 1

    def edge(self, u: int, v: int, capacity: int) -> None:
        """An edge from u to v."""
        for a, b, room in ((u, v, capacity), (v, u, 0)):
            self.heads[a].append(len(self.to))
            self.to.append(b)
            self.room.append(room)

    def flow(self, source: int, sink: int) -> int:
        """Send the largest flow; returns its value."""
        total = 0
        while (level := self._levels(source, sink)) is not None:
            total += self._blocking(source, sink, level)
        return total

    def _levels(self, source: int, sink: int) -> list[int] | None:
        """How far each node is from the source, or None if the sink is out of reach."""
        level = [-1] * len(self.heads)
        level[source] = 0
        row = [source]
        while row and level[sink] < 0:
            further = []
            for u in row:
                for e in self.heads[u]:
                    v = self.to[e]
                    if self.room[e] and level[v] < 0:
                        level[v] = level[u] + 1
                        further.append(v)
            row = further
        return level if level[sink] >= 0 else None

    def _blocking(self, source: int, sink: int, level: list[int]) -> int:
        """Flow along shortest paths until each of them is full."""
        to, room, heads = self.to, self.room, self.heads
        at = [0] * len(heads)  # the edges before it lead nowhere any more
        path: list[int] = []
        u, total = source, 0
        while True:
            if u == sink:
                sent = min([room[e] for e in path])
                total += sent
                for e in path:
                    room[e] -= sent
                    room[e ^ 1] += sent
                full = next(i for i, e in enumerate(path) if not room[e])
                u = to[path[full] ^ 1]
                del path[full:]
            elif at[u] < len(heads[u]):
                e = heads[u][at[u]]
                if room[e] and level[to[e]] == level[u] + 1:
                    path.append(e)
                    u = to[e]
                else:
                    at[u] += 1
            elif path:
                u = to[path.pop() ^ 1]
                at[u] += 1
            else:
                return total

    def sink_side(self, sink: int) -> set[int]:
        """The nodes from which more could still flow to the sink."""
        side, todo = {sink}, [sink]
        while todo:
            for e in self.heads[todo.pop()]:
                u = self.to[e]
                if self.room[e ^ 1] and u not in side:
                    side.add(u)
                    todo.append(u)
        return side

"""Greedy colourings of a graph, as loops over arrays: each vertex gets the first free colour.

Colours count from 1, and `mark` is room for one number a colour.  The loops are plain Python on
integers, so that `lineara.jit` compiles them where a matrix is large.
"""

import numpy as np


def distant(
    ptr: np.ndarray, idx: np.ndarray, back: np.ndarray, through: np.ndarray,
    colours: np.ndarray, mark: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Vertices that share a neighbour differ  [Curtis et al. 1974].

    Vertex v has the neighbours idx[ptr[v]:ptr[v + 1]], and neighbour r is one of the vertices
    through[back[r]:back[r + 1]].
    """
    for v in range(len(colours)):
        for p in range(ptr[v], ptr[v + 1]):
            r = idx[p]
            for q in range(back[r], back[r + 1]):
                mark[colours[through[q]]] = v
        c = 1
        while mark[c] == v:
            c += 1
        colours[v] = c
    return colours


def star(ptr: np.ndarray, idx: np.ndarray, colours: np.ndarray, mark: np.ndarray) -> np.ndarray:
    """Neighbours differ, and a path of four has three colours  [Gebremedhin et al. 2007, alg. 4.1].

    Vertex v has the neighbours idx[ptr[v]:ptr[v + 1]], itself among them or not.
    """
    for v in range(len(colours)):
        for p in range(ptr[v], ptr[v + 1]):
            w = idx[p]
            if w == v:
                continue
            mark[colours[w]] = v
            for q in range(ptr[w], ptr[w + 1]):
                x = idx[q]
                if x in (v, w) or colours[x] == 0:
                    continue
                if colours[w] == 0:
                    mark[colours[x]] = v
                else:
                    for s in range(ptr[x], ptr[x + 1]):
                        y = idx[s]
                        if y != x and y != w and colours[y] == colours[w]:
                            mark[colours[x]] = v
        c = 1
        while mark[c] == v:
            c += 1
        colours[v] = c
    return colours


def acyclic(
    ptr: np.ndarray, idx: np.ndarray, edge: np.ndarray, colours: np.ndarray, mark: np.ndarray,
    root: np.ndarray, seen_by: np.ndarray, seen_from: np.ndarray, near: np.ndarray, by: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Neighbours differ, and a cycle has three colours  [Gebremedhin et al. 2007, alg. 3.1].

    Vertex v has the neighbours idx[ptr[v]:ptr[v + 1]], itself among them or not, by the edges of
    these numbers.  Edges of two colours that are joined are a tree, and have one `root`; `seen_by`
    is the vertex that has come to a tree last, and `seen_from` the neighbour that it came from;
    `near` is an edge to a neighbour of each colour, of the vertex `by`.
    """
    for v in range(len(colours)):
        for p in range(ptr[v], ptr[v + 1]):
            if idx[p] != v:
                mark[colours[idx[p]]] = v
        for p in range(ptr[v], ptr[v + 1]):
            w = idx[p]
            if w == v or colours[w] == 0:
                continue
            for q in range(ptr[w], ptr[w + 1]):
                x = idx[q]
                if x in (v, w) or colours[x] == 0 or mark[colours[x]] == v:
                    continue
                e = edge[q]
                while root[e] != e:
                    root[e] = root[root[e]]
                    e = root[e]
                if seen_by[e] != v:
                    seen_by[e] = v
                    seen_from[e] = w
                elif seen_from[e] != w:
                    mark[colours[x]] = v
        c = 1
        while mark[c] == v:
            c += 1
        colours[v] = c
        for p in range(ptr[v], ptr[v + 1]):
            w = idx[p]
            if w == v or colours[w] == 0:
                continue
            k = colours[w]
            if by[k] != v:
                by[k] = v
                near[k] = edge[p]
            d = near[k]
            while root[d] != d:
                d = root[d]
            e = edge[p]
            while root[e] != e:
                e = root[e]
            root[e] = d
            for q in range(ptr[w], ptr[w + 1]):
                x = idx[q]
                if x not in (v, w) and colours[x] == c:
                    e = edge[q]
                    while root[e] != e:
                        root[e] = root[root[e]]
                        e = root[e]
                    root[e] = d
    return colours

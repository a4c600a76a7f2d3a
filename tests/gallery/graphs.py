"""Graphs: flows, walks, layouts, message passing, shortest paths."""

import heapq
from collections import deque

import numpy as np

from gallery.snippets import at, some

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (3, 5)]
N = 6


@at(some(8, seed=1))
def shortest_path(lengths):
    best = {0: 0.0}
    queue = [(0.0, 0)]
    while queue:
        d, node = heapq.heappop(queue)
        if node == 5:
            return d * d
        for (a, b), w in zip(EDGES, lengths):
            for here, there in ((a, b), (b, a)):
                if here == node and (there not in best or d + w < best[there]):
                    best[there] = d + w
                    heapq.heappush(queue, (d + w, there))
    return 0.0


@at(some(8, seed=2))
def laplacian_quadratic_form(w):
    L = np.zeros((N, N))
    for (i, j), weight in zip(EDGES, w):
        L[i, i] += weight
        L[j, j] += weight
        L[i, j] -= weight
        L[j, i] -= weight
    x = np.arange(N) ** 1.5
    return x @ L @ x


@at(some(8, seed=3))
def effective_resistance(conductance):
    L = np.zeros((N, N))
    for k, (i, j) in enumerate(EDGES):
        c = conductance[k]
        L[[i, j], [i, j]] += c
        L[[i, j], [j, i]] -= c
    potential = np.linalg.solve(L[1:, 1:], np.eye(N - 1)[-1])
    return potential[-1]


@at(some(4, 4, seed=4))
def pagerank(weights):
    P = weights / weights.sum(axis=0)
    rank = np.full(4, 0.25)
    for _ in range(20):
        rank = 0.15 / 4 + 0.85 * (P @ rank)
    return rank[0]


@at(some(N, 2, seed=5))
def force_layout(pos):
    energy = 0.0
    for i, j in EDGES:
        energy += (np.linalg.norm(pos[i] - pos[j]) - 0.5) ** 2
    d2 = ((pos[:, None] - pos) ** 2).sum(-1)
    return energy + np.sum(0.01 / (d2[~np.eye(N, dtype=bool)] + 0.05))


@at({"self": some(3, 3, seed=6), "neighbour": some(3, 3, seed=7)})
def message_passing(params):
    h = some(N, 3, seed=8)
    for _ in range(2):
        messages = np.zeros_like(h)
        for i, j in EDGES:
            messages[i] += h[j]
            messages[j] += h[i]
        h = np.tanh(h @ params["self"] / 3 + messages @ params["neighbour"] / 3)
    return h.sum()


@at(some(8, seed=9))
def soft_shortest_path(w):
    # log-sum-exp in place of the minimum, in topological order
    best = [None] * N
    best[0] = 0.0
    for node in range(1, N):
        arriving = [best[a] - w[k] for k, (a, b) in enumerate(EDGES) if b == node]
        best[node] = np.log(sum(np.exp(v) for v in arriving))
    return best[-1]


@at(some(8, seed=10))
def tree_depths(w):
    children = {0: [1, 2], 1: [3, 4], 2: [5]}

    def depth(node, so_far):
        here = so_far + w[node]
        return here + sum(depth(c, here) ** 2 for c in children.get(node, []))

    return depth(0, 0.0)


@at(some(8, seed=11))
def breadth_first_sum(w):
    seen, total = {0}, 0.0
    queue = deque([(0, 1.0)])
    while queue:
        node, factor = queue.popleft()
        total += factor
        for k, (a, b) in enumerate(EDGES):
            if a == node and b not in seen:
                seen.add(b)
                queue.append((b, factor * w[k]))
    return total


@at(some(6, 6, seed=12))
def count_weighted_triangles(W):
    A = np.triu(W, 1)
    A = A + A.T
    return np.trace(A @ A @ A) / 6


@at(some(6, 6, seed=13) / 10)
def katz_centrality(A):
    return np.linalg.inv(np.eye(6) - 0.5 * A).sum()


@at(some(5, seed=14), some(5, seed=15))
def attention_over_neighbours(query, key):
    scores = np.outer(query, key)
    mask = np.eye(5, dtype=bool) | (np.abs(np.subtract.outer(range(5), range(5))) == 1)
    scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return ((e / e.sum(-1, keepdims=True)) ** 2).sum()


@at(some(8, seed=16))
def maximum_spanning_tree(w):
    parent = list(range(N))

    def find(i):
        while parent[i] != i:
            i = parent[i]
        return i

    total = 0.0
    for k in np.argsort(-w):
        a, b = (find(v) for v in EDGES[k])
        if a != b:
            parent[a] = b
            total += w[k] ** 2
    return total


@at(some(N, seed=17))
def modularity(z):
    p = 1 / (1 + np.exp(-z))
    degree = np.zeros(N)
    for i, j in EDGES:
        degree[i] += 1
        degree[j] += 1
    inside = sum(p[i] * p[j] + (1 - p[i]) * (1 - p[j]) for i, j in EDGES)
    return inside - (degree @ p) ** 2 / 16


@at(some(8, seed=18))
def spectral_gap(w):
    A = np.zeros((N, N))
    rows, cols = np.array(EDGES).T
    A[rows, cols] = w
    A = A + A.T
    values = np.linalg.eigvalsh(np.diag(A.sum(0)) - A)
    return values[1]


@at(some(N, seed=19))
def depth_first_total(z):
    neighbours = [[] for _ in range(N)]
    for i, j in EDGES:
        neighbours[i].append(j)
        neighbours[j].append(i)
    seen, stack, total = [False] * N, [0], 0.0
    while stack:
        i = stack.pop()
        if seen[i]:
            continue
        seen[i] = True
        total = 0.5 * total + np.sin(z[i])
        for j in neighbours[i]:
            if not seen[j]:
                stack.append(j)
    return total


@at(some(8, seed=20), 0.5)
def clusters_by_reach(x, reach):
    n = len(x)
    near = [[j for j in range(n) if j != i and abs(x[i] - x[j]) < 0.4] for i in range(n)]
    seen, total = [False] * n, 0.0
    for start in range(n):
        if seen[start]:
            continue
        todo, mass = [start], 0.0
        while todo:
            i = todo.pop()
            if not seen[i]:
                seen[i] = True
                mass += np.exp(-reach * x[i])
                for j in near[i]:
                    todo.append(j)
        total += mass**2
    return total

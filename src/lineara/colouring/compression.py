"""A sparse matrix from few products with vectors: its colours, the vectors, and the way back.

Columns that share no row have one colour, and one product with the sum of their basis vectors shows
all of them: entry (i, j) is element i of the product of j's colour.  Rows are seen by transposed
products.  Of a symmetric matrix an entry may also be read at (j, i), so fewer colours do.

    columns         no two of a colour share a row                    [Curtis et al. 1974]
    rows            the same of the transposed matrix
    bidirectional   rows that are full are seen by rows, all other entries by columns
                                                                      [Coleman and Verma 1998]
    symmetric       a star colouring                                  [Coleman and Moré 1984]
    by_substitution  an acyclic one: entries follow from each other   [Coleman and Cai 1986]
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lineara.colouring.greedy import acyclic, distant, star
from lineara.errors import ShapeError, StructureError

Run = Callable[[Callable[..., np.ndarray]], Callable[..., np.ndarray]]
Graph = tuple[np.ndarray, np.ndarray]
SHIFTS = 3  # how many more colours than the fullest row has are tried as a period
FEW = 4  # colours that are not worth looking for fewer
SPLITS = 8  # how many numbers of full rows are tried


def plainly(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A loop as it is; another one may compile it."""
    return f


@dataclass(frozen=True, eq=False)
class Compression:
    """A boolean pattern with colours of its columns and of its rows, from 1; 0 is none.

    `places` says of each entry, in the order of the compressed rows, where it is among the elements
    of all products: first those of the column colours, (colours, rows), then those of the row
    colours, (colours, columns).  With a `substitution` these are sums of entries, from which the
    entries follow.
    """

    pattern: Any
    columns: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    way: str
    substitution: "Substitution | None" = None

    @property
    def counts(self) -> tuple[int, int]:
        """How many colours columns and rows have: as many products, and transposed ones."""
        return int(self.columns.max(initial=0)), int(self.rows.max(initial=0))

    @cached_property
    def seeds(self) -> tuple[np.ndarray, np.ndarray]:
        """For each colour the sum of the basis vectors: of the domain, and of the codomain."""
        forward, back = (
            np.equal(np.arange(1, k + 1)[:, None], colours).astype(float)
            for k, colours in zip(self.counts, (self.columns, self.rows), strict=True)
        )
        return forward, back

    @cached_property
    def probe(self) -> np.ndarray:
        """A vector whose product tells whether the pattern lacks an entry."""
        return np.random.default_rng(18).uniform(0.5, 1.5, self.pattern.shape[1])

    def test(self, matrix: Any, product: np.ndarray) -> None:
        """Raise a StructureError if the matrix times `probe` is not the product that was found."""
        v = self.probe
        eps = np.finfo(product.dtype).eps ** 0.5
        scale = abs(matrix) @ v + np.abs(product)
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(np.abs(matrix @ v - product) > eps * scale)
        if len(wrong):
            rows = ", ".join(map(str, wrong[:5])) + ", ..." * (len(wrong) > 5)
            raise StructureError(
                f"the pattern lacks entries of the Jacobian: its product with a random vector is "
                f"another one in the rows {rows}; give a pattern that has every entry that may "
                "differ from 0, or leave it out and let lineara.sparsity find it"
            )

    def matrix(self, forward: np.ndarray, back: np.ndarray) -> Any:
        """The matrix, in compressed rows, whose products these are."""
        products = forward if not back.size else back if not forward.size else None
        if products is None:
            products = np.concatenate([forward.ravel(), back.ravel()])
        numbers = np.ravel(products)[self.places]
        return self.filled(numbers if self.substitution is None else self.substitution(numbers))

    def filled(self, entries: np.ndarray) -> Any:
        """The matrix with these entries, in the order of its compressed rows."""
        matrix = object.__new__(type(self.pattern))  # all but the arrays is that of the pattern
        vars(matrix).update(vars(self.pattern))
        matrix.data = entries
        matrix.indices, matrix.indptr = matrix.indices.copy(), matrix.indptr.copy()
        return matrix


@dataclass(frozen=True, eq=False)
class Substitution:
    """Entries from sums of entries: `sums @ unknowns` is what was looked up, unit lower triangular.

    `unknown` says of each entry, in the order of the compressed rows, which unknown it is.
    """

    sums: Any
    unknown: np.ndarray

    @cached_property
    def _solve(self) -> Callable[[np.ndarray], np.ndarray]:
        from scipy.sparse.linalg import splu

        return splu(self.sums, permc_spec="NATURAL", diag_pivot_thresh=0.0).solve

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """The entries."""
        return self._solve(numbers.astype(float))[self.unknown] if len(numbers) else numbers

    def __getstate__(self) -> dict[str, Any]:
        return {"sums": self.sums, "unknown": self.unknown}


def by_columns(pattern: Any, run: Run = plainly) -> Compression:
    """Colours of the columns alone."""
    pattern = _canonical(pattern)
    colours = _distance_two(pattern, run)
    rows, k = _rows_of(pattern), int(colours.max(initial=0))
    places = (colours[pattern.indices] - 1) * pattern.shape[0] + rows
    assert _differ(rows, colours[pattern.indices], k), "two columns of a colour share a row"
    return Compression(pattern, colours, np.zeros(pattern.shape[0], np.int64), places, "columns")


def by_rows(pattern: Any, run: Run = plainly) -> Compression:
    """Colours of the rows alone."""
    pattern = _canonical(pattern)
    colours = _distance_two(_canonical(pattern.T), run)
    rows = _rows_of(pattern)
    places = (colours[rows] - 1) * pattern.shape[1] + pattern.indices
    assert _differ(pattern.indices, colours[rows], int(colours.max(initial=0)))
    return Compression(pattern, np.zeros(pattern.shape[1], np.int64), colours, places, "rows")


def bidirectional(pattern: Any, run: Run = plainly) -> Compression:
    """The fewest colours that were found: of columns, of rows, or of both.

    >>> import numpy as np
    >>> arrow = np.eye(6, dtype=bool)
    >>> arrow[0], arrow[:, 0] = True, True
    >>> by_columns(arrow).counts, bidirectional(arrow).counts
    ((6, 0), (2, 1))
    """
    pattern = _canonical(pattern)
    turned = _canonical(pattern.T)
    best = by_columns(pattern, run)
    if sum(best.counts) <= FEW:
        return best
    others = [by_rows(pattern, run)]
    for matrix, transposed in ((pattern, False), (turned, True)):
        counts = np.diff(matrix.indptr)
        levels = np.unique(counts)[::-1]
        for level in levels[1 : SPLITS + 1]:
            others.append(_split(matrix, counts > level, transposed, run))
    for other in others:
        if sum(other.counts) < sum(best.counts):
            best = other
    return best


def symmetric(pattern: Any, run: Run = plainly) -> Compression:
    """A star colouring of a symmetric pattern: entry (i, j) is read at one of its two places.

    >>> import numpy as np
    >>> arrow = np.eye(6, dtype=bool)
    >>> arrow[0], arrow[:, 0] = True, True
    >>> symmetric(arrow).counts
    (2, 0)
    """
    pattern = _canonical(pattern)
    pattern = _canonical(pattern + pattern.T)
    n, rows = pattern.shape[0], _rows_of(pattern)
    plain = _distance_two(pattern, run)
    colours = plain
    if plain.max(initial=0) > 2:
        new = np.zeros(n, np.int64)
        ptr, idx = _graph(pattern)
        colours = run(star)(ptr, idx, new, np.full(n + 2, -1))
        colours = min(colours, plain, key=lambda c: c.max(initial=0))
    k = int(colours.max(initial=0))
    to = colours[pattern.indices]
    alone = _alone(rows, to, k)
    here, there = (to - 1) * n + rows, (colours[rows] - 1) * n + pattern.indices
    back = _alone(pattern.indices, colours[rows], k)
    assert np.all(alone | back), "an entry can be read at neither of its places"
    return Compression(
        pattern, colours, np.zeros(n, np.int64), np.where(alone, here, there), "symmetric"
    )


def by_substitution(pattern: Any, run: Run = plainly) -> Compression:
    """An acyclic colouring of a symmetric pattern: no more colours than a star colouring has.

    Entries of two colours are the edges of trees: a product shows one at each leaf, and the others
    follow by subtraction.  That loses digits along long trees, and what is not finite spreads.

    >>> import numpy as np
    >>> band = np.abs(np.subtract.outer(np.arange(7), np.arange(7))) < 2
    >>> by_substitution(band).counts, symmetric(band).counts
    ((2, 0), (3, 0))
    """
    stars = symmetric(pattern, run)
    pattern, n = stars.pattern, len(stars.columns)
    rows, columns = _rows_of(pattern), pattern.indices.astype(np.int64)
    pairs, edge = np.unique(
        np.minimum(rows, columns) * n + np.maximum(rows, columns), return_inverse=True
    )
    count, none = len(pairs), np.full(n + 2, -1)
    (ptr, idx), far = _graph(pattern), np.full(count, -1)
    colours = run(acyclic)(
        ptr, idx, edge, np.zeros(n, np.int64), none, np.arange(count), far, far.copy(),
        none.copy(), none.copy(),
    )  # fmt: skip
    if colours.max(initial=0) >= stars.counts[0]:
        return stars
    places, substitution = _substitution(pairs, edge, colours)
    return Compression(
        pattern, colours, np.zeros(n, np.int64), places, "by substitution", substitution
    )


def _substitution(
    pairs: np.ndarray, edge: np.ndarray, colours: np.ndarray
) -> tuple[np.ndarray, Substitution]:
    """Where sums of entries stand, and how entries follow from them, of an acyclic colouring.

    A vertex stands once in the trees of its colour and another.  All its edges there, the one to
    its parent and those to its children, are the sum at it of the product of the other colour.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    n, k = len(colours), int(colours.max(initial=0)) + 1
    i, j = np.divmod(pairs, max(1, n))
    off = np.flatnonzero(i != j)
    ends = np.concatenate([i[off] * k + colours[j[off]], j[off] * k + colours[i[off]]])
    nodes, ends = np.unique(ends, return_inverse=True)
    m, (a, b) = len(nodes), np.split(ends, 2)
    trees, tree = connected_components(csc_array((np.ones(len(a)), (a, b)), shape=(m, m)), False)
    assert len(a) == m - trees, "two colours have a cycle"
    _, roots = np.unique(tree, return_index=True)
    links = np.concatenate([a, np.full(trees, m)]), np.concatenate([b, roots])
    whole = csc_array((np.ones(len(links[0])), links), shape=(m + 1, m + 1))
    order, parent = breadth_first_order(whole, m, directed=False)
    children = [v for v in order[::-1] if v != m and parent[v] != m] if m else []
    below = np.array(children, dtype=np.int64)  # each after its own children
    at = np.full(m + 1, -1)
    at[below] = np.arange(len(below))
    inner = at[parent[below]] >= 0
    size = len(below)
    sums = csc_array(
        (
            np.ones(size + int(inner.sum())),
            (
                np.concatenate([np.arange(size), at[parent[below]][inner]]),
                np.concatenate([np.arange(size), np.arange(size)[inner]]),
            ),
        ),
        shape=(size, size),
    )
    deeper = np.where(parent[a] == b, a, b) if m else a
    unknown = np.zeros(len(pairs), np.int64)
    unknown[off] = at[deeper]
    vertex, other = np.divmod(nodes[below], k) if size else (below, below)
    diagonal = np.flatnonzero(i == j)
    unknown[diagonal] = size + np.arange(len(diagonal))
    places = [(other - 1) * n + vertex, (colours[i[diagonal]] - 1) * n + i[diagonal]]
    return np.concatenate(places), Substitution(_with_ones(sums, len(diagonal)), unknown[edge])


def _with_ones(matrix: Any, more: int) -> Any:
    """The matrix with ones added along its diagonal."""
    from scipy.sparse import block_diag, eye_array

    return block_diag([matrix, eye_array(more)], format="csc")


def _split(matrix: Any, full: np.ndarray, transposed: bool, run: Run) -> Compression:
    """The full rows by rows, the rest by columns."""
    from scipy.sparse import diags_array

    rows = _rows_of(matrix)
    by_row = full[rows]
    rest = _canonical(diags_array(~full, dtype=bool) @ matrix)
    those = _canonical(diags_array(full, dtype=bool) @ matrix)
    across = _distance_two(rest, run) * (np.diff(_canonical(rest.T).indptr) > 0)
    down = _distance_two(_canonical(those.T), run) * (np.diff(those.indptr) > 0)
    m, n = matrix.shape
    seen = (across[matrix.indices] - 1) * m + rows
    turned = (down[rows] - 1) * n + matrix.indices
    if not transposed:
        start = int(across.max(initial=0)) * m
        places = np.where(by_row, start + turned, seen)
        return Compression(matrix, across, down, places, "bidirectional")
    start = int(down.max(initial=0)) * n  # what are rows here are columns of the pattern
    places = np.where(by_row, turned, start + seen)
    order = np.lexsort((rows, matrix.indices))
    return Compression(_canonical(matrix.T), down, across, places[order], "bidirectional")


def csr_of(pattern: Any, shape: tuple[int, int], name: str) -> Any:
    """A pattern that a user gives, as a boolean matrix in compressed rows."""
    from scipy.sparse import csr_array

    matrix = csr_array(pattern, dtype=bool)
    if matrix.shape != shape:
        raise ShapeError(
            f"{name}: the pattern is one of {matrix.shape}, and the matrix one of {shape}: results "
            "by arguments"
        )
    return matrix


# --- graphs of a pattern --------------------------------------------------------------------------


def _canonical(pattern: Any) -> Any:
    """A boolean matrix in compressed rows, whose columns are in order and stand once each."""
    from scipy.sparse import csr_array

    matrix = csr_array(pattern, dtype=bool)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def _graph(matrix: Any) -> Graph:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)


def _rows_of(matrix: Any) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _fullest(matrix: Any) -> int:
    """How many entries the fullest row has: no colouring of columns has fewer colours."""
    return int(np.diff(matrix.indptr).max(initial=0))


def _alone(lines: np.ndarray, colours: np.ndarray, k: int) -> np.ndarray:
    """Of each entry, whether it is the only one of its colour in its line."""
    keys = lines * (k + 1) + colours
    return np.bincount(keys)[keys] == 1 if len(keys) else np.zeros(0, bool)


def _differ(lines: np.ndarray, colours: np.ndarray, k: int) -> bool:
    return bool(_alone(lines, colours, k).all())


def _distance_two(matrix: Any, run: Run) -> np.ndarray:
    """Colours of the columns such that no two of a colour share a row.

    A band, and many a stencil, has columns that repeat with a period: that is tried first, and is
    the best where the period is the number of entries of the fullest row.  Else columns get their
    colours as they come, and those that meet most others first  [Welsh and Powell 1967].
    """
    n, least = matrix.shape[1], _fullest(matrix)
    if not least:
        return np.minimum(1, np.arange(1, n + 1))
    rows = _rows_of(matrix)
    best = None
    for k in range(least, min(n, least + SHIFTS) + 1):
        if _differ(rows, matrix.indices % k, k):
            best = np.arange(n, dtype=np.int64) % k + 1
            break
    if best is not None and best.max() <= least:
        return best
    ways = [] if best is None else [best]
    near = _canonical(matrix.T) @ np.diff(matrix.indptr)  # how many columns each one meets
    for order in (np.arange(n), np.argsort(-near, kind="stable")):
        if ways and ways[-1].max() <= least:
            break
        own = matrix[:, order]
        own.sort_indices()
        (back, through), (ptr, idx) = _graph(own), _graph(_canonical(own.T))
        colours = np.zeros(n, np.int64)
        colours[order] = run(distant)(ptr, idx, back, through, colours.copy(), np.full(n + 2, -1))
        ways.append(colours)
    return min(ways, key=lambda colours: colours.max())

"""The pattern of a sparse matrix as a picture: each entry in the colour of its product."""

import numpy as np

from lineara.colouring import Compression

SIGNS = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
WIDE = 64  # lines and columns of the largest picture


def entries(compression: Compression) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and colours of the entries; those of row colours come after the others."""
    at, (k, _) = compression.pattern, compression.counts
    m, n = at.shape
    rows = np.repeat(np.arange(m), np.diff(at.indptr))
    places = compression.places
    if compression.substitution is not None:  # the entry is the first to follow from that place
        places = places[compression.substitution.unknown]
    by_row = places >= k * m
    turned = (places - k * m) // max(1, n) + k + 1
    return rows, at.indices, np.where(by_row, turned, places // max(1, m) + 1)


def as_text(compression: Compression) -> str:
    """A character an entry: the sign of its colour, a dot where there is none.

    Of a large matrix a character is a block, and has the colour of one of the block's entries.
    """
    m, n = compression.pattern.shape
    step = max(1, -(-max(m, n) // WIDE))
    lines = np.full((-(-m // step), -(-n // step)), ".")
    rows, columns, colours = entries(compression)
    lines[rows // step, columns // step] = np.array([*SIGNS])[(colours - 1) % len(SIGNS)]
    return "\n".join(["".join(line) for line in lines])


def as_svg(compression: Compression) -> str:
    """A square an entry, in the colour of its product; of a large matrix a square is a block."""
    m, n = compression.pattern.shape
    step = max(1, -(-max(m, n) // (4 * WIDE)))
    rows, columns, colours = entries(compression)
    height, width = -(-m // step), -(-n // step)
    _, first = np.unique((rows // step) * max(1, width) + columns // step, return_index=True)
    squares = [
        f'<rect x="{c // step}" y="{r // step}" width="1" height="1" '
        f'fill="hsl({int(k - 1) * 137 % 360}, 65%, {45 + 10 * (int(k) % 3)}%)"/>'
        for r, c, k in zip(rows[first], columns[first], colours[first], strict=True)
    ]
    size = max(1, 512 // max(1, height, width))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width * size}" height="{height * size}">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(squares)}</svg>'
    )

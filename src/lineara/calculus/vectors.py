r"""Small vector primitives as function symbols: linear and bilinear ones, at a fixed length.

    sum_3 : R^3 -> R      cumsum_3 : R^3 -> R^3      dot_3 : R^3 * R^3 -> R
    matvec_2 : R^4 * R^2 -> R^2, the matrix row by row

A linear map is what it does to a basis, and a bilinear one what it does to two.  So the term of
such a symbol is read off the declared primitive itself, and its derivatives follow as any term's.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.calculus import terms as tm
from lineara.calculus.symbols import Symbol, standard
from lineara.calculus.types import Product, R, power
from lineara.facts.primitive import op

LENGTHS = (2, 3, 4)


@functools.cache
def vectors() -> dict[str, Symbol]:
    """The symbols, by name.

    >>> from lineara.calculus.show import show
    >>> show(vectors()["dot_2"].body.parts[0])
    'multiply(fst (fst v), fst (snd v)) + multiply(snd (fst v), snd (snd v))'
    """
    symbols = []
    for n in LENGTHS:
        whole = {"axis": (0,), "keepdims": False}
        symbols += [
            _linear(f"sum_{n}", n, lambda x, p=whole: op("sum")(x, **p)),
            _linear(f"cumsum_{n}", n, lambda x: op("cumsum")(x, axis=0)),
            _bilinear(f"dot_{n}", n, n, op("matmul")),
            _bilinear(f"matvec_{n}", n * n, n, _applied(n)),
        ]
    return {s.name: s for s in symbols}


def _applied(n: int) -> Callable[..., Any]:
    return lambda a, x: op("matmul")(a.reshape(n, n), x)


def _linear(name: str, n: int, f: Callable[..., Any]) -> Symbol:
    v = ("v", power(n))
    columns = [np.ravel(f(e)) for e in np.eye(n)]
    body = _vector([_combination(row, _parts(tm.var(v), n)) for row in zip(*columns, strict=True)])
    return Symbol(name, power(n), body.type, body=tm.lam(v, body), joint=True)


def _bilinear(name: str, n: int, m: int, f: Callable[..., Any]) -> Symbol:
    v = ("v", Product(power(n), power(m)))
    left, right = _parts(tm.Fst((tm.var(v),)), n), _parts(tm.Snd((tm.var(v),)), m)
    pairs = list(itertools.product(range(n), range(m)))
    columns = [np.ravel(f(np.eye(n)[i], np.eye(m)[j])) for i, j in pairs]
    times = standard()["multiply"]
    terms = [tm.Fun((tm.Pair((left[i], right[j])),), times) for i, j in pairs]
    body = _vector([_combination(row, terms) for row in zip(*columns, strict=True)])
    return Symbol(name, v[1], body.type, body=tm.lam(v, body), each=(0, 1))


def _parts(t: tm.Term, n: int) -> list[tm.Term]:
    """The numbers of a vector, nested to the right."""
    return [t] if n == 1 else [tm.Fst((t,)), *_parts(tm.Snd((t,)), n - 1)]


def _combination(row: Sequence[float], terms: Sequence[tm.Term]) -> tm.Term:
    times = standard()["multiply"]
    pairs = [(float(c), t) for c, t in zip(row, terms, strict=True) if c]
    return tm.total(
        [t if c == 1 else tm.Fun((tm.Pair((tm.num(c), t)),), times) for c, t in pairs], R
    )


def _vector(parts: Sequence[tm.Term]) -> tm.Term:
    first, *rest = parts
    return tm.Pair((first, _vector(rest))) if rest else first

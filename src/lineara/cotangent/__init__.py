"""Sparse cotangents (builders): a commutative monoid whose sums are computed when they are read.

>>> import numpy as np
>>> W = np.zeros((1_000_000, 2))
>>> g = Rows([7, 7, 3], np.ones((3, 2)), W.shape)
>>> h = Coo([6], [5.0], W.shape)
>>> g + h
Rows(2 of 1 000 000 x 2, 0.0002 %) + Coo(1 of 1 000 000 x 2, 5e-05 %)
>>> g + (h + g) == (g + h) + g, g + Zero(W.shape) is g
(True, True)
>>> W -= 0.5 * (g + h)
>>> W[3], W[7]
(array([-3. , -0.5]), array([-1., -1.]))
>>> bool((finish(combine([g, h])) == finish(g) + finish(h)).all())
True
"""

from lineara.cotangent.builder import Builder, Sum, Zero
from lineara.cotangent.coo import Coo
from lineara.cotangent.dense import Dense
from lineara.cotangent.densify import LARGE_BYTES, sparse_pays, strict
from lineara.cotangent.interop import MissingLibraryError
from lineara.cotangent.lowrank import LowRank
from lineara.cotangent.monoid import Record, combine, finish, zero
from lineara.cotangent.rows import Rows
from lineara.cotangent.scatter import scatter_add
from lineara.cotangent.wire import from_wire, to_wire

__all__ = [
    "LARGE_BYTES",
    "Builder",
    "Coo",
    "Dense",
    "LowRank",
    "MissingLibraryError",
    "Record",
    "Rows",
    "Sum",
    "Zero",
    "combine",
    "finish",
    "from_wire",
    "scatter_add",
    "sparse_pays",
    "strict",
    "to_wire",
    "zero",
]

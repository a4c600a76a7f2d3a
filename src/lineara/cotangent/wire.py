"""Serialisation: a cotangent as a plain tuple of arrays and small values, for any transport.

>>> import numpy as np
>>> wire = to_wire({"emb": Rows([3], np.ones((1, 2)), (10, 2)), "b": 2.0})
>>> wire[1:]
(('value', 2.0), ('record', (('emb', 0), ('b', 1))))
>>> from_wire(wire)
Record({'emb': Rows(1 of 10 x 2, 10 %), 'b': 2.0})
"""

from typing import Any

import numpy as np

from lineara.cotangent.builder import Builder, Sum, Zero, total
from lineara.cotangent.coo import Coo
from lineara.cotangent.dense import Dense
from lineara.cotangent.lowrank import LowRank
from lineara.cotangent.monoid import Record, fold_fields
from lineara.cotangent.rows import Rows
from lineara.cotangent.true_sum import Carried, parts_of, summed
from lineara.errors import StructureError
from lineara.facts.hints import Leaf, Shaped

_KINDS: dict[str, Any] = {kind.tag: kind for kind in (Zero, Dense, Rows, Coo, LowRank)}


def to_wire(builder: object) -> tuple[Any, ...]:
    """A flat tuple of nodes, each after its children; the last one is the root.

    Indices are sent in 32 bits where they fit.  Coalesce first to send each row once; do not if the
    receiver is to sum exactly.

    >>> from lineara.cotangent import Rows
    >>> [node[0] for node in to_wire({"w": Rows([0], [1.0], (9,)), "b": 2.0})]
    ['rows', 'value', 'record']
    """
    nodes: list[tuple[Any, ...]] = []

    def number(node: tuple[Any, ...]) -> int:
        nodes.append(node)
        return len(nodes) - 1

    fold_fields(
        builder,
        lambda x: number(_packed(x)),
        lambda x, below: number(("record", tuple(below.items()))),
    )
    return tuple(nodes)


def from_wire(wire: tuple[Any, ...]) -> Any:
    """The inverse of `to_wire`; a container comes back as a Record, since its type is not sent.

    >>> from lineara.cotangent import Rows
    >>> from_wire(to_wire(Rows([0, 7], [1.0, 2.0], (9,))))
    Rows(2 of 9, 22 %)
    """
    nodes: list[Any] = []
    for tag, *rest in wire:
        nodes.append(_unpacked(tag, rest, nodes))
    return nodes[-1]


def _packed(x: Leaf) -> tuple[Any, ...]:
    if isinstance(x, np.ndarray):
        x = Dense(x)
    if not isinstance(x, Builder):
        return ("carried", *parts_of(x)) if isinstance(x, Carried) else ("value", x)
    if isinstance(x, Sum):
        return (x.tag, *map(_packed, x.pieces))
    if len(x.addends()) > 1 and isinstance(
        x, Dense
    ):  # the only kind whose constructor takes no terms
        return (Sum.tag, *map(_packed, x.addends()))
    return (x.tag, *map(_narrow, x.args()))


def _narrow(x: Shaped) -> Any:
    small = isinstance(x, np.ndarray) and x.dtype == np.int64 and x.size and x.max() < 1 << 31
    return x.astype(np.int32) if small else x


def _unpacked(tag: str, rest: list[Any], nodes: list[Any]) -> Any:
    if tag == "value":
        return rest[0]
    if tag == "record":
        return Record({key: nodes[number] for key, number in rest[0]})
    if tag == Sum.tag:
        return total([_unpacked(part[0], list(part[1:]), nodes) for part in rest])
    if tag == "carried":
        return summed(rest)
    if tag not in _KINDS:
        raise StructureError(f"from_wire: {tag!r} is no kind of cotangent; there are {[*_KINDS]}")
    return _KINDS[tag](*rest)

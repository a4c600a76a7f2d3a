"""A message: a cotangent in the wire form and a few notes, as bytes that name no code.

    8 bytes: the length of the text | text, in JSON | the arrays of the wire form, one by one

In the text an array is its dtype, its shape and its place.  Reading calls nothing that the bytes
name, so a message is safe to read from anyone, as a pickle is not.

>>> from lineara.cotangent import Rows
>>> tree, notes = unpacked(packed([2.5, Rows([3], [[1.0, 2.0]], (10, 2))], {"chunks": 1}))
>>> tree[0], tree[1], notes
(2.5, Rows(1 of 10 x 2, 10 %), {'chunks': 1})
"""

import json
from typing import Any

import numpy as np

from lineara.cotangent import from_wire, to_wire
from lineara.errors import StructureError, TypeMismatchError
from lineara.facts.hints import Tree
from lineara.facts.types import show_type

_HEAD = 8
_ALIGNED = 16  # where an array begins: sums of what is not aligned are made in another order


def packed(tree: Tree, notes: dict[str, Any]) -> bytes:
    """The bytes of a tree of cotangents, with notes that JSON can hold.

    Raises TypeMismatchError for what is neither number, array, text nor a container of these.
    """
    arrays = bytearray()
    text = json.dumps([_text(to_wire(tree), arrays), notes]).encode()
    text += b" " * (-(_HEAD + len(text)) % _ALIGNED)
    return b"".join([len(text).to_bytes(_HEAD, "little"), text, arrays])


def unpacked(message: bytes) -> tuple[Any, dict[str, Any]]:
    """(the tree, its containers as Records; the notes).  Arrays are views of the bytes."""
    start = _HEAD + int.from_bytes(message[:_HEAD], "little")
    wire, notes = json.loads(message[_HEAD:start])
    return from_wire(_value(wire, message, start)), notes


def _text(x: Any, arrays: bytearray) -> Any:
    """What JSON writes for a value of the wire form; the numbers of arrays go to `arrays`."""
    if isinstance(x, tuple):
        return [_text(v, arrays) for v in x]
    if type(x) is complex:
        return {"complex": [x.real, x.imag]}
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufc":
        kind, raw = "array" if isinstance(x, np.ndarray) else "number", np.ascontiguousarray(x)
        place = len(arrays)
        arrays += raw.tobytes() + bytes(-raw.nbytes % _ALIGNED)
        return {kind: [x.dtype.str, list(x.shape), place]}
    if x is None or type(x) in (bool, int, float, str):
        return x
    raise TypeMismatchError(
        f"distributed: {show_type(x)} does not travel between workers; what a chunk gives is "
        "numbers, arrays, text, None, and containers of these"
    )


def _value(x: Any, message: bytes, start: int) -> Any:
    if isinstance(x, list):
        return tuple([_value(v, message, start) for v in x])
    if not isinstance(x, dict):
        return x
    ((kind, what),) = x.items()
    if kind == "complex":
        return complex(*what)
    if kind not in ("array", "number"):
        raise StructureError(f"distributed: a message holds a {kind!r}, which is nothing known")
    dtype, shape, place = what
    count = int(np.prod(shape, dtype=np.int64))
    array = np.frombuffer(message, np.dtype(dtype), count, start + place).reshape(shape)
    return array if kind == "array" else array[()]

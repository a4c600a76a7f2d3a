"""What the frame of an edge of a linear graph tells: what a backward sweep sends, the user's line.

It is the text that the frame holds, so a diagram that was written and read again has it.

>>> text = told(["[2.0, 4.0]", "f64[9]"], "model.py:3 in f: y = W @ x")
>>> text
'back: [2.0, 4.0]; f64[9] at model.py:3 in f: y = W @ x'
>>> heard(text)
Flow(sent='[2.0, 4.0]; f64[9]', line='model.py:3 in f: y = W @ x')
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from lineara.diagrams.net import Net, Node


class Flow(NamedTuple):
    """What a sweep sends along an edge, and the line that recorded it ("" if none is known)."""

    sent: str
    line: str


def told(sent: Sequence[str], line: str) -> str:
    """The text of an edge; what is sent to several nodes in their order."""
    text = f"back: {'; '.join(sent)}"
    return (f"{text} at {line}" if line else text).replace('"', "'")


def heard(text: object) -> Flow | None:
    """What a text tells, or None of what is no edge of a linear graph."""
    parts = re.fullmatch(r"back: (.*?)(?: at (.*:\d+ in .*))?", text) if type(text) is str else None
    return parts and Flow(parts[1], parts[2] or "")


def is_swept(net: Net) -> bool:
    """Whether a diagram is a linear graph with a sweep."""
    return any([flow(n) for n in net.nodes.values()])


def flow(node: Node) -> Flow | None:
    """What the frame of an edge tells, or None of any other node."""
    return heard(node.data) if node.kind == "frame" else None

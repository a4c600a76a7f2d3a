"""Memory: when a variable dies, and the bytes of the arrays that are alive.

A buffer counts once however many views it has, from when it is made until nothing refers to it;
numbers are no arrays and count nothing.
"""

import weakref
from typing import Any

from lineara.linear_a.syntax import Block, Def, Drop, Let, Unpack, Var, occurrences

Deaths = dict[Block, list[tuple[Var, ...]]]


class Meter:
    """Counts the bytes of the arrays that are alive, and remembers the most.

    >>> import numpy as np
    >>> meter = Meter()
    >>> x = np.zeros(10)
    >>> meter.made((x, x[2:], 1.0))
    >>> meter.live, meter.peak
    (80, 80)
    >>> del x
    >>> meter.live, meter.peak
    (0, 80)
    """

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self._known: dict[int, Any] = {}

    def made(self, value: Any) -> None:
        """Values that may be new; those in products and stacks too."""
        if isinstance(value, tuple | list):
            for v in value:
                self.made(v)
        elif getattr(value, "ndim", 0):
            self._enter(owner(value))

    def _enter(self, buffer: Any) -> None:
        key, n = id(buffer), buffer.nbytes
        if key in self._known:
            return

        def leave(_: Any) -> None:
            del self._known[key]
            self.live -= n

        self._known[key] = weakref.ref(buffer, leave)
        self.live += n
        self.peak = max(self.peak, self.live)


def owner(array: Any) -> Any:
    """The array whose memory a view shows."""
    while hasattr(array.base, "nbytes") and hasattr(array.base, "base"):
        array = array.base
    return array


def deaths(d: Def) -> Deaths:
    """The variables that nothing reads after a binding of a block, or after its leaf, in order.

    What is read for the last time in a nested block dies there.
    """
    found: Deaths = {}
    open_ = [(d.body, set(d.params))]
    while open_:
        block, mortal = open_.pop()
        mortal.update(v for b in block.bindings for v in b.vars)
        live: set[Var] = set()
        rows = []
        for b in (block.leaf, *reversed(block.bindings)):
            e: Any = b.rhs if isinstance(b, Let) else b
            reads = (b.arg,) if isinstance(b, Unpack) else dict.fromkeys(occurrences(e))
            dead = tuple([v for v in reads if v in mortal and v not in live])
            live.update(reads)
            while isinstance(e, Drop):
                e = e.body
            if isinstance(e, Block):
                open_.append((e, set(dead)))
                dead = ()
            rows.append(dead)
        found[block] = rows[::-1]
    return found

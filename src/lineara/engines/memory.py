"""Memory: when a variable dies, who may write an array, and the bytes that are alive.

A buffer counts once however many views it has, from when it is made until nothing refers to it;
numbers are no arrays and count nothing.
"""

import weakref
from typing import Any

from lineara.facts.hints import Leaf, Shaped, Tree
from lineara.linear_a import syntax as ir

Deaths = dict[ir.Block, list[tuple[ir.Var, ...]]]


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
        self.live: int = 0
        self.peak: int = 0
        self._known: dict[int, Any] = {}

    def made(self, value: Leaf) -> None:
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

        def leave(_: object) -> None:
            del self._known[key]
            self.live -= n

        self._known[key] = weakref.ref(buffer, leave)
        self.live += n
        self.peak = max(self.peak, self.live)


class Owners:
    """The arrays that one variable alone refers to: at its last use they may be written.

    >>> import numpy as np
    >>> owners, x = Owners(), np.zeros(3)
    >>> owners.take(x)
    >>> x in owners, x[:2] in owners
    (True, False)
    >>> owners.share((x, 1.0))
    >>> x in owners
    False
    """

    def __init__(self, weak: bool = True) -> None:
        self._known: dict[int, Any] = {}
        self._weak = weak  # traced arrays have no weak references, and die with the run

    def __bool__(self) -> bool:
        return bool(self._known)

    def __contains__(self, value: Tree) -> bool:
        known = self._known.get(id(value))
        return known is not None and (known() if self._weak else known) is value

    def take(self, array: Shaped) -> None:
        """An array that was just made, or whose last reader made a view of it."""
        if getattr(array, "ndim", 0):
            key, gone = id(array), lambda _: self._known.pop(key, None)
            self._known[key] = weakref.ref(array, gone) if self._weak else array

    def share(self, value: Tree) -> None:
        """Somebody else refers to the value too; in a stack that holds for all values anyway."""
        if isinstance(value, tuple):
            for v in value:
                self.share(v)
        elif value in self:
            del self._known[id(value)]

    def lent(self, values: list[Any]) -> list[Any]:
        """Share for a while; what to take again is given."""
        mine = [v for v in values if v in self]
        self.share(tuple(values))
        return mine


def owner(array: Any) -> Any:
    """The array whose memory a view shows."""
    while hasattr(array.base, "nbytes") and hasattr(array.base, "base"):
        array = array.base
    return array


def deaths(d: ir.Def) -> Deaths:
    """The variables that nothing reads after a binding of a block, or after its leaf, in order.

    What is read for the last time in a nested block dies there.
    """
    rows_of: Deaths = {}
    open_ = [(d.body, set(d.params))]
    while open_:
        block, mortal = open_.pop()
        mortal.update([v for b in block.bindings for v in b.vars])
        live: set[ir.Var] = set()
        rows = []
        for b in (block.leaf, *reversed(block.bindings)):
            e: Any = b.rhs if isinstance(b, ir.Let) else b
            reads = (b.arg,) if isinstance(b, ir.Unpack) else dict.fromkeys(ir.occurrences(e))
            dead = tuple([v for v in reads if v in mortal and v not in live])
            live.update(reads)
            while isinstance(e, ir.Drop):
                e = e.body
            if isinstance(e, ir.Block):
                open_.append((e, set(dead)))
                dead = ()
            rows.append(dead)
        rows_of[block] = rows[::-1]
    return rows_of

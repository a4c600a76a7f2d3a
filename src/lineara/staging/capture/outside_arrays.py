"""Which arrays of outside are inputs of the program: the large ones that its code alone reads.

    W, HERE.w, self.data.w      is given to each run as it is then; no call compares its elements

That is sound only where nothing looks at the elements while the program is written.  So it holds
for an array that names lead to, in code that is read, which reads them through `forms.loaded`; and
for one that attributes lead to of objects that all code sees as views, whatever code that is: those
that names, attributes of such objects or the function itself lead to.  What else leads to an array
may read it as it is: a container, a default, a class, an object of a library.
"""

import functools
from collections import defaultdict
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from lineara.facts.hints import Leaf
from lineara.facts.pickled import Transformed
from lineara.python.function_copies import is_user_code
from lineara.python.structured_code import structured
from lineara.python.user_code import shows
from lineara.staging.capture import STRUCTURED
from lineara.staging.capture.containers import (
    ASKS,
    Remembers,
    Snapshot,
    attributes,
    behind,
    globals_of,
    has_instruction,
    is_large,
    names_of,
    places_of,
    slotted,
)
from lineara.staging.staged_arrays import LITERAL


class Reach(Snapshot):
    """What a function reaches, and what leads to it.

    `leads` has for the id of a thing those of what leads to it, where that is no name: objects of
    which it is an attribute, and 0 for everything else.
    """

    def __init__(self, top: object, *others: Any) -> None:
        self.leads: dict[int, set[int]] = defaultdict(set)
        self.named, self.wrappers = _by_name(top)
        super().__init__(top, *others)
        for x in others:
            self.leads[id(x)].add(0)

    def _parts(self, x: Leaf) -> list[Any]:
        parts = super()._parts(x)
        if id(x) in self.wrappers:
            return parts
        by_name = [id(p.was) for p in places_of(x)] if isinstance(x, FunctionType) else []
        reader = self.readers[-1] if id(x) in self.kept else None
        of_object = getattr(reader, "func", reader) in (attributes, slotted)
        for part in parts:
            if id(part) not in by_name:
                self.leads[id(part)].add(id(x) if of_object and part is not type(x) else 0)
        return parts

    def inputs(self, small: bool = False) -> dict[int, np.ndarray]:
        """The large arrays that are inputs where they are read, by their ids, or all.

        What is not read could look at the elements of one that it names: a function without
        source, one that is found in a container or an object, and one that asks by a text.
        """
        least = 0 if small else LITERAL
        each = [x for x, _ in self.kept.values() if type(x) is np.ndarray and is_large(x, least)]
        if not each:
            return {}
        shown = self._shown()
        arrays = {id(x): x for x in each if self.leads[id(x)] <= shown}
        for f, _ in self.functions if arrays else ():
            code = f.__code__
            if not is_user_code(code.co_filename):
                continue
            if not ASKS.isdisjoint(names_of(code)) or has_instruction(code, "IMPORT_FROM"):
                return {}
            if id(f) not in self.named or isinstance(structured(f), str):
                ids = {id(p.was) for p in places_of(f)}
                arrays = {k: x for k, x in arrays.items() if k not in ids}
        return arrays

    def _shown(self) -> set[int]:
        """The objects that all code sees as views, by their ids."""
        each = [x for x, _ in self.kept.values() if type(x) is not np.ndarray]
        shown = {id(x) for x in each if self.leads[id(x)].isdisjoint({0}) and shows(x, STRUCTURED)}
        while True:
            left = {k for k in shown if self.leads[k] <= shown}
            if left == shown:
                return shown
            shown = left


def _by_name(top: Any) -> tuple[set[int], set[int]]:
    """The functions that names lead to, of which the overlay makes copies, and what wraps them."""
    named: set[int] = set()
    wrappers: set[int] = set()
    todo = [top]
    while todo:
        f = todo.pop()
        if isinstance(f, MethodType | Remembers | functools.partial | Transformed):
            wrappers.add(id(f))
            todo += behind(f) or []
        elif isinstance(f, FunctionType) and id(f) not in named:
            named.add(id(f))
            todo += [p.was for p in places_of(f) if _is_seen_through(p.space, f)]
    return named, wrappers


def _is_seen_through(space: Any, f: FunctionType) -> bool:
    """Whether copies of functions stand for those that are read there."""
    if isinstance(space, CellType) or space is globals_of(f):
        return True
    return is_user_code(str(space.get("__file__", "")))

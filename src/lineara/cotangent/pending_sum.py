"""Sums that store their terms until they are read; and clipping, given a norm."""

from typing import Any, Self


class Terms:
    """Base of builders and records: the terms of a pending sum in `_terms`, and clipping."""

    __slots__ = ()
    _terms: tuple[Any, ...]  # empty after the sum was computed

    def addends(self) -> list[Self]:
        """The terms of the sum, in order, with nested sums flattened."""
        terms: list[Any] = []
        stack: list[Any] = [self]
        while stack:
            node = stack.pop()
            if node._terms:
                stack.extend(reversed(node._terms))
            else:
                terms.append(node)
        return terms

    def coalesce(self) -> Any:
        """An equal object with all sums computed."""
        raise NotImplementedError

    def clip(self, max_norm: float) -> Any:
        """This scaled to a norm of at most `max_norm`; of a container, the norm of all leaves."""
        whole = self.coalesce()
        norm = whole.norm()
        return whole if norm <= max_norm else whole * (max_norm / norm)

"""A sum that only remembers its terms, until somebody reads it; and what follows from a norm."""

from typing import Any, Self


class Terms:
    """What builders and records have in common: `_terms`, what this is the sum of, and clipping."""

    __slots__ = ()
    _terms: tuple[Any, ...]  # empty once the sum is known

    def addends(self) -> list[Self]:
        """What this is a sum of, in order, each no sum of others."""
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
        """The same with every sum done."""
        raise NotImplementedError

    def clip(self, max_norm: float) -> Any:
        """This, scaled so that its norm is at most `max_norm`; of a container the global norm."""
        whole = self.coalesce()
        norm = whole.norm()
        return whole if norm <= max_norm else whole * (max_norm / norm)

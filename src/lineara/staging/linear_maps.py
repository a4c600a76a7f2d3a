"""A linear map as a program, which is what it pickles as.

The program is the map on the leaves of a vector.  It is linear, so it is its own derivative: where
it is read it is played at zero on a tape, and the map is that of the tape.
"""

from typing import Any

import numpy as np

from lineara.errors import DetachError, LeakedVariableError
from lineara.facts.pickled import Making, reduced
from lineara.facts.types import ArrayType
from lineara.linear_map import LinearMap, Space, Work
from lineara.python.user_code import method
from lineara.staging.capture import trace
from lineara.staging.run_on_tape import play
from lineara.staging.tracing import Staged
from lineara.tape.linearize import linearize


def as_program(L: LinearMap[Any, Any]) -> Any:
    """What pickle is to write: the call that makes the map of its program."""

    def ahead(*leaves: Any) -> Any:
        return L.ahead([*leaves])

    try:
        staged = trace(ahead, *map(_zero, L.domain.types))
    except LeakedVariableError:
        raise DetachError(
            "pickle: the numbers of this linear map are traced: it belongs to a differentiation or "
            "a trace that runs here; linearize outside of it, or let it return its value and "
            "linearize there"
        ) from None
    return reduced(Making(of_program, (staged, L.domain, L.codomain, L.work), {}))


def of_program(staged: Staged, domain: Space, codomain: Space, work: Work) -> LinearMap[Any, Any]:
    """The linear map that a program is."""
    d = staged.definition

    def played(*leaves: Any) -> Any:
        values = play(d.program, d.rules, d.name, [*leaves, *staged.beside])
        return staged.results.filled(iter(values))

    zeros = tuple(map(_zero, domain.types))
    _, L, _ = linearize(played, zeros, {}, None, False, method)
    return L.between(domain, codomain, work)


def _zero(t: ArrayType) -> Any:
    if t.shape:
        return np.zeros(t.shape, t.dtype)
    return 0.0 if t.dtype == float else t.dtype.type(0)


__all__ = ["as_program", "of_program"]

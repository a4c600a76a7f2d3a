"""The state of a walk through a program: what is in doubt, and what loops have room for."""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lineara.engines.xla.values import Held, Shapes, is_known
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program


class Env(dict[ir.Var, Any]):
    """The values of the variables of a definition, its dimensions, and which arrays it writes."""

    dims: dict[ir.Var, int]
    written: set[ir.Var]


class Walk:
    """A walk: the program, what loops without a length have room for, and the state of the run.

    doubt     whether the interpreter must be asked
    rounds    of each loop that keeps what its rounds give, the most rounds that it has gone
    """

    def __init__(self, program: Program, room: Mapping[ir.Leaf, int], callbacks: bool) -> None:
        self.program = program
        self.room = room
        self.callbacks = callbacks
        self.called_back: dict[str, None] = {}
        self.doubt: Any = np.False_
        self.rounds: dict[ir.Leaf, Any] = dict.fromkeys(room, np.int64(0))
        self.transposes: dict[int, tuple[Any, Any]] = {}  # matrices, and what they transpose
        self.negatives: dict[int, tuple[Any, Any]] = {}  # products with -1, and what they negate
        self.entered: list[str | None] = []  # definitions; None where values choose

    # --- the state of a run -----------------------------------------------------------------

    def doubts(self, flags: Held) -> None:
        """The run is in doubt where one of the flags is true."""
        self.doubt = self.doubt | (np if is_known(flags) else jnp).any(flags)

    @property
    def state(self) -> Any:
        """What loops and branches hand on beside their values."""
        return jnp.asarray(self.doubt), [jnp.asarray(n) for n in self.rounds.values()]

    @state.setter
    def state(self, state: tuple[jax.Array, list[jax.Array]]) -> None:
        self.doubt = state[0]
        self.rounds.update(zip(self.rounds, state[1], strict=True))

    @contextmanager
    def by_values(self) -> Iterator[None]:
        """What is entered here is entered or not, or more than once, as values have it."""
        self.entered.append(None)
        yield
        self.entered.pop()

    def shapes(self, room: int = 1) -> Shapes:
        """What values of types look like."""
        return Shapes(self.program, room)

    def enter(self, name: str, values: Sequence[Any]) -> list[Any]:
        """The results of a definition."""
        raise NotImplementedError(name)

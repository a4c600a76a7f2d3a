"""A call in two halves: the value with its tape now, and the linear map when it is asked for.

Under a checkpoint policy the function is traced for the arguments of the call, every time; the
passes choose with the policy what the tape holds; with one that has a name, once for each text.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from lineara.engines import run
from lineara.errors import NonScalarOutputError, StructureError
from lineara.facts.hints import Shaped, Value
from lineara.facts.types import ArrayType, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program
from lineara.passes.derivatives import reverse
from lineara.passes.names import JVP, LIN, NL, E, T
from lineara.passes.policy_table import POLICIES
from lineara.passes.unzip import Policy
from lineara.staging.capture import trace
from lineara.staging.dead_lanes import of_dead_lanes, run_linear, run_live
from lineara.staging.definitions import Definition, Same
from lineara.staging.tracing import VARIABLE, Staged
from lineara.trees import flatten


class Halves:
    """f at a point: the value, and the derivative between lists of vectors, one for each leaf."""

    values: list[Any]
    tape: Any

    def __init__(
        self, staged: Staged, program: Program, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.staged = staged
        self.definition: Definition = staged.definition.of(program)
        self.lin: str = staged.name + JVP + LIN
        self.operands: list[Any] = staged.operands(tuple(args), kwargs)
        self.definition.test(self.operands)
        *self.values, self.tape = self.definition.of(program, JVP + NL).run(self.operands).results
        self.d: ir.Def = self.definition.text
        kinds = self.staged.signature.types
        formals = iter(self.d.params)
        self.formals: list[ir.Var | None] = [
            None if t is None else next(formals) for t in kinds
        ]  # of the leaves

    @classmethod
    def of(
        cls, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], policy: Policy
    ) -> Self:
        """The halves of a function, under a policy."""
        staged = trace(f, *args, **kwargs)
        if any([policy is known for known in POLICIES.values()]):
            program = _reversed(Same.of(staged.program, staged.name), policy)
        else:  # another's may look at more than the text
            program = reverse(staged.program, staged.name, policy)
        return cls(staged, program, args, kwargs)

    @property
    def value(self) -> Any:
        """The result of f."""
        return self.staged.results.tree(self.values)

    def real(self, name: str) -> None:
        """Refuse results that are not one real number."""
        t = self.d.results[0] if len(self.d.results) == 1 else None
        if not isinstance(t, ArrayType) or t.shape or t.dtype.kind != "f":
            found = ", ".join(map(show, self.d.results)) or "no number"
            raise NonScalarOutputError(
                f"{name}: the function must return one real number, but it returned {found}; "
                "reduce it (np.sum), or use vjp or jacobian for other results"
            )

    def back(self, bars: Sequence[Any]) -> list[Any]:
        """The cotangents of the leaves from those of the results; None where nothing moves."""
        moving = [t for t in self.d.results if not self.definition.program.is_inert(t)]
        cs = [_fit(c, t) for c, t in zip(bars, moving, strict=True)]
        program, back = self.definition.program, self.lin + T
        if back + E in program.defs:  # where it was made, it is what was simplified
            cotangents = list(run(program, back + E, self.tape, *cs).results)
            if of_dead_lanes(cotangents, cs):
                program = reverse(self.staged.program, self.staged.name)
                *_, tape = self.definition.of(program, JVP + NL).run(self.operands).results
                cotangents = run_live(program, back, [tape], cs)
        else:
            cotangents = run_linear(program, back, [self.tape], cs)
        by_formal = dict(zip(self._moving(), cotangents, strict=True))
        return [None if v is None else by_formal.get(v) for v in self.formals]

    def ahead(self, dots: Sequence[Any]) -> list[Any]:
        """The tangents of the results from those of the leaves; None for zero."""
        given = {v: d for v, d in zip(self.formals, dots, strict=True) if v is not None}
        xs = [_fit(given.get(v), v.type) for v in self._moving()]
        return run_linear(self.definition.program, self.lin, [self.tape], xs)

    def gradient(self, bars: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The cotangents as the arguments are: by position, and by name."""
        parts = [g for g, v in zip(self.back(bars), self.formals, strict=True) if v is not None]
        signature, kinds = self.staged.signature, self.staged.signature.pythons
        given = zip(parts, kinds, strict=True)
        return signature.call([None if g is None else own(g, weak) for g, weak in given])

    def cotangents(self, w: dict[Any, Any]) -> list[Any]:
        """The cotangents of the results that move, from a container like what f returns."""
        leaves, structure = flatten(w)
        results = self.staged.results
        if structure != results.structure:
            raise StructureError(
                f"vjp: the cotangent has the form {structure}, but the function returned "
                f"{results.structure}; give one cotangent for each result"
            )
        return self.picked(leaves)

    def picked(self, leaves: Sequence[Any]) -> list[Any]:
        """Of one vector for each leaf of the result, those of the leaves that move."""
        return [v for v, m in zip(leaves, self._results(), strict=True) if m]

    def spread(self, vectors: Sequence[Any]) -> list[Any]:
        """A vector for each leaf of the result; None where nothing moves."""
        left = iter(vectors)
        return [next(left) if m else None for m in self._results()]

    def _results(self) -> list[bool]:
        """Which leaves of the result move."""
        types = iter(self.d.results)
        return [
            c is VARIABLE and not self.definition.program.is_inert(next(types))
            for c in self.staged.results.constants
        ]

    def _moving(self) -> list[Any]:
        return [v for v in self.d.params if not self.definition.program.is_inert(v.type)]


@functools.lru_cache(maxsize=64)
def _reversed(one: Same, policy: Policy) -> Program:
    return reverse(one.program, one.name, policy)


def _fit(vector: Value | None, t: Any) -> Any:
    """A tangent or cotangent of a type; None is zero."""
    if vector is None:
        return np.zeros(t.shape, t.dtype)[()]
    return np.broadcast_to(np.asarray(vector, t.dtype), t.shape)[()]


def own(g: Shaped, weak: bool = True) -> Any:
    """An array that nobody else has, or a number: Python's, or NumPy's where Python has none."""
    if np.ndim(g):
        return np.array(g)
    number = np.asarray(g)[()]
    if not weak:
        return number
    return number if isinstance(number, np.inexact) and _is_narrow(number) else np.asarray(g).item()


def _is_narrow(number: Shaped) -> bool:
    return number.dtype not in (np.dtype(float), np.dtype(complex))

"""A pullback: the linear map from cotangents of a result to those of the arguments that `bwd` is.

Backward it is bwd itself, which may be any code.  Forward it is the transpose of bwd's text, made
when it is first asked for; the text also carries a whole batch at once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import LinearaError, RuleError
from lineara.facts.hints import Tree, Value
from lineara.facts.primitive import Joint, Own
from lineara.facts.types import show_type, type_of
from lineara.rules.call_as_operation import (
    Form,
    as_written,
    copied,
    fitted,
    moves,
    settled,
    split_as,
    spread,
    still,
    unwritten,
)
from lineara.tape.levels import open_level
from lineara.tape.linear_level import record_linear
from lineara.trees import Structure, flatten, unflatten


class Pullback:
    """The linear map from the leaves of y to those of the arguments that `bwd` is."""

    values: list[Any]
    rule: Any
    residuals: Value | None
    form: Form

    def __init__(
        self, rule: Any, values: list[Any], form: Form, y: Tree, residuals: Value | None
    ) -> None:
        self.rule, self.values, self.form, self.residuals = rule, values, form, residuals
        leaves, structure = flatten(y)
        self.structure: Structure = structure
        self.zeros: list[Any | None] = [
            still(settled(v)) if moves(settled(v)) else None for v in leaves
        ]
        self._text: Joint | None = None

    def __call__(self, y_bars: Sequence[Any]) -> list[Any]:
        """Cotangents of the leaves of the arguments: bwd itself, or its text for a batch."""
        return spread(self.direct, y_bars, self.batched)

    def batched(self, y_bars: Sequence[Any]) -> list[Any] | None:
        """The same for a batch or with dead lanes; None where bwd looks at values."""
        try:
            return self.text.forward(y_bars)
        except LinearaError:
            return None

    def direct(self, y_bars: Sequence[Any]) -> list[Any]:
        """The same, for plain or traced cotangents."""
        filled = [
            z if v is None else _protected(v) for v, z in zip(y_bars, self.zeros, strict=True)
        ]
        y_bar = unflatten(self.structure, filled)
        bwd = as_written(self.rule.bwd, (self.residuals, y_bar))
        with unwritten(f"bwd of {self.rule!r}", filled):
            return self.aligned(bwd(self.residuals, y_bar))

    @property
    def text(self) -> Joint:
        """The map of bwd's text, from all leaves of y that move to all leaves of the arguments."""
        if self._text is None:
            places = [i for i, z in enumerate(self.zeros) if z is not None]

            def run(*nodes: Any) -> list[Any]:
                at = dict(zip(places, nodes, strict=True))
                y_bar = unflatten(self.structure, [at.get(i) for i in range(len(self.zeros))])
                bars = self.aligned(copied(self.rule.bwd)(self.residuals, y_bar))
                return [bar.finish() if type(bar) is Own else bar for bar in bars]

            _, joint = record_linear(open_level, run, [type_of(self.zeros[i]) for i in places])
            self._text = Joint(
                lambda y_bars: joint.forward([y_bars[i] for i in places]),
                lambda dots: self.placed(places, joint.back(dots)),
            )
        return self._text

    def placed(self, places: list[int], vectors: Sequence[Any]) -> list[Any]:
        """One vector for each leaf of y."""
        at = dict(zip(places, vectors, strict=True))
        return [at.get(i) for i in range(len(self.zeros))]

    def spread_out(self, tangents: Sequence[Any], active: Sequence[int]) -> list[Any]:
        """One tangent for each leaf of the arguments, from those of the active ones."""
        at = dict(zip(active, tangents, strict=True))
        return [at.get(i) for i in range(len(self.values))]

    def aligned(self, bars: Any) -> list[Any]:
        """For each leaf of the arguments its cotangent, None for zero."""
        parts = self.form.split(self.values)
        if not isinstance(bars, tuple | list) or len(bars) != len(parts):
            given = f"{len(bars)} of them" if isinstance(bars, tuple | list) else show_type(bars)
            raise RuleError(
                f"{self.rule!r}: bwd must return a tuple of {len(parts)} cotangents, one for each "
                f"argument (None for zero), but it returned {given}"
            )
        cotangents: list[Any] = []
        for i, (bar, leaves, structure) in enumerate(
            zip(bars, parts, self.form.structures, strict=True)
        ):
            name = self.rule.argument(i)
            if bar is None or (structure is None and not moves(leaves[0])):
                cotangents += [None] * len(leaves)
                continue
            given, shape = split_as(bar, structure)
            if shape != structure:
                raise RuleError(
                    f"{self.rule!r}: the argument {name} is {structure}, but bwd gave it {shape}"
                )
            who, by = f"{self.rule!r}: the argument {name}", "bwd"
            cotangents += [fitted(b, v, who, by) for v, b in zip(leaves, given, strict=True)]
        return cotangents


def _protected(v: Value) -> Any:
    """A cotangent that others read too, as one that cannot be written."""
    if isinstance(v, np.ndarray):
        v = v.view()
        v.flags.writeable = False
    return v

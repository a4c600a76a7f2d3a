"""An array as the rules of primitives see it where its numbers are not known."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.box import ArrayBox
from lineara.facts.hints import DType, Index
from lineara.facts.registry import op, registry


class Operand(ArrayBox):
    """An array as the rules of primitives see it where its numbers are not known: by its type.

    What a rule applies to it is written down, or is done later.
    """

    __slots__ = ("type",)
    depth = math.inf
    has_type = True
    type: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.type.dtype

    @property
    def named(self) -> str:
        """What errors call it."""
        return repr(self.type)

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)

    def astype(self, dtype: DType, **_: Any) -> Any:
        """In another dtype."""
        return op("astype")(self, dtype=np.dtype(dtype))

    def __bool__(self) -> bool:
        raise NoRuleError(
            f"a rule asks whether a {self.named} holds, which is not known when it is "
            "written down; where(c, a, b) chooses"
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NoRuleError(
            f"a rule asks for the numbers of a {self.named}, which are not known when it "
            "is written down; np.stack makes an array of arrays"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        ours = registry.ours(ufunc)
        if ours is None or method != "__call__" or options:
            raise NoRuleError(f"a rule uses np.{ufunc.__name__}, which has no primitive")
        return ours(*args)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: tuple[Any, ...],
        args: tuple[Any, ...],
        options: dict[Any, Any],
    ) -> Any:
        ours = registry.ours(function)
        if ours is None:
            raise NoRuleError(f"a rule uses np.{function.__name__}, which has no primitive")
        return ours(*args, **options)


__all__ = ["Operand"]

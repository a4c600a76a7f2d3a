"""A function of an array that reads it in places: its derivative is these places and their weights.

The common case of a rule whose cotangent is a builder, without writing the builder.
"""

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from lineara.cotangent import Coo, Rows
from lineara.errors import NoRuleError, RuleError, StagingError, TypeMismatchError
from lineara.facts.hints import Shaped, Value
from lineara.facts.types import show_type
from lineara.rules import rule_tests
from lineara.rules.call_as_operation import moves, name_of, settled
from lineara.rules.custom import custom_vjp
from lineara.tape.node import Traced
from lineara.trees import flatten

Places = tuple[np.ndarray, ...]


class sparse_rule(custom_vjp):
    """`f` of an array x, whose derivative is stated as places of x and their values.

    edge(x, *others) -> (places, values)  says that, for a small x_dot,

        y_dot = sum(values * x_dot[places])   over the axes that x[places] has and y has not

    `places` is an integer, an array of integers, or a tuple of them, one for each of the first axes
    of x; `values` broadcasts to the shape of x[places], which begins with the shape of y = f(x,
    *others).  The cotangent of x is Rows where places are those of the first axis, otherwise a Coo:
    nothing of the size of x is made.  The rule serves both modes at every order.  Only x has a
    derivative.  It is tested against finite differences: on `example`, a tuple of arguments, or at
    the first call; `check=False` trusts it.

    Raises RuleError for a rule that is wrong, TypeMismatchError for other places, IndexError for
    places outside of x, NoRuleError where another argument is differentiated, StagingError where a
    program computes the places.

    >>> import numpy as np, lineara
    >>> def between(table, x):  # linear interpolation in a table
    ...     i = int(x)
    ...     return (i + 1 - x) * table[i] + (x - i) * table[i + 1]
    >>> def edge(table, x):
    ...     i = int(x)
    ...     return np.array([i, i + 1]), np.array([i + 1 - x, x - i])
    >>> look = sparse_rule(between, edge)
    >>> g = lineara.grad(lambda t: look(t, 2.25) ** 2, sparse=True)(np.ones(1_000_000))
    >>> g, g.values
    (Rows(2 of 1 000 000, 0.0002 %), array([1.5, 0.5]))
    """

    stated_by = "edge"

    def __init__(
        self,
        f: Callable[..., Any],
        edge: Callable[..., Any],
        *,
        example: Sequence[Any] | None = None,
        check: bool = True,
    ) -> None:
        if not callable(edge):
            raise TypeMismatchError(f"sparse_rule: edge is a function; found {show_type(edge)}")
        self.edge = edge

        def fwd(x: Any, *others: Any, **options: Any) -> Any:
            y = f(x, *others, **options)
            given = edge(x, *others, **options)
            return y, (*self._read(given, np.shape(x), np.shape(y)), len(others))

        super().__init__(f, fwd, _scattered, example=example, check=check)

    def stated(self) -> tuple[Any, ...]:
        """The function and its edge."""
        return self.f, self.edge

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, at the level of the first argument."""
        for i, other in enumerate(self._bind(args, kwargs)[0][1:], 1):
            if any(isinstance(v, Traced) and moves(v) for v in flatten(other)[0]):
                raise NoRuleError(
                    f"{self!r}: no derivative with respect to the argument {self.argument(i)}, for "
                    "places and values are those of the first one; give it a plain value, or "
                    "declare a custom_vjp"
                )
        return super().__call__(*args, **kwargs)

    def _read(self, given: object, shape: tuple[int, ...], y: tuple[int, ...]) -> Any:
        """What the transpose needs: places, values, the shapes of x, of x[places] and of y."""
        if not isinstance(given, tuple) or len(given) != 2:
            raise RuleError(
                f"{self!r}: edge must return (places, values), but it returned {show_type(given)}"
            )
        places = self._places(given[0], shape)
        read = (*np.broadcast_shapes(*(i.shape for i in places)), *shape[len(places) :])
        if read[: len(y)] != y:
            raise RuleError(
                f"{self!r}: x[places] has the shape {read} and the result {y}; the first must "
                "begin with the second"
            )
        held = np.shape(given[1])
        if len(held) > len(read) or any(
            n not in (1, m) for n, m in zip(held[::-1], read[::-1], strict=False)
        ):
            raise RuleError(
                f"{self!r}: the values have the shape {held} and x[places] {read}; the first must "
                "broadcast to the second"
            )
        return places, given[1], shape, read, y

    def _places(self, given: Value, shape: tuple[int, ...]) -> Places:
        parts = [settled(p) for p in (given if isinstance(given, tuple) else (given,))]
        if any(isinstance(p, Traced) for p in parts):
            raise StagingError(
                f"{self!r}: a program computes these places, and a rule of places needs to know "
                "them; call it outside of jit, trace and vmap, or index x without a rule"
            )
        if not 0 < len(parts) <= len(shape) or not all(map(_is_whole, parts)):
            raise TypeMismatchError(
                f"{self!r}: places are integers or arrays of them, one for each of the first axes "
                f"of an array of the shape {shape}; found {show_type(given)}"
            )
        places = tuple([np.asarray(p) for p in parts])
        for i, n in zip(places, shape, strict=False):
            if np.any((i < -n) | (i >= n)):
                raise IndexError(f"{self!r}: a place is not on an axis of {n}")
        return tuple([np.where(i < 0, i + n, i) for i, n in zip(places, shape, strict=False)])

    def check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Test the rule in its first argument: its value, its pullback, its pullback's text."""
        x, *others = args
        at = sparse_rule(
            functools.wraps(self.f)(lambda x: self.f(x, *others, **options)),
            lambda x: self.edge(x, *others, **options),
            check=False,
        )
        rule_tests.check_vjp(at, (x,), {})

    def __repr__(self) -> str:
        return f"sparse_rule({name_of(self.f)})"


def _is_whole(x: Shaped) -> bool:
    return not isinstance(x, bool) and (
        isinstance(x, int | np.integer) or (isinstance(x, np.ndarray) and x.dtype.kind in "iu")
    )


def _scattered(residuals: Any, y_bar: Any) -> tuple[Any, ...]:
    """The cotangent of x: y_bar times the values, at the places."""
    places, values, shape, read, y, others = residuals
    wide = np.reshape(y_bar, (*y, *[1] * (len(read) - len(y)))) if len(read) > len(y) else y_bar
    bars = np.broadcast_to(wide * np.conj(values), read)
    row = shape[len(places) :]
    at = np.ravel_multi_index(np.broadcast_arrays(*places), shape[: len(places)]).reshape(-1)
    if len(places) == 1:
        return (Rows(at, np.reshape(bars, (at.size, *row)), shape), *[None] * others)
    cells = (at[:, None] * prod(row) + np.arange(prod(row))).reshape(-1)
    return (Coo(cells, np.reshape(bars, (cells.size,)), shape), *[None] * others)


__all__ = ["sparse_rule"]

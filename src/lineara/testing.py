"""The laws a user's own builder must keep, as checks that say which one it broke.

Costs are counted, in calls and in bytes, and never timed: what passes once passes always.
"""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, product
from numbers import Number
from typing import Any

import numpy as np

from lineara.cotangent import combine, finish, zero
from lineara.cotangent.monoid import fields
from lineara.errors import RuleError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.rules.rule_tests import LinearReport, check_linear

SMALL, LARGE = 16, 1 << 14
"""The sizes between which the cost of adding must not grow."""


def check_builder(source: Any) -> None:
    """Check the laws of the monoid of builders, or raise RuleError with the law that fails.

    `source` is a list of cotangents of one value; or a function from a size to such a list, or a
    class with a static method `examples(size)` that is one: then the costs are checked too, for
    that of adding must not grow with the size.  Cotangents of your own class T need
    `T.merge(terms)` or `+`, and `finish(like)`; where a sum is its own value, `T.zero(like)` and
    `==`.  `T.zero(like)`, `T.inject(value)` and `t.scaled(number)` are checked where they exist.

    >>> check_builder([1.0, 2.5, -4.0])
    >>> check_builder(lambda n: [{"w": np.ones(n)}, {"b": 2.0}])
    >>> check_builder(["a", "b"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    lineara.errors.RuleError: check_builder: commutativity (a + b = b + a) fails for 'a', 'b': ...
    """
    make = _maker(source)
    if isinstance(make, type) or (make is None and not isinstance(source, Iterable)):
        given = f"the class {make.__name__}" if make is not None else f"one {type(source).__name__}"
        raise RuleError(
            f"check_builder: {given} is given; give a list of cotangents, a function from a size "
            "to one, or a class that has it as a static method `examples(size)`"
        )
    samples = list(source if make is None else make(SMALL))
    if not samples:
        raise RuleError("check_builder: there are no samples; give at least one cotangent")
    _check_methods(samples[0])
    for name, law in _LAWS.items():
        for terms in islice(product(samples, repeat=law.__code__.co_argcount), 64):
            _hold(name, law(*terms), terms)
    if make is not None:
        _check_costs(make)


def _maker(source: Tree) -> Any:
    return getattr(source, "examples", source if callable(source) else None)


def _check_methods(sample: Tree) -> None:
    """Name the method that a class with some of a builder's methods lacks."""
    kind = type(sample)
    has = {n for n in ("merge", "finish", "zero", "inject", "__add__") if hasattr(kind, n)}
    lacks = None
    if kind.__module__.startswith("lineara."):
        return
    if has & {"finish", "zero", "inject"} and not has & {"merge", "__add__"}:
        lacks = "merge(terms), a static method that adds them, or a + of two"
    elif "merge" in has and "finish" not in has:
        lacks = "finish(like), which gives the number or array that the terms add up to"
    elif (
        has
        and "finish" not in has
        and ("zero" not in has or kind.__eq__ is object.__eq__)
        and kind.__module__ != "builtins"
        and not isinstance(sample, Number | np.ndarray)
        and fields(sample) is None
    ):  # sums are their own values, and which is zero nobody else knows
        lacks = "finish(like); or, where a sum is its own value, zero(like) and an == of two"
    elif not has and kind.__init__ is object.__init__ and kind.__module__ != "builtins":
        lacks = "the methods of a builder: merge(terms) and finish(like), or +"
    if lacks is not None:
        raise RuleError(f"check_builder: {kind.__name__} lacks {lacks}")


# ---- laws: pairs of values that must agree


def _purity(a: object, b: Tree) -> tuple[Any, Any]:
    before = finish(a)
    combine([a, b])
    combine([b, a])
    return finish(a), before


def _identity(a: object) -> tuple[Any, Any]:
    nothing = _zero_like(a)
    return (finish(combine([nothing, a])), finish(combine([a, nothing]))), (finish(a), finish(a))


def _zero_like(a: object) -> Any:
    return getattr(type(a), "zero", zero)(finish(a))


def _associativity(a: Tree, b: Tree, c: Tree) -> tuple[Any, Any]:
    return finish(combine([combine([a, b]), c])), finish(combine([a, combine([b, c])]))


def _commutativity(a: Tree, b: Tree) -> tuple[Any, Any]:
    return finish(combine([a, b])), finish(combine([b, a]))


def _homomorphism(a: object, b: object) -> tuple[Any, Any]:
    return finish(combine([a, b])), _plus(finish(a), finish(b))


def _injection(a: object) -> tuple[Any, Any]:
    value = finish(a)
    inject = getattr(type(a), "inject", lambda v: v)
    return finish(inject(value)), value


def _scaling(a: Any) -> tuple[Any, Any]:
    scaled = getattr(a, "scaled", None)
    return (0, 0) if scaled is None else (finish(scaled(3.0)), finish(combine([a, a, a])))


_LAWS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "purity (combine leaves its arguments as they were)": _purity,
    "identity (a + zero = a = zero + a)": _identity,
    "associativity ((a + b) + c = a + (b + c))": _associativity,
    "commutativity (a + b = b + a)": _commutativity,
    "homomorphism (finish(a + b) = finish(a) + finish(b))": _homomorphism,
    "injection (finish(inject(v)) = v)": _injection,
    "scaling (a.scaled(3) = a + a + a)": _scaling,
}


def _hold(name: str, sides: tuple[Any, Any], terms: Sequence[Any]) -> None:
    left, right = sides
    if not agree(left, right):
        given = ", ".join(map(repr, terms))
        raise RuleError(
            f"check_builder: {name} fails for {given}: {left!r} is not {right!r}; "
            "combine must add, and finish must read what was added"
        )


def agree(a: Tree, b: Shaped) -> bool:
    """Whether two values are equal: numbers to rounding, containers part by part."""
    held, other = fields(a), fields(b)
    if held is not None and other is not None:
        return held.keys() == other.keys() and all(agree(x, other[key]) for key, x in held.items())
    if isinstance(a, (np.ndarray, float, complex, np.inexact)):
        eps = np.finfo(np.result_type(a)).eps if np.result_type(a).kind in "fc" else 0
        return np.shape(a) == np.shape(b) and np.allclose(a, b, 64 * eps, 64 * eps, equal_nan=True)
    return bool(a == b)


def _plus(a: Value, b: Value) -> Any:
    """The sum of finished values; what is missing from a container is zero."""
    left, right = fields(a), fields(b)
    if left is None or right is None:
        return a + b
    both = {**left, **right}
    return {
        key: _plus(left[key], right[key]) if key in left and key in right else both[key]
        for key in both
    }


# ---- costs


def _check_costs(make: Callable[[int], Iterable[Any]]) -> None:
    for name, act in {"combine": _add_all, "zero": _zero}.items():
        counts = {size: _count(act(list(make(size)))) for size in (SMALL, SMALL, LARGE)}
        (calls, nbytes), (more_calls, more_bytes) = counts[SMALL], counts[LARGE]
        if more_calls > calls + 8 or more_bytes > nbytes + 1024:
            raise RuleError(
                f"check_builder: the cost of {name} grows with the size: {calls} calls and "
                f"{nbytes} bytes at size {SMALL}, {more_calls} calls and {more_bytes} bytes at "
                f"{LARGE}; keep the terms in a list and add them in finish"
            )


def _add_all(samples: list[Any]) -> Callable[[], Any]:
    return lambda: combine(samples)


def _zero(samples: list[Any]) -> Callable[[], Any]:
    value, make = finish(samples[0]), getattr(type(samples[0]), "zero", zero)
    return lambda: make(value)


def _count(act: Callable[[], Any]) -> tuple[int, int]:
    """How many calls `act` makes, and how many bytes it holds at most."""
    return count_calls(act), count_bytes(act)


def count_calls(act: Callable[[], Any]) -> int:
    """The number of calls of Python and C functions that `act` makes.

    >>> count_calls(lambda: [len(s) for s in ("a", "bc")]) > 2
    True
    """
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # callbacks of the garbage collector would be counted
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return calls


def count_bytes(act: Callable[[], Any]) -> int:
    """The most bytes that are held at one time while `act` runs, beyond those held before.

    >>> count_bytes(lambda: np.zeros(1000)) // 1000
    8
    """
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        kept = act()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        if not tracing:
            tracemalloc.stop()
    return peak - before


__all__ = ["LinearReport", "check_builder", "check_linear", "count_bytes", "count_calls"]

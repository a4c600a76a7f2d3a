"""What goes through values and keeps one: `sum`, `max`, `min`, `functools.reduce`; and `sorted`.

Over an array the rounds are those of a loop.  Of a generator expression structured code makes the
loop itself, which `fold` runs where the function that is called is the builtin one.
"""

import builtins
import functools
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from lineara.errors import StagingError, user_frame
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.ops.value_checks import checked
from lineara.staging.capture.branches import is_staged
from lineara.staging.capture.containers import Given
from lineara.staging.capture.lists import Stacked, new
from lineara.staging.capture.sequences import Items, items_of
from lineara.tape.node import Scalar, Traced


class Nothing:
    """What is kept before the first round."""

    __lineara_leaf__ = True

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def empty(name: str) -> str:
    """What Python says where there is nothing to choose from."""
    try:
        getattr(builtins, name)(())
    except ValueError as e:
        return str(e)
    raise AssertionError("nothing has no greatest")


def _at_line(body: Any) -> Any:
    """A block as one of the user's line: what is known of loops is known by their code."""
    frame = user_frame()
    if frame is None:
        return body
    place = {"co_filename": frame.f_code.co_filename, "co_firstlineno": frame.f_lineno}
    code = body.__code__.replace(**place)
    return FunctionType(code, body.__globals__, body.__name__, None, body.__closure__)


class Folds:
    """The stand-ins, which write their rounds by the forms `for_` and `choose`."""

    for_: Callable[..., Any]
    choose: Callable[..., Any]

    def __init__(self, for_: Callable[..., Any], choose: Callable[..., Any]) -> None:
        self.for_, self.choose = for_, choose
        self.sum: Any = functools.wraps(builtins.sum)(functools.partial(self._sum))
        self.max: Any = self._extreme(builtins.max, operator.gt)
        self.min: Any = self._extreme(builtins.min, operator.lt)
        self.builtins: tuple[tuple[Any, Any], ...] = (
            (builtins.sum, self.sum),
            (builtins.max, self.max),
            (builtins.min, self.min),
            (builtins.sorted, sorted_),
        )
        self.of_modules: tuple[tuple[Any, Any], ...] = ((functools.reduce, self._reduce),)

    def _kept(self, items: Items, first: Any, step: Callable[[Any, Any], Any]) -> Any:
        """What is kept at the end."""
        acc = first

        def body(item: Any) -> None:
            nonlocal acc
            acc = step(acc, item)

        self.for_(items, _at_line(body), None, None, ("acc",), ("acc",))
        return acc

    def _sum(self, values: Any, /, start: Any = 0) -> Any:
        items = _rows(values)
        if items is None:
            return builtins.sum(values, start)
        return self._kept(items, start, operator.add)

    def _reduce(self, f: Callable[[Any, Any], Any], values: Any, /, *initial: Any) -> Any:
        """`functools.reduce`."""
        items = _rows(values) if initial else _some(values, "reduce()")
        if items is None or (not initial and not items.rounds):
            return functools.reduce(f, values, *initial)
        first, rest = (initial[0], items) if initial else (items.at(0), _rest(items))
        return self._kept(rest, first, f)

    def _extreme(self, original: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Any:
        """`max` or `min`, of staged numbers too."""

        @functools.wraps(original)
        def call(first: Any, *others: Any, **options: Any) -> Any:
            key = options.get("key")
            items = None if others else _some(first, f"{original.__name__}()")
            if items is not None and items.rounds:
                start = self._ranked(items.at(0), key)
                return self._kept(
                    _rest(items), start, lambda b, v: self._better(better, b, self._ranked(v, key))
                )[0]
            values = [first, *others] if others else [*first]
            ranked = [self._ranked(v, key) for v in values]
            if not any([is_staged(rank) for _, rank in ranked]):
                known = {"key": lambda pair: pair[1]} | {
                    k: v for k, v in options.items() if k != "key"
                }
                best = original(ranked, **known) if ranked else original((), **options)
                return best[0] if ranked else best
            best = ranked[0]
            for pair in ranked[1:]:
                best = self._better(better, best, pair)
            return best[0]

        return call

    def _ranked(self, value: Any, key: Any) -> tuple[Any, Any]:
        return value, value if key is None else key(value)

    def _better(self, better: Callable[[Any, Any], Any], best: Any, pair: Any) -> Any:
        test, both = better(pair[1], best[1]), Given(pair, best)
        if pair[0] is pair[1]:  # without a key
            value = self.choose(test, lambda: both.f[0][0], lambda: both.f[1][0])
            return value, value
        return self.choose(test, lambda: both.f[0], lambda: both.f[1])


def _rows(values: Leaf) -> Items | None:
    """The items of an array, or of a list that one holds; of all else the rounds are Python's."""
    return items_of(values) if isinstance(values, Traced | Stacked | Items) else None


def _some(values: Leaf, name: str) -> Items | None:
    """The same, where it must be known whether there are any."""
    if isinstance(values, Stacked):
        values.known_length(name)
    return _rows(values)


def _rest(items: Items) -> Items:
    return Items(items.rounds - 1, lambda i: items.at(i + 1), items)


@functools.wraps(builtins.sorted)
def sorted_(values: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    """`sorted`, of staged numbers too: a list of as many."""
    items = [*values]
    ranks = items if key is None else [key(v) for v in items]
    if not any(map(is_staged, (*items, *ranks))):
        places = builtins.sorted(range(len(items)), key=ranks.__getitem__, reverse=reverse)
        return new([items[i] for i in places])
    if not all([isinstance(v, Scalar | int | float) for v in (*items, *ranks)]):
        raise StagingError(
            "sorted() of staged values: numbers are sorted, by numbers, and the order of what is "
            "none depends on values; keep what belongs to them in arrays, and index these by "
            "np.argsort(keys, kind='stable')"
        )
    keys = op("stack")(*ranks)
    if keys.dtype.kind == "f":
        said = "sorted() of a NaN, whose place Python does not define"
        keys = checked(keys, op("isnan")(keys), StagingError, said)
    order = np.argsort(-keys if reverse else keys, kind="stable")
    ordered = op("stack")(*items)[order]
    weak = all([not isinstance(v, Traced) or v.weak for v in items])
    return new([ordered[i].item() if weak else ordered[i] for i in range(len(items))])


__all__ = ["NOTHING", "Folds", "empty"]

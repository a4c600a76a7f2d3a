"""Lists of what comes of items that are found by number: comprehensions and `map`, as loops.

The first item tells: where it is staged the others are those of a loop, which appends them, and
where it is not Python makes them.  Whole numbers that Python knows stay known, since they may be
sizes or keys.
"""

import builtins
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lineara.facts.hints import Tree
from lineara.staging.capture.list_items import is_staged
from lineara.staging.capture.lists import Stacked, new, raw
from lineara.staging.capture.sequences import Items, items_of
from lineara.staging.control_flow import tracing
from lineara.tape.node import Traced
from lineara.trees import flatten

FEW = 3  # items; so few are written out
WHOLE = (int, np.integer, np.bool_)


def collected(
    values: Any,
    run: Callable[[Any, Any], None],
    otherwise: Callable[[Any], Any],
    chooses: bool,
) -> Any:
    """The list of a comprehension over values.

    run         the loops, which append to the list that they are given
    otherwise   Python's own comprehension
    chooses     whether it depends on the items how many are kept, as far as the syntax tells
    """
    items = None if tracing() is None else items_of(values)
    if items is None:
        if tracing() is None or not chooses:
            return new(otherwise(values))
        kept = new(())
        run(values, kept)
        return kept
    if is_staged(items.rounds):
        kept = new(())
        run(items, kept)
        return kept
    if items.rounds <= FEW and not chooses:
        return new(otherwise(values))
    kept, at = new(()), 0
    while at < items.rounds and type(kept) is not Stacked and not raw(kept):
        run(_part(items, at, at + 1), kept)
        at += 1
    rest = _part(items, at, items.rounds)
    if type(kept) is Stacked or (not chooses and raw(kept) and _is_moving(raw(kept)[0])):
        run(rest, kept)
    else:
        kept.extend(otherwise(rest))
    items.end(known=True)
    return kept


def _part(items: Items, begin: int, end: int) -> Items:
    """Some of the items."""
    part = Items(end - begin, lambda i: items.at(i + begin) if begin else items.at(i), items)
    part.every = items.rounds
    return part


def _is_moving(item: Tree) -> bool:
    """Whether an item is staged, and no whole number in it is known."""
    leaves = flatten(item)[0]
    return any(map(is_staged, leaves)) and not any([isinstance(v, WHOLE) for v in leaves])


def map_(f: Callable[..., Any], *iterables: Iterable[Any]) -> Any:
    """`map`, by number where the items of arrays are found so."""
    several = [items_of(x) if isinstance(x, Traced | Stacked) else None for x in iterables]
    rounds = {x.rounds for x in several if x is not None and not is_staged(x.rounds)}
    known = [x for x in several if x is not None]
    if not known or len(known) < len(several) or len(rounds) != 1:
        return builtins.map(f, *iterables)
    return Items(rounds.pop(), lambda i: f(*[x.at(i) for x in known]), *known)

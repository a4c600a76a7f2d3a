"""The smallest tape, and the least work within a budget of bytes: minimum cuts  (spec, 13.g).

    source -> x        bytes(x)     a formal is stored
    b -> v             bytes(v)     a value that binding b makes is stored; a view never is
    u -> b             infinite     computing b again needs what it reads
    source -> b        weight W(b)  computing b again, where f.nl needs it for its results, too
    v -> sink          infinite     linear code reads v

What lies on the side of the sink is computed again, and the values that the cut goes through are
the tape.  With weight 0 the tape is the smallest there is; a weight trades bytes for work.
"""

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from lineara.errors import ProgramError
from lineara.facts.types import Named
from lineara.linear_a.cost import Costs
from lineara.linear_a.syntax import Binding, Var, reads
from lineara.passes.max_flow import Network
from lineara.passes.store_policies import Price, call_of, is_view, price
from lineara.passes.unzip import Cut, Policy

EXACT = 10  # up to this many free choices, all combinations are tried
POLISHED = 64  # up to this many bindings are tried one by one after the sweep

Keep = Callable[[Binding], bool]


def minimal_tape(cut: Cut) -> set[Binding]:
    """The tape of fewest bytes; of two such, the one that computes less again.

    >>> import numpy as np, lineara
    >>> f = lineara.stages(lambda x: np.sin(np.sin(x)), 0.0, policy=minimal_tape)
    >>> f.certificate.tape_bytes
    8
    """
    return cheapest(cut, Costs(cut.program), 1, 0)


def minimal_tape_but(keep: Keep) -> Policy:
    """The tape of fewest bytes such that no binding that `keep` names is computed again."""
    return lambda cut: cheapest(cut, Costs(cut.program), 1, 0, keep)


def cheapest(
    cut: Cut, costs: Costs, per_byte: int, per_work: int, keep: Keep | None = None
) -> set[Any]:
    """The bindings to compute again so that bytes and work, at these rates, come to least."""
    g = Network()
    source, sink = g.node(), g.node()
    again = {b: g.node() for b in cut.context}
    infinite = 1 + sum(
        per_byte * costs.tape(b.vars) + per_work * costs.work(b) for b in cut.context
    ) + per_byte * costs.tape(cut.formals)  # fmt: skip
    node: dict[Var, int] = {}
    for x in cut.formals:
        node[x] = g.node()
        if x not in cut.invariants:
            g.edge(source, node[x], per_byte * costs.bytes(x.type))
    needed = set(cut.kept(())) if per_work else set()
    for b, at in again.items():
        for u in set(reads(b)):
            g.edge(node[u], at, infinite)
        for v in b.vars:
            node[v] = g.node()
            g.edge(at, node[v], infinite if is_view(b) else per_byte * costs.bytes(v.type))
        if is_unknown(cut, b) or (keep is not None and keep(b)):
            g.edge(source, at, infinite)
        elif b in needed:
            g.edge(source, at, per_work * costs.work(b))
    for v in cut.wanted:
        g.edge(node[v], sink, infinite)
    g.flow(source, sink)
    side = g.sink_side(sink)
    return {b for b, at in again.items() if at in side or is_view(b)}


def is_unknown(cut: Cut, b: Binding) -> bool:
    """Whether a binding calls a definition that is being unzipped, whose tape has no size yet.

    Doing a recursion again at each of its levels would double the work with every level.
    """
    return call_of(b) is not None and any(
        isinstance(v.type, Named) and v.type.name not in cut.program.types for v in b.vars
    )


# --- a budget ------------------------------------------------------------------------------------


def budget(bytes: int | str) -> Policy:
    """The least repeated work with no tape of more bytes than a number, or a text like "64 MB".

    Every choice is tried where there are few; else the rate between bytes and work is swept along
    the hull of the best choices, and what room is left is filled, the most work first.

    Raises ProgramError for a text that is no size, and where the smallest tape has more bytes.

    >>> import numpy as np, lineara
    >>> lineara.grad(lambda x: np.sin(np.sin(x)), policy=budget("8 B"))(0.0)
    1.0
    """
    room = in_bytes(bytes)

    def chosen(cut: Cut) -> set[Binding]:
        costs = Costs(cut.program)
        few = [b for b in cut.context if not is_view(b) and not is_unknown(cut, b)]
        tried = every(cut, few) if len(few) <= EXACT else swept(cut, costs, room)
        prices = [(price(cut, again, costs), again) for again in tried]
        fitting = [(p.work, p.bytes, i) for i, (p, _) in enumerate(prices) if p.bytes <= room]
        if not fitting:
            p, least = min(prices, key=lambda found: found[0])
            if cut.outermost:
                raise ProgramError(
                    f"budget: the smallest tape of {cut.name} has {p.bytes:,} bytes, more than "
                    f"the {room:,} of the budget; allow {p.bytes:,}, or let functions that it "
                    "calls be computed again"
                )
            return least
        return prices[min(fitting)[2]][1]

    return chosen


def in_bytes(size: int | str) -> int:
    """A number of bytes.

    >>> in_bytes("64 MB"), in_bytes("1.5kB"), in_bytes("1 GiB")
    (64000000, 1500, 1073741824)
    """
    if not isinstance(size, str):
        return int(size)
    parts = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kMGT]?)(i?)B?\s*", size)
    if parts is None:
        raise ProgramError(f'budget: {size!r} is no size; write bytes, or a text such as "64 MB"')
    number, prefix, binary = parts.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kMGT".index(prefix or " "))


def every(cut: Cut, few: list[Binding]) -> Iterator[set[Binding]]:
    """Every choice."""
    views = {b for b in cut.context if is_view(b)}
    for k in range(len(few) + 1):
        for some in combinations(few, k):
            yield views | set(some)


def swept(cut: Cut, costs: Costs, bytes: int) -> Iterator[set[Binding]]:
    """The choices on the hull around a budget, and those that also fill the room left."""
    small = cheapest(cut, costs, 1, 0)
    large = {b for b in cut.context if is_view(b)}
    low, high = price(cut, small, costs), price(cut, large, costs)
    yield small
    if low.bytes > bytes or high.bytes <= bytes:
        yield large
        return
    best = small
    while low.work > high.work and high.bytes > low.bytes:
        again = cheapest(cut, costs, low.work - high.work, high.bytes - low.bytes)
        priced = price(cut, again, costs)
        if priced in (low, high) or not below(priced, low, high):
            break
        yield again
        if priced.bytes <= bytes:
            best, low = again, priced
        else:
            high = priced
    late_first = [b for b in reversed(cut.context) if b in best]  # in reverse order of reading
    for b in sorted(late_first, key=costs.work, reverse=True)[:POLISHED]:
        priced = price(cut, best - {b}, costs)
        if priced.bytes <= bytes and priced < (priced.bytes, low.work):
            best, low = best - {b}, priced
            yield best


def below(found: Price, low: Price, high: Price) -> bool:
    """Whether a price lies below the line through two others."""
    rise, run = low.work - high.work, high.bytes - low.bytes
    return rise * found.bytes + run * found.work < rise * low.bytes + run * low.work

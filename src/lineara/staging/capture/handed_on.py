"""What the arrays that a loop gives may be in Python: what it began with, and one another.

A round is given arrays and leaves others.  A result is what the loop began with where rounds hand
that on, in any number of them; two results are one array where a round leaves one for both, or two
that may have been one before it.
"""

from collections.abc import Sequence
from typing import Any

from lineara.facts.hints import Leaf
from lineara.staging.staged_arrays import StagedArray, may_be_one, relatives, store_of


def handed_on(
    begins: Sequence[Leaf],
    given: Sequence[Leaf],
    left: Sequence[Leaf],
    results: Sequence[Leaf],
    runs: bool,
) -> list[list[Any]]:
    """For each result of a loop the arrays that it may be.

    begins, given    what the loop began with, and what stood for it in a round, for each carry
    left, results    what a round leaves and the loop gives: its carries, and then what else
    runs             whether there is a round at all
    """
    before, last = [*map(store_of, begins)], [*map(store_of, left)]
    carries = [p for p, v in enumerate(given) if isinstance(v, StagedArray)]
    each = [(p, q) for p in carries for q in carries if p != q]
    handed = [{p for p in carries if may_be_one(store_of(given[p]), v)} for v in last]
    at_first = {(p, q) for p, q in each if may_be_one(before[p], before[q])}
    pairs = {*at_first}  # carries that may be one array in some round

    def are_one(k: int, m: int) -> bool:
        here = isinstance(left[k], StagedArray) and may_be_one(last[k], last[m])
        return here or any([(p, q) in pairs for p in handed[k] for q in handed[m]])

    while more := {(p, q) for p, q in each if (p, q) not in pairs and are_one(p, q)}:
        pairs |= more
    ever = [{*of} for of in handed]  # over any number of rounds
    while any([not of >= ever[p] for of in ever for p in of]):
        ever = [of.union(*[ever[p] for p in of]) for of in ever]
    arrays = []
    for k in range(len(left)):
        starts, others = ever[k], [m for m in range(len(left)) if m != k and are_one(k, m)]
        if not runs and k in carries:
            starts = starts | {k}
            others += [q for p, q in at_first if p == k]
        outside = [begins[p] for p in starts if isinstance(begins[p], StagedArray)]
        outside += [c for p in {*starts, k} for c in relatives(last[p])]
        arrays.append([*outside, *[results[m] for m in others]])
    return arrays

"""Branches: blocks of which a staged condition takes one become definitions that a `cond` calls."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError
from lineara.facts.primitive import op
from lineara.linear_a.branches import Cond
from lineara.staging.capture.choices import OneOf, asked, knowing, told_by
from lineara.staging.capture.conds import Form, Written, decoded, perhaps_of, places_of
from lineara.staging.capture.containers import Name, Snapshot, refuse_changes
from lineara.staging.capture.list_items import Extents, Wanted, is_staged, lengthen, longest
from lineara.staging.capture.lists import Stacked
from lineara.staging.capture.raises import check, is_raised, is_simple, level_of_trace, line_of
from lineara.staging.capture.records import Record, record, together
from lineara.staging.capture.regions import in_region, unwound
from lineara.staging.capture.variables import (
    ON,
    UNSET,
    Mixed,
    Return,
    Variables,
    Way,
    coded,
)
from lineara.staging.control_flow import Unknown, endless, tracing, written
from lineara.staging.staged_level import StagedLevel
from lineara.staging.texts import raises
from lineara.tape.node import Traced


def truth(v: Any) -> Any:
    """Whether a value is true: a bool, or a staged one."""
    if type(v) is OneOf:
        return asked(v, truth)
    if issubclass(type(v), Stacked):
        v = v.length
    if issubclass(type(v), Traced):
        v = v.now() if v.shape else v
    if not is_staged(v):
        return bool(v)
    if v.shape:
        size = int(np.prod(v.shape))
        if size != 1:
            return bool(np.zeros(v.shape, bool))  # NumPy says what is ambiguous
        v = op("reshape")(v, shape=())
    return v if v.dtype.kind == "b" else op("not_equal")(v, 0)


def truth_of(test: Callable[[], Any]) -> Any:
    """Whether the condition of a loop holds; of staged whole numbers it is staged if it does.

    No whole number of a program is as large as 2**64.  A loop that lasts as long as one is smaller
    would be written out without an end.
    """
    level = tracing()
    if level is None:
        return truth(test())
    shared, before = level.shared, level.shared.lasting
    shared.lasting = True
    try:
        return truth(test())
    finally:
        shared.lasting = before


def branch(
    test: object, then: Callable[[], Way], orelse: Callable[[], Way], variables: Variables
) -> Way:
    """One of two blocks; what they leave in variables and in containers is joined."""
    while True:
        try:
            return _branch(test, then, orelse, variables)
        except Wanted as wanted:
            wanted.with_traceback(None).stack(level_of_trace())


def _branch(
    test: object, then: Callable[[], Way], orelse: Callable[[], Way], variables: Variables
) -> Way:
    """The branch, unless a list is to be stacked before it."""
    level, both, told = level_of_trace(), (then, orelse), told_by(test)
    variables = variables.with_entries()
    before = variables.all()
    blocks: dict[Callable[[], Way], Written] = {}
    grown: dict[Callable[[], Way], Any] = {}
    snapshot = Snapshot(*both)
    todo = [*both]
    while todo:
        block = todo.pop(0)
        known = len(variables.cells)
        extents = Extents(snapshot.stacked)
        error: _Raised | None = None  # what the block raises, whatever the values
        try:
            with knowing(told.holds if block is then else told.fails, variables) as narrowed:
                one = _write(level, block, variables, before[0], snapshot)
            if isinstance(one, _Raised):
                error = one
            else:
                blocks[block] = one._replace(narrowed=narrowed) if narrowed else one
        except Unknown as unknown:  # the other branch says what the function gives
            level.shared.skipped.add(unknown.key)
            if block is orelse and not blocks:
                raise
        except RecursionError:
            if level.shared.open:  # a lineara.function, which says why
                raise
            raise endless("a branch") from None
        except Exception as e:
            if not isinstance(e, LinearaError):
                level.uncaught("what a branch of a staged condition does", [type(e)])
            raise
        finally:
            variables.reset(before)
            changed = snapshot.undo()
            grown[block] = extents.end()
        if error is None and changed:  # what it changed of containers are entries
            changed = [c for c in changed if isinstance(c[0], Name)]
        if changed:
            refuse_changes(changed, "branch")
        if error is not None:
            error.write(level, test, block is then)
            with knowing(told.fails if block is then else told.holds, variables):
                return (orelse if block is then else then)()
        if block is orelse and then in blocks and len(variables.cells) > known:
            todo = [then]  # with what the other one changes
    lengthen(level, longest(grown.values()))
    written = [blocks[b] for b in both if b in blocks]
    return Form(level, test, written, before[0], variables).write()


def _write(
    level: StagedLevel, block: Callable[[], Way], variables: Variables,
    before: dict[Any, Any], snapshot: Snapshot,
) -> "Written | _Raised":  # fmt: skip
    """Write a block; the entries that it changes are places of both.  Or what it raises."""
    left: list[tuple[Way, dict[Any, Any]]] = []
    raised: list[BaseException] = []

    def run(inner: StagedLevel, nodes: list[Any]) -> dict[Any, Any]:
        try:
            way = in_region((block,), variables, block)
        except BaseException as e:
            if not is_raised(e):
                raise
            raised.append(e)
            if not is_simple(e):
                raises(inner, True, e, line_of(e))
            return {}
        entries = snapshot.entries("branch")
        variables.add(entries)
        before.update({e: v for e, v in entries.items() if e not in before})
        values = variables.values()  # lengths of lists are numbers of this block
        left.append((way, values))
        return places_of(way, values)

    written = record(level, "branch", (), run)
    if raised:
        return _Raised(raised[0], written)
    ((way, values),) = left
    return Written(written, values, way, snapshot)


class _Raised(NamedTuple):
    """A block of a branch that ends in an exception, whatever the values."""

    error: BaseException
    record: Record

    def write(self, level: StagedLevel, test: Any, holds: bool) -> None:
        """Write what raises it where the condition holds, or where it does not.

        What the block does before that, and what it calculates for the exception, is done there.
        """
        bindings = self.record.out.bindings
        if is_simple(self.error) and not any(map(level.shared.stays, bindings)):
            check(test if holds else op("logical_not")(test), self.error, line_of(self.error))
            return
        none = record(level, "branch", (), lambda inner, nodes: {})
        both = [r.pruned(()) for r in ((self.record, none) if holds else (none, self.record))]
        around, each = together(level, both)
        pairs = zip(both, each, strict=True)
        level.add(*[r.define(around, mine, (), (), False) for r, mine in pairs])
        args = [level.as_box(test), *around]
        written(level, Cond(tuple([b.var for b in args]), tuple([r.name for r in both])), ())


def follow(
    way: Way, rest: Callable[[], Way] | None, variables: Variables, taken: tuple[int, ...] = ()
) -> Way:
    """What comes of a block that was left in some way and is followed by another one.

    The exits `taken` of the block lead behind the other one.
    """
    if way is None:
        return None if rest is None else rest()
    if not isinstance(way, Mixed) or rest is None or ON not in way.codes:
        return without(way, variables, *taken)

    def on() -> Way:
        decoded(ON, UNSET, frozenset([ON]), way.perhaps, variables)
        return rest()

    def kept() -> Way:
        exits = decoded(way.code, way.value, way.codes - {ON}, way.perhaps, variables)
        return without(exits, variables, *taken)

    return branch(op("equal")(way.code, ON), on, kept, variables)


def without(way: Way, variables: Variables, *taken: int) -> Way:
    """A way in which some exits have been taken: control falls through."""
    if not isinstance(way, Mixed):
        return None if coded(way)[0] in taken else way
    code, gone = way.code, way.codes & {*taken}
    if not gone:
        return way
    possible = (way.codes - gone) | {ON}
    if len(possible) > 1:
        for c in gone:
            code = op("where")(op("equal")(code, c), ON, code)
    through = gone | (way.codes & {ON})
    perhaps = {}
    for n, (v, bound) in way.perhaps.items():
        if through & bound and not through <= bound:  # where it is ON, it does not tell
            perhaps[n] = perhaps_of(way, n), bound - gone - {ON}
        else:
            perhaps[n] = v, (bound - gone - {ON}) | ({ON} if through <= bound else frozenset())
    return decoded(code, way.value, possible, perhaps, variables)


def result(way: Way) -> Any:
    """The result of a function whose body was left in this way."""
    way = way._replace(perhaps={}) if isinstance(way, Mixed) else way
    way = unwound(way, Variables(()))
    if isinstance(way, Return):
        return way.value
    if not isinstance(way, Mixed):
        return None
    falls = op("equal")(way.code, ON)
    return result(branch(falls, lambda: Return(None), lambda: Return(way.value), Variables(())))


__all__ = ["branch", "follow", "is_staged", "result", "truth", "truth_of", "without"]

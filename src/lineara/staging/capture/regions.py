"""Blocks in a `try`: where something may raise, the rest of the block is a definition of its own.

    y = math.sqrt(x)                        fails = x < 0
    z = y + 1                   becomes     way, z = cond(fails, raised, rest)

From a check on whose exception a handler around would catch, another definition is written; when
the block ends a `cond` chooses between that and what the variables were.  A raise is one more way
in which a block is left, with a code for each exception and line.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lineara.errors import LinearaError, StagingError
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.python.user_code import Reading, reading
from lineara.staging.capture.conds import Form, Written, decoded, perhaps_of, places_of
from lineara.staging.capture.containers import Name, Snapshot, refuse_changes
from lineara.staging.capture.list_items import Extents, Wanted, lengthen
from lineara.staging.capture.raises import (
    as_python_raises,
    check,
    is_raised,
    line_of,
    raised_by_python,
)
from lineara.staging.capture.records import Recording, record
from lineara.staging.capture.variables import (
    RAISED,
    UNSET,
    Mixed,
    Raised,
    Variables,
    Way,
    codes,
)
from lineara.staging.control_flow import tracing
from lineara.tape.swallowed_errors import met_by_traced, told

Codes = frozenset[int]


class Site(NamedTuple):
    """What raises an exception as the program runs: the exception, and the user's line."""

    error: BaseException
    line: str

    @property
    def key(self) -> Any:
        """What tells one from another."""
        args, kind = self.error.args, type(self.error)
        known = all([type(a) is str for a in args]) and self.error.__cause__ is None
        return (kind, args, self.line) if known else (kind, id(self.error), self.line)


class Leaving(BaseException):
    """A block is left by one of several exceptions, as a staged code says."""

    def __init__(self, way: Way) -> None:
        self.way = way


class _Split(NamedTuple):
    """The rest of a block, being written, and what there was when it began."""

    level: Any  # the definition that it is part of
    fails: Any
    way: Way  # where it is not done
    before: tuple[dict[Any, Any], list[Any]]
    snapshot: Snapshot
    extents: Extents
    rest: Recording


class Region:
    """A block in a try while it is written, with the splits in it."""

    variables: Variables
    blocks: Sequence[Any]

    def __init__(self, blocks: Sequence[Any], variables: Variables) -> None:
        self.blocks, self.variables = blocks, variables.with_entries()
        self.level: Any = tracing()
        self.splits: list[_Split] = []
        self.ended: list[Any] = []  # the definitions that were split: no form writes them again
        self.stacked: list[Any] = []  # lists, also of functions that are called in it

    def run(self, block: Callable[..., Way], *args: Any, inline: bool = False) -> Way:
        """Write the block; how it was left.

        One that is `inline`, in the definition around, leaves to Python what it always raises,
        unless that comes after what may raise: there it is one of the ways in which it is left.
        """
        try:
            return self._run(block, args, inline)
        except Wanted as wanted:
            if wanted.values.home not in self.ended:
                raise  # a form around writes its block again
            raise StagingError(
                "a try: after what may raise in it, a list that was made before is read or "
                "written where a staged number says, or gets staged values; do that once before "
                "the try"
            ) from None

    def _run(self, block: Callable[..., Way], args: tuple[Any, ...], inline: bool) -> Way:
        now = _reading()
        now.regions.append(self)
        try:
            way = block(*args)
        except Leaving as leaving:
            way = leaving.way
        except BaseException as error:
            e = as_python_raises(error)
            after = _is_python_s(e) if inline and self.splits else False
            if not after and (inline or not _is_caught(e, now)):
                self._abandon()
                raise
            way = Raised(code_of(e, line_of(e)))
        finally:
            now.regions.pop()
        return self._closed(way)

    def split(self, fails: Leaf, way: Way) -> None:
        """Let the rest of the block be done where the condition does not hold."""
        snapshot = Snapshot(*self.blocks)
        lists = {id(x): x for x in [*snapshot.stacked, *self.stacked]}
        before, extents = self.variables.all(), Extents(lists.values())
        rest = Recording(self.level, "rest", ())
        self.ended.append(self.level)
        self.splits.append(_Split(self.level, fails, way, before, snapshot, extents, rest))
        self.level = rest.level

    def _closed(self, way: Way) -> Way:
        """End the definitions of the rests; how the block is left."""
        try:
            while self.splits:
                way = self._joined(way)
        except BaseException:
            self._abandon()
            raise
        return way

    def _joined(self, way: Way) -> Way:
        """End the innermost rest, where the block is left so; how it is left with that joined."""
        s, variables = self.splits[-1], self.variables.with_entries()
        entries = s.snapshot.entries("try")
        variables.add(entries)
        values = variables.values()
        rest = s.rest.end(places_of(way, values))
        self.splits.pop()
        before = s.before[0] | {e: v for e, v in entries.items() if e not in s.before[0]}
        variables.reset((before, s.before[1]))
        changed, grown = s.snapshot.undo(), s.extents.end()
        refuse_changes([c for c in changed if isinstance(c[0], Name)], "try")
        start = variables.values()
        gone = record(s.level, "raise", (), lambda *_: places_of(s.way, start))
        lengthen(s.level, grown)
        self.level = s.level
        left = Written(gone, start, s.way, s.snapshot), Written(rest, values, way, s.snapshot)
        return Form(s.level, s.fails, left, before, variables).write()

    def _abandon(self) -> None:
        """Give up what is being written."""
        while self.splits:
            s = self.splits.pop()
            s.rest.abandon()
            s.snapshot.undo()
            s.extents.end()


def in_region(
    blocks: Sequence[Any], variables: Variables, block: Callable[..., Way], *args: Any
) -> Way:
    """Write a block, which is split where a try around it catches what is raised in it."""
    now = reading()
    if now is None or not now.tries:
        return block(*args)
    return Region(blocks, variables).run(block, *args)


def raised_in_try(fails: Any, error: BaseException, line: str) -> None:
    """Let an exception be raised where a condition holds, which a handler around may catch."""
    fails = op("any")(fails, axis=None, keepdims=False) if fails.shape else fails
    code = code_of(raised_by_python(error, line), line)
    _reading().regions[-1].split(fails, Raised(code))


def unwound(way: Way, variables: Variables) -> Way:
    """The way in which a statement is left, but by exceptions: these leave the block around."""
    raises = frozenset([c for c in codes(way) if c >= RAISED])
    if not raises:
        return way
    now = _reading()
    if isinstance(way, Raised):
        raise site_of(way.code).error
    assert isinstance(way, Mixed), "it has several codes"
    caught = frozenset([c for c in raises if catches(now, type(site_of(c).error))])
    if raises == way.codes:
        if caught != raises:
            raise StagingError(
                "every way through a block ends in an exception, which of several depends on "
                "staged values; let one of them be raised after it"
            )
        raise Leaving(way)
    for c in sorted(raises - caught):
        site = site_of(c)
        check(op("equal")(way.code, c), site.error, site.line)
    if caught:
        kept = variables.values()
        left = decoded(way.code, UNSET, caught, way.perhaps, variables)
        now.regions[-1].split(is_one_of(way.code, caught), settled(left, variables))
        variables.set(kept)
    return decoded(way.code, way.value, way.codes - raises, way.perhaps, variables)


def settled(way: Way, variables: Variables) -> Way:
    """A way of which the variables hold what they may hold, or no value."""
    if isinstance(way, Mixed) and way.perhaps:
        variables.set({n: perhaps_of(way, n) for n in way.perhaps})
        return way._replace(perhaps={})
    return way


def is_one_of(code: Any, several: Codes) -> Any:
    """Whether a code is one of several."""
    holds: Any = None
    for c in sorted(several):
        here = op("equal")(code, c)
        holds = here if holds is None else op("logical_or")(holds, here)
    return holds


# --- exceptions and their codes -------------------------------------------------------------------


def code_of(error: BaseException, line: str) -> int:
    """The code of the way in which a block is left by an exception."""
    sites, site = _reading().sites, Site(error, line)
    keys = [s.key for s in sites]
    if site.key not in keys:
        sites.append(site)
        return RAISED + len(keys)
    return RAISED + keys.index(site.key)


def site_of(code: int) -> Site:
    """The exception of a code."""
    site: Site = _reading().sites[code - RAISED]
    return site


def catches(now: Reading, kind: type[BaseException]) -> bool:
    """Whether a try around catches exceptions of a class."""
    return any([t.catches(kind) for t in now.tries])


def _is_caught(error: BaseException, now: Reading) -> bool:
    """Whether an exception is one of the user's program that a handler around it catches."""
    if isinstance(error, LinearaError) or not isinstance(error, Exception):
        return False
    return catches(now, type(error)) and is_raised(error, natural=True)


def _is_python_s(error: BaseException) -> bool:
    """Whether plain Python raises an exception, too, where it is one."""
    if isinstance(error, LinearaError) or not isinstance(error, Exception):
        return False
    if not is_raised(error) and met_by_traced(error):
        raise told(error) from error
    return True


def _reading() -> Reading:
    now = reading()
    assert now is not None, "tries are written where functions are read"
    return now

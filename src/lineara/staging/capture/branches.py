"""Branches: blocks of which a staged condition takes one become definitions that a `cond` calls."""

import dis
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError, StagingError, describe_line
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.linear_a.branches import Cond
from lineara.ops.value_checks import CHECKED, checked
from lineara.python.function_copies import is_user_code
from lineara.staging.capture.choices import OneOf, asked, knowing, told_by
from lineara.staging.capture.columns import (
    Column,
    Joined,
    join,
    or_unset,
    unset_where,
    with_choices,
)
from lineara.staging.capture.containers import (
    Name,
    Snapshot,
    doubt,
    in_use,
    refuse_changes,
)
from lineara.staging.capture.joins import held
from lineara.staging.capture.list_items import Extents, Wanted, is_staged, lengthen, longest
from lineara.staging.capture.lists import Stacked
from lineara.staging.capture.records import Record, change, mark_aliases, record, together
from lineara.staging.capture.variables import (
    ON,
    UNSET,
    Mixed,
    Place,
    Return,
    Variables,
    Way,
    coded,
    codes,
    decoded,
    said,
)
from lineara.staging.control_flow import Unknown, endless, tracing, written
from lineara.staging.staged_level import Seen, StagedLevel
from lineara.staging.texts import raises
from lineara.tape.node import Traced

WHERE = "in the two branches of a staged condition"


def truth(v: Any) -> Any:
    """Whether a value is true: a bool, or a staged one."""
    if type(v) is OneOf:
        return asked(v, truth)
    if isinstance(v, Stacked):
        v = v.length
    if isinstance(v, Traced):
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


def level_of_trace() -> StagedLevel:
    """The definition that is being written."""
    level = tracing()
    if level is None:
        raise StagingError(
            "a branch or a loop depends on a staged value within a differentiation in a captured "
            "function; write it with lineara.cond, lineara.while_loop or lineara.scan there"
        )
    return level


def branch(
    test: object, then: Callable[[], Way], orelse: Callable[[], Way], variables: Variables
) -> Way:
    """One of two blocks; what they leave in variables and in containers is joined."""
    while True:
        try:
            return _branch(test, then, orelse, variables)
        except Wanted as wanted:
            wanted.stack(level_of_trace())


def _branch(
    test: object, then: Callable[[], Way], orelse: Callable[[], Way], variables: Variables
) -> Way:
    """The branch, unless a list is to be stacked before it."""
    level, both, told = level_of_trace(), (then, orelse), told_by(test)
    variables = variables.with_entries()
    before = variables.all()
    blocks: dict[Callable[[], Way], _Written] = {}
    grown: dict[Callable[[], Way], Any] = {}
    todo = [*both]
    while todo:
        block = todo.pop(0)
        known = len(variables.cells)
        snapshot = Snapshot(block)
        extents = Extents(snapshot.stacked)
        error: _Raised | None = None  # what the block raises, whatever the values
        try:
            with knowing(told.holds if block is then else told.fails, variables) as narrowed:
                one = _Written.of(level, block, variables, before[0], snapshot)
            if isinstance(one, _Raised):
                error = one
            else:
                blocks[block] = one._replace(narrowed=narrowed)
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
        if error is None:  # what it changed of containers are entries
            changed = [c for c in changed if isinstance(c[0], Name)]
        refuse_changes(changed, "branch")
        if error is not None:
            error.write(level, test, block is then)
            with knowing(told.fails if block is then else told.holds, variables):
                return (orelse if block is then else then)()
        if block is orelse and then in blocks and len(variables.cells) > known:
            todo = [then]  # with what the other one changes
    lengthen(level, longest(grown.values()))
    written = [blocks[b] for b in both if b in blocks]
    return _Form(level, test, written, before[0], variables).write()


class _Written(NamedTuple):
    """A block of a branch as it was traced."""

    record: Record
    values: dict[Any, Any]  # what the places hold at its end
    left: Way
    snapshot: Snapshot  # what it could reach before
    narrowed: Mapping[Place, Any] = MappingProxyType({})  # what choices held that it knew

    def leaves(self, n: Place, before: Leaf) -> bool:
        """Whether a place holds the same value at the end of the block as at its beginning."""
        value = self.values[n]
        return value is before or (n in self.narrowed and value is self.narrowed[n])

    @classmethod
    def of(
        cls, level: StagedLevel, block: Callable[[], Way], variables: Variables,
        before: dict[Any, Any], snapshot: Snapshot,
    ) -> "_Written | _Raised":  # fmt: skip
        """Write a block; the entries that it changes are places of both.  Or what it raises."""
        left: list[Way] = []
        raised: list[BaseException] = []

        def run(inner: StagedLevel, nodes: list[Any]) -> dict[Any, Any]:
            try:
                way = block()
            except BaseException as e:
                if not _is_raised(e):
                    raise
                raised.append(e)
                if not _is_simple(e):
                    raises(inner, True, e, _line(e))
                return {}
            left.append(way)
            entries = snapshot.entries("branch")
            variables.add(entries)
            before.update({e: v for e, v in entries.items() if e not in before})
            code, value = coded(way)
            columns = {"code": code, "value": value}
            columns |= {(n,): v for n, v in variables.values().items()}
            if isinstance(way, Mixed):
                columns |= {(n,): v for n, (v, _) in way.perhaps.items()}
                columns |= {("tagged", n): perhaps_of(way, n) for n in way.perhaps}
            return columns

        written = record(level, "branch", (), run)
        if raised:
            return _Raised(raised[0], written)
        return cls(written, variables.values(), left[0], snapshot)


class _Raised(NamedTuple):
    """A block of a branch that ends in an exception, whatever the values."""

    error: BaseException
    record: Record

    def write(self, level: StagedLevel, test: Any, holds: bool) -> None:
        """Write what raises it where the condition holds, or where it does not.

        What the block does before that, and what it calculates for the exception, is done there.
        """
        bindings = self.record.out.bindings
        if _is_simple(self.error) and not any(map(level.shared.stays, bindings)):
            check(test if holds else op("logical_not")(test), self.error, _line(self.error))
            return
        none = record(level, "branch", (), lambda inner, nodes: {})
        both = [self.record, none] if holds else [none, self.record]
        around, each = together(level, both)
        pairs = zip(both, each, strict=True)
        level.add(*[r.define(around, mine, (), (), False) for r, mine in pairs])
        args = [level.as_box(test), *around]
        written(level, Cond(tuple([b.var for b in args]), tuple([r.name for r in both])), ())


def check(fails: Any, error: BaseException, line: str) -> None:
    """Write what raises an exception of the user's as the program runs."""
    if _is_simple(error):
        kind: Any = type(error)
        checked(fails, fails, kind, *error.args or ("",), line=line)
    else:
        raises(level_of_trace(), fails, error, line)


def _is_simple(error: BaseException) -> bool:
    """Whether an exception is one of Python's with a text alone."""
    said = len(error.args) < 2 and all([type(a) is str for a in error.args])
    return type(error) in CHECKED and said and error.__cause__ is error.__context__ is None


def raised_by_python(error: BaseException, line: str) -> BaseException:
    """An exception that Python raises in the user's code where a form says so, at that line."""
    vars(error)[_LINE] = line
    error.add_note(f"at {line}")
    return error


_LINE = "__lineara_line__"


def _is_raised(error: BaseException) -> bool:
    """Whether the user's code has raised an exception, by `raise` or as forms say."""
    if isinstance(error, LinearaError) or _LINE in vars(error):
        return not isinstance(error, LinearaError)
    trace = _innermost(error)
    code = trace.tb_frame.f_code
    return is_user_code(code.co_filename) and code.co_code[trace.tb_lasti] == _RAISE


_RAISE = dis.opmap["RAISE_VARARGS"]


def _innermost(error: BaseException) -> TracebackType:
    """The innermost traceback of an exception."""
    trace = error.__traceback__
    assert trace is not None, "it was raised"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _line(error: BaseException) -> str:
    """The line that has raised an exception."""
    if _LINE in vars(error):
        return str(vars(error)[_LINE])
    trace = _innermost(error)
    code = trace.tb_frame.f_code
    return describe_line(code.co_filename, trace.tb_lineno, code.co_name)


class _Form:
    """A `cond` under construction, from the records of its two blocks."""

    def __init__(
        self, level: StagedLevel, test: Any, blocks: Sequence[_Written], before: dict[Any, Any],
        variables: Variables,
    ) -> None:  # fmt: skip
        self.level, self.test, self.blocks = level, test, blocks
        self.records = [b.record for b in blocks]
        self.ways, self.left = [b.values for b in blocks], [b.left for b in blocks]
        self.before, self.variables = before, variables

    def write(self) -> Way:
        """Write the form; variables, entries and arrays then hold its results."""
        perhaps = {n: None for w in self.left if isinstance(w, Mixed) for n in w.perhaps}
        names = [
            n for n, v in self.before.items()
            if n in perhaps or not all([b.leaves(n, v) for b in self.blocks])
        ]  # fmt: skip
        some: dict[Any, frozenset[int]] = {}  # on which ways those have a value that may have none
        joined: dict[Any, Joined] = {"code": self._join("code", "the way out")}
        values = [r.columns["value"] for r in self.records]
        if any([c.tree is not UNSET for c in values]):
            joined["value"] = self._join("value", "what is returned", values)
        kept: dict[Any, Any] = {}
        for n in names:
            columns = [r.columns[n,] for r in self.records]
            trees = [c.tree for c in columns]
            bound = self._bound(n)
            if bound is not None and not bound:
                for r in self.records:
                    r.columns[n,] = or_unset(r.columns.get(("tagged", n), r.columns[n,]))
                joined[n,] = self._join((n,), said(n))
            elif bound is not None:
                kept[n], some[n] = UNSET, bound
                joined[n,] = self._join((n,), said(n))
            elif all([t is trees[0] for t in trees]):
                kept[n] = trees[0]
            else:
                joined[n,] = self._join((n,), said(n))
        cells = list(dict.fromkeys([c for r in self.records for c in r.changed]))
        nodes = self._written(joined, cells)
        taken = iter(nodes)
        given = {key: j.tree([next(taken) for _ in j.results]) for key, j in joined.items()}
        for cell, content in zip(cells, taken, strict=True):
            change(self.level, cell, content)
        given_to = {key[0]: v for key, v in given.items() if type(key) is tuple}
        self.variables.set(kept | {n: v for n, v in given_to.items() if n not in some})
        self._mark(joined, nodes)
        self._doubt(given)
        possible = frozenset[int]().union(*map(codes, self.left))
        value = given.get("value", UNSET)
        perhaps = {n: (given_to[n], bound) for n, bound in some.items()}
        return decoded(given["code"], value, possible, perhaps, self.variables)

    def _doubt(self, given: dict[Any, Any]) -> None:
        """Refuse later changes of containers that are one object in Python and two here."""
        changed = {key: held(tree) for key, tree in given.items()}
        if any(changed.values()):
            before = [x for v in self.before.values() for x in held(v)]
            for b in self.blocks:
                old = in_use(self.level, b.snapshot, before, b.record.columns.values())
                for key, containers in changed.items():
                    several = [x for x in b.record.columns[key].containers if id(x) in old]
                    doubt(self.level, [*several, *(containers if several else ())])

    def _bound(self, n: Any) -> frozenset[int] | None:
        """The codes with which a variable has a value, where it may have none; None if it has one.

        None of them where the code does not tell whether it has one.
        """
        bound, unbound = set[int](), set[int]()
        for way, values in zip(self.left, self.ways, strict=True):
            some = way.perhaps.get(n) if isinstance(way, Mixed) else None
            has = codes(way) if values[n] is not UNSET else some[1] if some else frozenset()
            bound |= has
            unbound |= codes(way) - has
        if not unbound:
            return None
        return frozenset() if bound & unbound else frozenset(bound)

    def _join(self, key: object, what: str, columns: list[Column] | None = None) -> Joined:
        columns = columns or [r.columns[key] for r in self.records]
        full = [c for c in columns if c.tree is not UNSET]
        if len(full) < len(columns):  # of a return that the other branch does not make
            columns = [full[0] if c.tree is UNSET else c for c in columns]
        else:
            columns = with_choices(columns)
            for r, c in zip(self.records, columns, strict=True):
                r.columns[key] = c
        one = join(what, columns, WHERE)
        if len(full) < len(columns):
            likes = next(c.seen for c in full)
            differs = [like if isinstance(v, Traced) else None for like, v in
                       zip(likes, full[0].leaves, strict=True)]  # fmt: skip
            one = one._replace(likes=differs)
        return one

    def _written(self, joined: dict[Any, Joined], cells: list[Any]) -> list[Any]:
        """The results of the form: the leaves of the joined values, then the storage."""
        records, results = [], []
        for r in self.records:
            variables = []
            for key, j in joined.items():
                entered = r.columns[key].entered or [None] * len(j.likes)
                for v, like in zip(entered, j.likes, strict=True):
                    if like is not None:
                        v = np.zeros(like.type.shape, like.type.dtype) if v is None else v
                        variables.append(r.variable(v, like.type))
            variables += [self._content(r, cell).var for cell in cells]
            results.append(variables)
            records.append(r.pruned(variables))
        around, each = together(self.level, records)
        pairs = zip(records, each, results, strict=True)
        self.level.add(
            *[r.define(around, mine, variables, (), False) for r, mine, variables in pairs]
        )
        args = [self.level.as_box(self.test), *around]
        leaf = Cond(tuple([b.var for b in args]), tuple([r.name for r in records]))
        likes = [like for j in joined.values() for like in j.results]
        likes += [Seen(type_of(cell.content), cell.lay) for cell in cells]
        return written(self.level, leaf, likes)

    def _content(self, r: Record, cell: Any) -> Any:
        """The content of a storage at the end of a block, whether or not the block wrote it."""
        if cell in r.changed:
            return r.changed[cell]
        cell.here()
        outer = cell.boxed()
        for a, v in r.mentions:
            if self.level.as_box(a).var is outer.var:
                return r.out.box(v)
        v = r.out.fresh("x", outer.var.type)
        r.mentions.append((self.level.still(outer, cell.lay), v))
        return r.out.box(v)

    def _mark(self, joined: dict[Any, Joined], nodes: list[Any]) -> None:
        places = [(key, i) for key, j in joined.items() for i, t in enumerate(j.likes) if t]
        mark_aliases(nodes, places, self.records)


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
            perhaps[n] = perhaps_of(way, n), possible
        else:
            perhaps[n] = v, (bound - gone - {ON}) | ({ON} if through <= bound else frozenset())
    return decoded(code, way.value, possible, perhaps, variables)


def perhaps_of(way: Mixed, n: str) -> OneOf:
    """A variable that has a value on some of the ways in which a block was left."""
    value, bound = way.perhaps[n]
    fails: Any = None
    for c in sorted(way.codes - bound):
        here = op("equal")(way.code, c)
        fails = here if fails is None else op("logical_or")(fails, here)
    return unset_where(fails, value)


def result(way: Way) -> Any:
    """The result of a function whose body was left in this way."""
    if isinstance(way, Return):
        return way.value
    if not isinstance(way, Mixed):
        return None
    falls = op("equal")(way.code, ON)
    return result(branch(falls, lambda: Return(None), lambda: Return(way.value), Variables(())))


__all__ = [
    "branch",
    "check",
    "follow",
    "is_staged",
    "level_of_trace",
    "result",
    "truth",
    "truth_of",
]
__all__ += ["without"]

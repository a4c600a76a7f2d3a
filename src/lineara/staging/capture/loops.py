"""Loops: a block that is repeated becomes the body of a `scan` or a `while` of the program.

The body is written with what it rebinds and the arrays that it writes as carries, again and again
until it hands on what it was given.  A loop that cannot be written so is refused, and its caller
may run its rounds in Python.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import MutationError, StagingError, StructureError
from lineara.facts.hints import Leaf, Shaped
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.rules_as_text import Emitter, closed
from lineara.staging.capture.branches import branch, is_staged, level_of_trace, truth, without
from lineara.staging.capture.containers import Snapshot, refuse_changes
from lineara.staging.capture.records import (
    Column,
    Record,
    change,
    is_leaf,
    join,
    mark_aliases,
    record,
    same_constant,
    together,
)
from lineara.staging.capture.variables import (
    CONTINUED,
    ON,
    UNSET,
    Mixed,
    Return,
    Variables,
    Way,
    coded,
    codes,
    contents,
    decoded,
)
from lineara.staging.control_flow import INTEGER, joined, written
from lineara.staging.staged_arrays import Cell, StagedArray
from lineara.staging.staged_level import Seen, seen
from lineara.tape.levels import threads
from lineara.trees import Structure, flatten, unflatten

WHERE = "before and after a round of a staged loop"
TRIALS = 12  # how often the body is written until its carries are what they are
FLAG = Seen(ArrayType((), np.dtype(bool)))
COUNT = Seen(INTEGER, None, True)


class Slot(NamedTuple):
    """A variable that a loop carries: its containers, constants, and what is known of the rest."""

    structure: Structure
    leaves: list[Any]  # as the loop began
    likes: list[Seen | None]  # None for constants

    def tree(self, nodes: Any) -> Any:
        """The variable with these in place of what changes."""
        pairs = zip(self.leaves, self.likes, strict=True)
        return unflatten(self.structure, [v if t is None else next(nodes) for v, t in pairs])

    @property
    def carried(self) -> list[Seen]:
        """What is known of what changes."""
        return [t for t in self.likes if t is not None]


class Loop:
    """A loop as it is put together.

    body      the block; with `at` it takes the item of a round
    at        gives the item of a round whose number is staged
    rounds    how many rounds there are, a number or a staged one; None where `test` decides
    test      the condition of a round
    """

    def __init__(
        self, variables: Variables, body: Callable[..., Way], at: Callable[[Any], Any] | None,
        rounds: object, test: Callable[[], Any] | None, go: object,
    ) -> None:  # fmt: skip
        self.level = level_of_trace()
        self.variables, self.body, self.at = variables, body, at
        self.rounds, self.test, self.go = rounds, test, go
        self.alone = {n for n, cell in variables.cells.items() if _is_alone(cell)}
        self.all = variables.all()
        self.before = self.all[0]
        self.slots: dict[str, Slot] = {}
        self.cells: list[Cell] = []
        self._begin_as_before()
        self.written: set[str] = set()  # carried variables whose arrays the body writes
        self.left = False  # whether a round may be left by a break or a return
        self.codes = frozenset[int]()  # how it may be left
        self.perhaps: Any = {}  # variables that have a value on some of these ways
        self.endless = False  # whether the condition holds whatever the values
        self.asked: Any = None  # what the condition gave at the end of a round

    def write(self) -> Way:
        """Write the loop, once its carries are known; how it was left."""
        for _ in range(TRIALS):
            mark = self.level.mark()
            snapshot = Snapshot(self.body, self.test)
            try:
                body = record(self.level, "body", self._formals(), self._round)
                ends = self.variables.values()
            finally:
                self.variables.reset(self.all)
                changed = snapshot.undo()
            refuse_changes(changed, "loop")
            if self._settles(body, ends):
                self._remember()
                return self._write(body, ends)
            self.level.back_to(mark)
        raise StagingError("a loop: what it carries from round to round never becomes the same")

    def _begin_as_before(self) -> None:
        """Begin with what this loop carried when it was written last, where it may do so now."""
        known = threads.open[0].carries.get(self._key)  # type: ignore[union-attr]
        if known is None:
            return
        likes, stored = known
        for n, was in likes.items():
            leaves, structure = flatten(self.before.get(n, UNSET))
            now = [seen(v) if is_leaf(v) else None for v in leaves]
            if len(was) == len(now) and all(map(_may_be, now, was)):
                pairs = zip(now, was, strict=True)
                kept = [joined([a, b]) if a and b else None for a, b in pairs]
                self.slots[n] = Slot(structure, leaves, kept)
        self.cells += [c for n, c in _stores(self.body).items() if n in stored and n not in likes]

    @property
    def _key(self) -> Any:
        return getattr(self.body, "__code__", None)

    def _remember(self) -> None:
        stored = [n for n, c in _stores(self.body).items() if c in self.cells]
        likes = {n: s.likes for n, s in self.slots.items()}
        threads.open[0].carries[self._key] = likes, stored  # type: ignore[union-attr]

    def _formals(self) -> list[tuple[str, Seen]]:
        formals = [] if self.at is None else [("i", COUNT)]
        formals += [(n, t) for n, s in self.slots.items() for t in s.carried]
        return formals + [("a", _of_cell(cell)) for cell in self.cells]

    def _round(self, level: Any, nodes: list[Any]) -> dict[Any, Any]:
        """One round, from the formals to what it hands on."""
        left = iter(nodes)
        i = None if self.at is None else next(left)
        start = {n: s.tree(left) for n, s in self.slots.items()}
        self.variables.set(start)
        for cell, node in zip(self.cells, left, strict=True):
            level.take(cell)
            cell.content = node.now().v
            cell.version += 1
        arrays = [(n, v) for n, t in start.items() for v in flatten(t)[0]]
        way = self.body(*([] if self.at is None else [self.at(i)]))
        on: Any = True
        way = without(way, self.variables, CONTINUED)
        code, value = coded(way)
        if isinstance(way, Mixed) and ON in way.codes:
            on = op("equal")(code, ON)
        elif way is not None:
            raise StagingError("a loop: every round is left by a break or a return")
        self.left, self.codes, self.endless = on is not True, codes(way), False
        self.perhaps = way.perhaps if isinstance(way, Mixed) else {}
        ends = self.variables.values()
        if self.test is not None:
            go: Any = truth(self.test()) if on is True else self._asks(on)
        elif type(self.rounds) is int and on is True:
            go = True
        else:
            more = op("less")(op("add")(i, 1), self.rounds)
            go = more if on is True else op("logical_and")(on, more)
        self.asked = go
        self.written = {
            n for n, v in arrays if isinstance(v, StagedArray) and v.w.buffer.version > 0
        }
        if self.test is not None:
            ends = self.variables.values()
        columns: dict[Any, Any] = {(n,): v for n, v in ends.items()}
        columns |= {(n,): v for n, (v, _) in self.perhaps.items()}
        if i is not None:
            columns["i"] = op("add")(i, 1)
        if self.left:
            columns |= {"code": code, "value": value}
        if not (type(self.rounds) is int and not self.left):
            columns["go"] = go
        self.start = start
        return columns

    def _asks(self, on: object) -> Any:
        """Whether there is one more round, where the condition is asked only if none is left."""

        def ask() -> Way:
            assert self.test is not None, "a loop of rounds has no condition"
            again = truth(self.test())
            self.endless = again is True
            return Return(again)

        way = branch(on, ask, lambda: Return(False), self.variables)
        assert isinstance(way, Return), "both blocks return"
        return way.value

    def _settles(self, body: Record, ends: dict[str, Any]) -> bool:
        """Whether the body hands on what it was given; what it is given from now on."""
        slots, done = dict(self.slots), True
        for n, begin in self.before.items():
            start = self.start.get(n, begin)
            end = body.columns[n,]
            if end.tree is start or begin is UNSET:
                continue
            if end.tree is UNSET:
                raise StructureError(f"the variable {n!r} is deleted in a staged loop")
            slot = self._slot(n, begin, end)
            if slot.carried and not _alike(slot, self.slots.get(n)):
                slots[n], done = slot, False
        new = [cell for cell in body.changed if cell not in self.cells]
        if new:
            self.cells += new
            done = False
        self.slots = slots
        return done

    def _slot(self, n: str, begin: Shaped, end: Column) -> Slot:
        leaves, structure = flatten(begin)
        known = self.slots.get(n)
        likes = [seen(v) if is_leaf(v) else None for v in leaves]
        first = Column(begin, structure, leaves, [], likes, [])
        columns = [first, end]
        if known is not None:
            columns.append(Column(begin, structure, leaves, [], known.likes, []))
            columns[2] = columns[2]._replace(
                seen=[t or s for t, s in zip(known.likes, likes, strict=True)]
            )
        joined = join(f"the variable {n!r}", columns, WHERE)
        fixed = [
            t if known is None or k is None or t is not None else k
            for t, k in zip(joined.likes, known.likes if known else joined.likes, strict=True)
        ]
        return Slot(structure, leaves, fixed)

    # --- writing the form -------------------------------------------------------------------------

    def _write(self, body: Record, ends: dict[str, Any]) -> Way:
        if self.test is not None and not is_staged(self.asked) and not self.left:
            raise StagingError("a loop: its condition does not depend on staged values")
        self._refuse_aliases(body)
        level, scan = self.level, type(self.rounds) is int and not self.left
        born = {
            n: body.columns[n,]
            for n, v in self.before.items()
            if v is UNSET and body.columns[n,].tree is not UNSET and (self._runs() or self.left)
        }
        initial: list[Any] = [] if self.at is None else [level.as_box(0)]
        likes: list[Seen] = [] if self.at is None else [COUNT]
        results: list[ir.Var] = []
        if self.at is not None:
            results.append(body.variable(body.columns["i"].entered[0], INTEGER))
        for n, s in self.slots.items():
            end = body.columns[n,]
            for v, e, t, after in zip(s.leaves, end.entered, s.likes, end.seen, strict=True):
                if t is not None:
                    initial.append(_converted(level, v, t))
                    sure = after if self._runs() and after is not None else t
                    likes.append(t._replace(lay=sure.lay, weak=sure.weak))
                    results.append(body.variable(e, t.type))
        for cell in self.cells:
            cell.here()
            initial.append(cell.boxed())
            likes.append(_of_cell(cell))
            results.append(body.changed[cell].var)
        formals, extra = body.formals, []

        def also(like: Seen, value: Leaf, at_first: object) -> None:
            """One more carry, which no round reads."""
            extra.append(body.out.fresh("z", like.type))
            initial.append(_converted(level, at_first, like))
            likes.append(like)
            results.append(body.variable(value, like.type))

        bearing: list[tuple[str, list[Seen | None]]] = []
        for n, column in born.items():
            kept = [t if not _is_constant(v) else None for v, t in
                    zip(column.leaves, column.seen, strict=True)]  # fmt: skip
            bearing.append((n, kept))
            for e, t in zip(column.entered, kept, strict=True):
                if t is not None:
                    also(t, e, np.zeros(t.type.shape, t.type.dtype))
        values: list[Seen | None] = []
        if self.left:
            also(COUNT, body.columns["code"].entered[0], ON)
            column = body.columns["value"]
            values = [t if not _is_constant(v) else None for v, t in
                      zip(column.leaves, column.seen, strict=True)]  # fmt: skip
            for e, t in zip(column.entered, values, strict=True):
                if t is not None:
                    also(t, e, np.zeros(t.type.shape, t.type.dtype))
        if not scan:
            also(FLAG, body.columns["go"].entered[0], self.go)
        nodes = self._form(body, scan, [*formals, *extra], initial, likes, results)
        return self._leave(body, nodes, born, bearing, values, scan)

    def _runs(self) -> bool:
        """Whether there is a first round, which is what a variable without a value waits for."""
        return type(self.rounds) is int or self.go is True

    def _form(
        self, body: Record, scan: bool, formals: list[ir.Var], initial: list[Any],
        likes: list[Seen], results: list[ir.Var],
    ) -> list[Any]:  # fmt: skip
        level = self.level
        body = body.pruned(results)
        around, (mine,) = together(level, [body])
        level.add(body.define(around, mine, results, formals, True))
        args = tuple([b.var for b in (*around, *initial)])
        if scan:
            leaf: Any = Scan(args, (body.name,), self.rounds, "fwd", len(around), len(initial), 0)
        else:
            name = level.name_of_definition("condition")
            level.add(_last(name, [b.var.type for b in (*around, *initial)]))
            leaf = While(args, (name, body.name), len(around))
        return written(level, leaf, likes)

    def _leave(
        self, body: Record, nodes: list[Any], born: dict[str, Column], bearing: list[Any],
        values: list[Any], scan: bool,
    ) -> Way:  # fmt: skip
        left = iter(nodes if self.at is None else nodes[1:])
        places = [
            ((n,), i) for n, s in self.slots.items() for i, t in enumerate(s.likes) if t is not None
        ]
        mark_aliases(nodes if self.at is None else nodes[1:], places, [body])
        bindings = {n: s.tree(left) for n, s in self.slots.items()}
        for cell in self.cells:
            change(self.level, cell, next(left))
        perhaps: dict[str, Any] = {}
        for n, kept in bearing:
            c = born[n]
            assert c.structure is not None, "it has a value"
            pairs = zip(c.leaves, kept, strict=True)
            leaves = [v if t is None else next(left) for v, t in pairs]
            bound = self.perhaps[n][1] if n in self.perhaps else self.codes
            bound -= frozenset() if self._runs() and n not in self.perhaps else {ON}
            perhaps[n] = unflatten(c.structure, leaves), bound
        for n, v in self.before.items():  # what the body binds to what it found
            end = body.columns[n,]
            if v is not UNSET and n not in bindings and end.tree is not v:
                bindings[n] = v
        self.variables.set(bindings)
        if self.endless and self.go is True:  # it goes on until it is left
            self.codes -= {ON}
        if not self.left:
            return decoded(ON, UNSET, self.codes, perhaps, self.variables)
        code, column = next(left), body.columns["value"]
        if column.structure is None:
            return decoded(code, UNSET, self.codes, perhaps, self.variables)
        pairs = zip(column.leaves, values, strict=True)
        leaves = [v if t is None else next(left) for v, t in pairs]
        value = unflatten(column.structure, leaves)
        return decoded(code, value, self.codes, perhaps, self.variables)

    def _refuse_aliases(self, body: Record) -> None:
        """Refuse a loop that writes arrays which are the same in one round and not in another."""
        carried = [
            (n, i) for n, s in self.slots.items() for i, t in enumerate(s.likes)
            if t is not None and t.type.shape
        ]  # fmt: skip
        if not carried or not (self.written or self.cells):
            return
        stores: list[int] = []
        for n, i in carried:
            leaf, alias = body.columns[n,].leaves[i], body.columns[n,].aliases[i]
            if alias is not None or (n in self.written and n not in self.alone):
                raise _doubt(n)
            stores.append(id(leaf.w.buffer) if isinstance(leaf, StagedArray) else id(leaf))
        if len({*stores}) < len(stores):
            raise _doubt(carried[0][0])


def _may_be(now: Seen | None, was: Seen | None) -> bool:
    """Whether a leaf may be carried as one of the same place was."""
    return (now is None) <= (was is None) and (was is None or now.type.shape == was.type.shape)  # type: ignore[union-attr]


def _stores(block: Callable[..., Any]) -> dict[str, Cell]:
    """The storage of the arrays that a block's variables hold."""
    cells = zip(block.__code__.co_freevars, block.__closure__ or (), strict=True)
    values = {name: contents(cell) for name, cell in cells}
    return {n: v.w.buffer for n, v in values.items() if isinstance(v, StagedArray)}


def _doubt(n: str) -> MutationError:
    return MutationError(
        f"a staged loop writes into an array, and the variable {n!r} holds another array from "
        "round to round, which may be one that is written under another name; bind a copy, "
        "a.copy()"
    )


def _alike(a: Slot, b: Slot | None) -> bool:
    if b is None:
        return False
    pairs = zip(a.likes, b.likes, strict=True)
    return all([s == t and (s is None or type(s.lay) is type(t.lay)) for s, t in pairs])  # type: ignore[union-attr]


def _is_alone(cell: Any) -> bool:
    """Whether nobody but this variable holds an array that it holds."""
    try:
        value = cell.cell_contents
    except ValueError:
        return True
    if not isinstance(value, StagedArray):
        return False
    return sys.getrefcount(value) <= 3 and sys.getrefcount(value.w.buffer) <= 2


def _is_constant(v: Leaf) -> bool:
    return not is_leaf(v) or (same_constant(v, v) and not isinstance(v, np.ndarray))


def _of_cell(cell: Cell) -> Seen:
    return Seen(type_of(cell.content), cell.lay)


def _converted(level: Any, v: Any, like: Seen) -> Any:
    """A value as a variable of a type."""
    if not isinstance(v, np.ndarray) and not is_staged(v):
        v = like.type.dtype.type(v.now() if hasattr(v, "now") else v)
    box = level.as_box(v)
    return box if box.var.type == like.type else op("astype")(box, dtype=like.type.dtype)


def _last(name: str, types: list[Any]) -> ir.Def:
    """A definition that gives the last of its arguments."""
    out = Emitter(ir.Names())
    params = [out.fresh("c", t) for t in types]
    body = ir.Block(tuple(closed((), params, params[-1:])), ir.Ret((params[-1],)))
    return ir.Def(name, tuple(params), (types[-1],), (), body)

"""Loops: a block that is repeated becomes the body of a `scan` or a `while` of the program.

The body is written with what it rebinds and the arrays that it writes as carries, again and again
until it hands on what it was given.  It begins with what its source says that it changes, so that
once is often enough; where that turns out to be too much, it begins with nothing.  A loop that
cannot be written so is refused, and its caller may run its rounds in Python.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lineara.errors import MutationError, StagingError, StructureError, describe_line
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.loops import While
from lineara.linear_a.rules_as_text import Emitter, closed
from lineara.python.user_code import Reading, reading
from lineara.staging.capture.branches import branch, is_staged, truth_of, without
from lineara.staging.capture.choices import OneOf, flattened, is_perhaps
from lineara.staging.capture.columns import (
    MISSING,
    Column,
    Joined,
    join,
    or_unset,
    with_choices,
)
from lineara.staging.capture.conds import decoded, perhaps_of
from lineara.staging.capture.containers import Name, Snapshot, doubt, in_use, refuse_changes
from lineara.staging.capture.handed_on import HandedOn, Part
from lineara.staging.capture.joins import held, is_leaf, same_constant
from lineara.staging.capture.list_items import Count, Extents, Wanted, lengthen
from lineara.staging.capture.lists import List, Row, TogetherWanted
from lineara.staging.capture.raises import level_of_trace
from lineara.staging.capture.records import Record, change, mark_aliases, record, together
from lineara.staging.capture.regions import in_region
from lineara.staging.capture.variables import (
    CONTINUED,
    ON,
    UNSET,
    Entry,
    Mixed,
    Place,
    Return,
    Variables,
    Way,
    coded,
    codes,
    contents,
    said,
)
from lineara.staging.control_flow import INTEGER, joined, scan_of, written
from lineara.staging.staged_arrays import Cell, StagedArray, relatives, store_of
from lineara.staging.staged_level import FLOAT64, Perhaps, Seen, StagedLevel, seen, written_in_list
from lineara.tape.levels import threads
from lineara.tape.node import Traced

WHERE = "before and after a round of a staged loop"
TRIALS = 12  # how often the body is written until its carries are what they are
FLAG = Seen(ArrayType((), np.dtype(bool)))
COUNT = Seen(INTEGER, None, True)


class Loop:
    """A loop as it is put together.

    body      the block; with `at` it takes the item of a round
    at        gives the item of a round whose number is staged
    rounds    how many rounds there are, a number or a staged one; None where `test` decides
    test      the condition of a round
    """

    level: StagedLevel
    reading: Reading
    variables: Variables
    body: Callable[..., Way]
    at: Callable[[Any], Any] | None
    rounds: object
    test: Callable[[], Any] | None
    go: object

    def __init__(
        self, variables: Variables, body: Callable[..., Way], at: Callable[[Any], Any] | None,
        rounds: object, test: Callable[[], Any] | None, go: object,
    ) -> None:  # fmt: skip
        now = reading()
        assert now is not None, "loops are written where functions are read"
        self.level, self.reading = level_of_trace(), now
        self.variables, self.body, self.at = variables.with_entries(), body, at
        self.rounds, self.test, self.go = rounds, test, go
        self.alone: set[Any] = {n for n, cell in variables.cells.items() if _is_alone(cell)}
        self.all: tuple[dict[Any, Any], list[Any]] = self.variables.all()
        self.before: dict[Any, Any] = self.all[0]
        self.slots: dict[Place, Joined] = {}  # the places that it carries, as it began
        self.cells: list[Cell] = []
        self.steps: dict[Entry, int] = {}  # by how much lists grow in every round
        self.lengths: dict[Entry, tuple[Count, Count]] = {}  # of lists, before and after a round
        self.guess: object = object()  # that a number of Python's comes to be of either kind
        self.guessed: tuple[list[str], list[Cell]] = [], []  # what it carries by its source alone
        self.idle: list[Cell] = []  # arrays that it carries and the round did not write
        self.left: bool = False  # whether a round may be left by a break or a return
        self.codes: frozenset[int] = frozenset[int]()  # how it may be left
        self.missed: set[str] = set()  # variables that a round read where they may have no value
        self.perhaps: Any = {}  # variables that have a value on some of these ways
        self.endless: bool = False  # whether the condition holds whatever the values
        self.asked: Any = None  # what the condition gave at the end of a round

    def write(self) -> Way:
        """Write the loop, once its carries are known; how it was left."""
        for trial in range(TRIALS):
            mark, refused, body, settled = self.level.mark(), [*threads.refused], None, None
            self.snapshot: Snapshot = Snapshot(self.body, self.test)
            if iterators := self.snapshot.advances():
                raise StagingError(
                    f"a loop that depends on staged values reaches an iterator or file made "
                    f"outside of it ({type(iterators[0]).__name__}), which a program cannot "
                    "advance when it runs; go through a list, or an array"
                )
            if trial == 0 and self._key in self.reading.carries:
                self._begin_as_before(*self.reading.carries[self._key])
            elif trial == 0:
                self._guess()
            extents = Extents(self.snapshot.stacked)
            try:
                body = record(self.level, "body", self._formals(), self._round)
                settled = self._settles(body)
            except Wanted as w:
                if type(self.rounds) is int:
                    w.rooms *= self.rounds
                raise
            except Exception:
                if not any(self.guessed):
                    raise
                threads.refused[:] = refused
            finally:
                self.variables.reset(self.all)
                changed = self.snapshot.undo()
                grown = extents.end()
            if settled is not None:
                refuse_changes([c for c in changed if isinstance(c[0], Name)], "loop")
            if body is not None and settled:
                self._lengthen(grown)
                self._remember()
                columns = {
                    k: c._replace(seen=self._as_either(c.seen)) for k, c in body.columns.items()
                }
                return self._write(body._replace(columns=columns))
            if settled is None:
                self.slots, self.cells, self.guessed = {}, [], ([], [])
                self.reading.carries[self._key] = {}, []  # it is not tried again
            self.level.back_to(mark)
        raise StagingError("a loop: what it carries from round to round never becomes the same")

    def _lengthen(self, grown: Sequence[tuple[Any, int, int]]) -> None:
        """Lists are longer after the loop."""
        rounds = self.rounds if type(self.rounds) is int else 1
        if rounds is not self.rounds:
            for k, (x, more, _) in enumerate(grown):
                if more > 0 and x.ends is None:
                    room, said = self.reading.rooms.of((self.body.__code__, k), self._line)
                    raise Wanted(x, (), room, said)
        lengthen(self.level, grown, rounds)

    def _begin_as_before(self, likes: dict[Place, Any], stored: list[str]) -> None:
        """Begin with the carries that this loop had when it was last traced, where it may."""
        entries = [n for n in likes if isinstance(n, Entry) and self.snapshot.has(n)]
        self._know({e: e.get() for e in entries})
        for n, was in likes.items():
            if n not in self.before:
                continue
            leaves, structure = flattened(self.before[n])
            now = [seen(v) if is_leaf(v) else None for v in leaves]
            if len(was) == len(now) and all(map(_may_be, now, was)):
                pairs = zip(now, was, strict=True)
                kept = [joined([a, b]) if a and b else None for a, b in pairs]
                self.slots[n] = Joined(structure, leaves, kept)
        cells = [c for n, c in _stores(self.body).items() if n in stored and n not in likes]
        self.cells = [*dict.fromkeys(cells)]  # two variables may hold one array

    def _guess(self) -> None:
        """Begin with the numbers and arrays that the source of the body says that it changes."""
        stores, changed = _stores(self.body), self.variables.changed
        arrays = bool(stores) or self.test is None
        for n in changed:
            v = self.before.get(n, UNSET)
            is_value = isinstance(v, Traced) and type(v) is not OneOf
            is_value = is_value and not (isinstance(v, StagedArray) and v.shape == ())  # += writes
            if is_value or type(v) in (bool, float) or _is_whole(v):
                leaves, structure = flattened(v)
                like = seen(v)
                if arrays and like.type == FLOAT64 and like.weak not in (False, None):
                    around = like.weak if type(like.weak) is Perhaps else ()
                    like = like._replace(weak=Perhaps([self.guess, *around]))
                self.slots[n] = Joined(structure, leaves, [joined([like])])
        cells = [c for n, c in stores.items() if n in changed and n not in self.slots]
        self.cells = [*dict.fromkeys(cells)]
        self.guessed = [n for n in changed if n in self.slots], [*self.cells]

    def _know(self, entries: Mapping[Entry, Any]) -> None:
        """Entries that the loop changes are places, with what they held before."""
        self.variables.add(entries)
        self.before.update({e: v for e, v in entries.items() if e not in self.before})

    @property
    def _line(self) -> str:
        code = self.body.__code__
        return describe_line(code.co_filename, code.co_firstlineno, code.co_name)

    @property
    def _key(self) -> Any:
        return getattr(self.body, "__code__", None)

    def _remember(self) -> None:
        stored = [n for n, c in _stores(self.body).items() if c in self.cells]
        likes = {n: [*map(_settled, s.likes)] for n, s in self.slots.items()}
        self.reading.carries[self._key] = likes, stored

    def _formals(self) -> list[tuple[str, Seen]]:
        formals = [] if self.at is None else [("i", COUNT)]
        names = [(n if isinstance(n, str) else "s", s) for n, s in self.slots.items()]
        formals += [(n, t) for n, s in names for t in s.results]
        return formals + [("a", _of_cell(cell)) for cell in self.cells]

    def _round(self, level: Any, nodes: list[Any]) -> dict[Any, Any]:
        """Trace one round: from the formals to the values that it hands on."""
        left = iter(nodes)
        i = None if self.at is None else next(left)
        start = {n: s.tree(left) for n, s in self.slots.items()}
        self.variables.set(start)
        for n, tree in start.items():  # in the first round, of what there was before
            copies = held(tree)
            doubt(level, [*copies, *held(self.before[n])] if copies else ())
        for cell, node in zip(self.cells, left, strict=True):
            level.take(cell)
            cell.content = node.now().v
            cell.version += 1
        versions = [cell.version for cell in self.cells]
        for e, step in self.steps.items():
            at_round = op("add")(op("multiply")(i, step), self.before[e])
            e.put(level.number(at_round.v, True))
        lengths = {Entry(x, "length"): x.extent for x in self.snapshot.stacked}
        missed = len(self.reading.missed)
        items = [] if self.at is None else [self.at(i)]
        way = in_region((self.body, self.test), self.variables, self.body, *items)
        on: Any = True
        self.perhaps, tagged = {}, {}
        way = without(way, self.variables, CONTINUED)
        code, value = coded(way)
        if isinstance(way, Mixed) and ON in way.codes:
            self.perhaps = way.perhaps
            tagged = {("tagged", n): perhaps_of(way, n) for n in way.perhaps}
            on = op("equal")(code, ON)
        elif way is not None:
            raise StagingError("a loop: every round is left by a break or a return")
        self.left, self.codes, self.endless = on is not True, codes(way), False
        if self.test is not None:
            go: Any = truth_of(self.test) if on is True else self._asks(on)
        elif type(self.rounds) is int and on is True:
            go = True
        else:
            more = op("less")(op("add")(i, 1), self.rounds)
            go = more if on is True else op("logical_and")(on, more)
        pairs = zip(self.cells, versions, strict=True)
        self.idle = [cell for cell, version in pairs if cell.version == version]
        self.asked, self.missed = go, {*self.reading.missed[missed:]}
        self._know(self.snapshot.entries("loop"))
        self.lengths = {e: (was, e.container.extent) for e, was in lengths.items()}
        columns: dict[Any, Any] = {(n,): v for n, v in self.variables.values().items()}
        columns |= tagged | {(n,): v for n, (v, _) in self.perhaps.items()}
        if i is not None:
            columns["i"] = op("add")(i, 1)
        if self.left:
            columns |= {"code": code, "value": value}
        if not (type(self.rounds) is int and not self.left):
            columns["go"] = go
        self.start = start
        return columns

    def _asks(self, on: object) -> Any:
        """Whether there is one more round; the condition is evaluated only if no exit was taken."""

        def ask() -> Way:
            assert self.test is not None, "a loop of rounds has no condition"
            again = truth_of(self.test)
            self.endless = again is True
            return Return(again)

        way = branch(on, ask, lambda: Return(False), self.variables)
        if not isinstance(way, Return):
            raise StagingError(
                "a loop: its condition may raise what a try around it catches, after a round that "
                "may have been left otherwise; write `while True` and ask in the body, with a break"
            )
        return way.value

    def _settles(self, body: Record) -> bool | None:
        """Whether the body hands on what it was given; what it is given from now on.

        None where what was guessed is more than what it would have come to.
        """
        slots, done = dict(self.slots), True
        for e, v in self.before.items():
            if isinstance(v, Count):
                self.before[e] = v.number()
        for n, begin in self.before.items():
            if n in self.lengths and n not in self.slots:
                step = self._step(*self.lengths[n])
                if step is not None:
                    done = done and self.steps.get(n, 0) == step
                    self.steps[n] = step
                    continue
                done = self.steps.pop(n, None) is None and done
            start = self.start.get(n, begin)
            end = body.columns[n,]
            if n in self.guessed[0] and (end.tree is start or same_constant(begin, end.tree)):
                return None
            if end.tree is start or (begin is UNSET and not self._may_be_kept(n, end)):
                continue
            if isinstance(end.tree, List):
                self._exchanged(start, end.tree)
            if begin is UNSET:
                end = body.columns[n,] = or_unset(body.columns.get(("tagged", n), end))
            elif end.tree is UNSET:
                raise StructureError(f"{said(n)} is deleted in a staged loop")
            slot, body.columns[n,] = self._slot(n, begin, end)
            if slot.results:
                slots[n] = slot
                known = self.slots[n].likes if n in self.slots else []
                same = n in self.slots and slot.structure == self.slots[n].structure
                done = done and same and _alike(slot.likes, self._as_either(known))
        new = [cell for cell in body.changed if cell not in self.cells]
        if new or self.idle:  # of a variable that has come to be carried itself, the old array
            self.cells = [cell for cell in [*self.cells, *new] if cell not in self.idle]
            done = False
        self.slots = slots
        return done

    def _may_be_kept(self, n: Place, end: Column) -> bool:
        """Whether a variable that begins without a value may have that of a round before."""
        if end.tree is UNSET:
            return False
        bound = self.perhaps[n][1] if n in self.perhaps else self.codes
        in_every = bound == self.codes and self._runs() and not is_perhaps(end.tree)
        return n in self.slots or n in self.missed or (ON in bound and not in_every)

    def _exchanged(self, start: Any, end: Any) -> None:
        """Lists that change names from round to round are rows of one pool."""
        both = [x for x in (start, end) if isinstance(x, List) and not isinstance(x, Row)]
        others = [self.start.get(n, begin) for n, begin in self.before.items()]
        if len(both) == 2 and start.home is end.home and any([end is x for x in others]):
            wanted = TogetherWanted(*both)
            wanted.refuse_far()
            raise wanted

    def _step(self, start: Count, end: Count) -> int | None:
        """By how much a list grows in every round; None where that depends on values."""
        same = type(self.rounds) is int and not self.left and start.base is end.base
        return end.more - start.more if same else None

    def _slot(self, n: Place, begin: Tree, end: Column) -> tuple[Joined, Column]:
        """What a variable is before and after a round, and in the rounds written so far.

        With the column at the end of a round, which may be a choice as the slot is.
        """
        leaves, structure = flattened(begin)
        slot = self.slots.get(n) or Joined(structure, leaves, [None] * len(leaves))
        known = [k and self._without_guess(k) for k in slot.likes]
        likes = [seen(v) if is_leaf(v) else None for v in slot.constants]
        now = [k or t for k, t in zip(known, likes, strict=True)]
        none = [None] * len(likes)
        columns = [
            Column(begin, slot.structure, slot.constants, slot.constants, t, none, held(begin))
            for t in (likes, now)
        ]
        first, end, last = with_choices([columns[0], end, columns[1]])
        if first.structure != slot.structure:
            if begin is not UNSET and self._key not in self.reading.choosing:
                raise ChoiceNeeded(
                    f"{said(n)} is one thing or another {WHERE}; give it a value of the same kind "
                    "before the loop",
                    line=self._line,
                )
            known = [None] * len(first.leaves)
        joined = join(said(n), [first, end, last], WHERE)
        carried = [t or k for t, k in zip(joined.likes, known, strict=True)]
        carried = [t and self._without_guess(t) for t in carried]
        triples = zip(first.leaves, joined.constants, carried, strict=True)
        begins = [c if v is MISSING and t is None else v for v, c, t in triples]
        return Joined(first.structure, begins, carried), end

    def _without_guess(self, like: Seen) -> Seen:
        """A type without the guess of this loop that it may be of either kind."""
        if not self._is_guess(like):
            return like
        around = Perhaps([g for g in like.weak if g is not self.guess])  # type: ignore[union-attr]
        return like._replace(weak=around if len(around) else True)

    def _is_guess(self, like: Seen) -> bool:
        return type(like.weak) is Perhaps and self.guess in like.weak

    def _as_either(self, likes: Sequence[Seen | None]) -> list[Seen | None]:
        """Types in which the guess of this loop has come true."""
        return [t._replace(weak=None) if t and self._is_guess(t) else t for t in likes]

    # --- writing the form -------------------------------------------------------------------------

    def _write(self, body: Record) -> Way:
        if self.test is not None and not is_staged(self.asked) and not self.left:
            raise StagingError("a loop: its condition does not depend on staged values")
        columns, level = body.columns, self.level
        born = {n: _found(columns[n,]) for n in self.before if self._is_born(columns, n)}
        value = _found(columns["value"]) if self.left else None
        given = [*[((n,), j) for n, j in born.items()], *([("value", value)] if value else ())]
        arrays = self._arrays(body, _places(given))
        self._refuse_aliases(body, arrays)  # before anything is written
        rounds: Any = self.rounds if type(self.rounds) is int and not self.left else None
        initial: list[Any] = []
        likes: list[Seen] = []  # what is known of the carries after the loop
        results: list[ir.Var] = []

        def carry(like: Seen, value: Leaf, at_first: object) -> None:
            zero = np.zeros(like.type.shape, like.type.dtype)
            initial.append(_converted(level, zero if at_first is MISSING else at_first, like))
            likes.append(like)
            results.append(body.variable(zero if value is None else value, like.type))

        if self.at is not None:
            carry(COUNT, columns["i"].entered[0], 0)
        for n, s in self.slots.items():
            end = columns[n,]
            for v, e, t, after in zip(s.constants, end.entered, s.likes, end.seen, strict=True):
                if t is not None:
                    sure = after if self._runs() and after is not None else t
                    carry(t._replace(lay=sure.lay, weak=sure.weak), e, v)
        for cell in self.cells:
            cell.here()
            initial.append(cell.boxed())
            likes.append(_of_cell(cell))
            results.append(body.changed[cell].var)
        read = len(results)  # the carries so far are those that a round reads
        if self.left:
            carry(COUNT, columns["code"].entered[0], ON)
        for key, j in given:
            for e, t in zip(columns[key].entered, j.likes, strict=True):
                if t is not None:
                    carry(t, e, np.zeros(t.type.shape, t.type.dtype))
        if rounds is None:
            carry(FLAG, columns["go"].entered[0], self.go)
        unread = [body.out.fresh("z", like.type) for like in likes[read:]]
        nodes = self._form(body, rounds, [*body.formals, *unread], initial, likes, results)
        self._mark(body, nodes[self.at is not None :], arrays)
        return self._leave(body, nodes, born, value)

    def _is_born(self, columns: dict[Any, Column], n: Place) -> bool:
        """Whether a variable gets its first value in the loop, and may have one after it."""
        return n not in self.slots and self.before[n] is UNSET and columns[n,].tree is not UNSET

    def _runs(self) -> bool:
        """Whether there is a first round, which is what a variable without a value waits for."""
        return type(self.rounds) is int or self.go is True

    def _form(
        self, body: Record, rounds: int | None, formals: list[ir.Var], initial: list[Any],
        likes: list[Seen], results: list[ir.Var],
    ) -> list[Any]:  # fmt: skip
        level = self.level
        body = body.pruned(results)
        around, (mine,) = together(level, [body])
        d, carries = body.define(around, mine, results, formals, True), [b.var for b in initial]
        if rounds is not None:
            leaf: Any = scan_of(level, d, around, carries, rounds)
        else:
            level.add(d)
            args = tuple([*[b.var for b in around], *carries])
            name = level.name_of_definition("condition")
            level.add(_last(name, [a.type for a in args]))
            leaf = While(args, (name, body.name), len(around))
        return written(level, leaf, likes)

    def _leave(
        self, body: Record, nodes: list[Any], born: dict[Any, Joined], value: Joined | None
    ) -> Way:
        nodes = nodes if self.at is None else nodes[1:]
        left = iter(nodes)
        bindings = {n: s.tree(left) for n, s in self.slots.items()}
        for cell in self.cells:
            change(self.level, cell, next(left))
        code = next(left) if self.left else ON
        perhaps: dict[str, Any] = {}
        for n, j in born.items():
            bound = self.perhaps[n][1] if n in self.perhaps else self.codes
            perhaps[n] = j.tree(left), bound
        rounds = self.rounds if type(self.rounds) is int else 0
        for e, step in self.steps.items():
            base, more = e.container.extent
            e.container.extent = Count(base, more + step * rounds)
        for n, v in self.before.items():  # what the body binds to what it found
            other = n not in bindings and n not in self.steps
            if v is not UNSET and other and body.columns[n,].tree is not v:
                bindings[n] = v
        self.variables.set(bindings)
        self._doubt(body, bindings)
        if self.endless and self.go is True:  # it goes on until it is left
            self.codes -= {ON}
        returned = UNSET if value is None else value.tree(left)
        return decoded(code, returned, self.codes, perhaps, self.variables)

    def _arrays(self, body: Record, given: Sequence[Part]) -> HandedOn:
        """What rounds hand on: carries, and what else is given."""
        carried = _places(((n,), s) for n, s in self.slots.items())
        begins = [self.slots[key[0]].constants[i] for key, i in carried]
        starts = [flattened(self.start[key[0]])[0][i] for key, i in carried]
        return HandedOn(body, begins, starts, [*carried, *given])

    def _mark(self, body: Record, nodes: list[Any], arrays: HandedOn) -> None:
        """Say which arrays those may be that the loop gave."""
        carried = len(arrays.begins)
        first = carried + len(self.cells) + self.left
        last = first + len(arrays.places) - carried
        results = [*nodes[:carried], *nodes[first:last]]
        mark_aliases(results, arrays.places, [body], arrays.others(results, self._runs()))

    def _doubt(self, body: Record, bindings: dict[Place, Any]) -> None:
        """Refuse later changes of containers that are one object in Python and two here."""
        changed = {n: held(tree) for n, tree in bindings.items() if tree is not self.before[n]}
        if not any(changed.values()):
            return
        before = [x for v in (*self.before.values(), *self.start.values()) for x in held(v)]
        old = in_use(self.level, self.snapshot, before, body.columns.values())
        for n, containers in changed.items():
            several = [x for x in body.columns[n,].containers if id(x) in old]
            if not self._runs():
                several += held(self.before[n])
            doubt(self.level, [*several, *(containers if several else ())])

    def _refuse_aliases(self, body: Record, arrays: HandedOn) -> None:
        """Refuse a loop that writes an array which some round may have under another name."""
        copied = {id(n.store) for n, _ in self.level.shared.copied if n.store is not None}
        if any([id(cell) in copied for cell in self.cells]):
            raise written_in_list()
        cells = {id(cell) for cell in self.cells}
        for p in arrays.carries if cells else ():
            for cell in [c for c in arrays.may_be(p) if id(c) in cells]:
                names = [said(n) for n, c in _stores(self.body).items() if c is cell]
                raise self._refusal(" ".join(names[:1]) or "an array", arrays.places[p])
        for p in arrays.written():
            n = arrays.places[p][0][0]
            others = n not in self.alone or relatives(store_of(arrays.begins[p]))
            if others or arrays.is_shared(p) or any([id(s) in copied for s in arrays.left(p)]):
                raise self._refusal("an array", arrays.places[p])
            for q in sorted([q for one, q in arrays.pairs if one == p]):
                raise self._refusal(said(n), arrays.places[q])

    def _refusal(self, written: str, other: Part) -> MutationError:
        return MutationError(
            f"a staged loop writes into {written}, and {said(other[0][0])} may be that array under "
            "another name in one of its rounds; bind a copy, a.copy()",
            line=self._line,
        )


class ChoiceNeeded(StructureError):
    """A carry differs in kind before and after a round, so it must be a choice."""


def _places(parts: Iterable[tuple[Any, Joined]]) -> list[Part]:
    """The columns and leaves of what is no constant."""
    return [(key, i) for key, j in parts for i, t in enumerate(j.likes) if t]


def _found(column: Column) -> Joined:
    """The values that a round leaves, all of them carried but constants."""
    pairs = zip(column.leaves, column.seen, strict=True)
    likes = [None if _is_constant(v) else t for v, t in pairs]
    return Joined(column.structure, column.leaves, likes)


def _may_be(now: Seen | None, was: Seen | None) -> bool:
    """Whether a leaf may be carried as the leaf in the same place was."""
    return (now is None) <= (was is None) and (was is None or now.type.shape == was.type.shape)  # type: ignore[union-attr]


def _stores(block: Callable[..., Any]) -> dict[str, Cell]:
    """The storage of the arrays that a block's variables hold."""
    cells = zip(block.__code__.co_freevars, block.__closure__ or (), strict=True)
    values = {name: contents(cell) for name, cell in cells}
    return {n: v.w.buffer for n, v in values.items() if isinstance(v, StagedArray)}


def _settled(like: Seen | None) -> Seen | None:
    """A type without guesses of loops around, which these make anew."""
    return like._replace(weak=True) if like and type(like.weak) is Perhaps else like


def _alike(a: Sequence[Seen | None], b: Sequence[Seen | None]) -> bool:
    pairs = zip(a, b, strict=False)
    alike = [s == t and (s is None or type(s.lay) is type(t.lay)) for s, t in pairs]  # type: ignore[union-attr]
    return len(a) == len(b) and all(alike)


def _is_whole(v: Leaf) -> bool:
    return type(v) is int and v.bit_length() < 64


def _is_alone(cell: Any) -> bool:
    """Whether no other variable holds an array that this one holds."""
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

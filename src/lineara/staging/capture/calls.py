"""Calls: a function that calls itself where staged values decide becomes a definition.

Functions are written out where they are called, and so is a recursion that static data end, as
over a tree of records.  One that is entered in branches of its own, some of them deep, is marked,
and the trace begins again: from then on each call of it is a call of a definition, of which there
is one for each form of arguments.  What it gives is what the branches give that do not call it;
with that it is written again, until it gives what was assumed.
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from lineara.errors import MutationError, StagingError, StructureError
from lineara.facts.hints import Leaf
from lineara.linear_a.calls import Call
from lineara.python.user_code import Reading, reading
from lineara.staging.capture.columns import Column, Joined, join
from lineara.staging.capture.containers import Snapshot, doubt, refuse_changes
from lineara.staging.capture.joins import held, same_constant
from lineara.staging.capture.records import Record, record
from lineara.staging.capture.variables import contents
from lineara.staging.control_flow import Unknown, is_operand, tracing, written
from lineara.staging.staged_arrays import StagedArray, note_aliases
from lineara.staging.staged_level import StagedLevel, seen
from lineara.tape.node import Array, Traced
from lineara.trees import LEAF, Structure, flatten, unflatten

DEEP = 6  # definitions within each other in which a function is entered before it is one itself
ENDLESS = 40  # definitions of one function within each other


def called(body: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a trace: as a definition if it is marked as recursive, else inline."""
    now, level, code = reading(), tracing(), body.__code__
    if now is None or level is None:
        return body(*args)
    if code in now.recursive:
        return _Called(level, now, body, args).result()
    entered = now.entered[code]
    if len({*map(id, entered)}) >= DEEP:
        now.recursive[code] = set()
        now.again()
    entered.append(level)
    try:
        return body(*args)
    finally:
        entered.pop()


class _Called:
    """A call of a function that is a definition."""

    def __init__(
        self, level: StagedLevel, now: Reading, body: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        self.level, self.now, self.body, self.given = level, now, body, args
        code = body.__code__
        parts = [flatten(a) if _moves(a) else ([a], LEAF) for a in args]
        self.leaves = [v for leaves, _ in parts for v in leaves]
        self.structures = [structure for _, structure in parts]
        whole = now.recursive[code]
        self.places = [
            i for i, v in enumerate(self.leaves) if is_operand(v) or (i in whole and _is_whole(v))
        ]
        self.likes = [seen(self.leaves[i]) for i in self.places]
        around = tuple([_same_key(contents(c)) for c in body.__closure__ or ()])
        types = tuple([(like, type(like.lay)) for like in self.likes])
        constants = [None if i in self.places else _key(v) for i, v in enumerate(self.leaves)]
        self.form = tuple([_form(s) for s in self.structures])
        self.key = code, around, types, self.form, tuple(constants)

    def result(self) -> Any:
        """The result of the call."""
        shared = self.level.shared
        known = shared.open.get(self.key) or shared.called.get(self.key)
        if known is None or known.is_stale():
            self._refuse_endless(self.key[0])
            known = _Definition(self)
            known.write()
        boxes = [self.level.as_box(self.leaves[i]) for i in self.places]
        return known.call(self.level, boxes, self)

    def _refuse_endless(self, code: CodeType) -> None:
        """Let whole numbers that change between calls be inputs; refuse what has no end."""
        around = [k.call_of for k in self.level.shared.open.values() if k.f is code]
        if len(around) < ENDLESS:
            return
        alike = [c for c in around if c.form == self.form]
        change = {
            i for c in alike for i, (a, b) in enumerate(zip(c.leaves, self.leaves, strict=True))
            if i not in self.places and _is_whole(a) and _is_whole(b) and a != b
        }  # fmt: skip
        if change:
            self.now.recursive[code] |= change
            self.now.again()
        raise StagingError(
            f"{code.co_name} calls itself with other constants, types or containers every time, "
            "each of which is a definition of its own; pass what changes as numbers and arrays "
            "that keep their shapes"
        )

    def args(self, nodes: Sequence[Any]) -> list[Any]:
        """The arguments with these in place of the parts that are variables."""
        leaves = list(self.leaves)
        for i, n in zip(self.places, nodes, strict=True):
            leaves[i] = n
        left = iter(leaves)
        return [unflatten(s, [next(left) for _ in range(s.leaf_count)]) for s in self.structures]


class _Definition:
    """A function as a definition: its name, and its result types, known or assumed so far."""

    def __init__(self, call: _Called) -> None:
        self.call_of, self.f, self.again = call, call.body.__code__, False
        self.level = call.level
        self.name = self.level.name_of_definition(self.f.co_name.strip("<>"))
        self.assumed: Column | None = None
        self.likes: list[Any] = []  # what is known of what it gives; None for constants
        self.mentions: list[Any] = []  # values of the code around, in the order of the formals
        self.shared: list[bool] = []  # of what it gives, whether others may hold the array
        self.outside: list[Any] = []  # arrays around that may be what it gives
        self.is_new = True  # whether nobody else holds a container that it gives
        self.done = False

    def is_stale(self) -> bool:
        """Whether what it depends on has changed since it was traced; never while it is traced."""
        return self.done and self.reached.is_stale()

    def call(self, level: StagedLevel, boxes: list[Any], of: _Called) -> Any:
        """A call, on these arguments."""
        if not self.done and not self._is_written_around(level):
            raise StagingError(
                f"a derivative of {self.f.co_name} is taken within {self.f.co_name}, which calls "
                "itself where staged values decide: what it is the derivative of is not written "
                "yet; differentiate the function as a whole, or end the recursion by a number that "
                "is known while the program is written"
            )
        if self.assumed is None:
            raise Unknown(self.call_of.key)
        around = [level.as_box(a) for a in self.mentions]
        leaf = Call(tuple([b.var for b in (*boxes, *around)]), (self.name,))
        joined = Joined(self.assumed.structure, self.assumed.leaves, self.likes)
        nodes = written(level, leaf, joined.results)
        arrays = [v for v in (*of.leaves, *self.outside, *nodes) if _is_array(v)]
        both = zip(nodes, self.shared, strict=True)
        note_aliases([(v, arrays) for v, is_shared in both if is_shared])
        value = joined.tree(nodes)
        if not self.is_new:  # Python gives containers that others may hold
            doubt(level, [*held(value), *held(of.given)] if held(value) else ())
        return value

    def _is_written_around(self, level: StagedLevel | None) -> bool:
        while level is not None and level is not self.level:
            level = level.holder
        return level is not None

    def write(self) -> None:
        """Trace it until its results have the types that were assumed of them."""
        shared, key = self.level.shared, self.call_of.key
        shared.open[key] = self
        skipped, shared.skipped = shared.skipped, set()
        self.reached = Snapshot(self.call_of.body)
        try:
            done = self._settled()
        finally:
            del shared.open[key]
            skipped |= shared.skipped
            shared.skipped = skipped
        if shared.skipped:  # of a function around this one, which is written again
            return
        pairs = zip(done.columns["value"].entered, self.likes, strict=True)
        results = [done.variable(v, t.type) for v, t in pairs if t is not None]
        around = [self.level.as_box(a) for a in self.mentions]
        mine = {self.level.as_box(a).var: v for a, v in done.mentions}
        done = done.pruned(results)
        self.level.add(done.define(around, mine, results, done.formals, False))
        self.done = True
        if not self.mentions:
            shared.called[key] = self

    def _settled(self) -> Record:
        formals = [(f"x{i}", like) for i, like in enumerate(self.call_of.likes)]
        shared, key = self.level.shared, self.call_of.key
        while True:
            mark = self.level.mark()
            shared.skipped.discard(key)
            try:
                one = record(self.level, "", formals, self._run, self.name)
            except Unknown as unknown:
                if unknown.key is not key:
                    raise
                raise StagingError(
                    f"{self.f.co_name} calls itself in every branch, so nothing says what it "
                    "gives; one branch must end without a call"
                ) from None
            finally:
                changed = self.reached.undo()
            refuse_changes(changed, "function", _WHERE)
            if one.changed:
                raise _written(self.f.co_name)
            if self._is_assumed(one) and key not in shared.skipped:
                return one
            self.level.back_to(mark)

    def _run(self, _: StagedLevel, nodes: list[Any]) -> dict[Any, Any]:
        """Run the function on the formals; its results."""
        args = self.call_of.args(nodes)
        given = Snapshot(*args)
        value = self.call_of.body(*args)
        refuse_changes(given.undo(), "function", _WHERE)
        containers = [id(x) for x in held(value)]
        doubtful = [id(d.container) for d in self.level.shared.doubtful]
        old = {*given.seen, *self.reached.seen, *doubtful}
        self.gives_new = len({*containers}) == len(containers) and old.isdisjoint(containers)
        arrays = [n for n in nodes if isinstance(n, StagedArray)]
        if any([n.w.buffer.version for n in arrays]):
            raise _written(self.f.co_name)
        stores = [n.w.buffer for n in arrays]
        self.of_arguments = [isinstance(v, StagedArray) and v.w.buffer in stores
                             for v in flatten(value)[0]]  # fmt: skip
        return {"value": value}

    def _is_assumed(self, one: Record) -> bool:
        """Whether the results have the types assumed; from now on theirs are assumed."""
        column, before = one.columns["value"], (self.likes, self.shared, self.is_new)
        known = {self.level.as_box(a).var for a in self.mentions}
        new = [b for b in (self.level.as_box(a) for a, _ in one.mentions) if b.var not in known]
        self.mentions += [self.level.shown(b) for b in new]
        if self.assumed is None:
            pairs = zip(column.leaves, column.seen, strict=True)
            self.likes = [None if same_constant(v, v) else t for v, t in pairs]
            same = True  # unless it was called, for which nothing was known
        else:
            known_of = [t or k for t, k in zip(self.likes, self.assumed.seen, strict=True)]
            where = "where it calls itself and where it does not"
            what = f"what {self.f.co_name} gives"
            if column.structure != self.assumed.structure:
                raise StructureError(
                    f"{what} differs {where}: give the same containers there, with numbers, or "
                    "None, in the same places"
                )
            likes = join(what, [self.assumed._replace(seen=known_of), column], where).likes
            self.likes = [t or k for t, k in zip(likes, self.likes, strict=True)]
            same = not new and _alike(self.likes, before[0])
        self.assumed = column
        self.outside += [a for a in column.aliases if a is not None]
        triples = zip(self.of_arguments, column.aliases, self.likes, strict=True)
        self.shared = [own or a is not None for own, a, t in triples if t is not None]
        self.is_new &= self.gives_new
        return same and before[1:] in (([], self.is_new), (self.shared, self.is_new))


_WHERE = "calls itself where staged values decide"


def _written(name: str) -> MutationError:
    return MutationError(
        f"{name} calls itself where staged values decide, and writes into an array that it was "
        "given or finds outside; write into a copy, and return it"
    )


def _alike(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two lists of facts are equal; strides of different classes are not."""
    pairs = zip(a, b, strict=True)
    return all([s == t and (s is None or type(s.lay) is type(t.lay)) for s, t in pairs])


def _is_array(v: Leaf) -> bool:
    return isinstance(v, np.ndarray | Array)


def _is_whole(v: Leaf) -> bool:
    return isinstance(v, int | np.integer) and not isinstance(v, bool)


def _moves(v: Any) -> bool:
    """Whether a value has parts that may be variables; static ones stay constants."""
    return is_operand(v) or any([isinstance(part, Traced) for part in flatten(v)[0]])


def _key(v: Any) -> Any:
    """A key for a constant argument: small containers by their contents."""
    if type(v) in (tuple, list):
        return (type(v), *map(_key, v))
    return (dict, *v, *map(_key, v.values())) if type(v) is dict else _same_key(v)


def _same_key(v: Leaf) -> Any:
    """A key for a constant: mutable objects by identity."""
    if isinstance(v, float):
        return float, v.hex()
    by_value = v is None or isinstance(v, int | str | bytes | np.integer | np.bool_)
    return (type(v), v) if by_value else (type(v), id(v))


def _form(structure: Structure) -> Any:
    return tuple([e and (e.kind.cls, e.keys, _key(e.aux)) for e in structure.entries])


__all__ = ["called"]

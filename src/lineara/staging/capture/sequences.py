"""What a loop goes through, as far as its items are found by their number: ranges and arrays.

The stand-ins for `range`, `enumerate`, `zip` and `reversed` keep that in sight; what has no items
by number is gone through by Python.
"""

import builtins
import functools
import operator
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.ops.value_checks import checked
from lineara.staging.capture.choices import OneOf
from lineara.staging.capture.list_items import is_staged
from lineara.staging.capture.lists import List, Stacked
from lineara.staging.control_flow import tracing
from lineara.staging.windows import is_window
from lineara.tape.node import Traced

ENDED, UNKNOWN = -1, -2  # where a loop of the program has left an iterator


class Items:
    """Items that are found by their number; those of ranges and arrays, paired and counted.

    As an iterator in Python it is at an item, `_next`, or where a loop has left it.
    """

    __slots__ = ("_next", "at", "every", "rounds", "stacked")
    __lineara_leaf__ = True
    SHOWN: ClassVar[str] = "iterator"
    rounds: Any
    at: Any

    def __init__(self, rounds: Any, at: Any, *of: "Items", stacked: Stacked | None = None) -> None:
        self.rounds, self.at = rounds, at
        self.every: Any = rounds  # of the statement that goes through these, perhaps in parts
        self._next = 0
        own = [] if stacked is None else [(stacked, stacked.mark)]
        self.stacked: list[Any] = [*own, *[pair for items in of for pair in items.stacked]]

    def __reduce__(self) -> Any:
        return iter, (self.at,), self._next

    def begin(self, at: int) -> None:
        """Be at an item, as a loop goes on from there."""
        self._next = at

    def go_on(self, at: int) -> None:
        """Be behind an item, where nothing but the loop that has come to it went on."""
        if self._next != at:
            raise went_on(self)
        self._next = at + 1

    def end(self, known: bool) -> None:
        """Be at the end, or where staged values say."""
        self._next = ENDED if known else UNKNOWN

    def refuse_growth(self) -> None:
        """Refuse to have gone through a list that has become longer or shorter meanwhile."""
        for x, (base, more) in self.stacked:
            if not isinstance(x, Stacked) or x.mark[0] is not base or x.mark[1] != more:
                raise StagingError(
                    "a list that is held as an array, since staged values say how it is read or "
                    "grows, became longer or shorter while a loop went through it; loop over a "
                    "copy, or over the numbers of the items"
                )

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """The next item, for those who go through them in Python."""
        if self._next == UNKNOWN:
            raise went_on(self)
        if self._next == ENDED or self._next >= operator.index(self.rounds):
            self.refuse_growth()
            raise StopIteration
        self._next += 1
        return self.at(self._next - 1)


def went_on(x: Iterator[Any]) -> StagingError:
    """The error of an iterator that is used where a loop may have left it."""
    what = "of an array or a range" if isinstance(x, Items) else type(x).__name__
    return StagingError(
        f"an iterator ({what}) is in use beside a staged loop that goes through it, or after one "
        "that staged values may end early: how far it went depends on values; go through a list "
        "or an array, and count where the loop was left"
    )


class Range:
    """A range some of whose ends are staged: it is gone through, and no more is known of it."""

    stop: Any
    step: int
    start: Any

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step

    def items(self) -> Items:
        """The numbers of the range, as items."""
        span = self.stop - self.start if self.step > 0 else self.start - self.stop
        size = abs(self.step)
        span = span if size == 1 else (span + (size - 1)) // size
        return Items(span, lambda i: self.start + i * self.step)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items())

    def __len__(self) -> int:
        """The number of rounds, where it is known."""
        return max(0, operator.index(self.items().rounds))

    def __getitem__(self, at: Any) -> Any:
        """An item of Python's range, where the ends are known."""
        return builtins.range(operator.index(self.start), operator.index(self.stop), self.step)[at]

    def __eq__(self, other: object) -> bool:
        start, stop = operator.index(self.start), operator.index(self.stop)
        return bool(builtins.range(start, stop, self.step) == other)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


def items_of(x: Leaf) -> Items | None:
    """The items of a range, an array or what stands for several; None for anything else."""
    if isinstance(x, Items):
        return x if x._next == 0 else None
    if isinstance(x, Range):
        return x.items()
    if type(x) is builtins.range:
        if x.start == 0 and x.step == 1:
            return Items(len(x), lambda i: i)
        return Items(len(x), lambda i: x.start + i * x.step if x.start else i * x.step)
    if isinstance(x, Traced | np.ndarray) and x.shape:
        return Items(x.shape[0], lambda i: _row(x, i))
    if isinstance(x, Stacked):
        return Items(x.length, lambda i: x[i], stacked=x)
    return None


def _row(x: Any, i: Any) -> Any:
    """A row of an array; of a plain one a staged number finds it in a copy of the program's."""
    if type(x) is np.ndarray and isinstance(i, Traced):
        if x.dtype.kind in "OT":
            return _object_at(x, i)
        level = tracing()
        return op("index")(x, at=(i,)) if level is None else level.buffer(x)[i]
    return x[i]


def _object_at(x: np.ndarray, at: Any) -> Any:
    """What an array of objects or texts has at a staged place: what a list of them has there."""
    if x.ndim != 1 or isinstance(at, tuple | slice):
        raise StagingError(
            "an array of objects or texts was asked for what it has at a staged place, and a "
            "program holds neither; take the numbers that belong to them before, or loop over a "
            "list of them"
        )
    return constant_at(x.tolist(), at)


def range_(*ends: Any) -> Any:
    """`range`, of staged numbers too."""
    if not any(map(is_staged, ends)):
        return builtins.range(*ends)
    start, stop, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
    for end in (start, stop):
        if isinstance(end, Traced) and end.dtype.kind not in "iu":
            name = end.stands_for().__name__
            raise TypeError(f"'{name}' object cannot be interpreted as an integer")
    return Range(start, stop, operator.index(step))


def enumerate_(iterable: Any, start: int = 0) -> Any:
    """`enumerate`, by number where there are items by number."""
    items = items_of(iterable)
    if items is None:
        return builtins.enumerate(iterable, start)
    _hand_on(iterable)
    return Items(items.rounds, lambda i: (i + start if start else i, items.at(i)), items)


def _hand_on(*iterables: Any) -> None:
    """Iterators go on as what is made of them does."""
    for x in iterables:
        if isinstance(x, Items):
            x.end(known=False)


def is_place(at: Leaf) -> bool:
    """Whether an index has staged whole numbers in it."""
    parts: Any = at if isinstance(at, tuple) else (at,)
    if any(map(is_window, parts)):
        return True
    return any([is_staged(p) and type(p) is not OneOf and p.dtype.kind in "iu" for p in parts])


def constant_at(x: Any, at: Any) -> Any:
    """What an array or a list of constants has at a staged place."""
    level = tracing()
    if type(x) is np.ndarray:
        if x.dtype.kind in "OT":
            return _object_at(x, at)
        return op("index")(x, at=_tuple(at)) if level is None else level.buffer(x)[at]
    items = [x[i] for i in range(len(x))]
    n, kinds = len(items), {*map(type, items)}
    if level is None or isinstance(at, tuple | slice) or at.shape or not n:
        return x[at]
    at = at if at.dtype == np.int64 else op("astype")(at, dtype=np.dtype(np.int64))
    outside = op("logical_or")(op("less")(at, -n), op("greater_equal")(at, n))
    said = f"{type(x).__name__} index out of range"
    if len(kinds) == 1 and kinds <= {int, float} and not isinstance(x, List):
        return level.buffer(np.array(x))[checked(at, outside, IndexError, said)].item()
    if all([v is None or isinstance(v, str) or callable(v) for v in items]):
        at = checked(at, outside, IndexError, said)
        return OneOf(op("where")(op("less")(at, 0), op("add")(at, n), at), items)
    return x[at]  # which is refused


def _tuple(at: Leaf) -> tuple[Any, ...]:
    return at if isinstance(at, tuple) else (at,)


def ndindex_(*shape: Any) -> Any:
    """`np.ndindex`, by number."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if not all([type(n) is int and n > 0 for n in sizes]) or not sizes:
        return np.ndindex(*shape)
    return Items(int(np.prod(sizes)), lambda i: _places(i, sizes))


def _places(i: Any, sizes: Any) -> tuple[Any, ...]:
    """The index of the i-th element of an array of that shape."""
    places = []
    for n in reversed(sizes):
        places.insert(0, i if len(places) + 1 == len(sizes) else i % n)
        i = i // n
    return tuple(places)


def ndenumerate_(a: Any) -> Any:
    """`np.ndenumerate`, by number."""
    if not isinstance(a, Traced) or not a.shape or not a.size:
        return np.ndenumerate(a)
    return Items(a.size, lambda i: ((at := _places(i, a.shape)), a[at]))


class Elements(Items):
    """The elements of one array, as `np.nditer` without options goes through them."""

    __slots__ = ()

    def copy(self) -> "Elements":
        """Another iterator that is where this one is."""
        made = Elements(self.rounds, self.at)
        made._next = self._next
        return made

    def __enter__(self) -> "Elements":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def close(self) -> None:
        """Go through no more."""
        self.end(known=True)

    def __getattr__(self, name: str) -> Any:
        raise _unanswered(name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Items.__slots__:
            raise _unanswered(name)
        object.__setattr__(self, name, value)


def _unanswered(name: str) -> Exception:
    """The error for an attribute of `np.nditer` that `Elements` has not."""
    if name.startswith("_") or not hasattr(np.nditer, name):
        return AttributeError(f"'numpy.nditer' object has no attribute '{name}'")
    return StagingError(
        f"{name} of an np.nditer over a staged array: it gives the elements one after the other, "
        "and no more is known of it; loop over np.ndindex(a.shape), and write a[i]"
    )


def nditer_(op: Any, *args: Any, **options: Any) -> Any:
    """`np.nditer`: over one staged array, whose elements are read in the order of its memory.

    Constants that are only read are gone through by NumPy's own.
    """
    operands = [*op] if isinstance(op, list | tuple) else [op]
    if not any([isinstance(a, Traced) for a in operands]):
        return np.nditer(op, *args, **options)
    if isinstance(op, Traced) and not (args or options):
        flat = np.ravel(op, order="K")
        return Elements(op.size, lambda i: flat[i])
    writes = "write" in str(args[1:2] or options.get("op_flags"))
    if writes or any([isinstance(a, Traced) and a.constant() is None for a in operands]):
        raise StagingError(
            "np.nditer of a staged array with options, or of arrays that are written: its elements "
            "are read one after the other; loop over np.ndindex(a.shape), and write a[i]"
        )
    known = [a.__array__() if isinstance(a, Traced) else a for a in operands]
    return np.nditer(known if isinstance(op, list | tuple) else known[0], *args, **options)


OF_NUMPY = ((np.ndindex, ndindex_), (np.ndenumerate, ndenumerate_), (np.nditer, nditer_))


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """`zip`, by number where all have items by number, and as many."""
    several = [items_of(x) for x in iterables]
    whole = [f for f in several if f is not None]
    known = whole and len({*map(id, whole)}) == len(several)  # an iterator may come twice
    if not known:
        return builtins.zip(*iterables, strict=strict)
    lengths = [f.rounds for f in whole]
    staged = any(map(is_staged, lengths))
    if strict and not staged and len({*lengths}) > 1:
        return builtins.zip(*iterables, strict=True)
    if strict and staged:
        _refuse_other_lengths(lengths)
    _hand_on(*iterables)
    least = _least(lengths) if staged else min(lengths)
    return Items(least, lambda i: tuple([f.at(i) for f in whole]), *whole)


def _least(lengths: list[Any]) -> Any:
    """The least of several lengths, some of which are staged."""
    least = functools.reduce(lambda a, b: op("minimum")(a, b), lengths)
    return least.level.number(least.v, True)


def _refuse_other_lengths(lengths: list[Any]) -> None:
    """Write the errors of `zip` where lengths are not the same."""
    for k, n in enumerate(lengths[1:], 2):
        before = "argument 1" if k == 2 else f"arguments 1-{k - 1}"
        for name, word in (("less", "shorter"), ("greater", "longer")):
            fails = op(name)(n, lengths[0])
            checked(fails, fails, ValueError, f"zip() argument {k} is {word} than {before}")


def reversed_(sequence: Any) -> Any:
    """`reversed`, by number where there are items by number."""
    items = items_of(sequence)
    if items is None or isinstance(sequence, Items):
        return builtins.reversed(sequence)  # type: ignore[call-overload, arg-type]
    last = items.rounds - 1
    return Items(items.rounds, lambda i: items.at(last - i), items)

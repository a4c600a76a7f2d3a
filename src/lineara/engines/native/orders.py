"""What is read of a line of elements as a whole: its order, its extreme place, its truth.

    argsort.kind.n          the places in ascending order, equal elements in the order they have
    argmax.kind.n, argmin   the first place of the largest or the least element
    any.kind.n, all         whether one element, or each, is true
    left.kind.n, right      where an element would stand in a line that is in ascending order

Each is a function of the module for one line, and NaN is what it is to NumPy: the largest and the
last, the extreme one.  All are exact.
"""

from collections.abc import Callable
from math import prod

import numpy as np

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.factors import Function, called
from lineara.engines.native.numbers import strides_of
from lineara.engines.native.strided import Plain, at_offset, steps_of, type_of, view
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

LONG = 256
"""Elements from which NumPy's order takes less than the call of Python that asks for it."""


class OfLine(Function):
    """A function of the module that reads a line of one kind of numbers."""

    n: int
    kind: str

    def __init__(self, name: str, kind: str, n: int, parameters: str) -> None:
        super().__init__(f"lineara.{name}.{kind}.{n}", parameters, False)
        self.kind, self.n = kind, n

    def cell(self, value: int | str) -> str:
        """The address of a whole number that changes."""
        place = self.at_start("alloca i64")
        self.line(f"store i64 {value}, ptr {place}")
        return place

    def at_start(self, text: str) -> str:
        """What is made once."""
        register = f"%e{self.name()}"
        self.lines.insert(0, f"  {register} = {text}")
        return register

    def whole_number(self, base: str, i: str) -> str:
        """The address of a place."""
        return self.let(f"getelementptr inbounds i64, ptr {base}, i64 {i}")

    def get(self, place: str) -> str:
        """A whole number."""
        return self.let(f"load i64, ptr {place}")

    def put(self, value: str, place: str) -> None:
        """Keep a whole number."""
        self.line(f"store i64 {value}, ptr {place}")

    def number(self, i: str) -> str:
        """An element of x."""
        kind = nm.IN_MEMORY[self.kind]
        place = self.let(f"getelementptr inbounds {kind}, ptr %x, i64 {i}")
        return self.let(f"load {kind}, ptr {place}")

    def before(self, x: str, y: str, larger: bool = False, nan_first: bool = False) -> str:
        """Whether x comes before y: it is smaller, or larger; NaN comes last, or first."""
        t = nm.IN_MEMORY[self.kind]
        if self.kind not in nm.FLOATS:
            return self.let(f"icmp {'sgt' if larger else 'slt'} {t} {x}, {y}")
        less = self.let(f"fcmp {'ogt' if larger else 'olt'} {t} {x}, {y}")
        odd, even = (x, y) if nan_first else (y, x)
        none = self.let(f"fcmp uno {t} {odd}, {odd}")
        some = self.let(f"fcmp ord {t} {even}, {even}")
        return self.let(f"or i1 {less}, {self.let(f'and i1 {none}, {some}')}")


def argsort(kind: str, n: int) -> OfLine:
    """y becomes the places of x in ascending order, by merging runs in s, which has two halves."""
    f = OfLine("argsort", kind, n, "xys")
    passes = max(n - 1, 0).bit_length()
    left, right = f.cell(0), f.cell(0)
    with f.loop("0", str(n)) as i:
        f.put(i, f.whole_number("%s", i))
    with f.loop("0", str(passes)) as p:
        width, twice = f.let(f"shl i64 1, {p}"), f.let(f"add i64 {p}, 1")
        most = f.let(f"add i64 {f.let(f'shl i64 1, {twice}')}, {n - 1}")
        x = f.let(f"mul i64 {f.let(f'and i64 {p}, 1')}, {n}")  # where the runs are, in s
        y = f.let(f"sub i64 {n}, {x}")
        with f.loop("0", f.let(f"lshr i64 {most}, {twice}")) as q:
            low = f.let(f"shl i64 {q}, {twice}")
            middle = _least(f, f.let(f"add i64 {low}, {width}"), n)
            high = _least(f, f.let(f"add i64 {middle}, {width}"), n)
            f.put(low, left)
            f.put(middle, right)
            with f.loop(low, high) as k:
                _merged(f, x, y, k, (low, middle, high), (left, right))
    with f.loop("0", str(n)) as i:
        at = f.let(f"add i64 {i}, {passes % 2 * n}")
        f.put(f.get(f.whole_number("%s", at)), f.whole_number("%y", i))
    return f


def _least(f: OfLine, i: str, n: int) -> str:
    """i, but n at most."""
    return f.let(f"select i1 {f.let(f'icmp slt i64 {i}, {n}')}, i64 {i}, i64 {n}")


def _merged(
    f: OfLine, x: str, y: str, k: str, run: tuple[str, str, str], at: tuple[str, str]
) -> None:
    """The k-th place of two runs together: the left one's, unless the right one's is smaller."""
    low, middle, high = run
    i, j = map(f.get, at)
    more_left = f.let(f"icmp slt i64 {i}, {middle}")
    more_right = f.let(f"icmp slt i64 {j}, {high}")
    safe_i = f.let(f"select i1 {more_left}, i64 {i}, i64 {low}")
    safe_j = f.let(f"select i1 {more_right}, i64 {j}, i64 {low}")
    places = [f.let(f"add i64 {x}, {safe}") for safe in (safe_i, safe_j)]
    a, b = [f.get(f.whole_number("%s", place)) for place in places]
    smaller = f.let(f"and i1 {more_right}, {f.before(f.number(b), f.number(a))}")
    takes = f.let(f"and i1 {more_left}, {f.let(f'xor i1 {smaller}, true')}")
    f.put(
        f.let(f"select i1 {takes}, i64 {a}, i64 {b}"),
        f.whole_number("%s", f.let(f"add i64 {y}, {k}")),
    )
    one = f.let(f"zext i1 {takes} to i64")
    f.put(f.let(f"add i64 {i}, {one}"), at[0])
    f.put(f.let(f"add i64 {j}, {f.let(f'sub i64 1, {one}')}"), at[1])


def extreme(name: str) -> Callable[[str, int], OfLine]:
    """The first place of the largest or the least element."""

    def of(kind: str, n: int) -> OfLine:
        f = OfLine(name, kind, n, "xys")
        best = f.cell(0)
        with f.loop("1", str(n)) as i:
            at = f.get(best)
            more = f.before(f.number(i), f.number(at), name == "argmax", True)
            f.put(f.let(f"select i1 {more}, i64 {i}, i64 {at}"), best)
        f.put(f.get(best), "%y")
        return f

    return of


def truth(name: str) -> Callable[[str, int], OfLine]:
    """Whether one element, or each, is true."""

    def of(kind: str, n: int) -> OfLine:
        f = OfLine(name, kind, n, "xys")
        sofar = f.cell(int(name == "all"))
        with f.loop("0", str(n)) as i:
            x = f.number(i)
            how, zero = ("fcmp une", "0.0") if kind in nm.FLOATS else ("icmp ne", "0")
            true = f.let(f"{how} {nm.IN_MEMORY[kind]} {x}, {zero}")
            true = f.let(f"zext i1 {true} to i64")
            f.put(f.let(f"{'and' if name == 'all' else 'or'} i64 {f.get(sofar)}, {true}"), sofar)
        f.line(f"store i8 {f.let(f'trunc i64 {f.get(sofar)} to i8')}, ptr %y")
        return f

    return of


def search(side: str, kind: str, n: int) -> OfLine:
    """y becomes the place before the first element of x that is not before s, or is after it."""
    f = OfLine(side, kind, n, "xys")
    low, high = f.cell(0), f.cell(n)
    t = nm.IN_MEMORY[kind]
    key = f.let(f"load {t}, ptr %s")
    with f.loop("0", str(n.bit_length())):
        i, j = map(f.get, (low, high))
        is_open = f.let(f"icmp slt i64 {i}, {j}")
        middle = f.let(f"lshr i64 {f.let(f'add i64 {i}, {j}')}, 1")
        x = f.number(f.let(f"select i1 {is_open}, i64 {middle}, i64 0"))
        later = f.before(x, key) if side == "left" else f.let(f"xor i1 {f.before(key, x)}, true")
        up = f.let(f"and i1 {is_open}, {later}")
        f.put(f.let(f"select i1 {up}, i64 {f.let(f'add i64 {middle}, 1')}, i64 {i}"), low)
        stays = f.let(f"xor i1 {is_open}, true")
        f.put(f.let(f"select i1 {f.let(f'or i1 {up}, {stays}')}, i64 {j}, i64 {middle}"), high)
    f.put(f.get(low), "%y")
    return f


OF_LINES: dict[str, Callable[[str, int], OfLine]] = {
    "argsort": argsort,
    **{name: extreme(name) for name in ("argmax", "argmin")},
    **{name: truth(name) for name in ("any", "all")},
}


def of_lines(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType) -> Plain | None:
    """What a function makes of each line along an axis, or of the whole array as one line."""
    (x, *rest), kind = args, nm.kind_of(type_of(args[0]))
    sorts = e.name == "argsort"
    axis = e.params.get("axis", -1 if sorts else None)
    plain = isinstance(x, nm.Arr) and not rest and (axis is None or type(axis) is int)
    if not plain or kind in (None, "c128") or (sorts and e.params.get("kind") != "stable"):
        return None
    if sorts and axis is not None and type_of(x).shape[axis] > LONG:
        return None
    if (
        {*e.params} - {"axis", "kind", "keepdims"}
        or not type_of(x).size
        or (sorts and axis is None)
    ):
        return None
    assert isinstance(x, nm.Arr), "it has axes"
    shape = x.type.shape
    order = [*range(len(shape))]
    if axis is not None:
        order.append(order.pop(axis))
    turned = tuple([shape[i] for i in order])
    rows = view(x, x.type._replace(shape=turned), x.at, [steps_of(x)[i] for i in order])
    lead, n = (turned[:-1], turned[-1]) if axis is not None else ((), prod(shape))
    held: list[nm.Held] = [*args]
    with em.kept(held):
        held += (ordered := em.in_order([rows]))
        y = em.array(t._replace(shape=(*lead, n) if sorts else lead))
        held.append(y)
        s = em.array(ArrayType((2 * n if sorts else 1,), np.dtype(int)))
        assert isinstance(ordered[0], nm.Arr), "it has axes"
        steps = [n * k for k in strides_of(lead)]
        own = steps if sorts else strides_of(lead)
        with em.nest(lead, steps, own, spent=n) as (i, j):
            places = [em.address(ordered[0], i), em.address(y, j), em.address(s)]
            called(em, OF_LINES[e.name](kind, n), places)
    if not t.shape:
        return em.load(y)
    if not sorts:
        return y._replace(type=t)
    back = sorted(range(len(order)), key=order.__getitem__)
    return view(y, t, "", [strides_of(y.type.shape)[i] for i in back])


def searched(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType) -> Plain | None:
    """Where elements would stand in a line of their kind."""
    side = e.params.get("side", "left")
    if len(args) != 2 or {*e.params} - {"side"} or side not in ("left", "right"):
        return None
    (x, v), kind = args, nm.kind_of(type_of(args[0]))
    if not isinstance(x, nm.Arr) or x.type.ndim != 1 or kind is None:
        return None
    f = search(side, kind, x.type.size)
    with em.kept(args):
        y = em.array(t)
        with em.nest(t.shape, steps_of(v), strides_of(t.shape)) as (i, j):
            called(em, f, [em.address(x), em.address(y, j), em.boxed(at_offset(em, v, i))])
    return y if t.shape else em.load(y)


__all__ = ["OF_LINES", "of_lines", "searched"]

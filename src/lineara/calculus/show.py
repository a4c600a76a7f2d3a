"""Terms as text, in the syntax that the parser reads; only what a reduction is about has its own.

>>> from lineara.calculus.terms import (Pair, num)
>>> show(Pair((num(1), num(-2.5))))
'<1, -2.5>'
"""

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from lineara.calculus import terms as tm
from lineara.calculus import types as ty
from lineara.errors import CalculusError

TERM, PROBE, SUM, PAIRING, APP, ATOM = range(6)  # how tight an operand has to bind
CUT = "…"
ROW = 5  # a longer row of a window has its ends only
NONE: Mapping[int, tm.Term] = MappingProxyType({})

# A construct in brackets: its head, what stands between the parts, its end.
_FORMS = {
    tm.J: ("J(", "; ", ")"),
    tm.Pull: ("pull(", "; ", ")"),
    tm.Copair: ("[", "|", "]"),
    tm.Ev: ("ev(", "", ")"),
    tm.Covec: ("covec(", "", ")"),
    tm.Pair: ("<", ", ", ">"),
    tm.Scale: ("scale(", ", ", ")"),
    tm.Cons: ("cons(", ", ", ")"),
    tm.Cotangents: ("{", ", ", "}"),
    tm.Pick: ("pick(", "", ")"),
}
_PREFIX = {tm.Fst: "fst ", tm.Snd: "snd ", tm.Head: "head ", tm.Tail: "tail ", tm.IsNil: "isnil "}
_INFIX = {
    tm.At: (" @ ", APP, APP, PAIRING),
    tm.App: (" ", APP, ATOM, APP),
}  # text, the levels of the operands, and its own


class Operand(NamedTuple):
    """A part of a term within its text: the path to it, and how tight it has to bind."""

    path: tuple[int, ...]
    level: int = TERM


class Place(NamedTuple):
    """Where a subterm stands: how far down the marked path, or off it, and how deep to go on."""

    on: int | None
    left: int | None


Piece = str | Operand


def show(
    term: tm.Term,
    mark: Sequence[int] | None = None,
    marks: tuple[str, str] = ("«", "»"),
    around: int | None = None,
    spine: Mapping[int, tm.Term] = NONE,
) -> str:
    r"""The text of a term on one line; the subterm at the path `mark` stands between `marks`.

    With `around` it is a window: what is more than that many levels away from the marked subterm is
    left out, and `…` stands for it.  `spine` has terms that stand on the marked path in place of
    what the term has there, by their depth: a context is shown without being filled.
    CalculusError for what is no term.

    >>> from lineara.calculus import term
    >>> show(term("(\\x. x * x) 3"), mark=(1,))
    '(\\x:R. multiply(x, x)) «3»'
    >>> show(term("sin(sin(cos(cos(3))))"), mark=(0, 0), around=0)
    '… «cos(…)» …'
    """
    if not isinstance(term, tm.Term):
        raise CalculusError(
            f"calculus.show takes a term, and got {term!r}; calculus.term reads one"
        )
    path = () if mark is None else tuple(mark)
    above = 0 if around is None else max(0, len(path) - around)
    for depth, i in enumerate(path[:above], 1):
        term = spine.get(depth, term.parts[i])
    left = None if around is None else around - (len(path) - above)
    text: list[str] = [f"{CUT} "] if above else []
    open_: list[str | tuple[tm.Term, Place, int]] = [
        (term, Place(None if mark is None else above, left), TERM)
    ]
    while open_:
        item = open_.pop()
        if isinstance(item, str):
            text.append(item)
            continue
        t, place, level = item
        if t.parts and place.left is not None and place.left < 0:
            text.append(CUT)
            continue
        own, pieces = _pieces(t, place, path)
        if level > own:
            pieces = ["(", *pieces, ")"]
        if place.on == len(path):
            pieces = [marks[0], *pieces, marks[1]]
        for p in reversed(pieces):
            open_.append(p if isinstance(p, str) else _part(t, p, place, path, spine))
    if above:
        text.append(f" {CUT}")
    return "".join(text)


def _part(
    t: tm.Term,
    operand: Operand,
    place: Place,
    path: tuple[int, ...],
    spine: Mapping[int, tm.Term],
) -> tuple[tm.Term, Place, int]:
    """The part of a term that an operand names, with its place."""
    on, left = place
    for i in operand.path:
        t = t.parts[i]
        on = on + 1 if on is not None and on < len(path) and path[on] == i else None
        t = t if on is None else spine.get(on, t)
        left = None if left is None else left + (1 if on is not None else -1)
    return t, Place(on, left), operand.level


def number(held: object) -> str:
    """A literal: `2`, `0.5`, `1e-20`, `inf`; `2i` is an integer."""
    if isinstance(held, bool):
        return str(held).lower()
    if isinstance(held, int):
        return f"{held}i"
    assert isinstance(held, float)
    whole = held.is_integer() and abs(held) < 1e16
    return str(int(held)) if whole and str(held) != "-0.0" else repr(float(held))


def _names(names: Sequence[tm.Binder], place: Place) -> str:
    """The names of an environment."""
    shown = _shown(len(names), None, place.left)
    return ", ".join([CUT if i is None else names[i][0] for i in shown])


def _shown(n: int, kept: int | None, left: int | None) -> list[int | None]:
    """Which of n items of a row a window shows: the first, the last two, and the kept one."""
    if left is None or n <= ROW:
        return list(range(n))
    ends = sorted({0, n - 2, n - 1} | ({kept} if kept is not None and 0 <= kept < n else set()))
    shown: list[int | None] = [0]
    for before, i in itertools.pairwise(ends):
        shown += [i] if i == before + 1 else [None, i]
    return shown


def _pieces(t: tm.Term, place: Place, path: tuple[int, ...]) -> tuple[int, list[Piece]]:
    """How tight a construct binds, and its text in pieces without brackets around them."""
    below = None if place.on is None else path[place.on : place.on + 2]  # where the mark goes on

    def row(first: int, last: int, level: int = TERM, between: str = ", ") -> list[Piece]:
        kept = below[0] - first if below else None
        pieces: list[Piece] = []
        for i in _shown(last - first, kept, place.left):
            pieces += [between, CUT if i is None else Operand((first + i,), level)]
        return pieces[1:]

    match t:
        case tm.Var(_, name):
            return ATOM, [name]
        case tm.Literal(_, held):
            return ATOM, [number(held)]
        case tm.Zero(_, stated):
            return ATOM, [f"0:{ty.show(stated, 3)}"]
        case tm.Lam(_, name, source):
            return TERM, [f"\\{name}:{ty.show(source)}. ", Operand((0,))]
        case tm.Fix(_, own, name, stated):
            return TERM, [f"rec {own} {name}:{ty.show(stated)}. ", Operand((0,))]
        case tm.Let(_, name):
            return TERM, [f"let {name} = ", Operand((0,)), " in ", Operand((1,))]
        case tm.If():
            words = ("if ", Operand((0,)), " then ", Operand((1,)), " else ", Operand((2,)))
            return TERM, list(words)
        case tm.DualMap(_, name, source):
            head = f"dual(\\{name}:{ty.show(source)}. "
            return ATOM, [head, Operand((0,)), "; ", Operand((1,)), ")"]
        case tm.Fun((tm.Pair(),), symbol) if below != (0,):
            return ATOM, [f"{symbol}(", Operand((0, 0)), ", ", Operand((0, 1)), ")"]
        case tm.Fun(_, symbol):
            return ATOM, [f"{symbol}(", Operand((0,)), ")"]
        case tm.JFun(_, symbol):
            return ATOM, [f"J{{{symbol}}}(", Operand((0,)), ")"]
        case tm.Sum(parts):
            return SUM, row(0, len(parts), PAIRING, " + ")
        case tm.List(parts, _, dual):
            return ATOM, [f"{'covs' if dual else ''}[", *row(0, len(parts)), "]"]
        case tm.Probe((_, _)):
            return PROBE, [Operand((0,), SUM), " |> ", Operand((1,), PROBE)]
        case tm.Probe(parts):
            last = len(parts) - 1
            between = ["(", Operand((0,)), "; ", *row(1, last), " |>' "]
            return ATOM, [*between, Operand((last,), SUM), ")"]
        case tm.Back(_, names):
            vs = _names(names, place)
            head = f"dual(\\<{vs}>. <{vs}, "
            return ATOM, [head, Operand((0,)), ">; ", Operand((1,)), ")"]
        case tm.JAt(_, names) | tm.PullAt(_, names):
            n = len(names)
            head = f"{'J' if isinstance(t, tm.JAt) else 'pull'}(\\<{_names(names, place)}>. "
            along, at = [Operand((1,))], row(2, n + 2)
            if isinstance(t, tm.JAt):
                along, at = ["<", *row(1, n + 1), ">"], row(n + 1, 2 * n + 1)
            return ATOM, [head, Operand((0,)), "; ", *along, ")<", *at, ">"]
    if type(t) in _PREFIX:
        return APP, [_PREFIX[type(t)], Operand((0,), ATOM)]
    if type(t) in _INFIX:
        between, left, right, own = _INFIX[type(t)]
        return own, [Operand((0,), left), between, Operand((1,), right)]
    head, between, end = _FORMS[type(t)]
    return ATOM, [head, *row(0, len(t.parts), between=between), end]


tm.Term.__repr__ = lambda self: show(self)  # `terms` knows nothing of texts

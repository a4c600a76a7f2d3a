"""Terms as text, in the syntax that the parser reads; only what a reduction is about has its own.

>>> from lineara.calculus.terms import (Pair, num)
>>> show(Pair((num(1), num(-2.5))))
'<1, -2.5>'
"""

from collections.abc import Sequence

from lineara.calculus import terms as tm
from lineara.calculus import types as ty
from lineara.trampoline import Deep, run

TERM, PROBE, SUM, PAIRING, APP, ATOM = range(6)  # how tight an operand has to bind
OPEN, CLOSE = "\x01", "\x02"  # around the marked subterm; `show` replaces them

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
    tm.At: (" @ ", PAIRING, APP),
    tm.App: (" ", APP, ATOM),
}  # text, and the levels of operands


def show(
    term: tm.Term, mark: Sequence[int] | None = None, marks: tuple[str, str] = ("«", "»")
) -> str:
    r"""The text of a term on one line; the subterm at the path `mark` stands between `marks`.

    >>> from lineara.calculus import term
    >>> show(term("(\\x. x * x) 3"), mark=(1,))
    '(\\x:R. multiply(x, x)) «3»'
    """
    text = run(_text(term, TERM, None if mark is None else tuple(mark)))
    return text.replace(OPEN, marks[0]).replace(CLOSE, marks[1])


def number(held: object) -> str:
    """A literal: `2`, `0.5`, `1e-20`, `inf`; `2i` is an integer."""
    if isinstance(held, bool):
        return str(held).lower()
    if isinstance(held, int):
        return f"{held}i"
    assert isinstance(held, float)
    whole = held.is_integer() and abs(held) < 1e16
    return str(int(held)) if whole and str(held) != "-0.0" else repr(float(held))


def _text(t: tm.Term, level: int, mark: tuple[int, ...] | None) -> Deep:
    text, own = yield _inside(t, mark)
    if level > own:
        text = f"({text})"
    return f"{OPEN}{text}{CLOSE}" if mark == () else text


def _inside(t: tm.Term, mark: tuple[int, ...] | None) -> Deep:
    """The text without brackets around it, and how tight it binds."""

    def part(i: int, level: int = TERM) -> Deep:
        return _text(t.parts[i], level, mark[1:] if mark and mark[0] == i else None)

    def several(indices: range) -> Deep:
        texts = []
        for i in indices:
            texts.append((yield part(i)))
        return ", ".join(texts)

    match t:
        case tm.Var(_, name):
            return name, ATOM
        case tm.Literal(_, held):
            return number(held), ATOM
        case tm.Zero(_, stated):
            return f"0:{ty.show(stated, 3)}", ATOM
        case tm.Lam(_, name, source):
            return f"\\{name}:{ty.show(source)}. {(yield part(0))}", TERM
        case tm.Fix(_, own, name, stated):
            return f"rec {own} {name}:{ty.show(stated)}. {(yield part(0))}", TERM
        case tm.Let(_, name):
            return f"let {name} = {(yield part(0))} in {(yield part(1))}", TERM
        case tm.If():
            c, a, b = (yield part(0)), (yield part(1)), (yield part(2))
            return f"if {c} then {a} else {b}", TERM
        case tm.DualMap(_, name, source):
            head = f"dual(\\{name}:{ty.show(source)}. "
            return f"{head}{(yield part(0))}; {(yield part(1))})", ATOM
        case tm.Fun(_, symbol) if isinstance(t.parts[0], tm.Pair):
            inside = yield part(0)
            whole = mark == (0,)
            return f"{symbol}({inside})" if whole else f"{symbol}({inside[1:-1]})", ATOM
        case tm.Fun(_, symbol):
            return f"{symbol}({(yield part(0))})", ATOM
        case tm.JFun(_, symbol):
            return f"J{{{symbol}}}({(yield part(0))})", ATOM
        case tm.Sum(parts):
            shown = []
            for i in range(len(parts)):
                shown.append((yield part(i, PAIRING)))
            return " + ".join(shown), SUM
        case tm.List(parts, _, dual):
            items = yield several(range(len(parts)))
            return f"{'covs' if dual else ''}[{items}]", ATOM
        case tm.Probe(parts):
            if len(parts) == 2:
                return f"{(yield part(0, SUM))} |> {(yield part(1, PROBE))}", PROBE
            v, k = (yield part(0)), (yield part(len(parts) - 1, SUM))
            return f"({v}; {(yield several(range(1, len(parts) - 1)))} |>' {k})", ATOM
        case tm.JAt(parts, names) | tm.PullAt(parts, names):
            return (yield _environment(t, part, several)), ATOM
        case tm.Back(_, names):
            vs = ", ".join([x for x, _ in names])
            return f"dual(\\<{vs}>. <{vs}, {(yield part(0))}>; {(yield part(1))})", ATOM
    if type(t) in _PREFIX:
        return f"{_PREFIX[type(t)]}{(yield part(0, ATOM))}", APP
    if type(t) in _INFIX:
        between, left, right = _INFIX[type(t)]
        own = left if isinstance(t, tm.App) else PAIRING
        first = APP if isinstance(t, tm.At) else left
        return f"{(yield part(0, first))}{between}{(yield part(1, right))}", own
    head, between, end = _FORMS[type(t)]
    shown = []
    for i in range(len(t.parts)):
        shown.append((yield part(i)))
    return f"{head}{between.join(shown)}{end}", ATOM


def _environment(t: tm.Term, part, several) -> Deep:
    assert isinstance(t, tm.JAt | tm.PullAt)
    n = len(t.names)
    xs = ", ".join([x for x, _ in t.names])
    body = yield part(0)
    if isinstance(t, tm.JAt):
        along, at = (yield several(range(1, n + 1))), (yield several(range(n + 1, 2 * n + 1)))
        return f"J(\\<{xs}>. {body}; <{along}>)<{at}>"
    w, at = (yield part(1)), (yield several(range(2, n + 2)))
    return f"pull(\\<{xs}>. {body}; {w})<{at}>"


tm.Term.__repr__ = lambda self: show(self)  # `terms` knows nothing of texts

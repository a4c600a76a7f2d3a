"""Running sums, products and recurrences along an axis, in NumPy's order: each from the last."""

from collections.abc import Callable
from typing import Any

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.scalars import RULES, where
from lineara.engines.native.strided import Plain, steps_of, strides_of
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir


def recurred(em: Emitter, kind: str, z: nm.Num, factor: nm.Num, term: nm.Num) -> nm.Num | None:
    """The term and the factor times z; that product is 0 if z is, whatever the factor."""
    product, zero = RULES["multiply"](em, kind, [factor, z]), nm.constant(kind, 0)
    live = RULES["not_equal"](em, "bool", [z, zero])
    kept = None if product is None or live is None else where(em, kind, [live, product, zero])
    return kept and RULES["add"](em, kind, [kept, term])


NEXT: dict[str, Callable[..., nm.Num | None]] = {
    "cumsum": lambda em, kind, *args: RULES["add"](em, kind, args),
    "cumprod": lambda em, kind, *args: RULES["multiply"](em, kind, args),
    "recurrence": recurred,
}
"""What comes next, from the last and the elements there."""


def run(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType) -> Plain | None:
    """The running results for an array, from one end of an axis or from the other.

    It is the last argument; an element of the one before it stands between two of its elements.
    """
    kind = nm.kind_of(t)
    arrays = [x for x in args if isinstance(x, nm.Arr) and x.type.dtype == t.dtype]
    if kind is None or len(arrays) < len(args):
        return None
    if kind == "c128" and e.name != "cumsum":
        return None  # products are NumPy's, whose loop may round once
    axis, reverse, n = e.params["axis"], e.params.get("reverse", False), t.shape[e.params["axis"]]
    with em.kept(args):
        y = em.array(t)
    if not t.size:
        return y
    steps = [*map(steps_of, arrays), strides_of(t.shape)]
    along = [s[axis] * (-1 if reverse else 1) for s in steps]
    between = [*range(len(args) - 1)]
    first = [
        s[axis] * (max(n - 1 - (k in between), 0) if reverse else 0) for k, s in enumerate(steps)
    ]
    rest, *others = [[*s[:axis], *s[axis + 1 :]] for s in (t.shape, *steps)]

    def at(places: list[nm.Num], which: int, rounds: nm.Num | None, back: int = 0) -> nm.Num:
        """The place of a result: so many elements on, after some rounds and one more, or `back`."""
        a: Any = places[which].affine
        a = a.plus(nm.Affine(first[which]))
        if rounds is not None:
            assert rounds.affine is not None, "a loop counts its rounds"
            a = a.plus(rounds.affine, along[which]).plus(nm.Affine(along[which] * (1 - back)))
        return nm.Num("i64", affine=a)

    def go_on(places: list[nm.Num], i: nm.Num) -> None:
        """One more element."""
        last = em.load(y, at(places, len(args), i, 1))
        here = [em.load(x, at(places, k, i, k in between)) for k, x in enumerate(arrays)]
        following = NEXT[e.name](em, kind, last, *here)
        assert following is not None, "numbers of a kind have a rule"
        em.store(following, y, at(places, len(args), i))

    with em.nest(rest, *others) as places:
        begin = em.load(arrays[-1], at(places, len(args) - 1, None))
        em.store(begin, y, at(places, len(args), None))
        if axis == t.ndim - 1:
            with em.each(n - 1, rolled=True) as i:
                go_on(places, i)
    if axis < t.ndim - 1:
        with em.each(n - 1, rolled=True) as i, em.nest(rest, *others) as places:
            go_on(places, i)
    return y


__all__ = ["run"]

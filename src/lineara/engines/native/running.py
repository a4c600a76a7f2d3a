"""Running sums along an axis, in NumPy's order: each is the one before it and one element more."""

from typing import Any

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.scalars import RULES
from lineara.engines.native.strided import Plain, steps_of, strides_of
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir


def summed(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType) -> Plain | None:
    """The running sums of an array, from one end of an axis or from the other."""
    (x,) = args
    if not isinstance(x, nm.Arr) or nm.kind_of(t) is None or x.type.dtype != t.dtype:
        return None
    axis, reverse, n = e.params["axis"], e.params.get("reverse", False), t.shape[e.params["axis"]]
    with em.kept(args):
        y = em.array(t)
    if not t.size:
        return y
    steps = [steps_of(x), strides_of(t.shape)]
    along = [s[axis] * (-1 if reverse else 1) for s in steps]
    first = [s[axis] * (n - 1 if reverse else 0) for s in steps]
    rest, *others = [[*s[:axis], *s[axis + 1 :]] for s in (t.shape, *steps)]

    def at(offset: nm.Num, which: int, rounds: nm.Num | None, back: int = 0) -> nm.Num:
        """The place of a sum: so many elements on, after some rounds and one more, or `back`."""
        a: Any = offset.affine
        a = a.plus(nm.Affine(first[which]))
        if rounds is not None:
            assert rounds.affine is not None, "a loop counts its rounds"
            a = a.plus(rounds.affine, along[which]).plus(nm.Affine(along[which] * (1 - back)))
        return nm.Num("i64", affine=a)

    def add(of: nm.Num, to: nm.Num, i: nm.Num) -> None:
        """One more element."""
        total = RULES["add"](
            em, nm.kind_of(t) or "", [em.load(y, at(to, 1, i, 1)), em.load(x, at(of, 0, i))]
        )
        assert total is not None
        em.store(total, y, at(to, 1, i))

    with em.nest(rest, *others) as (of, to):
        em.store(em.load(x, at(of, 0, None)), y, at(to, 1, None))
        if axis == t.ndim - 1:
            with em.each(n - 1, rolled=True) as i:
                add(of, to, i)
    if axis < t.ndim - 1:
        with em.each(n - 1, rolled=True) as i, em.nest(rest, *others) as (of, to):
            add(of, to, i)
    return y


__all__ = ["summed"]

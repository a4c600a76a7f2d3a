"""Invariant motion: what every round of a loop would calculate alike is calculated before it.

    scan[f, n](ks, cs, xs)                becomes    let y = e[ks] in scan[f', n](ks, y, cs, xs)
    f(k, c, x) = let y = e[k] in d[y]                f'(k, y, c, x) = d[y]            for n > 0

What a loop is given is on no tape: the reverse mode of f' keeps no row of y for each round, and
pulls the sum of the cotangents of y through e once.  A loop that may have no round is left as it
is: there that sum is zero, and zero times an infinite partial of e is NaN.  Parts of ks and whole
numbers made of them stay within, too, where they cost next to nothing and tell an engine which
places a round reads.
"""

from collections.abc import Sequence

from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.same_leaves import key_of
from lineara.passes.unzip import is_part


def before_rounds(
    d: ir.Def, args: Sequence[ir.Var], names: ir.Names
) -> tuple[list[ir.Binding], list[ir.Var], ir.Def]:
    """The bindings that go before a loop, its invariants then, and its body.

    `d` is the body of a loop with a first round; its first formals are given the invariants `args`.
    Variables before the loop have fresh `names`.

    >>> from lineara.linear_a.parse import parse
    >>> d = parse("def f(k: f64, c: f64;) -> (f64;) = let y = sin(k) in c * y").defs["f"]
    >>> ahead, given, body = before_rounds(d, [ir.Var("x", d.xs[0].type)], ir.Names(["x"]))
    >>> print(ahead[0].rhs.name, given, body.params)
    sin [y] (y, c)
    """
    alike, moving = found_alike(d, len(args))
    if not moving:
        return [], [*args], d
    kept: list[ir.Binding] = []
    ahead: list[ir.Let] = []
    within, before = {*d.body.leaf.operands()}, set[ir.Var]()  # what is read, here and there
    for b in reversed(d.body.bindings):
        v = alike.get(b)
        if v is None or (v in within and b not in moving):
            kept.append(b)
            within.update(ir.reads(b))
        if b in moving or v in before:
            ahead.append(b)  # type: ignore[arg-type]
            before.update(ir.reads(b))
    outer = dict(zip(d.xs, args, strict=False))  # what variables of the body are called before it
    made: dict[object, ir.Var] = {}
    bindings: list[ir.Binding] = []
    for b in reversed(ahead):
        assert isinstance(b.rhs, ir.Leaf)
        (v,), e = b.vars, b.rhs.renamed(lambda x: outer[x])
        key = key_of(e) or b
        if key not in made:
            made[key] = ir.Var(names(v.name), v.type, line=v.line)
            bindings.append(ir.Let((made[key],), e))
        outer[v] = made[key]
    given: dict[ir.Var, ir.Var] = {outer[x]: x for x in d.xs[: len(args)] if x in within}
    copies = [
        ir.Let((v,), ir.Ret((first,)))
        for v in [b.vars[0] for b in reversed(ahead) if b in moving and b.vars[0] in within]
        if (first := given.setdefault(outer[v], v)) is not v
    ]
    body = ir.Block((*copies, *reversed(kept)), d.body.leaf)
    formals = (*given.values(), *d.xs[len(args) :])
    return bindings, [*given], ir.Def(d.name, formals, d.results, (), body)


def found_alike(d: ir.Def, k: int) -> tuple[dict[ir.Binding, ir.Var], set[ir.Binding]]:
    """What every round calculates alike, and which bindings of that go before the rounds.

    An exception of the first round is the one that was raised first in it, so of what may raise one
    only that goes which nothing precedes that raises another, or acts, and stays.  A place out of
    bounds does not count there: most places are counters, and lie within.
    """
    same = {*d.xs[:k]}
    alike: dict[ir.Binding, ir.Var] = {}
    moving: set[ir.Binding] = set()
    stays: list[ir.Binding] = []
    for b in d.body.bindings:
        e = pure(b) if same.issuperset(ir.reads(b)) else None
        if e is not None and not (ir.may_fail(e) and any(map(raises, stays))):
            (v,) = b.vars
            alike[b] = v
            same.add(v)
            if calculates(b, v):
                moving.add(b)
                continue
        stays.append(b)
    return alike, moving


def pure(b: ir.Binding) -> ir.Leaf | None:
    """What makes one value of others and does nothing else, if a binding does."""
    e = b.rhs if isinstance(b, ir.Let) and len(b.vars) == 1 else None
    if isinstance(e, ir.Prim):
        return None if e.name == "checkpoint_name" or e.primitive.acts else e
    return e if isinstance(e, ir.Lit | ir.Ret | ir.Copy) else None


def raises(b: ir.Binding) -> bool:
    """Whether a binding may raise an exception by what is no place, or act."""
    e = b.rhs if isinstance(b, ir.Let) else None
    if isinstance(e, ir.Prim):
        return e.primitive.acts or ir.checks(e)
    return isinstance(e, ir.Application | ir.Block)


def calculates(b: ir.Binding, v: ir.Var) -> bool:
    """Whether a binding makes new real or complex numbers."""
    return isinstance(v.type, ArrayType) and v.type.dtype.kind in "fc" and not is_part(b)

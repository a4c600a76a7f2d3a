"""Dimensions at run time: a dimension of a type is a number, or an i64 formal of the definition.

    def f(n: i64, x: f64[n];) -> (f64;)

Type rules of primitives, and derivative facts, know numbers only.  They run on samples, a prime for
each variable, twice with other primes: a number of the result that is the prime of one variable
both times is that variable, one that is the same both times is a number, and anything else depends
on variables in a way that has no name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from lineara.errors import LinearaError, ShapeError
from lineara.facts.hints import Tree
from lineara.facts.types import ArrayType, Named, Stack
from lineara.linear_a import syntax as ir

I64 = ArrayType((), np.dtype(np.int64))
FIRST = 1009  # the least sample: larger than what programs spell out, small enough to allocate


def is_index(v: ir.Var) -> bool:
    """Whether a variable is one whole number: what a dimension may be."""
    return not v.linear and v.type == I64


def dims_in(t: Any) -> Iterator[ir.Var]:
    """The variables in the dimensions of a type, or of several."""
    open_ = [t]
    while open_:
        t = open_.pop()
        if isinstance(t, ArrayType):
            yield from [n for n in t.shape if isinstance(n, ir.Var)]
        elif isinstance(t, Named):
            yield from [n for n in t.dims if isinstance(n, ir.Var)]
        elif isinstance(t, Stack):
            if isinstance(t.n, ir.Var):
                yield t.n
            open_ += t.items
        else:
            open_ += reversed(getattr(t, "items", t))


def with_dims(t: Any, at: Mapping[ir.Var, Any]) -> Any:
    """The type with dimensions replaced by `at`; those that `at` does not have stay."""
    if not at:
        return t
    if isinstance(t, ArrayType):
        return ArrayType(_replaced(t.shape, at), t.dtype) if t.shape else t
    if isinstance(t, Named):
        return Named(t.name, _replaced(t.dims, at)) if t.dims else t
    items = tuple([with_dims(item, at) for item in t.items])
    return Stack(items, *_replaced((t.n,), at)) if isinstance(t, Stack) else t._replace(items=items)


def _replaced(dims: tuple[Any, ...], at: Mapping[ir.Var, Any]) -> tuple[Any, ...]:
    return tuple([at[n] if isinstance(n, ir.Var) and n in at else n for n in dims])


def matching(formals: Sequence[ir.Var], args: Sequence[ir.Var]) -> dict[ir.Var, Any]:
    """What the dimensions of a definition are where it is applied to these arguments."""
    return {p: a for p, a in zip(formals, args, strict=False) if is_index(p)}


# --- which formals of a definition are dimensions ------------------------------------------------


def dims_of(defs: Mapping[str, ir.Def]) -> dict[str, ir.Vars]:
    """For each definition the formals that are dimensions, in it or in what it applies."""
    indices = {name: dict.fromkeys(filter(is_index, d.params)) for name, d in defs.items()}
    dims_by_name: dict[str, set[ir.Var]] = {}
    users: dict[str, list[tuple[str, dict[ir.Var, Any]]]] = {}
    for name, known in indices.items():
        dims_by_name[name] = set()
        if not known:
            continue
        d = defs[name]
        dims_by_name[name].update(v for v in mentioned(d) if v in known)
        for e in ir.applications(d.body):
            for f, formals, args in e.zipped(defs):
                users.setdefault(f, []).append((name, matching(formals, args)))
    todo = [name for name, dims in dims_by_name.items() if dims]
    while todo:
        f = todo.pop()
        for name, at in users.get(f, ()):
            new = {
                at[p] for p in dims_by_name[f] if p in at and at[p] in indices[name]
            } - dims_by_name[name]
            if new:
                dims_by_name[name] |= new
                todo.append(name)
    return {
        name: tuple([v for v in indices[name] if v in dims]) for name, dims in dims_by_name.items()
    }


def mentioned(d: ir.Def) -> Iterator[ir.Var]:
    """The variables in the types of a definition, and in the parameters that say how large."""
    yield from dims_in((*d.results, *d.lresults, *[v.type for v in ir.binders(d)]))
    for e in ir.leaves(d.body):
        yield from mentioned_by(e)


def mentioned_by(e: ir.Leaf) -> Iterator[ir.Var]:
    """The dimensions in the types and the parameters that a leaf states."""
    if isinstance(e, ir.Zero | ir.Inj):
        yield from dims_in(e.type)
    elif isinstance(e, ir.Prim) and e.params:
        yield from sizes_in(e.params)
    elif isinstance(e, ir.Application):
        n = getattr(e, "n", None)
        yield from [n] if isinstance(n, ir.Var) else []


def may_raise(e: ir.Leaf | ir.Block, knows: Callable[[str], bool]) -> bool:
    """Whether evaluating does more than give values: it may end in an exception, or acts.

    `knows` says it of definitions.
    """
    return _has(e, knows, True)


def may_act(e: ir.Leaf | ir.Block, knows: Callable[[str], bool]) -> bool:
    """Whether evaluating may do something once more that is to be done once."""
    return _has(e, knows, False)


def acts(leaf: ir.Prim) -> bool:
    """Whether a primitive does something beside giving a value, and is not said to have done it."""
    return leaf.primitive.acts and not leaf.params.get("done")


def _has(e: ir.Leaf | ir.Block, knows: Callable[[str], bool], raising: bool) -> bool:
    for leaf in ir.doing(e):
        if isinstance(leaf, ir.Prim):
            primitive = leaf.primitive
            if (raising and primitive.raised) or (primitive.acts and acts(leaf)):
                return True
        elif isinstance(leaf, ir.Application) and any(map(knows, leaf.functions)):
            return True
    return False


# --- parameters ----------------------------------------------------------------------------------


def sizes_in(params: Mapping[str, Any]) -> Iterator[ir.Var]:
    """The variables in parameters that say how large something is."""
    for k, value in params.items():
        for v in value if isinstance(value, tuple) and k != ir.PLACE else ():
            if isinstance(v, ir.Var):
                yield v


def is_open(t: tuple[Any, ...]) -> bool:
    """Whether an array has a dimension that its type leaves open."""
    return isinstance(t, ArrayType) and None in t.shape


# --- samples -------------------------------------------------------------------------------------


class Samples:
    """A prime for each variable, and back."""

    def __init__(self, at: dict[ir.Var, int]) -> None:
        self.at = at
        self.of: dict[int, ir.Var] = {n: v for v, n in at.items()}

    def type(self, t: tuple[Any, ...]) -> Any:
        """The type with numbers."""
        return with_dims(t, self.at) if self.at else t

    def back(self, t: tuple[Any, ...]) -> Any:
        """A type with sample numbers, with variables in their place."""
        if not self.of:
            return t
        return ArrayType(tuple([self.of.get(n, n) for n in t.shape]), t.dtype)  # type: ignore

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters with sample numbers, with variables in their place."""
        if not self.of:
            return params
        return {k: v if k == ir.PLACE else self._param(v) for k, v in params.items()}

    def _param(self, value: Tree) -> Any:
        if type(value) is tuple:
            return tuple([self._param(v) for v in value])
        return self.of.get(value, value) if type(value) is int else value

    def text(self, message: str) -> str:
        """A message with sample numbers, with variables in their place."""
        return re.sub(r"\d+", lambda m: str(self.of.get(int(m[0]), m[0])), message)


def samples(variables: Iterable[ir.Var], *known: Any) -> tuple[Samples, Samples]:
    """Two samples, in opposite orders, of numbers that do not occur in what is known."""
    every = list(dict.fromkeys(variables))
    taken = set(_numbers(known))
    k = len(every)
    primes = list(islice((n for n in _primes() if n not in taken), 2 * k))
    ahead, back = primes[:k], primes[: -k - 1 : -1]
    one, two = (Samples(dict(zip(every, numbers, strict=True))) for numbers in (ahead, back))
    return one, two


def _primes() -> Iterator[int]:
    for n in count(FIRST, 2):
        if all([n % d for d in range(3, int(n**0.5) + 1, 2)]):
            yield n


def _numbers(value: Tree) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        yield from _numbers(tuple(value.values()))
    elif isinstance(value, tuple):
        for v in value:
            yield from _numbers(v)


def result_type(primitive: Any, types: Sequence[ArrayType], params: dict[str, Any]) -> ArrayType:
    """The type of a primitive's result for arguments of those types."""
    if primitive.name == "index":
        types, params = _within(types[0], params)
    places = [v.type for v in ir.vars_in(params.get(ir.PLACE))]
    variables = [*dims_in((*types, *places)), *sizes_in(params)]
    if not variables:
        params = ir.sampled(params)
        y = primitive.result(*types, **params)
        wrong = primitive.misfit(y, *types, **params)
        if wrong:
            raise ShapeError(f"{primitive.name}: {wrong}")
        return y
    pair = samples(variables, tuple(types), params)
    sampled = []
    for s in pair:
        try:
            sampled.append(primitive.result(*map(s.type, types), **ir.sampled(params, s.at)))
        except LinearaError as error:
            raise ShapeError(s.text(error.message)) from None
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(s.text(str(error))) from None
    first, second = sampled
    shape = tuple(
        [_dim(primitive.name, m, n, pair) for m, n in zip(first.shape, second.shape, strict=True)]
    )
    return ArrayType(shape, first.dtype)


def _within(t: ArrayType, params: dict[str, Any]) -> tuple[Sequence[ArrayType], dict[str, Any]]:
    """An array and an index whose part 0:m is all of an axis, which has that length then."""
    at = ir.parts_of(params[ir.PLACE])
    if not any([isinstance(p, slice) and any(ir.vars_in(p)) for p in at]):
        return (t,), params
    shape, parts = [*t.shape], []
    taken = [0 if p is None or p is ... else getattr(p, "ndim", 1) or 1 for p in at]
    axis = 0
    for p, n in zip(at, taken, strict=True):
        if isinstance(p, slice) and any(ir.vars_in(p)):
            if p.start not in (None, 0) or p.step not in (None, 1):
                raise ShapeError(
                    f"index: how long the part {_shown(p)} of {t} is has no name, and a dimension "
                    "is a number or an i64 formal; 0:m has the length m, and k elements from m on, "
                    "for such a k, are those at positions i: i64[k]: "
                    "let o = broadcast_to[shape=(k,)](1_i64) in "
                    "let i = cumsum[axis=0](o) + m - 1_i64 in index[at=(i,)](x)"
                )
            if axis >= t.ndim:
                raise ShapeError(f"index: {t} has no axis {axis}")
            shape[axis], p = p.stop, slice(None)
        parts.append(p)
        axis += t.ndim - sum(taken) if p is ... else n
    return (ArrayType(tuple(shape), t.dtype),), {**params, ir.PLACE: tuple(parts)}


def _shown(p: slice) -> str:
    """A slice as it is written."""
    ends = [p.start, p.stop, p.step][: 2 + (p.step is not None)]
    return ":".join(["" if v is None else repr(v) for v in ends])


def _dim(name: str, m: int, n: int, pair: tuple[Samples, Samples]) -> Any:
    """The dimension whose two samples were m and n."""
    one, two = pair
    v = one.of.get(m)
    if v is not None and two.of.get(n) is v:
        return v
    if m == n:
        return m
    raise ShapeError(
        f"{name}: a dimension of the result depends on {_formula(m, n, pair)}, which has no name; "
        "take it as an i64 formal, and bring the result to that shape"
    )


def _formula(m: int, n: int, pair: tuple[Samples, Samples]) -> str:
    """An expression in the variables that is m in the first sample and n in the second."""
    one, two = pair
    for v, p in one.at.items():
        q = two.at[v]
        if m - p == n - q:
            return f"{v!r} {'+' if m > p else '-'} {abs(m - p)}"
        if m % p == 0 == n % q and m // p == n // q:
            return f"{m // p} * {v!r}"
        for w, p2 in one.at.items():
            q2 = two.at[w]
            if (m, n) in ((p + p2, q + q2), (p * p2, q * q2)):
                return f"{v!r} {'+' if m == p + p2 else '*'} {w!r}"
    return " and ".join(map(repr, one.at))

"""Sums, extrema and products of matrices: loops over places of operands that lie in any order.

    folded     y[o] = Σ or max over s of the product of the operands at (o, s)
    summed, extreme, multiplied, contracted      the primitives, as axes of results and of sums

An axis is a length and how many elements apart its places are in each operand.  If the results of
the last axis lie beside each other in the operands too, whole rows are added, one s after the
other; else each result is made alone.  A long sum of what lies beside each other has 32 partial
sums, place i in the one i mod 32, which are added in a fixed order; so its rounding is the same on
every processor, and not NumPy's.  Larger products of matrices are the BLAS of SciPy.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.scalars import RULES, converted
from lineara.engines.native.strided import (
    Plain,
    at_offset,
    offset_of,
    steps_of,
    strides_of,
    type_of,
)
from lineara.engines.native.symbols import blas
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

LONG = 32
"""Terms from which a sum has partial sums."""
LARGE = 32**3
"""Products of numbers from which a product of matrices is the BLAS'."""


class Axis(NamedTuple):
    """The length of an axis, and the steps of each operand along it."""

    n: int
    steps: tuple[int, ...]


class How(NamedTuple):
    """What is folded: from what it starts, and what one more term makes of it."""

    start: float
    rule: str


SUM, MAX, MIN = How(0.0, "add"), How(-math.inf, "maximum"), How(math.inf, "minimum")
EXTREMA = {"max": MAX, "min": MIN}


def combined(em: Emitter, how: How, kind: str, a: nm.Num, b: nm.Num) -> nm.Num:
    """One term more."""
    if how.rule == "add":
        y = RULES["add"](em, kind, [a, b])
        assert y is not None
        return y
    f = em.outside(f"llvm.{how.rule}.f64", "double (double, double)")
    return nm.Num("f64", em.let(f"call double {f}(double {em.text(a)}, double {em.text(b)})"))


def term(em: Emitter, args: Sequence[Plain], at: Sequence[nm.Num], kind: str) -> nm.Num:
    """The product of the operands at their offsets."""
    numbers = [at_offset(em, x, i) for x, i in zip(args, at, strict=True)]
    cast = [x for number in numbers if (x := converted(em, number, kind)) is not None]
    assert len(cast) == len(args), "operands become what the result is"
    y = cast[0]
    for x in cast[1:]:
        product = RULES["multiply"](em, kind, [y, x])
        assert product is not None
        y = product
    return y


def folded(
    em: Emitter,
    args: Sequence[Plain],
    outs: Sequence[Axis],
    sums: Sequence[Axis],
    t: ArrayType,
    how: How = SUM,
) -> Plain:
    """The result of the type t, whose places are those of `outs`, in C order."""
    kind = nm.kind_of(t)
    assert kind is not None, "a register holds it"
    start = nm.constant(kind, how.start if kind == "f64" else 0)

    def alone(at: Sequence[nm.Num]) -> nm.Num:
        """One result, whose operands begin at these offsets."""
        merged = [a for a in sums if a.n != 1]
        beside = len(merged) == 1 and all([k == 1 for k in merged[0].steps])
        floats = all([isinstance(x, nm.Arr) and nm.kind_of(x.type) == "f64" for x in args])
        if how is SUM and floats and beside and merged[0].n >= LONG and len(args) <= 2:
            return long_sum(em, args, at, merged[0].n)
        cell = em.at_entry(f"alloca {nm.LLVM[kind]}")
        em.line(f"store {nm.LLVM[kind]} {em.text(start)}, ptr {cell}")
        with em.nest([a.n for a in sums], *steps(sums, len(args))) as more:
            places = [offset_of(em, i, j) for i, j in zip(at, more, strict=True)]
            now = nm.Num(kind, em.let(f"load {nm.LLVM[kind]}, ptr {cell}"))
            y = combined(em, how, kind, now, term(em, args, places, kind))
            em.line(f"store {nm.LLVM[kind]} {em.text(y)}, ptr {cell}")
        return nm.Num(kind, em.let(f"load {nm.LLVM[kind]}, ptr {cell}"))

    sums = merged_axes(sums)
    if not t.shape:
        return alone([nm.constant("i64", 0)] * len(args))
    with em.kept(args):
        y = em.array(t)
    shape = [a.n for a in outs]
    own = strides_of(shape)
    row = next((i for i in reversed(range(len(outs))) if outs[i].n != 1), None)
    if row is not None and sums and set(outs[row].steps) in ({1}, {0, 1}):
        with em.nest([t.size], [1]) as (i,):
            em.store(start, y, i)
        rest = [a for i, a in enumerate(outs) if i != row]
        mine = [k for i, k in enumerate(own) if i != row]
        axes = [*rest, *sums, outs[row]]
        mine += [0] * len(sums) + [1]
        with em.nest([a.n for a in axes], *steps(axes, len(args)), mine) as (*at, to):
            value = term(em, args, at, kind)
            em.store(combined(em, how, kind, em.load(y, to), value), y, to)
        return y
    with em.nest(shape, *steps(outs, len(args)), own) as (*at, to):
        em.store(alone(at), y, to)
    return y


def steps(axes: Sequence[Axis], k: int) -> list[list[int]]:
    """For each operand its steps along the axes."""
    return [[a.steps[i] for a in axes] for i in range(k)]


def merged_axes(axes: Sequence[Axis]) -> list[Axis]:
    """The axes without those of length one; two that go on into one another are one."""
    merged: list[Axis] = []
    for a in axes:
        if a.n == 1:
            continue
        if merged and merged[-1].steps == tuple([k * a.n for k in a.steps]):
            merged[-1] = Axis(merged[-1].n * a.n, a.steps)
        else:
            merged.append(a)
    return merged


# --- long sums ------------------------------------------------------------------------------------


def long_sum(em: Emitter, args: Sequence[Plain], at: Sequence[nm.Num], n: int) -> nm.Num:
    """The sum of n products of what lies beside each other, by 32 partial sums."""
    name = "lineara.sum" if len(args) == 1 else "lineara.dot"
    em.helpers[name] = partial_sums(name, len(args))
    for f, t in (("fadd", "double (double, <8 x double>)"),):
        em.outside(f"llvm.vector.reduce.{f}.v8f64", t)
    places = [em.address(x, i) for x, i in zip(args, at, strict=True) if isinstance(x, nm.Arr)]
    given = ", ".join([f"ptr {p}" for p in places])
    return nm.Num("f64", em.let(f'call double @"{name}"({given}, i64 {n})'))


def partial_sums(name: str, k: int) -> str:
    """The function that sums products of k rows: 4 vectors of 8, and what is left one by one."""
    rows = "xy"[:k]

    def product(lines: list[str], kind: str, at: str, to: str) -> None:
        for r in rows:
            lines.append(f"  %p{r}{to} = getelementptr inbounds double, ptr %{r}, i64 {at}")
            lines.append(f"  %v{r}{to} = load {kind}, ptr %p{r}{to}, align 8")
        if k == 2:
            lines.append(f"  %t{to} = fmul {kind} %vx{to}, %vy{to}")

    of = "%t" if k == 2 else "%vx"
    lines = [
        f'define internal double @"{name}"({", ".join([f"ptr %{r}" for r in rows])}, i64 %n) {{',
        "start:",
        "  %whole = and i64 %n, -32",
        "  br label %head",
        "head:",
        "  %i = phi i64 [0, %start], [%next, %body]",
    ]
    lines += [
        f"  %a{j} = phi <8 x double> [zeroinitializer, %start], [%b{j}, %body]" for j in range(4)
    ]
    lines += [
        "  %more = icmp ult i64 %i, %whole",
        "  br i1 %more, label %body, label %last",
        "body:",
    ]
    for j in range(4):
        lines.append(f"  %i{j} = add i64 %i, {8 * j}")
        product(lines, "<8 x double>", f"%i{j}", str(j))
        lines.append(f"  %b{j} = fadd <8 x double> %a{j}, {of}{j}")
    lines += [
        "  %next = add i64 %i, 32",
        "  br label %head",
        "last:",
        "  %c0 = fadd <8 x double> %a0, %a1",
        "  %c1 = fadd <8 x double> %a2, %a3",
        "  %c = fadd <8 x double> %c0, %c1",
        "  %sum = call double @llvm.vector.reduce.fadd.v8f64(double -0.0, <8 x double> %c)",
        "  br label %tail",
        "tail:",
        "  %k = phi i64 [%whole, %last], [%k1, %one]",
        "  %s = phi double [%sum, %last], [%s1, %one]",
        "  %some = icmp ult i64 %k, %n",
        "  br i1 %some, label %one, label %end",
        "one:",
    ]
    product(lines, "double", "%k", "e")
    lines += [
        f"  %s1 = fadd double %s, {of}e",
        "  %k1 = add i64 %k, 1",
        "  br label %tail",
        "end:",
        "  ret double %s",
        "}",
    ]
    return "\n".join(lines)


# --- primitives -----------------------------------------------------------------------------------


def summed(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """The sum over axes."""
    (x,) = args
    kinds = nm.kind_of(type_of(x)), nm.kind_of(t)
    if None in kinds or kinds[1] == "bool":
        return None
    return folded(em, args, *reduced(x, e.params["axis"]), t)


def extreme(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """The largest or the least over axes; of nothing there is none."""
    (x,) = args
    if nm.kind_of(type_of(x)) != "f64" or not type_of(x).size:
        return None
    return folded(em, args, *reduced(x, e.params["axis"]), t, EXTREMA[e.name])


def reduced(x: Plain, axis: Any) -> tuple[list[Axis], list[Axis]]:
    """The axes that stay and those that are folded."""
    shape, strides = type_of(x).shape, steps_of(x)
    gone = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    folds = {i % max(len(shape), 1) for i in gone}
    axes = [Axis(n, (k,)) for n, k in zip(shape, strides, strict=True)]
    return [a for i, a in enumerate(axes) if i not in folds], [axes[i] for i in sorted(folds)]


def multiplied(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """The product of matrices, or of stacks of them; of vectors the sum of products."""
    a, b = args
    if not (isinstance(a, nm.Arr) and isinstance(b, nm.Arr)):
        return None
    kinds = {nm.kind_of(a.type), nm.kind_of(b.type), nm.kind_of(t)}
    if None in kinds or "bool" in kinds:
        return None
    first = [*zip(a.type.shape, steps_of(a), strict=True)]
    second = [*zip(b.type.shape, steps_of(b), strict=True)]
    k, of_first = first.pop()
    _, of_second = second.pop(-2 if len(second) > 1 else -1)
    rows = [Axis(n, (s, 0)) for n, s in first[-1:]]
    columns = [Axis(n, (0, s)) for n, s in second[-1:]]
    lead = [
        Axis(max(n, m) if n and m else 0, (s if n != 1 else 0, r if m != 1 else 0))
        for (n, s), (m, r) in zip(padded(first[:-1], second[:-1]), padded(second[:-1], first[:-1]),
                                  strict=True)
    ]  # fmt: skip
    inner = Axis(k, (of_first, of_second))
    if not lead and rows and columns and kinds == {"f64"}:
        y = by_blas(em, (a, b), rows[0], columns[0], inner, t)
        if y is not None:
            return y
    return folded(em, args, [*lead, *rows, *columns], [inner], t)


def padded(axes: list[Any], other: list[Any]) -> list[Any]:
    """Axes with those before them that only the other has."""
    return [(1, 0)] * (len(other) - len(axes)) + axes


def contracted(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """A sum of products by letters."""
    kinds = {nm.kind_of(type_of(x)) for x in args} | {nm.kind_of(t)}
    if None in kinds or "bool" in kinds:
        return None
    inputs, _, output = str(e.params["subscripts"]).partition("->")
    sizes: dict[str, int] = {}
    along: list[dict[str, int]] = []
    for letters, x in zip(inputs.split(","), args, strict=True):
        steps_: dict[str, int] = {}
        for c, n, k in zip(letters, type_of(x).shape, steps_of(x), strict=True):
            sizes[c] = max(sizes.get(c, 1), n) if n else 0
            steps_[c] = steps_.get(c, 0) + (k if n != 1 else 0)
        along.append(steps_)
    axes = {c: Axis(n, tuple([s.get(c, 0) for s in along])) for c, n in sizes.items()}
    return folded(
        em, args, [axes[c] for c in output], [axes[c] for c in sizes if c not in output], t
    )


# --- BLAS -----------------------------------------------------------------------------------------


def by_blas(
    em: Emitter, args: tuple[nm.Arr, nm.Arr], rows: Axis, columns: Axis, inner: Axis, t: ArrayType
) -> nm.Arr | None:
    """C = A B by dgemm, to which arrays in C order are transposed ones: C' = B' A'."""
    m, n, k = rows.n, columns.n, inner.n
    dgemm = blas("dgemm")
    if m * n * k < LARGE or min(m, n, k) < 4 or dgemm is None or max(m, n, k) >= 2**31:
        return None
    flags: list[str] = []
    leading: list[int] = []
    for i, along, across in ((1, columns, inner), (0, inner, rows)):
        near, far = along.steps[i], across.steps[i]
        if near == 1 and far >= max(along.n, 1):
            flags.append("N")
            leading.append(far)
        elif far == 1 and near >= max(across.n, 1):
            flags.append("T")
            leading.append(near)
        else:
            return None
    with em.kept(args):
        y = em.array(t)
    a, b = args
    places = []
    for value in (n, m, k, *leading, n):
        places.append(em.at_entry("alloca i32"))
        em.line(f"store i32 {value}, ptr {places[-1]}")
    letters = []
    for flag in flags:
        letters.append(em.at_entry("alloca i8"))
        em.line(f"store i8 {ord(flag)}, ptr {letters[-1]}")
    factors = []
    for value in (1.0, 0.0):
        factors.append(em.at_entry("alloca double"))
        em.line(f"store double {value}, ptr {factors[-1]}")
    f = em.outside("blas.dgemm", f"void ({', '.join(['ptr'] * 13)})")
    em.addresses["blas.dgemm"] = dgemm
    n_, m_, k_, of_b, of_a, of_y = places
    given = [
        *letters, n_, m_, k_, factors[0], em.address(b), of_b, em.address(a), of_a, factors[1],
        em.address(y), of_y,
    ]  # fmt: skip
    em.line(f"call void {f}({', '.join([f'ptr {p}' for p in given])})")
    return y


__all__ = ["contracted", "extreme", "multiplied", "summed"]

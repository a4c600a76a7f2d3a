"""Sums, products, extrema and products of matrices: loops over places of operands in any order.

    folded     y[o] = Σ, Π or max over s of the product of the operands at (o, s)
    reduction, multiplied, contracted      the primitives, as axes of results and of sums

An axis is a length and how many elements apart its places are in each operand.  If the results of
the last axis lie beside each other in the operands too, whole rows are added, one s after the
other; else each result is made alone.  A long sum of what lies beside each other has 32 partial
sums, place i in the one i mod 32, which are added in a fixed order; so its rounding is the same on
every processor, and not NumPy's.  A result of float32 that is made alone and has none is a sum of
float64, rounded at the end.  Larger products of matrices are the BLAS of SciPy.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.native import complexes
from lineara.engines.native import numbers as nm
from lineara.engines.native.alone import alone
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
WIDE = 32
"""Results beside each other that are folded as one vector, which registers hold."""
REUSED = 8
"""How often a number of an operand is read if the operand is copied into another order."""
LARGE = 32**3
"""Products of numbers from which a product of matrices is the BLAS', a convolution NumPy's."""


class Axis(NamedTuple):
    """The length of an axis, and the steps of each operand along it."""

    n: int
    steps: tuple[int, ...]


class How(NamedTuple):
    """What is folded: from what it starts, and what one more term makes of it."""

    start: float
    rule: str


SUM, PRODUCT = How(0.0, "add"), How(1.0, "multiply")
MAX, MIN = How(-math.inf, "maximum"), How(math.inf, "minimum")
HOW = {"sum": SUM, "ties": SUM, "count_nonzero": SUM, "prod": PRODUCT, "max": MAX, "min": MIN}


def combined(em: Emitter, how: How, kind: str, a: nm.Num, b: nm.Num) -> nm.Num:
    """One term more."""
    if how in (SUM, PRODUCT):
        y = RULES[how.rule](em, kind, [a, b])
        assert y is not None
        return y
    t = nm.LLVM[kind]
    f = em.outside(f"llvm.{how.rule}.{kind}", f"{t} ({t}, {t})")
    return nm.Num(kind, em.let(f"call {t} {f}({t} {em.text(a)}, {t} {em.text(b)})"))


def term(em: Emitter, args: Sequence[Plain], at: Sequence[nm.Num], kind: str) -> nm.Num:
    """The product of the operands at their offsets."""
    numbers = [at_offset(em, x, i) for x, i in zip(args, at, strict=True)]
    cast = [x for number in numbers if (x := converted(em, number, kind)) is not None]
    assert len(cast) == len(args), "operands become what the result is"
    y = cast[0]
    for x in cast[1:]:
        z = complexes.product(em, y, x) if kind == "c128" else RULES["multiply"](em, kind, [y, x])
        assert z is not None
        y = z
    return y


def folded(
    em: Emitter,
    args: Sequence[Plain],
    outs: Sequence[Axis],
    sums: Sequence[Axis],
    t: ArrayType,
    how: How = SUM,
    so_far: nm.Arr | None = None,
) -> Plain:
    """The result of the type t, whose places are those of `outs`, in C order.

    `so_far` has what was folded before, and gets the result.
    """
    kind = nm.kind_of(t)
    assert kind is not None, "a register holds it"
    start = initial(how, kind)

    def alone(at: Sequence[nm.Num], begin: nm.Num) -> nm.Num:
        """One result, whose operands begin at these offsets."""
        if so_far is None and how is SUM and is_long(args, sums):
            return long_sum(em, args, at, sums[0].n, kind)
        counted = how is SUM and {nm.kind_of(type_of(x)) for x in args} == {"bool"}
        of = "i64" if counted else "f64" if how is SUM and kind == "f32" else kind
        first = begin if of == kind else initial(how, of)
        cell = em.at_entry(f"alloca {nm.LLVM[of]}")
        em.line(f"store {nm.LLVM[of]} {em.text(first)}, ptr {cell}")
        with em.nest([a.n for a in sums], *steps(sums, len(args))) as more:
            places = [offset_of(em, i, j) for i, j in zip(at, more, strict=True)]
            now = nm.Num(of, em.let(f"load {nm.LLVM[of]}, ptr {cell}"))
            y = combined(em, how, of, now, term(em, args, places, of))
            em.line(f"store {nm.LLVM[of]} {em.text(y)}, ptr {cell}")
        y = nm.Num(of, em.let(f"load {nm.LLVM[of]}, ptr {cell}"))
        if of == kind:
            return y
        total = converted(em, y, kind)
        assert total is not None, "a count has every kind, and a double may be rounded"
        # of whole numbers the order is free; of float32 nothing was there before
        return combined(em, how, kind, begin, total)

    sums = merged_axes(sums)
    if sums and not is_long(args, sums):
        args, outs, sums = packed(em, args, outs, sums)
    if not t.shape:
        y = alone([nm.constant("i64", 0)] * len(args), em.load(so_far) if so_far else start)
        if so_far:
            em.store(y, so_far)
        return y
    with em.kept(args):
        y = so_far or em.array(t)
    shape = [a.n for a in outs]
    own = strides_of(shape)
    row = row_among(outs, sums)
    if row is not None:
        if so_far is None:
            filled(em, start, y)
        rest = [a for i, a in enumerate(outs) if i != row]
        mine = [k for i, k in enumerate(own) if i != row]
        if outs[row].n <= WIDE and is_of_floats(args, kind):
            spent = outs[row].n * terms_of(sums)
            with em.nest([a.n for a in rest], *steps(rest, len(args)), mine, spent=spent) as (
                *at, to,
            ):  # fmt: skip
                row_of(em, args, at, outs[row], sums, how, y, to)
            return y
        axes = [*rest, *sums, outs[row]]
        mine += [0] * len(sums) + [1]
        with em.nest([a.n for a in axes], *steps(axes, len(args)), mine) as (*at, to):
            value = term(em, args, at, kind)
            em.store(combined(em, how, kind, em.load(y, to), value), y, to)
        return y
    with em.nest(shape, *steps(outs, len(args)), own, spent=terms_of(sums)) as (*at, to):
        em.store(alone(at, em.load(y, to) if so_far else start), y, to)
    return y


def row_among(outs: Sequence[Axis], sums: Sequence[Axis]) -> int | None:
    """The last axis of the results, if they lie beside each other in the operands too."""
    row = next((i for i in reversed(range(len(outs))) if outs[i].n != 1), None)
    return row if row is not None and sums and set(outs[row].steps) in ({1}, {0, 1}) else None


def is_of_floats(args: Sequence[Plain], kind: str) -> bool:
    """Whether operands and results are floats of one kind."""
    return {nm.kind_of(type_of(x)) for x in args} == {kind} and kind in nm.FLOATS


def packed(
    em: Emitter, args: Sequence[Plain], outs: Sequence[Axis], sums: Sequence[Axis]
) -> tuple[Sequence[Plain], Sequence[Axis], Sequence[Axis]]:
    """Operands read many times are copied so that they lie along the last axis of the result."""
    row = next((i for i in reversed(range(len(outs))) if outs[i].n != 1), None)
    if row is None:
        return args, outs, sums
    axes = [*outs, *sums]
    terms = math.prod([a.n for a in axes])
    args = list(args)
    for i, x in enumerate(args):
        step = axes[row].steps[i]
        own = [j for j, a in enumerate(axes) if a.steps[i] and j != row]
        size = axes[row].n * math.prod([axes[j].n for j in own])
        if step in (0, 1) or not isinstance(x, nm.Arr) or REUSED * size > terms:
            continue
        shape = tuple([axes[j].n for j in (*own, row)])
        with em.kept(args):
            y = em.array(ArrayType(shape, x.type.dtype))
        old = [axes[j].steps[i] for j in (*own, row)]
        new = dict(zip((*own, row), strides_of(shape), strict=True))
        with em.nest(shape, old, [*new.values()]) as (of, to):
            em.store(em.load(x, of), y, to)
        args[i] = y
        axes = [
            Axis(a.n, tuple([new.get(j, 0) if k == i else s for k, s in enumerate(a.steps)]))
            for j, a in enumerate(axes)
        ]
    return args, axes[: len(outs)], axes[len(outs) :]


def row_of(
    em: Emitter,
    args: Sequence[Plain],
    at: Sequence[nm.Num],
    row: Axis,
    sums: Sequence[Axis],
    how: How,
    y: nm.Arr,
    to: nm.Num,
) -> None:
    """Results that lie beside each other and go on from what y has: a vector while it is folded."""
    if not row.n:  # LLVM has no vector of none
        return
    kind = nm.kind_of(y.type) or ""
    t, near = nm.LLVM[kind], f"align {y.type.dtype.itemsize}"
    vector = f"<{row.n} x {t}>"
    cell = em.at_entry(f"alloca {vector}, align 64")
    so_far = em.let(f"load {vector}, ptr {em.address(y, to)}, {near}")
    em.line(f"store {vector} {so_far}, ptr {cell}")
    with em.nest([a.n for a in sums], *steps(sums, len(args))) as more:
        value = ""
        for x, step, i, j in zip(args, row.steps, at, more, strict=True):
            place = offset_of(em, i, j)
            if step:
                assert isinstance(x, nm.Arr), "it has steps"
                factor = em.let(f"load {vector}, ptr {em.address(x, place)}, {near}")
            else:
                number = em.text(at_offset(em, x, place))
                one = em.let(f"insertelement {vector} poison, {t} {number}, i64 0")
                factor = em.let(
                    f"shufflevector {vector} {one}, {vector} poison, "
                    f"<{row.n} x i32> zeroinitializer"
                )
            value = em.let(f"fmul {vector} {value}, {factor}") if value else factor
        now = em.let(f"load {vector}, ptr {cell}")
        if how in (SUM, PRODUCT):
            now = em.let(f"{'fadd' if how is SUM else 'fmul'} {vector} {now}, {value}")
        else:
            f = em.outside(f"llvm.{how.rule}.v{row.n}{kind}", f"{vector} ({vector}, {vector})")
            now = em.let(f"call {vector} {f}({vector} {now}, {vector} {value})")
        em.line(f"store {vector} {now}, ptr {cell}")
    last = em.let(f"load {vector}, ptr {cell}")
    em.line(f"store {vector} {last}, ptr {em.address(y, to)}, {near}")


def initial(how: How, kind: str) -> nm.Num:
    """From what a fold begins."""
    return nm.constant(kind, how.start if kind in nm.FLOATS else int(how is PRODUCT))


def filled(em: Emitter, x: nm.Num, y: nm.Arr) -> None:
    """A number in all places of an array in C order."""
    with em.nest([y.type.size], [1]) as (i,):
        em.store(x, y, i)


def is_long(args: Sequence[Plain], sums: Sequence[Axis]) -> bool:
    """Whether a sum has partial sums: it is of floats that lie beside each other."""
    beside = len(sums) == 1 and set(sums[0].steps) == {1} and sums[0].n >= LONG
    return beside and is_of_floats(args, nm.kind_of(type_of(args[0])) or "") and len(args) <= 2


def terms_of(sums: Sequence[Axis]) -> int:
    """How many terms a sum has."""
    return math.prod([a.n for a in sums])


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


def long_sum(em: Emitter, args: Sequence[Plain], at: Sequence[nm.Num], n: int, kind: str) -> nm.Num:
    """The sum of n products of what lies beside each other, by 32 partial sums."""
    name = "lineara.sum" if len(args) == 1 else "lineara.dot"
    places = [em.address(x, i) for x, i in zip(args, at, strict=True) if isinstance(x, nm.Arr)]
    return of_partial_sums(em, name, kind, places, n)


def of_partial_sums(
    em: Emitter, name: str, kind: str, places: Sequence[str], n: int, sums: str = ""
) -> nm.Num:
    """Call a function of partial sums, which are in memory if it goes on with them."""
    name, t = f"{name}.{kind}", nm.LLVM[kind]
    em.helpers[name] = partial_sums(name, kind, len(places), bool(sums))
    given = ", ".join([f"ptr {p}" for p in (*places, *[sums] * bool(sums))])
    return nm.Num(kind, em.let(f'call {t} @"{name}"({given}, i64 {n})'))


def partial_sums(name: str, kind: str, k: int, goes_on: bool) -> str:
    """The function that sums products of k rows: 4 vectors of 8, and what is left one by one.

    Sums are doubles, so that those of many float32s are rounded once.  If it goes on, the vectors
    are what memory has, and end there too.
    """
    rows, t = "xy"[:k], nm.LLVM[kind]
    v, near = "<8 x double>", f"align {nm.TYPES[kind].dtype.itemsize}"
    sums = range(4 if goes_on else 0)
    is_wide = t == "double"

    def product(lines: list[str], of: str, at: str, to: str) -> None:
        for r in rows:
            read = "v" if is_wide else "r"
            narrow = of.replace("double", t)
            lines.append(f"  %p{r}{to} = getelementptr inbounds {t}, ptr %{r}, i64 {at}")
            lines.append(f"  %{read}{r}{to} = load {narrow}, ptr %p{r}{to}, {near}")
            if not is_wide:
                lines.append(f"  %v{r}{to} = fpext {narrow} %r{r}{to} to {of}")
        if k == 2:
            lines.append(f"  %t{to} = fmul {of} %vx{to}, %vy{to}")

    of = "%t" if k == 2 else "%vx"
    lines = [
        f'define internal {t} @"{name}"('
        f"{', '.join([f'ptr %{r}' for r in (*rows, *['sums'] * goes_on)])}, i64 %n) {{",
        "start:",
        *[f"  %q{j} = getelementptr inbounds double, ptr %sums, i64 {8 * j}" for j in sums],
        *[f"  %m{j} = load {v}, ptr %q{j}, align 8" for j in sums],
        "  %whole = and i64 %n, -32",
        "  br label %head",
        "head:",
        "  %i = phi i64 [0, %start], [%next, %body]",
    ]
    for j in range(4):
        first = f"%m{j}" if goes_on else "zeroinitializer"
        lines.append(f"  %a{j} = phi {v} [{first}, %start], [%b{j}, %body]")
    lines += [
        "  %more = icmp ult i64 %i, %whole",
        "  br i1 %more, label %body, label %last",
        "body:",
    ]
    for j in range(4):
        lines.append(f"  %i{j} = add i64 %i, {8 * j}")
        product(lines, v, f"%i{j}", str(j))
        lines.append(f"  %b{j} = fadd {v} %a{j}, {of}{j}")
    lines += [
        "  %next = add i64 %i, 32",
        "  br label %head",
        "last:",
        *[f"  store {v} %a{j}, ptr %q{j}, align 8" for j in sums],
        f"  %c0 = fadd {v} %a0, %a1",
        f"  %c1 = fadd {v} %a2, %a3",
        f"  %c = fadd {v} %c0, %c1",
        f"  %sum = call double @llvm.vector.reduce.fadd.v8f64(double -0.0, {v} %c)",
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
        *["  ret double %s"] * is_wide,
        *["  %single = fptrunc double %s to float", "  ret float %single"] * (not is_wide),
        "}",
    ]
    return "\n".join(lines)


# --- folds that go on from block to block ---------------------------------------------------------


class Going(NamedTuple):
    """A fold over rows that come in blocks: results so far, or partial sums of a long one."""

    e: ir.Prim
    t: ArrayType
    so_far: nm.Arr
    is_long: bool
    total: nm.Num | None = None  # after a block of a long one


def gone(e: ir.Prim, t: ArrayType) -> set[int]:
    """The axes that are folded."""
    axis = e.params.get("axis")
    every = range(t.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return {i % max(t.ndim, 1) for i in every}


def goes_on(em: Emitter, e: ir.Prim, x: nm.Arr, t: ArrayType) -> bool:
    """Whether a fold may come in blocks: if it has code."""
    if em.exact or FOLDS[e.name](em, e, [x], t) is None:
        return False
    if is_partial(x, e):
        return not t.shape  # partial sums are those of one number
    in_rows = row_among(*reduced(x, e)) is not None
    return in_rows or HOW[e.name] is not SUM or nm.kind_of(t) != "f32"  # that is rounded at the end


def is_partial(x: nm.Arr, e: ir.Prim) -> bool:
    """Whether results are sums by partial sums."""
    return HOW[e.name] is SUM and is_long([x], merged_axes(reduced(x, e)[1]))


def begun(em: Emitter, e: ir.Prim, x: nm.Arr, t: ArrayType) -> Going:
    """A fold of an array, of which no row was there yet."""
    how, kind = HOW[e.name], nm.kind_of(t)
    assert kind is not None, "a register holds it"
    long = not t.shape and is_partial(x, e)
    n = LONG if long else 1
    if t.shape:
        cell = em.array(t)
    else:
        kind = "f64" if long else kind
        register = em.at_entry(f"alloca [{n} x {nm.LLVM[kind]}], align 64")
        shape = (n,) if long else ()
        dtype = nm.TYPES[kind].dtype
        buffer = nm.Buffer(register, dtype.itemsize * n, True)
        cell = nm.Arr(buffer, ArrayType(shape, dtype))
    filled(em, initial(how, kind), cell)
    return Going(e, t, cell, long)


def gone_on(em: Emitter, going: Going, x: nm.Arr) -> Going:
    """The fold after another block; of a long one all but the last are whole vectors."""
    if going.is_long:
        sums, kind = going.so_far.buffer.register, nm.kind_of(x.type) or ""
        total = of_partial_sums(em, "lineara.sum.on", kind, [em.address(x)], x.type.size, sums)
        return going._replace(total=total)
    rule = FOLDS[going.e.name]
    rule(em, going.e, [x], going.t, going.so_far)
    return going


def ended(em: Emitter, going: Going, is_open: bool) -> Plain:
    """The result; `is_open`: whether a loop has the last block."""
    if not going.is_long:
        return going.so_far if going.t.shape else em.load(going.so_far)
    if not is_open and going.total is not None:
        return going.total
    sums, kind = going.so_far.buffer.register, nm.kind_of(going.t) or ""
    return of_partial_sums(em, "lineara.sum.on", kind, [sums], 0, sums)


# --- primitives -----------------------------------------------------------------------------------


def reduction(
    em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType, so_far: nm.Arr | None = None
) -> Plain | None:
    """The sum, the product, the largest or the least over axes, or how many are true."""
    (x,), how = args, HOW[e.name]
    of, kind = nm.kind_of(type_of(x)), nm.kind_of(t)
    if how is MAX or how is MIN:  # of nothing there is none
        fits = of in nm.FLOATS and type_of(x).size > 0
    elif e.name == "count_nonzero":
        fits = of == "bool"
    else:
        complex_product = how is PRODUCT and kind == "c128"
        fits = None not in (of, kind) and kind != "bool" and not complex_product
        fits = fits and (of not in nm.FLOATS or of == kind)
    return folded(em, args, *reduced(x, e), t, how, so_far) if fits else None


def how_many(em: Emitter, x: nm.Arr) -> Plain:
    """How many of an array's booleans are true."""
    axes = [Axis(n, (k,)) for n, k in zip(x.type.shape, steps_of(x), strict=True)]
    return folded(em, [x], [], axes, ArrayType((), np.dtype(np.int64)))


FOLDS = dict.fromkeys(HOW, reduction)


def reduced(x: Plain, e: ir.Prim) -> tuple[list[Axis], list[Axis]]:
    """The axes that stay and those that are folded."""
    shape, strides = type_of(x).shape, steps_of(x)
    folds = gone(e, type_of(x))
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
    return products(em, args, [*lead, *rows, *columns], [inner], t)


def products(
    em: Emitter, args: Sequence[Plain], outs: Sequence[Axis], sums: Sequence[Axis], t: ArrayType
) -> Plain | None:
    """Sums of products, by the BLAS if they are large, in the kind of an operand."""
    if nm.kind_of(t) not in [nm.kind_of(type_of(x)) for x in args]:
        return None
    y = by_blas(em, args, outs, sums, t)
    return folded(em, args, outs, sums, t) if y is None else y


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
    return products(
        em, args, [axes[c] for c in output], [axes[c] for c in sizes if c not in output], t
    )


def correlated(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """The sum of products of a vector and each window of as many elements of another."""
    (first,), (second,) = map(steps_of, args)
    (n,) = type_of(args[1]).shape
    if n * t.size >= LARGE or nm.kind_of(t) is None:
        return None  # NumPy sums each window by the BLAS, or in numbers that no register holds
    return products(em, args, [Axis(t.size, (first, 0))], [Axis(n, (first, second))], t)


def convolved(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """The sums of the products whose places add up to the same."""
    kinds, kind = [nm.kind_of(type_of(x)) for x in args], nm.kind_of(t)
    shape = sorted([type_of(x).size for x in args])
    is_large = math.prod(shape) >= LARGE
    if kind is None or kind == "bool" or kind not in kinds or None in kinds or is_large:
        return None
    args = sorted(args, key=lambda x: type_of(x).size)  # rounds within are of the longer one
    (first,), (second,) = map(steps_of, args)
    with em.kept(args):
        y = em.array(t)
    filled(em, nm.constant(kind, 0.0), y)
    with em.nest(shape, [first, 0], [0, second], [1, 1]) as (i, j, to):
        value = term(em, args, [i, j], kind)
        em.store(combined(em, SUM, kind, em.load(y, to), value), y, to)
    return y


# --- BLAS -----------------------------------------------------------------------------------------


class Product(NamedTuple):
    """A product of matrices, perhaps for each place of other axes; steps are of a, b and result."""

    a: Plain
    b: Plain
    lead: list[Axis]
    rows: Axis  # of a and the result
    columns: Axis  # of b and the result, where they lie beside each other
    inner: Axis


READ_BY: dict[tuple[int, ...], str] = {
    (1, 0, 1): "rows",
    (0, 1, 1): "columns",
    (1, 1, 0): "inner",
    (1, 1, 1): "lead",
}


def product_of(args: Sequence[Plain], outs: Sequence[Axis], sums: Sequence[Axis]) -> Product | None:
    """A sum of products as a product of matrices, if it is one."""
    own = strides_of([x.n for x in outs])
    axes = [Axis(x.n, (*x.steps, k)) for x, k in zip(outs, own, strict=True)]
    axes = merged_axes([*axes, *[Axis(x.n, (*x.steps, 0)) for x in sums]])
    a, b = args
    if any([x.steps[2] == 1 and not x.steps[1] for x in axes]):  # C' = B' A'
        a, b, axes = b, a, [Axis(x.n, (x.steps[1], x.steps[0], x.steps[2])) for x in axes]
    groups: dict[str, list[Axis]] = {"rows": [], "columns": [], "inner": [], "lead": []}
    for x in axes:
        group = READ_BY.get(tuple([int(k != 0) for k in x.steps]))
        if group is None:
            return None
        groups[group].append(x)
    rows, columns, inner, lead = groups.values()
    if not rows or not columns or len(inner) != 1 or columns[-1].steps[2] != 1:
        return None
    rows.sort(key=lambda x: x.n)
    return Product(a, b, [*lead, *rows[:-1], *columns[:-1]], rows[-1], columns[-1], inner[0])


def by_blas(
    em: Emitter, args: Sequence[Plain], outs: Sequence[Axis], sums: Sequence[Axis], t: ArrayType
) -> nm.Arr | None:
    """C = A B by gemm, to which arrays in C order are transposed ones: C' = B' A'."""
    kind = nm.kind_of(t) or ""
    name = {"f64": "dgemm", "f32": "sgemm", "c128": "zgemm"}.get(kind)
    if len(args) != 2 or {nm.kind_of(type_of(x)) for x in args} != {kind} or not (t.size and name):
        return None
    address, product = blas(name), product_of(args, outs, sums)
    if address is None or product is None:
        return None
    a, b, lead, rows, columns, inner = product
    m, n, k = rows.n, columns.n, inner.n
    if m * n * k < LARGE or min(m, n, k) < 4 or (lead and k < LONG):
        return None
    flags: list[str] = []
    leading: list[int] = []
    for i, along, across in ((1, columns, inner), (0, inner, rows)):
        near, far = along.steps[i], across.steps[i]
        if near == 1 and far >= along.n:
            flags.append("N")
            leading.append(far)
        elif far == 1 and near >= across.n:
            flags.append("T")
            leading.append(near)
        else:
            return None
    numbers = (n, m, k, *leading, rows.steps[2])
    if max(numbers) >= 2**31:
        return None
    with em.kept(args):
        y = em.array(t)
    places = []
    for value in numbers:
        places.append(em.at_entry("alloca i32"))
        em.line(f"store i32 {value}, ptr {places[-1]}")
    letters = []
    for flag in flags:
        letters.append(em.at_entry("alloca i8"))
        em.line(f"store i8 {ord(flag)}, ptr {letters[-1]}")
    factors = []
    for value in (1.0, 0.0):
        factors.append(em.boxed(nm.constant(kind, value)))
    f = em.outside(f"blas.{name}", f"void ({', '.join(['ptr'] * 13)})")
    em.addresses[f"blas.{name}"] = address
    n_, m_, k_, of_b, of_a, of_y = places
    assert isinstance(a, nm.Arr), "it has axes"
    assert isinstance(b, nm.Arr), "it has axes"
    before, after = alone(em, max(m * k, k * n, m * n))
    em.lines += before
    with em.nest([x.n for x in lead], *steps(lead, 3)) as at:
        of = [em.address(x, i) for x, i in zip((a, b, y), at, strict=True)]
        given = [
            *letters, n_, m_, k_, factors[0], of[1], of_b, of[0], of_a, factors[1], of[2], of_y,
        ]  # fmt: skip
        em.line(f"call void {f}({', '.join([f'ptr {p}' for p in given])})")
    em.lines += after
    return y


__all__ = ["contracted", "how_many", "multiplied", "reduction"]

"""Primitives of arrays: elements are read and written in place, elementwise ones are one loop.

What has no code here is called back: the interpreter's own evaluation, on the buffers.  A result
that NumPy does not lay out in C order, as LAPACK's, would make later sums another order than the
interpreter's, so the run is given up there; and a primitive that sums does not take an array of two
axes or more that NumPy may have laid out otherwise.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.engines.interpreter import Machine
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.scalars import RULES, converted, pythons
from lineara.engines.native.symbols import Loop, adds_as_sum, numpy_loop
from lineara.facts.primitive import Constant, Elementwise, Structural
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

Plain = nm.Num | nm.Arr
INDEX = ArrayType((), np.dtype(np.int64))


def plain(x: nm.Held) -> Plain:
    """A number or an array."""
    if not isinstance(x, nm.Num | nm.Arr):
        raise nm.Refused("it calculates with a whole product, sum or stack")
    return x


def type_of(x: Plain) -> ArrayType:
    """The type of a number or an array."""
    return x.type if isinstance(x, nm.Arr) else TYPES[x.kind]


TYPES = {
    "f64": ArrayType((), np.dtype(float)),
    "i64": INDEX,
    "bool": ArrayType((), np.dtype(bool)),
}


def primitive(
    em: Emitter, e: ir.Prim, held: Sequence[nm.Held], at: dict[ir.Var, nm.Held], t: ArrayType
) -> nm.Held:
    """The value of a primitive, by the first that has code for it."""
    if e.name == "live_factor" and em.demand.trusts(e):
        return trusted(em, plain(held[1]), t)
    args = list(map(plain, held))
    if e.name.startswith("check_"):
        return checked(em, e, args, at)
    numbers = [x for x in args if isinstance(x, nm.Num)]
    kind = nm.kind_of(t)
    if getattr(e.primitive, "pythons", False):
        kinds = {x.kind for x in numbers}
        if "bool" in kinds or (e.name.startswith("math_") and kinds - {"f64"}):
            raise nm.Refused(f"it has {e.name} of numbers that are no floats")
    y: nm.Held = None
    if len(numbers) == len(args) and kind is not None and not t.shape:
        y = of_numbers(em, e, numbers, at, kind, t)
    elif e.name in OF_ARRAYS:
        y = OF_ARRAYS[e.name](em, e, args, at, t)
    elif kind is not None:
        y = elementwise(em, e, args, t, kind)
    return called_back(em, e, at, t) if y is None else y


def trusted(em: Emitter, x: Plain, t: ArrayType) -> Plain:
    """A factor as it is; a run in which one is not finite starts again, with masks."""
    if isinstance(x, nm.Arr):
        with em.each(x.type.size) as i:
            em.trust(em.load(x, i))
    else:
        em.trust(x)
    return x if type_of(x).shape == t.shape else broadcast(em, x, t)


def of_numbers(
    em: Emitter, e: ir.Prim, args: list[nm.Num], at: dict[ir.Var, nm.Held], kind: str, t: ArrayType
) -> nm.Num | None:
    """A number of numbers."""
    if getattr(e.primitive, "pythons", False):

        def slow() -> nm.Num:
            y = called_back(em, e, at, t)
            assert isinstance(y, nm.Num)
            return y

        return pythons(em, e.name, kind, args, slow)
    rule = RULES.get(e.name)
    y = rule and rule(em, kind, args)
    return y or by_loop(em, e, args, t, kind)


def elementwise(
    em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, kind: str
) -> nm.Arr | None:
    """An array of arrays of its shape, and of numbers."""
    if any(
        [
            isinstance(x, nm.Arr) and (x.type.shape != t.shape or not nm.kind_of(x.type))
            for x in args
        ]
    ):
        return None
    sure = t.ndim < 2 or all([x.as_numpys for x in args if isinstance(x, nm.Arr)])
    rule = RULES.get(e.name)
    if rule is None:
        return by_loop(em, e, args, t, kind)
    with em.trial():
        numbers = [em.load(x) if isinstance(x, nm.Arr) else x for x in args]
        if rule(em, kind, numbers) is None:
            return by_loop(em, e, args, t, kind)
    with em.kept(args):
        y = em.array(t)._replace(as_numpys=sure)
    with em.each(t.size) as i:
        numbers = [em.load(x, i) if isinstance(x, nm.Arr) else x for x in args]
        value = rule(em, kind, numbers)
        assert value is not None
        em.store(value, y, i)
    return y


def by_loop(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType, kind: str) -> Any:
    """The value by the loop of a ufunc, if it has one for these kinds."""
    if not isinstance(e.primitive, Elementwise | Constant) or e.params:
        return None
    f = getattr(e.primitive, "array", getattr(np, e.name, None))
    if not isinstance(f, np.ufunc) or f.nout != 1:
        return None
    kinds = tuple([nm.kind_of(type_of(x)) or "" for x in args])
    loop = numpy_loop(f, kinds, kind) if len(args) == f.nin else None
    if loop is None:
        return None
    sure = t.ndim < 2 or all([x.as_numpys for x in args if isinstance(x, nm.Arr)])
    with em.kept(args):
        y = em.array(t)._replace(as_numpys=sure) if t.shape else None
    places = []
    for x in args:
        places.append(em.address(x) if isinstance(x, nm.Arr) else boxed(em, x))
    places.append(em.address(y) if y else em.at_entry("alloca i64"))
    whole = [t.dtype.itemsize if t.shape else 0]
    steps = [x.type.dtype.itemsize if isinstance(x, nm.Arr) else 0 for x in args] + whole
    looped(em, f"numpy.{f.__name__}.{''.join(kinds)}.{kind}", loop, places, t.size, steps)
    if y is not None:
        return y
    if kind == "bool":
        byte = em.let(f"load i8, ptr {places[-1]}")
        return nm.Num(kind, em.let(f"trunc i8 {byte} to i1"))
    return nm.Num(kind, em.let(f"load double, ptr {places[-1]}"))


def boxed(em: Emitter, x: nm.Num) -> str:
    """The address of a number."""
    place = em.at_entry("alloca i64")
    value, kind = em.text(x), {"f64": "double", "i64": "i64", "bool": "i8"}[x.kind]
    if x.kind == "bool":
        value = em.let(f"zext i1 {value} to i8")
    em.line(f"store {kind} {value}, ptr {place}")
    return place


def looped(
    em: Emitter, name: str, loop: Loop, places: Sequence[str], n: int, steps: Sequence[int]
) -> None:
    """Call a loop of NumPy's."""
    k = len(places)
    given = em.at_entry(f"alloca [{k} x ptr]")
    sizes = em.at_entry("alloca i64")
    strides = em.at_entry(f"alloca [{k} x i64]")
    em.line(f"store i64 {n}, ptr {sizes}")
    for i, (place, step) in enumerate(zip(places, steps, strict=True)):
        for table, kind, value in ((given, "ptr", place), (strides, "i64", step)):
            where = em.let(f"getelementptr inbounds i64, ptr {table}, i64 {i}")
            em.line(f"store {kind} {value}, ptr {where}")
    f = em.outside(name, "void (ptr, ptr, ptr, ptr)")
    em.addresses[name] = loop.address
    data = "null"
    if loop.data:  # by its name too, so that the text is one in every process
        data = em.outside(f"{name}.data", "void ()")
        em.addresses[f"{name}.data"] = loop.data
    em.line(f"call void {f}(ptr {given}, ptr {sizes}, ptr {strides}, ptr {data})")


# --- calling back ---------------------------------------------------------------------------------


def called_back(em: Emitter, e: ir.Leaf, at: dict[ir.Var, nm.Held], t: ArrayType) -> Plain:
    """What the interpreter makes of a leaf, on values that are its own."""
    operands = [plain(x) for x in at.values()]
    sure = all([x.as_numpys for x in operands if isinstance(x, nm.Arr)])
    if isinstance(e, ir.Prim) and not sure:
        moves = isinstance(e.primitive, Elementwise | Constant | Structural)
        if not (moves or e.name in ("where", "keep")):
            raise nm.Refused(
                f"{e.name} sums an array that NumPy may have laid out in another order"
            )
    machine = Machine(em.program)

    def answer(values: list[Any]) -> Sequence[Any]:
        env = dict(zip(at, values, strict=True))
        args = [env[a] for a in e.args]
        return (
            machine.part(e, args, env, False)
            if isinstance(e, ir.Part)
            else machine.leaf(e, args, env)
        )

    shows = isinstance(e, ir.Prim) and e.primitive.view  # a view lies as it likes
    (y,) = em.answered(operands, [type_of(x) for x in operands], [t], answer, sure and not shows)
    return y


def checked(em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held]) -> Plain:
    """x, after a look at what must not be true."""
    x, fails = args

    def complain() -> None:
        called_back(em, e, at, type_of(x))

    if isinstance(fails, nm.Arr):
        complain()
        return x
    failed = converted(em, fails, "bool")
    assert failed is not None
    if failed.constant is not False:
        fine = em.let(f"xor i1 {em.text(failed)}, true")
        on, no = em.name("on"), em.name("no")
        em.branch(fine, on, no)
        em.block(no)
        complain()  # a warning lets the run go on
        em.jump(on)
        em.block(on)
    return x


# --- parts of arrays ------------------------------------------------------------------------------


def place(
    em: Emitter,
    x: nm.Arr,
    at: Sequence[Any],
    held: dict[ir.Var, nm.Held],
    complain: Callable[[], object],
) -> tuple[nm.Num, tuple[int, ...]] | None:
    """Where a part of an array begins, in elements, and its shape; None where it is in pieces."""
    shape = x.type.shape
    if len(at) > len(shape):
        return None
    start: nm.Num = nm.constant("i64", 0)
    for axis, p in enumerate(at):
        size = int(np.prod(shape[axis + 1 :], dtype=int))
        if isinstance(p, slice):
            if any(isinstance(k, ir.Var) for k in (p.start, p.stop, p.step)):
                return None
            first, stop, step = p.indices(shape[axis])
            if step != 1 or axis + 1 < len(at):
                return None
            start = moved(em, start, nm.constant("i64", first), size)
            return start, (max(stop - first, 0), *shape[axis + 1 :])
        index = held[p] if isinstance(p, ir.Var) else whole(p)
        if not isinstance(index, nm.Num) or index.kind != "i64":
            return None
        start = moved(em, start, within(em, index, shape[axis], complain), size)
    return start, shape[len(at) :]


def whole(p: object) -> nm.Num | None:
    """A position that the text has."""
    if isinstance(p, int | np.integer) and not isinstance(p, bool | np.bool_):
        return nm.constant("i64", operator.index(p))
    return None


def moved(em: Emitter, start: nm.Num, by: nm.Num, size: int) -> nm.Num:
    """start + by · size."""
    step = RULES["multiply"](em, "i64", [by, nm.constant("i64", size)])
    assert step is not None
    y = RULES["add"](em, "i64", [start, step])
    assert y is not None
    return y


def within(em: Emitter, index: nm.Num, n: int, complain: Callable[[], object]) -> nm.Num:
    """A position counted from the beginning; one that is not there is complained of."""
    ends = None if index.affine is None else index.affine.range()
    if ends is not None and index.affine is not None:
        if ends[0] >= 0 and ends[1] < n:
            return index
        if -n <= ends[0] and ends[1] < 0:
            return nm.Num("i64", affine=index.affine.plus(nm.Affine(n)))
    i = em.text(index)
    below = em.let(f"icmp slt i64 {i}, 0")
    i = em.let(f"select i1 {below}, i64 {em.let(f'add i64 {i}, {n}')}, i64 {i}")
    em.must(em.let(f"icmp ult i64 {i}, {n}"), complain)
    return nm.Num("i64", i)


def part(em: Emitter, x: nm.Arr, start: nm.Num, shape: tuple[int, ...]) -> nm.Arr:
    """A part of an array that is an array, in the same memory."""
    begin = moved(em, nm.Num("i64", x.at) if x.at else nm.constant("i64", 0), start, 1)
    text = em.text(begin)
    return nm.Arr(
        x.buffer, ArrayType(shape, x.type.dtype), "" if text == "0" else text, x.as_numpys
    )


def indexed(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """x[at]: an element, or a part that is in one piece."""
    (x,) = args
    parts = ir.parts_of(e.params["at"])
    if not isinstance(x, nm.Arr) or nm.kind_of(x.type) is None:
        return None
    found_at = place(em, x, parts, at, lambda: called_back(em, e, at, t))
    if found_at is None:
        return None
    start, shape = found_at
    assert shape == t.shape
    return part(em, x, start, shape) if shape else em.load(x, start)


def scattered(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """Zeros with v added at one place."""
    (v,) = args
    parts = ir.parts_of(e.params["at"])
    if nm.kind_of(t) is None or type_of(v).dtype != t.dtype:
        return None
    with em.trial():
        y = em.array(t)
        spot = place(em, y, parts, at, lambda: None)
    if spot is None or spot[1] != type_of(v).shape:
        return None
    with em.kept(args):
        y = em.array(t)
    em.cleared(y)
    spot = place(em, y, parts, at, lambda: called_back(em, e, at, t))
    assert spot is not None
    if isinstance(v, nm.Arr):
        em.copy(v, part(em, y, *spot))
    else:
        em.store(v, y, spot[0])
    return y


def written(
    em: Emitter,
    e: ir.Part,
    held: Sequence[nm.Held],
    at: dict[ir.Var, nm.Held],
    t: ArrayType,
    mine: bool,
) -> nm.Held:
    """put and accum, in place where only this leaf holds the array."""
    x, *rest = map(plain, held)
    value = rest[0] if rest else None
    kind = nm.kind_of(t)
    parts = ir.parts_of(e.at)
    fitting = isinstance(x, nm.Arr) and kind is not None
    fitting = fitting and (value is None or type_of(value).dtype == t.dtype)
    spot = None
    if fitting and isinstance(x, nm.Arr):
        with em.trial():
            spot = place(em, x, parts, at, lambda: None)
    if spot is None or not isinstance(x, nm.Arr) or kind is None:
        return called_back(em, e, at, t)
    if value is not None and type_of(value).shape != spot[1]:
        return called_back(em, e, at, t)
    spot = place(em, x, parts, at, lambda: called_back(em, e, at, t))
    assert spot is not None
    start, shape = spot
    with em.kept([value]):
        y = em.own(x, mine)
    if isinstance(e, ir.Accum):
        accumulated(em, y, start, shape, value, kind)
    elif value is None:
        em.cleared(part(em, y, start, shape)) if shape else em.store(nm.constant(kind, 0), y, start)
    elif isinstance(value, nm.Arr):
        em.copy(value, part(em, y, start, shape))
    else:
        em.store(value, y, start)
    return y


def accumulated(
    em: Emitter, y: nm.Arr, start: nm.Num, shape: tuple[int, ...], value: Plain | None, kind: str
) -> None:
    """Add to a part of an array."""
    if value is None:
        return
    if isinstance(value, nm.Num):
        total = RULES["add"](em, kind, [em.load(y, start), value])
        assert total is not None
        em.store(total, y, start)
        return
    piece = part(em, y, start, shape)
    with em.each(piece.type.size) as i:
        total = RULES["add"](em, kind, [em.load(piece, i), em.load(value, i)])
        assert total is not None
        em.store(total, piece, i)


# --- shapes ---------------------------------------------------------------------------------------


def reshaped(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """The same elements under another shape, in the same memory."""
    (x,) = args
    if isinstance(x, nm.Num):
        y = em.array(t)
        em.store(x, y)
        return y
    if not t.shape:
        return em.load(x) if nm.kind_of(t) else None
    return x._replace(type=t)


def strides_of(shape: Sequence[int]) -> list[int]:
    """How many elements apart the places of each axis are, in C order."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return steps[::-1]


def gathered(em: Emitter, x: Plain, t: ArrayType, strides: Sequence[int], begin: int = 0) -> nm.Arr:
    """The array of the elements of x that are `strides` apart."""
    with em.kept([x]):
        y = em.array(t)
    first = nm.constant("i64", begin)
    with em.nest(t.shape, strides, strides_of(t.shape)) as (of, to):
        em.store(em.load(x, moved(em, first, of, 1)) if isinstance(x, nm.Arr) else x, y, to)
    return y


def broadcast(em: Emitter, x: Plain, t: ArrayType) -> nm.Arr:
    """A number or an array in all places of axes of length one, and of axes that come before."""
    shape = type_of(x).shape
    steps = [0 if n == 1 else k for n, k in zip(shape, strides_of(shape), strict=True)]
    y = gathered(em, x, t, [0] * (t.ndim - len(shape)) + steps)
    return y._replace(as_numpys=t.ndim < 2)


def spread(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """An array in the places of a larger shape."""
    return broadcast(em, args[0], t) if nm.kind_of(t) else None


def cast(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """Another dtype, element by element."""
    kind = nm.kind_of(t)
    return None if kind is None else elementwise(em, e, args, t, kind)


def summed(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """The sum of a row of f64, by NumPy's loop: it adds in NumPy's order."""
    (x,) = args
    if not isinstance(x, nm.Arr) or x.type.ndim != 1 or t.shape or nm.kind_of(x.type) != "f64":
        return None
    loop = adds_as_sum()
    if loop is None:
        return None
    total = boxed(em, nm.constant("f64", 0.0))
    looped(em, "numpy.add.f64f64.f64", loop, [total, em.address(x), total], x.type.size, [0, 8, 0])
    return nm.Num("f64", em.let(f"load double, ptr {total}"))


Shaping = Callable[[Emitter, ir.Prim, list[Plain], dict[ir.Var, nm.Held], ArrayType], Plain | None]
OF_ARRAYS: dict[str, Shaping] = {
    "index": indexed,
    "scatter": scattered,
    "reshape": reshaped,
    "broadcast_to": spread,
    "astype": cast,
    "sum": summed,
}

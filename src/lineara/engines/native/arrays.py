"""Primitives of arrays: elements are read and written in place, elementwise ones are one loop.

What has no code here is called back: the interpreter's own evaluation, on the buffers.  Exact code
has NumPy's order of sums, so a primitive that sums is called back, with arrays that lie as NumPy's
do; where a result lies otherwise than was told the run is given up.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from lineara.engines.native import folds, running
from lineara.engines.native import numbers as nm
from lineara.engines.native.closeness import CLOSE, close
from lineara.engines.native.code import Code
from lineara.engines.native.emit import Emitter
from lineara.engines.native.formulas import FORMULAS
from lineara.engines.native.layouts import UNKNOWN, in_one_memory, laid, of_interpreter
from lineara.engines.native.matrices import OF_MATRICES, of_matrices
from lineara.engines.native.orders import OF_LINES, of_lines, searched
from lineara.engines.native.python_complex import pythons_complex
from lineara.engines.native.scalars import (
    RULES,
    Rule,
    converted,
    intrinsic,
    pythons,
    rule_of,
    truncated,
)
from lineara.engines.native.strided import (
    Plain,
    Spot,
    at_offset,
    beside,
    broadcast,
    cleared_around,
    over,
    part,
    spot,
    steps_in,
    steps_of,
    strides_of,
    type_of,
    view,
)
from lineara.engines.native.symbols import CODES, Loop, adds_as_sum, numpy_loop, steps_of_one
from lineara.facts.primitive import Constant, Elementwise, Structural
from lineara.facts.types import ArrayType, show
from lineara.linear_a import syntax as ir

OF_INTEGERS = ("math_gcd", "math_lcm", "math_ldexp")
"""Functions of `math` whose results have one type, unless a type is NumPy's of booleans."""


def plain(x: nm.Held) -> Plain:
    """A number or an array."""
    if not isinstance(x, (nm.Num, nm.Arr)):
        raise nm.Refused("it calculates with a whole product, sum or stack")
    return x


def primitive(
    em: Emitter,
    e: ir.Prim,
    held: Sequence[nm.Held],
    at: dict[ir.Var, nm.Held],
    t: ArrayType,
    into: nm.Arr | None = None,
) -> nm.Held:
    """The value of a primitive, by the first that has code for it; it may be put `into` memory."""
    return as_numpy_lays(em, e, at, value(em, e, held, at, t, into))


def value(
    em: Emitter,
    e: ir.Prim,
    held: Sequence[nm.Held],
    at: dict[ir.Var, nm.Held],
    t: ArrayType,
    into: nm.Arr | None,
) -> nm.Held:
    """The same, of which it is not told how NumPy lays it out."""
    name = e.name
    if name == "live_factor" and em.demand.trusts(e):
        return trusted(em, plain(held[1]), t)
    args = list(map(plain, held))
    ordered = name in STRIDED or (rule_of(e) is not None and name not in OF_ARRAYS)
    if not ordered and not all([isinstance(x, nm.Num) for x in at.values()]):
        at = dict(zip(at, em.in_order(at.values()), strict=True))
        args = [plain(at[v]) for v in e.args]
    if name.startswith("check_"):
        return checked(em, e, args, at)
    numbers = [x for x in args if isinstance(x, nm.Num)]
    kind = nm.kind_of(t)
    if e.primitive.pythons and not (name in OF_INTEGERS and kind in ("f64", "i64")):
        kinds = {x.kind for x in numbers}
        if "bool" in kinds or (name.startswith("math_") and "i64" in kinds):
            raise nm.Refused(f"it has {name} of numbers that are no floats")
    y: nm.Held = None
    if name in CLOSE:
        y = close(em, e, args, t)
    elif len(numbers) == len(args) and kind is not None and not t.shape:
        y = of_numbers(em, e, numbers, at, kind, t)
    elif name in OF_ARRAYS:
        y = OF_ARRAYS[name](em, e, args, at, t)
    elif name in OF_MATRICES and not em.exact:
        y = of_matrices(em, e, args, t, lambda: called_back(em, e, at, t))
    elif name in OF_LINES:
        y = of_lines(em, e, args, t)
    elif kind is not None and e.primitive.pythons:
        y = by_pythons(em, e, args, at, t, kind)
    elif kind is not None:
        y = elementwise(em, e, args, t, kind, into)
    return called_back(em, e, at, t) if y is None else y


def trusted(em: Emitter, x: Plain, t: ArrayType) -> Plain:
    """A factor as it is; a run in which one is not finite starts again, with masks."""
    if isinstance(x, nm.Arr):
        with em.nest(x.type.shape, steps_of(x)) as (i,):
            em.trust(em.load(x, i))
    else:
        em.trust(x)
    return x if type_of(x).shape == t.shape else broadcast(em, x, t)


def of_numbers(
    em: Emitter, e: ir.Prim, args: list[nm.Num], at: dict[ir.Var, nm.Held], kind: str, t: ArrayType
) -> nm.Num | None:
    """A number of numbers."""

    def slow() -> nm.Num:
        y = called_back(em, e, at, t)
        assert isinstance(y, nm.Num)
        return y

    if e.name == "astype" and kind == "i64" and args[0].kind in nm.FLOATS:
        return em.unless(*truncated(em, args[0]), slow)
    if e.primitive.pythons:
        is_complex = "c128" in {kind, *[x.kind for x in args]}
        return (pythons_complex if is_complex else pythons)(em, e.name, kind, args, slow)
    rule = rule_of(e)
    y = rule and rule(em, kind, args)
    return y or by_loop(em, e, args, t, kind)


def elementwise(
    em: Emitter,
    e: ir.Prim,
    args: list[Plain],
    t: ArrayType,
    kind: str,
    into: nm.Arr | None = None,
    rule: Rule | None = None,
) -> nm.Arr | None:
    """An array of numbers, and of arrays that have its shape or are broadcast to it."""
    if any([isinstance(x, nm.Arr) and nm.kind_of(x.type) is None for x in args]):
        return None
    rule = rule or rule_of(e)
    if rule is None:
        return by_loop(em, e, args, t, kind, into)
    with em.trial():
        numbers = [em.load(x) if isinstance(x, nm.Arr) else x for x in args]
        fits = rule(em, kind, numbers) is not None
    if not fits:
        return by_loop(em, e, args, t, kind, into)
    y = into or em.over(args, t)
    steps = [steps_in(x, t.ndim) for x in args]
    with em.nest(t.shape, *steps, strides_of(t.shape)) as (*of, to):
        value = rule(em, kind, [at_offset(em, x, i) for x, i in zip(args, of, strict=True)])
        assert value is not None
        em.store(value, y, to)
    return y


def by_pythons(
    em: Emitter,
    e: ir.Prim,
    args: list[Plain],
    at: dict[ir.Var, nm.Held],
    t: ArrayType,
    kind: str,
) -> nm.Arr | None:
    """A function of Python's in lanes: of floats another primitive's results where all is finite.

    If a lane is not, or a whole number is too large, all of them are called back; so they are where
    a formula does not take one.
    """
    base = getattr(e.primitive, "in_lanes", None)
    kinds = {kind, *[nm.kind_of(type_of(x)) for x in args]}
    by_lanes = kind == "i64" or (base is None and e.name.removeprefix("math_") in FORMULAS)
    if not (base or by_lanes) or kinds not in ({"f64"}, {"i64"}):
        return None
    slow = em.at_entry("alloca i1")

    def note() -> nm.Num:
        em.line(f"store i1 true, ptr {slow}")
        return nm.constant(kind, 0)

    def of_lane(em: Emitter, kind: str, numbers: Sequence[nm.Num]) -> nm.Num | None:
        return pythons(em, e.name, kind, numbers, note)

    with em.kept([*args, *at.values()]):
        em.line(f"store i1 false, ptr {slow}")
        if by_lanes:
            y = elementwise(em, e, args, t, kind, rule=of_lane)
        else:
            y = elementwise(em, ir.Prim(e.args, base), args, t, kind)
        if y is None:
            return None
        if not by_lanes:
            note_where_not_finite(em, e, args, y, slow)
        or_called_back(em, e, at, t, y, slow)
    return y


def or_called_back(
    em: Emitter, e: ir.Prim, at: dict[ir.Var, nm.Held], t: ArrayType, y: nm.Arr, slow: str
) -> None:
    """All lanes of y are what is called back, if that was noted of one."""
    on, no = em.name("on"), em.name("no")
    em.branch(em.let(f"load i1, ptr {slow}"), no, on)
    em.block(no)
    with em.kept([y]):
        z = called_back(em, e, at, t)
    with em.nest(t.shape, steps_of(z), strides_of(t.shape)) as (of_z, to):
        em.store(at_offset(em, z, of_z), y, to)
    em.jump(on)
    em.block(on)


def note_where_not_finite(
    em: Emitter, e: ir.Prim, args: Sequence[Plain], y: nm.Arr, slow: str
) -> None:
    """Note whether there is a lane whose result or arguments are not finite."""
    t, kind, infinite = y.type, "f64", em.text(nm.constant("f64", math.inf))
    steps = [steps_in(x, t.ndim) for x in args]
    with em.nest(t.shape, strides_of(t.shape), *steps) as (to, *of):
        total = number = em.load(y, to)
        for x, i in zip(args, of, strict=True):
            size = intrinsic("fabs")(em, kind, [at_offset(em, x, i)])
            assert size is not None, "it is a f64"
            total = nm.Num(kind, em.let(f"fadd double {em.text(total)}, {em.text(size)}"))
        size = intrinsic("fabs")(em, kind, [total])
        assert size is not None, "it is a f64"
        odd = em.let(f"fcmp uge double {em.text(size)}, {infinite}")
        if e.name == "python_power":  # NumPy's may be a square root instead
            odd = em.let(f"or i1 {odd}, {em.let(f'fcmp oeq double {em.text(number)}, 0.0')}")
        before = em.let(f"load i1, ptr {slow}")
        em.line(f"store i1 {em.let(f'or i1 {before}, {odd}')}, ptr {slow}")


def by_loop(
    em: Emitter,
    e: ir.Prim,
    args: Sequence[Plain],
    t: ArrayType,
    kind: str,
    into: nm.Arr | None = None,
) -> Any:
    """The value by the loop of a ufunc, if it has one for these kinds."""
    of = loop_of(e, tuple([kind_in(x) for x in args]), kind)
    if of is None:
        return None
    name, loop, kinds = of
    args = list(map(plain, em.in_order(args)))
    with em.kept(args):
        for i, (x, k) in enumerate(zip(args, kinds, strict=True)):
            if isinstance(x, nm.Arr) and x.type.shape != t.shape:
                args[i] = broadcast(em, x, ArrayType(t.shape, x.type.dtype))
            args[i] = in_kind(em, args[i], k)
    if not t.shape:
        numbers = [em.load(x) if isinstance(x, nm.Arr) else x for x in args]
        return number_by_loop(em, name, loop, numbers, kind)
    with em.kept(args):
        y = into or em.array(t)
    places = [em.address(x) if isinstance(x, nm.Arr) else em.boxed(x) for x in args]
    steps = [x.type.dtype.itemsize if isinstance(x, nm.Arr) else 0 for x in args]
    f, data = named_loop(em, name, loop)
    looped(em, f, data, [*places, em.address(y)], t.size, [*steps, t.dtype.itemsize])
    return y


def loop_of(
    e: ir.Prim, kinds: tuple[str, ...], kind: str
) -> tuple[str, Loop, tuple[str, ...]] | None:
    """The loop of a ufunc for these kinds: its name, itself, and the kinds that it takes."""
    if not isinstance(e.primitive, Elementwise | Constant) or e.params:
        return None  # another function may have a ufunc's name
    f = getattr(e.primitive, "ufunc", getattr(np, e.name, None))
    if not isinstance(f, np.ufunc) or f.nout != 1:
        return None
    kinds = loop_kinds(f, kinds) if len(kinds) == f.nin else ()
    if f is np.power and kind == "i64":
        return None  # the loop raises where an exponent is negative
    loop = numpy_loop(f, kinds, kind) if kinds else None
    of = f.__name__ if f is getattr(np, f.__name__, None) else f"scipy.{f.__name__}"
    return None if loop is None else (f"numpy.{of}.{''.join(kinds)}.{kind}", loop, kinds)


def number_by_loop(
    em: Emitter, name: str, loop: Loop, args: list[nm.Num], kind: str
) -> nm.Num | None:
    """The number that a loop of NumPy's makes of numbers: a function of the module calls it."""
    title, steps = f"one.{name}", steps_of_one(loop)
    if steps is None:
        return None
    result = nm.LLVM[kind]
    if title not in em.helpers:
        one = Code()
        given = [nm.Num(x.kind, f"%x{i}") for i, x in enumerate(args)]
        places = list(map(one.boxed, given))
        places.append(one.at_entry(f"alloca {nm.IN_MEMORY[kind]}, align 8"))
        f, data = named_loop(em, name, loop)
        looped(one, f, data, places, 1, steps)
        y = one.load_at(places[-1], kind).register
        parameters = ", ".join([f"{nm.LLVM[x.kind]} {x.register}" for x in given])
        head = f'define internal {result} @"{title}"({parameters}) {{'
        em.helpers[title] = "\n".join([head, *one.entry, *one.lines, f"  ret {result} {y}", "}"])
    operands = ", ".join([f"{nm.LLVM[x.kind]} {em.text(x)}" for x in args])
    return nm.Num(kind, em.let(f'call {result} @"{title}"({operands})'))


@cache
def loop_kinds(f: np.ufunc, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds that NumPy casts arguments to, or none.

    They are those of the loop for just these kinds, else of the first that they fit safely.
    """
    if "" in kinds:
        return ()
    if "".join([CODES[k] for k in kinds]) in [types.partition("->")[0] for types in f.types]:
        return kinds
    given = [np.dtype(CODES[k]) for k in kinds]
    for types in f.types:
        codes = types.partition("->")[0]
        if all([np.can_cast(t, c, "safe") for t, c in zip(given, codes, strict=True)]):
            return tuple([KIND_OF_CODE.get(c, "") for c in codes])
    return ()


KIND_OF_CODE = {code: kind for kind, code in CODES.items()}


def kind_in(x: Plain) -> str:
    """The kind of a number, or of the numbers of an array; nothing where no register has one."""
    return x.kind if isinstance(x, nm.Num) else nm.kind_of(x.type) or ""


def in_kind(em: Emitter, x: Plain, kind: str) -> Plain:
    """A number or an array in another kind, which holds all of its numbers."""
    if kind_in(x) == kind:
        return x
    if isinstance(x, nm.Num):
        y = converted(em, x, kind)
        assert y is not None, "it fits"
        return y
    cast_ = em.array(ArrayType(x.type.shape, np.dtype(CODES[kind])))
    with em.each(x.type.size) as i:
        number = converted(em, em.load(x, i), kind)
        assert number is not None, "it fits"
        em.store(number, cast_, i)
    return cast_


def named_loop(em: Emitter, name: str, loop: Loop) -> tuple[str, str]:
    """A loop of NumPy's and its data, by names, so that the text is one in every process."""
    em.addresses[name], em.loops[name] = loop.address, loop.of
    f = em.outside(name, "void (ptr, ptr, ptr, ptr)")
    if not loop.data:
        return f, "null"
    em.addresses[f"{name}.data"] = loop.data
    return f, em.outside(f"{name}.data", "void ()")


def looped(
    em: Code, f: str, data: str, places: Sequence[str], n: int | str, steps: Sequence[int]
) -> None:
    """Call a loop of NumPy's, on as many elements as a number or a register says."""
    k = len(places)
    given = em.at_entry(f"alloca [{k} x ptr]")
    sizes = em.at_entry("alloca i64")
    strides = em.at_entry(f"alloca [{k} x i64]")
    em.line(f"store i64 {n}, ptr {sizes}")
    for i, (place, step) in enumerate(zip(places, steps, strict=True)):
        for table, kind, value in ((given, "ptr", place), (strides, "i64", step)):
            where = em.let(f"getelementptr inbounds i64, ptr {table}, i64 {i}")
            em.line(f"store {kind} {value}, ptr {where}")
    em.line(f"call void {f}(ptr {given}, ptr {sizes}, ptr {strides}, ptr {data})")


# --- calling back ---------------------------------------------------------------------------------


def called_back(em: Emitter, e: ir.Leaf, at: dict[ir.Var, nm.Held], t: ArrayType) -> Plain:
    """What the interpreter makes of a leaf, on values that are its own."""
    (y,) = asked(em, e, at, [t])
    return y


def complained(em: Emitter, e: ir.Leaf, at: dict[ir.Var, nm.Held]) -> None:
    """Have the interpreter raise the error of a leaf."""
    asked(em, e, at, [])


def asked(
    em: Emitter, e: ir.Leaf, at: dict[ir.Var, nm.Held], results: Sequence[ArrayType]
) -> list[Plain]:
    """What the interpreter makes of a leaf; without results there is only its error."""
    operands = list(map(plain, em.in_order(at.values())))
    sure = not em.exact or all([x.lay is not None for x in operands if isinstance(x, nm.Arr)])
    if isinstance(e, ir.Prim) and not sure:
        moves = isinstance(e.primitive, Elementwise | Constant | Structural)
        if not (moves or e.name in ("where", "keep")):
            raise nm.Unlaid(f"{e.name} sums an array of which {UNKNOWN}", em.place)
    values_of = of_interpreter(em, e, [*at])
    squares = em.exact and isinstance(e, ir.Prim) and e.name == "matmul" and len(at) == 2

    def answer(values: list[Any]) -> Sequence[Any]:
        return values_of(in_one_memory(*values) if squares else values)[: len(results)]

    types = [type_of(x) for x in operands]
    name = e.name if isinstance(e, ir.Prim) else type(e).__name__.lower()
    what = f"{name}({', '.join(map(show, types))})"
    lays = [lay_after(em, e, at, t) if em.exact else None for t in results]
    return em.answered(operands, types, results, answer, lays, what)


def lay_after(em: Emitter, e: ir.Leaf, at: dict[ir.Var, nm.Held], t: ArrayType) -> nm.Lay:
    """How NumPy lays out the result of a leaf."""
    operands = {v: plain(x) for v, x in at.items()}
    of = {v: (type_of(x), getattr(x, "lay", nm.C)) for v, x in operands.items()}
    return laid(em, e, of, t)


def as_numpy_lays(em: Emitter, e: ir.Leaf, at: dict[ir.Var, nm.Held], y: nm.Held) -> nm.Held:
    """The value of a leaf, of which it is told how NumPy lays it out."""
    if not em.exact or not isinstance(y, nm.Arr):
        return y
    return y._replace(lay=lay_after(em, e, at, y.type))


def checked(em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held]) -> Plain:
    """x, after a look at what must not be true."""
    x, fails = args

    def complain() -> None:
        called_back(em, e, at, type_of(x))

    if isinstance(fails, nm.Arr):
        if nm.kind_of(fails.type) != "bool":
            complain()
            return x
        with em.kept(at.values()):
            fails = folds.how_many(em, fails)
    assert isinstance(fails, nm.Num), "it is one number"
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


def indexed(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """x[at]: an element, or a part, which is copied only where its places follow no strides."""
    (x,) = args
    parts = ir.parts_of(e.params["at"])
    if not isinstance(x, nm.Arr) or nm.kind_of(x.type) is None:
        return None
    where = spot(em, x, parts, at, lambda: called_back(em, e, at, t))
    if where is None or (em.exact and not where.in_order):
        return None
    assert where.shape == t.shape
    if not where.is_looked_up:
        return part(em, x, where) if t.shape else em.load(x, where.start)
    with em.kept([*args, *where.kept]):
        y = em.array(t)
    with over(em, where, strides_of(t.shape)) as (to, place):
        em.store(em.load(x, place), y, to)
    return y


def scattered(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """Zeros with v added at one place, or at several."""
    (v,) = args
    return added_to_zeros(em, e, v, e.params["at"], at, t)


def added_to_zeros(
    em: Emitter, e: ir.Leaf, v: Plain, index: Any, at: dict[ir.Var, nm.Held], t: ArrayType
) -> nm.Arr | None:
    """Zeros with v added at an index; where that is one piece of memory, the rest is cleared."""
    parts, kind = ir.parts_of(index), nm.kind_of(t)
    if kind is None or type_of(v).dtype != t.dtype:
        return None
    with em.trial():
        where = spot(em, em.array(t), parts, at, lambda: None)
    if where is None or where.shape != type_of(v).shape or (em.exact and not where.in_order):
        return None
    with em.kept([v, *where.kept]):
        y = em.array(t)
    if not where.is_plain or where.begin is None:
        em.cleared(y)
        where = spot(em, y, parts, at, lambda: called_back(em, e, at, t))
        assert where is not None
        accumulated(em, y, where, v, kind)
        return y
    cleared_around(em, y, where)
    with beside(em, v, where) as (x, to):
        total = RULES["add"](em, kind, [nm.constant(kind, 0), x])  # after which -0 is 0
        assert total is not None
        em.store(total, y, to)
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
    return as_numpy_lays(em, e, at, changed(em, e, held, at, t, mine))


def changed(
    em: Emitter,
    e: ir.Part,
    held: Sequence[nm.Held],
    at: dict[ir.Var, nm.Held],
    t: ArrayType,
    mine: bool,
) -> nm.Held:
    """The same, of which it is not told how NumPy lays it out."""
    if held[0] is nm.NIL:
        y = added_to_zeros(em, e, plain(held[1]), e.at, at, t)
        if y is not None:
            return y
        zeros = at[e.args[0]] = em.zero(t)
        held, mine = [zeros, *held[1:]], True
    x, *rest = map(plain, held)
    value = rest[0] if rest else None
    kind = nm.kind_of(t)
    parts = ir.parts_of(e.at)
    fits = value is None or type_of(value).dtype == t.dtype
    whole = all([p is Ellipsis for p in parts])
    if isinstance(x, nm.Num) and isinstance(value, nm.Num | None) and fits and whole:
        return written_number(em, isinstance(e, ir.Accum), x, value)
    if not isinstance(x, nm.Arr) or kind is None or not fits:
        return called_back(em, e, at, t)
    with em.trial():
        where = spot(em, x, parts, at, lambda: None)
    fits = where is not None and (value is None or type_of(value).shape == where.shape)
    if where is None or not fits or (em.exact and not where.in_order):
        return called_back(em, e, at, t)
    where = spot(em, x, parts, at, lambda: called_back(em, e, at, t))
    assert where is not None
    with em.kept([value, *where.kept]):
        y = em.own(x, mine)
    if isinstance(e, ir.Accum):
        accumulated(em, y, where, value, kind)
    elif where.is_plain and isinstance(value, nm.Arr):
        em.copy(value, part(em, y, where))
    elif where.is_plain and value is None and where.shape:
        em.cleared(part(em, y, where))
    else:
        with beside(em, value, where) as (x, to):
            em.store(x if value is not None else nm.constant(kind, 0), y, to)
    return y


def written_number(em: Emitter, adds: bool, x: nm.Num, value: nm.Num | None) -> nm.Num | None:
    """An array without axes after a number was added to it or put there; None is zero."""
    if value is None:
        return x if adds else nm.constant(x.kind, 0)
    return RULES["add"](em, x.kind, [x, value]) if adds else value


def accumulated(em: Emitter, y: nm.Arr, where: Spot, value: Plain | None, kind: str) -> None:
    """Add to a part of an array."""
    if value is None:
        return
    with beside(em, value, where) as (x, to):
        total = RULES["add"](em, kind, [em.load(y, to), x])
        assert total is not None
        em.store(total, y, to)


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
    (y,) = em.in_order([x])
    assert isinstance(y, nm.Arr)
    return y._replace(type=t)


def spread(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """An array in the places of a larger shape."""
    (x,) = args
    if nm.kind_of(t) is None or (em.exact and type_of(x).size != 1):
        return None
    return broadcast(em, x, t)


def permuted(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """The axes in another order, in the same memory."""
    (x,) = args
    if not isinstance(x, nm.Arr) or nm.kind_of(t) is None or em.exact:
        return None
    steps = steps_of(x)
    return view(x, t, x.at, [steps[i] for i in e.params["axes"]])


def joined(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """Arrays one after the other along an axis; `stack` makes an axis for them."""
    kind = nm.kind_of(t)
    if kind is None or any([not joins(type_of(x), t) for x in args]) or em.exact:
        return None
    with em.kept(args):
        y = em.array(t)
    steps = strides_of(t.shape)
    axis = e.params["axis"] % t.ndim if e.name == "concat" else 0
    begin = 0
    for x in args:
        shape = type_of(x).shape
        strides = tuple(steps if e.name == "concat" else steps[1:])
        where = Spot(nm.constant("i64", begin * steps[axis]), shape, strides)
        with beside(em, x, where) as (value, to):
            number = converted(em, value, kind)
            assert number is not None, "it joins"
            em.store(number, y, to)
        begin += shape[axis] if e.name == "concat" else 1
    return y


def joins(x: ArrayType, t: ArrayType) -> bool:
    """Whether elements go into an array of that type as they are, or as numbers that fit."""
    return nm.kind_of(x) is not None and np.can_cast(x.dtype, t.dtype, "safe")


def cast(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """Another dtype, element by element; of floats that do not fit NumPy has its say."""
    kind = nm.kind_of(t)
    if kind != "i64" or kind_in(args[0]) not in nm.FLOATS:
        return None if kind is None else elementwise(em, e, args, t, kind)
    slow = em.at_entry("alloca i1")

    def of_lane(em: Emitter, kind: str, numbers: Sequence[nm.Num]) -> nm.Num:
        fine, y = truncated(em, numbers[0])
        before = em.let(f"load i1, ptr {slow}")
        odd = em.let(f"xor i1 {fine}, true")
        em.line(f"store i1 {em.let(f'or i1 {before}, {odd}')}, ptr {slow}")
        return y

    with em.kept([*args, *at.values()]):
        em.line(f"store i1 false, ptr {slow}")
        y = elementwise(em, e, args, t, kind, rule=of_lane)
        assert y is not None, "it is a float"
        or_called_back(em, e, at, t, y, slow)
    return y


def in_numpys_order(em: Emitter, x: Plain, t: ArrayType) -> Plain | None:
    """The sum of a row of floats, by NumPy's loop: it adds in NumPy's order."""
    kind = nm.kind_of(t)
    if not isinstance(x, nm.Arr) or x.type.ndim != 1 or t.shape or x.type.dtype != t.dtype:
        return None
    loop = adds_as_sum(kind) if kind in nm.FLOATS else None
    if loop is None or kind is None:
        return None
    total = em.boxed(nm.constant(kind, 0.0))
    f, data = named_loop(em, f"numpy.add.{kind}{kind}.{kind}", loop)
    looped(em, f, data, [total, em.address(x), total], x.type.size, [0, t.dtype.itemsize, 0])
    return nm.Num(kind, em.let(f"load {nm.LLVM[kind]}, ptr {total}"))


def summed(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """A sum over axes."""
    return in_numpys_order(em, args[0], t) if em.exact else folds.reduction(em, e, args, t)


def sought(
    em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
) -> Plain | None:
    """Where elements would stand in a line, both in the kind that they have in common."""
    common = nm.kind_of(ArrayType((), np.result_type(*[type_of(x).dtype for x in args])))
    if common not in ("f64", "f32", "i64") or None in [nm.kind_of(type_of(x)) for x in args]:
        return None
    held: list[nm.Held] = [*args]
    with em.kept(held):
        held += (cast_ := [in_kind(em, x, common) for x in args])
        return searched(em, e, cast_, t)


def by_fold(rule: Callable[..., Plain | None]) -> "Shaping":
    """What is folded, where sums may have another order than NumPy's."""

    def folded(
        em: Emitter, e: ir.Prim, args: list[Plain], at: dict[ir.Var, nm.Held], t: ArrayType
    ) -> Plain | None:
        return None if em.exact else rule(em, e, args, t)

    return folded


Shaping = Callable[[Emitter, ir.Prim, list[Plain], dict[ir.Var, nm.Held], ArrayType], Plain | None]
OF_ARRAYS: dict[str, Shaping] = {
    "index": indexed,
    "scatter": scattered,
    "reshape": reshaped,
    "broadcast_to": spread,
    "permute_dims": permuted,
    "concat": joined,
    "stack": joined,
    "astype": cast,
    "sum": summed,
    **{name: by_fold(folds.reduction) for name in folds.HOW if name != "sum"},
    "matmul": by_fold(folds.multiplied),
    "einsum": by_fold(folds.contracted),
    "correlate": by_fold(folds.correlated),
    "convolve": by_fold(folds.convolved),
    **{name: by_fold(running.run) for name in running.NEXT},
    "searchsorted": sought,
}
STRIDED = {*folds.HOW, *CLOSE, "matmul", "einsum", "correlate", "convolve", *running.NEXT,
           "permute_dims", "index", "broadcast_to", "concat", "stack", "scatter", *OF_LINES,
           *OF_MATRICES}  # fmt: skip
"""What reads arrays whose places are any number of elements apart."""
STEPS = {"astype", "broadcast_to"}
"""What has a rule for numbers, though it has code of its own for arrays."""


def step(e: ir.Prim) -> Rule | None:
    """The rule that makes an array place by place, if there is one."""
    whole = e.name in OF_ARRAYS or e.name in OF_LINES or e.name in OF_MATRICES
    return None if whole and e.name not in STEPS else rule_of(e)

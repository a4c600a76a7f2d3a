"""What an operation writes into a program is known by its signature, once it has been written.

    s * 0.5    s a number f64 of Python's     let k = 0.5 in let v = multiply(k, s)
    x[i]       x f64[9], i i64                let v = index[at=(i,)](x)

The first operation of a signature goes the general way; what that wrote is read off the bindings,
and later ones write the same about other variables.  A signature is all that the general way looks
at: the classes and types of what is staged, how it lies in memory, and the constants themselves.
What depends on more, as an exception that the program may raise does, always goes that way.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.primitive import registry
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.rules_as_text import Boxed
from lineara.tape.codegen import COMPARISONS, OPERATORS

KNOWN = 4096  # signatures that are remembered
WHOLE = 2**31  # numbers below are the same in every dtype that they may meet


class Writing(NamedTuple):
    """What operations of one signature write, and what they give."""

    steps: tuple[tuple[ir.Leaf, ArrayType, tuple[int, ...]], ...]  # with places of variables
    sign: str  # of the class of the result
    lay: Any  # how the result lies in memory

    def again(self, level: Any, boxes: Sequence[Boxed]) -> Any:
        """Write the same about other variables; the result."""
        out = level.out
        variables = [b.var for b in boxes]
        for leaf, t, places in self.steps:
            if type(leaf) is ir.Prim:
                args = tuple([variables[i] for i in places[: len(leaf.args)]])
                params = leaf.params
                if len(places) > len(args):
                    at = dict(zip(leaf.operands(), [variables[i] for i in places], strict=True))
                    params = ir.renamed_params(params, at.__getitem__)
                leaf = ir.Prim(args, leaf.primitive, params)
                like = out.like
            else:
                like = "k"
            v = ir.Var(out.names(like), t, False, out.line_of(leaf))
            out.bindings.append(ir.Let((v,), leaf))
            variables.append(v)
        box = Boxed(out, variables[-1])
        if self.sign == "A":
            return level.handle(level.whole(box, self.lay))
        return level.scalar(box, getattr(level, self.sign))


def signature(value: Any) -> Any:
    """What the general way may look at of an operand; None where that is not known."""
    kind = type(value)
    sign = getattr(kind, "sign", None)
    if sign == "A":
        part = value.w
        known = type(part.buffer.lay) is tuple
        return ("A", part.shape, part.buffer.content.dtype, part.strides) if known else None
    if sign == "X":
        return (sign, value.v.type, value.w) if type(value.w) in (tuple, type(None)) else None
    if type(sign) is str:  # a method of that name is another class's
        return sign, value.v.type
    if kind is float:
        return kind, value.hex()
    return (kind, value) if kind is int and -WHOLE < value < WHOLE else None


def written(level: Any, name: Any, args: Sequence[Any], general: Callable[[], Any]) -> Any:
    """The result of an operation on these, of which at least one is staged.

    `general()` is the result of the general way.
    """
    key: list[Any] = [name]
    for a in args:
        known = signature(a)
        if known is None:
            return general()
        key.append(known)
    if level.inner is not None:
        level = level.innermost()
    shared = level.shared
    if not level.open or level.kinks is not None or shared.error_state() is not shared.errors_seen:
        return general()
    signed, writings = tuple(key), registry.writings
    writing = writings.get(signed, writings)
    if writing is None:
        return general()
    boxes: list[Boxed] = []
    for a in args:
        if type(a) is float or type(a) is int:
            continue
        if not a.level.open or a.level.depth > level.depth:
            return general()
        box = a.v
        if type(box) is not Boxed or box.emitter is not level.out:
            box = level.operand(a)
            if type(box) is not Boxed:  # an array of constants
                return general()
        boxes.append(box)
    if writing is not writings:
        return writing.again(level, boxes)
    start = len(level.out.bindings)
    y = general()
    if len(writings) >= KNOWN:
        writings.clear()
    if len({b.var for b in boxes}) == len(boxes):  # else it does not tell which is which
        writings[signed] = _read_off(level, level.out.bindings[start:], boxes, y)
    return y


def _read_off(
    level: Any, bindings: Sequence[ir.Binding], boxes: Sequence[Boxed], y: Any
) -> Writing | None:
    """What was written, where it is all that was done."""
    variables = [b.var for b in boxes]
    steps = []
    for b in bindings:
        leaf = b.rhs if isinstance(b, ir.Let) else None
        plain = isinstance(leaf, ir.Lit) or (
            isinstance(leaf, ir.Prim) and not (leaf.primitive.raised or leaf.primitive.acts)
        )
        if not plain or len(b.vars) != 1 or not set(leaf.operands()) <= {*variables}:  # type: ignore[union-attr]
            return None
        (v,) = b.vars
        if v.name.rstrip("0123456789") != (level.out.like if isinstance(leaf, ir.Prim) else "k"):
            return None
        steps.append((leaf, v.type, tuple([variables.index(o) for o in leaf.operands()])))  # type: ignore[union-attr]
        variables.append(v)
    sign = getattr(type(y), "sign", None)
    if not steps or y.level is not level or sign not in ("S", "N", "E", "A"):
        return None
    if sign != "A":
        return Writing(tuple(steps), sign, None) if y.v.var is variables[-1] else None
    part, cell = y.w, y.w.buffer
    own = cell.home is level and not (part.steps or cell.version or cell.came or cell.inside)
    fresh = own and part.source is None and part.made is None and type(cell.lay) is tuple
    if not fresh or not isinstance(cell.content, Boxed) or cell.content.var is not variables[-1]:
        return None
    return Writing(tuple(steps), sign, cell.lay)


def operators(methods: dict[str, Any]) -> dict[str, Any]:
    """The methods of binary operators and comparisons, for what has been written before."""
    stems = [*OPERATORS.values(), *[f"r{s}" for s in OPERATORS.values()], *COMPARISONS]
    return {n: _operator(n, methods[n]) for n in map("__{}__".format, stems)}


def _operator(name: str, general: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(p: Any, q: Any) -> Any:
        return written(p.level, name, (p, q), lambda: general(p, q))

    return method


@functools.cache
def error_state() -> Callable[[], object]:
    """What gives an object that is another one while NumPy handles errors in another way.

    NumPy's variable does, and is asked in a tenth of the time that `np.geterr` takes, where it is
    found and is seen to change; else each object is another one.
    """
    variable = getattr(getattr(np, "_core", None), "umath", None)
    get = getattr(getattr(variable, "_extobj_contextvar", None), "get", None)
    if get is None:
        return object
    state = functools.partial(get, None)
    before = state()
    with np.errstate(divide="raise"):
        changes = state() is not before
    return state if changes and state() is before else object

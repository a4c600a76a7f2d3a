"""Structured forms: branches, loops and calls that stay what they are in a traced program.

Outside a trace they are the plain Python that their docstrings show, and are differentiated as
such.  Inside, each function that they are given becomes a definition.  What a function mentions of
the code around it becomes one more formal of its definition.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from lineara.errors import BoundsError, ShapeError, StagingError, StructureError
from lineara.facts.box import Box
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, is_number, show_type, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Cond, Switch
from lineara.linear_a.calls import Call
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.rules_as_text import Boxed, Emitter, closed
from lineara.passes.invariant_motion import before_rounds
from lineara.python.captured_values import captured, with_captured
from lineara.python.user_code import method, overlay
from lineara.staging.definition_of import apart, staged_around
from lineara.staging.staged_level import Seen, StagedLevel, open_definition, perhaps_of, seen
from lineara.staging.tracing import definition_name
from lineara.tape.levels import innermost_level
from lineara.tape.node import Scalar, Traced
from lineara.tape.strides import (
    Doubtful,
    c_strides,
    joined_strides,
    laid_out,
    packed,
    strides_of,
)
from lineara.trees import Structure, flatten, map_leaves, unflatten

BOOL = ArrayType((), np.dtype(bool))
INTEGER = ArrayType((), np.dtype(int))


# --- a function as a definition -------------------------------------------------------------------


class Fragment(NamedTuple):
    """The bindings that a function wrote, before its formals are final."""

    name: str
    out: Emitter
    formals: list[ir.Var]
    leaves: list[Any]  # boxes, and constants
    structure: Structure
    mentions: list[tuple[Boxed, ir.Var]]  # what it mentions of the code around, and the formals
    given: list[Any]  # the leaves as the function gave them
    stays: Callable[[ir.Binding], bool]  # whether a binding is kept: it is no dead code

    def seen(self, i: int) -> Seen:
        """The facts of a result."""
        return seen(self.given[i])

    def result(self, i: int, t: ArrayType) -> ir.Var:
        """A result as a variable of a type."""
        v = self.leaves[i]
        if not isinstance(v, Boxed):
            return self.out.bind("v", t, ir.lit(np.asarray(v, t.dtype)[()], t))
        return v.var if v.var.type == t else op("astype")(v, dtype=t.dtype).var

    def define(
        self, around: Sequence[Boxed], types: Sequence[Any], first: bool, also: tuple[Any, ...]
    ) -> ir.Def:
        """The definition; its formals for what is mentioned come first or last.

        `types` are those of the results, None for constants that are none; `also` goes before them.
        """
        mine = {b.var: v for b, v in self.mentions}
        extra = [mine.get(b.var) or self.out.fresh(b.var.name or "x", b.var.type) for b in around]
        params = [*extra, *self.formals] if first else [*self.formals, *extra]
        results = [*also, *[self.result(i, t) for i, t in enumerate(types) if t is not None]]
        bindings = closed(self.out.bindings, params, results, self.stays)
        ts = tuple([v.type for v in results])
        return ir.Def(
            self.name, tuple(params), ts, (), ir.Block(tuple(bindings), ir.Ret(tuple(results)))
        )


def named(around: StagedLevel, f: Callable[..., Any], like: str) -> str:
    """A name that no other definition has, like that of the function."""
    return around.name_of_definition(named_like(f, like))


def named_like(f: Callable[..., Any], like: str) -> str:
    """The name of a function, or another one if it says nothing."""
    name = definition_name(f)
    return like if name == "f" else name


def fragment(
    around: StagedLevel,
    f: Callable[..., Any],
    like: str,
    formals: Sequence[Any],
    call: Callable[..., Any],
    name: str = "",
) -> Fragment:
    """The bindings that `call(f, staged formals)` writes; formals are (name, facts)."""
    name = name or named(around, f, like)
    f = adopted(around, f) if around.adopts else f
    with open_definition(around) as level:
        nodes = [level.formal(n, like) for n, like in formals]
        inner_values = [n.now().v for n in nodes]
        given, structure = flatten(overlay().restore(call(method(f), nodes)))
        leaves = [_entered(level, v) for v in given]
        mentions = [(a, v) for v, a in level.around.values()]
        mentions += [(a, v) for v, a in level.beside]
        out = level.out
    boxes = [(around.as_box(a), v) for a, v in mentions]
    return Fragment(
        name,
        out,
        [b.var for b in inner_values],
        leaves,
        structure,
        boxes,
        given,
        level.shared.stays,
    )


def _entered(level: StagedLevel, v: Value | None) -> Any:
    return level.entered(v) if isinstance(v, Traced) else v


def together(fragments: Sequence[Fragment]) -> list[Boxed]:
    """The values of the code around that any of the fragments mentions."""
    return list({b.var: b for f in fragments for b, _ in f.mentions}.values())


def written(level: StagedLevel, leaf: ir.Leaf, likes: Sequence[Seen]) -> list[Any]:
    """The binding of a form; its results as the function sees them."""
    if isinstance(leaf, ir.Application):
        level.applied(leaf.functions, isinstance(leaf, Call))
    line = level.out.line_of(leaf)
    made = [ir.Var(level.out.names("v"), like.type, line=line) for like in likes]
    level.out.bindings.append(ir.Let(tuple(made), leaf))
    return [level.given(v, like) for v, like in zip(made, likes, strict=True)]


def scan_of(
    level: StagedLevel, d: ir.Def, around: Sequence[Boxed], carries: Sequence[ir.Var], n: int,
    rows: Sequence[ir.Var] = (), reverse: bool = False,
) -> Scan:  # fmt: skip
    """n rounds of a body; what each would calculate alike of what is `around` is written before."""
    given = [b.var for b in around]
    if n > 0:
        ahead, given, d = before_rounds(d, given, level.out.names)
        level.out.bindings += ahead
    level.add(d)
    direction, args = "rev" if reverse else "fwd", (*given, *carries, *rows)
    return Scan(args, (d.name,), n, direction, len(given), len(carries), 0)


def types(likes: Sequence[Seen | None]) -> list[ArrayType | None]:
    """The types of values; None for constants."""
    return [None if like is None else like.type for like in likes]


def joined(likes: Sequence[Seen]) -> Seen:
    """The facts that hold of each of several values of one shape."""
    shape = likes[0].type.shape
    if not shape and all([like == likes[0] for like in likes]):
        return likes[0]._replace(lay=())
    t = ArrayType(shape, np.result_type(*[like.type.dtype for like in likes]))
    kinds, dtypes = {like.weak for like in likes}, {like.type.dtype for like in likes}
    one = len(kinds) == len(dtypes) == 1
    pythons = len(dtypes) == 1 and not kinds & {False, None}
    weak = likes[0].weak if one else perhaps_of(kinds) if pythons else None
    of_array = any([like.of_array for like in likes])
    return Seen(t, joined_strides(shape, [like.lay for like in likes]), weak, of_array)


def tracing() -> StagedLevel | None:
    """The definition that is being written, if a trace is innermost."""
    level = innermost_level()
    return level if isinstance(level, StagedLevel) else None


def is_operand(v: Value | None) -> bool:
    """Whether a leaf of operands becomes a formal: Python's integers and flags are constants."""
    if isinstance(v, Traced):
        return True
    return isinstance(v, float | complex | np.ndarray) or (
        isinstance(v, np.generic) and v.dtype.kind in "fc"
    )


class Operands:
    """The operands of a form: those that move as boxes, the others as constants."""

    structure: Structure

    def __init__(self, level: StagedLevel, tree: Tree, every: bool = False) -> None:
        leaves, self.structure = flatten(tree)
        wanted = [(is_number(v) or isinstance(v, bool)) if every else is_operand(v) for v in leaves]
        self.constants: list[Any | None] = [
            None if w else v for v, w in zip(leaves, wanted, strict=True)
        ]
        self.places: list[int] = [i for i, w in enumerate(wanted) if w]
        self.seen: list[Seen] = [seen(leaves[i]) for i in self.places]  # facts about these leaves
        self.boxes: list[Boxed] = [level.as_box(leaves[i]) for i in self.places]

    def types(self, likes: Sequence[Seen]) -> list[ArrayType | None]:
        """The types of all operands, where what moves is like these; None for constants."""
        types: list[ArrayType | None] = [None] * len(self.constants)
        for i, like in zip(self.places, likes, strict=True):
            types[i] = like.type
        return types

    def converted(self, likes: Sequence[Seen]) -> list[Boxed]:
        """The differentiable operands, in the dtypes of these."""
        pairs = zip(self.boxes, likes, strict=True)
        return [
            b if b.var.type == v.type else op("astype")(b, dtype=v.type.dtype) for b, v in pairs
        ]

    def tree(self, nodes: Sequence[Any]) -> Any:
        """The operands with these in place of what moves."""
        leaves = list(self.constants)
        for i, n in zip(self.places, nodes, strict=True):
            leaves[i] = n
        return unflatten(self.structure, leaves)


# --- branches -------------------------------------------------------------------------------------


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands); only the one that is taken is run.

    Raises StagingError for a staged condition that is not one boolean, StructureError or ShapeError
    for branches whose results differ in containers or shapes.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 2.0)
    3.0
    """
    if not _is_staged(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    if pred.shape or pred.dtype != BOOL.dtype:
        raise StagingError(
            f"cond: the condition is {type_of(pred)}; it must be one boolean, as of a comparison"
        )
    return _branches(Cond, pred, [true_fun, false_fun], operands, "cond")


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands); an index that is out of range is an error.

    Raises BoundsError for an index out of range; of branches what `cond` raises.

    >>> switch(1, [lambda x: x, lambda x: 2 * x], 3.0)
    6.0
    """
    branches = list(branches)
    if _is_staged(index):
        return _branches(Switch, index, branches, operands, "switch")
    i = operator.index(index if not isinstance(index, Traced) else int(index))
    if not 0 <= i < len(branches):
        raise BoundsError(f"switch: the index {i} is out of range for {len(branches)} branches")
    return branches[i](*operands)


def _is_staged(v: Value) -> bool:
    return isinstance(v, Traced) and not v.known


def _branches(
    form: type, chosen: Scalar, fs: Sequence[Any], operands: tuple[Any, ...], name: str
) -> Any:
    try:
        return _form_of_branches(form, chosen, fs, operands, name)
    except RecursionError:
        around = staged_around()
        if around is not None and around.shared.open:  # a lineara.function, which says why
            raise
        raise endless(name) from None


def endless(name: str) -> StagingError:
    """The error for a function that calls itself in a branch of a branch, and so on."""
    return StagingError(
        f"{name}: branches lie in each other without end; decorate a function that calls "
        "itself with lineara.function, and let a branch end without a call"
    )


def _form_of_branches(
    form: type, chosen: Shaped, fs: Sequence[Any], operands: tuple[Any, ...], name: str
) -> Any:
    level = tracing()
    if level is None:
        return one(
            lambda v, *xs: _form_of_branches(form, v, fs, xs, name),
            [chosen, *operands], fs[0], name,
        )  # fmt: skip
    given = Operands(level, operands)
    formals = [(f"x{i}", like) for i, like in enumerate(given.seen)]
    fragments: list[Fragment] = []
    for f in fs:
        try:
            made = fragment(level, f, "branch", formals, lambda g, nodes: g(*given.tree(nodes)))
        except Unknown as unknown:  # the other branches say what it gives
            level.shared.skipped.add(unknown.key)
            if f is fs[-1] and not fragments:
                raise
        else:
            fragments.append(made)
    first = fragments[0]
    for f in fragments:
        if f.structure != first.structure:
            raise StructureError(
                f"{name}: one branch gives {first.structure} and another {f.structure}; "
                "branches give the same containers"
            )
    likes = [_common(fragments, i, name) for i in range(len(first.leaves))]
    around = together(fragments)
    level.add(*[f.define(around, types(likes), False, ()) for f in fragments])
    args = [level.as_box(chosen), *given.boxes, *around]
    leaf = form(tuple([b.var for b in args]), tuple([f.name for f in fragments]))
    made = iter(written(level, leaf, [t for t in likes if t is not None]))
    leaves = [v if t is None else next(made) for v, t in zip(first.leaves, likes, strict=True)]
    return unflatten(first.structure, leaves)


def _is_eager(v: Value) -> bool:
    return isinstance(v, Traced) and not isinstance(v.level, StagedLevel)


def reached(f: Callable[..., Any], wanted: Callable[[Any], bool] = _is_eager) -> dict[str, Any]:
    """The traced values that a function captured, by name."""
    return {k: v for k, v in captured(f).items() if any(map(wanted, flatten(v)[0]))}


def adopted(level: StagedLevel, f: Callable[..., Any]) -> Any:
    """The function with staged values for those of differentiations and programs further out.

    What it does with them is then done where it is taken, and nowhere else.
    """

    def outer(v: Value) -> bool:
        return _is_eager(v) or (isinstance(v, Traced) and v.level.innermost() is not level)

    def staged(v: Box) -> Any:
        now = v.now() if outer(v) else v  # an array may hold constants only
        return level.given(level.mention(now).var, seen(now)) if outer(now) else now

    values = reached(f, outer)
    return with_captured(f, {k: map_leaves(staged, v) for k, v in values.items()}) if values else f


def _common(fragments: Sequence[Fragment], place: int, name: str) -> Seen | None:
    """The facts of a result that hold in all branches; None for a constant equal in all."""
    leaves = [f.leaves[place] for f in fragments]
    first = leaves[0]
    if not any(isinstance(v, Boxed | float | complex | np.ndarray) for v in leaves):
        if all([type(v) is type(first) and v == first for v in leaves]):
            return None
        if not all([is_number(v) or isinstance(v, bool) for v in leaves]):
            raise StructureError(
                f"{name}: the branches give the constants {', '.join(map(repr, leaves))}; what is "
                "no number must be the same in all branches"
            )
    likes = [f.seen(place) for f in fragments]
    if len({like.type.shape for like in likes}) > 1:
        raise ShapeError(
            f"{name}: the branches give {' and '.join([repr(v.type) for v in likes])} in one "
            "place; branches give results of the same types"
        )
    return joined(likes)


# --- loops ----------------------------------------------------------------------------------------


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """for i in range(lower, upper): val = body_fun(i, val).

    In a trace StructureError or ShapeError for a value that changes its containers or shapes.

    >>> fori_loop(0, 4, lambda i, x: x * 2, 1.0)
    16.0
    """
    level = tracing()
    if level is None:
        for i in range(operator.index(lower), operator.index(upper)):
            init_val = body_fun(i, init_val)
        return init_val
    if _is_staged(lower) or _is_staged(upper):
        last = while_loop(
            lambda c: c[0] < upper, lambda c: (c[0] + 1, body_fun(*c)), (lower, init_val)
        )
        return last[1]
    lower, upper = operator.index(lower), operator.index(upper)

    def step(carry: tuple[Any, ...], _: object) -> Any:
        i, val = carry
        return (i + 1, body_fun(i, val)), None

    named = functools.wraps(body_fun, assigned=("__name__",), updated=())(step)
    n = max(0, upper - lower)
    return _scan(level, named, (lower, init_val), None, n, False, "fori_loop")[0][1]


def scan(
    f: Callable[[Any, Any], Any],
    init: object,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> Any:
    """(carry, ys): carry, y = f(carry, x) for the rows x of xs; the ys are stacked.

    Raises ShapeError where the lengths of `xs` and `length` differ, StructureError where f does not
    return a pair or the carry changes its containers.

    >>> scan(lambda c, x: (c + x, c * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    """
    leaves, _ = flatten(xs)
    lengths = {type_of(v).shape[0] for v in leaves if v is not None}
    lengths |= set() if length is None else {length}
    if len(lengths) != 1:
        raise ShapeError(
            f"scan: the lengths are {', '.join(map(str, sorted(lengths))) or 'not given'}; all of "
            "xs have one length along the first axis, or give length="
        )
    (n,) = lengths
    level = tracing()
    if level is not None:
        return _scan(level, f, init, xs, n, reverse)
    ys: list[Any] = [None] * n
    flat, structure = flatten(xs)
    for i in reversed(range(n)) if reverse else range(n):
        row = unflatten(structure, [None if v is None else v[i] for v in flat])
        init, ys[i] = f(init, row)
    return init, _stacked(ys)


def _stacked(rows: Sequence[Any]) -> Any:
    """Containers of rows as one container of stacks."""
    if not rows:
        return None
    structure = flatten(rows[0])[1]
    columns = zip(*[flatten(row)[0] for row in rows], strict=True)
    return unflatten(structure, [None if c[0] is None else op("stack")(*c) for c in columns])


def _scan(
    level: StagedLevel,
    f: Callable[..., Any],
    init: object,
    xs: Traced | None,
    n: int,
    reverse: bool,
    name: str = "scan",
) -> Any:
    rows = Operands(level, xs)
    slices = [_row(like) for like in rows.seen]
    carry = Operands(level, init, every=True)
    k = len(carry.boxes)

    def call(g: Callable[..., Any], nodes: Sequence[Any]) -> Any:
        returned = g(carry.tree(nodes[:k]), rows.tree(nodes[k:]))
        if not isinstance(returned, tuple) or len(returned) != 2:
            given = (
                f"{len(returned)} values" if isinstance(returned, tuple) else show_type(returned)
            )
            raise StructureError(
                f"scan: the function gives (carry, y), but this one gave {given}; return None as "
                "y if nothing is to be stacked"
            )
        return returned

    def trace(likes: Sequence[Seen]) -> Fragment:
        formals = [*[(f"c{i}", like) for i, like in enumerate(likes)]]
        formals += [(f"x{i}", like) for i, like in enumerate(slices)]
        return fragment(level, f, "body", formals, call)

    body, likes = _settled(level, trace, carry, name, lambda b: _halves(b)[0])
    (_, ys), m = _halves(body)[1], len(carry.constants)
    outs = [body.seen(m + i) if _is_result(v) else None for i, v in enumerate(body.leaves[m:])]
    around = together([body])
    d = body.define(around, [*carry.types(likes), *types(outs)], True, ())
    carries = [b.var for b in carry.converted(likes)]
    leaf = scan_of(level, d, around, carries, n, [b.var for b in rows.boxes], reverse)
    made = written(level, leaf, [*likes, *[_stack(v, n) for v in outs if v is not None]])
    left = iter(made[k:])
    stacks = [
        next(left) if t is not None else v for v, t in zip(body.leaves[m:], outs, strict=True)
    ]
    return carry.tree(made[:k]), unflatten(ys, stacks)


def _row(stack: Seen) -> Seen:
    """The facts of the rows of an array."""
    t, lay = stack.type, stack.lay
    lay = None if lay is None else type(lay)(lay[1:])
    return Seen(ArrayType(t.shape[1:], t.dtype), lay)


def _stack(row: Seen, n: int) -> Seen:
    """The facts of a stack of rows, which lies in memory as the rows do."""
    t = ArrayType((n, *row.type.shape), row.type.dtype)
    if row.lay is None or isinstance(row.lay, Doubtful):
        return Seen(t, row.lay and Doubtful(c_strides(t.shape)))
    two = op("stack")(*[laid_out(np.zeros(row.type.shape), row.lay)] * 2)
    return Seen(t, packed(t.shape, strides_of(two), "K"))


def _is_result(v: Boxed | None) -> bool:
    return isinstance(v, Boxed) or is_number(v)


def _halves(body: Fragment) -> Any:
    """The leaves of the carry, and the structures of carry and row."""
    carry, y = unflatten(body.structure, body.leaves)
    leaves, structure = flatten(carry)
    return (leaves, structure), (structure, flatten(y)[1])


def _settled(
    level: StagedLevel,
    trace: Callable[..., Any],
    carry: Operands,
    name: str,
    part: Callable[..., Any],
) -> tuple[Fragment, list[Seen]]:
    """The body for carries that it hands on so: integers may become floating."""
    likes = carry.seen
    while True:
        mark = level.mark()
        body = trace(likes)
        leaves, structure = part(body)
        if structure != carry.structure:
            raise StructureError(
                f"{name}: the carry is {carry.structure}, but the function hands {structure} on; "
                "a carry keeps its containers"
            )
        handed_on = [body.seen(i) for i in carry.places]  # the carry comes first
        for i, (s, t) in enumerate(zip(likes, handed_on, strict=True)):
            if s.type.shape != t.type.shape:
                raise ShapeError(
                    f"{name}: carry {i} is {s.type}, but the function hands {t.type} on; a carry "
                    "keeps its type"
                )
        fixed = [(v, leaves[i]) for i, v in enumerate(carry.constants) if i not in carry.places]
        for before, after in fixed:
            if before is not after and before != after:
                raise StructureError(
                    f"{name}: the constant {before!r} in the carry became {after!r}; only numbers "
                    "change from round to round"
                )
        wider = [joined(pair) for pair in zip(likes, handed_on, strict=True)]
        if _alike(wider, likes):
            return body, likes
        likes = wider
        level.back_to(mark)


def _alike(likes: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two lists of facts are equal; strides of different classes are not."""
    pairs = zip(likes, others, strict=True)
    return all([a == b and (a is None or type(a.lay) is type(b.lay)) for a, b in pairs])


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """while cond_fun(val): val = body_fun(val).

    In a trace StagingError for a condition that is not one boolean, StructureError or ShapeError
    for a value that changes its containers or shapes.

    >>> while_loop(lambda x: x < 100, lambda x: x * 3, 1.0)
    243.0
    """
    level = tracing()
    if level is None:
        while True:
            test = cond_fun(init_val)
            if _is_staged(test):
                return one(
                    lambda val: while_loop(cond_fun, body_fun, val),
                    [init_val], body_fun, "while_loop",
                )  # fmt: skip
            if not test:
                return init_val
            init_val = body_fun(init_val)
    carry = Operands(level, init_val, every=True)

    def trace(likes: Sequence[Seen]) -> Fragment:
        formals = [(f"c{i}", like) for i, like in enumerate(likes)]
        return fragment(level, body_fun, "body", formals, lambda g, nodes: g(carry.tree(nodes)))

    body, likes = _settled(level, trace, carry, "while_loop", lambda b: (b.leaves, b.structure))
    formals = [(f"c{i}", like) for i, like in enumerate(likes)]
    test = fragment(level, cond_fun, "condition", formals, lambda g, nodes: g(carry.tree(nodes)))
    if len(test.leaves) != 1 or test.seen(0).type != BOOL:
        raise StagingError("while_loop: the condition gives one boolean, as a comparison does")
    around = together([test, body])
    made = body.define(around, carry.types(likes), True, ())
    level.add(test.define(around, [BOOL], True, ()), made)
    args = [*around, *carry.converted(likes)]
    leaf = While(tuple([b.var for b in args]), (test.name, body.name), len(around))
    return carry.tree(written(level, leaf, likes))


def one(form: Callable[..., Any], operands: Sequence[Any], f: Callable[..., Any], name: str) -> Any:
    """A form in a differentiation within a trace: one operation, a definition with the form.

    `form(*operands)` is traced in it as in any trace, so a branch, a loop and a recursive call have
    the derivatives that the passes give them.
    """
    leaves, structure = flatten(tuple(operands))
    types = [type_of(v) if is_operand(v) else None for v in leaves]
    one = apart(
        lambda *nodes: form(*unflatten(structure, nodes)), leaves, types, named_like(f, name)
    )
    values = [*[leaves[i] for i in one.given], *one.mentions]
    return one.tree(op("defined")(*values, definition=one.definition, name=name))


# --- calls ----------------------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")


def function(f: Callable[P, R]) -> Callable[P, R]:
    """f, which a traced program calls: one definition for each form of arguments.

    What f reads besides its arguments is read when it is first called in a trace.

    >>> @function
    ... def square(x):
    ...     return x * x
    >>> square(square(2.0))
    16.0
    """

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        level = tracing()
        if level is None:
            if staged_around() is None:
                return f(*args, **kwargs)
            return one(lambda xs, named: called(*xs, **named), [args, kwargs], f, "function")
        given = Operands(level, (args, kwargs))
        likes = tuple([(like, type(like.lay)) for like in given.seen])
        key = (f, likes, given.structure, tuple(map(plain_key, given.constants)))
        known = level.called.get(key) or level.shared.open.get(key) or Known(level, f, given, key)
        around = known.around(level)
        leaf = Call(tuple([b.var for b in (*given.boxes, *around)]), (known.name,))
        made = iter(written(level, leaf, [t for t in known.likes if t is not None]))
        pairs = zip(known.leaves, known.likes, strict=True)
        assert known.structure is not None, "what a function that is called gives is known"
        return unflatten(known.structure, [v if t is None else next(made) for v, t in pairs])

    return called


class Unknown(BaseException):
    """A function calls itself where nothing has said yet what it gives."""

    def __init__(self, key: Any) -> None:
        self.key = key


class Known:
    """A function as a definition: its name, and what it gives.

    While it is being written it may call itself.  What it gives then is what the branches give that
    do not; with that it is written again, until it gives what was assumed.
    """

    leaves: list[Any]
    key: Any
    given: Operands
    f: Callable[..., Any]

    likes: list[Seen | None]  # what is known of what it gives; None for constants

    def __init__(self, level: StagedLevel, f: Callable[..., Any], given: Operands, key: Any):
        self.f, self.given, self.key = f, given, key
        self.name: str = named(level, f, "function")
        self.structure: Structure | None = None
        self.mentions: list[Any] = []  # values of the code around, in the order of the formals
        shared = level.shared
        outermost = not shared.open
        self.again = False  # whether it calls itself with other constants or types
        for k in shared.open.values():
            k.again = k.again or k.f is f
        shared.open[key] = self
        skipped, shared.skipped = shared.skipped, set()
        try:
            body = self._written(level)
        except RecursionError:
            if not (outermost and self.again):
                raise
            raise StagingError(
                f"{self.name} calls itself with other constants or types every time, each of which "
                "is a definition of its own; pass what changes as an array or a floating number, "
                "and let lineara.cond choose the branch that ends"
            ) from None
        finally:
            del shared.open[key]
            skipped |= shared.skipped
            shared.skipped = skipped
        if shared.skipped:  # of a function around this one, which is written again
            return
        level.add(body.define(self.around(level), types(self.likes), False, ()))
        if not self.mentions:
            level.called[key] = self

    def around(self, level: StagedLevel) -> list[Boxed]:
        """The values of the code around that the function mentions, where it is called."""
        if self.structure is None:
            raise Unknown(self.key)
        return [level.as_box(a) for a in self.mentions]

    def _written(self, level: StagedLevel) -> Fragment:
        """The text of the function, traced until its results have the types assumed of them."""

        def call(g: Callable[..., Any], nodes: Sequence[Any]) -> Any:
            args, kwargs = self.given.tree(nodes)
            return g(*args, **kwargs)

        formals = [(f"x{i}", like) for i, like in enumerate(self.given.seen)]
        while True:
            mark = level.mark()
            level.shared.skipped.discard(self.key)
            try:
                body = fragment(level, self.f, "function", formals, call, self.name)
            except Unknown as unknown:
                if unknown.key is not self.key:
                    raise
                raise StagingError(
                    f"{self.name} calls itself in every branch, so nothing says what it gives; one "
                    "branch of a lineara.cond must end without a call"
                ) from None
            if self._assumed(level, body) and self.key not in level.shared.skipped:
                return body
            level.back_to(mark)

    def _assumed(self, level: StagedLevel, body: Fragment) -> bool:
        """Whether the body's results have the types assumed; from now on theirs are assumed."""
        kinds = Boxed | float | complex | np.ndarray
        likes = [body.seen(i) if isinstance(v, kinds) else None for i, v in enumerate(body.leaves)]
        around = {b.var: b for b in map(level.as_box, self.mentions)}
        new = [b for b in together([body]) if b.var not in around]
        self.mentions += map(level.wrap, new)
        if self.structure is None:
            self.structure, self.leaves, self.likes = body.structure, body.leaves, likes
            return True  # unless it was called, for which nothing was known
        if body.structure != self.structure:
            raise StructureError(
                f"{self.name} gives {self.structure} and, where it calls itself, {body.structure}; "
                "a recursive function gives the same containers"
            )
        wider: list[Seen | None] = []
        for s, t, u, v in zip(self.likes, likes, self.leaves, body.leaves, strict=True):
            if s is None and t is None and plain_key(u) == plain_key(v):
                wider.append(None)
                continue
            s, t = s or seen(u), t or seen(v)
            if s.type.shape != t.type.shape:
                raise ShapeError(
                    f"{self.name} gives {s.type} and, where it calls itself, {t.type}; a recursive "
                    "function gives one type"
                )
            wider.append(joined([s, t]))
        same, self.likes = _alike(wider, self.likes), wider
        return same and not new


def plain_key(v: Leaf) -> Any:
    """A constant as a part of a key: what may be changed by its identity."""
    return (type(v), v) if v is None or isinstance(v, int | str | bool) else (type(v), id(v))


__all__ = ["INTEGER", "cond", "fori_loop", "function", "scan", "switch", "while_loop"]

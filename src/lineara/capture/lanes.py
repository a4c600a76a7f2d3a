"""vmap: a function of one element, over the lanes of arrays.

The function is traced once, for the types of one lane; its program is then run on all lanes at
once, by the batch rule of each primitive.  What does not depend on a lane is calculated once.  At a
branch each lane goes to its own side, and a loop keeps the lanes that still run, so that no lane is
calculated where it would not have gone.  Inside a trace, where no value is known, the lanes of such
a branch or loop go one after the other.
"""

import functools
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from lineara.capture.forms import cond, function, scan, switch, while_loop
from lineara.capture.plain_code import overlay, seen
from lineara.eager.node import Traced, staged
from lineara.eager.regions import as_box, put
from lineara.eager.staged import StagedLevel
from lineara.eager.trace import innermost_level, open_level, writable
from lineara.errors import BoundsError, ShapeError, StructureError
from lineara.linear_a.branches import Cond, Switch
from lineara.linear_a.control import Call, Facts
from lineara.linear_a.emit import closed
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Accum,
    Applied,
    Block,
    Copy,
    Def,
    Drop,
    Leaf,
    Let,
    Lit,
    Prim,
    Put,
    Ret,
    Var,
    Zero,
    renamed_params,
    vars_in,
)
from lineara.primitive import Constant, aligned, op
from lineara.trees import flatten, unflatten
from lineara.types import ArrayType, type_of

Flags = tuple[bool, ...]


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """f over lanes: in_axes says which axis of each argument holds them, None that it has none.

    in_axes and out_axes are an axis for all, or a tuple with one for each argument (each result);
    an entry may be a container of axes, like the argument.  Nests, is differentiated and traced.

    >>> vmap(lambda x, y: x @ y, (0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """

    @functools.wraps(f, updated=())
    def mapped(*args: Any) -> Any:
        axes = _axes(in_axes, args, "in_axes")
        leaves, structure = flatten(args)
        size = _size(leaves, axes)
        rows = [v if a is None else _front(v, a) for v, a in zip(leaves, axes, strict=True)]
        one = _one_lane(seen(f), rows, axes, structure)
        machine = _Lanes(one.program, size, one.rules)
        flags = tuple([axes[i] is not None for i in one.given] + [False] * len(one.mentions))
        values = [*[rows[i] for i in one.given], *one.mentions]
        found, lanes = machine.definition(one.name, values, flags)
        every = [v if b else machine.spread(v) for v, b in zip(found, lanes, strict=True)]
        left = iter(every)
        out = [next(left) if c is _One else _still(c, size) for c in one.constants]
        tree = unflatten(one.structure, out)
        where = _axes(out_axes, (tree,), "out_axes", single=True)
        moved = [_back(v, a) for v, a in zip(flatten(tree)[0], where, strict=True)]
        return unflatten(one.structure, moved)

    return mapped


# --- axes -----------------------------------------------------------------------------------------


def _axes(axes: Any, args: tuple, name: str, single: bool = False) -> list[Any]:
    """The axis of each leaf."""
    given = (axes,) if single else axes
    if not single and (axes is None or isinstance(axes, int)):
        given = (axes,) * len(args)
    if single and isinstance(axes, tuple) and not isinstance(args[0], tuple):
        raise StructureError(f"vmap: {name} is a tuple, but there is one result")
    if not isinstance(given, tuple | list) or len(given) != len(args):
        raise StructureError(
            f"vmap: {name} is {axes!r}; give an axis, or a tuple with one for each of the "
            f"{len(args)} arguments"
        )
    found: list[Any] = []
    for axis, a in zip(given, args, strict=True):
        leaves, structure = flatten(a)
        if axis is None or isinstance(axis, int):
            found += [axis] * len(leaves)
            continue
        parts, form = flatten(axis)
        if form != structure:
            raise StructureError(f"vmap: {name} has {form} for an argument that is {structure}")
        found += parts
    return found


def _size(leaves: Sequence[Any], axes: Sequence[Any]) -> int:
    """The number of lanes."""
    sizes: dict[int, ArrayType] = {}
    for v, a in zip(leaves, axes, strict=True):
        if a is None:
            continue
        t = type_of(v) if isinstance(v, Traced | np.ndarray) else ArrayType((), np.dtype(object))
        if not -t.ndim <= a < t.ndim:
            raise ShapeError(
                f"vmap: there is no axis {a} in {v!r}; give None in in_axes for what has no lanes"
            )
        sizes[t.shape[a]] = t
    if len(sizes) != 1 or 0 in sizes:
        raise ShapeError(
            f"vmap: the lanes are {', '.join(map(str, sizes)) or 'none'}; all axes of lanes have "
            "one length, which is not 0"
        )
    return next(iter(sizes))


def _front(v: Any, axis: int) -> Any:
    """The array with an axis in front."""
    axis %= len(v.shape)
    axes = (axis, *[i for i in range(len(v.shape)) if i != axis])
    return v if not axis else op("permute_dims")(v, axes=axes)


def _back(v: Any, axis: Any) -> Any:
    """The array with its lanes at an axis; without lanes, the first."""
    if not isinstance(v, Traced | np.ndarray):
        return v
    if axis is None:
        return v[0]
    n = len(v.shape)
    axis %= n
    axes = [i for i in range(1, n)]
    axes.insert(axis, 0)
    return v if not axis else op("permute_dims")(v, axes=tuple(axes))


def _still(c: Any, size: int) -> Any:
    """A constant result: numbers in every lane, anything else as it is."""
    number = isinstance(c, int | float | complex | np.ndarray | np.generic)
    return np.array(np.broadcast_to(c, (size, *np.shape(c)))) if number else c


# --- one lane -------------------------------------------------------------------------------------


class _One(NamedTuple):
    """The program of one lane."""

    program: Program
    name: str
    given: list[int]  # the leaves that are its first formals
    mentions: list[Any]  # the values of the others
    structure: Any
    constants: list[Any]  # of the results; the class where there is a variable
    rules: dict[str, Any]  # of the definitions whose derivatives the user states


def _one_lane(f: Any, rows: Sequence[Any], axes: Sequence[Any], structure: Any) -> _One:
    """The function traced for one lane; what it mentions of outside becomes formals."""
    outer = innermost_level()
    with open_level(StagedLevel) as level:
        level.shared.adopts = True
        if isinstance(outer, StagedLevel):
            outer.inner = level
        try:
            nodes, given, formals = [], [], []
            for i, (v, a) in enumerate(zip(rows, axes, strict=True)):
                if a is None and not isinstance(v, Traced | np.ndarray):
                    nodes.append(v)
                    continue
                t = type_of(v)
                t = t if a is None else ArrayType(t.shape[1:], t.dtype)
                nodes.append(level.formal("x", t))
                formals.append(nodes[-1].now().v.var)
                given.append(i)
            out = overlay().restore(f(*unflatten(structure, nodes)))
            leaves, form = flatten(out)
            constants, results = [], []
            for leaf in leaves:
                v = level.entered(leaf) if isinstance(leaf, Traced) else leaf
                v = as_box(level, v) if isinstance(leaf, Traced) else v
                constants.append(_One if isinstance(leaf, Traced) else v)
                results += [v.var] if isinstance(leaf, Traced) else []
        finally:
            if isinstance(outer, StagedLevel):
                outer.inner = None
        around = [*[(v, c) for v, c in level.beside], *level.around.values()]
        params = (*formals, *[v for v, _ in around])
        body = Block(tuple(closed(level.out.bindings, params, results)), Ret(tuple(results)))
        name = level.name_of_definition("lane")
        made = Def(name, params, tuple([v.type for v in results]), (), body)
        rules = level.shared.rules
        stated = {k: d for rule in rules.values() for k, d in rule.flat.items()}
        program = Program({}, {**level.shared.defs, **stated, name: made})
    return _One(program, name, given, [c for _, c in around], form, constants, rules)


# --- all lanes ------------------------------------------------------------------------------------


class _Lanes:
    """A program on values, some of which have a leading axis of lanes."""

    def __init__(self, program: Program, size: int, rules: dict[str, Any]) -> None:
        self.program = program
        self.size = size
        self.rules = rules
        self.flows = Facts()
        self.over: dict[Any, Any] = {}  # rules over lanes

    def sized(self, size: int) -> "_Lanes":
        """The same over other lanes."""
        found = _Lanes(self.program, size, self.rules)
        found.flows, found.over = self.flows, self.over
        return found

    def spread(self, v: Any) -> Any:
        """A value in every lane."""
        return op("broadcast_to")(v, shape=(self.size, *type_of(v).shape))

    def fitted(self, found: Sequence[Any], have: Flags, want: Flags) -> list[Any]:
        """Values with lanes where they are wanted."""
        return [
            self.spread(v) if w and not h else v for v, h, w in zip(found, have, want, strict=True)
        ]

    def definition(self, name: str, values: Sequence[Any], flags: Flags) -> tuple[list[Any], Flags]:
        """The results of a definition, and which of them have lanes."""
        d = self.program.defs[name]
        env = dict(zip(d.params, zip(values, flags, strict=True), strict=True))
        for b in d.body.bindings:
            assert isinstance(b, Let), "a traced program takes no product apart"
            assert isinstance(b.rhs, Leaf), "a traced program has no nested blocks"
            env.update(zip(b.vars, self.leaf(b.rhs, env), strict=True))
        found = self.leaf(d.body.leaf, env)
        return [v for v, _ in found], tuple([b for _, b in found])

    def leaf(self, e: Leaf, env: dict[Var, tuple[Any, bool]]) -> list[tuple[Any, bool]]:
        """The results of a leaf."""
        match e:
            case Ret() | Copy():
                return [env[a] for a in e.args]
            case Drop():
                return []
            case Lit(value=value):
                return [(value, False)]
            case Zero(type=t):
                assert isinstance(t, ArrayType)
                return [(np.zeros(t.shape, t.dtype), False)]
            case Prim():
                return [self.prim(e, env)]
            case Put() | Accum():
                return [self.write(e, env)]
            case Applied():
                pairs = [env[a] for a in e.args]
                values, flags = [v for v, _ in pairs], tuple([b for _, b in pairs])
                found, lanes = self.applied(e, values, flags)
                return list(zip(found, lanes, strict=True))
        raise AssertionError(type(e).__name__)

    def prim(self, e: Prim, env: dict[Var, tuple[Any, bool]]) -> tuple[Any, bool]:
        """A primitive, by its batch rule where an operand has lanes."""
        pairs = [env[a] for a in e.args]
        args, flags = tuple([v for v, _ in pairs]), tuple([b for _, b in pairs])
        params = renamed_params(e.params, lambda v: env[v][0])
        positions = [env[v][1] for v in vars_in(e.params)]
        if not any((*flags, *positions)):
            return e.primitive(*args, **params), False
        if positions:
            (x,) = self.fitted(args, flags, (True,))
            return self.moved(e, x, params, env), True
        ufunc = isinstance(getattr(np, e.name, None), np.ufunc)
        if isinstance(e.primitive, Constant) and ufunc:
            return e.primitive(*aligned(args, flags), **params), True
        return e.primitive.batch(args, flags, params), True

    def moved(self, e: Prim, x: Any, params: dict[str, Any], env: dict) -> Any:
        """index or scatter at positions that are values."""
        where = self.index(e.params["at"], params["at"], env)
        if where is None:
            return self.one_by_one(
                lambda row, at: e.primitive(row, **params | {"at": at}), x, e.params["at"], env
            )
        if e.name == "scatter":
            params = params | {"shape": (self.size, *params["shape"])}
        return e.primitive(x, **params | {"at": where})

    def index(self, stated: Any, at: Any, env: dict[Var, tuple[Any, bool]]) -> Any:
        """An index of all lanes, from one as it is stated and with its values; or None.

        None where it means something else behind an axis, or beside other positions in a row.
        """
        stated, at = (p if isinstance(p, tuple) else (p,) for p in (stated, at))
        if not any(env[v][1] for v in vars_in(stated)):
            return (slice(None), *at) if _plain_index(at) else None
        numbers = [_is_number(p) for p in stated]
        ahead = numbers.index(False) if False in numbers else len(numbers)
        if not all(isinstance(p, slice | EllipsisType) for p in stated[ahead:]):
            return None
        return (np.arange(self.size), *at)

    def one_by_one(self, act: Any, x: Any, at: Any, env: dict[Var, tuple[Any, bool]]) -> Any:
        """Lane by lane, where lanes are read or written at positions of their own."""

        def part(v: Var, i: int) -> Any:
            value, lanes = env[v]
            return value[i] if lanes else value

        rows = [act(x[i], renamed_params(at, lambda v, i=i: part(v, i))) for i in range(self.size)]
        return op("stack")(*rows)

    def write(self, e: Put | Accum, env: dict[Var, tuple[Any, bool]]) -> tuple[Any, bool]:
        """put and accum of values."""
        (x, b), *rest = [env[a] for a in e.args]
        t = e.args[0].type
        part = op("index").result(t, at=renamed_params(e.at, _sample))
        y, c = rest[0] if rest else (np.zeros(part.shape, part.dtype), False)
        by_lane = any(env[v][1] for v in vars_in(e.at))
        at = renamed_params(e.at, lambda v: env[v][0])
        if not (b or c or by_lane):
            return _written(e, x, at, y), False
        x, y = self.fitted((x, y), (b, c), (True, True))
        where = self.index(e.at, at, env)
        if where is None:
            pairs = [
                _written(e, x[i], renamed_params(e.at, lambda v, i=i: _at(env[v], i)), y[i])
                for i in range(self.size)
            ]
            return op("stack")(*pairs), True
        return _written(e, x, where, y), True

    # --- forms ------------------------------------------------------------------------------------

    def applied(self, e: Applied, values: list[Any], flags: Flags) -> tuple[list[Any], Flags]:
        """Calls, branches and loops."""
        if isinstance(e, Call):
            rule = self.rules.get(e.functions[0])
            if rule is not None:
                return rule.lanes(self, values, flags)
            return self.call(e.functions[0], values, flags)
        want = self.flow_applied(e, flags)
        if isinstance(e, Cond | Switch):
            return self.branches(e, values, flags, want), want
        if isinstance(e, Scan):
            return self.scan(e, values, flags, want), want
        assert isinstance(e, While)
        return self.loop(e, values, flags, want), want

    def call(self, f: str, values: list[Any], flags: Flags) -> tuple[list[Any], Flags]:
        """A call; in a trace, of a definition over lanes, since it may be a recursion."""
        want = self.flow(f, flags)
        key = f, flags, self.size
        if key not in self.over:
            self.over[key] = function(named(self.branch(f, flags, want), f))
        return self.over[key](*values), want

    def branch(self, f: str, flags: Flags, want: Flags) -> Any:
        """A definition as a function of its arguments, with lanes where they are wanted."""

        def run(*given: Any) -> list[Any]:
            found, have = self.definition(f, given, flags)
            return self.fitted(found, have, want)

        return run

    def branches(self, e: Any, values: list[Any], flags: Flags, want: Flags) -> list[Any]:
        """Each lane goes to the branch that is its own."""
        chosen, rest = values[0], values[1:]
        if not flags[0]:
            fs = [self.branch(f, flags[1:], want) for f in e.functions]
            return cond(chosen, *fs, *rest) if isinstance(e, Cond) else switch(chosen, fs, *rest)
        if staged(chosen):
            return self.in_turn(e, values, flags, len(want))
        which = np.asarray(chosen)
        which = np.where(which, 0, 1) if isinstance(e, Cond) else which
        wrong = which[(which < 0) | (which >= len(e.functions))]
        if wrong.size:
            raise BoundsError(
                f"switch: the index {wrong[0]} is out of range for {len(e.functions)} branches"
            )
        parts = []
        for i, f in enumerate(e.functions):
            idx = np.flatnonzero(which == i)
            if idx.size:
                given = [v[idx] if b else v for v, b in zip(rest, flags[1:], strict=True)]
                parts.append((idx, self.sized(idx.size).branch(f, flags[1:], want)(*given)))
        return _joined(parts)

    def in_turn(self, e: Applied, values: list[Any], flags: Flags, n: int) -> list[Any]:
        """One lane after the other, where no value is known."""
        rows = [v for v, b in zip(values, flags, strict=True) if b]

        def lane(carry: Any, row: Any) -> Any:
            left = iter(row)
            given = [next(left) if b else v for v, b in zip(values, flags, strict=True)]
            return carry, self.applied(e, given, (False,) * len(given))[0]

        return list(scan(lane, (), rows)[1])

    def scan(self, e: Scan, values: list[Any], flags: Flags, want: Flags) -> list[Any]:
        """Every round on all lanes; rows of the stacks come first."""
        k, c = e.nk, e.nk + e.nc
        ks, cs, xs = values[:k], values[k:c], values[c:]
        cs = self.fitted(cs, flags[k:c], want[: e.nc])
        inner = (*flags[:k], *want[: e.nc], *flags[c:])
        xs = [_front(v, 1) if b else v for v, b in zip(xs, flags[c:], strict=True)]
        body = self.branch(e.body, inner, want)

        def step(carry: Any, row: Any) -> Any:
            found = body(*ks, *carry, *row)
            return found[: e.nc], found[e.nc :]

        n = e.n if e.n is not None else len(xs[0])
        if n == 0:
            return self._none(e, cs, want)
        cs, ys = scan(step, list(cs), list(xs), n, e.direction == "rev")
        lanes = zip(ys or [], want[e.nc :], strict=True)
        return [*cs, *[_front(y, 1) if b else y for y, b in lanes]]

    def _none(self, e: Scan, cs: list[Any], want: Flags) -> list[Any]:
        d = self.program.defs[e.body]
        rows = []
        for t, b in zip(d.results[e.nc :], want[e.nc :], strict=True):
            assert isinstance(t, ArrayType)
            rows.append(np.zeros(((self.size,) if b else ()) + (0, *t.shape), t.dtype))
        return [*cs, *rows]

    def loop(self, e: While, values: list[Any], flags: Flags, want: Flags) -> list[Any]:
        """Rounds for the lanes that still run."""
        k = e.nk
        p, body = e.functions
        cs = self.fitted(values[k:], flags[k:], want)
        inner = (*flags[:k], *want)
        m = len(self.program.defs[p].params)
        if not self.flow(p, inner[:m])[0]:
            test, step = self.branch(p, inner[:m], (False,)), self.branch(body, inner, want)
            found = while_loop(
                lambda c: test(*[*values[:k], *c][:m])[0], lambda c: step(*values[:k], *c), cs
            )
            return list(found)
        if any(map(staged, values)):
            return self.in_turn(e, [*values[:k], *cs], inner, len(want))
        idx, now = np.arange(self.size), [*values[:k], *cs]
        parts = []
        while idx.size:
            here = self.sized(idx.size)
            (going,) = here.branch(p, inner[:m], (True,))(*now[:m])
            going = np.asarray(going)
            if not going.all():
                parts.append((idx[~going], [c[~going] for c in now[k:]]))
                now = [v[going] if b else v for v, b in zip(now, inner, strict=True)]
                idx = idx[going]
            if idx.size:
                now = [*now[:k], *self.sized(idx.size).branch(body, inner, want)(*now)]
        return _joined(parts)

    # --- which results have lanes -----------------------------------------------------------------

    def flow(self, name: str, flags: Flags) -> Flags:
        """Which results of a definition depend on lanes, if these arguments do."""
        d = self.program.defs[name]
        return self.flows((name, flags), (False,) * len(d.results), lambda: self._flow(d, flags))

    def _flow(self, d: Def, flags: Flags) -> Flags:
        on = dict(zip(d.params, flags, strict=True))
        for b in d.body.bindings:
            assert isinstance(b, Let)
            e = b.rhs
            if isinstance(e, Applied):
                found = self.flow_applied(e, tuple([on[a] for a in e.args]))
            else:
                assert isinstance(e, Leaf)
                found = (any([on[a] for a in e.operands()]),) * len(b.vars)
            on.update(zip(b.vars, found, strict=True))
        e = d.body.leaf
        assert isinstance(e, Ret), "a traced definition ends with its results"
        return tuple([on[a] for a in e.args])

    def flow_applied(self, e: Applied, flags: Flags) -> Flags:
        """The same of a form; carries settle."""
        if isinstance(e, Call):
            rule = self.rules.get(e.functions[0])
            return rule.flow(self, flags) if rule else self.flow(e.functions[0], flags)
        if isinstance(e, Cond | Switch):
            found = [self.flow(f, flags[1:]) for f in e.functions]
            return tuple([flags[0] or any(column) for column in zip(*found, strict=True)])
        assert isinstance(e, Scan | While)
        k = e.nk
        nc = e.nc if isinstance(e, Scan) else len(flags) - k
        carried = flags[k : k + nc]
        while True:
            inner = (*flags[:k], *carried, *flags[k + nc :])
            found = self.flow(e.functions[-1], inner)
            if isinstance(e, While):
                p = e.functions[0]
                if self.flow(p, inner[: len(self.program.defs[p].params)])[0]:
                    found = (True,) * nc
            wider = tuple([a or b for a, b in zip(carried, found[:nc], strict=True)])
            if wider == carried:
                return (*carried, *found[nc:])
            carried = wider


def named(run: Any, name: str) -> Any:
    """A function under a name."""
    run.__name__ = name
    return run


def _sample(v: Var) -> Any:
    t = v.type
    assert isinstance(t, ArrayType)
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0)


def _is_number(p: Any) -> bool:
    """Whether a part of an index that is stated in a program is one integer."""
    if isinstance(p, Var):
        return isinstance(p.type, ArrayType) and not p.type.shape and p.type.dtype.kind in "iu"
    return isinstance(p, int | np.integer) and not isinstance(p, bool)


def _at(pair: tuple[Any, bool], i: int) -> Any:
    return pair[0][i] if pair[1] else pair[0]


def _plain_index(at: tuple[Any, ...]) -> bool:
    """Whether an index means the same behind a leading axis."""
    plain = int | np.integer | slice | None | EllipsisType
    return len(at) == 1 or all(
        isinstance(p, plain) or (isinstance(p, Traced) and not p.shape) for p in at
    )


def _written(e: Put | Accum, x: Any, at: Any, y: Any) -> Any:
    """An array of one's own with the part written."""
    level = innermost_level()
    if isinstance(level, StagedLevel) and staged([x, y, *at]):
        made = level.buffer(x if isinstance(x, Traced) else np.array(x))
        if isinstance(e, Accum):
            made.w.add_at(at, y)
            return made
        boxes = level.as_box(x), level.as_box(y)  # positions of lanes are different
        return level.wrap(put(level.out, boxes[0], level.parameter(at), boxes[1]))
    if isinstance(e, Accum):
        return x + op("scatter")(y, at=at, shape=type_of(x).shape)
    made = x.copy() if isinstance(x, Traced) else writable(np.array(x))
    made[at] = y
    return made


def _joined(parts: Sequence[tuple[np.ndarray, list[Any]]]) -> list[Any]:
    """Results of some lanes each, in the order of the lanes."""
    if len(parts) == 1:
        idx, found = parts[0]
        order = np.argsort(idx, kind="stable")
    else:
        order = np.argsort(np.concatenate([idx for idx, _ in parts]), kind="stable")
        columns = zip(*[found for _, found in parts], strict=True)
        found = [op("concat")(*column, axis=0) for column in columns]
    return [v[order] for v in found]


__all__ = ["vmap"]

"""Plans: what a call of NumPy's does under a derivative, decided once a signature.

    signature  the function, what each argument is, and the options
    make       our rule on sketches, and the linear map of each of its steps on a sketch of a
               cotangent: straight-line code over NumPy, compiled once
    run        y = f(*values), NumPy's own call, and one entry on the tape

The general way stays the one fact: it is taken before a signature has its plan, where a call has
none, and where NumPy's call raises.  What is no plain array on its way back (masked, batched, of an
outer level) and tangents take the linear maps of the same steps, on the values.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError
from lineara.facts.primitive import Constant, Joint, Primitive, registry
from lineara.facts.types import ArrayType
from lineara.ops.shape import any_box, as_array
from lineara.tape.node import Entry, Traced, zero
from lineara.tape.plan_code import Code, written_out
from lineara.tape.sketches import Draft, Move, Sketch, Step, Unplanned, combined, may_move
from lineara.tape.strides import in_c_order

GENERAL = object()  # in place of a result: the general way has to be taken
CALLS = 4  # a signature gets its plan at this call, since making one takes about a millisecond
KNOWN = 4096  # signatures that are remembered
F64 = np.dtype(float)
_ARRAYS = {np.dtype(t): t for t in ("f8", "?", "i8")}  # dtypes of the plain arrays of a plan
_OPTIONS = frozenset({int, bool, str, type(None), type(Ellipsis), np.dtype})
_TYPES = (np.generic, float, int, complex)

Judge = Callable[[Any, tuple, dict[str, Any]], None]


class Plan(NamedTuple):
    """What the calls of one signature do."""

    name: str
    number: bool  # whether the result is a number
    place: int | None  # of the result that has a derivative, where there are several
    code: Code
    guarded: tuple[int, ...]  # plain arrays that the way back reads
    dropped: tuple[int, ...]  # those that it does not
    leaves: tuple[tuple[str, ArrayType], ...]
    moving: tuple[str, ...]  # the leaves through which the derivative flows
    program: tuple[Step, ...]
    out: str
    work: int
    recur: Callable[..., Joint]


def by_plan(func: Any, args: tuple, kwargs: dict[str, Any], judge: Judge | None = None) -> Any:
    """The result of a call of NumPy's that has a plan; else `GENERAL`.

    `judge` raises `Unplanned` where a function does more than to calculate its value.
    """
    key: list[Any] = [func]
    leaves: list[Any] = []
    values: list[Any] = []
    options = kwargs
    try:
        given = [_read(a, key, leaves, values) for a in args]
        if kwargs:
            options = {}
            for name, v in kwargs.items():
                key.append(name)
                options[name] = _read(v, key, leaves, values)
    except Unplanned:
        return GENERAL
    nodes = [a for a in leaves if isinstance(a, Traced)]
    if not nodes:
        return GENERAL
    level = nodes[0].level
    if not level.plans or level.kinks is not None or not level.open:
        return GENERAL
    for n in nodes:
        if n.level is not level:
            return GENERAL
    signature = tuple(key)
    plan = registry.plans.get(signature, 0)
    if type(plan) is not Plan:
        if type(plan) is not int:
            return GENERAL
        plan = _counted(signature, plan, (func, args, kwargs, leaves, values, judge))
        if type(plan) is not Plan:
            return GENERAL
    try:
        y = func(*given, **options)
    except Exception:  # the general way raises the same, and says more
        return GENERAL
    return _recorded(plan, level, y, nodes, values)


# --- the signature ------------------------------------------------------------------------------


def _read(a: Any, key: list[Any], leaves: list[Any], values: list[Any]) -> Any:
    """An argument as NumPy gets it; what it is, is added to the key, a value to the leaves."""
    kind = type(a)
    if kind in _OPTIONS:
        key += (kind, a)
        return a
    if issubclass(kind, Traced):
        tag, v = kind.in_plans, a.v
        if tag == "x" or tag == "w":
            if tag == "w":
                a = _settled(a)
                tag, v = "x", a.v
            if type(v) is not np.ndarray or v.dtype is not F64:
                raise _NONE
            key += (tag, v.shape)
            leaves.append(a)
            values.append(v)
            return v
        if tag is None or type(v) is not float:
            raise _NONE
        key.append(tag)
        number = np.float64(v)
        leaves.append(a)
        values.append(number)
        return number if tag == "n" else v
    if kind is np.ndarray:
        word = _ARRAYS.get(a.dtype)
        if word is None:
            raise _NONE
        key += (word, a.shape)
    elif kind is np.float64:
        key.append(kind)
    elif kind is list or kind is tuple:
        key += (kind, len(a))
        return kind([_read(v, key, leaves, values) for v in a])
    else:
        key += _constant(kind, a)
        return a
    leaves.append(a)
    values.append(a)
    return a


_NONE = Unplanned  # the class: one instance would keep the frames it has passed


def _constant(kind: type, a: Any) -> tuple:
    """What is known of an option that is a constant."""
    if kind is float:
        return kind, a, a == 0 and str(a)  # -0.0 is another number
    if kind is slice:
        return kind, a.start, a.stop, a.step
    if kind is type and issubclass(a, _TYPES):
        return kind, a
    raise _NONE


def _settled(a: Any) -> Any:
    """The node with the content of a written array, which lies in memory as NumPy's would."""
    if a.memory() is not None:  # NumPy alone is asked
        raise _NONE
    node = a.now()
    if type(node) is not a.level.X or type(node.v) is not np.ndarray:
        raise _NONE
    if not (node.v.flags.c_contiguous and in_c_order(node.s, a.lay)):
        raise _NONE
    return node


# --- running ------------------------------------------------------------------------------------


def _recorded(plan: Plan, level: Any, y: Any, nodes: list[Any], values: list[Any]) -> Any:
    """The result with its entry on the tape; `GENERAL` where NumPy's is another than expected."""
    v = y if plan.place is None else y[plan.place]
    if plan.number:
        if type(v) is not np.float64:
            return GENERAL
        o = level.N()
        o.v = float(v)
        o.g = zero
    else:
        if type(v) is not np.ndarray or v.dtype is not F64:
            return GENERAL
        if v.base is None:
            alias = any([v is a for a in values])
        else:
            alias = any([np.may_share_memory(v, a) for a in values])
        if alias:
            return GENERAL
        o = level.X()
        o.v = v
        o.g = o.k = None
        o.s = v.shape
    o.a = o.b = None
    for i in plan.dropped:
        values[i] = None
    code = plan.code
    if code.keep is None:
        for i in plan.guarded:
            values[i] = level.guard(values[i])
        values.append(v)
    else:
        try:
            with np.errstate(all="ignore"):
                kept = code.keep(*values, v)
        except Exception:
            return GENERAL
        for i in plan.guarded:
            values[i] = level.guard(values[i])
        values += (v, *kept)
    level.tape.append(Entry(o, nodes, Call(plan, values), plan.name, plan.work))
    if plan.place is None:
        return o
    parts = [*y[: plan.place], o, *y[plan.place + 1 :]]
    return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)


class Call:
    """The linear map of one call that has a plan, for whatever flows; a `Joint`."""

    __slots__ = ("_joint", "plan", "values")

    def __init__(self, plan: Plan, values: list[Any]) -> None:
        self.plan = plan
        self.values = values
        self._joint: Joint | None = None

    def takes(self, g: Any) -> bool:
        """Whether the plan's own code takes this cotangent: a plain one, of the result's type."""
        if self.plan.number:
            return type(g) is float
        return type(g) is np.ndarray and g.dtype is F64

    def forward(self, tangents: Sequence[Any]) -> Any:
        """The tangent of the result."""
        return self._map().forward(tangents)

    def back(self, y_bar: Any) -> Sequence[Any]:
        """The cotangents of the arguments."""
        return self._map().back(y_bar)

    def _map(self) -> Joint:
        if self._joint is None:
            self._joint = _map_of(self.plan, self.values)
        return self._joint


def _map_of(plan: Plan, values: list[Any]) -> Joint:
    """The linear maps of the steps at these values, in turn; what was dropped is a sketch."""
    draft = Draft(plan.recur)
    leaves = dict(plan.leaves)
    now: dict[str, Any] = {}
    for (name, t), v in zip(leaves.items(), values, strict=False):
        now[name] = draft.sketch(name, t) if v is None else v
    now[plan.out] = values[len(leaves)]
    moving, moves = set(plan.moving), []
    with np.errstate(all="ignore"):
        for step in plan.program:
            names: list[Any] = [a.name if isinstance(a, Sketch) else None for a in step.args]
            args = tuple(
                [a if n is None else now[n] for n, a in zip(names, step.args, strict=True)]
            )
            y = now.get(step.out)
            if y is None:
                y = now[step.out] = step.primitive(*args, **step.params)
            active = tuple([i for i, n in enumerate(names) if n in moving])
            if may_move(step, active):
                joint = step.primitive.linearize(y, args, active, step.params, plan.recur)
                if joint is not None:
                    moves.append(Move(step.out, step.t, [names[i] for i in active], joint))
                    moving.add(step.out)
    return combined(moves, plan.out, {name: leaves[name] for name in plan.moving})


# --- making -------------------------------------------------------------------------------------


def _counted(signature: tuple, count: int, call: tuple) -> Any:
    """One more call of a signature; its plan, when it gets one."""
    plans = registry.plans
    if count + 1 < CALLS:
        if len(plans) >= KNOWN:
            plans.clear()
        plans[signature] = count + 1
        return None
    try:
        made: Any = _made(*call)
    except Unplanned as e:
        made = str(e)
    except LinearaError as e:
        made = e.message
    except (TypeError, ValueError, AttributeError, ArithmeticError, AssertionError) as e:
        made = f"{type(e).__name__}: {e}"
    plans[signature] = made
    return made


def _made(
    func: Any, args: tuple, kwargs: dict[str, Any], leaves: list[Any], values: list[Any], judge: Any
) -> Plan:
    """The plan of a call: our rule on sketches of its arguments, and the way back."""
    if judge is not None:
        judge(func, args, kwargs)
    foreign = registry.foreign.get(func)
    rule = None if foreign is None else foreign.ours
    rule = func if isinstance(func, Primitive) else rule
    if rule is None or isinstance(rule, Constant):
        raise Unplanned("no rule, or one of a constant")
    nodes = [a for a in leaves if isinstance(a, Traced)]
    draft = Draft(nodes[0].level.recur)
    sketches = []
    for i, (a, v) in enumerate(zip(leaves, values, strict=True)):
        weak = isinstance(a, Traced) and a.in_plans == "s"
        t = ArrayType(v.shape, v.dtype)
        sketches.append(draft.sketch(f"a{i}", t, isinstance(a, Traced), weak))
    rest = iter(sketches)
    drawn = [_drawn(a, rest) for a in args]
    if foreign is None or not foreign.sequence:
        drawn = [as_array(a) if type(a) in (list, tuple) and any_box(a) else a for a in drawn]
    y = rule(*drawn, **{name: _drawn(v, rest) for name, v in kwargs.items()})
    parts = y if isinstance(y, tuple | list) else (y,)
    places = [i for i, v in enumerate(parts) if isinstance(v, Sketch) and v.moves]
    if len(places) != 1:
        raise Unplanned(f"{len(places)} results have a derivative")
    out = parts[places[0]]
    if out.t.dtype is not F64:
        raise Unplanned(f"the result is {out.t}")
    if not out.t.shape and [s.primitive.name for s in draft.program] == ["sum"]:
        raise Unplanned("the sum of all elements has a cotangent of one number")
    moving = [s.name for s in sketches if s.moves]
    code = written_out(draft, sketches, moving, out)
    plain = [i for i, s in enumerate(sketches) if not s.moves and s.t.shape]
    single = len(draft.program) == 1
    return Plan(
        name=draft.program[0].primitive.name if single else getattr(func, "__name__", ""),
        number=not out.t.shape,
        place=None if parts[0] is y else places[0],
        code=code,
        guarded=tuple([i for i in plain if f"a{i}" in code.reads]),
        dropped=tuple([i for i in plain if f"a{i}" not in code.reads]),
        leaves=tuple([(s.name, s.t) for s in sketches]),
        moving=tuple(moving),
        program=tuple(draft.program),
        out=out.name,
        work=sum([s.primitive.work(s.t, s.args, s.params) for s in draft.program]),
        recur=draft.recur,
    )


def _drawn(a: Any, sketches: Any) -> Any:
    """An argument with a sketch in place of each leaf."""
    if isinstance(a, Traced | np.ndarray | np.float64):
        return next(sketches)
    return type(a)([_drawn(v, sketches) for v in a]) if type(a) in (list, tuple) else a

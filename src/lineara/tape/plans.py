"""Plans: what a call of NumPy's does under a derivative, decided once a signature.

    signature  the function, what each argument is, and the options
    make       our rule on sketches, and the linear map of each of its steps on a sketch of a
               cotangent: straight-line code over NumPy, compiled once
    run        y = f(*values), NumPy's own call, and one entry on the tape

The general way stays the one fact: it is taken before a signature has its plan, where a call has
none, and where NumPy's call raises.  What is no plain array on its way back (masked, batched, of an
outer level) and tangents take the linear maps of the same steps, on the values.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError
from lineara.facts.primitive import Constant, Joint, Primitive, registry
from lineara.facts.types import ArrayType
from lineara.ops.shape import any_box, as_array
from lineara.tape.contributions import add
from lineara.tape.node import Entry, Traced, zero
from lineara.tape.plan_code import written_out
from lineara.tape.pull_reads import pull
from lineara.tape.sketches import Draft, Move, Sketch, Step, Unplanned, combined, may_move
from lineara.tape.strides import in_c_order

GENERAL = object()  # in place of a result: the general way has to be taken
CALLS = 4  # a signature gets its plan at this call, since making one takes about a millisecond
KNOWN = 4096  # signatures that are remembered
F64 = np.dtype(float)
_ARRAYS = {np.dtype(t): t for t in ("f8", "?", "i8")}  # dtypes of the plain arrays of a plan
_OPTIONS = frozenset({int, bool, str, type(None), type(Ellipsis), np.dtype})
_TYPES = (np.generic, float, int, complex)

# Raises `Unplanned` where a function does more than to calculate; of one whose derivative is that
# of a composition, what says whether the composition's value and the function's agree.
Judge = Callable[[Any, tuple, dict[str, Any]], Callable[[Any, Any, Sequence[Any]], bool] | None]


class Plan(NamedTuple):
    """What the calls of one signature do."""

    name: str
    number: bool  # whether the result is a number
    place: int | None  # of the result that has a derivative, where there are several
    pull: Callable[[Sequence[Any], Sequence[Any], Any], None]  # hands the cotangent to the parents
    keep: Callable[..., Sequence[Any]] | None  # what is calculated at the call for that
    alike: Callable[[Any, Any, Sequence[Any]], bool] | None  # of a composition and NumPy's value
    guarded: tuple[int, ...]  # plain arrays that the way back reads
    dropped: tuple[int, ...]  # those that it does not
    leaves: dict[str, ArrayType]
    moving: tuple[str, ...]  # the leaves through which the derivative flows
    program: tuple[Step, ...]
    out: str
    work: int
    recur: Callable[..., Joint]


class Call(Entry):
    """The tape entry of a call that has a plan."""

    __slots__ = ("_joint", "plan", "values")
    _joint: Joint | None
    out: Any
    parents: Sequence[Any]
    plan: Plan
    values: list[Any]

    @property
    def joint(self) -> Joint:  # type: ignore[override]  # made when something asks for it
        """The linear map, for whatever flows: the sweep calls `plan.pull` for plain arrays."""
        if self._joint is None:
            self._joint = _map_of(self.plan, self.values)
        return self._joint

    @property
    def name(self) -> str:  # type: ignore[override]
        """The operation, or the function of several."""
        return self.plan.name

    @property
    def work(self) -> int:  # type: ignore[override]
        """Scalar operations of the value."""
        return self.plan.work


def by_plan(func: Any, args: Sequence[Any], kwargs: dict[str, Any], judge: Any = None) -> Any:
    """The result of a call of NumPy's that has a plan; else `GENERAL`."""
    key: list[Any] = [func]
    nodes: list[Any] = []
    values: list[Any] = []
    try:
        given = _signed(args, key, nodes, values)
        options = kwargs
        if kwargs:
            key += kwargs
            options = dict(zip(kwargs, _signed(kwargs.values(), key, nodes, values), strict=True))
    except Unplanned:
        return GENERAL
    if not nodes:
        return GENERAL
    level = nodes[0].level
    if not level.plans or level.kinks is not None or not level.open:
        return GENERAL
    for n in nodes:
        if n.level is not level:
            return GENERAL
    signature = tuple(key)
    plan = known = registry.plans.get(signature)
    if type(plan) is not Plan:
        if type(plan) is str:
            return GENERAL
        plan = _counted(signature, plan or 0, func, args, kwargs, level, values, judge)
        if type(plan) is not Plan:
            return GENERAL
    try:
        y = func(*given, **options)
    except Exception:  # the general way raises the same, and says more
        return GENERAL
    y = _recorded(plan, level, y, nodes, values)
    if plan is known or y is GENERAL or _agrees(level.tape[-1]):
        return y
    level.tape.pop()
    registry.plans[signature] = "the code gives another derivative than the linear maps"
    return GENERAL


# --- the signature ------------------------------------------------------------------------------


def _signed(args: Iterable[Any], key: list[Any], nodes: list[Any], values: list[Any]) -> list[Any]:
    """The arguments as NumPy gets them; the key gets what each is, `values` those with a value."""
    given = []
    for a in args:
        kind = type(a)
        if issubclass(kind, Traced):
            tag = kind.in_plans
            if tag == "w":
                a, tag = _settled(a), "x"
            v = a.v
            if tag == "x":
                if type(v) is not np.ndarray or v.dtype is not F64:
                    raise _NONE
                key += (tag, v.shape)
                values.append(v)
            else:
                if tag is None or type(v) is not float:
                    raise _NONE
                key.append(tag)
                number = np.float64(v)
                values.append(number)
                v = number if tag == "n" else v
            nodes.append(a)
            given.append(v)
            continue
        if kind in _OPTIONS:
            key += (kind, a)
        elif kind is np.ndarray:
            word = _ARRAYS.get(a.dtype)
            if word is None:
                raise _NONE
            key += (word, a.shape)
            values.append(a)
        elif kind is list or kind is tuple:
            key += (kind, len(a))
            a = kind(_signed(a, key, nodes, values))
        elif kind is np.float64:
            key.append(kind)
            values.append(a)
        else:
            key += _constant(kind, a)
        given.append(a)
    return given


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
    place = plan.place
    v = y if place is None else y[place]
    if plan.number:
        if type(v) is not np.float64:
            return GENERAL
        o = level.N()
        o.v = float(v)
        o.g = zero
    else:
        if type(v) is not np.ndarray or v.dtype is not F64 or _is_view(v, values):
            return GENERAL
        o = level.X()
        o.v = v
        o.g = o.k = None
        o.s = v.shape
    o.a = o.b = None
    if plan.keep is None:
        kept = (v,)
    else:
        try:
            with np.errstate(all="ignore"):
                kept = plan.keep(*values, v)
                if plan.alike is not None and not plan.alike(kept[0], v, values):
                    return GENERAL
        except Exception:
            return GENERAL
    for i in plan.dropped:
        values[i] = None
    for i in plan.guarded:
        values[i] = level.guard(values[i])
    values += kept
    n = object.__new__(Call)  # whose slots are filled here, without a call
    n.out = o
    n.parents = nodes
    n.plan = plan
    n.values = values
    n._joint = None
    level.tape.append(n)
    if place is None:
        return o
    parts = [*y[:place], o, *y[place + 1 :]]
    return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)


def _is_view(v: np.ndarray, values: list[Any]) -> bool:
    """Whether a result is an argument, or shows its memory."""
    if v.base is None:
        return id(v) in map(id, values)
    return any([np.may_share_memory(v, a) for a in values])


def _map_of(plan: Plan, values: Sequence[Any]) -> Joint:
    """The linear maps of the steps at these values, in turn; what was dropped is a sketch."""
    draft = Draft(plan.recur)
    leaves = plan.leaves
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


def _agrees(call: Call) -> bool:
    """Whether the code of a new plan does here what the linear maps of its steps do."""
    level, plan = call.out.level, call.plan
    g: Any = 0.5 if plan.number else np.cos(np.arange(call.out.size, dtype=float))
    g = g if plan.number else g.reshape(call.out.s)
    by_code, by_maps = ([level.wrap(p.below()) for p in call.parents] for _ in range(2))
    try:
        with np.errstate(all="ignore"):
            plan.pull(by_code, call.values, g)
            for p, c in zip(by_maps, call.joint.back(g), strict=True):
                add(p, c)
            ends = [[pull(p) if p.shape else p.g for p in ends] for ends in (by_code, by_maps)]
    except Exception:
        return False
    call._joint = None
    return all([a is b or _same(a, b) for a, b in zip(*ends, strict=True)])


def _same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)


# --- making -------------------------------------------------------------------------------------


def _counted(signature: tuple, count: int, *call: Any) -> Any:
    """One more call of a signature; its plan, when it gets one, or why it has none."""
    plans = registry.plans
    if count + 1 < CALLS:
        if len(plans) >= KNOWN:
            plans.clear()
        plans[signature] = count + 1
        return None
    try:
        plan: Any = _made(*call)
    except Unplanned as e:
        plan = str(e)
    except LinearaError as e:
        plan = e.message
    except Exception as e:  # the general way may know what to do
        plan = f"{type(e).__name__}: {e}"
    plans[signature] = plan
    return plan


def _made(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], level: Any, values: list, judge: Any
) -> Plan:
    """The plan of a call: our rule on sketches of its arguments, and the way back."""
    alike = None if judge is None else judge(func, args, kwargs)
    foreign = registry.foreign.get(func)
    rule = None if foreign is None else foreign.ours
    rule = func if isinstance(func, Primitive) else rule
    if rule is None or isinstance(rule, Constant):
        raise Unplanned("no rule, or one of a constant")
    draft = Draft(level.recur)
    leaves: list[Sketch] = []

    def drawn(a: Any) -> Any:
        """An argument with a sketch in place of each leaf."""
        if isinstance(a, Traced | np.ndarray | np.float64):
            i, moves = len(leaves), isinstance(a, Traced)
            t = ArrayType(values[i].shape, values[i].dtype)
            weak = isinstance(a, Traced) and a.in_plans == "s"
            leaves.append(draft.sketch(f"a{i}", t, moves, weak))
            return leaves[i]
        return type(a)(map(drawn, a)) if type(a) in (list, tuple) else a

    given = [drawn(a) for a in args]
    options = {name: drawn(v) for name, v in kwargs.items()}
    if foreign is None or not foreign.sequence:
        each = isinstance(func, np.ufunc)  # whose operands all become arrays
        given = [
            as_array(a) if type(a) in (list, tuple) and (each or any_box(a)) else a for a in given
        ]
    y = rule(*given, **options)
    parts = y if isinstance(y, tuple | list) else (y,)
    places = [i for i, v in enumerate(parts) if isinstance(v, Sketch) and v.moves]
    if len(places) != 1:
        raise Unplanned(f"{len(places)} results have a derivative")
    out = parts[places[0]]
    if out.t.dtype is not F64:
        raise Unplanned(f"the result is {out.t}")
    if not out.t.shape and [s.primitive.name for s in draft.program] == ["sum"]:
        raise Unplanned("the sum of all elements has a cotangent of one number")
    whole = [s.args[0].t.ndim for s in draft.program if s.primitive.name == "sum" and not s.t.shape]
    if alike is not None and max(whole, default=0) > 1:
        raise Unplanned("a sum of all elements goes as they lie in memory")
    if len(draft.program) > 1 and any([s.moves and not s.t.shape for s in leaves]):
        raise Unplanned("numbers have fast operations of their own")
    code = written_out(draft, leaves, out, composed=alike is not None)
    plain = [i for i, s in enumerate(leaves) if not s.moves and s.t.shape]
    single = len(draft.program) == 1
    return Plan(
        name=draft.program[0].primitive.name if single else getattr(func, "__name__", ""),
        number=not out.t.shape,
        place=None if parts[0] is y else places[0],
        pull=code.pull,
        keep=code.keep,
        alike=alike,
        guarded=tuple([i for i in plain if f"a{i}" in code.reads]),
        dropped=tuple([i for i in plain if f"a{i}" not in code.reads]),
        leaves={s.name: s.t for s in leaves},
        moving=tuple([s.name for s in leaves if s.moves]),
        program=tuple(draft.program),
        out=out.name,
        work=sum([s.primitive.work(s.t, s.args, s.params) for s in draft.program]),
        recur=draft.recur,
    )

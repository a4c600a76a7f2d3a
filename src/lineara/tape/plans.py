"""Plans: what a call of NumPy's does under a derivative, decided once a signature.

    signature  the function, what each argument is, and the options
    make       our rule on sketches, and the linear map of each of its steps on a sketch of a
               cotangent: straight-line code over NumPy, compiled once
    run        y = f(*values), NumPy's own call, and one entry on the tape

The general way stays the one fact: it is taken before a signature has its plan, where a call has
none, and where NumPy's call raises.  What is no plain array on its way back (masked, batched, of an
outer level) and tangents take the linear maps of the same steps, on the values.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import Constant, Joint, Primitive, registry
from lineara.facts.types import ArrayType
from lineara.ops.shape import any_box, as_array
from lineara.tape.call_readers import F64, GENERAL, KNOWN, TRACED, Read, kinds_of, reader
from lineara.tape.contributions import add
from lineara.tape.node import Entry, Traced, plain
from lineara.tape.plan_code import Code, Runner, written_out
from lineara.tape.pull_reads import pull
from lineara.tape.sketches import Draft, Move, Sketch, Step, Unplanned, combined, may_move

CALLS = 4  # a signature gets its plan at this call, since making one takes about a millisecond

# Raises `Unplanned` where a function does more than to calculate; of one whose derivative is that
# of a composition, what says whether the composition's value and the function's agree.
Judge = Callable[
    [Any, Sequence[Any], dict[str, Any]], Callable[[Any, Any, Sequence[Any]], bool] | None
]


class Plan(NamedTuple):
    """What the calls of one signature do."""

    name: str
    number: bool  # whether the result is a number
    dtype: Any  # of the result, and of the cotangents that `pull` takes
    run: Callable[..., Any]  # the call, at a level, of nodes and plain values
    deep: Callable[[], Callable[..., Any]]  # gives the same of values that another level traces
    pull: Callable[[Sequence[Any], Sequence[Any], Any], None]  # hands the cotangent to the parents
    leaves: dict[str, ArrayType]
    moving: tuple[str, ...]  # the leaves through which the derivative flows
    program: tuple[Step, ...]
    out: str
    work: int
    recur: Callable[..., Joint]


class Call(Entry):
    """The tape entry of a call that has a plan."""

    __slots__ = ("_joint", "plan", "values")
    _joint: Joint  # absent until something asks for it
    out: Any
    parents: Sequence[Any]
    plan: Plan
    values: Sequence[Any]  # of the leaves, of the result, and what is kept

    @property
    def joint(self) -> Joint:  # type: ignore[override]  # made when something asks for it
        """The linear map, for whatever flows: the sweep calls `plan.pull` for plain arrays."""
        try:
            return self._joint
        except AttributeError:
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


def by_plan(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    judge: Callable[..., Any] | None = None,
) -> Any:
    """The result of a call of NumPy's that has a plan; else `GENERAL`."""
    if kwargs:
        kinds = (func, *map(type, args), *kwargs, *map(type, kwargs.values()))
    else:
        kinds = (func, *map(type, args))
    read = registry.readers.get(kinds)
    try:
        if read is None:
            read = _reader(kinds, func, args, kwargs)
        y = read(args, kwargs, judge)
    except Unplanned:
        y = GENERAL
    if y is GENERAL:
        shown = _with_constants(args)
        if shown is not None:
            return by_plan(func, shown, kwargs, judge)
    return y


def _with_constants(args: Sequence[Any]) -> list[Any] | None:
    """The arguments with plain arrays for written ones that nothing traced reached; None for none.

    Something among them has to be traced.
    """
    kinds = [getattr(type(a), "in_plans", None) for a in args]
    if "w" not in kinds:
        return None
    constant = [k == "w" and a.memory() is not None for k, a in zip(kinds, args, strict=True)]
    if not any(constant) or not any([k and not c for k, c in zip(kinds, constant, strict=True)]):
        return None
    shown = [a.now() if c else a for a, c in zip(args, constant, strict=True)]
    for a, now in zip(args, shown, strict=True):
        if now is not a:
            a.level.unwritten[id(now)] = now
    return shown


def _reader(
    kinds: tuple[Any, ...], func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Read:
    """The code that reads such calls from now on; where lists are given, code that finds it."""
    readers = registry.readers
    if len(readers) >= KNOWN:
        readers.clear()
    deep = kinds_of(func, args, kwargs)
    if deep in readers:
        return readers[deep]
    readers[deep] = read = reader(func, args, kwargs, {"Plan": Plan, "later": _later})
    if deep != kinds:

        def looked_up(
            args: Sequence[Any], kwargs: dict[str, Any], judge: Callable[..., Any] | None
        ) -> Any:
            deep = kinds_of(func, args, kwargs)
            read = readers.get(deep) or _reader(deep, func, args, kwargs)
            return read(args, kwargs, judge)

        readers[kinds] = looked_up
    return read


def _later(
    plans: dict[Any, Any],
    key: object,
    count: int | None,
    level: Any,
    nodes: tuple[Any, ...],
    values: tuple[Any, ...],
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    judge: Judge | None,
) -> Any:
    """Count a call of a signature without a plan; make the plan if due, and try it on this call."""
    if (count or 0) + 1 < CALLS:
        if len(plans) >= KNOWN:
            plans.clear()
        plans[key] = (count or 0) + 1
        return GENERAL
    try:
        plan: Any = _made(func, args, kwargs, level, values, judge)
    except Unplanned as e:
        plan = str(e)
    except LinearaError as e:
        plan = e.message
    except Exception as e:  # the general way may know what to do
        plan = f"{type(e).__name__}: {e}"
    plans[key] = plan
    if type(plan) is not Plan:
        return GENERAL
    below, parents = [plain(v) for v in values], nodes
    deep = any([v is not a for v, a in zip(values, below, strict=True)])  # traced by another level
    if deep:
        nodes = tuple([level.wrap(plain(n)) for n in nodes])
    y = plan.run(level, *nodes, *below)
    if y is not GENERAL and not _agrees(level.tape[-1]):
        plans[key] = "the code gives another derivative than the linear maps"
        level.tape.pop()
        return GENERAL
    if not deep:
        return y
    if y is not GENERAL:
        level.tape.pop()
    return plan.deep()(level, *parents, *values)


# --- running ------------------------------------------------------------------------------------


def _map_of(plan: Plan, values: Sequence[Any]) -> Joint:
    """The composed linear maps of the steps at these values; dropped values are sketches."""
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
    """Whether the code of a new plan gives the cotangents here that the linear maps give."""
    plan, values = call.plan, call.values

    def by_code(nodes: Sequence[Any], g: Any) -> None:
        plan.pull(nodes, values, g)

    return _gives(plan, call.out.level, [p.below() for p in call.parents], values, by_code)


def _gives(
    plan: Plan,
    level: Any,
    parents: Sequence[Any],
    values: Sequence[Any],
    back: Callable[[Sequence[Any], Any], None],
) -> bool:
    """Whether `back` adds to nodes of these values what the linear maps give."""
    g: Any = 0.5
    if not plan.number:
        y = values[len(plan.leaves)]
        g = np.cos(np.arange(y.size)).astype(plan.dtype).reshape(y.shape)
    try:
        with np.errstate(all="ignore"):
            by_code, by_maps = ([level.wrap(p) for p in parents] for _ in range(2))
            back(by_code, g)
            for p, c in zip(by_maps, _map_of(plan, values).back(g), strict=True):
                add(p, c)
            ends = [[pull(p) if p.shape else p.g for p in ends] for ends in (by_code, by_maps)]
    except Exception:
        return False
    return all([a is b or _same(a, b) for a, b in zip(*ends, strict=True)])


def _deep(plan: Plan, run: Runner, code: Code) -> Callable[..., Any]:
    """The call of values that another level traces, with a general entry on the tape.

    Its linear map back is the code over primitives, which is tried at the first call.
    """
    deep, last = code.deep(), next((s for s in plan.program if s.out == plan.out), None)
    if deep is None or last is None or last.primitive.view or last.primitive.name == "index":
        return lambda *_: GENERAL  # what compares values, or shows an argument
    places = [i for i, name in enumerate(plan.leaves) if name in plan.moving]
    ends = [plan.moving.index(name) for name in deep.ends]
    refused: list[bool] = []

    def agrees(level: Any, values: Sequence[Any]) -> bool:
        below = [plain(v) for v in values]

        def by_code(nodes: Sequence[Any], g: Any) -> None:
            for i, c in zip(ends, deep.back(below, g), strict=True):
                add(nodes[i], c)

        return _gives(plan, level, [below[i] for i in places], below, by_code)

    def enter(level: Any, nodes: Sequence[Any], values: Sequence[Any], v: Any) -> Any:
        if not refused:
            refused.append(not agrees(level, values))
        if refused[0]:
            raise Unplanned("the code gives another derivative than the linear maps")

        def forward(tangents: Sequence[Any]) -> Any:
            arrived = dict(zip(ends, tangents, strict=True))
            return _map_of(plan, values).forward([arrived.get(i) for i in range(len(places))])

        joint = Joint(forward, lambda g: deep.back(values, g))
        return level.record(v, [nodes[i] for i in ends], joint, plan.name, plan.work)

    return run.deep(enter, deep.keep)


def _same(a: Shaped, b: Shaped) -> bool:
    if a is None or b is None or np.result_type(a) != np.result_type(b):
        return False
    return np.array_equal(a, b, equal_nan=True)


# --- making -------------------------------------------------------------------------------------


def _made(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    level: Any,
    values: Sequence[Any],
    judge: Judge | None,
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
            i = len(leaves)
            t = ArrayType(values[i].shape, values[i].dtype)
            moves = isinstance(a, Traced) and a.level is level
            weak = isinstance(a, Traced) and moves and a.in_plans == "s"
            leaves.append(draft.sketch(f"a{i}", t, moves, weak))
            return leaves[i]
        return type(a)(map(drawn, a)) if type(a) in (list, tuple) else a

    given = [drawn(a) for a in args]
    options = {name: drawn(v) for name, v in kwargs.items()}
    if foreign is None or not foreign.sequence:
        each = isinstance(func, np.ufunc)  # a ufunc converts all its operands to arrays
        given = [
            as_array(a) if type(a) in (list, tuple) and (each or any_box(a)) else a for a in given
        ]
    y = rule(*given, **options)
    parts = y if isinstance(y, tuple | list) else (y,)
    places = [i for i, v in enumerate(parts) if isinstance(v, Sketch) and v.moves]
    if len(places) != 1:
        raise Unplanned(f"{len(places)} results have a derivative")
    out = parts[places[0]]
    if out.t.dtype not in (TRACED.values() if out.t.shape else (F64,)):
        raise Unplanned(f"the result is {out.t}")
    if not out.t.shape and [s.primitive.name for s in draft.program] == ["sum"]:
        raise Unplanned("the sum of all elements has a cotangent of one number")
    whole = [s.args[0].t.ndim for s in draft.program if s.primitive.name == "sum" and not s.t.shape]
    if alike is not None and max(whole, default=0) > 1:
        raise Unplanned("a sum of all elements goes as they lie in memory")
    if len(draft.program) > 1 and any([s.moves and not s.t.shape for s in leaves]):
        raise Unplanned("numbers have fast operations of their own")
    last = next((s for s in draft.program if s.out == out.name), None)
    if last is not None and last.primitive.part_of == (func, places[0]):
        names = [a.name for a in last.args if isinstance(a, Sketch)]
        alike = None if names == [s.name for s in leaves] else alike  # the call is its evaluation
    code = written_out(draft, leaves, out, composed=alike is not None)
    single = len(draft.program) == 1
    run = Runner(leaves, code, None if parts[0] is y else places[0], out.t)
    plan = Plan(
        name=draft.program[0].primitive.name if single else getattr(func, "__name__", ""),
        number=not out.t.shape,
        dtype=out.t.dtype,
        run=run.code(func, args, kwargs, alike),
        deep=functools.cache(lambda: _deep(plan, run, code)),
        pull=code.pull,
        leaves={s.name: s.t for s in leaves},
        moving=tuple([s.name for s in leaves if s.moves]),
        program=tuple(draft.program),
        out=out.name,
        work=sum([s.primitive.work(s.t, s.args, s.params) for s in draft.program]),
        recur=draft.recur,
    )
    run.scope |= {"plan": plan, "Call": Call}
    return plan

"""Differential equations: the derivative of the solver's discrete steps.

Of RK23, RK45, DOP853 and Radau the steps taken are repeated with traced values.  BDF, LSODA and
odeint do not record enough to repeat them: their values are kept, with the derivative of DOP853's
or Radau's steps at the same tolerances.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, TypeMismatchError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import op
from lineara.ops.shape import as_array
from lineara.rules.checkpoint import checkpoint
from lineara.solvers.calls import Call, follows, solver
from lineara.solvers.continuous import flows
from lineara.solvers.implicit import solution
from lineara.solvers.minima import pinned
from lineara.solvers.roots import tuple_of
from lineara.solvers.stationary import row
from lineara.solvers.steps import Taken, TooMany, explicit, implicit, recorder
from lineara.tape.node import plain

LARGE = 1000  # from this number of unknowns on, a step is recomputed rather than stored
KEPT = (
    "rtol",
    "atol",
    "max_step",
    "first_step",
    "jac",
)  # options that are passed on to the other method


def rhs(
    fun: Callable[..., Any], args: tuple[Any, ...], vectorized: bool, t: Value, y: Shaped
) -> Any:
    """f(t, y, *args) as a vector."""
    return row(fun(t, np.reshape(y, (-1, 1)) if vectorized else y, *args))


def turned(fun: Callable[..., Any], t: Value, y: Value, *args: Any) -> Any:
    """fun(y, t, *args), for odeint's order of arguments."""
    return fun(y, t, *args)


def with_args(jac: Callable[..., Any], args: tuple[Any, ...], t: Value, y: Value) -> Any:
    """jac(t, y, *args)."""
    return jac(t, y, *args)


class Trajectory:
    """y(t) in pieces, one a step; differentiable in y0, the parameters and the interval's ends."""

    ys: list[Any]

    def __init__(
        self,
        call: Call,
        f: Callable[..., Any],
        method: Any,
        log: list[Taken],
        y0: Any,
        ends: Any,
        dense: bool,
    ) -> None:
        steps = [list(taken) for taken in log]
        steps[0][0] = ends[0]
        if plain(ends[1]) == steps[-1][1]:
            steps[-1][1] = ends[1]
        self.times: np.ndarray = np.array([log[0].start, *(taken.stop for taken in log)])
        self.ys: list[Any] = [y0]
        self.pieces: list[Any] = []
        slope = None
        for taken in (Taken(*step) for step in steps):
            y = self.ys[-1]
            if taken.Z is not None:
                step = implicit(f, taken, y, call.asked())
            elif dense or np.size(plain(y)) < LARGE:
                step = explicit(method, f, taken, y, slope, dense)
            else:
                step = checkpoint(functools.partial(explicit, method, f, taken, dense=False))(
                    y, slope
                )
            self.ys.append(step.y)
            self.pieces.append(step.piece)
            slope = step.slope

    def segment(self, t: Shaped) -> Any:
        """The number of the piece that holds a time; at a boundary the earlier one."""
        forth = self.times[-1] >= self.times[0]
        at = np.searchsorted(self.times if forth else -self.times, t if forth else -t)
        return np.clip(at - 1, 0, len(self.pieces) - 1)

    def __call__(self, t: Shaped) -> Any:
        """y at one time : (n,), or at many : (n, points)."""
        at = self.segment(plain(t))
        if not np.ndim(plain(t)):
            return self.pieces[int(at)](t)
        ys: list[Any] = [None] * len(at)
        for i in np.unique(at):
            here = np.flatnonzero(at == i)
            columns = self.pieces[int(i)](as_array(t)[here])
            for k, place in enumerate(here):
                ys[place] = columns[:, k]
        return op("permute_dims")(op("stack")(*ys), axes=(1, 0))


def replayed(
    call: Call, f: Callable[..., Any], y0: Any, ends: Any, options: dict[str, Any], work: float
) -> Any:
    """A trajectory by DOP853, or by Radau if DOP853 takes far more steps than `work` allows."""
    from scipy.integrate import DOP853, Radau, solve_ivp

    span, start = [float(plain(t)) for t in ends], np.array(plain(y0), dtype=float)
    tried = [(DOP853, 20 + work)] if work else []
    for method, most in (*tried, (Radau, np.inf)):
        log: list[Taken] = []
        accepted = {k: v for k, v in options.items() if k != "jac" or method is Radau}
        run = functools.partial(
            _solve, solve_ivp, f, span, start, recorder(method, log, most), accepted
        )
        try:
            call.on_numbers(run)()
        except TooMany:
            continue
        return Trajectory(call, f, method, log, y0, ends, dense=True)
    raise AssertionError("Radau takes any number of steps")


def _solve(
    solve: Callable[..., Any],
    f: Callable[..., Any],
    span: Sequence[Any],
    y0: Shaped,
    method: Callable[..., Any],
    options: dict[str, Any],
) -> Any:
    return solve(f, span, y0, method=method, **options)


@solver("scipy.integrate.solve_ivp", own=("adjoint",))
def solve_ivp(call: Call) -> Any:
    """Every method, events, dense output and t_eval; y, sol, t and the events have derivatives.

    adjoint="continuous" stores no steps, and solves the sensitivity and the adjoint equation.
    """
    from scipy.integrate import DOP853, RK23, RK45, Radau

    methods = {m.__name__: m for m in (RK23, RK45, DOP853, Radau)}
    method, options = call["method"], call["options"]
    args = () if call["args"] is None else (*call["args"],)
    f = functools.partial(rhs, call["fun"], args, bool(call["vectorized"]))
    y0, ends = _vector(call["y0"]), tuple(call["t_span"])
    adjoint = call.own.get("adjoint", "discrete")
    if adjoint not in ("discrete", "continuous"):
        raise TypeMismatchError(
            f"solve_ivp: adjoint={adjoint!r} is not known; give 'discrete', which is what is done "
            "without, or 'continuous'"
        )
    if adjoint == "continuous":
        result = call.run()
        result.y = flows(call, f, result, y0, ends)
        times = as_array(call["t_eval"])
        result.t = times[: len(result.t)] if follows(times) else result.t
        return result
    method = methods.get(method, method)
    if method in methods.values():
        log: list[Taken] = []
        result = call.run(method=recorder(method, log))
        if not log:
            raise NoRuleError("solve_ivp: t_span is empty; return y0 itself")
        dense = any(call[name] is not None for name in ("t_eval", "events"))
        path = Trajectory(call, f, method, log, y0, ends, dense or bool(call["dense_output"]))
    else:
        result = call.run()
        kept = {name: options[name] for name in KEPT if options.get(name) is not None}
        if args and callable(kept.get("jac")):
            kept["jac"] = functools.partial(with_args, kept["jac"], args)
        implicit_one = getattr(method, "__name__", method) == "BDF"
        path = replayed(call, f, y0, ends, kept, 0 if implicit_one else result.nfev)
    return _with_derivatives(call, result, path, ends, args)


def _vector(y0: Any) -> Any:
    """y0 as an array in floating point."""
    y0 = as_array(y0)
    if y0.dtype.kind not in "fc":
        y0 = y0.astype(float)
    return np.reshape(y0, (-1,)) if not y0.ndim else y0


def _with_derivatives(
    call: Call, result: Any, path: Trajectory, ends: Any, args: tuple[Any, ...]
) -> Any:
    """SciPy's result with derivatives for t, y, sol and the events."""
    last = ends[1] if result.status == 0 else result.t[-1] if len(result.t) else None
    if call["events"] is not None:
        last = _events(call, result, path, args, last)
    t, y = result.t, result.y
    if call["t_eval"] is None:
        times = [ends[0], *t[1:-1], last]
        exact = np.array_equal(path.times, t)
        if exact:
            moved = op("permute_dims")(op("stack")(*path.ys), axes=(1, 0))
        else:
            moved = _at(path, t, times)
        result.t = as_array(times) if follows(times) else t
    else:
        times = call["t_eval"]
        times = as_array(times)[: len(t)] if follows(times) else t
        moved = path(times) if len(t) else y
        result.t = times
    result.y = pinned(y, moved) if len(t) else y
    if result.sol is not None:
        result.sol = dense(result.sol, path)
    return result


def _at(path: Trajectory, t: np.ndarray, times: Sequence[Any]) -> Any:
    """y at times, of which the first and the last may be traced."""
    return path(as_array(list(times)) if follows(list(times)) else t)


def event_at(event: Any, piece: Any, args: tuple[Any, ...], t: Value) -> Any:
    """event(t, y(t)) on one piece of the trajectory."""
    value = as_array(event(t, piece(t), *args))
    return np.reshape(value, ()) if value.shape else value


def _events(call: Call, result: Any, path: Trajectory, args: tuple[Any, ...], last: object) -> Any:
    """Give events' times derivatives, as solutions of event(t, y(t)) = 0; returns the last time.

    The last time is that of a terminal event, if one ended the integration.
    """
    events = call["events"]
    events = list(events) if isinstance(events, list | tuple) else [events]
    for k, (event, times) in enumerate(zip(events, result.t_events, strict=True)):
        moved = []
        for t in times:
            piece = path.pieces[int(path.segment(t))]
            moved.append(
                solution(functools.partial(event_at, event, piece, args), float(t), call.asked())
            )
            if result.status == 1 and t == result.t[-1]:
                last = moved[-1]
        if moved:
            ys = op("stack")(*map(path, moved))
            result.t_events[k] = as_array(moved)
            result.y_events[k] = pinned(result.y_events[k], ys)
    return last


def dense(sol: object, path: Trajectory) -> Any:
    """SciPy's `OdeSolution`, with derivatives of its values."""
    kind = type(sol)

    class Moving(kind):
        def __call__(self, t: Shaped) -> Any:
            """y at one time, or at many."""
            t = as_array(t)
            return pinned(kind.__call__(self, plain(t)), path(t))

    sol.__class__ = Moving
    return sol


@solver("scipy.integrate.odeint")
def odeint(call: Call) -> Any:
    """y at each time; with `full_output` the other results have no derivative."""
    y, info = call.run(full_output=True)
    args = tuple_of(call["args"])
    fun = call["func"] if call["tfirst"] else functools.partial(turned, call["func"])
    t, y0 = call["t"], _vector(call["y0"])
    default = {"rtol": 1.49012e-8, "atol": 1.49012e-8}
    options = {k: default[k] if call[k] is None else call.plain(k) for k in default}
    f = functools.partial(rhs, fun, args, False)
    t = as_array(t)
    path = replayed(call, f, y0, (t[0], t[-1]), options, float(info["nfe"][-1]))
    y = pinned(y, np.transpose(path(t)))
    return (y, info) if call["full_output"] else y

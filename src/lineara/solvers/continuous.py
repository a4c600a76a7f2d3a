"""The continuous adjoint: the derivative of a flow is the flow of another equation.

    y' = f(t, y)   from y0 at t0 to t1
    s' = (df/dy) s + f_dot              forward, from  y0_dot - f(t0) t0_dot
    l' = - (df/dy)^T l                  backward, from  y_bar  at t1, with the parameters' cotangent
    q' = - (df/dtheta)^T l              from 0

[Hairer 1993, §I.14].  No steps are stored: y is integrated again, backward from its end.  Both
equations are solved by the same method as the first, so that their flows are differentiable too.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.api import jvp, vjp
from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Joint, op, registry
from lineara.facts.types import type_of
from lineara.ops.shape import as_array, concat
from lineara.rules.call_as_operation import Form, Whole, spread
from lineara.solvers.calls import Call, Solved, remade, seeing
from lineara.solvers.implicit import reshaped
from lineara.tape.level import Level
from lineara.tape.node import plain

Whole("flow")


class Flow(Solved):
    """y(t1), as a function of the leaves t0, t1, y0 and the values that f has captured."""

    value: Any
    how: dict[str, Any]
    call: Call

    does = "a solver steps on numbers"

    def __init__(self, call: Call, f: Callable[..., Any], how: dict[str, Any], value: Any) -> None:
        super().__init__(f, call.name)
        self.call, self.how, self.value = call, how, value

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The value of y(t1), known from SciPy's result."""
        return self.value.copy()

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[Any, Any],
    ) -> tuple[Any, Joint]:
        """y(t1) at the level below, and the linear map whose two directions are flows."""
        t0, t1, y0, *rest = values
        y = op("flow")(*values, rule=self, form=form, options=options)
        places = [i - 3 for i in active if i > 2]
        f = remade(self.f, self.names, self.form, [plain(v) for v in self.leaves])
        bound = (f, self.names, self.form, tuple(places), rest)
        slope = seeing(self.f, self.names, self.form, rest)
        n, types = type_of(y).size, [type_of(rest[i]) for i in places]

        def forward(tangents: list[Any]) -> list[Any]:
            at = dict(zip(active, tangents, strict=True))
            dots = [_filled(at.get(i + 3), t) for i, t in zip(places, types, strict=True)]
            s = _filled(at.get(2), type_of(y0))
            s = s if at.get(0) is None else s - slope(t0, y0) * at[0]
            end = self.end(functools.partial(ahead, *bound, dots), (t0, t1), [y0, s])[n:]
            return [end if at.get(1) is None else end + slope(t1, y) * at[1]]

        def back(bars: list[Any]) -> list[Any]:
            (y_bar,) = bars
            if y_bar is None:
                return [None] * len(active)
            start = [y, y_bar, *[np.zeros(t.size) for t in types]]
            state = self.end(functools.partial(behind, *bound), (t1, t0), start)
            y0_bar, at = state[n : 2 * n], 2 * n
            bars_of = {2: y0_bar}
            if 0 in active:
                bars_of[0] = -op("sum")(slope(t0, y0) * y0_bar, axis=(0,), keepdims=False)
            if 1 in active:
                bars_of[1] = op("sum")(slope(t1, y) * y_bar, axis=(0,), keepdims=False)
            for i, t in zip(places, types, strict=True):
                bars_of[i + 3] = reshaped(state[at : at + t.size], t.shape)
                at += t.size
            return [bars_of[i] for i in active]

        return y, Joint(lambda ts: spread(forward, ts), lambda bars: spread(back, bars))

    def end(self, f: Callable[..., Any], span: Sequence[Any], parts: list[Any]) -> Any:
        """The end state of another equation, solved by the same method and options."""
        from scipy.integrate import solve_ivp

        start = concat(*[reshaped(as_array(p), (type_of(p).size,)) for p in parts], axis=0)
        options = self.how | {"t_eval": [span[1]], "adjoint": "continuous"}
        return registry.foreign[solve_ivp].ours(f, span, start, **options).y[:, -1]


def _filled(t: Any, like: Any) -> Any:
    """A tangent as an array; zeros like `like` for None."""
    return np.zeros(like.shape, like.dtype) if t is None else t


def _row(v: Shaped) -> Any:
    return reshaped(as_array(v), (type_of(v).size,))


def _at(
    f: Callable[..., Any],
    names: list[str],
    form: Form,
    places: Sequence[int],
    leaves: list[Any],
    t: Value,
) -> Any:
    """The function (y, *parameters) -> f(t, y) for one t."""

    def at(y: Value, *moved: Any) -> Any:
        changed = dict(zip(places, moved, strict=True))
        return seeing(f, names, form, [changed.get(i, v) for i, v in enumerate(leaves)])(t, y)

    return at


def ahead(
    f: Callable[..., Any],
    names: list[Any],
    form: Form,
    places: Sequence[int],
    leaves: list[Any],
    dots: list[Any],
    t: Value,
    z: Shaped,
) -> Any:
    """The right side of the equation for (y, s), in one vector."""
    n = z.shape[0] // 2
    primals = (z[:n], *[leaves[i] for i in places])
    slope, dot = jvp(_at(f, names, form, places, leaves, t), primals, (z[n:], *dots))
    return concat(_row(slope), _row(dot), axis=0)


def behind(
    f: Callable[..., Any],
    names: list[Any],
    form: Form,
    places: Sequence[int],
    leaves: list[Any],
    t: Value,
    z: Shaped,
) -> Any:
    """The right side of the equation for (y, l, q), in one vector."""
    parameters = [leaves[i] for i in places]
    n = (z.shape[0] - sum(type_of(v).size for v in parameters)) // 2
    slope, pull = vjp(_at(f, names, form, places, leaves, t), z[:n], *parameters)
    return concat(_row(slope), *[-_row(b) for b in pull(z[n : 2 * n])], axis=0)


def flows(call: Call, f: Callable[..., Any], result: Any, y0: Any, ends: Any) -> Any:
    """y at the times of t_eval, each computed from the previous time : (n, times)."""
    if call["t_eval"] is None or call["events"] is not None or call["dense_output"]:
        raise NoRuleError(
            "solve_ivp: adjoint='continuous' gives y at the times of t_eval, and keeps nothing "
            "between; give t_eval (the last time alone, if y is wanted there), and leave out "
            "events and dense_output, or leave out adjoint="
        )
    how = {"method": call["method"], **call["options"]}
    times = as_array(call["t_eval"])
    columns, t, y = [], ends[0], y0
    for i in range(len(result.t)):
        value = np.ascontiguousarray(result.y[:, i])
        rule = Flow(call, f, how, value)
        form = Form((None, None, None, *rule.form.structures))
        if plain(t) != result.t[i]:
            y = op("flow")(t, times[i], y, *rule.leaves, rule=rule, form=form, options={})
        t = times[i]
        columns.append(y)
    return op("permute_dims")(op("stack")(*columns), axes=(1, 0))

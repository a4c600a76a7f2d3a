"""Integrals: the derivative of an integral is the integral of the derivative.

    y = int_a^b f(t) dt      gives      y_dot = int_a^b f_dot(t) dt + f(b) b_dot - f(a) a_dot

f_dot is the derivative with respect to the values that f has captured.  The Jacobian is integrated
as one vector, by the same rule and tolerance, with values of the level below.  It is an integral
itself, so that higher orders follow.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.api import grad, jacobian
from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Joint, op, registry
from lineara.facts.types import type_of
from lineara.ops.shape import as_array, concat
from lineara.python.captured_values import with_captured
from lineara.rules.call_as_operation import Form, Whole
from lineara.solvers.calls import Call, Solved, follows, remade, seeing, solver, traced_captures
from lineara.solvers.implicit import reshaped
from lineara.solvers.minima import pinned
from lineara.solvers.roots import tuple_of
from lineara.tape.level import Level
from lineara.tape.node import plain

Whole("integral")

By = Callable[[Any, float, float], Any]  # (f, a, b) -> the integral, on plain numbers


class Integral(Solved):
    """int_a^b f(t) dt; the leaves are a, b and the values that f has captured.

    `by` integrates derivatives; `value` is the integral, if it is known already.
    """

    value: Any
    call: Call
    by: By

    does = "an integrator evaluates on numbers"

    def __init__(self, call: Call, f: Callable[..., Any], by: By, value: Any = None) -> None:
        super().__init__(f, call.name)
        self.call, self.by, self.value = call, by, value

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The integral on plain numbers."""
        if self.value is not None:
            return self.value
        a, b, *rest = args
        f = with_captured(self.f, dict(zip(self.names, rest, strict=True)))
        return self.by(self.call.on_numbers(f), a, b)

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[Any, Any],
    ) -> tuple[Any, Joint]:
        """The integral at the level below, and the linear map by the integrated Jacobian."""
        a, b, *rest = values
        y = _apply(self, values)
        places = [i - 2 for i in active if i > 1]
        rows = []
        if 0 in active:
            rows.append(-_row(seeing(self.f, self.names, self.form, rest)(a)))
        if 1 in active:
            rows.append(_row(seeing(self.f, self.names, self.form, rest)(b)))
        if places:
            rows.append(self.slope(a, b, rest, places, type_of(y).size))
        J = (
            rows[0] if len(rows) == 1 else concat(*rows, axis=1)
        )  # (size of y, size of the active leaves)
        types, out = [type_of(values[i]) for i in active], type_of(y)

        def forward(tangents: Sequence[Any]) -> list[Any]:
            if all(t is None for t in tangents):
                return [None]
            flat = [
                np.zeros(s.size) if t is None else reshaped(t, (s.size,))
                for t, s in zip(tangents, types, strict=True)
            ]
            y_dot = op("matmul")(J, reshaped(concat(*flat, axis=0), (J.shape[1], 1)))
            return [reshaped(y_dot, out.shape)]

        def back(bars: Sequence[Any]) -> list[Any]:
            if bars[0] is None:
                return [None] * len(active)
            row = op("matmul")(reshaped(bars[0], (1, out.size)), J)
            stops = np.cumsum([0, *(s.size for s in types)]).tolist()
            parts = [op("index")(row, at=(0, slice(*ends))) for ends in itertools.pairwise(stops)]
            return [reshaped(p, s.shape) for p, s in zip(parts, types, strict=True)]

        return y, Joint(forward, back)

    def slope(self, a: Value, b: Value, rest: list[Any], places: list[int], size: int) -> Any:
        """The integral of the Jacobian in the leaves at `places` : (size of y, size of these)."""
        f = remade(self.f, self.names, self.form, [plain(v) for v in self.leaves])
        row = functools.partial(slopes, f, self.names, self.form, tuple(places), size, rest)
        return _apply(Integral(self.call, row, self.by), [a, b, *traced_captures(row)[1]])


def _apply(rule: Integral, leaves: Sequence[Any]) -> Any:
    form = Form((None, None, *rule.form.structures))
    return op("integral")(*leaves, rule=rule, form=form, options={})


def _row(y: Shaped) -> Any:
    """A value of the integrand as a column, (size, 1)."""
    y = as_array(y)
    return reshaped(y, (type_of(y).size, 1))


def slopes(
    f: Callable[..., Any],
    names: list[str],
    form: Form,
    places: Sequence[int],
    rows: int,
    leaves: list[Any],
    t: Value,
) -> Any:
    """The Jacobian of f(t) in the captured leaves at `places` : (size of f, size of these)."""

    def at(*moved: Any) -> Any:
        changed = dict(zip(places, moved, strict=True))
        return as_array(
            seeing(f, names, form, [changed.get(i, v) for i, v in enumerate(leaves)])(t)
        )

    active = [leaves[i] for i in places]
    argnums = tuple(range(len(places)))
    if rows == 1:
        blocks = grad(lambda *moved: reshaped(at(*moved), ()), argnums)(*active)
    else:
        blocks = jacobian(lambda *moved: reshaped(at(*moved), (rows,)), argnums)(*active)
    sizes = [type_of(v).size for v in active]
    flat = [reshaped(as_array(B), (rows, n)) for B, n in zip(blocks, sizes, strict=True)]
    return flat[0] if len(flat) == 1 else concat(*flat, axis=1)


# --- how derivatives are integrated -------------------------------------------------------------


FEW = 16  # up to this number, components are integrated one by one and share evaluations


def by_quad(call: Call) -> By:
    """Integrate by `quad` with the call's options, by component; many by `quad_vec`."""
    named = ("epsabs", "epsrel", "limit", "points", "weight", "wvar", "wopts", "maxp1", "limlst")
    options = {name: call.plain(name) for name in named}

    def integrate(f: Callable[..., Any], a: float, b: float) -> Any:
        from scipy.integrate import quad, quad_vec

        at = functools.cache(f)  # components are often evaluated at the same nodes
        like = at(_inside(a, b))
        if np.size(like) > FEW and options["weight"] is None:
            some = {name: options[name] for name in ("epsabs", "epsrel", "points")}
            return quad_vec(f, a, b, norm="max", **some)[0]
        parts = [(lambda t, i=i: np.ravel(at(t))[i]) for i in range(np.size(like))]
        return np.reshape([quad(g, a, b, **options)[0] for g in parts], np.shape(like))

    return integrate


def _inside(a: float, b: float) -> float:
    """A point between the limits, of which one may be infinite."""
    if np.isfinite(a) and np.isfinite(b):
        return a + 0.375 * (b - a)
    return b - 1.0 if np.isfinite(b) else a + 1.0 if np.isfinite(a) else 0.5


def integral(
    call: Call, f: Callable[..., Any], limits: Sequence[Any], value: Shaped, by: By
) -> Any:
    """A known integral, as a function of its limits and of the values that f has captured."""
    rule = Integral(call, f, by, value)
    return _apply(rule, [*limits, *rule.leaves])


# --- SciPy's functions --------------------------------------------------------------------------


def integrand(fun: Callable[..., Any], args: tuple[Any, ...], t: Value) -> Any:
    """f(t, *args)."""
    return fun(t, *args)


@solver("scipy.integrate.quad")
def quad(call: Call) -> Any:
    """The integral, differentiable in parameters and limits; the error estimate is a constant."""
    if call["complex_func"]:
        raise NoRuleError(
            "quad: complex_func=True has no derivative rule; integrate the real and the imaginary "
            "part on their own"
        )
    limits = call["a"], call["b"]
    if call["weight"] is not None and (follows(limits) or follows(call["wvar"])):
        raise NoRuleError(
            "quad: with weight= there is a rule for what the integrand captured, not for limits "
            "or wvar; write the weight into the integrand"
        )
    value, *rest = call.run()
    f = functools.partial(integrand, call["func"], tuple_of(call["args"]))
    return integral(call, f, limits, value, by_quad(call)), *rest


@solver("scipy.integrate.quad_vec")
def quad_vec(call: Call) -> Any:
    """The integral of an array-valued function, differentiable in parameters and limits."""
    value, *rest = call.run()
    named = ("epsabs", "epsrel", "limit", "points", "quadrature")
    options = {name: call.plain(name) for name in named}

    def by(f: Callable[..., Any], a: float, b: float) -> Any:
        from scipy.integrate import quad_vec

        return quad_vec(f, a, b, norm="max", **options)[0]

    f = functools.partial(integrand, call["f"], tuple_of(call["args"]))
    return integral(call, f, (call["a"], call["b"]), value, by), *rest


@solver("scipy.integrate.fixed_quad")
def fixed_quad(call: Call) -> Any:
    """Gauss's rule, a weighted sum over fixed nodes."""
    from scipy.special import roots_legendre

    value, none = call.run()
    nodes, weights = roots_legendre(call["n"])
    a, b = call["a"], call["b"]
    y = call["func"]((b - a) * (nodes + 1) / 2.0 + a, *tuple_of(call["args"]))
    return pinned(value, (b - a) / 2.0 * np.sum(weights * y, axis=-1)), none


# --- several variables: integrals of integrals ---------------------------------------------------


def nested(
    fun: Callable[..., Any],
    ranges: list[Any],
    options: list[Any],
    args: tuple[Any, ...],
    outer: tuple[Any, ...],
) -> Any:
    """The integral over the remaining variables; `outer` are values of the others, inner first."""
    if not ranges:
        return fun(*outer, *args)
    from scipy.integrate import quad

    here, how = ranges[-1], options[-1]
    here = here(*outer, *args) if callable(here) else here
    how = how(*outer, *args) if callable(how) else how
    f = functools.partial(within, fun, ranges[:-1], options[:-1], args, outer)
    return registry.foreign[quad].ours(f, *here, **how)[0]


def within(
    fun: Callable[..., Any],
    ranges: list[Any],
    options: list[Any],
    args: tuple[Any, ...],
    outer: tuple[Any, ...],
    t: Value,
) -> Any:
    """`nested` with one more variable fixed at t."""
    return nested(fun, ranges, options, args, (t, *outer))


@solver("scipy.integrate.nquad")
def nquad(call: Call) -> Any:
    """An integral over several variables, of which the first is the innermost."""
    value, *rest = call.run()
    options = call["opts"] or {}
    ranges = list(call["ranges"])
    options = list(options) if isinstance(options, list | tuple) else [options] * len(ranges)
    formula = nested(call["func"], ranges, options, tuple_of(call["args"] or ()), ())
    return pinned(value, formula), *rest


def ends(
    at: Sequence[int], low: Callable[..., Any], high: Callable[..., Any], *variables: Any
) -> tuple[Any, ...]:
    """(low, high) as numbers; limits that are functions are called with some outer variables."""
    chosen = [variables[i] for i in at]
    return tuple(limit(*chosen) if callable(limit) else limit for limit in (low, high))


@solver("scipy.integrate.dblquad", "scipy.integrate.tplquad")
def in_two_or_three(call: Call) -> Any:
    """Double and triple integrals."""
    value, *rest = call.run()
    options = {"epsabs": call["epsabs"], "epsrel": call["epsrel"]}
    middle = functools.partial(ends, (0,), call["gfun"], call["hfun"])
    ranges = [middle, (call["a"], call["b"])]
    if call.name == "tplquad":
        ranges = [functools.partial(ends, (1, 0), call["qfun"], call["rfun"]), *ranges]
    formula = nested(call["func"], ranges, [options] * len(ranges), tuple_of(call["args"]), ())
    return pinned(value, formula), *rest

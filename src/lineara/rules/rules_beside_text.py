"""Rules that stand beside a definition in a text, tested before they are trusted.

    f.jvp   the value of f, and the tangent that finite differences of f give
    f.t     <f(a), c> = <a, f.t(c)>
    f.e     the results of f

What a pass would write there itself is no rule.  A rule of the definition that is asked for is
tested at its arguments, if there are any, and those of others at random ones; the derivative in
which they are used is then tested as a whole at the arguments.  A difference is judged as that of
a rule in Python (rules/rule_tests).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lineara.engines import run
from lineara.errors import LinearaError, RuleError
from lineara.facts.hints import Shaped, Value
from lineara.linear_a.check import located
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_def
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.names import JVP, E, T
from lineara.passes.rules_in_text import arguments, check_transpose, close, flat
from lineara.passes.transpose import transpose
from lineara.rules.call_as_operation import Form
from lineara.rules.rule_tests import Point, first_wrong

_PASSES: dict[str, Callable[[Program, str], Program]] = {JVP: jvp, T: transpose, E: erase}


def check_rules(program: Program, name: str, values: list[Any] | None, hint: str = "") -> None:
    """Raise RuleError where a rule is wrong that derivatives of the definition use."""

    def wrong(rule: str, message: str) -> RuleError:
        place = program.places[program.defs[rule]][0]
        return RuleError(located(program, place, f"{message}; {hint}" if hint else message))

    rules, untested = list(_rules(program, name)), []
    for f, suffix in rules:
        try:
            _test(program, f, suffix, values if f == name else None)
        except RuleError as error:
            raise wrong(f + suffix, error.message) from None
        except LinearaError as error:
            untested.append((f + suffix, f"{f}{suffix} cannot be tested: {error.message}"))
    used = [f + suffix for f, suffix in rules if suffix == JVP and f != name]
    if used and values is not None:
        try:
            _test_jvp(jvp(program, name), name, values, f"{', '.join(used)} in {name}{JVP}")
        except RuleError as error:
            raise wrong(used[0], error.message) from None
    elif untested:
        raise wrong(*untested[0])


def _rules(program: Program, name: str) -> Iterator[tuple[str, str]]:
    """The definitions that have rules, with the suffixes: those that `name` calls, and itself."""
    for f in program.reached(name, rules=_PASSES):
        for suffix in _PASSES if f in program.defs else ():
            base = f.removesuffix(suffix)
            if f != base in program.defs and not _is_made(program, base, suffix):
                yield base, suffix


def _is_made(program: Program, f: str, suffix: str) -> bool:
    """Whether the rule is the text that the pass writes."""
    rule = program.defs[f + suffix]
    others = {g: d for g, d in program.defs.items() if d is not rule}
    rest = Program(program.types, others, program.places, program.text, program.file)
    try:
        return show_def(_PASSES[suffix](rest, f).defs[f + suffix]) == show_def(rule)
    except LinearaError:
        return False


def _test(program: Program, f: str, suffix: str, values: list[Any] | None) -> None:
    d = program.defs[f]
    if suffix == JVP:
        _test_jvp(jvp(program, f), f, values, f + JVP)  # the pass looks at the signature
    elif suffix == T:
        check_transpose(program, d, f + T, f + T)
    else:
        xs, lxs = arguments(program, d, np.random.default_rng(0))
        outcome, wanted = run(program, f + E, *xs, *lxs), run(program, f, *xs, *lxs)
        _same(f + E, outcome.results, f, [*wanted.results, *wanted.lresults])


def _test_jvp(program: Program, f: str, values: list[Any] | None, who: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(2):
        xs, dxs = arguments(program, program.defs[f + JVP], rng, values)
        xs = xs if values is None else values
        moving = iter(dxs)
        types = [v.type for v in program.defs[f].xs]
        along = [() if program.is_inert(t) else next(moving) for t in types]
        _test_along(program, f, xs, [_scaled(x, e) for x, e in zip(xs, along, strict=True)], who)


def _test_along(program: Program, f: str, xs: list[Any], along: list[Any], who: str) -> None:
    """The curve <w, f(xs + t along)> of one number: its derivative is what the rule says."""
    rng = np.random.default_rng(1)
    types = [v.type for v in program.defs[f].xs]
    dxs = [e for t, e in zip(types, along, strict=True) if not program.is_inert(t)]

    def at(t: Value) -> list[Any]:
        return [_moved(x, t, e) for x, e in zip(xs, along, strict=True)]

    there = run(program, f + JVP, *xs, *dxs)
    _same(who, there.results, f, run(program, f, *xs).results)
    w = rng.uniform(0.5, 1.5, _moving(there.lresults).shape)
    sizes = [_moving(e).dtype.itemsize for e in dxs if _moving(e).size]
    if not sizes:
        return

    def curve(t: Value) -> float:
        return float(w @ _moving(run(program, f, *at(t)).results))

    def claim(leaves: list[Any], y_bar: Any, t_dot: Any) -> tuple[float, float]:
        slope = _moving(run(program, f + JVP, *at(leaves[0]), *dxs).lresults)
        unit = float(y_bar[0] * t_dot[0])
        return float(w @ slope) * unit, float(np.abs(w) @ np.abs(slope)) * abs(unit)

    start = np.float32(0) if min(sizes) < 8 else 0.0  # differences are of the coarsest precision
    point = Point(curve, [start], Form((None,)), {})
    wrong = first_wrong(point, claim, rng)
    if wrong is not None:
        unit, where = float(wrong.w[0] * wrong.v[0]), "in a random direction "
        if w.size == _moving(dxs).size == 1:  # one number of one number
            unit, where = unit * float(w[0] * _moving(dxs)[0]), ""
        raise RuleError(
            f"{who} gives the slope {wrong.said / unit:.6g}, where differences of {f} give "
            f"{wrong.found / unit:.6g}, {where}at {_shown(at(point.leaves[0]))}"
        )


def _same(who: str, found: tuple[Any, ...], f: str, wanted: list[Any] | tuple[Any, ...]) -> None:
    if not close(found, wanted, 1e-4 if _moving(wanted).dtype.itemsize < 8 else 1e-7):
        raise RuleError(f"{who} gives the value {_shown(found)}, but {f} gives {_shown(wanted)}")


def _moving(value: Any) -> Any:
    """The floating numbers in values, one after another; a complex one is two."""
    if isinstance(value, tuple | list):
        parts = [_moving(v) for v in value]
        return np.concatenate(parts) if parts else np.zeros(0, np.float16)
    array: Any = np.ravel(value)
    if array.dtype.kind == "c":
        return np.concatenate([array.real, array.imag])
    return array if array.dtype.kind == "f" else np.zeros(0, np.float16)


def _scaled(x: Shaped, e: object) -> Any:
    """A direction of about the size of x."""
    if isinstance(e, tuple):
        return tuple([_scaled(a, b) for a, b in zip(x, e, strict=True)]) if e else ()
    top = float(np.max(np.abs(x), initial=0.0))
    return e * np.asarray(e).dtype.type(top) if 0 < top < np.inf else e


def _moved(x: Shaped, t: Value, e: Value) -> Any:
    if isinstance(e, tuple):
        return tuple([_moved(a, t, b) for a, b in zip(x, e, strict=True)]) if e else x
    return x + np.asarray(t, np.asarray(e).dtype)[()] * e


def _shown(values: list[Any] | tuple[Any, ...]) -> str:
    return ", ".join(f"{v:.6g}" for v in flat(values))

"""External: compiled or remote code as one operation, with a stated or differenced derivative.

The code sees plain numbers and arrays only, never traced ones.  So nothing is known of it but what
the user states, or what differences of it show; and of its derivative there is no derivative.

    J v      jvp(args, v),   or <e, J v> = <vjp(args, e), v> for each e,   or a difference along v
    J^T w    vjp(args, w),   or <J^T w, e> = <w, jvp(args, e)> for each e, by differences likewise
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lineara.cotangent.builder import Builder
from lineara.errors import LinearityError, NoRuleError, RuleError, StagingError, TypeMismatchError
from lineara.facts.hints import Shaped
from lineara.facts.pickled import Making
from lineara.facts.primitive import Joint
from lineara.facts.types import show_type, type_of
from lineara.rules import rule_tests
from lineara.rules.call_as_operation import (
    Form,
    Whole,
    as_contribution,
    is_user_builder,
    moves,
    split_as,
    still,
)
from lineara.rules.custom import Custom, custom_linear
from lineara.tape.levels import outside
from lineara.tape.node import Traced
from lineara.trees import flatten, unflatten

Whole("external")

_TINY = 1e-30  # the step of a complex step: nothing is subtracted, so it may be that small
_PLACES: dict[str, tuple[tuple[complex, complex], ...]] = {  # steps and weights
    "complex-step": ((1j * _TINY, -1j / _TINY),),
    "central": ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12)),
}
_KINDS = " or ".join(f'"{name}"' for name in _PLACES)


class external(Custom):
    """`f`, code that Lineara cannot follow, with a derivative: stated, or by differences of f.

    jvp(args, tangents) -> y_dot  and  vjp(args, y_bar) -> cotangents  get plain numbers and arrays:
    `args` is the tuple of the positional arguments (defaults filled in), tangents and cotangents
    are tuples alike, None for what does not move.  One of the two serves both modes, for a call for
    each number of the argument or of the result; of both, each must be the other's transpose.
    difference="complex-step" takes f(x + 1e-30j v), of an f that computes with complex numbers as
    with real ones; "central" takes f(x + h v) and f(x - h v).  `shape` is that of the result, or a
    function of the arguments that gives it, and every result is held to it.

    The derivative is tested at the first call: by the dot-product identity <w, J v> = <J^T w, v>,
    and against differences of f; `check=False` trusts it.  It has no derivative of its own, no
    program and no certificate, and `proved` is False.

    Raises RuleError for a derivative that is missing, wrong or of another shape, TypeMismatchError
    for complex arguments, NoRuleError for a second derivative, StagingError inside a trace,
    LinearityError where it would have to be linear.

    >>> import numpy as np, lineara
    >>> compiled = np.frompyfunc(lambda u: u**3, 1, 1)
    >>> cubes = external(lambda x: compiled(x).astype(float), difference="central", shape=np.shape)
    >>> g = lineara.grad(lambda x: np.sum(cubes(x)))(np.array([1.0, 2.0]))
    >>> np.allclose(g, [3.0, 12.0])
    True
    >>> cube = external(lambda x: x**3, vjp=lambda args, y_bar: (3 * args[0] ** 2 * y_bar,))
    >>> lineara.grad(cube)(2.0), lineara.jvp(cube, (2.0,), (0.5,))
    (12.0, (8.0, 6.0))
    """

    given: Callable[..., Any]
    difference: str | None

    operation = "external"
    declared_by = "jvp="
    proved = False

    def __init__(
        self,
        f: Callable[..., Any],
        *,
        jvp: Callable[[tuple[Any, ...], tuple[Any, ...]], Any] | None = None,
        vjp: Callable[[tuple[Any, ...], Any], Sequence[Any]] | None = None,
        shape: tuple[int, ...] | Callable[..., tuple[int, ...]] | None = None,
        difference: str | None = None,
        check: bool = True,
    ) -> None:
        super().__init__(f, check)
        self.given: Callable[..., Any] = f
        self.f: Callable[..., Any] = functools.partial(_plain_call, self, f)
        self.jvp: Callable[[tuple[Any, ...], tuple[Any, ...]], Any] | None = jvp
        self.vjp: Callable[[tuple[Any, ...], Any], Sequence[Any]] | None = vjp
        self.shape: tuple[int, ...] | Callable[..., tuple[int, ...]] | None = shape
        self.difference: str | None = difference
        stated = [f"{n}=" for n in ("jvp", "vjp", "difference") if getattr(self, n) is not None]
        if not stated or (difference is not None and len(stated) > 1):
            raise RuleError(
                f"{self!r}: takes its derivative from jvp=, from vjp=, from both, or from "
                f"difference={_KINDS}; found {' and '.join(stated) or 'none of them'}"
            )
        if difference is not None and difference not in _PLACES:
            raise RuleError(f"{self!r}: difference= is {_KINDS}; found {difference!r}")
        for name in ("jvp", "vjp"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                found = show_type(getattr(self, name))
                raise TypeMismatchError(f"{self!r}: {name}= is a function; found {found}")

    def __repr__(self) -> str:
        return f"external({self.__name__})"

    def made_by(self) -> Making:
        """The function and its derivative, tested if it was."""
        stated = {n: getattr(self, n) for n in ("jvp", "vjp", "shape", "difference")}
        return Making(external, (self.given,), {**stated, "check": not self.is_checked})

    def is_declared(self) -> bool:
        """There is a derivative, or it could not have been made."""
        return True

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The value of the function."""
        return self.f(*args, **options)

    def check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Test the derivative: <w, J v> = <J^T w, v> where both are stated, and differences."""
        rule_tests.check_external(self, args, options)

    def trace(
        self, level: Any, values: list[Any], active: list[int], form: Form, options: dict[str, Any]
    ) -> tuple[Any, Joint]:
        """The value, and J and its transpose on vectors, which are traced by outer levels."""
        if any(isinstance(v, Traced) for v in values):
            raise NoRuleError(
                f"{self!r}: how its derivative changes is not known, and a second one was asked "
                "for; declare the function with lineara.custom_jvp or lineara.custom_vjp, and "
                "give its derivative, too, as an external"
            )
        call = _Call(self, values, active, form, options)
        one_each = Form((None,) * len(active))
        linear = custom_linear(call.ahead, call.back, range(len(active)), check=False)
        joint = linear.joint(
            [values[i] for i in active], [*range(len(active))], one_each, {}, call.y
        )

        def forward(tangents: Sequence[Any]) -> list[Any]:
            return call.spaced(joint.forward(tangents))

        return call.result, Joint(forward, lambda bars: joint.back([bars[i] for i in call.places]))

    def trace_linear(
        self, level: Any, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """Nobody knows whether it is linear."""
        raise LinearityError(
            f"{self!r}: nothing says that this code is linear; declare it with "
            "lineara.custom_linear and its transpose"
        )

    def trace_staged(
        self, level: Any, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """It has no program."""
        raise StagingError(
            f"{self!r}: code that Lineara cannot see has no program, and nothing can be proved of "
            "it; call it outside of trace, vmap and policy=, and in grad or vjp without them"
        )


def _plain_call(rule: external, f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """f of plain values, outside of all traces; its result is held to `shape`."""
    with outside():
        y = f(*args, **options)
        shape = rule.shape
        wanted = shape(*args, **options) if callable(shape) else shape
    if wanted is not None and np.shape(y) != tuple(wanted):
        raise RuleError(
            f"{rule!r}: shape= says {tuple(wanted)}, but the result has {np.shape(y)}; "
            "mend one of them"
        )
    return y


class _Call:
    """One call at plain values: its result, and its derivative on plain vectors."""

    def __init__(
        self,
        rule: external,
        values: list[Any],
        active: Sequence[int],
        form: Form,
        options: dict[str, Any],
    ) -> None:
        self.rule, self.values, self.active, self.form = rule, values, active, form
        self.options = options
        self.args = tuple(form.arguments(values))
        self.result = rule.f(*self.args, **options)
        self.leaves, self.structure = flatten(self.result)
        self.places = [i for i, v in enumerate(self.leaves) if moves(v)]
        self.y = [self.leaves[i] for i in self.places]
        for v in [*(values[i] for i in active), *self.y]:
            if type_of(v).dtype.kind == "c":
                raise TypeMismatchError(
                    f"{rule!r}: takes and gives real numbers, but was given {show_type(v)}; give "
                    "real and imaginary parts as two arguments"
                )

    def spaced(self, parts: Sequence[Any]) -> list[Any]:
        """Vectors of the moving results among all; None for the others."""
        at = dict(zip(self.places, parts, strict=True))
        return [at.get(i) for i in range(len(self.leaves))]

    def ahead(self, *tangents: Any) -> list[Any]:
        """J v."""
        rule = self.rule
        with outside():
            if rule.jvp is not None:
                return self._stated_jvp(tangents)
            if rule.difference is not None:
                return self._difference(tangents)
            rows = [self._stated_vjp(bars) for bars in _units(self.y)]
        return _filled(self.y, [rule_tests.dot(bar, tangents) for bar in rows])

    def back(self, bars: Sequence[Any]) -> tuple[Any, ...]:
        """J^T w."""
        with outside():
            if self.rule.vjp is not None:
                return tuple(self._stated_vjp(bars))
            x = [self.values[i] for i in self.active]
            ahead = self._stated_jvp if self.rule.jvp is not None else self._difference
            return tuple(_filled(x, [rule_tests.dot(bars, ahead(unit)) for unit in _units(x)]))

    def _stated_jvp(self, tangents: Sequence[Any]) -> list[Any]:
        at = dict(zip(self.active, tangents, strict=True))
        dots = [at[i] if i in at else still(v) for i, v in enumerate(self.values)]
        assert self.rule.jvp is not None
        y_dot = self.rule.jvp(self.args, tuple(self.form.arguments(dots)), **self.options)
        tangent_leaves, structure = flatten(y_dot)
        if structure != self.structure:
            raise RuleError(
                f"{self.rule!r}: the result is {self.structure}, but the tangent from jvp= "
                f"{structure}; they must be alike"
            )
        return [self._fitted("jvp=", self.leaves[i], tangent_leaves[i]) for i in self.places]

    def _stated_vjp(self, bars: Sequence[Any]) -> list[Any]:
        at = dict(zip(self.places, bars, strict=True))
        y_bar = [at[i] if i in at else still(v) for i, v in enumerate(self.leaves)]
        assert self.rule.vjp is not None
        given = self.rule.vjp(self.args, unflatten(self.structure, y_bar), **self.options)
        if not isinstance(given, tuple | list) or len(given) != len(self.args):
            raise RuleError(
                f"{self.rule!r}: vjp= must return a tuple of {len(self.args)} cotangents, one for "
                f"each argument, but it returned {show_type(given)}"
            )
        cotangents: list[Any] = []
        parts = self.form.split(self.values)
        for part, bar, structure in zip(parts, given, self.form.structures, strict=True):
            leaves = [None] * len(part) if bar is None else split_as(bar, structure)[0]
            if len(leaves) != len(part):
                raise RuleError(
                    f"{self.rule!r}: vjp= returned a cotangent of {len(leaves)} leaves for an "
                    f"argument of {len(part)}; they must be alike"
                )
            cotangents += leaves
        return [self._fitted("vjp=", self.values[i], cotangents[i]) for i in self.active]

    def _fitted(self, who: str, v: Shaped, d: Shaped) -> Any:
        """A vector that the user gave, like v."""
        if is_user_builder(d):
            return as_contribution(d, v, f"{self.rule!r}: an argument", who)
        if d is None or (np.ndim(d) == 0 and d == 0):
            return still(v)
        if np.shape(d) != np.shape(v):
            raise RuleError(
                f"{self.rule!r}: {who} returned {show_type(d)} beside {show_type(v)}; they must "
                "have the same shape"
            )
        if isinstance(d, Builder):
            return d
        return np.asarray(d, float) if np.shape(v) else float(d)

    def _difference(self, tangents: Sequence[Any]) -> list[Any]:
        """The derivative along these tangents, by values of f."""
        rule = self.rule
        assert rule.difference is not None
        step = 1.0 if rule.difference == "complex-step" else self._step(tangents)
        total = [np.zeros(np.shape(v)) for v in self.y]
        for place, weight in _PLACES[rule.difference]:
            x = list(self.values)
            for i, d in zip(self.active, tangents, strict=True):
                moved = x[i] + place * step * np.asarray(d)
                x[i] = moved if np.shape(moved) else moved.item()
            y = flatten(rule.f(*self.form.arguments(x), **self.options))[0]
            for k, i in enumerate(self.places):
                total[k] = total[k] + np.real(weight / step * np.asarray(y[i]))
        return [t if np.shape(t) else float(t) for t in total]

    def _step(self, tangents: Sequence[Any]) -> float:
        """eps^(1/5) of the argument along the tangent, where rounding and truncation are alike."""
        size = max((float(np.max(np.abs(d), initial=0.0)) for d in tangents), default=0.0)
        x = [self.values[i] for i, d in zip(self.active, tangents, strict=True) if np.any(d)]
        scale = max((float(np.max(np.abs(v), initial=0.0)) for v in x), default=0.0)
        return (scale or 1.0) * float(np.finfo(float).eps) ** 0.2 / size if size else 1.0


def _units(like: Sequence[Any]) -> Iterator[list[Any]]:
    """The vectors with one 1 in them."""
    for k, v in enumerate(like):
        for i in np.ndindex(np.shape(v)):
            unit = [still(u) for u in like]
            if i:
                unit[k][i] = 1.0
            else:
                unit[k] = np.ones(()) if isinstance(v, np.ndarray) else 1.0
            yield unit


def _filled(like: Sequence[Any], numbers: Sequence[float]) -> list[Any]:
    """Numbers, one after the other, in vectors like these."""
    left = iter(numbers)
    rows = [[next(left) for _ in range(int(np.size(v)))] for v in like]
    return [
        np.array(row).reshape(np.shape(v)) if np.shape(v) else row[0]
        for v, row in zip(like, rows, strict=True)
    ]


__all__ = ["external"]

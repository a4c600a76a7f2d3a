"""Derivatives that the user states: a jvp, a vjp, or the transpose of a linear function.

One rule is enough.  From a jvp the pullback follows by transposing its text, from a pullback the
jvp; both run on the values one level below, so that outer levels record what the rule does and
every order follows.  A rule is tested: at its declaration, given an example, or at its first call.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from lineara.errors import (
    DetachError,
    LinearityError,
    NoRuleError,
    RuleError,
    StagingError,
    TypeMismatchError,
)
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.pickled import Making
from lineara.facts.primitive import Box, Joint, op, real_part
from lineara.facts.types import show_type, type_of
from lineara.python.user_code import lifted, method
from lineara.rules import rule_tests
from lineara.rules.call_as_operation import (
    Form,
    Rule,
    Whole,
    as_written,
    encloses,
    finished,
    fitted,
    is_summed_builder,
    is_zero,
    moves,
    name_of,
    opened,
    record_leaves,
    settled,
    split_as,
    spread,
    still,
)
from lineara.rules.pullback import Pullback
from lineara.tape.levels import open_level
from lineara.tape.linear_level import record_linear
from lineara.tape.node import Traced, plain
from lineara.trees import flatten, unflatten

for _name in ("custom_jvp", "custom_vjp", "custom_linear"):
    Whole(_name)


class Custom(Rule):
    """A function whose derivative the user states."""

    operation = ""  # the name of the primitive that calls of the function are
    declared_by = ""  # the name of the method that declares the rule

    def __init__(self, f: Callable[..., Any], check: bool) -> None:
        super().__init__(f)
        self._checked = not check
        self._signature = inspect.signature(f) if _is_python(f) else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound, options = self._bind(args, kwargs)
        leaves, form = opened(bound)
        if not self._checked and self.is_declared():
            self.check_once(leaves, form, options)
        return op(self.operation)(*leaves, rule=self, form=form, options=options)

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments by position, those that can only be given by name apart."""
        options = kwargs
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, options = bound.args, bound.kwargs
        for key, value in options.items():
            if any(isinstance(v, Traced) for v in flatten(value)[0]):
                raise TypeMismatchError(
                    f"{self!r}: the argument {key} is traced, but a rule states derivatives with "
                    "respect to positional arguments; declare it as one"
                )
        return args, options

    def made_by(self) -> Making:
        """The function and its rule, tested if it was."""
        return Making(type(self), self.stated(), {"check": not self._checked})

    def stated(self) -> tuple[Any, ...]:
        """The function, and what states its derivative."""
        raise NotImplementedError

    @property
    def is_checked(self) -> bool:
        """Whether the rule was tested, or is trusted."""
        return self._checked

    def check_once(self, leaves: list[Any], form: Form, options: dict[str, Any]) -> None:
        """Test the rule at the values of these leaves, if they have any."""
        try:
            args = form.arguments([plain(v) for v in leaves])
        except (LinearityError, StagingError):  # a type without a value
            return
        self._checked = True
        try:
            self._check(tuple(args), options)
        except BaseException:
            self._checked = False
            raise

    def _check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        try:
            with np.errstate(all="ignore"):
                self.check(args, options)
        except DetachError as error:  # the arguments are plain
            raise encloses(repr(self)) from error

    def _example(self, example: Sequence[Any] | None) -> None:
        """Test the rule on an example."""
        if example is not None:
            if not isinstance(example, tuple | list):
                raise TypeMismatchError(
                    f"{self!r}: example is a tuple of arguments, not {show_type(example)}"
                )
            bound, options = self._bind(tuple(example), {})
            self._check(tuple(bound), options)
            self._checked = True

    def argument(self, i: int) -> str:
        """The name of a positional argument."""
        names = list(self._signature.parameters) if self._signature is not None else []
        return f"`{names[i]}`" if i < len(names) else f"{i + 1}"

    def undeclared(self, how: str) -> RuleError:
        """The error of a derivative that nobody stated."""
        return RuleError(f"{self!r} has no rule yet; declare it with {name_of(self.f)}.{how}")

    def is_declared(self) -> bool:
        """Whether there is a rule."""
        raise NotImplementedError

    def trace_staged(
        self, level: Any, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """The call of a definition, beside which the program keeps the rule."""
        if not self.is_declared():
            raise self.undeclared(self.declared_by)
        from lineara.staging.rules_in_programs import (
            Spelled,  # with the staged engine, when it is asked for
        )

        return Spelled(self, level, leaves, form, options).call()

    def is_formal(self, v: Value, place: int, form: Form) -> bool:
        """Whether a number in the arguments becomes a formal of that definition."""
        del v, place, form
        return True

    def check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Test the rule at these arguments, or raise RuleError."""
        raise NotImplementedError


def _is_python(f: Callable[..., Any]) -> bool:
    """Whether a function is written in Python, so that its parameters are what they seem."""
    kinds = (FunctionType, MethodType, functools.partial, Rule)
    return isinstance(f, kinds) or type(type(f).__dict__.get("__call__")) is FunctionType


# --- custom_jvp ---------------------------------------------------------------------------------


class custom_jvp(Custom):
    """`f` with a derivative of its own: a rule (primals, tangents) -> (y, y_dot).

    The rule is linear in the tangents.  `primals` is the tuple of the positional arguments
    (defaults filled in), `tangents` their tangents in the same containers: a zero for what does not
    move, None for what is no number.  Arguments that can only be given by name are given to the
    rule by name.  The rule serves forward and reverse mode at every order.  It is tested against
    finite differences: on `example`, a tuple of arguments, or at the first call; `check=False`
    trusts it.

    Raises RuleError for a rule that is wrong or returns something else, TypeMismatchError for a
    traced argument that is given by name.

    >>> import math, lineara
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return math.log1p(math.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), x_dot / (1 + math.exp(-x))
    >>> lineara.grad(log1pexp)(0.0), lineara.jvp(log1pexp, (0.0,), (2.0,))[1]
    (0.5, 1.0)
    >>> lineara.grad(lineara.grad(log1pexp))(0.0)
    0.25
    """

    operation = "custom_jvp"
    declared_by = "defjvp"

    def __init__(
        self,
        f: Callable[..., Any],
        jvp: Callable[..., Any] | None = None,
        *,
        example: Sequence[Any] | None = None,
        check: bool = True,
    ) -> None:
        super().__init__(f, check)
        self.jvp = jvp
        if jvp is not None:
            self._example(example)

    def stated(self) -> tuple[Any, ...]:
        """The function and its jvp."""
        return self.f, self.jvp

    def defjvp(
        self, jvp: Callable[..., Any], *, example: Sequence[Any] | None = None
    ) -> Callable[..., Any]:
        """Declare the rule; returns it, so that it can decorate."""
        self.jvp = jvp
        self._example(example)
        return jvp

    def is_declared(self) -> bool:
        """Whether there is a rule."""
        return self.jvp is not None

    def trace(
        self, level: Any, values: list[Any], active: list[int], form: Form, options: dict[str, Any]
    ) -> tuple[Any, Joint]:
        """The value, and the linear map that the rule's text is."""
        if self.jvp is None:
            raise self.undeclared(self.declared_by)
        args = form.arguments(values)
        primals, rule = lifted(args), method(self.jvp)
        values_of_y: list[Any] = []

        def run(*nodes: Any) -> list[Any]:
            moved = dict(zip(active, nodes, strict=True))
            dots = [moved[i] if i in moved else still(v) for i, v in enumerate(values)]
            with np.errstate(all="ignore"):
                out = rule(primals, lifted(form.arguments(dots)), **options)
            y, y_dot = self.parts(out)
            values_of_y.append(y)
            return self.aligned(y, y_dot)

        types = [type_of(values[i]) for i in active]
        _, joint = record_linear(open_level, run, types, level, sparse=True)
        return values_of_y[0], joint

    def parts(self, out: object) -> tuple[Any, Any]:
        """(y, y_dot) of what the rule returned."""
        if not isinstance(out, tuple) or len(out) != 2:
            raise RuleError(
                f"{self!r}: the rule must return (y, y_dot), but it returned {show_type(out)}"
            )
        return out

    def aligned(self, y: Tree, y_dot: object) -> list[Any]:
        """For each leaf of y its tangent, None for zero."""
        leaves, structure = flatten(y)
        dots, found = flatten(y_dot)
        if found != structure:
            raise RuleError(
                f"{self!r}: the rule returned a value {structure} but a tangent {found}; "
                "they must be alike"
            )
        return [
            self._tangent(settled(v), settled(d)) if moves(settled(v)) else None
            for v, d in zip(leaves, dots, strict=True)
        ]

    def _tangent(self, v: Shaped, d: Shaped) -> Any:
        if d is None or is_zero(d):
            return None
        if type_of(d).shape != type_of(v).shape:
            raise RuleError(
                f"{self!r}: the rule returned a value {type_of(v)} but a tangent {type_of(d)}; "
                "they must have the same shape"
            )
        return d if type_of(v).dtype.kind == "c" else real_part(d)

    def check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Test the rule: its value, its tangent, and the transpose of its text."""
        rule_tests.check_jvp(self, args, options)


# --- custom_vjp ---------------------------------------------------------------------------------


class custom_vjp(Custom):
    """`f` with a pullback of its own.

    fwd(*args) -> (y, residuals)  runs in place of f, and  bwd(residuals, y_bar) -> cotangents  is
    linear in y_bar and returns a tuple: a cotangent for each positional argument (defaults filled
    in), None for zero.  One may be a builder (Rows, Coo, LowRank, Zero, or a class of
    your own with `finish` and `merge` or `+`), which arrives as it is.  The rule serves reverse and
    forward mode at every order.  It is tested against finite differences: on `example`, a tuple of
    arguments, or at the first call; `check=False` trusts it.

    Raises RuleError for a rule that is wrong, returns something else or lacks one half,
    TypeMismatchError for a traced argument that is given by name.

    >>> import numpy as np, lineara
    >>> def fwd(x, n):
    ...     return x**n, (x, n)
    >>> def bwd(residuals, y_bar):
    ...     x, n = residuals
    ...     return n * x ** (n - 1) * y_bar, None
    >>> power = custom_vjp(lambda x, n: x**n, fwd, bwd)
    >>> lineara.grad(power)(2.0, 3), lineara.jvp(lambda x: power(x, 3), (2.0,), (1.0,))
    (12.0, (8.0, 12.0))
    >>> lineara.hessian(lambda x: np.sum(power(x, 3)))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """

    operation = "custom_vjp"
    declared_by = "defvjp"
    stated_by = "bwd"  # whose text a test of the pullback is about

    def __init__(
        self,
        f: Callable[..., Any],
        fwd: Callable[..., Any] | None = None,
        bwd: Callable[..., Any] | None = None,
        *,
        example: Sequence[Any] | None = None,
        check: bool = True,
    ) -> None:
        super().__init__(f, check)
        self.fwd, self.bwd = fwd, bwd
        if (fwd is None) != (bwd is None):
            raise RuleError(f"{self!r}: fwd and bwd are declared together; one is missing")
        if fwd is not None:
            self._example(example)

    def stated(self) -> tuple[Any, ...]:
        """The function and the two halves of its rule."""
        return self.f, self.fwd, self.bwd

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        *,
        example: Sequence[Any] | None = None,
    ) -> None:
        """Declare the rule."""
        self.fwd, self.bwd = fwd, bwd
        self._example(example)

    def is_declared(self) -> bool:
        """Whether there is a rule."""
        return self.fwd is not None

    def trace(
        self, level: Any, values: list[Any], active: list[int], form: Form, options: dict[str, Any]
    ) -> tuple[Any, Joint]:
        """The value, and the pullback; forward, the transpose of its text."""
        if self.fwd is None:
            raise self.undeclared(self.declared_by)
        args = form.arguments(values)
        y, residuals = self.parts(as_written(self.fwd, args)(*args, **options))
        pull = Pullback(self, values, form, y, residuals)

        def forward(tangents: Sequence[Any]) -> list[Any]:
            return list(pull.text.back(pull.spread_out(tangents, active)))

        return y, Joint(forward, lambda y_bars: [pull(y_bars)[i] for i in active])

    def parts(self, out: tuple[Any, ...]) -> tuple[Any, Any]:
        """(y, residuals) of what fwd returned."""
        if not isinstance(out, tuple) or len(out) != 2:
            raise RuleError(
                f"{self!r}: fwd must return (y, residuals), but it returned {show_type(out)}"
            )
        return out

    def check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Test the rule: its value, its pullback, and the transpose of its text."""
        rule_tests.check_vjp(self, args, options)


# --- custom_linear ------------------------------------------------------------------------------


class custom_linear(Custom):
    """A linear `f` with its transpose: transpose(y_bar, *others) -> x_bar.

    f is linear in the arguments `argnums` jointly (one by default, the first); the others, which
    the transpose gets after y_bar, are parameters that f has no derivative for.  With several
    `argnums` the transpose returns a tuple.  f and the transpose may run any code: their
    derivatives at every order, and in both modes, are each other.  Both are tested: on `example`,
    a tuple of arguments, or at the first call; `check=False` trusts them.

    Raises RuleError for a transpose that is wrong or returns something else, LinearityError where f
    is not linear.

    >>> import numpy as np, lineara
    >>> shift = custom_linear(np.roll, transpose=lambda y_bar, n, axis=None: np.roll(y_bar, -n))
    >>> lineara.grad(lambda x: shift(x, 1)[0] ** 2)(np.array([1.0, 2.0, 3.0]))
    array([0., 0., 6.])
    >>> lineara.jvp(lambda x: shift(x, 1), (np.zeros(3),), (np.array([1.0, 2.0, 3.0]),))[1]
    array([3., 1., 2.])
    """

    operation = "custom_linear"
    declared_by = "deftranspose"

    def __init__(
        self,
        f: Callable[..., Any],
        transpose: Callable[..., Any] | None = None,
        argnums: int | Sequence[int] = 0,
        *,
        example: Sequence[Any] | None = None,
        check: bool = True,
    ) -> None:
        super().__init__(f, check)
        self.transpose = transpose
        self.argnums = argnums
        self.places: tuple[int] | tuple[int, ...] = (
            (argnums,) if isinstance(argnums, int) else tuple(argnums)
        )
        if transpose is not None:
            self._example(example)

    def stated(self) -> tuple[Any, ...]:
        """The function, its transpose, and where it is linear."""
        return self.f, self.transpose, self.argnums

    def deftranspose(
        self, transpose: Callable[..., Any], *, example: Sequence[Any] | None = None
    ) -> Callable[..., Any]:
        """Declare the transpose; returns it, so that it can decorate."""
        self.transpose = transpose
        self._example(example)
        return transpose

    def is_declared(self) -> bool:
        """Whether there is a transpose."""
        return self.transpose is not None

    @property
    def T(self) -> "custom_linear":
        """The transposed function, (y_bar, *others) -> x_bar, whose transpose is f."""
        if self.transpose is None:
            raise self.undeclared(self.declared_by)

        def again(x: Any, *others: Any, **options: Any) -> Any:
            rest = iter(others)
            count = len(self.places) + len(others)
            given = dict(
                zip(self.places, (x,) if isinstance(self.argnums, int) else x, strict=True)
            )
            return self.f(
                *(given[i] if i in given else next(rest) for i in range(count)), **options
            )

        return _Transposed(self.transpose, again, check=False)

    def trace(
        self, level: Any, values: list[Any], active: list[int], form: Form, options: dict[str, Any]
    ) -> tuple[Any, Joint]:
        """The value, and f and its transpose on vectors."""
        y = self._quiet(form.arguments(values), options)
        return y, self.joint(values, active, form, options, y)

    def joint(
        self, values: list[Any], active: list[int], form: Form, options: dict[str, Any], y: Tree
    ) -> Joint:
        """f on the tangents, the transpose on the cotangents; both are traced by outer levels."""
        linear = self.linear_leaves(form)
        for i in active:
            if not linear[i]:
                raise self._not_linear(form, i)
        leaves, structure = flatten(y)
        zeros = [still(settled(v)) for v in leaves]
        others = [a for i, a in enumerate(form.arguments(values)) if i not in self.places]

        def ahead(tangents: list[Any]) -> list[Any]:
            at = dict(zip(active, tangents, strict=True))
            dots = [
                v if not flag else at[i] if at.get(i) is not None else still(v)
                for i, (v, flag) in enumerate(zip(values, linear, strict=True))
            ]
            return flatten(self._quiet(form.arguments(dots), options))[0]

        def back(y_bars: list[Any]) -> list[Any]:
            filled = [z if b is None else b for z, b in zip(zeros, y_bars, strict=True)]
            given = [unflatten(structure, filled), *others]
            if any(isinstance(v, Box) for v in flatten(given)[0]):
                x_bar = self.T(*given, **options)  # an operation, for the levels outside
            else:
                assert self.transpose is not None, "T has raised"
                x_bar = as_written(self.transpose, given)(*given, **options)
            return self.x_bars(x_bar, values, form, active)

        return Joint(lambda ts: spread(ahead, ts), lambda bars: spread(back, bars))

    def _not_linear(self, form: Form, leaf: int) -> NoRuleError:
        return NoRuleError(
            f"{self!r}: no derivative with respect to the argument "
            f"{self.argument(self._owner(form, leaf))}, in which it is not declared linear "
            "(argnums); give it a plain value, or declare a custom_jvp"
        )

    def is_formal(self, v: Value, place: int, form: Form) -> bool:
        """Vectors are, and what is traced and has no derivative; the rest is constant."""
        linear = self.linear_leaves(form)[place]
        if not linear and isinstance(v, Traced) and moves(v):
            raise self._not_linear(form, place)
        return linear or isinstance(v, Traced)

    def _quiet(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The function, without a test."""
        leaves, form = opened(args)
        return op("custom_linear")(*leaves, rule=self, form=form, options=options)

    def linear_leaves(self, form: Form) -> list[bool]:
        """For each leaf of the arguments, whether f is linear in it."""
        counts = [1 if s is None else s.leaf_count for s in form.structures]
        return [i in self.places for i, n in enumerate(counts) for _ in range(n)]

    @staticmethod
    def _owner(form: Form, leaf: int) -> int:
        """The argument that a leaf belongs to."""
        counts = [1 if s is None else s.leaf_count for s in form.structures]
        return next(i for i in range(len(counts)) if sum(counts[: i + 1]) > leaf)

    def x_bars(self, x_bar: object, values: list[Any], form: Form, active: list[int]) -> list[Any]:
        """The cotangents of the active leaves, from what the transpose gave."""
        given = (x_bar,) if isinstance(self.argnums, int) else x_bar
        if not isinstance(given, tuple) or len(given) != len(self.places):
            raise RuleError(
                f"{self!r}: the transpose must return a tuple of {len(self.places)} cotangents, "
                f"one for each of argnums={self.argnums}, but it returned {show_type(x_bar)}"
            )
        at: dict[int, Any] = {}
        starts = np.cumsum([0, *(len(p) for p in form.split(values))]).tolist()
        for place, bar in zip(self.places, given, strict=True):
            structure = form.structures[place]
            bars, shape = split_as(bar, structure)
            if shape != structure:
                raise RuleError(
                    f"{self!r}: the argument {self.argument(place)} is {structure}, but its "
                    f"cotangent from the transpose is {shape}"
                )
            at.update(enumerate(bars, starts[place]))
        who = f"{self!r}: an argument"
        return [fitted(at[i], values[i], who, "the transpose") for i in active]

    def trace_linear(
        self, level: Any, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """f of linear arguments: an entry like any other; the types are those of f at zero."""
        linear = self.linear_leaves(form)
        active = [i for i, a in enumerate(leaves) if level.mine(a)]
        for a, flag in zip(leaves, linear, strict=True):
            if flag and not level.mine(a) and moves(a) and np.any(plain(a)):
                raise LinearityError(
                    f"{self!r} of a linear argument and a constant that is not zero is affine; "
                    "a linear function maps zero to zero, so leave the constant out"
                )
        values = [_zero(a) if level.mine(a) else a for a in leaves]
        y = self.run(form.arguments([plain(v) for v in values]), options)
        ys, structure = flatten(y)
        if any(np.any(v) for v in ys if moves(v)):
            raise LinearityError(f"{self!r} maps zero to something else, so it is not linear")
        types = [type_of(v) if moves(v) else v for v in ys]
        joint = self.joint(values, active, form, options, y)
        nodes = record_leaves(level, types, [leaves[i] for i in active], joint, repr(self))
        return unflatten(structure, nodes)

    def check(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Test that f is linear, and that the transpose is its transpose."""
        rule_tests.check_pair(self, args, options)


class _Transposed(custom_linear):
    """The transpose as a linear function: of arrays, to which builders of the user's finish."""

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The value of the transpose."""
        bars, structure = flatten(super().run(args, options), is_summed_builder)
        return unflatten(structure, [finished(b) for b in bars])


def _zero(node: Shaped) -> Any:
    t = type_of(node)
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()


__all__ = ["custom_jvp", "custom_linear", "custom_vjp"]

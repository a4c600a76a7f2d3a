"""A call of one of SciPy's solvers: its traced values, and the same call on plain numbers.

A solver iterates on plain numbers, without a tape.  Traced values are captured by its functions or
are among its arguments; both are taken out, and the functions are rebuilt around plain numbers.
"""

import copy
import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from lineara.errors import (
    DetachError,
    LeakedVariableError,
    LinearityError,
    RuleError,
    SolverError,
    StagingError,
    TypeMismatchError,
    user_line,
)
from lineara.facts.hints import Shaped, Tree
from lineara.facts.primitive import implements
from lineara.python.captured_values import captured, with_captured
from lineara.python.function_points import FUNCTIONS
from lineara.python.user_code import lifted, method
from lineara.rules.call_as_operation import Form, Rule, opened, settled
from lineara.rules.probed import watched
from lineara.tape.level import Level
from lineara.tape.levels import outside
from lineara.tape.node import Traced, plain, staged
from lineara.trees import flatten


def follows(tree: Tree) -> bool:
    """Whether one leaf of a container is traced."""
    return any(isinstance(settled(v), Traced) for v in flatten(tree)[0])


def traced_captures(f: Callable[..., Any]) -> tuple[list[str], list[Any], Form]:
    """(names, leaves, form) of the traced values that a function has captured."""
    values = captured(f, follows)
    return list(values), *opened(list(values.values()))


class Solved(Rule):
    """What a solver computes from numbers, as a function of the values that f has captured."""

    names: list[str]
    leaves: list[Any]
    form: Form

    does = "a solver iterates on numbers"

    def __init__(self, f: Callable[..., Any], solver: str) -> None:
        super().__init__(f)
        self.names, self.leaves, self.form = traced_captures(f)
        self.__name__ = solver

    def trace_linear(
        self, level: Level, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """Raises an error: what a solver computes is not linear in what it depends on."""
        raise LinearityError(
            f"{self.__name__} of a linear value, which has a type but no number; {self.does}, so a "
            "linear function may not call one with its argument"
        )


def remade(f: Callable[..., Any], names: list[str], form: Form, leaves: list[Any]) -> Any:
    """The function with its captured values replaced by those of `leaves`."""
    return with_captured(f, dict(zip(names, form.arguments(leaves), strict=True)))


def seeing(f: Callable[..., Any], names: list[str], form: Form, leaves: list[Any]) -> Any:
    """The function with traced values as its captured ones, as a copy that calls our NumPy."""
    return method(with_captured(f, dict(zip(names, form.arguments(leaves), strict=True)), _shown))


def _shown(value: Shaped) -> Any:
    return lifted((value,))[0]


def _by_name(value: Tree) -> Any:
    """A function with traced default arguments as a partial, so that these values have names."""
    if type(value) is not FunctionType or not (value.__defaults__ or value.__kwdefaults__):
        return value
    parameters = inspect.signature(value).parameters.values()
    named = {p.name: p.default for p in parameters if p.default is not p.empty}
    named = {name: default for name, default in named.items() if follows(default)}
    return functools.partial(value, **named) if named else value


def _parted(value: Any) -> Any:
    """A constraint or bounds object of SciPy's as a partial that builds it from its attributes."""
    if type(value) in (list, tuple):
        return type(value)(map(_parted, value))
    if type(value).__module__ == "scipy.optimize._constraints":
        return functools.partial(_made, copy.copy(value), **vars(value))
    return value


def _made(like: object, **attributes: Any) -> Any:
    vars(like).update({name: _whole(value) for name, value in attributes.items()})
    return like


def _whole(value: Any) -> Any:
    """The object that `_parted` replaced; its functions get plain numbers as results."""
    if type(value) in (list, tuple):
        return type(value)(map(_whole, value))
    if type(value) is dict:
        return {name: _whole(v) for name, v in value.items()}
    if type(value) is functools.partial and value.func is _made:
        return value()
    return _of_numbers(value) if isinstance(value, FUNCTIONS) else value


def _of_numbers(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its result checked: a traced value must not get into compiled code.

    Compiled code that asks such a value for its float does not look whether that failed: it calls
    the function again while the exception is pending, and Python's behavior is undefined then.
    """

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        if type(y) is not float and follows(y):
            raise LeakedVariableError("the result of a function that a solver calls is traced")
        return y

    return called


def _called(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return original(*map(_whole, args), **{name: _whole(v) for name, v in kwargs.items()})


class Asked:
    """The call that a solution comes from, and the solver's message if it reported a failure."""

    name: str
    line: str

    def __init__(self, name: str, line: str, failure: str | None = None) -> None:
        self.name, self.line = name, line
        self.weak = False  # whether a condition is active with a multiplier that is zero
        self.failure: str | None = failure and " ".join(str(failure).split())

    def singular(self) -> SolverError:
        """The error for an equation with a singular Jacobian at its solution."""
        return SolverError(
            f"{self.name}: the derivative of the equation with respect to the unknown is singular "
            "at the solution, which is then no differentiable function of the parameters "
            "(several solutions meet there, or the equation leaves the unknown free)",
            line=self.line,
        )

    def torn(self) -> SolverError:
        """The error for an active bound or constraint with a multiplier of zero."""
        return SolverError(
            f"{self.name}: a bound or a constraint is only just active (its multiplier is zero), "
            "so the solution moves in one way when it is pushed against it and in another when it "
            "is pulled off; the optimal value has a derivative there, the solution has none",
            line=self.line,
        )

    def far(self) -> SolverError:
        """The error for a point that does not solve the equation."""
        return SolverError(
            f"{self.name}: did not converge ({self.failure}), and what is no solution has no "
            "derivative; give another start or more iterations, or do without the derivative by "
            "lineara.stop_gradient",
            line=self.line,
        )


class Call:
    """One call of a solver, with its arguments by name.

    `call["x0"]` is an argument, `call.traced` says whether one is traced, and `call.run()` is
    SciPy's result for plain numbers.
    """

    original: Callable[..., Any]
    name: str

    def __init__(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        own: Sequence[str],
    ) -> None:
        self.original, self.name = original, original.__name__
        self.own: dict[str, Any] = {name: kwargs[name] for name in own if name in kwargs}
        kwargs = {name: value for name, value in kwargs.items() if name not in own}
        self.args: tuple[Any, ...] = tuple(map(_by_name, args))
        self.kwargs: dict[str, Any] = {name: _by_name(value) for name, value in kwargs.items()}
        bound = inspect.signature(original).bind(*self.args, **self.kwargs)
        self.places: list[str] = list(bound.arguments)[: len(args)]
        bound.apply_defaults()
        self.given: dict[str, Any] = bound.arguments
        whole = self._whole(self.args, self.kwargs)
        if any(map(watched, flatten(captured(whole))[0])):
            raise TypeMismatchError(
                f"{self.name}: a function that was given to it uses one that is probed, whose "
                "calls a solver makes out of sight; write the rule out (a sum over nodes, Newton's "
                "steps) or differentiate in what the function captured, without probed"
            )
        leaves = traced_captures(whole)[1]
        self.traced: bool = any(isinstance(v, Traced) for v in leaves)
        self.line: str = user_line() if self.traced else ""
        if staged(leaves):
            raise StagingError(
                f"{self.name}: asked for a number that is not known until the program runs; a "
                "solver iterates on numbers, so differentiate with grad, jvp or linearize, which "
                "run on them, or solve outside of the traced function"
            )

    def asked(self, failure: str | None = None) -> Asked:
        """The origin of a solution; `failure` is the solver's message if it did not succeed."""
        return Asked(self.name, self.line, failure)

    def __getitem__(self, name: str) -> Any:
        return self.given[name]

    def plain(self, name: str) -> Any:
        """An argument without its derivative; for arguments that contain no function."""
        leaves, form = opened([self[name]])
        return form.arguments([plain(v) for v in leaves])[0]

    def run(self, **changed: Any) -> Any:
        """SciPy's result for plain numbers, with some arguments replaced."""
        args = [changed.pop(n, a) for n, a in zip(self.places, self.args, strict=True)]
        return self.on_numbers(self._whole(args, self.kwargs | changed))()

    def _whole(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The call as a partial, in which every traced value is a captured one."""
        options = {name: _parted(value) for name, value in kwargs.items()}
        return functools.partial(_called, self.original, *map(_parted, args), **options)

    def on_numbers(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function on plain numbers, run outside of all traces."""
        names, leaves, form = traced_captures(f)
        g = remade(f, names, form, [plain(v) for v in leaves])

        def run(*args: Any) -> Any:
            try:
                with outside():
                    return g(*args)
            except (DetachError, LeakedVariableError) as error:
                raise RuleError(
                    f"{self.name}: a function that was given to it uses a traced value which it "
                    "has not captured (a global, or an attribute of a class); pass that in args=, "
                    "or let the function be a closure over it"
                ) from error

        return run


def solver(
    *foreign: str, own: Sequence[str] = ()
) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    """Declare the stand-in for SciPy's functions of these names, used when an argument is traced.

    `own` names keywords that are not passed on to SciPy.

    @solver("scipy.optimize.brentq")
    def brentq(call): ...
    """

    def register(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
        for name in foreign:
            implements(name, always=True)(_stand_in(name, function, own))
        return function

    return register


def _stand_in(
    foreign: str, function: Callable[[Call], Any], own: Sequence[str]
) -> Callable[..., Any]:
    module, _, name = foreign.rpartition(".")

    def call(*args: Any, **kwargs: Any) -> Any:
        original = getattr(importlib.import_module(module), name)
        try:
            inspect.signature(original).bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # raises SciPy's error
        request = Call(original, args, kwargs, own)
        return function(request) if request.traced else request.run()

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call

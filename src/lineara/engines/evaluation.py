"""Evaluating a program: its arguments are checked, an engine is chosen, and the engine evaluates.

>>> from lineara.linear_a.parse import parse
>>> outcome = run(parse("def f(x: f64;) -> (f64;) = x * x"), "f", 3.0)
>>> float(outcome.results[0]), outcome.work
(9.0, 1)
"""

from collections.abc import Sequence
from typing import Any

from lineara.engines.adaptive import Adaptive
from lineara.engines.engine import Ask, Engine, Outcome
from lineara.engines.interpreter import Interpreter
from lineara.engines.native import Native
from lineara.engines.values import dims_given, fit_argument, may_end
from lineara.errors import ProgramError
from lineara.facts.types import show
from lineara.linear_a.check import counted
from lineara.linear_a.program import Program

_INTERPRETER = Interpreter()
ENGINES: tuple[Engine, ...] = (  # the first that can what is asked
    Native(),
    Native(exact=True, masks=True),
    Adaptive(Native(exact=True), _INTERPRETER),  # whose values stay the same when it goes over
    _INTERPRETER,
)

BY_NAME = {e.name: e for e in ENGINES}


def run(
    program: Program,
    name: str,
    *values: Any,
    engine: Engine | str | None = None,
    checked: bool = True,
    ask: Ask = Ask(),  # noqa: B008, a tuple
) -> Outcome:
    """Evaluate a definition on its non-linear and then its linear arguments.

    Arguments of other types than the formals are a ProgramError, unless `checked` is False, which
    lets complex numbers into a real program.  So is a definition that calls itself whatever its
    arguments are.  `engine` is one of `ENGINES`, by its name, or any other engine; without it those
    that compile are left out.

    >>> from lineara.linear_a.parse import parse
    >>> run(parse("def f(x: f64;) -> (f64;) = sin(x) * x"), "f", 0.0).results
    (np.float64(0.0),)
    """
    if name not in program.defs:
        raise ProgramError(
            f"there is no definition {name}; there is {', '.join(program.defs) or 'none'}"
        )
    d = program.defs[name]
    if len(values) != len(d.params):
        raise ProgramError(
            f"{name} takes {counted(len(d.params), 'argument')} "
            f"({', '.join(f'{p!r}: {show(p.type)}' for p in d.params)}), not {len(values)}"
        )
    given = list(values)
    dims = dims_given(program, name, given)
    if checked:
        pairs = zip(d.params, values, strict=True)
        given = [fit_argument(program, p, a, name, dims) for p, a in pairs]
    if not may_end(program, name):
        raise ProgramError(
            f"{name} calls itself whatever its arguments are, so it never ends; let a branch of a "
            "cond, switch or case end without the call"
        )
    return chosen(engine, program, name, ask).evaluate(program, name, given, ask)


def chosen(engine: Engine | str | None, program: Program, name: str, ask: Ask) -> Engine:
    """The engine that is named, or the first that can what is asked and takes the program."""
    if isinstance(engine, str):
        if engine not in BY_NAME:
            raise ProgramError(f"there is no engine {engine}; there is {', '.join(BY_NAME)}")
        engine = BY_NAME[engine]
    if engine is None:
        ready = [e for e in ENGINES if not e.compiles]
        return next(e for e in ready if e.refuses(program, name, ask) is None)
    why = engine.refuses(program, name, ask)
    if why is not None:
        able = chosen(None, program, name, ask)
        raise ProgramError(
            f"the engine {engine.name} cannot evaluate {name} as asked: {why}; leave engine= out, "
            f"which takes the first engine that can: {able.name}"
        )
    return engine


def direct(engine: str | None, program: Program, name: str, weak: Sequence[bool]) -> Any:
    """What an engine has run before, as a function of values of the types of the formals.

    See `Engine.direct`; None where there is none.

    >>> from lineara.linear_a.parse import parse
    >>> direct(None, parse("def f(x: f64;) -> (f64;) = sin(x)"), "f", [True]) is None
    True
    """
    return None if engine is None else BY_NAME[engine].direct(program, name, weak)

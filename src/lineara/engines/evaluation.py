"""Evaluating a program: its arguments are checked, an engine is chosen, and the engine evaluates.

>>> from lineara.linear_a.parse import parse
>>> outcome = run(parse("def f(x: f64;) -> (f64;) = x * x"), "f", 3.0)
>>> float(outcome.results[0]), outcome.work
(9.0, 1)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

from lineara.engines.engine import Ask, Engine, Outcome
from lineara.engines.interpreter import Interpreter
from lineara.engines.values import dims_given, fit_argument, may_end
from lineara.errors import ProgramError, user_line
from lineara.facts.types import show
from lineara.linear_a.check import counted
from lineara.linear_a.program import Program

INTERPRETER = Interpreter()


@cache
def engines() -> dict[str, Engine]:
    """The engines by their names; those that compile are loaded when one is first asked for."""
    native: Any = import_module("lineara.engines.native").Native
    adaptive: Any = import_module("lineara.engines.adaptive").Adaptive
    exact = native(exact=True, masks=True)
    several = (
        native(),
        exact,
        adaptive("adaptive", native(exact=True), native(), INTERPRETER),
        adaptive("adaptive exact", exact, exact, INTERPRETER),
        INTERPRETER,
    )
    return {e.name: e for e in several}


def engine_of(engine: Engine | str, **options: str) -> Engine:
    """The engine of a name, or the one that is given; what another library brings is loaded then.

    "jax" has the option `host`: "call", which calls NumPy and SciPy for what only these evaluate,
    or "error".  ProgramError where there is no engine of the name.

    >>> engine_of("interpreter").name
    'interpreter'
    """
    if not isinstance(engine, str):
        return engine
    if engine == "jax":
        return xla(**options)
    if engine not in engines():
        raise ProgramError(f"there is no engine {engine}; there is {', '.join(engines())}, jax")
    return engines()[engine]


def exact_engine(engine: Engine | str) -> Engine | str:
    """The engine that does what one does, with the interpreter's bits; ProgramError without one.

    >>> exact_engine("native"), exact_engine("interpreter")
    ('native exact', 'interpreter')
    """
    name = engine if isinstance(engine, str) else engine.name
    if name == INTERPRETER.name or name.endswith(" exact"):
        return engine
    if f"{name} exact" in engines():
        return f"{name} exact"
    having = [e.removesuffix(" exact") for e in engines() if e.endswith(" exact")]
    raise ProgramError(
        f"exact=True asks for the interpreter's bits, and the engine {name} does not promise them; "
        f"leave exact=True out, or engine=, or take {', '.join(having)} or {INTERPRETER.name}"
    )


engine_here: ContextVar[Engine | None] = ContextVar("engine_here", default=None)
"""The engine of the innermost `with engine(...)`, which runs in each thread and task by itself."""


@contextmanager
def engine(name: Engine | str, **options: str) -> Iterator[Engine]:
    """Within the block, functions of `jit` that name no engine are run by this one.

    name       an engine, or its name: "jax" runs programs by XLA; see `lineara.jit`
    options    of "jax": `host="error"` refuses what NumPy or SciPy alone evaluates

    Gives the engine.  Such a function is captured for it when it is first called there, and runs as
    before outside of the block.  Calls in threads that the block starts are not within it.
    ProgramError where there is no engine of the name.

    >>> import lineara
    >>> square = lineara.jit(lambda x: x * x)
    >>> with lineara.engine("interpreter"):
    ...     square(3.0)
    9.0
    """
    made = engine_of(name, **options)
    token = engine_here.set(made)
    try:
        yield made
    finally:
        engine_here.reset(token)


@cache
def xla(host: str = "call") -> Engine:
    """The engine that JAX brings."""
    try:
        made: Any = import_module("lineara.engines.xla").Xla
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "jaxlib"):
            raise
        raise ProgramError(
            "the engine jax runs programs by JAX, which is not installed: "
            "pip install 'lineara[jax]' brings it"
        ) from None
    return made(host)


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
    arguments are.  `engine` is one of `ENGINES`, by its name, or any other engine; without it the
    interpreter is, which can all that is asked.

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
    """The engine that is named, if it can what is asked and takes the program."""
    if engine is None:
        return INTERPRETER
    engine = engine_of(engine)
    why = engine.refuses(program, name, ask)
    if why is not None:
        raise ProgramError(
            f"the engine {engine.name} cannot evaluate {name} as asked: {why}; leave engine= out, "
            f"which takes the first engine that can: {INTERPRETER.name}",
            user_line(),
        )
    return engine


def takes(engine: Engine | str, program: Program, name: str) -> bool:
    """Whether an engine can evaluate a definition for its values alone.

    >>> from lineara.linear_a.parse import parse
    >>> takes("interpreter", parse("def f(x: f64;) -> (f64;) = sin(x)"), "f")
    True
    """
    return engine_of(engine).refuses(program, name, Ask()) is None


def is_exact(engine: Engine | str, program: Program, name: str) -> bool:
    """Whether the machine code that an engine makes has the interpreter's bits, sums too.

    >>> from lineara.linear_a.parse import parse
    >>> is_exact("native", parse("def f(x: f64;) -> (f64;) = sin(x)"), "f")
    False
    """
    native = engine_of(engine).native(program, name)
    return native is not None and native.exact


def direct(engine: Engine | str | None, program: Program, name: str, weak: Sequence[bool]) -> Any:
    """What an engine has run before, as a function of values of the types of the formals.

    See `Engine.direct`; None where there is none.

    >>> from lineara.linear_a.parse import parse
    >>> direct(None, parse("def f(x: f64;) -> (f64;) = sin(x)"), "f", [True]) is None
    True
    """
    return None if engine is None else engine_of(engine).direct(program, name, weak)

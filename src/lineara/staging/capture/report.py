"""`explain`: what capture has made of a function, and why.

    print(lineara.explain(f, *args))

The function is captured once more, and what that leaves behind is put in words: nothing is kept
for it otherwise.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from lineara.engines import engine_of, machine_code_facts
from lineara.errors import LinearaError, describe_line
from lineara.python.structured_code import why_unread
from lineara.python.user_code import Reading
from lineara.staging.capture import STRUCTURED, forms
from lineara.staging.capture.containers import Name, Snapshot
from lineara.staging.capture.jit import Call, Captured, Jitted, jit
from lineara.staging.tracing import names_of_leaves


@dataclass(frozen=True)
class Entry:
    """One thing that capture has met: the user's line or a name, and what became of it."""

    where: str
    what: str


@dataclass(frozen=True)
class Report:
    """What capture has made of a function.

    name         of the function
    refused      why it cannot be captured; None where it can
    statements   branches and loops: as forms of the program, or written out, and why
    functions    that were called: read from their source, or traced as they run, and why
    constants    arguments of which the value is part of the program, and where it was needed
    guarded      what the function reaches and is looked at in each call
    inputs       large arrays that are kept beside the program
    programs     of a jitted function, for which arguments there are programs
    history      of a jitted function, why it was captured each time
    machine_code what the program is as machine code: what a tape holds, what was called back, how
                 often and for how long; or why it is interpreted
    """

    name: str
    refused: str | None
    statements: tuple[Entry, ...]
    functions: tuple[Entry, ...]
    constants: tuple[Entry, ...]
    guarded: tuple[str, ...]
    inputs: tuple[str, ...]
    programs: tuple[str, ...]
    history: tuple[str, ...]
    machine_code: tuple[str, ...]

    def __str__(self) -> str:
        heads = {
            "branches and loops": [f"{e.where}\n      {e.what}" for e in self.statements],
            "functions": [f"{e.where}: {e.what}" for e in self.functions],
            "constants": [f"{e.where}: {e.what}" for e in self.constants],
            "looked at in each call": [", ".join(self.guarded)] * bool(self.guarded),
            "arrays kept beside": [*self.inputs],
            "programs": [*self.programs],
            "captured because": [*self.history],
            "machine code": [*self.machine_code],
        }
        title = f"{self.name}: captured" if self.refused is None else f"{self.name}: refused"
        lines = [title] + [f"  {line}" for line in (self.refused or "").splitlines()]
        for head, entries in heads.items():
            if entries:
                lines += [f"  {head}", *[f"    {e}" for e in entries]]
        return "\n".join(lines)

    __repr__ = __str__


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """What capture makes of f for these arguments, and why; of a jitted f, what it has made.

    >>> import lineara
    >>> def total(x, n):
    ...     s = 0.0
    ...     for k in range(n):
    ...         s = s + x**k
    ...     return s
    >>> report = lineara.explain(total, 2.0, 50)
    >>> report.refused, report.statements[0].what
    (None, 'a loop of the program')
    """
    jitted: Any = f if isinstance(f, Jitted) else jit(f)
    call, now = Call.of(args, kwargs), Reading(STRUCTURED, True, jitted.f)
    now.lines = True
    captured: Captured | None = None
    refused: str | None = None
    try:
        first = jitted.captured(call)  # which numbers are constants, and which arrays inputs
        inputs = {id(a): a for a in first.staged.inputs}
        now = Reading(STRUCTURED, True, jitted.f, inputs=inputs)
        now.lines = True
        captured = jitted.captured(call, now)
    except LinearaError as e:
        refused = str(e)
    own = getattr(jitted.f, "__func__", jitted.f)
    if isinstance(own, FunctionType):
        now.called.add(own.__code__)
    names = names_of_leaves(jitted.f, args, kwargs)
    constants = jitted.constants.get(call.structure, {})
    reached = captured.reached if captured else Snapshot(jitted.f)
    beside = captured.staged.beside if captured else []
    return Report(
        jitted.name,
        refused,
        tuple([_statement(code, what, now) for code, what in _in_order(now.statements)]),
        tuple(dict.fromkeys([_function(c) for c, _ in _in_order(dict.fromkeys(now.called))])),
        tuple(
            [Entry(names[i], f"its value is needed at {e}") for i, e in sorted(constants.items())]
        ),
        tuple(dict.fromkeys([*map(_shown, reached.places.values()), *_things(reached)])),
        tuple([f"{a.dtype}{[*a.shape]}" for a in beside]),
        tuple([_signature(p) for p in jitted.programs.values()]),
        tuple(jitted.history),
        tuple(_machine_code(jitted, call, captured)),
    )


def _machine_code(jitted: Jitted, call: Call, captured: Captured | None) -> list[str]:
    """What the program is as machine code, and what runs of a jitted function have called back."""
    if jitted.engine == "interpreter":
        return ["interpreted: engine='interpreter' was asked for"]
    if engine_of(jitted.engine).name == "jax":
        return ["compiled by XLA, through JAX"]
    running = jitted.programs.get(jitted._key(call), captured)
    if running is None:
        return []
    program, name = running.staged.program, running.staged.name
    lined = captured.staged.program if captured else None
    engine = engine_of(jitted.engine)
    native, waits = engine.native(program, name), not engine.name.startswith("native")
    return machine_code_facts(program, name, native, lined, waits)


def _in_order(by_code: dict[CodeType, Any]) -> list[tuple[CodeType, Any]]:
    return sorted(by_code.items(), key=lambda e: (e[0].co_filename, e[0].co_firstlineno))


def _statement(code: CodeType, what: Any, now: Reading) -> Entry:
    where = describe_line(code.co_filename, code.co_firstlineno, code.co_name)
    if what is forms.BRANCH:
        return Entry(where, "a branch of the program")
    if what is forms.FORM:
        return Entry(where, "a loop of the program")
    refusals = now.refusals.get(code)
    if refusals:
        return Entry(where, f"written out: {_reason(refusals[-1])}")
    if isinstance(what, type):
        return Entry(where, f"written out: Python goes through a {what.__name__}")
    if isinstance(what, int):
        return Entry(where, f"written out: it has {what} rounds")
    return Entry(where, "run by Python: its condition is known")


def _function(code: CodeType) -> Entry:
    where = describe_line(code.co_filename, code.co_firstlineno, code.co_name).partition(": ")[0]
    why = why_unread(code)
    return Entry(where, f"traced as it runs, since {why}" if why else "read from its source")


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, LinearaError) else repr(error)


def _shown(name: Name) -> str:
    return name.name


def _things(reached: Snapshot) -> list[str]:
    """The classes of other objects that the function depends on."""
    kinds = Counter([type(x).__name__ for x, _ in reached.kept.values()])
    return [f"{n} object{'s' * (n > 1)} of class {kind}" for kind, n in kinds.items()]


def _signature(captured: Captured) -> str:
    s = captured.staged
    pairs = zip(s.signature.types, s.signature.constants, strict=True)
    return f"{s.name}({', '.join([repr(c) if t is None else str(t) for t, c in pairs])})"


__all__ = ["Entry", "Report", "explain"]

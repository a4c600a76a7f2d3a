"""A Python function straight to its diagram: from its source if it is a function of numbers."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lineara.bridges.calculus_and_diagrams import diagram_of as diagram_of_term
from lineara.bridges.linear_maps_and_diagrams import diagram_at
from lineara.bridges.linear_maps_and_diagrams import diagram_of as diagram_of_map
from lineara.calculus.from_python import of
from lineara.calculus.terms import Term
from lineara.diagrams.from_programs import diagram_of as diagram_of_program
from lineara.diagrams.net import Net
from lineara.errors import CalculusError, DiagramError
from lineara.linear_a.check import counted
from lineara.linear_map import LinearMap
from lineara.staging.capture import trace_with_lines


def diagram(
    f: Callable[..., Any] | Term | LinearMap[Any, Any],
    *args: Any,
    by: str = "",
    unfold: bool = True,
) -> Net:
    """The string diagram of a function, of a term of the calculus, or of a linear map's graph.

    A function of numbers and of functions is read from its source, so its closures are boxes and
    its branches choices; any other is traced at `args`, and its calls, branches and loops are
    labelled frames.  `by="source"` and `by="trace"` insist on one of them; without `unfold` the
    body of each function that is called is drawn once.

    Of a `LinearMap`, the linear graph: its edges, and what each sends back in a sweep of the
    cotangent `args[0]`, or of ones.  `by="linear"` draws that of the derivative of f at `args`,
    with the user's lines; `diagrams.page` plays the sweep.

    Raises DiagramError for another `by`, for arguments that f does not take, for what has no
    diagram, and for a linear graph that is too large to be read.

    >>> import lineara
    >>> print(lineara.diagrams.show(lineara.diagram(lambda x: x * x, 3.0, by="trace")))
    (x1: R) =>
      v1, v2 = copy(x1)
      v3 = multiply(v1, v2)
      -> v3
    """
    if isinstance(f, Term):
        if args:
            raise DiagramError("diagram: a term is drawn as it is, and takes no arguments")
        return diagram_of_term(f)
    if isinstance(f, LinearMap):
        return diagram_of_map(f, *args)
    unfit = misfit(f, args) if args or by == "linear" else ""
    if unfit:
        raise DiagramError(f"diagram: {unfit}")
    if by not in ("", "source", "trace", "linear"):
        raise DiagramError(f"a diagram is made by source, by trace or by linear, not by {by!r}")
    if by == "linear":
        return diagram_at(f, *args)
    plain = all([type(a) in (int, float) or callable(a) for a in args])
    if by == "source" or (plain and not by):
        try:
            return diagram_of_term(of(f))
        except (CalculusError, DiagramError):
            if by or not args:
                raise
    staged = trace_with_lines(f, *args)
    return diagram_of_program(staged.program, staged.name, unfold).net


def misfit(f: Callable[..., Any], args: Sequence[Any]) -> str:
    """In words why a function does not take arguments; empty where it takes them.

    >>> misfit(lambda x, y: x, [1.0])
    "<lambda>(x, y) does not take 1 argument: missing a required argument: 'y'"
    """
    try:
        signature = inspect.signature(f)
    except ValueError:  # of a function in C that does not tell
        return ""
    try:
        signature.bind(*args)
    except TypeError as error:
        called = f"{getattr(f, '__name__', type(f).__name__)}{signature}"
        return f"{called} does not take {counted(len(args), 'argument')}: {error}"
    return ""

"""A Python function straight to its diagram: from its source if it is a function of numbers."""

from collections.abc import Callable
from typing import Any

from lineara.bridges.calculus_and_diagrams import diagram_of as diagram_of_term
from lineara.calculus.from_python import of
from lineara.calculus.terms import Term
from lineara.diagrams.from_programs import diagram_of as diagram_of_program
from lineara.diagrams.net import Net
from lineara.errors import CalculusError, DiagramError
from lineara.staging.capture import trace


def diagram(f: Callable[..., Any] | Term, *args: Any, by: str = "", unfold: bool = True) -> Net:
    """The string diagram of a function, or of a term of the calculus.

    A function of numbers and of functions is read from its source, so its closures are boxes and
    its branches choices; any other is traced at `args`, and its calls, branches and loops are
    labelled frames.  `by="source"` and `by="trace"` insist on one of them; without `unfold` the
    body of each function that is called is drawn once.

    Raises DiagramError for another `by` and for what has no diagram.

    >>> import lineara
    >>> print(lineara.diagrams.show(lineara.diagram(lambda x: x * x, 3.0, by="trace")))
    (x1: R) =>
      v1, v2 = copy(x1)
      v3 = multiply(v1, v2)
      -> v3
    """
    if isinstance(f, Term):
        return diagram_of_term(f)
    if by not in ("", "source", "trace"):
        raise DiagramError(f"a diagram is made by source or by trace, not by {by!r}")
    plain = all([type(a) in (int, float) or callable(a) for a in args])
    if by == "source" or (plain and not by):
        try:
            return diagram_of_term(of(f))
        except (CalculusError, DiagramError):
            if by or not args:
                raise
    staged = trace(f, *args)
    return diagram_of_program(staged.program, staged.name, unfold).net

"""Functions at the border of a diagram: their cotangents are probes  [Diagrams].

A bundle says nothing to who did not make it.  So a function that comes in is wrapped: wherever it
is applied it leaves a probe, the argument and the cotangent of what it gave; the cotangent of the
function is all of them.  For a function that goes out the caller says where to probe it.

>>> from lineara.diagrams.parse import parse
>>> F = parse("(f: (R -> R)) => f1, f2 = copy(f) a = const[2.0]() b = const[3.0]()"
...           " u = eval(f1, a) v = eval(f2, b) z = multiply(u, v) -> z")
>>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
>>> cotangents(F, [square], [1.0])
(Probes(((2.0,), (9.0,)), ((3.0,), (4.0,))),)
"""

from collections.abc import Callable, Sequence
from typing import Any

from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.evaluate import (
    NOTHING,
    Evaluator,
    Nothing,
    Probes,
    check_arguments,
    plus,
)
from lineara.diagrams.net import Net
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import Arrow, Type, moves, show
from lineara.errors import DiagramError
from lineara.facts.hints import Value


@refusing
def cotangents(net: Net, args: Sequence[Any], bars: Sequence[Any]) -> tuple[Any, ...]:
    """The cotangents of the inputs of a diagram, from those of its outputs.

    A function that comes in is a diagram, or a pair of a function and its vjp, `vjp(xs, ss)`, each
    giving a tuple; its cotangent is `Probes`.  For a function that goes out `bars` has `Probes`.
    What does not move has no cotangent on either side.

    Raises DiagramError where there are not as many arguments as inputs, or not as many cotangents
    as outputs that have one.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> cotangents(square, [3.0], [1.0])
    (6.0,)
    """
    machine = Evaluator()
    check_arguments(net, args)
    pairs = zip(net.takes, args, strict=True)
    given = [_watched(t, a, machine) if isinstance(t, Arrow) else a for t, a in pairs]
    *values, back = machine.run(adjoint(net), given)
    moving = [(t, v) for t, v in zip(net.gives, values, strict=True) if moves(t)]
    if len(moving) != len(bars):
        raise DiagramError(
            f"{len(moving)} outputs of the diagram move, but {len(bars)} cotangents are given"
        )
    sent = [
        _bundle(v, s, machine) if isinstance(t, Arrow) else s
        for (t, v), s in zip(moving, bars, strict=True)
    ]
    cotangents_back = machine.apply(back, *sent)
    types = [t for t in net.takes if moves(t)]
    return tuple(
        [
            Probes() if isinstance(t, Arrow) and isinstance(x, Nothing) else x
            for t, x in zip(types, cotangents_back, strict=True)
        ]
    )


def _watched(t: Arrow, f: Callable[..., Any], machine: Evaluator) -> Callable[..., tuple[Any, ...]]:
    """A function with its back-propagator, which leaves a probe at each application."""
    for s in (*t.source, *t.target):
        _ground(s)
    if isinstance(f, Net):
        if (f.takes, f.gives) != (t.source, t.target):
            raise DiagramError(f"the diagram of a function {show(t)} is given for another type")
        transformed = adjoint(f)

        def both(xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Callable[..., tuple[Any, ...]]]:
            *ys, back = machine.run(transformed, xs)
            return tuple(ys), lambda ss: machine.apply(back, *ss)

    elif isinstance(f, tuple) and len(f) == 2:
        value, vjp = f

        def both(xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Callable[..., tuple[Any, ...]]]:
            return value(*xs), lambda ss: vjp(xs, ss)

    else:
        raise DiagramError(
            f"{show(t)} is asked for: give a diagram, or a function and its vjp, not {f!r}"
        )

    def watched(*xs: Any) -> tuple[Any, ...]:
        ys, back = both(xs)
        return (*ys, lambda *ss: (Probes((xs, ss)), *back(ss)))

    return watched


def _bundle(h: Value, probes: object, machine: Evaluator) -> Any:
    """The cotangents of captured values, from the probes of a function that is a result."""
    if not isinstance(probes, Probes):
        raise DiagramError(
            "the cotangent of a function is Probes(((x,), (s,)), ...), arguments and the "
            f"cotangents of what it gives there, not {probes!r}"
        )
    total = NOTHING
    for xs, ss in probes.items:
        *_, back = machine.apply(h, *xs)
        total = plus(total, machine.apply(back, *ss)[0])
    return total


def _ground(t: Type) -> None:
    if isinstance(t, Arrow):
        raise DiagramError(
            f"a function at the border takes and gives numbers, not {show(t)}; a function of "
            "functions can be applied within the diagram"
        )

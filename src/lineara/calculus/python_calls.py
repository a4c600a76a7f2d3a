r"""A function of Python as one of the calculus: it is called, and its source is not read.

    R -> R -> R    f(x, y)            R * R -> R * R    f((x, y)), which gives a tuple

Each number of its result is a function symbol, whose partials are functions of Python again: there
is no last order.  A function that takes something other than numbers is read from its source.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lineara.calculus import terms as tm
from lineara.calculus.from_python import of
from lineara.calculus.symbols import Foreign
from lineara.calculus.types import Arrow, Product, R, Type, is_ground, power, show
from lineara.errors import CalculusError
from lineara.facts.box import Box
from lineara.python.user_code import seen


def foreign(f: Callable[..., Any], t: Arrow) -> tm.Term:
    r"""The term of a Python function as one of the type.

    >>> import math
    >>> from lineara.calculus.show import show as text
    >>> text(foreign(math.hypot, Arrow(R, Arrow(R, R))))
    '\\x0:R. \\x1:R. hypot(x0, x1)'
    """
    sources, target = [], t
    while isinstance(target, Arrow):
        sources.append(target.source)
        target = target.target
    if not all([is_ground(s) for s in (*sources, target)]):
        return _read(f, t)
    called_here = seen(f)
    name = getattr(f, "__name__", "")
    name = name if name.isidentifier() else "python"
    formals = [(f"x{i}", s) for i, s in enumerate(sources)]
    numbers = [n for x in formals for n in _numbers(tm.var(x), x[1])]

    def component(i: int) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            left = iter(args)
            y = called_here(*[_grouped(left, s) for s in sources])
            return _components(y, target, name)[i]

        return called

    width = len(_numbers(tm.var(("y", target)), target))
    names = [name] if width == 1 else [f"{name}_{i}" for i in range(width)]
    takes = power(len(numbers))
    parts = [Foreign(x, takes, R, python=component(i)) for i, x in enumerate(names)]
    body = _built(iter([tm.Fun((_together(numbers),), s) for s in parts]), target)
    for x in reversed(formals):
        body = tm.lam(x, body)
    return body


def _read(f: Callable[..., Any], t: Arrow) -> tm.Term:
    term = of(f)
    if term.type != t:
        raise CalculusError(f"{show(t)} is asked for, and {f!r} is {show(term.type)}")
    return term


def _numbers(x: tm.Term, t: Type) -> list[tm.Term]:
    """The numbers of a vector."""
    if not isinstance(t, Product):
        return [x]
    return _numbers(tm.Fst((x,)), t.left) + _numbers(tm.Snd((x,)), t.right)


def _together(numbers: list[tm.Term]) -> tm.Term:
    """Numbers as the argument of a symbol."""
    first, *rest = numbers
    return tm.Pair((first, _together(rest))) if rest else first


def _built(numbers: Iterator[tm.Term], t: Type) -> tm.Term:
    """Numbers as a vector."""
    if not isinstance(t, Product):
        return next(numbers)
    left = _built(numbers, t.left)
    return tm.Pair((left, _built(numbers, t.right)))


def _grouped(numbers: Iterator[Any], t: Type) -> Any:
    """Numbers as Python's form of a vector."""
    if not isinstance(t, Product):
        return next(numbers)
    left, right = _grouped(numbers, t.left), _grouped(numbers, t.right)
    return (left, *right) if isinstance(t.right, Product) else (left, right)


def _components(y: Any, t: Type, name: str) -> list[Any]:
    """The numbers of what Python gave."""
    if isinstance(t, Product) and isinstance(y, tuple | list) and len(y) > 1:
        rest = y[1] if len(y) == 2 else tuple(y[1:])
        return _components(y[0], t.left, name) + _components(rest, t.right, name)
    if isinstance(t, Product) or not (isinstance(y, Box) or np.isscalar(y) or np.ndim(y) == 0):
        raise CalculusError(f"{name} gives {y!r}, and {show(t)} is asked for")
    return [float(y) if isinstance(y, int | np.number) else y]

"""Whether primitives tell the truth about the array namespace that they are evaluated in."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from test_primitives import LINES, Line, mask

from lineara.facts.primitive import HigherOrder, Primitive, registry

# What the array API standard takes of functions that take more in NumPy: flags, no numbers.
FLAGS = {
    "logical_and": (mask, ~mask),
    "logical_or": (mask, ~mask),
    "logical_xor": (mask, ~mask),
    "logical_not": (mask,),
}


def evaluated(host: bool) -> list[str]:
    """The primitives that NumPy and SciPy alone evaluate, or those that every namespace does."""
    held = registry.primitives.items()
    return [name for name, p in held if p.host == host and not isinstance(p, HigherOrder)]


def lines(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments and parameters that the standard has a word for."""
    if name in FLAGS:
        yield FLAGS[name], {}
        return
    for line in (Line(*line) for line in LINES if line[0] == name):
        kinds = {a.dtype.kind for a in line.args if isinstance(a, np.ndarray)}
        if name != "power" or len(kinds) == 1:  # of integers and floating numbers, it promotes none
            yield line.args, line.params


def value(xp: Any, name: str, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The value of a primitive on arrays of another namespace."""

    def entered(a: Any) -> Any:
        if isinstance(a, tuple | list):
            return type(a)(map(entered, a))
        return xp.asarray(a.copy()) if isinstance(a, np.ndarray) else a

    p: Primitive = registry.primitives[name]
    return p.evaluate(xp, *map(entered, args), **params)


def wrong(xp: Any, kind: type, name: str) -> str | None:
    """What is wrong with a primitive in a namespace, whose arrays are of that class; else None."""
    p, count = registry.primitives[name], 0
    for args, params in lines(name):
        wanted = p.evaluate(np, *args, **params)
        try:
            there = value(xp, name, args, params)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        pairs = zip(wanted, there, strict=True) if isinstance(wanted, tuple) else [(wanted, there)]
        for a, b in pairs:
            if not isinstance(b, kind | bool | int):
                return f"the value is {type(b).__name__}, of no array of the namespace"
            b = np.asarray(b)
            if a.shape != b.shape or not np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True):
                return f"the value is {b}, and NumPy's is {a}"
        count += 1
    return None if count else "there is no line for it that the standard has a word for"

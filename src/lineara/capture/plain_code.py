"""The overlay of differentiation: NumPy, SciPy, math and some builtins, seen through ours."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from lineara.capture.overlay import Overlay
from lineara.eager.node import Traced
from lineara.eager.stand_ins import class_of, is_instance, replacements
from lineara.eager.trace import collector
from lineara.ops.mapping import Vectorized
from lineara.primitive import registry


@cache
def overlay() -> Overlay:
    """The one overlay of the process; it holds copies of functions and no state of a trace."""

    def copy(f: Callable[..., Any]) -> Callable[..., Any]:
        return made.followed(f)

    table = replacements(copy)

    def arrive() -> bool:
        """What has been imported since has its stand-ins."""
        news = registry.arrive()
        if news:
            table.update(replacements(copy, known=table))
        return news

    packages = ["numpy", "math", "cmath", "statistics", "scipy", "pandas"]
    made = Overlay(table, packages, is_instance, class_of, registry.objects, arrive, _is_traced)
    collector.ended.append(made.kept.tidy)
    return made


def _is_traced(value: Any) -> bool:
    return issubclass(type(value), Traced)


def _vectorized(v: np.vectorize) -> Any:
    """One that was made outside of the user's function: its own function sees our NumPy."""
    f = overlay().replace(v.pyfunc)
    return Vectorized(f, v.otypes, v.__doc__, v.excluded, v.cache, v.signature)


registry.objects[np.vectorize] = _vectorized


def seen(f: Callable[..., Any]) -> Callable[..., Any]:
    """The user's function, seeing our NumPy."""
    return overlay()(f)


def method(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a user's class whose instance is an argument, seeing our NumPy."""
    return overlay().replace(f)

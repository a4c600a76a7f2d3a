"""NumPy's namespace for plain and for traced arrays, as the Python array API standard asks for it.

Every name of NumPy is here: a function that has a rule is ours if an argument is traced, and
NumPy's own otherwise.  `x.__array_namespace__()` of a traced x is this module, so a library that
is written for the standard differentiates without knowing of Lineara.

>>> import lineara, lineara.numpy as xp
>>> def norm(x):
...     xp = x.__array_namespace__()
...     return xp.sqrt(xp.sum(xp.square(x)))
>>> norm(xp.asarray([3.0, 4.0]))
np.float64(5.0)
>>> lineara.grad(norm)(xp.asarray([3.0, 4.0]))
array([0.6, 0.8])
"""

import sys
from types import ModuleType
from typing import Any

import numpy as np

from lineara.facts.primitive import implements
from lineara.python.user_code import overlay
from lineara.tape.node import Traced


def __getattr__(name: str) -> Any:
    """What the differentiated function sees under a name of NumPy's."""
    if name.startswith("__") and not name.startswith("__array_"):
        raise AttributeError(f"module 'lineara.numpy' has no attribute {name!r}")
    return getattr(overlay().replace(np), name)


def __dir__() -> list[str]:
    """The names of NumPy."""
    return dir(np)


def _array_namespace(self: Traced, api_version: Any = None) -> ModuleType:
    """The namespace of the standard; ValueError for a version that NumPy does not know."""
    np.empty(0).__array_namespace__(api_version=api_version)
    return sys.modules[__name__]


Traced.__array_namespace__ = _array_namespace  # type: ignore[attr-defined]  # the protocol


@implements("scipy._lib._array_api.array_namespace", always=True)
def array_namespace(*arrays: Any, **_: Any) -> ModuleType:
    """What SciPy asks of its arguments, where its source is followed."""
    return sys.modules[__name__]

"""What NumPy refuses, said as ours: the operation, the types it was given, and NumPy's reason."""

import ast
import dis
import itertools
import linecache
import sys
from types import FrameType
from typing import Any

import numpy as np

from lineara.errors import (
    BoundsError,
    DetachError,
    LinearaError,
    NoRuleError,
    ShapeError,
    is_library_file,
    is_own_file,
)
from lineara.facts.hints import Shaped, Tree
from lineara.facts.primitive import Elementwise, registry
from lineara.facts.types import show_type, type_of
from lineara.tape.library_errors import mend
from lineara.text.python_source import tree_of

_NOT_OURS = ("read-only", "domain error")  # a locked array, and what math says of log(-1)


def refused(name: str, args: Any, params: dict[str, Any], error: Exception) -> Any:
    """NumPy's error about shapes, axes or indices as a ShapeError; any other error as it is.

    >>> refused("inv", [np.ones((3, 4))], {}, ValueError("it must be square")).message
    'inv: f64[3,4] is refused: it must be square'
    """
    text = str(error)
    if isinstance(error, LinearaError) or any(mark in text for mark in _NOT_OURS):
        return error
    if isinstance(error, np.linalg.LinAlgError) and "square" not in text:
        return error
    types = [repr(type_of(a)) for a in args if _has_type(a)]
    if not types:
        return error
    primitive = registry.primitives.get(name)
    if "broadcast" in text and (name == "where" or isinstance(primitive, Elementwise)):
        return ShapeError(
            f"{name}: cannot broadcast {' with '.join(types)}; "
            "trailing dimensions must be equal or 1"
        )
    given = [f"{key}={_show(value)}" for key, value in params.items()]
    with_params = f" with {', '.join(given)}" if given else ""
    verb = "is" if len(types) == 1 else "are"
    said = f"{name}: {' and '.join(types)}{with_params} {verb} refused: {text}"
    return BoundsError.beside(error, said)


def about_to_become_plain(value: Shaped, as_number: bool = False) -> DetachError:
    """The error for a traced value that other code wants as an array, or a number, of its own."""
    asker, writes = sys._getframe(1), False
    while asker.f_back is not None and is_own_file(asker.f_code.co_filename):
        writes = writes or _is_writing(asker)
        asker = asker.f_back
    if not as_number and (writes or _is_writing(asker)):
        return DetachError(
            f"a traced {type_of(value)} was about to become plain numbers in a write to an array "
            "that was made outside of the function; make the array that is written with np.zeros, "
            "np.array(a) or np.copy(a) in the function, and return it"
        )
    module, code = str(asker.f_globals.get("__name__")), asker.f_code
    works = DRAWS.get(_called_method(asker)) or mend(module)
    if works == mend("") and is_library_file(code.co_filename):
        works = f"give the call of {module}.{code.co_qualname} a derivative with lineara.external"
    return DetachError(
        f"a traced {type_of(value)} was about to become a plain array, which would lose its "
        f"derivative; {works}, or lineara.stop_gradient to mean it"
    )


def _is_writing(frame: FrameType) -> bool:
    """Whether the code is at `a[i] = x`."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_SUBSCR"


def asks_by_name(frame: FrameType) -> bool:
    """Whether the user's code calls `x.__array__()` by name, and can be given the traced array."""
    named = "__array__" in frame.f_code.co_names and type(frame.f_globals) is not dict
    return named and _called_method(frame) == "__array__"


def refuse_shuffled(frame: FrameType) -> None:
    """Refuse a random generator's `shuffle` that writes a view of a row over another row.

    NumPy's own arrays it exchanges by a copy; of others the second row would be the first again.
    """
    f = frame.f_locals.get("f") if is_own_file(frame.f_code.co_filename) else None
    named = "shuffle" in frame.f_code.co_names and _called_method(frame) == "shuffle"
    if named or getattr(f, "__name__", "") == "shuffle":
        raise NoRuleError(
            f"shuffle of an array that is made in a differentiated function: {_CHOSEN}"
        )


def _called_method(frame: FrameType) -> str:
    """The name of the method that is being called there, as the source has it; "" for none."""
    place = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    first, last, start, end = place or (None,) * 4
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [linecache.getline(frame.f_code.co_filename, n) for n in range(first, last + 1)]
    lines[-1] = lines[-1].encode()[:end].decode(errors="ignore")
    lines[0] = lines[0].encode()[start:].decode(errors="ignore")
    try:
        (asked,) = tree_of("".join(lines).strip()).body
    except (SyntaxError, ValueError):
        return ""
    call = getattr(asked, "value", None)
    called = call.func if isinstance(call, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else ""


_SHIFTED = (
    "a random generator takes plain parameters: shift and scale what it draws, "
    "loc + scale * rng.normal(size=n), or draw with lineara.random"
)
_CHOSEN = "a random generator takes plain arrays: draw positions, x[rng.permutation(len(x))]"
_DRAWN = """
binomial dirichlet exponential laplace lognormal multinomial multivariate_normal normal poisson
rayleigh standard_gamma uniform
"""
DRAWS = dict.fromkeys(["choice", "permutation", "permuted", "shuffle"], _CHOSEN)
DRAWS |= dict.fromkeys(_DRAWN.split(), _SHIFTED)


def _has_type(value: Tree) -> bool:
    shaped = hasattr(value, "dtype") and hasattr(value, "shape")
    return shaped or isinstance(value, float | complex)


def _show(value: Shaped) -> str:
    return show_type(value) if hasattr(value, "dtype") else repr(value)


def foreign_name(func: Any) -> str:
    """The name under which a user knows a function of NumPy or SciPy.

    >>> foreign_name(np.roots), foreign_name(np.gcd)
    ('numpy.roots', 'numpy.gcd')
    """
    name = func.__name__
    if not isinstance(func, np.ufunc):
        module, _, _ = (getattr(func, "__module__", None) or "numpy").partition("._")
        return f"{module}.{name}"
    for module in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(module), name, None) is func:
            return f"{module}.{name}"
    return name

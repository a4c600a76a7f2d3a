"""The text that tells a definition, with all that it applies, from any other.

What is made later tells itself how it is derived and of what, so it is not made for that.  A
parameter that is no plain data (what prints or warns, or raises an exception of the user's) is not
told whole by its text; a definition with one has no such text.
"""

import hashlib
from types import EllipsisType
from typing import Any

import numpy as np

from lineara.facts.primitive import Primitive
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_program
from lineara.linear_a.unmade import Later

OURS = __name__.partition(".")[0] + "."
_PLAIN = (int, float, complex, str, type(None), EllipsisType, np.generic, np.dtype, ir.Var)


def identity(program: Program, name: str) -> str:
    """A digest of the text of a definition and of what it applies; "" where no text is enough.

    >>> from lineara.linear_a.parse import parse
    >>> texts = ["def f(x: f64;) -> (f64;) = x * x", "def f(x: f64;) -> (f64;) = x + x"]
    >>> one, same, other = [identity(parse(texts[i]), "f") for i in (0, 0, 1)]
    >>> one == same, one == other
    (True, False)
    """
    known = program.noted["identity"]
    if name not in known:
        known[name] = _digest(program.outline, name)
    return known[name]


def _digest(program: Program, name: str) -> str:
    defs: dict[str, ir.Def] = {}
    later: dict[str, str] = {}
    open_ = [name]
    while open_:
        f = open_.pop()
        if f in defs or f in later:
            continue
        d = program.defs[f]
        if isinstance(d, Later):
            later[f] = d.told()
            if not later[f]:
                return ""
            continue
        if not all(map(_is_told, ir.leaves(d.body))):
            return ""
        defs[f] = d
        open_ += ir.functions(d.body)
    text = repr((name, show_program(program.types, defs), sorted(later.items())))
    return hashlib.sha256(text.encode()).hexdigest()


def _is_told(e: ir.Leaf) -> bool:
    """Whether the text of a leaf says all of it."""
    if isinstance(e, ir.Prim):
        given = [v for k, v in e.params.items() if k != "line"]
        return _is_ours(e.primitive) and all(map(_is_plain, given))
    return not isinstance(e, ir.Part) or _is_plain(e.at)


def _is_ours(p: Primitive) -> bool:
    """Whether a primitive is one of this library, so that its name says what its derivative is."""
    stated = getattr(p, "stated", ())
    return all([f.__module__.startswith(OURS) for f in (type(p), *stated)])


def _is_plain(v: Any) -> bool:
    """Whether a parameter is one whose text says all of it."""
    if isinstance(v, slice):
        return _is_plain((v.start, v.stop, v.step))
    if isinstance(v, tuple | list) and not isinstance(v, ArrayType):
        return all(map(_is_plain, v))
    return isinstance(v, _PLAIN) or (isinstance(v, np.ndarray) and not v.dtype.hasobject)


__all__ = ["identity"]

"""docs/functions.md, made from the registry: run this file to write it again.

A module is a row of MODULES.  Where it is complete, a function without a status fails the test.
"""

import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lineara
from lineara.eager.stand_ins import replacements
from lineara.primitive import Constant, registry

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"


class Listed(NamedTuple):
    """A module of the page; `plain` are the functions that take no traced values."""

    name: str
    module: Any
    plain: tuple[str, ...] = ()
    complete: bool = True  # else only what has a status is listed


NUMPY = """
base_repr binary_repr broadcast_shapes busday_count busday_offset datetime_as_string datetime_data
diag_indices format_float_positional format_float_scientific frombuffer fromfile
fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall indices
info is_busday isdtype isfortran issubdtype iterable ix_ load loadtxt mask_indices mintypecode
packbits printoptions promote_types ravel_multi_index row_stack set_printoptions setbufsize
seterr seterrcall show_config show_runtime test tril_indices triu_indices typename unpackbits
unravel_index bartlett
"""
MODULES = [
    Listed("numpy", np, tuple(NUMPY.split())),
    Listed("numpy.linalg", np.linalg, ("test",)),
    Listed("numpy.fft", np.fft, ("fftfreq", "rfftfreq", "test")),
    Listed("numpy.emath", np.emath),
    Listed("numpy.lib.stride_tricks", np.lib.stride_tricks, complete=False),
    Listed("numpy.polynomial.polynomial", np.polynomial.polynomial, complete=False),
    Listed("numpy.polynomial.chebyshev", np.polynomial.chebyshev, complete=False),
    Listed("numpy.polynomial.legendre", np.polynomial.legendre, complete=False),
    Listed("numpy.polynomial.hermite", np.polynomial.hermite, complete=False),
    Listed("numpy.polynomial.hermite_e", np.polynomial.hermite_e, complete=False),
    Listed("numpy.polynomial.laguerre", np.polynomial.laguerre, complete=False),
]
HEAD = """# Functions

What becomes of a function when a traced value goes in. This page is made from the registry by
`tests/functions_page.py`.

- **derivative**: the result keeps its derivative, in every mode, to every order, and in programs.
- **constant**: the result does not move, or not with the values: a comparison, a rounding, a
  position, a shape, a text.
- **plain**: takes integers, shapes, files or options, where nothing is traced.
- **refused**: a `NoRuleError` at your line, which says what works.

Ufuncs take `out=`, `where=`, `dtype=` and `casting=`, and have `reduce`, `accumulate`, `reduceat`,
`outer` and `at`. Whatever is not in a list is refused as well: nothing loses a derivative in
silence. Results whose shape depends on values (`unique`, `nonzero`, `x[x > 0]`) are followed by
`grad` and its kin, and refused where a program is written, since a program has fixed shapes.
"""


def public(listed: Listed) -> dict[str, Any]:
    """The functions of a module by name."""
    names = [n for n in dir(listed.module) if not n.startswith("_")]
    values = {n: getattr(listed.module, n) for n in names}
    return {
        n: v
        for n, v in values.items()
        if callable(v) and not isinstance(v, types.ModuleType) and not _is_type(v)
    }


def _is_type(value: Any) -> bool:
    """A class that is no function in the user's eyes, as ndarray is."""
    return isinstance(value, type) and value not in (np.vectorize, np.ndenumerate, np.nditer)


def status(listed: Listed, name: str, function: Any, stood: set[int]) -> str:
    """What becomes of a function; the empty string where nothing is known."""
    if name in listed.plain:
        return "plain"
    ours = registry.functions.get(function)
    if isinstance(ours, Constant) or function in registry.readers:
        return "constant"
    if function in registry.advice:
        return f"refused: {registry.advice[function]}"
    return "derivative" if ours is not None or id(function) in stood else ""


def page() -> str:
    """The text of the page."""
    registry.arrive()
    stood = set(replacements())
    parts = [HEAD]
    for listed in MODULES:
        rows = [(n, status(listed, n, f, stood)) for n, f in public(listed).items()]
        lines = [f"| `{n}` | {s} |" for n, s in rows if s]
        parts.append(f"\n## {listed.name}\n\n| function | |\n|---|---|\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def unknown() -> list[str]:
    """The functions of complete modules that have no status."""
    stood = set(replacements())
    return [
        f"{listed.name}.{n}"
        for listed in MODULES
        if listed.complete
        for n, f in public(listed).items()
        if not status(listed, n, f, stood)
    ]


if __name__ == "__main__":
    assert lineara
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(bool(unknown()) and f"without a status: {', '.join(unknown())}")

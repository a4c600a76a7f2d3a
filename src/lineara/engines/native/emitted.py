"""What was made of a definition, on disk under its program: a hit needs no pass and no emission.

The key is a digest of the text that was captured and of all else that decides what becomes of it:
the two choices of the lowering, the files of this library, the processor and the versions.  An
entry has no addresses: functions outside are named, and a place that calls back is emitted once
more when it first does.  A program with a parameter that is no plain data (what prints or warns, or
raises an exception of the user's) has no key; of such only what LLVM makes of the text is kept.
"""

import hashlib
import io
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from lineara.engines.native.cache import disk_cache
from lineara.engines.native.emit import Site
from lineara.engines.native.facts import library
from lineara.engines.native.lower import Lowered, lowered
from lineara.engines.native.machine_code import Compiler
from lineara.engines.native.numbers import Refused
from lineara.engines.native.symbols import named
from lineara.facts.types import ArrayType
from lineara.linear_a.identity import identity
from lineara.linear_a.program import Program
from lineara.linear_a.unmade import Later

Choices = tuple[str, bool, bool]  # the definition's name, whether it trusts factors, and is exact


def emitted(program: Program, choices: Choices, key: str) -> Lowered | str:
    """A definition as text for LLVM, or why there is none."""
    try:
        return replace(lowered(program, *choices), key=key)
    except RecursionError:  # not kept: another process may go deeper
        return (
            f"{choices[0]} is not lowered: its branches and calls lie in each other deeper than "
            f"Python's recursion goes ({sys.getrecursionlimit()})"
        )
    except Refused as error:
        why = f"{choices[0]} is not lowered: {error}"
    if key:
        disk_cache().put(key, pickle.dumps(why))
    return why


def found(program: Program, choices: Choices, key: str) -> Lowered | str | None:
    """What is on disk under a key."""
    raw = disk_cache().get(key) if key else None
    try:
        code = None if raw is None else pickle.loads(raw)
    except Exception:  # whatever was put there by a process that knew this class otherwise
        return None
    if not isinstance(code, Lowered):
        return code if isinstance(code, str) else None
    there = {name: named(name, code.loops) for name in code.addresses}
    addresses = {name: address for name, address in there.items() if address is not None}
    if len(addresses) < len(there):
        return None
    _keep_later(program)
    sites = Sites(program, choices)
    bound = [s._replace(answer=sites.answer(i)) for i, s in enumerate(code.sites)]
    inputs, outputs = own_dtypes(code.inputs), own_dtypes(code.outputs)
    return replace(code, sites=bound, addresses=addresses, key=key, inputs=inputs, outputs=outputs)


def own_dtypes(types: Sequence[ArrayType]) -> tuple[ArrayType, ...]:
    """Types with the dtypes that NumPy's arrays have: pickle makes equal ones, which are others."""
    return tuple([ArrayType(t.shape, np.dtype(t.dtype.str)) for t in types])


def keep(program: Program, code: Lowered, machine_code: bytes) -> None:
    """Put what was made of a definition on disk."""
    _keep_later(program)
    stored = replace(
        code,
        text="",
        sites=[s._replace(answer=_not_here) for s in code.sites],
        addresses=dict.fromkeys(code.addresses, 0),
        key="",
        machine_code=machine_code,
    )
    raw = io.BytesIO()
    try:
        Writer(raw).dump(stored)
    except (pickle.PicklingError, AttributeError, TypeError):  # a ufunc that no module names
        return
    disk_cache().put(code.key, raw.getvalue())


class Writer(pickle.Pickler):
    """Writes a ufunc by its module: pickle would look for it in each one that is imported."""

    def reducer_override(self, obj: Any) -> Any:
        """What reads a ufunc again."""
        if not isinstance(obj, np.ufunc):
            return NotImplemented
        for module in ("numpy", "scipy.special"):
            if getattr(import_module(module), obj.__name__, None) is obj:
                return _ufunc, (module, obj.__name__)
        raise pickle.PicklingError(f"no module names {obj}")


def _ufunc(module: str, name: str) -> np.ufunc:
    return getattr(import_module(module), name)


def _keep_later(program: Program) -> None:
    """Have other processes know what they need, not to make the derivatives of a program."""
    for d in program.outline.defs.values():
        if isinstance(d, Later):
            d.keep()


def _not_here(values: list[Any]) -> list[Any]:
    raise AssertionError("this process has no answer yet")


class Sites:
    """The places of a program that call back, emitted when the first one does."""

    program: Program
    choices: Choices

    def __init__(self, program: Program, choices: Choices) -> None:
        self.program, self.choices = program, choices
        self.emitted: list[Site] | None = None

    def answer(self, i: int) -> Any:
        """The answer of one of them."""

        def of(values: list[Any]) -> Any:
            if self.emitted is None:
                self.emitted = lowered(self.program, *self.choices).sites
            return self.emitted[i].answer(values)

        return of


# --- keys -----------------------------------------------------------------------------------------


def key_of(program: Program, choices: Choices, compiler: Compiler) -> str:
    """What tells a definition from any other, and one library and processor from another; or ""."""
    text = identity(program, choices[0])
    facts = (library(), *compiler.facts(), choices, text)
    return hashlib.sha256(repr(facts).encode()).hexdigest() if text else ""


__all__ = ["emitted", "found", "keep", "key_of"]

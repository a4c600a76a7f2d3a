"""What was made of a definition, on disk under its program: a hit needs neither emission nor LLVM.

The key is a digest of the program's text and of all else that decides what becomes of it: the two
choices of the lowering, the files of this library, the processor and the versions.  An entry has no
addresses: functions outside are named, and a place that calls back is emitted once more when it
first does.  A program with a parameter that is no plain data (what prints or warns, or raises an
exception of the user's) has no key; of such only what LLVM makes of the text is kept.
"""

import hashlib
import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np

from lineara.engines.native.cache import disk_cache
from lineara.engines.native.emit import Site
from lineara.engines.native.lower import Lowered, lowered
from lineara.engines.native.machine_code import Compiler
from lineara.engines.native.numbers import Refused
from lineara.engines.native.symbols import named
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_program

Choices = tuple[str, bool, bool]  # the definition's name, whether it trusts factors, and is exact


def found_or_emitted(program: Program, choices: Choices, compiler: Compiler) -> Lowered | str:
    """A definition as machine code, or as text for LLVM, or why there is none."""
    key = key_of(program, choices, compiler)
    code = found(program, choices, key) if key else None
    return emitted(program, choices, key) if code is None else code


def emitted(program: Program, choices: Choices, key: str) -> Lowered | str:
    """A definition as text for LLVM, or why there is none."""
    try:
        return replace(lowered(program, *choices), key=key)
    except Refused as error:
        why = f"{choices[0]} is not lowered: {error}"
    if key:
        disk_cache().put(key, pickle.dumps(why))
    return why


def found(program: Program, choices: Choices, key: str) -> Lowered | str | None:
    """What is on disk under a key."""
    raw = disk_cache().get(key)
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
    sites = Sites(program, choices)
    bound = [s._replace(answer=sites.answer(i)) for i, s in enumerate(code.sites)]
    return replace(code, sites=bound, addresses=addresses, key=key)


def keep(code: Lowered, machine_code: bytes) -> None:
    """Put what was made of a definition on disk."""
    stored = replace(
        code,
        text="",
        sites=[s._replace(answer=_not_here) for s in code.sites],
        addresses=dict.fromkeys(code.addresses, 0),
        key="",
        machine_code=machine_code,
    )
    try:
        raw = pickle.dumps(stored)
    except (pickle.PicklingError, AttributeError, TypeError):  # a ufunc that no module names
        return
    disk_cache().put(code.key, raw)


def _not_here(values: list[Any]) -> list[Any]:
    raise AssertionError("this process has no answer yet")


class Sites:
    """The places of a program that call back, emitted when the first one does."""

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
    defs = {f: program.defs[f] for f in program.reached(choices[0])}
    if not all([_is_plain(v) for d in defs.values() for v in _parameters(d)]):
        return ""
    text = show_program(program.types, defs)
    facts = (library(), *compiler.facts(), choices, text)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _parameters(d: ir.Def) -> Iterator[Any]:
    """What its leaves have beside variables."""
    for e in ir.leaves(d.body):
        if isinstance(e, ir.Prim):
            yield from [v for k, v in e.params.items() if k != "line"]
        elif isinstance(e, ir.Part):
            yield e.at


_PLAIN = (int, float, complex, str, type(None), EllipsisType, np.generic, np.dtype, ir.Var)


def _is_plain(v: Any) -> bool:
    """Whether a parameter is one whose text says all of it."""
    if isinstance(v, slice):
        return _is_plain((v.start, v.stop, v.step))
    if isinstance(v, tuple | list) and not isinstance(v, ArrayType):
        return all(map(_is_plain, v))
    return isinstance(v, _PLAIN) or (isinstance(v, np.ndarray) and not v.dtype.hasobject)


@cache
def library() -> str:
    """A digest of the names, sizes and dates of the files of this library."""
    base = Path(__file__).parents[2]
    files = sorted(_files(base))
    return hashlib.sha256(repr(files).encode()).hexdigest() if files else os.urandom(32).hex()


def _files(directory: Path) -> Iterable[tuple[str, int, int]]:
    """Name, size and date of the Python files in a directory."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir() and entry.name != "__pycache__":
                    yield from _files(Path(entry.path))
                elif entry.name.endswith(".py"):
                    s = entry.stat()
                    yield entry.path, s.st_size, s.st_mtime_ns
    except OSError:  # in an archive: no file, no date
        return


__all__ = ["found_or_emitted", "keep"]

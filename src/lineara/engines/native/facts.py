"""What was found out about a definition, on disk under its text, for every process of this user.

An answer is plain data, a few bytes.  The key has the text, the files of this library, and the
versions of Python and NumPy: all that decides what passes and engines do with a text.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lineara.engines.native.cache import disk_cache
from lineara.linear_a.identity import identity
from lineara.linear_a.program import Program


def fact(program: Program, name: str, question: str) -> Any:
    """What is on disk about a definition; None where nothing is.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64;) -> (f64;) = x * x")
    >>> keep_fact(p, "f", "how many?", 3)
    >>> fact(p, "f", "how many?") in (3, None)
    True
    """
    kept = disk_cache()
    text = identity(program, name) if kept.directory is not None else ""
    raw = kept.get(_key(text, question)) if text else None
    try:
        return None if raw is None else json.loads(raw)
    except ValueError:
        return None


def keep_fact(program: Program, name: str, question: str, answer: Any) -> None:
    """Put an answer on disk."""
    text = identity(program, name)
    if text:
        disk_cache().put(_key(text, question), json.dumps(answer).encode())


def _key(text: str, question: str) -> str:
    facts = (library(), sys.version, np.__version__, question, text)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


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


__all__ = ["fact", "keep_fact", "library"]

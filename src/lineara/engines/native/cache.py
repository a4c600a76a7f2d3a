"""Machine code on disk: what LLVM makes of a text once, no process of this user makes again.

An entry is one file, named by a key; it begins with a digest of its key and of its code, so one
that is cut off, altered or under another name is none.  It is written beside and put in place
whole, whatever other processes do at the time.  What was not used for longest goes first; only
one in some entries looks for room, and makes it for those to come, since to look costs a call of
the system for each file.

What is in it runs as this user, so nobody else may write into it: the directory is made for this
user alone, and neither a link, nor what belongs to somebody else, nor what others may enter is
taken.  Where there is no such directory, code lives as long as its process.
"""

import hashlib
import os
import shlex
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

VARIABLE = "LINEARA_CACHE_DIR"
OFF = "off"
NAME = "machine-code"
HEAD = b"lineara1"
DIGEST = hashlib.sha256().digest_size
ABANDONED = 3600.0  # seconds after which a file that was not put in place is nobody's


class Limits(NamedTuple):
    """How much is kept: bytes in all, and entries."""

    nbytes: int = 2**27
    entries: int = 2_000

    @property
    def unlooked(self) -> int:
        """How many entries come before one looks for room, as a rule."""
        return max(self.entries // 64, 1)


LIMITS = Limits()
_keeps = ContextVar("whether anything is kept", default=True)


class Entry(NamedTuple):
    """A file of the cache."""

    path: str
    nbytes: int
    used: float
    is_regular: bool  # no directory, and no pipe

    @property
    def is_beside(self) -> bool:
        """Whether it is not put in place yet, or was abandoned."""
        return os.path.basename(self.path).startswith(".")

    def remove(self) -> None:
        """Remove the file, unless another process has."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


@dataclass(frozen=True)
class DiskCache:
    """The entries of one directory; nothing is kept where there is none, and `why` says why.

    `refused` is the directory that would be taken if it were this user's alone.
    """

    directory: Path | None
    why: str = ""
    limits: Limits = LIMITS
    refused: Path | None = None

    def get(self, key: str) -> bytes | None:
        """The code of a key, if it is whole."""
        if self.directory is None:
            return None
        path = self.directory / key
        try:
            file = os.open(path, os.O_RDONLY | _FLAGS)
            with os.fdopen(file, "rb") as f:
                if _why_not_private(os.fstat(file), stat.S_ISREG):
                    return None
                raw = f.read()
        except OSError:
            return None
        head, code = raw[: len(HEAD) + DIGEST], raw[len(HEAD) + DIGEST :]
        if head != HEAD + _digest(key, code):
            return None
        with suppress(OSError):
            os.utime(path)  # marks the file as used
        return code

    def put(self, key: str, code: bytes) -> None:
        """Keep the code of a key; a disk that is full or may not be written keeps nothing."""
        if self.directory is None:
            return
        digest = _digest(key, code)
        with suppress(OSError):
            file, beside = tempfile.mkstemp(prefix=".", dir=self.directory)
            try:
                with os.fdopen(file, "wb") as f:
                    f.write(HEAD + digest + code)
                os.replace(beside, self.directory / key)
            except BaseException:
                os.unlink(beside)
                raise
            if digest[0] % self.limits.unlooked == 0:
                self._leave_room(key)

    def entries(self) -> list[Entry]:
        """What there is, the one that was not used for longest first."""
        return [e for e in self.files() if not e.is_beside]

    def files(self) -> list[Entry]:
        """The same, with what is not put in place yet."""
        return sorted([e for e in self._all() if e.is_regular], key=lambda e: e.used)

    def clear(self) -> tuple[int, list[OSError]]:
        """Remove all that lies there; gives how much that was, and why the rest stays."""
        there = list(self._all())
        stay = []
        for e in there:
            try:
                e.remove()
            except OSError as error:
                stay.append(error)
        return len(there) - len(stay), stay

    def _all(self) -> Iterator[Entry]:
        if self.directory is None:
            return
        with suppress(FileNotFoundError), os.scandir(self.directory) as files:
            for file in files:
                with suppress(OSError):  # another process has removed it
                    s = file.stat(follow_symlinks=False)
                    yield Entry(file.path, s.st_size, s.st_mtime, stat.S_ISREG(s.st_mode))

    def _leave_room(self, newest: str) -> None:
        """Remove what was not used for longest, and what was never put in place."""
        files = self.files()
        entries = [e for e in files if not e.is_beside]
        for e in files:
            if e.is_beside and e.used < time.time() - ABANDONED:
                e.remove()
        n, nbytes = len(entries), sum([e.nbytes for e in entries])
        if n <= self.limits.entries and nbytes <= self.limits.nbytes:
            return
        most = self.limits.entries + 1 - self.limits.unlooked
        for e in entries:
            if n <= most and nbytes <= self.limits.nbytes:
                return
            if os.path.basename(e.path) != newest:
                e.remove()
                n, nbytes = n - 1, nbytes - e.nbytes


_FLAGS = sum([getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")])
"""To open no link, not to wait for who writes into a pipe, and to read bytes as they are."""


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()


def disk_cache(environment: Mapping[str, str] = os.environ, makes: bool = True) -> DiskCache:
    """The cache of this user: where LINEARA_CACHE_DIR says, or where the system keeps caches.

    Its directory is made if it is not there, unless one only looks.

    >>> disk_cache({VARIABLE: OFF}).directory is None
    True
    """
    if not _keeps.get():
        return DiskCache(None, "programs that nobody runs again are not kept")
    chosen = environment.get(VARIABLE, "")
    if chosen.lower() == OFF:
        return DiskCache(None, f"{VARIABLE} is {chosen!r}")
    base = _seen_from_here(chosen) if chosen else _users(environment)
    if base is None:
        return DiskCache(None, f"this user has no home directory; {VARIABLE} can name one")
    directory = base / NAME
    try:
        try:
            state = os.lstat(directory)
        except FileNotFoundError:
            if not makes:
                return DiskCache(directory)
            base.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
            state = os.lstat(directory)
        why = _why_not_private(state, stat.S_ISDIR)
        if not why and not os.access(directory, os.R_OK | os.X_OK):
            why = f"cannot be read by its owner (mode {state.st_mode & 0o777:03o})"
    except OSError as error:
        why = f"cannot be made or read ({error.strerror or error})"
    if not why:
        return DiskCache(directory)
    mends = f"`chmod 700 {shlex.quote(str(directory))}` mends that, or "
    mends = mends if "(mode " in why else ""
    why = f"{directory} {why}; {mends}{VARIABLE} can name another place"
    return DiskCache(None, why, refused=directory)


@contextmanager
def nothing_kept() -> Iterator[None]:
    """What is compiled in the block is neither looked for on disk nor kept there.

    >>> import lineara
    >>> with nothing_kept():
    ...     lineara.jit(lambda x: x * x, engine="native")(3.0)
    9.0
    """
    token = _keeps.set(False)
    try:
        yield
    finally:
        _keeps.reset(token)


@cache
def _seen_from_here(path: str) -> Path:
    """An absolute path, which stays the same where the process goes to another directory."""
    return Path(path).absolute()


def _users(environment: Mapping[str, str]) -> Path | None:
    """Where this user's caches lie; None without a home directory."""
    home = Path(environment.get("USERPROFILE" if os.name == "nt" else "HOME", ""))
    stated = environment.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    if os.path.isabs(stated):
        return Path(stated) / "lineara"
    if not home.is_absolute() or not home.is_dir():
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "lineara"


def _why_not_private(s: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Why a file or directory is not this user's alone; "" if it is."""
    if not is_kind(s.st_mode):
        return "is a link or a special file"
    if os.name == "nt":  # where a user's directories are that user's by their access lists
        return ""
    if s.st_uid != os.geteuid():
        return "belongs to another user"
    return f"may be entered by others (mode {s.st_mode & 0o777:o})" if s.st_mode & 0o077 else ""


__all__ = ["DiskCache", "Entry", "Limits", "disk_cache", "nothing_kept"]

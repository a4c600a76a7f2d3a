"""The session as a person meets it: on a terminal, with history between sessions and TAB."""

import os
import select
import sys
import time
from pathlib import Path

import pytest

import lineara
from lineara.cli.session import HISTORY, history_file

pty = pytest.importorskip("pty", reason="there are terminals of this kind on POSIX only")
pytest.importorskip("readline", reason="without readline nothing is edited or kept")

SOURCE = str(Path(lineara.__file__).parent.parent)


def typed(state: Path, keys: list[str], *options: str) -> str:
    """What a session shows for these keys; each waits for the prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(XDG_STATE_HOME=str(state), PYTHONPATH=SOURCE, TERM="dumb")
        os.execv(sys.executable, [sys.executable, "-m", "lineara", "calculus", "session", *options])
    shown = ""
    try:
        for key in keys:
            shown = read(terminal, shown, "pb> ")
            os.write(terminal, key.encode())
            shown += "\0"  # what came before counts no more
        shown = read(terminal, shown, None)
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    assert status == 0, shown
    return shown.replace("\0", "").replace("\r", "")


def read(terminal: int, shown: str, until: str | None) -> str:
    end = time.monotonic() + 30
    while until is None or until not in shown.rpartition("\0")[2]:
        assert time.monotonic() < end, f"the session says no more than {shown!r}"
        if select.select([terminal], [], [], 1)[0]:
            try:
                found = os.read(terminal, 4096)
            except OSError:  # the other side is gone
                return shown
            if not found:
                return shown
            shown += found.decode()
    return shown


UP = "\x1b[A"


@pytest.mark.slow("starts two sessions on a terminal: 4 s")
def test_what_was_typed_is_there_in_the_next_session(tmp_path):
    shown = typed(tmp_path, ["def cubed x = x * x * x\n", "cubed 2\n", ":quit\n"])
    assert "8 : R" in shown
    kept = tmp_path / "lineara" / "calculus_history"
    assert kept.read_text().splitlines() == ["def cubed x = x * x * x", "cubed 2", ":quit"]
    shown = typed(tmp_path, [f"{UP * 3}\n", "cubed 3\n", ":quit\n"])
    assert "27 : R" in shown  # the definition was called back
    assert len(kept.read_text().splitlines()) == 6


@pytest.mark.slow("starts a session on a terminal: 1 s")
def test_nothing_is_kept_when_that_is_asked(tmp_path):
    assert "4 : R" in typed(tmp_path, ["2 + 2\n", ":quit\n"], "--no-history")
    assert list(tmp_path.iterdir()) == []


def test_tab_completes_definitions_and_symbols(tmp_path):
    shown = typed(tmp_path, ["def quadruple x = 4 * x\n", "quad\t 2\n", "gamm\tln(3)\n", ":quit\n"])
    assert "quadruple 2" in shown
    assert "8 : R" in shown


@pytest.mark.slow("starts a session on a terminal: 1 s")
def test_a_directory_that_cannot_be_made_is_said_and_the_session_ends_well(tmp_path):
    (tmp_path / "lineara").write_text("a file")
    shown = typed(tmp_path, ["1 + 1\n", ":quit\n"])
    assert "2 : R" in shown
    assert "what was typed cannot be kept there: File exists" in shown.replace("\n", "")


def test_the_place_is_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "lineara" / "calculus_history"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # which the specification tells us to ignore
    assert history_file() == Path.home() / ".local" / "state" / "lineara" / "calculus_history"
    assert HISTORY > 0

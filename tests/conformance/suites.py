"""Which installed tests run, and what came out: a process for each file, judged test by test.

A test that passes plainly either passes inside of a differentiation, or is refused by an error of
ours that is one of the kept reasons, or differs.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy
from rewrite import rewritten

HERE = Path(__file__).parent
NUMPY = Path(numpy.__file__).parent
PYTHON = Path(sysconfig.get_paths()["stdlib"]) / "test"
PARTS = ("_core", "lib", "linalg", "fft", "ma")
MODULES = ("float", "math", "complex", "statistics", "fractions")
BYTECODE = str(Path(tempfile.gettempdir()) / f"lineara-bytecode-{os.getuid()}")
LIMIT = 6 * 1024**3  # bytes of address space that a process may take
SECONDS = 1800  # that one file may take
KEPT = tomllib.loads((HERE / "kept.toml").read_text(encoding="utf-8"))["kept"]
REASONS = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["reason"]


def files() -> dict[str, Path]:
    """The files, by name; of CPython's, those that are installed."""
    found = {
        f"numpy/{part}/{path.stem}": path
        for part in PARTS
        for path in sorted((NUMPY / part / "tests").glob("test_*.py"))
    }
    cpython = [PYTHON / f"test_{m}.py" for m in MODULES]
    return found | {f"python/{p.stem}": p for p in cpython if p.exists()}


class Judged(NamedTuple):
    """What came out of the tests of a file that pass plainly."""

    passed: int
    refused: Counter[str]  # by reason
    different: dict[str, str]  # by test: how
    kept: int  # of which the harness is the cause
    late: int  # that take too long inside of a differentiation, and are not judged


def outcomes(path: Path, lift: str, folder: Path, only: list[str] | None = None) -> dict[str, dict]:
    """The outcome of each test of a file; of one that ends the process, that it does."""
    copy, found = folder / path.name, folder / f"{path.stem}.{lift}.jsonl"
    copy.write_text(rewritten(path), encoding="utf-8")
    found.unlink(missing_ok=True)
    known: dict[str, dict] = {}
    while True:
        ended = _run(copy, lift, found, only, NUMPY in path.parents)
        lines = found.read_text().splitlines() if found.exists() else []
        started, known = "", {}
        for entry in map(json.loads, lines):
            started = entry["test"] if entry["outcome"] == "started" else ""
            known[entry["test"]] = max(entry, known.get(entry["test"], entry), key=_weight)
        if not started:
            return known
        with found.open("a") as out:
            entry = {"test": started, "outcome": "failed", "ours": False, "kind": "Crash"}
            out.write(json.dumps(entry | {"text": f"the process ended with {ended}"}) + "\n")


def _run(copy: Path, lift: str, found: Path, only: list[str] | None, numpys: bool) -> int:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}));"
    main = f"{limit} import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    given = [str(copy)] if only is None else [f"{copy}::{test}" for test in only]
    command = [sys.executable, "-c", main, "-q", *given, "-p", "plugin", "-p", "no:cacheprovider"]
    command += ["--assert=plain", "--rootdir", str(copy.parent), "-c", os.devnull, "--tb=native"]
    command += ["--lift", lift, "--outcomes", str(found)] + ["-p", "numpy.conftest"] * numpys
    command += ["-W", "ignore::pytest.PytestWarning", "-W", "ignore::DeprecationWarning:pytest"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # there are two hundred processes
    env["PYTHONPYCACHEPREFIX"] = BYTECODE
    with (copy.parent / f"{copy.stem}.{lift}.log").open("w") as out:
        run = subprocess.run(
            command, stdout=out, stderr=out, env=env, timeout=SECONDS, cwd=copy.parent
        )
    return run.returncode


def reason(entry: dict) -> str | None:
    """The name of the kept reason of a refusal, or None."""
    for known in REASONS:
        if re.fullmatch(known["kind"], entry["kind"]) and re.search(known["text"], entry["text"]):
            return known["name"]
    return None


def _weight(entry: dict) -> int:
    """What an outcome counts among those of a test's subtests: the worst is that of the test."""
    if entry["outcome"] != "failed":
        return 0
    known = entry["ours"] and reason(entry) is not None
    return 1 if known else 2 if entry["kind"] == "Late" else 3


def _is_kept(entry: dict[str, str], test: str, lift: str) -> bool:
    """Whether an entry of the tests that are kept is of this one, lifted so."""
    return entry.get("lift", lift) == lift and bool(re.fullmatch(entry["test"], test))


def judged(name: str, lift: str, folder: Path) -> Judged:
    """Every test of a file that passes plainly: passed, refused, or different."""
    path = files()[name]
    found = outcomes(path, lift, folder)
    failed = [test for test, entry in found.items() if entry["outcome"] == "failed"]
    plain = outcomes(path, "none", folder, failed) if failed else {}
    refused, different, kept, late = Counter[str](), {}, 0, 0
    for test in failed:
        if plain.get(test, {}).get("outcome") != "passed":
            continue
        entry = found[test]
        why = reason(entry) if entry["ours"] else None
        if why is not None:
            refused[why] += 1
        elif entry["kind"] == "Late":
            late += 1
        elif any([_is_kept(k, f"{name}::{test}", lift) for k in KEPT]):
            kept += 1
        else:
            different[test] = f"{entry['kind']}: {entry['text']}".partition("\n\n")[0]
    passed = sum([entry["outcome"] == "passed" for entry in found.values()])
    return Judged(passed, refused, different, kept, late)

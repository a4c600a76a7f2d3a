"""Every deliberate mistake of user_code.py is found by pyright and by mypy, and nothing else is.

Beside that, pyright knows the types of the public names: at least KNOWN percent of them.  Run by
`make test-types`: each checker reads the whole library, which takes a minute.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
USER = HERE / "user_code.py"
SOURCE = HERE.parent.parent / "src"
KNOWN = 98  # it only rises


def mistakes() -> set[int]:
    """The lines that end with `# mistake`."""
    lines = USER.read_text(encoding="utf-8").splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith("# mistake")}


def by_pyright() -> set[int]:
    """The lines that pyright refuses in strict mode."""
    settings = HERE / "pyrightconfig.json"
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "-p", str(settings)],
        capture_output=True,
        text=True,
    )
    told = json.loads(run.stdout)["generalDiagnostics"]
    return {d["range"]["start"]["line"] + 1 for d in told if d["severity"] == "error"}


def by_mypy() -> set[int]:
    """The lines that mypy refuses in strict mode; the library's own files are not told of."""
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(USER)],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        cwd=HERE,
    )
    return {int(n) for n in re.findall(r"user_code\.py:(\d+): error", run.stdout)}


def share_known() -> float:
    """The percentage of the public names of which pyright knows the type without inferring it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "--verifytypes", "lineara", "--ignoreexternal",
         "--outputjson"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PATH": path},  # what is installed beside us
    )  # fmt: skip
    return 100 * json.loads(run.stdout)["typeCompleteness"]["completenessScore"]


def main() -> int:
    """How many lines are judged otherwise than they should be, and whether types are missing."""
    wanted, wrong = mistakes(), 0
    for checker in (by_pyright, by_mypy):
        told = checker()
        for what, lines in (("misses", wanted - told), ("refuses", told - wanted)):
            wrong += len(lines)
            for n in sorted(lines):
                print(f"{checker.__name__} {what} line {n}: {USER.read_text().splitlines()[n - 1]}")
        print(f"{checker.__name__}: {len(wanted & told)} of {len(wanted)} mistakes found")
    known = share_known()
    print(f"pyright knows the types of {known:.1f} % of the public names; {KNOWN} % are asked")
    return wrong + (known < KNOWN)


if __name__ == "__main__":
    sys.exit(main() > 0)

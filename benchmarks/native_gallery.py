"""Gradients of the gallery as machine code, beside numba's values of the same functions.

The functions are the tests' (`tests/gallery`), those that numba compiles unchanged.
"""

import json
import subprocess
import sys
from pathlib import Path

import lineara

from .least import least

HERE = Path(__file__).parent
CALLS, SECONDS = 50, 0.2
GOAL = 5.0
HEAD = """
## The gallery beside numba

Of each function of `tests/gallery` that `numba.njit` takes as it stands, and that has its value
there: numba's value, and Lineara's gradient in all its arguments, `jit(grad(f), engine="native")`,
the whole call. Microseconds; the goal is a gradient in at most {goal:g} times numba's value.
"""


def gradients(names: set[str]) -> dict[str, float | str]:
    """Of each function that is named the least microseconds, or why there is no machine code."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    import gallery.test_gallery
    from gallery.snippets import GALLERY

    assert gallery.test_gallery.PAGES, "it has filled the list"
    found: dict[str, float | str] = {}
    for snippet in GALLERY:
        name = f"{snippet.f.__module__.partition('.')[2]}: {snippet.f.__name__}"
        if name not in names:
            continue
        every = tuple(range(len(snippet.args)))
        f = lineara.jit(lineara.grad(snippet.f, every if len(every) > 1 else 0), engine="native")
        try:
            for _ in range(4):
                f(*snippet.args)
            found[name] = least(f, snippet.args, SECONDS, CALLS)
        except lineara.LinearaError as error:
            found[name] = str(error).splitlines()[0]
    return found


def table(python: str) -> list[str]:
    """The lines of the table; none where that Python has no numba."""
    script = HERE / "gallery_numba.py"
    ran = subprocess.run([python, script], capture_output=True, text=True)
    if ran.returncode:
        return []
    numba = json.loads(ran.stdout)
    return lines(numba["measured"], gradients(set(numba["measured"])), len(numba["refused"]))


def lines(numba: dict[str, float], ours: dict[str, float | str], refused: int) -> list[str]:
    """A line for each function, those that lose most first."""
    ratios = {k: v / numba[k] for k, v in ours.items() if not isinstance(v, str)}
    within = sum([r <= GOAL for r in ratios.values()])
    said = f"{len(numba)} functions, {within} within the goal; numba refuses {refused} others."
    rows = [
        HEAD.format(goal=GOAL),
        said,
        "",
        "| | numba, value | gradient | ratio |",
        "|---|--:|--:|--:|",
    ]
    for k in sorted(ratios, key=lambda k: -ratios[k]):
        rows.append(f"| {k} | {numba[k]:.2f} | {ours[k]:.2f} | {ratios[k]:.1f} |")
    rows += [f"| {k} | {numba[k]:.2f} | {v} | – |" for k, v in ours.items() if isinstance(v, str)]
    return rows

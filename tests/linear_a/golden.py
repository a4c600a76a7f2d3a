"""What the passes write for small programs: texts that are kept, and read when they change.

    python tests/linear_a/golden.py        writes all of them anew

A file of `golden` is a program and what becomes of it, part by part:

    ==> jvp f, unzip f.jvp

stands above what the last of these passes adds to the program that it is given, or changes there.
The laws say what a program must mean; these texts say that it is written as we want it, so that
whatever a change does to any of them is seen, and looked at.
"""

import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent / "golden"
MARK = "==> "
ALL = "all"  # of the names of a pass that takes several

if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[2] / "src")]

from lineara import ops as _ops  # noqa: E402, F401  the primitives declare themselves
from lineara.facts.types import show_definition  # noqa: E402
from lineara.linear_a.check import check  # noqa: E402
from lineara.linear_a.parse import parse  # noqa: E402
from lineara.linear_a.program import Program  # noqa: E402
from lineara.linear_a.show import show_def  # noqa: E402
from lineara.passes import store_policies  # noqa: E402
from lineara.passes.batch import batch  # noqa: E402
from lineara.passes.derivatives import grad, vjp  # noqa: E402
from lineara.passes.erase import erase  # noqa: E402
from lineara.passes.inline import every, inline, named, smaller_than  # noqa: E402
from lineara.passes.jvp import jvp  # noqa: E402
from lineara.passes.minimal_tape import budget, minimal_tape  # noqa: E402
from lineara.passes.rules_in_text import custom_jvp, custom_linear, custom_vjp  # noqa: E402
from lineara.passes.simplify import simplify  # noqa: E402
from lineara.passes.transpose import transpose  # noqa: E402
from lineara.passes.unzip import store_all, unzip  # noqa: E402


def policy(word: str = "") -> Any:
    """A policy by its name; `snapshots3` has three, `budget60` so many bytes."""
    for name, made in (("snapshots", store_policies.binomial), ("budget", budget)):
        if word.startswith(name):
            return made(int(word.removeprefix(name)))
    return {
        "": store_all, "recompute_all": store_policies.recompute_all, "minimal_tape": minimal_tape,
        "recompute_calls": store_policies.recompute_calls(),
    }[word]  # fmt: skip


def choice(word: str = "") -> Any:
    """What is inlined: everything, what is smaller than a number, or the definition of a name."""
    if not word:
        return every
    return smaller_than(int(word)) if word.isdigit() else named(word)


def axes(word: str) -> list[int | None]:
    """An axis or n for each formal: `0,n,-1`; `-` where there are none."""
    return [None if a == "n" else int(a) for a in word.split("/") if word != "-"]


PASSES: dict[str, Callable[..., Program]] = {
    "jvp": jvp,
    "unzip": lambda p, f, *word: unzip(p, f, policy(*word)),
    "transpose": lambda p, f, *word: transpose(p, f, word == ("exact",)),
    "erase": erase,
    "simplify": lambda p, *names: simplify(p, *(() if names == (ALL,) else names)),
    "batch": lambda p, f, over, *n: batch(p, f, axes(over), *map(int, n)),
    "inline": lambda p, f, *word: inline(p, f, choice(*word)),
    "vjp": lambda p, f, *word: vjp(p, f, policy(*word)),
    "grad": lambda p, f, *word: grad(p, f, policy(*word)),
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "custom_linear": custom_linear,
}


class Part(NamedTuple):
    """Passes that are made one after the other, and what the last one writes."""

    file: str
    passes: str
    program: str
    text: str

    def __repr__(self) -> str:
        return f"{self.file}: {self.passes}"

    def made(self) -> str:
        """What the last pass writes now; all that it writes is well typed."""
        steps = [step.split() for step in self.passes.split(",")]
        after = before = checked(self.program)
        for name, *words in steps:
            before, after = after, PASSES[name](after, *words)
        return difference(before, check(after))


@functools.cache
def checked(text: str) -> Program:
    """The program of a file."""
    return check(parse(text))


def difference(before: Program, after: Program) -> str:
    """The types and definitions that are new or not the same."""
    types = "".join(
        f"{show_definition(name, t)}\n" for name, t in after.types.items()
        if before.types.get(name) != t
    )  # fmt: skip
    old = {name: show_def(d) for name, d in before.defs.items()}
    made = {name: show_def(d) for name, d in after.defs.items()}
    return "\n".join([types] * bool(types) + [t for name, t in made.items() if old.get(name) != t])


def parts(path: Path) -> Iterator[Part]:
    """The parts of a file."""
    program, *rest = path.read_text(encoding="utf-8").split(f"\n{MARK}")
    for part in rest:
        passes, _, text = part.partition("\n")
        yield Part(path.stem, passes, program, text.strip("\n"))


def everything() -> list[Part]:
    """All parts of all files."""
    return [part for path in sorted(HERE.glob("*.lina")) for part in parts(path)]


def write() -> None:
    """All texts as they are made now."""
    for _, found in itertools.groupby(everything(), lambda part: part.file):
        group = list(found)
        texts = [f"{MARK}{part.passes}\n\n{part.made()}" for part in group]
        path = HERE / f"{group[0].file}.lina"
        path.write_text("\n".join([group[0].program.rstrip("\n") + "\n", *texts]), encoding="utf-8")


if __name__ == "__main__":
    write()

"""Measures of the source itself: lines of packages, files that one value passes, bare Any.

`python -m benchmarks.house` prints them; docs/design/house.md keeps them, before and after.
"""

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import lineara
from lineara import grad, trace
from lineara.__main__ import main

SOURCE = Path(lineara.__file__).parent
TEXT = "def f(x: f64;) -> (f64;) = sin(x) * x\n"


def packages() -> dict[str, tuple[int, int]]:
    """Package -> its files and lines."""
    files, lines = Counter[str](), Counter[str]()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).parts[0] if path.parent != SOURCE else "(top)"
        files[name] += 1
        lines[name] += len(path.read_text().splitlines())
    return {name: (files[name], n) for name, n in lines.most_common()}


def parameters() -> Iterator[str]:
    """The annotation of every parameter that has one, `*args` and `**kwargs` left out."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    if a.annotation is not None:
                        yield ast.unparse(a.annotation)


def fill(x: Any) -> Any:
    """Three elements of an array are written, and summed."""
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * x[i]
    return y.sum()


def curve(x: Any) -> Any:
    """A sine times its argument."""
    return np.sin(x) * x


def walks(directory: Path) -> dict[str, Callable[[], Any]]:
    """The five ways of a value that are followed."""
    text = directory / "curve.lina"
    text.write_text(TEXT)
    x = np.array([0.3, 0.5, 0.7])
    return {
        "grad(sin(x) * x)(0.5)": lambda: grad(curve)(0.5),
        "grad of a fill of three elements": lambda: grad(fill)(x),
        "grad(.., policy='store_all')": lambda: grad(curve, policy="store_all")(0.5),
        "grad of a trace": lambda: grad(trace(curve, 0.5))(0.5),
        "python -m lineara grad": lambda: main(
            ["grad", str(text), "--def", "f", "--args", "[0.5]"]
        ),
    }


def followed(walk: Callable[[], Any]) -> tuple[int, int]:
    """The calls of Lineara's functions, and the files that they lie in, at a second run."""
    files: Counter[str] = Counter()
    root = str(SOURCE)

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith((root, "<lineara")):
            files[frame.f_code.co_filename] += 1

    walk()
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return sum(files.values()), len(files)


def report() -> None:
    """Print all measures."""
    print("| package | files | lines |\n|---|--:|--:|")
    for name, (files, lines) in packages().items():
        print(f"| {name} | {files} | {lines} |")
    asked = Counter(parameters())
    share = asked["Any"] / sum(asked.values())
    print(f"\n{asked['Any']} of {sum(asked.values())} annotated parameters are Any: {share:.0%}\n")
    print("| way of a value | calls | files |\n|---|--:|--:|")
    with TemporaryDirectory() as directory:
        for name, walk in walks(Path(directory)).items():
            with redirect_stdout(StringIO()):
                calls, files = followed(walk)
            print(f"| `{name}` | {calls} | {files} |")


if __name__ == "__main__":
    report()

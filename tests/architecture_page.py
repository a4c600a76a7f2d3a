"""docs/architecture.md and its picture, made from the imports and from runs: run this file.

A line of the picture is an import; one that other lines imply is left out.  The numbers tell in
which order the packages are entered, by the second gradient of a function and by one of a trace.
"""

import ast
import contextlib
import io
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from test_layers import PLACE, ROWS, SOURCE, import_edges, layer, module_name

from lineara import grad, trace
from lineara.__main__ import main

PRESENT = {layer(module_name(file, SOURCE)) for file in SOURCE.glob("lineara/**/*.py")}
NAMES = [[n for side in row for n in side if n in PRESENT] for row in ROWS[::-1]]  # from the top
DOCS = Path(__file__).parent.parent / "docs"
WIDE, HIGH, STEP, CHAR = 860, 30, 72, 8.2  # of the picture, a box, a row, a letter


def packages() -> dict[str, str]:
    """The name in the drawing -> the first sentence of its docstring."""
    found = {}
    for name in [n for row in NAMES for n in row]:
        file = SOURCE / "lineara" / ("" if name == "lineara" else name)
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        found[name] = text.split("\n")[0]
    return found


def needed() -> set[tuple[str, str]]:
    """Which package imports which, without what follows from the others."""
    edges = {(layer(a), layer(b)) for a, b in import_edges(SOURCE)}
    down = {(a, b) for a, b in edges if PLACE[a][0] > PLACE[b][0]}

    def reached(a: str) -> set[str]:
        seen, todo = set(), [a]
        while todo:
            at = todo.pop()
            todo += [b for c, b in down if c == at and b not in seen]
            seen.update(todo)
        return seen

    under = {n: reached(n) for row in NAMES for n in row}
    implied = {(a, b) for a, b in down for c, d in down if c == a and b in under[d]}
    return {(a, b) for a, b in edges - implied if a != b}


# --- the ways of a value --------------------------------------------------------------------------


def curve(x: Any) -> Any:
    """A sine times its argument."""
    return np.sin(x) * x


def fill(x: Any) -> Any:
    """An array is written, and summed."""
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * x[i]
    return y.sum()


def ways(folder: Path) -> dict[str, Callable[[], Any]]:
    """What is run, by what it is called on the page."""
    text = folder / "curve.lina"
    text.write_text("def f(x: f64;) -> (f64;) = sin(x) * x\n", encoding="utf-8")
    staged = trace(curve, 0.5)
    return {
        "grad(f)(0.5)": lambda: grad(curve)(0.5),
        "grad(f)(x), f writes into an array": lambda: grad(fill)(np.ones(3)),
        "trace(f, 0.5)(0.5)": lambda: trace(curve, 0.5)(0.5),
        "grad(f, policy='store_all')(0.5)": lambda: grad(curve, policy="store_all")(0.5),
        "grad of a trace": lambda: grad(staged)(0.5),
        "python -m lineara grad FILE": lambda: main(
            ["grad", str(text), "--def", "f", "--args", "[0.5]"]
        ),
    }


def entered(run: Callable[[], Any]) -> list[str]:
    """The packages in the order in which a second run enters them first."""
    found: dict[str, None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(SOURCE)):
            parts = Path(file).relative_to(SOURCE / "lineara").with_suffix("").parts
            found.setdefault(parts[0] if parts[0] != "__init__" else "lineara")

    with contextlib.redirect_stdout(io.StringIO()):
        run()
        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(None)
    return list(found)


# --- the picture ----------------------------------------------------------------------------------

STYLE = """
svg { background: #fff; font: 14px ui-sans-serif, system-ui, sans-serif; }
rect { fill: #f3f5f8; stroke: #8a94a6; } text { fill: #1c2430; }
path { fill: none; stroke: #8a94a6; stroke-opacity: .55; stroke-width: 1.2; }
.one { fill: #1f6feb; } .two { fill: #b4540a; } .n { fill: #fff; font-size: 11px; }
.small { font-size: 12px; }
@media (prefers-color-scheme: dark) {
  svg { background: #12161c; } rect { fill: #1e2530; stroke: #5b6675; } text { fill: #e4e9f0; }
  path { stroke: #8a94a6; } .one { fill: #4c8dff; } .two { fill: #e08a3c; } .n { fill: #0b0e12; }
}
"""


def places(edges: set[tuple[str, str]]) -> dict[str, float]:
    """The middles of the boxes: evenly in each row, in the order of what they are joined to."""
    at = {n: WIDE / 2 for row in NAMES for n in row}
    for _ in range(12):
        for row in (*NAMES, *NAMES[::-1]):
            want = {}
            for n in row:
                joined = [at[b] for a, b in edges if a == n] + [at[a] for a, b in edges if b == n]
                want[n] = round(sum(joined) / max(len(joined), 1), 6)  # edges have no order
            for i, n in enumerate(sorted(row, key=lambda n: want[n])):
                at[n] = WIDE * (i + 0.5) / len(row)
    return at


def width(name: str) -> float:
    """Of a box."""
    return max(64.0, CHAR * len(name) + 22)


def picture(texts: dict[str, str], edges: set[tuple[str, str]], two: list[list[str]]) -> str:
    """The packages, row upon row; an arrow goes down."""
    at = places(edges)
    y = {n: 24 + STEP * i for i, row in enumerate(NAMES) for n in row}
    high = 24 + STEP * len(NAMES) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" role="img">',
        "<title>The packages of Lineara, and which imports which</title>",
        f"<style>{STYLE}</style>",
    ]
    for a, b in sorted(edges):
        x, w, top, end = at[a], at[b], y[a] + HIGH, y[b]
        if top > end:  # in one row
            top = end = y[a] + HIGH / 2
            side = 1 if w > x else -1
            out.append(
                f'<path d="M{x + side * width(a) / 2:.0f} {top:.0f}'
                f'L{w - side * width(b) / 2:.0f} {end:.0f}"/>'
            )
            continue
        bend = min(60.0, (end - top) / 2)
        out.append(
            f'<path d="M{x:.0f} {top:.0f}C{x:.0f} {top + bend:.0f} '
            f'{w:.0f} {end - bend:.0f} {w:.0f} {end:.0f}"/>'
        )
    for n in at:
        x = at[n] - width(n) / 2
        out.append(
            f"<g><title>{escape(texts[n])}</title>"
            f'<rect x="{x:.0f}" y="{y[n]}" width="{width(n):.0f}" height="{HIGH}" rx="6"/>'
            f'<text x="{at[n]:.0f}" y="{y[n] + 20}" text-anchor="middle">{n}</text></g>'
        )
    for way, kind in zip(two, ("one", "two"), strict=True):
        for i, n in enumerate(way, 1):
            x = at[n] + (-1 if kind == "one" else 1) * (width(n) / 2 - 4)
            top = y[n] - 1
            out.append(
                f'<circle class="{kind}" cx="{x:.0f}" cy="{top}" r="9"/>'
                f'<text class="n" x="{x:.0f}" y="{top + 4}" text-anchor="middle">{i}</text>'
            )
    foot = high - 14
    for x, kind, text in ((20, "one", "grad(f)(x)"), (140, "two", "trace(f, 0.5)(0.5)")):
        out.append(
            f'<circle class="{kind}" cx="{x}" cy="{foot - 4}" r="7"/>'
            f'<text class="small" x="{x + 14}" y="{foot}">{text}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


# --- the page -------------------------------------------------------------------------------------

PAGE = """# Architecture

![The packages, and which imports which](architecture.svg)

An import points down: `tests/test_layers.py` holds the rows against every import. A line is an
import that no other lines imply. The numbers are the way of a value, in the order in which packages
are first entered: on the left of a box by a gradient, on the right by a function that is traced to
a program, which is run. `tests/architecture_page.py` makes picture and page from the imports and
from runs.

## The packages

| package | what it is | imports |
|---|---|---|
{packages}

## The ways of a value

Each is run twice; the second run enters these packages, in this order.

| what is run | the packages |
|---|---|
{ways}

[Reading order](reading-order.md) goes through the files of the first way;
[how to add](how-to-add.md) tells where new parts go.
"""


def made() -> dict[str, str]:
    """The files of the page: name -> text."""
    texts, edges = packages(), needed()
    with TemporaryDirectory() as folder:
        found = {name: entered(run) for name, run in ways(Path(folder)).items()}
    below = {n: sorted(b for a, b in edges if a == n) for n in texts}
    rows = [f"| `{n}` | {text} | {', '.join(below[n])} |" for n, text in texts.items()]
    told = [f"| `{name}` | {', '.join(way)} |" for name, way in found.items()]
    two = [found["grad(f)(x), f writes into an array"], found["trace(f, 0.5)(0.5)"]]
    return {
        "architecture.md": PAGE.format(packages="\n".join(rows), ways="\n".join(told)),
        "architecture.svg": picture(texts, edges, two),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    for name, text in made().items():
        (folder / name).write_text(text, encoding="utf-8")

"""The lines of texts, each with the user's line that it comes from."""

import ast
import linecache
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lineara.engines import Listing
from lineara.linear_a import syntax as ir
from lineara.linear_a.show import show_binding, show_def, show_leaf
from lineara.text.python_source import tree_of


class Row(NamedTuple):
    """A line of a text, and the user's line, `file:number`, or nothing."""

    text: str
    line: str


def rows_of(defs: Mapping[str, ir.Def]) -> list[Row]:
    """The text of definitions, a binding a row.

    >>> from lineara.linear_a.parse import parse
    >>> [row.text for row in rows_of(parse("def f(x: f64;) -> (f64;) = sin(x)").defs)]
    ['def f(x: f64;) -> (f64;) =', '  sin(x)', '']
    """
    rows: list[Row] = []
    for d in defs.values():
        rows.append(Row(show_def(d).split("\n", 1)[0], ""))
        rows += [Row(f"  let {show_binding(b)} in", ir.line_of(b)) for b in d.body.bindings]
        rows += [Row(f"  {show_leaf(d.body.leaf)}", ir.line_of(d.body.leaf)), Row("", "")]
    return rows


def assembly_rows(listed: Listing) -> list[Row]:
    """Machine code with the user's lines: its comments say which binding comes next."""
    rows, line = [], ""
    for text in listed.assembly.rstrip().split("\n"):
        if text.startswith("# "):
            line = listed.places.get(text[2:], "")
        elif text.strip().startswith(".cfi"):
            continue
        rows.append(Row(text.expandtabs(4), line))
    return rows


class Source(NamedTuple):
    """A stretch of one of the user's files."""

    file: str
    first: int
    lines: tuple[str, ...]


def sources_of(places: Iterable[str]) -> list[Source]:
    """The functions that lines lie in, whole; a line that lies in none is alone.

    >>> sources_of(["<nowhere>:3"])
    []
    """
    numbers: dict[str, set[int]] = {}
    for place in places:
        file, _, number = place.rpartition(":")
        if file:
            numbers.setdefault(file, set()).add(int(number))
    stretches: list[Source] = []
    for file, wanted in numbers.items():
        text = linecache.getlines(file)
        spans = _spans("".join(text), wanted) if text else []
        stretches += [
            Source(file, a, tuple([t.rstrip("\n") for t in text[a - 1 : b]])) for a, b in spans
        ]
    return stretches


def _spans(text: str, wanted: set[int]) -> list[tuple[int, int]]:
    """From which line to which the functions around lines go."""
    try:
        nodes = [n for n in ast.walk(tree_of(text)) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    except SyntaxError:
        nodes = []
    spans = {(n, n) for n in wanted}
    for node in nodes:
        start = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", ())]])
        end = node.end_lineno or start
        if any([start <= n <= end for n in wanted]):
            spans.add((start, end))
    outer = sorted(spans, key=lambda s: (s[0], -s[1]))
    kept: list[tuple[int, int]] = []
    for a, b in outer:
        if kept and a <= kept[-1][1]:
            continue
        kept.append((a, b))
    return kept

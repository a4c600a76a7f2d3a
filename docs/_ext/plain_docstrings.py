"""Docstrings of this library as reStructuredText.

They are plain text: paragraphs, `code`, examples at a prompt, and tables of keywords, a word and
after two spaces or more what it is.
"""

import re
from itertools import groupby
from pathlib import Path

from sphinx.application import Sphinx

NAMES = Path(__file__).parents[1] / "api" / "index.md"
LIST = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\n.*?\n\n((?:   \w+\n)+)", re.DOTALL | re.MULTILINE
)
ROW = re.compile(r"^(\S(?:\S| (?! ))*) {2,}(\S.*)$")


def groups() -> list[list[str]]:
    """The public names as the page of all names puts them together, each with its module."""
    lists = LIST.findall(NAMES.read_text(encoding="utf-8"))
    return [[f"{module}.{name}" for name in names.split()] for module, names in lists]


GROUPS = groups()
PUBLIC = {name.removeprefix("lineara."): name for group in GROUPS for name in group}


def code(text: str) -> str:
    """A piece of code, a link where it is a public name."""
    known = PUBLIC.get(text.removeprefix("lineara."))
    return f":py:obj:`{text} <{known}>`" if known else f"``{text}``"


def see_also(name: str) -> list[str]:
    """The line that names the neighbours of a public name of the library itself."""
    beside = [other for group in GROUPS if name in group for other in group if other != name]
    if name.count(".") > 1 or not beside:
        return []
    return ["", f".. seealso:: {', '.join(code(other) for other in beside)}"]


def escaped(text: str) -> str:
    """A line with its code in double backquotes, and no other markup."""
    pieces = re.split(r"``(.+?)``|`(.+?)`", text)
    shown = [re.sub(r"([\\*|`_])", r"\\\1", plain) for plain in pieces[::3]]
    codes = [double or single for double, single in zip(pieces[1::3], pieces[2::3], strict=True)]
    whole = shown[0]
    for piece, after in zip(codes, shown[1:], strict=True):
        before = "\\ " if whole[-1:].isalnum() else ""
        whole += f"{before}{code(piece)}" + ("\\ " if after[:1].isalnum() else "") + after
    return whole


def paragraph(lines: list[str]) -> list[str]:
    """The lines of one paragraph in reStructuredText."""
    first = lines[0].lstrip()
    if first.startswith(">>>"):
        return lines
    if all(line.lstrip().startswith("|") for line in lines):
        return grid([line.strip() for line in lines])
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    inner = [line[margin:] for line in lines]
    if all(ROW.match(line) or line.startswith("   ") for line in inner) and ROW.match(inner[0]):
        return table(inner)
    if margin >= 4:
        return ["::", "", *lines]
    if any(line.startswith(" ") for line in inner):  # laid out by hand
        return [f"| {escaped(line.lstrip())}" for line in inner]
    return [escaped(line) for line in inner]


def table(lines: list[str]) -> list[str]:
    """Keywords and what they are, as definitions."""
    rows: list[tuple[str, list[str]]] = []
    for line in lines:
        match = ROW.match(line)
        if match and not line.startswith("   "):
            rows.append((match[1], [match[2]]))
        else:
            rows[-1][1].append(line.strip())
    return [
        text
        for word, told in rows
        for text in (f"``{word}``", *[f"    {escaped(line)}" for line in told])
    ]


def grid(lines: list[str]) -> list[str]:
    """A table between bars, its first line the heads of the columns."""
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in lines
        if not set(line) <= set("|-: ")
    ]
    return [
        ".. list-table::",
        "   :header-rows: 1",
        "",
        *[
            f"   {'* ' if i == 0 else '  '}- {escaped(cell)}"
            for row in rows
            for i, cell in enumerate(row)
        ],
    ]


def process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list) -> None:
    """Put reStructuredText in place of the lines of a docstring."""
    made: list[str] = []
    for blank, group in groupby(lines, lambda line: not line.strip()):
        made += [""] if blank else paragraph([*group])
    lines[:] = [*made, *see_also(name), ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""A page that is read by Sphinx, made of a page that is read anywhere.

Three things differ.  A page of the site that consists of one `{include}` is the file it names, so
README and the results of benchmarks stay where they are.  A link leads to the page of the site
that shows its file.  And ```` ```python ```` is a cell: it is run, and in place of the comments
that say what is printed stands what was printed.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INCLUDE = re.compile(r"\A```\{include\} (\S+)\n```\s*\Z")
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(?=\))")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROMISE = re.compile(r"^( *print\(.*\))  # .*$", re.MULTILINE)
NOTEBOOK = """---
file_format: mystnb
kernelspec:
  name: python3
---

"""


def included(page: Path) -> Path | None:
    """The file that a page consists of, if it consists of one."""
    match = INCLUDE.match(page.read_text(encoding="utf-8"))
    return (page.parent / match[1]).resolve() if match else None


def shown_elsewhere() -> dict[Path, Path]:
    """The files outside of this folder, and the pages that show them."""
    pairs = ((included(page), page) for page in DOCS.rglob("*.md"))
    return {file: page for file, page in pairs if file is not None}


def with_links_to_pages(text: str, origin: Path, page: Path, shown: dict[Path, Path]) -> str:
    """The text of `origin` as that of `page`: its links lead to the same files, or their pages."""

    def link(match: re.Match[str]) -> str:
        file = (origin.parent / match[2]).resolve()
        if not file.exists():
            return match[0]
        target = os.path.relpath(shown.get(file, file), page.parent)
        return f"{match[1]}{target}{match[3] or ''}"

    return LINK.sub(link, text)


def with_cells(text: str, raises: bool) -> str:
    """The text with its blocks of Python as cells that are run."""
    first = iter([raises])

    def cell(match: re.Match[str]) -> str:
        code = PROMISE.sub(r"\1", match[1])
        tags = ":tags: [raises-exception]\n\n" if next(first, False) else ""
        return f"```{{code-cell}} python\n{tags}{code}```"

    cells, count = BLOCK.subn(cell, text)
    return NOTEBOOK + cells if count else text


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """What Sphinx reads in place of a page's text."""
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return
    origin, text = page, source[0]
    outside = included(page)
    if outside is not None:
        origin, text = outside, outside.read_text(encoding="utf-8")
        app.env.note_dependency(str(outside))
    text = with_links_to_pages(text, origin, page, shown_elsewhere())
    raises = page.parent.name == "errors" and page.stem != "index"
    source[0] = with_cells(text, raises)


REMOTE = re.compile(
    r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"'
)


def refuse_what_is_fetched(app: Sphinx, failure: Exception | None) -> None:
    """An error where a page would load a script, style or picture from elsewhere."""
    if failure is not None:
        return
    for page in Path(app.outdir).rglob("*.html"):
        for tag in REMOTE.findall(page.read_text(encoding="utf-8")):
            raise ExtensionError(f"{page.name} would fetch {tag}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("source-read", read)
    app.connect("build-finished", refuse_what_is_fetched)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The site of the documentation, as far as it can be seen without building it: `make docs` does."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)
MADE = {"gallery/index"}  # pages that the build writes


def entries(page: Path) -> set[Path]:
    """The pages that the tables of contents of a page name."""
    named: set[Path] = set()
    for tree in TREE.findall(page.read_text(encoding="utf-8")):
        for line in tree.splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line.strip())
            if not entry or entry.startswith(":"):
                continue
            if entry in MADE:
                continue
            listed = page.parent.glob(f"{entry}.md")
            named |= {file.resolve() for file in listed if file != page}
            assert "*" in entry or (page.parent / f"{entry}.md").exists(), f"{page.name}: {entry}"
    return named


def test_the_table_of_contents_reaches_every_page():
    reached, todo = set(), [(DOCS / "index.md").resolve()]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            todo += entries(page)
    assert {page.resolve() for page in DOCS.rglob("*.md")} - reached == set()


def test_no_page_stands_in_two_places_of_the_table_of_contents():
    named = [entry for page in DOCS.rglob("*.md") for entry in entries(page)]
    assert len(named) == len(set(named))

"""The site of the documentation, as far as it can be seen without building it: `make docs` does."""

import importlib
import re
from pathlib import Path

import pytest

import lineara
from lineara.errors import LinearaError

DOCS = Path(__file__).parent.parent / "docs"
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)
MADE = {"gallery/index"}  # pages that the build writes


def entries(page: Path) -> list[Path]:
    """The pages that the tables of contents of a page name."""
    named: list[Path] = []
    for tree in TREE.findall(page.read_text(encoding="utf-8")):
        for line in tree.splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line.strip())
            if not entry or entry.startswith(":"):
                continue
            if entry in MADE:
                continue
            listed = page.parent.glob(f"{entry}.md")
            named += [file.resolve() for file in listed if file != page]
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


LIST = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\n.*?\n\n((?:   \w+\n)+)", re.DOTALL | re.MULTILINE
)


def listed(module: str) -> list[str]:
    """The names of a module that the page of all names makes a page for."""
    text = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    return sorted(name for m, names in LIST.findall(text) if m == module for name in names.split())


def test_every_public_name_has_a_page():
    modules = {
        "distributed",
        "errors",
        "geometry",
        "testing",
    }  # modules that are no names of `import *`
    assert listed("lineara") == sorted({*lineara.__all__, *modules}), "list it in docs/api/index.md"


@pytest.mark.parametrize("name", ["calculus", "diagrams", "policies", "random", "testing"])
def test_every_public_name_of_a_module_has_a_page(name: str):
    module = importlib.import_module(f"lineara.{name}")
    assert listed(module.__name__) == sorted(module.__all__), "list it in docs/api/index.md"


def test_every_error_is_among_the_names():
    kinds = [kind for kind in vars(lineara.errors).values() if isinstance(kind, type)]
    public = {k.__name__ for k in kinds if issubclass(k, (LinearaError, Warning))}
    assert set(listed("lineara.errors")) <= public
    assert {page.stem for page in (DOCS / "errors").glob("*Error.md")} <= {
        *listed("lineara.errors")
    }

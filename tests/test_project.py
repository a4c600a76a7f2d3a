"""What the project says about itself in two places agrees."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from lineara.facts.primitive import elementwise, registry

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", ["ruff", "pyright"])
def test_pre_commit_pins_the_versions_of_the_dev_extra(tool: str):
    dev = [pin for pin in PROJECT["optional-dependencies"]["dev"] if pin.startswith(tool)]
    assert dev
    assert set(re.findall(rf'"({tool}\b[^"]*)"', HOOKS)) == set(dev)


def test_every_extra_that_the_makefile_installs_exists():
    wanted = re.findall(r"\.venv/with-(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(wanted) <= PROJECT["optional-dependencies"].keys()


def test_a_changelog_fragment_is_two_sentences():
    fragments = sorted((ROOT / "changelog.d").glob("[0-9]*.md"))
    assert all(re.fullmatch(r"\d{3}", fragment.stem) for fragment in fragments)
    for fragment in fragments:
        text = fragment.read_text(encoding="utf-8").strip()
        assert len(re.findall(r"\.(?:\s|$)", text)) == 2, fragment.name


def test_the_two_lines_of_contributing_are_lines_of_the_two_files():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    pairs = zip(
        re.findall(r"^```text\n(.+)\n```", text, re.MULTILINE),
        ["src/lineara/ops/elementwise.py", "tests/test_primitives.py"],
        strict=True,
    )
    for line, file in pairs:
        assert (
            line in (ROOT / file).read_text(encoding="utf-8").replace("\n    ", "\n").splitlines()
        )


def test_a_primitive_that_numpy_lacks_asks_for_an_array_function():
    with pytest.raises(AssertionError, match=r"^elementwise: there is no np\.sinhc: give array="):
        elementwise("sinhc", lambda y, x: 1)
    assert "sinhc" not in registry.primitives


FOUND = 634  # assignments to `found` that are left; lower it with every file that is read again


def test_no_more_variables_are_called_found():
    """A variable is named after its value: `found` says only that something was computed."""
    files = (ROOT / "src").rglob("*.py")
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    names = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)]
    count = sum(n.id == "found" and isinstance(n.ctx, ast.Store) for n in names)
    assert count <= FOUND, "name a variable after its value: y, node, root, weights, rows, .."

"""The page of the architecture says what the imports say, and what a run enters."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"


@pytest.mark.slow("reads all of the source, in a Python of its own")
def test_page_and_picture_are_made_from_the_imports_and_from_runs(tmp_path: Path):
    """If this fails, run tests/architecture_page.py."""
    subprocess.run([sys.executable, TESTS / "architecture_page.py", tmp_path], check=True)
    for file in tmp_path.iterdir():
        assert (DOCS / file.name).read_text(encoding="utf-8") == file.read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 2

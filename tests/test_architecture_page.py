"""The page of the architecture says what the imports say, and what a run enters."""

import pytest
from architecture_page import DOCS, made


@pytest.mark.slow("reads all of the source, and compares the page with six runs")
def test_page_and_picture_are_made_from_the_imports_and_from_runs():
    """If this fails, run tests/architecture_page.py."""
    for name, text in made().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text

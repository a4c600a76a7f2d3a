"""NumPy's own tests, and Python's of numbers, with every floating value lifted.

Each test that passes plainly passes inside of a differentiation, too, or an error of ours comes out
of it that is one of the kept reasons.  What still differs is counted, file by file, in
`counts.toml`: the numbers may only fall.  A file that was never counted is skipped.
"""

import tomllib
from pathlib import Path

import pytest
from suites import HERE, files, judged
from table import PAGE, page

FILES = files()
KEPT = tomllib.loads((HERE / "counts.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lift", KEPT)
@pytest.mark.parametrize("name", FILES)
def test_an_installed_test_comes_out_as_it_does_plainly(name: str, lift: str, tmp_path: Path):
    if name not in KEPT[lift]:
        pytest.skip(f"never counted: python tests/conformance/table.py {name} {lift}")
    found = judged(name, lift, tmp_path)
    shown = "\n".join([f"{test}: {how}" for test, how in found.different.items()])
    assert len(found.different) <= KEPT[lift][name]["different"], shown


def test_the_page_shows_the_kept_counts():
    """If this fails, run tests/conformance/table.py with a pattern that no file has."""
    assert PAGE.read_text(encoding="utf-8") == page(KEPT)

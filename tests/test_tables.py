"""A table of laws tries each law for each of its entries, and says which one is broken by which."""

import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tables import Laws, try_all


def test_every_law_is_tried_for_its_entries_and_no_others():
    laws, tried = Laws(), []

    @laws.of(["a", "b"])
    def first(entry):
        tried.append((first, entry))

    @laws.of(["b", "c", "c"])
    def second(entry):
        tried.append((second, entry))

    asked = []

    @laws.of(["a", "c"], where=lambda entry: asked.append(entry) or entry == "c")
    def third(entry):
        tried.append((third, entry))

    test = laws.test()
    (mark,) = test.pytestmark
    assert [case.id for case in mark.args[1]] == ["a", "b", "c"]
    assert asked == []
    for case in mark.args[1]:
        test(*case.values)
    assert tried == [(first, "a"), (first, "b"), (second, "b"), (second, "c"), (third, "c")]


def test_an_error_names_its_law_and_the_entry():
    def is_small(entry):
        assert entry < 10, "too large"

    def is_even(entry):
        assert entry % 2 == 0, "odd"

    try_all(4, [is_small, is_even])
    with pytest.raises(AssertionError, match="odd") as caught:
        try_all(5, [is_small, is_even])
    assert caught.value.__notes__ == ["the law is_even of 5"]


def test_the_errors_of_several_laws_come_together():
    def is_small(entry):
        assert entry < 10, "too large"

    def is_even(entry):
        raise ValueError("odd")

    with pytest.raises(ExceptionGroup, match="2 laws are broken by 11") as caught:
        try_all(11, [is_small, is_even])
    assert [type(e) for e in caught.value.exceptions] == [AssertionError, ValueError]


# --- what conftest.py does ------------------------------------------------------------------------

rng = np.random.default_rng(0)


@pytest.mark.parametrize("again", [False, True])
def test_what_a_test_draws_depends_on_its_name_alone(request, again):
    seed = list(request.node.nodeid.encode())
    assert rng.random() == np.random.default_rng(seed).random()


TESTS = """
import pytest
from hypothesis import given, settings, strategies

@pytest.mark.parametrize("line", range(80))
def test_a_table(line):
    pass

def test_a_loop(share):
    assert len(share(range(80))) in (10, 20, 80)

@pytest.mark.slow("a loop")
def test_slow():
    pass

@pytest.mark.slow("it asks")
def test_asks(request):
    assert request.config.option.all

class TestIt:
    @settings(max_examples=80, deadline=None)
    @given(strategies.integers())
    def test_many(self, n):
        print("drawn", n)
"""
SHOWN = '"""\n>>> 1 + 1\n2\n>>> 2 + 2\n5\n"""\n'


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What pytest says of some small files under our conftest, by its options."""
    root = tmp_path_factory.mktemp("small")
    ours = Path(__file__).parent.parent / "conftest.py"
    (root / "conftest.py").write_text(ours.read_text(encoding="utf-8"))
    (root / "tests").mkdir()
    (root / "tests" / "test_it.py").write_text(TESTS)
    (root / "tests" / "shown.py").write_text(SHOWN)

    @cache
    def run(*options):
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "-s", "--rootdir", root, *options]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", root]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
        return ran.stdout + ran.stderr

    return run


def names_of(said):
    """The tests that passed."""
    return re.findall(r"PASSED tests/test_it.py::(.*)", said)


def test_a_share_of_a_table_is_drawn_by_the_seed(said):
    first, other = [set(names_of(said("--seed", seed))) for seed in "12"]
    every = set(names_of(said("--seed", "1", "--all")))
    fourth = set(names_of(said("--seed", "1", "--slow", "--share", "4")))
    draw = random.Random("1 tests/test_it.py::test_a_table")
    lines = [draw.choice(range(k, k + 8)) for k in range(0, 80, 8)]
    assert first == {"test_a_loop", "TestIt::test_many"} | {f"test_a_table[{k}]" for k in lines}
    assert first != other
    assert len(first) == len(other) == 12
    assert len(every) == 84
    assert first | other | {"test_slow"} <= every
    assert "test_slow" in fourth
    assert len(fourth) == 23


@pytest.mark.parametrize(
    ("options", "times"), [((), 10), (["--slow", "--share", "4"], 20), (["--all"], 80)]
)
def test_hypothesis_draws_a_share_of_its_examples(said, options, times):
    assert said("--seed", "1", *options).count("drawn ") == times + 1  # and the last line


def test_slow_tests_and_whole_tables_are_all(said):
    """Tests ask for `all` themselves, and draw more then."""
    assert "1 passed" in said("--seed", "1", "--slow", "--share", "1", "-k", "asks")
    assert "1 failed" in said("--seed", "1", "--slow", "--share", "2", "-k", "asks")


def test_no_share_of_none(said):
    assert "--share 0: one in N of a table, N from 1 on" in said("--seed", "1", "--share", "0")


def test_a_run_has_fewer_than_8500_items(request):
    assert request.config.option.share < 8 or len(request.session.items) < 8_500


def test_a_doctest_that_fails_is_shown(said):
    shown = said("--seed", "1")
    assert "FAILED tests/shown.py::examples" in shown
    assert re.search(r"Expected:\n\s+5\nGot:\n\s+4\n", shown)
    told = "drawn by --seed 1, without slow tests, with one in 8 of large tables (--all)\n"
    assert told in shown
    assert "drawn by --seed 1\n" in said("--seed", "1", "--all")

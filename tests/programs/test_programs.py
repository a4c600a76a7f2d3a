"""Values, exceptions and what a program sees are those of the plain run, or there is an error."""

import containers
import layouts
import of_numbers
import pytest
from judge_programs import RUNS

# What is refused, and why: what is written through a view that Lineara cannot write through.
REFUSED = {"layouts": ["l21", "l34", "l35"], "of_numbers": [], "containers": []}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("file", [layouts, of_numbers, containers], ids=lambda m: m.__name__)
def test_programs_do_what_they_do_plainly(file, run):
    different, refused = file.PROGRAMS.differences(run)
    assert not different
    assert refused == REFUSED[file.__name__]

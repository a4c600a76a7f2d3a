"""The faults that are put into the sources: what they are, and the list of those that are none."""

import ast
import tomllib

import pytest
from faults import LISTED, Site, changed, functions_of, key_of, make, text_of

from lineara.passes import names

EQUIVALENT = tomllib.loads(LISTED.read_text(encoding="utf-8"))["fault"]


@pytest.mark.parametrize("one", EQUIVALENT, ids=lambda one: f"{one['place']} {one['reason']}")
def test_what_is_listed_is_in_the_source(one):
    assert {*one} == {"file", "place", "before", "after", "reason"}
    lines = ast.unparse(ast.parse(text_of(one["file"]))).splitlines()
    assert one["before"] in map(str.strip, lines)
    assert one["before"] != one["after"]
    *_, name = one["place"].split(".")
    assert name in text_of(one["file"])


def test_a_fault_tells_its_place_and_changes_one_function():
    def find(tree):
        """The suffix of a tangent's name."""
        strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == "d"]
        return [(strings[0], lambda: setattr(strings[0], "value", "e"))]

    made = make(Site("passes/names.py", 0), find)
    assert (made.place, made.before, made.after) == (
        "tangent", "return f'd{name}'", "return f'e{name}'",
    )  # fmt: skip
    ((old, new),) = changed("passes/names.py", made.tree)
    assert (old.co_name, new.co_name) == ("tangent", "tangent")
    assert functions_of(["passes/names.py"])[key_of(old)] == [names.tangent]
    again = type(names.tangent)(new, {})
    assert (names.tangent("x"), again("x")) == ("dx", "ex")

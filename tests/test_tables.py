"""A table of laws tries each law for each of its entries, and says which one is broken by which."""

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

    (mark,) = laws.test().pytestmark
    assert [case.id for case in mark.args[1]] == ["a", "b", "c"]
    for case in mark.args[1]:
        try_all(*case.values)
    assert tried == [(first, "a"), (first, "b"), (second, "b"), (second, "c")]


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

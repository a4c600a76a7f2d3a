"""The page of functions says what the registry says, and every function has a status."""

import importlib
import inspect

import numpy as np
import pytest

import lineara
from lineara.errors import NoRuleError
from lineara.facts.primitive import registry
from lineara.tape.node import Array


@pytest.fixture(scope="module")
def functions_page():
    """The script that makes the page; it imports every family of SciPy."""
    return importlib.import_module("functions_page")


def test_the_page_is_made_from_the_registry(functions_page):
    """If this fails, run tests/functions_page.py."""
    assert functions_page.PAGE.read_text(encoding="utf-8") == functions_page.page()


def test_every_function_has_a_status(functions_page):
    assert functions_page.unknown() == []


def test_what_is_refused_is_refused_with_its_advice():
    refused = [f for f in registry.foreign.values() if f.kind == "refused"]
    for function, advice in [(f.original, f.advice) for f in refused]:
        if function is np.frompyfunc:  # which makes the function that is refused
            continue
        with pytest.raises(NoRuleError) as caught:
            lineara.grad(lambda x, f=function: np.sum(f(x, x)))(np.ones(2))
        assert caught.value.message.endswith(advice), function


def test_what_is_plain_takes_no_arrays_that_could_be_traced(functions_page):
    """A function that NumPy dispatches on its arguments is not just a matter of names."""
    dispatched = [
        f"{listed.name}.{n}"
        for listed in functions_page.MODULES
        for n in listed.plain
        if hasattr(functions_page.public(listed).get(n), "_implementation")
    ]
    integers = ["busday_count", "busday_offset", "datetime_as_string", "is_busday", "packbits"]
    integers += ["ravel_multi_index", "unpackbits", "unravel_index", "ix_", "mask_indices", "info"]
    assert {n.removeprefix("numpy.") for n in dispatched} <= set(integers)


def test_every_method_of_an_array_is_known():
    unknown = [
        name
        for name, method in inspect.getmembers(np.ndarray)
        if not name.startswith("_") and callable(method) and not hasattr(Array, name)
    ]
    assert unknown == ["setfield"]  # which writes bytes

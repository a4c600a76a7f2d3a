"""A primitive is evaluated in the array namespace that it is given, or declares `host`."""

import array_api_strict as strict
from namespaces import evaluated, wrong

from lineara.facts.primitive import registry


def test_the_value_in_another_namespace_is_that_of_numpy():
    found = {name: wrong(strict, type(strict.zeros(1)), name) for name in evaluated(host=False)}
    assert {name: why for name, why in found.items() if why} == {}


def test_no_primitive_declares_host_that_every_namespace_evaluates():
    """It would go through NumPy and back for nothing; what acts as it runs calls Python."""
    array = type(strict.zeros(1))
    names = [name for name in evaluated(host=True) if not registry.primitives[name].acts]
    assert [name for name in names if not wrong(strict, array, name)] == []

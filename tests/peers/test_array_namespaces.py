"""A primitive that does not declare `host` is evaluated in JAX's namespace too."""

import jax
import jax.numpy
import pytest
from namespaces import evaluated, wrong

jax.config.update("jax_enable_x64", True)

# The names of the standard that jax.numpy.linalg or jax.numpy do not have, or have otherwise.
OTHERWISE: set[str] = set()


@pytest.mark.parametrize("name", [n for n in evaluated(host=False) if n not in OTHERWISE])
def test_the_value_in_another_namespace_is_that_of_numpy(name: str):
    assert wrong(jax.numpy, jax.Array, name) is None

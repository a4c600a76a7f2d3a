"""The expressions of tests/ops/test_numpy_forms.py, with JAX as the oracle of their cotangents."""

import importlib.util
from pathlib import Path
from types import FunctionType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lineara

FILE = Path(__file__).parent.parent / "ops" / "test_numpy_forms.py"
SPEC = importlib.util.spec_from_file_location("numpy_forms", FILE)
assert SPEC is not None
assert SPEC.loader is not None
forms = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(forms)

jax.config.update("jax_enable_x64", True)
LINES = [line for line in forms.LINES if ".item(" not in line]  # which detaches under JAX
UNKNOWN_TO_JAX = (TypeError, AttributeError, NotImplementedError, ValueError, IndexError)


def under_jax(f):
    """The function with jax.numpy in place of NumPy."""
    names = f.__globals__ | {"np": jnp, "flat": flat}
    return FunctionType(f.__code__, names, f.__name__)


def flat(out):
    if isinstance(out, tuple | list):
        return jnp.concatenate([jnp.ravel(v) for v in out])
    return jnp.asarray(out)


@pytest.mark.parametrize("line", LINES)
def test_cotangents_agree_with_jax(line):
    f, point = forms.form(line)
    y, L = lineara.linearize(f, *point)
    y_bar = forms.random_like(y, 9)
    try:
        _, pull = jax.vjp(under_jax(f), *map(jnp.asarray, point))
        theirs = pull(jnp.asarray(y_bar))
    except UNKNOWN_TO_JAX as e:
        pytest.skip(f"JAX does not take it: {e!r}"[:200])
    ours = y_bar @ L
    for a, b in zip((ours,) if len(point) == 1 else ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)

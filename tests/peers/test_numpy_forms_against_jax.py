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
BOTH_TRIANGLES = ("eigh", "eigvalsh", "hermitian=True")  # JAX reads both, NumPy one: see below
LINES = [line for line in forms.LINES if ".item(" not in line]  # which detaches under JAX
LINES = [line for line in LINES if not any(name in line for name in BOTH_TRIANGLES)]
# JAX gives distinct values no slope, and a deviation of one number the slope NaN
ELSEWHERE = ("unique", "union1d", "intersect1d", "setdiff1d", "setxor1d", "np.nanstd(G, axis=0)")
# no slope to the ends of ranges, the slope NaN to 0 ** 0, and the roots at zero another place
ELSEWHERE += ("arange(s", "grid[0:s", "r_[0:s", "vander(s * rows", "roots(np.append(x, 0.0))")
LINES = [line for line in LINES if not any(name in line for name in ELSEWHERE)]
UNKNOWN_TO_JAX = (TypeError, AttributeError, NotImplementedError, ValueError, IndexError)


def under_jax(f):
    """The function with jax.numpy in place of NumPy, also in what the lines call."""
    called = {g.__name__: g for g in (forms.gram, forms.projector, forms.spectral)}
    inner = {k: FunctionType(g.__code__, {"np": jnp}, k) for k, g in called.items()}
    names = f.__globals__ | inner | {"np": jnp, "flat": flat}
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


OF_HERMITIAN = {
    "values": lambda xp, a: xp.linalg.eigvalsh(a),
    "moduli of vectors": lambda xp, a: xp.abs(xp.linalg.eigh(a)[1]),
    "exp": lambda xp, a: exponential(xp, *xp.linalg.eigh(a)),
    "cholesky": lambda xp, a: xp.linalg.cholesky(a @ a + xp.eye(5)),
    "pinv": lambda xp, a: xp.linalg.pinv(a, hermitian=True),
    "singular values": lambda xp, a: xp.linalg.svd(a, hermitian=True, compute_uv=False),
}


def exponential(xp, w, v):
    return (v * xp.exp(0.3 * w)) @ xp.conj(v.T)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", OF_HERMITIAN)
def test_matrices_that_are_hermitian_by_their_making_have_the_same_gradient(name, complex):
    rng = np.random.default_rng(2)
    a = rng.normal(size=(5, 5)) + (1j * rng.normal(size=(5, 5)) if complex else 0)

    def loss(xp, a):
        y = OF_HERMITIAN[name](xp, a + xp.conj(a.T))
        c = np.cos(np.arange(y.size)).reshape(y.shape)
        return xp.sum(xp.real(y) * c) + xp.sum(xp.imag(y) * c[::-1])

    ours = lineara.grad(lambda a: loss(np, a))(a)
    theirs = np.conj(jax.grad(lambda a: loss(jnp, a))(jnp.asarray(a)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)

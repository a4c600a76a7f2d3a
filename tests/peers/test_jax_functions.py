"""Functions of ours in JAX against the same functions of JAX's own, under JAX's transformations."""

import numpy as np
import pytest

import lineara
from lineara.errors import NoRuleError, StagingError, TypeMismatchError

jax = pytest.importorskip("jax")
jnp = jax.numpy


def layer(x, p, n=2):
    """A loop that fills an array."""
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sin(x[i]) * p["w"][i] ** n
    return {"sum": np.sum(y * y), "y": y, "most": np.argmax(y), "name": "a layer"}


def ours(x, w):
    return lineara.to_jax(layer)(x, {"w": w}, n=3)["sum"]


def theirs(x, w):
    return jnp.sum((jnp.sin(x) * w**3) ** 2)


def point():
    return jnp.array([0.5, 1.0, 1.5]), jnp.array([1.0, 2.0, 3.0])


def lanes(f):
    x, w = point()
    return jax.vmap(f, (0, None))(jnp.stack([x, x + 1.0]), w)


def scanned(f):
    x, w = point()

    def loss(x):
        return jnp.sum(jax.lax.scan(lambda c, _: (c * f(c, w) * 1e-3, None), x, None, 2)[0])

    return jax.grad(loss)(x)


TRANSFORMED = {
    "value": lambda f: f(*point()),
    "jit": lambda f: jax.jit(f)(*point()),
    "grad": lambda f: jax.grad(f, (0, 1))(*point()),
    "jit of grad": lambda f: jax.jit(jax.grad(f, (0, 1)))(*point()),
    "jvp": lambda f: jax.jvp(f, point(), point()),
    "vjp": lambda f: jax.vjp(f, *point())[1](2.0),
    "linearize": lambda f: jax.linearize(f, *point())[1](*point()),
    "hessian": lambda f: jax.hessian(f, (0, 1))(*point()),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(f))(*point()),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f))(*point()),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f))(*point()),
    "a third derivative": lambda f: jax.jit(jax.jacfwd(jax.hessian(f)))(*point()),
    "vmap": lanes,
    "vmap of grad": lambda f: lanes(jax.grad(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(*point()),
    "a scan": scanned,
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_and_their_compositions(name):
    transformed = TRANSFORMED[name]
    for a, b in zip(*map(jax.tree.leaves, (transformed(ours), transformed(theirs))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_the_result_has_its_containers():
    x, w = point()
    out = lineara.to_jax(layer)(x, {"w": w})
    assert (out["name"], out["most"].dtype) == ("a layer", jnp.int64)
    assert isinstance(out["y"], jax.Array)


def test_complex_numbers_have_the_gradient_that_jax_gives_them():
    z = jnp.array([1 + 2j, 0.5j])
    f = lineara.to_jax(lambda z: np.sum(np.abs(z) ** 2 * np.real(z)))

    def g(z):
        return jnp.sum(jnp.abs(z) ** 2 * jnp.real(z))

    np.testing.assert_allclose(jax.grad(f)(z), jax.grad(g)(z), rtol=1e-12)
    along = [jax.jvp(jax.grad(h), (z,), (1j * z,))[1] for h in (f, g)]
    np.testing.assert_allclose(*along, rtol=1e-12)
    cubes = lineara.to_jax(lambda z: np.sum(z**3))
    np.testing.assert_allclose(jax.grad(cubes, holomorphic=True)(z), 3 * z**2, rtol=1e-12)


def test_rounding_to_32_bits_is_said():
    jax.config.update("jax_enable_x64", False)
    x = jnp.ones(2)
    wide = lineara.to_jax(lambda x: x * np.arange(2.0))
    said = (
        "to_jax: the function gives float64, and JAX is configured for 32 bits, so this is "
        'rounded to float32; jax.config.update("jax_enable_x64", True) keeps it'
    )
    for f in (wide, jax.jit(wide)):
        with pytest.warns(UserWarning, match="to_jax: ") as caught:
            assert f(x).dtype == jnp.float32
        assert {str(w.message) for w in caught} == {said}
    assert lineara.to_jax(lambda x: 2.0 * float(np.sum(x)))(x).dtype == jnp.float32
    with pytest.warns(UserWarning, match="from_jax: an argument is of float64, and JAX is"):
        assert lineara.from_jax(jnp.sin)(np.ones(2)).dtype == np.float32


def test_a_sampler_of_jaxs_on_a_density_of_ours():
    def log_density(theta):
        x, v, total = 1.0, 0.0, 0.0
        for seen in (0.9, 0.5, -0.1, -0.6):
            total = total - 0.5 * ((x - seen) / 0.2) ** 2
            v = v - 0.5 * (theta[0] * x + theta[1] * v)
            x = x + 0.5 * v
        return total - 0.5 * np.sum(theta**2)

    ours = lineara.to_jax(log_density)
    slope = jax.grad(ours)

    def leapfrog(state, _):
        q, p = state
        p = p + 0.005 * slope(q)
        q = q + 0.01 * p
        return (q, p + 0.005 * slope(q)), None

    @jax.jit
    def transition(key, q):
        momentum, chance = jax.random.split(key)
        p = jax.random.normal(momentum, q.shape)
        (q1, p1), _ = jax.lax.scan(leapfrog, (q, p), None, 30)
        lost = ours(q1) - p1 @ p1 / 2 - ours(q) + p @ p / 2
        accepted = jnp.log(jax.random.uniform(chance)) < lost
        return jnp.where(accepted, q1, q), lost, (q1, p1)

    q = jnp.array([1.0, 0.3])
    for key in jax.random.split(jax.random.key(0), 3):
        before = q
        q, lost, (q1, p1) = transition(key, q)
        assert abs(lost) < 0.05
        (back, _), _ = jax.lax.scan(leapfrog, (q1, -p1), None, 30)
        np.testing.assert_allclose(back, before, rtol=1e-9)


# --- JAX's functions here -------------------------------------------------------------------------


def test_a_function_of_jaxs_is_an_operation_in_both_modes():
    f = lineara.from_jax(
        lambda x, p: {"a": jnp.sin(x) * p["k"].sum(), "b": x.sum(), "n": x.argmax()}
    )
    x, p = np.array([0.5, 2.0]), {"k": np.array([1.0, 3.0])}

    def loss(x, p):
        return np.sum(f(x * x, p)["a"]) + 3.0 * f(x, p)["b"]

    def plain(x, p):
        return np.sum(np.sin(x * x)) * np.sum(p["k"]) + 3.0 * np.sum(x)

    g, here = lineara.grad(loss, (0, 1))(x, p), lineara.grad(plain, (0, 1))(x, p)
    np.testing.assert_allclose(g[0], here[0], rtol=1e-14)
    np.testing.assert_allclose(g[1]["k"], here[1]["k"], rtol=1e-14)
    assert lineara.check_grads(loss, (x, p), order=1)
    assert f(x, p)["n"] == 1


def test_what_is_refused():
    f = lineara.from_jax(jnp.sin)
    with pytest.raises(NoRuleError, match="a second one was asked for"):
        lineara.hessian(lambda x: np.sum(f(x)))(np.ones(2))
    with pytest.raises(TypeMismatchError, match="takes and gives real numbers"):
        lineara.grad(lambda z: np.sum(np.abs(f(z))))(np.ones(2) * 1j)
    with pytest.raises(TypeMismatchError, match="from_jax: takes a function, but was given"):
        lineara.from_jax(3)
    without = lineara.to_jax(lineara.external(np.sin, vjp=lambda args, w: (w,), check=False))
    with pytest.raises(StagingError) as error:
        jax.jit(without)(jnp.ones(2))
    assert error.value.message.startswith(
        "to_jax: JAX asks for the types of the results before the function runs, and it has no "
        "program that would tell them: external(sin): code that Lineara cannot see"
    )

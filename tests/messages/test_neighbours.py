"""Libraries that do not take traced values: the refusal names the library and what works."""

import sys
import types

import numpy as np
import pytest

from lineara import custom_jvp, grad


def foreign(name: str, source: str) -> types.SimpleNamespace:
    """A module as it would lie among the installed packages."""
    space = {"__name__": name}
    exec(compile(source, f"/site-packages/{name}.py", "exec"), space)
    return types.SimpleNamespace(**space)


def test_an_estimator_of_scikit_learn(said):
    model = foreign(
        "sklearn.linear_model", "import numpy\ndef predict(X): return numpy.asarray(X) @ [1.0, 2.0]"
    )

    def f(X):
        return np.sum(model.predict(X))

    assert said(lambda: grad(f)(np.ones((3, 2)))) == (
        "DetachError: a traced f64[3,2] was about to become a plain array, which would lose its "
        "derivative; an estimator of scikit-learn runs compiled code: compute from its fitted "
        "numbers (coef_, intercept_, ...) with NumPy, or give the call a derivative with "
        "lineara.external, or lineara.stop_gradient to mean it"
        "\n  in sklearn.linear_model.py:2 in predict\n  at f: return np.sum(model.predict(X))"
    )
    predict = custom_jvp(lambda X: model.predict(X))
    predict.defjvp(lambda primals, tangents: (predict(*primals), tangents[0] @ [1.0, 2.0]))
    assert np.allclose(grad(lambda X: np.sum(predict(X)))(np.ones((1, 2))), [[1.0, 2.0]])


def test_a_masked_array_of_traced_values(said):
    def f(x):
        return np.ma.masked_less(x, 0.5).sum()

    assert said(lambda: grad(f)(np.ones(3))) == (
        "DetachError: a traced f64[3] was about to become a plain array, which would lose its "
        "derivative; a masked array holds no derivatives: np.where(mask, 0.0, x) has a rule, and "
        "so have np.mean and its kin with where=~mask, or lineara.stop_gradient to mean it"
        "\n  at f: return np.ma.masked_less(x, 0.5).sum()"
    )
    kept = grad(lambda x: np.mean(x**2, where=x > 0.5))(np.array([1.0, 0.2, 3.0]))
    assert np.allclose(kept, [1.0, 0.0, 3.0])


def test_a_polynomial_as_an_object(said):
    def f(c):
        return np.polynomial.Polynomial(c)(2.0)

    assert said(lambda: grad(f)(np.ones(3))) == (
        "DetachError: a traced f64[3] was about to become a plain array, which would lose its "
        "derivative; numpy.polynomial.polynomial.polyval(x, c) and its kin have rules, and "
        "numpy.polyfit, or lineara.stop_gradient to mean it"
        "\n  at f: return np.polynomial.Polynomial(c)(2.0)"
    )
    value = grad(lambda c: np.polynomial.polynomial.polyval(2.0, c))
    assert np.allclose(value(np.ones(3)), [1.0, 2.0, 4.0])


def test_a_tensor_of_torch(said, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    Tensor = type("Tensor", (), {"__array_priority__": 1000})
    w = Tensor()

    def f(x):
        return x * w

    assert said(lambda: grad(f)(np.ones(3))) == (
        "DetachError: torch was given a traced value: unsupported operand type(s) for *: "
        "'TracedArray' and 'Tensor'; torch differentiates its own tensors only: compute with "
        "NumPy, or wrap the call with lineara.custom_vjp, whose rule may use torch.autograd.grad"
        "\n  at f: return x * w"
    )


def test_an_array_of_jax(said, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    jnp = foreign(
        "jax.numpy",
        "def sin(x): raise TypeError(f'Argument of type {type(x)} is not a valid JAX type.')",
    )

    def f(x):
        return jnp.sin(x)

    assert said(lambda: grad(f)(2.0)) == (
        "DetachError: jax was given a traced value: Argument of type <class "
        "'lineara.tape.level.TracedNumber'> is not a valid JAX type; JAX differentiates its own "
        "arrays only: compute with NumPy, or wrap the call with lineara.custom_vjp, whose rule may "
        "use jax.vjp\n  at f: return jnp.sin(x)"
    )


def test_a_refusal_that_a_library_covers_with_an_error_of_its_own(said):
    frames = foreign(
        "pandas.core.window",
        "import numpy\n"
        "def mean(x):\n"
        "    try:\n"
        "        return numpy.asarray(x)\n"
        "    except Exception:\n"
        "        raise ValueError('No numeric types to aggregate') from None\n",
    )

    def f(x):
        return np.sum(frames.mean(x))

    assert said(lambda: grad(f)(np.ones(3))) == (
        "DetachError: a traced f64[3] was about to become a plain array, which would lose its "
        "derivative; this function of pandas runs compiled code: go on in NumPy with .to_numpy(), "
        "or lineara.stop_gradient to mean it\n  at f: return np.sum(frames.mean(x))"
    )


def test_errors_of_the_users_own_stay(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))

    def f(x):
        try:
            return memoryview(x)[0]
        except Exception as e:
            raise KeyError("no view here") from e

    with pytest.raises(KeyError, match="no view here"):
        grad(f)(np.ones(3))
    with pytest.raises(TypeError, match="unsupported operand"):
        grad(lambda x: x + "Traced")(2.0)

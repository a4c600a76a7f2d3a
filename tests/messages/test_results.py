"""Results that have no gradient."""

import numpy as np

from lineara import grad, hessian, jacobian, jvp, vjp


def test_none(said):
    def f(x):
        x * x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned None; it must return one "
        "real number (is a `return` missing?)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_string(said):
    def f(x):
        return "loss"

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned str 'loss'; it must return "
        "one real number (for several results, use jacobian or vjp; for more results, "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_list(said):
    def f(x):
        return [x, x]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned list; it must return one "
        "real number (for several results, use jacobian or vjp; for more results, "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_tuple(said):
    def f(x):
        return x, x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned tuple; it must return one "
        "real number (for several results, use jacobian or vjp; for more results, "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_dict(said):
    def f(x):
        return {"loss": x}

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned dict; it must return one "
        "real number (for several results, use jacobian or vjp; for more results, "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_generator(said):
    def f(x):
        return (v for v in [x])

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned generator; it must return "
        "one real number (for several results, use jacobian or vjp; for more results, "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_an_array(said):
    def f(x):
        return 2 * x

    found = said(lambda: grad(f)(np.ones(3)))
    assert found == (
        "NonScalarOutputError: grad: the function returned f64[3]; it must return one "
        "real number, so sum it, or use jacobian or vjp"
        "\n  at <lambda>: found = said(lambda: grad(f)(np.ones(3)))"
    )


def test_an_array_of_one_element(said):
    def f(x):
        return 2 * x

    found = said(lambda: grad(f)(np.ones(1)))
    assert found == (
        "NonScalarOutputError: grad: the function returned f64[1]; it must return one "
        "real number, so sum it, or use jacobian or vjp"
        "\n  at <lambda>: found = said(lambda: grad(f)(np.ones(1)))"
    )


def test_a_complex_number(said):
    def f(x):
        return x * 1j

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned a complex number (c128[]); "
        "a gradient needs a real one, so take its real part or its modulus, or use jacobian"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_complex_constant(said):
    def f(x):
        return 1j

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned a complex number (c128[]); "
        "a gradient needs a real one, so take its real part or its modulus, or use jacobian"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_a_truth_value(said):
    def f(x):
        return x > 0

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned bool[], which has no "
        "derivative; it must return one real number"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_an_object(said):
    def f(x):
        return object()

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned object; it must return one "
        "real number (for several results, use jacobian or vjp; for more results, "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_an_object_array(said):
    def f(x):
        return np.array(None)

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NonScalarOutputError: grad: the function returned object[], which has no "
        "derivative; it must return one real number"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_no_pair_with_has_aux(said):
    def f(x):
        return x

    found = said(lambda: grad(f, has_aux=True)(2.0))
    assert found == (
        "TypeMismatchError: grad: has_aux=True takes a function that returns (value, "
        "aux), but it returned f64[]"
        "\n  at <lambda>: found = said(lambda: grad(f, has_aux=True)(2.0))"
    )


def test_none_to_jacobian(said):
    def f(x):
        return None

    found = said(lambda: jacobian(f)(2.0))
    assert found == (
        "TypeMismatchError: jacobian: the function returned None, which has no "
        "derivative; return numbers, arrays or containers of them (other things with "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: jacobian(f)(2.0))"
    )


def test_a_string_in_a_list_to_jacobian(said):
    def f(x):
        return [x, "loss"]

    found = said(lambda: jacobian(f)(2.0))
    assert found == (
        "TypeMismatchError: jacobian: the function returned str 'loss', which has no "
        "derivative; return numbers, arrays or containers of them (other things with "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: jacobian(f)(2.0))"
    )


def test_truth_values_to_jacobian(said):
    def f(x):
        return x > 0

    found = said(lambda: jacobian(f)(np.ones(2)))
    assert found == (
        "TypeMismatchError: jacobian: the function returned bool[2], which has no "
        "derivative; return numbers, arrays or containers of them (other things with "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: jacobian(f)(np.ones(2)))"
    )


def test_a_generator_to_jacobian(said):
    def f(x):
        return (v for v in x)

    found = said(lambda: jacobian(f)(np.ones(2)))
    assert found == (
        "TypeMismatchError: jacobian: the function returned generator, which has no "
        "derivative; return numbers, arrays or containers of them (other things with "
        "has_aux=True)"
        "\n  at <lambda>: found = said(lambda: jacobian(f)(np.ones(2)))"
    )


def test_none_to_jvp(said):
    def f(x):
        return None

    found = said(lambda: jvp(f, (2.0,), (1.0,)))
    assert found == (
        "TypeMismatchError: jvp: the function returned None, which has no derivative; "
        "return numbers, arrays or containers of them (other things with has_aux=True)"
        "\n  at <lambda>: found = said(lambda: jvp(f, (2.0,), (1.0,)))"
    )


def test_none_to_vjp(said):
    def f(x):
        return None

    found = said(lambda: vjp(f, 2.0))
    assert found == (
        "TypeMismatchError: vjp: the function returned None, which has no derivative; "
        "return numbers, arrays or containers of them (other things with has_aux=True)"
        "\n  at <lambda>: found = said(lambda: vjp(f, 2.0))"
    )


def test_an_array_to_hessian(said):
    def f(x):
        return x * x

    found = said(lambda: hessian(f)(np.ones(2)))
    assert found == (
        "NonScalarOutputError: grad: the function returned f64[2]; it must return one "
        "real number, so sum it, or use jacobian or vjp"
        "\n  at <lambda>: found = said(lambda: hessian(f)(np.ones(2)))"
    )

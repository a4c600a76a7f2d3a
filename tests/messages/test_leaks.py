"""Traced values that outlive the differentiation that made them."""

import contextlib
import math
import operator
import threading

import numpy as np
import pytest

from lineara import grad, jacobian, jvp, linearize
from lineara.errors import LeakedVariableError, LinearaError


def leaked(of, at):
    """A value that `of` made of its argument, kept after the differentiation."""
    kept = []

    def f(x):
        kept.append(of(x))
        return np.sum(x * x)

    grad(f)(at)
    return kept[0]


def number():
    return leaked(lambda x: x * 1.0, 3.0)


def array():
    return leaked(np.sin, np.ones(3))


def test_in_another_gradient(said):
    kept = number()
    found = said(lambda: grad(lambda y: y * kept)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(lambda y: y * kept)(2.0))"
    )


def test_of_an_argument(said):
    kept = leaked(lambda x: x, 3.0)
    found = said(lambda: grad(lambda y: y * kept)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(lambda y: y * kept)(2.0))"
    )


def test_in_plain_arithmetic(said):
    kept = number()
    found = said(lambda: 2 * kept)
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: 2 * kept)"
    )


def test_to_float(said):
    kept = number()
    found = said(lambda: float(kept))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: float(kept))"
    )


def test_in_a_function_of_numpy(said):
    kept = number()
    found = said(lambda: np.sin(kept))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: np.sin(kept))"
    )


def test_in_a_function_of_math(said):
    kept = number()
    found = said(lambda: math.sin(kept))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: math.sin(kept))"
    )


def test_an_array_in_plain_arithmetic(said):
    kept = array()
    found = said(lambda: kept * 2.0)
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: kept * 2.0)"
    )


def test_an_array_to_numpy(said):
    kept = array()
    found = said(lambda: np.asarray(kept))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: np.asarray(kept))"
    )


def test_an_element_read_in_another_gradient(said):
    kept = array()
    found = said(lambda: grad(lambda y: y * kept[0])(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(lambda y: y * kept[0])(2.0))"
    )


def test_a_slice_read_later(said):
    kept = array()
    found = said(lambda: kept[1:])
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: kept[1:])"
    )


def test_a_sum_in_another_gradient(said):
    kept = array()
    found = said(lambda: grad(lambda y: y * np.sum(kept))(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(lambda y: y * np.sum(kept))(2.0))"
    )


def test_in_a_jvp(said):
    kept = number()
    found = said(lambda: jvp(lambda y: y * kept, (2.0,), (1.0,)))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: jvp(lambda y: y * kept, (2.0,), (1.0,)))"
    )


def test_in_a_jacobian(said):
    kept = array()
    found = said(lambda: jacobian(lambda y: y * kept)(np.ones(3)))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: jacobian(lambda y: y * kept)(np.ones(3)))"
    )


def test_in_the_second_call_of_the_same_function(said):
    kept = []

    def f(x):
        kept.append(x)
        return x * kept[0]

    grad(f)(2.0)
    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_only_before_the_result(said):
    kept = []

    def f(x):
        kept.append(x)
        return x + 0.0 * kept[0] * kept[0]

    grad(f)(2.0)
    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_as_the_result(said):
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return kept[0]

    grad(f)(2.0)
    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_as_the_result_of_a_jvp(said):
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return kept[0]

    jvp(f, (2.0,), (1.0,))
    found = said(lambda: jvp(f, (2.0,), (1.0,)))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: jvp(f, (2.0,), (1.0,)))"
    )


def test_written_into_an_array(said):
    kept = number()

    def f(x):
        y = np.zeros(2)
        y[0], y[1] = kept, x
        return np.sum(y)

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(f)(2.0))"
    )


def test_out_of_an_inner_gradient(said):
    kept = []

    def inner(t):
        kept.append(t)
        return t * t

    def f(x):
        return grad(inner)(3.0) * x * kept[-1]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at f: return grad(inner)(3.0) * x * kept[-1]"
    )


def test_out_of_an_inner_gradient_through_an_array(said):
    def f(x):
        kept = np.zeros(1)

        def inner(t):
            kept[0] = t
            return t * t

        return grad(inner)(3.0) * x * kept[0]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a value of an inner differentiation was written into an "
        "array that lives outside it, as copies of outer values do; make the array inside "
        "the inner function with np.zeros, or return the value"
        "\n  at inner: kept[0] = t"
    )


def test_into_a_gradient_of_another_thread(said):
    caught = []

    def other(x):
        try:
            grad(lambda y: y * x)(1.0)
        except LeakedVariableError as error:
            caught.append(error)

    def f(x):
        thread = threading.Thread(target=other, args=(x,))
        thread.start()
        thread.join()
        raise caught[0]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "LeakedVariableError: a traced value of another differentiation, which has "
        "ended or runs in another thread, was used here; pass it as an argument, or "
        "take its value inside"
        "\n  at <lambda>: grad(lambda y: y * x)(1.0)"
    )


def test_out_of_linearize(said):
    kept = []

    def f(x):
        kept.append(x * 3.0)
        return x * x

    linearize(f, 2.0)
    found = said(lambda: kept[0] * 2.0)
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: kept[0] * 2.0)"
    )


def test_of_a_trace_that_failed(said):
    kept = []

    def f(x):
        kept.append(x)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        grad(f)(2.0)
    found = said(lambda: grad(lambda y: y * kept[0])(2.0))
    assert found == (
        "LeakedVariableError: a traced value was used after the differentiation that "
        "made it had ended; return it from the function (has_aux=True) or take its "
        "value inside, instead of storing it"
        "\n  at <lambda>: found = said(lambda: grad(lambda y: y * kept[0])(2.0))"
    )


def test_a_leaked_value_can_be_printed_and_compared():
    kept = number()
    assert repr(kept) == "traced(3.0)"
    assert kept > 2
    assert int(kept) == 3


def test_what_has_aux_returns_is_plain():
    g, kept = grad(lambda x: (x * x, x + 1), has_aux=True)(3.0)
    assert (g, kept * 2) == (6.0, 8.0)


def test_a_linear_map_works_on_after_its_values_were_marked_as_leaked():
    kept = []

    def f(x):
        kept.append(x[0])
        return np.sum(x * x) + x[0]

    _, L = linearize(f, np.ones(2))
    with pytest.raises(LeakedVariableError):
        kept[0] * 2.0
    assert [(1.0 @ L).tolist() for _ in range(2)] == [[3.0, 2.0]] * 2
    assert L @ np.ones(2) == 5.0


USES = {
    "an operator": lambda x: x * 2.0,
    "a function of math's": lambda x: math.sin(x),
    "a function of NumPy's": lambda x: np.sin(x),
    "a sum": lambda x: np.sum(x),
    "a norm": lambda x: np.linalg.norm(x),
    "an element": lambda x: x[0],
    "a view": lambda x: x.reshape(-1)[1:].sum(),
    "a copy": lambda x: x.copy(),
    "a list": lambda x: x.tolist(),
    "a number": lambda x: x.item(),
    "another dtype": lambda x: x.astype(np.float32),
    "parts": lambda x: (x.real, x.imag),
    "a join": lambda x: np.array([x, x]),
    "a write": lambda x: x.fill(1.0),
    "an in-place operation": lambda x: operator.imul(x, 2.0),
    "a power that overflows": lambda x: (x * 1.0e200) ** 2,
}


CAUGHT = (LinearaError, TypeError, ValueError, AttributeError, IndexError)
CAUGHT += (np.exceptions.ComplexWarning,)  # an error in these tests


@pytest.mark.parametrize("source", [3.0, np.float64(3.0), np.ones(1), np.ones((2, 2)), 1 + 2j])
@pytest.mark.parametrize("use", USES)
def test_what_a_leaked_value_is_used_for_is_no_part_of_the_next_differentiation(use, source):
    kept = []

    def f(x):
        y = x * 2.0
        kept.extend((x, y, y[...] if isinstance(y, np.ndarray) else np.sin(y)))
        return np.abs(np.sum(y))

    grad(f)(source)
    before = linearize(lambda t: t * t, 2.0)[1]
    for value in kept:
        with contextlib.suppress(*CAUGHT):
            USES[use](value)
        _, L = linearize(lambda t: t * t, 2.0)
        assert L.work == before.work
        assert L @ 1.0 == 4.0

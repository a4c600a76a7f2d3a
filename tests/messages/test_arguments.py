"""Arguments, positions and functions that cannot be differentiated."""

import collections
import warnings

import numpy as np
import pytest

from lineara import check_grads, grad, hessian, jacobian, jit, jvp, linearize, value_and_grad, vjp


def square(x):
    return x * x


def product(x, y):
    return x * y


def constant(x):
    return 1.0


def matrix():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix([[1.0, 2.0]])


def test_a_string(said):
    found = said(lambda: grad(constant)("lynx"))
    assert found == (
        "TypeMismatchError: grad: there is no number in str 'lynx', so there is "
        "nothing to differentiate; give floating-point numbers or arrays, or "
        "containers of them"
        '\n  at <lambda>: found = said(lambda: grad(constant)("lynx"))'
    )


def test_none(said):
    found = said(lambda: grad(constant)(None))
    assert found == (
        "TypeMismatchError: grad: there is no number in None, so there is nothing to "
        "differentiate; give floating-point numbers or arrays, or containers of them"
        "\n  at <lambda>: found = said(lambda: grad(constant)(None))"
    )


def test_a_truth_value(said):
    found = said(lambda: grad(constant)(True))
    assert found == (
        "TypeMismatchError: grad: there is no number in bool[], so there is nothing to "
        "differentiate; give floating-point numbers or arrays, or containers of them"
        "\n  at <lambda>: found = said(lambda: grad(constant)(True))"
    )


def test_bytes(said):
    found = said(lambda: grad(constant)(b"lynx"))
    assert found == (
        "TypeMismatchError: grad: there is no number in bytes b'lynx', so there is "
        "nothing to differentiate; give floating-point numbers or arrays, or "
        "containers of them"
        '\n  at <lambda>: found = said(lambda: grad(constant)(b"lynx"))'
    )


def test_a_set(said):
    found = said(lambda: grad(constant)({1.0, 2.0}))
    assert found == (
        "TypeMismatchError: grad: there is no number in set, so there is nothing to "
        "differentiate; give floating-point numbers or arrays, or containers of them"
        "\n  at <lambda>: found = said(lambda: grad(constant)({1.0, 2.0}))"
    )


def test_a_string_beside_a_number(said):
    found = said(lambda: grad(product, (0, 1))("lynx", 2.0))
    assert found == (
        "TypeMismatchError: grad: there is no number in str 'lynx', so there is "
        "nothing to differentiate; give floating-point numbers or arrays, or "
        "containers of them"
        '\n  at <lambda>: found = said(lambda: grad(product, (0, 1))("lynx", 2.0))'
    )


def test_a_list_of_strings(said):
    found = said(lambda: grad(constant)(["hare", "lynx"]))
    assert found == (
        "TypeMismatchError: grad: there is no number in list, so there is nothing to "
        "differentiate; give floating-point numbers or arrays, or containers of them"
        '\n  at <lambda>: found = said(lambda: grad(constant)(["hare", "lynx"]))'
    )


def test_an_empty_list(said):
    found = said(lambda: grad(constant)([]))
    assert found == (
        "TypeMismatchError: grad: there is no number in list, so there is nothing to "
        "differentiate; give floating-point numbers or arrays, or containers of them"
        "\n  at <lambda>: found = said(lambda: grad(constant)([]))"
    )


def test_an_empty_dict(said):
    found = said(lambda: grad(constant)({}))
    assert found == (
        "TypeMismatchError: grad: there is no number in dict, so there is nothing to "
        "differentiate; give floating-point numbers or arrays, or containers of them"
        "\n  at <lambda>: found = said(lambda: grad(constant)({}))"
    )


def test_a_string_to_jacobian(said):
    found = said(lambda: jacobian(constant)("lynx"))
    assert found == (
        "TypeMismatchError: jacobian: there is no number in str 'lynx', so there is "
        "nothing to differentiate; give floating-point numbers or arrays, or "
        "containers of them"
        '\n  at <lambda>: found = said(lambda: jacobian(constant)("lynx"))'
    )


def test_a_string_to_vjp(said):
    found = said(lambda: vjp(constant, "lynx"))
    assert found == (
        "TypeMismatchError: vjp: there is no number in str 'lynx', so there is nothing "
        "to differentiate; give floating-point numbers or arrays, or containers of them"
        '\n  at <lambda>: found = said(lambda: vjp(constant, "lynx"))'
    )


def test_an_object_array(said):
    found = said(lambda: grad(square)(np.array([1.0, None])))
    assert found == (
        "TypeMismatchError: an argument holds an object array, which has no "
        "derivative; give a floating-point array, or keep it outside the "
        "differentiated arguments"
        "\n  at <lambda>: found = said(lambda: grad(square)(np.array([1.0, None])))"
    )


def test_an_array_of_strings(said):
    found = said(lambda: grad(square)(np.array(["hare"])))
    assert found == (
        "TypeMismatchError: an argument holds an array of strings, which has no "
        "derivative; give a floating-point array, or keep it outside the "
        "differentiated arguments"
        '\n  at <lambda>: found = said(lambda: grad(square)(np.array(["hare"])))'
    )


def test_an_array_of_dates(said):
    found = said(lambda: grad(square)(np.array(["1900"], "M8[Y]")))
    assert found == (
        "TypeMismatchError: an argument holds an array of datetime64[Y], which has no "
        "derivative; give a floating-point array, or keep it outside the "
        "differentiated arguments"
        '\n  at <lambda>: found = said(lambda: grad(square)(np.array(["1900"], "M8[Y]")))'
    )


def test_an_array_of_records(said):
    found = said(lambda: grad(square)(np.zeros(2, [("hare", float)])))
    assert found == (
        "TypeMismatchError: an argument holds an array of [('hare', '<f8')], which has "
        "no derivative; give a floating-point array, or keep it outside the "
        "differentiated arguments"
        '\n  at <lambda>: found = said(lambda: grad(square)(np.zeros(2, [("hare", '
        "float)])))"
    )


def test_an_object_array_in_a_dict(said):
    def f(p):
        return p["a"]

    found = said(lambda: grad(f)({"a": np.array([None])}))
    assert found == (
        "TypeMismatchError: an argument holds an object array, which has no "
        "derivative; give a floating-point array, or keep it outside the "
        "differentiated arguments"
        '\n  at f: return p["a"]'
    )


def test_a_matrix(said):
    found = said(lambda: grad(square)(matrix()))
    assert found == (
        "TypeMismatchError: an argument holds a matrix, whose own rules are not "
        "followed; give a floating-point array, or keep it outside the differentiated "
        "arguments"
        "\n  at <lambda>: found = said(lambda: grad(square)(matrix()))"
    )


def test_a_masked_array(said):
    found = said(lambda: grad(square)(np.ma.array([1.0, 2.0])))
    assert found == (
        "TypeMismatchError: an argument holds a MaskedArray, whose own rules are not "
        "followed; give a floating-point array, or keep it outside the differentiated "
        "arguments"
        "\n  at <lambda>: found = said(lambda: grad(square)(np.ma.array([1.0, 2.0])))"
    )


@pytest.mark.parametrize("engine", ["adaptive", "native", "native exact", "interpreter"])
@pytest.mark.parametrize("is_known", [False, True])
def test_an_argument_of_a_compiled_function_that_has_rules_of_its_own(said, engine, is_known):
    f = jit(lambda x: np.mean(x * x), engine=engine)
    masked = np.ma.masked_greater([1.0, 2.0, 1e20], 1e3)
    for _ in range(3 * is_known):
        f(np.ones(3))  # the program for plain arrays is no program for these
    for cls, x in (("MaskedArray", masked), ("matrix", matrix())):
        assert said(lambda x=x: f(x)).partition("\n")[0] == (
            f"NoRuleError: trace: a {cls} has rules of its own, which are not followed here; "
            "give numpy.asarray of it"
        )


def test_a_captured_matrix(said):
    m = matrix()

    def f(x):
        return np.sum(m * x)

    found = said(lambda: grad(f)(np.ones((1, 2))))
    assert found == (
        "NoRuleError: multiply: a matrix has rules of its own, which are not "
        "followed here; give numpy.asarray of it"
        "\n  at f: return np.sum(m * x)"
    )


def test_a_deque(said):
    def f(x):
        return x[0]

    found = said(lambda: grad(f)(collections.deque([1.0])))
    assert found == (
        "TypeMismatchError: a deque cannot be followed element by element; pass a "
        "list, tuple, dict or dataclass instead"
        "\n  at <lambda>: found = said(lambda: grad(f)(collections.deque([1.0])))"
    )


def test_argnums_out_of_range(said):
    found = said(lambda: grad(product, 2)(1.0, 2.0))
    assert found == (
        "TypeMismatchError: grad: argnums=2 asks for argument 2, but the call has 2 "
        "positional arguments; differentiated arguments are given by position"
        "\n  at <lambda>: found = said(lambda: grad(product, 2)(1.0, 2.0))"
    )


def test_argnums_before_the_first(said):
    found = said(lambda: grad(product, (0, -3))(1.0, 2.0))
    assert found == (
        "TypeMismatchError: grad: argnums=(0, -3) asks for argument -3, but the call "
        "has 2 positional arguments; differentiated arguments are given by position"
        "\n  at <lambda>: found = said(lambda: grad(product, (0, -3))(1.0, 2.0))"
    )


def test_argnums_by_name(said):
    found = said(lambda: grad(product, "x"))
    assert found == (
        "TypeMismatchError: grad: argnums='x' is not a position; give an integer or "
        "several, counted from 0"
        '\n  at <lambda>: found = said(lambda: grad(product, "x"))'
    )


def test_argnums_a_float(said):
    found = said(lambda: jacobian(product, 0.0))
    assert found == (
        "TypeMismatchError: jacobian: argnums=0.0 is not a position; give an integer "
        "or several, counted from 0"
        "\n  at <lambda>: found = said(lambda: jacobian(product, 0.0))"
    )


def test_argument_by_keyword(said):
    found = said(lambda: grad(product)(x=1.0, y=2.0))
    assert found == (
        "TypeMismatchError: grad: argnums=0 asks for argument 0, but the call has 0 "
        "positional arguments; differentiated arguments are given by position"
        "\n  at <lambda>: found = said(lambda: grad(product)(x=1.0, y=2.0))"
    )


def test_second_argument_by_keyword(said):
    found = said(lambda: grad(product, 1)(1.0, y=2.0))
    assert found == (
        "TypeMismatchError: grad: argnums=1 asks for argument 1, but the call has 1 "
        "positional argument; differentiated arguments are given by position"
        "\n  at <lambda>: found = said(lambda: grad(product, 1)(1.0, y=2.0))"
    )


def test_not_a_function(said):
    found = said(lambda: grad(3.0))
    assert found == (
        "TypeMismatchError: grad: takes a function, but was given f64[]"
        "\n  at <lambda>: found = said(lambda: grad(3.0))"
    )


def test_not_a_function_to_value_and_grad(said):
    found = said(lambda: value_and_grad(None))
    assert found == (
        "TypeMismatchError: value_and_grad: takes a function, but was given None"
        "\n  at <lambda>: found = said(lambda: value_and_grad(None))"
    )


def test_not_a_function_to_jacobian(said):
    found = said(lambda: jacobian([square]))
    assert found == (
        "TypeMismatchError: jacobian: takes a function, but was given list"
        "\n  at <lambda>: found = said(lambda: jacobian([square]))"
    )


def test_not_a_function_to_hessian(said):
    found = said(lambda: hessian(3.0))
    assert found == (
        "TypeMismatchError: hessian: takes a function, but was given f64[]"
        "\n  at <lambda>: found = said(lambda: hessian(3.0))"
    )


def test_not_a_function_to_linearize(said):
    found = said(lambda: linearize(3.0, 2.0))
    assert found == (
        "TypeMismatchError: linearize: takes a function, but was given f64[]"
        "\n  at <lambda>: found = said(lambda: linearize(3.0, 2.0))"
    )


def test_not_a_function_to_vjp(said):
    found = said(lambda: vjp(3.0, 2.0))
    assert found == (
        "TypeMismatchError: vjp: takes a function, but was given f64[]"
        "\n  at <lambda>: found = said(lambda: vjp(3.0, 2.0))"
    )


def test_not_a_function_to_jvp(said):
    found = said(lambda: jvp(3.0, (2.0,), (1.0,)))
    assert found == (
        "TypeMismatchError: jvp: takes a function, but was given f64[]"
        "\n  at <lambda>: found = said(lambda: jvp(3.0, (2.0,), (1.0,)))"
    )


def test_fewer_tangents_than_primals(said):
    found = said(lambda: jvp(product, (1.0, 2.0), (1.0,)))
    assert found == (
        "StructureError: jvp: 2 primals but 1 tangents; give one for each argument"
        "\n  at <lambda>: found = said(lambda: jvp(product, (1.0, 2.0), (1.0,)))"
    )


def test_tangents_without_a_tuple(said):
    found = said(lambda: jvp(square, 1.0, 1.0))
    assert found == (
        "TypeMismatchError: jvp: primals and tangents are tuples, one entry for each "
        "argument"
        "\n  at <lambda>: found = said(lambda: jvp(square, 1.0, 1.0))"
    )


def test_tangent_of_other_keys(said):
    def f(p):
        return p["a"]

    found = said(lambda: jvp(f, ({"a": 1.0},), ({"b": 1.0},)))
    assert found == (
        "StructureError: applying a linear map: the vector is Structure({'b': *}), but "
        "the map takes Structure({'a': *})"
        '\n  at <lambda>: found = said(lambda: jvp(f, ({"a": 1.0},), ({"b": 1.0},)))'
    )


def test_tangent_a_string(said):
    found = said(lambda: jvp(square, (1.0,), ("a",)))
    assert found == (
        "TypeMismatchError: applying a linear map: the vector has a leaf str 'a', but "
        "the map takes f64[]"
        '\n  at <lambda>: found = said(lambda: jvp(square, (1.0,), ("a",)))'
    )


def test_complex_tangent_of_a_real_number(said):
    found = said(lambda: jvp(square, (1.0,), (1j,)))
    assert found == (
        "TypeMismatchError: applying a linear map: the vector has a leaf c128[], but "
        "the map takes f64[]"
        "\n  at <lambda>: found = said(lambda: jvp(square, (1.0,), (1j,)))"
    )


def test_unknown_out(said):
    found = said(lambda: grad(square, out="dense"))
    assert found == (
        "TypeMismatchError: grad: out='dense' is not known; leave it out or give 'builder'"
        '\n  at <lambda>: found = said(lambda: grad(square, out="dense"))'
    )


def test_unknown_mode(said):
    found = said(lambda: jacobian(square, mode="backward"))
    assert found == (
        "TypeMismatchError: jacobian: mode='backward' is not known; use auto, forward "
        "or reverse"
        '\n  at <lambda>: found = said(lambda: jacobian(square, mode="backward"))'
    )


def test_unknown_modes_of_check_grads(said):
    found = said(lambda: check_grads(square, (1.0,), modes=("forward",)))
    assert found == (
        "TypeMismatchError: check_grads: modes=('forward',) is not known; give one or "
        "both of 'fwd' and 'rev'"
        "\n  at <lambda>: found = said(lambda: check_grads(square, (1.0,), "
        'modes=("forward",)))'
    )


def test_order_zero_of_check_grads(said):
    found = said(lambda: check_grads(square, (1.0,), order=0))
    assert found == (
        "TypeMismatchError: check_grads: order=0 is not an order; give 1 or more"
        "\n  at <lambda>: found = said(lambda: check_grads(square, (1.0,), order=0))"
    )


def test_no_tuple_for_check_grads(said):
    found = said(lambda: check_grads(square, 1.0))
    assert found == (
        "TypeMismatchError: check_grads: args is the tuple of the arguments of f"
        "\n  at <lambda>: found = said(lambda: check_grads(square, 1.0))"
    )


def test_no_number_for_check_grads(said):
    found = said(lambda: check_grads(square, ("lynx",)))
    assert found == (
        "TypeMismatchError: check_grads: there is no number in args, so nothing to check"
        '\n  at <lambda>: found = said(lambda: check_grads(square, ("lynx",)))'
    )


def test_a_function_that_captured_nothing(said):
    def line():
        return lambda x, slope=2.0: slope * x

    found = said(lambda: grad(lambda f: f(3.0))(line()))
    assert found == (
        "TypeMismatchError: grad: the function captured nothing (globals and defaults do not "
        "count), so there is nothing to differentiate; let it be a closure over its numbers, a "
        "functools.partial, or a method, or pass the numbers as arguments; lineara.probed(f) asks "
        "how much each value of f counts"
        "\n  at <lambda>: found = said(lambda: grad(lambda f: f(3.0))(line()))"
    )


def test_a_function_as_a_result_that_captured_nothing(said):
    found = said(lambda: vjp(lambda slope: lambda x: x, 2.0))
    assert found == (
        "TypeMismatchError: vjp: the function returned function, which has no derivative; return "
        "numbers, arrays or containers of them (other things with has_aux=True)"
        "\n  at <lambda>: found = said(lambda: vjp(lambda slope: lambda x: x, 2.0))"
    )

"""What external says: of its options, of a derivative that is off, of what it cannot do."""

import math

import numpy as np
import pytest

import lineara
from lineara import external, grad


def first_cube(p):
    return p[0] ** 3


def cube(x):
    return x**3


SAYS = {
    "nothing": (
        lambda: external(cube),
        "external(cube): takes its derivative from jvp=, from vjp=, from both, or from "
        'difference="complex-step" or "central"; found none of them',
    ),
    "two": (
        lambda: external(cube, jvp=math.sin, difference="central"),
        "external(cube): takes its derivative from jvp=, from vjp=, from both, or from "
        'difference="complex-step" or "central"; found jvp= and difference=',
    ),
    "unknown": (
        lambda: external(cube, difference="forward"),
        'external(cube): difference= is "complex-step" or "central"; found \'forward\'',
    ),
    "no function": (
        lambda: external(cube, vjp=3.0),
        "external(cube): vjp= is a function; found f64[]",
    ),
    "transposes": (
        lambda: grad(external(cube, jvp=lambda a, t: 12 * t[0], vjp=lambda a, w: (8 * w,)))(2.0),
        "external(cube): jvp= gives <w, J v> = -0.39863, but vjp= <J^T w, v> = -0.265753; each "
        "must be the other's transpose: mend the rule, or give check=False if this is meant",
    ),
    "wrong": (
        lambda: grad(external(cube, jvp=lambda a, t: 2 * t[0]))(2.0),
        "external(cube): jvp= says that the derivative is 2, but a finite difference of the "
        "function 12; mend the rule, or give check=False if this is meant",
    ),
    "shape": (
        lambda: external(cube, difference="central", shape=(2,))(2.0),
        "external(cube): shape= says (2,), but the result has (); mend one of them",
    ),
    "tuple": (
        lambda: grad(external(cube, vjp=lambda a, w: w))(2.0),
        "external(cube): vjp= must return a tuple of 1 cotangents, one for each argument, but it "
        "returned f64[]",
    ),
    "fitted": (
        lambda: grad(external(cube, jvp=lambda a, t: np.ones(3)))(2.0),
        "external(cube): jvp= returned f64[3] beside f64[]; they must have the same shape",
    ),
    "alike": (
        lambda: grad(external(cube, jvp=lambda a, t: [1.0, 2.0]))(2.0),
        "external(cube): the result is Structure(*), but the tangent from jvp= Structure([*, *]); "
        "they must be alike",
    ),
    "leaves": (
        lambda: grad(external(cube, vjp=lambda a, w: ([w, w],)))(2.0),
        "external(cube): vjp= returned list beside f64[]; they must have the same shape",
    ),
    "more leaves": (
        lambda: grad(external(first_cube, vjp=lambda a, w: ([w, w, w],)))([2.0, 1.0]),
        "external(first_cube): vjp= returned a cotangent of 3 leaves for an argument of 2; they "
        "must be alike",
    ),
    "complex": (
        lambda: grad(lambda x: abs(external(cube, difference="central")(x * 1j)))(2.0),
        "external(cube): takes and gives real numbers, but was given c128[]; give real and "
        "imaginary parts as two arguments",
    ),
    "second": (
        lambda: grad(grad(external(cube, difference="central")))(2.0),
        "external(cube): how its derivative changes is not known, and a second one was asked for; "
        "declare the function with lineara.custom_jvp or lineara.custom_vjp, and give its "
        "derivative, too, as an external",
    ),
    "linear": (
        lambda: lineara.linear_transpose(external(cube, difference="central"), 1.0)(1.0),
        "external(cube): nothing says that this code is linear; declare it with "
        "lineara.custom_linear and its transpose",
    ),
    "program": (
        lambda: lineara.trace(external(cube, difference="central"), 2.0),
        "external(cube): code that Lineara cannot see has no program, and nothing can be proved "
        "of it; call it outside of trace, vmap and policy=, and in grad or vjp without them",
    ),
}


@pytest.mark.parametrize("name", SAYS)
def test_external_says_what_is_wrong(name):
    call, text = SAYS[name]
    with pytest.raises(lineara.errors.LinearaError) as caught:
        call()
    assert caught.value.message == text

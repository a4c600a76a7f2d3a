"""What is said of an engine that cannot run a function, and of a function that is no program."""

import re

import numpy as np
import pytest

from lineara import grad, jit, vmap


def test_exact_values_of_an_engine_that_rounds_in_its_own_way(said):
    assert said(lambda: jit(abs, engine="jax", exact=True)) == (
        "ProgramError: exact=True asks for the interpreter's bits, and the engine jax does not "
        "promise them; leave exact=True out, or engine=, or take native, adaptive or interpreter"
    )


def doubled(x):
    return x if x > 9 else doubled(2 * x) + x


def test_a_program_that_the_named_engine_does_not_take(said):
    pytest.importorskip("llvmlite")
    slope = jit(grad(lambda x: np.sum(vmap(doubled)(x))), engine="native")
    assert said(lambda: slope(np.ones(3))) == (
        "ProgramError: the engine native cannot evaluate f as asked: f is not lowered: it has an "
        "array of the type i64[_], whose size is a value; leave engine= out, which takes the first "
        "engine that can: interpreter"
        "\n  at <lambda>: assert said(lambda: slope(np.ones(3))) == ("
    )


@pytest.mark.parametrize("engine", ["native", "adaptive"])
def test_a_function_that_cannot_be_captured_says_what_would_work(engine):
    def longest(x):
        return np.unique(x)

    with pytest.raises(Exception, match="staged") as caught:
        jit(longest, engine=engine)(np.ones(3))
    told = "\n".join([str(caught.value), *caught.value.__notes__])
    assert re.sub(r"py:\d+", "py:N", told) == (
        "distinct: the shape of the result depends on staged values; keep the shape with "
        "np.where(condition, a, b), or count with a sum"
        "\n  at test_engines.py:N in longest: return np.unique(x)"
        "\njit(f, fallback=True) runs a function that cannot be captured as it is; "
        "lineara.static(n) makes a number that Python needs a constant, with a program for each "
        "value"
    )
    with pytest.warns(UserWarning, match="longest runs as it is"):
        np.testing.assert_array_equal(
            jit(longest, engine=engine, fallback=True)(np.ones(3)), longest(np.ones(3))
        )

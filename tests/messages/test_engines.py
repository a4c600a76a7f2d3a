"""What is said of an engine that cannot run a function, and of errors in machine code."""

from lineara import jit


def test_exact_values_of_an_engine_that_rounds_in_its_own_way(said):
    assert said(lambda: jit(abs, engine="jax", exact=True)) == (
        "ProgramError: exact=True asks for the interpreter's bits, and the engine jax does not "
        "promise them; leave exact=True out, or engine=, or take native, adaptive or interpreter"
    )

"""The evaluator frees what nobody reads any more, and its meter says the truth about memory."""

import tracemalloc

import pytest
from memory_programs import PROGRAMS, arguments, chain, program

from lineara.engines import Ask, Meter, run
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import vjp


def allocated(p, name, args):
    """The most memory that was allocated at one time while a definition ran."""
    tracemalloc.start()
    try:
        run(p, name, *args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("what", ["f", "f.vjp"])
def test_the_meter_agrees_with_the_allocator(name, what):
    p = vjp(program(name), "f")
    args, meter = arguments(p, what), Meter()
    run(p, what, *args, ask=Ask(meter=meter))
    assert abs(allocated(p, what, args) - meter.peak) < 0.02 * meter.peak


def test_a_chain_needs_three_arrays_however_long_it_is():
    for length in (5, 50):
        p, meter = parse(chain(length, 1000)), Meter()
        run(p, "f", *arguments(p, "f"), ask=Ask(meter=meter))
        assert meter.peak == 3 * 8000  # the argument, and one step


def test_the_meter_is_empty_when_the_results_are_gone():
    p, meter = vjp(program("layers"), "f"), Meter()
    found = run(p, "f.vjp", *arguments(p, "f.vjp"), ask=Ask(meter=meter))
    assert meter.live == 8 * 200 * 200 * 4  # the value and three gradients
    del found
    assert meter.live == 0

"""What is asked of a random higher-order program as a diagram, and the oracles."""

import random
import warnings
from typing import Any

import numpy as np
from calculus.random_terms import Random, meaning

import lineara
from lineara.bridges.calculus_and_diagrams import diagram_of
from lineara.calculus.types import power
from lineara.diagrams import Net, check, copied, isomorphic, show
from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.evaluate import Evaluator, evaluate, gradient
from lineara.diagrams.net import nodes_in
from lineara.diagrams.simplify import simplify
from lineara.diagrams.snapshot import snapshot
from lineara.diagrams.stepper import Derivation

AT = (0.7, -0.4)
H = 1e-30


def program(seed: int, depth: int = 4) -> Any:
    """A closed function of two numbers with closures, higher-order arguments and branches."""
    return Random(seed).function(power(2), depth)


def expected_steps(net: Net) -> int:
    nodes = list(nodes_in(net))
    return 2 * len(nodes) + 3 * (1 + sum(n.kind == "box" for n in nodes))


def complex_step(f: Any, at: tuple[float, float] = AT) -> list[float]:
    """The gradient by a step of 1e-30 i, by an evaluator that knows nothing of diagrams."""
    value = meaning(f, {})
    x, y = at
    with np.errstate(all="ignore"):
        return [np.imag(value(p)) / H for p in ((x + 1j * H, y + 0j), (x + 0j, y + 1j * H))]


def gradient_diagram(net: Net, value: float = 1.0) -> Net:
    """The gradient of a diagram with one real output, as a diagram: BLUE, its function at 1."""
    found = adjoint(net)
    *values, back = found.outputs
    del found.outputs[:]
    for w in (*values, back):
        w.target = None
    for w in values:
        found.add("drop", (w,))
    found.output(*found.add("eval", (back, *found.add("const", data=value))))
    return found


def close(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def singular(f: Any, result: Net, found: Any) -> bool:
    """Whether AT has no derivative, as hypot has none at (0, 0): there the declared choice counts.

    Then the eager engine makes the same choice, and beside the point the complex step agrees.
    """
    value, beside = meaning(f, {}), (AT[0] + 1e-3, AT[1] - 2e-3)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a program may be constant, which eager warns of
        eager = lineara.grad(lambda p: value(p) + 0.0 * p[0])(AT)
    return close(found, eager) and close(gradient(result, *beside), complex_step(f, beside))


def agree(seed: int, depth: int = 4, every_step: bool = False, simplified: bool = False) -> bool:
    """One program: its gradient is right, and any order of steps ends in the same diagram."""
    f = program(seed, depth)
    net = diagram_of(f)
    text = show(net)
    swept = adjoint(net)
    stepped = Derivation(net)
    for _ in stepped.steps(random.Random(seed)):
        if every_step:
            check(snapshot(stepped), finished=False)
    result = stepped.result()
    check(result)
    assert isomorphic(swept, result), text
    assert len(stepped.log) == expected_steps(net), text
    assert show(net) == text, "differentiating a diagram has changed it"
    machine = Evaluator()
    with np.errstate(all="ignore"):
        value, back = machine.run(result, AT)
        found = machine.apply(back, 1.0)
    wanted = complex_step(f)
    if not close(found, wanted):
        assert singular(f, result, found), text
        wanted = found
    assert close(value, meaning(f, {})(AT)), text
    if simplified:
        whole = gradient_diagram(net)
        for rng in (None, random.Random(seed)):
            small = simplify(whole, rng=rng)
            check(small)
            with np.errstate(all="ignore"):
                assert close(evaluate(small, *AT), wanted), text
            assert len(list(nodes_in(small))) <= len(list(nodes_in(whole)))
    return any(wanted)


def primal(seed: int, depth: int = 4) -> Net:
    return copied(diagram_of(program(seed, depth)))

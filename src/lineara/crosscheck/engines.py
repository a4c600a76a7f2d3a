"""The four engines, each asked for value and gradient of a program in its own notation.

They share the derivative facts of the primitives, and nothing else; the calculus runs twice, by
its rules and by its machine, and the programs of Linear A as machine code, too, where that can be.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import lineara
from lineara import diagrams
from lineara.calculus.interface import gradient
from lineara.calculus.machine import Machine
from lineara.calculus.readback import read_back
from lineara.calculus.reducer import Reducer
from lineara.calculus.show import show as show_term
from lineara.calculus.term_numbers import numbers_of
from lineara.calculus.terms import Term, app
from lineara.crosscheck import as_linear_a, as_python
from lineara.crosscheck.as_calculus import term_of, value_of
from lineara.crosscheck.as_diagram import diagram_of
from lineara.crosscheck.language import Program
from lineara.diagrams.evaluate import Evaluator
from lineara.engines import is_installed, nothing_kept, run
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad

Numbers = list[float]  # the value, then the gradient


def _arrays(program: Program) -> list[Any]:
    return [np.array(a) if isinstance(a, tuple) else a for a in program.at]


def _flat(*parts: Any) -> Numbers:
    return [float(x) for p in parts for x in np.ravel(p)]


def eager(program: Program) -> Numbers:
    """The linear graph that is recorded while the Python function runs."""
    names: dict[str, Any] = {}
    exec(compile(as_python.text_of(program), "<a random program>", "exec"), names)
    places = tuple(range(len(program.at)))
    value, gradient = lineara.value_and_grad(names["f"], argnums=places)(*_arrays(program))
    return _flat(value, *gradient)


def linear_a(program: Program, engine: str | None = None) -> Numbers:
    """The passes on the text: jvp, unzip, transpose."""
    p = grad(check(parse(as_linear_a.text_of(program), sugar=True)), "f")
    parts = [run(p, f, *_arrays(program), engine=engine).results for f in ("f", "f.grad")]
    return _flat(*parts[0], *parts[1])


def machine_code(program: Program) -> Numbers:
    """The same, as machine code with the rounding that it has by default."""
    with nothing_kept():
        return linear_a(program, "native")


def _pulled(program: Program) -> tuple[Term, Term]:
    """The value and the gradient, as terms."""
    f = term_of(program)
    at = value_of(program.numbers, f.type.source)  # type: ignore[union-attr]
    return app(f, at), app(gradient(f), at)


def _by_machine(t: Term) -> Numbers:
    return numbers_of(read_back(Machine().value(t), t.type))


def calculus_machine(program: Program) -> Numbers:
    """The machine of the calculus on a pullback."""
    value, slopes = _pulled(program)
    return [*_by_machine(value), *_by_machine(slopes)]


def calculus_rules(program: Program) -> Numbers:
    """The numbered rules of the calculus, one after the other."""
    value, slopes = _pulled(program)
    r = Reducer(slopes)
    for _ in r:
        pass
    return [*_by_machine(value), *numbers_of(r.term())]


def by_diagrams(program: Program) -> Numbers:
    """The adjoint of the diagram, made by rewriting, and run."""
    machine = Evaluator()
    value, back = machine.run(diagrams.adjoint(diagram_of(program)), _arrays(program))
    return _flat(value, *machine.apply(back, 1.0))


Engine = Callable[[Program], Numbers]
ENGINES: dict[str, Engine] = {
    "eager graph": eager,
    "Linear A": linear_a,
    "calculus, by its rules": calculus_rules,
    "calculus, by its machine": calculus_machine,
    "diagrams": by_diagrams,
}
MACHINE_CODE = "machine code"


def with_machine_code() -> dict[str, Engine]:
    """The engines, with machine code where llvmlite is installed."""
    return {**ENGINES, MACHINE_CODE: machine_code} if is_installed() else ENGINES


def notations(program: Program) -> dict[str, str]:
    """The program as each engine has it."""
    text = as_linear_a.text_of(program)
    return {
        "Python": as_python.text_of(program),
        "Linear A": str(parse(text, sugar=True)),
        "calculus": show_term(term_of(program)) + "\n",
        "diagram": diagrams.show(diagram_of(program)) + "\n",
    }

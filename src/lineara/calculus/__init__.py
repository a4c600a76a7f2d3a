r"""The pullback calculus: functions are first-class, and differentiation is a term  [Pullback].

>>> from lineara import calculus
>>> calculus.show(calculus.run("pull(\\x. x * x; \\_. covec(1)) 3"))
'covec(6)'

`term` reads a text, `run` evaluates by the machine, `reduce` by the rules one by one, and `trace`
gives each of them; `type_of` infers, and `function` makes a Python function of a term.
`form` begins a differential form, with a wedge product, an exterior derivative and pullbacks.
"""

from lineara.calculus.check import check
from lineara.calculus.forms import Form, boundary, coordinates, form
from lineara.calculus.from_python import of
from lineara.calculus.interface import function, gradient, linear_a, run, type_of
from lineara.calculus.program import program, read, term
from lineara.calculus.reduction_steps import page, trace
from lineara.calculus.reduction_steps import value_of as reduce
from lineara.calculus.show import show

__all__ = [
    "Form",
    "boundary",
    "check",
    "coordinates",
    "form",
    "function",
    "gradient",
    "linear_a",
    "of",
    "page",
    "program",
    "read",
    "reduce",
    "run",
    "show",
    "term",
    "trace",
    "type_of",
]

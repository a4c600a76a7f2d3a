"""NumPy's functions as users write them, through the staged pipeline: the eager engine's gradients.

Every form of the table that plain variables can follow: methods of arrays, lists of them and
branches on values are the capture's business.
"""

import warnings

import pytest
from staged import captured
from test_numpy_forms import LINES, close, form, random_like

import lineara
from lineara.errors import NoRuleError, ShapeError
from lineara.linear_a.check import check
from lineara.linear_a.evaluate import run
from lineara.passes.compose import vjp
from lineara.types import type_of


def program_of(line):
    """The program of a form, or None where it needs more than a variable."""
    f, point = form(line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return captured(f, point)
        except (NoRuleError, ShapeError, AttributeError, TypeError, ValueError):
            return None


PROGRAMS = {line: program_of(line) for line in LINES}
FOLLOWED = [line for line, program in PROGRAMS.items() if program is not None]


def test_most_forms_are_followed():
    assert len(FOLLOWED) > 0.85 * len(LINES)


@pytest.mark.parametrize("line", FOLLOWED)
def test_staged_equals_eager(line):
    f, point = form(line)
    program = check(vjp(PROGRAMS[line], "f"))
    y, L = lineara.linearize(f, *point)
    c = random_like(y, 9)
    out = run(program, "f.vjp", *point, c)
    close(out.results[0], y, 1e-13)
    assert type_of(out.results[0]) == type_of(y)
    gradient = c @ L
    for x, a, b in zip(
        point, out.lresults, (gradient,) if len(point) == 1 else gradient, strict=True
    ):
        close(a, b, 1e-11)
        assert type_of(a) == type_of(x)

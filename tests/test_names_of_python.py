"""Whatever Python takes for a name, the texts that are written with it are read again."""

import linecache
import re
import sys
import warnings
from html import unescape
from typing import Any

import numpy as np
import pytest

import lineara
from lineara import calculus, diagrams
from lineara.linear_a.parse import parse
from lineara.text.language import FIRST, NEXT

# Letters of other scripts, with marks; words of the three languages; operations.
WORDS = """
θ é 한글 हिन्दी R E inf nan let in_ dup drop f64 copy sin add cond scan stack slice complex none
true case type object v x1 box const e1 J dual rec then
"""
TEXT = """
def {0}_(a):
    return a * a

def {0}({0}_in):
    {0} = np.sin({0}_in)
    return {0} * {0} + {0}_({0}_in)

def through({0}):
    z = {0} * {0}
    return z
"""


def known(file: str, text: str) -> None:
    """Make the lines of a text those of a file."""
    lines: list[str] = [*text.splitlines(True)]
    linecache.cache[file] = (len(text), None, lines, file)


def functions(name: str):
    """Functions of the text, whose parameters, variables and names are that name."""
    text, file = TEXT.format(name), f"<doctest {name}>"
    known(file, text)
    held: dict[str, Any] = {"np": np}
    exec(compile(text, file, "exec"), held)
    return held[name], held["through"]


def test_every_character_of_a_name_of_python_may_stand_in_one():
    every = [chr(i) for i in range(sys.maxunicode + 1)]
    assert not [c for c in every if c.isidentifier() and not re.match(f"[{FIRST}]", c)]
    assert not [c for c in every if f"a{c}".isidentifier() and not re.match(f"[{NEXT}]", c)]
    assert not [c for c in every if c.isspace() and re.match(f"[{NEXT}]", c)]


@pytest.mark.parametrize("name", WORDS.split())
def test_texts_of_a_function_are_read_again(name):
    for f in functions(name):
        found = lineara.stages(f, 0.5)
        for program in (found.staged.program, found.program):
            assert str(parse(str(program))) == str(program)
        for by in ("source", "trace"):
            net = lineara.diagram(f, 0.5, by=by)
            drawn = diagrams.svg(net)
            described = re.search("<desc>(.*?)</desc>", drawn, re.DOTALL)
            assert described
            assert diagrams.same(diagrams.parse(unescape(described[1])), net)
        term = calculus.show(calculus.of(f))
        assert calculus.show(calculus.term(term)) == term


@pytest.mark.parametrize("key", ["größe", "a b", "x\u00a0y", "→", "1", "let"])
def test_keys_of_arguments_are_read_again(key):
    program = lineara.stages(lambda p: p[key] * 2.0, {key: 1.0}).program
    assert str(parse(str(program))) == str(program)


def test_the_name_of_a_variable_is_the_users():
    _, f = functions("θ")
    assert "θ_2, θ_3 = copy(θ)" in diagrams.svg(lineara.diagram(f, 0.5))
    assert "def through(θ: f64;)" in str(lineara.stages(f, 0.5).staged.program)


def test_source_that_python_warns_of_is_read_without_a_warning():
    text, file = 'def f(x):\n    y = x * len("\\d")\n    return y * x\n', "<doctest warned>"
    known(file, text)
    held: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, file, "exec"), held)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "y = " in diagrams.svg(lineara.diagram(held["f"], 3.0, by="trace"))
        lineara.explore(held["f"], 3.0)

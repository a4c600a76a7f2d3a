"""Work of captured functions, their gradients and the capture, counted at two sizes."""

import importlib.util
import sys

import numpy as np
import pytest
from call_counts import calls

from lineara import jit, stages, trace
from lineara.engines import Ask, run
from lineara.facts.registry import registry
from lineara.passes.derivatives import vjp

SCALE = 3.0


def fill(x):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def branches(x):
    s = 0.0
    for i in range(len(x)):
        s = s + np.sin(x[i]) * s if x[i] > 0.05 else s * 0.9 + x[i]
    return s


def nested(x):
    m, s = int(len(x) ** 0.5), 0.0
    for i in range(m):
        for j in range(m):
            s = s + x[i * m + j] * s * 0.01
    return s


def until(x):
    s, k = 1.0, 0
    while k < len(x) and s < 1e9:
        s = s + x[k] * s * 0.001
        k += 1
    return s


def works(f, n):
    """The work of the value and of the gradient, and the size of the text."""
    x = np.random.default_rng(0).uniform(0.01, 0.09, n)
    program = trace(f, x)
    operands, derived = program.operands((x,)), vjp(program.program, program.name)
    value = run(program.program, program.name, *operands, ask=Ask(work=True))
    back = run(derived, f"{program.name}.vjp", *operands, 1.0, ask=Ask(work=True))
    return value.work, back.work, program.size()


@pytest.mark.parametrize("f", [fill, branches, nested, until])
def test_a_gradient_costs_twice_the_value_at_every_size(f):
    small, large = works(f, 256), works(f, 1024)
    assert small[2] == large[2]
    for value, back, _ in (small, large):
        assert back <= 2 * value
    for few, many in zip(small[:2], large[:2], strict=True):
        assert many == pytest.approx(4 * few, rel=0.07)  # beside what is done once


def test_the_gradient_of_a_loop_is_linear_to_a_million_rounds():
    few, many = (stages(fill, np.zeros(n)).certificate for n in (10**3, 10**6))
    assert many.reverse <= 1.6 * many.value
    for before, after in ((few.value, many.value), (few.reverse, many.reverse)):
        assert np.log10(after / before) / 3 == pytest.approx(1.0, abs=0.001)
    assert many.tape_bytes == (10**6 - 1) * 8 * 4  # two positions, and what is read there


BLOCK = """
    for i in range(len(x)):
        if x[i] > {k}:
            s = s + x[i]
        else:
            y[i] = s * 0.5
    while s > {k} + 1.0:
        s = s * 0.5
"""


def module_of(body, name, folder):
    """A module that is read from a file."""
    file = folder / f"{name}.py"
    file.write_text(body)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None, "it was just written"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, file


def calls_of_a_capture(blocks, folder):
    """How many Python calls the capture of a function with so many loops and branches makes."""
    body = "".join([BLOCK.format(k=k) for k in range(blocks)])
    text = f"def f(x, y):\n    s = 0.0\n    y = y * 1.0\n{body}\n    return s + y.sum()\n"
    f, x = module_of(text, f"made_{blocks}", folder)[0].f, np.ones(9)
    return calls(lambda: trace(f, x, x))


FORMS = {  # and the calls that one takes, with some 30 that tests before it may cause
    "branch": ("if s > 0.25:\n        s = s * 0.5\n    else:\n        s = s + 1.0", 610),
    "loop": ("for i in range(len(x)):\n        s = s + x[i] * 0.5", 850),
}


@pytest.mark.parametrize(("text", "most"), FORMS.values(), ids=FORMS)
def test_a_form_is_written_in_a_bounded_number_of_calls(text, most, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "writings", {})

    def calls_of(forms):
        blocks = f"    {text}\n" * forms
        body = f"def f(x):\n    s = x[0]\n{blocks}    return s\n"
        f = module_of(body, f"forms_{forms}", tmp_path)[0].f
        return calls(lambda: trace(f, np.ones(9)), warm=2)

    few, more, many = map(calls_of, (2, 6, 10))
    assert max(more - few, many - more) <= 4 * most


def test_a_capture_costs_what_the_function_is_long(tmp_path):
    few, many = (calls_of_a_capture(blocks, tmp_path) for blocks in (4, 16))
    assert many <= 4.4 * few, (few, many)


ONCE = """
def f(x, n):
    y, z = x * 1.0, x * 0.5
    s, best, k = 0.0, -1e9, 0
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
        if y[i] > best:
            best = y[i]
        for j in range(len(x)):
            s = s + x[i] * z[j]
            z = z * 0.5
    while k < n and s > 1.0:
        s, k = 0.5 * s, k + 1
    for v in x:
        if v < 0.0:
            break
        s += v
    return s * best + y.sum()
"""


def test_the_body_of_a_loop_is_written_once(tmp_path):
    module, file = module_of(ONCE, "once", tmp_path)
    x = np.linspace(0.1, 0.9, 9)
    lines = []

    def watch(frame, event, argument):
        code = frame.f_code
        block = code.co_filename == str(file) and code.co_varnames[:1] == ("item.",)
        if event == "call" and block:
            lines.append(code.co_firstlineno)

    sys.setprofile(watch)
    try:
        trace(module.f, x, np.float64(4.0))
    finally:
        sys.setprofile(None)
    assert sorted(lines) == [5, 9, 14], "the body of each for loop"


def test_a_call_of_jit_costs_little_beside_its_program():
    def f(x, y):
        return np.sin(x) @ y * SCALE

    x, jitted = np.ones(9), jit(f)
    program = jitted.program(x, x)
    operands = program.operands((x, x))
    alone = calls(lambda: program.definition.run(operands, checked=False))
    assert calls(lambda: jitted(x, x)) - alone <= 80

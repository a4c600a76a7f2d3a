"""A body that is cut into functions gives what it gives as one, and so does one that is very long.

Here bodies are cut wherever they can be, so that each kind of value, jump and exception crosses a
cut in one of the programs.
"""

import re

import numpy as np
import pytest
from test_native import EXACT, NATIVE, agree, asserted, beyond, bits, divided, grown, logged

import lineara
from lineara.engines.native import emitted, lower, pieces
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")

X = np.array([0.3, 1.7, -0.4, 2.0, 0.9])


@pytest.fixture
def cut(monkeypatch):
    """The texts of what is compiled from now on, each cut wherever it can be."""
    monkeypatch.setenv("LINEARA_CACHE_DIR", "off")
    monkeypatch.setattr(lower, "LONG", 0)
    monkeypatch.setattr(pieces, "PIECE", 1)
    texts, lowered = [], lower.lowered

    def noted(*args):
        texts.append(lowered(*args))
        return texts[-1]

    monkeypatch.setattr(emitted, "lowered", noted)
    return texts


@pytest.mark.parametrize("f", [beyond, divided, asserted, logged, grown])
@pytest.mark.parametrize("x", [X, -X, np.ones(5)], ids=["mixed", "opposite", "ones"])
def test_numbers_checks_and_exceptions_cross_cuts(f, x, cut):
    p = lineara.jit(f).program(x, 2)
    values = [x, np.int64(2)] if len(p.definition.text.params) == 2 else [x]
    agree(p.program, p.name, *values)
    assert all(["@piece2(" in code.text for code in cut])


def steps(x, noise):
    total = 0.0
    for i in range(4):
        if x[i] > 0.5:
            total = total + np.sin(x[i]) * noise
    m = np.outer(x, x) + noise * np.eye(5)
    y = np.linalg.solve(m, x)
    n = 0
    while total < 3.0:
        total, n = total + 1.0 + y @ y, n + 1
    return total + np.sum(m * m) * n


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_loops_branches_and_vectors_are_cut_around(engine, cut):
    f = lineara.value_and_grad(steps, (0, 1))
    value, bars = lineara.jit(f, engine=engine)(X, 0.7)
    whole, by_tape = f(X, 0.7)
    np.testing.assert_allclose(value, whole, rtol=1e-12)
    for ours, theirs in zip(bars, by_tape, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert all(["@piece9(" in code.text for code in cut])
    assert bool(cut) == (engine == "native")


def single(x, k):
    y = x[0] * k
    for i in range(4):
        y = y * np.float32(0.5) + x[i] if x[i] > 0.5 else y - np.float32(np.float64(y) * i)
    m = np.outer(x, x) + np.float32(y)
    return m @ x, np.float32(0.1) * y, np.max(m) > y


def test_float32s_and_vectors_of_them_cross_cuts(cut):
    p = lineara.jit(single).program(X.astype(np.float32), 3)
    agree(p.program, p.name, *p.operands((X.astype(np.float32), 3)))
    assert all(["@piece9(" in code.text for code in cut])


def spiral(z, x):
    w = z[0] * x + (z[1] if x > 0 else -z[1])
    for k in range(4):
        w = w * z[k] + abs(w) * 1j
    return np.outer(z, z) @ z * w, w.real, w / z[2] if w.imag > 0 else w


def test_complex_numbers_cross_cuts(cut):
    args = X * (1 - 0.5j), np.float64(0.7)
    p = lineara.jit(spiral).program(*args)
    agree(p.program, p.name, *p.operands(args))
    assert all(["@piece9(" in code.text for code in cut])


def straight(n):
    """n operations in a row, on two numbers."""
    lines = [f"let x{k + 1}: f64 = sin(x{k}) in let y{k + 1}: f64 = x{k + 1} - y{k} in"
             for k in range(n)]  # fmt: skip
    return check(parse(f"def f(x0: f64, y0: f64;) -> (f64;) = {' '.join(lines)} (y{n};)"))


def test_the_frame_has_room_for_what_is_alive_and_not_for_all_that_ever_was(cut):
    texts = [lower.lowered(straight(n), "f").text for n in (30, 60)]
    few, many = [re.findall(r"alloca \[(\d+) x i8\]", text) for text in texts]
    assert few == many == ["24"]  # two numbers and where results go


def test_what_cannot_be_cut_is_refused_when_it_is_too_long(cut, monkeypatch):
    monkeypatch.setattr(pieces, "LONGEST", 20)
    p = lineara.jit(lineara.grad(steps)).program(X, 0.7)
    why = NATIVE.takes(p.program, p.name)
    assert why is not None
    assert re.sub(r"\d+ lines", "n lines", why) == (
        f"{p.name} is not lowered: it has a loop or a branch of too many operations, with what "
        "they call: its code has n lines in one piece, and may have 20"
    )


def test_a_long_line_is_several_functions_and_one_result(monkeypatch):
    monkeypatch.setattr(lower, "LONG", 100)
    monkeypatch.setattr(pieces, "PIECE", 100)
    p = straight(200)
    assert "@piece3(" in lower.lowered(p, "f").text
    for engine in (EXACT, NATIVE):
        y = agree(p, "f", 0.3, 0.4, engines=(engine,))
        assert bits(y) == bits(agree(p, "f", 0.3, 0.4, engines=()))

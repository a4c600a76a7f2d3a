"""Machine code that looks at places finds an access one element too far, wherever it is planted."""

import re

import checked_places
import numpy as np
import pytest

import lineara
from lineara.engines.native import emit, folds, stacks, strided
from lineara.engines.native import numbers as nm

pytest.importorskip("llvmlite")

X = np.array([0.3, 0.9, 0.51, 0.11, 0.7])


@pytest.fixture(autouse=True)
def looking(monkeypatch):
    checked_places.switch_on(monkeypatch.setattr)
    return monkeypatch


def raises(text):
    return pytest.raises(checked_places.OutOfPlace, match=re.escape(text))


def read(x, n):
    return x[n] * 2.0


def written(x, n):
    y = np.zeros(5)
    y[n] = x[0]
    return y


def any_place(em, index, n, complain):
    return nm.Num("i64", em.text(index))


@pytest.mark.parametrize("n", [5, -1])
def test_an_element_beside_the_array_is_not_read(looking, n):
    looking.setattr(strided, "within", any_place)
    f = lineara.jit(read, engine="native")
    assert f(X, 4) == 2 * X[4]
    with raises(
        "read: v: f64 = index[at=(n,)](x)  at test_checked_places.py:"
        f"{read.__code__.co_firstlineno + 1}: %v5 = load double, ptr %v4: "
        f"bytes {8 * n} to {8 * n + 7} of 40"
    ):
        f(X, n)
    assert f(X, 4) == 2 * X[4]


def test_an_element_beside_the_array_is_not_written(looking):
    looking.setattr(strided, "within", any_place)
    f = lineara.jit(written, engine="native")
    assert f(X, 4)[4] == X[0]
    with raises("store double"):
        f(X, 5)


def test_a_direct_call_raises_too(looking):
    looking.setattr(strided, "within", any_place)
    f = lineara.jit(read, engine="native")
    for _ in range(3):
        f(X, 4)
    direct = f.program(X, 4).direct
    assert direct(X, 4) == 2 * X[4]
    with raises("bytes 40 to 47 of 40"):
        direct(X, 5)


def test_memory_is_not_cleared_beyond_its_end(looking):
    def cleared(self, array):
        fill = self.outside("llvm.memset.p0.i64", "void (ptr, i8, i64, i1)")
        self.line(f"call void {fill}(ptr {self.address(array)}, i8 0, i64 48, i1 false)")

    looking.setattr(emit.Emitter, "cleared", cleared)
    with raises("bytes 0 to 47 of 40"):
        lineara.jit(written, engine="native")(X, 4)


def test_a_sum_ends_with_its_operand(looking):
    right = folds.partial_sums

    def wrong(name, *more):
        return right(name, *more).replace("icmp ult i64 %k, %n", "icmp ule i64 %k, %n")

    x = np.arange(40.0)
    assert lineara.jit(np.sum, engine="native")(x) == np.sum(x)
    looking.setattr(folds, "partial_sums", wrong)
    with raises("bytes 320 to 327 of 320"):
        lineara.jit(lambda x: np.sum(x) * 1.0, engine="native")(x)


def halved(x):
    while x > 1e-30:
        x = x * 0.5 * np.cos(x)
    return x


def test_a_tape_grows_before_it_is_full(looking):
    gradient = lineara.grad(halved)
    assert np.isfinite(lineara.jit(gradient, engine="native exact")(3.0))
    right = stacks.Rows.grow

    def wrong(self):
        begin = len(self.em.lines)
        right(self)
        for i, line in enumerate(self.em.lines[begin:], begin):
            if "br i1" in line and "%on" in line:  # there is room, it takes for granted
                self.em.lines[i] = f"  br label %{line.split('label %')[1].split(',')[0]}"
                break

    looking.setattr(stacks.Rows, "grow", wrong)
    f = lineara.jit(gradient, engine="native exact")
    with raises("bytes 0 to 7 of 0"):
        f(3.0)


def test_a_recursion_is_looked_at_too():
    def down(x, n):
        return x[n] if n < 1 else np.sin(down(x, n - 1)) * x[n]

    f = lineara.jit(down, engine="native")
    assert np.isclose(f(X, 2), down(X, 2))

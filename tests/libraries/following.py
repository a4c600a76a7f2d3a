"""A check of one function that calls a library: its value, and its derivative.

The value inside a differentiation is that of the plain call.  The gradient agrees with central
differences of the plain function, in every direction and by forward mode in one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lineara
from lineara.errors import LinearaError

Function = Callable[..., Any]


def differences(f: Function, x: np.ndarray, h: float) -> np.ndarray:
    """Central differences of fourth order, by plain calls only."""
    found = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[i] = h * abs(x[i])

        def at(k: int, e: np.ndarray = e) -> float:
            return float(f(*(x + k * e).tolist()))

        found[i] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * e[i])
    return found


def check(f: Function, *at: float, h: float = 1e-4, tol: float = 1e-6) -> None:
    """`f` takes numbers and gives one; it is differentiated with respect to all of them."""
    x = np.array(at)
    plain = f(*at)
    names = tuple(range(len(at)))
    value, gradient = lineara.value_and_grad(f, names)(*at)
    gradient = np.array(gradient, float)
    assert float(value) == pytest.approx(float(plain), rel=1e-14, abs=1e-300)
    expected = differences(f, x, h)
    scale = max(float(np.max(np.abs(expected))), 1e-12)
    assert np.allclose(gradient, expected, rtol=tol, atol=tol * scale), f"{gradient} {expected}"
    v = np.cos(np.arange(len(at)))
    _, ahead = lineara.jvp(f, at, tuple(v.tolist()))
    assert float(ahead) == pytest.approx(float(gradient @ v), rel=1e-9, abs=1e-9 * scale)
    assert f(*at) == plain, "a plain call is as it was before the differentiation"


def check_jitted(f: Function, *at: float) -> None:
    """One program gives the values of plain calls at two places, and the gradient of the eager one.

    The library has been called before, so what it caches is there.
    """
    f(*at)
    jitted = lineara.jit(f)
    for scale in (1.0, 1.001):
        values = [a * scale for a in at]
        assert float(jitted(*values)) == pytest.approx(float(f(*values)), rel=1e-11, abs=1e-300)
    names = tuple(range(len(at)))
    gradient = np.array(lineara.grad(jitted, names)(*at), float)
    expected = np.array(lineara.grad(f, names)(*at), float)
    assert np.allclose(gradient, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))


def refused(f: Function, *at: float, match: str) -> None:
    """The derivative is refused in these words, and the plain call is as it was."""
    plain = f(*at)
    with pytest.raises((LinearaError, TypeError, ValueError), match=match):
        lineara.grad(f, tuple(range(len(at))))(*at)
    assert f(*at) == plain


class Cases:
    """The functions of one library that are checked, by name."""

    def __init__(self, library: str, *modules: str) -> None:
        for module in (library, *modules):
            pytest.importorskip(module)
        self.works: dict[str, tuple[Function, tuple, dict]] = {}
        self.refused: dict[str, tuple[Function, tuple, str, str]] = {}
        self.uncaptured: dict[str, str] = {}

    def at(self, *at: float, **options: float) -> Callable[[Function], Function]:
        """The decorated function has a derivative at these numbers."""

        def register(f: Function) -> Function:
            self.works[f.__name__] = f, at, options
            return f

        return register

    def refuses(self, *at: float, match: str, why: str) -> Callable[[Function], Function]:
        """Its derivative is refused, in these words; `why` is what the page of libraries says."""

        def register(f: Function) -> Function:
            self.refused[f.__name__] = f, at, match, why
            return f

        return register

    def not_captured(self, *names: str, why: str) -> None:
        """These have a derivative, but jit refuses them; `why` is what the page says."""
        self.uncaptured |= dict.fromkeys(names, why)

    def tests(self) -> tuple[Any, Any, Any]:
        """The tests of each kind, to be named `test_...` in the module."""

        @pytest.mark.parametrize("name", self.works)
        def works(name: str) -> None:
            f, at, options = self.works[name]
            check(f, *at, **options)

        @pytest.mark.parametrize("name", self.refused)
        def refuses(name: str) -> None:
            f, at, match, _ = self.refused[name]
            refused(f, *at, match=match)

        @pytest.mark.parametrize("name", self.works)
        def jitted(name: str) -> None:
            f, at, _ = self.works[name]
            if name not in self.uncaptured:
                check_jitted(f, *at)
                return
            plain = f(*at)
            with pytest.raises(Exception, match=r"\w"):
                lineara.jit(f)(*at)
            assert f(*at) == plain

        return works, refuses, jitted

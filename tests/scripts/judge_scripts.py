"""A random script inside of a differentiation: what it sees, what it gives, and its slope."""

import warnings
from collections import Counter
from typing import Any

import numpy as np
from differences import slope
from random_scripts import Script

import lineara
from lineara.errors import LinearaError


class Wrong(AssertionError):
    """The script comes out otherwise than plainly."""


def _plain(f: Any, x: np.ndarray, s: float) -> tuple[Any, list[Any]]:
    """(value or the class of the exception, what was noted) of a plain run."""
    seen: list[Any] = []
    try:
        return f(x.copy(), s, lambda *found: seen.append(found)), seen
    except Exception as error:
        return type(error), seen


def judge(seed: int) -> str:
    """How a script comes out: `right`, `raises` as plainly, or why it is refused."""
    rng = np.random.default_rng(seed)
    script = Script(seed)
    f, x, s = script.function(), rng.normal(size=3), float(rng.normal())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return _judged(f, x, s, rng, script.text)
        except Exception as error:
            error.add_note(f"seed {seed}, x = {x.tolist()}, s = {s}\n{script.text}")
            raise


def _judged(f: Any, x: np.ndarray, s: float, rng: Any, text: str) -> str:
    expected, plainly = _plain(f, x, s)
    seen: list[Any] = []
    try:
        value, found = lineara.value_and_grad(f, (0, 1))(x, s, lambda *v: seen.append(v))
    except LinearaError as error:
        if not isinstance(expected, type):
            return f"{type(error).__name__}: {error.message}"
        if not isinstance(error, expected) and not error.refuses:
            raise Wrong(f"raises {type(error)}, plainly {expected}: {error}") from error
        return "raises" if isinstance(error, expected) else f"refused: {error.message}"
    except Exception as error:
        if isinstance(expected, type) and isinstance(error, expected):
            return "raises"
        raise
    if isinstance(expected, type):
        raise Wrong(f"gives {value}, plainly raises {expected}")
    if repr(seen) != repr(plainly):
        at = next(
            pair for pair in zip(seen, plainly, strict=False) if repr(pair[0]) != repr(pair[1])
        )
        raise Wrong(f"sees {at[0]}, plainly {at[1]}")
    if repr(float(value)) != repr(float(expected)) or type(value) is not type(expected):
        raise Wrong(f"value {value!r}, plainly {expected!r}")
    u = rng.normal(size=3)
    along = float(np.dot(found[0], u) + found[1])
    if not (np.isfinite(value) and np.isfinite(along)):  # infinities on the way: nobody is misled
        return "no number"
    return _slope(f, x, s, along, u, 2e-2 if "float32" in text else 1e-6)


def _slope(f: Any, x: np.ndarray, s: float, found: float, u: np.ndarray, tol: float) -> str:
    """Compare with differences that are so small that no branch changes."""
    for first in (1e-2, 1e-3, 1e-4, 1e-1):
        by_differences, error = slope(lambda t: _plain(f, x + t * u, s + t)[0], first)
        near = abs(found - by_differences) <= tol * (1 + abs(by_differences)) + error
        if np.isfinite(by_differences) and near:
            return "right"
    values = [_plain(f, x + t * u, s + t)[0] for t in (-1e-4, -1e-5, 0.0, 1e-5, 1e-4)]
    left, right = (values[2] - values[1]) / 1e-5, (values[3] - values[2]) / 1e-5
    if abs(left - right) > 1e-3 * (1 + abs(found)):
        return "kink"
    raise Wrong(f"slope {found}, by differences {by_differences} +- {error}")


def judged(seeds: range) -> Counter[str]:
    """How the scripts of these seeds come out; raises at the first wrong one."""
    return Counter([judge(seed) for seed in seeds])

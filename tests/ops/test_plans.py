"""A call that has a plan gives what the general way gives, bit for bit, and costs counted work."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from forms import LINES
from test_numpy_forms import form
from test_primitives import SMOOTH
from test_primitives import random_like as like

import lineara
from lineara.facts.primitive import registry
from lineara.tape import plans

NEVER = sys.maxsize


@contextmanager
def plans_at(call: int) -> Iterator[dict[Any, Any]]:
    """Signatures get their plans at that call; the table, which is empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "CALLS", call)
        patch.setattr(registry, "plans", {})
        patch.setattr(registry, "readers", {})
        yield registry.plans


def outcome(f: Callable[..., Any], point: list[Any]) -> Any:
    """Value and layout, both directions of the derivative, and the dtypes of all; or the error."""
    try:
        y, L = lineara.linearize(f, *point)
        seeds = [like(p, i) for i, p in enumerate(point)]
        ahead = L @ (seeds[0] if len(point) == 1 else tuple(seeds))
        back = like(y, 9) @ L
    except Exception as e:
        return type(e), str(e)
    return [bits(v) for v in (y, ahead, back)], np.asarray(y).strides


def gradient(f: Callable[..., Any], point: list[Any]) -> Any:
    """The gradient of a sum of what f gives, or the error."""
    try:
        return bits(lineara.grad(lambda *args: np.sum(f(*args) * 0.5))(*point))
    except Exception as e:
        return type(e), str(e)


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    a = np.asarray(value)
    return type(value), a.dtype, a.shape, a.tobytes()


def agree(f: Callable[..., Any], point: list[Any]) -> None:
    """The same arrays in Fortran order have the plans that were made for those in C order."""
    points = [point]
    if any([np.ndim(p) > 1 for p in point]):
        points.append([np.asfortranarray(p) if np.ndim(p) > 1 else p for p in point])
    with plans_at(NEVER):
        expected = [gradient(f, point), *[outcome(f, p) for p in points]]
    with plans_at(1):
        assert [gradient(f, point), *[outcome(f, p) for p in points]] == expected


@pytest.mark.parametrize("line", SMOOTH, ids=repr)
def test_a_primitive_with_a_plan_gives_what_it_gives_without(line: Any):
    agree(line.plain(), line.point())


@pytest.mark.parametrize("line", LINES)
def test_a_form_of_numpys_with_a_plan_gives_what_it_gives_without(line: str):
    agree(*form(line))


def test_one_shape_after_another_has_a_plan():
    """np.tile reads its result off under two more shapes."""
    x = np.arange(6.0).reshape(3, 2)
    agree(lambda a: np.tile(a, (2, 1)), [x])
    agree(lambda a: np.tile(a, (2, 3)) + np.reshape(a, (1, 6))[0, 0], [x])

"""The gallery, captured: the value of Python and the gradient of the eager engine."""

import importlib

import numpy as np
import pytest
from gallery.snippets import GALLERY

import lineara
from lineara.errors import LinearaError
from lineara.passes.derivatives import reverse
from lineara.staging.capture import trace as capture
from lineara.staging.value_and_map import Halves

for _page in ("audio", "biology", "control", "finance", "geometry", "graphs", "imaging", "physics",
              "statistics", "text"):  # fmt: skip
    importlib.import_module(f"gallery.{_page}")

REFUSED = {"shortest_path", "maximum_spanning_tree"}


def name(snippet):
    return f"{snippet.f.__module__.partition('.')[2]}-{snippet.f.__name__}"


def flat(values):
    return lineara.ravel(values)[0]


@pytest.mark.parametrize("snippet", [s for s in GALLERY if s.f.__name__ not in REFUSED], ids=name)
def test_a_captured_function_has_python_s_value_and_the_eager_gradient(snippet):
    f, args = snippet.f, snippet.args
    p = capture(f, *args)
    np.testing.assert_allclose(flat(p(*args)), flat(f(*args)), rtol=1e-12, atol=1e-12)
    expected = lineara.grad(f, tuple(range(len(args))))(*args)
    given, _ = Halves(p, reverse(p.program, p.name), args, {}).gradient([1.0])
    np.testing.assert_allclose(flat(given), flat(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("snippet", [s for s in GALLERY if s.f.__name__ in REFUSED], ids=name)
def test_what_is_not_captured_is_refused(snippet):
    with pytest.raises(LinearaError):
        capture(snippet.f, *snippet.args)

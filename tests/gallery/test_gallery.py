"""The gallery: everyday code, unchanged, has the right gradient and Hessian-vector product.

The oracle is a central difference, extrapolated; it knows nothing of derivatives.
"""

import warnings

import numpy as np
import pytest

import lineara
from gallery import (
    audio,
    biology,
    control,
    finance,
    geometry,
    graphs,
    imaging,
    physics,
    statistics,
    text,
)
from gallery.snippets import GALLERY

PAGES = (audio, biology, control, finance, geometry, graphs, imaging, physics, statistics, text)


def difference(f, x, v):
    """The derivative of f at x in the direction v, from four values at each of two steps."""
    size = 1e-3

    def at(h):
        return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / 12 / h

    coarse, fine = at(size), at(size / 2)
    return (16 * fine - coarse) / 15


def close(found, expected, tolerance):
    scale = 1 + np.max(np.abs(expected))
    return np.max(np.abs(np.asarray(found) - expected)) <= tolerance * scale


def name(snippet):
    return f"{snippet.f.__module__.partition('.')[2]}-{snippet.f.__name__}"


@pytest.mark.parametrize("snippet", GALLERY, ids=name)
def test_gradient_and_hessian_vector_product(snippet):
    f, args = snippet.f, snippet.args
    everything = args[0] if len(args) == 1 else args
    flat, unravel = lineara.ravel(everything)

    def on_vector(x):
        given = unravel(x)
        return f(given) if len(args) == 1 else f(*given)

    rng = np.random.default_rng(1)
    v = rng.uniform(-1, 1, flat.shape) * np.abs(flat)  # in the units of each argument
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        places = tuple(range(len(args)))
        value, found = lineara.value_and_grad(f, 0 if len(args) == 1 else places)(*args)
        assert value == pytest.approx(f(*args), rel=1e-12)
        gradient = lineara.ravel(found)[0]
        assert close(gradient @ v, difference(on_vector, flat, v), 1e-7)
        if not snippet.kinked:
            hvp = lineara.hvp(on_vector)(flat, v)
            assert close(hvp, difference(lineara.grad(on_vector), flat, v), 1e-6)


def test_the_gallery_is_large():
    assert len(GALLERY) >= 150
    pages = {s.f.__module__ for s in GALLERY}
    assert len(pages) == len(PAGES) == 10

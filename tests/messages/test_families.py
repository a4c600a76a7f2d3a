"""Forms of SciPy's image, signal and distance functions without a derivative rule."""

import numpy as np
import pytest
import scipy
from scipy import interpolate, ndimage
from scipy.spatial import distance

from lineara import grad

IMAGE, KNOTS = np.arange(12.0).reshape(3, 4), np.arange(5.0)
CASES = {
    lambda x: np.sum(ndimage.shift(IMAGE.astype(int), x)): (
        "shift: the image has int64, and so has the result, which does not move; give "
        "image.astype(float), or output=float"
    ),
    lambda x: np.sum(ndimage.median_filter(IMAGE * x, 3, mode=["wrap", "nearest"])): (
        "median_filter: mode=['wrap', 'nearest'] has no rule; one mode for all axes has"
    ),
    lambda x: np.sum(ndimage.grey_erosion(IMAGE * x, structure=np.ones((3, 3)))): (
        "grey_erosion: structure= has no rule; a footprint, which is flat, has one"
    ),
    lambda x: np.sum(ndimage.sobel(IMAGE * x, output=IMAGE)): (
        "output= is a plain array, which cannot hold a derivative; make it in the differentiated "
        "function, or use the result"
    ),
    lambda x: np.sum(scipy.signal.upfirdn([1.0], x * IMAGE, mode="wrap")): (
        "upfirdn: mode='wrap' has no rule; with zeros beyond it has one"
    ),
    lambda x: np.sum(scipy.signal.chirp(IMAGE, 1.0, 2.0, x, "hyperbolic")): (
        "chirp: method='hyperbolic' has no rule; 'linear', 'quadratic' and 'logarithmic' have"
    ),
    lambda x: scipy.signal.normalize([0.0 * x, 1.0], [2.0, 1.0])[0][0]: (
        "normalize: a first coefficient that is 0 is cut off, and has no derivative; give the "
        "coefficients without it"
    ),
    lambda x: scipy.signal.bilinear([x], [1.0, 2.0])[0]: (
        "scipy.signal.bilinear of a traced value has no derivative rule; write it with functions "
        "that have one, or declare it with lineara.custom_jvp or lineara.custom_vjp"
    ),
    lambda x: scipy.signal.ellip(2, x, 20.0, 0.3)[0][0]: (  # which is followed, and calls this one
        "scipy.signal.ellipap of a traced value has no derivative rule; write it with functions "
        "that have one, or declare it with lineara.custom_jvp or lineara.custom_vjp"
    ),
    lambda x: np.sum(scipy.signal.step(([1.0], [1.0, x]))[1]): (
        "scipy.signal.lsim: of traced times it has no rule; give plain T=, and scale the system: "
        "the matrices A and B times c run c times as fast"
    ),
    lambda x: interpolate.splrep(KNOTS, x * KNOTS, s=0.1)[1][0]: (
        "splrep: has a rule in y, for a spline through all points: x, y, k, and s=0; CubicSpline "
        "has one in x too"
    ),
    lambda x: interpolate.splev(0.5, (x * KNOTS, KNOTS, 1)): (
        "splev: has a rule in c, with one axis, and in the points, not in t"
    ),
    lambda x: interpolate.splint(0.5, x, (KNOTS, KNOTS, 1), full_output=1)[0]: (
        "splint: full_output= has no rule; without it there is one"
    ),
    lambda x: np.sum(distance.cdist(IMAGE * x, IMAGE, "dice")): (
        "cdist: metric='dice' has no rule; minkowski, euclidean, sqeuclidean, cityblock, "
        "chebyshev, seuclidean, mahalanobis, cosine, correlation, braycurtis, canberra have one"
    ),
}


@pytest.mark.parametrize("f", CASES)
def test_form_without_a_rule(said, f):
    assert said(lambda: grad(f)(2.0)).split("\n")[0] == f"NoRuleError: {CASES[f]}"

"""SciPy's families as users call them: each line is an expression, and the laws hold for it."""

import re
import statistics
import warnings

import numpy as np
import pytest
import scipy.sparse.linalg
import scipy_family_forms
from scipy import linalg, ndimage, sparse, stats
from scipy.interpolate import (
    CubicHermiteSpline,
    CubicSpline,
    PPoly,
    RegularGridInterpolator,
    interp1d,
    make_interp_spline,
)
from scipy.spatial import distance
from scipy_family_forms import GRID, LINES, POINT
from tables import Laws
from test_numpy_forms import close, difference, flat, random_like

import lineara
from lineara.engines import run
from lineara.errors import LinearaError, NoRuleError, ShapeError
from lineara.linear_a.check import check
from lineara.passes.derivatives import vjp
from lineara.staging.capture import trace

laws = Laws()
SPACE = {
    "flat": flat,
    "linalg": linalg,
    "sparse": sparse,
    "ndimage": ndimage,
    "distance": distance,
    "statistics": statistics,
    "stats": stats,
    "np": np,
    "PPoly": PPoly,
}
SPACE |= {"CubicHermiteSpline": CubicHermiteSpline, "scipy": scipy} | vars(scipy_family_forms)


# Objects of SciPy's classes, and functions that are followed, have values but for rounding.
OBJECTS = (
    "Spline|_spline|interp1d|Interpolator|spl(rep|u|ev)|geometric_transform|istft|sparse|ttest|oneway|"
    r"kde|eigh_tri|sosfilt|decimate|linregress|wishart|\b[A-Z]{2,}[.(]"
)


def form(line):
    """The expression as a function, and the values of what it is a function of."""
    names = [n for n in POINT if re.search(rf"(?<![\w.\"]){n}(?![\w(\"'=])", line)] or ["s"]
    function = eval(f"lambda {', '.join(names)}: flat({line})", dict(SPACE, signal=scipy.signal))
    return function, [POINT[n] for n in names]


@laws.of(LINES)
def the_value_is_that_of_scipy(line):
    f, point = form(line)
    plain = f(*point)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, _ = lineara.linearize(f, *point)
    assert np.shape(y) == np.shape(plain)
    assert np.asarray(y).dtype == np.asarray(plain).dtype
    if re.search(OBJECTS, line):
        close(y, plain, 1e-13)
    else:  # sums of another order, which round as the processor's BLAS does
        np.testing.assert_allclose(y, plain, 4 * np.finfo(float).eps, 0)


@laws.of(LINES)
def first_derivatives_agree_with_differences_in_both_modes(line):
    f, point = form(line)
    y, L = lineara.linearize(f, *point)
    direction = [random_like(p, i) for i, p in enumerate(point)]
    ahead = L @ (direction[0] if len(point) == 1 else tuple(direction))
    close(ahead, difference(f, point, direction), 1e-7)
    y_bar = random_like(y, 9)
    back = y_bar @ L
    back = (back,) if len(point) == 1 else back
    total = sum(np.sum(g * d) for g, d in zip(back, direction, strict=True))
    close(total, np.sum(y_bar * ahead), 1e-12)


@laws.of(LINES)
def second_derivatives_agree_with_differences(line):
    f, point = form(line)
    c = random_like(f(*point), 5)
    gradient = lineara.grad(lambda *v: np.sum(c * f(*v)))
    direction = [random_like(p, i) for i, p in enumerate(point)]
    _, found = lineara.jvp(gradient, tuple(point), tuple(direction))
    close(found, difference(gradient, point, direction), 1e-6)


# What a program has not: whether eigenvalues are real, ranks and widths of windows are asked of
# values.
EAGER = (
    r"eigvals\(|linalg.eig\(|orth\(|null_space|subspace|gaussian_filter\(A, s\)|rankdata|spearman"
)
EAGER += r"|signal.(butter|cheby|ellip|bessel|group_delay|sawtooth|normalize|ss2tf|tf2|dlsim)"
EAGER += r"|rotate.A|linalg.cg|gmres|bicgstab|fmean\(list\(v\), v|variance\(v, s"


@laws.of([n for n in LINES if not re.search(EAGER, n)])
def staged_equals_eager(line):
    f, point = form(line)
    staged = trace(f, *point)
    program = check(vjp(staged.program, staged.name))
    y, L = lineara.linearize(f, *point)
    c = random_like(y, 9)
    out = run(program, f"{staged.name}.vjp", *staged.operands(tuple(point)), c)
    close(out.results[0], y, 1e-13)
    gradient = c @ L
    gradient = (gradient,) if len(point) == 1 else gradient
    for a, b in zip(out.lresults, gradient, strict=False):  # large constants come after
        close(a, b, 1e-11)


@laws.of([n for n in LINES if re.search(EAGER, n)])
def what_no_program_has_is_refused(line):
    f, point = form(line)
    with pytest.raises(LinearaError):
        trace(f, *point)


def test_objects_are_those_of_scipy():
    outside = scipy_family_forms.SPLINE

    def f(x):
        inside = CubicSpline([0.0, 1.0, 2.0], [x, 1.0, x * x])
        same = isinstance(outside, CubicSpline) and isinstance(inside, CubicSpline)
        return inside(0.5) * same, outside

    (value, back), found = lineara.value_and_grad(f, has_aux=True)(0.3)
    assert value == pytest.approx(CubicSpline([0.0, 1.0, 2.0], [0.3, 1.0, 0.09])(0.5))
    assert found == pytest.approx(0.375 - 0.125 * 2 * 0.3)
    assert type(back) is CubicSpline
    assert back(0.4) == outside(0.4)


def test_what_an_interpolator_cannot_do_is_refused():
    with pytest.raises(NoRuleError) as caught:
        lineara.grad(lambda x: CubicSpline([0.0, 1.0, 2.0], [x, 1.0, 2.0]).roots()[0])(0.3)
    assert caught.value.message == (
        "CubicSpline.roots: has no rule; calling it, derivative, antiderivative and integrate have"
    )
    with pytest.raises(NoRuleError) as caught:
        lineara.grad(lambda x: interp1d([0.0, 1.0, 2.0], [x, 1.0, 2.0], "smooth")(0.5))(0.3)
    assert caught.value.message == (
        "interp1d: kind='smooth' has no rule; the degree of a spline, 'zero', 'slinear', 'linear', "
        "'quadratic', 'cubic', 'nearest', 'nearest-up', 'previous' and 'next' have one"
    )
    table = np.ones((4, 4))
    with pytest.raises(NoRuleError) as caught:
        lineara.grad(
            lambda x: RegularGridInterpolator((GRID, GRID), x * table, "pchip")([0.1, 0.1])[0]
        )(0.3)
    assert caught.value.message == (
        "RegularGridInterpolator: method='pchip' has no rule; 'linear', 'nearest', 'slinear', "
        "'cubic' and 'quintic' have one, without nu"
    )
    with pytest.raises(NoRuleError) as caught:
        lineara.grad(lambda x: make_interp_spline(GRID, x * GRID, 2, bc_type="natural")(0.1))(0.3)
    assert caught.value.message == (
        "make_interp_spline: of traced values bc_type='natural' has no rule for k=2; a name has "
        "one for k=3 without t, and CubicSpline for derivatives at the ends"
    )
    for k, t in ((4, None), (3, [0.0] * 7)):
        with pytest.raises(ShapeError) as caught:
            lineara.grad(lambda x, k=k, t=t: make_interp_spline(GRID, x * GRID, k, t)(0.1))(0.3)
        assert caught.value.message == (
            "make_interp_spline: 4 values are too few for k=4; give 5"
            if k == 4
            else "make_interp_spline: f64[7] knots do not fit 4 values and k=3, which take 8"
        )


def test_breaks_that_fall_are_refused():
    with pytest.raises(ValueError, match="increasing"):
        lineara.grad(lambda x: CubicSpline([0.0, 2.0, 1.0, 3.0], [x, 1.0, 2.0, 0.0])(0.5))(0.3)


def test_a_structure_that_is_not_flat_is_refused():
    image = np.ones((3, 4))
    for name, first in (("grey_opening", "erosion"), ("grey_closing", "dilation")):
        of = getattr(ndimage, name)
        with pytest.raises(NoRuleError) as caught:
            lineara.grad(lambda a, of=of: np.sum(of(a, structure=np.eye(2))))(image)
        assert caught.value.message == (
            f"grey_{first}: structure= has no rule; a footprint, which is flat, has one"
        )


test_every_law = laws.test()

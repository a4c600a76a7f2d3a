"""Every ufunc with a rule at points within its domain, outside, and complex: as the plain call.

A value that is NaN has a NaN in its gradient, a gradient has the dtype of its argument, and what
NumPy refuses is refused.
"""

import itertools
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import lineara
from lineara import grad, jvp, value_and_grad
from lineara.errors import LinearaError, NoRuleError

REAL = [-2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0]
COMPLEX = [0.3 + 0.4j, -1.2 + 0.7j, 2.0 - 0.5j, -0.5 + 0j, 1.5 + 0j]
# The formula of the slope goes on where the function ends: 1 / x beyond log.  A NaN there would
# have to be kept out of every np.where(x > 0, np.log(x), 0).
GOES_ON = {"log", "log2", "log10", "log1p", "arctanh", "floor_divide"}
ALONE = {"remainder": {0}, "fmod": {0}, "xlogy": {1}, "xlog1py": {1}}  # of these arguments


def ufuncs():
    found = {}
    for module in (np, scipy.special):
        for name, f in vars(module).items():
            if isinstance(f, np.ufunc) and f.nout == 1 and f.signature is None and f.nin < 4:
                found.setdefault(f, name)
    return sorted(found.items(), key=lambda pair: pair[1])


UFUNCS = ufuncs()


def plainly(f, at):
    """The value of the plain call, or None where it is refused."""
    try:
        return f(*at)
    except TypeError:
        return None


def followed(f, at):
    try:
        return value_and_grad(lambda *a: np.real(f(*a)), tuple(range(f.nin)))(*at)
    except NoRuleError:
        pytest.skip("has no rule")


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(("f", "name"), UFUNCS, ids=[name for _, name in UFUNCS])
def test_a_value_that_is_no_number_has_no_slope(f, name):
    if name in GOES_ON:
        pytest.skip("has another domain")
    alone = ALONE.get(f.__name__, set())
    points = REAL if f.nin < 3 else [*REAL[1::2], 2.5]
    for at in itertools.product(map(np.float64, points), repeat=f.nin):
        plain = plainly(f, at)
        if plain is None or plain.dtype.kind != "f":
            pytest.skip("gives no floating number")
        for i in range(f.nin):
            try:
                value, slope = value_and_grad(lambda v, i=i, at=at: f(*at[:i], v, *at[i + 1 :]))(
                    at[i]
                )
            except NoRuleError:  # with respect to this argument
                continue
            np.testing.assert_array_equal(value, plain, err_msg=str(at))
            assert not (np.isnan(plain) and np.isfinite(slope)) or i in alone, (i, at)


@pytest.mark.parametrize(("f", "name"), UFUNCS, ids=[name for _, name in UFUNCS])
def test_a_complex_number_has_the_plain_value_and_a_gradient_of_its_own_type(f, name):
    points = itertools.product(COMPLEX[: 6 - f.nin], repeat=f.nin)
    for at, cast in itertools.product(points, (complex, np.complex64, np.complex128)):
        at = tuple(map(cast, at))
        plain = plainly(f, at)
        if plain is None:
            with pytest.raises((LinearaError, TypeError)):
                value_and_grad(lambda *a: np.real(f(*a)), tuple(range(f.nin)))(*at)
            continue
        if np.asarray(plain).dtype.kind not in "fc":
            pytest.skip("gives no floating number")
        value, slopes = followed(f, at)
        rtol = 1e-5 if cast is np.complex64 else 1e-12
        np.testing.assert_allclose(value, np.real(plain), rtol=rtol, atol=rtol / 10)
        assert [type(slope) for slope in slopes] == [cast] * f.nin


@pytest.mark.parametrize("part", [np.real, np.imag, lambda z: z.real, lambda z: z.imag * 2.0])
def test_the_gradient_of_a_complex_number_is_complex_in_every_form(part):
    def f(z):
        return np.sum(part(z))

    for at in (1 + 2j, np.complex64(1 + 2j), np.array([1 + 2j, 3j]), np.array([1j], np.complex64)):
        dtype = np.asarray(at).dtype
        forms = {
            "grad": grad(f)(at),
            "program": grad(f, policy="store_all")(at),
            "trace": lineara.trace(grad(f), at)(at),
            "pulled": lineara.vjp(f, at)[1](1.0)[0],
            "row": 1.0 @ lineara.linearize(f, at)[1],
            "in a dict": grad(lambda d: f(d["z"]))({"z": at})["z"],
            "lanes": lineara.vmap(grad(f))(np.stack([at, at]))[0],
            "inside": jvp(lambda t, at=at: grad(f)(at * t), (1.0,), (1.0,))[0],
        }
        for name, found in forms.items():
            assert np.asarray(found).dtype.kind == "c", name
            if np.ndim(at) or name not in ("trace", "lanes", "inside"):  # which may give a number
                assert type(found) is type(at), name
                assert np.asarray(found).dtype == dtype, name


@pytest.mark.parametrize("shift", [1.0, -2.0, 7.9])
def test_a_shift_that_moves_is_a_whole_number(shift):
    x = np.arange(5.0)
    f = lambda x, s: np.roll(x, s) @ x**2 * s  # noqa: E731
    value, (by_x, by_s) = value_and_grad(f, (0, 1))(x, shift)
    rolled = np.roll(x, int(shift))
    assert value == rolled @ x**2 * shift
    assert by_s == rolled @ x**2
    np.testing.assert_allclose(by_x, (np.roll(x**2, -int(shift)) + 2 * x * rolled) * shift)


def test_booleans_are_counted_and_weighed():
    x = np.array([0.5, 1.5, 2.5])
    found = value_and_grad(lambda x: np.bincount(x > 1, weights=x**2) @ np.array([1.0, 10.0]))(x)
    assert found[0] == np.bincount(x > 1, weights=x**2) @ np.array([1.0, 10.0])
    np.testing.assert_allclose(found[1], [1.0, 30.0, 50.0])


def test_a_ufunc_has_its_signature_inside():
    import inspect

    def signature(f):
        try:
            return str(inspect.signature(f))
        except ValueError:  # of NumPy before 2.4
            return "none"

    def f(x):
        found.extend([signature(u) for u in (np.matmul, np.vecdot, np.add, np.sin)])
        return x

    found = []
    grad(f)(1.0)
    assert found == [signature(u) for u in (np.matmul, np.vecdot, np.add, np.sin)]


@pytest.mark.parametrize("last", [2.0, -2.0])  # with one eigenvalue on the cut, and with two
@pytest.mark.parametrize("name", ["sqrtm", "logm"])
def test_the_adjoint_of_a_matrix_function_on_its_cut(name, last):
    a = np.array([[-1.0, 0.3], [0.2, last]])
    w = np.array([[1.0, 2.0], [3.0, 4.0]])

    def f(a):
        y = getattr(scipy.linalg, name)(a)
        return np.sum(y.real * w + y.imag * w.T)

    for e in np.eye(4).reshape(4, 2, 2):  # along the cut
        t = 1e-3 * e
        slope = (8 * (f(a + t) - f(a - t)) - (f(a + 2 * t) - f(a - 2 * t))) / 12e-3
        for policy in (None, "store_all"):
            g = grad(f, policy=policy)(a.astype(complex))
            assert np.sum(g.real * e) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("last", [2.0, -2.0])
def test_a_real_matrix_whose_root_is_complex(last):
    a = np.array([[-1.0, 0.3], [0.2, last]])
    f = lambda a: np.sum(np.abs(scipy.linalg.sqrtm(a)))  # noqa: E731
    value, g = value_and_grad(f)(a)
    assert value == pytest.approx(f(a), rel=1e-13)
    assert g.dtype == float
    for i in np.ndindex(2, 2):
        e = np.zeros((2, 2))
        e[i] = 1e-3
        slope = (8 * (f(a + e) - f(a - e)) - (f(a + 2 * e) - f(a - 2 * e))) / 12e-3
        assert g[i] == pytest.approx(slope, abs=1e-9)


def test_a_normal_density_of_a_singular_covariance():
    cov = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    density = lambda x, m: scipy.stats.multivariate_normal.logpdf(  # noqa: E731
        x, m, cov, allow_singular=True
    )
    x, m, d = np.array([0.5, 0.5, 1.0]), np.array([0.1, 0.1, 0.3]), np.array([1.0, 1.0, 0.5])
    value, (by_x, by_m) = value_and_grad(density, (0, 1))(x, m)
    assert value == pytest.approx(density(x, m), rel=1e-13)
    slope = density(x + 0.5 * d, m) - density(x - 0.5 * d, m)  # exact: it is quadratic
    assert by_x @ d == pytest.approx(slope, rel=1e-9)
    np.testing.assert_allclose(by_m, -by_x)
    assert value_and_grad(density)(np.array([0.5, 0.6, 1.0]), m)[0] == -np.inf
    with pytest.raises(NoRuleError, match="its rank would change"):
        grad(lambda c: scipy.stats.multivariate_normal.logpdf(x, m, c, allow_singular=True))(cov)


def test_a_sign_of_gamma_does_not_move():
    f = lambda x: scipy.special.gammasgn(x) * np.exp(scipy.special.gammaln(x))  # noqa: E731
    value, slope = value_and_grad(f)(-0.5)
    assert value == pytest.approx(scipy.special.gamma(-0.5))
    assert slope == pytest.approx(scipy.special.gamma(-0.5) * scipy.special.digamma(-0.5))

"""Functions, and forms of them, without a derivative rule."""

import numpy as np
import pytest
import scipy.special
from scipy import stats

from lineara import grad


def test_function(said):
    def f(x):
        np.savetxt("x.txt", x)
        return np.sum(x)

    assert said(lambda: grad(f)(np.ones(2))) == (
        "NoRuleError: numpy.savetxt of a traced value has no derivative rule; save "
        "lineara.stop_gradient(x)"
        '\n  at f: np.savetxt("x.txt", x)'
    )


def test_root_that_comes_from_infinity(said):
    def largest_root(c):
        return np.max(np.roots(c))

    assert said(lambda: grad(largest_root)(np.array([0.0, 1.0, -4.0]))) == (
        "NoRuleError: roots: the first coefficient is 0, and when it moves a root comes from "
        "infinity; leave it away: np.trim_zeros(p, 'f')"
        "\n  at largest_root: return np.max(np.roots(c))"
    )


def test_fit_with_more_than_coefficients(said):
    def f(x):
        return np.polyfit(x, x, 1, full=True)[0][0]

    assert said(lambda: grad(f)(np.arange(3.0))) == (
        "NoRuleError: polyfit: full= of traced values has no rule; the residuals are "
        "y - np.polyval(p, x)\n  at f: return np.polyfit(x, x, 1, full=True)[0][0]"
    )


def test_pad_with_a_function(said):
    def f(x):
        return np.sum(np.pad(x, 1, lambda *_: None))

    assert said(lambda: grad(f)(np.ones(2))) == (
        "NoRuleError: pad: a function as mode writes into plain arrays; use one of NumPy's modes, "
        "or join the parts with np.concatenate"
        "\n  at f: return np.sum(np.pad(x, 1, lambda *_: None))"
    )


def test_reflection_over_more_than_the_array(said):
    def f(x):
        return np.sum(np.pad(x, 5, "reflect", reflect_type="odd"))

    assert said(lambda: grad(f)(np.ones(3))) == (
        "NoRuleError: pad: reflect_type='odd' over more than the 2 elements of a reflection has "
        'no rule; pad twice\n  at f: return np.sum(np.pad(x, 5, "reflect", reflect_type="odd"))'
    )


def test_matrix_in_brackets(said):
    def f(x):
        return np.sum(np.r_["c", x, x])

    assert said(lambda: grad(f)(np.ones(3))) == (
        "NoRuleError: np.r_['c', ...] makes a matrix, which has no rule; use np.concatenate"
        '\n  at f: return np.sum(np.r_["c", x, x])'
    )


def test_signature_of_vectorize(said):
    def f(x):
        return np.sum(np.vectorize(lambda v: v * v, signature="(n)->(n)")(x))

    assert said(lambda: grad(f)(np.ones(3))) == (
        "NoRuleError: vectorize: signature= has no rule; loop over the leading axes, and np.stack "
        "what comes out"
        '\n  at f: return np.sum(np.vectorize(lambda v: v * v, signature="(n)->(n)")(x))'
    )


def test_results_that_numpy_cuts_to_integers(said):
    def f(x):
        return np.sum(np.vectorize(lambda v: 0 if v < 0 else v * v)(x))

    assert said(lambda: grad(f)(np.array([-1.0, 2.5]))) == (
        "NoRuleError: vectorize: NumPy would cut the results to int64, and they would not move; "
        "give it otypes=[float]"
        "\n  at f: return np.sum(np.vectorize(lambda v: 0 if v < 0 else v * v)(x))"
    )

    def g(x):
        return np.sum(np.piecewise(np.arange(3), [np.arange(3) > 1], [x, 0.0]))

    assert said(lambda: grad(g)(2.5)) == (
        "NoRuleError: piecewise: NumPy would cut the results to int64, and they would not move; "
        "give it an array of floats"
        "\n  at g: return np.sum(np.piecewise(np.arange(3), [np.arange(3) > 1], [x, 0.0]))"
    )


@pytest.mark.parametrize(
    ("name", "act", "advice"),
    [
        ("resize", lambda x: x.resize(4), "x = np.resize(x, shape) makes another array"),
        ("setflags", lambda x: x.setflags(), "lineara keeps what it needs from being written"),
    ],
)
def test_method_in_place(said, name, act, advice):
    found = said(lambda: grad(lambda x: act(x * 1.0))(np.ones(3)))
    assert found.startswith(
        f"NoRuleError: {name}: a traced f64[3] has no such method; {advice}\n  at <lambda>"
    )


def test_ufunc_of_scipy(said):
    def f(x):
        return scipy.special.pbdv(1, x)[0]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "NoRuleError: scipy.special.pbdv of a traced value has no derivative rule; write "
        "it with functions that have one, or declare it with lineara.custom_jvp or "
        "lineara.custom_vjp"
        "\n  at f: return scipy.special.pbdv(1, x)[0]"
    )


def test_order_of_a_function_of_scipy(said):
    def f(x):
        return scipy.special.jv(x, 2.0)

    assert said(lambda: grad(f)(1.0)) == (
        "NoRuleError: scipy.special.jv has no derivative with respect to its order; give it a "
        "plain number there, or declare the derivative with lineara.custom_jvp"
        "\n  at f: return scipy.special.jv(x, 2.0)"
    )


def test_counting_exactly(said):
    def f(x):
        return scipy.special.comb(x, 2, exact=True)

    assert said(lambda: grad(f)(5.0)) == (
        "NoRuleError: scipy.special.comb with exact=True counts integers, which have no "
        "derivative; leave exact=True out\n  at f: return scipy.special.comb(x, 2, exact=True)"
    )


def test_number_of_terms(said):
    def f(n):
        return scipy.special.diric(1.0, n)

    assert said(lambda: grad(f)(3.0)) == (
        "NoRuleError: scipy.special.diric has no derivative with respect to n; give it a plain "
        "number there, or declare the derivative with lineara.custom_jvp"
        "\n  at f: return scipy.special.diric(1.0, n)"
    )


def test_ufunc_of_the_users_own(said):
    cube = np.frompyfunc(lambda t: t**3, 1, 1)

    def f(x):
        return np.sum(cube(x))

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "NoRuleError: <lambda> (vectorized) of a traced value has no derivative rule; "
        "np.vectorize calls the same function, and is followed"
        "\n  at f: return np.sum(cube(x))"
    )


def test_function_that_writes(said):
    plain = np.zeros(2)

    def f(x):
        np.copyto(plain, x)
        return np.sum(x)

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: np.copyto writes traced values into a plain array, which cannot "
        "hold their derivative; make the array inside the differentiated function"
        "\n  at f: np.copyto(plain, x)"
    )


def test_option_of_a_ufunc(said):
    def f(x):
        return np.add(x, x, signature="dd->d")

    assert said(lambda: grad(f)(np.ones(3))) == (
        "NoRuleError: np.add of a traced value takes no signature=; it takes out=, where= and "
        'dtype=\n  at f: return np.add(x, x, signature="dd->d")'
    )


def test_mask_of_a_reduction(said):
    def f(x):
        return np.fmod.reduce(x, where=x > 0, initial=2.0)

    assert said(lambda: grad(f)(np.ones(3))) == (
        "NoRuleError: np.fmod.reduce of a traced value takes no where=; reduce the elements that "
        "the mask selects, x[mask]\n  at f: return np.fmod.reduce(x, where=x > 0, initial=2.0)"
    )


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("numpy.nditer", lambda x: sum(v for v in np.nditer(x))),
        ("builtins.memoryview", lambda x: memoryview(x)[0]),
    ],
)
def test_an_iterator_and_a_view_of_the_memory(said, name, act):
    works = (
        "loop over the elements, or write it with whole arrays"
        if name == "numpy.nditer"
        else "write it with functions that have one, or declare it with lineara.custom_jvp or "
        "lineara.custom_vjp"
    )
    assert said(lambda: grad(act)(np.ones(3))).startswith(
        f"NoRuleError: {name} of a traced value has no derivative rule; {works}\n  at <lambda>"
    )
    assert isinstance(act(np.ones(3)), float)


def test_plain_ones_are_pythons_own():
    ones = np.ones(3)

    def f(x):
        view = memoryview(ones)
        assert isinstance(view, memoryview)
        return x * view[1] * sum(float(v) for v in np.nditer(ones))

    assert grad(f)(2.0) == 3.0


def test_complex_numbers_where_only_the_real_part_would_be_looked_at(said):
    def f(z):
        return stats.norm.logpdf(z)

    assert said(lambda: grad(f, convention="holomorphic")(0.3 + 0.2j)) == (
        "NoRuleError: scipy.stats: takes real numbers, not c128[]; give it the real part, x.real, "
        "or a real and an imaginary part as two arguments\n  at f: return stats.norm.logpdf(z)"
    )


@pytest.mark.parametrize("f", [np.histogram, np.histogram_bin_edges])
def test_a_histogram_of_complex_numbers(f, said):
    def edges(z):
        return np.sum(f(z, 3)[-1]).real

    assert said(lambda: grad(edges)(np.array([1 + 1j, 2.0, 3.0]))) == (
        "NoRuleError: a histogram of complex numbers, which have no order, is not "
        "differentiated; take that of z.real, z.imag or abs(z)\n"
        "  at edges: return np.sum(f(z, 3)[-1]).real"
    )


def test_a_step_of_complex_numbers(said):
    def step(z):
        return np.heaviside(z, 0.5).real

    assert said(lambda: grad(step)(1 + 1j)) == (
        "TypeMismatchError: heaviside: complex numbers have no order; take the real part\n"
        "  at step: return np.heaviside(z, 0.5).real"
    )


def test_a_covariance_that_is_singular_and_moves(said):
    def density(c):
        return stats.multivariate_normal.logpdf(np.ones(2), np.zeros(2), c, allow_singular=True)

    assert said(lambda: grad(density)(np.ones((2, 2)))) == (
        "NoRuleError: scipy.stats.multivariate_normal of a singular covariance has no derivative "
        "with respect to it, since its rank would change; give the covariance as plain numbers\n"
        "  at density: return stats.multivariate_normal.logpdf(np.ones(2), np.zeros(2), c, "
        "allow_singular=True)"
    )


def test_attribute_of_numpys_numbers(said):
    def f(x):
        return np.float64(x).view(np.int64) * x

    assert said(lambda: grad(f)(1.0)) == (
        "NoRuleError: view: a traced f64[] has no such attribute; use the functions of NumPy that "
        "have a rule\n  at f: return np.float64(x).view(np.int64) * x"
    )


def test_function_of_rows_that_gives_a_class_of_its_own(said):
    def f(x):
        rows = np.apply_along_axis(lambda row: np.ma.array([1.0, 2.0]), 0, x)
        return np.sum(rows * x)

    assert said(lambda: grad(f)(np.ones((2, 2)))) == (
        "NoRuleError: apply_along_axis: the function gives a MaskedArray, whose rules are not "
        "followed; let it give a plain array\n"
        "  at f: rows = np.apply_along_axis(lambda row: np.ma.array([1.0, 2.0]), 0, x)"
    )


def test_failure_where_numpy_has_a_value(said):
    def f(x):
        return np.polyadd(x, np.polymul([], x))[0]

    assert said(lambda: grad(f)(np.ones(2))) == (
        "NoRuleError: numpy.polymul: f64[2] is refused: a cannot be empty\n"
        "  at f: return np.polyadd(x, np.polymul([], x))[0]"
    )


ASSIGNED = 0.0


def test_the_local_names_of_a_function_that_assigns_a_global(said):
    def f(x):
        global ASSIGNED
        ASSIGNED = 1.0
        return x * len(locals())

    assert said(lambda: grad(f)(2.0)) == (
        "NoRuleError: locals() in f, which assigns a global name: what its local names hold is not "
        "known there; assign the global in a function of its own"
        "\n  at f: return x * len(locals())"
    )

"""Taylor series: against mpmath to order 20, against nested jvp, and the operations counted."""

import math
import re
import runpy
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from scipy.integrate import solve_ivp

from lineara import (
    cond,
    custom_jvp,
    custom_linear,
    custom_vjp,
    derivatives,
    fori_loop,
    function,
    grad,
    jit,
    jvp,
    scan,
    taylor,
    trace,
    vmap,
    while_loop,
)
from lineara.errors import (
    LinearaError,
    NoRuleError,
    ShapeError,
    StructureError,
    TypeMismatchError,
)
from lineara.facts.primitive import Elementwise, registry
from lineara.facts.series import coefficients
from lineara.passes.taylor import along_curve
from lineara.staging.stages import counted

ORDER = 20


def nested(f: Callable[[Any], Any], t: float, order: int) -> list[np.ndarray]:
    """The Taylor coefficients of f at t, each by a jvp of the one before."""
    gs = [f]
    for _ in range(order):
        gs.append(lambda u, g=gs[-1]: jvp(g, (u,), (1.0,))[1])
    return [np.asarray(g(t)) / math.factorial(k) for k, g in enumerate(gs)]


def agree(cs: Any, expected: Any, rtol: float = 1e-9) -> None:
    """Each coefficient to a part of the largest numbers near it."""
    cs, expected = np.asarray(cs), np.asarray(expected)
    assert cs.shape == expected.shape
    bound = rtol * (1e-3 * np.max(np.abs(expected)) + np.abs(expected) + 1e-6)
    assert np.all(np.abs(cs - expected) <= bound), f"{cs} is not {expected}"


# --- elementwise, against mpmath to order 20 ----------------------------------------------------

MPMATH: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "exp": (np.exp, mpmath.exp, 0.3),
    "exp2": (np.exp2, lambda x: mpmath.power(2, x), 0.3),
    "expm1": (np.expm1, mpmath.expm1, 0.0),
    "log": (np.log, mpmath.log, 1.3),
    "log1p": (np.log1p, mpmath.log1p, 0.0),
    "log10": (np.log10, mpmath.log10, 2.5),
    "sqrt": (np.sqrt, mpmath.sqrt, 1.3),
    "cbrt": (np.cbrt, mpmath.cbrt, 1.3),
    "sin": (np.sin, mpmath.sin, 0.0),
    "cos": (np.cos, mpmath.cos, 0.7),
    "tan": (np.tan, mpmath.tan, 0.4),
    "asin": (np.arcsin, mpmath.asin, 0.3),
    "acos": (np.arccos, mpmath.acos, 0.3),
    "atan": (np.arctan, mpmath.atan, 0.5),
    "sinh": (np.sinh, mpmath.sinh, 0.4),
    "cosh": (np.cosh, mpmath.cosh, 0.4),
    "tanh": (np.tanh, mpmath.tanh, 0.4),
    "asinh": (np.arcsinh, mpmath.asinh, 0.4),
    "acosh": (np.arccosh, mpmath.acosh, 1.7),
    "atanh": (np.arctanh, mpmath.atanh, 0.4),
    "reciprocal": (np.reciprocal, lambda x: 1 / x, 1.5),
    "square": (np.square, lambda x: x * x, 0.0),
    "x^3 at 0": (lambda x: x**3, lambda x: x**3, 0.0),
    "x^2.5": (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5), 0.8),
    "x^-1.5": (lambda x: x**-1.5, lambda x: x ** mpmath.mpf(-1.5), 0.8),
    "x^-2": (lambda x: x**-2.0, lambda x: x**-2, 0.8),
    "2^x": (lambda x: 2.0**x, lambda x: mpmath.power(2, x), 0.8),
    "x^x": (lambda x: x**x, lambda x: x**x, 1.2),
    "quotient": (lambda x: (1 + x) / (2 - x * x), lambda x: (1 + x) / (2 - x * x), 0.3),
    "hypot": (lambda x: np.hypot(x, 1 + x), lambda x: mpmath.hypot(x, 1 + x), 0.3),
    "atan2": (lambda x: np.arctan2(x, 1 + x), lambda x: mpmath.atan(x / (1 + x)), 0.3),
    "sinc at 0": (np.sinc, mpmath.sincpi, 0.0),
    "sin(x)^2 at 0": (lambda x: np.sin(x) ** 2, lambda x: mpmath.sin(x) ** 2, 0.0),
    "erf": (scipy.special.erf, mpmath.erf, 0.3),
    "expit": (scipy.special.expit, lambda x: 1 / (1 + mpmath.exp(-x)), 0.3),
    "lambertw": (lambda x: scipy.special.lambertw(x).real, mpmath.lambertw, 0.6),
    "j0": (scipy.special.j0, lambda x: mpmath.besselj(0, x), 1.1),
    "ellipk": (scipy.special.ellipk, mpmath.ellipk, 0.3),
    "composed": (
        lambda x: np.exp(np.sin(x) / (1 + x * x)) * np.log(2 + x),
        lambda x: mpmath.exp(mpmath.sin(x) / (1 + x * x)) * mpmath.log(2 + x),
        0.2,
    ),
}


@pytest.mark.parametrize("name", MPMATH)
def test_the_coefficients_are_those_of_mpmath_to_order_20(name: str) -> None:
    ours, theirs, at = MPMATH[name]
    with mpmath.workdps(60):
        expected = [complex(c).real for c in mpmath.taylor(theirs, mpmath.mpf(at), ORDER)]
    agree(taylor(ours, at, [1.0], ORDER), expected, 1e-8)


def test_each_derivative_of_gammaln_and_gamma_is_a_new_function() -> None:
    with mpmath.workdps(30):
        slopes = [mpmath.psi(k, 1.7) / mpmath.factorial(k) for k in range(ORDER)]
        logs, gammas = [mpmath.loggamma(1.7)], [mpmath.gamma(1.7)]
        for k in range(1, ORDER + 1):  # gamma' = gamma digamma
            logs.append(slopes[k - 1] / k)
            gammas.append(mpmath.fdot(gammas[::-1], slopes[:k]) / k)
    agree(taylor(scipy.special.gammaln, 1.7, [1.0], ORDER), [float(c) for c in logs], 1e-8)
    agree(taylor(scipy.special.gamma, 1.7, [1.0], ORDER), [float(c) for c in gammas], 1e-8)


POINTS: tuple[tuple[complex, ...], ...] = (
    (0.37, 0.61, 0.45, 0.52, 0.33),
    (1.7, 2.3, 1.9, 1.4, 0.6),
    (1.2, 0.3 + 0.4j),
    (0.3 + 0.4j,),
)
SLOPES = (1.0, 0.7, -0.4, 0.3, 0.2)
ELEMENTWISE = sorted([n for n, p in registry.primitives.items() if isinstance(p, Elementwise)])


def along(p: Elementwise, point: Sequence[complex], slopes: Sequence[float]) -> Any:
    """The primitive of a point that moves, in some of its arguments."""
    pairs = [*zip(point[: p.arity], slopes, strict=True)]
    return lambda t: p(*[x + t * s if s else x for x, s in pairs])


def defined(f: Callable[[Any], Any], kind: str) -> np.ndarray | None:
    """The coefficients by nested jvp, where they are numbers of that kind, real or complex."""
    try:
        cs = np.array(nested(f, 0.0, 3))
    except (LinearaError, TypeError, ValueError):  # no derivative, or no such value
        return None
    return cs if cs.dtype.kind == kind and np.all(np.isfinite(cs)) else None


FEW = {"betainc", "betaincc", "betainccinv", "betaincinv", "fdtr", "fdtrc", "stdtr", "stdtrit"}
LOSES = {"beip": 8}  # a quotient by x, of an entire function: digits go as x to the order


def checked_order(p: Elementwise) -> int:
    """The order to which a primitive is checked: of several arguments a text grows fast."""
    return 3 if p.name in FEW else 8 if p.arity > 1 else LOSES.get(p.name, ORDER)


def moving_series(
    p: Elementwise, point: Sequence[complex], slopes: Sequence[float], order: int
) -> tuple[Any, Any]:
    """The coefficients at t = 0, and their derivatives where the point moves with t, by one jvp."""

    def series(t: Any) -> Any:
        rest = [0 * t] * (order - 1)
        pairs = zip(point, slopes, strict=True)
        given = [np.stack([x + t * s, s + 0 * t, *rest]) if s else x for x, s in pairs]
        return coefficients(p, given, [s != 0 for s in slopes], {}, order)

    return jvp(series, (0.0,), (1.0,))


@pytest.mark.filterwarnings("ignore")
def test_every_elementwise_primitive_has_the_series_of_nested_jvp() -> None:
    """Every partial that is declared, in each argument alone and in all at once.

    To order 3 by nested jvp, which doubles with the order.  Beyond it by the equation that defines
    the nesting: the derivative of coefficient k along the line is k + 1 times the next one.
    """
    compared = set()
    for name in ELEMENTWISE:
        p = registry.primitives[name]
        every = range(p.arity)
        for active in dict.fromkeys([(*every,), *[(i,) for i in every]]):
            slopes = [SLOPES[i] if i in active else 0.0 for i in every]
            for point in [p for p in POINTS if len(p) >= len(slopes)]:
                kind = np.result_type(*point[: p.arity]).kind
                expected = defined(along(p, point, slopes), kind)
                if expected is None:
                    continue
                moving = [x != 0 for x in slopes]
                pairs = zip(point, slopes, strict=False)
                given = [np.array([x, s, 0, 0]) if s else x for x, s in pairs]
                agree(coefficients(p, given, moving, {}, 3), expected, 1e-7)
                if name not in compared:
                    order = checked_order(p)
                    cs, slope = moving_series(p, point[: p.arity], slopes, order)
                    agree(slope[:order], np.arange(1, order + 1) * cs[1:], 1e-6)
                compared.add(name)
                break
    missing = sorted({*ELEMENTWISE} - compared)
    assert len(compared) > 0.97 * len(ELEMENTWISE), f"nothing was compared for {missing}"


def test_a_power_is_right_at_zero_as_far_as_it_is_finite() -> None:
    cs = taylor(lambda x: x**2.5, 0.0, [1.0], 3)
    assert cs.tolist() == [0.0, 0.0, 0.0, math.inf]
    agree(taylor(lambda x: x**4, 0.0, [1.0], 6), [0, 0, 0, 0, 1, 0, 0])


# --- arrays, linear algebra, control flow -------------------------------------------------------

RNG = np.random.default_rng(4)
D = RNG.normal(size=(3, 3))
V, W = RNG.normal(size=3), RNG.normal(size=3)
P = D @ D.T + 3 * np.eye(3)
X, S = RNG.uniform(0.5, 2, 5), RNG.normal(size=5)


def m(t: Any) -> Any:
    return P + t * D


def sym(t: Any) -> Any:
    return P + t * (D + D.T)


def q(t: Any) -> Any:
    return X + t * S


def filled(t: Any) -> Any:
    """An array that is written, element by element."""
    z = np.zeros(4)
    z[0] = t
    for i in range(3):
        z[i + 1] = z[i] * np.sin(z[0]) + i
    return z * z


def grown(t: Any) -> Any:
    """A list, a branch, a loop with its end decided by values."""
    items = [t + 1]
    while items[-1] < 20:
        items.append(items[-1] ** 2 if items[-1] > 2 else items[-1] * (1 + t) + 1)
    return sum(items)


@function
def folded(n: Any, x: Any) -> Any:
    return cond(n <= 0, lambda: x * 0 + 1, lambda: x * folded(n - 1, x))


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda t: m(t) @ sym(t) @ (V + t * W),
    "three factors": lambda t: np.einsum("ij,jk,kl->il", m(t), sym(t), m(t)),
    "det": lambda t: np.linalg.det(m(t)),
    "inv": lambda t: np.linalg.inv(m(t)),
    "solve": lambda t: np.linalg.solve(m(t), V + t * W),
    "lu": lambda t: scipy.linalg.lu_solve(scipy.linalg.lu_factor(m(t)), V + t * W),
    "cholesky": lambda t: np.linalg.cholesky(sym(t)),
    "eigh": lambda t: np.linalg.eigh(sym(t))[0],
    "svd": lambda t: np.linalg.svd(m(t))[1],
    "qr": lambda t: np.linalg.qr(m(t))[1],
    "expm": lambda t: scipy.linalg.expm(m(t)),
    "prod": lambda t: np.prod(q(t)),
    "cumprod": lambda t: np.cumprod(q(t)),
    "norm": lambda t: np.linalg.norm(q(t)),
    "std": lambda t: np.std(q(t)),
    "max": lambda t: np.max(q(t) ** 2),
    "sort": lambda t: np.sort(q(t)) * q(t),
    "where": lambda t: np.where(q(t) > 1, np.sin(q(t)), q(t) ** 3),
    "clip": lambda t: np.clip(q(t) ** 2, 0.5, 2),
    "fft": lambda t: np.abs(np.fft.fft(q(t))) ** 2,
    "complex": lambda t: np.abs(np.exp(1j * q(t)) * q(t) + t),
    "gather": lambda t: q(t)[[1, 2, 1]] * q(t)[::2],
    "broadcast": lambda t: np.outer(q(t), V + t * W) * (V + t),
    "logsumexp": lambda t: scipy.special.logsumexp(q(t)),
    "remainder": lambda t: np.remainder(3 * t + 2.2, 0.7 + t),
    "ldexp": lambda t: np.ldexp(t, 2) * t,
    "halves": lambda t: np.nextafter(t + 1, 2 * t),
    "written": filled,
    "list": grown,
    "scan": lambda t: scan(lambda c, _: (np.sin(c) * (1 + t), c), t, None, length=3)[1],
    "fori": lambda t: fori_loop(0, 3, lambda i, c: c * t + i, t),
    "while": lambda t: while_loop(lambda c: c < 5, lambda c: c * c + t, t + 1.3),
    "recursion": lambda t: folded(3, t),
    "lanes": lambda t: vmap(lambda u: np.sin(u) * t)(np.arange(3.0) * t),
    "gradient": lambda t: grad(lambda u: np.sin(u * t) * u)(t),
    "taylor": lambda t: taylor(np.sin, t, [1.0], 3),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_and_control_flow_have_the_series_of_nested_jvp(name: str) -> None:
    f = ARRAYS[name]
    agree(taylor(f, 0.3, [1.0], 3), nested(f, 0.3, 3))


# --- curves, containers, modes ------------------------------------------------------------------


def test_directions_are_the_coefficients_of_a_curve() -> None:
    x = {"a": 0.3, "b": [V], "n": "label"}
    directions = [{"a": 1.0, "b": [W], "n": None}, {"a": 0.5, "b": [V], "n": None}]
    curve = taylor(lambda p: np.sin(p["a"]) * p["b"][0], x, directions, 3)
    agree(curve, nested(lambda t: np.sin(0.3 + t + 0.5 * t * t) * (V + t * W + t * t * V), 0.0, 3))


def test_the_result_has_an_axis_more_and_its_own_containers_and_dtypes() -> None:
    def f(x: Any) -> Any:
        return {"x": x[0], "all": (x, x @ x), "n": 3, "flag": x[0] > 0, "one": 1.0, "s": "text"}

    y = taylor(f, np.array([2.0, 1.0], np.float32), [np.ones(2)], 2)
    assert (y["n"], bool(y["flag"]), y["s"]) == (3, True, "text")
    assert [v.shape for v in (y["x"], *y["all"], y["one"])] == [(3,), (3, 2), (3,), (3,)]
    assert y["x"].dtype == y["all"][1].dtype == np.float32
    assert y["all"][1].tolist() == [5.0, 6.0, 2.0]
    assert y["one"].tolist() == [1.0, 0.0, 0.0]
    assert taylor(lambda x: x * x, 3, [1], 2).tolist() == [9.0, 6.0, 1.0]
    assert taylor(lambda x: x * 1j, 1.0, [1.0], 1).tolist() == [1j, 1j]
    assert taylor(np.exp, 0.0, [1.0], 0).tolist() == [1.0]


def test_derivatives_are_the_coefficients_times_factorials() -> None:
    agree(derivatives(lambda x: np.array([np.exp(2 * x), x**3]), 1.0, 4),
          [[2**k * math.exp(2), d] for k, d in enumerate([1.0, 3.0, 6.0, 6.0, 0.0])])  # fmt: skip
    agree(derivatives(np.exp, 1j, 3), [np.exp(1j)] * 4)


def coefficient(x: Any) -> Any:
    return taylor(grown, x, [1.0], 3)[3]


def test_a_coefficient_is_differentiated_staged_and_over_lanes() -> None:
    fourth = 4 * taylor(grown, 0.3, [1.0], 4)[4]
    agree(grad(coefficient)(0.3), fourth)
    agree(jvp(coefficient, (0.3,), (1.0,))[1], fourth)
    agree(jit(coefficient)(0.3), coefficient(0.3))
    agree(jit(grad(coefficient))(0.3), fourth)
    both = np.array([0.3, 0.31])
    agree(vmap(coefficient)(both), [coefficient(x) for x in both])
    # what the function mentions is differentiated too
    agree(grad(lambda a: taylor(lambda x: np.sin(a * x), 0.0, [1.0], 3)[3])(2.0), -2.0)
    agree(grad(lambda v: taylor(np.exp, 0.0, [v], 3)[3])(2.0), 2.0)


# --- rules of the user's --------------------------------------------------------------------------


def test_a_rule_of_the_users_is_the_same_equation() -> None:
    """The text of the function lies, so only the rule can give these."""
    wave = custom_jvp(lambda x: np.sin(x) * 1.0, check=False)
    wave.defjvp(lambda p, t: (wave(p[0]), (np.cos(p[0]) + wave(p[0])) * t[0]))
    cs = taylor(lambda x: wave(x * x), 0.5, [1.0], 4)
    expected = nested(lambda x: wave(x * x), 0.5, 4)
    agree(cs, expected)
    assert abs(cs[1] - math.cos(0.25)) > 0.1
    cube = custom_vjp(
        lambda x, n: x**n, lambda x, n: (x**n, (x, n)),
        lambda r, y: (r[1] * r[0] ** (r[1] - 1) * y, None),
    )  # fmt: skip
    agree(taylor(lambda x: cube(np.sin(x), 3), 0.5, [1.0], 5),
          taylor(lambda x: np.sin(x) ** 3, 0.5, [1.0], 5))  # fmt: skip
    shift = custom_linear(np.roll, transpose=lambda y, n, axis=None: np.roll(y, -n))
    agree(
        taylor(lambda x: shift(np.array([x, x * x]), 1), 0.5, [1.0], 2),
        [[0.25, 0.5], [1, 1], [1, 0]],
    )


# --- the cost, counted ----------------------------------------------------------------------------

QUADRATIC: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "tan": np.tan,
    "log": np.log,
    "sqrt": np.sqrt,
    "asin": np.arcsin,
    "tanh": np.tanh,
    "x^-1.5": lambda x: x**-1.5,
    "quotient": lambda x: (x + 1) / (x + 2),
    "erf": scipy.special.erf,
    "expit": scipy.special.expit,
    "composed": MPMATH["composed"][0],
    "matmul": lambda x: (P * x) @ (P + x),
    "inv": lambda x: np.linalg.inv(P * x),
    "norm": lambda x: np.linalg.norm(X * x + 1),
}
CUBIC: dict[str, Callable[[Any], Any]] = {
    "gamma": scipy.special.gamma,
    "x^x": lambda x: x**x,
    "solve": lambda x: np.linalg.solve(P + x, V * x),
}


def works(f: Callable[[Any], Any], orders: tuple[int, ...]) -> list[int]:
    """The operations on numbers for the coefficients up to each order."""
    staged = trace(f, 0.5)
    counts = []
    for k in orders:
        program, name = along_curve(staged.program, staged.name, [True], k)
        counts.append(counted(program, name, np.array([0.5, 1.0, *[0.0] * (k - 1)])).work)
    return counts


@pytest.mark.parametrize("name", QUADRATIC)
def test_elementary_and_multilinear_operations_cost_the_square_of_the_order(name: str) -> None:
    """Twice the order takes four times the work at most, and not eight times."""
    small, large = works(QUADRATIC[name], (16, 32))
    assert large <= 4.2 * small


@pytest.mark.parametrize("name", CUBIC)
def test_others_cost_the_cube_at_most(name: str) -> None:
    small, large = works(CUBIC[name], (8, 16))
    assert large <= 8 * small


def test_what_does_not_move_is_computed_once() -> None:
    still = works(lambda x: np.sum(np.sin(np.ones(1000) * 0.5)) * x, (1, 10))
    assert still[1] - still[0] < 200


# --- the example ----------------------------------------------------------------------------------


def test_the_example_solves_a_pendulum_by_its_series() -> None:
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "taylor_ode.py"))
    start = np.array([2.0, 0.0])
    y, steps = example["solve"](example["series"], start, 0.5)
    assert steps == 2
    exact = solve_ivp(lambda t, y: example["pendulum"](y), (0, 0.5), start, rtol=1e-13, atol=1e-13,
                      method="DOP853").y[:, -1]  # fmt: skip
    assert np.allclose(y, exact, rtol=0, atol=1e-12)
    assert abs(example["energy"](y) - example["energy"](start)) < 1e-14


# --- errors ---------------------------------------------------------------------------------------


def message(error: pytest.ExceptionInfo[Any]) -> str:
    """The text without the lines of the user's."""
    return re.sub(r"\n  at .*", "", str(error.value))


ERRORS: dict[str, tuple[Callable[[], Any], type, str]] = {
    "order": (
        lambda: taylor(np.sin, 1.0, [1.0], 2.5),  # type: ignore[arg-type]
        TypeMismatchError,
        "taylor: the order is 2.5; give a whole number, 0 for the value alone",
    ),
    "negative": (
        lambda: derivatives(np.sin, 1.0, -1),
        TypeMismatchError,
        "derivatives: the order is -1; give a whole number, 0 for the value alone",
    ),
    "no list": (
        lambda: taylor(np.sin, 1.0, 1.0, 2),  # type: ignore[arg-type]
        StructureError,
        "taylor: directions is f64[]; give a list of them, [d] for a straight line",
    ),
    "container": (
        lambda: taylor(lambda p: p["a"], {"a": 1.0}, [{"b": 1.0}], 2),
        StructureError,
        "taylor: a direction has Structure({'b': *}), but the argument is Structure({'a': *})",
    ),
    "shape": (
        lambda: taylor(np.sum, np.ones(3), [np.ones(2)], 2),
        ShapeError,
        "taylor: a direction has f64[2] where the argument is f64[3]; give arrays of the same "
        "shapes",
    ),
    "complex": (
        lambda: taylor(np.sin, 1.0, [1j], 2),
        TypeMismatchError,
        "taylor: a direction has c128[] where the argument is f64[]; give real numbers",
    ),
    "exact": (
        lambda: taylor(lambda x: x * x, Fraction(1, 2), [1], 2),
        TypeMismatchError,
        "taylor: takes floating and complex numbers and arrays of them, but the argument has "
        "Fraction",
    ),
    "no number": (
        lambda: taylor(len, "abc", [""], 2),
        TypeMismatchError,
        "taylor: there is no number in str 'abc', so nothing moves; give floating-point numbers "
        "or arrays, or containers of them",
    ),
    "vector": (
        lambda: derivatives(np.sum, np.ones(3), 2),
        TypeMismatchError,
        "derivatives: x is f64[3]; give one floating number, or ask lineara.taylor for the "
        "coefficients along a direction",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_says_what_was_found_and_what_works(name: str) -> None:
    call, kind, text = ERRORS[name]
    with pytest.raises(kind) as error:
        call()
    assert message(error) == text


def test_a_rule_with_a_branch_has_no_series() -> None:
    bent = custom_jvp(lambda x: x * x, check=False)
    bent.defjvp(lambda p, t: (bent(p[0]), cond(p[0] > 0, lambda: 2 * p[0], lambda: p[0]) * t[0]))
    with pytest.raises(NoRuleError) as error:
        taylor(bent, 1.0, [1.0], 2)
    assert message(error) == (
        "taylor: the rule of rule has cond[branch, branch2], which gives no series; write the rule "
        "without branches and loops, or nest lineara.jvp for a few orders"
    )

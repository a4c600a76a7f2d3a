"""Rules of Python's in programs: one rule serves staged mode, to every order, in every form."""

import numpy as np
import pytest
from test_trace import close

import lineara
from lineara.engines import run
from lineara.errors import LinearaError, LinearityError, RuleError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp
from lineara.passes.jvp import jvp

rng = np.random.default_rng(7)
X = np.array([0.7, 1.9, 1.2])
M = rng.normal(size=(3, 3)) + 3 * np.eye(3)


@lineara.custom_jvp
def softplus(x):
    return np.log1p(np.exp(x))


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return softplus(x), x_dot / (1 + np.exp(-x))


@lineara.custom_jvp
def mixed(p, n):
    return {"y": np.sin(p["a"]) * p["b"] ** n, "n": n, "s": np.sum(p["a"])}


@mixed.defjvp
def mixed_jvp(primals, tangents):
    (p, n), (d, _) = primals, tangents
    s_dot = np.zeros(())
    rows = np.zeros(3)
    for i in range(3):
        rows[i] = np.cos(p["a"][i]) * p["b"] ** n * d["a"][i]
        s_dot = s_dot + d["a"][i]
    rows += np.sin(p["a"]) * n * p["b"] ** (n - 1) * d["b"]
    return mixed(p, n), {"y": rows, "n": 0, "s": s_dot}


def _solve_fwd(a, b):
    x = np.linalg.solve(a, b)
    return x, (a, x, "kept")


def _solve_bwd(residuals, x_bar):
    a, x, _ = residuals
    b_bar = np.linalg.solve(a.T, x_bar)
    return -np.outer(b_bar, x), b_bar


solve = lineara.custom_vjp(np.linalg.solve, _solve_fwd, _solve_bwd)


@lineara.custom_vjp
def recur(x):
    return lineara.fori_loop(0, 3, lambda i, c: np.sin(c) * x, x)


def _recur_fwd(x):
    def step(c, _):
        return np.sin(c) * x, c

    y, cs = lineara.scan(step, x, length=3)
    return y, (x, cs)


def _recur_bwd(residuals, y_bar):
    x, cs = residuals

    def back(carry, c):
        c_bar, x_bar = carry
        return (np.cos(c) * x * c_bar, x_bar + np.sin(c) * c_bar), None

    (c_bar, x_bar), _ = lineara.scan(back, (y_bar, x * 0), cs, reverse=True)
    return (c_bar + x_bar,)


recur.defvjp(_recur_fwd, _recur_bwd)

roll = lineara.custom_linear(np.roll, transpose=lambda y, n: np.roll(y, -n))
mix = lineara.custom_linear(
    lambda a, m, b: m @ a + 2 * b, lambda y, m: (m.T @ y, 2 * y), argnums=(0, 2)
)


def plain(x):
    return np.sum(softplus(x) * x)


def containers(x):
    found = mixed({"a": x, "b": x[0]}, 3)
    return np.sum(found["y"]) * found["s"] + found["n"]


def solves(x):
    return np.sum(solve(M * x[0], x) * x)


def bilinear(x):
    return np.sum(roll(x, 1) ** 2 * mix(x, M, np.sin(x)))


def looped(x):
    def body(i, c):
        return lineara.cond(i > 0, lambda c: recur(c) + softplus(x), lambda c: c * x, c)

    return np.sum(lineara.fori_loop(0, 3, body, x) ** 2)


def waited(x):
    def again(c):
        return c[1] < 2.5

    y, n = lineara.while_loop(again, lambda c: (solve(M, c[0]), c[1] + softplus(x[0])), (x, 0.0))
    return np.sum(y) * n


FUNCTIONS = [plain, containers, solves, bilinear, looped, waited]
BY_NAME = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


@BY_NAME
def test_to_the_second_order_in_both_modes(f):
    t = lineara.trace(f, X)
    assert parse(str(t.program)) == check(t.program)
    name = t.name
    program = jvp(grad(t.program, name), f"{name}.grad")
    program = check(vjp(program, f"{name}.grad"))
    close(run(program, f"{name}.grad", X).results[0], lineara.grad(f)(X))
    d = rng.normal(size=3)
    _, expected = lineara.jvp(lineara.grad(f), (X,), (d,))
    close(run(program, f"{name}.grad.jvp", X, d).lresults[0], expected, 1e-9)
    close(run(program, f"{name}.grad.vjp", X, d).lresults[0], expected, 1e-9)
    close(run(program, f"{name}.jvp", X, d).lresults[0], lineara.jvp(f, (X,), (d,))[1])


@BY_NAME
@pytest.mark.parametrize("policy", ["store_all", "minimal_tape", lineara.policies.binomial(2)])
def test_under_every_policy(f, policy):
    close(lineara.grad(f, policy=policy)(X), lineara.grad(f)(X))


@BY_NAME
def test_over_lanes_eagerly_and_in_a_trace(f):
    A = rng.uniform(0.4, 1.6, size=(4, 3))
    w = rng.normal(size=4)

    def lanes(a):
        return np.sum(w * lineara.vmap(f)(a))

    def one_by_one(a):
        return sum(w[i] * f(a[i]) for i in range(4))

    expected = lineara.grad(one_by_one)(A)
    close(lineara.grad(lanes)(A), expected)
    d = rng.normal(size=(4, 3))
    close(lineara.jvp(lanes, (A,), (d,))[1], np.sum(expected * d))
    if f is not waited:  # lanes in turn, each with a loop that ends by itself
        close(lineara.grad(lanes, policy="store_all")(A), expected)
    if f is not waited:
        close(lineara.vmap(lineara.grad(f))(A), expected / w[:, None])


def test_an_argument_that_lanes_share_gets_the_sum():
    A = rng.uniform(0.4, 1.6, size=(4, 3))

    def shared(f):
        return lambda m, a: np.sum(lineara.vmap(f, (None, 0))(m, a) ** 2)

    for f, plain in ((solve, np.linalg.solve), (lambda m, a: mix(a, M, m[0]), None)):
        g = lineara.grad(shared(f), (0, 1))(M, A)
        plain = plain or (lambda m, a: M @ a + 2 * m[0])
        for got, want in zip(g, lineara.grad(shared(plain), (0, 1))(M, A), strict=True):
            close(got, want)


def a_new_rule(kind, wrong):
    """a x, by a rule that nobody has tested yet."""
    k = 2.0 if wrong else 1.0
    f = lambda a, x: a * x  # noqa: E731
    if kind == "jvp":
        return lineara.custom_jvp(f, lambda p, t: (p[0] * p[1], t[0] * p[1] + k * p[0] * t[1]))
    return lineara.custom_vjp(
        f, lambda a, x: (a * x, (a, x)), lambda r, c: (c * r[1], k * c * r[0])
    )


def is_refused_where_it_is_wrong(kind, axes, way):
    """Right values by a right rule, in lanes or without; an error of a wrong one."""
    at = [rng.uniform(0.5, 1.5, size=(4, 3) if axis == 0 else 3) for axis in axes or (0, 0)]

    def over(f):
        return lambda a, x: np.sum((lineara.vmap(f, axes)(a, x) if axes else f(a, x)) ** 2)

    found = way(over(a_new_rule(kind, wrong=False)), *at)
    wanted = way(over(lambda a, x: a * x), *at)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for got, want in pairs:
        close(got, want)
    with pytest.raises(RuleError, match="mend the rule"):
        way(over(a_new_rule(kind, wrong=True)), *at)


@pytest.mark.parametrize("axes", [(None, 0), (0, None), (0, 0)])
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize(
    "way",
    [
        lambda f, *at: lineara.grad(f, (0, 1))(*at),
        lambda f, *at: lineara.grad(f, (0, 1), policy="store_all")(*at),
        lambda f, *at: lineara.jvp(f, at, tuple(np.ones_like(v) for v in at))[1],
        lambda f, *at: lineara.grad(lambda a: np.sum(lineara.grad(f, 1)(a, at[1]) ** 2))(at[0]),
        lambda f, *at: lineara.vmap(lineara.grad(f, (0, 1)))(*(np.stack([v, v]) for v in at)),
        lambda f, *at: lineara.trace(f, *at)(*at),
    ],
)
def test_the_first_call_of_a_rule_may_be_in_lanes(kind, axes, way):
    is_refused_where_it_is_wrong(kind, axes, way)


def in_rounds(f, a, x):
    return lineara.fori_loop(0, 3, lambda i, c: c + f(a * c / 9, x), 1.0)


def in_a_branch(f, a, x):
    return lineara.cond(np.sum(a) > 0, lambda a: f(a, x), np.sum, a)


def of_second_order(f, a, x):
    return np.sum(lineara.grad(f, 1)(a, x) ** 2)


@pytest.mark.parametrize("axes", [(0, 0), None])
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize(
    "way",
    [
        lambda f, *at: lineara.trace(lineara.grad(f, (0, 1)), *at)(*at),
        lambda f, *at: lineara.jit(f)(*at),
        lambda f, *at: lineara.jit(lineara.grad(f, (0, 1)))(*at),
        lambda f, *at: lineara.jit(lambda *v: lineara.jvp(f, v, v)[1])(*at),
        lambda f, *at: lineara.jit(lineara.grad(lambda a: in_rounds(f, a, at[1])))(at[0]),
        lambda f, *at: lineara.jit(lineara.grad(lambda a: in_a_branch(f, a, at[1])))(at[0]),
        lambda f, *at: lineara.jit(lineara.grad(lambda a: of_second_order(f, a, at[1])))(at[0]),
        lambda f, *at: lineara.grad(lineara.jit(f), (0, 1))(*at),
        lambda f, *at: lineara.jit(lineara.vmap(lineara.grad(f)))(*(np.stack([v, v]) for v in at)),
        lambda f, *at: lineara.vmap(lineara.jit(lineara.grad(f)))(*(np.stack([v, v]) for v in at)),
    ],
)
def test_a_program_that_uses_a_rule_in_a_derivative_alone_tests_it_too(kind, axes, way):
    is_refused_where_it_is_wrong(kind, axes, way)


def test_a_rule_that_was_tested_is_not_tested_again():
    rule = a_new_rule("jvp", wrong=False)
    points = []
    rule.check = lambda args, options: points.append(args)
    g = lineara.jit(lineara.grad(lambda x: np.sum(lineara.vmap(rule)(x, x))))
    for k in (1.0, 2.0):
        close(g(k * X), 2 * k * X)
    assert points == [(X[0], X[0])]


def test_the_rule_is_used_and_not_the_text():
    still = lineara.custom_jvp(lambda x: x * x, lambda p, t: (p[0] * p[0], t[0] * 0), check=False)
    for f in (still, lambda x: lineara.vmap(still)(x.reshape(1))[0] if 0 else still(x)):
        assert lineara.grad(f, policy="store_all")(3.0) == 0.0
    assert lineara.grad(lambda x: np.sum(lineara.vmap(still)(x)))(X).tolist() == [0.0] * 3
    with np.errstate(over="ignore"):
        found = lineara.grad(lambda x: softplus(x), policy="store_all")(800.0)
    assert found == 1.0  # the text overflows


def test_one_definition_serves_all_calls_of_a_type():
    t = lineara.trace(lambda x: softplus(softplus(x)) + softplus(x[0]), X)
    assert [d for d in t.program.defs if d.endswith(".jvp")] == ["softplus.jvp", "softplus2.jvp"]


def test_a_large_constant_of_a_rule_stands_in_it():
    c = rng.normal(size=(20, 3))
    rule = lineara.custom_jvp(lambda x: c @ x, lambda p, t: (c @ p[0], c @ t[0]))

    def f(x):
        return np.sum(rule(x) ** 2)

    close(lineara.grad(f, policy="store_all")(X), 2 * c.T @ c @ X)


def test_a_rule_of_numbers_that_are_fixed_and_given_by_name():
    @lineara.custom_jvp
    def power(x, n, *, scale=1.0):
        return scale * x**n

    @power.defjvp
    def power_jvp(primals, tangents, *, scale):
        (x, n), (d, _) = primals, tangents
        return scale * x**n, scale * n * x ** (n - 1) * d

    def f(x):
        return np.sum(power(x, 3, scale=2.0) * power(x, 2.0))

    close(lineara.grad(f, policy="store_all")(X), 10 * X**4)


# --- what is refused ------------------------------------------------------------------------------


def wrong(rule, *args):
    """The message of a rule in a traced function."""
    with pytest.raises(LinearaError) as error:
        lineara.grad(lambda x: np.sum(rule(x, *args)), policy="store_all")(X)
    return error.type, error.value.message


def named(f):
    f.__name__ = "f"
    return f


def custom_jvp(rule, **options):
    return lineara.custom_jvp(named(lambda x: x * x), rule, **options)


BWD = (named(lambda x: x * x), lambda x: (x * x, x))
MESSAGES = {
    "no rule": (
        lineara.custom_jvp(named(lambda x: x)),
        RuleError,
        "custom_jvp(f) has no rule yet; declare it with f.defjvp",
    ),
    "not linear": (
        custom_jvp(lambda p, t: (p[0] * p[0], t[0] * t[0])),
        LinearityError,
        "custom_jvp(f): the rule, in the tangents, must be linear, but multiply is not linear in "
        "arguments 1 and 2; a linear function adds, moves, sums, contracts and scales vectors",
    ),
    "affine": (
        custom_jvp(lambda p, t: (p[0] * p[0], t[0] + 1.0)),
        LinearityError,
        "custom_jvp(f): the rule, in the tangents, must be linear, but add of a tangent and a "
        "constant is affine",
    ),
    "a value of the tangent": (
        custom_jvp(lambda p, t: (p[0] * t[0], t[0])),
        LinearityError,
        "custom_jvp(f): the rule, in the tangents, must be linear, but a value (f64[3]) depends on "
        "a vector; a linear function gives vectors of them",
    ),
    "asks for the tangent": (
        custom_jvp(lambda p, t: (p[0] * p[0], np.where(t[0] > 0, t[0], 0.0))),
        LinearityError,
        "custom_jvp(f): the rule, in the tangents, must be linear, but greater reads the value of "
        "a vector (f64[3]); a linear function may not depend on it that way",
    ),
    "another slope": (
        custom_jvp(lambda p, t: (p[0] * p[0], 3 * p[0] * t[0])),
        RuleError,
        "custom_jvp(f): the rule says that <w, J v> is -9.42356, but a finite difference of the "
        "function -6.28237; mend the rule, or give check=False if this is meant",
    ),
    "another shape": (
        custom_jvp(lambda p, t: (np.sum(p[0]), np.sum(t[0])), check=False),
        RuleError,
        "custom_jvp(f): the rule returns a value f64[], the function f64[3]; they must be alike",
    ),
    "other leaves": (
        custom_jvp(lambda p, t: ((p[0], p[0]), (t[0], t[0])), check=False),
        RuleError,
        "custom_jvp(f): the rule returns a value of 2 leaves, the function 1; they must be alike",
    ),
    "no pair": (
        custom_jvp(lambda p, t: t[0], check=False),
        RuleError,
        "custom_jvp(f): the rule must return (y, y_dot), but it returned f64[3]",
    ),
    "bwd is not linear": (
        lineara.custom_vjp(*BWD, lambda x, c: (2 * x * c * c,)),
        LinearityError,
        "custom_vjp(f): bwd, in y_bar, must be linear, but multiply is not linear in arguments "
        "1 and 2; a linear function adds, moves, sums, contracts and scales vectors",
    ),
    "one cotangent too many": (
        lineara.custom_vjp(*BWD, lambda x, c: (2 * x * c, None), check=False),
        RuleError,
        "custom_vjp(f): bwd must return a tuple of 1 cotangents, one for each argument (None for "
        "zero), but it returned 2 of them",
    ),
    "not a linear function": (
        lineara.custom_linear(named(lambda x: np.sin(x)), lambda y: y),
        LinearityError,
        "custom_linear(f): the function must be linear, but sin is not linear in argument 1; a "
        "linear function adds, moves, sums, contracts and scales vectors",
    ),
    "integers of a linear function": (
        lineara.custom_linear(named(lambda x: (x, np.argsort(x))), lambda y: y[0], check=False),
        RuleError,
        "custom_linear(f): the result i64[3] has no tangent, but a linear function gives vectors "
        "only; leave it out, or declare a custom_jvp",
    ),
}


@pytest.mark.parametrize(("rule", "kind", "message"), MESSAGES.values(), ids=MESSAGES)
def test_a_wrong_rule_is_refused(rule, kind, message):
    assert wrong(rule) == (kind, message)


def test_what_a_rule_may_not_reach_for():
    def encloses(x):
        rule = lineara.custom_jvp(
            named(lambda y: y * x[0]), lambda p, t: (p[0] * x[0], t[0] * x[0])
        )
        return np.sum(rule(x))

    def writes(x):
        def f(y):
            y[0] = 0.0
            return y

        return np.sum(lineara.custom_jvp(f, lambda p, t: (p[0], t[0]), check=False)(x))

    def moved(x):
        return np.sum(mix(x, np.outer(x, x), x))

    for f, message in (
        (
            encloses,
            "custom_jvp(f) uses a traced value that is not among its arguments; pass it as an "
            "argument, so that its derivative is known",
        ),
        (
            writes,
            "custom_jvp(f) writes into an array that it was given, which its rule still needs; let "
            "it write into a copy",
        ),
        (
            moved,
            "custom_linear(<lambda>): no derivative with respect to the argument `m`, in which it "
            "is not declared linear (argnums); give it a plain value, or declare a custom_jvp",
        ),
    ):
        with pytest.raises(LinearaError) as error:
            lineara.trace(f, X)
        assert error.value.message == message

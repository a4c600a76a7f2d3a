"""`policy=` on grad, vjp and checkpoint: the same derivatives, and less on the tape."""

import numpy as np
import pytest

import lineara
from lineara import policies
from lineara.errors import NonScalarOutputError, TypeMismatchError

POLICIES = {
    **{name: name for name in policies.POLICIES},
    "budget": policies.budget(100),
    "save_only_named": policies.save_only_named(),
    "recompute_calls": policies.recompute_calls(),
    "binomial": policies.binomial(2),
}
X = np.linspace(0.1, 1.0, 5)


def loss(p, x):
    a = np.sin(p["w"] * x) + p["b"]
    b = policies.checkpoint_name(np.exp(a), "b")
    return np.sum(b * a)


PARAMS = {"w": np.linspace(1.0, 2.0, 5), "b": 0.5, "label": "wave"}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_gradient_is_that_of_the_eager_engine(policy):
    value, (g, gx) = lineara.value_and_grad(loss, (0, 1), policy=policy)(PARAMS, X)
    want, (h, hx) = lineara.value_and_grad(loss, (0, 1))(PARAMS, X)
    assert value == pytest.approx(want)
    np.testing.assert_allclose(g["w"], h["w"])
    np.testing.assert_allclose(gx, hx)
    assert g["b"] == pytest.approx(h["b"])
    assert g["label"] == h["label"]


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_vjp_pulls_what_the_eager_one_pulls(policy):
    def f(x, y):
        return {"a": np.sin(x) * y, "b": np.sum(x), "n": 3}

    y, pull = lineara.vjp(f, X, 2.0, policy=policy)
    z, eager = lineara.vjp(f, X, 2.0)
    np.testing.assert_allclose(y["a"], z["a"])
    w = {"a": np.ones(5), "b": 2.0, "n": 0}
    for got, want in zip(pull(w), eager(w), strict=True):
        np.testing.assert_allclose(got, want)


def part(x, scale):
    y = np.exp(np.sin(x) * scale)
    return y * x, np.sum(y)


def whole(part):
    def f(x):
        y, s = part(x, 3)
        return np.sum(y) * s + part(y, 1)[1]

    return f


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_checkpoint_keeps_what_a_policy_says(policy):
    f = whole(lineara.checkpoint(part, policy=policy))
    np.testing.assert_allclose(lineara.grad(f)(X), lineara.grad(whole(part))(X))
    np.testing.assert_allclose(
        lineara.jvp(f, (X,), (X,))[1], lineara.jvp(whole(part), (X,), (X,))[1]
    )


def test_checkpoint_under_a_policy_has_every_order_and_a_jacobian():
    f, g = whole(lineara.checkpoint(part, policy="minimal_tape")), whole(part)
    np.testing.assert_allclose(lineara.hessian(f)(X), lineara.hessian(g)(X))
    h = lineara.checkpoint(lambda x: np.sin(x) * x, policy="minimal_tape")
    np.testing.assert_allclose(
        lineara.jacobian(h)(X), np.diag(np.cos(X) * X + np.sin(X)), atol=1e-15
    )


def test_what_a_checkpoint_captured_has_its_derivative():
    def f(k):
        inner = lineara.checkpoint(lambda x: np.sum(np.sin(x * k)), policy="recompute_all")
        return inner(X)

    assert lineara.grad(f)(2.0) == pytest.approx(np.sum(np.cos(2 * X) * X))


def test_the_plan_is_a_table():
    text = str(policies.plan(loss, PARAMS, X))
    assert [line.split()[0] for line in text.splitlines()] == [
        "policy", "store_all", "save_contractions", "recompute_all", "minimal_tape",
    ]  # fmt: skip


def test_stages_take_the_names_too():
    small = lineara.stages(lambda x: np.sum(np.sin(np.sin(x))), X, policy="minimal_tape")
    large = lineara.stages(lambda x: np.sum(np.sin(np.sin(x))), X)
    assert small.certificate.tape_bytes < large.certificate.tape_bytes


CERTIFIED = {
    "grad": lambda p: lineara.grad(loss, policy=p).certificate(PARAMS, X),
    "value_and_grad": lambda p: lineara.value_and_grad(loss, (0, 1), policy=p).certificate(
        PARAMS, X
    ),
    "convention": lambda p: lineara.grad(loss, policy=p, convention="conjugate").certificate(
        PARAMS, X
    ),
    "vjp": lambda p: lineara.vjp(loss, PARAMS, X, policy=p)[1].certificate(),
    "stages": lambda p: lineara.stages(loss, PARAMS, X, policy=p).certificate,
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_derivative_tells_what_it_takes_and_it_is_what_is_counted(policy):
    given = [certificate(policy) for certificate in CERTIFIED.values()]
    assert all(c == given[0] for c in given)  # foretold, and in the last case counted
    plan = policies.plan(loss, PARAMS, X, policies={"it": policies.chosen(policy, "test")})
    row = plan.rows[-1]
    assert (given[0].reverse, given[0].peak, given[0].again) == (row.work, row.peak, row.again)


def test_a_certificate_is_printed_before_anything_runs():
    ran = []

    def f(x):
        ran.append(x)
        return np.sum(np.sin(np.sin(x)))

    certificate = lineara.grad(f, policy="minimal_tape").certificate(np.ones(1000))
    assert "staged" in repr(ran)
    assert str(certificate) == (
        "linear, by type: f.jvp, f.jvp.lin, f.jvp.lin.t\n"
        "work: value 2,999, forward 7,998, reverse 7,999, of which 1,000 a second time\n"
        "bound: forward <= 3 value + the size of the arrays that are given or made\n"
        "memory: tape 8.00 kB, peak 32.00 kB"
    )


def test_what_depends_on_values_is_not_foretold():
    def root(a):
        def again(c):
            return abs(c * c - a[0]) > 1e-12

        return lineara.while_loop(again, lambda c: (c + a[0] / c) / 2, a[0])

    assert str(lineara.grad(root, policy="store_all").certificate(np.array([4.0]))) == (
        "linear, by type: root.jvp, root.jvp.lin, root.jvp.lin.t\n"
        "work: depends on values: only a run can tell\n"
        "bound: forward <= 7 value + the size of the arrays that are given or made\n"
        "memory: depends on values: only a run can tell"
    )
    assert "work depends on values" in lineara.stages(root, np.array([4.0])).stages[0].heading
    counted = lineara.stages(root, np.array([4.0]), run=True).certificate
    assert counted.value > 0
    assert counted.peak is None


REFUSED = {
    "unknown": (
        lambda: lineara.grad(loss, policy="small"),
        TypeMismatchError,
        "grad: policy='small' is not known; give one of store_all, save_contractions, "
        "recompute_all, minimal_tape or an object of lineara.policies, such as budget(10**6)",
    ),
    "with sparse": (
        lambda: lineara.grad(loss, policy="store_all", sparse=True),
        TypeMismatchError,
        "grad: policy= goes with argnums only; leave out has_aux, sparse, combine, out and "
        "strong_zero, or wrap a part of f in lineara.checkpoint(part, policy=...)",
    ),
    "with has_aux": (
        lambda: lineara.vjp(loss, PARAMS, X, policy="store_all", has_aux=True),
        TypeMismatchError,
        "vjp: policy= does not go with has_aux; return the value alone",
    ),
    "several results": (
        lambda: lineara.grad(np.sin, policy="store_all")(X),
        NonScalarOutputError,
        "grad: the function must return one real number, but it returned f64[5]; reduce it "
        "(np.sum), or use vjp or jacobian for other results",
    ),
}


@pytest.mark.parametrize(("act", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_policy_does_not_go_with(act, kind, message):
    with pytest.raises(kind) as error:
        act()
    assert error.value.message == message


def test_a_branch_on_a_value_is_a_branch_of_the_program():
    def f(x):
        return x if x > 0 else -x

    g = lineara.grad(f, policy="store_all")
    assert [g(1.0), g(-2.0)] == [1.0, -1.0]


def test_within_another_differentiation_a_checkpoint_keeps_what_a_policy_would():
    def f(x):
        return np.sum(np.sin(x) * x**2)

    v = np.arange(5.0)
    message = (
        "policy= takes plain values, but a differentiation or a trace around gave f64[5]; there, "
    )
    for inner, name in (
        (lambda x: lineara.grad(f, policy="minimal_tape")(x), "grad"),
        (lambda x: lineara.vjp(f, x, policy="minimal_tape")[1](1.0)[0], "vjp"),
    ):
        with pytest.raises(TypeMismatchError) as error:
            lineara.grad(lambda x, inner=inner: np.sum(inner(x) * v))(X)
        assert error.value.message == (
            f"{name}: {message}{name} of lineara.checkpoint(f, policy=...) keeps the same"
        )
    kept = lineara.checkpoint(f, policy="minimal_tape")
    found = lineara.grad(lambda x: np.sum(lineara.grad(kept)(x) * v))(X)
    np.testing.assert_allclose(found, lineara.hvp(f)(X, v))

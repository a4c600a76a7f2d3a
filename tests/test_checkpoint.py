"""checkpoint runs a function again instead of storing what it computed."""

import functools
import gc
import math
from dataclasses import dataclass

import numpy as np
import pytest

import lineara
from lineara import checkpoint, grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, vjp
from lineara.errors import LeakedVariableError, MutationError
from lineara.tape.levels import innermost_level
from lineara.testing import count_bytes

X = np.array([0.5, -1.0, 2.0])
V = np.array([1.0, 0.5, -0.25])


def step(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = math.sin(x[i]) * x[i - 1]
    return y + 0.1 * x


def plain(x):
    for _ in range(3):
        x = step(x)
    return x


def kept(x):
    for _ in range(3):
        x = checkpoint(step)(x)
    return x


def nested(x):
    return checkpoint(lambda z: checkpoint(step)(checkpoint(step)(checkpoint(step)(z))))(x)


@pytest.mark.parametrize("f", [kept, nested])
def test_every_mode_and_order_equals_the_plain_function(f):
    def programs(f):
        def loss(x):
            return np.sum(f(x) ** 2)

        yield f(X)
        yield grad(loss)(X)
        yield jvp(f, (X,), (V,))
        yield vjp(f, X)[1](V)
        yield jacfwd(f)(X)
        yield jacrev(f)(X)
        yield hessian(loss)(X)
        yield hvp(loss)(X, V)
        yield grad(lambda x: np.sum(grad(loss)(x) * V))(X)
        yield grad(lambda x: np.sum(jvp(f, (x,), (V,))[1]))(X)
        yield jacrev(jacrev(f))(X)
        yield grad(lambda x: np.sum(hvp(loss)(x, V)))(X)
        yield linearize(f, X)[1].to_dense()

    for ours, theirs in zip(programs(f), programs(plain), strict=True):
        for a, b in zip(
            lineara.trees.flatten(ours)[0], lineara.trees.flatten(theirs)[0], strict=True
        ):
            assert np.allclose(a, b, rtol=1e-11)


@pytest.mark.parametrize("move", [lambda y: np.roll(y, 1), lambda y: y[::-1] + 2 * y[1]])
def test_parts_of_an_array_in_a_function_that_runs_again(move):
    def f(x):
        y = 2 * x
        return y + move(y + x)

    expected = grad(lambda x: np.sum(f(x) ** 2))(X)
    assert np.allclose(grad(lambda x: np.sum(checkpoint(f)(x) ** 2))(X), expected)


def test_the_tape_holds_one_entry_a_call():
    lengths = {}

    def f(x, name, run):
        before = len(innermost_level().tape)
        y = run(x)
        lengths[name] = len(innermost_level().tape) - before
        return np.sum(y)

    grad(lambda x: f(x, "plain", plain))(X)
    grad(lambda x: f(x, "kept", kept))(X)
    grad(lambda x: f(x, "nested", nested))(X)
    assert lengths["plain"] > 20
    assert (lengths["kept"], lengths["nested"]) == (3, 1)


def test_memory_is_that_of_the_inputs_and_one_run():
    n, count = 20_000, 20

    def chain(x):
        for _ in range(count):
            x = np.sin(np.cos(x) * x) + 0.1 * x
        return x

    def loss(x, run):
        for _ in range(count):
            x = run(x)
        return np.sum(x)

    x = np.linspace(0.0, 1.0, n)
    full = count_bytes(lambda: grad(lambda x: loss(x, chain))(x))
    less = count_bytes(lambda: grad(lambda x: loss(x, checkpoint(chain)))(x))
    assert less < full / 8


def rows_of_views(x):
    for _ in range(10):
        x = np.sin(x[::-1]) * x
    return x


def rows_written(x):
    y = x.copy()
    for _ in range(10):
        y[:] = np.sin(y[::-1]) * y
    return y


@pytest.mark.parametrize("run", [rows_of_views, rows_written])
@pytest.mark.parametrize("way", ["back", "ahead"])
def test_a_tape_with_views_is_freed_when_it_is_swept_and_not_by_the_collector(run, way):
    x = np.linspace(0.0, 1.0, 20_000)

    def peak(count):
        def f(x):
            for _ in range(count):
                x = checkpoint(run)(x)
            return np.sum(x)

        if way == "back":
            return count_bytes(lambda: grad(f)(x))
        return count_bytes(lambda: jvp(f, (x,), (x,)))

    gc.collect()
    gc.disable()
    try:
        assert peak(8) - peak(4) < 12 * x.nbytes  # one call's tape holds more than twenty arrays
    finally:
        gc.enable()


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:], lambda x: x[0]])
def test_a_node_of_the_second_run_is_refused_after_the_sweep(part):
    kept = []

    def f(x):
        kept.append(part(x))
        return np.sum(x * x[::-1])

    assert grad(checkpoint(f))(np.array([1.0, 2.0, 3.0])).tolist() == [6.0, 4.0, 2.0]
    with pytest.raises(LeakedVariableError):
        grad(lambda y: np.sum(y * kept[-1]))(2.0)


def test_the_function_runs_once_forward_and_once_a_sweep():
    calls = []

    def f(x):
        calls.append(x)
        return x * x

    assert grad(checkpoint(f))(3.0) == 6.0
    assert len(calls) == 2
    assert type(calls[0]) is float
    calls.clear()
    _, L = linearize(checkpoint(f), 3.0)
    assert len(calls) == 1
    assert (L @ 1.0, 1.0 @ L) == (6.0, 6.0)
    assert len(calls) == 3
    calls.clear()
    assert np.allclose(jacrev(checkpoint(f))(X), np.diag(2 * X))
    assert len(calls) == 2


def test_without_differentiation_it_is_the_function():
    assert checkpoint(step)(X).tolist() == step(X).tolist()
    assert checkpoint(step).__name__ == "step"
    assert checkpoint(checkpoint(step)).__wrapped__ is step


def test_it_is_a_decorator():
    @checkpoint
    def f(x):
        """Squares."""
        return x * x

    assert f.__doc__ == "Squares."
    assert grad(f)(3.0) == 6.0


@dataclass
class Params:
    w: np.ndarray
    b: float
    name: str = "layer"

    def apply(self, x):
        return np.tanh(self.w @ x + math.exp(self.b))


def test_containers_names_and_several_results():
    def f(params, x, *, scale=1.0, flip=False):
        y = params.apply(x)
        return {"y": -scale * y if flip else scale * y, "norm": np.sum(y * y), "name": params.name}

    def loss(params, x, scale, f):
        out = f(params, x, scale=scale, flip=True)
        assert out["name"] == "layer"
        return np.sum(out["y"]) * out["norm"]

    args = (Params(np.arange(9.0).reshape(3, 3) / 10, 0.1), X, 2.0)
    ours = grad(lambda *a: loss(*a, checkpoint(f)), argnums=(0, 1, 2))(*args)
    theirs = grad(lambda *a: loss(*a, f), argnums=(0, 1, 2))(*args)
    assert isinstance(ours[0], Params)
    assert np.allclose(ours[0].w, theirs[0].w)
    assert ours[0].b == pytest.approx(theirs[0].b)
    assert np.allclose(ours[1], theirs[1])
    assert ours[2] == pytest.approx(theirs[2])


def test_what_the_function_captured_has_its_gradient():
    def loss(w, check):
        scale = w["scale"]

        def inner(x):
            return w["bias"] * x

        def f(x):
            return np.sin(scale * x) + inner(x)

        f = check(f)
        return np.sum(f(f(X)))

    w = {"scale": 1.5, "bias": 0.3}
    ours, theirs = (grad(lambda w, c=c: loss(w, c))(w) for c in (checkpoint, lambda f: f))
    assert ours == pytest.approx(theirs)

    def outer(w):
        def f(x):
            return np.sin(w["scale"] * x) + w["bias"] * x

        f = checkpoint(f)
        return np.sum(checkpoint(lambda x: f(f(x)))(X))

    assert grad(outer)(w) == pytest.approx(theirs)
    ours, theirs = (
        hessian(lambda s, c=c: loss({"scale": s, "bias": 0.3}, c))(1.5)
        for c in (checkpoint, lambda f: f)
    )
    assert ours == pytest.approx(theirs)


def test_partials_and_methods_are_checkpointed():
    def f(a, x):
        return a * x * x

    assert grad(lambda a: checkpoint(functools.partial(f, a))(3.0))(2.0) == 9.0

    class Model:
        def __init__(self, w):
            self.w = w

        def predict(self, x):
            return np.sin(self.w * x)

    assert grad(lambda w: checkpoint(Model(w).predict)(2.0))(3.0) == pytest.approx(
        2 * math.cos(6.0)
    )


def test_arrays_that_are_written_before_and_after():
    def f(x):
        y = np.zeros(4)
        y[:3] = x
        z = checkpoint(lambda v: v * v)(y)
        y[0] = 7.0
        z[1] = y[0]
        return np.sum(z * y)

    assert np.allclose(grad(f)(X), grad(lambda x: 7.0 * x[0] ** 2 + 7.0 * x[1] + x[2] ** 3)(X))


def test_the_users_array_may_be_overwritten_after_the_call():
    data = np.array([1.0, 2.0, 3.0])

    def f(x):
        y = checkpoint(lambda x, d: x * d * d)(x, data)
        data[:] = 0.0
        return np.sum(y)

    assert grad(f)(X).tolist() == [1.0, 4.0, 9.0]


def test_a_function_that_changes_between_its_runs_is_refused():
    data = np.array([1.0, 2.0, 3.0])

    def f(x):
        y = checkpoint(lambda x: x * data)(x)
        data[:] = 0.0
        return np.sum(y)

    with pytest.raises(MutationError, match="the function gave another result when it") as e:
        grad(f)(X)
    assert e.value.message == (
        "checkpoint of <lambda>: the function gave another result when it was run again for its "
        "derivative; it must depend on nothing but its arguments, so pass it what changes (arrays "
        "that are overwritten, random numbers)"
    )
    rng = np.random.default_rng(0)
    with pytest.raises(MutationError, match="the function gave another result when it"):
        grad(checkpoint(lambda x: x * rng.random()))(2.0)


def test_a_function_that_writes_into_its_argument_is_refused():
    def f(x):
        x[0] = 0.0
        return np.sum(x * x)

    for run in (lambda x: checkpoint(f)(x), lambda x: checkpoint(f)(2 * x)):
        with pytest.raises(MutationError, match="checkpoint of f writes into an array"):
            grad(run)(X)
        with pytest.raises(MutationError, match="checkpoint of f writes into an array"):
            hessian(run)(X)


def test_custom_rules_inside_and_around():
    square = lineara.custom_vjp(lambda x: x * x, lambda x: (x * x, x), lambda x, w: (2 * x * w,))
    assert np.allclose(hessian(lambda x: np.sum(checkpoint(square)(x) * x))(X), np.diag(6 * X))
    cube = lineara.custom_jvp(
        lambda x: x**3, lambda p, t: (checkpoint(lambda x: x**3)(p[0]), 3 * p[0] ** 2 * t[0])
    )
    assert np.allclose(hessian(lambda x: np.sum(cube(x)))(X), np.diag(6 * X))


def test_a_checkpoint_of_a_linear_function_is_linear():
    assert lineara.linear_transpose(checkpoint(lambda x: 2 * x), 1.0)(3.0) == (6.0,)


def test_where_has_no_nan_inside_a_checkpoint():
    f = checkpoint(lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 0.0)), 0.0)))
    assert grad(f)(np.array([4.0, -1.0])).tolist() == [0.25, 0.0]

"""Staging by tracing: the program of a function has its value and its gradient."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import test_primitives
import test_written
from forms import asks
from hypothesis import given, settings
from ops import test_numpy_forms as forms

import lineara
from lineara.demo import model
from lineara.engines import run
from lineara.errors import LeakedVariableError, MutationError, ShapeError, StagingError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp
from lineara.passes.jvp import jvp


def staged(f: Any, *args: Any, ws: Any = None) -> tuple[Any, Any]:
    """(value, cotangents of what moves), by the checked program."""
    t = lineara.trace(f, *args)
    program = check(vjp(t.program, t.name))
    assert parse(str(program)) == program
    ws = [1.0] if ws is None else ws
    found = run(program, f"{t.name}.vjp", *t.operands(args), *ws)
    return t.results.tree(found.results), found.lresults


def close(a: Any, b: Any, tol: float = 1e-10) -> None:
    np.testing.assert_allclose(a, b, rtol=tol, atol=10 * tol)


def agree(f: Any, *args: Any) -> None:
    """Value and gradient of the program are those of the eager engine."""
    value, g = staged(f, *args)
    y, eager = lineara.value_and_grad(f, argnums=tuple(range(len(args))))(*args)
    close(value, y, 1e-13)
    eager = [v for v in lineara.trees.flatten(eager)[0] if isinstance(v, float | np.ndarray)]
    assert len(g) == len(eager)
    for a, b in zip(g, eager, strict=True):
        close(a, b)


# --- every operation ------------------------------------------------------------------------------


@pytest.mark.parametrize("line", test_primitives.SMOOTH[::5], ids=repr)
def test_every_primitive_staged_is_the_eager_one(line):
    point = tuple(line.point())
    y, L = line.linearize()
    w = forms.random_like(y, 9)
    value, g = staged(line.plain(), *point, ws=[w])
    close(value, y, 1e-13)
    back = w @ L
    for a, b in zip(g, back if len(point) > 1 else [back], strict=True):
        close(a, b)


LINES = [s for s in forms.LINES if not asks(s)]


@pytest.mark.parametrize("line", LINES[::23])
def test_forms_of_numpy_to_the_second_order(line):
    f, point = forms.form(line)
    w = forms.random_like(f(*point), 9)

    def h(*v):
        return np.sum(w * f(*v))

    t = lineara.trace(h, *point)
    program = jvp(grad(t.program, t.name), f"{t.name}.grad")
    d = [forms.random_like(q, i) for i, q in enumerate(point)]
    zeros = [np.zeros_like(c) for c in t.beside]
    found = run(check(program), f"{t.name}.grad.jvp", *t.operands(tuple(point)), *d, *zeros)
    _, expected = lineara.jvp(lineara.grad(h, tuple(range(len(d)))), tuple(point), tuple(d))
    slopes = found.lresults[: len(d)]  # after them those of the constants beside
    for a, b in zip(slopes, expected, strict=True):
        close(a, b, 1e-9)


# --- arrays that are written ----------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(test_written.PROGRAM)
def test_any_program_that_writes_has_the_gradient_of_complex_steps(program: Any) -> None:
    x = test_written.X.copy()
    value, g = staged(lambda v: test_written.execute(program, v), x)
    assert test_written.close(value, test_written.execute(program, x.copy()), 1e-14)
    assert test_written.close(g[0], test_written.gradient(program, x))


@settings(max_examples=25, deadline=None)
@given(test_written.PROGRAM)
def test_gradients_inside_a_trace_are_traced(program: Any) -> None:
    x = test_written.X.copy()
    execute = test_written.execute
    value, g = staged(lambda v: execute(program, v, inner=test_written.differentiated), x)
    assert test_written.close(value, execute(program, x.copy()), 1e-13)
    assert test_written.close(g[0], test_written.gradient(program, x))


def test_of_positions_that_come_twice_the_last_write_counts():
    at = np.array([1, 0, 1])

    def f(x):
        y = np.zeros(3)
        y[at] = x
        np.add.at(y, at, 2 * x)
        return y @ np.array([1.0, 10.0, 100.0])

    agree(f, np.array([1.0, 2.0, 3.0]))


def test_an_array_of_positions_behind_a_slice_of_a_row():
    def f(x):
        y = np.zeros((2, 3, 2))
        y[0][:, np.array([1, 0])] = x
        y[1][:, np.array([0, 0])] += 2 * x
        return np.sum(y * np.arange(12.0).reshape(2, 3, 2))

    agree(f, np.arange(6.0).reshape(3, 2))


READ = {
    "at positions": lambda r, x, i: r[i],
    "at positions that the function makes": lambda r, x, i: r[np.arange(3)],
    "at one position": lambda r, x, i: r[i[0]],
    "by take": lambda r, x, i: np.take(r, i),
    "in an operation": lambda r, x, i: x * r,
    "in another's": lambda r, x, i: np.where(x > 0, r, -r),
    "by a branch": lambda r, x, i: lineara.cond(x > 0, lambda: r * x, lambda: r),
    "by a loop": lambda r, x, i: lineara.fori_loop(0, 2, lambda k, v: v + r, x + np.zeros(6)),
    "as rows": lambda r, x, i: r.reshape(3, 2)[i],
    "in another array": lambda r, x, i: np.concatenate([r, np.array([x])]),
}


@pytest.mark.parametrize("how", READ)
def test_what_was_read_of_a_constant_array_stays_when_it_is_written(how):
    def f(x, i):
        r = np.arange(6.0)
        g = READ[how](r, x, i)
        r[:2] = -7.0
        return np.sum(g * x) + r.sum()

    x, i = 1.5, np.arange(3)
    assert lineara.trace(f, x, i)(x, i) == f(x, i)


def test_staged_positions_read_write_and_add():
    def f(x, i):
        y = np.zeros(4)
        for k in range(3):
            y[i[k]] = np.sin(x[k])
            y[i[k]] *= x[0]
        z = x[i] * 2.0
        np.add.at(z, i, y[:3])
        row = np.outer(x, x)[i[1]]
        row[i[0]] = 0.0
        return y.sum() + (z * row).sum() + np.take(np.arange(6.0), i[2])

    x, i = np.array([0.3, 0.7, 1.9]), np.array([2, 0, 2])
    value, g = staged(f, x, i)
    y, expected = lineara.value_and_grad(f)(x, i)
    close(value, y)
    close(g[0], expected)


# --- plain programs -------------------------------------------------------------------------------


def runge_kutta(y0: Any, k: float) -> Any:
    y = np.zeros((9, 2))
    y[0] = y0

    def slope(v: Any) -> Any:
        return np.array([v[1], -k * math.sin(v[0])])

    h = 0.1
    for n in range(8):
        a = slope(y[n])
        b = slope(y[n] + h / 2 * a)
        c = slope(y[n] + h / 2 * b)
        d = slope(y[n] + h * c)
        y[n + 1] = y[n] + h / 6 * (a + 2 * b + 2 * c + d)
    return np.sum(y[:, 0] ** 2)


@dataclass
class Layer:
    """A layer of a network, with a method."""

    w: Any
    b: Any
    name: str = "layer"

    def __call__(self, x: Any) -> Any:
        return np.tanh(x @ self.w + self.b)


def network(layers: list[Layer], x: Any) -> Any:
    for layer in layers:
        x = layer(x)
    return np.mean(x**2)


def mlp(p: dict[str, Any], x: Any) -> Any:
    h = np.maximum(x @ p["w1"] + p["b"][0], 0.0)
    return np.sum((h @ p["w2"] + p["b"][1]) ** 2)


rng = np.random.default_rng(4)
W = [rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(5, 3))]


def test_a_loop_that_fills_an_array():
    agree(runge_kutta, np.array([0.4, 0.0]), 1.7)


def test_parameters_in_a_dict():
    p = {"w1": W[0], "w2": W[1], "b": [np.ones(4) * 0.1, 0.3]}
    agree(mlp, p, W[2])
    assert [v.name for v in lineara.trace(mlp, p, W[2]).program.defs["mlp"].params] == [
        "p.w1", "p.w2", "p.b.0", "p.b.1", "x",
    ]  # fmt: skip


def test_dataclasses_with_methods():
    agree(network, [Layer(W[0], np.zeros(4)), Layer(W[1], np.ones(2))], W[2])


def test_the_demo_model_is_traced_as_it_stands():
    years, pelts = model.hudson_bay()
    p = model.Parameters(0.545, 0.028, 0.803, 0.024, 33.956, 5.933, 0.25, 0.25)
    agree(lambda p: model.negative_log_likelihood(p, years[:3], pelts[:3]), p)


def test_results_have_their_containers_and_constants():
    t = lineara.trace(lambda x, n: {"y": x * n, "n": n, "z": [x.sum(), 1.5]}, np.ones(2), 3)
    assert t(np.array([1.0, 2.0]), 3)["z"] == [3.0, 1.5]
    assert t(np.ones(2), 3)["n"] == 3
    assert str(t).startswith("def f(x: f64[2];) -> (f64[2], f64, f64;) =")


def test_large_constants_are_formals_with_values_beside():
    c = np.arange(100.0)
    t = lineara.trace(lambda x: np.sum(c * x) + np.sum(np.ones(1000) * x[0]), np.ones(100))
    assert [v.name for v in t.program.defs["f"].params] == ["x", "c"]
    c[:] = 0.0  # what the user does later is not seen
    close(t(np.ones(100)), 4950.0 + 1000.0)


# --- what cannot be staged ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: [x, 2.0][x.astype(int)[0]], "it must keep its shape"),
        (lambda x: x * len("x" * int(x[0])), "constants of the program"),
        (lambda x: x[x > 0], "np.where"),
        (lambda x: np.flatnonzero(x), "depends on staged values"),
    ],
)
def test_asking_for_a_value_is_an_error_with_the_line(f, said):
    with pytest.raises((StagingError, ShapeError), match=said) as caught:
        lineara.trace(f, np.ones(3))
    assert "test_trace.py" in str(caught.value)


def test_a_function_that_is_not_read_says_why():
    scope = {}
    exec("def f(x):\n    return x if x > 0 else -x", scope)
    with pytest.raises(StagingError, match="are not read: its source is not there"):
        lineara.trace(scope["f"], 1.0)


def test_checkpointed_functions_are_traced():
    agree(lambda x: np.sum(lineara.checkpoint(np.sin)(x) * x), np.ones(2))


def test_stopped_gradients_and_views_that_do_not_follow():
    def f(x):
        inner = lineara.grad(lambda v: np.sum(v**2) * lineara.stop_gradient(v)[0])(x)
        return np.sum(lineara.stop_gradient(x) * x + inner)

    agree(f, np.array([1.0, 2.0]))

    def row(x):
        def of(m):
            r = m[np.argmax(x)]
            r[0] = 1.0
            return np.sum(m)

        return np.sum(lineara.grad(of)(np.outer(x, x)))

    with pytest.raises(MutationError, match="cannot write through"):
        lineara.trace(row, np.ones(2))


def test_a_program_takes_what_it_was_traced_for():
    t = lineara.trace(lambda x, n: x * n, np.ones(2), 3)
    for args, said in (
        ((np.ones(3), 3), r"traced for f64\[2\]"),
        ((np.ones(2), 4), "constant 3"),
        (((np.ones(2),), 3), "form"),
    ):
        with pytest.raises(StagingError, match=said):
            t(*args)


def test_staged_values_do_not_outlive_the_trace():
    kept = []
    lineara.trace(lambda x: kept.append(x) or x * 2, np.ones(2))
    with pytest.raises(LeakedVariableError):
        np.sin(kept[0])
    with pytest.raises(LeakedVariableError):
        kept[0][0] = 1.0


def test_writes_that_do_not_fit_are_refused():
    def f(x):
        y = np.zeros(3)
        y[:2] = x
        return y

    with pytest.raises(ShapeError, match="does not fit"):
        lineara.trace(f, np.ones(3))

    def g(x):
        y = np.exp(x)
        z = np.broadcast_to(y, (2, 3))
        y[0] = 1.0
        return z

    with pytest.raises(MutationError):
        lineara.trace(g, np.ones(3))

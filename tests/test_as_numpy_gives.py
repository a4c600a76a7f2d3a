"""What NumPy's functions give has NumPy's type: an array without axes is no number, and no view."""

import numpy as np
import pytest
import scipy.optimize

from lineara import grad, value_and_grad

x0 = [0.3, 1.2, 0.8]
OF_LISTS = """
np.squeeze(v); np.expand_dims(v, 0); np.real_if_close(v); np.ravel(v); np.nan_to_num(v); np.sum(v)
np.mean(v); np.std(v); np.var(v); np.max(v); np.min(v); np.cumsum(v); np.prod(v); np.diff(v)
np.sort(v); np.sqrt(v); np.abs(v); np.outer(v, v); np.dot(v, v); np.reshape(v, (1, -1))
np.transpose(v); np.flip(v); np.roll(v, 1); np.clip(v, 0, 1); np.where([True, False, True], v, 0)
np.average(v); np.tile(v, 2); np.repeat(v, 2); np.ptp(v); np.kron(v, v); np.tensordot(v, v, 1)
np.diag(v); np.array_split(v, 2)[0]; np.flipud(v); np.broadcast_to(v, (2, 3)); np.vdot(v, v)
np.maximum(v, 1.0); np.minimum(v, v); np.hypot(v, 1); np.power(v, 2); np.logaddexp(v, 1)
np.take(v, [0, 2]); np.compress([1, 0, 1], v); np.cumprod(v); np.cov(v); np.linalg.norm(v)
np.interp([0.5, 1.7], [0, 1, 2], v); np.polyval(v, 2.0); np.quantile(v, 0.3); np.fft.rfft(v).real
np.stack([v, v]); np.concatenate([v, v]); np.triu([v, v]); np.swapaxes([v, v], 0, 1)
"""
OF_NUMBERS = """
np.squeeze(x); np.transpose(x); np.reshape(x, ()); np.where(True, x, 2.0); np.i0(x); np.roll(x, 0)
np.real_if_close(x); np.piecewise(x, [x > 0], [lambda v: v * 2]); np.vectorize(lambda v: v * 2)(x)
np.squeeze(a[:1]); a[:1].squeeze(); a[:1].reshape(()); np.reshape(a[:1], ()); a[0, ...]; a[0]
np.tensordot(a, a, 1); np.cov(a); np.array(x)[()]; np.array(x) * 1; np.array(x).item(); a.item(0)
np.array([x]).item(); np.array([[x]]).item((0, 0)); np.array(x).tolist(); a.tolist()[0]; a.sum()
np.ascontiguousarray(x); np.asfortranarray(x); np.require(x); np.asarray_chkfinite(x); np.sum(x)
np.arange(0, x); np.arange(x); np.arange(0, 9, x); np.bool_(x); np.flip(a)[0]; np.median(a)
a.astype(np.float32).item(0); np.bool_(a); np.float64(x) * 1; np.clip(x, 0, 1); np.dot(a, a)
"""


OF_TWO_KINDS = """
np.concatenate([h, x], axis=None); np.concatenate([r, h, x], axis=None); np.append(h, x)
np.append(r, x); np.hstack([h, x]); np.vstack([h, x]); np.stack([h, x]); np.array([h, x])
np.dot(h, x); np.dot(x, h); np.dot(r, x); np.inner(r, x); np.vdot(h, x); np.outer(h, x)
np.choose([0, 1], [h, x]); np.where(True, h, x); np.select([True], [h], x); np.clip(h, x, x)
np.full_like(r, x); np.insert(r, 0, x); np.pad(r, 1, constant_values=x); np.nan_to_num(h, nan=x)
np.cross([h, x, h], [h, x, x]); np.kron(h, x); np.linspace(h, x + 2, 3); np.arange(h, x + 2, 1)
np.diff(r, prepend=x); np.trapezoid(r, dx=x); np.gradient(r, x); np.r_[h, x]; np.polyval([h, h], x)
np.maximum(h, x); np.power(h, x); np.hypot(x, h); np.multiply.outer(h, x); np.heaviside(h, x)
np.average([h, x]); np.add.reduce([h, x]); np.einsum(",", h, x); np.concatenate([x, x], axis=None)
np.concatenate([h, 2 * x], axis=None); np.concatenate([h, x + 1j], axis=None); np.max([h, x])
"""


def lines(text):
    return [line.strip() for row in text.split("\n") for line in row.split(";") if line.strip()]


def shown(v):
    return type(v).__name__, np.shape(v), str(getattr(v, "dtype", ""))


@pytest.mark.parametrize("made", ["v", "tuple(v)", "[v[0], 1.0, v[2]]"])
def test_functions_take_lists_that_are_differentiated(made):
    for line in lines(OF_LISTS):
        f = eval(f"lambda v: np.sum((lambda v: {line})({made})) + 0 * v[0]", {"np": np})
        value, slopes = value_and_grad(f)(x0)
        assert value == f(x0), line
        for i in range(3):
            up, down = ([v + h * (i == j) for j, v in enumerate(x0)] for h in (1e-6, -1e-6))
            assert slopes[i] == pytest.approx((f(up) - f(down)) / 2e-6, abs=1e-7), line


@pytest.mark.parametrize("x", [3.7, np.float64(3.7), np.float32(3.7)], ids=repr)
def test_results_have_the_class_of_numpys(x):
    for line in lines(OF_NUMBERS):
        seen = []
        scope = {"np": np, "seen": seen, "shown": shown}
        f = eval(f"lambda x: (lambda a: seen.append(shown({line})))(np.array([x, 2 * x]))", scope)
        f(x)
        grad(lambda x, f=f: (f(x), x)[1])(x)
        assert seen[0] == seen[1], line


def test_a_number_of_pythons_takes_the_precision_that_it_takes_plainly():
    for line in lines(OF_TWO_KINDS):
        made, seen = eval(f"lambda x, h, r: {line}", {"np": np}), []

        def f(x, made=made, seen=seen):
            h = np.float32(x)
            y = made(x, h, np.array([h, 2 * h]))
            seen.append((shown(y), np.array(y).tolist()))
            return x

        f(0.7)
        grad(f)(0.7)
        assert seen[0] == seen[1], line


def test_a_view_without_axes_is_written_through():
    views = (
        lambda y: y[1:2].squeeze(),
        lambda y: np.squeeze(y[1:2]),
        lambda y: y[1:2].reshape(()),
        lambda y: np.reshape(y[1:2], ()),
        lambda y: y[1, ...],
    )
    for view in views:

        def f(x, view=view):
            y = x * 1
            z = view(y)
            z *= 7
            y[0] = z
            return y @ x

        x = np.array([1.0, 2.0, 3.0])
        value, g = value_and_grad(f)(x)
        assert value == f(x.copy())
        np.testing.assert_allclose(g, [14.0, 28.0 + 7.0, 6.0])


FORMATS = ["'%s' % x", "'%.3f' % x", "'%5.2e|%g' % (x, x)", "'%(a).2f' % {'a': x}", "'%d' % x"]
FORMATS += ["b'%.2f' % x", "f'{x:.3f}'", "'{:g}'.format(x)", "str(x)"]


@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize("x", [3.7, np.float64(3.7), np.float32(3.7)], ids=repr)
def test_texts_show_the_number(text, x):
    seen = []
    f = eval(f"lambda x: (seen.append({text}), x * len(seen[-1]))[1]", {"seen": seen})
    plain = f(x)
    assert value_and_grad(f)(x) == (plain, len(seen[0]))
    assert seen[0] == seen[1]


def test_further_arguments_in_a_list():
    """least_squares takes any sequence; the others take a list for one argument."""

    def fitted(a):
        found = scipy.optimize.least_squares(lambda x, b, c: x * c - b, np.zeros(1), args=[a, 2.0])
        return found.x[0]

    value, slope = value_and_grad(fitted)(3.0)
    assert value == pytest.approx(1.5)
    assert slope == pytest.approx(0.5)
    moved = lambda a: scipy.optimize.fixed_point(lambda x, b: 0.5 * x + b, 1.0, args=[a])  # noqa: E731
    assert grad(moved)(2.0) == pytest.approx(2.0)


def test_a_dict_that_grows_while_it_is_read():
    def f(x):
        try:
            for k in x:
                x[k + "z"] = 1.0
        except RuntimeError:
            return x["a"]
        return x["b"]

    assert f({"a": 0.5, "b": 1.5}) == 0.5
    assert value_and_grad(f)({"a": 0.5, "b": 1.5})[0] == 0.5

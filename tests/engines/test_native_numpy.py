"""NumPy's functions as scientists call them, by machine code: which of them are code.

Each line is compiled with its gradient: the value is NumPy's, the gradient the eager engine's, and
what is called back is what docs/native.md says.
"""

import math

import numpy as np
import pytest
import scipy.special as sp
from tables import Laws

import lineara

pytest.importorskip("llvmlite")

laws = Laws()
X = np.array([0.3, 1.2, 0.7, 2.1, 1.9, 0.2])
W = np.arange(6.0) + 1
CODE = """
np.prod(x)
np.prod(x.reshape(2,3),axis=0).sum()
np.cumprod(x).sum()
np.cumsum(x).sum()
np.logaddexp(x,W).sum()
np.logaddexp.reduce(x)
np.add.reduce(x)
np.multiply.reduce(x)
np.maximum.reduce(x)
np.maximum.accumulate(x).sum()
np.minimum.accumulate(x).sum()
np.diff(x).sum()
np.diff(x,n=2).sum()
np.gradient(x).sum()
np.trapezoid(x)
np.clip(x,0.5,1.5).sum()
np.where(x>1,x,x*x).sum()
np.hypot(x,W).sum()
np.arctan2(x,W).sum()
np.heaviside(x,0.5).sum()
np.sign(x).sum()
np.floor(x).sum()
np.fmod(x,0.5).sum()
np.mod(x,0.5).sum()
(x%0.5).sum()
(x//0.5).sum()
np.power(x,W).sum()
np.float_power(x,2).sum()
np.cbrt(x).sum()
np.exp2(x).sum()
np.log2(x).sum()
np.log10(x).sum()
np.arcsin(x/4).sum()
np.arctanh(x/4).sum()
np.deg2rad(x).sum()
np.nan_to_num(x).sum()
np.sort(x)[1]
np.var(x)
np.std(x,ddof=1)
np.ptp(x)
np.outer(x,x).sum()
np.kron(M,M).sum()
np.tensordot(M,M,axes=1).sum()
np.einsum('ij,jk->ik',M,M).sum()
np.einsum('ij,ij->',M,M)
np.trace(M)
np.diag(x).sum()
np.tril(M).sum()
np.triu(M).sum()
np.roll(x,2)[0]
np.flip(x)[0]
np.tile(x,2).sum()
np.repeat(x,2).sum()
np.concatenate([x,x]).sum()
np.stack([x,x]).sum()
np.vstack([x,x]).sum()
np.hstack([x,x]).sum()
np.split(x,2)[0].sum()
np.pad(x,1).sum()
np.pad(x,1,mode='edge').sum()
np.pad(x,1,mode='reflect').sum()
np.interp(0.5,np.arange(6.),x)
np.interp(x,np.arange(6.),W).sum()
np.convolve(x,x).sum()
np.linalg.norm(x)
np.linalg.norm(M)
np.linalg.norm(M,axis=0).sum()
np.linalg.norm(x,1)
np.linalg.norm(x,np.inf)
np.linalg.det(M)
np.linalg.inv(M).sum()
np.linalg.solve(M,x[:2]).sum()
np.linalg.slogdet(M)[1]
np.linalg.cholesky(M@M.T).sum()
np.linalg.matrix_power(M,3).sum()
np.cross(x[:3],x[3:]).sum()
np.dot(x,x)
np.inner(x,x)
np.vdot(x,x)
M@M@x[:2]@x[:2]
np.nansum(x)
np.nanmean(x)
np.nanmax(x)
np.polyval(x,0.5)
np.histogram(x)[0].sum()*x.sum()
np.searchsorted(W,x)[0]*x[0]
np.take(x,[1,2]).sum()
np.take_along_axis(M,np.array([[0],[1]]),1).sum()
np.choose([0,1],[x[:2],x[2:4]]).sum()
np.select([x>1,x>0.5],[x,x*x],0).sum()
np.piecewise(x,[x>1],[lambda t:t*t,lambda t:t]).sum()
np.vander(x,3).sum()
np.meshgrid(x,x)[0].sum()
np.apply_along_axis(np.sum,0,M).sum()
np.vectorize(lambda t:t*t)(x).sum()
np.fromiter((t*t for t in x),float).sum()
np.array([t*t for t in x]).sum()
np.unwrap(x).sum()
np.ediff1d(x).sum()
np.insert(x,1,0.5).sum()
np.delete(x,1).sum()
np.append(x,1.0).sum()
np.count_nonzero(x>1)*x[0]
np.all(x>0)*x[0]
np.isfinite(x).sum()*x[0]
np.max(x)+np.argmax(x)
np.square(x).sum()
np.reciprocal(x).sum()
np.log1p(x).sum()
np.expm1(x).sum()
np.tanh(x).sum()
np.copysign(x,-1).sum()
np.nextafter(x,2).sum()
np.spacing(x).sum()
np.modf(x)[0].sum()
np.ldexp(x,2).sum()
np.i0(x).sum()
np.blackman(6)@x
np.rot90(M).sum()
np.swapaxes(M,0,1)[0,1]
np.moveaxis(M,0,1)[0,1]
np.expand_dims(x,0).sum()
np.squeeze(M[None]).sum()
np.ravel(M)[1]
np.broadcast_to(x,(2,6)).sum()
np.cov(M).sum()
np.corrcoef(x[:3], x[3:])[0, 1]
np.correlate(x,x)[0]
np.geomspace(x[0],x[1],5).sum()
np.linspace(x[0],x[1],5).sum()
np.logspace(x[0],x[1],5).sum()
np.arange(6)@x
np.real(x+1j*x).sum()
np.angle(x+1j*x).sum()
np.abs(x+1j*x).sum()
np.exp(1j*x).real.sum()
math.erf(x[0])
math.prod(x)
math.comb(5,2)*x[0]
math.fmod(x[0],.2)
math.copysign(x[0],-1)
math.atan2(x[0],x[1])
math.pow(x[0],2.5)
math.log(x[0],3)
sum(x)
max(x)
min(x)
sorted(x)[1]
abs(x[0])
divmod(x[0],.2)[1]
int(x[1])*x[0]
x[0]**3
x[0]**x[1]
sp.erf(x).sum()
sp.gammaln(x).sum()
sp.expit(x).sum()
sp.logsumexp(x)
sp.softmax(x)[0]
sp.log_softmax(x)[0]
sp.ndtr(x).sum()
sp.xlogy(x,x).sum()
"""
CALLED_BACK = {
    "np.linalg.eigh(M + M.T)[0].sum()": {"eigh_factors", "eigvalsh", "eigh_vectors"},
    "np.linalg.qr(M)[1].sum()": {"qr"},
    "np.linalg.pinv(M).sum()": {"pinv"},
    "np.abs(np.fft.fft(x)).sum()": {"fft"},
    "np.sort(np.tile(x, 50))[7]": {"argsort"},
}


def compiled(line):
    """The line as a function, and its value and gradient by machine code, where they are right."""
    f = eval(f"lambda x, M: {line}", {"np": np, "math": math, "sp": sp, "W": W})

    def of_x(x):
        return f(x, x[:4].reshape(2, 2) + 2 * np.eye(2))

    both = lineara.jit(lineara.value_and_grad(of_x), engine="native")
    value, gradient = both(X)
    np.testing.assert_allclose(value, of_x(X), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gradient, lineara.grad(of_x)(X), rtol=1e-10, atol=1e-13)
    return both


def called_back(both):
    """The operations that are called back."""
    told = lineara.explain(both, X).machine_code
    starts = [row.partition("called back: ")[2] for row in told if row.startswith("called back: ")]
    assert not [row for row in told if row.startswith("interpreted")]
    return {row.partition("(")[0] for row in starts}


@laws.of(CODE.split("\n")[1:-1])
def is_code(line):
    assert called_back(compiled(line)) == set()


@laws.of([*CALLED_BACK])
def is_called_back(line):
    assert called_back(compiled(line)) == CALLED_BACK[line]


test_every_law = laws.test()


@pytest.mark.parametrize("engine", ["native", "native exact"])
@pytest.mark.parametrize("last", [2.9, -0.0, -7.5, np.nan, np.inf, 1e30, -9.3e18, 2.0**63])
def test_a_float_that_fits_no_whole_number_is_numpys(engine, last):
    x = np.array([0.3, 1.2, 7.1, last])

    def whole(x):
        return x.astype(int), x[3].astype(int), x[::-3].astype(int)

    with np.errstate(invalid="ignore"):
        expected = whole(x)
        got = lineara.jit(whole, engine=engine)(x)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    f = lineara.jit(whole, engine=engine)
    f(np.ones(4))
    told = lineara.explain(f, np.ones(4)).machine_code
    assert engine != "native" or not [row for row in told if "called back" in row]


def test_products_over_axes_of_each_kind_are_numpys():
    rng = np.random.default_rng(5)
    for shape, axis in (((7,), None), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), (0, 2)), ((0, 3), 0)):
        for x in (rng.normal(size=shape), rng.integers(-3, 4, shape), rng.normal(size=shape) > 0):
            f = lineara.jit(lambda x, axis=axis: np.prod(x, axis=axis) * 1, engine="native")
            got, expected = f(x), np.prod(x, axis=axis) * 1
            assert np.asarray(got).dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-14)
            told = lineara.explain(f, x).machine_code
            assert not [row for row in told if "called back" in row]


def test_an_array_without_axes_is_written_in_code():
    def written(x):
        y = np.array(0.0)
        y[()] = x.sum()
        y[...] += x[0]
        y += 1
        return y, y[()], np.any(y), np.all(y[()] > 3)

    f = lineara.jit(written, engine="native")
    for a, b in zip(f(X), written(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    assert not [row for row in lineara.explain(f, X).machine_code if "called back" in row]


NUMBERS = np.array([0.0, 1.0, 1 + 1e-9, 1 + 1e-6, np.inf, -np.inf, np.nan, 5e-9, -1e300, 1e-7])


def closeness(a, b):
    square = a.reshape(10, 10)
    return (
        np.isclose(a, b), np.isclose(a, b, rtol=0.1), np.isclose(a, b, atol=1e-3, equal_nan=True),
        np.allclose(a, b), np.allclose(a, a[:1], equal_nan=True), np.array_equal(a, a),
        np.array_equal(a, a, equal_nan=True), np.array_equal(a, b), np.array_equal(a, a[:3]),
        np.isclose(a[1], b[2]), np.allclose(a, 1.0, 1e-3), np.isclose(square, b[:10]),
        np.isclose(square.T, b[:10]), np.isclose(np.arange(100), a),
        np.allclose(np.arange(3), np.arange(3)), np.array_equal(np.arange(3), a[:3]),
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["native", "native exact"])
def test_closeness_of_arrays_is_numpys_and_code(engine):
    f, a = lineara.jit(closeness, engine=engine), np.arange(100.0)
    pairs = [tuple(map(np.ravel, np.meshgrid(NUMBERS, NUMBERS))), (a, a), (a, a + 1e-9)]
    with np.errstate(all="ignore"):
        for x, y in pairs:
            for got, expected in zip(f(x, y), closeness(x, y), strict=True):
                np.testing.assert_array_equal(got, expected)
                assert np.asarray(got).dtype == bool
    assert not [row for row in lineara.explain(f, a, a).machine_code if "called back" in row]


def test_a_loop_until_values_are_close_is_code():
    def root(x):
        y, before = x, x + 1
        while not (np.allclose(y, before) and math.isclose(y[0], before[0], rel_tol=1e-14)):
            before = y
            y = y - (y * y - x) / (2 * y)
        return y.sum()

    f, at = lineara.jit(lineara.grad(root), engine="native"), np.array([1.5, 3.0])
    np.testing.assert_allclose(f(at), 0.5 / np.sqrt(at), rtol=1e-12)
    assert not [row for row in lineara.explain(f, at).machine_code if "called back" in row]

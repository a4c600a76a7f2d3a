"""`lineara.numpy` has every name of the Python array API standard, on plain and traced arrays.

Each line is a signature of the standard (version 2024.12) and a call.
"""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import lineara
import lineara.numpy as lnp
from lineara import grad
from lineara.errors import DetachError

UNARY = """abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor isfinite isinf
isnan log log1p log2 log10 negative positive real imag reciprocal round sign signbit sin sinh square
sqrt tan tanh trunc"""
BINARY = """add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal
logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract"""
TABLE = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None) = arange(x[0], x[0] + 3, 1)
asarray(obj, /, *, dtype=None, device=None, copy=None) = asarray(x, dtype=xp.float64, copy=True)
empty(shape, *, dtype=None, device=None) = zeros_like(xp.empty(3, dtype=xp.float64))
empty_like(x, /, *, dtype=None, device=None) = zeros_like(xp.empty_like(x))
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None) = eye(3, 4, k=1)
full(shape, fill_value, *, dtype=None, device=None) = full((2, 2), x[0])
full_like(x, /, fill_value, *, dtype=None, device=None) = full_like(x, 2.0, dtype=xp.float64)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True) = linspace(x[0], 2.0, 5)
meshgrid(*arrays, indexing='xy') = meshgrid(p, p, indexing="ij")
ones(shape, *, dtype=None, device=None) = ones((2, 3), device="cpu")
ones_like(x, /, *, dtype=None, device=None) = ones_like(x, device="cpu")
tril(x, /, *, k=0) = tril(A, k=-1)
triu(x, /, *, k=0) = triu(A)
zeros(shape, *, dtype=None, device=None) = zeros((2, 3), dtype=xp.float32)
zeros_like(x, /, *, dtype=None, device=None) = zeros_like(x)
from_dlpack(x, /, *, device=None, copy=None) = from_dlpack(x)
astype(x, dtype, /, *, copy=True, device=None) = astype(x, xp.complex128, copy=False)
broadcast_arrays(*arrays) = broadcast_arrays(x, A)[0]
broadcast_to(x, /, shape) = broadcast_to(x, (2, 3))
can_cast(from_, to, /) = can_cast(x, xp.float32)
finfo(type, /) = finfo(x.dtype).eps
iinfo(type, /) = iinfo(i.dtype).max
isdtype(dtype, kind) = isdtype(x.dtype, ("real floating", "bool"))
result_type(*arrays_and_dtypes) = result_type(x, xp.float32)
bitwise_and(x1, x2, /) = bitwise_and(i, 1)
bitwise_or(x1, x2, /) = bitwise_or(i, 1)
bitwise_xor(x1, x2, /) = bitwise_xor(i, 1)
bitwise_invert(x, /) = bitwise_invert(i)
bitwise_left_shift(x1, x2, /) = bitwise_left_shift(i, 1)
bitwise_right_shift(x1, x2, /) = bitwise_right_shift(i, 1)
logical_and(x1, x2, /) = logical_and(b, b)
logical_or(x1, x2, /) = logical_or(b, b)
logical_xor(x1, x2, /) = logical_xor(b, b)
logical_not(x, /) = logical_not(b)
clip(x, /, min=None, max=None) = clip(x, min=0.3, max=0.7)
take(x, indices, /, *, axis=None) = take(A, i, axis=1)
take_along_axis(x, indices, /, *, axis=-1) = take_along_axis(x, i, axis=-1)
matmul(x1, x2, /) = matmul(A, x)
matrix_transpose(x, /) = matrix_transpose(A)
tensordot(x1, x2, /, *, axes=2) = tensordot(A, x, axes=1)
vecdot(x1, x2, /, *, axis=-1) = vecdot(A, x, axis=-1)
concat(arrays, /, *, axis=0) = concat((x, x), axis=0)
expand_dims(x, /, *, axis=0) = expand_dims(x, axis=1)
flip(x, /, *, axis=None) = flip(A, axis=1)
moveaxis(x, source, destination, /) = moveaxis(A, 0, 1)
permute_dims(x, /, axes) = permute_dims(A, (1, 0))
repeat(x, repeats, /, *, axis=None) = repeat(A, 2, axis=0)
reshape(x, /, shape, *, copy=None) = reshape(A, (9,), copy=True)
roll(x, /, shift, *, axis=None) = roll(A, 1, axis=1)
squeeze(x, /, axis) = squeeze(x[None], 0)
stack(arrays, /, *, axis=0) = stack((x, x), axis=1)
tile(x, repetitions, /) = tile(x, (2, 1))
unstack(x, /, *, axis=0) = unstack(A, axis=1)[0]
argmax(x, /, *, axis=None, keepdims=False) = argmax(A, axis=0)
argmin(x, /, *, axis=None, keepdims=False) = argmin(A, axis=0)
count_nonzero(x, /, *, axis=None, keepdims=False) = count_nonzero(x, axis=0)
nonzero(x, /) = nonzero(x)[0]
searchsorted(x1, x2, /, *, side='left', sorter=None) = searchsorted(x, 0.5, side="right")
where(condition, x1, x2, /) = where(b, x, 2.0)
unique_all(x, /) = unique_all(x).values
unique_counts(x, /) = unique_counts(x).values
unique_inverse(x, /) = unique_inverse(x).values
unique_values(x, /) = unique_values(x)
argsort(x, /, *, axis=-1, descending=False, stable=True) = argsort(x, axis=-1, stable=True)
sort(x, /, *, axis=-1, descending=False, stable=True) = sort(A, axis=0, stable=True)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False) = cumulative_prod(x)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False) = cumulative_sum(x)
max(x, /, *, axis=None, keepdims=False) = max(A, axis=1, keepdims=True)
mean(x, /, *, axis=None, keepdims=False) = mean(A, axis=1, keepdims=True)
min(x, /, *, axis=None, keepdims=False) = min(A, axis=(0, 1))
prod(x, /, *, axis=None, dtype=None, keepdims=False) = prod(x, dtype=xp.float64)
std(x, /, *, axis=None, correction=0.0, keepdims=False) = std(x, correction=1.0)
sum(x, /, *, axis=None, dtype=None, keepdims=False) = sum(A, axis=0, keepdims=True)
var(x, /, *, axis=None, correction=0.0, keepdims=False) = var(x, correction=1.0)
all(x, /, *, axis=None, keepdims=False) = all(b, axis=0)
any(x, /, *, axis=None, keepdims=False) = any(b, axis=0, keepdims=True)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None) = diff(A, axis=0, n=2)
linalg.cholesky(x, /, *, upper=False) = linalg.cholesky(A @ A.mT + xp.eye(3), upper=True)
linalg.cross(x1, x2, /, *, axis=-1) = linalg.cross(x, A, axis=-1)
linalg.det(x, /) = linalg.det(A)
linalg.diagonal(x, /, *, offset=0) = linalg.diagonal(A, offset=1)
linalg.eigh(x, /) = linalg.eigh(A + A.mT).eigenvalues
linalg.eigvalsh(x, /) = linalg.eigvalsh(A + A.mT)
linalg.inv(x, /) = linalg.inv(A)
linalg.matmul(x1, x2, /) = linalg.matmul(A, A)
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro') = linalg.matrix_norm(A, keepdims=True)
linalg.matrix_power(x, n, /) = linalg.matrix_power(A, 3)
linalg.matrix_rank(x, /, *, rtol=None) = linalg.matrix_rank(A, rtol=1e-9)
linalg.matrix_transpose(x, /) = linalg.matrix_transpose(A)
linalg.outer(x1, x2, /) = linalg.outer(x, x)
linalg.pinv(x, /, *, rtol=None) = linalg.pinv(A[:2], rtol=1e-12)
linalg.qr(x, /, *, mode='reduced') = linalg.qr(A, mode="reduced").R
linalg.slogdet(x, /) = linalg.slogdet(A).logabsdet
linalg.solve(x1, x2, /) = linalg.solve(A, x)
linalg.svd(x, /, *, full_matrices=True) = linalg.svd(A, full_matrices=False).S
linalg.svdvals(x, /) = linalg.svdvals(A)
linalg.tensordot(x1, x2, /, *, axes=2) = linalg.tensordot(A, A, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None) = linalg.trace(A, offset=1)
linalg.vecdot(x1, x2, /, *, axis=-1) = linalg.vecdot(x, A)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2) = linalg.vector_norm(A, axis=1, ord=3)
fft.fft(x, /, *, n=None, axis=-1, norm='backward') = fft.fft(x, n=4)
fft.ifft(x, /, *, n=None, axis=-1, norm='backward') = fft.ifft(x, norm="ortho")
fft.fftn(x, /, *, s=None, axes=None, norm='backward') = fft.fftn(A, axes=(0, 1))
fft.ifftn(x, /, *, s=None, axes=None, norm='backward') = fft.ifftn(A)
fft.rfft(x, /, *, n=None, axis=-1, norm='backward') = fft.rfft(x)
fft.irfft(x, /, *, n=None, axis=-1, norm='backward') = fft.irfft(x, n=5)
fft.rfftn(x, /, *, s=None, axes=None, norm='backward') = fft.rfftn(A)
fft.irfftn(x, /, *, s=None, axes=None, norm='backward') = fft.irfftn(A, axes=(0, 1))
fft.hfft(x, /, *, n=None, axis=-1, norm='backward') = fft.hfft(x)
fft.ihfft(x, /, *, n=None, axis=-1, norm='backward') = fft.ihfft(x)
fft.fftfreq(n, /, *, d=1.0, device=None, dtype=None) = fft.fftfreq(5, d=0.5)
fft.rfftfreq(n, /, *, d=1.0, device=None, dtype=None) = fft.rfftfreq(5, d=0.5)
fft.fftshift(x, /, *, axes=None) = fft.fftshift(x)
fft.ifftshift(x, /, *, axes=None) = fft.ifftshift(x)
"""
CALLS = [tuple(line.split(" = ", 1)) for line in TABLE.strip().splitlines()]
CALLS += [(f"{name}(x, /)", f"{name}(x)") for name in UNARY.split()]
CALLS += [(f"{name}(x1, x2, /)", f"{name}(x, 1.0 - x * x)") for name in BINARY.split()]
NUMPYS_OWN = {  # what NumPy's functions, which are ours here, do not take
    "argsort": {"descending"},
    "sort": {"descending"},
    "fft.fftfreq": {"dtype"},
    "fft.rfftfreq": {"dtype"},
}
CONSTANT = ["can_cast", "finfo", "iinfo", "isdtype", "result_type", "linalg.matrix_rank"]
AT_X = {"acosh(x)": lambda x: x + 1.0}
X = np.array([0.2, 0.6, 0.9])
A = np.array([[2.0, 0.3, 0.1], [0.4, 1.0, -0.2], [0.0, 0.5, 1.7]])


def evaluated(call, xp, x, a):
    x = AT_X.get(call, lambda v: v)(x)
    given = {"xp": xp, "x": x, "A": a, "p": X, "i": np.array([2, 0, 1]), "b": X > 0.4}
    return eval(f"xp.{call}", given)


@pytest.mark.parametrize(("signature", "call"), CALLS, ids=[s.split("(")[0] for s, _ in CALLS])
def test_a_function_of_the_standard(signature, call):
    name = signature.split("(")[0]
    function = lnp
    for part in name.split("."):
        function = getattr(function, part)
    _accepts(function, signature, name)
    want = evaluated(call, np, X, A)
    found = evaluated(call, lnp, X, A)
    assert type(found) is type(want)
    for one, other in zip(*[v if type(v) is tuple else (v,) for v in (found, want)], strict=True):
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        assert np.array_equal(one, other)
    if name in CONSTANT or not _moves(want):
        return

    def f(x, a):
        spaces.append(x.__array_namespace__(api_version="2022.12"))
        found = evaluated(call, spaces[-1], x, a)
        return lnp.sum(lnp.real(found) + 2.0 * lnp.imag(found))

    spaces = []
    g = grad(f, argnums=(0, 1))(X, A)
    assert spaces == [lnp]
    for at, values in enumerate((X, A)):
        for place in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[place] = 1e-6
            up, down = [np.asarray(v) for v in (values + step, values - step)]
            slope = (f(*_at(at, up)) - f(*_at(at, down))) / 2e-6
            assert abs(g[at][place] - slope) < 1e-6, (place, g[at][place], slope)


def _at(place, values):
    return (values, A) if place == 0 else (X, values)


def _moves(value):
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc"


def _accepts(function, signature, name):
    """Each keyword of the standard is one of the function's."""
    try:
        takes = inspect.signature(function).parameters.values()
    except ValueError:  # NumPy keeps it to itself
        return
    if any(p.kind is p.VAR_KEYWORD for p in takes):  # the call above tries some
        return
    named = {p.name for p in takes if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    asked = signature[signature.index("(") + 1 : -1]
    keywords = asked.partition("*, ")[2] or asked.partition("*arrays, ")[2]
    keywords = {k.split("=")[0] for k in keywords.split(", ") if k}
    assert keywords - named <= NUMPYS_OWN.get(name, set())


def test_constants_dtypes_and_what_describes_the_namespace():
    for name in ("e", "inf", "nan", "pi", "newaxis"):
        assert getattr(lnp, name) is getattr(np, name)
    kinds = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    for name in ["bool", *kinds, "float32", "float64", "complex64", "complex128"]:
        assert np.dtype(getattr(lnp, name)) == name
        assert lnp.zeros(1, dtype=getattr(lnp, name)).dtype == name
    info = lnp.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert info.default_dtypes()["real floating"] == lnp.float64
    assert lnp.__array_api_version__ == np.__array_api_version__
    assert "sin" in dir(lnp)
    assert lineara.numpy is lnp
    with pytest.raises(AttributeError, match=r"'lineara.numpy' has no attribute '__nothing__'"):
        _ = lnp.__nothing__


def test_what_a_traced_array_answers():
    def f(x):
        n = x[0]
        for v in (x, n):
            assert v.device == "cpu"
            assert v.to_device("cpu", stream=None) is v
            with pytest.raises(ValueError, match="device 'gpu' is not there: traced arrays live"):
                v.to_device("gpu")
            with pytest.raises(ValueError, match="not supported"):
                v.__array_namespace__(api_version="1999.01")
            with pytest.raises(ValueError, match="matrix transpose with ndim < 2"):
                _ = n.mT
        assert n[()] is n
        assert n[...] is n
        assert n[None, None].shape == (1, 1)
        assert n[n > 1.0].shape == (0,)
        with pytest.raises(IndexError, match="invalid index to scalar variable"):  # as NumPy's
            _ = n[0]
        with pytest.raises(TypeError, match="not iterable"):
            iter(n)
        with pytest.raises(TypeError):
            _ = 1.0 in n
        return lnp.sum(n[n < 1.0] ** 2) + lnp.sum(n[None] * x.to_device("cpu")[1])

    assert np.allclose(grad(f)(X), [1.0, 0.2, 0.0])


def test_a_traced_array_gives_its_memory_to_nobody():
    for name in ("__dlpack__", "__dlpack_device__"):
        for part in (..., 0):
            with pytest.raises(DetachError, match="lose its derivative"):
                grad(lambda x, name=name, part=part: getattr(x[part], name)())(X)


def test_code_written_for_the_standard_is_differentiated_unseen():
    """What we never copied: a module of a library that asks the array for its functions."""
    space = {"__name__": "scipy.unseen"}
    exec(
        "def soft(x, axis):\n"
        "    xp = x.__array_namespace__()\n"
        "    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))\n"
        "    return e / xp.sum(e, axis=axis, keepdims=True)",
        space,
    )
    soft = space["soft"]
    g = grad(lambda a: np.sum(soft(a, 1) ** 2))(A)
    s = soft(A, 1)
    assert np.allclose(g, 2 * s * (s - np.sum(s * s, axis=1, keepdims=True)))


SCIPY = """
stats.zscore(x)[:2]  stats.skew(x)  stats.kurtosis(x)  stats.moment(x, 3)  stats.gmean(x)
stats.hmean(x)  stats.pmean(x, 3.0)  stats.sem(x)  stats.kstat(x, 3)  stats.tvar(x)
stats.circmean(x)  stats.circstd(x)  stats.trim_mean(x, 0.2)  stats.gstd(x)  stats.iqr(x)
stats.boxcox_llf(0.5, x)  stats.describe(x).variance  special.log_softmax(x)[:2]
special.logsumexp(x)  signal.fftconvolve(x, x)  np.abs(signal.hilbert(x))  signal.oaconvolve(x, x)
signal.resample(x, 4)  np.abs(signal.freqz(x, worN=5)[1])  fft.fht(x, 0.1, 0.5)
spatial.transform.Rotation.from_rotvec(x[:3]).as_matrix()
"""


@pytest.mark.slow("imports much of SciPy anew: 3 s")
def test_functions_of_scipy_that_support_the_standard():
    """With its switch SciPy asks the array for its functions; no rule of ours is needed."""
    calls = [c for line in SCIPY.strip().splitlines() for c in line.split("  ")]
    program = f"""
import numpy as np
from scipy import fft, signal, spatial, special, stats
import scipy.spatial.transform
from lineara import grad
x0 = np.array([0.3, 1.2, 2.1, 0.7, 1.6, 2.9])
for call in {calls}:
    f = eval("lambda x: np.sum((" + call + ") ** 2)")
    g = grad(f)(x0)
    slope = [(f(x0 + d) - f(x0 - d)) / 2e-6 for d in 1e-6 * np.eye(6)]
    assert np.allclose(g, slope, rtol=1e-5, atol=1e-6), (call, g, slope)
    print(call)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        timeout=300,
        check=False,
    )
    assert done.stdout.splitlines() == calls, done.stderr

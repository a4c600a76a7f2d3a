"""Values lie in memory as NumPy's do: a reshape is a view, and a copy, exactly where NumPy's is.

A program writes through `reshape(-1)` of every transposition of a result.  Where that is a view the
result shows the write, so the plain program tells how NumPy's result lies in memory, and whether it
shares its memory with an argument.
"""

import copy
import itertools
import warnings
import zlib

import forms
import linalg_forms
import numpy as np
import pytest

import lineara
from lineara.errors import LinearaError, StagingError


def fortran(a):
    return a.copy(order="F")


def gaps(a):
    """Every second element of a larger array, along each axis."""
    view = np.full(tuple(2 * n for n in a.shape), 9.0, a.dtype)[(slice(None, None, 2),) * a.ndim]
    view[...] = a
    return view


def backwards(a):
    return np.flip(np.flip(a).copy())


def rotated(a):
    """The first axis is the innermost, and the others are in order."""
    axes = (*range(1, a.ndim), 0)
    return a.transpose(axes).copy().transpose(np.argsort(axes))


def fortran_part(a):
    """A part of a larger array in Fortran order."""
    view = np.full((*a.shape[:-1], a.shape[-1] + 1), 9.0, a.dtype, order="F")[..., :-1]
    view[...] = a
    return view


LAYOUTS = {f.__name__: f for f in (np.copy, fortran, rotated, gaps, backwards)}
LAYOUTS["fortran_part"] = fortran_part

MORE = """
copy.copy(A); copy.deepcopy(A); A.copy(); np.ascontiguousarray(A); np.asfortranarray(A)
A.astype(complex); np.ascontiguousarray(A.T); np.full_like(A, s); np.full_like(A.T, s, order="C")
np.array([A.T, A.T]); np.array([list(A), list(P)]); np.array([A, P], order="F")
np.concatenate([A.T, P.T]); np.stack([A.T, P.T]); A + P.T.copy().T
np.zeros((3, 4), order="F") + A; np.add(A, P, order="F"); np.multiply(A, 2, order="C")
np.broadcast_to(x, (2, 3)) * 1; np.broadcast_to(x[:, None], (3, 2)) * s; np.diagonal(T) * 1
np.linalg.diagonal(T) * 1; np.einsum("ijk->kji", T) * 1; A.imag + A; (A + 1j * P).real * 1
T[:, :, [0, 1]]; T[..., rows]; np.take(T, [0, 1], axis=1); np.compress([1, 0, 1], T, axis=1)
np.select([A > 0], [A.T.copy().T]); np.flip(A, 0) * 1; np.rot90(A) * 1
np.linspace(x, y, 4, axis=1); np.moveaxis(T, 0, -1) * 1; np.quantile(T, 0.3, axis=0)
np.percentile(T, [20, 50], axis=1); np.split(A, 2, axis=1); np.unstack(T, axis=1)
np.block(A); np.block([A]); np.roll(A, 0); np.roll(A, (), ()); np.fft.ifftshift(A, axes=())
np.concatenate([A]); np.concatenate([x], axis=None); np.tile(A, 1); np.repeat(A, 1, axis=0)
np.pad(A, 0); np.delete(A, [], axis=0); np.diff(A, n=0); np.flip(A, ()); np.rot90(A, 4)
np.resize(A, A.shape); np.triu(A, -9); np.clip(A, None, None); np.sum(A, axis=()); np.vstack([A])
np.multiply.accumulate(T, axis=1); np.modf(A); np.apply_along_axis(np.sort, 1, T)
np.array(A, copy=None, order="F"); np.asarray(A, order="C"); np.require(A, None, "C")
np.require(A.T, None, ["F", "W"]); np.require(A, "f4", "F"); np.require(T[::2], None, "A")
np.vectorize(lambda a, b: a * b)(A, P); np.add.reduceat(T, [0, 1], axis=1); np.positive(A)
"""
LINES = [
    *forms.LINES,
    *[line.strip() for line in MORE.replace("\n", ";").split(";") if line.strip()],
]
for order in "CFAK":
    for name in ("A", "T", "A.T", "A[:, ::2]", "T.transpose(1, 0, 2)", "A[::-1]"):
        calls = [f"{name}.{f}({order!r})" for f in ("ravel", "flatten", "copy")]
        calls += [f"np.{f}({name}, order={order!r})" for f in ("array", "asarray", "copy")]
        calls += [f"{name}.astype(np.float32, {order!r})", f"np.ones_like({name}, order={order!r})"]
        calls += [f"{name}.reshape(2, -1, order={order!r})"] * (order != "K")
        LINES += calls
WRONG_IN_NUMPY = ("np.arctan2.reduce(P)",)  # it depends on the layout, on some processors


def parts(y):
    return [p for q in y for p in parts(q)] if isinstance(y, tuple | list) else [y]


def written(y):
    """The array after a write through each way to see it as one row."""
    for k, axes in enumerate(itertools.permutations(range(y.ndim))):
        row = y.transpose(axes).reshape(-1)
        row += 10.0 ** (k + 1)
    return y


def program(line):
    """The results of a line after the writes, and the arguments, which may show them."""
    names = ", ".join(forms.POINT)
    function = eval(f"lambda {names}: {line}", vars(linalg_forms) | vars(forms) | {"copy": copy})

    def run(*args):
        found = [p for p in parts(function(*args)) if np.ndim(p) and p.dtype.kind in "fc"]
        shown = []
        for p in found:
            try:
                shown.append(written(p))
            except ValueError:  # a view that is not to be written
                shown.append(written(p * 1.0))
        return [*shown, *args]

    return run


def arguments(layout):
    point = forms.POINT.values()
    return [layout(np.asarray(v)) if isinstance(v, np.ndarray) else v for v in point]


def check(line, layout, value):
    """What `value` of the program is equals what the program is; True where it was refused."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plain = program(line)(*arguments(layout))
        try:
            ours = value(program(line), *arguments(layout))
        except LinearaError:
            return True
    assert len(ours) == len(plain), line
    for a, b in zip(ours, plain, strict=True):
        assert np.allclose(a, b, rtol=1e-8, atol=1e-8, equal_nan=True), (line, a, b)
    return False


def drawn(line, k):
    """Another layout for each line."""
    names = list(LAYOUTS)
    return LAYOUTS[names[(zlib.crc32(line.encode()) + k) % len(names)]]


def eager(f, *args):
    return lineara.linearize(f, *args)[0]


def test_results_lie_in_memory_as_those_of_numpy(share):
    lines = share([line for line in LINES if line not in WRONG_IN_NUMPY])
    refused = sum([check(line, drawn(line, 0), eager) for line in lines])
    assert refused < len(lines) / 12


def traced(f, *args):
    return lineara.trace(f, *args)(*args)


def lanes(f, *args):
    """The first of two lanes, each of which lies in memory as the argument does."""
    axes = tuple([0 if isinstance(a, np.ndarray) else None for a in args])
    rows = [a if axis is None else two(a) for a, axis in zip(args, axes, strict=True)]
    return [np.asarray(y)[0] for y in lineara.vmap(f, axes)(*rows)]


def two(a):
    """The array twice, along a new first axis."""
    ends = [(n - 1) * s // a.itemsize for n, s in zip(a.shape, a.strides, strict=True)]
    first, reach = -sum(e for e in ends if e < 0), 1 + sum(map(abs, ends))
    memory = np.zeros(2 * reach, a.dtype)[first:]
    strides = (reach * a.itemsize, *a.strides)
    both = np.lib.stride_tricks.as_strided(memory, (2, *a.shape), strides)
    both[...] = a
    return both


ELSEWHERE = {  # what is other in programs and in lanes, and has no layout
    "np.histogram(A, bins=[-1.0, 0.2, 3.0])",  # counts that are floats
    "np.max(np.zeros((0, 3)), axis=0, initial=s)",
    "x[True]",
}


@pytest.mark.parametrize("value", [traced, lanes])
def test_programs_and_lanes_know_how_numpy_lays_values_out(value, share):
    lines = [line for line in LINES if zlib.crc32(line.encode()) // 8 % 3 == 0]
    lines = [line for line in lines if line not in ELSEWHERE and line not in WRONG_IN_NUMPY]
    lines = share([line for line in lines if value is not lanes or "(s" not in line])
    refused = sum([check(line, drawn(line, 1), lambda *a: unnamed(value, *a)) for line in lines])
    assert refused < len(lines) / 6


def unnamed(value, f, *args):
    """The values of the results; the last are the arguments, numbers among them."""
    return value(lambda *a: [p if isinstance(p, float) else p * 1.0 for p in f(*a)], *args)


CALLS = """
np.stack([x, 2 * x], axis=-1); np.stack([x, x.T.copy().T], axis=1); np.take(x, [1, 0, 1], axis=1)
np.sort(x, axis=0); np.sort(x, axis=1); np.partition(x, 1, axis=1); np.insert(x, 1, x[:, 0], axis=1)
np.delete(x, 0, axis=1); np.select([x > 0], [x.T.copy().T], 2 * x); np.vander(x[0], 3); x.copy("K")
np.linalg.qr(x)[1]; np.linalg.svd(x)[0] ** 2; np.linalg.svd(x, full_matrices=False)[2] ** 2
np.median(np.stack([x, x * x]), axis=2); np.array([x.T, x.T * x.T])
np.broadcast_to(x[0], (2, 3)) * 1
np.piecewise(x, [x > 0], [np.sin, np.exp]); np.concatenate([x, x * x], axis=1); x * x.T.copy().T; +x
np.repeat(x, [1, 2, 1], axis=1); np.gradient(x, axis=0); np.cumsum(x, axis=1)
x.astype(complex).real * 1
"""
VIEWS = """
y.ravel(); y.reshape(-1); y.T.ravel(); y.T.reshape(-1); y.swapaxes(0, -1).reshape(-1); y.ravel("K")
y[1:].reshape(-1); y[:, ::2].reshape(-1); y[::-1].reshape(-1); y.reshape(-1, order="F")
y.ravel("A")
np.asfortranarray(y); np.ascontiguousarray(y); y.T; np.moveaxis(y, 0, -1).reshape(1, -1)[0]
"""
WRITES = ("r *= 10.0", "r[0] = r[1] * r[0]", "r[...] = r * r", "r[1:] += r[:1] * x[0, 0]")
CALLS, VIEWS = (
    [c.strip() for c in text.replace("\n", ";").split(";") if c.strip()] for text in (CALLS, VIEWS)
)


@pytest.mark.parametrize("k", range(12))
def test_a_write_through_a_view_of_a_result_counts_everywhere(k):
    rng = np.random.default_rng(k)
    for call in rng.choice(CALLS, 6, replace=False):
        at, write = rng.choice(VIEWS), rng.choice(WRITES)
        layout = list(LAYOUTS.values())[rng.integers(len(LAYOUTS))]
        scope = {"np": np}
        text = f"def f(x):\n    y = {call}\n    r = {at}\n    {write}\n"
        text += "    return (y * y).sum() + x[1, 1]"
        exec(text, scope)
        f, a = scope["f"], rng.normal(size=(3, 3))
        plain = f(layout(a))
        slopes = differences(lambda v, f=f, layout=layout: f(layout(v)), a)
        for value, g in (
            lineara.value_and_grad(f)(layout(a)),
            lineara.value_and_grad(f, policy="store_all")(layout(a)),
            [v[0] for v in lineara.vmap(lineara.value_and_grad(f))(two(layout(a)))],
        ):
            np.testing.assert_allclose(value, plain, rtol=1e-10, err_msg=text)
            np.testing.assert_allclose(g, slopes, rtol=1e-5, atol=1e-5, err_msg=text)


def differences(f, a, h=1e-6):
    found = np.zeros(a.shape)
    for at in np.ndindex(a.shape):
        step = np.zeros(a.shape)
        step[at] = h
        found[at] = (f(a + step) - f(a - step)) / (2 * h)
    return found


# --- inner definitions: branches, loops, functions, recursions ------------------------------------


@lineara.function
def tripled(act, a):
    return lineara.cond(np.sum(a * a) > 1e6, lambda a: a * 1, lambda a: tripled(act, act(a * 3)), a)


FORMS = {
    "branch": lambda act, a: lineara.cond(a[0, 0] > 9, lambda a: a * 1, act, a),
    "captured": lambda act, a: lineara.cond(a[0, 0] > 9, lambda: a * 1, lambda: act(a * 1)),
    "switch": lambda act, a: lineara.switch(1, [lambda a: a.T * 1, act], a),
    "sides": lambda act, a: lineara.cond(a[0, 0] > 9, lambda a: a.T * 1, lambda a: a * 1, a),
    "fori_loop": lambda act, a: lineara.fori_loop(0, 2, lambda i, a: act(a), a),
    "turning": lambda act, a: lineara.fori_loop(0, 2, lambda i, a: act(a).T * 1, a),
    "while_loop": lambda act, a: lineara.while_loop(lambda a: a[0, 0] < 5, lambda a: act(a) + 9, a),
    "carry": lambda act, a: lineara.scan(lambda c, x: (act(c) * x, x), a, np.ones(2))[0],
    "rows": lambda act, a: lineara.scan(lambda c, x: (c, act(x)), 0.0, np.stack([a, a]))[1],
    "function": lambda act, a: lineara.function(act)(a),
    "recursion": tripled,
    "gradient": lambda act, a: lineara.grad(
        lambda b: np.sum(lineara.while_loop(lambda b: b[0, 0] < 5, lambda b: act(b) + 9, b) ** 2)
    )(a),
}
ACTS = ("r *= 10.0; y = y * 1", "r *= 10.0", "y = y * 2; r = y.T.ravel(); r += 1", "y = r * 1")


def of_form(form, at, act):
    """A program that does something to an array inside of a form, and to what comes of it."""
    scope = {"np": np}
    lines = act.replace("; ", "\n    ")
    text = f"def inside(y):\n    y = +y\n    r = {at}\n    {lines}\n    return y.reshape(3, 3)\n"
    exec(text, scope)

    def f(a):
        y = form(scope["inside"], a)
        r = y.reshape(-1)
        r *= 3.0
        return y

    return f


WAYS = {
    "trace": traced,
    "lanes": lambda f, a: lineara.vmap(f)(two(a))[0],
    "policy": lambda f, a: lineara.vjp(f, a, policy="store_all")[0],
}


@pytest.mark.parametrize("value", WAYS.values(), ids=WAYS)
def test_inner_definitions_know_how_their_arrays_lie(value):
    rng, refused, runs = np.random.default_rng(3), 0, 0
    for name, form in FORMS.items():
        for act in ACTS:
            at = str(
                rng.choice([v for v in VIEWS if "..." not in v and "[" not in v and v != "y.T"])
            )
            layout = list(LAYOUTS.values())[rng.integers(len(LAYOUTS))]
            f, a = of_form(form, at, act), np.arange(1.0, 10.0).reshape(3, 3) / 8
            plain = f(layout(a))
            runs += 1
            try:
                ours = value(f, layout(a))
            except LinearaError:
                refused += 1
                continue
            np.testing.assert_allclose(ours, plain, rtol=1e-10, err_msg=f"{name} {at} {act}")
    assert refused < runs / 3


def test_what_lies_in_several_ways_is_not_written_reshaped_nor_read_as_it_lies():
    def turned(a):
        return lineara.fori_loop(0, 3, lambda i, a: a.T * 2, a)

    def write(a):
        y = turned(a)
        y.reshape(-1)[:] = 0.0
        return y

    a = np.asfortranarray(np.eye(2))
    with pytest.raises(StagingError) as e:
        lineara.trace(write, a)
    assert e.value.message == (
        "an array was reshaped and written, and what comes of that depends on how it lies in "
        "memory, where branches or the rounds of a loop give it in different ways; take a copy, "
        "a.copy(), of what they give"
    )
    with pytest.raises(StagingError, match="an array was read in the order of its memory"):
        lineara.trace(lambda a: turned(a).ravel("K"), a)
    p = lineara.trace(lambda a: turned(a).copy().ravel("K"), a)
    assert p(a).tolist() == [8.0, 0.0, 0.0, 8.0]
    with pytest.raises(StagingError, match="it was traced for the strides"):
        lineara.trace(lambda a: a.ravel("K"), a)(np.eye(2))

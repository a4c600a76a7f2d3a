"""Sums of products: in registers, from copies in another order, or by the BLAS for each place."""

import numpy as np
import pytest

import lineara
from lineara.engines.native import Native

pytest.importorskip("llvmlite")

rng = np.random.default_rng(23)
SIZES = {"n": 50, "k": 6, "i": 5, "j": 9, "p": 40, "q": 41, "r": 44, "s": 70}
PATTERNS = [
    "kij,nkj->nki",  # an operand that is read for each n is copied, its rows along i
    "nki,nkj->kij",  # rows of one vector, added for each n
    "kij,nki->nkj",
    "ij,ni->nj",
    "nij,nj->in",  # the rows of the result lie across in both operands
    "ki,kj->kij",  # nothing is summed
    "pq,qr->pr",  # the BLAS'
    "kpq,kqr->krp",  # the BLAS' for each k, transposed
    "pqk,rqk->pkr",  # the BLAS' for each k, of places that do not lie beside each other
    "kpq,kqr->prk",  # the rows of a result do not lie beside each other
    "nj,nj->n",
    "iij,ij->i",  # a diagonal
    "ni,s->i",  # an axis that one operand has, and that is summed
]


def sizes(letters: str) -> tuple[int, ...]:
    return tuple([SIZES[c] for c in letters])


PAIRS = [
    tuple([rng.normal(size=sizes(x)) for x in p.partition("->")[0].split(",")]) for p in PATTERNS
]


def test_sums_of_products_are_within_their_rounding() -> None:
    def every(pairs: list) -> list:
        return [np.einsum(p, a, b) for p, (a, b) in zip(PATTERNS, pairs, strict=True)]

    compiled = lineara.jit(every, engine="native")
    for p, (a, b), y in zip(PATTERNS, PAIRS, compiled(PAIRS), strict=True):
        inputs, _, output = p.partition("->")
        terms = np.prod([SIZES[c] for c in {*inputs} - {",", *output}], initial=1.0)
        bound = (terms + 2) * np.finfo(float).eps * np.einsum(p, np.abs(a), np.abs(b))
        assert np.all(np.abs(y - np.einsum(p, a, b)) <= bound), p


@pytest.mark.parametrize("kinds", ["dd", "ff", "DD", "dD", "fd", "ll", "ld"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 3), (3, 7), (40, 40), (1, 30)])
def test_windows_of_a_vector_times_another_are_sums_of_code(kinds, n, m) -> None:
    a, v = [rng.integers(-9, 9, k).astype(c) for k, c in zip((2 * n, m), kinds, strict=True)]
    if kinds[0] == "d":
        a[0] = np.inf  # where one vector ends, the other adds nothing

    def windows(a, v):
        of = [(f, mode) for f in (np.convolve, np.correlate) for mode in ("full", "same", "valid")]
        return [f(a[::2], v, mode) for f, mode in of]

    staged = lineara.jit(windows).program(a, v)
    code = Native().code(staged.program, staged.name)
    assert not isinstance(code, str)
    assert not code.sites
    with np.errstate(invalid="ignore"):
        for y, expected in zip(lineara.jit(windows)(a, v), windows(a, v), strict=True):
            assert y.dtype == expected.dtype
            np.testing.assert_array_equal(y, expected)


def test_large_products_for_each_place_are_the_blas() -> None:
    a, b = rng.normal(size=(6, 40, 41)), rng.normal(size=(6, 41, 44))
    staged = lineara.jit(lambda a, b: a @ b).program(a, b)
    code = Native().code(staged.program, staged.name)
    assert not isinstance(code, str)
    assert code.text.count('call void @"blas.dgemm"') == 1


def test_threads_of_the_blas_are_given_back() -> None:
    a = np.zeros((200, 200))
    staged = lineara.jit(lambda a: a @ a).program(a)
    code = Native().code(staged.program, staged.name)
    assert not isinstance(code, str)
    calls = [line for line in code.text.splitlines() if line.startswith("  call void @")]
    names = [line.partition('"')[2].partition('"')[0] for line in calls]
    if "threads.state" in code.addresses:
        at = names.index("blas.dgemm")
        assert names[at - 1 : at + 2 : 2] == ["lineara.alone.enter", "lineara.alone.leave"]


def test_products_of_what_is_strided_or_of_one_or_three_have_numpys_values() -> None:
    a, b, c = rng.normal(size=(80, 82)), rng.normal(size=(41, 44)), rng.normal(size=(44, 5))

    def products(a, b, c):
        return [
            a[:40, ::2] @ b,
            a[::2, :41] @ b[:, ::-1],
            a[:41, :80:2].T @ b,
            np.broadcast_to(a[0, :41], (40, 41)) @ b,
            np.einsum("ij->j", a),
            np.einsum("ij,jk,kl->il", a[:, 41:], b, c),
        ]

    for y, expected in zip(
        lineara.jit(products, engine="native")(a, b, c), products(a, b, c), strict=True
    ):
        np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-10)


def test_extrema_of_narrow_columns_have_numpys_values() -> None:
    x = rng.normal(size=(40, 5))
    x[3, 1], x[:, 2], x[7, 2], x[8, 3], x[:, 4] = np.nan, 0.0, -0.0, np.inf, -np.inf
    ends = lineara.jit(lambda x: (np.max(x, axis=0), np.min(x, axis=0)), engine="native")
    for y, true in zip(ends(x), (np.max(x, axis=0), np.min(x, axis=0)), strict=True):
        np.testing.assert_array_equal(y, true)

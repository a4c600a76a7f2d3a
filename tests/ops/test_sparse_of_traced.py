"""Sparse matrices made of traced arrays: blocks, triangles, eigenvalues, systems."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

import lineara
from lineara.ops.scipy import sparse_as_dense

rng = np.random.default_rng(5)
C = rng.normal(size=(3, 3)) + 3 * np.eye(3)
A = rng.normal(size=(4, 3))
S = np.diag(np.arange(1.0, 7.0)) + 0.2 * np.kron(C + C.T, np.ones((2, 2)))
W = rng.uniform(0.5, 1.5, (9, 9))
B = np.array([0.4, -0.2, 0.9])


def project(v):
    """A number that depends on every part of a result."""
    if isinstance(v, tuple):
        return sum(project(part) for part in v)
    v = v.toarray() if hasattr(v, "toarray") else v
    v = v.reshape(-1)
    return (v * W.ravel()[: v.size]).sum().real


def without_phase(found):
    w, v = found
    return w, abs(v)


def together(s):
    u, _, vh = linalg.svds(s, k=2)
    return u @ vh


FORMS: dict[str, Any] = {
    "kron on the right": (lambda c: sparse.kron(sparse.eye(2), c), C),
    "kron on the left": (lambda c: sparse.kron(c, np.ones((1, 2))), C),
    "block_diag": (lambda c: sparse.block_diag([c, A]), C),
    "bmat": (lambda c: sparse.bmat([[c, None], [None, sparse.eye(2)]]), C),
    "vstack": (lambda c: sparse.vstack([c, sparse.csr_matrix(A)]), C),
    "triu": (lambda c: sparse.triu(sparse.csr_matrix(c), k=1), C),
    "tril": (lambda c: sparse.tril(c), C),
    "a lower system": (
        lambda c: linalg.spsolve_triangular(sparse.csr_array(np.tril(c)), B),
        C,
    ),
    "an upper system": (
        lambda c: linalg.spsolve_triangular(
            sparse.csc_array(np.triu(c)), B, lower=False, unit_diagonal=True
        ),
        C,
    ),
    "eigsh": (lambda s: without_phase(linalg.eigsh(sparse.csr_array(s + s.T), k=2)), S),
    "eigsh near": (lambda s: linalg.eigsh(s + s.T, k=3, sigma=5.0)[0], S),
    "eigsh without vectors": (
        lambda s: linalg.eigsh(s + s.T, 2, which="SA", return_eigenvectors=False),
        S,
    ),
    "eigsh's vectors": (lambda s: np.outer(*[linalg.eigsh(s + s.T, k=1)[1][:, 0]] * 2), S),
    "eigs": (lambda s: without_phase(linalg.eigs(sparse.csc_array(s), k=1)), S),
    "svds": (lambda s: linalg.svds(s, k=2)[1], S),
    "svds without vectors": (lambda s: linalg.svds(s, 3, return_singular_vectors=False), S),
    "svds together": (together, S),
    "inv": (lambda c: linalg.inv(sparse.csc_array(c)), C),
    "expm": (lambda c: linalg.expm(sparse.csc_array(c) * 0.3), C),
    "matrix_power": (lambda c: linalg.matrix_power(sparse.csc_array(c), 3), C),
    "lsqr": (lambda a: linalg.lsqr(sparse.csr_array(a), W[0, :4], atol=1e-14, btol=1e-14)[0], A),
    "lsqr damped": (lambda a: linalg.lsqr(a, a[:, 0] ** 2, 0.3, 1e-14, 1e-14)[0], A),
    "lsmr damped": (lambda a: linalg.lsmr(a, a[:, 0] ** 2, 0.3, atol=1e-14, btol=1e-14)[0], A),
}


def slope(f, x, v, h=1e-4):
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / 12 / h


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("form", FORMS)
def test_value_gradient_and_second_derivative(form):
    act, x = FORMS[form]

    def f(x):
        return project(act(x))

    v = np.random.default_rng(2).uniform(-1, 1, x.shape)
    value, gradient = lineara.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-11)
    assert np.sum(gradient * v) == pytest.approx(slope(f, x, v), rel=1e-7, abs=1e-8)
    assert lineara.jvp(f, (x,), (v,))[1] == pytest.approx(np.sum(gradient * v), rel=1e-10)
    second = slope(lineara.grad(f), x, v)
    np.testing.assert_allclose(lineara.hvp(f)(x, v), second, rtol=1e-5, atol=1e-6)


def test_a_large_matrix_is_refused_with_the_limit():
    large = sparse.eye(5000, format="csc")
    with pytest.raises(lineara.errors.NoRuleError) as caught:
        lineara.grad(lambda s: linalg.eigsh(s * large, k=1)[0][0])(2.0)
    assert caught.value.message == (
        "scipy.sparse.linalg.eigsh: of traced values it is differentiated as that of a dense "
        "matrix, of up to 4000 rows and columns; this one has the shape (5000, 5000)"
    )


def test_a_program_does_not_iterate():
    with pytest.raises(lineara.errors.LinearaError) as caught:
        lineara.grad(lambda s: linalg.svds(s, k=1)[1][0], policy="store_all")(S)
    assert caught.value.message == (
        "svds: it iterates on numbers, which are not known while a program is written; "
        "numpy.linalg has rules for A.toarray()"
    )


@pytest.mark.parametrize("name", ["lsqr", "lsmr", "cg"])
def test_what_else_an_iteration_says_is_what_scipy_says(name):
    solve, said = getattr(linalg, name), []
    a, b = (S, W[0, :6]) if name == "cg" else (A, W[0, :4])

    def f(b):
        x, *rest = solve(a, b)
        said.append(rest)
        return x

    lineara.linearize(f, b)
    f(b)
    traced, plain = said
    assert len(traced) == len(plain)
    for ours, theirs in zip(traced, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", ["eigsh", "eigs", "svds"])
def test_vectors_have_the_signs_and_phases_of_scipys(name):
    z = S + 1j * np.roll(S, 1, axis=0)
    z = z + z.conj().T if name == "eigsh" else z
    start = W[0, :6] + 1j * W[1, :6]

    def f(z):
        found = getattr(linalg, name)(z, k=2, v0=start)
        return found[::2] if name == "svds" else found[1:]

    for ours, theirs in zip(lineara.linearize(f, z)[0], f(z), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_vectors_of_an_eigenvalue_that_is_double_are_of_length_1():
    a = np.diag([5.0, 1.0, 2.0, 5.0, 3.0, 4.0])
    (_, v), _ = lineara.linearize(lambda a: linalg.eigsh(a, k=2, v0=W[0, :6]), a)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1.0, rtol=1e-12)
    # not along ours
    assert sparse_as_dense._turn(np.eye(2), np.eye(2)[::-1]).tolist() == [1.0, 1.0]

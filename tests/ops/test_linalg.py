"""Linear algebra beside the table of forms.

Sizes that are factored once, equal eigenvalues, gauges, matrices that are singular or empty, memory
layouts, and what is refused.
"""

import contextlib
import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from test_numpy_forms import difference, random_like

import lineara
from lineara import grad, jvp, linearize
from lineara.engines import run
from lineara.errors import NoRuleError
from lineara.facts.primitive import op, registry
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.ops import lapack
from lineara.ops.factorizations import gauge
from lineara.tape.plans import CALLS

rng = np.random.default_rng(5)


def square(n, *lead, complex=False):
    real = rng.normal(size=(*lead, n, n))
    return real + 1j * rng.normal(size=real.shape) if complex else real


def gram(m):
    return m @ np.conj(np.swapaxes(m, -1, -2))


def symmetric(values, seed=0):
    """A symmetric matrix with these eigenvalues."""
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return (q * values) @ q.T


def agrees(f, *point, within=1e-6):
    """Both modes are the derivative of f."""
    y, L = linearize(f, *point)
    direction = [
        random_like(p, i) + (1j * random_like(p, 50 + i) if np.iscomplexobj(p) else 0)
        for i, p in enumerate(point)
    ]
    ahead = L @ (direction[0] if len(point) == 1 else tuple(direction))
    found = difference(f, point, direction)
    np.testing.assert_allclose(ahead, found, rtol=within, atol=within * np.max(np.abs(found)))
    y_bar = random_like(y, 9) + (1j * random_like(y, 59) if np.iscomplexobj(y) else 0)
    back = y_bar @ L
    back = (back,) if len(point) == 1 else back
    total = sum(np.sum(np.conj(g) * d).real for g, d in zip(back, direction, strict=True))
    assert total == pytest.approx(np.sum(np.conj(y_bar) * ahead).real, rel=1e-9)


@pytest.fixture(autouse=True)
def factors_of_small_matrices(monkeypatch):
    """Factors are kept from 32 on, so that small matrices show what is done with them."""
    monkeypatch.setattr(lapack, "LARGE", 32)


LARGE = {
    "solve": lambda a: np.linalg.solve(a, np.ones(40)),
    "solve b": lambda a: np.linalg.solve(np.eye(40) + 0.1 * a, a),
    "det": lambda a: np.linalg.det(a / 6),
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "sign": lambda a: np.linalg.slogdet(a)[0] * np.sum(a),
    "inv": np.linalg.inv,
    "cholesky": lambda a: np.linalg.cholesky(a @ np.conj(a.T) + np.eye(40)),
    "qr": lambda a: np.linalg.qr(a)[0],
    "spectrum": lambda a: np.linalg.eigvalsh(a),
    "values": lambda a: np.linalg.svdvals(a),
}


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", LARGE)
def test_matrices_that_are_factored_once(name, complex):
    agrees(LARGE[name], square(40, complex=complex) + 4 * np.eye(40))


@pytest.mark.parametrize("dtype", "fdFD")
def test_factors_serve_every_routine(dtype):
    a = (square(33, 2, complex=dtype in "FD") + 4 * np.eye(33)).astype(dtype)
    f = lapack.lu(a)
    b = np.ascontiguousarray(a[:, :, ::3])
    error = 100 * np.finfo(dtype).eps * np.max(np.linalg.cond(a))
    within = {"rtol": error, "atol": error}
    h = np.conj(a.swapaxes(-1, -2))
    np.testing.assert_allclose(a @ lapack.lu_solve(f, b, False), b, **within)
    np.testing.assert_allclose(h @ lapack.lu_solve(f, b, True), b, **within)
    np.testing.assert_allclose(a @ lapack.lu_inverse(f), np.eye(33) + 0 * a, **within)
    sign, log = np.linalg.slogdet(a)
    np.testing.assert_allclose(lapack.lu_sign(f), sign, **within)
    np.testing.assert_allclose(op("logabsdet")(a, f), log, **within)
    np.testing.assert_allclose(op("det")(a / 6, lapack.lu(a / 6)), np.linalg.det(a / 6), **within)
    assert {lapack.lu_solve(f, b, True).dtype, lapack.lu_inverse(f).dtype} == {np.dtype(dtype)}


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("n", [3, 40])
def test_triangular_systems(n, lower, adjoint):
    a, b = square(n, 2, complex=True) + 9 * np.eye(n), square(n, complex=True)[:, :2]
    half = np.tril(a) if lower else np.triu(a)
    half = np.conj(half.swapaxes(-1, -2)) if adjoint else half
    np.testing.assert_allclose(
        half @ lapack.triangular(a, b, lower, adjoint), b + 0 * half[..., :2]
    )


def test_a_triangular_matrix_with_a_zero_gives_infinities_and_spares_the_others():
    a = np.array([np.diag([1.0, 0.0]), np.diag([2.0, 4.0])])
    x = lapack.triangular(a, np.ones((2, 1)), True, False)
    assert np.isinf(x[0, 1, 0])
    np.testing.assert_array_equal(x[1, :, 0], [0.5, 0.25])


def test_lanes_of_one_matrix_are_columns(monkeypatch):
    shapes, one = [], np.linalg.solve
    a, b = square(5) + 4 * np.eye(5), square(5)[:, :3]
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: shapes.append(np.shape(b)) or one(a, b))
    expected = np.einsum("ij,kl->ikjl", np.linalg.inv(a), np.eye(3))
    np.testing.assert_allclose(lineara.jacfwd(lambda b: op("solve")(a, b))(b), expected, atol=1e-12)
    assert (5, 45) in shapes


def test_a_factorisation_is_computed_once(monkeypatch):
    calls = []
    one = lapack.lu
    monkeypatch.setattr(lapack, "lu", lambda a: calls.append(a.shape) or one(a))
    monkeypatch.setattr(registry, "plans", {})
    monkeypatch.setattr(registry, "readers", {})

    def f(a, b):
        return np.sum(np.linalg.solve(a, b)) + np.linalg.det(b)

    for _ in range(CALLS - 1):
        grad(f, (0, 1))(square(40) + 4 * np.eye(40), square(40))
    assert calls == [(40, 40)] * 2 * (CALLS - 1)
    for _ in range(8):  # those two are tried by plans, whose values may be rounded otherwise
        grad(f, (0, 1))(square(40) + 4 * np.eye(40), square(40))
    assert len(calls) <= 2 * (CALLS - 1 + 8) + 2 * 3  # each is tried thrice


@pytest.mark.parametrize("n", [80, 81, 162])
def test_cholesky_by_blocks_is_that_of_one_block(n):
    a = gram(square(n)) / n + np.eye(n)
    agrees(np.linalg.cholesky, a)
    agrees(np.linalg.cholesky, gram(square(n, complex=True)) / n + np.eye(n))
    agrees(lambda a: np.linalg.cholesky(a, upper=True), a)


# --- one triangle ---------------------------------------------------------------------------------


def test_the_derivative_is_that_of_the_triangle_which_numpy_reads():
    a = symmetric([1.0, 2.0, 4.0])
    for f, lower in (
        (lambda a: np.linalg.cholesky(a)[2, 0], True),
        (lambda a: np.linalg.cholesky(a, upper=True)[0, 2], False),
        (lambda a: np.linalg.eigvalsh(a)[0], True),
        (lambda a: np.linalg.eigh(a, "U")[0][0], False),
    ):
        g = grad(f)(a)
        assert np.all(np.triu(g, 1) == 0) if lower else np.all(np.tril(g, -1) == 0)
        agrees(f, a)


# --- equal eigenvalues and singular values -------------------------------------------------------


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [1.0, 3.0, 3.0], [0.0, 0.0, 1.0]])
def test_sums_over_equal_eigenvalues_have_derivatives(values):
    a = symmetric(values) if values[0] != values[2] else 2 * np.eye(3)
    weights = symmetric([1.0, 2.0, 4.0], 3)
    for f, slope in ((lambda w: w**2, lambda w: 2 * w), (np.exp, np.exp)):
        full = grad(lambda a, f=f: np.sum(f(np.linalg.eigvalsh((a + a.T) / 2))))(a)
        w, v = np.linalg.eigh(a)
        np.testing.assert_allclose(full, (v * slope(w)) @ v.T, atol=1e-14)
        _, moved = jvp(lambda a, f=f: np.sum(f(np.linalg.eigh(a)[0])), (a,), (weights,))
        np.testing.assert_allclose(moved, np.sum(weights * full), rtol=1e-12)


def test_equal_singular_values():
    u, v = (symmetric([1.0, -1.0, 1.0], s) for s in (1, 2))
    for s in ([2.0, 2.0, 2.0], [3.0, 1.0, 1.0], [1.0, 0.0, 0.0]):
        a = (u * s) @ v
        np.testing.assert_allclose(
            grad(lambda a: np.sum(np.linalg.svdvals(a) ** 2))(a), 2 * a, atol=1e-14
        )
    np.testing.assert_allclose(grad(lambda a: np.linalg.norm(a, "nuc"))(u @ v), u @ v, atol=1e-14)


def test_the_nuclear_norm_has_slope_0_beyond_the_rank():
    a = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    expected = np.outer([1.0, 2.0, 2.0], [3.0, 4.0]) / 15
    np.testing.assert_allclose(grad(lambda a: np.linalg.norm(a, "nuc"))(a), expected, atol=1e-14)
    np.testing.assert_array_equal(grad(lambda a: np.linalg.norm(a, "nuc"))(np.zeros((3, 2))), 0)
    np.testing.assert_array_equal(grad(lambda a: np.linalg.norm(a, 2))(np.zeros((3, 2))), 0)


def test_vectors_of_equal_eigenvalues_have_no_derivative():
    """NaN, also where the function of the matrix has one: it is not seen through its vectors."""
    twice = symmetric([1.0, 1.0, 4.0])

    def through(a):
        w, v = np.linalg.eigh(a)
        return np.sum(((v * np.exp(w)) @ v.T)[0])

    for a in (np.eye(3), np.zeros((3, 3)), twice):
        assert np.any(np.isnan(grad(through)(a)))
    assert np.any(np.isnan(grad(lambda a: np.sum(np.linalg.svd(a)[0][0]))(np.eye(3))))
    assert np.any(np.isnan(grad(lambda a: np.sum(np.linalg.eig(a)[1].real[0]))(np.eye(3))))
    hessian = lineara.hessian(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(twice)
    assert np.any(np.isnan(hessian))


def test_a_vector_with_an_eigenvalue_of_its_own_moves_forward_beside_equal_ones():
    a = np.diag([1.0, 2.0, 2.0])
    a_dot = np.array([[0.3, 0.1, 0.2], [0.1, 0.5, 0.4], [0.2, 0.4, 0.7]])
    _, moved = jvp(lambda a: np.linalg.eigh(a)[1][:, 0], (a,), (a_dot,))
    _, v = np.linalg.eigh(a)
    np.testing.assert_allclose(moved, v[0, 0] * np.array([0.0, -0.1, -0.2]), atol=1e-15)


def test_a_policy_says_that_the_vectors_of_equal_values_are_not_used():
    a = np.diag([1.0, 2.0, 2.0])
    policy = lineara.kinks(spectrum="zero")
    c = np.array([0.0, 1.0, 3.0])
    v = np.linalg.eigh(a)[1][0, 0]
    found = grad(policy(lambda a: c @ np.linalg.eigh(a)[1][:, 0]))(a)
    np.testing.assert_allclose(found, np.outer(-c, [v, 0, 0]), atol=1e-15)
    assert [(hit.kink, hit.times) for hit in policy.hits] == [("spectrum", 1)]
    u = np.linalg.svd(a)[0][0, 2]  # u_dot_j = (w_j0 + 2 w_0j) / (1 - 4), for w of the others
    found = grad(policy(lambda a: c @ np.linalg.svd(a)[0][:, 2]))(a)
    np.testing.assert_allclose(found, u * (np.outer(c, [1, 0, 0]) + np.outer([2, 0, 0], c)) / -3)
    found = grad(policy(lambda a: (c @ np.linalg.eig(a)[1])[0].real))(a)
    np.testing.assert_allclose(found, np.outer(-c, [1, 0, 0]), atol=1e-15)


@pytest.mark.parametrize("rows", [slice(None), slice(1, 2), 0, 1])
def test_hits_count_the_matrices_that_have_equal_values(rows):
    values = np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0], [5.0, 5.0, 5.0], [0.5, 1.0, 4.0]])[rows]
    count = np.sum(np.any(np.diff(values) == 0, axis=-1))
    expected = [("spectrum", count)] if count else []
    for f in (lambda a: np.linalg.eigh(a)[1], lambda a: np.linalg.svd(a)[0] ** 2):
        policy = lineara.kinks(spectrum="zero")
        grad(policy(lambda a, f=f: np.sum(f(a))))(values[..., None] * np.eye(3))
        assert [(hit.kink, hit.times) for hit in policy.hits] == expected


def test_how_many_matrices_there_are_does_not_make_their_values_equal():
    policy = lineara.kinks(spectrum="zero")
    values = np.tile([1.0, 2.0, 2.0 + 1e-13], (2000, 1))
    grad(policy(lambda a: np.sum(np.linalg.eigh(a)[1])))(values[..., None] * np.eye(3))
    assert policy.hits == []


def test_small_singular_values_that_differ_are_not_taken_for_equal():
    values = np.array([1.0, 1e-8, 2e-9])
    u, v = symmetric([1.0, -1.0, 1.0], 1), symmetric([1.0, -1.0, 1.0], 2)
    a = np.diag(values)
    assert np.all(np.isfinite(grad(lambda a: np.linalg.svd(a)[0][1, 0])((u * values) @ v)))
    assert np.all(np.isfinite(grad(lambda a: np.linalg.svd(a)[2][2, 1])(a)))


# --- gauges -------------------------------------------------------------------------------------


def test_what_depends_on_a_phase_is_refused():
    a = gram(square(3, complex=True))
    for f in (
        lambda a: np.linalg.eigh(a)[1][1, 0].real,
        lambda a: np.linalg.svd(a)[0][1, 0].imag,
        lambda a: np.linalg.svd(a[:2])[2][0, 1].real,
    ):
        with pytest.raises(NoRuleError, match="depends on the phases of the vectors"):
            grad(f)(a)


def test_rounding_is_no_phase():
    """Where a cotangent is nothing but rounding, or its parts cancel, nothing is refused."""
    z = np.array([[0.3 + 0.4j]])
    found = grad(lambda a: np.sum((lambda u, s, v: u * s @ v)(*np.linalg.svd(a)) * 1j).real)(z)
    np.testing.assert_allclose(found, [[-1j]], atol=1e-15)
    a = gram(square(3, complex=True))

    def nothing(a):
        v = np.linalg.eigh(a)[1]
        return np.sum(np.abs(v[:, 0]) ** 2) ** 0.5 - np.sqrt(
            np.sum((v[:, 0] * np.conj(v[:, 0])).real)
        )

    np.testing.assert_allclose(grad(nothing)(a), 0, atol=1e-14)


def test_a_matrix_in_single_precision_is_solved_in_that_of_the_right_side():
    a = (square(40) + 9 * np.eye(40)).astype(np.float32)
    b = rng.normal(size=40)
    y, _ = linearize(lambda b: np.linalg.solve(a, b), b)
    np.testing.assert_allclose(y, np.linalg.solve(a.astype(float), b), rtol=1e-12)


def test_what_depends_on_the_completing_basis_is_refused():
    for a in (square(4)[:, :2], square(4, 2)[..., :2]):
        for f in (
            lambda a: np.sum(np.linalg.qr(a, "complete")[0][..., 0, 3]),
            lambda a: np.sum(np.linalg.svd(a)[0][..., 0, 3]),
            lambda a: np.sum(np.linalg.svd(a.mT)[2][..., 3, 0]),
        ):
            with pytest.raises(NoRuleError, match="depends on the basis of the vectors beyond"):
                grad(f)(a)


@pytest.mark.parametrize("basis", ["orth", "null_space"])
def test_what_depends_on_which_basis_of_a_space_is_taken_is_refused(basis):
    f = getattr(scipy.linalg, basis)
    a = square(4)[:, :2] if basis == "orth" else square(4)[:2]
    with pytest.raises(NoRuleError, match="depends on the basis of the vectors beyond"):
        grad(lambda a: f(a)[0, 1])(a)
    projection = lambda a: (lambda q: q @ q.T)(f(a))  # noqa: E731
    assert np.all(np.isfinite(grad(lambda a: np.sum(projection(a)[0] ** 3))(a)))


def test_rounding_is_what_is_left_of_half_the_digits():
    for part, refused in ((1e-4, True), (1e-8, False)):
        c = np.array([[part * 1j, 1.0], [1.0, 0.3]])
        with pytest.raises(NoRuleError) if refused else contextlib.nullcontext():
            gauge(c, shape=(2, 2), unitary=False, check=True)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_what_is_rounding_depends_on_how_large_the_cotangent_is(scale):
    draw = np.random.default_rng(0)
    a, w = draw.normal(size=(3, 3)) + 1j * draw.normal(size=(3, 3)), draw.normal(size=(3, 3))
    vectors = lambda a: np.linalg.eigh(a @ np.conj(a).T)[1]  # noqa: E731
    slope = lineara.grad(lambda a: np.sum(w * np.abs(vectors(a)) ** 2))(a)
    found = lineara.grad(lambda a: scale * np.sum(w * np.abs(vectors(a)) ** 2))(a)
    np.testing.assert_allclose(found / scale, slope, rtol=1e-12)
    with pytest.raises(NoRuleError, match="depends on the phases of the vectors"):
        lineara.grad(lambda a: scale * np.sum(w * np.real(vectors(a))))(a)


@pytest.mark.parametrize(("assumed", "half"), [("lower", np.tril), ("upper", np.triu)])
def test_of_a_triangular_matrix_one_triangle_is_inverted(assumed, half):
    f = lambda a: scipy.linalg.inv(a, assume_a=f"{assumed} triangular")  # noqa: E731
    a = square(3)
    y, L = linearize(f, a)
    np.testing.assert_allclose(y, np.linalg.inv(half(a)), atol=1e-12)
    np.testing.assert_allclose(L @ a, -y @ half(a) @ y, atol=1e-12)


@pytest.mark.parametrize("least", [1e-17, 4e-16])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_a_matrix_is_singular_beside_its_largest_singular_value(scale, least):
    f = lineara.grad(lambda a: np.sum(scipy.linalg.polar(a)[0]))
    assert np.all(np.isfinite(f(scale * np.diag([1.0, 1e-10, 1e-13]))))
    with pytest.raises(NoRuleError, match="polar: of a singular matrix"):
        f(scale * np.diag([1.0, 1e-10, least]))


def test_an_iteration_that_ends_early_has_its_own_value_and_the_derivative_of_the_solution():
    a = scipy.sparse.csr_array(np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 5.0]]))
    b = np.array([1.0, 2.0, 3.0])
    y, L = lineara.linearize(lambda b: scipy.sparse.linalg.cg(a, b, maxiter=1)[0], b)
    np.testing.assert_allclose(y, scipy.sparse.linalg.cg(a, b, maxiter=1)[0], rtol=1e-14)
    np.testing.assert_allclose(L @ b, np.linalg.solve(a.toarray(), b), rtol=1e-12)
    assert np.max(np.abs(y - L @ b)) > 0.01


def test_what_counts_as_rounding_grows_with_the_matrix():
    a = np.zeros((4, 2))
    a[0, 0], a[1, 1] = 1.0, 5e-16
    for f in (scipy.linalg.orth, lambda a: scipy.linalg.null_space(a.T)):
        y, _ = lineara.linearize(f, a)
        assert y.shape == f(a).shape
    for f in (lambda a: np.linalg.lstsq(a, np.ones(4), rcond=None)[0],
              lambda a: scipy.linalg.pinv(a) @ np.ones(4)):  # fmt: skip
        y, _ = lineara.linearize(f, a)
        assert y.tolist() == [1.0, 0.0]


def test_singular_vectors_of_a_singular_hermitian_matrix_are_orthonormal():
    a = np.stack([np.diag([0.3, -0.7, 0.0]), np.diag([0.0, 0.4, -0.1])])
    f = lambda a: np.linalg.svd(a, hermitian=True)  # noqa: E731
    (u, s, vh), _ = lineara.linearize(lambda a: tuple(f(a)), a)
    np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=1e-15)
    np.testing.assert_allclose(vh @ vh.mT, np.broadcast_to(np.eye(3), a.shape), atol=1e-15)


PRODUCTS = {
    "row times matrix": (lambda v, a: v @ a, (3,), (3, 4), 1),
    "matrix times column": (lambda a, v: a @ v, (3, 4), (4,), 0),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_gradient_in_a_matrix_has_the_rank_of_what_it_meets(name):
    f, *shapes, place = PRODUCTS[name]
    a, b = (rng.normal(size=shape) for shape in shapes)
    weights = rng.normal(size=np.shape(f(a, b)))
    found = grad(lambda *v: np.sum(weights * f(*v)), place, sparse=True)(a, b)
    assert type(found).__name__ == "LowRank"
    plain = grad(lambda *v: np.sum(weights * f(*v)), place)(a, b)
    np.testing.assert_allclose(found.U @ found.V.T, plain)


def test_the_message_about_a_gauge():
    with pytest.raises(NoRuleError) as caught:
        gauge(np.array([[1j]]), shape=(1, 1), unitary=False, check=True)
    assert caught.value.message == (
        "a factorisation: the result depends on the phases of the vectors, each of which may be "
        "multiplied by e^(i t), so it has no derivative; use what does not depend on the choice, "
        "such as abs(v) or v @ v.conj().T"
    )


def test_eigenvectors_move_as_lapacks_do():
    """Those of `eig` have length 1 and a real largest component, so their numbers are known."""
    for a in (square(4, complex=True), square(3), square(2, 3)):
        agrees(lambda a: np.linalg.eig(a)[1].real * 1.0, a)
        agrees(lambda a: np.linalg.eig(a)[1].imag * 1.0, a)


# --- singular and empty matrices ----------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_the_determinant_of_a_matrix_of_any_rank(n, rank):
    a = square(n)[:, :rank] @ square(n)[:rank]
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
        for i in range(n)
    ]
    np.testing.assert_allclose(grad(np.linalg.det)(a), cofactors, atol=1e-12)
    assert np.all(grad(np.linalg.det)(np.zeros((40, 40))) == 0)


def test_what_is_singular_is_refused_as_numpy_does():
    a = np.ones((40, 40))
    for f in (
        lambda a: np.sum(np.linalg.solve(a, a)),
        lambda a: np.sum(np.linalg.inv(a)),
        lambda a: np.linalg.slogdet(a)[1],
    ):
        for m in (np.zeros((2, 2)), np.zeros((40, 40)), a - a):
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                grad(f)(m)


def test_rank_deficient_matrices_have_a_pseudo_inverse_that_moves_within_its_rank():
    left, right, target = square(5)[:, :2], square(4)[:2], rng.normal(size=5)

    def of_rank_two(u, v):
        return np.linalg.pinv(u @ v)

    agrees(of_rank_two, left, right)
    agrees(lambda u, v: np.linalg.lstsq(u @ v, target)[0], left, right)
    assert np.linalg.lstsq(left @ right, target)[1].shape == (0,)
    found = linearize(lambda a: np.linalg.lstsq(a, target)[1], left @ right)[0]
    assert np.shape(found) == (0,)


@pytest.mark.parametrize(
    "name", ["inv", "det", "cholesky", "eigvalsh", "eigvals", "pinv", "svdvals"]
)
def test_empty_matrices(name):
    f = getattr(np.linalg, name)
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        a = np.zeros(shape)
        y, L = linearize(f, a)
        assert (np.shape(y), np.asarray(y).dtype) == (np.shape(f(a)), np.asarray(f(a)).dtype)
        assert np.shape(L @ a) == np.shape(y)
        assert np.shape(y * 1.0 @ L if np.shape(y) else 1.0 @ L) == shape


# --- memory, dtypes, forms ----------------------------------------------------------------------

EVERYWHERE = {
    **{name: getattr(np.linalg, name) for name in ("inv", "det", "pinv", "svdvals", "eigvalsh")},
    "cholesky": lambda a: np.linalg.cholesky(gram(a)),
    "solve": lambda a: np.linalg.solve(a, a[:, ::2] ** 2),
    "qr": lambda a: np.linalg.qr(a)[1],
    "fft": lambda a: np.fft.fft2(a).real,
    "irfft": lambda a: np.fft.irfft(a, axis=0),
    "norm": lambda a: np.linalg.norm(a, 2),
}


@pytest.mark.parametrize("n", [3, 33])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_layouts_and_precisions(name, n):
    f = EVERYWHERE[name]
    a = np.random.default_rng(n).normal(size=(n, n)) + 3 * np.eye(n)  # not singular in single
    c = random_like(f(a), 2)

    def loss(a):
        return np.sum(c * f(a))

    expected = grad(loss)(a)
    wide = np.zeros((2 * n, n))
    wide[::2] = a
    locked = a.copy()
    locked.flags.writeable = False
    foreign = a.astype(a.dtype.newbyteorder())
    for same in (np.asfortranarray(a), wide[::2], a[::-1][::-1].copy(order="F"), locked, foreign):
        np.testing.assert_allclose(grad(loss)(same), expected, rtol=1e-9, atol=1e-9)
    turned = grad(lambda b: loss(b[::-1, ::-1]))(np.ascontiguousarray(a[::-1, ::-1]))
    np.testing.assert_allclose(turned[::-1, ::-1], expected, rtol=1e-9, atol=1e-9)
    y, L = linearize(f, a.astype(np.float32))
    assert np.asarray(y).dtype == np.float32
    single = c.astype(np.float32) if np.shape(c) else c
    assert (single @ L).dtype == np.float32
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(single @ L, expected, rtol=2e-2, atol=2e-3 * scale)


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
def test_plane_vectors_have_products():
    a, b, c = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([1.0, 0.5, 2.0])
    y, g = lineara.value_and_grad(lambda a, b: np.cross(a, b), (0, 1))(a, b)
    assert y == -1.0
    np.testing.assert_array_equal(g, [[5.0, -3.0], [-2.0, 1.0]])
    for sign, f in (1, lambda a: np.cross(a, c)), (-1, lambda a: np.cross(c, a)):
        J = lineara.jacobian(f)(a)
        np.testing.assert_array_equal(J, sign * np.array([[0.0, 2.0], [-2.0, 0.0], [0.5, -1.0]]))


def test_products_of_many_matrices_take_the_cheapest_order():
    from lineara.ops.contract import chain, matmul

    shapes = []
    evaluate = type(matmul).evaluate

    def counted(self, xp, /, a, b):
        shapes.append((*a.shape, b.shape[-1]))
        return evaluate(self, xp, a, b)

    a, b, c = np.ones((90, 2)), np.ones((2, 90)), np.ones((90, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(matmul), "evaluate", counted)
        chain(a, b, c)
    assert shapes == [(2, 90, 1), (90, 2, 1)]


def test_the_transform_is_its_closed_form():
    n = 6
    k = np.arange(n)
    F = np.exp(-2j * np.pi * np.outer(k, k) / n)
    z = rng.normal(size=n) + 1j * rng.normal(size=n)
    c = rng.normal(size=n) + 1j * rng.normal(size=n)
    np.testing.assert_allclose(linearize(np.fft.fft, z)[1] @ c, F @ c)
    np.testing.assert_allclose(c @ linearize(np.fft.fft, z)[1], np.conj(F.T) @ c)
    np.testing.assert_allclose(c @ linearize(np.fft.ifft, z)[1], F @ c / n)
    np.testing.assert_allclose(lineara.jacobian(np.fft.fft)(z.real), F)
    np.testing.assert_allclose(lineara.jacobian(np.fft.rfft)(z.real), F[:4])
    np.testing.assert_allclose(lineara.jacobian(np.fft.rfft, mode="reverse")(z.real), F[:4])


# --- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "qr: the mode 'raw' has no rule; 'reduced', 'complete' and 'r' have": (
        lambda a: np.sum(np.linalg.qr(a, "raw")[0])
    ),
    "pinv: a cutoff of 0.1 drops singular values that are not zero, and has no rule; up to 1e-08 "
    "it has, and with np.linalg.svd you say what is kept": lambda a: np.sum(np.linalg.pinv(a, 0.1)),
    "norm: there is no matrix norm of order 3; 'fro', 'nuc', 1, -1, 2, -2, inf and -inf are": (
        lambda a: np.linalg.norm(a, 3)
    ),
    "norm: the order 'nuc' is one of matrices; give two axes": (
        lambda a: np.sum(np.linalg.norm(a, "nuc", axis=0))
    ),
    "lstsq: takes a matrix, and a vector or matrix with as many rows, not f64[3,3] and f64[2]": (
        lambda a: np.sum(np.linalg.lstsq(a, np.ones(2))[0])
    ),
    "tensorsolve: f64[3,3] is no square matrix from the shape (3,) to that of f64[2]; the axes of "
    "b come first, and the others have as many elements": (
        lambda a: np.sum(np.linalg.tensorsolve(a, np.ones(2)))
    ),
    "tensorinv: the first 2 axes of f64[3,3] and the others differ in their numbers of elements; "
    "as a matrix it must be square": lambda a: np.sum(np.linalg.tensorinv(a)),
    "kron: 27 axes; up to 26 have names": (
        lambda a: np.sum(np.kron(np.reshape(a, (1,) * 25 + (3, 3)), a))
    ),
    "multi_dot: takes two arrays or more, not 1": lambda a: np.sum(np.linalg.multi_dot([a])),
    "cholesky: takes square matrices, not f64[2,3]": lambda a: np.sum(np.linalg.cholesky(a[:2])),
    "fft: 0 points along axis 1 of f64[3,3]; at least one is needed": (
        lambda a: np.sum(np.fft.fft(a, 0).real)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_says_why(message):
    with pytest.raises(lineara.errors.LinearaError) as caught:
        grad(REFUSED[message])(np.eye(3) + 0.1)
    assert caught.value.message == message


@pytest.mark.parametrize(("shape", "axes", "work"), [
    ("8", "(0,)", 5 * 8 * 3 + 4 * 8 - 16),
    ("5", "(0,)", 5 * 5 * 3 + 4 * 5 - 10),  # as many steps as for 8
    ("2", "(0,)", 5 * 2 * 1 + 4 * 2 - 4),
    ("4,8", "(1,)", 4 * (5 * 8 * 3) + 4 * 32 - 64),
    ("4,8", "(0, 1)", 5 * 32 * 5 + 4 * 32 - 64),
])  # fmt: skip
def test_a_transform_counts_five_n_log_n_a_line(shape, axes, work):
    call = f'fft[axes={axes}, inverse=false, norm="backward"](~x)'
    program = check(parse(f"def f(; ~x: c128[{shape}]) -> (; c128[{shape}]) = {call}"))
    x = np.ones([int(n) for n in shape.split(",")], complex)
    assert run(program, "f", x).work == work


STACKS = {
    "solve": lambda a: np.linalg.solve(a, a[..., :2] ** 2),
    "inv": np.linalg.inv,
    "pinv": lambda a: np.linalg.pinv(a[..., :2]),
    "det": np.linalg.det,
    "det of two": lambda a: np.linalg.det(a[..., :2, :2]),
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "cholesky": lambda a: np.linalg.cholesky(gram(a)),
    "qr": lambda a: np.linalg.qr(a)[0],
    "R": lambda a: np.linalg.qr(a[..., :2], "complete")[1],
    "wide R": lambda a: np.linalg.qr(a[..., :2, :])[1],
    "eigh": lambda a: np.abs(np.linalg.eigh(gram(a))[1]),
    "eigvalsh": lambda a: np.linalg.eigvalsh(gram(a)),
    "eig": lambda a: np.abs(np.linalg.eig(gram(a))[1]),
    "eigvals": lambda a: np.linalg.eigvals(gram(a)).real,
    "svd": lambda a: np.abs(np.linalg.svd(a)[0]),
    "full svd": lambda a: np.abs(np.linalg.svd(a[..., :2])[0][..., :2]),
    "svdvals": lambda a: np.linalg.svdvals(a[..., :2]),
    "norm": lambda a: np.linalg.norm(a, 2, axis=(-2, -1)),
    "matrix_power": lambda a: np.linalg.matrix_power(a, 3),
}


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", STACKS)
def test_a_stack_in_two_axes_is_many_matrices(name, complex):
    f = STACKS[name]
    a, step = (square(3, 2, 1, complex=complex) + 2 * np.eye(3) for _ in range(2))
    y, dy = jvp(f, (a,), (step,))
    for i in range(2):
        one, d_one = jvp(f, (a[i, 0],), (step[i, 0],))
        np.testing.assert_allclose(y[i, 0], one, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(dy[i, 0], d_one, rtol=1e-8, atol=1e-10)
    agrees(f, a, within=1e-5)


@pytest.mark.parametrize("name", STACKS)
def test_second_derivatives_of_a_stack_in_two_axes_are_those_of_its_matrices(name):
    def twice(a):
        return jvp(lambda a: jvp(STACKS[name], (a,), (a @ a,))[1], (a,), (a,))[1]

    a = square(3, 2, 1) + 2 * np.eye(3)
    alone = [[twice(m[0])] for m in a]
    np.testing.assert_allclose(twice(a), alone, rtol=1e-7, atol=1e-7)


def test_eigenvalues_of_scipy_are_complex_also_where_they_are_real():
    import scipy.linalg

    for f in (scipy.linalg.eigvals, lambda a: scipy.linalg.eig(a)[0]):
        y, _ = linearize(f, np.diag([1.0, 2.0, 4.0]))
        assert y.dtype == complex
        np.testing.assert_allclose(y, [1.0, 2.0, 4.0])


def test_the_rank_of_a_basis_is_relative_to_the_largest_singular_value():
    import scipy.linalg

    for scale in (1e3, 1.0, 1e-3):
        a = scale * np.diag([1.0, 0.1, 1e-3])
        for f, n in ((scipy.linalg.orth, 2), (scipy.linalg.null_space, 1)):
            y, _ = linearize(lambda a, f=f: np.abs(f(a, rcond=0.01)), a)
            assert y.shape == (3, n)


@pytest.mark.parametrize("place", [2, 3])
def test_a_weight_of_riccatis_equation_is_symmetric_up_to_rounding(place):
    for (off, fine), scale in itertools.product(((1e-15, True), (1e-6, False)), (1e-6, 1.0, 1e6)):
        weights = [square(2), np.eye(2), 3 * np.eye(2), np.eye(2)]
        weights[place] *= scale
        weights[place][0, 1] = off * scale
        solve = lambda a, w=weights: scipy.linalg.solve_continuous_are(a, *w[1:])  # noqa: E731
        with contextlib.nullcontext() if fine else pytest.raises(ValueError, match="symmetric"):
            linearize(solve, weights[0])

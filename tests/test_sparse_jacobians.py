"""Sparse Jacobians: the pattern lacks nothing, colours do not meet, the matrix is the dense one."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse

from lineara import hessian, jacobian, jit, linearize, sparse_plan, sparsity, trace
from lineara.colouring import bidirectional, by_columns, by_rows, by_substitution, symmetric
from lineara.cotangent.dependence import applied, seeds
from lineara.errors import ShapeError, StructureError, TypeMismatchError
from lineara.facts.types import type_of
from lineara.testing import count_bytes
from tests.test_compressed_jacobian import FUNCTIONS, X
from tests.test_primitives import SMOOTH


def matrix(f: Any, x: np.ndarray) -> np.ndarray:
    """The Jacobian from all basis vectors."""
    return linearize(f, x)[1].to_dense()


def chosen(x: Any) -> Any:
    return x[1:] * 2.0 if x[0] > 1 else x[:-1] ** 2


def by_sign(x: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(len(x) - 2):
        if x[i] > 1:
            y[i] = x[i + 1]
        else:
            y[i] = x[i + 2] ** 2
    return y


def doubled(x: Any) -> Any:
    y = x.copy()
    while np.sum(y) < 100.0:
        y = np.roll(y, 1) * 2.0
    return y


def rounds(x: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(1, len(x) - 1):
        y[i] = x[i - 1] * x[i] + np.sin(x[i + 1])
    return y


def carried(x: Any) -> Any:
    y, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        s = 0.5 * s + x[i]
        y[i] = s
    return y


def tables(x: Any) -> Any:
    at = np.arange(len(x))[::-1]
    return x[at] * x + np.where(np.arange(len(x)) % 2 == 0, x, 0.0)


def arrow(x: Any) -> Any:
    return np.concatenate([[np.sum(x**2)], x[1:] * x[0]])


def products(x: Any) -> Any:
    a = x[:16].reshape(4, 4)
    band = np.eye(40) + np.diag(np.ones(39), 1)
    return np.concatenate([
        band @ x, (a @ a).ravel(), a @ x[:4], x[:4] @ a, [x @ x], np.convolve(x, [1.0, 2.0]),
        np.einsum("ij,jk->ki", a, a).ravel(), np.einsum("ii->i", a), np.max(a, axis=1),
        np.linalg.solve(a + 9 * np.eye(4), x[:4]), np.linalg.inv(a + 9 * np.eye(4)).ravel(),
        np.prod(a, axis=0), np.linalg.norm(a, axis=1), np.tril(a).ravel(), np.sort(a, axis=0)[0],
        np.ravel(np.stack([a, a]) @ np.stack([a.T, a])), np.ravel(x[:3] @ np.ones((2, 3, 2))),
    ])  # fmt: skip


PROGRAMS = [chosen, by_sign, doubled, rounds, carried, tables, arrow, products]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sparse_jacobian_is_the_dense_one(name: str):
    f = FUNCTIONS[name]
    J = matrix(f, X)
    S = jacobian(f, sparse=True)(X)
    assert np.allclose(S.toarray(), J, rtol=1e-6 if J.dtype == np.float32 else 1e-12, atol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a pattern of one point
        assert not np.any((J != 0) & ~sparsity(f, X).toarray())


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_pattern_holds_at_every_point(f: Any):
    x = np.linspace(0.5, 1.5, 40)
    pattern, plan = sparsity(f, x).toarray(), sparse_plan(f, x)
    assert plan.holds == "all arguments of these types"
    for scale in (0.1, 1.0, -3.0, 20.0):
        y = scale * x[::-1] + 3.0 * (scale < 0)
        J = matrix(f, y)
        assert not np.any((J != 0) & ~pattern)
        assert np.allclose(plan(y).toarray(), J, rtol=1e-12, atol=1e-12)
        assert np.allclose(jacobian(f, sparse=True)(y).toarray(), J, rtol=1e-12, atol=1e-12)


def band(n: int, *offsets: int) -> np.ndarray:
    return np.any([np.eye(n, k=k, dtype=bool) for k in offsets], axis=0)


def test_patterns_are_as_tight_as_the_mathematics():
    x = np.ones(12)
    inside = np.arange(12) % 11 != 0
    assert np.array_equal(sparsity(rounds, x).toarray(), band(12, -1, 0, 1) & inside[:, None])
    assert np.array_equal(sparsity(np.diff, x).toarray(), band(12, 0, 1)[:-1])
    both = band(12, 1, 2)
    both[10:] = False
    assert np.array_equal(sparsity(by_sign, x).toarray(), both)
    assert np.array_equal(sparsity(carried, x).toarray(), np.tri(12, dtype=bool))
    turned = np.eye(12, dtype=bool)[::-1] | np.eye(12, dtype=bool)
    assert np.array_equal(sparsity(tables, x).toarray(), turned)
    blocks = np.kron(np.eye(3), np.ones((4, 4))).astype(bool)
    product = sparsity(lambda x: x.reshape(3, 4) @ np.ones((4, 4)), x)
    assert np.array_equal(product.toarray(), blocks)
    assert sparsity(lambda x: np.floor(x) + (x > 0), x).nnz == 0
    assert sparsity(lambda x: np.ones(3), x).nnz == 0


def test_a_factor_zero_is_no_entry():
    assert sparsity(lambda x: np.concatenate([0 * x[:1], x[1:]]), np.ones(3)).nnz == 2
    plan = sparse_plan(lambda x: np.concatenate([0 * x[:1], x[1:] ** 2]), np.ones(3))
    assert plan(np.ones(3)).toarray().tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_branches_on_values_are_united_and_known_ones_are_not():
    x = np.ones(4)
    either = np.zeros((3, 4), bool)
    either[:, :3] |= np.eye(3, dtype=bool)
    either[:, 1:] |= np.eye(3, dtype=bool)
    assert np.array_equal(sparsity(chosen, x).toarray(), either)
    known = sparsity(lambda x: x[1:] if len(x) > 2 else x[:-1], x)
    assert np.array_equal(known.toarray(), band(4, 1)[:-1])


def test_whole_numbers_count_by_value_and_a_plan_is_guarded_by_them():
    x, at = np.arange(1.0, 7.0), np.array([4, 0, 2])

    def f(x: Any, at: Any) -> Any:
        return x[at] ** 2

    plan = sparse_plan(f, x, at)
    assert plan.pattern.indices.tolist() == [4, 0, 2]
    assert plan(x, at).toarray()[0, 4] == 10.0
    with pytest.raises(StructureError, match="make a plan for them"):
        plan(x, np.array([4, 1, 2]))


def test_containers_and_several_arguments():
    def f(p: Any, c: Any) -> Any:
        return {"a": p["u"][1:] * c, "b": p["w"] + p["u"][0]}

    p, c = {"u": np.array([1.0, 2.0, 3.0]), "w": 4.0}, np.array([5.0, 6.0])
    J = linearize(f, p, c)[1].to_dense()
    assert np.array_equal(linearize(f, p, c)[1].to_sparse().toarray(), J)
    assert np.array_equal(jacobian(f, argnums=(0, 1), sparse=True)(p, c).toarray(), J)
    plan = sparse_plan(f, p, c, argnums=(0, 1))
    assert np.array_equal(plan(p, c).toarray(), J)
    assert np.array_equal(sparse_plan(f, p, c)(p, c).toarray(), J[:, :4])
    assert np.array_equal(sparse_plan(f, p, c, argnums=-1)(p, c).toarray(), J[:, 4:])


# --- colours --------------------------------------------------------------------------------------


def compressed_and_back(compression: Any, A: np.ndarray) -> np.ndarray:
    forward, back = compression.seeds
    return compression.matrix(forward @ A.T, back @ A).toarray()


@pytest.mark.parametrize("seed", range(30))
def test_any_matrix_is_had_from_its_products(seed: int):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 30, 2)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < rng.uniform(0, 0.5))
    A[rng.random(m) < 0.1] = 1.0
    for make in (by_columns, by_rows, bidirectional):
        assert np.allclose(compressed_and_back(make(A != 0), A), A)
    S = A[: min(m, n), : min(m, n)]
    S = S + S.T
    acyclic, star = by_substitution(S != 0), symmetric(S != 0)
    assert np.allclose(compressed_and_back(star, S), S)
    assert np.allclose(compressed_and_back(acyclic, S), S)
    assert acyclic.counts <= star.counts
    if acyclic.substitution is not None:
        assert_has_no_cycle_of_two_colours(S != 0, acyclic.columns)


def assert_has_no_cycle_of_two_colours(pattern: np.ndarray, colours: np.ndarray) -> None:
    """Neighbours differ, and each two colours are a forest: edges are vertices less trees."""
    rows, columns = np.nonzero(pattern)
    assert np.all((colours[rows] != colours[columns]) | (rows == columns))
    for a in range(1, colours.max(initial=0) + 1):
        for b in range(1, a):
            at = np.flatnonzero((colours == a) | (colours == b))
            part = pattern[np.ix_(at, at)]
            edges = np.triu(part, 1).sum()
            assert edges == len(at) - sparse.csgraph.connected_components(part)[0]


def test_acyclic_colours_are_fewer_than_star_colours():
    grid = np.arange(64).reshape(8, 8)
    five = np.eye(64, dtype=bool)
    for a, b in ((grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1])):
        five[a.ravel(), b.ravel()] = five[b.ravel(), a.ravel()] = True
    for pattern, few, more in (
        (band(50, -1, 0, 1), 2, 3),
        (band(50, -3, -2, -1, 0, 1, 2, 3), 4, 7),
        (five, 4, 5),
        (np.ones((6, 6), bool), 6, 6),
    ):
        assert by_substitution(pattern).counts == (few, 0)
        assert symmetric(pattern).counts == (more, 0)


def test_colours_are_as_few_as_they_can_be_where_that_is_known():
    assert by_columns(band(50, -1, 0, 1)).counts == (3, 0)
    assert by_rows(band(50, -2, 0, 1)[:, :40]).counts[1] == 4
    full = np.eye(50, dtype=bool)
    full[0], full[:, 0] = True, True
    assert bidirectional(full).counts == (2, 1)
    assert symmetric(full).counts == (2, 0)
    wide = np.eye(50, dtype=bool)
    wide[0] = True
    assert sum(bidirectional(wide).counts) == 2
    assert sum(bidirectional(wide.T).counts) == 2
    assert bidirectional(np.zeros((3, 4), bool)).counts[0] <= 1
    columns = np.random.default_rng(1).integers(0, 100, (3, 100))
    random = np.zeros((100, 100), bool)
    random[np.arange(100), columns] = True
    assert by_columns(random).counts == (5, 0)  # 7 in the order of the columns


def test_greedy_loops_give_the_same_compiled():
    from lineara.sparse.plan import compiled

    rng = np.random.default_rng(0)
    pattern = sparse.random_array((3000, 3000), density=0.001, rng=rng).tocsr().astype(bool)
    assert np.array_equal(by_columns(pattern).columns, by_columns(pattern, compiled).columns)
    both = pattern + pattern.T
    for make in (symmetric, by_substitution):
        assert np.array_equal(make(both).columns, make(both, compiled).columns)


# --- Hessians -------------------------------------------------------------------------------------


def energy(x: Any) -> Any:
    return np.sum((x[1:] - x[:-1] ** 2) ** 2) + x[0] * np.sum(np.cos(x))


def test_a_sparse_hessian_is_the_dense_one_and_symmetric():
    x = np.linspace(0.1, 1.0, 30)
    H = hessian(energy)(x)
    S = hessian(energy, sparse=True)(x)
    plan = sparse_plan(energy, x, hessian=True)
    assert np.allclose(S.toarray(), H)
    assert np.allclose(plan(x).toarray(), H)
    assert plan.colours[0] <= 4
    assert plan.pattern.nnz == 4 * 30 - 4 + 28
    J = plan(x).toarray()
    assert np.array_equal(J, J.T)
    assert hessian(np.sum, sparse=True)(x).nnz == 0


def kinked(x: Any) -> Any:
    return np.sum(np.where(x[1:] > x[:-1], x[1:] ** 2 * x[:-1], x[:-1] ** 3)) + np.sum(x**4)


def test_a_hessian_from_acyclic_colours():
    x = np.cos(np.arange(30.0))
    plan = sparse_plan(kinked, x, hessian=True, colouring="acyclic", compile=False)
    assert not plan.by_entry
    assert plan.colours == (2, 0)
    assert sparse_plan(kinked, x, hessian=True, compile=False).colours == (3, 0)
    assert np.allclose(plan(x).toarray(), hessian(kinked)(x), atol=1e-12)
    again = pickle.loads(pickle.dumps(plan))
    assert np.array_equal(again(x).toarray(), plan(x).toarray())
    assert set("".join(str(plan).splitlines()[1:])) == {"1", "2", "."}


def test_a_colouring_that_is_not_known_is_refused():
    with pytest.raises(TypeMismatchError) as error:
        sparse_plan(np.sum, np.ones(3), hessian=True, colouring="cyclic")
    assert (
        error.value.message == "sparse_plan: colouring='cyclic' is not known; a Hessian has a star "
        "colouring or an acyclic one"
    )
    with pytest.raises(TypeMismatchError) as error:
        sparse_plan(np.diff, np.ones(3), colouring="acyclic")
    assert (
        error.value.message
        == "sparse_plan: colouring='acyclic' is one of a symmetric matrix; give "
        "hessian=True, or leave it out"
    )


def test_a_hessian_is_one_of_a_number():
    with pytest.raises(ShapeError, match="a function that returns a number"):
        sparse_plan(lambda x: 2 * x, np.ones(3), hessian=True)


# --- what is given, and what holds at one point only ----------------------------------------------


def test_a_pattern_that_lacks_an_entry_is_found():
    x = np.arange(1.0, 6.0)
    whole = """the pattern lacks entries of the Jacobian: its product with a random vector is \
another one in the rows 0, 1, 2, 3; give a pattern that has every entry that may differ from 0, \
or leave it out and let lineara.sparsity find it"""
    lacking = np.eye(5, dtype=bool)[1:]
    for make in (
        lambda: jacobian(np.diff, sparse=lacking)(x),
        lambda: sparse_plan(np.diff, x, pattern=lacking)(x),
        lambda: sparse_plan(np.diff, x, pattern=lacking, compile=False)(x),
        lambda: linearize(np.diff, x)[1].to_sparse(lacking),
    ):
        with pytest.raises(StructureError) as error:
            make()
        assert error.value.message == whole
    more = np.ones((4, 5), bool)
    assert np.array_equal(jacobian(np.diff, sparse=more)(x).toarray(), matrix(np.diff, x))
    assert np.array_equal(sparse_plan(np.diff, x, pattern=more)(x).toarray(), matrix(np.diff, x))


def test_a_pattern_of_another_shape_is_refused():
    x = np.ones(5)
    for make in (
        lambda: jacobian(np.diff, sparse=np.eye(5))(x),
        lambda: sparse_plan(np.diff, x, pattern=np.eye(5)),
        lambda: linearize(np.diff, x)[1].to_sparse(np.eye(5)),
    ):
        with pytest.raises(ShapeError, match=r"\(5, 5\), and the (matrix|map) one of \(4, 5\)"):
            make()


def unstaged(x: Any) -> Any:
    """Python needs the value of a traced number."""
    return x[int(x[0]) :][:3] * 2.0


def test_what_has_no_program_has_a_pattern_of_the_point_which_is_tested():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    with pytest.warns(UserWarning, match="the pattern holds at this point only"):
        pattern = sparsity(unstaged, x)
    assert pattern.indices.tolist() == [1, 2, 3]
    plan = sparse_plan(unstaged, x)
    assert plan.holds == "this point"
    assert plan.why_eager
    assert np.array_equal(plan(x).toarray(), matrix(unstaged, x))
    with pytest.raises(StructureError, match="lacks entries"):
        plan(x + 2)
    assert np.array_equal(jacobian(unstaged, sparse=True)(x + 2).toarray(), matrix(unstaged, x + 2))


def test_complex_numbers_and_whole_ones_are_refused():
    z = np.ones(3) * 1j
    with pytest.raises(TypeMismatchError, match="real floating numbers"):
        sparsity(np.sin, z)
    with pytest.raises(TypeMismatchError, match="the map is one of complex numbers"):
        jacobian(np.sin, sparse=True)(z)
    with pytest.raises(TypeMismatchError, match="real floating numbers"):
        sparse_plan(lambda x: 2.0 * x, np.arange(3))


# --- plans ----------------------------------------------------------------------------------------


SCALE = np.array([1.0, 2.0, 0.0])


def scaled(x: Any) -> Any:
    return SCALE * x


def test_a_plan_keeps_what_the_function_reached():
    x = np.ones(3)
    plan = sparse_plan(scaled, x)
    assert plan(x).nnz == 3  # the first call is compared with the function
    SCALE[2] = 5.0
    try:
        assert plan(x).toarray()[2, 2] == 0.0
    finally:
        SCALE[2] = 0.0


def test_a_plan_pickles():
    x = np.arange(1.0, 9.0)
    plan = pickle.loads(pickle.dumps(sparse_plan(rounds, x)))
    assert plan.colours == (3, 0)
    assert np.array_equal(plan(x).toarray(), matrix(rounds, x))


def test_a_matrix_is_the_callers_own():
    x = np.arange(1.0, 9.0)
    plan = sparse_plan(rounds, x)
    J = plan(x)
    J.data[:], J.indices[:] = 0.0, 0
    assert np.array_equal(plan(x).toarray(), matrix(rounds, x))


def test_a_plan_prints_its_colours():
    plan = sparse_plan(arrow, np.ones(6))
    assert (
        str(plan)
        == """\
SparsePlan(6 x 6, 16 entries, 2 products and 1 transposed ones, for all arguments of these types)
333333
12....
1.2...
1..2..
1...2.
1....2"""
    )
    assert plan.svg().count("<rect") == 17
    assert str(sparse_plan(rounds, np.ones(1000))).count("\n") == 63


def stencil(x: Any) -> Any:
    return x[2:] * x[:-2] - np.exp(x[1:-1])


def test_memory_is_that_of_the_entries():
    x = np.linspace(0.0, 1.0, 30_000)
    assert count_bytes(lambda: jacobian(stencil, sparse=True)(x)) < 1_000 * len(x)
    plan = sparse_plan(stencil, x)
    plan(x)
    assert count_bytes(lambda: plan(x)) < 200 * len(x)


def test_the_program_of_a_gradient_has_the_pattern_of_the_hessian():
    x = np.ones(8)
    from lineara import grad

    pattern = sparsity(grad(lambda x: np.sum(x[1:] * x[:-1] ** 2)), x).toarray()
    expected = band(8, -1, 0, 1)
    expected[7, 7] = False
    assert np.array_equal(pattern, expected)
    assert trace(grad(energy), x).size() > 0


@pytest.mark.parametrize("line", SMOOTH, ids=str)
def test_no_primitive_has_an_entry_that_its_pattern_lacks(line: Any):
    primitive, params = line.primitive, line.params
    given = [line.args[i] for i in line.active]
    if any(np.asarray(a).dtype.kind != "f" for a in given):
        return

    def f(*active: Any) -> Any:
        at = dict(zip(line.active, active, strict=True))
        return primitive(*[at.get(i, a) for i, a in enumerate(line.args)], **params)

    y, L = linearize(f, *given)
    if not isinstance(y, float | np.floating | np.ndarray) or np.asarray(y).dtype.kind != "f":
        return
    at = dict(zip(line.active, seeds([type_of(a) for a in given], 0), strict=True))
    args = tuple([at.get(i, a) for i, a in enumerate(line.args)])
    pattern = applied(primitive, args, params, type_of(y)).matrix.toarray()
    J = L.to_dense()
    assert pattern.shape == J.shape
    assert not np.any((J != 0) & ~pattern)
    assert np.allclose(L.to_sparse().toarray(), J, rtol=1e-9, atol=1e-12)


# --- programs within a differentiation ------------------------------------------------------------


@jit
def neighbours(x):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        y[i] = x[i] * x[i - 1]
    return y


@jit
def chain(x):
    s = 0.0
    for i in range(1, x.shape[0]):
        s = s + (x[i] - x[i - 1] ** 2) ** 2
    return s


def test_a_program_within_a_function_has_its_pattern():
    x = np.linspace(0.5, 1.5, 9)
    for f in (neighbours, lambda x: np.sin(neighbours(x)) * neighbours(x[::-1])):
        dense = jacobian(f)(x)
        found = jacobian(f, sparse=True)(x)
        assert np.allclose(found.toarray(), dense, rtol=1e-13)
        assert np.array_equal(linearize(f, x)[1].pattern().toarray(), dense != 0)


def test_a_program_has_a_sparse_hessian():
    x = np.linspace(0.5, 1.5, 9)
    found = hessian(chain, sparse=True)(x)
    assert np.allclose(found.toarray(), hessian(chain)(x), rtol=1e-13)
    assert found.nnz == 3 * 9 - 2


def test_a_program_of_several_arguments_and_results_has_its_pattern():
    @jit
    def f(a, b, k):
        return a * b, b * b, k + 1

    def g(a, b):
        p, q, n = f(a, b, 3)
        return np.concatenate([p * n, q])

    a, b = np.arange(1.0, 4.0), np.arange(2.0, 5.0)
    pattern = linearize(g, a, b)[1].pattern().toarray()
    eye, none = np.eye(3, dtype=bool), np.zeros((3, 3), bool)
    assert np.array_equal(pattern, np.block([[eye, eye], [none, eye]]))
    alone = linearize(lambda b: g(a, b), b)[1].pattern().toarray()
    assert np.array_equal(alone, np.concatenate([eye, eye]))

"""Factorisations and solves by LAPACK: of large matrices and of stacks, against the interpreter."""

import ctypes
import linecache

import numpy as np
import pytest
import scipy.linalg
from test_native import NATIVE, agree

import lineara
from lineara.engines.native import alone, symbols
from lineara.engines.native.lower import lowered
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")


def drawn(n, lead=()):
    """A stack of matrices whose rows have to be exchanged, and one of positive ones."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(*lead, n, n))
    a[..., :1, :1] = 0.0 if n > 1 else 2.0
    return a, (a @ np.swapaxes(a, -1, -2)) / max(n, 1) + np.eye(n)


CASES = {
    "solve": lambda a, p: np.linalg.solve(a, p),
    "solve of one column": lambda a, p: np.linalg.solve(a, p[..., :1]),
    "solve of a transposed": lambda a, p: np.linalg.solve(np.swapaxes(a, -1, -2), p),
    "inverse": lambda a, p: np.linalg.inv(a) @ p,
    "determinant": lambda a, p: np.linalg.det(a / 4.0) * p[..., 0, 0],
    "logarithm": lambda a, p: np.linalg.slogdet(a)[1] * p[..., 0, 0],
    "sign": lambda a, p: np.linalg.slogdet(-a)[0] * p[..., 0, 0],
    "cholesky": lambda a, p: np.linalg.cholesky(p) * a,
    "upper cholesky": lambda a, p: np.linalg.cholesky(p, upper=True) * a,
}
OF_ONE = {
    "lower triangle": lambda a, p: scipy.linalg.solve_triangular(p, a, lower=True),
    "lower triangle of one column": lambda a, p: scipy.linalg.solve_triangular(p, a[0], lower=True),
    "upper triangle": lambda a, p: scipy.linalg.solve_triangular(p.T, a.T),
    "transposed triangle": lambda a, p: scipy.linalg.solve_triangular(p, a, trans=1, lower=True),
    "solve by Cholesky": lambda a, p: scipy.linalg.cho_solve(scipy.linalg.cho_factor(p), a),
}


def asks_nobody(g, *args):
    """The values are the interpreter's, and no run asks Python."""
    p = lineara.trace(g, *args)
    assert NATIVE.takes(p.program, p.name) is None
    agree(p.program, p.name, *p.operands(args), engines=[NATIVE])
    kernel = NATIVE.kernel(p.program, p.name)
    asked = {s.what for s, (n, _) in zip(kernel.code.sites, kernel.asked, strict=True) if n}
    assert not [what for what in asked if not what.startswith("any(")]


def of_one_matrix(a, b):
    """Solutions, determinant and inverse of one matrix, in a branch and after a write, too."""
    total, x = 0.0, b[:, 0]
    for i in range(3):
        s = a + x[:, None] * x * 0.1 + np.eye(4) * i
        x = np.linalg.solve(s, b @ x)
        total = total + np.linalg.det(s) + x @ np.linalg.solve(s, b[i])
        if total > 1.0:
            x = np.linalg.solve(s, x) + np.linalg.inv(s)[i]
        s[0, i] = s[0, i] + 1.0
        total = total + np.linalg.slogdet(s)[1] + np.linalg.solve(s.T, x)[i]
    return total


def test_what_is_factored_in_a_block_is_not_factored_again():
    """In each round once, where a branch asks once more, and of the transpose after the write."""
    a, b = drawn(4)
    for f in (of_one_matrix, lineara.grad(of_one_matrix, (0, 1))):
        p = lineara.jit(f).program(a, b)
        for scale in (1.0, -3.0, 0.5):
            agree(p.program, p.name, scale * a, b, engines=[NATIVE])
    p = lineara.jit(of_one_matrix).program(a, b)
    text = lowered(p.program, p.name, True, False).text
    assert text.count('call i1 @"lineara.factor.4"') == 3 * 4


AROUND = """
def waved(x: f64[3,1];) -> (f64[3,1];) = let y = sin(x) in cos(y)
def f(a: f64[3,3], b: f64[3,1];) -> (f64[3,1];) =
  let x = solve(a, b) in
  let y = waved(x;) in
  let z = waved(y;) in
  solve(a, z)
"""


def test_what_a_block_has_factored_is_known_after_a_call():
    text = lowered(parse(AROUND), "f", True, False).text
    assert text.count('call i1 @"lineara.factor.3"') == 1


def test_what_is_factored_lies_no_longer_than_the_matrix():
    def slots(n):
        pairs = [
            f"let x{i + 1} = solve(a{i}, x{i}) in let a{i + 1} = a{i} * a{i} in" for i in range(n)
        ]
        program = parse(f"""
            def f(a0: f64[3,3], x0: f64[3,1];) -> (f64[3,3], f64[3,1];) =
              {" ".join(pairs)} (a{n}, x{n};)
        """)
        return lowered(program, "f", True, False).text.count(" x i8], align 64")

    assert slots(3) == slots(6)


def test_a_matrix_without_a_solution_is_told_by_the_line_that_asks():
    def f(a, b):
        y = np.linalg.det(a) + b[0]
        return y + np.linalg.solve(a, b)[0]

    p = lineara.jit(f).program(np.eye(3), np.ones(3))
    told = agree(p.program, p.name, np.zeros((3, 3)), np.ones(3), engines=[NATIVE])
    assert issubclass(told[0], np.linalg.LinAlgError)


SIZES = [(25, ()), (70, ()), (1, (3,)), (2, (3,)), (4, (2, 3)), (26, (2,))]
SLOW = pytest.mark.slow("each is compiled three times")
EACH = [
    pytest.param(case, *size, id=f"{case}-{size}", marks=SLOW if (i + j) % 3 else ())
    for i, size in enumerate(SIZES)
    for j, case in enumerate([*CASES, *(() if size[1] else OF_ONE)])
]


@pytest.mark.parametrize(("case", "n", "lead"), EACH)
def test_values_and_derivatives_are_the_interpreters_and_python_is_not_asked(case, n, lead):
    f, args = (CASES | OF_ONE)[case], drawn(n, lead)
    asks_nobody(f, *args)
    weights = np.cos(np.arange(f(*args).size)).reshape(f(*args).shape)
    asks_nobody(lineara.grad(lambda a, p: np.sum(weights * f(a, p)), argnums=(0, 1)), *args)


@pytest.mark.parametrize("n", [64, 65, 130, 260])
def test_tangents_and_cotangents_of_a_factor_are_the_interpreters(n):
    """They are made in halves of more than 64 rows: of none, of two, of four, of eight."""
    rng = np.random.default_rng(n)
    _, p = drawn(n)
    t, w = rng.normal(size=(2, n, n))
    gradient = lineara.grad(lambda p: np.sum(w * np.linalg.cholesky(p)))
    asks_nobody(lambda p, t: lineara.jvp(np.linalg.cholesky, (p,), (t,))[1], p, t)
    asks_nobody(lambda p, t: lineara.jvp(gradient, (p,), (t,))[1], p, t)


def test_what_is_factored_once_is_read_by_all_who_need_it():
    """From 192 rows on factors are values: of the program and of its derivative."""
    a, p = drawn(192)

    def f(a, b):
        x = np.linalg.solve(a, b)
        return np.linalg.slogdet(a)[1] + np.linalg.det(a / 11.0) + x @ b

    for g in (f, lineara.grad(f, argnums=(0, 1))):
        asks_nobody(g, a, p[0])


@pytest.mark.parametrize("lead", [(), (3,)])
@pytest.mark.parametrize("case", ["solve", "inverse", "cholesky", "determinant", "logarithm"])
def test_what_has_no_solution_is_numpys_error_or_value(case, lead):
    """Of a stack one matrix is enough; numbers that are not finite are NumPy's affair, too."""
    n = 3 if lead else 30
    p = lineara.trace(CASES[case], *drawn(n, lead))
    a, positive = drawn(n, lead)
    singular, odd, negative = a.copy(), a.copy(), positive.copy()
    for x, at, value in ((singular, np.s_[-1, :], 0.0), (odd, (1, 2), np.nan)):
        x[(-1, *at) if lead else at] = value
    negative[(-1,) * negative.ndim] = -1.0
    for args in ((singular, positive), (odd, positive), (a, negative), (a, odd)):
        agree(p.program, p.name, *p.operands(args), engines=[NATIVE])


def solving(a, b):
    return np.linalg.solve(a, b)


def reading(x, k):
    s = 0.0
    for i in range(3):
        s = s + x[k[i]]
    return s


def writing(x, k):
    y = np.zeros(3)
    y[k[0]] = x[0]
    return y


@pytest.mark.parametrize("engine", ["native", "interpreter"])
@pytest.mark.parametrize(
    ("f", "good", "bad", "line"),
    [
        (solving, (np.eye(30), np.ones((30, 2))), (np.zeros((30, 30)), np.ones((30, 2))), 1),
        (reading, (np.ones(4), np.arange(3)), (np.ones(4), np.array([0, 9, 1])), 3),
        (writing, (np.ones(4), np.arange(3)), (np.ones(4), np.array([7, 0, 0])), 2),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_an_error_names_the_line_of_the_user(f, good, bad, line, engine):
    g = lineara.jit(f, engine=engine)
    g(*good)
    with pytest.raises((np.linalg.LinAlgError, IndexError)) as raised:
        g(*bad)
    told = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
    source = linecache.getline(__file__, f.__code__.co_firstlineno + line).strip()
    where = f"at test_native_matrices.py:{f.__code__.co_firstlineno + line}: {source}"
    assert told.endswith(where)


@pytest.mark.parametrize("shapes", [((0, 0), (0, 2)), ((30, 30), (30, 0)), ((0, 3, 3), (0, 3, 1))])
def test_what_is_empty_stays_so(shapes):
    a, b = map(np.zeros, shapes)
    p = lineara.trace(np.linalg.solve, a + np.eye(*a.shape[-2:]), b)
    agree(p.program, p.name, *p.operands((a + np.eye(*a.shape[-2:]), b)))


def test_operands_lie_as_they_like_and_are_not_written():
    a, p = drawn(60)
    cut, turned = a[::2, ::2], np.asfortranarray(p[:30, :30])
    for case in ("solve", "inverse", "cholesky"):
        f = CASES[case]
        asks_nobody(lambda a, p, f=f: f(a[::2, ::2], p[:30, :30].T), a, p)
        given = cut.copy(order="F"), turned.copy(order="F")
        g = lineara.jit(f, engine="native")
        np.testing.assert_allclose(g(*given), f(cut, turned), atol=1e-12)
        np.testing.assert_array_equal(given[0], cut)
        np.testing.assert_array_equal(given[1], turned)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("case", ["solve", "triangle"])
def test_operands_in_c_order_last_until_all_matrices_are_made(case, turned):
    """A result of the same size has no memory of a copy that is still to be read."""

    def f(a, p):
        b = np.swapaxes(a, -1, -2) if turned else a
        of = np.swapaxes(p, -1, -2)
        return np.linalg.solve(of, b) if case == "solve" else scipy.linalg.solve_triangular(of, b)

    asks_nobody(f, *(drawn(3, (3,)) if case == "solve" else drawn(26)))


def test_stacks_of_different_shapes_meet():
    p, q = drawn(3, (4, 1))[1], drawn(3, (2,))[1]
    asks_nobody(lineara.grad(lambda a, q: np.sum(np.linalg.solve(a, q)), argnums=(0, 1)), p, q)
    asks_nobody(lambda a, b: np.linalg.solve(a, b), p[0, 0], q)


def test_exact_code_asks_numpy():
    a, p = drawn(30)
    traced = lineara.trace(CASES["solve"], a, p)
    agree(traced.program, traced.name, *traced.operands((a, p)))


# --- one thread -----------------------------------------------------------------------------------


class Threads:
    """Threads that are none: what they are told is noted."""

    def __init__(self, ours, others):
        self.count, self.told = ours, []
        whole = ctypes.CFUNCTYPE(ctypes.c_int32)
        self.functions = {
            "get": whole(lambda: self.count),
            "set": ctypes.CFUNCTYPE(None, ctypes.c_int32)(self.tell),
            "other": whole(lambda: others),
        }
        self.state = (ctypes.c_int64 * 3)()

    def tell(self, n):
        self.told.append(n)
        self.count = n

    def address(self, name):
        if name == "state":
            return ctypes.addressof(self.state)
        return ctypes.cast(self.functions[name], ctypes.c_void_p).value


@pytest.mark.parametrize(
    ("n", "threads", "told"),
    [(30, (2, 10**6), [1, 2]), (30, (1, 10**6), []), (30, (2, -2), []), (4, (2, 10**6), [])],
    ids=["they would wait", "there is one", "there is room", "it is small"],
)
@pytest.mark.parametrize("case", ["solve", "product"])
def test_scipys_threads_rest_while_code_calls_it(case, n, threads, told, monkeypatch):
    stub = Threads(*threads)
    monkeypatch.setattr(symbols, "of_threads", stub.address)
    monkeypatch.setattr(alone, "of_threads", stub.address)
    a, p = drawn(n, () if n > 24 else (2,) * (case == "solve"))
    f = CASES[case] if case == "solve" else (lambda a, p: np.concatenate([a, a]) @ p)
    traced = lineara.trace(lambda a, p: f(a, p) * (1.0 + 0.125 * threads[1] + threads[0]), a, p)
    agree(traced.program, traced.name, *traced.operands((a, p)), engines=[NATIVE])
    assert stub.told == told * (len(stub.told) // 2)
    assert bool(stub.told) == bool(told)
    assert [*stub.state[:2]] == [0, 0]
    assert stub.count == threads[0]

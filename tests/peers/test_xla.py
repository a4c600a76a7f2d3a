"""The engine that JAX brings: values, derivatives and exceptions are those of the interpreter."""

import random
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import lineara
from lineara.engines import engine_of, run
from lineara.errors import LinearaError, ProgramError, StagingError
from lineara.linear_a.parse import parse

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
OPTIONS = pytest.importorskip("lineara.engines.xla").OPTIONS
factorizations = pytest.importorskip("lineara.engines.xla.factorizations")

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "linear_a"), str(TESTS / "engines"), str(TESTS / "ops")]
try:
    from staged import case
    from test_every_dtype import PRIMITIVES
    from test_native_operations import CONSTANTS, WAYS, derivatives, numbers
finally:
    del sys.path[:3]

BITS = 32
LIMIT = 1e-9


def same(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        assert isinstance(a, jax.Array | np.generic | np.ndarray)
        assert a.dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), b, rtol=LIMIT, atol=LIMIT)


def holds(line):
    try:
        one = case(line)
    except LinearaError:
        return  # its size or its value is no part of a program: test_primitives.py
    smooth = line in PRIMITIVES
    program = derivatives(one.program) if smooth else one.program
    for name in WAYS[:3] if smooth else WAYS[:1]:
        values = numbers(program.defs[name], one.values, 0)
        if engine_of("jax").takes(program, name) is not None:  # elements of a ring
            assert "object" in str(program.defs[name].results)
            continue
        ours = run(program, name, *values, engine="jax").results
        with np.errstate(all="ignore"):
            same(ours, run(program, name, *values).results)


LINES = [*PRIMITIVES, *CONSTANTS]
SHARES = 10


@pytest.mark.parametrize("share", range(SHARES))
def test_operations_and_their_derivatives(share, request):
    """Four of each share, which are drawn; all with --bounds, as `make test-xla` has it."""
    lines, option = LINES[share::SHARES], request.config.option
    if not option.bounds:
        lines = random.Random(f"{option.seed} {share}").sample(lines, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines:
            holds(line)


def solved(x):
    a = x @ x.T + 10.0 * np.eye(len(x))
    low = np.linalg.cholesky(a)
    z = scipy.linalg.solve_triangular(low, x[:, 0], lower=True)
    return z @ z + np.sum(np.linalg.solve(a, x)) + np.linalg.slogdet(a)[1] + np.linalg.inv(a)[0, 1]


@pytest.mark.parametrize("n", [4, 40])  # without factors that are kept, and with them
def test_solves_and_factorisations_stay_on_the_device(n):
    x = np.random.default_rng(n).normal(size=(n, n))

    def slope(x):
        return np.sum(lineara.grad(solved)(x) ** 2)

    for f in (solved, lineara.grad(solved), lineara.grad(slope)):
        with lineara.engine("jax", host="error"):
            ours = lineara.jit(f)(x)
        np.testing.assert_allclose(ours, f(x), rtol=1e-10, atol=1e-12)


def test_every_factorisation_of_jaxs_agrees():
    own = {*factorizations.OWN} - {"lu_factors"}  # which the test before this one has
    lines = [line for line in PRIMITIVES if str(line).partition("-")[0] in own]
    assert {str(line).partition("-")[0] for line in lines} == own
    for line in lines:
        holds(line)


def fill(x):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def root(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def nested(x):
    t = 0.0
    for i in range(3):
        y = x * (i + 1)
        while y > 1.0:
            y = 0.7 * y
            t = t + y * y
    return t


def branches(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s = s + x[i] ** 2
        elif x[i] > 0.2:
            s = s * 0.99 + np.sin(x[i])
        else:
            s = s - x[i]
    return s


def stack(x):
    ys = []
    for v in x:
        if v > 0.3:
            ys.append(np.exp(v) * v)
    return sum(ys)


def table(x):
    return np.sum(np.cumsum(x) * x[::-1]) + np.sum(np.sin(np.outer(x, x)) @ x)


V = np.linspace(0.05, 0.95, 37)
FUNCTIONS = [
    (fill, V), (root, 7.0), (nested, 1000.0), (branches, V), (stack, V), (table, V),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x"), FUNCTIONS, ids=[f.__name__ for f, _ in FUNCTIONS])
def test_functions_and_their_derivatives_of_two_orders(f, x):
    for transformed in (f, lineara.grad(f), lineara.hessian(f)):
        ours = lineara.jit(transformed, engine="jax")(x)
        assert isinstance(ours, jax.Array)
        assert ours.dtype == np.float64
        np.testing.assert_allclose(np.asarray(ours), transformed(x), rtol=1e-9, atol=1e-9)


def test_a_while_loop_has_room_for_as_many_rounds_as_it_goes():
    g = lineara.jit(lineara.grad(nested), engine="jax")
    for x in (2.0, 1e30, 1e300, 5.0):
        np.testing.assert_allclose(g(x), lineara.grad(nested)(x), rtol=1e-9)
    assert g.captures == 1


def test_arrays_of_jax_are_arguments_and_a_program_serves_both_kinds():
    f = lineara.jit(lineara.value_and_grad(lambda x, w: np.sum(np.tanh(x @ w))), engine="jax")
    x, w = np.ones((3, 4), np.float32), np.full((4, 2), 0.1, np.float32)
    value, slope = f(jnp.asarray(x), jnp.asarray(w))
    expected = lineara.value_and_grad(lambda x, w: np.sum(np.tanh(x @ w)))(x, w)
    assert value.dtype == slope.dtype == np.float32
    np.testing.assert_allclose(slope, expected[1], rtol=1e-5)
    np.testing.assert_allclose(f(x, w)[1], expected[1], rtol=1e-5)
    assert f.captures == 1


def test_it_can_be_named_around_calls():
    f = lineara.jit(lineara.grad(fill))
    here = f(np.linspace(0.1, 0.9, 5))
    with lineara.engine("jax"):
        there = f(np.linspace(0.1, 0.9, 5))
    assert isinstance(there, jax.Array)
    np.testing.assert_allclose(there, here, rtol=1e-14)


def test_memory_of_arguments_is_given_to_results():
    slope = lineara.jit(lineara.grad(lambda x: np.sum(np.sin(x) * x)), engine="jax")
    with jax.enable_x64(True):
        step = jax.jit(lambda x: x - 0.1 * slope(x), donate_argnums=0)
        x = jax.numpy.linspace(0.0, 1.0, 5)
        expected = x - 0.1 * (np.sin(x) + x * np.cos(x))
        stepped = step(x)
    np.testing.assert_allclose(stepped, expected, rtol=1e-14)
    assert x.is_deleted()


def test_float64_is_local_to_the_call():
    assert lineara.jit(lambda x: x * 2.0, engine="jax")(1.5).dtype == np.float64
    assert jnp.asarray(1.5).dtype == np.float32


def test_it_is_a_part_of_functions_of_jax():
    f = lineara.jit(lambda x: np.sin(x) * x, engine="jax")
    x = jnp.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(jax.jit(f)(x), np.sin(x) * x, rtol=1e-6)
    rows = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(jax.vmap(f)(rows), np.sin(rows) * rows, rtol=1e-6)


def test_what_may_have_to_be_done_again_is_refused_within_a_program_of_jax():
    for f in (lineara.grad(root), checked):
        with pytest.raises(ProgramError, match="such a run may have to be done again, and within"):
            jax.jit(lineara.jit(f, engine="jax"))(jnp.asarray(3.0))


def test_functions_that_go_to_jax_are_a_part_of_its_programs():
    x = jnp.linspace(0.1, 1.0, 4)
    for f, calls_back in ((table, False), (lambda x: checked(x[0]), True)):
        slope = jax.jit(jax.grad(lineara.to_jax(f)))
        text = slope.lower(x).as_text()
        assert ("callback" in text) is calls_back
        np.testing.assert_allclose(slope(x), lineara.grad(f)(np.asarray(x)), rtol=1e-5)


def test_it_is_one_operation_of_a_differentiation():
    f = lineara.jit(lambda x: np.sin(x) * x, engine="jax")
    slope = lineara.grad(lambda x: 2.0 * f(x))(1.3)
    assert type(slope) is float
    assert slope == pytest.approx(2 * (np.cos(1.3) * 1.3 + np.sin(1.3)), rel=1e-14)


def checked(x):
    if x < 0:
        raise ValueError(f"negative: {x}")
    return np.sqrt(x)


def test_exceptions_are_the_users():
    f = lineara.jit(checked, engine="jax")
    assert float(f(4.0)) == 2.0
    with pytest.raises(ValueError, match=r"^negative: -1\.0\n"):
        f(-1.0)
    assert float(f(9.0)) == 3.0


def at(x, i):
    return x[i] * 2


def test_an_index_out_of_bounds_is_no_other_element():
    f = lineara.jit(at, engine="jax")
    assert float(f(V, -1)) == V[-1] * 2
    for i in (len(V), -len(V) - 1):
        with pytest.raises(IndexError, match="out of bounds"):
            f(V, i)


def test_what_python_raises_for_numbers_is_raised():
    f = lineara.jit(lambda x, y: x / y, engine="jax")
    assert float(f(1.0, 4.0)) == 0.25
    with pytest.raises(ZeroDivisionError):
        f(1.0, 0.0)
    g = lineara.jit(lambda n, x: n * n * n * x, engine="jax")
    assert float(g(3, 2.0)) == 54.0
    with pytest.raises(StagingError, match="bits"):
        g(2**40, 2.0)


def said(x):
    print("x is", x)
    return x * x


def test_what_prints_is_run_by_the_interpreter(capsys):
    f = lineara.jit(said, engine="jax")
    with pytest.warns(UserWarning, match="run once more by the interpreter"):
        assert f(3.0) == 9.0
    assert f(4.0) == 16.0
    assert capsys.readouterr().out == "x is 3.0\nx is 4.0\n"


def test_what_the_host_evaluates_is_called_back_or_refused():
    f = lineara.jit(lambda a: scipy.special.jv(2.0, a), engine="jax")
    a = np.array([0.5, 1.5])
    with pytest.warns(UserWarning, match="f has jv") as told:
        np.testing.assert_allclose(f(a), scipy.special.jv(2.0, a), rtol=1e-12)
    assert str(told[0].message) == (
        "f has jv, which NumPy and SciPy evaluate on the host each time that XLA asks; "
        "lineara.engine('jax', host='error') refuses them"
    )
    refusing = lineara.jit(
        lambda a: scipy.special.jv(2.0, a), engine=engine_of("jax", host="error")
    )
    with pytest.raises(ProgramError) as refused:
        refusing(a)
    assert str(refused.value) == (
        "jv is evaluated by NumPy and SciPy on the host, and host='error' refuses that; take "
        "host='call', which calls them back"
    )


def test_a_write_to_an_array_that_cannot_be_written_is_refused():
    def clears(x):
        x[0] = 0.0
        return x.sum()

    f = lineara.jit(clears, engine="jax")
    x = np.ones(3)
    assert float(f(x)) == 2.0
    assert x[0] == 0.0
    with pytest.raises(StagingError, match=r"is an array of jaxlib and cannot be written"):
        f(jnp.ones(3))


RECURSION = """
def down(n: f64, x: f64;) -> (f64;) =
  let k: f64 = 0.5 in
  let p: bool = less(n, k) in
  cond[stop, more](p, n, x;)
def stop(n: f64, x: f64;) -> (f64;) = let (;) = drop(n) in (x;)
def more(n: f64, x: f64;) -> (f64;) =
  let k: f64 = 1.0 in
  let m: f64 = n - k in
  let y: f64 = x * x in
  down(m, y;)
"""


def test_a_recursion_whose_depth_depends_on_values_is_refused():
    with pytest.raises(ProgramError, match=r"^down calls itself as values have"):
        run(parse(RECURSION), "down", 3.0, 0.9, engine="jax")


def elements(n, x):
    y = np.zeros(n)
    for i in range(n):
        y[i] = x * i
    return y.sum()


def test_a_size_that_an_argument_says_is_compiled_for_each():
    f = lineara.jit(elements, engine="jax")
    assert [float(f(n, 2.0)) for n in (3, 4, 3)] == [6.0, 12.0, 6.0]


OPEN = """
def spread(n: i64, x: f64;) -> (f64;) =
  let y: f64[n] = broadcast_to[shape=(n,)](x) in
  sum[axis=(0,), keepdims=false](y)
def f(a: f64, x: f64;) -> (f64;) =
  let n: i64 = astype[dtype=i64](a) in
  spread(n, x;)
"""


def test_a_size_that_depends_on_values_is_refused():
    program = parse(OPEN)
    assert run(program, "f", 3.0, 2.0).results == (6.0,)
    with pytest.raises(ProgramError) as error:
        run(program, "f", 3.0, 2.0, engine="jax")
    assert str(error.value) == (
        "n is a size in spread and depends on values, but XLA has to know all sizes; leave "
        "engine= out, or make it follow from the shapes of the arguments"
    )
    assert [*map(float, run(program, "spread", 3, 2.0, engine="jax").results)] == [6.0]


def mixture(m, means, x):
    squares = m.sum((x[:, None, :] - means[None]) ** 2, 2)
    return m.sum(m.log(m.sum(m.exp(-0.5 * squares), 1)))


def rosenbrock(m, x):
    return m.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def process(m, theta, x, y):
    squares = (x[:, None] - x[None]) ** 2
    k = m.exp(theta[0]) * m.exp(-0.5 * squares * m.exp(theta[1])) + 0.1 * m.eye(x.shape[0])
    return 0.5 * y @ m.linalg.solve(k, y) + m.sum(m.log(m.diagonal(m.linalg.cholesky(k))))


NUMBERS = np.random.default_rng(7).normal(size=2000)
STRAIGHT = [
    (mixture, (NUMBERS[:250].reshape(25, 10), NUMBERS[:1000].reshape(100, 10)), 1.0),
    (rosenbrock, (NUMBERS,), 1.0),
    (process, (NUMBERS[:2], NUMBERS[:200], NUMBERS[200:400]), 1.2),
]


@pytest.mark.parametrize(("f", "args", "more"), STRAIGHT, ids=[f.__name__ for f, *_ in STRAIGHT])
def test_a_value_with_its_gradient_takes_what_jaxs_takes(f, args, more):
    """Of XLA's own counts: operations, bytes and routines of LAPACK's; `more` times as many."""
    ours = lineara.jit(lineara.value_and_grad(lambda *a: f(np, *a)), engine="jax")
    theirs = jax.jit(jax.value_and_grad(lambda *a: f(jnp, *a)))
    with jax.enable_x64(True):
        np.testing.assert_allclose(ours(*args)[1], theirs(*args)[1], rtol=1e-9)
        staged = ours.program(*args)
        (compiled,) = staged.program.noted["jax"].values()
        texts = [
            compiled.call.lower(*staged.operands(args, {})).compile(compiler_options=OPTIONS),
            theirs.lower(*args).compile(),
        ]
    counts = [text.cost_analysis() for text in texts]
    for what in ("flops", "bytes accessed"):
        assert counts[0][what] <= more * 1.01 * counts[1][what]
    routines = [re.findall(r'custom_call_target="(\w+)"', text.as_text()) for text in texts]
    assert sorted(routines[0]) == sorted(routines[1])


def test_loops_that_write_arrays_copy_none():
    """Of XLA's text: a round that copies an array makes the loop quadratic."""
    f = lineara.jit(lineara.value_and_grad(fill), engine="jax")
    f(V)
    (compiled,) = f.program(V).program.noted["jax"].values()
    with jax.enable_x64(True):
        text = compiled.call.lower(V).compile(compiler_options=OPTIONS).as_text()
    bodies = [part for part in text.split("\n\n") if "while/body" in part and "ENTRY" not in part]
    assert bodies
    lines = [line for part in bodies for line in part.splitlines()]
    assert not [line for line in lines if f"[{len(V)}]{{0}} copy(" in line]

"""Jacobians of programs: the basis goes through the derivative in one call, in lanes."""

import numpy as np
import pytest

import lineara
from lineara import hessian, jacfwd, jacobian, jacrev, jit
from lineara.engines import Ask, run
from lineara.linear_a import syntax as ir

X = np.random.default_rng(0).uniform(0.01, 0.09, 5)


def loop(x):
    s = 0.0
    for i in range(x.shape[0] - 1):
        s = s + (1 - x[i]) ** 2 + 100 * (x[i + 1] - x[i] ** 2) ** 2
    return s


def fills(x):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + x[i] * x[i - 1]
    return y


def branches(x):
    s = 0.0
    for i in range(len(x)):
        s = s + np.sin(x[i]) * s if x[i] > 0.05 else s * 0.9 + x[i] * x[i - 1]
    return s


def until(x):
    s, k = 1.0, 0
    while k < len(x) and s < 1.001:
        s = s + x[k] * s * 0.1
        k += 1
    return s * s


def chosen(x):
    return np.sum(x**3) if x[0] > 0 else np.sum(x)


def dead(x):
    return np.sum(np.where(x > 0.05, np.sqrt(x - 0.05), 0.0) * x)


@lineara.custom_jvp
def cubed(x):
    return x**3


cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3 * primals[0] ** 2 * tangents[0]))


def ruled(x):
    return np.sum(cubed(x) * x)


SCALARS = [loop, branches, until, chosen, dead, ruled]


@pytest.mark.parametrize("f", SCALARS, ids=lambda f: f.__name__)
def test_a_hessian_is_the_same_by_every_way(f):
    gradient = lineara.grad(f)
    ways = [hessian(jit(f)), jit(hessian(f)), jit(jacrev(gradient)), jacobian(jit(gradient))]
    with np.errstate(invalid="ignore"):  # the square roots of dead lanes
        expected = hessian(f)(X)
        for way in ways:
            assert np.allclose(way(X), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("jac", [jacfwd, jacrev, jacobian], ids=lambda j: j.__name__)
def test_a_jacobian_is_the_same_by_every_way(jac):
    expected = jac(fills)(X)
    for way in (jac(jit(fills)), jit(jac(fills)), jit(jac(jit(fills)))):
        assert np.allclose(way(X), expected, rtol=1e-14)
    third = jacobian(hessian(jit(loop)))(X)
    assert np.allclose(third, jacobian(hessian(loop))(X), rtol=1e-13)


def works(f, n):
    """The work of a program, and how many leaves its text has."""
    x = np.linspace(0.1, 0.9, n)
    program = jit(f).program(x)
    work = run(program.program, program.name, *program.operands((x,)), ask=Ask(work=True)).work
    return work, sum([1 for d in program.program.defs.values() for _ in ir.leaves(d.body)])


@pytest.mark.parametrize(
    "f", [hessian(loop), jacfwd(fills), jacrev(fills)], ids=["hessian", "jacfwd", "jacrev"]
)
def test_the_text_is_one_at_every_size_and_the_work_that_of_the_rows(f):
    (few, short), (many, long) = works(f, 40), works(f, 80)
    assert short == long
    assert many < 4.1 * few


def test_what_depends_on_no_direction_is_calculated_once():
    def f(x):
        return np.exp(np.sin(x)) * x

    program = jit(jacobian(f)).program(X)
    every = [e for d in program.program.defs.values() for e in ir.leaves(d.body)]
    of = {e.name: e.args[0].type.shape for e in every if isinstance(e, ir.Prim) and e.args}
    assert of["exp"] == of["sin"] == of["cos"] == X.shape

"""A container that stands in two places of the arguments: read it is two, written it is refused."""

from types import SimpleNamespace

import pytest

from lineara import jvp, linearize, trace, value_and_grad, vjp
from lineara.errors import MutationError

RUNS = {
    "grad": lambda f, x: value_and_grad(f)(x)[0],
    "linearize": lambda f, x: linearize(f, x)[0],
    "jvp": lambda f, x: jvp(f, (x,), (x,))[0],
    "vjp": lambda f, x: vjp(f, x)[0],
    "trace": lambda f, x: trace(f, x)(x),
}


def _set(x, key, value):
    x[key] = value


WRITES = {  # how one of the two is written
    "item": ([1.0, 2.0], lambda a: _set(a, 0, 7.0)),
    "append": ([1.0, 2.0], lambda a: a.append(7.0)),
    "slice": ([1.0, 2.0], lambda a: _set(a, slice(1, 2), [])),
    "reverse": ([1.0, 2.0], lambda a: a.reverse()),
    "pop": ([1.0, 2.0], lambda a: a.pop()),
    "key": ({"k": 1.0}, lambda a: _set(a, "k", 7.0)),
    "new key": ({"k": 1.0}, lambda a: a.update(z=1.0)),
    "no key": ({"k": 1.0}, lambda a: a.pop("k")),
    "field": (SimpleNamespace(k=1.0), lambda a: setattr(a, "k", 7.0)),
    "inside": ([[1.0], 2.0], lambda a: _set(a[0], 0, 7.0)),
}


def _numbers(x):
    if isinstance(x, float):
        return [x]
    parts = vars(x).values() if isinstance(x, SimpleNamespace) else x
    parts = x.values() if isinstance(x, dict) else parts
    return [v for part in parts for v in _numbers(part)]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_in_one_place_is_refused(write, run, order):
    x, act = WRITES[write]

    def f(p):
        one, other = p["places"][::order]
        act(one)
        return sum(_numbers(other), p["more"])

    with pytest.raises(MutationError, match="was given in several places was written in one"):
        RUNS[run](f, {"places": (x, x), "more": 1.0})


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
@pytest.mark.parametrize("written", [0, 1])
def test_two_arguments_are_two_places(argnums, written):
    def f(*args):
        args[written][0] = 5.0
        return args[1 - written][0] * 1.0

    x = [1.0, 2.0]
    with pytest.raises(MutationError, match="was written in one of them"):
        value_and_grad(f, argnums)(x, x)


@pytest.mark.parametrize("run", RUNS)
def test_each_place_that_is_only_read_has_its_own_gradient(run):
    x = [1.0, 2.0]
    f = lambda p: 3 * p[0][0] + 5 * p[1][0]  # noqa: E731
    assert RUNS[run](f, [x, x]) == 8.0
    assert value_and_grad(f)([x, x])[1] == [[3.0, 0.0], [5.0, 0.0]]


def test_what_is_written_and_read_in_one_place_alone_is_as_plainly():
    def f(p):
        p[0][0] = 9.0
        return p[0][0] * p[0][1]

    x = [1.0, 2.0]
    assert value_and_grad(f)([x, x]) == (18.0, [[0.0, 9.0], [0.0, 0.0]])

"""What a `finally` prints where the program raises; in a `with` it is refused."""

import contextlib
import warnings

import numpy as np
import pytest
from capture.agreement import outcome

from lineara import jit, trace
from lineara.errors import StagingError

X = np.array([0.5, 2.0, -1.0])


@contextlib.contextmanager
def told():
    print("in")
    try:
        yield
    finally:
        print("out")


class Told:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        warnings.warn("out", stacklevel=1)


def say(x):
    print("last", x[0])


def in_a_finally(x):
    try:
        if x[0] > 0:
            raise ValueError("positive")
        return x[0]
    finally:
        print("done")


def in_a_helper(x):
    try:
        for v in x:
            if v > 1:
                raise ValueError("large")
    finally:
        say(x)
    return x[0]


def in_a_generator(x):
    with told():
        if x[0] > 0:
            raise ValueError("positive")
    return x[1]


def in_an_exit(x):
    with Told():
        for v in x:
            if v > 1:
                raise ValueError("large")
    return x[1]


def at_an_index(x, k=2):
    try:
        y = x[int(x[0] * k)]
    finally:
        print("bye")
    return y


@pytest.mark.parametrize("f", [in_a_finally, in_a_helper])
def test_what_a_finally_prints_on_the_way_out_of_a_raise_is_printed(f, capsys):
    program = jit(f)
    for x in (X, -X, X * 0, X - 1):
        expected = outcome(f, x), capsys.readouterr().out
        assert (outcome(program, x), capsys.readouterr().out) == expected


@pytest.mark.parametrize("f", [in_a_generator, in_an_exit, at_an_index])
def test_what_is_told_on_the_way_out_of_a_raise_is_refused(f):
    for run in (jit(f), lambda x: trace(f, x)):
        with pytest.raises(StagingError, match="is done in a finally or an __exit__, after what"):
            run(X)


def test_the_error_whole():
    with pytest.raises(StagingError) as e:
        trace(in_an_exit, X)
    assert str(e.value).startswith(
        "warnings.warn is done in a finally or an __exit__, after what may raise as the program "
        "runs: it would end there, and this would not be done; do it after the try, or let nothing "
        "raise in it\n  at test_finally.py:"
    )
    assert 'in __exit__: warnings.warn("out", stacklevel=1)' in str(e.value)


def test_where_nothing_raises_or_the_try_is_over_it_is_told(capsys):
    def quiet(x):
        try:
            y = np.sin(x).sum()
        finally:
            print("quiet")
        with told():
            y = y + 1
        return y

    def after(x):
        try:
            if x[0] > 9:
                raise ValueError("large")
        finally:
            x = x * 2
        print("after")
        return x[0]

    for f in (quiet, after):
        try:  # of the caller
            pass
        finally:
            value = jit(f)(X)
        said = capsys.readouterr().out
        assert value == f(X)
        assert capsys.readouterr().out == said != ""

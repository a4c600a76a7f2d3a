"""Plain arrays that a derivative still needs are not overwritten."""

from collections.abc import Callable

import numpy as np
import pytest

from lineara import grad, linearize
from lineara.errors import MutationError

N = 20_000  # an array of this size is more than 64 KiB: locked, not copied


def test_a_factor(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x * buffer)
        buffer[:] = 2.0
        return y

    found = said(lambda: grad(f)(3.0))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer[:] = 2.0"
    )


def test_one_element_of_it(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x * buffer)
        buffer[5] = 2.0
        return y

    found = said(lambda: grad(f)(3.0))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer[5] = 2.0"
    )


def test_a_divisor(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x / buffer)
        buffer[:] += 1.0
        return y

    found = said(lambda: grad(f)(np.ones(N)))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer[:] += 1.0"
    )


def test_an_exponent(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x**buffer)
        buffer.fill(2.0)
        return y

    found = said(lambda: grad(f)(np.ones(N)))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer.fill(2.0)"
    )


def test_a_vector_of_a_product(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(buffer @ x)
        np.multiply(buffer, 2.0, out=buffer)
        return y

    found = said(lambda: grad(f)(np.ones(N)))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: np.multiply(buffer, 2.0, out=buffer)"
    )


def test_the_owner_of_a_view(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x * buffer[: N // 2])
        buffer.sort()
        return y

    found = said(lambda: grad(f)(np.ones(N // 2)))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer.sort()"
    )


def test_an_index_array(said):
    at = np.arange(N)

    def f(x):
        y = np.sum(x[at] ** 2)
        at[0] = 1
        return y

    found = said(lambda: grad(f)(np.ones(N)))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: at[0] = 1"
    )


def test_the_argument_itself(said):
    data = np.ones(N)

    def f(x):
        data[0] = 5.0
        return np.sum(x * x)

    found = said(lambda: grad(f)(data))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: data[0] = 5.0"
    )


def test_a_buffer_used_in_a_loop(said):
    buffer = np.empty(N)

    def f(x):
        total = 0.0
        for i in range(3):
            buffer[:] = i
            total = total + np.sum(buffer * x)
        return total

    found = said(lambda: grad(f)(np.ones(N)))
    assert found == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer[:] = i"
    )


def test_after_the_error_the_array_is_writable_again(said):
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x * buffer)
        buffer[:] = 2.0
        return y

    said(lambda: grad(f)(3.0))
    assert buffer.flags.writeable
    buffer[:] = 3.0


def test_small_arrays_are_copied_and_may_be_overwritten():
    buffer = np.empty(3)

    def f(x):
        total = 0.0
        for i in range(4):
            buffer[:] = i
            total = total + np.sum(buffer * x)
        return total

    assert grad(f)(np.ones(3)).tolist() == [6.0, 6.0, 6.0]


def test_the_argument_may_be_overwritten_when_it_is_small():
    data = np.ones(3)

    def f(x):
        y = np.sum(x * x)
        data[:] = 5.0
        return y

    assert grad(f)(data).tolist() == [2.0, 2.0, 2.0]


def test_what_the_derivative_does_not_need_may_be_overwritten():
    buffer = np.ones(N)

    def f(x):
        y = np.sum(x + buffer)
        buffer[:] = 2.0
        return y

    assert grad(f)(3.0) == N


def test_a_condition_is_copied():
    mask = np.ones(5 * N, bool)

    def f(x):
        y = np.sum(np.where(mask, x, 0.0))
        mask[:] = False
        return y

    assert grad(f)(np.ones(5 * N)).all()


def test_a_buffer_made_inside_the_function_may_be_overwritten():
    def f(x):
        total, buffer = 0.0, np.empty(N)
        for i in range(4):
            buffer[:] = i
            total = total + np.sum(buffer * x)
        return total

    assert grad(f)(np.ones(N)).tolist() == [6.0] * N


def test_a_linear_map_keeps_its_own_copies():
    buffer, x = np.ones(N), np.ones(N)
    _, L = linearize(lambda x: np.sum(x * x * buffer), x)
    buffer[:] = x[:] = 7.0
    assert (1.0 @ L).tolist() == [2.0] * N


def test_through_a_view_made_before(said):
    buffer = np.ones(2 * N)
    half = buffer[:N]

    def f(x):
        y = np.sum(x * buffer)
        half[:] = 2.0
        return y

    assert said(lambda: grad(f)(3.0)).startswith(
        f"MutationError: a plain array (f64[{2 * N}]) that this derivative still needs was "
        "overwritten through another view of its memory; copy it first, where it is used with "
        "traced values"
    )
    assert buffer.flags.writeable
    assert grad(lambda x: np.sum(x * buffer))(3.0) == 3 * N


FEW: dict[str, Callable[[np.ndarray], None]] = {
    "one element": lambda v: v.__setitem__(777, 5.0),
    "the last bit": lambda v: v.__setitem__(777, v[777] * (1 + 2 * np.finfo(v.dtype).eps)),
    "two exchanged": lambda v: v.__setitem__([777, 778], v[[778, 777]]),
    "two rows exchanged": lambda v: v.__setitem__(slice(None, 2000), np.roll(v[:2000], 1000)),
    "the last": lambda v: v.__setitem__(-1, -1.0),
}


@pytest.mark.parametrize("change", FEW)
@pytest.mark.parametrize("dtype", [float, np.float32, complex])
@pytest.mark.parametrize("seen_as", ["itself", "transposed", "read-only", "strided", "a part"])
def test_a_few_elements_through_a_view_made_before(change, dtype, seen_as):
    buffer = (1.0 + np.arange(N + 6.0)).astype(dtype)[: N + 5 * (seen_as == "itself")]
    view = buffer[:]
    used = {
        "itself": lambda: buffer,
        "transposed": lambda: buffer.reshape(-1, 2).T,
        "read-only": lambda: np.lib.stride_tricks.as_strided(buffer, writeable=False),
        "a part": lambda: buffer[500:],
        "strided": lambda: np.stack([buffer, buffer], 1)[:, 0],
    }[seen_as]()
    if seen_as == "strided":
        view = used.base[:, 0]

    def f(x):
        y = np.sum(np.abs(x * used))
        FEW[change](view)
        return y

    with pytest.raises(MutationError, match="through another view of its memory"):
        grad(f)(3.0)
    assert view.flags.writeable


def test_an_older_view_of_a_locked_array_is_unlocked_after_it():
    buffer = np.ones(N)
    view = buffer[:]
    assert grad(lambda x: np.sum(x * buffer) + np.sum(x * view))(3.0) == 2.0 * N
    assert buffer.flags.writeable
    assert view.flags.writeable


def test_a_view_of_an_array_that_the_user_locked():
    buffer = np.ones(N)
    view = buffer[:]
    buffer.flags.writeable = False
    assert grad(lambda x: np.sum(x * view))(3.0) == N
    assert view.flags.writeable

    def f(x):
        y = np.sum(x * view)
        view[3] = 2.0
        return y

    with pytest.raises(MutationError, match="through another view"):
        grad(f)(3.0)


def test_the_memory_of_windows_is_locked(said):
    buffer = np.ones(N)
    windows = np.lib.stride_tricks.sliding_window_view(buffer, 2)

    def f(x):
        y = np.sum(x * windows)
        buffer[3] = 2.0
        return y

    assert said(lambda: grad(f)(3.0)) == (
        "MutationError: a plain array that this derivative still needs was about to be "
        "overwritten; copy it first, where it is used with traced values"
        "\n  at f: buffer[3] = 2.0"
    )


def test_an_argument_that_was_given_twice(said):
    a = np.array([1.0, 2.0])

    def before(q):
        q[0][0] = 5.0
        return np.sum(q[0] * q[1])

    def after(q):
        y = np.sum(q[0] * q[1])
        q[1][:] = 5.0
        return y

    for f, line in ((before, "return np.sum(q[0] * q[1])"), (after, "q[1][:] = 5.0")):
        assert said(lambda f=f: grad(f)([a, a])) == (
            "MutationError: an argument (f64[2]) that was given in several places was written in "
            "one of them, which the others would not see; give copies, or write to a copy"
            f"\n  at {f.__name__}: {line}"
        )
    assert grad(lambda q: np.sum(q[0] * q[1]))([a, a])[0].tolist() == [1.0, 2.0]
    assert grad(before)([a, a.copy()])[1].tolist() == [5.0, 2.0]


class Lender:
    """What another library's tensor is to NumPy: memory, but no buffer."""

    def __init__(self, a):
        self.kept, self.__array_interface__ = a, a.__array_interface__


LENT = {
    "a tensor": lambda a: np.asarray(Lender(a)),
    "a view of a tensor": lambda a: np.asarray(Lender(a))[1:],
    "as_strided": lambda a: np.lib.stride_tricks.as_strided(a, (10000, 2), (8, 8)),
    "dlpack": np.from_dlpack,
    "a buffer": lambda a: np.frombuffer(bytearray(a.tobytes())),
}


@pytest.mark.parametrize("kind", LENT)
def test_memory_that_is_lent_can_be_written_afterwards(kind):
    lent = LENT[kind](np.ones(20000))
    before = lent.flags.writeable
    assert grad(lambda x: np.sum(lent * x))(2.0) == lent.size
    assert grad(lambda a: np.sum(a * a))(lent).shape == lent.shape
    assert lent.flags.writeable == before


@pytest.mark.parametrize("kind", ["a tensor", "as_strided"])
def test_memory_that_is_lent_and_overwritten_is_refused(kind):
    lent = LENT[kind](np.ones(20000))

    def f(x):
        y = np.sum(lent * x)
        lent[3] = 7.0
        return y

    with pytest.raises(MutationError, match="overwritten"):
        grad(f)(2.0)
    assert lent.flags.writeable

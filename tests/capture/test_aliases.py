"""Arrays that a branch or a loop gives and that may be others: one that is written is refused.

Python hands on the array itself; a program hands on its content.  So a write that another name
would see in Python is an error, and no write that none would see is one.
"""

import numpy as np
import pytest

from lineara import explain, jit
from lineara.errors import LinearaError, MutationError
from lineara.staging.capture import trace as capture

RNG = np.random.default_rng(7)
POINTS = [(RNG.normal(size=4), float(RNG.normal())) for _ in range(30)]


# --- what another name may see --------------------------------------------------------------------


def two_choices_of_one(x, s):
    p = x * 1.0
    u = p if s > 0 else np.zeros(4)
    w = p if s < 1 else np.ones(4)
    p = 0.0
    u[0] = 9.0
    return u.sum() + 2 * w.sum()


def a_choice_of_choices(x, s):
    a, b = x * 1.0, x * 2.0
    c = a
    if s > 0:
        a, b = b, a
    if s > 1:
        a, b = b, a
    a[0] = 9.0
    return a.sum() + 10 * b.sum() + 100 * c.sum()


def one_branch_gives_two_that_may_be_one(x, s):
    p = x * 1.0
    u = p if s > 0 else np.zeros(4)
    w = p if s < 1 else np.ones(4)
    p = 0.0
    if s > -1:
        a, b = u, w
    else:
        a, b = x * 3, x * 4
    u = w = 0.0
    a[0] = 9.0
    return a.sum() + 2 * b.sum()


def no_round_at_all(x, s):
    v = x * 1.0
    w = v
    while s < 0:
        v = v * 2
        s += 1
    v[0] = 9.0
    return v.sum() + 10 * w.sum()


def rounds_that_exchange(x, s):
    a, b = x * 1.0, x * 2.0
    c = a
    for k in range(5):
        if x[k % 4] > s:
            a, b = b, a
    a[0] = 9.0
    return a.sum() + 10 * b.sum() + 100 * c.sum()


def rounds_that_exchange_one_array(x, s):
    a = x * 1.0
    b = a
    for k in range(5):
        if x[k % 4] > s:
            a, b = b, a
    a[0] = 9.0
    return a.sum() + 10 * b.sum()


def rounds_that_may_change_nothing(x, s):
    a = x * 1.0
    c = a
    for k in range(5):
        if x[k % 4] > s:
            a = np.sin(a)
    a[0] = 9.0
    return a.sum() + 100 * c.sum()


def two_that_rounds_may_leave_one(x, s):
    a = x * 1.0
    b = a
    for k in range(5):
        if x[k % 4] > s:
            a = np.sin(a)
        else:
            b = np.cos(b)
    a[0] = 9.0
    return a.sum() + 100 * b.sum()


def the_best_so_far(x, s):
    best, now = x * 1.0, x * 2.0
    for k in range(6):
        now = np.sin(now) + s * k
        if now.sum() > best.sum():
            best = now
    now[0] = 9.0
    return best.sum() + 10 * now.sum()


def a_view_of_it(x, s):
    a = x * 1.0
    c = a[1:]
    while s < 0:
        s += 1
        if s > -0.5:
            c = c * 2
    a[1] = 9.0
    return a.sum() + 100 * c.sum()


def found_in_the_last_round(x, s):
    p = x * 1.0
    for k in range(5):
        y = p if x[k % 4] > s else x * 2
    y[0] = 9.0
    return p.sum() + 10 * y.sum()


def returned_from_a_loop(x, s):
    p = x * 1.0

    def first():
        for k in range(5):
            if x[k % 4] > s:
                return p
        return x * 2

    y = first()
    y[0] = 9.0
    return 10 * p.sum() + y.sum()


def written_in_the_loop_that_began_with_it(x, s):
    p = x * 1.0
    u = p if s > 0 else np.zeros(4)
    t = 0.0
    for k in range(5):
        u[k % 4] += 1.0
        t += p.sum()
        u = u * 2
    return t + u.sum()


def one_of_outside_in_two_rounds(x, s):
    a, c = x * 1.0, x * 7.0
    d = a
    for _ in range(6):
        d = a
        a = c
    d[2] = 7.0
    return a.sum() + 10 * d.sum()


def a_row_of_the_round_before(x, s):
    rows, a, d = np.zeros((6, 4)), x * 1.0, x * 2.0
    for k in range(6):
        d = a
        a = rows[k]
    d[2] = 7.0
    return rows.sum() + d.sum() + a.sum()


# --- written, and then in use under the other name alone ------------------------------------------


def written_and_gone(x, s):
    a = x * 1.0
    r = a if s > 0 else x * 2.0
    a[0] = 9.0
    a = 0.0
    return r.sum()


def written_in_a_branch_and_gone(x, s):
    a = x * 1.0
    r = a if s > 0 else x * 2.0
    if s > -1:
        a[0] = 9.0
    a = 0.0
    return r.sum()


def written_in_a_loop_and_gone(x, s):
    a = x * 1.0
    r = a if s > 0 else x * 2.0

    def write():
        b = a
        for k in range(5):
            b[k % 4] += s

    write()
    a = 0.0
    return r.sum()


def a_view_of_it_is_left(x, s):
    a = x * 1.0
    r = a[1:] if s > 0 else x[1:] * 2.0
    a[1] = 9.0
    a = 0.0
    return r.sum()


def the_one_in_the_middle_is_gone(x, s):
    a, b = x * 1.0, x * 3.0
    r = a if s > 0 else b
    q = r if s > 0.5 else x * 4.0
    r = 0.0
    a[0] = 9.0
    a = 0.0
    return q.sum()


def rounds_may_hand_it_on(x, s):
    a = x * 1.0
    r = a
    for k in range(5):
        if x[k % 4] > s:
            r = np.sin(r)
    a[0] = 9.0
    a = 0.0
    return r.sum()


def an_item_of_a_list_is_left(x, s):
    a = x * 1.0
    ys = [a, x * 2]
    r = ys[int(abs(s)) % 2]
    a[0] = 9.0
    a = ys = 0.0
    return r.sum()


def a_row_in_a_list_is_left(x, s):
    a = np.zeros((3, 4))
    a[:] = x
    rows = [a[0], a[1]]
    r = rows[int(abs(s)) % 2]
    a[0] = 9.0
    a = rows = 0.0
    return r.sum()


SEEN = [
    written_and_gone, written_in_a_branch_and_gone, written_in_a_loop_and_gone,
    a_view_of_it_is_left, the_one_in_the_middle_is_gone, rounds_may_hand_it_on,
    an_item_of_a_list_is_left, a_row_in_a_list_is_left,
    one_of_outside_in_two_rounds, a_row_of_the_round_before,
    two_choices_of_one, a_choice_of_choices, one_branch_gives_two_that_may_be_one, no_round_at_all,
    rounds_that_exchange, rounds_that_exchange_one_array, rounds_that_may_change_nothing,
    two_that_rounds_may_leave_one, the_best_so_far, a_view_of_it, found_in_the_last_round,
    returned_from_a_loop, written_in_the_loop_that_began_with_it,
]  # fmt: skip


@pytest.mark.parametrize("f", SEEN)
def test_a_write_that_another_name_may_see_is_refused(f):
    with pytest.raises(MutationError, match="under another name"):
        capture(f, *POINTS[0])


# --- what no other name sees ----------------------------------------------------------------------


def an_array_without_axes(x, s):
    a = np.array(s)
    b = a
    for k in range(5):
        b += np.sin(a) * x[k % 4]
    return a * 2.0 + b


def exchanged_buffers(x, s):
    u, v = x * 1.0, np.zeros(4)
    for _ in range(6):
        v[1:-1] = u[2:] * u[:-2]
        u, v = v, u
    u[0] = s
    return u.sum() + 10 * v.sum()


def exchanged_in_a_branch(x, s):
    a, b = x * 1.0, x * 2.0
    if s > 0:
        a, b = b, a
    a[0] = 9.0
    return a.sum() + 10 * b.sum()


def new_in_every_round(x, s):
    u = x * 1.0
    c = u
    for _ in range(6):
        u = np.sin(u)
    u[0] = s
    return u.sum() + 10 * c.sum()


def one_behind_the_other(x, s):
    u = x.copy()
    before = u
    for _ in range(5):
        before = u
        u = before + s
    u[0], before[0] = 1.0, 2.0
    return u.sum() + 3 * before.sum()


def a_copy_where_it_is_chosen(x, s):
    p, y = x * 1.0, x * 2
    for k in range(5):
        if x[k % 4] > s:
            y = p.copy()
    y[0] = 9.0
    return 10 * p.sum() + y.sum()


def gone_before_the_write(x, s):
    a = x * 1.0
    r = a if s > 0 else x * 2.0
    a = 0.0
    r[0] = s
    return r.sum()


def nobody_else_holds_it(x, s):
    y = x.copy()
    while y.sum() < s:
        y = y + 0.5
    y[0] = 3.0
    return y.sum()


def exchanged_buffers_of_two_names(x, s):
    a, b, t = x * 1.0, x * 2.0, 0.0
    c = b
    for k in range(6):
        a[0] = a[0] + x[k % 4]
        t = t + c[0]
        a, b = b, a
    return t + a.sum() + 10 * b.sum() + 100 * c.sum()


@pytest.mark.parametrize(
    "f",
    [
        exchanged_buffers_of_two_names,
        an_array_without_axes,
        exchanged_buffers,
        exchanged_in_a_branch,
        new_in_every_round,
        one_behind_the_other,
        a_copy_where_it_is_chosen,
        gone_before_the_write,
        nobody_else_holds_it,
    ],
)
def test_a_write_that_no_other_name_sees_is_none_of_a_program_s_business(f):
    program = capture(f, *POINTS[0])
    for x, s in POINTS:
        np.testing.assert_allclose(program(x, s), f(x, s), rtol=1e-14)


def a_chain(u):
    """Metropolis' walk: each round keeps a proposal or not, and writes where it is."""
    y, best, rows = u[0] * 1.0, u[0] * 2.0, np.zeros(u.shape)
    for q in range(len(u)):
        proposal = y + 0.3 * u[q]
        if proposal @ proposal - y @ y < u[q, 0]:
            y = proposal
        if y @ y < best @ best:
            best = y
        rows[q] = y
    return rows.sum(axis=0) + best


@pytest.mark.parametrize("n", [40, 400])
def test_arrays_that_no_round_writes_may_be_one(n):
    u = np.random.default_rng(3).normal(size=(n, 3))
    f = jit(a_chain)
    np.testing.assert_allclose(f(u), a_chain(u), rtol=1e-12)
    assert "a loop of the program" in [e.what for e in explain(f, u).statements]


def exchanged(x):
    """Rounds write one of two arrays, of which the one that is written next has another name."""
    a, b = x * 1.0, x * 2.0
    c = b
    for _ in range(4):
        a[0] = a[0] + c[1]
        a, b = b, a
    return a, c


def written_rows(x):
    """A name stays with what the rounds write."""
    rows, y = np.zeros((4, 4)), x
    for i in range(4):
        rows[i] = y * 2.0
        y = rows[0]
    return y, rows


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (exchanged, "into an array, and the variable 'b'"),
        (written_rows, "into the variable 'rows', and the variable 'y'"),
    ],
)
def test_the_reason_names_both(f, said):
    x = np.arange(1.0, 5.0)
    g = jit(f)
    for got, want in zip(g(x), f(x), strict=True):
        np.testing.assert_array_equal(got, want)
    told = [e.what for e in explain(g, x).statements]
    assert told == [
        f"written out: a staged loop writes {said} may be that array under another name in one of "
        "its rounds; bind a copy, a.copy()"
    ]


def test_where_it_must_be_a_form_the_error_names_the_loop():
    def f(x):
        rows, y, s = np.zeros((4, 4)), x, 0.0
        while s < 3.0:
            rows[1] = y * 2.0
            y = rows[0]
            s = s + abs(y[0]) + 0.1
        return y

    with pytest.raises(MutationError) as e:
        jit(f, fallback=False)(np.arange(1.0, 5.0))
    line = f.__code__.co_firstlineno + 2
    assert str(e.value) == (
        "a staged loop writes into the variable 'rows', and the variable 'y' may be that array "
        "under another name in one of its rounds; bind a copy, a.copy()\n"
        f"  at test_aliases.py:{line} in f: while s < 3.0:"
    )


READS = {
    "an element": lambda r, x: r[0],
    "an element from the end": lambda r, x: r[-1],
    "an element at a staged place": lambda r, x: r[int(x) - int(x)],
    "an element of a part": lambda r, x: r[1:][0],
    "a part": lambda r, x: r[:2].sum(),
    "places": lambda r, x: r[[0, 1]].sum(),
    "a mask": lambda r, x: r[np.array([True, False, True])].sum(),
    "all": lambda r, x: r.sum(),
    "the largest": lambda r, x: max(r),
    "items": lambda r, x: sum([v * x for v in r]),
    "a tuple": lambda r, x: (lambda t: t[0])(tuple(r)),
    "a list": lambda r, x: r.tolist()[0],
    "unpacked": lambda r, x: (lambda a, b, c: a)(*r),
    "another order": lambda r, x: r.reshape(3, 1).T[0, 0],
    "flat": lambda r, x: r.ravel()[0],
    "backwards": lambda r, x: r[::-1][2],
    "a copy": lambda r, x: r.copy()[0],
    "a product": lambda r, x: (r * x)[0],
    "whether it is in it": lambda r, x: x if 7.0 in r else 2 * x,
    "item": lambda r, x: r.item(0),
    "np.take": lambda r, x: np.take(r, 0),
}


@pytest.mark.parametrize("when", ["in the loop", "after it", "after a branch"])
@pytest.mark.parametrize("name", READS)
def test_no_way_to_read_shows_what_an_array_held_before_it_was_written(name, when):
    read = READS[name]

    def f(x, X):
        Z = X * 1.0
        r = Z[0]
        s = 0.0
        if when == "after a branch":
            r = Z[1] if x > 1.0 else Z[2]
        for i in range(len(Z)):
            if when != "after a branch":
                r = Z[i]
            s = s + r @ r * x
            if when == "in the loop":
                Z[i, 0] = 7.0
                s = s + read(r, x)
        Z[1:] = 7.0
        return s + read(r, x)

    X = np.arange(12.0).reshape(4, 3)
    try:
        value = jit(f)(2.0, X)
    except LinearaError:
        return
    assert value == pytest.approx(f(2.0, X))


# --- a loop that is tried twice -------------------------------------------------------------------


def test_an_array_that_a_loop_was_tried_with_is_read_after_it():
    def f(s, x):
        z = x * 1.0
        r, t, v = z[0], z[1], z[2]
        if s > 0:
            v = z[1]
        z[1] = 0.3
        for i in range(5):  # tried with v as the branch gave it, first
            v = z[i % 4]
            r, t = t, r
        return v.sum() + 2 * r.sum()

    x = RNG.normal(size=(4, 3))
    for s in (0.5, -0.5):
        assert jit(f)(s, x) == f(s, x)

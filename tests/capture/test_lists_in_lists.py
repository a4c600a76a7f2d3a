"""Lists in lists: each is a row of a pool, so a list under several names is one list."""

import copy

import numpy as np
import pytest
from agreement import agrees, outcomes_agree
from test_lists import works

import lineara
from lineara.errors import StagingError, StructureError
from lineara.staging.capture import trace as capture

X = np.array([0.5, -1.0, 2.0, 3.0, 0.1, -0.3, 0.7])


def edit_distance(x):
    y = 0.8 * x[::-1]
    n, m = len(x), len(y)
    dp = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        dp[i][0] = float(i)
    for j in range(1, m + 1):
        dp[0][j] = float(j)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            change = abs(x[i - 1] - y[j - 1])
            dp[i][j] = min(dp[i - 1][j] + 1, dp[i][j - 1] + 1, dp[i - 1][j - 1] + change)
    return dp[n][m] + dp[-2][-2]


def rows_that_are_appended(x):
    dp = [[0.0] * len(x)]
    for v in x:
        row = [v]
        for j in range(1, len(x)):
            row.append(0.5 * row[j - 1] + dp[-1][j] + v * x[j])
        dp.append(row)
    s = 0.0
    for row in dp:
        for v in row:
            s = 0.5 * s + np.sin(v)
    return s + len(dp) * len(dp[0]) + dp[2][3] + sum(dp[-1])


def rows_of_other_lengths(x):
    rows = [[1.0]]
    for i in range(1, len(x)):
        row = [1.0]
        for j in range(1, i):
            row.append(rows[i - 1][j - 1] * x[0] + rows[i - 1][j])
        row.append(x[i])
        rows.append(row)
    return sum(rows[-1]) + len(rows[-1]) + rows[3][-1]


def lists_that_grow_in_a_list(x):
    groups = [[] for _ in range(3)]
    for i in range(len(x)):
        groups[i % 3].append(np.sin(x[i]))
        if x[i] > 0.3:
            groups[0].append(x[i])
    s = 0.0
    for g in groups:
        s = 0.5 * s + sum(g) * len(g)
    return s + groups[0][0] * groups[1][-1]


def one_list_many_times(x):
    dp = [[0.0] * 4] * len(x)
    for i in range(len(x)):
        for j in range(4):
            dp[i][j] += x[i] * (j + 1)
    return dp[0][1] * dp[-1][2] + np.array(dp).sum()


def names_of_rows(x):
    dp = [[0.0, 1.0, 2.0] for _ in x]
    first, kept = dp[0], dp[1]
    for i in range(len(x)):
        row = dp[i]
        for j in range(3):
            row[j] += x[i] * (j + 1)
        dp[i - 1][0] += 0.5 * row[1]
    kept[2] = 7.0
    return first[0] * first[1] + dp[1][2] * dp[2][1]


def rows_that_change_places(x):
    n = 4
    a = [[x[(i * j) % len(x)] + 2 * (i == j) for j in range(n)] for i in range(n)]
    for i in range(n):
        p = i
        for r in range(i + 1, n):
            if abs(a[r][i]) > abs(a[p][i]):
                p = r
        a[i], a[p] = a[p], a[i]
        for r in range(i + 1, n):
            f = a[r][i] / a[i][i]
            for c in range(i, n):
                a[r][c] -= f * a[i][c]
    return a[0][0] * a[1][1] * a[2][2] * a[3][3]


def lists_that_change_names(x):
    before, now = [0.0] * len(x), [0.0] * len(x)
    other = before
    for i in range(len(x)):
        for j in range(1, len(x)):
            now[j] = 0.5 * before[j - 1] + x[i] * x[j]
        before, now = now, before
    return before[-1] + 2 * now[-1] + 3 * other[2]


def a_new_list_of_lists_each_round(x):
    a = [[x[0], x[1], x[2]], [x[3], x[4], x[5]]]
    for v in x:
        b = [[0.0] * 3 for _ in range(2)]
        for i in range(2):
            for j in range(3):
                b[i][j] = 0.5 * a[i][j - 1] + v * a[1 - i][j]
        a = b
    return a[0][0] + a[1][2]


def three_levels(x):
    a = [[[0.0] * 3 for _ in range(4)] for _ in x]
    for i in range(len(x)):
        for j in range(4):
            for k in range(3):
                a[i][j][k] = x[i] * (j + 1) + a[i - 1][j][k - 1]
    s = 0.0
    for plane in a:
        for row in plane:
            s = 0.5 * s + sum(row)
    return s + a[1][2][0] + np.array(a).sum()


def rows_that_are_replaced(x):
    rows = [[0.0, 0.0] for _ in range(4)]
    old = rows[1]
    for i in range(len(x)):
        rows[i % 4] = [x[i], rows[(i + 1) % 4][1] + 1.0]
        if x[i] > 0.3:
            rows[2] = rows[i % 4]
            rows[2][1] += x[i]
    old[0] = 3.0
    return sum(rows[0]) + rows[1][0] * rows[2][1] - rows[3][1] + old[0] * old[1]


def a_row_that_a_branch_chooses(x):
    rows = [[v, 2 * v] for v in x[:4]]
    best = rows[0]
    for i in range(4):
        row = rows[i]
        if row[0] > best[0]:
            best = row
    best[1] = 10.0
    return sum(rows[0]) + sum(rows[1]) * 2 + sum(rows[2]) * 3 + sum(rows[3]) * 4


def rows_in_pairs(x):
    table = [(k, [0.0] * 3) for k in range(4)]
    for i in range(len(x)):
        k, row = table[i % 4]
        row[i % 3] += x[i] * k
    s = 0.0
    for k, row in table:
        s += k * sum(row)
    return s


def methods_of_rows(x):
    rows = [[x[0], x[1]], [x[2], x[3]], [x[4], x[5]]]
    k = 0 if x[0] > 0 else 1
    rows[k + 1].reverse()
    rows[2][:] = [x[6], rows[k][0]]
    more = rows[k].copy()
    more[0] = 100.0
    rows.append(rows.pop(0))
    both = rows[0] + rows[1] + list(rows[k])
    rows[k].append(x[6])
    last = rows[k].pop()
    for v in x:
        rows[1].append(v)
    return sum(both) + len(rows[k]) * rows[2][0] + more[1] + rows[-1][0] * last + rows[1][-2]


def work_that_holds_lists(x):
    todo, s = [[x[0] + 2.0, 0.0]], 0.0
    while todo:
        v, depth = todo.pop()
        s += v * (depth + 1)
        if v > 0.3 and depth < 4:
            todo.append([0.5 * v, depth + 1])
            todo.append([0.3 * v, depth + 1])
    return s


def neighbours(x):
    n = len(x)
    near = [[] for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if i != j and abs(x[i] - x[j]) < 1.1:
                near[i].append(j)
    s = 0.0
    for i in range(n):
        for j in near[i]:
            s += np.sin(x[i]) * x[j]
    return s


FUNCTIONS = [
    edit_distance, rows_that_are_appended, rows_of_other_lengths, lists_that_grow_in_a_list,
    one_list_many_times, names_of_rows, rows_that_change_places, lists_that_change_names,
    a_new_list_of_lists_each_round, three_levels, rows_that_are_replaced,
    a_row_that_a_branch_chooses, rows_in_pairs, methods_of_rows, work_that_holds_lists, neighbours,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_lists_in_lists_are_those_of_python(f):
    program = capture(f, X)
    for x in (X, -X, X[::-1].copy(), 0.3 * X, np.abs(X)):
        np.testing.assert_allclose(program(x), f(x), rtol=1e-15)
    given, expected = lineara.jit(lineara.grad(f))(X), lineara.grad(f)(X)
    np.testing.assert_allclose(given, expected, rtol=1e-11, atol=1e-12)
    given, expected = lineara.jit(lineara.hessian(f))(X), lineara.hessian(f)(X)
    np.testing.assert_allclose(given, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_size_of_a_program_does_not_depend_on_the_rounds(f):
    assert capture(f, np.tile(X, 10)).size() == capture(f, np.tile(X, 13)).size()


@pytest.mark.parametrize("f", [edit_distance, rows_that_are_appended, lists_that_change_names])
def test_a_gradient_costs_a_constant_times_the_value(f):
    x = np.random.default_rng(0).uniform(-0.5, 0.9, 64)
    small, large = works(f, x[:32]), works(f, x)
    for value, back in (small, large):
        assert back <= 4 * value
    for few, many in zip(small, large, strict=True):
        assert many <= 4.4 * few


def test_what_is_returned_are_lists_of_python_s():
    def f(x):
        rows = [[0.0] * 2 for _ in range(3)]
        groups, deep = [[], [], []], [[[0.0] * 2 for _ in range(2)] for _ in range(2)]
        for i in range(len(x)):
            rows[i % 3][i % 2] += float(x[i])
            deep[i % 2][0][1] += float(x[i])
            if x[i] > 0:
                groups[i % 3].append((i, float(x[i])))
        rows[1] = rows[0]
        return rows, groups, {"deep": deep}, rows[2], len(groups[1])

    program = capture(f, X)
    for x in (X, -X, 0 * X):
        found = program(x)
        assert repr(found) == repr(f(x))
        assert found[0][0] is found[0][1]
        assert [type(v) for v in (found[0], found[0][2], found[1], found[3])] == [list] * 4


def test_a_list_has_one_identity():
    def f(x):
        rows = [[v, 2 * v] for v in x[:4]]
        k = 0 if x[0] > 0 else 1
        same = rows[k] is rows[0], rows[k] is not rows[k], rows[1] is rows[1], rows[2] is rows[3]
        rows[3] = rows[k]
        other = copy.deepcopy(rows)
        other[k][0] = 5.0
        return same, rows[3] is rows[k], rows[k] is rows[k][:], other[3][0], rows[k][0] + rows[3][1]

    program = capture(f, X)
    for x in (X, -X):
        assert program(x) == f(x)


def test_an_argument_may_stack_the_list_whose_method_is_called():
    def f(x):
        xs, ys, rows = [x[0], x[1]], [x[1], x[2]], [[x[0]], [x[1]]]
        k = 0 if x[0] > 0 else 1
        xs.append(xs[k])
        ys.insert(0, ys[k])
        ys.extend([ys[k], 1.0])
        ys.append(ys.pop(0))
        rows.append(rows[k])
        rows.append(rows.pop(0))
        return xs, ys, rows, xs.count(xs[-1]) if False else len(xs)

    program = capture(f, X)
    for x in (X, -X):
        assert program(x) == f(x)


def test_lists_change_names_in_a_loop_that_is_written_out():
    def f(x):
        before, now, y = [0.0] * 3, [1.0] * 3, x[:1]
        for i in range(6):
            now[1] = 0.5 * before[0] + x[i]
            now[0] = now[1] * before[2]
            y = np.append(y, now[0])
            before, now = now, before
        return before[1] + 2 * now[0] + y.sum()

    program = capture(f, X)
    for x in (X, -X):
        assert program(x) == f(x)


def rows_that_a_branch_exchanges(x):
    w = [[0.3 * k] * 4 for k in range(3)]
    for i in range(1, 3):
        for j in range(1, 4):
            w[i][j] = np.sin(w[i - 1][j] * x[j] + w[i][j - 1])
        if x[i] > 0.0:
            w[i - 1], w[i] = w[i], w[i - 1]
    row = w[1]
    row[0] += w[-1][-1]
    return sum(w[1]) + 0.1 * np.array(w).sum() + 3 * sum(w[0])


def a_row_that_is_put_into_two_places(x):
    w, v = [[x[0], x[1]], [x[2], x[3]], [x[4], x[5]]], [x[6], 1.0]
    kept = w[0]
    if x[0] > x[1]:
        w[0] = w[1]
    elif x[0] > x[2]:
        w[2] = v
    w[0][0] *= 3.0
    v[1] = x[3] * x[2]
    kept[1] += w[1][0]
    return sum([np.sin(a) * (k + 1) for k, a in enumerate([*w[0], *w[1], *w[2], *kept, *v])])


@pytest.mark.parametrize("f", [rows_that_a_branch_exchanges, a_row_that_is_put_into_two_places])
def test_lists_that_a_branch_chooses_for_places_of_a_list_stay_themselves(f):
    outcomes_agree(f, *[(x,) for x in (X, -X, X[::-1].copy(), np.sin(9 * X))])


def test_texts_in_lists_that_a_branch_exchanges_are_the_same_texts():
    def f(x):
        w = [["a", 1.0], ["a", x[1]]]
        if x[0] > 0.0:
            w[0], w[1] = w[1], w[0]
        return w[0][1] * len(w[1][0])

    agrees(f, (X,), (-X,))


def test_a_derivative_within_reads_lists_in_lists():
    def f(x):
        rows = [[0.0] * 3 for _ in range(5)]
        for i in range(5):
            for j in range(3):
                rows[i][j] = x[i] * j

        def loss(p):
            s = 0.0
            for row in rows:
                for v in row:
                    s = 0.5 * s + np.sin(p * v)
            return s + p * rows[2][1]

        return lineara.grad(loss)(x[0]) + rows[1][2]

    assert capture(f, X)(X) == pytest.approx(f(X), rel=1e-14)


# --- refusals -------------------------------------------------------------------------------------


def a_dict_in_a_list(x):
    ys = [{"a": x[0]}, {"a": x[1]}]
    return ys[0 if x[0] > 0 else 1]["a"]


def a_list_beside_a_number(x):
    ys = [[x[0]], x[1]]
    return ys[0 if x[0] > 0 else 1]


def an_array_of_lists_of_other_lengths(x):
    rows = [[x[0]], [x[1], x[2]]]
    rows[0 if x[0] > 0 else 1].append(x[3])
    return np.array(rows)


def an_array_of_pairs(x):
    rows = [[(x[0], 1.0)], [(x[2], 2.0)]]
    k = 0 if x[0] > 0 else 1
    return rows[k][0][0] + np.array(rows)[0, 0, 0]


def a_list_in_two_lists(x):
    a, b = [[x[0]], [x[1]]], [[x[2]], [x[3]]]
    k = 0 if x[0] > 0 else 1
    t = a[k][0]
    a[k] = b[k]
    return a[0][0] + t


def a_row_of_a_list_of_lists_that_a_round_makes(x):
    t = x[2]
    while t > 0.1:
        rows = [[t, 0.0], [0.0, t]]
        last = rows[0 if t > 1 else 1]
        t *= 0.5
        if t < 0.2:
            break
    else:
        return 0.0
    return last[0]


def a_longer_row_is_not_there(x):
    rows = [[x[0], x[1]], [x[2], x[3]]]
    return rows[0 if x[0] > 0 else 1][2]


@pytest.mark.parametrize(
    ("f", "kind", "said"),
    [
        (
            a_dict_in_a_list,
            StagingError,
            "a list holds a dict, and is read or grows as staged values say: there the items are "
            "numbers, arrays, lists that the function makes, and tuples of them; use a list for "
            "each part",
        ),
        (
            a_list_beside_a_number,
            StructureError,
            "an item of a list is a list and f64[] in one list, which is held as an array since "
            "staged values say how it is read or grows; what is no number must be the same there",
        ),
        (
            an_array_of_lists_of_other_lengths,
            StagingError,
            "the items of a list whose length depends on staged values: how many items there are "
            "is not known while a program is written; loop over the list, or take sum(values) or "
            "values[i]",
        ),
        (
            an_array_of_pairs,
            StagingError,
            "an array of a list of lists that is read or grows as staged values say: the lists "
            "must be known to be of one length, and hold numbers or arrays; make an array of each",
        ),
        (
            a_list_in_two_lists,
            StagingError,
            "a list stands in two lists of lists that are read or grow as staged values say, each "
            "of which holds its lists as rows of an array; put a copy into one of them, row.copy()",
        ),
        (
            a_row_of_a_list_of_lists_that_a_round_makes,
            StagingError,
            "a list is used after the round of a staged loop, the branch or the function that has "
            "made the list of lists in which it stands; take a copy, row.copy()",
        ),
        (a_longer_row_is_not_there, IndexError, "list index out of range"),
    ],
)
def test_what_cannot_be_held_as_rows_is_an_error(f, kind, said):
    with pytest.raises(kind) as e:
        capture(f, X)
    assert getattr(e.value, "message", str(e.value)) == said


def test_a_place_of_a_row_is_looked_at_as_the_program_runs():
    def f(x):
        rows, n = [[0.0] * 3 for _ in range(4)], 0
        while x[n] > 0:
            n += 1
        return rows[n][n]

    assert capture(f, X)(X) == 0.0
    with pytest.raises(IndexError):
        capture(f, X)(np.abs(X))

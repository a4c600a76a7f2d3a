"""Containers as state: what branches and loops change in lists, dicts and objects is carried."""

import copy
from collections import defaultdict, deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import lineara
from lineara.errors import MutationError, StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.5, -1.0, 2.0, 3.0, 0.1, -0.3, 0.7])


@dataclass
class Ball:
    """A dataclass that its own methods change."""

    height: float
    speed: np.ndarray
    time: float = 0.0
    bounces: int = 0

    def step(self, force, dt):
        self.speed = self.speed + force * dt
        self.height += self.speed.sum() * dt
        if self.height > 1.0:
            self.bounce()
        self.time += dt

    def bounce(self):
        self.height *= -0.5
        self.speed *= 0.9
        self.bounces += 1


def methods_change_self(x):
    ball = Ball(x[0], x[:3] * 1.0)
    for force in x:
        ball.step(force, 0.1)
    return ball.height + ball.time * ball.bounces + ball.speed.sum()


def an_attribute_ends_a_loop(x):
    ball = Ball(x[0], x[:3] * 1.0)
    while ball.time < 0.95:
        ball.step(x[1], 0.1)
    return ball.height + ball.time * ball.bounces


class Sums:
    """Slots, and a method that gives the object back."""

    __slots__ = ("count", "total")

    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, v):
        if v > 0:
            self.total += v
            self.count += 1
        return self


def slots_under_another_name(x):
    sums = Sums()
    other = sums
    for v in x:
        other.add(v).add(-v)
    return sums.total / max(sums.count, 1)


class Guarded(dict):
    """A dict whose own methods do something else."""

    def __setitem__(self, key, value):
        super().__setitem__(key, 2 * value)

    def __setattr__(self, name, value):
        raise AttributeError(name)


def classes_with_methods_of_their_own(x):
    d = Guarded(a=x[0])
    for v in x:
        d["a"] = np.sin(d["a"]) + v if v > 0 else d["a"]
    return d["a"]


def nested_containers(x):
    d = {"p": {"a": x[0], "l": [x[1], x[2]]}, "n": 0}
    e = d["p"]
    for i in range(len(x)):
        if x[i] > 0.2:
            e["a"] = e["a"] * 0.5 + x[i]
            d["n"] += 1
        elif x[i] > -0.5:
            d["p"]["l"][0] += np.sin(e["a"])
        else:
            d["p"]["l"][-1] -= x[i]
    return d["p"]["a"] + e["l"][0] * e["l"][1] + d["n"]


def a_deque_of_fixed_length(x):
    window, s = deque([0.0, 0.0, 0.0], maxlen=3), 0.0
    for v in x:
        window.append(np.sin(v) + 0.1 * window[0])
        s += sum(window)
    return s


def closures_share_a_dict(x):
    state = {"c": 0.0}

    def update(v):
        if v > 0:
            state["c"] += v
        return state["c"]

    s = 0.0
    for v in x:
        s += update(v)
    return s * state["c"]


def a_loop_that_is_left(x):
    d = SimpleNamespace(k=0, s=0.0)
    for i in range(len(x)):
        d.k = i
        if x[i] > 1.5:
            break
        d.s += x[i]
    else:
        d.k = -1
    return d.s * d.k


def a_function_that_is_left(x):
    d = {"s": 0.0}
    for v in x:
        d["s"] += v
        if d["s"] > 1.4:
            return d["s"] * v
    return d["s"]


def arrays_in_containers(x):
    d = {"a": x * 1.0, "b": [x * 2.0]}
    for i in range(len(x) - 1):
        d["a"][i + 1] += 0.5 * d["a"][i]
        d["b"][0] = d["b"][0] * 0.5 if x[i] > 1 else d["b"][0] + d["a"]
    return d["a"].sum() + d["b"][0].sum()


def records_in_records(x):
    root = SimpleNamespace(v=x[0], kids=[SimpleNamespace(v=x[1]), SimpleNamespace(v=x[2])])
    for i in range(5):
        root.kids[0].v = np.sin(root.kids[0].v) + root.v
        root.kids[1].v *= 0.5
        if root.kids[1].v > x[i]:
            root.v += root.kids[1].v
    return root.v + root.kids[0].v


def nested_loops(x):
    d = {"s": 0.0, "m": x[0]}
    for i in range(len(x)):
        d["m"] = x[i]
        for j in range(len(x)):
            d["s"] += 0.1 * d["m"] * x[j]
            if x[j] > d["m"]:
                d["m"] = x[j]
    return d["s"] * d["m"]


def each_branch_changes_what_the_other_does_not(x):
    d = {"a": x[0], "b": x[1], "c": 1.0}
    for v in x:
        if v > 1:
            d["a"] = d["a"] + v
        elif v > 0:
            d["b"] = d["b"] * v
        else:
            d["c"] = np.cos(d["c"]) - v
    return d["a"] * d["b"] * d["c"]


def what_was_new_in_a_round_is_there_in_the_next(x):
    d = defaultdict(float)
    for v in x:
        d["s"] += v
    return d["s"]


FUNCTIONS = [
    methods_change_self, an_attribute_ends_a_loop, slots_under_another_name,
    classes_with_methods_of_their_own, nested_containers, a_deque_of_fixed_length,
    closures_share_a_dict, a_loop_that_is_left, a_function_that_is_left, arrays_in_containers,
    records_in_records, nested_loops, each_branch_changes_what_the_other_does_not,
    what_was_new_in_a_round_is_there_in_the_next,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_state_is_carried(f):
    program = capture(f, X)
    for x in (X, -X, X[::-1].copy(), 0.3 * X):
        assert np.array_equal(program(x), f(x))
    np.testing.assert_allclose(lineara.jit(lineara.grad(f))(X), lineara.grad(f)(X), atol=1e-12)
    np.testing.assert_allclose(
        lineara.jit(lineara.hessian(f))(X), lineara.hessian(f)(X), atol=1e-12
    )


@pytest.mark.parametrize("f", FUNCTIONS)
def test_loops_that_change_state_stay_loops(f):
    assert capture(f, X).size() == capture(f, np.concatenate([X, X, X])).size()


def test_a_name_of_a_container_sees_what_a_form_changes():
    def f(x):
        a = {"v": 0.0}
        names = [a, a]
        for v in x:
            if v > 0:
                names[1]["v"] += v
        names[0]["v"] += 1.0
        return a["v"], a is names[0], sorted(a)

    assert capture(f, X)(X) == f(X)


def a_queue_that_a_round_leaves_empty(x):
    todo, s = deque([0]), 0.0
    while todo:
        k = todo.popleft()
        s += x[k] * (k + 1)
        if k < 3:
            todo.append(k + 1)
    return s


def a_queue_that_rounds_leave_empty_in_the_end(x):
    todo, s = deque([0, 1]), 0.0
    for k in range(6):
        if todo:
            i = todo.popleft()
            s += x[i] * (k + 1)
            if i < 2:
                todo.append(i + 1)
    return s


def items_of_a_dict_are_taken(x):
    left, s = {"a": 0, "b": 1}, 0.0
    while left:
        _, k = left.popitem()
        s += x[k] * (k + 2)
        if k == 0:
            left["c"] = 2
    return s


@pytest.mark.parametrize(
    "f",
    [
        a_queue_that_a_round_leaves_empty,
        a_queue_that_rounds_leave_empty_in_the_end,
        items_of_a_dict_are_taken,
    ],
)
def test_a_container_that_a_refused_form_left_shorter_is_put_back(f):
    program = capture(f, X)
    for x in (X, -X):
        assert np.array_equal(program(x), f(x))


def test_what_a_refused_form_has_changed_is_put_back():
    seen = []

    def f(x):
        d = {"a": [1.0], "s": {1}}
        for i in range(6):  # refused as a form, since a set has changed
            d["a"][0] += x[i]
            d["s"].add(i)
            seen.append(d["a"][0])
        return d["a"][0], len(d["s"])

    assert capture(f, X)(X) == f(X)


# --- refusals -------------------------------------------------------------------------------------


def test_the_callers_containers_are_not_changed():
    log = {"n": 0.0}

    def f(x):
        if x[0] > 0:
            log["n"] += x[0]
        return log["n"]

    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert e.value.message == (
        "a dict was changed in a branch that depends on staged values: a program cannot change it "
        "when it runs; bind a new value to a variable instead, or write into an array"
    )
    assert 'log["n"] += x[0]' in str(e.value)
    assert log == {"n": 0.0}


def test_an_object_with_methods_that_is_the_callers_is_not_changed():
    ball = Ball(0.0, np.zeros(2))

    def f(x):
        while ball.height < x[0]:
            ball.height += 0.1
        return ball.height

    with pytest.raises(StagingError, match="a Ball was changed in a loop that depends on staged"):
        capture(f, X)
    assert ball.height == 0.0


def test_a_key_that_one_branch_adds_is_refused():
    def f(x):
        d = {}
        if x[0] > 0:
            d["a"] = x[0]
        return d.get("a", 0.0)

    with pytest.raises(StagingError, match="a dict was changed in a branch that depends on staged"):
        capture(f, X)


def one_of_two_lists(x):
    a, b = [x[0]], [x[1]]
    c = a if x[0] > x[1] else b
    c[0] = 5.0
    return a[0] + b[0]


def one_of_a_list_and_a_new_one(x):
    a = [x[0]]
    b = a
    if x[0] > x[1]:
        b = [x[1]]
    b[0] = 5.0
    return a[0] + b[0]


def a_new_list_under_two_names(x):
    a, b = [x[0]], [x[1]]
    if x[0] > x[1]:
        a = b = [x[2]]
    a[0] = 5.0
    return a[0] + b[0]


def in_two_places_of_a_container(x):
    d = {"a": [x[0]], "b": [x[1]]}
    if x[0] > x[1]:
        d["a"] = d["b"]
    d["b"][0] = 5.0
    return d["a"][0] + d["b"][0]


def of_the_first_round(x):
    a = [x[0], x[1]]
    b = a
    while b[0] < 1:
        b[1] = b[1] * 0.5
        b = [b[0] + 0.3, b[1]]
    return a[1] + b[1]


def of_a_loop_without_rounds(x):
    a = [x[0]]
    b = a
    while b[0] < 1:
        b = [b[0] + 0.3]
    b[0] = 5.0
    return a[0] + b[0]


def of_objects(x):
    a, b = SimpleNamespace(v=x[0]), SimpleNamespace(v=x[1])
    best = a if x[0] > x[1] else b
    b.v = 5.0
    return best.v


@pytest.mark.parametrize(
    "f",
    [
        one_of_two_lists, one_of_a_list_and_a_new_one, a_new_list_under_two_names,
        in_two_places_of_a_container, of_the_first_round, of_a_loop_without_rounds, of_objects,
    ],
)  # fmt: skip
def test_a_container_that_may_be_another_one_is_not_changed(f):
    with pytest.raises(MutationError, match="whether there is one or are two depends on values"):
        capture(f, X)


def test_the_error_names_the_form():
    with pytest.raises(MutationError) as e:
        capture(one_of_two_lists, X)
    assert e.value.message == (
        "a list was changed that the staged branch or loop test_state.py:"
        f"{one_of_two_lists.__code__.co_firstlineno + 2} in one_of_two_lists: c = a if x[0] > x[1] "
        "else b gave, or that it may have given another name: whether there is one or are two "
        "depends on values; let it give a new one, copy.copy(a)"
    )


def test_what_is_not_changed_may_be_one_of_several():
    def f(x):
        a, b = [x[0]], [x[1]]
        best = a if x[0] > x[1] else b
        row = b
        for v in x:
            row, other = [row[0] + v], row
            if v > 1:
                best = other
        return best[0] + row[0]

    assert capture(f, X)(X) == f(X)


CHANGED = [
    (lambda xs: (xs.append(xs[0] * 2), xs)[1], [1.0, 2.0], [3.0, 5.0]),
    (lambda xs: (xs.pop(), xs)[1], [1.0, 2.0], [3.0, 5.0]),
    (lambda d: (d.update(c=d["a"] * 2), d)[1], {"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 5.0}),
    (lambda d: (d["b"].update(c=d["a"]), d["b"])[1], {"a": 1.0, "b": {"c": 2.0, "d": 3.0}},
     {"a": 5.0, "b": {"c": 7.0, "d": 9.0}}),
]  # fmt: skip


@pytest.mark.parametrize(("f", "first", "second"), CHANGED)
def test_a_traced_function_gives_an_argument_that_it_has_changed(f, first, second):
    program = lineara.trace(f, copy.deepcopy(first))
    for given in (first, second):
        assert program(copy.deepcopy(given)) == f(copy.deepcopy(given))

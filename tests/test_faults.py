"""The faults that are put into the sources: what they are, and the list of those that are none."""

import ast
import tomllib
import warnings

import mutate_rules
import numpy as np
import pytest
from call_counts import calls
from faults import LISTED, Site, changed, compiled, functions_of, key_of, lines_of, make, text_of

import lineara
from lineara.facts.primitive import registry
from lineara.passes import names
from lineara.python.user_code import overlay
from lineara.tape import plans

EQUIVALENT = tomllib.loads(LISTED.read_text(encoding="utf-8"))["fault"]


@pytest.mark.parametrize("one", EQUIVALENT, ids=lambda one: f"{one['place']} {one['reason']}")
def test_what_is_listed_is_in_the_source(one):
    assert {*one} == {"file", "place", "before", "after", "reason"}
    assert one["before"] in lines_of(one["file"])
    assert one["before"] != one["after"]
    *_, name = one["place"].split(".")
    assert name in text_of(one["file"])


def test_a_fault_tells_its_place_and_changes_one_function():
    def find(tree):
        """The suffix of a tangent's name."""
        strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == "d"]
        return [(strings[0], lambda: setattr(strings[0], "value", "e"))]

    made = make(Site("passes/names.py", 0), find)
    assert (made.place, made.before, made.after) == (
        "tangent", "return f'd{name}'", "return f'e{name}'",
    )  # fmt: skip
    ((old, new),) = changed("passes/names.py", made.tree)
    assert (old.co_name, new.co_name) == ("tangent", "tangent")
    assert functions_of(["passes/names.py"])[key_of(old)] == [names.tangent]
    again = type(names.tangent)(new, {})
    assert (names.tangent("x"), again("x")) == ("dx", "ex")


def test_a_fault_that_python_warns_of_does_not_end_the_run():
    tree = ast.parse("x = 2.0[0]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled("passes/names.py", tree).co_names == ("x",)


@pytest.mark.parametrize("name", ["sin", "sqrt", "multiply", "log1p"])
@pytest.mark.parametrize("point", [0.3, np.array([0.3]), np.array([0.3 + 0.1j])], ids=repr)
def test_a_fault_in_a_partial_reaches_numbers_arrays_programs_and_every_order(name, point):
    """What was compiled of the right partial is not used any more."""
    primitive = registry.primitives[name]
    f = (lambda x: x * x) if name == "multiply" else getattr(np, name)

    def twice(x):
        return lineara.jvp(f, (x,), (x,))[1]

    def seen():
        one, two = lineara.jvp(f, (point,), (point,))[1], lineara.jvp(twice, (point,), (point,))[1]
        back = lineara.grad(lambda x: np.sum(np.real(f(x))))(point)
        staged = lineara.grad(lambda x: np.sum(np.real(f(x))), policy="store_all")(point)
        return [np.ravel(v)[0] for v in (one, two, back, staged)]

    right, partial = seen(), primitive.stated[0]
    code = partial.__code__
    try:
        partial.__code__ = (lambda *_: 7.5).__code__
        mutate_rules.forget()
        wrong = seen()
    finally:
        partial.__code__ = code
        mutate_rules.forget()
    assert np.all(np.abs(np.subtract(wrong, right)) > 0.1)
    assert seen() == right


def test_a_plan_of_a_faulty_rule_is_forgotten_with_it(monkeypatch):
    monkeypatch.setattr(plans, "CALLS", 1)
    slope = lineara.grad(lambda x: np.sum(x * np.ones((2, 3))))
    partial = registry.primitives["multiply"].stated[0]
    code, x = partial.__code__, np.arange(3.0)
    right = slope(x).tolist()
    try:
        partial.__code__ = (lambda *_: 7.5).__code__
        mutate_rules.forget()
        wrong = slope(x).tolist()
    finally:
        partial.__code__ = code
        mutate_rules.forget()
    assert (right, wrong) == ([2.0] * 3, [15.0] * 3)
    assert slope(x).tolist() == right


def test_a_derivative_takes_as_many_calls_after_all_tables_are_forgotten():
    square = lineara.grad(lambda x: x * x)
    before = calls(lambda: square(3.0))
    overlay().kept.note([[k] for k in range(20)])
    square(3.0)
    mutate_rules.forget()
    assert calls(lambda: square(3.0)) == before

"""What wires are called in a diagram of the user's function: variables, lines, conditions."""

import re
from html import unescape

import numpy as np

import lineara
from lineara.diagrams.lowering import lowered
from lineara.diagrams.net import copied, line_of, nodes_in
from lineara.diagrams.player import differentiation
from lineara.diagrams.svg import svg


def loss(w, x):
    hidden = np.tanh(w * x[0])
    if hidden > 0.2:
        total = hidden * 2.0
    else:
        low = 0.0 - hidden
        total = low
    return total


def root(x):
    guess = x
    for _ in range(2):
        guess = guess - 0.5 * guess * x
    return guess if guess > 1.0 else x


def test_a_traced_function_has_its_variables_its_lines_and_its_conditions():
    net = lowered(lineara.diagram(loss, 0.5, np.ones(3)))
    boxes = [n.outs[0].name for n in nodes_in(net) if n.kind == "box"]
    assert sorted(boxes) == ["else", "if hidden > 0.2"]
    (tanh,) = [n for n in nodes_in(net) if n.name == "tanh"]
    assert tanh.outs[0].name == "hidden"
    first = loss.__code__.co_firstlineno
    assert line_of(tanh) == f"{loss.__code__.co_filename}:{first + 1}"


def test_a_function_read_from_its_source_has_its_variables_and_no_unused_counters():
    net = lineara.diagram(root, 3.0)
    boxes = [n.outs[0].name for n in nodes_in(net) if n.kind == "box"]
    assert sorted(boxes) == ["else", "if guess > 1"]
    assert "drop" not in {n.kind for n in net.nodes.values()}
    assert net.inputs[0].name == "x"


def test_names_last_through_the_differentiation_and_cotangents_have_them_too():
    shots = differentiation(copied(lowered(lineara.diagram(loss, 0.5, np.ones(3))))).shots
    assert "hidden = tanh(" in shots[0].text
    assert "  hidden = tanh(" in shots[-1].text
    assert "w_bar = " in shots[-1].text
    titles = {b.title for shot in shots for b, _, _ in shot.change.put}
    assert any("test_names_of_wires.py" in t and "hidden = np.tanh(w * x[0])" in t for t in titles)


def described(f, *args):
    """The text beside a picture of a traced function."""
    held = re.search("<desc>(.*?)</desc>", svg(lineara.diagram(f, *args, by="trace")), re.DOTALL)
    assert held
    return unescape(held[1])


def twice(x, y):
    p = x * y * 2.0 * np.sin(x * y)
    q = p * p
    return q


def again(x, y):
    for _ in range(3):
        y = y * x * x
    return y


def test_what_a_line_computes_on_the_way_has_not_the_name_of_the_variable():
    lines = described(twice, 1.0, 2.0).splitlines()
    assert [line.strip() for line in lines if re.match(r"  [pq]", line)] == [
        "p = multiply(v3, v5)", "p_2, p_3 = copy(p)", "q = multiply(p_2, p_3)"
    ]  # fmt: skip
    rounds = re.findall(r"  (y_\d) = multiply\(v\d, ", described(again, 1.0, 2.0))
    assert rounds == ["y_2", "y_3", "y_4"]


def test_a_word_of_python_is_no_name():
    assigned_lambda = lambda x: x * x  # noqa: E731
    for by in ("source", "trace", "linear"):
        picture = svg(lineara.diagram(assigned_lambda, 1.0, by=by))
        assert not re.search(r"class=.name[^>]*>~?(lambda|assigned_lambda)", picture)

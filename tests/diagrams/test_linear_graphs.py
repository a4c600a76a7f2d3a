"""The linear graph of a derivative as a diagram: edges, what flows back, lines, refusals."""

import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from diagrams.test_player import film as data_of

import lineara
from lineara.__main__ import main
from lineara.diagrams import check, isomorphic, page, parse, show, svg
from lineara.diagrams.player import sweep
from lineara.diagrams.sweeps import flow
from lineara.errors import DiagramError, ShapeError
from lineara.tape.linear_graph import graph

X = np.arange(1.0, 7.0)
W = np.ones((1000, 2))


def loss(W, v):
    rows = W[np.array([7, 3, 7])]
    y = rows @ v
    return np.sum(y * y)


def written(x):
    y = np.zeros((3, 2))
    row, turned = y[1], y.T
    row[:] = x[:2]
    y[:, 0] += x[3:]
    turned[0, 2] = 7.0
    y *= y
    return row.sum() + turned[1].sum(), y[::-1]


def running(x):
    y = np.empty(6)
    for k in range(6):
        y[k] = (y[k - 1] if k else 1.0) * x[k]
    return y


def kinds(net):
    return Counter(node.kind for node in net.nodes.values())


def labels(net):
    return sorted([node.name for node in net.nodes.values() if node.kind == "frame"])


def test_the_graph_of_a_function_of_numbers():
    _, L = lineara.linearize(lambda x: x * 3.0 + x * x, 2.0)
    text = """(~x1: R) =>
  ~v1, ~v2 = copy(~x1)
  ~v3: R = frame["multiply × 3", "back: 3"](~v1)
  ~v4, ~v5 = copy(~v2)
  ~v6: R = frame["add × 1", "back: 1"](~v3)
  ~v7: R = frame["multiply × 2", "back: 2"](~v4)
  ~v8: R = frame["multiply × 2", "back: 2"](~v5)
  ~v9 = add[R](~v7, ~v8)
  ~v10: R = frame["add × 1", "back: 1"](~v9)
  ~v11 = add[R](~v6, ~v10)
  -> ~v11"""
    assert (
        re.sub(r" at test_linear_graphs.py:\d+ in <lambda>: [^\"]*", "", show(lineara.diagram(L)))
        == text
    )


def test_sparse_edges_say_what_they_send():
    _, L = lineara.linearize(loss, W, np.ones(2))
    net = lineara.diagram(L)
    assert labels(net) == [
        "Rows ← index",
        "matmul",
        "multiply × f64[3]",
        "multiply × f64[3]",
        "sum",
    ]
    assert kinds(net) == {"frame": 5, "copy": 1, "add": 1}
    rows = "[3, 0] 4, [3, 1] 4, [7, 0] 8, [7, 1] 8"
    assert f'"back: Rows(2 of 1 000 x 2, 0.2 %): {rows} at ' in show(net)
    assert '"back: [[4, 4], [4, 4], [4, 4]]; [12, 12] at ' in show(net)
    assert "Rows ← index" in svg(net)
    assert '"back: 1 for all of f64[3]"' in show(net)


PARTS = {
    "an element": (lambda W: W[4, 1] * 2.0, ["Coo ← [4, 1]", "multiply × 2"]),
    "a row": (lambda W: W[4] * 2.0, ["Rows ← view", "multiply × 2"]),
    "a column": (lambda W: W[:, 1] * 2.0, ["Coo ← view", "multiply × 2"]),
    "the whole": (lambda W: W.T * 2.0, ["multiply × 2", "view"]),
    "a product": (
        lambda W: np.ones(8) @ W.reshape(8, 250) @ np.ones(250),
        ["LowRank ← matmul", "matmul", "view"],
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_an_array_are_edges(part):
    f, expected = PARTS[part]
    net = lineara.diagram(lineara.linearize(f, W)[1])
    assert labels(net) == expected


def test_the_sweep_is_of_the_cotangent_that_is_given():
    _, L = lineara.linearize(lambda W: W * 2.0, W)
    assert show(lineara.diagram(L, W)) == show(lineara.diagram(L))
    assert '"back: f64[1000,2] at ' in show(lineara.diagram(L, W))
    with pytest.raises(ShapeError) as caught:
        lineara.diagram(L, np.ones(3))
    assert caught.value.message == (
        "drawing a linear map: the vector has a leaf f64[3], but the map takes f64[1000,2]"
    )


def test_the_map_is_as_it_was_after_its_picture():
    _, L = lineara.linearize(loss, W, np.ones(2))
    before = 1.0 @ L
    lineara.diagram(L)
    for a, b in zip(before, 1.0 @ L, strict=True):
        assert np.array_equal(a, b)


def test_an_array_that_is_given_twice_has_two_wires():
    net = lineara.diagram(lineara.linearize(lambda x, y: x[0] * y[1], X, X)[1])
    assert labels(net) == ["Rows ← [0]", "Rows ← [1]", "multiply × 1", "multiply × 2"]
    assert len(net.inputs) == 2
    assert kinds(net)["drop"] == 0


def test_edges_carry_the_line_and_the_operation():
    text = show(lineara.diagram(loss, W, np.ones(2), by="linear"))
    assert "in loss: rows = W[np.array([7, 3, 7])]" in text
    assert 'frame["multiply × f64[3]", "back: [2, 2, 2] at test_linear_graphs.py:' in text
    assert "in loss: y = rows @ v" in svg(parse(text))


def test_edges_of_a_map_are_links_to_the_lines_of_its_function():
    _, L = lineara.linearize(loss, W, np.ones(2))
    first = loss.__code__.co_firstlineno
    for net in (lineara.diagram(L), lineara.diagram(L.T), lineara.diagram(2.0 * L)):
        found = set(re.findall(r'<a href="([^"]*)"', svg(net)))
        assert {f"test_linear_graphs.py#L{first + i}" for i in (1, 2, 3)} == found
        opened = svg(net, link="editor:{file}:{line}")
        assert f'<a href="editor:test_linear_graphs.py:{first + 1}"><rect' in opened
    changed = [2.0]
    _, L = lineara.linearize(lambda x: x * changed[0], 3.0)
    changed[0] = 5.0  # the function is another one now, and the picture is that of the map
    assert labels(lineara.diagram(L)) == ["× 2"]
    assert "<a href" not in svg(lineara.diagram(L))


@lineara.custom_vjp
def picked(W):
    return W[3, 1] * 2.0


picked.defvjp(
    lambda W: (W[3, 1] * 2.0, None),
    lambda _, g: (lineara.cotangent.Coo([7], [2.0 * g], (1000, 2)),),
)


def test_an_edge_of_the_users_sends_what_its_rule_gives():
    net = lineara.diagram(lineara.linearize(picked, W)[1])
    assert labels(net) == ["Coo ← custom_vjp of picked"]
    assert "Coo ← custom_vjp of pic" in svg(net)  # the name is what is cut


FUNCTIONS = {
    "written arrays": (written, X),
    "elements one after the other": (running, X),
    "containers": (lambda d: (d["a"] * d["b"][0], 5.0), {"a": 2.0, "b": [3.0, 4.0]}),
    "a constant": (lambda x: 5.0, X),
    "the identity": (lambda x: x, X),
    "precision": (lambda x: x.astype(np.float32) * 2, X),
    "complex": (lambda x: x * x, 1 + 2j),
    "exact": (lambda x: x * x, Fraction(1, 2)),
    "decompositions": (lambda x: np.linalg.svd(x.reshape(2, 3))[1], X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_edge_is_drawn(name):
    f, x = FUNCTIONS[name]
    _, L = lineara.linearize(f, x)
    net = lineara.diagram(L)
    check(net)
    assert svg(net)
    assert isomorphic(parse(show(net)), net)
    edges = graph(L.tape, [np.ones(t.shape, t.dtype)[()] for t in L.codomain.types])
    ends = [e.out for e in edges]
    assert len({id(n) for n in ends}) == len(ends)
    known = {id(n) for n in L.tape.nodes}
    for e in edges:  # each behind those that it needs
        assert all(id(p) in known for p in e.parents)
        known.add(id(e.out))
    maps = sum([1 if e.joint else len([w for w in e.labels if w]) for e in edges])
    assert kinds(net)["frame"] == maps
    assert lineara.diagram(f, x, by="linear").gives == net.gives


def at_inputs(net):
    """The sum of what the edges at the first input send, where each sends one number."""
    total, open_ = 0.0, [net.inputs[0]]
    for w in open_:
        node, _ = w.target
        if node.kind == "copy":
            open_ += node.outs
        else:
            told = flow(node)
            assert told is not None
            total += complex(told.sent)
    return total


def of_x(x):
    return lineara.linearize(lambda x: x * 3.0 + x * x, x)[1]


MAPS = {
    "a product": lambda: of_x(10.0) @ of_x(2.0),
    "a product of three": lambda: of_x(1.0) @ of_x(4.0) @ of_x(2.0),
    "a sum": lambda: of_x(2.0) + of_x(5.0),
    "the sum of a list": lambda: sum([of_x(2.0), of_x(5.0), of_x(6.0)]),
    "a difference": lambda: of_x(2.0) - of_x(5.0),
    "a multiple": lambda: of_x(2.0) * 3.0,
    "a quotient": lambda: of_x(2.0) / 4.0,
    "the transpose": lambda: of_x(2.0).T,
    "the transpose of a product": lambda: (of_x(10.0) @ of_x(2.0)).T,
    "the transpose of a sum of multiples": lambda: (2.0 * of_x(2.0) + 3.0 * of_x(4.0)).T,
    "a product with a transpose": lambda: of_x(2.0).T @ of_x(5.0),
    "complex": lambda: lineara.linearize(lambda x: x * 2j, 1 + 1j)[1] * (1 + 2j),
    "complex, transposed": lambda: (lineara.linearize(lambda x: x * 2j, 1j)[1] * (1 + 2j)).T,
}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_that_was_made_of_others_is_drawn_from_theirs(name):
    L = MAPS[name]()
    net = lineara.diagram(L, 7.0)
    check(net)
    assert svg(net)
    assert isomorphic(parse(show(net)), net)
    assert at_inputs(net) == 7.0 @ L


def test_the_transpose_has_the_edges_turned():
    _, L = lineara.linearize(loss, W, np.ones(2))
    net = lineara.diagram(L.T, (W, np.ones(2)))
    names = ["indexᵀ", "matmulᵀ", "multiply × f64[3]", "multiply × f64[3]", "sumᵀ"]
    assert labels(net) == names
    assert net.gives == tuple([w.type for w in lineara.diagram(L).inputs])
    assert kinds(net) == {"frame": 5, "copy": 1, "add": 1}
    sent = {n.name: told.sent for n in net.nodes.values() if (told := flow(n))}
    assert (sent["indexᵀ"], sent["sumᵀ"]) == ("[[1, 1], [1, 1], [1, 1]]", "48")
    assert float(sent["sumᵀ"]) == L @ (W, np.ones(2))
    assert show(lineara.diagram(L.T.T)) == show(lineara.diagram(L))


def test_what_flows_nowhere_is_not_drawn_in_a_transpose():
    def apart(x, y):
        np.sin(y)
        return x[0] * 2.0, 5.0

    _, L = lineara.linearize(apart, X, X)
    net = lineara.diagram(L.T)
    check(net)
    assert kinds(net) == {"frame": 2, "zero": 1, "drop": 1}


def test_only_one_cotangent_is_swept():
    _, L = lineara.linearize(np.sin, np.ones(3))
    assert refusal(L, 1.0, 2.0) == (
        "diagram: one cotangent is swept back, and 2 were given; give those of several results as "
        "a tuple"
    )


# --- the page -------------------------------------------------------------------------------------


def test_a_page_sends_edge_by_edge_and_marks_the_line():
    net = lineara.diagram(loss, W, np.ones(2), by="linear")
    shots = sweep(net).shots
    assert [shot.rule for shot in shots] == [
        "", "sum", "multiply × f64[3]", "multiply × f64[3]", "matmul", "Rows ← index"
    ]  # fmt: skip
    assert shots[4].said == "matmul sends [[4, 4], [4, 4], [4, 4]]; [12, 12] back."
    assert [line.split("loss: ")[1] for line in shots[0].program.split("\n")] == [
        "rows = W[np.array([7, 3, 7])]", "y = rows @ v", "return np.sum(y * y)"
    ]  # fmt: skip
    assert any([line.endswith("loss: y = rows @ v") for line in shots[4].marked])
    film = data_of(page(net, "loss"))
    by_label = {shots[i].rule: texts for i, texts in enumerate(film["shots"])}
    lines, text = by_label["matmul"]["texts"]
    assert [film["lines"][i].split(": ")[1] for i, mark in lines if mark] == ["y = rows @ v"]
    assert [film["lines"][i].split("]")[0] for i, mark in text if mark] == ["  ~v2: f64[3"]
    drawn = {b[0] for b in film["shots"][0]["put"] if "frame" in b[2].split()}
    assert set(film["steps"]) == drawn  # an edge that is clicked has its step
    assert sorted(film["steps"].values()) == [1, 2, 3, 4, 5]


def test_a_page_of_a_map_whose_function_does_not_run_twice_says_how_lines_are_known():
    once = iter([loss])
    _, L = lineara.linearize(lambda W, v: next(once)(W, v), W, np.ones(2))
    shots = sweep(lineara.diagram(L @ lineara.linearize(lambda v: (W, v), np.ones(2))[1])).shots
    assert {shot.program for shot in shots} == {
        'lineara.diagram(f, *args, by="linear") knows the lines of f'
    }


def square(x):
    return x * x


def test_the_command_draws_a_linear_graph(tmp_path, capsys):
    source = ["diagram", "diagrams.test_linear_graphs:square", "--linear"]
    assert main([*source, "--args", "[[1, 2, 3]]"]) == 0
    assert "back: [1, 2, 3] at test_linear_graphs.py" in capsys.readouterr().out
    out = tmp_path / "out.html"
    assert main([*source, "--args", "[3]", "-o", str(out)]) == 0
    assert len(data_of(out.read_text())["shots"]) == 3
    assert main([*source, "--step", "3"]) == 2
    assert capsys.readouterr().err == (
        "diagram: --linear draws a function, without --step, --all, --gradient and --law\n"
    )


def refusal(*asked, **options):
    with pytest.raises(DiagramError) as caught:
        lineara.diagram(*asked, **options)
    return caught.value.message


def test_a_graph_that_cannot_be_read_is_refused():
    assert refusal(lambda x: sum([v * v for v in x]), np.ones(1000), by="linear") == (
        "diagram: the linear graph has 3000 edges, and can be read with up to 400; linearize a "
        "part of the function, or the function of smaller arguments"
    )


@pytest.mark.parametrize("transform", [lineara.grad, lineara.jit])
def test_a_graph_whose_numbers_are_traced_is_refused(transform):
    def inside(x):
        _, L = lineara.linearize(lambda z: z * x, x)
        lineara.diagram(L)
        return x

    with pytest.raises(DiagramError) as caught:
        transform(inside)(2.0)
    assert caught.value.message == (
        "diagram: the linear map was made inside another differentiation or a trace, and its "
        "numbers are not known; linearize outside"
    )

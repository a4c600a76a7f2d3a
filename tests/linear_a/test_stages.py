"""Stages: every pass shown, with costs that are counted and derivatives that are right."""

from html.parser import HTMLParser

import numpy as np
import pytest
from call_counts import calls
from test_forms import PROGRAMS, X
from test_trace import Layer, W, close, network

import lineara
from lineara.engines import Ask, Meter, forecast, run
from lineara.errors import NonScalarOutputError, StagingError
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_def

NAMES = ["captured", "jvp", "unzipped", "transposed", "erased", "simplified"]


def product(p, x):
    return np.sum(np.sin(p["a"] * x) / x)


P, Y = {"a": np.array([1.0, 2.0, 3.0])}, np.array([0.5, 1.5, 2.5])


def test_every_stage_is_there_in_order_and_the_texts_are_one_program():
    found = lineara.stages(product, P, Y)
    assert [s.name for s in found.stages] == NAMES
    *texts, simplified = [s.text for s in found.stages]
    whole, last = parse("\n".join(texts)), parse(f"{''.join(_types(texts))}{simplified}")
    assert {*whole.defs} == {*found.program.defs}
    assert all(show_def(d) == show_def(found.program.defs[d.name]) for d in last.defs.values())
    assert found.stages[-1].work <= found.stages[-2].work


def fill(x):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def late(x):
    s, t = 0.0, x * 1.0
    for i in range(len(x)):
        if i > 20:  # a branch that the number of the round chooses
            t = np.sin(t) * x[i]
        s = s + t[0]
    return s


def nested(x):
    s, y, rows = 0.0, x * 1.0, np.outer(x, x)
    for i in range(len(x)):
        for j in range(8):
            s = s + x[i] * y[j] * s
        y = np.sin(y) * rows[i]
    return s + y.sum()


def last(x):
    y = x
    for i in range(len(x)):
        y = np.cumsum(y) * x[i]
    for i in range(len(x)):
        y[i] += x[i] * y[0]
    return np.sum(y * y)


def branched(x):
    s = x[0]
    for i in range(len(x)):
        if x[i] > 0.0:  # taken, and the dearer one: its tape has the tag of a branch in every row
            s = s + x[i] * s
        for j in range(8):
            if i > 20:
                s = s * x[j]
            if x[j] > 0.0:
                s = np.sin(s) * x[i]
    return s


LOOPS = [fill, late, nested, last, branched]


@pytest.mark.parametrize("policy", ["store_all", "recompute_all", "minimal_tape"])
@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_what_is_foretold_of_loops_is_what_a_run_counts(f, policy):
    x = np.linspace(0.1, 0.9, 40)
    foretold = lineara.stages(f, x, policy=policy)
    ran = lineara.stages(f, x, policy=policy, run=True)
    assert [s.work for s in foretold.stages] == [s.work for s in ran.stages]
    assert foretold.certificate.tape_bytes == ran.certificate.tape_bytes
    program, name = foretold.program, f"{f.__name__}.jvp.nl"
    meter = Meter()
    run(program, name, *foretold.operands, ask=Ask(meter=meter))
    assert forecast(program, name, *foretold.operands).peak == meter.peak


def squared(x):
    s = x[0]
    for i in range(len(x)):
        for j in range(len(x)):
            if x[i] > x[j]:
                s = s + x[i] * s
    return s


@pytest.mark.parametrize("f", [fill, nested, last, squared], ids=lambda f: f.__name__)
def test_to_foretell_a_loop_costs_the_same_however_long_it_is(f):
    few, many = (calls(lambda n=n: lineara.stages(f, np.ones(n))) for n in (50, 5000))
    assert many <= 1.01 * few


def _types(texts):
    return [line + "\n" for t in texts for line in t.splitlines() if line.startswith("type ")]


def test_the_costs_are_counted():
    c = lineara.stages(product, P, Y).certificate
    assert c.value == 3 + 3 + 3 + 2  # multiply, sin, divide; two additions
    assert c.value < c.forward <= c.bound * c.value
    assert c.reverse <= c.forward + 9
    assert c.linear == ("product.jvp", "product.jvp.lin", "product.jvp.lin.t")
    assert str(c) == (
        "linear, by type: product.jvp, product.jvp.lin, product.jvp.lin.t\n"
        f"work: value 11, forward {c.forward}, reverse {c.reverse}, of which 0 a second time\n"
        "bound: forward <= 7 value + the size of the arrays that are given or made\n"
        f"memory: tape {c.tape_bytes} B, peak {c.peak} B"
    )


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_last_stage_is_the_gradient(f):
    value, g = lineara.stages(f, X).value_and_grad(X)
    y, expected = lineara.value_and_grad(f)(X)
    close(value, y)
    close(g, expected)


def test_gradients_have_the_containers_of_the_arguments():
    layers = [Layer(W[0], np.zeros(4)), Layer(W[1], np.ones(2))]
    _, (g, gx) = lineara.stages(network, layers, W[2]).value_and_grad(layers, W[2])
    expected, ex = lineara.grad(network, (0, 1))(layers, W[2])
    assert isinstance(g[1], Layer)
    assert g[1].name == "layer"
    close(g[1].w, expected[1].w)
    close(gx, ex)


class Tags(HTMLParser):
    """Which tags are open, and the text within <pre>."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_folds_and_is_escaped():
    found = lineara.stages(product, P, Y)
    tags = Tags()
    tags.feed(found._repr_html_())
    assert not tags.open
    assert tags.seen.count("details") == tags.seen.count("summary") == len(NAMES)
    assert found["unzipped"].text in tags.text
    assert "tape = <" in tags.text


def test_a_diff_shows_what_a_pass_changed():
    found = lineara.stages(product, P, Y)
    lines = found.diff("transposed", "erased").splitlines()
    assert lines[:2] == ["--- transposed", "+++ erased"]
    assert any(line.startswith("-") and "dup" in line for line in lines)
    assert found.diff("jvp", "jvp") == ""
    with pytest.raises(StagingError, match="no stage 'jvq'"):
        found["jvq"]


def test_a_gradient_needs_one_real_number():
    with pytest.raises(NonScalarOutputError) as error:
        lineara.stages(lambda x: x * x, X).value_and_grad(X)
    assert error.value.message == (
        "value_and_grad: the function must return one real number, but it returned f64[2]; reduce "
        "it (np.sum), or use vjp or jacobian for other results"
    )


def test_arguments_by_name_have_a_gradient_too():
    found = lineara.stages(lambda x, *, k: x * k, 2.0, k=3.0)
    assert found.value_and_grad(2.0, k=3.0) == (6.0, ((3.0,), {"k": 2.0}))

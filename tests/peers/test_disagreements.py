"""docs/disagreements.md says what each library answers: every row of its table is run."""

from pathlib import Path

import autograd
import autograd.numpy
import jax
import jax.numpy
import numpy as np
import pytest
import torch

import lineara

jax.config.update("jax_enable_x64", True)
torch.set_default_dtype(torch.float64)
PAGE = Path(__file__).parents[2] / "docs" / "disagreements.md"
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
CASES = {
    "`where(x > 0, sqrt(x), 0)`": (lambda xp, x: xp.where(x > 0, xp.sqrt(x), 0.0), 0.0),
    "`where(x != 0, sin(x) / x, 1)`": (lambda xp, x: xp.where(x != 0, xp.sin(x) / x, 1.0), 0.0),
    "`where(x > 0, x * log(x), 0)`": (lambda xp, x: xp.where(x > 0, x * xp.log(x), 0.0), 0.0),
    "`where(x < 10, exp(x), 0)`": (lambda xp, x: xp.where(x < 10, xp.exp(x), 0.0), 1000.0),
    "`linalg.norm(x)`": (lambda xp, x: xp.linalg.norm(x), np.zeros(2)),
    "`hypot(x, y)`": (lambda xp, x: xp.hypot(x[0], x[1]), np.zeros(2)),
    "`arctan2(x, y)`": (lambda xp, x: xp.arctan2(x[0], x[1]), np.zeros(2)),
    "`abs(x)`": (lambda xp, x: xp.abs(x), 0.0),
    "`x ** 0.0`": (lambda xp, x: x**0.0, 0.0),
    "`prod(x)`": (lambda xp, x: xp.prod(x), np.array([2.0, 0.0, 3.0])),
    "`linalg.det(x)` of [[1, 2], [2, 4]]": (lambda xp, x: xp.linalg.det(x), SINGULAR),
    "`std(x)`": (lambda xp, x: xp.std(x), np.ones(2)),
    "`logaddexp(x, y)`": (lambda xp, x: xp.logaddexp(x[0], x[1]), np.full(2, -np.inf)),
    "`sinc(x)`": (lambda xp, x: xp.sinc(x), 0.0),
    "second derivative of `sinc(x)`": (lambda xp, x: xp.sinc(x), 0.0),
    "second derivative of `i0(x)`": (lambda xp, x: xp.i0(x), 0.0),
}


def of_torch(f, x, second):
    t = torch.tensor(x, requires_grad=True)
    (g,) = torch.autograd.grad(f(torch, t), t, create_graph=second)
    return torch.autograd.grad(g, t)[0] if second else g


def of(grad, xp):
    def derivative(f, x, second):
        g = grad(lambda v: f(xp, v))
        return (grad(g) if second else g)(x)

    return derivative


LIBRARIES = {
    "Lineara": of(lineara.grad, np),
    "JAX": of(jax.grad, jax.numpy),
    "torch": of_torch,
    "Autograd": of(autograd.grad, autograd.numpy),
}


def shown(values):
    """As the page writes numbers."""
    rounded = [round(float(v), 4) + 0.0 for v in np.ravel(np.asarray(values))]
    return ", ".join("nan" if np.isnan(v) else f"{v:g}" for v in rounded)


def rows():
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return cells[0][2:], {row[0]: row[2:] for row in cells[2:]}


def test_every_row_is_run():
    names, table = rows()
    assert names == list(LIBRARIES)
    assert list(table) == list(CASES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_what_the_page_says_is_what_they_answer(name, library):
    f, x = CASES[name]
    names, table = rows()
    said = table[name][names.index(library)]
    try:
        found = shown(LIBRARIES[library](f, x, name.startswith("second")))
    except Exception:  # of each library its own
        found = "error"
    assert found == said

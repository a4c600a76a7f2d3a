"""Functions and objects of modules that nobody has imported yet, and what stands in for them."""

import subprocess
import sys
import types

import pytest

from lineara.facts.registry import Registry
from lineara.python.overlay import Overlay


@pytest.mark.parametrize(
    ("before", "function"),
    [
        ("", "from scipy.special import erf; return erf(x)"),
        ("", "from scipy import special; return special.erf(x)"),
        ("", "import scipy; return scipy.special.erf(x)"),
        ("import scipy", "return scipy.special.erf(x)"),
        ("from scipy.special import erf", "return erf(x)"),
        ("from scipy.special import erf as g", "return sum(map(g, [x]))"),
        ("grad(lambda x: 2 * x)(1.0); from scipy import special", "return special.erf(x)"),
        ("import scipy; grad(lambda x: scipy.special.erf(x))(0.0)", "return scipy.special.erf(x)"),
    ],
)
@pytest.mark.slow("starts a Python of its own for each case")
def test_scipy_is_imported_by_the_user_whenever_he_likes(before, function):
    text = f"""
import sys
from lineara import grad
assert "scipy" not in sys.modules
{before}
def f(x):
    {function}
assert abs(grad(f)(0.3) - 1.0312609097) < 1e-9
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)


def test_a_name_waits_for_its_module(monkeypatch):
    registry, found = Registry(), []
    registry.await_("someday.here.f", found.append)
    assert not registry.arrive()
    module = types.ModuleType("someday.here")
    module.f = len
    monkeypatch.setitem(sys.modules, "someday.here", module)
    assert registry.arrive()
    assert found == [len]
    assert not registry.arrive()


class Foreign:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return self.scale * x


class Ours(Foreign):
    def __call__(self, x):
        return "ours", super().__call__(x)


def ours(value):
    made = Ours.__new__(Ours)
    vars(made).update(vars(value))
    return made


def test_an_object_of_a_foreign_class_is_ours_in_the_users_code():
    twice, box = Foreign(2), {"inside": [Foreign(3)]}
    cell = Foreign(4)

    five = Foreign(5)

    def f(x, d=five):
        same = twice is twice and isinstance(twice, Foreign)
        return same, twice(x), box["inside"][0](x), cell(x), d(x), twice, [twice, cell]

    overlay = Overlay({}, objects={Foreign: ours})
    copied = overlay(f)
    *found, back, many = copied(1)
    assert found == [True, ("ours", 2), ("ours", 3), ("ours", 4), ("ours", 5)]
    assert type(back) is Ours
    assert overlay.restore([back, many]) == [twice, [twice, cell]]
    assert type(twice) is Foreign
    assert twice(1) == 2


def test_an_object_is_read_anew_in_each_run():
    thing = Foreign(2)

    def f():
        return thing(1)

    overlay = Overlay({}, objects={Foreign: ours})
    assert overlay(f)() == ("ours", 2)
    thing.scale = 7
    assert overlay(f)() == ("ours", 7)

"""Steps of a reduction: shared contexts, windows of steps, windows of terms; work is counted."""

import itertools
import json
from pathlib import Path

import pytest

from lineara import calculus
from lineara.__main__ import main
from lineara.calculus import reducer
from lineara.calculus import terms as tm
from lineara.calculus.reduction_steps import Traced

SECOND = r"pull(\x. pull(\y. y * y * sin(y); \_. covec(1)) x @ 1; \_. covec(1)) 2"


def fold(n: int) -> str:
    """The gradient of a product of n numbers."""
    numbers = ", ".join([str(1 + k / 8) for k in range(n)])
    return rf"pull(fold (\x. \y. x * y) 1; \_. covec(1)) [{numbers}]"


def frames(steps: list[Traced]) -> int:
    """How many frames the contexts of some steps have, each counted once."""
    seen: set[int] = set()
    for s in steps:
        context = s.context
        while context is not None and id(context) not in seen:
            seen.add(id(context))
            context = context.outer
    return len(seen)


def test_contexts_are_shared_so_what_a_trace_holds_grows_with_the_steps():
    counted = [frames(list(calculus.trace(fold(n)))) for n in (4, 8, 12)]
    assert counted[2] - counted[1] == counted[1] - counted[0]


def test_the_terms_that_a_trace_makes_grow_with_the_steps(monkeypatch):
    """A step has an environment of all that came before it, and makes terms of what it reads."""
    count, init = 0, tm.Term.__post_init__

    def counted(self: tm.Term) -> None:
        nonlocal count
        count += 1
        init(self)

    monkeypatch.setattr(tm.Term, "__post_init__", counted)
    terms, steps = [], []
    for n in (4, 8, 16):
        start = calculus.term(fold(n))
        count = 0
        steps.append(len(list(calculus.trace(start))))
        terms.append(count)
    assert steps[2] - steps[1] == 2 * (steps[1] - steps[0])
    assert terms[2] - terms[1] == 2 * (terms[1] - terms[0])


def test_no_term_is_put_together_for_a_window(monkeypatch):
    steps = list(calculus.trace(fold(6)))
    monkeypatch.setattr(reducer, "plugged", None)  # a call would raise
    assert all(s.text(2) for s in steps)


def test_a_window_is_as_long_whatever_the_term():
    longest = [max([len(s.text(2)) for s in calculus.trace(fold(n))]) for n in (4, 12)]
    assert longest[1] <= 1.2 * longest[0]  # names get longer: da%9, da%224


@pytest.mark.parametrize("text", [SECOND, fold(3)])
def test_each_term_is_the_one_before_with_its_redex_contracted(text):
    steps = list(calculus.trace(text))
    for s, after in itertools.pairwise(steps):
        contracted = reducer.filled(s.context, s.contractum)
        assert calculus.show(contracted) == calculus.show(after.term)
        assert s.text() == calculus.show(s.term, s.path)
    last = steps[-1]
    value = calculus.show(reducer.filled(last.context, last.contractum))
    assert value == calculus.show(calculus.reduce(text))


@pytest.mark.parametrize("around", [0, 1, 3, 40])
def test_a_window_of_a_context_is_that_of_the_whole_term(around):
    for s in list(calculus.trace(SECOND))[::7]:
        assert s.text(around) == calculus.show(s.term, s.path, around=around)
        at = 0
        for shown in s.text(around).strip("… ").split("…"):
            at = s.text().index(shown, at) + len(shown)


def test_a_window_says_what_is_left_out():
    step = next(calculus.trace("head (tail [1, 2, 3, 4, 5, sin(2 + 3), 7, 8, 9, cos(cos(2))])"))
    assert step.text(0) == "… «2 + 3» …"
    assert step.text(1) == "… sin(«2 + 3») …"
    assert step.text(2) == "… [1, …, sin(«2 + 3»), …, 9, …] …"
    assert step.text(9) == "head (tail [1, …, sin(«2 + 3»), …, 9, cos(cos(2))])"


def test_steps_are_given_from_one_number_to_another():
    every = [str(s) for s in calculus.trace(SECOND)]
    assert [str(s) for s in calculus.trace(SECOND, first=5, last=9)] == every[4:9]
    assert [str(s) for s in calculus.trace(SECOND, first=len(every))] == every[-1:]
    assert list(calculus.trace(SECOND, first=3, last=2)) == []


def test_the_command_line_has_both_windows(capsys, tmp_path: Path):
    file = tmp_path / "second.pb"
    file.write_text(SECOND)

    def said(*options: str) -> str:
        assert main(["calculus", "trace", str(file), *options]) == 0
        return capsys.readouterr().out

    wanted = list(calculus.trace(SECOND, first=20, last=22))
    window = ("--from", "20", "--steps", "3", "--around", "1")
    assert said(*window).splitlines() == [f"{s.head()}  {s.text(1)}" for s in wanted]
    shown = json.loads(said(*window, "--json"))
    assert [s["term"] for s in shown] == [s.text(1, ("", "")) for s in wanted]
    page = said(*window, "--html")
    assert page.count("<tr id=") == 3
    assert "<mark>" in page
    assert wanted[0].text(1).split("«")[0].replace("<", "&lt;").replace(">", "&gt;") in page


def test_a_trace_is_bounded_unless_more_is_asked_for(capsys, tmp_path: Path):
    def said(n: int, *options: str) -> str:
        numbers = ", ".join(map(str, range(1, n + 1)))
        file = tmp_path / "fold.pb"
        fold = f"fold (\\x. \\y. sin(x) * y) 1 xs in pull(total; \\_. covec(1)) [{numbers}]"
        file.write_text(f"let total = \\xs. {fold}")
        assert main(["calculus", "trace", str(file), *options]) == 0
        return capsys.readouterr().out

    lines = said(16).splitlines()
    assert len(lines) == 501
    assert lines[-1] == "     more: --from 501 goes on, --steps N prints N steps"
    assert max(map(len, lines)) < 1000
    few, more = (len(said(n, "--steps", "90")) for n in (4, 16))
    assert more < 1.5 * few  # what is far from the redex is not shown
    assert len(said(16, "--steps", "90", "--around", "all")) > 4 * more

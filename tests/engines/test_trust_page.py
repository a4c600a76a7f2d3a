"""docs/trust.md is what its figures make of it, and they are of a run without a disagreement."""

from pathlib import Path

from engines.trust_page import PAGE, figures, page

from lineara.crosscheck.report import Report


def test_the_page_is_what_the_figures_of_a_run_make():
    text = PAGE.read_text(encoding="utf-8")
    assert page(figures(text)) == text


def test_the_figures_are_of_a_run_without_a_disagreement():
    run = figures(PAGE.read_text(encoding="utf-8"))
    assert run.keys() == {"date", "seed", *Report.__slots__}
    assert run["programs"] >= 2_000
    assert run["found"] == []
    assert run["engines_disagree"] == run["oracle_disagrees"] == 0
    judged = run["programs"] - run["edges"] - run["not_finite"]
    assert run["against"] >= 10 * judged  # five runs, a value and a slope at least
    assert run["largest_between"] <= 1e-9
    assert run["largest_against"] <= 1e-9


def test_the_page_says_that_a_wrong_fact_is_not_seen_by_the_engines():
    text = PAGE.read_text(encoding="utf-8")
    assert "all four engines agree on the wrong gradient" in text
    index = (Path(PAGE).parent / "index.md").read_text(encoding="utf-8")
    assert "(trust.md)" in index

"""The page on a function: its lines are the user's in every stage, and so are the costs."""

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lineara
from lineara.__main__ import main
from lineara.errors import StagingError
from lineara.explorer.costs import rounds_of, tape_by_line, work_by_line
from lineara.passes.names import JVP, NL
from lineara.passes.policy_table import POLICIES
from lineara.policies import plan
from lineara.staging.stages import stages

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


def wave(x, w):
    y = np.sin(x) * w
    for _ in range(20):
        y = np.tanh(y)
    if np.sum(y) > 0:  # noqa: SIM108, the branches stand on lines of their own
        y = np.exp(y)
    else:
        y = np.arctan(y)
    z = np.sqrt(y + 2.0)
    return np.sum(z)


FIRST = wave.__code__.co_firstlineno
LINES = {"sin": 1, "tanh": 3, "exp": 5, "arctan": 7, "sqrt": 8, "sum[": 4}


@pytest.fixture(scope="module")
def explored():
    return lineara.explore(wave, np.ones(3), 2.0)


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("operation", ["sin", "tanh", "exp", "arctan", "sqrt"])
def test_an_operation_and_its_derivative_have_the_users_line_in_every_stage(explored, operation):
    """Each stands on one line; the cosine is the sine's."""
    wanted = f"{__file__}:{FIRST + LINES[operation]}"
    words = {"sin": r" (sin|cos)\(", "arctan": r" atan\("}.get(operation, rf" {operation}\(")
    for name, rows in explored.chosen[0].stages.items():
        of = [row.line for row in rows if re.search(words, row.text) and "def " not in row.text]
        assert set(of) <= {wanted}, name
        assert of or name in ("transposed", "erased"), name


def test_all_that_computes_has_a_line(explored):
    """What has none is plumbing: tapes of branches, made and taken apart."""
    for name, rows in explored.chosen[0].stages.items():
        if name != "machine code":
            unknown = [r.text for r in rows if r.text.startswith("  let") and not r.line]
            assert all([re.search(r"tape|<>|drop|\.jvp\.", t) for t in unknown]), (name, unknown)


def test_a_node_of_the_diagram_has_its_line(explored):
    shapes, _, _ = explored.diagram
    lines = {line.rpartition(":")[2] for shape, line in shapes if "<title>sin</title>" in shape}
    assert lines == {str(FIRST + 1)}


def test_the_lines_of_helpers_are_shown(explored):
    def helper(x):
        return np.cos(x) * x

    def f(x):
        return np.sum(helper(x))

    found = lineara.explore(f, np.ones(2))
    texts = [line.strip() for source in found.sources for line in source.lines]
    assert "return np.cos(x) * x" in texts
    assert "return np.sum(helper(x))" in texts


@pytest.mark.parametrize("n", [10, 20])
def test_costs_of_lines_add_up_to_those_of_the_whole(n):
    def f(x):
        y = np.sin(x)
        for _ in range(n):
            y = y * x + np.cos(y)
        return np.sum(y * x)

    x = np.ones(5)
    found = lineara.explore(f, x)
    made = stages(f, x)
    program, name = made.program, made.staged.name
    assert sum(work_by_line(program, rounds_of(program, [name])).values()) == made.certificate.value
    stored = tape_by_line(program, rounds_of(program, [name + JVP + NL]))
    assert sum(stored.values()) == made.certificate.tape_bytes
    by_line = {int(k.rpartition(":")[2]): c for k, c in found.costs.items() if k}
    body = f.__code__.co_firstlineno + 3
    assert (
        by_line[body].value == n * 3 * 5 + n + 1
    )  # three operations on five numbers, a count, its drop
    assert by_line[body].gradient == max([c.gradient for c in by_line.values()])


def halved(x):
    while np.sum(x) > 1.0:
        x = np.sin(x) * 0.5
    return np.sum(x * x)


@pytest.mark.parametrize("x", [np.full(3, 40.0), np.zeros(3)])
def test_rounds_that_depend_on_values_are_counted_in_a_run(x):
    found = lineara.explore(halved, x)
    ran = stages(halved, x, run=True)
    assert sum([c.value for c in found.costs.values()]) == ran.certificate.value
    for chosen in found.chosen:
        policy = POLICIES[chosen.policy]
        of = stages(halved, x, policy=policy, run=True)
        assert sum([c.gradient for c in chosen.costs.values()]) == of["simplified"].work
        assert sum([c.tape for c in chosen.costs.values()]) == chosen.tape
    rows = plan(halved, x).rows
    assert {r.policy: r[1:] for r in rows} == {
        c.policy: (c.tape, c.peak, c.work, c.again) for c in found.chosen
    }


def test_policies_are_computed_beforehand_and_say_what_they_cost(explored):
    assert explored.chosen[0].policy == "store_all"
    tapes = [c.tape for c in explored.chosen]
    assert tapes == sorted(tapes)[::-1]
    assert tapes[-1] < tapes[0]
    assert explored.chosen[0].again == 0 < explored.chosen[-1].again
    data = data_of(explored.page)
    assert [c["policy"] for c in data["choices"]] == [c.policy for c in explored.chosen]
    assert all([set(c["stages"]) == set(data["choices"][0]["stages"]) for c in data["choices"]])


def test_sparsity_and_kinks():
    found = lineara.explore(lambda x: np.abs(x[1:] * x[:-1]), np.array([0.0, 1.0, 2.0]))
    assert found.spy == [2, 3, 1, 4, [(0, 0), (0, 1), (1, 1), (1, 2)]]
    assert [(kink, times) for kink, _, times in found.kinks] == [("abs", "1")]


def test_what_is_the_users_is_escaped(tmp_path, monkeypatch):
    hostile = "</script><script>alert(1)</script><!-- @DATA@ @STYLE@"
    file = tmp_path / "hostile.py"
    file.write_text(
        f"import numpy as np\n\ndef f(x):\n    note = {hostile!r}\n    return np.sum(np.sin(x))\n"
    )
    out = tmp_path / "out.html"
    assert main(["explore", f"{file}:f", "--args", "[[1.0, 2.0]]", "-o", str(out)]) == 0
    page = out.read_text()
    assert page.count("</script>") == 2
    assert "<script>alert" not in page
    assert any([hostile in text for _, _, ls in data_of(page)["sources"] for text, _ in ls])
    found = lineara.explore(lambda x: x * 1.0, 1.0)
    found.name = "<b>"
    assert "<title>&lt;b&gt; explored" in found.page
    assert "<b>" not in found._repr_html_()


def test_the_slowest_line_comes_first(explored):
    first = repr(explored).split("\n")[1]
    assert "np.tanh(y)" in first
    assert "%" in first


# --- the command ----------------------------------------------------------------------------------


def refused(capsys, *given: str) -> str:
    assert main(["explore", *given]) == 1
    return capsys.readouterr().err


def test_wrong_use_is_said_in_words(tmp_path, capsys):
    out = str(tmp_path / "out.html")
    file = tmp_path / "model.py"
    file.write_text("def f(x):\n    return open(x)\ndef g(x, y):\n    return x * y\n")
    assert refused(capsys, "model.py", "-o", out) == (
        "model.py is not FILE.py:function or module:function, such as model.py:loss\n"
    )
    assert "--args" in refused(capsys, f"{file}:g", "--args", "[1.0", "-o", out)
    assert refused(capsys, f"{file}:f", "--args", "[1.0]", "-o", out)
    assert "cannot be written" in refused(
        capsys, f"{file}:g", "--args", "[1.0, 2.0]", "-o", str(tmp_path / "no" / "out.html")
    )


def test_the_help_says_that_the_file_is_run(capsys):
    with pytest.raises(SystemExit):
        main(["explore", "--help"])
    assert "FILE.py is imported, which runs what stands in it." in " ".join(
        capsys.readouterr().out.split()
    )


def test_what_cannot_be_captured_is_refused_with_its_line():
    def f(x):
        return float(str(x))

    with pytest.raises(StagingError) as caught:
        lineara.explore(f, 1.0)
    assert "return float(str(x))" in str(caught.value)


@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium to open the page with")
@pytest.mark.slow("starts a browser: 3 s")
def test_the_page_opens_in_a_browser(explored, tmp_path: Path):
    file = tmp_path / "page.html"
    explored.save(file)
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000", "--enable-logging=stderr", "--dump-dom", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    roles = Counter(re.findall(r'role="(tab|option)"', re.sub("<script.*", "", done.stdout)))
    assert roles == {"tab": 10, "option": 10}

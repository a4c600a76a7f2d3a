"""What the project says about itself in two places agrees."""

import ast
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import lineara
from lineara.facts.primitive import elementwise, registry

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", ["ruff", "pyright"])
def test_pre_commit_pins_the_versions_of_the_dev_extra(tool: str):
    dev = [pin for pin in PROJECT["optional-dependencies"]["dev"] if pin.startswith(tool)]
    assert dev
    assert set(re.findall(rf'"({tool}\b[^"]*)"', HOOKS)) == set(dev)


def test_every_extra_that_the_makefile_installs_exists():
    wanted = re.findall(r"\.venv/with-(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(wanted) <= PROJECT["optional-dependencies"].keys()


def test_a_changelog_fragment_is_two_sentences():
    fragments = sorted((ROOT / "changelog.d").glob("[0-9]*.md"))
    assert all(re.fullmatch(r"\d{3}", fragment.stem) for fragment in fragments)
    for fragment in fragments:
        text = fragment.read_text(encoding="utf-8").strip()
        assert len(re.findall(r"\.(?:\s|$)", text)) == 2, fragment.name


def floors() -> dict[str, str]:
    """The oldest version of each dependency, and of what the tests need of the extras."""
    extras = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"], *extras["plot"], *extras["frames"]]
    return dict(re.match(r"([\w-]+)>=([\d.]+)", line).groups() for line in listed)


def test_the_oldest_dependencies_that_are_tested_are_those_that_are_promised():
    text = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8")
    assert dict(re.findall(r"^([\w-]+)==([\d.]+)\.\*$", text, re.M)) == floors()


def test_the_workflow_runs_the_versions_of_python_that_are_promised():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    promised = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    (row,) = re.findall(r"^ +python: \[(.*)\]$", text, re.M)
    assert re.findall(r'"([\d.]+)"', row) == promised
    told = (ROOT / "docs" / "project" / "versions.md").read_text(encoding="utf-8")
    assert f"Python {promised[0]} to {promised[-1]} are supported" in told


def test_what_is_cited_is_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", text, re.M) == [lineara.__version__]


def test_the_two_lines_of_contributing_are_lines_of_the_two_files():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    pairs = zip(
        re.findall(r"^```text\n(.+)\n```", text, re.MULTILINE),
        ["src/lineara/ops/elementwise.py", "tests/test_primitives.py"],
        strict=True,
    )
    for line, file in pairs:
        assert (
            line in (ROOT / file).read_text(encoding="utf-8").replace("\n    ", "\n").splitlines()
        )


def test_a_primitive_that_numpy_lacks_asks_for_an_array_function():
    with pytest.raises(AssertionError, match=r"^elementwise: there is no np\.sinhc: give array="):
        elementwise("sinhc", lambda y, x: 1)
    assert "sinhc" not in registry.primitives


FOUND = 10  # assignments to `found` that are left; lower it with every file that is read again


def stores_of_found(file: Path) -> int:
    """How often a file assigns to `found`; parts of its tree without the word are not read."""
    text = file.read_text(encoding="utf-8")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if re.search(r"\bfound\b", line)]
    count, todo = 0, [*ast.parse(text).body] if lines else []
    while todo:
        node = todo.pop()
        count += (
            isinstance(node, ast.Name) and node.id == "found" and isinstance(node.ctx, ast.Store)
        )
        for part in ast.iter_child_nodes(node):
            first, last = getattr(part, "lineno", 0), getattr(part, "end_lineno", lines[-1])
            if bisect_right(lines, last) > bisect_left(lines, first):
                todo.append(part)
    return count


def test_no_more_variables_are_called_found():
    """A variable is named after its value: `found` says only that something was computed."""
    count = sum(map(stores_of_found, (ROOT / "src").rglob("*.py")))
    assert count <= FOUND, "name a variable after its value: y, node, root, weights, rows, .."


BARE = 99  # per mille of annotated parameters that are bare `Any`; it only falls


HEAD = re.compile(
    r"^ *(def (?:[^(\n]*\((?:\n.*)*?\n *\)|.*\))(?: -> .*)?:)(?: \.\.\.)?$", re.MULTILINE
)


def functions(text: str) -> list[ast.AST]:
    """The functions of a file, among others.

    Where all lie as the formatter lays them out their heads are parsed alone, a tenth of the text.
    """
    heads = HEAD.findall(text)
    if len(heads) == len(re.findall(r"^ *def \w", text, re.MULTILINE)):
        try:
            return [*ast.parse("\n".join([f"{head} ..." for head in heads])).body]
        except SyntaxError:  # a string holds the text of a function
            pass
    return [*ast.walk(ast.parse(text))]


def annotations(file: Path) -> Iterator[str]:
    """The annotation of every parameter that has one, `*args` and `**kwargs` left out."""
    for node in functions(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.FunctionDef):
            for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if a.annotation is not None:
                    yield ast.unparse(a.annotation)


def test_no_more_parameters_are_annotated_with_any():
    """What a parameter may be is said by a class or by a name of lineara/facts/hints.py."""
    asked = Counter(a for file in (ROOT / "src").rglob("*.py") for a in annotations(file))
    share = 1000 * asked["Any"] / asked.total()
    assert share <= BARE, "annotate with a class or a name of facts/hints.py"


SLOW = re.compile(r"(pandas|xarray|pint|scipy\.signal)\b")  # together about a second


def imported_at_the_top(text: str) -> Iterator[str]:
    """The modules and the names that a file imports as it begins."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            within = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (within + name.name for name in node.names)


def test_no_test_file_imports_at_its_top_what_takes_long():
    """Each of pytest's processes collects every file, and runs the tests of some."""
    files = [f for f in (ROOT / "tests").rglob("test_*.py") if f.parent.name != "libraries"]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    asking = {n: t for n, t in texts.items() if re.search("import.*(pandas|xarray|pint|signal)", t)}
    wrong = [
        f"{n}: {m}" for n, t in asking.items() for m in imported_at_the_top(t) if SLOW.match(m)
    ]
    assert wrong == [], "import it in the test, or in a fixture of the file; SciPy does so itself"


ABSTRACT = {"NotImplementedError", "StopIteration"}  # a base's method; the end of an iterator


def test_an_exception_says_what_is_wrong():
    """One that we catch ourselves, too: it may get away."""
    silent = []
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"^ *raise ([\w.]*\b[A-Z]\w*)(?:\(\))?(?: from .*)?$", text, re.M):
            silent += [f"{file.name}: raise {name}"] if name not in ABSTRACT else []
    assert silent == []


def test_no_two_test_files_have_one_name():
    """pytest imports them by their names, and would collect none of both."""
    apart = {"peers", "libraries", "conformance"}  # which `make test` does not collect
    files = [f for f in (ROOT / "tests").rglob("test_*.py") if f.parent.name not in apart]
    names = Counter([file.name for file in files])
    assert [name for name, count in names.items() if count > 1] == []

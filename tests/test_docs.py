"""What the documentation shows runs, and prints what it says; what it names exists."""

import ast
import inspect
import io
import re
import runpy
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from lineara import errors
from lineara.facts.registry import registry
from lineara.linear_a.branches import Cond
from lineara.linear_a.calls import Call
from lineara.linear_a.loops import While
from lineara.linear_a.syntax import Prim
from lineara.tape.level import method_codes_once
from lineara.tape.levels import threads

ROOT = Path(__file__).parent.parent
ERROR_PAGES = ROOT / "docs" / "errors"
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CLASSES = [
    kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, (errors.LinearaError, Warning))
    if kind is not errors.LinearaError and name == kind.__name__
]


def code(text: str) -> str:
    """The Python blocks of a page, as one program."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def sections(page: Path) -> dict[str, str]:
    """A page by its second-level headings."""
    parts = re.split(r"^## (.*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def outputs(program: str) -> list[str]:
    """What the comments beside the calls of print say will be printed."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)


def run_as_a_file(program: str, folder: Path) -> list[str]:
    """The lines that a user sees who pastes the program into a file and runs it."""
    file, shown = folder / "pasted.py", io.StringIO()
    file.write_text(program, encoding="utf-8")
    known, foreign = {*registry.primitives}, dict(registry.foreign)
    awaited = {module: [*waiting] for module, waiting in registry.awaited.items()}
    try:
        with redirect_stdout(shown), warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(file), run_name="__main__")
    finally:  # a page that declares primitives leaves none to other tests
        for name in {*registry.primitives} - known:
            del registry.primitives[name]
            method_codes_once.cache_clear()  # nodes have methods of elementwise ones
            threads.waiting.clear()
        registry.awaited.update(awaited)  # what came with a module that the page imported
        registry.foreign.clear()
        registry.foreign.update(foreign)
    return shown.getvalue().splitlines()


@pytest.mark.parametrize(
    "page", [t for t in TEXTS if t.parent != ERROR_PAGES or t.stem == "index"], ids=lambda p: p.stem
)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path):
    program = code(page.read_text(encoding="utf-8"))
    if program:
        assert outputs(program), "the page promises no output, so running it shows little"
        assert run_as_a_file(program, tmp_path) == outputs(program)


def test_the_methods_of_a_form_are_those_that_are_told():
    page = sections(ROOT / "docs" / "how-to-add.md")["A control-flow form"]
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    common = set.intersection(*[{n for n in dir(f) if n[0] != "_"} for f in (Call, Cond, While)])
    data = {"HANDS_ALL_ON", "functions", "stated"}
    assert told == common - {n for n in dir(Prim) if n[0] != "_"} - data


def test_the_readme_shows_code_and_fits_a_screen():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert code("\n".join(lines) + "\n")
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 150


def test_the_comparisons_of_the_readme_are_those_of_the_file_of_measurements():
    made = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert made["BEGIN"] + made["table"]() + made["END"] in text
    pictured = made["PICTURE"].read_text(encoding="utf-8")
    assert all(f">{name}<" in pictured for name in made["derivatives"]())


def test_every_error_has_its_page_and_every_page_its_error():
    pages = {page.stem for page in ERROR_PAGES.glob("*.md")} - {"index"}
    assert pages == {kind.__name__ for kind in CLASSES}
    index = (ERROR_PAGES / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == pages


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_example_of_an_error_page_raises_exactly_that_error(kind: type[Exception]):
    page = ERROR_PAGES / f"{kind.__name__}.md"
    program = code(sections(page)["An example"])
    with pytest.raises(kind) as caught:
        exec(compile(program, "example.py", "exec"), {"__name__": "example"})
    assert caught.type is kind


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_what_an_error_page_advises_works(kind: type[Exception], tmp_path: Path):
    program = code(sections(ERROR_PAGES / f"{kind.__name__}.md")["What works instead"])
    assert outputs(program)
    assert run_as_a_file(program, tmp_path) == outputs(program)


@pytest.mark.parametrize("page", [*TEXTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"])
def test_links_and_files_that_a_page_names_exist(page: Path):
    text = re.sub(r"```text\n.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    links = [page.parent / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
    named = [
        ROOT / file for file in re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]+)`", text)
    ]
    assert [str(file) for file in links + named if not file.exists()] == []


def test_every_citation_in_the_source_has_its_key_in_the_table():
    keys = set(
        re.findall(r"^\| \[(.+?)\] \|", (ROOT / "docs/paper.md").read_text(encoding="utf-8"), re.M)
    )
    cited = set()
    for file in (ROOT / "src").rglob("*.py"):
        for bracket in re.findall(r"\[([A-Z][^\[\]]*)\]", file.read_text(encoding="utf-8")):
            for part in bracket.split(";"):
                key = part.split(",")[0].strip()
                if re.fullmatch(
                    r"YOLO|Downhill|Pullback|Diagrams|[A-Z]\w+(?: and [A-Z]\w+)? \d{4}", key
                ):
                    cited.add(key)
    assert cited <= keys


def reading_order() -> list[tuple[Path, str, int, str]]:
    """The rows of the list to read first: file, where to stop, lines, what is taken on trust."""
    text = (ROOT / "docs" / "reading-order.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \| `(.+?)` \| (.+?) \| (\d+) \| .+? \| (.+?) \|$", text, re.M)
    stop = {"all": ""}
    return [
        (ROOT / file, stop.get(end, end.removeprefix("to `").removesuffix("`")), int(count), trust)
        for file, end, count, trust in rows
    ]


def read_lines(file: Path, stop: str) -> list[str]:
    """The lines of a file up to the one that starts with `stop`."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return lines if not stop else lines[: [line.startswith(stop) for line in lines].index(True)]


def test_what_runs_a_statement_of_a_paper_exists():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    rows = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", text)
    named = [(file, name) for file, names in rows for name in re.findall(r"\w+", names)]
    assert len(named) > 30
    missing = [
        (file, name)
        for file, name in named
        if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_each_statement_of_a_paper_is_run_by_something():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| statement \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    assert len(tables) == 4  # one for each of the four systems
    rows = [row for table in tables for row in table.splitlines()]
    assert [r for r in rows if "`tests/" not in r and not r.startswith("| *")] == []
    files = {file for row in rows for file in re.findall(r"`((?:src|tests)/[\w/]+\.py)`", row)}
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_reading_order_counts_its_lines():
    rows = reading_order()
    for file, stop, count, _ in rows:
        found = len(read_lines(file, stop))
        assert abs(found - count) <= 0.1 * count, f"{file} has {found} lines, not {count}"
    page = (ROOT / "docs" / "reading-order.md").read_text(encoding="utf-8")
    stated = int(re.findall(r"These ([\d,]+) lines", page)[0].replace(",", ""))
    total = sum(count for _, _, count, _ in rows)
    assert 900 <= total <= 1700
    assert abs(total - stated) <= 10


def test_the_reading_order_leads_into_every_room():
    text = (ROOT / "docs" / "reading-order.md").read_text(encoding="utf-8")
    named = {Path(file).parent for file in re.findall(r"`(src/lineara/\S+\.py)`", text)}
    packages = {file.parent.relative_to(ROOT) for file in ROOT.glob("src/lineara/**/__init__.py")}
    one_file = {room for room in packages if len([*(ROOT / room).glob("*.py")]) == 1}
    assert packages - one_file - named == set()


def test_a_file_of_the_reading_order_imports_those_above_or_what_it_says():
    above = {"errors"}
    for file, stop, _, trust in reading_order():
        name = file.relative_to(ROOT / "src" / "lineara").with_suffix("").as_posix()
        trusted = set(re.findall(r"`(.+?)`", trust))
        nodes = [] if stop else ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        imported = {
            node.module.removeprefix("lineara.").replace(".", "/")
            for node in nodes
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lineara.")
        }
        assert imported - above <= trusted, name
        above.add(name)

"""The layers of `src/lineara`, drawn; an import points down, and late imports count.

A row may import the rows below it.  Names in one row may import each other, without a cycle;
names on the two sides of a bar may not.
"""

import ast
import graphlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
LAYERS = """
    __main__  cli  demo  explorer | distributed | crosscheck
    lineara
    bridges
    numpy | random | testing | calculus | diagrams | frameworks
    api  geometry  rules  staging  diagnose  policies  solvers  sparse
    labels
    python
    tape | passes
    containers | engines
    ops | linear_a
    cotangent
    linear_map
    colouring
    facts | trees | text
    errors | trampoline
"""

Edge = tuple[str, str]
ROWS = [[side.split() for side in row.split("|")] for row in LAYERS.strip().splitlines()[::-1]]
PLACE = {name: (i, j) for i, row in enumerate(ROWS) for j, side in enumerate(row) for name in side}


def module_name(file: Path, source: Path) -> str:
    """`src/lineara/ops/index.py` is `lineara.ops.index`, `src/lineara/__init__.py` is `lineara`."""
    return ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def targets(node: ast.AST, package: str) -> Iterator[str]:
    """The dotted names that an import statement, or an `import_module("...")`, may mean."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*above, module] if module else above)
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield name


STATEMENT = re.compile(r"^ *((?:from|import) [^(\n]*(?:\([^)]*\))?)", re.MULTILINE)


def imports(text: str) -> list[ast.AST]:
    """The nodes of a module that may import.

    Lines that begin as an import statement are parsed alone, a tenth of what a module takes; where
    one is not Python by itself, or a text names a function that imports, the module is parsed.
    """
    if "import_module" not in text and "__import__" not in text:
        try:
            return ast.parse("\n".join(STATEMENT.findall(text))).body
        except SyntaxError:
            pass
    return [*ast.walk(ast.parse(text))]


@cache
def import_edges(source: Path) -> set[Edge]:
    """Who imports whom in `source/lineara`, wherever in the file the import stands."""
    files = {module_name(file, source): file for file in source.glob("lineara/**/*.py")}
    edges = set()
    for me, file in files.items():
        package = me if file.name == "__init__.py" else me.rpartition(".")[0]
        for node in imports(file.read_text(encoding="utf-8")):
            for found in targets(node, package):
                while found and found not in files:  # `from module import name` means the module
                    found = found.rpartition(".")[0]
                if found and found != me:
                    edges.add((me, found))
    return edges


def layer(module: str) -> str:
    """The name in the drawing: `ops` for `lineara.ops.index`."""
    return f"{module}.lineara".split(".")[1]


def upward(edges: Iterable[Edge]) -> list[str]:
    """The imports that point up, or across a bar."""
    wrong = []
    for me, it in sorted(edges):
        (i, j), (k, m) = PLACE[layer(me)], PLACE[layer(it)]
        if k > i or (k == i and m != j):
            wrong.append(f"{me} imports {it}, which is not below it")
    return wrong


def cycle(edges: Iterable[Edge]) -> list[str]:
    """One import cycle, or the empty list."""
    graph = graphlib.TopologicalSorter()
    for me, it in edges:
        graph.add(me, it)
    try:
        graph.prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_every_module_has_its_place_in_the_drawing():
    modules = {layer(module_name(file, SOURCE)) for file in SOURCE.glob("lineara/**/*.py")}
    assert modules <= PLACE.keys()


def test_imports_point_down():
    assert upward(import_edges(SOURCE)) == []


def test_no_import_cycle():
    assert cycle(import_edges(SOURCE)) == []


@pytest.mark.parametrize(
    "text",
    [
        "from lineara.api import grad",
        "from ..api import grad",
        "from .. import api",
        "import lineara.api as a",
        "def f():\n    from lineara.api import grad",
        "def f():\n    import_module('lineara.api')",
        "if TYPE_CHECKING:\n    import lineara.api",
    ],
)
def test_an_import_that_points_up_is_found(tmp_path: Path, text: str):
    (tmp_path / "lineara/ops").mkdir(parents=True)
    (tmp_path / "lineara/api.py").touch()
    (tmp_path / "lineara/ops/index.py").write_text(text)
    assert upward(import_edges(tmp_path)) == [
        "lineara.ops.index imports lineara.api, which is not below it"
    ]


def test_a_late_import_closes_a_cycle(tmp_path: Path):
    (tmp_path / "lineara/ops").mkdir(parents=True)
    (tmp_path / "lineara/ops/index.py").write_text("from lineara.ops import shape")
    (tmp_path / "lineara/ops/shape.py").write_text("def f():\n    from . import index")
    edges = import_edges(tmp_path)
    assert upward(edges) == []
    assert set(cycle(edges)) == {"lineara.ops.index", "lineara.ops.shape"}


def test_towers_do_not_lean_on_each_other():
    assert upward({("lineara.calculus.terms", "lineara.diagrams")})
    assert not upward({("lineara.calculus.terms", "lineara.ops.index")})

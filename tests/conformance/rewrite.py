"""The text of a test module in which every call and every number says that it may be lifted.

    x = np.zeros(3) + 0.5         becomes        x = _lift(np.zeros(3)) + _lift(0.5)
    assert_equal(x, [0.5])                       assert_equal(_unlift(x), _unlift([_lift(0.5)]))
    with assert_raises(TypeError): ...           with _raises(assert_raises, TypeError): ...
    def test_one(): ...                          @_lifted_test
                                                 def test_one(): ...

What runs when the module is imported (decorators, defaults, tables of cases) is left as it is.  One
departure that docs/numbers.md states is taken out: `repr` of a traced value says that it is one.
"""

import ast
from pathlib import Path

EXPECT = {"assert_raises", "assert_raises_regex", "raises", "assertRaises", "assertRaisesRegex"}
EXPECT |= {"warns", "assert_warns", "assertWarns"}
CALLS = {"assert_no_warnings", "assert_raises_fpe"}  # something
LEFT = {"super", "locals", "globals", "getrefcount", "_getframe"}


def _name(f: ast.expr) -> str:
    return f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _plain(test: ast.expr) -> ast.expr:
    """What an `assert` tells true from false, as plain values."""
    if isinstance(test, ast.BoolOp):
        test.values = [_plain(v) for v in test.values]
        return test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = _plain(test.operand)
        return test
    return _call("_unlift", test)


def _compares(f: ast.expr) -> bool:
    """Whether this is a function that compares what it is given."""
    name = _name(f)
    return name.startswith("assert") and name not in CALLS


class Rewrite(ast.NodeTransformer):
    """The statements inside of functions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.package = ".".join(path.parts[path.parts.index("numpy") : -1]) if _numpys(path) else ""
        self.inside = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.inside += 1
        node.body = [self.visit(s) for s in node.body]
        self.inside -= 1
        if node.name.startswith("test") and not self.inside:
            node.decorator_list.append(ast.Name("_lifted_test", ast.Load()))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        node.body = self.visit(node.body)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        floating = isinstance(node.value, float | complex)
        return _call("_lift", node) if self.inside and floating else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        for part in node.values:
            if isinstance(part, ast.FormattedValue) and part.conversion == ord("r"):
                part.value = _call("_unlift", part.value)
        return node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = _name(node.func)
        if not self.inside or name in LEFT:
            return node
        if name == "repr":
            node.args = [_call("_unlift", a) for a in node.args]
            return node
        if name in EXPECT:
            made = _call("_raises", node.func, *node.args)
            made.keywords = node.keywords
            return made
        if not _compares(node.func):
            return _call("_lift", node)
        node.args = [
            ast.Starred(_call("_unlift", a.value), a.ctx)
            if isinstance(a, ast.Starred)
            else _call("_unlift", a)
            for a in node.args
        ]
        for option in node.keywords:
            option.value = _call("_unlift", option.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        self.generic_visit(node)
        node.test = _plain(node.test) if self.inside else node.test
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        if self.inside and isinstance(node.ops[0], ast.Is | ast.IsNot):
            node.left = _call("_truth", node.left)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(str(self.path)) if node.id == "__file__" else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level:
            parts = self.package.split(".")[: len(self.package.split(".")) - node.level + 1]
            node.module, node.level = ".".join([*parts, *([node.module] * bool(node.module))]), 0
        return node


def _numpys(path: Path) -> bool:
    return "numpy" in path.parts


def rewritten(path: Path) -> str:
    """The text of the module at `path`, whose names `_lift` and others a plugin gives."""
    tree = Rewrite(path).visit(ast.parse(path.read_text(encoding="utf-8")))
    names = ", ".join(["_lift", "_unlift", "_lifted_test", "_raises", "_truth"])
    first = 1 if ast.get_docstring(tree) is not None else 0
    while isinstance(tree.body[first], ast.ImportFrom) and tree.body[first].module == "__future__":
        first += 1
    tree.body.insert(first, ast.parse(f"from lineara_conformance import {names}").body[0])
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"

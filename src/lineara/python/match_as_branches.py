"""`match` as branches, where its patterns compare: numbers, texts, sequences, captures, wildcards.

    match s:                                 subject.1 = s
        case 0 | 1: a         becomes        if subject.1 == 0 or subject.1 == 1: a
        case k if k > 3: b                   elif (k := subject.1,) != () and k > 3: b
        case _: c                            else: c

A capture is a test that is true.  Patterns of classes, of mappings and with stars are left to
Python.
"""

import ast
import itertools
from collections.abc import Sequence

from lineara.python.namespaces import FORMS


def as_branches(node: ast.AST) -> None:
    """Let each `match` of a function be branches, in place."""
    _Matches().visit(node)


class _Matches(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = itertools.count(1)

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """The branches, after what is asked of is in a variable of its own."""
        self.generic_visit(node)
        if not all([_compares(c.pattern) for c in node.cases]):
            return node
        name = f"subject.{next(self.count)}"
        below: list[ast.stmt] = []
        for case in reversed(node.cases):
            tests = _tests(case.pattern, ast.Name(name, ast.Load()))
            tests += [] if case.guard is None else [case.guard]
            if tests:
                below = [_placed(ast.If(_all(tests), case.body, below), case.pattern)]
            else:
                below = case.body
        subject = ast.Assign([ast.Name(name, ast.Store())], node.subject)
        return [_placed(subject, node.subject), *below]


def _compares(p: ast.pattern) -> bool:
    """Whether a pattern asks nothing but whether parts are equal."""
    if isinstance(p, ast.MatchOr | ast.MatchSequence):
        return all(map(_compares, p.patterns))
    if isinstance(p, ast.MatchAs):
        return p.pattern is None or _compares(p.pattern)
    return isinstance(p, ast.MatchValue | ast.MatchSingleton)


def _tests(p: ast.pattern, s: ast.expr) -> list[ast.expr]:
    """What has to be true, one after the other."""
    if isinstance(p, ast.MatchValue):
        return [ast.Compare(s, [ast.Eq()], [p.value])]
    if isinstance(p, ast.MatchSingleton):
        return [ast.Compare(s, [ast.Is()], [ast.Constant(p.value)])]
    if isinstance(p, ast.MatchOr):
        return [ast.BoolOp(ast.Or(), [_all(_tests(q, s)) for q in p.patterns])]
    if isinstance(p, ast.MatchSequence):
        n = ast.Constant(len(p.patterns))
        ask = ast.Attribute(ast.Name(FORMS, ast.Load()), "is_sequence", ast.Load())
        tests: list[ast.expr] = [ast.Call(ask, [s, n], [])]
        for i, q in enumerate(p.patterns):
            tests += _tests(q, ast.Subscript(s, ast.Constant(i), ast.Load()))
        return tests
    assert isinstance(p, ast.MatchAs), "no other pattern compares alone"
    inner = [] if p.pattern is None else _tests(p.pattern, s)
    bind = [] if p.name is None else [_binding(p.name, s)]
    return [*inner, *bind]


def _binding(name: str, s: ast.expr) -> ast.expr:
    bound = ast.NamedExpr(ast.Name(name, ast.Store()), s)
    empty = ast.Tuple([], ast.Load())
    return ast.Compare(ast.Tuple([bound], ast.Load()), [ast.NotEq()], [empty])


def _all(tests: Sequence[ast.expr]) -> ast.expr:
    if not tests:
        return ast.Constant(True)
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), [*tests])


def _placed(made: ast.stmt, at: ast.AST) -> ast.stmt:
    """Syntax that stands where another one stood, as far as it has no place yet."""
    for n in ast.walk(made):
        if "lineno" in n._attributes and not hasattr(n, "lineno"):
            ast.copy_location(n, at)
    return made


__all__ = ["as_branches"]

"""Which uses of a function's variables may find them without a value.

    mark(function)      each such use keeps `node.unset`: the lines that bind the variable, and
                        whether it is one of a function around

A variable has a value where every way from the beginning binds it (the textbook's forward analysis,
on the syntax tree).  A nested function has the values that there are where it is defined, and asks
for the rest when it runs.
"""

import ast
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from lineara.python.liveness import (
    COMPREHENSIONS,
    FUNCTIONS,
    NONE,
    SCOPES,
    Names,
    around,
    bound,
    children,
    declared,
    every,
    names_in,
    parameters,
)

Sure = Names | None  # the names that have a value; None where no way leads


def mark(node: Any) -> None:
    """Mark the uses, in a function and in those nested in it, of variables without a value."""
    _Function(node, {}, NONE)


class _Function:
    """One function: what its names stand for, and what has a value as it is gone through."""

    def __init__(self, node: Any, outer: dict[str, tuple[int, ...]], sure: Names) -> None:
        body = node.body if isinstance(node.body, list) else [node.body]
        params = frozenset(parameters(node.args))
        globals_, nonlocals = declared(node)
        others = globals_ | nonlocals
        bound_here = bound(body)
        own = bound_here - others
        self.lines = {n: v for n, v in outer.items() if n not in own | params | others}
        self.lines |= {n: v for n, v in outer.items() if n in nonlocals}
        lines: dict[str, list[int]] = {n: [] for n in (own - params) | (bound_here & params)}
        nodes = every(body)
        for n in nodes:
            if type(n) is ast.Name and type(n.ctx) is not ast.Load and n.id in own:
                lines[n.id].append(n.lineno)
        self.lines |= {n: tuple(numbers) for n, numbers in lines.items()}
        self.own = own
        self.sure: Sure = params | (sure - own)
        self.deleted = _taken(nodes)
        self.breaks: list[Sure] = []
        self.block(body)

    def block(self, statements: Iterable[ast.AST]) -> None:
        """Go through statements, or an expression."""
        for s in statements:
            if self.sure is not None:
                self.visit(s)

    def visit(self, n: ast.AST) -> None:
        """Go through what a node evaluates, in its order."""
        names = names_in(n)
        if names is not None:
            for name in names:
                self.visit_Name(name)
            return
        special = getattr(self, f"visit_{type(n).__name__}", None)
        if special is not None:
            special(n)
        elif isinstance(n, SCOPES):
            self._nested(n)
        elif isinstance(n, COMPREHENSIONS):
            self._comprehension(n)
        else:
            self.block(children(n))

    def _after(self, *ways: Sure) -> None:
        """One of several ways leads here."""
        some = [w for w in ways if w is not None]
        self.sure = frozenset.intersection(*some) if some else None

    def _of(self, sure: Sure, block: Sequence[ast.AST]) -> Sure:
        """What has a value after a block that begins so."""
        self.sure = sure
        self.block(block)
        return self.sure

    # --- names ------------------------------------------------------------------------------------

    def visit_Name(self, n: Any) -> None:
        """A use, or what gives the variable a value or takes it."""
        assert self.sure is not None, "some way leads here"
        if type(n.ctx) is ast.Store:
            if n.id not in self.sure:
                self.sure |= {n.id}
            return
        if n.id not in self.sure and n.id in self.lines:
            n.unset = self.lines[n.id], n.id not in self.own
        if type(n.ctx) is ast.Del:
            self.sure -= {n.id}

    def visit_AugAssign(self, n: ast.AugAssign) -> None:
        """The target is read, too."""
        if isinstance(n.target, ast.Name):
            read: Any = ast.Name(n.target.id, ast.Load())
            self.visit(read)
            if hasattr(read, "unset"):
                n.target.unset = read.unset  # type: ignore[attr-defined]
        self.block([n.value, n.target])

    def visit_Assign(self, n: ast.Assign) -> None:
        """The value, then the targets."""
        self.block([n.value, *n.targets])

    def visit_AnnAssign(self, n: ast.AnnAssign) -> None:
        """A target without a value stays as it is."""
        self.block([] if n.value is None else [n.value, n.target])

    def visit_NamedExpr(self, n: ast.NamedExpr) -> None:
        """The value, then the target."""
        self.block([n.value, n.target])

    def _nested(self, n: Any) -> None:
        """A function that is defined, or a class."""
        before = self.sure
        self.block(around(n))
        sure = self.sure if isinstance(n, FUNCTIONS) else before  # a class has names of its own
        assert sure is not None, "some way leads here"
        if isinstance(n, FUNCTIONS):
            _Function(n, self.lines, sure - self.deleted)
        self.sure = sure | {getattr(n, "name", "")}

    def _comprehension(self, n: Any) -> None:
        """Its targets are its own; the first iterable alone is sure to be evaluated."""
        self.visit(n.generators[0].iter)
        before, lines, own = self.sure, self.lines, self.own
        if isinstance(n, ast.GeneratorExp) or sys.version_info < (3, 12):
            self.own = NONE  # here a comprehension is a function with names of its own
        targets = [m.id for g in n.generators for m in every([g.target]) if isinstance(m, ast.Name)]
        self.lines = {k: v for k, v in lines.items() if k not in targets}
        for g in n.generators:
            self.block([*([] if g is n.generators[0] else [g.iter]), g.target, *g.ifs])
        self.block([n.key, n.value] if isinstance(n, ast.DictComp) else [n.elt])
        self.sure, self.lines, self.own = before, lines, own

    # --- expressions of which parts may not be evaluated ------------------------------------------

    def visit_BoolOp(self, n: ast.BoolOp) -> None:
        """The first operand alone is sure to be evaluated."""
        self._first(n.values, 1)

    def visit_Compare(self, n: ast.Compare) -> None:
        """The first two operands are sure to be evaluated."""
        self._first([n.left, *n.comparators], 2)

    def _first(self, parts: Sequence[ast.AST], sure: int) -> None:
        self.block(parts[:sure])
        self._after(self.sure, self._of(self.sure, parts[sure:]))

    def visit_IfExp(self, n: ast.IfExp) -> None:
        """One of two."""
        self.visit_If(n, [n.body], [n.orelse])

    # --- statements -------------------------------------------------------------------------------

    def visit_If(self, n: Any, then: Any = None, orelse: Any = None) -> None:
        """One of two blocks."""
        self.visit(n.test)
        before = self.sure
        either = self._of(before, then or n.body)
        self._after(either, self._of(before, orelse or n.orelse))

    def visit_Return(self, n: ast.AST) -> None:
        """Nothing comes after it."""
        self.block(children(n))
        self.sure = None

    visit_Raise = visit_Return

    def visit_Break(self, _: ast.AST) -> None:
        """The loop is left."""
        here = self.sure
        self._after(self.breaks.pop(), here)
        self.breaks.append(self.sure)
        self.sure = None

    def visit_Continue(self, _: ast.AST) -> None:
        """The next round begins with what had a value before the loop."""
        self.sure = None

    def visit_For(self, n: Any) -> None:
        """A loop, which may have no round."""
        self.visit(n.iter)
        self._loop(n, [n.target, *n.body], False)

    visit_AsyncFor = visit_For

    def visit_While(self, n: ast.While) -> None:
        """A loop, whose condition is evaluated at least once."""
        assert self.sure is not None, "some way leads here"
        self.sure -= _deleted([n])
        self.visit(n.test)
        self._loop(n, n.body, isinstance(n.test, ast.Constant) and bool(n.test.value))

    def _loop(self, n: Any, body: Sequence[ast.AST], endless: bool) -> None:
        assert self.sure is not None, "some way leads here"
        before = self.sure - _deleted([n])
        self.breaks.append(None)
        self._of(before, body)
        left = self.breaks.pop()
        done = None if endless else self._of(before, n.orelse)
        self._after(left, done)

    def visit_Try(self, n: Any) -> None:
        """Handlers begin with what had a value before; so does what comes at last."""
        assert self.sure is not None, "some way leads here"
        before = self.sure - _deleted([n])
        ends = [self._of(self.sure, [*n.body, *n.orelse])]
        for h in n.handlers:
            inside = before | ({h.name} if h.name else NONE)
            end = self._of(before, [h.type] if h.type else [])
            end = end and self._of(inside, h.body)
            ends.append(end and end - {h.name})
        self._after(*ends)
        after = self.sure
        done = self._of(before, n.finalbody)
        self.sure = None if after is None or done is None else after | done

    visit_TryStar = visit_Try

    def visit_Match(self, n: ast.Match) -> None:
        """One of the cases, or none."""
        self.visit(n.subject)
        before, ends = self.sure, [self.sure]
        for case in n.cases:
            assert before is not None, "some way leads here"
            inside = before | bound(case.pattern)
            self.sure = inside
            self.block([] if case.guard is None else [case.guard])
            ends.append(self._of(self.sure, case.body))
            if case.guard is None and isinstance(case.pattern, ast.MatchAs):
                ends = ends[1:] if case.pattern.pattern is None else ends
        self._after(*ends)

    def visit_Import(self, n: Any) -> None:
        """Names are bound."""
        assert self.sure is not None, "some way leads here"
        self.sure |= bound([n])

    visit_ImportFrom = visit_Import


def _deleted(nodes: Iterable[ast.AST]) -> Names:
    """The names that these may leave without a value."""
    return _taken(every(nodes))


def _taken(nodes: Sequence[ast.AST]) -> Names:
    """The names from which these nodes themselves take the value."""
    names = [n.id for n in nodes if type(n) is ast.Name and type(n.ctx) is ast.Del]
    return frozenset([*names, *[n.name for n in nodes if type(n) is ast.ExceptHandler and n.name]])


__all__ = ["mark"]

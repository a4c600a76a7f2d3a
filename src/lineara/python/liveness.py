"""Which variables of a function are bound where, and which of them are read later.

    settle(nodes)          each expression of names and numbers alone keeps `names_alone`
    bound(statements)      the names that they may bind
    Liveness(function)     for each statement the names whose values are read after it

A name is live where some way from there reads it before it is bound anew (the textbook's backward
analysis, on the syntax tree).  What a nested function mentions may be read at any time, so it is
live everywhere.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

Names = frozenset[str]
NONE: Names = frozenset()
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
BLOCKS = {
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar,
    ast.Match,
}  # fmt: skip
_WITH_STATEMENTS = BLOCKS | {ast.ClassDef, ast.ExceptHandler, ast.match_case}
_LEAVES = {ast.Name, ast.Constant}
_NO_NODES = {"ctx", "op", "ops", "type_comment", "attr", "id", "arg"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@cache
def fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields in which a node has others; a context or an operator is no part."""
    if kind in _LEAVES:
        return ()
    return tuple([f for f in kind._fields if f not in _NO_NODES])


def children(n: ast.AST) -> list[ast.AST]:
    """The nodes of which a node consists, without contexts and operators."""
    parts: list[Any] = []
    for field in fields(type(n)):
        value = getattr(n, field, None)
        if type(value) is list:
            parts += [v for v in value if isinstance(v, ast.AST)]
        elif isinstance(value, ast.AST):
            parts.append(value)
    return parts


def every(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """All nodes within these, and these; of what was settled the names alone."""
    nodes = [*nodes]
    for n in nodes:  # which grow
        if type(n) not in _LEAVES:
            nodes += names_in(n) or children(n)
    return nodes


def settle(nodes: Sequence[ast.AST]) -> None:
    """Each expression that only calculates with names and numbers keeps `names_alone`, in order.

    What walks the tree has them there.  The nodes come before those of which they consist; the left
    of % may be a text, which is a form.
    """
    for n in reversed(nodes):
        if type(n) is ast.Name:
            n.names_alone = (n,)  # type: ignore[attr-defined]
        elif type(n) is ast.Constant:
            n.names_alone = ()  # type: ignore[attr-defined]
        elif type(n) is ast.BinOp and type(n.op) is not ast.Mod:
            left, right = names_in(n.left), names_in(n.right)
            if left is not None and right is not None:
                n.names_alone = (*left, *right)  # type: ignore[attr-defined]


def names_in(n: ast.AST) -> tuple[ast.Name, ...] | None:
    """The names of an expression that was settled; None where that has other parts."""
    return vars(n).get("names_alone")


class Rewriter(ast.NodeTransformer):
    """Puts a node in the place of each one; contexts and operators, which are many, stay."""

    def stays(self, names: tuple[ast.Name, ...]) -> bool:
        """Whether an expression that only calculates with these names stays as it is."""
        return False

    def visit(self, node: ast.AST) -> Any:
        """What is put in the place of a node."""
        names = names_in(node)
        return node if names is not None and self.stays(names) else super().visit(node)

    def generic_visit(self, node: ast.AST) -> Any:
        """The node, with others in place of its parts."""
        vars(node).pop("names_alone", None)
        for field in fields(type(node)):
            value = getattr(node, field, None)
            if type(value) is list:
                value[:] = [self.visit(v) if isinstance(v, ast.AST) else v for v in value]
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node


def own(node: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that are evaluated by the function itself, not in a function nested in it.

    What was settled is one of them.
    """
    todo = [node] if isinstance(node, ast.AST) else [*node]
    while todo:
        n = todo.pop()
        yield n
        if isinstance(n, SCOPES):
            todo += around(n)
        elif names_in(n) is None:
            todo += children(n)


def around(n: ast.AST) -> list[ast.AST]:
    """What a nested function or class evaluates where it is defined."""
    if isinstance(n, ast.ClassDef):
        return [*n.decorator_list, *n.bases, *n.keywords, *n.body]
    a = n.args  # type: ignore[attr-defined]
    defaults = [*a.defaults, *[d for d in a.kw_defaults if d is not None]]
    return [*defaults, *getattr(n, "decorator_list", ())]


def parameters(a: ast.arguments) -> list[str]:
    """The names of the parameters of a function."""
    positional = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return positional + [p.arg for p in (a.vararg, a.kwarg) if p is not None]


def bound(statements: Iterable[ast.AST] | ast.AST) -> Names:
    """The names that these may bind in the function that they stand in."""
    nodes = [statements] if isinstance(statements, ast.AST) else statements
    return NONE.union(*map(_bound, nodes))


def _bound(root: ast.AST) -> Names:
    """The names that one may bind; a statement, of which blocks around ask it again, keeps them."""
    if "binds" in vars(root):
        return root.binds  # type: ignore[attr-defined]
    names: set[Any] = {None}
    nodes = [root]
    while nodes:
        n = nodes.pop()
        if type(n) is ast.Name:
            if type(n.ctx) is not ast.Load:
                names.add(n.id)
            continue
        if names_in(n) is not None:
            continue
        if isinstance(n, ast.stmt) and n is not root:
            names |= _bound(n)
            continue
        if type(n) not in _BINDERS:
            nodes += children(n)
            continue
        if isinstance(n, _NAMED):
            names.add(n.name)
        elif isinstance(n, ast.MatchMapping):
            names.add(n.rest)
        elif isinstance(n, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in n.names}
        if isinstance(n, SCOPES):
            nodes += [] if isinstance(n, ast.ClassDef) else around(n)
        elif isinstance(n, COMPREHENSIONS):  # its targets are its own, but for walruses
            targets = every([g.target for g in n.generators])
            names |= bound(children(n))
            names -= {m.id for m in targets if isinstance(m, ast.Name)}
        elif isinstance(n, ast.comprehension):
            nodes += [n.target, n.iter, *n.ifs]
        else:
            nodes += children(n)
    binds = frozenset(names - {None})
    if isinstance(root, ast.stmt):
        root.binds = binds  # type: ignore[attr-defined]
    return binds


_NAMED = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs,
    ast.MatchStar,
)  # fmt: skip
_NESTED = {*SCOPES, ast.GeneratorExp}
_BINDERS = {
    *SCOPES, *COMPREHENSIONS, *_NAMED, ast.MatchMapping, ast.Import, ast.ImportFrom,
    ast.comprehension,
}  # fmt: skip


def written(nodes: Iterable[ast.AST]) -> Names:
    """The names of the variables to whose items these write, as `a` in `a[i].b[j] = x`."""
    names = set()
    for n in own(nodes):
        if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load):
            root: Any = n
            while isinstance(root, ast.Subscript | ast.Attribute):
                root = root.value
            names |= {root.id} if isinstance(root, ast.Name) else set()
    return frozenset(names)


def read(nodes: Iterable[ast.AST] | ast.AST) -> Names:
    """The names that these read, in nested functions as well."""
    nodes = [nodes] if isinstance(nodes, ast.AST) else nodes
    mentioned = [n for n in every(nodes) if isinstance(n, ast.Name)]
    return frozenset([n.id for n in mentioned if isinstance(n.ctx, ast.Load)])


def declared(function: Any) -> tuple[Names, Names]:
    """The names that `global` and `nonlocal` statements of a function itself declare."""
    names: dict[type, set[str]] = {ast.Global: set(), ast.Nonlocal: set()}
    todo: list[Any] = [] if isinstance(function, ast.Lambda) else [*function.body]
    while todo:  # statements alone, and not expressions
        n = todo.pop()
        if isinstance(n, ast.Global | ast.Nonlocal):
            names[type(n)].update(n.names)
        elif type(n) in _WITH_STATEMENTS:
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                todo += getattr(n, field, ())
    return frozenset(names[ast.Global]), frozenset(names[ast.Nonlocal])


def shared_with_nested(nodes: Iterable[ast.AST]) -> tuple[Names, Names]:
    """What functions among the nodes read of the names around them, and what they bind there."""
    reads: set[str] = set()
    binds: set[str] = set()
    for n in nodes:
        if type(n) in _NESTED:
            inner = [n.body] if isinstance(n, ast.Lambda) else getattr(n, "body", [n])
            reads |= read(inner)
            binds |= {k for d in every(inner) if isinstance(d, ast.Nonlocal) for k in d.names}
    return frozenset(reads | binds), frozenset(binds)


class Liveness:
    """What is live after each statement of a function, and at the head of each loop."""

    def __init__(self, body: Sequence[ast.stmt], always: Names) -> None:
        self.always = always
        self.after: dict[ast.stmt, Names] = {}
        self.head: dict[ast.stmt, Names] = {}
        self._breaks: list[tuple[Names, Names]] = []  # live after a break, and after a continue
        self._caught = NONE  # what handlers and finally blocks around may read
        self.block(body, NONE)

    def block(self, statements: Sequence[ast.stmt], live: Names) -> Names:
        """What is live before the statements, where `live` is live after them."""
        for s in reversed(statements):
            live = live | self.always | self._caught
            self.after[s] = live
            live = self._before(s, live)
        return live

    def _before(self, s: ast.stmt, live: Names) -> Names:
        if isinstance(s, ast.If):
            either = self.block(s.body, live) | self.block(s.orelse, live)
            return either | read(s.test)
        if isinstance(s, ast.While | ast.For | ast.AsyncFor):
            return self._loop(s, live)
        if isinstance(s, ast.Return | ast.Raise):
            return read(s) | self.always | self._caught
        if isinstance(s, ast.Break | ast.Continue):
            return self._breaks[-1][isinstance(s, ast.Continue)] if self._breaks else live
        if isinstance(s, ast.With | ast.AsyncWith):
            return (self.block(s.body, live) - bound([i.optional_vars for i in s.items if
                    i.optional_vars is not None])) | read(s.items)  # fmt: skip
        if isinstance(s, ast.Try | ast.TryStar):
            return self._try(s, live)
        if isinstance(s, ast.Match):
            cases = [self.block(c.body, live) for c in s.cases]
            parts = [p for c in s.cases for p in (c.pattern, c.guard) if p is not None]
            return live.union(*cases) | read(s.subject) | read(parts)
        if isinstance(s, ast.AugAssign):
            return live | read(s) | bound(s)
        if isinstance(s, ast.Delete):
            return live | read(s) | bound(s)
        if isinstance(s, ast.Assign | ast.AnnAssign):
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            killed = bound([t for t in targets if not isinstance(t, ast.Starred)])
            killed = killed if getattr(s, "value", None) is not None else NONE
            return (live - killed) | read(s)
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return (live - {s.name}) | read(s)
        if isinstance(s, ast.Import | ast.ImportFrom):
            return live - bound(s)
        return live | read(s)

    def _loop(self, s: ast.While | ast.For | ast.AsyncFor, live: Names) -> Names:
        done = self.block(s.orelse, live)
        asks = read(s.test) if isinstance(s, ast.While) else NONE
        target = NONE if isinstance(s, ast.While) else bound(s.target)
        head = done | asks
        while True:
            self._breaks.append((live, head))
            body = self.block(s.body, head)
            self._breaks.pop()
            if not isinstance(s, ast.While):
                body = (body - target) | read(s.target)
            if body <= head:
                break
            head |= body
        self.head[s] = head
        return head if isinstance(s, ast.While) else head | read(s.iter)

    def _try(self, s: ast.Try | ast.TryStar, live: Names) -> Names:
        before, after = self._caught, self.block(s.finalbody, live)
        self._caught = before | read(s.finalbody)
        handlers = self.block(s.orelse, after)
        caught = [self.block(h.body, after) | read(h.type or []) for h in s.handlers]
        self._caught |= after.union(*caught)
        inside = self.block(s.body, handlers)
        self._caught = before
        return inside.union(after, *caught)

"""Generator expressions that `sum`, `max`, `min`, `any` and `all` consume, as functions with loops.

    sum(v * v for v in x if v > 0)       def fold.1(first.):
                                             kept. = 0
                         becomes             for v in first.:
                                                 if v > 0:
                                                     kept. = kept. + v * v
                                             return kept.

What the first loop goes through is evaluated around it.  A comprehension that makes a list becomes
a function that appends its items to one.  So are lists that are written where such
a function is called, all of whose elements are evaluated.
"""

import ast
import copy
from typing import Any

from lineara.python.namespaces import FORMS

_TEXTS = {
    "sum": ("kept = start", "kept = kept + VALUE", "return kept"),
    "any": ("", "if VALUE:\n    return True", "return False"),
    "all": ("", "if not VALUE:\n    return False", "return True"),
    "every any": ("kept = False", "if VALUE:\n    kept = True", "return kept"),
    "every all": ("kept = True", "if not VALUE:\n    kept = False", "return kept"),
}
for _name, _sign in (("max", ">"), ("min", "<")):
    _last = "if kept is FORMS.NOTHING:\n    END\nreturn kept"
    _TEXTS[_name] = (
        "kept = FORMS.NOTHING",
        f"value = VALUE\nif kept is FORMS.NOTHING or value {_sign} kept:\n    kept = value",
        _last,
    )
    _TEXTS[f"{_name} by key"] = (
        "kept = FORMS.NOTHING",
        f"value = VALUE\nrank = key(value)\nif kept is FORMS.NOTHING or rank {_sign} kept[1]:\n"
        "    kept = value, rank",
        f"{_last}[0]",
    )
_OPTIONS = {"sum": {"start"}, "max": {"key", "default"}, "min": {"key", "default"}}
FOLDED = ("sum", "max", "min", "any", "all")


def as_loops(call: ast.Call, name: str) -> ast.FunctionDef | None:
    """The function of that name which does what a call does; None where it is no such call."""
    if not isinstance(call.func, ast.Name) or call.func.id not in FOLDED or not call.args:
        return None
    consumed, *others = call.args
    kind, options = call.func.id, {k.arg: k.value for k in call.keywords}
    if others and kind == "sum" and len(others) == 1:
        options["start"] = others.pop()
    if others or not options.keys() <= _OPTIONS.get(kind, set()):
        return None
    if not isinstance(consumed, ast.GeneratorExp | ast.ListComp):
        return None
    if any([g.is_async for g in consumed.generators]):
        return None
    every = isinstance(consumed, ast.ListComp) and kind in ("any", "all")
    text = _TEXTS[f"every {kind}" if every else f"{kind} by key" if "key" in options else kind]
    end = "return default" if "default" in options else f"raise ValueError(FORMS.empty({kind!r}))"
    given: dict[str, ast.expr] = {"VALUE": consumed.elt, "start": ast.Constant(0), **options}  # type: ignore[dict-item]
    before, inner, after = [_written(t.replace("END", end), given) for t in text]
    return _loops(name, ["first."], consumed, [before, inner, after])


def as_appending(comprehension: ast.ListComp, name: str) -> ast.FunctionDef | None:
    """The function of that name which appends the items of a comprehension to a list."""
    names = any([isinstance(n, ast.NamedExpr | ast.Await) for n in ast.walk(comprehension)])
    if names or any([g.is_async for g in comprehension.generators]):
        return None
    inner = _written("kept.append(VALUE)", {"VALUE": comprehension.elt})
    return _loops(name, ["first.", "kept."], comprehension, [[], inner, []])


def chooses(comprehension: ast.ListComp) -> bool:
    """Whether it depends on the items how many are kept, as far as the syntax tells."""
    others = [g.iter for g in comprehension.generators[1:]]
    read = {n.id for e in others for n in ast.walk(e) if isinstance(n, ast.Name)}
    return any([g.ifs for g in comprehension.generators]) or bool(targets(comprehension) & read)


def targets(comprehension: ast.expr) -> frozenset[str]:
    """The variables of a comprehension's own."""
    each = [n for g in comprehension.generators for n in ast.walk(g.target)]  # type: ignore[attr-defined]
    return frozenset([n.id for n in each if isinstance(n, ast.Name) and type(n.ctx) is ast.Store])


def _loops(name: str, formals: list[str], consumed: Any, parts: list[Any]) -> ast.FunctionDef:
    """The function of that name that goes through what a comprehension does."""
    before, inner, after = parts
    step: Any = inner
    for g in reversed(consumed.generators):
        for test in reversed(g.ifs):
            step = [ast.If(copy.deepcopy(test), step, [])]
        first = g is consumed.generators[0]
        items = ast.Name("first.", ast.Load()) if first else copy.deepcopy(g.iter)
        step = [ast.For(copy.deepcopy(g.target), items, step, [])]
    args = ast.arguments([], [ast.arg(n) for n in formals], None, [], [], None, [])
    made = ast.FunctionDef(name, args, [*before, *step, *after], [], None)
    if "type_params" in made._fields:  # from 3.12 on
        made.type_params = []  # type: ignore[attr-defined]
    return made


def _written(text: str, given: dict[str, ast.expr]) -> list[ast.stmt]:
    """Statements, in which names of their own have a dot, and others stand for expressions."""
    return [_Names(given).visit(s) for s in ast.parse(text).body]


class _Names(ast.NodeTransformer):
    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def generic_visit(self, node: ast.AST) -> Any:
        """No place: that is the place of the call."""
        for place in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if hasattr(node, place):
                delattr(node, place)
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, or what it stands for."""
        if node.id in self.given:
            return copy.deepcopy(self.given[node.id])
        own = node.id in ("kept", "value", "rank")
        name = FORMS if node.id == "FORMS" else f"{node.id}." if own else node.id
        return ast.Name(name, node.ctx)


__all__ = ["as_appending", "as_loops", "chooses", "targets"]

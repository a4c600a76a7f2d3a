"""What a rewritten function reads of outside: names and attributes go through `forms.loaded`.

    RATE * x + settings.k      becomes      loaded(RATE) * x + loaded(loaded(settings).k)

A name is of outside where no function within the rewritten one binds it: a global, a builtin, or a
variable of a function around.  All of them are rewritten, wherever they stand: in defaults,
decorators and the bodies of classes, too.  So an array that is reached by names alone is reached
through `loaded` alone.  What is called is no array, and is left as it is.
"""

import ast
from typing import Any

from lineara.python.liveness import NONE, Names, Rewriter, bound, declared, parameters
from lineara.python.namespaces import FORMS


def through_loaded(node: Any) -> None:
    """Let a function that was rewritten read what is outside of it through `forms.loaded`."""
    _Loads().inside(node)


class _Loads(Rewriter):
    def __init__(self) -> None:
        self.local: Names = NONE  # the variables of the functions around, within the rewritten one

    def stays(self, names: tuple[ast.Name, ...]) -> bool:
        """Where all of them are variables of its own."""
        return all([n.id in self.local for n in names])

    def inside(self, node: Any) -> None:
        """The body of a function."""
        is_lambda, around = isinstance(node, ast.Lambda), self.local
        body = [node.body] if is_lambda else node.body
        globals_, nonlocals = declared(node)
        own = (bound(body) | {*parameters(node.args)}) - nonlocals
        self.local = (around | own) - globals_
        made = [self.visit(s) for s in body]
        node.body = made[0] if is_lambda else made
        self.local = around

    def _function(self, node: Any) -> Any:
        args = node.args
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [d and self.visit(d) for d in args.kw_defaults]
        if not isinstance(node, ast.Lambda):
            node.decorator_list = [self.visit(d) for d in node.decorator_list]
        self.inside(node)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def _comprehension(self, node: Any) -> Any:
        first, around = node.generators[0], self.local
        first.iter = self.visit(first.iter)
        self.local = around | bound([g.target for g in node.generators])
        iterated, first.iter = first.iter, ast.Constant(None)
        self.generic_visit(node)
        first.iter, self.local = iterated, around
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Name(self, node: ast.Name) -> Any:
        """A variable."""
        own = node.id in self.local or "." in node.id or node.id == FORMS
        return node if own else _loaded(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """An attribute, perhaps of a module."""
        return node if _is_form(node) else _loaded(self.generic_visit(node))

    def visit_Call(self, node: ast.Call) -> Any:
        """A call; what is called is told to `forms.asked`."""
        f = node.args[0] if _is_form(node.func, "asked") else node.func
        if isinstance(f, ast.Attribute) and not _is_form(f):
            f.value = self.visit(f.value)
        elif not isinstance(f, ast.Name | ast.Attribute):
            return self.generic_visit(node)
        if f is node.func:
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        """What an exception is caught for; its classes are read where they stand."""
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_MatchValue(self, node: Any) -> Any:
        """A constant of a pattern, which is no expression."""
        return node

    visit_MatchClass = visit_MatchMapping = visit_MatchValue


def _is_form(node: Any, name: str = "") -> bool:
    """Whether this names a form, or the one of that name."""
    of = node.value if isinstance(node, ast.Attribute) else None
    is_form = isinstance(of, ast.Name) and of.id == FORMS
    return is_form and node.attr in (name, name or node.attr)


def _loaded(node: Any) -> Any:
    if not isinstance(node.ctx, ast.Load):
        return node
    form = ast.Attribute(ast.Name(FORMS, ast.Load()), "loaded", ast.Load())
    made = ast.Call(form, [node], [])
    for n in (made, form, form.value):
        ast.copy_location(n, node)
    return made


__all__ = ["through_loaded"]

"""A function's code again, from its source, with branches and loops as calls of forms.

    if test:                          def then():
        x = a                             nonlocal x; x = a
    else:                   becomes   def orelse():
        x = b                             nonlocal x; x = b
                                      forms.if_(test, then, orelse, None, ("x",))

Blocks are functions within the function; they share its variables as cells, of which the last
argument names those that a block binds and that are read later.  A loop is told as well what its
rounds change: the variables that they bind, and those whose items they write.  A block gives None
where control falls through its end, and else where it goes: `forms.Return(value)`, `forms.BREAK`,
`forms.CONTINUE`.  What follows a statement that may be left so is its `rest`, one more block:

    if test:                          def then():
        return a            becomes       return forms.Return(a)
    return b                          def rest():
                                          return forms.Return(b)
                                      return forms.result(forms.if_(test, then, None, rest, ()))

Conditional expressions, `and`, `or`, `not`, chained comparisons, assertions and texts with values
in them are calls as well; what is called goes through `forms.asked`, and what is read of outside
of the function through `forms.loaded`.  What a function that may
call itself does is one more block, which `forms.called` is given with the arguments.
What the forms do is their own affair; forms that do what Python does give the function itself.
Generators, and functions that look at their own frame, are left as they are, as is a function
whose source is not what it was compiled from.
"""

import __future__

import ast
import copy
import dis
import inspect
import linecache
import re
import tokenize
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from lineara.facts.gc_pause import uncollected
from lineara.python.definite_assignment import mark
from lineara.python.generators_as_loops import as_appending, as_loops, chooses, targets
from lineara.python.liveness import (
    BLOCKS,
    COMPREHENSIONS,
    FUNCTIONS,
    NONE,
    SCOPES,
    Liveness,
    Names,
    Rewriter,
    bound,
    children,
    declared,
    every,
    fields,
    own,
    parameters,
    read,
    settle,
    shared_with_nested,
    written,
)
from lineara.python.match_as_branches import as_branches
from lineara.python.namespaces import FORMS
from lineara.python.outside_loads import through_loaded
from lineara.text.python_source import tree_of

_MARK = "the last constant of code that was rewritten"
FUTURE = __future__.annotations.compiler_flag
_FRAMES = {"locals", "eval", "exec", "vars", "dir", "__import__", "_getframe", "currentframe"}
_GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_EXITS = (ast.Return, ast.Break, ast.Continue)
_KNOWN = (ast.Constant, ast.UnaryOp, ast.unaryop, ast.Tuple, ast.Slice, ast.expr_context)
_DEFINITIONS = {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef}
_TRIES = {ast.Try, ast.TryStar}
_FORMED = {ast.If, ast.While, ast.For, ast.Try}
_CHOICES = {ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.For, ast.Match}


class _Codes(weakref.WeakKeyDictionary[CodeType, Any]):
    """The structured code of each code object, or why there is none: found once."""

    def of(self, f: FunctionType) -> CodeType | str:
        """The code, or a sentence that says why there is none."""
        known = self.get(f.__code__)
        if known is None:
            known = self[f.__code__] = _structured(f)
        return known

    def why_unread(self, code: CodeType) -> str:
        """Why a function is traced as it runs, by the code that its copy runs; else nothing."""
        place = code.co_filename, code.co_firstlineno, code.co_name
        reasons = {
            (c.co_filename, c.co_firstlineno, c.co_name): v
            for c, v in self.items()
            if isinstance(v, str)
        }
        return reasons.get(place, "")


_codes = _Codes()
structured: Callable[[FunctionType], CodeType | str] = _codes.of
why_unread: Callable[[CodeType], str] = _codes.why_unread


@uncollected
def _structured(f: FunctionType) -> CodeType | str:
    code = f.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "it is a generator"
    node = _tree(f)
    if isinstance(node, str):
        return node
    if _FRAMES & ({*code.co_names}):
        return "it looks at its own frame"
    nodes = every([node])
    tries = [n for n in nodes if type(n) in _TRIES]
    if any([_leaves(s) for n in tries for s in n.finalbody]):  # type: ignore[attr-defined]
        return "its finally block is left by return, break or continue"
    if ast.Match in map(type, nodes):
        as_branches(node)
        nodes = every([node])
    settle(nodes)
    mark(node)
    _Function(node).rewrite()
    through_loaded(node)
    try:
        made = _compiled(f, node)
    except TypeError:  # few of the nodes that were made have no place
        made = _compiled(f, ast.fix_missing_locations(node))
    assert made is not None, "what was rewritten is a function of that name"
    return _named(made, made.co_name, (made.co_qualname, code.co_qualname))


def _named(code: CodeType, name: str, place: tuple[str, str]) -> CodeType:
    """The code with the name of its function for that of each of its blocks, as in the source.

    `place` is where the function stands in what was compiled, and where it stood.
    """
    own = name if "." in code.co_name else code.co_name
    parts = [_named(c, own, place) if isinstance(c, CodeType) else c for c in code.co_consts]
    where = _BLOCK.sub("", code.co_qualname).replace(*place, 1)
    return code.replace(co_consts=(*parts, _MARK), co_name=own, co_qualname=where)


_BLOCK = re.compile(r"\w+\.\d*\.<locals>\.")


def _tree(f: FunctionType) -> Any:
    """The syntax tree of a function, or a sentence that says why there is none.

    It ends where the code does, as a rule: what is compiled to nothing does not matter.  Where that
    is not the function, tokens tell where it ends.
    """
    why = "its source is not there"
    for end in (_last_line(f.__code__), None):
        try:
            node = _source(f, end)
        except (OSError, SyntaxError, IndexError, ValueError, tokenize.TokenError):
            continue
        if node is not None:
            whole = _compiled(f, node)
            if whole is not None and _same(whole, f.__code__):
                return node
            why = "its source is not what it was compiled from"
    return why


def _last_line(code: CodeType) -> int:
    """The last line of which code was compiled."""
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, CodeType)]
    return max([code.co_firstlineno, *inner, *[end or 0 for _, end, _, _ in code.co_positions()]])


def _source(f: FunctionType, end: int | None) -> Any:
    """The syntax tree of a function, with the lines of its file, up to a line or as tokens tell."""
    code = f.__code__
    lines = linecache.getlines(code.co_filename, f.__globals__)
    first = code.co_firstlineno
    if code.co_name == "<lambda>":
        return _lambda(code, tree_of("".join(lines)))
    rows = lines[first - 1 : end] if end else inspect.getblock(lines[first - 1 :])
    block = "".join(rows)
    inner = block[:1].isspace()  # not dedented: a string may span several lines
    above = "\n" * (first - 2) + "if True:\n" if inner else "\n" * (first - 1)
    tree: Any = tree_of(above + block)
    node = tree.body[0].body[0] if inner else tree.body[0]
    return node if isinstance(node, ast.FunctionDef) and node.name == code.co_name else None


def _lambda(code: CodeType, tree: ast.Module) -> Any:
    """The lambda of a file that a code object was compiled from."""
    places = [p for p in code.co_positions() if p[0] is not None and p[0::2] != p[1::2]]
    around = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and _holds(n, places)]
    return min(around, key=lambda n: (_end(n.body)[0] - n.lineno, _end(n.body)[1]), default=None)


def _holds(n: ast.Lambda, places: Sequence[Any]) -> bool:
    """Whether all source positions lie in a lambda's body, or in parentheses around it."""
    start = (n.lineno, n.col_offset)
    return all([start <= (p[0], p[2]) and (p[1], p[3]) <= _end(n) for p in places])


def _end(n: ast.expr) -> tuple[int, int]:
    return n.end_lineno or 0, n.end_col_offset or 0


def _compiled(f: FunctionType, node: Any) -> CodeType | None:
    """The code of a function of that syntax, among the variables around that it has."""
    free = f.__code__.co_freevars
    owner = f.__qualname__.rpartition(".")[0].rpartition(".")[2]
    inside: list[ast.stmt] = [ast.Pass()]  # where the function goes
    body: list[ast.stmt] = inside
    if owner.isidentifier():  # a method, whose private names have the name of the class in them
        body = [ast.ClassDef(owner, [], [], inside, [])]
        if hasattr(body[0], "_fields") and "type_params" in body[0]._fields:
            body[0].type_params = []  # type: ignore[attr-defined]
    itself = owner if owner.isidentifier() else f.__code__.co_name
    if itself.isidentifier() and itself not in free:
        body.insert(0, ast.Global([itself]))  # where a function finds itself, or its class
    names = [ast.arg(name) for name in free if name != "__class__"]
    around = _function("around", ast.arguments([], names, None, [], [], None, []), body)
    module = ast.fix_missing_locations(ast.Module([around], []))
    inside[-1] = _bare(node)  # which has its lines
    flags = f.__code__.co_flags & FUTURE
    code = compile(module, f.__code__.co_filename, "exec", flags, dont_inherit=True)
    todo = [code]
    while todo:
        code = todo.pop(0)
        nested = [c for c in code.co_consts if isinstance(c, CodeType)]
        mine = [c for c in nested if c.co_name == f.__code__.co_name]
        if mine and code.co_name in ("around", owner):
            return mine[0] if {*mine[0].co_freevars} <= {*free} else None
        todo += nested
    return None


def _bare(node: Any) -> ast.stmt:
    """A function without what is evaluated where it is defined; a lambda as a statement."""
    a = node.args
    for defaults in (a.defaults, a.kw_defaults):
        defaults[:] = [d and ast.copy_location(ast.Constant(None), d) for d in defaults]
    for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
        if p is not None:
            p.annotation = None
    if isinstance(node, ast.Lambda):
        return ast.copy_location(ast.Expr(node), node)
    node.decorator_list, node.returns = [], None
    return node


def _same(made: CodeType, code: CodeType) -> bool:
    """Whether two code objects have the same operations and constants."""
    ours, theirs = ([c for c in k.co_consts] for k in (made, code))
    return (
        _operations(made) == _operations(code)
        and made.co_names == code.co_names
        and made.co_varnames == code.co_varnames
        and {*made.co_freevars} == {*code.co_freevars}
        and len(ours) == len(theirs)
        and all(map(_same_constant, ours, theirs))
    )


def _operations(code: CodeType) -> bytes:
    """The operation codes; reading an attribute counts as one, whether for a call or not."""
    return code.co_code[::2].translate(_ATTRIBUTES, _NO_OPERATIONS)


_NO_OPERATIONS = bytes([0, dis.opmap["EXTENDED_ARG"], dis.opmap["PUSH_NULL"]])  # caches, and parts
# of arguments and of calls
_ATTRIBUTES = bytearray(range(256))
if dis.opmap.get("LOAD_METHOD", 256) < 256:  # from 3.12 on no code has it
    _ATTRIBUTES[dis.opmap["LOAD_METHOD"]] = dis.opmap["LOAD_ATTR"]


def _same_constant(a: Any, b: Any) -> bool:
    both = isinstance(a, CodeType) and isinstance(b, CodeType)
    return _same(a, b) if both else type(a) is type(b) and a == b


# --- writing syntax -------------------------------------------------------------------------------


def _function(name: str, args: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, args, body or [ast.Pass()], [], None)
    if "type_params" in made._fields:  # from 3.12 on
        made.type_params = []  # type: ignore[attr-defined]
    return made


def _no_arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _form(name: str, *args: ast.expr | None) -> ast.expr:
    """A call of a form; None is the constant."""
    given = [ast.Constant(None) if a is None else a for a in args]
    return ast.Call(ast.Attribute(_load(FORMS), name, ast.Load()), given, [])


def _thunk(e: ast.expr) -> ast.expr:
    return ast.Lambda(_no_arguments(), e)


def _tuple(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


def _at(made: Any, node: ast.AST) -> Any:
    """Syntax that stands where `node` stood, as far as it has no place yet."""
    todo = [made]
    while todo:
        n = todo.pop()
        if not hasattr(n, "lineno"):  # what has a place is made of what has one
            if "lineno" in n._attributes:
                ast.copy_location(n, node)
            todo += children(n)
    return made


# --- functions ------------------------------------------------------------------------------------


class _Function:
    """One function that is rewritten, with those nested in it."""

    def __init__(self, node: Any, in_class: str | None = None) -> None:
        self.node = node
        self.body: list[ast.stmt] = node.body if isinstance(node.body, list) else []
        self.globals, self.outer = declared(node)
        nodes = [*own(self.body or node.body)]
        self.kinds = {type(n) for n in nodes}  # of the syntax that it has itself
        inner, self.written_inside = shared_with_nested(nodes)
        self.variables = (bound(self.body) | {*parameters(node.args)}) - self.globals
        blocks = [] if self.kinds.isdisjoint(BLOCKS) else self.body  # else nobody asks
        self.live = Liveness(blocks, inner | self.outer)  # other functions read nonlocal names
        self.first = next(iter(parameters(node.args)), None)
        self.count = 0
        self.exits = NONE  # names read by the next round of the enclosing loop, or after it
        self.whole = not self.kinds.isdisjoint(_GENERATORS)
        self.before: list[ast.stmt] | None = None  # functions that go before the statement

    def rewrite(self) -> None:
        """Rewrite the function in place."""
        branches = self._may_call_itself()
        if isinstance(self.node, ast.Lambda):
            self.node.body = self.expression(self.node.body)
            if branches:
                inner = ast.Lambda(_no_arguments(*parameters(self.node.args)), self.node.body)
                self.node.body = _at(self._called(inner), self.node)
            return
        if self.whole:  # a generator: what is nested in it is rewritten
            _nested([*self.body])
            self.node.body = [_Calls().visit(s) for s in self.body]
            return
        made = self.block(self.body, True, NONE)
        doc = made[:1] if ast.get_docstring(self.node) is not None else []
        held = sorted((self.variables - self.outer) - {*parameters(self.node.args)})
        if held and self.count:  # a variable that blocks alone bind is one of the function
            names: list[ast.expr] = [ast.Name(n, ast.Store()) for n in held]
            never = ast.If(ast.Constant(False), [ast.Assign(names, ast.Constant(None))], [])
            made = [*doc, _at(never, self.node), *made[len(doc) :]]
        if branches:
            whole = _function(
                "whole.", _no_arguments(*parameters(self.node.args)), made[len(doc) :]
            )
            made = [*doc, whole, ast.Return(self._called(_load("whole.")))]
        self.node.body = [_at(m, self.node) for m in made]

    def _may_call_itself(self) -> bool:
        """Whether it may end without a call on some way and call something on another."""
        return ast.Call in self.kinds and not self.kinds.isdisjoint(_CHOICES)

    def _called(self, whole: ast.expr) -> ast.expr:
        """A call of what the function does, which may become one of a definition."""
        return _form("called", whole, *map(_load, parameters(self.node.args)))

    # --- statements -------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt], top: bool, live: Names) -> list[ast.stmt]:
        """Statements rewritten; `live` is read after them, for blocks that are left early."""
        made: list[ast.stmt] = []
        for i, s in enumerate(statements):
            around, self.before = self.before, []
            ends = _leaves(s) or _tells(s)
            if type(s) in _FORMED or (ends and not isinstance(s, _EXITS)):
                rest = [*statements[i + 1 :]] if ends else None
                new = self.form(s, rest, live, top)
            else:
                new = [self.exit(s, top) if ends else self.plain(s)]
            made += [*self.before, *new]
            self.before = around
            if ends:
                break
        return made

    def exit(self, s: Any, top: bool) -> ast.stmt:
        """return, break or continue; at the top a return is one."""
        if isinstance(s, ast.Return):
            value = None if s.value is None else self.expression(s.value)
            if top:
                s.value = value
                return s
            return _at(ast.Return(_form("Return", value)), s)
        name = "BREAK" if isinstance(s, ast.Break) else "CONTINUE"
        return _at(ast.Return(ast.Attribute(_load(FORMS), name, ast.Load())), s)

    def form(
        self, s: Any, rest: Sequence[ast.stmt] | None, live: Names, top: bool = False
    ) -> list[ast.stmt]:
        """A branch or a loop, with what follows it where it may be left."""
        n, made = self._next(), []
        names = self.written_inside | bound(s) | bound(rest or [])
        if isinstance(s, ast.If) and rest and _always(s.body):
            s.orelse, rest = [*s.orelse, *rest], []
        elif isinstance(s, ast.If) and rest and _always(s.orelse):
            s.body, rest = [*s.body, *rest], []
        target, changed = [s.target] if isinstance(s, ast.For) else [], NONE
        if isinstance(s, ast.While | ast.For):
            changed = bound([*target, *s.body]) | written(s.body)
        exits = self.live.after[s] | self.live.head.get(s, NONE)
        after = exits if rest is None else exits | live | self.exits
        if isinstance(s, ast.Try):
            after |= read([*s.handlers, *s.orelse, *s.finalbody])

        def block(name: str, body: Sequence[ast.stmt], *args: str, set_: Any = ()) -> Any:
            if not body and not set_:
                return None
            said = f"{name}.{n}"
            before, self.exits = self.exits, exits if name == "body" else self.exits
            inner = [*set_, *self.nested(body)]
            self.exits = before
            head = self.header(bound([*body, *set_]))
            made.append(_at(_function(said, _no_arguments(*args), head + inner), s))
            return _load(said)

        if isinstance(s, ast.If):
            parts = [self.condition(s.test), block("then", s.body), block("orelse", s.orelse)]
            name = "if_"
        elif isinstance(s, ast.While):
            outside, self.before = self.before, []
            test = _at(ast.Return(self.condition(s.test)), s.test)
            asked = block("test", (), set_=[*(self.before or ()), test])
            self.before = outside
            parts = [asked, block("body", s.body)]
            parts += [block("orelse", s.orelse)]
            name = "while_"
        elif isinstance(s, ast.For):
            item = "item."
            target = _at(ast.Assign([s.target], _load(item)), s.target)
            parts = [self.expression(s.iter), block("body", s.body, item, set_=[target])]
            parts += [block("orelse", s.orelse)]
            name = "for_"
        elif isinstance(s, ast.Try):
            handlers: list[ast.expr] = [
                ast.Tuple(self._handler(h, block, f"handler{k}"), ast.Load())
                for k, h in enumerate(s.handlers)
            ]
            parts = [block("body", s.body), ast.Tuple(handlers, ast.Load())]
            parts += [block("orelse", s.orelse), block("final", s.finalbody)]
            name = "try_"
        else:  # with, match: left from within
            made.append(_at(self._whole(s, n), s))
            parts = [ast.Constant(True), _load(f"then.{n}"), None]
            name = "if_"
        parts.append(block("rest", rest) if rest else None)
        parts.append(_tuple(sorted(names & after & self.variables)))
        if isinstance(s, ast.While | ast.For):
            parts.append(_tuple(sorted(changed & self.variables)))
        call = _form(name, *parts)
        if rest is None:
            return [*made, _at(ast.Expr(call), s)]
        left = ast.Return(_form("result", call) if top else call)
        return [*made, _at(left, s)]

    def _handler(self, h: ast.ExceptHandler, block: Any, name: str) -> list[ast.expr]:
        """What it catches, its block, its variable, whether it may ask which exception it is."""
        asks = h.name is not None or any([isinstance(n, ast.Raise) for n in own(h.body)])
        error: list[Any] = []
        if h.name:
            error = [ast.Assign([ast.Name(h.name, ast.Store())], _load("error."))]
        taken = block(name, h.body, "error.", set_=error)
        kinds = ast.Constant(None) if h.type is None else _thunk(self.expression(h.type))
        return [kinds, taken, ast.Constant(h.name or ""), ast.Constant(asks)]

    def _whole(self, s: ast.stmt, n: int) -> ast.FunctionDef:
        return _function(f"then.{n}", _no_arguments(), [*self.header(bound(s)), self.plain(s)])

    def header(self, names: Names, but: Names = NONE) -> list[ast.stmt]:
        """What a block says of the variables that it binds, or functions that it may call.

        Names of its own are no variables of the function.
        """
        names = (names | self.written_inside) - but
        kinds = (ast.Nonlocal, names & self.variables), (ast.Global, names & self.globals)
        return [kind(sorted(names_)) for kind, names_ in kinds if names_]

    def nested(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block within the function."""
        return self.block(body, False, self.live.after[body[-1]]) if body else []

    def plain(self, s: ast.stmt) -> ast.stmt:
        """A statement that stays what it is, with what it holds rewritten."""
        if type(s) in _DEFINITIONS:
            _nested([s])
            return s
        if isinstance(s, ast.Assert):
            message = None if s.msg is None else _thunk(self.expression(s.msg))
            return _at(ast.Expr(_form("assert_", self.condition(s.test), message)), s)
        for target in every([s]) if isinstance(s, (ast.Delete, ast.AugAssign)) else ():
            is_target = isinstance(target, ast.Name) and not isinstance(target.ctx, ast.Load)
            if is_target and hasattr(target, "unset"):  # an augmented assignment reads its target
                assert self.before is not None, "it is a statement"
                name: Any = ast.Name(target.id, ast.Store())  # type: ignore[attr-defined]
                self.before.append(_at(ast.Assign([name], _known(target)), target))
        if isinstance(s, ast.AnnAssign):  # an annotated name cannot be nonlocal in blocks
            s = _at(ast.Assign([s.target], s.value) if s.value else ast.Pass(), s)
        for field in fields(type(s)):
            value = getattr(s, field, None)
            if isinstance(value, ast.expr):
                setattr(s, field, self.expression(value))
            elif isinstance(value, list):
                setattr(s, field, self._parts(value))
        return s

    def _parts(self, value: list[Any]) -> list[Any]:
        if value and isinstance(value[0], ast.stmt):
            return self.nested(value)
        parts = []
        for v in value:
            if isinstance(v, ast.expr):
                v = self.expression(v)
            elif isinstance(v, ast.ExceptHandler | ast.match_case):
                v.body = self.nested(v.body)
            elif isinstance(v, ast.withitem):
                v.context_expr = self.expression(v.context_expr)
            parts.append(v)
        return parts

    def _next(self) -> int:
        self.count += 1
        return self.count

    def expression(self, e: ast.expr) -> Any:
        """An expression rewritten."""
        return _Expressions(self).visit(e)

    def thunk(self, e: ast.expr, names: Names) -> ast.expr:
        """A function that evaluates an expression, which may bind these names."""
        if not names:
            return ast.Lambda(_no_arguments(), e)
        assert self.before is not None, "what binds names stands in a statement"
        made = _function(f"part.{self._next()}", _no_arguments(), [*self.header(names)])
        made.body.append(ast.Return(e))
        self.before.append(_at(made, e))
        return _load(made.name)

    def condition(self, e: ast.expr) -> Any:
        """An expression rewritten of which no more than its truth is asked."""
        return self.expression(_truths(e))


class _Expressions(Rewriter):
    """Rewrites expressions that evaluate their parts conditionally as calls of forms."""

    def __init__(self, of: _Function) -> None:
        self.of = of
        self.within = of.before is None  # whether names are bound elsewhere than in the function

    def stays(self, names: tuple[ast.Name, ...]) -> bool:
        """Where all of them have values."""
        return not any(["unset" in vars(n) for n in names])

    def _movable(self, node: ast.expr, parts: Sequence[ast.expr]) -> bool:
        """Whether these parts mean the same in functions of their own."""
        kinds = (ast.Yield, ast.YieldFrom, ast.Await)
        if any([isinstance(n, kinds) for n in ast.walk(node)]):
            return False
        binds = any([isinstance(n, ast.NamedExpr) for p in parts for n in ast.walk(p)])
        return not binds or (not self.within and all([_sure(p) == bound(p) for p in parts]))

    def _comprehension(self, node: Any) -> Any:
        around, self.within = self.within, True
        made = self.generic_visit(node)
        self.within = around
        return _at(_form("list_", made), node) if isinstance(made, ast.ListComp) else made

    visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """A list, as the loops that append to it, and as Python makes it."""
        loops = None if self.within else as_appending(node, f"list.{self.of.count + 1}")
        if loops is None:
            return self._comprehension(node)
        assert self.of.before is not None, "it stands in a statement"
        self.of._next()
        items = self.visit(copy.deepcopy(node.generators[0].iter))
        depends = ast.Constant(chooses(node))
        loops.body[:0] = self.of.header(NONE, targets(node))
        self.of.before.append(_at(loops, node))
        _Function(loops).rewrite()
        node.generators[0].iter = ast.Name("first.", ast.Load())
        plain = ast.Lambda(_no_arguments("first."), self._comprehension(node).args[0])
        return _at(_form("collected", items, _load(loops.name), plain, depends), node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """A function of its own."""
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        _Function(node).rewrite()
        return node

    def visit_List(self, node: ast.List) -> Any:
        """A new list."""
        self.generic_visit(node)
        return _at(_form("list_", node), node) if isinstance(node.ctx, ast.Load) else node

    def visit_Name(self, node: ast.Name) -> Any:
        """A variable, which may have no value."""
        is_read = isinstance(node.ctx, ast.Load) and hasattr(node, "unset")
        return _at(_known(node), node) if is_read else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """One of two values."""
        if bound([node.body, node.orelse]) or not self._movable(node, ()):
            return self.generic_visit(node)
        parts = self.visit(node.body), self.visit(node.orelse)
        return _at(_form("choose", self.visit(_truths(node.test)), *map(_thunk, parts)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """The first that decides."""
        if not self._movable(node, node.values[1:]):
            return self.generic_visit(node)
        names = [bound(v) for v in node.values[1:]]
        first, *others = [self.visit(v) for v in node.values]
        parts = [self.of.thunk(*pair) for pair in zip(others, names, strict=True)]
        form: Any = _form("and_" if isinstance(node.op, ast.And) else "or_", first, *parts)
        if every := sorted(NONE.union(*names)):
            form.keywords.append(ast.keyword("names", _tuple(every)))
        return _at(form, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`not` of a value."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        return _at(_form("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """A chain of comparisons, and `is`."""
        if len(node.ops) < 2 or bound(node.comparators) or not self._movable(node, ()):
            return _identity(self.generic_visit(node))
        parts = [self.visit(v) for v in (node.left, *node.comparators)]
        steps = []
        for op, right in zip(node.ops, parts[1:], strict=True):
            one = self.visit(ast.Compare(_load("l"), [op], [_load("r")]))
            act = ast.Lambda(_no_arguments("l", "r"), one)
            steps.append(ast.Tuple([act, _thunk(right)], ast.Load()))
        return _at(_form("chain", parts[0], *steps), node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """An item, where its place is not written out."""
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        known = all([isinstance(n, _KNOWN) for n in ast.walk(node.slice)])
        starred = any([isinstance(p, ast.Starred) for p in parts])
        if not isinstance(node.ctx, ast.Load) or known or starred:
            return node
        places = [_as_object(p) for p in parts]
        whole = isinstance(node.slice, ast.Tuple)
        at = ast.Tuple(places, ast.Load()) if whole else places[0]
        return _at(_form("item", node.value, at), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """A text with values in it."""
        if all([isinstance(part, ast.Constant) for part in node.values]):
            return node
        return _at(_form("text", *map(self._part, node.values)), node)

    def _part(self, part: Any) -> ast.expr:
        if isinstance(part, ast.Constant):
            return part
        conversion = ast.Constant("" if part.conversion < 0 else chr(part.conversion))
        form = ast.Constant("") if part.format_spec is None else self.visit(part.format_spec)
        return ast.Tuple([self.visit(part.value), conversion, form], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """A text with values in it, too, where the left of % is one."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        known = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if known and isinstance(node.op, ast.Mod):
            return _at(_form("percent", node.left, node.right), node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """A call whose function goes through `forms.asked`; `super()` gets its class and object."""
        loops = None if self.within else as_loops(node, f"fold.{self.of.count + 1}")
        if loops is not None:
            return self._fold(node, loops)
        self.generic_visit(node)
        bare = isinstance(node.func, ast.Name) and node.func.id == "super"
        if bare and not node.args and not node.keywords and self.of.first is not None:
            node.args = [_at(_load("__class__"), node), _at(_load(self.of.first), node)]
        return _asked(node)

    def _fold(self, node: ast.Call, loops: ast.FunctionDef) -> Any:
        """A call on a generator expression as its loops, where the function is the builtin one."""
        assert self.of.before is not None, "it stands in a statement"
        self.of._next()
        name, names = node.func.id, bound(node)  # type: ignore[attr-defined]
        first: Any = copy.deepcopy(node.args[0])
        items = _thunk(self.visit(first.generators[0].iter))
        loops.body[:0] = self.of.header(names, targets(first))
        self.of.before.append(_at(loops, node))
        _Function(loops).rewrite()
        f = copy.deepcopy(node.func)
        otherwise = self.of.thunk(_asked(self._comprehension(node)), names)
        parts = ast.Constant(name), f, items, _load(loops.name), otherwise
        return _at(_form("fold", *parts), node)


class _Calls(Rewriter):
    """Rewrites the calls and identity tests of code that is otherwise unchanged."""

    def stays(self, names: tuple[ast.Name, ...]) -> bool:
        """Always."""
        return True

    def visit_Compare(self, node: ast.Compare) -> Any:
        """`is` of two values."""
        self.generic_visit(node)
        return _identity(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """A call is asked for."""
        self.generic_visit(node)
        return _asked(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """A function of its own, which is rewritten itself."""
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda  # type: ignore[assignment]


def _identity(node: Any) -> Any:
    """`a is b` and `a in b` as forms."""
    name = _ASKS.get(type(node.ops[0]))
    if len(node.ops) > 1 or name is None:
        return node
    return _at(_form(name, node.left, *node.comparators), node)


_ASKS = {ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in"}


def _as_object(part: ast.expr) -> ast.expr:
    """A part of an index as an expression."""
    if not isinstance(part, ast.Slice):
        return part
    return _form("slice_", part.lower, part.upper, part.step)


def _known(node: Any) -> ast.expr:
    """The value of a variable that may have none."""
    lines, free = node.unset
    read = ast.Lambda(_no_arguments(), _load(node.id))
    where = ast.Tuple([ast.Constant(n) for n in sorted({*lines})], ast.Load())
    return _form("known", read, ast.Constant(node.id), where, ast.Constant(free))


def _asked(node: ast.Call) -> ast.Call:
    node.func = _at(_form("asked", node.func), node.func)
    return node


def _sure(e: ast.AST) -> Names:
    """The names that an expression binds whenever it is evaluated."""
    parts = [*ast.iter_child_nodes(e)]
    if isinstance(e, ast.BoolOp):
        parts = [e.values[0]]
    elif isinstance(e, ast.IfExp):
        parts = [e.test]
    elif isinstance(e, ast.Compare):
        parts = [e.left, e.comparators[0]]
    elif isinstance(e, (*FUNCTIONS, *COMPREHENSIONS)):
        parts = []
    own = frozenset([e.target.id] if isinstance(e, ast.NamedExpr) else [])
    return own.union(*map(_sure, parts))


def _truths(e: ast.expr) -> ast.expr:
    """A condition in which `and` and `or` are told the truth of what may be no truth value."""
    if isinstance(e, ast.BoolOp):
        e.values = [_truths(v) for v in e.values]
        names = (ast.Name, ast.Attribute, ast.Subscript)
        e.values = [_at(_form("truth", v), v) if isinstance(v, names) else v for v in e.values]
    elif isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
        e.operand = _truths(e.operand)
    return e


def _leaves(s: ast.stmt) -> bool:
    """Whether control may leave the block from within a statement, but for an exception."""
    if type(s) not in BLOCKS:
        return isinstance(s, _EXITS)
    loop = isinstance(s, ast.For | ast.While)
    inner = [n for n in children(s) if isinstance(n, ast.stmt)]
    handlers = (*getattr(s, "handlers", ()), *getattr(s, "cases", ()))
    inner += [n for h in handlers for n in h.body]
    if not loop:
        return any(map(_leaves, inner))
    body, rest = s.body, s.orelse  # type: ignore[attr-defined]
    return any(map(_leaves, rest)) or any([_returns(b) for b in body])


def _tells(s: ast.stmt) -> bool:
    """Whether a statement ends in an exception where a value is None, or is no other object."""
    if not isinstance(s, ast.If) or not (_always(s.body) or _always(s.orelse)):
        return False
    by_name = isinstance(s.test, ast.Name) or (
        isinstance(s.test, ast.UnaryOp) and isinstance(s.test.operand, ast.Name)
    )
    asks = [o for n in ast.walk(s.test) if isinstance(n, ast.Compare) for o in n.ops]
    return by_name or any([isinstance(o, ast.Is | ast.IsNot) for o in asks])


def _always(block: Sequence[ast.stmt]) -> bool:
    """Whether a block never falls through its end."""
    if not block:
        return False
    last = block[-1]
    both = isinstance(last, ast.If) and _always(last.body) and _always(last.orelse)
    return both or isinstance(last, (*_EXITS, ast.Raise))


def _returns(s: ast.AST) -> bool:
    """Whether a return, or an exit of a loop further out, is within."""
    if isinstance(s, SCOPES):
        return False
    return isinstance(s, ast.Return) or any(map(_returns, children(s)))


def _nested(nodes: Sequence[ast.AST]) -> None:
    """Rewrite the functions within statements that stay as they are."""
    for n in nodes:
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef):
            _Function(n).rewrite()
        elif isinstance(n, FUNCTIONS):
            continue
        else:
            _nested([*children(n)])


def is_block(code: CodeType) -> bool:
    """Whether code is that of a block of a function, whose name no function of a user's has."""
    return code.co_qualname.rpartition(".")[2].isdecimal()


def is_structured(code: CodeType) -> bool:
    """Whether code was rewritten."""
    return code.co_consts[-1:] == (_MARK,)


__all__ = ["is_block", "is_structured", "structured", "why_unread"]

r"""From Python to the calculus: a function of numbers, read from its source.

    def f(x, y): ...        \x. \y. ...               x = e; ...          let x = e in ...
    lambda, nested def      abstractions, `rec`       if c: ... else: ... if c then ... else ...
    a, b = e; (a, b)        pairs                     np.sin, math.exp    function symbols
    other functions         definitions               numbers, tuples     constants

Numbers are R, also those that Python has as integers; a loop over a constant `range` is unrolled.
Anything else is a CalculusError with the line: `while`, attributes, arrays, exceptions.
"""

import ast
import builtins
import inspect
import linecache
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

from lineara.calculus.parse import KEYWORDS
from lineara.calculus.program import Program, program_of
from lineara.calculus.symbols import Symbol, standard
from lineara.calculus.syntax import Declaration, File, Param, Syntax
from lineara.calculus.terms import Term
from lineara.errors import CalculusError, is_library_file, is_user_file
from lineara.facts.hints import Leaf
from lineara.facts.primitive import registry
from lineara.text.language import Source
from lineara.text.python_source import tree_of
from lineara.text.source_location import Place

LONGEST = 1000  # rounds of a loop that are written out

_BINARY = {ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip
_BUILTIN = {abs: "abs", max: "maximum", min: "minimum", pow: "power"}
_OPERATOR = {operator.add: "add", operator.mul: "multiply", operator.sub: "subtract"}


def of(f: Callable[..., Any]) -> Term:
    r"""The term of a Python function of numbers; arguments become one by one.

    Raises CalculusError at the first line that has no counterpart.

    >>> from lineara.calculus.show import show
    >>> def doubled(x):
    ...     return x + x
    >>> show(of(doubled))
    'let doubled = \\x:R. x + x in doubled'
    """
    reader, symbol, source = _Reader(), _symbol(f), Source("", "", CalculusError)
    name = symbol.name if symbol is not None else reader.function(f, Place(1, 1), source)
    main = Syntax("var", (), Place(1, 1), name)
    files = [*reader.files, File(source, (), main)]
    program: Program = program_of(files)
    return program.term()


class _Reader:
    """The functions that have been read, each a definition."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.names: dict[Any, str] = {}
        self.open: list[Any] = []

    def function(self, f: Callable[..., Any], at: Place, asked: Source) -> str:
        """The name of the definition that a Python function becomes."""
        if not isinstance(f, FunctionType):
            raise asked.wrong(at, f"{_called(f)} is no function whose source can be read")
        if f in self.names:
            return self.names[f]
        if f in self.open:
            raise asked.wrong(at, f"{f.__name__} is called by what it calls; write one recursion")
        self.open.append(f)
        try:
            text, node = _source(f)
            body = _Function(self, f, text).closed(node)
        except CalculusError:
            file = f.__code__.co_filename
            if is_user_file(file) or is_library_file(file):
                raise
            raise asked.wrong(at, f"{_called(f)} has no counterpart in the calculus") from None
        self.open.pop()
        name = _named(f.__name__ if f.__name__.isidentifier() else "function")
        while name in self.names.values():
            name += "'"
        self.names[f] = name
        place = Place(node.lineno, node.col_offset + 1)
        self.files.append(File(text, (Declaration("def", name, body, place),), None))
        return name


def _named(name: str) -> str:
    """A name of Python as one of the calculus, in which some have a meaning."""
    return f"{name}'" if name in KEYWORDS or name in standard() else name


def _source(f: FunctionType) -> tuple[Source, Any]:
    """The file of a function, and its node in it."""
    code = f.__code__
    lines = linecache.getlines(code.co_filename, f.__globals__)
    text = "".join(lines)
    try:
        tree = tree_of(text)
    except SyntaxError:
        tree = ast.Module([], [])
    nodes: list[Any] = [n for n in ast.walk(tree) if _starts(n) == code.co_firstlineno]
    nodes = [n for n in nodes if isinstance(n, ast.Lambda) == (code.co_name == "<lambda>")]
    if len(nodes) > 1:  # several lambdas in a line
        at = {p[:3:2] for p in code.co_positions() if p[2] is not None}
        nodes.sort(key=lambda n: (-len(at & _places(n.body)), len(_places(n.body))))
    if not text or not nodes:
        raise CalculusError(
            f"{f.__name__}: its source is not there; define it in a file, or write the term itself"
        )
    return Source(text, code.co_filename, CalculusError), nodes[0]


def _places(node: Any) -> set[tuple[int, int]]:
    every: Any = ast.walk(node)
    return {(n.lineno, n.col_offset) for n in every if hasattr(n, "lineno")}


def _starts(node: object) -> int:
    if isinstance(node, ast.FunctionDef):
        return node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return node.lineno if isinstance(node, ast.Lambda) else -1


class _Function:
    """One function on its way to syntax."""

    def __init__(self, reader: _Reader, f: FunctionType, text: Source) -> None:
        self.reader = reader
        self.text = text
        self.name = f.__name__
        variables = inspect.getclosurevars(f)
        self.known = {**variables.builtins, **variables.globals, **variables.nonlocals}
        self.rest = {**vars(builtins), **f.__globals__, **variables.nonlocals}
        self.function = f

    def refuse(self, node: Any, what: str) -> NoReturn:
        """The error at a node."""
        place = Place(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)
        raise self.text.wrong(place, what)

    def closed(self, node: object) -> Syntax:
        """The function itself; if it names itself, a recursion."""
        own = isinstance(node, ast.FunctionDef) and self.rest.get(node.name) is self.function
        return self.abstraction(node, frozenset(), own)

    def abstraction(self, node: Any, scope: frozenset[str], recursive: bool) -> Syntax:
        """A def or a lambda."""
        name = getattr(node, "name", "")
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.defaults or not (a.posonlyargs + a.args):
            self.refuse(node, "a function of the calculus has plain arguments, one or more")
        params = [p.arg for p in a.posonlyargs + a.args]
        inner = scope | set(params)
        if recursive:
            recursive = _mentions(node, name)
            inner |= {name} if recursive else set()
        body = (
            self.expression(node.body, inner)
            if isinstance(node, ast.Lambda)
            else self.block(node.body, inner, node)
        )
        at = _place(node)
        for p in reversed(params[1:] if recursive else params):
            body = Syntax("lam", (body,), at, Param(_named(p), None, at))
        if recursive:
            body = Syntax("rec", (body,), at, (_named(name), _named(params[0]), None, None))
        return body

    # --- statements -----------------------------------------------------------------------------

    def block(self, body: list[Any], scope: frozenset[str], within: Any) -> Syntax:
        """Statements, the last of which returns."""
        if not body:
            self.refuse(within, "this ends without a return, and a term has a value")
        s, rest = body[0], body[1:]
        at = _place(s)
        self.refuse_later_names(s, rest)
        match s:
            case ast.Return(value=None):
                self.refuse(s, "a return without a value; a term has one")
            case ast.Return(value=value):
                return self.expression(value, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return self.block(rest, scope, within)
            case (
                ast.Assign(targets=[ast.Name(id=x)], value=value)
                | ast.AnnAssign(target=ast.Name(id=x), value=value)
            ) if value is not None:
                return self.let(x, self.expression(value, scope), rest, scope, at, within)
            case ast.AugAssign(target=ast.Name(id=x) as target, op=op, value=value):
                left = ast.copy_location(ast.Name(x, ast.Load()), target)
                made = ast.copy_location(ast.BinOp(left, op, value), s)
                return self.let(x, self.expression(made, scope), rest, scope, at, within)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                return self.unpacked(names, self.expression(value, scope), rest, scope, within)
            case ast.FunctionDef(name=x):
                made = self.abstraction(s, scope, True)
                return self.let(x, made, rest, scope, at, within)
            case ast.If(test=test, body=yes, orelse=no):
                parts = (
                    self.expression(test, scope),
                    self.block([*yes, *rest], scope, within),
                    self.block([*no, *rest], scope, within),
                )
                return Syntax("if", parts, at)
            case ast.For(target=ast.Name(id=x), iter=it, body=inner, orelse=[]):
                rounds = []
                for i in self.rounds(it):
                    value = ast.copy_location(ast.Constant(i), s)
                    target = ast.copy_location(ast.Name(x, ast.Store()), s)
                    rounds += [ast.copy_location(ast.Assign([target], value), s), *inner]
                return self.block([*rounds, *rest], scope, within)
        word = type(s).__name__.lower()
        self.refuse(s, f"`{word}` has no counterpart in the calculus; a recursion or a fold has")

    def refuse_later_names(self, s: Any, rest: list[Any]) -> None:
        """Refuse a function that reads a name bound again later: Python reads the later value."""
        if isinstance(s, ast.For):  # its rounds are looked at one by one
            return
        later = set().union(*[_bound_in(r) for r in rest])
        for node in ast.walk(s):
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
                own |= _bound_in(node)
                read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - own
                if read & later:
                    name = min(read & later)
                    self.refuse(
                        node,
                        f"this function reads {name}, which changes after it is made, and Python "
                        f"would read the later value; give what changes another name",
                    )

    def let(
        self, x: str, e: Syntax, rest: list[Any], scope: frozenset[str], at: Place, within: Any
    ) -> Syntax:
        """Let x = e in the statements that are left."""
        return Syntax("let", (e, self.block(rest, scope | {x}, within)), at, _named(x))

    def unpacked(
        self, names: list[Any], e: Syntax, rest: list[Any], scope: frozenset[str], within: Any
    ) -> Syntax:
        """a, b = e."""
        if not all([isinstance(n, ast.Name) for n in names]) or len(names) < 2:
            self.refuse(names[0], "only names are unpacked, two or more")
        xs = [n.id for n in names]
        at = _place(names[0])
        whole = "".join(xs) + "%0"
        body = self.block(rest, scope | set(xs), within)
        part = Syntax("var", (), at, whole)
        parts = []
        for i in range(len(xs)):
            last = i == len(xs) - 1
            parts.append(part if last else Syntax("fst", (part,), at))
            part = Syntax("snd", (part,), at)
        for x, p in reversed(list(zip(xs, parts, strict=True))):
            body = Syntax("let", (p, body), at, _named(x))
        return Syntax("let", (e, body), at, whole)

    def rounds(self, it: Any) -> range:
        """The numbers of a constant range."""
        match it:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                values = [self.constant(a) for a in args]
                if values and all([type(v) is int for v in values]):
                    numbers = range(*values)
                    if len(numbers) <= LONGEST:
                        return numbers
        self.refuse(it, f"a loop is over a constant range of at most {LONGEST} rounds")

    def constant(self, node: Any) -> Any:
        """The constant value of an expression, or None."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            return -value if isinstance(value, int | float) else None
        return self.rest.get(node.id) if isinstance(node, ast.Name) else None

    # --- expressions ----------------------------------------------------------------------------

    def expression(self, e: Any, scope: frozenset[str]) -> Syntax:
        """The syntax of an expression."""
        at = _place(e)

        def again(node: Any) -> Syntax:
            return self.expression(node, scope)

        match e:
            case ast.Constant(value=value):
                return self.held(value, e)
            case ast.Name(id=x) if x in scope:
                return Syntax("var", (), at, _named(x))
            case ast.Name() | ast.Attribute() if _root(e) not in scope:
                return self.held(self.resolved(e), e)
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return Syntax("sum", (again(a), again(b)), at)
            case ast.BinOp(left=a, op=ast.Pow(), right=b):
                return Syntax("call", (_pair(again(a), again(b), at),), at, "power")
            case ast.BinOp(left=a, op=sign, right=b) if type(sign) in _BINARY:
                return Syntax("infix", (again(a), again(b)), at, _BINARY[type(sign)])
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return Syntax("call", (again(a),), at, "negative")
            case ast.UnaryOp(op=ast.UAdd(), operand=a):
                return again(a)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return Syntax("call", (again(a),), at, "not")
            case ast.BoolOp(op=sign, values=values):
                word = "and" if isinstance(sign, ast.And) else "or"
                syntax = again(values[0])
                for v in values[1:]:
                    syntax = Syntax("call", (_pair(syntax, again(v), at),), at, word)
                return syntax
            case ast.Compare(left=a, ops=[sign], comparators=[b]) if type(sign) in _COMPARE:
                pair = _pair(again(a), again(b), at)
                return Syntax("call", (pair,), at, _COMPARE[type(sign)])
            case ast.IfExp(test=test, body=a, orelse=b):
                return Syntax("if", (again(test), again(a), again(b)), at)
            case ast.Lambda():
                return self.abstraction(e, scope, False)
            case ast.Tuple(elts=parts) if len(parts) > 1:
                return _tuple([again(p) for p in parts], at)
            case ast.List(elts=parts):
                return Syntax("list", tuple([again(p) for p in parts]), at, False)
            case ast.Subscript(value=value, slice=ast.Constant(value=0 | 1 as i)):
                return Syntax("snd" if i else "fst", (again(value),), at)
            case ast.Call(func=f, args=args, keywords=[]) if args:
                return self.call(e, f, args, scope)
        shown = ast.get_source_segment(self.text.text, e) or type(e).__name__
        self.refuse(e, f"`{shown}` has no counterpart in the calculus")

    def call(self, e: object, f: object, args: list[Any], scope: frozenset[str]) -> Syntax:
        """A function symbol, or a function applied to its arguments one by one."""
        at = _place(e)
        arguments = [self.expression(a, scope) for a in args]
        if isinstance(f, ast.Name | ast.Attribute) and _root(f) not in scope:
            symbol = _symbol(self.resolved(f))
            if symbol is not None:
                return Syntax("call", (_tuple(arguments, at),), at, symbol.name)
        syntax = self.expression(f, scope)
        for a in arguments:
            syntax = Syntax("app", (syntax, a), at)
        return syntax

    def resolved(self, node: Any) -> Any:
        """The value of a name or of attributes of a module."""
        if isinstance(node, ast.Attribute) and inspect.ismodule(owner := self.resolved(node.value)):
            if hasattr(owner, node.attr):
                return getattr(owner, node.attr)
            self.refuse(node, f"{owner.__name__} has no {node.attr}")
        if isinstance(node, ast.Name):
            if node.id in self.rest:
                return self.rest[node.id]
            self.refuse(node, f"{node.id} is not known where {self.name} is")
        shown = ast.get_source_segment(self.text.text, node)
        self.refuse(node, f"`{shown}` has no counterpart in the calculus")

    def held(self, value: Leaf, node: object) -> Syntax:
        """A value from outside of the function: a constant or another function."""
        at = _place(node)
        if isinstance(value, bool):
            return Syntax("literal", (), at, value)
        if isinstance(value, int | float):
            return Syntax("literal", (), at, float(value))
        if isinstance(value, tuple) and len(value) > 1:
            return _tuple([self.held(v, node) for v in value], at)
        if isinstance(value, list):
            return Syntax("list", tuple([self.held(v, node) for v in value]), at, False)
        symbol = _symbol(value) if callable(value) else None
        if symbol is not None:
            return Syntax("var", (), at, symbol.name)
        if isinstance(value, FunctionType):
            return Syntax("var", (), at, self.reader.function(value, at, self.text))
        self.refuse(node, f"{_called(value)} is no number and no function that can be read")


def _symbol(f: Callable[..., Any]) -> Symbol | None:
    """The function symbol that a function of Python, NumPy or the library is."""
    try:
        name = _BUILTIN.get(f) or _OPERATOR.get(f) or getattr(registry.ours(f) or f, "name", None)
    except TypeError:  # an unhashable value
        return None
    return standard().get(name) if isinstance(name, str) else None


def _called(value: Leaf) -> str:
    """The text by which a message names a value: a function by its module and name."""
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if callable(value) and name else repr(value)


def _root(node: object) -> str | None:
    """The name that attributes are taken of."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _bound_in(node: Any) -> set[str]:
    """The names that are assigned or defined in a node."""
    every: Any = list(ast.walk(node))
    stored = {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.name for n in every if isinstance(n, ast.FunctionDef)}


def _mentions(node: Any, name: str) -> bool:
    return any([isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)])


def _place(node: Any) -> Place:
    return Place(node.lineno, node.col_offset + 1)


def _pair(a: Syntax, b: Syntax, at: Place) -> Syntax:
    return Syntax("pair", (a, b), at)


def _tuple(parts: list[Syntax], at: Place) -> Syntax:
    pair = parts[-1]
    for p in reversed(parts[:-1]):
        pair = _pair(p, pair, at)
    return pair

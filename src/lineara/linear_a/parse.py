"""From text to programs: the concrete syntax, scopes, and the types that the text leaves out.

Names that are bound twice get fresh ones; a binder without a type gets the type of its value.
Every error has line, column and a caret.
"""

import difflib
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lineara.box import registry
from lineara.errors import ProgramError
from lineara.linear_a.branches import Case, Cond, Switch
from lineara.linear_a.check import DEPTH, located, type_of_leaf
from lineara.linear_a.control import Call
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Place, Program
from lineara.linear_a.syntax import (
    Accum,
    Binding,
    Block,
    Copy,
    Def,
    Drop,
    Dup,
    Inj,
    Leaf,
    Let,
    Names,
    Prim,
    Proj,
    Put,
    Read,
    Ret,
    Tup,
    Unpack,
    Var,
    lit,
    zero,
)
from lineara.types import ArrayType, Named, Product, Stack, Sum, Type

GRAMMAR = r"""
start: (typedef | def)*
typedef: "type" NAME "=" type
def: "def" NAME "(" binders ")" "->" "(" results ")" "=" block
binders: [binder ("," binder)*] ";" [binder ("," binder)*]
results: types ";" types
types: [type ("," type)*]
binder: (NAME | LNAME) [":" type]

type: DTYPE [dims] -> array | NAME -> named | "<" types ">" -> product
    | "{" field ("," field)* "}" -> record | "[" type ("|" type)* "]" -> sum
    | "stack" "[" [INT ","] type "]" -> stack
dims: "[" [INT ("," INT)*] "]"
field: NAME ":" type

block: binding* leaf
binding: "let" target "=" rhs "in"
target: "(" binders ")" -> several | binder -> one
    | "<" [binder ("," binder)*] ">" -> parts | "~<" [binder ("," binder)*] ">" -> lparts
rhs: leaf | "{" block "}"
leaf: "(" [args] ";" [args] ")" -> ret
    | NAME [params] "(" [args] [SEMI [args]] ")" -> apply
    | "case" NAME "of" NAME ("|" NAME)* "with" "(" [args] ";" [args] ")" -> case
    | var INFIX var -> infix
    | "zero" "[" type "]" -> zero | "zeros" "[" type "]" -> zeros
    | "drop" "(" rhs ")" -> drop
    | "<" [args] ">" -> tup | "~<" [args] ">" -> ltup
    | "{" entry ("," entry)* "}" -> rec | "~" "{" entry ("," entry)* "}" -> lrec
    | var -> copy
    | literal -> literal
entry: NAME ":" var
args: var ("," var)*
var: NAME | LNAME

params: "[" [param ("," param)*] "]"
param: [NAME "="] value
?value: atom | slice
slice: [atom] ":" [atom] [":" [atom]]
?atom: literal | NAME -> name | STRING -> string | "None" -> none | "..." -> dots
    | "(" ")" -> tuple | "(" value ("," value)* [","] ")" -> tuple
    | DTYPE [dims] -> array | "<" types ">" -> product | "[" type ("|" type)* "]" -> sum
literal: number [SUFFIX] | "[" "]" SUFFIX dims -> empty
?number: NUM -> num | INT -> int | "true" -> true | "false" -> false
    | "complex" "(" part "," part ")" -> complex | "[" number ("," number)* "]" -> nested
?part: NUM | INT

INFIX: "+" | "-" | "*" | "/"
SEMI: ";"
DTYPE.3: /(f16|f32|f64|c64|c128|i8|i16|i32|i64|u8|u16|u32|u64|bool)(?![A-Za-z0-9_.'])/
SUFFIX.4: /_(f16|f32|f64|c64|c128|i8|i16|i32|i64|u8|u16|u32|u64|bool)(?![A-Za-z0-9_.'])/
NUM.2: /-?(\d+\.\d*([eE][+-]?\d+)?|\d+[eE][+-]?\d+|(inf|nan)(?![A-Za-z0-9_.']))/
INT.1: /-?\d+/
STRING: /'[^'\n]*'/
NAME: /[A-Za-z_][A-Za-z0-9_.']*/
LNAME: /~[A-Za-z_][A-Za-z0-9_.']*/
COMMENT: /#[^\n]*/
%ignore COMMENT
%import common.WS
%ignore WS
"""

_WIDE = {"f": "float", "c": "complex", "i": "int", "u": "uint"}
ALIASES = {"neg": "negative", "recip": "reciprocal"}
_INFIX = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_PARTS = {"read": Read, "accum": Accum, "put": Put}
FORMS: dict[str, Any] = {"cond": Cond, "switch": Switch, "scan": Scan, "while": While}


@functools.cache
def _lark() -> Any:
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse(text: str, file: str = "") -> Program:
    """The program of a text; what does not parse is a ProgramError that shows the place.

    >>> print(parse("def f(x: f64;) -> (f64;) = let y = sin(x) in y * x"))
    def f(x: f64;) -> (f64;) =
      let y: f64 = sin(x) in
      y * x
    <BLANKLINE>
    """
    from lark.exceptions import UnexpectedInput

    try:
        tree = _lark().parse(text)
    except UnexpectedInput as error:
        raise ProgramError(_unexpected(error, text, file)) from None
    return _Reader(text, file).program(tree)


def _unexpected(error: Any, text: str, file: str) -> str:
    found = getattr(error, "token", None)
    ended = found is None or found.type == "$END"
    lines = text.splitlines() or [""]
    line, column = error.line, error.column
    if ended and found is not None:
        line, column = len(lines), len(lines[-1]) + 1
    what = (
        "the text ends here"
        if ended and found is not None
        else (
            f"{str(found)!r} is not expected here"
            if found is not None
            else f"the character {text[error.pos_in_stream]!r} has no meaning"
        )
    )
    wanted = sorted(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    shown = [_TOKENS.get(w, str(w).lower()) for w in wanted]
    hint = f"; expected {' or '.join(shown[:6])}" if 0 < len(shown) <= 6 else ""
    return located(Program({}, {}, {}, text, file), Place(line, column), what + hint)


_TOKENS = {
    "NAME": "a name", "LNAME": "a linear name", "SEMICOLON": "';'", "SEMI": "';'", "RPAR": "')'",
    "LPAR": "'('", "IN": "'in'", "EQUAL": "'='", "COMMA": "','", "RSQB": "']'", "LSQB": "'['",
    "RBRACE": "'}'", "LBRACE": "'{'", "COLON": "':'", "__ANON_0": "'->'", "MORETHAN": "'>'",
    "LESSTHAN": "'<'", "INFIX": "an operator", "DEF": "'def'", "TYPE": "'type'", "LET": "'let'",
    "DTYPE": "a dtype", "VBAR": "'|'", "$END": "the end",
}  # fmt: skip


class _Reader:
    """One text on its way to a program."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.types: dict[str, Type] = {}
        self.defs: dict[str, Def] = {}
        self.places: dict[Any, tuple[Place, ...]] = {}
        self.scope: dict[str, Var] = {}
        self.names = Names()
        self.depth = 0

    def wrong(self, message: str, at: Any) -> ProgramError:
        """The error at a token or a tree."""
        return ProgramError(located(self.so_far(), _place(at), message))

    def so_far(self) -> Program:
        """The program as far as it is known: the signatures of all definitions."""
        return Program(self.types, self.defs, self.places, self.text, self.file)

    def program(self, tree: Any) -> Program:
        """Types, then signatures, then bodies."""
        for t in tree.children:
            if t.data == "typedef":
                name, stated = t.children
                if name in self.types:
                    raise self.wrong(f"the type {name} is defined twice; keep one", name)
                self.types[str(name)] = UNKNOWN
                self.types[str(name)] = self.type(stated)
        found = [t for t in tree.children if t.data == "def"]
        for t in found:
            self.signature(t)
        for t in found:
            name = str(t.children[0])
            d = self.defs[name]
            self.scope = {repr(p): p for p in d.params}
            self.names = Names([p.name for p in d.params])
            body = self.block(t.children[3])
            self.defs[name] = done = Def(name, d.params, d.results, d.lresults, body)
            self.places[done] = self.places.pop(d)
        return self.so_far()

    def signature(self, t: Any) -> None:
        """The formals and results of a definition."""
        name, formals, results, _ = t.children
        if name in self.defs:
            raise self.wrong(f"{name} is defined twice; keep one", name)
        self.names = Names()
        params = [self.formal(b) for b in self.zones(formals)]
        ts, us = (
            tuple(map(self.type, z.children)) if z.children != [None] else ()
            for z in results.children
        )
        d = Def(str(name), tuple(params), ts, us, Block((), Ret(())))
        self.defs[d.name] = d
        self.places[d] = (_place(name), *(_place(b.children[0]) for b in self.zones(formals)))

    def zones(self, binders: Any) -> list[Any]:
        """The binders of (xs ; ~as), each in its zone."""
        found = [b for b in binders.children if b is not None]
        zones = [str(b.children[0]).startswith("~") for b in found]
        if zones != sorted(zones):
            i = zones.index(True)
            raise self.wrong("linear names stand after the semicolon", found[i])
        return found

    def formal(self, b: Any) -> Var:
        """A formal of a definition."""
        name, t = b.children
        if t is None:
            raise self.wrong(f"the formal {name} needs a type: {name}: f64", name)
        bare = name.lstrip("~")
        fresh = self.names(bare)
        if fresh != bare:
            raise self.wrong(f"{name} is taken twice; give one another name", name)
        return Var(fresh, self.type(t), name.startswith("~"))

    # --- types ------------------------------------------------------------------------------

    def type(self, t: Any) -> Type:
        """A type of the text."""
        match t.data:
            case "array":
                dtype, dims = t.children
                sizes = (
                    () if dims is None else tuple([int(d) for d in dims.children if d is not None])
                )
                return ArrayType(sizes, wide(str(dtype)))
            case "named":
                return Named(str(t.children[0]))
            case "product":
                return Product(
                    tuple([self.type(s) for s in t.children[0].children if s is not None])
                )
            case "record":
                pairs = [f.children for f in t.children]
                return Product(
                    tuple([self.type(s) for _, s in pairs]), tuple([str(f) for f, _ in pairs])
                )
            case "stack":
                length, item = t.children
                return Stack((self.type(item),), None if length is None else int(length))
        return Sum(tuple(map(self.type, t.children)))

    # --- blocks ------------------------------------------------------------------------------

    def block(self, t: Any) -> Block:
        """A block; what it binds is not seen outside of it."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.wrong(
                f"blocks lie in each other deeper than {DEPTH}; make one a definition", t
            )
        outside = self.scope
        self.scope = dict(outside)
        *bindings, leaf = t.children
        found = Block(tuple([self.binding(b) for b in bindings]), self.leaf(leaf))
        self.scope = outside
        self.depth -= 1
        return found

    def binding(self, t: Any) -> Binding:
        """A binding: what is bound first, then the binders."""
        target, rhs = t.children
        if target.data in ("parts", "lparts"):
            (inner,) = rhs.children
            if inner.data != "copy":
                raise self.wrong("only a variable is taken apart; bind the value first", rhs)
            arg = self.var(inner.children[0])
            types = self.items(arg, rhs)
            binders = [b for b in target.children if b is not None]
            made = Unpack(self.bind(binders, types, target), arg)
        else:
            value = self.rhs(rhs)
            ts, us = self.types_of(value, rhs)
            if target.data == "one":
                binders = list(target.children)
            else:
                binders = self.zones(target.children[0])
            made = Let(self.bind(binders, (*ts, *us), target), value)
        self.places[made] = (_place(target), *(_place(b.children[0]) for b in binders))
        return made

    def rhs(self, t: Any) -> Leaf | Block:
        """A leaf, or a block in braces."""
        (inner,) = t.children
        return self.block(inner) if inner.data == "block" else self.leaf(inner)

    def bind(self, binders: Sequence[Any], types: Sequence[Type], at: Any) -> tuple[Var, ...]:
        """Fresh variables of the stated types, or else of those of the values."""
        if len(binders) != len(types):
            raise self.wrong(f"{len(binders)} names for {len(types)} values; bind each once", at)
        made = []
        for b, t in zip(binders, types, strict=True):
            name, stated = str(b.children[0]), b.children[1]
            fresh = self.names(name.lstrip("~"))
            v = Var(fresh, t if stated is None else self.type(stated), name.startswith("~"))
            made.append((name, v))
        self.scope.update(made)
        return tuple([v for _, v in made])

    def items(self, arg: Var, at: Any) -> tuple[Type, ...]:
        """The components of a product."""
        t = self.so_far().unfold(arg.type)
        if not isinstance(t, Product):
            raise self.wrong(f"{arg!r} is {t!r}; only a product is taken apart", at)
        return t.items

    def types_of(self, e: Leaf | Block, at: Any) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """The types of the values of a right-hand side."""
        while isinstance(e, Block):
            e = e.leaf
        return ((), ()) if isinstance(e, Drop) else type_of_leaf(self.so_far(), e)

    def var(self, t: Any) -> Var:
        """An occurrence of a variable."""
        name = str(t.children[0]) if hasattr(t, "children") else str(t)
        if name not in self.scope:
            near = difflib.get_close_matches(name, list(self.scope), 1)
            hint = (
                f"; did you mean {near[0]}?"
                if near
                else "; bind it before, or take it as an argument"
            )
            raise self.wrong(f"{name} is not known here{hint}", t)
        return self.scope[name]

    # --- leaves ------------------------------------------------------------------------------

    def leaf(self, t: Any) -> Leaf:
        """A leaf, with the places of its operands."""
        occurrences: list[Any] = []
        made = self._leaf(t, occurrences)
        self.places[made] = (_place(t), *map(_place, occurrences))
        return made

    def _args(self, t: Any, seen: list[Any]) -> tuple[Var, ...]:
        if t is None:
            return ()
        seen += t.children
        return tuple(map(self.var, t.children))

    def _leaf(self, t: Any, seen: list[Any]) -> Leaf:
        parts = t.children
        match t.data:
            case "ret":
                return Ret(self._zoned(parts[0], parts[1], seen))
            case "copy":
                seen += parts
                return Copy((self.var(parts[0]),))
            case "infix":
                left, sign, right = parts
                seen += [left, right]
                return Prim((self.var(left), self.var(right)), registry.primitives[_INFIX[sign]])
            case "zero" | "zeros":
                return zero(self.type(parts[0]), t.data == "zero")
            case "drop":
                return Drop((), self.rhs(parts[0]))
            case "tup" | "ltup":
                return Tup(self._args(parts[0], seen), t.data == "ltup")
            case "rec" | "lrec":
                fields = tuple([str(e.children[0]) for e in parts])
                seen += [e.children[1] for e in parts]
                args = tuple([self.var(e.children[1]) for e in parts])
                return Tup(args, t.data == "lrec", fields)
            case "case":
                x, *branches, first, second = parts
                args = self._zoned(first, second, seen)
                seen.insert(0, x)
                return Case((self.var(x), *args), tuple(map(str, branches)))
            case "literal":
                value = self.literal(parts[0])
                return lit(value, ArrayType(value.shape, value.dtype))
        return self.application(t, seen)

    def _zoned(self, xs: Any, lxs: Any, seen: list[Any]) -> tuple[Var, ...]:
        left, right = self._args(xs, seen), self._args(lxs, seen)
        for v, place in zip((*left, *right), seen, strict=True):
            if v.linear is not (v in right):
                raise self.wrong(
                    "before the semicolon stand non-linear names, after it linear ones", place
                )
        return (*left, *right)

    def application(self, t: Any, seen: list[Any]) -> Leaf:
        """A primitive, a definition, or a form that takes parameters."""
        head, params, first, semicolon, second = t.children
        name = ALIASES.get(str(head), str(head))
        given = [] if params is None else [p.children for p in params.children if p is not None]
        if semicolon is not None:
            args = self._zoned(first, second, seen)
            if name in FORMS:
                return self.form(FORMS[name], args, given, head)
            if name not in self.defs:
                raise self.unknown(head, [*self.defs, *FORMS], "definition")
            return Call(args, (name,))
        args = self._args(first, seen)
        if name == "dup":
            return Dup(args)
        if name in _PARTS:
            return _PARTS[name](args, tuple([self.value(v) for _, v in given]))
        if name == "inj" and len(given) == 2:
            t = self.value(given[1][1])  # a bare name is read as one
            return Inj(args, int(self.value(given[0][1])), Named(t) if isinstance(t, str) else t)
        if name == "proj" and len(given) == 1:
            return Proj(args, int(self.value(given[0][1])))
        if name not in registry.primitives:
            hint = "; a call has a semicolon" if name in self.defs else ""
            raise self.unknown(head, registry.primitives, "primitive", hint)
        positional = [v for k, v in given if k is None]
        if positional:
            raise self.wrong(f"the parameters of {name} have names: {name}[name=value](…)", head)
        params = {str(k): self.value(v) for k, v in given}
        return Prim(args, registry.primitives[name], params)

    def form(self, form: Any, args: tuple[Var, ...], given: list[Any], head: Any) -> Leaf:
        """A branch or a loop: the definitions it applies, then its numbers."""
        values = [self.value(v) for _, v in given]
        functions = tuple([v for v in values if isinstance(v, str) and v not in ("fwd", "rev")])
        try:
            return form(args, functions, *values[len(functions) :])
        except TypeError:
            raise self.wrong(f"the form is {form.FORM}", head) from None

    def unknown(self, head: Any, names: Iterable[str], what: str, hint: str = "") -> ProgramError:
        """The error about a name that nothing has."""
        near = difflib.get_close_matches(str(head), list(names), 1)
        hint = hint or (f"; did you mean {near[0]}?" if near else "")
        return self.wrong(f"there is no {what} {head}{hint}", head)

    def value(self, t: Any) -> Any:
        """A parameter or a literal."""
        match t.data:
            case "literal":
                number, suffix = t.children
                plain = suffix is None and number.data != "nested"
                return _number(number) if plain else self.literal(t)
            case "empty":
                suffix, dims = t.children
                sizes = tuple([int(d) for d in dims.children if d is not None])
                return np.zeros(sizes, wide(str(suffix)[1:]))
            case "name":
                name = str(t.children[0])
                return self.scope.get(name, name)
            case "string":
                return str(t.children[0])[1:-1]
            case "none":
                return None
            case "dots":
                return ...
            case "tuple":
                return tuple([self.value(v) for v in t.children])
            case "slice":
                return slice(*[None if v is None else self.value(v) for v in t.children])
            case "array" if t.children[1] is None:
                return wide(str(t.children[0]))
        return self.type(t)

    def literal(self, t: Any) -> Any:
        """A number or an array; whole numbers without a suffix are f64."""
        if t.data == "empty":
            return self.value(t)
        number, suffix = t.children
        raw = np.array(_number(number))
        if suffix is not None:
            return raw.astype(wide(str(suffix)[1:]))[()]
        return raw.astype(float)[()] if raw.dtype.kind in "iu" else raw[()]


UNKNOWN = Product()


def _number(t: Any) -> Any:
    match t.data:
        case "num":
            return float(t.children[0])
        case "int":
            return int(t.children[0])
        case "true" | "false":
            return t.data == "true"
        case "complex":
            return complex(*map(float, t.children))
    return [_number(c) for c in t.children]


def wide(short: str) -> np.dtype:
    """The dtype that `f64`, `c128`, `i32` or `bool` is short for.

    >>> wide("c128"), wide("bool")
    (dtype('complex128'), dtype('bool'))
    """
    return np.dtype(short if short == "bool" else _WIDE[short[0]] + short[1:])


def _place(t: Any) -> Place:
    meta = t.meta if hasattr(t, "meta") else t
    if getattr(meta, "empty", False):
        return Place(1, 1)
    return Place(meta.line, meta.column)

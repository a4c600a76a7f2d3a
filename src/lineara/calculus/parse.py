r"""From text to syntax: the grammar, and errors with a caret.

A name with a bracket right after it is a function symbol, `sin(x)`; a variable is applied with a
space, `f x`.  Sugar ends here: `let f x y = t in u`, `\x y. t`, `f(x, y)`, `-t`, and patterns,
`\<x, <y, z>>. t`, wherever a function, a let or a dual map binds a name.

>>> parse("let f x = x * x in f 3").term.kind
'let'
"""

import functools
from typing import Any

from lineara.calculus.syntax import Declaration, File, Param, Syntax
from lineara.calculus.types import BOOL, INT, Arrow, Dual, ListOf, Product, R
from lineara.errors import CalculusError
from lineara.facts.gc_pause import uncollected
from lineara.facts.hints import Shaped
from lineara.text.language import Language, with_names
from lineara.text.source_location import Place, place_of

KEYWORDS = (
    "let", "rec", "in", "if", "then", "else", "fst", "snd", "head", "tail", "isnil", "def",
    "symbol", "import", "true", "false", "List", "inf", "nan",
)  # fmt: skip

GRAMMAR = r"""
start: declaration* -> library | declaration+ "in" term -> program | term -> bare
declaration: "import" STRING -> import_
    | DEF [REC] NAME param* [":" type] "=" term -> def_
    | "symbol" NAME param+ "=" term -> symbol
?param: NAME -> param | "(" NAME ":" type ")" -> param | tuple

?term: "\\" pattern+ "." term -> lam
    | "let" [REC] NAME param* [":" type] "=" term "in" term -> let
    | "let" tuple "=" term "in" term -> letpair
    | "rec" NAME NAME [":" type] "." term -> rec
    | "if" term "then" term "else" term -> if_
    | probe
?pattern: NAME [":" type] -> param | tuple
tuple: "<" pattern ("," pattern)+ ">"
?probe: sum | sum "|>" probe -> probe
?sum: product | sum PLUS product -> infix | sum MINUS product -> infix
?product: pairing | product (STAR | SLASH) pairing -> infix | MINUS pairing -> minus
?pairing: app | app "@" app -> at
?app: atom | app atom -> app
?atom: NUMBER -> number | INT -> int | "true" -> true | "false" -> false
    | "0:" atype -> zero | NAME -> var
    | atom _SUBST NAME "/" term "]" -> subst
    | FNAME "(" term ("," term)* ")" -> call
    | "fst" atom -> fst | "snd" atom -> snd
    | "head" atom -> head | "tail" atom -> tail | "isnil" atom -> isnil
    | "<" term ("," term)+ ">" -> pair
    | "J{" (NAME | FNAME) "}" "(" term ")" -> jfun
    | "J(" term ";" term ")" -> j
    | "dual(" "\\" pattern "." term ";" term ")" -> dual
    | "pull(" term ";" term ")" -> pull
    | "covec(" term ")" -> covec
    | "ev(" term ")" -> ev
    | "scale(" term "," term ")" -> scale
    | "cons(" term "," term ")" -> cons
    | "[" term "|" term "]" -> copair
    | "covs[" [term ("," term)*] "]" -> covs
    | "[" [term ("," term)*] "]" -> list
    | "(" term ";" term ("," term)* "|>'" term ")" -> dprobe
    | "(" term ":" type ")" -> ann
    | "(" term ")" -> within

?type: ptype | ptype "->" type -> arrow
?ptype: ltype | ltype "*" ptype -> product_type
?ltype: atype | "List" atype -> list_type
?atype: base | atype "^" -> dual_type
?base: BASE -> base | "(" type ")"

PLUS: "+"
MINUS: "-"
STAR: "*"
SLASH: "/"
REC: "rec"
DEF: "def"
BASE.3: /(R|Int|Bool)(?![@NEXT@'%])/
NAME: /[@FIRST@][@NEXT@'%]*/
_SUBST.2: /(?<=[@NEXT@)\]>'%])\[(?=\s*[@FIRST@][@NEXT@'%]*\s*\/)/
FNAME.2: /(?!(?:KEYWORDS)\()[@FIRST@][@NEXT@'%]*(?=\()/
INT.2: /((?<![@NEXT@)\]>'%])-)?\d+i(?![@NEXT@'%])/
NUMBER.1: /((?<![@NEXT@)\]>'%])-)?(\d+(\.\d+)?([eE][+-]?\d+)?|(inf|nan)(?![@NEXT@'%]))/
STRING: /"[^"\n]*"/
COMMENT: /#[^\n]*/
%ignore COMMENT
%import common.WS
%ignore WS
"""
_LONG = ("J(", "J{", "dual(", "pull(", "covec(", "ev(", "scale(", "cons(", "covs[", "0:")

_TERMINALS = {
    "NAME": "a name", "IN": "'in'", "EQUAL": "'='", "RPAR": "')'", "RSQB": "']'", "COMMA": "','",
    "SEMICOLON": "';'", "DOT": "'.'", "COLON": "':'", "MORETHAN": "'>'", "VBAR": "'|'",
    "THEN": "'then'", "ELSE": "'else'", "BASE": "a type", "$END": "the end", "value": "a term",
    "LPAR": "'('", "BACKSLASH": "'\\'", "STRING": "a file in quotes", "RBRACE": "'}'",
    "LIST": "'List'", "CIRCUMFLEX": "'^'", "LESSTHAN": "'<'",
}  # fmt: skip


def _grammar() -> str:
    grammar = with_names(GRAMMAR).replace("KEYWORDS", "|".join(KEYWORDS))
    for i, token in enumerate(_LONG):
        grammar = grammar.replace(f'"{token}"', f"_LONG{i}")
        grammar += f'_LONG{i}.4: "{token}"\n'
    return grammar


def _summed_up(expected: set[str]) -> set[str]:
    if not expected >= {"NUMBER", "NAME", "TRUE"}:  # whatever begins a term
        return expected
    closing = {"RPAR", "IN", "MORETHAN", "RSQB", "SEMICOLON", "THEN", "ELSE", "$END", "DEF"}
    return {"value", *(expected & closing)}


LANGUAGE = Language(_grammar(), CalculusError, _TERMINALS, _summed_up)


@uncollected
def parse(text: str, file: str = "") -> File:
    """The syntax of a text; what does not parse is a CalculusError that shows the place."""
    source = LANGUAGE.source(text, file)
    declarations, term = _read(LANGUAGE.tree(source))
    return File(source, declarations, term)


def _read(tree: Any) -> Any:
    """What the actions make of the tree, from the leaves up, without recursion."""
    reader, nodes = _Reader(), {}
    for t in tree.iter_subtrees():
        parts = [nodes.get(id(c), c) for c in t.children]
        action = getattr(reader, t.data, None)
        at = place_of(t.meta)
        kind = str(t.data).rstrip("_")
        nodes[id(t)] = Syntax(kind, tuple(parts), at) if action is None else action(at, parts)
    return nodes[id(tree)]


def _tuple_of(params: list[Param], at: Place) -> Param:
    """The parameter of a pattern `<x, y>`: a name for the whole, and the patterns of its parts."""
    types = [p.type for p in params if p.type]
    whole = len(types) == len(params)
    t = functools.reduce(lambda a, b: Product(b, a), reversed(types)) if whole else None
    name = "".join([p.name.partition("%")[0] for p in params])
    return Param(f"{name}%0", t, at, tuple(params))


def _opened(p: Param, body: Syntax) -> Syntax:
    """The body under lets for the names of a pattern."""
    whole = Syntax("var", (), p.place, p.name)
    for i in range(len(p.parts) - 1, -1, -1):
        part, q = whole, p.parts[i]
        for _ in range(i):
            part = Syntax("snd", (part,), q.place)
        if i < len(p.parts) - 1:
            part = Syntax("fst", (part,), q.place)
        body = Syntax("let", (_stated(part, q.type), _opened(q, body)), q.place, q.name)
    return body


def _curried(params: list[Any], body: Syntax) -> Syntax:
    for p in reversed(params):
        body = Syntax("lam", (_opened(p, body),), p.place, p)
    return body


def _paired(parts: list[Any]) -> Syntax:
    syntax = parts[-1]
    for p in reversed(parts[:-1]):
        syntax = Syntax("pair", (p, syntax), p.place)
    return syntax


def _stated(s: Syntax, t: object) -> Syntax:
    return s if t is None else Syntax("ann", (s,), s.place, t)


def _bound(rec: object, name: object, params: list[Any], t: Shaped | None, body: Syntax) -> Syntax:
    """The term of `name params : t = body`."""
    if rec is None:
        return _curried(params, _stated(body, t))
    first, *rest = params
    inner = _opened(first, _curried(rest, _stated(body, t)))
    return Syntax("rec", (inner,), first.place, (str(name), first.name, first.type, None))


class _Reader:
    """What each rule of the grammar makes of its parts."""

    def library(self, at: Place, parts: list[Any]) -> Any:
        return tuple(parts), None

    def program(self, at: Place, parts: list[Any]) -> Any:
        return tuple(parts[:-1]), parts[-1]

    def bare(self, at: Place, parts: list[Any]) -> Any:
        return (), parts[0]

    def import_(self, at: Place, parts: list[Any]) -> Any:
        return Declaration("import", str(parts[0])[1:-1], None, place_of(parts[0]))

    def def_(self, at: Place, parts: list[Any]) -> Any:
        _, rec, name, *params, t, body = parts
        if rec is not None and not params:
            params = [Param("_", None, place_of(name))]
            body = Syntax("norec", (), place_of(name), str(name))
        syntax = _bound(rec, name, params, t, body)
        return Declaration("def", str(name), syntax, place_of(name))

    def symbol(self, at: Place, parts: list[Any]) -> Any:
        name, *params, body = parts  # a symbol has one argument: a tuple, nested to the right
        whole = params if len(params) == 1 else [_tuple_of(params, params[0].place)]
        return Declaration("symbol", str(name), _curried(whole, body), place_of(name))

    def param(self, at: Place, parts: list[Any]) -> Any:
        t = parts[1] if len(parts) > 1 else None
        return Param(str(parts[0]), t, place_of(parts[0]))

    def lam(self, at: Place, parts: list[Any]) -> Any:
        return _curried(parts[:-1], parts[-1])

    def tuple(self, at: Place, parts: list[Any]) -> Any:
        return _tuple_of(parts, at)

    def let(self, at: Place, parts: list[Any]) -> Any:
        rec, name, *params, t, e, body = parts
        if rec is not None and not params:
            e, params = (
                Syntax("norec", (), place_of(name), str(name)),
                [Param("_", None, place_of(name))],
            )
        e = _bound(rec, name, params, t, e)
        return Syntax("let", (e, body), at, str(name))

    def letpair(self, at: Place, parts: list[Any]) -> Any:
        p, e, body = parts
        return Syntax("let", (e, _opened(p, body)), at, p.name)

    def subst(self, at: Place, parts: Any) -> Any:
        t, name, u = parts  # t[x/u], an explicit substitution: what is shared, as in a let
        return Syntax("let", (u, t), place_of(name), str(name))

    def rec(self, at: Place, parts: Any) -> Any:
        own, name, t, body = parts
        return Syntax("rec", (body,), place_of(own), (str(own), str(name), None, t))

    def infix(self, at: Place, parts: list[Any]) -> Any:
        left, sign, right = parts
        if str(sign) == "+" and left.kind == "sum":
            return Syntax("sum", (*left.parts, right), left.place)
        if str(sign) == "+":
            return Syntax("sum", (left, right), left.place)
        return Syntax("infix", (left, right), place_of(sign), str(sign))

    def minus(self, at: Place, parts: Any) -> Any:
        return Syntax("call", (parts[1],), place_of(parts[0]), "negative")

    def call(self, at: Place, parts: list[Any]) -> Any:
        name, *args = parts
        return Syntax("call", (_paired(args),), place_of(name), str(name))

    def jfun(self, at: Place, parts: Any) -> Any:
        return Syntax("jfun", (parts[1],), place_of(parts[0]), str(parts[0]))

    def number(self, at: Place, parts: list[Any]) -> Any:
        return Syntax("literal", (), place_of(parts[0]), float(parts[0]))

    def int(self, at: Place, parts: list[Any]) -> Any:
        return Syntax("literal", (), place_of(parts[0]), int(str(parts[0])[:-1]))

    def true(self, at: Place, parts: object) -> Any:
        return Syntax("literal", (), at, True)

    def false(self, at: Place, parts: object) -> Any:
        return Syntax("literal", (), at, False)

    def zero(self, at: Place, parts: Any) -> Any:
        return Syntax("zero", (), at, parts[0])

    def var(self, at: Place, parts: list[Any]) -> Any:
        return Syntax("var", (), place_of(parts[0]), str(parts[0]))

    def pair(self, at: Place, parts: list[Any]) -> Any:
        syntax = _paired(parts)
        return Syntax("pair", syntax.parts, at)

    def dual(self, at: Place, parts: list[Any]) -> Any:
        p, body, k = parts
        return Syntax("dual", (_opened(p, body), k), at, p)

    def dprobe(self, at: Place, parts: Any) -> Any:
        return Syntax("probe", tuple(parts), at)

    def list(self, at: Place, parts: list[Any]) -> Any:
        items = tuple([p for p in parts if p is not None])
        return Syntax("list", items, at, False)

    def covs(self, at: Place, parts: Any) -> Any:
        items = tuple([p for p in parts if p is not None])
        return Syntax("list", items, at, True)

    def ann(self, at: Place, parts: Any) -> Any:
        return Syntax("ann", (parts[0],), parts[0].place, parts[1])

    def within(self, at: Place, parts: Any) -> Any:
        s = parts[0]
        if s.kind == "sum":  # brackets: a sum in a sum stays one
            return Syntax("within", (s,), s.place)
        return s

    def base(self, at: Place, parts: Any) -> Any:
        return {"R": R, "Int": INT, "Bool": BOOL}[str(parts[0])]

    def arrow(self, at: Place, parts: Any) -> Any:
        return Arrow(*parts)

    def product_type(self, at: Place, parts: Any) -> Any:
        return Product(*parts)

    def list_type(self, at: Place, parts: Any) -> Any:
        return ListOf(parts[0])

    def dual_type(self, at: Place, parts: Any) -> Any:
        return Dual(parts[0])

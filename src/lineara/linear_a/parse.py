"""From text to programs: the concrete syntax, scopes, and the types that the text leaves out.

Names that are bound twice get fresh ones; a binder without a type gets the type of its value.
Every error has line, column and a caret.
"""

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.registry import registry
from lineara.facts.types import (
    ArrayType,
    Family,
    Named,
    Product,
    Stack,
    Sum,
    Type,
    is_ring,
    short_dtype,
    show,
    type_of,
)
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case, Cond, Switch
from lineara.linear_a.calls import Call, Sized
from lineara.linear_a.check import DEPTH, ENDLESS, Judge, endless, located
from lineara.linear_a.dimensions import I64, dims_in, is_index, with_dims
from lineara.linear_a.implicit_dups import explicit
from lineara.linear_a.infer_linear import with_linear_forms
from lineara.linear_a.literal_sizes import with_instances
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.plain_lines import PLAIN, Node, Word
from lineara.linear_a.plain_lines import binding as plain_binding
from lineara.linear_a.program import Program
from lineara.text.language import Language, did_you_mean, with_names
from lineara.text.source_location import Place

GRAMMAR = with_names(r"""
start: (typedef | def)*
typedef: "type" NAME [dims] "=" type
def: "def" NAME "(" binders ")" "->" "(" results ")" ["linear" "in" names ("|" names)*] "=" block
names: NAME ("," NAME)*
binders: [binder ("," binder)*] ";" [binder ("," binder)*]
results: types ";" types
types: [type ("," type)*]
binder: (NAME | LNAME) [":" type]

type: DTYPE [dims] -> array | NAME [dims] -> named | "<" types ">" -> product
    | "{" field ("," field)* "}" -> record | "[" type ("|" type)* "]" -> sum
    | "stack" "[" [dim ","] type "]" -> stack
dims: "[" [dim ("," dim)*] "]"
?dim: INT | NAME
field: NAME ":" type

block: (binding | PLAIN)* leaf
binding: "let" target "=" rhs "in"
target: "(" binders ")" -> several | binder -> one
    | "<" [binder ("," binder)*] ">" -> parts | "~<" [binder ("," binder)*] ">" -> lparts
rhs: leaf | "{" block "}"
?leaf: "(" [args] ";" [args] ")" -> ret
    | "case" operand "of" NAME ("|" NAME)* "with" "(" [args] ";" [args] ")" -> case
    | "drop" "(" rhs ")" -> drop
    | chain
?chain: operand | operand (INFIX operand)+ -> chain
?operand: NAME -> var | LNAME -> var | "(" chain ")" -> within
    | NAME [params] "(" [args] [SEMI [args]] ")" -> apply
    | "zero" "[" type "]" -> zero | "zeros" "[" type "]" -> zeros
    | "<" [args] ">" -> tup | "~<" [args] ">" -> ltup
    | "{" entry ("," entry)* "}" -> rec | "~" "{" entry ("," entry)* "}" -> lrec
    | literal -> number
entry: NAME ":" chain
args: chain ("," chain)*

params: "[" [param ("," param)*] "]"
param: [NAME "="] value
?value: atom | slice
slice: [atom] ":" [atom] [":" [atom]]
?atom: literal | NAME -> name | NAME dims -> named | STRING -> string | "None" -> none
    | "..." -> dots
    | "(" ")" -> tuple | "(" value ("," value)* [","] ")" -> tuple
    | DTYPE [dims] -> array | "<" types ">" -> product | "[" type ("|" type)* "]" -> sum
literal: number [SUFFIX] | "[" "]" SUFFIX dims -> empty
?number: NUM -> num | INT -> int | "true" -> true | "false" -> false
    | "complex" "(" part "," part ")" -> complex | "[" number ("," number)* "]" -> nested
?part: NUM | INT

PLAIN.9: /@PLAIN@/
INFIX: "+" | "-" | "*" | "/"
SEMI: ";"
DTYPE.3: /(f16|f32|f64|c64|c128|i8|i16|i32|i64|u8|u16|u32|u64|bool|object)(?![@NEXT@.'])/
SUFFIX.4: /_(f16|f32|f64|c64|c128|i8|i16|i32|i64|u8|u16|u32|u64|bool|object)(?![@NEXT@.'])/
NUM.2: /-?(\d+\.\d*([eE][+-]?\d+)?|\d+[eE][+-]?\d+|(inf|nan)(?=_f16|_f32|[^@NEXT@.']|$))/
INT.1: /-?\d+/
STRING: /'(\\.|[^'\\\n])*'|"(\\.|[^"\\\n])*"/
NAME: /[@FIRST@][@NEXT@.']*/
LNAME: /~[@FIRST@][@NEXT@.']*/
COMMENT: /#[^\n]*/
%ignore COMMENT
%import common.WS
%ignore WS
""")

_WIDE = {"f": "float", "c": "complex", "i": "int", "u": "uint"}
ALIASES = {"neg": "negative", "recip": "reciprocal"}
_INFIX = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
OWN = {
    "dup": "dup(~a), of one linear variable", "read": "read[i](~x)",
    "accum": "accum[i](~x, ~y) or accum[i](x, y)",
    "put": "put[i](~x, ~y), put[i](x, y), or without y for zero",
    "inj": "inj[tag, type](x)", "proj": "proj[tag](x)",
}  # fmt: skip
_PARTS = {"read": ir.Read, "accum": ir.Accum, "put": ir.Put}
FORMS: dict[str, Any] = {
    "cond": Cond, "scan": Scan, "sized": Sized, "switch": Switch, "while": While,
}  # fmt: skip


def has_meaning(name: str) -> bool:
    """Whether a name is of the language, so that no definition can have it.

    >>> has_meaning("scan"), has_meaning("loss")
    (True, False)
    """
    return name in FORMS or name in ir.KEYWORDS - ir.DTYPES


_TERMINALS = {
    "NAME": "a name", "LNAME": "a linear name", "SEMICOLON": "';'", "SEMI": "';'", "RPAR": "')'",
    "LPAR": "'('", "IN": "'in'", "EQUAL": "'='", "COMMA": "','", "RSQB": "']'", "LSQB": "'['",
    "RBRACE": "'}'", "LBRACE": "'{'", "COLON": "':'", "__ANON_0": "'->'", "MORETHAN": "'>'",
    "LESSTHAN": "'<'", "INFIX": "an operator", "DEF": "'def'", "TYPE": "'type'", "LET": "'let'",
    "DTYPE": "a dtype", "value": "an expression", "VBAR": "'|'", "$END": "the end",
}  # fmt: skip


def _summed_up(expected: set[str]) -> set[str]:
    expected = expected - {"PLAIN"}
    if not expected >= {"NAME", "LNAME", "INT"}:  # whatever has a value
        return expected
    return {"value", *(expected & {"RPAR", "SEMICOLON", "LET"})}


LANGUAGE = Language(
    GRAMMAR.replace("@PLAIN@", PLAIN.replace("/", r"\/")), ProgramError, _TERMINALS, _summed_up
)


@uncollected
def parse(text: str, file: str = "", sugar: bool = False) -> Program:
    """The program of a text; what does not parse is a ProgramError that shows the place.

    Operands may be expressions, which get names.  With `sugar` linear variables may also be used
    often or never, and others never: the dups and drops that this stands for are written.

    >>> print(parse("def f(x: f64;) -> (f64;) = let y = sin(x) in y * x"))
    def f(x: f64;) -> (f64;) =
      let y: f64 = sin(x) in
      y * x
    <BLANKLINE>
    """
    tree = LANGUAGE.tree(LANGUAGE.source(text, file))
    reader = _Reader(text, file)
    program = with_instances(reader.program(tree), reader.numbers)
    return with_linear_forms(explicit(program) if sugar else program, reader.missing)


class _Reader:
    """One text on its way to a program."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.types: dict[str, Type | Family] = {}
        self.dims: dict[str, ir.Var] = {}  # what dimensions may be in the definition at hand
        self.defs: dict[str, ir.Def] = {}
        self.places: dict[Any, tuple[Place, ...]] = {}
        self.scope: dict[str, ir.Var] = {}
        self.numbers: dict[ir.Var, int] = {}  # variables that may be dimensions, being numbers
        self.missing: list[str] = []  # forms of definitions of which there is a signature
        self.names = ir.Names()
        self.depth = 0
        self.pending: list[ir.Binding] = []  # bindings of the block so far
        self.hidden: list[tuple[str, ir.Var | None]] = []  # what names meant outside of the block
        self.so_far = Program(self.types, self.defs, self.places, self.text, self.file)
        self.judge = Judge(self.so_far, "")
        self.judge.numbers = self.numbers

    def wrong(self, message: str, at: object) -> ProgramError:
        """The error at a token or a tree."""
        return ProgramError(located(self.so_far, _place(at), message))

    @contextmanager
    def deeper(self, what: str, at: object) -> Iterator[None]:
        """Enter one more level of nesting; too many are an error."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.wrong(
                f"{what} lie in each other deeper than {DEPTH}; give some a name of their own", at
            )
        yield
        self.depth -= 1

    def program(self, tree: Any) -> Program:
        """Types, then signatures, then bodies."""
        typedefs = [t.children for t in tree.children if t.data == "typedef"]
        for name, dims, _ in typedefs:
            if name in self.types:
                raise self.wrong(f"the type {name} is defined twice; keep one", name)
            known = tuple([ir.Var(str(n), I64) for n in self.dimensions(dims)])
            self.types[str(name)] = Family(known, UNKNOWN) if known else UNKNOWN
        for name, _, stated in typedefs:
            family = self.types[str(name)]
            known = family.dims if isinstance(family, Family) else ()
            self.dims = {v.name: v for v in known}
            t = self.type(stated)
            self.types[str(name)] = Family(known, t) if known else t
        for name, *_ in typedefs:
            if endless(self.so_far, str(name)):
                raise self.wrong(ENDLESS.format(name), name)
        defs = [t for t in tree.children if t.data == "def"]
        for t in defs:
            self.signature(t)
        for t in defs:
            self.linear_forms(t)
        for t in defs:
            name = str(t.children[0])
            d = self.defs[name]
            self.scope = {repr(p): p for p in d.params}
            self.dims = {p.name: p for p in d.params if is_index(p)}
            self.names = ir.Names([p.name for p in d.params])
            body = self.block(t.children[-1])
            self.defs[name] = done = replace(d, body=body)
            self.places[done] = self.places.pop(d)
        return self.so_far

    def signature(self, t: Any) -> None:
        """The formals and results of a definition."""
        name, formals, results, *_ = t.children
        if name in self.defs:
            raise self.wrong(f"{name} is defined twice; keep one", name)
        if has_meaning(name):
            raise self.wrong(f"{name} has a meaning; give the definition another name", name)
        self.names = ir.Names()
        self.dims = {}
        for b in self.zones(formals):  # dimensions first: a type may name a later formal
            v, stated = str(b.children[0]), b.children[1]
            if stated is None or stated.data != "array" or v.startswith("~"):
                continue
            if stated.children[0] == "i64" and not self.dimensions(stated.children[1]):
                self.dims[v] = ir.Var(v, I64)
        params = [self.formal(b) for b in self.zones(formals)]
        ts, us = (
            tuple(map(self.type, z.children)) if z.children != [None] else ()
            for z in results.children
        )
        d = ir.Def(str(name), tuple(params), ts, us, ir.Block((), ir.Ret(())))
        self.defs[d.name] = d
        self.places[d] = (_place(name), *(_place(b.children[0]) for b in self.zones(formals)))

    def linear_forms(self, t: Any) -> None:
        """Signatures for the sets of formals in which a definition says that it is linear."""
        d = self.defs[str(t.children[0])]
        at = {p.name: i for i, p in enumerate(d.params) if not p.linear}
        sets = [names for names in t.children[3:-1] if names is not None]
        linear: list[tuple[int, ...]] = []
        for names in sets:
            for n in names.children:
                if n not in at:
                    raise self.wrong(f"{n} is no formal of {d.name}{did_you_mean(n, at)}", n)
            linear.append(tuple(sorted({at[n] for n in names.children})))
        if not linear:
            return
        if d.lresults or d.lxs:
            raise self.wrong(
                f"{d.name} has linear variables already; linear in … is for what has none", sets[0]
            )
        self.defs[d.name] = stated = replace(d, linear=tuple(linear))
        self.places[stated] = self.places.pop(d)
        for names, places in zip(sets, linear, strict=True):
            form = ir.linear_form(d, places)
            if form not in self.defs:
                every = enumerate(d.params)
                params = [ir.Var(p.name, p.type, True) if i in places else p for i, p in every]
                order = sorted(range(len(params)), key=lambda i: params[i].linear)
                stub = ir.Def(form, tuple([params[i] for i in order]), (), d.results, d.body)
                self.defs[form] = stub
                self.missing.append(form)
                here = self.places[stated][1:]
                self.places[stub] = (_place(names.children[0]), *[here[i] for i in order])

    def zones(self, binders: Any) -> list[Any]:
        """The binders of (xs ; ~as), each in its zone."""
        every = [b for b in binders.children if b is not None]
        zones = [str(b.children[0]).startswith("~") for b in every]
        if zones != sorted(zones):
            i = zones.index(True)
            raise self.wrong("linear names stand after the semicolon", every[i])
        return every

    def formal(self, b: Any) -> ir.Var:
        """A formal of a definition."""
        name, t = b.children
        if t is None:
            raise self.wrong(f"the formal {name} needs a type: {name}: f64", name)
        bare = name.lstrip("~")
        fresh = self.names(bare)
        if fresh != bare:
            raise self.wrong(f"{name} is taken; give it another name", name)
        return self.dims.get(name) or ir.Var(fresh, self.type(t), name.startswith("~"))

    # --- types ------------------------------------------------------------------------------

    def type(self, t: Any) -> Type:
        """A type of the text."""
        if t.data == "array":
            return self.array(t)
        with self.deeper("types", t):
            return self._type(t)

    def array(self, t: Any) -> ArrayType:
        """A dtype and a shape."""
        dtype, dims = t.children
        return ArrayType(self.shape(dims), wide(str(dtype)))

    def shape(self, dims: object) -> tuple[Any, ...]:
        """Dimensions between brackets, if there are any."""
        return tuple(map(self.dim, self.dimensions(dims)))

    def dimensions(self, dims: Any) -> list[Any]:
        """What stands between the brackets."""
        return [] if dims is None else [n for n in dims.children if n is not None]

    def dim(self, n: Any) -> Any:
        """A number, or an i64 formal."""
        if n.type == "INT":
            if int(n) < 0:
                raise self.wrong("a dimension is not negative; count from 0", n)
            return int(n)
        if n not in self.dims:
            hint = did_you_mean(str(n), self.dims) or f"; take it as an argument: {n}: i64"
            raise self.wrong(f"the dimension {n} is no i64 formal{hint}", n)
        return self.dims[str(n)]

    def type_name(self, t: Any) -> Named:
        """A type that has a definition."""
        name = str(t.children[0])
        if name not in self.types:
            hint = did_you_mean(name, self.types) or _other_dtypes(name)
            hint = hint or f"; define it: type {name} = …"
            raise self.wrong(f"there is no type {name}{hint}", t)
        given = self.dimensions(t.children[1]) if len(t.children) > 1 else ()
        dims = tuple([None if n == "_" else self.dim(n) for n in given])
        stated = self.types[name]
        known = len(stated.dims) if isinstance(stated, Family) else 0
        if len(dims) != known:
            raise self.wrong(f"{name} has {known} dimensions, not {len(dims)}; give each one", t)
        return Named(name, dims)

    def _type(self, t: Any) -> Type:
        match t.data:
            case "named":
                return self.type_name(t)
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
                return Stack((self.type(item),), None if length is None else self.dim(length))
        return Sum(tuple(map(self.type, t.children)))

    # --- blocks ------------------------------------------------------------------------------

    def block(self, t: Any) -> ir.Block:
        """A block; what it binds is not seen outside of it."""
        with self.deeper("blocks", t):
            outside, self.pending = self.pending, []
            hidden, self.hidden = self.hidden, []
            *bindings, leaf = t.children
            for b in bindings:
                self.pending.append(self.binding(plain_binding(b) if isinstance(b, str) else b))
            last = self.leaf(leaf)
            block = ir.Block(tuple(self.pending), last)
            for name, v in reversed(self.hidden):
                if v is None:
                    del self.scope[name]
                else:
                    self.scope[name] = v
            self.pending, self.hidden = outside, hidden
        return block

    def binding(self, t: Any) -> ir.Binding:
        """A binding: what is bound first, then the binders."""
        target, rhs = t.children
        if target.data in ("parts", "lparts"):
            (inner,) = rhs.children
            arg = self.named(self.rhs(rhs), inner)
            types = self.items(arg, rhs)
            binders = [b for b in target.children if b is not None]
            made = ir.Unpack(self.bind(binders, types, target), arg)
        else:
            value = self.rhs(rhs)
            ts, us = self.types_of(value, rhs)
            if target.data == "one":
                binders = list(target.children)
            else:
                binders = self.zones(target.children[0])
            made = ir.Let(self.bind(binders, (*ts, *us), target), value)
            self.note(made)
        self.places[made] = (_place(target), *(_place(b.children[0]) for b in binders))
        return made

    def rhs(self, t: Any) -> ir.Leaf | ir.Block:
        """A leaf, or a block in braces."""
        (inner,) = t.children
        if inner.data == "block":
            return self.block(inner)
        return self.leaf(inner)

    def bind(self, binders: Sequence[Any], types: Sequence[Type], at: object) -> tuple[ir.Var, ...]:
        """Fresh variables of the stated types, or else of those of the values."""
        if len(binders) != len(types):
            raise self.wrong(f"{len(binders)} names for {len(types)} values; bind each once", at)
        made = []
        for b, t in zip(binders, types, strict=True):
            name, stated = str(b.children[0]), b.children[1]
            fresh = self.names(name.lstrip("~"))
            v = ir.Var(fresh, t if stated is None else self.type(stated), name.startswith("~"))
            made.append((name, v))
        for name, v in made:
            self.hidden.append((name, self.scope.get(name)))
            self.scope[name] = v
        return tuple([v for _, v in made])

    def items(self, arg: ir.Var, at: object) -> tuple[Type, ...]:
        """The components of a product."""
        t = self.so_far.unfold(arg.type)
        if not isinstance(t, Product):
            raise self.wrong(f"{arg!r} is {show(t)}; only a product is taken apart", at)
        return t.items

    def types_of(
        self, e: ir.Leaf | ir.Block, at: object
    ) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """The types of the values of a right-hand side."""
        while isinstance(e, ir.Block):
            e = e.leaf
        if isinstance(e, ir.Drop):
            return (), ()
        ts, us = (tuple([with_dims(t, self.numbers) for t in zone]) for zone in self.judge.leaf(e))
        return ts, us

    def note(self, b: ir.Let) -> None:
        """Note that a variable bound to a whole number may be used as a dimension."""
        if isinstance(b.rhs, ir.Lit) and b.rhs.type == I64 and b.rhs.value >= 0:
            self.numbers |= dict.fromkeys(b.vars, int(b.rhs.value))

    def var(self, t: Any) -> ir.Var:
        """An occurrence of a variable."""
        name = str(t.children[0])
        if name not in self.scope:
            hint = did_you_mean(name, self.scope) or "; bind it before, or take it as an argument"
            raise self.wrong(f"{name} is not known here{hint}", t)
        return self.scope[name]

    # --- operands ----------------------------------------------------------------------------

    def operand(self, t: Any) -> ir.Var:
        """A variable; an expression gets the name of one."""
        return self.var(t) if t.data == "var" else self.named(self.leaf(t), t)

    def named(self, e: ir.Leaf | ir.Block, at: object) -> ir.Var:
        """The variable for an expression with one result, which is bound before."""
        if isinstance(e, ir.Copy):
            return e.args[0]
        ts, us = self.types_of(e, at)
        if len(ts) + len(us) != 1:
            raise self.wrong(
                f"this has {len(ts) + len(us)} values, but one is needed here; bind them first: "
                "let (x, y;) = … in",
                at,
            )
        v = ir.Var(self.names("v"), *((ts[0], False) if ts else (us[0], True)))
        made = ir.Let((v,), e)
        self.note(made)
        self.places[made] = (_place(at), _place(at))
        self.pending.append(made)
        return v

    def chain(self, t: Any) -> ir.Leaf:
        """x * y + z: products first, then from the left; the last operation is the leaf."""
        parts = t.children
        total = sign = None
        product = parts[0]
        for op, right in zip(parts[1::2], parts[2::2], strict=True):
            if op in ("*", "/"):
                product = self.infix(self.side(product), op, right)
            else:
                total = self.side(product if total is None else self.infix(total, sign, product))
                sign, product = op, right
        return product if total is None else self.infix(total, sign, product)

    def infix(self, left: tuple[ir.Var, Place], sign: Any, right: object) -> ir.Leaf:
        """One operation; its right side may be read already."""
        (x, at), (y, there) = left, self.side(right)
        if sign == "-" and x.linear and y.linear:
            y = self.negated(y, there)
            sign = "+"
        made = ir.Prim((x, y), registry.primitives[_INFIX[sign]])
        self.places[made] = (at, at, there)
        return made

    def side(self, e: object) -> tuple[ir.Var, Place]:
        """An operand of an operation, and where it stands."""
        if isinstance(e, ir.Leaf):
            place = self.places[e][0]
            return self.named(e, place), place
        return self.operand(e), _place(e)

    def negated(self, a: ir.Var, at: Place) -> ir.Var:
        """-1.0 * ~a."""
        t = self.so_far.unfold(a.type)
        number = ArrayType((), t.dtype if isinstance(t, ArrayType) else np.dtype(float))
        k = self.named(ir.lit(number.dtype.type(-1), number), at)
        return self.named(ir.Prim((k, a), registry.primitives["multiply"]), at)

    # --- leaves ------------------------------------------------------------------------------

    def leaf(self, t: Any) -> ir.Leaf:
        """A leaf, with the places of its operands."""
        if t.data == "within":
            with self.deeper("brackets", t):
                return self.leaf(t.children[0])
        if t.data == "chain":
            return self.chain(t)
        occurrences: list[Any] = []
        if t.data == "var":
            made, occurrences = ir.Copy((self.var(t),)), [t]
        else:
            with self.deeper("expressions", t):
                made = self._leaf(t, occurrences)
        self.places[made] = (_place(t), *map(_place, occurrences))
        return made

    def _args(self, t: Any, seen: list[Any]) -> tuple[ir.Var, ...]:
        if t is None:
            return ()
        seen += t.children
        return tuple(map(self.operand, t.children))

    def _leaf(self, t: Any, seen: list[Any]) -> ir.Leaf:
        parts = t.children
        match t.data:
            case "ret":
                return ir.Ret(self._zoned(parts[0], parts[1], seen))
            case "zero" | "zeros":
                return ir.zero(self.type(parts[0]), t.data == "zero")
            case "drop":
                return ir.Drop((), self.rhs(parts[0]))
            case "tup" | "ltup":
                return ir.Tup(self._args(parts[0], seen), t.data == "ltup")
            case "rec" | "lrec":
                fields = tuple([str(e.children[0]) for e in parts])
                if len(set(fields)) < len(fields):
                    raise self.wrong("a field stands twice; each has one value", t)
                seen += [e.children[1] for e in parts]
                args = tuple([self.operand(e.children[1]) for e in parts])
                return ir.Tup(args, t.data == "lrec", fields)
            case "case":
                x, *branches, first, second = parts
                which = self.operand(x)
                args = self._zoned(first, second, seen)
                seen.insert(0, x)
                return Case((which, *args), tuple(map(str, branches)))
            case "number":
                value = self.literal(parts[0])
                of_ring = type(value) is int  # any other number has a dtype
                return ir.lit(value, type_of(np.array(value, object) if of_ring else value))
        return self.application(t, seen)

    def _zoned(self, xs: object, lxs: object, seen: list[Any]) -> tuple[ir.Var, ...]:
        left, right = self._args(xs, seen), self._args(lxs, seen)
        for i, v in enumerate((*left, *right)):
            if v.linear is not (i >= len(left)):
                raise self.wrong(
                    "before the semicolon stand non-linear names, after it linear ones", seen[i]
                )
        return (*left, *right)

    def application(self, t: Any, seen: list[Any]) -> ir.Leaf:
        """A primitive, a definition, or a form that takes parameters."""
        head, params, first, semicolon, second = t.children
        name = ALIASES.get(str(head), str(head))
        given = [] if params is None else [p.children for p in params.children if p is not None]
        if semicolon is not None:
            if name in self.defs and self.defs[name].linear:
                return self.multilinear(self.defs[name], t, seen)
            args = self._zoned(first, second, seen)
            if name in FORMS:
                return self.form(FORMS[name], args, given, head)
            if name not in self.defs:
                raise self.unknown(head, [*self.defs, *FORMS], "definition")
            return Call(args, (name,))
        args = self._args(first, seen)
        if name == "dup" and len(args) == 1 and args[0].linear and not given:
            return ir.Dup(args)
        if name in _PARTS and args and (name != "read" or args[0].linear):
            return _PARTS[name](args, tuple([self.value(v) for _, v in given]))
        if name == "inj" and len(given) == 2 and len(args) == 1:
            (_, tag), (_, t) = given
            sum_ = self.type_name(t) if t.data == "name" else self.value(t)
            return ir.Inj(args, self.tag(tag), sum_)
        if name == "proj" and len(given) == 1 and len(args) == 1:
            return ir.Proj(args, self.tag(given[0][1]))
        if name in OWN:
            raise self.wrong(f"the form is {OWN[name]}", head)
        if name not in registry.primitives:
            hint = "; a call has a semicolon" if name in self.defs else ""
            raise self.unknown(head, registry.primitives, "primitive", hint)
        positional = [v for k, v in given if k is None]
        if positional:
            raise self.wrong(f"the parameters of {name} have names: {name}[name=value](…)", head)
        self.known(v for _, v in given)
        params = {str(k): self.value(v) for k, v in given}
        return ir.Prim(args, registry.primitives[name], params)

    def multilinear(self, d: ir.Def, t: Any, seen: list[Any]) -> ir.Leaf:
        """f(x, ~b;): the operands in order, linear where the definition says that it is."""
        head, _, first, _, second = t.children
        args = self._args(first, seen)
        places = tuple([i for i, a in enumerate(args) if a.linear])
        if second is not None or (places and places not in d.linear):
            sets = " | ".join([ir.linear_in(d, s) for s in d.linear])
            raise self.wrong(
                f"{d.name} is linear in {sets}; an operand stands where its formal does, before "
                "the semicolon, with ~ if it is linear",
                head,
            )
        if not places:
            return Call(args, (d.name,))
        sizes = {*dims_in((*[p.type for p in d.params], *d.results))}
        for p, a in zip(d.params, args, strict=False):
            if p in sizes and a in self.numbers:
                raise self.wrong(
                    f"{p.name} of {d.name} is the literal {self.numbers[a]} here, and where an "
                    "operand is linear a size is a variable; take it as an argument",
                    head,
                )
        order = sorted(range(len(args)), key=lambda i: args[i].linear)
        seen[:] = [seen[i] for i in order]
        return Call(tuple([args[i] for i in order]), (ir.linear_form(d, places),))

    def known(self, values: Iterable[Any]) -> None:
        """Refuse parameters that are names of no variable; a string is written with quotes."""
        for v in values:
            for t in v.iter_subtrees() if v is not None else ():
                name = str(t.children[0]) if t.data == "name" else None
                if name is not None and name not in self.scope:
                    plain = {"True": "true", "False": "false"}
                    near = did_you_mean(name, () if name in plain else self.scope)
                    near = near or _other_dtypes(name)
                    near = near or f"; did you mean {plain.get(name, repr(name))}?"
                    raise self.wrong(f"{name} is not known here{near}", t)

    def form(self, form: Any, args: tuple[ir.Var, ...], given: list[Any], head: Any) -> ir.Leaf:
        """A branch or a loop: the definitions it applies, then its numbers."""
        names = ("name", "array")  # a definition may be called f16
        values: list[Any] = [
            str(v.children[0]) if v.data in names else self.value(v) for _, v in given
        ]
        if form is Scan and len(given) > 1 and given[1][1].data == "name":
            values[1] = self.dim(given[1][1].children[0])
        functions = tuple([v for v in values if isinstance(v, str) and v not in ("fwd", "rev")])
        numbers: Any = values[len(functions) :]
        if form is Sized:
            numbers = [tuple(numbers)]
        try:
            return form(args, functions, *numbers)
        except TypeError:
            raise self.wrong(f"the form is {form.FORM}", head) from None

    def tag(self, t: object) -> int:
        """The number of an alternative."""
        number = self.value(t)
        if type(number) is not int:
            raise self.wrong("a tag is a whole number; alternatives count from 0", t)
        return number

    def unknown(
        self, head: object, names: Iterable[str], what: str, hint: str = ""
    ) -> ProgramError:
        """The error for an undefined name."""
        hint = hint or did_you_mean(str(head), names) or f"; there is {_some(names) or 'none'}"
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
                sizes = self.shape(dims)
                if any(isinstance(n, ir.Var) for n in sizes):
                    raise self.wrong("a literal has numbers for dimensions; zeros[type] is zero", t)
                return np.zeros(sizes, wide(str(suffix)[1:]))
            case "name":
                name = str(t.children[0])
                return self.scope.get(name, name)
            case "string":
                return ast.literal_eval(str(t.children[0]))
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
        dtype = None if suffix is None else wide(str(suffix)[1:])
        try:
            return _cast(_number(number), dtype)
        except ValueError:
            mend = "rows have one length, and an array has no more than 64 axes"
            raise self.wrong(mend, t) from None
        except OverflowError:
            mend = "another suffix" if dtype else "inf if you mean it"
            into = short_dtype(dtype) if dtype else "f64"
            raise self.wrong(f"this does not fit into {into}; write {mend}", t) from None


def _cast(numbers: float | int | list[Any], dtype: np.dtype | None) -> Any:
    """Numbers of a text in a dtype, where only rounding may change them; else OverflowError."""
    raw = np.array(numbers)
    if dtype is None:
        dtype = np.dtype(float) if raw.dtype.kind in "iuO" else raw.dtype
    if is_ring(dtype):
        if type(numbers) is not int:
            raise OverflowError("a multiple of the one of a ring is a whole number")
        return numbers
    kinds = ["biOfc".index(d.kind.replace("u", "i")) for d in (raw.dtype, dtype)]
    if dtype.kind in "iu" and raw.dtype.kind in "iufO":
        exact = np.array(numbers, object)  # large ones next to others are no longer integers
        if any([type(n) is not int for n in exact.ravel()]):
            raise OverflowError("not all are integers")
        made = exact.astype(dtype)
        if np.any(made != exact):
            raise OverflowError("an integer is out of range")
        return made[()]
    if kinds[0] > kinds[1] or (kinds[0] == 0) is not (kinds[1] == 0):
        raise OverflowError("the numbers are of a larger kind than the dtype")
    with np.errstate(all="ignore"):
        made = raw.astype(dtype)
    if np.any(np.isinf(made)) if raw.dtype.kind != "b" else False:
        wide_enough = raw.astype(complex if dtype.kind == "c" else float)
        if np.any(np.isinf(made) & ~np.isinf(wide_enough)):
            raise OverflowError("a number becomes infinite")
    return made[()]


UNKNOWN = Product()


def _some(names: Iterable[str]) -> str:
    first = list(islice(names, 5))
    return ", ".join(first[:4]) + ", …" * (len(first) > 4)


def _number(t: Any) -> Any:
    match t.data:
        case "num":
            return _float(t.children[0])
        case "int":
            return int(t.children[0])
        case "true" | "false":
            return t.data == "true"
        case "complex":
            return complex(*map(_float, t.children))
    made: list[Any] = [None]
    open_: list[tuple[Any, list[Any], int]] = [(t, made, 0)]
    while open_:
        t, into, i = open_.pop()
        if t.data != "nested":
            into[i] = _number(t)
            continue
        into[i] = [None] * len(t.children)
        open_ += [(c, into[i], j) for j, c in enumerate(t.children)]
    return made[0]


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number) and "inf" not in text:
        raise OverflowError(text)
    return number


def _other_dtypes(name: str) -> str:
    """Which dtypes a text may name, where a name looks like one more of them."""
    if not re.fullmatch(r"[fciu]\d+", name):
        return ""
    return f"; the dtypes of a text are {', '.join(sorted(ir.DTYPES))}"


def wide(short: str) -> np.dtype:
    """The dtype that `f64`, `c128`, `i32`, `bool` or `object` is short for.

    >>> wide("c128"), wide("bool")
    (dtype('complex128'), dtype('bool'))
    """
    return np.dtype(short if short in ("bool", "object") else _WIDE[short[0]] + short[1:])


def _place(t: Any) -> Place:
    kind = type(t)
    if kind is Node or kind is Word:
        return Place(t.line, t.column)
    if kind is Place:
        return t
    meta = t.meta if hasattr(t, "meta") else t
    if getattr(meta, "empty", False):
        return Place(1, 1)
    return Place(meta.line, meta.column)

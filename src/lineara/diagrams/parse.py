"""From text to diagrams, one line a node, and errors with a caret  [Diagrams].

    diagram := "(" [NAME ":" type, ...] ")" "=>" line* "->" [NAME, ...]
    line    := [NAME [":" type], ... "="] KIND ["[" held "]"] "(" [NAME, ...] ")" ["{" diagram "}"]*

A name is made once and used once, as a wire is; a line may end in `;`.

>>> from lineara.diagrams.show import show
>>> print(show(parse("(x: R) => a, b = copy(x); y = multiply(a, b) -> y")))
(x1: R) =>
  v1, v2 = copy(x1)
  v3 = multiply(v1, v2)
  -> v3
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np

from lineara.diagrams import node_kinds
from lineara.diagrams.net import Meter, Net, Node, Wire
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import Arrow, Base, Foreign, Stack, Type, array_of, show
from lineara.errors import DiagramError
from lineara.facts.gc_pause import uncollected
from lineara.text.language import Language, Source, did_you_mean, with_names
from lineara.text.source_location import Place, place_of

GRAMMAR = r"""
start: diagram
diagram: "(" [binder ("," binder)*] ")" "=>" line* "->" names
binder: NAME ":" type
line: [outs "="] kind "(" names ")" body* [";"]
outs: out ("," out)*
out: NAME [":" type]
names: [NAME ("," NAME)*]
body: "{" diagram "}"
kind: NAME ["[" held "]"]
held: item ("," item)*
?item: NAME "=" value -> named | value | type | BASE ":" value -> array

?type: BASE -> base | FOREIGN -> foreign
    | "(" [types] "->" [types] ")" -> arrow
    | _STACK INT "," type "]" -> stack
types: type ("," type)*

?value: NUMBER -> number | INT -> int_ | STRING -> string | NAME -> word
    | "(" ")" -> tuple_ | "(" value ("," value)* ","? ")" -> tuple_
    | "[" "]" -> list_ | "[" value ("," value)* "]" -> list_
    | _SLICE value "," value "," value ")" -> slice_
    | _DTYPE STRING ")" -> dtype
    | _COMPLEX value "," value ")" -> complex_
    | _ARRAY BASE ":" value ")" -> array
    | "..." -> ellipsis

_SLICE.4: "slice("
_DTYPE.4: "dtype("
_COMPLEX.4: "complex("
_ARRAY.4: "array("
_STACK.4: "stack["
BASE.2: /(R|E|B|Z)(?![@NEXT@'%])|([fciu]\d+|bool)\[[\d,]*\]/
NUMBER.1: /-?(\d+\.\d*([eE][+-]?\d+)?|\d+[eE][+-]?\d+|inf(?![@NEXT@])|nan(?![@NEXT@]))/
INT: /-?\d+/
NAME: /~?[@FIRST@][@NEXT@'%.]*/
FOREIGN: /'[^'\n]*'/
STRING: /"[^"\n]*"/
COMMENT: /#[^\n]*/
%ignore COMMENT
%import common.WS
%ignore WS
"""
_TERMINALS = {
    "NAME": "a name", "EQUAL": "'='", "LPAR": "'('", "RPAR": "')'", "COMMA": "','", "LBRACE": "'{'",
    "RBRACE": "'}'", "COLON": "':'", "BASE": "a type", "$END": "the end", "RSQB": "']'",
    "LSQB": "'['", "SEMICOLON": "';'", "INT": "a number",
    "NUMBER": "a number", "STRING": "a text in quotes", "FOREIGN": "a type in quotes",
    "__ANON_0": "'=>'", "__ANON_1": "'->'", "__ANON_2": "'...'",
}  # fmt: skip
_WORDS = {"none": None, "true": True, "false": False}


class _Named(NamedTuple):
    name: str
    place: Place
    type: Type | None = None


class _Line(NamedTuple):
    outs: list[_Named]
    kind: str
    place: Place
    held: list[Any]
    ins: list[_Named]
    bodies: list[Net]


LANGUAGE = Language(with_names(GRAMMAR), DiagramError, _TERMINALS)


@uncollected
@refusing
def parse(text: str, file: str = "") -> Net:
    """The diagram of a text; a DiagramError shows the place of what is wrong.

    >>> parse("(x: R) => y = sin(x) -> y").gives
    (Base(name='R'),)
    """
    source = LANGUAGE.source(text, file)
    tree = LANGUAGE.tree(source)
    reader, parsed = _Reader(source), {}
    for t in tree.iter_subtrees():
        parts = [parsed.get(id(c), c) for c in t.children]
        parsed[id(t)] = getattr(reader, str(t.data))(parts, place_of(t.meta))
    return parsed[id(tree)]


class _Reader:
    """What each rule of the grammar makes of its parts."""

    def __init__(self, text: Source) -> None:
        self.text = text
        self.meter = Meter()

    def start(self, parts: list[Any], at: Place) -> Net:
        return parts[0]

    def binder(self, parts: list[Any], at: Place) -> _Named:
        return _Named(str(parts[0]), at, parts[1])

    out = binder

    def outs(self, parts: list[Any], at: Place) -> list[_Named]:
        return parts

    def names(self, parts: list[Any], at: Place) -> list[_Named]:
        return [_Named(str(p), Place(p.line, p.column)) for p in parts if p is not None]

    def body(self, parts: list[Any], at: Place) -> Net:
        return parts[0]

    def kind(self, parts: list[Any], at: Place) -> tuple[str, list[Any], Place]:
        return str(parts[0]), parts[1] or [], at

    def held(self, parts: list[Any], at: Place) -> list[Any]:
        return parts

    def line(self, parts: list[Any], at: Place) -> _Line:
        outs, (kind, held, place), ins, *bodies = parts
        return _Line(outs or [], kind, place, held, ins, [b for b in bodies if b is not None])

    # --- types and values -------------------------------------------------------------------

    def base(self, parts: list[Any], at: Place) -> Type:
        return Base(str(parts[0]))

    def arrow(self, parts: list[Any], at: Place) -> Type:
        left, right = parts
        return Arrow(tuple(left or ()), tuple(right or ()))

    def types(self, parts: list[Any], at: Place) -> list[Type]:
        return parts

    def stack(self, parts: list[Any], at: Place) -> Type:
        return Stack(int(parts[0]), parts[1])

    def foreign(self, parts: list[Any], at: Place) -> Type:
        return Foreign(str(parts[0])[1:-1])

    def number(self, parts: list[Any], at: Place) -> float:
        return float(parts[0])

    def int_(self, parts: list[Any], at: Place) -> int:
        return int(parts[0])

    def string(self, parts: list[Any], at: Place) -> str:
        return str(parts[0])[1:-1]

    def word(self, parts: list[Any], at: Place) -> Any:
        word = str(parts[0])
        return _WORDS.get(word, word)

    def tuple_(self, parts: list[Any], at: Place) -> Any:
        return tuple(parts)

    def list_(self, parts: list[Any], at: Place) -> Any:
        return parts

    def slice_(self, parts: list[Any], at: Place) -> slice:
        return slice(*parts)

    def dtype(self, parts: list[Any], at: Place) -> Any:
        return np.dtype(str(parts[0])[1:-1])

    def complex_(self, parts: list[Any], at: Place) -> complex:
        return complex(*parts)

    def array(self, parts: list[Any], at: Place) -> Any:
        t = array_of(Base(str(parts[0])))
        array = np.asarray(parts[1], t.dtype).reshape(t.shape)
        return array if t.shape else array[()]

    def ellipsis(self, parts: list[Any], at: Place) -> Any:
        return ...

    def named(self, parts: list[Any], at: Place) -> tuple[str, Any]:
        return _Parameter((str(parts[0]), parts[1]))

    # --- diagrams ---------------------------------------------------------------------------

    def diagram(self, parts: list[Any], at: Place) -> Net:
        *parts, outs = parts
        binders = [p for p in parts if type(p) is _Named]
        lines = [p for p in parts if type(p) is _Line]
        return _Building(self.text, self.meter).build(binders, lines, outs, at)


class _Parameter(tuple):
    __slots__ = ()


class _Building:
    """One level, on its way from names to wires."""

    def __init__(self, text: Source, meter: Meter) -> None:
        self.text = text
        self.net = Net(meter)
        self.wires: dict[str, Wire] = {}
        self.used: dict[str, Place] = {}
        self.places: dict[str, Place] = {}

    def refuse(self, place: Place, message: str) -> NoReturn:
        raise self.text.wrong(place, message)

    def build(
        self, binders: list[_Named], lines: list[_Line], outs: list[_Named], at: Place
    ) -> Net:
        self.later = {n.name: n.place for line in lines for n in line.outs}
        for b in binders:
            assert b.type is not None, "a binder has a type"
            self.made(b, self.net.input(b.type, b.name.startswith("~")))
        for line in lines:
            self.node(line)
        self.net.output(*[self.use(n) for n in outs])
        for name in self.wires:
            if name not in self.used:
                self.refuse(
                    self.places[name], f"{name} ends nowhere; `drop({name})` says that it is unused"
                )
        return self.net

    def made(self, n: _Named, w: Wire) -> None:
        if n.name in self.wires:
            self.refuse(n.place, f"{n.name} is made twice; give one of the wires another name")
        self.wires[n.name] = w
        self.places[n.name] = n.place

    def use(self, n: _Named) -> Wire:
        if n.name not in self.wires:
            if n.name in self.later:
                line = self.later[n.name].line
                self.refuse(
                    n.place,
                    f"{n.name} is used before it is made in line {line}; lines are in order, and a "
                    "diagram has no cycle",
                )
            hint = did_you_mean(n.name, self.wires)
            self.refuse(
                n.place,
                f"there is no wire {n.name} at this level{hint} (a box gets what it captures by "
                "its ports)"
                if not hint
                else f"there is no wire {n.name} at this level{hint}",
            )
        if n.name in self.used:
            self.refuse(
                n.place,
                f"{n.name} is used a second time; `{n.name}1, {n.name}2 = copy({n.name})` makes "
                "two of it",
            )
        self.used[n.name] = n.place
        return self.wires[n.name]

    def node(self, line: _Line) -> None:
        ins = [self.use(n) for n in line.ins]
        kind, name, data = self.kind(line)
        gives: list[Type] = []
        if kind == "frame":
            for n in line.outs:
                if n.type is None:
                    self.refuse(n.place, f"a frame says what it gives: write `{n.name}: R`")
                gives.append(n.type)
        else:
            try:
                takes = tuple([w.type for w in ins])
                gives += node_kinds.gives(kind, takes, name, data, line.bodies)
            except DiagramError as error:
                self.refuse(line.place, error.message)
        if len(gives) != len(line.outs):
            self.refuse(
                line.place,
                f"{line.kind} gives {len(gives)} wires, but {len(line.outs)} are named",
            )
        for n, t in zip(line.outs, gives, strict=True):
            if n.type is not None and n.type != t:
                self.refuse(n.place, f"{n.name} is {show(t)}, not {show(n.type)}")
        node = Node(self.net, kind, name, data, line.bodies)
        linear = [n.name.startswith("~") for n in line.outs]
        wires = [Wire(t, linear=is_linear) for t, is_linear in zip(gives, linear, strict=True)]
        for n, w in zip(line.outs, self.net.place(node, ins, wires), strict=True):
            self.made(n, w)

    def kind(self, line: _Line) -> tuple[str, str, Any]:
        """Kind, name and data of a line."""
        word, held = line.kind, line.held
        named = [p for p in held if type(p) is _Parameter]
        if word == "op" and held and isinstance(held[0], str):
            return "op", held[0], tuple([tuple(p) for p in named]) or None
        if word not in node_kinds.KINDS or (word == "add" and not held):
            if len(named) < len(held):
                self.refuse(line.place, f"{word} takes parameters by name, {word}[axis=0]")
            return "op", word, tuple([tuple(p) for p in named]) or None
        wanted = _HELD.get(word)
        if wanted is None:
            if held:
                self.refuse(line.place, f"{word} holds nothing; write `{word}(...)`")
            return word, "", None
        try:
            return wanted(word, held)
        except (ValueError, TypeError, IndexError, AssertionError):
            self.refuse(line.place, f"{word} is written {_FORMS[word]}")


def _const(word: str, held: list[Any]) -> tuple[str, str, Any]:
    (x,) = held
    assert isinstance(x, int | float | np.ndarray | np.generic)
    return word, "", x


def _is_type(t: object) -> Type:
    t = Foreign(t) if isinstance(t, str) else t
    assert isinstance(t, Base | Arrow | Stack | Foreign)
    return t


def _zero(word: str, held: list[Any]) -> tuple[str, str, Any]:
    (t,) = held
    return word, "", _is_type(t)


def _plus(word: str, held: list[Any]) -> tuple[str, str, Any]:
    (t,) = held
    _is_type(t)
    return word, "", None


def _types(word: str, held: list[Any]) -> tuple[str, str, Any]:
    return word, "", tuple([_is_type(t) for t in held])


def _scan(word: str, held: list[Any]) -> tuple[str, str, Any]:
    n, carries, way = held
    assert way in ("fwd", "rev")
    assert {type(n), type(carries)} == {int}
    return word, "", (n, carries, way == "rev")


def _frame(word: str, held: list[Any]) -> tuple[str, str, Any]:
    name, *data = held
    assert isinstance(name, str)
    return word, name, data[0] if data else None


def _blue(word: str, held: list[Any]) -> tuple[str, str, Any]:
    return word, "", int(held[0]) if held else None


_HELD = {
    "const": _const, "zero": _zero, "add": _plus, "unpack": _types, "ORANGE": _types,
    "GREEN": _types, "scan": _scan, "frame": _frame, "BLUE": _blue,
}  # fmt: skip
_FORMS = {
    "const": "`const[2.0]()`", "zero": "`zero[R]()`", "add": "`add[R](a, b)`",
    "unpack": "`unpack[R, E](e)`", "ORANGE": "`ORANGE[R](x) { ... }`",
    "GREEN": "`GREEN[R](r, s) { ... }`", "scan": "`scan[n, carries, fwd](f, ...)`",
    "frame": '`y: R = frame["name"](x) { ... }`', "BLUE": "`BLUE(x) { ... }`",
}  # fmt: skip

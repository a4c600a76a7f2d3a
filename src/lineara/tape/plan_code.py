"""The code of a plan: straight-line Python over NumPy, from the steps that were written down.

    def pull(parents, values, g):           y = a0 @ a1
        p0, p1 = parents
        a0, a1, y = values
        add(p0, Outer(g, a1))
        t2 = a0.swapaxes(-1, -2)
        t3 = t2 @ g
        h = p1.g
        p1.g = t3 if h is None else h + t3

Steps that no cotangent needs are left out.  Those that do not depend on the cotangent are taken
with it, too, unless they may raise: then they are taken at the call, as the general way does.

Where the values are traced by another level, the same steps are primitives, which have plans there.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.primitive import (
    Constant,
    Elementwise,
    Multilinear,
    Outer,
    Piece,
    Primitive,
    Structural,
)
from lineara.facts.types import NUMPYS_OWN, ArrayType
from lineara.ops.branchless_where import MANY, select
from lineara.tape.call_readers import F64, GENERAL, is_array
from lineara.tape.node import Traced, zero
from lineara.tape.reads import Reads
from lineara.tape.sketches import Draft, Sketch, Step, Unplanned, pulled
from lineara.tape.strides import repeater

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
MISSES = 3  # calls in which NumPy rounds otherwise than a plan does, after which it is not tried
_TAME = (Elementwise, Structural, Multilinear, Constant)  # kinds that do not raise
_TAME_NAMES = {"sum", "cumsum", "where", "live_factor", "keep"}


class Code(NamedTuple):
    """What runs: `pull(parents, values, g)` in the sweep, and `keep(*values)` at the call."""

    pull: Callable[..., None]
    keep: Callable[..., tuple[Any, ...]] | None
    reads: frozenset[str]  # the leaves that either reads
    deep: Callable[[], "Deep | None"]  # written when it is asked for; None for none


class Deep(NamedTuple):
    """The same over primitives: `back(values, g)` gives what goes to each end."""

    back: Callable[..., list[Any]]
    keep: Callable[..., tuple[Any, ...]] | None
    ends: Sequence[str]  # leaves, in the order in which a sweep adds what goes to them


def written_out(draft: Draft, leaves: Sequence[Sketch], out: Sketch, composed: bool) -> Code:
    """The code that pulls a cotangent back through the steps of a draft.

    Of a composition the value is calculated too, since NumPy's is another function's.
    """
    draft.inside = True  # steps from here on belong to the reverse pass
    if not composed:
        _read_off(draft, out)
    _check_order(draft, out.name)
    ends = pulled(draft.moves, out.name, draft.sketch("g", out.t))
    of_g = {"g"}
    for s in draft.steps:
        if any([a.name in of_g for a in sketches_in(s.args)]):
            of_g.add(s.out)
    given = [s.name for _, c in ends for s in sketches_in(c)]
    needed = _needed(draft.steps, given, stop=out.name)
    early = [s for s in draft.steps if s.out in needed and s.out not in of_g]
    at_call = {s.out for s in early} if not all([_is_tame(s.primitive) for s in early]) else set()
    if composed:
        if out.name in {s.name for s in leaves}:
            raise Unplanned("the result is an argument")
        at_call |= {s.out for s in draft.program if s.out in needed}
        at_call |= _needed(draft.steps, [out.name], stop="")
    at_call |= _needed(draft.steps, list(at_call), stop="" if composed else out.name)
    late = [s for s in draft.steps if s.out in needed and s.out not in at_call]
    taken = {a.name for s in late for a in sketches_in(s.args)}.union(given)
    kept = [name for name in sorted(at_call - {out.name}) if name in taken]

    before = [s for s in draft.steps if s.out in at_call]
    moving = [s.name for s in leaves if s.moves]
    shown = {name for move in draft.moves if move.is_view for name in move.parents}
    names = {} if composed else {out.name: "y"}

    def read(y: str) -> list[str]:
        """Lines that take the values that the late steps need."""
        places = {name: i for i, name in enumerate([*[s.name for s in leaves], y, *kept])}
        return [f"{name} = values[{i}]" for name, i in places.items() if name in taken | {y}]

    def keep(writer: "_Writer") -> str:
        """The function of what is calculated at the call."""
        y = writer.word(out)
        head = ", ".join([*[s.name for s in leaves], "value" if composed else y])
        result = ", ".join([y, *kept, ""])
        lines = [*map(writer.line, before), f"return {result}\n"]
        return "\n    ".join([f"\ndef keep({head}):", *lines]) if before else ""

    def deep() -> Deep | None:
        """The code over primitives."""
        if composed:  # a composition compares values
            return None
        writer = _PrimitiveWriter(names)
        lines = [*read("y"), *map(writer.line, late)]
        lines.append(f"return [{', '.join([writer.contribution(c) for _, c in ends])}]")
        writer.run("\n    ".join(["def back(values, g):", *lines]) + keep(writer))
        return Deep(writer.scope["back"], writer.scope.get("keep"), [name for name, _ in ends])

    writer = _Writer(names)
    lines = [", ".join([*[f"p{i}" for i in range(len(moving))], "= parents"])]
    lines += read(writer.word(out))
    lines += [] if out.t.shape else ["g = float64(g)"]
    lines += [writer.line(s) for s in late]
    for name, c in ends:
        lines += writer.given(f"p{moving.index(name)}", leaves[int(name[1:])], c, name in shown)
    writer.run("\n    ".join(["def pull(parents, values, g):", *lines]) + keep(writer))
    reads = taken | {a.name for s in before for a in sketches_in(s.args)}
    return Code(writer.scope["pull"], writer.scope.get("keep"), frozenset(reads), deep)


def _check_order(draft: Draft, out: str) -> None:
    """Refuse a draft where an array that is read through views gets several contributions.

    A sweep adds what has arrived at views when it is the turn of the array that they show.
    """
    reached, uses, seen = {out}, Counter(), set()
    for move in reversed(draft.moves):
        if move.out in reached:
            reached.update(move.parents)
            uses.update(move.parents)
            if move.is_view:
                seen.update(move.parents)
    if any([uses[name] > 1 for name in seen]):
        raise Unplanned("views of an argument have their turn in the sweep")


def _read_off(draft: Draft, out: Sketch) -> None:
    """Where the result is a reshaped value, take that value from the result, not from its steps."""
    places = {s.out: i for i, s in enumerate(draft.steps)}
    step = draft.steps[places[out.name]] if out.name in places else None
    while step is not None and step.primitive.name == "reshape":
        (x,) = step.args
        inner = draft.steps[places[x.name]] if x.name in places else None
        if inner is not None and x.t.dtype == out.t.dtype:
            reshaped = step.primitive, (out.still(),), {"shape": x.t.shape}
            draft.steps[places[x.name]] = Step(x.name, x.t, *reshaped)
        step = inner


def sketches_in(value: Tree) -> list[Sketch]:
    """The sketches in arguments, or in a contribution to a cotangent."""
    if isinstance(value, Sketch):
        return [value]
    return [s for v in value for s in sketches_in(v)] if isinstance(value, tuple) else []


def _needed(steps: Sequence[Step], names: Sequence[str], stop: str) -> set[str]:
    """The steps that these values are computed from, where the value of `stop` is known."""
    known = {s.out: s for s in steps}
    needed: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in known and name != stop and name not in needed:
            needed.add(name)
            todo += [a.name for a in sketches_in(known[name].args)]
    return needed


def _is_tame(primitive: Primitive) -> bool:
    return isinstance(primitive, _TAME) or primitive.name in _TAME_NAMES


class _Writer:
    """Writes steps as lines, and keeps what the lines mention."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.scope: dict[str, Any] = {"Outer": Outer, "Piece": Piece, "Reads": Reads, "zero": zero}
        self.scope |= {"new": tuple.__new__, "float64": np.float64, "reduced": np.add.reduce}
        self.scope |= {"select": select, "where": np.where, "nothing": np.array(0.0)}

    def run(self, text: str) -> None:
        """Define the functions of a text."""
        exec(compile(text, "<lineara plan>", "exec"), self.scope)

    def constant(self, value: Tree) -> str:
        """The name under which the code finds a value."""
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def word(self, a: Value) -> str:
        """An argument in the code."""
        return self.names.get(a.name, a.name) if isinstance(a, Sketch) else self.constant(a)

    def operand(self, a: Shaped, step: Step) -> str:
        """An argument in the code; a number that meets arrays of floats is written as a float."""
        floats = all([s.t.dtype is F64 and s.t.shape for s in sketches_in(step.args)])
        return self.word(np.array(float(a)) if floats and type(a) in (int, float) else a)

    def line(self, step: Step) -> str:
        """A step as an assignment."""
        return f"{self.names.get(step.out, step.out)} = {self.text(step)}"

    def text(self, step: Step) -> str:
        """What a step calculates."""
        primitive = step.primitive
        if isinstance(primitive, Elementwise):
            words = [self.operand(a, step) for a in step.args]
            if primitive.name in INFIX and len(words) == 2:
                return f"{words[0]} {INFIX[primitive.name]} {words[1]}"
            return f"{self.constant(primitive.array)}({', '.join(words)})"
        arrays = [a.t for a in sketches_in(step.args) if a.t.shape]
        words = [self.word(a) for a in step.args]
        if primitive.name == "broadcast_to" and arrays and step.t.size:
            return f"{self.constant(repeater(arrays[0], step.t.shape))}({words[0]})"
        if primitive.name == "keep" and step.t.dtype is F64 and 0 < step.t.size < MANY:
            return f"where({words[1]}, {words[0]}, nothing)"
        options = {name: self.constant(v) for name, v in step.params.items()}
        text = primitive.text(*words, **options) if arrays else None
        if text is not None:
            return text
        own = type(primitive).evaluate is Primitive.evaluate
        call = getattr(np, primitive.name) if own else partial(primitive.evaluate, np)
        named = [f"{name}={word}" for name, word in options.items()]
        return f"{self.constant(call)}({', '.join([*words, *named])})"

    def given(self, parent: str, leaf: Sketch, c: Any, shown: bool) -> list[str]:
        """Lines that add a contribution to a cotangent, which is in C order if it has views."""
        word = self.contribution(c)
        if isinstance(c, Outer | Piece):
            return self.late(parent, word)
        if leaf.t.shape:
            first, nothing = word, self.constant(np.zeros((), leaf.t.dtype))
            if shown:
                first = f"({word} + {nothing} if {parent}.v.flags.c_contiguous else {word})"
            return [f"h = {parent}.g", f"{parent}.g = {first} if h is None else h + {word}"]
        return [
            f"c = {word}.item()",
            f"{parent}.g = c if {parent}.g is zero else {parent}.g + c",
        ]

    def contribution(self, c: Any) -> str:
        """A contribution to a cotangent in the code."""
        if isinstance(c, Outer):
            return f"new(Outer, ({self.word(c.u)}, {self.word(c.v)}))"
        if isinstance(c, Piece):
            if sketches_in(c.at):
                raise Unplanned("positions are not known")
            return f"Piece({self.constant(c.at)}, {self.word(c.x_bar)})"
        return self.word(c)

    def late(self, parent: str, c: str) -> list[str]:
        """Lines that keep a contribution until the sweep reaches the parent, which sums them."""
        return [
            f"k = {parent}.k",
            f"if k is None: k = {parent}.k = Reads()",
            f"k.pieces.append({c})",
        ]


class _PrimitiveWriter(_Writer):
    """Writes steps as applications of their primitives."""

    def text(self, step: Step) -> str:
        """What a step calculates."""
        words = [*map(self.word, step.args)]
        words += [f"{name}={self.constant(v)}" for name, v in step.params.items()]
        return f"{self.constant(step.primitive)}({', '.join(words)})"


class Runner:
    """Writes the code of the call itself: NumPy's value, and its entry on the tape."""

    def __init__(
        self, leaves: Sequence[Sketch], code: Code, place: int | None, out: ArrayType
    ) -> None:
        self.leaves = leaves
        self.nodes: list[str] = [f"p{i}" for i, s in enumerate(leaves) if s.moves]
        self.back = code
        self.place = place  # of the result that has a derivative, where there are several
        self.number: bool = not out.shape
        self.scope: dict[str, Any] = {"GENERAL": GENERAL, "zero": zero, "shows": _shows}
        self.scope |= {"dtype": NUMPYS_OWN[out.dtype]}
        self.scope |= {"ndarray": np.ndarray, "float64": np.float64, "errstate": np.errstate}
        self.scope |= {"new": object.__new__, "keep": code.keep, "Traced": Traced}
        self._left = list(leaves)

    def code(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        alike: Callable[..., Any] | None,
    ) -> Callable[..., Any]:
        """The function of a level, the nodes and the plain values of the leaves."""
        self.scope |= {"func": func, "alike": alike, "misses": []}
        words = [self.word(a) for a in args]
        words += [f"{name}={self.word(a)}" for name, a in kwargs.items()]
        self.call: list[str] = [
            f"try: v = func({', '.join(words)})",
            "except Exception: return GENERAL  # where the same is raised, and more said",
            *([] if self.place is None else ["whole = v", f"v = whole[{self.place}]"]),
        ]
        names = [s.name for s in self.leaves]
        lines = [] if alike is None else [f"if len(misses) >= {MISSES}: return GENERAL"]
        lines += [*self.call, *self.checked(), *self.kept(names), *self.entered()]
        return self.run(lines)

    def deep(
        self, enter: Callable[..., Any], keep: Callable[..., tuple[Any, ...]] | None
    ) -> Callable[..., Any]:
        """The same of values that another level traces: `enter` makes the entry on the tape."""
        self.scope |= {"is_array": is_array, "enter": enter, "keep": keep}
        nodes = "".join([f"{name}, " for name in self.nodes])
        names = "".join([f"{s.name}, " for s in self.leaves])
        held = [f"{self.held(s)} if type({s.name}) is ndarray else {s.name}, " for s in self.leaves]
        result = "type(v).in_plans == 'n'" if self.number else "is_array(v) and v.dtype is dtype"
        return self.run(
            [
                *self.call,
                f"if not (isinstance(v, Traced) and {result}): return GENERAL",
                "kept = (v,)" if keep is None else f"kept = keep({names}v)",
                f"o = enter(level, ({nodes}), ({''.join(held)}*kept), v)",
            ]
        )

    def run(self, lines: Sequence[str]) -> Callable[..., Any]:
        """The function of these lines, which gives `o` in the place of its value."""
        head = f"def run({', '.join(['level', *self.nodes, *[s.name for s in self.leaves]])}):"
        text = "\n    ".join([head, *lines, *self.given()])
        exec(compile(text, "<lineara plan>", "exec"), self.scope)
        return self.scope.pop("run")

    def word(self, a: Value) -> str:
        """An argument of NumPy's in the code."""
        if isinstance(a, Traced | np.ndarray | np.float64):
            leaf = self._left.pop(0)
            return f"float({leaf.name})" if leaf.weak else leaf.name
        if type(a) is list:
            return f"[{', '.join(map(self.word, a))}]"
        if type(a) is tuple:
            return f"({''.join([f'{self.word(v)}, ' for v in a])})"
        name = f"c{len(self.scope)}"
        self.scope[name] = a
        return name

    def checked(self) -> list[str]:
        """The general way is taken where NumPy's result is another than expected."""
        if self.number:
            return ["if type(v) is not float64: return GENERAL"]
        shown = [s.name for s in self.leaves if s.t.shape]
        same = " or ".join([f"v is {name}" for name in shown]) or "False"
        view = f"{same} if v.base is None else shows(v, ({', '.join([*shown, ''])}))"
        return [
            "if type(v) is not ndarray or v.dtype is not dtype: return GENERAL",
            f"if {view}: return GENERAL",
        ]

    def kept(self, names: Sequence[str]) -> list[str]:
        """What is calculated at the call for the way back."""
        if self.back.keep is None:
            return ["kept = (v,)"]
        values = "".join([f"{name}, " for name in names])
        return [
            "try:",
            "    with errstate(all='ignore'):",
            f"        kept = keep({values}v)",
            f"        if alike is not None and not alike(kept[0], v, ({values})):",
            "            misses.append(None)",
            "            return GENERAL",
            "except Exception: return GENERAL",
        ]

    def entered(self) -> list[str]:
        """The entry on the tape."""
        if self.number:
            lines = ["o = level.N()", "o.v = float(v)", "o.g = zero"]
        else:
            lines = ["o = level.X()", "o.v = v", "o.s = v.shape", "o.g = o.k = None"]
        held = [self.held(s) for s in self.leaves]
        return [
            *lines,
            "o.a = o.b = None",
            "n = new(Call)",  # its slots are filled here, without a call of __init__
            "n.out = o",
            "n.plan = plan",
            f"n.parents = ({', '.join([*self.nodes, ''])})",
            f"n.values = ({', '.join([*held, '*kept'])})",
            "level.tape.append(n)",
        ]

    def held(self, leaf: Sketch) -> str:
        """A leaf's value on the tape: plain arrays are guarded, and held where they are read."""
        if leaf.moves or not leaf.t.shape:
            return leaf.name
        return f"level.guard({leaf.name})" if leaf.name in self.back.reads else "None"

    def given(self) -> list[str]:
        """The line that returns the result of the call."""
        if self.place is None:
            return ["return o"]
        return [
            f"parts = [*whole[:{self.place}], o, *whole[{self.place + 1}:]]",
            "kind = type(whole)",
            "return kind(*parts) if hasattr(whole, '_fields') else kind(parts)",
        ]


def _shows(v: np.ndarray, values: Sequence[np.ndarray]) -> bool:
    """Whether a result is a view of an argument."""
    return any([np.may_share_memory(v, a) for a in values])

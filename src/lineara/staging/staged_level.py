"""A level whose values are variables of a Linear A program: what is done is written down.

A staged value has a type and no value, and everything that looks at one is an error that names the
forms that take its place.  What does not depend on one is calculated while the function runs.

Arrays are written by `put`.  A view is a way through the array that it shows: writing takes the
part out, writes it, and puts it back.  An array that only constants were written to is still one.
"""

import functools
import inspect
import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import (
    LeakedVariableError,
    MutationError,
    StagingError,
    user_line,
)
from lineara.facts.hints import Index, Shaped, Value
from lineara.facts.primitive import (
    Box,
    Constant,
    Elementwise,
    HigherOrder,
    OfType,
    Primitive,
    Structural,
    op,
)
from lineara.facts.types import ArrayType, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import may_raise
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Boxed, Emitter
from lineara.linear_a.unmade import program_of
from lineara.python import structured_code
from lineara.python.function_copies import is_user_code
from lineara.python.numpy_layout import lay_of
from lineara.python.user_code import reading
from lineara.staging import by_signature
from lineara.staging.caught_errors import cleaning_line, in_try, in_with, refuse_caught
from lineara.staging.lost_texts import lost_text
from lineara.staging.number_attributes import attributes
from lineara.staging.staged_arrays import (
    LITERAL,
    Cell,
    Region,
    StagedArray,
    as_box,
    boxes,
    note_aliases,
)
from lineara.tape.class_questions import asks_who_multiplies, hidden, in_object, lacking
from lineara.tape.codegen import COMPARISONS, compared_staged, is_exact, with_exact
from lineara.tape.level import Level, slow_methods
from lineara.tape.levels import __file__ as OPENING
from lineara.tape.levels import innermost_level, open_level, threads
from lineara.tape.node import (
    Array,
    OfArray,
    Scalar,
    Traced,
    has_priority,
    layout,
    outlived,
    refuse_own_rules,
    staged,
)
from lineara.tape.numpy_errors import refused
from lineara.tape.reads import View
from lineara.tape.strides import laid_out, packed, strides_of
from lineara.tape.written_arrays import Written, WrittenView, written_outside

PYTHONS = (ZeroDivisionError, OverflowError, ValueError)  # what Python's arithmetic raises
FLOAT64 = ArrayType((), np.dtype(float))
STILL = View(None, 0, (), True)  # of arrays whose content does not change
_VIEWS = {"reshape", "permute_dims", "index"}  # of an array of a definition around, not written
UNSIZED = {"nonzero", "flatnonzero", "argwhere", "compress", "extract", "distinct"}


class Shared:
    """What the definitions of one program share."""

    def __init__(self) -> None:
        self.defs: dict[str, ir.Def] = {}
        self.called: dict[Any, Any] = {}
        self.rules: dict[str, Any] = {}  # of definitions whose derivative the user states
        self.names: ir.Names = ir.Names()
        self.open: dict[Any, Any] = {}  # functions that are being written: they may call themselves
        self.skipped: set[Any] = set()  # those whose calls were left out, for want of their types
        self.types: dict[str, Any] = {}  # the named types that definitions mention
        self.asked = False  # whether something depends on how an array lies in memory
        self.written = False  # whether an array was written
        self.kinded = False  # whether something depends on which numbers are Python's
        self.cleaned = False  # whether something may raise in a try with a finally, or in a with
        self.raising: set[str] = set()  # definitions that may raise what Python raises
        self.copied: list[Any] = []  # notes of storage whose content lists hold, each with a token
        self.doubtful: list[Any] = []  # containers that may not be changed any more
        self.lasting = False  # whether the condition of a loop is asked
        self.errors: Any = np.geterr()  # how NumPy's errors are handled where the program runs
        self.filters: object = warnings.filters  # a `with` of the function's puts others there
        self.stdout: object = sys.stdout
        self.passes: float = 0.0  # seconds that passes have taken
        self.error_state: Callable[[], object] = by_signature.error_state()
        self.errors_seen: object = self.error_state()  # an object for that

    def program(self, *more: ir.Def) -> Program:
        """The definitions so far, and more."""
        return program_of(dict(self.types), {**self.defs, **{d.name: d for d in more}})

    def refuse_changes(self) -> None:
        """Refuse what was changed of the containers that may not be."""
        for d in self.doubtful:
            d.refuse_change()

    def refuse_writes(self, since: int) -> None:
        """Refuse what was written of arrays that were put into stacked lists since."""
        for note, _ in self.copied[since:]:
            if note.store is not None and note.is_written:
                raise written_in_list()

    def raises(self, name: str) -> bool:
        """Whether a definition may raise what Python raises; one that is not done yet may."""
        return name in self.raising or name not in self.defs

    def stays(self, b: ir.Binding) -> bool:
        """Whether a binding is no dead code even where nobody uses its results."""
        return isinstance(b, ir.Let) and may_raise(b.rhs, self.raises)


class Perhaps(frozenset[object]):
    """A number counts as one of either kind while some loops are written, and may be Python's.

    The members stand for these loops, each of which finds out what it carries.
    """

    def __bool__(self) -> bool:
        return False


Weak = bool | Perhaps | None


def written_in_list() -> MutationError:
    """The error for an array that is written while a list has a copy of it for an item."""
    return MutationError(
        "an array was written that is an item of a list, which is held as an array since staged "
        "values say how it is read or grows; put a copy into the list, a.copy()"
    )


class Seen(NamedTuple):
    """Facts of a value that is an argument or a result of a definition."""

    type: ArrayType
    lay: tuple[int, ...] | None = None  # the strides of NumPy's array, where not in C order
    weak: Weak = False  # whether it is a number of Python's; None where it may be either
    of_array: bool = False  # whether it is a number that an argument without axes is


class Outside(NamedTuple):
    """An array that is an input of the program without being an argument."""

    var: ir.Var
    node: Any
    array: np.ndarray


def seen(value: Any) -> Seen:
    """The facts of a value."""
    return Seen(type_of(value), strides_of(value), weakness(value), is_of_array(value))


def is_of_array(value: Any) -> bool:
    """Whether a value is an argument that is an array without axes, or the number for one."""
    kind = type(value)
    return issubclass(kind, OfArray) or (kind is np.ndarray and not value.shape)


def weakness(value: Any) -> Weak:
    """Whether a value is a number of Python's; None where it may be one of NumPy's."""
    if issubclass(type(value), Scalar):
        return value.weak if value.weak is not None else getattr(value, "perhaps", None)
    return not isinstance(value, Traced | np.ndarray | np.generic | Boxed)


def of_both(kinds: Iterable[Weak]) -> Weak:
    """The kind of number (Python's or NumPy's) that arithmetic with several numbers gives."""
    kinds = list(kinds)
    if False in kinds or None in kinds:
        return False if False in kinds else None
    perhaps = perhaps_of(kinds)
    return True if perhaps is None else perhaps


def perhaps_of(kinds: Iterable[Weak]) -> Any:
    """What comes of numbers of Python's and of those that may be; None where none may be."""
    several = [k for k in kinds if type(k) is Perhaps]
    return Perhaps(several[0].union(*several[1:])) if several else None


class StagedLevel(Level):
    """One definition that is being written."""

    has_fast_path = False
    has_numbers = True

    def make_classes(self) -> None:
        """Make the classes of staged values."""
        body: dict[str, Any] = slow_methods() | {"level": self, "depth": self.depth}
        body |= {"__slots__": (), "known": False, "has_variable": True}
        body |= {f"__{name}__": _refusal(name) for name in _ASKS if name != "hash"}
        body |= {"below": _below, "__repr__": lambda n: f"staged({type_of(n)!r})"}
        body |= {f"__{name}__": _logical(name) for name in ("and", "or", "xor")}
        body |= {f"__r{name}__": _logical(name) for name in ("and", "or", "xor")}
        for name, way in (("l", "left"), ("r", "right")):
            body |= _shifts(f"{name}shift", op(f"{way}_shift"))
        body |= {"__pow__": _power(body["__pow__"])}
        body |= {name: vars(Array)[name] for name in map("__{}__".format, COMPARISONS)}
        body |= {"__invert__": lambda n: op("logical_not" if _is_bool(n) else "invert")(n)}
        number = body | numbers_methods() | {"__hash__": _refusal("hash")}
        number |= by_signature.operators(number)
        body |= by_signature.operators(body)
        numpys = {"stands_for": lambda n: n.dtype.type, "weak": False, "sign": "N"}
        numpys |= lacking(Scalar, np.float64)
        self.N = self.SG = type("TracedNumber", (Scalar,), number | numpys)
        own = hidden(Scalar, np.float64, float) | {"stands_for": _pythons_class, "weak": True}
        own["sign"] = "S"
        self.S = type("TracedNumber", (Scalar,), number | own)
        either = {"weak": None, "stands_for": _class_of_either, "sign": "E"}
        self.E = type("TracedNumber", (Scalar,), number | either)  # of one kind or the other
        self.P = type("TracedNumber", (self.E,), {"__slots__": ("perhaps",), "sign": None})
        fixed = {"k": STILL, "lay": property(lambda n: n.w), "sign": "X"}
        self.X = self.XG = type("TracedArray", (Array,), body | fixed)
        own = {k: v for k, v in body.items() if k not in ("__array__", "__float__", "__complex__")}
        own |= {"k": None, "has_variable": False, "sign": "A"}
        for act in (int, operator.index, bool):
            own[f"__{act.__name__}__"] = _of_constants(act, body[f"__{act.__name__}__"])
        self.of_arrays: dict[type, type] = {}
        self.XW = type("TracedArray", (StagedArray, Array), own)

    def start(self, tape: list[Any] | None = None) -> None:
        """Begin a definition."""
        super().start(tape)
        self.out: Emitter = Emitter(ir.Names())
        self.out.like = "v"
        self.beside: list[
            tuple[ir.Var, np.ndarray]
        ] = []  # large constants: formals with their values
        self.around: dict[Any, tuple[ir.Var, Any]] = {}  # what of outer definitions is mentioned
        self.inner: StagedLevel | None = None  # the definition inside this one, being written
        self.holder: StagedLevel | None = None  # the one around this one
        self.taken: list[tuple[Cell, Any, int]] = []  # storage from around: content and version
        self.ends = False  # whether the function or block has ended: its results are taken apart
        self.hands_on = False  # whether what is written to that storage is handed on
        self.reading: Any = None  # how functions are read while this is the outermost level
        self.inputs: dict[int, Any] = {}  # arrays of outside of the function: the staged ones
        self.arguments: Any = None  # of the function that is traced, in the outermost level
        self.frame = sys._getframe(1)  # of what traces
        while self.frame.f_back is not None and self.frame.f_code.co_filename == OPENING:
            self.frame = self.frame.f_back
        self.adopts = False  # whether values of differentiations around become formals
        self.literals = False  # large constants stand in the text too: there is nobody to give them
        self.__dict__.pop("shared", None)
        if not isinstance(innermost_level(), StagedLevel):
            self.shared = Shared()

    @functools.cached_property
    def shared(self) -> Shared:
        """What the definitions of the program share, made by the outermost one."""
        return Shared()

    # --- definitions within the program ------------------------------------------------------

    def hold(self, level: "StagedLevel") -> None:
        """A definition that is used in this one begins."""
        level.shared = self.shared
        level.out.seek, level.out.every = self.out.seek, self.out.every
        level.adopts = self.adopts
        level.holder = self
        self.inner = level

    def release(self, level: "StagedLevel") -> None:
        """That definition ends: what it has written is put back."""
        self.inner = None
        for cell, content, version in reversed(level.taken):
            cell.level, cell.content, cell.version = self, content, version
        level.taken.clear()

    def stands_in(self, level: "StagedLevel") -> bool:
        """Whether this definition is another one, or is inside it."""
        around: StagedLevel | None = self
        while around is not None and around is not level:
            around = around.holder
        return around is level

    def innermost(self) -> "StagedLevel":
        """The definition that is being written now, this one or one inside it."""
        return self if self.inner is None else self.inner.innermost()

    def take(self, cell: Cell) -> None:
        """Storage of a definition around this one comes along, for as long as this is written."""
        holder = self.holder
        assert holder is not None, "storage comes along from the definition around"
        if cell.level is not holder:
            holder.take(cell)
        self.taken.append((cell, cell.content, cell.version))
        content = cell.content
        if isinstance(content, Boxed):
            content = self.mention(holder.still(content, cell.lay))
        else:
            content = content.copy(order="K")
        cell.level, cell.content = self, content

    def known_here(self, param: Any) -> Any:
        """A parameter with the variables of this definition for those of the ones around."""
        if isinstance(param, Boxed):
            return self.from_around(param)
        if isinstance(param, tuple):
            return tuple([self.known_here(p) for p in param])
        return param

    def from_around(self, box: Boxed) -> Boxed:
        """A variable of this definition or of one around it, as it is called here."""
        if box.emitter is self.out:
            return box
        if self.holder is None:
            raise outlived()
        return self.mention(self.holder.shown(self.holder.from_around(box)))

    def shown(self, box: Boxed) -> Any:
        """A variable as a value that keeps its content."""
        return self.still(box, ()) if box.shape else self.scalar(box)

    def name_of_definition(self, like: str) -> str:
        """A name that no other definition has."""
        return self.shared.names(like)

    def add(self, *defs: ir.Def) -> None:
        """More definitions of the program."""
        self.shared.defs |= {d.name: d for d in defs}
        for d in defs:
            if may_raise(d.body, self.shared.raises):
                self.shared.raising.add(d.name)

    def mark(self) -> Any:
        """The definitions so far."""
        shared = self.shared
        copies = dict(shared.defs), dict(shared.called), shared.names.copy()
        return *copies, len(shared.doubtful)

    def back_to(self, mark: tuple[Any, ...]) -> None:
        """Forget the definitions since."""
        defs, called, names, doubtful = mark
        self.shared.defs, self.shared.called = dict(defs), dict(called)
        self.shared.names = names.copy()
        del self.shared.doubtful[doubtful:]

    def forget(self, bindings: int) -> None:
        """Forget the forms since there were so many bindings, what acts, and what reads of these.

        The rest stays: an array that was read may hold what was written for its present content.
        """
        since, gone = self.out.bindings[bindings:], set[ir.Var]()
        del self.out.bindings[bindings:]
        for b in since:
            form = isinstance(b, ir.Let) and any(ir.applications(b.rhs))
            if form or self.shared.stays(b) or not gone.isdisjoint(ir.reads(b)):
                gone.update(b.vars)
            else:
                self.out.bindings.append(b)

    @property
    def called(self) -> dict[Any, Any]:
        """The functions that have a definition already."""
        return self.shared.called

    # --- values ------------------------------------------------------------------------------

    def formal(self, name: str, like: Seen) -> Any:
        """A formal, as the function sees it."""
        return self.given(self.out.fresh(name, like.type), like)

    def input(self, a: np.ndarray) -> Any:
        """An array of outside of the function that is traced, as an input of the program."""
        known = self.inputs.get(id(a))
        if known is None:
            v = self.out.fresh("c", type_of(a))
            known = self.inputs[id(a)] = Outside(v, self.given(v, seen(a)), a)
        return known.node

    def given(self, v: ir.Var, like: Seen) -> Any:
        """A variable as the function sees it."""
        box = self.out.box(v)
        if not box.shape:
            number = self.number(box, like.weak)
            return self.of_array(number) if like.of_array else number
        array = self.wrap(box, like.lay)
        array.w.buffer.came = True
        return array

    def number(self, v: Boxed, weak: Weak) -> Any:
        """A number as Python's (weak), as NumPy's, or as one of either."""
        if type(weak) is Perhaps:
            o = self.scalar(v, self.P)
            o.perhaps = weak
            return o
        return self.scalar(v, self.S if weak else self.N if weak is False else self.E)

    def scalar(self, v: Value, cls: type[Any] | None = None) -> Any:
        """A number, NumPy's where nothing else is said."""
        return super().scalar(v, cls or self.N)

    def alias(self, p: Scalar, weak: bool) -> Any:
        """The number p as Python's (weak) or as NumPy's."""
        if p.weak is weak:
            return p
        t = p.dtype
        wide = np.result_type(t, {"f": float, "c": complex, "b": bool}.get(t.kind, np.int64))
        p = op("astype")(p, dtype=wide) if weak and wide != t else p
        return p.level.number(p.v, weak)

    def wrap(self, v: Value, lay: Any = None) -> Any:
        """A staged number, or an array that may be written, with these strides or in C order."""
        if not isinstance(v, Boxed):
            return v
        return self.handle(self.whole(v, lay)) if v.shape else self.scalar(v)

    def still(self, v: Boxed, lay: tuple[int, ...]) -> Any:
        """An array that keeps its content."""
        o = self.X()
        o.v, o.a, o.b, o.g, o.s, o.w = v, None, None, None, v.shape, lay
        return o

    def entered(self, a: Any) -> Any:
        """An operand as it stands in the program: a box, or what is constant."""
        a = self.operand(a)
        return self.constant(a) if _is_plain(a) else a

    def operand(self, a: Any) -> Any:
        """A value, or those of a tuple or list, with boxes for what is staged or traced."""
        kind = type(a)
        if issubclass(kind, Traced):
            a = a.now()
            kind = type(a)
        if not issubclass(kind, Traced):
            return tuple(map(self.operand, a)) if isinstance(a, tuple | list) else a
        if a.level is self:
            if a.v.emitter is not self.out:
                raise outlived()
            return a.v
        self.mine(a)
        if a.level.depth > self.depth:
            raise written_outside()
        if isinstance(a.level, StagedLevel) or self.adopts:
            return self.mention(a)
        raise LeakedVariableError(
            "a value of a differentiation around this trace was used in it; "
            "pass it as an argument of the traced function"
        )

    def read(self, a: Any) -> Any:
        """An array of a differentiation around, to be read where this one has staged places.

        Neither may be written while both are in use.
        """
        x = self.operand(a)
        made = self.wrap(x, a.lay) if isinstance(x, Boxed) else self.buffer(x)
        note_aliases([(made, [a])])
        return made

    def as_box(self, value: Any) -> Boxed:
        """A value, or a constant, as a variable."""
        return as_box(self, self.entered(value) if isinstance(value, Traced) else value)

    def constant(self, a: np.ndarray) -> Any:
        """A small array as it is; of a large one a formal, whose value is kept beside."""
        if a.size <= LITERAL:
            return a.copy(order="K")
        if a.dtype.kind in "fciub" and (a == a.reshape(-1)[0]).all():
            like = self.out.box(self.out.unbox(a.reshape(-1)[0], ArrayType((), a.dtype)))
            return self.out.apply(op("broadcast_to"), (like,), {"shape": a.shape}, "v")
        if self.literals:
            return a.copy(order="K")
        for v, kept in self.beside:
            if kept.dtype == a.dtype and (kept is a or np.array_equal(kept, a)):
                return self.out.box(v)
        v = self.out.fresh("c", type_of(a))
        self.beside.append((v, a.copy()))
        return self.out.box(v)

    def mention(self, a: Box) -> Boxed:
        """A value of a definition around this one becomes one more formal."""
        around, level = self.holder, a.level
        staged = isinstance(level, StagedLevel)
        if around is not None and staged and level is not around:
            apart = around.adopts and level.open and not around.stands_in(level)
            a = around.shown(around.mention(a) if apart else around.from_around(a.v))
        key = a.v.var if staged else id(a)
        formal = self.around.get(key)
        if formal is None:
            for v, kept in a.level.beside if staged else ():
                if v is key:
                    return self.constant(kept)
            name = a.v.var.name if staged else "w"
            t = a.v.var.type if staged else type_of(a)
            formal = self.around[key] = self.out.fresh(name or "x", t), a
        return self.out.box(formal[0])

    def parameter(self, value: Value) -> Any:
        """A parameter of a primitive, with variables for staged values in it."""
        if isinstance(value, Traced):
            return self.entered(value)
        if isinstance(value, tuple | list):
            return tuple([self.parameter(v) for v in value])
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            return self.constant(value)
        return value

    # --- applying primitives -------------------------------------------------------------------

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Write an application down; of constants, evaluate it."""
        if not self.open:
            raise outlived()
        if self.inner is not None:
            return self.innermost().apply(primitive, args, params)
        if self.kinks is not None:
            return self.kinks.apply(self, primitive, args, params)
        if args and issubclass(type(args[0]), StagedArray) and args[0].level is self:
            moved = args[0].moved(primitive.name, params)
            if moved is not None:
                return moved
        if isinstance(primitive, Elementwise) and not primitive.raised and not params:
            general = functools.partial(self.written, primitive, args, params, False)
            return by_signature.written(self, primitive, args, general)
        if isinstance(primitive, HigherOrder):
            return primitive.trace_staged(self, tuple(map(_settled, args)), params)
        weak: Weak = False
        if primitive.raised:
            if primitive.pythons:
                weak = of_both(map(weakness, args)) if primitive.name.startswith("python") else True
                params |= {"line": user_line()} | (
                    {} if weak in (True, False) else {"either": True}
                )
                self.shared.kinded = True
            kinds = [k for k in primitive.raised if not issubclass(k, Warning)]
            shown = ", ".join([repr(type_of(a)) for a in args])
            what = f"{primitive.name} of staged {shown}"
            caught = self.caught(what, kinds, hasattr(primitive, "exceptions"))
            if caught:
                for fails, kind, said in primitive.exceptions(caught, args, params):  # type: ignore[attr-defined]
                    if said is not None:
                        self.raised_in_try(fails, kind(*said), user_line())
                    elif self.is_handled(kind):
                        self.raised_in_try(fails, kind(lost_text(what)), user_line())
                    else:  # it ends the program there
                        self.shared.cleaned = True
                return self.innermost().written(primitive, args, params, weak)
        return self.written(primitive, args, params, weak)

    def written(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], weak: Weak
    ) -> Any:
        """An application of which what it raises has been looked at."""
        if primitive.name in TRUTHS:
            weak = True
        args = _in_precision(primitive, args)
        for a in args:
            if issubclass(type(a), np.ndarray):
                refuse_own_rules(primitive.name, a)
        if np.geterr() != self.shared.errors:
            self.refuse_errors(primitive, args)
        given, operands = params, tuple([self.operand(a) for a in args])
        if Boxed not in map(type, operands):
            known = {k: self.operand(v) for k, v in params.items()}
            if not any(boxes(known)):  # of constants, however large: calculated now
                return self.calculated(primitive(*map(_copied, operands), **known))
        if primitive.name in UNSIZED:
            raise StagingError(
                f"{primitive.name}: the shape of the result depends on staged values; "
                "keep the shape with np.where(condition, a, b), or count with a sum"
            )
        entered = tuple([self.constant(a) if _is_plain(a) else a for a in operands])
        params = {k: self.parameter(v) for k, v in params.items()}
        if any(boxes(params)) and self.guards(primitive.name, params.get("at"), args[0]):
            return self.innermost().written(primitive, args, given, weak)
        try:
            y = self.out.interpret(primitive, entered, params)
            if isinstance(y, Boxed) and y.dtype.kind in "SUT":
                raise StagingError(_ASKS["str"].format(t=f"argument of {primitive.name}"))
            y = self.wrap(y, lay_of(primitive, args, given, y))
            y = self.number(y.v, weak) if weak is not False and not y.shape else y
        except (ValueError, IndexError) as e:
            raise refused(primitive.name, entered, params, e) from None
        outside = primitive.name in _VIEWS and getattr(args[0], "level", self) is not self
        if outside and y.shape and not any(_arrays(params)):
            return self.derived(y, args[0])
        return y

    def refuse_errors(self, primitive: Primitive, args: tuple[Any, ...]) -> None:
        """Refuse what may raise where np.errstate says so: the program runs outside of it."""
        handled = {str(v) for k, v in np.geterr().items() if v != self.shared.errors[k]}
        raising = sorted(handled & {"raise", "call", "log"})
        calculates = not isinstance(primitive, Structural) or primitive.name == "astype"
        if raising and calculates and staged(args):
            raise StagingError(
                f"{primitive.name} under np.errstate({raising[0]!r}): whether it meets an error "
                "depends on staged values; test what it gives with np.isfinite"
            )

    def of_numbers(self, name: str, act: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """An operator of numbers: Python's own where all of them are Python's, or may be."""
        if not self.open:
            raise outlived()
        weak = of_both(map(weakness, args))
        if weak is False and _is_pythons_complex(*args):
            weak, args = True, (args[0], args[1].item())
        if weak is False:
            return op(name)(*args)
        kinds = set(map(_kind, args))
        if "b" in kinds:
            if kinds == {"b"} and weak is not True:
                raise _truths(name)
            args = tuple([_counted(a) for a in args])
            kinds = set(map(_kind, args))
        if name == "power" and kinds == {"i"} and type(args[1]) is int and args[1] < 0:
            args = (op("astype")(args[0], dtype=np.dtype(float)), args[1])
        own = f"python_{name}" if _may_differ(name, args, kinds) and self.kinks is None else name
        y = op(own)(*args)
        return y.level.number(y.v, weak)

    def constant_call(
        self,
        primitive: Constant,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """A locally constant function of NumPy's: its operands, and its other arguments by name."""
        if self.inner is not None:
            return self.innermost().constant_call(primitive, func, args, kwargs)
        if isinstance(primitive, OfType):
            return func(*map(layout, args), **kwargs)
        operands, params = _operands(func, args, kwargs)
        return primitive(*operands, **params)

    # --- reading and writing arrays --------------------------------------------------------------

    def getitem(self, x: Array, at: Index) -> Any:
        """x[at] of an array that keeps its content."""
        return self.buffer(x)[at]

    def setitem(self, x: Array, at: Index, value: Value) -> None:
        """x[at] = value."""
        self.begin(x)
        x[at] = value

    def begin(self, x: Array) -> None:
        """Let x be written."""
        if not isinstance(x, Written):
            lay = x.lay
            x.__class__ = self.XW
            x.w = self.whole(x.v, lay)

    def assign_all(self, x: Array, value: Array) -> Any:
        """An in-place operation."""
        self.begin(x)
        return x.assign_all(value)

    def copy(self, x: Array, order: str = "C") -> Any:
        """An array of its own, of the definition that is being written."""
        lay = packed(tuple(x.shape), strides_of(x), order)
        if self.inner is not None:
            return self.innermost().buffer(x, lay)
        node = x.now()
        content = node.v if isinstance(node, Traced) else node.copy(order=order)
        return self.handle(self.whole(content, lay))

    def laid(self, x: Array, lay: tuple[int, ...]) -> Any:
        """An array of its own with the content of x, which lies in memory so."""
        return self.innermost().buffer(x, lay)

    def buffer(self, content: Shaped, lay: Any = None) -> Any:
        """An array that holds `content`, which lies in memory as it did, or so."""
        lay = strides_of(content) if lay is None else lay
        content = content.now() if isinstance(content, Traced) else content
        content = self.entered(content) if isinstance(content, Traced) else content
        if isinstance(content, np.ndarray):
            content, lay = laid_out(content, lay), None
        return self.handle(self.whole(content, lay))

    def whole(self, content: Shaped, lay: tuple[Any, ...] | None = None) -> Region:
        """All of a new array."""
        inside = [v.roots for v in threads.open if v.depth > self.depth]
        return Region.whole(Cell(self, content, inside, lay))

    def own(self, y: Shaped) -> Any:
        """A fresh array of constants, into which staged values may be written."""
        return self.buffer(y)

    def calculated(self, y: Shaped) -> Any:
        """What a primitive gave of constants: numbers, and arrays that may be written."""
        if isinstance(y, tuple):
            return tuple(map(self.calculated, y))
        return self.own(y) if type_of(y).shape else y

    def handle(self, part: WrittenView) -> Any:
        """An array at a region of a cell."""
        o = self.XW()
        o.v = o.a = o.b = o.g = None
        o.w = part
        if part.buffer.inside:
            part.buffer.arrays.append(o)
        return o

    def close(self) -> None:
        """End the definition."""
        self.locks.release()
        self.overlaps.clear()
        self.asked.clear()
        self.frame = self.arguments = None  # results know the level, and keep no arguments
        self.open = False

    def uncaught(self, what: str, kinds: Sequence[type[BaseException]] = PYTHONS) -> None:
        """Refuse what may raise where the function that is traced would catch that."""
        self.caught(what, kinds, False)

    def caught(
        self, what: str, kinds: Sequence[type[BaseException]], known: bool = True
    ) -> list[type[BaseException]]:
        """Those of some exceptions that a try catches whose block is being written.

        Refuses what cannot end that block here: whether it is raised must be `known` to the
        program, and nobody may be on the way who catches it or has something to do.
        """
        now = reading()
        around = [t for t in now.tries if any(map(t.catches, kinds))] if now else []
        if not now or not around:
            outermost = next(v for v in threads.open if isinstance(v, StagedLevel))
            if refuse_caught(what, kinds, outermost.frame):
                self.shared.cleaned = True
            return []
        mine = [k for k in kinds if any([t.catches(k) for t in around])]
        in_between = refuse_caught(what, mine, around[0].frame)
        if known and not in_between and now.regions[-1].level is innermost_level():
            return mine
        handled = [k for k in mine if any([t.catches(k) for t in around if not t.last])]
        if handled:
            raise in_with(what, handled[0]) if in_between else in_try(what, handled[0].__name__)
        self.shared.cleaned = True  # it ends the program there, and no `finally` may act after it
        return []

    def guards(self, what: str, at: Any, x: Shaped) -> bool:
        """Look whether staged places are there, where a try catches that one is not.

        Whether the rest of its block is a definition of its own from here on.
        """
        now = reading()
        if now is None or not now.tries:
            return bool(self.caught(f"{what} at a staged place", [IndexError]))
        parts = at if isinstance(at, tuple) else (at,)
        n = len([p for p in parts if p is not None and p is not Ellipsis])
        axes: list[Any] = []
        for p in parts:
            axes += [None] * (len(x.shape) - n) if p is Ellipsis else [] if p is None else [p]
        staged_ = [(axis, p) for axis, p in enumerate(axes) if isinstance(p, Box)]
        whole = all([p.dtype.kind in "iu" for _, p in staged_]) and not any(map(_is_mask, axes))
        known = bool(staged_) and whole and self.is_handled(IndexError)
        if not self.caught(f"{what} at a staged place", [IndexError], known):
            return False
        for axis, place in staged_:
            size = x.shape[axis]
            fails = op("logical_or")(op("less")(place, -size), op("greater_equal")(place, size))
            self.raised_in_try(fails, IndexError(lost_text("an index")), user_line())
        return True

    def is_handled(self, kind: type[BaseException]) -> bool:
        """Whether a handler around catches exceptions of a class, beside what is done at last."""
        now = reading()
        return now is not None and any([t.catches(kind) for t in now.tries if not t.last])

    def raised_in_try(self, fails: Any, error: BaseException, line: str) -> None:
        """An exception that a try catches ends its block where a condition holds."""
        now = reading()
        assert now is not None, "functions are read where tries are"
        now.way.forms.raised_in_try(fails, error, line)

    def reported(self, what: str) -> None:
        """Refuse what the program would not do where it raises, and Python would."""
        outermost = next(v for v in threads.open if isinstance(v, StagedLevel))
        line = cleaning_line(outermost.frame) if self.shared.cleaned else ""
        if line:
            raise StagingError(
                f"{what} is done in a finally or an __exit__, after what may raise as the program "
                "runs: it would end there, and this would not be done; do it after the try, or "
                "let nothing raise in it",
                line=line,
            )

    def applied(self, names: Sequence[str], calls: bool = True) -> None:
        """Definitions are applied: they may raise what theirs raises."""
        raising = [name for name in names if self.shared.raises(name)]
        if raising and calls:
            self.uncaught(f"what {raising[0]} does", PYTHONS)
        elif raising:  # what it raises was looked at as it was written
            outermost = next(v for v in threads.open if isinstance(v, StagedLevel))
            refuse_caught(f"what {raising[0]} does", PYTHONS, outermost.frame)


class open_definition(open_level):  # a context manager is named as a function is
    """A definition is written while the block runs, which is used in the one around it."""

    __slots__ = ("around", "level")

    def __init__(self, around: StagedLevel) -> None:
        super().__init__(StagedLevel)
        self.around: StagedLevel = around

    def __enter__(self) -> StagedLevel:
        self.level: StagedLevel = super().__enter__()
        self.around.hold(self.level)
        return self.level

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        self.around.release(self.level)
        super().__exit__(kind, error, trace)


# --- what is asked of a value that is not there ---------------------------------------------------


_ASKS = {
    "bool": "bool() of a staged {t}: whether it is true is not known while a program is written; "
    "use np.where or np.maximum for a choice between values, lineara.cond for one between "
    "branches, and lineara.while_loop for a loop that ends on it",
    "int": "a staged {t} was about to become a plain whole number, whose value is not known while "
    "a program is written; use astype(int), or pass an int, which is a constant of the program",
    "index": "a staged {t} was used as a Python integer, whose value is not known while a program "
    "is written; index a staged array (np.take(a, i) of a plain one), loop with lineara.fori_loop, "
    "and pass sizes as Python ints, which are constants of the program",
    "round": "round() of a staged {t}: use np.round",
    "floor": "math.floor() of a staged {t}: use np.floor",
    "ceil": "math.ceil() of a staged {t}: use np.ceil",
    "trunc": "math.trunc() of a staged {t}: use np.trunc",
    "float": "a staged {t} was about to become a plain number, which a program cannot hold; make "
    "the array that is written with np.zeros, np.array(a) or np.copy(a) in the traced function",
    "complex": "a staged {t} was about to become a plain number, which a program cannot hold",
    "array": "a staged {t} was about to become a plain array, which a program cannot hold; use "
    "NumPy functions that have a rule, and np.take(a, i) for a[i] of a plain array a",
    "format": "a staged {t} was written as text, but its value is not known; print its type",
    "hash": "hash() of a staged {t}: a key of a dict and a member of a set are found by their "
    "values, and this one is not known while a program is written; keep what it leads to in an "
    "array, counts[k] of counts = np.zeros(n), or take lineara.static(k) of a whole number that "
    "the function is given",
    "str": "a staged {t} was written as text, but its value is not known; print its type",
    "reduce": "a staged {t} cannot be pickled: it belongs to a trace that runs here",
}


def _refusal(name: str) -> Any:
    text = _ASKS[name]

    def refuse(n: Box, *_: Any, **__: Any) -> Any:
        if not n.level.open:
            raise outlived()
        if name == "array" and asks_who_multiplies(sys._getframe(1)):
            return in_object(n)
        said = text.format(t=type_of(n))
        raise StagingError(said + _why_unread() if name == "bool" else said)

    return refuse


def _why_unread() -> str:
    """Why the function that asks is traced as it runs, where its source is not read."""
    frame: Any = sys._getframe(2)
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or reading() is None:
        return ""
    why = structured_code.why_unread(frame.f_code)
    return f" (branches of this function are not read: {why})" if why else ""


def _arrays(params: dict[str, Any]) -> Any:
    """Whether parts of an index are arrays, of which NumPy makes a copy."""
    at = params.get("at", ())
    return [isinstance(p, np.ndarray | Boxed) and p.shape for p in _parts(at)]


def _parts(at: Index) -> tuple[Any, ...]:
    return at if isinstance(at, tuple) else (at,)


def _is_mask(part: Any) -> bool:
    return bool(getattr(part, "shape", ())) and part.dtype.kind == "b"


def _settled(a: Value) -> Any:
    return a.now() if isinstance(a, Traced) else a


def _is_plain(a: object) -> bool:
    """Whether an operand is an array of constants."""
    return issubclass(type(a), np.ndarray)


def _copied(a: Any) -> Any:
    """A constant of which nothing else sees what is written into it."""
    return a.copy(order="K") if _is_plain(a) else a


def _below(n: Box) -> Any:
    if not n.level.open:
        raise outlived()
    raise StagingError(
        f"the value of a staged {type_of(n)} was asked for, but it is not known while a program is "
        "written; use functions that have a rule, np.where, lineara.cond or lineara.while_loop"
    )


def _of_constants(act: Callable[[Any], Any], refuse: Callable[[Any], Any]) -> Any:
    """What asks an array for its number: NumPy's answer where it holds constants only."""

    def method(n: Array) -> Any:
        constant = n.constant()
        return refuse(n) if constant is None else act(constant)

    return method


def _logical(name: str) -> Any:
    def method(n: Shaped, other: Shaped) -> Any:
        if has_priority(other):
            return NotImplemented
        both = _is_bool(n) and _is_bool(other)
        return op(f"{'logical' if both else 'bitwise'}_{name}")(n, other)

    return method


def _shifts(name: str, shift: Constant) -> dict[str, Any]:
    """The operators of a shift, with the number on either side."""

    def forward(n: Value, k: Any) -> Any:
        return NotImplemented if has_priority(k) else shift(n, k)

    return {f"__{name}__": forward, f"__r{name}__": lambda n, k: shift(k, n)}


SHORT = {(int, 2): "square", (int, -1): "reciprocal", (float, 0.5): "sqrt"}
"""What NumPy has for powers of arrays; of complex ones the bits differ from those of a power."""


def _power(power: Callable[..., Any]) -> Any:
    """The power, by NumPy's short cuts; booleans it squares in another dtype than it raises in."""

    def method(n: Traced, k: Value) -> Any:
        weak = weakness(n)
        if n.shape and _kind(n) == "c" and type(k) in (int, float) and (type(k), k) in SHORT:
            return op(SHORT[type(k), k])(n)
        if type(k) is not int or k != 2 or not _is_bool(n) or weak is True:
            return power(n, k)
        if weak is not False:
            raise _truths("power")
        return op("square")(n)

    return method


# --- numbers, Python's and NumPy's ----------------------------------------------------------------


def numbers_methods() -> dict[str, Any]:
    """The operators of staged numbers, in place of those of values."""
    methods = {f"__{name}__": _comparison(name) for name in COMPARISONS}
    for stem, name in INTEGRAL.items():
        methods |= {f"__{stem}__": _integral(name), f"__r{stem}__": _integral(name, True)}
    for stem, name in (("pos", "positive"), ("invert", "invert")):
        methods[f"__{stem}__"] = _unary(name)
    methods |= {name: property(_part(name)) for name in ("real", "imag")}
    return methods | attributes()


def _part(name: str) -> Any:
    def part(n: Box) -> Any:
        if n.dtype.kind != "c":
            n = _counted(n) if n.weak else n
            return n if name == "real" else n.dtype.type(0).item() if n.weak else n.dtype.type(0)
        y = op(name)(n)
        return y.level.number(y.v, n.weak)

    return part


INTEGRAL = {"floordiv": "floor_divide", "lshift": "left_shift", "rshift": "right_shift"}
INTEGRAL |= {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}


def _comparison(name: str) -> Any:
    def compare(n: Shaped, other: Shaped) -> Any:
        weak = of_both(map(weakness, (n, other)))
        if weak is not False and name[0] in "lg" and "c" in map(_kind, (n, other)):
            raise TypeError(f"'{COMPARISONS[name]}' not supported between complex numbers")
        if weak and type(other) is int and abs(other) > EXACT:
            return _compared_with_whole(n, other, name)
        y = compared_staged(n, other, f"__{name}__")
        if not issubclass(type(y), Scalar) or y.known:
            return y
        return y.level.number(y.v, weak)

    return compare


def _compared_with_whole(n: Any, other: int, name: str) -> Any:
    """A comparison with a whole number that no float may be equal to: Python rounds neither."""
    if _kind(n) in "ib":
        if -(2**63) <= other < 2**63:
            return getattr(Box, f"__{name}__")(n, other)
        holds = getattr(operator, name)(0, other)
        if holds and n.level.shared.lasting:  # the loop ends where the number overflows
            truth = op("equal")(n, n)
            return truth.level.number(truth.v, True)
        return holds
    try:
        near = float(other)
    except OverflowError:
        near = math.inf if other > 0 else -math.inf
    if near != other:
        if name in ("eq", "ne"):
            return name == "ne"
        name = name[0] + ("e" if (near < other) is (name[0] == "l") else "t")
    truth = compared_staged(n, near, f"__{name}__")
    return truth.level.number(truth.v, True)


def _integral(name: str, reflected: bool = False) -> Any:
    """An operator whose results are locally constant."""
    stem = {v: k for k, v in INTEGRAL.items()}[name]
    act = getattr(operator, {"and": "and_", "or": "or_"}.get(stem, stem))
    logical = name.replace("bitwise", "logical")

    def method(n: Box, other: Shaped) -> Any:
        if has_priority(other):
            return NotImplemented
        args = (other, n) if reflected else (n, other)
        if is_exact(other):
            return with_exact(*args, act)
        truths = stem in ("and", "or", "xor") and all(map(_is_bool, args))
        if of_both(map(weakness, args)) is False or truths:
            y = op(logical if truths else name)(*args)
            if truths and not y.shape:
                return y.level.number(y.v, of_both(map(weakness, args)))
            return y
        return n.level.of_numbers(name, act, args)

    return method


def _unary(name: str) -> Any:
    def method(n: Box) -> Any:
        if not _is_bool(n):
            return n if name == "positive" else n.level.alias(op(name)(n), bool(n.weak))
        if n.weak is None:
            raise _truths(name)
        if n.weak:
            n = _counted(n)
            return n if name == "positive" else n.level.number(op(name)(n).v, True)
        if name == "invert":
            return op("logical_not")(n)
        raise TypeError("The numpy boolean positive, the `+` operator, is not supported")

    return method


def _pythons_class(n: Scalar) -> type:
    return {"f": float, "c": complex, "b": bool}.get(n.dtype.kind, int)


def _class_of_either(n: Traced) -> type:
    raise StagingError(
        f"the class of a staged {type_of(n)} was asked for, which is Python's in one branch or "
        "round of a loop and NumPy's in another; make it one of them where it begins, float(x) or "
        "np.float64(x)"
    )


def _truths(name: str) -> StagingError:
    works = {"add": "np.logical_or(a, b)", "invert": "np.logical_not(a)"}.get(name, "np.where")
    return StagingError(
        f"{name} of a staged bool[]: Python's truth values count as numbers there and NumPy's do "
        "not, and in one branch or round of a loop they are Python's and in another NumPy's; "
        f"use {works}, or a.astype(int)"
    )


def _is_pythons_complex(first: Shaped, *others: Any) -> bool:
    """Whether a complex number of Python's answers, for a float64 is a float to it."""
    pythons = weakness(first) is True and _kind(first) == "c" and len(others) == 1
    return pythons and type_of(others[0]) == FLOAT64


def _counted(a: Value) -> Any:
    """A truth value of Python's as a number, for arithmetic."""
    if isinstance(a, bool):
        return int(a)
    if not isinstance(a, Traced) or not _is_bool(a):
        return a
    y = op("astype")(a, dtype=np.dtype(np.int64))
    return y.level.number(y.v, a.weak)


def _may_differ(name: str, args: tuple[Any, ...], kinds: set[str]) -> bool:
    """Whether Python's operator may raise where NumPy's does not, or give other bits."""
    if name in ("negative", "bitwise_and", "bitwise_or", "bitwise_xor"):
        return False
    if kinds == {"i"}:
        return name != "abs"
    if name in ("divide", "remainder", "floor_divide") and "c" not in kinds:
        return isinstance(args[1], Traced) or not args[1]
    return name == "power" or ("c" in kinds and name not in ("add", "subtract"))


TRUTHS = {"array_equal", "array_equiv", "allclose"}  # what they give is a bool of Python's
EXACT = 2**53  # whole numbers up to this are floats
EXACTLY = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
EXACTLY |= {"isclose", "allclose"}  # of whole numbers of any size
ROUNDED = EXACTLY | {"where", "floor_divide"}


def _in_precision(primitive: Primitive, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers of Python's in the precision of the arrays and of NumPy's numbers that they meet."""
    own = getattr(np, primitive.name, None)
    meets = isinstance(primitive, Elementwise) or primitive.name in ROUNDED
    meets = meets or (isinstance(primitive, Constant) and isinstance(own, np.ufunc))
    if len(args) < 2 or not meets or primitive.name in ("ldexp", "math_ldexp"):
        return args
    kinds = [a.weak if issubclass(type(a), Scalar) else False for a in args]
    if True not in kinds and None not in kinds:
        return args
    kinds = [
        w if w is False or _kind(a) in "ifc" else False for a, w in zip(args, kinds, strict=True)
    ]
    if True not in kinds and None not in kinds:
        return args
    rest = [a for a, w in zip(args, kinds, strict=True) if w is False]
    if primitive.name == "where":
        rest = rest[1:]
    if primitive.name in EXACTLY and {*map(_kind, args)} <= {*"iub"}:
        return args
    if all([type(a) in (int, float, complex) for a in rest]) or {"m", "O"} & {*map(_kind, rest)}:
        return args
    shown = [a if type(a) in (int, float, complex) else type_of(a).dtype for a in rest]
    pairs = [*zip(args, kinds, strict=True)]
    pythons = [_pythons_class(a)(1) for a, w in pairs if w is not False]
    t = np.result_type(*shown, *pythons)
    doubtful = [a.dtype for a, w in pairs if w is None]
    if doubtful and t != np.result_type(*shown, *pythons, *doubtful):
        raise StagingError(
            f"{primitive.name} of {' and '.join([repr(type_of(a)) for a in args])}: a number that "
            "is Python's in one branch or round of a loop and NumPy's in another has the precision "
            "of what it meets in one and its own in the other; make it one of them where it "
            "begins, float(x) or np.float64(x)"
        )
    if t.kind in "iu" and True in kinds and isinstance(own, np.ufunc):  # quotients are floats
        met = [_pythons_class(a) if w is not False else type_of(a).dtype for a, w in pairs]
        t = own.resolve_dtypes((*met, *[None] * own.nout))[kinds.index(True)]
    fits = t.kind not in "iu" or primitive.name == "where"  # or NumPy casts
    cast = op("astype" if fits else "stored")  # which raises where a whole number does not fit
    return tuple([cast(a, dtype=t) if w and a.dtype != t else a for a, w in pairs])


def _is_bool(a: Any) -> bool:
    return _kind(a) == "b"


_KINDS = {float: "f", int: "i", bool: "b", complex: "c"}


def _kind(a: Shaped) -> str:
    """The kind of the dtype of a value, asked in the shortest way."""
    v = getattr(a, "v", None)
    if type(v) is Boxed:
        return v.dtype.kind
    return _KINDS.get(type(a)) or type_of(a).dtype.kind


def _operands(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """What a function works on, and what else it is told, where that is not its default."""
    if isinstance(func, np.ufunc):
        return list(args), kwargs
    signature = inspect.signature(func)
    names, bound = list(signature.parameters), signature.bind(*args, **kwargs)
    by_name = {n for n, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY}
    given = bound.arguments.items()
    read = [names.index(name) for name, value in given if staged(value) and name not in by_name]
    bound.apply_defaults()
    operands, params = [], {}
    for name, value in bound.arguments.items():
        formal = signature.parameters[name]
        if formal.kind is formal.VAR_POSITIONAL:
            operands.extend(value)
        elif (name not in by_name and names.index(name) <= max(read, default=-1)) or (
            formal.default is formal.empty and name != "kth"
        ):
            operands.append(value)
        elif value is not formal.default:
            params[name] = value
    return operands, params

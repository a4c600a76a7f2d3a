"""A level whose values are variables of a Linear A program: what is done is written down.

A staged value has a type and no value, and everything that looks at one is an error that names the
forms that take its place.  What does not depend on one is calculated while the function runs.

Arrays are written by `put`.  A view is a way through the array that it shows: writing takes the
part out, writes it, and puts it back.  An array that only constants were written to is still one.
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lineara.eager.level import Level, slow_methods
from lineara.eager.memory import lay_of
from lineara.eager.node import Array, Scalar, Traced, layout, outlived
from lineara.eager.reads import View
from lineara.eager.refusals import refused
from lineara.eager.regions import LITERAL, Cell, Region, StagedArray, as_box, boxes
from lineara.eager.shown import asks_who_multiplies, in_object
from lineara.eager.strides import laid_out, packed, strides_of
from lineara.eager.trace import threads
from lineara.eager.written import Written
from lineara.errors import (
    LeakedVariableError,
    StagingError,
)
from lineara.linear_a.emit import Boxed, Emitter
from lineara.linear_a.syntax import Def, Names, Var
from lineara.primitive import Constant, HigherOrder, OfType, Primitive, Recur, op
from lineara.types import ArrayType, type_of

STILL = View(None, 0, (), True)  # of arrays whose content does not change
_VIEWS = {"reshape", "permute_dims", "index"}  # of an array of a definition around, not written
UNSIZED = {"nonzero", "flatnonzero", "argwhere", "compress", "extract", "distinct"}


class Shared:
    """What the definitions of one program share."""

    def __init__(self) -> None:
        self.defs: dict[str, Def] = {}
        self.called: dict[Any, Any] = {}
        self.rules: dict[str, Any] = {}  # of definitions whose derivative the user states
        self.names = Names()
        self.open: dict[Any, Any] = {}  # functions that are being written: they may call themselves
        self.skipped: set[Any] = set()  # those whose calls were left out, for want of their types
        self.types: dict[str, Any] = {}  # the named types that definitions mention
        self.asked = False  # whether something depends on how an array lies in memory
        self.written = False  # whether an array was written


class StagedLevel(Level):
    """One definition that is being written."""

    has_fast_path = False

    def __init__(self, depth: int, recur: Recur) -> None:
        super().__init__(depth, recur)
        body = slow_methods() | {"level": self, "depth": depth, "__slots__": (), "known": False}
        body |= {f"__{name}__": _refusal(name) for name in _ASKS}
        body |= {"below": _below, "__repr__": lambda n: f"staged({type_of(n)!r})"}
        body |= {f"__{name}__": _logical(name) for name in ("and", "or", "xor")}
        body |= {f"__r{name}__": _logical(name) for name in ("and", "or", "xor")}
        for name, way in (("l", "left"), ("r", "right")):
            body |= _shifts(f"{name}shift", op(f"{way}_shift"))
        body |= {"__pow__": _power(body["__pow__"])}
        body |= {"__invert__": lambda n: op("logical_not" if _is_bool(n) else "invert")(n)}
        number = body | {"stands_for": lambda n: n.dtype.type, "__hash__": _refusal("hash")}
        number |= {f"__{name}__": _not_of_truths(name, body) for name in ("add", "radd", "invert")}
        self.S = self.N = self.SG = type("StagedNumber", (Scalar,), number)
        fixed = {"k": STILL, "lay": property(lambda n: n.w)}
        self.X = self.XG = type("StagedArray", (Array,), body | fixed)
        own = {k: v for k, v in body.items() if k not in ("__array__", "__float__", "__complex__")}
        self.XW = type("StagedArray", (StagedArray, Array), own | {"k": None})

    def start(self, tape: list[Any] | None = None) -> None:
        """Begin a definition."""
        super().start(tape)
        self.out = Emitter(Names())
        self.out.like = "v"
        self.beside: list[tuple[Var, np.ndarray]] = []  # large constants: formals with their values
        self.around: dict[Any, tuple[Var, Any]] = {}  # what of outer definitions is mentioned
        self.inner: StagedLevel | None = None  # the definition inside this one, being written
        self.differentiated: set[Any] = (
            set()
        )  # functions that are called, in a differentiation here
        self.adopts = False  # whether values of differentiations around become formals
        self.literals = False  # large constants stand in the text too: there is nobody to give them
        self.shared = Shared()

    # --- definitions within the program ------------------------------------------------------

    @contextmanager
    def holding(self, level: "StagedLevel") -> Iterator[None]:
        """The block writes the definition `level`, which is used in this one."""
        level.shared = self.shared
        level.adopts = self.adopts
        self.inner = level
        try:
            yield
        finally:
            self.inner = None

    def innermost(self) -> "StagedLevel":
        """The definition that is being written now, this one or one inside it."""
        return self if self.inner is None else self.inner.innermost()

    def name_of_definition(self, like: str) -> str:
        """A name that no other definition has."""
        return self.shared.names(like)

    def add(self, *defs: Def) -> None:
        """More definitions of the program."""
        self.shared.defs |= {d.name: d for d in defs}

    def mark(self) -> Any:
        """The definitions so far."""
        return dict(self.shared.defs), dict(self.shared.called), self.shared.names.copy()

    def back_to(self, mark: Any) -> None:
        """Forget the definitions since."""
        defs, called, names = mark
        self.shared.defs, self.shared.called = dict(defs), dict(called)
        self.shared.names = names.copy()

    @property
    def called(self) -> dict[Any, Any]:
        """The functions that have a definition already."""
        return self.shared.called

    # --- values ------------------------------------------------------------------------------

    def formal(self, name: str, t: ArrayType, lay: Any = None) -> Any:
        """A formal, as the function sees it."""
        return self.wrap(self.out.box(self.out.fresh(name, t)), lay)

    def wrap(self, v: Any, lay: Any = None) -> Any:
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
        """An operand: a box, or what is constant."""
        a = a.now() if isinstance(a, Traced) else a
        if not isinstance(a, Traced):
            return self.constant(a) if isinstance(a, np.ndarray) else a
        if self.mine(a):
            return a.v
        if isinstance(a.level, StagedLevel) or self.adopts:
            return self.mention(a)
        raise LeakedVariableError(
            "a value of a differentiation around this trace was used in it; "
            "pass it as an argument of the traced function"
        )

    def as_box(self, value: Any) -> Boxed:
        """A value, or a constant, as a variable."""
        return as_box(self, self.entered(value) if isinstance(value, Traced) else value)

    def converted(self, b: Boxed, t: ArrayType) -> Boxed:
        """A variable in the dtype of a type."""
        return b if b.var.type == t else op("astype")(b, dtype=t.dtype)

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

    def mention(self, a: Any) -> Boxed:
        """A value of a definition around this one becomes one more formal."""
        key = a.v.var if isinstance(a.level, StagedLevel) else id(a)
        for v, kept in a.level.beside if isinstance(a.level, StagedLevel) else ():
            if v is key:
                return self.constant(kept)
        found = self.around.get(key)
        if found is None:
            name = key.name if isinstance(key, Var) else "w"
            found = self.around[key] = self.out.fresh(name or "x", type_of(a)), a
        return self.out.box(found[0])

    def parameter(self, value: Any) -> Any:
        """A parameter of a primitive, with variables for staged values in it."""
        if isinstance(value, Traced):
            return self.entered(value)
        if isinstance(value, tuple | list):
            return tuple([self.parameter(v) for v in value])
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            return self.constant(value)
        return value

    # --- applying primitives -------------------------------------------------------------------

    def apply(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        """Write an application down; of constants, evaluate it."""
        if not self.open:
            raise outlived()
        if self.inner is not None:
            return self.innermost().apply(primitive, args, params)
        if self.kinks is not None:
            return self.kinks.apply(self, primitive, args, params)
        if args and isinstance(args[0], StagedArray) and args[0].level is self:
            moved = args[0].moved(primitive.name, params)
            if moved is not None:
                return moved
        if isinstance(primitive, HigherOrder):
            return primitive.trace_staged(self, tuple(map(_settled, args)), params)
        if primitive.name in UNSIZED:
            raise StagingError(
                f"{primitive.name}: the shape of the result depends on staged values; "
                "keep the shape with np.where(condition, a, b), or count with a sum"
            )
        entered = tuple([self.entered(a) for a in args])
        given, params = params, {k: self.parameter(v) for k, v in params.items()}
        boxed = any([isinstance(a, Boxed) for a in entered]) or any(boxes(params))
        if not boxed:
            y = primitive(*entered, **params)
            return self.own(y) if type_of(y).shape else y
        try:
            y = self.out.interpret(primitive, entered, params)
            y = self.wrap(y, lay_of(primitive, args, given, y))
        except (ValueError, IndexError) as e:
            raise refused(primitive.name, entered, params, e) from None
        outside = primitive.name in _VIEWS and getattr(args[0], "level", self) is not self
        if outside and y.shape and not any(_arrays(params)):
            return self.derived(y, args[0])
        return y

    def constant_call(self, primitive: Constant, func: Any, args: tuple, kwargs: Any) -> Any:
        """A locally constant function of NumPy's: its operands, and its other arguments by name."""
        if self.inner is not None:
            return self.innermost().constant_call(primitive, func, args, kwargs)
        if isinstance(primitive, OfType):
            return func(*map(layout, args), **kwargs)
        operands, params = _operands(func, args, kwargs)
        return primitive(*operands, **params)

    # --- reading and writing arrays --------------------------------------------------------------

    def getitem(self, x: Array, at: Any) -> Any:
        """x[at] of an array that keeps its content."""
        return self.buffer(x)[at]

    def setitem(self, x: Array, at: Any, value: Any) -> None:
        """x[at] = value."""
        self.begin(x)
        x[at] = value

    def begin(self, x: Array) -> None:
        """Let x be written."""
        if not isinstance(x, Written):
            lay = x.lay
            x.__class__ = self.XW
            x.w = self.whole(x.v, lay)

    def assign_all(self, x: Array, value: Any) -> Any:
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

    def buffer(self, content: Any, lay: Any = None) -> Any:
        """An array that holds `content`, which lies in memory as it did, or so."""
        lay = strides_of(content) if lay is None else lay
        content = content.now() if isinstance(content, Traced) else content
        content = self.entered(content) if isinstance(content, Traced) else content
        if isinstance(content, np.ndarray):
            content, lay = laid_out(content, lay), None
        return self.handle(self.whole(content, lay))

    def whole(self, content: Any, lay: Any = None) -> Region:
        """All of a new array."""
        inside = [v.roots for v in threads.open if v.depth > self.depth]
        return Region.whole(Cell(self, content, inside, lay))

    def own(self, y: Any) -> Any:
        """A fresh array of constants, into which staged values may be written."""
        return y if type_of(y).dtype.kind not in "fc" else self.buffer(y)

    def handle(self, part: Any) -> Any:
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
        self.open = False


# --- what is asked of a value that is not there ---------------------------------------------------


_ASKS = {
    "bool": "bool() of a staged {t}: whether it is true is not known while a program is written; "
    "use np.where or np.maximum for a choice between values, lineara.cond for one between "
    "branches, and lineara.while_loop for a loop that ends on it",
    "int": "int() of a staged {t}: its value is not known while a program is written; "
    "use astype(int), or pass a Python int, which is a constant of the program",
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
    "values, and this one is not known while a program is written",
    "str": "a staged {t} was written as text, but its value is not known; print its type",
    "reduce": "a staged {t} cannot be pickled: it belongs to a trace that runs here",
}


def _refusal(name: str) -> Any:
    text = _ASKS[name]

    def refuse(n: Any, *_: Any, **__: Any) -> Any:
        if not n.level.open:
            raise outlived()
        if name == "array" and asks_who_multiplies(sys._getframe(1)):
            return in_object(n)
        raise StagingError(text.format(t=type_of(n)))

    return refuse


def _arrays(params: dict[str, Any]) -> Any:
    """Whether parts of an index are arrays, of which NumPy makes a copy."""
    at = params.get("at", ())
    return [isinstance(p, np.ndarray | Boxed) and p.shape for p in _parts(at)]


def _parts(at: Any) -> tuple[Any, ...]:
    return at if isinstance(at, tuple) else (at,)


def _settled(a: Any) -> Any:
    return a.now() if isinstance(a, Traced) else a


def _below(n: Any) -> Any:
    if not n.level.open:
        raise outlived()
    raise StagingError(
        f"the value of a staged {type_of(n)} was asked for, but it is not known while a program is "
        "written; use functions that have a rule, np.where, lineara.cond or lineara.while_loop"
    )


def _logical(name: str) -> Any:
    def method(n: Any, other: Any) -> Any:
        both = _is_bool(n) and _is_bool(other)
        return op(f"{'logical' if both else 'bitwise'}_{name}")(n, other)

    return method


def _shifts(name: str, shift: Any) -> dict[str, Any]:
    """The operators of a shift, with the number on either side."""
    return {f"__{name}__": lambda n, k: shift(n, k), f"__r{name}__": lambda n, k: shift(k, n)}


def _power(power: Any) -> Any:
    """The power; of booleans NumPy squares in another dtype than it raises in."""

    def method(n: Any, k: Any) -> Any:
        return op("square")(n) if type(k) is int and k == 2 and _is_bool(n) else power(n, k)

    return method


def _not_of_truths(name: str, body: dict[str, Any]) -> Any:
    """An operator that makes whole numbers of Python's truth values, and not of NumPy's."""
    act, works = body[f"__{name}__"], "np.logical_or(a, b)"
    works = "np.logical_not(a)" if name == "invert" else works

    def method(n: Any, *other: Any) -> Any:
        if _is_bool(n) and all([_is_bool(o) and not type_of(o).shape for o in other]):
            raise StagingError(
                f"{name.removeprefix('r')} of a staged bool[]: Python's truth values count as "
                "numbers there and NumPy's do not, and which they are is not known while a program "
                f"is written; use {works}, or a.astype(int)"
            )
        return act(n, *other)

    return method


def _is_bool(a: Any) -> bool:
    return type_of(a).dtype.kind == "b"


def _operands(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[list, dict[str, Any]]:
    """What a function works on, and what else it is told, where that is not its default."""
    if isinstance(func, np.ufunc):
        return list(args), kwargs
    signature = inspect.signature(func)
    operands, params = [], {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        formal = signature.parameters[name]
        if formal.kind is formal.VAR_POSITIONAL:
            operands.extend(value)
        elif formal.default is formal.empty and name != "kth":
            operands.append(value)
        elif value is not formal.default:
            params[name] = value
    return operands, params

"""A level: one differentiation that is open in one thread, with its tape and its own classes."""

import operator
import threading
from collections.abc import Callable, Sequence
from functools import cache, partialmethod
from types import FunctionType
from typing import Any

import numpy as np

from lineara.errors import LeakedVariableError
from lineara.facts.hints import Index, Shaped, Tree, Value
from lineara.facts.primitive import (
    Box,
    Constant,
    Elementwise,
    HigherOrder,
    Joint,
    Primitive,
    Recur,
    op,
)
from lineara.facts.types import is_complex, type_of
from lineara.ops.kinks import KINKS
from lineara.tape import codegen
from lineara.tape import number_kinds as kinds
from lineara.tape.keep_heap import keep_memory
from lineara.tape.locked_arrays import Locks
from lineara.tape.node import (
    ONE,
    Array,
    Entry,
    OfArray,
    Scalar,
    Traced,
    laid,
    leaked,
    outlived,
    refuse_found,
    refuse_own_rules,
    zero,
)
from lineara.tape.numpy_errors import refused
from lineara.tape.plans import GENERAL, by_plan
from lineara.tape.reads import (
    Reads,
    first_read,
    forget,
    permuted_view,
    read_array,
    read_int,
    read_slice,
    reshape_view,
    reshaped,
    snapshot,
    turned,
    whole_sum,
)
from lineara.tape.shared_memory import Overlaps
from lineara.tape.strides import copied, packed, strides_of
from lineara.tape.written_arrays import Part, Written, plain_operands, settled, version_of

NAMES = (
    type,
    float,
    int,
    complex,
    slice,
    ArithmeticError,
    TypeError,
    IndexError,
)  # what generated code may use of Python
ARITHMETIC = (ArithmeticError, ValueError)
COPY_BYTES = 64 * 1024  # a residual of the user's up to this size is copied, a larger one locked


class Level:
    """One open differentiation: a tape, and classes whose identity guards against confusion."""

    has_fast_path = True
    reading: Any = None  # how functions are read while this level is open
    has_numbers = False  # whether its scalars are numbers of every kind, Python's truth values too

    def __init__(self, depth: int, recur: Recur) -> None:
        keep_memory()
        self.depth = depth
        self.recur = recur  # transposes the text of a General primitive's jvp
        self.tape: list[Any] = CLOSED
        self.roots: list[Any] = []  # the nodes of the leaves
        self.overlaps: Overlaps = Overlaps()
        self.asked: list[bool] = []  # filled once a dict or a set was asked for a number
        self.unwritten: dict[int, np.ndarray] = {}  # by id: plain arrays that nobody writes
        self.locks: Locks = Locks()
        self.open: bool = False
        self.outer: Level | None = None  # the level around this one, in the same thread
        self.swept: bool = False  # the sweep has marked the nodes of the tape as leaked
        self.keep_copies: bool = False  # residuals outlive the trace: copy, do not lock
        self.plans: bool = (
            False  # whether calls may have a plan: not where each operation is watched
        )
        self.thread: int = threading.get_ident()
        self.kinks: Any = None  # what decides at kinks, in place of the defaults
        self.scopes: dict[str, dict[str, Any]] = {}  # what names mean in generated code, by class
        self.make_classes()

    def make_classes(self) -> None:
        """Make the classes of the level's values, with the generated code of the fast path."""
        common = {"level": self, "depth": self.depth, "__slots__": ()}
        # The names are those that Python's own TypeErrors show.
        self.S = type("TracedNumber", (Scalar,), common | kinds.pythons() | {"in_plans": "s"})
        self.N = type("TracedNumber", (Scalar,), common | kinds.of_numpy() | {"in_plans": "n"})
        self.of_arrays: dict[type, type] = {}
        self.X = type("TracedArray", (Array,), common | {"in_plans": "x"})
        common["in_plans"] = None
        self.SG = type(
            "TracedNumber", (self.S,), common | kinds.SLOW
        )  # scalars outside the fast path
        self.XG = type("TracedArray", (self.X,), dict(common))  # arrays outside the fast path
        common["in_plans"] = "w"
        self.XW = type("TracedArray", (Written, self.X), dict(common))  # arrays that were written
        self.scopes = codegen.functions(self.depth)
        self._bind_methods()

    def _bind_methods(self) -> None:
        """Give the classes the generated methods, over what their names mean at this level."""
        codes = method_codes_once(self.depth > 1)
        for kind, cls in (("N", self.N), ("S", self.S), ("X", self.X)):
            scope = self.scopes[kind]
            scope |= self._names()
            for name, code in codes[kind].items():
                function = FunctionType(code, scope)
                if kind == "N" and name.startswith("__"):
                    for s in "SN":
                        self.scopes[s][f"strong{name}"] = function
                setattr(cls, name, function)
                if not name.startswith(("__", "math_")):
                    setattr(cls, f"np_{name}", function)
        self.X.total = lambda x: whole_sum(self, x)  # type: ignore[attr-defined]  # made above
        views = {"T": property(lambda x: turned(self, x)), "reshape": _reshape(self)}
        for name, view in views.items():
            setattr(self.X, name, view)
            for slow in (self.XG, self.XW):
                setattr(slow, name, vars(Array)[name])
        for slow in (self.SG, self.XG, self.XW):
            for name, method in slow_methods().items():
                setattr(slow, name, method)
        for name in codegen.COMPARISONS:
            setattr(self.SG, f"__{name}__", partialmethod(codegen.compared, name=f"__{name}__"))
            for slow in (self.XG, self.XW):
                setattr(slow, f"__{name}__", vars(Array)[f"__{name}__"])
        for name in codes["X"].keys() - {"__getitem__"}:
            for known in (name, f"np_{name}"):
                if hasattr(self.X, known):
                    general = getattr(self.XW, known)
                    setattr(self.XW, known, settled(self.X, known, general))

    def _names(self) -> dict[str, Any]:
        """What generated code may mention beside functions."""
        return {
            "__builtins__": {v.__name__: v for v in NAMES},
            "ARITHMETIC": ARITHMETIC,
            "ONE": ONE,
            "absolute": abs,
            "asked": self.asked,
            "Reads": Reads,
            "N": self.N,
            "S": self.S,
            "X": self.X,
            "careful": self.careful,
            "compared": codegen.compared,
            "errstate": np.errstate,
            "false": np.False_,
            "first_read": first_read,
            "float64": np.float64,
            "general": codegen.general,
            "guard": self.guard,
            "is_complex": is_complex,
            "level": self,
            "ndarray": np.ndarray,
            "push": self.tape.append,
            "refuse_found": refuse_found,
            "read_array": read_array,
            "read_int": read_int,
            "read_slice": read_slice,
            "true": np.True_,
            "zero": zero,
        }

    def decide(self, kinks: Any) -> None:
        """Let the policy `kinks` see every operation and choose; None: the fast path, the defaults.

        math's functions have no method then: they go the way that raises as math does.
        """
        if self.has_fast_path and (kinks is None) != (self.kinks is None):
            if kinks is None:
                for cls in (self.S, self.N, self.X):
                    for name in self.kinks.comparisons:
                        delattr(cls, name)
                self._bind_methods()
            else:
                for cls, kind in ((self.S, "S"), (self.N, "N"), (self.X, "X")):
                    for name, method in slow_methods().items():
                        if not name.startswith("math_"):
                            setattr(cls, name, method)
                    for name in method_codes_once(self.depth > 1)[kind]:
                        if name.startswith("math_"):
                            delattr(cls, name)
                    for name, method in kinks.comparisons.items():
                        setattr(cls, name, method)
        self.kinks = kinks

    # --- making nodes ----------------------------------------------------------------------

    def scalar(self, v: Value, cls: type | None = None) -> Any:
        """A scalar node without edges."""
        o = (cls or self.S)()
        o.v = v
        o.a = o.b = None
        o.g = zero
        return o

    def of_array(self, number: Scalar) -> Any:
        """The number that an argument is which is an array without axes."""
        kind = type(number)
        if kind not in self.of_arrays:
            self.of_arrays[kind] = type(kind.__name__, (OfArray, kind), {"__slots__": ()})
        return self.scalar(number.v, self.of_arrays[kind])

    def array(self, v: Shaped, cls: type | None = None) -> Any:
        """An array node without edges."""
        o = (cls or self.X)()
        o.v = v
        o.a = o.b = o.g = o.k = None
        o.s = () if v is None else v.shape
        return o

    def wrap(self, v: Any) -> Any:
        """A node without edges for a value of any type."""
        if type(v) is float:
            return self.scalar(v)
        if isinstance(v, np.float64):
            return self.scalar(float(v), self.N)
        if isinstance(v, np.ndarray):
            if not v.ndim:
                return self.wrap(v[()])
            return self.array(v, self.X if v.dtype.kind == "f" else self.XG)
        if isinstance(v, Traced):
            v = v.now()
            real = v.dtype.kind == "f"
            if v.shape:
                return self.array(v, self.X if real else self.XG)
            if real and v.dtype == np.float64:
                return self.scalar(v, self.S if v.weak else self.N)
            return self.scalar(v, self.SG)
        return self.scalar(v, self.SG)

    def record(self, v: Shaped, parents: Sequence[Any], joint: Joint, name: str, work: int) -> Any:
        """A node whose linear map from its parents is `joint`."""
        o = self.wrap(v)
        self.tape.append(Entry(o, tuple(parents), joint, name, work))
        return o

    # --- applying primitives -----------------------------------------------------------------

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Evaluate one level below; record the linear map from the arguments of this level."""
        if not self.open:
            return self._after(primitive, args, params)
        if self.kinks is not None:
            return self.kinks.apply(self, primitive, args, params)
        if args and issubclass(type(args[0]), Written) and args[0].level is self:
            moved = args[0].moved(primitive.name, params)
            if moved is not None:
                return moved
        if isinstance(primitive, HigherOrder):
            settled = tuple([a.now() if isinstance(a, Traced) else a for a in args])
            return primitive.trace(self, settled, params)
        if any([issubclass(type(a), Written) for a in args]):
            operands = plain_operands(args)
            if operands is not None:
                return self._of_plain(primitive, operands, params)
        if self.plans and not primitive.view:
            y = by_plan(primitive, args, params)
            if y is not GENERAL:
                return y
        active, parents, values = [], [], []
        for i, a in enumerate(args):
            if isinstance(a, Traced):
                a = a.now()
                if self.mine(a):
                    active.append(i)
                    parents.append(a)
                    a = a.below()
                else:
                    a = snapshot(a)
            elif type(a) is np.ndarray:
                if a.dtype.kind == "O":
                    refuse_own_rules(primitive.name, a)
                a = self.guard(a) if primitive.keeps(i) else a
            elif isinstance(a, np.ndarray):
                refuse_own_rules(primitive.name, a)
            values.append(a)
        if isinstance(primitive, Constant):
            return primitive(*values, **params)
        active, values = tuple(active), tuple(values)
        for key, value in params.items():
            if isinstance(value, np.ndarray | tuple):
                params[key] = self.guard_deep(value)
        if not active:
            y = primitive(*values, **params)
            return self.own(y) if type_of(y).shape else y
        try:
            moved = self.moved(primitive, parents, params)
            if moved is not None:
                return moved
            y = primitive(*values, **params)
        except (ValueError, IndexError) as e:
            raise refused(primitive.name, values, params, e) from None
        if type_of(y).dtype.kind in "biu":
            return y
        joint = primitive.linearize(y, values, active, params, self.recur)
        if joint is None:
            return y
        work = primitive.work(y, values, params)
        return self.record(y, parents, joint, primitive.name, work)

    def _of_plain(self, primitive: Primitive, operands: list[Any], params: dict[str, Any]) -> Any:
        """An operation on arrays of this trace that hold constants only."""
        try:
            y = primitive(*operands, **params)
        except (ValueError, IndexError) as e:
            raise refused(primitive.name, operands, params, e) from None
        if type(y) is not np.ndarray:
            return y
        if any([type(v) is np.ndarray and np.may_share_memory(y, v) for v in operands]):
            y = y.copy(order="K")
        return y if isinstance(primitive, Constant) else self.own(y)

    def _after(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """After the trace, only constant arrays that were made in it may be used."""
        args = tuple([a.now() if isinstance(a, Traced) else a for a in args])
        if any([isinstance(a, Traced) and a.level is self for a in args]):
            raise outlived()
        return primitive(*args, **params)

    def join(self, items: Sequence[Any]) -> Any:
        """A vector of scalars, some of them traced at this level."""
        kinds = self.S, self.N
        places = [i for i, s in enumerate(items) if type(s) in kinds]
        values = [s.v if type(s) in kinds else s for s in items]
        boxed = any([isinstance(v, Box) for v in values])
        v = op("stack")(*values) if boxed else np.array(values, float)

        def forward(tangents: Sequence[Any]) -> Any:
            at = dict(zip(places, tangents, strict=True))
            parts = [at.get(i) for i in range(len(items))]
            if all([t is None for t in parts]):
                return None
            return op("stack")(*[0.0 if t is None else t for t in parts])

        def back(y_bar: np.ndarray) -> list[Any]:
            parts = y_bar.tolist() if type(y_bar) is np.ndarray else y_bar
            return [parts[i] for i in places]

        return self.record(v, [items[i] for i in places], Joint(forward, back), "stack", len(items))

    def moved(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """A view of the array, where the primitive only reorders its elements; else None."""
        if primitive.name == "reshape":
            return reshape_view(self, args[0], params["shape"]) if args[0].shape else None
        if primitive.name == "permute_dims":
            return permuted_view(self, args[0], params["axes"]) if args[0].shape else None
        if primitive.name == "sum" and not params["keepdims"]:
            whole = len(params["axis"]) == args[0].ndim and bool(args[0].ndim)
            return whole_sum(self, args[0]) if whole else None
        if primitive.name == "index":
            return read_array(self, args[0], params["at"])
        return None

    def mine(self, a: Value) -> bool:
        """Whether a value is traced at this level; one of a closed level is a leak."""
        if not isinstance(a, Traced):
            return False
        if a.level is self:
            return True
        if not a.level.open or a.level.thread != self.thread:
            raise LeakedVariableError(
                "a traced value of another differentiation, which has ended or runs in another "
                "thread, was used here; pass it as an argument, or take its value inside"
            )
        return False

    def of_numbers(self, name: str, act: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """An operator on numbers: Python's or NumPy's own arithmetic, which may raise or warn."""
        if not self.open:
            raise outlived()
        if not self.has_fast_path:
            return op(name)(*args)
        if self.kinks is not None and name in KINKS:
            return kinds.decided(name, act, args)
        active = tuple([i for i, a in enumerate(args) if self.mine(a)])
        values = tuple([a.below() if i in active else a for i, a in enumerate(args)])
        y, prim = act(*values), op(name)
        try:
            joint = prim.linearize(y, values, active, {}, self.recur)
        except ArithmeticError:  # of the derivative: 1/0 is infinite there
            typed = tuple(map(kinds.typed, values))
            with np.errstate(all="ignore"):
                joint = prim.linearize(kinds.typed(y), typed, active, {}, self.recur)
        return self.record(y, [args[i] for i in active], joint, name, 1)

    def alias(self, p: Scalar, weak: bool) -> Any:
        """The number p as Python's (weak) or as NumPy's."""
        if p.weak == weak or p.dtype.kind not in "fc":
            return p
        if weak and p.dtype.char not in "dD":
            p = op("astype")(p, dtype=np.result_type(p.dtype, np.float64))
        v = p.v
        if isinstance(v, Box) and not isinstance(v, Traced):
            return p  # a program does not tell Python's numbers from NumPy's
        if isinstance(v, Traced):
            v = v.level.alias(v, weak)
        elif p.dtype.kind == "c":
            v = complex(v) if weak else np.complex128(v)
        return self.revalued(p, v, self.S if weak else self.N)

    def revalued(self, p: Scalar, v: Any, kind: type | None = None) -> Any:
        """The node p with the value v, the same number but of Python's or of NumPy's kind."""
        if type(p) is not self.S and type(p) is not self.N:
            same = Joint(lambda tangents: tangents[0], lambda y_bar: [y_bar])
            return self.record(v, (p,), same, "astype", 1)
        o = self.scalar(v, kind or type(p))
        o.a, o.d = p, 1.0
        self.tape.append(o)
        return o

    def careful(self, p: Any, q: Any, name: str, y: Any = None, kind: Any = None) -> Any:
        """An operation that Python refuses and floating point does not: 1/0, log(0), exp(1e3).

        Of Python's numbers the value is refused, of NumPy's none; the weights never are.
        """
        if not self.open:
            raise outlived()
        args = (p,) if q is None else (p, q)
        values = [a.v if isinstance(a, Traced) and a.level is self else a for a in args]
        prim = op(name)
        assert isinstance(prim, Elementwise), f"careful: {name} is not elementwise"
        if q is not None:
            act = getattr(operator, codegen.OPERATORS[name])
            try:
                y = act(*(values if kind is self.S else map(kinds.typed, values)))
            except ArithmeticError as e:
                raise e from None
        typed = [kinds.typed(v) for v in values]
        traced = [i for i, a in enumerate(args) if isinstance(a, Traced) and a.level is self]
        with np.errstate(all="ignore"):
            weights = [prim.weights[i](kinds.typed(y), *typed) for i in traced]
        y, *weights = [v if isinstance(v, Box) else float(v) for v in (y, *weights)]
        o = self.scalar(y, kind)
        o.a, o.d = args[traced[0]], weights[0]
        if len(traced) > 1:
            o.b, o.e = args[traced[1]], weights[1]
        self.tape.append(o)
        return o

    # --- residuals that belong to the user ------------------------------------------------------

    def guard(self, a: np.ndarray, watch: bool = True) -> np.ndarray:
        """The user's array as a residual: a copy when small, else locked until the trace ends.

        An array that nobody writes is that residual.
        """
        if id(a) in self.unwritten:
            return a
        if a.nbytes <= COPY_BYTES or self.keep_copies:
            return copied(a)
        self.locks.take(a, watch)
        return a

    def guard_deep(self, value: Tree) -> Any:
        """Index arrays inside a tuple, guarded."""
        if isinstance(value, tuple):
            return tuple([self.guard_deep(v) for v in value])
        return self.guard(value) if isinstance(value, np.ndarray) else value

    # --- reading and writing arrays ---------------------------------------------------------------

    def getitem(self, x: Array, at: Index) -> Any:
        """x[at]: an element is registered with the array, a basic part is a view of it."""
        return read_array(self, x, at)

    def setitem(self, x: Array, at: Index, value: Value) -> None:
        """x[at] = value: the array turns into one that is written, and so do its views."""
        Written.begin(self, x)
        x[at] = value

    def begin(self, x: Array) -> None:
        """Turn x, its root and their views into arrays that see writes."""
        Written.begin(self, x)

    def assign_all(self, x: Array, value: Array) -> Any:
        """An in-place operation: x gets the value everywhere and stays the same object."""
        Written.begin(self, x)
        return x.assign_all(value)

    def copy(self, x: Array, order: str = "C") -> Any:
        """An array of its own that may be written."""
        node = x.now()
        if not (isinstance(node, Traced) and node.level is self):
            return self.own(node.copy(order=order))
        return self.handle(Part.of(self, node, packed(tuple(node.shape), strides_of(node), order)))

    def laid(self, x: Array, lay: tuple[int, ...]) -> Any:
        """A new array with the content of the node x and these strides."""
        v = laid(x.v, lay)
        if x.k is None:  # nobody has looked at it yet
            x.v = v
            return x
        return self.record(v, (x,), Joint(lambda ts: ts[0], lambda y_bar: [y_bar]), "copy", x.size)

    def derived(self, y: Array, source: Any) -> Any:
        """A result that is a view of `source` in NumPy: usable until one of them is written."""
        if not (isinstance(y, Traced) and y.level is self):
            return y
        array = self.buffer(y.now() if isinstance(y, Array) else y.typed())
        array.w.source = source, version_of(source)
        return array

    def own(self, y: Shaped) -> Any:
        """An array that nobody else holds, to be written at this and all outer levels."""
        if y.dtype.kind not in "fc":
            return y
        if self.outer is not None and not isinstance(y, Traced):
            y = self.outer.own(y)
        return self.handle(Part.of(self, y))

    def buffer(self, content: Shaped, lay: tuple[int, ...] | None = None) -> Any:
        """A written array that holds `content`, a plain array of this function's own or a node."""
        return self.handle(Part.of(self, content, lay))

    def handle(self, part: Part) -> Any:
        """A written array at a part of a buffer."""
        o = self.XW()
        o.v = o.a = o.b = o.g = o.k = None
        o.w = part
        return o

    # --- beginning and ending ---------------------------------------------------------------------

    def start(self, tape: list[Any] | None = None) -> None:
        """Begin a trace: operations are recorded from now on."""
        self.open = True
        self.plans = self.has_fast_path and tape is None
        self.tape = tape = [] if tape is None else tape
        for scope in self.scopes.values():
            scope["push"] = tape.append

    def close(self) -> None:
        """End the trace: escaped nodes raise from now on, the user's arrays are unlocked."""
        S, N, X = self.S, self.N, self.X
        for n in self.roots if self.swept else [*self.tape, *self.roots]:
            kind = type(n)
            if kind is S or kind is N or (kind is X and n.k is None):
                n.g = leaked
                continue
            n = n.out if issubclass(kind, Entry) else n
            clear(n, last=True)
            if not self.keep_copies and isinstance(n, Array) and n.k is not None:
                forget(n)
        self.roots = []
        if self.overlaps.indexed:
            self.overlaps.clear()
        elif self.overlaps.given:
            self.overlaps.given = []
        if self.asked:
            self.asked.clear()
        if self.unwritten:
            self.unwritten.clear()
        self.tape.clear()
        self.tape = CLOSED
        for scope in self.scopes.values():
            scope["push"] = REFUSED
        locks = self.locks
        if locks.arrays or locks.seen:
            locks.release()
        self.swept = locks.gave = self.keep_copies = self.open = self.plans = False


def _reshape(level: Level) -> Any:
    """The method of arrays on the fast path."""

    def reshape(x: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        y = reshaped(level, x, shape) if order == "C" and copy is None else None
        return Array.reshape(x, *shape, order=order, copy=copy) if y is None else y

    return reshape


class ClosedTape(list):
    """The tape of a level that is not open: what is recorded there is a leak."""

    def append(self, entry: object) -> None:
        """Refuse."""
        raise outlived()


CLOSED = ClosedTape()
REFUSED = CLOSED.append


def clear(n: Any, last: bool) -> None:
    """Empty a node's slot and those of its reads; after the last sweep, mark them as leaked."""
    scalar = issubclass(type(n), Scalar)
    n.g = leaked if last else zero if scalar else None
    if scalar or n.k is None:
        return
    n.k.pieces.clear()
    for o in n.k.sums:
        o.g = leaked if last else zero
    if type(n.k) is Reads:
        if last:
            n.k.memory = None
        for o in n.k.nodes:
            o.g = leaked if last else zero
        for o in n.k.views:
            o.g = leaked if last else None
            if o.k.pieces or o.k.sums:
                clear(o, last)


@cache
def method_codes_once(deep: bool) -> dict[str, dict[str, Any]]:
    """The generated code, made at the first level and at the first one inside another."""
    return codegen.method_codes(deep)


@cache
def _method_names() -> list[str]:
    """The names of the generated methods, which levels without these know as well."""
    texts = codegen.method_texts(deep=False)
    return sorted({*codegen.names(texts["S"]), *codegen.names(texts["X"])} - {"__getitem__"})


def slow_methods() -> dict[str, Any]:
    """For every generated method, the one that dispatches."""
    methods = {name: _slow(name) for name in _method_names()}
    plain = [n for n in methods if not n.startswith(("math_", "__"))]
    return methods | {f"np_{n}": methods[n] for n in plain}


class _Absent:
    """In place of a method that a class lacks: `math`'s functions then go the general way."""

    def __get__(self, value: Value | None, owner: type) -> Any:
        raise AttributeError("math's function of a number outside the fast path")


_ABSENT = _Absent()


def _slow(name: str) -> Any:
    """The method of a class outside the fast path: the primitive's own dispatch."""
    if name.startswith("math_"):
        return _ABSENT
    general_method = getattr(Traced, name, None)
    if name in ("__abs__", "__neg__"):
        assert general_method is not None, "Box has both"
        act, of = getattr(operator, name), {"__abs__": "abs", "__neg__": "negative"}[name]
        return lambda p: (
            p.level.of_numbers(of, act, (p,)) if isinstance(p, Scalar) else general_method(p)
        )
    return general_method or (lambda p: op(name)(p if p.shape else p.typed()))

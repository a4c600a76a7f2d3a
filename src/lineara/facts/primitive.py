"""A primitive is one declaration with one derivative fact; its kind derives every other rule.

    Elementwise    the partials, as data: called once, on symbols
    Linear         its transpose (jointly linear in the arguments `linear`)
    Structural     a Linear that only moves elements; it forms a pair with its transpose
    Multilinear    one transpose for each argument
    Constant       nothing: the derivative is zero
    General        its jvp, linear in the tangents; reverse mode is the transpose of that text
    HigherOrder    takes functions, and gets the pass as an argument (`recur`)

Every kind answers one question, `linearize`: the linear map from the tangents of the active
arguments to the tangent of the result, as a `Joint` (the map and its transpose).
"""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.box import ArrayBox, Box, Given, Joint, Outer, Own, Piece, innermost
from lineara.facts.fitting import conjugate, in_dtype, keep, real_part, total, unbroadcast
from lineara.facts.hints import Leaf, Namespace, Shaped, Tree, Value
from lineara.facts.registry import (
    follows,
    implements,
    op,
    refuses,
    refuses_rest,
    registry,
    stands_for,
)
from lineara.facts.symbol import Sym, exact_source, source
from lineara.facts.types import NUMPYS_OWN, ArrayType, broadcast, is_complex, sample, type_of

# What the families of primitives and the engines use beside the kinds.
__all__ = [
    "ArrayBox",
    "Box",
    "Given",
    "Joint",
    "Outer",
    "Own",
    "Piece",
    "Sym",
    "conjugate",
    "follows",
]
__all__ += ["implements", "innermost", "keep", "op", "real_part", "refuses", "refuses_rest"]
__all__ += ["registry", "source", "stands_for", "total", "unbroadcast"]

Args: TypeAlias = tuple[Any, ...]
Recur = Callable[..., "Joint"]
PROBES = (0.5, 1.25, 3.0)  # what other arguments are where the active ones are zero


class Primitive:
    """An operation with a type rule, an evaluation and one derivative fact."""

    linear: tuple[int, ...] | None = None  # the positions it is jointly linear in; None: every one
    raised: tuple[type[Exception], ...] = ()  # what it raises or warns of by the values it gets
    acts = False  # whether it does something beside giving a value: it is evaluated once, in order
    pythons = False  # whether it is Python's own on numbers, which need not be NumPy's
    part_of: tuple[Any, int] | None = None  # NumPy's function, and which result it is of that
    view = False  # whether NumPy shows the argument's own memory, and makes no array
    host = False  # whether NumPy, SciPy or Python alone evaluates it, whatever namespace is given

    def __init__(self, name: str, host: bool = False) -> None:
        assert name not in registry.primitives, f"the primitive {name} is declared twice"
        self.name = name
        self.host: bool = self.host or host
        registry.primitives[name] = self

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Evaluate, or let the innermost box interpret."""
        box = innermost(args)
        if box is None:
            return self.evaluate(np, *args, **params)
        return box.interpret(self, args, params)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> Any:
        return op, (self.name,)

    def result(self, *args: Any, **params: Any) -> Any:
        """The type of the result, from types (or values) of the arguments."""
        with np.errstate(all="ignore"):
            return type_of(self.evaluate(np, *map(_sample, args), **params))

    def misfit(self, y: ArrayType, *types: ArrayType, **params: Any) -> str | None:
        """What is wrong with a result of that type, where lengths that are variables could fit."""
        return None

    def evaluate(self, xp: Namespace, /, *args: Any, **params: Any) -> Any:
        """The value, in the array namespace `xp`: NumPy, or another of the array API standard."""
        return getattr(xp, self.name)(*args, **params)

    def text(self, *args: Any, **params: Any) -> str | None:
        """NumPy's expression of the value, shorter than the call of `evaluate`, where there is one.

        It is of arrays, over the names of the arguments and of the parameters.
        """
        return None

    def keeps(self, place: int) -> bool:
        """Whether a derivative reads the value of argument `place`: then it must not change."""
        return True

    def linear_in(self, active: Sequence[int], arity: int) -> Sequence[int] | str:
        """The places where zeros must be for it to be linear in the `active` ones of its arguments.

        Where it is not linear, why: it "reads" a value, or is "nonlinear".
        """
        return "nonlinear"

    def work(self, y: object, args: Args, params: dict[str, Any]) -> int:
        """Scalar operations of one evaluation, counted by the elements that are touched."""
        return max([getattr(v, "size", 1) for v in (y, *args)])

    def arithmetic(self, y: ArrayType, args: tuple[ArrayType, ...], params: dict[str, Any]) -> int:
        """W: the operations of one evaluation on real numbers, exactly; here, one for each."""
        return reals(y)

    def linearize(
        self, y: Value, args: Args, active: tuple[int, ...], params: dict[str, Any], recur: Recur
    ) -> Joint | None:
        """The linear map from the tangents of `args[active]` to the tangent of `y`."""
        raise NoRuleError(f"{self.name}: no derivative rule; declare it with another kind")

    def batch(self, args: Args, batched: tuple[bool, ...], params: dict[str, Any]) -> Any:
        """The primitive over a leading axis of the batched arguments: here, one by one."""
        size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
        rows = [
            self(*(a[i] if b else a for a, b in zip(args, batched, strict=True)), **params)
            for i in range(size)
        ]
        return op("stack")(*rows)


def reals(t: ArrayType) -> int:
    """How many real numbers an array is made of: two for each complex one."""
    return t.size * (1 + is_complex(t))


def lost(y: ArrayType, args: Sequence[ArrayType]) -> int:
    """How many real numbers more go in than come out: to forget one costs one."""
    return max(0, sum(map(reals, args)) - reals(y))


@lru_cache(4096, typed=True)
def _dtype(array: Callable[..., Any], *met: Any) -> np.dtype:
    """The dtype of a result of none of each dtype, and of Python's numbers."""
    none = [np.empty(0, m) if isinstance(m, np.dtype) else m for m in met]
    with np.errstate(all="ignore"):
        return NUMPYS_OWN[np.asarray(array(*none)).dtype]


def _sample(arg: object) -> Any:
    """A value of the type: zeros without memory."""
    return sample(arg) if isinstance(arg, ArrayType) else arg


def batch_size(args: Args, batched: tuple[bool, ...]) -> int:
    """The length of the leading axis that the batched arguments share."""
    return next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)


# --- the kinds -------------------------------------------------------------------------------


class Elementwise(Primitive):
    """Acts on each element; the fact is its partials, as expressions in y and the arguments.

    `scalar` and `array` evaluate it on numbers and on arrays; the defaults are the functions of
    that name in `math` and in NumPy. `conjugate` holds the partials with respect to the complex
    conjugates of the arguments, absent where the function is holomorphic; `wirtinger` the partials
    for complex arguments where those differ from the real ones. A primitive that `selects` has
    lanes that an argument does not reach: there the zero is structural. Over a ring whose products
    do not commute `sided` has, for each argument, the tangent of y for the tangent d of that one,
    with each factor on its side. In another namespace than
    NumPy's it is `elsewhere(xp, *args)`, by default that namespace's function of the name.
    """

    ARGS = ("x", "w", "u", "v", "z")

    def __init__(
        self,
        name: str,
        *partials: Callable[..., Any],
        scalar: str | None = None,
        array: Callable[..., Any] | None = None,
        conjugate: tuple[Callable[..., Any], ...] = (),
        wirtinger: tuple[Callable[..., Any], ...] = (),
        selects: bool = False,
        sided: tuple[Callable[..., Any], ...] = (),
        host: bool = False,
    ) -> None:
        super().__init__(name, host)
        self.sided = sided
        self.elsewhere: Callable[..., Any] | None = None
        self.same_as: Callable[[], Any] | None = None  # gives the ufunc that `array` calls
        self.arity: int = len(partials)
        self.array: Callable[..., Any] = getattr(np, name) if array is None else array
        self.scalar = scalar
        self.stated = partials
        self._wirtinger = wirtinger
        self._conjugate = conjugate
        self.selects = selects
        # Whether nodes have a method for it, where they have for any.
        self.inlined: bool = not selects
        if isinstance(self.array, np.ufunc):
            implements(self.array)(self)

    @property
    def ufunc(self) -> np.ufunc | None:
        """The ufunc that evaluates it on arrays, if one does."""
        f = self.array if self.same_as is None else self.same_as()
        return f if isinstance(f, np.ufunc) else None

    def expressions(self) -> list[Any]:
        """The partials, called on symbols; a constant partial is a number."""
        symbols = [Sym(a) for a in self.ARGS[: self.arity]]
        return [partial(Sym("y"), *symbols) for partial in self.stated]

    def _compile(self, stated: tuple[Callable[..., Any], ...]) -> list[Callable[..., Any]]:
        """Expressions compiled over primitives: functions of (y, *args)."""
        names = ("y", *self.ARGS[: self.arity])
        texts = [exact_source(partial(*map(Sym, names))) for partial in stated]
        return [eval(f"lambda {', '.join(names)}: {t}", dict(registry.primitives)) for t in texts]

    @cached_property
    def _kept(self) -> list[bool]:
        partials = [p for p in self.expressions() if isinstance(p, Sym)]
        return [any(p.reads(a) for p in partials) for a in self.ARGS[: self.arity]]

    def keeps(self, place: int) -> bool:
        """Whether a partial mentions the argument."""
        return self._kept[place]

    def linear_in(self, active: Sequence[int], arity: int) -> Sequence[int] | str:
        """Linear where no partial reads an active argument; without a constant, homogeneous."""
        partials, symbols = self.expressions(), ["y", *[self.ARGS[i] for i in active]]
        if any([p.reads(s) for i in active if isinstance(p := partials[i], Sym) for s in symbols]):
            return "nonlinear"
        if any([not isinstance(partials[i], Sym) and partials[i] == 0 for i in active]):
            return "reads"
        others = [i for i in range(arity) if i not in active]
        if np.any(self._probed(active, arity, 0.0)):
            return others
        once, twice = (self._probed(active, arity, x) for x in (3.5, 7.0))
        return () if np.allclose(twice, 2 * once, 1e-12) else "nonlinear"  # as a remainder

    def _probed(self, active: Sequence[int], arity: int, x: float) -> np.ndarray:
        """The values where the active arguments are x, for some of the others."""

        def value(k: float) -> Any:
            return self.array(*[x if i in active else k for i in range(arity)])

        with np.errstate(all="ignore"):
            try:
                return np.array([value(k) for k in PROBES])
            except TypeError:  # another argument is an integer
                return np.array([value(int(k)) for k in PROBES])

    @cached_property
    def weights(self) -> list[Callable[..., Any]]:
        """The partials, as functions of (y, *args) over primitives."""
        return self._compile(self.stated)

    @cached_property
    def complex_weights(self) -> list[tuple[Callable[..., Any], Callable[..., Any] | None]]:
        """For complex arguments: the partials and those with respect to the conjugates."""
        if not self._wirtinger:
            return [(w, None) for w in self.weights]
        pairs = zip(self._compile(self._wirtinger), self._compile(self._conjugate), strict=True)
        return list(pairs)

    def result(self, *args: Any, **params: Any) -> ArrayType:
        """Shapes broadcast; the dtype is what NumPy makes of none of each."""
        types = [*map(type_of, args)]
        try:
            shape = broadcast([t.shape for t in types])
        except ValueError:
            raise ShapeError(
                f"{self.name}: cannot broadcast {' with '.join(map(repr, types))}; "
                "trailing dimensions must be equal or 1"
            ) from None
        weak = (int, float, complex) if len(args) > 1 else ()
        met = [a if type(a) in weak else t.dtype for a, t in zip(args, types, strict=True)]
        return ArrayType(shape, _dtype(self.array, *met))

    def evaluate(self, xp: Namespace, /, *args: Any, **params: Any) -> Any:
        """NumPy for numbers and arrays, Python's own arithmetic for exact and foreign numbers."""
        if xp is not np:
            return self.elsewhere(xp, *args) if self.elsewhere else getattr(xp, self.name)(*args)
        if all(isinstance(a, np.ndarray | np.generic | float | int | complex) for a in args):
            return self.array(*args, **params)
        return self.on_objects(*args)

    def on_objects(self, *args: Any) -> Any:
        """Fractions, decimals, quantities: the operator, their own method, or `math`."""
        if self.scalar is not None and not any(hasattr(a, "__array_ufunc__") for a in args):
            return eval(self.scalar, {"math": math}, dict(zip(self.ARGS, args, strict=False)))
        own = getattr(args[0], self.name, None)
        if own is not None:
            return own(*args[1:])
        if any(hasattr(a, "__array_ufunc__") for a in args):
            return self.array(*args)
        return getattr(math, self.name)(*args)

    def linearize(
        self, y: Leaf, args: Args, active: tuple[int, ...], params: dict[str, Any], recur: Recur
    ) -> Joint:
        """y_dot = sum of w_i x_dot_i (+ v_i conj(x_dot_i) for complex x)."""
        del params, recur
        types = [type_of(args[i]) for i in active]
        out = type_of(y)
        pairs = self.coefficients(y, args, active, out.dtype)
        live = [None if not self.selects else w != 0 for w, _ in pairs]

        def forward(tangents: Sequence[Any]) -> Any:
            terms = []
            for (w, v), alive, t in zip(pairs, live, tangents, strict=True):
                if t is not None:
                    t = t if alive is None else keep(alive, t)
                    terms.append(t * w if v is None else t * w + conjugate(t) * v)
            y_dot = total(terms)
            if y_dot is None:
                return None
            if type_of(y_dot).shape != out.shape:
                y_dot = op("broadcast_to")(y_dot, shape=out.shape)
            if out.dtype.kind == "c" and not is_complex(y_dot):  # a real number meets a complex one
                y_dot = op("astype")(y_dot, dtype=out.dtype)
            return in_dtype(y_dot, out.dtype)

        def one(i: int, y_bar: Shaped) -> Any:
            w, v = pairs[i]
            y_bar = y_bar if live[i] is None else keep(live[i], y_bar)
            if v is None and type(w) is int and w in (1, -1):  # a sign is given to the sum
                x_bar = unbroadcast(y_bar, types[i])
                return x_bar if w == 1 else x_bar * w
            x_bar = y_bar * conjugate(w)
            return unbroadcast(x_bar if v is None else x_bar + conjugate(y_bar) * v, types[i])

        def back(y_bar: Shaped) -> list[Any]:
            return [one(i, y_bar) for i in range(len(pairs))]

        return Joint(forward, back)

    def coefficients(
        self, y: Any, args: Args, active: tuple[int, ...], dtype: np.dtype
    ) -> list[tuple[Any, Any]]:
        """The values of the partials and, for complex numbers, of those in the conjugates."""
        if dtype.kind in "fc":  # typed numbers, since Python's own raise where NumPy's are infinite
            y, *plain = [a.typed() if isinstance(a, Box) else a for a in (y, *args)]
            typed = enumerate(plain)
            args = tuple(
                [
                    self.literal(i, a, dtype).type(a) if type(a) in (int, float, bool) else a
                    for i, a in typed
                ]
            )
        elif dtype.kind == "O":  # Fractions: an int among them divides as they do
            args = tuple([exact(a, y) if type(a) is int else a for a in args])
        mixed = dtype.kind == "c" or any(is_complex(args[i]) for i in active)
        with np.errstate(all="ignore"):
            if not mixed:
                return [(_narrow(self.weights[i](y, *args), dtype), None) for i in active]
            rules = [self.complex_weights[i] for i in active]
            return [(w(y, *args), v and v(y, *args)) for w, v in rules]

    def literal(self, place: int, number: complex, dtype: np.dtype) -> np.dtype:
        """The dtype of a Python number in that place, where the result has `dtype`."""
        return dtype

    def batch(self, args: Args, batched: tuple[bool, ...], params: dict[str, Any]) -> Any:
        """Line the trailing axes up, so that broadcasting does the rest."""
        return self(*aligned(args, batched))


def exact(number: int, like: Tree) -> Any:
    """An int as a number of the kind of `like`, under whatever interpreters it is."""
    while isinstance(like, Box) and hasattr(like, "v"):
        like = like.v
    kind: Any = type(like)
    return kind(number)


def _narrow(weight: Shaped, dtype: np.dtype) -> Any:
    """A weight that was made of Python's numbers alone, in the precision of the result."""
    typed = isinstance(weight, np.ndarray | np.generic | Box)
    wide = typed and type_of(weight).dtype.itemsize > dtype.itemsize
    return weight.astype(dtype) if wide and dtype.kind == "f" else weight


def aligned(args: Args, batched: tuple[bool, ...]) -> list[Any]:
    """The arguments with unit axes after the batch axis, so that the others line up."""
    ranks = [len(type_of(a).shape) - b for a, b in zip(args, batched, strict=True)]
    return [_pad_rank(a, max(ranks)) if b else a for a, b in zip(args, batched, strict=True)]


def _pad_rank(a: Shaped, rank: int) -> Any:
    """Axes of length 1 after the leading one, so that the rest has `rank` axes."""
    missing = rank - (len(a.shape) - 1)
    return a if not missing else op("reshape")(a, shape=(a.shape[0], *(1,) * missing, *a.shape[1:]))


class Linear(Primitive):
    """Linear in the arguments `linear` jointly; the fact is its transpose.

    `transpose(y_bar, *args, **params)` gets the linear arguments as types and returns one
    cotangent for each of them (None for zero).
    """

    linear: tuple[int, ...] | None = (0,)

    def keeps(self, place: int) -> bool:
        """What it is linear in is not read; indices and conditions are."""
        return self.linear is not None and place not in self.linear

    def transpose(self, y_bar: Value, /, *args: Any, **params: Any) -> tuple[Any, ...]:
        """The transposed map."""
        raise NotImplementedError(self.name)

    def linearize(
        self, y: Value, args: Args, active: tuple[int, ...], params: dict[str, Any], recur: Recur
    ) -> Joint:
        """Itself on the tangents, and its transpose."""
        del recur
        places = tuple(range(len(args))) if self.linear is None else self.linear
        outside = set(active) - set(places)
        if outside:
            raise NoRuleError(
                f"{self.name}: no derivative with respect to argument {min(outside) + 1}, which "
                "says where or how, not what; give it a plain value"
            )
        typed = tuple(type_of(a) if i in places else a for i, a in enumerate(args))

        def forward(tangents: Sequence[Any]) -> Any:
            if all(t is None for t in tangents):
                return None
            at = dict(zip(active, tangents, strict=True))
            filled = list(args)
            for i in places:
                t = at.get(i)
                filled[i] = np.zeros(typed[i].shape, typed[i].dtype) if t is None else t
            return self(*filled, **params)

        def back(y_bar: Value) -> list[Any]:
            x_bars = dict(zip(places, self.transpose(y_bar, *typed, **params), strict=True))
            return [
                None if x_bars[i] is None else in_dtype(x_bars[i], typed[i].dtype) for i in active
            ]

        return Joint(forward, back)

    def linear_in(self, active: Sequence[int], arity: int) -> Sequence[int] | str:
        """Jointly linear: the other places of `linear` must hold zeros."""
        places = range(arity) if self.linear is None else self.linear
        outside = not set(active) <= set(places)
        return "nonlinear" if outside else [i for i in places if i not in active]


class Structural(Linear):
    """A Linear that only moves elements: index, reshape, concatenate, and their transposes."""

    def arithmetic(self, y: ArrayType, args: tuple[ArrayType, ...], params: dict[str, Any]) -> int:
        """Moving is free; forgetting is not."""
        return lost(y, args)


class Multilinear(Primitive):
    """Linear in each argument; the fact is one transpose for each.

    `transpose(i, y_bar, *args, **params)` gets argument i as its type and the others as values,
    conjugated when complex.
    """

    def transpose(self, place: int, y_bar: Value, /, *args: Any, **params: Any) -> Any:
        """The transpose with respect to argument `place`."""
        raise NotImplementedError(self.name)

    def builder(self, place: int, y_bar: Value, types: Sequence[ArrayType], args: Args) -> Any:
        """The same as a contribution that is summed later, where that is cheaper; else None."""
        return None

    def linearize(
        self, y: Value, args: Args, active: tuple[int, ...], params: dict[str, Any], recur: Recur
    ) -> Joint:
        """Itself with one argument replaced by its tangent, summed over the active ones."""
        del recur

        def forward(tangents: Sequence[Any]) -> Any:
            return total(
                [
                    self(*args[:i], t, *args[i + 1 :], **params)
                    for i, t in zip(active, tangents, strict=True)
                    if t is not None
                ]
            )

        def one(i: int, y_bar: Value) -> Any:
            late = self.builder(i, y_bar, types, args)
            if late is not None:
                return late
            others = [types[j] if j == i else conjugate(a) for j, a in enumerate(args)]
            return in_dtype(self.transpose(i, y_bar, *others, **params), types[i].dtype)

        types = [type_of(a) for a in args]
        return Joint(forward, lambda y_bar: [one(i, y_bar) for i in active])

    def linear_in(self, active: Sequence[int], arity: int) -> Sequence[int] | str:
        """Linear in one argument at a time."""
        return () if len(active) == 1 else "nonlinear"


class Constant(Primitive):
    """Locally constant: comparisons, rounding, positions. Traced arguments are read as values."""

    def linear_in(self, active: Sequence[int], arity: int) -> Sequence[int] | str:
        """In none: the value is read."""
        return "reads"

    def arithmetic(self, y: ArrayType, args: tuple[ArrayType, ...], params: dict[str, Any]) -> int:
        """Each element is looked at once."""
        return max([t.size for t in (y, *args)])

    def batch(self, args: Args, batched: tuple[bool, ...], params: dict[str, Any]) -> Any:
        """What compares or rounds elements does so whatever the axes are."""
        if isinstance(getattr(np, self.name, None), np.ufunc):
            return self(*aligned(args, batched), **params)
        return super().batch(args, batched, params)

    def keeps(self, place: int) -> bool:
        """There is no derivative that could."""
        return False


class OfType(Constant):
    """What the types of the arguments tell: a program has the answer in its place."""

    host = True

    def known(self, *args: Any, **params: Any) -> Any:
        """The answer, for arguments or types."""
        return self.evaluate(np, *[_sample(type_of(a)) for a in args], **params)

    def result(self, *args: Any, **params: Any) -> Any:
        """An error: no program asks at run time."""
        raise ShapeError(f"{self.name}: is known from the types; write {self.known(*args)} itself")


class General(Primitive):
    """The fact is its jvp, written with primitives and linear in the tangents.

    `jvp(y, primals, tangents, **params)`; a tangent that is None is zero.  In the arguments
    `linear` it is linear jointly, when the others are fixed.
    """

    linear: tuple[int, ...] | None = ()

    def jvp(self, *args: Any, **params: Any) -> Any:
        """The tangent of the result."""
        raise NotImplementedError(self.name)

    def linearize(
        self, y: Value, args: Args, active: tuple[int, ...], params: dict[str, Any], recur: Recur
    ) -> Joint:
        """The jvp, and the transpose of its text."""

        def of_tangents(*tangents: Any) -> Any:
            at = dict(zip(active, tangents, strict=True))
            return self.jvp(y, args, [at.get(i) for i in range(len(args))], **params)

        with np.errstate(all="ignore"):
            return recur(of_tangents, [type_of(args[i]) for i in active])

    def linear_in(self, active: Sequence[int], arity: int) -> Sequence[int] | str:
        """Linear in the arguments `linear`, jointly."""
        return () if set(active) <= set(self.linear or ()) else "nonlinear"


class HigherOrder(Primitive):
    """Takes functions among its parameters; its result may be a container.

    A level hands itself to these two in place of applying the primitive.
    """

    def trace(self, level: Any, args: Args, params: dict[str, Any]) -> Any:
        """Apply the primitive at a level: the values below, and the linear map recorded."""
        raise NotImplementedError(self.name)

    def trace_linear(self, level: Any, args: Args, params: dict[str, Any]) -> Any:
        """Apply the primitive at a level of types, to which it must be linear."""
        raise NotImplementedError(self.name)

    def trace_staged(self, level: Any, args: Args, params: dict[str, Any]) -> Any:
        """Apply the primitive at a level of variables of a program."""
        raise NotImplementedError(self.name)


# --- declaring --------------------------------------------------------------------------------


def elementwise(name: str, *partials: Callable[..., Any], **options: Any) -> Elementwise:
    """Declare an elementwise primitive by its partials.

    sinh = elementwise("sinh", lambda y, x: cosh(x))
    """
    for i, partial in enumerate(partials):
        count = len(inspect.signature(partial).parameters)
        arity = len(partials)
        assert count == arity + 1, f"{name}: partial {i} must take (y, *{arity} args)"
    named = "array" in options or hasattr(np, name)
    assert named, f"elementwise: there is no np.{name}: give array="
    return Elementwise(name, *partials, **options)


def primitive(cls: type) -> Any:
    """Declare the primitive of this class, under the class' name."""
    return cls(cls.__name__.rstrip("_"))

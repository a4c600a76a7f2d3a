"""Power series as operands of rules: a derivative fact gives every coefficient from those before.

    along x(t):   y'(t) = f'(x(t)) x'(t),   so   k y_k = [f'(x(t)) x'(t)]_{k-1}

f' is the primitive's own fact, its `linearize`, which is run on series.  What it applies to them is
a series again, of which a coefficient is computed when it is asked for, and once: the k-th one of a
derivative asks for those of y below k only, so the equation is solved as it is evaluated.

    linear in what moves      each coefficient by itself                    K operations
    multilinear, x * w        the sum over i + j = k of y(x_i, w_j)         K^2
    x / w                     solved for y in  w y = x                      K^2
    any other                 the equation above                            K^2 where its expression
        has functions of finitely many arguments; K^3 where each derivative brings a new function

[Griewank and Walther, Evaluating Derivatives, ch. 13.2]
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.box import Joint
from lineara.facts.hints import Shaped, Value
from lineara.facts.operand import Operand
from lineara.facts.primitive import Constant, Elementwise, Multilinear, OfType, Primitive
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, carries_tangents, type_of

MOST = 20_000  # series that one operation may make
NUMBERS = (bool, int, float, complex, np.bool_, np.number)
Coefficient = Any  # an array or a number; None is zero
Term = tuple[Coefficient, ...]


class Series(Operand):
    """x_0 + x_1 t + x_2 t^2 + ...; each coefficient is computed when it is first asked for."""

    __slots__ = ("coefficients", "compute", "run", "slope", "still")

    def __init__(
        self, run: "Run", t: ArrayType, compute: Callable[[int], Coefficient], still: bool = False
    ) -> None:
        self.run: Run = run
        self.type = t
        self.compute: Callable[[int], Coefficient] = compute
        self.still: bool = still  # whether it is its first coefficient alone
        self.coefficients: list[Coefficient] = []
        self.slope: Series | None = None

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The series that an operation gives, which is made once."""
        return self.run.apply(primitive, args, params)

    def at(self, k: int) -> Coefficient:
        """Coefficient k; None for zero."""
        if self.still and k:
            return None
        while len(self.coefficients) <= k:
            self.coefficients.append(self._fitted(self.compute(len(self.coefficients))))
        return self.coefficients[k]

    def _fitted(self, c: Coefficient) -> Coefficient:
        """A coefficient in the shape and dtype of all of them."""
        if c is None:
            return None
        t = type_of(c)
        c = c if t.shape == self.shape else op("broadcast_to")(c, shape=self.shape)
        return c if t.dtype == self.dtype else op("astype")(c, dtype=self.dtype)

    @property
    def first(self) -> Any:
        """The leading coefficient, zeros among them."""
        c = self.at(0)
        return np.zeros(self.shape, self.dtype) if c is None else c

    def derivative(self) -> "Series":
        """x_1 + 2 x_2 t + 3 x_3 t^2 + ..."""
        if self.slope is None:
            self.slope = Series(self.run, self.type, self._of_slope)
        return self.slope

    def _of_slope(self, k: int) -> Coefficient:
        c = self.at(k + 1)
        return c if c is None or k == 0 else c * (k + 1)

    def whole(self, order: int) -> Any:
        """The coefficients up to an order in one array, on an axis in front."""
        cs = [self.at(k) for k in range(order + 1)]
        zero = np.zeros(self.shape, self.dtype)
        return op("stack")(*[zero if c is None else c for c in cs])


class Run:
    """The series of one operation: what is applied twice to the same is one series."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: dict[Any, Any] = {}
        self.kept: list[Any] = []  # what keys name by identity

    def given(self, rows: Shaped, order: int) -> Series:
        """The series of which an array has the coefficients; one for each array."""
        if id(rows) not in self.known:
            t = type_of(rows)
            t = ArrayType(t.shape[1:], t.dtype)
            self.known[id(rows)] = Series(self, t, lambda k: rows[k] if k <= order else None)
        return self.known[id(rows)]

    def still(self, value: Value) -> Series:
        """The series of a constant."""
        return Series(self, type_of(value), lambda k: value, still=True)

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The series of a result; the same one for the same arguments."""
        params = _positions(params)
        key = self._key(primitive, args, params)
        if key not in self.known:
            if len(self.known) > MOST:
                raise NoRuleError(
                    f"taylor: each derivative of {self.name} brings new functions, more than "
                    f"{MOST}; ask for a lower order, or write the argument that does not move as "
                    "a number"
                )
            self.known[key] = self._applied(primitive, args, params)
        return self.known[key]

    def _key(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        self.kept.append((args, params))
        named = [(type(a), repr(a)) if isinstance(a, NUMBERS) else id(a) for a in args]
        values: Any = tuple(params.items())
        try:
            hash(values)
        except TypeError:
            values = id(params)
        return primitive, tuple(named), values

    def _applied(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if isinstance(primitive, OfType):
            return primitive.known(*args, **params)
        if primitive.name == "where" and isinstance(args[0], bool | np.bool_):
            return args[1 if args[0] else 2]
        known = self._same(primitive, args)
        if known is not None:
            return known
        active = tuple([i for i, a in enumerate(args) if isinstance(a, Series) and not a.still])

        def value(k: int) -> Coefficient:
            return primitive(*map(first, args), **params)

        if any([isinstance(v, Operand) for v in _flat(params)]):
            t = type_of(value(0))  # a type does not say where positions are
        else:
            types = [a.type if isinstance(a, Series) else a for a in args]
            t = type_of(primitive.result(*types, **params))
        constant = isinstance(primitive, Constant) or not carries_tangents(t.dtype)
        if constant or not active:
            return Series(self, t, value, still=True)
        return _Applied(self, t, primitive, args, active, params)

    def _same(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        """What two laws say a result is, so that derivatives bring no new function each time.

        -(-x) is x; and x^c is x^(c+1) / x where that is known, and x^c is infinite at 0.
        """
        x = args[0]
        if primitive.name == "negative" and isinstance(x, _Applied) and x.primitive is primitive:
            return x.args[0]
        c = args[1] if primitive.name == "power" else None
        if not isinstance(c, float | np.floating) or c >= -1:
            return None
        above = self.known.get(self._key(primitive, (x, c + 1), {}))
        return None if above is None else op("divide")(above, x)


class _Applied(Series):
    """What a primitive gives for series, some of which move."""

    __slots__ = ("active", "args", "base", "params", "primitive", "speed")

    def __init__(
        self,
        run: Run,
        t: ArrayType,
        primitive: Primitive,
        args: tuple[Any, ...],
        active: tuple[int, ...],
        params: dict[str, Any],
    ) -> None:
        super().__init__(run, t, self._value)
        self.primitive = primitive
        self.args = args
        self.active = active
        self.params = params
        self.speed: Any = None
        # Python's operators are those of arrays, but for the value of numbers
        self.base: Primitive = getattr(primitive, "base", primitive)
        if not isinstance(primitive.linear_in(active, len(args)), str):
            self.compute = self._mapped
        elif isinstance(primitive, Multilinear) or self.base is op("multiply"):
            self.compute = self._convolved
        elif self.base is op("divide"):
            self.compute = self._quotient
        else:
            self.compute = self._integrated

    def _value(self, k: int) -> Coefficient:
        """The primitive of the leading coefficients."""
        return self.primitive(*map(first, self.args), **self.params)

    def _mapped(self, k: int) -> Coefficient:
        """The derivative is the same all along."""
        if not k:
            return self._value(0)
        if self.speed is None:
            args = tuple(
                [a if i in self.active else first(a) for i, a in enumerate(self.args)]
                if not isinstance(self.primitive, Elementwise)
                else map(first, self.args)
            )
            self.speed = self._joint(self.at(0), args)
        return self.speed.forward([self.args[i].at(k) for i in self.active])

    def _convolved(self, k: int) -> Coefficient:
        """The products of coefficients whose places add up to k."""
        if not k:
            return self._value(0)
        moving = [self.args[i] for i in self.active]
        terms = []
        for places in _adding_to(k, len(moving)):
            at = zip(self.active, moving, places, strict=True)
            cs = {i: x.at(j) for i, x, j in at}
            terms.append(tuple([cs[i] if i in cs else first(a) for i, a in enumerate(self.args)]))
        flags = tuple([i in self.active for i in range(len(self.args))])
        return _sum(self.base, terms, flags, self.params)

    def _quotient(self, k: int) -> Coefficient:
        """y_k of  w y = x."""
        if not k:
            return self._value(0)
        x, w = self.args
        terms = [(w.at(j), self.coefficients[k - j]) for j in range(1, k + 1)]
        back = _sum(op("multiply"), terms, (True, True), {})
        rest = x.at(k) if isinstance(x, Series) else None
        if back is not None:
            rest = -back if rest is None else rest - back
        return None if rest is None else rest / w.first

    def _integrated(self, k: int) -> Coefficient:
        """k y_k is coefficient k - 1 of the derivative."""
        if not k:
            return self._value(0)
        if self.speed is None:
            self.speed = self._joint(self, self.args).forward(
                [self.args[i].derivative() for i in self.active]
            )
        return integrated(self.speed, k) if isinstance(self.speed, Series) else None

    def _joint(self, y: Value, args: tuple[Any, ...]) -> Joint:
        """The derivative, from the primitive's one fact."""

        def recur(of_tangents: Callable[..., Any], types: list[Any]) -> Joint:
            return Joint(lambda tangents: of_tangents(*tangents), _no_transpose)

        with np.errstate(all="ignore"):
            joint = self.primitive.linearize(y, args, self.active, self.params, recur)
        return Joint(lambda ts: None, _no_transpose) if joint is None else joint


def integrated(slope: Series, k: int) -> Coefficient:
    """Coefficient k > 0 of the series that has this derivative."""
    c = slope.at(k - 1)
    return c if c is None or k == 1 else c * (1 / k)


def first(a: Any) -> Any:
    """The leading coefficient of a series; a plain value itself."""
    return a.first if isinstance(a, Series) else a


def _positions(params: Any) -> Any:
    """Parameters with the leading coefficients of series: positions do not move."""
    if isinstance(params, dict):
        return {k: _positions(v) for k, v in params.items()} if params else params
    if isinstance(params, slice):
        return slice(*map(_positions, (params.start, params.stop, params.step)))
    return tuple(map(_positions, params)) if type(params) is tuple else first(params)


def _flat(params: Any) -> Iterator[Any]:
    """The values in parameters."""
    if isinstance(params, dict):
        params = tuple(params.values())
    if isinstance(params, slice):
        params = (params.start, params.stop, params.step)
    if type(params) is tuple:
        for v in params:
            yield from _flat(v)
    else:
        yield params


def _adding_to(k: int, n: int) -> list[tuple[int, ...]]:
    """The n whole numbers that add up to k, in every way."""
    heads = itertools.product(range(k + 1), repeat=n - 1)
    return [(*head, k - sum(head)) for head in heads if sum(head) <= k]


def _sum(
    primitive: Primitive, terms: Sequence[Term], flags: tuple[bool, ...], params: dict[str, Any]
) -> Coefficient:
    """The sum of a multilinear primitive of the terms; those that have a zero count for nothing.

    Many of them are one operation on arrays with an axis in front, and one sum.
    """
    terms = [t for t in terms if not any([c is None for c in t])]
    if len(terms) < 3:
        values = [primitive(*t, **params) for t in terms]
        return None if not values else values[0] if len(values) == 1 else values[0] + values[1]
    columns = zip(*terms, strict=True)
    args = tuple([op("stack")(*c) if f else c[0] for c, f in zip(columns, flags, strict=True)])
    return op("sum")(primitive.batch(args, flags, params), axis=(0,), keepdims=False)


def _no_transpose(y_bar: Value) -> Any:
    raise AssertionError("a series asks no rule for its transpose")


def coefficients(
    primitive: Primitive,
    args: Sequence[Any],
    moves: Sequence[bool],
    params: dict[str, Any],
    order: int,
) -> Any:
    """The coefficients of a primitive's result, in one array with an axis in front.

    An argument that `moves` is such an array; another one is a value, or a plain number.

    >>> from lineara.facts.registry import op
    >>> coefficients(op("exp"), [np.array([0.0, 1.0, 0.0, 0.0])], [True], {}, 3)
    array([1.        , 1.        , 0.5       , 0.16666667])
    """
    active = tuple([i for i, m in enumerate(moves) if m])
    still = not isinstance(primitive.linear_in(active, len(args)), str)
    if isinstance(primitive, Elementwise) and order > 1 and still:
        rows = _linear_rows(primitive, args, active)
        if rows is not None:
            return rows
    run = Run(primitive.name)
    given = [
        run.given(a, order) if m else a if isinstance(a, NUMBERS) else run.still(a)
        for a, m in zip(args, moves, strict=True)
    ]
    y = run.apply(primitive, tuple(given), params)
    return y.whole(order)


def _linear_rows(primitive: Elementwise, args: Sequence[Any], active: tuple[int, ...]) -> Any:
    """The coefficients where the partials are the same all along, all after the first at once.

    None where a partial says which lanes count, or there is one for the conjugate.
    """
    firsts = tuple([a[0] if i in active else a for i, a in enumerate(args)])
    y = primitive(*firsts)
    t = type_of(y)
    pairs = primitive.coefficients(y, firsts, active, t.dtype)
    if primitive.selects or any([v is not None for _, v in pairs]):
        return None
    rest = None
    for i, (w, _) in zip(active, pairs, strict=True):
        term = args[i][1:]
        if type(w) is not int or w != 1:
            term = op("multiply").batch((term, w), (True, False), {})
        rest = term if rest is None else op("add").batch((rest, term), (True, True), {})
    if type_of(rest).shape[1:] != t.shape:
        rest = op("broadcast_to").batch((rest,), (True,), {"shape": t.shape})
    rest = rest if type_of(rest).dtype == t.dtype else op("astype")(rest, dtype=t.dtype)
    return op("concat")(op("reshape")(y, shape=(1, *t.shape)), rest, axis=0)


__all__ = ["NUMBERS", "Run", "Series", "coefficients", "first", "integrated"]

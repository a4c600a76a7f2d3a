"""Between terms and numbers: what a function symbol gives, and its derivative both ways."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lineara.calculus import terms as tm
from lineara.calculus.machine import Machine, no_infinity
from lineara.calculus.symbols import Symbol
from lineara.calculus.types import Dual, Product, R, Type
from lineara.calculus.values import Along, Both, Closure, Number, is_number


def numbers_of(v: tm.Term) -> list[Any]:
    """The numbers in a value of R^n, in order; a zero counts as what it stands for.

    >>> numbers_of(tm.Pair((tm.num(1), tm.Pair((tm.num(2), tm.num(3))))))
    [1.0, 2.0, 3.0]
    """
    match v:
        case tm.Literal(_, held):
            return [held]
        case tm.Pair((a, b)) | tm.Copair((a, b)):
            return numbers_of(a) + numbers_of(b)
        case tm.Covec((a,)):
            return numbers_of(a)
    assert isinstance(v, tm.Zero)
    return [0.0] * _width(v.type)


def _width(t: Type) -> int:
    if isinstance(t, Product):
        return _width(t.left) + _width(t.right)
    return _width(t.of) if isinstance(t, Dual) else 1


def structure(numbers: list[Any], t: Type) -> tm.Term:
    """Numbers as a value of a product of R, or the one value there is."""
    return _structure(iter(numbers), t)


def _structure(numbers: Iterator[Any], t: Type) -> tm.Term:
    if not isinstance(t, Product):
        held = next(numbers)
        return tm.num(held) if t == R and type(held) is not tm.ZeroTangent else tm.Literal((), held)
    return tm.Pair((_structure(numbers, t.left), _structure(numbers, t.right)))


def symbol_value(symbol: Symbol, args: list[Any]) -> list[Any]:
    """f at numbers; of a declared symbol, by the machine.

    A product with what is zero by structure is so too.
    """
    if symbol.name == "multiply" and any([type(a) is tm.ZeroTangent for a in args]):
        return [tm.ZeroTangent(0.0)]
    if symbol.body is not None:
        m = Machine()
        return _flat(m.apply_to(Closure(symbol.body, {}), _nested(args, symbol.takes)))
    try:
        with np.errstate(all="ignore"):
            numbers = args if symbol.exact is not None else [np.float64(a) for a in args]
            y = symbol.evaluate(numbers)
    except ZeroDivisionError:
        raise no_infinity(symbol, args) from None
    return [y if isinstance(y, bool | int) else float(y)]


def symbol_jvp(symbol: Symbol, args: list[Any], tangents: list[Any]) -> list[Any]:
    """Jf at numbers, along others; what is zero by structure meets no partial."""
    if symbol.name == "multiply":  # the partial in one factor is the other
        pairs = zip(tangents, reversed(args), strict=True)
        tangents = [tm.ZeroTangent(0.0) if type(w) is tm.ZeroTangent else t for t, w in pairs]
    if all([type(t) is tm.ZeroTangent for t in tangents]):
        return [tm.ZeroTangent(0.0)] * _width(symbol.gives)
    if symbol.body is not None:
        along = Along(Closure(symbol.body, {}), _nested(tangents, symbol.takes))
        return _flat(Machine().apply_to(along, _nested(args, symbol.takes)))
    with np.errstate(all="ignore"):
        return [symbol.jvp(args, [None if type(t) is tm.ZeroTangent else t for t in tangents])]


def covector(symbol: Symbol, r: tm.Term, k: tm.Term) -> tm.Term:
    """Jf(r)^T k, as a canonical functional."""
    args, bars = numbers_of(r), numbers_of(k)
    if symbol.body is not None:
        f = Closure(symbol.body, {})
        at, k = _nested(args, symbol.takes), _functional(iter(bars), symbol.gives)
        cotangents = Machine().gradient_of(f, at, symbol.takes, k)
        return _covector(iter(_flat(cotangents)), symbol.takes)
    with np.errstate(all="ignore"):
        cotangents = symbol.vjp(args, *bars)
    if symbol.name == "multiply":
        pairs = zip(cotangents, reversed(args), strict=True)
        cotangents = [None if type(w) is tm.ZeroTangent else x for x, w in pairs]
    return _covector(iter(cotangents), symbol.takes)


def _covector(numbers: Iterator[Any], t: Type) -> tm.Term:
    if not isinstance(t, Product):
        number = next(numbers)
        return tm.Zero((), Dual(R)) if number is None else tm.Covec((tm.num(number),))
    return tm.Copair((_covector(numbers, t.left), _covector(numbers, t.right)))


# --- as the machine holds them --------------------------------------------------------------------


def _nested(numbers: list[Any], t: Type) -> Any:
    """The numbers as a value of the type."""
    return _held(iter(numbers), t)


def _held(numbers: Iterator[Any], t: Type) -> Any:
    if not isinstance(t, Product):
        return next(numbers)
    return _held(numbers, t.left), _held(numbers, t.right)


def _functional(numbers: Iterator[Any], t: Type) -> Any:
    if not isinstance(t, Product):
        return Number(next(numbers))
    return Both(_functional(numbers, t.left), _functional(numbers, t.right))


def _flat(value: Any) -> list[Any]:
    """The numbers of a vector or functional."""
    if isinstance(value, Number):
        return [value.r]
    return [value] if is_number(value) else [x for part in value for x in _flat(part)]

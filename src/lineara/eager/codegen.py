"""Node methods generated from the primitives' partials: the fast path, one text an operation.

The text of a method is compiled once. A level binds it to its own classes and to the functions of
its depth: `math` and NumPy at the outermost level, the dispatching primitives further in.  Scalars
raise ArithmeticError or ValueError where floating point has an infinity or a NaN; the careful
method then takes NumPy's word for it.
"""

import math
import operator
from collections.abc import Callable
from datetime import timedelta
from numbers import Number
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from lineara.eager.node import Traced, has_priority
from lineara.eager.points import Span, answers_itself, operated
from lineara.errors import ShapeError, TypeMismatchError
from lineara.ops.shape import as_array
from lineara.ops.sparse_matrix import is_sparse
from lineara.ops.sparse_values import between
from lineara.primitive import Box, Elementwise, Sym, op, registry, source
from lineara.types import type_of

OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv"}
OPERATORS |= {"power": "pow", "remainder": "mod"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
SYMBOL = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "**",
    "remainder": "%",
}
SILENT = ("sign", "conj", "sin", "cos", "sinh", "cosh", "exp")  # partials as tame as the values

TERNARY = "({1} if {0} else {2})"

SCALAR_END = """    o.a = p
    o.b = None
    o.g = zero
    push(o)
    return o
"""

ARRAY_END = """    o.a = p
    o.b = None
    o.g = None
    o.k = None
    o.s = p.s
    push(o)
    return o
"""

UNARY_SCALAR = (
    '''
def {name}(p):
    """As np.{name}, traced."""
    x = p.v
    o = S()
    try:
        o.v = y = {value}
        o.d = {partial}
    except ARITHMETIC:
        return careful(p, None, "{name}")
'''
    + SCALAR_END
)

MATH_SCALAR = (
    '''
def math_{name}(p):
    """As math.{name}, traced: raises where it does."""
    x = p.v
    y = {value}
    o = S()
    o.v = y
    try:
        o.d = {partial}
    except ARITHMETIC:
        return careful(p, None, "{name}")
'''
    + SCALAR_END
)

BINARY_SCALAR = """
def {name}(p, q):
    t = type(q)
    x = p.v
    o = S()
    try:
        if t is S:
            w = q.v
            o.v = y = {value}{check}
            o.d = {left}
            o.b = q
            o.e = {right}
        elif t is float or t is int:
            w = q
            o.v = y = {value}{check}
            o.d = {left}
            o.b = None
        else:
            return general(p, q, "{prim}")
    except ARITHMETIC:
        return careful(p, q, "{prim}")
    o.a = p
    o.g = zero
    push(o)
    return o
"""

REFLECTED_SCALAR = """
def {name}(p, q):
    t = type(q)
    if t is not float and t is not int:
        return general(q, p, "{prim}")
    x = q
    w = p.v
    o = S()
    try:
        o.v = y = {value}{check}
        o.d = {right}
    except ARITHMETIC:
        return careful(q, p, "{prim}")
    o.a = p
    o.b = None
    o.g = zero
    push(o)
    return o
"""

UNARY_ARRAY = (
    '''
def {name}(p):
    """As np.{name}, traced."""
    x = p.v
    o = X()
    o.v = y = {value}
    try:
        {quiet}o.d = {partial}
    except ARITHMETIC:  # an underflow, where the user asked for errors
        with errstate(all='ignore'): o.d = {partial}
'''
    + ARRAY_END
)

BINARY_ARRAY = """
def {name}(p, q):
    t = type(q)
    x = p.v
    if t is X:
        s = p.s
        if s is not q.s and s != q.s:
            return general(p, q, "{prim}")
        w = q.v
        o = X()
        o.v = y = {value}
        {quiet}o.d = {left}; o.e = {right}
        o.b = q
    elif {number}:
        w = q
        o = X()
        o.v = y = {value}
        {quiet}o.d = {left}
        o.b = None
    elif t is ndarray and q.shape == p.s and q.dtype.kind in "fiu":
        w = {guard}
        o = X()
        o.v = y = {value}
        {quiet}o.d = {left}
        o.b = None
    else:
        return general(p, q, "{prim}")
    o.a = p
    o.g = None
    o.k = None
    o.s = p.s
    push(o)
    return o
"""

REFLECTED_ARRAY = """
def {name}(p, q):
    t = type(q)
    w = p.v
    if t is float or t is int:
        x = q
    elif t is ndarray and q.shape == p.s and q.dtype.kind in "fiu":
        x = {guard}
    else:
        return general(q, p, "{prim}")
    o = X()
    o.v = y = {value}
    {quiet}o.d = {right}
    o.a = p
    o.b = None
    o.g = None
    o.k = None
    o.s = p.s
    push(o)
    return o
"""

READ = """
def __getitem__(p, at):
    if type(at) is int:
        k = p.k
        if k is None:
            k = first_read(p)
        if type(k) is Reads:
            o = S()
            try:
                o.v = k.memory[at]
            except (TypeError, IndexError):
                return read_int(level, p, at)
            o.g = zero
            k.places.append(at)
            k.nodes.append(o)
            return o
        return read_int(level, p, at)
    if type(at) is slice:
        return read_slice(level, p, at)
    return read_array(level, p, at)
"""

COMPARE = """
def {name}(p, q):
    r = p.v {symbol} (q.v if type(q) is S else q)
    return r if r is not True and r is not False else true if r else false
"""


def _value(prim: Elementwise) -> str:
    args = Elementwise.ARGS[: prim.arity]
    if prim.name in SYMBOL:
        return f"x {SYMBOL[prim.name]} w"
    return "-x" if prim.name == "negative" else f"{prim.name}({', '.join(args)})"


def _array_weight(expression: Any) -> str:
    """The weight as text; the identity is a marker, so that no multiplication by one is done."""
    return "ONE" if not isinstance(expression, Sym) and expression == 1 else source(expression)


def _quiet(*expressions: Any) -> str:
    return "with errstate(all='ignore'): " if any(map(_may_signal, expressions)) else ""


def _may_signal(expression: Any) -> bool:
    """Whether a partial may overflow or be infinite where the value is not."""
    if not isinstance(expression, Sym):
        return False
    if expression.head in ("add", "subtract", "multiply", "negative"):
        return any(map(_may_signal, expression.args))
    of_symbols = not any(isinstance(a, Sym) and a.args for a in expression.args)
    return bool(expression.args) and not (expression.head in SILENT and of_symbols)


def _unary(prim: Elementwise, templates: dict[str, str]) -> dict[str, str]:
    (partial,) = prim.expressions()
    name = "__neg__" if prim.name == "negative" else "__abs__" if prim.name == "abs" else prim.name
    texts = {
        "S": source(partial, TERNARY),
        "X": _array_weight(partial),
    }
    return {
        kind: templates[kind].format(
            name=name, value=_value(prim), partial=texts[kind], quiet=_quiet(partial)
        )
        for kind in "SX"
    }


def _binary(prim: Elementwise) -> dict[str, list[str]]:
    left, right = prim.expressions()
    stem = OPERATORS[prim.name]
    scalar = {"left": source(left, TERNARY), "right": source(right, TERNARY)}
    array = {"left": _array_weight(left), "right": _array_weight(right)}
    reads, back = prim.keeps(1), prim.keeps(0)
    common = {"value": _value(prim), "prim": prim.name, "quiet": _quiet(left, right)}
    complex_root = "\n            if type(y) is complex:\n                raise ArithmeticError"
    check = (
        complex_root if prim.name == "power" else ""
    )  # NumPy has a NaN where Python goes complex
    # Python's own zero divides nothing: NumPy's is asked for the partial
    number = "(t is float or t is int)" + " and q" * (prim.name == "divide")
    guard, guard_left = ("guard(q)" if kept else "q" for kept in (reads, back))
    return {
        "S": [
            BINARY_SCALAR.format(name=f"__{stem}__", check=check, **scalar, **common),
            REFLECTED_SCALAR.format(
                name=f"__r{stem}__", check=check.replace("\n    ", "\n"), **scalar, **common
            ),
        ],
        "X": [
            BINARY_ARRAY.format(name=f"__{stem}__", guard=guard, number=number, **array, **common),
            REFLECTED_ARRAY.format(name=f"__r{stem}__", guard=guard_left, **array, **common),
        ],
    }


def _codes(text: str) -> dict[str, CodeType]:
    scope: dict[str, Any] = {}
    exec(compile(text, "<lineara codegen>", "exec"), scope)
    return {k: f.__code__ for k, f in scope.items() if isinstance(f, FunctionType)}


def method_codes() -> dict[str, dict[str, CodeType]]:
    """The code of every generated method, for scalars (S) and arrays (X)."""
    found: dict[str, dict[str, CodeType]] = {"S": {}, "X": {}}
    unary = {"S": UNARY_SCALAR + MATH_SCALAR, "X": UNARY_ARRAY}
    for prim in registry.primitives.values():
        if not isinstance(prim, Elementwise) or not prim.inlined:
            continue
        if prim.arity == 1:
            for kind, text in _unary(prim, unary).items():
                found[kind] |= _codes(text)
        elif prim.name in OPERATORS:
            for kind, texts in _binary(prim).items():
                for text in texts:
                    found[kind] |= _codes(text)
    found["X"] |= _codes(READ)
    for stem, symbol in COMPARISONS.items():
        found["S"] |= _codes(COMPARE.format(name=f"__{stem}__", symbol=symbol))
    return found


def functions(depth: int) -> dict[str, dict[str, Any]]:
    """What the names in the generated code mean at a depth, for scalars and for arrays."""
    if depth > 1:
        everywhere = dict(registry.primitives)
        return {"S": dict(everywhere), "X": everywhere}
    scalar, array = {}, {}
    for name, prim in registry.primitives.items():
        array[name] = prim.array if isinstance(prim, Elementwise) else prim
        scalar[name] = scalar_function(prim) if isinstance(prim, Elementwise) else prim
    scalar |= {"sign": _sign, "floor": math.floor, "trunc": math.trunc}
    array |= {"sign": np.sign, "floor": np.floor, "trunc": np.trunc, "where": np.where}
    return {"S": scalar, "X": array}


def scalar_function(prim: Elementwise) -> Callable[..., Any]:
    """The primitive on Python floats: Python's own function where there is one."""
    if prim.scalar is not None:
        names = Elementwise.ARGS[: prim.arity]
        return eval(f"lambda {', '.join(names)}: {prim.scalar}", {"math": math})
    own = getattr(math, prim.name, None)
    if own is not None:
        return own
    return lambda *args: _number(prim.array(*args))


def _number(y: Any) -> Any:
    return y.item() if isinstance(y, np.generic | np.ndarray) else y


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x * 0.0


# --- what the fast path hands over -------------------------------------------------------------


def general(p: Any, q: Any, name: str) -> Any:
    """A binary operation outside the fast path."""
    if _is_like_pythons(p, q):
        return op_call(name, p.item(), q)
    if _is_like_pythons(q, p):
        return op_call(name, p, q.item())
    if type(q) is timedelta or type(p) is timedelta:
        p, q = (Span(v.total_seconds()) if type(v) is timedelta else v for v in (p, q))
        return op_call(name, p, q)
    p, q = (as_array(v) if isinstance(v, list | tuple) else v for v in (p, q))
    for other in (p, q):
        if is_sparse(other):
            return between(name, p, q)
        if isinstance(other, np.matrix | np.ma.MaskedArray):
            raise TypeMismatchError(
                f"{name}: a {type(other).__name__} has rules of its own, "
                "which are not followed here; "
                "give numpy.asarray of it"
            )
        ours = isinstance(other, Box | np.ndarray | np.generic | Number)
        if not ours and (has_priority(other) or answers_itself(other)):
            return operated(op(name), p, q)
        if not ours and callable(getattr(type(other), "__array_ufunc__", None)):
            return getattr(np, name)(p, q)  # as NumPy's arrays do: its class answers
    try:
        return op(name)(p, q)
    except ValueError as e:
        if "broadcast" not in str(e):
            raise
        raise ShapeError(
            f"{name}: cannot broadcast {type_of(p)} with {type_of(q)}; "
            "trailing dimensions must be equal or 1"
        ) from None


_LIKE_PYTHON = {
    np.dtype(t) for t in ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
}


def _is_like_pythons(number: Any, other: Any) -> bool:
    """Whether a number of NumPy's acts on `other` as Python's does: it leaves the dtype alone."""
    if not isinstance(number, np.generic) or number.dtype not in _LIKE_PYTHON:
        return False
    dtype = getattr(other, "dtype", None)
    return dtype in (None, np.float64) or np.result_type(number.dtype, dtype) == dtype


def op_call(name: str, p: Any, q: Any) -> Any:
    """The operator again, now that both sides are Python's."""
    p, q = (int(v) if isinstance(v, bool) else v for v in (p, q))
    return getattr(operator, OPERATORS[name])(p, q)


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    """An operator of traced values outside the fast path: the other side may answer it."""
    if reflected:
        return lambda p, q: general(q, p, name)
    return lambda p, q: general(p, q, name)


for _name, _stem in OPERATORS.items():
    setattr(Traced, f"__{_stem}__", _operator(_name, reflected=False))
    setattr(Traced, f"__r{_stem}__", _operator(_name, reflected=True))

"""Node methods generated from the primitives' partials: the fast path, one text an operation.

The text of a method is compiled once. A level binds it to its own classes and to the functions of
its depth: `math` and NumPy at the outermost level, the dispatching primitives further in.  Scalars
that are Python's (S) do what Python's float does and raise what it raises; NumPy's numbers (N) are
calculated with the same operations, and where they overflow or Python refuses, the careful method
takes NumPy's word for it.
"""

import math
import operator
import re
from collections.abc import Callable
from datetime import timedelta
from numbers import Number, Rational
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from lineara.containers.points import Span, answers_itself, operated
from lineara.errors import ShapeError
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.primitive import Box, Elementwise, Sym, op, registry, source
from lineara.facts.types import type_of
from lineara.ops.scipy.sparse_products import is_sparse, sparse_matmul
from lineara.ops.scipy.sparse_traced import between
from lineara.ops.shape import as_array, told
from lineara.tape.node import (
    Array,
    Scalar,
    Traced,
    has_priority,
    in_objects,
    innermost,
    is_of_objects,
    layout,
    objects,
    plain,
    plain_deep,
    refuse_found,
    refuse_own_rules,
    staged,
)
from lineara.tape.plans import GENERAL, by_plan

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
UFUNCS = {name: registry.primitives[name].array for name in OPERATORS}
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
    y = {value}
    o = {made}()
    o.v = y
    try:
        o.d = {partial}
    except ARITHMETIC:
        return careful(p, None, "{prim}", y, {made})
'''
    + SCALAR_END
)

MATH_SCALAR = (
    '''
def math_{name}(p):
    """As math.{name}, traced: raises where it does."""
    x = p.v
    y = math_{prim}(x)
    o = S()
    o.v = y
    try:
        o.d = {partial}
    except ARITHMETIC:
        return careful(p, None, "{prim}", y, S)
'''
    + SCALAR_END
)

BINARY_NUMBER = """
def {name}(p, q):
    t = type(q)
    x = p.v
    o = {made}()
    try:
        if {traced}:
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
        elif {numpys}
        else:
            return general(p, q, "{prim}")
    except ARITHMETIC:
        return careful(p, q, "{prim}", None, {made})
    o.a = p
    o.g = zero
    push(o)
    return o
"""
# What a number of Python's does when it meets one of NumPy's; one of NumPy's, when any.
MEETS = {
    "S": {
        "traced": "t is S",
        "numpys": "t is N or t is float64:\n            return strong{name}(p, q)",
    },
    "N": {
        "traced": "t is N or t is S",
        "numpys": """t is float64:
            w = {single}
            o.v = y = {value}{check}
            o.d = {left}
            o.b = None""",
    },
}

REFLECTED_SCALAR = """
def {name}(p, q):
    t = type(q)
    if t is not float and t is not int:
        if t is not float64:
            return general(q, p, "{prim}")
        if {made} is S:
            return strong{name}(p, q)
        q = {single}
    x = q
    w = p.v
    o = {made}()
    try:
        o.v = y = {value}{check}
        o.d = {right}
    except ARITHMETIC:
        return careful(q, p, "{prim}", None, {made})
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
            o = N()
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
def {name}(p, q):{first}
    t = type(q)
    if t is S:
        return p.v {symbol} q.v
    if t is N:
        return strong{name}(p, q)
    return p.v {symbol} q
"""

COMPARE_NUMPY = """
def {name}(p, q):{first}
    t = type(q)
    if t is N or t is S:
        r = p.v {symbol} q.v
    elif t is float or t is int:
        r = p.v {symbol} q
    else:  # also complex numbers and sequences
        return compared(p, q, "{name}")
    return r if r is not True and r is not False else true if r else false
"""


def _value(prim: Elementwise) -> str:
    args = Elementwise.ARGS[: prim.arity]
    if prim.name in SYMBOL:
        return f"x {SYMBOL[prim.name]} w"
    return "-x" if prim.name == "negative" else f"{prim.name}({', '.join(args)})"


def _array_weight(expression: Shaped) -> str:
    """The weight as text; the identity is a marker, so that no multiplication by one is done."""
    return "ONE" if not isinstance(expression, Sym) and expression == 1 else source(expression)


def _quiet(*expressions: Any) -> str:
    return "with errstate(all='ignore'): " if any(map(_may_signal, expressions)) else ""


def _may_signal(expression: Value) -> bool:
    """Whether a partial may overflow or be infinite where the value is not."""
    if not isinstance(expression, Sym):
        return False
    if expression.head in ("add", "subtract", "multiply", "negative"):
        return any(map(_may_signal, expression.args))
    of_symbols = not any(isinstance(a, Sym) and a.args for a in expression.args)
    return bool(expression.args) and not (expression.head in SILENT and of_symbols)


def _unary(prim: Elementwise, deep: bool) -> dict[str, str]:
    (partial,) = prim.expressions()
    operator = {"negative": "__neg__", "abs": "__abs__"}.get(prim.name)
    common = {"name": operator or prim.name, "prim": prim.name, "quiet": _quiet(partial)}
    array = common | {"value": _value(prim), "partial": _array_weight(partial)}
    scalar = common | {"partial": source(partial, TERNARY)}
    methods = {"X": UNARY_ARRAY.format(**array)}
    for kind in "SN":
        own = "absolute(x)" if prim.name == "abs" else _value(prim)
        made, value = (kind, own) if operator else ("N", _of_numpy(prim, deep))
        methods[kind] = UNARY_SCALAR.format(made=made, value=value, **scalar)
        methods[kind] += MATH_SCALAR.format(**scalar)
    return methods


def _of_numpy(prim: Elementwise, deep: bool) -> str:
    """NumPy's function of a Python float, as one: Python's own where no bit of the two differs."""
    if deep:
        return f"{prim.name}(x)"
    asked = f"float(numpy_{prim.name}(x))"
    return f"sqrt(x) if x >= 0.0 else {asked}" if prim.name == "sqrt" else asked


def _binary(prim: Elementwise, deep: bool) -> dict[str, list[str]]:
    left, right = prim.expressions()
    stem = OPERATORS[prim.name]
    scalar = {"left": source(left, TERNARY), "right": source(right, TERNARY)}
    array = {"left": _array_weight(left), "right": _array_weight(right)}
    reads, back = prim.keeps(1), prim.keeps(0)
    common = {"value": _value(prim), "prim": prim.name, "quiet": _quiet(left, right)}
    common["single"] = "q" if deep else "float(q)"  # further in, the value below is NumPy's too
    checks = _checks(prim.name, deep)
    # Python's own zero divides nothing: NumPy's is asked for the partial
    number = "(t is float or t is int)" + " and q" * (prim.name == "divide")
    guard, guard_left = ("guard(q)" if kept else "q" for kept in (reads, back))

    def meeting(kind: str) -> str:
        names = {"name": f"__{stem}__", "check": checks[kind], **scalar, **common}
        cases = {case: text.format(**names) for case, text in MEETS[kind].items()}
        return BINARY_NUMBER.format(made=kind, **cases, **names)

    return {
        kind: [
            meeting(kind),
            REFLECTED_SCALAR.format(
                name=f"__r{stem}__",
                made=kind,
                check=checks[kind].replace("\n    ", "\n").replace("(p, q", "(q, p"),
                **scalar,
                **common,
            ),
        ]
        for kind in "SN"
    } | {
        "X": [
            BINARY_ARRAY.format(name=f"__{stem}__", guard=guard, number=number, **array, **common),
            REFLECTED_ARRAY.format(name=f"__r{stem}__", guard=guard_left, **array, **common),
        ],
    }


def _codes(text: str) -> dict[str, CodeType]:
    scope: dict[str, Any] = {}
    exec(compile(text, "<lineara codegen>", "exec"), scope)
    return {k: f.__code__ for k, f in scope.items() if isinstance(f, FunctionType)}


def _checks(name: str, deep: bool) -> dict[str, str]:
    """What is asked of a value before it counts: Python's may be complex, NumPy's may warn."""
    if name == "power":
        test = "is_complex(y)" if deep else "type(y) is complex"
        python = f'\n            if {test}:\n                return general(p, q, "power")'
    else:
        test, python = "", ""
    if deep:
        refused = f"\n            if {test}:\n                raise ArithmeticError" if test else ""
        return {"S": python, "N": refused.replace("is_complex(y)", "type(y) is complex")}
    finite = "-1e999 < y and y < 1e999"  # faster in Python than a chained comparison
    test = f"{test} or not ({finite})" if test else f"not ({finite})"
    return {"S": python, "N": f"\n            if {test}:\n                raise ArithmeticError"}


def method_codes(deep: bool) -> dict[str, dict[str, CodeType]]:
    """The code of every generated method, for Python's numbers, NumPy's and arrays (S, N, X)."""
    return {kind: _codes(text) for kind, text in method_texts(deep).items()}


def method_texts(deep: bool) -> dict[str, str]:
    """The text of every generated method."""
    texts: dict[str, list[str]] = {"S": [], "N": [], "X": [READ]}
    for prim in registry.primitives.values():
        if not isinstance(prim, Elementwise) or not prim.inlined:
            continue
        if prim.arity == 1:
            for kind, text in _unary(prim, deep).items():
                texts[kind].append(text)
        elif prim.name in OPERATORS:
            for kind, several in _binary(prim, deep).items():
                texts[kind] += several
    for stem, symbol in COMPARISONS.items():
        first = "\n    if asked: refuse_found(p, q)" if stem == "eq" else ""
        for kind, text in (("S", COMPARE), ("N", COMPARE_NUMPY)):
            texts[kind].append(text.format(name=f"__{stem}__", symbol=symbol, first=first))
    return {kind: "\n".join(several) for kind, several in texts.items()}


def names(text: str) -> list[str]:
    """The names of the functions in a text."""
    return re.findall(r"^def (\w+)\(", text, re.MULTILINE)


def functions(depth: int) -> dict[str, dict[str, Any]]:
    """What the names in the generated code mean at a depth, for scalars and for arrays."""
    own = {n: p for n, p in registry.primitives.items() if isinstance(p, Elementwise)}
    if depth > 1:
        everywhere = dict(registry.primitives)
        scalar = everywhere | {f"math_{n}": _in_math(n, p) for n, p in own.items()}
        return {"S": scalar, "N": dict(scalar), "X": everywhere}
    scalar, array = {}, {}
    for name, prim in registry.primitives.items():
        array[name] = prim.array if isinstance(prim, Elementwise) else prim
        scalar[name] = scalar_function(prim) if isinstance(prim, Elementwise) else prim
    scalar |= {f"math_{n}": scalar[n] for n in own} | {
        f"numpy_{n}": p.array for n, p in own.items()
    }
    scalar |= {"sign": _sign, "floor": math.floor, "trunc": math.trunc}
    array |= {"sign": np.sign, "floor": np.floor, "trunc": np.trunc, "where": np.where}
    return {"S": scalar, "N": dict(scalar), "X": array}


def _in_math(name: str, prim: Elementwise) -> Callable[..., Any]:
    """math's function of a number that an outer level may trace."""
    number, method = scalar_function(prim), f"math_{name}"

    def call(x: Value) -> Any:
        return getattr(type(x), method)(x) if isinstance(x, Box) else number(x)

    return call


def scalar_function(prim: Elementwise) -> Callable[..., Any]:
    """The primitive on Python floats: Python's own function where there is one."""
    if prim.scalar is not None:
        names = Elementwise.ARGS[: prim.arity]
        return eval(f"lambda {', '.join(names)}: {prim.scalar}", {"math": math})
    own = getattr(math, prim.name, None)
    if own is not None:
        return own
    return lambda *args: _number(prim.array(*args))


def _number(y: Value) -> Any:
    return y.item() if isinstance(y, np.generic | np.ndarray) else y


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x * 0.0


# --- what the fast path hands over -------------------------------------------------------------


def general(p: Any, q: Any, name: str) -> Any:
    """A binary operation outside the fast path."""
    one, two = type(p), type(q)
    arrays = issubclass(one, Array) or issubclass(two, Array) or np.ndarray in (one, two)
    if arrays and one not in _SEQUENCES and two not in _SEQUENCES:
        y = by_plan(UFUNCS[name], (p, q), {})
        if y is not GENERAL:
            return y
    if _is_number(p) and _is_number(q):
        return _of_numbers(p, q, name)
    if (is_exact(p) or is_exact(q)) and staged((p, q)):
        return with_exact(p, q, getattr(operator, OPERATORS[name]))
    if _is_like_pythons(p, q):
        return op_call(name, p.item(), q)
    if _is_like_pythons(q, p):
        return op_call(name, p, q.item())
    if type(q) is timedelta or type(p) is timedelta:
        p, q = (Span(v.total_seconds()) if type(v) is timedelta else v for v in (p, q))
        return op_call(name, p, q)
    for one, other in ((p, q), (q, p)):
        number = issubclass(type(one), list | tuple) and issubclass(type(other), Scalar)
        if number and (other.weak or name == "multiply"):  # NumPy's repeat sequences only so
            sign, kind = SYMBOL[name], other.stands_for().__name__
            raise TypeError(
                f"unsupported operand types for {sign}: {kind} and {type(one).__name__}"
            )
    p, q = (as_array(v) if issubclass(type(v), list | tuple) else v for v in (p, q))
    for other in (p, q):
        if is_sparse(other):
            return between(name, p, q)
        if is_of_objects(other):
            return getattr(np, name)(in_objects(p), in_objects(q))
        refuse_own_rules(name, other)
        number = isinstance(other, Number | np.ndarray | np.generic) and not _defers(other)
        ours = number or isinstance(other, Box)
        if not ours and (has_priority(other) or answers_itself(other)):
            return operated(op(name), p, q)
        if not ours and callable(getattr(type(other), "__array_ufunc__", None)):
            return getattr(np, name)(p, q)  # the operand's class answers, as with NumPy's arrays
    p, q = told(p), told(q)
    try:
        return op(name)(p, q)
    except ValueError as e:
        if "broadcast" not in str(e):
            raise
        raise ShapeError(
            f"{name}: cannot broadcast {type_of(p)} with {type_of(q)}; "
            "trailing dimensions must be equal or 1"
        ) from None


_SEQUENCES = frozenset({list, tuple})
_CLASSES = (float, int, bool, complex)
_WIDENED = "?bBhHiIlLqQ"  # the kinds of NumPy's whole numbers, which a float makes float64


def _is_number(value: Any) -> bool:
    """Whether a value is a number with Python's or NumPy's arithmetic, traced or not."""
    kind = type(value)
    if issubclass(kind, Scalar):
        level = value.level
        return level.has_numbers or (level.has_fast_path and value.dtype.kind in "fc")
    number = issubclass(kind, np.generic) and not _defers(value)
    return kind in _CLASSES or (number and value.dtype.kind in "fciub")


def _defers(value: Leaf) -> bool:
    """Whether the class of a value tells NumPy (`__array_ufunc__ = None`) not to operate on it."""
    return getattr(type(value), "__array_ufunc__", ...) is None


def _of_numbers(p: Any, q: Any, name: str) -> Any:
    """An operation of two numbers: Python's or NumPy's own operator, one level below."""
    stem = OPERATORS[name]
    if name != "power":  # NumPy computes power differently for whole numbers
        if _is_whole(q) and type(p) in _fast(p):
            return getattr(p.level.N, f"__{stem}__")(p, np.float64(q))
        if _is_whole(p) and type(q) in _fast(q):
            return getattr(q.level.N, f"__r{stem}__")(q, np.float64(p))
    level: Any = getattr(innermost((p, q)), "level", None)
    if level.has_fast_path:  # where there are no traced truth values
        p, q = (int(v) if isinstance(v, bool) else v for v in (p, q))
    return level.of_numbers(name, getattr(operator, stem), (p, q))


def _is_whole(v: Any) -> bool:
    return issubclass(type(v), np.generic) and v.dtype.char in _WIDENED


def _fast(p: Scalar) -> tuple[type, ...]:
    """The classes of floats; of a staged level they are those of complex numbers, too."""
    return (p.level.S, p.level.N) if p.level.has_fast_path else ()


def is_exact(value: Value) -> bool:
    """Whether a value is a number of a class of its own, as fractions and decimals are."""
    kind = type(value)
    own = kind in _CLASSES or issubclass(kind, np.generic | Box | np.ndarray)
    return not own and isinstance(value, Number) and not isinstance(value, int | float | complex)


def with_exact(p: Any, q: Any, act: Callable[[Any, Any], Any]) -> Any:
    """An operation of a staged number and an exact one: a fraction is rounded to a float."""
    exact, other = (p, q) if is_exact(p) else (q, p)
    if issubclass(type(other), Array):
        refuse_own_rules(act.__name__, np.empty(0, object))
    if not isinstance(exact, Rational):
        return NotImplemented
    if exact is p:
        return act(float(p), q)
    return act(p.item(), float(q))  # of NumPy's number Python's is asked


_LIKE_PYTHON = {
    np.dtype(t) for t in ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
}


def _is_like_pythons(number: Shaped, other: Value) -> bool:
    """Whether a number of NumPy's leaves the dtype of `other` alone, as one of Python's does."""
    if (
        not issubclass(type(number), np.generic)
        or number.dtype not in _LIKE_PYTHON
        or _defers(number)
    ):
        return False
    dtype = getattr(other, "dtype", None)
    if dtype == number.dtype == np.bool_:  # NumPy's truth values are no numbers to one another
        return False
    return dtype in (None, np.float64) or np.result_type(number.dtype, dtype) == dtype


def op_call(name: str, p: Value, q: Value) -> Any:
    """The operator again, now that both sides are Python's."""
    p, q = (int(v) if isinstance(v, bool) else v for v in (p, q))
    return getattr(operator, OPERATORS[name])(p, q)


def compared(p: Any, q: Any, name: str) -> Any:
    """A comparison outside the fast path: the plain values are compared, of whatever kind."""
    if name == "__eq__" and p.level.asked and issubclass(type(p), Scalar):
        refuse_found(p, q)
    if staged((p, q)):
        return compared_staged(p, q, name)
    other = np.asarray(plain(q)) if issubclass(type(q), Array) else plain_deep(q)
    return getattr(operator, name)(plain(p), other)


def compared_staged(p: Shaped, q: Tree, name: str) -> Any:
    """A comparison of a staged value; NumPy compares zeros of its type with what is no number."""
    if has_priority(q):
        return NotImplemented
    typed = isinstance(q, np.ndarray | np.generic)
    if q.dtype.kind in "SUTmMV" if typed else q is None or isinstance(q, str | bytes):
        return getattr(operator, name)(layout(p), q)
    return getattr(Box, name)(p, q)


def _comparison(stem: str) -> Callable[..., Any]:
    """The comparison method of arrays; the other side need not be a number."""
    name, act, general = f"__{stem}__", getattr(operator, stem), getattr(Box, f"__{stem}__")

    def method(p: Array, q: Any) -> Any:
        level = p.level
        if level.kinks is not None or not level.open:
            return general(p, q)
        if type(p) is level.X:
            v, w = p.v, q.v if type(q) is level.X else q
            if type(v) is np.ndarray and type(w) in _COMPARED:
                return act(v, w)
        return compared(p, q, name)

    return method


_COMPARED = (np.ndarray, float, int)


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    """An operator of traced values outside the fast path: the other side may answer it."""
    if reflected:
        return lambda p, q: general(q, p, name)
    return lambda p, q: general(p, q, name)


def _matmul(p: Array, q: Shaped) -> Any:
    """The matrix product of two values, one of which is traced; the other side may answer it."""
    y = by_plan(np.matmul, (p, q), {})
    if y is not GENERAL:
        return y
    other = q if isinstance(p, Traced) else p
    if is_sparse(other):
        return sparse_matmul(p, q)
    if is_of_objects(other):
        return np.matmul(p, objects(q)) if other is p else np.matmul(objects(p), q)
    return NotImplemented if has_priority(other) else op("matmul")(p, q)


Traced.__matmul__ = _matmul  # type: ignore[method-assign]
Traced.__rmatmul__ = lambda q, p: _matmul(p, q)  # type: ignore[method-assign]
for _name, _stem in OPERATORS.items():
    setattr(Traced, f"__{_stem}__", _operator(_name, reflected=False))
    setattr(Traced, f"__r{_stem}__", _operator(_name, reflected=True))
for _stem in COMPARISONS:
    setattr(Array, f"__{_stem}__", _comparison(_stem))

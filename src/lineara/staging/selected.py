"""What `x[mask]` gives where the mask is staged: how many elements it has depends on values.

    B[m] = np.sqrt(B[m]) / s        becomes     B = where(m, sqrt(where(m, B, b)) / s, B)
    x[m].sum()                      becomes     sum(where(m, x, 0))

It keeps the shape of x.  In the lanes that are not selected stands b, the first element that is: an
operation raises, warns or overflows there only where it does in a selected one.  Operations on
numbers and on what the same mask selects go element by element; the results may be written where
that mask holds, and reduced.  All else would need to know how many elements there are.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

from lineara.errors import StagingError, user_line
from lineara.facts.hints import Index, Shaped, Tree, Value
from lineara.facts.primitive import op, registry
from lineara.linear_a import syntax as ir
from lineara.linear_a.rules_as_text import Boxed
from lineara.ops.value_checks import checked

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
COMPARED: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip
UNARY: dict[str, np.ufunc] = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}  # fmt: skip
DEPTH = 8  # operations from a mask back to what two of them are compared by
REDUCED: dict[Callable[..., Any], str] = {
    np.sum: "sum", np.prod: "prod", np.mean: "mean", np.max: "max", np.min: "min",
    np.amax: "max", np.amin: "min", np.any: "any", np.all: "all",
}  # fmt: skip
WAYS = (
    "how many elements there are depends on values; keep the shape with np.where(mask, a, b), or "
    "reduce with np.sum(a, where=mask)"
)


class Selected:
    """The elements of a staged array where a staged mask holds; in NumPy a new array.

    values     a staged array of the mask's shape
    mask       the mask as it was, a staged array that keeps its content
    changed    whether it was changed in place: what it was is read under another name
    """

    __slots__ = ("changed", "mask", "values")
    values: Any
    mask: Shaped
    changed: bool
    _lineara_stands_for = np.ndarray  # what type() and isinstance say
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as arrays

    def __init__(self, values: Any, mask: Shaped) -> None:
        self.values, self.mask, self.changed = values, mask, False

    @classmethod
    def of(cls, x: Shaped, mask: Shaped) -> "Selected":
        """What a mask selects of an array of its shape that has elements."""
        flat = op("reshape")(mask, shape=(x.size,))
        first = op("index")(op("reshape")(x, shape=(x.size,)), at=(op("argmax")(flat, axis=0),))
        some = op("any")(mask, axis=None, keepdims=False)
        spare = op("where")(some, first, np.ones((), x.dtype))
        return cls(op("where")(mask, x, spare), mask)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def size(self) -> Any:
        """How many there are."""
        return registry.foreign[np.sum].ours(self.mask)

    def refuse(self, what: str) -> NoReturn:
        """Refuse what needs to know how many elements there are."""
        raise StagingError(f"{what} of what a staged mask selects was asked for; {WAYS}")

    def now(self) -> Any:
        """The values, unless they were changed."""
        if self.changed:
            raise StagingError(
                "what a staged mask selects was changed in place, and what it was is read, under "
                "another name or after a branch or loop that changed it; give the result a name "
                "of its own, z = 2 * y"
            )
        return self.values

    def operated(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> "Selected":
        """An operation on numbers and on what the same mask selects, element by element."""
        given = []
        for a in args:
            if isinstance(a, Selected):
                if not is_same(self.mask, a.mask):
                    self.refuse(f"np.{ufunc.__name__} with what another mask selects")
                a = a.now()
            elif np.shape(a) != ():
                self.refuse(f"np.{ufunc.__name__} with an array of the shape {np.shape(a)}")
            given.append(a)
        return Selected(ufunc(*given), self.mask)

    def reduced(self, name: str, *args: Tree, **options: Tree) -> Any:
        """The sum, mean, maximum ... of all elements."""
        if args or options:
            self.refuse(f"{name} with options")
        values, function = self.now(), getattr(np, name)
        ours = registry.foreign[function].ours
        if name not in ("max", "min"):
            return ours(values, where=self.mask)
        none = op("logical_not")(op("any")(self.mask, axis=None, keepdims=False))
        text = f"zero-size array to reduction operation {name}imum which has no identity"
        return checked(ours(values), none, ValueError, text, line=user_line())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout > 1:
            self.refuse(f"np.{ufunc.__name__} with options, or a method of it,")
        return self.operated(ufunc, args)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: tuple[Any, ...],
        args: tuple[Any, ...],
        options: dict[Any, Any],
    ) -> Any:
        if function in REDUCED and args and args[0] is self:
            return self.reduced(REDUCED[function], *args[1:], **options)
        self.refuse(f"np.{function.__name__}")

    def __matmul__(self, other: Value) -> NoReturn:
        self.refuse("the product @")

    __rmatmul__ = __matmul__

    def __array__(self, *_: Tree, **__: Tree) -> NoReturn:
        self.refuse("an array")

    def __iter__(self) -> NoReturn:
        self.refuse("each element")

    def __len__(self) -> int:
        self.refuse("the length")

    def __bool__(self) -> bool:
        self.refuse("the truth value")

    def __getitem__(self, at: Index) -> NoReturn:
        self.refuse("an element")

    def __setitem__(self, at: Index, value: Tree) -> None:
        self.refuse("a write")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in REDUCED.values():
            return lambda *args, **options: self.reduced(name, *args, **options)
        self.refuse(f"the attribute {name!r}")


def _binary(ufunc: np.ufunc) -> Any:
    return lambda self, other: self.operated(ufunc, (self, other))


def _reflected(ufunc: np.ufunc) -> Any:
    return lambda self, other: self.operated(ufunc, (other, self))


def _in_place(ufunc: np.ufunc) -> Any:
    def change(self: Selected, other: Value) -> Selected:
        new = self.operated(ufunc, (self, other))
        if new.dtype != self.dtype:
            self.refuse(
                f"a change in place by np.{ufunc.__name__} from {self.dtype} to {new.dtype}"
            )
        self.changed = True
        return new

    return change


def _unary(ufunc: np.ufunc) -> Any:
    return lambda self: self.operated(ufunc, (self,))


for _name, _ufunc in UFUNCS.items():
    setattr(Selected, f"__{_name}__", _binary(_ufunc))
    setattr(Selected, f"__r{_name}__", _reflected(_ufunc))
    setattr(Selected, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in COMPARED.items():
    setattr(Selected, f"__{_name}__", _binary(_ufunc))
for _name, _ufunc in UNARY.items():
    setattr(Selected, f"__{_name}__", _unary(_ufunc))


def is_same(a: Any, b: Any) -> bool:
    """Whether two staged arrays hold one variable, or two that are calculated in the same way."""
    level = a.level.innermost()
    x, y = level.operand(a), level.operand(b)
    if not isinstance(x, Boxed) or not isinstance(y, Boxed):
        return False
    if x.var is y.var:
        return True
    lets = [b for b in level.out.bindings if isinstance(b, ir.Let)]
    return _calculated(x.var, y.var, {v: b.rhs for b in lets for v in b.vars}, DEPTH)


def _calculated(a: ir.Var, b: ir.Var, by: dict[ir.Var, Any], depth: int) -> bool:
    """Whether two variables are one, or what the same operations make of the same ones."""
    if a is b:
        return True
    x, y = by.get(a), by.get(b)
    if x is None or y is None or type(x) is not type(y) or a.type != b.type or depth == 0:
        return False
    if isinstance(x, ir.Lit):
        return np.asarray(x.value).tobytes() == np.asarray(y.value).tobytes()
    if not isinstance(x, ir.Prim) or x.primitive.raised or x.primitive.acts:
        return False
    known = x.primitive is y.primitive and len(x.args) == len(y.args)
    known = known and _is_known((*x.params.values(), *y.params.values())) and x.params == y.params
    pairs = zip(x.args, y.args, strict=False)
    return known and all([_calculated(p, q, by, depth - 1) for p, q in pairs])


def _is_known(param: Tree) -> bool:
    """Whether parameters are equal where `==` says so; an array is compared by its elements."""
    if isinstance(param, tuple):
        return all(map(_is_known, param))
    if isinstance(param, slice):
        return _is_known((param.start, param.stop, param.step))
    return isinstance(param, str | int | np.dtype | ir.Var | type(None))


__all__ = ["Selected", "is_same"]

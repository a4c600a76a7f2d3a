"""A traced array for libraries that take NumPy's functions from the array (NEP 18, NEP 13).

It is no NumPy array for `isinstance`, so such a library neither converts it nor reads its memory.
"""

import operator
from collections.abc import Callable
from typing import Any, ClassVar

from lineara.facts.hints import Index
from lineara.python.array_makers import any_traced, array
from lineara.python.numpy_functions import call_foreign, declared
from lineara.tape.node import Traced


def opened(value: Any) -> Any:
    """The traced array in a duck array; also within lists and tuples."""
    if type(value) in (list, tuple):
        return type(value)([opened(v) for v in value])
    return value.value if isinstance(value, Duck) else value


def closed(value: Any) -> Any:
    """Traced values as duck arrays; also within lists and tuples."""
    if type(value) in (list, tuple):
        return type(value)([closed(v) for v in value])
    return Duck(value) if isinstance(value, Traced) else value


def called(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call NumPy's function on traced or plain values."""
    if any_traced(args) or any_traced(kwargs.values()):
        maker = declared(func).stand_in
        return call_foreign(func, args, kwargs) if maker is None else maker(*args, **kwargs)
    return func(*args, **kwargs)


class Duck:
    """A traced array of any shape."""

    __slots__ = ("value",)
    __array_priority__ = 1000
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value: Any = value

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: tuple[Any, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        del types
        kwargs = {k: opened(v) for k, v in kwargs.items()}
        return closed(called(func, *opened(tuple(args)), **kwargs))

    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if any(getattr(type(v), "__array_priority__", 0) > 1000 for v in inputs):
            return NotImplemented
        if any(hasattr(type(v), "dims") for v in inputs):  # a labelled array answers itself
            return NotImplemented
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return closed(function(*opened(inputs), **{k: opened(v) for k, v in kwargs.items()}))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value.__array__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        attribute = getattr(self.value, name)
        if not callable(attribute):
            return closed(attribute)
        return lambda *args, **kwargs: closed(attribute(*opened(args), **kwargs))

    def __getitem__(self, at: Any) -> Any:
        return closed(self.value[at])

    def __setitem__(self, at: Index, value: object) -> None:
        if not isinstance(self.value, Traced):
            self.value = array(self.value)
        self.value[at] = opened(value)

    def __copy__(self) -> Any:
        return Duck(array(self.value))

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        return self.__copy__()

    def copy(self, *_: Any) -> Any:
        """A copy that may be written."""
        return self.__copy__()

    def __len__(self) -> int:
        return len(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def _operator(name: str) -> Any:
    reflected = name.startswith("r") and hasattr(operator, f"__{name[1:]}__")
    act = getattr(operator, f"__{name[1:] if reflected else name}__")

    def method(self: Duck, *others: Any) -> Any:
        if any(hasattr(type(o), "dims") for o in others):
            return NotImplemented
        given = [opened(v) for v in (self, *others)]
        return closed(act(*reversed(given)) if reflected else act(*given))

    method.__name__ = f"__{name}__"
    return method


_BINARY = ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "matmul")
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
for _name in (*_BINARY, *(f"r{_n}" for _n in _BINARY), *_COMPARED, "neg", "pos", "abs"):
    setattr(Duck, f"__{_name}__", _operator(_name))
for _name in ("shape", "dtype", "ndim", "size", "real", "imag", "T"):  # protocols ask the class
    setattr(Duck, _name, property(lambda self, name=_name: closed(getattr(self.value, name))))

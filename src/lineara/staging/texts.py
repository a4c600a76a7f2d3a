"""Texts of staged values, and what is done with them as a program runs: printed, warned of, raised.

late(format, x, ".3f")            the text, or a `Text` where x is staged
report(level, fails, print, …)    the call of print with it, where `fails` is true
"""

import functools
import operator
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

import numpy as np

from lineara.errors import LinearaError, StagingError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType
from lineara.ops.effects import Hole, Late, Said
from lineara.python.overlay import Overlay
from lineara.python.user_code import overlay
from lineara.staging.staged_level import Seen, StagedLevel, weakness
from lineara.tape.node import Traced
from lineara.trees import flatten


class Text:
    """A text that is known when the program runs: what a call gives of staged values."""

    named: dict[str, Any]
    call: Callable[..., Any]
    args: tuple[Any, ...]

    __lineara_leaf__ = True

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self.call, self.args, self.named = call, args, named

    def __add__(self, other: object) -> Any:
        return late("{}{}".format, self, other) if _is_text(other) else NotImplemented

    def __radd__(self, other: object) -> Any:
        return late("{}{}".format, other, self) if _is_text(other) else NotImplemented

    def __repr__(self) -> str:
        return "a text of staged values"


def _is_text(v: object) -> bool:
    return isinstance(v, str | Text)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise StagingError(
        "a text of staged values was used, which is not known while a program is written; it can "
        "be printed, raised and put into other texts by f-strings, format, % and join"
    )


_ASKS = "str format eq hash bool len iter contains getitem mod rmod mul lt le gt ge float int"
for _name in f"{_ASKS} index complex".split():
    setattr(Text, f"__{_name}__", _refuse)
for _name in vars(str):
    if not _name.startswith("__"):
        setattr(Text, _name, _refuse)


def late(call: Callable[..., Any], *args: Tree, **named: Tree) -> Any:
    """`call(*args, **named)`, a text; of staged values, one that is known as the program runs."""
    leaves, _ = flatten((args, named))
    if any(map(is_late, leaves)):
        return Text(call, args, named)
    return call(*args, **named)


def percent(form: str, values: Tree) -> Any:
    """`form % values`."""
    return late(operator.mod, form, values)


def asked(f: Callable[..., Any]) -> Any:
    """What is called, or what makes a text of staged values in its place."""
    if f is str or f is repr or f is format or f is ascii:
        return functools.partial(late, f)
    if isinstance(f, BuiltinFunctionType) and type(f.__self__) is str:
        if f.__name__ == "format":
            return functools.partial(late, f)
        if f.__name__ == "join":
            return lambda parts: late(f, [*parts])
    if isinstance(f, type) and issubclass(f, BaseException) and _has_own_init(f):
        return functools.partial(_error, f)
    return f


def _has_own_init(kind: type) -> bool:
    return any([isinstance(getattr(kind, n), FunctionType) for n in ("__init__", "__new__")])


def _error(kind: type[BaseException], *args: Tree, **named: Tree) -> BaseException:
    """An exception, which is made as the program runs where it is given staged values."""
    if not any(map(is_late, flatten((args, named))[0])):
        return kind(*args, **named)
    error = kind.__new__(kind)
    vars(error)[_GIVEN] = args, named
    return error


_GIVEN = "__lineara_given__"
LINE = "__lineara_line__"  # of the user's, where a form has raised it


def refuse_late(error: BaseException) -> None:
    """Refuse a function that raises an error with staged values in it, whatever these are."""
    if _GIVEN in vars(error) or any(map(is_late, flatten(error.args)[0])):
        raise StagingError(
            f"the function raises {type(error).__name__} whatever its arguments are, with values "
            "that are not known while a program is written"
        ) from error


def is_late(v: Leaf) -> bool:
    """Whether a leaf is not known while the program is written."""
    return type(v) is Text or (isinstance(v, Traced) and isinstance(v.now(), Traced))


def text(*parts: Any) -> Any:
    """An f-string: texts, and (value, conversion, format)."""
    return late(_text, [p if isinstance(p, str) else _converted(*p) for p in parts])


def _text(parts: list[str]) -> str:
    return "".join(parts)


def _converted(v: Tree, conversion: str, form: Tree) -> Any:
    v = late(_CONVERSIONS[conversion], v) if conversion else v
    return late(format, v, form)


_CONVERSIONS = {"s": str, "r": repr, "a": ascii}


def report(
    level: StagedLevel,
    fails: Leaf,
    call: Callable[..., Any],
    *args: Tree,
    line: str = "",
    **named: Tree,
) -> None:
    """Write a call that is made as the program runs, where `fails` is true."""
    operands: list[Any] = []
    effect = Said(functools.partial(_mended, overlay(), call), _late((args, named), operands))
    if not isinstance(fails, Traced):
        fails = level.given(level.as_box(np.bool_(fails)).var, _TRUTH)
    op("report")(fails, *operands, effect=effect, line=line)


_TRUTH = Seen(ArrayType((), np.dtype(bool)))


def _mended(seen: Overlay, call: Callable[..., Any], *args: Tree, **named: Tree) -> Any:
    """A call with the user's own classes where copies stood."""
    args, named = seen.restore((args, named))
    return call(*args, **named)


def _late(tree: Tree, operands: list[Any]) -> Late:
    """A template of a value; what is to fill its holes is put to the operands."""
    leaves, structure = flatten(tree)
    return Late(structure, tuple([_leaf(v, operands) for v in leaves]))


def _leaf(v: Leaf, operands: list[Any]) -> Any:
    if type(v) is Text:
        return Said(v.call, _late((v.args, v.named), operands))
    now = v.now() if isinstance(v, Traced) else v
    if not isinstance(now, Traced):
        return now
    operands.append(v)
    return Hole(len(operands) - 1, weakness(v))


def raises(level: StagedLevel, fails: Leaf, error: BaseException, line: str) -> None:
    """Write what raises an exception as the program runs, with the texts that it holds."""
    if isinstance(error, StopIteration | StopAsyncIteration):
        raise StagingError(
            f"a program cannot raise {type(error).__name__}, which would end the iterator that "
            "runs it; return, or raise another exception"
        )
    level.uncaught(f"the raise of {type(error).__name__}", [type(error)])
    report(level, fails, _raised, _parts(error), line, line=line)


def _parts(error: BaseException | None) -> Any:
    """What makes an exception again: its class, arguments, attributes, causes."""
    if error is None or isinstance(error, LinearaError):
        return None
    attributes = {k: v for k, v in vars(error).items() if k != LINE}
    args, named = attributes.pop(_GIVEN, (_own(type(error)).__reduce__(error)[1], None))
    return (
        overlay().original(type(error)), args, named, attributes, _parts(error.__cause__),
        _parts(error.__context__), error.__suppress_context__,
    )  # fmt: skip


def _own(kind: type[BaseException]) -> Any:
    """The class of Python's that an exception is of."""
    return next(c for c in kind.__mro__ if c.__module__ == "builtins")


def _made(parts: Sequence[Any] | None) -> Any:
    """The exception again; its own `__init__` has done its part, unless it had to wait."""
    if parts is None:
        return None
    kind, args, named, attributes, cause, context, suppress = parts
    if named is None:
        error = kind.__new__(kind, *args)
        _own(kind).__init__(error, *args)
    else:
        error = kind(*args, **named)
    vars(error).update(attributes)
    error.__cause__, error.__context__ = _made(cause), _made(context)
    error.__suppress_context__ = suppress
    return error


def only_raises(effect: Said) -> bool:
    """Whether a call that is made as the program runs only raises an exception."""
    return isinstance(effect.call, functools.partial) and effect.call.args[1:] == (_raised,)


def _raised(parts: Sequence[Any], line: str) -> NoReturn:
    error = _made(parts)
    error.add_note(f"at {line}")
    raise error


__all__ = ["LINE", "Text", "asked", "is_late", "late", "only_raises", "percent", "raises"]
__all__ += ["refuse_late", "report", "text"]

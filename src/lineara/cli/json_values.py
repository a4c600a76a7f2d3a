"""Values of the command line: JSON to the types of a program, and back.

    numbers, true, false          f64, i64, bool and their sisters; "inf", "-inf", "nan" in quotes
    [re, im]                      a complex number; a plain number is real
    lists                         arrays, products and stacks
    {"a": 1.0}                    records
    2, or {"tag": 2, "value": x}  the tag of an enumeration, and a value of another sum
    "@file.npy"                   the array of that file

What does not fit is a ProgramError that says which part of which argument it is.
"""

import json
import math
import re
from typing import Any, NoReturn

import numpy as np

from lineara.engines import ZERO, Tagged
from lineara.errors import ProgramError
from lineara.facts.types import ArrayType, Product, Stack, Sum, Type, is_ring, show, type_of
from lineara.linear_a.check import located
from lineara.linear_a.program import Program
from lineara.text.source_location import Place

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_UNQUOTED = re.compile(r'"(?:\\.|[^"\\])*"|@[^\s,\[\]"]+')


def read_arguments(text: str) -> list[Any]:
    """The list after `--args`; `@file.npy` needs no quotes."""

    def quoted(match: re.Match[str]) -> str:
        return json.dumps(match[0]) if match[0].startswith("@") else match[0]

    try:
        values = json.loads(_UNQUOTED.sub(quoted, text), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        _wrong(text, error.lineno, error.colno, f"this is no JSON: {error.msg}")
    except _Constant as error:
        at = text.find(str(error))
        message = f'{error} is no JSON; write "inf", "-inf" or "nan", in quotes'
        _wrong(text, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), message)
    except RecursionError:
        _wrong(text, 1, 1, "lists lie in each other too deep; no value of a program does")
    except ValueError as error:
        _wrong(text, 1, 1, f"this is no JSON: {error}")
    if isinstance(values, str) and values.startswith("@"):
        values = [values]
    if not isinstance(values, list):
        _wrong(text, 1, 1, "the arguments are a JSON list, one item an argument: [0.5, 2.0]")
    return values


class _Constant(ValueError):
    """NaN or Infinity, which Python's reader takes for JSON."""


def _no_constant(word: str) -> NoReturn:
    raise _Constant(word)


def _wrong(text: str, line: int, column: int, message: str) -> NoReturn:
    held = Program({}, {}, {}, text, "--args")
    raise ProgramError(located(held, Place(line, column), message))


def value_of(program: Program, t: Type, given: object, where: str) -> Any:
    """A JSON value as one of type t; `where` says in an error which argument it is."""
    t = program.unfold(t)
    if isinstance(given, str) and given.startswith("@"):
        return _array_of_file(t, given[1:], where)
    if isinstance(t, Sum):
        return _tagged(program, t, given, where)
    if isinstance(t, Stack):
        if not isinstance(given, list) or t.n not in (None, len(given)):
            raise ProgramError(f"{where} is {show(t)}, a list, but {_said(given)} is given")
        rows = enumerate(given)
        return [value_of(program, t.items[0], v, f"{where}[{i}]") for i, v in rows]
    if isinstance(t, Product):
        return _product(program, t, given, where)
    assert isinstance(t, ArrayType)
    if is_ring(t):
        raise ProgramError(
            f"{where} is an element of a ring, which JSON has no text for; run the program from "
            "Python: lineara.engines.run"
        )
    if not t.shape:
        return _number(t, given, where)
    made = np.empty(t.shape, t.dtype)
    _fill(made, t, given, where)
    return made


def _product(program: Program, t: Product, given: object, where: str) -> tuple[Any, ...]:
    if t.fields is not None and isinstance(given, dict):
        if set(given) != set(t.fields):
            raise ProgramError(
                f"{where} has the fields {', '.join(t.fields)}, not {', '.join(given) or 'none'}"
            )
        given = [given[f] for f in t.fields]
    if not isinstance(given, list) or len(given) != len(t.items):
        raise ProgramError(
            f"{where} is {show(t)}, a list of {len(t.items)} values, but {_said(given)} is given"
        )
    names = t.fields or tuple(range(len(t.items)))
    parts = zip(names, t.items, given, strict=True)
    return tuple([value_of(program, s, v, f"{where}[{i}]") for i, s, v in parts])


def _tagged(program: Program, t: Sum, given: object, where: str) -> Tagged:
    payload: Any = []
    if isinstance(given, dict) and set(given) == {"tag", "value"}:
        given, payload = given["tag"], given["value"]
    if type(given) is not int or not 0 <= given < len(t.items):
        raise ProgramError(
            f"{where} is {show(t)}: a tag from 0 to {len(t.items) - 1}, or "
            f'{{"tag": 0, "value": …}}, but {_said(given)} is given'
        )
    return Tagged(given, value_of(program, t.items[given], payload, f"{where}[{given}]"))


def _fill(made: np.ndarray, t: ArrayType, given: object, where: str) -> None:
    """Nested lists into an array, level by level."""
    if not isinstance(given, list) or len(given) != len(made):
        raise ProgramError(
            f"{where} is a list of {len(made)} {'lists' if made.ndim > 1 else 'numbers'}, "
            f"for {show(t)}, but {_said(given)} is given"
        )
    for i, v in enumerate(given):
        if made.ndim > 1:
            _fill(made[i], t, v, f"{where}[{i}]")
        else:
            made[i] = _number(t, v, f"{where}[{i}]")


def _number(t: ArrayType, given: object, where: str) -> Any:
    """One number of the dtype; nothing overflows, and nothing changes its kind but integers."""
    kind, scalar = t.dtype.kind, ArrayType((), t.dtype)
    if kind == "c" and isinstance(given, list) and len(given) == 2:
        parts = [_number(_FLOAT, x, f"{where}[{i}]") for i, x in enumerate(given)]
        return t.dtype.type(complex(*parts))
    if kind in "fc" and isinstance(given, str) and given in _WORDS:
        return t.dtype.type(_WORDS[given])
    numbers = {"b": bool, "i": int, "u": int, "f": (int, float), "c": (int, float)}[kind]
    if not isinstance(given, numbers) or isinstance(given, bool) is not (kind == "b"):
        raise ProgramError(f"{where} is {show(scalar)}, but {_said(given)} is given")
    try:
        with np.errstate(over="raise"):
            made = t.dtype.type(given)
        if kind in "fc" and not np.isfinite(made):
            raise OverflowError("the number is infinite in this dtype")
    except (OverflowError, FloatingPointError):
        raise ProgramError(
            f"{where} is {show(scalar)}, into which {_said(given)} does not fit"
        ) from None
    return made


_FLOAT = ArrayType((), np.dtype(float))


def _array_of_file(t: Type, name: str, where: str) -> Any:
    array = array_of_file(name, where)
    if type_of(array) != t:
        mend = ""
        if isinstance(t, ArrayType) and array.shape == t.shape:
            mend = f"; save it as {t.dtype}: numpy.save(file, x.astype({str(t.dtype)!r}))"
        raise ProgramError(
            f"{where} is {show(t)}, but {name} holds {show(type_of(array))}{mend}"
        ) from None
    return array


def array_of_file(name: str, where: str) -> Any:
    """The array, or the number, that a file holds in NumPy's format."""
    try:
        array = np.load(name, allow_pickle=False)
    except OSError as error:
        raise ProgramError(f"{where}: {name} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError) as error:
        raise ProgramError(f"{where}: {name} is no array in NumPy's format: {error}") from None
    if not isinstance(array, np.ndarray):
        raise ProgramError(f"{where}: {name} holds several arrays; save one with numpy.save")
    return array if array.ndim else array[()]


def _said(given: object) -> str:
    """What was given, in few words."""
    text = json.dumps(given)
    return text if len(text) <= 40 else f"{text[:36]} …"


# --- back -----------------------------------------------------------------------------------------


def plain(program: Program, t: Type, value: Any) -> Any:
    """A value of a program as JSON holds it."""
    t = program.unfold(t)
    if value is ZERO:  # of a sum: the zero that has no tag
        return None
    if isinstance(t, Sum):
        held = plain(program, t.items[value.tag], value.payload)
        return value.tag if held == [] else {"tag": value.tag, "value": held}
    if isinstance(t, Stack):
        return [plain(program, t.items[0], v) for v in value]
    if isinstance(t, Product):
        parts = [plain(program, s, v) for s, v in zip(t.items, value, strict=True)]
        return parts if t.fields is None else dict(zip(t.fields, parts, strict=True))
    return _nested(np.asarray(value).tolist())


def _nested(value: object) -> Any:
    if isinstance(value, list):
        return [_nested(v) for v in value]
    if isinstance(value, complex):
        return [_nested(value.real), _nested(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def readable(program: Program, t: Type, value: Any) -> str:
    """A value for people: arrays as NumPy prints them, long ones with dots."""
    t = program.unfold(t)
    if value is ZERO:
        return "0"
    if isinstance(t, Sum):
        return f"{value.tag}({readable(program, t.items[value.tag], value.payload)})"
    if isinstance(t, Stack):
        return f"[{', '.join([readable(program, t.items[0], v) for v in value])}]"
    if isinstance(t, Product):
        parts = [readable(program, s, v) for s, v in zip(t.items, value, strict=True)]
        if t.fields is None:
            return f"<{', '.join(parts)}>"
        return f"{{{', '.join(f'{f}: {x}' for f, x in zip(t.fields, parts, strict=True))}}}"
    assert isinstance(t, ArrayType)
    array = np.asarray(value)
    if array.ndim:
        return " ".join(np.array2string(array, separator=", ").split())
    return str(array).lower() if t.dtype.kind == "b" else repr(array.item())

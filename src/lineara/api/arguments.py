"""What a derivative is with respect to: arguments by position or name, what functions captured."""

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from lineara.errors import TypeMismatchError
from lineara.facts.types import show_type
from lineara.python.captured_values import captured, with_captured
from lineara.python.function_points import FUNCTIONS
from lineara.python.user_code import seen

Argnums = int | Sequence[int]


def as_positions(argnums: Any, name: str) -> Argnums:
    """The positions as Python's integers."""
    try:
        if hasattr(argnums, "__index__"):
            return operator.index(argnums)
        return tuple([operator.index(i) for i in argnums])
    except TypeError:
        raise TypeMismatchError(
            f"{name}: argnums={argnums!r} is not a position; give an integer or several, "
            "counted from 0"
        ) from None


def positions(argnums: Argnums, count: int, name: str) -> tuple[int, ...]:
    """The positions counted from the front, in a call with `count` positional arguments."""
    listed = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in listed:
        if not -count <= i < count:
            raise TypeMismatchError(
                f"{name}: argnums={argnums} asks for argument {i}, but the call has {count} "
                f"positional argument{'s' * (count != 1)}; "
                "differentiated arguments are given by position"
            )
    return tuple(i % count for i in listed)


def opened(
    f: Callable[..., Any], args: tuple[Any, ...], places: Sequence[int] | None, name: str
) -> tuple[Any, tuple[Any, ...]]:
    """Functions among the arguments as what they captured: (f of that, arguments).

    `places`: of the arguments that are differentiated; None for all.
    """
    require_callable(f, name)
    run = seen(f)
    for a in args if places is None else [args[i] for i in places]:
        if issubclass(type(a), FUNCTIONS):
            return of_captured_values(
                run, args, range(len(args)) if places is None else places, name
            )
    return run, args


def of_captured_values(
    run: Callable[..., Any], args: tuple[Any, ...], places: Sequence[int], name: str
) -> tuple[Any, tuple[Any, ...]]:
    """The function of what functions among the arguments captured, and the arguments as that."""
    functions = {i: args[i] for i in places if isinstance(args[i], FUNCTIONS)}
    if len(functions) == len(places) and not any(map(captured, functions.values())):
        raise TypeMismatchError(
            f"{name}: the function captured nothing (globals and defaults do not count), so there "
            "is nothing to differentiate; let it be a closure over its numbers, a functools."
            "partial, or a method, or pass the numbers as arguments; lineara.probed(f) asks how "
            "much each value of f counts"
        )

    def of_captured(*given: Any, **kwargs: Any) -> Any:
        made = [
            seen(with_captured(functions[i], a)) if i in functions else a
            for i, a in enumerate(given)
        ]
        return run(*made, **kwargs)

    return of_captured, tuple(captured(a) if i in functions else a for i, a in enumerate(args))


def require_callable(f: Callable[..., Any], name: str) -> None:
    """Refuse what is no function."""
    if not callable(f):
        raise TypeMismatchError(f"{name}: takes a function, but was given {show_type(f)}")


# --- by name --------------------------------------------------------------------------------------


def positions_of(
    f: Callable[..., Any], argnums: Argnums, argnames: "str | Sequence[str] | None", name: str
) -> Argnums:
    """The positions of the parameters `argnames`, or `argnums` where no names are given."""
    if argnames is None:
        return as_positions(argnums, name)
    names, places = _named(f, argnums, argnames, name)
    missing = [n for n in names if places[n] is None]
    if missing:
        raise TypeMismatchError(
            f"{name}: the parameter {missing[0]} of f has no position; give it one, or close over "
            "it and differentiate a function of it alone"
        )
    asked = tuple([i for n in names if (i := places[n]) is not None])
    return asked[0] if isinstance(argnames, str) else asked


def by_name(
    transform: Callable[[Callable[..., Any]], Callable[..., Any]],
    f: Callable[..., Any],
    argnums: Argnums,
    argnames: "str | Sequence[str]",
    name: str,
    beyond: int = 0,
) -> Callable[..., Any]:
    """What `transform` gives with respect to f's parameters `argnames`, as a function called as f.

    It is given a function whose first argument is what these parameters have: the value of one
    name, a dict for several.  So every result has its own form: a gradient is then such a dict.
    `beyond`: how many arguments follow those of f.
    """
    names, places = _named(f, argnums, argnames, name)
    alone = isinstance(argnames, str)

    def of_named(given: Any, *args: Any, **kwargs: Any) -> Any:
        filled = [*args]
        for n in names:
            value, i = given if alone else given[n], places[n]
            if i is not None and i < len(args):
                filled[i] = value
            else:
                kwargs[n] = value
        return seen(f)(*filled, **kwargs)

    made = transform(of_named)
    defaults = {
        n: p.default
        for n, p in inspect.signature(f).parameters.items()
        if p.default is not inspect.Parameter.empty
    }

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        rest, given = [*args], {}
        for n in names:
            i = places[n]
            if i is not None and i < len(args) - beyond:
                given[n], rest[i] = args[i], None
            elif n in kwargs:
                given[n] = kwargs.pop(n)
            elif n in defaults:
                given[n] = defaults[n]
            else:
                raise TypeMismatchError(
                    f"{name}: argnames={argnames!r} asks for {n}, but the call does not give it; "
                    f"give it by position or as {n}=..."
                )
        return made(given[names[0]] if alone else given, *rest, **kwargs)

    return functools.update_wrapper(differentiated, f, ("__name__", "__qualname__", "__doc__"), ())


def _named(
    f: Callable[..., Any], argnums: Argnums, argnames: "str | Sequence[str]", name: str
) -> tuple[tuple[str, ...], dict[str, int | None]]:
    """The names that are asked for, and the position of each; None of what is given by keyword."""
    require_callable(f, name)
    names = (argnames,) if isinstance(argnames, str) else tuple(dict.fromkeys(argnames))
    if argnums != 0:
        raise TypeMismatchError(
            f"{name}: argnums={argnums!r} and argnames={argnames!r} both say what to "
            "differentiate; give one of them"
        )
    try:
        parameters = inspect.signature(f).parameters
    except ValueError:
        raise TypeMismatchError(
            f"{name}: argnames={argnames!r}: Python does not tell the parameters of "
            f"{show_type(f)}; give argnums, or a def around it"
        ) from None
    kinds = inspect.Parameter
    named = [
        n for n, p in parameters.items() if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]
    more = any([p.kind is kinds.VAR_KEYWORD for p in parameters.values()])
    strange = [n for n in names if not isinstance(n, str) or (n not in named and not more)]
    if strange or not names:
        asked = f"f has no parameter {strange[0]!r}" if strange else "no name is given"
        raise TypeMismatchError(
            f"{name}: argnames={argnames!r}: {asked}; its parameters are "
            f"{', '.join(named) or 'none'}"
        )
    listed = [n for n in named if parameters[n].kind is not kinds.KEYWORD_ONLY]
    return names, {n: listed.index(n) if n in listed else None for n in names}

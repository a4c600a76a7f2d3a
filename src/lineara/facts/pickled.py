"""What a function of ours has made pickles as that function and what it was given.

    grad(f, argnums=1)      is written as      grad, (f,), {"argnums": 1}

A function among these is written as pickle writes functions: by its name.  A pickle begins with
the version of Lineara that wrote it, which is looked at before anything else is read, for names and
programs are those of one version.
"""

import copy
import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from lineara.errors import PickleError

P = ParamSpec("P")


class Making(NamedTuple):
    """A function of ours, or a class, and what it was given."""

    maker: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def again(self, memo: dict[int, Any]) -> Any:
        """The call of copies of the arguments."""
        return self.maker(*copy.deepcopy(self.args, memo), **copy.deepcopy(self.kwargs, memo))


class Remade:
    """An object that pickles, and is copied, as the call that makes it anew."""

    __slots__ = ()

    def made_by(self) -> Making:
        """The call that makes such an object."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: object) -> Any:
        name = getattr(self, "__qualname__", None)
        if isinstance(name, str) and _named(getattr(self, "__module__", None), name) is self:
            return name  # as a decorated function at the top of a module
        return reduced(self.made_by())

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.made_by().again(memo)


def reduced(making: Making) -> Any:
    """What pickle is to write in place of an object, which reading it makes anew."""
    for f in _functions(making):
        name = f"{f.__module__}.{f.__qualname__}"
        if _named(f.__module__, f.__qualname__) is not f and not _writes_functions():
            raise PickleError(
                f"pickle: the function {f.__qualname__} cannot be imported: pickle writes the name "
                f"of a function, and there is none that is {name}; define it with def at the top "
                "of a module, or use cloudpickle.dumps, which writes functions with their code"
            )
    return _made_again, (WRITTEN, *making)


def _made_again(
    written: "_Written", maker: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    return maker(*args, **kwargs)


def _named(module: str | None, name: str) -> Any:
    """What a dotted name stands for in a module that is imported; None where it has none."""
    value: Any = sys.modules.get(module or "")
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _functions(making: Making) -> Iterable[FunctionType]:
    """The functions that are given, within partials and methods too."""
    for value in (*making.args, *making.kwargs.values()):
        while isinstance(value, functools.partial | MethodType) and not isinstance(value, Remade):
            value = value.func if isinstance(value, functools.partial) else value.__func__
        if type(value) is FunctionType:
            yield value


def _writes_functions() -> bool:
    """Whether the pickler at work is none of the standard library's, as cloudpickle's.

    It does not tell the object that it writes which it is, so it is looked for on the stack.
    """
    frame = sys._getframe(1)
    while frame is not None:
        pickler = frame.f_locals.get("self")
        if isinstance(pickler, pickle.Pickler | pickle._Pickler):  # type: ignore[attr-defined]
            package = type(pickler).__module__.partition(".")[0]
            return package not in ("_pickle", "pickle", "multiprocessing")
        frame = frame.f_back
    return False


# --- versions -------------------------------------------------------------------------------------


class _Written:
    """What a pickle begins with: the version of Lineara that has written it."""

    def __reduce__(self) -> Any:
        return _read, (_version(),)


def _version() -> str:
    return sys.modules[__name__.partition(".")[0]].__version__


def _read(version: str) -> _Written:
    if version != _version():
        raise PickleError(
            f"pickle: this was written by Lineara {version}, and this is Lineara {_version()}, "
            "which does not read it: pickles hold programs and names of one version; read it with "
            f"Lineara {version}, or make the object anew and pickle that"
        )
    return WRITTEN


WRITTEN = _Written()


# --- transformations ------------------------------------------------------------------------------


class Transformed(Remade, functools.partial[Any]):
    """A function that a transformation has made of a function `f`.

    It is called as what runs, without a frame of Python's, since it is a partial of that.
    """

    __lineara_leaf__ = True
    f: Callable[..., Any]
    made: Making

    def made_by(self) -> Making:
        """The transformation, and what it was given."""
        return self.made

    def of(self, f: Callable[..., Any]) -> Any:
        """The same transformation of another function."""
        return self.made.maker(f, *self.made.args[1:], **self.made.kwargs)

    def __get__(self, obj: Any, owner: object = None) -> Any:
        return self if obj is None else MethodType(self, obj)

    def __repr__(self) -> str:
        name = getattr(self.f, "__qualname__", None) or repr(self.f)
        return f"<{self.made.maker.__name__} of {name}>"


R = TypeVar("R")


def transformation(made: Callable[P, R]) -> Callable[P, R]:
    """A decorator of what makes a function of a function, its first argument: that pickles."""

    first = next(iter(inspect.signature(made).parameters))

    @functools.wraps(made)
    def transform(*args: P.args, **kwargs: P.kwargs) -> Any:
        run: Any = made(*args, **kwargs)
        given: dict[str, Any] = {**kwargs}
        every: list[Any] = [*args] or [given.pop(first)]
        f, *rest = every
        if run is f:
            return run
        new = Transformed(run.func if type(run) is Transformed else run)
        new.__dict__ |= vars(run)
        new.f, new.made, new.__doc__ = f, Making(transform, (f, *rest), given), run.__doc__
        new.__dict__ |= {n: getattr(f, n, getattr(run, n)) for n in NAMES}
        return new

    return transform


NAMES = ("__module__", "__name__", "__qualname__")


__all__ = ["Making", "Remade", "Transformed", "reduced", "transformation"]

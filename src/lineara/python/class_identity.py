"""`x is True`, `x is np.float64`, `x is np` in copied code, where these are not what they seem.

A truth value of a program is not known while it is written, and in copied code a class stands for
each class of numbers, and a module for NumPy.  What is loaded just before `is` becomes a constant
that answers `x in c`: in as many bytes, since no instruction may move.
"""

import dis
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import Box
from lineara.facts.registry import registry
from lineara.tape.node import Traced

_OPS = ("CONTAINS_OP", "LOAD_CONST", "NOP", "BUILD_TUPLE")
_IN, _LOAD, _NOP, _PAIR = (dis.opmap[name] for name in _OPS)
_CACHES = 1 if sys.version_info >= (3, 13) else 0  # after CONTAINS_OP
_CLASSES = {"float", "complex"} | {  # names of classes of numbers
    n for n, v in vars(np).items() if isinstance(v, type) and issubclass(v, np.generic)
}
_NAMES = _CLASSES | {"type", "__class__"}  # in a function that may compare classes
_SEEN = _CLASSES | {"np", "numpy"}
_NUMPYS = ("numpy", "lineara.numpy")  # itself, what stands for it; that of traced arrays
_GLOBAL, _LOCAL = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF")


class Truth(NamedTuple):
    """A truth value: `x in Truth(True)` is `x is True`, and may refuse."""

    truth: bool

    def __contains__(self, x: Any) -> bool:
        if isinstance(x, Box) and not getattr(x, "known", True) and x.dtype.kind == "b":
            if getattr(x, "weak", False) is False:  # NumPy's truth values are other objects
                return False
            raise StagingError(
                f"`is {self.truth}` of a staged bool[]: which truth value it is is not known while "
                "a program is written; use np.where, lineara.cond or np.logical_not"
            )
        return x is self.truth


class Named(NamedTuple):
    """The value of a name and its attributes, which may be a class of numbers or a module."""

    local: bool
    names: tuple[str, ...]

    def __contains__(self, x: Tree) -> bool:
        value = self.value(sys._getframe(1))
        return x is value or is_one_named(x, value)

    def value(self, frame: FrameType) -> Any:
        """What the code would have loaded."""
        name, *attributes = self.names
        if self.local:
            if name not in frame.f_locals:
                raise UnboundLocalError(f"cannot access local variable '{name}'")
            loaded = frame.f_locals[name]
        else:
            try:
                loaded = frame.f_globals[name]
            except KeyError:
                loaded = frame.f_builtins[name]
        for attribute in attributes:
            loaded = _attribute(loaded, attribute)
        return loaded


class Class(NamedTuple):
    """`(t, d) in Class("type")` is `t is d.type`, whatever `d` comes from."""

    attribute: str

    def __contains__(self, pair: Any) -> bool:
        x, value = pair[0], _attribute(pair[1], self.attribute)
        return x is value or _is_one_class(x, value)


def _attribute(value: Leaf, name: str) -> Any:
    """An attribute, as code that is not ours sees it."""
    if isinstance(value, Traced):
        shown = value.stands_for()
        if name == "__class__":
            return shown
        if not hasattr(shown, name):
            raise AttributeError(f"'{shown.__name__}' object has no attribute '{name}'")
    return getattr(value, name)


def is_one_named(x: Tree, y: Tree) -> bool:
    """Whether two objects, of which one may stand for the other, are one class or one module."""
    if isinstance(x, ModuleType) and isinstance(y, ModuleType):
        return x.__name__ in _NUMPYS and y.__name__ in _NUMPYS
    return _is_one_class(x, y)


def _is_one_class(x: Tree, y: Tree) -> bool:
    """Whether both are the same class of numbers, either of them maybe as its stand-in."""
    if not (isinstance(x, type) and isinstance(y, type)):
        return False
    return registry.number_class(x) is not None and bool(x == y)


def _asked(code: CodeType, places: tuple[str, ...]) -> Iterator[tuple[int, int, Any]]:
    """The offsets at which a comparison with `is` and its `is` begin, and the constant."""
    lines = list(dis.get_instructions(code))
    classes = not _NAMES.isdisjoint(code.co_names)
    for k, line in enumerate(lines):
        if line.opname != "IS_OP":
            continue
        first = k - 1
        while lines[first].opname == "LOAD_ATTR":
            first -= 1
        if any([i.is_jump_target for i in lines[first + 1 : k + 1]]):
            continue  # the operand may come from a jump, as in `a if c else b`
        loaded = lines[first]
        names = tuple([i.argval for i in lines[first:k]])
        if loaded.opname == "LOAD_CONST" and type(loaded.argval) is bool:
            yield loaded.offset, line.offset, Truth(loaded.argval)
        elif loaded.opname in places and (classes or names[-1] in _SEEN):
            yield loaded.offset, line.offset, Named(loaded.opname in _LOCAL, names)
        elif lines[k - 1].opname == "LOAD_ATTR" and names[-1] in ("type", "__class__"):
            yield lines[k - 1].offset, line.offset, Class(names[-1])


def compared(code: CodeType, flat: bytearray, consts: list[Any], local: bool) -> None:
    """Let the code, whose bytes are `flat`, ask `in` of constants, which are added to `consts`.

    `local` says whether its frame tells what local names stand for.
    """
    if dis.opmap["IS_OP"] not in code.co_code[::2]:
        return
    for start, at, constant in _asked(code, _GLOBAL + _LOCAL * local):
        load = at - 2 - 2 * _CACHES
        if load < start or len(consts) >= 256:
            continue
        asked = [_LOAD, len(consts), _IN, flat[at + 1], *[0, 0] * _CACHES]
        space = [_NOP, 0] * ((load - start) // 2)
        if isinstance(constant, Class):
            space[:2] = [_PAIR, 2]
        flat[start : at + 2] = bytes(space + asked)
        consts.append(constant)

"""What a staged condition chooses where it is no number: None, a text, a function, a container.

    y = None                       y is OneOf(tag, (None, a number)) after this, and narrowed to
    if x > 0: y = x                the number in the branches of `y is not None` and of `y`
    if y is not None: ...

A program carries the tag, a whole number, and what the alternatives have of numbers and arrays.
It asks a choice which one it is, by `is`, `==` and as a condition, and calls one of functions.
Blocks that are entered where one alternative is left see that one.  All else is refused.
"""

import dis
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from lineara.errors import StagingError, is_own_file
from lineara.facts.hints import Leaf, Tree
from lineara.facts.pickled import Transformed
from lineara.facts.primitive import op
from lineara.facts.types import show_type
from lineara.python.class_identity import is_one_named
from lineara.python.function_copies import is_user_code
from lineara.python.namespaces import Namespace
from lineara.python.structured_code import is_structured
from lineara.python.user_code import Reading, reading
from lineara.staging.capture.variables import UNSET, Place, Variables, contents, put
from lineara.staging.staged_arrays import StagedArray
from lineara.tape.node import Array, Scalar, Traced
from lineara.trees import LEAF, Structure, flatten, unflatten

Codes = frozenset[int]


class OneOf(Traced):
    """One of several values, which a staged whole number, the tag, says."""

    __slots__ = ("tag", "trees", "valued")
    known = False

    def __init__(self, tag: Leaf, trees: Sequence[Tree]) -> None:
        self.tag: Any = tag
        self.trees: tuple[Tree, ...] = tuple(trees)
        self.valued: Any = None  # of a variable that may have no value: what it is if it has one

    def __repr__(self) -> str:
        return f"one of {_shown(self.trees)}"

    def __eq__(self, other: object) -> Any:
        return asked(self, lambda tree: tree == other, None)

    def __ne__(self, other: object) -> Any:
        return asked(self, lambda tree: tree != other, None)


def _refuse(one: OneOf, *_: Leaf, **__: Leaf) -> Any:
    raise StagingError(
        f"a value was used that a staged condition chooses: it is {_shown(one.trees)} as the "
        "program runs; ask which it is, with `is`, == or as a condition, in a branch that uses "
        "it, or call it where all are functions"
    )


_TEXTS = {"__hash__", "__str__", "__format__", "__reduce__", "__reduce_ex__"}
_OWN = {*vars(object), *vars(OneOf), "__getattribute__", "__setattr__"}
_ASKED = {n for c in (complex, dict, float, int, list, set, str) for n in vars(c)}
_ASKED |= {"__call__", "__enter__", "__exit__", "__array__", "__copy__", "__deepcopy__"}
_ASKED |= {f"__{way}matmul__" for way in ("", "r", "i")}
for _name in {n for n in _ASKED if n[:2] == "__"} - _OWN | _TEXTS:
    setattr(OneOf, _name, _refuse)
for _name in {*dir(Traced), "level"} - {*vars(OneOf), "in_plans"} - _OWN:
    setattr(OneOf, _name, property(_refuse))
OneOf.__getattr__ = _refuse  # type: ignore[attr-defined]


def _shown(trees: Sequence[Any]) -> str:
    """The alternatives as errors name them."""
    return " or ".join(dict.fromkeys(map(_name_of, trees)))


def _name_of(tree: Tree) -> str:
    if tree is UNSET:
        return "without a value"
    if tree is None or isinstance(tree, str | bool | int | float):
        return repr(tree)
    if callable(tree) and hasattr(tree, "__name__"):
        return str(tree.__name__)
    leaves, structure = flatten(tree)
    return show_type(leaves[0]) if structure == LEAF else f"{structure}".removeprefix("Structure")


def is_perhaps(x: Leaf) -> TypeGuard[OneOf]:
    """Whether something is a choice of which one says that a variable has no value."""
    return type(x) is OneOf and any([tree is UNSET for tree in x.trees])


def with_value(one: OneOf) -> tuple[Any, Any]:
    """What a variable holds that has a value, and whether it has none: False, True or staged."""
    none = next(k for k, tree in enumerate(one.trees) if tree is UNSET)
    has, left, now = frozenset(range(len(one.trees))) - {none}, left_of(one), reading()
    if not left & has:
        return UNSET, True
    if one.valued is None:
        other = one.trees[min(has)]
        one.valued = OneOf(one.tag, [other if tree is UNSET else tree for tree in one.trees])
    valued = one.valued
    assert now is not None, "choices are made where functions are read"
    now.left.setdefault(id(valued), (valued, has))
    which = left & left_of(valued)
    unset = op("equal")(one.tag, none) if none in left else False
    return (one.trees[min(which)] if len(which) == 1 else valued), unset


# --- which it is ----------------------------------------------------------------------------------


class Told(NamedTuple):
    """What a condition says about choices: the codes that remain where it holds, and where not."""

    holds: tuple[tuple[OneOf, Codes], ...] = ()
    fails: tuple[tuple[OneOf, Codes], ...] = ()


def left_of(one: OneOf) -> Codes:
    """The alternatives that are left in the block that is being written."""
    now = reading()
    every = frozenset(range(len(one.trees)))
    return every if now is None else now.left.get(id(one), (one, every))[1]


def asked(one: OneOf, ask: Callable[[Any], Any], weak: bool | None = True) -> Any:
    """Whether something holds of the alternative that it is; `ask` says so of each.

    `weak` says whether that of a staged one is a truth value of Python's.
    """
    answers = {k: ask(one.trees[k]) for k in sorted(left_of(one))}
    if any([isinstance(a, Array | np.ndarray) for a in answers.values()]):
        _refuse(one)
    answers = {k: a if isinstance(a, Traced) else bool(a) for k, a in answers.items()}
    for sure in (True, False):
        if all([a is sure for a in answers.values()]):
            return sure
    t: Any = None
    for k, answer in answers.items():
        if answer is not False:
            here = op("equal")(one.tag, k)
            here = here if answer is True else op("logical_and")(here, answer)
            t = here if t is None else op("logical_or")(t, here)
    holds = frozenset([k for k, a in answers.items() if a is not False])
    fails = frozenset([k for k, a in answers.items() if a is not True])
    known = all([isinstance(a, bool) for a in answers.values()])
    y = t.level.number(t.v, True if known else weak)
    tell(y, Told(((one, holds),), ((one, fails),)))
    return y


def tell(test: Leaf, told: Told) -> None:
    """Remember what a condition says about choices."""
    now = reading()
    if now is not None and (told.holds or told.fails) and _is_condition(test):
        now.told[test.v.var] = told


def told_by(test: Leaf) -> Told:
    """What a condition says about choices."""
    now = reading()
    return now.told.get(test.v.var, Told()) if now and _is_condition(test) else Told()


def _is_condition(test: Leaf) -> TypeGuard[Scalar]:
    return isinstance(test, Scalar) and not test.known and test.dtype.kind == "b"


def knowing(
    facts: Sequence[tuple[OneOf, Codes]], variables: Variables
) -> AbstractContextManager[Mapping[Place, Any]]:
    """The block knows what a condition has told; variables of which one is left hold that one.

    Gives what these hold.  Who resets the variables afterwards is the caller.
    """
    now = reading() if facts else None
    return NOTHING_KNOWN if now is None else _knowing(now, facts, variables)


NOTHING_KNOWN: AbstractContextManager[Mapping[Place, Any]] = nullcontext(MappingProxyType({}))


@contextmanager
def _knowing(
    now: Reading, facts: Sequence[tuple[OneOf, Codes]], variables: Variables
) -> Iterator[Mapping[Place, Any]]:
    before, narrowed = now.left, dict[Place, Any]()
    now.left = {**before}
    for one, codes in facts:
        now.left[id(one)] = one, left_of(one) & codes
    try:
        for place, cell in [*variables.cells.items(), *[("", c) for c in variables.others]]:
            held = contents(cell)
            if type(held) is OneOf and len(left_of(held)) == 1:
                (k,) = left_of(held)
                put(cell, held.trees[k])
                if place:
                    narrowed[place] = held.trees[k]
        yield narrowed
    finally:
        now.left = before


def is_(a: Leaf, b: Leaf) -> Any:
    """`a is b`."""
    if a is b:
        return True
    if not (isinstance(a, Traced) or isinstance(b, Traced)):
        return is_one_named(a, b)
    if type(a) is OneOf or type(b) is OneOf:
        one: Any = a if type(a) is OneOf else b
        other = b if one is a else a
        return asked(one, lambda tree: is_(tree, other))
    known, other = (a, b) if not isinstance(a, Traced) else (b, a)
    if not isinstance(known, Traced | np.ndarray):
        return _is_flag(other, known)
    if any([isinstance(v, Traced) and v.known for v in (a, b)]):
        return False
    if any([isinstance(v, StagedArray) and v.new for v in (a, b)]):
        return False
    raise StagingError(
        "whether two staged values are one object is not known while a program is written: the "
        "same program may be given one array twice, and a branch gives one of several; compare "
        "what they hold, or pass a flag"
    )


def _is_flag(x: Leaf, known: Leaf) -> Any:
    """`x is True`, and so on, of a staged value: of Python's truth values a question."""
    if type(known) is not bool or not _is_condition(x) or x.weak is False:
        return False
    if x.weak is not True:
        raise StagingError(
            f"`is {known}` of a staged bool[], which is Python's in one branch or round of a loop "
            "and NumPy's in another; use it as a condition itself"
        )
    return x if known else x.level.number(op("logical_not")(x).v, True)


# --- calls that are given choices -----------------------------------------------------------------

# Operations that tell None and other objects by their identity, which forms do of choices.
_BY_IDENTITY = bytes([n for name, n in dis.opmap.items() if name == "IS_OP" or "_NONE" in name])


def refusing(f: Callable[..., Any]) -> Callable[..., Any]:
    """What is called; it refuses a choice among its arguments where it could mistake it."""
    if type(f) is Transformed:
        return f
    if type(f) is FunctionType:
        space, code = f.__globals__, f.__code__
        if (is_structured(code) and type(space) is Namespace) or is_own_file(code.co_filename):
            return f
    return functools.partial(_called, f)


def _called(f: Callable[..., Any], *args: Leaf, **options: Leaf) -> Any:
    """A call of a function that was not rewritten."""
    given = args if not options else (*args, *options.values())
    chosen = [v for v in given if OneOf in _kinds(v)]
    if chosen and f not in _KEEPING and not _is_blind(f):
        _refuse(_first(chosen[0]))
    if any([getattr(type(v), "holds_items", False) for v in given]) and _takes_lists(f, given):
        args = tuple(map(_as_list, args))
        options = {k: _as_list(v) for k, v in options.items()}
    return f(*args, **options)


def _as_list(v: Leaf) -> Any:
    """A list of the captured function as one of Python's own class; anything else as it is."""
    return [*v] if getattr(type(v), "holds_items", False) else v  # type: ignore[misc]


def _takes_lists(f: Any, given: Sequence[Leaf]) -> bool:
    """Whether a function may take no lists but of Python's own class, and writes into none."""
    module = getattr(f, "__module__", None)
    numpys = isinstance(module, str) and module.partition(".")[0] == "numpy"
    return any([isinstance(v, np.dtype) for v in given]) or (numpys and f.__name__ != "shuffle")


_KEEPING: tuple[Any, ...] = (dict, list, tuple)  # what holds its arguments and asks them nothing


def _first(v: Any) -> OneOf:
    """A choice, or the first one in a list or tuple."""
    return v if type(v) is OneOf else next(w for w in v if type(w) is OneOf)


def _kinds(v: Any) -> list[type]:
    return [*map(type, v)] if type(v) is tuple or type(v) is list else [type(v)]


def _is_blind(f: Leaf) -> bool:
    """Whether a function of the user's, or a class, looks at no identity of what it is given."""
    while isinstance(f, functools.partial | MethodType):
        f = f.func if isinstance(f, functools.partial) else f.__func__
    inner = f.__init__ if isinstance(f, type) else f
    if not isinstance(inner, FunctionType):
        return False
    file = inner.__code__.co_filename  # of what dataclass makes there is none
    return (is_user_code(file) or file == "<string>") and not _asks_by_identity(inner.__code__)


def _asks_by_identity(code: CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return any([n in _BY_IDENTITY for n in code.co_code[::2]]) or any(map(_asks_by_identity, inner))


# --- leaves ---------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """The containers of a value, and of each of its leaves that is a choice those within."""

    outer: Structure
    inner: tuple["tuple[Shape, ...] | None", ...]

    def __repr__(self) -> str:
        return repr(self.outer)

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return sum([1 if s is None else 1 + sum([t.size for t in s]) for s in self.inner])


def flattened(tree: Tree) -> tuple[list[Any], Shape]:
    """The leaves of a value, those of choices after their tags."""
    flat, structure = flatten(tree)
    if OneOf not in map(type, flat):
        return flat, Shape(structure, (None,) * len(flat))
    leaves, inner = [], []
    for v in flat:
        if type(v) is not OneOf:
            leaves.append(v)
            inner.append(None)
            continue
        parts = [*map(flattened, v.trees)]
        leaves += [v.tag, *[leaf for part, _ in parts for leaf in part]]
        inner.append(tuple([shape for _, shape in parts]))
    return leaves, Shape(structure, tuple(inner))


def built(shape: Shape, leaves: Iterator[Any]) -> Any:
    """The value of that shape with these leaves."""
    flat = [
        next(leaves) if s is None else OneOf(next(leaves), [built(t, leaves) for t in s])
        for s in shape.inner
    ]
    return unflatten(shape.outer, flat)


__all__ = ["OneOf", "Shape", "asked", "built", "flattened", "is_", "knowing", "refusing", "tell"]

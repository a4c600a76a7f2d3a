"""A program: named types and definitions.  Two programs are equal if their canonical texts are."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from lineara.facts.pickled import Making, Remade
from lineara.facts.types import (
    UNIT,
    ArrayType,
    Family,
    Named,
    Product,
    Stack,
    Sum,
    Type,
    carries_tangents,
)
from lineara.linear_a.dimensions import dims_of, is_open, may_act, may_raise, with_dims
from lineara.linear_a.show import show_program
from lineara.linear_a.syntax import Binding, Def, Let, Vars, functions, linear_form
from lineara.text.source_location import Place

LONG = 1.0
"""Seconds of a processor after which a user is told what took so long."""


@dataclass(frozen=True, slots=True, eq=False)
class Program(Remade):
    """Named types and definitions; passes add to it and give a new one.

    `places` and `text` tell where what was parsed stands: of a leaf, a binding or a definition
    first itself and then its variables in order.  `noted` is what evaluations have found out about
    the text, for the next one.
    """

    types: Mapping[str, Type | Family]
    defs: Mapping[str, Def]
    places: Mapping[Any, tuple[Place, ...]] = field(default_factory=dict)
    text: str = ""
    file: str = ""
    _dims: dict[str, Vars] = field(default_factory=dict, init=False)
    noted: dict[str, dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict), init=False)

    def with_(self, *more: Def, types: Mapping[str, Type | Family] | None = None) -> "Program":
        """The program with more definitions and types; those of the same names are replaced."""
        new = {d.name: d for d in more}
        defs = dict(self.defs) | new
        for f, d in self.defs.items():  # what is linear in x is f'x no more, if that is replaced
            if d.linear and any([linear_form(d, places) in new for places in d.linear]):
                defs[f] = replace(defs[f], linear=())
        every = {**self.types, **(types or {})}
        return Program(every, defs, self.places, self.text, self.file)

    @property
    def outline(self) -> "Program":
        """The program before derivatives are made that are made later; see `unmade.py`."""
        return self

    @property
    def whole(self) -> "Program":
        """The program with these derivatives."""
        return self

    @property
    def is_made(self) -> bool:
        """Whether they are made."""
        return True

    @property
    def seconds(self) -> dict[str, float]:
        """The processor's time for the steps that made the program, since it was told last."""
        return self.noted["seconds"]

    @contextmanager
    def takes_time(self, step: str) -> Iterator[None]:
        """Note how long a step takes."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.thread_time() - begun

    def tell_what_took_long(self, what: str) -> None:
        """Say on stderr what has taken a processor long, and which steps, if it has."""
        if sum(self.seconds.values()) > LONG:
            parts = ", ".join([f"{step} {s:.1f} s" for step, s in self.seconds.items()])
            print(f"lineara: {what}: {parts}", file=sys.stderr, flush=True)
            self.seconds.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and str(self) == str(other)

    __hash__: ClassVar[Callable[[object], int]] = object.__hash__

    def made_by(self) -> Making:
        """The program itself, without what evaluations have found out about it."""
        data = dict(self.types), dict(self.defs), dict(self.places), self.text, self.file
        return Making(Program, data, {})

    def may_raise(self, b: Binding) -> bool:
        """Whether a binding may end in an exception of Python's or acts, and is no dead code."""
        raises = self.least("raises", lambda d, known: may_raise(d.body, known.__getitem__))
        return isinstance(b, Let) and may_raise(b.rhs, lambda f: raises.get(f, False))

    def may_act(self, b: Binding) -> bool:
        """Whether a binding may act, so that it is not evaluated twice, or once for two."""
        return isinstance(b, Let) and may_act(b.rhs, lambda f: self.acting.get(f, False))

    @property
    def acting(self) -> dict[str, bool]:
        """Which definitions may act."""
        return self.least("acts", lambda d, known: may_act(d.body, known.__getitem__))

    def least(self, key: str, holds: Callable[[Def, dict[str, bool]], bool]) -> dict[str, bool]:
        """Of which definitions a property holds, if it holds of them by what they apply.

        The least fixed point, found once: it holds of none until it follows for some.
        """
        known = self.noted[key]
        if not known:
            known.update(dict.fromkeys(self.defs, False))
            more = True
            while more:
                more = False
                for f, d in self.defs.items():
                    if not known[f] and holds(d, known):
                        known[f] = more = True
        return known

    def reached(self, *names: str, rules: Iterable[str] = ()) -> Iterator[str]:
        """The definitions of these names, and what they apply; with the `rules` beside them."""
        open_, seen = list(names), set()
        while open_:
            f = open_.pop()
            if f in seen:
                continue
            seen.add(f)
            yield f
            if f in self.defs:
                open_ += functions(self.defs[f].body)[::-1]
                open_ += [f + suffix for suffix in rules if f + suffix in self.defs]

    def __str__(self) -> str:
        return show_program(self.types, self.defs)

    def dims(self, name: str) -> Vars:
        """The formals of a definition that are dimensions, in it or in what it applies."""
        if not self._dims:
            self._dims.update(dims_of(self.defs))
        return self._dims.get(name, ())

    # --- types -----------------------------------------------------------------------------

    def unfold(self, t: Type) -> Type:
        """The type that a name stands for; any other as it is."""
        while isinstance(t, Named):
            stated = self.types[t.name]
            if isinstance(stated, Family):
                t = with_dims(stated.type, dict(zip(stated.dims, t.dims, strict=True)))
            else:
                t = stated
        return t

    def stated(self, name: str) -> Type:
        """The type that a name stands for, about the dimensions of its definition."""
        stated = self.types[name]
        return stated.type if isinstance(stated, Family) else stated

    def same(self, s: Type, t: Type) -> bool:
        """Equality of types, up to unfolding of names; a recursive name is equal to itself only."""
        open_: list[tuple[Type, Type]] = [(s, t)]
        seen = set()
        while open_:
            s, t = pair = open_.pop()
            if s == t or pair in seen:
                continue
            seen.add(pair)
            s, t = self.unfold(s), self.unfold(t)
            if isinstance(s, ArrayType) or type(s) is not type(t):
                if s != t:
                    return False
            elif isinstance(s, Product | Sum | Stack) and isinstance(t, Product | Sum | Stack):
                if len(s.items) != len(t.items):
                    return False
                if getattr(s, "fields", None) != getattr(t, "fields", None):
                    return False
                if isinstance(s, Stack) and s.n != getattr(t, "n", None):
                    return False
                open_ += zip(s.items, t.items, strict=True)
        return True

    def leaves(self, t: Type) -> Iterator[ArrayType | Sum | Stack]:
        """The arrays, sums and stacks in a type, where the products are taken apart."""
        t = self.unfold(t)
        if isinstance(t, Product):
            for item in t.items:
                yield from self.leaves(item)
        else:
            assert not isinstance(t, Named)
            yield t

    def scalars(self, t: Type) -> int:
        """|t|: how many real numbers with tangents are in a value of the type.

        Of a sum, of a stack without a length, and of what is open only a value can tell: they
        count 0 here.
        """
        n = 0
        for a in self.leaves(t):
            if isinstance(a, ArrayType):
                n += 0 if is_open(a) else scalars_of(a)
            elif isinstance(a, Stack) and a.n is not None:
                n += a.n * self.scalars(a.items[0])
        return n

    def has_scalars(self, t: Type) -> bool:
        """Whether |t| is known to be positive, for dimensions that are not 0."""
        return any(
            carries_tangents(a.dtype) and 0 not in a.shape
            if isinstance(a, ArrayType)
            else isinstance(a, Stack) and a.n not in (None, 0) and self.has_scalars(a.items[0])
            for a in self.leaves(t)
        )

    def is_linear(self, t: Type) -> bool:
        """lin(t): a vector space, whose values add and have a zero."""
        return self._is_linear(t, set())

    def _is_linear(self, t: Type, seen: set[str]) -> bool:
        if isinstance(t, Named):
            if t.name in seen:
                return True
            seen.add(t.name)
            return self._is_linear(self.stated(t.name), seen)
        if isinstance(t, ArrayType):
            return carries_tangents(t.dtype)
        return all(self._is_linear(item, seen) for item in t.items)

    def is_own_tangent(self, t: Type) -> bool:
        """Whether the type is its own tangent type: every number in it has a tangent."""
        return self._is_own_tangent(t, set())

    def _is_own_tangent(self, t: Type, seen: set[str]) -> bool:
        if isinstance(t, Named):
            if t.name in seen:
                return True
            seen.add(t.name)
            return self._is_own_tangent(self.stated(t.name), seen)
        if isinstance(t, ArrayType):
            return carries_tangents(t.dtype)
        inert = isinstance(t, Sum | Stack) and self.is_inert(t)
        return not inert and all(self._is_own_tangent(item, seen) for item in t.items)

    def is_inert(self, t: Type) -> bool:
        """Whether no number in a value of the type has a tangent: integers and booleans only."""
        if isinstance(t, ArrayType):
            return not carries_tangents(t.dtype)
        return self._is_inert(t, set())

    def _is_inert(self, t: Type, seen: set[str]) -> bool:
        if isinstance(t, Named):
            if t.name in seen:
                return True
            seen.add(t.name)
            return self._is_inert(self.stated(t.name), seen)
        if isinstance(t, ArrayType):
            return not carries_tangents(t.dtype)
        return all(self._is_inert(item, seen) for item in t.items)


def scalars_of(t: ArrayType) -> int:
    """The differentiable real numbers in an array: two in a complex number, none in an integer."""
    return t.size * {"f": 1, "O": 1, "c": 2}.get(t.dtype.kind, 0)


def tangent_name(name: str) -> str:
    """The name of the tangent type of a named type that also holds integers or booleans."""
    return f"{name}.tan"


def tangent_type(program: Program, t: Type) -> Type:
    """t': the tangent type; what is no floating or complex number has the unit as its tangent.

    A named type whose numbers all have tangents is its own; of another the name is `NAME.tan`,
    which `tangent_types` defines.
    """
    if isinstance(t, Named):
        return t if program.is_own_tangent(t) else Named(tangent_name(t.name), t.dims)
    if isinstance(t, ArrayType):
        return t if carries_tangents(t.dtype) else UNIT
    if isinstance(t, Sum | Stack) and program.is_inert(t):
        return UNIT
    return t._replace(items=tuple([tangent_type(program, item) for item in t.items]))


def tangent_types(program: Program, used: Iterator[Type]) -> dict[str, Type | Family]:
    """The definitions of the `NAME.tan` that tangents of the types mention."""
    types: dict[str, Type | Family] = {}
    open_ = list(used)
    while open_:
        t = open_.pop()
        if isinstance(t, Named):
            name = tangent_name(t.name)
            if not program.is_own_tangent(t) and name not in types and name not in program.types:
                stated = program.types[t.name]
                made = tangent_type(program, program.stated(t.name))
                types[name] = Family(stated.dims, made) if isinstance(stated, Family) else made
                open_.append(program.stated(t.name))
        elif not isinstance(t, ArrayType):
            open_ += t.items
    return types

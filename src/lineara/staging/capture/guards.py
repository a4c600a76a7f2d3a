"""Guards: whether what a program depends on is what it was, asked in code that is made for it.

    d0['RATE'] is v1                                a global
    c2.cell_contents is v3                          a variable of a closure
    f4.__code__ is v5 and f4.__defaults__ is v6     a function
    len(x7) == 2 and all(map(is_, x7, v8))          a list

What is one and the same object has not changed, and what that holds is asked for itself.  So the
code compares identities, which costs some nanoseconds each.  Where one differs the snapshot
compares in full, and where all is equal there the code goes on with the objects as they are now.
What is read is what is compared: a change by another thread is seen now or at the next call.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import is_
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import is_own_file
from lineara.facts.hints import Leaf
from lineara.python.function_copies import is_user_code
from lineara.staging.capture.containers import (
    Name,
    Snapshot,
    Watched,
    attributes,
    called,
    dict_of,
    elements,
    entries_of_class,
    is_large,
    lying,
    slotted,
)
from lineara.staging.capture.variables import UNSET, contents

_DICTS = (dict, defaultdict, OrderedDict)


class Guard:
    """Whether all that a snapshot shows is as it was, but for what arrays hold that are inputs.

    arrays   those that would be inputs where they are read, by their ids
    inputs   those that are, in their order
    """

    def __init__(self, snapshot: Snapshot, arrays: Collection[int] = (), inputs: Any = ()) -> None:
        every = snapshot.watched()
        self.watched: list[Watched] = [_as_input(w) if id(w.thing) in arrays else w for w in every]
        self.reached: set[int] = snapshot.seen
        self.inputs: list[np.ndarray] = inputs
        self.terms: list[Term] = []  # what its code asks
        self.code: Code | None = None  # made when it is asked first

    def is_stale(self) -> bool:
        """Whether anything is not as it was."""
        return not (self.code is not None and self.code.holds()) and self._differs()

    def _rebind(self) -> None:
        """Where a name stands for another array that lies as the one did, that is the input."""
        names = [i for i, w in enumerate(self.watched) if isinstance(w.thing, Name)]
        for k, old in enumerate(self.inputs):
            places = [i for i in names if self.watched[i].was is old]
            if len(places) != 1:
                continue
            (i,) = places
            w, new = self.watched[i], self.watched[i].read()
            others = any([new is a for a in self.inputs]) or id(new) in self.reached
            if type(new) is np.ndarray and not others and lying(new) == lying(old):
                at = next(j for j, w in enumerate(self.watched) if w.thing is old)
                self.watched[at] = _as_input(self.watched[at]._replace(thing=new))
                self.watched[i] = w._replace(was=new)
                self.inputs[k] = new

    @property
    def arrays(self) -> list[np.ndarray]:
        """The arrays that it watches."""
        return [w.thing for w in self.watched if isinstance(w.thing, np.ndarray)]

    def what_changed(self) -> str:
        """The first thing that has changed, in words."""
        changed = [w for w in self.watched if not w.is_same(w.read())]
        return str(changed[0]) if changed else "nothing that is still to be seen"

    def _differs(self) -> bool:
        """Compare in full; where all is equal, the code compares with what there is now."""
        self._rebind()
        now = [w.read() for w in self.watched]
        if not all([w.is_same(v) for w, v in zip(self.watched, now, strict=True)]):
            return True
        terms = _Terms()
        for w, v in zip(self.watched, now, strict=True):
            terms.add(w, v)
        self.terms = terms.all()
        code = asked(self.terms)
        if self.code is not None and self.code.text == code.text:
            self.code.scope.update(code.scope)
        else:
            self.code = code
        return False


def _as_input(w: Watched) -> Watched:
    """An array whose elements a program is given."""
    return Watched(w.thing, lying(w.thing), lying)


class Code(NamedTuple):
    """An expression, what its names stand for, and a function that says whether it holds.

    The function raises nothing.
    """

    text: str
    scope: dict[str, Any]
    holds: Any

    @classmethod
    def of(cls, text: str, scope: dict[str, Any], *formals: str) -> "Code":
        """The function of some formals, with what the other names stand for."""
        head = f"def holds({', '.join(formals)}):\n try:\n  return "
        body = f"{text}\n except Exception:\n  return False"
        made: dict[str, Any] = {}
        exec(compile(head + body, "<lineara guard>", "exec"), scope, made)
        return cls(text, scope, made["holds"])


class Term(NamedTuple):
    """One thing that a guard asks: which of TEXTS, about what."""

    kind: str
    operands: tuple[Any, ...]


TEXTS = {
    "cell": "{0}.cell_contents is {1}",
    "item": "{0}[{1}] is {2}",
    "absent": "{0}.keys().isdisjoint({1})",
    "code": "{0}.__code__ is {1}",
    "defaults": "{0}.__defaults__ is {1}",
    "options": "{0}.__kwdefaults__ is {1}",
    "class": "type({0}) is {1}",
    "attribute": "getattr({0}, {1}) is {2}",
    "dict": "len({0}) == len({1}) and all(map(is_, {0}, {1})) and all(map(is_, {0}.values(), {2}))",
    "list": "len({0}) == len({1}) and all(map(is_, {0}, {1}))",
    "array": "{0}.shape == {1} and {0}.dtype is {2} and {0}.strides == {3}",
    "bytes in place": "{4}.startswith({0}.data)",  # without a copy: a third of the time
    "bytes": "{0}.tobytes() == {4}",
    "asked": "{0}({1}())",
}
TEXTS["entries of a class"] = TEXTS["dict"].replace("{0}", "vars({0})")
TEXTS["attributes"] = TEXTS["entries of a class"]
for _kind in ("bytes in place", "bytes"):
    TEXTS[_kind] = TEXTS["array"] + " and " + TEXTS[_kind]


def asked(terms: Iterable[Term]) -> Code:
    """The code that asks all of them."""
    scope: dict[str, Any] = {"is_": is_}
    names: dict[int, str] = {}

    def name(value: object) -> str:
        if id(value) not in names:
            names[id(value)] = f"v{len(scope)}"
            scope[names[id(value)]] = value
        return names[id(value)]

    texts = [TEXTS[t.kind].format(*map(name, t.operands)) for t in terms]
    return Code.of(" and ".join(texts) or "True", scope)


class _Terms:
    """What a guard asks."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.unset: dict[int, tuple[Any, list[str]]] = {}  # names that are not bound, by the dict

    def all(self) -> list[Term]:
        """The terms, at the end."""
        return [*self.terms, *[Term("absent", (d, tuple(n))) for d, n in self.unset.values()]]

    def ask(self, kind: str, *operands: Any) -> None:
        """One more term."""
        self.terms.append(Term(kind, operands))

    def add(self, w: Watched, now: Any) -> None:
        """One more thing, which is this now."""
        x = w.thing
        if isinstance(x, Name):
            done = self._place(x, now)
        elif isinstance(x, FunctionType):
            done = self._function(x, now)
        elif w.reader is attributes or getattr(w.reader, "func", None) is slotted:
            done = self._object(x, now, *getattr(w.reader, "args", ()))
        elif w.reader is entries_of_class:
            done = self._class(x, now)
        elif w.reader is elements and type(x) is np.ndarray and not x.dtype.hasobject:
            kind = "bytes in place" if is_large(x) and x.flags.c_contiguous else "bytes"
            self.ask(kind, x, now.shape, x.dtype, x.strides, now.tobytes())
            done = x.dtype == now.dtype
        elif w.reader is lying:
            self.ask("array", x, *now)
            done = True
        elif type(x) in _DICTS:
            done = self._dict("dict", x, now)
        elif type(x) in (list, deque):
            self.ask("list", x, [*now])
            done = True
        else:
            done = False
        if not done:
            self.ask("asked", w.is_same, w.read)

    def _place(self, p: Name, now: Any) -> bool:
        if isinstance(p.space, CellType):
            if now is UNSET:
                return False
            self.ask("cell", p.space, now)
        elif now is UNSET:
            self.unset.setdefault(id(p.space), (p.space, []))[1].append(p.name)
        else:
            self.ask("item", p.space, p.name, now)
        return True

    def _function(self, f: FunctionType, now: Sequence[Any]) -> bool:
        """Its code and defaults; of one that is not the user's, what it holds.

        Of one of this library nothing is asked: it rebinds nothing that it holds.
        """
        terms, own = len(self.terms), is_own_file(f.__code__.co_filename)
        if not own:
            self.ask("code", f, f.__code__)
        if is_user_code(f.__code__.co_filename):
            defaults, options = f.__defaults__, f.__kwdefaults__
            self.ask("defaults", f, defaults)
            self.ask("options", f, options)
            if options:
                self._dict("dict", options, options)
            parts = [f.__code__, *(defaults or ()), *(options or {}).values()]
        else:
            held = [contents(c) for c in f.__closure__ or ()]
            if not own:
                for cell, value in zip(f.__closure__ or (), held, strict=True):
                    self.ask("cell", cell, value)
                self._dict("dict", vars(f), vars(f))
            parts = [f.__code__, *called(held), *vars(f).values()]
        if len(parts) == len(now) and all(map(is_, parts, now)):
            return True
        del self.terms[terms:]
        return False

    def _object(self, x: Leaf, now: Mapping[str, Any], slots: Sequence[str] = ()) -> bool:
        """Its class, what lies in slots, and the rest."""
        own = dict_of(x)
        if not all([n in now for n in slots]):
            return False
        values = {**now}
        self.ask("class", x, values.pop("__class__"))
        for n in slots:
            self.ask("attribute", x, n, values.pop(n))
        return own is None or self._dict("attributes", x, values)

    def _class(self, c: type, now: Mapping[str, Any]) -> bool:
        every = dict(vars(c))
        if any([every.get(n, UNSET) is not v for n, v in now.items()]):
            return False
        return self._dict("entries of a class", c, every)

    def _dict(self, kind: str, x: object, now: Mapping[Any, Any]) -> bool:
        """The keys in their order, and what they have."""
        self.ask(kind, x, [*now], [*now.values()])
        return True

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
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter, is_
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np

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
    lying,
    slotted,
)
from lineara.staging.capture.variables import UNSET, contents

_DICTS = (dict, defaultdict, OrderedDict)
INLINE = 32  # keys of a dict that are looked up one by one
_CELL = attrgetter("cell_contents")


class Guard:
    """Whether all that a snapshot shows is as it was, but for what arrays hold that are inputs.

    arrays   those that would be inputs where they are read, by their ids
    inputs   those that are, in their order
    """

    def __init__(self, snapshot: Snapshot, arrays: Collection[int] = (), inputs: Any = ()) -> None:
        every = snapshot.watched()
        self.watched = [_as_input(w) if id(w.thing) in arrays else w for w in every]
        self.reached = snapshot.seen
        self.inputs: list[np.ndarray] = inputs
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
        text = terms.text()
        if self.code is not None and self.code.text == text:
            self.code.holds.__globals__.update(terms.scope)
        else:
            self.code = Code.of(text, terms.scope)
        return False


def _as_input(w: Watched) -> Watched:
    """An array whose elements a program is given."""
    return Watched(w.thing, lying(w.thing), lying)


class Code(NamedTuple):
    """An expression, and a function that says whether it holds, and raises nothing."""

    text: str
    holds: Any

    @classmethod
    def of(cls, text: str, scope: dict[str, Any], *formals: str) -> "Code":
        """The function of some formals, with what the other names stand for."""
        head = f"def holds({', '.join(formals)}):\n try:\n  return "
        body = f"{text}\n except Exception:\n  return False"
        exec(compile(head + body, "<lineara guard>", "exec"), scope)
        return cls(text, scope["holds"])


class _Terms:
    """The expression of a guard, and what its names stand for."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {"is_": is_, "cell": _CELL}
        self.terms: list[str] = []
        self.unset: dict[str, list[str]] = {}  # names that are not bound, by the dict
        self.owners: dict[int, str] = {}  # the names of objects that are looked into

    def text(self) -> str:
        """The expression, at the end."""
        names = {d: self._name(tuple(names), "n") for d, names in self.unset.items()}
        absent = [f"{d}.keys().isdisjoint({n})" for d, n in names.items()]
        return " and ".join([*self.terms, *absent]) or "True"

    def _name(self, value: Any, like: str = "v") -> str:
        """A name that stands for a value."""
        name = f"{like}{len(self.scope)}"
        self.scope[name] = value
        return name

    def _owner(self, value: Any, like: str) -> str:
        """The one name of an object that is looked into."""
        if id(value) not in self.owners:
            self.owners[id(value)] = self._name(value, like)
        return self.owners[id(value)]

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
            a = self._owner(x, "a")
            self.terms += [
                f"{a}.shape == {self._name(now.shape)}",
                f"{a}.dtype is {self._name(x.dtype)}",
                f"{a}.tobytes() == {self._name(now.tobytes())}",
            ]
            done = x.dtype == now.dtype
        elif w.reader is lying:
            a, (shape, dtype, strides) = self._owner(x, "a"), now
            self.terms += [
                f"{a}.shape == {self._name(shape)}",
                f"{a}.dtype is {self._name(dtype)}",
                f"{a}.strides == {self._name(strides)}",
            ]
            done = True
        elif type(x) in _DICTS:
            done = self._dict(self._owner(x, "d"), now)
        elif type(x) in (list, deque):
            done = self._items(self._owner(x, "x"), now)
        else:
            done = False
        if not done:
            self.terms.append(f"{self._name(w.is_same)}({self._name(w.read)}())")

    def _place(self, p: Name, now: Any) -> bool:
        space = self._owner(p.space, "c" if isinstance(p.space, CellType) else "d")
        if isinstance(p.space, CellType):
            if now is UNSET:
                return False
            self.terms.append(f"{space}.cell_contents is {self._name(now)}")
        elif now is UNSET:
            self.unset.setdefault(space, []).append(p.name)
        else:
            self.terms.append(f"{space}[{p.name!r}] is {self._name(now)}")
        return True

    def _function(self, f: FunctionType, now: Sequence[Any]) -> bool:
        """Its code and defaults; of one that is not the user's, what it holds."""
        name, terms = self._owner(f, "f"), len(self.terms)
        self.terms.append(f"{name}.__code__ is {self._name(f.__code__)}")
        if is_user_code(f.__code__.co_filename):
            defaults, options = f.__defaults__, f.__kwdefaults__
            self.terms.append(f"{name}.__defaults__ is {self._name(defaults)}")
            self.terms.append(f"{name}.__kwdefaults__ is {self._name(options)}")
            if options:
                self._dict(self._owner(options, "d"), options)
            parts = [f.__code__, *(defaults or ()), *(options or {}).values()]
        else:
            held = [contents(c) for c in f.__closure__ or ()]
            if held:
                cells = self._name(f.__closure__)
                self.terms.append(f"all(map(is_, map(cell, {cells}), {self._name(held)}))")
            self._dict(self._owner(vars(f), "d"), vars(f))
            parts = [f.__code__, *called(held), *vars(f).values()]
        if len(parts) == len(now) and all(map(is_, parts, now)):
            return True
        del self.terms[terms:]
        return False

    def _object(self, x: Any, now: Mapping[str, Any], slots: Sequence[str] = ()) -> bool:
        """Its class, what lies in slots, and the rest."""
        own = dict_of(x)
        if not all([n in now for n in slots]):
            return False
        o, values = self._owner(x, "o"), {**now}
        self.terms.append(f"type({o}) is {self._name(values.pop('__class__'))}")
        self.terms += [f"{o}.{n} is {self._name(values.pop(n))}" for n in slots]
        return own is None or self._dict(f"{o}.__dict__", values)

    def _class(self, c: type, now: Mapping[str, Any]) -> bool:
        every = dict(vars(c))
        if any([every.get(n, UNSET) is not v for n, v in now.items()]):
            return False
        return self._dict(f"{self._owner(c, 'o')}.__dict__", every)

    def _dict(self, text: str, now: Mapping[Any, Any]) -> bool:
        """The keys in their order, and what they have."""
        keys = self._name([*now])
        if not now:
            self.terms.append(f"not {text}")
        elif len(now) <= INLINE and {*map(type, now)} == {str}:
            self.terms.append(f"[*(d := {text})] == {keys}")
            self.terms += [f"d[{k!r}] is {self._name(v)}" for k, v in now.items()]
        else:
            values = self._name([*now.values()])
            self.terms.append(f"len(d := {text}) == {len(now)} and all(map(is_, d, {keys}))")
            self.terms.append(f"all(map(is_, d.values(), {values}))")
        return True

    def _items(self, text: str, now: Sequence[Any]) -> bool:
        items = self._name([*now])
        self.terms.append(
            f"len({text}) == {len(now)} and all(map(is_, {text}, {items}))"
            if now
            else f"not {text}"
        )
        return True

"""How the arguments of a call are read: code for their classes, written once.

    def read(args, kwargs, judge):               np.add(x, b), x traced and b an array
        p0, q1, = args
        if not level.plans or level.kinks is not None: return GENERAL
        a0 = p0.v
        if type(a0) is not ndarray:
            if not is_array(a0): return GENERAL
            deep = True                          the value of an array is traced by another level
        d0 = a0.dtype
        if d0 is not F64 and d0 is not F32: return GENERAL
        ...
        plan = plans.get((d0, p0.s, q1.dtype, q1.shape))
        if type(plan) is Plan and not deep: return plan.run(level, p0, a0, q1)
        if type(plan) is Plan: return plan.deep()(level, p0, a0, q1)
        return later(...)

The classes of traced values belong to a level, so that a call of another level is read by other
code; an array of an outer level is a constant of the call.  What the code finds is the rest of the
signature, and the plain values.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lineara.facts.hints import Shaped, Value
from lineara.facts.registry import registry
from lineara.tape.node import Traced
from lineara.tape.reads import snapshot
from lineara.tape.sketches import Unplanned
from lineara.tape.strides import in_c_order

F64, F32, BOOL, INT = map(np.dtype, (np.float64, np.float32, np.bool, np.int64))
TRACED = {"F64": F64, "F32": F32}  # dtypes of the traced arrays of a plan
PLAIN = TRACED | {"BOOL": BOOL, "INT": INT}  # dtypes of its plain arrays
GENERAL = object()  # in place of a result: the general way has to be taken
KNOWN = 4096  # classes, and signatures of the same classes, that are remembered
_OPTIONS = frozenset({int, bool, str, type(None), type(Ellipsis), np.dtype})
_TYPES = (np.generic, float, int, complex)

Read = Callable[[Sequence[Any], dict[str, Any], Any], Any]


def _innermost(args: Iterable[Any]) -> Any:
    """The innermost level of what is traced among arguments."""
    levels = [a.level for a in _traced(args)]
    if not levels:
        raise Unplanned("nothing is traced")
    return max(levels, key=lambda level: level.depth)


def _traced(args: Iterable[Any]) -> Iterator[Any]:
    for a in args:
        if isinstance(a, Traced):
            yield a
        elif type(a) in (list, tuple):
            yield from _traced(a)


def kinds_of(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The classes of the arguments, and of what lists hold: they decide how a call is read."""
    return (func, *map(_deep, args), *kwargs, *map(_deep, kwargs.values()))


def _deep(a: Shaped) -> Any:
    kind = type(a)
    if kind is not list and kind is not tuple:
        return kind
    kinds = (kind, *map(type, a))
    return (kind, *map(_deep, a)) if list in kinds[1:] or tuple in kinds[1:] else kinds


def reader(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], common: dict[str, Any]
) -> Read:
    """The code that reads calls of a function with arguments of these classes."""
    writer = _Writer(
        _innermost((*args, *kwargs.values())),
        common | {"GENERAL": GENERAL, "float64": np.float64, "settled": settled},
    )
    writer.scope |= {"ndarray": np.ndarray, "constant": _constant, "is_array": is_array} | PLAIN
    writer.scope["snapshot"] = snapshot
    words = writer.words(args)
    lines = [f"{', '.join([*words, ''])} = args"] if words else []
    for i, (name, a) in enumerate(kwargs.items()):
        lines.append(f"w{i} = kwargs[{name!r}]")
        writer.argument(f"w{i}", a)
    head = (func, *writer.tags, *kwargs)
    if len(registry.plans) >= KNOWN:
        registry.plans.clear()
    writer.scope |= {"func": func, "level": writer.level, "known": KNOWN}
    writer.scope["plans"] = registry.plans.setdefault(head, {})
    key = writer.key[0] if len(writer.key) == 1 else f"({''.join([f'{k}, ' for k in writer.key])})"
    nodes, values = (", ".join([*words, ""]) for words in (writer.nodes, writer.values))
    body = [
        *lines,
        "if not level.plans or level.kinks is not None: return GENERAL",
        "deep = False",
        *writer.lines,
        f"key = {key}",
        "plan = plans.get(key)",
        f"if type(plan) is Plan and not deep: return plan.run(level, {nodes}{values})",
        f"if type(plan) is Plan: return plan.deep()(level, {nodes}{values})",
        "if type(plan) is str: return GENERAL",
        f"return later(plans, key, plan, level, ({nodes}), ({values}), func, args, kwargs, judge)",
    ]
    text = "\n    ".join(["def read(args, kwargs, judge):", *body])
    exec(compile(text, "<lineara reader>", "exec"), writer.scope)
    return writer.scope["read"]


class _Writer:
    """Writes how each argument is read."""

    def __init__(self, level: Any, scope: dict[str, Any]) -> None:
        self.level = level  # the level of the call
        self.scope = scope
        self.lines: list[str] = []
        self.key: list[str] = []  # what the signature has beside the classes
        self.tags: list[Any] = []  # the classes, as those of any level
        self.nodes: list[str] = []
        self.values: list[str] = []
        self.count = 0

    def words(self, args: Sequence[Any]) -> list[str]:
        """Write the reading of arguments in turn; returns the names that the code gives them."""
        words = [f"p{self.count + i}" for i in range(len(args))]
        self.count += len(args)
        for word, a in zip(words, args, strict=True):
            self.argument(word, a)
        return words

    def argument(self, word: str, a: Any) -> None:
        """Write the reading of one argument, which is called `word` in the code."""
        kind = type(a)
        if issubclass(kind, Traced):
            self.traced(word, kind)
            return
        self.tags.append(kind)
        if kind is np.ndarray:
            self.key += [self.dtype(word, PLAIN), f"{word}.shape"]
            self.values.append(word)
        elif kind is np.float64:
            self.values.append(word)
        elif kind is list or kind is tuple:
            self.tags.append(len(a))
            place = len(self.lines)
            words = self.words(a)
            if words:
                self.lines.insert(place, f"{', '.join([*words, ''])} = {word}")
        elif kind in _OPTIONS:
            self.key.append(word)
        else:
            _constant(a)
            self.key.append(f"constant({word})")

    def traced(self, word: str, kind: type) -> None:
        """A traced argument."""
        tag = kind.in_plans
        value = f"v{len(self.lines)}"
        if kind.level is not self.level:
            self.tags.append("outer")
            self.lines += [
                f"{value} = snapshot({word})",
                f"if not is_array({value}): return GENERAL",
            ]
            self.lines.append("deep = True")
            self.key += [self.dtype(value, TRACED), f"{value}.s"]
            self.values.append(value)
            return
        if tag is None:
            raise Unplanned("a value of no fast path")
        if tag == "w":
            self.lines += [f"{word} = settled({word})", f"if {word} is None: return GENERAL"]
            tag = "x"
        self.tags.append(tag)
        self.lines.append(f"{value} = {word}.v")
        if tag == "x":
            self.lines += [
                f"if type({value}) is not ndarray:",
                f"    if not is_array({value}): return GENERAL",
                "    deep = True",
            ]
            self.key += [self.dtype(value, TRACED), f"{word}.s"]
            self.values.append(value)
        else:
            self.lines.append(f"if type({value}) is not float: return GENERAL")
            self.values.append(f"float64({value})")
        self.nodes.append(word)

    def dtype(self, array: str, known: Iterable[str]) -> str:
        """Read the dtype of an array, which has to be one of these; its name in the code."""
        dtype = f"d{len(self.lines)}"
        other = " and ".join([f"{dtype} is not {name}" for name in known])
        self.lines += [f"{dtype} = {array}.dtype", f"if {other}: return GENERAL"]
        return dtype


def is_array(a: Value) -> bool:
    """Whether it is a traced array of another level, with fast operations and not written."""
    return getattr(type(a), "in_plans", None) == "x"


def _constant(a: Any) -> Any:
    """What is known of an option that is a constant."""
    kind = type(a)
    if kind is float:
        return a, a == 0 and str(a)  # -0.0 is another number
    if kind is slice:
        return a.start, a.stop, a.step
    if kind is type and issubclass(a, _TYPES):
        return a
    raise Unplanned(f"an option is a {kind.__name__}")


def settled(a: Traced) -> Any:
    """The current node of a written array, where both lie in memory as NumPy's; else None."""
    if a.memory() is not None:  # NumPy alone is asked
        return None
    node = a.now()
    if type(node) is not a.level.X or type(node.v) is not np.ndarray:
        return None
    return node if node.v.flags.c_contiguous and in_c_order(node.s, a.lay) else None

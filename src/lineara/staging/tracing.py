"""A Python function of arrays and containers becomes a Linear A program.

The function runs once, on staged values, through the operations that the eager engine intercepts.
Floating and complex leaves of the arguments and arrays of integers or booleans become formals;
Python's integers and flags, strings and functions are constants of the program, as are large
arrays that it mentions, which are formals whose values are kept beside it.
"""

import copy
import enum
import inspect
import itertools
import operator
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.containers.boundary import UNTOUCHED, lift, rebuild
from lineara.containers.foreign_arrays import is_foreign, refuse_foreign
from lineara.containers.points import manifold_of
from lineara.containers.proxy import Places, is_lazy
from lineara.engines import Outcome, direct
from lineara.errors import (
    LeakedVariableError,
    StagingError,
    TypeMismatchError,
    user_place,
    with_article,
)
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.pickled import Making, Remade
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, show_type, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import size
from lineara.linear_a.parse import has_meaning
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Boxed, closed
from lineara.python.user_code import Reading, method, overlay, seen
from lineara.staging.definitions import Definition, needed
from lineara.staging.selected import Selected
from lineara.staging.staged_arrays import StagedArray, as_box
from lineara.staging.staged_level import Seen, StagedLevel, Weak, is_of_array, weakness
from lineara.staging.texts import Text, refuse_late
from lineara.tape.leaves import kind_of_number
from lineara.tape.levels import innermost_level, open_level, outside
from lineara.tape.node import Traced, has_own_rules, layout, refuse_class
from lineara.tape.shared_memory import shares, written_in_one_place
from lineara.tape.strides import narrow, overlap, strides_of
from lineara.tape.written_arrays import written_in_itself
from lineara.text.language import FIRST, NEXT
from lineara.trees import LEAF, Structure, flatten, flatten_call, leaf_paths, map_leaves, unflatten


class Signature(NamedTuple):
    """How a call becomes the arguments of a definition: its containers, and its constants."""

    structure: Structure
    types: tuple[ArrayType | None, ...]  # of the leaves; None for constants
    constants: tuple[Any, ...]
    lays: tuple[Any, ...] | None = None  # where the program depends on how arrays lie in memory
    weak: tuple[Any, ...] | None = None  # where it depends on which numbers are Python's
    pythons: tuple[bool, ...] = ()  # whether the formals were traced for numbers of Python's

    def values(self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> list[Any]:
        """The numbers of a call that fits, or an error that says what does not."""
        return numbers(self.check(args, kwargs, name))

    def check(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str
    ) -> list[tuple[Any, ArrayType]]:
        """The numbers of a call that fits, with the types of the formals."""
        leaves, structure = flatten_call(args, kwargs)
        if structure != self.structure:
            raise StagingError(
                f"{name} was traced for arguments of the form {self.structure}, but was given "
                f"{structure}; trace it again for these"
            )
        return list(self._pairs(leaves, name))

    def _pairs(self, leaves: Sequence[Any], name: str) -> Any:
        for i, (v, t, c) in enumerate(zip(leaves, self.types, self.constants, strict=True)):
            if t is None:
                if v is not c and (type(v) is not type(c) or np.any(v != c)):
                    raise StagingError(
                        f"{name} was traced with the constant {c!r} at {self._path(i, leaves)}, "
                        f"but was given {v!r}; trace it again for this one"
                    )
                continue
            got = type_of(v)
            if got.shape != t.shape or not np.can_cast(got.dtype, t.dtype):
                raise StagingError(
                    f"{name} was traced for {t} at {self._path(i, leaves)}, but was given "
                    f"{show_type(v)}; trace it again for this type"
                )
            if self.weak is not None and weakness(v) is not self.weak[i]:
                kinds = ("NumPy's", "Python's")
                raise StagingError(
                    f"{name} does what Python does with its own numbers and NumPy with its: it was "
                    f"traced for one of {kinds[self.weak[i]]} at {self._path(i, leaves)}, but was "
                    f"given one of {kinds[not self.weak[i]]}; trace it again, or give it "
                    f"{'float(x)' if self.weak[i] else 'np.float64(x)'}"
                )
            lay = strides_of(v)
            if self.lays is not None and narrow(t.shape, lay) != narrow(t.shape, self.lays[i]):
                raise StagingError(
                    f"{name} writes into a reshaped {t}, and whether that is a view depends on how "
                    f"the array at {self._path(i, leaves)} lies in memory: it was traced for the "
                    f"strides {self.lays[i]}, but was given {lay}, counted in elements; trace it "
                    "again, or give it a copy that lies as the other did"
                )
            yield v, t

    def _path(self, i: int, leaves: Sequence[Any]) -> str:
        """Where a leaf stands among the arguments."""
        return leaf_paths(unflatten(self.structure, leaves), root="arguments")[i]

    def call(self, parts: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, by position and by name, with these in place of the numbers."""
        left = iter(parts)
        pairs = zip(self.types, self.constants, strict=True)
        return unflatten(self.structure, [c if t is None else next(left) for t, c in pairs])

    def tree(self, parts: Sequence[Any]) -> Any:
        """The arguments with these in place of the numbers: one, or a tuple."""
        args, kwargs = self.call(parts)
        return (args, kwargs) if kwargs else args[0] if len(args) == 1 else args


def numbers(pairs: Sequence[tuple[Any, ArrayType]]) -> list[Any]:
    """Numbers of a call as numbers of the types of the formals."""
    return [
        v if is_foreign(type(v)) else np.asarray(v, t.dtype) if t.shape else t.dtype.type(v)
        for v, t in pairs
    ]


class Mark(enum.Enum):
    """What stands among the constants of results."""

    VARIABLE = "in the place of a result that has a variable"


VARIABLE = Mark.VARIABLE


class Results(NamedTuple):
    """How the results of a definition become what the function returned."""

    structure: Structure
    constants: tuple[Any, ...]  # in the places of what is no number; VARIABLE elsewhere
    weak: tuple[bool, ...]  # whether a number is Python's; of those of either kind it is

    def filling(self) -> Callable[..., Any] | None:
        """A function of the values that gives the result; None where that is the value, or a tuple
        of the several.
        """
        n = len(self.weak)
        plain = len(self.constants) == n and all([c is VARIABLE for c in self.constants])
        if plain and self.structure == (LEAF if n == 1 else flatten((None,) * n)[1]):
            return None
        names: dict[str, Any] = {}

        def name(value: Any) -> str:
            names[f"c{len(names)}"] = value
            return f"c{len(names) - 1}"

        variables, constants = itertools.count(), iter(self.constants)
        parts: list[str] = []
        for e in self.structure.entries:
            if e is None:
                c = next(constants)
                if c is VARIABLE:
                    parts.append(f"v{next(variables)}")
                else:
                    parts.append(name(c) + ".copy()" * isinstance(c, np.ndarray))
                continue
            first = len(parts) - len(e.keys)
            items = parts[first:]
            if e.kind.cls is dict:
                items = [f"{name(k)}: {v}" for k, v in zip(e.keys, items, strict=True)]
            opening, closing = {dict: "{}", list: "[]", tuple: "()"}.get(e.kind.cls, "[]")
            comma = "," * (e.kind.cls is tuple and len(items) == 1)
            text = f"{opening}{', '.join(items)}{comma}{closing}"
            if e.kind.cls not in (dict, list, tuple):
                text = f"{name(e.kind.make)}({name(e.aux)}, {name(e.keys)}, {text})"
            parts[first:] = [text]
        formals = ", ".join([f"v{i}" for i in range(n)])
        return eval(compile(f"lambda {formals}: {parts[0]}", "<lineara result>", "eval"), names)

    def tree(self, values: Sequence[Any]) -> Any:
        """The results of the function in their containers."""
        pairs = zip(values, self.weak, strict=True)
        return self.filled(itertools.starmap(_own, pairs))

    def filled(self, values: Iterator[Any]) -> Any:
        """The results with these values; arrays that are constants are new ones in each call."""
        leaves = [
            next(values) if c is VARIABLE else c.copy() if isinstance(c, np.ndarray) else c
            for c in self.constants
        ]
        return unflatten(self.structure, leaves)


class Direct(NamedTuple):
    """The value of a function by an engine's function of the operands; it may be NotImplemented.

    run       of the operands: one value, or a tuple where there are `several`, or there is none
    leaves    how many there are
    places    which of them are operands; `beside` are the others
    fill      what makes the result of the values; None where it is what `run` gives
    """

    run: Callable[..., Any]
    leaves: int
    places: tuple[int, ...]
    beside: tuple[Any, ...]
    fill: Callable[..., Any] | None
    several: bool

    def __call__(self, *leaves: Any) -> Any:
        """The value."""
        if len(leaves) != self.leaves:
            return NotImplemented
        values = self.run(*[leaves[i] for i in self.places], *self.beside)
        if values is NotImplemented or self.fill is None:
            return values
        return self.fill(*values) if self.several else self.fill(values)


class Staged(Remade):
    """A function as a program.  It prints as the text, and is called as the function was.

    It pickles as the program, without the function: then the derivative is that of the program.

    definition        the definition of the function, in its program
    signature         how arguments become operands
    results           how results become what the function returned
    inputs            the values of the formals after these: arrays of outside of f
    constants         the values of the last formals
    f                 the function; None where it was pickled
    engine            the engine that runs it, if one is named
    writes            which leaves of the arguments it writes; what they are to hold is returned
                      beside its result
    """

    inputs: list[np.ndarray]
    constants: list[Any]

    def __init__(
        self,
        definition: Definition,
        signature: Signature,
        results: Results,
        constants: list[Any],
        f: Callable[..., Any] | None,
        writes: Sequence[int] = (),
        inputs: Sequence[np.ndarray] = (),
    ) -> None:
        self.definition = definition
        self.f = f
        self.signature = signature
        self.results = results
        self.inputs, self.constants = [*inputs], constants
        self.writes = writes
        self._by_engine: Direct | None = None

    @property
    def direct(self) -> "Direct | None":
        """The value as a function of the leaves, once an engine has one.

        A name may have come to stand for another array since, which is the input from then on.
        """
        known = self._by_engine
        if known is not None and not all(map(operator.is_, known.beside, self.beside)):
            known = self._by_engine = known._replace(beside=tuple(self.beside))
        return known

    @property
    def beside(self) -> list[Any]:
        """The values of the formals that stand for no arguments."""
        return [*self.inputs, *self.constants]

    @property
    def program(self) -> Program:
        """The program."""
        return self.definition.program

    @property
    def name(self) -> str:
        """The name of the definition of the function in it."""
        return self.definition.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, by the evaluator of the language; of traced values, that of the function."""
        pairs = self.signature.check(args, kwargs, self.name)
        leaves = flatten_call(args, kwargs)[0]
        if any([isinstance(v, Traced) for v, _ in pairs]):
            return self.operation(leaves) if self.f is None else seen(self.f)(*args, **kwargs)
        return self.value(leaves)

    def operation(self, leaves: Sequence[Any]) -> Any:
        """The program as one operation of a differentiation."""
        if self.writes:
            raise StagingError(
                f"{self.name} writes into its arguments, which a derivative of its program would "
                "not do; differentiate the function itself, or let it return a new array"
            )
        values = [v for v, t in zip(leaves, self.signature.types, strict=True) if t is not None]
        operands = (*values, *[a.copy() for a in self.inputs], *self.constants)
        results = op("defined")(*operands, definition=self.definition, name=self.name)
        return self.results.filled(iter(results))

    def made_by(self) -> Making:
        """The program, and what the function had beside its arguments."""
        return Making(Staged, self._parts(None), {})

    def _parts(self, f: Callable[..., Any] | None) -> tuple[Any, ...]:
        data = self.definition, self.signature, self.results, self.constants
        return *data, f, self.writes, self.inputs

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return Staged(*copy.deepcopy(self._parts(self.f), memo))

    def value(self, leaves: Sequence[Any]) -> Any:
        """The value for arguments that fit, by their leaves."""
        every = zip(leaves, self.signature.types, strict=True)
        pairs = [(v, t) for v, t in every if t is not None]
        for i in self.writes:
            others = [v for j, v in enumerate(leaves) if j != i and isinstance(v, np.ndarray)]
            if any([shares(leaves[i], v) for v in others]):
                raise written_in_one_place(leaves[i])
            if overlap(np.shape(leaves[i]), strides_of(leaves[i])):
                raise written_in_itself(leaves[i])
        out = self.results.tree(self._run(pairs).results)
        if self.writes:
            out, contents = out
            for i, content in zip(self.writes, contents, strict=True):
                leaves[i][...] = content
        return out

    def called(self, args: tuple[Any, ...]) -> Any:
        """The value for arguments of the very types, each of which is one leaf."""
        known = self.direct
        if known is not None:
            value = known(*args)
            if value is not NotImplemented:
                return value
        value = self.value(args)
        made = self._direct()
        if known is None or made is None or made.run is not known.run:
            self._by_engine = made
        return value

    def _direct(self) -> "Direct | None":
        """The value as a function of the leaves; None where no engine has one, or not yet."""
        d, results = self.definition, self.results
        run = direct(d.engine, d.program, d.name, results.weak)
        if run is None or self.writes or not all([r.is_tested for r in d.rules.values()]):
            return None
        types = self.signature.types
        places = tuple([i for i, t in enumerate(types) if t is not None])
        several = len(results.weak) != 1
        return Direct(run, len(types), places, tuple(self.beside), results.filling(), several)

    def run(self, *args: Any, **kwargs: Any) -> Outcome:
        """The results as the program gives them, and the work that was done."""
        return self._run(self.signature.check(args, kwargs, self.name))

    def _run(self, pairs: Sequence[tuple[Any, ArrayType]]) -> Outcome:
        operands = [*numbers(pairs), *self.beside]
        self.definition.test(operands)
        # they are of the types
        return self.definition.run(operands, checked=False)

    def operands(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> list[Any]:
        """The operands of the definition, for arguments of the function."""
        return [*self.signature.values(args, kwargs or {}, self.name), *self.beside]

    def size(self) -> int:
        """The size of the text."""
        return size(self.program)

    def __repr__(self) -> str:
        return str(self.program)


def traced(f: object, args: tuple[Any, ...], kwargs: dict[str, Any], reading: Reading) -> Staged:
    """The program of a function that is read in some way.

    If it stands for calls of the function, whole numbers stay whole, and what the function writes
    into its arguments is returned beside its result.
    """
    if not callable(f):
        raise TypeMismatchError(f"trace: takes a function, but was given {show_type(f)}")
    if innermost_level() is not None:  # of the arguments the types count, not the values
        types = map_leaves(_of_its_type, overlay().restore((args, kwargs)))
        with outside():
            return traced(f, types[0], types[1], reading)
    return reading.traced(lambda: _traced(f, args, kwargs, reading))


def _traced(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], reading: Reading
) -> Staged:
    name, calls, begun = definition_name(f), reading.calls, time.thread_time()
    with open_level(StagedLevel) as level:
        level.reading = reading
        level.out.seek, level.out.every = user_place, reading.lines
        copied = seen(f)  # before the arguments, whose classes are looked at again in this run
        given = level.arguments = Given(level, f, args, kwargs, not calls)
        level.shared.names(name)
        try:
            out = copied(*given.args, **given.kwargs)
        except Exception as e:
            refuse_late(e)
            raise
        given.places.close()
        level.shared.refuse_changes()
        writes: list[int] = []
        if calls:
            writes, contents = given.written()
            out = (out, contents) if writes else out
        level.ends = True
        out = overlay().restore(out)
        # an argument among the results is read here, before its formal is asked for
        for v in flatten(out)[0]:
            refuse_what_runs_later(name, v)
        made, results = definition(level, name, given.formals, out, name)
        for _, node, _ in level.inputs.values():
            if node.w.buffer.version:
                raise StagingError(
                    f"{name} writes into an array of {type_of(node)} that it reaches without being "
                    "given it, which a program does not do; pass it as an argument"
                )
        beside = [value for _, value in level.beside]
        inputs = [array for *_, array in level.inputs.values()]
        shared = level.shared
    program = needed(shared.program(made), made.name)
    signature = given.signature
    if shared.asked and shared.written:
        signature = signature._replace(lays=given.lays)
    if shared.kinded:
        signature = signature._replace(weak=given.weak)
    text = Definition(program, made.name, shared.rules)
    spent = time.thread_time() - begun
    program.seconds.update(capture=spent - shared.passes, passes=shared.passes)
    return Staged(text, signature, results, beside, f, writes, inputs)


def refuse_what_runs_later(name: str, v: Any) -> None:
    """Refuse a result whose own code has not run: it would, on values of a written program."""
    awaited = hasattr(v, "__await__") or hasattr(v, "__anext__")
    if not (awaited or hasattr(v, "__next__")):
        return
    if hasattr(v, "close"):
        v.close()
    works = (
        "leave async to the caller, and capture the part that does not wait"
        if awaited
        else "go through it in the function, and return a list or an array"
    )
    shown = with_article(getattr(type(v), "SHOWN", type(v).__name__))
    raise StagingError(
        f"{name} gives {shown}, which runs after the program is written, "
        f"on values that only the program has; {works}"
    )


def definition_name(f: Callable[..., Any]) -> str:
    """A name for the definition of a function: its own, if the language has it."""
    name = getattr(f, "__name__", "f")
    return name if name.isidentifier() and not has_meaning(name) else "f"


class Whole(int):
    """A whole number of Python's that is an input of the program and no constant."""


class Fixed(float):
    """A floating number of Python's that is a constant of the program and no input."""


class Given:
    """The arguments of a function as it is traced: containers as proxies, numbers staged.

    If there are integers only these count as floating, where that is asked for with `promotes`.
    """

    def __init__(
        self,
        level: StagedLevel,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        promotes: bool,
    ) -> None:
        self.level = level
        leaves, structure = flatten((args, kwargs))
        refuse_foreign(leaves, "trace")
        numbers = [_is_formal(v) for v in leaves]
        whole = any([kind_of_number(v) == "i" for v in leaves])
        self.promote: bool = promotes and whole and not any(numbers)
        self.nodes: list[tuple[Any, Any]] = []
        self.leaves = leaves
        self.read: list[tuple[Any, Any]] = []  # the nodes, with the leaves that they stand for
        names = ir.Names()
        wanted = [names(n) for n in names_of_leaves(f, args, kwargs)]
        level.out.names = ir.Names(wanted)
        self.places: Places = Places()
        self.args: list[Any] = [self._lifted(a) for a in args]
        self.kwargs: dict[str, Any] = {k: self._lifted(v) for k, v in kwargs.items()}
        self._sources = [*args, *kwargs.values()]
        types = [self.type(v) for v in leaves]
        constants = tuple([None if t else _plain(v) for v, t in zip(leaves, types, strict=True)])
        self.signature: Signature = Signature(structure, tuple(types), constants)
        self.lays: tuple[tuple[int, ...] | None, ...] = tuple(
            [strides_of(v) if t else None for v, t in zip(leaves, types, strict=True)]
        )
        self.weak: tuple[Weak, ...] = tuple([weakness(v) for v in leaves])
        formals = [w is True for w, t in zip(self.weak, types, strict=True) if t]
        self.signature = self.signature._replace(pythons=tuple(formals))
        self._names = [n for n, t in zip(wanted, types, strict=True) if t]

    def type(self, v: Shaped) -> ArrayType | None:
        """The type of the formal of a leaf; None for a constant."""
        if _is_formal(v):
            return type_of(v)
        return ArrayType((), np.dtype(float)) if self.promote and kind_of_number(v) == "i" else None

    def _lifted(self, a: Tree) -> Any:
        return lift(a, self._leaf, method=method, places=self.places)

    def _leaf(self, v: Shaped) -> Any:
        if isinstance(v, Traced):
            raise LeakedVariableError("trace: an argument belongs to a differentiation around it")
        t = self.type(v)
        if t is None:
            return method(_plain(v))  # a function sees our NumPy, and is read
        var = ir.Var("", t)
        node = self.level.given(var, Seen(t, strides_of(v), weakness(v), is_of_array(v)))
        self.nodes.append((node, var))
        self.read.append((node, v))
        if t.shape:
            self.level.overlaps.add(v, node)
        return node

    def leaves_of(self, node: Traced) -> list[int]:
        """The places of the leaves that a staged number may stand for: of one or of none."""
        of = [v for n, v in self.read if n is node and type(v) in (float, Whole)]
        return [i for i, v in enumerate(self.leaves) if any([v is w for w in of])]

    def written(self) -> tuple[list[int], list[Any]]:
        """Which leaves the function wrote, and the arrays; a changed container is refused."""
        todo = [*self.args, *self.kwargs.values()]
        while todo:
            proxy = todo.pop()
            if is_lazy(proxy):
                if hasattr(proxy, "_lineara_written") and proxy._lineara_written():
                    raise StagingError(
                        f"an argument ({type(proxy._lineara.source).__name__}) was changed: a "
                        "program cannot change it when it runs; return what it is to hold"
                    )
                todo += proxy._lineara.memo.values()
        leaves = flatten((tuple(self._sources), {}))[0]
        pairs = [(v, node) for v, node in self.level.overlaps.given if _is_written(node)]
        places = [next(i for i, leaf in enumerate(leaves) if leaf is v) for v, _ in pairs]
        return places, [node for _, node in pairs]

    @property
    def formals(self) -> list[ir.Var]:
        """The formals in the order of the leaves; of what was never read as well."""
        formals: list[ir.Var] = []
        by_node = {id(node): var for node, var in self.nodes}

        def leaf(v: Shaped, node: Value) -> None:
            t = self.type(v)
            if t is not None:
                formals.append(ir.Var("", t) if node is UNTOUCHED else by_node[id(node)])

        for source, lifted in zip(self._sources, [*self.args, *self.kwargs.values()], strict=True):
            if isinstance(lifted, Traced):
                leaf(source, lifted)
            else:
                rebuild(source, lifted, leaf)
        for var, name in zip(formals, self._names, strict=True):
            var.name = name
        return formals


def _of_its_type(v: Shaped) -> Any:
    """A plain value of the type of an argument."""
    plain = layout(v)
    return np.asarray(plain) if is_of_array(v) else plain


def _plain(v: Shaped) -> Any:
    return float(v) if isinstance(v, Fixed) else v


def _is_written(node: object) -> bool:
    return isinstance(node, StagedArray) and node.w.buffer.version > 0


def _is_formal(v: Shaped) -> bool:
    if manifold_of(v) is not None and callable(v):
        raise StagingError(
            f"trace: {v!r} is a function, and the arguments of a program are numbers; trace a "
            "function of the numbers that uses it, or take the derivative outside of trace"
        )
    if manifold_of(v) is not None:
        raise StagingError(f"trace: {show_type(v)} is a point of a manifold; pass its coordinates")
    if has_own_rules(v):
        refuse_class("trace", type(v))
    if isinstance(v, np.ndarray | np.generic):
        return v.dtype.kind in "fc" or (v.dtype.kind in "iub" and v.ndim > 0)
    return type(v) in (float, complex, Whole)


def names_of_leaves(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str]:
    """Names for the leaves: the parameter of the function, and the way to the leaf."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    roots = [*positional, *[f"x{i}" for i in range(len(positional), len(args))]][: len(args)]
    names = []
    for root, a in zip([*roots, *kwargs], [*args, *kwargs.values()], strict=True):
        names += [_word(p) for p in leaf_paths(a, root=root)]
    return names


def _word(path: str) -> str:
    """A path as a name of the language: params['w'][0] is params.w.0."""
    name = re.sub(rf"[^{NEXT}]+", ".", path).strip(".")
    return name if re.match(f"[{FIRST}]", name) else f"x.{name}"


def definition(
    level: StagedLevel, name: str, formals: Sequence[ir.Var], out: object, said: str
) -> tuple[ir.Def, Results]:
    """The definition that a level holds, with these results; what nothing needs is left out."""
    leaves, structure = flatten(out)
    constants: list[Any] = []
    results: list[ir.Var] = []
    weak: list[bool] = []
    for leaf in leaves:
        if type(leaf) is Text:
            bool(leaf)  # which refuses it
        if type(leaf) is Selected:
            leaf.refuse("a result")
        v = leaf.now() if isinstance(leaf, Traced) else leaf
        if isinstance(v, Traced):
            v = level.entered(v)
        elif isinstance(v, float | complex | np.floating | np.complexfloating) or (
            isinstance(v, np.ndarray) and v.dtype.kind in "fc" and v.dtype.isnative
        ):
            v = as_box(level, v)
        if isinstance(v, Boxed):
            constants.append(VARIABLE)
            results.append(v.var)
            weak.append(weakness(leaf) is not False)
        else:
            constants.append(v)
    inputs = [v for v, *_ in level.inputs.values()]
    params = [*formals, *inputs, *[v for v, _ in level.beside]]
    params += [v for v, _ in level.around.values()]
    bindings = closed(level.out.bindings, params, results, level.shared.stays)
    body = ir.Block(tuple(bindings), ir.Ret(tuple(results)))
    made = ir.Def(name, tuple(params), tuple([v.type for v in results]), (), body)
    return made, Results(structure, tuple(constants), tuple(weak))


def _own(v: Value, weak: bool) -> Any:
    """A number of the language as Python's or NumPy's; an array of one's own."""
    if isinstance(v, np.ndarray) and v.ndim:
        return np.array(v)
    return v.item() if weak and isinstance(v, np.generic) else v


__all__ = ["Signature", "Staged", "definition", "traced"]

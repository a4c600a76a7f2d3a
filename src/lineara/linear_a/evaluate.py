"""The evaluator: a program on numbers and arrays, and the work that it did.

Calls stand on a stack of our own, so recursion in a program has no limit but memory.  A linear
zero is one symbol whatever its type, and is made into numbers where a result or a primitive needs
it; the count of work is that of the text.
"""

from collections.abc import Generator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearaError, ProgramError
from lineara.linear_a.check import Judge
from lineara.linear_a.cost import cells, work
from lineara.linear_a.memory import Deaths, Meter, deaths
from lineara.linear_a.program import Program, scalars_of
from lineara.linear_a.syntax import (
    Accum,
    Applied,
    Block,
    Copy,
    Drop,
    Dup,
    Inj,
    Leaf,
    Lit,
    Part,
    Prim,
    Proj,
    Put,
    Read,
    Ret,
    Tup,
    Unpack,
    Var,
    Vars,
    Zero,
    renamed_params,
)
from lineara.types import ArrayType, Product, Stack, Sum, Type, show, type_of

Steps = Generator[Any, Any, Any]


class SymbolicZero:
    """The zero of every vector space: ~a + 0 is ~a, and nothing is made until it is asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "0"


ZERO = SymbolicZero()


class Tagged(NamedTuple):
    """A value of a sum: which alternative, and its payload."""

    tag: int
    payload: Any


class Outcome(NamedTuple):
    """The results of a definition, non-linear and linear, and the work W that it took."""

    results: tuple[Any, ...]
    lresults: tuple[Any, ...]
    work: int


def run(
    program: Program,
    name: str,
    *args: Any,
    scalar: Any = None,
    checked: bool = True,
    meter: Meter | None = None,
    ieee: bool = True,
) -> Outcome:
    """Evaluate a definition on its non-linear and then its linear arguments.

    `scalar=Fraction` calculates with exact numbers.  Arguments of other types than the formals are
    a ProgramError, unless `checked` is False, which lets complex numbers into a real program.
    A `meter` counts the bytes of the arrays that are alive.
    Where `ieee` is False a division by zero, and what else has no number, is a ProgramError.

    >>> from lineara.linear_a.parse import parse
    >>> found = run(parse("def f(x: f64;) -> (f64;) = x * x"), "f", 3.0)
    >>> float(found.results[0]), found.work
    (9.0, 1)
    """
    if name not in program.defs:
        raise ProgramError(
            f"there is no definition {name}; there is {', '.join(program.defs) or 'none'}"
        )
    d = program.defs[name]
    if len(args) != len(d.params):
        raise ProgramError(
            f"{name} takes {len(d.params)} arguments "
            f"({', '.join(f'{p!r}: {show(p.type)}' for p in d.params)}), not {len(args)}"
        )
    if checked:
        args = tuple([_fit(program, p, a, name) for p, a in zip(d.params, args, strict=True)])
    if scalar is not None:
        args = tuple([exactly(a, scalar) for a in args])
    if meter is not None:
        meter.made(args)
    machine = Machine(program, scalar, meter)
    no_number = "ignore" if ieee else "raise"
    with np.errstate(all="ignore", divide=no_number, invalid=no_number):
        found = machine.drive(machine.enter(name, list(args)))
    k = len(d.results)
    linear = [dense(program, t, v) for t, v in zip(d.lresults, found[k:], strict=True)]
    return Outcome(tuple(found[:k]), tuple(linear), machine.work)


class Env(dict[Var, Any]):
    """The values of the variables of a definition, and where each of them dies."""

    __slots__ = ("deaths",)
    deaths: Deaths


class Machine:
    """An evaluation: the program, the work so far, and how it stands with numbers."""

    def __init__(self, program: Program, scalar: Any = None, meter: Meter | None = None) -> None:
        self.program = program
        self.scalar = scalar
        self.judge = Judge(program, "")
        self.meter = meter
        self.deaths: dict[str, Deaths] = {}  # of every definition that was entered
        self.work = 0
        self.costs: dict[Leaf, int | None] = {}  # None: it depends on tags

    def drive(self, steps: Steps) -> Any:
        """Run generators that yield generators, to the value of the first.

        Values travel in lists that the receiver empties, so that nothing here keeps them alive.
        """
        stack, value = [steps], None
        while stack:
            try:
                inner = stack[-1].send(value)
            except StopIteration as stop:
                stack.pop()
                value = stop.value
            else:
                stack.append(inner)
                value = None
        return value

    def enter(self, name: str, values: list[Any]) -> Steps:
        """A definition on values, which are its own from now on."""
        d = self.program.defs[name]
        if name not in self.deaths:
            self.deaths[name] = deaths(d)
        env = Env(zip(d.params, values, strict=True))
        env.deaths = self.deaths[name]
        values.clear()
        return self.block(d.body, env)

    def block(self, block: Block, env: "Env") -> Steps:
        """The bindings in order, then the values of the leaf; variables die with their last use."""
        *dying, at_last = env.deaths[block]
        for b, dead in zip(block.bindings, dying, strict=True):
            if isinstance(b, Unpack):
                whole = env[b.arg]
                values: Any = [ZERO] * len(b.vars) if whole is ZERO else list(whole)
                whole = None
            else:
                values = yield from self.expression(b.rhs, env, dead)
            env.update(zip(b.vars, values, strict=True))
            values.clear()
            for v in dead:
                env.pop(v, None)
        return (yield from self.expression(block.leaf, env, at_last))

    def expression(self, e: Leaf | Block, env: "Env", dead: Vars = ()) -> Steps:
        """The values of a leaf or a block; the dead are handed over to what is applied."""
        if isinstance(e, Block):
            return (yield self.block(e, env))
        if isinstance(e, Drop):
            return (yield from self.drop(e, env))
        args = [env[a] for a in e.args]
        if isinstance(e, Applied):
            for v in dead:
                del env[v]
            return (yield e.run(self, args))
        found = self.leaf(e, args, env)
        if self.meter is not None:
            self.meter.made(found)
        return list(found)

    def drop(self, e: Drop, env: "Env") -> Steps:
        """Evaluate and forget; forgetting costs what was there."""
        values = yield from self.expression(e.body, env)
        last = e.body
        while isinstance(last, Block):
            last = last.leaf
        assert isinstance(last, Copy | Ret) or values is not None
        for v, t, linear in self.typed(last, values):
            self.work += measure(self.program, t, v) if linear else cells(self.program, t)
        return []

    def typed(self, leaf: Leaf, values: Sequence[Any]) -> list[tuple[Any, Type, bool]]:
        """The values of a leaf with their types and zones."""
        if isinstance(leaf, Drop):
            return []
        xs, us = self.judge.leaf(leaf)
        zones = [False] * len(xs) + [True] * len(us)
        return list(zip(values, (*xs, *us), zones, strict=True))

    def leaf(self, e: Leaf, args: list[Any], env: dict[Var, Any]) -> Sequence[Any]:
        """The values of a leaf that applies no definition."""
        match e:
            case Prim():
                return (self.prim(e, args, env),)
            case Ret() | Copy():
                return args
            case Dup():
                return (args[0], args[0])
            case Lit(value=value):
                return (value if self.scalar is None else exactly(value, self.scalar),)
            case Tup():
                return (tuple(args),)
            case Zero(type=t, linear=linear):
                return (ZERO if linear else self.zero(t),)
            case Part():
                return self.part(e, args, env)
            case Inj(tag=tag):
                return (Tagged(tag, args[0]),)
            case Proj(tag=tag):
                held = args[0]
                if held is ZERO:
                    return (ZERO,)
                assert held.tag == tag, "a tangent has the tag of its value"
                return (held.payload,)
        raise AssertionError(type(e).__name__)

    def prim(self, e: Prim, args: list[Any], env: dict[Var, Any]) -> Any:
        """A primitive; of zeros it is zero where it is linear."""
        self.work += self.cost(e, args)
        params = renamed_params(e.params, env.__getitem__) if e.params else e.params
        if any([a is ZERO for a in args]):
            return self.prim_of_zeros(e, args, params)
        if e.name == "add" and isinstance(args[0], tuple | list):
            return plus(*args)
        if e.name == "multiply" and isinstance(args[1], tuple):
            return times(*args)
        return self.apply(e, args, params)

    def apply(self, e: Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """NumPy's value of the primitive; errors name the equation."""
        try:
            return owned(e, e.primitive.evaluate(np, *args, **params))
        except (ZeroDivisionError, ValueError, IndexError, LinearaError, ArithmeticError) as error:
            text = error.message if isinstance(error, LinearaError) else str(error)
            mend = ""
            if isinstance(error, ZeroDivisionError | FloatingPointError):
                mend = "; keep it away from there, or ask for infinities and NaN"
            Judge(self.program, "").wrong(f"{e.name} fails as the program runs: {text}{mend}", e)

    def prim_of_zeros(self, e: Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """A linear map, some of whose arguments are zero."""
        if e.name == "add":
            return args[1] if args[0] is ZERO else args[0]
        zeros = [a is ZERO for a, v in zip(args, e.args, strict=True) if v.linear]
        if all(zeros) and any(v.linear for v in e.args):
            return ZERO
        made = [self.zero(v.type) if a is ZERO else a for a, v in zip(args, e.args, strict=True)]
        return self.apply(e, made, params)

    def part(self, e: Part, args: list[Any], env: dict[Var, Any]) -> Sequence[Any]:
        """read, accum, put.  The array is owned by nobody else, but evaluation may share it."""
        at = renamed_params(e.at, env.__getitem__)
        x = args[0]
        if isinstance(e, Read):
            try:
                return (ZERO if x is ZERO else self.part_of(x, at), x)
            except IndexError as error:
                raise ProgramError(f"read: {error}") from None
        self.work += self.cost(e, args) if isinstance(e, Accum) else 0
        if args[1] is ZERO and isinstance(e, Accum):
            return (x,)
        found = np.array(self.zero(e.args[0].type) if x is ZERO else x)
        y = self.zero(e.args[1].type) if args[1] is ZERO else args[1]
        if isinstance(e, Put):
            found[at] = y
        else:
            np.add.at(found, at, y)
        return (found,)

    def stack(self, t: Type, rows: list[Any]) -> Any:
        """The values of the rounds of a loop: an array with one more axis, or a list."""
        if not isinstance(t, ArrayType):
            return ZERO if rows and all([r is ZERO for r in rows]) else rows
        if rows and all([r is ZERO for r in rows]):
            return ZERO
        dtype = t.dtype if not rows else np.asarray(next(r for r in rows if r is not ZERO)).dtype
        found = np.zeros(t.shape, dtype)
        for i, row in enumerate(rows):
            if row is not ZERO:
                found[i] = row
        if self.meter is not None:
            self.meter.made(found)
        return found

    def part_of(self, x: Any, at: Any) -> Any:
        """What is read is a copy: the array may be written, and a view would keep all of it."""
        return np.array(x[at])[()]

    def zero(self, t: Type) -> Any:
        """A zero of numbers; of a sum it is the symbol, which has no tag."""
        made = zeros(self.program, t)
        return exactly(made, self.scalar) if self.scalar else made

    def cost(self, e: Leaf, args: list[Any]) -> int:
        """W of the leaf; known from its types unless there are tags."""
        found = self.costs.get(e, -1)
        if found == -1:
            found = self.costs[e] = self._static(e)
        return measure(self.program, e.args[0].type, args[-1]) if found is None else found

    def _static(self, e: Leaf) -> int | None:
        tagged = Sum | Stack
        if any(isinstance(t, tagged) for a in e.args for t in self.program.leaves(a.type)):
            return None
        xs, us = self.judge.leaf(e)
        return work(self.program, e, (*us, *xs)[0])


def owned(e: Prim, y: Any) -> Any:
    """What is read of an array is a copy, lest a part keep the whole of it alive."""
    return np.array(y) if e.name == "index" and getattr(y, "base", None) is not None else y


def plus(x: Any, y: Any) -> Any:
    """The sum of two values of one type, products and tags included."""
    if x is ZERO or y is ZERO:
        return y if x is ZERO else x
    if isinstance(x, Tagged):
        assert x.tag == y.tag, "tangents of one value have one tag"
        return Tagged(x.tag, plus(x.payload, y.payload))
    if isinstance(x, list):
        return [plus(a, b) for a, b in zip(x, y, strict=True)]
    if isinstance(x, tuple):
        return tuple([plus(a, b) for a, b in zip(x, y, strict=True)])
    return x + y


def times(k: Any, x: Any) -> Any:
    """A value of any type, scaled."""
    if x is ZERO:
        return x
    if isinstance(x, Tagged):
        return Tagged(x.tag, times(k, x.payload))
    return tuple([times(k, a) for a in x]) if isinstance(x, tuple) else k * x


def measure(program: Program, t: Type, value: Any) -> int:
    """The scalars of a linear value; of a sum, those of its payload."""
    t = program.unfold(t)
    if isinstance(t, ArrayType):
        return scalars_of(t)
    if isinstance(t, Sum):
        return 0 if value is ZERO else measure(program, t.items[value.tag], value.payload)
    if isinstance(t, Stack):
        n = t.n if value is ZERO else len(value)
        rows = [ZERO] * (n or 0) if value is ZERO else value
        return sum(measure(program, t.items[0], v) for v in rows)
    assert isinstance(t, Product)
    parts = [ZERO] * len(t.items) if value is ZERO else value
    return sum(measure(program, s, v) for s, v in zip(t.items, parts, strict=True))


def zeros(program: Program, t: Type) -> Any:
    """The zero of a type, in numbers; sums stay symbolic."""
    t = program.unfold(t)
    if isinstance(t, ArrayType):
        return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0)
    if isinstance(t, Stack) and t.n is not None:
        return [zeros(program, t.items[0]) for _ in range(t.n)]
    if isinstance(t, Sum | Stack):
        return ZERO
    assert isinstance(t, Product)
    return tuple([zeros(program, item) for item in t.items])


def dense(program: Program, t: Type, value: Any) -> Any:
    """A linear value in numbers, with no symbol left in it but for sums."""
    t = program.unfold(t)
    if value is ZERO:
        return zeros(program, t)
    if isinstance(t, Product):
        return tuple([dense(program, s, v) for s, v in zip(t.items, value, strict=True)])
    if isinstance(t, Stack):
        return [dense(program, t.items[0], v) for v in value]
    if isinstance(t, Sum):
        return Tagged(value.tag, dense(program, t.items[value.tag], value.payload))
    return value


def exactly(value: Any, scalar: Any) -> Any:
    """A value whose floating numbers are those of another kind: `Fraction` for exact ones."""
    if isinstance(value, Tagged):
        return Tagged(value.tag, exactly(value.payload, scalar))
    if isinstance(value, list):
        return [exactly(v, scalar) for v in value]
    if isinstance(value, tuple):
        return tuple([exactly(v, scalar) for v in value])
    if isinstance(value, float | np.floating):
        return scalar(float(value))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        found = np.empty(value.shape, object)
        found.ravel()[:] = [scalar(float(v)) for v in value.ravel()]
        return found
    return value


def _fit(program: Program, p: Var, value: Any, name: str) -> Any:
    """A value of the type of a formal, or an error."""
    try:
        return fit(program, p.type, value)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"{name} takes {show(p.type)} as {p!r}: {error}") from None


def fit(program: Program, t: Type, value: Any) -> Any:
    """A value as one of the type: nested lists are arrays and tuples; nothing is rounded off."""
    t = program.unfold(t)
    if isinstance(t, Sum):
        if isinstance(value, bool | np.bool_ | int) and program.is_inert(t):
            value = Tagged(int(value), ())
        if not isinstance(value, Tagged) or not 0 <= value.tag < len(t.items):
            raise TypeError(f"{value!r} is none of its {len(t.items)} alternatives")
        return Tagged(value.tag, fit(program, t.items[value.tag], value.payload))
    if isinstance(t, Stack):
        if not isinstance(value, tuple | list) or t.n not in (None, len(value)):
            raise TypeError(f"{value!r} is no stack of {t.n or 'some'} values")
        return [fit(program, t.items[0], v) for v in value]
    if isinstance(t, Product):
        if isinstance(value, dict) and t.fields is not None:
            if set(value) != set(t.fields):
                raise TypeError(f"the fields are {', '.join(t.fields)}, not {', '.join(value)}")
            value = [value[f] for f in t.fields]
        if not isinstance(value, tuple | list) or len(value) != len(t.items):
            raise TypeError(f"{value!r} is no product of {len(t.items)} values")
        return tuple([fit(program, s, v) for s, v in zip(t.items, value, strict=True)])
    assert isinstance(t, ArrayType)
    if isinstance(value, Fraction):
        return value
    found = np.asarray(value)
    if found.shape != t.shape or not _holds(found, t.dtype):
        what = show(type_of(found)) if found.dtype.kind in "biufc" else repr(value)
        raise TypeError(f"found {what}")
    return found.astype(t.dtype) if t.shape else t.dtype.type(found)


def _holds(found: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers go into a dtype unchanged in kind: integers may become floating."""
    order = "biufc".replace("u", "")
    kind, want = found.dtype.kind.replace("u", "i"), dtype.kind.replace("u", "i")
    if kind not in order or want not in order:
        return found.dtype == object
    if found.size == 0:
        return True
    return order.index(kind) <= order.index(want) and (kind == "b") == (want == "b")

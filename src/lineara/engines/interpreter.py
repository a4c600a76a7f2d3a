"""The evaluator: a program on numbers and arrays, and the work that it did.

Calls stand on a stack of our own, so recursion in a program has no limit but memory.  A linear
zero is one symbol whatever its type, and is made into numbers where a result or a primitive needs
it; the count of work is that of the text.
"""

from collections.abc import Generator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.memory import Deaths, Meter, Owners, deaths, owner
from lineara.errors import LinearaError, ProgramError
from lineara.facts.types import ArrayType, Product, Stack, Sum, Type, is_complex, show, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import Judge, counted
from lineara.linear_a.cost import cells, varies, work
from lineara.linear_a.dimensions import dims_in, is_index, is_open, with_dims
from lineara.linear_a.program import Program, scalars_of

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
    """The results of a definition, non-linear and linear, the work W, and the bytes written.

    Bytes are written where memory is filled: a view is free, and so is what stays in place.
    """

    results: tuple[Any, ...]
    lresults: tuple[Any, ...]
    work: int
    written: int


def run(
    program: Program,
    name: str,
    *args: Any,
    scalar: Any = None,
    checked: bool = True,
    meter: Meter | None = None,
    ieee: bool = True,
    fuel: int | None = None,
) -> Outcome:
    """Evaluate a definition on its non-linear and then its linear arguments.

    `scalar=Fraction` calculates with exact numbers.  Arguments of other types than the formals are
    a ProgramError, unless `checked` is False, which lets complex numbers into a real program.
    A `meter` counts the bytes of the arrays that are alive.
    Where `ieee` is False a division by zero, and what else has no number, is a ProgramError.
    So is a definition that calls itself whatever its arguments are, and more than `fuel` calls and
    rounds of loops, if that is a number.

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
            f"{name} takes {counted(len(d.params), 'argument')} "
            f"({', '.join(f'{p!r}: {show(p.type)}' for p in d.params)}), not {len(args)}"
        )
    dims = dims_given(program, name, args)
    if checked:
        pairs = zip(d.params, args, strict=True)
        args = tuple([_fit(program, p, a, name, dims) for p, a in pairs])
    if scalar is not None:
        args = tuple([exactly(a, scalar) for a in args])
    if meter is not None:
        meter.made(args)
    if not may_end(program, name):
        raise ProgramError(
            f"{name} calls itself whatever its arguments are, so it never ends; let a branch of a "
            "cond, switch or case end without the call"
        )
    machine = Machine(program, scalar, meter)
    machine.fuel = fuel
    no_number = "ignore" if ieee else "raise"
    with np.errstate(all="ignore", divide=no_number, invalid=no_number):
        found = machine.drive(machine.enter(name, list(args)))
    types = [with_dims(t, dims) for t in (*d.results, *d.lresults)]
    made = [dense(program, t, v) for t, v in zip(types, found, strict=True)]
    results, k = machine.given_away(tuple(made)), len(d.results)
    return Outcome(results[:k], results[k:], machine.work, machine.written)


def may_end(program: Program, name: str) -> bool:
    """Whether some way through a definition ends: one that calls itself on every way has no value.

    A loop may take no round, and of a branch one alternative is enough.
    """
    known = program.noted["ends"]
    if not known:
        applied = {f: list(ir.applications(d.body)) for f, d in program.defs.items()}
        known.update(dict.fromkeys(applied, False))
        found: list[str] | None = None
        while found != []:
            found = [
                f for f, es in applied.items()
                if not known[f]
                and all([e.may_end([known.get(g, True) for g in e.functions]) for e in es])
            ]  # fmt: skip
            known.update(dict.fromkeys(found, True))
    return known[name]


class Env(dict[ir.Var, Any]):
    """The values of the variables of a definition, where each of them dies, and its dimensions."""

    __slots__ = ("deaths", "dims")
    deaths: Deaths
    dims: dict[ir.Var, int]


class Machine:
    """An evaluation: the program, the work so far, and how it stands with numbers."""

    def __init__(self, program: Program, scalar: Any = None, meter: Meter | None = None) -> None:
        self.program = program
        self.scalar = scalar
        self.judge = Judge(program, "")
        self.meter = meter
        self.deaths: dict[ir.Block, Deaths] = program.noted["deaths"]  # of bodies entered so far
        self.owners = Owners()
        self.work = 0
        self.fuel: int | None = None  # how many definitions may still be entered
        self.written = 0
        self.dims: dict[ir.Var, int] = {}  # of the definition whose leaf is at hand
        self.costs: dict[Any, int | None] = program.noted["costs"]  # None: it depends on tags
        self.sized: dict[Any, int | None] = {}  # the same of leaves with dimensions
        self.stated: dict[ir.Leaf, Any] = program.noted["stated"]  # where results have dimensions

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
        if self.fuel is not None:
            self.burn(name)
        d = self.program.defs[name]
        if d.body not in self.deaths:
            self.deaths[d.body] = deaths(d)
        env = Env(zip(d.params, values, strict=True))
        env.deaths = self.deaths[d.body]
        env.dims = {v: int(env[v]) for v in self.program.dims(name)}
        values.clear()
        return self.block(d.body, env)

    def burn(self, name: str) -> None:
        """Count a call or a round of a loop."""
        assert self.fuel is not None, "there is a limit"
        if not self.fuel:
            raise ProgramError(
                f"the run is out of fuel as {name} is entered; a recursion or a loop through it "
                "may never end: look at the condition that ends it, or give more, --fuel N"
            )
        self.fuel -= 1

    def block(self, block: ir.Block, env: "Env") -> Steps:
        """The bindings in order, then the values of the leaf; variables die with their last use."""
        *dying, at_last = env.deaths[block]
        for b, dead in zip(block.bindings, dying, strict=True):
            if isinstance(b, ir.Unpack):
                whole = env[b.arg]
                values: Any = [ZERO] * len(b.vars) if whole is ZERO else list(whole)
                if self.owners and b.arg not in dead:
                    self.owners.share(whole)
                whole = None
            else:
                values = yield from self.expression(b.rhs, env, dead)
            env.update(zip(b.vars, values, strict=True))
            values.clear()
            for v in dead:
                env.pop(v, None)
        return (yield from self.expression(block.leaf, env, at_last))

    def expression(self, e: ir.Leaf | ir.Block, env: "Env", dead: ir.Vars = ()) -> Steps:
        """The values of a leaf or a block; the dead are handed over to what is applied."""
        if isinstance(e, ir.Block):
            return (yield self.block(e, env))
        if isinstance(e, ir.Drop):
            return (yield from self.drop(e, env))
        args = [env[a] for a in e.args]
        if isinstance(e, ir.Application):
            self.share(e, args, dead)
            for v in dead:
                del env[v]
            return (yield e.with_length(env.dims).run(self, args))
        self.dims = env.dims
        if isinstance(e, ir.Part):
            mine = e.args[0] in dead and e.args.count(e.args[0]) == 1
            found = self.part(e, args, env, mine)
        else:
            found = self.leaf(e, args, env)
            if isinstance(e, ir.Prim):
                self.made(e, args, found[0], dead)
            else:
                self.share(e, args, dead)
        if self.meter is not None:
            self.meter.made(found)
        return list(found)

    def agree(self, d: ir.Def, values: Sequence[Any], open_: Sequence[int]) -> None:
        """Values whose types leave a size open have the size that a definition is given."""
        sizes = {p: int(v) for p, v in zip(d.params, values, strict=True) if is_index(p)}
        for i in open_:
            p = d.params[i]
            if not fits(self.program, with_dims(p.type, sizes), values[i]):
                raise ProgramError(
                    f"{d.name} takes {show(p.type)} as {p!r}, where "
                    f"{', '.join(f'{v!r} is {n}' for v, n in sizes.items())}, but is given one of "
                    "another size; give the size that it was made with"
                )

    def share(self, e: ir.Leaf, args: Sequence[Any], dead: ir.Vars) -> None:
        """What a leaf hands on of variables that live on, or twice, belongs to nobody alone."""
        if self.owners:
            for v, a in zip(e.args, args, strict=True):
                if v not in dead or isinstance(e, ir.Dup) or e.args.count(v) > 1:
                    self.owners.share(a)

    def made(self, e: ir.Prim, args: Sequence[Any], y: Any, dead: ir.Vars) -> None:
        """Count what a primitive has written; a view of an array is written where that may be."""
        shown = [(v, a) for v, a in zip(e.args, args, strict=True) if shows(y, a)]
        sole = [v in dead and e.args.count(v) == 1 and a in self.owners for v, a in shown]
        for _, a in shown:
            self.owners.share(a)
        if not shown:
            self.written += nbytes(owner(y) if is_array(y) else y)
        if all(sole) and is_array(y) and y.flags.writeable:
            self.owners.take(y)

    def given_away(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Results that share no memory with arguments, with constants, or with each other."""

        def fresh(value: Any) -> Any:
            if isinstance(value, Tagged):
                return Tagged(value.tag, fresh(value.payload))
            if isinstance(value, tuple | list):
                return type(value)(map(fresh, value))
            if not is_array(value):
                return value[()] if isinstance(value, np.ndarray) else value
            if value in self.owners:
                self.owners.share(value)
                return value
            return self.copied(value)

        return tuple(map(fresh, results))

    def drop(self, e: ir.Drop, env: "Env") -> Steps:
        """Evaluate and forget; forgetting costs what was there."""
        values = yield from self.expression(e.body, env)
        last = e.body
        while isinstance(last, ir.Block):
            last = last.leaf
        assert isinstance(last, ir.Copy | ir.Ret) or values is not None
        self.dims = env.dims
        for v, t, linear in self.typed(last, values):
            t = with_dims(t, self.dims)
            self.work += measure(self.program, t, v) if linear else cells(self.program, t)
        return []

    def typed(self, leaf: ir.Leaf, values: Sequence[Any]) -> list[tuple[Any, Type, bool]]:
        """The values of a leaf with their types and zones."""
        if isinstance(leaf, ir.Drop):
            return []
        xs, us = self.judge.leaf(leaf)
        zones = [False] * len(xs) + [True] * len(us)
        return list(zip(values, (*xs, *us), zones, strict=True))

    def leaf(self, e: ir.Leaf, args: list[Any], env: dict[ir.Var, Any]) -> Sequence[Any]:
        """The values of a primitive, or of a leaf that only hands on what there is."""
        match e:
            case ir.Prim():
                return (self.prim(e, args, env),)
            case ir.Ret() | ir.Copy():
                return args
            case ir.Dup():
                return (args[0], args[0])
            case ir.Lit(value=value):
                return (value if self.scalar is None else exactly(value, self.scalar),)
            case ir.Tup():
                return (tuple(args),)
            case ir.Zero(type=t, linear=linear):
                return (ZERO if linear else self.zero(t),)
            case ir.Inj(tag=tag):
                return (Tagged(tag, args[0]),)
            case ir.Proj(tag=tag):
                held = args[0]
                if held is ZERO:
                    return (ZERO,)
                assert held.tag == tag, "a tangent has the tag of its value"
                return (held.payload,)
        raise AssertionError(type(e).__name__)

    def prim(self, e: ir.Prim, args: list[Any], env: dict[ir.Var, Any]) -> Any:
        """A primitive; of zeros it is zero where it is linear."""
        self.work += self.cost(e, args)
        params = e.params
        if params and not e.primitive.raised:  # whose parameters are never variables
            params = ir.renamed_params(params, env.__getitem__)
        if any([a is ZERO for a in args]):
            return self.prim_of_zeros(e, args, params)
        if e.name == "add" and isinstance(args[0], tuple | list):
            return plus(*args)
        if e.name == "multiply" and isinstance(args[1], tuple):
            return times(*args)
        return self.looked_at(e, self.apply(e, args, params))

    def looked_at(self, e: ir.Leaf, y: Any) -> Any:
        """A result of the size that it should have; samples cannot tell how far a part reaches."""
        if not self.dims:
            return y
        if e not in self.stated:
            xs, us = self.judge.leaf(e)
            known = any(dims_in((xs, us, [a.type for a in e.args])))
            self.stated[e] = (*us, *xs)[0] if known else None
        t = self.stated[e]
        if t is not None and np.shape(y) != with_dims(t, self.dims).shape:
            sizes = ", ".join(f"{v!r} is {n}" for v, n in self.dims.items())
            self.judge.wrong(
                f"{show(t)} should come out here, where {sizes}, but {show(type_of(y))} does; a "
                "part of an array lies within it",
                e,
            )
        return y

    def apply(self, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """NumPy's value of the primitive; errors name the equation."""
        try:
            if self.scalar is None:
                return owned(e, e.primitive.evaluate(np, *args, **params))
            if e.name == "astype" and np.dtype(params["dtype"]).kind == "f":
                return exactly(args[0], self.scalar)
            return exactly(owned(e, e.primitive.evaluate(np, *args, **params)), self.scalar)
        except (ZeroDivisionError, ValueError, IndexError, LinearaError, ArithmeticError) as error:
            if e.primitive.raised:  # what Python raises, or our error at the user's line
                raise
            text = error.message if isinstance(error, LinearaError) else str(error)
            mend = ""
            if isinstance(error, ZeroDivisionError | FloatingPointError):
                mend = "; keep it away from there, or ask for infinities and NaN: ieee=True, --ieee"
            Judge(self.program, "").wrong(f"{e.name} fails as the program runs: {text}{mend}", e)

    def prim_of_zeros(self, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """A linear map, some of whose arguments are zero."""
        if e.name == "add":
            return args[1] if args[0] is ZERO else args[0]
        zeros = [a is ZERO for a, v in zip(args, e.args, strict=True) if v.linear]
        if all(zeros) and any(v.linear for v in e.args):
            return ZERO
        made = [self.zero(v.type) if a is ZERO else a for a, v in zip(args, e.args, strict=True)]
        return self.looked_at(e, self.apply(e, made, params))

    def part(
        self, e: ir.Part, args: list[Any], env: dict[ir.Var, Any], mine: bool
    ) -> Sequence[Any]:
        """read, accum, put: in place, if this is the last use and the array is nobody else's."""
        at = ir.renamed_params(e.at, env.__getitem__)
        x = args[0]
        y: Any = args[1] if len(args) > 1 else ZERO
        self.work += self.cost(e, args)
        if isinstance(e, ir.Read):
            part = ZERO if x is ZERO else self.looked_at(e, self.part_of(e, x, at))
            self.written += nbytes(part)
            return (part, x)
        if y is ZERO and (x is ZERO or isinstance(e, ir.Accum)):
            return (x,)
        if x is ZERO:
            x = self.zero(e.args[0].type)
            x = x.astype(y.dtype) if is_complex(y) else x
        elif not mine or x not in self.owners or is_complex(y) > is_complex(x):
            x = self.copied(x, np.result_type(x, y) if is_complex(y) else None)
        x = x if is_array(x) else np.asarray(x)
        self.written += nbytes(y)
        if y is not ZERO and any([isinstance(p, slice) and any(ir.vars_in(p)) for p in e.at]):
            self.within(e, x, at, y)
        self.write(e, x, at, y)
        return (x[()] if not x.ndim else x,)

    def within(self, e: ir.Part, x: Any, at: Any, y: Any) -> None:
        """A part up to a dimension lies within the array."""
        found = np.shape(x[at])
        if found != np.shape(y):
            Judge(self.program, "").wrong(
                f"the part has the shape {found}, and {np.shape(y)} is put there; a part of an "
                "array lies within it",
                e,
            )

    def write(self, e: ir.Part, x: np.ndarray, at: Any, y: Any) -> None:
        """Add to the part of an array, or overwrite it."""
        try:
            if isinstance(e, ir.Accum):
                np.add.at(x, at, y)
            elif repeats(at, x.shape):
                raise ProgramError(
                    "put: the index has a position twice, so which value stays is left to chance; "
                    "accum adds them up"
                )
            else:
                x[at] = 0 if y is ZERO else y
        except IndexError as error:
            raise ProgramError(f"{type(e).__name__.lower()}: {error}") from None

    def stack(self, t: Type, rows: list[Any]) -> Any:
        """The values of the rounds of a loop: an array with one more axis, or a list."""
        if not isinstance(t, ArrayType):
            self.owners.share(tuple(rows))
            return ZERO if rows and all([r is ZERO for r in rows]) else rows
        if rows and all([r is ZERO for r in rows]):
            return ZERO
        return self.new(self.filled(t, rows))

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """The rows in one array."""
        dtypes = {np.asarray(r).dtype for r in rows if r is not ZERO}  # wider in a complex step
        found = np.zeros(t.shape, np.result_type(*dtypes) if dtypes else t.dtype)
        for i, row in enumerate(rows):
            if row is not ZERO:
                found[i] = row
        return found

    def copied(self, x: Any, dtype: Any = None) -> Any:
        """An array of its own."""
        return self.new(np.array(x, dtype))

    def new(self, made: Any) -> Any:
        """What was just made, counted."""
        self.owners.take(made)
        self.written += nbytes(made)
        if self.meter is not None:
            self.meter.made(made)
        return made

    def part_of(self, e: ir.Part, x: Any, at: Any) -> Any:
        """What is read is a copy: the array may be written, and a view would keep all of it."""
        try:
            return np.array(x[at])[()]
        except IndexError as error:
            raise ProgramError(f"read: {error}") from None

    def zero(self, t: Type) -> Any:
        """A zero of numbers; of a sum it is the symbol, which has no tag."""
        made = zeros(self.program, with_dims(t, self.dims))
        return self.new(exactly(made, self.scalar) if self.scalar else made)

    def chosen(self, e: Any, value: Any) -> tuple[int, list[Any]]:
        """Which branch a value chooses, and what it is given first."""
        return e.chosen(value)

    def holds(self, condition: Any, done: int) -> bool:
        """Whether a loop goes on after so many rounds."""
        return bool(condition)

    def cost(self, e: ir.Leaf, args: list[Any]) -> int:
        """W of the leaf; known from its types unless there are tags."""
        known, key = (self.sized, (e, *self.dims.values())) if self.dims else (self.costs, e)
        found = known.get(key, -1)
        if found == -1:
            found = known[key] = self._static(e)
        if found is not None:
            return found
        return measure(self.program, with_dims(e.args[0].type, self.dims), args[-1])

    def _static(self, e: ir.Leaf) -> int | None:
        if any(varies(t) for a in e.args for t in self.program.leaves(a.type)):
            return None
        xs, us = self.judge.leaf(e)
        return work(self.program, e, (*us, *xs)[0], self.dims)


def owned(e: ir.Prim, y: Any) -> Any:
    """What is read of an array is a copy, lest a part keep the whole of it alive."""
    return np.array(y) if e.name == "index" and getattr(y, "base", None) is not None else y


def nbytes(value: Any) -> int:
    """The bytes of a number or an array, or of all in a product."""
    if isinstance(value, tuple | list):
        return sum(map(nbytes, value))
    return getattr(value, "nbytes", 0)


def shows(y: Any, x: Any) -> bool:
    """Whether a result is an array in the memory of an argument."""
    if isinstance(y, np.ndarray) and isinstance(x, np.ndarray):
        return np.may_share_memory(y, x)
    return is_array(x) and is_array(y) and owner(x) is owner(y)


def is_array(value: Any) -> bool:
    """Whether a value has axes."""
    return bool(getattr(value, "ndim", 0))


def repeats(at: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Whether an index has a position more than once: only integer arrays in it may."""
    if not any(isinstance(p, np.ndarray) and p.ndim and p.dtype.kind in "iu" for p in at):
        return False
    taken = [0 if p is None or p is ... else p.ndim if is_mask(p) else 1 for p in at]
    positions, axis = [], 0
    for p, n in zip(at, taken, strict=True):
        if is_mask(p):
            positions += p.nonzero()
        elif isinstance(p, int | np.integer | np.ndarray):
            positions.append(np.mod(p, shape[axis]))
        axis += len(shape) - sum(taken) if p is ... else n
    rows = np.stack([p.ravel() for p in np.broadcast_arrays(*positions)])
    if len(rows) == 1 and np.all(rows[0, 1:] > rows[0, :-1]):
        return False  # in order, as those of lanes are
    return np.unique(rows, axis=1).shape[1] < rows.shape[1]


def is_mask(part: Any) -> bool:
    """Whether a part of an index says of each position whether it is meant."""
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


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
    assert np.shape(x) == np.shape(y), "tangents of one value have one size"
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
        if is_open(t):
            return 0 if value is ZERO else scalars_of(type_of(value))
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
        if is_open(t):
            return ZERO
        return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0)
    if isinstance(t, Stack) and t.n is not None:
        return [zeros(program, t.items[0]) for _ in range(t.n)]
    if isinstance(t, Sum | Stack):
        return ZERO
    assert isinstance(t, Product)
    return tuple([zeros(program, item) for item in t.items])


def fits(program: Program, t: Type, value: Any) -> bool:
    """Whether a value has the sizes that its type says; what is open may be anything."""
    t = program.unfold(t)
    if value is ZERO:
        return True
    if isinstance(t, ArrayType):
        found = np.shape(value)
        return len(found) == t.ndim and all(
            [n in (None, m) for n, m in zip(t.shape, found, strict=True)]
        )
    if isinstance(t, Sum):
        return fits(program, t.items[value.tag], value.payload)
    if isinstance(t, Stack):
        return t.n in (None, len(value)) and all([fits(program, t.items[0], v) for v in value])
    assert isinstance(t, Product)
    return all([fits(program, s, v) for s, v in zip(t.items, value, strict=True)])


def dense(program: Program, t: Type, value: Any) -> Any:
    """A value in numbers, with no symbol left in it but for sums; erased code has symbols, too."""
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


def dims_given(program: Program, name: str, args: Sequence[Any]) -> dict[ir.Var, int]:
    """The dimensions of a definition in numbers."""
    at = dict(zip(program.defs[name].params, args, strict=True))
    found = {v: at[v] for v in program.dims(name)}
    for v, n in found.items():
        if np.ndim(n) or not isinstance(n, int | np.integer) or n < 0:
            raise ProgramError(
                f"{v!r} is a dimension in {name}: give it a whole number that is not negative, "
                f"not {n!r}"
            )
    return {v: int(n) for v, n in found.items()}


def _fit(program: Program, p: ir.Var, value: Any, name: str, dims: dict[ir.Var, int]) -> Any:
    """A value of the type of a formal, or an error."""
    try:
        return fit(program, with_dims(p.type, dims), value)
    except (TypeError, ValueError) as error:
        known = dict.fromkeys(dims_in(p.type))
        where = ", where " * bool(known) + " and ".join(f"{v!r} is {dims[v]}" for v in known)
        raise ProgramError(f"{name} takes {show(p.type)} as {p!r}{where}: {error}") from None


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
    fitting = fits(program, t, found)
    if found.dtype == object and fitting and _is_exact(found):
        return found.copy()
    if not fitting or not _holds(found, t.dtype):
        what = show(type_of(found)) if found.dtype.kind in "biufc" else repr(value)
        raise TypeError(f"found {what}")
    return found.astype(t.dtype) if t.shape else t.dtype.type(found)


def _is_exact(found: np.ndarray) -> bool:
    """Whether an array holds fractions."""
    return all(isinstance(v, Fraction) for v in found.flat)


def _holds(found: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers go into a dtype unchanged in kind: integers may become floating."""
    order = "biufc".replace("u", "")
    kind, want = found.dtype.kind.replace("u", "i"), dtype.kind.replace("u", "i")
    if kind not in order or want not in order:
        return found.dtype == object
    if found.size == 0:
        return True
    return order.index(kind) <= order.index(want) and (kind == "b") == (want == "b")

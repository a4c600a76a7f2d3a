"""The reference engine: it walks the program, on numbers and arrays, and counts the work.

Calls stand on a stack of our own, so a recursion may be DEEPEST generators deep.  A linear
zero is one symbol whatever its type, and is made into numbers where a result or a primitive needs
it; the count of work is that of the text.

What is done to values is an argument of the machine: `Numbers` are NumPy's, and the classes that
inherit from it calculate with fractions, with shadows (`rehearsal`), or on a tape
(`staging/run_on_tape`).
"""

from collections.abc import Callable, Generator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lineara.engines.engine import CAPABILITIES, Ask, Engine, Entering, Outcome
from lineara.engines.memory import Deaths, Meter, Owners, deaths, owner
from lineara.engines.values import (
    ZERO,
    Repeated,
    Tagged,
    dense,
    dims_given,
    exactly,
    fits,
    is_array,
    measure,
    nbytes,
    plus,
    times,
    zeros,
)
from lineara.errors import (
    BoundsError,
    LinearaError,
    OutOfBounds,
    OutOfRoom,
    ProgramError,
    StagingError,
)
from lineara.facts.hints import Index, Shaped, Tree, Value
from lineara.facts.types import ArrayType, Type, is_complex, is_ring, show, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import Judge
from lineara.linear_a.cost import cells, varies, work
from lineara.linear_a.dimensions import dims_in, is_index, with_dims
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Application

Steps = Generator[Any, Any, Any]
DEEPEST = 100_000  # generators that wait for each other; a call has two or three


class Env(dict[ir.Var, Any]):
    """The values of the variables of a definition, where each of them dies, and its dimensions."""

    __slots__ = ("deaths", "dims")
    deaths: Deaths
    dims: dict[ir.Var, int]


class Machine:
    """An evaluation: the program, the values that it is evaluated on, and the work so far."""

    def __init__(
        self,
        program: Program,
        values: "Numbers | None" = None,
        meter: Meter | None = None,
        entering: Sequence[Entering] = (),
    ) -> None:
        self.program = program
        self.values: Numbers = values or Numbers()
        self.judge: Judge = Judge(program, "")
        self.meter = meter
        self.entering = entering
        self.deaths: dict[ir.Block, Deaths] = program.noted["deaths"]  # of bodies entered so far
        self.owners: Owners = Owners(weak=not self.values.recorded)
        self.work: int = 0
        self.written: int = 0
        self.dims: dict[ir.Var, int] = {}  # of the definition whose leaf is at hand
        self.costs: dict[Any, int | None] = program.noted["costs"]  # None: it depends on tags
        self.sized: dict[Any, int | None] = {}  # likewise for leaves with dimensions
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
                if len(stack) > DEEPEST:
                    raise self.judge.too_deep()
        return value

    def enter(self, name: str, values: list[Any]) -> Steps:
        """A definition on values, unless what looks on does something else in its place."""
        for see in self.entering:
            steps = see(self, name, values)
            if steps is not None:
                return steps
        return self.body(name, values)

    def body(self, name: str, values: list[Any]) -> Steps:
        """A definition on values, which are its own from now on."""
        d = self.program.defs[name]
        if d.body not in self.deaths:
            self.deaths[d.body] = deaths(d)
        env = Env(zip(d.params, values, strict=True))
        env.deaths = self.deaths[d.body]
        env.dims = {v: int(env[v]) for v in self.program.dims(name)}
        values.clear()
        return self.block(d.body, env)

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
            return (yield self.application(e.with_length(env.dims), args))
        self.dims = env.dims
        if isinstance(e, ir.Part):
            mine = e.args[0] in dead and e.args.count(e.args[0]) == 1
            results = self.part(e, args, env, mine)
        else:
            results = self.leaf(e, args, env)
            if isinstance(e, ir.Prim):
                self.made(e, args, results[0], dead)
            else:
                self.share(e, args, dead)
        if self.meter is not None:
            self.meter.made(results)
        return list(results)

    def application(self, e: ir.Application, values: list[Any]) -> Steps:
        """A call, branch or loop on values."""
        return e.run(self, values)

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

    def made(self, e: ir.Prim, args: Sequence[Any], y: Shaped, dead: ir.Vars) -> None:
        """Count what a primitive has written; a view of an array is written where that may be."""
        if self.values.recorded:
            return
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
        if self.values.recorded:
            return results

        def fresh(value: Any) -> Any:
            if isinstance(value, Tagged):
                return Tagged(value.tag, fresh(value.payload))
            if isinstance(value, Repeated):
                return value.mapped(fresh)
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
        if self.values.recorded:
            return []
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
            case ir.Lit(value=value, type=t):
                return (self.values.element(value) if is_ring(t) else self.values.given(value),)
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
        values = self.values
        if not values.recorded:
            self.work += self.cost(e, args)
        params = e.params
        if params and not e.primitive.raised:  # such parameters are never variables
            params = ir.renamed_params(params, env.__getitem__)
        if any([a is ZERO for a in args]):
            return self.prim_of_zeros(e, args, params)
        if e.name == "add" and isinstance(args[0], tuple | list):
            return plus(*args)
        if e.name == "multiply" and any([isinstance(a, tuple) for a in args]):
            return times(*args)
        return self.looked_at(e, values.apply(self, e, args, params))

    def looked_at(self, e: ir.Leaf, y: Shaped) -> Any:
        """A result of the size that it should have; samples cannot tell how far a part reaches."""
        if not self.dims:
            return y
        if e not in self.stated:
            xs, us = self.judge.leaf(e)
            known = any(dims_in((xs, us, [a.type for a in e.args])))
            self.stated[e] = (*us, *xs)[0] if known else None
        t = self.stated[e]
        if t is not None and getattr(y, "shape", ()) != with_dims(t, self.dims).shape:
            sizes = ", ".join(f"{v!r} is {n}" for v, n in self.dims.items())
            self.judge.wrong(
                f"{show(t)} should come out here, where {sizes}, but {show(type_of(y))} does; a "
                "part of an array lies within it",
                e,
            )
        return y

    def prim_of_zeros(self, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """A linear map, some of whose arguments are zero."""
        if e.name == "add":
            return args[1] if args[0] is ZERO else args[0]
        zeros = [a is ZERO for a, v in zip(args, e.args, strict=True) if v.linear]
        if all(zeros) and any(v.linear for v in e.args):
            return ZERO
        made = [self.zero(v.type) if a is ZERO else a for a, v in zip(args, e.args, strict=True)]
        return self.looked_at(e, self.values.apply(self, e, made, params))

    def part(
        self, e: ir.Part, args: list[Any], env: dict[ir.Var, Any], mine: bool
    ) -> Sequence[Any]:
        """read, accum, put: in place, if this is the last use and the array is nobody else's."""
        at = ir.renamed_params(e.at, env.__getitem__)
        x = args[0]
        y: Any = args[1] if len(args) > 1 else ZERO
        if not self.values.recorded:
            self.work += self.cost(e, args)
        if isinstance(e, ir.Read):
            part = ZERO
            if x is not ZERO:
                try:
                    part = self.looked_at(e, self.values.part_of(self, e, x, at))
                except IndexError as error:
                    raise self.beyond(e, args, error) or error from None
            self.written += nbytes(part)
            return (part, x)
        if y is ZERO and (x is ZERO or isinstance(e, ir.Accum)):
            return (x,)
        if x is ZERO:
            x = self.zero(e.args[0].type)
            x = x.astype(y.dtype) if is_complex(y) else x
        elif not mine or x not in self.owners or is_complex(y) > is_complex(x):
            x = self.copied(x, y if is_complex(y) else None)
        self.written += nbytes(y)
        if y is not ZERO and any([isinstance(p, slice) and any(ir.vars_in(p)) for p in e.at]):
            self.values.within(self, e, x, at, y)
        try:
            return (self.values.write(e, x, at, y),)
        except IndexError as error:
            raise self.beyond(e, args, error) or error from None
        except ProgramError as error:
            raise type(error)(error.message, self.judge.users_line(e)) from None

    def beyond(self, e: ir.Leaf, args: Sequence[Any], error: IndexError) -> IndexError | None:
        """The error of a position that an array does not have.

        None for a primitive of which no user's line is known: the equation is named instead.
        """
        line, plain = self.judge.users_line(e), getattr(error, "plain", None) or error
        if not line:
            is_part = isinstance(e, ir.Part)
            return OutOfBounds(f"{type(e).__name__.lower()}: {error}") if is_part else None
        reads = isinstance(e, ir.Read) or (isinstance(e, ir.Prim) and e.name == "index")
        array = show(type_of(args[0])) if reads or isinstance(e, ir.Part) else "an array"
        said = f"{array} was {'read' if reads else 'written'} at a place that it does not have: "
        *_, size = str(plain).rpartition("with size ")
        n = int(size) if size.isdigit() else 0
        ends = f"; count from 0 to {n - 1}, or backwards from -1 to {-n}" if n else ""
        told = BoundsError(f"{said}{plain}{ends}", line=line)
        told.plain = plain if type(plain) is IndexError else None
        return told

    def stack(self, t: Type, rows: list[Any]) -> Any:
        """The values of the rounds of a loop: an array with one more axis, or a list."""
        if not isinstance(t, ArrayType):
            self.owners.share(tuple(rows))
            return ZERO if rows and all([r is ZERO for r in rows]) else rows
        if rows and all([r is ZERO for r in rows]):
            return ZERO
        return self.new(self.values.filled(t, rows))

    def copied(self, x: Any, like: Shaped | None = None) -> Any:
        """An array of its own, which can hold the numbers of `like`."""
        x = self.values.copied(x, like)
        self.owners.take(x)
        return self.counted(x)

    def new(self, array: Shaped) -> Any:
        """What was just made, counted; it may be written, unless a tape may hold it."""
        if not self.values.recorded:
            self.owners.take(array)
        return self.counted(array)

    def counted(self, array: object) -> Any:
        """What was just made, after its bytes are counted."""
        self.written += nbytes(array)
        if self.meter is not None:
            self.meter.made(array)
        return array

    def zero(self, t: Type) -> Any:
        """A zero of numbers; of a sum it is the symbol, which has no tag."""
        return self.new(self.values.zero(self, t))

    def chosen(self, e: Application, value: Value) -> tuple[int, list[Any]]:
        """Which branch a value chooses, and what it is given first."""
        return self.values.chosen(self, e, value)

    def holds(self, condition: object, done: int) -> bool:
        """Whether a loop goes on after so many rounds."""
        return self.values.holds(condition, done)

    def cost(self, e: ir.Leaf, args: list[Any]) -> int:
        """W of the leaf; known from its types unless there are tags."""
        known, key = (self.sized, (e, *self.dims.values())) if self.dims else (self.costs, e)
        w = known.get(key, -1)
        if w == -1:
            w = known[key] = self._static(e)
        if w is not None:
            return w
        return measure(self.program, with_dims(e.args[0].type, self.dims), args[-1])

    def _static(self, e: ir.Leaf) -> int | None:
        if any(varies(t) for a in e.args for t in self.program.leaves(a.type)):
            return None
        xs, us = self.judge.leaf(e)
        return work(self.program, e, (*us, *xs)[0], self.dims)


class Numbers:
    """What a machine does to values; here they are NumPy's numbers and arrays.

    Where values are `recorded`, a tape may hold what is made: nothing but a copy is written in
    place, what is dropped is not evaluated, and nothing is counted.
    """

    kind = ""  # the capability that an engine needs to evaluate on them
    recorded = False

    def given(self, value: Tree) -> Any:
        """An argument or a literal as a value of this kind."""
        return value

    def element(self, value: Value) -> Any:
        """A literal of a ring: itself, which meets other objects as Python has it."""
        return value

    def zero_of_ring(self) -> Any:
        """The zero of the ring that `object` stands for."""
        raise ProgramError(
            "a zero is asked for as an element of a ring, and nothing tells which ring it is; run "
            "with ask=Ask(values=Exact(number)), where number(0) is that zero"
        )

    def zeros(self, program: Program, t: Type) -> Any:
        """The zero of a type without dimensions."""
        return zeros(program, t, self.zero_of_ring)

    def zero(self, machine: Machine, t: Type) -> Any:
        """The zero of a type."""
        return self.zeros(machine.program, with_dims(t, machine.dims))

    def apply(self, machine: Machine, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """The value of a primitive; errors name the equation."""
        try:
            return self.evaluated(e, args, params)
        except (ZeroDivisionError, ValueError, IndexError, LinearaError, ArithmeticError) as error:
            known = e.primitive.raised or e.primitive.acts  # an error of Python's, or at a line
            if isinstance(error, np.linalg.LinAlgError) and (line := machine.judge.users_line(e)):
                error.add_note(f"at {line}")
            if known or isinstance(error, OutOfRoom):
                raise
            if isinstance(error, StagingError):  # of values for which the program has no equation
                raise StagingError(error.message, line=machine.judge.users_line(e)) from None
            text = error.message if isinstance(error, LinearaError) else str(error)
            mend = ""
            if isinstance(error, ZeroDivisionError | FloatingPointError):
                mend = "; keep it away from there, or ask for infinities and NaN: ieee=True, --ieee"
            if isinstance(error, IndexError) and e.name in ("index", "scatter"):
                told = machine.beyond(e, args, error)
                if told is not None:
                    raise told from None
            kind = OutOfBounds if isinstance(error, IndexError) else ProgramError
            text = f"{e.name} fails as the program runs: {text}{mend}"
            machine.judge.wrong(text, e, kind=kind)

    def evaluated(self, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """NumPy's value; what is read of an array is a copy, lest a part keep all of it alive."""
        y = e.primitive.evaluate(np, *args, **params)
        return np.array(y) if e.name == "index" and getattr(y, "base", None) is not None else y

    def chosen(self, machine: Machine, e: Any, value: Value) -> tuple[int, list[Any]]:
        """Which branch a value chooses, and what it is given first."""
        return e.chosen(value)

    def holds(self, condition: object, done: int) -> bool:
        """Whether a loop goes on after so many rounds."""
        return bool(condition)

    def steady(self, machine: Machine, body: str) -> Any:
        """What finds out whether the rounds of a loop are alike, where they may be multiplied."""
        return None

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """The rows in one array."""
        dtypes = {np.asarray(r).dtype for r in rows if r is not ZERO}  # wider in a complex step
        y = np.zeros(t.shape, np.result_type(*dtypes) if dtypes else t.dtype)
        for i, row in enumerate(rows):
            if row is not ZERO:
                y[i] = row
        return y

    def copied(self, x: Shaped, like: Shaped | None = None) -> Any:
        """A copy, which can hold the numbers of `like`."""
        return np.array(x, None if like is None else np.result_type(x, like))

    def part_of(self, machine: Machine, e: ir.Part, x: np.ndarray, at: Index) -> Any:
        """What is read is a copy: the array may be written, and a view would keep all of it."""
        return np.array(x[at])[()]

    def within(self, machine: Machine, e: ir.Part, x: Shaped, at: Index, y: Shaped) -> None:
        """Refuse a part up to a dimension that does not lie within the array."""
        shape = np.shape(x[at])
        if shape != np.shape(y):
            machine.judge.wrong(
                f"the part has the shape {shape}, and {np.shape(y)} is put there; a part of an "
                "array lies within it",
                e,
            )

    def write(self, e: ir.Part, x: Shaped, at: tuple[Any, ...], y: Shaped) -> Any:
        """The array after a part of it was added to, or overwritten."""
        x = x if is_array(x) else np.asarray(x)
        if isinstance(e, ir.Accum):
            np.add.at(x, at, y)
        elif repeats(at, x.shape):
            raise ProgramError(
                "put: the index has a position twice, so which value stays is left to chance; "
                "accum adds them up"
            )
        else:
            x[at] = 0 if y is ZERO else y
        return x if x.ndim else x[()]


class Exact(Numbers):
    """Exact numbers of a class, as `Fraction`, in place of floating ones.

    `number` makes them of floating numbers, and elements of a ring of whole ones: n times its one.
    """

    kind = "exact numbers"

    def __init__(self, number: Callable[[Any], Any] = Fraction) -> None:
        self.number = number

    def element(self, value: Value) -> Any:
        """A whole number is so many times the one of the ring."""
        return self.number(value) if type(value) is int else value

    def zero_of_ring(self) -> Any:
        """The zero of the ring."""
        return self.number(0)

    def given(self, value: Any) -> Any:
        """An argument or a literal without floating numbers."""
        return exactly(value, self.number)

    def zeros(self, program: Program, t: Type) -> Any:
        """Exact zeros."""
        return self.given(super().zeros(program, t))

    def evaluated(self, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """The exact value; a change of the floating dtype changes nothing."""
        if e.name == "astype" and np.dtype(params["dtype"]).kind == "f":
            return self.given(args[0])
        return self.given(super().evaluated(e, args, params))


class Fuel:
    """What looks on as definitions are entered, and stops after so many."""

    def __init__(self, left: int) -> None:
        self.left: int = left

    def __call__(self, machine: Machine, name: str, values: list[Any]) -> None:
        """Count a call or a round of a loop."""
        if not self.left:
            raise ProgramError(
                f"the run is out of fuel as {name} is entered; a recursion or a loop through it "
                "may never end: look at the condition that ends it, or give more, --fuel N"
            )
        self.left -= 1


class Interpreter(Engine):
    """The reference engine: it takes every program, and can all that may be asked."""

    name = "interpreter"
    can: frozenset[str] = frozenset(CAPABILITIES)

    def evaluate(self, program: Program, name: str, values: list[Any], ask: Ask) -> Outcome:
        """Walk the program."""
        domain = ask.values or Numbers()
        assert isinstance(domain, Numbers), "the interpreter asks all that Numbers answer"
        entering = ask.entering if ask.fuel is None else (Fuel(ask.fuel), *ask.entering)
        program = program.whole
        machine = Machine(program, domain, ask.meter, entering)
        d, dims = program.defs[name], dims_given(program, name, values)
        args = [domain.given(v) for v in values]
        if ask.meter is not None:
            ask.meter.made(args)
        no_number = "ignore" if ask.ieee else "raise"
        with np.errstate(all="ignore", divide=no_number, invalid=no_number):
            ys = machine.drive(machine.enter(name, list(args)))
        types = [with_dims(t, dims) for t in (*d.results, *d.lresults)]
        made = [dense(program, t, v, domain.zeros) for t, v in zip(types, ys, strict=True)]
        results, k = machine.given_away(tuple(made)), len(d.results)
        counted = None if domain.recorded else (machine.work, machine.written)
        return Outcome(results[:k], results[k:], counted)


def shows(y: Shaped, x: Shaped) -> bool:
    """Whether a result is an array in the memory of an argument."""
    if isinstance(y, np.ndarray) and isinstance(x, np.ndarray):
        return np.may_share_memory(y, x)
    return is_array(x) and is_array(y) and owner(x) is owner(y)


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


def is_mask(part: object) -> bool:
    """Whether a part of an index says of each position whether it is meant."""
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"

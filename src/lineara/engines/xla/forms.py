"""Calls, branches and loops as JAX has them: scan, while_loop and switch.

A call is the definition itself, at its place.  A branch that is known is the only one there is.  A
loop without a length that keeps what its rounds give has room for so many; one that goes round
more often counts on, and the run is done again with more room.
"""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lineara.engines.values import Tagged
from lineara.engines.xla.values import Either, Rows, is_known
from lineara.engines.xla.walk import Walk
from lineara.facts.types import Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Choice, Switch
from lineara.linear_a.calls import Call
from lineara.linear_a.dimensions import with_dims
from lineara.linear_a.loops import Loop, Scan, While
from lineara.linear_a.program import Program

Values = list[Any]
State = tuple[jax.Array, list[jax.Array]]


def applied(m: Walk, e: ir.Application, args: Values) -> Values:
    """The results of a call, a branch or a loop."""
    match e:
        case Call():
            return m.enter(e.functions[0], args)
        case Choice():
            return chosen(m, e, args)
        case Scan(n=None):
            return rows_in_turn(m, e, args)
        case Scan():
            return scan(m, e, args)
        case While():
            return while_(m, e, args)
    raise AssertionError(e.head())


# --- branches -------------------------------------------------------------------------------------


def chosen(m: Walk, e: Choice, args: Values) -> Values:
    """The results of the branch that a value chooses."""
    which, *rest = args
    leads: Sequence[Values] = [[] for _ in e.functions]
    if isinstance(which, Tagged):
        return m.enter(e.functions[which.tag], [which.payload, *rest])
    if isinstance(which, Either):
        index, leads = which.tag, [[payload] for payload in which.payloads]
    elif isinstance(e, Switch):
        within = (which >= 0) & (which < len(e.functions))
        m.doubts(~within)
        index = which * within
    else:
        index = 1 - which.astype(np.int32)
    if is_known(index):
        return m.enter(e.functions[int(index)], rest)

    def branch(name: str, lead: Values) -> Callable[..., Any]:
        def run(state: State) -> Any:
            m.state = state
            return entered(m, name, [*lead, *rest]), m.state

        return run

    branches = [branch(*each) for each in zip(e.functions, leads, strict=True)]
    results, m.state = lax.switch(index, branches, m.state)
    return results


def types_of_results(m: Walk, name: str, values: Values) -> list[Type]:
    """The types of the results of a definition on values, the first of which are its formals'."""
    d, dims = m.program.defs[name], m.program.dims(name)
    at = {v: x for v, x in zip(d.params, values, strict=False) if v in dims}
    return [with_dims(t, at) for t in (*d.results, *d.lresults)]


def entered(m: Walk, name: str, values: Values) -> Values:
    """The results of a definition that is entered as values have it, in JAX's arrays."""
    types, shapes = types_of_results(m, name, values), m.shapes()
    with m.by_values():
        results = m.enter(name, values)
    return [shapes.uniform(t, y) for t, y in zip(types, results, strict=True)]


# --- loops ----------------------------------------------------------------------------------------


def keeps(program: Program, e: ir.Application) -> bool:
    """Whether a loop without a length keeps what its rounds give."""
    if not isinstance(e, While):
        return False
    d = program.defs[e.body]
    return len(d.results) + len(d.lresults) > sum(e.carried())


class Round:
    """A round of a loop: of carries and a row of each stack, the carries and the rows it gives.

    Of both there are first the non-linear ones.
    """

    types: Values
    stacks: Values
    nx: int
    nr: int
    nlc: int
    nc: int
    m: Walk
    e: Loop

    def __init__(self, m: Walk, e: Loop, args: Values) -> None:
        self.m, self.e = m, e
        self.nc, self.nlc = e.carried()
        self.nx, self.nr = len(e.xs), len(m.program.defs[e.body].results)
        k, c = e.invariants, e.invariants + self.nc
        self.ks: list[Any] = args[:k]
        carries, self.stacks = self.split(args[k:], self.nx - k)
        types, self.types = self.split(types_of_results(m, e.body, self.ks), self.nr)
        self.stacked: int = self.nx - c  # how many of the stacks are non-linear
        shapes = m.shapes()
        self.start: list[Any] = [shapes.uniform(t, v) for t, v in zip(types, carries, strict=True)]

    def split(self, values: Sequence[Any], n: int) -> tuple[Values, Values]:
        """Carries and stacks of values of which n are non-linear."""
        xs, lxs = values[:n], values[n:]
        nc, nlc = self.nc, self.nlc
        return [*xs[:nc], *lxs[:nlc]], [*xs[nc:], *lxs[nlc:]]

    def joined(self, carries: Values, rows: Values, n: int) -> Values:
        """Carries and stacks in the order of the loop, where n of the stacks are non-linear."""
        nc = self.nc
        return [*carries[:nc], *rows[:n], *carries[nc:], *rows[n:]]

    def __call__(self, carries: Values, rows: Values) -> tuple[Values, Values]:
        """One round."""
        given = self.joined(carries, rows, self.stacked)
        return self.split(entered(self.m, self.e.body, [*self.ks, *given]), self.nr)

    def results(self, carries: Values, rows: Values) -> Values:
        """The results of the loop."""
        return self.joined(carries, rows, self.nr - self.nc)

    def buffers(self, room: int) -> Values:
        """Room for so many rows."""
        shapes = self.m.shapes()
        return [shapes.zero(t, (room,)) for t in self.types]


def scan(m: Walk, e: Scan, args: Values) -> Values:
    """A loop of a known number of rounds."""
    go_round = Round(m, e, args)

    def body(before: tuple[Any, ...], rows: Values) -> Any:
        carries, m.state = before
        carries, ys = go_round(carries, rows)
        return (carries, m.state), ys

    stacks = jax.tree.map(jnp.asarray, go_round.stacks)
    backward = e.direction == "rev"
    after, ys = lax.scan(body, (go_round.start, m.state), stacks, e.n, reverse=backward)
    carries, m.state = after
    return go_round.results(carries, ys)


def rows_in_turn(m: Walk, e: Scan, args: Values) -> Values:
    """A loop over the rows that another loop has kept."""
    go_round = Round(m, e, args)
    n = go_round.stacks[0].n
    given = [rows for _, rows in go_round.stacks]
    room = jax.tree.leaves(given)[0].shape[0] if jax.tree.leaves(given) else 1

    def body(done: jax.Array, before: tuple[Any, ...]) -> Any:
        carries, kept, m.state = before
        i = done if e.direction == "fwd" else n - 1 - done
        row = jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, i, keepdims=False), given)
        carries, ys = go_round(carries, row)
        return carries, put_row(kept, i, ys), m.state

    start = go_round.start, go_round.buffers(room), m.state
    carries, kept, m.state = lax.fori_loop(0, n, body, start)
    return go_round.results(carries, [Rows(n, rows) for rows in kept])


def while_(m: Walk, e: While, args: Values) -> Values:
    """A loop as long as its condition holds and there is no doubt."""
    go_round = Round(m, e, args)
    room = m.room.get(e)

    def goes_on(carries: Values) -> Any:
        nonlinear = [*go_round.ks, *carries][: len(m.program.defs[e.functions[0]].params)]
        (go,) = entered(m, e.functions[0], nonlinear)
        return go & ~jnp.asarray(m.doubt)

    def body(before: tuple[Any, ...]) -> Any:
        _, done, carries, kept, m.state = before
        carries, ys = go_round(carries, [])
        kept = put_row(kept, done, ys)
        return goes_on(carries), done + 1, carries, kept, m.state

    done = jnp.zeros((), np.int64)
    kept = [] if room is None else go_round.buffers(room)
    start = goes_on(go_round.start), done, go_round.start, kept, m.state
    _, done, carries, kept, m.state = lax.while_loop(lambda v: v[0], body, start)
    if room is None:
        return carries
    m.rounds[e] = jnp.maximum(m.rounds[e], done)
    n = jnp.minimum(done, room)
    return go_round.results(carries, [Rows(n, rows) for rows in kept])


def put_row(kept: Values, i: jax.Array, rows: Values) -> Values:
    """Rows at their place; what there is no room for is not kept."""

    def put(a: jax.Array, row: jax.Array) -> Any:
        last = a.shape[0] - 1
        row = jnp.where(i > last, a[last], row)  # what is beyond would be put there
        return lax.dynamic_update_index_in_dim(a, row, i, 0)

    return jax.tree.map(put, kept, rows)

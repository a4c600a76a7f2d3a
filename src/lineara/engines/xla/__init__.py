"""XLA, by JAX: a definition is one function of JAX, compiled for the CPU, GPU or TPU that it has.

The reverse mode that runs is ours; of JAX this takes the arrays and the compiler.
"""

# pyright: reportMissingImports=false
# JAX is an extra: where it is not installed, the rest of this file is checked.
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from lineara.engines.engine import Ask, Engine, Outcome
from lineara.engines.interpreter import Interpreter
from lineara.engines.primal import one_primal
from lineara.engines.xla.lower import Lowering, OpenSize, loops_that_keep, why_not
from lineara.errors import LinearaError, ProgramError, warn_at_users_line
from lineara.facts.types import type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import is_index, with_dims
from lineara.linear_a.program import Program

OPTIONS = {"xla_cpu_copy_insertion_use_region_analysis": True}
"""Without it XLA copies, in each round of a loop, an array that the round reads and writes."""
ROOM = 64  # rounds that a loop without a length has room for at first


class Compiled(NamedTuple):
    """A definition compiled for some sizes, and the loops whose rounds it counts."""

    call: Any
    function: Any  # not compiled: what is given JAX's tracers is a part of another program
    loops: list[ir.Leaf]
    fixed: tuple[int, ...]  # the places of arguments that are constants


class Xla(Engine):
    """Programs compiled by XLA; the results are arrays of JAX's.

    host     "call": what NumPy or SciPy alone evaluates is called back; "error": it is refused
    flags    where a run is a part of another program, which cannot do it again: what tells whether
             it would have to be is appended here; without it such a run is refused
    """

    callbacks: bool

    name = "jax"

    def __init__(self, host: str = "call", flags: list[jax.Array] | None = None) -> None:
        if host not in ("call", "error"):
            raise LinearaError(f"host is 'call' or 'error', not {host!r}")
        self.callbacks, self.flags = host == "call", flags

    def takes(self, program: Program, name: str) -> str | None:
        """Why XLA cannot evaluate this definition, as far as its text tells; else None."""
        known = program.noted["jax refuses"]
        if name not in known:
            known[name] = why_not(program, name)
        return known[name]

    def of_type(self, value: Any) -> Any:
        """An argument of a call; of one of JAX's arrays, one of NumPy's of its type."""
        if not isinstance(value, jax.Array):
            return value
        t = type_of(value)
        return np.empty(t.shape, t.dtype) if t.shape else t.dtype.type(0)

    def direct(self, program: Program, name: str, weak: Sequence[bool]) -> Any:
        """The compiled definition, on arguments that are not looked at."""
        if not program.noted["jax"]:
            return None
        several = len(program.defs[name].results) != 1

        def call(*values: Any) -> Any:
            with jax.enable_x64(True):
                results = self.ran(program, name, list(values))
            if results is None:
                return NotImplemented
            return tuple(results) if several else results[0]

        return call

    def evaluate(self, program: Program, name: str, values: list[Any], ask: Ask) -> Outcome:
        """The results of a definition; the interpreter's, or its exception, where in doubt."""
        with jax.enable_x64(True):
            results = self.ran(program, name, values)
        if results is None:
            host = jax.tree.map(lambda a: np.asarray(a)[()], list(values))
            outcome = Interpreter().evaluate(program, name, host, ask)
            self.tell(
                program,
                "interpreted",
                f"{name} was run once more by the interpreter, since XLA could not tell whether "
                "it raises an exception, or it prints or warns, which XLA does not; where that is "
                "so in each run, another engine is faster",
            )
            return outcome
        k = len(program.defs[name].results)
        return Outcome(tuple(results[:k]), tuple(results[k:]))

    def tell(self, program: Program, what: str, text: str) -> None:
        """Say once of a program what makes its runs slow."""
        if what not in program.noted["jax told"]:
            program.noted["jax told"][what] = True
            warn_at_users_line(text, UserWarning)

    def ran(self, program: Program, name: str, values: list[Any]) -> list[Any] | None:
        """The results; None where there is doubt.  A loop that needs more room is given it."""
        room = program.noted["jax room"]
        while True:
            compiled = self.compiled(program, name, values)
            try:
                traced = any([isinstance(v, Tracer) for v in values])
                call = compiled.function if traced else compiled.call
                results, doubt, rounds = call(*values)
                if traced and (rounds or doubt is not None):
                    if self.flags is not None:
                        short = [n > room[e] for e, n in zip(compiled.loops, rounds, strict=True)]
                        self.flags += [*short, *[doubt] * (doubt is not None)]
                        return results
                    raise ProgramError(
                        f"{name} may raise an exception, or has a loop whose rounds values decide "
                        "and a derivative needs: such a run may have to be done again, and within "
                        "jax.jit or jax.vmap it cannot; call it outside, or take lineara.to_jax, "
                        "which calls it back"
                    )
            except OpenSize:  # of whole numbers that are arguments, if of any
                whole = [i for i, p in enumerate(program.defs[name].params) if is_index(p)]
                if len(compiled.fixed) == len(whole):
                    raise
                program.noted["jax fixed"][name] = tuple(whole)
                continue
            if doubt is not None and doubt:
                return None
            short = [(e, int(n)) for e, n in zip(compiled.loops, rounds, strict=True)]
            short = [(e, n) for e, n in short if n > room[e]]
            if not short:
                return results
            room.update({e: 1 << (n - 1).bit_length() for e, n in short})

    def compiled(self, program: Program, name: str, values: list[Any]) -> Compiled:
        """The definition compiled for the sizes that the values say."""
        known, room = program.noted["jax"], program.noted["jax room"]
        if (name, self.callbacks) in known:  # for all sizes, without loops whose rounds it counts
            return known[name, self.callbacks]
        d, dims = program.defs[name], program.dims(name)
        fixed = program.noted["jax fixed"].get(name)
        if fixed is None:
            fixed = tuple([i for i, p in enumerate(d.params) if p in dims])
        loops = program.noted["jax loops"].get(name)
        if loops is None:
            loops = program.noted["jax loops"][name] = loops_that_keep(program, name)
            room.update(dict.fromkeys(loops, ROOM))
        key = (name, *[int(values[i]) for i in fixed], *[room[e] for e in loops], self.callbacks)
        if key not in known:
            known[key] = self.made(program, name, {i: int(values[i]) for i in fixed}, loops)
        return known[key]

    def made(
        self, program: Program, name: str, fixed: dict[int, int], loops: list[ir.Leaf]
    ) -> Compiled:
        """The definition as a function of JAX, where some arguments are constants."""
        room = {e: program.noted["jax room"][e] for e in loops}
        d, program = program.defs[name], one_primal(program, name)

        def whole(*given: Any) -> Any:
            m = Lowering(program, room, self.callbacks)
            results = m.enter(name, [fixed.get(i, v) for i, v in enumerate(given)])
            types = [
                with_dims(t, {d.params[i]: n for i, n in fixed.items()})
                for t in (*d.results, *d.lresults)
            ]
            results = [m.shapes().uniform(t, y) for t, y in zip(types, results, strict=True)]
            if m.called_back:
                self.tell(
                    program,
                    "called back",
                    f"{name} has {', '.join(m.called_back)}, which NumPy and SciPy evaluate on the "
                    "host each time that XLA asks; lineara.engine('jax', host='error') refuses "
                    "them",
                )
            doubt = None if m.doubt is np.False_ else jnp.asarray(m.doubt)
            return results, doubt, list(m.rounds.values())

        return Compiled(jax.jit(whole, compiler_options=OPTIONS), whole, loops, tuple(fixed))

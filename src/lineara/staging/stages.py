"""The stages of a derivative: every pass' program as text, with what it costs, and a certificate.

captured      f            the function as it was traced
jvp           f.jvp        the value and the tangent
unzipped      f.jvp.nl     the value and the tape;  f.jvp.lin, the tangent from the tape
transposed    f.jvp.lin.t  the cotangents from the tape
erased        …lin.t.e     the same without linear types, to be differentiated again
simplified    both         without dead code, copies, zeros and what is computed twice
"""

import difflib
import functools
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lineara.engines import Ask, Listing, Outcome, bytes_of, machine_code_listing, ones_of, run
from lineara.errors import StagingError
from lineara.linear_a.check import check
from lineara.linear_a.cost import size
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_program
from lineara.linear_a.syntax import Def
from lineara.passes.derivatives import with_vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.names import JVP, LIN, NL, VJP, E, T
from lineara.passes.policy_table import chosen
from lineara.passes.simplify import simplify
from lineara.passes.transpose import transpose
from lineara.passes.unzip import Policy, store_all, unzip
from lineara.staging.capture import trace_with_lines
from lineara.staging.certificate import Certificate, Works, certificate, certified
from lineara.staging.definitions import done
from lineara.staging.tracing import Staged
from lineara.staging.value_and_map import Halves


@dataclass(frozen=True)
class Stage:
    """One program on the way: what a pass added to it, as text, and the cost of running it."""

    name: str
    text: str
    definitions: tuple[str, ...]
    work: int | None  # of the definitions that are run at this stage; None: it depends on values
    size: int  # of what the pass added
    defs: Mapping[str, Def] = field(default_factory=dict, repr=False, compare=False)

    @property
    def heading(self) -> str:
        """One line: the name, the definitions and the costs."""
        work = "depends on values" if self.work is None else self.work
        return f"{self.name}: {', '.join(self.definitions)}; work {work}, size {self.size}"

    def __str__(self) -> str:
        return f"{self.heading}\n\n{self.text}"


class Stages:
    """Every stage of the derivative of a function.  It prints; in a notebook the stages fold.

    `stages["jvp"]` is a stage, `stages.diff("captured", "jvp")` what changed, `stages.certificate`
    what is proved and counted, and `stages.value_and_grad(*args)` runs what came out.
    `stages.machine_code` has the text of LLVM, `llvm`, and the `assembly` of the value and its
    pullback, each with the program's lines as comments, and the bytes of their `workspace`.
    """

    def __init__(
        self,
        staged: Staged,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        policy: Policy,
        run: bool = False,
    ) -> None:
        self.staged = staged
        self.operands: list[Any] = staged.operands(args, kwargs)
        staged.definition.test(self.operands)
        f = staged.name
        nl, lin, back = f + JVP + NL, f + JVP + LIN, f + JVP + LIN + T
        passes: list[tuple[str, tuple[str, ...], Callable[[Program], Program]]] = [
            ("captured", (f,), lambda p: p),
            ("jvp", (f + JVP,), lambda p: jvp(p, f)),
            ("unzipped", (nl, lin), lambda p: unzip(p, f + JVP, policy)),
            ("transposed", (nl, back), lambda p: transpose(p, lin)),
            ("erased", (nl, back + E), lambda p: erase(p, back)),
            ("simplified", (nl, back + E), lambda p: simplify(p, *p.reached(nl, back + E))),
        ]
        program, programs = staged.program, []
        for _, _, go in passes:
            program = go(program)
            programs.append(program)
        self.program: Program = check(program)
        self.whole: Program = check(with_vjp(programs[-2], f))
        whole = Works(self.whole)
        works, tape_bytes = (_counted if run else _foretold)(f, whole, self.program, self.operands)
        self.stages: list[Stage] = []
        before = Program({}, {})
        for (name, entries, _), program, work in zip(passes, programs, works, strict=True):
            types = {k: t for k, t in program.types.items() if k not in before.types}
            defs = {k: d for k, d in program.defs.items() if before.defs.get(k) is not d}
            text = show_program(types, defs)
            self.stages.append(Stage(name, text, entries, work, size(Program(types, defs)), defs))
            before = program
        plain = policy is store_all  # store_all recomputes nothing in the reverse pass
        proved = (
            certificate(whole, f, self.operands, whole)
            if plain
            else certified(staged.program, f, policy, self.operands)
        )
        value, forward, _, reverse, *_ = works
        self.certificate: Certificate = replace(  # that of the stages that are shown
            proved, value=value, forward=forward, reverse=reverse, tape_bytes=tape_bytes
        )

    def __getitem__(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise StagingError(
            f"stages: there is no stage {name!r}; there is "
            f"{', '.join(stage.name for stage in self.stages)}"
        )

    def diff(self, before: str, after: str) -> str:
        """What changed from one stage to another, as a unified diff of their texts."""
        old, new = (self[name].text.splitlines() for name in (before, after))
        return "\n".join(difflib.unified_diff(old, new, before, after, lineterm="", n=2))

    @functools.cached_property
    def machine_code(self) -> Listing:
        """The value and the cotangents of the arguments, compiled as one."""
        listed = machine_code_listing(self.compiled, self.staged.name + VJP + E)
        if isinstance(listed, str):
            raise StagingError(
                f"stages: there is no machine code: {listed}; the program runs interpreted"
            )
        return listed

    @functools.cached_property
    def compiled(self) -> Program:
        """The program of the value and the cotangents as one, which machine code is made of."""
        vjp = self.staged.name + VJP
        program = erase(self.whole, vjp)
        return simplify(program, *program.reached(vjp + E))

    def value_and_grad(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The value and the gradient, by the last stage; the function has one real result."""
        halves = Halves(self.staged, self.program, args, kwargs)
        halves.real("value_and_grad")
        gradient, named = halves.gradient([1.0])
        g = (gradient, named) if named else gradient[0] if len(gradient) == 1 else gradient
        return halves.value, g

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.stages), str(self.certificate)])

    def _repr_html_(self) -> str:
        """The stages as sections that fold."""
        sections = [
            f"<details><summary>{html.escape(s.heading)}</summary>"
            f"<pre>{html.escape(s.text)}</pre></details>"
            for s in self.stages
        ]
        return f"<div>{''.join(sections)}<pre>{html.escape(str(self.certificate))}</pre></div>"


def stages(
    f: Callable[..., Any],
    *args: Any,
    policy: Policy | str = store_all,
    run: bool = False,
    **kwargs: Any,
) -> Stages:
    """Every stage of the derivative of f at arguments of these types.

    Work and bytes are foretold from the types and from the numbers among the arguments, in a time
    that does not depend on how often loops go round; a branch that depends on values counts as the
    dearer one, and what depends on how often a while loop goes round is None.  With `run` each
    stage is run at these arguments, and counted.

    >>> found = stages(lambda x: x * x, 3.0)
    >>> found.certificate.value, found.certificate.forward, found.certificate.tape_bytes
    (1, 4, 8)
    >>> found.value_and_grad(5.0)
    (25.0, 10.0)
    """
    return Stages(trace_with_lines(f, *args, **kwargs), args, kwargs, chosen(policy, "stages"), run)


Counts = tuple[list[int | None], int | None]  # of each stage, and the bytes of the tape


def _counted(f: str, whole: Works, last: Program, operands: Sequence[Any]) -> Counts:
    """The work of each stage as it is run."""
    program = whole.program
    d = program.defs[f + JVP]
    xs = [ones_of(v.type) for v in d.lxs]
    cs = [ones_of(t) for t in d.lresults]
    value, ahead = counted(program, f, *operands), counted(program, f + JVP, *operands, *xs)
    first = counted(program, f + JVP + NL, *operands)
    tape = first.results[-1]
    halves = [
        counted(program, f + JVP + LIN, tape, *xs),
        counted(program, f + JVP + LIN + T, tape, *cs),
        counted(program, f + JVP + LIN + T + E, tape, *cs),
    ]
    works = [first.work + half.work for half in halves]
    simple = counted(last, f + JVP + NL, *operands)
    back = counted(last, f + JVP + LIN + T + E, simple.results[-1], *cs)
    return [value.work, ahead.work, *works, simple.work + back.work], bytes_of(tape)


def _foretold(f: str, whole: Works, last: Program, operands: Sequence[Any]) -> Counts:
    """The work of each stage as it is known before it is run."""
    nl, lin = f + JVP + NL, f + JVP + LIN
    simple = Works(last)
    works = [whole.of(f, operands), whole.of(f + JVP, operands)]
    for p, name in ((whole, lin), (whole, lin + T), (whole, lin + T + E), (simple, lin + T + E)):
        first, half = p.of(nl, operands), p.static[name]
        if half is None:
            stored = p.rehearsal(nl, operands)
            half = p.of(name, [stored.results[-1]]) if stored else None
        works.append(None if first is None or half is None else first + half)
    return works, whole.bytes(nl, operands)


def counted(program: Program, name: str, *values: Any) -> Outcome:
    """A run whose work is counted; nothing is printed."""
    return run(done(program), name, *values, ask=Ask(work=True))


__all__ = ["Certificate", "Stage", "Stages", "stages"]

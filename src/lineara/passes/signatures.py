"""The signatures that definitions must have to stand where a pass would put its own."""

from collections.abc import Sequence

from lineara.errors import ProgramError
from lineara.facts.types import Type, show
from lineara.linear_a.dimensions import matching, with_dims
from lineara.linear_a.program import Program, tangent_type
from lineara.linear_a.syntax import Def, Names, Var
from lineara.passes.names import JVP, tangent


def defined(program: Program, name: str) -> Def:
    """The definition of that name, or an error."""
    if name not in program.defs:
        raise ProgramError(f"there is no definition {name}")
    return program.defs[name]


def renamed(d: Def, name: str) -> Def:
    """The same definition under another name."""
    return Def(name, d.params, d.results, d.lresults, d.body)


def jvp_signature(program: Program, d: Def) -> Def:
    """The signature of the jvp of a definition, as a definition whose body is a placeholder."""
    if d.lxs or d.lresults:
        raise ProgramError(f"{d.name} has linear formals or results; a rule is for non-linear ones")
    names = Names([v.name for v in d.xs])
    kinds = [(v.name, tangent_type(program, v.type)) for v in d.xs if not program.is_inert(v.type)]
    tangents = [Var(names(tangent(name)), t, True) for name, t in kinds]
    us = tuple([tangent_type(program, t) for t in d.results if not program.is_inert(t)])
    return Def(d.name + JVP, (*d.xs, *tangents), d.results, us, d.body)


def agree(program: Program, what: str, got: Def, want: Def) -> None:
    """Check that two signatures agree up to the names of dimensions; the error shows both."""
    at = matching(got.xs, want.xs)

    def here(types: Sequence[Type]) -> list[Type]:
        return [with_dims(t, at) for t in types]

    pairs = (
        (here([v.type for v in got.xs]), [v.type for v in want.xs]),
        (here([v.type for v in got.lxs]), [v.type for v in want.lxs]),
        (here(got.results), want.results),
        (here(got.lresults), want.lresults),
    )
    if not all(_same(program, s, t) for s, t in pairs):
        raise ProgramError(f"{what} is {_shown(got)}; it must be {_shown(want)}")


def _same(program: Program, s: Sequence[Type], t: Sequence[Type]) -> bool:
    return len(s) == len(t) and all(map(program.same, s, t))


def _shown(d: Def) -> str:
    zones = [
        ", ".join(map(show, types))
        for types in ([v.type for v in d.xs], [v.type for v in d.lxs], d.results, d.lresults)
    ]
    return "({}; {}) -> ({}; {})".format(*zones)

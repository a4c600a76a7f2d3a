"""What applies definitions: so far, the call.

Each form states its type, its evaluation, and one short method a pass; a pass hands itself over,
so that a form can ask for the derivative, the halves or the transpose of a definition it names.
"""

from collections.abc import Sequence
from typing import Any

from lineara.linear_a.syntax import Applied, Leaf, Let, Ret, Var, Vars


class Call(Applied):
    """f(xs ; ~as)."""

    __slots__ = ()

    def head(self) -> str:
        """What stands before the arguments."""
        return self.functions[0]

    def on(self, args: Vars, functions: tuple[str, ...] | None = None) -> "Call":
        """The same on other arguments, and with another definition."""
        return Call(args, functions or self.functions)

    def result(self, judge: Any) -> tuple[tuple, tuple]:
        """TypeApp: the formals and the arguments agree."""
        d = judge.definition(self.functions[0], self)
        judge.fits(self, self.head(), d.params, self.args)
        return d.results, d.lresults

    def run(self, machine: Any, values: list[Any]) -> Any:
        """The results of the body."""
        return machine.enter(self.functions[0], values)

    def jvp(self, j: Any, phi: Any) -> "Call":
        """JApp: the jvp of the definition on the arguments and their tangents."""
        tangents = [t for t in j.operands(phi, self.args) if t is not None]
        return Call((*self.args, *tangents), (j.recur(self.functions[0]),))

    def unzip(self, u: Any) -> tuple[Leaf, Leaf]:
        """UApp and UAppN: the callee's halves, with its tape between them."""
        (f,) = self.functions
        if u.is_nonlinear(f):
            return self, Ret(())
        d = u.program.defs[f]
        nl, lin, tape = u.recur(f)
        rs = tuple([u.fresh("r", t) for t in d.results])
        t = u.fresh("t", tape)
        u.context.append(Let((*rs, t), Call(self.xs, (nl,))))
        return Ret(rs), Call((t, *self.lxs), (lin,))

    def without_tape(self, u: Any, b: Let, dead: list[Var]) -> Any:
        """The primal call, if it is the tape that nobody reads."""
        (nl,) = self.functions
        if b.vars[-1] not in dead or not nl.endswith(".nl"):
            return None
        return b.vars[:-1], Call(self.args, (u.primal(nl.removesuffix(".nl")),))

    def transpose(self, t: Any, cs: Sequence[Var]) -> dict[Var, Var]:
        """TApp."""
        made = [t.fresh(a) for a in self.lxs]
        t.write(made, Call((*self.xs, *cs), (t.recur(self.functions[0]),)))
        return dict(zip(self.lxs, made, strict=True))

    def erase(self, e: Any) -> "Call":
        """The erased callee, on all the arguments."""
        return Call(tuple([e.at(a) for a in self.args]), (e.recur(self.functions[0]),))


FORMS: dict[str, Any] = {}  # the forms that are written word[parameters](xs ; ~as), by word


def call(name: str, *args: Any) -> Call:
    """The call of a definition."""
    return Call(args, (name,))

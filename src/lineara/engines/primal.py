"""A value and its gradient share one primal: the first call of f keeps the tape for f'vjp.

    ys = f(xs); .. gs = f'vjp(xs, cs)    becomes    ys, t = f'nl(xs); .. gs = f'lin't(t, cs)

where f'vjp(xs, cs) is f'nl(xs), which gives f's results and a tape, and then f'lin't of the tape.
That f'nl has f's values is not believed: its leaves are compared with those of f, and so are the
definitions that they apply, since a rule of the user's may state another primal.
"""

from collections.abc import Sequence
from typing import Any

from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.dimensions import dims_in
from lineara.linear_a.program import Program
from lineara.linear_a.same_leaves import frozen, key_of


def one_primal(program: Program, name: str) -> Program:
    """The program in which no definition that `name` reaches calculates a primal twice."""
    values = Values(program)
    before = [program.defs[f] for f in program.reached(name)]
    after = [joined(program, d, values) for d in before]
    return program.with_(*[d for c, d in zip(before, after, strict=True) if c is not d])


def joined(program: Program, d: ir.Def, values: "Values") -> ir.Def:
    """A definition whose calls of a vjp go on from an earlier call of what it is the vjp of."""
    bindings = list(d.body.bindings)
    names: ir.Names | None = None
    for j, b in enumerate(bindings):
        vjp = two_halves(program, b.rhs) if isinstance(b, ir.Let) else None
        if vjp is None:
            continue
        ahead, tape, back = vjp
        for i, a in enumerate(bindings[:j]):
            if not (isinstance(a, ir.Let) and type(a.rhs) is Call and a.rhs.args == ahead.args):
                continue
            (f,), (primal,) = a.rhs.functions, ahead.functions
            only_a_tape_more = len(a.vars) + 1 == len(program.defs[primal].results)
            if only_a_tape_more and not program.acting[f] and values.follow(f, primal):
                names = names or ir.Names([v.name for v in ir.binders(d)])
                a = ir.Let((*a.vars, ir.Var(names("t"), tape.type)), ahead)
            if isinstance(a.rhs, Call) and a.rhs.functions == (primal,):
                at = {tape: a.vars[-1]}
                bindings[i], bindings[j] = (
                    a,
                    ir.Let(b.vars, back.renamed(lambda v, at=at: at.get(v, v))),
                )
                break
    if names is None:
        return d
    body = ir.Block(tuple(bindings), d.body.leaf)
    return ir.Def(d.name, d.params, d.results, d.lresults, body, d.linear)


def two_halves(program: Program, e: ir.Leaf | ir.Block) -> tuple[Call, ir.Var, Call] | None:
    """The call of a vjp as that of the primal, its tape, and the call of the linear half."""
    if type(e) is not Call:
        return None
    d = program.defs[e.functions[0]]
    two = halves(d)
    if two is None:
        return None
    ahead, tape, back = two
    at = dict(zip(d.params, e.args, strict=True))
    if any(dims_in(tape.type)):
        return None
    first = ahead.on(tuple([at[v] for v in ahead.args]))
    return first, tape, back.on(tuple([at.get(v, v) for v in back.args]))


def halves(d: ir.Def) -> tuple[Call, ir.Var, Call] | None:
    """The two calls that a vjp consists of, and the tape between them."""
    match d.body:
        case ir.Block(
            (ir.Let((*_, tape), Call() as ahead), ir.Let(gs, Call() as back), *rest), ir.Ret(out)
        ) if out == gs and all([isinstance(b, ir.Let) and not b.vars for b in rest]):
            used = {*ahead.args, *back.args}
            return (ahead, tape, back) if used == {*d.params, tape} else None
    return None


class Values:
    """Which definitions of a program give, first of all, what others give."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.known: dict[tuple[str, str], bool] = {}

    def follow(self, f: str, g: str) -> bool:
        """Whether g's first results are f's, and whether all that f evaluates g does, too."""
        if f == g:
            return True
        if (f, g) not in self.known:
            self.known[f, g] = True  # what calls itself follows if all else does
            d, more = self.program.defs[f], self.program.defs[g]
            self.known[f, g] = len(d.params) == len(more.params) and self._follow(d, more)
        return self.known[f, g]

    def _follow(self, d: ir.Def, more: ir.Def) -> bool:
        """The same of definitions with as many parameters."""
        every = Evaluated(self, dict(zip(more.params, d.params, strict=True)))
        results = every.block(more.body)
        every.adds = False
        first = every.block(d.body)
        if first is not None and results is not None and first == results[: len(first)]:
            return True
        match more.body:  # what gives another tape beside the results of a definition
            case ir.Block((ir.Let((*ys, _), Call(args, (inner,))), *_), ir.Ret((*out, _))):
                return args == more.params and out == ys and self.follow(d.name, inner)
        return False


class Evaluated:
    """What a definition evaluates; each variable stands for the first one with its value."""

    def __init__(self, values: Values, first: dict[ir.Var, ir.Var]) -> None:
        self.values = values
        self.first = first
        self.adds = True  # later nothing may come that was not there
        self.known: dict[Any, list[tuple[tuple[str, ...], ir.Vars]]] = {}

    def of(self, v: ir.Var) -> ir.Var:
        """The first variable with the value of this one."""
        return self.first.get(v, v)

    def block(self, e: ir.Leaf | ir.Block) -> list[ir.Var] | None:
        """The results, which are values; None if there is anything new."""
        if isinstance(e, ir.Block):
            for b in e.bindings:
                results = self.bound(b)
                if results is None:
                    return None
                self.first.update(zip(b.vars, results, strict=False))
            e = e.leaf
        if isinstance(e, ir.Ret | ir.Copy):
            return [self.of(v) for v in e.args]
        return None  # a body that ends in another leaf: its results have no names

    def bound(self, b: ir.Binding) -> Sequence[ir.Var] | None:
        """The first variables with the values of these."""
        if isinstance(b, ir.Unpack):
            return self.seen((ir.Unpack, self.of(b.arg)), (), b.vars)
        e = b.rhs
        if isinstance(e, ir.Block | ir.Ret | ir.Copy):
            return self.block(e)
        if isinstance(e, ir.Drop):
            return () if self.block(e.body) is not None else None
        if isinstance(e, ir.Application):
            (e, functions) = e.renamed(self.of), e.functions
            return self.seen(
                (e.on(e.args, ("",) * len(functions)).head(), e.args), functions, b.vars
            )
        e = e.renamed(self.of)
        if isinstance(e, ir.Part):
            key: Any = (type(e), e.args, frozen(e.at))
        else:
            key = (type(e), e.args, e.tag) if isinstance(e, ir.Inj | ir.Proj) else key_of(e)
        if key is None:
            return b.vars if self.adds else None
        return self.seen(key, (), b.vars)

    def seen(self, key: Any, functions: tuple[str, ...], made: ir.Vars) -> ir.Vars | None:
        """The variables that have these values already, or these."""
        for others, results in self.known.get(key, ()):
            if len(functions) == len(others):
                pairs = zip(functions, others, strict=True)
                if functions == others or (
                    not self.adds and all([self.values.follow(f, g) for f, g in pairs])
                ):
                    return results
        if not self.adds:
            return None
        self.known.setdefault(key, []).append((functions, made))
        return made


__all__ = ["one_primal"]

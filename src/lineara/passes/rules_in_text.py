"""Derivative rules that the user writes in Linear A: the type checker proves them linear.

    jvp      g : (ts ; ts') -> (ss ; ss')                       becomes f.jvp
    vjp      fwd : (ts ;) -> (ss, k ;), bwd : (k ; ss') -> (; ts')
             f.jvp calls fwd and then bwd.t on the tangents; bwd.t.t is bwd
    linear   l : (xs ; as) -> (; bs) and its transpose, which becomes l.t

A program keeps a rule under the name that the pass would give, so every pass and every order finds
it.  Types do not prove that a rule is right: each is tested on random arguments when it is
installed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.engines import Outcome, run
from lineara.errors import ProgramError, RuleError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.types import ArrayType, Product, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.check import check_def
from lineara.linear_a.dimensions import matching, with_dims
from lineara.linear_a.program import Program
from lineara.passes.names import JVP, T
from lineara.passes.signatures import agree, defined, jvp_signature, renamed
from lineara.passes.transpose import transpose

STEP, CLOSE = 1e-6, 1e-4


def custom_jvp(program: Program, name: str, rule: str, test: bool = True) -> Program:
    """The program in which the definition `rule` is the jvp of `name`.

    Raises ProgramError if the rule has not J's signature for `name`, and RuleError if its value is
    not that of `name` or its tangent not that of finite differences, on random arguments.

    >>> from lineara.linear_a.parse import parse
    >>> f = "def f(x: f64;) -> (f64;) = x * x "
    >>> g = "let y = x * x in let k = x + x in let ~e = k * ~d in (y; ~e)"
    >>> p = parse(f"{f} def rule(x: f64; ~d: f64) -> (f64; f64) = {g}")
    >>> "f.jvp" in custom_jvp(p, "f", "rule").defs
    True
    """
    d, g = defined(program, name), defined(program, rule)
    wanted = jvp_signature(program, d)
    agree(program, f"the jvp rule {rule} of {name}", g, wanted)
    made = ir.Def(name + JVP, g.params, g.results, g.lresults, g.body)
    program = program.with_(made)
    check_def(program, made)
    if test:
        _test_jvp(program, d, made, rule)
    return program


def custom_vjp(program: Program, name: str, fwd: str, bwd: str, test: bool = True) -> Program:
    """The program in which `fwd` and `bwd` are the reverse derivative of `name`.

    `fwd` gives the results of `name` and one more value, which `bwd` takes before the cotangents,
    and after it the formals of `name` that are dimensions.
    """
    d, f, b = (defined(program, n) for n in (name, fwd, bwd))
    wanted = jvp_signature(program, d)
    tangents, ss = wanted.params[len(d.xs) :], wanted.lresults
    if len(f.results) != len(d.results) + 1:
        raise ProgramError(
            f"the vjp rule {fwd} of {name} gives {len(f.results)} values; it must give those of "
            f"{name} ({len(d.results)}) and one more, which {bwd} takes"
        )
    kept = with_dims(f.results[-1], matching(f.xs, d.xs))
    dims = program.dims(name)
    ahead = ir.Def(fwd, d.xs, (*d.results, kept), (), d.body)
    agree(program, f"the vjp rule {fwd} of {name}", f, ahead)
    back = ir.Def(
        bwd, (ir.Var("k", kept), *dims, *[ir.Var(f"c{i}", s, True) for i, s in enumerate(ss)]), (),
        tuple([v.type for v in tangents]), b.body,
    )  # fmt: skip
    agree(program, f"the vjp rule {bwd} of {name}", b, back)
    program = transpose(program, bwd)
    program = program.with_(renamed(b, bwd + T + T))
    names = ir.Names([v.name for v in wanted.params])
    ys = [ir.Var(names("y"), t) for t in d.results]
    t = ir.Var(names("t"), kept)
    dys = [ir.Var(names("dy"), s, True) for s in ss]
    body = ir.Block(
        (
            ir.Let((*ys, t), Call(wanted.xs, (fwd,))),
            ir.Let(tuple(dys), Call((t, *dims, *tangents), (bwd + T,))),
        ),
        ir.Ret((*ys, *dys)),
    )
    made = ir.Def(name + JVP, wanted.params, d.results, ss, body)
    program = program.with_(made)
    check_def(program, made)
    if test:
        _test_jvp(program, d, made, f"{fwd}, {bwd}")
    return program


def custom_linear(program: Program, name: str, back: str, test: bool = True) -> Program:
    """The program in which the definition `back` is the transpose of the linear `name`.

    Raises ProgramError unless their signatures mirror, and RuleError if <name(a), c> is not
    <a, back(c)> on random arguments.
    """
    d, b = defined(program, name), defined(program, back)
    cs = [ir.Var(f"c{i}", t, True) for i, t in enumerate(d.lresults)]
    types = tuple([a.type for a in d.lxs])
    mirrored = ir.Def(back, (*d.xs, *cs), (), types, d.body)
    agree(program, f"the transpose {back} of {name}", b, mirrored)
    if d.results:
        raise ProgramError(f"{name} has non-linear results; only linear ones have a transpose")
    program = program.with_(renamed(b, name + T), renamed(d, name + T + T))
    if test:
        check_transpose(program, d, name + T, back)
    return program


# --- tests at random arguments ------------------------------------------------------------------


def _test_jvp(program: Program, d: ir.Def, made: ir.Def, rule: str) -> None:
    """The values are those of the definition, and the tangents those of central differences."""
    rng = np.random.default_rng(0)
    xs, dxs = arguments(program, made, rng)
    got, value = run(program, made.name, *xs, *dxs), run(program, d.name, *xs)
    if not close(got.results, value.results, 1e-9):
        raise RuleError(
            f"the rule {rule} gives the value {_plain(got.results)} for {d.name}, which is "
            f"{_plain(value.results)} at {_plain(xs)}; a rule keeps the value"
        )
    moving = iter(dxs)
    directions = [None if program.is_inert(v.type) else next(moving) for v in d.xs]
    ends: list[Outcome] = []
    for h in (STEP, -STEP):
        moved = [x if e is None else _moved(x, e, h) for x, e in zip(xs, directions, strict=True)]
        ends.append(run(program, d.name, *moved))
    pairs = zip(d.results, ends[0].results, ends[1].results, strict=True)
    slopes = [_slope(a, b) for t, a, b in pairs if not program.is_inert(t)]
    if not close(got.lresults, slopes, CLOSE):
        raise RuleError(
            f"the rule {rule} gives the tangent {_plain(got.lresults)} for {d.name}, where "
            f"differences give {_plain(slopes)}, at {_plain(xs)} along {_plain(dxs)}"
        )


def check_transpose(program: Program, d: ir.Def, name: str, back: str) -> None:
    """<l(a), c> = <a, back(c)>."""
    rng = np.random.default_rng(0)
    xs, a = arguments(program, d, rng)
    _, c = arguments(program, program.defs[name], rng)
    left = _dot(run(program, d.name, *xs, *a).lresults, c)
    right = _dot(a, run(program, name, *xs, *c).lresults)
    if not close([left], [right], 1e-9):
        raise RuleError(
            f"{back} is not the transpose of {d.name}: <{d.name}(a), c> is {left:.9g} and "
            f"<a, {back}(c)> is {right:.9g}"
        )


def arguments(
    program: Program, d: ir.Def, rng: object, xs: Sequence[Any] | None = None
) -> tuple[list[Any], list[Any]]:
    """Random non-linear and linear arguments, where dimensions are 3, 4, …; or as those in xs."""
    dims = {v: 3 + i for i, v in enumerate(program.dims(d.name))}
    if xs is not None:
        dims = {v: int(x) for v, x in zip(d.xs, xs, strict=True) if v in dims}
    zones = []
    for zone in (d.xs, d.lxs):
        types = [with_dims(v.type, dims) for v in zone]
        pairs = zip(zone, types, strict=True)
        zones.append([dims[v] if v in dims else sample(program, t, rng) for v, t in pairs])
    return zones[0], zones[1]


def sample(program: Program, t: Type, rng: Any) -> Any:
    """A random value of a type: floating numbers between 0.5 and 1.5, small whole ones."""
    t = program.unfold(t)
    if isinstance(t, Product):
        return tuple([sample(program, item, rng) for item in t.items])
    if not isinstance(t, ArrayType):
        raise ProgramError(f"a rule for {show(t)} cannot be tested; install it with test=False")
    if t.dtype.kind in "biu":
        return rng.integers(0, 2, t.shape).astype(t.dtype)[()]
    numbers = rng.uniform(0.5, 1.5, t.shape)
    if t.dtype.kind == "c":
        numbers = numbers + 1j * rng.uniform(0.5, 1.5, t.shape)
    return np.asarray(numbers).astype(t.dtype)[()]


def _moved(x: Value, e: Shaped, h: float) -> Any:
    if isinstance(x, tuple):
        return tuple([_moved(a, b, h) for a, b in zip(x, e, strict=True)])
    return x + h * e if np.asarray(x).dtype.kind in "fc" else x


def _slope(a: Value, b: Shaped) -> Any:
    if isinstance(a, tuple):
        return tuple([_slope(s, t) for s, t in zip(a, b, strict=True)])
    return (a - b) / (2 * STEP) if np.asarray(a).dtype.kind in "fc" else ()


def flat(value: Tree) -> np.ndarray:
    """The numbers in values, one after another."""
    if isinstance(value, tuple | list):
        parts = [flat(v) for v in value]
        return np.concatenate(parts) if parts else np.zeros(0)
    return np.asarray(value).ravel()


def _dot(u: list[Any] | tuple[Any, ...], v: list[Any] | tuple[Any, ...]) -> float:
    return float(np.real(np.vdot(flat(u), flat(v))))


def close(u: list[Any] | tuple[Any, ...], v: list[Any] | tuple[Any, ...], rtol: float) -> bool:
    """Whether all numbers agree, relatively or absolutely."""
    a, b = flat(u), flat(v)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True))


def _plain(values: object) -> str:
    return ", ".join(f"{v:.6g}" for v in flat(values))

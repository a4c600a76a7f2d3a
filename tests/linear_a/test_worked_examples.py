"""The four worked examples of the specification, stage by stage: texts, numbers and works.

Texts are compared up to the names of variables; in each stage all definitions are listed that the
passes make for the last definition of the source.
"""

from typing import Any, NamedTuple

import pytest
from call_counts import calls

from lineara.engines import run
from lineara.linear_a.check import check
from lineara.linear_a.cost import size
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_def
from lineara.linear_a.syntax import Block, Def, Drop, Let, Ret, Unpack, Var
from lineara.passes.derivatives import grad, vjp
from lineara.passes.jvp import jvp
from lineara.passes.transpose import transpose
from lineara.passes.unzip import unzip


class Example(NamedTuple):
    """Texts by stage, and what comes out at a point; W_x is the work of x."""

    name: str
    texts: dict[str, str]
    at: tuple[float, ...]
    f: float
    W_f: int
    jvp: float
    W_jvp: int
    tape: tuple[Any, ...]
    W_nl: int
    W_lin: int
    W_t: int
    grad: tuple[float, ...]
    W_grad: int


EXAMPLES = [
    Example(
        "primitive chain",
        {
            "source": """
def f(x: f64, y: f64;) -> (f64;) =
  let a: f64 = sin(x) in
  a * y
""",
            "jvp": """
def f.jvp(x: f64, y: f64; ~dx: f64, ~dy: f64) -> (f64; f64) =
  let a: f64 = sin(x) in
  let k: f64 = cos(x) in
  let ~da: f64 = k * ~dx in
  let y2: f64 = a * y in
  let ~dp: f64 = y * ~da in
  let ~dp2: f64 = a * ~dy in
  let ~dy2: f64 = ~dp + ~dp2 in
  (y2; ~dy2)
""",
            "unzip": """
type f.jvp.tape = <f64, f64, f64>
def f.jvp.nl(x: f64, y: f64;) -> (f64, f.jvp.tape;) =
  let a: f64 = sin(x) in
  let k: f64 = cos(x) in
  let y2: f64 = a * y in
  let t: f.jvp.tape = <y, a, k> in
  (y2, t;)

def f.jvp.lin(t2: f.jvp.tape; ~dx: f64, ~dy: f64) -> (; f64) =
  let <y: f64, a: f64, k: f64> = t2 in
  let ~da: f64 = k * ~dx in
  let ~dp: f64 = y * ~da in
  let ~dp2: f64 = a * ~dy in
  ~dp + ~dp2
""",
            "transpose": """
def f.jvp.lin.t(t2: f.jvp.tape; ~ct: f64) -> (; f64, f64) =
  let <y: f64, a: f64, k: f64> = t2 in
  let (; ~cp: f64, ~cp2: f64) = dup(~ct) in
  let ~cy: f64 = a * ~cp2 in
  let ~ca: f64 = y * ~cp in
  let ~cx: f64 = k * ~ca in
  (; ~cx, ~cy)
""",
            "erase": """
def f.jvp.lin.t.e(t2: f.jvp.tape, ct: f64;) -> (f64, f64;) =
  let <y: f64, a: f64, k: f64> = t2 in
  let cy: f64 = a * ct in
  let ca: f64 = y * ct in
  let cx: f64 = k * ca in
  (cx, cy;)
""",
            "glue": """
def f.vjp(x: f64, y: f64; ~ct: f64) -> (f64; f64, f64) =
  let (y2: f64, t: f.jvp.tape;) = f.jvp.nl(x, y;) in
  let (; ~g: f64, ~g2: f64) = f.jvp.lin.t(t; ~ct) in
  (y2; ~g, ~g2)

def f.grad(x: f64, y: f64;) -> (f64, f64;) =
  let (y2: f64, t: f.jvp.tape;) = f.jvp.nl(x, y;) in
  let (;) = drop(y2) in
  let one: f64 = 1.0 in
  f.jvp.lin.t.e(t, one;)
""",
        },
        at=(0.5, 2.0),
        f=0.958851077208406,
        W_f=2,
        jvp=2.2345906623849485,
        W_jvp=7,
        tape=(2.0, 0.479425538604203, 0.8775825618903728),
        W_nl=3,
        W_lin=4,
        W_t=3,
        grad=(1.7551651237807455, 0.479425538604203),
        W_grad=7,
    ),
    Example(
        "function call",
        {
            "source": """
def g(x: f64;) -> (f64;) =
  exp(x)

def f(x: f64;) -> (f64;) =
  let a: f64 = g(x;) in
  g(a;)
""",
            "jvp": """
def g.jvp(x: f64; ~dx: f64) -> (f64; f64) =
  let y: f64 = exp(x) in
  let ~dp: f64 = y * ~dx in
  (y; ~dp)

def f.jvp(x: f64; ~dx: f64) -> (f64; f64) =
  let (a: f64; ~da: f64) = g.jvp(x; ~dx) in
  g.jvp(a; ~da)
""",
            "unzip": """
type g.jvp.tape = <f64>
type f.jvp.tape = <g.jvp.tape, g.jvp.tape>
def g.jvp.nl(x: f64;) -> (f64, g.jvp.tape;) =
  let y: f64 = exp(x) in
  let t: g.jvp.tape = <y> in
  (y, t;)

def g.jvp.lin(t2: g.jvp.tape; ~dx: f64) -> (; f64) =
  let <y: f64> = t2 in
  y * ~dx

def f.jvp.nl(x: f64;) -> (f64, f.jvp.tape;) =
  let (r: f64, t: g.jvp.tape;) = g.jvp.nl(x;) in
  let a: f64 = (r;) in
  let (r2: f64, t2: g.jvp.tape;) = g.jvp.nl(a;) in
  let t3: f.jvp.tape = <t, t2> in
  (r2, t3;)

def f.jvp.lin(t4: f.jvp.tape; ~dx: f64) -> (; f64) =
  let <t: g.jvp.tape, t2: g.jvp.tape> = t4 in
  let ~da: f64 = g.jvp.lin(t; ~dx) in
  g.jvp.lin(t2; ~da)
""",
            "transpose": """
def g.jvp.lin.t(t2: g.jvp.tape; ~ct: f64) -> (; f64) =
  let <y: f64> = t2 in
  y * ~ct

def f.jvp.lin.t(t4: f.jvp.tape; ~ct: f64) -> (; f64) =
  let <t: g.jvp.tape, t2: g.jvp.tape> = t4 in
  let ~ca: f64 = g.jvp.lin.t(t2; ~ct) in
  g.jvp.lin.t(t; ~ca)
""",
            "erase": """
def g.jvp.lin.t.e(t2: g.jvp.tape, ct: f64;) -> (f64;) =
  let <y: f64> = t2 in
  y * ct

def f.jvp.lin.t.e(t4: f.jvp.tape, ct: f64;) -> (f64;) =
  let <t: g.jvp.tape, t2: g.jvp.tape> = t4 in
  let ca: f64 = g.jvp.lin.t.e(t2, ct;) in
  g.jvp.lin.t.e(t, ca;)
""",
            "glue": """
def f.vjp(x: f64; ~ct: f64) -> (f64; f64) =
  let (y: f64, t4: f.jvp.tape;) = f.jvp.nl(x;) in
  let ~g: f64 = f.jvp.lin.t(t4; ~ct) in
  (y; ~g)

def f.grad(x: f64;) -> (f64;) =
  let (y: f64, t4: f.jvp.tape;) = f.jvp.nl(x;) in
  let (;) = drop(y) in
  let one: f64 = 1.0 in
  f.jvp.lin.t.e(t4, one;)
""",
        },
        at=(0.5,),
        f=5.2003257647899614,
        W_f=2,
        jvp=8.573887702979121,
        W_jvp=4,
        tape=((1.6487212707001282,), (5.2003257647899614,)),
        W_nl=2,
        W_lin=2,
        W_t=2,
        grad=(8.573887702979121,),
        W_grad=5,
    ),
    Example(
        "tuple",
        {
            "source": """
def f(x: f64;) -> (f64;) =
  let p: <f64, f64> = <x, x> in
  let <u: f64, v: f64> = p in
  u * v
""",
            "jvp": """
def f.jvp(x: f64; ~dx: f64) -> (f64; f64) =
  let p: <f64, f64> = <x, x> in
  let (; ~dx2: f64, ~dx3: f64) = dup(~dx) in
  let ~dp: <f64, f64> = ~<~dx2, ~dx3> in
  let <u: f64, v: f64> = p in
  let ~<~du: f64, ~dv: f64> = ~dp in
  let y: f64 = u * v in
  let ~dp2: f64 = v * ~du in
  let ~dp3: f64 = u * ~dv in
  let ~dy: f64 = ~dp2 + ~dp3 in
  (y; ~dy)
""",
            "unzip": """
type f.jvp.tape = <f64, f64>
def f.jvp.nl(x: f64;) -> (f64, f.jvp.tape;) =
  let p: <f64, f64> = <x, x> in
  let <u: f64, v: f64> = p in
  let y: f64 = u * v in
  let t: f.jvp.tape = <u, v> in
  (y, t;)

def f.jvp.lin(t2: f.jvp.tape; ~dx: f64) -> (; f64) =
  let <u: f64, v: f64> = t2 in
  let (; ~dx2: f64, ~dx3: f64) = dup(~dx) in
  let ~dp: <f64, f64> = ~<~dx2, ~dx3> in
  let ~<~du: f64, ~dv: f64> = ~dp in
  let ~dp2: f64 = v * ~du in
  let ~dp3: f64 = u * ~dv in
  ~dp2 + ~dp3
""",
            "transpose": """
def f.jvp.lin.t(t2: f.jvp.tape; ~ct: f64) -> (; f64) =
  let <u: f64, v: f64> = t2 in
  let (; ~cp2: f64, ~cp3: f64) = dup(~ct) in
  let ~cv: f64 = u * ~cp3 in
  let ~cu: f64 = v * ~cp2 in
  let ~cp: <f64, f64> = ~<~cu, ~cv> in
  let ~<~cx2: f64, ~cx3: f64> = ~cp in
  ~cx2 + ~cx3
""",
            "erase": """
def f.jvp.lin.t.e(t2: f.jvp.tape, ct: f64;) -> (f64;) =
  let <u: f64, v: f64> = t2 in
  let cv: f64 = u * ct in
  let cu: f64 = v * ct in
  let cp: <f64, f64> = <cu, cv> in
  let <cx2: f64, cx3: f64> = cp in
  cx2 + cx3
""",
            "glue": """
def f.vjp(x: f64; ~ct: f64) -> (f64; f64) =
  let (y: f64, t: f.jvp.tape;) = f.jvp.nl(x;) in
  let ~g: f64 = f.jvp.lin.t(t; ~ct) in
  (y; ~g)

def f.grad(x: f64;) -> (f64;) =
  let (y: f64, t: f.jvp.tape;) = f.jvp.nl(x;) in
  let (;) = drop(y) in
  let one: f64 = 1.0 in
  f.jvp.lin.t.e(t, one;)
""",
        },
        at=(3.0,),
        f=9.0,
        W_f=1,
        jvp=6.0,
        W_jvp=4,
        tape=(3.0, 3.0),
        W_nl=1,
        W_lin=3,
        W_t=3,
        grad=(6.0,),
        W_grad=5,
    ),
    Example(
        "fan-out and drop",
        {
            "source": """
def f(x: f64, y: f64;) -> (f64;) =
  let (;) = drop(y) in
  let a: f64 = cos(x) in
  let b: f64 = a * a in
  b + x
""",
            "jvp": """
def f.jvp(x: f64, y: f64; ~dx: f64, ~dy: f64) -> (f64; f64) =
  let (;) = drop((y; ~dy)) in
  let (; ~dx2: f64, ~dx3: f64) = dup(~dx) in
  let a: f64 = cos(x) in
  let k: f64 = sin(x) in
  let k2: f64 = neg(k) in
  let ~da: f64 = k2 * ~dx2 in
  let b: f64 = a * a in
  let (; ~da2: f64, ~da3: f64) = dup(~da) in
  let ~dp: f64 = a * ~da2 in
  let ~dp2: f64 = a * ~da3 in
  let ~db: f64 = ~dp + ~dp2 in
  let y2: f64 = b + x in
  let ~dy2: f64 = ~db + ~dx3 in
  (y2; ~dy2)
""",
            "unzip": """
type f.jvp.tape = <f64, f64>
def f.jvp.nl(x: f64, y: f64;) -> (f64, f.jvp.tape;) =
  let (;) = drop((y;)) in
  let a: f64 = cos(x) in
  let k: f64 = sin(x) in
  let k2: f64 = neg(k) in
  let b: f64 = a * a in
  let y2: f64 = b + x in
  let t: f.jvp.tape = <a, k2> in
  (y2, t;)

def f.jvp.lin(t2: f.jvp.tape; ~dx: f64, ~dy: f64) -> (; f64) =
  let <a: f64, k2: f64> = t2 in
  let (;) = drop((; ~dy)) in
  let (; ~dx2: f64, ~dx3: f64) = dup(~dx) in
  let ~da: f64 = k2 * ~dx2 in
  let (; ~da2: f64, ~da3: f64) = dup(~da) in
  let ~dp: f64 = a * ~da2 in
  let ~dp2: f64 = a * ~da3 in
  let ~db: f64 = ~dp + ~dp2 in
  ~db + ~dx3
""",
            "transpose": """
def f.jvp.lin.t(t2: f.jvp.tape; ~ct: f64) -> (; f64, f64) =
  let <a: f64, k2: f64> = t2 in
  let (; ~cb: f64, ~cx3: f64) = dup(~ct) in
  let (; ~cp: f64, ~cp2: f64) = dup(~cb) in
  let ~ca3: f64 = a * ~cp2 in
  let ~ca2: f64 = a * ~cp in
  let ~ca: f64 = ~ca2 + ~ca3 in
  let ~cx2: f64 = k2 * ~ca in
  let ~cx: f64 = ~cx2 + ~cx3 in
  let ~cy: f64 = zero[f64] in
  (; ~cx, ~cy)
""",
            "erase": """
def f.jvp.lin.t.e(t2: f.jvp.tape, ct: f64;) -> (f64, f64;) =
  let <a: f64, k2: f64> = t2 in
  let ca3: f64 = a * ct in
  let ca2: f64 = a * ct in
  let ca: f64 = ca2 + ca3 in
  let cx2: f64 = k2 * ca in
  let cx: f64 = cx2 + ct in
  let cy: f64 = 0.0 in
  (cx, cy;)
""",
            "glue": """
def f.vjp(x: f64, y: f64; ~ct: f64) -> (f64; f64, f64) =
  let (y2: f64, t: f.jvp.tape;) = f.jvp.nl(x, y;) in
  let (; ~g: f64, ~g2: f64) = f.jvp.lin.t(t; ~ct) in
  (y2; ~g, ~g2)

def f.grad(x: f64, y: f64;) -> (f64, f64;) =
  let (y2: f64, t: f.jvp.tape;) = f.jvp.nl(x, y;) in
  let (;) = drop(y2) in
  let one: f64 = 1.0 in
  f.jvp.lin.t.e(t, one;)
""",
        },
        at=(0.5, 2.0),
        f=1.2701511529340699,
        W_f=4,
        jvp=0.1585290151921035,
        W_jvp=12,
        tape=(0.8775825618903728, -0.479425538604203),
        W_nl=6,
        W_lin=6,
        W_t=5,
        grad=(0.1585290151921035, 0.0),
        W_grad=12,
    ),
]
AGAIN = """
type f.jvp.tape = <f64>
def f.jvp.nl(x: f64, y: f64;) -> (f64, f.jvp.tape;) =
  let (;) = drop((y;)) in
  let a: f64 = cos(x) in
  let b: f64 = a * a in
  let y2: f64 = b + x in
  let t: f.jvp.tape = <x> in
  (y2, t;)

def f.jvp.lin(t2: f.jvp.tape; ~dx: f64, ~dy: f64) -> (; f64) =
  let <x: f64> = t2 in
  let a: f64 = cos(x) in
  let k: f64 = sin(x) in
  let k2: f64 = neg(k) in
  let (;) = drop((; ~dy)) in
  let (; ~dx2: f64, ~dx3: f64) = dup(~dx) in
  let ~da: f64 = k2 * ~dx2 in
  let (; ~da2: f64, ~da3: f64) = dup(~da) in
  let ~dp: f64 = a * ~da2 in
  let ~dp2: f64 = a * ~da3 in
  let ~db: f64 = ~dp + ~dp2 in
  ~db + ~dx3

def f.jvp.lin.t(t2: f.jvp.tape; ~ct: f64) -> (; f64, f64) =
  let <x: f64> = t2 in
  let a: f64 = cos(x) in
  let k: f64 = sin(x) in
  let k2: f64 = neg(k) in
  let (; ~cb: f64, ~cx3: f64) = dup(~ct) in
  let (; ~cp: f64, ~cp2: f64) = dup(~cb) in
  let ~ca3: f64 = a * ~cp2 in
  let ~ca2: f64 = a * ~cp in
  let ~ca: f64 = ~ca2 + ~ca3 in
  let ~cx2: f64 = k2 * ~ca in
  let ~cx: f64 = ~cx2 + ~cx3 in
  let ~cy: f64 = zero[f64] in
  (; ~cx, ~cy)
"""


def derived(program: Program) -> Program:
    """Every stage of the derivatives of f."""
    return grad(vjp(program, "f"), "f")


def renamed(d: Def) -> str:
    """The text of a definition whose variables are named in the order in which they are bound."""
    at = {p: Var(f"v{i}", p.type, p.linear) for i, p in enumerate(d.params)}

    def bind(binders: tuple[Var, ...]) -> tuple[Var, ...]:
        for v in binders:
            at[v] = Var(f"v{len(at)}", v.type, v.linear)
        return tuple([at[v] for v in binders])

    def walk(e: Any) -> Any:
        if isinstance(e, Drop):
            return Drop((), walk(e.body))
        if not isinstance(e, Block):
            return e.renamed(at.__getitem__)
        made = []
        for b in e.bindings:
            if isinstance(b, Unpack):
                arg = at[b.arg]
                made.append(Unpack(bind(b.vars), arg))
            else:
                rhs = walk(b.rhs)
                made.append(Let(bind(b.vars), rhs))
        return Block(tuple(made), walk(e.leaf))

    return show_def(Def(d.name, tuple(at.values()), d.results, d.lresults, walk(d.body)))


def same_texts(expected: Program, found: Program) -> None:
    """The same definitions, up to the names of variables, and the same types."""
    assert set(found.defs) == set(expected.defs)
    assert dict(found.types) == dict(expected.types)
    for name, d in expected.defs.items():
        assert renamed(found.defs[name]) == renamed(d)


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.name for e in EXAMPLES])
def test_every_stage_has_the_text_of_the_specification(example):
    expected = check(parse("\n".join(example.texts.values())))
    source = check(parse(example.texts["source"]))
    same_texts(expected, check(derived(source)))


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.name for e in EXAMPLES])
def test_every_stage_has_the_numbers_and_the_work_of_the_specification(example):
    program = derived(parse(example.texts["source"]))
    ones = (1.0,) * len(example.at)
    value = run(program, "f", *example.at)
    assert (value.results, value.work) == ((example.f,), example.W_f)
    forward = run(program, "f.jvp", *example.at, *ones)
    assert (forward.lresults, forward.work) == ((example.jvp,), example.W_jvp)
    nl = run(program, "f.jvp.nl", *example.at)
    assert (nl.results, nl.work) == ((example.f, example.tape), example.W_nl)
    lin = run(program, "f.jvp.lin", example.tape, *ones)
    assert (lin.lresults, lin.work) == ((example.jvp,), example.W_lin)
    back = run(program, "f.jvp.lin.t", example.tape, 1.0)
    assert (back.lresults, back.work) == (example.grad, example.W_t)
    gradient = run(program, "f.grad", *example.at)
    assert (gradient.results, gradient.work) == (example.grad, example.W_grad)


def test_the_fourth_example_computes_every_primitive_again_under_another_policy():
    example = EXAMPLES[3]
    text = example.texts["source"] + example.texts["jvp"]
    expected = check(parse(text + AGAIN))
    found = unzip(check(parse(text)), "f.jvp", lambda cut: primitives(cut.context))
    same_texts(expected, check(transpose(found, "f.jvp.lin")))
    nl = run(found, "f.jvp.nl", *example.at)
    assert (nl.results[1], nl.work) == ((0.5,), 4)
    assert run(found, "f.jvp.lin", nl.results[1], 1.0, 1.0).work == 9
    back = run(transpose(found, "f.jvp.lin"), "f.jvp.lin.t", nl.results[1], 1.0)
    assert (back.lresults, back.work) == ((0.1585290151921035, 0.0), 8)


def primitives(context: Any) -> set:
    """The bindings that apply a primitive."""
    return {b for b in context if isinstance(b, Let) and type(b.rhs).__name__ == "Prim"}


def chain(n: int) -> Program:
    """f1 to fn: f1 is the sine, and each other calls the one before twice."""
    defs = ["def f1(x: f64;) -> (f64;) = sin(x)"]
    for i in range(2, n + 1):
        defs.append(f"def f{i}(x: f64;) -> (f64;) = let y = f{i - 1}(x;) in f{i - 1}(y;)")
    return parse("\n".join(defs))


def unnamed(program: Program, t: Any) -> int:
    """The size of a type with all its names unfolded."""
    t = program.unfold(t)
    items = getattr(t, "items", None)
    return 1 if items is None else 1 + sum(unnamed(program, s) for s in items)


def test_tapes_that_are_named_keep_a_chain_of_calls_small():
    sizes = {}
    for n in (2, 4, 8, 12, 13):
        halves = unzip(jvp(chain(n), f"f{n}"), f"f{n}.jvp")
        made = {f: d for f, d in halves.defs.items() if f.endswith((".nl", ".lin"))}
        sizes[n] = size(Program(halves.types, made))
        assert unnamed(halves, halves.types[f"f{n}.jvp.tape"]) == 3 * 2 ** (n - 1) - 1
    assert all(size <= 64 * n + 41 for n, size in sizes.items())
    steps = {(sizes[b] - sizes[a]) / (b - a) for a, b in ((2, 4), (4, 8), (8, 12), (12, 13))}
    assert len(steps) == 1, "the size grows linearly"
    whole = vjp(chain(13), "f13")
    assert run(whole, "f13.vjp", 0.5, 1.0).work == 3 * 2**12


def straight(n):
    """A straight line of 2 n operations."""
    steps = [f"let x{i + 1} = x{i} * y in let y{i} = sin(x{i + 1}) in" for i in range(n)]
    return parse(f"def f(x0: f64, y: f64;) -> (f64;) = {' '.join(steps)} x{n} + y{n - 1}")


def test_the_derivative_of_a_straight_line_is_a_straight_line_and_grows_with_it():
    work, lines = {}, {}
    for n in (40, 80):
        program = straight(n)
        work[n] = calls(lambda: vjp(program, "f"))  # noqa: B023, called in this round
        made = vjp(program, "f")
        for name in ("f.jvp", "f.jvp.nl", "f.jvp.lin"):
            every = [b.rhs for b in made.defs[name].body.bindings if isinstance(b, Let)]
            assert not [e for e in every if isinstance(e, Block | Ret)], name
        lines[n] = sum([len(d.body.bindings) for d in made.defs.values()])
    assert lines[80] <= 2 * lines[40]
    assert work[80] <= 2 * work[40]

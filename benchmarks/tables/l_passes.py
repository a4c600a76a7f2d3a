"""(l) The passes of Linear A on one definition of n bindings: time and memory for each binding."""

from ..table import Call, Growth, Row, Table

NOTE = (
    "The goal is 40 µs a binding and pass on average: 160 µs for the four passes together. The "
    "passes write three to six bindings for each of the primal, and none is recursive along them."
)


def inputs(n: int) -> tuple:
    """A program f with n bindings: products, sums and functions of the two latest values."""
    import numpy as np

    from lineara import ops as _ops  # noqa: F401  the primitives declare themselves
    from lineara.facts.registry import op
    from lineara.facts.types import ArrayType
    from lineara.linear_a.program import Program
    from lineara.linear_a.syntax import Block, Def, Let, Prim, Ret, Var

    number = ArrayType((), np.dtype(float))
    values = [Var(f"v{i}", number) for i in range(n + 2)]
    names = ("multiply", "sin", "add", "cos")
    bindings = []
    for i in range(n):
        name = names[i % 4]
        args = (values[i + 1], values[i])[: 2 if i % 2 == 0 else 1]
        bindings.append(Let((values[i + 2],), Prim(args, op(name))))
    body = Block(tuple(bindings), Ret((values[n], values[n + 1])))
    made = Def("f", tuple(values[:2]), (number, number), (), body)
    return (Program({}, {"f": made}),)


def jvp(program) -> Call:
    from lineara.passes.jvp import jvp

    return lambda: jvp(program, "f")


def unzip(program) -> Call:
    from lineara.passes.unzip import unzip

    derived = jvp(program)()
    return lambda: unzip(derived, "f.jvp")


def transpose(program) -> Call:
    from lineara.passes.transpose import transpose

    halves = unzip(program)()
    return lambda: transpose(halves, "f.jvp.lin")


def simplify(program) -> Call:
    from lineara.passes.simplify import simplify

    whole = transpose(program)()
    return lambda: simplify(whole, "f.jvp.lin.t")


def all_four(program) -> Call:
    from lineara.passes.jvp import jvp
    from lineara.passes.simplify import simplify
    from lineara.passes.transpose import transpose
    from lineara.passes.unzip import unzip

    def call():
        found = transpose(unzip(jvp(program, "f"), "f.jvp"), "f.jvp.lin")
        return simplify(found, "f.jvp.lin.t")

    return call


def check(program) -> Call:
    from lineara.linear_a.check import check

    whole = transpose(program)()
    return lambda: check(whole)


def parse(program) -> Call:
    from lineara.linear_a.parse import parse

    text = str(program)
    return lambda: parse(text)


OURS = {
    "lineara jvp, no derivative": jvp,
    "lineara unzip, no derivative": unzip,
    "lineara transpose, no derivative": transpose,
    "lineara simplify, no derivative": simplify,
    "lineara the four, no derivative": all_four,
    "lineara check all, no derivative": check,
    "lineara parse, no derivative": parse,
}

TABLES = (
    Table(
        key="l",
        title="the passes of Linear A",
        inputs=inputs,
        small={"n": 12},
        ours=OURS,
        peers={},
        judged=tuple(OURS),
        unit="binding",
        per="n",
        rows=(
            Row({"n": 1_000}, memory=True),
            Row({"n": 10_000}, memory=True),
            Row({"n": 100_000}, quick=False),  # to trace its memory takes minutes
        ),
        growth=(Growth("n", 0.2, judged=tuple(OURS)),),
        note=NOTE,
    ),
)

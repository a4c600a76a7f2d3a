"""Every operation in every dtype: value, both derivatives and second ones, by machine code.

A line of the table of primitives is one program: what it gives, its jvp, its vjp, the jvp of that
and the vjp of that.  Exact, machine code has the interpreter's bits; by default the numbers are
within the bound of `rounding.py`.  The seed draws whether a line is compiled with its second
derivatives, as one in three is, or in one more dtype; where places are looked at too (`--bounds`)
each line is compiled with all of them.
"""

import random
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from rounding import excess
from test_native import EXACT, NATIVE, bits

from lineara.engines import run
from lineara.engines.native import Native
from lineara.errors import LinearaError
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.check import check
from lineara.linear_a.program import Program
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase

pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).parent.parent / "linear_a"))
try:
    from staged import case
    from test_every_dtype import PRIMITIVES, cases, of_dtype
    from test_primitives import TABLE
finally:
    sys.path.pop(0)

MASKED = Native(masks=True)
"""By default a factor of a dead lane is any number, since it is multiplied by zero."""
CONSTANTS = [line for line in TABLE if line not in PRIMITIVES and line.function is line.primitive]
WAYS = ("f", "f.jvp.e", "f.vjp.e", "f.vjp.e.jvp.e", "f.vjp.e.vjp.e")


def derivatives(program: Program) -> Program:
    """The program with f's derivatives of the first and the second order, without linear names."""
    program = vjp(program, "f")
    program = erase(erase(program, "f.jvp"), "f.vjp")
    program = vjp(program, "f.vjp.e")
    return check(erase(erase(program, "f.vjp.e.jvp"), "f.vjp.e.vjp"))


def together(program: Program, names) -> Program:
    """The program with `all`, which calls these definitions: one module of machine code."""
    params, bindings, results = [], [], []
    for i, name in enumerate(names):
        d = program.defs[name]
        given = [ir.Var(f"a{i}_{k}", v.type) for k, v in enumerate(d.params)]
        ys = [ir.Var(f"y{i}_{k}", t) for k, t in enumerate(d.results)]
        params += given
        results += ys
        bindings.append(ir.Let(tuple(ys), Call(tuple(given), (name,))))
    body = ir.Block(tuple(bindings), ir.Ret(tuple(results)))
    whole = ir.Def("all", tuple(params), tuple([v.type for v in results]), (), body)
    return check(program.with_(whole))


def numbers(d: ir.Def, values, seed: int):
    """The values of the first formals, and any numbers for the others."""
    rng = np.random.default_rng(seed)
    rest = []
    for v in d.params[len(values) :]:
        x = np.asarray(rng.normal(size=v.type.shape))
        if v.type.dtype.kind == "c":
            x = x + 1j * rng.normal(size=v.type.shape)
        rest.append(x.astype(v.type.dtype)[()])
    return [*values, *rest]


def agree(program: Program, names, values) -> None:
    """Machine code and the interpreter give the same, for all these definitions."""
    given = [v for i, name in enumerate(names) for v in numbers(program.defs[name], values, i)]
    whole = together(program, names)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's, that a logarithm is not precise
        expected = run(whole, "all", *given, engine="interpreter").results
        for engine in (EXACT, MASKED if "live_factor" in str(program.defs["f"]) else NATIVE):
            if engine.takes(whole, "all") is not None:
                assert len(names) == 1 or engine is EXACT, engine.takes(whole, "all")
                for name in names if len(names) > 1 else ():
                    agree(program, [name], values)
                continue
            ours = run(whole, "all", *given, engine=engine).results
            if engine is EXACT:
                assert bits(ours) == bits(expected)
            else:
                assert not (why := excess(whole, "all", given, expected, ours)), why


def few(lines):
    """The lines as cases: three in four are slow, which leaves enough of each kind."""
    slow = pytest.mark.slow("each is compiled for each dtype")
    marks = [() if i % 4 == 0 else slow for i in range(len(lines))]
    return [pytest.param(x, id=str(x), marks=m) for x, m in zip(lines, marks, strict=True)]


@pytest.mark.parametrize("line", few(PRIMITIVES))
def test_machine_code_has_the_value_and_the_derivatives_of_two_orders(line, request):
    option = request.config.option
    dtypes = [dtype for of, dtype in cases() if of is line] or [None]
    draw = random.Random(f"{option.seed} {line}")
    second = option.bounds or not option.all or draw.random() < 1 / 3
    if not option.all:
        dtypes = [None]
    elif not option.bounds:
        others = [dtype for dtype in dtypes if dtype not in (None, np.float64)]
        dtypes = [None, *([] if second else draw.sample(others, min(1, len(others))))]
    for dtype in dtypes:
        one = case(line if dtype is None else of_dtype(line, dtype))
        names = WAYS if second else WAYS[:3]
        agree(derivatives(one.program), names, one.values)


@pytest.mark.parametrize("line", few(CONSTANTS))
def test_machine_code_has_the_value_of_what_has_no_derivative(line):
    try:
        one = case(line)
    except LinearaError:
        return  # its size or its value is no part of a program: test_primitives.py
    agree(one.program, ["f"], one.values)

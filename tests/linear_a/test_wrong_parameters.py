"""What the checker accepts runs: no primitive leaves it to the run to find a parameter wrong.

Every operation that the lines of the table of primitives write is written again with wrong
parameters and with operands of other types.  Each is an error at its place in the text, or a run
gives a value of the type that was found.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from staged import case
from test_operators import LINES

from lineara.engines import run
from lineara.errors import ProgramError
from lineara.facts.types import ArrayType, show, type_of
from lineara.linear_a.check import check, type_of_leaf
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.show import show_leaf
from lineara.linear_a.syntax import Prim, Var, vars_in
from lineara.ops.value_checks import Check

WRONG = [None, -1, 7, 1.5, "x", (), (0,), (7,), (-1,), (0, 0), (0, 1), (1, 0), True, (2, 3), (6,),
         np.dtype(np.int32), slice(0, 9)]  # fmt: skip
BY_VALUE = {  # what they take must be definite, sorted, so large, regular, without negative parts
    "cholesky",
    "digitize",
    "argpartition",
    "sparse_solve",
    "linear_sparse_solve",
    "sqrtm",
    "logm",
    "care",
    "dare",
    "row_order",
}
NOWHERE = Program({}, {})


def others(t):
    """Types beside that one: no axis, one more, one less, other lengths."""
    yield ArrayType((), t.dtype)
    yield ArrayType((*t.shape, 2), t.dtype)
    if t.shape:
        yield ArrayType((t.shape[0] + 1, *t.shape[1:]), t.dtype)
        yield ArrayType((*t.shape[:-1], t.shape[-1] + 2), t.dtype)
        yield ArrayType(t.shape[1:], t.dtype)


def changed(e) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The same operation with one thing changed."""
    for k in e.params:
        for w in WRONG:
            yield e.args, {**e.params, k: w}
    for i, a in enumerate(e.args):
        for t in others(a.type):
            yield (*e.args[:i], Var(a.name, t), *e.args[i + 1 :]), e.params
    yield e.args[:-1], e.params


def operations():
    """What the lines write, each signature once, by the name of the primitive."""
    found = {}
    for line in LINES:
        d = case(line).program.defs["f"]
        for e in (*[b.rhs for b in d.body.bindings], d.body.leaf):
            if isinstance(e, Prim) and not any(vars_in(e.params)) and e.name not in BY_VALUE:
                e = Prim(tuple([Var(f"x{i}", a.type) for i, a in enumerate(e.args)]),
                         e.primitive, e.params)  # fmt: skip
                text = f"{show_leaf(e)} {[a.type for a in e.args]}"
                found.setdefault(e.name, {})[text] = e
    return found


OPERATIONS = operations()


def refusal(text):
    """What the checker says of a text that it does not accept."""
    try:
        check(parse(text))
    except ProgramError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_accepted_runs(name):
    rng = np.random.default_rng(0)
    refused = 0
    for e in OPERATIONS[name].values():
        for args, params in changed(e):
            made = Prim(args, e.primitive, params)
            try:
                (t,) = type_of_leaf(NOWHERE, made).xs
            except ProgramError:
                t = ArrayType((), np.dtype(float))
            formals = ", ".join([f"{v.name}: {show(v.type)}" for v in args])
            text = f"def g({formals};) -> ({show(t)};) = {show_leaf(made)}"
            said = refusal(text)
            if said:
                assert re.match(r"1:\d+: ", said), (text, said)
                refused += 1
                continue
            if isinstance(e.primitive, Check):
                continue  # what it raises as it runs is what it is for
            given = [rng.uniform(0.5, 1.5, v.type.shape).astype(v.type.dtype)[()] for v in args]
            with warnings.catch_warnings():  # of SciPy's, where a count is no whole number
                warnings.filterwarnings("ignore", "floating point number truncated|non-integer")
                assert type_of(run(parse(text), "g", *given).results[0]) == t, text
    assert refused


SAID = [
    ("sum[axis=(2,), keepdims=false](x)",
     "sum: f64[2,3] has not the axes (2,); it has 2, which count from 0, and each stands once"),
    ("cumsum[axis=true](x)", "cumsum: it is not written so; write cumsum[axis=…, reverse=…](x)"),
    ("permute_dims[axes=(0, 0)](x)",
     "permute_dims: (0, 0) is no order of the 2 axes of f64[2,3]; they count from 0, and each "
     "stands once"),
    ("reshape[shape=(4,)](x)", "reshape: f64[2,3] has 6 elements, and f64[4] would have 4"),
    ("reshape[shape=(-1,)](x)", "reshape: a shape has no negative lengths: (-1,)"),
    ("broadcast_to[shape=(2,)](x)",
     "broadcast_to: f64[2,3] has not the last axes of f64[2], or 1 in their place"),
    ("concat[axis=2](x, x)", "concat: f64[2,3] has no axis 2; it has 2, which count from 0"),
    ("concat[axis=0](x, permute_dims[axes=(1, 0)](x))",
     "concat: f64[2,3], f64[3,2] do not join along axis 0; their other axes must be equal"),
    ("stack(x, permute_dims[axes=(1, 0)](x))", "stack: f64[2,3], f64[3,2] have not one shape"),
    ("scatter[at=0, shape=(4,)](x)",
     "scatter: f64[2,3] does not go to the part f64[] of (4,)"),
    ("einsum[subscripts='ij,jk->ik'](x)",
     "einsum: 'ij,jk->ik' does not say what becomes of f64[2,3]; write a letter for each axis, and "
     "those that are left once: 'ij,j->i'"),
    ("einsum[subscripts='ii->i'](x)", "einsum: 'i' is 2 and 3; a letter has one length"),
    ("inv(x)", "inv: takes square matrices, not f64[2,3]"),
    ("solve(matmul(x, permute_dims[axes=(1, 0)](x)), permute_dims[axes=(1, 0)](x))",
     "solve: f64[2,2] has not as many rows as f64[3,2], which has two axes or more"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), SAID, ids=[text for text, _ in SAID])
def test_it_is_said_what_would_be_right(text, said):
    with pytest.raises(ProgramError) as caught:
        check(parse(f"def f(x: f64[2,3];) -> (f64;) = {text}"))
    assert caught.value.message.split("\n")[0].partition(": ")[2] == said
